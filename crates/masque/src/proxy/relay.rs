//! One tunnel of the proxy, which relays payloads between client and target. The client, the target's host, the idle
//! timeout or an error ends it (RFC 9298 section 3.1).

use super::accounts::{Allowance, Usage};
use super::client::Client;
use super::end::End;
use super::{Permit, ProxyState};
use crate::environment::{BoxFuture, ConnectedSocket, Environment};
use crate::halves::{PayloadSink, ReadHalf, ReadOutcome, WriteHalf, read_capsules, write_capsules};
use crate::log::Event;
use crate::metrics::Metrics;
use crate::outbox::SendQueues;
use crate::session::{DatagramReceiver, Session};
use crate::target::Target;
use crate::transport::{BidiStream, StreamEnd, code};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use futures_util::task::AtomicWaker;
use h3::server::RequestStream;
use http::Response;
use std::future::{Future, pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Resources of an accepted request.
pub(super) struct Relay {
    pub(super) socket: Arc<dyn ConnectedSocket>,
    pub(super) permit: Permit,
    pub(super) usage: Usage,
}

/// State shared by the tasks of a tunnel.
struct Tunnel {
    environment: Arc<dyn Environment>,
    metrics: Arc<Metrics>,
    /// The connection's datagrams; `None` without datagrams.
    session: Option<Arc<Session>>,
    socket: Arc<dyn ConnectedSocket>,
    usage: Usage,
    id: u64,
    begin: Instant,
    /// Time of the last payload, in milliseconds after `begin`.
    active: AtomicU64,
    /// Failure that was detected outside the tunnel's own tasks, in a datagram.
    failure: Mutex<Option<End>>,
    failed: AtomicWaker,
    half_closed: AtomicBool,
    /// Whether the client's newest payload arrived in a capsule. Payloads from the target are returned in the same
    /// form.
    in_capsules: AtomicBool,
    /// Waker of the task that waits until the socket accepts payloads from capsules.
    taking: AtomicWaker,
}

impl Tunnel {
    fn new(
        shared: &ProxyState,
        session: Option<Arc<Session>>,
        relay: Relay,
        id: u64,
        in_capsules: bool,
    ) -> (Tunnel, Permit) {
        let tunnel = Tunnel {
            environment: Arc::clone(&shared.environment),
            metrics: Arc::clone(&shared.metrics),
            session,
            socket: relay.socket,
            usage: relay.usage,
            id,
            begin: shared.environment.now(),
            active: AtomicU64::new(0),
            failure: Mutex::new(None),
            failed: AtomicWaker::new(),
            half_closed: AtomicBool::new(false),
            in_capsules: AtomicBool::new(in_capsules),
            taking: AtomicWaker::new(),
        };
        (tunnel, relay.permit)
    }

    fn note_activity(&self) {
        let elapsed = self.environment.now().saturating_duration_since(self.begin);
        self.active.store(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn fail(&self, end: End) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(end);
        self.failed.wake();
    }

    async fn failure(&self) -> End {
        poll_fn(|context| {
            self.failed.register(context.waker());
            match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
                Some(end) => Poll::Ready(end),
                None => Poll::Pending,
            }
        })
        .await
    }

    async fn idle(&self, limit: Duration) -> End {
        loop {
            let active = self.begin + Duration::from_millis(self.active.load(Ordering::Relaxed));
            let deadline = active + limit;
            if self.environment.now() >= deadline {
                return End::new(None, "idle");
            }
            self.environment.sleep_until(deadline).await;
        }
    }

    /// Drops payloads of a client that exceeds its limits. Ends the tunnel if the client has used its bytes.
    fn police(&self, payloads: &mut Vec<Bytes>) {
        match self.usage.allowance(self.environment.now()) {
            Allowance::Pass => return,
            Allowance::Wait(_) => {}
            Allowance::Used => {
                self.fail(End::new(code::EXCESSIVE_LOAD, "the client has used the bytes that it may transfer"));
            }
        }
        self.metrics.dropped_rate_total.add(payloads.len() as u64);
        payloads.clear();
    }

    /// Sends payloads to the target until the host accepts no more. Removes the sent payloads from the vector.
    fn poll_send(&self, context: &mut Context<'_>, payloads: &mut Vec<Bytes>) -> Poll<io::Result<()>> {
        self.police(payloads);
        while !payloads.is_empty() {
            let sent = match self.socket.poll_send(context, payloads) {
                Poll::Ready(sent) => sent?,
                Poll::Pending => return Poll::Pending,
            };
            let metrics = &self.metrics;
            let bytes: usize = payloads.drain(..sent.consumed).map(|payload| payload.len()).sum();
            metrics.payloads_to_target_total.add((sent.consumed - sent.too_large) as u64);
            metrics.bytes_to_target_total.add(bytes as u64);
            self.usage.charge(self.environment.now(), bytes as u64);
            metrics.dropped_too_large_total.add(sent.too_large as u64);
        }
        Poll::Ready(Ok(()))
    }
}

/// Payloads from capsules: the stream waits until the host can accept more.
impl PayloadSink for Tunnel {
    fn poll_send(&self, context: &mut Context<'_>, payloads: &mut Vec<Bytes>) -> Poll<io::Result<()>> {
        self.note_activity();
        self.in_capsules.store(true, Ordering::Relaxed);
        self.taking.register(context.waker());
        self.poll_send(context, payloads)
    }
}

/// Payloads from datagrams: the proxy drops those that the host does not accept immediately, because otherwise one
/// target could block all others.
impl DatagramReceiver for Tunnel {
    fn receive(&self, payloads: &mut Vec<Bytes>) {
        if self.half_closed.load(Ordering::Relaxed) {
            return;
        }
        self.note_activity();
        self.in_capsules.store(false, Ordering::Relaxed);
        match self.poll_send(&mut Context::from_waker(Waker::noop()), payloads) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => self.fail(End::socket(&error)),
            Poll::Pending => {
                self.metrics.dropped_busy_total.add(payloads.len() as u64);
                // The socket has a single waiter, which this poll has replaced.
                self.taking.wake();
            }
        }
    }

    fn abort(&self) {
        self.fail(End::new(code::DATAGRAM_ERROR, "payload exceeds the maximum UDP payload (65 527 bytes)"));
    }
}

