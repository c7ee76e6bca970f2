//! The datagrams of one QUIC connection; both sides use this code. Received datagrams are passed to their requests.
//! Datagrams to send are taken from the queues of the requests at the rate at which the connection sends.

use crate::configuration::Tunnel;
use crate::datagram::{self, DatagramContent};
use crate::environment::Environment;
use crate::metrics::Metrics;
use crate::outbox::SendQueues;
use crate::transport::code;
use bytes::Bytes;
use futures_util::future::{Either, select};
use noq::{SendDatagramError, VarInt};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of datagrams taken from or passed to the connection per call.
const BATCH: usize = 64;

/// Receiver of the datagrams of a request.
pub(crate) trait DatagramReceiver: Send + Sync {
    /// Receives UDP payloads and empties the vector.
    fn receive(&self, payloads: &mut Vec<Bytes>);

    /// Handles a protocol violation by the peer in this request.
    fn abort(&self);
}

/// Lengths of the datagrams that may still wait in the connection, in order.
///
/// When a batch does not fit into its buffer, the connection silently drops the datagrams that have waited longest. For
/// each waiting datagram, it counts the size of a `Bytes` in addition to the payload. The free space that it reports
/// excludes this size, so the number of waiting datagrams must be tracked here.
#[derive(Default)]
struct Handed {
    lengths: VecDeque<usize>,
    bytes: usize,
}

impl Handed {
    fn push(&mut self, length: usize) {
        self.bytes += length;
        self.lengths.push_back(length);
    }

    /// Whether a batch fits into a buffer of `buffer` bytes, of which the connection reports `space` bytes as free.
    fn has_room(&mut self, buffer: usize, space: usize, batch: &[Bytes]) -> bool {
        const EACH: usize = size_of::<Bytes>();
        let waiting = buffer.saturating_sub(space.saturating_add(EACH));
        while self.bytes > waiting
            && let Some(length) = self.lengths.pop_front()
        {
            self.bytes -= length;
        }
        let bytes: usize = batch.iter().map(Bytes::len).sum();
        space > 0 && waiting + bytes + (self.lengths.len() + batch.len()) * EACH <= buffer
    }
}

/// The datagrams of a connection.
pub(crate) struct Session {
    pub(crate) connection: noq::Connection,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) outbox: SendQueues,
    receivers: Mutex<BTreeMap<u64, Arc<dyn DatagramReceiver>>>,
    /// First quarter stream ID that the peer cannot use yet.
    id_limit: AtomicU64,
}

impl Session {
    pub(crate) fn new(
        connection: noq::Connection,
        environment: Arc<dyn Environment>,
        metrics: Arc<Metrics>,
        settings: Tunnel,
    ) -> Arc<Session> {
        Arc::new(Session {
            connection,
            environment,
            outbox: SendQueues::new(settings, Arc::clone(&metrics)),
            metrics,
            receivers: Mutex::default(),
            id_limit: AtomicU64::new(u64::MAX),
        })
    }

    /// Starts the two tasks, which end with the connection.
    pub(crate) fn start(self: &Arc<Session>) {
        let reader = Arc::clone(self);
        self.environment.spawn(Box::pin(async move { reader.read().await }));
        let writer = Arc::clone(self);
        self.environment.spawn(Box::pin(async move { writer.write().await }));
    }

