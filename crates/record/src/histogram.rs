//! A histogram of delays, from which percentiles are computed.
//!
//! Each power of two has 64 classes, so the width of a class is at most 1/64 of its delays. A percentile is the upper
//! end of its class, limited to the longest delay. A percentile is never too small and is at most 1/64 too large. If
//! all delays are equal, percentiles are exact.
//!
//! A run has one histogram per direction of each flow. The delays of a flow span only a few powers of two. Counts are
//! therefore stored only for the classes between the smallest and the largest delay, in blocks of 16. A few delays of
//! one class need no block, so idle connections allocate none.

use fullpipe_units::Duration;

/// Binary logarithm of the number of classes per power of two.
const CLASS_BITS: u32 = 6;
/// Binary logarithm of the number of classes per block; the counts of a block fill a cache line.
const BLOCK_BITS: u32 = 4;
/// Number of delays of one class that are counted without a block.
const WITHOUT_BLOCK: u32 = 8;

/// A histogram of delays: the number of delays in each class. The width of a class is at most 1/64 of its delays.
#[derive(Clone, Debug, Default)]
pub struct DelayHistogram {
    /// Counts of the classes from `first` on; empty while `only` is sufficient.
    counts: Box<[u32]>,
    /// The class of the first count, or the only class if there are no blocks.
    first: u32,
    /// Number of delays in the only class, if there are no blocks.
    only: u32,
    longest: Duration,
}

impl DelayHistogram {
    /// Counts a delay. The count of a class saturates at 2^32 - 1.
    #[inline(always)]
    pub fn add(&mut self, delay: Duration) {
        let class = class_of(delay);
        match self.counts.get_mut(class.wrapping_sub(self.first) as usize) {
            Some(count) => *count = count.saturating_add(1),
            None => self.add_elsewhere(class, 1),
        }
        self.longest = self.longest.max(delay);
    }

    /// Counts delays of a class that has no count yet.
    #[cold]
    #[inline(never)]
    fn add_elsewhere(&mut self, class: u32, number: u32) {
        if self.counts.is_empty() {
            if self.only == 0 {
                self.first = class;
            }
            if class == self.first && self.only.saturating_add(number) <= WITHOUT_BLOCK {
                self.only += number;
                return;
            }
        }
        let block = |class: u32| class >> BLOCK_BITS << BLOCK_BITS;
        let last = self.first + (self.counts.len() as u32).max(1) - 1;
        let first = block(self.first.min(class));
        let end = block(self.first.max(class).max(last)) + (1 << BLOCK_BITS);
        let mut counts = vec![0; (end - first) as usize].into_boxed_slice();
        let place = (self.first - first) as usize;
        counts[place..place + self.counts.len()].copy_from_slice(&self.counts);
        counts[place] += self.only;
        counts[(class - first) as usize] += number;
        (self.counts, self.first, self.only) = (counts, first, 0);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &DelayHistogram) {
        for (class, number) in other.classes() {
            match self.counts.get_mut(class.wrapping_sub(self.first) as usize) {
                Some(count) => *count = count.saturating_add(number),
                None => self.add_elsewhere(class, number),
            }
        }
        self.longest = self.longest.max(other.longest);
    }

    /// Returns the nonempty classes with their counts.
    fn classes(&self) -> impl Iterator<Item = (u32, u32)> {
        let counts = std::iter::once(&self.only).filter(|_| self.counts.is_empty()).chain(&self.counts);
        counts.zip(self.first..).map(|(count, class)| (class, *count)).filter(|(_, count)| *count > 0)
    }

    /// Returns the smallest delay that at least `percent` % of all delays do not exceed. The result is never too small
    /// and at most 1/64 too large. `None` if the histogram is empty.
    pub fn percentile(&self, percent: u64) -> Option<Duration> {
        let total: u128 = self.classes().map(|(_, count)| u128::from(count)).sum();
        let rank = (total * u128::from(percent)).div_ceil(100);
        let mut below = 0;
        let reached = |&(_, count): &(u32, u32)| {
            below += u128::from(count);
            below >= rank
        };
        let (class, _) = self.classes().find(reached)?;
        Some(last_of(class).min(self.longest))
    }
}

