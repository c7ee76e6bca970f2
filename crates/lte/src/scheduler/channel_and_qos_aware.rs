//! Channel and QoS aware scheduler.
//!
//! **Model.** Two steps per subframe. In the time domain, flows are sorted into classes. Flows with a guaranteed bit
//! rate precede those without. Within both sets, the flow that has waited longest comes first. The waiting time is that
//! of its oldest packet, in whole units of g (1 s). A UE has at most two flows: its bearers with a guaranteed bit rate
//! together, and its others. In the frequency domain the classes get groups one after the other. Each group goes to the
//! flow of the class with the highest d x m_GBR x m_ca, ties to the lowest RNTI, where
//!
//! * d is the waiting time of the flow's oldest packet, in ms, at least 1,
//! * m_GBR = max(1, guaranteed bit rate / T_u), T_u being the UE's average of the last 99 ms
//!   ([`average`](super::average)),
//! * m_ca is the metric of the group for the UE: CqaFf, CQI_u(k) / sum of its CQIs; or CqaPf, R_u(k) / T_u.
//!
//! A flow whose groups can carry all of its waiting data gets no further groups. Groups that a class does not use go to
//! the next class. A UE's groups form one transport block, which its bearers share.
//!
//! **Source.** Bojovic and Baldo, "A new channel and QoS aware scheduler to enhance the capacity of voice over LTE
//! systems" (SSD 2014). It follows ns-3's scheduler of this name with four intended deviations. T_u of CqaPf is the
//! average of all subframes, as in the documentation of ns-3. Ties go to the lowest RNTI. All bearers of a UE with a
//! guaranteed bit rate form one flow, and its other bearers form another. A UE whose CQI in a group is 0 does not get
//! the group; with fading, this gives 11 % more throughput than ns-3 3.44.

use super::average::Averages;
use super::{BitRateLimits, MAX_GROUPS, NO_OWNER, QueueStatus, Scheduler, SubframeContext, group_indices};
use std::cmp::Reverse;

/// The metric of a group for a UE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelAwareness {
    /// The CQI in the group over the sum of the UE's CQIs (CqaFf).
    #[default]
    FrequencySelective,
    /// The rate in the group over the average throughput (CqaPf).
    ProportionalFair,
}

/// A flow that waits for groups.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    ue: u16,
    guaranteed: bool,
    /// Waiting time in whole units.
    units: u32,
    /// The factor of a group's CQI or rate.
    weight: f64,
    waiting: u32,
    cqis: [u8; MAX_GROUPS],
    /// Number of its groups, and the lowest CQI in them.
    groups: usize,
    lowest: u8,
}

/// Channel and QoS aware scheduler.
#[derive(Clone, Debug)]
pub struct ChannelAndQosAware {
    awareness: ChannelAwareness,
    unit_ms: u32,
    averages: Averages,
    /// Guaranteed rates in bytes/s.
    guaranteed: Vec<f64>,
    candidates: Vec<Candidate>,
}

impl ChannelAndQosAware {
    /// Creates a scheduler without UEs. Waiting times are compared in units of `unit_ms` milliseconds, at least one.
    #[must_use]
    pub fn new(awareness: ChannelAwareness, unit_ms: u32) -> ChannelAndQosAware {
        ChannelAndQosAware {
            awareness,
            unit_ms: unit_ms.max(1),
            averages: Averages::default(),
            guaranteed: Vec::new(),
            candidates: Vec::new(),
        }
    }

    fn candidate(
        &self,
        subframe: &mut SubframeContext<'_>,
        ue: u16,
        waiting: QueueStatus,
        guaranteed: f64,
    ) -> Candidate {
        let average = self.averages.bytes_per_second(ue);
        let weight = f64::from(waiting.head_of_line_ms.max(1)) * (guaranteed / average).max(1.0);
        let cqis = *subframe.channel.subband_cqis(ue);
        let worth = match self.awareness {
            ChannelAwareness::ProportionalFair => average,
            ChannelAwareness::FrequencySelective => {
                f64::from(cqis.iter().map(|&cqi| u32::from(cqi)).sum::<u32>().max(1))
            }
        };
        Candidate {
            ue,
            guaranteed: guaranteed > 0.0,
            units: waiting.head_of_line_ms / self.unit_ms,
            weight: weight / worth,
            waiting: waiting.bytes,
            cqis,
            groups: 0,
            lowest: 15,
        }
    }
}

impl Scheduler for ChannelAndQosAware {
    fn supports_guaranteed_bit_rate(&self) -> bool {
        true
    }

    fn attach(&mut self, promise: BitRateLimits) {
        self.averages.attach();
        self.guaranteed.push(promise.guaranteed_bits_per_second as f64 / 8.0);
    }

