//! PIE, proportional integral controller enhanced (RFC 8033).
//!
//! An arriving packet is dropped (or, while the probability is small, marked) with a probability p. A
//! proportional-integral controller updates p in every update interval from the queue's delay:
//!
//! p += scale(p) (alpha (delay - target) + beta (delay - previous delay)),
//!
//! where scale(p) is smaller for small p, because TCP's throughput is more sensitive to small probabilities. Without
//! congestion, p decays by 2 % per update. Bursts at an idle queue are accepted for `max_burst`. No packet is dropped
//! if the queue holds at most two packets, or if its delay was below half the target while p is small.
//!
//! As in the RFC, the following features are optional: marking, estimation of the delay from the departure rate instead
//! of timestamps, derandomized drops, limited increases, and deactivation until a third of the buffer is filled.
//!
//! Where sections 4 and 5 differ from the listings of the appendices, the sections apply. The burst allowance is
//! checked before the random drop. p decays when both delays are zero (4.2). PIE is deactivated when both delays are
//! below half the target (5.3). It is not deactivated while a third of the buffer is filled, because it would be
//! activated again immediately. An empty queue has delay zero, regardless of the sojourn time of the last packet.

use super::periodic::PeriodicTimer;
use super::settings::{
    DisciplineComponent, DisciplineContext, DisciplineSettings, ECN_OFF, LIMIT, LIMIT_KEY, QueueCapacity, TARGET,
};
use crate::queue::{Fifo, Limit, QueueDiscipline, QueuedPacket};
use fullpipe_schema::component::{Component, Declaration, choices};
use fullpipe_schema::{Choice, FieldKind, keys, named};
use fullpipe_units::{Duration, Instant, RandomStream};
use std::sync::Arc;

/// How PIE measures the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieDelayEstimator {
    /// From the sojourn time of the last departed packet; zero if the queue is empty (RFC 8033 appendix A).
    Timestamps,
    /// From the queue length and the departure rate (RFC 8033 section 5.2).
    DepartureRate {
        /// Number of bytes for one measurement of the rate (DQ_THRESHOLD: 16 384).
        threshold_bytes: u32,
    },
}

/// Settings of PIE. The defaults are those of RFC 8033, with timestamps, derandomization and limited increases.
/// Parentheses contain names, defaults and sections of RFC 8033.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieSpecification {
    /// Limit of the queue (TAIL_DROP).
    pub limit: Limit,
    /// Target delay (QDELAY_REF: 15 ms).
    pub target: Duration,
    /// Time between updates of the probability (T_UPDATE: 15 ms).
    pub update_interval: Duration,
    /// Gain on the difference between delay and target, per second of difference (alpha: 1/8 Hz).
    pub alpha: f64,
    /// Gain on the change of the delay since the last update, per second of change (beta: 1 1/4 Hz).
    pub beta: f64,
    /// Time for which a burst is accepted without drops (MAX_BURST: 150 ms).
    pub max_burst: Duration,
    /// Typical packet size on the wire in bytes (MEAN_PKTSIZE); no packet is dropped from a queue of at most two such
    /// packets.
    pub mean_packet_bytes: u32,
    /// How the delay is measured.
    pub delay: PieDelayEstimator,
    /// Whether ECN-capable packets are marked instead of dropped (section 5.1).
    pub ecn: bool,
    /// Probability above which ECN-capable packets are dropped as well (mark_ecnth: 0.1).
    pub ecn_limit: f64,
    /// Whether drops that are too close together or too far apart are avoided (section 5.4).
    pub derandomise: bool,
    /// Whether the probability increases by at most 0.02 per update when it is 0.1 or more (section 5.5).
    pub cap_increase: bool,
    /// Whether PIE is inactive until a third of the limit is filled, and becomes inactive again when congestion ends
    /// (section 5.3).
    pub activation: bool,
}

impl Default for PieSpecification {
    fn default() -> Self {
        PieSpecification {
            limit: Limit::Packets(1000),
            target: Duration::from_millis(15),
            update_interval: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Duration::from_millis(150),
            mean_packet_bytes: 1024,
            delay: PieDelayEstimator::Timestamps,
            ecn: false,
            ecn_limit: 0.1,
            derandomise: true,
            cap_increase: true,
            activation: false,
        }
    }
}

/// Measures the time in which a number of bytes departs (RFC 8033 section 5.2, appendix B).
#[derive(Debug, Default)]
struct DepartureRate {
    /// Start of a measurement and the bytes that have departed since.
    running: Option<(Instant, u64)>,
    /// Smoothed time in seconds in which `threshold_bytes` depart; 0 before the first measurement.
    average_seconds: f64,
}

