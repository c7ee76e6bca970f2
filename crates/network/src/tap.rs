//! Taps, which receive packets with all headers as the packets leave and reach hosts, for captures.
//!
//! If the source host fragments a packet, the tap receives the fragments. At the destination host it also receives each
//! fragment on arrival, instead of the reassembled packet.

use crate::address::EndpointPair;
use crate::network::{HOP_LIMIT, Network};
use crate::packet::{Packet, PacketContent, PacketDisposition, PacketHandle};
use crate::routing::NextHop;
use bytes::Bytes;
use fullpipe_record::Observer;
use fullpipe_units::{Instant, NodeId};
use fullpipe_wire::{IpVersion, QuicDatagram, SegmentOptions};
use std::io;
use std::net::IpAddr;

/// The direction in which a packet passed a host's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureDirection {
    /// The host sent the packet.
    Outbound,
    /// The host received the packet.
    Inbound,
}

/// A receiver of the packets that hosts send and receive, with all headers. Its methods return no value during the run,
/// so a tap cannot change the results.
pub trait Tap: std::fmt::Debug + Send {
    /// Called when a packet or a fragment passes the interface of `node`.
    fn on_packet(&mut self, now: Instant, node: NodeId, direction: CaptureDirection, captured: &CapturedPacket<'_>);

    /// Called when a host's transport has passed a packet to the network at `node`, before fragmentation and even if
    /// the packet is dropped later.
    fn on_host_send(&mut self, _now: Instant, _node: NodeId, _captured: &CapturedPacket<'_>) {}

    /// Called when the run has ended.
    ///
    /// # Errors
    /// Returns the first error that occurred during the run.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A pair of taps, called one after the other.
impl Tap for (Box<dyn Tap>, Box<dyn Tap>) {
    fn on_packet(&mut self, now: Instant, node: NodeId, direction: CaptureDirection, captured: &CapturedPacket<'_>) {
        self.0.on_packet(now, node, direction, captured);
        self.1.on_packet(now, node, direction, captured);
    }

    fn on_host_send(&mut self, now: Instant, node: NodeId, captured: &CapturedPacket<'_>) {
        self.0.on_host_send(now, node, captured);
        self.1.on_host_send(now, node, captured);
    }

    fn finish(&mut self) -> io::Result<()> {
        let first = self.0.finish();
        self.1.finish().and(first)
    }
}

/// A packet, with its side data and its header fields.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// The whole packet if `packet` is a fragment; otherwise the packet itself.
    pub whole: &'a Packet,
    /// Options of a TCP segment that are stored separately; `None` if there are none.
    pub options: Option<&'a SegmentOptions>,
    /// Payload bytes of the fragment or of the whole packet; `None` if only the payload's length is modeled.
    pub payload: Option<&'a Bytes>,
    /// The packets of a datagram of the QUIC model; `None` if they are not stored separately.
    pub datagram: Option<&'a QuicDatagram>,
    /// The header fields that the packet does not contain.
    pub envelope: HeaderFields,
}

/// The header fields that a [`Packet`] does not contain, as seen at one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFields {
    /// Nodes and ports of both endpoints as seen at this host; outside a NAT, they are translated.
    pub ends: EndpointPair,
    /// Address of the source, as seen at this host.
    pub source: IpAddr,
    /// Address of the destination, as seen at this host.
    pub destination: IpAddr,
    /// Whether these addresses and ports differ from the untranslated ones.
    pub translated: bool,
    /// Remaining time to live or hop limit; the initial value is 64.
    pub hop_limit: u8,
    /// Identification field. IPv4 uses the lower 16 bits; in IPv6, only fragments have the field.
    pub identification: u32,
}

impl<O: Observer> Network<O> {
    /// Passes a packet to the tap when its source sends it. If it exceeds the MTU of the first hop, its fragments are
    /// passed when they are created instead; if it must not be fragmented, nothing leaves the host.
    #[cold]
    pub(crate) fn capture_sent(&mut self, from: NodeId, handle: PacketHandle) {
        let Some(mut tap) = self.tap.take() else { return };
        if let Some(captured) = self.packet_at(from, handle) {
            tap.on_host_send(self.now, from, &captured);
        }
        self.tap = Some(tap);
        let packet = self.arena.get(handle);
        let mtu_bytes = match self.toward(from, packet.destination) {
            NextHop::Link(link) => u32::from(self.links[link.index()].mtu_bytes),
            NextHop::Station { segment, .. } => self.segments[segment as usize].mtu_bytes,
            NextHop::Medium { medium, .. } => self.media[usize::from(medium)].mtu_bytes,
            NextHop::Translation | NextHop::None => u32::MAX,
        };
        if packet.ip_bytes <= mtu_bytes {
            self.capture(from, CaptureDirection::Outbound, handle);
        }
    }

    /// Passes a packet to the tap, if the directory contains its flow.
    #[cold]
    pub(crate) fn capture(&mut self, node: NodeId, direction: CaptureDirection, handle: PacketHandle) {
        let Some(mut tap) = self.tap.take() else { return };
        if let Some(captured) = self.packet_at(node, handle) {
            tap.on_packet(self.now, node, direction, &captured);
        }
        self.tap = Some(tap);
    }

    /// Returns a packet as seen at a host, with all its data; `None` if its flow is unknown.
    pub fn packet_at(&self, node: NodeId, handle: PacketHandle) -> Option<CapturedPacket<'_>> {
        let packet = self.arena.get(handle);
        let whole = match packet.content {
            PacketContent::Fragment { whole, .. } => whole,
            _ => handle,
        };
        let ends = self.directory.endpoints(packet.flow)?;
        Some(CapturedPacket {
            packet,
            whole: self.arena.get(whole),
            options: self.arena.options(self.arena.get(whole).options),
            payload: self.arena.payload(packet.payload).or_else(|| self.arena.payload(self.arena.get(whole).payload)),
            datagram: self.arena.datagram(self.arena.get(whole).payload),
            envelope: self.envelope(node, packet, ends, whole),
        })
    }

    fn envelope(&self, node: NodeId, packet: &Packet, ends: EndpointPair, whole: PacketHandle) -> HeaderFields {
        let of = self.arena.get(whole);
        let routers = self.routers_passed(of, node);
        let (ends, is_settled) = match of.content {
            PacketContent::RawIp { about: Some((flow, _)), purpose, .. } => {
                (self.directory.endpoints(flow).unwrap_or(ends), purpose == PacketDisposition::AlreadyTranslated)
            }
            PacketContent::RawIp { purpose, .. } => (ends, purpose == PacketDisposition::AlreadyTranslated),
            _ => (ends, false),
        };
        let seen = match packet.version {
            IpVersion::V4 if !is_settled => self.translators.seen_at(node, ends, self.translated_as(whole)),
            _ => ends,
        };
        // The Identification of an unfragmented packet is the same at both ends and distinguishes the packet from the
        // previous and next ones.
        let sent = packet.sent.as_nanos();
        let distinct = (sent ^ sent >> 16) as u32 ^ packet.flow.0.rotate_left(16).wrapping_mul(0x9E37_79B1);
        HeaderFields {
            ends: seen,
            translated: seen != ends,
            source: self.directory.address(seen.source.node, packet.version),
            destination: self.directory.address(seen.destination.node, packet.version),
            hop_limit: HOP_LIMIT.saturating_sub(routers.min(usize::from(u8::MAX)) as u8),
            identification: self.fragments.identification(whole).unwrap_or(distinct),
        }
    }
}
