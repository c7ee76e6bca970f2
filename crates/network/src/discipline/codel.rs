//! CoDel (RFC 8289): drops by how long packets have waited, not by how many wait.
//!
//! When every packet of the last `interval` waited longer than `target`, one is dropped at departure; while that goes
//! on, the next is dropped after interval / sqrt(n), n counting the drops, until a packet has waited less. A queue that
//! holds no more than one full packet is left alone. Names and steps are those of RFC 8289 section 5.
//!
//! With ECN, an ECN-capable packet whose turn has come is marked and sent, and counts as a drop does. With a CE
//! threshold (RFC 8290 section 5.2.7), an ECN-capable packet that waited longer than that is marked too, whatever the
//! control law says: the signal that DCTCP asks for.

use super::settings::{
    Capacity, Device, DisciplineComponent, DisciplineContext, DisciplineSettings, ECN_OFF, LIMIT, LIMIT_KEY, TARGET,
};
use crate::queue::{Limit, QueueDiscipline, Queued};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_schema::{Field, Kind, Tree, Value};
use fullpipe_units::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::Arc;

/// Settings of CoDel. The default is RFC 8289's, without ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelSpecification {
    /// A standing wait up to this is fine (RFC 8289 section 4.3: 5 ms).
    pub target: Duration,
    /// How long the wait must stand, about a round trip (RFC 8289 section 4.2: 100 ms).
    pub interval: Duration,
    /// Bytes (at the IP layer) of a full packet.
    pub mtu_bytes: u32,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// ECN-capable packets that waited longer than this are marked in any case (RFC 8290 section 5.2.7; for DCTCP).
    pub ce_threshold: Option<Duration>,
}

impl Default for CoDelSpecification {
    fn default() -> Self {
        CoDelSpecification {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu_bytes: 1500,
            ecn: false,
            ce_threshold: None,
        }
    }
}

pub(super) static CODEL: DisciplineComponent = Component {
    declaration: Declaration {
        name: "codel",
        version: "RFC 8289 (2018)",
        source: "RFC 8289",
        text: "drops by how long packets have waited (RFC 8289).",
        fields: &[&[LIMIT, ECN_OFF, CE_THRESHOLD], KEYS],
    },
    read: |reader, device| {
        let limit = device.limit(reader, LIMIT_KEY);
        let settings = CoDelSpecification::read(reader.tree, *device);
        Ok(Some(Arc::new(LimitedCoDelSpecification { limit, settings })))
    },
};

pub(super) const CE_THRESHOLD: Field = Field::optional(
    "ce_threshold",
    Kind::INTERVAL,
    "off",
    "Mark ECN-capable packets that have waited longer than this, whatever CoDel says (for DCTCP).",
);

/// Keys of the control law.
pub(super) const KEYS: &[Field] = &[
    Field::default("target", Kind::DURATION, "5ms", "A standing wait up to this is fine."),
    Field::default("interval", TARGET, "100ms", "How long the wait must stand before packets are dropped."),
];

impl CoDelSpecification {
    /// What the keys of a table state.
    pub(super) fn read(tree: &Tree, device: Device) -> Self {
        CoDelSpecification {
            target: tree.duration("target"),
            interval: tree.duration("interval"),
            mtu_bytes: device.mtu_bytes,
            ecn: tree.boolean("ecn"),
            ce_threshold: tree.get("ce_threshold").map(Value::duration),
        }
    }
}

/// Settings of a queue under CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitedCoDelSpecification {
    /// How much it holds.
    pub limit: Limit,
    /// Of the control law.
    pub settings: CoDelSpecification,
}

impl DisciplineSettings for LimitedCoDelSpecification {
    fn name(&self) -> &'static str {
        CODEL.declaration.name
    }

    fn build(&self, _: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline> {
        Box::new(CoDel::new(self.limit, self.settings))
    }

    fn capacity(&self) -> Capacity {
        Capacity::of(self.limit)
    }

    fn reorders(&self) -> bool {
        true
    }
}

/// The control law, apart from the queue it acts on.
#[derive(Debug, Default)]
struct ControlLaw {
    /// When the wait will have stood for an interval.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u64,
    last_count: u64,
}

impl ControlLaw {
    /// Whether the wait has stood long enough to drop this packet; `left_bytes`: what waits behind it.
    fn stands(&mut self, now: Instant, packet: &Queued, left_bytes: u64, settings: &CoDelSpecification) -> bool {
        if now.saturating_since(packet.since) < settings.target || left_bytes <= u64::from(settings.mtu_bytes) {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now.saturating_add(settings.interval));
                false
            }
            Some(first_above) => now >= first_above,
        }
    }

    /// A drop (or mark) begins a series.
    fn begin(&mut self, now: Instant, interval: Duration) {
        self.dropping = true;
        // Soon after the last time, go on about where the control law was.
        let delta = self.count - self.last_count;
        let recent = now.saturating_since(self.drop_next) < interval.saturating_mul(16);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.last_count = self.count;
        self.drop_next = now.saturating_add(step(interval, self.count));
    }

    fn schedule_next(&mut self, interval: Duration) {
        self.drop_next = self.drop_next.saturating_add(step(interval, self.count));
    }
}

