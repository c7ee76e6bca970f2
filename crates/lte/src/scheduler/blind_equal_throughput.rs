//! Blind equal throughput, per group and for the whole band.
//!
//! **Model.** The UE with the lowest recent throughput is served next, regardless of its channel. TD-BET assigns the
//! whole band to argmax 1 / T_u. FD-BET assigns groups one by one to the UE with the smallest expected average. After
//! each group the expected average of its UE becomes (1 - 1/99) T + (1/99) x the block that it has so far. The UE gets
//! further groups as long as this is the smallest average. T_u is the average of the last 99 ms
//! ([`average`](super::average)); ties go to the lowest RNTI. In the long run all UEs get the same throughput, 1 / sum
//! (1 / R_i), so that a distant UE occupies most of the band.
//!
//! Both use the wideband CQI, also for the MCS.
//!
//! **Source.** Kela et al., "Dynamic packet scheduling performance in UTRA long term evolution downlink" (2008). Both
//! follow this rule, even where ns-3's schedulers of these names differ. The shares of saturated UEs agree with those
//! of ns-3 3.44 within 2 % (rows `shares` of the vectors).

use super::auction::{Auction, give_all};
use super::average::Averages;
use super::{MAX_GROUPS, NO_OWNER, Scheduler, SubframeContext, group_indices};

/// Blind equal throughput over the whole band.
#[derive(Clone, Debug, Default)]
pub struct TdBlindEqualThroughput {
    averages: Averages,
    auction: Auction,
}

impl Scheduler for TdBlindEqualThroughput {
    fn averages(&mut self) -> Option<&mut Averages> {
        Some(&mut self.averages)
    }

    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        let averages = &self.averages;
        let winner = self.auction.hold_one(
            subframe,
            |_, ue| averages.inverse(ue),
            |subframe, ue| if subframe.channel.wideband_cqi(ue) > 0 { averages.inverse(ue) } else { 0.0 },
        );
        give_all(subframe.free, winner, owners);
    }

    fn uses_wideband_mcs(&self) -> bool {
        true
    }
}

/// A UE that waits for groups.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    ue: u16,
    /// Expected average in bytes/s.
    average: f64,
    groups: usize,
}

/// Blind equal throughput per group.
#[derive(Clone, Debug, Default)]
pub struct FdBlindEqualThroughput {
    averages: Averages,
    candidates: Vec<Candidate>,
}

