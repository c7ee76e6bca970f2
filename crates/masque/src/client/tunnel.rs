//! The client side of a tunnel: sends and receives UDP payloads.

use super::{Client, reason};
use crate::configuration::{self, Mode};
use crate::datagram::MAX_UDP_PAYLOAD;
use crate::environment::BoxFuture;
use crate::halves::{PayloadSink, ReadHalf, ReadOutcome, WriteHalf, read_capsules, write_capsules};
use crate::outbox::SendQueues;
use crate::queue::cost;
use crate::session::{DatagramReceiver, Session};
use crate::transport::{BidiStream, StreamEnd, StreamHandle, code};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use futures_util::task::AtomicWaker;
use h3::client::RequestStream;
use h3::error::StreamError;
use std::collections::VecDeque;
use std::fmt;
use std::future::{pending, poll_fn};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

/// Number of waiting bytes beyond which payloads are copied, because the reader is slow. A payload that is not copied
/// is a slice of the packet that contained it, and keeps the whole packet in memory.
const COPIED_BEYOND: u64 = 64 << 10;

/// Error: the tunnel has ended, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelClosure(pub String);

impl fmt::Display for TunnelClosure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the tunnel has ended: {}", self.0)
    }
}

impl std::error::Error for TunnelClosure {}

/// An open tunnel. It closes when this value is dropped.
pub struct Tunnel {
    shared: Arc<Shared>,
    /// Keeps the connection open.
    _client: Client,
}

struct Shared {
    session: Arc<Session>,
    id: u64,
    /// The queue of stream mode.
    outbox: Option<SendQueues>,
    coalesce: bool,
    receive_limit: u64,
    incoming: Mutex<Incoming>,
    arrived: AtomicWaker,
    closing: AtomicWaker,
}

#[derive(Default)]
struct Incoming {
    payloads: VecDeque<Bytes>,
    bytes: u64,
    ended: Option<TunnelClosure>,
    closing: bool,
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Tunnel({})", self.shared.id)
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.shared.incoming().closing = true;
        self.shared.closing.wake();
    }
}

impl Tunnel {
    pub(super) fn start(
        session: Arc<Session>,
        client: Client,
        (settings, mode): (&configuration::Client, Mode),
        stream: RequestStream<BidiStream, Bytes>,
        handle: StreamHandle,
    ) -> Tunnel {
        let outbox = match mode {
            Mode::Datagram => None,
            Mode::Stream => Some(SendQueues::new(settings.tunnel.clone(), Arc::clone(&session.metrics))),
        };
        let shared = Arc::new(Shared {
            id: stream.id().into_inner() / 4,
            outbox,
            coalesce: settings.tunnel.coalesce,
            receive_limit: settings.receive_queue,
            incoming: Mutex::default(),
            arrived: AtomicWaker::new(),
            closing: AtomicWaker::new(),
            session,
        });
        shared.session.register(shared.id, Arc::clone(&shared) as Arc<dyn DatagramReceiver>);
        shared.session.environment.spawn(Box::pin(run(Arc::clone(&shared), stream, handle)));
        Tunnel { shared, _client: client }
    }

    /// Sends payloads to the target and empties the vector. Payloads that are too large, or for which the queue is
    /// full, are dropped and counted.
    pub fn send(&self, payloads: &mut Vec<Bytes>) {
        let (session, id) = (&self.shared.session, self.shared.id);
        session.metrics.payloads_to_target_total.add(payloads.len() as u64);
        session.metrics.bytes_to_target_total.add(payloads.iter().map(|payload| payload.len() as u64).sum());
        match &self.shared.outbox {
            None => session.send(id, payloads),
            Some(outbox) => {
                let now = session.environment.now();
                for payload in payloads.drain(..) {
                    if payload.len() > MAX_UDP_PAYLOAD {
                        session.metrics.dropped_too_large_total.add(1);
                    } else {
                        outbox.push(0, now, payload);
                    }
                }
            }
        }
    }

    /// Appends between one and `count` payloads from the target to `into`, or waits for one.
    ///
    /// # Errors
    /// If the tunnel has ended and all payloads were read.
    pub fn poll_receive(
        &self,
        context: &mut Context<'_>,
        count: usize,
        into: &mut Vec<Bytes>,
    ) -> Poll<Result<(), TunnelClosure>> {
        self.shared.arrived.register(context.waker());
        let mut incoming = self.shared.incoming();
        if incoming.payloads.is_empty() {
            return incoming.ended.clone().map_or(Poll::Pending, |ended| Poll::Ready(Err(ended)));
        }
        let count = count.min(incoming.payloads.len());
        let before = into.len();
        into.extend(incoming.payloads.drain(..count));
        incoming.bytes -= into[before..].iter().map(|payload| cost(payload)).sum::<u64>();
        Poll::Ready(Ok(()))
    }

    /// Waits for payloads from the target and appends them to `into`, as [`Tunnel::poll_receive`] does.
    ///
    /// # Errors
    /// If the tunnel has ended and all payloads were read.
    pub async fn receive(&self, into: &mut Vec<Bytes>) -> Result<(), TunnelClosure> {
        poll_fn(|context| self.poll_receive(context, usize::MAX, into)).await
    }

    /// Returns the largest UDP payload in bytes that the tunnel currently carries. It may change with the path.
    #[must_use]
    pub fn max_payload(&self) -> usize {
        match self.shared.outbox {
            None => self.shared.session.max_payload(self.shared.id).unwrap_or(0),
            Some(_) => MAX_UDP_PAYLOAD,
        }
    }
}

