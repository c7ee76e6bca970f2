//! Impairments of a link, courses of its rate and a host's processing jitter, compared with closed forms and hand-computed times.
//!
//! Bounds are five standard deviations of the estimate, from the stated distribution.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Record, Recorder, Send, World, constant_rate};
use fullpipe_network::{
    Aggregation, Blackhole, Corruption, DeliveryTrace, Droplist, Duplication, ErrorRate, Fifo, FrameFilter,
    GilbertElliott, Impairments, Jitter, JitterDistribution, Limit, LinkProfile, LinkSchedule, LinkSpecification,
    Network, Policer, QueueDiscipline, Reordering, ScheduleStep,
};
use fullpipe_record::DropReason;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId, RandomStream, Rate};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn link(course: LinkProfile, impairments: Impairments, discipline: bool) -> LinkSpecification {
    LinkSpecification {
        from: NodeId(0),
        to: NodeId(1),
        rate: Rate::from_bits_per_second(8_000_000),
        delay: Duration::ZERO,
        mtu_bytes: 9000,
        framing_bytes: 2,
        queue: Limit::Packets(3),
        discipline: discipline.then(|| Box::new(Fifo::new(Limit::Packets(97))) as Box<dyn QueueDiscipline>),
        loss: None,
        course,
        impairments: impairments.build(7, "link").1,
    }
}

fn run(link: LinkSpecification, script: Vec<Send>) -> (Network<Recorder>, World) {
    let mut network = Network::new(Recorder::default());
    network.add_node(false);
    network.add_node(false);
    network.add_link(link);
    let mut world = World::new(script);
    world.declare(&mut network);
    network.finalize();
    let end = Instant::from_nanos(1 << 60);
    network.run(&mut world, end, end);
    network.observer.check_conservation(&network.remaining_packets());
    (network, world)
}

/// `count` packets that take 1 ms each, one every 1 ms, flow 0: without impairments the n-th (from 0) arrives at n + 1 ms.
fn steady(impairments: Impairments, count: u64) -> (Network<Recorder>, World) {
    let script = constant_rate(NodeId(0), NodeId(1), 998, Duration::from_nanos(MS), count);
    run(link(LinkProfile::Constant, impairments, false), script)
}

fn lost(network: &Network<Recorder>, count: u64) -> Vec<bool> {
    let mut lost = vec![false; count as usize];
    for record in &network.observer.records {
        if let Record::Dropped(at, ..) = record {
            lost[(at.as_nanos() / MS - 1) as usize] = true;
        }
    }
    lost
}

fn loss_and_burst(model: GilbertElliott) -> (f64, f64) {
    let count = 200_000;
    let impairments = Impairments::default().with(model);
    let (network, _) = steady(impairments, count);
    let lost = lost(&network, count);
    let total = lost.iter().filter(|lost| **lost).count() as f64;
    let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64 + f64::from(u8::from(lost[0]));
    (total / count as f64, total / bursts)
}

fn near(found: f64, expected: f64, bound: f64) {
    assert!((found - expected).abs() < bound, "expected {expected} +- {bound}, found {found}");
}

#[test]
fn gilbert_elliott_loss_and_bursts_match_its_markov_chain() {
    let model = GilbertElliott { good_to_bad: 0.02, bad_to_good: 0.25, loss_good: 0.001, loss_bad: 0.6 };
    // Bad state: 0.02 / 0.27 = 0.074074 of the time. Loss 0.925926 x 0.001 + 0.074074 x 0.6 = 0.045370. First loss of a burst:
    // 0.925926 x 0.999 x (0.98 x 0.001 + 0.02 x 0.6) + 0.074074 x 0.4 x (0.75 x 0.6 + 0.25 x 0.001) = 0.025347:
    // 1.78996 per burst.
    near(model.mean_loss(), 0.045370, 1e-6);
    near(model.mean_burst(), 1.78996, 1e-5);
    // Variance of the sum per frame: m (1 - m) + 2 x 0.599^2 x 0.074074 x 0.925926 x 0.73 / 0.27 = 0.0433 + 0.1331; 5
    // sigma of 200 000: 0.0047. Bursts: 5069, standard deviation below 1.5: 5 x 1.5 / 71 = 0.105.
    let (loss, burst) = loss_and_burst(model);
    near(loss, 0.045370, 0.0047);
    near(burst, 1.78996, 0.105);
    // Gilbert's model: bursts are geometric with mean 1 / 0.25 and standard deviation sqrt(0.75) / 0.25 = 3.46; 3704 of them.
    let simple = GilbertElliott { loss_good: 0.0, loss_bad: 1.0, ..model };
    near(simple.mean_burst(), 4.0, 1e-12);
    let (loss, burst) = loss_and_burst(simple);
    // Variance per frame: 0.06859 x (1 + 2 x 0.73 / 0.27) = 0.4395; 5 sigma: 0.0074.
    near(loss, 0.074074, 0.0074);
    near(burst, 4.0, 0.285);
}

