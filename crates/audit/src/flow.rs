//! The audit of one direction of a conversation, with constant state in half a cache line (both directions fill one
//! line).
//!
//! **Conservation.** Delivered and dropped packets never exceed sent packets. After the run, the difference must be in
//! flight.
//!
//! **Sequence numbers** (RFC 9293 section 3.4: modulo 2^32, compared by their signed difference). `sent_end` and
//! `delivered_end` are the highest ends of segments with content that were sent and delivered. An acknowledgment from
//! the other side must be between the initial sequence number and `delivered_end`. Therefore nothing may be
//! acknowledged that was not sent or has not arrived. (Checking for holes below an acknowledgment would require more
//! than constant state; see [`PacketAuditor`](crate::PacketAuditor).) A SYN sets the initial sequence number; a later
//! SYN with another number sets it again. If the start of a conversation was not observed, its numbers begin with the
//! first observed segment, and any older number is accepted.

use crate::balance::TrafficBalance;
use crate::declared::MinimumPathDelay;
use crate::verdict::{FailureLog, Rule, Subject};
use fullpipe_record::{FlowCounters, PacketView, TcpView};
use fullpipe_units::{FlowId, Instant, words};
use std::collections::BTreeMap;

/// The state that changes with every packet.
#[derive(Clone, Debug, Default)]
#[repr(C, align(32))]
pub(crate) struct FlowState {
    /// Packets and bytes sent, minus those delivered and dropped.
    in_flight: TrafficBalance,
    delivered: TrafficBalance,
    /// Index of the minimum delay of the path.
    pub(crate) path: u32,
    sent_end: u32,
    delivered_end: u32,
    /// Maximum distance of an acknowledgment below `delivered_end`: down to the initial sequence number, but at most
    /// `WINDOW`.
    delivered_span: u32,
}

/// Maximum distance of two sequence numbers whose order is defined.
const WINDOW: u32 = i32::MAX as u32;

/// The dropped packets of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DropTotals {
    packets: u64,
    amount: TrafficBalance,
}

/// State that only few flows need.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowDetails {
    /// Drops by flow, up to the highest flow with a drop.
    dropped: Vec<DropTotals>,
    /// Copies that links made of a flow's packets; they are in flight in addition to the sent packets.
    copies: BTreeMap<FlowId, TrafficBalance>,
    /// End of a SYN that a later SYN with another number replaced; the earlier SYN can still be in flight.
    replaced_syn_ends: BTreeMap<FlowId, u32>,
}

impl FlowDetails {
    fn dropped(&self, flow: FlowId) -> DropTotals {
        self.dropped.get(flow.index()).copied().unwrap_or_default()
    }
}

/// The counters of a flow as published in the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishedCounters {
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent, at the IP layer.
    pub tx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received, at the IP layer.
    pub rx_bytes: u64,
    /// Packets dropped in the network.
    pub lost_packets: u64,
    /// Delay and jitter sums, and first and last packet times.
    /// Only [`PacketAuditor`](crate::PacketAuditor) checks them.
    pub times: PublishedTimes,
}

/// The times of a flow as published in the records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishedTimes {
    /// Sum of the delays of received packets, in nanoseconds.
    pub delay_sum_ns: u64,
    /// Sum of the absolute differences between successive delays, in nanoseconds.
    pub jitter_sum_ns: u64,
    /// When the first packet was sent; zero if none was.
    pub first_tx: Instant,
    /// When the last packet was sent; zero if none was.
    pub last_tx: Instant,
    /// When the first packet was received; zero if none was.
    pub first_rx: Instant,
    /// When the last packet was received; zero if none was.
    pub last_rx: Instant,
}

impl From<&FlowCounters> for PublishedCounters {
    fn from(counters: &FlowCounters) -> Self {
        PublishedCounters {
            tx_packets: counters.tx_packets,
            tx_bytes: counters.tx_bytes,
            rx_packets: counters.rx_packets,
            rx_bytes: counters.rx_bytes,
            lost_packets: counters.lost_packets,
            times: PublishedTimes {
                delay_sum_ns: counters.delay_sum.as_nanos(),
                jitter_sum_ns: counters.jitter_sum.as_nanos(),
                first_tx: counters.first_tx,
                last_tx: counters.last_tx,
                first_rx: counters.first_rx,
                last_rx: counters.last_rx,
            },
        }
    }
}

