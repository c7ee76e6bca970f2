//! Settings of a CONNECT-UDP tunnel: of the client, of the proxy and of the connection between them. The module declares the keys of the
//! scenario table `masque` and checks which of them contradict each other.
//!
//! They are here and not in `fullpipe-masque`, because builds without the QUIC stack read the same scenarios.

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
    /// In capsules on the request stream; lost data is retransmitted. A client whose connection has this mode does not offer HTTP
    /// datagrams. In other connections the proxy replies in the same form as the client's most recent payload of the request.
    Stream,
}

/// The payload that is dropped when the limit is reached.
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
    /// The request that was opened first is served while it has data to send, in either mode.
    RequestOrder,
}

/// Settings of a tunnel (client and proxy).
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How payloads are transferred between client and proxy.
    pub mode: Mode,
    /// Name of the congestion control; `None`: no congestion control and no pacing.
    pub congestion: Option<String>,
    /// HyStart++ (RFC 9406) in controls that have slow start.
    pub hystart: bool,
    /// Initial window in packets.
    pub initial_window_packets: u64,
    /// UDP payload of a full packet before path MTU discovery succeeds, in bytes: 1200 to 65 507.
    pub initial_mtu_bytes: u16,
    /// Largest UDP payload that path MTU discovery probes, in bytes; `None`: it does not probe.
    pub largest_mtu_bytes: Option<u16>,
    /// Maximum amount of one request's data that may wait before the QUIC stack; never in packets.
    pub queue_limit: QueueLimit,
    /// The payload that is dropped beyond this limit.
    pub drop_policy: DropPolicy,
    /// The order in which requests send payloads.
    pub scheduler: Scheduler,
    /// Stream mode: whether capsules that wait together share a DATA frame.
    pub coalesce: bool,
    /// Datagram mode: maximum number of bytes in the QUIC stack that wait for its congestion control.
    pub datagram_buffer_bytes: usize,
    /// Stream mode: maximum number of bytes that the QUIC stack keeps until they are acknowledged.
    pub send_buffer_bytes: u64,
    /// Maximum number of bytes of a stream that may be in flight or unread; eight times as much for all streams.
    pub receive_buffer_bytes: u32,
    /// Idle time after which the tunnel, or a request in it, is closed.
    pub idle_timeout: Duration,
    /// Processing time of client and proxy per datagram, in seconds.
    pub reaction: Distribution,
    /// Interval between the ticks of the program's timers; zero: timers are exact.
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

/// Names of [`Mode`].
pub static MODES: [(Choice, Mode); 2] = [
    (Choice::new("datagram", "payloads in QUIC DATAGRAM frames: what is lost stays lost."), Mode::Datagram),
    (Choice::new("stream", "payloads in capsules on the request stream: what is lost is sent again."), Mode::Stream),
];

/// Names of [`DropPolicy`].
pub static DROP_POLICIES: [(Choice, DropPolicy); 2] = [
    (Choice::new("newest", "what arrives."), DropPolicy::Newest),
    (Choice::new("oldest", "what has waited longest."), DropPolicy::Oldest),
];

/// Names of [`Scheduler`].
pub static SCHEDULERS: [(Choice, Scheduler); 3] = [
    (Choice::new("round-robin", "requests take turns."), Scheduler::RoundRobin),
    (
        Choice::new("fifo", "what came first goes first, in datagram mode; in stream mode as `round-robin`."),
        Scheduler::Fifo,
    ),
    (
        Choice::new("request-order", "the request that was opened first goes first, as in aioquic's streams of 2021."),
        Scheduler::RequestOrder,
    ),
];

/// The names of the congestion controls, and `none`.
static CONGESTION: &[Choice] = &{
    let none = "whatever is handed to the tunnel leaves at once (datagram mode). Outside of laboratories allowed only where \
                all that is carried is known to be controlled (RFC 9298 section 6).";
    let mut list = [Choice::new("none", none); CHOICES.len() + 1];
    let mut n = 0;
    while n < CHOICES.len() {
        list[n + 1] = CHOICES[n];
        n += 1;
    }
    list
};

