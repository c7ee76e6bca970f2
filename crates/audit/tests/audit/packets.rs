//! The auditor of every packet: queues, hops, origins.

use crate::world::{Event, Link, Run, Traffic, World};
use fullpipe_audit::{
    AuditReport, Auditor, DeclaredFlow, DeclaredLink, DeclaredQueueLimit, MediumAccess, PacketAuditor, Rule,
};
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_units::{EcnCodepoint, FlowId, Instant, LinkId};

fn rules(verdict: &AuditReport) -> Vec<Rule> {
    verdict.failures.iter().map(|failure| failure.rule).collect()
}

fn count(verdict: &AuditReport, rule: Rule) -> u64 {
    verdict.checks.iter().find(|(other, _)| *other == rule).map_or(0, |(_, count)| *count)
}

/// A link of 1 Gbit/s without framing: 8 ns per byte.
fn link(queue: Option<DeclaredQueueLimit>) -> DeclaredLink {
    DeclaredLink { framing_bytes: 0, mtu_bytes: 1500, queue, ..Link::new(1_000_000_000, 1000, 0).declared }
}

/// Frames offered at once to one link. `frames` are (bytes, offered, start), in order of transmission; each is reported when
/// all were offered. `offers` are the bytes in order of the offers.
fn queue(declared: DeclaredLink, offers: &[u32], frames: &[(u32, u64, u64)]) -> Run {
    let mut run = Run { links: vec![declared.clone()], ..Run::default() };
    run.events.extend(offers.iter().map(|bytes| Event::Offered(LinkId(0), *bytes)));
    for &(wire_bytes, offered, start) in frames {
        let at = Instant::from_nanos;
        let finish = start + 8 * u64::from(wire_bytes);
        run.events.push(Event::Transmitted(Transmission {
            link: LinkId(0),
            flow: FlowId(0),
            wire_bytes,
            offered: at(offered),
            start: at(start),
            finish: at(finish),
            arrival: at(finish + declared.delay_ns),
        }));
    }
    run
}

#[test]
fn frames_depart_in_order_of_arrival() {
    let right = queue(link(None), &[100, 200, 300], &[(100, 0, 0), (200, 1, 800), (300, 1, 2400)]);
    assert!(right.packets().passed());
    assert_eq!(count(&right.packets(), Rule::QueueOrder), 3);
    // 300 before 200: in order of arrival it is the wrong frame.
    let swapped = queue(link(None), &[100, 200, 300], &[(100, 0, 0), (300, 1, 800), (200, 1, 3200)]);
    assert_eq!(rules(&swapped.packets()), [Rule::QueueOrder]);
    assert!(swapped.streaming().passed(), "{}", swapped.streaming());
    // Frames of the same size, distinguished by their arrival times.
    let swapped = queue(link(None), &[100, 100], &[(100, 7, 7), (100, 6, 807)]);
    assert_eq!(rules(&swapped.packets()), [Rule::QueueOrder]);
    // A frame that was not offered.
    let invented = queue(link(None), &[100], &[(100, 0, 0), (100, 1, 800)]);
    assert_eq!(rules(&invented.packets()), [Rule::QueueOrder]);
}

#[test]
fn the_order_of_links_that_may_reorder_is_not_checked() {
    let limit = Some(DeclaredQueueLimit { packets: Some(1), bytes: None });
    let run = queue(link(limit), &[100, 200, 300], &[(100, 0, 0), (300, 1, 800), (200, 1, 3200)]);
    assert_eq!(rules(&run.packets()), [Rule::QueueOrder, Rule::QueueLimit]);
    let mut auditor = PacketAuditor::new(run.links.clone());
    auditor.allow_reordering(LinkId(0));
    for event in &run.events {
        match event {
            Event::Offered(link, bytes) => auditor.on_offered(Instant::ZERO, *link, *bytes),
            Event::Transmitted(frame) => auditor.on_transmitted(frame),
            _ => {}
        }
    }
    let verdict = auditor.finish(&run);
    assert!(verdict.passed(), "{verdict}");
}

#[test]
fn a_dropped_frame_must_be_the_one_that_arrived_last() {
    let mut run = queue(link(None), &[100, 200, 200], &[(100, 0, 0), (200, 1, 800)]);
    run.events.insert(3, Event::LinkDropped(LinkId(0), 200, DropReason::QueueFull));
    // A frame that is lost after transmission has left the queue before.
    run.events.push(Event::LinkDropped(LinkId(0), 200, DropReason::Loss));
    assert!(run.packets().passed(), "{}", run.packets());
    run.events.insert(4, Event::LinkDropped(LinkId(0), 150, DropReason::QueueFull));
    assert_eq!(rules(&run.packets()), [Rule::QueueOrder]);
}

