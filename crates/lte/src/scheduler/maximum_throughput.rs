//! Maximum throughput, per group and for the whole band.
//!
//! **Model.** Each group (FD-MT) or the whole band (TD-MT) goes to the UE with the highest rate: argmax R_u(k), or
//! argmax R_u. R_u is the rate at the wideband CQI, which then also determines the MCS. Among UEs with the same rate,
//! the UE with the lowest RNTI gets all groups. The other UEs get none, nor do UEs with lower rates. Only the total
//! throughput is maximized.
//!
//! **Source.** Capozzi et al., "Downlink packet scheduling in LTE cellular networks: key design issues and a survey"
//! (2012); as ns-3's schedulers of these names.

use super::auction::{Auction, give_all, running_maximum};
use super::{MAX_GROUPS, Scheduler, SubframeContext};

/// The FD-MT scheduler: maximum throughput per resource block group.
#[derive(Clone, Debug, Default)]
pub struct FdMaximumThroughput {
    auction: Auction,
}

impl Scheduler for FdMaximumThroughput {
    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        let rates = subframe.rates.each_ref().map(|rates| rates.group.map(|bytes| bytes as f32));
        let most = rates.each_ref().map(running_maximum);
        self.auction.hold(
            subframe,
            subframe.active,
            |subframe, ue| most[subframe.layer_index(ue)][usize::from(subframe.channel.max_cqi(ue))],
            |subframe, ue| rates[subframe.layer_index(ue)],
            owners,
        );
    }
}

/// Maximum throughput over the whole band.
#[derive(Clone, Debug, Default)]
pub struct TdMaximumThroughput {
    auction: Auction,
}

impl Scheduler for TdMaximumThroughput {
    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        let rates = subframe.rates.each_ref().map(|rates| rates.band.map(|bytes| bytes as f32));
        let most = rates.each_ref().map(running_maximum);
        let winner = self.auction.hold_one(
            subframe,
            |subframe, ue| most[subframe.layer_index(ue)][usize::from(subframe.channel.max_cqi(ue))],
            |subframe, ue| match subframe.channel.wideband_cqi(ue) {
                0 => 0.0,
                cqi => rates[subframe.layer_index(ue)][usize::from(cqi)],
            },
        );
        give_all(subframe.free, winner, owners);
    }

    fn uses_wideband_mcs(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::BitRateLimits;
    use super::super::tests::{BY_DISTANCE, Cell, GROUPS, Source, assert_close, full};
    use super::*;

    /// Everything goes to the first of the best UEs at any distance: rows 052 to 091 of the reference's `scheduler`
    /// vectors in bytes/s.
    #[test]
    fn first_of_the_best_ues_gets_everything() {
        for whole in [false, true] {
            let scheduler = || -> Box<dyn Scheduler> {
                if whole { Box::new(TdMaximumThroughput::default()) } else { Box::new(FdMaximumThroughput::default()) }
            };
            let vectors = [2_196_000.0, 1_383_000.0, 1_191_000.0, 775_000.0, 421_000.0];
            for (cqi, bytes_per_second) in BY_DISTANCE.into_iter().zip(vectors) {
                for ues in [1, 3, 6, 12] {
                    let found = Cell::saturated(scheduler(), &vec![cqi; ues]).run(100);
                    assert_eq!(found[0], bytes_per_second);
                    assert_eq!(found[1..], [0.0; 11][..ues - 1]);
                }
            }
            let found = Cell::saturated(scheduler(), &[5, 8, 15, 11, 15]).run(100);
            assert_close(&found, &[0.0, 0.0, full(15), 0.0, 0.0], 1e-12);
        }
    }

    /// Per group the highest rate in it decides, over the whole band the highest wideband CQI.
    #[test]
    fn groups_or_the_wideband_cqi_decide() {
        for whole in [false, true] {
            let scheduler: Box<dyn Scheduler> =
                if whole { Box::new(TdMaximumThroughput::default()) } else { Box::new(FdMaximumThroughput::default()) };
            let mut cell = Cell::new(scheduler);
            for (wideband, halves) in [(7, [12, 6]), (8, [9, 8]), (8, [6, 10])] {
                let mut row = [halves[0]; GROUPS];
                row[GROUPS / 2..].fill(halves[1]);
                cell.reports.add(wideband, &row);
                cell.attach(Source::Saturated, BitRateLimits::default());
            }
            let owners = cell.subframe();
            let expected = if whole { [1; GROUPS] } else { [0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2] };
            assert_eq!(owners[..GROUPS], expected);
        }
    }

    /// If a UE has CQI 15, reports of later UEs are not read, and those of earlier ones only if they could be equally
    /// good.
    #[test]
    fn reports_of_ues_that_cannot_win_are_not_read() {
        for whole in [false, true] {
            let scheduler: Box<dyn Scheduler> =
                if whole { Box::new(TdMaximumThroughput::default()) } else { Box::new(FdMaximumThroughput::default()) };
            let mut cell = Cell::saturated(scheduler, &[5, 14, 15, 15, 3]);
            cell.reports.slack[1] = 1;
            let owners = cell.subframe();
            assert_eq!(owners[..GROUPS], [2; GROUPS]);
            assert_eq!(cell.reports.asked, [1, 2]);
        }
    }

    /// The lower RNTI wins a tie although its report is read later.
    #[test]
    fn ties_go_to_the_lowest_rnti() {
        for whole in [false, true] {
            let scheduler: Box<dyn Scheduler> =
                if whole { Box::new(TdMaximumThroughput::default()) } else { Box::new(FdMaximumThroughput::default()) };
            let mut cell = Cell::saturated(scheduler, &[3, 12, 12, 12]);
            cell.reports.slack[2] = 3;
            let owners = cell.subframe();
            assert_eq!(owners[..GROUPS], [1; GROUPS]);
            assert_eq!(cell.reports.asked, [2, 1]);
        }
    }
}
