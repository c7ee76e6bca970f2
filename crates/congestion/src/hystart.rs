//! HyStart++: ends the first slow start before the queue overflows.
//!
//! **Model.** In each round trip, the smallest of at least eight round-trip samples is compared with that of the
//! previous round. If this minimum has grown by an eighth (at least 4 ms, at most 16 ms), a queue is building. The
//! window then grows at a quarter of the speed (*conservative slow start*). If the minimum later falls below its value
//! at that time, the growth was jitter, and slow start resumes. If it has not fallen after five rounds, congestion
//! avoidance begins at the current window.
//!
//! **Source.** RFC 9406 (May 2023), sections 4.2 and 4.3. HyStart++ is used for the first slow start only, while the
//! threshold is unlimited, as the RFC requires. It is available for all loss-based controls whose slow start is the
//! standard one ([`HyStartSupport`](crate::component::HyStartSupport)). Round trips are counted by delivery
//! ([`Ack::round_start`](crate::control::Ack::round_start)). A sample that arrives with the start of a round belongs to
//! that round. Samples are stored in microseconds, to reduce the memory per connection.

mod linux;

use crate::control::{Ack, WindowState};
use crate::window;
use fullpipe_units::Duration;
use linux::LinuxHyStart;

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u8 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u8 = 5;
/// The limit of window growth in segments per acknowledgment without pacing.
const L: u64 = 8;
/// The value if there is no sample.
const INFINITY: u32 = u32::MAX;

/// The phase of slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartPhase {
    /// The window doubles per round trip.
    SlowStart,
    /// Conservative slow start: the window grows at a quarter of the rate of slow start.
    Conservative,
    /// Slow start has ended: the control sets the slow-start threshold to the current window.
    Done,
}

/// The state of HyStart++, or of Linux's HyStart.
#[derive(Clone, Debug)]
pub struct HyStart {
    last_round_min_us: u32,
    current_round_min_us: u32,
    baseline_min_us: u32,
    samples: u8,
    css_rounds: u8,
    phase: SlowStartPhase,
    paced: bool,
    /// Whether the connection is paced, if Linux's HyStart replaces HyStart++.
    linux_paced: Option<bool>,
    /// The state of Linux's HyStart, allocated at the first acknowledgment, because most endpoints send no data.
    linux: Option<Box<LinuxHyStart>>,
}