/// The state of a flow at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FinalFlowState {
    /// Packets that were sent but neither delivered nor dropped: in a queue, on a link, or in reassembly. They must be
    /// counted in the network itself. If they were the difference of counters, the check could not fail.
    pub in_flight_packets: u64,
    /// Bytes of these packets at the IP layer.
    pub in_flight_bytes: u64,
    /// The counters of the flow in the records; `None` if the records contain none.
    pub published: Option<PublishedCounters>,
}

/// Returns the distance of `a` after `b` modulo 2^32; negative if `a` is before `b`.
#[inline(always)]
fn distance(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

/// Returns whether a segment occupies sequence numbers.
#[inline(always)]
fn has_content(tcp: &TcpView) -> bool {
    tcp.sequence_end != tcp.sequence
}

/// Counts a packet that `pair[side]` sent, and accepts an ordinary segment. Returns false if `judge_sent` must check
/// the segment.
#[inline(always)]
pub(crate) fn accepts_sent(pair: &mut [FlowState; 2], side: usize, packet: &PacketView) -> bool {
    let flow = &mut pair[side & 1];
    flow.in_flight.add(TrafficBalance::packet(packet.ip_bytes));
    let Some(tcp) = &packet.tcp else { return true };
    if tcp.syn || !tcp.has_ack || !pair[(side ^ 1) & 1].was_delivered(tcp.acknowledgement) {
        return false;
    }
    pair[side & 1].content_sent(tcp);
    true
}

/// Does for all segments of a burst what [`accepts_sent`] does for each, if they are ordinary and new: all have the
/// same acknowledgment, and the last one has the highest end. Otherwise, counts nothing and returns false; each segment
/// must then be processed separately.
#[inline(always)]
pub(crate) fn accepts_sent_burst(
    pair: &mut [FlowState; 2],
    side: usize,
    first: &PacketView,
    packets: u32,
    step_bytes: u32,
) -> bool {
    let Some(tcp) = &first.tcp else { return false };
    let is_new = has_content(tcp) && distance(tcp.sequence_end, pair[side & 1].sent_end) > 0 && step_bytes <= WINDOW;
    if !(is_new && tcp.has_ack && !tcp.syn && pair[(side ^ 1) & 1].was_delivered(tcp.acknowledgement)) {
        return false;
    }
    let flow = &mut pair[side & 1];
    flow.in_flight.add(TrafficBalance::packets(packets, first.ip_bytes));
    flow.sent_end = tcp.sequence_end.wrapping_add(packets.wrapping_sub(1).wrapping_mul(step_bytes));
    true
}

/// Checks a segment that `accepts_sent` has counted but not accepted.
#[cold]
#[inline(never)]
pub(crate) fn judge_sent(
    pair: &mut [FlowState; 2],
    now: Instant,
    packet: PacketView,
    details: &mut FlowDetails,
    log: &mut FailureLog,
) {
    let Some(tcp) = &packet.tcp else { return };
    let side = packet.flow.index() & 1;
    let other_flow = packet.flow.reverse();
    pair[side].begin(packet.flow, tcp, details);
    if !tcp.has_ack || pair[side ^ 1].was_delivered(tcp.acknowledgement) {
        return;
    }
    if details.replaced_syn_ends.get(&other_flow) == Some(&tcp.acknowledgement) {
        return;
    }
    let first = pair[side].sent(packet.flow, details) == TrafficBalance::packet(packet.ip_bytes);
    let other = &mut pair[side ^ 1];
    let silent = other.sent(other_flow, details) == TrafficBalance::default();
    if !other.has_begun() && !tcp.syn && (first || !silent) {
        // The start was not observed, so the numbers of the other side begin with the acknowledged number.
        other.begin_at(tcp.acknowledgement, tcp.acknowledgement, WINDOW);
        return;
    }
    let found = tcp.acknowledgement;
    let (highest, sent_end) = (other.delivered_end, other.sent_end);
    log.note(Rule::Acknowledgement, Subject::Flow(packet.flow), now, || {
        if silent {
            return format!(
                "expected no acknowledgement of flow {other_flow}, which sent nothing, found sequence number {found}"
            );
        }
        format!(
            "expected an acknowledgement of at most {highest}, the highest sequence number delivered of flow {other_flow} \
             ({sent_end} was sent), found {found}"
        )
    });
}

impl FlowState {
    /// Returns the total of sent packets and bytes.
    fn sent(&self, flow: FlowId, details: &FlowDetails) -> TrafficBalance {
        let copies = details.copies.get(&flow).copied().unwrap_or_default();
        self.in_flight.plus(self.delivered).plus(details.dropped(flow).amount).minus(copies)
    }

    /// Returns whether sequence numbers have been set. (They are never all zero: after a SYN, `sent_end` is ahead of
    /// the initial number.)
    fn has_begun(&self) -> bool {
        (self.sent_end, self.delivered_end, self.delivered_span) != (0, 0, 0)
    }

    /// Sets the sequence numbers to begin at `first`; all numbers before `sent_end` have been sent, and none has been
    /// delivered.
    fn begin_at(&mut self, first: u32, sent_end: u32, delivered_span: u32) {
        self.sent_end = sent_end;
        self.delivered_end = first;
        self.delivered_span = delivered_span;
    }

    /// Processes a segment that may set the sequence numbers: a SYN, or the first observed segment.
    fn begin(&mut self, flow: FlowId, tcp: &TcpView, details: &mut FlowDetails) {
        if tcp.syn {
            // The initial sequence number is the lowest number that may be acknowledged.
            let initial = self.delivered_end.wrapping_sub(self.delivered_span);
            let begun = self.has_begun();
            if !begun || tcp.sequence != initial {
                if begun {
                    details.replaced_syn_ends.insert(flow, self.sent_end);
                }
                self.begin_at(tcp.sequence, tcp.sequence_end, 0);
            }
        } else if !self.has_begun() {
            self.begin_at(tcp.sequence, tcp.sequence_end, WINDOW);
        }
        self.content_sent(tcp);
    }

    #[inline(always)]
    fn content_sent(&mut self, tcp: &TcpView) {
        if has_content(tcp) && distance(tcp.sequence_end, self.sent_end) > 0 {
            self.sent_end = tcp.sequence_end;
        }
    }

    /// Returns whether an acknowledgment covers only delivered numbers.
    #[inline(always)]
    fn was_delivered(&self, acknowledgement: u32) -> bool {
        // Modulo 2^32, a number ahead of `delivered_end` is very far behind it.
        self.delivered_end.wrapping_sub(acknowledgement) <= self.delivered_span
    }

    #[inline(always)]
    fn content_delivered(&mut self, tcp: &TcpView) {
        let ahead = distance(tcp.sequence_end, self.delivered_end);
        if ahead > 0 {
            self.delivered_end = tcp.sequence_end;
            self.delivered_span = (self.delivered_span + ahead as u32).min(WINDOW);
        }
    }

    /// Counts a delivered packet. Returns false if `judge_delivered` must check the packet.
    #[inline(always)]
    pub(crate) fn accepts_delivered(
        &mut self,
        now: Instant,
        packet: &PacketView,
        sent: Instant,
        path: &MinimumPathDelay,
    ) -> bool {
        let amount = TrafficBalance::packet(packet.ip_bytes);
        self.in_flight.subtract(amount);
        self.delivered.add(amount);
        // Signed, because the delay of a packet that arrives before it was sent is negative.
        let delay_ns = now.as_nanos().wrapping_sub(sent.as_nanos()) as i64;
        let right = delay_ns >= path.least_ns(packet.ip_bytes) && !self.in_flight.is_negative();
        if let Some(tcp) = &packet.tcp
            && has_content(tcp)
        {
            if distance(self.sent_end, tcp.sequence_end) < 0 {
                return false;
            }
            self.content_delivered(tcp);
        }
        right
    }

    /// Checks a packet that `accepts_delivered` has counted.
    #[cold]
    #[inline(never)]
    pub(crate) fn judge_delivered(
        &mut self,
        now: Instant,
        packet: PacketView,
        sent: Instant,
        path: &MinimumPathDelay,
        details: &FlowDetails,
        log: &mut FailureLog,
    ) {
        let subject = Subject::Flow(packet.flow);
        let bytes = packet.ip_bytes;
        let least_ns = path.least_ns_of_any(bytes);
        if now < sent || now.saturating_since(sent).as_nanos() < least_ns {
            log.note(Rule::PathTime, subject, now, || {
                let (bytes, least) = (words::format_exact_bytes(bytes), words::format_exact_time(least_ns));
                let (sent, now) = (words::format_exact_time(sent.as_nanos()), words::format_exact_time(now.as_nanos()));
                format!(
                    "expected a packet of {bytes} sent at {sent} to take at least {least} over its path, found its delivery \
                     at {now}"
                )
            });
        }
        self.judge_balance(packet.flow, now, log);
        if let Some(tcp) = &packet.tcp
            && has_content(tcp)
            && distance(self.sent_end, tcp.sequence_end) < 0
        {
            let found = tcp.sequence_end;
            if details.replaced_syn_ends.get(&packet.flow) == Some(&found) {
                return;
            }
            let expected = self.sent_end;
            log.note(Rule::Sequence, subject, now, || {
                format!(
                    "expected segments to end at sequence number {expected} (the highest sent) or before, found {found}"
                )
            });
            self.content_delivered(tcp);
        }
    }

    fn judge_balance(&self, flow: FlowId, now: Instant, log: &mut FailureLog) {
        if self.in_flight.is_negative() {
            let (packets, bytes) = self.in_flight.parts();
            log.note(Rule::FlowConservation, Subject::Flow(flow), now, || {
                format!(
                    "expected deliveries and drops not to exceed the sent packets, found {} and {} more",
                    words::format_count(-packets, "packet"),
                    words::format_exact_bytes(-bytes)
                )
            });
        }
    }

    pub(crate) fn dropped(
        &mut self,
        now: Instant,
        packet: &PacketView,
        details: &mut FlowDetails,
        log: &mut FailureLog,
    ) {
        let amount = TrafficBalance::packet(packet.ip_bytes);
        self.in_flight.subtract(amount);
        let index = packet.flow.index();
        if index >= details.dropped.len() {
            details.dropped.resize(index + 1, DropTotals::default());
        }
        details.dropped[index].packets += 1;
        details.dropped[index].amount.add(amount);
        self.judge_balance(packet.flow, now, log);
    }

    /// Counts a copy that a link made, that is, a packet in flight that the source did not send.
    pub(crate) fn duplicated(&mut self, packet: &PacketView, details: &mut FlowDetails) {
        let amount = TrafficBalance::packet(packet.ip_bytes);
        self.in_flight.add(amount);
        details.copies.entry(packet.flow).or_default().add(amount);
    }

    /// Checks the balance at the end of the run. Returns the number of dropped packets.
    pub(crate) fn finish(
        &self,
        flow: FlowId,
        end: &FinalFlowState,
        details: &FlowDetails,
        log: &mut FailureLog,
    ) -> u64 {
        let subject = Subject::Flow(flow);
        if self.in_flight != TrafficBalance::of(end.in_flight_packets, end.in_flight_bytes) {
            let (packets, bytes) = self.in_flight.parts();
            log.note(Rule::FlowConservation, subject, Instant::NEVER, || {
                format!(
                    "expected {} and {} in flight (sent minus delivered and dropped), found {} and {}",
                    words::format_count(packets, "packet"),
                    words::format_exact_bytes(bytes),
                    words::format_count(end.in_flight_packets, "packet"),
                    words::format_exact_bytes(end.in_flight_bytes)
                )
            });
        }
        let dropped = details.dropped(flow);
        let Some(published) = end.published else { return dropped.packets };
        let more = |packets, bytes, own| TrafficBalance::of(packets, bytes).minus(own).parts();
        let tx = more(published.tx_packets, published.tx_bytes, self.sent(flow, details));
        let rx = more(published.rx_packets, published.rx_bytes, self.delivered);
        let lost = published.lost_packets.wrapping_sub(dropped.packets) as i64;
        for (what, found, more) in [
            ("tx_packets", published.tx_packets, tx.0),
            ("tx_bytes", published.tx_bytes, tx.1),
            ("rx_packets", published.rx_packets, rx.0),
            ("rx_bytes", published.rx_bytes, rx.1),
            ("lost_packets", published.lost_packets, lost),
        ] {
            if more != 0 {
                let expected = i128::from(found) - i128::from(more);
                log.note(Rule::Counters, subject, Instant::NEVER, || {
                    format!("expected {what} = {expected} in the records, found {found}")
                });
            }
        }
        dropped.packets
    }

    /// Returns whether any event of this flow was reported.
    pub(crate) fn was_seen(&self, flow: FlowId, details: &FlowDetails) -> bool {
        let nothing = TrafficBalance::default();
        (self.in_flight, self.delivered) != (nothing, nothing) || details.dropped(flow).packets > 0
    }
}
