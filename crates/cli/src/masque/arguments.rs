//! The command lines of the MASQUE and HTTP/3 programs.

use super::log::LogFormat;
use super::words;
use clap::{Args, Subcommand};
use fullpipe_masque::configuration::Scheduler;
use fullpipe_masque::log::AccessLog;
use fullpipe_masque::policy::Rule;
use fullpipe_masque::queue::{DropPolicy, QueueLimit};
use fullpipe_sockets::programs::{HttpVersions, ModeChoice};
use std::net::{IpAddr, SocketAddr};
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
    /// Run a proxy over HTTP/3 and HTTP/2 for UDP (CONNECT-UDP) and TCP (CONNECT)
    Proxy(Box<ProxyArguments>),
    /// Forward a local UDP port to a target through a proxy
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
    /// Address and port to listen on
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) identity: ServerIdentity,
    /// TOML file with these options as keys, such as `max_requests = 100`; the command line overrides it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// URI template of requests [default: https://IP:PORT/.well-known/masque/udp/{target_host}/{target_port}/]
    #[arg(long, value_name = "URI_TEMPLATE")]
    pub(crate) template: Option<String>,
    /// Permit these targets even if they are private or denied by a less specific rule (repeatable)
    #[arg(long, value_name = "CIDR|HOST|*.DOMAIN|*[:PORTS]", value_parser = words::rule)]
    pub(crate) allow: Vec<Rule>,
    /// Deny these targets (repeatable)
    #[arg(long, value_name = "CIDR|HOST|*.DOMAIN|*[:PORTS]", value_parser = words::rule)]
    pub(crate) deny: Vec<Rule>,
    /// Permit targets in private, loopback, link-local, documentation and benchmarking ranges
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Versions of HTTP to serve: 3 on UDP, 2 on TCP, or both on the same port
    #[arg(long, value_name = "3|2|3,2", default_value = "3", value_parser = words::http_versions)]
    pub(crate) http: HttpVersions,
    /// File with the secret from which the QUIC keys are derived, so that they are the same after a restart; created if it does
    /// not exist [default: random keys]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// Number of threads [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// Require client certificates signed by one of these certificate authorities
    #[arg(long, value_name = "PEM")]
    pub(crate) client_ca: Option<PathBuf>,
    /// Reject CONNECT requests (TCP tunnels) with status 501
    #[arg(long)]
    pub(crate) udp_only: bool,
    /// Public address of this proxy behind a NAT; the proxy rejects targets with this address (repeatable)
    #[arg(long, value_name = "IP")]
    pub(crate) public_address: Vec<IpAddr>,
    /// Secret that clients must send, as `Bearer SECRET` or as the password of user `token` with `Basic`
    #[arg(long, value_name = "SECRET", value_parser = words::secret)]
    pub(crate) token: Option<String>,
    /// TOML file with a table for each client, with `secret` and the optional limits `tunnels`, `rate` and `bytes`
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Environment variable with a secret; the name of the variable is the name of the client (repeatable)
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) token_env: Vec<String>,
    /// Maximum number of concurrent tunnels per client (token; without tokens, IPv4 address or IPv6 /64 prefix)
    #[arg(long, value_name = "N", value_parser = words::count)]
    pub(crate) client_tunnels: Option<u64>,
    /// Maximum payload rate per client, sum of both directions, such as 10Mbit/s
    #[arg(long, value_name = "RATE", value_parser = words::rate)]
    pub(crate) client_rate: Option<u64>,
    /// Maximum payload bytes per client since the proxy started, sum of both directions, such as 10GB
    #[arg(long, value_name = "BYTES", value_parser = words::bytes)]
    pub(crate) client_bytes: Option<u64>,
    /// Maximum number of concurrent connections
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_connections: Option<u64>,
    /// Maximum number of concurrent tunnels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_requests: Option<u64>,
    /// Limit of the queue of each tunnel: a size such as 250kB, a time such as 100ms, or none
    #[arg(long, value_name = "BYTES|TIME|none", value_parser = words::queue_limit)]
    pub(crate) queue_limit: Option<QueueLimit>,
    /// Payload that is dropped when the queue is full
    #[arg(long, value_name = "newest|oldest", default_value = "newest", value_parser = words::drop_policy)]
    pub(crate) drop_policy: DropPolicy,
    /// Scheduler of payloads: one of each request in turn, in order of arrival (datagram mode), or in the order of requests
    #[arg(long, value_name = "round-robin|fifo|request-order", default_value = "round-robin", value_parser = words::scheduler)]
    pub(crate) scheduler: Scheduler,
    /// Datagram mode: size of the QUIC stack's buffer for datagrams that wait for congestion control [default: 128KiB]
    #[arg(long, value_name = "BYTES", value_parser = words::size)]
    pub(crate) datagram_buffer: Option<u64>,
    #[command(flatten)]
    pub(crate) control: ControlArguments,
    #[command(flatten)]
    pub(crate) buffers: BufferArguments,
    /// UDP payload of the tunnel's packets [default: 1243, then the discovered path MTU]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu)]
    pub(crate) tunnel_mtu: Option<u16>,
    /// Idle time after which a tunnel is closed [default: 120s]
    #[arg(long, value_name = "TIME", value_parser = words::time)]
    pub(crate) idle_timeout: Option<Duration>,
    /// Time after SIGTERM in which open tunnels may end; new ones are rejected
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = words::time_or_zero)]
    pub(crate) drain: Duration,
    /// Address and port on which metrics are served for Prometheus
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Print metrics as a line of JSON when a connection ends, and at the end
    #[arg(long)]
    pub(crate) figures: bool,
    /// Addresses in the log: none, the client's network (24 bits of IPv4, 56 bits of IPv6), the target, or both
    #[arg(long, value_name = "none|client|target|both", default_value = "client", value_parser = words::access_log)]
    pub(crate) access_log: AccessLog,
    /// Log format: text, or json (one JSON object with a time per line)
    #[arg(long, value_name = "text|json", default_value = "text", value_parser = words::log_format)]
    pub(crate) log_format: LogFormat,
    /// Also log connections and tunnels, not only rejected requests
    #[arg(long)]
    pub(crate) verbose: bool,
}