#[test]
fn listed_frames_and_frames_in_black_holes_are_lost() {
    let droplist = Droplist { data_only: false, frames: FrameFilter::All, numbers: vec![7, 2, 2] };
    // Transmissions end at 1 ... 20 ms; those at 10 and 11 are in the hole, the one at 12 is not.
    let hole =
        Blackhole { from: Duration::from_nanos(10 * MS), until: Duration::from_nanos(12 * MS), ..Blackhole::default() };
    let impairments = Impairments::default().with(droplist).with(hole);
    let (network, _) = steady(impairments, 20);
    let lost = lost(&network, 20);
    let found: Vec<usize> = (1..=20).filter(|number| lost[number - 1]).collect();
    assert_eq!(found, [2, 7, 10, 11]);
    assert_eq!(network.link_counters(LinkId(0)).losses, 4);
}

#[test]
fn a_droplist_of_data_counts_only_data_packets() {
    // TCP segments of 40 bytes have no payload.
    let script = (0..9u64).map(|n| Send {
        at: Instant::from_nanos(n * MS),
        flow: FlowId(0),
        from: NodeId(0),
        to: NodeId(1),
        ip_bytes: if n % 3 == 0 { 40 } else { 140 },
        tcp: true,
    });
    let droplist = Droplist { data_only: true, frames: FrameFilter::All, numbers: vec![3] };
    let impairments = Impairments::default().with(droplist);
    let (network, _) = run(link(LinkProfile::Constant, impairments, false), script.collect());
    // With data are 1, 2, 4, 5, 7, 8; the third of them is number 4: 142 bytes after 4 ms: 4.142 ms.
    let drops: Vec<u64> = network
        .observer
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Dropped(at, _, _, Some(LinkId(0)), DropReason::Loss) => Some(at.as_nanos()),
            _ => None,
        })
        .collect();
    assert_eq!(drops, [4_142_000]);
}

#[test]
fn bit_errors_are_binomial_and_detected_at_the_link_or_at_the_destination() {
    let count = 100_000;
    let simulate = |delivered| {
        let corruption = Corruption { errors: ErrorRate::PerBit(1e-5), delivered };
        steady(Impairments::default().with(corruption), count).0
    };
    let (here, there) = (simulate(false), simulate(true));
    let drops = |network: &Network<Recorder>, at: Option<LinkId>| {
        network.observer.count(|r| matches!(r, Record::Dropped(_, _, _, link, DropReason::Corruption) if *link == at))
    };
    // 8000 bits: 1 - (1 - 1e-5)^8000 = 1 - e^-0.08000040 = 0.076884. Binomial: standard deviation sqrt(n p q) = 84.2.
    let found = drops(&here, Some(LinkId(0)));
    near(found as f64, 7688.4, 421.0);
    assert_eq!((drops(&here, None), drops(&there, Some(LinkId(0)))), (0, 0));
    assert_eq!(drops(&there, None), found);
    assert_eq!(there.link_counters(LinkId(0)).corrupted, found);
    // Probabilities so small that 1 - b rounds to 1.
    near(ErrorRate::PerBit(1e-18).frame_error_probability(1000) * 1e15, 8.0, 1e-9);
    near(ErrorRate::PerBit(1.0).frame_error_probability(1), 1.0, 1e-12);
}

#[test]
fn copies_are_binomial_and_follow_their_originals() {
    let count = 100_000;
    let (network, world) = steady(Impairments::default().with(Duplication { probability: 0.1 }), count);
    let copies = network.link_counters(LinkId(0)).duplicates;
    // Binomial(100 000, 0.1): standard deviation 94.9.
    near(copies as f64, 10_000.0, 474.0);
    assert_eq!(world.received.len() as u64, count + copies);
    let times = world.received_of(0);
    assert_eq!(times.windows(2).filter(|pair| pair[0] == pair[1]).count() as u64, copies);
    assert_eq!(network.arena.live_packets().count(), 0);
}