/// Returns the class of a delay. Below 64 ns, every nanosecond is a separate class; above, the seven most significant
/// bits select the class.
#[inline(always)]
fn class_of(delay: Duration) -> u32 {
    let nanoseconds = delay.as_nanos();
    let shift = (u64::BITS - nanoseconds.leading_zeros()).saturating_sub(CLASS_BITS + 1);
    (shift << CLASS_BITS) + (nanoseconds >> shift) as u32
}

/// Returns the longest delay of a class.
fn last_of(class: u32) -> Duration {
    let shift = (class >> CLASS_BITS).saturating_sub(1);
    let first = u128::from(class - (shift << CLASS_BITS)) << shift;
    let last = first + (1u128 << shift) - 1;
    Duration::from_nanos(u64::try_from(last).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(delays: impl IntoIterator<Item = u64>) -> DelayHistogram {
        let mut histogram = DelayHistogram::default();
        delays.into_iter().for_each(|delay| histogram.add(Duration::from_nanos(delay)));
        histogram
    }

    fn percentile(histogram: &DelayHistogram, percent: u64) -> u64 {
        histogram.percentile(percent).expect("the histogram has delays").as_nanos()
    }

    #[test]
    fn percentiles_are_at_most_one_part_in_64_too_large() {
        assert_eq!(DelayHistogram::default().percentile(50), None);
        let histogram = of((1..=1000).map(|us| us * 1000));
        for (percent, exact) in [(1, 10_000), (50, 500_000), (95, 950_000), (99, 990_000), (100, 1_000_000)] {
            let found = percentile(&histogram, percent);
            assert!((exact..=exact + exact / 64).contains(&found), "{percent} %: {found}");
        }
        // Every class starts where the previous one ends, up to the largest `Duration`.
        for value in (0..64).flat_map(|bits| [0, 1, 2].map(|add| (1u64 << bits) - 1 + add)).chain([u64::MAX]) {
            let found = percentile(&of([value, u64::MAX]), 50);
            assert!(found >= value && found - value <= value / 64, "{value}: {found}");
        }
    }

    #[test]
    fn equal_delays_are_exact_and_the_first_eight_need_no_memory() {
        let few = of([10_000_001; 8]);
        assert_eq!((percentile(&few, 50), percentile(&few, 99), few.counts.len()), (10_000_001, 10_000_001, 0));
        let more = of([10_000_001; 9]);
        assert_eq!((percentile(&more, 99), more.counts.len()), (10_000_001, 16));
    }

    #[test]
    fn the_order_of_delays_and_merges_does_not_change_percentiles() {
        // 99 delays of 1 us to 99 us and one of 50 ms: by rank, the 50th is 50 us, the 99th is 99 us.
        let delays: Vec<u64> = (1..=99).map(|us| us * 1000).chain([50_000_000]).collect();
        let (upwards, downwards) = (of(delays.iter().copied()), of(delays.iter().rev().copied()));
        let mut merged = of(delays[60..].iter().copied());
        merged.merge(&of(delays[..3].iter().copied()));
        merged.merge(&of(delays[3..60].iter().rev().copied()));
        merged.merge(&DelayHistogram::default());
        for histogram in [&upwards, &downwards, &merged] {
            assert!((50_000..=50_000 + 50_000 / 64).contains(&percentile(histogram, 50)));
            assert!((99_000..=99_000 + 99_000 / 64).contains(&percentile(histogram, 99)));
            assert_eq!(percentile(histogram, 100), 50_000_000);
        }
        assert_eq!(upwards.classes().collect::<Vec<_>>(), downwards.classes().collect::<Vec<_>>());
        assert_eq!(upwards.classes().collect::<Vec<_>>(), merged.classes().collect::<Vec<_>>());
    }
}
