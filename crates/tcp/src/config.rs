//! Settings of a connection, three presets, and the scenario keys that set them.
//!
//! A setting that requires the peer's agreement (timestamps, SACK, window scaling) is an offer; a connection uses it if
//! both ends offered it. HyStart++ belongs to the congestion control, and closing at end of stream to the application.
//! Neither is a setting here.

use fullpipe_congestion::rtt::{RtoFloor, RttConfig};
use fullpipe_schema::component::choices;
use fullpipe_schema::settings::{SettingKey, SettingValue};
use fullpipe_schema::{Choice, FieldKind, Value, ValueData, at, named, setting_keys};
use fullpipe_units::Duration;

/// Loss detection algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// Time-based: RACK (RFC 8985).
    Rack,
    /// Based on selective or duplicate acknowledgments: RFC 6675, or RFC 6582 without SACK.
    DuplicateAcks,
}

/// Use of explicit congestion notification (RFC 3168). The modes correspond to values of Linux's `net.ipv4.tcp_ecn`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnMode {
    /// ECN is not used.
    #[default]
    Off,
    /// ECN is used if the peer requests it.
    Passive,
    /// The client requests ECN, and the server accepts it.
    Active,
}

/// Form of the ECN feedback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnFeedback {
    /// The receiver sets ECE from the arrival of a mark until CWR arrives (RFC 3168).
    #[default]
    Classic,
    /// The ECE flag of each acknowledgment states whether the acknowledged segments were marked (RFC 8257 section 3.2).
    /// Both ends need this setting, because the handshake does not distinguish DCTCP feedback from classic feedback.
    Dctcp,
    /// Counters of packets and bytes (AccECN, RFC 9768), or classic feedback if the peer does not support AccECN.
    Accurate,
}

/// Keep-alive probing (RFC 9293 section 3.8.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepAlive {
    /// Idle time after which keep-alive probes are sent.
    pub idle: Duration,
    /// Interval between keep-alive probes.
    pub interval: Duration,
    /// Unanswered probes after which the connection is aborted.
    pub probes: u32,
}

impl Default for KeepAlive {
    /// Two hours, the minimum of RFC 9293 (MUST-28), then nine probes every 75 s, as in Linux.
    fn default() -> KeepAlive {
        KeepAlive { idle: Duration::from_secs(7200), interval: Duration::from_secs(75), probes: 9 }
    }
}

/// A scenario sets only the idle time.
impl SettingValue for KeepAlive {
    fn from_value(value: &Value) -> Self {
        KeepAlive { idle: value.duration(), ..KeepAlive::default() }
    }

    fn to_data(&self, _: &FieldKind) -> Option<ValueData> {
        Some(ValueData::Duration(self.idle))
    }
}