/// Returns the mean and the mean square of the jitter, in milliseconds.
fn moments(distribution: JitterDistribution, in_order: bool) -> (f64, f64) {
    let count = 100_000;
    let jitter = Jitter { distribution, in_order };
    let (network, world) = steady(Impairments::default().with(jitter), count);
    assert_eq!(world.received.len() as u64, count);
    let extra = network.observer.transmissions().map(|t| (t.6 - t.5).as_nanos() as f64 / MS as f64);
    extra.fold((0.0, 0.0), |(sum, squares), x| (sum + x / count as f64, squares + x * x / count as f64))
}

#[test]
fn jitter_has_the_moments_of_its_distribution() {
    let us = |us: u64| Duration::from_micros(us);
    // Uniform below 0.5 ms: mean 0.25, standard deviation 0.1443; 5 sigma of 100 000: 0.00228. Square: 1/12; x^2 has standard deviation
    // 0.25 sqrt(4/45) = 0.0745: 0.00118.
    let (mean, square) = moments(JitterDistribution::Uniform { max: us(500) }, true);
    near(mean, 0.25, 0.00228);
    near(square, 0.25 / 3.0, 0.00118);
    // Normal 0.5, 0.05 (ten standard deviations from 0): 5 sigma 0.00079. Square 0.2525, of x^2 about 2 x 0.5 x 0.05: 0.00080.
    let (mean, square) = moments(JitterDistribution::Normal { mean: us(500), deviation: us(50) }, true);
    near(mean, 0.5, 0.00079);
    near(square, 0.2525, 0.0008);
    // Its variance: 0.0025, standard deviation of the estimate 0.0025 sqrt(2 / n) = 1.1e-5.
    near(square - mean * mean, 0.0025, 5.6e-5);
    // Exponential 2 ms, out of order: 5 sigma 0.0316. Square 2 m^2 = 8; x^2 has standard deviation sqrt(20) m^2: 0.283.
    let (mean, square) = moments(JitterDistribution::Exponential { mean: us(2000) }, false);
    near(mean, 2.0, 0.0316);
    near(square, 8.0, 0.283);
}

#[test]
fn only_jitter_out_of_order_reorders() {
    for in_order in [true, false] {
        let distribution = JitterDistribution::Exponential { mean: Duration::from_nanos(3 * MS) };
        let jitter = Jitter { distribution, in_order };
        let (network, world) = steady(Impairments::default().with(jitter), 1000);
        let arrivals: Vec<Instant> = network.observer.transmissions().map(|t| t.6).collect();
        assert_eq!(arrivals.is_sorted(), in_order);
        // Hosts receive all packets in order of time in any case.
        let received = world.received_of(0);
        assert!(received.is_sorted() && received.len() == 1000);
    }
}

#[test]
fn reordered_frames_match_hand_computed_times_and_are_binomial() {
    let extra = Duration::from_nanos(10 * MS);
    let arrivals = |reordering, count| {
        let (network, _) = steady(Impairments::default().with(reordering), count);
        network.observer.transmissions().map(|t| (t.6 - t.5).as_nanos() / MS).collect::<Vec<_>>()
    };
    // netem's `reorder 100% gap 3`: two frames are late, the third is delivered immediately.
    let found = arrivals(Reordering::Early { probability: 1.0, gap: 3, extra }, 9);
    assert_eq!(found, [10, 10, 0, 10, 10, 0, 10, 10, 0]);
    let early = arrivals(Reordering::Early { probability: 0.25, gap: 1, extra }, 100_000);
    let late = arrivals(Reordering::Late { probability: 0.25, extra }, 100_000);
    // Binomial(100 000, 1/4): standard deviation 136.9.
    near(early.iter().filter(|late| **late == 0).count() as f64, 25_000.0, 685.0);
    near(late.iter().filter(|late| **late == 10).count() as f64, 25_000.0, 685.0);
}

