//! The command lines of the MASQUE and HTTP/3 programs.

use super::words;
use clap::{Args, Subcommand};
use fullpipe_masque::configuration::{Mode, Scheduler};
use fullpipe_masque::policy::Rule;
use fullpipe_masque::queue::{DropPolicy, QueueLimit};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct MasqueArguments {
    #[command(subcommand)]
    pub(crate) command: MasqueCommand,
}

#[derive(Debug, Args)]
pub(crate) struct Http3Arguments {
    #[command(subcommand)]
    pub(crate) command: Http3Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MasqueCommand {
    /// Serve CONNECT-UDP over HTTP/3
    Proxy(Box<ProxyArguments>),
    /// A local UDP port that leads to a target behind a proxy
    Connect(Box<ConnectArguments>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Http3Command {
    /// Serve the files of a folder over HTTP/3
    Serve(ServeArguments),
    /// Get a URL over HTTP/3, directly or through a proxy
    Get(Box<GetArguments>),
}

#[derive(Debug, Args)]
pub(crate) struct ProxyArguments {
    /// Where to listen
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) identity: ServerIdentity,
    /// The path of requests [default: https://IP:PORT/.well-known/masque/udp/{target_host}/{target_port}/]
    #[arg(long, value_name = "URI_TEMPLATE")]
    pub(crate) template: Option<String>,
    /// Serve these targets although they are private, or denied by a wider rule
    #[arg(long, value_name = "CIDR|HOST[:PORT]", value_parser = words::rule)]
    pub(crate) allow: Vec<Rule>,
    /// Do not serve these targets
    #[arg(long, value_name = "CIDR|HOST[:PORT]", value_parser = words::rule)]
    pub(crate) deny: Vec<Rule>,
    /// Serve private, loopback and link-local targets
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// What clients have to send as `Proxy-Authorization: Bearer SECRET`
    #[arg(long, value_name = "SECRET")]
    pub(crate) token: Option<String>,
    /// Connections at a time
    #[arg(long, value_name = "N")]
    pub(crate) max_connections: Option<u64>,
    /// Tunnels at a time
    #[arg(long, value_name = "N")]
    pub(crate) max_requests: Option<u64>,
    /// What may wait for one tunnel: 250kB, 100ms or none
    #[arg(long, value_name = "BYTES|TIME|none", value_parser = words::queue_limit)]
    pub(crate) queue_limit: Option<QueueLimit>,
    /// What goes when that is full: the newest payload or the oldest
    #[arg(long, value_name = "newest|oldest", default_value = "newest", value_parser = words::drop_policy)]
    pub(crate) drop_policy: DropPolicy,
    /// Whose payload goes next: requests take turns, what came first (datagram mode), or the request opened first
    #[arg(long, value_name = "round-robin|fifo|request-order", default_value = "round-robin", value_parser = words::scheduler)]
    pub(crate) scheduler: Scheduler,
    /// Datagram mode: what is handed to the QUIC stack ahead of its congestion control [default: 128KiB]
    #[arg(long, value_name = "BYTES", value_parser = words::size)]
    pub(crate) datagram_buffer: Option<u64>,
    #[command(flatten)]
    pub(crate) control: ControlArguments,
    #[command(flatten)]
    pub(crate) buffers: BufferArguments,
    /// UDP payload of the tunnel's packets [default: 1280, and what the path is found to carry]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu)]
    pub(crate) tunnel_mtu: Option<u16>,
    /// Close a tunnel that is silent for so long [default: 120s]
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Tell metrics for Prometheus here
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Print figures as a line of JSON whenever a connection ends, and at the end
    #[arg(long)]
    pub(crate) figures: bool,
    /// Log connections and tunnels too, not only what was refused
    #[arg(long)]
    pub(crate) verbose: bool,
}

/// Who a server is.
#[derive(Debug, Args)]
pub(crate) struct ServerIdentity {
    /// Certificate chain
    #[arg(long, value_name = "PEM")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key
    #[arg(long, value_name = "PEM")]
    pub(crate) key: Option<PathBuf>,
    /// In their place, a certificate that is made now and kept in memory [names by default: localhost, 127.0.0.1, ::1]
    #[arg(long, value_name = "NAME|IP", num_args = 0..)]
    pub(crate) self_signed: Option<Vec<String>>,
}

/// Congestion control.
#[derive(Debug, Args)]
pub(crate) struct ControlArguments {
    /// Congestion control, by its name in scenarios
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) congestion: String,
    /// Slow start without HyStart++ (RFC 9406)
    #[arg(long)]
    pub(crate) no_hystart: bool,
    /// Initial window (RFC 9002: 10)
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) initial_window: Option<u64>,
}

