//! Traffic by the sockets of this machine's kernel, at real hosts: a flow of the scenario whose ends are played by Linux.
//!
//! Each end is a thread in its host's network namespace with one connection or socket. What the sender's TCP knows of itself
//! is sampled by `TCP_INFO` (tcp(7)); the payload is zeros.

use crate::clock::WallClock;
use crate::namespace::{Home, HostNamespace};
use crate::sys;
use fullpipe_units::{Duration, Instant};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// What a flow sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// As much as TCP takes, up to a size; without one until the run ends.
    Bulk {
        /// Bytes in all.
        size_bytes: Option<u64>,
        /// Bytes per write.
        write_bytes: usize,
    },
    /// Datagrams of one size at a constant interval.
    Datagrams {
        /// Payload bytes of each.
        payload_bytes: usize,
        /// From one to the next.
        interval: Duration,
        /// How many; without a number until the run ends.
        count: Option<u64>,
    },
}

/// How a kernel's connection is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelTcp {
    /// The kernel's name of the congestion control.
    pub congestion: String,
    /// Bytes of the sender's buffer; the kernel's own if `None`.
    pub send_buffer_bytes: Option<usize>,
    /// Bytes of the receiver's buffer; the kernel's own if `None`.
    pub receive_buffer_bytes: Option<usize>,
}

/// One end of a flow that the kernel plays.
#[derive(Clone, Debug)]
pub enum Role {
    /// The initiator, which sends.
    Sender {
        /// Its own address.
        from: IpAddr,
        /// The receiver's.
        to: SocketAddr,
        /// What it sends.
        sent: Sent,
        /// When it begins.
        start: Instant,
    },
    /// The acceptor, which receives.
    Receiver {
        /// Its address.
        at: SocketAddr,
        /// Whether it is datagrams that it receives; otherwise one connection.
        datagrams: bool,
    },
}

/// A sample of what the sender's TCP knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Congestion window, in bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold, in bytes; `None` while there is none.
    pub ssthresh_bytes: Option<u64>,
    /// Pacing rate in bits per second.
    pub pacing_bps: u64,
    /// Delivery rate in bits per second.
    pub delivery_bps: u64,
}

/// What an end has done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Payload bytes received.
    pub received_bytes: u64,
    /// When the last of them came.
    pub last_received: Option<Instant>,
    /// When all had come.
    pub completed: Option<Instant>,
    /// Segments that the kernel sent again.
    pub retransmitted_segments: u64,
    /// Samples of the sender, 10 ms apart.
    pub samples: Vec<Sample>,
    /// What went wrong.
    pub failure: Option<String>,
}

/// An end at work.
#[derive(Debug)]
pub struct KernelEndpoint {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Report>,
}

/// How long a blocking call may take until it is seen whether the run is over.
const ROUND: std::time::Duration = std::time::Duration::from_millis(10);

/// Distance of samples.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);