/// Settings of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Payload of a full data segment in bytes, excluding TCP options: 1 to 65 000.
    pub mss_bytes: u32,
    /// Initial window in segments (RFC 6928: 10).
    pub initial_window_segments: u32,
    /// Slow-start threshold in bytes at the start of the connection (`None`: unlimited). A threshold of at most the
    /// initial window disables the first slow start.
    pub initial_ssthresh_bytes: Option<u64>,
    /// Send buffer in bytes, for data that is written and not yet acknowledged.
    pub send_buffer_bytes: u64,
    /// Receive buffer in bytes, which determines the receive window and the window scale.
    pub receive_buffer_bytes: u64,
    /// Offer selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Offer timestamps (RFC 7323).
    pub timestamps: bool,
    /// Granularity of the timestamp clock and of round-trip times measured with it.
    pub timestamp_tick: Duration,
    /// Whether round-trip times are measured from echoed timestamps (RFC 7323 section 4) instead of from the send time
    /// of each segment. Without timestamps the send time is used.
    pub rtt_from_timestamps: bool,
    /// Offer window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Send the MSS option on SYN segments. If neither end sends it, `mss_bytes` applies to both.
    pub mss_option: bool,
    /// Number of segments per acknowledgment, 1 to 255. With 1, each segment is acknowledged immediately; RFC 9293
    /// section 3.8.6.3 recommends at most 2.
    pub delayed_ack_segments: u32,
    /// Maximum delay of an acknowledgment.
    pub delayed_ack_timeout: Duration,
    /// Nagle's algorithm (RFC 9293 section 3.7.4).
    pub nagle: bool,
    /// Minimum retransmission timeout. With [`LossDetection::DuplicateAcks`] it bounds the whole timeout (RFC 6298 rule
    /// 2.4, ns-3). With [`LossDetection::Rack`] it bounds the part added to the smoothed round-trip time (Linux).
    pub min_rto: Duration,
    /// Retransmission timeout before the first sample.
    pub initial_rto: Duration,
    /// Maximum retransmission timeout, including backoff.
    pub max_rto: Duration,
    /// Loss detection algorithm.
    pub loss_detection: LossDetection,
    /// Tail loss probes (RFC 8985 section 7), with RACK only.
    pub tail_loss_probe: bool,
    /// Pace segments even if the control sets no pacing rate.
    pub pacing: bool,
    /// Segments sent together under pacing, unless the control sets another number.
    pub pacing_quantum_segments: u32,
    /// Reduce the window when sending restarts after an idle time longer than the retransmission timeout (RFC 5681
    /// section 4.1).
    pub idle_restart: bool,
    /// SYN retransmissions before the connection attempt is aborted.
    pub max_syn_retransmissions: u32,
    /// Consecutive timeouts of the same data before the connection is aborted (RFC 9293 section 3.8.3, R2).
    pub max_retransmissions: u32,
    /// Duration of TIME-WAIT: twice the maximum segment lifetime (RFC 9293 section 3.4.1).
    pub time_wait: Duration,
    /// Acknowledge the first data segment immediately instead of delaying the acknowledgment (ns-3).
    pub first_segment_acknowledged_at_once: bool,
    /// Acknowledge each segment separately in some phases, as Linux does. These are the start, after an idle period,
    /// after duplicate data, when the echo of a mark begins, and while the receive buffer grows.
    pub quick_ack: bool,
    /// Acknowledge a FIN with data twice if the data requires an acknowledgment: once for the data and once for the
    /// FIN, as ns-3 does.
    pub fin_with_data_acknowledged_twice: bool,
    /// Send keep-alive probes on an idle connection (`None`: never).
    pub keep_alive: Option<KeepAlive>,
    /// Time after which the connection is aborted if sent data is not acknowledged or a SYN is not answered (RFC 9293
    /// section 3.8.3, RFC 5482). `None`: only `max_retransmissions` and `max_syn_retransmissions` limit this time.
    pub user_timeout: Option<Duration>,
    /// Maximum time in FIN-WAIT-2, in which this end has sent its FIN and the peer has not (`None`: unlimited).
    pub fin_wait_2_timeout: Option<Duration>,
    /// Initial size of the receive buffer in bytes. The buffer grows, up to `receive_buffer_bytes`, with the data that
    /// the application reads per round-trip time (Linux: 64 KiB, half of `tcp_rmem`'s default). `None`: the full size
    /// from the start.
    pub initial_receive_window_bytes: Option<u64>,
    /// Fast Open (RFC 7413): a client requests a cookie or uses a cached one; a server issues and validates cookies.
    pub fast_open: bool,
    /// Number of consecutive timeouts of a large segment after which the sender assumes a black hole for large packets.
    /// It then sends smaller segments (RFC 4821; 3 in Linux with `tcp_mtu_probing` = 1). `None`, the default of Linux:
    /// never.
    pub black_hole_timeouts: Option<u32>,
    /// Report received duplicates (D-SACK, RFC 2883), if SACK is negotiated.
    pub dsack: bool,
    /// Undo a reduction if D-SACK reports every retransmission of the loss recovery episode as a duplicate (as in
    /// Linux).
    pub dsack_undo: bool,
    /// Undo a reduction if an echoed timestamp shows that the original of a retransmitted segment arrived (RFC 3522,
    /// RFC 4015). Also undo it if a segment marked lost is acknowledged before any retransmission (Linux since 6.12).
    pub eifel: bool,
    /// After a timeout, send new data first to detect whether the timeout was spurious (F-RTO, RFC 5682), if SACK is
    /// negotiated.
    pub frto: bool,
    /// Send a new segment for each of the first two duplicate acknowledgments (RFC 3042), with
    /// [`LossDetection::DuplicateAcks`].
    pub limited_transmit: bool,
    /// Use of explicit congestion notification.
    pub ecn: EcnMode,
    /// Form of the ECN feedback.
    pub ecn_feedback: EcnFeedback,
    /// After a mark, reduce the window over one round trip to the value that the control returned, as after a loss
    /// (Linux), instead of immediately.
    pub proportional_ecn_reduction: bool,
}

