//! Tests of RED and Adaptive RED.

use crate::drive::{Fate, Item, Step, phases, run, script, tally};
use fullpipe_network::packet::Arena;
use fullpipe_network::queue::QueuedPacket;
use fullpipe_network::{
    AdaptiveRedSpecification, Limit, Packet, PacketContent, QueueDiscipline, Red, RedSpecification, RedUnit,
};
use fullpipe_units::{Duration, EcnCodepoint, FlowId, Instant, NodeId, RandomStream, Rate};
use proptest::prelude::*;
use std::collections::VecDeque;

const LIMIT: u64 = 30;

fn stream(seed: u64) -> RandomStream {
    RandomStream::new(seed, "queue", "drops")
}

/// Figure 2 of Floyd and Jacobson 1993 ("detailed algorithm"), with the gentle slope of Floyd 2000 and figure 1 of
/// Floyd, Gummadi and Shenker 2001. ECN-capable packets are marked below max_th, none above.
struct Oracle {
    settings: RedSpecification,
    random: RandomStream,
    queue: VecDeque<Item>,
    avg: f64,
    count: i64,
    q_time: f64,
    max_p: f64,
    next: f64,
    fates: Vec<Fate>,
    averages: Vec<(f64, f64)>,
}

impl Oracle {
    fn new(settings: RedSpecification, seed: u64) -> Self {
        Oracle {
            settings,
            random: stream(seed),
            queue: VecDeque::new(),
            avg: 0.0,
            count: -1,
            q_time: 0.0,
            max_p: settings.max_probability,
            next: settings.adaptive.map_or(f64::INFINITY, |adaptive| adaptive.interval.as_secs_f64()),
            fates: Vec::new(),
            averages: Vec::new(),
        }
    }

    /// Applied at every interval: additive increase, multiplicative decrease of max_p, within its bounds.
    fn adapt(&mut self, now: f64) {
        let Some(adaptive) = self.settings.adaptive else { return };
        let RedSpecification { min_threshold, max_threshold, .. } = self.settings;
        while self.next <= now {
            if self.avg > min_threshold + 0.6 * (max_threshold - min_threshold) && self.max_p <= adaptive.highest {
                self.max_p += f64::min(adaptive.increase, self.max_p / 4.0);
            } else if self.avg < min_threshold + 0.4 * (max_threshold - min_threshold) && self.max_p >= adaptive.lowest
            {
                self.max_p *= adaptive.decrease;
            }
            self.max_p = self.max_p.clamp(adaptive.lowest, adaptive.highest);
            self.next += adaptive.interval.as_secs_f64();
        }
    }

    fn arrive(&mut self, time: f64, packet: Item) {
        let RedSpecification { min_threshold: min_th, max_threshold: max_th, weight: w_q, gentle, .. } = self.settings;
        if self.queue.is_empty() {
            // m = f(time - q_time): number of typical packets that could have departed meanwhile.
            let s = f64::from(self.settings.mean_packet_bytes) * 8.0 / self.settings.rate.bits_per_second() as f64;
            let m = (time - self.q_time) / s;
            self.avg *= (1.0 - w_q).powf_checked(m);
        } else {
            let q = match self.settings.unit {
                RedUnit::Packets => self.queue.len() as u64,
                RedUnit::Bytes => self.queue.iter().map(Item::wire_bytes).sum(),
            };
            self.avg = (1.0 - w_q) * self.avg + w_q * q as f64;
        }
        let mut mark = false;
        let mut force = false;
        let upper = if gentle { 2.0 * max_th } else { max_th };
        if min_th <= self.avg && self.avg < upper {
            self.count += 1;
            let mut p_b = if self.avg < max_th {
                self.max_p * (self.avg - min_th) / (max_th - min_th)
            } else {
                self.max_p + (1.0 - self.max_p) * (self.avg - max_th) / max_th
            };
            if self.settings.unit == RedUnit::Bytes {
                p_b *= packet.wire_bytes() as f64 / f64::from(self.settings.max_packet_bytes);
            }
            let p_a = p_b / (1.0 - self.count as f64 * p_b);
            if 1.0 - self.count as f64 * p_b <= 0.0 || self.random.uniform() < p_a {
                mark = true;
                force = self.avg >= max_th;
                self.count = 0;
            }
        } else if self.avg >= upper {
            (mark, force) = (true, true);
            self.count = 0;
        } else {
            self.count = -1;
        }
        if self.queue.len() as u64 >= LIMIT {
            self.fates.push(Fate::Refused(packet.number));
            self.count = self.count.min(0);
        } else if mark && !force && self.settings.ecn && packet.capable() {
            self.queue.push_back(Item { codepoint: EcnCodepoint::Ce, ..packet });
        } else if mark {
            self.fates.push(Fate::Early(packet.number));
            // The average already includes the time up to here.
            if self.queue.is_empty() {
                self.q_time = time;
            }
        } else {
            self.queue.push_back(packet);
        }
    }