#[test]
fn a_queue_holds_no_more_than_its_limit() {
    // The first frame starts at 0 and ends at 800. Two more arrive at 100 and 200 and wait. A fourth arrives at 800, when the second
    // starts, so that again two wait: at most two packets and 500 bytes.
    let frames = [(100, 0, 0), (200, 100, 800), (300, 200, 2400), (150, 800, 4800)];
    let offers = [100, 200, 300, 150];
    for (packets, bytes, expected) in [
        (Some(2), None, None),
        (Some(1), None, Some("expected at most 1 packet in the queue, found 2 packets")),
        (None, Some(500), None),
        (None, Some(499), Some("expected at most 499 bytes in the queue, found 500 bytes")),
    ] {
        let run = queue(link(Some(DeclaredQueueLimit { packets, bytes })), &offers, &frames);
        let verdict = run.packets();
        assert_eq!(count(&verdict, Rule::QueueLimit), 4);
        assert_eq!(verdict.failures.first().map(|failure| failure.message.as_str()), expected);
        assert!(verdict.failures.iter().all(|failure| failure.rule == Rule::QueueLimit));
        if expected.is_some() {
            // The time at which the third frame arrived.
            assert_eq!(verdict.failures[0].at.as_nanos(), 200);
        }
    }
}

#[test]
fn on_a_shared_medium_the_first_frame_waits_at_the_transmitter() {
    let medium = |packets| {
        let declared = DeclaredLink {
            medium: MediumAccess::HalfDuplex,
            ..link(Some(DeclaredQueueLimit { packets: Some(packets), bytes: None }))
        };
        queue(declared, &[100, 100, 100], &[(100, 0, 50), (100, 1, 2000), (100, 2, 5000)])
    };
    // At 2 all three frames wait, the first of them for the medium.
    assert!(medium(2).packets().passed());
    assert_eq!(rules(&medium(1).packets()), [Rule::QueueLimit]);
}

#[test]
fn a_network_with_another_queue_rate_or_delay_breaks_the_rule_of_that_property() {
    let world = |change: fn(&mut Link)| {
        let mut bottleneck = Link::new(10_000_000, 5_000_000, 20);
        change(&mut bottleneck);
        let right = vec![Link::new(1_000_000_000, 100_000, 1000), bottleneck];
        let left = vec![Link::new(1_000_000_000, 100_000, 1000)];
        let traffic = Traffic::Transfer { segments: 500, window: 60, initial: [5, 6] };
        World::new(right, Some(left), vec![traffic], 1).run(20_000_000_000, 3000)
    };
    assert_eq!(world(|_| {}).broken(), [""; 0]);
    assert_eq!(world(|link| link.queue_packets = 21).broken(), ["queue-limit"]);
    assert_eq!(world(|link| link.queue_packets = 19).broken(), [""; 0]);
    assert_eq!(world(|link| link.rate_bps = 9_900_000).broken(), [""; 0]);
    // If a link is too fast, so is the path.
    assert_eq!(world(|link| link.rate_bps = 10_100_000).broken(), ["link-rate", "path-time"]);
    assert_eq!(world(|link| link.rate_bps = 10_010_000).broken(), ["link-rate", "path-time"]);
    assert_eq!(world(|link| link.delay_ns = 4_999_999).broken(), ["propagation", "path-time"]);
    assert_eq!(world(|link| link.delay_ns = 5_000_001).broken(), ["propagation"]);
}

const FAST: u64 = 1_000_000_000;

/// Returns the run of one packet of 1000 bytes over two links without framing: offered at 0 and 9000 (8000 + 1000), delivered at 18 000.
fn two_hops() -> Run {
    let mut run = Run {
        links: vec![link(None), link(None)],
        flows: vec![(FlowId(0), DeclaredFlow { path: vec![LinkId(0), LinkId(1)], ipv6: false })],
        ..Run::default()
    };
    let packet =
        PacketView { flow: FlowId(0), ip_bytes: 1000, payload_bytes: 972, codepoint: EcnCodepoint::NotEct, tcp: None };
    run.events.push(Event::Sent(0, packet));
    for hop in 0..2 {
        let at = |nanoseconds| Instant::from_nanos(u64::from(hop) * 9000 + nanoseconds);
        run.events.push(Event::Offered(LinkId(hop), 1000));
        run.events.push(Event::Transmitted(Transmission {
            link: LinkId(hop),
            flow: FlowId(0),
            wire_bytes: 1000,
            offered: at(0),
            start: at(0),
            finish: at(8000),
            arrival: at(9000),
        }));
    }
    run.events.push(Event::Delivered(18_000, packet, 0));
    run
}

