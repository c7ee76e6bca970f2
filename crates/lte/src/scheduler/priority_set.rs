//! Priority set scheduler.
//!
//! **Model.** Two steps per subframe. In the time domain, UEs below their target, the guaranteed bit rate, come first,
//! in descending order of 1 / T_u. The others follow, in descending order of R_u / T_u. This is the rate of one group
//! at the wideband CQI over the average of the last 99 ms ([`average`](super::average)). The first N of these are
//! selected, by default half of all, at least one. In the frequency domain each group goes to the selected UE with the
//! highest W x M. W = max(1, target / T_u) raises the priority of a UE below its target. M is the metric of the group
//! for the UE:
//!
//! * PFsch: R_u(k) / Tsch_u, where Tsch_u is the average over only the subframes in which the UE was among the N;
//! * CoItA: CQI_u(k) / sum of its CQIs over all groups.
//!
//! Ties go to the lowest RNTI. So a UE below its guaranteed bit rate is always among the N, and the others share the
//! rest. With PFsch, the sharing is proportionally fair. CoItA has no memory: the result depends on the variation of
//! the channel over the band. Without variation, the UE with the lowest RNTI of the N gets all groups. If the
//! guaranteed bit rate exceeds the UE's share under PFsch, only W increases that share, and only while T_u is below the
//! target. The guaranteed bit rate is reached within 1 % if it requires a quarter of the band, but not if it requires a
//! third.
//!
//! **Source.** Mongha et al., "QoS oriented time and frequency domain packet schedulers for the UTRAN long term
//! evolution" (VTC 2008). It follows ns-3's scheduler of this name, except that a UE does not bid for a group in which
//! it is out of range.

use super::auction::{Auction, Bids, running_maximum};
use super::average::{Averages, next};
use super::{BitRateLimits, MAX_GROUPS, Scheduler, SubframeContext};

/// The metric of a group for a UE in the frequency domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrequencyMetric {
    /// The rate in the group over the average throughput in subframes in which the time-domain step selected the UE.
    #[default]
    PfSch,
    /// The CQI in the group over the sum of the UE's CQIs.
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
    /// Tsch in bytes/s.
    while_chosen: Vec<f64>,
    /// Bytes that each UE got in this subframe.
    given: Vec<u32>,
    /// Targets in bytes/s.
    targets: Vec<f64>,
    candidates: Vec<Candidate>,
    /// UEs that passed the time domain in this subframe, in order of RNTI.
    chosen: Vec<u16>,
    auction: Auction,
}

impl PrioritySet {
    /// Creates a scheduler without UEs. The time-domain step selects `multiplexed_ues` UEs, or half of the active UEs
    /// if this is 0.
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

