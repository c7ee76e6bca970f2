//! The physical layer: the radio channel and its effect on transmissions.
//!
//! The module has no clock and draws no random numbers. Each function is pure, so that subframes can be evaluated in
//! any order, or not at all. SINR and gains are linear ratios (`f32` if there is one per resource block) unless a name
//! ends in `_db`. Powers are in W/Hz, or in dBm if the name ends in `_dbm`.
//!
//! * [`bandwidth`], [`tables`]: resource blocks and groups; sizes of transport blocks, modulation, CQI;
//! * [`frequency`], [`power`], [`antenna`], [`path_loss`]: received signals; [`fading`], with [`hash`] for its random
//!   numbers: their variation; [`interference`]: interfering signals;
//! * [`information`], [`errors`]: losses of blocks, including the effect of retransmissions; the control channel;
//! * [`amc`]: CQI reports.

use std::fmt;

pub mod amc;
pub mod antenna;
pub mod bandwidth;
pub mod errors;
pub mod fading;
pub mod frequency;
pub mod hash;
pub mod information;
pub mod interference;
pub mod path_loss;
pub mod power;
pub mod tables;

/// An invalid parameter of the radio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RadioError {
    sentence: String,
}

impl RadioError {
    /// Creates an error from a sentence that states what was found and what is expected.
    pub fn new(sentence: impl Into<String>) -> Self {
        RadioError { sentence: sentence.into() }
    }
}

impl fmt::Display for RadioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for RadioError {}

/// Length of a row of resource blocks: 100, rounded up to whole SIMD vectors of all machines.
pub const ROW_LANES: usize = 112;

/// Packs a set of which each byte holds one bit, 0 or 1. (The multiplication moves one bit of each byte to the highest
/// byte.)
#[inline]
pub(crate) fn bits_of(bytes: &[u8; 32]) -> u32 {
    let (words, _) = bytes.as_chunks::<8>();
    let mut bits = 0;
    for (place, word) in words.iter().enumerate() {
        let gathered = u64::from_le_bytes(*word).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        bits |= (gathered as u32) << (8 * place);
    }
    bits
}

/// Returns the smallest positive `f32` for which `holds`, or infinity if there is none. `holds` must be false up to
/// some number and true from it on. The search bisects over bit patterns, whose order is that of the numbers.
pub(crate) fn smallest_that(holds: impl Fn(f32) -> bool) -> f32 {
    let (mut fails, mut works) = (0u32, f32::MAX.to_bits());
    if !holds(f32::MAX) {
        return f32::INFINITY;
    }
    while works - fails > 1 {
        let middle = fails + (works - fails) / 2;
        if holds(f32::from_bits(middle)) {
            works = middle;
        } else {
            fails = middle;
        }
    }
    f32::from_bits(works)
}

#[cfg(test)]
mod tests {
    #[test]
    fn bits_are_those_of_the_bytes() {
        for bits in [0, 1, 2, 1 << 31, 0x8000_0001, 0x1234_5678, u32::MAX] {
            assert_eq!(super::bits_of(&std::array::from_fn(|k| (bits >> k & 1) as u8)), bits);
        }
    }

    #[test]
    fn bisection_finds_the_exact_number() {
        assert_eq!(super::smallest_that(|x| x >= 0.1), 0.1);
        assert_eq!(super::smallest_that(|x| x > 1.0), 1.0 + f32::EPSILON);
        assert_eq!(super::smallest_that(|_| false), f32::INFINITY);
    }
}