fn frame(run: &mut Run, index: usize) -> &mut Transmission {
    match &mut run.events[index] {
        Event::Transmitted(frame) => frame,
        other => panic!("{other:?} is not a transmission"),
    }
}

#[test]
fn a_packet_at_each_hop_arrived_over_the_previous_one() {
    let verdict = two_hops().packets();
    assert!(verdict.passed(), "{verdict}");
    // Two frames and one delivery.
    assert_eq!(count(&verdict, Rule::Hops), 3);
    // Offered to the second link a nanosecond before it arrived. The link waited, so its own times are correct.
    let mut run = two_hops();
    frame(&mut run, 4).offered = Instant::from_nanos(8_999);
    assert_eq!(rules(&run.packets()), [Rule::Hops]);
    assert!(run.streaming().passed());
    assert_eq!(
        run.packets().failures[0].message,
        format!(
            "expected a frame offered to link \"{FAST} bit/s\" at 8.999 us to have been sent or received there at this time, \
             found one of 1000 bytes that was not"
        )
    );
    // A different size on the second link.
    let mut run = two_hops();
    frame(&mut run, 4).wire_bytes = 999;
    assert!(rules(&run.packets()).contains(&Rule::Hops));
    // A smaller or larger size when the packet was sent.
    for ip_bytes in [999, 1001] {
        let mut run = two_hops();
        if let Event::Sent(_, packet) = &mut run.events[0] {
            packet.ip_bytes = ip_bytes;
        }
        assert!(rules(&run.packets()).contains(&Rule::Hops));
    }
    // Sent after it was offered.
    let mut run = two_hops();
    run.events[0] = match run.events[0] {
        Event::Sent(_, packet) => Event::Sent(1, packet),
        _ => panic!("the first event is `Sent`"),
    };
    assert!(rules(&run.packets()).contains(&Rule::Hops));
    // A frame that occurs twice at the second link.
    let mut run = two_hops();
    let mut again = *frame(&mut run, 4);
    for time in [&mut again.start, &mut again.finish, &mut again.arrival] {
        *time = Instant::from_nanos(time.as_nanos() + 8000);
    }
    run.events.push(Event::Offered(LinkId(1), 1000));
    run.events.push(Event::Transmitted(again));
    assert_eq!(rules(&run.packets()), [Rule::Hops]);
    assert!(run.streaming().passed());
}

/// 1060 bytes in an IPv6 packet; an MTU of 1000 leaves 952 beside headers of 48, so 1000 and 108 + 48 bytes are transmitted.
#[test]
fn ipv6_packets_are_fragmented_with_larger_headers_and_only_by_their_source() {
    let run = |ipv6: bool, path: &[u32]| {
        let mut links = vec![link(None), link(None)];
        links[path.len() - 1].mtu_bytes = 1000;
        let way = path.iter().map(|number| LinkId(*number)).collect();
        let mut run = Run { links, flows: vec![(FlowId(0), DeclaredFlow { path: way, ipv6 })], ..Run::default() };
        let packet = PacketView {
            flow: FlowId(0),
            ip_bytes: 1100,
            payload_bytes: 1052,
            codepoint: EcnCodepoint::NotEct,
            tcp: None,
        };
        run.events.push(Event::Sent(0, packet));
        let mut begin = 0;
        for number in path {
            let whole = path.len() - 1 > *number as usize;
            let mut start = begin;
            for wire_bytes in if whole { vec![1100] } else { vec![1000, 156] } {
                let finish = start + u64::from(wire_bytes) * 8;
                run.events.push(Event::Offered(LinkId(*number), wire_bytes));
                run.events.push(Event::Transmitted(Transmission {
                    link: LinkId(*number),
                    flow: FlowId(0),
                    wire_bytes,
                    offered: Instant::from_nanos(begin),
                    start: Instant::from_nanos(start),
                    finish: Instant::from_nanos(finish),
                    arrival: Instant::from_nanos(finish + 1000),
                }));
                start = finish;
            }
            begin = start + 1000;
        }
        run.events.push(Event::Delivered(begin, packet, 0));
        run.packets()
    };
    let verdict = run(true, &[0]);
    assert!(verdict.passed(), "{verdict}");
    assert_eq!(rules(&run(false, &[0])), [Rule::Hops]);
    assert_eq!(rules(&run(true, &[0, 1])), [Rule::Hops]);
}

