//! The audit of the origin of a flow's packets: each packet that is delivered or dropped was sent with the same fields,
//! and is delivered only once. The auditor also computes the published times independently.

use crate::flow::PublishedTimes;
use crate::verdict::{FailureLog, Rule, Subject};
use fullpipe_record::PacketView;
use fullpipe_units::{FlowId, Instant, words};
use std::collections::BTreeMap;

/// The fields of a packet by which sent and delivered packets are matched.
type Likeness = (u32, u32, Option<(u32, u32, u32, bool, bool)>);

fn likeness(packet: &PacketView) -> Likeness {
    let tcp = packet.tcp.map(|tcp| (tcp.sequence, tcp.sequence_end, tcp.acknowledgement, tcp.has_ack, tcp.syn));
    (packet.ip_bytes, packet.payload_bytes, tcp)
}

/// Describes a packet in a message.
fn describe(packet: &PacketView) -> String {
    let bytes = words::format_exact_bytes(packet.ip_bytes);
    match &packet.tcp {
        Some(tcp) => format!("a segment of {bytes} with sequence numbers {} to {}", tcp.sequence, tcp.sequence_end),
        None => format!("a packet of {bytes}"),
    }
}

/// The packets with the same fields that were sent but not delivered.
#[derive(Clone, Debug, Default)]
struct Outstanding {
    /// Number of packets by send time.
    sent: BTreeMap<u64, u32>,
    total: u64,
    /// Number of these packets that were dropped. Drop events do not identify the send time of the packet.
    dropped: u64,
    /// Number of these packets that are copies, which have the send time of an earlier packet.
    copies: u64,
}

/// The packets of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct OriginChecker {
    outstanding: BTreeMap<Likeness, Outstanding>,
    times: PublishedTimes,
    any_sent: bool,
    last_delay_ns: Option<u64>,
    pub(crate) checks: u64,
}

impl OriginChecker {
    pub(crate) fn sent(&mut self, now: Instant, packet: &PacketView) {
        let like = self.outstanding.entry(likeness(packet)).or_default();
        *like.sent.entry(now.as_nanos()).or_default() += 1;
        like.total += 1;
        if !self.any_sent {
            self.any_sent = true;
            self.times.first_tx = now;
        }
        self.times.last_tx = now;
    }

    /// Counts a copy that a link made.
    pub(crate) fn duplicated(&mut self, packet: &PacketView) {
        let like = self.outstanding.entry(likeness(packet)).or_default();
        like.total += 1;
        like.copies += 1;
    }

    pub(crate) fn delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant, log: &mut FailureLog) {
        self.checks += 1;
        if !self.take(packet, sent) {
            log.note(Rule::Origin, Subject::Flow(packet.flow), now, || {
                let (packet, sent) = (describe(packet), words::format_exact_time(sent.as_nanos()));
                format!("expected a delivered packet to have been sent, found {packet} that was not sent at {sent}")
            });
        }
        let delay_ns = now.saturating_since(sent).as_nanos();
        self.times.delay_sum_ns = self.times.delay_sum_ns.saturating_add(delay_ns);
        match self.last_delay_ns {
            Some(last) => {
                self.times.jitter_sum_ns = self.times.jitter_sum_ns.saturating_add(delay_ns.abs_diff(last));
            }
            None => self.times.first_rx = now,
        }
        self.last_delay_ns = Some(delay_ns);
        self.times.last_rx = now;
    }

    /// Removes a packet. Returns false if no such packet is outstanding.
    fn take(&mut self, packet: &PacketView, sent: Instant) -> bool {
        let Some(like) = self.outstanding.get_mut(&likeness(packet)) else { return false };
        if like.total == like.dropped {
            return false;
        }
        match like.sent.get_mut(&sent.as_nanos()) {
            Some(count) => {
                *count -= 1;
                if *count == 0 {
                    like.sent.remove(&sent.as_nanos());
                }
            }
            None if like.copies > 0 => like.copies -= 1,
            None => return false,
        }
        like.total -= 1;
        self.forget(packet);
        true
    }

    /// Removes the entry of a packet if only dropped packets are left in the entry.
    fn forget(&mut self, packet: &PacketView) {
        let key = likeness(packet);
        if self.outstanding.get(&key).is_some_and(|like| like.total == like.dropped) {
            self.outstanding.remove(&key);
        }
    }

    pub(crate) fn dropped(&mut self, now: Instant, packet: &PacketView, log: &mut FailureLog) {
        self.checks += 1;
        match self.outstanding.get_mut(&likeness(packet)) {
            Some(like) => {
                like.dropped += 1;
                self.forget(packet);
            }
            None => log.note(Rule::Origin, Subject::Flow(packet.flow), now, || {
                let packet = describe(packet);
                format!("expected a dropped packet to have been sent and to be in flight, found {packet} that is not")
            }),
        }
    }

    /// Compares the published times with those computed from the events.
    pub(crate) fn finish(&self, flow: FlowId, published: &PublishedTimes, log: &mut FailureLog) {
        let (own, other) = (&self.times, published);
        for (what, expected, found) in [
            ("delay_sum", own.delay_sum_ns, other.delay_sum_ns),
            ("jitter_sum", own.jitter_sum_ns, other.jitter_sum_ns),
            ("first_tx", own.first_tx.as_nanos(), other.first_tx.as_nanos()),
            ("last_tx", own.last_tx.as_nanos(), other.last_tx.as_nanos()),
            ("first_rx", own.first_rx.as_nanos(), other.first_rx.as_nanos()),
            ("last_rx", own.last_rx.as_nanos(), other.last_rx.as_nanos()),
        ] {
            if expected != found {
                log.note(Rule::Counters, Subject::Flow(flow), Instant::NEVER, || {
                    let (expected, found) = (words::format_exact_time(expected), words::format_exact_time(found));
                    format!("expected {what} = {expected} in the records, found {found}")
                });
            }
        }
    }
}
