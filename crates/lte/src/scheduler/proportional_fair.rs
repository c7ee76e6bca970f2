//! Proportional fair.
//!
//! **Model.** Each group goes to the UE with the highest rate in it relative to its recent throughput: argmax R_u(k) /
//! T_u, ties to the lowest RNTI. R_u(k) is the bytes of a transport block in this one group at the CQI reported for it.
//! T_u is the average of the last 99 ms ([`average`](super::average)). UEs with the same channel get the same
//! throughput. A UE with twice the rate gets about twice the throughput, with the same share of groups. The product of
//! all throughputs is therefore maximal. A UE with fading gets more than the share of its mean channel, since it is
//! served at the peaks.
//!
//! **Source.** Sesia, Toufik and Baker, "LTE: the UMTS Long Term Evolution" (2009); as ns-3's default scheduler.

use super::auction::{Auction, BLOCK, BidBounds, Bids, hold_with_one, running_maximum};
use super::average::Averages;
use super::{BitRateLimits, MAX_GROUPS, Scheduler, SubframeContext};

/// Proportional fair per group.
#[derive(Clone, Debug, Default)]
pub struct ProportionalFair {
    averages: Averages,
    auction: Auction,
    rates: GroupRates,
    /// Upper bound of each UE's metrics with these rates and its ceiling; [`UNKNOWN`] after a change of one of them or
    /// of T.
    tops: Vec<f32>,
    /// The bounds of the last auction's candidates.
    opening: BidBounds,
    /// The UEs served since then, whose bounds are lower now.
    served: Vec<u16>,
}

/// Larger than any metric.
const UNKNOWN: f32 = f32::INFINITY;

/// The rates of a single group, by number of layers less one and by CQI.
#[derive(Clone, Debug, Default)]
struct GroupRates {
    bytes: [[u32; 16]; 2],
    rates: [Bids; 2],
    /// The highest rate up to each CQI.
    most: [Bids; 2],
}

impl GroupRates {
    /// Updates the rates. Returns whether they have changed.
    fn renew(&mut self, bytes: [[u32; 16]; 2]) -> bool {
        let change = self.bytes != bytes;
        if change {
            let rates = bytes.map(|bytes| bytes.map(|bytes| bytes as f32));
            *self = GroupRates { bytes, rates, most: rates.each_ref().map(running_maximum) };
        }
        change
    }
}

impl Scheduler for ProportionalFair {
    fn averages(&mut self) -> Option<&mut Averages> {
        Some(&mut self.averages)
    }

    fn attach(&mut self, _promise: BitRateLimits) {
        self.averages.attach();
        self.tops.push(UNKNOWN);
    }

    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        let averages = &self.averages;
        // 715 instructions; 1780 with an auction.
        if let &[ue] = subframe.active {
            self.opening.clear();
            self.served.clear();
            let bids = metrics(&subframe.rates(ue).group.map(|bytes| bytes as f32), averages.inverse(ue));
            return hold_with_one(subframe, ue, &bids, owners);
        }
        if self.rates.renew(subframe.rates.each_ref().map(|rates| rates.group))
            || !subframe.channel.has_constant_max_cqi()
        {
            self.tops.fill(UNKNOWN);
            self.opening.clear();
        }
        let GroupRates { rates, most, .. } = &self.rates;
        let highest = |subframe: &SubframeContext<'_>, ue, cqi: u8| {
            most[subframe.layer_index(ue)][usize::from(cqi)] * averages.inverse(ue)
        };
        // The bound of a UE changes when it is served. If it is high enough, the auction computes a bound for this subframe: with
        // 500 UEs, 26 instead of 59 may then still win.
        let tops = &mut self.tops;
        let mut top = |ue: u16| {
            let top = &mut tops[usize::from(ue)];
            if *top == UNKNOWN {
                *top = highest(subframe, ue, subframe.channel.max_cqi(ue));
            }
            *top
        };
        if self.opening.is_of(subframe.active) {
            self.served.iter().for_each(|&ue| self.opening.set(ue, &mut top));
        } else {
            self.opening.set_all(subframe.active, |&ue| top(ue));
        }
        self.served.clear();
        self.auction.open_with(&self.opening);
        self.auction.decide(
            subframe,
            subframe.active,
            |subframe, ues, bounds| {
                let mut ceilings = [15; BLOCK];
                let ceilings = &mut ceilings[..ues.len()];
                subframe.channel.fill_max_cqis(ues, ceilings);
                for ((bound, &ue), &mut ceiling) in bounds.iter_mut().zip(ues).zip(ceilings) {
                    *bound = bound.min(highest(subframe, ue, ceiling));
                }
            },
            |subframe, ue| metrics(&rates[subframe.layer_index(ue)], averages.inverse(ue)),
            owners,
        );
    }

    fn on_served(&mut self, ue: u16, bytes: u32) {
        self.averages.served(ue, bytes);
        self.tops[usize::from(ue)] = UNKNOWN;
        self.served.push(ue);
    }

    fn on_subframes_elapsed(&mut self, subframes: u64) {
        if self.averages.on_subframes_elapsed(subframes) {
            self.tops.fill(UNKNOWN);
            self.opening.clear();
        }
    }
}

