//! Adaptive modulation and coding: the CQI that a UE reports for an SINR (3GPP TS 36.213, clause 7.2.3).
//!
//! There are two methods, as in ns-3's LTE model. *Error model*: the MCS increases from 0 while the loss probability of
//! a transport block in the reported resource blocks is at most 10 %. The CQI is the highest whose efficiency is below
//! that of the last MCS that passed. If only MCS 0 passes, the CQI is 0. *Piro*: the CQI of each resource block follows
//! from the Shannon bound with a gap that depends on the bit error rate (Seo and Lee 2004). The result is their mean,
//! rounded down.
//!
//! [`reference_cqi`] performs the search of the error model. [`CqiTables`] gives the same result from precomputed
//! tables. The error rate decreases with mutual information, so each MCS passes above a threshold of mean information.
//! The search ends at the first MCS that fails. Because the thresholds do not always increase with the MCS, their
//! running maximum applies. The mean information of a row lies between that of its smallest and that of its largest
//! entry. These bounds usually make the evaluation of a modulation unnecessary.

use super::bandwidth::Bandwidth;
use super::errors::ErrorModel;
use super::information::{InformationLookup, MutualInformation};
use super::tables::{MCS_COUNT, Modulation, cqi_efficiency, downlink_bytes, mcs_efficiency, modulation};
use super::{ROW_LANES, smallest_that};
use fullpipe_units::math;
use std::sync::Arc;

/// Largest number of resource block groups in a report, rounded up to whole SIMD vectors.
pub const MAX_GROUPS: usize = 32;

/// The bit error rate of the uplink, and the default for the downlink with [`Amc::Piro`].
pub const BIT_ERROR_RATE: f64 = 0.00005;

/// Largest error rate with which an MCS passes the error model's search.
const TARGET_ERROR: f64 = 0.1;

/// How CQI is computed.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Amc {
    /// By the block error model, for an error rate of 10 %.
    #[default]
    ErrorModel,
    /// By the Shannon bound with a gap.
    Piro {
        /// Bit error rate, usually [`BIT_ERROR_RATE`].
        bit_error_rate: f64,
    },
}

/// Returns the bits per symbol at a linear SINR, by the Shannon bound with the gap of a bit error rate.
pub fn spectral_efficiency(bit_error_rate: f64, sinr: f64) -> f64 {
    let gap = -math::ln(5.0 * bit_error_rate) / 1.5;
    math::log2(1.0 + sinr / gap)
}

/// Returns the highest CQI whose efficiency is less than `efficiency` in bits per symbol; 0 if there is none.
pub fn cqi_of_efficiency(efficiency: f64) -> u8 {
    (1..16).rev().find(|&cqi| cqi_efficiency(cqi) < efficiency).unwrap_or(0)
}

/// Returns the CQI for resource blocks with these linear SINRs. The reference transport block occupies the same
/// resource blocks. The function evaluates the definition directly, which is slow.
pub fn reference_cqi(amc: Amc, model: &ErrorModel, sinr: &[f32]) -> u8 {
    match amc {
        Amc::ErrorModel => {
            let passed = (0..MCS_COUNT as u8)
                .take_while(|&mcs| {
                    let mean = model.mean_mutual_information(modulation(mcs), sinr);
                    model.block_error_rate(mcs, downlink_bytes(mcs, sinr.len()), mean) <= TARGET_ERROR
                })
                .count();
            cqi_of_passed(passed)
        }
        Amc::Piro { bit_error_rate } => {
            // Blocks without signal do not count.
            let cqis = sinr.iter().filter(|&&sinr| sinr != 0.0);
            let cqis =
                cqis.map(|&sinr| u32::from(cqi_of_efficiency(spectral_efficiency(bit_error_rate, f64::from(sinr)))));
            let (sum, count) = cqis.fold((0u32, 0u32), |(sum, count), cqi| (sum + cqi, count + 1));
            sum.checked_div(count).unwrap_or(0) as u8
        }
    }
}

/// The CQI if the first `passed` MCS have passed.
fn cqi_of_passed(passed: usize) -> u8 {
    match passed {
        0 => 0,
        MCS_COUNT => 15,
        _ => cqi_of_efficiency(mcs_efficiency(passed as u8 - 1)),
    }
}

