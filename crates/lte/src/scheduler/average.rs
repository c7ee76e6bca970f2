//! The past average throughput of each UE, which is the divisor of most schedulers' metrics.
//!
//! **Model.** Once per subframe, for every UE, T <- (1 - 1/99) T + (1/99) x bytes of this subframe / 1 ms, in bytes/s,
//! starting at T = 1. This is roughly an average over the last 99 ms.
//!
//! **Implementation.** UEs that are not served need no computation. With a = 98/99, the value S(n) = T(n) / a^n changes
//! only when the UE is served: S(n + 1) = S(n) + bytes x 1000/99 / a^(n + 1). As all UEs have the same a^n, a
//! comparison of S is a comparison of T. Every 1024 subframes all sums are multiplied by a^1024, so that they stay
//! small. They are then also limited to at least 10^-30. An idle UE's T falls to that within 9 s and would become
//! subnormal, which is slow on processors. UEs that have been idle for longer are equal.

/// Number of subframes in an average.
pub(super) const WINDOW: f64 = 99.0;
/// Subframes per second.
const SUBFRAMES_PER_SECOND: f64 = 1000.0;
/// Subframes after which all sums are scaled down: 1 / a^1024 is 32 800.
const EPOCH: usize = 1024;
/// Lower limit of a sum after scaling. The largest bid with it, 10^34, is a single-precision number.
const SMALLEST: f64 = 1e-30;
/// Number of epochs after which even the largest sum (10^9 bytes/s, scaled: 10^14) is [`SMALLEST`].
const EPOCHS_TO_NOTHING: u64 = 16;

/// Past average throughput of every UE.
#[derive(Clone, Debug)]
pub struct Averages {
    /// S of each UE.
    sums: Vec<f64>,
    /// 1 / S, which is read far more often than S changes.
    inverses: Vec<f32>,
    /// Subframes since sums were scaled.
    age: usize,
    /// a^-n, always multiplied in the same order, so that a gap gives the same bits as its subframes one by one.
    growth: Vec<f64>,
}

impl Default for Averages {
    fn default() -> Averages {
        let mut growth = vec![1.0];
        for n in 0..EPOCH {
            growth.push(growth[n] * (WINDOW / (WINDOW - 1.0)));
        }
        Averages { sums: Vec::new(), inverses: Vec::new(), age: 0, growth }
    }
}

impl Averages {
    /// Adds a UE, at 1 byte/s.
    pub(super) fn attach(&mut self) {
        self.sums.push(self.growth[self.age]);
        self.inverses.push((1.0 / self.growth[self.age]) as f32);
    }

    /// Adds the bytes that a UE got in the present subframe. From now on, its average is that of the next subframe.
    pub(super) fn served(&mut self, ue: u16, bytes: u32) {
        let sum = &mut self.sums[usize::from(ue)];
        *sum += f64::from(bytes) * (SUBFRAMES_PER_SECOND / WINDOW) * self.growth[self.age + 1];
        self.inverses[usize::from(ue)] = (1.0 / *sum) as f32;
    }

    /// Advances by a number of subframes. Returns whether averages of UEs that were not served have changed.
    pub(super) fn on_subframes_elapsed(&mut self, subframes: u64) -> bool {
        let age = self.age as u64 + subframes;
        self.age = (age % EPOCH as u64) as usize;
        let epochs = (age / EPOCH as u64).min(EPOCHS_TO_NOTHING);
        if epochs == 0 {
            return false;
        }
        let scale = 1.0 / self.growth[EPOCH];
        for (sum, inverse) in self.sums.iter_mut().zip(&mut self.inverses) {
            for _ in 0..epochs {
                *sum = (*sum * scale).max(SMALLEST);
            }
            *inverse = (1.0 / *sum) as f32;
        }
        true
    }

    /// T of the UE in bytes/s.
    pub(super) fn bytes_per_second(&self, ue: u16) -> f64 {
        self.sums[usize::from(ue)] / self.growth[self.age]
    }

