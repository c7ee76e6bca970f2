//! Acknowledged mode of one direction, with both ends (TS 36.322, clauses 5.1.3 and 5.2).
//!
//! **Sending.** The sender keeps the PDUs from VT(A), the first unacknowledged one, to VT(S), the next new one. These
//! are at most 512. PDUs that a STATUS report lists as missing are retransmitted before new data. A PDU with a poll
//! requests a report. The sender polls after a number of PDUs or bytes, when no data is left to send, and when the
//! window is full. If t-PollRetransmit expires without an answer, all unacknowledged PDUs are retransmitted, if there
//! is nothing else to send.
//!
//! **Receiving.** VR(R) is the first missing PDU, and VR(H) is the PDU after the latest received one. A missing PDU is
//! reported when t-Reordering has passed since a later one arrived. Up to VR(MS), each PDU is known to have arrived or
//! to be missing. VR(X) is the value of VR(H) when the timer was started. A poll is answered when VR(MS) has passed its
//! PDU, and not earlier than t-StatusProhibit after the last answer.
//!
//! As in the reference model (ns-3's `lte` module), and unlike the specification or a real network:
//!
//! * every PDU polls (pollPDU 1; [`AmConfig`] can change it);
//! * a PDU is retransmitted as a whole. Nothing is sent until a transmission opportunity is large enough. There is no
//!   re-segmentation, although the header includes its fields;
//! * a transmission opportunity is for one PDU. After a STATUS report, data therefore waits for the next opportunity;
//! * a PDU that exceeds the number of retransmissions has no consequence unless configured;
//! * a copy of a PDU that arrives when VR(R) has passed it by half of all sequence numbers is recognized as a
//!   duplicate. The specification's receiver accepts it as a new PDU, and its later reports refer to a window that
//!   differs from the sender's.
//!
//! Unlike the reference model:
//!
//! * the buffer status counts new data, PDUs to retransmit and a STATUS report (TS 36.322, clause 4.5). The reference
//!   model also counts PDUs that wait for acknowledgment, for which its scheduler allocates resource blocks that stay
//!   empty;
//! * MAC receives a buffer status report as soon as a delayed STATUS report may be sent, or retransmissions are
//!   required. Without HARQ the mean delay is 63 % lower than in ns-3 3.44.

use super::queue::{Queue, Reassembler};
use super::sequence::WINDOW;
use super::{AmConfig, Pdu, RlcConfig, SduOutcome};
use fullpipe_units::Instant;
use std::collections::VecDeque;

/// The distance from `from` to `to`. On the air sequence numbers are modulo 1024; here they are modulo 2^16.
#[inline]
const fn distance(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from)
}

/// The number that is `by` after `sn`.
#[inline]
const fn after(sn: u16, by: u16) -> u16 {
    sn.wrapping_add(by)
}

/// Bytes of a data PDU's header, including the re-segmentation fields.
pub(super) const HEADER_BYTES: u32 = 4;
/// Smallest opportunity for a new PDU, in bytes.
const LEAST_BYTES: u32 = 7;
/// Bytes of a STATUS report without a missing PDU.
pub(super) const STATUS_BYTES: u32 = 2;
/// Number of STATUS reports whose content is kept. An older report has no effect.
const REPORTS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Sent; no feedback yet.
    Unacknowledged,
    /// To be retransmitted.
    Queued,
    /// Received.
    Acknowledged,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    pdu: Pdu,
    state: State,
    /// Number of times that it was reported missing: RETX_COUNT + 1.
    missed: u32,
}

/// The content of a STATUS report.
#[derive(Clone, Copy, Debug)]
struct Report {
    number: u32,
    /// VR(R) when the report was created.
    start: u16,
    /// ACK_SN: all earlier PDUs have been received, except
    end: u16,
    /// these: bit k is `start` + k.
    missing: [u64; WINDOW as usize / 64],
}

/// Bytes of a STATUS report about `missing` PDUs: 15 bits plus 12 for each.
const fn status_bytes(missing: u32) -> u32 {
    (15 + 12 * missing).div_ceil(8)
}

/// The reports that MAC must receive.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimerActions {
    /// A report to the sender's MAC.
    pub(super) data: bool,
    /// A report to the receiver's MAC, about a STATUS report.
    pub(super) status: bool,
}

#[derive(Clone, Debug)]
pub(super) struct AmEntity {
    /// PDUs from VT(A) to before VT(S).
    window: VecDeque<Sent>,
    /// VT(A).
    oldest: u16,
    /// Bytes of PDUs to retransmit.
    queued_bytes: u64,
    pdus_without_poll: u32,
    bytes_without_poll: u32,
    /// Whether the next PDU polls.
    poll_due: bool,
    /// POLL_SN.
    poll: u16,
    poll_at: Instant,
    report_at: Instant,
    /// Number of PDUs that exceeded the number of retransmissions.
    pub(super) exhausted: u64,

    /// VR(R).
    expected: u16,
    /// VR(MS).
    settled: u16,
    /// VR(X).
    trigger: u16,
    /// VR(H).
    highest: u16,
    reorder_at: Instant,
    /// Received PDUs after VR(R), in order.
    held: VecDeque<Pdu>,
    reassembler: Reassembler,
    status_due: bool,
    /// When t-StatusProhibit expires; the start of the run if it is not running.
    prohibit_until: Instant,
    reports: Vec<Report>,
    reports_sent: u32,
}

