//! Packets: small plain values of one cache line. A model's payload is a length; bytes exist only where a real program
//! or a real stack is at one end, in a side table.

use crate::selection::{Frame, is_version_negotiation};
use bytes::Bytes;
use fullpipe_record::{PacketView, TcpView};
use fullpipe_units::{Codepoint, FlowId, Instant, NodeId};
use fullpipe_wire::tcp::flags;
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_wire::{IpVersion, QuicDatagram, QuicForm, QuicHeader, SegmentOptions, TcpHeader, protocol, rewrite};

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// A TCP segment.
    Tcp(TcpHeader),
    /// A UDP datagram with so many payload bytes.
    Udp {
        /// Payload bytes.
        payload_bytes: u32,
    },
    /// A UDP datagram of the QUIC model.
    Quic(QuicHeader),
    /// A packet of a real program; its side data [`Packet::payload`] are the bytes of the whole IP packet.
    Wire {
        /// Bytes above the transport's header, as far as it is understood.
        payload_bytes: u32,
        /// Number of the transport protocol.
        protocol: u8,
        /// Flags of a TCP segment, else 0.
        flags: u16,
        /// Whether no router may cut it.
        dont_fragment: bool,
        /// Where it entered the network.
        origin: NodeId,
        /// Of an ICMP error of a real host: the flow in whose direction it goes, against that of the packet that it quotes, and the number
        /// of that packet's protocol; if they are known.
        about: Option<(FlowId, u8)>,
        /// What is to become of it at its destination.
        purpose: Purpose,
    },
    /// A fragment of another packet, which stays in the arena until its fate is known.
    Fragment {
        /// The whole packet.
        whole: Handle,
        /// Payload bytes of the whole packet before this fragment's.
        offset_bytes: u32,
        /// Whether this is the last fragment.
        last: bool,
    },
    /// A frame of address resolution on a shared segment; hosts never get to see one.
    Arp {
        /// A request, broadcast; or a reply.
        request: bool,
    },
}

/// What is to become of a real program's packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// It goes to the node that it is addressed to.
    #[default]
    Arrive,
    /// Its hop limit ends at the router that is its destination here.
    Expire,
    /// The router that is its destination here has no route for it.
    NoRoute,
    /// A translator has written its last addresses into its bytes: nothing is left to translate.
    Settled,
}

/// Where a packet lies in the [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(pub(crate) u32);

/// Where a packet's side data (TCP options, payload bytes) lie; a number beyond all others means that it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Side(u32);

impl Side {
    /// No side data.
    pub const NONE: Side = Side(u32::MAX);

    /// Marks the side data of a packet of the QUIC model, which have a table of their own.
    const QUIC: u32 = 1 << 31;

    /// Whether there is none.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    /// Its place among the datagrams of the QUIC model, if it is one.
    fn of_quic(self) -> Option<usize> {
        (!self.is_none() && self.0 & Side::QUIC != 0).then_some((self.0 & !Side::QUIC) as usize)
    }
}

/// One IP packet, one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Packet {
    /// When its source handed it to the network; [`crate::Network::send`] stamps it.
    pub sent: Instant,
    /// What it carries.
    pub content: Content,
    /// The flow (interned five-tuple) it belongs to.
    pub flow: FlowId,
    /// Where it goes.
    pub destination: NodeId,
    /// Size at the IP layer.
    pub ip_bytes: u32,
    /// What a TCP segment carries beside its header ([`SegmentOptions`]).
    pub options: Side,
    /// Payload bytes.
    pub payload: Side,
    /// Its ECN bits.
    pub codepoint: Codepoint,
    /// Which IP it is.
    pub version: IpVersion,
    /// Whether bits of it were flipped on the way; its destination's checksums will tell.
    pub corrupted: bool,
}

const _: () = assert!(size_of::<Packet>() == 64, "a packet fills one cache line");

impl Packet {
    /// An IPv4 packet that is not ECN-capable, without side data.
    #[inline(always)]
    pub fn new(flow: FlowId, destination: NodeId, ip_bytes: u32, content: Content) -> Packet {
        Packet {
            sent: Instant::ZERO,
            content,
            flow,
            destination,
            ip_bytes,
            options: Side::NONE,
            payload: Side::NONE,
            codepoint: Codepoint::NotEct,
            version: IpVersion::V4,
            corrupted: false,
        }
    }

