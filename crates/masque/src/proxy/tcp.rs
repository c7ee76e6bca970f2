//! TCP tunnels of the proxy: CONNECT (RFC 9114 section 4.4). The bytes of the stream's DATA frames are those of a TCP
//! connection to the target.
//!
//! The two directions end independently: a FIN of one side becomes a FIN of the other. An error of one side, including a reset,
//! becomes a reset of the other. A tunnel holds one chunk of at most 64 KiB for each direction, and reads the next one when
//! the other side has accepted it. TCP and HTTP flow control thus reach from one end to the other.

use super::ProxyState;
use super::accounts::{Allowance, Usage};
use super::end::End;
use crate::environment::{BoxFuture, ConnectedStream};
use crate::halves::{ReadHalf, WriteHalf};
use crate::transport::{StreamEnd, code};
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Time after which the next address is tried, while earlier attempts continue (RFC 8305 section 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Time limit for the connection to a target.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Orders addresses so that the families alternate, beginning with that of the first address (RFC 8305 section 4).
fn interleave(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else { return Vec::new() };
    let (same, other): (Vec<_>, Vec<_>) =
        addresses.iter().copied().partition(|address: &SocketAddr| address.is_ipv6() == first.is_ipv6());
    let (mut same, mut other) = (same.into_iter(), other.into_iter());
    let mut ordered = Vec::with_capacity(addresses.len());
    while ordered.len() < addresses.len() {
        ordered.extend(same.next());
        ordered.extend(other.next());
    }
    ordered
}

/// Connects to the first of these addresses that accepts a connection.
///
/// # Errors
/// Returns the last error if no address accepts one, or `TimedOut`.
pub(super) async fn connect(shared: &ProxyState, addresses: &[SocketAddr]) -> io::Result<Arc<dyn ConnectedStream>> {
    let environment = &shared.environment;
    let mut waiting = interleave(addresses).into_iter();
    let mut attempts: FuturesUnordered<BoxFuture<io::Result<Arc<dyn ConnectedStream>>>> = FuturesUnordered::new();
    let mut deadline = environment.sleep_until(environment.now() + CONNECT_TIMEOUT);
    let mut delay: BoxFuture<()> = Box::pin(std::future::ready(()));
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    poll_fn(|context| {
        if deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        loop {
            match attempts.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(stream))) => return Poll::Ready(Ok(stream)),
                Poll::Ready(Some(Err(error))) => {
                    failure = error;
                    // The next address need not wait after a failure.
                    delay = Box::pin(std::future::ready(()));
                    continue;
                }
                Poll::Ready(None) | Poll::Pending => {}
            }
            if waiting.len() == 0 {
                if attempts.is_empty() {
                    return Poll::Ready(Err(std::mem::replace(&mut failure, io::ErrorKind::Other.into())));
                }
                return Poll::Pending;
            }
            if delay.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            if let Some(address) = waiting.next() {
                attempts.push(environment.connect_stream(address));
                delay = environment.sleep_until(environment.now() + ATTEMPT_DELAY);
            }
        }
    })
    .await
}

/// An open TCP tunnel.
struct Tunnel<'a> {
    shared: &'a ProxyState,
    socket: &'a dyn ConnectedStream,
    usage: &'a Usage,
    begin: Instant,
    /// Time of the last data, in milliseconds after `begin`.
    active: AtomicU64,
}

/// Relays data until both directions or the tunnel have ended. `stopped` completes when the client refuses further data.
pub(super) async fn relay(
    shared: &ProxyState,
    socket: &dyn ConnectedStream,
    usage: &Usage,
    (read, write): (impl ReadHalf, impl WriteHalf),
    stopped: impl Future<Output = ()> + Send,
    ending: &StreamEnd,
) -> End {
    let egress = socket.local_address().ok();
    if let Some(address) = egress {
        shared.tcp_egress.add(address);
    }
    let tunnel = Tunnel { shared, socket, usage, begin: shared.environment.now(), active: AtomicU64::new(0) };
    let tunnel = &tunnel;
    let mut parts: FuturesUnordered<std::pin::Pin<Box<dyn Future<Output = Option<End>> + Send + '_>>> =
        FuturesUnordered::new();
    parts.push(Box::pin(tunnel.upwards(read, ending)));
    parts.push(Box::pin(tunnel.down(write, ending)));
    parts.push(Box::pin(async move { Some(tunnel.idle(shared.settings().idle_timeout).await) }));
    parts.push(Box::pin(async move {
        stopped.await;
        Some(End::new(code::REQUEST_CANCELLED, "client sent STOP_SENDING"))
    }));
    // A direction that ends regularly leaves the other one.
    let mut open = 2;
    let end = loop {
        match parts.next().await {
            Some(None) if open == 1 => break End::new(None, "both sides have finished"),
            Some(None) => open -= 1,
            Some(Some(end)) => break end,
            None => break End::new(None, "no task"),
        }
    };
    if let Some(address) = egress {
        shared.tcp_egress.remove(address);
    }
    if end.is_error() {
        socket.reset();
    }
    end.store_code(ending)
}