impl Scheduler for FdBlindEqualThroughput {
    fn averages(&mut self) -> Option<&mut Averages> {
        Some(&mut self.averages)
    }

    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        owners.fill(NO_OWNER);
        let averages = &self.averages;
        self.candidates.clear();
        self.candidates.extend(subframe.active.iter().map(|&ue| Candidate {
            ue,
            average: averages.bytes_per_second(ue),
            groups: 0,
        }));
        for k in group_indices(subframe.free) {
            loop {
                let smallest = |best: usize, index: usize| {
                    if self.candidates[index].average < self.candidates[best].average { index } else { best }
                };
                let Some(best) = (0..self.candidates.len()).reduce(smallest) else { return };
                let Candidate { ue, groups, .. } = self.candidates[best];
                let cqi = subframe.channel.wideband_cqi(ue);
                if cqi == 0 {
                    self.candidates.remove(best);
                    continue;
                }
                owners[k] = ue;
                let bytes = subframe.rates(ue).blocks[groups][usize::from(cqi)];
                self.candidates[best] = Candidate { ue, average: averages.expected(ue, bytes), groups: groups + 1 };
                break;
            }
        }
    }

    fn uses_wideband_mcs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BY_DISTANCE, Cell, GROUPS, assert_close, full};
    use super::*;

    fn schedulers() -> [Box<dyn Scheduler>; 2] {
        [Box::new(TdBlindEqualThroughput::default()), Box::new(FdBlindEqualThroughput::default())]
    }

    /// T = 1 / sum (1 / R_i), for equal channels the full-band rate / N: the reference's rule, within its 10 %.
    ///
    /// Over the whole band the result is more exact, since T_i is a sawtooth. Each UE is served at about the same T,
    /// which jumps by R_i / 99 and falls again, so that its mean is that T plus R_i / 198. All subframes are used: the
    /// sum of T_i / R_i is 1.
    #[test]
    fn all_ues_get_the_same_throughput() {
        for cqis in [&BY_DISTANCE[..], &[15, 15, 5], &[12; 7], &[15; 30], &[8, 11]] {
            let sum: f64 = cqis.iter().map(|&cqi| 1.0 / full(cqi)).sum();
            let [band, groups] = schedulers().map(|scheduler| {
                let mut cell = Cell::saturated(scheduler, cqis);
                cell.run(1000);
                cell.run(6000)
            });
            assert_close(&band, &vec![1.0 / sum; cqis.len()], 0.1);
            let valley = (1.0 - cqis.len() as f64 / 198.0) / sum;
            let teeth: Vec<f64> = cqis.iter().map(|&cqi| valley + full(cqi) / 198.0).collect();
            assert_close(&band, &teeth, 0.005);
            // With groups, all UEs get something in most subframes, so there is no sawtooth. Blocks of some groups are not
            // exactly their fraction of the whole band.
            assert_close(&groups, &vec![1.0 / sum; cqis.len()], 0.1);
            let mean = groups.iter().sum::<f64>() / groups.len() as f64;
            assert_close(&groups, &vec![mean; cqis.len()], 0.01);
        }
    }

    /// Rows 116 to 156 of the reference's `scheduler` vectors in bytes/s, with its tolerance.
    #[test]
    fn reference_vectors_are_met() {
        let [band, groups] = [false, true];
        for (per_group, ues, distance, bytes_per_second) in [
            (groups, 1, 0, 2_196_000.0),
            (groups, 6, 0, 373_000.0),
            (groups, 1, 1, 1_383_000.0),
            (groups, 3, 1, 469_000.0),
            (groups, 12, 1, 113_000.0),
            (groups, 1, 2, 1_191_000.0),
            (groups, 3, 2, 389_000.0),
            (groups, 6, 2, 193_000.0),
            (groups, 3, 3, 253_000.0),
            (groups, 6, 3, 125_000.0),
            (groups, 3, 4, 137_000.0),
            (groups, 6, 4, 67_000.0),
            (band, 1, 0, 2_196_000.0),
            (band, 3, 0, 732_000.0),
            (band, 12, 0, 183_000.0),
            (band, 1, 1, 1_383_000.0),
            (band, 3, 1, 461_000.0),
            (band, 6, 1, 230_500.0),
            (band, 12, 1, 115_250.0),
            (band, 6, 2, 198_500.0),
            (band, 1, 3, 775_000.0),
            (band, 12, 3, 64_583.0),
            (band, 1, 4, 421_000.0),
            (band, 12, 4, 35_083.0),
        ] {
            let [over_band, over_groups] = schedulers();
            let scheduler = if per_group { over_groups } else { over_band };
            let found = Cell::saturated(scheduler, &vec![BY_DISTANCE[distance]; ues]).run(600);
            assert_close(&found, &vec![bytes_per_second; ues], 0.1);
        }
    }

    /// By hand, with averages of 1 byte/s: the first UE gets a group of 185 bytes and expects 98/99 + 185000/99 = 1870
    /// bytes/s. The second gets blocks of 32, 67, 101, 137, 173 and 209 bytes until it expects 209000/99 = 2112. Then
    /// the first gets another group and expects 3769 with 373 bytes. The second is at 3526 with 349 bytes when all
    /// groups are assigned.
    #[test]
    fn groups_go_to_the_smallest_expected_average() {
        let mut cell = Cell::saturated(Box::new(FdBlindEqualThroughput::default()), &[15, 5, 0]);
        let owners = cell.subframe();
        assert_eq!(owners[..GROUPS], [0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1]);
    }

    /// Only the report of the served UE is read, unless it is out of range.
    #[test]
    fn no_report_is_read_unnecessarily() {
        let mut cell = Cell::saturated(Box::new(TdBlindEqualThroughput::default()), &[0, 15, 15, 15]);
        for turn in [1, 2, 3, 1, 2, 3] {
            cell.reports.asked.clear();
            cell.subframe();
            assert_eq!(cell.reports.asked, [0, turn]);
        }
    }
}
