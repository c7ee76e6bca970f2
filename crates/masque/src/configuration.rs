//! Settings of proxy, client and tunnel, with their defaults.

use crate::access::{ClientLimits, Token};
use crate::policy::{OwnAddresses, Policy};
use crate::queue::{DropPolicy, QueueLimit};
use crate::template::Template;
pub use fullpipe_transport::tunnel::{Mode, Scheduler};
use noq::congestion::ControllerFactory;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Smallest tunnel MTU in bytes that carries the 1200-byte packets with which every inner QUIC connection begins (RFC
/// 9000 section 14.1). The tunnel adds 40 bytes. A short header with an 8-byte connection ID and a 4-byte packet number
/// takes 13 bytes, and the authentication tag takes 16. The frame type and the largest Length field take 9 bytes. The
/// quarter stream ID and the context ID take 1 byte each.
pub const MTU_FOR_INITIALS: u16 = 1240;

/// Initial MTU of a tunnel, in bytes. It carries the packets of 1200 bytes for a quarter stream ID of up to four bytes,
/// which is three bytes more than that of the first requests.
pub const INITIAL_MTU: u16 = MTU_FOR_INITIALS + 3;

/// UDP payload of the first packets of a QUIC connection (RFC 9000 section 14.1).
pub const INITIAL_PAYLOAD: usize = 1200;

/// Smallest MTU of QUIC, in bytes (RFC 9000 section 14).
pub const MIN_MTU: u16 = 1200;

/// Recommended idle timeout: an idle tunnel should stay open for at least two minutes (RFC 9298 section 3.1).
pub const RECOMMENDED_IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// UDP payload sizes of the tunnel's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mtu {
    /// The same size in bytes on every path.
    Fixed(u16),
    /// An initial size in bytes, which path MTU discovery (RFC 8899) may increase up to that of an Ethernet frame.
    Discover(u16),
}

impl Mtu {
    /// Returns the initial size in bytes.
    #[must_use]
    pub fn initial(self) -> u16 {
        match self {
            Mtu::Fixed(size) | Mtu::Discover(size) => size,
        }
    }
}

/// Settings of the QUIC connection between client and proxy and of the queues of payloads that wait for the connection.
/// Client and proxy have separate settings.
#[derive(Clone)]
pub struct Tunnel {
    /// UDP payload sizes of the packets.
    pub mtu: Mtu,
    /// The congestion control algorithm; `None` if the QUIC stack uses its own CUBIC.
    pub congestion: Option<Arc<dyn ControllerFactory + Send + Sync>>,
    /// Limit of the queue of one request.
    pub queue_limit: QueueLimit,
    /// Which packets are dropped when the limit is reached.
    pub drop_policy: DropPolicy,
    /// Limit of all queues together, in bytes. When it is reached, each request can still queue 16 KiB, so that clients
    /// that do not read cannot block others.
    pub queue_limit_total: u64,
    /// Order in which requests send.
    pub scheduler: Scheduler,
    /// Stream mode: whether several waiting capsules share a DATA frame.
    pub coalesce: bool,
    /// Datagram mode: bytes that the QUIC connection buffers before congestion control and pacing.
    pub datagram_buffer: usize,
    /// Stream mode: unacknowledged bytes of all streams that the QUIC connection buffers.
    pub stream_buffer: u64,
    /// Flow-control window of one stream in bytes; that of the connection is eight times as large. The QUIC stack keeps
    /// at most 2048 unread frames of a stream, even without gaps, and closes the connection if there are more. With
    /// frames of 1 kB, the window for a slow reader can therefore be at most 2 MB.
    pub receive_window: u32,
    /// Time without activity after which a connection is closed.
    pub connection_idle: Duration,
    /// Keep-alive interval, which maintains the connection and NAT bindings on the path; `None` if no keep-alives are
    /// sent.
    pub keep_alive: Option<Duration>,
}