impl DepartureRate {
    /// Processes the departure of a packet; `left_bytes` remain in the queue.
    fn departed(&mut self, now: Instant, packet: &QueuedPacket, left_bytes: u64, threshold_bytes: u32) {
        let threshold = u64::from(threshold_bytes);
        if let Some((start, bytes)) = &mut self.running {
            *bytes += u64::from(packet.wire_bytes);
            if *bytes >= threshold {
                let seconds = now.saturating_since(*start).as_secs_f64();
                let weight = if self.average_seconds == 0.0 { 1.0 } else { threshold as f64 / 65_536.0 };
                self.average_seconds = seconds * weight + self.average_seconds * (1.0 - weight);
                self.running = None;
            }
        }
        if self.running.is_none() && left_bytes >= threshold {
            self.running = Some((now, 0));
        }
    }
}

static DELAYS: [(Choice, PieDelayEstimator); 2] = named! {
    /// the measured sojourn time of packets.
    "timestamps" => PieDelayEstimator::Timestamps;
    /// queue length divided by the measured departure rate (section 5.2).
    "departure-rate" => // DQ_THRESHOLD of RFC 8033 section 5.2: 16 KiB.
        PieDelayEstimator::DepartureRate { threshold_bytes: 16_384 };
};

pub(super) static PIE: DisciplineComponent = Component {
    declaration: Declaration {
        name: "pie",
        version: "RFC 8033 (2017)",
        source: "RFC 8033",
        text: "a proportional-integral controller sets the drop probability from the queueing delay (RFC 8033).",
        fields: &[keys! {
            LIMIT;
            /// Target queueing delay.
            "target": TARGET, default "15ms";
            /// Time between updates of the drop probability.
            "update_interval": TARGET, default "15ms";
            /// Gain on the difference between queueing delay and target.
            "alpha" ["1/s"]: FieldKind::number(0.0, 1000.0), default "0.125";
            /// Gain on the change of the queueing delay since the last update.
            "beta" ["1/s"]: FieldKind::number(0.0, 1000.0), default "1.25";
            /// Time for which a burst is accepted without drops.
            "max_burst": FieldKind::DURATION, default "150ms";
            /// Drop probability above which ECN-capable packets are dropped instead of marked.
            "ecn_limit": FieldKind::PROBABILITY, default "0.1";
            /// Estimator of the queueing delay.
            "delay": FieldKind::Choice(&choices(&DELAYS)), default "timestamps";
            ECN_OFF;
        }],
    },
    read: |reader, device| {
        let tree = reader.tree;
        Ok(Some(Arc::new(PieSpecification {
            limit: device.limit(reader, LIMIT_KEY),
            target: tree.duration("target"),
            update_interval: tree.duration("update_interval"),
            alpha: tree.number("alpha"),
            beta: tree.number("beta"),
            max_burst: tree.duration("max_burst"),
            ecn: tree.boolean("ecn"),
            ecn_limit: tree.number("ecn_limit"),
            delay: tree.choice_value("delay", &DELAYS),
            ..PieSpecification::default()
        })))
    },
};

impl DisciplineSettings for PieSpecification {
    fn name(&self) -> &'static str {
        PIE.declaration.name
    }

    fn build(&self, context: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline> {
        Box::new(Pie::new(*self, context.random_stream()))
    }

    fn capacity(&self) -> QueueCapacity {
        QueueCapacity::from_limit(self.limit)
    }

    fn reorders(&self) -> bool {
        false
    }
}

/// The PIE queue discipline.
#[derive(Debug)]
pub struct Pie {
    settings: PieSpecification,
    stream: RandomStream,
    queue: Fifo,
    active: bool,
    probability: f64,
    /// Sum of the probabilities since the last drop.
    accumulated: f64,
    burst_allowance: Duration,
    /// Current and previous estimates of the delay, in seconds.
    delay: f64,
    previous_delay: f64,
    rate: DepartureRate,
    updates: PeriodicTimer,
}

impl Pie {
    /// Returns an empty discipline. Random numbers from `stream` select the packets that are dropped.
    pub fn new(settings: PieSpecification, stream: RandomStream) -> Self {
        Pie {
            queue: Fifo::new(settings.limit),
            active: !settings.activation,
            probability: 0.0,
            accumulated: 0.0,
            burst_allowance: settings.max_burst,
            delay: 0.0,
            previous_delay: 0.0,
            rate: DepartureRate::default(),
            updates: PeriodicTimer::after(Instant::ZERO, settings.update_interval),
            settings,
            stream,
        }
    }

    /// Returns the drop probability, as of the last arrival or departure.
    pub fn probability(&self) -> f64 {
        self.probability
    }