impl Default for AmEntity {
    fn default() -> AmEntity {
        AmEntity {
            window: VecDeque::new(),
            oldest: 0,
            queued_bytes: 0,
            pdus_without_poll: 0,
            bytes_without_poll: 0,
            poll_due: false,
            poll: 0,
            poll_at: Instant::NEVER,
            report_at: Instant::NEVER,
            exhausted: 0,
            expected: 0,
            settled: 0,
            trigger: 0,
            highest: 0,
            reorder_at: Instant::NEVER,
            held: VecDeque::new(),
            reassembler: Reassembler::default(),
            status_due: false,
            prohibit_until: Instant::ZERO,
            reports: Vec::new(),
            reports_sent: 0,
        }
    }
}

impl AmEntity {
    #[inline]
    pub(super) fn next_timer(&self) -> Instant {
        let prohibited = self.status_due && self.prohibit_until != Instant::ZERO;
        let status_at = if prohibited { self.prohibit_until } else { Instant::NEVER };
        self.reorder_at.min(self.poll_at).min(self.report_at).min(status_at)
    }

    #[inline]
    pub(super) fn offered(&mut self, again: Instant) {
        self.report_at = again;
    }

    /// Bytes of PDUs to retransmit.
    #[inline]
    pub(super) fn retransmission_bytes(&self) -> u64 {
        self.queued_bytes
    }

    /// Bytes of the STATUS report that may be sent now.
    #[inline]
    pub(super) fn status_bytes(&self) -> u32 {
        if !self.status_due || self.prohibit_until != Instant::ZERO {
            return 0;
        }
        let span = distance(self.expected, self.settled);
        let come = self.held.iter().take_while(|pdu| distance(self.expected, pdu.sn) < span).count();
        status_bytes(u32::from(span) - come as u32)
    }

    fn is_full(&self) -> bool {
        self.window.len() == usize::from(WINDOW)
    }

    /// Uses an opportunity of the sender for a retransmission, or for new data.
    #[inline]
    pub(super) fn opportunity(&mut self, queue: &mut Queue, now: Instant, bytes: u32, how: &AmConfig) -> Option<Pdu> {
        let mut pdu = if self.queued_bytes > 0 {
            let queued = self
                .window
                .iter_mut()
                .find(|sent| sent.state == State::Queued)
                .expect("queued bytes belong to a queued PDU");
            if queued.pdu.bytes > bytes {
                return None;
            }
            queued.state = State::Unacknowledged;
            self.queued_bytes -= u64::from(queued.pdu.bytes);
            Pdu { flags: queued.pdu.flags | Pdu::AGAIN, ..queued.pdu }
        } else {
            if bytes < LEAST_BYTES || queue.is_empty() || self.is_full() {
                return None;
            }
            let sn = after(self.oldest, self.window.len() as u16);
            let pdu = queue.fill(HEADER_BYTES, bytes, sn);
            self.window.push_back(Sent { pdu, state: State::Unacknowledged, missed: 0 });
            self.pdus_without_poll += 1;
            self.bytes_without_poll = self.bytes_without_poll.saturating_add(pdu.payload_bytes);
            self.poll_due |=
                self.pdus_without_poll >= how.poll_after_pdus || self.bytes_without_poll >= how.poll_after_bytes;
            pdu
        };
        if self.poll_due || (queue.is_empty() && self.queued_bytes == 0) || self.is_full() {
            pdu.flags |= Pdu::POLL;
            (self.poll_due, self.pdus_without_poll, self.bytes_without_poll) = (false, 0, 0);
            self.poll = after(self.oldest, self.window.len() as u16 - 1);
            self.poll_at = now.saturating_add(how.poll_retransmit);
        }
        Some(pdu)
    }

    /// Queues a missing PDU for retransmission.
    fn miss(&mut self, k: usize, how: &AmConfig) {
        let sent = &mut self.window[k];
        sent.state = State::Queued;
        sent.missed += 1;
        self.exhausted += u64::from(sent.missed == how.max_retransmissions + 1);
        self.queued_bytes += u64::from(sent.pdu.bytes);
    }

    /// Handles a STATUS report at the sender. Returns whether the PDUs to retransmit have changed.
    #[inline]
    pub(super) fn acknowledged(&mut self, queue: &Queue, status: &Pdu, how: &AmConfig) -> bool {
        let report = self.reports[status.first as usize % REPORTS];
        let reported = distance(self.oldest, report.end);
        if report.number != status.first || usize::from(reported) > self.window.len() {
            return false;
        }
        let mut changed = false;
        for k in 0..reported {
            let sn = after(self.oldest, k);
            if sn == self.poll {
                self.poll_at = Instant::NEVER;
            }
            let bit = distance(report.start, sn);
            let missing = bit < WINDOW && report.missing[usize::from(bit / 64)] >> (bit % 64) & 1 == 1;
            let sent = &mut self.window[usize::from(k)];
            match (sent.state, missing) {
                (State::Unacknowledged, true) => {
                    self.miss(usize::from(k), how);
                    changed = true;
                }
                (State::Queued, false) => {
                    self.queued_bytes -= u64::from(sent.pdu.bytes);
                    changed = true;
                }
                (State::Unacknowledged, false) | (State::Queued, true) | (State::Acknowledged, _) => {}
            }
            if !missing {
                self.window[usize::from(k)].state = State::Acknowledged;
            }
        }
        while self.window.front().is_some_and(|sent| sent.state == State::Acknowledged) {
            self.window.pop_front();
            self.oldest = after(self.oldest, 1);
        }
        if queue.is_empty() && self.window.is_empty() {
            self.report_at = Instant::NEVER;
        }
        changed
    }

