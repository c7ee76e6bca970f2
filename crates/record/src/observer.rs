//! The events that a world reports while it runs.
//!
//! Times in an event may lie ahead of the simulation's clock by as much as a packet's way through a chain of links
//! that was computed at once; within one link and within one flow's arrivals they are in order.

use fullpipe_units::{Codepoint, FlowId, Instant, LinkId};

/// Transport protocol of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// UDP.
    #[default]
    Udp,
    /// TCP.
    Tcp,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// A queue was full.
    QueueFull,
    /// A queue discipline decided to drop it although there was room (active queue management).
    Discipline,
    /// The link's loss model took it.
    Loss,
    /// Bits of it were flipped: the link's frame check or its destination's checksum noticed.
    Corrupted,
    /// It waited for an address that was not resolved, beyond the number that may wait.
    Resolution,
    /// The medium was busy too often.
    Collision,
    /// It was lost on the air, in all transmissions that it had.
    Radio,
    /// It was larger than the link's MTU and must not be fragmented.
    TooBig,
    /// A fragment was missing when reassembly was given up.
    Reassembly,
    /// A translator of addresses had no mapping for it and could or would make none.
    Nat,
    /// No route, or no one listens at its destination.
    Unreachable,
}

/// The TCP fields an observer may want, with sequence numbers as on the wire (modulo 2^32).
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpView {
    /// Sequence number of the first byte.
    pub sequence: u32,
    /// Sequence number after the last byte, SYN and FIN counted.
    pub sequence_end: u32,
    /// Acknowledgement number; meaningful if `has_ack`.
    pub acknowledgement: u32,
    /// Whether the ACK flag is set.
    pub has_ack: bool,
    /// Whether the SYN flag is set.
    pub syn: bool,
}

/// What an observer sees of a packet.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// Its flow.
    pub flow: FlowId,
    /// Size at the IP layer in bytes.
    pub ip_bytes: u32,
    /// Size of the transport's payload in bytes.
    pub payload_bytes: u32,
    /// ECN bits of the IP header.
    pub codepoint: Codepoint,
    /// TCP fields, for TCP packets.
    pub tcp: Option<TcpView>,
}

impl PacketView {
    /// The sequence numbers of a TCP segment become larger.
    #[inline(always)]
    pub fn advance_sequence(&mut self, bytes: u32) {
        if let Some(tcp) = &mut self.tcp {
            tcp.sequence = tcp.sequence.wrapping_add(bytes);
            tcp.sequence_end = tcp.sequence_end.wrapping_add(bytes);
        }
    }
}

/// One packet's passage over one link.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// The link.
    pub link: LinkId,
    /// The packet's flow.
    pub flow: FlowId,
    /// Size on the wire in bytes, framing included.
    pub wire_bytes: u32,
    /// When it came to the link's queue.
    pub offered: Instant,
    /// When its first bit left.
    pub start: Instant,
    /// When its last bit left.
    pub finish: Instant,
    /// When its last bit arrived at the far end.
    pub arrival: Instant,
}

/// Somebody who watches a run. All methods default to doing nothing.
pub trait Observer {
    /// Packets of a flow will be reported soon; an observer may prefetch its state.
    #[inline(always)]
    fn prefetch_flow(&self, _flow: FlowId) {}

    /// Frames of a link will be reported soon; an observer may prefetch its state.
    #[inline(always)]
    fn prefetch_link(&self, _link: LinkId) {}

    /// A packet was handed to the network by its source.
    #[inline(always)]
    fn sent(&mut self, _now: Instant, _packet: &PacketView) {}

    /// TCP segments, `packets` of them and at least one, were handed to the network by their source that differ in their sequence
    /// numbers alone: `first`, and others whose number is larger by `step_bytes` than that of the one before. Returns whether the observer has taken them all, as
    /// [`Observer::sent`] would one by one. Otherwise each is reported by that, before it comes to its first link.
    #[inline(always)]
    fn sent_burst(&mut self, _now: Instant, _first: &PacketView, _packets: u32, _step_bytes: u32) -> bool {
        false
    }

    /// A packet reached its destination host, whole; `sent` is when it was handed to the network.
    #[inline(always)]
    fn delivered(&mut self, _now: Instant, _packet: &PacketView, _sent: Instant) {}

    /// A packet was dropped (or one of its fragments was, which ends the packet), on `link` where there is one.
    #[inline(always)]
    fn dropped(&mut self, _now: Instant, _packet: &PacketView, _link: Option<LinkId>, _reason: DropReason) {}

    /// A frame came to a link's queue (it will be transmitted or dropped). For one link, `now` of this, of
    /// [`Observer::link_dropped`] and of [`Observer::marked`] never goes back.
    #[inline(always)]
    fn offered(&mut self, _now: Instant, _link: LinkId, _wire_bytes: u32) {}

    /// A frame was dropped before it was transmitted: at a link's queue, because the medium was busy too often, or on the air. A
    /// frame that a loss model takes has been transmitted; then only [`Observer::dropped`] tells.
    #[inline(always)]
    fn link_dropped(&mut self, _now: Instant, _link: LinkId, _wire_bytes: u32, _reason: DropReason) {}

    /// A link's queue discipline set "congestion experienced" on a packet (the view has it) that it now transmits.
    #[inline(always)]
    fn marked(&mut self, _now: Instant, _packet: &PacketView, _link: LinkId) {}

    /// A link made a copy of a packet, which arrives at the far end at `arrival`: one more of its flow is under way.
    #[inline(always)]
    fn duplicated(&mut self, _arrival: Instant, _packet: &PacketView, _link: LinkId) {}

    /// A frame was transmitted.
    #[inline(always)]
    fn transmitted(&mut self, _transmission: &Transmission) {}

    /// A frame came to a link's queue, and its transmission was known at once: [`Observer::offered`] and
    /// [`Observer::transmitted`] in one, for who can do both together for less.
    #[inline(always)]
    fn passed(&mut self, transmission: &Transmission) {
        self.offered(transmission.offered, transmission.link, transmission.wire_bytes);
        self.transmitted(transmission);
    }
}

/// Watches nothing.
impl Observer for () {}

/// Methods that report an event to both observers of a pair.
macro_rules! to_both {
    ($($event:ident($($argument:ident: $Type:ty),+);)+) => {$(
        #[inline(always)]
        fn $event(&mut self, $($argument: $Type),+) {
            self.0.$event($($argument),+);
            self.1.$event($($argument),+);
        }
    )+};
}

/// Two observers side by side.
impl<A: Observer, B: Observer> Observer for (A, B) {
    to_both! {
        sent(now: Instant, packet: &PacketView);
        delivered(now: Instant, packet: &PacketView, sent: Instant);
        dropped(now: Instant, packet: &PacketView, link: Option<LinkId>, reason: DropReason);
        offered(now: Instant, link: LinkId, wire_bytes: u32);
        link_dropped(now: Instant, link: LinkId, wire_bytes: u32, reason: DropReason);
        marked(now: Instant, packet: &PacketView, link: LinkId);
        duplicated(arrival: Instant, packet: &PacketView, link: LinkId);
        transmitted(transmission: &Transmission);
    }
}
