//! Flows: their keys, and the expansion of one `[[flow]]` into several flows.

use super::fields::MOST;
use super::network::{Network, find_host};
use super::reach::Reachability;
use super::{Diagnostics, abbreviate_names, masque, quic, real_time, tcp, tunnels};
use crate::description::{Flow, QuicStack, Transport};
use crate::schema::component::{SettingsReader, choices};
use crate::schema::quantity::format_readable_size;
use crate::schema::{Choice, FieldKind, Table, Tree, Value, ValueData, Variants, keys};
use crate::schema::{SettingsTable, compare_natural, is_pattern, matches};
use fullpipe_congestion::catalogue::CHOICES;
use fullpipe_quic::settings::STACKS;
use fullpipe_units::{Duration, NodeId};
use fullpipe_wire::IpVersion;
use fullpipe_workload::{FlowTransport, Protocol, VARIANTS, WORKLOADS, WorkloadCatalogue};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The maximum number of flows between two hosts. Ports have 16 bits, and low ports are not assigned.
const MOST_FLOWS_OF_A_PAIR: u32 = 60_000;

pub(crate) static FLOW: Table = Table {
    name: "flow",
    text: "Traffic between two hosts, or a group of equal flows. With `count`, they are named NAME.1, NAME.2, ....",
    fields: &[keys! {
        /// Name of the flow.
        "name": FieldKind::Name, optional "`flow1` for the first, `flow2` for the second, ...";
        /// The host that opens the flow: the sender of bulk data, the client of requests; or a pattern such as `left*`. Two patterns pair hosts in the order of their
        /// names: left1 with right1, left2 with right2. A single host is paired with each host of the other pattern.
        "from": FieldKind::Text, required;
        /// The host that accepts the flow, or a pattern.
        "to": FieldKind::Text, required;
        /// Number of flows, distributed over the pairs in turn.
        "count" ["flows"]: FieldKind::integer(1, MOST as i64), optional "one for each pair of hosts";
        /// Transport protocol.
        "protocol": FieldKind::Choice(&choices(&PROTOCOLS)), optional "`\"tcp\"`, or `\"udp\"` or `\"masque\"` where the workload needs it";
        /// Version of the Internet Protocol. With IPv6 the `mss` of a preset is 20 bytes smaller.
        "ip": FieldKind::Choice(&choices(&IP)), default "ipv4";
        /// Congestion control: short for `tcp.congestion`, or `quic.congestion` with `protocol = "quic"`, or
        /// `masque.congestion` with `protocol = "masque"`.
        "congestion": FieldKind::Choice(CHOICES), optional "as `tcp.congestion`, `quic.congestion` or `masque.congestion`";
        /// TCP settings of this flow.
        "tcp": FieldKind::Table(&tcp::TCP), optional "as `[tcp]`";
        /// QUIC settings of this flow.
        "quic": FieldKind::Table(&quic::QUIC), optional "as `[quic]`";
        /// Settings of this tunnel.
        "masque": FieldKind::Table(&masque::MASQUE), optional "as `[masque]`";
        /// Name of a `[[flow]]` with `protocol = "masque"` from the host of `from` or of `to`: the tunnel of this QUIC
        /// flow. Its packets then begin at the proxy, where they are counted. If the tunnel begins at the
        /// host of `to`, the flow is a download: that host opens the connection and asks for the data with one byte, and in
        /// records the data are in the reverse direction.
        "via": FieldKind::Text, optional "`\"\"`: no tunnel";
        /// Tunnel mode of its payloads between client and proxy, independent of the other requests of the tunnel. In real time programs
        /// have options of their own.
        "via_mode": FieldKind::Choice(&choices(&masque::MODES)), optional "the tunnel's `masque.mode`";
        /// Band of the flow's packets in both directions, at links with strict priority by flow; 0 is served first.
        "priority": FieldKind::integer(0, 63), optional "the last band";
        /// Start time.
        "start": FieldKind::DURATION, default "0s";
        /// Interval over which the starts of several flows are spread: flow i (from 0) of n starts at start + start_spread * i / n.
        "start_spread": FieldKind::DURATION, default "0s";
        /// Longest random time that is added to the start of each flow, uniformly distributed and drawn from the seed.
        "start_jitter": FieldKind::DURATION, optional "none";
        /// Port on which the host of `to` listens. If a tunnel's proxy or another connection through a tunnel uses it, the next
        /// free port.
        "port": real_time::PORT, optional "depends on the workload";
        /// Implementation of the end at `from` in real time.
        "from_by": real_time::PLAYER, default "model";
        /// Implementation of the end at `to` in real time.
        "to_by": real_time::PLAYER, default "model";
    }],
    variants: Some(&Variants {
        key: WorkloadCatalogue::KEY,
        default: Some("bulk"),
        text: "It selects the traffic.",
        list: &VARIANTS,
        later: &[],
    }),
    later: &["deadline"],
    ..Table::EMPTY
};

