//! Tests the TCP presets value by value, and the precedence of TCP settings.

use fullpipe_congestion::component::ControlOptions;
use fullpipe_scenario::description::{Flow, Tcp, Transport};
use fullpipe_scenario::{LoadedScenario, load};
use fullpipe_tcp::{Config, EcnFeedback, EcnMode, KeepAlive, LossDetection};
use fullpipe_units::Duration;

fn good(text: &str) -> LoadedScenario {
    load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn tcp(flow: &Flow) -> &Tcp {
    match &flow.transport {
        Transport::Tcp(tcp) => tcp,
        Transport::Udp | Transport::Quic(_) | Transport::Masque(_) => panic!("{} is not a TCP flow", flow.name),
    }
}

const PAIR: &str = "[topology]\nkind = 'chain'\nlink = [{ rate = '1Mbit/s', delay = '1ms' }]\n";

#[test]
fn flow_setting_precedes_common_setting_precedes_preset() {
    let text = format!(
        "{PAIR}[tcp]\npreset = 'ns3'\nmss = 1000\n\
         [[flow]]\nname = 'inherits'\nfrom = 'source'\nto = 'sink'\n\
         [[flow]]\nname = 'differs'\nfrom = 'source'\nto = 'sink'\ncongestion = 'cubic'\ntcp = {{ nagle = true }}\n\
         [[flow]]\nname = 'own-preset'\nfrom = 'source'\nto = 'sink'\ntcp = {{ preset = 'linux', sack = false }}\n\
         [[flow]]\nname = 'no-rack'\nfrom = 'source'\nto = 'sink'\ntcp = {{ preset = 'linux', loss_detection = \
         'duplicate-acks' }}\n"
    );
    let scenario = good(&text).scenario;
    let inherits = tcp(&scenario.flows[0]);
    assert_eq!(
        (inherits.connection.mss_bytes, inherits.congestion.as_str(), inherits.connection.nagle),
        (1000, "newreno", false)
    );
    assert_eq!((inherits.connection.send_buffer_bytes, inherits.connection.min_rto), (131_072, Duration::from_secs(1)));
    assert_eq!(inherits.connection.loss_detection, LossDetection::DuplicateAcks);
    assert!(!inherits.control.hystart);
    let differs = tcp(&scenario.flows[1]);
    assert_eq!(
        *differs,
        Tcp {
            congestion: "cubic".into(),
            // ns-3's TcpCubic has HyStart; its TcpLinuxReno and TcpNewReno do not.
            control: ControlOptions { hystart: true, ..inherits.control },
            connection: Config { nagle: true, ..inherits.connection.clone() },
            ..inherits.clone()
        }
    );
    let own = tcp(&scenario.flows[2]);
    assert_eq!((own.connection.mss_bytes, own.congestion.as_str(), own.connection.sack), (1448, "cubic", false));
    assert_eq!((own.connection.loss_detection, own.connection.tail_loss_probe), (LossDetection::Rack, true));
    // Tail loss probes require RACK. They are disabled without RACK unless the file enables them.
    assert!(!tcp(&scenario.flows[3]).connection.tail_loss_probe);
}

#[test]
fn preset_ns3_enables_hystart_for_cubic_only() {
    let hystart = |table: &str, flow: &str| {
        let text = format!("{PAIR}[tcp]\npreset = 'ns3'\n{table}\n[[flow]]\nfrom = 'source'\nto = 'sink'\n{flow}\n");
        tcp(&good(&text).scenario.flows[0]).control.hystart
    };
    for control in ["newreno", "highspeed", "vegas", "westwood"] {
        assert!(!hystart(&format!("congestion = '{control}'"), ""), "{control}");
    }
    assert!(hystart("congestion = 'cubic'", ""));
    assert!(!hystart("congestion = 'cubic'", "congestion = 'newreno'"));
    assert!(hystart("", "tcp = { preset = 'ns3', congestion = 'cubic' }"));
    // An explicit value has precedence.
    assert!(hystart("hystart = true", ""));
    assert!(!hystart("hystart = false", "congestion = 'cubic'"));
    assert!(!hystart("congestion = 'cubic'", "tcp = { hystart = false }"));
}

#[test]
fn presets_have_the_documented_values() {
    let preset = |name: &str| {
        let text = format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\ntcp = {{ preset = '{name}' }}\n");
        tcp(&good(&text).scenario.flows[0]).clone()
    };
    // All fields are listed, so that a new field needs a value and a source here. Names in capitals are constants in
    // include/net/tcp.h of Linux 6.12. Names that begin with tcp_ are its sysctls (Documentation/networking/ip-sysctl).
    let linux = Tcp {
        congestion: "cubic".into(), // CONFIG_DEFAULT_TCP_CONG
        control: ControlOptions {
            hystart: true, // tcp_cubic's parameter `hystart` is 1; here by RFC 9406, which `linux_hystart` changes
            hystart_all: false,
            linux_hystart: false,
            paced: false, // the transport's, as `quic`, `ect1` and `seed`
            quic: false,
            ect1: false,
            abe: false,
            classic_ecn_fallback: false,
            rate_limited_increase: false,
            copa_fixed_delta: false,
            seed: 0,
        },
        fast_open_known: false,
        tls: None,
        tls_certificate_bytes: 3000, // as in the model of TLS: a leaf and two more
        receiver_closes: true,       // a server that reads the end of the stream closes its socket
        connection: Config {
            mss_bytes: 1448,                                // 1500 - 20 (IPv4) - 20 (TCP) - 12 (timestamps)
            initial_window_segments: 10,                    // TCP_INIT_CWND
            initial_ssthresh_bytes: None, // no such sysctl; the threshold is infinite (TCP_INFINITE_SSTHRESH)
            send_buffer_bytes: 33_554_432, // the preset's own: 32 MiB
            receive_buffer_bytes: 33_554_432, // the preset's own: 32 MiB
            initial_receive_window_bytes: None, // the preset's own: all of the buffer from the start
            sack: true,                   // tcp_sack 1
            timestamps: true,             // tcp_timestamps 1
            timestamp_tick: Duration::from_millis(1), // TCP_TS_HZ 1000
            rtt_from_timestamps: false,   // tcp_ack_update_rtt: the segment's own time comes first
            window_scaling: true,         // tcp_window_scaling 1
            mss_option: true,             // RFC 9293 section 3.7.1, MUST-14
            delayed_ack_segments: 2,      // RFC 9293 section 3.8.6.3, SHLD-19
            delayed_ack_timeout: Duration::from_millis(40), // TCP_DELACK_MIN: HZ / 25
            nagle: false,                 // the preset's own: TCP_NODELAY
            min_rto: Duration::from_millis(200), // TCP_RTO_MIN: HZ / 5
            initial_rto: Duration::from_secs(1), // TCP_TIMEOUT_INIT: HZ; RFC 6298 rule 2.1
            max_rto: Duration::from_secs(120), // TCP_RTO_MAX: 120 * HZ
            loss_detection: LossDetection::Rack, // tcp_recovery 1
            tail_loss_probe: true,        // tcp_early_retrans 3
            pacing: false,                // default_qdisc is not fq, and CUBIC asks for no pacing
            pacing_quantum_segments: 2,   // tcp_min_tso_segs 2
            idle_restart: true,           // tcp_slow_start_after_idle 1
            max_syn_retransmissions: 6,   // tcp_syn_retries 6
            max_retransmissions: 15,      // tcp_retries2 15
            time_wait: Duration::from_secs(60), // TCP_TIMEWAIT_LEN: 60 * HZ
            first_segment_acknowledged_at_once: false, // quick acknowledgements have this effect
            quick_ack: true,              // TCP_MAX_QUICKACKS 16
            fin_with_data_acknowledged_twice: false,
            keep_alive: None,                   // SO_KEEPALIVE is off (socket(7))
            user_timeout: None,                 // TCP_USER_TIMEOUT 0 (tcp(7))
            fin_wait_2_timeout: None,           // tcp_fin_timeout is for sockets without a process only
            fast_open: false,                   // needs MSG_FASTOPEN (tcp(7))
            black_hole_timeouts: None,          // tcp_mtu_probing 0
            dsack: true,                        // tcp_dsack 1
            dsack_undo: true,                   // tcp_try_undo_dsack
            eifel: true,                        // tcp_packet_delayed
            frto: true,                         // tcp_frto 2
            limited_transmit: true,             // RFC 3042 in tcp_fastretrans_alert's state Disorder
            ecn: EcnMode::Passive,              // tcp_ecn 2
            ecn_feedback: EcnFeedback::Classic, // RFC 3168: Linux 6.12 has no AccECN
            proportional_ecn_reduction: true,   // tcp_cwnd_reduction in state CWR
        },
    };
    assert_eq!(preset("linux"), linux);

    // Names without a class are attributes of ns3::TcpSocket, those with `Base` of ns3::TcpSocketBase.
    let ns3 = Tcp {
        congestion: "newreno".into(), // ns3::TcpL4Protocol's SocketType
        control: ControlOptions { hystart: false, ..linux.control }, // of ns-3's controls, TcpCubic alone has HyStart
        fast_open_known: false,
        tls: None,
        tls_certificate_bytes: 3000, // as in the model of TLS: a leaf and two more
        receiver_closes: false,      // ns3::PacketSink leaves its socket open
        connection: Config {
            mss_bytes: 536,                                  // SegmentSize
            initial_window_segments: 10,                     // InitialCwnd
            initial_ssthresh_bytes: None, // no such sysctl; the threshold is infinite (TCP_INFINITE_SSTHRESH)
            send_buffer_bytes: 131_072,   // SndBufSize
            receive_buffer_bytes: 131_072, // RcvBufSize
            initial_receive_window_bytes: None, // ns-3 does not tune buffers
            sack: true,                   // Base: Sack
            timestamps: true,             // Base: Timestamp
            timestamp_tick: Duration::from_millis(1), // TcpOptionTS::NowToTsValue counts milliseconds
            rtt_from_timestamps: true,    // TcpSocketBase::EstimateRtt
            window_scaling: true,         // Base: WindowScaling
            mss_option: false,            // ns-3 has the option's class, and no socket sends it
            delayed_ack_segments: 2,      // DelAckCount
            delayed_ack_timeout: Duration::from_millis(200), // DelAckTimeout
            nagle: false,                 // TcpNoDelay is true
            min_rto: Duration::from_secs(1), // Base: MinRto
            initial_rto: Duration::from_secs(3), // ConnTimeout
            max_rto: Duration::from_secs(60), // TcpSocketBase::ReTxTimeout's bound
            loss_detection: LossDetection::DuplicateAcks, // RFC 6675 over Sack
            tail_loss_probe: false,       // ns-3 has none
            pacing: false,                // TcpSocketState's EnablePacing
            pacing_quantum_segments: 1,   // a paced socket sends one segment per timer
            idle_restart: false,          // ns-3 has none
            max_syn_retransmissions: 6,   // ConnCount
            max_retransmissions: 6,       // DataRetries
            time_wait: Duration::from_secs(240), // twice Base: MaxSegLifetime, 120 s
            first_segment_acknowledged_at_once: true, // TcpSocketBase::ProcessSynRcvd
            quick_ack: false,
            fin_with_data_acknowledged_twice: true, // TcpSocketBase::ReceivedData, then PeerClose
            keep_alive: None,                       // from here on: ns-3 has none
            user_timeout: None,
            fin_wait_2_timeout: None,
            fast_open: false,
            black_hole_timeouts: None,
            dsack: false,
            dsack_undo: false,
            eifel: false,
            frto: false,
            limited_transmit: true, // Base: LimitedTransmit
            ecn: EcnMode::Off,      // TcpSocketState's UseEcn
            ecn_feedback: EcnFeedback::Classic,
            proportional_ecn_reduction: false, // the window falls at once, in state CA_CWR
        },
    };
    assert_eq!(preset("ns3"), ns3);

    // The preset changes settings that an application would set with socket options. A socket without these options
    // uses Nagle's algorithm (TCP_NODELAY off, tcp(7)), with buffers of 4 MiB (tcp_wmem) and 6 MiB (tcp_rmem). It first
    // advertises at most 65 536 bytes: half of tcp_rmem's default of 131 072 (tcp_adv_win_scale 1).
    let socket = Config {
        nagle: true,
        send_buffer_bytes: 4_194_304,
        receive_buffer_bytes: 6_291_456,
        initial_receive_window_bytes: Some(65_536),
        ..linux.connection
    };
    assert_eq!(Config::linux(), socket);
}

/// Tests with a TCP table that differs from the preset in every key, so that settings cannot be interchanged unnoticed.
#[test]
fn each_setting_sets_its_own_field() {
    let text = format!(
        "{PAIR}[tcp]\ncongestion = 'linux-reno'\nmss = 1001\ninitial_window = 3\nsend_buffer = 100002\n\
         receive_buffer = 100003\nsack = false\ntimestamp_tick = '4ms'\nwindow_scaling = false\n\
         delayed_ack_segments = 5\ndelayed_ack_timeout = '6ms'\nnagle = true\nmin_rto = '7ms'\ninitial_rto = '8ms'\n\
         max_rto = '9s'\nidle_restart = false\nmax_syn_retransmissions = 10\nmax_retransmissions = 11\n\
         time_wait = '12ms'\ntail_loss_probe = false\npacing = true\npacing_quantum = 13\n\
         [[flow]]\nfrom = 'source'\nto = 'sink'\n"
    );
    let scenario = good(&text).scenario;
    let tcp = tcp(&scenario.flows[0]);
    let ms = Duration::from_millis;
    assert_eq!(
        (tcp.congestion.as_str(), tcp.connection.mss_bytes, tcp.connection.initial_window_segments),
        ("linux-reno", 1001, 3)
    );
    assert_eq!((tcp.connection.send_buffer_bytes, tcp.connection.receive_buffer_bytes), (100_002, 100_003));
    assert_eq!(
        (tcp.connection.sack, tcp.connection.timestamps, tcp.connection.window_scaling, tcp.connection.mss_option),
        (false, true, false, true)
    );
    assert_eq!(
        (tcp.connection.timestamp_tick, tcp.connection.delayed_ack_segments, tcp.connection.delayed_ack_timeout),
        (ms(4), 5, ms(6))
    );
    assert_eq!(
        (tcp.connection.nagle, tcp.connection.min_rto, tcp.connection.initial_rto, tcp.connection.max_rto),
        (true, ms(7), ms(8), ms(9000))
    );
    assert_eq!(
        (tcp.connection.idle_restart, tcp.connection.max_syn_retransmissions, tcp.connection.max_retransmissions),
        (false, 10, 11)
    );
    assert_eq!((tcp.connection.time_wait, tcp.connection.tail_loss_probe, tcp.control.hystart), (ms(12), false, true));
    assert_eq!((tcp.connection.pacing, tcp.connection.pacing_quantum_segments, tcp.receiver_closes), (true, 13, true));
    // One key at a time changes its own field only.
    let plain = good(&format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\n")).scenario.flows.remove(0);
    let plain = self::tcp(&plain);
    type Change = fn(&mut Tcp);
    let changes: [(&str, Change); 40] = [
        ("mss = 1001", |tcp| tcp.connection.mss_bytes = 1001),
        ("initial_receive_window = 1002", |tcp| tcp.connection.initial_receive_window_bytes = Some(1002)),
        ("sack = false", |tcp| tcp.connection.sack = false),
        ("timestamps = false", |tcp| tcp.connection.timestamps = false),
        ("rtt_from_timestamps = true", |tcp| tcp.connection.rtt_from_timestamps = true),
        ("window_scaling = false", |tcp| tcp.connection.window_scaling = false),
        ("mss_option = false", |tcp| tcp.connection.mss_option = false),
        ("nagle = true", |tcp| tcp.connection.nagle = true),
        ("idle_restart = false", |tcp| tcp.connection.idle_restart = false),
        ("user_timeout = '7s'", |tcp| tcp.connection.user_timeout = Some(Duration::from_secs(7))),
        ("fin_wait_2_timeout = '7s'", |tcp| tcp.connection.fin_wait_2_timeout = Some(Duration::from_secs(7))),
        ("keep_alive = '7s'", |tcp| {
            // RFC 9293 section 3.8.4 leaves the other values open: 75 s and nine probes, tcp_keepalive_intvl and _probes.
            let (idle, interval) = (Duration::from_secs(7), Duration::from_secs(75));
            tcp.connection.keep_alive = Some(KeepAlive { idle, interval, probes: 9 });
        }),
        ("first_segment_acknowledged_at_once = true", |tcp| tcp.connection.first_segment_acknowledged_at_once = true),
        ("quick_ack = false", |tcp| tcp.connection.quick_ack = false),
        ("fin_with_data_acknowledged_twice = true", |tcp| tcp.connection.fin_with_data_acknowledged_twice = true),
        ("loss_detection = 'duplicate-acks'", |tcp| {
            tcp.connection.loss_detection = LossDetection::DuplicateAcks;
            tcp.connection.tail_loss_probe = false;
        }),
        ("tail_loss_probe = false", |tcp| tcp.connection.tail_loss_probe = false),
        ("dsack = false", |tcp| tcp.connection.dsack = false),
        ("dsack_undo = false", |tcp| tcp.connection.dsack_undo = false),
        ("eifel = false", |tcp| tcp.connection.eifel = false),
        ("frto = false", |tcp| tcp.connection.frto = false),
        ("limited_transmit = false", |tcp| tcp.connection.limited_transmit = false),
        ("initial_ssthresh = '14480B'", |tcp| tcp.connection.initial_ssthresh_bytes = Some(14_480)),
        ("black_hole_timeouts = 7", |tcp| tcp.connection.black_hole_timeouts = Some(7)),
        ("ecn = 'off'", |tcp| tcp.connection.ecn = EcnMode::Off),
        ("ecn = 'active'", |tcp| tcp.connection.ecn = EcnMode::Active),
        ("ecn_feedback = 'dctcp'", |tcp| tcp.connection.ecn_feedback = EcnFeedback::Dctcp),
        ("ecn_feedback = 'accurate'", |tcp| tcp.connection.ecn_feedback = EcnFeedback::Accurate),
        ("proportional_ecn_reduction = false", |tcp| tcp.connection.proportional_ecn_reduction = false),
        ("abe = true", |tcp| tcp.control.abe = true),
        ("classic_ecn_fallback = true", |tcp| tcp.control.classic_ecn_fallback = true),
        ("hystart_all = true", |tcp| tcp.control.hystart_all = true),
        ("rate_limited_increase = true", |tcp| tcp.control.rate_limited_increase = true),
        ("copa_mode = 'fixed-delta'", |tcp| tcp.control.copa_fixed_delta = true),
        ("pacing = true", |tcp| tcp.connection.pacing = true),
        ("fast_open = 'ask'", |tcp| tcp.connection.fast_open = true),
        ("fast_open = 'known'", |tcp| {
            tcp.connection.fast_open = true;
            tcp.fast_open_known = true;
        }),
        ("hystart = false", |tcp| tcp.control.hystart = false),
        ("hystart_variant = 'linux'", |tcp| tcp.control.linux_hystart = true),
        ("receiver_closes = false", |tcp| tcp.receiver_closes = false),
    ];
    for (key, change) in changes {
        let scenario = good(&format!("{PAIR}[[flow]]\nfrom = 'source'\nto = 'sink'\ntcp = {{ {key} }}\n")).scenario;
        let mut expected = plain.clone();
        change(&mut expected);
        assert_eq!(*self::tcp(&scenario.flows[0]), expected, "{key}");
    }
}