    /// 1 / T times a factor that is the same for all UEs in this subframe.
    pub(super) fn inverse(&self, ue: u16) -> f32 {
        self.inverses[usize::from(ue)]
    }

    /// T of the next subframe in bytes/s if the UE gets `bytes` bytes in this one.
    pub(super) fn expected(&self, ue: u16, bytes: u32) -> f64 {
        next(self.bytes_per_second(ue), bytes)
    }
}

/// An average in bytes/s one subframe later, after `bytes` bytes in this one.
pub(super) fn next(average: f64, bytes: u32) -> f64 {
    (1.0 - 1.0 / WINDOW) * average + f64::from(bytes) * (SUBFRAMES_PER_SECOND / WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compares with the formula, one subframe after the other. Each of at most 1500 additions and scalings rounds
        /// by 2^-53. A UE's T may differ by the effect of the lower limit, 10^-30 times a^-1024.
        #[test]
        fn averages_follow_the_formula(
            steps in prop::collection::vec((0u16..4, 0u32..20_000, prop_oneof![9 => 1u64..4, 1 => 1u64..3000]), 1..300),
        ) {
            let mut averages = Averages::default();
            let mut exact = Vec::new();
            for (ue, bytes, subframes) in steps {
                // One UE attaches in each of the first steps.
                if exact.len() < 4 {
                    averages.attach();
                    exact.push(1.0);
                }
                let ue = ue % exact.len() as u16;
                averages.served(ue, bytes);
                averages.on_subframes_elapsed(subframes);
                for (index, average) in exact.iter_mut().enumerate() {
                    *average = next(*average, if index == usize::from(ue) { bytes } else { 0 });
                    for _ in 1..subframes {
                        *average = next(*average, 0);
                    }
                }
                let one = averages.bytes_per_second(0) * f64::from(averages.inverse(0));
                for (ue, &average) in (0u16..).zip(&exact) {
                    let found = averages.bytes_per_second(ue);
                    prop_assert!((found - average).abs() <= 1e-12 * average + 1e-30, "{found} {average}");
                    // The factor of the inverses is common, to single precision.
                    let common = found * f64::from(averages.inverse(ue)) / one;
                    prop_assert!((common - 1.0).abs() < 2e-7, "{common}");
                    prop_assert_eq!(averages.expected(ue, 77), next(found, 77));
                }
            }
        }

        /// The result does not depend on how a gap is split.
        #[test]
        fn a_gap_is_as_many_subframes(bytes in 0u32..20_000, cuts in prop::collection::vec(0u64..2500, 1..8)) {
            let mut whole = Averages::default();
            whole.attach();
            whole.served(0, bytes);
            let (mut pieces, mut single) = (whole.clone(), whole.clone());
            whole.on_subframes_elapsed(cuts.iter().sum());
            for &subframes in &cuts {
                pieces.on_subframes_elapsed(subframes);
                (0..subframes).for_each(|_| {
                    single.on_subframes_elapsed(1);
                });
            }
            prop_assert_eq!(whole.sums[0].to_bits(), pieces.sums[0].to_bits());
            prop_assert_eq!(whole.sums[0].to_bits(), single.sums[0].to_bits());
            prop_assert_eq!(whole.bytes_per_second(0).to_bits(), single.bytes_per_second(0).to_bits());
        }
    }

    #[test]
    fn averages_stay_normal_numbers() {
        let mut averages = Averages::default();
        averages.attach();
        averages.attach();
        for _ in 0..5000 {
            // 10 Gbit/s.
            averages.served(1, 1_250_000);
            averages.on_subframes_elapsed(1);
            assert!(averages.inverse(0).is_normal() && averages.inverse(1).is_normal());
        }
        for gap in [1, 1023, 1024, 1 << 20, u64::from(u32::MAX), 1 << 60] {
            averages.on_subframes_elapsed(gap);
            for ue in 0..2 {
                let bid = 2.0 * 9422.0 * averages.inverse(ue);
                assert!(averages.bytes_per_second(ue).is_normal() && bid.is_normal(), "{bid}");
            }
        }
        assert_eq!(averages.inverse(0), averages.inverse(1));
    }
}
