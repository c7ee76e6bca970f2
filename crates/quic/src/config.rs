//! The settings of one endpoint of a connection, and their keys in a scenario.

use crate::scheduler::{RetransmissionOrder, RoundRobin, StreamScheduler};
use fullpipe_schema::component::choices;
use fullpipe_schema::settings::{FieldAccess, SettingKey, SettingValue, choice_name, set_from_choice};
use fullpipe_schema::{Choice, FieldKind, at, named, setting_keys};
use fullpipe_transport::quic::{self, DATAGRAM};
use fullpipe_units::Duration;
use fullpipe_wire::TransportParameters;

/// Sizes in bytes of the handshake messages, including message headers (RFC 8446 section 4).
///
/// The defaults are those of the real stack with null cryptography in virtual time. The flights of the model and the
/// real stack therefore have the same sizes. They assume an X25519 key share, one Ed25519 signature, and SHA-256.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeSizes {
    /// The ClientHello message.
    pub client_hello_bytes: u64,
    /// The ServerHello message.
    pub server_hello_bytes: u64,
    /// EncryptedExtensions, CertificateVerify and Finished, and Certificate without the certificates.
    pub server_flight_bytes: u64,
    /// The certificate chain.
    pub certificate_bytes: u64,
    /// The client's Finished message.
    pub client_finished_bytes: u64,
}

impl Default for HandshakeSizes {
    fn default() -> Self {
        HandshakeSizes {
            client_hello_bytes: 230,
            server_hello_bytes: 90,
            server_flight_bytes: 258,
            certificate_bytes: 3000,
            client_finished_bytes: 36,
        }
    }
}

/// The acknowledgment behavior that a sender requests from its peer (draft-ietf-quic-ack-frequency-11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Ack-eliciting packets that the peer may receive without an acknowledgment (Ack-Eliciting Threshold).
    pub threshold: u64,
    /// The requested max_ack_delay.
    pub max_ack_delay: Duration,
}

/// Settings of one endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Maximum UDP payload of a datagram in bytes until a larger size is validated. At least 1200 (RFC 9000 section
    /// 14).
    pub initial_mtu_bytes: u16,
    /// Largest UDP payload in bytes for which the path is probed (RFC 8899); `None` if the path is not probed.
    pub largest_mtu_bytes: Option<u16>,
    /// Initial congestion window in packets. RFC 9002 section 7.2 recommends ten.
    pub initial_window_packets: u64,
    /// Whether the initial window is limited to the larger of 14 720 bytes and two packets (RFC 9002 section 7.2).
    pub bounded_initial_window: bool,
    /// Size of a stream's send buffer in bytes. It holds data until the data is acknowledged.
    pub send_buffer_bytes: u64,
    /// Size of a stream's receive window in bytes. Data in flight and unread data occupy the window.
    pub receive_buffer_bytes: u64,
    /// Size of a connection's receive window in bytes, over all streams.
    pub connection_receive_buffer_bytes: u64,
    /// Initial receive windows of streams and connection in bytes. A window doubles, up to its full size, when the
    /// application reads it in less than two round-trip times. `None` if windows have their full sizes from the start.
    pub initial_receive_window_bytes: Option<u64>,
    /// Maximum number of streams of each type that the peer may have open at a time.
    pub max_streams: u64,
    /// Time without packets after which the connection ends (RFC 9000 section 10.1); zero disables the timeout.
    pub idle_timeout: Duration,
    /// Sizes of the handshake messages.
    pub handshake: HandshakeSizes,
    /// Length of a connection ID in bytes, 0 to 20.
    pub connection_id_bytes: u8,
    /// Number of unused connection IDs that each endpoint provides to its peer (active_connection_id_limit, at least
    /// 2).
    pub active_connection_ids: u64,
    /// The transport parameter max_ack_delay (RFC 9000 section 13.2.1).
    pub max_ack_delay: Duration,
    /// Number of ack-eliciting packets after which an acknowledgment is sent immediately. RFC 9000 section 13.2.2
    /// recommends 2.
    pub ack_every_packets: u64,
    /// The transport parameter ack_delay_exponent.
    pub ack_delay_exponent: u8,
    /// The acknowledgment behavior requested from a peer that supports the extension; `None` if none is requested.
    pub ack_frequency: Option<AckFrequency>,
    /// Whether packets are sent as ECN-capable until validation fails (RFC 9000 section 13.4).
    pub ecn: bool,
    /// Whether packets are paced (RFC 9002 section 7.7). With a controller that requires pacing, they are always paced.
    pub pacing: bool,
    /// Pacing rate in congestion windows per round-trip time, for controllers without their own pacing rate. RFC 9002
    /// section 7.7 suggests 1.25.
    pub pacing_gain: f64,
    /// Packets that may be sent in one burst, for controllers without their own send quantum. RFC 9002 section 7.7
    /// limits it to the initial window. A burst may also contain the data of 2 ms at the pacing rate, if this is more.
    /// A burst never exceeds the data of 10 ms.
    pub pacing_burst_packets: u64,
    /// Whether packets are also paced before the first round-trip sample, based on [`Config::initial_rtt`]. Otherwise
    /// the initial window may be sent in one burst.
    pub pace_first_flight: bool,
    /// Whether delivery-rate samples over an interval shorter than the smallest round-trip time are used. Otherwise
    /// they are discarded.
    pub keep_short_rate_samples: bool,
    /// kPacketThreshold in packets (RFC 9002 section 6.1.1).
    pub packet_threshold: u64,
    /// kPersistentCongestionThreshold (RFC 9002 section 7.6.1).
    pub persistent_congestion_threshold: u64,
    /// kInitialRtt (RFC 9002 section 6.2.2).
    pub initial_rtt: Duration,
    /// Whether a client that remembers the server sends data with its first datagram (0-RTT), and whether a server
    /// accepts such data.
    pub zero_rtt: bool,
    /// Whether the server validates the address of a client with a Retry packet before it processes the handshake.
    pub retry: bool,
    /// The scheduler that selects the stream that sends next.
    pub scheduler: StreamScheduler,
    /// When lost data is retransmitted.
    pub retransmission: RetransmissionOrder,
    /// Whether the application receives the bytes of a stream in the order of their arrival instead of stream order.
    pub unordered: bool,
    /// Largest DATAGRAM frame in bytes that the endpoint accepts (RFC 9221); 0 disables DATAGRAM frames.
    pub max_datagram_frame_bytes: u64,
    /// Seed of random values: the data of PATH_CHALLENGE frames, and tokens.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            initial_mtu_bytes: 1200,
            largest_mtu_bytes: Some(1452),
            initial_window_packets: 10,
            bounded_initial_window: false,
            send_buffer_bytes: 8 << 20,
            receive_buffer_bytes: 8 << 20,
            connection_receive_buffer_bytes: 64 << 20,
            initial_receive_window_bytes: None,
            max_streams: 100,
            idle_timeout: Duration::from_secs(30),
            handshake: HandshakeSizes::default(),
            connection_id_bytes: 8,
            active_connection_ids: 2,
            max_ack_delay: Duration::from_millis(25),
            ack_every_packets: 2,
            ack_delay_exponent: 3,
            ack_frequency: None,
            ecn: false,
            pacing: true,
            pacing_gain: 1.25,
            pacing_burst_packets: 10,
            pace_first_flight: false,
            keep_short_rate_samples: false,
            packet_threshold: 3,
            persistent_congestion_threshold: 3,
            initial_rtt: Duration::from_millis(333),
            zero_rtt: false,
            retry: false,
            scheduler: StreamScheduler::new(RoundRobin::default()),
            retransmission: RetransmissionOrder::default(),
            unordered: false,
            max_datagram_frame_bytes: 65_535,
            seed: 0,
        }
    }
}

