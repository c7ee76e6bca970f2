//! Statistics of the lateness of a real-time run, and the verdict that follows from them.
//!
//! Five quantities are recorded:
//!
//! * **Events**: at each wakeup, how long after its due time the first due event of the model was processed.
//! * **Subframes**: how long after its start each subframe of an access network was processed.
//! * **Packets**: how long after its due time each packet was passed to the kernel.
//! * **Arrivals**: how far the model's clock was ahead of the timestamp of each packet from a real host; zero if it was
//!   not ahead.
//! * **Stalls**: gaps between iterations of the emulator's own loop.
//!
//! Frames that the kernel drops between hosts and the emulator are losses that are not part of the scenario. A single
//! such drop therefore makes the verdict "late".

use fullpipe_units::Duration;
use hdrhistogram::Histogram;

/// The limits of lateness, above which the verdict of a run is "late".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatenessLimits {
    /// Lateness above which an event, subframe, packet or arrival counts as late.
    pub late_after: Duration,
    /// Maximum permitted fraction of late values, for each of these four kinds.
    pub late_share: f64,
    /// Length above which a gap between iterations of the emulator's loop is a stall. A single stall makes the verdict
    /// "late".
    pub stall_after: Duration,
}

impl Default for LatenessLimits {
    /// Returns limits of 1 ms, 1 % and 25 ms. The last limit tolerates that the hypervisor of a shared machine
    /// occasionally deschedules an idle guest for 20 ms.
    fn default() -> Self {
        LatenessLimits {
            late_after: Duration::from_millis(1),
            late_share: 0.01,
            stall_after: Duration::from_millis(25),
        }
    }
}

/// The counts and quantiles of a distribution of lateness, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LatenessSummary {
    /// Number of values.
    pub count: u64,
    /// Number of values above [`LatenessLimits::late_after`].
    pub late: u64,
    /// Median.
    pub p50_nanos: u64,
    /// 90th percentile.
    pub p90_nanos: u64,
    /// 99th percentile.
    pub p99_nanos: u64,
    /// 99.9th percentile.
    pub p999_nanos: u64,
    /// Largest value.
    pub max_nanos: u64,
}

impl LatenessSummary {
    /// Returns the fraction of late values; 0 if there are no values.
    pub fn late_share(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.late as f64 / self.count as f64 }
    }
}

/// Whether a run was on time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimingResult {
    /// The reasons why the run was late; empty if it was on time.
    pub reasons: Vec<String>,
}

