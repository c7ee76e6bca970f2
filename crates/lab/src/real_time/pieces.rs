//! IP fragments from real hosts.
//!
//! Between real hosts, fragments pass unchanged. A fragment belongs to the conversation of its packet's first fragment,
//! if that fragment arrived earlier. NATs and nodes of the model need the ports of all fragments, so their fragments
//! are reassembled on entry. The first link with a smaller MTU fragments the packet again (RFC 4787 REQ-14: also out of
//! order).

use bytes::Bytes;
use fullpipe_network::Network;
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::{IpVersion, PacketSummary, Reassembler, ReassemblyResult};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// Protocol, source and destination, which identify a conversation.
pub(super) type FiveTuple = (u8, SocketAddr, SocketAddr);

/// Reassembly timeout, as in Linux.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of bytes that wait for reassembly.
const MAX_WAITING_BYTES: usize = 4 << 20;
/// Maximum number of packets whose first fragment is remembered.
const MAX_KNOWN: usize = 4096;

/// The fields that fragments of a packet share.
type Key = (IpAddr, IpAddr, u32, u8);

/// Waiting fragments, and the conversations of first fragments.
#[derive(Debug)]
pub(super) struct FragmentReassembly {
    reassembler: Reassembler,
    known: BTreeMap<Key, FiveTuple>,
}

impl FragmentReassembly {
    pub(super) fn new() -> Self {
        FragmentReassembly { reassembler: Reassembler::new(TIMEOUT, MAX_WAITING_BYTES), known: BTreeMap::new() }
    }

    /// Returns the packet that a fragment completes, if any. Fails if the fragment is invalid.
    pub(super) fn whole(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<Bytes>, ()> {
        self.reassembler.expire(now);
        match self.reassembler.handle_packet(now, bytes) {
            Ok(ReassemblyResult::Complete(bytes)) => Ok(Some(bytes.into())),
            Ok(ReassemblyResult::Incomplete) => Ok(None),
            Ok(ReassemblyResult::Discarded | ReassemblyResult::NotFragment) | Err(_) => Err(()),
        }
    }

    /// Returns the conversation of a packet or fragment. `own` is the five-tuple of its own header.
    pub(super) fn conversation(&mut self, summary: &PacketSummary, own: FiveTuple) -> FiveTuple {
        let Some(fragment) = summary.fragment else { return own };
        let protocol = match summary.version {
            IpVersion::V4 => summary.protocol,
            // The header of a later fragment states the type of the next header in the first fragment, which may be an
            // extension header.
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

/// Returns whether fragments must be reassembled on entry.
pub(super) fn need_whole<O: fullpipe_record::Observer>(
    network: &Network<O>,
    summary: &PacketSummary,
    to_real: bool,
) -> bool {
    let is_translated = network.has_rebinding() || (network.has_nats() && summary.version == IpVersion::V4);
    summary.fragment.is_some() && (!to_real || is_translated)
}