impl Tunnel<'_> {
    fn note_activity(&self) {
        let elapsed = self.shared.environment.now().saturating_duration_since(self.begin);
        self.active.store(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    async fn idle(&self, limit: Duration) -> End {
        loop {
            let deadline = self.begin + Duration::from_millis(self.active.load(Ordering::Relaxed)) + limit;
            if self.shared.environment.now() >= deadline {
                return End::new(code::CONNECT_ERROR, "idle");
            }
            self.shared.environment.sleep_until(deadline).await;
        }
    }

    /// Waits until the client may transfer more, and counts these bytes.
    async fn charge(&self, bytes: usize) -> Result<(), End> {
        let environment = &self.shared.environment;
        loop {
            match self.usage.allowance(environment.now()) {
                Allowance::Pass => break,
                Allowance::Wait(until) => environment.sleep_until(until).await,
                Allowance::Used => {
                    return Err(End::new(code::EXCESSIVE_LOAD, "the client has used the bytes that it may transfer"));
                }
            }
        }
        self.note_activity();
        self.usage.charge(environment.now(), bytes as u64);
        Ok(())
    }

    /// Relays the client's data to the target. Returns `None` after a regular end.
    async fn upwards(&self, mut read: impl ReadHalf, ending: &StreamEnd) -> Option<End> {
        loop {
            match poll_fn(|context| read.poll_read(context)).await {
                Ok(Some(piece)) => {
                    if let Err(end) = self.charge(piece.len()).await {
                        return Some(end.store_code(ending));
                    }
                    let length = piece.len() as u64;
                    if let Err(error) = self.write(piece).await {
                        return Some(End::socket(&error).store_code(ending));
                    }
                    self.shared.metrics.tcp_bytes_to_target_total.add(length);
                }
                Ok(None) if poll_fn(|context| Poll::Ready(read.has_trailers(context))).await => {
                    self.shared.metrics.errors_protocol_total.add(1);
                    let reason = "the client sent a field section within the tunnel";
                    return Some(End::new(code::FRAME_UNEXPECTED, reason).store_code(ending));
                }
                Ok(None) => break,
                Err(error) => {
                    let reason = format!("the client reset the stream: {error}");
                    return Some(End::new(code::REQUEST_CANCELLED, reason).store_code(ending));
                }
            }
        }
        self.note_activity();
        match self.socket.finish() {
            Ok(()) => None,
            Err(error) => Some(End::socket(&error).store_code(ending)),
        }
    }

    async fn write(&self, mut piece: Bytes) -> io::Result<()> {
        while piece.has_remaining() {
            let written = poll_fn(|context| self.socket.poll_write(context, &piece)).await?;
            piece.advance(written);
        }
        Ok(())
    }

    /// Relays the target's data to the client. Returns `None` after a regular end.
    async fn down(&self, mut write: impl WriteHalf, ending: &StreamEnd) -> Option<End> {
        loop {
            let read = poll_fn(|context| match write.poll_stopped(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => self.socket.poll_read(context).map(Some),
            });
            let piece = match read.await {
                Some(Ok(piece)) => piece,
                Some(Err(error)) => return Some(End::socket(&error).store_code(ending)),
                None => {
                    return Some(End::new(code::REQUEST_CANCELLED, "the client reset the stream").store_code(ending));
                }
            };
            if piece.is_empty() {
                break;
            }
            if let Err(end) = self.charge(piece.len()).await {
                return Some(end.store_code(ending));
            }
            let length = piece.len() as u64;
            if let Err(error) = write.write(piece).await {
                return Some(End::new(code::REQUEST_CANCELLED, error.to_string()).store_code(ending));
            }
            self.shared.metrics.tcp_bytes_from_target_total.add(length);
        }
        self.note_activity();
        if let Err(error) = write.finish().await {
            return Some(End::new(code::REQUEST_CANCELLED, error.to_string()).store_code(ending));
        }
        // A later error of the other direction must not reset this one: its last data may not have arrived.
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn families_of_addresses_alternate() {
        let addresses = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| SocketAddr::new(text.parse::<IpAddr>().unwrap(), 443)).collect()
        };
        for (given, expected) in [
            (&["::1", "::2", "1.1.1.1", "1.1.1.2"][..], &["::1", "1.1.1.1", "::2", "1.1.1.2"][..]),
            (&["1.1.1.1", "1.1.1.2", "1.1.1.3", "::1"], &["1.1.1.1", "::1", "1.1.1.2", "1.1.1.3"]),
            (&["::1"], &["::1"]),
            (&[], &[]),
        ] {
            assert_eq!(interleave(&addresses(given)), addresses(expected));
        }
    }
}
