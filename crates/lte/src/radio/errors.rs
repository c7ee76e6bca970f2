//! The error model of transport blocks: the link-to-system mapping of ns-3's LTE model (mutual information, MIESM),
//! after IEEE 802.16m and the Vienna simulator.
//!
//! The SINR of each resource block gives mutual information per bit ([`super::information`]). Its mean over the
//! resource blocks of the transport block represents the channel. The transport block is split into code blocks as in
//! 3GPP TS 36.212, clause 5.1.2. The loss probability of a code block is a Gaussian curve over the mean, which depends
//! on code rate and code block size. If one code block is lost, the transport block is lost.
//!
//! With incremental redundancy ([`HarqSoftBuffer`]) all attempts are evaluated as one transmission. Its mutual
//! information is the mean over the attempts, weighted by coded bits, and its code rate is that of all bits sent.
//! Curves exist for only some low code rates, so that a further attempt may have no effect. Bit counts have 32 bits;
//! those of ns-3 have 16 bits and wrap above 65535.
//!
//! The error of the control region (PCFICH and PDCCH) depends on the QPSK information of the whole band.

pub use super::information::InformationGrid;
use super::information::MutualInformation;
use super::tables::{CLASSES, CURVES, Modulation, modulation, tables};
use super::{ROW_LANES, smallest_that};
use fullpipe_units::math;
use std::f64::consts::FRAC_1_SQRT_2;
use std::sync::Arc;

/// Largest code block in bits.
const LARGEST_CODE_BLOCK: u32 = 6144;

/// Checksum of each code block if there are several, in bits.
const CODE_BLOCK_CHECK: u32 = 24;

/// The code blocks of a transport block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeBlockSegmentation {
    /// Number of code blocks of the larger size.
    pub larger_blocks: u32,
    /// Larger size of a code block in bits.
    pub larger_bits: u32,
    /// Number of code blocks of the smaller size.
    pub smaller_blocks: u32,
    /// Smaller size of a code block in bits; 0 if there is only one code block.
    pub smaller_bits: u32,
}

/// The smallest size of a turbo code block with at least `bits` bits (TS 36.212, table 5.1.3-3). Sizes range from 40 to
/// 6144 in steps of 8, of 16 above 512, of 32 above 1024, of 64 above 2048.
fn turbo_bits(bits: u32) -> u32 {
    match bits {
        0..=40 => 40,
        41..=512 => bits.next_multiple_of(8),
        513..=1024 => bits.next_multiple_of(16),
        1025..=2048 => bits.next_multiple_of(32),
        _ => bits.next_multiple_of(64),
    }
}

/// The next smaller size.
fn turbo_bits_below(bits: u32) -> u32 {
    bits - match bits {
        0..=512 => 8,
        513..=1024 => 16,
        1025..=2048 => 32,
        _ => 64,
    }
}

/// Splits a transport block of `bits` bits into code blocks (TS 36.212, clause 5.1.2). As in ns-3, the CRC of the
/// transport block itself is not added.
pub fn segment_code_blocks(bits: u32) -> CodeBlockSegmentation {
    if bits <= LARGEST_CODE_BLOCK {
        return CodeBlockSegmentation {
            larger_blocks: 1,
            larger_bits: turbo_bits(bits),
            smaller_blocks: 0,
            smaller_bits: 0,
        };
    }
    let blocks = bits.div_ceil(LARGEST_CODE_BLOCK - CODE_BLOCK_CHECK);
    let with_checks = bits + blocks * CODE_BLOCK_CHECK;
    let larger_bits = turbo_bits(with_checks.div_ceil(blocks));
    let smaller_bits = turbo_bits_below(larger_bits);
    let smaller_blocks = (blocks * larger_bits - with_checks) / (larger_bits - smaller_bits);
    CodeBlockSegmentation { larger_blocks: blocks - smaller_blocks, larger_bits, smaller_blocks, smaller_bits }
}