impl Config {
    /// The defaults of a socket of Linux 6.12: RACK-TLP, delayed acknowledgments of 40 ms, a minimum timeout of 200 ms,
    /// and Nagle's algorithm. The buffers are within the bounds of `tcp_wmem` and `tcp_rmem`.
    pub fn linux() -> Config {
        Config {
            mss_bytes: 1448,
            initial_window_segments: 10,
            initial_ssthresh_bytes: None,
            send_buffer_bytes: 4 << 20,
            receive_buffer_bytes: 6 << 20,
            sack: true,
            timestamps: true,
            timestamp_tick: Duration::from_millis(1),
            rtt_from_timestamps: false,
            window_scaling: true,
            mss_option: true,
            delayed_ack_segments: 2,
            delayed_ack_timeout: Duration::from_millis(40),
            nagle: true,
            min_rto: Duration::from_millis(200),
            initial_rto: Duration::from_secs(1),
            max_rto: Duration::from_secs(120),
            loss_detection: LossDetection::Rack,
            tail_loss_probe: true,
            pacing: false,
            pacing_quantum_segments: 2,
            idle_restart: true,
            max_syn_retransmissions: 6,
            max_retransmissions: 15,
            time_wait: Duration::from_secs(60),
            first_segment_acknowledged_at_once: false,
            quick_ack: true,
            fin_with_data_acknowledged_twice: false,
            keep_alive: None,
            user_timeout: None,
            fin_wait_2_timeout: None,
            initial_receive_window_bytes: Some(65_536),
            fast_open: false,
            black_hole_timeouts: None,
            dsack: true,
            dsack_undo: true,
            eifel: true,
            frto: true,
            limited_transmit: true,
            ecn: EcnMode::Passive,
            ecn_feedback: EcnFeedback::Classic,
            proportional_ecn_reduction: true,
        }
    }

    /// [`Config::linux`] for bulk transfers: 32 MiB of buffer at both ends, available from the start, and
    /// `TCP_NODELAY`. Up to 6 Gbit/s at a round-trip time of 40 ms, the network and not the host limits such a
    /// connection. This is the preset `linux` of scenarios.
    pub fn linux_large_buffers() -> Config {
        Config {
            send_buffer_bytes: 32 << 20,
            receive_buffer_bytes: 32 << 20,
            initial_receive_window_bytes: None,
            nagle: false,
            ..Config::linux()
        }
    }

    /// The defaults of ns-3 (3.33 to 3.37): 536-byte segments, no MSS option, 128 KiB buffers, and loss detection
    /// according to RFC 6675.
    pub fn ns3() -> Config {
        Config {
            mss_bytes: 536,
            initial_window_segments: 10,
            initial_ssthresh_bytes: None,
            send_buffer_bytes: 131_072,
            receive_buffer_bytes: 131_072,
            sack: true,
            timestamps: true,
            timestamp_tick: Duration::from_millis(1),
            rtt_from_timestamps: true,
            window_scaling: true,
            mss_option: false,
            delayed_ack_segments: 2,
            delayed_ack_timeout: Duration::from_millis(200),
            nagle: false,
            min_rto: Duration::from_secs(1),
            initial_rto: Duration::from_secs(3),
            max_rto: Duration::from_secs(60),
            loss_detection: LossDetection::DuplicateAcks,
            tail_loss_probe: false,
            pacing: false,
            pacing_quantum_segments: 1,
            idle_restart: false,
            max_syn_retransmissions: 6,
            max_retransmissions: 6,
            time_wait: Duration::from_secs(240),
            first_segment_acknowledged_at_once: true,
            quick_ack: false,
            fin_with_data_acknowledged_twice: true,
            keep_alive: None,
            user_timeout: None,
            fin_wait_2_timeout: None,
            initial_receive_window_bytes: None,
            fast_open: false,
            black_hole_timeouts: None,
            dsack: false,
            dsack_undo: false,
            eifel: false,
            frto: false,
            limited_transmit: true,
            ecn: EcnMode::Off,
            ecn_feedback: EcnFeedback::Classic,
            proportional_ecn_reduction: false,
        }
    }
}

