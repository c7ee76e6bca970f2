//! Sizes of transport blocks, modulation and coding schemes, channel quality indicators (3GPP TS 36.213, clause 7), and
//! the rates and curves of the block error model. The numbers are in `data/`, with their sources. They are read once
//! and are constant.
//!
//! The modulation of an MCS is that of the downlink in both directions, as in ns-3's error model. In the standard the
//! uplink changes modulation at MCS 11 and 21 instead of 10 and 17.

use std::str::FromStr;
use std::sync::LazyLock;

/// Largest number of resource blocks of a transport block.
pub const MAX_RESOURCE_BLOCKS: usize = 110;

/// Number of modulation and coding schemes: 0 to 28.
pub const MCS_COUNT: usize = 29;

/// Number of curves of the block error model, over all modulations.
pub(crate) const CURVES: usize = 38;

/// Size of code blocks in bits from which each class of curves applies.
pub(crate) const CLASSES: [u32; 9] = [40, 104, 160, 256, 512, 1024, 2560, 4032, 6144];

/// The direction of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the base station to the UE.
    Downlink,
    /// From the UE to the base station.
    Uplink,
}

/// Modulation of a transport block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Modulation {
    /// 2 bits per symbol.
    Qpsk,
    /// 4 bits per symbol.
    Qam16,
    /// 6 bits per symbol.
    Qam64,
}

impl Modulation {
    /// All modulations, in ascending order of bits per symbol.
    pub const ALL: [Modulation; 3] = [Modulation::Qpsk, Modulation::Qam16, Modulation::Qam64];

    /// Returns the number of bits per symbol.
    pub fn bits_per_symbol(self) -> u32 {
        2 * (self as u32 + 1)
    }

    /// Returns the range of MCS with this modulation.
    pub fn mcs_range(self) -> std::ops::Range<u8> {
        match self {
            Modulation::Qpsk => 0..10,
            Modulation::Qam16 => 10..17,
            Modulation::Qam64 => 17..MCS_COUNT as u8,
        }
    }

    /// The curves of the block error model for this modulation, by increasing code rate.
    pub(crate) fn curves(self) -> std::ops::Range<usize> {
        match self {
            Modulation::Qpsk => 0..13,
            Modulation::Qam16 => 13..23,
            Modulation::Qam64 => 23..CURVES,
        }
    }
}

/// A modulation and coding scheme.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct McsEntry {
    pub(crate) downlink_i_tbs: u8,
    pub(crate) uplink_i_tbs: u8,
    /// Bits per symbol after coding, with two decimals.
    pub(crate) efficiency: f64,
    /// Code rate of the block error model.
    pub(crate) code_rate: f64,
    /// Curve of a first transmission.
    pub(crate) curve: usize,
}

/// All tables.
#[derive(Debug)]
pub(crate) struct Tables {
    /// Block sizes in bits by I_TBS and resource blocks.
    block_bits: [[u32; MAX_RESOURCE_BLOCKS + 1]; 27],
    pub(crate) schemes: [McsEntry; MCS_COUNT],
    /// By CQI: efficiency with two decimals, and as in the standard.
    cqi_efficiency: [(f64, f64); 16],
    /// By class and curve: center and deviation, -1 if not available.
    pub(crate) block_errors: [[(f64, f64); CURVES]; CLASSES.len()],
    /// Code rate of each curve.
    pub(crate) code_rates: [f64; CURVES],
    /// Effective SINR in dB and error rate, by increasing SINR.
    pub(crate) control_errors: Vec<(f64, f64)>,
}

static TABLES: LazyLock<Tables> = LazyLock::new(Tables::read);

/// Returns the tables.
pub(crate) fn tables() -> &'static Tables {
    &TABLES
}

/// Returns the rows of a table file below its header, split at commas.
pub(crate) fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

/// Parses a number of a table file.
pub(crate) fn number<T: FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("`{word}` in a table of this crate"))
}

impl Tables {
    fn read() -> Self {
        let mut tables = Tables {
            block_bits: [[0; MAX_RESOURCE_BLOCKS + 1]; 27],
            schemes: [McsEntry::default(); MCS_COUNT],
            cqi_efficiency: [(0.0, 0.0); 16],
            block_errors: [[(-1.0, -1.0); CURVES]; CLASSES.len()],
            code_rates: [0.0; CURVES],
            control_errors: Vec::new(),
        };
        for row in rows(include_str!("../../data/transport_block_sizes.csv")) {
            let resource_blocks: usize = number(row[0]);
            for (i_tbs, bits) in row[1..].iter().enumerate() {
                tables.block_bits[i_tbs][resource_blocks] = number(bits);
            }
        }
        for row in rows(include_str!("../../data/mcs.csv")) {
            tables.schemes[number::<usize>(row[0])] = McsEntry {
                downlink_i_tbs: number(row[1]),
                uplink_i_tbs: number(row[2]),
                efficiency: number(row[3]),
                code_rate: number(row[4]),
                curve: number(row[5]),
            };
        }
        for row in rows(include_str!("../../data/cqi.csv")) {
            tables.cqi_efficiency[number::<usize>(row[0])] = (number(row[5]), number(row[4]));
        }
        for row in rows(include_str!("../../data/block_errors.csv")) {
            let bits: u32 = number(row[0]);
            let class = CLASSES.iter().position(|&from| from == bits).expect("a class of block sizes");
            let curve: usize = number(row[1]);
            tables.code_rates[curve] = number(row[2]);
            tables.block_errors[class][curve] = (number(row[4]), number(row[5]));
        }
        tables.control_errors =
            rows(include_str!("../../data/control_errors.csv")).map(|row| (number(row[0]), number(row[1]))).collect();
        tables
    }
}

