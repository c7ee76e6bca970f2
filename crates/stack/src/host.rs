//! A host for asynchronous programs: tasks, timers and UDP sockets, as a state machine.
//!
//! It is driven like any endpoint: inputs are datagrams and timers with the current time, outputs datagrams and the
//! next timer. Programs see an ordinary asynchronous runtime, which is also the interface of the stack
//! ([`noq::Runtime`]).
//!
//! A socket is bound to one address of the host or to all of them. Received datagrams wait in a receive buffer until
//! the program reads them; datagrams that do not fit are dropped and counted. Sending never waits: the first queue is
//! that of the first link.

use crate::connection::Datagram;
use crate::entropy::RandomStreams;
use crate::executor::{Executor, Timer, locked};
use crate::journal::{PacketLog, PacketLogEntry};
use crate::settings::EndpointSettings;
use bytes::Bytes;
use fullpipe_control::clock::{from_std, to_std};
use fullpipe_units::{EcnCodepoint, Instant};
use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncTimer, AsyncUdpSocket, Runtime, UdpSender};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// First of the dynamic ports, which are used for port 0 (RFC 6335 section 6).
const FIRST_PORT: u16 = 49_152;

/// A datagram with its source and destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressedDatagram {
    /// Source address.
    pub source: SocketAddr,
    /// Destination address.
    pub destination: SocketAddr,
    /// Payload and ECN codepoint.
    pub datagram: Datagram,
}

/// Addresses of a host and the receive buffer size of its sockets.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Addresses of the host. The first of each IP version is the default source address.
    pub addresses: Vec<IpAddr>,
    /// Size of the receive buffer of each socket, in payload bytes.
    pub receive_buffer_bytes: u64,
}

/// Counters of a host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStatistics {
    /// Datagrams dropped because the socket's receive buffer was full.
    pub overflowed_datagrams: u64,
    /// Datagrams for a port without a socket.
    pub unexpected_datagrams: u64,
}

/// A bound socket.
#[derive(Debug, Default)]
struct Bound {
    /// The only peer from which the socket receives, if it is connected.
    peer: Option<SocketAddr>,
    received: VecDeque<(SocketAddr, Datagram)>,
    received_bytes: u64,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Sockets {
    settings: HostSettings,
    /// The sockets by index, which each socket stores, and the indices by address, for arrivals.
    bound: Vec<Option<Bound>>,
    places: BTreeMap<SocketAddr, usize>,
    next_port: u16,
    output: VecDeque<AddressedDatagram>,
    statistics: HostStatistics,
}

struct Shared {
    executor: Arc<Executor>,
    sockets: Mutex<Sockets>,
}

/// A simulated host. Dropping the host ends its programs.
pub struct Host {
    shared: Arc<Shared>,
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = locked(&self.shared.sockets).settings.addresses.clone();
        formatter.debug_struct("Host").field("addresses", &addresses).finish_non_exhaustive()
    }
}

impl Host {
    /// Creates a host without programs.
    pub fn new(settings: HostSettings) -> Host {
        let sockets = Sockets {
            settings,
            bound: Vec::new(),
            places: BTreeMap::new(),
            next_port: FIRST_PORT,
            output: VecDeque::new(),
            statistics: HostStatistics::default(),
        };
        Host { shared: Arc::new(Shared { executor: Arc::default(), sockets: Mutex::new(sockets) }) }
    }

    /// Returns the runtime for the host's programs.
    pub fn runtime(&self) -> VirtualRuntime {
        VirtualRuntime { shared: Arc::clone(&self.shared) }
    }

    /// Starts a program, which first runs at the next call of [`Host::handle_datagram`] or [`Host::handle_timeout`].
    pub fn spawn(&self, program: impl Future<Output = ()> + Send + 'static) {
        self.shared.executor.spawn(Box::pin(program));
    }

    /// Processes a datagram that has arrived at the host.
    pub fn handle_datagram(&mut self, now: Instant, arrived: AddressedDatagram) {
        let waker = locked(&self.shared.sockets).receive(arrived);
        if let Some(waker) = waker {
            waker.wake();
        }
        self.handle_timeout(now);
    }

