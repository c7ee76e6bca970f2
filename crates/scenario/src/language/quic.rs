//! QUIC's keys.

use super::Check;
use super::distributions::{TIME_OR_RANDOM, checked, distribution};
use super::tcp::CONGESTION;
use crate::description::{Quic, QuicHandshake, QuicModel};
use crate::schema::Settings;
use crate::schema::{Choice, Field, Kind, Table, Tree};
use fullpipe_quic::scheduler::{self, SCHEDULERS};
use fullpipe_schema::component::{Invalid, Reader};
use fullpipe_units::Duration;

/// A UDP payload that QUIC may send: RFC 9000 section 14, and what IPv4 and UDP can carry.
pub(super) const DATAGRAM: Kind = Kind::Size { min: 1200, max: 65_507 };

/// Between ticks of a program's timers.
pub(super) const GRANULARITY: Kind = Kind::Duration { min: Duration::ZERO, max: Duration::from_secs(1) };

const fn field(key: &'static str, kind: Kind, default: &'static str, text: &'static str) -> Field {
    Field::optional(key, kind, default, text)
}

/// What protects packets.
pub(super) const CRYPTOGRAPHY: Field = field(
    "cryptography",
    Kind::Choice(&[
        Choice::new("null", "nothing, in the sizes of TLS 1.3."),
        Choice::new("tls", "TLS 1.3, with keys that follow from the seed."),
    ]),
    "`\"null\"`",
    "What protects packets. Sizes and instants are the same; with `tls` the same seed gives the same encrypted bytes.",
);

pub(crate) static QUIC: Table = Table {
    name: "quic",
    text: "Settings of QUIC (RFC 9000) at both ends. `[quic]` holds for all flows, `[flow.quic]` after a `[[flow]]` for that \
           one. Each connection of a flow has one stream, but for web pages over the model. The ends take no time to do what they do.",
    fields: &[
        &[
            field(
                "stack",
                Kind::Choice(&[
                    Choice::new("noq", "the real stack of that name, on virtual time."),
                    Choice::new(
                        "model",
                        "our own: streams, schedulers, any congestion control; no cryptography, sizes as on the wire.",
                    ),
                ]),
                "`\"noq\"`",
                "Who plays the ends.",
            ),
            field(
                "congestion",
                Kind::Choice(CONGESTION),
                "`\"cubic\"`",
                "Congestion control. noq paces all; it does not tell how many packets were marked, so that controls which \
             need that (`dctcp`) are refused there.",
            ),
            field("hystart", Kind::Boolean, "`true`", "HyStart++ (RFC 9406) in controls that have slow start."),
            field("initial_window", Kind::Integer { min: 1, max: 1000 }, "`10`", "Initial window (RFC 9002: 10).")
                .unit("packets"),
            field(
                "initial_mtu",
                DATAGRAM,
                "`\"1200B\"`",
                "UDP payload of a full packet before the path is known to carry more.",
            ),
            field(
                "largest_mtu",
                DATAGRAM,
                "`\"1452B\"`",
                "Largest UDP payload that the path is probed for (RFC 8899); not above `initial_mtu`: it is not probed.",
            ),
            field(
                "send_buffer",
                Kind::Size { min: 16, max: 16 << 30 },
                "`\"8MiB\"`",
                "What the stack keeps until it is acknowledged; as much again waits for room there.",
            ),
            field(
                "receive_buffer",
                Kind::Size { min: 1200, max: 1 << 30 },
                "`\"8MiB\"`",
                "What of a stream may be on its way or unread (flow control).",
            ),
            field(
                "idle_timeout",
                Kind::DURATION,
                "`\"30s\"`",
                "Silence after which the connection is over; 0s: never.",
            ),
            field(
                "reaction",
                TIME_OR_RANDOM,
                "`\"0s\"`",
                "How long an end takes from a datagram's arrival to what it does about it (`stack = \"noq\"`), always the same or drawn \
             anew each time. What comes meanwhile is dealt with together, as a program does that reads its socket: fewer \
             acknowledgements of packets that come at once.",
            ),
            field(
                "timer_granularity",
                GRANULARITY,
                "`\"0s\"`",
                "Timers of an end (`stack = \"noq\"`), pacing's above all, ring at ticks this far apart, never early; 0s: they are exact. \
             Programs on tokio have 1 ms.",
            ),
            field(
                "certificates",
                Kind::Size { min: 0, max: 1 << 20 },
                "`\"3000B\"`",
                "Size of the server's certificate chain; with `cryptography = \"tls\"` 400 to 60 000 bytes.",
            ),
            CRYPTOGRAPHY,
            field(
                SCHEDULERS.key,
                Kind::Choice(&scheduler::NAMES),
                "`\"round-robin\"`",
                "Which stream sends next. Of the model only, as all that follows.",
            ),
        ],
        &scheduler::KEYS,
        &[
            field(
                "retransmission",
                Kind::Choice(&[
                    Choice::new("first", "before everything else."),
                    Choice::new("scheduled", "when its stream's turn comes."),
                ]),
                "`\"first\"`",
                "When lost data is sent again.",
            ),
            field(
                "handshake",
                Kind::Choice(&[
                    Choice::new("1-rtt", "in one round trip."),
                    Choice::new("0-rtt", "the client remembers the server and sends data with its first datagram."),
                    Choice::new(
                        "retry",
                        "the server has the client's address proven first, which takes one more round trip.",
                    ),
                ]),
                "`\"1-rtt\"`",
                "How client and server meet.",
            ),
            field(
                "ack_every",
                Kind::Integer { min: 1, max: 1000 },
                "`2`",
                "Ack-eliciting packets after which an acknowledgement is sent at once (RFC 9000 section 13.2.2).",
            )
            .unit("packets"),
            field(
                "max_ack_delay",
                Kind::DURATION,
                "`\"25ms\"`",
                "Longest time for which an acknowledgement waits (RFC 9000 section 13.2.1); below 16.384 s.",
            ),
            field(
                "ack_frequency",
                Kind::Integer { min: 0, max: 1000 },
                "`0`",
                "Ack-eliciting packets that the peer is asked to let pass without acknowledging them (ACK_FREQUENCY, \
             draft-ietf-quic-ack-frequency-11); 0: nothing is asked.",
            )
            .unit("packets"),
            field(
                "ecn",
                Kind::Boolean,
                "`false`",
                "Packets are sent as ECN-capable until validation fails (RFC 9000 section 13.4).",
            ),
            field(
                "pacing",
                Kind::Boolean,
                "`true`",
                "Packets are paced where the control does not need it (RFC 9002 section 7.7).",
            ),
            field(
                "pacing_burst",
                Kind::Integer { min: 1, max: 1000 },
                "`10`",
                "Packets that may leave in one burst when paced, or 2 ms worth if that is more; at most 10 ms worth.",
            )
            .unit("packets"),
            field(
                "pace_first_flight",
                Kind::Boolean,
                "`false`",
                "Packets are paced before the first round-trip sample, too, as if the round trip took 333 ms; noq does so.",
            ),
            field(
                "max_streams",
                Kind::Integer { min: 1, max: 1 << 20 },
                "`100`",
                "Streams that the peer may have open at a time.",
            ),
            field(
                "initial_receive_window",
                Kind::Size { min: 0, max: 1 << 30 },
                "`\"0B\"`",
                "Receive window at first; it doubles up to the buffer while the application reads it within two round-trip times. 0B: \
             the whole buffer from the beginning.",
            ),
            field(
                "connection_receive_buffer",
                Kind::Size { min: 1200, max: 1 << 40 },
                "`\"64MiB\"`",
                "What of all streams of a connection may be on its way or unread.",
            ),
            field(
                "unordered",
                Kind::Boolean,
                "`false`",
                "Bytes of a stream are handed to the application in the order in which they come.",
            ),
        ],
    ],
    ..Table::EMPTY
};