/// Responds to the request and serves its tunnel until it ends.
pub(super) async fn serve(
    client: &Arc<Client>,
    target: &Target,
    relay: Relay,
    mut stream: RequestStream<BidiStream, Bytes>,
    (stopped, ending): (BoxFuture<()>, &StreamEnd),
) {
    let shared = &client.shared;
    let target = target.to_string();
    let Ok(response) = Response::builder().header("capsule-protocol", "?1").body(()) else { return };
    let id = stream.id().into_inner() / 4;
    let session = Some(Arc::clone(&client.session));
    let (tunnel, permit) = Tunnel::new(shared, session, relay, id, !client.takes_datagrams());
    let tunnel = Arc::new(tunnel);
    let egress = tunnel.socket.local_address().ok();
    if let Some(address) = egress {
        shared.egress.add(address);
    }
    // Datagrams may directly follow the request, before the response.
    client.session.register(id, Arc::clone(&tunnel) as Arc<dyn DatagramReceiver>);
    let end = match stream.send_response(response).await {
        Ok(()) => {
            shared.log.log_event(&Event::TunnelOpened { client: client.address, target: &target });
            let (send, receive) = stream.split();
            run(shared, &tunnel, (receive, send), stopped, ending).await
        }
        Err(error) => End::new(code::REQUEST_CANCELLED, error.to_string()),
    };
    client.session.forget(id);
    if let Some(address) = egress {
        shared.egress.remove(address);
    }
    shared.log.log_event(&Event::TunnelClosure { client: client.address, target: &target, reason: &end.reason });
    drop(permit);
}

/// Serves the tunnel of a stream without datagrams until it ends.
pub(super) async fn serve_capsules(
    shared: &ProxyState,
    relay: Relay,
    halves: (impl ReadHalf, impl WriteHalf),
    ending: &StreamEnd,
) -> End {
    let (tunnel, _permit) = Tunnel::new(shared, None, relay, 0, true);
    let tunnel = Arc::new(tunnel);
    let egress = tunnel.socket.local_address().ok();
    if let Some(address) = egress {
        shared.egress.add(address);
    }
    let end = run(shared, &tunnel, halves, Box::pin(pending()), ending).await;
    if let Some(address) = egress {
        shared.egress.remove(address);
    }
    end
}

