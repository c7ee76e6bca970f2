//! TCP's keys and the two presets that fill them.
//!
//! Where a value comes from, first found wins: the flow's own key, the preset that the flow's `[flow.tcp]` names, the
//! key in `[tcp]`, the preset that `[tcp]` names.

use super::Check;
use crate::description::Tcp;
use crate::schema::{Choice, Data, Default, Field, Kind, Table, Tree, Value, resolved};
use fullpipe_congestion::catalogue::{ENTRIES, LATER};
use fullpipe_tcp::{Config, Ecn, EcnFeedback, KeepAlive, LossDetection};
use fullpipe_transport::tls;
use fullpipe_units::Duration;

pub(super) const CONTROLS: usize = ENTRIES.len() + LATER.len();

/// The congestion controls that a file can name: those of the catalogue, and those that it knows for later.
pub const CONGESTION: &[Choice] = &controls();

const fn controls() -> [Choice; CONTROLS] {
    let mut list = [Choice::later(""); CONTROLS];
    let mut n = 0;
    while n < ENTRIES.len() {
        list[n] = Choice::new(ENTRIES[n].name, ENTRIES[n].text);
        n += 1;
    }
    while n < CONTROLS {
        list[n] = Choice::later(LATER[n - ENTRIES.len()]);
        n += 1;
    }
    list
}

const BY_PRESET: &str = "by preset";
const RTO: Kind = Kind::Duration { min: Duration::from_nanos(1), max: Duration::from_secs(3600) };

const fn field(key: &'static str, kind: Kind, text: &'static str) -> Field {
    Field::optional(key, kind, BY_PRESET, text)
}