    /// Handles a data PDU at the receiver. Returns whether its MAC must receive a report about a STATUS report.
    #[inline]
    pub(super) fn receive(
        &mut self,
        queue: &mut Queue,
        pdu: Pdu,
        now: Instant,
        limits: &RlcConfig,
        out: &mut Vec<SduOutcome>,
    ) -> bool {
        let sn = pdu.sn;
        let mut polled = pdu.is(Pdu::POLL);
        if sn == self.expected && self.expected == self.highest {
            // Nothing is missing, so nothing is held and no timer is running.
            self.reassembler.pass(queue, &pdu, out);
            self.expected = after(sn, 1);
            self.highest = self.expected;
            self.settled = self.expected;
            return polled && self.ask(now);
        }
        let ahead = distance(self.expected, sn);
        let place = self.held.iter().rposition(|held| distance(self.expected, held.sn) <= ahead).map_or(0, |k| k + 1);
        if ahead >= WINDOW || (place > 0 && self.held[place - 1].sn == sn) {
            return polled && self.ask(now);
        }
        self.held.insert(place, pdu);
        if ahead >= distance(self.expected, self.highest) {
            self.highest = after(sn, 1);
        }
        if ahead >= distance(self.expected, self.settled) {
            // Answers its poll, if it has one, and the polls of PDUs that waited for it.
            polled = sn == self.settled && self.settle(place);
        }
        while self.held.front().is_some_and(|pdu| pdu.sn == self.expected) {
            let pdu = self.held.pop_front().expect("a PDU is held");
            self.reassembler.pass(queue, &pdu, out);
            self.expected = after(self.expected, 1);
        }
        let trigger = distance(self.expected, self.trigger);
        if trigger == 0 || trigger > WINDOW {
            self.reorder_at = Instant::NEVER;
        }
        if self.reorder_at.is_never() && self.highest != self.expected {
            self.reorder_at = now.saturating_add(limits.reordering);
            self.trigger = self.highest;
        }
        polled && self.ask(now)
    }

    /// Advances VR(MS) over held PDUs from index `place` on. Returns whether one of them polls.
    fn settle(&mut self, place: usize) -> bool {
        let mut polled = false;
        for pdu in self.held.range(place..) {
            if pdu.sn != self.settled {
                break;
            }
            polled |= pdu.is(Pdu::POLL);
            self.settled = after(self.settled, 1);
        }
        polled
    }

    /// Requests a STATUS report. Returns whether it may be sent now.
    fn ask(&mut self, now: Instant) -> bool {
        self.status_due = true;
        if self.prohibit_until <= now {
            self.prohibit_until = Instant::ZERO;
        }
        self.prohibit_until == Instant::ZERO
    }

    /// Whether a STATUS report is sent before anything else.
    #[inline]
    pub(super) fn status_goes_first(&self, now: Instant) -> bool {
        self.status_due && self.prohibit_until <= now
    }

    /// Creates a STATUS report with as many missing PDUs as fit.
    pub(super) fn status(&mut self, now: Instant, bytes: u32, how: &AmConfig) -> Option<Pdu> {
        if bytes < STATUS_BYTES {
            return None;
        }
        let mut report =
            Report { number: self.reports_sent, start: self.expected, end: self.expected, missing: Default::default() };
        let (mut held, mut missing) = (self.held.iter().peekable(), 0);
        while report.end != self.settled {
            if held.next_if(|pdu| pdu.sn == report.end).is_none() {
                if status_bytes(missing + 1) > bytes {
                    break;
                }
                missing += 1;
                let bit = distance(report.start, report.end);
                report.missing[usize::from(bit / 64)] |= 1 << (bit % 64);
            }
            report.end = after(report.end, 1);
        }
        match self.reports.get_mut(report.number as usize % REPORTS) {
            Some(old) => *old = report,
            None => self.reports.push(report),
        }
        self.reports_sent = self.reports_sent.wrapping_add(1);
        self.status_due = false;
        self.prohibit_until = now.saturating_add(how.status_prohibit);
        let bytes = status_bytes(missing);
        Some(Pdu { bytes, payload_bytes: 0, first: report.number, segments: 0, sn: 0, flags: Pdu::STATUS, epoch: 0 })
    }