/// Returns the size of a transport block in bits.
///
/// # Panics
/// If `i_tbs` is above 26 or `resource_blocks` above 110.
pub fn transport_block_bits(i_tbs: u8, resource_blocks: usize) -> u32 {
    tables().block_bits[usize::from(i_tbs)][resource_blocks]
}

/// Returns the I_TBS of an MCS.
pub fn i_tbs(direction: Direction, mcs: u8) -> u8 {
    let scheme = &tables().schemes[usize::from(mcs)];
    match direction {
        Direction::Downlink => scheme.downlink_i_tbs,
        Direction::Uplink => scheme.uplink_i_tbs,
    }
}

/// Returns the size of a downlink transport block of one layer in bytes.
pub fn downlink_bytes(mcs: u8, resource_blocks: usize) -> u32 {
    transport_block_bits(i_tbs(Direction::Downlink, mcs), resource_blocks) / 8
}

/// Returns the size of an uplink transport block in bytes.
pub fn uplink_bytes(mcs: u8, resource_blocks: usize) -> u32 {
    transport_block_bits(i_tbs(Direction::Uplink, mcs), resource_blocks) / 8
}

/// Returns the modulation of an MCS.
pub fn modulation(mcs: u8) -> Modulation {
    match mcs {
        0..=9 => Modulation::Qpsk,
        10..=16 => Modulation::Qam16,
        _ => Modulation::Qam64,
    }
}

/// Returns the efficiency of an MCS in information bits per symbol, with two decimals.
pub fn mcs_efficiency(mcs: u8) -> f64 {
    tables().schemes[usize::from(mcs)].efficiency
}

/// Returns the efficiency of a CQI in information bits per symbol, rounded to two decimals for the comparison with an
/// MCS.
pub fn cqi_efficiency(cqi: u8) -> f64 {
    tables().cqi_efficiency[usize::from(cqi)].0
}

/// Returns the efficiency of a CQI in information bits per symbol, as in TS 36.213, table 7.2.3-1.
pub fn standard_cqi_efficiency(cqi: u8) -> f64 {
    tables().cqi_efficiency[usize::from(cqi)].1
}

/// Returns the MCS for a CQI: the highest MCS whose efficiency does not exceed that of the CQI. The result is always
/// even. It is 0 for CQI 0, at which nothing should be sent.
pub fn mcs_of_cqi(cqi: u8) -> u8 {
    2 * cqi.saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcs_of_a_cqi_is_the_highest_that_is_not_more_efficient() {
        for cqi in 1..16 {
            let highest = (0..MCS_COUNT as u8).rev().find(|&mcs| mcs_efficiency(mcs) <= cqi_efficiency(cqi)).unwrap();
            assert_eq!(mcs_of_cqi(cqi), highest, "CQI {cqi}");
        }
        assert_eq!(mcs_of_cqi(0), 0);
    }

    #[test]
    fn block_sizes_increase_with_the_band_and_the_scheme() {
        for i_tbs in 0..27 {
            for n in 1..=MAX_RESOURCE_BLOCKS {
                let bits = transport_block_bits(i_tbs, n);
                assert!(bits > 0 && bits.is_multiple_of(8));
                assert!(n == 1 || bits >= transport_block_bits(i_tbs, n - 1), "{i_tbs} {n}");
                assert!(i_tbs == 0 || bits >= transport_block_bits(i_tbs - 1, n), "{i_tbs} {n}");
            }
        }
    }

    #[test]
    fn efficiency_of_a_cqi_is_modulation_times_code_rate() {
        for row in rows(include_str!("../../data/cqi.csv")).skip(1) {
            let efficiency = number::<f64>(row[2]) * number::<f64>(row[3]) / 1024.0;
            assert!((efficiency - standard_cqi_efficiency(number(row[0]))).abs() < 5e-5);
            assert!((efficiency - cqi_efficiency(number(row[0]))).abs() < 6e-3);
        }
    }

    #[test]
    fn modulations_have_their_schemes_and_curves() {
        for mcs in 0..MCS_COUNT as u8 {
            assert!(modulation(mcs).mcs_range().contains(&mcs));
            assert!(modulation(mcs).curves().contains(&tables().schemes[usize::from(mcs)].curve));
        }
        for row in rows(include_str!("../../data/block_errors.csv")) {
            let curve: usize = number(row[1]);
            let of = Modulation::ALL.into_iter().find(|modulation| modulation.curves().contains(&curve)).unwrap();
            assert_eq!(of.bits_per_symbol(), number::<u32>(row[3]));
        }
        assert!(
            tables().block_errors[CLASSES.len() - 1].iter().all(|&(centre, deviation)| centre > 0.0 && deviation > 0.0)
        );
        assert_eq!(tables().control_errors.len(), 46);
    }
}
