//! Settings of a CONNECT-UDP tunnel: of the client, of the proxy and of the connection between them. The module
//! declares the keys of the scenario table `masque` and checks which of them contradict each other.
//!
//! The settings are here and not in `fullpipe-masque`, because builds without the QUIC stack read the same scenarios.

use crate::quic::{self, Cryptography, DATAGRAM, GRANULARITY};
use fullpipe_congestion::catalogue::CHOICES;
use fullpipe_schema::component::choices;
use fullpipe_schema::distributions::{TIME_OR_RANDOM, check_distribution};
use fullpipe_schema::settings::{FieldAccess, SettingKey, SettingValue, SettingsTable, fields};
use fullpipe_schema::{Choice, Diagnostics, FieldKind, SourceLocation, Table, Tree, at, setting_keys};
use fullpipe_units::{Distribution, Duration, QueueLimit};

/// How payloads are transferred between client and proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// In QUIC DATAGRAM frames; lost payloads are not retransmitted.
    #[default]
    Datagram,
    /// In capsules on the request stream; lost data is retransmitted. A client whose connection has this mode does not
    /// offer HTTP datagrams. In other connections, the proxy replies in the same form as the client's most recent
    /// payload for the request.
    Stream,
}

/// The payload that is dropped when the queue limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DropPolicy {
    /// The arriving payload (drop-tail, as in routers).
    #[default]
    Newest,
    /// The payload that has waited longest (suitable for real-time media).
    Oldest,
}

/// The order in which waiting payloads of several requests are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// Round robin over the requests.
    #[default]
    RoundRobin,
    /// In order of arrival; in stream mode the same as [`Scheduler::RoundRobin`].
    Fifo,
    /// In the order in which the requests were opened, in either mode. A request is served only while all earlier
    /// requests have no data to send.
    RequestOrder,
}

/// Settings of a tunnel (client and proxy).
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How payloads are transferred between client and proxy.
    pub mode: Mode,
    /// Name of the congestion control; `None`: no congestion control and no pacing.
    pub congestion: Option<String>,
    /// Whether controls that have slow start use HyStart++ (RFC 9406).
    pub hystart: bool,
    /// Initial window in packets.
    pub initial_window_packets: u64,
    /// UDP payload of a full packet before path MTU discovery succeeds, in bytes: 1200 to 65 507.
    pub initial_mtu_bytes: u16,
    /// Largest UDP payload that path MTU discovery probes, in bytes; `None` disables probing.
    pub largest_mtu_bytes: Option<u16>,
    /// Maximum amount of one request's data that may wait ahead of the QUIC stack. A limit in packets is not supported.
    pub queue_limit: QueueLimit,
    /// The payload that is dropped when `queue_limit` is reached.
    pub drop_policy: DropPolicy,
    /// The order in which requests send payloads.
    pub scheduler: Scheduler,
    /// Stream mode: whether capsules that wait together share a DATA frame.
    pub coalesce: bool,
    /// Datagram mode: maximum number of bytes that the QUIC stack queues until congestion control permits it to send
    /// them.
    pub datagram_buffer_bytes: usize,
    /// Stream mode: maximum number of bytes that the QUIC stack keeps until they are acknowledged.
    pub send_buffer_bytes: u64,
    /// Receive window of a stream: maximum number of bytes in flight or unread. The limit for all streams together is
    /// eight times as large.
    pub receive_buffer_bytes: u32,
    /// Idle time after which the tunnel, or a request in it, is closed.
    pub idle_timeout: Duration,
    /// Processing time of client and proxy per datagram, in seconds.
    pub reaction: Distribution,
    /// Interval between the ticks of the program's timers; if zero, timers are exact.
    pub timer_granularity: Duration,
    /// Size of the proxy's certificate chain in bytes.
    pub certificate_bytes: u64,
    /// The packet protection between client and proxy.
    pub cryptography: Cryptography,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            mode: Mode::Datagram,
            congestion: Some("cubic".into()),
            hystart: true,
            initial_window_packets: 10,
            initial_mtu_bytes: 1280,
            largest_mtu_bytes: Some(1452),
            queue_limit: QueueLimit::Bytes(1 << 20),
            drop_policy: DropPolicy::Newest,
            scheduler: Scheduler::RoundRobin,
            coalesce: true,
            datagram_buffer_bytes: 128 << 10,
            send_buffer_bytes: 4 << 20,
            receive_buffer_bytes: 1536 << 10,
            idle_timeout: Duration::from_secs(150),
            reaction: Distribution::Constant { value: 0.0 },
            timer_granularity: Duration::ZERO,
            certificate_bytes: 3000,
            cryptography: Cryptography::Null,
        }
    }
}