    pub(super) fn expire(&mut self, queue: &Queue, now: Instant, limits: &RlcConfig) -> TimerActions {
        let mut expired = TimerActions::default();
        if self.reorder_at <= now {
            self.reorder_at = Instant::NEVER;
            self.settled = self.trigger;
            let ahead = distance(self.expected, self.trigger);
            let place = self.held.partition_point(|pdu| distance(self.expected, pdu.sn) < ahead);
            self.settle(place);
            if self.highest != self.settled {
                self.reorder_at = now.saturating_add(limits.reordering);
                self.trigger = self.highest;
            }
            expired.status |= self.ask(now);
        }
        if self.poll_at <= now {
            self.poll_at = Instant::NEVER;
            self.poll_due = true;
            expired.data = true;
        }
        // A poll requires a PDU. (The new data that should have carried the poll may have been discarded.)
        if self.poll_due && ((queue.is_empty() && self.queued_bytes == 0) || self.is_full()) {
            for k in 0..self.window.len() {
                if self.window[k].state == State::Unacknowledged {
                    self.miss(k, &limits.acknowledgement);
                    expired.data = true;
                }
            }
        }
        if self.status_due && self.prohibit_until != Instant::ZERO && self.prohibit_until <= now {
            self.prohibit_until = Instant::ZERO;
            expired.status = true;
        }
        if self.report_at <= now {
            // The timer continues while PDUs wait for acknowledgment, as they may have to be retransmitted.
            let open = !queue.is_empty() || !self.window.is_empty();
            self.report_at = if open { now.saturating_add(limits.report_again) } else { Instant::NEVER };
            expired.data |= !queue.is_empty() || self.queued_bytes > 0;
        }
        expired
    }

    pub(super) fn reestablish(&mut self, queue: &mut Queue, out: &mut Vec<SduOutcome>) {
        for pdu in &self.held {
            self.reassembler.pass(queue, pdu, out);
        }
        *self = AmEntity::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, loaded, sdu, told, unlimited};
    use super::super::{Bearer, BufferStatus, DueReports, LinkDirection, Machine, Pdu, RlcConfig, RlcMode, Sdu};
    use super::*;
    use LinkDirection::{Downlink, Uplink};
    use fullpipe_units::Duration;

    const NOTHING: DueReports = DueReports { report: [false, false] };
    const DOWN: DueReports = DueReports { report: [true, false] };
    const UP: DueReports = DueReports { report: [false, true] };

    /// A bearer, and `count` PDUs of one SDU of 8 bytes each, one per ms.
    fn sent(count: usize) -> (Bearer, Vec<Pdu>) {
        let mut bearer = loaded(RlcMode::Acknowledged, &vec![8; count]);
        let pdus = (0..count).map(|k| bearer.on_transmit_opportunity(Downlink, at(k as u64), 12).unwrap()).collect();
        (bearer, pdus)
    }

    /// Number of unacknowledged downlink PDUs, including those to retransmit.
    fn unacknowledged(bearer: &Bearer) -> usize {
        let Machine::Acknowledged(paths) = &bearer.machine else { unreachable!("AM") };
        paths[0].window.iter().filter(|sent| sent.state != State::Acknowledged).count()
    }

    /// Bytes of new data and retransmissions of the downlink, and of a STATUS report about it.
    fn waiting(bearer: &Bearer) -> (u32, u32, u32) {
        let report = bearer.buffer_status(Downlink);
        (report.new_data_bytes, report.retransmission_bytes, bearer.buffer_status(Uplink).status_bytes)
    }

    #[test]
    fn segments_have_the_sizes_of_the_specification() {
        let sizes = |size, opportunities: &[u32]| -> Vec<Option<u32>> {
            let mut bearer = loaded(RlcMode::Acknowledged, &[size]);
            opportunities
                .iter()
                .map(|&b| bearer.on_transmit_opportunity(Downlink, at(0), b).map(|p| p.payload_bytes))
                .collect()
        };
        assert_eq!(sizes(26, &[30]), [Some(26)]);
        assert_eq!(sizes(27, &[12, 12, 12, 7]), [Some(8), Some(8), Some(8), Some(3)]);
        assert_eq!(sizes(27, &[6, 7]), [None, Some(3)]);
    }

    #[test]
    fn status_report_has_2_bytes_and_1_5_per_missing_pdu() {
        // 15 + 12 n bits, rounded up to whole bytes.
        assert_eq!([0, 1, 2, 3, 4].map(status_bytes), [2, 4, 5, 7, 8]);
    }

