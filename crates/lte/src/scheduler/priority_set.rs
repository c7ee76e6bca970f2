//! Priority set scheduler.
//!
//! **Model.** Two steps per subframe. In the time domain, UEs below their target, which is their guaranteed bit rate, come
//! first, by 1 / T_u, who has had least first; the others after them, by R_u / T_u, the rate of one group at the wideband CQI over
//! the average of the last 99 ms ([`average`](super::average)). The first N of these go on, by default half of all, at least
//! one. In the frequency domain each group goes to the one with the highest W x M, where W = max(1, target / T_u) keeps up
//! the pressure of who is below its target, and M is what the group is worth to a UE:
//!
//! * PFsch: R_u(k) / Tsch_u, where Tsch_u is an average only of subframes in which the UE was among the N;
//! * CoItA: CQI_u(k) / sum of its CQIs over all groups.
//!
//! Ties go to the lowest RNTI. So a UE below its guaranteed bit rate is always among the N, and the others share what it leaves:
//! fairly with PFsch; with CoItA, which knows no past, by how the channel varies over the band, and where it does not, the
//! lowest RNTI of the N takes all. A guarantee of more than PFsch would give the UE comes with W, that is, if T_u stays
//! below it: it is held to a per cent while it takes a quarter of the band, not when it takes a third of it.
//!
//! **Source.** Mongha et al., "QoS oriented time and frequency domain packet schedulers for the UTRAN long term evolution"
//! (VTC 2008); as ns-3's scheduler of this name, but that a UE which cannot be reached in a group does not bid for it.

use super::auction::{Auction, Bids, running_maximum};
use super::average::{Averages, next};
use super::{MOST_GROUPS, Promise, Scheduler, Subframe};

/// What a group is worth to a UE in the frequency domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrequencyMetric {
    /// The rate there over the average of subframes in which the UE passed the time domain.
    #[default]
    PfSch,
    /// The CQI there over the sum of the UE's CQIs.
    CoItA,
}

/// A UE in the time domain.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    ue: u16,
    below_target: bool,
    metric: f64,
}

/// Priority set scheduler.
#[derive(Clone, Debug)]
pub struct PrioritySet {
    metric: FrequencyMetric,
    multiplexed: usize,
    averages: Averages,
    /// Tsch, bytes/s.
    while_chosen: Vec<f64>,
    /// Bytes that each UE was given in this subframe.
    given: Vec<u32>,
    /// Bytes/s.
    targets: Vec<f64>,
    candidates: Vec<Candidate>,
    /// UEs that passed the time domain in this subframe, in order of RNTI.
    chosen: Vec<u16>,
    auction: Auction,
}

impl PrioritySet {
    /// With no UE attached; in the time domain so many UEs pass, 0: half of the active.
    #[must_use]
    pub fn new(metric: FrequencyMetric, multiplexed_ues: u16) -> PrioritySet {
        PrioritySet {
            metric,
            multiplexed: usize::from(multiplexed_ues),
            averages: Averages::default(),
            while_chosen: Vec::new(),
            given: Vec::new(),
            targets: Vec::new(),
            candidates: Vec::new(),
            chosen: Vec::new(),
            auction: Auction::default(),
        }
    }

    /// The time domain.
    fn choose(&mut self, subframe: &mut Subframe<'_>) {
        self.candidates.clear();
        for &ue in subframe.active {
            let cqi = subframe.channel.wideband(ue);
            if cqi == 0 {
                continue;
            }
            let average = self.averages.bytes_per_second(ue);
            let below_target = average < self.targets[usize::from(ue)];
            let rate = if below_target { 1.0 } else { f64::from(subframe.rates(ue).group[usize::from(cqi)]) };
            self.candidates.push(Candidate { ue, below_target, metric: rate / average });
        }
        let pass = if self.multiplexed > 0 { self.multiplexed } else { (self.candidates.len() / 2).max(1) };
        // The order of equals, that of RNTI, is kept.
        self.candidates
            .sort_by(|one, other| other.below_target.cmp(&one.below_target).then(other.metric.total_cmp(&one.metric)));
        self.chosen.clear();
        self.chosen.extend(self.candidates.iter().take(pass).map(|candidate| candidate.ue));
        self.chosen.sort_unstable();
    }
}

impl Scheduler for PrioritySet {
    fn supports_guaranteed_bit_rate(&self) -> bool {
        true
    }

    fn attach(&mut self, promise: Promise) {
        self.averages.attach();
        self.while_chosen.push(1.0);
        self.given.push(0);
        self.targets.push(promise.guaranteed_bits_per_second as f64 / 8.0);
    }

