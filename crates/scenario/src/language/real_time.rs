//! The keys for runs in real time, and the selection of the real hosts.

use super::Diagnostics;
use super::network::Network;
use super::traffic::FlowGroups;
use crate::description::{EndpointBackend, InterfaceKind, LatenessPolicy, Program, RealTimeSettings, StallPolicy};
use crate::schema::component::choices;
use crate::schema::{Choice, FieldKind, Table, Tree, Value, keys, named};
use fullpipe_units::NodeId;
use fullpipe_workload::{Protocol, WORKLOADS, WorkloadCatalogue};
use std::collections::BTreeMap;

pub(super) const PORT: FieldKind = FieldKind::integer(1, 65_535);

static PLAYERS: [(Choice, EndpointBackend); 3] = named! {
    /// Fullpipe's model.
    "model" => EndpointBackend::Model;
    /// a socket of this machine's kernel, driven by Fullpipe according to the workload (`bulk` and `constant-rate`, without
    /// TLS); in virtual time the model.
    "kernel" => EndpointBackend::Kernel;
    /// a `[[program]]` of the host, or the system connected to its `interface`.
    "program" => EndpointBackend::Program;
};

static PLAYER_NAMES: [Choice; 3] = choices(&PLAYERS);

/// The backend of an end of a flow.
pub(super) const PLAYER: FieldKind = FieldKind::Choice(&PLAYER_NAMES);

static POLICIES: [(Choice, LatenessPolicy); 2] = [
    (
        Choice::new("best-effort", "the run is marked as late; the exit status does not change."),
        LatenessPolicy::BestEffort,
    ),
    (
        Choice::new("hard-limit", "the result is not valid, and the command ends with exit status 3."),
        LatenessPolicy::HardLimit,
    ),
];

static AFTER_STALL: [(Choice, StallPolicy); 2] = [
    (Choice::new("catch-up", "overdue packets are sent at once."), StallPolicy::CatchUp),
    (Choice::new("pause", "the model's clock is stopped for the time of the stall."), StallPolicy::Pause),
];

static ATTACHMENTS: [(Choice, InterfaceKind); 2] = named! {
    /// a pair of virtual Ethernet interfaces, the emulator's end read by a packet socket.
    "veth" => InterfaceKind::Veth;
    /// a TUN device (requires access to /dev/net/tun); without the kernel's arrival timestamps.
    "tun" => InterfaceKind::Tun;
};

pub(super) static REAL_TIME: Table = Table {
    name: "real time",
    text: "Settings of `fullpipe run --real-time`, where `[[program]]`s and sockets of this machine's kernel \
           communicate over the network of the file. A host is real if it has a program, an `interface`, or an end of a flow \
           that the kernel or a program implements; the model implements no end of a flow there. In virtual time these keys \
           have no effect.",
    fields: &[keys! {
        /// Consequence if the run falls behind real time.
        "policy": FieldKind::Choice(&choices(&POLICIES)), default "best-effort";
        /// Lateness above which an event or packet counts as late.
        "late_after": FieldKind::DURATION, default "1ms";
        /// Largest share of late events, subframes, packets and arrivals, for each of the four, with which the run is on time.
        "late_share": FieldKind::PROBABILITY, default "0.01";
        /// A gap in the emulator's loop that is longer than this is a stall.
        "stall_after": FieldKind::INTERVAL, default "25ms";
        /// Treatment of the time of a stall.
        "after_stall": FieldKind::Choice(&choices(&AFTER_STALL)), default "catch-up";
        /// How the namespaces of hosts are connected to the emulator.
        "attachment": FieldKind::Choice(&choices(&ATTACHMENTS)), default "veth";
        /// Whether all arrivals are written with their timestamps, for replay in virtual time.
        "record_arrivals": FieldKind::Boolean, default "false";
    }],
    ..Table::EMPTY
};

