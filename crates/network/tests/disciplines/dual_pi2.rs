//! Tests of DualPI2.

use crate::drive::{Fate, Item, Step, phases, run, script};
use crate::fluid;
use fullpipe_network::{DualPi2, DualPi2Scheduler, DualPi2Specification, Limit};
use fullpipe_units::{Duration, EcnCodepoint, Rate};
use proptest::prelude::*;
use std::collections::VecDeque;

const LIMIT: u64 = 200_000;
const MTU: u64 = 1518;

#[derive(Default)]
struct Queue {
    items: VecDeque<Item>,
    count: f64,
}

impl Queue {
    fn byt(&self) -> u64 {
        self.items.iter().map(Item::wire_bytes).sum()
    }

    fn time(&self, now: u64) -> f64 {
        self.items.front().map_or(0.0, |head| (now - head.since) as f64 * 1e-9)
    }

    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        if self.count > 1.0 {
            self.count -= 1.0;
            return true;
        }
        false
    }
}

/// RFC 9332 appendix A, figures 2, 3, 5, 7 and 8. In lines 5a and 5b, lq.time() and lq.len() include the departing packet
/// ("only 1 packet", "the head packet's own delay", note a); p_CL is limited to 1 like p'.
struct Oracle {
    settings: DualPi2Specification,
    lq: Queue,
    cq: Queue,
    p: f64,
    p_cl: f64,
    p_c: f64,
    prevq: f64,
    next_update: u64,
    /// Bytes that C may send, times 16, minus those that L may send.
    wrr: i64,
    fates: Vec<Fate>,
    bases: Vec<f64>,
}

impl Oracle {
    fn new(settings: DualPi2Specification) -> Self {
        let mut oracle = Oracle {
            settings,
            lq: Queue::default(),
            cq: Queue::default(),
            p: 0.0,
            p_cl: 0.0,
            p_c: 0.0,
            prevq: 0.0,
            next_update: settings.update_interval.as_nanos(),
            wrr: 0,
            fates: Vec::new(),
            bases: Vec::new(),
        };
        oracle.reset_wrr();
        oracle
    }

    /// "The WRR credit is reset in favour of the L queue when the link is idle": by a packet, as in Linux.
    fn reset_wrr(&mut self) {
        if let DualPi2Scheduler::WeightedRoundRobin { classic_weight, l4s_weight } = self.settings.scheduler {
            self.wrr = MTU as i64 * (i64::from(classic_weight) - i64::from(l4s_weight));
        }
    }

    fn update(&mut self, now: u64) {
        let curq = self.cq.time(now).max(self.lq.time(now));
        let DualPi2Specification { alpha, beta, target, coupling, .. } = self.settings;
        self.p += alpha * (curq - target.as_secs_f64()) + beta * (curq - self.prevq);
        self.p = self.p.clamp(0.0, 1.0);
        self.p_cl = (self.p * coupling).min(1.0);
        self.p_c = self.p * self.p;
        self.prevq = curq;
    }

    fn laqm(&self, qdelay: f64) -> f64 {
        let min_th = self.settings.ramp_start.as_secs_f64();
        let range = self.settings.ramp_range.as_secs_f64();
        if qdelay >= min_th + range {
            1.0
        } else if qdelay > min_th {
            (qdelay - min_th) / range
        } else {
            0.0
        }
    }

    /// Returns true for L. The credit changes only if both queues hold packets.
    fn scheduler(&mut self, now: u64) -> bool {
        if self.lq.items.is_empty() || self.cq.items.is_empty() {
            return self.cq.items.is_empty();
        }
        match self.settings.scheduler {
            DualPi2Scheduler::TimeShiftedFifo { shift } => {
                self.lq.time(now) + shift.as_secs_f64() + 1e-12 >= self.cq.time(now)
            }
            DualPi2Scheduler::WeightedRoundRobin { classic_weight, l4s_weight } => {
                let to_l = self.wrr <= 0;
                if to_l {
                    self.wrr += i64::from(classic_weight) * self.lq.items[0].wire_bytes() as i64;
                } else {
                    self.wrr -= i64::from(l4s_weight) * self.cq.items[0].wire_bytes() as i64;
                }
                to_l
            }
        }
    }

