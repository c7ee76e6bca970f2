//! The network in a scenario file: topologies are expanded into hosts, routers, links, segments and access networks.

use super::fields::{DUPLEX, MOST};
use super::{Diagnostics, access, bdp, identity, links, topology};
use crate::description::{Discipline, Link, Node, QueueLimit};
use crate::schema::component::SettingsReader;
use crate::schema::{SourceLocation, Tree, Value, ValueData};
use fullpipe_network::access::{AccessNetwork, AccessNetworkComponent};
pub(crate) use fullpipe_network::access::{find_host, find_node};
use fullpipe_network::discipline::settings::{LIMIT_KEY, LinkParameters};
use fullpipe_network::discipline::table::DISCIPLINES;
use fullpipe_network::{ArpSpecification, EthernetSpecification, Limit, Rebinding, impairment};
use fullpipe_units::{Duration, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// The network, with its nodes by name.
#[derive(Default)]
pub(crate) struct Network {
    pub(crate) nodes: Vec<Node>,
    pub(crate) links: Vec<Link>,
    pub(crate) ethernets: Vec<EthernetSpecification>,
    pub(crate) access: Vec<AccessNetwork>,
    /// The kinds of access networks that the file can contain.
    pub(crate) components: &'static [&'static AccessNetworkComponent],
    /// Queues whose limits depend on the flows.
    pub(crate) pending: Vec<bdp::PendingBdpLimit>,
    names: BTreeMap<String, NodeId>,
    link_names: BTreeSet<String>,
}

/// The maximum number of entries in all routing tables. Each node with several outgoing links has one entry for every
/// node.
const MOST_ROUTES: usize = 50_000_000;

// --- Defaults that depend on other keys.

/// Fills in network keys whose defaults depend on other keys.
pub(crate) fn fill(root: &mut Tree, check: &mut Diagnostics) {
    if let Some(ValueData::Table(topology)) = root.get_mut("topology").map(|value| &mut value.data) {
        topology::fill(topology, check);
    }
    fill_links(root, "", check);
}

pub(super) fn fill_links(tree: &mut Tree, path: &str, check: &mut Diagnostics) {
    if let Some(ValueData::Tables(links)) = tree.get_mut("link").map(|value| &mut value.data) {
        for (index, link) in links.iter_mut().enumerate() {
            fill_link(link, &format!("{path}link.{index}"), check);
        }
    }
}

/// The keys that the reverse direction inherits from the forward direction.
const SHARED: [&str; 7] = ["rate", "delay", "mtu", "framing", "queue", "bdp_rtt", "discipline"];

pub(super) fn fill_link(link: &mut Tree, path: &str, check: &mut Diagnostics) {
    impairment::fill(link);
    let (has_rate, has_trace) = (link.get("rate").is_some(), link.get("trace").is_some());
    let trace = links::fill(link, path, check);
    trace.fill(link, true);
    for (key, example) in [("rate", "a rate such as \"100Mbit/s\""), ("delay", "a duration such as \"10ms\"")] {
        if link.get(key).is_none() && !trace.invalid {
            let trace = match (key, has_trace) {
                ("rate", false) => "a trace",
                ("rate", true) => "a trace with rates",
                _ => "a CSV trace with delays",
            };
            let expected = vec![example.to_owned(), trace.to_owned()];
            check.add_missing(link.place, &format!("{path}.{key}"), format!("{path}.{key} is missing"), expected);
        }
    }
    let shared: Vec<(&'static str, ValueData)> =
        SHARED.iter().filter_map(|key| Some((*key, link.get(key)?.data.clone()))).collect();
    let place = link.place;
    link.fill("reverse", ValueData::Table(Tree::empty_at(place)));
    if let Some(ValueData::Table(reverse)) = link.get_mut("reverse").map(|value| &mut value.data) {
        let own_queue = reverse.is_given("queue");
        let trace = links::fill(reverse, &format!("{path}.reverse"), check);
        trace.fill(reverse, !has_rate);
        for (key, mut data) in shared {
            // The reverse direction's own `queue` has precedence over the inherited limit of the discipline.
            if let ValueData::Table(discipline) = &mut data
                && own_queue
                && bdp::is_none(discipline)
            {
                discipline.remove(LIMIT_KEY);
            }
            reverse.fill(key, data);
        }
        impairment::fill(reverse);
    }
}

// --- The description.

/// Builds the network. Returns `None` if the remaining checks cannot run; an error has then been reported.
pub(crate) fn build(
    root: &Tree,
    components: &'static [&'static AccessNetworkComponent],
    check: &mut Diagnostics,
) -> Option<Network> {
    let own = ["host", "router", "link", "ethernet"].into_iter().filter_map(|key| Some((key, root.get(key)?)));
    let mut own = own.filter(|(_, value)| !value.tables().is_empty());
    let mut network = Network { components, ..Network::default() };
    match (root.get("topology").map(Value::table), own.next()) {
        (Some(topology), None) => topology::build(topology, &mut network, check),
        (None, Some(_)) => own_network(root, &mut network, check),
        (None, None) => check.add_missing(
            root.place,
            "topology",
            "the file describes no network",
            vec!["[topology]".into(), format!("[[host]] with [[link]], [[ethernet]]{}", access_keys(components))],
        ),
        (Some(_), Some((key, value))) => {
            let place = value.tables().first().map_or(value.place, |first| first.place);
            let message = format!("the file has both [topology] and [[{key}]]");
            check.add_error(place, key, message, vec!["only one of them".into()]);
        }
    }
    if check.is_empty() {
        access::networks(root, &mut network, check);
    }
    if check.is_empty() {
        routes_fit(root, &network, check);
    }
    // Unknown or duplicate names would only cause further errors.
    check.is_empty().then_some(network)
}

