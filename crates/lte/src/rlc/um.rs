//! Unacknowledged mode of one direction (TS 36.322, clause 5.1.2).
//!
//! The receiver holds PDUs that arrive before an earlier one, which HARQ may still deliver. After t-Reordering it stops
//! waiting for missing PDUs. The variables are those of the specification, modulo 1024, compared relative to VR(UH) -
//! 512:
//!
//! * VR(UR): the earliest PDU that may still arrive;
//! * VR(UH): the PDU after the latest received one, which is the end of the reordering window of 512 PDUs;
//! * VR(UX): the value of VR(UH) when t-Reordering was started.
//!
//! MAC receives a buffer status report when an SDU arrives. While data is waiting, MAC receives another report after 10
//! ms without an arrival or a transmission opportunity.

use super::queue::{Queue, Reassembler};
use super::sequence::{WINDOW, after, before, distance};
use super::{Pdu, SduOutcome};
use fullpipe_units::{Duration, Instant};
use std::collections::VecDeque;

/// Bytes of the fixed header: framing, extension bit, sequence number of 10 bits.
pub(super) const HEADER_BYTES: u32 = 2;

#[derive(Clone, Debug)]
pub(super) struct UmEntity {
    /// VT(US): the number of the next PDU.
    next: u16,
    report_at: Instant,
    /// VR(UR).
    expected: u16,
    /// VR(UH).
    highest: u16,
    /// VR(UX).
    trigger: u16,
    reorder_at: Instant,
    /// Received PDUs at or after VR(UR) and before VR(UH), in order.
    held: VecDeque<Pdu>,
    reassembler: Reassembler,
}

impl Default for UmEntity {
    fn default() -> UmEntity {
        UmEntity {
            next: 0,
            report_at: Instant::NEVER,
            expected: 0,
            highest: 0,
            trigger: 0,
            reorder_at: Instant::NEVER,
            held: VecDeque::new(),
            reassembler: Reassembler::default(),
        }
    }
}

impl UmEntity {
    #[inline]
    pub(super) fn next_timer(&self) -> Instant {
        self.report_at.min(self.reorder_at)
    }

    /// Notes that MAC receives a report now. Returns whether that stops a timer.
    #[inline]
    pub(super) fn offered(&mut self) -> bool {
        !std::mem::replace(&mut self.report_at, Instant::NEVER).is_never()
    }

    #[inline]
    pub(super) fn opportunity(&mut self, queue: &mut Queue, bytes: u32, again: Instant) -> Option<Pdu> {
        if bytes <= HEADER_BYTES || queue.is_empty() {
            return None;
        }
        let pdu = queue.fill(HEADER_BYTES, bytes, self.next);
        self.next = after(self.next, 1);
        self.report_at = if queue.is_empty() { Instant::NEVER } else { again };
        Some(pdu)
    }

    #[inline]
    pub(super) fn receive(
        &mut self,
        queue: &mut Queue,
        pdu: Pdu,
        now: Instant,
        wait: Duration,
        out: &mut Vec<SduOutcome>,
    ) {
        let sn = pdu.sn;
        if sn == self.highest && self.expected == self.highest {
            // Nothing is missing, so nothing is held and no timer is running.
            self.reassembler.pass(queue, &pdu, out);
            self.highest = after(sn, 1);
            self.expected = self.highest;
            return;
        }
        let start = before(self.highest, WINDOW);
        let inside = distance(start, sn) < WINDOW;
        if inside && distance(start, sn) < distance(start, self.expected) {
            return;
        }
        // Relative to VR(UR), numbers are in sending order: the window comes first, then the new numbers.
        let ahead = distance(self.expected, sn);
        let place = self.held.iter().rposition(|held| distance(self.expected, held.sn) <= ahead).map_or(0, |k| k + 1);
        if place > 0 && self.held[place - 1].sn == sn {
            return;
        }
        self.held.insert(place, pdu);
        if !inside {
            self.highest = after(sn, 1);
            // With more than 512 the earliest have left the window, so the receiver does not wait for them.
            if let Some(beyond) = (ahead + 1).checked_sub(WINDOW) {
                self.advance(queue, beyond, out);
            }
        }
        self.advance(queue, 0, out);
        let start = before(self.highest, WINDOW);
        let trigger = distance(start, self.trigger);
        if trigger <= distance(start, self.expected) || trigger > WINDOW {
            self.reorder_at = Instant::NEVER;
        }
        self.wait(now, wait);
    }

    /// Advances VR(UR) by `by` and over received PDUs; delivers all earlier ones.
    fn advance(&mut self, queue: &mut Queue, by: u16, out: &mut Vec<SduOutcome>) {
        let target = after(self.expected, by);
        while self.held.front().is_some_and(|pdu| distance(self.expected, pdu.sn) < by) {
            let pdu = self.held.pop_front().expect("a PDU is held");
            self.reassembler.pass(queue, &pdu, out);
        }
        self.expected = target;
        while self.held.front().is_some_and(|pdu| pdu.sn == self.expected) {
            let pdu = self.held.pop_front().expect("a PDU is held");
            self.reassembler.pass(queue, &pdu, out);
            self.expected = after(self.expected, 1);
        }
    }