    fn dequeue(&mut self, now: u64) -> Option<Item> {
        while self.lq.byt() + self.cq.byt() > 0 {
            let mut pkt;
            if self.scheduler(now) {
                let (len, time) = (self.lq.items.len() as u64, self.lq.time(now));
                pkt = self.lq.items.pop_front().unwrap();
                if self.p_cl < 1.0 {
                    let native = if len > self.settings.ramp_min_packets { self.laqm(time) } else { 0.0 };
                    let p_l = native.max(self.p_cl);
                    if self.lq.recur(p_l) {
                        pkt.codepoint = EcnCodepoint::Ce;
                    }
                } else {
                    if self.lq.recur(self.p_c) {
                        self.fates.push(Fate::Early(pkt.number));
                        continue;
                    }
                    if self.lq.recur(self.p_cl) {
                        pkt.codepoint = EcnCodepoint::Ce;
                    }
                }
            } else {
                pkt = self.cq.items.pop_front().unwrap();
                if self.cq.recur(self.p_c) {
                    let k = self.settings.coupling;
                    let p_cmax = f64::min(1.0 / (k * k), 1.0);
                    if !pkt.capable() || !self.settings.ecn || self.p_c >= p_cmax {
                        self.fates.push(Fate::Early(pkt.number));
                        continue;
                    }
                    pkt.codepoint = EcnCodepoint::Ce;
                }
            }
            return Some(pkt);
        }
        self.reset_wrr();
        None
    }

    fn run(mut self, steps: &[(u64, Step)]) -> (Vec<Fate>, Vec<f64>) {
        for (now, step) in steps {
            while self.next_update <= *now {
                self.update(self.next_update);
                self.next_update += self.settings.update_interval.as_nanos();
            }
            match step {
                Step::Arrive(item) if self.lq.byt() + self.cq.byt() + MTU > LIMIT => {
                    self.fates.push(Fate::Refused(item.number));
                }
                Step::Arrive(item) if item.codepoint.bits() % 2 == 1 => self.lq.items.push_back(*item),
                Step::Arrive(item) => self.cq.items.push_back(*item),
                Step::Leave => {
                    let sent = self.dequeue(*now);
                    self.fates.push(sent.map_or(Fate::Nothing, |item| Fate::Sent(item.number, item.codepoint)));
                }
            }
            self.bases.push(self.p);
        }
        (self.fates, self.bases)
    }
}

