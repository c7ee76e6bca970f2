//! Settings of an endpoint, and their conversion to the stack's configuration.

use crate::entropy::{FixedDate, RandomStreams};
use crate::journal::{PacketLog, PacketLogEntry, PacketLogger};
use crate::null::NullConfig;
use crate::tls;
use fullpipe_control::clock::duration_to_std;
use fullpipe_control::{AdapterFactory, ControlFactory, LossListener, RttStatistics};
pub use fullpipe_transport::quic::Cryptography;
use fullpipe_units::Duration;
use noq_proto::{ClientConfig, EndpointConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use std::sync::Arc;

/// Largest certificate without cryptography: the message length has three bytes, and the message has further content.
const MOST_CERTIFICATE_BYTES: u64 = 16_000_000;

/// Reason why a certificate cannot have this size, as a sentence; `None` if it can.
pub fn certificate_size_error(cryptography: Cryptography, certificate_bytes: u64) -> Option<String> {
    let possible = match cryptography {
        Cryptography::Null => 0..=MOST_CERTIFICATE_BYTES,
        Cryptography::Tls => tls::CERTIFICATE_BYTES,
    };
    let (least, most) = (possible.start(), possible.end());
    (!possible.contains(&certificate_bytes)).then(|| {
        format!("certificates of {certificate_bytes} bytes are not supported; expected {least} to {most} bytes")
    })
}

/// Settings of one end of a connection.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Largest UDP payload in bytes until path MTU discovery finds a larger one: 1200 to 65 527.
    pub initial_mtu_bytes: u16,
    /// Largest UDP payload in bytes that path MTU discovery probes (RFC 8899); `None` disables probing.
    pub largest_mtu_bytes: Option<u16>,
    /// Initial window in packets of the initial MTU.
    pub initial_window_packets: u64,
    /// Maximum unacknowledged bytes that the stack keeps for retransmission.
    pub send_buffer_bytes: u64,
    /// Flow-control window of each stream, and of the connection, in bytes.
    pub receive_buffer_bytes: u64,
    /// Idle timeout of the connection; zero disables it.
    pub idle_timeout: Duration,
    /// Size of the server's certificate in bytes: up to 16 million, or 400 to 60 000 with TLS. Other values are
    /// replaced by the nearest limit.
    pub certificate_bytes: u64,
    /// Protection of packets; must be the same at both ends.
    pub cryptography: Cryptography,
    /// Log of packets and losses; `None` disables the log.
    pub journal: Option<PacketLog>,
}

impl Default for Settings {
    /// The defaults follow RFC 9000 section 14.1 (1200 bytes), the stack's own upper limit of probing, RFC 9002 section
    /// 7.2 (ten packets) and RFC 9308 section 3.2 (30 s). The certificate chain is that of the TLS model.
    fn default() -> Settings {
        Settings {
            initial_mtu_bytes: 1200,
            largest_mtu_bytes: Some(1452),
            initial_window_packets: 10,
            send_buffer_bytes: 8 << 20,
            receive_buffer_bytes: 8 << 20,
            idle_timeout: Duration::from_secs(30),
            certificate_bytes: 3000,
            cryptography: Cryptography::Null,
            journal: None,
        }
    }
}

impl Settings {
    fn transport(&self, control: ControlFactory, round_trips: &RttStatistics) -> Arc<TransportConfig> {
        let mut config = TransportConfig::default();
        let factory = AdapterFactory::new(control, self.initial_window_packets, round_trips.clone())
            .with_loss_listener(self.journal.clone().map(listener));
        config
            .initial_mtu(self.initial_mtu_bytes)
            .mtu_discovery_config(self.largest_mtu_bytes.map(|bytes| {
                let mut discovery = MtuDiscoveryConfig::default();
                discovery.upper_bound(bytes);
                discovery
            }))
            .stream_receive_window(variable(self.receive_buffer_bytes))
            .receive_window(variable(self.receive_buffer_bytes))
            .send_window(self.send_buffer_bytes)
            .max_idle_timeout(self.idle())
            .enable_segmentation_offload(false)
            .congestion_controller_factory(Arc::new(factory));
        Arc::new(config)
    }

