//! The audit of a medium that its nodes share by contention: no frame is received while another one is on the medium. The
//! exchanges with received frames therefore use at most the whole time.

use crate::verdict::{FailureLog, Rule, Subject};
use fullpipe_record::MediumExchange;
use fullpipe_units::Instant;
use fullpipe_units::words::format_exact_time;

/// The exchanges of one medium so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ExchangeState {
    last_start: Instant,
    /// End of all exchanges so far.
    any_end: Instant,
    /// End of all exchanges so far in which a frame was received.
    received_end: Instant,
}

impl ExchangeState {
    pub(crate) fn judge(&mut self, exchange: &MediumExchange, log: &mut FailureLog) {
        let MediumExchange { medium, start, end, received } = *exchange;
        let subject = Subject::Link(medium);
        if start > end || start < self.last_start {
            log.note(Rule::FrameOrder, subject, start, || {
                let [start, end, last] = [start, end, self.last_start].map(|at| format_exact_time(at.as_nanos()));
                format!("expected an exchange to start at {last} or later and end later, found {start} to {end}")
            });
        }
        // A received frame overlaps no other; frames that are all lost may overlap.
        let free = if received { self.any_end } else { self.received_end };
        if start < free {
            log.note(Rule::Overlap, subject, start, || {
                let [start, free] = [start, free].map(|at| format_exact_time(at.as_nanos()));
                format!("expected no frame on the medium until {free}, when a received one ends, found one at {start}")
            });
        }
        self.last_start = self.last_start.max(start);
        self.any_end = self.any_end.max(end);
        if received {
            self.received_end = self.received_end.max(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::LinkId;

    /// The number of failures of exchanges with start and end in ns.
    fn failures(exchanges: &[(u64, u64, bool)]) -> usize {
        let (mut state, mut log) = (ExchangeState::default(), FailureLog::default());
        for &(start, end, received) in exchanges {
            let [start, end] = [start, end].map(Instant::from_nanos);
            state.judge(&MediumExchange { medium: LinkId(0), start, end, received }, &mut log);
        }
        usize::from(!log.verdict([], |_| String::new()).passed())
    }

    #[test]
    fn received_frames_overlap_no_other() {
        assert_eq!(failures(&[(0, 10, true), (10, 20, true), (25, 30, false)]), 0);
        // A collision.
        assert_eq!(failures(&[(0, 10, false), (0, 20, false), (20, 30, true)]), 0);
        assert_eq!(failures(&[(0, 10, true), (9, 20, true)]), 1);
        assert_eq!(failures(&[(0, 10, true), (9, 20, false)]), 1);
        assert_eq!(failures(&[(0, 10, false), (9, 20, true)]), 1);
    }

    #[test]
    fn exchange_before_the_last_one_is_reported() {
        assert_eq!(failures(&[(20, 30, false), (10, 15, false)]), 1);
        assert_eq!(failures(&[(20, 10, false)]), 1);
    }
}
