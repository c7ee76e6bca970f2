//! Reassembly of fragments of real hosts (RFC 791 section 3.2, RFC 8200 section 4.5), for nodes of the model that need
//! whole packets.
//!
//! The fragments of a packet have the same addresses and identification, and with IPv4 the same protocol. An exact copy
//! of a fragment is ignored. Fragments that overlap or contradict each other in any other way indicate an attack or a
//! reused identification. The whole packet is then discarded, including later fragments, as RFC 8200 requires; under
//! RFC 791, the later fragment would replace the earlier one. If a fragment has the CE mark, the reassembled packet has
//! it too. If, in addition, another fragment is not ECN-capable, the packet is discarded (RFC 3168 section 5.3).
//!
//! An incomplete packet is discarded after a timeout, counted from its first fragment. If all fragments together exceed
//! the memory limit, the oldest incomplete packets are discarded first.

use crate::PacketError;
use crate::fragments::{per_fragment_headers, write_header_checksum};
use crate::ip::{IPV6_FRAGMENT_HEADER_BYTES, IPV6_HEADER_BYTES, IpVersion};
use crate::layout::{FragmentFields, Layout, word};
use crate::rewrite::set_ecn;
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Memory in bytes that is counted for each fragment and for each incomplete packet, in addition to the bytes of the
/// fragments.
const FRAGMENT_OVERHEAD_BYTES: usize = 64;
/// The DF flag and the reserved bit of an IPv4 header.
const OTHER_FLAGS: u16 = 0xc000;

/// Source, destination, identification, and the protocol of IPv4 (0 for IPv6).
type Key = (IpAddr, IpAddr, u32, u8);

/// The result of passing a packet to a [`Reassembler`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReassemblyResult {
    /// The packet is not a fragment.
    NotFragment,
    /// Other fragments are missing, or this fragment is a copy of an earlier one.
    Incomplete,
    /// All fragments have arrived; this is the reassembled packet.
    Complete(Vec<u8>),
    /// The fragment and all others of its packet are discarded.
    Discarded,
}

#[derive(Debug)]
struct Held {
    packet: Vec<u8>,
    payload_at: usize,
}

impl Held {
    fn payload(&self) -> &[u8] {
        &self.packet[self.payload_at..]
    }

    fn payload_bytes(&self) -> u32 {
        self.payload().len() as u32
    }
}

/// An incomplete packet. If `is_sound` is false, its fragments have been discarded, and later ones will be.
#[derive(Debug)]
struct Incomplete {
    begun: Instant,
    is_sound: bool,
    fragments: BTreeMap<u32, Held>,
    /// End of the last fragment, if it has arrived.
    end: Option<u32>,
    /// Payload bytes that have arrived.
    arrived_bytes: u32,
    /// ECN codepoints of its fragments, one bit each.
    codepoints: u8,
    held_bytes: usize,
}

/// Reassembles packets from their fragments.
#[derive(Debug)]
pub struct Reassembler {
    timeout: Duration,
    limit_bytes: usize,
    held_bytes: usize,
    incomplete: BTreeMap<Key, Incomplete>,
    /// The keys in the order of their first fragments.
    ages: BTreeSet<(Instant, Key)>,
}

impl Reassembler {
    /// Creates a reassembler. RFC 8200 section 4.5 specifies a `timeout` of 60 s; Linux uses 30 s for IPv4.
    /// `limit_bytes` is the maximum of [`Reassembler::held_bytes`].
    pub fn new(timeout: Duration, limit_bytes: usize) -> Reassembler {
        Reassembler { timeout, limit_bytes, held_bytes: 0, incomplete: BTreeMap::new(), ages: BTreeSet::new() }
    }

    /// Processes a packet or fragment that arrives at `now`.
    ///
    /// # Errors
    /// Returns [`PacketError`] if the packet is malformed.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) -> Result<ReassemblyResult, PacketError> {
        let layout = Layout::whole(packet)?;
        let Some(piece) = layout.piece else { return Ok(ReassemblyResult::NotFragment) };
        let packet = &packet[..layout.total];
        let (source, destination) = layout.addresses(packet);
        let (protocol, payload_at, ecn) = match layout.version {
            IpVersion::V4 => (layout.protocol, layout.transport, packet[1]),
            IpVersion::V6 => {
                let header = per_fragment_headers(packet).fragment_header.map_or(layout.transport, |(at, _)| at + 8);
                (0, header, packet[1] >> 4)
            }
        };
        let key = (source, destination, piece.identification, protocol);
        let known = self.incomplete.entry(key).or_insert_with(|| {
            self.ages.insert((now, key));
            self.held_bytes += FRAGMENT_OVERHEAD_BYTES;
            Incomplete::new(now)
        });
        let before = known.held_bytes;
        known.add(piece, Held { packet: packet.to_vec(), payload_at }, ecn);
        self.held_bytes = self.held_bytes - before + known.held_bytes;
        if !known.is_sound {
            self.evict();
            return Ok(ReassemblyResult::Discarded);
        }
        if !known.is_complete() {
            self.evict();
            return Ok(ReassemblyResult::Incomplete);
        }
        let whole = self.forget(&key).and_then(|complete| complete.assemble(layout.version));
        Ok(whole.map_or(ReassemblyResult::Discarded, ReassemblyResult::Complete))
    }

    /// Returns the time at which the next incomplete packet expires; `None` if there is none.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.ages.first().map(|(begun, _)| begun.saturating_add(self.timeout))
    }

    /// Discards expired packets, and returns the first fragment of each, if it has arrived. Only a first fragment
    /// causes an ICMP error ([`ReassemblyTimeExceeded`](crate::IcmpError::ReassemblyTimeExceeded)).
    pub fn expire(&mut self, now: Instant) -> Vec<Vec<u8>> {
        let mut first = Vec::new();
        while let Some(&(begun, key)) = self.ages.first() {
            if begun.saturating_add(self.timeout) > now {
                break;
            }
            let fragment = self.forget(&key).and_then(|mut incomplete| incomplete.fragments.remove(&0));
            first.extend(fragment.map(|fragment| fragment.packet));
        }
        first
    }

    /// Returns the memory of all fragments in bytes, including a fixed overhead per fragment and per packet.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    fn forget(&mut self, key: &Key) -> Option<Incomplete> {
        let incomplete = self.incomplete.remove(key)?;
        self.ages.remove(&(incomplete.begun, *key));
        self.held_bytes -= incomplete.held_bytes;
        Some(incomplete)
    }

    fn evict(&mut self) {
        while self.held_bytes > self.limit_bytes {
            let Some(&(_, key)) = self.ages.first() else { return };
            self.forget(&key);
        }
    }
}

