//! Tests of PIE.

use crate::drive::{Fate, Item, Phase, Step, phases, run, script, tally};
use crate::fluid;
use fullpipe_network::{Limit, Pie, PieDelayEstimator, PieSpecification};
use fullpipe_units::{Duration, EcnCodepoint, RandomStream};
use proptest::prelude::*;
use std::collections::VecDeque;

const DQ_THRESHOLD: f64 = 16384.0;

fn stream(seed: u64) -> RandomStream {
    RandomStream::new(seed, "queue", "drops")
}

/// RFC 8033: appendix A, with the options of section 5 as in appendix B. Seconds and bytes as floating-point numbers.
///
/// Where the listings and sections 4 and 5 differ, the sections apply: `burst_allowance` is checked before `drop_early`
/// (4.4), the probability decays when both delays are zero (4.2), PIE is deactivated when they are below half the target (5.3).
/// `current_qdelay` of an empty queue is zero. PIE is not deactivated while a third of the buffer is filled.
struct Oracle {
    settings: PieSpecification,
    tail_drop: u64,
    random: RandomStream,
    queue: VecDeque<Item>,
    active: bool,
    burst_allowance: f64,
    drop_prob: f64,
    accu_prob: f64,
    qdelay_old: f64,
    current_qdelay: f64,
    dq_count: f64,
    measurement_start: f64,
    in_measurement: bool,
    avg_dq_time: f64,
    next_update: u64,
    fates: Vec<Fate>,
    probabilities: Vec<f64>,
}

impl Oracle {
    fn new(settings: PieSpecification, tail_drop: u64, seed: u64) -> Self {
        Oracle {
            settings,
            tail_drop,
            random: stream(seed),
            queue: VecDeque::new(),
            active: !settings.activation,
            burst_allowance: settings.max_burst.as_secs_f64(),
            drop_prob: 0.0,
            accu_prob: 0.0,
            qdelay_old: 0.0,
            current_qdelay: 0.0,
            dq_count: 0.0,
            measurement_start: 0.0,
            in_measurement: false,
            avg_dq_time: 0.0,
            next_update: settings.update_interval.as_nanos(),
            fates: Vec::new(),
            probabilities: Vec::new(),
        }
    }

    fn byte_length(&self) -> u64 {
        self.queue.iter().map(Item::wire_bytes).sum()
    }

    fn qdelay_ref(&self) -> f64 {
        self.settings.target.as_secs_f64()
    }

    fn calm(&self) -> bool {
        self.drop_prob == 0.0
            && self.current_qdelay < self.qdelay_ref() / 2.0
            && self.qdelay_old < self.qdelay_ref() / 2.0
    }

    fn enque(&mut self, now: u64, mut packet: Item) {
        if self.byte_length() + packet.wire_bytes() > self.tail_drop {
            self.fates.push(Fate::Refused(packet.number));
            self.accu_prob = 0.0;
            return;
        }
        if !self.settings.activation && self.calm() {
            self.burst_allowance = self.settings.max_burst.as_secs_f64();
        }
        if self.active && self.burst_allowance <= 1e-12 && self.drop_early() {
            self.accu_prob = 0.0;
            if self.settings.ecn && self.drop_prob < self.settings.ecn_limit && packet.capable() {
                packet.codepoint = EcnCodepoint::Ce;
                self.queue.push_back(packet);
            } else {
                self.fates.push(Fate::Early(packet.number));
            }
        } else {
            self.queue.push_back(packet);
        }
        if !self.settings.activation {
            return;
        }
        let third = self.byte_length() >= self.tail_drop / 3;
        if !self.active && third {
            self.active = true;
            self.qdelay_old = 0.0;
            self.drop_prob = 0.0;
            self.in_measurement = true;
            self.dq_count = 0.0;
            self.avg_dq_time = 0.0;
            self.burst_allowance = self.settings.max_burst.as_secs_f64();
            self.accu_prob = 0.0;
            self.measurement_start = now as f64 * 1e-9;
            self.next_update = now + self.settings.update_interval.as_nanos();
        } else if self.active && self.calm() && !third {
            self.active = false;
            self.in_measurement = false;
        }
    }