/// Returns the keys of access networks, formatted as the end of a list.
fn access_keys(components: &[&AccessNetworkComponent]) -> String {
    let keys = components.iter().enumerate().map(|(index, component)| {
        let separator = if index + 1 == components.len() { " or" } else { "," };
        format!("{separator} [[{}]]", component.declaration.name)
    });
    keys.collect()
}

/// Adds a node that is declared in the file.
pub(super) fn declare(
    name: &str,
    place: SourceLocation,
    path: &str,
    router: bool,
    network: &mut Network,
    check: &mut Diagnostics,
) {
    if network.names.contains_key(name) {
        check.add_error(place, path, format!("duplicate host or router name \"{name}\""), vec!["a unique name".into()]);
    } else if network.nodes.len() >= MOST {
        check.add_error(place, path, "too many hosts and routers", vec![format!("at most {MOST} in total")]);
    } else {
        network.node(name.to_string(), router);
    }
}

fn own_network(root: &Tree, network: &mut Network, check: &mut Diagnostics) {
    let tables = |key: &str| root.get(key).map(Value::tables).unwrap_or_default();
    for (key, router) in [("host", false), ("router", true)] {
        for (index, tree) in tables(key).iter().enumerate() {
            let path = format!("{key}.{index}");
            let (name, place) = (tree.text("name"), tree.location_of("name"));
            if tree.get("count").is_some() {
                several(tree, &path, network, check);
                continue;
            }
            let declared = network.nodes.len();
            declare(name, place, &format!("{path}.name"), router, network, check);
            if let Some(node) = network.nodes.get_mut(declared) {
                node.identity = identity::identity(tree, &path, check);
            }
        }
    }
    identity::unique(root, network, check);
    if tables("link").len() + tables("ethernet").len() > MOST {
        let message = "too many links and Ethernet segments";
        check.add_error(root.location_of("link"), "link", message, vec![format!("at most {MOST} in total")]);
        return;
    }
    for (index, tree) in tables("link").iter().enumerate() {
        if check.is_full() {
            return;
        }
        let path = format!("link.{index}");
        network.name_medium(tree, &path, check);
        let mut end =
            |key: &str| find_node(tree.text(key), tree.location_of(key), &format!("{path}.{key}"), network, check);
        let (Some(from), Some(to)) = (end("from"), end("to")) else { continue };
        if from == to {
            let message = format!("link {} connects {} to itself", tree.text("name"), tree.text("from"));
            check.add_error(
                tree.location_of("to"),
                &format!("{path}.to"),
                message,
                vec!["another host or router".into()],
            );
            continue;
        }
        network.link(tree.text("name"), from, to, tree, &path, check);
    }
    for (index, tree) in tables("ethernet").iter().enumerate() {
        if check.is_full() {
            return;
        }
        let path = format!("ethernet.{index}");
        network.name_medium(tree, &path, check);
        let mut hosts = Vec::new();
        for (n, name) in tree.list("hosts").iter().enumerate() {
            let path = format!("{path}.hosts.{n}");
            let Some(host) = find_host(name.text(), name.place, &path, network, check) else { continue };
            if hosts.contains(&host) {
                let message = format!(
                    "host \"{}\" is attached twice to the Ethernet segment \"{}\"",
                    name.text(),
                    tree.text("name")
                );
                check.add_error(name.place, &path, message, vec!["each host once".into()]);
            } else if network.nodes[host.index()].router {
                let message =
                    format!("{} is a router, which this version does not support on an Ethernet segment", name.text());
                check.add_error(name.place, &path, message, vec!["a host".into()]);
            }
            hosts.push(host);
        }
        segment(tree.text("name"), &path, hosts, tree, network, check);
    }
}