fn settings() -> impl Strategy<Value = DualPi2Specification> {
    let scheduler = prop_oneof![
        Just(DualPi2Scheduler::WeightedRoundRobin { classic_weight: 1, l4s_weight: 15 }),
        (1u32..10, 1u32..20).prop_map(|(classic_weight, l4s_weight)| DualPi2Scheduler::WeightedRoundRobin {
            classic_weight,
            l4s_weight
        }),
        (0u64..80).prop_map(|ms| DualPi2Scheduler::TimeShiftedFifo { shift: Duration::from_millis(ms) }),
    ];
    let ramp = prop_oneof![Just((800u64, 400u64)), Just((1000, 0)), (0u64..20_000, 0u64..20_000)];
    (scheduler, ramp, 0u64..4, prop_oneof![Just(2.0), 0.5f64..4.0], any::<bool>(), 1.0f64..8.0).prop_map(
        |(scheduler, (start, range), ramp_min_packets, coupling, ecn, gain)| {
            let base = DualPi2Specification::default();
            DualPi2Specification {
                limit: Limit::Bytes(LIMIT),
                coupling,
                scheduler,
                ramp_start: Duration::from_micros(start),
                ramp_range: Duration::from_micros(range),
                ramp_min_packets,
                ecn,
                alpha: base.alpha * gain,
                beta: base.beta * gain,
                ..base
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decides_as_the_rfc(phases in phases(), seed in any::<u64>(), settings in settings(), flows in 1u32..9) {
        let steps = script(&phases, flows, &[1500, 1500, 500, 60], seed);
        let mut bases = Vec::new();
        let fates = run(&mut DualPi2::new(settings), &steps, |queue| bases.push(queue.base_probability()));
        let (expected, expected_bases) = Oracle::new(settings).run(&steps);
        for (n, (found, expected)) in bases.iter().zip(&expected_bases).enumerate() {
            prop_assert!((found - expected).abs() < 1e-9, "step {n}: {found}, expected {expected}");
        }
        // (Only the first difference is shown, because the whole lists would be long.)
        let differ = fates.iter().zip(&expected).position(|(a, b)| a != b);
        prop_assert!(differ.is_none() && fates.len() == expected.len(), "{:?}", differ.map(|n| (n, fates[n], expected[n])));
    }
}

#[test]
fn the_default_is_that_of_figure_2() {
    // Figure 2: target 15 ms, RTT_max 100 ms, Tupdate = min(15, 33.3) = 15 ms, alpha = 0.1 * 0.015 / 0.01 = 0.15 Hz,
    // beta = 0.3 / 0.1 = 3 Hz; 250 ms of 100 Mbit/s are 3 125 000 bytes.
    let settings = DualPi2Specification::for_path(
        Rate::from_megabits_per_second(100),
        Duration::from_millis(15),
        Duration::from_millis(100),
    );
    assert_eq!(settings.limit, Limit::Bytes(3_125_000));
    assert_eq!(settings.update_interval, Duration::from_millis(15));
    assert!((settings.alpha - 0.15).abs() < 1e-12 && (settings.beta - 3.0).abs() < 1e-12);
    assert_eq!(DualPi2Specification { limit: settings.limit, ..DualPi2Specification::default() }, settings);
}

/// Regular arrivals of flows: (gap in ns, codepoint), and a departure per millisecond, in order of time.
fn mixed(flows: &[(u64, EcnCodepoint)], seconds: u64) -> Vec<(u64, Step)> {
    let mut arrivals: Vec<(u64, u32)> = Vec::new();
    for (flow, (gap, _)) in flows.iter().enumerate() {
        arrivals.extend((0..seconds * 1_000_000_000 / gap).map(|n| (n * gap + 1 + flow as u64, flow as u32)));
    }
    arrivals.sort_unstable();
    let total = arrivals.len() as u64;
    let arrivals = arrivals.into_iter().enumerate().map(|(number, (since, flow))| {
        let codepoint = flows[flow as usize].1;
        (since, Step::Arrive(Item { number, flow, ip_bytes: 1500, codepoint, since }))
    });
    let mut steps: Vec<_> = arrivals.collect();
    steps.extend((0..seconds * 1000 + total).map(|n| (n * 1_000_000 + 500_000, Step::Leave)));
    steps.sort_by_key(|(now, _)| *now);
    steps
}

struct Share {
    came: f64,
    dropped: f64,
    marked: f64,
    waits: Vec<f64>,
}

/// Returns the outcomes of a flow's packets that arrived within an interval in seconds.
fn share(steps: &[(u64, Step)], fates: &[Fate], flow: u32, from: f64, to: f64) -> Share {
    let items: Vec<Item> =
        steps.iter().filter_map(|(_, step)| if let Step::Arrive(item) = step { Some(*item) } else { None }).collect();
    let counts = |number: usize| {
        let at = items[number].since as f64 * 1e-9;
        items[number].flow == flow && at >= from && at < to
    };
    let mut leaves = steps.iter().filter(|(_, step)| matches!(step, Step::Leave)).map(|(now, _)| *now);
    let came = items.iter().filter(|item| counts(item.number)).count() as f64;
    let mut share = Share { came, dropped: 0.0, marked: 0.0, waits: Vec::new() };
    for fate in fates {
        match *fate {
            Fate::Early(number) if counts(number) => share.dropped += 1.0,
            Fate::Sent(number, codepoint) => {
                let now = leaves.next().unwrap();
                if counts(number) {
                    share.marked += f64::from(codepoint == EcnCodepoint::Ce);
                    share.waits.push((now - items[number].since) as f64 * 1e-9);
                }
            }
            Fate::Nothing => {
                leaves.next();
            }
            _ => {}
        }
    }
    share
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn classic_and_low_latency_probabilities_are_coupled() {
    // The link sends 1000 packets per second. 10 per second are L4S; 1030 are classic and unresponsive. The integral is stable only
    // at 15 ms, and the queue only if 40 of 1030 are dropped: p_C = p'^2 = 0.0388. Then p_CL = k p' = 2 * 0.197 = 0.394:
    // p_C = (p_CL / k)^2 (RFC 9332 section 2.1, equation 1).
    let flows = [(970_874, EcnCodepoint::NotEct), (100_000_000, EcnCodepoint::Ect1)];
    let steps = mixed(&flows, 400);
    let fates = run(&mut DualPi2::new(DualPi2Specification::default()), &steps, |_| ());
    let classic = share(&steps, &fates, 0, 50.0, 400.0);
    let l4s = share(&steps, &fates, 1, 50.0, 400.0);
    let p_c = classic.dropped / classic.came;
    let p_cl = l4s.marked / l4s.came;
    assert!((p_c - 0.0388).abs() < 0.02 * 0.0388, "{p_c}");
    assert!((p_cl - 0.394).abs() < 0.02 * 0.394, "{p_cl}");
    assert!((mean(&classic.waits) - 0.015).abs() < 0.05 * 0.015, "{}", mean(&classic.waits));
    // L's packets arrive half a millisecond before a departure and are sent then, except for one in fifteen, which gives way to C
    // (weights 1 to 15).
    let delayed = l4s.waits.iter().filter(|wait| **wait > 0.0006).count() as f64 / l4s.waits.len() as f64;
    assert!((delayed - 1.0 / 15.0).abs() < 0.001 && l4s.waits.iter().all(|wait| *wait < 0.0016), "{delayed}");
    assert_eq!(l4s.dropped, 0.0);
}

#[test]
fn the_low_latency_queue_has_a_ramp_or_a_step() {
    // 20 packets with ECT(1) at once, one departs every 100 us: packet n departs after 100 (n + 1) us. A step at 1 ms
    // (range 0) marks every packet that waited 1 ms or longer, except the first one (its sum 1 does not
    // exceed 1). The last packet is alone in its queue and is not marked (Th_len = 1).
    // Ramp from 0.8 to 1.2 ms: 0.9, 1.0, 1.1 ms have 0.25, 0.5, 0.75, all later ones 1. Sums 0.25, 0.75, 1.5: the
    // packet with 1.1 ms is the first to be marked.
    let burst = || {
        let item = |number| Item { number, flow: 2, ip_bytes: 1500, codepoint: EcnCodepoint::Ect1, since: 1 };
        let mut steps: Vec<_> = (0..20).map(|n| (1, Step::Arrive(item(n)))).collect();
        steps.extend((0..20).map(|n| ((n + 1) * 100_000 + 1, Step::Leave)));
        steps
    };
    for (range_us, start_us, first) in [(0, 1000, 10), (400, 800, 10)] {
        let settings = DualPi2Specification {
            ramp_start: Duration::from_micros(start_us),
            ramp_range: Duration::from_micros(range_us),
            ..DualPi2Specification::default()
        };
        let fates = run(&mut DualPi2::new(settings), &burst(), |_| ());
        let marked: Vec<usize> = fates
            .iter()
            .filter_map(|f| if let Fate::Sent(n, EcnCodepoint::Ce) = f { Some(*n) } else { None })
            .collect();
        assert_eq!(marked, (first..19).collect::<Vec<_>>(), "range {range_us}");
    }
}

#[test]
fn overload_by_one_kind_is_dropped_at_the_target_delay() {
    // Twice the rate of the link, of one kind, unresponsive: half must be dropped at 15 ms, p' = sqrt(1/2) = 0.707.
    // As p'^2 exceeds 1/k^2 = 1/4, ECN-capable packets are dropped too (appendix A.2); in L every packet that is sent is marked.
    for codepoint in [EcnCodepoint::NotEct, EcnCodepoint::Ect0, EcnCodepoint::Ect1] {
        let steps = mixed(&[(500_000, codepoint)], 40);
        let mut queue = DualPi2::new(DualPi2Specification::default());
        let mut bases = Vec::new();
        let fates = run(&mut queue, &steps, |queue| bases.push(queue.base_probability()));
        let share = share(&steps, &fates, 0, 20.0, 40.0);
        assert!((share.dropped / share.came - 0.5).abs() < 0.01, "{codepoint:?}: {}", share.dropped / share.came);
        assert!((mean(&share.waits) - 0.015).abs() < 0.05 * 0.015, "{codepoint:?}: {}", mean(&share.waits));
        let settled = mean(&bases[bases.len() / 4..bases.len() / 2]);
        assert!((settled - 0.707).abs() < 0.02 * 0.707, "{codepoint:?}: {settled}");
        let marked = share.marked / share.waits.len() as f64;
        assert!((marked - f64::from(codepoint == EcnCodepoint::Ect1)).abs() < 0.01, "{codepoint:?}: {marked}");
    }
}

#[test]
fn neither_queue_starves() {
    // Each kind alone overloads the link, at 1000 per second. Weighted 1 to 15, C gets a sixteenth of the departures,
    // 62.5 of 1000 per second.
    let steps = mixed(&[(1_000_000, EcnCodepoint::NotEct), (1_000_000, EcnCodepoint::Ect1)], 5);
    let settings = DualPi2Specification {
        // Disable all signals.
        alpha: 0.0,
        beta: 0.0,
        limit: Limit::Unlimited,
        ..DualPi2Specification::default()
    };
    let mut served = [0u32; 2];
    let fates = run(&mut DualPi2::new(settings), &steps, |_| ());
    let items: Vec<Item> =
        steps.iter().filter_map(|(_, step)| if let Step::Arrive(item) = step { Some(*item) } else { None }).collect();
    for fate in fates.iter().filter(|fate| matches!(fate, Fate::Sent(..))).take(5000) {
        if let Fate::Sent(number, _) = fate {
            served[items[*number].flow as usize] += 1;
        }
    }
    assert!((f64::from(served[0]) - 312.5).abs() < 2.0, "{served:?}");
    // Time-shifted by 50 ms: at equal waiting times L is served first; C's head is served once it has waited 50 ms longer than L's. Both
    // queues grow alike, so C lags by 50 ms throughout: in 5 s of departures L is ahead by the arrivals of 50 ms, 50 packets.
    let shifted = DualPi2Specification {
        scheduler: DualPi2Scheduler::TimeShiftedFifo { shift: Duration::from_millis(50) },
        ..settings
    };
    let fates = run(&mut DualPi2::new(shifted), &steps, |_| ());
    let mut served = [0i32; 2];
    for fate in fates.iter().filter(|fate| matches!(fate, Fate::Sent(..))).take(5000) {
        if let Fate::Sent(number, _) = fate {
            served[items[*number].flow as usize] += 1;
        }
    }
    assert!((served[1] - served[0] - 50).abs() <= 2, "{served:?}");
}

#[test]
fn a_step_in_load_changes_the_probability_as_the_controller_specifies() {
    // A classic queue grows by a packet (1 ms of waiting time) per ms from an empty start: 2000 packets per second arrive, and none is
    // dropped while the sum of p'^2 is below 1. The head that departs at t waited t/2. At update n (15 n ms) the
    // delay is about 7.5 n ms, so p' after update n is the sum of 0.15 (7.5 j - 15) ms + 3 * 7.5 ms, limited to 0 or more:
    // n = 1: 0.0225 - 0.0011 = 0.0214; n = 2: 0.0439; n = 3: 0.0675; n = 4: 0.0922.
    let steps = mixed(&[(500_000, EcnCodepoint::NotEct)], 1);
    let mut queue = DualPi2::new(DualPi2Specification::default());
    let mut bases = Vec::new();
    run(&mut queue, &steps, |queue| bases.push(queue.base_probability()));
    let at = |ms: u64| bases[steps.iter().position(|(now, _)| *now > ms * 1_000_000).unwrap()];
    for (update, expected) in [(1, 0.0214), (2, 0.0439), (3, 0.0675), (4, 0.0922)] {
        let found = at(15 * update + 1);
        // The head's waiting time has a resolution of half a millisecond: 3 * 0.0005.
        assert!((found - expected).abs() < 0.0016, "update {update}: {found}, expected {expected}");
    }
}

#[test]
fn a_step_in_load_matches_the_fluid_model() {
    // From idle to 1.1 times the link's rate of classic packets; drops occur with p'^2.
    let fluid =
        fluid::waits(1.1, 15, 20, |p, _| p * p, |_, delay, before| 0.15 * (delay - 0.015) + 3.0 * (delay - before));
    let expected = fluid::tenths(fluid.iter().enumerate().map(|(n, wait)| (n as f64 * 1e-3, *wait)), 20);
    let steps = mixed(&[(909_091, EcnCodepoint::NotEct)], 20);
    let fates = run(&mut DualPi2::new(DualPi2Specification::default()), &steps, |_| ());
    let items: Vec<Item> =
        steps.iter().filter_map(|(_, step)| if let Step::Arrive(item) = step { Some(*item) } else { None }).collect();
    let leaves = steps.iter().filter(|(_, step)| matches!(step, Step::Leave)).map(|(now, _)| *now);
    let outcomes = fates.iter().filter(|fate| matches!(fate, Fate::Sent(..) | Fate::Nothing));
    let waits = leaves.zip(outcomes).filter_map(|(now, fate)| match fate {
        Fate::Sent(number, _) => Some((now as f64 * 1e-9, (now - items[*number].since) as f64 * 1e-9)),
        _ => None,
    });
    let found = fluid::tenths(waits, 20);
    let (peak_at, peak) = fluid::highest(&found);
    let (expected_at, expected_peak) = fluid::highest(&expected);
    assert!((peak - expected_peak).abs() < 0.07 * expected_peak, "{peak} for {expected_peak}");
    assert!((peak_at - expected_at).abs() < 0.15, "{peak_at} for {expected_at}");
    for (n, (found, expected)) in found.iter().zip(&expected).enumerate() {
        // A packet takes a millisecond; departures are observed half a millisecond late.
        let tolerance = if n < 50 { 0.005 } else { 0.0006 };
        assert!((found - expected).abs() < tolerance, "{} s: {found} for {expected}", n as f64 / 10.0);
    }
}
