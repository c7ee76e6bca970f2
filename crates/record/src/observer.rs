//! The events that the network reports during a run.
//!
//! The time of an event can be later than the simulation's clock. The difference is at most a packet's transit time
//! through a chain of links that is computed ahead. The times of the events of one link, and of the arrivals of one
//! flow, are in order.

use fullpipe_units::{EcnCodepoint, FlowId, Instant, LinkId};

/// The transport protocol of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// UDP.
    #[default]
    Udp,
    /// TCP.
    Tcp,
}

/// The reason why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// A queue discipline dropped the packet although the queue was not full (active queue management).
    QueueDiscipline,
    /// The link's loss model removed the packet.
    Loss,
    /// The packet exceeded the token bucket of the link's policer.
    Policer,
    /// Bits were flipped, and the link's frame check sequence or the destination's checksum detected the error.
    Corruption,
    /// The queue for packets that wait for address resolution was full, or the resolution failed.
    AddressResolution,
    /// The shared medium was busy at every attempt to transmit the frame.
    Collision,
    /// All transmissions of the packet on the radio channel failed.
    Radio,
    /// The packet exceeded the link's MTU, and its fragmentation was not permitted.
    PacketTooBig,
    /// Reassembly failed because a fragment was missing.
    Reassembly,
    /// A NAT had no mapping for the packet, and could not or was not permitted to create one.
    Nat,
    /// There was no route to the destination, or no endpoint at the destination.
    Unreachable,
}

impl DropReason {
    /// Returns whether a link drops a packet for this reason only after its transmission. Such a packet is also
    /// reported as transmitted.
    pub fn is_after_transmission(self) -> bool {
        matches!(self, DropReason::Loss | DropReason::Policer | DropReason::Corruption)
    }
}

/// The TCP header fields for observers, with sequence numbers as on the wire (modulo 2^32).
#[derive(Clone, Copy, Debug, Default)]
pub struct TcpView {
    /// Sequence number of the first byte of the segment.
    pub sequence: u32,
    /// Sequence number after the last byte of the segment; SYN and FIN each count as one byte.
    pub sequence_end: u32,
    /// Acknowledgment number; valid if `has_ack` is true.
    pub acknowledgement: u32,
    /// Whether the ACK flag is set.
    pub has_ack: bool,
    /// Whether the SYN flag is set.
    pub syn: bool,
}

/// The fields of a packet that observers receive.
#[derive(Clone, Copy, Debug)]
pub struct PacketView {
    /// The flow of the packet.
    pub flow: FlowId,
    /// Size at the IP layer in bytes.
    pub ip_bytes: u32,
    /// Size of the transport payload in bytes.
    pub payload_bytes: u32,
    /// ECN codepoint of the IP header.
    pub codepoint: EcnCodepoint,
    /// TCP fields; `None` if the packet is not a TCP packet.
    pub tcp: Option<TcpView>,
}

impl PacketView {
    /// Increases the sequence numbers of a TCP segment by `bytes`.
    #[inline(always)]
    pub fn advance_sequence(&mut self, bytes: u32) {
        if let Some(tcp) = &mut self.tcp {
            tcp.sequence = tcp.sequence.wrapping_add(bytes);
            tcp.sequence_end = tcp.sequence_end.wrapping_add(bytes);
        }
    }
}

/// The transmission of one packet over one link.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// The link.
    pub link: LinkId,
    /// The flow of the packet.
    pub flow: FlowId,
    /// Size on the wire in bytes, including framing.
    pub wire_bytes: u32,
    /// Time at which the packet arrived at the link's queue.
    pub offered: Instant,
    /// Time at which the transmission of the first bit started.
    pub start: Instant,
    /// Time at which the transmission of the last bit ended.
    pub finish: Instant,
    /// Time at which the last bit arrived at the far end of the link.
    pub arrival: Instant,
}

/// An exchange of frames on a medium that its nodes share by contention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumExchange {
    /// The link that identifies the medium: its downlink.
    pub medium: LinkId,
    /// Beginning of the first frame.
    pub start: Instant,
    /// End of the last frame, such as the acknowledgment.
    pub end: Instant,
    /// Whether the receiver decoded at least one frame with data.
    pub received: bool,
}

/// Receives the events of a run. By default, the methods ignore all events.
pub trait Observer {
    /// Called before packets of a flow are reported, so that an observer can load the state of the flow into the cache.
    #[inline(always)]
    fn prefetch_flow(&self, _flow: FlowId) {}

    /// Called before frames of a link are reported, so that an observer can load the state of the link into the cache.
    #[inline(always)]
    fn prefetch_link(&self, _link: LinkId) {}

