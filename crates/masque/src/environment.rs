//! Interfaces through which the proxy, the client and HTTP/3 use sockets, timers, tasks and name resolution. One
//! implementation uses the operating system (crate `sockets`), the other a host of the simulated network (crate
//! `stack`). No other part of this crate depends on the implementation.
//!
//! Time and tasks are those of [`noq::Runtime`], so that the QUIC stack and the code above it share one clock:
//! [`noq::Runtime::now`], `new_timer` and `spawn`. A UDP socket with many peers is a [`noq::AsyncUdpSocket`]
//! (addresses, ECN codepoints, segmentation and receive offload). A socket connected to one peer is a
//! [`ConnectedSocket`]. It reports ICMP errors. It neither sets nor reports ECN codepoints, as RFC 9298 section 6.2
//! requires on the target side.

use bytes::Bytes;
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// A boxed future, which object-safe traits require as a return type.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The runtime environment of tasks, shared as `Arc<dyn Environment>`.
pub trait Environment: Send + Sync + Debug + 'static {
    /// Clock, timers and tasks, for the QUIC stack and all other code.
    fn runtime(&self) -> Arc<dyn noq::Runtime>;

    /// Binds a UDP socket to `local` (port 0 selects a free port). The socket sends to and receives from any address.
    ///
    /// # Errors
    /// Returns the host's error: address in use, address not local, permission denied, or no file descriptors left.
    fn bind(&self, local: SocketAddr) -> io::Result<Box<dyn noq::AsyncUdpSocket>>;

    /// Creates a UDP socket with a new local port that exchanges datagrams with `peer` only. It sends datagrams as not
    /// ECN-capable and, where the host supports it, unfragmented.
    ///
    /// # Errors
    /// Returns the host's error: no route, or no file descriptors left.
    fn connect(&self, peer: SocketAddr) -> io::Result<Arc<dyn ConnectedSocket>>;

    /// Opens a TCP connection to `peer`.
    ///
    /// # Errors
    /// Returns the host's error: connection refused, no route, or no file descriptors left. It is
    /// [`io::ErrorKind::Unsupported`] in an environment without TCP.
    fn connect_stream(&self, peer: SocketAddr) -> BoxFuture<io::Result<Arc<dyn ConnectedStream>>> {
        let _ = peer;
        Box::pin(async { Err(io::ErrorKind::Unsupported.into()) })
    }

    /// Resolves a name to addresses in order of preference; the list is never empty.
    ///
    /// # Errors
    /// The kind of the error determines the response to the client. It is [`io::ErrorKind::NotFound`] if the name does
    /// not exist, and `TimedOut` if the resolver does not respond. Other failures have any other kind.
    fn resolve(&self, name: &str) -> BoxFuture<io::Result<Vec<IpAddr>>>;

    /// Whether this is an address of this host.
    fn is_local(&self, address: IpAddr) -> bool {
        let _ = address;
        false
    }

    /// The current instant of this environment's clock.
    fn now(&self) -> Instant {
        self.runtime().now()
    }

    /// Starts a task that runs in the background until it is complete.
    fn spawn(&self, task: BoxFuture<()>) {
        self.runtime().spawn(task);
    }

    /// Completes at `deadline`, or immediately if this time has passed.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let mut timer = self.runtime().new_timer(deadline);
        Box::pin(poll_fn(move |context| timer.as_mut().poll(context)))
    }
}

/// Result of [`ConnectedSocket::poll_send`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendResult {
    /// Number of payloads, counted from the first, that were sent or were too large.
    pub consumed: usize,
    /// Number of these payloads that the path or the host cannot carry unfragmented.
    pub too_large: usize,
}

/// A UDP socket with one peer. At any time, at most one task waits to receive and one to send.
pub trait ConnectedSocket: Send + Sync + Debug + 'static {
    /// Appends all received payloads to `into`, at least one (which may be empty), or waits.
    ///
    /// # Errors
    /// Returns the network's error for this peer, such as [`io::ErrorKind::ConnectionRefused`] after an ICMP Port
    /// Unreachable. The socket is unusable afterwards.
    fn poll_receive(&self, context: &mut Context<'_>, into: &mut Vec<Bytes>) -> Poll<io::Result<()>>;

    /// Sends payloads in order, at least one, or waits until the host accepts one.
    ///
    /// # Errors
    /// As for [`ConnectedSocket::poll_receive`].
    fn poll_send(&self, context: &mut Context<'_>, payloads: &[Bytes]) -> Poll<io::Result<SendResult>>;

    /// Informs the peer that one of its payloads does not fit and was dropped, and that payloads of `limit` bytes fit
    /// (ICMP Packet Too Big). Does nothing where the host does not permit it.
    fn report_too_large(&self, payload: &[u8], limit: usize) {
        let _ = (payload, limit);
    }

    /// The local address of this socket.
    ///
    /// # Errors
    /// Returns the host's error.
    fn local_address(&self) -> io::Result<SocketAddr>;
}

/// A TCP connection. At any time, at most one task waits to read and one to write.
pub trait ConnectedStream: Send + Sync + Debug + 'static {
    /// Returns the next data, which is empty after the peer's FIN, or waits.
    ///
    /// # Errors
    /// Returns the network's error, such as [`io::ErrorKind::ConnectionReset`].
    fn poll_read(&self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>>;

    /// Writes data from its beginning, at least one byte, or waits. Returns the number of bytes written.
    ///
    /// # Errors
    /// As for [`ConnectedStream::poll_read`].
    fn poll_write(&self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>>;

    /// Sends FIN after the data written so far.
    ///
    /// # Errors
    /// If the connection no longer exists.
    fn finish(&self) -> io::Result<()>;

    /// Causes the connection to be reset, not closed, when this value is dropped.
    fn reset(&self);

    /// The local address of this connection.
    ///
    /// # Errors
    /// Returns the host's error.
    fn local_address(&self) -> io::Result<SocketAddr>;
}