impl Config {
    /// The transport parameters that an end with these settings sends.
    pub(crate) fn parameters(&self) -> TransportParameters {
        let window = self.initial_receive_window_bytes.unwrap_or(u64::MAX);
        TransportParameters {
            max_idle_timeout_ms: self.idle_timeout.as_nanos() / 1_000_000,
            max_udp_payload_size: 65_527,
            initial_max_data: self.connection_receive_buffer_bytes.min(window.saturating_mul(3) / 2),
            initial_max_stream_data: self.receive_buffer_bytes.min(window),
            initial_max_streams_bidi: self.max_streams,
            initial_max_streams_uni: self.max_streams,
            ack_delay_exponent: self.ack_delay_exponent,
            max_ack_delay_ms: self.max_ack_delay.as_nanos() / 1_000_000,
            active_connection_id_limit: self.active_connection_ids.max(2),
            max_datagram_frame_size: self.max_datagram_frame_bytes,
            min_ack_delay_us: Some(1000),
            early_data: self.zero_rtt,
        }
    }
}

/// The values of `retransmission`.
static RETRANSMISSION: [(Choice, RetransmissionOrder); 2] = [
    (Choice::new("first", "before all other data."), RetransmissionOrder::First),
    (Choice::new("scheduled", "when the scheduler selects its stream."), RetransmissionOrder::Scheduled),
];

/// The values of `handshake`: whether the client sends 0-RTT data, and whether the server sends a Retry packet.
static HANDSHAKES: [(Choice, (bool, bool)); 3] = named! {
    /// in one round trip.
    "1-rtt" => (false, false);
    /// the client remembers the server and sends data with its first datagram.
    "0-rtt" => (true, false);
    /// the server validates the client's address first, which takes one more round trip.
    "retry" => (false, true);
};

/// The keys of every QUIC connection, including the real stack.
pub(crate) static CONNECTION_KEYS: [SettingKey<Config>; 6] = setting_keys! {
    quic::initial_window(at!(initial_window_packets));
    /// UDP payload of a full packet before the path is known to support larger ones.
    "initial_mtu": DATAGRAM, setting => at!(initial_mtu_bytes);
    quic::largest_mtu(FieldAccess {
        get: |config, kind| config.largest_mtu_bytes.unwrap_or(config.initial_mtu_bytes).to_data(kind),
        set: |config, value| {
            let largest: Option<u16> = value.map(SettingValue::from_value);
            config.largest_mtu_bytes = largest.filter(|largest| *largest > config.initial_mtu_bytes);
        },
    });
    /// Send buffer of a stream: data that is not acknowledged yet. The same amount can wait for space in it.
    "send_buffer": FieldKind::size(16, 16 << 30), setting => at!(send_buffer_bytes);
    /// Receive window of a stream: data in flight or unread (flow control).
    "receive_buffer": FieldKind::size(1200, 1 << 30), setting => at!(receive_buffer_bytes);
    /// Time without packets after which the connection ends; 0s disables the timeout.
    "idle_timeout": FieldKind::DURATION, setting => at!(idle_timeout);
};