/// R_u / T_u by CQI.
fn metrics(rates: &Bids, inverse: f32) -> Bids {
    rates.map(|rate| rate * inverse)
}

#[cfg(test)]
mod tests {
    use super::super::average::next;
    use super::super::tests::{BY_DISTANCE, Buffers, Cell, GROUPS, Reports, Source, assert_close, bytes, full, rates};
    use super::super::{BlockSizes, ChannelReports, GroupSet, NO_OWNER, group_indices};
    use super::*;
    use proptest::prelude::*;

    fn cell(cqis: &[u8]) -> Cell {
        Cell::saturated(Box::new(ProportionalFair::default()), cqis)
    }

    /// With the same SINR each UE gets the full-band rate / N.
    #[test]
    fn equal_channels_share_equally() {
        for cqi in BY_DISTANCE {
            for ues in 1..=30 {
                let mut cell = cell(&vec![cqi; ues]);
                cell.run(500);
                // All groups of a subframe go to one UE, and each UE has had one turn after N.
                assert_close(&cell.run(100 * ues as u64), &vec![full(cqi) / ues as f64; ues], 1e-12);
            }
        }
    }

    /// With unequal SINR, T_i = R_i / N, so T_i / sum T = R_i / sum R: the reference's rule, within its 10 %.
    ///
    /// More exactly, r_i / T_i is equal for all, where r_i is the block of one group, which the scheduler compares. T_i
    /// is x_i F_i, where F_i is the block of the whole band, which the UE gets in a share x_i of subframes. So x_i =
    /// (r_i / F_i) / sum (r_j / F_j), and not 1 / N, as blocks of one group are slightly more or less than a twelfth of
    /// those of twelve. The tolerance of 0.5 % is for turns that are not evenly spaced.
    #[test]
    fn unequal_channels_share_time() {
        let mut cell = cell(&BY_DISTANCE);
        cell.run(500);
        let found = cell.run(5000);
        let full = BY_DISTANCE.map(full);
        assert_close(&found, &full.map(|rate| rate / 5.0), 0.1);
        let weights = BY_DISTANCE.map(|cqi| f64::from(bytes(1, cqi))).into_iter().zip(full);
        let weights: Vec<f64> = weights.map(|(group, full)| group / full).collect();
        let sum: f64 = weights.iter().sum();
        let exact: Vec<f64> = full.iter().zip(weights).map(|(full, weight)| full * weight / sum).collect();
        assert_close(&found, &exact, 0.005);
    }

    /// Rows 028 to 047 of the reference's `scheduler` vectors in bytes/s. Its tolerance of 10 % covers the time until
    /// the averages have settled, half a second of which is in its 0.4 to 0.6 s.
    #[test]
    fn reference_vectors_are_met() {
        for (ues, distance, bytes_per_second) in [
            (6, 0, 366_000.0),
            (12, 0, 183_000.0),
            (6, 1, 230_500.0),
            (15, 1, 92_200.0),
            (1, 2, 1_191_000.0),
            (3, 2, 397_000.0),
            (15, 2, 79_400.0),
            (1, 3, 775_000.0),
            (3, 3, 258_333.0),
            (12, 3, 64_583.0),
            (1, 4, 421_000.0),
            (3, 4, 140_333.0),
        ] {
            let found = cell(&vec![BY_DISTANCE[distance]; ues]).run(600);
            assert_close(&found, &vec![bytes_per_second; ues], 0.1);
        }
    }