    /// Processes the timer of [`Host::next_timeout`], and runs the programs that are ready, including new ones.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.shared.executor.set_now(now);
        self.shared.executor.fire();
        self.shared.executor.run();
    }

    /// Time at which [`Host::handle_timeout`] must be called; [`Instant::NEVER`] without a timer.
    pub fn next_timeout(&self) -> Instant {
        self.shared.executor.next_timer()
    }

    /// Returns the next datagram to send; `None` if there is none.
    pub fn poll_transmit(&mut self) -> Option<AddressedDatagram> {
        locked(&self.shared.sockets).output.pop_front()
    }

    /// Number of programs and their tasks that have not ended.
    pub fn tasks(&self) -> usize {
        self.shared.executor.tasks()
    }

    /// Counters since the creation of the host.
    pub fn statistics(&self) -> HostStatistics {
        locked(&self.shared.sockets).statistics
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.shared.executor.close();
    }
}

impl Sockets {
    /// Delivers a datagram to its socket and returns the waker to call.
    fn receive(&mut self, AddressedDatagram { source, destination, datagram }: AddressedDatagram) -> Option<Waker> {
        let everywhere = || {
            let any: IpAddr = match destination {
                SocketAddr::V4(_) => IpAddr::from([0; 4]),
                SocketAddr::V6(_) => IpAddr::from([0; 16]),
            };
            self.places.get(&SocketAddr::new(any, destination.port()))
        };
        let place = self.places.get(&destination).or_else(everywhere).copied();
        let heard = |bound: &&mut Bound| bound.peer.is_none_or(|peer| peer == source);
        let Some(bound) = place.and_then(|place| self.bound[place].as_mut()).filter(heard) else {
            self.statistics.unexpected_datagrams += 1;
            return None;
        };
        let bytes = datagram.payload.len() as u64;
        if bound.received_bytes.saturating_add(bytes) > self.settings.receive_buffer_bytes {
            self.statistics.overflowed_datagrams += 1;
            return None;
        }
        bound.received_bytes += bytes;
        bound.received.push_back((source, datagram));
        bound.waker.take()
    }

    /// Binds a socket and returns its address and index.
    fn bind(&mut self, local: SocketAddr, peer: Option<SocketAddr>) -> io::Result<(SocketAddr, usize)> {
        if !local.ip().is_unspecified() && !self.settings.addresses.contains(&local.ip()) {
            let reason = format!("{} is not an address of this host", local.ip());
            return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, reason));
        }
        let local = if local.port() == 0 { SocketAddr::new(local.ip(), self.free_port()?) } else { local };
        if self.is_taken(local) {
            let reason = format!("another socket uses port {}", local.port());
            return Err(io::Error::new(io::ErrorKind::AddrInUse, reason));
        }
        let place = self.bound.iter().position(Option::is_none).unwrap_or(self.bound.len());
        if place == self.bound.len() {
            self.bound.push(None);
        }
        self.bound[place] = Some(Bound { peer, ..Bound::default() });
        self.places.insert(local, place);
        Ok((local, place))
    }

    /// Whether the port is in use. A socket bound to all addresses uses its port on each of them.
    fn is_taken(&self, local: SocketAddr) -> bool {
        self.places.keys().any(|other| {
            let same = other.ip() == local.ip() || other.ip().is_unspecified() || local.ip().is_unspecified();
            other.port() == local.port() && other.is_ipv4() == local.is_ipv4() && same
        })
    }

    /// The next free port, in turn.
    fn free_port(&mut self) -> io::Result<u16> {
        for _ in FIRST_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = if port == u16::MAX { FIRST_PORT } else { port + 1 };
            if !self.places.keys().any(|other| other.port() == port) {
                return Ok(port);
            }
        }
        Err(io::Error::new(io::ErrorKind::AddrInUse, "all ephemeral ports are in use"))
    }

    /// The source address of a socket's datagrams.
    fn source(&self, local: SocketAddr, wanted: Option<IpAddr>) -> SocketAddr {
        let own = |ip: &&IpAddr| ip.is_ipv4() == local.is_ipv4();
        let ip = match wanted.filter(|ip| self.settings.addresses.contains(ip)) {
            Some(ip) => ip,
            None if local.ip().is_unspecified() => {
                self.settings.addresses.iter().find(own).copied().unwrap_or(local.ip())
            }
            None => local.ip(),
        };
        SocketAddr::new(ip, local.port())
    }
}

