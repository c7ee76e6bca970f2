//! Fragments of IPv4 packets (RFC 791 section 3.2) and their reassembly by the list of holes (RFC 815).
//!
//! A UDP packet larger than a link's MTU is cut into fragments, each with a header of its own; all but the last carry a
//! multiple of eight bytes. A fragment that meets a still smaller MTU is cut again. TCP sets "don't fragment": a segment
//! that is too large is dropped. Fragments travel, wait and are dropped like packets. The whole packet stays in the
//! arena, keeps the instant at which it was sent, and ends when the last of its fragments has: delivered at that instant
//! if all arrived; otherwise dropped, with time, place and reason of the fragment that was dropped first (by time). Its
//! end is reported only then, so that it is the same whether links were computed ahead or not.
//!
//! No reassembly timer is needed: each fragment's end is known here, so nothing waits for one that will not come. (A real
//! receiver would hold the rest of such a packet for 30 s or so, and deliver nothing either.)

use crate::network::{Hosts, Network};
use crate::packet::{Content, Handle, IPV4_HEADER_BYTES, Packet, Side};
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{Instant, LinkId, NodeId};
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
}

/// Payloads of the fragments of `payload_bytes` that fit an MTU, as (offset, length); `None` if not even eight bytes
/// fit beside a header. What follows the last full fragment may fill the MTU to the last byte.
fn cut(payload_bytes: u32, mtu_bytes: u32) -> Option<impl Iterator<Item = (u32, u32)>> {
    let room = mtu_bytes.saturating_sub(IPV4_HEADER_BYTES);
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
    /// Cuts a packet that is too large for `link` and hands the pieces to `forward`, in order.
    pub(crate) fn fragment(
        &mut self,
        at: Instant,
        handle: Handle,
        mtu_bytes: u32,
        link: LinkId,
        mut forward: impl FnMut(&mut Self, Handle),
    ) {
        let packet = *self.arena.get(handle);
        let payload_bytes = packet.ip_bytes - IPV4_HEADER_BYTES;
        let pieces = match packet.content {
            Content::Udp { .. } | Content::Fragment { .. } => cut(payload_bytes, mtu_bytes),
            Content::Tcp(_) | Content::Arp { .. } => None,
        };
        let Some(pieces) = pieces else {
            return self.drop_packet(at, handle, Some(link), DropReason::TooBig);
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
                    ip_bytes: IPV4_HEADER_BYTES + length,
                    sacks: Side::NONE,
                    payload: Side::NONE,
                    ..packet
                })
            })
            .collect();
        let count = pieces.len() as u32;
        if whole == handle {
            let state = Whole { outstanding: count, holes: vec![(0, u32::MAX)], failure: None };
            self.fragments.wholes.insert(handle, state);
        } else {
            if let Some(state) = self.fragments.wholes.get_mut(&whole) {
                state.outstanding += count - 1;
            }
            self.arena.release(handle);
        }
        for piece in pieces {
            forward(self, piece);
        }
    }

    /// A fragment has reached its destination host; with the last one the whole packet has.
    #[inline(never)]
    pub(crate) fn receive_fragment(&mut self, hosts: &mut impl Hosts<O>, node: NodeId, handle: Handle) {
        let packet = *self.arena.get(handle);
        let Content::Fragment { whole, offset_bytes, last } = packet.content else { return };
        if let Some(state) = self.fragments.wholes.get_mut(&whole) {
            state.fill(offset_bytes, offset_bytes + packet.ip_bytes - IPV4_HEADER_BYTES, last);
        }
        if self.end_fragment(handle, whole, None) {
            let packet = self.arena.get(whole);
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
