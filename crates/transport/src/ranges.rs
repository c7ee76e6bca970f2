//! A set of stream offsets as sorted, disjoint, nonadjacent ranges: data that a receiver holds beyond a gap, or data
//! that a sender knows to be acknowledged beyond a gap.

/// First offset, and the offset after the last one.
pub type OffsetRange = (u64, u64);

/// A set of stream offsets. It allocates memory when the first range is added.
#[derive(Clone, Debug, Default)]
pub struct RangeSet {
    ranges: Vec<OffsetRange>,
}

impl RangeSet {
    /// Returns whether the set is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the ranges, in order.
    #[inline]
    pub fn as_slice(&self) -> &[OffsetRange] {
        &self.ranges
    }

    /// Removes all ranges.
    #[inline]
    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Returns the index of the first range that ends at or after `offset`.
    fn touching(&self, offset: u64) -> usize {
        // New data nearly always extends the last range or begins after it.
        let count = self.ranges.len();
        if count > 0 && self.ranges[count - 1].1 < offset {
            return count;
        }
        if count > 1 && self.ranges[count - 2].1 < offset {
            return count - 1;
        }
        self.ranges.partition_point(|range| range.1 < offset)
    }

    /// Returns the range that contains this offset; `None` if the offset is not in the set.
    pub fn find(&self, offset: u64) -> Option<OffsetRange> {
        let index = self.ranges.partition_point(|range| range.1 <= offset);
        self.ranges.get(index).copied().filter(|range| range.0 <= offset)
    }

    /// Returns whether all of `start..end` is in the set.
    pub fn covers(&self, start: u64, end: u64) -> bool {
        let index = self.touching(start.saturating_add(1));
        self.ranges.get(index).is_some_and(|range| range.0 <= start && range.1 >= end)
    }

    /// Adds `start..end` and returns the range that now contains it. Calls `added`, in order, for each part that was
    /// not in the set. If `start >= end`, only returns the arguments.
    pub fn insert(&mut self, start: u64, end: u64, mut added: impl FnMut(u64, u64)) -> OffsetRange {
        if start >= end {
            return (start, end);
        }
        let first = self.touching(start);
        let (mut low, mut high, mut reached) = (start, end, start);
        let mut next = first;
        while let Some(&range) = self.ranges.get(next)
            && range.0 <= end
        {
            if range.0 > reached {
                added(reached, range.0);
            }
            reached = reached.max(range.1);
            low = low.min(range.0);
            high = high.max(range.1);
            next += 1;
        }
        if reached < end {
            added(reached, end);
        }
        if next == first {
            self.ranges.insert(first, (low, high));
        } else {
            self.ranges[first] = (low, high);
            if next > first + 1 {
                self.ranges.drain(first + 1..next);
            }
        }
        (low, high)
    }

    /// Adds `start..end` if the last range ends at `start`, and returns whether it does. No part of `start..end` may be
    /// in the set.
    #[inline(always)]
    pub fn extend_last(&mut self, start: u64, end: u64) -> bool {
        match self.ranges.last_mut() {
            Some(last) if last.1 == start => {
                last.1 = end;
                true
            }
            _ => false,
        }
    }

    /// Returns the first part of `start..end` that is in the set; `None` if no part is.
    pub fn first_overlap(&self, start: u64, end: u64) -> Option<OffsetRange> {
        let first = self.ranges.partition_point(|range| range.1 <= start);
        let range = self.ranges.get(first).filter(|range| range.0 < end && start < end)?;
        Some((range.0.max(start), range.1.min(end)))
    }