    fn allocate(&mut self, subframe: &mut SubframeContext<'_>, owners: &mut [u16; MAX_GROUPS]) {
        owners.fill(NO_OWNER);
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        for &ue in subframe.active {
            let target = self.guaranteed[usize::from(ue)];
            let guaranteed =
                if target > 0.0 { subframe.queues.guaranteed_queue_status(ue) } else { QueueStatus::default() };
            let best_effort = if target > 0.0 {
                subframe.queues.best_effort_queue_status(ue)
            } else {
                subframe.queues.queue_status(ue)
            };
            for (waiting, target) in [(guaranteed, target), (best_effort, 0.0)] {
                if waiting.bytes > 0 {
                    candidates.push(self.candidate(subframe, ue, waiting, target));
                }
            }
        }
        // The sort is stable, so equal candidates stay in order of RNTI.
        candidates.sort_by_key(|candidate| Reverse((candidate.guaranteed, candidate.units)));
        let mut free = subframe.free;
        for class in
            candidates.chunk_by_mut(|one, other| (one.guaranteed, one.units) == (other.guaranteed, other.units))
        {
            for k in group_indices(free) {
                let mut best = None;
                for candidate in class.iter_mut().filter(|candidate| candidate.waiting > 0) {
                    let cqi = candidate.cqis[k];
                    let value = match self.awareness {
                        ChannelAwareness::FrequencySelective => u32::from(cqi),
                        ChannelAwareness::ProportionalFair => subframe.rates(candidate.ue).group[usize::from(cqi)],
                    };
                    let metric = candidate.weight * f64::from(value);
                    if cqi > 0 && best.as_ref().is_none_or(|(largest, _, _)| metric > *largest) {
                        best = Some((metric, cqi, candidate));
                    }
                }
                let Some((_, cqi, winner)) = best else { continue };
                owners[k] = winner.ue;
                free &= !(1 << k);
                winner.lowest = winner.lowest.min(cqi);
                let bytes = subframe.rates(winner.ue).blocks[winner.groups][usize::from(winner.lowest)];
                winner.groups += 1;
                if bytes >= winner.waiting {
                    winner.waiting = 0;
                }
            }
        }
        self.candidates = candidates;
    }

