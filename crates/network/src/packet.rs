//! Packets, each of which fills one cache line, and the arena that contains them. The payload of a model's packet is
//! only a length. Payload bytes exist only if a real program or a real stack is at one end; they are stored in a side
//! table.

use crate::selection::{FrameInfo, is_version_negotiation};
use bytes::Bytes;
use fullpipe_record::{PacketView, TcpView};
use fullpipe_units::{EcnCodepoint, FlowId, Instant, NodeId};
use fullpipe_wire::tcp::flags;
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_wire::{IpVersion, QuicDatagram, QuicForm, QuicHeader, SegmentOptions, TcpHeader, protocol, rewrite};

/// The content of a packet.
#[derive(Clone, Copy, Debug)]
pub enum PacketContent {
    /// A TCP segment.
    Tcp(TcpHeader),
    /// A UDP datagram with a number of payload bytes.
    Udp {
        /// Payload size in bytes.
        payload_bytes: u32,
    },
    /// A UDP datagram of the QUIC model.
    Quic(QuicHeader),
    /// A packet of a real program; its side data [`Packet::payload`] contain the bytes of the whole IP packet.
    RawIp {
        /// Number of bytes after the transport header, or after the IP headers if the transport header is unknown.
        payload_bytes: u32,
        /// IP protocol number.
        protocol: u8,
        /// Flags of a TCP segment, otherwise 0.
        flags: u16,
        /// Whether routers must not fragment the packet.
        dont_fragment: bool,
        /// The node at which the packet entered the network.
        origin: NodeId,
        /// For an ICMP error of a real host: the flow in the opposite direction to the quoted packet, and the quoted
        /// packet's protocol number. `None` for other packets, or if the flow is unknown.
        about: Option<(FlowId, u8)>,
        /// What happens to the packet at its destination.
        purpose: PacketDisposition,
    },
    /// A fragment of another packet, which stays in the arena until the outcome of all its fragments is known.
    Fragment {
        /// The whole packet.
        whole: PacketHandle,
        /// Offset of this fragment in the payload of the whole packet, in bytes.
        offset_bytes: u32,
        /// Whether this is the last fragment.
        last: bool,
    },
    /// An ARP frame on a shared segment; host endpoints never receive it.
    Arp {
        /// Whether the frame is a request, which is broadcast; otherwise it is a reply.
        request: bool,
    },
}

/// What happens to a packet of a real program at its [`Packet::destination`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketDisposition {
    /// The packet is delivered to the node to which it is addressed.
    #[default]
    Deliver,
    /// The destination is the router at which the hop limit of the packet reaches zero.
    HopLimitExceeded,
    /// The destination is a router that has no route for the packet.
    NoRoute,
    /// A NAT has written the final addresses into the bytes of the packet; no further translation is needed.
    AlreadyTranslated,
}

/// The index of a packet in the [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketHandle(pub(crate) u32);

impl PacketHandle {
    /// Returns a handle with this number, for a queue discipline outside a network. Its user defines the number.
    ///
    /// ```
    /// assert_eq!(fullpipe_network::PacketHandle::from_number(7).number(), 7);
    /// ```
    pub const fn from_number(number: u32) -> Self {
        PacketHandle(number)
    }

    /// Returns the number of the handle.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// The index of a packet's side data: TCP options, payload bytes, or a datagram of the QUIC model.
/// [`SideDataHandle::NONE`] if there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideDataHandle(u32);

impl SideDataHandle {
    /// No side data.
    pub const NONE: SideDataHandle = SideDataHandle(u32::MAX);

    /// The bit that marks side data in the separate table for packets of the QUIC model.
    const QUIC: u32 = 1 << 31;

    /// Returns whether there are no side data.
    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.0 == u32::MAX
    }

    /// Returns the index among the datagrams of the QUIC model, if the side data are such a datagram.
    fn of_quic(self) -> Option<usize> {
        (!self.is_none() && self.0 & SideDataHandle::QUIC != 0).then_some((self.0 & !SideDataHandle::QUIC) as usize)
    }
}

/// An IP packet; it fills one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Packet {
    /// When the source passed the packet to the network; [`crate::Network::send`] sets this time.
    pub sent: Instant,
    /// The content.
    pub content: PacketContent,
    /// The flow (interned five-tuple) to which the packet belongs.
    pub flow: FlowId,
    /// The destination node.
    pub destination: NodeId,
    /// Size at the IP layer in bytes.
    pub ip_bytes: u32,
    /// Side data with the options of a TCP segment ([`SegmentOptions`]); [`SideDataHandle::NONE`] if there are none.
    pub options: SideDataHandle,
    /// Side data with the payload bytes or the datagram of the QUIC model; [`SideDataHandle::NONE`] if there are none.
    pub payload: SideDataHandle,
    /// The ECN codepoint.
    pub codepoint: EcnCodepoint,
    /// The IP version.
    pub version: IpVersion,
    /// Whether bits were flipped in transit; the checksum at the destination detects this.
    pub corrupted: bool,
}

