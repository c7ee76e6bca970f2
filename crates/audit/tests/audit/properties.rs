//! Random correct networks never fail; with one fault they always fail.

use crate::world::{Event, Link, Random, Run, Traffic, World};
use fullpipe_audit::{Auditor, DeclaredFlow};
use fullpipe_record::{Observer, PacketView, TcpView};
use fullpipe_units::{EcnCodepoint, FlowId, Instant};
use proptest::prelude::*;

/// Rates of dial-up lines, rates with fractions of a nanosecond per byte, and rates of fast links.
fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(56_000),
        Just(7_000_000),
        Just(100_000_000),
        Just(1_000_000_000),
        Just(10_000_000_000),
        Just(100_000_000_000),
        20_000u64..40_000_000_000,
    ]
}

fn link() -> impl Strategy<Value = Link> {
    (rate(), prop_oneof![Just(0), 0u64..20_000_000], 1usize..40, 0u64..6, any::<bool>(), 0u32..30).prop_map(
        |(rate, delay, queue, loss, late, framing)| {
            let mut link =
                Link { loss_percent: loss.saturating_sub(2), reports_late: late, ..Link::new(rate, delay, queue) };
            link.declared.framing_bytes = framing;
            link.declared.mtu_bytes = if framing % 3 == 0 { 576 + framing * 8 } else { 1500 };
            link
        },
    )
}

fn traffic() -> impl Strategy<Value = Traffic> {
    prop_oneof![
        (28u32..3000, 1u64..3_000_000)
            .prop_map(|(ip_bytes, interval_ns)| Traffic::Datagrams { ip_bytes, interval_ns: interval_ns.max(100_000) }),
        (28u32..1500, 1u64..60_000)
            .prop_map(|(ip_bytes, interval_ns)| Traffic::Datagrams { ip_bytes, interval_ns: interval_ns.max(1_000) }),
        (1u64..400, 1u64..40, any::<[u32; 2]>()).prop_map(|(segments, window, initial)| Traffic::Transfer {
            segments,
            window,
            initial
        }),
    ]
}

/// A correct run: chains of links in both directions, or one shared medium.
fn right_run() -> impl Strategy<Value = Run> {
    let ways = prop_oneof![
        3 => (prop::collection::vec(link(), 1..4), prop::collection::vec(link(), 1..4))
            .prop_map(|(right, left)| (right, Some(left))),
        1 => link().prop_map(|link| (vec![link.shared()], None)),
    ];
    (ways, prop::collection::vec(traffic(), 1..5), any::<u64>(), 1u64..400_000_000)
        .prop_map(|((right, left), traffic, seed, end)| World::new(right, left, traffic, seed).run(end, 1500))
}

/// Falsifies a run in one respect; `None` if the run has no such event.
type Fault = fn(&mut Run, &mut Random) -> Option<()>;

fn positions(run: &Run, wanted: impl Fn(&Event) -> bool) -> Vec<usize> {
    run.events.iter().enumerate().filter(|(_, event)| wanted(event)).map(|(index, _)| index).collect()
}

fn pick(run: &Run, random: &mut Random, wanted: impl Fn(&Event) -> bool) -> Option<usize> {
    let positions = positions(run, wanted);
    (!positions.is_empty()).then(|| positions[random.below(positions.len() as u64) as usize])
}

fn forget(run: &mut Run, random: &mut Random, wanted: impl Fn(&Event) -> bool) -> Option<()> {
    let index = pick(run, random, wanted)?;
    run.events.remove(index);
    Some(())
}

fn repeat(run: &mut Run, random: &mut Random, wanted: impl Fn(&Event) -> bool) -> Option<()> {
    let index = pick(run, random, wanted)?;
    let event = run.events[index].clone();
    run.events.insert(index, event);
    Some(())
}

fn change(run: &mut Run, random: &mut Random, wanted: impl Fn(&Event) -> bool, how: impl Fn(&mut Event)) -> Option<()> {
    let index = pick(run, random, wanted)?;
    how(&mut run.events[index]);
    Some(())
}

