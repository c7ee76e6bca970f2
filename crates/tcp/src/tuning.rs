//! Growth of the receive buffer by dynamic right-sizing (Fisk and Feng, "Dynamic Right-Sizing in TCP", 2001), as in
//! Linux (`tcp_rcv_space_adjust`, `tcp_rcv_rtt_measure`).
//!
//! **Model.** A sender in slow start doubles its rate every round trip. The receiver must therefore offer twice the
//! data that its application read in the last round trip, plus some segments for the jitter of reads. If the amount
//! read grew by a fraction, the receiver adds twice that fraction. The buffer only grows, up to its bound.
//!
//! The receiver measures the round-trip time from echoed timestamps, with one sample per millisecond. A shorter sample
//! takes effect immediately, because a sample can only be too long. A longer sample has the weight 1/8 (as in Linux
//! since 6.16, for each echoed value). Without timestamps, the round-trip time is the shortest time in which a whole
//! window arrived. The round trips of the tuning therefore begin with the rounds in which a sender in slow start sends.

use crate::Config;
use fullpipe_units::{Duration, Instant};

/// Additional segments that are offered above twice the data read.
const SPARE_SEGMENTS: u64 = 16;
/// Time between samples. Linux takes one for each echoed value, and its timestamps have ticks of one millisecond.
const PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct ReceiveBufferTuning {
    most_bytes: u64,
    mss_bytes: u64,
    rtt: Option<Duration>,
    /// Without timestamps: the end of the measured window, and the start time of the measurement.
    mark: u64,
    mark_at: Option<Instant>,
    /// Maximum amount of data that the application has read in one round trip.
    space_bytes: u64,
    /// Offset read by the application at the start of the current round trip, and its time.
    round_read: u64,
    round_at: Instant,
    /// The size to which the buffer may grow step by step.
    pub(crate) granted_bytes: u64,
}

impl ReceiveBufferTuning {
    /// Creates the state. `most_bytes` is the largest window that the field can represent.
    pub(crate) fn new(config: &Config, most_bytes: u64) -> ReceiveBufferTuning {
        let mss_bytes = u64::from(config.mss_bytes.max(1));
        let initial_bytes = mss_bytes.saturating_mul(u64::from(config.initial_window_segments.max(1)));
        ReceiveBufferTuning {
            most_bytes: config.receive_buffer_bytes.min(most_bytes),
            mss_bytes,
            rtt: None,
            mark: 0,
            mark_at: None,
            space_bytes: initial_bytes.min(config.first_receive_buffer_bytes()).max(1),
            round_read: 0,
            round_at: Instant::ZERO,
            granted_bytes: 0,
        }
    }

    /// Processes received data, which is complete up to `next`, and returns the time of the next check. `rtt` is a
    /// sample from timestamps.
    pub(crate) fn on_data(&mut self, now: Instant, rtt: Option<Duration>, next: u64, window_end: u64) -> Instant {
        if let Some(sample) = rtt {
            let smoothed = self.rtt.map_or(sample, |old| if sample < old { sample } else { old + (sample - old) / 8 });
            self.rtt = Some(smoothed);
            return now.saturating_add(PAUSE);
        }
        if self.mark_at.is_some() && next < self.mark {
            return now;
        }
        if let Some(begun) = self.mark_at {
            let sample = now.saturating_since(begun);
            self.rtt = Some(self.rtt.map_or(sample, |old| old.min(sample)));
        }
        self.mark = window_end;
        self.mark_at = Some(now);
        now
    }

    /// Returns the required buffer size at the end of a round trip in which the application read more than in any
    /// before.
    pub(crate) fn wanted_bytes(&mut self, now: Instant, read: u64) -> Option<u64> {
        let rtt = self.rtt?;
        if now.saturating_since(self.round_at) < rtt {
            return None;
        }
        let copied = read - self.round_read;
        self.round_read = read;
        self.round_at = now;
        if copied <= self.space_bytes {
            return None;
        }
        let room = copied.saturating_mul(2).saturating_add(SPARE_SEGMENTS * self.mss_bytes);
        let share = u128::from(copied - self.space_bytes);
        let growth = u128::from(room) * share / u128::from(self.space_bytes);
        self.space_bytes = copied;
        let wanted = u128::from(room) + 2 * growth;
        Some(u64::try_from(wanted).unwrap_or(u64::MAX).min(self.most_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    fn tuning() -> ReceiveBufferTuning {
        let config = Config {
            mss_bytes: 1000,
            receive_buffer_bytes: 200_000,
            initial_receive_window_bytes: Some(20_000),
            ..Config::linux()
        };
        ReceiveBufferTuning::new(&config, u64::MAX)
    }

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    #[test]
    fn wanted_buffer_is_twice_the_data_read_plus_twice_its_growth() {
        let mut tuning = tuning();
        tuning.on_data(at(100), Some(RTT), 0, 20_000);
        // The initial maximum is ten segments. 20 000 read: 2 x 20 000 + 16 000 = 56 000, growth by 100 %: x (1 + 2).
        assert_eq!(tuning.wanted_bytes(at(100), 20_000), Some(168_000));
        // Not before the end of the next round trip.
        assert_eq!(tuning.wanted_bytes(at(199), 80_000), None);
        // 22 000 more: 44 000 + 16 000 = 60 000, 10 % more than 20 000: x (1 + 2/10).
        assert_eq!(tuning.wanted_bytes(at(200), 42_000), Some(72_000));
        // Without a new maximum, no growth; then the bound.
        assert_eq!(tuning.wanted_bytes(at(300), 64_000), None);
        assert_eq!(tuning.wanted_bytes(at(400), 264_000), Some(200_000));
    }

    #[test]
    fn sample_prolonged_by_a_pause_has_a_short_effect() {
        let mut tuning = tuning();
        assert_eq!(tuning.on_data(at(10_000), Some(Duration::from_secs(8)), 0, 0), at(10_001));
        let mut now = at(10_000);
        now = tuning.on_data(now, Some(Duration::from_millis(20)), 0, 0);
        assert_eq!(tuning.rtt, Some(Duration::from_millis(20)));
        // A longer one has the weight 1/8: 20 + (100 - 20) / 8.
        tuning.on_data(now, Some(Duration::from_millis(100)), 0, 0);
        assert_eq!(tuning.rtt, Some(Duration::from_millis(30)));
    }

    #[test]
    fn round_trip_time_without_timestamps_is_the_shortest_time_of_a_window() {
        let mut tuning = tuning();
        tuning.on_data(at(0), None, 0, 10_000);
        tuning.on_data(at(50), None, 9_999, 18_000);
        assert_eq!(tuning.rtt, None);
        tuning.on_data(at(60), None, 10_000, 20_000);
        assert_eq!(tuning.rtt, Some(Duration::from_millis(60)));
        tuning.on_data(at(100), None, 20_000, 30_000);
        assert_eq!(tuning.rtt, Some(Duration::from_millis(40)));
        tuning.on_data(at(190), None, 30_000, 40_000);
        assert_eq!(tuning.rtt, Some(Duration::from_millis(40)));
    }
}