/// Returns the CQI of an uplink channel from its smallest linear SINR. The method is [`Amc::Piro`] with
/// [`BIT_ERROR_RATE`]. As in the base station's measurement, the SINR is rounded toward 0 dB to a multiple of 1/8 dB.
/// The function evaluates the definition directly, which is slow.
pub fn reference_uplink_cqi(smallest_sinr: f32) -> u8 {
    let eighths = (8.0 * 10.0 * math::log10(f64::from(smallest_sinr))).trunc();
    let sinr = math::pow(10.0, eighths / 80.0);
    cqi_of_efficiency(spectral_efficiency(BIT_ERROR_RATE, sinr))
}

/// The smallest linear SINR of each CQI of [`reference_uplink_cqi`], from CQI 1.
fn uplink_thresholds() -> [f32; 15] {
    std::array::from_fn(|i| smallest_that(|sinr| sinr > 0.0 && reference_uplink_cqi(sinr) as usize > i))
}

/// The results of the error model's search for blocks of one size.
#[derive(Clone, Debug)]
struct Search {
    /// By modulation: the mean mutual information from which an MCS and all lower ones with its modulation pass;
    /// infinity beyond the last.
    passes: [[f32; 16]; 3],
    /// By modulation: if all entries of a row are below this, none of its MCS pass.
    none_below: [f32; 3],
    /// By modulation: if no entry of a row is below this, all of its MCS and those of lower modulations pass.
    all_from: [f32; 3],
    /// The CQI by the number of MCS that pass.
    cqi: [u8; MCS_COUNT + 1],
}

/// First MCS of each modulation, and one more than the last MCS.
const FIRST: [usize; 4] = [0, 10, 17, MCS_COUNT];

impl Search {
    fn new(model: &ErrorModel, resource_blocks: usize) -> Self {
        let mut search = Search {
            passes: [[f32::INFINITY; 16]; 3],
            none_below: [f32::INFINITY; 3],
            all_from: [f32::INFINITY; 3],
            cqi: std::array::from_fn(cqi_of_passed),
        };
        let mut all_from = 0.0f32;
        for modulation in Modulation::ALL {
            let passes = &mut search.passes[modulation as usize];
            let mut from = 0.0f32;
            for (pass, mcs) in passes.iter_mut().zip(modulation.mcs_range()) {
                let bytes = downlink_bytes(mcs, resource_blocks);
                from =
                    from.max(smallest_that(|mean| model.block_error_rate(mcs, bytes, mean.min(1.0)) <= TARGET_ERROR));
                *pass = from;
            }
            // Not simply where the information itself is sufficient, since the mean of a flat row may be rounded.
            let flat = |enough: f32| {
                smallest_that(|sinr| {
                    model.mean_mutual_information(modulation, &[sinr; ROW_LANES][..resource_blocks]) >= enough
                })
            };
            all_from = all_from.max(flat(from));
            search.none_below[modulation as usize] = flat(passes[0]);
            search.all_from[modulation as usize] = all_from;
        }
        search
    }

    /// The CQI of a block whose mean information with a modulation is `mean`.
    #[inline(always)]
    fn cqi(&self, sinr: &[f32], mean: impl Fn(usize) -> f32) -> u8 {
        let (mut smallest, mut largest) = (sinr[0], sinr[0]);
        for &sinr in sinr {
            smallest = if sinr < smallest { sinr } else { smallest };
            largest = if sinr > largest { sinr } else { largest };
        }
        // Modulations that pass in any case. The information decides about the next one, which is almost always the last. The
        // code has no branch, since that modulation differs from block to block.
        let mut modulation: usize = self.all_from.iter().map(|&from| usize::from(smallest >= from)).sum();
        let mut passed = FIRST[modulation];
        while modulation < 3 {
            let mean = mean(modulation);
            let count: u32 = self.passes[modulation].iter().map(|&from| u32::from(mean >= from)).sum();
            passed = FIRST[modulation] + count as usize;
            modulation += 1;
            if passed < FIRST[modulation] || modulation == 3 || largest < self.none_below[modulation] {
                break;
            }
        }
        self.cqi[passed]
    }

    fn wideband(&self, information: &MutualInformation, sinr: &[f32]) -> u8 {
        match information {
            MutualInformation::Reference(steps) => self.cqi(sinr, |modulation| steps.mean(modulation, sinr)),
            MutualInformation::Smooth(lines) => self.cqi(sinr, |modulation| lines.mean(modulation, sinr)),
        }
    }