const _: () = assert!(size_of::<Packet>() == 64, "a packet must fill one cache line");

impl Packet {
    /// Returns an IPv4 packet that is not ECN-capable, without side data.
    #[inline(always)]
    pub fn new(flow: FlowId, destination: NodeId, ip_bytes: u32, content: PacketContent) -> Packet {
        Packet {
            sent: Instant::ZERO,
            content,
            flow,
            destination,
            ip_bytes,
            options: SideDataHandle::NONE,
            payload: SideDataHandle::NONE,
            codepoint: EcnCodepoint::NotEct,
            version: IpVersion::V4,
            corrupted: false,
        }
    }

    /// Returns a mutable reference to the TCP header; a packet of another kind becomes a TCP segment.
    #[inline(always)]
    pub fn tcp_header(&mut self) -> &mut TcpHeader {
        if !matches!(self.content, PacketContent::Tcp(_)) {
            self.content = PacketContent::Tcp(TcpHeader::default());
        }
        match &mut self.content {
            PacketContent::Tcp(header) => header,
            _ => unreachable!("the packet is a TCP segment now"),
        }
    }

    /// Increases the sequence number of a TCP segment.
    #[inline(always)]
    pub(crate) fn advance_sequence(&mut self, bytes: u32) {
        if let PacketContent::Tcp(header) = &mut self.content {
            header.sequence = header.sequence.wrapping_add(bytes);
        }
    }

    /// Returns the payload size of the less frequent kinds of packets. Because this is a separate function,
    /// [`Packet::view`] needs no jump table, which saves three instructions per packet, twice.
    #[cold]
    #[inline(never)]
    fn other_payload_bytes(&self) -> u32 {
        match &self.content {
            PacketContent::RawIp { payload_bytes, .. } => *payload_bytes,
            PacketContent::Fragment { .. } => self.fragment_bytes(),
            PacketContent::Quic(_) => self.quic_payload_bytes(),
            PacketContent::Tcp(_) | PacketContent::Udp { .. } | PacketContent::Arp { .. } => 0,
        }
    }

    /// Returns the payload bytes of a UDP datagram of this size.
    #[inline(always)]
    pub(crate) fn udp_payload_bytes(&self) -> u32 {
        self.ip_bytes - self.version.header_bytes() - UDP_HEADER_BYTES
    }

    /// Returns the payload bytes of a datagram of the QUIC model; a datagram with only an acknowledgment counts as
    /// empty, as for TCP.
    #[inline(always)]
    fn quic_payload_bytes(&self) -> u32 {
        if self.has_payload() { self.udp_payload_bytes() } else { 0 }
    }

    /// Returns a mutable reference to the header of the QUIC model; a packet of another kind becomes a datagram of the
    /// QUIC model.
    #[inline(always)]
    pub fn quic_header(&mut self) -> &mut QuicHeader {
        if !matches!(self.content, PacketContent::Quic(_)) {
            self.content = PacketContent::Quic(QuicHeader::default());
        }
        match &mut self.content {
            PacketContent::Quic(header) => header,
            _ => unreachable!("the packet is a datagram of the QUIC model now"),
        }
    }

    /// Returns the fields of the packet that observers receive.
    #[inline(always)]
    pub fn view(&self) -> PacketView {
        let (payload_bytes, tcp) = match &self.content {
            PacketContent::Tcp(header) => (
                u32::from(header.payload_bytes),
                Some(TcpView {
                    sequence: header.sequence,
                    sequence_end: header.sequence_end(),
                    acknowledgement: header.acknowledgement,
                    has_ack: header.has_flag(flags::ACK),
                    syn: header.has_flag(flags::SYN),
                }),
            ),
            PacketContent::Udp { payload_bytes } => (*payload_bytes, None),
            PacketContent::Quic(_) => (self.quic_payload_bytes(), None),
            _ => (self.other_payload_bytes(), None),
        };
        PacketView { flow: self.flow, ip_bytes: self.ip_bytes, payload_bytes, codepoint: self.codepoint, tcp }
    }

    /// Returns the number of bytes of the whole packet's payload that a fragment carries.
    pub fn fragment_bytes(&self) -> u32 {
        self.ip_bytes - self.version.fragment_header_bytes()
    }

