//! Fragments of IPv4 (RFC 791 section 3.2) and IPv6 packets (RFC 8200 section 4.5) and their reassembly by the list of holes (RFC 815).
//!
//! A UDP packet larger than a link's MTU is cut into fragments, each with a header of its own; all but the last carry a
//! multiple of eight bytes. A fragment that meets a still smaller MTU is cut again. TCP sets "don't fragment": a segment
//! that is too large is dropped. Fragments travel, wait and are dropped like packets. The whole packet stays in the
//! arena, keeps the instant at which it was sent, and ends when the last of its fragments has: delivered at that instant
//! if all arrived; otherwise dropped, with time, place and reason of the fragment that was dropped first (by time). Its
//! end is reported only then, so that it is the same whether links were computed ahead or not.
//!
//! IPv6 packets are cut by their source only, to the MTU of its own link; each fragment has eight further bytes of header.
//! At a router they are dropped if they are too large.
//!
//! No reassembly timer is needed: each fragment's end is known here, so nothing waits for one that will not come. (A real
//! receiver would hold the rest of such a packet for 30 s or so, and deliver nothing either.)

use crate::network::{Hosts, Network};
use crate::packet::{Content, Handle, Packet, Side};
use crate::tap::Direction;
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{Codepoint, Instant, LinkId, NodeId};
use fullpipe_wire::IpVersion;
use std::collections::BTreeMap;

/// How a fragmented packet first failed; ordered by time.
type Failure = (Instant, Option<LinkId>, DropReason);

/// A packet of which fragments are under way.
#[derive(Debug)]
struct Whole {
    /// Fragments that have neither arrived nor been dropped.
    outstanding: u32,
    /// What has not arrived: from, up to but not including.
    holes: Vec<(u32, u32)>,
    failure: Option<Failure>,
    /// What the headers of its fragments have in common.
    identification: u32,
}

impl Whole {
    /// Bytes `start..end` are there; after the `last` fragment there are no more.
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

/// All packets of which fragments are under way.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    wholes: BTreeMap<Handle, Whole>,
    /// Packets cut so far.
    cut: u32,
}

impl Fragments {
    /// Identification of a packet of which fragments are under way.
    pub(crate) fn identification(&self, whole: Handle) -> Option<u32> {
        self.wholes.get(&whole).map(|whole| whole.identification)
    }
}

mod real;

