//! Configuration of interfaces, addresses and routes through rtnetlink(7), with the encoding of the six requests that
//! hosts need.
//!
//! A request consists of a header (netlink(7)), a fixed part that depends on its type, and attributes (type, length,
//! value). All parts are in the byte order of the machine and padded to four bytes. The kernel acknowledges each
//! request. A [`Netlink`] belongs to the network namespace in which it was opened, even if its thread enters another
//! one.

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, connect, recv, send, socket_with,
};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// A MAC address.
pub type MacAddress = [u8; 6];

/// A netlink connection to the kernel for one network namespace.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

/// One end of a veth pair.
#[derive(Clone, Debug)]
pub(crate) struct VethEnd<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: MacAddress,
    pub(crate) mtu_bytes: u32,
}

const HEADER_BYTES: usize = 16;
/// Size of the response buffer, which exceeds any response to a request of this file; a response includes the request.
const ANSWER_BYTES: usize = 8192;

/// The interface kind `veth`, and the attribute type of the other end of the pair (linux/veth.h).
const VETH: &[u8] = b"veth";
const VETH_INFO_PEER: u16 = 1;
/// Route flag: the gateway is on the link, regardless of the prefixes (linux/rtnetlink.h).
const RTNH_F_ONLINK: u32 = 4;

/// A request without its header, which contains the sequence number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    message_type: u16,
    flags: u16,
    body: Vec<u8>,
}