    fn groups<const SIZE: usize>(&self, information: &MutualInformation, sinr: &[f32], out: &mut [u8]) {
        match information {
            MutualInformation::Reference(steps) => self.groups_on::<SIZE>(steps, sinr, out),
            MutualInformation::Smooth(lines) => self.groups_on::<SIZE>(lines, sinr, out),
        }
    }

    #[inline(always)]
    fn groups_on<const SIZE: usize>(&self, reading: &impl InformationLookup, sinr: &[f32], out: &mut [u8]) {
        let (groups, _) = sinr.as_chunks::<SIZE>();
        for (cqi, group) in out.iter_mut().zip(groups) {
            *cqi = self.cqi(group, |modulation| reading.mean_of_partial_row(modulation, group));
        }
    }
}

/// How this cell's UEs compute CQI.
#[derive(Clone, Debug)]
enum Rule {
    ErrorModel {
        information: Arc<MutualInformation>,
        group: Box<Search>,
        band: Box<Search>,
    },
    /// The smallest SINR of each CQI, from 1.
    Piro([f32; 15]),
}

/// Tables that give the CQI of a row of SINRs, precomputed for a bandwidth and a method.
#[derive(Clone, Debug)]
pub struct CqiTables {
    bandwidth: Bandwidth,
    rule: Rule,
    uplink: [f32; 15],
    /// SINR from which a flat row reaches each CQI in some report, from CQI 1.
    ceiling: [f32; 15],
    /// The same for a group's report only.
    group: [f32; 15],
    /// [`ceiling`](CqiTables::max_cqi) by step of SINR, or a slightly higher value.
    ceilings: Box<[u8; STEPS]>,
    /// Bounds of a flat group's CQI by step of SINR: of the lowest SINR in a step, and of the highest.
    group_bounds: Box<[[u8; STEPS]; 2]>,
    /// SINR from which the CQI is the highest.
    best: f32,
}

/// Number of SINR steps, rounded up to a power of two: 64 per octave, from 2^-6 to 2^9. The distance of two CQI is
/// about 40 steps.
const STEPS: usize = 1024;
const LOWEST_STEP: f32 = 1.0 / 64.0;
/// The largest number below 2^9.
const HIGHEST_STEP: f32 = f32::from_bits(512f32.to_bits() - 1);
/// Bits of a SINR's mantissa that are ignored.
const STEP_BITS: u32 = f32::MANTISSA_DIGITS - 1 - 6;

/// The step of a SINR; the nearest step if it is outside the range.
#[inline(always)]
fn step(sinr: f32) -> u32 {
    let sinr = if sinr > LOWEST_STEP { sinr } else { LOWEST_STEP };
    let sinr = if sinr < HIGHEST_STEP { sinr } else { HIGHEST_STEP };
    (sinr.to_bits() - LOWEST_STEP.to_bits()) >> STEP_BITS
}

/// For each step, the value that is valid for all SINR in it: `least` of its lowest SINR, `most` of its highest.
fn by_step(most: bool, of: impl Fn(f32) -> u8) -> [u8; STEPS] {
    let last = step(HIGHEST_STEP);
    std::array::from_fn(|number| match (number as u32, most) {
        (0, false) => of(0.0),
        (number, true) if number >= last => of(f32::INFINITY),
        (number, _) => of(f32::from_bits(
            LOWEST_STEP.to_bits() + (number.min(last) << STEP_BITS) + if most { (1 << STEP_BITS) - 1 } else { 0 },
        )),
    })
}

/// The steps of the products of each gain and both factors. A separate function, so that the compiler vectorizes over
/// groups.
#[inline(never)]
fn steps(gains: &[f32; MAX_GROUPS], factors: [f32; 2]) -> [u32; MAX_GROUPS] {
    let mut steps = [0; MAX_GROUPS];
    for (of, gain) in steps.iter_mut().zip(gains) {
        *of = step(gain * factors[0] * factors[1]);
    }
    steps
}

/// The number of thresholds that a number reaches.
#[inline(always)]
fn reached(thresholds: &[f32; 15], number: f32) -> u8 {
    thresholds.iter().map(|&threshold| u8::from(number >= threshold)).sum()
}