/// What the QUIC stack keeps of streams.
#[derive(Debug, Args)]
pub(crate) struct BufferArguments {
    /// What is kept of streams until it is acknowledged [default: 8MiB between ends, 4MiB in a tunnel]
    #[arg(long, value_name = "BYTES", value_parser = words::size)]
    pub(crate) send_buffer: Option<u64>,
    /// What of a stream may be on its way or unread [default: 1536KiB]
    #[arg(long, value_name = "BYTES", value_parser = words::window)]
    pub(crate) receive_buffer: Option<u32>,
}

/// Whom a client trusts.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// Authorities, or the server's very certificate [default: the system's]
    #[arg(long, value_name = "PEM")]
    pub(crate) ca: Option<PathBuf>,
    /// Trust anybody
    #[arg(long, conflicts_with = "ca")]
    pub(crate) insecure: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConnectArguments {
    /// The proxy
    #[arg(long, value_name = "URI_TEMPLATE")]
    pub(crate) template: String,
    /// Whom to reach
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) target: String,
    /// Where local programs send to
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// How payloads travel: datagram (lost ones stay lost) or stream
    #[arg(long, default_value = "datagram", value_parser = words::mode)]
    pub(crate) mode: Mode,
    #[command(flatten)]
    pub(crate) trusted: TrustArguments,
    /// The name in the proxy's certificate [default: the template's host]
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// What the proxy wants to know
    #[arg(long, value_name = "SECRET")]
    pub(crate) token: Option<String>,
    /// UDP payload of the tunnel's packets [default: 1280, and what the path is found to carry]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu)]
    pub(crate) tunnel_mtu: Option<u16>,
    #[command(flatten)]
    pub(crate) control: ControlArguments,
    #[command(flatten)]
    pub(crate) buffers: BufferArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Where to listen
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) identity: ServerIdentity,
    /// The folder whose files are served
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Answer /bytes/N, for N up to 10 GB, with N bytes that look random and are always the same
    #[arg(long)]
    pub(crate) generate: bool,
    /// UDP payload of packets [default: 1200, and what the path is found to carry]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu)]
    pub(crate) mtu: Option<u16>,
    #[command(flatten)]
    pub(crate) control: ControlArguments,
    #[command(flatten)]
    pub(crate) buffers: BufferArguments,
    /// Print figures as a line of JSON whenever a connection ends, and at the end
    #[arg(long)]
    pub(crate) figures: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GetArguments {
    /// What to get
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) trusted: TrustArguments,
    /// The name in the server's certificate [default: the URL's host]
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// Where the server is [default: where the URL says]
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) connect: Option<SocketAddr>,
    /// Through this proxy
    #[arg(long, value_name = "URI_TEMPLATE")]
    pub(crate) via: Option<String>,
    /// Authorities for the proxy's certificate [default: as for the server]
    #[arg(long, value_name = "PEM", requires = "via")]
    pub(crate) via_ca: Option<PathBuf>,
    /// What the proxy wants to know
    #[arg(long, value_name = "SECRET", requires = "via")]
    pub(crate) token: Option<String>,
    /// How payloads travel through the proxy: datagram or stream
    #[arg(long, default_value = "datagram", value_parser = words::mode)]
    pub(crate) mode: Mode,
    /// UDP payload of the tunnel's packets [default: 1280, and what the path is found to carry]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu, requires = "via")]
    pub(crate) tunnel_mtu: Option<u16>,
    /// Congestion control of the tunnel, or none [default: as that of the connection to the server]
    #[arg(long, value_name = "NAME|none", requires = "via")]
    pub(crate) tunnel_congestion: Option<String>,
    /// UDP payload of packets to the server [default: 1200, and what the path is found to carry]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu)]
    pub(crate) mtu: Option<u16>,
    /// Store the body here; until it is whole, in FILE.part [default: nowhere]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArguments,
    #[command(flatten)]
    pub(crate) buffers: BufferArguments,
    /// Give up after so long without a sign of the server; without one of the proxy after two thirds of that
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = words::time)]
    pub(crate) idle_timeout: Duration,
    /// Fail unless the body is that of `http3 serve --generate`
    #[arg(long)]
    pub(crate) check: bool,
    /// Print what came as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print figures as a last line of JSON
    #[arg(long)]
    pub(crate) figures: bool,
}