    /// Returns whether the packet carries transport payload.
    #[inline(always)]
    pub fn has_payload(&self) -> bool {
        match &self.content {
            PacketContent::Tcp(header) => header.payload_bytes > 0,
            PacketContent::Quic(header) => header.form != QuicForm::Ack,
            PacketContent::Udp { .. } | PacketContent::Fragment { .. } => true,
            PacketContent::RawIp { payload_bytes, .. } => *payload_bytes > 0,
            PacketContent::Arp { .. } => false,
        }
    }
}

/// A packet in flight, with the fields that routers and links need. They therefore do not read the packet's own cache
/// line, which with 10 000 flows would cause a cache miss per hop.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlightPacket {
    pub(crate) handle: PacketHandle,
    pub(crate) destination: NodeId,
    pub(crate) flow: FlowId,
    pub(crate) ip_bytes: u32,
}

/// Maximum number of unused datagrams of the QUIC model whose memory is kept.
const SPARE_DATAGRAMS: usize = 1024;

/// All packets in the network and their side data. Slots are reused, so that the arena allocates no memory after the
/// start of a run.
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
    /// Stores a packet and returns its handle.
    #[inline(always)]
    pub fn insert(&mut self, packet: Packet) -> PacketHandle {
        if let Some(index) = self.free.pop() {
            self.packets[index as usize] = packet;
            PacketHandle(index)
        } else {
            self.packets.push(packet);
            PacketHandle(self.packets.len() as u32 - 1)
        }
    }

    /// Claims a free slot, to which the caller writes a packet. Writing the fields in place saves 30 instructions per
    /// packet compared with building it elsewhere and storing it.
    #[inline(always)]
    pub fn claim(&mut self) -> (PacketHandle, &mut Packet) {
        let index = match self.free.pop() {
            Some(index) => index,
            None => self.grow(),
        };
        (PacketHandle(index), &mut self.packets[index as usize])
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> u32 {
        if self.packets.len() == self.packets.capacity() {
            // Grows by half: with 10 000 flows, doubling allocates megabytes that are never used.
            self.packets.reserve_exact((self.packets.len() / 2).max(16));
        }
        self.packets.push(Packet::new(FlowId(0), NodeId(0), 0, PacketContent::Arp { request: false }));
        self.packets.len() as u32 - 1
    }

    /// Returns an unused slot from [`Arena::claim`] to the arena.
    #[inline(always)]
    pub fn cancel_claim(&mut self, handle: PacketHandle) {
        self.free.push(handle.0);
    }

    /// Removes a packet but keeps its side data.
    pub(crate) fn take(&mut self, handle: PacketHandle) -> Packet {
        self.free.push(handle.0);
        self.packets[handle.0 as usize]
    }

    /// Returns the fields of a packet that links need.
    #[inline(always)]
    pub(crate) fn in_flight(&self, handle: PacketHandle) -> InFlightPacket {
        let packet = self.get(handle);
        InFlightPacket { handle, destination: packet.destination, flow: packet.flow, ip_bytes: packet.ip_bytes }
    }

    /// Returns the packet.
    #[inline(always)]
    pub fn get(&self, handle: PacketHandle) -> &Packet {
        &self.packets[handle.0 as usize]
    }

    /// Returns a mutable reference to the packet.
    #[inline(always)]
    pub fn get_mut(&mut self, handle: PacketHandle) -> &mut Packet {
        &mut self.packets[handle.0 as usize]
    }

    /// Stores a copy of a packet and of its side data; returns the handle of the copy.
    #[cold]
    pub fn duplicate(&mut self, handle: PacketHandle) -> PacketHandle {
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

    /// Removes a packet that has no side data.
    #[inline(always)]
    pub fn release_without_side_data(&mut self, handle: PacketHandle) {
        debug_assert!(self.get(handle).options.is_none() && self.get(handle).payload.is_none());
        self.free.push(handle.0);
    }

    /// Removes a packet and its side data.
    #[inline(always)]
    pub fn release(&mut self, handle: PacketHandle) {
        let packet = &self.packets[handle.0 as usize];
        if !packet.options.is_none() {
            self.free_options.push(packet.options.0);
        }
        if !packet.payload.is_none() {
            self.release_payload(packet.payload);
        }
        self.free.push(handle.0);
    }

    fn release_payload(&mut self, side: SideDataHandle) {
        if let Some(index) = side.of_quic() {
            // The next datagram reuses the memory of this one. Memory is kept only for a limited number of unused
            // datagrams.
            if self.free_datagrams.len() >= SPARE_DATAGRAMS {
                self.datagrams[index] = QuicDatagram::default();
            }
            self.free_datagrams.push(index as u32);
        } else {
            self.payloads[side.0 as usize] = None;
            self.free_payloads.push(side.0);
        }
    }

    /// Stores a datagram of the QUIC model and returns its handle. Also returns an unused datagram, whose memory can be
    /// reused.
    pub fn store_datagram(&mut self, datagram: QuicDatagram) -> (SideDataHandle, QuicDatagram) {
        if let Some(index) = self.free_datagrams.pop() {
            let old = std::mem::replace(&mut self.datagrams[index as usize], datagram);
            (SideDataHandle(index | SideDataHandle::QUIC), old)
        } else {
            self.datagrams.push(datagram);
            (SideDataHandle((self.datagrams.len() as u32 - 1) | SideDataHandle::QUIC), QuicDatagram::default())
        }
    }

    /// Returns a stored datagram of the QUIC model; `None` if the side data are not such a datagram.
    pub fn datagram(&self, side: SideDataHandle) -> Option<&QuicDatagram> {
        self.datagrams.get(side.of_quic()?)
    }

    /// Stores a segment's options and returns their handle.
    #[inline(always)]
    pub fn store_options(&mut self, options: &SegmentOptions) -> SideDataHandle {
        if let Some(index) = self.free_options.pop() {
            self.options[index as usize] = *options;
            SideDataHandle(index)
        } else {
            self.options.push(*options);
            SideDataHandle(self.options.len() as u32 - 1)
        }
    }

    /// Returns the stored options of a segment; `None` if there are none.
    #[inline(always)]
    pub fn options(&self, side: SideDataHandle) -> Option<&SegmentOptions> {
        if side.is_none() { None } else { self.options.get(side.0 as usize) }
    }

    /// Stores payload bytes and returns their handle; for `None`, returns [`SideDataHandle::NONE`].
    pub fn store_payload(&mut self, bytes: Option<Bytes>) -> SideDataHandle {
        let Some(bytes) = bytes else { return SideDataHandle::NONE };
        if let Some(index) = self.free_payloads.pop() {
            self.payloads[index as usize] = Some(bytes);
            SideDataHandle(index)
        } else {
            self.payloads.push(Some(bytes));
            SideDataHandle(self.payloads.len() as u32 - 1)
        }
    }

    /// Replaces the payload of a packet.
    #[cold]
    pub(crate) fn replace_payload(&mut self, handle: PacketHandle, bytes: Bytes) {
        let side = self.get(handle).payload;
        if !side.is_none() && side.of_quic().is_none() {
            self.payloads[side.0 as usize] = Some(bytes);
        }
    }

    /// Returns the properties of a packet that the models of a link use.
    #[cold]
    pub(crate) fn frame(&self, handle: PacketHandle, wire_bytes: u32) -> FrameInfo {
        let packet = self.get(handle);
        let has_payload = packet.has_payload();
        let is_udp = match packet.content {
            PacketContent::Udp { .. } | PacketContent::Quic(_) => true,
            PacketContent::RawIp { protocol, .. } => protocol == protocol::UDP,
            PacketContent::Fragment { whole, .. } => match self.get(whole).content {
                PacketContent::Udp { .. } | PacketContent::Quic(_) => true,
                PacketContent::RawIp { protocol, .. } => protocol == protocol::UDP,
                _ => false,
            },
            PacketContent::Tcp(_) | PacketContent::Arp { .. } => false,
        };
        let is_version_negotiation = matches!(packet.content, PacketContent::RawIp { .. })
            && self
                .payload(packet.payload)
                .and_then(|bytes| bytes.get(rewrite::udp_payload_range(bytes)?))
                .is_some_and(is_version_negotiation);
        FrameInfo { wire_bytes, has_payload, is_udp, is_version_negotiation }
    }

    /// Returns stored payload bytes; `None` if there are none.
    #[inline(always)]
    pub fn payload(&self, side: SideDataHandle) -> Option<&Bytes> {
        if side.is_none() { None } else { self.payloads.get(side.0 as usize)?.as_ref() }
    }

    /// Removes and returns the stored payload bytes of a packet that has arrived; `None` if there are none. A clone
    /// would prevent the receiver from using the bytes in place.
    #[inline]
    pub fn take_payload(&mut self, side: SideDataHandle) -> Option<Bytes> {
        if side.is_none() { None } else { self.payloads.get_mut(side.0 as usize)?.take() }
    }

    /// Returns the packets that are in the network now, in no particular order.
    pub fn live_packets(&self) -> impl Iterator<Item = &Packet> {
        let mut free = vec![false; self.packets.len()];
        for index in &self.free {
            free[*index as usize] = true;
        }
        self.packets.iter().zip(free).filter(|(_, free)| !free).map(|(packet, _)| packet)
    }
}
