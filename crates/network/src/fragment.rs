//! Fragmentation of IPv4 packets (RFC 791 section 3.2) and IPv6 packets (RFC 8200 section 4.5), and reassembly with a
//! list of holes (RFC 815).
//!
//! A UDP packet larger than a link's MTU is split into fragments, each with its own header; all but the last carry a
//! multiple of eight bytes. A fragment that exceeds a smaller MTU is fragmented again. TCP sets "don't fragment": a
//! segment that is too large is dropped. Fragments are forwarded, queued and dropped like packets. The whole packet
//! stays in the arena, keeps its send time, and ends when its last fragment has ended. If all fragments arrived, the
//! packet is delivered at that instant. Otherwise it is dropped, with the time, link and reason of the fragment that
//! was dropped first. The drop is reported only when all fragments have ended, so that the report does not depend on
//! whether links were computed ahead.
//!
//! Only the source fragments IPv6 packets, to the MTU of its own link. The header of each fragment is eight bytes
//! longer. Routers drop IPv6 packets that are too large.
//!
//! No reassembly timer is needed, because the network knows when each fragment has ended. (A real receiver would keep
//! the fragments of an incomplete packet for about 30 s and would not deliver them either.)

use crate::network::{HostEndpoints, Network};
use crate::packet::{Packet, PacketContent, PacketHandle, SideDataHandle};
use crate::tap::CaptureDirection;
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{EcnCodepoint, Instant, LinkId, NodeId};
use fullpipe_wire::IpVersion;
use std::collections::BTreeMap;

/// The drop of a fragment: time, link and reason, ordered by time.
type Failure = (Instant, Option<LinkId>, DropReason);

/// A packet with fragments in flight.
#[derive(Debug)]
struct Whole {
    /// Number of fragments that have neither arrived nor been dropped.
    outstanding: u32,
    /// Byte ranges that have not arrived; their ends are exclusive.
    holes: Vec<(u32, u32)>,
    failure: Option<Failure>,
    /// The Identification field, which all fragments share.
    identification: u32,
}

impl Whole {
    /// Marks the bytes `start..end` as arrived; the `last` fragment sets the end of the packet.
    fn fill(&mut self, start: u32, end: u32, last: bool) {
        let mut holes = Vec::with_capacity(self.holes.len() + 1);
        for &(from, to) in &self.holes {
            let before = (from, to.min(start));
            let after = (from.max(end), to);
            holes.extend([before, after].into_iter().filter(|(from, to)| from < to && !(last && *from >= end)));
        }
        self.holes = holes;
    }
}

/// All packets with fragments in flight.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    wholes: BTreeMap<PacketHandle, Whole>,
    /// Number of packets fragmented so far.
    cut: u32,
}

impl Fragments {
    /// Returns the Identification field of a packet with fragments in flight.
    pub(crate) fn identification(&self, whole: PacketHandle) -> Option<u32> {
        self.wholes.get(&whole).map(|whole| whole.identification)
    }
}

mod real;

/// Splits `payload_bytes` into fragments that fit the MTU, each as (offset, length). Returns `None` if the MTU is too
/// small for a header and eight bytes. The last fragment may fill the MTU completely.
fn cut(payload_bytes: u32, mtu_bytes: u32, header_bytes: u32) -> Option<impl Iterator<Item = (u32, u32)>> {
    let room = mtu_bytes.saturating_sub(header_bytes);
    let full = room / 8 * 8;
    let mut offset = 0;
    (full > 0).then(|| {
        std::iter::from_fn(move || {
            let left = payload_bytes - offset;
            let length = if left <= room { left } else { full };
            let piece = (offset, length);
            offset += length;
            (length > 0).then_some(piece)
        })
    })
}

impl<O: Observer> Network<O> {
    /// Fragments, at `node`, a packet that is too large for `link`, and passes the fragments to `forward` in order.
    pub(crate) fn fragment(
        &mut self,
        at: Instant,
        handle: PacketHandle,
        node: NodeId,
        mtu_bytes: u32,
        link: LinkId,
        mut forward: impl FnMut(&mut Self, PacketHandle),
    ) {
        let packet = *self.arena.get(handle);
        let payload_bytes = match packet.content {
            PacketContent::Fragment { .. } => packet.fragment_bytes(),
            _ => packet.ip_bytes - packet.version.header_bytes(),
        };
        let at_source = !self.is_router(node);
        if self.real_bytes(handle).is_some() {
            return self.fragment_real(at, handle, node, (mtu_bytes, link), forward);
        }
        let header_bytes = packet.version.fragment_header_bytes();
        let pieces = match packet.content {
            // A real QUIC stack probes the path MTU (RFC 9000 section 14: must not be fragmented).
            PacketContent::Udp { .. } if !packet.payload.is_none() => None,
            PacketContent::Quic(_) => None,
            PacketContent::Udp { .. } | PacketContent::Fragment { .. }
                if at_source || packet.version == IpVersion::V4 =>
            {
                cut(payload_bytes, mtu_bytes, header_bytes)
            }
            _ => None,
        };
        let Some(pieces) = pieces else {
            return self.refuse_too_big(at, handle, node, (mtu_bytes, link));
        };
        let (whole, first, ends) = match packet.content {
            PacketContent::Fragment { whole, offset_bytes, last } => (whole, offset_bytes, last),
            _ => (handle, 0, true),
        };
        let pieces: Vec<PacketHandle> = pieces
            .map(|(offset, length)| {
                self.arena.insert(Packet {
                    content: PacketContent::Fragment {
                        whole,
                        offset_bytes: first + offset,
                        last: ends && offset + length == payload_bytes,
                    },
                    ip_bytes: header_bytes + length,
                    options: SideDataHandle::NONE,
                    payload: SideDataHandle::NONE,
                    ..packet
                })
            })
            .collect();
        let count = pieces.len() as u32;
        if whole == handle {
            let identification = self.fragments.cut;
            self.fragments.cut = identification.wrapping_add(1);
            let state = Whole { outstanding: count, holes: vec![(0, u32::MAX)], failure: None, identification };
            self.fragments.wholes.insert(handle, state);
        } else {
            if let Some(state) = self.fragments.wholes.get_mut(&whole) {
                state.outstanding += count - 1;
            }
            self.arena.release(handle);
        }
        for piece in pieces {
            if at_source && self.tap.is_some() {
                self.capture(node, CaptureDirection::Outbound, piece);
            }
            forward(self, piece);
        }
    }