    fn idle(&self) -> Option<IdleTimeout> {
        if self.idle_timeout.is_zero() { None } else { IdleTimeout::try_from(duration_to_std(self.idle_timeout)).ok() }
    }

    /// Settings for endpoints of asynchronous programs, with this congestion control.
    pub fn endpoint_settings(&self, control: ControlFactory) -> EndpointSettings {
        let largest = self.largest_mtu_bytes.unwrap_or(0).max(self.initial_mtu_bytes).max(1472);
        let round_trips = RttStatistics::default();
        EndpointSettings {
            transport: self.transport(control, &round_trips),
            round_trips,
            largest_payload_bytes: largest,
            certificate_bytes: self.certificate_bytes,
            cryptography: self.cryptography,
            journal: self.journal.clone(),
        }
    }
}

/// Settings of an endpoint of asynchronous programs.
#[derive(Clone, Debug)]
pub struct EndpointSettings {
    /// The stack's transport configuration.
    pub transport: Arc<TransportConfig>,
    /// Round-trip times of the connections of the endpoint.
    pub round_trips: RttStatistics,
    /// Largest UDP payload that the endpoint accepts, in bytes: at least 1200.
    pub largest_payload_bytes: u16,
    /// Size of the server's certificate in bytes: up to 16 million, or 400 to 60 000 with TLS. Other values are
    /// replaced by the nearest limit.
    pub certificate_bytes: u64,
    /// Protection of packets; must be the same at both ends.
    pub cryptography: Cryptography,
    /// Log of packets; `None` disables the log.
    pub journal: Option<PacketLog>,
}

impl EndpointSettings {
    fn null(&self) -> Arc<NullConfig> {
        Arc::new(NullConfig { certificate_bytes: self.certificate_bytes.min(MOST_CERTIFICATE_BYTES) as usize })
    }

    /// The configuration that both kinds of endpoints share.
    pub(crate) fn endpoint(&self, entropy: &RandomStreams) -> EndpointConfig {
        let mut config = entropy.endpoint_config();
        // This fails only below 1200 bytes.
        let _ = config.max_udp_payload_size(self.largest_payload_bytes.max(1200));
        config
    }

    pub(crate) fn client(&self, entropy: &RandomStreams) -> ClientConfig {
        let cryptography: Arc<dyn noq_proto::crypto::ClientConfig> = match self.cryptography {
            Cryptography::Null => self.null(),
            Cryptography::Tls => Arc::new(tls::Client::new(entropy)),
        };
        let mut config = ClientConfig::new(match self.journal.clone() {
            None => cryptography,
            Some(journal) => Arc::new(PacketLogger { journal, inner: cryptography }),
        });
        config.transport_config(Arc::clone(&self.transport)).initial_dst_cid_provider(entropy.first_identifiers());
        config
    }

    pub(crate) fn server(&self, entropy: &RandomStreams) -> ServerConfig {
        let cryptography: Arc<dyn noq_proto::crypto::ServerConfig> = match self.cryptography {
            Cryptography::Null => self.null(),
            Cryptography::Tls => Arc::new(tls::Server::new(entropy, self.certificate_bytes)),
        };
        let cryptography = match self.journal.clone() {
            None => cryptography,
            Some(journal) => Arc::new(PacketLogger { journal, inner: cryptography }),
        };
        let mut config = ServerConfig::new(cryptography, entropy.token_key());
        config.transport_config(Arc::clone(&self.transport)).time_source(Arc::new(FixedDate));
        // No NEW_TOKEN frames (RFC 9000 section 8.1.3), regardless of the features of the stack in this build. No
        // connection here returns with a token, and the unused frames would change the packets of every run.
        config.validation_token.sent(0);
        config
    }
}

/// Records losses in a journal.
pub(crate) fn listener(journal: PacketLog) -> LossListener {
    Arc::new(move |number, bytes| {
        journal.note(PacketLogEntry::PacketLost { number, bytes: u16::try_from(bytes).unwrap_or(u16::MAX) });
    })
}

pub(crate) fn variable(bytes: u64) -> VarInt {
    VarInt::from_u64(bytes).unwrap_or(VarInt::MAX)
}
