//! The auditors with links whose rate changes and that lose, corrupt, duplicate and reorder: correct links pass, faulty ones fail.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Send, World};
use fullpipe_audit::{
    Auditor, DeclaredFlow, DeclaredLink, EndState, FlowEnd, LinkEnd, Medium, PacketAuditor, Published, Variation,
    Verdict,
};
use fullpipe_network::network::Remaining;
use fullpipe_network::{
    Corruption, Course, Duplication, Errors, Fault, GilbertElliott, Impairments, Jitter, JitterDistribution, Limit,
    LinkSpecification, Network, Reordering, Schedule, Step, Trace,
};
use fullpipe_record::FlowMonitor;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId, Rate, Stream};

struct End<'a>(&'a Remaining, &'a FlowMonitor);

impl EndState for End<'_> {
    fn link(&self, link: LinkId) -> LinkEnd {
        let (queued_frames, queued_bytes) = self.0.queued_per_link[link.index()];
        LinkEnd { queued_frames, queued_bytes }
    }
    fn flow(&self, flow: FlowId) -> FlowEnd {
        let (in_flight_packets, in_flight_bytes) = self.0.packets_per_flow.get(&flow).copied().unwrap_or_default();
        FlowEnd { in_flight_packets, in_flight_bytes, published: Some(Published::from(&self.1.flow(flow))) }
    }
}

/// Rate and least delay of both links.
const RATE_BPS: u64 = 8_000_000;
const DELAY_NS: u64 = 100_000;

/// A host, the link under test, a router, a plain link, a host; 4000 packets in bursts, for up to `end_ms`.
fn audit(
    course: Course,
    impairments: Impairments,
    seed: u64,
    fault: Option<Fault>,
    promise: fullpipe_audit::Course,
) -> Verdict {
    let varies = Variation {
        course: promise,
        reorders: impairments.effects().reorders,
        duplicates: impairments.effects().duplicates,
    };
    let declare = |rate_bps, varies: Variation, special| DeclaredLink {
        name: "link".into(),
        medium: Medium::PointToPoint,
        rate_bps,
        delay_ns: DELAY_NS,
        delay_varies: special,
        varies,
        framing_bytes: 2,
        min_frame_bytes: 0,
        mtu_bytes: 1500,
        queue: None,
    };
    // The highest rate of the steps below is 16 Mbit/s.
    let links = vec![declare(2 * RATE_BPS, varies, true), declare(RATE_BPS, Variation::default(), false)];
    let links = if matches!(course, Course::Constant) {
        vec![DeclaredLink { rate_bps: RATE_BPS, ..links[0].clone() }, links[1].clone()]
    } else {
        links
    };
    let mut auditor = Auditor::new(links.clone());
    let mut packets = PacketAuditor::new(links);
    for (flow, path) in [(0, vec![LinkId(0), LinkId(1)]), (1, vec![])] {
        auditor.add_flow(FlowId(flow), &DeclaredFlow { path: path.clone(), ipv6: false });
        packets.add_flow(FlowId(flow), &DeclaredFlow { path, ipv6: false });
    }
    let mut monitor = FlowMonitor::new();
    monitor.grow(2);
    let mut network = Network::new((monitor, (auditor, packets)));
    for router in [false, true, false] {
        network.add_node(router);
    }
    for (from, course, impairments) in [(0, course, impairments), (1, Course::Constant, Impairments::default())] {
        network.add_link(LinkSpecification {
            from: NodeId(from),
            to: NodeId(from + 1),
            rate: Rate::from_bits_per_second(RATE_BPS),
            delay: Duration::from_nanos(DELAY_NS),
            mtu_bytes: 1500,
            framing_bytes: 2,
            queue: Limit::Packets(30),
            discipline: None,
            loss: None,
            course,
            impairments: impairments.build(seed, "link").1,
        });
    }
    let mut stream = Stream::new(seed, "script", "test");
    let mut at = 0;
    let script = (0..4000).map(|_| {
        at += stream.below(2_000_000);
        let ip_bytes = 28 + stream.below(1473) as u32;
        Send { at: Instant::from_nanos(at), flow: FlowId(0), from: NodeId(0), to: NodeId(2), ip_bytes, tcp: false }
    });
    let mut world = World::new(script.collect());
    world.declare(&mut network);
    if let Some(fault) = fault {
        network.inject(fault);
    }
    network.finish();
    let end = Instant::from_nanos(3_900_000_000);
    network.run(&mut world, end, end);
    let remaining = network.remaining();
    let (monitor, (auditor, packets)) = &mut network.observer;
    let end = End(&remaining, monitor);
    auditor.finish(&end).and(packets.finish(&end))
}

