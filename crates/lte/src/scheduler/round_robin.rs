//! Round robin.
//!
//! **Model.** The free groups are divided by the number of active UEs. Each UE gets floor(free / active) groups, but at
//! least one, while free groups remain. The order is that of RNTIs, starting after the UE that was served last. The
//! remaining groups stay empty. The MCS follows the wideband CQI. With B resource blocks in groups of G, each of N UEs
//! therefore gets a transport block of floor(B / (N G)) groups in every subframe. With more UEs than groups, UEs take
//! turns with one group each.
//!
//! **Source.** As ns-3's round robin scheduler.

use super::{MAX_GROUPS, NO_OWNER, Scheduler, SubframeContext, group_indices};

/// Round robin.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    /// The UE after the one that was served last; 0 initially.
    next: u16,
    /// UEs that are served in this subframe.
    turn: Vec<u16>,
}

impl Scheduler for RoundRobin {
    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        owners.fill(NO_OWNER);
        let free = subframe.free.count_ones() as usize;
        let first = subframe.active.partition_point(|&ue| ue < self.next);
        let (later, sooner) = subframe.active.split_at(first);
        // At most as many UEs as groups: further ones would get no group and not change the division, so their reports are not
        // read.
        self.turn.clear();
        for &ue in sooner.iter().chain(later) {
            if self.turn.len() == free {
                break;
            }
            if subframe.channel.wideband_cqi(ue) > 0 {
                self.turn.push(ue);
            }
        }
        let Some(&last) = self.turn.last() else { return };
        self.next = last + 1;
        let each = free / self.turn.len();
        for (index, k) in group_indices(subframe.free).enumerate().take(each * self.turn.len()) {
            owners[k] = self.turn[index / each];
        }
    }

    fn uses_wideband_mcs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BY_DISTANCE, Cell, GROUPS, assert_close, bytes, shares};
    use super::*;

    fn cell(cqis: &[u8]) -> Cell {
        Cell::saturated(Box::new(RoundRobin::default()), cqis)
    }

    /// T = TBS(MCS, floor(B / (N G)) G) / 8 per ms with at most as many UEs as groups; otherwise that of one group, in
    /// 12 of N subframes.
    #[test]
    fn each_ue_gets_a_block_of_its_share() {
        for cqi in BY_DISTANCE {
            for ues in 1..=30 {
                let found = cell(&vec![cqi; ues]).run(60 * ues as u64);
                let each = f64::from(bytes((GROUPS / ues).max(1), cqi)) * 1000.0;
                let expected = each * (GROUPS as f64 / ues as f64).min(1.0);
                assert_close(&found, &vec![expected; ues], 1e-12);
            }
        }
    }

    /// Rows 001 to 023 of the reference's `scheduler` vectors in bytes/s. They were counted without RLC headers over
    /// about half a second; the tolerance is the reference's 10 %.
    #[test]
    fn reference_vectors_are_met() {
        for (ues, distance, bytes_per_second) in [
            (1, 0, 2_196_000.0),
            (3, 0, 749_000.0),
            (6, 0, 373_000.0),
            (9, 0, 185_000.0),
            (12, 0, 185_000.0),
            (1, 1, 1_383_000.0),
            (6, 1, 233_000.0),
            (15, 1, 90_400.0),
            (1, 2, 1_191_000.0),
            (6, 4, 67_000.0),
            (9, 4, 32_000.0),
            (12, 4, 32_000.0),
        ] {
            let found = cell(&vec![BY_DISTANCE[distance]; ues]).run(600);
            assert_close(&found, &vec![bytes_per_second; ues], 0.1);
        }
    }

    #[test]
    fn turns_continue_after_the_last_served_ue() {
        let mut cell = cell(&[15; 15]);
        let first: Vec<u16> = cell.subframe()[..GROUPS].to_vec();
        assert_eq!(first, (0..12).collect::<Vec<u16>>());
        let second: Vec<u16> = cell.subframe()[..GROUPS].to_vec();
        assert_eq!(second, [12, 13, 14, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    /// Groups with a retransmission are skipped and UEs out of range do not count: 9 groups for 2 UEs, 4 each.
    #[test]
    fn only_free_groups_are_divided() {
        let mut cell = cell(&[15, 0, 3]);
        cell.free = 0b1110_1011_1011;
        assert_eq!(shares(&cell.subframe()), [(0, 0b0000_0001_1011), (2, 0b0110_1010_0000)]);
    }

    /// With more UEs than groups, only as many reports are read.
    #[test]
    fn only_reports_that_matter_are_read() {
        let mut cell = cell(&[[15; 20].as_slice(), &[0; 20]].concat());
        cell.subframe();
        assert_eq!(cell.reports.asked, (0..12).collect::<Vec<u16>>());
        cell.reports.asked.clear();
        cell.subframe();
        let expected: Vec<u16> = (12..40).chain(0..4).collect();
        assert_eq!(cell.reports.asked, expected);
    }
}
