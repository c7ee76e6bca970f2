//! Stateless random numbers: functions of (seed, entity, index), so that they can be evaluated in any order.
//!
//! The mixing function is the finalizer of splitmix64 (Steele, Lea and Flood 2014, variant 13 of Stafford), applied
//! after each word.

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns 64 pseudorandom bits that depend on all three words.
#[inline]
pub fn hash(seed: u64, who: u64, which: u64) -> u64 {
    // The golden ratio between words prevents (0, 0, 0) from being a fixed point and the words from cancelling.
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let z = mix(seed.wrapping_add(STEP));
    let z = mix((z ^ who).wrapping_add(STEP));
    mix((z ^ which).wrapping_add(STEP))
}

/// Converts 64 random bits to a uniformly distributed number in [0, 1), a multiple of 2^-53.
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Converts 64 random bits to a uniformly distributed integer from 0 to `bound` - 1.
#[inline]
pub fn below(bits: u64, bound: u64) -> u64 {
    ((u128::from(bits) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_neighboring_words_are_independent() {
        // Half of the bits differ when any one word is incremented.
        for word in 0..3 {
            let mut different = 0;
            for i in 0..1000u64 {
                let words = |i: u64| [0, 1, 2].map(|w| if w == word { i } else { 7 });
                let ([a, b, c], [d, e, f]) = (words(i), words(i + 1));
                different += (hash(a, b, c) ^ hash(d, e, f)).count_ones();
            }
            // Of 64000 bits, with a standard deviation of 126.
            assert!((31_400..32_600).contains(&different), "{different}");
        }
    }

    #[test]
    fn numbers_are_uniform_in_their_range() {
        let mut counts = [0; 10];
        let mut sum = 0.0;
        for i in 0..100_000 {
            counts[below(hash(1, 2, i), 10) as usize] += 1;
            sum += unit(hash(2, i, 1));
        }
        // The standard deviations are 95 for a count and 0.0009 for the mean.
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        assert!((sum / 100_000.0 - 0.5).abs() < 0.004);
    }
}