/// Runtime of a host's programs: clock, timers, tasks and sockets.
#[derive(Clone)]
pub struct VirtualRuntime {
    shared: Arc<Shared>,
}

impl fmt::Debug for VirtualRuntime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("VirtualRuntime")
    }
}

impl VirtualRuntime {
    /// Binds a UDP socket to `local`; port 0 selects a free port.
    ///
    /// # Errors
    /// Returns an error if the host does not have the address, or if the port is in use.
    pub fn bind(&self, local: SocketAddr) -> io::Result<Box<dyn AsyncUdpSocket>> {
        Ok(Box::new(self.socket(local, None)?))
    }

    fn socket(&self, local: SocketAddr, journal: Option<PacketLog>) -> io::Result<VirtualSocket> {
        Ok(VirtualSocket { binding: Arc::new(self.bound(local, None)?), journal })
    }

    /// Binds a port, for a single peer if `peer` is given.
    pub(crate) fn bound(&self, local: SocketAddr, peer: Option<SocketAddr>) -> io::Result<Binding> {
        let (local, place) = locked(&self.shared.sockets).bind(local, peer)?;
        Ok(Binding { shared: Arc::clone(&self.shared), local, place })
    }

    /// The current virtual time.
    pub fn instant(&self) -> Instant {
        self.shared.executor.now()
    }

    /// Creates a QUIC endpoint on a new virtual socket at `local`, as in [`VirtualRuntime::bind`]. The function takes
    /// no socket, so the endpoint cannot use a socket of the real machine. The endpoint can connect to other endpoints
    /// of this kind. It accepts connections if `serves` is true.
    ///
    /// # Errors
    /// Returns an error if the host does not have the address, or if the port is in use.
    pub fn endpoint(
        &self,
        settings: &EndpointSettings,
        entropy: &RandomStreams,
        local: SocketAddr,
        serves: bool,
    ) -> io::Result<noq::Endpoint> {
        let server = serves.then(|| settings.server(entropy));
        let socket = Box::new(self.socket(local, settings.journal.clone())?);
        let runtime = Arc::new(self.clone());
        let endpoint = noq::Endpoint::new_with_abstract_socket(settings.endpoint(entropy), server, socket, runtime)?;
        endpoint.set_default_client_config(settings.client(entropy));
        Ok(endpoint)
    }
}

impl Runtime for VirtualRuntime {
    fn new_timer(&self, at: std::time::Instant) -> Pin<Box<dyn AsyncTimer>> {
        Box::pin(VirtualTimer(self.shared.executor.timer(from_std(at))))
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.shared.executor.spawn(future);
    }

    fn wrap_udp_socket(&self, _socket: std::net::UdpSocket) -> io::Result<Box<dyn AsyncUdpSocket>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a simulated host cannot use sockets of the operating system"))
    }

    fn now(&self) -> std::time::Instant {
        to_std(self.shared.executor.now())
    }
}

struct VirtualTimer(Timer);

impl fmt::Debug for VirtualTimer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("VirtualTimer")
    }
}

impl AsyncTimer for VirtualTimer {
    fn reset(mut self: Pin<&mut Self>, at: std::time::Instant) {
        self.0.reset(from_std(at));
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.poll(context)
    }
}

/// Keeps a port in use as long as a sender exists.
pub(crate) struct Binding {
    shared: Arc<Shared>,
    local: SocketAddr,
    place: usize,
}

