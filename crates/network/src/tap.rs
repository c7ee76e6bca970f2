//! Where captures attach: whoever wants whole headers, as packets leave and reach hosts.

use crate::packet::{Packet, SegmentOptions};
use bytes::Bytes;
use fullpipe_units::{Instant, NodeId};

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
}

/// A packet with all that it carries.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// Options of a TCP segment beside its header.
    pub options: Option<&'a SegmentOptions>,
    /// Payload bytes where there are any; else a payload is a mere length.
    pub payload: Option<&'a Bytes>,
}