    #[test]
    fn acknowledged_data_are_removed() {
        let mut bearer = loaded(RlcMode::Acknowledged, &[100]);
        let mut out = vec![];
        assert_eq!(waiting(&bearer), (100, 0, 0));
        // Offered at 0: the next report is at 20 ms.
        assert_eq!(bearer.next_timer(), at(20));
        let pdu = bearer.on_transmit_opportunity(Downlink, at(2), 1000).unwrap();
        assert_eq!(pdu.bytes, 104);
        // PDUs that wait for acknowledgment are not data to send.
        assert_eq!((waiting(&bearer), unacknowledged(&bearer)), ((0, 0, 0), 1));
        assert_eq!(bearer.on_transmit_opportunity(Downlink, at(3), 1000), None);
        assert_eq!(bearer.receive(Downlink, at(5), pdu, &mut out), UP);
        assert_eq!(told(&mut out), [0]);
        assert_eq!(waiting(&bearer), (0, 0, 2));
        assert_eq!(bearer.on_transmit_opportunity(Uplink, at(9), 1), None);
        let status = bearer.on_transmit_opportunity(Uplink, at(9), 100).unwrap();
        assert_eq!((status.bytes, status.is_status()), (2, true));
        assert_eq!(bearer.receive(Uplink, at(10), status, &mut out), NOTHING);
        assert_eq!((waiting(&bearer), unacknowledged(&bearer)), ((0, 0, 0), 0));
        assert_eq!(bearer.next_timer(), Instant::NEVER);
        assert_eq!(bearer.counters(Uplink).status_pdus, 1);
        assert_eq!(bearer.counters(Downlink).pdus_retransmitted, 0);
    }

    #[test]
    fn unanswered_poll_retransmits_everything_after_20_ms() {
        let (mut bearer, pdus) = sent(2);
        let mut out = vec![];
        // The last poll was at 1 ms. At 20 ms there is nothing to report.
        assert_eq!(bearer.next_timer(), at(20));
        assert_eq!(bearer.expire(at(20), &mut out), NOTHING);
        assert_eq!(bearer.on_transmit_opportunity(Downlink, at(20), 100), None);
        assert_eq!(bearer.next_timer(), at(21));
        assert_eq!(bearer.expire(at(21), &mut out), DOWN);
        assert_eq!(waiting(&bearer), (0, 24, 0));
        // A PDU is retransmitted as a whole or not at all.
        assert_eq!(bearer.on_transmit_opportunity(Downlink, at(22), 11), None);
        let again: Vec<Pdu> =
            [22, 23].map(|ms| bearer.on_transmit_opportunity(Downlink, at(ms), 100).unwrap()).to_vec();
        assert_eq!([again[0].sn, again[1].sn], [0, 1]);
        assert_eq!(bearer.on_transmit_opportunity(Downlink, at(24), 100), None);
        assert_eq!(bearer.counters(Downlink).pdus_retransmitted, 2);
        // Both poll: the first because the timer expired, the last because nothing is left.
        assert!(again.iter().all(|pdu| pdu.is(Pdu::POLL)));
        assert_eq!(bearer.receive(Downlink, at(26), again[0], &mut out), UP);
        assert_eq!(bearer.receive(Downlink, at(26), again[1], &mut out), UP);
        // One of the first transmissions arrives late. It has no effect, but its poll is answered.
        assert_eq!(bearer.receive(Downlink, at(27), pdus[0], &mut out), UP);
        assert_eq!(told(&mut out), [0, 1]);
        let status = bearer.on_transmit_opportunity(Uplink, at(28), 100).unwrap();
        let _ = bearer.receive(Uplink, at(29), status, &mut out);
        assert_eq!(waiting(&bearer), (0, 0, 0));
    }

    #[test]
    fn overtaken_pdu_is_reported_missing_after_10_ms() {
        let (mut bearer, pdus) = sent(4);
        let mut out = vec![];
        assert_eq!(bearer.receive(Downlink, at(4), pdus[0], &mut out), UP);
        let first = bearer.on_transmit_opportunity(Uplink, at(4), 100).unwrap();
        // 1 is missing. 2 polls, but the answer waits until 1 is known to be missing.
        assert_eq!(bearer.receive(Downlink, at(5), pdus[2], &mut out), NOTHING);
        assert_eq!(bearer.receive(Downlink, at(6), pdus[3], &mut out), NOTHING);
        assert_eq!(told(&mut out), [0]);
        assert_eq!(bearer.next_timer(), at(15));
        let _ = bearer.receive(Uplink, at(8), first, &mut out);
        assert_eq!((waiting(&bearer), unacknowledged(&bearer)), ((0, 0, 0), 3));
        // VR(X) = 3, so VR(MS) = 4 as 3 has arrived too; VR(H) = 4: no further timer.
        assert_eq!(bearer.expire(at(15), &mut out), UP);
        assert_eq!(waiting(&bearer), (0, 0, 4));
        // Without room for the missing PDU, only earlier PDUs are acknowledged.
        let small = bearer.clone().on_transmit_opportunity(Uplink, at(16), 3).unwrap();
        assert_eq!(small.bytes, 2);
        let status = bearer.on_transmit_opportunity(Uplink, at(16), 100).unwrap();
        assert_eq!(status.bytes, 4);
        // 2 and 3 are acknowledged.
        assert_eq!(bearer.receive(Uplink, at(20), status, &mut out), DOWN);
        assert_eq!((waiting(&bearer), unacknowledged(&bearer)), ((0, 12, 0), 1));
        let again = bearer.on_transmit_opportunity(Downlink, at(21), 100).unwrap();
        assert_eq!(again.sn, 1);
        // The second report was at 16 ms, so the next may be sent at 26.
        assert_eq!(bearer.receive(Downlink, at(24), again, &mut out), NOTHING);
        assert_eq!(told(&mut out), [1, 2, 3]);
        assert_eq!(bearer.on_transmit_opportunity(Uplink, at(25), 100), None);
        let _ = bearer.expire(at(20), &mut out);
        assert_eq!(bearer.next_timer(), at(26));
        assert_eq!(bearer.expire(at(26), &mut out), UP);
        let last = bearer.on_transmit_opportunity(Uplink, at(26), 100).unwrap();
        let _ = bearer.receive(Uplink, at(27), last, &mut out);
        assert_eq!(waiting(&bearer), (0, 0, 0));
        // The repeated report finds nothing to report; no other timer is running.
        assert_eq!(bearer.next_timer(), Instant::NEVER);
    }