async fn run(
    shared: &ProxyState,
    tunnel: &Arc<Tunnel>,
    (receive, send): (impl ReadHalf, impl WriteHalf),
    stopped: BoxFuture<()>,
    ending: &StreamEnd,
) -> End {
    type Part<'a> = Pin<Box<dyn Future<Output = End> + Send + 'a>>;
    let mut parts: FuturesUnordered<Part<'_>> = FuturesUnordered::new();
    parts.push(Box::pin(upwards(Arc::clone(tunnel), receive, ending.clone())));
    let settings = shared.settings().tunnel.clone();
    let coalesce = settings.coalesce;
    let outbox = Arc::new(SendQueues::new(settings, Arc::clone(&tunnel.metrics)));
    parts.push(Box::pin(down(Arc::clone(tunnel), Arc::clone(&outbox))));
    // If all payloads use datagrams, this task only keeps the stream open, as datagrams require.
    parts.push(Box::pin(down_to_stream(Arc::clone(tunnel), outbox, send, ending.clone(), coalesce)));
    let idle_timeout = shared.settings().idle_timeout;
    let watched = Arc::clone(tunnel);
    parts.push(Box::pin(async move { watched.idle(idle_timeout).await }));
    let watched = Arc::clone(tunnel);
    parts.push(Box::pin(async move { watched.failure().await }));
    parts.push(Box::pin(async move {
        stopped.await;
        End::new(None, "client sent STOP_SENDING")
    }));
    parts.next().await.unwrap_or_else(|| End::new(None, "no task")).store_code(ending)
}

/// Relays the client's capsules to the target.
async fn upwards(tunnel: Arc<Tunnel>, mut receive: impl ReadHalf, ending: StreamEnd) -> End {
    read(&tunnel, &mut receive).await.store_code(&ending)
}

async fn read(tunnel: &Tunnel, receive: &mut impl ReadHalf) -> End {
    let metrics = &tunnel.metrics;
    let end = match read_capsules(receive, tunnel, metrics).await {
        // The client has finished sending and may still receive. The half is kept, because its drop would send
        // STOP_SENDING.
        ReadOutcome::Finished => {
            tunnel.half_closed.store(true, Ordering::Relaxed);
            pending::<()>().await;
            End::new(None, "finished")
        }
        ReadOutcome::Truncated => End::new(code::MESSAGE_ERROR, "the stream ended within a capsule"),
        ReadOutcome::TooLong => {
            End::new(code::DATAGRAM_ERROR, "payload exceeds the maximum UDP payload (65 527 bytes)")
        }
        ReadOutcome::Trailers => {
            let reason = "the client sent a field section within the tunnel";
            match &tunnel.session {
                Some(session) => {
                    session.connection.close(code::FRAME_UNEXPECTED.into(), b"a field section within a tunnel");
                    End::new(None, reason)
                }
                None => End::new(code::MESSAGE_ERROR, reason),
            }
        }
        ReadOutcome::Stream(error) => return End::new(code::REQUEST_CANCELLED, error.to_string()),
        ReadOutcome::Sink(error) => return End::socket(&error),
    };
    metrics.errors_protocol_total.add(1);
    end
}

impl Tunnel {
    async fn receive(&self, payloads: &mut Vec<Bytes>) -> io::Result<()> {
        poll_fn(|context| self.socket.poll_receive(context, payloads)).await?;
        self.note_activity();
        self.police(payloads);
        let bytes: usize = payloads.iter().map(Bytes::len).sum();
        self.metrics.payloads_from_target_total.add(payloads.len() as u64);
        self.metrics.bytes_from_target_total.add(bytes as u64);
        self.usage.charge(self.environment.now(), bytes as u64);
        Ok(())
    }
}

/// Relays the target's payloads in the form of the client's newest one: as datagrams, or through the queue of the
/// stream.
async fn down(tunnel: Arc<Tunnel>, outbox: Arc<SendQueues>) -> End {
    let mut payloads = Vec::new();
    loop {
        if let Err(error) = tunnel.receive(&mut payloads).await {
            return End::socket(&error);
        }
        if let Some(session) = &tunnel.session
            && !tunnel.in_capsules.load(Ordering::Relaxed)
        {
            // Payloads that do not fit are dropped and never moved to capsules (RFC 9298 section 6.1).
            let limit = session.max_payload(tunnel.id).unwrap_or(0);
            if let Some(payload) = payloads.iter().find(|payload| payload.len() > limit) {
                tunnel.socket.report_too_large(payload, limit);
            }
            session.send(tunnel.id, &mut payloads);
            continue;
        }
        let now = tunnel.environment.now();
        // Copies the payloads, because a waiting payload would keep in memory all others that were received with it.
        payloads.drain(..).for_each(|payload| outbox.push(0, now, Bytes::copy_from_slice(&payload)));
    }
}

/// Writes the queued payloads as capsules.
async fn down_to_stream(
    tunnel: Arc<Tunnel>,
    outbox: Arc<SendQueues>,
    mut send: impl WriteHalf,
    ending: StreamEnd,
    coalesce: bool,
) -> End {
    let error = write_capsules(&mut send, &outbox, coalesce, &*tunnel.environment).await;
    End::new(code::REQUEST_CANCELLED, error.to_string()).store_code(&ending)
}
