//! One direction of a conversation under audit: constant state, one cache line.
//!
//! **Conservation.** What was delivered and dropped never exceeds what was sent; after the run, what is missing must be
//! in flight.
//!
//! **Sequence numbers** (RFC 9293 section 3.4: modulo 2^32, compared by their signed difference). `sent_end` and
//! `delivered_end` are the highest ends of segments with content that were sent and delivered. An acknowledgement from
//! the other side must lie between the first number of the conversation and `delivered_end`: nothing is acknowledged
//! that has not been sent and has not arrived. (Whether holes below it are filled takes more than constant state:
//! [`PacketAuditor`](crate::PacketAuditor).) A SYN begins the numbers; a later one with other numbers begins them anew.
//! A conversation whose beginning was not seen begins with its first segment, and then any older number passes.

use crate::declared::PathPromise;
use crate::verdict::{FailureLog, Rule, Subject};
use fullpipe_record::{FlowCounters, PacketView, TcpView};
use fullpipe_units::{FlowId, Instant};
use std::collections::BTreeMap;

/// What changes with every packet.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub(crate) struct FlowState {
    sent_packets: u64,
    sent_bytes: u64,
    delivered_packets: u64,
    delivered_bytes: u64,
    dropped_packets: u64,
    dropped_bytes: u64,
    /// Index of the path's promise.
    pub(crate) path: u32,
    sent_end: u32,
    delivered_end: u32,
    /// How far an acknowledgement may lie behind `delivered_end`: to the first number, at most `WINDOW`.
    delivered_span: u32,
}

/// Numbers further apart than this cannot be told from numbers ahead.
const WINDOW: u32 = i32::MAX as u32;

/// What few flows need.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exception {
    /// The numbers began with an acknowledgement from the other side, before anything was sent.
    begun_by_acknowledgement: bool,
    /// End of the SYN that a later SYN replaced; it may still be on its way.
    replaced_syn_end: Option<u32>,
}

/// Flows with an exception.
pub(crate) type Exceptions = BTreeMap<FlowId, Exception>;

/// Counters of a flow as the records publish them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent, at the IP layer.
    pub tx_bytes: u64,
    /// Packets received.
    pub rx_packets: u64,
    /// Bytes received, at the IP layer.
    pub rx_bytes: u64,
    /// Packets dropped on the way.
    pub lost_packets: u64,
    /// What only [`PacketAuditor`](crate::PacketAuditor) compares.
    pub times: PublishedTimes,
}

/// Times of a flow as the records publish them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublishedTimes {
    /// Sum of the delays of received packets, in nanoseconds.
    pub delay_sum_ns: u64,
    /// Sum of the absolute differences of successive delays, in nanoseconds.
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