/// Adds the hosts of one table with `count`.
fn several(tree: &Tree, path: &str, network: &mut Network, check: &mut Diagnostics) {
    for key in ["ipv4", "ipv6", "interface"] {
        if tree.get(key).is_some() {
            let message = format!("{path} has count, so its hosts would share {key}");
            check.add_error(
                tree.location_of(key),
                &format!("{path}.{key}"),
                message,
                vec!["a [[host]] without count".into()],
            );
        }
    }
    for number in 1..=identity::count(tree) {
        if check.is_full() {
            return;
        }
        let name = format!("{}{number}", tree.text("name"));
        declare(&name, tree.location_of("name"), &format!("{path}.name"), false, network, check);
    }
}

impl Network {
    /// Registers the name of a link, segment or access network.
    pub(super) fn name_medium(&mut self, tree: &Tree, path: &str, check: &mut Diagnostics) {
        let name = tree.text("name");
        if !self.link_names.insert(name.to_string()) {
            let message = format!("duplicate link, segment or access network name \"{name}\"");
            check.add_error(tree.location_of("name"), &format!("{path}.name"), message, vec!["a unique name".into()]);
        }
    }
}

impl Network {
    /// Returns the names of hosts.
    pub(super) fn host_names(&self) -> Vec<&str> {
        self.nodes.iter().filter(|node| !node.router).map(|node| node.name.as_str()).collect()
    }

    /// Returns the node with this name.
    pub(super) fn node_named(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    pub(super) fn node(&mut self, name: String, router: bool) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.names.insert(name.clone(), id);
        self.nodes.push(Node { name, router, real: false, identity: None });
        id
    }

    /// Adds both directions of a link.
    pub(super) fn link(
        &mut self,
        name: &str,
        from: NodeId,
        to: NodeId,
        tree: &Tree,
        path: &str,
        check: &mut Diagnostics,
    ) {
        self.direction(name.to_string(), from, to, tree, path, check);
        let reverse = tree.table("reverse");
        // An error in an inherited discipline is reported at the place of the discipline.
        let own = if reverse.is_given("discipline") { ".reverse" } else { "" };
        let path = format!("{path}{own}");
        self.direction(format!("{name}.reverse"), to, from, reverse, &path, check);
        if let Some(rebinding) = tree.get("rebinding").map(Value::table) {
            let number = self.links.len() - 2;
            let sides = Rebinding::read(rebinding, number as u32 / 2);
            for (link, side) in self.links[number..].iter_mut().zip(sides) {
                link.impairments.rebinding = Some(side);
            }
        }
    }
}

/// Returns a size in bytes that the schema limits to far less than 2^32.
fn small_size(tree: &Tree, key: &str) -> u32 {
    u32::try_from(tree.size(key)).unwrap_or(u32::MAX)
}

fn small_integer(tree: &Tree, key: &str) -> u32 {
    u32::try_from(tree.integer(key)).unwrap_or(u32::MAX)
}

/// Properties of the device that the discipline of a link or segment may depend on.
fn device(tree: &Tree) -> LinkParameters {
    let rate = tree.rate("rate");
    let (mtu_bytes, framing_bytes) = (small_size(tree, "mtu"), small_size(tree, "framing"));
    LinkParameters { rate, bdp: (rate, Duration::ZERO), mtu_bytes, framing_bytes }
}

/// Returns the discipline of a link or segment. `None` for the device queue alone, or after an error.
pub(super) fn discipline(
    tree: &Tree,
    device: LinkParameters,
    path: &str,
    check: &mut Diagnostics,
) -> Option<Discipline> {
    let mut reader = SettingsReader { tree, path: &format!("{path}.discipline"), check };
    DISCIPLINES.read(&mut reader, &device).unwrap_or_default()
}

/// Adds hints about `queue` if it does not limit the queue that a reader expects.
fn queue_hints(tree: &Tree, path: &str, check: &mut Diagnostics) {
    let discipline = tree.table("discipline");
    let (kind, limited) = (discipline.choice("kind"), discipline.is_given(LIMIT_KEY));
    let message = match (bdp::is_none(discipline), limited) {
        _ if !tree.is_given("queue") => return,
        (true, true) => format!("{path}.queue has no effect, because {path}.discipline.limit limits the queue"),
        (false, false) => format!(
            "{path}.queue limits the device's queue below {kind}; the limit of {kind} itself is {path}.discipline.limit"
        ),
        _ => return,
    };
    check.add_hint(tree.location_of("queue"), &format!("{path}.queue"), message);
}