#[test]
fn the_effect_of_one_impairment_does_not_depend_on_others() {
    let model = GilbertElliott { good_to_bad: 0.1, bad_to_good: 0.5, loss_good: 0.0, loss_bad: 0.5 };
    let alone = Impairments::default().with(Duplication { probability: 0.2 });
    let jitter = Jitter { distribution: JitterDistribution::Uniform { max: Duration::from_nanos(MS) }, in_order: true };
    let together = alone.clone().with(model).with(jitter);
    let copied = |impairments| {
        let (network, _) = steady(impairments, 2000);
        let finish: Vec<u64> = network.observer.transmissions().map(|t| t.5.as_nanos()).collect();
        let mut after = Vec::new();
        for record in &network.observer.records {
            if let Record::Duplicated(..) = record {
                after.push(network.observer.records.iter().position(|r| r == record).unwrap());
            }
        }
        (finish, after.len())
    };
    let (alone, together) = (copied(alone), copied(together));
    assert_eq!(alone.0, together.0);
    // Lost frames are not copied, so there are fewer copies and no additional ones.
    assert!(together.1 < alone.1, "{} {}", together.1, alone.1);
}

#[test]
fn records_depend_only_on_the_seed_and_the_name() {
    let late = Reordering::Late { probability: 0.3, extra: Duration::from_nanos(5 * MS) };
    let impairments = Impairments::default().with(Duplication { probability: 0.3 }).with(late);
    let records = |name: &str| {
        let mut specification = link(LinkProfile::Constant, Impairments::default(), false);
        specification.impairments = impairments.build(7, name).1;
        let script = constant_rate(NodeId(0), NodeId(1), 998, Duration::from_nanos(MS), 200);
        run(specification, script).0.observer.records
    };
    assert_eq!(records("a"), records("a"));
    assert_ne!(records("a"), records("b"));
}

#[test]
fn a_trace_delivers_at_its_opportunities_with_and_without_a_discipline() {
    for discipline in [false, true] {
        // Opportunities at 2, 3, 3, 10 ms, then 12, 13, 13, 20. Frames of 1504 bytes at 0 (four), of 752 at 5 (three).
        let trace = LinkProfile::Trace(DeliveryTrace::parse("2\n3\n3\n10\n").unwrap());
        let packets = [(0, 1502), (0, 1502), (0, 1502), (0, 1502), (5, 750), (5, 750), (5, 750)];
        let script = packets.map(|(at, ip_bytes)| Send {
            at: Instant::from_nanos(at * MS),
            flow: FlowId(0),
            from: NodeId(0),
            to: NodeId(1),
            ip_bytes,
            tcp: false,
        });
        let mut specification = link(trace, Impairments::default(), discipline);
        specification.queue = Limit::Packets(if discipline { 3 } else { 4 });
        let (network, world) = run(specification, script.to_vec());
        // The first four use those at 2, 3, 3 and 10; two of the others share the one at 12.
        assert_eq!(world.received_of(0), [2, 3, 3, 10, 12, 12, 13].map(|ms| ms * MS), "{discipline}");
        let starts: Vec<u64> = network.observer.transmissions().map(|t| t.4.as_nanos() / MS).collect();
        assert_eq!(starts, [2, 3, 3, 10, 12, 12, 13]);
    }
}

#[test]
fn a_queue_before_a_trace_obeys_its_limit() {
    let trace = LinkProfile::Trace(DeliveryTrace::parse("2\n").unwrap());
    let script = constant_rate(NodeId(0), NodeId(1), 1502, Duration::from_nanos(100), 5);
    let (network, world) = run(link(trace, Impairments::default(), false), script);
    // Three packets wait, two are dropped.
    assert_eq!(world.received_of(0), [2 * MS, 4 * MS, 6 * MS]);
    assert_eq!(network.link_counters(LinkId(0)).queue_drops, 2);
}

#[test]
fn an_outage_that_does_not_end_holds_frames_forever() {
    for discipline in [false, true] {
        let off = ScheduleStep {
            at: Duration::from_nanos(5 * MS / 2),
            rate: Some(Rate::from_bits_per_second(0)),
            delay: None,
        };
        let course = LinkProfile::Steps(LinkSchedule::new(vec![off], None).unwrap());
        let script = constant_rate(NodeId(0), NodeId(1), 998, Duration::from_nanos(MS), 20);
        let mut specification = link(course, Impairments::default(), false);
        specification.discipline =
            discipline.then(|| Box::new(Fifo::new(Limit::Packets(2))) as Box<dyn QueueDiscipline>);
        specification.queue = Limit::Packets(if discipline { 1 } else { 3 });
        let (network, world) = run(specification, script);
        assert_eq!(world.received_of(0), [MS, 2 * MS]);
        // One frame in transmission and three waiting; the other fourteen were dropped.
        assert_eq!(network.remaining_packets().queued_per_link, [(4, 4000)], "{discipline}");
        assert_eq!(network.link_counters(LinkId(0)).queue_drops, 14);
    }
}

