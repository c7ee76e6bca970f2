//! Throughput to average.
//!
//! **Model.** Each group goes to the UE with the highest rate in this group relative to its rate over the band: argmax
//! R_u(k) / R_u. R_u is the rate of one group at the wideband CQI. The metric has no memory. If the channel is constant
//! over the band, all quotients are 1 and the UE with the lowest RNTI gets all groups.
//!
//! A UE whose wideband CQI is 0 may still be in range in a group. It is evaluated with a wideband CQI of 1, which has
//! the same MCS.
//!
//! **Source.** Capozzi et al., "Downlink packet scheduling in LTE cellular networks: key design issues and a survey"
//! (2012); as ns-3's scheduler of this name.

use super::auction::{Auction, running_maximum};
use super::{MAX_GROUPS, Scheduler, SubframeContext};

/// Throughput to average.
#[derive(Clone, Debug, Default)]
pub struct ThroughputToAverage {
    auction: Auction,
}

impl Scheduler for ThroughputToAverage {
    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        let rates = subframe.rates.each_ref().map(|rates| rates.group.map(|bytes| bytes as f32));
        let most = rates.each_ref().map(running_maximum);
        let average = |subframe: &mut SubframeContext<'_>, ue| {
            let cqi = subframe.channel.wideband_cqi(ue).max(1);
            rates[subframe.layer_index(ue)][usize::from(cqi)]
        };
        self.auction.hold(
            subframe,
            subframe.active,
            |subframe, ue| {
                let ceiling = subframe.channel.max_cqi(ue);
                most[subframe.layer_index(ue)][usize::from(ceiling)] / average(subframe, ue)
            },
            // A division instead of a multiplication by the inverse, so that equal quotients are equal numbers.
            |subframe, ue| {
                let average = average(subframe, ue);
                rates[subframe.layer_index(ue)].map(|rate| rate / average)
            },
            owners,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::BitRateLimits;
    use super::super::tests::{BY_DISTANCE, Cell, GROUPS, Source, full};
    use super::*;

    fn scheduler() -> Box<dyn Scheduler> {
        Box::new(ThroughputToAverage::default())
    }

    /// All quotients are 1, whatever the channel: rows 094 to 114 of the reference's `scheduler` vectors.
    #[test]
    fn first_ue_gets_everything_without_fading() {
        for cqis in [BY_DISTANCE, [5, 15, 8, 11, 12], [7; 5]] {
            let found = Cell::saturated(scheduler(), &cqis).run(100);
            assert_eq!(found[0], full(cqis[0]));
            assert_eq!(found[1..], [0.0; 4]);
        }
    }

    /// A distant UE at twice its own mean precedes a near one at its mean.
    #[test]
    fn groups_are_compared_with_the_ues_own_band() {
        let mut cell = Cell::new(scheduler());
        for (wideband, halves) in [(12, [12, 12]), (4, [7, 2]), (0, [1, 2])] {
            let mut row = [halves[0]; GROUPS];
            row[GROUPS / 2..].fill(halves[1]);
            cell.reports.add(wideband, &row);
            cell.attach(Source::Saturated, BitRateLimits::default());
        }
        // Bytes of a group at CQI 1, 2, 4, 7: 4, 9, 22, 47. First half: 1, 47/22, 4/4; second: 1, 9/22, 9/4.
        assert_eq!(cell.subframe()[..GROUPS], [1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2]);
    }
}
