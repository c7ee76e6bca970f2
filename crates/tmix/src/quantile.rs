//! Distributions given by a few percentiles. Between percentiles the logarithm of the value is linear in the
//! probability. A bounded Pareto tail can follow the last percentile.

use fullpipe_units::{RandomStream, math};

/// Probability and value; points are in ascending order.
type Point = (f64, f64);

/// A distribution given by its percentiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuantileDistribution {
    /// Points from probability 0 to 1, or to the beginning of the tail.
    pub(crate) points: &'static [Point],
    /// The tail beyond the last point, if that point is not at probability 1.
    pub(crate) tail: Option<ParetoTail>,
}

/// A bounded Pareto tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParetoTail {
    /// The shape index; a smaller index is a heavier tail.
    pub(crate) index: f64,
    /// The largest value.
    pub(crate) most: f64,
}

impl QuantileDistribution {
    /// Returns the value at this probability.
    pub(crate) fn at(&self, probability: f64) -> f64 {
        let after = self.points.partition_point(|(point, _)| *point < probability);
        let Some((to, high)) = self.points.get(after) else {
            return self.beyond(probability);
        };
        let Some((from, low)) = after.checked_sub(1).and_then(|before| self.points.get(before)) else {
            return *high;
        };
        low * math::exp((probability - from) / (to - from) * math::ln(high / low))
    }

    fn beyond(&self, probability: f64) -> f64 {
        let (Some((from, low)), Some(ParetoTail { index, most })) = (self.points.last(), self.tail) else {
            return self.points.last().map_or(0.0, |(_, value)| *value);
        };
        let probability = (probability - from) / (1.0 - from);
        let cut = 1.0 - math::pow(low / most, index);
        (low * math::pow(1.0 - probability * cut, -1.0 / index)).min(most)
    }
}

/// Draws `count` probabilities, one from each of `count` equal strata, in random order. Each is uniform, and their sum
/// has a small variance.
pub(crate) fn strata(random: &mut RandomStream, count: usize) -> Vec<f64> {
    let mut drawn: Vec<f64> = (0..count).map(|stratum| (stratum as f64 + random.uniform()) / count as f64).collect();
    for place in 1..count {
        drawn.swap(place, random.uniform_below(place as u64 + 1) as usize);
    }
    drawn
}

/// Draws as [`strata`] does, but in the order of the keys, which are at least 0: the largest key gets the highest
/// stratum.
pub(crate) fn strata_by_rank(random: &mut RandomStream, keys: &[f64]) -> Vec<f64> {
    // Keys are not negative, so their bit patterns have the same order. Of equal keys the earlier comes first.
    let mut order: Vec<(u64, usize)> = keys.iter().enumerate().map(|(place, key)| (key.to_bits(), place)).collect();
    order.sort_unstable();
    let mut drawn = vec![0.0; keys.len()];
    for (stratum, (_, place)) in order.into_iter().enumerate() {
        drawn[place] = (stratum as f64 + random.uniform()) / keys.len() as f64;
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_at_given_probabilities_are_the_given_values() {
        let quantiles = QuantileDistribution {
            points: &[(0.0, 1.0), (0.5, 10.0), (0.9, 1000.0)],
            tail: Some(ParetoTail { index: 1.0, most: 4000.0 }),
        };
        for (probability, value) in [(0.0, 1.0), (0.5, 10.0), (0.9, 1000.0), (0.7, 100.0), (1.0, 4000.0)] {
            let found = quantiles.at(probability);
            assert!((found / value - 1.0).abs() < 1e-12, "{probability}: {found}, not {value}");
        }
        // Pareto with index 1 from 1000 to 4000: the survivor function (1000/x - 1/4) / (3/4) is 1/3 at x = 2000.
        assert!((quantiles.at(0.9 + 0.1 * 2.0 / 3.0) / 2000.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn strata_are_drawn_once_each() {
        let mut random = RandomStream::new(1, "x", "strata");
        let drawn = strata(&mut random, 100);
        let mut seen: Vec<usize> = drawn.iter().map(|value| (value * 100.0) as usize).collect();
        assert_ne!(seen, (0..100).collect::<Vec<_>>());
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        assert!(strata(&mut random, 0).is_empty());
    }

    #[test]
    fn strata_by_rank_give_the_largest_key_the_highest_stratum() {
        let mut random = RandomStream::new(1, "x", "strata");
        let drawn = strata_by_rank(&mut random, &[0.3, 0.9, 0.1, 0.5]);
        let strata: Vec<usize> = drawn.iter().map(|value| (value * 4.0) as usize).collect();
        assert_eq!(strata, [1, 3, 0, 2]);
    }
}