/// Block error rate over mutual information.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    centre: f64,
    /// 1 / (sqrt(2) deviation).
    scale: f64,
}

impl Curve {
    /// Probability that a code block is decoded.
    fn survives(self, information: f64) -> f64 {
        let x = (information - self.centre) * self.scale;
        // Beyond 6 the other tail is below 2^-54.
        if x > 6.0 {
            1.0
        } else if x < -6.0 {
            0.0
        } else {
            0.5 * math::erfc(-x)
        }
    }
}

/// The error model with its tables of about 20 kB, which clones share.
#[derive(Clone, Debug)]
pub struct ErrorModel {
    grid: InformationGrid,
    information: Arc<MutualInformation>,
    /// By class of block sizes and curve.
    curves: Arc<[[Curve; CURVES]; CLASSES.len()]>,
    /// Control errors: below this mean information, this probability; 0 beyond the last.
    control: Arc<[(f64, f64)]>,
    /// SINR from which no control channel is lost.
    sure_control_sinr: f32,
    /// SINR from which every modulation has mutual information 1.
    full_information_sinr: f32,
}

impl ErrorModel {
    /// Creates the model with this grid.
    pub fn new(grid: InformationGrid) -> Self {
        let information = MutualInformation::new(grid);
        let mut curves = [[Curve::default(); CURVES]; CLASSES.len()];
        for (class, curves) in curves.iter_mut().enumerate() {
            for (number, curve) in curves.iter_mut().enumerate() {
                // A parameter that a class lacks is taken from the next larger class that has it.
                let classes = || tables().block_errors[class..].iter().map(|curves| curves[number]);
                let centre = classes().map(|(centre, _)| centre).find(|&centre| centre >= 0.0);
                let deviation = classes().map(|(_, deviation)| deviation).find(|&deviation| deviation >= 0.0);
                let (Some(centre), Some(deviation)) = (centre, deviation) else {
                    unreachable!("the largest class has all curves")
                };
                *curve = Curve { centre, scale: FRAC_1_SQRT_2 / deviation };
            }
        }
        let control = control_steps(&information);
        // The mean of a row may be rounded below its smallest entry, by less than 1e-5.
        let sure = control.last().map_or(0.0, |&(below, _)| below) + 1e-5;
        let sure_control_sinr = smallest_that(|sinr| f64::from(information.at(Modulation::Qpsk, sinr)) >= sure);
        let full_information_sinr =
            smallest_that(|sinr| Modulation::ALL.iter().all(|&modulation| information.at(modulation, sinr) >= 1.0));
        ErrorModel {
            grid,
            information: Arc::new(information),
            curves: Arc::new(curves),
            control: control.into(),
            sure_control_sinr,
            full_information_sinr,
        }
    }

    /// Returns the grid of mutual information.
    pub fn grid(&self) -> InformationGrid {
        self.grid
    }

    pub(super) fn information(&self) -> &Arc<MutualInformation> {
        &self.information
    }

    /// Returns the mutual information per bit, from 0 to 1, at a linear SINR.
    #[inline]
    pub fn mutual_information(&self, modulation: Modulation, sinr: f32) -> f32 {
        self.information.at(modulation, sinr)
    }

    /// Returns the mean mutual information over resource blocks with these linear SINRs. At least one is required.
    #[inline]
    pub fn mean_mutual_information(&self, modulation: Modulation, sinr: &[f32]) -> f32 {
        self.information.mean(modulation, sinr)
    }

    /// Returns the lowest linear SINR at which the mutual information of every modulation is 1. A row without an entry
    /// below this SINR has a mean mutual information of 1.
    pub fn full_information_sinr(&self) -> f32 {
        self.full_information_sinr
    }