    #[test]
    fn status_report_with_little_room_lists_the_first_missing_pdus() {
        let (mut bearer, pdus) = sent(8);
        let mut out = vec![];
        let _ = bearer.receive(Downlink, at(10), pdus[7], &mut out);
        let _ = bearer.receive(Downlink, at(11), pdus[2], &mut out);
        assert_eq!(bearer.expire(at(20), &mut out), UP);
        // 0, 1, 3, 4, 5, 6 are missing: 15 + 72 bits are 11 bytes. 7 bytes have room for three: ACK_SN is 4.
        assert_eq!(waiting(&bearer).2, 11);
        let status = bearer.on_transmit_opportunity(Uplink, at(20), 7).unwrap();
        assert_eq!(status.bytes, 7);
        let _ = bearer.receive(Uplink, at(21), status, &mut out);
        assert_eq!(waiting(&bearer).1, 3 * 12);
        let again: Vec<u16> =
            (21..30).map_while(|ms| bearer.on_transmit_opportunity(Downlink, at(ms), 12)).map(|pdu| pdu.sn).collect();
        assert_eq!(again, [0, 1, 3]);
        // 2 was acknowledged.
        assert_eq!((waiting(&bearer).1, unacknowledged(&bearer)), (0, 7));
    }

    /// The receiver lacks 0. A timeout queues all four for retransmission before its report arrives, which acknowledges
    /// the other three. MAC receives a report about the reduced amount.
    #[test]
    fn mac_receives_a_report_when_retransmissions_become_unnecessary() {
        let (mut bearer, pdus) = sent(4);
        let mut out = vec![];
        for &pdu in &pdus[1..] {
            let _ = bearer.receive(Downlink, at(4), pdu, &mut out);
        }
        let _ = bearer.expire(at(14), &mut out);
        let status = bearer.on_transmit_opportunity(Uplink, at(14), 100).unwrap();
        // The last poll was at 3 ms.
        let _ = bearer.expire(at(23), &mut out);
        assert_eq!(waiting(&bearer).1, 4 * 12);
        assert_eq!(bearer.receive(Uplink, at(24), status, &mut out), DOWN);
        assert_eq!(waiting(&bearer).1, 12);
    }

    #[test]
    fn status_reports_precede_retransmissions_which_precede_new_data() {
        let (mut bearer, pdus) = sent(2);
        let mut out = vec![];
        bearer.offer(Downlink, sdu(50, 2));
        bearer.offer(Uplink, sdu(50, 3));
        let _ = bearer.receive(Downlink, at(4), pdus[1], &mut out);
        let _ = bearer.expire(at(14), &mut out);
        let status = bearer.on_transmit_opportunity(Uplink, at(14), 100).unwrap();
        assert!(status.is_status());
        let up = bearer.on_transmit_opportunity(Uplink, at(14), 100).unwrap();
        let _ = bearer.receive(Uplink, at(18), status, &mut out);
        let _ = bearer.receive(Uplink, at(18), up, &mut out);
        let down: Vec<Pdu> = (0..3).map(|_| bearer.on_transmit_opportunity(Downlink, at(19), 100).unwrap()).collect();
        assert!(down[0].is_status());
        assert_eq!((down[1].sn, down[1].bytes), (0, 12));
        assert_eq!((down[2].sn, down[2].bytes), (2, 54));
        assert_eq!(told(&mut out), [3]);
    }

    #[test]
    fn at_most_512_pdus_are_unacknowledged() {
        let mut bearer = loaded(RlcMode::Acknowledged, &[8; 600]);
        let mut out = vec![];
        let pdus: Vec<Pdu> = (0..600).map_while(|_| bearer.on_transmit_opportunity(Downlink, at(0), 12)).collect();
        assert_eq!(pdus.len(), 512);
        for &pdu in &pdus[..100] {
            let _ = bearer.receive(Downlink, at(1), pdu, &mut out);
        }
        let status = bearer.on_transmit_opportunity(Uplink, at(1), 100).unwrap();
        let _ = bearer.receive(Uplink, at(2), status, &mut out);
        // As many more as were acknowledged, although there are only 88.
        assert_eq!((0..200).map_while(|_| bearer.on_transmit_opportunity(Downlink, at(3), 12)).count(), 88);
        assert_eq!((waiting(&bearer), unacknowledged(&bearer)), ((0, 0, 0), 500));
    }