    fn drop_early(&mut self) -> bool {
        if (self.qdelay_old < self.qdelay_ref() / 2.0 && self.drop_prob < 0.2)
            || self.byte_length() <= 2 * u64::from(self.settings.mean_packet_bytes)
        {
            return false;
        }
        if self.settings.derandomise {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        self.random.uniform() < self.drop_prob
    }

    fn calculate_drop_prob(&mut self) {
        if self.settings.delay != PieDelayEstimator::Timestamps {
            self.current_qdelay = self.byte_length() as f64 * self.avg_dq_time / DQ_THRESHOLD;
        } else if self.queue.is_empty() {
            self.current_qdelay = 0.0;
        }
        let PieSpecification { alpha, beta, .. } = self.settings;
        let mut p = alpha * (self.current_qdelay - self.qdelay_ref()) + beta * (self.current_qdelay - self.qdelay_old);
        if self.drop_prob < 0.000001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.00001 {
            p /= 512.0;
        } else if self.drop_prob < 0.0001 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.settings.cap_increase && self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = (self.burst_allowance - self.settings.update_interval.as_secs_f64()).max(0.0);
    }

    fn deque(&mut self, now: u64) {
        let Some(packet) = self.queue.pop_front() else {
            self.fates.push(Fate::Nothing);
            return;
        };
        self.fates.push(Fate::Sent(packet.number, packet.codepoint));
        if self.settings.delay == PieDelayEstimator::Timestamps {
            self.current_qdelay = (now - packet.since) as f64 * 1e-9;
            return;
        }
        if self.in_measurement {
            self.dq_count += packet.wire_bytes() as f64;
            if self.dq_count >= DQ_THRESHOLD {
                let dq_time = now as f64 * 1e-9 - self.measurement_start;
                if self.avg_dq_time == 0.0 {
                    self.avg_dq_time = dq_time;
                } else {
                    let weight = DQ_THRESHOLD / 65536.0;
                    self.avg_dq_time = dq_time * weight + self.avg_dq_time * (1.0 - weight);
                }
                self.in_measurement = false;
            }
        }
        if self.byte_length() as f64 >= DQ_THRESHOLD && !self.in_measurement {
            self.in_measurement = true;
            self.measurement_start = now as f64 * 1e-9;
            self.dq_count = 0.0;
        }
    }

    fn run(mut self, steps: &[(u64, Step)]) -> (Vec<Fate>, Vec<f64>) {
        for (now, step) in steps {
            while self.active && self.next_update <= *now {
                self.calculate_drop_prob();
                self.next_update += self.settings.update_interval.as_nanos();
            }
            match step {
                Step::Arrive(item) => self.enque(*now, *item),
                Step::Leave => self.deque(*now),
            }
            self.probabilities.push(self.drop_prob);
        }
        (self.fates, self.probabilities)
    }
}

fn settings() -> impl Strategy<Value = PieSpecification> {
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (switches, prop_oneof![Just((15u64, 15u64, 150u64)), (1u64..30, 5u64..40, 0u64..200)]).prop_map(
        |((rate, ecn, derandomise, cap_increase, activation), (target, update, burst))| PieSpecification {
            limit: Limit::Bytes(150_000),
            target: Duration::from_millis(target),
            update_interval: Duration::from_millis(update),
            max_burst: Duration::from_millis(burst),
            delay: if rate {
                PieDelayEstimator::DepartureRate { threshold_bytes: 16_384 }
            } else {
                PieDelayEstimator::Timestamps
            },
            ecn,
            derandomise,
            cap_increase,
            activation,
            // Ten times the gain, for more events in a short load.
            alpha: 1.25,
            beta: 12.5,
            ..PieSpecification::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decides_as_the_rfc(phases in phases(), seed in any::<u64>(), settings in settings(), flows in 1u32..5) {
        let steps = script(&phases, flows, &[1500, 1500, 500, 60], seed);
        let mut probabilities = Vec::new();
        let fates = run(&mut Pie::new(settings, stream(seed)), &steps, |pie| probabilities.push(pie.probability()));
        let (expected, expected_probabilities) = Oracle::new(settings, 150_000, seed).run(&steps);
        for (n, (found, expected)) in probabilities.iter().zip(&expected_probabilities).enumerate() {
            prop_assert!((found - expected).abs() < 1e-9, "step {n}: {found}, expected {expected}");
        }
        prop_assert_eq!(fates, expected);
    }
}

/// Regular arrivals of full packets (1500 + 18 bytes) from 1 ns on, and a departure per millisecond.
fn steady(arrivals: usize, gap_ns: u64) -> Vec<(u64, Step)> {
    let item = |number| Item {
        number,
        flow: 0,
        ip_bytes: 1500,
        codepoint: EcnCodepoint::NotEct,
        since: number as u64 * gap_ns + 1,
    };
    let mut steps: Vec<(u64, Step)> = (0..arrivals).map(|n| (item(n).since, Step::Arrive(item(n)))).collect();
    let milliseconds = arrivals as u64 * gap_ns / 1_000_000;
    steps.extend((0..milliseconds + arrivals as u64).map(|n| (n * 1_000_000 + 500_000, Step::Leave)));
    steps.sort_by_key(|(now, _)| *now);
    steps
}

fn waits(steps: &[(u64, Step)], fates: &[Fate]) -> Vec<(f64, f64)> {
    let since: Vec<u64> = steps
        .iter()
        .filter_map(|(_, step)| if let Step::Arrive(item) = step { Some(item.since) } else { None })
        .collect();
    let leaves = steps.iter().filter(|(_, step)| matches!(step, Step::Leave)).map(|(now, _)| *now);
    let outcomes = fates.iter().filter(|fate| matches!(fate, Fate::Sent(..) | Fate::Nothing));
    leaves
        .zip(outcomes)
        .filter_map(|(now, fate)| match fate {
            Fate::Sent(number, _) => Some((now as f64 * 1e-9, (now - since[*number]) as f64 * 1e-9)),
            _ => None,
        })
        .collect()
}

#[test]
fn an_unresponsive_overload_settles_at_the_target() {
    // 1100 packets per second at a link for 1000: the integral is stable only at the target, 15 ms, and the queue only if
    // the drops equal the excess, 1 - 1000/1100 = 0.0909.
    for delay in [PieDelayEstimator::Timestamps, PieDelayEstimator::DepartureRate { threshold_bytes: 16_384 }] {
        let steps = steady(44_000, 909_091);
        let settings = PieSpecification { delay, ..PieSpecification::default() };
        let mut pie = Pie::new(settings, stream(1));
        let fates = run(&mut pie, &steps, |_| ());
        let settled: Vec<f64> =
            waits(&steps, &fates).iter().filter(|(at, _)| (20.0..40.0).contains(at)).map(|(_, wait)| *wait).collect();
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        assert!((mean - 0.015).abs() < 0.05 * 0.015, "{delay:?}: {mean}");
        let late = fates.iter().filter(|fate| matches!(fate, Fate::Early(number) if *number >= 22_000)).count();
        assert!((late as f64 / 22_000.0 - 0.0909).abs() < 0.02 * 0.0909, "{delay:?}: {late}");
    }
}

#[test]
fn a_burst_is_accepted_for_150_ms() {
    // Twice the link's rate from the start on, and gains so high that any positive update makes the probability 1. A packet that
    // departs at t has waited t/2, so the update at 15 ms, with a delay of 7 ms, makes it 1: the change counts ten times as much as
    // the difference from the target. From then on no arrival renews the allowance of 150 ms, which the updates at 15, 30, ...
    // 150 ms use up: the first packet after that, number 300, is dropped. Without the allowance, it is the first after 15 ms, number 30.
    let steps = steady(1000, 500_000);
    for (max_burst, expected) in [(150, 300), (0, 30), (10, 30), (20, 60)] {
        let settings = PieSpecification {
            max_burst: Duration::from_millis(max_burst),
            alpha: 1.25e6,
            beta: 1.25e7,
            derandomise: false,
            cap_increase: false,
            ..PieSpecification::default()
        };
        let fates = run(&mut Pie::new(settings, stream(2)), &steps, |_| ());
        let first = fates.iter().find_map(|fate| if let Fate::Early(number) = fate { Some(*number) } else { None });
        assert_eq!(first, Some(expected), "{max_burst} ms");
    }
}

#[test]
fn derandomized_drops_are_not_close() {
    // The probabilities of the packets from one drop to the next add up to at least 0.85 (section 5.4). With independent
    // drops, a large fraction is closer (with p = 0.09: 1 - 0.91^9, a half).
    let steps = steady(44_000, 909_091);
    for derandomise in [true, false] {
        let settings = PieSpecification { derandomise, ..PieSpecification::default() };
        let mut probabilities = Vec::new();
        let fates = run(&mut Pie::new(settings, stream(3)), &steps, |pie| probabilities.push(pie.probability()));
        let arrivals: Vec<f64> = steps
            .iter()
            .zip(&probabilities)
            .filter(|((_, step), _)| matches!(step, Step::Arrive(_)))
            .map(|(_, probability)| *probability)
            .collect();
        let drops: Vec<usize> =
            fates.iter().filter_map(|fate| if let Fate::Early(number) = fate { Some(*number) } else { None }).collect();
        let sums = drops.windows(2).map(|pair| arrivals[pair[0] + 1..=pair[1]].iter().sum::<f64>());
        let close = sums.filter(|sum| *sum < 0.85 - 1e-9).count() as f64 / drops.len() as f64;
        assert!(drops.len() > 3000);
        assert!(if derandomise { close == 0.0 } else { (0.4..0.65).contains(&close) }, "{derandomise}: {close}");
    }
}

#[test]
fn above_ten_percent_ecn_capable_packets_are_dropped() {
    // Unresponsive ECN-capable packets exceed the link's rate by 5 % and by a half. Marked packets stay in the
    // queue, so the probability rises to 10 %, above which drops remove the excess: 1 - 1/1.05 = 0.048, 0.333.
    for gap_ns in [952_381, 666_667] {
        let mut steps = steady(60_000, gap_ns);
        for (_, step) in &mut steps {
            if let Step::Arrive(item) = step {
                item.codepoint = EcnCodepoint::Ect0;
            }
        }
        let settings = PieSpecification { ecn: true, limit: Limit::Packets(500), ..PieSpecification::default() };
        let mut kinds = steps.iter().map(|(_, step)| matches!(step, Step::Arrive(_)));
        let mut before = 0;
        let fates = run(&mut Pie::new(settings, stream(4)), &steps, |pie| {
            use fullpipe_network::QueueDiscipline;
            if kinds.next() == Some(true) && pie.packets() == before && before < 500 {
                assert!(pie.probability() >= 0.1);
            }
            before = pie.packets();
        });
        let (_, early, marked, _) = tally(&fates, &steps);
        assert!(marked > 0);
        let expected = 1.0 - gap_ns as f64 * 1e-6;
        assert!((early as f64 / 60_000.0 - expected).abs() < 0.15 * expected, "{early} for {expected}");
    }
}

#[test]
fn pie_is_inactive_until_a_third_is_filled() {
    // 100 of 400 packets do not activate it: no packet is dropped although the delay is 100 ms for a long time.
    let load = |peak: usize| {
        let burst = Phase { arrivals: peak, gap_ns: 1000, service_ns: 1_000_000 };
        let hold = Phase { arrivals: 3000, gap_ns: 1_000_000, service_ns: 1_000_000 };
        script(&[burst, hold], 1, &[1500], 5)
    };
    for (peak, wakes) in [(100, false), (200, true)] {
        let settings = PieSpecification { limit: Limit::Packets(400), activation: true, ..PieSpecification::default() };
        let steps = load(peak);
        let fates = run(&mut Pie::new(settings, stream(6)), &steps, |_| ());
        assert_eq!(tally(&fates, &steps).1 > 0, wakes);
    }
}

#[test]
fn a_step_in_load_matches_the_fluid_model() {
    // From idle to 1.1 times the link's rate, with independent drops (p is then the fraction of drops).
    let settings = PieSpecification {
        derandomise: false,
        max_burst: Duration::ZERO,
        cap_increase: false,
        ..PieSpecification::default()
    };
    let fluid = fluid::waits(
        1.1,
        15,
        20,
        |p, before| if before < 0.0075 && p < 0.2 { 0.0 } else { p },
        |p, delay, before| {
            let scale = match p {
                p if p < 1e-6 => 2048.0,
                p if p < 1e-5 => 512.0,
                p if p < 1e-4 => 128.0,
                p if p < 1e-3 => 32.0,
                p if p < 1e-2 => 8.0,
                p if p < 0.1 => 2.0,
                _ => 1.0,
            };
            (0.125 * (delay - 0.015) + 1.25 * (delay - before)) / scale
        },
    );
    let expected = fluid::tenths(fluid.iter().enumerate().map(|(n, wait)| (n as f64 * 1e-3, *wait)), 20);
    // The mean of 20 runs.
    let steps = steady(22_000, 909_091);
    let mut found = vec![0.0; 200];
    for seed in 0..20 {
        let fates = run(&mut Pie::new(settings, stream(seed)), &steps, |_| ());
        for (sum, wait) in found.iter_mut().zip(fluid::tenths(waits(&steps, &fates).into_iter(), 20)) {
            *sum += wait / 20.0;
        }
    }
    let (peak_at, peak) = fluid::highest(&found);
    let (expected_at, expected_peak) = fluid::highest(&expected);
    assert!((peak - expected_peak).abs() < 0.05 * expected_peak, "{peak} for {expected_peak}");
    assert!((peak_at - expected_at).abs() < 0.15, "{peak_at} for {expected_at}");
    // A minimum at 1.5 s, a lower maximum at about 5 s, then the target.
    assert!((found[15] - expected[15]).abs() < 0.003, "{} for {}", found[15], expected[15]);
    let late = found[100..].iter().sum::<f64>() / 100.0;
    assert!((late - 0.015).abs() < 0.05 * 0.015, "{late}");
}
