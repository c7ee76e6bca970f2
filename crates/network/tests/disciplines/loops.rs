//! Closed loops: window-controlled sources over one link, as simple as the theory that predicts them.
//!
//! A source keeps as many packets in flight as its window permits. Acknowledgments arrive a round-trip time after a packet has
//! left the queue; a loss is detected a round-trip time after the drop. The window grows by `increase` packets per round trip and
//! is reduced once per round trip: to `decrease` of it after a loss or mark; or, for DCTCP (RFC 8257), by half the smoothed fraction
//! of marked packets.

use crate::drive::FRAMING;
use fullpipe_network::packet::Arena;
use fullpipe_network::queue::QueuedPacket;
use fullpipe_network::{
    CoDel, CoDelSpecification, DualPi2, DualPi2Specification, FqCoDel, FqCoDelSpecification, Limit, Packet,
    PacketContent, PacketHandle, Pie, PieDelayEstimator, PieSpecification, QueueDiscipline, Red, RedSpecification,
    StepMarker, StepMarkerSpecification, StepThreshold,
};
use fullpipe_units::{Duration, EcnCodepoint, FlowId, Instant, NodeId, RandomStream, Rate};
use std::collections::{BTreeMap, BTreeSet};

const IP_BYTES: u32 = 1500;
const WIRE_BYTES: u64 = (IP_BYTES + FRAMING) as u64;

#[derive(Clone, Copy)]
enum Control {
    /// Additive increase, multiplicative decrease.
    Aimd { increase: f64, decrease: f64 },
    /// Smoothed fraction of marked packets.
    Dctcp { share: f64 },
    /// Sends one packet every `gap_ns` nanoseconds, without response to losses or marks.
    Paced { gap_ns: u64 },
}

const RENO: Control = Control::Aimd { increase: 1.0, decrease: 0.5 };
/// CUBIC at the windows of these tests: its Reno-friendly region (RFC 9438 section 4.3).
const CUBIC: Control = Control::Aimd { increase: 3.0 * 0.3 / 1.7, decrease: 0.7 };

struct Source {
    control: Control,
    codepoint: EcnCodepoint,
    round_trip_ns: u64,
    window: f64,
    in_flight: u64,
    next: u64,
    slow_start: bool,
    /// No further reduction before a packet with this number is acknowledged.
    cut_until: u64,
    round_ends: u64,
    acknowledged: u64,
    marked: u64,
}

fn source(control: Control, codepoint: EcnCodepoint, round_trip_ms: u64) -> Source {
    Source {
        control,
        codepoint,
        round_trip_ns: round_trip_ms * 1_000_000,
        window: 10.0,
        in_flight: 0,
        next: 0,
        slow_start: true,
        cut_until: 0,
        round_ends: 10,
        acknowledged: 0,
        marked: 0,
    }
}

impl Source {
    fn congestion(&mut self, number: u64) {
        self.slow_start = false;
        if let Control::Aimd { decrease, .. } = self.control
            && number >= self.cut_until
        {
            self.window = (self.window * decrease).max(2.0);
            self.cut_until = self.next;
        }
    }

    fn acknowledge(&mut self, number: u64, marked: bool) {
        self.in_flight -= 1;
        self.acknowledged += 1;
        self.marked += u64::from(marked);
        if marked {
            self.congestion(number);
        }
        if self.slow_start {
            self.window += 1.0;
            return;
        }
        match &mut self.control {
            Control::Aimd { increase, .. } => self.window += *increase / self.window,
            Control::Dctcp { share } => {
                self.window += f64::from(!marked) / self.window;
                if number >= self.round_ends {
                    let fraction = self.marked as f64 / self.acknowledged as f64;
                    *share += (fraction - *share) / 16.0;
                    if self.marked > 0 {
                        self.window = (self.window * (1.0 - *share / 2.0)).max(2.0);
                    }
                    (self.marked, self.acknowledged, self.round_ends) = (0, 0, self.next);
                }
            }
            Control::Paced { .. } => {}
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Free,
    Acknowledgement { source: usize, number: u64, marked: bool },
    Loss { source: usize, number: u64 },
    Timer { source: usize },
}

/// Waiting times of each source's packets in the queue, from `warm_up` on, and the utilization of the link.
struct Result {
    waits: Vec<Vec<f64>>,
    utilisation: f64,
}

struct World {
    discipline: Box<dyn QueueDiscipline>,
    service_ns: u64,
    sources: Vec<Source>,
    events: BTreeSet<(u64, u64, Event)>,
    sequence: u64,
    transmitting: bool,
    arena: Arena,
    inside: BTreeMap<PacketHandle, (usize, u64)>,
    dropped: Vec<QueuedPacket>,
}

impl World {
    fn at(&mut self, at: u64, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence, event));
    }

