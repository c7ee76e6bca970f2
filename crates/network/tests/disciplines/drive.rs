//! A queue under random load, with checks of the invariants of every discipline.

use fullpipe_network::queue::QueuedPacket;
use fullpipe_network::{Packet, PacketContent, PacketHandle, QueueDiscipline};
use fullpipe_units::{EcnCodepoint, FlowId, Instant, NodeId, RandomStream};
use proptest::prelude::*;
use std::collections::BTreeMap;

pub const FRAMING: u32 = 18;

/// A packet as stored by the tests.
#[derive(Clone, Copy, Debug)]
pub struct Item {
    pub number: usize,
    pub flow: u32,
    pub ip_bytes: u32,
    pub codepoint: EcnCodepoint,
    pub since: u64,
}

impl Item {
    pub fn wire_bytes(&self) -> u64 {
        u64::from(self.ip_bytes + FRAMING)
    }

    pub fn capable(&self) -> bool {
        self.codepoint != EcnCodepoint::NotEct
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Arrive(Item),
    Leave,
}

/// The outcome of a packet, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Refused because there was no room.
    Refused(usize),
    /// Dropped although there was room.
    Early(usize),
    /// Dropped later because there was no room.
    Pushed(usize),
    /// Sent, with this ECN codepoint.
    Sent(usize, EcnCodepoint),
    /// No packet to send.
    Nothing,
}

/// A time interval with its load.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    pub arrivals: usize,
    /// Mean time between arrivals.
    pub gap_ns: u64,
    /// Time between departures.
    pub service_ns: u64,
}

/// Returns the codepoint of all packets of a flow.
pub fn codepoint(flow: u32) -> EcnCodepoint {
    [EcnCodepoint::NotEct, EcnCodepoint::Ect0, EcnCodepoint::Ect1, EcnCodepoint::Ce][flow as usize % 4]
}

/// Returns random arrivals (with uniformly distributed gaps) of randomly selected flows, and departures at regular times.
pub fn script(phases: &[Phase], flows: u32, sizes: &[u32], seed: u64) -> Vec<(u64, Step)> {
    let mut stream = RandomStream::new(seed, "load", "arrivals");
    let mut steps = Vec::new();
    let (mut now, mut departure, mut number) = (0, 0, 0);
    for phase in phases {
        for _ in 0..phase.arrivals {
            now += stream.uniform_below(2 * phase.gap_ns + 1);
            while departure <= now {
                steps.push((departure, Step::Leave));
                departure += phase.service_ns;
            }
            let flow = stream.uniform_below(u64::from(flows)) as u32;
            let ip_bytes = sizes[stream.uniform_below(sizes.len() as u64) as usize];
            steps.push((now, Step::Arrive(Item { number, flow, ip_bytes, codepoint: codepoint(flow), since: now })));
            number += 1;
        }
    }
    let last = phases.last().map_or(1, |phase| phase.service_ns);
    for _ in 0..number + 5 {
        steps.push((departure, Step::Leave));
        departure += last;
    }
    steps
}

/// Loads that fill a queue of some hundred packets, empty it, leave it idle and fill it again.
pub fn phases() -> impl Strategy<Value = Vec<Phase>> {
    let phase = (20usize..250, prop_oneof![3 => 200_000u64..3_000_000, 1 => 5_000_000u64..80_000_000])
        .prop_flat_map(|(arrivals, gap_ns)| {
            (Just(arrivals), Just(gap_ns), prop_oneof![3 => 800_000u64..2_500_000, 1 => Just(gap_ns)])
        })
        .prop_map(|(arrivals, gap_ns, service_ns)| Phase { arrivals, gap_ns, service_ns });
    prop::collection::vec(phase, 1..6)
}