/// A first-in first-out queue under CoDel.
#[derive(Debug, Default)]
pub(crate) struct CoDelQueue {
    queue: VecDeque<Queued>,
    ip_bytes: u64,
    wire_bytes: u64,
    law: ControlLaw,
}

impl CoDelQueue {
    pub(crate) fn push(&mut self, packet: Queued) {
        self.ip_bytes += u64::from(packet.ip_bytes);
        self.wire_bytes += u64::from(packet.wire_bytes);
        self.queue.push_back(packet);
    }

    pub(crate) fn packets(&self) -> u64 {
        self.queue.len() as u64
    }

    pub(crate) fn ip_bytes(&self) -> u64 {
        self.ip_bytes
    }

    pub(crate) fn wire_bytes(&self) -> u64 {
        self.wire_bytes
    }

    /// Takes the head, unseen by the control law.
    pub(crate) fn pop(&mut self) -> Option<Queued> {
        let packet = self.queue.pop_front()?;
        self.ip_bytes -= u64::from(packet.ip_bytes);
        self.wire_bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// Takes the head, and says whether the wait has stood long enough to drop it.
    fn examine(&mut self, now: Instant, settings: &CoDelSpecification) -> Option<(Queued, bool)> {
        let Some(packet) = self.pop() else {
            self.law.first_above = None;
            return None;
        };
        let stands = self.law.stands(now, &packet, self.ip_bytes, settings);
        Some((packet, stands))
    }

    /// Takes the next packet to send; what is to be dropped before it is appended to `dropped`.
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        settings: &CoDelSpecification,
        dropped: &mut Vec<Queued>,
    ) -> Option<Queued> {
        let mut packet = self.control(now, settings, dropped)?;
        if let Some(threshold) = settings.ce_threshold
            && now.saturating_since(packet.since) > threshold
        {
            packet.mark();
        }
        Some(packet)
    }

    fn control(&mut self, now: Instant, settings: &CoDelSpecification, dropped: &mut Vec<Queued>) -> Option<Queued> {
        let Some((mut packet, stands)) = self.examine(now, settings) else {
            self.law.dropping = false;
            return None;
        };
        if !self.law.dropping {
            if !stands {
                return Some(packet);
            }
            self.law.begin(now, settings.interval);
            if settings.ecn && packet.mark() {
                return Some(packet);
            }
            dropped.push(packet.dropped_early());
            return self.examine(now, settings).map(|(packet, _)| packet);
        }
        self.law.dropping = stands;
        while self.law.dropping && now >= self.law.drop_next {
            self.law.count += 1;
            if settings.ecn && packet.mark() {
                self.law.schedule_next(settings.interval);
                return Some(packet);
            }
            dropped.push(packet.dropped_early());
            let Some((next, stands)) = self.examine(now, settings) else {
                self.law.dropping = false;
                return None;
            };
            packet = next;
            self.law.dropping = stands;
            if stands {
                self.law.schedule_next(settings.interval);
            }
        }
        Some(packet)
    }
}

/// The discipline: one queue under CoDel. A packet that finds the limit reached is refused.
#[derive(Debug)]
pub struct CoDel {
    settings: CoDelSpecification,
    limit: Limit,
    queue: CoDelQueue,
    wire_bytes: u64,
}

impl CoDel {
    /// An empty discipline. (Linux limits it to 1000 packets.)
    pub fn new(limit: Limit, settings: CoDelSpecification) -> Self {
        CoDel { settings, limit, queue: CoDelQueue::default(), wire_bytes: 0 }
    }
}

impl QueueDiscipline for CoDel {
    fn name(&self) -> &'static str {
        CODEL.declaration.name
    }

    fn enqueue(&mut self, _now: Instant, packet: Queued, _dropped: &mut Vec<Queued>) -> Result<(), Queued> {
        if !self.limit.admits(self.queue.packets(), self.wire_bytes, packet.wire_bytes) {
            return Err(packet);
        }
        self.wire_bytes += u64::from(packet.wire_bytes);
        self.queue.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Queued>) -> Option<Queued> {
        let before = dropped.len();
        let next = self.queue.dequeue(now, &self.settings, dropped);
        for gone in dropped[before..].iter().chain(&next) {
            self.wire_bytes -= u64::from(gone.wire_bytes);
        }
        next
    }

    fn packets(&self) -> u64 {
        self.queue.packets()
    }

    fn bytes(&self) -> u64 {
        self.wire_bytes
    }
}