    /// The TCP header, to be filled in; of a packet that is none, it becomes one.
    #[inline(always)]
    pub fn tcp_header(&mut self) -> &mut TcpHeader {
        if !matches!(self.content, Content::Tcp(_)) {
            self.content = Content::Tcp(TcpHeader::default());
        }
        match &mut self.content {
            Content::Tcp(header) => header,
            _ => unreachable!("it has become one"),
        }
    }

    /// The sequence number of a TCP segment becomes larger.
    #[inline(always)]
    pub(crate) fn advance_sequence(&mut self, bytes: u32) {
        if let Content::Tcp(header) = &mut self.content {
            header.sequence = header.sequence.wrapping_add(bytes);
        }
    }

    /// Apart, so that [`Packet::view`] compares instead of jumping through a table: three instructions a packet, twice.
    #[cold]
    #[inline(never)]
    fn other_payload_bytes(&self) -> u32 {
        match &self.content {
            Content::Wire { payload_bytes, .. } => *payload_bytes,
            Content::Fragment { .. } => self.fragment_bytes(),
            Content::Quic(_) => self.quic_payload_bytes(),
            Content::Tcp(_) | Content::Udp { .. } | Content::Arp { .. } => 0,
        }
    }

    /// What a UDP datagram of this size carries.
    #[inline(always)]
    pub(crate) fn udp_payload_bytes(&self) -> u32 {
        self.ip_bytes - self.version.header_bytes() - UDP_HEADER_BYTES
    }

    /// The same of a datagram of the QUIC model; an acknowledgement alone counts as carrying nothing, like TCP's.
    #[inline(always)]
    fn quic_payload_bytes(&self) -> u32 {
        if self.has_payload() { self.udp_payload_bytes() } else { 0 }
    }

    /// The header of the QUIC model, to be filled in; of a packet that is none, it becomes one.
    #[inline(always)]
    pub fn quic_header(&mut self) -> &mut QuicHeader {
        if !matches!(self.content, Content::Quic(_)) {
            self.content = Content::Quic(QuicHeader::default());
        }
        match &mut self.content {
            Content::Quic(header) => header,
            _ => unreachable!("it has become one"),
        }
    }

    /// What observers see of it.
    #[inline(always)]
    pub fn view(&self) -> PacketView {
        let (payload_bytes, tcp) = match &self.content {
            Content::Tcp(header) => (
                u32::from(header.payload_bytes),
                Some(TcpView {
                    sequence: header.sequence,
                    sequence_end: header.sequence_end(),
                    acknowledgement: header.acknowledgement,
                    has_ack: header.has(flags::ACK),
                    syn: header.has(flags::SYN),
                }),
            ),
            Content::Udp { payload_bytes } => (*payload_bytes, None),
            Content::Quic(_) => (self.quic_payload_bytes(), None),
            _ => (self.other_payload_bytes(), None),
        };
        PacketView { flow: self.flow, ip_bytes: self.ip_bytes, payload_bytes, codepoint: self.codepoint, tcp }
    }

    /// Bytes of the whole packet's payload that a fragment carries.
    pub fn fragment_bytes(&self) -> u32 {
        self.ip_bytes - self.version.fragment_header_bytes()
    }

    /// Whether it carries transport payload (a loss droplist counts only such packets).
    #[inline(always)]
    pub fn has_payload(&self) -> bool {
        match &self.content {
            Content::Tcp(header) => header.payload_bytes > 0,
            Content::Quic(header) => header.form != QuicForm::Ack,
            Content::Udp { .. } | Content::Fragment { .. } => true,
            Content::Wire { payload_bytes, .. } => *payload_bytes > 0,
            Content::Arp { .. } => false,
        }
    }
}

/// A packet on its way, with what a router and a link need of it: they then leave the packet's own cache line alone, which
/// with 10 000 flows is a miss per hop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    pub(crate) handle: Handle,
    pub(crate) destination: NodeId,
    pub(crate) flow: FlowId,
    pub(crate) ip_bytes: u32,
}

