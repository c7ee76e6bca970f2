//! What the nodes of the model have answered real hosts, and how much they may.
//!
//! Errors of each node are limited by a token bucket that the model's clock fills (RFC 4443 section 2.4 (f), whose defaults for
//! a small device these are; RFC 1812 section 4.3.2.8).

use fullpipe_units::{Duration, FlowId, Instant, NodeId};
use std::collections::BTreeMap;

/// Errors that a node may send at once.
const BURST: u64 = 10;
/// Time after which it may send another.
const EACH: Duration = Duration::from_millis(100);

/// What nodes of the model have said to real hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answered {
    /// ICMP errors.
    pub errors: u64,
    /// ICMP errors that were not sent, because there were too many.
    pub limited: u64,
    /// Echo replies.
    pub echoes: u64,
    /// Resets of TCP connections that nobody has.
    pub resets: u64,
}

/// Who has said how much.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) said: Answered,
    /// Of each node: when its bucket will be, or was, full.
    buckets: BTreeMap<NodeId, Instant>,
    /// The flow of errors from a node to a real host.
    pub(super) flows: BTreeMap<(NodeId, NodeId, u8), FlowId>,
    pub(super) identification: u16,
}

impl Answers {
    /// Takes a token from a node's bucket, if it has one.
    pub(super) fn may_tell(&mut self, now: Instant, node: NodeId) -> bool {
        let full_at = self.buckets.entry(node).or_insert(now);
        let from = (*full_at).max(now);
        let is_allowed = from.saturating_since(now) <= EACH * (BURST - 1);
        if is_allowed {
            *full_at = from + EACH;
        } else {
            self.said.limited += 1;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten at once; then one for each tenth of a second that has passed; never more than ten in store.
    #[test]
    fn a_bucket_by_hand() {
        let mut answers = Answers::default();
        let mut tell = |ms: u64, times: u32| {
            let at = Instant::ZERO + Duration::from_millis(ms);
            (0..times).filter(|_| answers.may_tell(at, NodeId(7))).count()
        };
        assert_eq!(tell(5, 20), 10);
        assert_eq!(tell(104, 20), 0);
        assert_eq!(tell(105, 20), 1);
        assert_eq!(tell(350, 20), 2);
        assert_eq!(tell(60_000, 20), 10);
        assert_eq!(answers.said.limited, 10 + 20 + 19 + 18 + 10);
        let now = Instant::ZERO + Duration::from_millis(60_000);
        assert!(answers.may_tell(now, NodeId(8)), "each node has its own");
    }
}