/// The certificate of a server.
#[derive(Debug, Args)]
pub(crate) struct ServerIdentity {
    /// Certificate chain
    #[arg(long, value_name = "PEM")]
    pub(crate) cert: Option<PathBuf>,
    /// Private key
    #[arg(long, value_name = "PEM")]
    pub(crate) key: Option<PathBuf>,
    /// Generate a self-signed certificate, kept in memory, for these names [default: localhost, 127.0.0.1, ::1]
    #[arg(long, value_name = "NAME|IP", num_args = 0..)]
    pub(crate) self_signed: Option<Vec<String>>,
}

/// Congestion control.
#[derive(Debug, Args)]
pub(crate) struct ControlArguments {
    /// Congestion control, named as in scenarios
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) congestion: String,
    /// Disable HyStart++ (RFC 9406)
    #[arg(long)]
    pub(crate) no_hystart: bool,
    /// Initial congestion window (RFC 9002: 10)
    #[arg(long, value_name = "PACKETS", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) initial_window: Option<u64>,
}

/// The stream buffers of the QUIC stack.
#[derive(Debug, Args)]
pub(crate) struct BufferArguments {
    /// Size of the send buffer: data not acknowledged yet [default: 8MiB end to end, 4MiB in a tunnel]
    #[arg(long, value_name = "BYTES", value_parser = words::size)]
    pub(crate) send_buffer: Option<u64>,
    /// Receive window of a stream: data in flight or unread [default: 1536KiB]
    #[arg(long, value_name = "BYTES", value_parser = words::window)]
    pub(crate) receive_buffer: Option<u32>,
}