    /// Starts t-Reordering if a PDU is missing and it is not running.
    fn wait(&mut self, now: Instant, wait: Duration) {
        if self.reorder_at.is_never() && self.highest != self.expected {
            self.reorder_at = now.saturating_add(wait);
            self.trigger = self.highest;
        }
    }

    /// Runs the timers. Returns whether MAC must receive a report.
    pub(super) fn expire(
        &mut self,
        queue: &mut Queue,
        now: Instant,
        wait: Duration,
        again: Instant,
        out: &mut Vec<SduOutcome>,
    ) -> bool {
        if self.reorder_at <= now {
            self.reorder_at = Instant::NEVER;
            self.advance(queue, distance(self.expected, self.trigger), out);
            self.wait(now, wait);
        }
        let report = self.report_at <= now;
        if report {
            self.report_at = if queue.is_empty() { Instant::NEVER } else { again };
        }
        report
    }

    pub(super) fn reestablish(&mut self, queue: &mut Queue, out: &mut Vec<SduOutcome>) {
        for pdu in &self.held {
            self.reassembler.pass(queue, pdu, out);
        }
        *self = UmEntity::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, loaded, told};
    use super::super::{Bearer, DueReports, LinkDirection, Pdu, RlcMode};
    use super::Instant;

    /// A bearer, and `count` PDUs of one SDU of 8 bytes each.
    fn sent(count: usize) -> (Bearer, Vec<Pdu>) {
        let mut bearer = loaded(RlcMode::Unacknowledged, &vec![8; count]);
        let pdus = (0..count)
            .map(|k| bearer.on_transmit_opportunity(LinkDirection::Downlink, at(k as u64), 10).unwrap())
            .collect();
        (bearer, pdus)
    }

    #[test]
    fn missing_pdu_delays_later_ones_until_it_arrives() {
        let (mut bearer, pdus) = sent(5);
        let mut out = vec![];
        for (k, ms) in [(0, 3), (2, 5), (3, 6)] {
            let _ = bearer.receive(LinkDirection::Downlink, at(ms), pdus[k], &mut out);
        }
        assert_eq!(told(&mut out), [0]);
        // t-Reordering starts at the first PDU that is ahead.
        assert_eq!(bearer.next_timer(), at(105));
        let _ = bearer.receive(LinkDirection::Downlink, at(11), pdus[1], &mut out);
        assert_eq!(told(&mut out), [1, 2, 3]);
        assert_eq!(bearer.next_timer(), Instant::NEVER);
        let _ = bearer.receive(LinkDirection::Downlink, at(12), pdus[4], &mut out);
        assert_eq!(told(&mut out), [4]);
    }

    #[test]
    fn missing_pdu_is_lost_after_100_ms_and_the_timer_restarts_for_the_next() {
        let (mut bearer, pdus) = sent(8);
        let mut out = vec![];
        // 1 is missing when 2 arrives (5 ms), 4 and 6 when 5 and 7 arrive.
        for (k, ms) in [(0, 3), (2, 5), (3, 6), (5, 8), (7, 10)] {
            let _ = bearer.receive(LinkDirection::Downlink, at(ms), pdus[k], &mut out);
        }
        assert_eq!(told(&mut out), [0]);
        assert_eq!(bearer.next_timer(), at(105));
        assert_eq!(bearer.expire(at(105), &mut out), DueReports::default());
        // VR(UX) was 3: VR(UR) becomes 4, the first at or after 3 that has not arrived.
        assert_eq!(told(&mut out), [-2, 2, 3]);
        assert_eq!(bearer.next_timer(), at(205));
        // Too late: VR(UR) has passed it.
        let _ = bearer.receive(LinkDirection::Downlink, at(110), pdus[1], &mut out);
        let _ = bearer.receive(LinkDirection::Downlink, at(110), pdus[6], &mut out);
        assert!(told(&mut out).is_empty());
        // VR(UX) is 8: no PDU is expected any more.
        let _ = bearer.expire(at(205), &mut out);
        assert_eq!(told(&mut out), [-5, 5, 6, 7]);
        assert_eq!(bearer.next_timer(), Instant::NEVER);
    }

    #[test]
    fn timer_restarts_when_the_missing_pdu_arrives_and_another_is_missing() {
        let (mut bearer, pdus) = sent(5);
        let mut out = vec![];
        for (k, ms) in [(1, 3), (3, 5)] {
            let _ = bearer.receive(LinkDirection::Downlink, at(ms), pdus[k], &mut out);
        }
        assert_eq!(bearer.next_timer(), at(103));
        // VR(UR) = 2 = VR(UX): stopped, and restarted for 2 at once.
        let _ = bearer.receive(LinkDirection::Downlink, at(9), pdus[0], &mut out);
        assert_eq!(told(&mut out), [0, 1]);
        assert_eq!(bearer.next_timer(), at(109));
    }