impl Network {
    fn direction(&mut self, name: String, from: NodeId, to: NodeId, tree: &Tree, path: &str, check: &mut Diagnostics) {
        let device = device(tree);
        let pending = bdp::pending(bdp::Transmitter::Link(self.links.len()), &name, tree, device, path);
        let discipline = match pending {
            Some(_) => None,
            None => discipline(tree.table("discipline"), device, path, check),
        };
        self.pending.extend(pending);
        queue_hints(tree, path, check);
        let alone = QueueLimit::Packets(if discipline.is_some() { 0 } else { 1000 });
        let limit = bdp::device_limit(tree).map_or(alone, |(_, limit)| device.resolve_limit(limit.link_queue_limit()));
        let (course, impairments, random_trace_offset) = links::describe(tree, path, check);
        self.links.push(Link {
            name,
            from,
            to,
            rate: device.rate,
            delay: tree.duration("delay"),
            mtu_bytes: device.mtu_bytes,
            framing_bytes: device.framing_bytes,
            queue: limit,
            discipline,
            course,
            impairments,
            random_trace_offset,
        });
    }
}

pub(super) fn segment(
    name: &str,
    path: &str,
    hosts: Vec<NodeId>,
    tree: &Tree,
    network: &mut Network,
    check: &mut Diagnostics,
) {
    const MOST_STATIONS: usize = 1024;
    if !(2..=MOST_STATIONS).contains(&hosts.len()) {
        let message = format!("{path}.hosts has {} host{}", hosts.len(), if hosts.len() == 1 { "" } else { "s" });
        check.add_error_at(tree, path, "hosts", message, &format!("2 to {MOST_STATIONS} hosts"));
        return;
    }
    let arp = tree.table("arp");
    let fixed_delays: Vec<Duration> = arp.list("fixed_delays").iter().map(Value::duration).collect();
    if fixed_delays.len() > hosts.len() {
        let path = format!("{path}.arp");
        let message = format!("{path}.fixed_delays has {} values for {} hosts", fixed_delays.len(), hosts.len());
        check.add_error_at(arp, &path, "fixed_delays", message, "at most one value for each host");
    }
    let device = device(tree);
    let pending = bdp::pending(bdp::Transmitter::Ethernet(network.ethernets.len()), name, tree, device, path);
    let discipline = match pending {
        Some(_) => None,
        None => discipline(tree.table("discipline"), device, path, check),
    };
    network.pending.extend(pending);
    queue_hints(tree, path, check);
    let limit = bdp::device_limit(tree).map(|(_, limit)| device.resolve_limit(limit.link_queue_limit()));
    network.ethernets.push(EthernetSpecification {
        name: name.to_string(),
        hosts,
        rate: device.rate,
        delay: tree.duration("delay"),
        half_duplex: tree.choice_value("duplex", &DUPLEX),
        mtu_bytes: device.mtu_bytes,
        framing_bytes: device.framing_bytes,
        min_frame_bytes: small_size(tree, "min_frame"),
        interframe_gap_bits: small_integer(tree, "interframe_gap"),
        slot: tree.duration("slot"),
        backoff_ceiling: small_integer(tree, "backoff_ceiling"),
        max_retries: small_integer(tree, "max_retries"),
        device_queue: Limit::from_queue_limit(limit.unwrap_or(QueueLimit::Packets(0)), device.rate),
        discipline,
        arp: ArpSpecification {
            enabled: arp.boolean("enabled"),
            pending_packets: small_integer(arp, "pending"),
            request_jitter: arp.duration("request_jitter"),
            request_jitter_step: arp.duration("request_jitter_step"),
            fixed_delays,
            reply_timeout: arp.duration("reply_timeout"),
            max_requests: small_integer(arp, "max_requests"),
        },
    });
}

/// Checks the size of all routing tables. Each node with several outgoing links has one.
fn routes_fit(root: &Tree, network: &Network, check: &mut Diagnostics) {
    let mut ways = vec![0usize; network.nodes.len()];
    for link in &network.links {
        ways[link.from.index()] += 1;
    }
    for segment in &network.ethernets {
        for host in &segment.hosts {
            ways[host.index()] += segment.hosts.len();
        }
    }
    for access in &network.access {
        ways[access.hub().index()] += access.stations().len();
        access.stations().iter().for_each(|station| ways[station.index()] += 1);
    }
    let tables = ways.iter().filter(|ways| **ways > 1).count();
    if tables.saturating_mul(network.nodes.len()) > MOST_ROUTES {
        let place =
            if root.get("topology").is_some() { root.location_of("topology") } else { root.location_of("host") };
        let message =
            format!("the {tables} routing tables for {} hosts and routers are too large", network.nodes.len());
        check.add_error(place, "topology", message, vec![format!("at most {MOST_ROUTES} entries in all")]);
    }
}
