//! The interface of `fullpipe-stack` for a build without that crate. [`certificate_size_error`] always returns a
//! reason, so no flow is built. The types of connections, hosts and tunnels therefore have no values.
#![expect(dead_code, reason = "the interface is that of fullpipe-stack, which other builds use")]

use bytes::Bytes;
use fullpipe_congestion::Controller;
use fullpipe_transport::quic::Cryptography;
use fullpipe_transport::{Payload, Stream, TransportEvent};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

pub(crate) type ControlFactory = Arc<dyn Fn() -> Box<dyn Controller> + Send + Sync>;

pub(crate) fn unsupported_reason(_control: &dyn Controller) -> Option<String> {
    None
}

pub(crate) fn certificate_size_error(_cryptography: Cryptography, _certificate_bytes: u64) -> Option<String> {
    super::ABSENT.map(String::from)
}

#[derive(Clone, Debug)]
pub(crate) struct RandomStreams;

impl RandomStreams {
    pub(crate) fn new(_seed: u64, _name: &str) -> RandomStreams {
        RandomStreams
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) initial_mtu_bytes: u16,
    pub(crate) largest_mtu_bytes: Option<u16>,
    pub(crate) initial_window_packets: u64,
    pub(crate) send_buffer_bytes: u64,
    pub(crate) receive_buffer_bytes: u64,
    pub(crate) idle_timeout: Duration,
    pub(crate) certificate_bytes: u64,
    pub(crate) cryptography: Cryptography,
    pub(crate) journal: Option<journal::PacketLog>,
}

#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) payload: Bytes,
    pub(crate) codepoint: EcnCodepoint,
}

#[derive(Clone, Debug)]
pub(crate) struct ControlState {
    pub(crate) cwnd_bytes: u64,
    pub(crate) ssthresh_bytes: u64,
    pub(crate) in_flight_bytes: u64,
    pub(crate) pacing_bps: u64,
    pub(crate) delivery_rate_bps: u64,
    pub(crate) min_rtt: Duration,
    pub(crate) latest_rtt: Duration,
    pub(crate) in_recovery: bool,
    pub(crate) pto_count: Option<u32>,
    pub(crate) named: Vec<(&'static str, f64)>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionStatistics {
    pub(crate) sent_packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) congestion_events: u64,
    pub(crate) spurious_congestion_events: u64,
    pub(crate) mtu_bytes: u16,
    pub(crate) mean_rtt: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    Listening,
    Handshaking,
    Established,
    Closing,
    Drained,
}

#[derive(Debug)]
pub(crate) struct Connection(Infallible);