    fn error_rate(&self, segmentation: CodeBlockSegmentation, curve: usize, information: f64) -> f64 {
        let survives = |blocks: u32, bits: u32| {
            if blocks == 0 {
                return 1.0;
            }
            let class = CLASSES.iter().rposition(|&from| from <= bits).unwrap_or(0);
            let one = self.curves[class][curve].survives(information);
            let mut all = one;
            for _ in 1..blocks {
                all *= one;
            }
            all
        };
        1.0 - survives(segmentation.larger_blocks, segmentation.larger_bits)
            * survives(segmentation.smaller_blocks, segmentation.smaller_bits)
    }

    /// Returns the probability that the first transmission of a transport block is lost, given its mean mutual
    /// information.
    pub fn block_error_rate(&self, mcs: u8, transport_block_bytes: u32, mean_mi: f32) -> f64 {
        let curve = tables().schemes[usize::from(mcs)].curve;
        self.error_rate(segment_code_blocks(transport_block_bytes * 8), curve, f64::from(mean_mi))
    }

    /// Returns the probability that a UE does not decode the control region of a subframe. `sinr` contains the linear
    /// SINRs of all resource blocks of the band.
    pub fn control_error_rate(&self, sinr: &[f32]) -> f64 {
        let mean = f64::from(self.information.mean(Modulation::Qpsk, sinr));
        let step = self.control.partition_point(|&(below, _)| below <= mean);
        self.control.get(step).map_or(0.0, |&(_, error)| error)
    }

    /// Whether [`control_error_rate`](Self::control_error_rate) is 0 for every row without an entry below
    /// `smallest_sinr` (linear).
    #[inline]
    pub fn is_control_error_free(&self, smallest_sinr: f32) -> bool {
        smallest_sinr >= self.sure_control_sinr
    }

    /// Returns the SINR in dB of a flat band with the same mean mutual information as this band. The table of control
    /// errors is indexed by this SINR. On the reference grid, the result is the SINR of the nearest grid point.
    pub fn effective_control_sinr_db(&self, sinr: &[f32]) -> f64 {
        effective_sinr_db(&self.information, f64::from(self.information.mean(Modulation::Qpsk, sinr)))
    }
}

/// SINR in dB at which QPSK has this mutual information.
fn effective_sinr_db(information: &MutualInformation, mean: f64) -> f64 {
    let sinr = match information {
        MutualInformation::Reference(steps) => {
            let steps = &steps[Modulation::Qpsk as usize];
            let values = steps.values();
            let above = values.partition_point(|&value| f64::from(value) < mean);
            match above.checked_sub(1).map(|below| f64::from(values[below])) {
                _ if above == values.len() => steps.sinr(above - 1),
                Some(below) if mean - below < f64::from(values[above]) - mean => steps.sinr(above - 1),
                _ => steps.sinr(above),
            }
        }
        MutualInformation::Smooth(_) => {
            f64::from(smallest_that(|sinr| f64::from(information.at(Modulation::Qpsk, sinr)) >= mean))
        }
    };
    10.0 * math::log10(sinr)
}

/// Error of the control channel at an effective SINR: that of the first entry that is not below it. Below all entries
/// it is that of the first, above all it is 0.
fn control_error_at(effective_sinr_db: f64) -> f64 {
    let errors = &tables().control_errors;
    errors.get(errors.partition_point(|&(db, _)| db < effective_sinr_db)).map_or(0.0, |&(_, error)| error)
}

/// The steps of control error over mean information. The SINR increases with the information, so each step has one
/// lower end, which is found by bisection.
fn control_steps(information: &MutualInformation) -> Vec<(f64, f64)> {
    let error_at = |mean: f32| control_error_at(effective_sinr_db(information, f64::from(mean)));
    tables()
        .control_errors
        .iter()
        .map(|&(_, error)| (f64::from(smallest_that(|mean| error_at(mean.min(1.0)) < error)), error))
        .collect()
}

