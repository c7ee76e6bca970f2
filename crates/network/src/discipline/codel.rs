//! CoDel (RFC 8289), which drops packets based on their sojourn time and not on the queue length.
//!
//! If every packet of the last `interval` waited at least `target`, one packet is dropped at departure. While this
//! continues, the next packet is dropped after interval / sqrt(n), where n counts the drops, until a packet has waited
//! less than `target`. No packet is dropped if at most one full packet remains in the queue. Names and steps are those
//! of RFC 8289 section 5.
//!
//! With ECN, an ECN-capable packet is marked and sent instead of being dropped; the mark counts as a drop. With a CE
//! threshold (RFC 8290 section 5.2.7), an ECN-capable packet that waited longer than the threshold is also marked,
//! independently of the control law. DCTCP requires this signal.

use super::settings::{
    DisciplineComponent, DisciplineContext, DisciplineSettings, ECN_OFF, LIMIT, LIMIT_KEY, LinkParameters,
    QueueCapacity, TARGET,
};
use crate::queue::{Limit, QueueDiscipline, QueuedPacket};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_schema::{Field, FieldKind, Tree, Value};
use fullpipe_units::{Duration, Instant};
use std::collections::VecDeque;
use std::sync::Arc;

/// Settings of CoDel. The defaults are those of RFC 8289, without ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelSpecification {
    /// Acceptable standing sojourn time (RFC 8289 section 4.3: 5 ms).
    pub target: Duration,
    /// Time for which the sojourn time must exceed the target before a packet is dropped; about one round-trip time
    /// (RFC 8289 section 4.2: 100 ms).
    pub interval: Duration,
    /// Size of a full packet at the IP layer, in bytes.
    pub mtu_bytes: u32,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Sojourn time above which ECN-capable packets are always marked (RFC 8290 section 5.2.7; for DCTCP). `None` if
    /// there is no such threshold.
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
        text: "drops packets while the queueing delay stays above a target (RFC 8289).",
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
    FieldKind::INTERVAL,
    "off",
    "Sojourn time above which every ECN-capable packet is marked, independent of CoDel (for DCTCP).",
);

/// The keys of the control law.
pub(super) const KEYS: &[Field] = &[
    Field::default("target", FieldKind::DURATION, "5ms", "Acceptable standing queueing delay."),
    Field::default(
        "interval",
        TARGET,
        "100ms",
        "Time for which the sojourn time must exceed `target` before packets are dropped.",
    ),
];

impl CoDelSpecification {
    /// Returns the settings in a table.
    pub(super) fn read(tree: &Tree, device: LinkParameters) -> Self {
        CoDelSpecification {
            target: tree.duration("target"),
            interval: tree.duration("interval"),
            mtu_bytes: device.mtu_bytes,
            ecn: tree.boolean("ecn"),
            ce_threshold: tree.get("ce_threshold").map(Value::duration),
        }
    }
}

/// Settings of the CoDel discipline: a queue limit and the control law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitedCoDelSpecification {
    /// Limit of the queue.
    pub limit: Limit,
    /// Settings of the control law.
    pub settings: CoDelSpecification,
}

impl DisciplineSettings for LimitedCoDelSpecification {
    fn name(&self) -> &'static str {
        CODEL.declaration.name
    }

    fn build(&self, _: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline> {
        Box::new(CoDel::new(self.limit, self.settings))
    }

    fn capacity(&self) -> QueueCapacity {
        QueueCapacity::from_limit(self.limit)
    }

    fn reorders(&self) -> bool {
        true
    }
}

/// The control law, separate from the queue that it controls.
#[derive(Debug, Default)]
struct ControlLaw {
    /// When the sojourn time will have exceeded the target for an interval; `None` while it is below the target.
    first_above: Option<Instant>,
    dropping: bool,
    drop_next: Instant,
    count: u64,
    last_count: u64,
}

