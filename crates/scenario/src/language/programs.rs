//! Real programs on hosts: their keys, and the description that results from them.

use super::network::{Network, find_host};
use super::real_time::{PORT, port};
use super::{Diagnostics, abbreviate_names};
use crate::description::{Command, Flow, Program, ReadyCondition};
use crate::schema::{Field, FieldKind, Table, Tree, Value, ValueData, Variant, Variants, keys};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of programs in a scenario.
const MOST_PROGRAMS: usize = 10_000;

pub(super) static PROGRAM: Table = Table {
    name: "program",
    text: "A real program at a host, in real time. The host becomes a network namespace of this machine.",
    fields: &[keys! {
        /// Its name, unique among programs.
        "name": FieldKind::Name, optional "the host's name";
        /// The host at which it runs.
        "host": FieldKind::Name, required;
        /// The program and its arguments, such as `["iperf3", "-s"]`; or a text, which `/bin/sh -c` runs.
        "command": FieldKind::Either(&FieldKind::List(&FieldKind::Text), &FieldKind::Text), required;
        /// Additional environment variables, such as `["NAME=value"]`.
        "environment": FieldKind::List(&FieldKind::Text), default "[]";
        /// Working directory, relative to the folder of the scenario file.
        "directory": FieldKind::Text, default ".";
        /// Programs that must be ready before it starts.
        "after": FieldKind::List(&FieldKind::Name), default "[]";
        /// Condition under which it is ready.
        "ready": FieldKind::Table(&READY), empty;
        /// Earliest start, from the start of the run.
        "start": FieldKind::DURATION, default "0s";
        /// Longest time that it may take. After this time it is killed and the run has failed. A program in the background has
        /// no such limit: it is ended with the run.
        "timeout": FieldKind::INTERVAL, optional "the run's `duration`";
        /// Whether it is ended with the run. The run ends when all programs that are not in the background have ended.
        /// A program in the background may end earlier, but not by a signal.
        "background": FieldKind::Boolean, default "false";
        /// Exit status with which it must end.
        "exit_status": FieldKind::integer(0, 255), optional "`0`; any in the background";
        /// The flow whose application metrics it reports. The last line of its standard output that is a JSON object, such as
        /// `{"quic_mean_rtt_s": 0.041}`, becomes rows of `figures.csv`. If all programs that are not in the background have
        /// this key, the file also runs in virtual time: the model plays these flows in their place.
        "figures_of": FieldKind::Text, optional "none";
    }],
    ..Table::EMPTY
};

const PORTS: &[Field] = &[Field::required("port", PORT, "The port.")];

static READY: Table = Table {
    name: "ready",
    text: "The condition under which a program is ready. Programs that name it in `after` then start.",
    fields: &[&[Field::default(
        "timeout",
        FieldKind::INTERVAL,
        "10s",
        "Longest time until it is ready. After this time the run has failed.",
    )]],
    variants: Some(&Variants {
        key: "kind",
        default: Some("started"),
        text: "It selects the condition.",
        list: &[
            Variant::new("started", "as soon as it has started.", &[]),
            Variant::new("tcp-port", "when a process on its host listens on the TCP port.", &[PORTS]),
            Variant::new("udp-port", "when a process on its host has bound the UDP port.", &[PORTS]),
            Variant::new(
                "output",
                "when it has written a line with a text.",
                &[&[Field::required("text", FieldKind::Text, "Text that is contained in one line.")]],
            ),
            Variant::new("exit", "when it has ended with its exit status.", &[]),
        ],
        later: &[],
    }),
    ..Table::EMPTY
};

/// Fills in defaults that depend on other keys.
pub(super) fn fill(root: &mut Tree) {
    let duration = root.duration("duration");
    let Some(ValueData::Tables(programs)) = root.get_mut("program").map(|value| &mut value.data) else { return };
    for program in programs {
        program.fill("name", ValueData::Text(program.text("host").to_string()));
        program.fill("timeout", ValueData::Duration(duration));
        if !program.boolean("background") {
            program.fill("exit_status", ValueData::Integer(0));
        }
    }
}

/// Returns the programs in a file.
pub(super) fn programs(root: &Tree, network: &Network, check: &mut Diagnostics) -> Vec<Program> {
    let trees = root.get("program").map(Value::tables).unwrap_or_default();
    if trees.len() > MOST_PROGRAMS {
        let message = format!("too many programs: {}", trees.len());
        check.add_error(root.location_of("program"), "program", message, vec![format!("at most {MOST_PROGRAMS}")]);
        return Vec::new();
    }
    let mut numbers = BTreeMap::new();
    for (index, tree) in trees.iter().enumerate() {
        if numbers.insert(tree.text("name"), index).is_some() {
            let default = if tree.is_given("name") { "" } else { " (default: the name of the host)" };
            let message = format!("duplicate program name \"{}\"{default}", tree.text("name"));
            check.add_error_at(tree, &format!("program.{index}"), "name", message, "a unique name");
        }
    }
    let mut programs = Vec::new();
    for (index, tree) in trees.iter().enumerate() {
        if check.is_full() {
            break;
        }
        programs.extend(program(tree, &format!("program.{index}"), &numbers, network, check));
    }
    order(trees, &numbers, check);
    programs
}

