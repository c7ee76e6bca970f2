//! The queue of one request, for payloads that wait for the tunnel. The limit of a queue is in bytes or in time, or
//! absent. The queue counts its drops.
//!
//! RFC 9298 does not specify the queueing of a proxy. A long queue hides congestion from the end-to-end connection and
//! increases its round-trip times. A short queue drops payloads when loss recovery or congestion control of the tunnel
//! delays them.

use bytes::Bytes;
pub use fullpipe_transport::tunnel::DropPolicy;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Minimum cost of a payload in bytes: about the memory overhead of a stored payload. Without it, a target could
/// exhaust the memory with empty payloads.
pub const MIN_COST: u64 = 64;

/// Returns the number of bytes for which a payload counts toward limits.
#[must_use]
pub fn cost(payload: &[u8]) -> u64 {
    (payload.len() as u64).max(MIN_COST)
}

/// Limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// There is no limit.
    Unlimited,
    /// Maximum number of waiting bytes of payload. Each payload counts as at least [`MIN_COST`] bytes. An empty queue
    /// accepts a payload of any size.
    Bytes(u64),
    /// Maximum waiting time. A payload that has waited longer is dropped when it is next to be sent. The queue counts
    /// as full while its oldest payload exceeds the limit.
    Time(Duration),
}

/// The queue of the payloads of one request.
#[derive(Clone, Debug)]
pub struct Queue {
    limit: QueueLimit,
    policy: DropPolicy,
    waiting: VecDeque<(Instant, Bytes)>,
    bytes: u64,
}

impl Queue {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(limit: QueueLimit, policy: DropPolicy) -> Queue {
        Queue { limit, policy, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Adds a payload, and drops it or older payloads as the limit and the policy require. Returns the number of
    /// dropped payloads.
    pub fn push(&mut self, now: Instant, payload: Bytes) -> u64 {
        let mut dropped = 0;
        while self.is_full(now, cost(&payload)) {
            if self.policy == DropPolicy::Newest {
                return dropped + 1;
            }
            self.take();
            dropped += 1;
        }
        self.bytes += cost(&payload);
        self.waiting.push_back((now, payload));
        dropped
    }

    fn is_full(&self, now: Instant, length: u64) -> bool {
        let Some((since, _)) = self.waiting.front() else { return false };
        match self.limit {
            QueueLimit::Unlimited => false,
            QueueLimit::Bytes(limit) => self.bytes.saturating_add(length) > limit,
            QueueLimit::Time(limit) => now.saturating_duration_since(*since) > limit,
        }
    }

    /// Removes and returns the next payload; `None` if there is none. Also returns the number of payloads before it
    /// that were dropped because they had waited too long.
    pub fn pop(&mut self, now: Instant) -> (Option<Bytes>, u64) {
        let mut dropped = 0;
        while let Some((since, payload)) = self.take() {
            match self.limit {
                QueueLimit::Time(limit) if now.saturating_duration_since(since) > limit => dropped += 1,
                _ => return (Some(payload), dropped),
            }
        }
        (None, dropped)
    }

    fn take(&mut self) -> Option<(Instant, Bytes)> {
        let head = self.waiting.pop_front()?;
        self.bytes -= cost(&head.1);
        Some(head)
    }

    /// Returns the number of bytes of waiting payloads, as counted toward limits.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    /// Only differences of instants matter.
    #[expect(clippy::disallowed_methods, reason = "an instant cannot be made from nothing")]
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

    fn at(milliseconds: u64) -> Instant {
        *BEGIN + Duration::from_millis(milliseconds)
    }

    fn payload(length: usize) -> Bytes {
        vec![0; length].into()
    }

    #[test]
    fn byte_limit_drops_newest_or_oldest_by_policy() {
        let mut newest = Queue::new(QueueLimit::Bytes(1000), DropPolicy::Newest);
        let mut oldest = Queue::new(QueueLimit::Bytes(1000), DropPolicy::Oldest);
        for queue in [&mut newest, &mut oldest] {
            assert_eq!(queue.push(at(0), payload(400)) + queue.push(at(0), payload(600)), 0);
            assert_eq!(queue.push(at(0), payload(100)), 1);
        }
        assert_eq!((newest.bytes(), oldest.bytes()), (1000, 700));
        assert_eq!(newest.pop(at(9)).0.map(|payload| payload.len()), Some(400));
        assert_eq!(oldest.pop(at(9)).0.map(|payload| payload.len()), Some(600));
        // One payload always fits.
        let mut queue = Queue::new(QueueLimit::Bytes(300), DropPolicy::Oldest);
        assert_eq!(queue.push(at(0), payload(900)), 0);
        assert_eq!(queue.push(at(0), payload(800)), 1);
        assert_eq!(queue.bytes(), 800);
        // An empty payload costs 64 bytes, so ten fit.
        let mut queue = Queue::new(QueueLimit::Bytes(640), DropPolicy::Newest);
        assert_eq!((0..100).map(|_| queue.push(at(0), payload(0))).sum::<u64>(), 90);
        assert_eq!((0..10).filter(|_| queue.pop(at(0)).0.is_some()).count(), 10);
        assert!(queue.is_empty() && queue.bytes() == 0);
    }

    #[test]
    fn time_limit_applies_when_payloads_are_added_and_removed() {
        let mut queue = Queue::new(QueueLimit::Time(Duration::from_millis(5)), DropPolicy::Newest);
        assert_eq!(queue.push(at(0), payload(1)), 0);
        assert_eq!(queue.push(at(5), payload(2)), 0);
        // The oldest payload has waited for 6 ms.
        assert_eq!(queue.push(at(6), payload(3)), 1);
        assert_eq!(queue.pop(at(10)), (Some(payload(2)), 1));
        assert_eq!(queue.pop(at(10)), (None, 0));
    }

    proptest! {
        #[test]
        fn every_lost_payload_is_counted(
            limit in prop_oneof![Just(QueueLimit::Unlimited), (1u64..3000).prop_map(QueueLimit::Bytes), (0u64..20).prop_map(|ms| QueueLimit::Time(Duration::from_millis(ms)))],
            oldest in any::<bool>(),
            steps in prop::collection::vec((0u64..8, prop::option::of(0usize..1500)), 0..80),
        ) {
            let mut queue = Queue::new(limit, if oldest { DropPolicy::Oldest } else { DropPolicy::Newest });
            let (mut clock, mut pushed, mut popped, mut dropped) = (0, 0u64, 0u64, 0);
            for (pause, step) in steps {
                clock += pause;
                match step {
                    Some(length) => {
                        pushed += 1;
                        dropped += queue.push(at(clock), payload(length));
                        if let QueueLimit::Bytes(limit) = limit {
                            prop_assert!(queue.bytes() <= limit || queue.waiting.len() == 1);
                        }
                    }
                    None => {
                        let (payload, lost) = queue.pop(at(clock));
                        popped += u64::from(payload.is_some());
                        dropped += lost;
                    }
                }
                prop_assert_eq!(queue.bytes(), queue.waiting.iter().map(|(_, payload)| cost(payload)).sum::<u64>());
            }
            prop_assert_eq!(pushed, popped + dropped + queue.waiting.len() as u64);
            if limit == QueueLimit::Unlimited {
                prop_assert_eq!(dropped, 0);
            }
        }
    }
}