impl Request {
    fn new(message_type: u16, flags: i32, body: Vec<u8>) -> Request {
        Request { message_type, flags: (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16, body }
    }

    /// Returns a request that creates an object and fails if the object exists.
    fn creating(message_type: u16, body: Vec<u8>) -> Request {
        Request::new(message_type, libc::NLM_F_CREATE | libc::NLM_F_EXCL, body)
    }

    fn bytes(&self, sequence: u32) -> Vec<u8> {
        let length = (HEADER_BYTES + self.body.len()) as u32;
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(self.message_type.to_ne_bytes());
        bytes.extend(self.flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        // The port ID 0 identifies the kernel.
        bytes.extend([0; 4]);
        bytes.extend(&self.body);
        bytes
    }
}

/// Appends an attribute whose value `fill` writes.
fn nest(out: &mut Vec<u8>, kind: u16, fill: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    out.extend([0; 2]);
    out.extend(kind.to_ne_bytes());
    fill(out);
    let length = (out.len() - begin) as u16;
    out[begin..begin + 2].copy_from_slice(&length.to_ne_bytes());
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Appends an attribute with this value.
fn attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    nest(out, kind, |out| out.extend(value));
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn family(address: IpAddr) -> u8 {
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

/// Builds a `struct ifinfomsg`.
fn link(interface: u32, flags: u32, changed: u32) -> Vec<u8> {
    let mut body = vec![libc::AF_UNSPEC as u8, 0, 0, 0];
    [interface, flags, changed].iter().for_each(|value| body.extend(value.to_ne_bytes()));
    body
}

/// Appends the attributes common to both ends of a pair.
fn veth_end(out: &mut Vec<u8>, end: &VethEnd<'_>) {
    let name = [end.name.as_bytes(), &[0]].concat();
    attribute(out, libc::IFLA_IFNAME, &name);
    attribute(out, libc::IFLA_ADDRESS, &end.mac);
    attribute(out, libc::IFLA_MTU, &end.mtu_bytes.to_ne_bytes());
}

fn new_veth(here: &VethEnd<'_>, there: &VethEnd<'_>, namespace: i32) -> Request {
    let mut body = link(0, 0, 0);
    veth_end(&mut body, here);
    nest(&mut body, libc::IFLA_LINKINFO, |out| {
        attribute(out, libc::IFLA_INFO_KIND, &[VETH, &[0]].concat());
        nest(out, libc::IFLA_INFO_DATA, |out| {
            nest(out, VETH_INFO_PEER, |out| {
                out.extend(link(0, 0, 0));
                veth_end(out, there);
                attribute(out, libc::IFLA_NET_NS_FD, &namespace.to_ne_bytes());
            });
        });
    });
    Request::creating(libc::RTM_NEWLINK, body)
}

fn set_up(interface: u32) -> Request {
    let up = libc::IFF_UP as u32;
    Request::new(libc::RTM_SETLINK, 0, link(interface, up, up))
}

fn set_mtu(interface: u32, mtu_bytes: u32) -> Request {
    let mut body = link(interface, 0, 0);
    attribute(&mut body, libc::IFLA_MTU, &mtu_bytes.to_ne_bytes());
    Request::new(libc::RTM_SETLINK, 0, body)
}

/// Builds a `struct ifaddrmsg` with the address attributes.
fn new_address(interface: u32, address: IpAddr, prefix: u8) -> Request {
    let flags = if address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
    let mut body = vec![family(address), prefix, flags, libc::RT_SCOPE_UNIVERSE];
    body.extend(interface.to_ne_bytes());
    attribute(&mut body, libc::IFA_LOCAL, &octets(address));
    attribute(&mut body, libc::IFA_ADDRESS, &octets(address));
    Request::creating(libc::RTM_NEWADDR, body)
}

/// Builds a `struct rtmsg` for the default route (prefix length 0), with the interface and the gateway.
fn new_default_route(interface: u32, gateway: IpAddr) -> Request {
    let mut body = vec![family(gateway), 0, 0, 0];
    body.extend([libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST]);
    body.extend(RTNH_F_ONLINK.to_ne_bytes());
    attribute(&mut body, libc::RTA_OIF, &interface.to_ne_bytes());
    attribute(&mut body, libc::RTA_GATEWAY, &octets(gateway));
    Request::creating(libc::RTM_NEWROUTE, body)
}

/// Builds a `struct ndmsg` with the IP address and the MAC address of the neighbor.
fn new_neighbour(interface: u32, address: IpAddr, mac: MacAddress) -> Request {
    let mut body = vec![family(address), 0, 0, 0];
    body.extend(interface.to_ne_bytes());
    body.extend(libc::NUD_PERMANENT.to_ne_bytes());
    body.extend([0; 2]);
    attribute(&mut body, libc::NDA_DST, &octets(address));
    attribute(&mut body, libc::NDA_LLADDR, &mac);
    Request::creating(libc::RTM_NEWNEIGH, body)
}

/// Returns the four bytes at an offset of a response.
fn number(answer: &[u8], offset: usize) -> Option<[u8; 4]> {
    answer.get(offset..)?.first_chunk().copied()
}

/// Returns the result of the request with this sequence number; `None` if the response belongs to another request.
fn confirmed(answer: &[u8], sequence: u32) -> Option<io::Result<()>> {
    let unclear = || io::Error::other(format!("malformed netlink response of the kernel: {answer:02x?}"));
    let Some(answered) = number(answer, 8) else { return Some(Err(unclear())) };
    if u32::from_ne_bytes(answered) != sequence {
        return None;
    }
    let is_confirmation = answer[4..6] == (libc::NLMSG_ERROR as u16).to_ne_bytes();
    Some(match number(answer, HEADER_BYTES).filter(|_| is_confirmation).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(negative) => Err(io::Error::from_raw_os_error(negative.wrapping_neg())),
        None => Err(unclear()),
    })
}

impl Netlink {
    /// Opens a connection to the current network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        // Protocol 0 is NETLINK_ROUTE.
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        // The kernel selects the port ID of a socket that is bound to port ID 0.
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        connect(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    fn request(&mut self, request: &Request) -> io::Result<()> {
        self.sequence += 1;
        send(&self.socket, &request.bytes(self.sequence), SendFlags::empty())?;
        let mut answer = [0; ANSWER_BYTES];
        loop {
            let (length, _) = recv(&self.socket, &mut answer, RecvFlags::empty())?;
            if let Some(result) = confirmed(&answer[..length], self.sequence) {
                return result;
            }
        }
    }

    /// Creates a veth pair, with one end in this namespace and the other in `namespace`.
    pub(crate) fn add_veth(
        &mut self,
        here: &VethEnd<'_>,
        there: &VethEnd<'_>,
        namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        self.request(&new_veth(here, there, namespace.as_raw_fd()))
    }

    /// Sets an interface up.
    pub(crate) fn set_up(&mut self, interface: u32) -> io::Result<()> {
        self.request(&set_up(interface))
    }

    /// Sets the MTU of an interface.
    pub(crate) fn set_mtu(&mut self, interface: u32, mtu_bytes: u32) -> io::Result<()> {
        self.request(&set_mtu(interface, mtu_bytes))
    }

    /// Adds an address to an interface. An IPv6 address is usable immediately, without duplicate address detection.
    pub(crate) fn add_address(&mut self, interface: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        self.request(&new_address(interface, address, prefix))
    }

    /// Adds a default route through a gateway on this interface, regardless of the prefix of the interface's address.
    pub(crate) fn add_default_route(&mut self, interface: u32, gateway: IpAddr) -> io::Result<()> {
        self.request(&new_default_route(interface, gateway))
    }

    /// Adds a permanent neighbor entry.
    pub(crate) fn add_neighbour(&mut self, interface: u32, address: IpAddr, mac: MacAddress) -> io::Result<()> {
        self.request(&new_neighbour(interface, address, mac))
    }
}

/// Returns the index of an interface in the current network namespace.
pub(crate) fn index_of(name: &str) -> io::Result<u32> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    Ok(rustix::net::netdevice::name_to_index(&socket, name)?)
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    fn hexadecimal(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The expected bytes are those of the crate netlink-packet-route 0.34.0.
    #[test]
    fn requests_equal_those_of_netlink_packet_route() {
        let here = VethEnd { name: "fp-a", mac: [2, 0, 0, 0, 0, 1], mtu_bytes: 1500 };
        let there = VethEnd { name: "eth0", mac: [2, 1, 0, 0, 0, 1], mtu_bytes: 9000 };
        let v4 = IpAddr::from([10, 0, 1, 2]);
        let v6 = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 1, 2]);
        let requests = [
            new_veth(&here, &there, 0),
            new_veth(&VethEnd { name: "abcdefghijk", ..here.clone() }, &there, 0),
            set_up(7),
            set_mtu(7, 1280),
            new_address(7, v4, 32),
            new_address(7, v6, 128),
            new_default_route(7, v4),
            new_default_route(7, v6),
            new_neighbour(7, v4, here.mac),
            new_neighbour(7, v6, here.mac),
        ];
        let expected = [
            "90000000100005060100000000000000000000000000000000000000000000000900030066702d61000000000a000100\
             020000000001000008000400dc05000050001200090001007665746800000000400002003c0001000000000000000000\
             00000000000000000900030065746830000000000a0001000201000000010000080004002823000008001c0000000000",
            "9400000010000506020000000000000000000000000000000000000000000000100003006162636465666768696a6b00\
             0a000100020000000001000008000400dc05000050001200090001007665746800000000400002003c00010000000000\
             0000000000000000000000000900030065746830000000000a0001000201000000010000080004002823000008001c00\
             00000000",
            "2000000013000500030000000000000000000000070000000100000001000000",
            "28000000130005000400000000000000000000000700000000000000000000000800040000050000",
            "280000001400050605000000000000000220000007000000080002000a000102080001000a000102",
            "400000001400050606000000000000000a8002000700000014000200fd00000000000000000000000001000214000100\
             fd000000000000000000000000010002",
            "2c00000018000506070000000000000002000000fe040001040000000800040007000000080005000a000102",
            "380000001800050608000000000000000a000000fe04000104000000080004000700000014000500fd00000000000000\
             0000000000010002",
            "300000001c0005060900000000000000020000000700000080000000080001000a0001020a0002000200000000010000",
            "3c0000001c0005060a000000000000000a000000070000008000000014000100fd000000000000000000000000010002\
             0a0002000200000000010000",
        ];
        for (number, (request, expected)) in requests.iter().zip(expected).enumerate() {
            assert_eq!(hexadecimal(&request.bytes(number as u32 + 1)), expected, "request {}", number + 1);
        }
    }

    #[test]
    fn response_acknowledges_its_own_request_or_has_its_error() {
        let answer = |kind: u8, sequence: u8, code: i32| {
            let mut bytes = vec![36, 0, 0, 0, kind, 0, 0, 0, sequence, 0, 0, 0, 0, 0, 0, 0];
            bytes.extend(code.to_ne_bytes());
            bytes.resize(36, 0);
            bytes
        };
        assert!(confirmed(&answer(2, 5, 0), 5).is_some_and(|result| result.is_ok()));
        assert!(confirmed(&answer(2, 4, 0), 5).is_none());
        let exists = confirmed(&answer(2, 5, -libc::EEXIST), 5).and_then(Result::err);
        assert_eq!(exists.map(|error| error.kind()), Some(io::ErrorKind::AlreadyExists));
        for unclear in [answer(16, 5, 0), answer(2, 5, 0)[..18].to_vec(), Vec::new()] {
            let error = confirmed(&unclear, 5).and_then(Result::err).expect("the response is not an acknowledgment");
            assert!(error.to_string().contains("malformed"), "{error}");
        }
    }
}