#[test]
fn on_an_ethernet_a_packet_may_be_delayed() {
    // Sent at 0, offered at 400, transmitted at 500; on another link that would be a packet without origin.
    for (min_frame_bytes, medium, expected) in [
        (0, MediumAccess::PointToPoint, vec![Rule::Hops]),
        (64, MediumAccess::PointToPoint, vec![]),
        (0, MediumAccess::HalfDuplex, vec![]),
    ] {
        let declared = DeclaredLink { min_frame_bytes, medium, ..link(None) };
        let mut run = queue(declared, &[1000], &[(1000, 400, 500)]);
        run.flows.push((FlowId(0), DeclaredFlow { path: vec![LinkId(0)], ipv6: false }));
        let packet = PacketView {
            flow: FlowId(0),
            ip_bytes: 1000,
            payload_bytes: 972,
            codepoint: EcnCodepoint::NotEct,
            tcp: None,
        };
        run.events.insert(0, Event::Sent(0, packet));
        run.events.push(Event::Delivered(9500, packet, 0));
        assert_eq!(rules(&run.packets()), expected);
        // A packet must never be offered before it was sent.
        run.events[0] = Event::Sent(401, packet);
        assert!(rules(&run.packets()).contains(&Rule::Hops));
    }
}

#[test]
fn a_delayed_packet_stays_stored_when_a_later_packet_is_sent() {
    // Sent at 0 and at 400; the address is resolved at 400, and both are offered then.
    let declared = DeclaredLink { min_frame_bytes: 64, ..link(None) };
    let mut run = queue(declared, &[1000, 1000], &[(1000, 400, 400), (1000, 400, 8400)]);
    run.flows.push((FlowId(0), DeclaredFlow { path: vec![LinkId(0)], ipv6: false }));
    let packet =
        PacketView { flow: FlowId(0), ip_bytes: 1000, payload_bytes: 972, codepoint: EcnCodepoint::NotEct, tcp: None };
    run.events.splice(0..0, [Event::Sent(0, packet), Event::Sent(400, packet)]);
    run.events.extend([Event::Delivered(9400, packet, 0), Event::Delivered(17_400, packet, 400)]);
    let verdict = run.packets();
    assert!(verdict.passed(), "{verdict}");
}

#[test]
fn packets_that_arrived_together_are_distinguished_by_size() {
    // A packet of 300 bytes has waited since 0. At 400, packets of 500 and 1000 bytes arrive, and all three are offered, the largest first.
    let declared = DeclaredLink { min_frame_bytes: 64, ..link(None) };
    let frames = [(1000, 400, 400), (500, 400, 8400), (300, 400, 12_400)];
    let mut run = queue(declared, &[1000, 500, 300], &frames);
    run.flows.push((FlowId(0), DeclaredFlow { path: vec![LinkId(0)], ipv6: false }));
    let packet = |ip_bytes| PacketView {
        flow: FlowId(0),
        ip_bytes,
        payload_bytes: 0,
        codepoint: EcnCodepoint::NotEct,
        tcp: None,
    };
    let sent = [Event::Sent(0, packet(300)), Event::Sent(400, packet(500)), Event::Sent(400, packet(1000))];
    run.events.splice(0..0, sent);
    assert!(run.packets().passed(), "{}", run.packets());
    // The size of a packet equals that of its frame if the frame is not padded.
    run.events[2] = Event::Sent(400, packet(900));
    assert_eq!(rules(&run.packets()), [Rule::Hops]);
}

#[test]
fn a_packet_uses_only_its_path_and_is_delivered_at_its_end() {
    let mut run = two_hops();
    run.flows[0].1.path = vec![LinkId(0)];
    // The second link is not on the path, and the packet delivered at 18 000 did not arrive over the first link then.
    let verdict = run.packets();
    assert_eq!((rules(&verdict), verdict.failures[0].count), (vec![Rule::Hops], 2));
    let mut run = two_hops();
    run.events.truncate(3);
    run.events.push(two_hops().events[5].clone());
    assert_eq!(rules(&run.packets()), [Rule::Hops]);
}