static IP: [(Choice, IpVersion); 2] = [
    (
        Choice::new("ipv4", "headers of 20 bytes; a link fragments packets larger than its MTU, except TCP segments."),
        IpVersion::V4,
    ),
    (Choice::new("ipv6", "headers of 40 bytes; only the sender fragments packets."), IpVersion::V6),
];

static PROTOCOLS: [(Choice, Protocol); 4] = [
    (Choice::new(Protocol::Tcp.name(), ""), Protocol::Tcp),
    (Choice::new(Protocol::Udp.name(), ""), Protocol::Udp),
    (Choice::new(Protocol::Quic.name(), "QUIC, see `[quic]`."), Protocol::Quic),
    (
        Choice::new(Protocol::Masque.name(), "a tunnel (CONNECT-UDP) between a client and a proxy, see `[masque]`."),
        Protocol::Masque,
    ),
];

/// Bytes of an application write, if the send buffer is large enough.
const USUAL_WRITE_BYTES: u64 = 64 << 10;

// --- Defaults that depend on other keys.

/// Fills in the names of flows, the settings of transports and the sizes of writes. `settings` is the filled `[tcp]`.
pub(crate) fn fill(root: &mut Tree, settings: &Tree, check: &mut Diagnostics) {
    let (quic_settings, masque_settings) =
        (quic::SETTINGS.common_settings(root), masque::SETTINGS.common_settings(root));
    let (mut over_quic, mut over_masque) = (false, false);
    let Some(ValueData::Tables(flows)) = root.get_mut("flow").map(|value| &mut value.data) else { return };
    for (index, flow) in flows.iter_mut().enumerate() {
        flow.fill("name", ValueData::Text(format!("flow{}", index + 1)));
        let protocols = WORKLOADS.find(flow.choice(WorkloadCatalogue::KEY)).protocols;
        flow.fill("protocol", ValueData::Choice(protocols[0].name()));
        let protocol = flow.choice_value("protocol", &PROTOCOLS);
        for (key, whose, owners) in [
            ("tcp", "TCP", &[Protocol::Tcp][..]),
            ("quic", "QUIC", &[Protocol::Quic]),
            ("masque", "MASQUE", &[Protocol::Masque]),
            ("via", "QUIC", &[Protocol::Quic]),
            ("via_mode", "QUIC", &[Protocol::Quic]),
            ("congestion", "TCP, QUIC and MASQUE", &[Protocol::Tcp, Protocol::Quic, Protocol::Masque]),
        ] {
            if let Some(value) = flow.get(key).filter(|_| !owners.contains(&protocol)) {
                let (path, name) = (format!("flow.{index}.{key}"), protocol.name());
                let message = format!("{path} applies to {whose}, but this flow has protocol = \"{name}\"");
                let expected = owners.iter().map(|owner| format!("protocol = \"{}\"", owner.name())).collect();
                check.add_error(value.place, &path, message, expected);
            }
        }
        match protocol {
            Protocol::Tcp => fill_tcp(flow, settings, index, check),
            Protocol::Quic => {
                over_quic = true;
                fill_quic(flow, &quic_settings, index, check);
            }
            Protocol::Masque => {
                over_masque = true;
                fill_masque(flow, &masque_settings, index, check);
            }
            Protocol::Udp => {}
        }
    }
    quic::check(&quic_settings, "quic", check);
    masque::check(&masque_settings, "masque", check);
    // Settings that no flow uses are not in the resolved file.
    for (key, used, settings) in [("quic", over_quic, quic_settings), ("masque", over_masque, masque_settings)] {
        if used || root.get(key).is_some() {
            let (place, given) = (root.location_of(key), root.is_given(key));
            root.set(key, Value { data: ValueData::Table(settings), place, given });
        }
    }
}