    fn averages(&mut self) -> Option<&mut Averages> {
        Some(&mut self.averages)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{BY_DISTANCE, Cell, GROUPS, Source, assert_close, full};
    use super::*;

    fn schedulers() -> [Box<dyn Scheduler>; 2] {
        [ChannelAwareness::FrequencySelective, ChannelAwareness::ProportionalFair]
            .map(|awareness| -> Box<dyn Scheduler> { Box::new(ChannelAndQosAware::new(awareness, 1000)) })
    }

    fn guaranteed(bytes_per_second: u64) -> BitRateLimits {
        BitRateLimits { guaranteed_bits_per_second: 8 * bytes_per_second, ..BitRateLimits::default() }
    }

    fn waits(bytes: u32, head_of_line_ms: u32) -> Source {
        Source::Constant(QueueStatus { bytes, head_of_line_ms })
    }

    /// Guaranteed flows come first, then whole seconds of waiting. Within a class the longer waiting time wins, as
    /// channels are equal. Each takes the groups that it needs: with CQI 15, 185 bytes in one group and 373 in two.
    #[test]
    fn classes_are_served_one_after_the_other() {
        for scheduler in schedulers() {
            let mut cell = Cell::new(scheduler);
            for (bytes, waited, target) in
                [(300, 999, 0), (100, 2_100, 0), (500, 10, 1), (180, 1_000, 1), (100, 1_900, 0), (200, 20, 1)]
            {
                cell.add(15, waits(bytes, waited), guaranteed(target));
            }
            // 3: 1 s with a guarantee. 5 and 2: less than a second, d of 20 before 10, three and two groups. Then 1: 2 s, 4: 1 s,
            // 0: two groups. Two groups are left unused.
            assert_eq!(cell.subframe()[..GROUPS], [3, 5, 5, 2, 2, 2, 1, 4, 0, 0, NO_OWNER, NO_OWNER]);
        }
    }

    /// Five UEs have the same download, and one also has a voice bearer, whose 50 bytes fit into a group. That bearer
    /// has one group, and the other 11 of 12 are shared as without voice. All have waited equally, so with equal
    /// weights the lowest RNTI has these.
    #[test]
    fn only_the_bearer_with_the_guarantee_is_served_first() {
        for scheduler in schedulers() {
            let mut cell = Cell::new(scheduler);
            for _ in 0..4 {
                cell.add(15, waits(100_000, 50), BitRateLimits::default());
            }
            cell.add(15, waits(100_000, 50), guaranteed(1_250));
            cell.add_voice(QueueStatus { bytes: 50, head_of_line_ms: 5 });
            let owners = cell.subframe();
            assert_eq!((owners[0], owners[1]), (4, 0));
            assert_eq!(owners[..GROUPS].iter().filter(|owner| **owner == 4).count(), 1);
        }
        let [_, scheduler] = schedulers();
        let mut cell = Cell::new(scheduler);
        for _ in 0..4 {
            cell.add(15, waits(100_000, 50), BitRateLimits::default());
        }
        cell.add(15, waits(100_000, 50), guaranteed(1_250));
        cell.add_voice(QueueStatus { bytes: 50, head_of_line_ms: 5 });
        cell.run(1_000);
        let rates = cell.run(5_000);
        // The voice bearer's group counts in its UE's average, so the UE has a fifth of the band like the others.
        assert_close(&rates, &[full(15) / 5.0; 5], 0.03);
    }

    /// A group in which the UE is out of range goes to the next class.
    #[test]
    fn groups_that_a_class_cannot_use_go_to_the_next() {
        for scheduler in schedulers() {
            let mut cell = Cell::new(scheduler);
            let mut row = [6; GROUPS];
            row[1] = 0;
            cell.reports.add(6, &row);
            cell.attach(waits(100_000, 50), guaranteed(1));
            cell.add(15, waits(100_000, 5000), BitRateLimits::default());
            let mut expected = [0; GROUPS];
            expected[1] = 1;
            assert_eq!(cell.subframe()[..GROUPS], expected);
        }
    }

    /// With equal delays and promises the channel decides. CqaFf compares CQIs with their sum, CqaPf rates with
    /// averages, which are equal at the start.
    #[test]
    fn equal_flows_are_compared_by_channel() {
        for (scheduler, first) in schedulers().into_iter().zip([1, 0]) {
            let mut cell = Cell::new(scheduler);
            for halves in [[15, 15], [9, 6]] {
                let mut row = [halves[0]; GROUPS];
                row[GROUPS / 2..].fill(halves[1]);
                cell.reports.add(8, &row);
                cell.attach(waits(100_000, 50), BitRateLimits::default());
            }
            // 15/180 = 0.083; 9/90 = 0.1 and 6/90 = 0.067.
            assert_eq!(cell.subframe()[..GROUPS], [first, first, first, first, first, first, 0, 0, 0, 0, 0, 0]);
        }
    }

    #[test]
    fn offered_rate_is_served_below_saturation() {
        for scheduler in schedulers() {
            let mut cell = Cell::new(scheduler);
            for cqi in [15, 12, 11, 8] {
                cell.add(cqi, Source::Packets(200), guaranteed(200_000));
            }
            cell.run(1000);
            assert_close(&cell.run(20_000), &[200_000.0; 4], 0.002);
        }
    }

    /// Rows 197 to 208 of the reference's `scheduler` vectors: 232 bytes every ms with the same guaranteed rate, in
    /// bytes/s, with its tolerance.
    #[test]
    fn reference_vectors_are_met() {
        for (ues, distance, bytes_per_second) in [
            (1, 0, 232_000.0),
            (3, 0, 232_000.0),
            (6, 0, 232_000.0),
            (3, 1, 232_000.0),
            (6, 1, 230_500.0),
            (1, 2, 232_000.0),
            (1, 3, 232_000.0),
            (6, 3, 129_166.0),
        ] {
            for scheduler in schedulers() {
                let mut cell = Cell::new(scheduler);
                for _ in 0..ues {
                    cell.add(BY_DISTANCE[distance], Source::Packets(232), guaranteed(232_000));
                }
                cell.run(300);
                assert_close(&cell.run(3000), &vec![bytes_per_second; ues], 0.1);
            }
        }
    }

    /// A UE that has waited 1.5 s is in an earlier class than one that has waited 0.9 s, and gets all groups. It is in
    /// one class with a UE that has waited 1 s. There, 1000 x 15 / 26 is more than 1500 / 12 in the first group, and
    /// 1000 x 1 / 26 is less in all others.
    #[test]
    fn only_whole_units_of_waiting_time_count() {
        for (waited, first) in [(900, 0), (1_000, 1), (1_999, 1)] {
            let [scheduler, _] = schedulers();
            let mut cell = Cell::new(scheduler);
            cell.add(8, waits(100_000, 1_500), BitRateLimits::default());
            let mut row = [1; GROUPS];
            row[0] = 15;
            cell.reports.add(2, &row);
            cell.attach(waits(100_000, waited), BitRateLimits::default());
            let mut expected = [0; GROUPS];
            expected[0] = first;
            assert_eq!(cell.subframe()[..GROUPS], expected, "{waited} ms");
        }
    }

    /// A packet that has just arrived counts as 1 ms, so that the channel still decides.
    #[test]
    fn new_packet_counts_as_waiting_for_a_millisecond() {
        let [scheduler, _] = schedulers();
        let mut cell = Cell::new(scheduler);
        cell.add(8, waits(100_000, 0), BitRateLimits::default());
        let mut row = [1; GROUPS];
        row[5] = 15;
        cell.reports.add(2, &row);
        cell.attach(waits(100_000, 0), BitRateLimits::default());
        let mut expected = [0; GROUPS];
        expected[5] = 1;
        assert_eq!(cell.subframe()[..GROUPS], expected);
    }

    /// 185 bytes exactly fill one group of CQI 15.
    #[test]
    fn flow_gets_no_more_groups_than_its_data_need() {
        for (bytes, groups) in [(185, 1), (186, 2)] {
            for scheduler in schedulers() {
                let mut cell = Cell::new(scheduler);
                cell.add(15, waits(bytes, 50), BitRateLimits::default());
                assert_eq!(cell.subframe().iter().filter(|owner| **owner == 0).count(), groups, "{bytes} bytes");
            }
        }
    }
}
