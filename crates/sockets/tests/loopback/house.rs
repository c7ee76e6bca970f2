//! Test environment in one process: a certificate, a server with content, a proxy, and clients.

use bytes::Bytes;
use fullpipe_masque::client::{Client, Tunnel, TunnelSocket};
use fullpipe_masque::configuration::{self, Mode};
use fullpipe_masque::environment::{BoxFuture, ConnectedSocket, Environment};
use fullpipe_masque::http3::{self, Body, ContentError, ContentSource, FetchResult};
use fullpipe_masque::log::{Event, EventLogger};
use fullpipe_masque::metrics::Metrics;
use fullpipe_masque::proxy::Proxy;
use fullpipe_masque::target::Target;
use fullpipe_masque::template::Template;
use fullpipe_sockets::tls::{self, ServerCredentials, ServerVerification};
use fullpipe_sockets::{TokioEnvironment, endpoint};
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const LOCAL: &str = "127.0.0.1:0";

/// Certificate and key files of `localhost`, created once per process.
pub(crate) struct Certificate {
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

impl Certificate {
    pub(crate) fn identity(&self) -> ServerCredentials {
        ServerCredentials::Files { chain: self.chain.clone(), key: self.key.clone() }
    }
}

pub(crate) fn certificate() -> Certificate {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (chain, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&chain, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    Certificate { chain, key }
}

/// Runs a task in its own runtime with two threads, with a time limit.
pub(crate) fn run<T>(task: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let done = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), task).await });
    runtime.shutdown_background();
    done.expect("the test ends within the time limit")
}

pub(crate) fn environment() -> Arc<dyn Environment> {
    Arc::new(TokioEnvironment)
}

/// `/N` is a body of N bytes.
struct Generated;

struct Pieces {
    length: u64,
    at: u64,
}

/// The byte at a position. The sequence has no short period, so a swapped piece is detected.
pub(crate) fn byte_at(position: u64) -> u8 {
    (position.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

impl ContentSource for Generated {
    fn open(&self, path: &str) -> Result<Box<dyn Body>, ContentError> {
        let length = path[1..].parse().map_err(|_| ContentError::NotFound)?;
        Ok(Box::new(Pieces { length, at: 0 }))
    }
}

impl Body for Pieces {
    fn length(&self) -> u64 {
        self.length
    }

    fn next_chunk(&mut self) -> io::Result<Bytes> {
        let end = self.length.min(self.at + (64 << 10));
        let piece: Vec<u8> = (self.at..end).map(byte_at).collect();
        self.at = end;
        Ok(piece.into())
    }
}

/// Binds an endpoint of a server.
pub(crate) fn bind(certificate: &Certificate, transport: noq::TransportConfig) -> noq::Endpoint {
    let tls = tls::server_config(&certificate.identity()).unwrap();
    endpoint::bind_server(&TokioEnvironment, LOCAL.parse().unwrap(), tls, transport).unwrap()
}

/// Starts a server and returns its address.
pub(crate) fn serve(certificate: &Certificate) -> SocketAddr {
    let endpoint = bind(certificate, configuration::Tunnel::default().transport(100));
    let address = endpoint.local_addr().unwrap();
    let server = http3::Server::new(environment(), Arc::new(Generated), |_, _, _| {});
    environment().spawn(Box::pin(async move { server.serve(endpoint).await }));
    address
}

/// Lines of a proxy's log.
#[derive(Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl EventLogger for Lines {
    fn log_event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(event.to_string());
    }
}

impl Lines {
    /// Waits until `count` lines contain `words`.
    pub(crate) async fn wait_for(&self, words: &str, count: usize) {
        while self.matching(words).len() < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Deletes the lines, which tests of memory must not count.
    pub(crate) fn forget(&self) {
        *self.0.lock().unwrap() = Vec::new();
    }

    pub(crate) fn matching(&self, words: &str) -> Vec<String> {
        self.0.lock().unwrap().iter().filter(|line| line.contains(words)).cloned().collect()
    }
}

pub(crate) struct RunningProxy {
    pub(crate) proxy: Proxy,
    pub(crate) address: SocketAddr,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: Arc<Lines>,
    pub(crate) template: Template,
}

/// A resolver with fixed names.
#[derive(Debug)]
struct Named;

impl Environment for Named {
    fn runtime(&self) -> Arc<dyn noq::Runtime> {
        TokioEnvironment.runtime()
    }

