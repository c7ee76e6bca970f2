//! Addresses and ports, which captures and NATs use; routing uses node numbers instead.
//!
//! The n-th node has the IPv4 address 10.0.0.0 + n + 1 (RFC 1918) and the IPv6 address fd66:756c:6c70:: + n + 1 (a
//! unique local address, RFC 4193; the 40 bits of the global identifier are "fullp" in ASCII). The initiator of a
//! conversation uses the next port of its host, starting at 49152 (the dynamic range, RFC 6335 section 6) and
//! continuing at 1024 after 65535. Each host has one counter (RFC 6056 section 3.3.1). A host reuses a port only after
//! 64 512 conversations.

use fullpipe_units::{FlowId, NodeId};
use fullpipe_wire::IpVersion;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The first three groups of all IPv6 addresses.
const PREFIX: [u16; 3] = [0xfd66, 0x756c, 0x6c70];
const FIRST_V4: u32 = 10 << 24;
const DYNAMIC_PORT: u32 = 49_152;
const USER_PORT: u32 = 1024;

/// Returns the IPv4 address of a node; with more than 16 777 214 nodes, addresses repeat.
pub fn ipv4(node: NodeId) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_V4 | (node.0.wrapping_add(1) & 0x00ff_ffff))
}

/// Returns the IPv6 address of a node.
pub fn ipv6(node: NodeId) -> Ipv6Addr {
    let number = u64::from(node.0) + 1;
    let [a, b, c] = PREFIX;
    Ipv6Addr::new(a, b, c, 0, 0, (number >> 32) as u16, (number >> 16) as u16, number as u16)
}

/// Returns the node with this address; `None` if the address is not derived from a node number.
pub fn node(address: IpAddr) -> Option<NodeId> {
    let number = match address {
        IpAddr::V4(address) => (u32::from(address) & 0x00ff_ffff).checked_sub(1)?,
        IpAddr::V6(address) => {
            let number = u128::from(address) & u128::from(u64::MAX);
            u32::try_from(number.checked_sub(1)?).ok()?
        }
    };
    let found = NodeId(number);
    (address == ip(found, if address.is_ipv4() { IpVersion::V4 } else { IpVersion::V6 })).then_some(found)
}

/// Returns the address of a node for an IP version.
pub fn ip(node: NodeId, version: IpVersion) -> IpAddr {
    match version {
        IpVersion::V4 => IpAddr::V4(ipv4(node)),
        IpVersion::V6 => IpAddr::V6(ipv6(node)),
    }
}

/// A node and a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint {
    /// The node.
    pub node: NodeId,
    /// The port.
    pub port: u16,
}

impl Endpoint {
    /// Returns the address and port of this endpoint. The address is that of [`ip`], even if
    /// [`ConversationTable::set_address`] has replaced it.
    pub fn socket_address(self, version: IpVersion) -> SocketAddr {
        SocketAddr::new(ip(self.node, version), self.port)
    }
}

/// The two endpoints of a conversation, for one of its directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndpointPair {
    /// The endpoint that sends in this direction.
    pub source: Endpoint,
    /// The endpoint that receives in this direction.
    pub destination: Endpoint,
}

impl EndpointPair {
    /// Returns the endpoints for the opposite direction.
    pub fn reverse(self) -> EndpointPair {
        EndpointPair { source: self.destination, destination: self.source }
    }
}

/// The endpoints of each flow. Only captures and NATs use this table, so it is empty in networks without them.
#[derive(Clone, Debug, Default)]
pub struct ConversationTable {
    /// Endpoints of the forward direction, by number of the conversation.
    conversations: Vec<Option<EndpointPair>>,
    /// Number of conversations that each host has initiated.
    begun: BTreeMap<NodeId, u32>,
    /// Numbers of the conversations by their endpoints; built by the first call of [`ConversationTable::find`].
    by_ends: Option<BTreeMap<EndpointPair, usize>>,
    /// Addresses that replace those derived from the node number.
    addresses: BTreeMap<NodeId, Vec<IpAddr>>,
}

impl ConversationTable {
    /// Adds a conversation from the next port of `initiator` to `acceptor`. `flow` is either direction of the
    /// conversation.
    pub fn add_with_next_port(&mut self, flow: FlowId, initiator: NodeId, acceptor: Endpoint) {
        let begun = self.begun.entry(initiator).or_default();
        let source = Endpoint { node: initiator, port: client_port(*begun) };
        *begun = begun.wrapping_add(1);
        self.add(flow, EndpointPair { source, destination: acceptor });
    }

    /// Adds a conversation with given endpoints. `flow` is either direction of the conversation. The source of `ends`
    /// is the initiator, and the destination is the acceptor.
    pub fn add(&mut self, flow: FlowId, ends: EndpointPair) {
        let conversation = flow.index() / 2;
        if conversation >= self.conversations.len() {
            self.conversations.resize(conversation + 1, None);
        }
        let before = self.conversations[conversation].replace(ends);
        if let Some(by_ends) = &mut self.by_ends {
            if let Some(before) = before.filter(|before| by_ends.get(before) == Some(&conversation)) {
                by_ends.remove(&before);
            }
            by_ends.entry(ends).or_insert(conversation);
        }
    }