    fn allocate(&mut self, subframe: &mut Subframe<'_>, owners: &mut [u16; MOST_GROUPS]) {
        self.choose(subframe);
        let (averages, targets, while_chosen) = (&self.averages, &self.targets, &self.while_chosen);
        let pressure = |ue: u16| (targets[usize::from(ue)] / averages.bytes_per_second(ue)).max(1.0);
        match self.metric {
            FrequencyMetric::PfSch => {
                let rates = subframe.rates.each_ref().map(|rates| rates.group.map(|bytes| bytes as f32));
                let most = rates.each_ref().map(running_maximum);
                let weight = |ue: u16| (pressure(ue) / while_chosen[usize::from(ue)]) as f32;
                self.auction.hold(
                    subframe,
                    &self.chosen,
                    |subframe, ue| most[subframe.layer(ue)][usize::from(subframe.channel.ceiling(ue))] * weight(ue),
                    |subframe, ue| {
                        let weight = weight(ue);
                        rates[subframe.layer(ue)].map(|rate| rate * weight)
                    },
                    owners,
                );
            }
            FrequencyMetric::CoItA => self.auction.hold(
                subframe,
                &self.chosen,
                |_, ue| pressure(ue) as f32,
                |subframe, ue| shares(subframe.channel.subbands(ue), pressure(ue) as f32),
                owners,
            ),
        }
    }

    fn served(&mut self, ue: u16, bytes: u32) {
        self.averages.served(ue, bytes);
        self.given[usize::from(ue)] += bytes;
    }

    fn passed(&mut self, subframes: u64) {
        self.averages.passed(subframes);
        // Only the first of them had a time domain.
        if subframes > 0 {
            for ue in self.chosen.drain(..) {
                let average = &mut self.while_chosen[usize::from(ue)];
                *average = next(*average, self.given[usize::from(ue)]);
            }
            self.given.fill(0);
        }
    }
}