impl Config {
    /// The settings of the retransmission timeout.
    #[inline(always)]
    pub(crate) fn rtt(&self) -> RttConfig {
        RttConfig {
            initial_rto: self.initial_rto,
            min_rto: self.min_rto,
            max_rto: self.max_rto,
            granularity: self.timestamp_tick.min(self.min_rto),
            floor: match self.loss_detection {
                LossDetection::Rack => RtoFloor::Variation,
                LossDetection::DuplicateAcks => RtoFloor::Total,
            },
            min_rtt_window: Duration::MAX,
        }
    }

    /// Initial capacity of the receive buffer in bytes.
    pub(crate) fn first_receive_buffer_bytes(&self) -> u64 {
        self.initial_receive_window_bytes.unwrap_or(u64::MAX).min(self.receive_buffer_bytes)
    }

    /// Smallest shift with which the window field can represent the whole receive buffer (RFC 7323 section 2.3: at most
    /// 14).
    pub(crate) fn window_scale(&self) -> u8 {
        (0..14).find(|shift| self.receive_buffer_bytes >> shift <= 65_535).unwrap_or(14)
    }
}

impl Default for Config {
    fn default() -> Config {
        Config::linux()
    }
}

static LOSS_DETECTION: [(Choice, LossDetection); 2] = named! {
    /// RACK: by the time of transmission (RFC 8985).
    "rack" => LossDetection::Rack;
    /// by selective or duplicate acknowledgements (RFC 6675).
    "duplicate-acks" => LossDetection::DuplicateAcks;
};

static ECN: [(Choice, EcnMode); 3] = [
    (Choice::new("off", "ECN is not used."), EcnMode::Off),
    (Choice::new("passive", "ECN is used if the peer requests it."), EcnMode::Passive),
    (Choice::new("active", "ECN is requested, and used if the peer requests it."), EcnMode::Active),
];

static ECN_FEEDBACK: [(Choice, EcnFeedback); 3] = [
    (
        Choice::new("classic", "ECE on every acknowledgement until the sender sends CWR (RFC 3168)."),
        EcnFeedback::Classic,
    ),
    (Choice::new("dctcp", "ECE reflects the mark of each segment (RFC 8257)."), EcnFeedback::Dctcp),
    (Choice::new("accurate", "counters of marked packets and bytes (AccECN, RFC 9768)."), EcnFeedback::Accurate),
];

/// Default of keys that a preset sets.
pub(crate) const BY_PRESET: &str = "by preset";
const RTO: FieldKind = FieldKind::duration(Duration::from_nanos(1), Duration::from_secs(3600));

