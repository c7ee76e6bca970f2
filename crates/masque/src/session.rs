//! The datagrams of one QUIC connection, the same on both sides: those that arrive are handed to the request they
//! name, those that leave are taken from the requests' queues no faster than the connection sends them.

use crate::configuration::Tunnel;
use crate::datagram::{self, Content};
use crate::environment::Environment;
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::transport::code;
use bytes::Bytes;
use futures_util::future::{Either, select};
use noq::{SendDatagramError, VarInt};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Datagrams taken from the connection, or handed to it, at a time.
const BATCH: usize = 64;

/// Who gets what arrives for a request.
pub(crate) trait Receiver: Send + Sync {
    /// UDP payloads, to be taken all.
    fn receive(&self, payloads: &mut Vec<Bytes>);

    /// The peer broke a rule of this request.
    fn abort(&self);
}

/// Lengths of the datagrams that may still wait in the connection, in order.
///
/// The connection drops the datagrams that have waited longest, silently, when a batch does not fit its buffer. For each that
/// waits it counts the size of a `Bytes` besides the payload, but tells of the space that is left without these: how many
/// wait has to be known.
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

    /// Whether a batch fits the buffer of this size, of which the connection says that so much is left.
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

/// A connection's datagrams.
pub(crate) struct Session {
    pub(crate) connection: noq::Connection,
    pub(crate) environment: Arc<dyn Environment>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) outbox: Outbox,
    receivers: Mutex<BTreeMap<u64, Arc<dyn Receiver>>>,
    /// Quarter stream IDs from here on are beyond what the peer may open.
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
            outbox: Outbox::new(settings, Arc::clone(&metrics)),
            metrics,
            receivers: Mutex::default(),
            id_limit: AtomicU64::new(u64::MAX),
        })
    }

    /// Starts the two tasks; they end with the connection.
    pub(crate) fn start(self: &Arc<Session>) {
        let reader = Arc::clone(self);
        self.environment.spawn(Box::pin(async move { reader.read().await }));
        let writer = Arc::clone(self);
        self.environment.spawn(Box::pin(async move { writer.write().await }));
    }

    fn receivers(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<dyn Receiver>>> {
        self.receivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on datagrams with this quarter stream ID go to `receiver`.
    pub(crate) fn register(&self, id: u64, receiver: Arc<dyn Receiver>) {
        self.receivers().insert(id, receiver);
    }

    /// From now on they are dropped.
    pub(crate) fn forget(&self, id: u64) {
        self.receivers().remove(&id);
        self.outbox.remove(id);
    }

    /// No stream from this quarter stream ID on can exist yet.
    pub(crate) fn set_id_limit(&self, limit: u64) {
        self.id_limit.store(limit, Ordering::Relaxed);
    }

    /// The largest UDP payload that a datagram of this request carries now, `None` if the peer takes none.
    pub(crate) fn max_payload(&self, id: u64) -> Option<usize> {
        self.connection.max_datagram_size().map(|size| size.saturating_sub(datagram::overhead(id)))
    }

    /// Queues UDP payloads as datagrams of a request; drops and counts what does not fit one.
    pub(crate) fn send(&self, id: u64, payloads: &mut Vec<Bytes>) {
        let limit = self.max_payload(id).unwrap_or(0);
        let now = self.environment.now();
        for payload in payloads.drain(..) {
            if payload.len() > limit {
                self.metrics.dropped_too_large_total.add(1);
            } else {
                self.outbox.push(id, now, datagram::frame(id, &payload));
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

    /// Gives datagrams to the connection, waiting for room. What no longer fits a packet is dropped and counted.
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
                    Content::Udp(payload) => payloads.push(payload),
                    Content::Unknown => self.metrics.datagrams_unknown_total.add(1),
                    Content::TooLong => self.abort(id),
                }
            }
            self.deliver(current, &mut payloads);
        }
    }

    /// The request and what it is told; `None` if the connection had to be closed.
    fn take_apart(&self, frame: Bytes) -> Option<(u64, Content)> {
        let error = match datagram::split_quarter_stream_id(frame) {
            Ok((id, payload)) if id < self.id_limit.load(Ordering::Relaxed) => {
                return Some((id, datagram::content(payload)));
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

    /// A buffer of 1000 bytes with 32 for each datagram holds seven of 100 (924): as the connection counts, which tells of
    /// 1000 - 700 - 32 bytes left.
    #[test]
    fn a_batch_fits_with_what_waits_and_not_else() {
        let frame = Bytes::from(vec![0; 100]);
        assert_eq!(size_of::<Bytes>(), 32);
        let mut handed = Handed::default();
        assert!(handed.has_room(1000, 968, &vec![frame.clone(); 7]));
        assert!(!handed.has_room(1000, 968, &vec![frame.clone(); 8]));
        (0..7).for_each(|_| handed.push(100));
        assert!(!handed.has_room(1000, 268, std::slice::from_ref(&frame)));
        // Two have left.
        assert!(handed.has_room(1000, 468, &vec![frame.clone(); 2]));
        assert_eq!((handed.lengths.len(), handed.bytes), (5, 500));
        assert!(!handed.has_room(1000, 468, &vec![frame; 3]));
        // Nothing is known of a full buffer.
        assert!(!handed.has_room(1000, 0, &[Bytes::new()]));
    }
}