fn program(
    tree: &Tree,
    path: &str,
    numbers: &BTreeMap<&str, usize>,
    network: &Network,
    check: &mut Diagnostics,
) -> Option<Program> {
    let place = tree.location_of("host");
    let command = command(tree, path, check);
    let environment = environment(tree, path, check);
    plain(tree.text("directory"), tree.get("directory"), &format!("{path}.directory"), check);
    for (n, other) in tree.list("after").iter().enumerate() {
        if !numbers.contains_key(other.text()) && !check.is_full() {
            let (message, path) = (format!("unknown program \"{}\"", other.text()), format!("{path}.after.{n}"));
            check.add_unknown_name(other.place, &path, message, other.text(), numbers.keys().copied());
        }
    }
    if tree.boolean("background") && tree.get("exit_status").is_some() {
        let message = format!("{path}.exit_status has no effect, because the program has background = true");
        check.add_error_at(tree, path, "exit_status", message, "background = false, or no exit_status");
    }
    let ready = ready(tree.table("ready"), path, check);
    let host = find_host(tree.text("host"), place, &format!("{path}.host"), network, check)?;
    if network.nodes[host.index()].router {
        let message = format!("{:?} is a router, but a program needs a host", tree.text("host"));
        check.add_error(place, &format!("{path}.host"), message, abbreviate_names(network.host_names().into_iter()));
        return None;
    }
    Some(Program {
        name: tree.text("name").to_string(),
        host,
        command,
        environment,
        directory: tree.text("directory").to_string(),
        after: tree.list("after").iter().map(|name| name.text().to_string()).collect(),
        ready,
        ready_timeout: tree.table("ready").duration("timeout"),
        start: tree.duration("start"),
        timeout: tree.duration("timeout"),
        background: tree.boolean("background"),
        exit_status: tree.get("exit_status").and_then(|status| i32::try_from(status.integer()).ok()).unwrap_or(0),
        // Set when the flows are known.
        figures_of: None,
    })
}

/// Resolves the flows whose metrics programs report.
pub(super) fn figures(root: &Tree, programs: &mut [Program], flows: &[Flow], check: &mut Diagnostics) {
    let trees = root.get("program").map(Value::tables).unwrap_or_default();
    for (index, tree) in trees.iter().enumerate() {
        if check.is_full() {
            break;
        }
        let Some(named) = tree.get("figures_of") else { continue };
        let found = flows.iter().position(|flow| flow.name == named.text());
        if found.is_none() {
            let names = flows.iter().map(|flow| flow.name.as_str());
            let message = format!("unknown flow \"{}\"", named.text());
            let path = format!("program.{index}.figures_of");
            check.add_unknown_name(named.place, &path, message, named.text(), names);
        }
        // Programs with errors are not in the list.
        let program = programs.iter_mut().find(|program| program.name == tree.text("name"));
        program.into_iter().for_each(|program| program.figures_of = found);
    }
}

/// Checks that a text can be passed to the operating system (it contains no NUL) and is not empty.
fn plain(text: &str, value: Option<&Value>, path: &str, check: &mut Diagnostics) {
    let (wrong, expected) = if text.contains('\0') {
        ("contains a NUL character", "a string without NUL characters")
    } else if text.is_empty() {
        ("is empty", "a string that is not empty")
    } else if text.trim().is_empty() {
        ("contains only spaces", "a string with other characters than spaces")
    } else {
        return;
    };
    let place = value.map(|value| value.place).unwrap_or_default();
    check.add_error(place, path, format!("{path} {wrong}"), vec![expected.into()]);
}

fn command(tree: &Tree, path: &str, check: &mut Diagnostics) -> Command {
    let path = format!("{path}.command");
    let Some(value) = tree.get("command") else { return Command::Arguments(Vec::new()) };
    let ValueData::List(words) = &value.data else {
        plain(value.text(), Some(value), &path, check);
        return Command::Shell(value.text().to_string());
    };
    match words.split_first() {
        None => {
            let expected = vec!["the program and its arguments, such as [\"iperf3\", \"-s\"]".into()];
            check.add_error(value.place, &path, format!("{path} is empty"), expected);
        }
        Some((first, arguments)) => {
            plain(first.text(), Some(first), &format!("{path}.0"), check);
            // An argument may be empty.
            for (n, word) in arguments.iter().enumerate().filter(|(_, word)| word.text().contains('\0')) {
                plain(word.text(), Some(word), &format!("{path}.{}", n + 1), check);
            }
        }
    }
    Command::Arguments(words.iter().map(|word| word.text().to_string()).collect())
}