fn is_sent(event: &Event) -> bool {
    matches!(event, Event::Sent(..))
}
fn is_delivered(event: &Event) -> bool {
    matches!(event, Event::Delivered(..))
}
fn is_dropped(event: &Event) -> bool {
    matches!(event, Event::Dropped(..))
}
fn is_offered(event: &Event) -> bool {
    matches!(event, Event::Offered(..))
}
fn is_queue_drop(event: &Event) -> bool {
    matches!(event, Event::LinkDropped(_, _, reason) if *reason != fullpipe_record::DropReason::Loss)
}
fn is_transmitted(event: &Event) -> bool {
    matches!(event, Event::Transmitted(_))
}
fn acknowledges(event: &Event) -> bool {
    matches!(event, Event::Sent(_, packet) if packet.tcp.is_some_and(|tcp| tcp.has_ack))
}

fn earlier(instant: Instant, nanoseconds: u64) -> Option<Instant> {
    instant.as_nanos().checked_sub(nanoseconds).map(Instant::from_nanos)
}

/// Changes the times of a frame; `None` if a time would lie before the start.
fn retime(run: &mut Run, random: &mut Random, how: fn(&mut fullpipe_record::Transmission) -> Option<()>) -> Option<()> {
    let index = pick(run, random, is_transmitted)?;
    match &mut run.events[index] {
        Event::Transmitted(frame) => how(frame),
        _ => None,
    }
}

/// Faults that the auditor with constant state always detects (the other one may detect them as well).
const FAULTS_OF_STREAMS: &[(&str, Fault)] = &[
    ("a packet sent is not counted", |run, random| forget(run, random, is_sent)),
    ("a packet sent is counted twice", |run, random| repeat(run, random, is_sent)),
    ("a delivery is not counted", |run, random| forget(run, random, is_delivered)),
    ("a packet is delivered twice", |run, random| repeat(run, random, is_delivered)),
    ("a drop is not counted", |run, random| forget(run, random, is_dropped)),
    ("a drop is counted twice", |run, random| repeat(run, random, is_dropped)),
    ("a frame offered is not counted", |run, random| forget(run, random, is_offered)),
    ("a frame offered is counted twice", |run, random| repeat(run, random, is_offered)),
    ("a drop at a queue is not counted", |run, random| forget(run, random, is_queue_drop)),
    ("a drop at a queue is counted twice", |run, random| repeat(run, random, is_queue_drop)),
    ("a transmission is not counted", |run, random| forget(run, random, is_transmitted)),
    ("a transmission is counted twice", |run, random| repeat(run, random, is_transmitted)),
    ("a frame arrives a nanosecond early", |run, random| {
        retime(run, random, |frame| earlier(frame.arrival, 1).map(|arrival| frame.arrival = arrival))
    }),
    ("a frame arrives a nanosecond late", |run, random| {
        retime(run, random, |frame| {
            frame.arrival = frame.arrival.saturating_add(fullpipe_units::Duration::from_nanos(1));
            Some(())
        })
    }),
    // Two nanoseconds, because a byte time has a resolution of 2^-20 ns: an end on a whole nanosecond can be computed as slightly earlier.
    ("a frame ends two nanoseconds early", |run, random| {
        retime(run, random, |frame| {
            frame.arrival = earlier(frame.arrival, 2)?;
            frame.finish = earlier(frame.finish, 2)?;
            Some(())
        })
    }),
    ("a frame ends before it begins", |run, random| {
        retime(run, random, |frame| {
            let delay = frame.arrival - frame.finish;
            frame.finish = earlier(frame.start, 1)?;
            frame.arrival = frame.finish + delay;
            Some(())
        })
    }),
    ("a frame has a byte more", |run, random| {
        change(run, random, is_transmitted, |event| {
            if let Event::Transmitted(frame) = event {
                frame.wire_bytes += 1;
            }
        })
    }),
    ("a delivered packet has a byte less", |run, random| {
        change(run, random, is_delivered, |event| {
            if let Event::Delivered(_, packet, _) = event {
                packet.ip_bytes -= 1;
            }
        })
    }),
    ("a packet is delivered before it is sent", |run, random| {
        change(run, random, is_delivered, |event| {
            if let Event::Delivered(now, _, sent) = event {
                *sent = *now + 1;
            }
        })
    }),
    ("what was not sent is acknowledged", |run, random| {
        // More than any transfer here sends, and less than half of the number space.
        let ahead = 1_000_000 + random.below(1_000_000_000) as u32;
        change(run, random, acknowledges, |event| {
            if let Event::Sent(_, packet) = event
                && let Some(tcp) = &mut packet.tcp
            {
                tcp.acknowledgement = tcp.acknowledgement.wrapping_add(ahead);
            }
        })
    }),
    ("a frame is left in a queue at the end", |run, random| {
        let link = random.below(run.link_ends.len() as u64) as usize;
        run.link_ends[link].queued_frames += 1;
        Some(())
    }),
    ("a byte is left in a queue at the end", |run, random| {
        let link = random.below(run.link_ends.len() as u64) as usize;
        run.link_ends[link].queued_bytes += 1;
        Some(())
    }),
    ("a packet is left on the way at the end", |run, random| {
        let flow = FlowId(random.below(run.flows.len() as u64) as u32);
        run.flow_ends.get_mut(&flow)?.in_flight_packets += 1;
        Some(())
    }),
    ("a counter is off by one", |run, random| {
        let flow = FlowId(random.below(run.flows.len() as u64) as u32);
        let published = run.flow_ends.get_mut(&flow)?.published.as_mut()?;
        let counter = match random.below(5) {
            0 => &mut published.tx_packets,
            1 => &mut published.tx_bytes,
            2 => &mut published.rx_packets,
            3 => &mut published.rx_bytes,
            _ => &mut published.lost_packets,
        };
        *counter = if *counter > 0 && random.chance(50) { *counter - 1 } else { *counter + 1 };
        Some(())
    }),
    ("a flow is not declared", |run, random| {
        let index = pick(run, random, is_sent)?;
        let Event::Sent(_, packet) = &run.events[index] else { return None };
        let flow = packet.flow;
        run.flows.retain(|(other, _)| *other != flow);
        Some(())
    }),
];

