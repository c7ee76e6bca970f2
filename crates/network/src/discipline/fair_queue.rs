//! FQ-CoDel (RFC 8290), with one CoDel queue per flow, served by deficit round robin with priority for new flows.
//!
//! A flow that becomes active gets a credit of `quantum_bytes` and enters the list of new flows. This list is served
//! before the list of old flows. A flow without credit gets another quantum and moves to the end of the old list. A new
//! flow whose queue becomes empty moves to the old list (if there are old flows; otherwise it is removed immediately,
//! as in Linux). An old flow whose queue becomes empty is removed. Sizes are those of the IP layer. When all queues
//! together exceed the limits, half of the bytes of the longest queue are dropped from its head, at most 64 packets. As
//! in the simulator whose study we reproduce, the queue of each flow also rejects packets beyond `limit`, so a single
//! flow has tail drops.
//!
//! Flows are distinguished exactly (RFC 8290 hashes them onto 1024 queues). Fragments after the first have no ports.
//! All such fragments to one destination form a separate flow, so the first fragment and the other fragments of a
//! packet are in different queues.

use super::codel::{self, CE_THRESHOLD, CoDelQueue, CoDelSpecification};
use super::settings::{
    DisciplineComponent, DisciplineContext, DisciplineSettings, ECN_ON, LIMIT_KEY, QueueCapacity, limit,
};
use crate::queue::{Limit, QueueDiscipline, QueuedPacket};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_schema::{FieldKind, FormerKey, NodeContent, Value, keys};
use fullpipe_units::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Maximum number of packets dropped at once from the longest queue (RFC 8290 section 4.1).
const DROP_BATCH: usize = 64;

/// Settings of FQ-CoDel. The defaults are those of RFC 8290 for an MTU of 1500 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelSpecification {
    /// Limit of all queues together, and of each queue (RFC 8290 section 5.2.3: 10 240 packets).
    pub limit: Limit,
    /// Limit of all queues together in bytes on the wire; `None` means no limit (Linux: 32 MB of memory).
    pub limit_bytes: Option<u64>,
    /// Credit of a flow per round, in bytes at the IP layer (RFC 8290: one MTU).
    pub quantum_bytes: u32,
    /// Settings of CoDel for each queue.
    pub codel: CoDelSpecification,
}

impl Default for FqCoDelSpecification {
    fn default() -> Self {
        FqCoDelSpecification {
            limit: Limit::Packets(10_240),
            limit_bytes: None,
            quantum_bytes: 1500,
            // ECN is on by default (RFC 8290 section 5.2.6).
            codel: CoDelSpecification { ecn: true, ..CoDelSpecification::default() },
        }
    }
}

/// The former key of the limit, before all disciplines had the same key.
const LIMIT_PACKETS: &[FormerKey] = &[FormerKey {
    key: "limit_packets",
    value: |content| match content {
        NodeContent::Integer(packets) => NodeContent::Text(format!("{packets}packets")),
        other => other.clone(),
    },
}];

pub(super) static FQ_CODEL: DisciplineComponent = Component {
    declaration: Declaration {
        name: "fq-codel",
        version: "RFC 8290 (2018)",
        source: "RFC 8290, RFC 8289",
        text: "one CoDel queue per flow, served by deficit round robin (RFC 8290).",
        fields: &[
            keys! {
                limit("10240packets").with_former_keys(LIMIT_PACKETS);
                /// Limit of all queues together in bytes on the wire, in addition to `limit`.
                "memory": FieldKind::SIZE, optional "not limited";
                /// Bytes at the IP layer that a flow may send in each round.
                "quantum": FieldKind::size(1, 1_000_000), default "1514B";
                ECN_ON;
                CE_THRESHOLD;
            },
            codel::KEYS,
        ],
    },
    read: |reader, device| {
        let tree = reader.tree;
        Ok(Some(Arc::new(FqCoDelSpecification {
            limit: device.limit(reader, LIMIT_KEY),
            limit_bytes: tree.get("memory").map(Value::size),
            quantum_bytes: u32::try_from(tree.size("quantum")).unwrap_or(u32::MAX),
            codel: CoDelSpecification::read(tree, *device),
        })))
    },
};

impl DisciplineSettings for FqCoDelSpecification {
    fn name(&self) -> &'static str {
        FQ_CODEL.declaration.name
    }

    fn build(&self, _: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline> {
        Box::new(FqCoDel::new(*self))
    }

    fn capacity(&self) -> QueueCapacity {
        QueueCapacity::from_limit(self.limit).intersect(QueueCapacity { packets: None, bytes: self.limit_bytes })
    }

    fn reorders(&self) -> bool {
        true
    }
}

