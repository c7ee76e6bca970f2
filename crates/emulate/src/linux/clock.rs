//! The wall clock of a real-time run, which converts the machine's monotonic clock to [`Instant`]s since the start of
//! the run.
//!
//! The kernel timestamps arrivals with another clock, which may be adjusted during a run. Therefore only the age of a
//! timestamp is used: both clocks are read together, and the age is subtracted from the monotonic time.
//!
//! The thread may be preempted between the two readings. If the monotonic clock were read first, ages would then be too
//! large, and packets would leave before their due time. It is therefore read before and after the other clock. The
//! later reading counts, so an arrival time is never too early. A wide bracket is read again.

use fullpipe_units::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}

/// Returns the time of the clock that the kernel uses for arrival timestamps, in nanoseconds since 1970. This time is
/// used for captures and never for the model.
pub fn unix_time_nanos() -> u64 {
    nanos(ClockId::Realtime)
}

/// Returns the CPU time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    Duration::from_nanos(nanos(ClockId::ThreadCPUTime))
}

/// A clock that measures the time since its start and can be set back.
#[derive(Clone, Copy, Debug)]
pub struct WallClock {
    epoch_nanos: u64,
}

impl WallClock {
    /// Starts a clock now.
    pub fn start() -> Self {
        WallClock { epoch_nanos: nanos(ClockId::Monotonic) }
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(nanos(ClockId::Monotonic).saturating_sub(self.epoch_nanos))
    }

    /// Sets the clock back by `by`, as if it had been stopped for that long.
    pub fn set_back(&mut self, by: Duration) {
        self.epoch_nanos = self.epoch_nanos.saturating_add(by.as_nanos());
    }

    /// Reads this clock and the clock of arrival timestamps, for the conversion of timestamps.
    pub fn read(&self) -> ClockReading {
        let (monotonic, wall_nanos) = bracketed(|| nanos(ClockId::Monotonic), || nanos(ClockId::Realtime));
        ClockReading { now: Instant::from_nanos(monotonic.saturating_sub(self.epoch_nanos)), wall_nanos }
    }
}

/// Width of a bracket, in nanoseconds, that is not read again. Without preemption, a clock is read in less than 1 µs.
const NARROW_NANOS: u64 = 5_000;

/// Maximum number of brackets. The narrowest one counts.
const BRACKETS: usize = 8;

/// Reads a wall clock between two readings of a monotonic clock. Returns the later one of these and the wall time.
fn bracketed(mut monotonic: impl FnMut() -> u64, mut wall: impl FnMut() -> u64) -> (u64, u64) {
    let (mut narrowest, mut best) = (u64::MAX, (0, 0));
    let mut before = monotonic();
    for _ in 0..BRACKETS {
        let wall_nanos = wall();
        let after = monotonic();
        let width = after.saturating_sub(before);
        if width < narrowest {
            (narrowest, best) = (width, (after, wall_nanos));
        }
        if width <= NARROW_NANOS {
            break;
        }
        before = after;
    }
    best
}

/// The times of a [`WallClock`] and of the clock of arrival timestamps at one instant.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// Time of the run.
    pub now: Instant,
    /// Time of the clock of arrival timestamps, in nanoseconds since 1970.
    pub wall_nanos: u64,
}

impl ClockReading {
    /// Returns the arrival time of a frame with this timestamp. A missing timestamp, or a timestamp in the future,
    /// counts as the time of the reading.
    pub fn instant_of(&self, stamp_nanos: Option<u64>) -> Instant {
        let age = stamp_nanos.map_or(0, |stamp| self.wall_nanos.saturating_sub(stamp));
        Instant::from_nanos(self.now.as_nanos().saturating_sub(age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_converted_by_their_age() {
        let reading = ClockReading { now: Instant::from_nanos(5_000), wall_nanos: 1_000_000 };
        assert_eq!(reading.instant_of(Some(999_000)), Instant::from_nanos(4_000));
        assert_eq!(reading.instant_of(Some(1_000_500)), Instant::from_nanos(5_000));
        assert_eq!(reading.instant_of(None), Instant::from_nanos(5_000));
        assert_eq!(reading.instant_of(Some(1)), Instant::ZERO, "before the beginning of the run");
    }

    /// A thread reads two clocks with the same epoch, at 100 ns for each reading, and is preempted for 600 µs before one
    /// of them. The bracket is read again, and the monotonic time is one reading later than the other.
    #[test]
    fn preemption_between_two_readings_makes_no_arrival_too_early() {
        for preempted in 0..5 {
            let (time, count) = (std::cell::Cell::new(1_000_000), std::cell::Cell::new(0));
            let read = || {
                let pause = if count.replace(count.get() + 1) == preempted { 600_000 } else { 0 };
                time.set(time.get() + 100 + pause);
                time.get()
            };
            let (now, wall) = bracketed(read, read);
            assert_eq!(now - wall, 100, "preempted before reading {preempted}");
        }
        // Preempted every time: late, but not early.
        let time = std::cell::Cell::new(1_000_000);
        let read = || time.replace(time.get() + 600_000);
        let (now, wall) = bracketed(read, read);
        assert_eq!(now - wall, 600_000);
    }

    #[test]
    fn held_clock_continues_from_its_earlier_time() {
        let mut clock = WallClock::start();
        let before = clock.now();
        let held = Duration::from_millis(1);
        std::thread::sleep(std::time::Duration::from_millis(2));
        clock.set_back(held);
        let after = clock.now();
        assert!(after >= before + held, "of two units slept one was held, so at least one has passed");
        clock.set_back(Duration::from_secs(1000));
        assert_eq!(clock.now(), Instant::ZERO);
    }
}
