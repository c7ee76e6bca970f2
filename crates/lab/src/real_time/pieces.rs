//! Fragments that real hosts send.
//!
//! Between real hosts they travel as they are; each belongs to the conversation of its packet's first fragment, if that came
//! before it. Where ports are needed of all of them, for translators and for nodes of the model, they wait for each other where
//! they enter, and the packet is cut again by the first link that is too small for it (RFC 4787 REQ-14: also out of order).

use bytes::Bytes;
use fullpipe_network::Network;
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::{IpVersion, Reassembler, Reassembly, Summary};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// What tells conversations apart: protocol, source and destination.
pub(super) type FiveTuple = (u8, SocketAddr, SocketAddr);

/// How long fragments wait for others: as in Linux.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes that may wait.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Packets whose first fragment is remembered.
const MAX_KNOWN: usize = 4096;

/// What fragments of a packet have in common.
type Key = (IpAddr, IpAddr, u32, u8);

/// Fragments and what is known of them.
#[derive(Debug)]
pub(super) struct Pieces {
    reassembler: Reassembler,
    known: BTreeMap<Key, FiveTuple>,
}

impl Pieces {
    pub(super) fn new() -> Self {
        Pieces { reassembler: Reassembler::new(TIMEOUT, MAX_WAITING_BYTES), known: BTreeMap::new() }
    }

    /// The packet that a fragment makes whole; an error if it can make none.
    pub(super) fn whole(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<Bytes>, ()> {
        self.reassembler.expire(now);
        match self.reassembler.take(now, bytes) {
            Ok(Reassembly::Whole(bytes)) => Ok(Some(bytes.into())),
            Ok(Reassembly::Waiting) => Ok(None),
            Ok(Reassembly::Discarded | Reassembly::NoFragment) | Err(_) => Err(()),
        }
    }

    /// The conversation of a packet or a fragment with these ends of its own.
    pub(super) fn conversation(&mut self, summary: &Summary, own: FiveTuple) -> FiveTuple {
        let Some(fragment) = summary.fragment else { return own };
        let protocol = match summary.version {
            IpVersion::V4 => summary.protocol,
            // A later fragment announces what follows the first one's fragment header, an extension header maybe.
            IpVersion::V6 => 0,
        };
        let key = (summary.source.ip(), summary.destination.ip(), fragment.identification, protocol);
        if fragment.offset_bytes > 0 {
            return self.known.get(&key).copied().unwrap_or(own);
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(key, own);
        own
    }
}

/// Whether fragments on the way are needed as one packet.
pub(super) fn need_whole<O: fullpipe_record::Observer>(network: &Network<O>, summary: &Summary, to_real: bool) -> bool {
    let is_translated = network.has_rebinding() || (network.has_nats() && summary.version == IpVersion::V4);
    summary.fragment.is_some() && (!to_real || is_translated)
}
