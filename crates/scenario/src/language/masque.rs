//! MASQUE's keys: tunnels (CONNECT-UDP), and flows that go through one.

use super::Check;
use super::distributions::{TIME_OR_RANDOM, checked, distribution};
use super::quic::{CRYPTOGRAPHY, DATAGRAM, GRANULARITY};
use super::reach::Reach;
use super::tcp::{CONGESTION, CONTROLS};
use super::traffic::Flows;
use crate::description::{Masque, QueueLimit, Transport};
use crate::schema::Settings;
use crate::schema::{Choice, Field, Kind, Place, Table, Tree, Value};

/// The controls, and none.
static TUNNEL_CONGESTION: &[Choice] = &{
    let mut list = [Choice::later(""); CONTROLS + 1];
    list[0] = Choice::new(
        "none",
        "whatever is handed to the tunnel leaves at once (datagram mode). Outside of laboratories allowed only where all \
         that is carried is known to be controlled (RFC 9298 section 6).",
    );
    let mut n = 0;
    while n < CONTROLS {
        list[n + 1] = CONGESTION[n];
        n += 1;
    }
    list
};

const fn field(key: &'static str, kind: Kind, default: &'static str, text: &'static str) -> Field {
    Field::optional(key, kind, default, text)
}

pub(crate) static MASQUE: Table = Table {
    name: "masque",
    text: "Settings of tunnels (CONNECT-UDP, RFC 9298) at client and proxy. `[masque]` holds for all flows with `protocol = \
           \"masque\"`, `[flow.masque]` after a `[[flow]]` for that one. Client and proxy are the programs that also run on \
           real sockets; the ends take no time to do what they do.",
    fields: &[&[
        field(
            "mode",
            Kind::Choice(&[
                Choice::new("datagram", "payloads in QUIC DATAGRAM frames: what is lost stays lost."),
                Choice::new("stream", "payloads in capsules on the request stream: what is lost is sent again."),
            ]),
            "`\"datagram\"`",
            "How payloads travel between client and proxy.",
        ),
        field("congestion", Kind::Choice(TUNNEL_CONGESTION), "`\"cubic\"`", "Congestion control of the tunnel."),
        field("hystart", Kind::Boolean, "`true`", "HyStart++ (RFC 9406) in controls that have slow start."),
        field("initial_window", Kind::Integer { min: 1, max: 1000 }, "`10`", "Initial window (RFC 9002: 10).")
            .unit("packets"),
        field(
            "initial_mtu",
            DATAGRAM,
            "`\"1280B\"`",
            "UDP payload of a full packet of the tunnel before the path is known to carry more. Inner packets of 1200 bytes, \
             with which every QUIC connection begins, need 1240.",
        ),
        field(
            "largest_mtu",
            DATAGRAM,
            "`\"1452B\"`",
            "Largest UDP payload that the path is probed for (RFC 8899); not above `initial_mtu`: it is not probed.",
        ),
        field(
            "queue_limit",
            Kind::QueueLimit,
            "`\"1MiB\"`",
            "How much of one request's payload may wait ahead of the QUIC stack, at either end: bytes, time, or `unlimited`.",
        ),
        field(
            "drop_policy",
            Kind::Choice(&[Choice::new("newest", "what arrives."), Choice::new("oldest", "what has waited longest.")]),
            "`\"newest\"`",
            "What is dropped when the limit is reached.",
        ),
        field(
            "scheduler",
            Kind::Choice(&[
                Choice::new("round-robin", "requests take turns."),
                Choice::new("fifo", "what came first goes first."),
            ]),
            "`\"round-robin\"`",
            "Which request's payload goes next, in datagram mode.",
        ),
        field(
            "coalesce",
            Kind::Boolean,
            "`true`",
            "Whether capsules that wait together share a DATA frame, in stream mode.",
        ),
        field(
            "datagram_buffer",
            Kind::Size { min: 1200, max: 1 << 30 },
            "`\"128KiB\"`",
            "Datagram mode: what is handed to the QUIC stack ahead of its congestion control.",
        ),
        field(
            "send_buffer",
            Kind::Size { min: 1200, max: 1 << 30 },
            "`\"4MiB\"`",
            "Stream mode: what the QUIC stack keeps, of all requests, until it is acknowledged.",
        ),
        field(
            "receive_buffer",
            Kind::Size { min: 1200, max: 1 << 28 },
            "`\"1536KiB\"`",
            "What of a stream may be on its way or unread (flow control); eight times as much of all.",
        ),
        field(
            "idle_timeout",
            Kind::DURATION,
            "`\"150s\"`",
            "Silence after which the tunnel, or a request in it, is over; RFC 9298 asks for two minutes at least.",
        ),
        field(
            "reaction",
            TIME_OR_RANDOM,
            "`\"0s\"`",
            "How long client and proxy take from a datagram's arrival to what they do about it, always the same or drawn anew each \
             time; what comes meanwhile is dealt with together. Of several tunnels at a host that with the longest mean counts.",
        ),
        field(
            "timer_granularity",
            GRANULARITY,
            "`\"0s\"`",
            "Timers of client and proxy ring at ticks this far apart, as a program's do; of several tunnels at a host the coarsest \
             count.",
        ),
        field(
            "certificates",
            Kind::Size { min: 0, max: 1 << 20 },
            "`\"3000B\"`",
            "Size of the proxy's certificate chain; with `cryptography = \"tls\"` 400 to 60 000 bytes.",
        ),
        CRYPTOGRAPHY,
    ]],
    ..Table::EMPTY
};