/// Mean of the resource blocks' CQI, rounded down; blocks without signal do not count.
#[inline(always)]
fn piro(thresholds: &[f32; 15], sinr: &[f32]) -> u8 {
    let (mut sum, mut count) = (0, 0);
    for &sinr in sinr {
        sum += u32::from(reached(thresholds, sinr));
        count += u32::from(sinr != 0.0);
    }
    sum.checked_div(count).unwrap_or(0) as u8
}

impl CqiTables {
    /// Creates the tables for a bandwidth.
    pub fn new(amc: Amc, bandwidth: Bandwidth, model: &ErrorModel) -> Self {
        let rule = match amc {
            Amc::ErrorModel => Rule::ErrorModel {
                information: Arc::clone(model.information()),
                group: Box::new(Search::new(model, bandwidth.group_size())),
                band: Box::new(Search::new(model, bandwidth.resource_blocks())),
            },
            Amc::Piro { .. } => Rule::Piro(std::array::from_fn(|i| {
                smallest_that(|sinr| reference_cqi(amc, model, &[sinr]) as usize > i)
            })),
        };
        let mut tables = CqiTables {
            bandwidth,
            rule,
            uplink: uplink_thresholds(),
            ceiling: [f32::INFINITY; 15],
            group: [f32::INFINITY; 15],
            ceilings: Box::new([15; STEPS]),
            group_bounds: Box::new([[0; STEPS], [15; STEPS]]),
            best: f32::INFINITY,
        };
        // Each report is monotone in every entry of its row, so a flat row bounds all rows.
        let flat = |sinr: f32| {
            let row = [sinr; ROW_LANES];
            (
                tables.block(&row[..bandwidth.group_size()], false),
                tables.block(&row[..bandwidth.resource_blocks()], true),
            )
        };
        let best = smallest_that(|sinr| {
            let (group, band) = flat(sinr);
            group == 15 && band == 15 && sinr >= model.full_information_sinr() && model.is_control_error_free(sinr)
        });
        let ceiling = std::array::from_fn(|i| {
            smallest_that(|sinr| {
                let (group, band) = flat(sinr);
                usize::from(group.max(band)) > i
            })
        });
        let group = std::array::from_fn(|i| smallest_that(|sinr| usize::from(flat(sinr).0) > i));
        tables.best = best;
        tables.ceiling = ceiling;
        tables.group = group;
        *tables.ceilings = by_step(true, |sinr| reached(&ceiling, sinr));
        *tables.group_bounds = [false, true].map(|most| by_step(most, |sinr| reached(&group, sinr)));
        tables
    }

    /// The CQI of a group or of the whole band.
    fn block(&self, sinr: &[f32], band: bool) -> u8 {
        match &self.rule {
            Rule::ErrorModel { information, group, band: whole } => {
                if band { whole } else { group }.wideband(information, sinr)
            }
            Rule::Piro(thresholds) => piro(thresholds, sinr),
        }
    }

    /// Returns the CQI of the whole band from the linear SINR of its resource blocks. Entries beyond the band are
    /// ignored.
    pub fn wideband_cqi(&self, sinr: &[f32]) -> u8 {
        self.block(&sinr[..self.bandwidth.resource_blocks()], true)
    }

    /// Writes the CQI of each whole resource block group to `out`; 0 beyond the last group.
    pub fn fill_subband_cqis(&self, sinr: &[f32], out: &mut [u8; MAX_GROUPS]) {
        *out = [0; MAX_GROUPS];
        let groups = self.bandwidth.groups();
        match self.bandwidth.group_size() {
            1 => self.groups::<1>(sinr, &mut out[..groups]),
            2 => self.groups::<2>(sinr, &mut out[..groups]),
            3 => self.groups::<3>(sinr, &mut out[..groups]),
            _ => self.groups::<4>(sinr, &mut out[..groups]),
        }
    }

    fn groups<const SIZE: usize>(&self, sinr: &[f32], out: &mut [u8]) {
        match &self.rule {
            Rule::ErrorModel { information, group, .. } => group.groups::<SIZE>(information, sinr, out),
            Rule::Piro(thresholds) => {
                let (groups, _) = sinr.as_chunks::<SIZE>();
                for (cqi, group) in out.iter_mut().zip(groups) {
                    *cqi = piro(thresholds, group);
                }
            }
        }
    }

