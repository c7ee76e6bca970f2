//! The wall clock as the model sees it: [`Instant`]s since the run's begin, by the machine's monotonic clock.
//!
//! The kernel stamps arrivals by another clock, which may be set while a run goes on. A stamp is therefore used only as an
//! age: both clocks are read one after the other, and what arrived so long ago arrived then.

use fullpipe_units::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// The wall clock's time, as arrival stamps have it: for captures, never for the model.
pub fn nanos_since_1970() -> u64 {
    nanos(ClockId::Realtime)
}

/// Processor time of the calling thread.
pub fn thread_processor_time() -> Duration {
    Duration::from_nanos(nanos(ClockId::ThreadCPUTime))
}

/// A clock that began at some moment, and may be held up.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    epoch_nanos: u64,
}

impl WallClock {
    /// One that begins now.
    pub fn start() -> Self {
        WallClock { epoch_nanos: nanos(ClockId::Monotonic) }
    }

    /// Time since its begin.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(nanos(ClockId::Monotonic).saturating_sub(self.epoch_nanos))
    }

    /// Sets it back, as if it had stood still for so long.
    pub fn hold(&mut self, by: Duration) {
        self.epoch_nanos = self.epoch_nanos.saturating_add(by.as_nanos());
    }

    /// Reads both clocks, to convert stamps with.
    pub fn reading(&self) -> Reading {
        let now = self.now();
        Reading { now, wall_nanos: nanos(ClockId::Realtime) }
    }
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// The run's.
    pub now: Instant,
    /// The one of arrival stamps: nanoseconds since 1970.
    pub wall_nanos: u64,
}

impl Reading {
    /// When a frame with this stamp arrived; a stamp of the future, or none, counts as now.
    pub fn instant_of(&self, stamp_nanos: Option<u64>) -> Instant {
        let age = stamp_nanos.map_or(0, |stamp| self.wall_nanos.saturating_sub(stamp));
        Instant::from_nanos(self.now.as_nanos().saturating_sub(age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_ages() {
        let reading = Reading { now: Instant::from_nanos(5_000), wall_nanos: 1_000_000 };
        assert_eq!(reading.instant_of(Some(999_000)), Instant::from_nanos(4_000));
        assert_eq!(reading.instant_of(Some(1_000_500)), Instant::from_nanos(5_000));
        assert_eq!(reading.instant_of(None), Instant::from_nanos(5_000));
        assert_eq!(reading.instant_of(Some(1)), Instant::ZERO, "before the begin of the run");
    }

    #[test]
    fn a_held_clock_goes_on_where_it_stood() {
        let mut clock = WallClock::start();
        let before = clock.now();
        let held = Duration::from_millis(1);
        std::thread::sleep(std::time::Duration::from_millis(2));
        clock.hold(held);
        let after = clock.now();
        assert!(after >= before + held, "two slept, one held: at least one has passed");
        clock.hold(Duration::from_secs(1000));
        assert_eq!(clock.now(), Instant::ZERO);
    }
}