/// Converts a filled `[real_time]` table into settings.
pub(super) fn settings(tree: &Tree) -> RealTimeSettings {
    RealTimeSettings {
        policy: tree.choice_value("policy", &POLICIES),
        late_after: tree.duration("late_after"),
        late_share: tree.number("late_share"),
        stall_after: tree.duration("stall_after"),
        after_stall: tree.choice_value("after_stall", &AFTER_STALL),
        attachment: tree.choice_value("attachment", &ATTACHMENTS),
        record_arrivals: tree.boolean("record_arrivals"),
    }
}

/// Returns a port. The schema limits it to 16 bits.
pub(super) fn port(tree: &Tree, key: &str) -> u16 {
    u16::try_from(tree.integer(key)).unwrap_or(u16::MAX)
}

pub(super) fn player(tree: &Tree, key: &str) -> EndpointBackend {
    tree.choice_value(key, &PLAYERS)
}

/// Checks that kernel sockets can run the ends of a flow as the file states. `tls` states whether the stream is
/// protected.
pub(super) fn ends(flow: &Tree, protocol: Protocol, tls: bool, path: &str, check: &mut Diagnostics) {
    let by_program = |key: &str| player(flow, key) == EndpointBackend::Program;
    let over_quic = match protocol {
        Protocol::Tcp | Protocol::Udp => None,
        Protocol::Quic => Some("a program cannot communicate with the simulated end of a QUIC flow"),
        Protocol::Masque => Some("client and proxy of a tunnel must both be programs or both be modeled"),
    };
    if let Some(reason) = over_quic.filter(|_| by_program("from_by") != by_program("to_by")) {
        let [program, other] = if by_program("from_by") { ["from_by", "to_by"] } else { ["to_by", "from_by"] };
        let player = quoted(player(flow, other));
        let message = format!("{path} has {program} = \"program\" and {other} = {player}, but {reason}");
        let expected = vec![format!("{other} = \"program\""), format!("{program} = \"model\"")];
        check.add_error(flow.location_of(program), &format!("{path}.{program}"), message, expected);
    }
    let workload = WORKLOADS.find(flow.choice(WorkloadCatalogue::KEY));
    for key in ["from_by", "to_by"].into_iter().filter(|key| player(flow, key) == EndpointBackend::Kernel) {
        let (unsupported, mut expected): (String, Vec<String>) = if !workload.on_sockets {
            let sent = WORKLOADS.iter().filter(|workload| workload.on_sockets);
            let expected = sent.map(|workload| format!("workload = \"{}\"", workload.declaration.name)).collect();
            (format!("workload = \"{}\"", workload.declaration.name), expected)
        } else if over_quic.is_some() {
            let expected = vec!["protocol = \"tcp\"".to_string(), "protocol = \"udp\"".to_string()];
            (format!("protocol = \"{}\"", protocol.name()), expected)
        } else if tls {
            ("TLS".to_string(), vec!["tcp.tls = \"none\"".to_string()])
        } else {
            continue;
        };
        expected.push(format!("{key} = \"model\""));
        let message = format!("{path}.{key} = \"kernel\" does not support {unsupported}");
        check.add_error(flow.location_of(key), &format!("{path}.{key}"), message, expected);
    }
}

/// The reason why a host is real, for errors.
struct Reason {
    text: String,
    program: bool,
    interface: bool,
}

/// Marks the real hosts and checks that the flows are compatible with them.
pub(super) fn hosts(
    root: &Tree,
    network: &mut Network,
    flows: &FlowGroups,
    programs: &[Program],
    check: &mut Diagnostics,
) {
    let mut real: BTreeMap<NodeId, Reason> = BTreeMap::new();
    for program in programs {
        let text = "it has a [[program]]".to_string();
        real.entry(program.host).or_insert(Reason { text, program: true, interface: false });
    }
    for (index, node) in network.nodes.iter().enumerate() {
        if let Some(interface) = node.interface() {
            let text = format!("it has interface = \"{interface}\"");
            let host = NodeId(index as u32);
            let reason = Reason { text, program: false, interface: true };
            real.entry(host).or_insert(reason).interface = true;
            programs_beyond(root, (host, interface), programs, check);
        }
    }
    for flow in &flows.list {
        for (host, player, what) in [(flow.from, flow.from_by, "from_by"), (flow.to, flow.to_by, "to_by")] {
            if player != EndpointBackend::Model {
                let text = || format!("flow \"{}\" has {what} = {}", flow.name, quoted(player));
                real.entry(host).or_insert_with(|| Reason { text: text(), program: false, interface: false });
            }
        }
    }
    if !real.is_empty() {
        players_fit(root, network, flows, &real, check);
    }
    for host in real.keys() {
        network.nodes[host.index()].real = true;
    }
}