    fn send(&mut self, now: u64, index: usize) {
        let source = &mut self.sources[index];
        let content = PacketContent::Udp { payload_bytes: IP_BYTES - 28 };
        let mut packet = Packet::new(FlowId(index as u32), NodeId(1), IP_BYTES, content);
        packet.codepoint = source.codepoint;
        let number = source.next;
        source.next += 1;
        source.in_flight += 1;
        let handle = self.arena.insert(packet);
        self.inside.insert(handle, (index, number));
        let at = Instant::from_nanos(now);
        let queued = QueuedPacket::new(handle, &packet, IP_BYTES + FRAMING, at);
        let refused = self.discipline.enqueue(at, queued, &mut self.dropped).err();
        self.dropped.extend(refused);
    }

    fn fill(&mut self, now: u64, index: usize) {
        while (self.sources[index].in_flight as f64) < self.sources[index].window.floor() {
            self.send(now, index);
        }
    }

    fn settle_drops(&mut self, now: u64) {
        for packet in std::mem::take(&mut self.dropped) {
            self.arena.release(packet.handle);
            let (source, number) = self.inside.remove(&packet.handle).unwrap();
            self.at(now + self.sources[source].round_trip_ns, Event::Loss { source, number });
        }
    }
}

fn simulate(
    discipline: Box<dyn QueueDiscipline>,
    rate: Rate,
    sources: Vec<Source>,
    warm_up_s: u64,
    end_s: u64,
) -> Result {
    let service_ns = rate.transmission_time(WIRE_BYTES).as_nanos();
    let count = sources.len();
    let mut world = World {
        discipline,
        service_ns,
        sources,
        events: BTreeSet::new(),
        sequence: 0,
        transmitting: false,
        arena: Arena::default(),
        inside: BTreeMap::new(),
        dropped: Vec::new(),
    };
    let mut result = Result { waits: vec![Vec::new(); count], utilisation: 0.0 };
    // The sources start at different times.
    let mut starts = RandomStream::new(1, "sources", "start");
    for source in 0..count {
        let start = starts.uniform_below(500_000_000);
        world.at(start, Event::Timer { source });
    }
    let (warm_up, end) = (warm_up_s * 1_000_000_000, end_s * 1_000_000_000);
    let mut sent = 0;
    while let Some((now, _, event)) = world.events.pop_first() {
        if now > end {
            break;
        }
        match event {
            Event::Free => world.transmitting = false,
            Event::Acknowledgement { source, number, marked } => {
                world.sources[source].acknowledge(number, marked);
                if !matches!(world.sources[source].control, Control::Paced { .. }) {
                    world.fill(now, source);
                }
            }
            Event::Loss { source, number } => {
                world.sources[source].in_flight -= 1;
                world.sources[source].congestion(number);
                if !matches!(world.sources[source].control, Control::Paced { .. }) {
                    world.fill(now, source);
                }
            }
            Event::Timer { source } => match world.sources[source].control {
                Control::Paced { gap_ns } => {
                    world.send(now, source);
                    world.at(now + gap_ns, Event::Timer { source });
                }
                _ => world.fill(now, source),
            },
        }
        world.settle_drops(now);
        if !world.transmitting {
            let next = world.discipline.dequeue(Instant::from_nanos(now), &mut world.dropped);
            world.settle_drops(now);
            if let Some(packet) = next {
                world.transmitting = true;
                world.at(now + world.service_ns, Event::Free);
                let (source, number) = world.inside.remove(&packet.handle).unwrap();
                world.arena.release(packet.handle);
                let acknowledged = now + world.service_ns + world.sources[source].round_trip_ns;
                let marked = packet.codepoint == EcnCodepoint::Ce;
                world.at(acknowledged, Event::Acknowledgement { source, number, marked });
                if now >= warm_up {
                    sent += 1;
                    result.waits[source].push((now - packet.since.as_nanos()) as f64 * 1e-6);
                }
            }
        }
    }
    result.utilisation = (sent * world.service_ns) as f64 / (end - warm_up) as f64;
    result
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[(share * (sorted.len() - 1) as f64) as usize]
}

fn many(control: Control, codepoint: EcnCodepoint, round_trip_ms: u64, count: usize) -> Vec<Source> {
    (0..count).map(|_| source(control, codepoint, round_trip_ms)).collect()
}