impl Connection {
    pub(crate) fn client(
        _settings: &Settings,
        _control: ControlFactory,
        _entropy: &RandomStreams,
        _now: Instant,
        _addresses: [SocketAddr; 2],
    ) -> Result<Connection, &'static str> {
        Err("this build has no QUIC stack")
    }

    pub(crate) fn server(
        _settings: &Settings,
        _control: ControlFactory,
        _entropy: &RandomStreams,
        _addresses: [SocketAddr; 2],
    ) -> Connection {
        unreachable!("a flow whose client sends no datagram has no server")
    }

    pub(crate) fn handle_datagram(&mut self, _now: Instant, _datagram: Datagram) {
        match self.0 {}
    }

    pub(crate) fn handle_timeout(&mut self, _now: Instant) {
        match self.0 {}
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        match self.0 {}
    }

    pub(crate) fn poll_transmit(&mut self, _now: Instant) -> Option<Datagram> {
        match self.0 {}
    }

    pub(crate) fn poll_event(&mut self) -> Option<TransportEvent> {
        match self.0 {}
    }

    pub(crate) fn has_events(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn is_drained(&self) -> bool {
        match self.0 {}
    }

    pub(crate) fn statistics(&mut self) -> ConnectionStatistics {
        match self.0 {}
    }

    pub(crate) fn inspect(&self) -> Option<ControlState> {
        match self.0 {}
    }

    pub(crate) fn lost_mtu_probes(&mut self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn state(&self) -> ConnectionState {
        match self.0 {}
    }

    pub(crate) fn smoothed_rtt(&self) -> Option<Duration> {
        match self.0 {}
    }
}

impl Stream for Connection {
    fn writable_bytes(&self) -> u64 {
        match self.0 {}
    }

    fn write(&mut self, _payload: Payload) -> u64 {
        match self.0 {}
    }

    fn readable_bytes(&self) -> u64 {
        match self.0 {}
    }

    fn read(&mut self, _max_bytes: u64) -> Option<Payload> {
        match self.0 {}
    }

    fn finish(&mut self) {
        match self.0 {}
    }

    fn abort(&mut self) {
        match self.0 {}
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AddressedDatagram {
    pub(crate) source: SocketAddr,
    pub(crate) destination: SocketAddr,
    pub(crate) datagram: Datagram,
}

#[derive(Clone, Debug)]
pub(crate) struct HostSettings {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) receive_buffer_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct Host(Infallible);

impl Host {
    pub(crate) fn new(_settings: HostSettings) -> Host {
        unreachable!("hosts run the programs of tunnels, and no tunnel can be built")
    }

    pub(crate) fn handle_datagram(&mut self, _now: Instant, _arrived: AddressedDatagram) {
        match self.0 {}
    }

    pub(crate) fn handle_timeout(&mut self, _now: Instant) {
        match self.0 {}
    }

    pub(crate) fn next_timeout(&self) -> Instant {
        match self.0 {}
    }

    pub(crate) fn poll_transmit(&mut self) -> Option<AddressedDatagram> {
        match self.0 {}
    }
}

pub(crate) mod journal {
    use fullpipe_units::EcnCodepoint;

    #[derive(Clone, Debug)]
    pub(crate) enum PacketLogEntry {
        DatagramReceived { bytes: usize, codepoint: EcnCodepoint },
        DatagramSent { bytes: usize, codepoint: EcnCodepoint },
        PacketSent(PlaintextPacket),
        PacketReceived(PlaintextPacket),
        PacketLost { number: u64, bytes: u16 },
    }

    #[derive(Clone, Debug)]
    pub(crate) struct PlaintextPacket {
        pub(crate) number: u64,
        pub(crate) header: Vec<u8>,
        pub(crate) payload: Vec<u8>,
        pub(crate) bytes: usize,
    }

    #[derive(Clone, Debug, Default)]
    pub(crate) struct PacketLog;

    impl PacketLog {
        pub(crate) fn take(&self) -> Vec<PacketLogEntry> {
            Vec::new()
        }
    }
}

pub(crate) mod tunnel {
    use super::journal::PacketLog;
    use super::{ControlFactory, ControlState, Host, RandomStreams};
    use bytes::Bytes;
    use fullpipe_transport::endpoint::TunnelCounters;
    use fullpipe_transport::tunnel::{Mode, Settings};
    use fullpipe_units::Duration;
    use std::convert::Infallible;
    use std::fmt;
    use std::io;
    use std::net::SocketAddr;
    use std::sync::Arc;

    #[derive(Clone)]
    pub(crate) struct TunnelSettings {
        pub(crate) tunnel: Arc<Settings>,
        pub(crate) control: Option<ControlFactory>,
        pub(crate) journal: Option<PacketLog>,
    }

    impl fmt::Debug for TunnelSettings {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.debug_struct("TunnelSettings").field("tunnel", &self.tunnel).finish_non_exhaustive()
        }
    }

    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct TunnelStatistics {
        pub(crate) counters: TunnelCounters,
        pub(crate) mean_rtt: Option<Duration>,
    }

    #[derive(Debug)]
    pub(crate) struct TunnelProxy(Infallible);

    impl TunnelProxy {
        pub(crate) fn start(
            host: &Host,
            _settings: &TunnelSettings,
            _entropy: &RandomStreams,
            _listen: SocketAddr,
        ) -> io::Result<TunnelProxy> {
            match host.0 {}
        }

        pub(crate) fn statistics(&self) -> TunnelStatistics {
            match self.0 {}
        }

        pub(crate) fn inspect(&self) -> Option<ControlState> {
            match self.0 {}
        }
    }

    #[derive(Debug)]
    pub(crate) struct TunnelClient(Infallible);

    impl TunnelClient {
        pub(crate) fn start(
            host: &Host,
            _settings: &TunnelSettings,
            _entropy: &RandomStreams,
            _local: SocketAddr,
            _proxy: SocketAddr,
        ) -> io::Result<TunnelClient> {
            match host.0 {}
        }

        pub(crate) fn send(&self, _request: u32, _target: SocketAddr, _mode: Option<Mode>, _payload: Bytes) {
            match self.0 {}
        }

        pub(crate) fn poll_receive(&self) -> Option<(u32, Bytes)> {
            match self.0 {}
        }

        pub(crate) fn close_request(&self, _request: u32) {
            match self.0 {}
        }

        pub(crate) fn statistics(&self) -> TunnelStatistics {
            match self.0 {}
        }

        pub(crate) fn inspect(&self) -> Option<ControlState> {
            match self.0 {}
        }

        pub(crate) fn smoothed_rtt(&self) -> Option<Duration> {
            match self.0 {}
        }

        pub(crate) fn lost_packets(&self) -> u64 {
            match self.0 {}
        }
    }
}