/// The information that a receiver has from failed attempts of a transport block (incremental redundancy). Each HARQ
/// process has one soft buffer. If the process is free, the buffer has the default value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HarqSoftBuffer {
    /// Information bits of the first attempt.
    information_bits: u32,
    /// Coded bits of all attempts.
    coded_bits: u32,
    /// Sum over the attempts of mutual information times coded bits.
    information: f64,
}

/// Coded bits of a transport block.
fn coded_bits(mcs: u8, bytes: u32) -> u32 {
    8 * (f64::from(bytes) / tables().schemes[usize::from(mcs)].code_rate) as u32
}

impl HarqSoftBuffer {
    /// Whether no attempt has failed yet.
    pub fn is_empty(&self) -> bool {
        self.coded_bits == 0
    }

    /// Returns the probability that the current attempt fails, given the mean mutual information of this attempt.
    pub fn error_rate(&self, model: &ErrorModel, mcs: u8, bytes: u32, mean_mi: f32) -> f64 {
        if self.is_empty() {
            return model.block_error_rate(mcs, bytes, mean_mi);
        }
        let coded = coded_bits(mcs, bytes);
        let all = f64::from(self.coded_bits + coded);
        let rate = f64::from(self.information_bits) / all;
        let curves = modulation(mcs).curves();
        let lowest = curves.start;
        let curve = curves.rev().find(|&curve| tables().code_rates[curve] <= rate).unwrap_or(lowest);
        let mean = (self.information + f64::from(coded) * f64::from(mean_mi)) / all;
        model.error_rate(segment_code_blocks(bytes * 8), curve, mean)
    }

    /// Adds a failed attempt with its mean mutual information.
    pub fn add_failed_attempt(&mut self, mcs: u8, bytes: u32, mean_mi: f32) {
        if self.is_empty() {
            self.information_bits = bytes * 8;
        }
        let coded = coded_bits(mcs, bytes);
        self.coded_bits += coded;
        self.information += f64::from(coded) * f64::from(mean_mi);
    }
}