impl TimingResult {
    /// Whether the run was on time.
    pub fn is_on_time(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// The recorded lateness of a run.
#[derive(Clone, Debug)]
pub struct Lateness {
    limits: LatenessLimits,
    events: Histogram<u64>,
    subframes: Histogram<u64>,
    packets: Histogram<u64>,
    arrivals: Histogram<u64>,
    /// The first gaps in the emulator's loop that were longer than [`LatenessLimits::stall_after`].
    stalls: Vec<Duration>,
    /// Number of stalls beyond those stored.
    further_stalls: u64,
    dropped: u64,
    worked: Duration,
}

/// Maximum recorded lateness: one hour. Larger values are recorded as this value.
const LONGEST_NANOS: u64 = 3_600_000_000_000;

/// Maximum number of stalls that are stored individually.
const STALLS_KEPT: usize = 1000;

fn histogram() -> Histogram<u64> {
    // Three significant digits, that is, a resolution of 0.1 % of a value.
    Histogram::new_with_bounds(1, LONGEST_NANOS, 3).expect("the constant bounds are valid")
}

impl Lateness {
    /// Returns a record without values.
    pub fn new(limits: LatenessLimits) -> Self {
        Lateness {
            limits,
            events: histogram(),
            subframes: histogram(),
            packets: histogram(),
            arrivals: histogram(),
            stalls: Vec::new(),
            further_stalls: 0,
            dropped: 0,
            worked: Duration::ZERO,
        }
    }

    /// Returns the limits of this run.
    pub fn limits(&self) -> LatenessLimits {
        self.limits
    }

    /// Records the lateness of the first event that was due at a wakeup.
    pub fn record_event(&mut self, by: Duration) {
        self.events.saturating_record(by.as_nanos());
    }

    /// Records the time from the start of a subframe until it was processed.
    pub fn record_subframe(&mut self, by: Duration) {
        self.subframes.saturating_record(by.as_nanos());
    }

    /// Records how long after its due time a packet was passed to the kernel.
    pub fn record_packet(&mut self, by: Duration) {
        self.packets.saturating_record(by.as_nanos());
    }

    /// Records how far the model's clock was ahead of the timestamp of a packet from a real host.
    pub fn record_arrival(&mut self, by: Duration) {
        self.arrivals.saturating_record(by.as_nanos());
    }

    /// Records a gap between iterations of the emulator's loop. Returns whether the gap is a stall.
    pub fn record_gap(&mut self, by: Duration) -> bool {
        let stalled = by > self.limits.stall_after;
        if stalled && self.stalls.len() < STALLS_KEPT {
            self.stalls.push(by);
        } else if stalled {
            self.further_stalls += 1;
        }
        stalled
    }

    /// Adds the number of frames that the kernel dropped between hosts and the emulator since the last call.
    pub fn add_drops(&mut self, frames: u64) {
        self.dropped += frames;
    }

    /// Adds the time for which the emulator's loop was busy before it waited again.
    pub fn add_busy_time(&mut self, during: Duration) {
        self.worked += during;
    }

    fn spread(&self, histogram: &Histogram<u64>) -> LatenessSummary {
        let above = histogram.len() - histogram.count_between(0, self.limits.late_after.as_nanos());
        LatenessSummary {
            count: histogram.len(),
            late: above,
            p50_nanos: histogram.value_at_quantile(0.5),
            p90_nanos: histogram.value_at_quantile(0.9),
            p99_nanos: histogram.value_at_quantile(0.99),
            p999_nanos: histogram.value_at_quantile(0.999),
            max_nanos: histogram.max(),
        }
    }

    /// Returns the lateness of events.
    pub fn events(&self) -> LatenessSummary {
        self.spread(&self.events)
    }

    /// Returns the lateness of subframes.
    pub fn subframes(&self) -> LatenessSummary {
        self.spread(&self.subframes)
    }

    /// Returns the lateness of packets to real hosts.
    pub fn packets(&self) -> LatenessSummary {
        self.spread(&self.packets)
    }

    /// Returns the lateness of packets from real hosts.
    pub fn arrivals(&self) -> LatenessSummary {
        self.spread(&self.arrivals)
    }

    /// Returns the first 1000 stalls, in order.
    pub fn stalls(&self) -> &[Duration] {
        &self.stalls
    }

    /// Returns the number of stalls.
    pub fn stall_count(&self) -> u64 {
        self.stalls.len() as u64 + self.further_stalls
    }

    /// Returns the number of frames dropped between hosts and the emulator.
    pub fn drops(&self) -> u64 {
        self.dropped
    }

    /// Returns the total time for which the emulator's loop was busy; the loop waited for the rest of the run.
    pub fn busy_time(&self) -> Duration {
        self.worked
    }

    /// Returns the verdict of the run.
    pub fn result(&self) -> TimingResult {
        let mut reasons = Vec::new();
        let limit = self.limits.late_after;
        let counted = [
            ("events", self.events()),
            ("subframes", self.subframes()),
            ("packets", self.packets()),
            ("arrivals", self.arrivals()),
        ];
        for (what, spread) in counted {
            if spread.late_share() > self.limits.late_share {
                reasons.push(format!(
                    "{:.2} % of {} {what} were more than {limit} late (at most {:.2} % are accepted)",
                    spread.late_share() * 100.0,
                    spread.count,
                    self.limits.late_share * 100.0
                ));
            }
        }
        if let Some(longest) = self.stalls.iter().max() {
            let count = self.stall_count();
            reasons.push(format!(
                "the emulator stalled {count} time{} for more than {}; the longest stall was {:.1} ms",
                if count == 1 { "" } else { "s" },
                self.limits.stall_after,
                longest.as_nanos() as f64 / 1e6
            ));
        }
        if self.dropped > 0 {
            reasons.push(format!("{} frames between hosts and the emulator were dropped", self.dropped));
        }
        TimingResult { reasons }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(number: u64) -> Duration {
        Duration::from_nanos(number * 1000)
    }

    #[test]
    fn quantiles_of_equidistant_values_are_exact_to_three_digits() {
        // 1, 2, ..., 1000 us: the median is the 500th value, p99 the 990th; three digits are exact to 0.1 %.
        let mut lateness = Lateness::new(LatenessLimits { late_after: micros(900), ..LatenessLimits::default() });
        (1..=1000).for_each(|step| lateness.record_packet(micros(step)));
        let spread = lateness.packets();
        let near = |value: u64, micros: u64| value.abs_diff(micros * 1000) <= micros;
        assert!(near(spread.p50_nanos, 500), "{spread:?}");
        assert!(near(spread.p90_nanos, 900), "{spread:?}");
        assert!(near(spread.p99_nanos, 990), "{spread:?}");
        assert!(near(spread.max_nanos, 1000), "{spread:?}");
        assert_eq!((spread.count, spread.late), (1000, 100));
        assert_eq!(lateness.events(), LatenessSummary::default());
    }

    #[test]
    fn run_is_late_when_any_limit_is_exceeded() {
        let clean = || {
            let mut lateness = Lateness::new(LatenessLimits::default());
            for _ in 0..1000 {
                lateness.record_event(micros(5));
                lateness.record_subframe(micros(5));
                lateness.record_packet(micros(5));
                lateness.record_arrival(Duration::ZERO);
            }
            assert!(!lateness.record_gap(Duration::from_millis(25)));
            lateness
        };
        assert!(clean().result().is_on_time());
        type Spoil = fn(&mut Lateness);
        let spoiled: [(Spoil, &str); 6] = [
            (|l| (0..11).for_each(|_| l.record_event(Duration::from_millis(2))), "events"),
            (|l| (0..11).for_each(|_| l.record_subframe(Duration::from_millis(2))), "subframes"),
            (|l| (0..11).for_each(|_| l.record_packet(Duration::from_millis(2))), "packets"),
            (|l| (0..11).for_each(|_| l.record_arrival(Duration::from_millis(2))), "arrivals"),
            (|l| assert!(l.record_gap(Duration::from_millis(50))), "stalled 1 time"),
            (|l| l.add_drops(1), "dropped"),
        ];
        for (spoil, word) in spoiled {
            let mut lateness = clean();
            spoil(&mut lateness);
            let verdict = lateness.result();
            assert!(verdict.reasons.len() == 1 && verdict.reasons[0].contains(word), "{verdict:?}");
        }
        // Ten late values of 1010 are less than one percent.
        let mut lateness = clean();
        (0..10).for_each(|_| lateness.record_packet(Duration::from_millis(2)));
        assert!(lateness.result().is_on_time());
    }

    #[test]
    fn stalls_beyond_the_stored_ones_are_counted() {
        let mut lateness = Lateness::new(LatenessLimits::default());
        (0..1005).for_each(|_| assert!(lateness.record_gap(Duration::from_secs(1))));
        assert_eq!((lateness.stalls().len(), lateness.stall_count()), (1000, 1005));
        assert!(lateness.result().reasons[0].contains("1005 times"));
    }
}