fn everything() -> Impairments {
    let nanoseconds = Duration::from_nanos;
    Impairments::default()
        .with(GilbertElliott { good_to_bad: 0.05, bad_to_good: 0.3, loss_good: 0.0, loss_bad: 0.5 })
        .with(Corruption { errors: Errors::PerBit(1e-5), delivered: true })
        .with(Duplication { probability: 0.1 })
        .with(Jitter {
            distribution: JitterDistribution::Exponential { mean: nanoseconds(2_000_000) },
            in_order: false,
        })
        .with(Reordering::Late { probability: 0.1, extra: nanoseconds(7_000_000) })
}

/// 8 Mbit/s until 5 ms, then each 50 ms: 16 Mbit/s for 20 ms, an outage of 10 ms, 4 Mbit/s for 20 ms.
fn steps() -> (Course, fullpipe_audit::Course) {
    let steps = [(5u64, 16u64), (25, 0), (35, 4)];
    let step = |(at, megabits)| Step {
        at: Duration::from_millis(at),
        rate: Some(Rate::from_megabits_per_second(megabits)),
        delay: None,
    };
    let schedule = Schedule::new(steps.map(step).to_vec(), Some(Duration::from_millis(50))).unwrap();
    let promise = fullpipe_audit::Course::Steps {
        first_bps: RATE_BPS,
        steps: steps.map(|(at, megabits)| (at * 1_000_000, megabits * 1_000_000)).to_vec(),
        repeat_ns: Some(50_000_000),
    };
    (Course::Steps(schedule), promise)
}

fn trace() -> (Course, fullpipe_audit::Course) {
    let trace = Trace::parse("0\n1\n1\n2\n4\n7\n7\n").unwrap();
    let at_ns = trace.opportunities().iter().map(|ms| ms * 1_000_000).collect();
    (Course::Trace(trace), fullpipe_audit::Course::Opportunities { at_ns, bytes: 1504 })
}

fn constant() -> (Course, fullpipe_audit::Course) {
    (Course::Constant, fullpipe_audit::Course::Constant)
}

#[test]
fn correct_links_pass_with_all_impairments() {
    for (course, promise) in [constant(), steps(), trace()] {
        for seed in 0..20 {
            for impairments in [Impairments::default(), everything()] {
                let verdict = audit(course.clone(), impairments, seed, None, promise.clone());
                assert!(verdict.passed(), "{course:?}, seed {seed}: {verdict}");
                assert!(verdict.checks_performed() > 20_000);
            }
        }
    }
}

#[test]
fn a_link_one_percent_above_its_declared_rate_fails() {
    for (course, promise) in [steps(), trace()] {
        for impairments in [Impairments::default(), everything()] {
            let verdict = audit(course.clone(), impairments, 1, Some(Fault::FastLink(LinkId(0))), promise.clone());
            assert!(verdict.failures.iter().any(|failure| failure.rule.name() == "link-rate"), "{course:?}: {verdict}");
        }
    }
}

#[test]
fn a_silent_drop_fails_in_the_presence_of_copies() {
    for (course, promise) in [constant(), steps(), trace()] {
        let fault = Fault::SilentDrop { link: LinkId(0), every: 1000 };
        let verdict = audit(course, everything(), 1, Some(fault), promise);
        assert!(verdict.failures.iter().any(|failure| failure.rule.name() == "flow-conservation"), "{verdict}");
    }
}

#[test]
fn undeclared_rate_steps_fail() {
    // Steps, where a constant rate was declared: at 16 Mbit/s the link is twice too fast.
    let (course, _) = steps();
    let eight = fullpipe_audit::Course::Steps { first_bps: RATE_BPS, steps: vec![], repeat_ns: None };
    let verdict = audit(course, Impairments::default(), 1, None, eight);
    assert!(verdict.failures.iter().any(|failure| failure.rule.name() == "link-rate"), "{verdict}");
}