    fn bind(&self, local: SocketAddr) -> io::Result<Box<dyn noq::AsyncUdpSocket>> {
        TokioEnvironment.bind(local)
    }

    fn connect(&self, peer: SocketAddr) -> io::Result<Arc<dyn ConnectedSocket>> {
        TokioEnvironment.connect(peer)
    }

    fn resolve(&self, name: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let answer = match name {
            "inside.example" => Ok(vec!["10.0.0.1".parse().unwrap(), "::1".parse().unwrap()]),
            "nowhere.example" => Err(io::ErrorKind::NotFound.into()),
            "slow.example" => Err(io::ErrorKind::TimedOut.into()),
            _ => Err(io::Error::other("the resolver is ill")),
        };
        Box::pin(async move { answer })
    }
}

/// Starts a proxy that permits loopback targets, with the settings that `change` makes.
pub(crate) fn proxy(certificate: &Certificate, change: impl FnOnce(&mut configuration::Proxy)) -> RunningProxy {
    proxy_in(environment(), certificate, change)
}

/// Starts such a proxy with a few fictitious names.
pub(crate) fn proxy_with_names(
    certificate: &Certificate,
    change: impl FnOnce(&mut configuration::Proxy),
) -> RunningProxy {
    proxy_in(Arc::new(Named), certificate, change)
}

/// Starts such a proxy in its own environment.
pub(crate) fn proxy_in(
    world: Arc<dyn Environment>,
    certificate: &Certificate,
    change: impl FnOnce(&mut configuration::Proxy),
) -> RunningProxy {
    let template = Template::well_known("localhost").unwrap();
    let mut settings = configuration::Proxy::new(template.clone());
    settings.policy.allow_private = true;
    change(&mut settings);
    let endpoint = bind(certificate, settings.transport());
    let address = endpoint.local_addr().unwrap();
    let (log, metrics) = (Arc::new(Lines::default()), Arc::default());
    let template = settings.template.clone();
    let proxy = Proxy::new(world, settings, Arc::clone(&log) as Arc<dyn EventLogger>, Arc::clone(&metrics));
    let serving = proxy.clone();
    environment().spawn(Box::pin(async move { serving.serve(endpoint).await }));
    RunningProxy { proxy, address, metrics, log, template }
}

/// Opens an HTTP/3 connection to `address`.
pub(crate) async fn connect(
    certificate: &Certificate,
    endpoint: &noq::Endpoint,
    address: SocketAddr,
    transport: noq::TransportConfig,
) -> noq::Connection {
    let mut tls = tls::client_config(&ServerVerification::CaFile(certificate.chain.clone())).unwrap();
    tls.transport_config(Arc::new(transport));
    endpoint.connect_with(tls, address, "localhost").unwrap().await.unwrap()
}

pub(crate) async fn client(
    certificate: &Certificate,
    proxy: &RunningProxy,
    change: impl FnOnce(&mut configuration::Client),
) -> Client {
    let mut settings = configuration::Client::default();
    change(&mut settings);
    let endpoint = endpoint::bind_client(&TokioEnvironment, proxy.address).unwrap();
    let connection = connect(certificate, &endpoint, proxy.address, settings.transport()).await;
    Client::new(environment(), connection, proxy.template.clone(), settings, Arc::default()).await.unwrap()
}

pub(crate) async fn datagram_client(certificate: &Certificate, proxy: &RunningProxy) -> Client {
    client(certificate, proxy, |_| {}).await
}

pub(crate) fn target(address: SocketAddr) -> Target {
    Target::parse(&address.to_string()).unwrap()
}

/// Downloads `/length` through a tunnel and checks every byte.
pub(crate) async fn get_through(certificate: &Certificate, tunnel: Tunnel, length: u64, inner_mtu: u16) -> FetchResult {
    let server: SocketAddr = "192.0.2.1:443".parse().unwrap();
    let socket = TunnelSocket::new(Arc::new(tunnel), LOCAL.parse().unwrap(), server);
    let endpoint = endpoint::client_on_socket(&TokioEnvironment, Box::new(socket)).unwrap();
    let transport =
        configuration::Tunnel { mtu: configuration::Mtu::Fixed(inner_mtu), ..Default::default() }.transport(0);
    let connection = connect(certificate, &endpoint, server, transport).await;
    let uri = format!("https://localhost/{length}").parse().unwrap();
    let mut position = 0;
    let fetched = http3::get(&environment(), connection, &uri, |piece| {
        for byte in piece {
            assert_eq!(*byte, byte_at(position), "at {position}");
            position += 1;
        }
        Ok(())
    })
    .await;
    fetched.unwrap()
}

pub(crate) const MODES: [Mode; 2] = [Mode::Datagram, Mode::Stream];

/// A target that echoes every datagram.
pub(crate) struct Echo {
    pub(crate) address: SocketAddr,
    socket: Arc<tokio::net::UdpSocket>,
    last: Arc<Mutex<Option<SocketAddr>>>,
}

impl Echo {
    /// Sends an unsolicited datagram to the latest peer.
    pub(crate) async fn send_again(&self, payload: &[u8]) -> io::Result<usize> {
        let peer = self.last.lock().unwrap().expect("a datagram was received before");
        self.socket.send_to(payload, peer).await
    }
}

pub(crate) async fn echo() -> Echo {
    let socket = Arc::new(tokio::net::UdpSocket::bind(LOCAL).await.unwrap());
    let last = Arc::<Mutex<Option<SocketAddr>>>::default();
    let echo = Echo { address: socket.local_addr().unwrap(), socket: Arc::clone(&socket), last: Arc::clone(&last) };
    tokio::spawn(async move {
        let mut room = vec![0; 70_000];
        while let Ok((length, peer)) = socket.recv_from(&mut room).await {
            *last.lock().unwrap() = Some(peer);
            // The end of a peer must not stop the target.
            let _ = socket.send_to(&room[..length], peer).await;
        }
    });
    echo
}

/// Sends a payload and waits for one.
pub(crate) async fn exchange(tunnel: &Tunnel, payload: &[u8]) -> Bytes {
    tunnel.send(&mut vec![Bytes::copy_from_slice(payload)]);
    let mut back = Vec::new();
    tunnel.receive(&mut back).await.unwrap();
    assert_eq!(back.len(), 1);
    back.remove(0)
}

/// A tunnel of another client that must keep working during a test.
pub(crate) struct Bystander {
    tunnel: Tunnel,
    count: u8,
}

impl Bystander {
    pub(crate) async fn new(certificate: &Certificate, proxy: &RunningProxy, echo: SocketAddr) -> Bystander {
        let client = datagram_client(certificate, proxy).await;
        Bystander { tunnel: client.open(&target(echo)).await.unwrap(), count: 0 }
    }

    /// Sends a payload each second until it is echoed. One may be lost: a flood can fill the receive buffer of the
    /// proxy's socket, and QUIC does not retransmit datagrams (RFC 9221 section 5.2).
    pub(crate) async fn is_served(&mut self) {
        let before = [self.count; 9];
        self.count = self.count.wrapping_add(1);
        let payload = [self.count; 9];
        let mut back = Vec::new();
        for _ in 0..60 {
            self.tunnel.send(&mut vec![Bytes::copy_from_slice(&payload)]);
            if let Ok(received) = tokio::time::timeout(Duration::from_secs(1), self.tunnel.receive(&mut back)).await {
                received.unwrap();
            }
            // The response to an earlier attempt may arrive late.
            assert!(back.iter().all(|answer| *answer == payload[..] || *answer == before[..]), "{back:?}");
            if back.iter().any(|answer| *answer == payload[..]) {
                return;
            }
        }
        panic!("none of sixty payloads was echoed");
    }
}

/// The well-known path of a target.
pub(crate) fn path_of(target: SocketAddr) -> String {
    format!("/.well-known/masque/udp/{}/{}/", target.ip(), target.port())
}
