//! Counters and rate limits of the packets that nodes of the model send to real hosts as replies: ICMP errors, echo
//! replies and TCP resets.
//!
//! A token bucket limits the ICMP errors of each node. It fills according to the model's clock. Its parameters are the
//! example of RFC 4443 section 2.4 (f) for a small device; see also RFC 1812 section 4.3.2.8.

use fullpipe_archive::IcmpRecord;
use fullpipe_units::{Duration, FlowId, Instant, NodeId};
use std::collections::BTreeMap;

/// Size of the bucket: the number of errors that a node may send at once.
const BURST: u64 = 10;
/// Interval between two tokens.
const EACH: Duration = Duration::from_millis(100);

/// Counters, token buckets and flows of the packets that nodes of the model send to real hosts.
#[derive(Debug, Default)]
pub(crate) struct HostReplies {
    pub(crate) sent: IcmpRecord,
    /// The time at which the bucket of each node is full.
    buckets: BTreeMap<NodeId, Instant>,
    /// The flow of the errors from a node to a real host, by protocol.
    pub(super) flows: BTreeMap<(NodeId, NodeId, u8), FlowId>,
    pub(super) identification: u16,
}

impl HostReplies {
    /// Takes a token from a node's bucket; returns false if it is empty.
    pub(super) fn may_send_error(&mut self, now: Instant, node: NodeId) -> bool {
        let full_at = self.buckets.entry(node).or_insert(now);
        let from = (*full_at).max(now);
        let is_allowed = from.saturating_since(now) <= EACH * (BURST - 1);
        if is_allowed {
            *full_at = from + EACH;
        } else {
            self.sent.errors_limited += 1;
        }
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten errors at once, then one per tenth of a second, and never more than ten at once.
    #[test]
    fn a_token_bucket_limits_the_errors_of_each_node() {
        let mut answers = HostReplies::default();
        let mut send = |ms: u64, times: u32| {
            let at = Instant::ZERO + Duration::from_millis(ms);
            (0..times).filter(|_| answers.may_send_error(at, NodeId(7))).count()
        };
        assert_eq!(send(5, 20), 10);
        assert_eq!(send(104, 20), 0);
        assert_eq!(send(105, 20), 1);
        assert_eq!(send(350, 20), 2);
        assert_eq!(send(60_000, 20), 10);
        assert_eq!(answers.sent.errors_limited, 10 + 20 + 19 + 18 + 10);
        let now = Instant::ZERO + Duration::from_millis(60_000);
        assert!(answers.may_send_error(now, NodeId(8)), "each node has its own bucket");
    }
}
