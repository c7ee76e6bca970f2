//! What the proxy, the client and HTTP/3 need of the world: sockets, timers, tasks and names. One implementation stands
//! on the operating system (crate `sockets`), one on a host of the simulated network (crate `stack`); nothing else in
//! this crate knows which of them it runs on.
//!
//! Time and tasks are those of [`noq::Runtime`], so that the QUIC stack and what stands on it share one clock:
//! [`noq::Runtime::now`], `new_timer` and `spawn`. A UDP socket that talks to many peers is a [`noq::AsyncUdpSocket`]
//! (addresses, ECN codepoints, segmentation and receive offload). A socket connected to one peer is a
//! [`ConnectedSocket`]: it carries no ECN codepoint in either direction, as RFC 9298 section 6.2 asks of the side
//! towards the target, and it tells what ICMP said.

use bytes::Bytes;
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

/// A future in a box, as an object-safe trait has to return it.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The world as tasks see it. Handed around as `Arc<dyn Environment>`.
pub trait Environment: Send + Sync + Debug + 'static {
    /// Clock, timers and tasks, for the QUIC stack as for everything else.
    fn runtime(&self) -> Arc<dyn noq::Runtime>;

    /// A UDP socket bound to `local` (port 0: any free one) that sends to and receives from anybody.
    ///
    /// # Errors
    /// What the host says: address in use, not local, no permission, no descriptors left.
    fn bind(&self, local: SocketAddr) -> io::Result<Box<dyn noq::AsyncUdpSocket>>;

    /// A UDP socket of a fresh local port that exchanges datagrams with `peer` alone, sends them unfragmented (where
    /// the host can do so) and not ECN-capable.
    ///
    /// # Errors
    /// What the host says: no route, no descriptors left.
    fn connect(&self, peer: SocketAddr) -> io::Result<Arc<dyn ConnectedSocket>>;

    /// The addresses of a name, in the order of preference; never empty when it succeeds.
    ///
    /// The error's kind tells what to answer: [`io::ErrorKind::NotFound`] for a name that does not exist, `TimedOut`
    /// for a resolver that does not answer, any other for the rest.
    fn resolve(&self, name: &str) -> BoxFuture<io::Result<Vec<IpAddr>>>;

    /// The present instant of this environment's clock.
    fn now(&self) -> Instant {
        self.runtime().now()
    }

    /// Runs a task until it ends.
    fn spawn(&self, task: BoxFuture<()>) {
        self.runtime().spawn(task);
    }

    /// Completes at `deadline`, at once if that is past.
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let mut timer = self.runtime().new_timer(deadline);
        Box::pin(poll_fn(move |context| timer.as_mut().poll(context)))
    }
}

/// What became of payloads handed to [`ConnectedSocket::poll_send`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// So many of the payloads, from the first, are done with: sent, or found too large.
    pub consumed: usize,
    /// Those of them that the path or the host does not carry unfragmented.
    pub too_large: usize,
}

/// A UDP socket with one peer. At most one task waits for receiving and one for sending at any time.
pub trait ConnectedSocket: Send + Sync + Debug + 'static {
    /// Appends what has arrived to `into`, at least one payload (which may be empty), or waits.
    ///
    /// # Errors
    /// What the network reports of this peer, such as [`io::ErrorKind::ConnectionRefused`] after an ICMP port
    /// unreachable. The socket is of no more use then.
    fn poll_receive(&self, context: &mut Context<'_>, into: &mut Vec<Bytes>) -> Poll<io::Result<()>>;

    /// Sends payloads in order, at least one, or waits until the host takes one.
    ///
    /// # Errors
    /// As [`ConnectedSocket::poll_receive`].
    fn poll_send(&self, context: &mut Context<'_>, payloads: &[Bytes]) -> Poll<io::Result<Sent>>;

    /// The local address of this socket.
    ///
    /// # Errors
    /// What the host says.
    fn local_address(&self) -> io::Result<SocketAddr>;
}