impl Incomplete {
    fn new(begun: Instant) -> Incomplete {
        Incomplete {
            begun,
            is_sound: true,
            fragments: BTreeMap::new(),
            end: None,
            arrived_bytes: 0,
            codepoints: 0,
            held_bytes: FRAGMENT_OVERHEAD_BYTES,
        }
    }

    fn add(&mut self, piece: FragmentFields, held: Held, ecn: u8) {
        if !self.is_sound || self.has_copy(piece, &held) {
            return;
        }
        let start = piece.offset_bytes;
        let end = start + held.payload_bytes();
        // Stored fragments do not overlap, so of those that begin before the end, the last one also ends last.
        let before = self.fragments.range(..end).next_back();
        let overlaps = before.is_some_and(|(at, other)| start < at + other.payload_bytes());
        let reaches_beyond = |limit: u32| self.furthest() > limit || end > limit;
        let contradicts = match (piece.last, self.end) {
            (true, Some(known)) => known != end,
            (true, None) => reaches_beyond(end),
            (false, known) => known.is_some_and(reaches_beyond),
        };
        if contradicts || overlaps {
            self.is_sound = false;
            self.fragments.clear();
            self.held_bytes = FRAGMENT_OVERHEAD_BYTES;
            return;
        }
        if piece.last {
            self.end = Some(end);
        }
        self.arrived_bytes += end - start;
        self.codepoints |= 1 << (ecn & 0b11);
        self.held_bytes += held.packet.len() + FRAGMENT_OVERHEAD_BYTES;
        self.fragments.insert(start, held);
    }

    fn has_copy(&self, piece: FragmentFields, held: &Held) -> bool {
        let is_end = |known: &Held| self.end == Some(piece.offset_bytes + known.payload_bytes());
        self.fragments
            .get(&piece.offset_bytes)
            .is_some_and(|known| known.payload() == held.payload() && is_end(known) == piece.last)
    }

    fn furthest(&self) -> u32 {
        self.fragments.iter().next_back().map_or(0, |(at, last)| at + last.payload_bytes())
    }

    /// Whether all fragments have arrived. Fragments never overlap, so the sum of their lengths then equals the end of
    /// the last one.
    fn is_complete(&self) -> bool {
        self.end == Some(self.arrived_bytes)
    }

    /// The reassembled packet; `None` if it exceeds the length field or its ECN codepoints contradict each other.
    fn assemble(&self, version: IpVersion) -> Option<Vec<u8>> {
        let first = self.fragments.get(&0)?;
        let mut bytes = match version {
            IpVersion::V4 => first.packet[..first.payload_at].to_vec(),
            IpVersion::V6 => {
                let (at, next_at) = per_fragment_headers(&first.packet).fragment_header?;
                let mut headers = first.packet[..at].to_vec();
                *headers.get_mut(next_at)? = *first.packet.get(at)?;
                debug_assert_eq!(at + IPV6_FRAGMENT_HEADER_BYTES as usize, first.payload_at);
                headers
            }
        };
        let header_bytes = bytes.len();
        for held in self.fragments.values() {
            bytes.extend_from_slice(held.payload());
        }
        match version {
            IpVersion::V4 => {
                let total = u16::try_from(bytes.len()).ok()?;
                let flags = word(&bytes, 6) & OTHER_FLAGS;
                bytes[2..4].copy_from_slice(&total.to_be_bytes());
                bytes[6..8].copy_from_slice(&flags.to_be_bytes());
                write_header_checksum(&mut bytes[..header_bytes]);
            }
            IpVersion::V6 => {
                let length = u16::try_from(bytes.len() - IPV6_HEADER_BYTES as usize).ok()?;
                bytes[4..6].copy_from_slice(&length.to_be_bytes());
            }
        }
        let had = |codepoint: EcnCodepoint| self.codepoints & 1 << codepoint.bits() != 0;
        match (had(EcnCodepoint::Ce), had(EcnCodepoint::NotEct)) {
            (true, true) => return None,
            (true, false) => set_ecn(&mut bytes, EcnCodepoint::Ce).ok()?,
            (false, _) => {}
        }
        Some(bytes)
    }
}