/// Removes and returns a flow's own transport settings, with the congestion control of the short key.
fn own_settings(flow: &mut Tree, key: &'static str, index: usize, check: &mut Diagnostics) -> Option<Tree> {
    let own = match flow.remove(key) {
        Some(Value { data: ValueData::Table(tree), .. }) => Some(tree),
        _ => None,
    };
    let Some(short) = flow.remove("congestion") else { return own };
    let mut tree = own.unwrap_or_else(|| Tree::empty_at(flow.place));
    if tree.get("congestion").is_some() {
        let path = format!("flow.{index}");
        let message = format!("{path} has both congestion and {key}.congestion");
        check.add_error(short.place, &format!("{path}.congestion"), message, vec!["only one of them".into()]);
    }
    tree.set("congestion", short);
    Some(tree)
}

/// Sets a flow's own settings if they differ from the common settings.
fn set_own(flow: &mut Tree, key: &'static str, own: Tree, common: &Tree) {
    if own != *common {
        let place = own.place;
        flow.set(key, Value { data: ValueData::Table(own), place, given: false });
    }
}

fn fill_quic(flow: &mut Tree, settings: &Tree, index: usize, check: &mut Diagnostics) {
    if let Some(mut tree) = own_settings(flow, "quic", index, check) {
        quic::fill(&mut tree, Some(settings));
        quic::check(&tree, &format!("flow.{index}.quic"), check);
        set_own(flow, "quic", tree, settings);
    }
    let send_buffer = flow.get("quic").map_or(settings, Value::table).size("send_buffer");
    fit_writes(flow, "quic", send_buffer, index, check);
}

fn fill_masque(flow: &mut Tree, settings: &Tree, index: usize, check: &mut Diagnostics) {
    let Some(mut tree) = own_settings(flow, "masque", index, check) else { return };
    masque::SETTINGS.fill(&mut tree, Some(settings), |_| true);
    masque::check(&tree, &format!("flow.{index}.masque"), check);
    set_own(flow, "masque", tree, settings);
}

fn fill_tcp(flow: &mut Tree, settings: &Tree, index: usize, check: &mut Diagnostics) {
    let path = format!("flow.{index}");
    let own = own_settings(flow, "tcp", index, check);
    // The MSS of a preset fits IPv4 packets; an IPv6 header is 20 bytes longer.
    let preset_mss = !settings.is_given("mss") && own.as_ref().is_none_or(|tree| tree.get("mss").is_none());
    let shorter = flow.choice_value("ip", &IP) == IpVersion::V6 && preset_mss;
    // Most flows have no own settings and share those of `[tcp]`.
    if own.is_some() || shorter {
        let mut tree = own.unwrap_or_else(|| Tree::empty_at(flow.place));
        tcp::fill(&mut tree, Some(settings));
        if shorter {
            let mss = ValueData::Size(tree.size("mss").saturating_sub(20).max(1));
            tree.set("mss", Value { data: mss, place: flow.place, given: false });
        }
        tcp::check(&tree, &format!("{path}.tcp"), check);
        set_own(flow, "tcp", tree, settings);
    }
    let send_buffer = flow.get("tcp").map_or(settings, Value::table).size("send_buffer");
    fit_writes(flow, "tcp", send_buffer, index, check);
}