#[test]
fn codel_holds_its_target_if_one_drop_per_interval_is_sufficient() {
    // RFC 8289 section 4.3: TARGET, 5 ms, is the acceptable standing delay. Load: 20 Reno flows of 100 ms over 100 Mbit/s,
    // C = 8234 packets/s. By TCP's throughput law (Mathis et al. 1997) each needs p = 1.5 / W^2 with W = C (RTT + 5 ms) / 20 =
    // 43 packets: p C = 6.6 drops per second. The control law's first step gives one per INTERVAL, 10 per second, which is sufficient
    // without the shorter intervals (and overshoot) of later steps.
    let discipline = Box::new(CoDel::new(Limit::Packets(1000), CoDelSpecification::default()));
    let sources = many(RENO, EcnCodepoint::NotEct, 100, 20);
    let result = simulate(discipline, Rate::from_megabits_per_second(100), sources, 20, 80);
    let waits = result.waits.concat();
    assert!((mean(&waits) - 5.0).abs() < 1.0, "{}", mean(&waits));
    assert!((quantile(&waits, 0.5) - 5.0).abs() < 1.0, "{}", quantile(&waits, 0.5));
    assert!(result.utilisation > 0.98, "{}", result.utilisation);
}

#[test]
fn codel_holds_its_target_with_marks() {
    let settings = CoDelSpecification { ecn: true, ..CoDelSpecification::default() };
    let discipline = Box::new(CoDel::new(Limit::Packets(1000), settings));
    let sources = many(RENO, EcnCodepoint::Ect0, 100, 20);
    let result = simulate(discipline, Rate::from_megabits_per_second(100), sources, 20, 80);
    let waits = result.waits.concat();
    assert!((mean(&waits) - 5.0).abs() < 1.0, "{}", mean(&waits));
}

#[test]
fn pie_holds_its_target_at_any_load() {
    // RFC 8033 section 4.2: the integral has no steady-state error; the target is 15 ms. With W = C (RTT + 15 ms) / N and
    // p = 1.5 / W^2 the loads need 5 % (10 flows of 50 ms at 10 Mbit/s), 0.2 % (at 50 Mbit/s) and 5 % (50 flows).
    for delay in [PieDelayEstimator::Timestamps, PieDelayEstimator::DepartureRate { threshold_bytes: 16_384 }] {
        for (megabits, count) in [(10, 10), (50, 10), (50, 50)] {
            let discipline = Box::new(Pie::new(
                PieSpecification { delay, ..PieSpecification::default() },
                RandomStream::new(1, "link", "pie"),
            ));
            let sources = many(RENO, EcnCodepoint::NotEct, 50, count);
            let result = simulate(discipline, Rate::from_megabits_per_second(megabits), sources, 20, 80);
            let waits = result.waits.concat();
            assert!((mean(&waits) - 15.0).abs() < 0.1 * 15.0, "{delay:?} {megabits} {count}: {}", mean(&waits));
            assert!(result.utilisation > 0.99, "{}", result.utilisation);
        }
    }
}

#[test]
fn adaptive_red_holds_its_average_in_the_target_range() {
    // Floyd, Gummadi and Shenker 2001, section 5: the average stays within the middle fifth of the thresholds at any
    // load. At 20 Mbit/s and a target delay of 20 ms: C = 1667 packets/s, thresholds 16.7 and 50, range 30 to 36.7
    // packets, which depart in 18.2 to 22.3 ms (a packet of 1518 bytes takes 0.607 ms).
    for count in [10, 40] {
        let rate = Rate::from_megabits_per_second(20);
        let settings = RedSpecification::adaptive(Limit::Packets(500), rate, Duration::from_millis(20));
        let discipline = Box::new(Red::new(settings, RandomStream::new(1, "link", "red")));
        let result = simulate(discipline, rate, many(RENO, EcnCodepoint::NotEct, 50, count), 40, 120);
        let waits = result.waits.concat();
        assert!((18.2..22.3).contains(&mean(&waits)), "{count} flows: {}", mean(&waits));
    }
}

