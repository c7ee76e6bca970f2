//! Fragmentation of real packets. Each fragment has the bytes that the fragmenting node produced, and the receiver gets
//! each fragment when it arrives. Only the records use the arrival of the whole packet.

use super::Whole;
use crate::network::{HostEndpoints, Network};
use crate::notice::NotificationReason;
use crate::packet::{Packet, PacketContent, PacketHandle, SideDataHandle};
use crate::tap::CaptureDirection;
use bytes::Bytes;
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{Instant, LinkId, NodeId};
use fullpipe_wire::{IcmpError, IpVersion, PacketSummary, fragments};

/// Returns the byte range of a packet's or fragment's payload within the payload of its whole packet.
fn extent(bytes: &[u8]) -> Option<(u32, u32)> {
    let summary = PacketSummary::parse(bytes).ok()?;
    let fragment = summary.fragment.map_or((0, 0), |fragment| (fragment.offset_bytes, 8));
    let header_bytes = match summary.version {
        IpVersion::V4 => u32::from(bytes.first()? & 0xf) * 4,
        // Only packets that their source fragmented, which have no other extension headers.
        IpVersion::V6 => summary.version.header_bytes() + fragment.1,
    };
    Some((fragment.0, fragment.0 + summary.total_bytes.checked_sub(header_bytes)?))
}

impl<O: Observer> Network<O> {
    /// Returns the bytes of a real packet or of one of its fragments.
    pub(super) fn real_bytes(&self, handle: PacketHandle) -> Option<&Bytes> {
        let packet = self.arena.get(handle);
        match packet.content {
            PacketContent::RawIp { .. } | PacketContent::Fragment { .. } => self.arena.payload(packet.payload),
            _ => None,
        }
    }

    /// Drops a packet that is too large for a link and must not be fragmented, with a notice.
    #[cold]
    pub(super) fn refuse_too_big(&mut self, at: Instant, handle: PacketHandle, node: NodeId, limit: (u32, LinkId)) {
        let (mtu_bytes, link) = limit;
        // A host does not send an ICMP error to itself; the first router sends it.
        let teller = match self.is_router(node) {
            true => Some(node),
            false => self.adjacent_router(node),
        };
        if let Some(teller) = teller {
            self.notify(at, handle, teller, NotificationReason::Error(IcmpError::PacketTooBig { mtu_bytes }));
        }
        self.drop_packet(at, handle, Some(link), DropReason::PacketTooBig);
    }

    /// Returns the first router that is adjacent to a node; `None` if there is none.
    pub fn adjacent_router(&self, node: NodeId) -> Option<NodeId> {
        self.edges.get(node.index())?.iter().map(|edge| edge.to).find(|to| self.is_router(*to))
    }

    /// Fragments a real packet at `node`; see [`Network::fragment`].
    #[cold]
    pub(super) fn fragment_real(
        &mut self,
        at: Instant,
        handle: PacketHandle,
        node: NodeId,
        limit: (u32, LinkId),
        mut forward: impl FnMut(&mut Self, PacketHandle),
    ) {
        let packet = *self.arena.get(handle);
        let bytes = self.real_bytes(handle).cloned().unwrap_or_default();
        let (whole, may_be_cut) = match packet.content {
            PacketContent::Fragment { whole, .. } => (whole, packet.version == IpVersion::V4),
            PacketContent::RawIp { dont_fragment, origin, .. } => {
                (handle, !dont_fragment && (packet.version == IpVersion::V4 || origin == node))
            }
            _ => (handle, false),
        };
        let identification = self.fragments.cut;
        let mut cut: Vec<Bytes> = Vec::new();
        let is_cut = may_be_cut
            && fragments::fragment(&bytes, limit.0, identification, |piece| cut.push(Bytes::copy_from_slice(piece)))
                .is_ok();
        let Some((begin, end)) = extent(&bytes).filter(|_| is_cut) else {
            return self.refuse_too_big(at, handle, node, limit);
        };
        let last = cut.len().saturating_sub(1);
        let mut pieces = Vec::with_capacity(cut.len());
        for (number, bytes) in cut.into_iter().enumerate() {
            let offset_bytes = extent(&bytes).map_or(0, |(begin, _)| begin);
            let ip_bytes = bytes.len() as u32;
            let payload = self.arena.store_payload(Some(bytes));
            let content = PacketContent::Fragment { whole, offset_bytes, last: number == last };
            pieces.push(self.arena.insert(Packet {
                content,
                ip_bytes,
                payload,
                options: SideDataHandle::NONE,
                ..packet
            }));
        }
        let count = pieces.len() as u32;
        if whole == handle {
            self.fragments.cut = identification.wrapping_add(1);
            let state = Whole { outstanding: count, holes: vec![(begin, end)], failure: None, identification };
            self.fragments.wholes.insert(handle, state);
        } else {
            if let Some(state) = self.fragments.wholes.get_mut(&whole) {
                state.outstanding += count - 1;
            }
            self.arena.release(handle);
        }
        for piece in pieces {
            if !self.is_router(node) && self.tap.is_some() {
                self.capture(node, CaptureDirection::Outbound, piece);
            }
            forward(self, piece);
        }
    }

    /// Processes the arrival of a real fragment at its destination host.
    #[cold]
    pub(super) fn receive_real_fragment(
        &mut self,
        hosts: &mut impl HostEndpoints<O>,
        node: NodeId,
        handle: PacketHandle,
    ) {
        let is_taken = hosts.receive_fragment(self, node, handle);
        let Some(whole) = self.whole_at(handle) else { return };
        let packet = self.arena.get(whole);
        self.observer.on_delivered(self.now, &packet.view(), packet.sent);
        if is_taken {
            return self.arena.release(whole);
        }
        hosts.receive(self, node, whole);
    }

    /// Returns the packet that has arrived: an unfragmented packet itself, or the whole packet when its last real
    /// fragment has arrived.
    pub(crate) fn whole_at(&mut self, handle: PacketHandle) -> Option<PacketHandle> {
        let PacketContent::Fragment { whole, .. } = self.arena.get(handle).content else { return Some(handle) };
        let Some((begin, end)) = self.real_bytes(handle).and_then(|bytes| extent(bytes)) else { return Some(handle) };
        if let Some(state) = self.fragments.wholes.get_mut(&whole) {
            state.fill(begin, end, false);
        }
        self.end_fragment(handle, whole, None).then_some(whole)
    }
}
