//! Mutual information per bit of a modulation as a function of SINR: the mean mutual information per bit of the IEEE
//! 802.16m evaluation methodology (section 4.3.2.1). It is a sum of terms with ten Brink's function J, which is
//! approximated by polynomials.
//!
//! There are two grids. *Reference* is the grid of ns-3. It has equal steps of SINR, each with the value at its upper
//! end. Above the last step the value is 1, after 0.862, 0.765 and 0.985 in the last step of the three modulations.
//! *Smooth* interpolates with an error below 2e-5, except where the two polynomials meet: there the second begins
//! 6.5e-4 below the end of the first. On both grids the steps are so wide that information never decreases with the
//! SINR.

use super::tables::Modulation;
use fullpipe_units::math;

/// The grid on which mutual information is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum InformationGrid {
    /// The steps of ns-3, for results that are compared with those of ns-3.
    #[default]
    Reference,
    /// The continuous function.
    Smooth,
}

/// J(x), limited to 0 to 1. The polynomials exceed that range at the ends: the first below 0.03 (by 5e-5), the second
/// where its cubic term dominates. Above 20 the value is 1 to the last bit.
fn j(x: f64) -> f64 {
    if x <= 1.6363 {
        ((-0.04210661 * x + 0.209252) * x - 0.00640081) * x
    } else if x < 20.0 {
        1.0 - math::exp(((0.00181492 * x - 0.142675) * x - 0.0822054) * x + 0.0549608)
    } else {
        1.0
    }
    .max(0.0)
}

/// Returns the mutual information per bit at a linear SINR.
pub fn exact_mutual_information(modulation: Modulation, sinr: f64) -> f64 {
    let root = sinr.sqrt();
    match modulation {
        Modulation::Qpsk => j(2.0 * root),
        Modulation::Qam16 => 0.5 * j(0.8 * root) + 0.25 * j(2.17 * root) + 0.25 * j(0.965 * root),
        Modulation::Qam64 => (j(1.47 * root) + j(0.529 * root) + j(0.366 * root)) / 3.0,
    }
}

/// Number of lanes of all sums; the order of summation is part of the result.
const LANES: usize = 8;

/// Number of steps of one modulation; a power of two, so that a mask replaces the bounds check.
const STEPS: usize = 1024;

/// ns-3's steps of one modulation.
#[derive(Clone, Debug)]
pub(crate) struct StepTable {
    first: f32,
    per_sinr: f32,
    values: Box<[f32; STEPS]>,
    /// First and last SINR of the grid, and the number of its points.
    pub(crate) axis: (f64, f64, usize),
}

impl StepTable {
    fn new(modulation: Modulation) -> Self {
        let axis @ (first, last, points) = match modulation {
            Modulation::Qpsk => (0.013, 3.197, 797),
            Modulation::Qam16 => (0.063, 9.993, 994),
            Modulation::Qam64 => (0.25, 157.96, 752),
        };
        let mut values = Box::new([1.0; STEPS]);
        for (i, value) in values.iter_mut().enumerate().take(points) {
            *value =
                exact_mutual_information(modulation, first + (last - first) / (points - 1) as f64 * i as f64) as f32;
        }
        StepTable { first: first as f32, per_sinr: ((points - 1) as f64 / (last - first)) as f32, values, axis }
    }

    /// SINR of a point of the grid.
    pub(crate) fn sinr(&self, point: usize) -> f64 {
        let (first, last, points) = self.axis;
        first + (last - first) / (points - 1) as f64 * point as f64
    }

    /// Values of the grid's points, without the 1 above the last.
    pub(crate) fn values(&self) -> &[f32] {
        &self.values[..self.axis.2]
    }

    #[inline(always)]
    fn at(&self, sinr: f32) -> f32 {
        let point = ((sinr - self.first) * self.per_sinr + 1.0).clamp(0.0, (STEPS - 1) as f32);
        // The integer part, with operations that all machines have for vectors: after the addition of 2^23 a float has no
        // fraction, and its low bits are the number, rounded to the nearest.
        let whole = point + 8_388_608.0;
        let above = u32::from(whole - 8_388_608.0 > point);
        self.values[whole.to_bits().wrapping_sub(above) as usize & (STEPS - 1)]
    }
}

/// Points per octave of SINR of the continuous function.
const POINTS_PER_OCTAVE: usize = 64;

/// Octaves: from 2^-12, with information below 1e-4, to 2^12, with information 1.
const OCTAVES: usize = 24;

/// Bits of a mantissa below the point's number.
const FRACTION_BITS: u32 = f32::MANTISSA_DIGITS - 1 - POINTS_PER_OCTAVE.ilog2();

/// The continuous function of one modulation: linear interpolation between points that are given by the leading bits of
/// the SINR.
#[derive(Clone, Debug)]
pub(crate) struct LinearTable {
    values: Box<[f32; 2048]>,
}

