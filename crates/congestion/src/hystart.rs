//! HyStart++: leaving the first slow start before it overflows the queue.
//!
//! **Model.** In each round trip the smallest of at least eight round-trip samples is compared with that of the round
//! before. If it has grown by an eighth (at least 4 ms, at most 16 ms), a queue is building: the window then grows at a
//! quarter of the speed (*conservative slow start*). If the delay falls below what it was at that moment, it was jitter
//! and slow start goes on; if it has not after five rounds, congestion avoidance begins at the present window.
//!
//! **Source.** RFC 9406 (May 2023), sections 4.2 and 4.3. Used for the first slow start only, that is while the
//! threshold is still unlimited, as the RFC demands. Round trips are those counted by delivery
//! ([`Ack::round_start`](crate::control::Ack::round_start)); the sample that comes with the start of a round belongs to
//! that round. Samples are kept in microseconds to keep a connection small.

use crate::control::Ack;

const MIN_RTT_THRESH_US: u32 = 4_000;
const MAX_RTT_THRESH_US: u32 = 16_000;
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u8 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u8 = 5;
/// Segments by which the window may grow per acknowledgement if nothing else breaks up bursts.
const L: u64 = 8;
/// No sample.
const INFINITY: u32 = u32::MAX;

/// Where slow start stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Doubling.
    SlowStart,
    /// Conservative slow start: a quarter of that.
    Conservative,
    /// Over: the threshold is to be set to the present window.
    Done,
}

/// The state of HyStart++.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    last_round_min_us: u32,
    current_round_min_us: u32,
    baseline_min_us: u32,
    samples: u8,
    css_rounds: u8,
    phase: Phase,
    paced: bool,
}

impl HyStart {
    /// At the start of a connection. If it is `paced`, growth per acknowledgement is unlimited, else eight segments.
    pub fn new(paced: bool) -> Self {
        HyStart {
            last_round_min_us: INFINITY,
            current_round_min_us: INFINITY,
            baseline_min_us: INFINITY,
            samples: 0,
            css_rounds: 0,
            phase: Phase::SlowStart,
            paced,
        }
    }

    /// Where slow start stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// An acknowledgement during the first slow start: the phase by whose rule this one lets the window grow.
    pub fn on_ack(&mut self, ack: &Ack) -> Phase {
        if ack.round_start {
            self.last_round_min_us = self.current_round_min_us;
            self.current_round_min_us = INFINITY;
            self.samples = 0;
            if self.phase == Phase::Conservative {
                // The round in which it began counts as the first, however little of it was left.
                self.css_rounds += 1;
                if self.css_rounds >= CSS_ROUNDS {
                    self.phase = Phase::Done;
                }
            }
        }
        let phase = self.phase;
        if let Some(rtt) = ack.rtt {
            let rtt_us = u32::try_from(rtt.as_nanos() / 1_000).unwrap_or(INFINITY - 1).min(INFINITY - 1);
            self.current_round_min_us = self.current_round_min_us.min(rtt_us);
            self.samples = self.samples.saturating_add(1);
            if self.samples >= N_RTT_SAMPLE {
                self.judge();
            }
        }
        phase
    }

    fn judge(&mut self) {
        match self.phase {
            Phase::SlowStart if self.last_round_min_us != INFINITY => {
                let threshold = (self.last_round_min_us / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH_US, MAX_RTT_THRESH_US);
                if self.current_round_min_us >= self.last_round_min_us.saturating_add(threshold) {
                    self.baseline_min_us = self.current_round_min_us;
                    self.css_rounds = 0;
                    self.phase = Phase::Conservative;
                }
            }
            Phase::Conservative if self.current_round_min_us < self.baseline_min_us => {
                self.baseline_min_us = INFINITY;
                self.phase = Phase::SlowStart;
            }
            _ => {}
        }
    }

    /// Bytes by which the window grows for `acked_bytes` in this phase.
    #[inline]
    pub fn growth_bytes(&self, phase: Phase, acked_bytes: u64, mss_bytes: u64) -> u64 {
        let bytes = if self.paced { acked_bytes } else { acked_bytes.min(mss_bytes.saturating_mul(L)) };
        match phase {
            Phase::SlowStart => bytes,
            Phase::Conservative => bytes / CSS_GROWTH_DIVISOR,
            Phase::Done => 0,
        }
    }

    /// The phase as a number for series: 0, 1, 2.
    pub(crate) fn phase_number(&self) -> f64 {
        match self.phase {
            Phase::SlowStart => 0.0,
            Phase::Conservative => 1.0,
            Phase::Done => 2.0,
        }
    }
}