    #[test]
    fn sdu_with_a_lost_segment_is_lost() {
        // SDU 0 is in PDUs 0, 1 and 2, SDU 1 in 2 and 3, SDU 2 in 3.
        let mut bearer = loaded(RlcMode::Unacknowledged, &[20, 20, 5]);
        let pdus: Vec<Pdu> = [10, 10, 10, 30]
            .map(|b| bearer.on_transmit_opportunity(LinkDirection::Downlink, at(0), b).unwrap())
            .to_vec();
        assert_eq!(bearer.waiting_bytes(LinkDirection::Downlink), 0);
        for (lost, expected) in [(0, vec![-1, 1, 2]), (1, vec![-1, 1, 2]), (2, vec![-1, -2, 2])] {
            let mut bearer = bearer.clone();
            let mut out = vec![];
            for (k, &pdu) in pdus.iter().enumerate() {
                if k != lost {
                    let _ = bearer.receive(LinkDirection::Downlink, at(5), pdu, &mut out);
                }
            }
            let _ = bearer.expire(at(105), &mut out);
            assert_eq!(told(&mut out), expected, "without {lost}");
        }
        // The receiver cannot detect the loss of the last PDU.
        let mut out = vec![];
        for &pdu in &pdus[..3] {
            let _ = bearer.receive(LinkDirection::Downlink, at(5), pdu, &mut out);
        }
        assert_eq!((told(&mut out), bearer.next_timer()), (vec![0], Instant::NEVER));
        assert_eq!(bearer.pending_sdus(LinkDirection::Downlink).map(|sdu| sdu.token).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn pdus_that_leave_the_window_are_not_awaited() {
        let (mut bearer, pdus) = sent(520);
        let mut out = vec![];
        let _ = bearer.receive(LinkDirection::Downlink, at(600), pdus[2], &mut out);
        // VR(UH) = 512: the window is 0 to 511, so all may still arrive.
        let _ = bearer.receive(LinkDirection::Downlink, at(600), pdus[511], &mut out);
        assert!(told(&mut out).is_empty());
        // VR(UH) = 514: the window begins with 2, which has arrived.
        let _ = bearer.receive(LinkDirection::Downlink, at(601), pdus[513], &mut out);
        assert_eq!(told(&mut out), [-1, -2, 2]);
        let _ = bearer.receive(LinkDirection::Downlink, at(602), pdus[2], &mut out);
        assert!(told(&mut out).is_empty());
        let _ = bearer.receive(LinkDirection::Downlink, at(602), pdus[3], &mut out);
        assert_eq!(told(&mut out), [3]);
    }

    #[test]
    fn timer_restarts_when_the_missing_pdu_leaves_the_window() {
        let (mut bearer, pdus) = sent(601);
        let mut out = vec![];
        let _ = bearer.receive(LinkDirection::Downlink, at(600), pdus[1], &mut out);
        assert_eq!(bearer.next_timer(), at(700));
        // VR(UX) = 2. VR(UH) = 513: the window is 1 to 512, and VR(UR) = 2.
        let _ = bearer.receive(LinkDirection::Downlink, at(610), pdus[512], &mut out);
        assert_eq!(bearer.next_timer(), at(710));
        // VR(UX) = 513. VR(UH) = 601: the window is 89 to 600, which contains VR(UX).
        let _ = bearer.receive(LinkDirection::Downlink, at(620), pdus[600], &mut out);
        assert_eq!(bearer.next_timer(), at(710));
        let (mut bearer, pdus) = sent(601);
        let _ = bearer.receive(LinkDirection::Downlink, at(600), pdus[1], &mut out);
        // VR(UX) = 2 is before the window of 89 to 600.
        let _ = bearer.receive(LinkDirection::Downlink, at(610), pdus[600 - 89], &mut out);
        assert_eq!(bearer.next_timer(), at(700));
        let _ = bearer.receive(LinkDirection::Downlink, at(620), pdus[600], &mut out);
        assert_eq!(bearer.next_timer(), at(720));
    }

    /// After 512 to 1023 consecutive losses, PDUs look old and are dropped until the numbers have wrapped.
    #[test]
    fn long_silence_loses_later_pdus_too() {
        let (mut bearer, pdus) = sent(1100);
        let mut out = vec![];
        let _ = bearer.receive(LinkDirection::Downlink, at(0), pdus[0], &mut out);
        for &pdu in &pdus[600..1100] {
            let _ = bearer.receive(LinkDirection::Downlink, at(1), pdu, &mut out);
        }
        let told = told(&mut out);
        // 1025 has number 1, which was expected.
        assert_eq!(told[..2], [0, -2]);
        assert_eq!(told[1025..], (1025..1100).collect::<Vec<i64>>());
        assert!(told[1..1025].iter().all(|&t| t < 0));
    }
}
