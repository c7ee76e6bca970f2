//! Network address and port translation for IPv4: many inside hosts share one outside address (RFC 4787 for UDP,
//! RFC 5382 for TCP, RFC 7857; a carrier's translator, RFC 6888).
//!
//! Packets carry flow numbers, not addresses; a translator looks up their ends in the network's
//! [`Directory`](crate::Directory) and decides whether they pass. What the outside sees (its captures, and the next
//! translator's table) is the translator's address with the mapping's port. Translators may stand behind translators.
//!
//! From inside, a UDP packet and a TCP SYN make a mapping; another TCP segment without one is dropped, since whoever gets
//! it would not know it under its new port (RFC 6146 section 3.5.2.2 drops it too). From outside, what finds no mapping,
//! or is not let in, is dropped. If a UDP mapping ends and a new one has another port, the outside host answers to the new
//! one from then on.
//!
//! ICMP echo of real hosts has mappings of its own, whose ports are the identifiers (RFC 5508 REQ-1); an ICMP error passes as
//! what it quotes would, and neither makes nor prolongs a mapping (REQ-6).
//!
//! A real host's packet to the outside address itself is looked up when it comes to the router, also if it comes from inside
//! (hairpinning, RFC 4787 REQ-9, RFC 5382 REQ-8, RFC 5508 REQ-7): see `outside.rs`. Hosts of the model address each other by
//! node, so those inside reach each other directly.
//!
//! Not modelled: mappings that an administrator makes. IPv6 packets pass untouched.

mod outside;
mod session;
mod table;
mod translate;

use fullpipe_units::{Duration, NodeId};

pub use translate::NatCounters;
pub(crate) use translate::Translators;

/// Which outside port a new mapping gets (RFC 4787 section 4.2). A port that is taken is skipped upward, around the
/// pool; ports are never shared by two mappings of one protocol ("port overloading", which REQ-3 forbids).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortAllocation {
    /// The inside port, where the pool has it ("port preservation"); else the pool's first free port.
    Preserve,
    /// The port after the last that was given out.
    Sequential,
    /// A random one.
    Random,
}

/// Which packets from outside a mapping lets in (RFC 4787 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NatFilter {
    /// Any.
    EndpointIndependent,
    /// From addresses that the inside endpoint has sent to.
    AddressDependent,
    /// From addresses and ports that the inside endpoint has sent to.
    #[default]
    AddressAndPortDependent,
}

/// A router that translates addresses. Mappings are endpoint-independent (RFC 4787 REQ-1): an inside address and port
/// has one outside port, whomever it sends to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatSpecification {
    /// The router; the outside address is its own.
    pub router: NodeId,
    /// The hosts inside, those behind further translators inside included. All their ways to other nodes must lead by
    /// the router.
    pub inside: Vec<NodeId>,
    /// First port of the pool, which UDP and TCP each have to themselves.
    pub first_port: u16,
    /// Last port of the pool; none below the first.
    pub last_port: u16,
    /// Which port a mapping gets.
    pub allocation: PortAllocation,
    /// What is let in.
    pub filter: NatFilter,
    /// Most ports of one protocol that one inside host may hold (RFC 6888 REQ-4).
    pub ports_per_host: Option<u32>,
    /// How long a port rests after its mapping has ended (RFC 6888 REQ-8 asks 120 s of a carrier's translator).
    pub port_rest: Duration,
    /// Idle time after which a UDP mapping ends; RFC 4787 REQ-5 forbids less than 2 minutes and recommends 5.
    pub udp_timeout: Duration,
    /// Whether packets from outside keep a UDP mapping alive too (RFC 4787 REQ-6: those from inside always do).
    pub udp_inbound_refresh: bool,
    /// Idle time after which an established TCP connection is forgotten; RFC 5382 REQ-5: at least 2 h 4 min.
    pub tcp_established_timeout: Duration,
    /// The same while it is being opened, closed, or was reset; RFC 5382 REQ-5: at least 4 min.
    pub tcp_transitory_timeout: Duration,
}

impl NatSpecification {
    /// A translator with all ports from 1024, port preservation, address-and-port-dependent filtering, no limit per
    /// host, and the shortest time-outs that the RFCs allow.
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