    /// Returns the CQI of an uplink channel from its smallest linear SINR ([`reference_uplink_cqi`]).
    pub fn uplink_cqi(&self, smallest_sinr: f32) -> u8 {
        reached(&self.uplink, smallest_sinr)
    }

    /// The CQI of a group with this SINR in all of its resource blocks.
    pub(crate) fn flat_group(&self, sinr: f32) -> u8 {
        reached(&self.group, sinr)
    }

    /// The CQI of a group with these SINR.
    pub(crate) fn one_group(&self, sinr: &[f32]) -> u8 {
        let mut cqi = [0];
        match sinr.len() {
            1 => self.groups::<1>(sinr, &mut cqi),
            2 => self.groups::<2>(sinr, &mut cqi),
            3 => self.groups::<3>(sinr, &mut cqi),
            _ => self.groups::<4>(sinr, &mut cqi),
        }
        cqi[0]
    }

    /// Computes bounds of the CQI of groups whose SINR are between the products of `smallest` or `largest` with both
    /// factors, multiplied in this order. Writes the upper bounds, with 0 beyond the last group, and returns the groups
    /// whose lower bound is less.
    pub(crate) fn bound_groups(
        &self,
        [smallest, largest]: [&[f32; MAX_GROUPS]; 2],
        factors: [f32; 2],
        bounds: &mut [u8; MAX_GROUPS],
    ) -> u32 {
        let [lower, upper] = [smallest, largest].map(|gains| steps(gains, factors));
        let [least, most] = &*self.group_bounds;
        let mut differ = [0; MAX_GROUPS];
        *bounds = [0; MAX_GROUPS];
        for k in 0..self.bandwidth.groups().min(MAX_GROUPS) {
            let bound = most[upper[k] as usize & (STEPS - 1)];
            bounds[k] = bound;
            differ[k] = u8::from(least[lower[k] as usize & (STEPS - 1)] != bound);
        }
        super::bits_of(&differ)
    }

    /// Returns an upper bound of all reports of a row with no entry above this: [`ceiling`](Self::max_cqi), or slightly
    /// more.
    #[inline]
    pub(crate) fn quick_ceiling(&self, largest_sinr: f32) -> u8 {
        self.ceilings[step(largest_sinr) as usize & (STEPS - 1)]
    }

    /// Returns the highest CQI in any report for a row without an entry above `largest_sinr` (linear).
    pub fn max_cqi(&self, largest_sinr: f32) -> u8 {
        reached(&self.ceiling, largest_sinr)
    }

    /// Returns the CQI, from 1 to 15, of a flat channel with `gain` times the smallest SINR for which a UE reports
    /// `cqi`. CQI 0, out of range, stays 0.
    pub fn correct_cqi(&self, cqi: u8, gain: f32) -> u8 {
        match cqi {
            0 => 0,
            // Two CQI can start at the same SINR.
            _ if gain == 1.0 => cqi,
            _ => reached(&self.ceiling, gain * self.ceiling[usize::from(cqi) - 1]).clamp(1, 15),
        }
    }

    /// Whether every row without an entry below `smallest_sinr` (linear) is a perfect channel. Every CQI is then 15,
    /// and the control region is always decoded. The mean mutual information of any of its blocks is 1 with every MCS.
    #[inline]
    pub fn is_max_everywhere(&self, smallest_sinr: f32) -> bool {
        smallest_sinr >= self.best
    }
}

#[cfg(test)]
mod tests {
    use super::super::errors::InformationGrid;
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    #[test]
    fn corrected_cqi_range_from_1_to_15() {
        for (.., tables) in TABLES.iter() {
            for cqi in 0..=15 {
                let corrected = |gain| tables.correct_cqi(cqi, gain);
                assert_eq!([1e-9, 1.0, 1e9].map(corrected), [cqi.min(1), cqi, if cqi > 0 { 15 } else { 0 }]);
                let rising: Vec<u8> = (-40..=40).map(|n| corrected(10f32.powf(n as f32 / 10.0))).collect();
                assert!(rising.is_sorted(), "{cqi}: {rising:?}");
            }
            // Piro's CQI 4 and 5 start at 0.60 and 0.88 bits per symbol: (2^0.88 - 1) / (2^0.60 - 1) = 1.63 times the SINR.
            if let Rule::Piro(_) = tables.rule {
                assert_eq!([1.6, 1.65].map(|gain| tables.correct_cqi(4, gain)), [4, 5]);
                assert_eq!([0.6, 0.65].map(|gain| tables.correct_cqi(5, gain)), [3, 4]);
            }
        }
    }