    #[test]
    fn copy_half_a_number_space_late_is_not_a_new_pdu() {
        let mut bearer = loaded(RlcMode::Acknowledged, &[8; 600]);
        let mut out = vec![];
        let pdus: Vec<Pdu> = (0..512).map(|_| bearer.on_transmit_opportunity(Downlink, at(0), 12).unwrap()).collect();
        for &pdu in &pdus {
            let _ = bearer.receive(Downlink, at(4), pdu, &mut out);
        }
        // No STATUS report was sent, and the poll of the full window was at 0 ms: everything is retransmitted.
        let _ = bearer.expire(at(20), &mut out);
        let copy = bearer.on_transmit_opportunity(Downlink, at(20), 12).unwrap();
        assert_eq!((copy.sn, copy.is(Pdu::AGAIN)), (0, true));
        let status = bearer.on_transmit_opportunity(Uplink, at(21), 100).unwrap();
        let _ = bearer.receive(Uplink, at(25), status, &mut out);
        // VR(R) is 512 and the window is 512 to 1023. With 512, which is new, it begins at 513 and would end with 1024, that is
        // 0.
        let next = bearer.on_transmit_opportunity(Downlink, at(26), 12).unwrap();
        assert_eq!((next.sn, next.is(Pdu::AGAIN)), (512, false));
        let _ = bearer.receive(Downlink, at(30), next, &mut out);
        let _ = bearer.receive(Downlink, at(31), copy, &mut out);
        assert_eq!(told(&mut out).len(), 513);
        // Nothing is missing, so t-Reordering (10 ms) is not running: a report without missing PDUs has 2 bytes and acknowledges
        // what was sent.
        let _ = bearer.expire(at(41), &mut out);
        let status = bearer.on_transmit_opportunity(Uplink, at(60), 2000).unwrap();
        assert_eq!(status.bytes, 2);
        let _ = bearer.receive(Uplink, at(64), status, &mut out);
        assert_eq!((waiting(&bearer).1, unacknowledged(&bearer)), (0, 0));
    }

    #[test]
    fn poll_does_not_wait_for_discarded_data() {
        let mut limits = unlimited(RlcMode::Acknowledged);
        limits.discard_after = Some(Duration::from_millis(25));
        let mut bearer = Bearer::new(RlcMode::Acknowledged, limits);
        let mut out = vec![];
        bearer.offer(Downlink, sdu(8, 0));
        let lost = bearer.on_transmit_opportunity(Downlink, at(0), 12).unwrap();
        assert!(lost.is(Pdu::POLL));
        bearer.offer(Downlink, Sdu { bytes: 8, token: 1, arrived: at(10) });
        // t-PollRetransmit expires at 20 ms: the new data are to carry the poll. They get no opportunity until 35 ms.
        let _ = bearer.expire(at(20), &mut out);
        assert_eq!(waiting(&bearer), (8, 0, 0));
        assert_eq!(bearer.expire(at(35), &mut out), DOWN);
        assert_eq!(told(&mut out), [-2]);
        let again = bearer.on_transmit_opportunity(Downlink, at(36), 12).expect("the lost PDU is retransmitted");
        assert_eq!((again.sn, again.is(Pdu::POLL), again.is(Pdu::AGAIN)), (0, true, true));
    }

    #[test]
    fn polls_are_as_frequent_as_configured() {
        let polls = |pdus, bytes| -> Vec<bool> {
            let mut limits = unlimited(RlcMode::Acknowledged);
            (limits.acknowledgement.poll_after_pdus, limits.acknowledgement.poll_after_bytes) = (pdus, bytes);
            let mut bearer = Bearer::new(RlcMode::Acknowledged, limits);
            (0..8).for_each(|k| assert!(bearer.offer(Downlink, sdu(8, k))));
            (0..8).map(|_| bearer.on_transmit_opportunity(Downlink, at(0), 12).unwrap().is(Pdu::POLL)).collect()
        };
        let (n, y) = (false, true);
        assert_eq!(polls(1, 50), [y; 8]);
        assert_eq!(polls(3, 1000), [n, n, y, n, n, y, n, y]);
        assert_eq!(polls(1000, 17), [n, n, y, n, n, y, n, y]);
        assert_eq!(polls(1000, 1000), [n, n, n, n, n, n, n, y]);
    }

    #[test]
    fn delayed_poll_is_answered_when_the_gap_is_filled() {
        let mut limits = unlimited(RlcMode::Acknowledged);
        (limits.acknowledgement.poll_after_pdus, limits.acknowledgement.poll_after_bytes) = (100, 100_000);
        let mut bearer = Bearer::new(RlcMode::Acknowledged, limits);
        (0..3).for_each(|k| assert!(bearer.offer(Downlink, sdu(8, k))));
        let pdus: Vec<Pdu> = (0..3).map(|_| bearer.on_transmit_opportunity(Downlink, at(0), 12).unwrap()).collect();
        let mut out = vec![];
        // Only the last PDU polls.
        let told: Vec<DueReports> = [2, 1, 0].map(|k| bearer.receive(Downlink, at(4), pdus[k], &mut out)).to_vec();
        assert_eq!(told, [NOTHING, NOTHING, UP]);
    }