/// Unused datagrams of the QUIC model, whose memory is kept.
const SPARE_DATAGRAMS: usize = 1024;

/// All packets that are somewhere in the network, and their side data. Slots are reused: after the first flights
/// nothing is allocated.
#[derive(Debug, Default)]
pub struct Arena {
    packets: Vec<Packet>,
    free: Vec<u32>,
    options: Vec<SegmentOptions>,
    free_options: Vec<u32>,
    payloads: Vec<Option<Bytes>>,
    free_payloads: Vec<u32>,
    datagrams: Vec<QuicDatagram>,
    free_datagrams: Vec<u32>,
}

impl Arena {
    /// Stores a packet.
    #[inline(always)]
    pub fn insert(&mut self, packet: Packet) -> Handle {
        if let Some(index) = self.free.pop() {
            self.packets[index as usize] = packet;
            Handle(index)
        } else {
            self.packets.push(packet);
            Handle(self.packets.len() as u32 - 1)
        }
    }

    /// Takes a free slot, whose packet is to be written. Writing a packet's fields where it will lie saves 30 instructions a packet
    /// over building it elsewhere and storing it.
    #[inline(always)]
    pub fn claim(&mut self) -> (Handle, &mut Packet) {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.grow(),
        };
        (Handle(index), &mut self.packets[index as usize])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> u32 {
        if self.packets.len() == self.packets.capacity() {
            // Half as many again: with 10 000 flows, room for twice as many is megabytes that nothing uses.
            self.packets.reserve_exact((self.packets.len() / 2).max(16));
        }
        self.packets.push(Packet::new(FlowId(0), NodeId(0), 0, Content::Arp { request: false }));
        self.packets.len() as u32 - 1
    }

    /// Gives back a slot that [`Arena::claim`] took, without a packet.
    #[inline(always)]
    pub fn give_back(&mut self, handle: Handle) {
        self.free.push(handle.0);
    }

    /// Takes a packet out; its side data stay.
    pub(crate) fn take(&mut self, handle: Handle) -> Packet {
        self.free.push(handle.0);
        self.packets[handle.0 as usize]
    }

    /// A packet as links pass it on.
    #[inline(always)]
    pub(crate) fn in_flight(&self, handle: Handle) -> InFlight {
        let packet = self.get(handle);
        InFlight { handle, destination: packet.destination, flow: packet.flow, ip_bytes: packet.ip_bytes }
    }

    /// The packet.
    #[inline(always)]
    pub fn get(&self, handle: Handle) -> &Packet {
        &self.packets[handle.0 as usize]
    }

