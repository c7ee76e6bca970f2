//! The auditors with links whose rate changes and that lose, corrupt, duplicate and reorder: correct links pass, faulty ones fail.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Send, World};
use fullpipe_audit::{
    AuditReport, Auditor, DeclaredFlow, DeclaredLink, FinalFlowState, FinalLinkState, FinalState, LinkVariation,
    MediumAccess, PacketAuditor, PublishedCounters,
};
use fullpipe_network::network::RemainingPackets;
use fullpipe_network::{
    Corruption, DeliveryTrace, Duplication, ErrorRate, Fault, GilbertElliott, Impairments, Jitter, JitterDistribution,
    Limit, LinkProfile, LinkSchedule, LinkSpecification, Network, Reordering, ScheduleStep,
};
use fullpipe_record::FlowMonitor;
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId, RandomStream, Rate};

struct End<'a>(&'a RemainingPackets, &'a FlowMonitor);

impl FinalState for End<'_> {
    fn link(&self, link: LinkId) -> FinalLinkState {
        let (queued_frames, queued_bytes) = self.0.queued_per_link[link.index()];
        FinalLinkState { queued_frames, queued_bytes }
    }
    fn flow(&self, flow: FlowId) -> FinalFlowState {
        let (in_flight_packets, in_flight_bytes) = self.0.packets_per_flow.get(&flow).copied().unwrap_or_default();
        FinalFlowState {
            in_flight_packets,
            in_flight_bytes,
            published: Some(PublishedCounters::from(&self.1.flow(flow))),
        }
    }
}

/// Rate and least delay of both links.
const RATE_BPS: u64 = 8_000_000;
const DELAY_NS: u64 = 100_000;

/// A host, the link under test, a router, a plain link, a host; 4000 packets in bursts, for up to `end_ms`.
fn audit(
    course: LinkProfile,
    impairments: Impairments,
    seed: u64,
    fault: Option<Fault>,
    promise: fullpipe_audit::RateProfile,
) -> AuditReport {
    let varies = LinkVariation {
        course: promise,
        reorders: impairments.effects().reorders,
        duplicates: impairments.effects().duplicates,
    };
    let declare = |rate_bps, varies: LinkVariation, special| DeclaredLink {
        name: "link".into(),
        medium: MediumAccess::PointToPoint,
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
    let links = vec![declare(2 * RATE_BPS, varies, true), declare(RATE_BPS, LinkVariation::default(), false)];
    let links = if matches!(course, LinkProfile::Constant) {
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
    monitor.reserve_flows(2);
    let mut network = Network::new((monitor, (auditor, packets)));
    for router in [false, true, false] {
        network.add_node(router);
    }
    for (from, course, impairments) in [(0, course, impairments), (1, LinkProfile::Constant, Impairments::default())] {
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
    let mut stream = RandomStream::new(seed, "script", "test");
    let mut at = 0;
    let script = (0..4000).map(|_| {
        at += stream.uniform_below(2_000_000);
        let ip_bytes = 28 + stream.uniform_below(1473) as u32;
        Send { at: Instant::from_nanos(at), flow: FlowId(0), from: NodeId(0), to: NodeId(2), ip_bytes, tcp: false }
    });
    let mut world = World::new(script.collect());
    world.declare(&mut network);
    if let Some(fault) = fault {
        network.inject_fault(fault);
    }
    network.finalize();
    let end = Instant::from_nanos(3_900_000_000);
    network.run(&mut world, end, end);
    let remaining = network.remaining_packets();
    let (monitor, (auditor, packets)) = &mut network.observer;
    let end = End(&remaining, monitor);
    auditor.finish(&end).merge(packets.finish(&end))
}

fn everything() -> Impairments {
    let nanoseconds = Duration::from_nanos;
    Impairments::default()
        .with(GilbertElliott { good_to_bad: 0.05, bad_to_good: 0.3, loss_good: 0.0, loss_bad: 0.5 })
        .with(Corruption { errors: ErrorRate::PerBit(1e-5), delivered: true })
        .with(Duplication { probability: 0.1 })
        .with(Jitter {
            distribution: JitterDistribution::Exponential { mean: nanoseconds(2_000_000) },
            in_order: false,
        })
        .with(Reordering::Late { probability: 0.1, extra: nanoseconds(7_000_000) })
}

/// 8 Mbit/s until 5 ms, then each 50 ms: 16 Mbit/s for 20 ms, an outage of 10 ms, 4 Mbit/s for 20 ms.
fn steps() -> (LinkProfile, fullpipe_audit::RateProfile) {
    let steps = [(5u64, 16u64), (25, 0), (35, 4)];
    let step = |(at, megabits)| ScheduleStep {
        at: Duration::from_millis(at),
        rate: Some(Rate::from_megabits_per_second(megabits)),
        delay: None,
    };
    let schedule = LinkSchedule::new(steps.map(step).to_vec(), Some(Duration::from_millis(50))).unwrap();
    let promise = fullpipe_audit::RateProfile::Steps {
        first_bps: RATE_BPS,
        steps: steps.map(|(at, megabits)| (at * 1_000_000, megabits * 1_000_000)).to_vec(),
        repeat_ns: Some(50_000_000),
    };
    (LinkProfile::Steps(schedule), promise)
}

fn trace() -> (LinkProfile, fullpipe_audit::RateProfile) {
    opportunities(DeliveryTrace::parse("0\n1\n1\n2\n4\n7\n7\n").unwrap())
}

/// The same trace from 2 ms on: 0, 2, 5, 5, 5, 6, 6 ms, repeated after 7 ms.
fn rotated_trace() -> (LinkProfile, fullpipe_audit::RateProfile) {
    let (LinkProfile::Trace(trace), _) = trace() else { panic!("a trace") };
    opportunities(trace.starting_at(Duration::from_millis(2)))
}

fn opportunities(trace: DeliveryTrace) -> (LinkProfile, fullpipe_audit::RateProfile) {
    let at_ns = trace.opportunities().iter().map(|ms| ms * 1_000_000).collect();
    let period_ns = trace.period().as_nanos();
    (LinkProfile::Trace(trace), fullpipe_audit::RateProfile::Opportunities { at_ns, period_ns, bytes: 1504 })
}

fn constant() -> (LinkProfile, fullpipe_audit::RateProfile) {
    (LinkProfile::Constant, fullpipe_audit::RateProfile::Constant)
}

#[test]
fn correct_links_pass_with_all_impairments() {
    for (course, promise) in [constant(), steps(), trace(), rotated_trace()] {
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
    let eight = fullpipe_audit::RateProfile::Steps { first_bps: RATE_BPS, steps: vec![], repeat_ns: None };
    let verdict = audit(course, Impairments::default(), 1, None, eight);
    assert!(verdict.failures.iter().any(|failure| failure.rule.name() == "link-rate"), "{verdict}");
}
