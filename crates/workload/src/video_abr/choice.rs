//! The selection of the next segment's bit rate.
//!
//! - By buffer: BBA-0 of Huang, Johari, McKeown, Trunnell and Watson, "A buffer-based approach to rate adaptation", SIGCOMM 2014,
//!   algorithm 1. A function f of the buffer level gives the lowest rate up to the reservoir, the highest from reservoir plus
//!   cushion, and is linear between. The last rate is kept until f crosses the neighboring step of the ladder. Then the rate
//!   becomes the highest step below f on the way up, and the lowest above f on the way down. The paper's numbers are a reservoir
//!   of 90 s and a cushion of 126 s in a buffer of 240 s.
//! - By throughput: the harmonic mean of the last samples as in Jiang, Sekar and Zhang (FESTIVE, CoNEXT 2012), which a single
//!   fast sample hardly raises. Five samples are used as in Yin, Jindal, Sekar and Sinopoli (SIGCOMM 2015).

use super::AbrAlgorithm;
use fullpipe_units::{Duration, Rate};
use std::collections::VecDeque;

/// The state of the selection, besides the buffer level.
#[derive(Debug)]
pub(super) struct RateSelector {
    choice: AbrAlgorithm,
    ladder: Vec<Rate>,
    /// Step of the ladder of the last segment.
    step: usize,
    /// Throughputs of the last segments in bit/s.
    samples: VecDeque<f64>,
}

impl RateSelector {
    /// Creates a selection that starts at the lowest rate. The ladder is not empty.
    pub(super) fn new(choice: AbrAlgorithm, ladder: Vec<Rate>) -> Self {
        RateSelector { choice, ladder, step: 0, samples: VecDeque::new() }
    }

    /// Adds a sample: a segment of `bytes` bytes that arrived in `time`.
    pub(super) fn sample(&mut self, bytes: u64, time: Duration) {
        if let AbrAlgorithm::Throughput { samples, .. } = self.choice {
            // A segment that arrives in no time counts as a nanosecond.
            let seconds = time.max(Duration::from_nanos(1)).as_secs_f64();
            self.samples.push_back(bytes as f64 * 8.0 / seconds);
            while self.samples.len() > samples as usize {
                self.samples.pop_front();
            }
        }
    }

    /// Returns the rate of the next segment.
    pub(super) fn next(&mut self, level: Duration) -> Rate {
        self.step = match self.choice {
            AbrAlgorithm::Buffer { reservoir, cushion } => self.by_buffer(level, reservoir, cushion),
            AbrAlgorithm::Throughput { safety, .. } => self.by_throughput(safety),
        };
        self.ladder[self.step]
    }

    fn bits_per_second(&self, step: usize) -> f64 {
        self.ladder[step].bits_per_second() as f64
    }

    fn by_throughput(&self, safety: f64) -> usize {
        let sum: f64 = self.samples.iter().map(|sample| 1.0 / sample).sum();
        if sum <= 0.0 {
            return 0;
        }
        let usable = safety * self.samples.len() as f64 / sum;
        let above = (0..self.ladder.len()).find(|&step| self.bits_per_second(step) > usable);
        above.unwrap_or(self.ladder.len()).saturating_sub(1)
    }

    fn by_buffer(&self, level: Duration, reservoir: Duration, cushion: Duration) -> usize {
        let highest = self.ladder.len() - 1;
        if level <= reservoir {
            return 0;
        }
        if level >= reservoir.saturating_add(cushion) {
            return highest;
        }
        let part = level.saturating_sub(reservoir).as_secs_f64() / cushion.as_secs_f64();
        let lowest_rate = self.bits_per_second(0);
        let mapped = lowest_rate + (self.bits_per_second(highest) - lowest_rate) * part;
        if mapped >= self.bits_per_second((self.step + 1).min(highest)) {
            let below = (0..=highest).rev().find(|&step| self.bits_per_second(step) < mapped);
            below.unwrap_or(0)
        } else if self.step > 0 && mapped <= self.bits_per_second(self.step - 1) {
            let above = (0..=highest).find(|&step| self.bits_per_second(step) > mapped);
            above.unwrap_or(highest)
        } else {
            self.step
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chooser(choice: AbrAlgorithm) -> RateSelector {
        RateSelector::new(choice, [1, 2, 3, 5].map(Rate::from_megabits_per_second).to_vec())
    }

    #[test]
    fn buffer_map_has_hysteresis() {
        // Reservoir 10 s, cushion 40 s, 1 to 5 Mbit/s: f = 1 + (B - 10) / 10 Mbit/s.
        let choice = AbrAlgorithm::Buffer { reservoir: Duration::from_secs(10), cushion: Duration::from_secs(40) };
        let mut chooser = chooser(choice);
        // Level in seconds and rate in Mbit/s, for a buffer that fills and then drains.
        for (level, rate) in [
            (0, 1),
            (10, 1),
            (19, 1), // f = 1.9 < 2
            (20, 1), // f = 2 >= 2, but the highest step below 2 is 1
            (21, 2), // f = 2.1
            (29, 2), // f = 2.9 < 3
            (49, 3), // f = 4.9 >= 3: highest below is 3
            (50, 5), // reservoir + cushion
            (31, 5), // f = 3.1 > 3, the step below: kept
            (30, 5), // f = 3 <= 3, but the lowest step above 3 is 5
            (29, 3), // f = 2.9
            (21, 3), // f = 2.1 > 2: kept
            (12, 2), // f = 1.2 <= 2: lowest above is 2
            (10, 1),
        ] {
            assert_eq!(chooser.next(Duration::from_secs(level)), Rate::from_megabits_per_second(rate), "{level}");
        }
    }

    #[test]
    fn harmonic_mean_covers_the_last_samples() {
        let mut chooser = chooser(AbrAlgorithm::Throughput { safety: 0.5, samples: 2 });
        assert_eq!(chooser.next(Duration::ZERO), Rate::from_megabits_per_second(1));
        // A million bytes in 1 s: 8 Mbit/s, half of it 4: step 3.
        chooser.sample(1_000_000, Duration::from_secs(1));
        assert_eq!(chooser.next(Duration::ZERO), Rate::from_megabits_per_second(3));
        // 8 and 24 Mbit/s: harmonic mean 2 / (1/8 + 1/24) = 12 (arithmetic 16), half of it 6: step 5.
        chooser.sample(3_000_000, Duration::from_secs(1));
        assert_eq!(chooser.next(Duration::ZERO), Rate::from_megabits_per_second(5));
        // 24 and 2.4: 2 / (1/24 + 10/24) = 48/11 = 4.36; half of it 2.18: step 2. If 8 were still included, the mean would be 3 /
        // (3/24 + 1/24 + 10/24) = 5.14 and the step also 2. So another sample of 2.4: mean 2.4, half of it 1.2: step 1.
        chooser.sample(300_000, Duration::from_secs(1));
        assert_eq!(chooser.next(Duration::ZERO), Rate::from_megabits_per_second(2));
        chooser.sample(300_000, Duration::from_secs(1));
        assert_eq!(chooser.next(Duration::ZERO), Rate::from_megabits_per_second(1));
        // A value equal to a step is sufficient: 4 and 4 Mbit/s, half of it 2.
        chooser.sample(500_000, Duration::from_secs(1));
        chooser.sample(500_000, Duration::from_secs(1));
        assert_eq!(chooser.next(Duration::ZERO), Rate::from_megabits_per_second(2));
    }
}