impl LinearTable {
    const LOW: f32 = 1.0 / 4096.0;
    // The largest number below 2^12.
    const HIGH: f32 = 4095.9998;

    fn new(modulation: Modulation) -> Self {
        let mut values = Box::new([1.0; 2048]);
        for (i, value) in values.iter_mut().enumerate().take(OCTAVES * POINTS_PER_OCTAVE + 1) {
            let point = f32::from_bits(Self::LOW.to_bits() + ((i as u32) << FRACTION_BITS));
            *value = exact_mutual_information(modulation, f64::from(point)) as f32;
        }
        LinearTable { values }
    }

    #[inline(always)]
    fn at(&self, sinr: f32) -> f32 {
        let place = sinr.clamp(Self::LOW, Self::HIGH).to_bits() - Self::LOW.to_bits();
        let point = (place >> FRACTION_BITS) as usize;
        let fraction = (place & ((1 << FRACTION_BITS) - 1)) as f32 * (1.0 / (1 << FRACTION_BITS) as f32);
        let low = self.values[point & 2047];
        low + (self.values[(point + 1) & 2047] - low) * fraction
    }
}

/// Mutual information of all modulations on one grid.
#[derive(Clone, Debug)]
pub(crate) enum MutualInformation {
    Reference([StepTable; 3]),
    Smooth([LinearTable; 3]),
}

/// One grid for all modulations.
pub(crate) trait InformationLookup {
    /// Mutual information at a linear SINR.
    fn at(&self, modulation: usize, sinr: f32) -> f32;

    /// Mean over resource blocks.
    #[inline(always)]
    fn mean(&self, modulation: usize, sinr: &[f32]) -> f32 {
        let mut sums = [0.0f32; LANES];
        let mut rows = sinr.chunks_exact(LANES);
        for row in &mut rows {
            for lane in 0..LANES {
                sums[lane] += self.at(modulation, row[lane]);
            }
        }
        for (sum, &sinr) in sums.iter_mut().zip(rows.remainder()) {
            *sum += self.at(modulation, sinr);
        }
        let [a, b, c, d, e, f, g, h] = sums;
        (((a + e) + (c + g)) + ((b + f) + (d + h))) / sinr.len() as f32
    }

    /// The mean of less than eight entries with the same bits: lanes without a number would add 0.
    #[inline(always)]
    fn mean_of_partial_row<const N: usize>(&self, modulation: usize, sinr: &[f32; N]) -> f32 {
        let at = |i: usize| self.at(modulation, sinr[i]);
        let sum = match N {
            1 => at(0),
            2 => at(0) + at(1),
            3 => (at(0) + at(2)) + at(1),
            4 => (at(0) + at(2)) + (at(1) + at(3)),
            _ => return self.mean(modulation, sinr),
        };
        sum / N as f32
    }
}

impl InformationLookup for [StepTable; 3] {
    #[inline(always)]
    fn at(&self, modulation: usize, sinr: f32) -> f32 {
        self[modulation].at(sinr)
    }
}

impl InformationLookup for [LinearTable; 3] {
    #[inline(always)]
    fn at(&self, modulation: usize, sinr: f32) -> f32 {
        self[modulation].at(sinr)
    }
}

impl MutualInformation {
    pub(crate) fn new(grid: InformationGrid) -> Self {
        match grid {
            InformationGrid::Reference => MutualInformation::Reference(Modulation::ALL.map(StepTable::new)),
            InformationGrid::Smooth => MutualInformation::Smooth(Modulation::ALL.map(LinearTable::new)),
        }
    }

    #[inline]
    pub(crate) fn at(&self, modulation: Modulation, sinr: f32) -> f32 {
        match self {
            MutualInformation::Reference(steps) => steps.at(modulation as usize, sinr),
            MutualInformation::Smooth(lines) => lines.at(modulation as usize, sinr),
        }
    }

