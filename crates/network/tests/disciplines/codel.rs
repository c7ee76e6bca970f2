//! Tests of CoDel and FQ-CoDel.

use crate::drive::{Fate, Item, Phase, Step, phases, run, script, tally};
use fullpipe_network::{CoDel, CoDelSpecification, FqCoDel, FqCoDelSpecification, Limit};
use fullpipe_units::{Duration, EcnCodepoint};
use proptest::prelude::*;
use std::collections::VecDeque;

/// RFC 8289 section 5, line by line. Times are in nanoseconds; as in the RFC, 0 means that no time is set (no packet arrives at 0 and stays
/// above the target). If ECN is on, a packet that would be dropped is marked instead if it is ECN-capable. A mark counts
/// and schedules like a drop (Linux's interpretation of the RFC's section 1: "it may be reasonable to ECN-mark").
struct Oracle {
    settings: CoDelSpecification,
    limit: usize,
    queue: VecDeque<Item>,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    fates: Vec<Fate>,
}

impl Oracle {
    fn new(settings: CoDelSpecification, limit: usize) -> Self {
        Oracle {
            settings,
            limit,
            queue: VecDeque::new(),
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            fates: Vec::new(),
        }
    }

    fn control_law(&self, t: u64, count: u32) -> u64 {
        t + (self.settings.interval.as_nanos() as f64 / f64::from(count).sqrt()).round() as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<Item>, bool) {
        let Some(p) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        let mut ok_to_drop = false;
        let bytes: u64 = self.queue.iter().map(|item| u64::from(item.ip_bytes)).sum();
        let sojourn_time = now - p.since;
        if sojourn_time < self.settings.target.as_nanos() || bytes <= u64::from(self.settings.mtu_bytes) {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.settings.interval.as_nanos();
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    fn marks(&self, item: &Item) -> bool {
        self.settings.ecn && item.capable()
    }

    fn dequeue(&mut self, now: u64) -> Option<Item> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                let victim = p.unwrap();
                self.count += 1;
                if self.marks(&victim) {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                    return Some(Item { codepoint: EcnCodepoint::Ce, ..victim });
                }
                self.fates.push(Fate::Early(victim.number));
                (p, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            let victim = p.unwrap();
            if self.marks(&victim) {
                p = Some(Item { codepoint: EcnCodepoint::Ce, ..victim });
            } else {
                self.fates.push(Fate::Early(victim.number));
                (p, _) = self.dodequeue(now);
            }
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && now as i64 - (self.drop_next as i64) < 16 * self.settings.interval.as_nanos() as i64 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        p
    }

    fn run(mut self, steps: &[(u64, Step)]) -> Vec<Fate> {
        for (now, step) in steps {
            match step {
                Step::Arrive(item) if self.queue.len() >= self.limit => self.fates.push(Fate::Refused(item.number)),
                Step::Arrive(item) => self.queue.push_back(*item),
                Step::Leave => {
                    let sent = self.dequeue(*now).map(|mut item| {
                        let threshold = self.settings.ce_threshold;
                        if item.capable() && threshold.is_some_and(|t| now - item.since > t.as_nanos()) {
                            item.codepoint = EcnCodepoint::Ce;
                        }
                        Fate::Sent(item.number, item.codepoint)
                    });
                    self.fates.push(sent.unwrap_or(Fate::Nothing));
                }
            }
        }
        self.fates
    }
}

/// RFC 8290 section 4: CoDel queues (above) in two lists, following the RFC's text. "A negative number of credits
/// (i.e., it has already dequeued at least a quantum of bytes)" is interpreted according to its explanation: no credits left.
struct FairOracle {
    settings: FqCoDelSpecification,
    /// Queues and their credits by flow, in order of first appearance.
    queues: Vec<(u32, Oracle, i64)>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    fates: Vec<Fate>,
}

impl FairOracle {
    fn packets(&self) -> u64 {
        self.queues.iter().map(|(_, codel, _)| codel.queue.len() as u64).sum()
    }

    fn bytes(&self, index: usize) -> u64 {
        self.queues[index].1.queue.iter().map(|item| u64::from(item.ip_bytes)).sum()
    }

    fn over_limit(&self) -> bool {
        let bytes: u64 = self.queues.iter().flat_map(|(_, codel, _)| &codel.queue).map(Item::wire_bytes).sum();
        let over = match self.settings.limit {
            Limit::Packets(limit) => self.packets() > limit,
            Limit::Bytes(limit) => bytes > limit,
            Limit::Unlimited => false,
        };
        over || self.settings.limit_bytes.is_some_and(|limit| bytes > limit)
    }

    fn enqueue(&mut self, item: Item) {
        let index = self.queues.iter().position(|(flow, ..)| *flow == item.flow).unwrap_or_else(|| {
            self.queues.push((item.flow, Oracle::new(self.settings.codel, usize::MAX), 0));
            self.queues.len() - 1
        });
        // (An addition to the RFC: the queue of a flow has the same limit as all queues together.)
        let queue = &self.queues[index].1.queue;
        let bytes: u64 = queue.iter().map(Item::wire_bytes).sum();
        let full = match self.settings.limit {
            Limit::Packets(limit) => queue.len() as u64 >= limit,
            Limit::Bytes(limit) => bytes + item.wire_bytes() > limit,
            Limit::Unlimited => false,
        };
        if full {
            self.fates.push(Fate::Refused(item.number));
            return;
        }
        self.queues[index].1.queue.push_back(item);
        if !self.new.contains(&index) && !self.old.contains(&index) {
            self.new.push_back(index);
            self.queues[index].2 = i64::from(self.settings.quantum_bytes);
        }
        while self.over_limit() {
            let most = (0..self.queues.len()).map(|index| self.bytes(index)).max().unwrap();
            let fattest = (0..self.queues.len()).find(|index| self.bytes(*index) == most).unwrap();
            let mut lost = 0;
            // Half of its bytes (as in Linux), at most 64 packets.
            for _ in 0..64 {
                let Some(victim) = self.queues[fattest].1.queue.pop_front() else { break };
                self.fates.push(Fate::Pushed(victim.number));
                lost += u64::from(victim.ip_bytes);
                if lost >= most / 2 {
                    break;
                }
            }
        }
    }

    fn dequeue(&mut self, now: u64) -> Option<Item> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let (_, codel, credits) = &mut self.queues[index];
            if *credits <= 0 {
                *credits += i64::from(self.settings.quantum_bytes);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let packet = codel.dequeue(now);
            self.fates.append(&mut codel.fates);
            match packet {
                Some(mut item) => {
                    *credits -= i64::from(item.ip_bytes);
                    let threshold = self.settings.codel.ce_threshold;
                    if item.capable() && threshold.is_some_and(|t| now - item.since > t.as_nanos()) {
                        item.codepoint = EcnCodepoint::Ce;
                    }
                    return Some(item);
                }
                None => {
                    list.pop_front();
                    // (If there are no old queues, it is removed at once, as in Linux.)
                    if from_new && !self.old.is_empty() {
                        self.old.push_back(index);
                    }
                }
            }
        }
    }

    fn run(mut self, steps: &[(u64, Step)]) -> Vec<Fate> {
        for (now, step) in steps {
            match step {
                Step::Arrive(item) => self.enqueue(*item),
                Step::Leave => {
                    let sent = self.dequeue(*now);
                    self.fates.push(sent.map_or(Fate::Nothing, |item| Fate::Sent(item.number, item.codepoint)));
                }
            }
        }
        self.fates
    }
}

fn settings() -> impl Strategy<Value = CoDelSpecification> {
    (any::<bool>(), prop::option::of(1u64..30), prop_oneof![Just((5u64, 100u64)), (1u64..20, 10u64..200)]).prop_map(
        |(ecn, ce_ms, (target, interval))| CoDelSpecification {
            target: Duration::from_millis(target),
            interval: Duration::from_millis(interval),
            mtu_bytes: 1500,
            ecn,
            ce_threshold: ce_ms.map(Duration::from_millis),
        },
    )
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![3 => (5u64..300).prop_map(Limit::Packets), 1 => (3_000u64..200_000).prop_map(Limit::Bytes)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decides_as_the_rfc(phases in phases(), seed in any::<u64>(), settings in settings(), limit in 50usize..400, flows in 1u32..5) {
        let steps = script(&phases, flows, &[1500, 500, 60], seed);
        let fates = run(&mut CoDel::new(Limit::Packets(limit as u64), settings), &steps, |_| ());
        prop_assert_eq!(fates, Oracle::new(settings, limit).run(&steps));
    }

    /// With one flow and a sufficient limit, the fair queue is one CoDel.
    #[test]
    fn a_fair_queue_with_one_flow_equals_codel(phases in phases(), seed in any::<u64>(), codel in settings()) {
        let steps = script(&phases, 1, &[1500, 500, 60], seed);
        let mut queue = FqCoDel::new(FqCoDelSpecification { codel, ..FqCoDelSpecification::default() });
        prop_assert_eq!(run(&mut queue, &steps, |_| ()), Oracle::new(codel, usize::MAX).run(&steps));
    }

    #[test]
    fn schedules_as_the_rfc(phases in phases(), seed in any::<u64>(), codel in settings(), flows in 1u32..9, limit in limits(), bytes in prop::option::of(3_000u64..200_000), quantum_bytes in prop_oneof![Just(1500u32), 1u32..4000]) {
        let steps = script(&phases, flows, &[1500, 500, 60], seed);
        let settings = FqCoDelSpecification { codel, limit, limit_bytes: bytes, quantum_bytes };
        let oracle = FairOracle { settings, queues: Vec::new(), new: VecDeque::new(), old: VecDeque::new(), fates: Vec::new() };
        prop_assert_eq!(run(&mut FqCoDel::new(settings), &steps, |_| ()), oracle.run(&steps));
    }

    #[test]
    fn a_fair_queue_keeps_all(phases in phases(), seed in any::<u64>(), codel in settings(), limit in limits(), bytes in prop::option::of(3_000u64..200_000)) {
        let steps = script(&phases, 9, &[1500, 500, 60], seed);
        let specification = FqCoDelSpecification { codel, limit, limit_bytes: bytes, quantum_bytes: 300 };
        run(&mut FqCoDel::new(specification), &steps, |queue| {
            use fullpipe_network::QueueDiscipline;
            assert!(bytes.is_none_or(|bytes| queue.bytes() <= bytes));
            assert!(match limit {
                Limit::Packets(limit) => queue.packets() <= limit,
                Limit::Bytes(limit) => queue.bytes() <= limit,
                Limit::Unlimited => true,
            });
        });
    }
}

/// Sends `overload` packets per second too many to a link of 1000 per second; returns drop times and waiting times of sent packets.
fn overloaded(overload: u64, seconds: u64) -> (Vec<f64>, Vec<(f64, f64)>) {
    let arrivals = (1000 + overload) * seconds;
    let gap_ns = 1_000_000_000 / (1000 + overload);
    let mut steps: Vec<(u64, Step)> = (0..arrivals as usize)
        .map(|number| {
            let since = number as u64 * gap_ns + 1;
            (since, Step::Arrive(Item { number, flow: 0, ip_bytes: 1500, codepoint: EcnCodepoint::NotEct, since }))
        })
        .chain((0..arrivals + 10).map(|n| (n * 1_000_000 + 2, Step::Leave)))
        .collect();
    steps.sort_by_key(|(now, _)| *now);
    let fates = run(&mut CoDel::new(Limit::Unlimited, CoDelSpecification::default()), &steps, |_| ());
    let mut leaves = steps.iter().filter(|(_, step)| matches!(step, Step::Leave)).map(|(now, _)| *now);
    let mut now = 0;
    let (mut drops, mut waits) = (Vec::new(), Vec::new());
    let mut pending = Vec::new();
    for fate in fates {
        match fate {
            Fate::Early(number) => pending.push(number),
            Fate::Sent(number, _) => {
                now = leaves.next().unwrap();
                drops.extend(pending.drain(..).map(|_| now as f64 * 1e-9));
                waits.push((now as f64 * 1e-9, (now - number as u64 * gap_ns - 1) as f64 * 1e-9));
            }
            _ => now = leaves.next().unwrap(),
        }
    }
    assert!(now > 0);
    (drops, waits)
}

#[test]
fn drops_accelerate_until_they_exceed_an_unresponsive_overload() {
    // E = 50 packets per second too many. The delay reaches 5 ms when 5 packets wait, after 0.1 s, and has exceeded the target for an
    // interval I = 0.1 s at t0 = 0.2 s: first drop. Drop n + 1 follows I / sqrt(n) after drop n. The sum of 1 / sqrt(k)
    // up to n is 2 sqrt(n) - 1.46 (zeta of 1/2). So after a time t = I x there were 1 + ((x + 1.46) / 2)^2 drops, at
    // a rate of (x + 1.46) / 2 I. This rate reaches E at x = 2 I E - 1.46 = 8.54, after (I E)^2 + 1 = 26 drops. At 1.054 s
    // the queue has its maximum, E (t0 + t) - 26 = 26.7 packets, 26.7 ms.
    // It is back at 5 when E (t0 + I x) - 1 - ((x + 1.46) / 2)^2 = 5: x = 17.86, at 1.986 s.
    let (drops, waits) = overloaded(50, 5);
    assert!((drops[0] - 0.2).abs() < 0.007, "{}", drops[0]);
    let (peak_at, peak) =
        waits.iter().copied().fold((0.0, 0.0), |most, this| if this.1 > most.1 { this } else { most });
    assert!((peak - 0.0267).abs() < 0.05 * 0.0267, "{peak}");
    assert!((peak_at - 1.054).abs() < 0.05 * 1.054, "{peak_at}");
    let back = waits.iter().find(|(at, wait)| *at > peak_at && *wait < 0.005).unwrap().0;
    assert!((back - 1.986).abs() < 0.05 * 1.986, "{back}");
    // Each drop follows the control law: intervals of 100 ms / sqrt(n), each at the next departure (every millisecond).
    let mut due = drops[0];
    for (n, at) in drops.iter().enumerate().take(30).skip(1) {
        due += 0.1 / (n as f64).sqrt();
        assert!((0.0..0.001001).contains(&(at - due)), "drop {n} at {at}, due {due}");
    }
}

#[test]
fn marks_replace_drops_of_ecn_capable_packets() {
    let phase = [Phase { arrivals: 3000, gap_ns: 800_000, service_ns: 1_000_000 }];
    let settings = CoDelSpecification { ecn: true, ..CoDelSpecification::default() };
    for (flows, expected) in [(1, false), (2, true)] {
        // Flow 0 is not ECN-capable, flow 1 is.
        let steps = script(&phase, flows, &[1500], 3);
        let fates = run(&mut CoDel::new(Limit::Unlimited, settings), &steps, |_| ());
        let (_, early, marked, _) = tally(&fates, &steps);
        assert!(early > 10);
        assert_eq!(marked > 10, expected);
    }
}

#[test]
fn a_ce_threshold_marks_all_packets_that_waited_longer() {
    // Ten packets at once, one departs per millisecond: packet n departs after n ms.
    let settings = CoDelSpecification { ce_threshold: Some(Duration::from_millis(3)), ..CoDelSpecification::default() };
    let arrivals = (0..10).map(|number| {
        (1, Step::Arrive(Item { number, flow: 1, ip_bytes: 1500, codepoint: EcnCodepoint::Ect0, since: 1 }))
    });
    let steps: Vec<_> = arrivals.chain((0..10).map(|n| (n * 1_000_000 + 1, Step::Leave))).collect();
    let fates = run(&mut CoDel::new(Limit::Unlimited, settings), &steps, |_| ());
    let marks: Vec<bool> = fates.iter().map(|fate| matches!(fate, Fate::Sent(_, EcnCodepoint::Ce))).collect();
    assert_eq!(marks, [false, false, false, false, true, true, true, true, true, true]);
}