    /// Executes the updates that are due.
    fn catch_up(&mut self, now: Instant) {
        if !self.active {
            return;
        }
        while self.updates.due(now).is_some() {
            self.update();
            let at_rest = self.probability == 0.0 && self.burst_allowance.is_zero() && self.previous_delay == 0.0;
            if at_rest {
                // Updates have no effect before a packet arrives or departs.
                self.updates.skip(now);
            }
        }
    }

    fn update(&mut self) {
        let settings = &self.settings;
        if let PieDelayEstimator::DepartureRate { threshold_bytes } = settings.delay {
            self.delay = self.queue.bytes() as f64 * self.rate.average_seconds / f64::from(threshold_bytes.max(1));
        } else if self.queue.packets() == 0 {
            self.delay = 0.0;
        }
        let error = self.delay - settings.target.as_secs_f64();
        let change = settings.alpha * error + settings.beta * (self.delay - self.previous_delay);
        let mut step = change * scale(self.probability);
        if settings.cap_increase && self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        if self.delay == 0.0 && self.previous_delay == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.previous_delay = self.delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(settings.update_interval);
    }

    /// Returns whether congestion is over.
    fn is_calm(&self) -> bool {
        let half = self.settings.target.as_secs_f64() / 2.0;
        self.probability == 0.0 && self.delay < half && self.previous_delay < half
    }

    /// Returns whether the arriving packet is to be dropped or marked.
    fn decides_to_drop(&mut self) -> bool {
        let half = self.settings.target.as_secs_f64() / 2.0;
        if (self.previous_delay < half && self.probability < 0.2)
            || self.queue.bytes() <= 2 * u64::from(self.settings.mean_packet_bytes)
        {
            return false;
        }
        if self.settings.derandomise {
            if self.probability == 0.0 {
                self.accumulated = 0.0;
            }
            self.accumulated += self.probability;
            if self.accumulated < 0.85 {
                return false;
            }
            if self.accumulated >= 8.5 {
                return true;
            }
        }
        self.stream.bernoulli(self.probability)
    }

    /// Activates or deactivates PIE (RFC 8033 section 5.3).
    fn activate_or_rest(&mut self, now: Instant) {
        if !self.active && self.is_third_full() {
            self.active = true;
            self.previous_delay = 0.0;
            self.probability = 0.0;
            self.accumulated = 0.0;
            self.burst_allowance = self.settings.max_burst;
            self.rate = DepartureRate { running: Some((now, 0)), average_seconds: 0.0 };
            self.updates = PeriodicTimer::after(now, self.settings.update_interval);
        } else if self.active && self.is_calm() && !self.is_third_full() {
            self.active = false;
        }
    }

    fn is_third_full(&self) -> bool {
        match self.settings.limit {
            Limit::Packets(limit) => self.queue.packets() >= limit / 3,
            Limit::Bytes(limit) => self.queue.bytes() >= limit / 3,
            Limit::Unlimited => true,
        }
    }
}

/// Returns the scale of an update at a probability (RFC 8033 section 4.2).
fn scale(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 1.0 / 2048.0,
        p if p < 0.000_01 => 1.0 / 512.0,
        p if p < 0.000_1 => 1.0 / 128.0,
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        _ => 1.0,
    }
}

impl QueueDiscipline for Pie {
    fn name(&self) -> &'static str {
        PIE.declaration.name
    }

    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: QueuedPacket,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        self.catch_up(now);
        if !self.queue.admits(packet.wire_bytes) {
            self.accumulated = 0.0;
            return Err(packet);
        }
        if !self.settings.activation && self.is_calm() {
            self.burst_allowance = self.settings.max_burst;
        }
        let mut dropping = false;
        if self.active && self.burst_allowance.is_zero() && self.decides_to_drop() {
            self.accumulated = 0.0;
            let marks = self.settings.ecn && self.probability < self.settings.ecn_limit;
            dropping = !(marks && packet.mark());
        }
        let taken = if dropping {
            dropped.push(packet.dropped_early());
            Ok(())
        } else {
            self.queue.enqueue(now, packet, dropped)
        };
        if self.settings.activation {
            self.activate_or_rest(now);
        }
        taken
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        self.catch_up(now);
        let packet = self.queue.dequeue(now, dropped)?;
        match self.settings.delay {
            PieDelayEstimator::Timestamps => self.delay = now.saturating_since(packet.since).as_secs_f64(),
            PieDelayEstimator::DepartureRate { threshold_bytes } => {
                self.rate.departed(now, &packet, self.queue.bytes(), threshold_bytes);
            }
        }
        Some(packet)
    }

    fn packets(&self) -> u64 {
        self.queue.packets()
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }
}
