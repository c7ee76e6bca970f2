//! DualPI2, the dual-queue coupled AQM for low latency, low loss and scalable throughput (RFC 9332, appendix A).
//!
//! Packets with ECT(1) or CE enter the low-latency queue L; all others enter the classic queue C. Both queues share one
//! limit. In every update interval, a proportional-integral controller changes a base probability p' according to the
//! longer delay of the two queues:
//!
//! p' += alpha (delay - target) + beta (delay - previous delay).
//!
//! Classic packets are dropped (or marked) with probability p'^2, because the rates of Reno and CUBIC are proportional
//! to the inverse square root of the probability. Low-latency packets are marked with the larger of two probabilities.
//! One is the coupled probability k p', which gives both kinds of flow equal rates. The other is that of their own
//! queue, a ramp over the sojourn time. When k p' reaches 1, marks cannot signal more congestion. L then also drops
//! packets with probability p'^2, and ECN-capable packets in C are dropped as well.
//!
//! No random numbers are used: each queue sums the probabilities and drops or marks a packet whenever the sum exceeds
//! one.
//!
//! The delay of a queue is the sojourn time of its head. For the ramp, the departing packet is still the head, and
//! counts as one of the queue's packets. When both queues hold packets, the scheduler prefers L but prevents starvation
//! of C. The weighted round robin counts bytes. The credit changes only while both queues hold packets, and is reset in
//! favor of L when both are empty, as in Linux.

use super::periodic::PeriodicTimer;
use super::settings::{
    DisciplineComponent, DisciplineContext, DisciplineSettings, ECN_ON, LIMIT_KEY, QueueCapacity, TARGET, limit,
};
use crate::queue::{Limit, QueueDiscipline, QueuedPacket};
use fullpipe_schema::component::{Component, Declaration, choices};
use fullpipe_schema::{Choice, FieldKind, keys, named};
use fullpipe_units::{Duration, EcnCodepoint, Instant, Rate};
use std::collections::VecDeque;
use std::sync::Arc;

/// The scheduler, which selects the queue that is served when both hold packets (RFC 9332 section 4.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DualPi2Scheduler {
    /// Serves bytes in proportion to the weights (RFC 9332: 1 to 15). The coupled marking probability, and not the
    /// scheduler, usually determines the rates of the flows.
    WeightedRoundRobin {
        /// Weight of the classic queue.
        classic_weight: u32,
        /// Weight of the low-latency queue.
        l4s_weight: u32,
    },
    /// Serves the packet that has waited longest; `shift` is added to the sojourn time of low-latency packets (RFC
    /// 9332: 50 ms).
    TimeShiftedFifo {
        /// Time added to the sojourn time of low-latency packets.
        shift: Duration,
    },
}

/// Settings of DualPI2. The defaults are those of RFC 9332, except for the limit, which depends on the rate
/// ([`DualPi2Specification::for_path`]). Parentheses contain each parameter's name and default in RFC 9332.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DualPi2Specification {
    /// Limit of both queues together (RFC 9332: the bytes that the link transmits in 250 ms). A packet is accepted if
    /// there is room for `max_packet_bytes`.
    pub limit: Limit,
    /// Size of the largest packet on the wire, in bytes.
    pub max_packet_bytes: u32,
    /// Coupling factor (k: 2).
    pub coupling: f64,
    /// Target delay of the classic queue (target: 15 ms).
    pub target: Duration,
    /// Time between updates of the base probability (Tupdate: 15 ms).
    pub update_interval: Duration,
    /// Gain on the difference between delay and target, per second of difference (alpha: 0.15 Hz).
    pub alpha: f64,
    /// Gain on the change of the delay since the last update, per second of change (beta: 3 Hz).
    pub beta: f64,
    /// Sojourn time above which low-latency packets are marked with increasing probability (minTh: 800 us).
    pub ramp_start: Duration,
    /// Length of the ramp (range: 400 us); zero makes the ramp a step. Above the end of the ramp, all low-latency
    /// packets are marked.
    pub ramp_range: Duration,
    /// Number of packets that the low-latency queue must exceed before its own ramp marks packets (Th_len: 1).
    pub ramp_min_packets: u64,
    /// The scheduler.
    pub scheduler: DualPi2Scheduler,
    /// Whether the classic queue marks ECN-capable packets instead of dropping them. The low-latency queue always
    /// marks.
    pub ecn: bool,
}

impl Default for DualPi2Specification {
    fn default() -> Self {
        Self::derived(Limit::Packets(10_000), Duration::from_millis(15), Duration::from_millis(100))
    }
}

impl DualPi2Specification {
    /// Returns the settings that RFC 9332 figure 2 derives from the link's rate, the target delay and the longest
    /// expected round-trip time.
    pub fn for_path(rate: Rate, target: Duration, longest_round_trip: Duration) -> Self {
        Self::derived(Limit::from_duration(Duration::from_millis(250), rate), target, longest_round_trip)
    }