pub(crate) static TCP: Table = Table {
    name: "tcp",
    text: "Settings of TCP at both ends. `[tcp]` holds for all flows, `[flow.tcp]` after a `[[flow]]` for that one. A flow \
           that names a preset of its own starts from that preset; otherwise it starts from `[tcp]`.",
    fields: &[&[
        Field::optional(
            "preset",
            Kind::Choice(&[
                Choice::new("linux", "a Linux host with buffers of 32 MiB, whose programs set TCP_NODELAY."),
                Choice::new("ns3", "the defaults of ns-3 (3.33 to 3.37)."),
            ]),
            "`\"linux\"`; in a flow as `[tcp]`",
            "Fills in the keys that are not given.",
        ),
        field("congestion", Kind::Choice(CONGESTION), "Congestion control."),
        field(
            "mss",
            Kind::Size { min: 16, max: 65_000 },
            "Payload of a full data segment; options come on top (1448B with timestamps fills 1500 bytes).",
        ),
        field("initial_window", Kind::Integer { min: 1, max: 1000 }, "Initial window (RFC 6928: 10).").unit("segments"),
        field(
            "send_buffer",
            Kind::Size { min: 16, max: 16 << 30 },
            "What is written and not yet acknowledged. 32MiB limits nothing below 6 Gbit/s at 40 ms.",
        ),
        field("receive_buffer", Kind::Size { min: 16, max: 1 << 30 }, "Bounds the window that is offered."),
        Field::optional(
            "initial_receive_window",
            Kind::Size { min: 16, max: 1 << 30 },
            "all of `receive_buffer` from the start",
            "The receive buffer begins with so much and grows with what the application reads in a round-trip time (Linux: \
             64KiB).",
        ),
        field("sack", Kind::Boolean, "Selective acknowledgements (RFC 2018)."),
        field("timestamps", Kind::Boolean, "Timestamps (RFC 7323)."),
        field(
            "timestamp_tick",
            Kind::Duration { min: Duration::from_nanos(1), max: Duration::from_secs(1) },
            "Granularity of timestamps and of round-trip times taken from them.",
        ),
        field(
            "rtt_from_timestamps",
            Kind::Boolean,
            "Take round-trip times from echoed timestamps instead of each segment's own departure time.",
        ),
        field("window_scaling", Kind::Boolean, "Window scaling (RFC 7323)."),
        field("mss_option", Kind::Boolean, "Announce the MSS on SYN segments."),
        field(
            "delayed_ack_segments",
            Kind::Integer { min: 1, max: 255 },
            "Segments acknowledged by one acknowledgement; 1: each at once.",
        )
        .unit("segments"),
        field(
            "delayed_ack_timeout",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(10) },
            "Longest delay of an acknowledgement.",
        ),
        field(
            "nagle",
            Kind::Boolean,
            "Nagle's algorithm (RFC 9293 section 3.7.4). Off in both presets: bulk senders set TCP_NODELAY.",
        ),
        field("min_rto", RTO, "Smallest retransmission time-out."),
        field("initial_rto", RTO, "Retransmission time-out before the first round-trip sample."),
        field("max_rto", RTO, "Largest retransmission time-out."),
        field("idle_restart", Kind::Boolean, "Shrink the window after an idle time-out (RFC 5681 section 4.1)."),
        field("max_syn_retransmissions", Kind::Integer { min: 0, max: 255 }, "SYN retransmissions before giving up."),
        field("max_retransmissions", Kind::Integer { min: 1, max: 255 }, "Time-outs in a row before giving up."),
        Field::optional(
            "user_timeout",
            Kind::INTERVAL,
            "off",
            "Give up when data were not acknowledged for so long (RFC 9293 section 3.8.3).",
        ),
        Field::optional("fin_wait_2_timeout", Kind::INTERVAL, "off", "Longest stay in FIN-WAIT-2."),
        Field::optional(
            "keep_alive",
            Kind::INTERVAL,
            "off",
            "Silence after which the peer is asked for a sign of life (RFC 9293 section 3.8.4), then each 75 s, nine times.",
        ),
        field(
            "time_wait",
            Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(3600) },
            "Length of TIME-WAIT.",
        ),
        field(
            "first_segment_acknowledged_at_once",
            Kind::Boolean,
            "Acknowledge the first data segment at once instead of delaying, as ns-3 does.",
        ),
        field(
            "quick_ack",
            Kind::Boolean,
            "Acknowledge segments one by one at the start of a connection, after a silence, after data that came again, where \
             a mark begins to be echoed, and while the receive window grows, as Linux does.",
        ),
        field(
            "fin_with_data_acknowledged_twice",
            Kind::Boolean,
            "Acknowledge a FIN twice where the data that it comes with call for an acknowledgement, as ns-3 does.",
        ),
        field(
            "loss_detection",
            Kind::Choice(&[
                Choice::new("rack", "by time: RACK (RFC 8985)."),
                Choice::new("duplicate-acks", "by selective or duplicate acknowledgements (RFC 6675)."),
            ]),
            "How losses are found.",
        ),
        field(
            "tail_loss_probe",
            Kind::Boolean,
            "Tail loss probes (RFC 8985 section 7); only with `loss_detection = \"rack\"`.",
        ),
        field("dsack", Kind::Boolean, "Report duplicates that arrive (D-SACK, RFC 2883)."),
        field(
            "dsack_undo",
            Kind::Boolean,
            "Take a reduction back once D-SACK says that every retransmission was needless, as Linux does.",
        ),
        field(
            "eifel",
            Kind::Boolean,
            "Take a reduction back when an echoed timestamp shows that the original arrived (RFC 3522, 4015).",
        ),
        field("frto", Kind::Boolean, "Tell spurious time-outs by new data sent first (F-RTO, RFC 5682)."),
        field(
            "limited_transmit",
            Kind::Boolean,
            "A new segment for each of the first two duplicate acknowledgements (RFC 3042), with `duplicate-acks`.",
        ),
        Field::optional(
            "black_hole_timeouts",
            Kind::Integer { min: 1, max: 255 },
            "never",
            "Time-outs in a row of a full segment after which smaller ones are tried (RFC 4821).",
        ),
        field(
            "ecn",
            Kind::Choice(&[
                Choice::new("off", "never."),
                Choice::new("passive", "where the peer asks for it."),
                Choice::new("active", "asks for it, too."),
            ]),
            "Explicit congestion notification (RFC 3168).",
        ),
        field(
            "ecn_feedback",
            Kind::Choice(&[
                Choice::new("classic", "until the sender has answered (RFC 3168)."),
                Choice::new("dctcp", "segment by segment (RFC 8257)."),
                Choice::new("accurate", "counters of packets and bytes (AccECN, RFC 9768)."),
            ]),
            "How marks are fed back. Beside `congestion = \"dctcp\"` the default is `dctcp`, with `ecn = \"active\"`; with \
             `accurate` DCTCP sends ECT(1), which a `dualpi2` queue serves with low latency.",
        ),
        field(
            "proportional_ecn_reduction",
            Kind::Boolean,
            "After a mark the window falls over a round trip (proportional rate reduction), as Linux does, instead of at once.",
        ),
        field("pacing", Kind::Boolean, "Pace every control, as Linux's fq does."),
        field("pacing_quantum", Kind::Integer { min: 1, max: 1000 }, "Segments that leave together when paced.")
            .unit("segments"),
        Field::default(
            "fast_open",
            Kind::Choice(&[
                Choice::new("off", "data follow the handshake."),
                Choice::new("ask", "the first connection between two hosts asks for a cookie, later ones use it."),
                Choice::new("known", "the client holds a cookie from the start."),
            ]),
            "off",
            "TCP Fast Open (RFC 7413): data with the SYN.",
        ),
        Field::default(
            "tls",
            Kind::Choice(&[
                Choice::new("none", "the stream is not protected."),
                Choice::new("full", "TLS 1.3 with a certificate: one round trip more (RFC 8446)."),
                Choice::new("resumed", "a key from an earlier connection instead of a certificate."),
                Choice::new("early-data", "that, and data with the first flight."),
            ]),
            "none",
            "A model of TLS 1.3 above the connection: flights and records, no cryptography.",
        ),
        Field::default(
            "tls_certificates",
            Kind::Size { min: 0, max: 1 << 20 },
            "3000B",
            "Size of the server's certificate chain.",
        ),
        field("hystart", Kind::Boolean, "HyStart++ (RFC 9406) in controls that have slow start."),
        Field::default(
            "hystart_variant",
            Kind::Choice(&[
                Choice::new("rfc", "HyStart++ (RFC 9406)."),
                Choice::new(
                    "linux",
                    "that of Linux's CUBIC, by trains of acknowledgements and delay, and its growth by a twentieth per round trip until the first loss; `linux-reno` has none then.",
                ),
            ]),
            "rfc",
            "Which HyStart.",
        ),
        field("receiver_closes", Kind::Boolean, "Whether the receiver closes its side when the sender has closed."),
    ]],
    ..Table::EMPTY
};

