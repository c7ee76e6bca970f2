//! The predefined topologies, which are expanded into hosts, routers and links.

use super::Diagnostics;
use super::fields::{ETHERNET_FIELDS, LINE, MOST, MOST_STATIONS};
use super::network::{Network, declare, fill_link, fill_links, segment};
use crate::schema::{Field, FieldKind, Table, Tree, ValueData, Variant, Variants, keys};
use fullpipe_units::NodeId;

/// The maximum number of host pairs of a dumbbell. The hosts and the two routers are within [`MOST`].
const MOST_PAIRS: i64 = 499_999;
/// The maximum number of hosts of a star. The hosts and the hub are within [`MOST`].
const MOST_HOSTS: i64 = 999_999;
/// The maximum number of bottlenecks of a parking lot. There are three nodes for each, three more nodes, and a routing
/// table in each router.
const MOST_HOPS: i64 = 1000;

/// The table of predefined topologies.
pub(super) static TOPOLOGY: Table = Table {
    name: "topology",
    text: "A network of a common shape, such as `kind = \"dumbbell\"`. A file has either `[topology]` or \
           `[[host]]`, `[[router]]`, `[[link]]` and `[[ethernet]]`.",
    variants: Some(&Variants {
        key: "kind",
        default: None,
        text: "It selects the network.",
        list: &[
            Variant {
                name: "dumbbell",
                text: "hosts `left1`, `left2`, ... each on its link `access-left1`, ... to `router1`; the link \
                       `bottleneck` from `router1` to `router2`; and from there the links `access-right1`, ... to the \
                       hosts `right1`, .... The first direction of every link points to the right.",
                fields: &[&[
                    Field::default("pairs", FieldKind::integer(1, MOST_PAIRS), "1", "Number of hosts on each side."),
                    Field::required("access", FieldKind::Table(&LINE), "Links on the left."),
                    Field::required("bottleneck", FieldKind::Table(&LINE), "Link between the routers."),
                    Field::optional("access_right", FieldKind::Table(&LINE), "as `access`", "Links on the right."),
                ]],
            },
            Variant {
                name: "chain",
                text: "host `source`, routers `router1`, `router2`, ..., host `sink`, joined by the links `link1`, \
                       `link2`, ... in the order of the file. The first direction points to the sink.",
                fields: &[&[Field::required("link", FieldKind::Tables(&LINE), "Links in order, at least one.")]],
            },
            Variant {
                name: "star",
                text: "hosts `host1`, `host2`, ... each on its link `access1`, ... to the router `hub`. The first \
                       direction of every link points to the hub.",
                fields: &[&[
                    Field::required("hosts", FieldKind::integer(2, MOST_HOSTS), "Number of hosts."),
                    Field::required("access", FieldKind::Table(&LINE), "The link of each host."),
                ]],
            },
            Variant {
                name: "parking-lot",
                text: "routers `router1`, `router2`, ... in a row, joined by the links `bottleneck1`, `bottleneck2`, ...; \
                       host `source` at the first (link `access-source`) and host `sink` at the last (`access-sink`); \
                       for each bottleneck n a host `cross-source`n before it and a host `cross-sink`n behind it \
                       (`access-cross-source`n, `access-cross-sink`n). The first direction of every link points from \
                       source to sink.",
                fields: &[&[
                    Field::required("hops", FieldKind::integer(1, MOST_HOPS), "Number of bottlenecks.")
                        .with_unit("links"),
                    Field::required("bottleneck", FieldKind::Table(&LINE), "Each link between two routers."),
                    Field::required("access", FieldKind::Table(&LINE), "The link of each host."),
                ]],
            },
            Variant {
                name: "ethernet",
                text: "hosts on one shared Ethernet segment named `ethernet`.",
                fields: &[
                    keys! {
                        /// Number of hosts (named `host1`, `host2`, ...), or their names.
                        "hosts": FieldKind::Either(&FieldKind::integer(2, MOST_STATIONS), &FieldKind::List(&FieldKind::Name)), required;
                    },
                    ETHERNET_FIELDS,
                ],
            },
        ],
        later: &["lte", "wifi", "satellite", "tree"],
    }),
    ..Table::EMPTY
};

/// The link tables of all kinds of topologies.
const LINES: [&str; 3] = ["access", "bottleneck", "access_right"];

/// Fills in defaults that depend on other keys.
pub(super) fn fill(topology: &mut Tree, check: &mut Diagnostics) {
    if topology.choice("kind") == "chain" {
        fill_links(topology, "topology.", check);
    }
    for key in LINES {
        if let Some(ValueData::Table(link)) = topology.get_mut(key).map(|value| &mut value.data) {
            fill_link(link, &format!("topology.{key}"), check);
        }
    }
    if topology.choice("kind") == "dumbbell" {
        // Filled in first, so that an error in it is reported only once.
        let access = topology.table("access").clone();
        topology.fill("access_right", ValueData::Table(access));
    }
}