    /// Tables of all bandwidths, with both methods and both grids, and their models.
    static TABLES: LazyLock<Vec<(Amc, Bandwidth, ErrorModel, CqiTables)>> = LazyLock::new(|| {
        let ways = [Amc::ErrorModel, Amc::Piro { bit_error_rate: BIT_ERROR_RATE }];
        let mut all = Vec::new();
        for grid in [InformationGrid::Reference, InformationGrid::Smooth] {
            let model = ErrorModel::new(grid);
            for amc in ways {
                for n in Bandwidth::RESOURCE_BLOCKS {
                    let bandwidth = Bandwidth::new(n).unwrap();
                    all.push((amc, bandwidth, model.clone(), CqiTables::new(amc, bandwidth, &model)));
                }
            }
        }
        all
    });

    /// Rows with a mean and a spread: flat, slightly and strongly frequency-selective ones.
    fn rows() -> impl Strategy<Value = Vec<f32>> {
        (-12.0f64..35.0, 0.0f64..15.0, proptest::collection::vec(-1.0f64..1.0, ROW_LANES)).prop_map(
            |(mean, spread, row)| row.iter().map(|x| math::pow(10.0, (mean + spread * x) / 10.0) as f32).collect(),
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn thresholds_give_what_the_search_gives(row in rows(), table in 0usize..24) {
            let (amc, bandwidth, model, tables) = &TABLES[table];
            let band = &row[..bandwidth.resource_blocks()];
            prop_assert_eq!(tables.wideband_cqi(&row), reference_cqi(*amc, model, band));
            let mut cqi = [99; MAX_GROUPS];
            tables.fill_subband_cqis(&row, &mut cqi);
            let size = bandwidth.group_size();
            for group in 0..bandwidth.groups() {
                let block = &row[group * size..(group + 1) * size];
                prop_assert_eq!(cqi[group], reference_cqi(*amc, model, block), "group {}", group);
            }
            prop_assert!(cqi[bandwidth.groups()..].iter().all(|&cqi| cqi == 0));
        }

        #[test]
        fn bounds_hold(row in rows(), table in 0usize..24) {
            let (_, bandwidth, model, tables) = &TABLES[table];
            let row = &row[..bandwidth.resource_blocks()];
            let smallest = row.iter().copied().fold(f32::INFINITY, f32::min);
            let largest = row.iter().copied().fold(0.0, f32::max);
            let mut cqi = [0; MAX_GROUPS];
            tables.fill_subband_cqis(row, &mut cqi);
            let cqi = [&cqi[..bandwidth.groups()], &[tables.wideband_cqi(row)]].concat();
            prop_assert!(cqi.iter().all(|&cqi| cqi <= tables.max_cqi(largest)));
            // A step is smaller than the distance of two CQI.
            prop_assert!((0..=1).contains(&(tables.quick_ceiling(largest) - tables.max_cqi(largest))));
            let (size, mut extremes) = (bandwidth.group_size(), [[0.0; MAX_GROUPS]; 2]);
            for (group, block) in row.chunks_exact(size).enumerate() {
                extremes[0][group] = block.iter().copied().fold(f32::INFINITY, f32::min);
                extremes[1][group] = block.iter().copied().fold(0.0, f32::max);
                prop_assert_eq!(tables.one_group(block), cqi[group]);
                prop_assert_eq!(tables.flat_group(extremes[0][group]), reference_cqi(TABLES[table].0, model, &vec![extremes[0][group]; size]));
            }
            let mut bounds = [99; MAX_GROUPS];
            let open = tables.bound_groups([&extremes[0], &extremes[1]], [1.0; 2], &mut bounds);
            for (k, &bound) in bounds.iter().enumerate() {
                let exact = cqi.get(k).copied().filter(|_| k < bandwidth.groups()).unwrap_or(0);
                prop_assert!(if open >> k & 1 == 1 { exact <= bound } else { exact == bound }, "{k}: {bound} {exact}");
            }
            if tables.is_max_everywhere(smallest) {
                prop_assert!(cqi.iter().all(|&cqi| cqi == 15));
                prop_assert_eq!(model.control_error_rate(row), 0.0);
                for modulation in Modulation::ALL {
                    prop_assert_eq!(model.mean_mutual_information(modulation, row), 1.0);
                }
            }
        }

        #[test]
        fn the_uplink_has_its_thresholds(db in -20.0f64..40.0) {
            let sinr = math::pow(10.0, db / 10.0) as f32;
            prop_assert_eq!(TABLES[0].3.uplink_cqi(sinr), reference_uplink_cqi(sinr));
        }
    }

    /// Every step of the search, in a flat channel and with one slightly better block.
    #[test]
    fn thresholds_give_the_result_of_the_search_at_every_step() {
        for (amc, bandwidth, model, tables) in TABLES.iter() {
            for step in 0..2000 {
                let mut row = [math::pow(10.0, (f64::from(step) * 0.02 - 12.0) / 10.0) as f32; ROW_LANES];
                row[0] *= 1.003;
                let (group, band) = (&row[..bandwidth.group_size()], &row[..bandwidth.resource_blocks()]);
                let mut cqi = [0; MAX_GROUPS];
                tables.fill_subband_cqis(&row, &mut cqi);
                assert_eq!(cqi[0], reference_cqi(*amc, model, group), "{amc:?} {bandwidth:?} step {step}");
                assert_eq!(
                    tables.wideband_cqi(&row),
                    reference_cqi(*amc, model, band),
                    "{amc:?} {bandwidth:?} step {step}"
                );
            }
        }
    }

    /// A comparison of each MCS with its own threshold would be wrong here.
    #[test]
    fn information_thresholds_do_not_increase_with_the_mcs_everywhere() {
        let model = ErrorModel::new(InformationGrid::Reference);
        let own =
            |mcs: u8, n| smallest_that(|mi| model.block_error_rate(mcs, downlink_bytes(mcs, n), mi) <= TARGET_ERROR);
        assert!((1..29u8).any(|mcs| modulation(mcs) == modulation(mcs - 1) && own(mcs, 4) < own(mcs - 1, 4)));
    }

    #[test]
    fn certain_best_is_found_at_the_smallest_possible_sinr() {
        for (amc, bandwidth, model, tables) in TABLES.iter() {
            let best = tables.best;
            assert!(best < 5000.0, "{amc:?} {bandwidth:?}: {best}");
            let below = f32::from_bits(best.to_bits() - 1);
            let row = &[below; ROW_LANES][..bandwidth.resource_blocks()];
            assert!(
                tables.wideband_cqi(row) < 15
                    || tables.block(&row[..bandwidth.group_size()], false) < 15
                    || model.mutual_information(Modulation::Qam64, below) < 1.0
            );
        }
        // The last step of the reference grid.
        assert!((TABLES[5].3.best - 157.96).abs() < 0.001, "{}", TABLES[5].3.best);
    }

    #[test]
    fn channel_without_signal_is_out_of_range() {
        for (_, _, _, tables) in TABLES.iter() {
            assert_eq!(tables.wideband_cqi(&[0.0; ROW_LANES]), 0);
            assert_eq!(tables.max_cqi(0.0), 0);
            assert_eq!(tables.uplink_cqi(0.0), 0);
        }
    }

    /// The gap is -ln(5 * 0.00005) / 1.5 = 5.529. CQI 8 needs more than 5.529 (2^1.91 - 1) = 15.25, or 11.83 dB: 95
    /// eighths of a dB are enough and 94 are not. CQI 1 needs more than 5.529 (2^0.15 - 1) = 0.606, or -2.18 dB: -17
    /// eighths are enough, to which -2.24 dB is rounded.
    #[test]
    fn uplink_sinr_is_rounded_to_eighths_of_a_decibel_towards_zero() {
        let tables =
            CqiTables::new(Amc::ErrorModel, Bandwidth::new(25).unwrap(), &ErrorModel::new(InformationGrid::Reference));
        for (db, cqi) in [(11.88, 8), (11.86, 7), (-2.24, 1), (-2.26, 0)] {
            let sinr = math::pow(10.0, db / 10.0) as f32;
            assert_eq!((reference_uplink_cqi(sinr), tables.uplink_cqi(sinr)), (cqi, cqi), "{db} dB");
        }
    }
}