impl From<&FlowCounters> for Published {
    fn from(counters: &FlowCounters) -> Self {
        Published {
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

/// What the world says of a flow when the run has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowEnd {
    /// Packets sent and neither delivered nor dropped: waiting anywhere, on a link, or in reassembly. To be counted where
    /// they are, not as a difference of counters, which would prove nothing.
    pub in_flight_packets: u64,
    /// Their bytes at the IP layer.
    pub in_flight_bytes: u64,
    /// What the records will say of the flow, if they say anything.
    pub published: Option<Published>,
}

/// How far `a` lies after `b` modulo 2^32; negative if before.
#[inline(always)]
fn distance(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

/// Whether a segment takes sequence numbers; one without says nothing about what was sent.
#[inline(always)]
fn has_content(tcp: &TcpView) -> bool {
    tcp.sequence_end != tcp.sequence
}

/// Counts a packet that `pair[side]` sent and takes an ordinary segment; false if it has to be judged.
#[inline(always)]
pub(crate) fn accepts_sent(pair: &mut [FlowState; 2], side: usize, packet: &PacketView) -> bool {
    let flow = &mut pair[side & 1];
    flow.sent_packets += 1;
    flow.sent_bytes += u64::from(packet.ip_bytes);
    let Some(tcp) = &packet.tcp else { return true };
    if tcp.syn || !tcp.has_ack || flow.sent_packets == 1 {
        return false;
    }
    flow.content_sent(tcp);
    pair[(side ^ 1) & 1].was_delivered(tcp.acknowledgement)
}

/// Judges a segment that `accepts_sent` has counted.
#[inline(never)]
pub(crate) fn judge_sent(
    pair: &mut [FlowState; 2],
    now: Instant,
    packet: &PacketView,
    exceptions: &mut Exceptions,
    log: &mut FailureLog,
) {
    let Some(tcp) = &packet.tcp else { return };
    let side = packet.flow.index() & 1;
    pair[side].begin(packet.flow, tcp, exceptions);
    let first = pair[side].sent_packets == 1;
    let other_flow = packet.flow.reverse();
    let other = &mut pair[side ^ 1];
    if !tcp.has_ack || other.was_delivered(tcp.acknowledgement) {
        return;
    }
    let exception = exceptions.get(&other_flow);
    if exception.is_some_and(|exception| exception.replaced_syn_end == Some(tcp.acknowledgement)) {
        return;
    }
    if first && !tcp.syn && other.sent_packets == 0 && exception.is_none() {
        other.begin_at(tcp.acknowledgement, tcp.acknowledgement, WINDOW);
        exceptions.entry(other_flow).or_default().begun_by_acknowledgement = true;
        return;
    }
    let (found, sent) = (tcp.acknowledgement, other.sent_packets);
    let (highest, sent_end) = (other.delivered_end, other.sent_end);
    log.note(Rule::Acknowledgement, Subject::Flow(packet.flow), now, || {
        if sent == 0 {
            return format!("expected no acknowledgement of flow {other_flow}, which sent nothing, found one of {found}");
        }
        format!(
            "expected an acknowledgement of at most {highest}, the highest sequence number delivered of flow {other_flow} \
             ({sent_end} was sent), found {found}"
        )
    });
}

impl FlowState {
    /// Begins the numbers at `first`, of which everything before `sent_end` has been sent and nothing delivered.
    fn begin_at(&mut self, first: u32, sent_end: u32, delivered_span: u32) {
        self.sent_end = sent_end;
        self.delivered_end = first;
        self.delivered_span = delivered_span;
    }

    /// A segment that may begin the numbers: the first one seen, a SYN, or one without acknowledgement.
    fn begin(&mut self, flow: FlowId, tcp: &TcpView, exceptions: &mut Exceptions) {
        let first = self.sent_packets == 1;
        let known = exceptions.get(&flow).is_some_and(|exception| exception.begun_by_acknowledgement);
        if tcp.syn {
            // The first number is where an acknowledgement may lie furthest behind.
            let initial = self.delivered_end.wrapping_sub(self.delivered_span);
            if first || tcp.sequence != initial {
                if !first {
                    exceptions.entry(flow).or_default().replaced_syn_end = Some(self.sent_end);
                }
                self.begin_at(tcp.sequence, tcp.sequence_end, 0);
            }
        } else if first && !known {
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

    /// Whether an acknowledgement speaks of delivered numbers.
    #[inline(always)]
    fn was_delivered(&self, acknowledgement: u32) -> bool {
        // One that lies ahead is, modulo 2^32, very far behind.
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

    /// More delivered and dropped than sent?
    #[inline(always)]
    fn overdrawn(&self) -> bool {
        self.delivered_packets + self.dropped_packets > self.sent_packets
            || self.delivered_bytes + self.dropped_bytes > self.sent_bytes
    }

    /// Counts a delivered packet; false if it has to be judged.
    #[inline(always)]
    pub(crate) fn accepts_delivered(
        &mut self,
        now: Instant,
        packet: &PacketView,
        sent: Instant,
        path: &PathPromise,
    ) -> bool {
        self.delivered_packets += 1;
        self.delivered_bytes += u64::from(packet.ip_bytes);
        // Signed: a packet that arrives before it was sent takes less than no time.
        let delay_ns = now.as_nanos().wrapping_sub(sent.as_nanos()) as i64;
        let mut right = delay_ns >= path.least_ns(packet.ip_bytes) && !self.overdrawn();
        if let Some(tcp) = &packet.tcp
            && has_content(tcp)
        {
            if distance(self.sent_end, tcp.sequence_end) >= 0 {
                self.content_delivered(tcp);
            } else {
                right = false;
            }
        }
        right
    }

    /// Judges a packet that `accepts_delivered` has counted.
    #[inline(never)]
    pub(crate) fn judge_delivered(
        &mut self,
        now: Instant,
        packet: &PacketView,
        sent: Instant,
        path: &PathPromise,
        exceptions: &Exceptions,
        log: &mut FailureLog,
    ) {
        let subject = Subject::Flow(packet.flow);
        let bytes = packet.ip_bytes;
        let least_ns = path.least_ns_of_any(bytes);
        if now < sent || now.saturating_since(sent).as_nanos() < least_ns {
            let (sent_ns, now_ns) = (sent.as_nanos(), now.as_nanos());
            log.note(Rule::PathTime, subject, now, || {
                format!(
                    "expected {bytes} bytes sent at {sent_ns} ns to take at least {least_ns} ns over their path, found \
                     them delivered at {now_ns} ns"
                )
            });
        }
        self.judge_balance(packet.flow, now, log);
        if let Some(tcp) = &packet.tcp
            && has_content(tcp)
            && distance(self.sent_end, tcp.sequence_end) < 0
        {
            let found = tcp.sequence_end;
            if exceptions.get(&packet.flow).is_some_and(|exception| exception.replaced_syn_end == Some(found)) {
                return;
            }
            let expected = self.sent_end;
            log.note(Rule::Sequence, subject, now, || {
                format!("expected segments that end at {expected}, the highest number sent, or before, found {found}")
            });
            self.content_delivered(tcp);
        }
    }

    fn judge_balance(&self, flow: FlowId, now: Instant, log: &mut FailureLog) {
        if self.overdrawn() {
            log.note(Rule::FlowConservation, Subject::Flow(flow), now, || {
                format!(
                    "expected at most {} packets and {} bytes delivered and dropped, as many as were sent, found {} \
                     packets and {} bytes delivered and {} packets and {} bytes dropped",
                    self.sent_packets,
                    self.sent_bytes,
                    self.delivered_packets,
                    self.delivered_bytes,
                    self.dropped_packets,
                    self.dropped_bytes
                )
            });
        }
    }

    pub(crate) fn dropped(&mut self, now: Instant, packet: &PacketView, log: &mut FailureLog) {
        self.dropped_packets += 1;
        self.dropped_bytes += u64::from(packet.ip_bytes);
        self.judge_balance(packet.flow, now, log);
    }

    /// The balance after the run.
    pub(crate) fn finish(&self, flow: FlowId, end: &FlowEnd, log: &mut FailureLog) {
        let subject = Subject::Flow(flow);
        for (what, sent, delivered, dropped, in_flight) in [
            ("packets", self.sent_packets, self.delivered_packets, self.dropped_packets, end.in_flight_packets),
            ("bytes", self.sent_bytes, self.delivered_bytes, self.dropped_bytes, end.in_flight_bytes),
        ] {
            if (delivered + dropped).checked_add(in_flight) != Some(sent) {
                log.note(Rule::FlowConservation, subject, Instant::NEVER, || {
                    format!(
                        "expected {sent} {what} sent to be found again, found {delivered} delivered + {dropped} dropped \
                         + {in_flight} in flight"
                    )
                });
            }
        }
        let Some(published) = end.published else { return };
        for (what, expected, found) in [
            ("tx_packets", self.sent_packets, published.tx_packets),
            ("tx_bytes", self.sent_bytes, published.tx_bytes),
            ("rx_packets", self.delivered_packets, published.rx_packets),
            ("rx_bytes", self.delivered_bytes, published.rx_bytes),
            ("lost_packets", self.dropped_packets, published.lost_packets),
        ] {
            if expected != found {
                log.note(Rule::Counters, subject, Instant::NEVER, || {
                    format!("expected the records to say {what} = {expected}, found {found}")
                });
            }
        }
    }

    pub(crate) fn sent_packets(&self) -> u64 {
        self.sent_packets
    }

    pub(crate) fn delivered_packets(&self) -> u64 {
        self.delivered_packets
    }

    pub(crate) fn dropped_packets(&self) -> u64 {
        self.dropped_packets
    }

    /// Whether any event named this flow.
    pub(crate) fn was_seen(&self) -> bool {
        self.sent_packets + self.delivered_packets + self.dropped_packets > 0
    }
}