/// Scenario names of the variants of [`Mode`].
pub static MODES: [(Choice, Mode); 2] = [
    (Choice::new("datagram", "payloads in QUIC DATAGRAM frames, which are not retransmitted."), Mode::Datagram),
    (Choice::new("stream", "payloads in capsules on the request stream, which is reliable."), Mode::Stream),
];

/// Scenario names of the variants of [`DropPolicy`].
pub static DROP_POLICIES: [(Choice, DropPolicy); 2] = [
    (Choice::new("newest", "the arriving payload."), DropPolicy::Newest),
    (Choice::new("oldest", "the payload that has waited longest."), DropPolicy::Oldest),
];

/// Scenario names of the variants of [`Scheduler`].
pub static SCHEDULERS: [(Choice, Scheduler); 3] = [
    (Choice::new("round-robin", "one payload of each request in turn."), Scheduler::RoundRobin),
    (Choice::new("fifo", "in order of arrival (datagram mode); in stream mode as `round-robin`."), Scheduler::Fifo),
    (
        Choice::new("request-order", "in the order in which requests were opened, as the streams of aioquic in 2021."),
        Scheduler::RequestOrder,
    ),
];

/// The names of the congestion controls, and `none`.
static CONGESTION: &[Choice] = &{
    let none = "no congestion control; payloads are sent at once (datagram mode only). RFC 9298 section 6 permits this only \
                if all traffic in the tunnel is congestion-controlled.";
    let mut list = [Choice::new("none", none); CHOICES.len() + 1];
    let mut n = 0;
    while n < CHOICES.len() {
        list[n + 1] = CHOICES[n];
        n += 1;
    }
    list
};

