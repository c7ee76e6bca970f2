//! How late a real-time run was, and whether it may be believed.
//!
//! Five things are counted. **Events**: how long after its time the first due event of the model was worked off, each time
//! the emulator woke for one. **Subframes**: how long after its beginning the work of each subframe of an access network was
//! done, all of them, also those of which several were overdue. **Packets**: how long after its time each packet was handed to the kernel. **Arrivals**: how
//! far behind the model's clock a packet from a real host entered, because the model had gone on already (zero for those that
//! came in time). **Stalls**: gaps of the emulator's own loop. Frames that the kernel dropped between hosts and the emulator
//! are losses that the described network does not have, so that one of them suffices to spoil a run.

use fullpipe_units::Duration;
use hdrhistogram::Histogram;

/// From which a run is not to be trusted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// An event, subframe, packet or arrival more than this late counts as late.
    pub late_after: Duration,
    /// Largest share of late ones, for each of the four.
    pub late_share: f64,
    /// A gap of the emulator's loop longer than this is a stall; none may occur.
    pub stall_after: Duration,
}

impl Default for Limits {
    /// 1 ms, one per cent, stalls from 25 ms: a shared machine takes a quiet guest's processor away for 20 ms now and then.
    fn default() -> Self {
        Limits { late_after: Duration::from_millis(1), late_share: 0.01, stall_after: Duration::from_millis(25) }
    }
}

/// How something spreads: counts and quantiles, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many values.
    pub count: u64,
    /// How many are above [`Limits::late_after`].
    pub late: u64,
    /// Median.
    pub p50_nanos: u64,
    /// 90 of 100 are at most this.
    pub p90_nanos: u64,
    /// 99 of 100 are at most this.
    pub p99_nanos: u64,
    /// 999 of 1000 are at most this.
    pub p999_nanos: u64,
    /// Largest.
    pub max_nanos: u64,
}

impl Spread {
    /// Share of late ones; 0 without any values.
    pub fn late_share(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.late as f64 / self.count as f64 }
    }
}

/// What is to be thought of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Why it is not to be trusted; empty if it was on time.
    pub reasons: Vec<String>,
}

impl Verdict {
    /// Whether the run was on time.
    pub fn on_time(&self) -> bool {
        self.reasons.is_empty()
    }
}

/// The account of a run.
#[derive(Clone, Debug)]
pub struct Lateness {
    limits: Limits,
    events: Histogram<u64>,
    subframes: Histogram<u64>,
    packets: Histogram<u64>,
    arrivals: Histogram<u64>,
    /// Gaps of the loop that were longer than [`Limits::stall_after`].
    stalls: Vec<Duration>,
    /// Stalls beyond those kept.
    further_stalls: u64,
    dropped: u64,
    worked: Duration,
}

/// Longest lateness that is told from longer ones: an hour.
const LONGEST_NANOS: u64 = 3_600_000_000_000;

/// Stalls that are kept one by one.
const STALLS_KEPT: usize = 1000;

fn histogram() -> Histogram<u64> {
    // Three digits: 0.1 % of a value. The bounds are constants that the library accepts.
    Histogram::new_with_bounds(1, LONGEST_NANOS, 3).expect("constant bounds are good")
}

