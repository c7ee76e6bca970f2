//! Network address and port translation for IPv4: several inside hosts share one outside address (RFC 4787 for UDP, RFC
//! 5382 for TCP, RFC 7857, and RFC 6888 for a carrier-grade NAT).
//!
//! Packets carry flow numbers, not addresses. A NAT looks up the endpoints of a packet in the network's
//! [`ConversationTable`](crate::ConversationTable) and decides whether the packet passes. Outside the NAT (in captures,
//! and in the next NAT's table), the source is the NAT's address with the mapping's port. NATs can be nested.
//!
//! A UDP packet or a TCP SYN from inside creates a mapping. The NAT drops any other TCP segment without a mapping,
//! because its receiver would not recognize the new port (as in RFC 6146 section 3.5.2.2). The NAT drops a packet from
//! outside if there is no mapping or if the filter rejects the packet. If a UDP mapping expires and a new one has
//! another port, the outside host replies to the new port from then on.
//!
//! ICMP echo messages of real hosts have separate mappings, which use the identifier as the port (RFC 5508 REQ-1). An
//! ICMP error passes if the packet that it quotes would pass. It neither creates nor refreshes a mapping (REQ-6).
//!
//! If a real host sends a packet to the outside address itself, the NAT looks up the mapping when the packet arrives at
//! the router. This includes packets from inside (hairpinning, RFC 4787 REQ-9, RFC 5382 REQ-8, RFC 5508 REQ-7); see
//! `outside.rs`. Model hosts address each other by node, so inside hosts reach each other directly.
//!
//! Not modeled: mappings configured by an administrator. IPv6 packets pass unchanged.

mod outside;
mod session;
mod table;
mod translate;

use fullpipe_units::{Duration, NodeId};

pub use translate::NatCounters;
pub(crate) use translate::Translators;

/// How a new mapping gets its outside port (RFC 4787 section 4.2). If the port is in use, the NAT uses the next free
/// port above it and wraps around at the end of the pool. Two mappings of one protocol never share a port (REQ-3
/// forbids such "port overloading").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortAllocation {
    /// The inside port, if the pool contains it ("port preservation"); otherwise the pool's first free port.
    Preserve,
    /// The port after the last assigned one.
    Sequential,
    /// A random port.
    Random,
}

/// Which packets from outside a mapping accepts (RFC 4787 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatFilter {
    /// Packets from any endpoint.
    EndpointIndependent,
    /// Packets from addresses to which the inside endpoint has sent.
    AddressDependent,
    /// Packets from addresses and ports to which the inside endpoint has sent.
    #[default]
    AddressAndPortDependent,
}

/// A router that translates addresses. Mappings are endpoint-independent (RFC 4787 REQ-1): an inside address and port
/// use one outside port for all destinations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatSpecification {
    /// The router, whose address is the outside address.
    pub router: NodeId,
    /// The inside hosts, including those inside nested NATs. All their routes to other nodes must pass through
    /// the router.
    pub inside: Vec<NodeId>,
    /// First port of the pool; UDP and TCP each use the whole pool.
    pub first_port: u16,
    /// Last port of the pool. If it is lower than the first port, the pool is empty.
    pub last_port: u16,
    /// How a mapping gets its port.
    pub allocation: PortAllocation,
    /// Which packets from outside are accepted.
    pub filter: NatFilter,
    /// Maximum number of ports of one protocol per inside host (RFC 6888 REQ-4); `None` means no limit.
    pub ports_per_host: Option<u32>,
    /// Time for which a port is not reused after its mapping has expired (RFC 6888 REQ-8 requires 120 s for a
    /// carrier-grade NAT).
    pub port_rest: Duration,
    /// Idle time after which a UDP mapping expires; RFC 4787 REQ-5 requires at least 2 minutes and recommends 5.
    pub udp_timeout: Duration,
    /// Whether packets from outside also refresh a UDP mapping (RFC 4787 REQ-6: packets from inside always do).
    pub udp_inbound_refresh: bool,
    /// Idle time after which the session of an established TCP connection expires; RFC 5382 REQ-5 requires at least 2 h
    /// 4 min.
    pub tcp_established_timeout: Duration,
    /// Idle time after which the session of a TCP connection expires if the connection is being opened or closed, or
    /// was reset. RFC 5382 REQ-5 requires at least 4 min.
    pub tcp_transitory_timeout: Duration,
}

impl NatSpecification {
    /// Returns a NAT with all ports from 1024, port preservation and address-and-port-dependent filtering. It has no
    /// limit per host, reuses ports immediately, and has the shortest timeouts that RFC 4787 and RFC 5382 permit.
    pub fn new(router: NodeId, inside: Vec<NodeId>) -> Self {
        NatSpecification {
            router,
            inside,
            first_port: 1024,
            last_port: u16::MAX,
            allocation: PortAllocation::Preserve,
            filter: NatFilter::default(),
            ports_per_host: None,
            port_rest: Duration::ZERO,
            udp_timeout: Duration::from_secs(120),
            udp_inbound_refresh: false,
            tcp_established_timeout: Duration::from_secs(2 * 3600 + 4 * 60),
            tcp_transitory_timeout: Duration::from_secs(4 * 60),
        }
    }
}