    /// The packet, to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, handle: Handle) -> &mut Packet {
        &mut self.packets[handle.0 as usize]
    }

    /// Stores a second packet just like this one, with side data of its own.
    #[cold]
    pub fn duplicate(&mut self, handle: Handle) -> Handle {
        let mut packet = *self.get(handle);
        if let Some(options) = self.options(packet.options).copied() {
            packet.options = self.store_options(&options);
        }
        packet.payload = match self.datagram(packet.payload).cloned() {
            Some(datagram) => self.store_datagram(datagram).0,
            None => self.store_payload(self.payload(packet.payload).cloned()),
        };
        self.insert(packet)
    }

    /// Forgets a packet without side data.
    #[inline(always)]
    pub fn release_plain(&mut self, handle: Handle) {
        debug_assert!(self.get(handle).options.is_none() && self.get(handle).payload.is_none());
        self.free.push(handle.0);
    }

    /// Forgets a packet and its side data.
    #[inline(always)]
    pub fn release(&mut self, handle: Handle) {
        let packet = &self.packets[handle.0 as usize];
        if !packet.options.is_none() {
            self.free_options.push(packet.options.0);
        }
        if !packet.payload.is_none() {
            self.release_payload(packet.payload);
        }
        self.free.push(handle.0);
    }

    fn release_payload(&mut self, side: Side) {
        if let Some(index) = side.of_quic() {
            // What lies there gives its memory to the next one, but not that of all datagrams that ever were here at once.
            if self.free_datagrams.len() >= SPARE_DATAGRAMS {
                self.datagrams[index] = QuicDatagram::default();
            }
            self.free_datagrams.push(index as u32);
        } else {
            self.payloads[side.0 as usize] = None;
            self.free_payloads.push(side.0);
        }
    }

    /// Stores a datagram of the QUIC model. Also returns an unused one, for its memory.
    pub fn store_datagram(&mut self, datagram: QuicDatagram) -> (Side, QuicDatagram) {
        if let Some(index) = self.free_datagrams.pop() {
            let old = std::mem::replace(&mut self.datagrams[index as usize], datagram);
            (Side(index | Side::QUIC), old)
        } else {
            self.datagrams.push(datagram);
            (Side((self.datagrams.len() as u32 - 1) | Side::QUIC), QuicDatagram::default())
        }
    }

    /// A stored datagram of the QUIC model.
    pub fn datagram(&self, side: Side) -> Option<&QuicDatagram> {
        self.datagrams.get(side.of_quic()?)
    }

    /// Stores a segment's options.
    #[inline(always)]
    pub fn store_options(&mut self, options: &SegmentOptions) -> Side {
        if let Some(index) = self.free_options.pop() {
            self.options[index as usize] = *options;
            Side(index)
        } else {
            self.options.push(*options);
            Side(self.options.len() as u32 - 1)
        }
    }

    /// A segment's stored options.
    #[inline(always)]
    pub fn options(&self, side: Side) -> Option<&SegmentOptions> {
        if side.is_none() { None } else { self.options.get(side.0 as usize) }
    }

    /// Stores payload bytes.
    pub fn store_payload(&mut self, bytes: Option<Bytes>) -> Side {
        let Some(bytes) = bytes else { return Side::NONE };
        if let Some(index) = self.free_payloads.pop() {
            self.payloads[index as usize] = Some(bytes);
            Side(index)
        } else {
            self.payloads.push(Some(bytes));
            Side(self.payloads.len() as u32 - 1)
        }
    }

    /// A packet's payload becomes another.
    #[cold]
    pub(crate) fn replace_payload(&mut self, handle: Handle, bytes: Bytes) {
        let side = self.get(handle).payload;
        if !side.is_none() && side.of_quic().is_none() {
            self.payloads[side.0 as usize] = Some(bytes);
        }
    }

    /// What the models of a link may know of a packet.
    #[cold]
    pub(crate) fn frame(&self, handle: Handle, wire_bytes: u32) -> Frame {
        let packet = self.get(handle);
        let has_payload = packet.has_payload();
        let is_udp = match packet.content {
            Content::Udp { .. } | Content::Quic(_) => true,
            Content::Wire { protocol, .. } => protocol == protocol::UDP,
            Content::Fragment { whole, .. } => match self.get(whole).content {
                Content::Udp { .. } | Content::Quic(_) => true,
                Content::Wire { protocol, .. } => protocol == protocol::UDP,
                _ => false,
            },
            Content::Tcp(_) | Content::Arp { .. } => false,
        };
        let is_version_negotiation = matches!(packet.content, Content::Wire { .. })
            && self
                .payload(packet.payload)
                .and_then(|bytes| bytes.get(rewrite::udp_payload(bytes)?))
                .is_some_and(is_version_negotiation);
        Frame { wire_bytes, has_payload, is_udp, is_version_negotiation }
    }

    /// Stored payload bytes.
    #[inline(always)]
    pub fn payload(&self, side: Side) -> Option<&Bytes> {
        if side.is_none() { None } else { self.payloads.get(side.0 as usize)?.as_ref() }
    }

    /// Takes stored payload bytes out of a packet that has arrived. A clone would allocate, and would keep its receiver from
    /// using the bytes in place.
    #[inline]
    pub fn take_payload(&mut self, side: Side) -> Option<Bytes> {
        if side.is_none() { None } else { self.payloads.get_mut(side.0 as usize)?.take() }
    }

    /// Packets in the network now, in no particular order of time.
    pub fn live_packets(&self) -> impl Iterator<Item = &Packet> {
        let mut free = vec![false; self.packets.len()];
        for index in &self.free {
            free[*index as usize] = true;
        }
        self.packets.iter().zip(free).filter(|(_, free)| !free).map(|(packet, _)| packet)
    }
}