    /// Called when the source has passed a packet to the network.
    #[inline(always)]
    fn on_sent(&mut self, _now: Instant, _packet: &PacketView) {}

    /// Called when the source has passed a burst of `packets` TCP segments (at least one) to the network. The sequence
    /// number of `first` increases by `step_bytes` for each further segment. Returns whether the observer has processed
    /// the whole burst, with the same effect as [`Observer::on_sent`] for each segment. If it returns false,
    /// [`Observer::on_sent`] is called for each segment before the segment arrives at its first link.
    #[inline(always)]
    fn on_sent_burst(&mut self, _now: Instant, _first: &PacketView, _packets: u32, _step_bytes: u32) -> bool {
        false
    }

    /// Called when a whole packet has arrived at its destination host; `sent` is the time at which the source passed it
    /// to the network.
    #[inline(always)]
    fn on_delivered(&mut self, _now: Instant, _packet: &PacketView, _sent: Instant) {}

    /// Called when a packet has been dropped. `link` is the link on which it was dropped; `None` if it was dropped at a
    /// node. If a fragment is dropped, its whole packet is reported.
    #[inline(always)]
    fn on_dropped(&mut self, _now: Instant, _packet: &PacketView, _link: Option<LinkId>, _reason: DropReason) {}

    /// Called when a frame has arrived at a link's queue; it will be transmitted or dropped. For one link, the `now` of
    /// successive calls of this method, [`Observer::on_link_dropped`] and [`Observer::on_marked`] never decreases.
    #[inline(always)]
    fn on_offered(&mut self, _now: Instant, _link: LinkId, _wire_bytes: u32) {}

    /// Called when a frame has been dropped before its transmission: at a link's queue, on a busy medium, or on a radio
    /// channel. A frame that a loss model removes has been transmitted, and only [`Observer::on_dropped`] reports it.
    #[inline(always)]
    fn on_link_dropped(&mut self, _now: Instant, _link: LinkId, _wire_bytes: u32, _reason: DropReason) {}

    /// Called when a link transmits a packet on which its queue discipline has set CE ("congestion experienced");
    /// `packet` contains this codepoint.
    #[inline(always)]
    fn on_marked(&mut self, _now: Instant, _packet: &PacketView, _link: LinkId) {}

    /// Called when a link has made a copy of a packet. The copy arrives at the far end at `arrival`. One more packet of
    /// the flow is then in flight.
    #[inline(always)]
    fn on_duplicated(&mut self, _arrival: Instant, _packet: &PacketView, _link: LinkId) {}

    /// Called when the times of a frame's transmission are known.
    #[inline(always)]
    fn on_transmitted(&mut self, _transmission: &Transmission) {}

    /// Called when a medium has started an exchange and knows its outcome. For one medium, `start` never decreases.
    #[inline(always)]
    fn on_exchange(&mut self, _exchange: &MediumExchange) {}

    /// Called when a frame has arrived at a link's queue and the times of its transmission are already known. By
    /// default, calls [`Observer::on_offered`] and [`Observer::on_transmitted`]. Observers that can process both in one
    /// step at lower cost override it.
    #[inline(always)]
    fn on_passed(&mut self, transmission: &Transmission) {
        self.on_offered(transmission.offered, transmission.link, transmission.wire_bytes);
        self.on_transmitted(transmission);
    }
}

/// An observer that ignores all events.
impl Observer for () {}

/// Defines methods that report an event to both observers of a pair.
macro_rules! to_both {
    ($($event:ident($($argument:ident: $Type:ty),+);)+) => {$(
        #[inline(always)]
        fn $event(&mut self, $($argument: $Type),+) {
            self.0.$event($($argument),+);
            self.1.$event($($argument),+);
        }
    )+};
}

/// A pair of observers; both receive every event.
impl<A: Observer, B: Observer> Observer for (A, B) {
    to_both! {
        on_sent(now: Instant, packet: &PacketView);
        on_delivered(now: Instant, packet: &PacketView, sent: Instant);
        on_dropped(now: Instant, packet: &PacketView, link: Option<LinkId>, reason: DropReason);
        on_offered(now: Instant, link: LinkId, wire_bytes: u32);
        on_link_dropped(now: Instant, link: LinkId, wire_bytes: u32, reason: DropReason);
        on_marked(now: Instant, packet: &PacketView, link: LinkId);
        on_duplicated(arrival: Instant, packet: &PacketView, link: LinkId);
        on_transmitted(transmission: &Transmission);
        on_exchange(exchange: &MediumExchange);
    }
}