#[test]
fn the_packet_after_a_dropped_one_is_matched_correctly() {
    let mut run = two_hops();
    let later: Vec<Event> = run.events.clone();
    run.events.truncate(3);
    let Event::Sent(_, packet) = later[0] else { panic!("the first event is `Sent`") };
    run.events.push(Event::Dropped(9000, packet, DropReason::QueueFull));
    let shift = 50_000;
    for event in later {
        run.events.push(match event {
            Event::Sent(at, packet) => Event::Sent(at + shift, packet),
            Event::Delivered(at, packet, sent) => Event::Delivered(at + shift, packet, sent + shift),
            Event::Transmitted(frame) => {
                let later = |time: Instant| Instant::from_nanos(time.as_nanos() + shift);
                Event::Transmitted(Transmission {
                    offered: later(frame.offered),
                    start: later(frame.start),
                    finish: later(frame.finish),
                    arrival: later(frame.arrival),
                    ..frame
                })
            }
            other => other,
        });
    }
    let verdict = run.packets();
    assert!(verdict.passed(), "{verdict}");
}

#[test]
fn a_delivered_packet_was_sent_with_the_same_fields_and_time() {
    // The send time differs; the packet differs; the packet arrives twice, or after it was dropped.
    let mut run = two_hops();
    let Event::Delivered(now, packet, _) = run.events[5] else { panic!("the last event is `Delivered`") };
    run.events[5] = Event::Delivered(now, packet, 1);
    assert_eq!(rules(&run.packets()), [Rule::Origin]);
    run.events[5] = Event::Delivered(now, PacketView { payload_bytes: 971, ..packet }, 0);
    assert_eq!(rules(&run.packets()), [Rule::Origin]);
    for extra in [Event::Delivered(now, packet, 0), Event::Dropped(now, packet, DropReason::Loss)] {
        let mut run = two_hops();
        run.events.insert(5, extra);
        assert!(rules(&run.packets()).contains(&Rule::Origin));
    }
    // Two equal packets that were sent at once may both arrive.
    let mut run = two_hops();
    run.flows[0].1.path.clear();
    run.events.insert(0, Event::Sent(0, packet));
    run.events.push(Event::Delivered(now, packet, 0));
    assert!(run.packets().passed(), "{}", run.packets());
}

#[test]
fn published_delays_are_computed_again() {
    // Three packets sent at 0, 10, 20 ns, received at 5, 18, 22: delays 5, 8, 2; jitter |8 - 5| + |2 - 8| = 9.
    let mut run = Run { flows: vec![(FlowId(0), DeclaredFlow::default())], ..Run::default() };
    let packet =
        PacketView { flow: FlowId(0), ip_bytes: 100, payload_bytes: 72, codepoint: EcnCodepoint::NotEct, tcp: None };
    for (sent, received) in [(0, 5), (10, 18), (20, 22)] {
        run.events.push(Event::Sent(sent, packet));
        run.events.push(Event::Delivered(received, packet, sent));
    }
    let mut published = fullpipe_audit::PublishedCounters::default();
    let times = &mut published.times;
    (times.delay_sum_ns, times.jitter_sum_ns) = (15, 9);
    (times.first_tx, times.last_tx) = (Instant::ZERO, Instant::from_nanos(20));
    (times.first_rx, times.last_rx) = (Instant::from_nanos(5), Instant::from_nanos(22));
    let mut end = fullpipe_audit::FinalFlowState { published: Some(published), ..Default::default() };
    run.flow_ends.insert(FlowId(0), end);
    assert!(run.packets().passed(), "{}", run.packets());
    end.published = Some(fullpipe_audit::PublishedCounters {
        times: fullpipe_audit::PublishedTimes { jitter_sum_ns: 8, ..published.times },
        ..published
    });
    run.flow_ends.insert(FlowId(0), end);
    assert_eq!(run.packets().failures[0].message, "expected jitter_sum = 9 ns in the records, found 8 ns");
}