/// The table and its defaults.
pub(super) static SETTINGS: Settings = Settings {
    table: &MASQUE,
    values: &[
        ("mode", "datagram"),
        ("congestion", "cubic"),
        ("hystart", "true"),
        ("initial_window", "10"),
        ("initial_mtu", "1280B"),
        ("largest_mtu", "1452B"),
        ("queue_limit", "1MiB"),
        ("drop_policy", "newest"),
        ("scheduler", "round-robin"),
        ("coalesce", "true"),
        ("datagram_buffer", "128KiB"),
        ("send_buffer", "4MiB"),
        ("receive_buffer", "1536KiB"),
        ("idle_timeout", "150s"),
        ("reaction", "0s"),
        ("timer_granularity", "0s"),
        ("certificates", "3000B"),
        ("cryptography", "null"),
    ],
};

/// Fills in every key of such a table, from `inherited` if there is one.
pub(crate) fn fill(tree: &mut Tree, inherited: Option<&Tree>) {
    SETTINGS.fill(tree, inherited, |_| true);
}

/// The filled `[masque]`, for flows.
pub(crate) fn common(root: &Tree) -> Tree {
    SETTINGS.common(root)
}

/// What the schema cannot say of a filled table.
pub(crate) fn check(tree: &Tree, path: &str, check: &mut Check) {
    distribution(tree, "reaction", path, check);
    if let QueueLimit::Packets(_) = tree.queue_limit("queue_limit") {
        let message = "a tunnel does not count the packets that wait".to_string();
        let expected = vec!["bytes".into(), "a time".into(), "\"unlimited\"".into()];
        check.error(tree.place_of("queue_limit"), &format!("{path}.queue_limit"), message, expected);
    }
    if tree.choice("mode") == "stream" && tree.choice("congestion") == "none" {
        let message = "a stream needs congestion control (RFC 9298 section 6 spares datagrams alone)".to_string();
        let expected = vec!["mode = \"datagram\"".into(), "another congestion control".into()];
        check.error(tree.place_of("congestion"), &format!("{path}.congestion"), message, expected);
    }
}