/// A preset: its name, the connection that it describes, and what belongs to the control and the application.
pub(crate) struct Preset {
    name: &'static str,
    connection: fn() -> Config,
    congestion: &'static str,
    hystart: bool,
    receiver_closes: bool,
}

pub(crate) static PRESETS: [Preset; 2] = [
    Preset {
        name: "linux",
        connection: Config::linux_large_buffers,
        congestion: "cubic",
        hystart: true,
        receiver_closes: true,
    },
    Preset { name: "ns3", connection: Config::ns3, congestion: "newreno", hystart: true, receiver_closes: false },
];

impl Preset {
    /// The value of every key that a preset fills in: the reverse of [`settings`].
    fn values(&self) -> Vec<(&'static str, Data)> {
        let connection = (self.connection)();
        let integer = |number: u32| Data::Integer(i64::from(number));
        vec![
            ("congestion", Data::Choice(self.congestion)),
            ("mss", Data::Size(u64::from(connection.mss_bytes))),
            ("initial_window", integer(connection.initial_window_segments)),
            ("send_buffer", Data::Size(connection.send_buffer_bytes)),
            ("receive_buffer", Data::Size(connection.receive_buffer_bytes)),
            ("sack", Data::Boolean(connection.sack)),
            ("timestamps", Data::Boolean(connection.timestamps)),
            ("timestamp_tick", Data::Duration(connection.timestamp_tick)),
            ("rtt_from_timestamps", Data::Boolean(connection.rtt_from_timestamps)),
            ("window_scaling", Data::Boolean(connection.window_scaling)),
            ("mss_option", Data::Boolean(connection.mss_option)),
            ("delayed_ack_segments", integer(connection.delayed_ack_segments)),
            ("delayed_ack_timeout", Data::Duration(connection.delayed_ack_timeout)),
            ("nagle", Data::Boolean(connection.nagle)),
            ("min_rto", Data::Duration(connection.min_rto)),
            ("initial_rto", Data::Duration(connection.initial_rto)),
            ("max_rto", Data::Duration(connection.max_rto)),
            ("idle_restart", Data::Boolean(connection.idle_restart)),
            ("max_syn_retransmissions", integer(connection.max_syn_retransmissions)),
            ("max_retransmissions", integer(connection.max_retransmissions)),
            ("time_wait", Data::Duration(connection.time_wait)),
            ("first_segment_acknowledged_at_once", Data::Boolean(connection.first_segment_acknowledged_at_once)),
            ("quick_ack", Data::Boolean(connection.quick_ack)),
            ("fin_with_data_acknowledged_twice", Data::Boolean(connection.fin_with_data_acknowledged_twice)),
            (
                "loss_detection",
                Data::Choice(match connection.loss_detection {
                    LossDetection::Rack => "rack",
                    LossDetection::DuplicateAcks => "duplicate-acks",
                }),
            ),
            ("tail_loss_probe", Data::Boolean(connection.tail_loss_probe)),
            ("dsack", Data::Boolean(connection.dsack)),
            ("dsack_undo", Data::Boolean(connection.dsack_undo)),
            ("eifel", Data::Boolean(connection.eifel)),
            ("frto", Data::Boolean(connection.frto)),
            ("limited_transmit", Data::Boolean(connection.limited_transmit)),
            (
                "ecn",
                Data::Choice(match connection.ecn {
                    Ecn::Off => "off",
                    Ecn::Passive => "passive",
                    Ecn::Active => "active",
                }),
            ),
            (
                "ecn_feedback",
                Data::Choice(match connection.ecn_feedback {
                    EcnFeedback::Classic => "classic",
                    EcnFeedback::Dctcp => "dctcp",
                    EcnFeedback::Accurate => "accurate",
                }),
            ),
            ("proportional_ecn_reduction", Data::Boolean(connection.proportional_ecn_reduction)),
            ("pacing", Data::Boolean(connection.pacing)),
            ("pacing_quantum", integer(connection.pacing_quantum_segments)),
            ("hystart", Data::Boolean(self.hystart)),
            ("receiver_closes", Data::Boolean(self.receiver_closes)),
        ]
    }
}

