//! The past average throughput of each UE, which most schedulers divide by.
//!
//! **Model.** Once per subframe, for every UE, served or not, T <- (1 - 1/99) T + (1/99) x bytes of this subframe / 1 ms,
//! in bytes/s, from T = 1 on. An average of the last 99 ms, about.
//!
//! **Computed** without touching UEs that are not served: with a = 98/99, the product S(n) = T(n) / a^n only changes when
//! the UE is served, S(n + 1) = S(n) + bytes x 1000/99 / a^(n + 1), and as all UEs have the same a^n, comparing with S
//! is comparing with T. Every 1024 subframes all sums are multiplied by a^1024, so that they stay small. There they are
//! also kept above 10^-30: an idle UE's T sinks to that within 9 s and would go on to numbers too small to be
//! normal, which processors are slow with. UEs that have been idle for longer are alike.

/// Subframes that an average is of.
pub(super) const WINDOW: f64 = 99.0;
/// Subframes per second.
const SUBFRAMES_PER_SECOND: f64 = 1000.0;
/// Subframes after which all sums are scaled down: 1 / a^1024 is 32 800.
const EPOCH: usize = 1024;
/// No sum is smaller after scaling. The largest bid with it, 10^34, is a single-precision number.
const SMALLEST: f64 = 1e-30;
/// More epochs leave nothing of the largest sum (10^9 bytes/s, scaled: 10^14) but [`SMALLEST`].
const EPOCHS_TO_NOTHING: u64 = 16;

/// Past average throughput of every UE.
#[derive(Clone, Debug)]
pub struct Averages {
    /// S of each UE.
    sums: Vec<f64>,
    /// 1 / S, which is asked for far more often than S changes.
    inverses: Vec<f32>,
    /// Subframes since sums were scaled.
    age: usize,
    /// a^-n. Always multiplied up in the same order: a gap gives the same bits as its subframes one by one.
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
    /// One more UE, at 1 byte/s.
    pub(super) fn attach(&mut self) {
        self.sums.push(self.growth[self.age]);
        self.inverses.push((1.0 / self.growth[self.age]) as f32);
    }

    /// What the UE was given in the subframe that has not passed yet. Its average is that of the next subframe from here on.
    pub(super) fn served(&mut self, ue: u16, bytes: u32) {
        let sum = &mut self.sums[usize::from(ue)];
        *sum += f64::from(bytes) * (SUBFRAMES_PER_SECOND / WINDOW) * self.growth[self.age + 1];
        self.inverses[usize::from(ue)] = (1.0 / *sum) as f32;
    }

    /// So many subframes have passed. Whether averages of UEs that were not served have changed.
    pub(super) fn passed(&mut self, subframes: u64) -> bool {
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

    /// T of the UE, bytes/s.
    pub(super) fn bytes_per_second(&self, ue: u16) -> f64 {
        self.sums[usize::from(ue)] / self.growth[self.age]
    }

    /// 1 / T, times a factor that is the same for all UEs of this subframe.
    pub(super) fn inverse(&self, ue: u16) -> f32 {
        self.inverses[usize::from(ue)]
    }

    /// T of the next subframe if the UE is given so many bytes in this one, bytes/s.
    pub(super) fn expected(&self, ue: u16, bytes: u32) -> f64 {
        next(self.bytes_per_second(ue), bytes)
    }
}

/// An average of bytes/s one subframe later, after so many bytes in this one.
pub(super) fn next(average: f64, bytes: u32) -> f64 {
    (1.0 - 1.0 / WINDOW) * average + f64::from(bytes) * (SUBFRAMES_PER_SECOND / WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the formula as it stands, one subframe after the other. Each of at most 1500 additions and scalings
        /// rounds by 2^-53; a UE's T may be off by what the floor allows, 10^-30 times a^-1024.
        #[test]
        fn averages_follow_the_formula(
            steps in prop::collection::vec((0u16..4, 0u32..20_000, prop_oneof![9 => 1u64..4, 1 => 1u64..3000]), 1..300),
        ) {
            let mut averages = Averages::default();
            let mut exact = Vec::new();
            for (ue, bytes, subframes) in steps {
                // One UE attaches with each of the first steps.
                if exact.len() < 4 {
                    averages.attach();
                    exact.push(1.0);
                }
                let ue = ue % exact.len() as u16;
                averages.served(ue, bytes);
                averages.passed(subframes);
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

        /// However a gap is cut up.
        #[test]
        fn a_gap_is_as_many_subframes(bytes in 0u32..20_000, cuts in prop::collection::vec(0u64..2500, 1..8)) {
            let mut whole = Averages::default();
            whole.attach();
            whole.served(0, bytes);
            let (mut pieces, mut single) = (whole.clone(), whole.clone());
            whole.passed(cuts.iter().sum());
            for &subframes in &cuts {
                pieces.passed(subframes);
                (0..subframes).for_each(|_| {
                    single.passed(1);
                });
            }
            prop_assert_eq!(whole.sums[0].to_bits(), pieces.sums[0].to_bits());
            prop_assert_eq!(whole.sums[0].to_bits(), single.sums[0].to_bits());
            prop_assert_eq!(whole.bytes_per_second(0).to_bits(), single.bytes_per_second(0).to_bits());
        }
    }

    #[test]
    fn nothing_becomes_too_small_or_too_large() {
        let mut averages = Averages::default();
        averages.attach();
        averages.attach();
        for _ in 0..5000 {
            // 10 Gbit/s.
            averages.served(1, 1_250_000);
            averages.passed(1);
            assert!(averages.inverse(0).is_normal() && averages.inverse(1).is_normal());
        }
        for gap in [1, 1023, 1024, 1 << 20, u64::from(u32::MAX), 1 << 60] {
            averages.passed(gap);
            for ue in 0..2 {
                let bid = 2.0 * 9422.0 * averages.inverse(ue);
                assert!(averages.bytes_per_second(ue).is_normal() && bid.is_normal(), "{bid}");
            }
        }
        assert_eq!(averages.inverse(0), averages.inverse(1));
    }
}