/// The settings of a filled table.
pub(crate) fn settings(tree: &Tree) -> Masque {
    // The schema's bounds keep them within their types.
    let datagram = |key: &str| u16::try_from(tree.size(key)).unwrap_or(u16::MAX);
    let initial_mtu_bytes = datagram("initial_mtu");
    Masque {
        stream_mode: tree.choice("mode") == "stream",
        congestion: Some(tree.choice("congestion")).filter(|name| *name != "none").map(str::to_string),
        hystart: tree.boolean("hystart"),
        initial_window_packets: u64::try_from(tree.integer("initial_window")).unwrap_or(1),
        initial_mtu_bytes,
        largest_mtu_bytes: Some(datagram("largest_mtu")).filter(|largest| *largest > initial_mtu_bytes),
        queue_limit: tree.queue_limit("queue_limit"),
        drop_oldest: tree.choice("drop_policy") == "oldest",
        in_order_of_arrival: tree.choice("scheduler") == "fifo",
        coalesce: tree.boolean("coalesce"),
        datagram_buffer_bytes: tree.size("datagram_buffer"),
        send_buffer_bytes: tree.size("send_buffer"),
        receive_buffer_bytes: tree.size("receive_buffer"),
        idle_timeout: tree.duration("idle_timeout"),
        reaction: checked(tree, "reaction"),
        timer_granularity: tree.duration("timer_granularity"),
        certificate_bytes: tree.size("certificates"),
        tls: tree.choice("cryptography") == "tls",
    }
}

/// The tunnel that a `[[flow]]` names.
pub(super) fn tunnel_of(flow: &Tree) -> Option<&Value> {
    flow.get("via").filter(|name| !name.text().is_empty())
}

/// A `[[flow]]` that goes through a tunnel: the tunnel's name, where it stands, the path for errors, and its flows.
pub(crate) struct Through {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) path: String,
    pub(crate) first: usize,
    pub(crate) end: usize,
}

/// Finds the tunnel of each flow that goes through one: of those that the name stands for, the first that begins at the
/// flow's host.
pub(crate) fn find_tunnels(wanted: &[Through], flows: &mut Flows, names: &[&str], reach: &Reach, check: &mut Check) {
    for Through { name, place, path, first, end } in wanted {
        let group = flows.groups.iter().find(|(group, _, _)| group == name).map(|(_, first, end)| *first..*end);
        let is_tunnel = |index: &usize| matches!(flows.list[*index].transport, Transport::Masque(_));
        let Some(group) = group.filter(|group| group.clone().all(|index| is_tunnel(&index))) else {
            let tunnels = flows.groups.iter().filter(|(_, first, _)| is_tunnel(first));
            let message = format!("there is no tunnel {name}");
            let mut expected: Vec<String> = tunnels.map(|(name, _, _)| format!("\"{name}\"")).collect();
            if expected.is_empty() {
                expected.push("a [[flow]] with protocol = \"masque\"".into());
            }
            check.error(*place, path, message, expected);
            continue;
        };
        if matches!(&flows.list[*first].transport, Transport::Quic(settings) if settings.model.is_some()) {
            let message = "packets of the QUIC model have no bytes to go through a tunnel".to_string();
            check.error(*place, path, message, vec!["quic.stack = \"noq\"".into()]);
            continue;
        }
        for index in *first..*end {
            let (from, to) = (flows.list[index].from, flows.list[index].to);
            let host = names[from.index()];
            let Some(tunnel) = group.clone().find(|tunnel| flows.list[*tunnel].from == from) else {
                let message = format!("no tunnel of {name} begins at {host}");
                check.error(*place, path, message, vec![format!("a tunnel with from = \"{host}\"")]);
                break;
            };
            let proxy = flows.list[tunnel].to;
            if proxy == to || !reach.connected(proxy, to) {
                let message =
                    format!("there is no way from the proxy {} to {}", names[proxy.index()], names[to.index()]);
                check.error(*place, path, message, vec!["a proxy that links and routers join to the host".into()]);
                break;
            }
            flows.list[index].via = Some(tunnel);
        }
    }
}