impl Default for Tunnel {
    fn default() -> Self {
        Tunnel {
            mtu: Mtu::Discover(INITIAL_MTU),
            congestion: None,
            queue_limit: QueueLimit::Bytes(1 << 20),
            drop_policy: DropPolicy::Newest,
            queue_limit_total: 256 << 20,
            scheduler: Scheduler::RoundRobin,
            coalesce: true,
            datagram_buffer: 128 << 10,
            stream_buffer: 4 << 20,
            receive_window: 3 << 19,
            connection_idle: RECOMMENDED_IDLE_TIMEOUT + Duration::from_secs(30),
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
    /// Returns the QUIC stack's transport configuration. `requests` is the maximum number of concurrent requests from
    /// the peer.
    #[must_use]
    pub fn transport(&self, requests: u32) -> noq::TransportConfig {
        let mut transport = noq::TransportConfig::default();
        let mtu = self.mtu.initial().max(MIN_MTU);
        // The QUIC stack can mistake consecutive losses for a smaller path MTU. With a smaller MTU, the tunnel could
        // not carry the inner packets at all.
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

/// Settings of a proxy.
#[derive(Clone, Debug)]
pub struct Proxy {
    /// URI template of requests.
    pub template: Template,
    /// Name of the proxy in the Proxy-Status field.
    pub name: String,
    /// Access policy, which determines the targets that the proxy permits.
    pub policy: Policy,
    /// Addresses of the proxy itself, which are no targets.
    pub own: OwnAddresses,
    /// Tokens, one of which clients must send in Authorization or Proxy-Authorization, as `Bearer` or `Basic`. If there are
    /// none, no authorization is required.
    pub tokens: Vec<Token>,
    /// Whether the proxy accepts CONNECT requests, which tunnel TCP.
    pub tcp: bool,
    /// Limits of each client, where its token has none.
    pub client_limits: ClientLimits,
    /// Maximum number of concurrent connections.
    pub max_connections: u64,
    /// Maximum number of concurrent requests on all connections.
    pub max_requests: u64,
    /// Maximum number of concurrent requests per connection.
    pub max_requests_per_connection: u32,
    /// Time without payloads in either direction after which a tunnel is closed.
    pub idle_timeout: Duration,
    /// Time limit for the arrival of a request's complete header section. A request that exceeds the limit is aborted.
    pub header_timeout: Duration,
    /// Maximum size of a header section in bytes.
    pub max_header_bytes: u64,
    /// Settings of the connections to clients.
    pub tunnel: Tunnel,
}

impl Proxy {
    /// Returns the default settings with this template.
    #[must_use]
    pub fn new(template: Template) -> Proxy {
        Proxy {
            template,
            name: "fullpipe".into(),
            policy: Policy::default(),
            own: OwnAddresses::default(),
            tokens: Vec::new(),
            tcp: true,
            client_limits: ClientLimits::default(),
            max_connections: 1000,
            max_requests: 10_000,
            max_requests_per_connection: 1000,
            idle_timeout: RECOMMENDED_IDLE_TIMEOUT,
            header_timeout: Duration::from_secs(10),
            max_header_bytes: 16 << 10,
            tunnel: Tunnel::default(),
        }
    }

    /// Returns the QUIC stack's transport configuration.
    #[must_use]
    pub fn transport(&self) -> noq::TransportConfig {
        self.tunnel.transport(self.max_requests_per_connection)
    }
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct Client {
    /// The mode in which the client sends payloads.
    pub mode: Mode,
    /// Secret to send as a bearer token to a proxy that requires one; `None` if no token is sent.
    pub token: Option<String>,
    /// Maximum number of unread bytes of one tunnel. The connection buffers the same number before it assigns datagrams
    /// to tunnels.
    pub receive_queue: u64,
    /// Whether the settings offer HTTP datagrams. Some proxies require them for every CONNECT-UDP request, even if the
    /// client sends capsules.
    pub offers_datagrams: bool,
    /// Time limit for the proxy's settings, and for its response to a request.
    pub response_timeout: Duration,
    /// Settings of the connection to the proxy.
    pub tunnel: Tunnel,
}

impl Default for Client {
    fn default() -> Self {
        Client {
            mode: Mode::Datagram,
            token: None,
            receive_queue: 4 << 20,
            offers_datagrams: true,
            response_timeout: Duration::from_secs(30),
            tunnel: Tunnel { keep_alive: Some(Duration::from_secs(20)), ..Tunnel::default() },
        }
    }
}

impl Client {
    /// Returns the QUIC stack's transport configuration.
    #[must_use]
    pub fn transport(&self) -> noq::TransportConfig {
        let mut transport = self.tunnel.transport(0);
        let buffer = usize::try_from(self.receive_queue).unwrap_or(usize::MAX);
        transport.datagram_receive_buffer_size(self.offers_datagrams.then_some(buffer));
        transport
    }
}