impl KernelEndpoint {
    /// Starts an end in a host's namespace. A receiver is ready when this returns.
    ///
    /// # Errors
    /// The kernel's: no such congestion control, no permission for it, port taken.
    pub fn start(
        home: &Home,
        host: &HostNamespace,
        role: Role,
        tcp: KernelTcp,
        clock: impl Fn() -> Option<WallClock> + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&stop);
        // A socket belongs to the namespace in which it was opened, whoever uses it.
        let opened = home.inside(host, || Opened::new(&role, &tcp))??;
        let thread = std::thread::Builder::new().name("kernel endpoint".to_owned()).spawn(move || {
            let mut report = Report::default();
            let clock = loop {
                match clock() {
                    Some(clock) => break clock,
                    None if asked.load(Ordering::Relaxed) => return report,
                    None => std::thread::sleep(std::time::Duration::from_micros(200)),
                }
            };
            let work = Work { clock, stop: &asked, report: &mut report };
            if let Err(error) = work.run(opened, &role) {
                report.failure = Some(error.to_string());
            }
            report
        })?;
        Ok(KernelEndpoint { stop, thread })
    }

    /// Whether it has nothing left to do.
    pub fn done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it and says what it has done.
    pub fn finish(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The socket of an end.
#[derive(Debug)]
enum Opened {
    Connecting(std::os::fd::OwnedFd),
    Listening(TcpListener),
    Datagrams(UdpSocket),
}

impl Opened {
    fn new(role: &Role, tcp: &KernelTcp) -> io::Result<Self> {
        match role {
            Role::Sender { from, sent: Sent::Datagrams { .. }, .. } => {
                Ok(Opened::Datagrams(UdpSocket::bind((*from, 0))?))
            }
            Role::Sender { from, .. } => {
                let socket = Self::tcp_socket(*from, tcp)?;
                rustix::net::bind(&socket, &SocketAddr::new(*from, 0))?;
                Ok(Opened::Connecting(socket))
            }
            Role::Receiver { at, datagrams: true } => {
                let socket = UdpSocket::bind(at)?;
                socket.set_read_timeout(Some(ROUND))?;
                Ok(Opened::Datagrams(socket))
            }
            Role::Receiver { at, datagrams: false } => {
                let socket = Self::tcp_socket(at.ip(), tcp)?;
                sockopt::set_socket_reuseaddr(&socket, true)?;
                rustix::net::bind(&socket, at)?;
                rustix::net::listen(&socket, 16)?;
                let listener = TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                Ok(Opened::Listening(listener))
            }
        }
    }

    fn tcp_socket(address: IpAddr, tcp: &KernelTcp) -> io::Result<std::os::fd::OwnedFd> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        if !tcp.congestion.is_empty() {
            sockopt::set_tcp_congestion(&socket, &tcp.congestion).map_err(|error| {
                io::Error::other(format!("this kernel's TCP has no congestion control {:?}: {error}", tcp.congestion))
            })?;
        }
        if let Some(bytes) = tcp.send_buffer_bytes {
            sockopt::set_socket_send_buffer_size(&socket, bytes)?;
        }
        if let Some(bytes) = tcp.receive_buffer_bytes {
            sockopt::set_socket_recv_buffer_size(&socket, bytes)?;
        }
        Ok(socket)
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

struct Work<'a> {
    clock: WallClock,
    stop: &'a AtomicBool,
    report: &'a mut Report,
}

impl Work<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn run(self, opened: Opened, role: &Role) -> io::Result<()> {
        match (opened, role) {
            (
                Opened::Connecting(socket),
                Role::Sender { to, sent: Sent::Bulk { size_bytes, write_bytes }, start, .. },
            ) => self.send_bulk(socket, *to, *size_bytes, *write_bytes, *start),
            (Opened::Datagrams(socket), Role::Sender { to, sent, start, .. }) => {
                self.send_datagrams(&socket, *to, sent, *start)
            }
            (Opened::Listening(listener), _) => self.receive(&listener),
            (Opened::Datagrams(socket), _) => self.receive_datagrams(&socket),
            (Opened::Connecting(_), _) => Ok(()),
        }
    }

    /// Sleeps until an instant of the run; false if it is stopped before.
    fn sleep_until(&self, at: Instant) -> bool {
        while !self.stopped() {
            let left = std::time::Duration::from_nanos(at.saturating_since(self.clock.now()).as_nanos());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(ROUND));
        }
        false
    }

    fn send_bulk(
        mut self,
        socket: std::os::fd::OwnedFd,
        to: SocketAddr,
        size_bytes: Option<u64>,
        write_bytes: usize,
        start: Instant,
    ) -> io::Result<()> {
        if !self.sleep_until(start) {
            return Ok(());
        }
        rustix::net::connect(&socket, &to)?;
        let mut stream = TcpStream::from(socket);
        stream.set_write_timeout(Some(ROUND))?;
        let zeros = vec![0; write_bytes.clamp(1, 1 << 20)];
        let mut left = size_bytes.unwrap_or(u64::MAX);
        while left > 0 && !self.stopped() {
            let next = &zeros[..zeros.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            match stream.write(next) {
                Ok(written) => left -= (written as u64).min(left),
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
            self.sample(&stream);
        }
        stream.shutdown(std::net::Shutdown::Write)?;
        // Until the receiver has everything, and closes.
        stream.set_read_timeout(Some(ROUND))?;
        while !self.stopped() {
            self.sample(&stream);
            match stream.read(&mut [0; 64]) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        self.report.retransmitted_segments = sys::tcp_info(stream.as_fd())?.retransmitted_segments;
        Ok(())
    }

    fn sample(&mut self, stream: &TcpStream) {
        let at = self.clock.now();
        if self.report.samples.last().is_some_and(|last| at < last.at + SAMPLE_EVERY) {
            return;
        }
        if let Ok(info) = sys::tcp_info(stream.as_fd()) {
            self.report.retransmitted_segments = info.retransmitted_segments;
            self.report.samples.push(Sample {
                at,
                smoothed_rtt: Duration::from_nanos(u64::from(info.smoothed_rtt_micros) * 1000),
                cwnd_bytes: u64::from(info.cwnd_segments) * u64::from(info.mss_bytes),
                ssthresh_bytes: info.ssthresh_segments.map(|segments| u64::from(segments) * u64::from(info.mss_bytes)),
                pacing_bps: info.pacing_bytes_per_second.saturating_mul(8),
                delivery_bps: info.delivery_bytes_per_second.saturating_mul(8),
            });
        }
    }

    fn send_datagrams(self, socket: &UdpSocket, to: SocketAddr, sent: &Sent, start: Instant) -> io::Result<()> {
        let Sent::Datagrams { payload_bytes, interval, count } = sent else { return Ok(()) };
        let payload = vec![0; *payload_bytes];
        let mut at = start;
        let mut left = count.unwrap_or(u64::MAX);
        while left > 0 && self.sleep_until(at) {
            match socket.send_to(&payload, to) {
                Ok(_) => {}
                // The path's queue is full, or the network says that nobody is there: the next one may get through.
                Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
            at += *interval;
            left -= 1;
        }
        Ok(())
    }

    fn receive(self, listener: &TcpListener) -> io::Result<()> {
        let mut stream = loop {
            match listener.accept() {
                Ok((stream, _)) => break stream,
                Err(error) if is_timeout(&error) && !self.stopped() => std::thread::sleep(ROUND / 10),
                Err(_) if self.stopped() => return Ok(()),
                Err(error) => return Err(error),
            }
        };
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(ROUND))?;
        let mut buffer = vec![0; 256 << 10];
        while !self.stopped() {
            match stream.read(&mut buffer) {
                Ok(0) => {
                    self.report.completed = self.report.last_received;
                    break;
                }
                Ok(read) => {
                    self.report.received_bytes += read as u64;
                    self.report.last_received = Some(self.clock.now());
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn receive_datagrams(self, socket: &UdpSocket) -> io::Result<()> {
        let mut buffer = vec![0; 65_536];
        while !self.stopped() {
            match socket.recv(&mut buffer) {
                Ok(read) => {
                    self.report.received_bytes += read as u64;
                    self.report.last_received = Some(self.clock.now());
                }
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
