//! The step marker and strict priority.

use crate::drive::{Fate, Item, Step, phases, run, script};
use fullpipe_network::{
    Classifier, Fifo, Limit, QueueDiscipline, StepMarker, StepMarkerSpecification, StepThreshold, StrictPriority,
};
use fullpipe_units::{Duration, EcnCodepoint, FlowId};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Returns the expected outcomes: drop-tail with marks above the threshold.
fn expected(settings: &StepMarkerSpecification, limit: usize, steps: &[(u64, Step)]) -> Vec<Fate> {
    let mut queue: VecDeque<Item> = VecDeque::new();
    let mut fates = Vec::new();
    for (now, step) in steps {
        match step {
            Step::Arrive(item) => {
                let above = match settings.threshold {
                    StepThreshold::Packets(k) => queue.len() as u64 > k,
                    StepThreshold::Bytes(k) => queue.iter().map(Item::wire_bytes).sum::<u64>() > k,
                    StepThreshold::Delay(_) => false,
                };
                match (queue.len() < limit, above, item.capable()) {
                    (false, ..) => fates.push(Fate::Refused(item.number)),
                    (true, true, true) => queue.push_back(Item { codepoint: EcnCodepoint::Ce, ..*item }),
                    (true, true, false) if settings.drops_incapable => fates.push(Fate::Early(item.number)),
                    _ => queue.push_back(*item),
                }
            }
            Step::Leave => loop {
                let Some(mut item) = queue.pop_front() else {
                    fates.push(Fate::Nothing);
                    break;
                };
                if let StepThreshold::Delay(k) = settings.threshold
                    && now - item.since > k.as_nanos()
                {
                    if item.capable() {
                        item.codepoint = EcnCodepoint::Ce;
                    } else if settings.drops_incapable {
                        fates.push(Fate::Early(item.number));
                        continue;
                    }
                }
                fates.push(Fate::Sent(item.number, item.codepoint));
                break;
            },
        }
    }
    fates
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_step_marks_what_is_above_it(phases in phases(), seed in any::<u64>(), limit in 5usize..200, drops_incapable in any::<bool>(), threshold in 0usize..3, k in 0u64..60) {
        let steps = script(&phases, 4, &[1500, 500, 60], seed);
        let threshold = [
            StepThreshold::Packets(k),
            StepThreshold::Bytes(k * 1000),
            StepThreshold::Delay(Duration::from_millis(k)),
        ][threshold];
        let settings = StepMarkerSpecification { limit: Limit::Packets(limit as u64), threshold, drops_incapable };
        let fates = run(&mut StepMarker::new(settings), &steps, |_| ());
        prop_assert_eq!(fates, expected(&settings, limit, &steps));
    }

    /// At every departure the lowest nonempty band is served.
    #[test]
    fn bands_are_served_in_order(phases in phases(), seed in any::<u64>(), flows in 1u32..9, by_size in any::<bool>()) {
        let steps = script(&phases, flows, &[1500, 500, 60], seed);
        // A flow keeps its order only if all of it is in one band.
        let steps: Vec<_> = steps.into_iter().map(|(now, step)| match step {
            Step::Arrive(item) => (now, Step::Arrive(Item { ip_bytes: [60, 500, 1500][item.flow as usize % 3], ..item })),
            Step::Leave => (now, step),
        }).collect();
        let classifier = if by_size {
            Classifier::Size { largest_bytes: vec![60, 1000] }
        } else {
            Classifier::Flow { bands: (0..9).map(|flow| (FlowId(flow), flow as usize % 3)).collect(), others: 9 }
        };
        let bands = (0..3).map(|_| Box::new(Fifo::new(Limit::Packets(30))) as Box<dyn QueueDiscipline>).collect();
        let fates = run(&mut StrictPriority::new(classifier, bands), &steps, |_| ());
        let mut bands: [VecDeque<Item>; 3] = Default::default();
        let mut expected = Vec::new();
        for (_, step) in &steps {
            match step {
                Step::Arrive(item) => {
                    let band = &mut bands[item.flow as usize % 3];
                    if band.len() < 30 { band.push_back(*item) } else { expected.push(Fate::Refused(item.number)) }
                }
                Step::Leave => {
                    let next = bands.iter_mut().find_map(VecDeque::pop_front);
                    expected.push(next.map_or(Fate::Nothing, |item| Fate::Sent(item.number, item.codepoint)));
                }
            }
        }
        prop_assert_eq!(fates, expected);
    }
}