/// Fills in every key of a TCP table: from `inherited`, unless the table names a preset of its own.
pub(crate) fn fill(tree: &mut Tree, inherited: Option<&Tree>) {
    let own_preset = tree.get("preset").map(Value::choice);
    // Probes need RACK: where a key here chooses the other way to find losses, the inherited default goes with it.
    if tree.get("loss_detection").is_some_and(|value| value.choice() == "duplicate-acks") {
        tree.fill("tail_loss_probe", Data::Boolean(false));
    }
    // DCTCP lives on marks: where a key here chooses it, what it needs goes with it.
    if tree.get("congestion").is_some_and(|value| value.choice() == "dctcp") {
        tree.fill("ecn", Data::Choice("active"));
        tree.fill("ecn_feedback", Data::Choice("dctcp"));
    }
    match (own_preset, inherited) {
        (None, Some(inherited)) => {
            for (key, value) in inherited.iter() {
                tree.fill(key, value.data.clone());
            }
        }
        (preset, _) => {
            let preset = preset.unwrap_or("linux");
            let preset = PRESETS.iter().find(|entry| entry.name == preset).unwrap_or(&PRESETS[0]);
            tree.fill("preset", Data::Choice(preset.name));
            for (key, value) in preset.values() {
                tree.fill(key, value);
            }
        }
    }
}

/// Checks what one key cannot say alone; `path` is the table's.
pub(crate) fn check(tree: &Tree, path: &str, check: &mut Check) {
    let conflict = |check: &mut Check, key: &str, other: &str, message: String, expected: String| {
        // The mistake is at whichever of the two the file gives.
        let at = if tree.is_given(key) { key } else { other };
        check.error(tree.place_of(at), &format!("{path}.{at}"), message, vec![expected]);
    };
    if tree.boolean("tail_loss_probe") && tree.choice("loss_detection") != "rack" {
        let message = format!("{path} has tail_loss_probe = true, which needs RACK");
        conflict(check, "tail_loss_probe", "loss_detection", message, "loss_detection = \"rack\"".into());
    }
    for key in ["min_rto", "initial_rto"] {
        if tree.duration(key) > tree.duration("max_rto") {
            let message = format!("{path}.{key} = {} is above max_rto", tree.duration(key));
            conflict(check, key, "max_rto", message, format!("at most {}", tree.duration("max_rto")));
        }
    }
    for key in ["send_buffer", "receive_buffer"] {
        if tree.size(key) < tree.size("mss") {
            let message = format!("{path}.{key} = {}B does not hold one full segment", tree.size(key));
            conflict(check, key, "mss", message, format!("at least mss = {}B", tree.size("mss")));
        }
    }
}

