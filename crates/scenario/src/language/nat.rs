//! NATs: their keys, and the description that results from them.

use super::network::{Network, find_node};
use super::{Diagnostics, abbreviate_names};
use crate::schema::component::choices;
use crate::schema::{Choice, FieldKind, Table, Tree, Value, keys, named};
use crate::schema::{is_pattern, matches};
use fullpipe_network::{NatFilter, NatSpecification, PortAllocation};
use fullpipe_units::NodeId;
use std::collections::BTreeSet;

const PORT: FieldKind = FieldKind::Integer { min: 1, max: 65_535 };

static ALLOCATIONS: [(Choice, PortAllocation); 3] = [
    (
        Choice::new("preserve", "the inside port if it is free, otherwise the first free port."),
        PortAllocation::Preserve,
    ),
    (Choice::new("sequential", "the free port after the last allocated one."), PortAllocation::Sequential),
    (Choice::new("random", "a random free port."), PortAllocation::Random),
];

static FILTERS: [(Choice, NatFilter); 3] = named! {
    /// accepts packets from any address.
    "endpoint-independent" => NatFilter::EndpointIndependent;
    /// accepts packets from addresses to which the inside host has sent.
    "address-dependent" => NatFilter::AddressDependent;
    /// accepts packets from addresses and ports to which it has sent.
    "address-and-port-dependent" => NatFilter::AddressAndPortDependent;
};

pub(super) static NAT: Table = Table {
    name: "nat",
    text: "A router that translates addresses and ports of IPv4 (RFC 4787, 5382, 7857): inside hosts share its address. \
           Time-outs default to the shortest that the RFCs allow.",
    fields: &[keys! {
        /// Router that translates addresses.
        "router": FieldKind::Name, required;
        /// Inside hosts, by name or pattern, including hosts behind other NATs inside. All outbound routes must pass through
        /// the router.
        "inside": FieldKind::List(&FieldKind::Text), required;
        /// First port of the pool; UDP and TCP each have a pool.
        "first_port": PORT, default "1024";
        /// Last port of the pool.
        "last_port": PORT, default "65535";
        /// Allocation of the outside port of a mapping.
        "allocation": FieldKind::Choice(&choices(&ALLOCATIONS)), default "preserve";
        /// Filtering: which packets from outside a mapping accepts.
        "filter": FieldKind::Choice(&choices(&FILTERS)), default "address-and-port-dependent";
        /// Maximum number of ports of one protocol for each inside host (RFC 6888).
        "ports_per_host": PORT, optional "not limited";
        /// Time for which a port is not allocated again after its mapping has ended.
        "port_rest": FieldKind::DURATION, default "0s";
        /// Idle time after which a UDP mapping ends.
        "udp_timeout": FieldKind::INTERVAL, default "2min";
        /// Whether packets from outside refresh a UDP mapping.
        "udp_inbound_refresh": FieldKind::Boolean, default "false";
        /// Idle time after which the mapping of an established TCP connection ends.
        "tcp_established_timeout": FieldKind::INTERVAL, default "124min";
        /// Idle time after which the mapping of a TCP connection that is being opened or closed ends.
        "tcp_transitory_timeout": FieldKind::INTERVAL, default "4min";
    }],
    ..Table::EMPTY
};

/// Returns the NATs in a file.
pub(super) fn nats(root: &Tree, network: &Network, check: &mut Diagnostics) -> Vec<NatSpecification> {
    let mut nats = Vec::new();
    let mut routers = BTreeSet::new();
    for (index, tree) in root.get("nat").map(Value::tables).unwrap_or_default().iter().enumerate() {
        let path = format!("nat.{index}");
        let place = tree.location_of("router");
        let Some(router) = find_node(tree.text("router"), place, &format!("{path}.router"), network, check) else {
            continue;
        };
        if !network.nodes[router.index()].router || !routers.insert(router) {
            let what = match network.nodes[router.index()].router {
                true => "already has a [[nat]]",
                false => "is a host, but a NAT requires a router",
            };
            let message = format!("\"{}\" {what}", tree.text("router"));
            let nodes = network.nodes.iter().enumerate();
            let free = nodes.filter(|(number, node)| node.router && !routers.contains(&NodeId(*number as u32)));
            let names: Vec<&str> = free.map(|(_, node)| node.name.as_str()).collect();
            let mut expected = abbreviate_names(names.into_iter());
            if expected.is_empty() {
                expected.push("a [[router]] without another [[nat]]".to_owned());
            }
            check.add_error(place, &format!("{path}.router"), message, expected);
            continue;
        }
        let inside = inside(tree, &path, network, check);
        let port = |key: &str| u16::try_from(tree.integer(key)).unwrap_or(u16::MAX);
        if port("first_port") > port("last_port") {
            let message =
                format!("{path}: first_port = {} is above last_port = {}", port("first_port"), port("last_port"));
            let at = tree.location_of("last_port");
            check.add_error(at, &format!("{path}.last_port"), message, vec!["first_port at most last_port".into()]);
        }
        nats.push(NatSpecification {
            router,
            inside,
            first_port: port("first_port"),
            last_port: port("last_port"),
            allocation: tree.choice_value("allocation", &ALLOCATIONS),
            filter: tree.choice_value("filter", &FILTERS),
            ports_per_host: tree.get("ports_per_host").and_then(|ports| u32::try_from(ports.integer()).ok()),
            port_rest: tree.duration("port_rest"),
            udp_timeout: tree.duration("udp_timeout"),
            udp_inbound_refresh: tree.boolean("udp_inbound_refresh"),
            tcp_established_timeout: tree.duration("tcp_established_timeout"),
            tcp_transitory_timeout: tree.duration("tcp_transitory_timeout"),
        });
    }
    nats
}

fn inside(tree: &Tree, path: &str, network: &Network, check: &mut Diagnostics) -> Vec<NodeId> {
    let mut inside: BTreeSet<NodeId> = BTreeSet::new();
    let hosts = || network.nodes.iter().enumerate().filter(|(_, node)| !node.router);
    for (index, entry) in tree.list("inside").iter().enumerate() {
        let text = entry.text();
        let path = format!("{path}.inside.{index}");
        if !is_pattern(text) {
            inside.extend(find_node(text, entry.place, &path, network, check));
            continue;
        }
        let before = inside.len();
        inside.extend(hosts().filter(|(_, node)| matches(text, &node.name)).map(|(n, _)| NodeId(n as u32)));
        if inside.len() == before {
            let others = hosts().filter(|(number, _)| !inside.contains(&NodeId(*number as u32)));
            let names: Vec<&str> = others.map(|(_, node)| node.name.as_str()).collect();
            let other = if inside.is_empty() { "" } else { "other " };
            let message = format!("no {other}host matches \"{text}\"");
            check.add_error(entry.place, &path, message, abbreviate_names(names.into_iter()));
        }
    }
    inside.into_iter().collect()
}
