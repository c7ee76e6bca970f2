//! FQ-CoDel (RFC 8290): a queue per flow, each under CoDel, served by deficit round robin, new flows first.
//!
//! A flow that becomes active gets a credit of `quantum_bytes` and goes to the list of new flows, which is served before
//! the list of old ones. A flow without credit gets another quantum and goes to the end of the old ones; a new flow that
//! has nothing left becomes an old one, an old one leaves. Sizes are those of the IP layer. When all queues together
//! hold more than `limit_packets`, the flow with the most bytes loses from its head half of them, at most 64 packets. As
//! in the simulator whose study we reproduce, a flow's own queue refuses what goes beyond `limit_packets`: a lone flow
//! is therefore dropped at the tail.
//!
//! Flows are told apart exactly (RFC 8290 hashes them onto 1024 queues). Fragments after the first carry no ports: those
//! for one destination make a flow of their own, so that of a fragmented packet first and second part travel apart.

use crate::codel::{CoDelQueue, CoDelSpecification};
use crate::queue::{QueueDiscipline, Queued};
use fullpipe_units::Instant;
use std::collections::{BTreeMap, VecDeque};

/// Most packets dropped at once from the fattest flow (RFC 8290 section 4.1).
const DROP_BATCH: usize = 64;

/// Settings of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairQueueSpecification {
    /// Packets in all queues together (RFC 8290: 10 240).
    pub limit_packets: u64,
    /// Credit of a flow per round, at the IP layer (RFC 8290: one MTU).
    pub quantum_bytes: u32,
    /// Of each flow's queue.
    pub codel: CoDelSpecification,
}

#[derive(Debug, Default)]
struct Flow {
    queue: CoDelQueue,
    credit: i64,
    /// Whether it is in one of the lists.
    active: bool,
}

/// The discipline.
#[derive(Debug)]
pub struct FairQueue {
    settings: FairQueueSpecification,
    flows: Vec<Flow>,
    by_key: BTreeMap<u64, usize>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    packets: u64,
    wire_bytes: u64,
}

impl FairQueue {
    /// An empty discipline.
    pub fn new(settings: FairQueueSpecification) -> Self {
        FairQueue {
            settings,
            flows: Vec::new(),
            by_key: BTreeMap::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            packets: 0,
            wire_bytes: 0,
        }
    }

    fn forget(&mut self, packet: &Queued) {
        self.packets -= 1;
        self.wire_bytes -= u64::from(packet.wire_bytes);
    }

    /// The fattest flow loses from its head.
    fn relieve(&mut self, dropped: &mut Vec<Queued>) {
        // The first of those with the most bytes.
        let fattest = (0..self.flows.len()).rev().max_by_key(|&index| self.flows[index].queue.ip_bytes());
        let Some(flow) = fattest.map(|index| &mut self.flows[index]) else { return };
        let enough = flow.queue.ip_bytes() / 2;
        let mut lost = 0;
        for _ in 0..DROP_BATCH {
            let Some(packet) = flow.queue.pop() else { break };
            lost += u64::from(packet.ip_bytes);
            self.packets -= 1;
            self.wire_bytes -= u64::from(packet.wire_bytes);
            dropped.push(packet);
            if lost >= enough {
                break;
            }
        }
    }
}

impl QueueDiscipline for FairQueue {
    fn enqueue(&mut self, _now: Instant, packet: Queued, dropped: &mut Vec<Queued>) -> Result<(), Queued> {
        let flows = &mut self.flows;
        let index = *self.by_key.entry(packet.key).or_insert_with(|| {
            flows.push(Flow::default());
            flows.len() - 1
        });
        let flow = &mut self.flows[index];
        if flow.queue.packets() >= self.settings.limit_packets {
            return Err(packet);
        }
        if !flow.active {
            flow.active = true;
            flow.credit = i64::from(self.settings.quantum_bytes);
            self.new_flows.push_back(index);
        }
        flow.queue.push(packet);
        self.packets += 1;
        self.wire_bytes += u64::from(packet.wire_bytes);
        if self.packets > self.settings.limit_packets {
            self.relieve(dropped);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Queued>) -> Option<Queued> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credit <= 0 {
                // A quantum of nothing would never end.
                flow.credit += i64::from(self.settings.quantum_bytes.max(1));
                list.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let before = dropped.len();
            let next = flow.queue.dequeue(now, &self.settings.codel, dropped);
            for lost in &dropped[before..] {
                self.packets -= 1;
                self.wire_bytes -= u64::from(lost.wire_bytes);
            }
            match next {
                Some(packet) => {
                    flow.credit -= i64::from(packet.ip_bytes);
                    self.forget(&packet);
                    return Some(packet);
                }
                None => {
                    list.pop_front();
                    if is_new && !self.old_flows.is_empty() {
                        self.old_flows.push_back(index);
                    } else {
                        flow.active = false;
                    }
                }
            }
        }
    }

    fn packets(&self) -> u64 {
        self.packets
    }

    fn bytes(&self) -> u64 {
        self.wire_bytes
    }
}