#[test]
fn steps_of_delay_do_not_reorder_frames() {
    let step = |at: u64, delay: u64| ScheduleStep {
        at: Duration::from_nanos(at * MS),
        rate: None,
        delay: Some(Duration::from_nanos(delay * MS)),
    };
    let course = LinkProfile::Steps(LinkSchedule::new(vec![step(0, 10), step(3, 1), step(8, 4)], None).unwrap());
    let script = constant_rate(NodeId(0), NodeId(1), 998, Duration::from_nanos(MS), 15);
    let (_, world) = run(link(course, Impairments::default(), false), script);
    // Frames ending at 1, 2 take 10 ms: 11, 12. Those at 3 ... 7 take 1 ms: 4 ... 8, but not before 12. Those at 8 ... take 4 ms: 12 ...
    let expected = [11, 12, 12, 12, 12, 12, 12, 12, 13, 14, 15, 16, 17, 18, 19];
    assert_eq!(world.received_of(0), expected.map(|ms| ms * MS));
}

#[test]
fn processing_jitter_delays_packets_and_keeps_their_order() {
    let count = 10_000;
    let mut network = Network::new(Recorder::default());
    network.add_node(false);
    network.add_node(false);
    network.add_link(link(LinkProfile::Constant, Impairments::default(), false));
    let limit = Duration::from_nanos(MS);
    network.set_processing_jitter(NodeId(0), limit, RandomStream::new(1, "host", "processing"));
    // Pairs of packets, 4 ms apart.
    let script = (0..count).map(|n| Send {
        at: Instant::from_nanos(n / 2 * 4 * MS),
        flow: FlowId(2 * (n as u32 % 2)),
        from: NodeId(0),
        to: NodeId(1),
        ip_bytes: 98,
        tcp: false,
    });
    let mut world = World::new(script.collect());
    world.declare(&mut network);
    network.finalize();
    let end = Instant::from_nanos(1 << 60);
    network.run(&mut world, end, end);
    let sent: Vec<(u64, u32)> = network
        .observer
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Sent(at, flow, _) => Some((at.as_nanos(), flow.0)),
            _ => None,
        })
        .collect();
    assert_eq!(sent.len() as u64, count);
    let (mut first, mut second) = (0.0, 0.0);
    for (number, pair) in sent.chunks(2).enumerate() {
        let delay = |at: u64| at - number as u64 * 4 * MS;
        assert_eq!((pair[0].1, pair[1].1), (0, 2));
        assert!(pair[0].0 <= pair[1].0 && delay(pair[1].0) <= MS);
        first += delay(pair[0].0) as f64 / MS as f64 / (count / 2) as f64;
        second += delay(pair[1].0) as f64 / MS as f64 / (count / 2) as f64;
    }
    // Uniform: 1/2, standard deviation 0.2887. The second is the larger of two: 2/3, standard deviation 0.2357. Of 5000: 0.0204, 0.0167.
    near(first, 0.5, 0.0204);
    near(second, 2.0 / 3.0, 0.0167);
    network.observer.check_conservation(&network.remaining_packets());
}

/// Returns when packets of 998 bytes are sent at these times (ms, ascending), and arrive at the end of transmission 1 ms later.
fn at_milliseconds(times: impl IntoIterator<Item = u64>) -> Vec<Send> {
    let send = |ms| Send {
        at: Instant::from_nanos(ms * MS),
        flow: FlowId(0),
        from: NodeId(0),
        to: NodeId(1),
        ip_bytes: 998,
        tcp: false,
    };
    times.into_iter().map(send).collect()
}