    /// Processes the arrival of a fragment at its destination host; the last fragment completes the packet.
    #[inline(never)]
    pub(crate) fn receive_fragment(&mut self, hosts: &mut impl HostEndpoints<O>, node: NodeId, handle: PacketHandle) {
        let packet = *self.arena.get(handle);
        let PacketContent::Fragment { whole, offset_bytes, last } = packet.content else { return };
        if self.real_bytes(handle).is_some() {
            return self.receive_real_fragment(hosts, node, handle);
        }
        if packet.codepoint == EcnCodepoint::Ce {
            // One marked fragment marks the whole packet (RFC 3168 section 5.3).
            self.arena.get_mut(whole).codepoint = EcnCodepoint::Ce;
        }
        // The transport's checksum covers all fragments.
        self.arena.get_mut(whole).corrupted |= packet.corrupted;
        if let Some(state) = self.fragments.wholes.get_mut(&whole) {
            state.fill(offset_bytes, offset_bytes + packet.fragment_bytes(), last);
        }
        if self.end_fragment(handle, whole, None) {
            let packet = self.arena.get(whole);
            if packet.corrupted {
                return self.refuse_corrupted(whole);
            }
            self.observer.on_delivered(self.now, &packet.view(), packet.sent);
            hosts.receive(self, node, whole);
        }
    }

    /// Processes the drop of a fragment.
    #[inline(never)]
    pub(crate) fn drop_fragment(
        &mut self,
        at: Instant,
        handle: PacketHandle,
        link: Option<LinkId>,
        reason: DropReason,
    ) {
        if let PacketContent::Fragment { whole, .. } = self.arena.get(handle).content {
            self.end_fragment(handle, whole, Some((at, link, reason)));
        }
    }

    /// Removes a fragment without a report (an injected fault).
    pub(crate) fn vanish(&mut self, handle: PacketHandle) {
        match self.arena.get(handle).content {
            PacketContent::Fragment { whole, .. } => {
                self.end_fragment(handle, whole, None);
            }
            _ => self.arena.release(handle),
        }
    }

    /// Counts the end of a fragment; returns true if this was the last fragment and the whole packet has arrived.
    fn end_fragment(&mut self, handle: PacketHandle, whole: PacketHandle, failure: Option<Failure>) -> bool {
        self.arena.release(handle);
        let Some(state) = self.fragments.wholes.get_mut(&whole) else { return false };
        state.failure = match (state.failure, failure) {
            (Some(earlier), Some(other)) => Some(earlier.min(other)),
            (one, other) => one.or(other),
        };
        state.outstanding -= 1;
        if state.outstanding > 0 {
            return false;
        }
        let complete = state.holes.is_empty();
        let failure = state.failure;
        self.fragments.wholes.remove(&whole);
        if complete {
            return true;
        }
        match failure {
            Some((at, link, reason)) => self.drop_packet(at, whole, link, reason),
            None => self.arena.release(whole),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Whole {
        Whole { outstanding: 0, holes: vec![(0, u32::MAX)], failure: None, identification: 0 }
    }

    #[test]
    fn holes_close_in_any_order() {
        // The ranges 0..1480, 1480..2960 and 2960..3000.
        let pieces = [(0, 1480, false), (1480, 2960, false), (2960, 3000, true)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut whole = whole();
            for (filled, index) in order.into_iter().enumerate() {
                assert!(!whole.holes.is_empty(), "{order:?}: complete after {filled}");
                let (start, end, last) = pieces[index];
                whole.fill(start, end, last);
            }
            assert!(whole.holes.is_empty(), "{order:?}: {:?}", whole.holes);
        }
    }

    #[test]
    fn a_repeated_or_overlapping_fragment_fills_no_other_hole() {
        let mut whole = whole();
        whole.fill(8, 16, false);
        whole.fill(8, 16, false);
        assert_eq!(whole.holes, [(0, 8), (16, u32::MAX)]);
        whole.fill(12, 32, true);
        assert_eq!(whole.holes, [(0, 8)]);
        whole.fill(0, 12, false);
        assert!(whole.holes.is_empty());
    }

    #[test]
    fn fragments_are_multiples_of_eight_and_cover_the_packet() {
        // Header of IPv4; header and extension of IPv6.
        for header_bytes in [20, 40 + 8] {
            for (room, payload_bytes) in (8..180).flat_map(|room| (1..600).map(move |payload| (room, payload))) {
                let mut end = 0;
                for (offset, length) in cut(payload_bytes, header_bytes + room, header_bytes).unwrap() {
                    assert_eq!(offset, end);
                    end += length;
                    assert!(length > 0 && length <= room);
                    assert!(length % 8 == 0 || end == payload_bytes);
                    // As large as possible: eight more bytes would not fit.
                    assert!(length + 8 > room || end == payload_bytes);
                }
                assert_eq!(end, payload_bytes);
            }
            assert!(cut(100, header_bytes + 7, header_bytes).is_none());
            assert!(cut(100, 0, header_bytes).is_none());
        }
    }
}