/// Limits writes to the size of the send buffer.
fn fit_writes(flow: &mut Tree, protocol: &str, send_buffer: u64, index: usize, check: &mut Diagnostics) {
    let Some(key) = WORKLOADS.find(flow.choice(WorkloadCatalogue::KEY)).write_key else { return };
    flow.fill(key, ValueData::Size(send_buffer.min(USUAL_WRITE_BYTES)));
    let size = flow.size(key);
    // A write waits until the send buffer has space for all of it. A write larger than the buffer would wait forever.
    if size > send_buffer {
        let message = format!("flow.{index}.{key} = {} exceeds the send buffer", format_readable_size(size));
        let expected = format!("at most {protocol}.send_buffer = {}", format_readable_size(send_buffer));
        check.add_error_at(flow, &format!("flow.{index}"), key, message, &expected);
    }
}

// --- The description.

/// The flows of a scenario, and the range of flows of each `[[flow]]`.
pub(crate) struct FlowGroups {
    pub(crate) list: Vec<Flow>,
    /// The name of the `[[flow]]`, its first flow, and the end of its range (exclusive).
    pub(crate) groups: Vec<(String, usize, usize)>,
}

/// Builds the flows, and writes their number into `count` if it is absent. Returns `None` on an error.
pub(crate) fn flows(
    root: &mut Tree,
    network: &Network,
    reach: &Reachability,
    check: &mut Diagnostics,
) -> Option<FlowGroups> {
    let mut flows = FlowGroups { list: Vec::new(), groups: Vec::new() };
    let place = root.place;
    let programs = root.get("program").is_some_and(|programs| !programs.tables().is_empty());
    let common = settings(&tcp::SETTINGS, root.table("tcp"), "tcp", check)?;
    let common_quic = quic::SETTINGS.common_settings(root);
    let common_stack = common_quic.choice_value("stack", &STACKS);
    let common_quic = settings(&quic::SETTINGS, &common_quic, "quic", check)?;
    let common_masque = settings(&masque::SETTINGS, &masque::SETTINGS.common_settings(root), "masque", check)?;
    let mut through = Vec::new();
    let mut trees: &mut [Tree] = &mut [];
    if let Some(ValueData::Tables(list)) = root.get_mut("flow").map(|value| &mut value.data) {
        trees = list;
    }
    let interfaces = network.nodes.iter().any(|node| node.interface().is_some());
    if trees.is_empty() && !programs && !interfaces {
        check.add_missing(
            place,
            "flow",
            "the scenario has no flow",
            vec!["at least one [[flow]] or [[program]]".into()],
        );
    }
    let mut names = BTreeSet::new();
    let mut of_pair = BTreeMap::new();
    for (index, tree) in trees.iter_mut().enumerate() {
        if check.is_full() {
            break;
        }
        let path = format!("flow.{index}");
        let name = tree.text("name").to_string();
        if !names.insert(name.clone()) {
            let message = format!("duplicate flow name \"{name}\"");
            check.add_error(tree.location_of("name"), &format!("{path}.name"), message, vec!["a unique name".into()]);
        }
        let stack = tree.get("quic").map_or(common_stack, |own| own.table().choice_value("stack", &STACKS));
        let protocol = tree.choice_value("protocol", &PROTOCOLS);
        let carrier =
            FlowTransport { protocol, several_streams: protocol == Protocol::Quic && stack == QuicStack::Model };
        let workload = WORKLOADS.read(&mut SettingsReader { tree, path: &path, check }, &carrier);
        let Some(pairs) = pairs(tree, &path, network, reach, check) else { continue };
        tree.fill("count", ValueData::Integer(pairs.len() as i64));
        let count = usize::try_from(tree.integer("count")).unwrap_or(usize::MAX);
        if flows.list.len().saturating_add(count) > MOST {
            let total = flows.list.len().saturating_add(count);
            let message = format!("with {path}.count = {count}, the scenario has {total} flows");
            check.add_error_at(tree, &path, "count", message, &format!("at most {MOST} flows in total"));
            continue;
        }
        let udp = protocol != Protocol::Tcp;
        if let Some((from, to, total)) = pair_without_ports(&pairs, count, udp, &mut of_pair) {
            let what = if udp { "flows over UDP" } else { "TCP flows" };
            let [from, to] = [from, to].map(|host| &network.nodes[host.index()].name);
            let message = format!("with {path}.count = {count}, there are {total} {what} from \"{from}\" to \"{to}\"");
            let expected = format!("at most {MOST_FLOWS_OF_A_PAIR} flows of one protocol between two hosts");
            check.add_error_at(tree, &path, "count", message, &expected);
            continue;
        }
        let Ok(workload) = workload else { continue };
        tree.fill("port", ValueData::Integer(workload.default_port().into()));
        let transport = match protocol {
            Protocol::Udp => Transport::Udp,
            Protocol::Quic => Transport::Quic(match tree.get("quic") {
                Some(own) => settings(&quic::SETTINGS, own.table(), &format!("{path}.quic"), check)?,
                None => Arc::clone(&common_quic),
            }),
            Protocol::Masque => Transport::Masque(match tree.get("masque") {
                Some(own) => settings(&masque::SETTINGS, own.table(), &format!("{path}.masque"), check)?,
                None => Arc::clone(&common_masque),
            }),
            Protocol::Tcp => Transport::Tcp(match tree.get("tcp") {
                Some(own) => settings(&tcp::SETTINGS, own.table(), &format!("{path}.tcp"), check)?,
                None => Arc::clone(&common),
            }),
        };
        let tls = matches!(&transport, Transport::Tcp(settings) if settings.tls.is_some());
        real_time::ends(tree, protocol, tls, &path, check);
        let (start, spread) = (tree.duration("start"), tree.duration("start_spread"));
        let first = flows.list.len();
        for n in 0..count {
            let (from, to) = pairs[n % pairs.len()];
            let later = u128::from(spread.as_nanos()) * n as u128 / count as u128;
            flows.list.push(Flow {
                name: if count > 1 { format!("{name}.{}", n + 1) } else { name.clone() },
                from,
                to,
                ip: tree.choice_value("ip", &IP),
                priority: tree.get("priority").and_then(|band| u32::try_from(band.integer()).ok()),
                start: start.saturating_add(Duration::from_nanos(later as u64)),
                start_jitter: tree.get("start_jitter").map_or(Duration::ZERO, Value::duration),
                workload: workload.clone(),
                transport: transport.clone(),
                via: None,
                via_mode: tree.get("via_mode").map(|_| tree.choice_value("via_mode", &masque::MODES)),
                port: real_time::port(tree, "port"),
                from_by: real_time::player(tree, "from_by"),
                to_by: real_time::player(tree, "to_by"),
            });
        }
        let end = flows.list.len();
        if let Some(tunnel) = tunnels::tunnel_of(tree) {
            through.push(tunnels::TunneledFlow {
                name: tunnel.text().to_string(),
                place: tunnel.place,
                mode_place: tree.location_of("via_mode"),
                path: path.clone(),
                first,
                end,
            });
        } else if let Some(mode) = tree.get("via_mode") {
            let message = format!("{path}.via_mode applies to flows through a tunnel, but this flow has no via");
            check.add_error(mode.place, &format!("{path}.via_mode"), message, vec!["via = \"TUNNEL\"".into()]);
        }
        flows.groups.push((name, first, end));
    }
    let names: Vec<&str> = network.nodes.iter().map(|node| node.name.as_str()).collect();
    tunnels::find_tunnels(&through, &mut flows, &names, reach, check);
    check.is_empty().then_some(flows)
}

