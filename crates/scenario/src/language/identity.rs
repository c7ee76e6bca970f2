//! Addresses of nodes and interfaces of hosts, which real hosts use.

use super::Diagnostics;
use super::network::Network;
use crate::description::NodeAddressing;
use crate::schema::{Field, FieldKind, Tree, Value, ValueData};
use fullpipe_network::address;
use fullpipe_units::NodeId;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The addresses of a host or router.
pub(super) const ADDRESSES: &[Field] = &[
    Field::optional("ipv4", FieldKind::Text, "by number, from 10.0.0.1 on", "Its IPv4 address."),
    Field::optional("ipv6", FieldKind::Text, "by number, from fd66:756c:6c70::1 on", "Its IPv6 address."),
];

const KINDS: [(&str, bool); 2] = [("host", false), ("router", true)];

/// Writes addresses in their canonical form.
pub(super) fn fill(root: &mut Tree, check: &mut Diagnostics) {
    for (kind, _) in KINDS {
        let Some(ValueData::Tables(nodes)) = root.get_mut(kind).map(|value| &mut value.data) else { continue };
        for (index, node) in nodes.iter_mut().enumerate() {
            for key in ["ipv4", "ipv6"] {
                if node.get(key).is_some()
                    && let Some(address) = parsed(node, key, &format!("{kind}.{index}.{key}"), check)
                    && let Some(Value { data: ValueData::Text(text), .. }) = node.get_mut(key)
                {
                    *text = address.to_string();
                }
            }
        }
    }
}

/// Parses an address of the family of the key that identifies a single host.
fn parsed(node: &Tree, key: &str, path: &str, check: &mut Diagnostics) -> Option<IpAddr> {
    let (text, place) = (node.text(key), node.location_of(key));
    let wrong = match text.parse::<IpAddr>() {
        Ok(address) if address.is_ipv4() != (key == "ipv4") => {
            if address.is_ipv4() {
                "is an IPv4 address"
            } else {
                "is an IPv6 address"
            }
        }
        Ok(address) if !of_one_host(address) => "is not a unicast address of a host",
        Ok(address) => return Some(address),
        Err(_) => "is not an IP address",
    };
    let expected = if key == "ipv4" {
        "the IPv4 address of one host such as \"192.0.2.1\""
    } else {
        "the IPv6 address of one host such as \"2001:db8::1\""
    };
    let message = format!("{path} = {} {wrong}", check.sources.excerpt(place));
    check.add_error(place, path, message, vec![expected.into()]);
    None
}

/// Returns whether other hosts can send to the address and it identifies a single host. Unspecified, loopback,
/// multicast, broadcast and mapped addresses do not (RFC 6890; 0.0.0.0/8 and 240.0.0.0/4 are not valid destinations).
fn of_one_host(address: IpAddr) -> bool {
    let usual = !address.is_unspecified() && !address.is_loopback() && !address.is_multicast();
    usual
        && match address {
            IpAddr::V4(address) => address.octets()[0] != 0 && address.octets()[0] < 240,
            IpAddr::V6(address) => address.to_ipv4_mapped().is_none(),
        }
}

/// Returns the addresses and the interface in a node's table; `None` if there are none.
pub(super) fn identity(node: &Tree, path: &str, check: &mut Diagnostics) -> Option<Box<NodeAddressing>> {
    let text = |key: &str| node.get(key).map(Value::text);
    let identity = NodeAddressing {
        ipv4: text("ipv4").and_then(|text| text.parse::<Ipv4Addr>().ok()),
        ipv6: text("ipv6").and_then(|text| text.parse::<Ipv6Addr>().ok()),
        interface: text("interface").map(str::to_string),
    };
    if let Some(name) = text("interface").filter(|name| !is_interface(name)) {
        let path = format!("{path}.interface");
        let message = format!("{path} = {name:?} is not a valid interface name");
        let expected = vec!["1 to 15 bytes without \"/\", \":\" and spaces, such as \"eth0\"".into()];
        check.add_error(node.location_of("interface"), &path, message, expected);
    }
    (identity != NodeAddressing::default()).then(|| Box::new(identity))
}

/// Returns whether Linux accepts the name for an interface: fewer than IFNAMSIZ bytes, and no character that would
/// split a path or a list.
fn is_interface(name: &str) -> bool {
    let splits = |c: char| c.is_whitespace() || c.is_control() || c == '/' || c == ':';
    !name.is_empty() && name.len() < 16 && name != "." && name != ".." && !name.contains(splits)
}

/// Checks that all addresses (explicit or by number) and all interfaces are unique.
pub(super) fn unique(root: &Tree, network: &Network, check: &mut Diagnostics) {
    let mut addresses: BTreeMap<IpAddr, NodeId> = BTreeMap::new();
    let mut interfaces: BTreeMap<&str, &str> = BTreeMap::new();
    let name = |node: NodeId| network.nodes[node.index()].name.as_str();
    let tables = |kind| root.get(kind).map(Value::tables).unwrap_or_default().iter().enumerate();
    let trees = KINDS.into_iter().flat_map(|(kind, _)| tables(kind).map(move |(index, tree)| (kind, index, tree)));
    let counts = trees.clone().map(|(_, _, tree)| count(tree));
    if network.nodes.len() != counts.sum::<usize>() {
        // A name is declared twice. This error is already reported, and node numbers would be ambiguous.
        return;
    }
    let mut number = 0;
    for (kind, index, tree) in trees {
        let node = NodeId(number as u32);
        number += count(tree);
        for key in ["ipv4", "ipv6"] {
            let Some(own) = tree.get(key).and_then(|value| value.text().parse::<IpAddr>().ok()) else { continue };
            let by_number = address::node(own).filter(|other| has_by_number(network, *other, own));
            if let Some(other) = by_number.or_else(|| addresses.get(&own).copied()) {
                let how = if by_number.is_some() { " (its default address)" } else { "" };
                let message = format!("the address {own} already belongs to {}{how}", name(other));
                let path = format!("{kind}.{index}.{key}");
                check.add_error(tree.location_of(key), &path, message, vec!["a unique address".into()]);
            }
            addresses.insert(own, node);
        }
        if let Some(interface) = tree.get("interface").map(Value::text)
            && let Some(other) = interfaces.insert(interface, name(node))
        {
            let message = format!("the interface {interface} is already assigned to {other}");
            let path = format!("{kind}.{index}.interface");
            check.add_error(tree.location_of("interface"), &path, message, vec!["a unique interface".into()]);
        }
    }
}

/// Returns the number of nodes that a table declares.
pub(super) fn count(tree: &Tree) -> usize {
    tree.get("count").map_or(1, |count| usize::try_from(count.integer()).unwrap_or(usize::MAX))
}

/// Returns whether the node exists and has no explicit address of this family.
fn has_by_number(network: &Network, node: NodeId, family: IpAddr) -> bool {
    let own = |node: &crate::description::Node| match family {
        IpAddr::V4(_) => node.ipv4().is_some(),
        IpAddr::V6(_) => node.ipv6().is_some(),
    };
    network.nodes.get(node.index()).is_some_and(|node| !own(node))
}
