//! Queues of the payloads that wait for a tunnel: one queue per request, and the order in which requests send. A single
//! task takes the payloads. It is woken when a payload is queued.

use crate::configuration::{Scheduler, Tunnel};
use crate::metrics::Metrics;
use crate::queue::{Queue, cost};
use bytes::Bytes;
use futures_util::task::AtomicWaker;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

/// Bytes that a request can queue even if the limit of all queues is reached. Thus a client that does not read and
/// fills its queues does not block others.
pub(crate) const RESERVED_BYTES: u64 = 16 << 10;

/// The queues of one connection, or of one request if it has its own stream.
pub(crate) struct SendQueues {
    settings: Tunnel,
    metrics: Arc<Metrics>,
    waiting: Mutex<Waiting>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Waiting {
    queues: BTreeMap<u64, Queue>,
    /// Order of sending. Each request with payloads has one entry (round robin), or one entry per payload (FIFO).
    turns: VecDeque<u64>,
}

impl SendQueues {
    pub(crate) fn new(settings: Tunnel, metrics: Arc<Metrics>) -> SendQueues {
        SendQueues { settings, metrics, waiting: Mutex::default(), waker: AtomicWaker::new() }
    }

    /// Bytes that the connection buffers before congestion control.
    pub(crate) fn datagram_buffer(&self) -> usize {
        self.settings.datagram_buffer
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a payload of a request, subject to the limits.
    pub(crate) fn push(&self, request: u64, now: Instant, payload: Bytes) {
        let mut waiting = self.waiting();
        let Waiting { queues, turns } = &mut *waiting;
        let queue =
            queues.entry(request).or_insert_with(|| Queue::new(self.settings.queue_limit, self.settings.drop_policy));
        let (before, was_empty) = (queue.bytes(), queue.is_empty());
        let together = self.metrics.queued_bytes.get().saturating_add(cost(&payload));
        let alone = before.saturating_add(cost(&payload));
        if together > self.settings.queue_limit_total && alone > RESERVED_BYTES {
            self.metrics.dropped_memory_total.add(1);
            return;
        }
        let dropped = queue.push(now, payload);
        // A dropped payload has no entry: the newest adds none, and the oldest passes its entry on to the newest.
        if was_empty || (self.settings.scheduler == Scheduler::Fifo && dropped == 0) {
            turns.push_back(request);
        }
        self.account(before, queue.bytes());
        drop(waiting);
        self.metrics.dropped_queue_total.add(dropped);
        self.waker.wake();
    }

    fn account(&self, before: u64, after: u64) {
        if after >= before {
            self.metrics.queued_bytes.add(after - before);
            self.metrics.queued_peak_bytes.set_max(self.metrics.queued_bytes.get());
        } else {
            self.metrics.queued_bytes.subtract(before - after);
        }
    }

    /// Moves payloads to `into` in the order of sending: at least one and at most `count` payloads. They have at most
    /// `bytes` bytes, unless the first payload alone is larger. Waits while all queues are empty.
    pub(crate) fn poll_take(
        &self,
        context: &mut Context<'_>,
        now: Instant,
        bytes: u64,
        count: usize,
        into: &mut Vec<Bytes>,
    ) -> Poll<()> {
        self.waker.register(context.waker());
        let mut waiting = self.waiting();
        let mut taken = 0;
        while into.len() < count {
            let Some(payload) = self.take_one(&mut waiting, now) else { break };
            taken += payload.len() as u64;
            into.push(payload);
            if taken >= bytes {
                break;
            }
        }
        if into.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }

    fn take_one(&self, waiting: &mut Waiting, now: Instant) -> Option<Bytes> {
        while let Some(request) = self.next_turn(waiting) {
            // The request may have been removed, or its payload may have been dropped in favor of a later one.
            let Some(queue) = waiting.queues.get_mut(&request) else { continue };
            let before = queue.bytes();
            let (payload, dropped) = queue.pop(now);
            self.metrics.dropped_queue_total.add(dropped);
            self.account(before, queue.bytes());
            let keeps_its_turn = self.settings.scheduler != Scheduler::Fifo;
            if keeps_its_turn && !queue.is_empty() {
                waiting.turns.push_back(request);
            }
            if payload.is_some() {
                return payload;
            }
        }
        None
    }

    /// Removes and returns the request that sends next.
    fn next_turn(&self, waiting: &mut Waiting) -> Option<u64> {
        if self.settings.scheduler == Scheduler::RequestOrder {
            let (place, _) = waiting.turns.iter().enumerate().min_by_key(|(_, request)| **request)?;
            return waiting.turns.remove(place);
        }
        waiting.turns.pop_front()
    }

    /// Removes the queue of a request.
    pub(crate) fn remove(&self, request: u64) {
        if let Some(queue) = self.waiting().queues.remove(&request) {
            self.metrics.queued_bytes.subtract(queue.bytes());
        }
    }
}

impl Drop for SendQueues {
    fn drop(&mut self) {
        let left: u64 = self.waiting().queues.values().map(Queue::bytes).sum();
        self.metrics.queued_bytes.subtract(left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{DropPolicy, QueueLimit};
    use proptest::prelude::*;
    use std::task::Waker;

    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made from nothing")]
    fn begin() -> Instant {
        Instant::now()
    }

    fn outbox(settings: Tunnel) -> SendQueues {
        SendQueues::new(settings, Arc::default())
    }

    /// The payloads taken, as (request, number).
    fn take(outbox: &SendQueues, now: Instant, count: usize) -> Vec<(u8, u8)> {
        let mut taken = Vec::new();
        let _ = outbox.poll_take(&mut Context::from_waker(Waker::noop()), now, u64::MAX, count, &mut taken);
        taken.iter().map(|payload| (payload[0], payload[1])).collect()
    }

    fn fill(outbox: &SendQueues, now: Instant, payloads: &[(u8, u8)]) {
        for (request, number) in payloads {
            outbox.push((*request).into(), now, vec![*request, *number].into());
        }
    }

    #[test]
    fn scheduler_serves_requests_round_robin_or_in_arrival_order() {
        let now = begin();
        let arrivals = [(1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (2, 1)];
        let fair = outbox(Tunnel { scheduler: Scheduler::RoundRobin, ..Tunnel::default() });
        fill(&fair, now, &arrivals);
        assert_eq!(take(&fair, now, 9), [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2)]);
        let line = outbox(Tunnel { scheduler: Scheduler::Fifo, ..Tunnel::default() });
        fill(&line, now, &arrivals);
        assert_eq!(take(&line, now, 2), arrivals[..2]);
        assert_eq!(take(&line, now, 9), arrivals[2..]);
        assert_eq!(take(&line, now, 9), []);
        let ordered = outbox(Tunnel { scheduler: Scheduler::RequestOrder, ..Tunnel::default() });
        fill(&ordered, now, &[(3, 0), (2, 0), (3, 1)]);
        assert_eq!(take(&ordered, now, 2), [(2, 0), (3, 0)]);
        fill(&ordered, now, &[(1, 0), (1, 1)]);
        assert_eq!(take(&ordered, now, 9), [(1, 0), (1, 1), (3, 1)]);
    }

    #[test]
    fn total_limit_drops_payloads_of_all_requests() {
        let now = begin();
        let settings = Tunnel { queue_limit: QueueLimit::Unlimited, queue_limit_total: 25_000, ..Tunnel::default() };
        let outbox = outbox(settings);
        // Two payloads of 10 000 bytes fit. A third does not, and neither does any payload of another request.
        for request in [1, 1, 1, 2, 2, 3] {
            outbox.push(request, now, vec![request as u8; 10_000].into());
        }
        // Each request can still queue its first 16 KiB.
        assert_eq!(outbox.metrics.queued_bytes.get(), 40_000);
        assert_eq!(outbox.metrics.dropped_memory_total.get(), 2);
        outbox.remove(1);
        assert_eq!(outbox.metrics.queued_bytes.get(), 20_000);
        assert_eq!(take(&outbox, now, 9), [(2, 2), (3, 3)]);
        let metrics = Arc::clone(&outbox.metrics);
        fill(&outbox, now, &[(4, 0)]);
        drop(outbox);
        assert_eq!(metrics.queued_bytes.get(), 0);
    }

    #[test]
    fn dropped_payload_leaves_no_turn() {
        let now = begin();
        for drop_policy in [DropPolicy::Newest, DropPolicy::Oldest] {
            for scheduler in [Scheduler::Fifo, Scheduler::RoundRobin, Scheduler::RequestOrder] {
                let queue_limit = QueueLimit::Bytes(640);
                let outbox = outbox(Tunnel { scheduler, drop_policy, queue_limit, ..Tunnel::default() });
                fill(&outbox, now, &[(7, 1); 1000]);
                assert!(outbox.waiting().turns.len() <= 10);
                assert_eq!(take(&outbox, now, usize::MAX).len(), 10);
            }
        }
    }

    proptest! {
        #[test]
        fn payloads_of_a_request_keep_their_order_and_drops_are_counted(
            scheduler in prop::sample::select(vec![Scheduler::RoundRobin, Scheduler::Fifo, Scheduler::RequestOrder]), oldest in any::<bool>(), limit in prop_oneof![Just(QueueLimit::Unlimited), (64u64..400).prop_map(QueueLimit::Bytes)],
            steps in prop::collection::vec((0u8..4, 0usize..4), 1..60),
        ) {
            let now = begin();
            let outbox = outbox(Tunnel {
                scheduler,
                drop_policy: if oldest { DropPolicy::Oldest } else { DropPolicy::Newest },
                queue_limit: limit,
                ..Tunnel::default()
            });
            let mut out = Vec::new();
            for (number, (request, count)) in steps.iter().enumerate() {
                fill(&outbox, now, &[(*request, number as u8)]);
                out.extend(take(&outbox, now, *count));
            }
            out.extend(take(&outbox, now, usize::MAX));
            prop_assert_eq!(outbox.metrics.queued_bytes.get(), 0);
            prop_assert_eq!(out.len() as u64 + outbox.metrics.dropped_queue_total.get(), steps.len() as u64);
            for request in 0..4 {
                let numbers: Vec<u8> = out.iter().filter(|(of, _)| *of == request).map(|(_, number)| *number).collect();
                prop_assert!(numbers.is_sorted());
            }
        }
    }
}