    /// Selects UEs in the time domain.
    fn choose(&mut self, subframe: &mut SubframeContext<'_>) {
        self.candidates.clear();
        for &ue in subframe.active {
            let cqi = subframe.channel.wideband_cqi(ue);
            if cqi == 0 {
                continue;
            }
            let average = self.averages.bytes_per_second(ue);
            let below_target = average < self.targets[usize::from(ue)];
            let rate = if below_target { 1.0 } else { f64::from(subframe.rates(ue).group[usize::from(cqi)]) };
            self.candidates.push(Candidate { ue, below_target, metric: rate / average });
        }
        let pass = if self.multiplexed > 0 { self.multiplexed } else { (self.candidates.len() / 2).max(1) };
        // The sort is stable, so equal candidates stay in order of RNTI.
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

    fn attach(&mut self, promise: BitRateLimits) {
        self.averages.attach();
        self.while_chosen.push(1.0);
        self.given.push(0);
        self.targets.push(promise.guaranteed_bits_per_second as f64 / 8.0);
    }

    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
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
                    |subframe, ue| {
                        most[subframe.layer_index(ue)][usize::from(subframe.channel.max_cqi(ue))] * weight(ue)
                    },
                    |subframe, ue| {
                        let weight = weight(ue);
                        rates[subframe.layer_index(ue)].map(|rate| rate * weight)
                    },
                    owners,
                );
            }
            FrequencyMetric::CoItA => self.auction.hold(
                subframe,
                &self.chosen,
                |_, ue| pressure(ue) as f32,
                |subframe, ue| shares(subframe.channel.subband_cqis(ue), pressure(ue) as f32),
                owners,
            ),
        }
    }

    fn on_served(&mut self, ue: u16, bytes: u32) {
        self.averages.served(ue, bytes);
        self.given[usize::from(ue)] += bytes;
    }

    fn on_subframes_elapsed(&mut self, subframes: u64) {
        self.averages.on_subframes_elapsed(subframes);
        // Only the first of the subframes had a time domain.
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
fn shares(cqis: &[u8; MAX_GROUPS], factor: f32) -> Bids {
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

    fn guaranteed(bytes_per_second: u64) -> BitRateLimits {
        BitRateLimits { guaranteed_bits_per_second: 8 * bytes_per_second, ..BitRateLimits::default() }
    }

    /// At half of the load that the band could carry. Groups are shared independently of the waiting data, so half of
    /// them may carry padding. At three quarters, 232 bytes each, the last UE would not get its rate.
    #[test]
    fn offered_rate_is_served_below_saturation() {
        for scheduler in schedulers() {
            let mut cell = Cell::new(scheduler);
            for cqi in [15, 12, 11, 8] {
                cell.add(cqi, Source::Packets(150), guaranteed(150_000));
            }
            cell.run(1000);
            assert_close(&cell.run(20_000), &[150_000.0; 4], 0.002);
        }
    }

    /// With targets that no UE reaches, the result is that of blind equal throughput: 1 / sum (1 / R_i), within the
    /// reference's 10 %.
    #[test]
    fn ues_get_equal_rates_above_saturation() {
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

    /// Rows 184 to 195 of the reference's `scheduler` vectors and 010 of `scheduler_mixed`: 232 bytes every ms with the
    /// same guaranteed rate, in bytes/s, with its tolerance.
    #[test]
    fn reference_vectors_are_met() {
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

    /// A distant UE with a target, among five near ones without guarantees.
    fn far_and_near(metric: FrequencyMetric, target: u64) -> Vec<f64> {
        let mut cell = Cell::new(Box::new(PrioritySet::new(metric, 0)));
        cell.add(5, Source::Saturated, guaranteed(target));
        for _ in 0..5 {
            cell.add(15, Source::Saturated, BitRateLimits::default());
        }
        cell.run(1000);
        cell.run(10_000)
    }

    /// The distant UE gets its guaranteed rate, which it would not get otherwise; the near ones get equal rates. The
    /// tolerance of 1 % is for the variation of T_u around the target.
    #[test]
    fn guaranteed_rate_is_met() {
        let without = far_and_near(FrequencyMetric::PfSch, 0);
        // About a sixth of the subframes.
        assert_close(&without[..1], &[full(5) / 6.0], 0.1);
        let with = far_and_near(FrequencyMetric::PfSch, 100_000);
        assert_close(&with[..1], &[100_000.0], 0.01);
        // The others share the rest of the band.
        assert_close(&with[1..], &[(1.0 - with[0] / full(5)) * full(15) / 5.0; 5], 0.01);
        for target in [150_000, 200_000, 300_000] {
            assert_close(&far_and_near(FrequencyMetric::CoItA, target)[..1], &[target as f64], 0.01);
        }
    }

    /// Half of the active UEs pass the time domain, those below their target first.
    #[test]
    fn time_domain_selects_ues_below_their_target_first() {
        let mut scheduler = PrioritySet::new(FrequencyMetric::PfSch, 0);
        // T is 1000 x 10, 20, ... / 99 bytes/s.
        for target in [0, 0, 100, 90_000, 90_000, 0, 0] {
            scheduler.attach(guaranteed(target));
        }
        for ue in 0..7 {
            scheduler.on_served(ue, 10 * (u32::from(ue) + 1));
        }
        let mut reports = Reports::default();
        [15, 7, 15, 15, 15, 0, 15].into_iter().for_each(|cqi| reports.flat(cqi));
        let mut chosen = |scheduler: &mut PrioritySet, active: &[u16]| {
            scheduler.choose(&mut SubframeContext {
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
        scheduler.on_subframes_elapsed(1);
        // Six UEs are in range; 3 and 4 are below their target. Of the others UE 0 has the highest 185 / T, UE 1 has 47 / 2T.
        assert_eq!(chosen(&mut scheduler, &[0, 1, 2, 3, 4, 5, 6]), [0, 3, 4]);
        assert_eq!(chosen(&mut scheduler, &[1, 2, 6]), [2]);
        assert!(chosen(&mut scheduler, &[5]).is_empty());
        for (pass, expected) in
            [(1, &[3][..]), (2, &[3, 4]), (4, &[0, 2, 3, 4]), (5, &[0, 2, 3, 4, 6]), (9, &[0, 1, 2, 3, 4, 6])]
        {
            scheduler.multiplexed = pass;
            assert_eq!(chosen(&mut scheduler, &[0, 1, 2, 3, 4, 5, 6]), expected);
        }
        // Tsch is updated only for UEs that passed, T for all: 0 bytes, and then 980.
        scheduler.multiplexed = 1;
        chosen(&mut scheduler, &[0, 1]);
        scheduler.on_served(0, 980);
        scheduler.on_served(1, 980);
        let before = scheduler.while_chosen.clone();
        scheduler.on_subframes_elapsed(5);
        let expected = before[0] * 98.0 / 99.0 + 980_000.0 / 99.0;
        assert!((scheduler.while_chosen[0] - expected).abs() < 1e-9);
        assert_eq!(scheduler.while_chosen[1..], before[1..]);
    }

    /// W x M computed by hand.
    #[test]
    fn ue_below_its_target_has_a_higher_priority() {
        let mut cell = Cell::new(Box::new(PrioritySet::new(FrequencyMetric::CoItA, 2)));
        cell.add(15, Source::Saturated, BitRateLimits::default());
        let mut row = [14; GROUPS];
        row[0] = 1;
        cell.reports.add(12, &row);
        // T is 1.
        cell.attach(Source::Saturated, guaranteed(13));
        // 15/180 = 0.083; 13 x 1/155 = 0.0839; 13 x 14/155.
        assert_eq!(cell.subframe()[..GROUPS], [1; GROUPS]);
        let mut cell = Cell::new(Box::new(PrioritySet::new(FrequencyMetric::CoItA, 2)));
        cell.add(15, Source::Saturated, BitRateLimits::default());
        cell.reports.add(12, &row);
        cell.attach(Source::Saturated, guaranteed(12));
        // 12 x 1/155 = 0.077.
        assert_eq!(cell.subframe()[..3], [0, 1, 1]);
    }
}