/// The table and its defaults.
pub(super) static SETTINGS: Settings = Settings {
    table: &QUIC,
    values: &[
        ("stack", "noq"),
        ("congestion", "cubic"),
        ("hystart", "true"),
        ("initial_window", "10"),
        ("initial_mtu", "1200B"),
        ("largest_mtu", "1452B"),
        ("send_buffer", "8MiB"),
        ("receive_buffer", "8MiB"),
        ("idle_timeout", "30s"),
        ("reaction", "0s"),
        ("timer_granularity", "0s"),
        ("certificates", "3000B"),
        ("cryptography", "null"),
        ("scheduler", "round-robin"),
        ("retransmission", "first"),
        ("handshake", "1-rtt"),
        ("ack_every", "2"),
        ("max_ack_delay", "25ms"),
        ("ack_frequency", "0"),
        ("ecn", "false"),
        ("pacing", "true"),
        ("pacing_burst", "10"),
        ("pace_first_flight", "false"),
        ("max_streams", "100"),
        ("initial_receive_window", "0B"),
        ("connection_receive_buffer", "64MiB"),
        ("unordered", "false"),
    ],
};

/// max_ack_delay has 14 bits of milliseconds.
const MOST_ACK_DELAY: Duration = Duration::from_millis(1 << 14);

/// Whether a key is one of the model only.
pub(super) fn is_of_model(key: &str) -> bool {
    OF_MODEL.contains(&key) || scheduler::KEYS.iter().any(|field| field.key == key)
}

const OF_MODEL: &[&str] = &[
    "scheduler",
    "retransmission",
    "handshake",
    "ack_every",
    "max_ack_delay",
    "ack_frequency",
    "ecn",
    "pacing",
    "pacing_burst",
    "pace_first_flight",
    "max_streams",
    "initial_receive_window",
    "connection_receive_buffer",
    "unordered",
];

