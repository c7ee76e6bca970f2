//! The common part of window-based controls that differ from Reno only in their laws: the growth of the window per
//! round trip, and the window after a reduction.
//!
//! **Model.** Slow start, up to the threshold, adds every byte acknowledged. The first slow start can use HyStart++
//! ([`hystart`](crate::hystart)), except in Hybla, whose slow start is not the standard one. Congestion avoidance adds the
//! law's number of segments for each window of bytes acknowledged, but never more than slow start would add. The window
//! grows only while it limits sending, and not in recovery. A loss, a mark or a timeout reduces the window to the value that the
//! law returns. A spurious reduction is undone. As in Linux's Reno, growth depends on the bytes acknowledged, so
//! delayed acknowledgments do not change it. Unlike in Linux, the window grows by bytes, not by whole segments.
//!
//! **Source.** RFC 5681, RFC 3168 (marks), RFC 7661 and RFC 6928 (idle periods), as in
//! [`linux_reno`](crate::linux_reno). Each law states its own source.

use crate::control::{Ack, CongestionEvent, Controller, RecoveryExit, Timeout, WindowState};
use crate::hystart::{HyStart, slow_start};
use crate::window::{self, UndoState};
use fullpipe_units::{Duration, Instant};
use std::fmt;

/// The cause of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionCause {
    /// A packet was lost.
    Loss,
    /// A queue marked a packet (ECN).
    Mark,
    /// The retransmission timer expired, or QUIC's persistent congestion was established.
    Timeout,
}

/// A window law: the rules in which a window-based control differs from Reno.
pub trait WindowLaw: fmt::Debug + Send {
    /// The name of the control in scenarios.
    const NAME: &'static str;

    /// The round-trip times that the law stores; `None` if it stores none. The default implementations of
    /// [`WindowLaw::on_established`] and [`WindowLaw::sample_ack`] update them.
    fn round_trip_times(&mut self) -> Option<&mut RoundTripTimes> {
        None
    }

    /// Called when the connection is established. `rtt` is the round-trip sample of the handshake, if there is one.
    fn on_established(&mut self, _now: Instant, rtt: Option<Duration>) {
        if let (Some(times), Some(rtt)) = (self.round_trip_times(), rtt) {
            times.sample(rtt);
            times.begin_round();
        }
    }

    /// Handles an acknowledgment before the window changes, also in recovery.
    fn sample_ack(&mut self, _control: &WindowState, ack: &Ack) {
        if let (Some(times), Some(rtt)) = (self.round_trip_times(), ack.rtt) {
            times.sample(rtt);
        }
    }

    /// Called when a round ends outside recovery. No other method may reduce the window without a loss, mark or
    /// timeout.
    fn on_round_end(&mut self, _control: &mut WindowState, _ack: &Ack) {}

    /// Segments that slow start adds for each segment acknowledged. Congestion avoidance never grows faster.
    fn slow_start_segments(&self) -> f64 {
        1.0
    }

    /// Segments that congestion avoidance adds for each window acknowledged.
    fn increase_segments(&mut self, control: &WindowState, ack: &Ack) -> f64;

    /// The window after a reduction, in bytes.
    fn reduced_window_bytes(&mut self, control: &WindowState, now: Instant, cause: ReductionCause) -> u64;

    /// Restores the state that the law had before the last reduction, because that reduction was spurious.
    fn undo(&mut self) {}

    /// Called when sending restarts after an idle period.
    fn on_idle_restart(&mut self, _now: Instant) {}