#[test]
fn a_sparse_flow_waits_only_for_the_packet_in_transmission() {
    // RFC 8290 section 3.1: a flow whose queue empties within a round is new each time it sends, and has priority. In addition to
    // 5 flows that fill the link, one flow sends a packet every 50 ms (a round of five packets of 1.2 ms each is over long before). Its
    // packet
    // waits for the rest of the packet in transmission: 1518 bytes at 10 Mbit/s take 1.214 ms, on average half: 0.607 ms. That is
    // exact if the five queues are never empty (a fixed window of 60 packets). Queues of Reno flows are sometimes empty, and these flows
    // are
    // then new themselves for a packet.
    let stubborn = Control::Aimd { increase: 0.0, decrease: 1.0 };
    for (bulk, tolerance) in [(stubborn, 0.02), (RENO, 0.2)] {
        let mut sources = many(bulk, EcnCodepoint::NotEct, 50, 5);
        sources.iter_mut().for_each(|source| (source.window, source.slow_start) = (60.0, false));
        // Not a multiple of the transmission time of a packet.
        sources.push(source(Control::Paced { gap_ns: 50_123_457 }, EcnCodepoint::NotEct, 50));
        let settings = FqCoDelSpecification { quantum_bytes: IP_BYTES, ..FqCoDelSpecification::default() };
        let discipline = Box::new(FqCoDel::new(settings));
        let result = simulate(discipline, Rate::from_megabits_per_second(10), sources, 10, 130);
        let sparse = &result.waits[5];
        assert!(sparse.len() > 2000 && result.utilisation > 0.99);
        assert!((mean(sparse) - 0.607).abs() < tolerance * 0.607, "{}", mean(sparse));
        // The other flows wait for their own queues, about the target of 5 ms or more.
        assert!(mean(&result.waits[0]) > 4.0, "{}", mean(&result.waits[0]));
    }
}

#[test]
fn dctcp_oscillates_just_below_the_threshold() {
    // Alizadeh et al. 2010, section 3.3: with N synchronized flows the queue reaches K + N and falls by the amplitude
    // A = sqrt(2 N (C RTT + K)) / 2 below that. 2 flows, 1 Gbit/s (82.3 packets per millisecond), RTT 1 ms, K = 40 (more
    // than C RTT / 7 = 12, so that the queue does not become empty): at most 42, A = 11. The packet in transmission and
    // acknowledgments that arrive together add a packet or two.
    let settings =
        StepMarkerSpecification { threshold: StepThreshold::Packets(40), ..StepMarkerSpecification::default() };
    let rate = Rate::from_megabits_per_second(1000);
    let sources = many(Control::Dctcp { share: 1.0 }, EcnCodepoint::Ect0, 1, 2);
    let result = simulate(Box::new(StepMarker::new(settings)), rate, sources, 2, 7);
    let packets: Vec<f64> = result.waits.concat().iter().map(|wait| wait / 0.012144).collect();
    assert!(result.utilisation > 0.999, "{}", result.utilisation);
    assert!(quantile(&packets, 1.0) <= 44.5, "{}", quantile(&packets, 1.0));
    let mean = mean(&packets);
    assert!((42.0 - 2.0 * 11.0..42.0).contains(&mean), "{mean}");
}

#[test]
fn dual_pi2_keeps_scalable_flows_below_a_millisecond_beside_classic_ones() {
    // RFC 9332 section 1.4: L4S traffic waits less than 1 ms, while classic traffic keeps its target, 15 ms.
    // Rates: CUBIC in its Reno-friendly region has a window of 1.22 / sqrt(p_C) = 1.22 / p' (RFC 9438 section 4.3,
    // Mathis et al.), DCTCP of 2 / p_L = 2 / (k p') = 1 / p' (RFC 9332 section 2.1), over round trips of 10 + 15 and 10.2
    // ms: the ratio of the rates is (1 / 10.2) / (1.22 / 25) = 2.0.
    let rate = Rate::from_megabits_per_second(100);
    let settings = DualPi2Specification::for_path(rate, Duration::from_millis(15), Duration::from_millis(100));
    let mut sources = many(CUBIC, EcnCodepoint::NotEct, 10, 2);
    sources.extend(many(Control::Dctcp { share: 1.0 }, EcnCodepoint::Ect1, 10, 2));
    let result = simulate(Box::new(DualPi2::new(settings)), rate, sources, 20, 80);
    let classic = result.waits[..2].concat();
    let l4s = result.waits[2..].concat();
    assert!(quantile(&l4s, 0.5) < 1.0 && quantile(&l4s, 0.99) < 1.0, "{}", quantile(&l4s, 0.99));
    assert!((mean(&classic) - 15.0).abs() < 0.1 * 15.0, "{}", mean(&classic));
    let ratio = l4s.len() as f64 / classic.len() as f64;
    assert!((ratio - 2.0).abs() < 0.2 * 2.0, "{ratio}");
    assert!(result.utilisation > 0.99, "{}", result.utilisation);
}