    /// Removes `start..end` from the set.
    pub fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let first = self.ranges.partition_point(|range| range.1 <= start);
        let past = self.ranges.partition_point(|range| range.0 < end);
        if first >= past {
            return;
        }
        let (low, high) = (self.ranges[first].0, self.ranges[past - 1].1);
        let left = (low < start).then_some((low, start));
        let right = (end < high).then_some((end, high));
        self.ranges.splice(first..past, left.into_iter().chain(right));
    }

    /// Removes all offsets below `offset`.
    pub fn remove_below(&mut self, offset: u64) {
        let gone = self.ranges.partition_point(|range| range.1 <= offset);
        if gone > 0 {
            self.ranges.drain(..gone);
        }
        if let Some(range) = self.ranges.first_mut() {
            range.0 = range.0.max(offset);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(ranges: &[OffsetRange]) -> RangeSet {
        RangeSet { ranges: ranges.to_vec() }
    }

    fn added(ranges: &mut RangeSet, start: u64, end: u64) -> Vec<OffsetRange> {
        let mut parts = Vec::new();
        ranges.insert(start, end, |a, b| parts.push((a, b)));
        parts
    }

    #[test]
    fn adjacent_ranges_are_merged() {
        let mut ranges = set(&[(10, 20), (30, 40), (50, 60)]);
        assert_eq!(added(&mut ranges, 20, 30), [(20, 30)]);
        assert_eq!(ranges.as_slice(), [(10, 40), (50, 60)]);
    }

    #[test]
    fn insert_reports_only_the_new_parts() {
        let mut ranges = set(&[(10, 20), (30, 40), (50, 60)]);
        assert_eq!(added(&mut ranges, 5, 55), [(5, 10), (20, 30), (40, 50)]);
        assert_eq!(ranges.as_slice(), [(5, 60)]);
        assert_eq!(added(&mut ranges, 6, 60), []);
        assert_eq!(added(&mut ranges, 7, 7), []);
    }

    #[test]
    fn remove_may_span_several_ranges() {
        let mut ranges = set(&[(10, 20), (30, 40), (50, 60)]);
        ranges.remove(15, 52);
        assert_eq!(ranges.as_slice(), [(10, 15), (52, 60)]);
        ranges.remove(54, 55);
        assert_eq!(ranges.as_slice(), [(10, 15), (52, 54), (55, 60)]);
        ranges.remove(20, 50);
        ranges.remove(30, 30);
        assert_eq!(ranges.as_slice(), [(10, 15), (52, 54), (55, 60)]);
        ranges.remove(0, 100);
        assert!(ranges.is_empty());
    }

    #[test]
    fn remove_splits_a_range() {
        let mut ranges = set(&[(10, 20), (30, 40)]);
        ranges.remove_below(35);
        assert_eq!(ranges.as_slice(), [(35, 40)]);
        ranges.remove_below(40);
        assert!(ranges.is_empty());
    }

    proptest! {
        /// After any operations, the set agrees with an array of Booleans.
        #[test]
        fn agrees_with_a_bitmap(operations in prop::collection::vec((0u64..64, 0u64..20, prop::bool::weighted(0.15)), 1..60)) {
            let mut ranges = RangeSet::default();
            let mut bitmap = [false; 100];
            for (start, length, removal) in operations {
                let end = start + length;
                if removal {
                    ranges.remove_below(start);
                    bitmap[..start as usize].fill(false);
                } else {
                    for (from, to) in added(&mut ranges, start, end) {
                        for bit in &mut bitmap[from as usize..to as usize] {
                            prop_assert!(!*bit, "told twice");
                            *bit = true;
                        }
                    }
                    prop_assert!(bitmap[start as usize..end as usize].iter().all(|bit| *bit));
                    prop_assert!(length == 0 || ranges.covers(start, end));
                }
                for (offset, bit) in (0..).zip(&bitmap) {
                    prop_assert_eq!(ranges.find(offset).is_some(), *bit);
                    prop_assert_eq!(ranges.covers(offset, offset + 1), *bit);
                }
                let part = ranges.first_overlap(start, end).map(|part| (part.0 as usize, part.1 as usize));
                let from = (start as usize..end as usize).find(|offset| bitmap[*offset]);
                let to = from.map(|from| (from..end as usize).find(|offset| !bitmap[*offset]).unwrap_or(end as usize));
                prop_assert_eq!(part, from.zip(to));
                let slice = ranges.as_slice();
                prop_assert!(slice.iter().all(|range| range.0 < range.1));
                prop_assert!(slice.windows(2).all(|pair| pair[0].1 < pair[1].0));
            }
        }
    }
}