/// The key of the server's certificates, also for the real stack.
pub(crate) static CERTIFICATE_KEYS: [SettingKey<Config>; 1] = setting_keys! {
    /// Size of the server's certificate chain; with `cryptography = "tls"` 400 to 60 000 bytes.
    "certificates": FieldKind::size(0, 1 << 20), setting => at!(handshake.certificate_bytes);
};

/// The keys of the model only, in addition to those of [`crate::scheduler`].
pub(crate) static MODEL_KEYS: [SettingKey<Config>; 14] = setting_keys! {
    /// When lost data is retransmitted.
    "retransmission": FieldKind::Choice(&choices(&RETRANSMISSION)), setting => at!(retransmission, RETRANSMISSION);
    /// The kind of handshake.
    "handshake": FieldKind::Choice(&choices(&HANDSHAKES)), setting => FieldAccess {
        get: |config, _| choice_name(&(config.zero_rtt, config.retry), &HANDSHAKES),
        set: |config, value| {
            let mut both = (false, false);
            set_from_choice(&mut both, value, &HANDSHAKES);
            (config.zero_rtt, config.retry) = both;
        },
    };
    /// Ack-eliciting packets after which an acknowledgement is sent immediately (RFC 9000 section 13.2.2).
    "ack_every" ["packets"]: FieldKind::integer(1, 1000), setting => at!(ack_every_packets);
    /// Longest delay of an acknowledgement (RFC 9000 section 13.2.1); below 16.384 s.
    "max_ack_delay": FieldKind::DURATION, setting => at!(max_ack_delay);
    /// Ack-eliciting packets that the peer is requested to receive without an acknowledgement (ACK_FREQUENCY,
    /// draft-ietf-quic-ack-frequency-11); 0 sends no request.
    "ack_frequency" ["packets"]: FieldKind::integer(0, 1000), setting => FieldAccess {
        get: |config, kind| config.ack_frequency.map_or(0, |asked| asked.threshold).to_data(kind),
        // Applied after `max_ack_delay`.
        set: |config, value| {
            let threshold = value.map(u64::from_value).filter(|packets| *packets > 0);
            let max_ack_delay = config.max_ack_delay.max(Duration::from_millis(1));
            config.ack_frequency = threshold.map(|threshold| AckFrequency { threshold, max_ack_delay });
        },
    };
    /// Whether packets are sent as ECN-capable until validation fails (RFC 9000 section 13.4).
    "ecn": FieldKind::Boolean, setting => at!(ecn);
    /// Whether packets are paced if the control does not require it (RFC 9002 section 7.7).
    "pacing": FieldKind::Boolean, setting => at!(pacing);
    /// Packets that may leave in one burst when paced, or the data of 2 ms if that is more, but at most the data of 10
    /// ms.
    "pacing_burst" ["packets"]: FieldKind::integer(1, 1000), setting => at!(pacing_burst_packets);
    /// Whether packets are also paced before the first round-trip sample, as if the round trip took 333 ms; noq does
    /// so.
    "pace_first_flight": FieldKind::Boolean, setting => at!(pace_first_flight);
    /// Whether delivery-rate samples over less than the smallest round-trip time are used, as in the ns-3 QUIC module,
    /// whose smallest round-trip time stays 0. Otherwise they are discarded, as BBR requires.
    "keep_short_rate_samples": FieldKind::Boolean, optional "false" => FieldAccess {
        get: |config, kind| config.keep_short_rate_samples.then_some(true)?.to_data(kind),
        set: |config, value| config.keep_short_rate_samples = value.is_some_and(bool::from_value),
    };
    /// Streams of each type that the peer may have open at a time.
    "max_streams": FieldKind::integer(1, 1 << 20), setting => at!(max_streams);
    /// Initial receive window. It doubles up to the buffer size while the application reads it within two round-trip
    /// times. With 0B it is the whole buffer.
    "initial_receive_window": FieldKind::size(0, 1 << 30), setting => FieldAccess {
        get: |config, kind| config.initial_receive_window_bytes.unwrap_or(0).to_data(kind),
        set: |config, value| config.initial_receive_window_bytes = value.map(u64::from_value).filter(|bytes| *bytes > 0),
    };
    /// Receive window of a connection: data of all streams in flight or unread.
    "connection_receive_buffer": FieldKind::size(1200, 1 << 40), setting => at!(connection_receive_buffer_bytes);
    /// Whether the application receives the bytes of a stream in the order of their arrival.
    "unordered": FieldKind::Boolean, setting => at!(unordered);
};