impl ControlLaw {
    /// Returns whether the sojourn time has exceeded the target for long enough to drop this packet; `left_bytes`
    /// remain in the queue.
    fn stands(&mut self, now: Instant, packet: &QueuedPacket, left_bytes: u64, settings: &CoDelSpecification) -> bool {
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

    /// Starts a series of drops or marks.
    fn begin(&mut self, now: Instant, interval: Duration) {
        self.dropping = true;
        // Soon after the previous series, the control law resumes near the previous count.
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

/// A first-in, first-out queue with CoDel.
#[derive(Debug, Default)]
pub(crate) struct CoDelQueue {
    queue: VecDeque<QueuedPacket>,
    ip_bytes: u64,
    wire_bytes: u64,
    law: ControlLaw,
}

impl CoDelQueue {
    pub(crate) fn push(&mut self, packet: QueuedPacket) {
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

    /// Removes the head of the queue without applying the control law.
    pub(crate) fn pop(&mut self) -> Option<QueuedPacket> {
        let packet = self.queue.pop_front()?;
        self.ip_bytes -= u64::from(packet.ip_bytes);
        self.wire_bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// Removes the head of the queue and returns whether the control law permits dropping it.
    fn examine(&mut self, now: Instant, settings: &CoDelSpecification) -> Option<(QueuedPacket, bool)> {
        let Some(packet) = self.pop() else {
            self.law.first_above = None;
            return None;
        };
        let stands = self.law.stands(now, &packet, self.ip_bytes, settings);
        Some((packet, stands))
    }

    /// Removes and returns the next packet to send; appends the packets dropped before it to `dropped`.
    pub(crate) fn dequeue(
        &mut self,
        now: Instant,
        settings: &CoDelSpecification,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Option<QueuedPacket> {
        let mut packet = self.control(now, settings, dropped)?;
        if let Some(threshold) = settings.ce_threshold
            && now.saturating_since(packet.since) > threshold
        {
            packet.mark();
        }
        Some(packet)
    }

    fn control(
        &mut self,
        now: Instant,
        settings: &CoDelSpecification,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Option<QueuedPacket> {
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

/// The CoDel queue discipline, which rejects packets that would exceed its limit.
#[derive(Debug)]
pub struct CoDel {
    settings: CoDelSpecification,
    limit: Limit,
    queue: CoDelQueue,
    wire_bytes: u64,
}

impl CoDel {
    /// Returns an empty discipline. (The default limit in Linux is 1000 packets.)
    pub fn new(limit: Limit, settings: CoDelSpecification) -> Self {
        CoDel { settings, limit, queue: CoDelQueue::default(), wire_bytes: 0 }
    }
}

impl QueueDiscipline for CoDel {
    fn name(&self) -> &'static str {
        CODEL.declaration.name
    }

    fn enqueue(
        &mut self,
        _now: Instant,
        packet: QueuedPacket,
        _dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        if !self.limit.admits(self.queue.packets(), self.wire_bytes, packet.wire_bytes) {
            return Err(packet);
        }
        self.wire_bytes += u64::from(packet.wire_bytes);
        self.queue.push(packet);
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
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

/// Returns the time to the next drop after `count` drops.
fn step(interval: Duration, count: u64) -> Duration {
    Duration::from_secs_f64(interval.as_secs_f64() / (count as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketHandle;
    use fullpipe_record::Protocol;
    use fullpipe_units::EcnCodepoint;

    const SETTINGS: CoDelSpecification = CoDelSpecification {
        target: Duration::from_millis(5),
        interval: Duration::from_millis(100),
        mtu_bytes: 1500,
        ecn: false,
        ce_threshold: None,
    };

    fn packet(number: u32, since_ms: u64) -> QueuedPacket {
        let since = Instant::ZERO + Duration::from_millis(since_ms);
        QueuedPacket {
            handle: PacketHandle(number),
            wire_bytes: 1518,
            ip_bytes: 1500,
            key: 0,
            since,
            codepoint: EcnCodepoint::NotEct,
            marked: false,
            early: false,
            protocol: Protocol::Udp,
        }
    }

    /// 2000 packets wait from time 0 and one departs per millisecond. Returns the milliseconds of the dropped packets.
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
    fn drop_times_follow_the_inverse_square_root() {
        // The sojourn time reaches 5 ms at 5 ms and has exceeded it for 100 ms at 105: first drop. Then 100 ms /
        // sqrt(n) later: 105 + 100 = 205, + 70.71 = 275.71, + 57.74 = 333.45, + 50 = 383.45; each at the next whole
        // millisecond.
        assert_eq!(drops(&SETTINGS), [105, 205, 276, 334, 384]);
    }

    #[test]
    fn a_short_sojourn_time_or_a_last_packet_is_not_dropped() {
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
    fn one_short_sojourn_time_ends_a_series() {
        let mut queue = CoDelQueue::default();
        (0..150).for_each(|n| queue.push(packet(n, 0)));
        let mut dropped = Vec::new();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        (0..=105).for_each(|ms| assert!(queue.dequeue(at(ms), &SETTINGS, &mut dropped).is_some()));
        assert_eq!(dropped.len(), 1);
        while queue.pop().is_some() {}
        queue.push(packet(1000, 110));
        (0..150).for_each(|n| queue.push(packet(n, 112)));
        assert_eq!(queue.dequeue(at(112), &SETTINGS, &mut dropped).map(|p| p.handle), Some(PacketHandle(1000)));
        // Above the target again from 117 on; without the interruption the second drop would be at 205.
        (117..217).for_each(|ms| assert!(queue.dequeue(at(ms), &SETTINGS, &mut dropped).is_some()));
        assert_eq!(dropped.len(), 1);
        queue.dequeue(at(217), &SETTINGS, &mut dropped);
        assert_eq!(dropped.len(), 2);
    }

    #[test]
    fn a_series_that_restarts_soon_continues_at_the_previous_count() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        // Three drops by 280 ms (see above). Then one packet that did not wait, and a standing queue again from 285 on,
        // so the next drop is at
        // 385. Two of the three drops were made by the control law, so it continues with 2 and drops 100 / sqrt(2) =
        //      70.71 ms later, at 455.71. After a pause of 16 intervals it starts with 1: 100 ms later.
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
