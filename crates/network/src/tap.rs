//! Where captures attach: whoever wants whole headers, as packets leave and reach hosts.
//!
//! A packet that its own host cuts into fragments leaves as these; fragments that reach a host are seen one by one, as
//! they come, not the packet that they make.

use crate::address::Ends;
use crate::packet::{Packet, SegmentOptions};
use crate::quic::QuicDatagram;
use bytes::Bytes;
use fullpipe_units::{Instant, NodeId};
use std::io;
use std::net::IpAddr;

/// Which way a packet passed a host's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The host sent it.
    Out,
    /// The host received it.
    In,
}

/// Sees whole packets at hosts. It cannot answer, so it cannot change a run.
pub trait Tap: std::fmt::Debug + Send {
    /// A packet passed the interface of `node`.
    fn packet(&mut self, now: Instant, node: NodeId, direction: Direction, captured: &Captured<'_>);

    /// A host's transport has handed a packet to the network at `node`: whole, before it is cut, and whatever becomes of
    /// it.
    fn handed_over(&mut self, _now: Instant, _node: NodeId, _captured: &Captured<'_>) {}

    /// The run is over.
    ///
    /// # Errors
    /// The first that it met since its beginning.
    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Two taps, one after the other.
impl Tap for (Box<dyn Tap>, Box<dyn Tap>) {
    fn packet(&mut self, now: Instant, node: NodeId, direction: Direction, captured: &Captured<'_>) {
        self.0.packet(now, node, direction, captured);
        self.1.packet(now, node, direction, captured);
    }

    fn handed_over(&mut self, now: Instant, node: NodeId, captured: &Captured<'_>) {
        self.0.handed_over(now, node, captured);
        self.1.handed_over(now, node, captured);
    }

    fn finish(&mut self) -> io::Result<()> {
        let first = self.0.finish();
        self.1.finish().and(first)
    }
}

/// A packet with all that it carries.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// The whole packet of which it is a fragment; else the packet itself.
    pub whole: &'a Packet,
    /// Options of a TCP segment beside its header.
    pub options: Option<&'a SegmentOptions>,
    /// Payload bytes of the whole packet where there are any; else a payload is a mere length.
    pub payload: Option<&'a Bytes>,
    /// The packets of a datagram of the QUIC model that has them beside it.
    pub datagram: Option<&'a QuicDatagram>,
    /// What its headers say beside that.
    pub envelope: Envelope,
}

/// What a header says and a [`Packet`] does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Addresses and ports as they are at this host: outside a translator, the translated ones.
    pub ends: Ends,
    /// Address of the source, as it is at this host.
    pub source: IpAddr,
    /// Address of the destination.
    pub destination: IpAddr,
    /// Whether these ends are not those that the source sent to and from.
    pub translated: bool,
    /// Time to live or hop limit that is left of 64.
    pub hop_limit: u8,
    /// Identification, of which IPv4 shows the lower 16 bits and IPv6 only in fragments.
    pub identification: u32,
}