const _: () = assert!(ROW_LANES.is_multiple_of(8));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::radio::tables::{MCS_COUNT, downlink_bytes};
    use proptest::prelude::*;

    #[test]
    fn turbo_sizes_are_the_188_of_the_standard() {
        let mut sizes = vec![40];
        while sizes[sizes.len() - 1] < LARGEST_CODE_BLOCK {
            let last = sizes[sizes.len() - 1];
            sizes.push(turbo_bits(last + 1));
            assert_eq!(turbo_bits_below(sizes[sizes.len() - 1]), last);
        }
        assert_eq!(sizes.len(), 188);
        assert_eq!(
            (sizes[59], sizes[60], sizes[91], sizes[92], sizes[123], sizes[124]),
            (512, 528, 1024, 1056, 2048, 2112)
        );
    }

    #[test]
    fn code_blocks_hold_the_transport_block_with_little_padding() {
        for bits in (8..76_000).step_by(8) {
            let CodeBlockSegmentation { larger_blocks, larger_bits, smaller_blocks, smaller_bits } =
                segment_code_blocks(bits);
            let blocks = larger_blocks + smaller_blocks;
            let checks = if blocks > 1 { CODE_BLOCK_CHECK * blocks } else { 0 };
            let room = larger_blocks * larger_bits + smaller_blocks * smaller_bits;
            assert!(room >= bits + checks && larger_bits <= LARGEST_CODE_BLOCK && larger_blocks > 0, "{bits}");
            assert!(bits < 40 || room < bits + checks + 64, "{bits}: {room}");
        }
    }

    /// Compares the stored steps with the definition.
    #[test]
    fn control_errors_are_those_of_the_effective_sinr() {
        for grid in [InformationGrid::Reference, InformationGrid::Smooth] {
            let model = ErrorModel::new(grid);
            for hundredth_db in -2000..500 {
                let sinr = [math::pow(10.0, f64::from(hundredth_db) / 1000.0) as f32; 6];
                let expected = control_error_at(model.effective_control_sinr_db(&sinr));
                assert_eq!(model.control_error_rate(&sinr), expected, "{hundredth_db}/100 dB");
            }
        }
    }

    #[test]
    fn control_channel_is_never_lost_from_its_bound_on() {
        for grid in [InformationGrid::Reference, InformationGrid::Smooth] {
            let model = ErrorModel::new(grid);
            let flat = [model.sure_control_sinr; 100];
            for resource_blocks in [6, 15, 25, 50, 75, 100] {
                assert_eq!(model.control_error_rate(&flat[..resource_blocks]), 0.0);
            }
        }
    }

    #[test]
    fn ideal_channel_loses_nothing() {
        let model = ErrorModel::new(InformationGrid::Reference);
        for mcs in 0..MCS_COUNT as u8 {
            for resource_blocks in [1, 3, 24, 100] {
                let error = model.block_error_rate(mcs, downlink_bytes(mcs, resource_blocks), 1.0);
                assert!(error < 1e-3, "MCS {mcs} in {resource_blocks} blocks: {error}");
            }
        }
    }

    #[test]
    fn retransmissions_weight_information_by_coded_bits() {
        // 66 bytes at MCS 0, rate 0.08: 8 * 825 = 6600 coded bits. After two attempts the rate is 528 / 13200 = 0.04, for which
        // there is a curve. So two halves of the information that rate 0.04 needs give its median.
        let model = ErrorModel::new(InformationGrid::Reference);
        let mut harq = HarqSoftBuffer::default();
        let centre = model.curves[CLASSES.iter().rposition(|&from| from <= 528).unwrap()][2].centre;
        harq.add_failed_attempt(0, 66, (centre * 0.5) as f32);
        let error = harq.error_rate(&model, 0, 66, (centre * 1.5) as f32);
        assert!((error - 0.5).abs() < 1e-5, "{error}");
        assert_eq!((harq.information_bits, harq.coded_bits), (528, 6600));
    }

    proptest! {
        #[test]
        fn more_information_loses_no_more(
            mcs in 0u8..29, resource_blocks in 1usize..=100, information in 0.0f32..1.0, more in 0.0f32..0.2, failed in 0usize..4,
        ) {
            let model = ErrorModel::new(InformationGrid::Reference);
            let bytes = downlink_bytes(mcs, resource_blocks);
            let mut harq = HarqSoftBuffer::default();
            for _ in 0..failed {
                harq.add_failed_attempt(mcs, bytes, information);
            }
            let less = harq.error_rate(&model, mcs, bytes, information);
            prop_assert!((0.0..=1.0).contains(&less));
            prop_assert!(harq.error_rate(&model, mcs, bytes, (information + more).min(1.0)) <= less);
            // At least the rate of this attempt alone, if both have the same information and the rates have curves.
            prop_assert!(failed > 0 || less == model.block_error_rate(mcs, bytes, information));
        }

        #[test]
        fn a_sure_control_channel_is_never_lost(sinr in proptest::collection::vec(-15.0f64..10.0, 6..100)) {
            let sinr: Vec<f32> = sinr.iter().map(|db| math::pow(10.0, db / 10.0) as f32).collect();
            for grid in [InformationGrid::Reference, InformationGrid::Smooth] {
                let model = ErrorModel::new(grid);
                let raised: Vec<f32> = sinr.iter().map(|sinr| sinr.max(model.sure_control_sinr)).collect();
                let error = model.control_error_rate(&sinr);
                prop_assert!((0.0..=0.9227).contains(&error));
                prop_assert_eq!(model.control_error_rate(&raised), 0.0);
                prop_assert!(model.is_control_error_free(model.sure_control_sinr) && !model.is_control_error_free(0.5));
            }
        }
    }

    /// Rounded down to whole bytes: 549 / 0.92 = 596.7.
    #[test]
    fn coded_bits_are_whole_bytes() {
        assert_eq!(coded_bits(28, 549), 8 * 596);
    }
}