    #[test]
    fn second_gap_is_reported_10_ms_after_the_first() {
        let (mut bearer, pdus) = sent(4);
        let mut out = vec![];
        // 0 is missing from 4 ms on: VR(X) = 2. 2 is missing too: VR(H) = 4.
        let _ = bearer.receive(Downlink, at(4), pdus[1], &mut out);
        let _ = bearer.receive(Downlink, at(6), pdus[3], &mut out);
        assert!(bearer.expire(at(14), &mut out).report[1]);
        // VR(MS) = 2: one is missing.
        assert_eq!(waiting(&bearer).2, 4);
        assert!(bearer.expire(at(24), &mut out).report[1]);
        assert_eq!(waiting(&bearer).2, 5);
    }

    #[test]
    fn unacknowledged_pdus_are_retransmitted_if_nothing_else_can_be_sent() {
        let mut limits = unlimited(RlcMode::Acknowledged);
        (limits.acknowledgement.poll_after_pdus, limits.acknowledgement.poll_after_bytes) = (10_000, 100_000);
        let mut bearer = Bearer::new(RlcMode::Acknowledged, limits);
        let mut out = vec![];
        (0..600).for_each(|k| assert!(bearer.offer(Downlink, sdu(8, k))));
        let pdus: Vec<Pdu> = (0..600).map_while(|_| bearer.on_transmit_opportunity(Downlink, at(0), 12)).collect();
        // Only the last PDU polls: the window is full.
        assert_eq!(pdus.iter().map(|pdu| pdu.is(Pdu::POLL)).position(|poll| poll), Some(511));
        let _ = bearer.expire(at(20), &mut out);
        let again: Vec<Pdu> = (0..600).map_while(|_| bearer.on_transmit_opportunity(Downlink, at(20), 12)).collect();
        assert_eq!((again.len(), again[0].sn, again[511].sn), (512, 0, 511));

        // There is room in the window and new data, which polls.
        let (mut bearer, _) = sent(2);
        bearer.offer(Downlink, Sdu { bytes: 8, token: 2, arrived: at(20) });
        let _ = bearer.expire(at(21), &mut out);
        let next = bearer.on_transmit_opportunity(Downlink, at(21), 12).unwrap();
        assert_eq!((next.sn, next.is(Pdu::POLL)), (2, true));
        assert_eq!(bearer.on_transmit_opportunity(Downlink, at(22), 12), None);

        // The first retransmission polls as the timer has expired, the last as nothing is left.
        let (mut bearer, _) = sent(3);
        let _ = bearer.expire(at(22), &mut out);
        let polls = [22, 23, 24].map(|ms| bearer.on_transmit_opportunity(Downlink, at(ms), 12).unwrap().is(Pdu::POLL));
        assert_eq!(polls, [true, false, true]);
    }

    #[test]
    fn exhausted_pdu_is_counted_and_fails_the_bearer_if_configured() {
        for fails in [false, true] {
            let mut limits = RlcConfig::for_mode(RlcMode::Acknowledged);
            limits.acknowledgement.fails = fails;
            let mut bearer = Bearer::new(RlcMode::Acknowledged, limits);
            let mut out = vec![];
            bearer.offer(Downlink, sdu(8, 0));
            let sent = (0..400).filter(|&ms| {
                let _ = bearer.expire(at(ms), &mut out);
                bearer.on_transmit_opportunity(Downlink, at(ms), 100).is_some()
            });
            // Every 20 ms: the first and 5 more, then RETX_COUNT is 5 when it is missing again.
            assert_eq!(sent.count(), if fails { 6 } else { 20 });
            assert_eq!(bearer.counters(Downlink).retransmissions_exhausted, 1);
            assert_eq!(bearer.has_failed(), fails);
            assert_eq!(bearer.next_timer().is_never(), fails);
            assert_eq!(bearer.offer(Downlink, sdu(8, 1)), !fails);
            bearer.reestablish(&mut out);
            assert_eq!(told(&mut out), if fails { vec![-1] } else { vec![-1, -2] });
            assert!(!bearer.has_failed());
            assert!(bearer.offer(Downlink, sdu(8, 2)));
            let empty =
                BufferStatus { new_data_bytes: 8, retransmission_bytes: 0, status_bytes: 0, head_of_line: at(0) };
            assert_eq!(bearer.buffer_status(Downlink), empty);
        }
    }

    #[test]
    fn expired_status_report_has_no_effect() {
        let (mut bearer, pdus) = sent(40);
        let mut out = vec![];
        let mut status = vec![];
        for (k, &pdu) in pdus.iter().enumerate() {
            let now = at(10 * k as u64);
            let _ = bearer.receive(Downlink, now, pdu, &mut out);
            status.push(bearer.on_transmit_opportunity(Uplink, now, 100).unwrap());
        }
        let _ = bearer.receive(Uplink, at(400), status[7], &mut out);
        assert_eq!(unacknowledged(&bearer), 40);
        let _ = bearer.receive(Uplink, at(400), status[8], &mut out);
        assert_eq!(unacknowledged(&bearer), 31);
        // A late report contains less than is already known.
        let _ = bearer.receive(Uplink, at(400), status[39], &mut out);
        let _ = bearer.receive(Uplink, at(400), status[20], &mut out);
        assert_eq!(unacknowledged(&bearer), 0);
    }
}