static KEYS: [SettingKey<Settings>; 18] = setting_keys! {
    /// How payloads travel between client and proxy.
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
    /// UDP payload of a full packet of the tunnel before the path is known to carry more. Inner packets of 1200 bytes,
    /// with which every QUIC connection begins, need 1240.
    "initial_mtu": DATAGRAM, setting => at!(initial_mtu_bytes);
    quic::largest_mtu(FieldAccess {
        get: |settings, kind| settings.largest_mtu_bytes.unwrap_or(settings.initial_mtu_bytes).to_data(kind),
        set: |settings, value| {
            let largest: Option<u16> = value.map(SettingValue::from_value);
            settings.largest_mtu_bytes = largest.filter(|largest| *largest > settings.initial_mtu_bytes);
        },
    });
    /// How much of one request's payload may wait ahead of the QUIC stack, at either end: bytes, time, or `unlimited`.
    "queue_limit": FieldKind::QueueLimit, setting => at!(queue_limit);
    /// What is dropped when the limit is reached.
    "drop_policy": FieldKind::Choice(&choices(&DROP_POLICIES)), setting => at!(drop_policy, DROP_POLICIES);
    /// Which request's payload goes next.
    "scheduler": FieldKind::Choice(&choices(&SCHEDULERS)), setting => at!(scheduler, SCHEDULERS);
    /// Whether capsules that wait together share a DATA frame, in stream mode.
    "coalesce": FieldKind::Boolean, setting => at!(coalesce);
    /// Datagram mode: what is handed to the QUIC stack ahead of its congestion control.
    "datagram_buffer": FieldKind::size(1200, 1 << 30), setting => at!(datagram_buffer_bytes);
    /// Stream mode: what the QUIC stack keeps, of all requests, until it is acknowledged.
    "send_buffer": FieldKind::size(1200, 1 << 30), setting => at!(send_buffer_bytes);
    /// What of a stream may be on its way or unread (flow control); eight times as much of all.
    "receive_buffer": FieldKind::size(1200, 1 << 28), setting => at!(receive_buffer_bytes);
    /// Silence after which the tunnel, or a request in it, is over; RFC 9298 asks for two minutes at least.
    "idle_timeout": FieldKind::DURATION, setting => at!(idle_timeout);
    /// How long client and proxy take from a datagram's arrival to what they do about it, always the same or drawn anew
    /// each time; what comes meanwhile is dealt with together. Of several tunnels at a host that with the longest mean
    /// counts.
    "reaction": TIME_OR_RANDOM, setting => at!(reaction);
    /// Timers of client and proxy ring at ticks this far apart, as a program's do; of several tunnels at a host the
    /// coarsest count.
    "timer_granularity": GRANULARITY, setting => at!(timer_granularity);
    /// Size of the proxy's certificate chain; with `cryptography = "tls"` 400 to 60 000 bytes.
    "certificates": FieldKind::size(0, 1 << 20), setting => at!(certificate_bytes);
    quic::cryptography(at!(cryptography, quic::CRYPTOGRAPHY));
};

/// The table of a scenario file.
pub static MASQUE: Table = Table {
    name: "masque",
    text: "Settings of tunnels (CONNECT-UDP, RFC 9298) at client and proxy. `[masque]` holds for all flows with `protocol = \
           \"masque\"`, `[flow.masque]` after a `[[flow]]` for that one. Client and proxy are the programs that also run on \
           real sockets; the ends take no time to do what they do.",
    fields: &[&fields(&KEYS)],
    defaults: Some(|| SETTINGS.defaults(SourceLocation::default())),
    ..Table::EMPTY
};

/// The table, and the settings that it sets.
pub static SETTINGS: SettingsTable<Settings> = SettingsTable { table: &MASQUE, keys: &[&KEYS] };

/// Checks a resolved table for keys that contradict each other; `path` is the path of the table.
pub fn check(tree: &Tree, path: &str, check: &mut Diagnostics) {
    check_distribution(tree, "reaction", path, check);
    if let QueueLimit::Packets(_) = tree.queue_limit("queue_limit") {
        let message = "the queue limit of a tunnel cannot be in packets".to_string();
        let expected =
            vec!["a size such as \"250kB\"".into(), "a duration such as \"100ms\"".into(), "\"unlimited\"".into()];
        check.add_error(tree.location_of("queue_limit"), &format!("{path}.queue_limit"), message, expected);
    }
    if tree.choice("mode") == "stream" && tree.choice("congestion") == "none" {
        let message =
            "mode = \"stream\" requires congestion control (RFC 9298 section 6 exempts only datagrams)".to_string();
        let expected = vec!["mode = \"datagram\"".into(), "another congestion control".into()];
        check.add_error(tree.location_of("congestion"), &format!("{path}.congestion"), message, expected);
    }
}