impl Shared {
    fn incoming(&self) -> MutexGuard<'_, Incoming> {
        self.incoming.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, payloads: &mut Vec<Bytes>) {
        let metrics = &self.session.metrics;
        metrics.payloads_from_target_total.add(payloads.len() as u64);
        let mut incoming = self.incoming();
        for payload in payloads.drain(..) {
            metrics.bytes_from_target_total.add(payload.len() as u64);
            let cost = cost(&payload);
            if incoming.bytes + cost > self.receive_limit {
                metrics.dropped_queue_total.add(1);
                continue;
            }
            let is_slow = incoming.bytes > COPIED_BEYOND;
            incoming.bytes += cost;
            incoming.payloads.push_back(if is_slow { Bytes::copy_from_slice(&payload) } else { payload });
        }
        drop(incoming);
        self.arrived.wake();
    }

    fn end(&self, reason: String) {
        self.incoming().ended.get_or_insert(TunnelClosure(reason));
        self.arrived.wake();
        self.closing.wake();
    }
}

impl DatagramReceiver for Shared {
    fn receive(&self, payloads: &mut Vec<Bytes>) {
        self.push(payloads);
    }

    fn abort(&self) {
        self.end("the proxy sent a payload that exceeds the maximum UDP payload (65 527 bytes)".into());
    }
}

impl PayloadSink for Shared {
    fn poll_send(&self, _: &mut Context<'_>, payloads: &mut Vec<Bytes>) -> Poll<io::Result<()>> {
        self.push(payloads);
        Poll::Ready(Ok(()))
    }
}

/// Serves the request stream until the tunnel ends.
async fn run(shared: Arc<Shared>, stream: RequestStream<BidiStream, Bytes>, handle: StreamHandle) {
    let (send, receive) = stream.split();
    let mut parts: FuturesUnordered<BoxFuture<(Option<u32>, String)>> = FuturesUnordered::new();
    parts.push(Box::pin(read(Arc::clone(&shared), receive, handle.ending.clone())));
    parts.push(Box::pin(write(Arc::clone(&shared), send, handle.ending.clone())));
    parts.push(Box::pin(closing(Arc::clone(&shared))));
    let connection = shared.session.connection.clone();
    parts.push(Box::pin(async move {
        let end = match handle.stopped.await {
            Ok(Some(code)) => reason::of_code(code.into_inner().into()),
            Ok(None) => "the proxy closed the stream".into(),
            Err(error) => of_connection(&connection).unwrap_or_else(|| error.to_string()),
        };
        (None, end)
    }));
    if let Some(end) = parts.next().await {
        shared.end(told(end, &handle.ending).1);
    }
    shared.session.forget(shared.id);
}

/// Describes why a connection has ended, unless this host closed it.
fn of_connection(connection: &noq::Connection) -> Option<String> {
    reason::of_peer_closing(connection).map(|closed| reason::of_closed_connection(&closed))
}

/// Reads the proxy's capsules. In datagram mode they are unusual but permitted (RFC 9298 section 5).
async fn read(
    shared: Arc<Shared>,
    mut receive: impl ReadHalf<Error = StreamError>,
    ending: StreamEnd,
) -> (Option<u32>, String) {
    let end = match read_capsules(&mut receive, &*shared, &shared.session.metrics).await {
        ReadOutcome::Finished => (None, "the proxy closed the stream".into()),
        ReadOutcome::Truncated => (Some(code::MESSAGE_ERROR), "the stream ended within a capsule".into()),
        ReadOutcome::TooLong => {
            (Some(code::DATAGRAM_ERROR), "payload exceeds the maximum UDP payload (65 527 bytes)".into())
        }
        ReadOutcome::Trailers => {
            shared.session.connection.close(code::FRAME_UNEXPECTED.into(), b"a field section within a tunnel");
            (None, "the proxy sent a field section within the tunnel".into())
        }
        ReadOutcome::Stream(error) => (Some(code::REQUEST_CANCELLED), failed(&shared, &error)),
        ReadOutcome::Sink(error) => (Some(code::REQUEST_CANCELLED), error.to_string()),
    };
    told(end, &ending)
}

async fn write(
    shared: Arc<Shared>,
    mut send: impl WriteHalf<Error = StreamError>,
    ending: StreamEnd,
) -> (Option<u32>, String) {
    let Some(outbox) = &shared.outbox else {
        // The stream must stay open for datagrams.
        pending::<()>().await;
        return (None, String::new());
    };
    let error = write_capsules(&mut send, outbox, shared.coalesce, &*shared.session.environment).await;
    told((Some(code::REQUEST_CANCELLED), failed(&shared, &error)), &ending)
}

/// Describes the cause of a stream's failure: the end of the connection, or the error of the stream.
fn failed(shared: &Shared, error: &StreamError) -> String {
    of_connection(&shared.session.connection).unwrap_or_else(|| reason::of_stream(error))
}

/// Stores the error code for both halves of the stream, before either half is dropped.
fn told(end: (Option<u32>, String), ending: &StreamEnd) -> (Option<u32>, String) {
    if let Some(code) = end.0 {
        ending.abort(code);
    }
    end
}

/// Completes when the tunnel is dropped, or when it has failed outside its task.
async fn closing(shared: Arc<Shared>) -> (Option<u32>, String) {
    poll_fn(|context| {
        shared.closing.register(context.waker());
        let incoming = shared.incoming();
        match &incoming.ended {
            Some(ended) => Poll::Ready((Some(code::DATAGRAM_ERROR), ended.0.clone())),
            None if incoming.closing => Poll::Ready((None, "closed".into())),
            None => Poll::Pending,
        }
    })
    .await
}