    fn receivers(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<dyn DatagramReceiver>>> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers datagrams with this quarter stream ID to `receiver` from now on.
    pub(crate) fn register(&self, id: u64, receiver: Arc<dyn DatagramReceiver>) {
        self.receivers().insert(id, receiver);
    }

    /// Drops datagrams with this quarter stream ID from now on.
    pub(crate) fn forget(&self, id: u64) {
        self.receivers().remove(&id);
        self.outbox.remove(id);
    }

    /// Sets the first quarter stream ID whose stream cannot exist yet.
    pub(crate) fn set_id_limit(&self, limit: u64) {
        self.id_limit.store(limit, Ordering::Relaxed);
    }

    /// Largest UDP payload that a datagram of this request can currently carry; `None` if the peer does not accept
    /// datagrams.
    pub(crate) fn max_payload(&self, id: u64) -> Option<usize> {
        self.connection.max_datagram_size().map(|size| size.saturating_sub(datagram::overhead(id)))
    }

    /// Queues UDP payloads as datagrams of a request. Drops and counts payloads that do not fit a datagram.
    pub(crate) fn send(&self, id: u64, payloads: &mut Vec<Bytes>) {
        let limit = self.max_payload(id).unwrap_or(0);
        let now = self.environment.now();
        for payload in payloads.drain(..) {
            if payload.len() > limit {
                self.metrics.dropped_too_large_total.add(1);
            } else {
                self.outbox.push(id, now, datagram::encode_frame(id, &payload));
            }
        }
    }

    async fn write(&self) {
        let mut closed = pin!(self.connection.closed());
        let (mut batch, mut handed) = (Vec::with_capacity(BATCH), Handed::default());
        loop {
            let taken = poll_fn(|context| {
                let space = self.connection.datagram_send_buffer_space() as u64;
                self.outbox.poll_take(context, self.environment.now(), space, BATCH, &mut batch)
            });
            if let Either::Right(_) = select(taken, closed.as_mut()).await {
                return;
            }
            if self.hand_over(&mut batch, &mut handed).await.is_err() {
                return;
            }
        }
    }

    /// Passes datagrams to the connection and waits for free space. Drops and counts those that no longer fit a packet.
    async fn hand_over(&self, batch: &mut Vec<Bytes>, handed: &mut Handed) -> Result<(), SendDatagramError> {
        let space = self.connection.datagram_send_buffer_space();
        let has_room = handed.has_room(self.outbox.datagram_buffer(), space, batch);
        batch.iter().for_each(|frame| handed.push(frame.len()));
        if has_room {
            match self.connection.send_many_datagrams(batch) {
                Ok(_) => {
                    batch.clear();
                    return Ok(());
                }
                Err(SendDatagramError::TooLarge) => {}
                Err(error) => return Err(error),
            }
        }
        for frame in batch.drain(..) {
            match self.connection.send_datagram_wait(frame).await {
                Ok(()) => {}
                Err(SendDatagramError::TooLarge) => self.metrics.dropped_too_large_total.add(1),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn read(&self) {
        let mut frames = vec![Bytes::new(); BATCH];
        let mut payloads = Vec::with_capacity(BATCH);
        while let Ok(count) = self.connection.read_many_datagrams(&mut frames).await {
            let mut current = None;
            for frame in &mut frames[..count] {
                let Some((id, content)) = self.take_apart(std::mem::take(frame)) else { return };
                if current != Some(id) {
                    self.deliver(current, &mut payloads);
                    current = Some(id);
                }
                match content {
                    DatagramContent::Udp(payload) => payloads.push(payload),
                    DatagramContent::Unknown => self.metrics.datagrams_unknown_total.add(1),
                    DatagramContent::TooLong => self.abort(id),
                }
            }
            self.deliver(current, &mut payloads);
        }
    }

    /// Parses the request and the content of a frame; `None` if the connection had to be closed.
    fn take_apart(&self, frame: Bytes) -> Option<(u64, DatagramContent)> {
        let error = match datagram::split_quarter_stream_id(frame) {
            Ok((id, payload)) if id < self.id_limit.load(Ordering::Relaxed) => {
                return Some((id, datagram::parse_payload(payload)));
            }
            Ok(_) => code::ID_ERROR,
            Err(_) => code::DATAGRAM_ERROR,
        };
        self.metrics.errors_protocol_total.add(1);
        self.connection.close(VarInt::from_u32(error), b"not an HTTP datagram of a request");
        None
    }

    fn deliver(&self, id: Option<u64>, payloads: &mut Vec<Bytes>) {
        if payloads.is_empty() {
            return;
        }
        let receiver = id.and_then(|id| self.receivers().get(&id).map(Arc::clone));
        match receiver {
            Some(receiver) => receiver.receive(payloads),
            None => self.metrics.datagrams_unknown_total.add(payloads.len() as u64),
        }
        payloads.clear();
    }

    fn abort(&self, id: u64) {
        self.metrics.errors_protocol_total.add(1);
        if let Some(receiver) = self.receivers().get(&id) {
            receiver.abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer of 1000 bytes with 32 for each datagram holds seven of 100 bytes (924). After these, the connection
    /// reports 1000 - 700 - 32 bytes as free.
    #[test]
    fn batch_fits_only_beside_the_waiting_datagrams() {
        let frame = Bytes::from(vec![0; 100]);
        assert_eq!(size_of::<Bytes>(), 32);
        let mut handed = Handed::default();
        assert!(handed.has_room(1000, 968, &vec![frame.clone(); 7]));
        assert!(!handed.has_room(1000, 968, &vec![frame.clone(); 8]));
        (0..7).for_each(|_| handed.push(100));
        assert!(!handed.has_room(1000, 268, std::slice::from_ref(&frame)));
        // Two have been sent.
        assert!(handed.has_room(1000, 468, &vec![frame.clone(); 2]));
        assert_eq!((handed.lengths.len(), handed.bytes), (5, 500));
        assert!(!handed.has_room(1000, 468, &vec![frame; 3]));
        // A full buffer gives no information.
        assert!(!handed.has_room(1000, 0, &[Bytes::new()]));
    }
}