fn environment(tree: &Tree, path: &str, check: &mut Diagnostics) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let mut names = BTreeSet::new();
    for (n, value) in tree.list("environment").iter().enumerate() {
        let path = format!("{path}.environment.{n}");
        match value.text().split_once('=') {
            Some((name, _)) if !name.is_empty() && !value.text().contains('\0') && !names.insert(name) => {
                let message = format!("{path} sets {name:?} a second time");
                check.add_error(value.place, &path, message, vec!["each variable once".into()]);
            }
            Some((name, content)) if !name.is_empty() && !value.text().contains('\0') => {
                variables.push((name.to_string(), content.to_string()));
            }
            _ => {
                let message = format!("{path} = {} does not set a variable", check.sources.excerpt(value.place));
                check.add_error(value.place, &path, message, vec!["a variable such as \"NAME=value\"".into()]);
            }
        }
    }
    variables
}

fn ready(tree: &Tree, path: &str, check: &mut Diagnostics) -> ReadyCondition {
    match tree.choice("kind") {
        "tcp-port" => ReadyCondition::TcpPort(port(tree, "port")),
        "udp-port" => ReadyCondition::UdpPort(port(tree, "port")),
        "output" => {
            let text = tree.text("text");
            let found = check.sources.excerpt(tree.location_of("text"));
            let wrong = if text.is_empty() {
                Some("is empty".to_string())
            } else if text.contains(['\n', '\r']) {
                Some(format!("= {found} has more than one line"))
            } else if text.contains('\0') {
                Some(format!("= {found} contains a NUL character"))
            } else {
                None
            };
            if let Some(wrong) = wrong {
                let message = format!("{path}.ready.text {wrong}");
                let expected = "a non-empty string of one line without NUL characters";
                check.add_error_at(tree, &format!("{path}.ready"), "text", message, expected);
            }
            ReadyCondition::Output(text.to_string())
        }
        "exit" => ReadyCondition::Exit,
        "started" => ReadyCondition::Started,
        other => unreachable!("the schema does not contain the readiness {other}"),
    }
}

/// Checks that the dependencies between programs contain no cycle. It removes programs that wait for no remaining
/// program until none can be removed. If programs remain, they contain a cycle.
fn order(trees: &[Tree], numbers: &BTreeMap<&str, usize>, check: &mut Diagnostics) {
    let waits_for = |index: usize| {
        trees[index].list("after").iter().filter_map(|other| Some((numbers.get(other.text()).copied()?, other)))
    };
    let mut waiting: Vec<usize> = (0..trees.len()).map(|index| waits_for(index).count()).collect();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); trees.len()];
    for index in 0..trees.len() {
        waits_for(index).for_each(|(other, _)| followers[other].push(index));
    }
    let mut free: Vec<usize> = (0..trees.len()).filter(|index| waiting[*index] == 0).collect();
    while let Some(index) = free.pop() {
        for follower in &followers[index] {
            waiting[*follower] -= 1;
            if waiting[*follower] == 0 {
                free.push(*follower);
            }
        }
    }
    let Some(left) = waiting.iter().position(|waiting| *waiting > 0) else { return };
    // From a remaining program, follow the dependencies to remaining programs. This leads into the cycle.
    let next = |index: usize| waits_for(index).find(|(other, _)| waiting[*other] > 0);
    let mut way = vec![left];
    let (start, closing) = loop {
        let Some((other, value)) = way.last().and_then(|last| next(*last)) else { return };
        match way.iter().position(|index| *index == other) {
            Some(start) => break (start, value),
            None => way.push(other),
        }
    };
    let index = way.last().copied().unwrap_or(left);
    let circle = &way[start..];
    let names: Vec<String> = circle.iter().map(|index| format!("{:?}", trees[*index].text("name"))).collect();
    let message = match names.as_slice() {
        [one] => format!("program {one} waits for itself"),
        few if (2..=8).contains(&few.len()) => format!("programs {} wait for each other", few.join(", ")),
        [first, ..] => format!("program {first} and {} other programs wait for each other", names.len() - 1),
        [] => return,
    };
    let path = format!("program.{index}.after");
    check.add_error(closing.place, &path, message, vec!["an order of programs without a cycle".into()]);
}