/// CQI / sum of CQIs, by CQI, times a factor.
fn shares(cqis: &[u8; MOST_GROUPS], factor: f32) -> Bids {
    let sum: u32 = cqis.iter().map(|&cqi| u32::from(cqi)).sum();
    std::array::from_fn(|cqi| factor * (cqi as f32 / sum.max(1) as f32))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BY_DISTANCE, Buffers, Cell, GROUPS, Reports, Source, assert_close, full, rates};
    use super::*;

    fn schedulers() -> [Box<dyn Scheduler>; 2] {
        [FrequencyMetric::PfSch, FrequencyMetric::CoItA]
            .map(|metric| -> Box<dyn Scheduler> { Box::new(PrioritySet::new(metric, 0)) })
    }

    fn guaranteed(bytes_per_second: u64) -> Promise {
        Promise { guaranteed_bits_per_second: 8 * bytes_per_second, ..Promise::default() }
    }

    /// At half the load that the band could carry: groups are shared without regard to what waits, and half of them may
    /// carry padding. At three quarters, 232 bytes each, the last UE falls behind.
    #[test]
    fn below_saturation_the_offered_rate() {
        for scheduler in schedulers() {
            let mut cell = Cell::new(scheduler);
            for cqi in [15, 12, 11, 8] {
                cell.add(cqi, Source::Packets(150), guaranteed(150_000));
            }
            cell.run(1000);
            assert_close(&cell.run(20_000), &[150_000.0; 4], 0.002);
        }
    }

    /// With targets that nobody reaches, as blind equal throughput: 1 / sum (1 / R_i), within the reference's 10 %.
    #[test]
    fn above_saturation_the_same() {
        for scheduler in schedulers() {
            let mut cell = Cell::new(scheduler);
            for cqi in BY_DISTANCE {
                cell.add(cqi, Source::Saturated, guaranteed(500_000));
            }
            cell.run(1000);
            let each = 1.0 / BY_DISTANCE.iter().map(|&cqi| 1.0 / full(cqi)).sum::<f64>();
            assert_close(&cell.run(10_000), &[each; 5], 0.1);
        }
    }

    /// Rows 184 to 195 of the reference's `scheduler` vectors and 010 of `scheduler_mixed`: 232 bytes every ms and as much
    /// guaranteed; bytes/s, with its tolerance.
    #[test]
    fn reference_vectors() {
        for (distances, bytes_per_second) in [
            (&[0; 6][..], 232_000.0),
            (&[1; 1], 232_000.0),
            (&[1; 6], 230_500.0),
            (&[2; 3], 232_000.0),
            (&[2; 6], 198_500.0),
            (&[3; 3], 232_000.0),
            (&[3; 6], 129_166.0),
            (&[0, 1, 2, 3], 230_000.0),
        ] {
            let mut cell = Cell::new(Box::new(PrioritySet::new(FrequencyMetric::PfSch, 0)));
            for &distance in distances {
                cell.add(BY_DISTANCE[distance], Source::Packets(232), guaranteed(232_000));
            }
            cell.run(300);
            assert_close(&cell.run(3000), &vec![bytes_per_second; distances.len()], 0.1);
        }
    }

    /// A UE far away, among five near ones that have no guarantee.
    fn far_and_near(metric: FrequencyMetric, target: u64) -> Vec<f64> {
        let mut cell = Cell::new(Box::new(PrioritySet::new(metric, 0)));
        cell.add(5, Source::Saturated, guaranteed(target));
        for _ in 0..5 {
            cell.add(15, Source::Saturated, Promise::default());
        }
        cell.run(1000);
        cell.run(10_000)
    }

    /// The far one has what it is guaranteed, which it would not have otherwise; the near ones have the same. 1 % is for T_u
    /// going up and down about the target.
    #[test]
    fn a_guarantee_is_held() {
        let without = far_and_near(FrequencyMetric::PfSch, 0);
        // A sixth of the subframes, about.
        assert_close(&without[..1], &[full(5) / 6.0], 0.1);
        let with = far_and_near(FrequencyMetric::PfSch, 100_000);
        assert_close(&with[..1], &[100_000.0], 0.01);
        // They have the rest of the band.
        assert_close(&with[1..], &[(1.0 - with[0] / full(5)) * full(15) / 5.0; 5], 0.01);
        for target in [150_000, 200_000, 300_000] {
            assert_close(&far_and_near(FrequencyMetric::CoItA, target)[..1], &[target as f64], 0.01);
        }
    }

    /// Half of the active pass the time domain, those below their target first.
    #[test]
    fn sets_and_their_order() {
        let mut scheduler = PrioritySet::new(FrequencyMetric::PfSch, 0);
        // T of 1000 x 10, 20, ... / 99 bytes/s.
        for target in [0, 0, 100, 90_000, 90_000, 0, 0] {
            scheduler.attach(guaranteed(target));
        }
        for ue in 0..7 {
            scheduler.served(ue, 10 * (u32::from(ue) + 1));
        }
        let mut reports = Reports::default();
        [15, 7, 15, 15, 15, 0, 15].into_iter().for_each(|cqi| reports.flat(cqi));
        let mut chosen = |scheduler: &mut PrioritySet, active: &[u16]| {
            scheduler.choose(&mut Subframe {
                groups: GROUPS,
                free: 1,
                active,
                rates: &rates(),
                layers: &[1; 7],
                channel: &mut reports,
                queues: &Buffers::default(),
            });
            scheduler.chosen.clone()
        };
        scheduler.passed(1);
        // Six can be reached; 3 and 4 are below their target; of the others UE 0 has the highest 185 / T, UE 1 47 / 2T.
        assert_eq!(chosen(&mut scheduler, &[0, 1, 2, 3, 4, 5, 6]), [0, 3, 4]);
        assert_eq!(chosen(&mut scheduler, &[1, 2, 6]), [2]);
        assert!(chosen(&mut scheduler, &[5]).is_empty());
        for (pass, expected) in
            [(1, &[3][..]), (2, &[3, 4]), (4, &[0, 2, 3, 4]), (5, &[0, 2, 3, 4, 6]), (9, &[0, 1, 2, 3, 4, 6])]
        {
            scheduler.multiplexed = pass;
            assert_eq!(chosen(&mut scheduler, &[0, 1, 2, 3, 4, 5, 6]), expected);
        }
        // Tsch is that of UEs which passed, T that of all: 0 bytes, and 980 then.
        scheduler.multiplexed = 1;
        chosen(&mut scheduler, &[0, 1]);
        scheduler.served(0, 980);
        scheduler.served(1, 980);
        let before = scheduler.while_chosen.clone();
        scheduler.passed(5);
        let expected = before[0] * 98.0 / 99.0 + 980_000.0 / 99.0;
        assert!((scheduler.while_chosen[0] - expected).abs() < 1e-9);
        assert_eq!(scheduler.while_chosen[1..], before[1..]);
    }

    /// W x M by hand.
    #[test]
    fn pressure_is_kept_up() {
        let mut cell = Cell::new(Box::new(PrioritySet::new(FrequencyMetric::CoItA, 2)));
        cell.add(15, Source::Saturated, Promise::default());
        let mut row = [14; GROUPS];
        row[0] = 1;
        cell.reports.add(12, &row);
        // T is 1.
        cell.attach(Source::Saturated, guaranteed(13));
        // 15/180 = 0.083; 13 x 1/155 = 0.0839; 13 x 14/155.
        assert_eq!(cell.subframe()[..GROUPS], [1; GROUPS]);
        let mut cell = Cell::new(Box::new(PrioritySet::new(FrequencyMetric::CoItA, 2)));
        cell.add(15, Source::Saturated, Promise::default());
        cell.reports.add(12, &row);
        cell.attach(Source::Saturated, guaranteed(12));
        // 12 x 1/155 = 0.077.
        assert_eq!(cell.subframe()[..3], [0, 1, 1]);
    }
}