    fn run(mut self, steps: &[(u64, Step)]) -> (Vec<Fate>, Vec<(f64, f64)>) {
        for (now, step) in steps {
            let time = *now as f64 * 1e-9;
            match step {
                Step::Arrive(item) => {
                    self.adapt(time);
                    self.arrive(time, *item);
                }
                Step::Leave => {
                    let sent = self.queue.pop_front();
                    if sent.is_some() && self.queue.is_empty() {
                        self.q_time = time;
                    }
                    self.fates.push(sent.map_or(Fate::Nothing, |item| Fate::Sent(item.number, item.codepoint)));
                }
            }
            self.averages.push((self.avg, self.max_p));
        }
        (self.fates, self.averages)
    }
}

trait Power {
    fn powf_checked(self, exponent: f64) -> f64;
}

impl Power for f64 {
    /// By halving the exponent: the integer part by squaring, the fraction by repeated square roots.
    fn powf_checked(self, exponent: f64) -> f64 {
        let whole = exponent.floor();
        let (mut result, mut base, mut bits) = (1.0, self, whole as u64);
        while bits > 0 {
            if bits & 1 == 1 {
                result *= base;
            }
            base *= base;
            bits >>= 1;
        }
        let (mut rest, mut root) = (exponent - whole, self);
        for _ in 0..60 {
            root = root.sqrt();
            rest *= 2.0;
            if rest >= 1.0 {
                result *= root;
                rest -= 1.0;
            }
        }
        result
    }
}