    fn derived(limit: Limit, target: Duration, longest_round_trip: Duration) -> Self {
        let update_interval = target.min(Duration::from_nanos(longest_round_trip.as_nanos() / 3));
        let round_trip = longest_round_trip.as_secs_f64();
        DualPi2Specification {
            limit,
            max_packet_bytes: 1518,
            coupling: 2.0,
            target,
            update_interval,
            alpha: 0.1 * update_interval.as_secs_f64() / (round_trip * round_trip),
            beta: 0.3 / round_trip,
            ramp_start: Duration::from_micros(800),
            ramp_range: Duration::from_micros(400),
            ramp_min_packets: 1,
            scheduler: DualPi2Scheduler::WeightedRoundRobin { classic_weight: 1, l4s_weight: 15 },
            ecn: true,
        }
    }
}

static SCHEDULERS: [(Choice, DualPi2Scheduler); 2] = named! {
    /// weighted by bytes, 15 to 1 in favor of the low-latency queue.
    "weighted-round-robin" => DualPi2Scheduler::WeightedRoundRobin { classic_weight: 1, l4s_weight: 15 };
    /// the packet that has waited longest, with 50 ms added for the low-latency queue.
    "time-shifted-fifo" => DualPi2Scheduler::TimeShiftedFifo { shift: Duration::from_millis(50) };
};

pub(super) static DUALPI2: DisciplineComponent = Component {
    declaration: Declaration {
        name: "dualpi2",
        version: "RFC 9332 (2023)",
        source: "RFC 9332",
        text: "two coupled queues: a low-latency queue for ECT(1) and a classic queue (RFC 9332).",
        fields: &[keys! {
            limit("10000packets");
            /// Target queueing delay of the classic queue.
            "target": TARGET, default "15ms";
            /// Largest round-trip time for which the controller is stable; determines its gains.
            "longest_round_trip": TARGET, default "100ms";
            /// Coupling factor k from the probability of the classic queue to that of the low-latency queue.
            "coupling": FieldKind::number(0.0, 100.0), default "2.0";
            /// Sojourn time above which low-latency packets are marked with increasing probability.
            "l4s_start": FieldKind::DURATION, default "800us";
            /// Range of sojourn times above `l4s_start` over which that probability rises to 1; `"0s"` makes it a step.
            "l4s_range": FieldKind::DURATION, default "400us";
            /// Scheduler that selects a queue when both have packets.
            "scheduler": FieldKind::Choice(&choices(&SCHEDULERS)), default "weighted-round-robin";
            ECN_ON;
        }],
    },
    read: |reader, device| {
        let tree = reader.tree;
        Ok(Some(Arc::new(DualPi2Specification {
            limit: device.limit(reader, LIMIT_KEY),
            max_packet_bytes: device.max_frame_bytes(),
            coupling: tree.number("coupling"),
            ramp_start: tree.duration("l4s_start"),
            ramp_range: tree.duration("l4s_range"),
            scheduler: tree.choice_value("scheduler", &SCHEDULERS),
            ecn: tree.boolean("ecn"),
            ..DualPi2Specification::for_path(device.rate, tree.duration("target"), tree.duration("longest_round_trip"))
        })))
    },
};

impl DisciplineSettings for DualPi2Specification {
    fn name(&self) -> &'static str {
        DUALPI2.declaration.name
    }

    fn build(&self, _: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline> {
        Box::new(DualPi2::new(*self))
    }

    fn capacity(&self) -> QueueCapacity {
        QueueCapacity::from_limit(self.limit)
    }

    fn reorders(&self) -> bool {
        true
    }
}

/// One of the two queues.
#[derive(Debug, Default)]
struct Lane {
    queue: VecDeque<QueuedPacket>,
    bytes: u64,
    /// Sum of probabilities that has not yet caused a mark or a drop.
    count: f64,
}

impl Lane {
    fn push(&mut self, packet: QueuedPacket) {
        self.bytes += u64::from(packet.wire_bytes);
        self.queue.push_back(packet);
    }

    fn pop(&mut self) -> Option<QueuedPacket> {
        let packet = self.queue.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    /// Returns the sojourn time of the head.
    fn delay(&self, now: Instant) -> Duration {
        self.queue.front().map_or(Duration::ZERO, |head| now.saturating_since(head.since))
    }

    /// Returns true in a fraction `likelihood` of calls, evenly spaced.
    fn recurs(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let due = self.count > 1.0;
        if due {
            self.count -= 1.0;
        }
        due
    }
}

/// The DualPI2 queue discipline.
#[derive(Debug)]
pub struct DualPi2 {
    settings: DualPi2Specification,
    l4s: Lane,
    classic: Lane,
    /// Base probability p'.
    base: f64,
    previous_delay: f64,
    updates: PeriodicTimer,
    /// Credit of C in the round robin, in bytes times weights; C can be served when the credit is positive.
    credit: i64,
}

impl DualPi2 {
    /// Returns an empty discipline.
    pub fn new(settings: DualPi2Specification) -> Self {
        DualPi2 {
            updates: PeriodicTimer::after(Instant::ZERO, settings.update_interval),
            credit: first_credit(&settings),
            settings,
            l4s: Lane::default(),
            classic: Lane::default(),
            base: 0.0,
            previous_delay: 0.0,
        }
    }

