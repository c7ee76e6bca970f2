//! Interfaces, addresses and routes by rtnetlink(7), spoken through the `netlink-packet-route` library.
//!
//! A [`Netlink`] speaks to the network namespace in which it was opened, wherever its user goes later.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope};
use netlink_packet_route::link::{InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

/// An Ethernet address.
pub type Mac = [u8; 6];

/// A conversation with the kernel about one network namespace.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

fn family(address: IpAddr) -> AddressFamily {
    if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

/// One end of a veth pair.
#[derive(Clone, Debug)]
pub(crate) struct VethEnd<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: Mac,
    pub(crate) mtu_bytes: u32,
}

impl VethEnd<'_> {
    fn attributes(&self) -> Vec<LinkAttribute> {
        vec![
            LinkAttribute::IfName(self.name.to_owned()),
            LinkAttribute::Address(self.mac.to_vec()),
            LinkAttribute::Mtu(self.mtu_bytes),
        ]
    }
}

impl Netlink {
    /// Opens one to the current network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    fn request(&mut self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        header.sequence_number = self.sequence;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::from(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let unclear = |what: String| io::Error::other(format!("the kernel's answer over netlink is unclear: {what}"));
        loop {
            let (answer, _) = self.socket.recv_from_full()?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
                .map_err(|error| unclear(error.to_string()))?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::Error(error) => match error.code {
                    None => Ok(()),
                    Some(_) => Err(error.to_io()),
                },
                other => Err(unclear(format!("{other:?}"))),
            };
        }
    }

    /// Creates a pair of connected interfaces: one end here, the other in another namespace.
    pub(crate) fn add_veth(
        &mut self,
        here: &VethEnd<'_>,
        there: &VethEnd<'_>,
        namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut peer = LinkMessage::default();
        peer.attributes = there.attributes();
        peer.attributes.push(LinkAttribute::NetNsFd(namespace.as_raw_fd()));
        let mut message = LinkMessage::default();
        message.attributes = here.attributes();
        message.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Switches an interface on.
    pub(crate) fn set_up(&mut self, interface: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Sets an interface's largest packet.
    pub(crate) fn set_mtu(&mut self, interface: u32, mtu_bytes: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = interface;
        message.attributes = vec![LinkAttribute::Mtu(mtu_bytes)];
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives an interface an address; one of IPv6 can be used at once, without detection of duplicates.
    pub(crate) fn add_address(&mut self, interface: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.scope = AddressScope::Universe;
        message.header.index = interface;
        if address.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
        }
        message.attributes = vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends everything without a route of its own to a gateway on this interface, whatever the interface's own prefix.
    pub(crate) fn add_default_route(&mut self, interface: u32, gateway: IpAddr) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(gateway);
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.header.flags = RouteFlags::Onlink;
        message.attributes = vec![RouteAttribute::Oif(interface), RouteAttribute::Gateway(route_address(gateway))];
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Tells who has an address, for good.
    pub(crate) fn add_neighbour(&mut self, interface: u32, address: IpAddr, mac: Mac) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = interface;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(match address {
                IpAddr::V4(address) => NeighbourAddress::Inet(address),
                IpAddr::V6(address) => NeighbourAddress::Inet6(address),
            }),
            NeighbourAttribute::LinkLayerAddress(mac.to_vec()),
        ];
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_EXCL)
    }
}

/// The number of an interface of the current network namespace.
pub(crate) fn index_of(name: &str) -> io::Result<u32> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(&socket, name)?)
}