/// Converts a filled table into settings. Returns `None` on an error.
fn settings<S: Default>(of: &SettingsTable<S>, tree: &Tree, path: &str, check: &mut Diagnostics) -> Option<Arc<S>> {
    of.read(&mut SettingsReader { tree, path, check }).ok().map(Arc::new)
}

/// Counts the flows for each pair of hosts and protocol. Returns a pair with more flows than ports, and their number.
fn pair_without_ports(
    pairs: &[(NodeId, NodeId)],
    count: usize,
    udp: bool,
    of_pair: &mut BTreeMap<(NodeId, NodeId, bool), u32>,
) -> Option<(NodeId, NodeId, u32)> {
    pairs.iter().take(count).enumerate().find_map(|(n, (from, to))| {
        // Flows n, n + pairs, n + 2 pairs, ... use this pair.
        let here = (count - n).div_ceil(pairs.len());
        let total = of_pair.entry((*from, *to, udp)).or_insert(0);
        *total = total.saturating_add(u32::try_from(here).unwrap_or(u32::MAX));
        (*total > MOST_FLOWS_OF_A_PAIR).then_some((*from, *to, *total))
    })
}

/// Returns the pairs of hosts of a flow. `None` on an error.
fn pairs(
    tree: &Tree,
    path: &str,
    network: &Network,
    reach: &Reachability,
    check: &mut Diagnostics,
) -> Option<Vec<(NodeId, NodeId)>> {
    let from = hosts(tree, "from", path, network, check);
    let to = hosts(tree, "to", path, network, check);
    let (from, to) = (from?, to?);
    let both = tree.location_of("to");
    let path = format!("{path}.to");
    if from.len() != to.len() && from.len() != 1 && to.len() != 1 {
        let message = format!(
            "from = \"{}\" matches {} hosts, but to = \"{}\" matches {}",
            tree.text("from"),
            from.len(),
            tree.text("to"),
            to.len()
        );
        check.add_error(both, &path, message, vec!["equal numbers of hosts, or a single host on one side".into()]);
        return None;
    }
    let most = from.len().max(to.len());
    let pick = |list: &[NodeId], n: usize| if list.len() == 1 { list[0] } else { list[n] };
    let pairs: Vec<(NodeId, NodeId)> = (0..most).map(|n| (pick(&from, n), pick(&to, n))).collect();
    for (a, b) in &pairs {
        let name = |node: &NodeId| &network.nodes[node.index()].name;
        if a == b {
            let message = format!("the flow has {:?} at both ends", name(a));
            check.add_error(both, &path, message, vec!["two different hosts".into()]);
            return None;
        }
        // A flow through a tunnel requires a route to the proxy, and one from the proxy to the other host.
        if tunnels::tunnel_of(tree).is_none() && !reach.connected(*a, *b) {
            let message = format!("no route from {:?} to {:?} (hosts do not forward packets)", name(a), name(b));
            check.add_error(both, &path, message, vec!["two hosts that links and routers connect".into()]);
            return None;
        }
    }
    Some(pairs)
}

/// Returns the hosts that match a name or a pattern, in natural order. `None` on an error.
fn hosts(tree: &Tree, key: &str, path: &str, network: &Network, check: &mut Diagnostics) -> Option<Vec<NodeId>> {
    let (text, place) = (tree.text(key), tree.location_of(key));
    let path = format!("{path}.{key}");
    if !is_pattern(text) {
        let node = find_host(text, place, &path, network, check)?;
        if network.nodes[node.index()].router {
            let message = format!("{text:?} is a router, but a flow needs a host at each end");
            check.add_error(place, &path, message, abbreviate_names(network.host_names().into_iter()));
            return None;
        }
        return Some(vec![node]);
    }
    let mut found: Vec<NodeId> = Vec::new();
    for (index, node) in network.nodes.iter().enumerate() {
        if !node.router && matches(text, &node.name) {
            found.push(NodeId(index as u32));
        }
    }
    if found.is_empty() {
        let message = format!("no host matches {}", check.sources.excerpt(place));
        check.add_error(place, &path, message, abbreviate_names(network.host_names().into_iter()));
        return None;
    }
    found.sort_by(|a, b| compare_natural(&network.nodes[a.index()].name, &network.nodes[b.index()].name));
    Some(found)
}
