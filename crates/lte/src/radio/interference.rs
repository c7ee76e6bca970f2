//! SINR of a signal that overlaps with others.
//!
//! During one reception other signals start and end. Each interval between these times (a *chunk*) has its own SINR.
//! The SINR of the reception is their average by duration, as in ns-3 (of the linear ratios, not of decibels).

use super::ROW_LANES;
use super::fading::Gains;

/// A received signal: its start and end, and its power density in each resource block.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    /// Start in seconds.
    pub from: f64,
    /// End in seconds.
    pub until: f64,
    /// Power density in W/Hz by resource block.
    pub density: Vec<f64>,
}

/// Returns the SINR of a signal in each resource block, averaged over the duration of the signal. `others` are the
/// interfering signals, and `noise` is the noise density of each resource block in W/Hz.
pub fn average_sinr(signal: &Signal, others: &[Signal], noise: &[f64]) -> Vec<f64> {
    let inside = |&time: &f64| time > signal.from && time < signal.until;
    let mut moments: Vec<f64> = others.iter().flat_map(|other| [other.from, other.until]).filter(inside).collect();
    moments.extend([signal.from, signal.until]);
    moments.sort_by(f64::total_cmp);
    let mut sums = vec![0.0; signal.density.len()];
    for chunk in moments.windows(2) {
        let (from, until) = (chunk[0], chunk[1]);
        for (block, sum) in sums.iter_mut().enumerate() {
            let present =
                others.iter().filter(|other| other.from <= from && other.until >= until && other.from < other.until);
            let interference: f64 = present.map(|other| other.density[block]).sum();
            *sum += (until - from) * signal.density[block] / (noise[block] + interference);
        }
    }
    for sum in &mut sums {
        *sum /= signal.until - signal.from;
    }
    sums
}

/// Noise and interference at a receiver in a subframe, relative to the noise: 1 plus the sum of the interfering
/// signals.
#[derive(Clone, Debug)]
pub struct InterferencePlusNoise {
    total: Gains,
}

impl Default for InterferencePlusNoise {
    fn default() -> Self {
        InterferencePlusNoise { total: [1.0; ROW_LANES] }
    }
}

impl InterferencePlusNoise {
    /// Adds an interfering signal. `gains` are its fading gains in the resource blocks, and `to_noise` is its ratio to
    /// the noise without fading.
    pub fn add(&mut self, gains: &Gains, to_noise: f32) {
        for (total, gain) in self.total.iter_mut().zip(gains) {
            *total += gain * to_noise;
        }
    }

    /// Adds an interfering signal only in the resource blocks for which `sends` returns true.
    pub fn add_in_blocks(&mut self, gains: &Gains, to_noise: f32, sends: impl Fn(usize) -> bool) {
        for (block, (total, gain)) in self.total.iter_mut().zip(gains).enumerate() {
            *total += if sends(block) { gain * to_noise } else { 0.0 };
        }
    }

    /// Converts signal-to-noise ratios into ratios of the signal to interference plus noise.
    pub fn apply_to_sinr(&self, sinr: &mut Gains) {
        for (sinr, total) in sinr.iter_mut().zip(&self.total) {
            *sinr /= total;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(from: f64, until: f64, density: f64) -> Signal {
        Signal { from, until, density: vec![density] }
    }

    #[test]
    fn chunks_are_weighted_by_their_duration() {
        // A quarter of the time with 8 / (1 + 3), the rest with 8 / 1.
        let found = average_sinr(&signal(1.0, 2.0, 8.0), &[signal(0.0, 1.25, 3.0)], &[1.0]);
        assert!((found[0] - (0.25 * 2.0 + 0.75 * 8.0)).abs() < 1e-12);
        // One before, one after, and an empty one.
        let others = [signal(0.0, 1.0, 9.0), signal(2.0, 3.0, 9.0), signal(1.5, 1.5, 9.0)];
        assert!((average_sinr(&signal(1.0, 2.0, 8.0), &others, &[1.0])[0] - 8.0).abs() < 1e-12);
    }

    #[test]
    fn fast_method_gives_the_same_result_for_whole_subframes() {
        let own: Gains = std::array::from_fn(|block| 1.0 + block as f32 / 50.0);
        let other: Gains = std::array::from_fn(|block| 2.0 - block as f32 / 100.0);
        let mut disturbance = InterferencePlusNoise::default();
        disturbance.add(&other, 5.0);
        disturbance.add_in_blocks(&own, 2.0, |block| block < 50);
        let mut sinr = own.map(|gain| gain * 100.0);
        disturbance.apply_to_sinr(&mut sinr);
        for block in 0..ROW_LANES {
            let density = |gains: &Gains, factor: f64| vec![f64::from(gains[block]) * factor];
            let mut others = vec![Signal { from: 0.0, until: 1.0, density: density(&other, 5.0) }];
            if block < 50 {
                others.push(Signal { from: 0.0, until: 1.0, density: density(&own, 2.0) });
            }
            let exact =
                average_sinr(&Signal { from: 0.0, until: 1.0, density: density(&own, 100.0) }, &others, &[1.0])[0];
            assert!((f64::from(sinr[block]) / exact - 1.0).abs() < 1e-6);
        }
    }
}