/// Checks that no program runs on a host beyond an interface.
fn programs_beyond(root: &Tree, (host, interface): (NodeId, &str), programs: &[Program], check: &mut Diagnostics) {
    let trees = root.get("program").map(Value::tables).unwrap_or_default();
    for (index, (tree, program)) in trees.iter().zip(programs).enumerate().filter(|(_, (_, one))| one.host == host) {
        let (name, host) = (&program.name, tree.text("host"));
        let message =
            format!("program \"{name}\" cannot run on host \"{host}\", which has interface = \"{interface}\"");
        let expected = vec!["a host without interface".to_string()];
        check.add_error(tree.location_of("host"), &format!("program.{index}.host"), message, expected);
    }
}

fn quoted(player: EndpointBackend) -> &'static str {
    match player {
        EndpointBackend::Model => "\"model\"",
        EndpointBackend::Kernel => "\"kernel\"",
        EndpointBackend::Program => "\"program\"",
    }
}

/// Checks that real hosts have no model endpoints, and that every endpoint with the backend `program` has a program.
fn players_fit(
    root: &Tree,
    network: &Network,
    flows: &FlowGroups,
    real: &BTreeMap<NodeId, Reason>,
    check: &mut Diagnostics,
) {
    let trees = root.get("flow").map(Value::tables).unwrap_or_default();
    for (index, (tree, (name, first, end))) in trees.iter().zip(&flows.groups).enumerate() {
        for key in ["from_by", "to_by"] {
            let player = player(tree, key);
            let ends = flows.list[*first..*end].iter().map(|flow| if key == "from_by" { flow.from } else { flow.to });
            let mut hosts = ends.map(|host| (host, real.get(&host)));
            let path = format!("flow.{index}.{key}");
            let wrong = match player {
                EndpointBackend::Kernel => hosts.find(|(_, reason)| reason.is_some_and(|reason| reason.interface)),
                EndpointBackend::Model => hosts.find_map(|(host, reason)| Some((host, Some(reason?)))),
                EndpointBackend::Program => {
                    hosts.find(|(_, reason)| reason.is_none_or(|reason| !reason.program && !reason.interface))
                }
            };
            let Some((host, reason)) = wrong else { continue };
            let node = &network.nodes[host.index()];
            let host = &node.name;
            let default = if tree.is_given(key) { "" } else { " (default)" };
            let found = format!("{path} = {}{default} is not possible", quoted(player));
            let (message, expected) = match (player, reason) {
                (EndpointBackend::Model, Some(reason)) => (
                    format!("{found} at \"{host}\", a real host ({})", reason.text),
                    // The kernel of this machine cannot run an end beyond an interface.
                    (if reason.interface { &["program"][..] } else { &["kernel", "program"] })
                        .iter()
                        .map(|player| format!("{key} = \"{player}\""))
                        .collect(),
                ),
                (EndpointBackend::Kernel, _) => (
                    format!(
                        "{found} at host \"{host}\", which has interface = \"{}\"",
                        node.interface().unwrap_or_default()
                    ),
                    vec![format!("{key} = \"program\"")],
                ),
                _ => (
                    format!("flow {name} has {key} = \"program\", but no program runs at {host}"),
                    vec![format!("a [[program]] with host = \"{host}\"")],
                ),
            };
            check.add_error(tree.location_of(key), &path, message, expected);
        }
    }
}
