//! What a user can set, with the defaults.

use crate::policy::Policy;
use crate::queue::{DropPolicy, QueueLimit};
use crate::template::Template;
pub use fullpipe_transport::tunnel::{Mode, Scheduler};
use noq::congestion::ControllerFactory;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The smallest tunnel MTU that carries the 1200-byte packets with which every inner QUIC connection begins: short
/// header with an 8-byte connection ID and a 4-byte packet number 13, tag 16, frame type and bound of its length 9,
/// quarter stream ID 1 and context ID 1 (RFC 9000 section 14.1).
pub const MTU_FOR_INITIALS: u16 = 1240;

/// The smallest MTU that QUIC works with (RFC 9000 section 14).
pub const MIN_MTU: u16 = 1200;

/// RFC 9298 section 3.1: an idle tunnel should not be closed before two minutes.
pub const RECOMMENDED_IDLE: Duration = Duration::from_secs(120);

/// UDP payload sizes of the tunnel's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mtu {
    /// This size, whatever the path.
    Fixed(u16),
    /// This size at first, and what the path is found to carry up to an Ethernet frame's (RFC 8899).
    Discover(u16),
}

impl Mtu {
    /// The size at first.
    #[must_use]
    pub fn initial(self) -> u16 {
        match self {
            Mtu::Fixed(size) | Mtu::Discover(size) => size,
        }
    }
}

/// The QUIC connection between client and proxy and the queues in front of it; each side has its own.
#[derive(Clone)]
pub struct Tunnel {
    /// Packet sizes.
    pub mtu: Mtu,
    /// The congestion control; none: the stack's own, CUBIC.
    pub congestion: Option<Arc<dyn ControllerFactory + Send + Sync>>,
    /// How much of one request may wait.
    pub queue_limit: QueueLimit,
    /// What goes beyond it.
    pub drop_policy: DropPolicy,
    /// How much of all requests together may wait, in bytes. When it is reached, every request still may have 16 KiB
    /// waiting, so that those whose clients do not read leave others room.
    pub queue_limit_total: u64,
    /// Whose turn it is.
    pub scheduler: Scheduler,
    /// Stream mode: whether capsules that wait together share a DATA frame.
    pub coalesce: bool,
    /// Datagram mode: bytes handed to the QUIC connection ahead of congestion control and pacing.
    pub datagram_buffer: usize,
    /// Stream mode: bytes of all streams that the QUIC connection takes before they are acknowledged.
    pub stream_buffer: u64,
    /// Bytes that the peer may send on one stream ahead of what was read; eight times as much on all. The QUIC stack keeps
    /// no more than 2048 frames of a stream that nobody has read, even without a gap between them, and ends the connection
    /// beyond: with frames of 1 kB, a window of 2 MB is the most that a slow reader can have.
    pub receive_window: u32,
    /// A silent connection is over after this time.
    pub connection_idle: Duration,
    /// Something is sent after so long a silence, to keep the connection and translators on the way; none: nothing.
    pub keep_alive: Option<Duration>,
}

impl Default for Tunnel {
    fn default() -> Self {
        Tunnel {
            mtu: Mtu::Discover(1280),
            congestion: None,
            queue_limit: QueueLimit::Bytes(1 << 20),
            drop_policy: DropPolicy::Newest,
            queue_limit_total: 256 << 20,
            scheduler: Scheduler::RoundRobin,
            coalesce: true,
            datagram_buffer: 128 << 10,
            stream_buffer: 4 << 20,
            receive_window: 3 << 19,
            connection_idle: RECOMMENDED_IDLE + Duration::from_secs(30),
            keep_alive: None,
        }
    }
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tunnel").field("mtu", &self.mtu).field("queue_limit", &self.queue_limit).finish()
    }
}