#[test]
fn a_policer_passes_its_burst_and_then_its_rate() {
    let policer = |megabits: u64, burst_bytes| {
        let rate = Rate::from_megabits_per_second(megabits);
        Impairments::default().with(Policer { rate, burst_bytes })
    };
    let policed = |network: &Network<Recorder>| {
        network.observer.count(|r| matches!(r, Record::Dropped(_, _, _, Some(LinkId(0)), DropReason::Policer)))
    };
    // 1000 frames of 1000 bytes at 8 Mbit/s, policed to 3 Mbit/s. From the end of the first frame, at which the bucket is full, to the
    // end of the last one it gains 999 ms x 375 bytes/ms = 374 625 bytes. With 20 000 at the start that suffices for 394 frames
    // and 625 bytes more.
    let (network, world) = steady(policer(3, 20_000), 1000);
    assert_eq!((world.received.len(), policed(&network)), (394, 606));
    assert_eq!(network.link_counters(LinkId(0)).losses, 606);
    // The first frame dropped is the 32nd: by its end the bucket has had 20 000 + 31 x 375 = 31 625 bytes, of which 31 frames took all
    // but 625.
    let arrivals = world.received_of(0);
    assert_eq!(arrivals[30], 31 * MS);
    assert!(arrivals[31] > 32 * MS, "{}", arrivals[31]);
    // A frame larger than the bucket never passes, and one as large passes whenever the bucket is full.
    assert_eq!(steady(policer(100, 999), 50).1.received.len(), 0);
    assert_eq!(steady(policer(8, 1000), 50).1.received.len(), 50);
    // After a long pause the bucket holds one burst, not more: of ten frames in succession three pass, and one more by the
    // 9 x 125 bytes that it gains meanwhile.
    let script = at_milliseconds((0..10).chain(1000..1010));
    let (network, world) = run(link(LinkProfile::Constant, policer(1, 3000), false), script);
    let late = world.received_of(0).into_iter().filter(|at| *at > 1000 * MS).count();
    assert_eq!((late, policed(&network)), (4, 12));
}

#[test]
fn frames_are_held_until_a_burst_is_complete_or_its_timeout() {
    let aggregate = |frames, timeout_ms, count| {
        let timeout = Duration::from_millis(timeout_ms);
        let (_, world) = steady(Impairments::default().with(Aggregation::Frames { frames, timeout }), count);
        world.received_of(0).into_iter().map(|at| at / MS).collect::<Vec<_>>()
    };
    // The n-th frame is there at n ms. Bursts of four; the last two frames wait for the timeout of the 9th, at 9 + 30 ms.
    assert_eq!(aggregate(4, 30, 10), [4, 4, 4, 4, 8, 8, 8, 8, 39, 39]);
    // The timeout of 2 ms ends bursts after three frames, of which the third comes at that time.
    assert_eq!(aggregate(4, 2, 7), [3, 3, 3, 6, 6, 6, 9]);
    assert_eq!(aggregate(1, 30, 3), [1, 2, 3]);
    assert_eq!(aggregate(4, 0, 3), [1, 2, 3]);
    // Lost frames do not count: the second and fourth are lost, so that the burst has the first, third, fifth and sixth.
    let impairments = Impairments::default()
        .with(Droplist { data_only: false, frames: FrameFilter::All, numbers: vec![2, 4] })
        .with(Aggregation::Frames { frames: 4, timeout: Duration::from_millis(30) });
    assert_eq!(steady(impairments, 6).1.received_of(0), [6 * MS; 4]);
}

/// Returns when frames that are there at these times (ms, ascending) are released, computed millisecond by millisecond.
fn released(there: &[u64], frames: usize, timeout_ms: u64) -> Vec<u64> {
    let (mut released, mut held) = (Vec::new(), Vec::new());
    for now in 0..=there.last().map_or(0, |last| last + timeout_ms) {
        for _ in there.iter().filter(|at| **at == now) {
            held.push(now);
            if held.len() == frames {
                released.extend(held.drain(..).map(|_| now));
            }
        }
        if held.first().is_some_and(|first| first + timeout_ms == now) {
            released.extend(held.drain(..).map(|_| now));
        }
    }
    released
}

proptest! {
    #[test]
    fn bursts_are_those_of_a_simulation_by_milliseconds(
        gaps in prop::collection::vec(1u64..6, 1..40),
        frames in 1usize..6,
        timeout_ms in 0u64..12,
        discipline in any::<bool>(),
    ) {
        let sent: Vec<u64> = gaps.iter().scan(0, |at, gap| { *at += gap; Some(*at) }).collect();
        let there: Vec<u64> = sent.iter().map(|at| at + 1).collect();
        let timeout = Duration::from_millis(timeout_ms);
        let hold = Impairments::default().with(Aggregation::Frames { frames: frames as u64, timeout });
        let (_, world) = run(link(LinkProfile::Constant, hold, discipline), at_milliseconds(sent));
        let arrivals: Vec<u64> = world.received_of(0).into_iter().map(|at| at / MS).collect();
        prop_assert_eq!(arrivals, released(&there, frames, timeout_ms));
    }
}