/// Faults that only the auditor of every packet always detects.
const FAULTS_OF_PACKETS: &[(&str, Fault)] = &[
    ("a packet is delivered that was sent at another time", |run, random| {
        let index = pick(run, random, is_delivered)?;
        let times: Vec<u64> = run
            .events
            .iter()
            .filter_map(|event| if let Event::Sent(at, _) = event { Some(*at) } else { None })
            .collect();
        let Event::Delivered(_, _, sent) = &mut run.events[index] else { return None };
        *sent = sent.checked_sub(1)?;
        (!times.contains(sent)).then_some(())
    }),
    ("a segment is delivered as another", |run, random| {
        let segment = |event: &Event| matches!(event, Event::Delivered(_, packet, _) if packet.tcp.is_some());
        change(run, random, segment, |event| {
            if let Event::Delivered(_, packet, _) = event
                && let Some(tcp) = &mut packet.tcp
            {
                tcp.sequence = tcp.sequence.wrapping_sub(1);
            }
        })
    }),
    ("a packet is delivered a nanosecond late", |run, random| {
        let index = pick(run, random, is_delivered)?;
        let arrivals: Vec<u64> = run
            .events
            .iter()
            .filter_map(
                |event| if let Event::Transmitted(frame) = event { Some(frame.arrival.as_nanos()) } else { None },
            )
            .collect();
        let Event::Delivered(now, _, _) = &mut run.events[index] else { return None };
        *now += 1;
        (!arrivals.contains(now)).then_some(())
    }),
    ("a published time is off by one", |run, random| {
        let flow = FlowId(random.below(run.flows.len() as u64) as u32);
        let times = &mut run.flow_ends.get_mut(&flow)?.published.as_mut()?.times;
        let one = fullpipe_units::Duration::from_nanos(1);
        match random.below(6) {
            0 => times.delay_sum_ns += 1,
            1 => times.jitter_sum_ns += 1,
            2 => times.first_tx += one,
            3 => times.last_tx += one,
            4 => times.first_rx += one,
            _ => times.last_rx += one,
        }
        Some(())
    }),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_right_passes(run in right_run()) {
        let verdict = run.streaming();
        prop_assert!(verdict.passed(), "{verdict}");
        let verdict = run.packets();
        prop_assert!(verdict.passed(), "{verdict}");
    }

    #[test]
    fn one_fault_of_any_kind_fails(run in right_run(), seed: u64) {
        for (number, (name, fault)) in FAULTS_OF_STREAMS.iter().enumerate() {
            let mut wrong = run.clone();
            if fault(&mut wrong, &mut Random(seed ^ number as u64)).is_some() {
                prop_assert!(!wrong.streaming().passed(), "passed although {name}");
            }
        }
    }

    #[test]
    fn one_fault_of_a_packet_fails_packet_by_packet(run in right_run(), seed: u64) {
        for (number, (name, fault)) in FAULTS_OF_PACKETS.iter().enumerate() {
            let mut wrong = run.clone();
            if fault(&mut wrong, &mut Random(seed ^ number as u64)).is_some() {
                prop_assert!(!wrong.packets().passed(), "passed although {name}");
            }
        }
    }

    /// The auditor returns a verdict for any sequence of events.
    #[test]
    fn arbitrary_events_do_not_panic(
        run in right_run(),
        wild in prop::collection::vec((any::<[u64; 4]>(), any::<[u32; 5]>(), any::<[bool; 3]>()), 1..40),
    ) {
        let mut run = run;
        run.events.truncate(200);
        for (times, numbers, flags) in wild {
            let flow = FlowId(if flags[0] { numbers[0] % 8 } else { numbers[0] });
            let link = fullpipe_units::LinkId(if flags[1] { numbers[1] % 4 } else { numbers[1] });
            let tcp = fullpipe_record::TcpView {
                sequence: numbers[2], sequence_end: numbers[3], acknowledgement: numbers[4],
                has_ack: flags[1], syn: flags[2],
            };
            let packet = fullpipe_record::PacketView {
                flow, ip_bytes: numbers[2], payload_bytes: numbers[3],
                codepoint: EcnCodepoint::from_bits(numbers[0] as u8), tcp: flags[2].then_some(tcp),
            };
            let [offered, start, finish, arrival] = times.map(Instant::from_nanos);
            let reason = fullpipe_record::DropReason::QueueFull;
            run.events.extend([
                Event::Sent(times[0], packet),
                Event::Delivered(times[1], packet, times[2]),
                Event::Dropped(times[3], packet, reason),
                Event::Offered(link, numbers[3]),
                Event::LinkDropped(link, numbers[4], reason),
                Event::Transmitted(fullpipe_record::Transmission {
                    link, flow, wire_bytes: numbers[3], offered, start, finish, arrival,
                }),
            ]);
        }
        let verdict = run.streaming().merge(run.packets());
        prop_assert!(!verdict.to_string().is_empty());
    }
}