/// Time to the next drop after `count` drops.
fn step(interval: Duration, count: u64) -> Duration {
    Duration::from_secs_f64(interval.as_secs_f64() / (count as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Handle;
    use fullpipe_record::Protocol;
    use fullpipe_units::Codepoint;

    const SETTINGS: CoDelSpecification = CoDelSpecification {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        mtu_bytes: 1500,
        ecn: false,
        ce_threshold: None,
    };

    fn packet(number: u32, since_ms: u64) -> Queued {
        let since = Instant::ZERO + Duration::from_millis(since_ms);
        Queued {
            handle: Handle(number),
            wire_bytes: 1518,
            ip_bytes: 1500,
            key: 0,
            since,
            codepoint: Codepoint::NotEct,
            marked: false,
            early: false,
            protocol: Protocol::Udp,
        }
    }

    /// 2000 packets wait since 0, one leaves per millisecond: numbers of the dropped packets' milliseconds.
    fn drops(settings: &CoDelSpecification) -> Vec<u64> {
        let mut queue = CoDelQueue::default();
        (0..2000).for_each(|n| queue.push(packet(n, 0)));
        let mut dropped = Vec::new();
        let mut when = Vec::new();
        for ms in 0..400 {
            let before = dropped.len();
            queue.dequeue(Instant::ZERO + Duration::from_millis(ms), settings, &mut dropped);
            when.extend((before..dropped.len()).map(|_| ms));
        }
        when
    }

    #[test]
    fn drops_come_by_the_inverse_square_root() {
        // The wait reaches 5 ms at 5 ms, has stood for 100 ms at 105: first drop. Then 100 ms / sqrt(n) later:
        // 105 + 100 = 205, + 70.71 = 275.71, + 57.74 = 333.45, + 50 = 383.45; each at the next whole millisecond.
        assert_eq!(drops(&SETTINGS), [105, 205, 276, 334, 384]);
    }

    #[test]
    fn a_short_wait_or_a_last_packet_is_left_alone() {
        let patient = CoDelSpecification { target: Duration::from_millis(500), ..SETTINGS };
        assert_eq!(drops(&patient), [0u64; 0]);
        let mut queue = CoDelQueue::default();
        let mut dropped = Vec::new();
        for second in 1..10 {
            queue.push(packet(0, 0));
            assert!(queue.dequeue(Instant::ZERO + Duration::from_secs(second), &SETTINGS, &mut dropped).is_some());
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn one_short_wait_ends_a_series() {
        let mut queue = CoDelQueue::default();
        (0..150).for_each(|n| queue.push(packet(n, 0)));
        let mut dropped = Vec::new();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        (0..=105).for_each(|ms| assert!(queue.dequeue(at(ms), &SETTINGS, &mut dropped).is_some()));
        assert_eq!(dropped.len(), 1);
        while queue.pop().is_some() {}
        queue.push(packet(1000, 110));
        (0..150).for_each(|n| queue.push(packet(n, 112)));
        assert_eq!(queue.dequeue(at(112), &SETTINGS, &mut dropped).map(|p| p.handle), Some(Handle(1000)));
        // Above again from 117 on; without the break the second drop would have come at 205.
        (117..217).for_each(|ms| assert!(queue.dequeue(at(ms), &SETTINGS, &mut dropped).is_some()));
        assert_eq!(dropped.len(), 1);
        queue.dequeue(at(217), &SETTINGS, &mut dropped);
        assert_eq!(dropped.len(), 2);
    }

    #[test]
    fn a_series_that_begins_again_soon_goes_on_where_it_was() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        // Three drops by 280 ms (see above); then one packet that did not wait, and a standing wait again from 285 on:
        // the next drop at 385. Of the three, two were made by the control law: it goes on with 2, and drops
        // 100 / sqrt(2) = 70.71 ms later, at 455.71. If the break was 16 intervals, it begins with 1: 100 ms later.
        for (pause_ms, expected) in [(0, [385, 456]), (2000, [2385, 2485])] {
            let mut queue = CoDelQueue::default();
            let mut dropped = Vec::new();
            (0..400).for_each(|n| queue.push(packet(n, 0)));
            (0..280).for_each(|ms| assert!(queue.dequeue(at(ms), &SETTINGS, &mut dropped).is_some()));
            assert_eq!(dropped.len(), 3);
            while queue.pop().is_some() {}
            let start = 280 + pause_ms;
            (0..400).for_each(|n| queue.push(packet(n, start)));
            let mut when = Vec::new();
            for ms in start..start + 250 {
                let before = dropped.len();
                queue.dequeue(at(ms), &SETTINGS, &mut dropped);
                when.extend((before..dropped.len()).map(|_| ms));
            }
            assert_eq!(when[..2], expected);
        }
    }
}
