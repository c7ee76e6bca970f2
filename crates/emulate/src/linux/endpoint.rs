//! Kernel endpoints, which send and receive flows of the scenario with sockets of this machine's kernel at real hosts.
//!
//! Each endpoint is a thread with one connection or socket, which is opened in its host's network namespace. The state
//! of the sender's TCP is sampled with `TCP_INFO` (tcp(7)). The payload consists of zeros unless a [`PayloadCallback`]
//! fills it.

use super::clock::WallClock;
use super::namespace::{EmulatorNamespace, HostNamespace};
use super::sys::{self, NegotiatedOptions, TcpInfo};
use fullpipe_units::{Duration, Instant};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// The traffic of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrafficPattern {
    /// As many bytes as TCP accepts, up to a total size.
    Bulk {
        /// Total bytes; `None` sends until the run ends.
        size_bytes: Option<u64>,
        /// Bytes per write.
        write_bytes: usize,
    },
    /// Datagrams or writes of equal size at a constant interval.
    Periodic {
        /// Payload of each datagram or write, in bytes.
        payload_bytes: usize,
        /// Time from the start of one datagram or write to the start of the next.
        interval: Duration,
        /// Number of datagrams or writes; `None` sends until the run ends.
        count: Option<u64>,
    },
}

/// The transport protocol of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelTransport {
    /// UDP datagrams.
    Udp,
    /// One TCP connection.
    Tcp(KernelTcp),
}

/// Settings of a TCP connection of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelTcp {
    /// The kernel's name for the congestion control algorithm.
    pub congestion: String,
    /// Whether the kernel paces the connection, regardless of the congestion control.
    pub paced: bool,
    /// Interval between samples of the sender's state; `None` disables sampling.
    pub sample_every: Option<Duration>,
}

/// The role of a kernel endpoint.
#[derive(Clone, Debug)]
pub enum EndpointRole {
    /// The endpoint that initiates the conversation and sends.
    Sender {
        /// Address and port of this endpoint.
        from: SocketAddr,
        /// Address and port of the receiver.
        to: SocketAddr,
        /// The traffic to send.
        sent: TrafficPattern,
        /// Start time of the flow.
        start: Instant,
    },
    /// The endpoint that accepts the conversation and receives.
    Receiver {
        /// Address and port of this receiver.
        at: SocketAddr,
        /// Address and port of the sender, if several receivers share the port; `None` accepts any sender.
        peer: Option<SocketAddr>,
        /// Number of payload bytes after which the flow is complete, for transports without an end of stream; `None` if
        /// there is no such number.
        until_bytes: Option<u64>,
        /// Start of the measured interval.
        measured_from: Instant,
    },
}

/// A sample of the sender's TCP state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpInfoSample {
    /// Time of the sample.
    pub at: Instant,
    /// Smoothed round-trip time; zero before the first measurement.
    pub smoothed_rtt: Duration,
    /// Congestion window, in bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold, in bytes; `None` while there is none.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes sent but neither acknowledged nor declared lost.
    pub in_flight_bytes: u64,
    /// Pacing rate in bits per second; zero without pacing.
    pub pacing_bps: u64,
    /// Delivery rate in bits per second; zero before the first measurement.
    pub delivery_bps: u64,
}

/// The result of a kernel endpoint.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelEndpointReport {
    /// Number of payload bytes received.
    pub received_bytes: u64,
    /// Payload bytes received before the measured interval.
    pub received_before_bytes: u64,
    /// Arrival time of the last received bytes; `None` if no bytes were received.
    pub last_received: Option<Instant>,
    /// Time at which all data had been received; `None` if data were missing until the end.
    pub completed: Option<Instant>,
    /// Number of segments that the kernel retransmitted; `None` if there was no TCP connection.
    pub retransmitted_segments: Option<u64>,
    /// Number of times that the kernel, as the sender, detected reordering on the path; `None` if there was no TCP
    /// connection.
    pub reorderings_seen: Option<u64>,
    /// Negotiated TCP options; `None` if there was no TCP connection.
    pub negotiated: Option<NegotiatedOptions>,
    /// Samples of the sender's TCP state; empty if sampling is disabled.
    pub samples: Vec<TcpInfoSample>,
    /// Description of the failure; `None` if the endpoint did not fail.
    pub failure: Option<String>,
}