    /// Appends named internal values to `out`.
    fn inspect(&self, _out: &mut Vec<(&'static str, f64)>) {}
}

/// A window-based control: the common part with a window law.
#[derive(Clone, Debug, Default)]
pub struct LawController<L> {
    law: L,
    /// The fraction of a byte by which the window has grown.
    fraction: f64,
    /// The law's increase at the last acknowledgment in congestion avoidance.
    increase_bytes: f64,
    hystart: Option<HyStart>,
    undo: UndoState,
}

impl<L: WindowLaw> LawController<L> {
    /// Creates a control with this law.
    pub fn new(law: L) -> Self {
        LawController { law, fraction: 0.0, increase_bytes: 0.0, hystart: None, undo: UndoState::default() }
    }

    /// Selects HyStart++ for the first slow start, if given. The law must have the standard slow start.
    #[must_use]
    pub fn with_hystart(self, hystart: Option<HyStart>) -> Self {
        LawController { hystart, ..self }
    }

    /// Lets the window grow in slow start, up to the threshold. Returns the acknowledged bytes that remain for
    /// congestion avoidance.
    fn slow_start(&mut self, control: &mut WindowState, ack: &Ack) -> u64 {
        if self.hystart.is_some() {
            return slow_start(self.hystart.as_mut(), control, ack);
        }
        if !ack.cwnd_limited {
            return 0;
        }
        let growth = self.most_bytes(ack.acked_bytes);
        let room = control.ssthresh_bytes - control.cwnd_bytes;
        control.cwnd_bytes += growth.min(room);
        // `as` saturates.
        let used = (room as f64 / self.law.slow_start_segments()).ceil() as u64;
        ack.acked_bytes.saturating_sub(used)
    }

    /// The growth of slow start for this number of bytes acknowledged.
    fn most_bytes(&self, acked_bytes: u64) -> u64 {
        let per_segment = self.law.slow_start_segments();
        // An `f64` would round byte counts above 2^53; `as` saturates.
        if per_segment == 1.0 { acked_bytes } else { (acked_bytes as f64 * per_segment) as u64 }
    }

    fn avoid(&mut self, control: &mut WindowState, ack: &Ack, acked_bytes: u64) {
        let mss = window::segment(control);
        control.cwnd_bytes = control.cwnd_bytes.max(mss);
        let share = (acked_bytes as f64 / control.cwnd_bytes as f64).min(1.0);
        self.increase_bytes = self.law.increase_segments(control, ack) * mss as f64;
        let earned = self.increase_bytes * share + self.fraction;
        let whole = (earned as u64).min(self.most_bytes(acked_bytes));
        control.cwnd_bytes = control.cwnd_bytes.saturating_add(whole);
        self.fraction = (earned - whole as f64).clamp(0.0, 1.0);
    }
}

impl<L: WindowLaw> Controller for LawController<L> {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn on_established(&mut self, _control: &mut WindowState, now: Instant, rtt: Option<Duration>) {
        self.law.on_established(now, rtt);
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        self.law.sample_ack(control, ack);
        if ack.in_recovery {
            return;
        }
        if ack.round_start {
            self.law.on_round_end(control, ack);
        }
        let mut acked = ack.acked_bytes;
        if control.cwnd_bytes < control.ssthresh_bytes {
            acked = self.slow_start(control, ack);
        }
        if acked > 0 && ack.cwnd_limited {
            self.avoid(control, ack, acked);
        }
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        self.undo.on_congestion(control, congestion);
        let cause = match congestion {
            CongestionEvent { persistent: true, .. } => ReductionCause::Timeout,
            CongestionEvent { ecn: true, .. } => ReductionCause::Mark,
            _ => ReductionCause::Loss,
        };
        let reduced = self.law.reduced_window_bytes(control, congestion.now, cause);
        window::reduce(control, congestion, reduced);
        self.fraction = 0.0;
    }

    fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) {
        if self.undo.on_recovery_exit(control, exit) {
            self.law.undo();
        }
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        self.undo.on_timeout(control, timeout);
        if !timeout.repeated {
            let reduced = self.law.reduced_window_bytes(control, timeout.now, ReductionCause::Timeout);
            control.ssthresh_bytes = reduced.max(window::two_segments(control));
        }
        self.fraction = 0.0;
    }

    fn on_idle_restart(&mut self, control: &mut WindowState, now: Instant) {
        window::keep_three_quarters(control);
        window::restart(control);
        self.law.on_idle_restart(now);
    }

    fn on_path_change(&mut self, control: &mut WindowState, _now: Instant) {
        window::resize(control);
    }

    fn growth_limit_bytes(&self, _control: &WindowState, _ack: &Ack, flight_bytes: u64, in_slow_start: bool) -> u64 {
        let most = self.most_bytes(flight_bytes);
        // `as` saturates.
        flight_bytes.saturating_add(if in_slow_start { most } else { most.min(self.increase_bytes.ceil() as u64) })
    }

    fn inspect(&self, out: &mut Vec<(&'static str, f64)>) {
        self.law.inspect(out);
        if let Some(hystart) = &self.hystart {
            out.push(("hystart_phase", hystart.phase_number()));
        }
    }
}

/// Round-trip times of the connection and of the current round, for laws that estimate queues.
#[derive(Clone, Copy, Debug)]
pub struct RoundTripTimes {
    /// Smallest and largest sample of the connection; the smallest is [`Duration::MAX`] before the first sample.
    pub(crate) base: Duration,
    pub(crate) largest: Duration,
    /// Smallest sample of the round, with the sum and the number of its samples.
    pub(crate) smallest: Duration,
    sum: Duration,
    pub(crate) samples: u32,
}

impl Default for RoundTripTimes {
    fn default() -> Self {
        RoundTripTimes {
            base: Duration::MAX,
            largest: Duration::ZERO,
            smallest: Duration::MAX,
            sum: Duration::ZERO,
            samples: 0,
        }
    }
}

impl RoundTripTimes {
    /// Adds a sample. A sample of zero becomes one nanosecond, because samples are divisors.
    pub(crate) fn sample(&mut self, rtt: Duration) {
        let rtt = rtt.max(Duration::from_nanos(1));
        self.base = self.base.min(rtt);
        self.largest = self.largest.max(rtt);
        self.smallest = self.smallest.min(rtt);
        self.sum = self.sum.saturating_add(rtt);
        self.samples = self.samples.saturating_add(1);
    }

    /// Resets the values of the round.
    pub(crate) fn begin_round(&mut self) {
        *self = RoundTripTimes { base: self.base, largest: self.largest, ..RoundTripTimes::default() };
    }

    /// The mean of the round minus the base, if the round has a sample.
    pub(crate) fn mean_delay(&self) -> Option<Duration> {
        let mean = self.sum.as_nanos().checked_div(u64::from(self.samples))?;
        Some(Duration::from_nanos(mean).saturating_sub(self.base))
    }

    /// The bytes of this window in queues, estimated from the smallest round-trip time of the round. They are the
    /// excess of the window over rate * base, where the rate is window / rtt (as in Vegas). `None` with fewer than
    /// three samples, because delayed acknowledgments may have affected all of them.
    pub(crate) fn queued_bytes(&self, cwnd_bytes: u64) -> Option<u64> {
        if self.samples <= 2 {
            return None;
        }
        let (rtt, base) = (u128::from(self.smallest.as_nanos()), u128::from(self.base.as_nanos()));
        let queued = u128::from(cwnd_bytes) * (rtt - base) / rtt;
        // Limited to the window.
        Some(u64::try_from(queued).unwrap_or(cwnd_bytes))
    }
}