/// The settings of a filled table.
pub(crate) fn settings(tree: &Tree) -> Tcp {
    // The schema's bounds keep every integer within 32 bits.
    let integer = |key: &str| u32::try_from(tree.integer(key)).unwrap_or(u32::MAX);
    // What has no key of its own yet follows the preset.
    let connection = Config {
        mss_bytes: u32::try_from(tree.size("mss")).unwrap_or(u32::MAX),
        initial_window_segments: integer("initial_window"),
        send_buffer_bytes: tree.size("send_buffer"),
        receive_buffer_bytes: tree.size("receive_buffer"),
        initial_receive_window_bytes: tree.get("initial_receive_window").map(Value::size),
        sack: tree.boolean("sack"),
        timestamps: tree.boolean("timestamps"),
        timestamp_tick: tree.duration("timestamp_tick"),
        rtt_from_timestamps: tree.boolean("rtt_from_timestamps"),
        window_scaling: tree.boolean("window_scaling"),
        mss_option: tree.boolean("mss_option"),
        delayed_ack_segments: integer("delayed_ack_segments"),
        delayed_ack_timeout: tree.duration("delayed_ack_timeout"),
        nagle: tree.boolean("nagle"),
        min_rto: tree.duration("min_rto"),
        initial_rto: tree.duration("initial_rto"),
        max_rto: tree.duration("max_rto"),
        idle_restart: tree.boolean("idle_restart"),
        max_syn_retransmissions: integer("max_syn_retransmissions"),
        max_retransmissions: integer("max_retransmissions"),
        user_timeout: tree.get("user_timeout").map(Value::duration),
        fin_wait_2_timeout: tree.get("fin_wait_2_timeout").map(Value::duration),
        keep_alive: tree.get("keep_alive").map(|idle| KeepAlive { idle: idle.duration(), ..KeepAlive::default() }),
        time_wait: tree.duration("time_wait"),
        first_segment_acknowledged_at_once: tree.boolean("first_segment_acknowledged_at_once"),
        quick_ack: tree.boolean("quick_ack"),
        fin_with_data_acknowledged_twice: tree.boolean("fin_with_data_acknowledged_twice"),
        loss_detection: match tree.choice("loss_detection") {
            "rack" => LossDetection::Rack,
            _ => LossDetection::DuplicateAcks,
        },
        tail_loss_probe: tree.boolean("tail_loss_probe"),
        pacing: tree.boolean("pacing"),
        pacing_quantum_segments: integer("pacing_quantum"),
        fast_open: tree.choice("fast_open") != "off",
        black_hole_timeouts: tree.get("black_hole_timeouts").and_then(|n| u32::try_from(n.integer()).ok()),
        dsack: tree.boolean("dsack"),
        dsack_undo: tree.boolean("dsack_undo"),
        eifel: tree.boolean("eifel"),
        frto: tree.boolean("frto"),
        limited_transmit: tree.boolean("limited_transmit"),
        ecn: match tree.choice("ecn") {
            "active" => Ecn::Active,
            "passive" => Ecn::Passive,
            _ => Ecn::Off,
        },
        proportional_ecn_reduction: tree.boolean("proportional_ecn_reduction"),
        ecn_feedback: match tree.choice("ecn_feedback") {
            "dctcp" => EcnFeedback::Dctcp,
            "accurate" => EcnFeedback::Accurate,
            _ => EcnFeedback::Classic,
        },
    };
    Tcp {
        congestion: tree.choice("congestion").to_string(),
        hystart: tree.boolean("hystart"),
        linux_hystart: tree.choice("hystart_variant") == "linux",
        fast_open_known: tree.choice("fast_open") == "known",
        tls: tls(tree),
        receiver_closes: tree.boolean("receiver_closes"),
        connection,
    }
}