/// Returns the order in which four packets depart, one of each codepoint.
fn order(classifier: Classifier, bands: usize) -> Vec<usize> {
    let item = |number: usize| Item {
        number,
        flow: number as u32,
        ip_bytes: 500,
        codepoint: crate::drive::codepoint(number as u32),
        since: 1,
    };
    let mut steps: Vec<_> = (0..4).map(|number| (1, Step::Arrive(item(number)))).collect();
    steps.extend((0..4).map(|n| (2 + n, Step::Leave)));
    let bands = (0..bands).map(|_| Box::new(Fifo::new(Limit::Unlimited)) as Box<dyn QueueDiscipline>).collect();
    let fates = run(&mut StrictPriority::new(classifier, bands), &steps, |_| ());
    fates.iter().filter_map(|fate| if let Fate::Sent(number, _) = fate { Some(*number) } else { None }).collect()
}

#[test]
fn bands_are_selected_by_codepoint_or_protocol_up_to_the_last_band() {
    // Numbers are NotEct, Ect0, Ect1, Ce.
    let by_codepoint = Classifier::Ecn { not_ect: 3, ect0: 2, ect1: 1, ce: 0 };
    assert_eq!(order(by_codepoint.clone(), 4), [3, 2, 1, 0]);
    // With two bands, 1, 2 and 3 select the last.
    assert_eq!(order(by_codepoint, 2), [3, 0, 1, 2]);
    // All packets are datagrams.
    assert_eq!(order(Classifier::Protocol { tcp: 0, udp: 1 }, 2), [0, 1, 2, 3]);
    let named = Classifier::Flow { bands: [(FlowId(2), 0)].into(), others: 1 };
    assert_eq!(order(named, 2), [2, 0, 1, 3]);
}

#[test]
fn segments_and_datagrams_have_different_bands() {
    use fullpipe_network::packet::Arena;
    use fullpipe_network::queue::QueuedPacket;
    use fullpipe_network::{Packet, PacketContent};
    use fullpipe_units::{Instant, NodeId};
    use fullpipe_wire::TcpHeader;
    let mut arena = Arena::default();
    let bands = (0..2).map(|_| Box::new(Fifo::new(Limit::Unlimited)) as Box<dyn QueueDiscipline>).collect();
    let mut queue = StrictPriority::new(Classifier::Protocol { tcp: 0, udp: 1 }, bands);
    let mut dropped = Vec::new();
    let contents = [PacketContent::Udp { payload_bytes: 72 }, PacketContent::Tcp(TcpHeader::default())];
    let handles = contents.map(|content| {
        let packet = Packet::new(FlowId(0), NodeId(0), 100, content);
        let handle = arena.insert(packet);
        queue.enqueue(Instant::ZERO, QueuedPacket::new(handle, &packet, 118, Instant::ZERO), &mut dropped).unwrap();
        handle
    });
    let order: Vec<_> = std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut dropped)).map(|p| p.handle).collect();
    assert_eq!(order, [handles[1], handles[0]]);
}

#[test]
fn without_bands_every_packet_is_refused() {
    let item = Item { number: 0, flow: 0, ip_bytes: 100, codepoint: EcnCodepoint::NotEct, since: 1 };
    let mut queue = StrictPriority::new(Classifier::Protocol { tcp: 0, udp: 0 }, Vec::new());
    assert_eq!(
        run(&mut queue, &[(1, Step::Arrive(item)), (2, Step::Leave)], |_| ()),
        [Fate::Refused(0), Fate::Nothing]
    );
}