/// What cannot be in a filled table.
pub(crate) fn check(tree: &Tree, path: &str, check: &mut Check) {
    if tree.choice("stack") == "model" {
        if tree.choice("cryptography") != "null" {
            let message = "the model has no cryptography".to_string();
            let expected = vec!["cryptography = \"null\"".into(), "stack = \"noq\"".into()];
            check.error(tree.place_of("cryptography"), &format!("{path}.cryptography"), message, expected);
        }
        if tree.duration("max_ack_delay") >= MOST_ACK_DELAY {
            let message = "max_ack_delay must be below 16.384 s (RFC 9000 section 18.2)".to_string();
            check.error(tree.place_of("max_ack_delay"), &format!("{path}.max_ack_delay"), message, Vec::new());
        }
        return;
    }
    distribution(tree, "reaction", path, check);
    let untouched = SETTINGS.defaults(tree.place);
    let data = |tree: &Tree, key: &str| tree.get(key).map(|value| value.data.clone());
    for key in QUIC.common().map(|field| field.key).filter(|key| is_of_model(key)) {
        if data(tree, key) != data(&untouched, key) {
            let message = format!("`{key}` is a setting of the model, and noq plays these ends");
            let expected = vec!["stack = \"model\"".into()];
            check.error(tree.place_of(key), &format!("{path}.{key}"), message, expected);
        }
    }
}

/// Fills in every key of such a table, from `inherited` if there is one.
pub(crate) fn fill(tree: &mut Tree, inherited: Option<&Tree>) {
    // First, for a flow that another stack plays takes nothing of what only the model has.
    if let Some(stack) = inherited.and_then(|inherited| inherited.get("stack")) {
        tree.fill("stack", stack.data.clone());
    }
    let model = tree.get("stack").is_some_and(|stack| stack.choice() == "model");
    SETTINGS.fill(tree, inherited, |key| model || !is_of_model(key));
}

/// The filled `[quic]`, for flows.
pub(crate) fn common(root: &Tree) -> Tree {
    SETTINGS.common(root)
}

/// The settings of a filled table.
///
/// # Errors
/// If keys contradict each other.
pub(crate) fn settings(reader: &mut Reader<'_, '_>) -> Result<Quic, Invalid> {
    let tree = reader.tree;
    // The schema's bounds keep them within their types.
    let datagram = |key: &str| u16::try_from(tree.size(key)).unwrap_or(u16::MAX);
    let initial_mtu_bytes = datagram("initial_mtu");
    Ok(Quic {
        congestion: tree.choice("congestion").to_string(),
        hystart: tree.boolean("hystart"),
        initial_window_packets: u64::try_from(tree.integer("initial_window")).unwrap_or(1),
        initial_mtu_bytes,
        largest_mtu_bytes: Some(datagram("largest_mtu")).filter(|largest| *largest > initial_mtu_bytes),
        send_buffer_bytes: tree.size("send_buffer"),
        receive_buffer_bytes: tree.size("receive_buffer"),
        idle_timeout: tree.duration("idle_timeout"),
        reaction: checked(tree, "reaction"),
        timer_granularity: tree.duration("timer_granularity"),
        certificate_bytes: tree.size("certificates"),
        tls: tree.choice("cryptography") == "tls",
        model: if tree.choice("stack") == "model" { Some(model(reader)?) } else { None },
    })
}

fn model(reader: &mut Reader<'_, '_>) -> Result<QuicModel, Invalid> {
    let tree = reader.tree;
    let count = |key: &str| u64::try_from(tree.integer(key)).unwrap_or(0);
    Ok(QuicModel {
        scheduler: SCHEDULERS.read(reader, &())?,
        scheduled_retransmission: tree.choice("retransmission") == "scheduled",
        handshake: match tree.choice("handshake") {
            "0-rtt" => QuicHandshake::ZeroRtt,
            "retry" => QuicHandshake::Retry,
            _ => QuicHandshake::OneRtt,
        },
        ack_every_packets: count("ack_every"),
        max_ack_delay: tree.duration("max_ack_delay"),
        ack_frequency_packets: Some(count("ack_frequency")).filter(|packets| *packets > 0),
        ecn: tree.boolean("ecn"),
        pacing: tree.boolean("pacing"),
        pacing_burst_packets: count("pacing_burst"),
        pace_first_flight: tree.boolean("pace_first_flight"),
        max_streams: count("max_streams"),
        initial_receive_window_bytes: Some(tree.size("initial_receive_window")).filter(|bytes| *bytes > 0),
        connection_receive_buffer_bytes: tree.size("connection_receive_buffer"),
        unordered: tree.boolean("unordered"),
    })
}