/// A running kernel endpoint.
#[derive(Debug)]
pub struct KernelEndpoint {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<KernelEndpointReport>,
}

/// The listening sockets of TCP receivers. Receivers at the same address and port share a socket.
#[derive(Debug, Default)]
pub struct KernelListeners(BTreeMap<SocketAddr, Arc<SharedListener>>);

/// A listening socket, with the accepted connections that their receivers have not taken yet.
#[derive(Debug)]
struct SharedListener {
    socket: TcpListener,
    accepted: Mutex<BTreeMap<SocketAddr, TcpStream>>,
}

impl SharedListener {
    /// Returns the connection of `peer`, or any connection if `peer` is `None`. Returns `None` if no such connection
    /// has arrived within a `ROUND`.
    fn accept(&self, peer: Option<SocketAddr>) -> io::Result<Option<TcpStream>> {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = peer.and_then(|peer| accepted.remove(&peer)) {
            return Ok(Some(stream));
        }
        match self.socket.accept() {
            Ok((stream, from)) if peer.is_none_or(|peer| peer == from) => Ok(Some(stream)),
            Ok((stream, from)) => {
                accepted.insert(from, stream);
                Ok(None)
            }
            Err(error) if is_timeout(&error) => {
                drop(accepted);
                wait_for(&self.socket, PollFlags::IN).map(|_| None)
            }
            Err(error) => Err(error),
        }
    }
}

/// The signal that starts all endpoints of a run and provides the clock of the run.
#[derive(Debug, Default)]
pub struct StartSignal {
    clock: Mutex<Option<WallClock>>,
    begun: Condvar,
}

impl StartSignal {
    /// Starts all endpoints, with times relative to this clock.
    pub fn begin(&self, clock: WallClock) {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock);
        self.begun.notify_all();
    }

    /// Waits for the clock. Returns `None` if the endpoint is stopped before the run begins.
    fn wait(&self, asked: &AtomicBool) -> Option<WallClock> {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        while clock.is_none() && !asked.load(Ordering::Relaxed) {
            clock = self.begun.wait_timeout(clock, ROUND).unwrap_or_else(PoisonError::into_inner).0;
        }
        *clock
    }
}

/// A callback that fills the next bytes of a sender, or checks the bytes that a receiver has read.
pub type PayloadCallback = Box<dyn FnMut(&mut [u8]) + Send>;

/// Timeout of blocking calls, after which the endpoint checks whether the run has ended.
const ROUND: std::time::Duration = std::time::Duration::from_millis(10);

/// Connections that may wait to be accepted; the kernel reduces it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

/// Returns the congestion control algorithms currently available in this kernel's TCP, in the kernel's order.
fn kernel_controls() -> Vec<String> {
    let list = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    list.split_whitespace().map(str::to_owned).collect()
}

impl KernelEndpoint {
    /// Starts an endpoint in a host's namespace. A receiver is already listening when this function returns. Endpoints
    /// start when [`StartSignal::begin`] is called on `signal`.
    ///
    /// # Errors
    /// Returns the kernel's error: unknown congestion control, missing permission to use this congestion control, or
    /// port in use.
    pub fn start(
        home: &EmulatorNamespace,
        host: &HostNamespace,
        role: EndpointRole,
        over: &KernelTransport,
        content: Option<PayloadCallback>,
        listeners: &mut KernelListeners,
        signal: Arc<StartSignal>,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        // A socket belongs to the namespace in which it was opened, regardless of the thread that uses it.
        let opened = home.inside(host, || Opened::new(&role, over, listeners))??;
        let sample_every = match over {
            KernelTransport::Tcp(tcp) => tcp.sample_every,
            KernelTransport::Udp => None,
        };
        let thread = std::thread::Builder::new().name("kernel endpoint".to_owned()).spawn(move || {
            let mut report = KernelEndpointReport::default();
            let Some(clock) = signal.wait(&asked) else { return report };
            let mut work = Work { clock, stop: &asked, report: &mut report, sample_every, content };
            if let Err(error) = work.run(opened, &role) {
                report.failure = Some(error.to_string());
            }
            report
        })?;
        Ok(KernelEndpoint { stop, thread })
    }