/// Adds the nodes and links of a topology to the network.
pub(super) fn build(topology: &Tree, network: &mut Network, check: &mut Diagnostics) {
    match topology.choice("kind") {
        "dumbbell" => dumbbell(topology, network, check),
        "chain" => chain(topology, network, check),
        "star" => star(topology, network, check),
        "parking-lot" => parking_lot(topology, network, check),
        "ethernet" => one_ethernet(topology, network, check),
        other => unreachable!("the schema does not contain the topology {other}"),
    }
}

fn dumbbell(topology: &Tree, network: &mut Network, check: &mut Diagnostics) {
    let pairs = topology.integer("pairs");
    let left: Vec<NodeId> = (1..=pairs).map(|n| network.node(format!("left{n}"), false)).collect();
    let router1 = network.node("router1".into(), true);
    let router2 = network.node("router2".into(), true);
    let right: Vec<NodeId> = (1..=pairs).map(|n| network.node(format!("right{n}"), false)).collect();
    for (n, host) in left.into_iter().enumerate() {
        network.link(
            &format!("access-left{}", n + 1),
            host,
            router1,
            topology.table("access"),
            "topology.access",
            check,
        );
    }
    network.link("bottleneck", router1, router2, topology.table("bottleneck"), "topology.bottleneck", check);
    for (n, host) in right.into_iter().enumerate() {
        network.link(
            &format!("access-right{}", n + 1),
            router2,
            host,
            topology.table("access_right"),
            "topology.access_right",
            check,
        );
    }
}

fn chain(topology: &Tree, network: &mut Network, check: &mut Diagnostics) {
    let links = topology.tables("link");
    if links.is_empty() || links.len() >= MOST {
        let message = format!("topology.link has {} links", links.len());
        let expected = format!("1 to {} links", MOST - 1);
        check.add_error(topology.location_of("link"), "topology.link", message, vec![expected]);
        return;
    }
    let mut from = network.node("source".into(), false);
    for (n, link) in links.iter().enumerate() {
        let last = n + 1 == links.len();
        let to = if last { network.node("sink".into(), false) } else { network.node(format!("router{}", n + 1), true) };
        network.link(&format!("link{}", n + 1), from, to, link, &format!("topology.link.{n}"), check);
        from = to;
    }
}

fn star(topology: &Tree, network: &mut Network, check: &mut Diagnostics) {
    let hosts: Vec<NodeId> = (1..=topology.integer("hosts")).map(|n| network.node(format!("host{n}"), false)).collect();
    let hub = network.node("hub".into(), true);
    for (n, host) in hosts.into_iter().enumerate() {
        network.link(&format!("access{}", n + 1), host, hub, topology.table("access"), "topology.access", check);
    }
}

fn parking_lot(topology: &Tree, network: &mut Network, check: &mut Diagnostics) {
    let hops = topology.integer("hops");
    let access = topology.table("access");
    let source = network.node("source".into(), false);
    let routers: Vec<NodeId> = (1..=hops + 1).map(|n| network.node(format!("router{n}"), true)).collect();
    let sink = network.node("sink".into(), false);
    network.link("access-source", source, routers[0], access, "topology.access", check);
    for (n, pair) in routers.windows(2).enumerate() {
        let n = n + 1;
        network.link(
            &format!("bottleneck{n}"),
            pair[0],
            pair[1],
            topology.table("bottleneck"),
            "topology.bottleneck",
            check,
        );
        let from = network.node(format!("cross-source{n}"), false);
        let to = network.node(format!("cross-sink{n}"), false);
        network.link(&format!("access-cross-source{n}"), from, pair[0], access, "topology.access", check);
        network.link(&format!("access-cross-sink{n}"), pair[1], to, access, "topology.access", check);
    }
    network.link("access-sink", routers[routers.len() - 1], sink, access, "topology.access", check);
}

fn one_ethernet(topology: &Tree, network: &mut Network, check: &mut Diagnostics) {
    let hosts: Vec<NodeId> = match &topology.get("hosts").map(|value| &value.data) {
        Some(ValueData::Integer(count)) => (1..=*count).map(|n| network.node(format!("host{n}"), false)).collect(),
        _ => {
            let names = topology.list("hosts");
            for (index, name) in names.iter().enumerate() {
                declare(name.text(), name.place, &format!("topology.hosts.{index}"), false, network, check);
            }
            (0..network.nodes.len() as u32).map(NodeId).collect()
        }
    };
    segment("ethernet", "topology", hosts, topology, network, check);
}