fn tls(tree: &Tree) -> Option<tls::Settings> {
    let mode = match tree.choice("tls") {
        "full" => tls::Mode::Full,
        "resumed" => tls::Mode::Resumed,
        "early-data" => tls::Mode::EarlyData,
        _ => return None,
    };
    Some(tls::Settings { mode, certificate_bytes: tree.size("tls_certificates"), ..tls::Settings::default() })
}

/// The presets side by side, for the reference page.
pub(crate) fn presets_markdown() -> String {
    let mut page = String::from("### Presets\n\n| key |");
    let mut columns = Vec::new();
    for preset in &PRESETS {
        page.push_str(&format!(" `{}` |", preset.name));
        let mut tree = Tree::default();
        preset.values().into_iter().for_each(|(key, value)| tree.fill(key, value));
        columns.push(resolved(&TCP, &tree));
    }
    page.push_str("\n|---|---|---|\n");
    for field in TCP.common().filter(|field| matches!(field.default, Default::Absent(BY_PRESET))) {
        page.push_str(&format!("| `{}` |", field.key));
        for column in &columns {
            let value = column.lines().find_map(|line| line.strip_prefix(field.key)?.strip_prefix(" = "));
            page.push_str(&format!(" {} |", value.unwrap_or_default().trim_matches('"')));
        }
        page.push('\n');
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection whose switches are bits of their own numbers: each two differ at some bit.
    fn switches(bit: u32) -> Config {
        let switch = |number: u32| number >> bit & 1 == 1;
        Config {
            sack: switch(0),
            timestamps: switch(1),
            rtt_from_timestamps: switch(2),
            window_scaling: switch(3),
            mss_option: switch(4),
            nagle: switch(5),
            idle_restart: switch(6),
            first_segment_acknowledged_at_once: switch(7),
            quick_ack: switch(8),
            fin_with_data_acknowledged_twice: switch(9),
            tail_loss_probe: switch(10),
            dsack: switch(11),
            dsack_undo: switch(12),
            eifel: switch(13),
            frto: switch(14),
            limited_transmit: switch(15),
            proportional_ecn_reduction: switch(16),
            pacing: switch(17),
            ..Config::linux_large_buffers()
        }
    }

    #[test]
    fn a_preset_gives_the_connection_that_it_is_written_from() {
        let numbers = || Config {
            initial_window_segments: 1,
            delayed_ack_segments: 2,
            max_syn_retransmissions: 3,
            max_retransmissions: 4,
            pacing_quantum_segments: 5,
            send_buffer_bytes: 1 << 20,
            loss_detection: LossDetection::DuplicateAcks,
            ecn: Ecn::Active,
            ecn_feedback: EcnFeedback::Accurate,
            ..Config::ns3()
        };
        let connections: [fn() -> Config; 8] = [
            Config::linux_large_buffers,
            Config::ns3,
            numbers,
            || switches(0),
            || switches(1),
            || switches(2),
            || switches(3),
            || switches(4),
        ];
        for (n, connection) in connections.into_iter().enumerate() {
            let (hystart, receiver_closes) = (n % 2 == 0, n % 4 < 2);
            let preset = Preset { name: "test", connection, congestion: "cubic", hystart, receiver_closes };
            let mut tree = Tree::default();
            preset.values().into_iter().for_each(|(key, value)| tree.fill(key, value));
            for key in ["fast_open", "tls", "hystart_variant"] {
                tree.fill(key, Data::Choice("off"));
            }
            tree.fill("tls_certificates", Data::Size(0));
            let settings = settings(&tree);
            assert_eq!(settings.connection, connection());
            let rest = (settings.congestion.as_str(), settings.hystart, settings.receiver_closes);
            assert_eq!(rest, ("cubic", hystart, receiver_closes));
        }
    }

    #[test]
    fn each_preset_names_each_key_once_and_no_other() {
        let by_preset = |field: &&Field| matches!(field.default, Default::Absent(BY_PRESET));
        let keys: Vec<&str> = TCP.common().filter(by_preset).map(|field| field.key).collect();
        for preset in &PRESETS {
            let mut named: Vec<&str> = preset.values().into_iter().map(|(key, _)| key).collect();
            let mut keys = keys.clone();
            named.sort_unstable();
            keys.sort_unstable();
            assert_eq!(named, keys, "{}", preset.name);
        }
    }
}