impl fmt::Debug for Binding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Binding").field(&self.local).finish()
    }
}

impl Binding {
    /// Passes received datagrams to `take` until it returns false or none are left. Waits if none have been received.
    pub(crate) fn poll_receive(
        &self,
        context: &mut Context<'_>,
        mut take: impl FnMut(SocketAddr, Datagram) -> bool,
    ) -> Poll<io::Result<()>> {
        let mut sockets = locked(&self.shared.sockets);
        let Some(bound) = &mut sockets.bound[self.place] else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        if bound.received.is_empty() {
            bound.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        while let Some((source, datagram)) = bound.received.pop_front() {
            bound.received_bytes -= datagram.payload.len() as u64;
            if !take(source, datagram) {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// The source address of datagrams: the requested one if the host has it.
    pub(crate) fn source(&self, wanted: Option<IpAddr>) -> SocketAddr {
        locked(&self.shared.sockets).source(self.local, wanted)
    }

    /// Sends a datagram from the requested address if the host has it.
    pub(crate) fn send(&self, wanted: Option<IpAddr>, destination: SocketAddr, datagram: Datagram) {
        let mut sockets = locked(&self.shared.sockets);
        let own = self.local.ip();
        let source = if !own.is_unspecified() && wanted.is_none_or(|wanted| wanted == own) {
            self.local
        } else {
            sockets.source(self.local, wanted)
        };
        sockets.output.push_back(AddressedDatagram { source, destination, datagram });
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        let bound = {
            let mut sockets = locked(&self.shared.sockets);
            sockets.places.remove(&self.local);
            sockets.bound[self.place].take()
        };
        drop(bound);
    }
}

struct VirtualSocket {
    binding: Arc<Binding>,
    /// Journal for an observer of the datagrams, if any.
    journal: Option<PacketLog>,
}

impl VirtualSocket {
    fn note(&self, entry: impl FnOnce() -> PacketLogEntry) {
        if let Some(journal) = &self.journal {
            journal.note(entry());
        }
    }
}

impl fmt::Debug for VirtualSocket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("VirtualSocket").field(&self.binding.local).finish()
    }
}

impl AsyncUdpSocket for VirtualSocket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        Box::pin(VirtualSocket { binding: Arc::clone(&self.binding), journal: self.journal.clone() })
    }

    fn poll_recv(
        &mut self,
        context: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let local = self.binding.local.ip();
        let most = bufs.len().min(meta.len());
        if most == 0 {
            return Poll::Ready(Ok(0));
        }
        let mut count = 0;
        let polled = self.binding.poll_receive(context, |source, Datagram { payload, codepoint }| {
            self.note(|| PacketLogEntry::DatagramReceived { bytes: payload.len(), codepoint });
            let (buffer, meta) = (&mut bufs[count], &mut meta[count]);
            let length = payload.len().min(buffer.len());
            buffer[..length].copy_from_slice(&payload[..length]);
            *meta = RecvMeta::default();
            meta.addr = source;
            meta.len = length;
            meta.stride = length;
            meta.ecn = noq::udp::EcnCodepoint::from_bits(codepoint.bits());
            meta.dst_ip = (!local.is_unspecified()).then_some(local);
            count += 1;
            count < most
        });
        polled.map_ok(|()| count)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.binding.local)
    }

    fn may_fragment(&self) -> bool {
        false
    }
}

impl UdpSender for VirtualSocket {
    fn poll_send(self: Pin<&mut Self>, transmit: &Transmit<'_>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let codepoint = transmit.ecn.map_or(EcnCodepoint::NotEct, |ecn| EcnCodepoint::from_bits(ecn as u8));
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        for piece in transmit.contents.chunks(segment) {
            let datagram = Datagram { payload: Bytes::copy_from_slice(piece), codepoint };
            self.note(|| PacketLogEntry::DatagramSent { bytes: piece.len(), codepoint });
            self.binding.send(transmit.src_ip, transmit.destination, datagram);
        }
        Poll::Ready(Ok(()))
    }
}