    /// Returns the base probability p', as of the last arrival or departure.
    pub fn base_probability(&self) -> f64 {
        self.base
    }

    /// Executes the updates that are due.
    fn catch_up(&mut self, now: Instant) {
        while let Some(at) = self.updates.due(now) {
            let delay = self.classic.delay(at).max(self.l4s.delay(at)).as_secs_f64();
            let settings = &self.settings;
            let change = settings.alpha * (delay - settings.target.as_secs_f64())
                + settings.beta * (delay - self.previous_delay);
            self.base = (self.base + change).clamp(0.0, 1.0);
            self.previous_delay = delay;
            if self.base == 0.0 && self.is_empty() {
                // Updates have no effect before a packet arrives.
                self.updates.skip(now);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.l4s.queue.is_empty() && self.classic.queue.is_empty()
    }

    /// Returns whether L is served next, and updates the credit of the round robin.
    fn schedule(&mut self, now: Instant) -> bool {
        let (Some(l4s), Some(classic)) = (self.l4s.queue.front(), self.classic.queue.front()) else {
            return !self.l4s.queue.is_empty();
        };
        match self.settings.scheduler {
            DualPi2Scheduler::TimeShiftedFifo { shift } => {
                self.l4s.delay(now).saturating_add(shift) >= self.classic.delay(now)
            }
            DualPi2Scheduler::WeightedRoundRobin { classic_weight, l4s_weight } => {
                let serve_l4s = self.credit <= 0;
                self.credit += if serve_l4s {
                    i64::from(classic_weight) * i64::from(l4s.wire_bytes)
                } else {
                    -i64::from(l4s_weight) * i64::from(classic.wire_bytes)
                };
                serve_l4s
            }
        }
    }

    /// Returns the marking probability of L's own ramp for its head: 0 up to the start of the ramp, and 1 from its end
    /// on.
    fn native_probability(&self, now: Instant) -> f64 {
        let DualPi2Specification { ramp_start, ramp_range, ramp_min_packets, .. } = self.settings;
        let delay = self.l4s.delay(now);
        if self.l4s.queue.len() as u64 <= ramp_min_packets {
            0.0
        } else if delay >= ramp_start.saturating_add(ramp_range) {
            1.0
        } else if delay > ramp_start {
            delay.saturating_sub(ramp_start).as_nanos() as f64 / ramp_range.as_nanos() as f64
        } else {
            0.0
        }
    }

    /// Removes the head of L; returns `None` if the packet was dropped.
    fn take_l4s(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let native = self.native_probability(now);
        let mut packet = self.l4s.pop()?;
        let coupled = (self.base * self.settings.coupling).min(1.0);
        if coupled < 1.0 {
            if self.l4s.recurs(native.max(coupled)) {
                packet.mark();
            }
            return Some(packet);
        }
        if self.l4s.recurs(self.base * self.base) {
            dropped.push(packet.dropped_early());
            return None;
        }
        if self.l4s.recurs(coupled) {
            packet.mark();
        }
        Some(packet)
    }

    /// Removes the head of C; returns `None` if the packet was dropped.
    fn take_classic(&mut self, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let mut packet = self.classic.pop()?;
        let probability = self.base * self.base;
        if !self.classic.recurs(probability) {
            return Some(packet);
        }
        let coupling = self.settings.coupling;
        let overloaded = probability >= (1.0 / (coupling * coupling)).min(1.0);
        if !overloaded && self.settings.ecn && packet.mark() {
            return Some(packet);
        }
        dropped.push(packet.dropped_early());
        None
    }
}

/// Returns the initial credit, which favors L by about a packet.
fn first_credit(settings: &DualPi2Specification) -> i64 {
    match settings.scheduler {
        DualPi2Scheduler::TimeShiftedFifo { .. } => 0,
        DualPi2Scheduler::WeightedRoundRobin { classic_weight, l4s_weight } => {
            i64::from(settings.max_packet_bytes) * (i64::from(classic_weight) - i64::from(l4s_weight))
        }
    }
}

impl QueueDiscipline for DualPi2 {
    fn name(&self) -> &'static str {
        DUALPI2.declaration.name
    }

    fn enqueue(
        &mut self,
        now: Instant,
        packet: QueuedPacket,
        _dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        self.catch_up(now);
        if !self.settings.limit.admits(self.packets(), self.bytes(), self.settings.max_packet_bytes) {
            return Err(packet);
        }
        match packet.codepoint {
            EcnCodepoint::Ect1 | EcnCodepoint::Ce => self.l4s.push(packet),
            EcnCodepoint::NotEct | EcnCodepoint::Ect0 => self.classic.push(packet),
        }
        Ok(())
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        self.catch_up(now);
        while !self.is_empty() {
            let next = if self.schedule(now) { self.take_l4s(now, dropped) } else { self.take_classic(dropped) };
            if next.is_some() {
                return next;
            }
        }
        self.credit = first_credit(&self.settings);
        None
    }

    fn packets(&self) -> u64 {
        (self.l4s.queue.len() + self.classic.queue.len()) as u64
    }

    fn bytes(&self) -> u64 {
        self.l4s.bytes + self.classic.bytes
    }
}