    /// Returns whether the endpoint has finished.
    pub fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Signals the endpoint to stop and returns immediately.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Stops the endpoint and returns its report.
    pub fn finish(self) -> KernelEndpointReport {
        self.stop();
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The socket of an endpoint.
#[derive(Debug)]
enum Opened {
    Connecting(OwnedFd),
    Listening(Arc<SharedListener>),
    Datagrams(UdpSocket),
}

impl Opened {
    fn new(role: &EndpointRole, over: &KernelTransport, listeners: &mut KernelListeners) -> io::Result<Self> {
        match (role, over) {
            (EndpointRole::Sender { from, .. }, KernelTransport::Udp) => Ok(Opened::Datagrams(UdpSocket::bind(from)?)),
            (EndpointRole::Receiver { at, peer, .. }, KernelTransport::Udp) => {
                let socket = match peer {
                    None => UdpSocket::bind(at)?,
                    // Of several sockets at one port, the kernel delivers a datagram to the one connected to its sender.
                    Some(peer) => {
                        let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
                        let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
                        sockopt::set_socket_reuseport(&socket, true)?;
                        rustix::net::bind(&socket, at)?;
                        rustix::net::connect(&socket, peer)?;
                        UdpSocket::from(socket)
                    }
                };
                socket.set_read_timeout(Some(ROUND))?;
                Ok(Opened::Datagrams(socket))
            }
            (EndpointRole::Sender { from, .. }, KernelTransport::Tcp(tcp)) => {
                let socket = Self::tcp_socket(from.ip(), tcp)?;
                rustix::net::bind(&socket, from)?;
                Ok(Opened::Connecting(socket))
            }
            (EndpointRole::Receiver { at, peer, .. }, KernelTransport::Tcp(tcp)) => {
                if let Some(listener) = peer.and_then(|_| listeners.0.get(at)) {
                    return Ok(Opened::Listening(Arc::clone(listener)));
                }
                let socket = Self::tcp_socket(at.ip(), tcp)?;
                rustix::net::bind(&socket, at)?;
                rustix::net::listen(&socket, BACKLOG)?;
                let listener = SharedListener { socket: TcpListener::from(socket), accepted: Mutex::default() };
                let listener = Arc::new(listener);
                listeners.0.insert(*at, Arc::clone(&listener));
                Ok(Opened::Listening(listener))
            }
        }
    }

    /// Returns a nonblocking TCP socket with these settings.
    fn tcp_socket(address: IpAddr, tcp: &KernelTcp) -> io::Result<OwnedFd> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
        sockopt::set_tcp_congestion(&socket, &tcp.congestion).map_err(|error| {
            let has = kernel_controls().join(", ");
            io::Error::other(format!(
                "cannot use the congestion control {:?} of this kernel: {error} (available: {has}; see `fullpipe doctor`)",
                tcp.congestion
            ))
        })?;
        // Nagle's algorithm is also off in the model.
        sockopt::set_tcp_nodelay(&socket, true)?;
        if tcp.paced {
            sys::pace(socket.as_fd())?;
        }
        Ok(socket)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Waits for a condition of a socket, at most one `ROUND`. Returns whether the condition has occurred.
fn wait_for(socket: impl AsFd, what: PollFlags) -> io::Result<bool> {
    let timeout = Timespec { tv_sec: 0, tv_nsec: ROUND.as_nanos() as i64 };
    match poll(&mut [PollFd::new(&socket, what)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

struct Work<'a> {
    clock: WallClock,
    stop: &'a AtomicBool,
    report: &'a mut KernelEndpointReport,
    sample_every: Option<Duration>,
    content: Option<PayloadCallback>,
}

/// Sleeps until an instant of the run. Returns false if `over` returns true before that.
fn sleep_until(clock: WallClock, at: Instant, over: impl Fn() -> bool) -> bool {
    while !over() {
        let left = std::time::Duration::from_nanos(at.saturating_since(clock.now()).as_nanos());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(ROUND));
    }
    false
}

impl Work<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn run(&mut self, opened: Opened, role: &EndpointRole) -> io::Result<()> {
        match (opened, role) {
            (Opened::Connecting(socket), EndpointRole::Sender { to, sent, start, .. }) => {
                self.send_stream(socket, *to, sent, *start)
            }
            (Opened::Datagrams(socket), EndpointRole::Sender { to, sent, start, .. }) => {
                self.send_datagrams(&socket, *to, sent, *start)
            }
            (Opened::Listening(listener), EndpointRole::Receiver { peer, measured_from, .. }) => {
                self.receive_stream(&listener, *peer, *measured_from)
            }
            (Opened::Datagrams(socket), EndpointRole::Receiver { until_bytes, measured_from, .. }) => {
                self.receive_datagrams(&socket, *until_bytes, *measured_from)
            }
            (Opened::Connecting(_), EndpointRole::Receiver { .. })
            | (Opened::Listening(_), EndpointRole::Sender { .. }) => Ok(()),
        }
    }

    fn send_stream(
        &mut self,
        socket: OwnedFd,
        to: SocketAddr,
        sent: &TrafficPattern,
        start: Instant,
    ) -> io::Result<()> {
        if !sleep_until(self.clock, start, || self.stopped()) {
            return Ok(());
        }
        match rustix::net::connect(&socket, &to) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        let (clock, every, stop) = (self.clock, self.sample_every, self.stop);
        let sent_all = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            let sampler = scope.spawn(|| {
                let over = || sent_all.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
                every.map_or_else(Vec::new, |every| samples(&stream, clock, every, over))
            });
            let result = self.send_over(&stream, sent, start);
            sent_all.store(true, Ordering::Relaxed);
            self.report.samples = sampler.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result
        });
        self.conclude(&stream)?;
        result
    }

    /// Sends over a stream that is still connecting, and waits until the peer has acknowledged all data.
    fn send_over(&mut self, mut stream: &TcpStream, sent: &TrafficPattern, start: Instant) -> io::Result<()> {
        while !self.stopped() && !wait_for(stream, PollFlags::OUT)? {}
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(ROUND))?;
        match *sent {
            TrafficPattern::Bulk { size_bytes, write_bytes } => {
                self.write_all(stream, size_bytes.unwrap_or(u64::MAX), write_bytes.clamp(1, 1 << 20))?;
            }
            TrafficPattern::Periodic { payload_bytes, interval, count } => {
                let mut at = start;
                let mut left = count.unwrap_or(u64::MAX);
                while left > 0 && sleep_until(self.clock, at, || self.stopped()) {
                    self.write_all(stream, payload_bytes as u64, payload_bytes.max(1))?;
                    at = at.saturating_add(interval);
                    left -= 1;
                }
            }
        }
        if self.stopped() {
            return Ok(());
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        // The peer may keep its direction open indefinitely, so this waits only until all data are acknowledged.
        stream.set_read_timeout(Some(ROUND))?;
        while !self.stopped() && !sys::tcp_info(stream.as_fd())?.all_acknowledged {
            match stream.read(&mut [0; 64]) {
                Ok(0) => std::thread::sleep(ROUND / 10),
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn write_all(&mut self, stream: &TcpStream, bytes: u64, write_bytes: usize) -> io::Result<()> {
        let mut payload = vec![0; write_bytes];
        let mut left = bytes;
        while left > 0 && !self.stopped() {
            payload.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            if let Some(content) = &mut self.content {
                content(&mut payload);
            }
            self.write(stream, &payload)?;
            left -= payload.len() as u64;
        }
        Ok(())
    }

    fn write(&self, mut stream: &TcpStream, mut payload: &[u8]) -> io::Result<()> {
        while !payload.is_empty() && !self.stopped() {
            match stream.write(payload) {
                Ok(written) => payload = &payload[written..],
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Records the final state of a connection.
    fn conclude(&mut self, stream: &TcpStream) -> io::Result<()> {
        let info = sys::tcp_info(stream.as_fd())?;
        self.report.retransmitted_segments = Some(info.retransmitted_segments);
        self.report.reorderings_seen = Some(info.reorderings_seen);
        self.report.negotiated = Some(info.negotiated);
        Ok(())
    }

    fn send_datagrams(
        &self,
        socket: &UdpSocket,
        to: SocketAddr,
        sent: &TrafficPattern,
        start: Instant,
    ) -> io::Result<()> {
        let TrafficPattern::Periodic { payload_bytes, interval, count } = *sent else { return Ok(()) };
        let payload = vec![0; payload_bytes];
        let mut at = start;
        let mut left = count.unwrap_or(u64::MAX);
        while left > 0 && sleep_until(self.clock, at, || self.stopped()) {
            match socket.send_to(&payload, to) {
                Ok(_) => {}
                // A queue on the path is full, or the network has reported a closed port. The next datagram may arrive.
                Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
            at = at.saturating_add(interval);
            left -= 1;
        }
        Ok(())
    }

    fn note_received(&mut self, bytes: usize, measured_from: Instant) {
        let now = self.clock.now();
        self.report.received_bytes += bytes as u64;
        self.report.last_received = Some(now);
        if now < measured_from {
            self.report.received_before_bytes = self.report.received_bytes;
        }
    }

    fn receive_stream(
        &mut self,
        listener: &SharedListener,
        peer: Option<SocketAddr>,
        measured_from: Instant,
    ) -> io::Result<()> {
        let mut stream = loop {
            match listener.accept(peer)? {
                Some(stream) => break stream,
                None if self.stopped() => return Ok(()),
                None => {}
            }
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(ROUND))?;
        let mut buffer = vec![0; 256 << 10];
        while !self.stopped() {
            match stream.read(&mut buffer) {
                Ok(0) => {
                    self.report.completed = Some(self.clock.now());
                    break;
                }
                Ok(read) => {
                    self.note_received(read, measured_from);
                    if let Some(content) = &mut self.content {
                        content(&mut buffer[..read]);
                    }
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.conclude(&stream)
    }

    fn receive_datagrams(
        &mut self,
        socket: &UdpSocket,
        until_bytes: Option<u64>,
        measured_from: Instant,
    ) -> io::Result<()> {
        let mut buffer = vec![0; 65_536];
        while !self.stopped() && until_bytes.is_none_or(|all| self.report.received_bytes < all) {
            match socket.recv(&mut buffer) {
                Ok(read) => self.note_received(read, measured_from),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Samples a connection at every multiple of an interval until `over` returns true.
fn samples(stream: &TcpStream, clock: WallClock, every: Duration, over: impl Fn() -> bool) -> Vec<TcpInfoSample> {
    let every = every.max(Duration::from_nanos(1));
    let mut samples = Vec::new();
    let mut at = Instant::ZERO;
    loop {
        let now = clock.now();
        // Missed samples are skipped.
        while at <= now {
            at = at.saturating_add(every);
        }
        if !sleep_until(clock, at, &over) {
            return samples;
        }
        // A connection that has ended in the meantime yields no sample.
        samples.extend(sys::tcp_info(stream.as_fd()).ok().map(|info| info.sample(clock.now())));
    }
}

impl TcpInfo {
    fn sample(&self, at: Instant) -> TcpInfoSample {
        let bytes = |segments: u32| u64::from(segments) * u64::from(self.mss_bytes);
        TcpInfoSample {
            at,
            smoothed_rtt: Duration::from_nanos(u64::from(self.smoothed_rtt_micros) * 1000),
            cwnd_bytes: bytes(self.cwnd_segments),
            ssthresh_bytes: self.ssthresh_segments.map(bytes),
            in_flight_bytes: bytes(self.in_flight_segments),
            pacing_bps: self.pacing_bytes_per_second.unwrap_or(0).saturating_mul(8),
            delivery_bps: self.delivery_bytes_per_second.saturating_mul(8),
        }
    }
}