/// The growth of the round-trip time that indicates a queue. Linux's HyStart uses the same threshold.
pub(crate) fn delay_threshold(rtt: Duration) -> Duration {
    (rtt / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

impl HyStart {
    /// Creates the state at the start of a connection. If `paced` is true, window growth per acknowledgment is
    /// unlimited; otherwise it is at most eight segments.
    pub fn new(paced: bool) -> Self {
        HyStart {
            last_round_min_us: INFINITY,
            current_round_min_us: INFINITY,
            baseline_min_us: INFINITY,
            samples: 0,
            css_rounds: 0,
            phase: SlowStartPhase::SlowStart,
            paced,
            linux_paced: None,
            linux: None,
        }
    }

    /// Creates the state for Linux's HyStart instead of HyStart++.
    pub fn linux(paced: bool) -> Self {
        HyStart { linux_paced: Some(paced), ..HyStart::new(true) }
    }

    /// Has the effect of [`HyStart::on_ack`], or runs Linux's HyStart, which also needs the window of the control.
    #[inline]
    pub(crate) fn on_ack_of(&mut self, control: &WindowState, ack: &Ack) -> SlowStartPhase {
        let Some(paced) = self.linux_paced else { return self.on_ack(ack) };
        let linux = self.linux.get_or_insert_with(|| Box::new(LinuxHyStart::new(paced)));
        if linux.on_ack(ack, control.cwnd_bytes / window::segment(control)) {
            self.phase = SlowStartPhase::Done;
        }
        self.phase
    }

    /// The current phase.
    pub fn phase(&self) -> SlowStartPhase {
        self.phase
    }

    /// Handles an acknowledgment during the first slow start. Returns the phase that determines the growth for this
    /// acknowledgment.
    pub fn on_ack(&mut self, ack: &Ack) -> SlowStartPhase {
        if ack.round_start {
            self.last_round_min_us = self.current_round_min_us;
            self.current_round_min_us = INFINITY;
            self.samples = 0;
            if self.phase == SlowStartPhase::Conservative {
                // The round in which the phase began counts as the first, however short the rest of it was.
                self.css_rounds += 1;
                if self.css_rounds >= CSS_ROUNDS {
                    self.phase = SlowStartPhase::Done;
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
            SlowStartPhase::SlowStart if self.last_round_min_us != INFINITY => {
                let last = Duration::from_micros(self.last_round_min_us.into());
                let current = Duration::from_micros(self.current_round_min_us.into());
                // In whole microseconds, like the samples.
                if current >= last + Duration::from_micros(delay_threshold(last).as_nanos() / 1_000) {
                    self.baseline_min_us = self.current_round_min_us;
                    self.css_rounds = 0;
                    self.phase = SlowStartPhase::Conservative;
                }
            }
            SlowStartPhase::Conservative if self.current_round_min_us < self.baseline_min_us => {
                self.baseline_min_us = INFINITY;
                self.phase = SlowStartPhase::SlowStart;
            }
            _ => {}
        }
    }

    /// The bytes by which the window grows for `acked_bytes` in this phase.
    #[inline]
    pub fn growth_bytes(&self, phase: SlowStartPhase, acked_bytes: u64, mss_bytes: u64) -> u64 {
        let bytes = if self.paced { acked_bytes } else { acked_bytes.min(mss_bytes.saturating_mul(L)) };
        match phase {
            SlowStartPhase::SlowStart => bytes,
            SlowStartPhase::Conservative => bytes / CSS_GROWTH_DIVISOR,
            SlowStartPhase::Done => 0,
        }
    }

    /// The phase as a number for series: 0, 1 or 2.
    pub(crate) fn phase_number(&self) -> f64 {
        match self.phase {
            SlowStartPhase::SlowStart => 0.0,
            SlowStartPhase::Conservative => 1.0,
            SlowStartPhase::Done => 2.0,
        }
    }
}

/// Lets the window grow in slow start by bytes, up to the threshold. All controls with Linux's growth use this
/// function. Returns the acknowledged bytes that remain for congestion avoidance.
#[inline]
pub(crate) fn slow_start(hystart: Option<&mut HyStart>, control: &mut WindowState, ack: &Ack) -> u64 {
    let mut growth = ack.acked_bytes;
    if let Some(hystart) = hystart
        && control.ssthresh_bytes == u64::MAX
    {
        let phase = hystart.on_ack_of(control, ack);
        if phase == SlowStartPhase::Done {
            control.ssthresh_bytes = control.cwnd_bytes;
            return ack.acked_bytes;
        }
        growth = hystart.growth_bytes(phase, ack.acked_bytes, window::segment(control));
    }
    if !ack.cwnd_limited {
        return 0;
    }
    let room = control.ssthresh_bytes - control.cwnd_bytes;
    control.cwnd_bytes += growth.min(room);
    growth.saturating_sub(room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{ControlOptions, HyStartSupport, create};
    use crate::control::WindowState;
    use crate::controls::CONTROLS;
    use fullpipe_units::Instant;

    const MSS: u64 = 1_448;

    /// An acknowledgement of a segment of 1448 bytes in slow start.
    pub(super) fn acknowledgement(now: Instant, rtt: Duration, round_start: bool) -> Ack {
        Ack {
            now,
            acked_bytes: 1_448,
            cumulative_bytes: 1_448,
            lost_bytes: 0,
            rtt: Some(rtt),
            smoothed_rtt: rtt,
            min_rtt: rtt,
            ack_delay: Duration::ZERO,
            one_way_delay: None,
            prior_in_flight_bytes: 0,
            in_flight_bytes: 0,
            delivered_bytes: 0,
            round_count: 0,
            round_start,
            rate: None,
            app_limited: false,
            cwnd_limited: true,
            in_recovery: false,
            ce_packets: 0,
            ce_bytes: 0,
        }
    }

    fn ack(rtt_us: u64, round_start: bool) -> Ack {
        acknowledgement(Instant::ZERO, Duration::from_micros(rtt_us), round_start)
    }

    /// Runs a round with this number of equal samples; returns the phase after it.
    fn round(hystart: &mut HyStart, samples: u32, rtt_us: u64) -> SlowStartPhase {
        for n in 0..samples {
            hystart.on_ack(&ack(rtt_us, n == 0));
        }
        hystart.phase()
    }

    #[test]
    fn slow_start_continues_with_a_constant_round_trip_time() {
        let mut hystart = HyStart::new(true);
        for _ in 0..100 {
            assert_eq!(round(&mut hystart, 20, 100_000), SlowStartPhase::SlowStart);
        }
    }

    #[test]
    fn slow_start_ends_after_five_conservative_rounds_with_a_grown_round_trip_time() {
        // 100 ms, then 113 ms: an eighth (12.5 ms) more. The phase is conservative from the eighth sample of that
        // round. That round is the first of five, so the start of the fifth round after it ends slow start.
        let mut hystart = HyStart::new(true);
        round(&mut hystart, 20, 100_000);
        assert_eq!(round(&mut hystart, 7, 113_000), SlowStartPhase::SlowStart);
        assert_eq!(hystart.on_ack(&ack(113_000, false)), SlowStartPhase::SlowStart, "the old rule still applies");
        assert_eq!(hystart.phase(), SlowStartPhase::Conservative);
        for n in 1..=4 {
            assert_eq!(round(&mut hystart, 20, 115_000), SlowStartPhase::Conservative, "round {n}");
        }
        assert_eq!(hystart.on_ack(&ack(115_000, true)), SlowStartPhase::Done);
        assert_eq!(hystart.phase(), SlowStartPhase::Done);
    }

    #[test]
    fn the_threshold_is_an_eighth_between_four_and_sixteen_milliseconds() {
        for (rtt, threshold) in
            [(10_000, 4_000), (32_000, 4_000), (64_000, 8_000), (128_000, 16_000), (400_000, 16_000)]
        {
            for (more, phase) in [(threshold - 1, SlowStartPhase::SlowStart), (threshold, SlowStartPhase::Conservative)]
            {
                let mut hystart = HyStart::new(true);
                round(&mut hystart, 8, rtt);
                assert_eq!(round(&mut hystart, 8, rtt + more), phase, "{rtt} + {more}");
            }
        }
    }

    #[test]
    fn the_smallest_of_at_least_eight_samples_of_a_round_counts() {
        let mut hystart = HyStart::new(true);
        round(&mut hystart, 8, 100_000);
        // One of eight samples is as short as before: jitter.
        assert_eq!(round(&mut hystart, 7, 200_000), SlowStartPhase::SlowStart);
        hystart.on_ack(&ack(100_000, false));
        assert_eq!(hystart.phase(), SlowStartPhase::SlowStart);
        // Fewer than eight samples are not evaluated. An acknowledgement without a sample does not count.
        assert_eq!(round(&mut hystart, 7, 200_000), SlowStartPhase::SlowStart);
        let none = Ack { rtt: None, ..ack(0, false) };
        hystart.on_ack(&none);
        assert_eq!(hystart.phase(), SlowStartPhase::SlowStart);
    }

    #[test]
    fn a_round_without_samples_is_not_compared() {
        let mut hystart = HyStart::new(true);
        round(&mut hystart, 8, 100_000);
        hystart.on_ack(&Ack { rtt: None, ..ack(0, true) });
        assert_eq!(round(&mut hystart, 8, 200_000), SlowStartPhase::SlowStart);
    }

    #[test]
    fn slow_start_resumes_when_the_delay_falls() {
        let mut hystart = HyStart::new(true);
        round(&mut hystart, 8, 100_000);
        assert_eq!(round(&mut hystart, 8, 120_000), SlowStartPhase::Conservative);
        // At the baseline the phase stays conservative; below it, slow start resumes.
        assert_eq!(round(&mut hystart, 8, 120_000), SlowStartPhase::Conservative);
        assert_eq!(round(&mut hystart, 7, 119_999), SlowStartPhase::Conservative);
        hystart.on_ack(&ack(119_999, false));
        assert_eq!(hystart.phase(), SlowStartPhase::SlowStart);
        // It can end again: 119.999 + 14.999 ms. The count of conservative rounds begins anew.
        assert_eq!(round(&mut hystart, 8, 135_000), SlowStartPhase::Conservative);
        for _ in 0..4 {
            assert_eq!(round(&mut hystart, 8, 135_000), SlowStartPhase::Conservative);
        }
        assert_eq!(round(&mut hystart, 8, 135_000), SlowStartPhase::Done);
    }

    #[test]
    fn growth_depends_on_the_phase_and_on_pacing() {
        let paced = HyStart::new(true);
        let unpaced = HyStart::new(false);
        // 20 segments acknowledged: the growth is all of them, or eight; a quarter of that in conservative slow start.
        assert_eq!(paced.growth_bytes(SlowStartPhase::SlowStart, 20 * MSS, MSS), 20 * MSS);
        assert_eq!(unpaced.growth_bytes(SlowStartPhase::SlowStart, 20 * MSS, MSS), 8 * MSS);
        assert_eq!(unpaced.growth_bytes(SlowStartPhase::SlowStart, 3 * MSS, MSS), 3 * MSS);
        assert_eq!(paced.growth_bytes(SlowStartPhase::Conservative, 20 * MSS, MSS), 5 * MSS);
        assert_eq!(unpaced.growth_bytes(SlowStartPhase::Conservative, 20 * MSS, MSS), 2 * MSS);
        assert_eq!(paced.growth_bytes(SlowStartPhase::Done, MSS, MSS), 0);
    }

    #[test]
    fn extreme_samples_do_not_overflow() {
        let mut hystart = HyStart::new(false);
        for n in 0..2_000 {
            hystart.on_ack(&Ack { rtt: Some(Duration::MAX), ..ack(0, n % 300 == 0) });
        }
        assert_eq!(hystart.growth_bytes(SlowStartPhase::SlowStart, u64::MAX, u64::MAX), u64::MAX);
    }

    /// Runs rounds of a full window with these round-trip times, from ten segments on, with any control that has
    /// HyStart++.
    fn drive(name: &str, paced: bool, rtts_us: &[u64]) -> WindowState {
        let mut controller = create(name, &ControlOptions { hystart_all: true, paced, ..ControlOptions::default() })
            .expect("the name is in the catalogue");
        let mut control = WindowState::new(MSS, 10 * MSS);
        for rtt in rtts_us {
            for n in 0..control.cwnd_bytes / MSS {
                controller.on_ack(&mut control, &ack(*rtt, n == 0));
            }
        }
        control
    }

    /// The controls that have HyStart++.
    fn names() -> impl Iterator<Item = &'static str> {
        CONTROLS
            .iter()
            .filter(|control| control.hystart != HyStartSupport::None)
            .map(|control| control.declaration.name)
    }

    #[test]
    fn every_control_ends_its_first_slow_start_when_the_delay_grows() {
        for name in names() {
            // 10, 20, 40 segments. In the round of 40 the delay has grown by 30 ms. Eight acknowledgements count for
            // one segment each and the other 32 for a quarter each: 56. Four more rounds grow by a quarter each: 70,
            // 87, 108, 135 segments (rounded down to whole acknowledgements). Then slow start ends.
            let mut rtts = vec![100_000, 100_000];
            assert_eq!(drive(name, true, &rtts).cwnd_bytes, 40 * MSS, "{}", name);
            rtts.push(130_000);
            assert_eq!(drive(name, true, &rtts).cwnd_bytes, 56 * MSS, "{}", name);
            rtts.extend([130_000; 4]);
            let control = drive(name, true, &rtts);
            assert_eq!(control.ssthresh_bytes, u64::MAX);
            let window = control.cwnd_bytes;
            assert!((135 * MSS..137 * MSS).contains(&window), "{} {window}", name);
            rtts.push(130_000);
            let control = drive(name, true, &rtts);
            assert_eq!(control.ssthresh_bytes, window, "{}", name);
            // Congestion avoidance in the last round: one segment or less in Reno and CUBIC, at most ten in Illinois.
            let most = if ["newreno", "linux-reno", "cubic"].contains(&name) { 1 } else { 10 };
            assert!((window..=window + most * MSS).contains(&control.cwnd_bytes), "{}", name);
        }
    }

    #[test]
    fn series_contain_the_phase_as_a_number() {
        // Rounds at 100 ms, one at 130 ms (conservative), and four more until the end.
        let mut controller =
            create("cubic", &ControlOptions { hystart_all: true, paced: true, ..ControlOptions::default() })
                .expect("the name is in the catalogue");
        let mut control = WindowState::new(MSS, 10 * MSS);
        let mut phases = Vec::new();
        for rtt in [100_000, 130_000, 130_000, 130_000, 130_000, 130_000, 130_000] {
            for n in 0..10 {
                controller.on_ack(&mut control, &ack(rtt, n == 0));
            }
            let mut values = Vec::new();
            controller.inspect(&mut values);
            phases.extend(values.iter().filter(|(name, _)| *name == "hystart_phase").map(|(_, value)| *value));
        }
        assert_eq!(phases, [0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]);
    }

    #[test]
    fn no_control_ends_slow_start_without_delay_or_uses_hystart_after_a_reduction() {
        for name in names() {
            let control = drive(name, true, &[100_000; 8]);
            assert_eq!((control.cwnd_bytes, control.ssthresh_bytes), (2_560 * MSS, u64::MAX), "{}", name);
            // With a threshold, slow start continues up to it, whatever the delay.
            let mut controller =
                create(name, &ControlOptions { hystart_all: true, paced: true, ..ControlOptions::default() })
                    .expect("the name is in the catalogue");
            let mut control = WindowState::new(MSS, 10 * MSS);
            control.ssthresh_bytes = 80 * MSS;
            for rtt in [100_000, 200_000, 300_000] {
                for n in 0..control.cwnd_bytes / MSS {
                    controller.on_ack(&mut control, &ack(rtt, n == 0));
                }
            }
            assert_eq!(control.cwnd_bytes, 80 * MSS, "{}", name);
        }
    }

    #[test]
    fn every_control_resumes_slow_start_when_the_delay_falls_below_the_baseline() {
        for name in names() {
            // 10, 20, 40 and, with eight whole and 32 quarter segments, 56 segments, as above. The delay then falls to 120 ms, below the
            // baseline of 130 ms. The first eight acknowledgements of the next round still count for a quarter, the other 48 for a
            // segment each: 106. The round after it doubles the window.
            let mut rtts = vec![100_000, 100_000, 130_000, 120_000];
            assert_eq!(drive(name, true, &rtts).cwnd_bytes, 106 * MSS, "{name}");
            rtts.push(120_000);
            let control = drive(name, true, &rtts);
            assert_eq!((control.cwnd_bytes, control.ssthresh_bytes), (212 * MSS, u64::MAX), "{name}");
        }
    }

    #[test]
    fn growth_per_acknowledgement_without_pacing_is_at_most_eight_segments() {
        for name in names() {
            for (paced, segments) in [(false, 8), (true, 30)] {
                let mut controller =
                    create(name, &ControlOptions { hystart_all: true, paced, ..ControlOptions::default() })
                        .expect("the name is in the catalogue");
                let mut control = WindowState::new(MSS, 40 * MSS);
                let stretch = Ack { acked_bytes: 30 * MSS, cumulative_bytes: 30 * MSS, ..ack(100_000, true) };
                controller.on_ack(&mut control, &stretch);
                assert_eq!(control.cwnd_bytes, (40 + segments) * MSS, "{} paced {paced}", name);
            }
        }
    }
}