    /// Mean over resource blocks. Each operation rounds monotonically, so a row below another has no higher mean.
    #[inline]
    pub(crate) fn mean(&self, modulation: Modulation, sinr: &[f32]) -> f32 {
        match self {
            MutualInformation::Reference(steps) => steps.mean(modulation as usize, sinr),
            MutualInformation::Smooth(lines) => lines.mean(modulation as usize, sinr),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tables_never_decrease() {
        for modulation in Modulation::ALL {
            assert!(StepTable::new(modulation).values.is_sorted());
            assert!(LinearTable::new(modulation).values.is_sorted());
        }
    }

    #[test]
    fn information_increases_from_0_to_1() {
        for modulation in Modulation::ALL {
            let mut before = 0.0;
            for tenth_db in -400..400 {
                let now = exact_mutual_information(modulation, math::pow(10.0, f64::from(tenth_db) / 100.0));
                assert!((before..=1.0).contains(&now), "{modulation:?} at {tenth_db}/10 dB: {now} after {before}");
                before = now;
            }
            assert_eq!(before, 1.0);
            assert_eq!(exact_mutual_information(modulation, 0.0), 0.0);
        }
    }

    #[test]
    fn reference_grid_has_the_upper_end_of_each_step_and_1_beyond() {
        let information = MutualInformation::new(InformationGrid::Reference);
        // QPSK: points 0.004 apart, starting at 0.013.
        assert_eq!(information.at(Modulation::Qpsk, 0.0), exact_mutual_information(Modulation::Qpsk, 0.013) as f32);
        assert_eq!(information.at(Modulation::Qpsk, 0.014), exact_mutual_information(Modulation::Qpsk, 0.017) as f32);
        assert_eq!(information.at(Modulation::Qpsk, 0.0165), exact_mutual_information(Modulation::Qpsk, 0.017) as f32);
        assert_eq!(information.at(Modulation::Qpsk, 3.196), exact_mutual_information(Modulation::Qpsk, 3.197) as f32);
        assert_eq!(information.at(Modulation::Qpsk, 3.198), 1.0);
        assert_eq!(information.at(Modulation::Qam64, f32::MAX), 1.0);
        assert!(information.at(Modulation::Qam16, 9.99) < 0.766);
    }

    #[test]
    fn integer_part_is_found_without_a_conversion() {
        for modulation in Modulation::ALL {
            let steps = StepTable::new(modulation);
            for i in 0..200_000u32 {
                let sinr = i as f32 * 0.001;
                let point = ((sinr - steps.first) * steps.per_sinr + 1.0).clamp(0.0, 1023.0);
                assert_eq!(steps.at(sinr), steps.values[point.floor() as usize], "{sinr}");
            }
        }
    }

    #[test]
    fn mean_of_few_equals_the_general_mean() {
        fn check<const N: usize>(row: [f32; N]) {
            let steps = Modulation::ALL.map(StepTable::new);
            for modulation in 0..3 {
                assert_eq!(steps.mean_of_partial_row(modulation, &row), steps.mean(modulation, &row));
            }
        }
        for i in 0..1000 {
            let x = i as f32 * 0.05;
            check([x]);
            check([x, x * 0.7]);
            check([x, x * 0.7, x * 1.1]);
            check([x, x * 0.7, x * 1.1, x * 0.2]);
            check([x, x * 0.7, x * 1.1, x * 0.2, x * 0.9]);
        }
    }

    proptest! {
        #[test]
        fn straight_lines_are_close(db in -36.0f64..36.0) {
            let information = MutualInformation::new(InformationGrid::Smooth);
            let sinr = math::pow(10.0, db / 10.0) as f32;
            for modulation in Modulation::ALL {
                let factors: &[f64] = match modulation {
                    Modulation::Qpsk => &[2.0],
                    Modulation::Qam16 => &[0.8, 2.17, 0.965],
                    Modulation::Qam64 => &[1.47, 0.529, 0.366],
                };
                // Not across the join of the polynomials at 1.6363.
                if factors.iter().any(|factor| (f64::from(sinr).sqrt() * factor / 1.6363 - 1.0).abs() < 1.0 / 64.0) {
                    continue;
                }
                let error = f64::from(information.at(modulation, sinr)) - exact_mutual_information(modulation, f64::from(sinr));
                // A chord over h has an error of h^2/8 times the second derivative f''. h is at most sinr/64, and sinr^2 f'' is
                // about one half at its largest.
                prop_assert!(error.abs() < 2e-5, "{modulation:?} at {db} dB: {error}");
            }
        }

        #[test]
        fn a_row_that_is_nowhere_above_another_has_no_higher_mean(
            sinr in proptest::collection::vec(0.0f32..200.0, 1..112), index in 0usize..112, less in 0.0f32..1.0,
        ) {
            let mut lower = sinr.clone();
            let index = index % lower.len();
            lower[index] *= less;
            let largest = vec![sinr.iter().copied().fold(0.0, f32::max); sinr.len()];
            for grid in [InformationGrid::Reference, InformationGrid::Smooth] {
                let information = MutualInformation::new(grid);
                for modulation in Modulation::ALL {
                    let mean = information.mean(modulation, &sinr);
                    prop_assert!(information.mean(modulation, &lower) <= mean);
                    prop_assert!(mean <= information.mean(modulation, &largest));
                    let plain = sinr.iter().map(|&x| f64::from(information.at(modulation, x))).sum::<f64>() / sinr.len() as f64;
                    prop_assert!((f64::from(mean) - plain).abs() < 1e-6);
                }
            }
        }
    }
}