/// Returns fragments of a datagram of 3000 bytes at an MTU of 1500: 2980 bytes of payload as 1480 + 1480 + 20.
fn pieces(frames: &[u32]) -> Run {
    let mut run = Run {
        links: vec![link(None)],
        flows: vec![(FlowId(0), DeclaredFlow { path: vec![LinkId(0)], ipv6: false })],
        ..Run::default()
    };
    let packet =
        PacketView { flow: FlowId(0), ip_bytes: 3000, payload_bytes: 2972, codepoint: EcnCodepoint::NotEct, tcp: None };
    run.events.push(Event::Sent(0, packet));
    let mut begin = 0;
    for &bytes in frames {
        let finish = begin + 8 * u64::from(bytes);
        run.events.push(Event::Offered(LinkId(0), bytes));
        run.events.push(Event::Transmitted(Transmission {
            link: LinkId(0),
            flow: FlowId(0),
            wire_bytes: bytes,
            offered: Instant::ZERO,
            start: Instant::from_nanos(begin),
            finish: Instant::from_nanos(finish),
            arrival: Instant::from_nanos(finish + 1000),
        }));
        begin = finish;
    }
    run.events.push(Event::Delivered(begin + 1000, packet, 0));
    run
}

#[test]
fn fragments_carry_no_more_than_the_packet() {
    assert!(pieces(&[1500, 1500, 40]).packets().passed());
    assert!(pieces(&[1500, 1500, 40]).streaming().passed());
    assert_eq!(rules(&pieces(&[1500, 1500, 41]).packets()), [Rule::Hops]);
    assert_eq!(rules(&pieces(&[1500, 1500, 40, 40]).packets()), [Rule::Hops]);
}

#[test]
fn the_verdicts_of_both_auditors_are_combined() {
    let mut run = two_hops();
    frame(&mut run, 2).arrival = Instant::from_nanos(9001);
    let verdict = run.streaming().merge(run.packets());
    assert_eq!(rules(&verdict), [Rule::Propagation, Rule::Hops]);
    // Both as a pair of observers.
    let mut both = (Auditor::new(run.links.clone()), PacketAuditor::new(run.links.clone()));
    both.on_offered(Instant::ZERO, LinkId(9), 1);
    assert!(!both.0.finish(&Run::default()).passed());
}

#[test]
fn a_hop_with_too_many_packets_is_not_checked() {
    // A million and one packets arrive and are dropped without a report before the first is forwarded: too many to store.
    let mut auditor = PacketAuditor::new(vec![link(None)]);
    auditor.add_flow(FlowId(0), &DeclaredFlow { path: vec![LinkId(0)], ipv6: false });
    let packet =
        PacketView { flow: FlowId(0), ip_bytes: 100, payload_bytes: 72, codepoint: EcnCodepoint::NotEct, tcp: None };
    let bound = 1 << 20;
    for number in 0..=bound {
        let now = Instant::from_nanos(number);
        auditor.on_sent(now, &packet);
        auditor.on_dropped(now, &packet, None, DropReason::Unreachable);
        auditor.on_offered(Instant::ZERO, LinkId(0), 100 + u32::from(number == bound));
    }
    let at = |nanoseconds| Instant::from_nanos(bound + nanoseconds);
    auditor.on_transmitted(&Transmission {
        link: LinkId(0),
        flow: FlowId(0),
        wire_bytes: 300,
        offered: at(7),
        start: at(7),
        finish: at(2407),
        arrival: at(3407),
    });
    let verdict = auditor.finish(&Run::default());
    assert!(verdict.passed(), "{verdict}");
}

#[test]
fn a_destination_with_too_many_arrivals_is_not_checked() {
    // A million and one frames arrive and are not delivered; then a packet is delivered that did not arrive.
    let mut auditor = PacketAuditor::new(vec![link(None)]);
    auditor.add_flow(FlowId(0), &DeclaredFlow { path: vec![LinkId(0)], ipv6: false });
    let packet =
        PacketView { flow: FlowId(0), ip_bytes: 100, payload_bytes: 72, codepoint: EcnCodepoint::NotEct, tcp: None };
    let bound = 1 << 20;
    for number in 0..=bound {
        let at = |nanoseconds| Instant::from_nanos(800 * number + nanoseconds);
        auditor.on_sent(at(0), &packet);
        auditor.on_offered(Instant::ZERO, LinkId(0), 100);
        auditor.on_transmitted(&Transmission {
            link: LinkId(0),
            flow: FlowId(0),
            wire_bytes: 100,
            offered: at(0),
            start: at(0),
            finish: at(800),
            arrival: at(1800),
        });
        if number < bound {
            auditor.on_dropped(at(1800), &packet, None, DropReason::Loss);
        }
    }
    auditor.on_delivered(Instant::from_nanos(1 << 40), &packet, Instant::from_nanos(800 * bound));
    let verdict = auditor.finish(&Run::default());
    assert!(verdict.passed(), "{verdict}");
}