#[derive(Debug, Default)]
struct Flow {
    queue: CoDelQueue,
    credit: i64,
    /// Whether the flow is in one of the lists.
    active: bool,
}

/// The FQ-CoDel queue discipline.
#[derive(Debug)]
pub struct FqCoDel {
    settings: FqCoDelSpecification,
    flows: Vec<Flow>,
    by_key: BTreeMap<u64, usize>,
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    packets: u64,
    wire_bytes: u64,
}

impl FqCoDel {
    /// Returns an empty discipline.
    pub fn new(settings: FqCoDelSpecification) -> Self {
        FqCoDel {
            settings,
            flows: Vec::new(),
            by_key: BTreeMap::new(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            packets: 0,
            wire_bytes: 0,
        }
    }

    fn forget(&mut self, packet: &QueuedPacket) {
        self.packets -= 1;
        self.wire_bytes -= u64::from(packet.wire_bytes);
    }

    fn is_over_limit(&self) -> bool {
        let over = match self.settings.limit {
            Limit::Packets(limit) => self.packets > limit,
            Limit::Bytes(limit) => self.wire_bytes > limit,
            Limit::Unlimited => false,
        };
        over || self.settings.limit_bytes.is_some_and(|limit| self.wire_bytes > limit)
    }

    /// Returns the bytes at the IP layer in the longest queue.
    pub fn longest_flow_bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.queue.ip_bytes()).max().unwrap_or(0)
    }

    /// Drops packets from the head of the longest queue: half of its bytes, at most 64 packets. For a limit that several
    /// disciplines share.
    pub fn relieve(&mut self, dropped: &mut Vec<QueuedPacket>) {
        // The first of the queues that hold the most bytes.
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

impl QueueDiscipline for FqCoDel {
    fn name(&self) -> &'static str {
        FQ_CODEL.declaration.name
    }

    fn enqueue(
        &mut self,
        _now: Instant,
        packet: QueuedPacket,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        let flows = &mut self.flows;
        let index = *self.by_key.entry(packet.key).or_insert_with(|| {
            flows.push(Flow::default());
            flows.len() - 1
        });
        let flow = &mut self.flows[index];
        if !self.settings.limit.admits(flow.queue.packets(), flow.queue.wire_bytes(), packet.wire_bytes) {
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
        while self.is_over_limit() {
            self.relieve(dropped);
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        loop {
            let is_new = !self.new_flows.is_empty();
            let list = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            let index = *list.front()?;
            let flow = &mut self.flows[index];
            if flow.credit <= 0 {
                // With a quantum of zero, this loop would never end.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketHandle;
    use fullpipe_units::Duration;

    fn settings(packets: u64) -> FqCoDelSpecification {
        FqCoDelSpecification { limit: Limit::Packets(packets), quantum_bytes: 1500, ..FqCoDelSpecification::default() }
    }

    fn packet(number: u32, key: u64, ip_bytes: u32) -> QueuedPacket {
        QueuedPacket {
            handle: PacketHandle(number),
            wire_bytes: ip_bytes + 18,
            ip_bytes,
            key,
            since: Instant::ZERO,
            codepoint: fullpipe_units::EcnCodepoint::NotEct,
            marked: false,
            early: false,
            protocol: fullpipe_record::Protocol::Udp,
        }
    }

    /// Returns the keys in order of departure.
    fn drain(queue: &mut FqCoDel, count: usize) -> Vec<u64> {
        let mut dropped = Vec::new();
        let keys = (0..count).filter_map(|_| queue.dequeue(Instant::ZERO, &mut dropped).map(|p| p.key)).collect();
        assert!(dropped.is_empty());
        keys
    }

    #[test]
    fn flows_share_bytes_and_not_packets() {
        // 1500 against 50 bytes: after the first round (in the new list) one large packet for thirty small ones.
        let mut queue = FqCoDel::new(settings(10_000));
        let mut dropped = Vec::new();
        for n in 0..400 {
            queue.enqueue(Instant::ZERO, packet(n, 1, 1500), &mut dropped).unwrap();
            queue.enqueue(Instant::ZERO, packet(n, 2, 50), &mut dropped).unwrap();
        }
        assert_eq!((queue.packets(), queue.bytes()), (800, 400 * (1518 + 68)));
        let order = drain(&mut queue, 310);
        let large = order.iter().filter(|key| **key == 1).count();
        assert_eq!(large, 10);
        for round in order.chunks(31) {
            assert_eq!(round[0], 1);
            assert!(round[1..].iter().all(|key| *key == 2));
        }
        assert_eq!(queue.packets(), 490);
        drain(&mut queue, 490);
        assert_eq!((queue.packets(), queue.bytes()), (0, 0));
    }

    #[test]
    fn a_new_flow_has_priority_only_once() {
        let mut queue = FqCoDel::new(settings(10_000));
        let mut dropped = Vec::new();
        for n in 0..100 {
            queue.enqueue(Instant::ZERO, packet(n, 1, 500), &mut dropped).unwrap();
        }
        // Flow 1 has used its first quantum and 500 bytes of the second, so it is an old flow now.
        assert_eq!(drain(&mut queue, 4), [1, 1, 1, 1]);
        for n in 0..3 {
            queue.enqueue(Instant::ZERO, packet(n, 2, 100), &mut dropped).unwrap();
        }
        assert_eq!(drain(&mut queue, 4), [2, 2, 2, 1]);
        // The queue of flow 2 was empty, so it is in the old list: flow 1 uses up its quantum first.
        queue.enqueue(Instant::ZERO, packet(9, 2, 100), &mut dropped).unwrap();
        assert_eq!(drain(&mut queue, 3), [1, 2, 1]);
        // Empty again, flow 2 is removed when it is served next (after flow 1's quantum of three), and is new after
        // that.
        assert_eq!(drain(&mut queue, 3), [1, 1, 1]);
        queue.enqueue(Instant::ZERO, packet(9, 2, 100), &mut dropped).unwrap();
        assert_eq!(drain(&mut queue, 2), [2, 1]);
    }

    #[test]
    fn packets_of_a_flow_keep_their_order() {
        let mut queue = FqCoDel::new(settings(10_000));
        let mut dropped = Vec::new();
        for n in 0..100 {
            queue.enqueue(Instant::ZERO, packet(n, u64::from(n % 3), 100 + 300 * (n % 3)), &mut dropped).unwrap();
        }
        let mut last = [0; 3];
        while let Some(next) = queue.dequeue(Instant::ZERO, &mut dropped) {
            assert!(next.handle.0 >= last[next.key as usize]);
            last[next.key as usize] = next.handle.0;
        }
        assert_eq!(last, [99, 97, 98]);
    }

    #[test]
    fn a_single_flow_has_tail_drops_and_the_longest_of_several_has_head_drops() {
        let mut queue = FqCoDel::new(settings(100));
        let mut dropped = Vec::new();
        for n in 0..100 {
            assert!(queue.enqueue(Instant::ZERO, packet(n, 1, 1500), &mut dropped).is_ok());
        }
        assert_eq!(
            queue.enqueue(Instant::ZERO, packet(100, 1, 1500), &mut dropped).unwrap_err().handle,
            PacketHandle(100)
        );
        assert!(dropped.is_empty());
        // A packet of another flow: half of flow 1's 150 000 bytes, 50 packets, are dropped from the head.
        assert!(queue.enqueue(Instant::ZERO, packet(200, 2, 100), &mut dropped).is_ok());
        assert_eq!(dropped.iter().map(|p| p.handle.0).collect::<Vec<_>>(), (0..50).collect::<Vec<u32>>());
        assert_eq!((queue.packets(), queue.bytes()), (51, 50 * 1518 + 118));

        // Half of 1000 packets would be 500, but at most 64 are dropped at once.
        let mut queue = FqCoDel::new(settings(1000));
        dropped.clear();
        for n in 0..1000 {
            assert!(queue.enqueue(Instant::ZERO, packet(n, 1, 1500), &mut dropped).is_ok());
        }
        assert!(queue.enqueue(Instant::ZERO, packet(0, 2, 100), &mut dropped).is_ok());
        assert_eq!(dropped.len(), 64);
    }

    #[test]
    fn packets_dropped_by_codel_are_subtracted_from_the_counters() {
        let mut queue = FqCoDel::new(settings(10_000));
        let mut dropped = Vec::new();
        for n in 0..200 {
            queue.enqueue(Instant::ZERO, packet(n, 1, 1500), &mut dropped).unwrap();
        }
        for ms in 0..150 {
            queue.dequeue(Instant::ZERO + Duration::from_millis(ms), &mut dropped);
        }
        // One drop at 105 ms (see `codel`): 150 packets have departed, one was dropped.
        assert_eq!((dropped.len(), queue.packets(), queue.bytes()), (1, 49, 49 * 1518));
    }
}