/// The scenario keys of a connection. `settings.rs` has the presets and the checks for contradictory keys.
pub(crate) static KEYS: [SettingKey<Config>; 41] = setting_keys! {
    /// Payload of a full data segment, without TCP options (1448B with timestamps fills an IP packet of 1500 bytes).
    "mss": FieldKind::size(16, 65_000), optional BY_PRESET => at!(mss_bytes);
    /// Initial congestion window (RFC 6928: 10).
    "initial_window" ["segments"]: FieldKind::integer(1, 1000), optional BY_PRESET => at!(initial_window_segments);
    /// Slow-start threshold at the start of a connection. A threshold of at most the initial window disables the first
    /// slow start. BBR does not use it.
    "initial_ssthresh": FieldKind::size(1, 1 << 40), optional "unlimited" => at!(initial_ssthresh_bytes);
    /// Size of the send buffer: data written and not yet acknowledged. 32MiB allows 6 Gbit/s at a round-trip time of
    /// 40 ms.
    "send_buffer": FieldKind::size(16, 16 << 30), optional BY_PRESET => at!(send_buffer_bytes);
    /// Size of the receive buffer, which limits the advertised window.
    "receive_buffer": FieldKind::size(16, 1 << 30), optional BY_PRESET => at!(receive_buffer_bytes);
    /// Initial size of the receive buffer. It grows up to `receive_buffer` with the amount of data that the application
    /// reads per round-trip time (Linux: 64KiB).
    "initial_receive_window": FieldKind::size(16, 1 << 30), optional "as `receive_buffer`" =>
        at!(initial_receive_window_bytes);
    /// Whether selective acknowledgements are used (RFC 2018).
    "sack": FieldKind::Boolean, optional BY_PRESET => at!(sack);
    /// Whether timestamps are used (RFC 7323).
    "timestamps": FieldKind::Boolean, optional BY_PRESET => at!(timestamps);
    /// Granularity of timestamps and of round-trip times measured with them.
    "timestamp_tick": FieldKind::duration(Duration::from_nanos(1), Duration::from_secs(1)), optional BY_PRESET =>
        at!(timestamp_tick);
    /// Whether round-trip times are measured with echoed timestamps instead of the transmission time of each segment.
    "rtt_from_timestamps": FieldKind::Boolean, optional BY_PRESET => at!(rtt_from_timestamps);
    /// Whether window scaling is used (RFC 7323).
    "window_scaling": FieldKind::Boolean, optional BY_PRESET => at!(window_scaling);
    /// Whether SYN segments have the MSS option.
    "mss_option": FieldKind::Boolean, optional BY_PRESET => at!(mss_option);
    /// Full segments after which an acknowledgement is sent immediately; 1 disables delayed acknowledgements.
    "delayed_ack_segments" ["segments"]: FieldKind::integer(1, 255), optional BY_PRESET => at!(delayed_ack_segments);
    /// Maximum delay of an acknowledgement.
    "delayed_ack_timeout": FieldKind::duration(Duration::ZERO, Duration::from_secs(10)), optional BY_PRESET =>
        at!(delayed_ack_timeout);
    /// Whether Nagle's algorithm is used (RFC 9293 section 3.7.4). Both presets disable it, as with TCP_NODELAY.
    "nagle": FieldKind::Boolean, optional BY_PRESET => at!(nagle);
    /// Minimum of the retransmission timeout.
    "min_rto": RTO, optional BY_PRESET => at!(min_rto);
    /// Retransmission timeout before the first round-trip sample.
    "initial_rto": RTO, optional BY_PRESET => at!(initial_rto);
    /// Maximum of the retransmission timeout.
    "max_rto": RTO, optional BY_PRESET => at!(max_rto);
    /// Whether the congestion window is reduced to the restart window after an idle period longer than the
    /// retransmission timeout (RFC 5681 section 4.1).
    "idle_restart": FieldKind::Boolean, optional BY_PRESET => at!(idle_restart);
    /// Number of SYN retransmissions after which the connection attempt fails.
    "max_syn_retransmissions": FieldKind::integer(0, 255), optional BY_PRESET => at!(max_syn_retransmissions);
    /// Number of consecutive timeouts after which the connection is aborted.
    "max_retransmissions": FieldKind::integer(1, 255), optional BY_PRESET => at!(max_retransmissions);
    /// User timeout: time without an acknowledgement of sent data after which the connection is aborted (RFC 9293
    /// section 3.8.3).
    "user_timeout": FieldKind::INTERVAL, optional "off" => at!(user_timeout);
    /// Time in FIN-WAIT-2 after which the connection is closed.
    "fin_wait_2_timeout": FieldKind::INTERVAL, optional "off" => at!(fin_wait_2_timeout);
    /// Idle time after which keep-alive probes are sent: up to nine, every 75 s (RFC 9293 section 3.8.4).
    "keep_alive": FieldKind::INTERVAL, optional "off" => at!(keep_alive);
    /// Duration of TIME-WAIT.
    "time_wait": FieldKind::duration(Duration::ZERO, Duration::from_secs(3600)), optional BY_PRESET => at!(time_wait);
    /// Whether the acknowledgement of the first data segment is not delayed, as in ns-3.
    "first_segment_acknowledged_at_once": FieldKind::Boolean, optional BY_PRESET => at!(first_segment_acknowledged_at_once);
    /// Whether acknowledgements are not delayed (as in Linux) at the start of a connection, after an idle period, after
    /// duplicate data, when the echo of congestion marks begins, and while the receive window grows.
    "quick_ack": FieldKind::Boolean, optional BY_PRESET => at!(quick_ack);
    /// Whether a FIN on a data segment is acknowledged twice if the data require an acknowledgement, as in ns-3.
    "fin_with_data_acknowledged_twice": FieldKind::Boolean, optional BY_PRESET => at!(fin_with_data_acknowledged_twice);
    /// Loss detection algorithm.
    "loss_detection": FieldKind::Choice(&choices(&LOSS_DETECTION)), optional BY_PRESET =>
        at!(loss_detection, LOSS_DETECTION);
    /// Whether tail loss probes are sent (RFC 8985 section 7). Requires `loss_detection = "rack"`.
    "tail_loss_probe": FieldKind::Boolean, optional BY_PRESET => at!(tail_loss_probe);
    /// Whether duplicate segments are reported to the sender (D-SACK, RFC 2883).
    "dsack": FieldKind::Boolean, optional BY_PRESET => at!(dsack);
    /// Whether a window reduction is undone when D-SACK reports that all retransmissions were spurious, as in Linux.
    "dsack_undo": FieldKind::Boolean, optional BY_PRESET => at!(dsack_undo);
    /// Whether a window reduction is undone when an echoed timestamp shows that the original segment arrived (RFC 3522,
    /// RFC 4015), or when it arrived before any retransmission was sent.
    "eifel": FieldKind::Boolean, optional BY_PRESET => at!(eifel);
    /// Whether spurious retransmission timeouts are detected by sending new data after the first retransmission (F-RTO,
    /// RFC 5682).
    "frto": FieldKind::Boolean, optional BY_PRESET => at!(frto);
    /// Whether a new segment is sent for each of the first two duplicate acknowledgements (RFC 3042), with
    /// `loss_detection = "duplicate-acks"`.
    "limited_transmit": FieldKind::Boolean, optional BY_PRESET => at!(limited_transmit);
    /// Number of consecutive timeouts of a full segment after which smaller segments are sent (RFC 4821).
    "black_hole_timeouts": FieldKind::integer(1, 255), optional "never" => at!(black_hole_timeouts);
    /// Use of explicit congestion notification (RFC 3168).
    "ecn": FieldKind::Choice(&choices(&ECN)), optional BY_PRESET => at!(ecn, ECN);
    /// Form of ECN feedback. With `congestion = "dctcp"`, the default is `dctcp` (and `active` for `ecn`). With
    /// `accurate`, DCTCP sends ECT(1), so that `dualpi2` assigns its packets to the low-latency queue. With
    /// `congestion = "prague"`, the default is `accurate` (and `active`), and `prague` sends ECT(1).
    "ecn_feedback": FieldKind::Choice(&choices(&ECN_FEEDBACK)), optional BY_PRESET => at!(ecn_feedback, ECN_FEEDBACK);
    /// Whether the window is reduced over one round trip after a congestion mark (proportional rate reduction), as in
    /// Linux, instead of immediately.
    "proportional_ecn_reduction": FieldKind::Boolean, optional BY_PRESET => at!(proportional_ecn_reduction);
    /// Whether every congestion control is paced, as by the fq qdisc of Linux.
    "pacing": FieldKind::Boolean, optional BY_PRESET => at!(pacing);
    /// Number of segments in one burst when paced.
    "pacing_quantum" ["segments"]: FieldKind::integer(1, 1000), optional BY_PRESET => at!(pacing_quantum_segments);
};
