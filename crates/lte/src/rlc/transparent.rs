//! Transparent mode of one direction (TS 36.322, clause 5.1.1), for signaling before a connection exists.
//!
//! PDUs have no sequence numbers, so losses cannot be detected. In the counters, an SDU is lost when more later SDUs
//! have arrived than can have overtaken it.

use super::queue::Queue;
use super::{Pdu, SduOutcome};
use fullpipe_units::Instant;
use std::collections::VecDeque;

/// Number of overtaking SDUs after which one counts as lost: more than HARQ can delay.
const OVERTAKEN: usize = 512;

#[derive(Clone, Debug)]
pub(super) struct TmEntity {
    report_at: Instant,
    /// Whether each sent SDU was delivered.
    delivered: VecDeque<bool>,
}

impl Default for TmEntity {
    fn default() -> TmEntity {
        TmEntity { report_at: Instant::NEVER, delivered: VecDeque::new() }
    }
}

impl TmEntity {
    pub(super) fn next_timer(&self) -> Instant {
        self.report_at
    }

    /// Whether a sent SDU has no outcome yet.
    pub(super) fn is_open(&self, position: usize) -> bool {
        !self.delivered[position]
    }

    pub(super) fn offered(&mut self) {
        self.report_at = Instant::NEVER;
    }

    /// Sends an SDU if it fits completely.
    pub(super) fn opportunity(&mut self, queue: &mut Queue, bytes: u32, again: Instant) -> Option<Pdu> {
        let fits = queue.next_bytes().is_some_and(|size| size <= bytes);
        let pdu = fits.then(|| {
            let (first, bytes) = queue.take();
            self.delivered.push_back(false);
            Pdu { bytes, payload_bytes: bytes, first, segments: 1, sn: 0, flags: 0, epoch: 0 }
        });
        self.report_at = if queue.is_empty() { Instant::NEVER } else { again };
        pdu
    }

    pub(super) fn receive(&mut self, queue: &mut Queue, pdu: Pdu, out: &mut Vec<SduOutcome>) {
        let Ok(mut position) = usize::try_from(queue.position(pdu.first)) else { return };
        if std::mem::replace(&mut self.delivered[position], true) {
            return;
        }
        let delivered = SduOutcome { sdu: queue.get(position), delivered: true };
        while self.delivered.front() == Some(&true) || (position > OVERTAKEN && !self.delivered.is_empty()) {
            let sdu = queue.settle();
            if self.delivered.pop_front() == Some(false) {
                out.push(SduOutcome { sdu, delivered: false });
            }
            position = position.saturating_sub(1);
        }
        out.push(delivered);
    }

    pub(super) fn expire(&mut self, queue: &Queue, now: Instant, again: Instant) -> bool {
        let report = self.report_at <= now;
        if report {
            self.report_at = if queue.is_empty() { Instant::NEVER } else { again };
        }
        report
    }

    pub(super) fn reestablish(&mut self, queue: &mut Queue, out: &mut Vec<SduOutcome>) {
        while let Some(delivered) = self.delivered.pop_front() {
            let sdu = queue.settle();
            if !delivered {
                out.push(SduOutcome { sdu, delivered: false });
            }
        }
        *self = TmEntity::default();
    }
}