static KEYS: [SettingKey<Settings>; 18] = setting_keys! {
    /// Transport of payloads between client and proxy.
    "mode": FieldKind::Choice(&choices(&MODES)), setting => at!(mode, MODES);
    /// Congestion control of the tunnel.
    "congestion": FieldKind::Choice(CONGESTION), setting => FieldAccess {
        get: |settings, kind| settings.congestion.clone().unwrap_or("none".into()).to_data(kind),
        set: |settings, value| {
            settings.congestion = value.map(String::from_value).filter(|name| name != "none");
        },
    };
    quic::hystart(at!(hystart));
    quic::initial_window(at!(initial_window_packets));
    /// UDP payload of a full packet of the tunnel before the path is known to support larger ones. Inner packets of
    /// 1200 bytes, with which each QUIC connection starts, require 1240 bytes.
    "initial_mtu": DATAGRAM, setting => at!(initial_mtu_bytes);
    quic::largest_mtu(FieldAccess {
        get: |settings, kind| settings.largest_mtu_bytes.unwrap_or(settings.initial_mtu_bytes).to_data(kind),
        set: |settings, value| {
            let largest: Option<u16> = value.map(SettingValue::from_value);
            settings.largest_mtu_bytes = largest.filter(|largest| *largest > settings.initial_mtu_bytes);
        },
    });
    /// Limit of the queue ahead of the QUIC stack, for each request at either end: bytes, a time, or `unlimited`.
    "queue_limit": FieldKind::QueueLimit, setting => at!(queue_limit);
    /// Payload that is dropped when the queue is full.
    "drop_policy": FieldKind::Choice(&choices(&DROP_POLICIES)), setting => at!(drop_policy, DROP_POLICIES);
    /// Scheduler that selects the request whose payload is sent next.
    "scheduler": FieldKind::Choice(&choices(&SCHEDULERS)), setting => at!(scheduler, SCHEDULERS);
    /// Stream mode: whether waiting capsules are combined in one DATA frame.
    "coalesce": FieldKind::Boolean, setting => at!(coalesce);
    /// Datagram mode: size of the QUIC stack's buffer for datagrams that congestion control does not permit to be sent
    /// yet.
    "datagram_buffer": FieldKind::size(1200, 1 << 30), setting => at!(datagram_buffer_bytes);
    /// Stream mode: size of the QUIC stack's send buffer for all requests together: data not acknowledged yet.
    "send_buffer": FieldKind::size(1200, 1 << 30), setting => at!(send_buffer_bytes);
    /// Receive window of a stream: data in flight or unread (flow control). That of the connection is eight times as
    /// large.
    "receive_buffer": FieldKind::size(1200, 1 << 28), setting => at!(receive_buffer_bytes);
    /// Time without packets after which the tunnel, or a request in it, ends. RFC 9298 recommends at least two minutes.
    "idle_timeout": FieldKind::DURATION, setting => at!(idle_timeout);
    /// Time that client and proxy take from the arrival of a datagram to their reaction, constant or random. Datagrams
    /// that arrive in this time are processed together. If a host has several tunnels, the one with the largest mean
    /// applies.
    "reaction": TIME_OR_RANDOM, setting => at!(reaction);
    /// Interval between ticks of the timers of client and proxy: a timer expires at the first tick after its deadline.
    /// If a host has several tunnels, the largest value applies.
    "timer_granularity": GRANULARITY, setting => at!(timer_granularity);
    /// Size of the proxy's certificate chain; with `cryptography = "tls"` 400 to 60 000 bytes.
    "certificates": FieldKind::size(0, 1 << 20), setting => at!(certificate_bytes);
    quic::cryptography(at!(cryptography, quic::CRYPTOGRAPHY));
};

/// The table `masque` of a scenario file.
pub static MASQUE: Table = Table {
    name: "masque",
    text: "Settings of tunnels (CONNECT-UDP, RFC 9298) at client and proxy. `[masque]` applies to all flows with `protocol = \
           \"masque\"`, `[flow.masque]` after a `[[flow]]` to that flow. Client and proxy are the code of the programs that \
           run on real sockets. Their processing time is 0 unless `reaction` sets it.",
    fields: &[&fields(&KEYS)],
    defaults: Some(|| SETTINGS.defaults(SourceLocation::default())),
    ..Table::EMPTY
};

/// The table `masque`, and the settings that its keys set.
pub static SETTINGS: SettingsTable<Settings> = SettingsTable { table: &MASQUE, keys: &[&KEYS] };

/// Checks a resolved table for keys that contradict each other, and adds an error to `check` for each conflict. `path`
/// is the path of the table.
pub fn check(tree: &Tree, path: &str, check: &mut Diagnostics) {
    check_distribution(tree, "reaction", path, check);
    if let QueueLimit::Packets(_) = tree.queue_limit("queue_limit") {
        let found = check.sources.excerpt(tree.location_of("queue_limit"));
        let message = format!("{path}.queue_limit = {found} is in packets, which tunnels do not support");
        let expected = "a size such as \"250kB\", a duration such as \"100ms\", or \"unlimited\"";
        check.add_error_at(tree, path, "queue_limit", message, expected);
    }
    if tree.choice("mode") == "stream" && tree.choice("congestion") == "none" {
        let message = format!(
            "{path}.congestion = \"none\" requires mode = \"datagram\", but the tunnel has mode = \"stream\" (RFC 9298 \
             section 6 exempts only datagrams from congestion control)"
        );
        let expected = "mode = \"datagram\", or a congestion control such as \"cubic\"";
        check.add_error_at(tree, path, "congestion", message, expected);
    }
}