/// Payloads of the fragments of `payload_bytes` that fit an MTU, as (offset, length); `None` if not even eight bytes
/// fit beside a header. What follows the last full fragment may fill the MTU to the last byte.
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
    /// Cuts a packet that is too large for `link`, at `node`, and hands the pieces to `forward`, in order.
    pub(crate) fn fragment(
        &mut self,
        at: Instant,
        handle: Handle,
        node: NodeId,
        mtu_bytes: u32,
        link: LinkId,
        mut forward: impl FnMut(&mut Self, Handle),
    ) {
        let packet = *self.arena.get(handle);
        let payload_bytes = match packet.content {
            Content::Fragment { .. } => packet.fragment_bytes(),
            _ => packet.ip_bytes - packet.version.header_bytes(),
        };
        let at_source = !self.is_router(node);
        if self.real_bytes(handle).is_some() {
            return self.fragment_real(at, handle, node, (mtu_bytes, link), forward);
        }
        let header_bytes = packet.version.fragment_header_bytes();
        let pieces = match packet.content {
            // Bytes of a real stack, which finds out what the path carries (RFC 9000 section 14: not to be fragmented).
            Content::Udp { .. } if !packet.payload.is_none() => None,
            Content::Quic(_) => None,
            Content::Udp { .. } | Content::Fragment { .. } if at_source || packet.version == IpVersion::V4 => {
                cut(payload_bytes, mtu_bytes, header_bytes)
            }
            _ => None,
        };
        let Some(pieces) = pieces else {
            return self.refuse_too_big(at, handle, node, (mtu_bytes, link));
        };
        let (whole, first, ends) = match packet.content {
            Content::Fragment { whole, offset_bytes, last } => (whole, offset_bytes, last),
            _ => (handle, 0, true),
        };
        let pieces: Vec<Handle> = pieces
            .map(|(offset, length)| {
                self.arena.insert(Packet {
                    content: Content::Fragment {
                        whole,
                        offset_bytes: first + offset,
                        last: ends && offset + length == payload_bytes,
                    },
                    ip_bytes: header_bytes + length,
                    options: Side::NONE,
                    payload: Side::NONE,
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
                self.capture(node, Direction::Out, piece);
            }
            forward(self, piece);
        }
    }

    /// A fragment has reached its destination host; with the last one the whole packet has.
    #[inline(never)]
    pub(crate) fn receive_fragment(&mut self, hosts: &mut impl Hosts<O>, node: NodeId, handle: Handle) {
        let packet = *self.arena.get(handle);
        let Content::Fragment { whole, offset_bytes, last } = packet.content else { return };
        if self.real_bytes(handle).is_some() {
            return self.receive_real_fragment(hosts, node, handle);
        }
        if packet.codepoint == Codepoint::Ce {
            // One marked fragment marks the whole (RFC 3168 section 5.3).
            self.arena.get_mut(whole).codepoint = Codepoint::Ce;
        }
        // The transport's checksum is over all fragments.
        self.arena.get_mut(whole).corrupted |= packet.corrupted;
        if let Some(state) = self.fragments.wholes.get_mut(&whole) {
            state.fill(offset_bytes, offset_bytes + packet.fragment_bytes(), last);
        }
        if self.end_fragment(handle, whole, None) {
            let packet = self.arena.get(whole);
            if packet.corrupted {
                return self.refuse_corrupted(whole);
            }
            self.observer.delivered(self.now, &packet.view(), packet.sent);
            hosts.receive(self, node, whole);
        }
    }

    /// A fragment was dropped.
    #[inline(never)]
    pub(crate) fn drop_fragment(&mut self, at: Instant, handle: Handle, link: Option<LinkId>, reason: DropReason) {
        if let Content::Fragment { whole, .. } = self.arena.get(handle).content {
            self.end_fragment(handle, whole, Some((at, link, reason)));
        }
    }

    /// A fragment vanishes without a word (a fault put in on purpose).
    pub(crate) fn vanish(&mut self, handle: Handle) {
        match self.arena.get(handle).content {
            Content::Fragment { whole, .. } => {
                self.end_fragment(handle, whole, None);
            }
            _ => self.arena.release(handle),
        }
    }

    /// One fragment less under way; true if it was the last and the whole packet is there.
    fn end_fragment(&mut self, handle: Handle, whole: Handle, failure: Option<Failure>) -> bool {
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
        // 0..1480, 1480..2960, 2960..3000.
        let pieces = [(0, 1480, false), (1480, 2960, false), (2960, 3000, true)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut whole = whole();
            for (filled, index) in order.into_iter().enumerate() {
                assert!(!whole.holes.is_empty(), "{order:?}: whole after {filled}");
                let (start, end, last) = pieces[index];
                whole.fill(start, end, last);
            }
            assert!(whole.holes.is_empty(), "{order:?}: {:?}", whole.holes);
        }
    }

    #[test]
    fn a_piece_that_comes_twice_or_overlaps_fills_no_hole_beside_it() {
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
    fn cuts_are_multiples_of_eight_and_cover_everything() {
        // Header of IPv4; header and extension of IPv6.
        for header_bytes in [20, 40 + 8] {
            for (room, payload_bytes) in (8..180).flat_map(|room| (1..600).map(move |payload| (room, payload))) {
                let mut end = 0;
                for (offset, length) in cut(payload_bytes, header_bytes + room, header_bytes).unwrap() {
                    assert_eq!(offset, end);
                    end += length;
                    assert!(length > 0 && length <= room);
                    assert!(length % 8 == 0 || end == payload_bytes);
                    // As large as it can be: eight bytes more would not have fitted.
                    assert!(length + 8 > room || end == payload_bytes);
                }
                assert_eq!(end, payload_bytes);
            }
            assert!(cut(100, header_bytes + 7, header_bytes).is_none());
            assert!(cut(100, 0, header_bytes).is_none());
        }
    }
}