fn settings() -> impl Strategy<Value = RedSpecification> {
    let switches = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (switches, 1.0f64..20.0, 1.1f64..4.0, 0.01f64..0.5, 0.002f64..0.3).prop_map(
        |((bytes, gentle, ecn, adapts), low, factor, max_probability, weight)| {
            let unit = if bytes { 1000.0 } else { 1.0 };
            RedSpecification {
                unit: if bytes { RedUnit::Bytes } else { RedUnit::Packets },
                min_threshold: low * unit,
                max_threshold: low * factor * unit,
                max_probability,
                weight,
                gentle,
                ecn,
                adaptive: adapts.then(|| AdaptiveRedSpecification {
                    interval: Duration::from_millis(20),
                    ..AdaptiveRedSpecification::default()
                }),
                ..RedSpecification::recommended(Limit::Packets(LIMIT), Rate::from_megabits_per_second(12))
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decides_as_the_papers(phases in phases(), seed in any::<u64>(), settings in settings(), flows in 1u32..5) {
        let steps = script(&phases, flows, &[1500, 1500, 500, 60], seed);
        let mut found = Vec::new();
        let fates = run(&mut Red::new(settings, stream(seed)), &steps, |red| found.push((red.average(), red.max_probability())));
        let (expected, averages) = Oracle::new(settings, seed).run(&steps);
        for (n, (found, expected)) in found.iter().zip(&averages).enumerate() {
            prop_assert!((found.0 - expected.0).abs() < 1e-9 * (1.0 + expected.0), "step {n}: {}, expected {}", found.0, expected.0);
            prop_assert!((found.1 - expected.1).abs() < 1e-12, "step {n}: {}, expected {}", found.1, expected.1);
        }
        prop_assert_eq!(fates, expected);
    }
}

fn packet(number: usize, since: u64) -> (u64, Step) {
    (since, Step::Arrive(Item { number, flow: 0, ip_bytes: 1500, codepoint: EcnCodepoint::NotEct, since }))
}

fn recommended() -> RedSpecification {
    RedSpecification::recommended(Limit::Unlimited, Rate::from_megabits_per_second(12))
}

#[test]
fn the_average_of_a_burst_matches_the_paper() {
    // Floyd and Jacobson 1993, section 6.1, equation 2: after the queue grew from empty to L packets over L arrivals,
    // avg = L + 1 + ((1 - w)^(L + 1) - 1) / w; their example: w = 0.001, L = 100 gives 4.88. The queue length is read
    // before a packet is added: the 101st arrival finds 100.
    let settings = RedSpecification { weight: 0.001, min_threshold: 1e9, max_threshold: 2e9, ..recommended() };
    let steps: Vec<_> =
        (0..101).map(|n| packet(n, n as u64 + 1)).chain((0..101).map(|n| (1000 + n, Step::Leave))).collect();
    let mut averages = Vec::new();
    run(&mut Red::new(settings, stream(1)), &steps, |red| averages.push(red.average()));
    assert!((averages[100] - 4.88).abs() < 0.01, "{}", averages[100]);
}

#[test]
fn the_average_of_an_idle_queue_decays_at_the_link_rate() {
    // Section 4: after an idle time of m packets the average is (1 - w)^m of its previous value. 1500 bytes at 12
    // Mbit/s take 1 ms; with w = 0.002, 346.2 ms halve it (ln 2 / -ln 0.998 = 346.2).
    let settings = RedSpecification { min_threshold: 1e9, max_threshold: 2e9, ..recommended() };
    let mut steps: Vec<_> = (0..100).map(|n| packet(n, n as u64 + 1)).collect();
    steps.extend((0..100).map(|_| (1000, Step::Leave)));
    steps.push(packet(100, 1000 + 346_200_000));
    steps.push((400_000_000, Step::Leave));
    let mut averages = Vec::new();
    run(&mut Red::new(settings, stream(1)), &steps, |red| averages.push(red.average()));
    assert!((averages[200] / averages[199] - 0.5).abs() < 0.0001, "{}", averages[200] / averages[199]);
}

#[test]
fn drops_are_spread_evenly() {
    // The average is 10, halfway between the thresholds: p_b = 0.02 / 2 = 0.01. Packet n after a drop is dropped with p_b / (1 - n p_b)
    // if none before it was (figure 2): each n from 1 to 99 has probability p_b / (1 - p_b) = 1/99, and 99 is the maximum. Mean 50,
    // variance (99^2 - 1) / 12 = 816.7. Geometric distances would extend to several hundred. A drop does not shorten the queue, because
    // one packet arrives per departure, and one departure is skipped for each drop.
    let settings = RedSpecification { max_probability: 0.02, weight: 0.5, ..recommended() };
    let mut red = Red::new(settings, stream(9));
    let mut dropped = Vec::new();
    let mut drops = Vec::new();
    let template = Packet::new(FlowId(0), NodeId(1), 1500, PacketContent::Udp { payload_bytes: 1472 });
    let handle = Arena::default().insert(template);
    for n in 0u64..200_000 {
        let now = Instant::from_nanos(1 + n * 1_000_000);
        red.enqueue(now, QueuedPacket::new(handle, &template, 1518, now), &mut dropped).unwrap();
        if !dropped.is_empty() {
            dropped.clear();
            drops.push(n);
        } else if red.packets() > 10 {
            red.dequeue(now, &mut dropped).unwrap();
        }
        assert!(n < 100 || (red.packets() == 10 && (red.average() - 10.0).abs() < 1e-9));
    }
    let distances: Vec<f64> = drops[10..].windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let count = distances.len() as f64;
    let mean = distances.iter().sum::<f64>() / count;
    // 4000 distances: the standard error of the mean is sqrt(816.7 / 4000) = 0.45.
    assert!(count > 3800.0 && (mean - 50.0).abs() < 4.0 * 0.46, "{mean} of {count}");
    assert_eq!(distances.iter().fold(0.0, |most: f64, this| most.max(*this)), 99.0);
    let variance = distances.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / count;
    assert!((variance - 816.7).abs() < 0.05 * 816.7, "{variance}");
}

#[test]
fn the_probability_rises_gently_above_the_upper_threshold() {
    // Weight 1: the average is the queue. Packets arrive one by one at a queue of q. With drops spread evenly, the fraction of
    // drops at probability p is 1 / mean of the distances: about 2 p for small p, as distances are uniform in 1 ...
    // 1/p - 1 (mean 1 / 2p); from p = 1/2 on every packet is dropped.
    for (queue, gentle, expected) in [
        (4, true, 0.0),
        // p = 0.1 * 5/10 = 0.05: distances uniform in 1 ... 19, mean 10.
        (10, true, 0.1),
        // Gentle, p = 0.1 + 0.9 * 5/15 = 0.4: the first after a drop with 0.4/0.6 = 2/3, the second with certainty: mean 4/3.
        (20, true, 0.75),
        // p = 0.1 + 0.9 * 7/15 = 0.52.
        (22, true, 1.0),
        // p = 0.1 * 9/10 = 0.09: distances 1 ... 10 with 0.09/0.91 = 0.0989 each, the rest, 0.011, at 11: mean 5.56.
        (14, false, 0.18),
        (15, false, 1.0),
    ] {
        let settings = RedSpecification { weight: 1.0, gentle, ..recommended() };
        let share = drop_share(settings, queue);
        assert!((share - expected).abs() < 0.01, "{queue} {gentle}: {share}");
    }
}

/// Returns the fraction of packets that are dropped when they find `queue` others.
fn drop_share(settings: RedSpecification, queue: u64) -> f64 {
    let template = Packet::new(FlowId(0), NodeId(1), 1500, PacketContent::Udp { payload_bytes: 1472 });
    let handle = Arena::default().insert(template);
    let mut red = Red::new(settings, stream(3));
    let mut dropped = Vec::new();
    let now = Instant::from_nanos(1);
    while red.packets() < queue {
        red.enqueue(now, QueuedPacket::new(handle, &template, 1518, now), &mut dropped).unwrap();
        if red.average() >= 2.0 * settings.max_threshold
            || (!settings.gentle && red.average() >= settings.max_threshold)
        {
            break;
        }
    }
    let mut drops = 0;
    for _ in 0..50_000 {
        dropped.clear();
        red.enqueue(now, QueuedPacket::new(handle, &template, 1518, now), &mut dropped).unwrap();
        if dropped.is_empty() {
            red.dequeue(now, &mut dropped).unwrap();
        } else {
            drops += 1;
        }
    }
    f64::from(drops) / 50_000.0
}

#[test]
fn adaptive_red_derives_its_settings() {
    // Floyd, Gummadi and Shenker, section 5: at 15 Mbit/s and 1500 bytes C = 1250 packets/s; 5 ms are 6.25 packets, half
    // of it less than 5: 5 and 15. w_q = 1 - exp(-1/1250) = 0.00079968. At 1.2 Gbit/s, C = 100 000: 250 and 750.
    let limit = Limit::Unlimited;
    let target = Duration::from_millis(5);
    let slow = RedSpecification::adaptive(limit, Rate::from_megabits_per_second(15), target);
    assert_eq!((slow.min_threshold, slow.max_threshold), (5.0, 15.0));
    assert!((slow.weight - 0.000_799_68).abs() < 1e-9);
    let fast = RedSpecification::adaptive(limit, Rate::from_megabits_per_second(1200), target);
    assert!((fast.min_threshold - 250.0).abs() < 1e-9 && (fast.max_threshold - 750.0).abs() < 1e-9);
    let defaults = AdaptiveRedSpecification::default();
    assert_eq!((defaults.interval, defaults.increase, defaults.decrease), (Duration::from_millis(500), 0.01, 0.9));
}

#[test]
fn adaptive_red_adapts_its_maximum_at_regular_times() {
    // The average is 14 (target range 9 to 11): from 0.1 on, 0.01 more every half second; 0.5 after 20 s.
    let settings = RedSpecification {
        weight: 0.5,
        max_threshold: 15.0,
        adaptive: Some(AdaptiveRedSpecification::default()),
        ..recommended()
    };
    let up = maxima(settings, 14, 60);
    for (second, expected) in [(0.4, 0.1), (0.6, 0.11), (1.1, 0.12), (10.1, 0.3), (20.1, 0.5), (29.0, 0.5)] {
        let found = up[(second * 10.0) as usize];
        assert!((found - expected).abs() < 1e-9, "{second} s: {found}, expected {expected}");
    }
    // The average is 6: a tenth less every half second: 0.1 * 0.9^n; the minimum, 0.01, after 22 of them (0.9^22 = 0.0985).
    let down = maxima(settings, 6, 30);
    for (second, expected) in [(0.6, 0.09), (1.1, 0.081), (10.4, 0.1 * 0.121_577), (11.1, 0.01), (14.0, 0.01)] {
        let found = down[(second * 10.0) as usize];
        assert!((found - expected).abs() < 1e-6, "{second} s: {found}, expected {expected}");
    }
}

/// Returns the maximum probability at each tenth of a second while the queue is kept at `queue` packets.
fn maxima(settings: RedSpecification, queue: u64, half_seconds: u64) -> Vec<f64> {
    let template = Packet::new(FlowId(0), NodeId(1), 1500, PacketContent::Udp { payload_bytes: 1472 });
    let handle = Arena::default().insert(template);
    let mut red = Red::new(settings, stream(4));
    let mut dropped = Vec::new();
    let mut maxima = Vec::new();
    for tenth in 0..half_seconds * 5 {
        let now = Instant::from_nanos(tenth * 100_000_000);
        for _ in 0..100 {
            red.enqueue(now, QueuedPacket::new(handle, &template, 1518, now), &mut dropped).unwrap();
            if red.packets() > queue {
                red.dequeue(now, &mut dropped).unwrap();
            }
        }
        maxima.push(red.max_probability());
    }
    maxima
}

#[test]
fn above_the_upper_threshold_ecn_capable_packets_are_dropped() {
    let settings = RedSpecification { weight: 1.0, max_probability: 0.5, ecn: true, ..recommended() };
    let mut steps: Vec<_> = (0..100).map(|n| packet(n, 1)).collect();
    for (_, step) in &mut steps {
        if let Step::Arrive(item) = step {
            item.codepoint = EcnCodepoint::Ect0;
        }
    }
    steps.extend((0..100).map(|_| (2, Step::Leave)));
    let fates = run(&mut Red::new(settings, stream(5)), &steps, |_| ());
    let (_, early, marked, sent) = tally(&fates, &steps);
    assert!(marked > 0 && early > 0 && sent <= 30, "{marked} {early} {sent}");
    let first = fates.iter().find_map(|fate| if let Fate::Early(number) = fate { Some(*number) } else { None });
    // Packet 15 is the first that finds 15 packets.
    assert!(first >= Some(15), "{first:?}");
}