/// Applies the steps to a discipline, checks the common invariants, and calls `look` with the discipline after each step.
pub fn run<D: QueueDiscipline>(discipline: &mut D, steps: &[(u64, Step)], mut look: impl FnMut(&D)) -> Vec<Fate> {
    let mut fates = Vec::new();
    let mut arena = fullpipe_network::packet::Arena::default();
    let mut handles: Vec<PacketHandle> = Vec::new();
    let mut inside: BTreeMap<usize, u64> = BTreeMap::new();
    let mut sent_up_to: BTreeMap<u32, usize> = BTreeMap::new();
    let mut items: Vec<Item> = Vec::new();
    let mut dropped = Vec::new();
    for (now, step) in steps {
        let now = Instant::from_nanos(*now);
        match step {
            Step::Arrive(item) => {
                let content = PacketContent::Udp { payload_bytes: item.ip_bytes - 28 };
                let mut packet = Packet::new(FlowId(item.flow), NodeId(1), item.ip_bytes, content);
                packet.codepoint = item.codepoint;
                let handle = arena.insert(packet);
                handles.push(handle);
                items.push(*item);
                let queued = QueuedPacket::new(handle, &packet, item.ip_bytes + FRAMING, now);
                inside.insert(item.number, item.wire_bytes());
                if let Err(refused) = discipline.enqueue(now, queued, &mut dropped) {
                    assert_eq!(refused.handle, handle, "a refused packet must be the arriving one");
                    assert!(inside.remove(&item.number).is_some());
                    fates.push(Fate::Refused(item.number));
                }
            }
            Step::Leave => match discipline.dequeue(now, &mut dropped) {
                None => fates.push(Fate::Nothing),
                Some(packet) => {
                    let number = handles.binary_search(&packet.handle).unwrap();
                    assert!(inside.remove(&number).is_some(), "a packet must depart only once");
                    let item = items[number];
                    assert_eq!(
                        packet.marked,
                        packet.codepoint == EcnCodepoint::Ce && (packet.marked || item.codepoint != EcnCodepoint::Ce)
                    );
                    if !packet.marked {
                        assert_eq!(packet.codepoint, item.codepoint);
                    }
                    assert!(item.capable() || !packet.marked, "only an ECN-capable packet may be marked");
                    let before = sent_up_to.insert(item.flow, number);
                    assert!(before.is_none_or(|before| before < number), "packets of a flow must keep their order");
                    fates.push(Fate::Sent(number, packet.codepoint));
                }
            },
        }
        // Packets dropped at a departure were dropped before the packet that departed; the oracles report them in that order too.
        let last = matches!(step, Step::Leave).then(|| fates.pop()).flatten();
        for packet in dropped.drain(..) {
            let number = handles.binary_search(&packet.handle).unwrap();
            assert!(inside.remove(&number).is_some(), "a packet must be dropped only once");
            fates.push(if packet.early { Fate::Early(number) } else { Fate::Pushed(number) });
        }
        fates.extend(last);
        assert_eq!(discipline.packets(), inside.len() as u64);
        assert_eq!(discipline.bytes(), inside.values().sum::<u64>());
        look(discipline);
    }
    assert!(inside.is_empty(), "all packets must have left the queue");
    fates
}

/// Counts the outcomes: refused, dropped early, marked (without packets that had CE before), sent.
pub fn tally(fates: &[Fate], steps: &[(u64, Step)]) -> (usize, usize, usize, usize) {
    let items: Vec<Item> =
        steps.iter().filter_map(|(_, step)| if let Step::Arrive(item) = step { Some(*item) } else { None }).collect();
    let mut tally = (0, 0, 0, 0);
    for fate in fates {
        match fate {
            Fate::Refused(_) => tally.0 += 1,
            Fate::Early(_) => tally.1 += 1,
            Fate::Sent(number, codepoint) => {
                tally.2 += usize::from(*codepoint != items[*number].codepoint);
                tally.3 += 1;
            }
            Fate::Pushed(_) | Fate::Nothing => {}
        }
    }
    tally
}