/// The certificates that a client trusts.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// CA certificates, or the server's own certificate [default: those of the system]
    #[arg(long, value_name = "PEM")]
    pub(crate) ca: Option<PathBuf>,
    /// Do not verify certificates
    #[arg(long, conflicts_with = "ca")]
    pub(crate) insecure: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ConnectArguments {
    /// URI template of the proxy
    #[arg(long, value_name = "URI_TEMPLATE")]
    pub(crate) template: String,
    /// Target of the tunnel
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) target: String,
    /// Local address and port to which programs send
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// Transport of payloads: datagram (unreliable), stream (reliable), or auto: datagram if the path carries QUIC in it
    #[arg(long, value_name = "datagram|stream|auto", default_value = "datagram", value_parser = words::mode)]
    pub(crate) mode: ModeChoice,
    #[command(flatten)]
    pub(crate) trusted: TrustArguments,
    /// Certificate chain that this client presents, for a proxy with `--client-ca`
    #[arg(long, value_name = "PEM", requires = "client_key")]
    pub(crate) client_cert: Option<PathBuf>,
    /// Private key of this client
    #[arg(long, value_name = "PEM", requires = "client_cert")]
    pub(crate) client_key: Option<PathBuf>,
    /// Name in the proxy's certificate [default: the template's host]
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// Secret that the proxy requires
    #[arg(long, value_name = "SECRET", value_parser = words::secret)]
    pub(crate) token: Option<String>,
    /// UDP payload of the tunnel's packets [default: 1243, then the discovered path MTU]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu)]
    pub(crate) tunnel_mtu: Option<u16>,
    #[command(flatten)]
    pub(crate) control: ControlArguments,
    #[command(flatten)]
    pub(crate) buffers: BufferArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Address and port to listen on
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    #[command(flatten)]
    pub(crate) identity: ServerIdentity,
    /// Folder whose files are served
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Serve /bytes/N, for N up to 10 GB: N pseudorandom bytes, the same each time
    #[arg(long)]
    pub(crate) generate: bool,
    /// UDP payload of packets [default: 1200, then the discovered path MTU]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu)]
    pub(crate) mtu: Option<u16>,
    #[command(flatten)]
    pub(crate) control: ControlArguments,
    #[command(flatten)]
    pub(crate) buffers: BufferArguments,
    /// Print metrics as a line of JSON when a connection ends, and at the end
    #[arg(long)]
    pub(crate) figures: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GetArguments {
    /// URL to get
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) trusted: TrustArguments,
    /// Name in the server's certificate [default: the URL's host]
    #[arg(long, value_name = "NAME")]
    pub(crate) server_name: Option<String>,
    /// Address and port of the server [default: those of the URL]
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) connect: Option<SocketAddr>,
    /// URI template of a proxy to use
    #[arg(long, value_name = "URI_TEMPLATE")]
    pub(crate) via: Option<String>,
    /// CA certificates for the proxy [default: as for the server]
    #[arg(long, value_name = "PEM", requires = "via")]
    pub(crate) via_ca: Option<PathBuf>,
    /// Secret that the proxy requires
    #[arg(long, value_name = "SECRET", requires = "via", value_parser = words::secret)]
    pub(crate) token: Option<String>,
    /// Transport of payloads to the proxy: datagram, stream, or auto: datagram if the path carries QUIC in it
    #[arg(long, value_name = "datagram|stream|auto", default_value = "datagram", value_parser = words::mode)]
    pub(crate) mode: ModeChoice,
    /// UDP payload of the tunnel's packets [default: 1243, then the discovered path MTU]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu, requires = "via")]
    pub(crate) tunnel_mtu: Option<u16>,
    /// Congestion control of the tunnel, or none [default: as that of the connection to the server]
    #[arg(long, value_name = "NAME|none", requires = "via")]
    pub(crate) tunnel_congestion: Option<String>,
    /// UDP payload of packets to the server [default: 1200, then the discovered path MTU]
    #[arg(long, value_name = "BYTES", value_parser = words::mtu)]
    pub(crate) mtu: Option<u16>,
    /// File for the body; until it is complete, FILE.part [default: the body is discarded]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArguments,
    #[command(flatten)]
    pub(crate) buffers: BufferArguments,
    /// Time without packets after which the request fails: from the server; from the proxy, two thirds of it
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = words::time)]
    pub(crate) idle_timeout: Duration,
    /// Fail if the body is not that of `http3 serve --generate`
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print metrics as a last line of JSON
    #[arg(long)]
    pub(crate) figures: bool,
}