impl Tunnel {
    /// The QUIC stack's settings for this. `requests` is how many requests the peer may have open at a time.
    #[must_use]
    pub fn transport(&self, requests: u32) -> noq::TransportConfig {
        let mut transport = noq::TransportConfig::default();
        let mtu = self.mtu.initial().max(MIN_MTU);
        // Losses in a row may look like a path that carries less. A tunnel that believes them carries none of the inner
        // packets that it is for.
        transport.initial_mtu(mtu).min_mtu(mtu);
        if let Mtu::Fixed(_) = self.mtu {
            transport.mtu_discovery_config(None);
        }
        let idle = self.connection_idle.try_into().unwrap_or(noq::VarInt::MAX.into());
        transport
            .max_idle_timeout(Some(idle))
            .keep_alive_interval(self.keep_alive)
            .datagram_send_buffer_size(self.datagram_buffer)
            .datagram_receive_buffer_size(Some(4 << 20))
            .stream_receive_window(self.receive_window.into())
            .receive_window(self.receive_window.saturating_mul(8).into())
            .send_window(self.stream_buffer)
            .max_concurrent_bidi_streams(requests.into())
            .max_concurrent_uni_streams(16u32.into());
        if let Some(congestion) = &self.congestion {
            transport.congestion_controller_factory(Arc::clone(congestion));
        }
        transport
    }
}

/// A proxy.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// The path that requests have.
    pub template: Template,
    /// How the proxy calls itself in Proxy-Status.
    pub name: String,
    /// Whom it serves.
    pub policy: Policy,
    /// What a client has to know: `Proxy-Authorization: Bearer SECRET`.
    pub token: Option<String>,
    /// Connections at a time.
    pub max_connections: u64,
    /// Requests at a time, of all connections.
    pub max_requests: u64,
    /// Requests at a time, of one connection.
    pub max_requests_per_connection: u32,
    /// A tunnel without payloads in either direction is closed after this time.
    pub idle_timeout: Duration,
    /// A request whose header section is not whole after this time is aborted.
    pub header_timeout: Duration,
    /// Bytes of a header section.
    pub max_header_bytes: u64,
    /// The connection to clients.
    pub tunnel: Tunnel,
}

impl Proxy {
    /// The defaults, for this template.
    #[must_use]
    pub fn new(template: Template) -> Proxy {
        Proxy {
            template,
            name: "fullpipe".into(),
            policy: Policy::default(),
            token: None,
            max_connections: 1000,
            max_requests: 10_000,
            max_requests_per_connection: 1000,
            idle_timeout: RECOMMENDED_IDLE,
            header_timeout: Duration::from_secs(10),
            max_header_bytes: 16 << 10,
            tunnel: Tunnel::default(),
        }
    }

    /// The QUIC stack's settings.
    #[must_use]
    pub fn transport(&self) -> noq::TransportConfig {
        self.tunnel.transport(self.max_requests_per_connection)
    }
}

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    /// How payloads travel.
    pub mode: Mode,
    /// What the proxy wants to know.
    pub token: Option<String>,
    /// Bytes that may wait to be read from one tunnel, and as many in the connection before they reach their tunnels.
    pub receive_queue: u64,
    /// How long the proxy may take to say what it offers, and to answer.
    pub response_timeout: Duration,
    /// The connection to the proxy.
    pub tunnel: Tunnel,
}

impl Default for Client {
    fn default() -> Self {
        Client {
            mode: Mode::Datagram,
            token: None,
            receive_queue: 4 << 20,
            response_timeout: Duration::from_secs(30),
            tunnel: Tunnel { keep_alive: Some(Duration::from_secs(20)), ..Tunnel::default() },
        }
    }
}

impl Client {
    /// The QUIC stack's settings.
    #[must_use]
    pub fn transport(&self) -> noq::TransportConfig {
        let mut transport = self.tunnel.transport(0);
        transport.datagram_receive_buffer_size(match self.mode {
            Mode::Datagram => Some(usize::try_from(self.receive_queue).unwrap_or(usize::MAX)),
            Mode::Stream => None,
        });
        transport
    }
}