    /// Two UEs have good channels in opposite halves of the band: each gets all of its good half.
    #[test]
    fn each_ue_is_served_in_its_best_groups() {
        let mut cell = Cell::new(Box::new(ProportionalFair::default()));
        for halves in [[12, 6], [6, 12]] {
            let mut row = [halves[0]; GROUPS];
            row[GROUPS / 2..].fill(halves[1]);
            cell.reports.add(9, &row);
            cell.attach(Source::Saturated, BitRateLimits::default());
        }
        cell.run(300);
        let owners = cell.subframe();
        assert_eq!(owners[..GROUPS], [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
        // 6 groups at CQI 12.
        assert_close(&cell.run(100), &[693_000.0; 2], 1e-12);
    }

    /// Of UEs with the same channel over the whole band, only the report of the winner is read, even if all have the
    /// same average.
    #[test]
    fn reports_of_ues_that_cannot_win_are_not_read() {
        let mut cell = cell(&[15; 50]);
        for turn in 0..50 {
            cell.reports.asked.clear();
            cell.subframe();
            assert_eq!(cell.reports.asked, [turn]);
        }
    }

    /// Evaluates every UE's metric in every group, in order of RNTI; the first of the highest wins.
    fn plain(free: GroupSet, active: &[u16], metric: impl Fn(u16, usize) -> f64) -> [u16; MAX_GROUPS] {
        let mut owners = [NO_OWNER; MAX_GROUPS];
        for k in group_indices(free) {
            let mut largest = 0.0;
            for &ue in active {
                let metric = metric(ue, k);
                if metric > largest {
                    (owners[k], largest) = (ue, metric);
                }
            }
        }
        owners
    }

    /// One subframe of a random run.
    #[derive(Clone, Debug)]
    struct Step {
        /// UEs whose reports change, and the numbers from which the new ones are derived.
        reports: Vec<(usize, u64)>,
        /// The active UEs; `None`: those of the previous step.
        active: Option<u64>,
        free: GroupSet,
        subframes: u64,
    }

    fn step() -> impl Strategy<Value = Step> {
        let gap = prop_oneof![8 => Just(1u64), 2 => 1u64..200, 1 => 1u64..40_000];
        let free = prop_oneof![Just((1 << GROUPS) - 1), any::<GroupSet>().prop_map(|bits| bits & ((1 << GROUPS) - 1))];
        // A single UE does not take part in an auction.
        let active = prop_oneof![
            4 => (any::<u64>(), any::<u64>()).prop_map(|(one, other)| Some(one & other)),
            8 => Just(None),
            1 => (0..UES).prop_map(|ue| Some(1 << ue)),
        ];
        (prop::collection::vec((0..UES, any::<u64>()), 0..8), active, free, gap)
            .prop_map(|(reports, active, free, subframes)| Step { reports, active, free, subframes })
    }

    /// Number of UEs in the random runs.
    const UES: usize = 40;

    /// CQIs around a mean, some out of range, and the distance of the ceiling above them.
    fn report(bits: u64) -> (u8, [u8; MAX_GROUPS], u8) {
        let (mean, spread) = ((bits & 15) as u8, (bits >> 4 & 3) as u8 * 2 + 1);
        let mut row = [0; MAX_GROUPS];
        for (k, cqi) in row.iter_mut().enumerate().take(GROUPS) {
            *cqi = (mean + (bits >> (8 + 4 * k)) as u8 % spread).saturating_sub(spread / 2).min(15);
        }
        (mean, row, (bits >> 60) as u8 & 3)
    }

    /// A table of transport block sizes with a dip, as in TS 36.213, and a size for CQI 0, which must not be used.
    fn dipped() -> [BlockSizes; 2] {
        let mut rates = rates();
        for rates in &mut rates {
            rates.group[4] = rates.group[9];
            rates.group[0] = 7;
        }
        rates
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        /// 60 runs of up to 200 subframes of 40 UEs.
        ///
        /// Compares with the plain rule with the same averages and products, group by group, without exception. Also
        /// compares with the rule in double precision and averages by the formula. There the winner may differ in two
        /// cases. The metrics are closer than four roundings to single precision (inverse, product, each up to 2^-24,
        /// of both UEs: 2.4e-7). Or one UE was idle so long that its average is at the lower limit, 10^-30, and the
        /// other's is below 10^-28: rates, of 4 to 370 bytes, compensate for less than a factor of 100.
        #[test]
        fn pruning_changes_nothing(
            steps in prop::collection::vec(step(), 1..200), dip in any::<bool>(), steady in any::<bool>(),
        ) {
            let mut scheduler = ProportionalFair::default();
            let mut reports = Reports::default();
            reports.steady = steady;
            let mut candidates = (1 << UES) - 1;
            let rates = if dip { dipped() } else { rates() };
            let layers: Vec<u8> = (0..UES as u64).map(|ue| 1 + (ue % 5 == 0) as u8).collect();
            let mut exact = vec![1.0; UES];
            for ue in 0..UES as u64 {
                let (wideband, row, slack) = report(ue.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                reports.add(wideband, &row);
                reports.slack[ue as usize] = slack;
                scheduler.attach(BitRateLimits::default());
            }
            let buffers = Buffers::default();
            for step in steps {
                for (ue, bits) in step.reports {
                    (reports.wideband[ue], reports.subbands[ue], reports.slack[ue]) = report(bits);
                }
                candidates = step.active.unwrap_or(candidates);
                let active: Vec<u16> = (0..UES as u16).filter(|ue| candidates >> ue & 1 == 1).collect();
                let rate_at = |ue: u16, cqi: u8| rates[usize::from(layers[usize::from(ue)]) - 1].group[usize::from(cqi)];
                let mut owners = [1; MAX_GROUPS];
                reports.asked.clear();
                scheduler.allocate(
                    &mut SubframeContext {
                        groups: GROUPS,
                        free: step.free,
                        active: &active,
                        rates: &rates,
                        layers: &layers,
                        channel: &mut reports,
                        queues: &buffers,
                    },
                    &mut owners,
                );
                // Bounds that are kept are those that would be set anew. (One that is too high costs time and changes no owner.)
                if active.len() > 1 {
                    let most = &scheduler.rates.most;
                    let mut anew = BidBounds::default();
                    anew.set_all(&active, |&ue| {
                        let most = &most[usize::from(layers[usize::from(ue)]) - 1];
                        most[usize::from(reports.max_cqi(ue))] * scheduler.averages.inverse(ue)
                    });
                    prop_assert_eq!(&scheduler.opening, &anew);
                }
                let cqi = |ue: u16, k: usize| reports.subbands[usize::from(ue)][k];
                let metric = |ue: u16, cqi: u8| f64::from(rate_at(ue, cqi) as f32 * scheduler.averages.inverse(ue));
                let same = plain(step.free, &active, |ue, k| if cqi(ue, k) > 0 { metric(ue, cqi(ue, k)) } else { 0.0 });
                prop_assert_eq!(owners, same);
                // The reports of all UEs that could exceed the weakest winner are read, and none of those that could not reach
                // it.
                let weakest = group_indices(step.free).map(|k| match owners[k] {
                    NO_OWNER => 0.0,
                    ue => metric(ue, cqi(ue, k)),
                });
                let weakest = weakest.fold(f64::INFINITY, f64::min);
                for &ue in &active {
                    let most = (1..=reports.ceiling_now(ue)).map(|cqi| metric(ue, cqi)).fold(0.0, f64::max);
                    // The report of a single UE is read if its ceiling over all subframes permits a bid.
                    let alone = steady && active.len() == 1;
                    if !alone && (most == 0.0 || most != weakest) {
                        prop_assert_eq!(reports.asked.contains(&ue), most > weakest, "{} {} {}", ue, most, weakest);
                    }
                }
                let by_formula = |ue: u16, k: usize| match cqi(ue, k) {
                    0 => 0.0,
                    cqi => f64::from(rate_at(ue, cqi)) / exact[usize::from(ue)],
                };
                let other = plain(step.free, &active, by_formula);
                for k in (0..MAX_GROUPS).filter(|&k| owners[k] != other[k]) {
                    let idle = [owners[k], other[k]].iter().all(|&ue| exact[usize::from(ue)] < 1e-28);
                    let ratio = by_formula(owners[k], k) / by_formula(other[k], k);
                    prop_assert!(idle || (ratio - 1.0).abs() < 2.4e-7, "{ratio}");
                }
                let mut given = vec![0; UES];
                for k in group_indices(step.free).filter(|&k| owners[k] != NO_OWNER) {
                    given[usize::from(owners[k])] += 100 + 3 * k as u32;
                }
                for (ue, &bytes) in (0..).zip(&given) {
                    if bytes > 0 {
                        scheduler.on_served(ue, bytes);
                    }
                    let average = &mut exact[usize::from(ue)];
                    *average = next(*average, bytes);
                    for _ in 1..step.subframes {
                        *average = next(*average, 0);
                    }
                }
                scheduler.on_subframes_elapsed(step.subframes);
            }
        }
    }
}