/// Sequence numbers that are close to each other, close to 2^32, or half of the number space apart.
fn number() -> impl Strategy<Value = u32> {
    let bases =
        prop_oneof![4 => Just(0u32), 1 => Just(u32::MAX - 3000), 1 => Just(i32::MAX as u32 - 3000), 1 => any::<u32>()];
    (bases, 0u32..8).prop_map(|(base, segments)| base.wrapping_add(1000 * segments))
}

/// A segment of one of two conversations, one of which the auditor has observed.
fn segment() -> impl Strategy<Value = PacketView> {
    let flow = prop_oneof![20 => 0u32..2, 1 => 2u32..4];
    let length = prop_oneof![6 => Just(1000u32), 1 => Just(0), 1 => any::<u32>()];
    (flow, number(), length, number(), prop::bool::weighted(0.9), prop::bool::weighted(0.1)).prop_map(
        |(flow, sequence, length, acknowledgement, has_ack, syn)| PacketView {
            flow: FlowId(flow),
            ip_bytes: 40 + length % 1461,
            payload_bytes: length % 1461,
            codepoint: EcnCodepoint::NotEct,
            tcp: Some(TcpView { sequence, sequence_end: sequence.wrapping_add(length), acknowledgement, has_ack, syn }),
        },
    )
}

proptest! {
    /// After each burst, the auditor has the same state, including failures, as after its segments one by one.
    #[test]
    fn a_burst_has_the_effect_of_its_segments_one_by_one(
        steps in prop::collection::vec((segment(), 1u32..5, prop_oneof![4 => Just(1000u32), 1 => any::<u32>()], any::<bool>()), 1..60),
    ) {
        let mut auditor = Auditor::new(Vec::new());
        for flow in 0..2 {
            auditor.add_flow(FlowId(flow), &DeclaredFlow { path: Vec::new(), ipv6: false });
        }
        let mut other = auditor.clone();
        for (at, (segment, packets, step_bytes, is_delivered)) in (0..).zip(steps) {
            let now = Instant::from_nanos(at);
            prop_assert!(auditor.on_sent_burst(now, &segment, packets, step_bytes));
            let mut next = segment;
            for _ in 0..packets {
                other.on_sent(now, &next);
                next.advance_sequence(step_bytes);
            }
            if is_delivered {
                auditor.on_delivered(now, &segment, now);
                other.on_delivered(now, &segment, now);
            }
            prop_assert_eq!(format!("{auditor:?}"), format!("{other:?}"));
        }
    }
}