    /// Returns the flow with these endpoints; `None` if there is none. If there are several, returns the one declared
    /// first.
    pub fn find(&mut self, ends: EndpointPair) -> Option<FlowId> {
        let conversations = &self.conversations;
        let by_ends = self.by_ends.get_or_insert_with(|| {
            let mut by_ends = BTreeMap::new();
            for (number, forward) in conversations.iter().enumerate() {
                if let Some(forward) = forward {
                    by_ends.entry(*forward).or_insert(number);
                }
            }
            by_ends
        });
        let flow = |number: &usize| FlowId(2 * *number as u32);
        let forward = by_ends.get(&ends).map(flow);
        forward.or_else(|| by_ends.get(&ends.reverse()).map(|number| flow(number).reverse()))
    }

    /// Replaces the address of a node for the IP version of `address`.
    pub fn set_address(&mut self, node: NodeId, address: IpAddr) {
        let addresses = self.addresses.entry(node).or_default();
        addresses.retain(|other| other.is_ipv4() != address.is_ipv4());
        addresses.push(address);
    }

    /// Returns the address of a node for an IP version.
    pub fn address(&self, node: NodeId, version: IpVersion) -> IpAddr {
        let own = self.addresses.get(&node).into_iter().flatten();
        own.copied().find(|own| own.is_ipv4() == (version == IpVersion::V4)).unwrap_or_else(|| ip(node, version))
    }

    /// Returns the source and destination of a flow's packets, before any NAT translates them; `None` for an unknown
    /// flow.
    pub fn endpoints(&self, flow: FlowId) -> Option<EndpointPair> {
        let forward = (*self.conversations.get(flow.index() / 2)?)?;
        Some(if flow.is_forward() { forward } else { forward.reverse() })
    }
}

/// Returns the port of the n-th conversation that a host initiates.
fn client_port(begun: u32) -> u16 {
    let dynamic = u32::from(u16::MAX) + 1 - DYNAMIC_PORT;
    let user = DYNAMIC_PORT - USER_PORT;
    let place = begun % (dynamic + user);
    (if place < dynamic { DYNAMIC_PORT + place } else { USER_PORT + place - dynamic }) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn addresses_match_hand_computed_values() {
        assert_eq!(ipv4(NodeId(0)).to_string(), "10.0.0.1");
        assert_eq!(ipv4(NodeId(255)).to_string(), "10.0.1.0");
        assert_eq!(ipv4(NodeId(0x01_02_03)).to_string(), "10.1.2.4");
        assert_eq!(ipv6(NodeId(0)).to_string(), "fd66:756c:6c70::1");
        assert_eq!(ipv6(NodeId(0x0012_3455)).to_string(), "fd66:756c:6c70::12:3456");
        assert_eq!(ipv6(NodeId(u32::MAX)).to_string(), "fd66:756c:6c70::1:0:0");
    }

    #[test]
    fn a_node_is_found_by_its_own_addresses_only() {
        for number in [0, 1, 254, 255, 65_534, 70_000, 16_777_213] {
            assert_eq!(node(IpAddr::V4(ipv4(NodeId(number)))), Some(NodeId(number)));
            assert_eq!(node(IpAddr::V6(ipv6(NodeId(number)))), Some(NodeId(number)));
        }
        for foreign in ["10.0.0.0", "9.255.255.255", "11.0.0.0", "192.168.0.1", "fd66:756c:6c70::", "fd00::1", "::1"] {
            assert_eq!(node(foreign.parse().unwrap()), None, "{foreign}");
        }
    }

    #[test]
    fn a_host_uses_every_unprivileged_port_once_before_it_reuses_one() {
        let ports: Vec<u16> = (0..64_512).map(client_port).collect();
        assert_eq!((ports[0], ports[16_383], ports[16_384], ports[64_511]), (49_152, 65_535, 1024, 49_151));
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 64_512);
        assert_eq!(client_port(64_512), 49_152);
        client_port(u32::MAX);
    }

    #[test]
    fn flows_are_found_by_their_endpoints_before_and_after_the_first_search() {
        let mut directory = ConversationTable::default();
        let end = |node, port| Endpoint { node: NodeId(node), port };
        let ends = |port| EndpointPair { source: end(1, port), destination: end(2, 80) };
        directory.add(FlowId(4), ends(5));
        assert_eq!(directory.find(ends(5)), Some(FlowId(4)));
        assert_eq!(directory.find(ends(5).reverse()), Some(FlowId(5)));
        assert_eq!(directory.find(ends(6)), None);
        directory.add(FlowId(6), ends(6));
        directory.add(FlowId(8), ends(6));
        assert_eq!(directory.find(ends(6)), Some(FlowId(6)), "the flow that was declared first");
        // The flow gets other ports.
        directory.add(FlowId(4), ends(7));
        assert_eq!((directory.find(ends(5)), directory.find(ends(7))), (None, Some(FlowId(4))));
    }

    #[test]
    fn each_host_has_its_own_port_counter_and_both_directions_are_known() {
        let mut directory = ConversationTable::default();
        let server = Endpoint { node: NodeId(9), port: 443 };
        directory.add_with_next_port(FlowId(0), NodeId(1), server);
        directory.add_with_next_port(FlowId(6), NodeId(2), server);
        directory.add_with_next_port(FlowId(4), NodeId(1), server);
        let port = |flow| directory.endpoints(FlowId(flow)).map(|ends| ends.source.port);
        assert_eq!(
            (port(0), port(6), port(4), port(2), port(8)),
            (Some(49_152), Some(49_152), Some(49_153), None, None)
        );
        let reverse = directory.endpoints(FlowId(5)).unwrap();
        assert_eq!((reverse.source, reverse.destination), (server, Endpoint { node: NodeId(1), port: 49_153 }));
        assert_eq!(server.socket_address(IpVersion::V6).to_string(), "[fd66:756c:6c70::a]:443");
    }
}