impl Lateness {
    /// An empty account.
    pub fn new(limits: Limits) -> Self {
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

    /// What counts as late.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The emulator woke for an event and was so late.
    pub fn event(&mut self, by: Duration) {
        self.events.saturating_record(by.as_nanos());
    }

    /// The work of a subframe was done so long after its beginning.
    pub fn subframe(&mut self, by: Duration) {
        self.subframes.saturating_record(by.as_nanos());
    }

    /// A packet was handed to the kernel so late.
    pub fn packet(&mut self, by: Duration) {
        self.packets.saturating_record(by.as_nanos());
    }

    /// A packet from a real host entered so far behind the model's clock.
    pub fn arrival(&mut self, by: Duration) {
        self.arrivals.saturating_record(by.as_nanos());
    }

    /// The loop should have come round so much earlier; says whether that is a stall.
    pub fn gap(&mut self, by: Duration) -> bool {
        let stalled = by > self.limits.stall_after;
        if stalled && self.stalls.len() < STALLS_KEPT {
            self.stalls.push(by);
        } else if stalled {
            self.further_stalls += 1;
        }
        stalled
    }

    /// The kernel has dropped so many frames between hosts and the emulator, since the last call.
    pub fn dropped(&mut self, frames: u64) {
        self.dropped += frames;
    }

    /// The loop was busy for so long before it waited again.
    pub fn worked(&mut self, during: Duration) {
        self.worked += during;
    }

    fn spread(&self, histogram: &Histogram<u64>) -> Spread {
        let above = histogram.len() - histogram.count_between(0, self.limits.late_after.as_nanos());
        Spread {
            count: histogram.len(),
            late: above,
            p50_nanos: histogram.value_at_quantile(0.5),
            p90_nanos: histogram.value_at_quantile(0.9),
            p99_nanos: histogram.value_at_quantile(0.99),
            p999_nanos: histogram.value_at_quantile(0.999),
            max_nanos: histogram.max(),
        }
    }

    /// Lateness of events.
    pub fn events(&self) -> Spread {
        self.spread(&self.events)
    }

    /// Lateness of subframes.
    pub fn subframes(&self) -> Spread {
        self.spread(&self.subframes)
    }

    /// Lateness of packets on their way out.
    pub fn packets(&self) -> Spread {
        self.spread(&self.packets)
    }

    /// Lateness of packets on their way in.
    pub fn arrivals(&self) -> Spread {
        self.spread(&self.arrivals)
    }

    /// The stalls, in order; the first thousand.
    pub fn stalls(&self) -> &[Duration] {
        &self.stalls
    }

    /// How many stalls there were.
    pub fn stall_count(&self) -> u64 {
        self.stalls.len() as u64 + self.further_stalls
    }

    /// Frames dropped between hosts and the emulator.
    pub fn drops(&self) -> u64 {
        self.dropped
    }

    /// How long the loop was busy in all; the rest of the run it waited.
    pub fn time_worked(&self) -> Duration {
        self.worked
    }

    /// What is to be thought of the run.
    pub fn verdict(&self) -> Verdict {
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
                    "{:.2} % of {} {what} were more than {limit} late (allowed: {:.2} %)",
                    spread.late_share() * 100.0,
                    spread.count,
                    self.limits.late_share * 100.0
                ));
            }
        }
        if let Some(longest) = self.stalls.iter().max() {
            let count = self.stall_count();
            reasons.push(format!(
                "the emulator stood still {count} time{} for more than {}, at most {longest}",
                if count == 1 { "" } else { "s" },
                self.limits.stall_after
            ));
        }
        if self.dropped > 0 {
            reasons.push(format!("{} frames were dropped between hosts and the emulator", self.dropped));
        }
        Verdict { reasons }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(number: u64) -> Duration {
        Duration::from_nanos(number * 1000)
    }

    #[test]
    fn quantiles_of_a_ladder() {
        // 1, 2, ..., 1000 us: the median is the 500th, p99 the 990th; three digits are exact to 0.1 %.
        let mut lateness = Lateness::new(Limits { late_after: micros(900), ..Limits::default() });
        (1..=1000).for_each(|step| lateness.packet(micros(step)));
        let spread = lateness.packets();
        let near = |value: u64, micros: u64| value.abs_diff(micros * 1000) <= micros;
        assert!(near(spread.p50_nanos, 500), "{spread:?}");
        assert!(near(spread.p90_nanos, 900), "{spread:?}");
        assert!(near(spread.p99_nanos, 990), "{spread:?}");
        assert!(near(spread.max_nanos, 1000), "{spread:?}");
        assert_eq!((spread.count, spread.late), (1000, 100));
        assert_eq!(lateness.events(), Spread::default());
    }

    #[test]
    fn a_run_is_on_time_until_one_of_its_limits_is_passed() {
        let clean = || {
            let mut lateness = Lateness::new(Limits::default());
            for _ in 0..1000 {
                lateness.event(micros(5));
                lateness.subframe(micros(5));
                lateness.packet(micros(5));
                lateness.arrival(Duration::ZERO);
            }
            assert!(!lateness.gap(Duration::from_millis(25)));
            lateness
        };
        assert!(clean().verdict().on_time());
        type Spoil = fn(&mut Lateness);
        let spoiled: [(Spoil, &str); 6] = [
            (|l| (0..11).for_each(|_| l.event(Duration::from_millis(2))), "events"),
            (|l| (0..11).for_each(|_| l.subframe(Duration::from_millis(2))), "subframes"),
            (|l| (0..11).for_each(|_| l.packet(Duration::from_millis(2))), "packets"),
            (|l| (0..11).for_each(|_| l.arrival(Duration::from_millis(2))), "arrivals"),
            (|l| assert!(l.gap(Duration::from_millis(50))), "stood still 1 time"),
            (|l| l.dropped(1), "dropped"),
        ];
        for (spoil, word) in spoiled {
            let mut lateness = clean();
            spoil(&mut lateness);
            let verdict = lateness.verdict();
            assert!(verdict.reasons.len() == 1 && verdict.reasons[0].contains(word), "{verdict:?}");
        }
        // Ten late ones of 1010 are less than one per cent.
        let mut lateness = clean();
        (0..10).for_each(|_| lateness.packet(Duration::from_millis(2)));
        assert!(lateness.verdict().on_time());
    }

    #[test]
    fn stalls_beyond_those_kept_are_counted() {
        let mut lateness = Lateness::new(Limits::default());
        (0..1005).for_each(|_| assert!(lateness.gap(Duration::from_secs(1))));
        assert_eq!((lateness.stalls().len(), lateness.stall_count()), (1000, 1005));
        assert!(lateness.verdict().reasons[0].contains("1005 times"));
    }
}
