//! The audit of the sequence numbers of a TCP flow, range by range: all numbers below an acknowledgment must have
//! arrived.
//!
//! The streaming auditor stores only the highest delivered number. This module stores all delivered ranges, so it
//! detects an acknowledgment that covers a hole. Sequence numbers are modulo 2^32 (RFC 9293 section 3.4). They are
//! extended to 64 bits relative to the first number that has not arrived.

use fullpipe_record::TcpView;
use std::collections::BTreeMap;

/// The ranges of one flow's sequence numbers that have arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct SequenceChecker {
    begun: bool,
    /// The initial sequence number, as on the wire.
    initial: u32,
    /// All numbers before this one have arrived; the low 32 bits are as on the wire.
    complete: u64,
    /// Start and end of the ranges above `complete` that have arrived.
    beyond: BTreeMap<u64, u64>,
    /// End of a SYN that another SYN replaced; the earlier SYN can still arrive and be acknowledged.
    replaced_syn_end: Option<u32>,
}

/// Offset of the extended numbers, which prevents numbers slightly below the initial one from becoming negative.
const EPOCH: u64 = 1 << 32;

impl SequenceChecker {
    fn begin(&mut self, initial: u32) {
        *self = SequenceChecker {
            begun: true,
            initial,
            complete: EPOCH | u64::from(initial),
            beyond: BTreeMap::new(),
            replaced_syn_end: self.replaced_syn_end,
        };
    }

    /// Returns the extended number nearest to `complete` whose low 32 bits are `wire`.
    fn unwrap(&self, wire: u32) -> u64 {
        self.complete.wrapping_add_signed(i64::from(wire.wrapping_sub(self.complete as u32) as i32))
    }

    /// Processes a segment of this flow that was sent.
    pub(crate) fn sent(&mut self, tcp: &TcpView) {
        if !self.begun {
            self.begin(tcp.sequence);
        } else if tcp.syn && tcp.sequence != self.initial {
            self.replaced_syn_end = Some(self.initial.wrapping_add(1));
            self.begin(tcp.sequence);
        }
    }

    /// Processes a segment of this flow that arrived.
    pub(crate) fn delivered(&mut self, tcp: &TcpView) {
        let (start, end) = (self.unwrap(tcp.sequence), self.unwrap(tcp.sequence_end));
        if !self.begun || end <= start || end <= self.complete || (tcp.syn && tcp.sequence != self.initial) {
            return;
        }
        let longest = self.beyond.entry(start).or_insert(end);
        *longest = (*longest).max(end);
        while let Some((&start, &end)) = self.beyond.first_key_value() {
            if start > self.complete {
                break;
            }
            self.beyond.pop_first();
            self.complete = self.complete.max(end);
        }
    }

    /// Checks whether the other side may acknowledge this number; the error is the highest number that it may
    /// acknowledge.
    pub(crate) fn judge(&self, acknowledgement: u32) -> Result<(), u32> {
        let judged = self.begun && self.replaced_syn_end != Some(acknowledgement);
        if judged && self.unwrap(acknowledgement) > self.complete { Err(self.complete as u32) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(sequence: u32, length: u32) -> TcpView {
        TcpView { sequence, sequence_end: sequence.wrapping_add(length), ..TcpView::default() }
    }

    #[test]
    fn the_highest_acknowledgment_stops_at_a_hole_and_jumps_when_it_is_filled() {
        // Begins 100 numbers before 2^32: 2^32 - 100 = 4294967196.
        let begin = 4_294_967_196;
        let mut stream = SequenceChecker::default();
        stream.sent(&segment(begin, 50));
        stream.delivered(&segment(begin, 50));
        stream.delivered(&segment(20, 30));
        assert_eq!(stream.judge(begin + 50), Ok(()));
        assert_eq!(stream.judge(begin + 51), Err(begin + 50));
        assert_eq!(stream.judge(50), Err(begin + 50));
        // 4294967246 + 70 = 2^32 + 20: the hole is filled up to number 20, so the data is complete up to 50.
        stream.delivered(&segment(begin + 50, 70));
        assert_eq!(stream.judge(50), Ok(()));
        assert_eq!(stream.judge(51), Err(50));
        assert!(stream.beyond.is_empty());
    }

    #[test]
    fn overlapping_and_repeated_ranges_count_once() {
        let mut stream = SequenceChecker::default();
        stream.sent(&segment(1000, 100));
        for (sequence, length) in [(1200, 100), (1200, 50), (1250, 100), (1100, 100)] {
            stream.delivered(&segment(sequence, length));
            assert_eq!(stream.judge(1001), Err(1000));
        }
        stream.delivered(&segment(1000, 100));
        assert_eq!(stream.judge(1350), Ok(()));
        assert_eq!(stream.judge(1351), Err(1350));
        // The shorter of two ranges with the same start does not replace the longer one.
        for (sequence, length) in [(1400, 100), (1400, 30), (1350, 50)] {
            stream.delivered(&segment(sequence, length));
        }
        assert_eq!(stream.judge(1501), Err(1500));
    }
}
