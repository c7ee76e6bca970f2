//! Random early detection (RED; Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance",
//! IEEE/ACM Transactions on Networking 1(4), 1993), with the "gentle" slope (Floyd, 2000) and Adaptive RED (Floyd,
//! Gummadi and Shenker, "Adaptive RED", 2001).
//!
//! Each arrival updates an exponentially weighted moving average of the queue length with weight w_q. When a packet
//! arrives at an empty queue, the average first decays, as if typical packets had arrived at the link's rate during the
//! idle time. Below the lower threshold no packet is dropped. Between the thresholds the probability p_b rises linearly
//! to max_p. To spread the drops evenly, packet number `count` since the last drop is dropped with probability p_b /
//! (1 - count p_b). The distance between drops then has a uniform instead of a geometric distribution. Above the upper
//! threshold all packets are dropped. With the gentle slope, the probability instead rises from max_p to 1 at twice the
//! threshold.
//!
//! With ECN, ECN-capable packets that are selected between the thresholds are marked. Above the upper threshold, all
//! selected packets are dropped (RFC 3168 section 7 reserves drops for flows that ignore marks).
//!
//! Adaptive RED changes max_p at regular intervals to keep the average in the middle fifth of the range between the
//! thresholds. It increases max_p additively and decreases it multiplicatively.

use super::periodic::PeriodicTimer;
use super::settings::{
    Discipline, DisciplineComponent, DisciplineContext, DisciplineSettings, ECN_OFF, LIMIT, LIMIT_KEY, LinkParameters,
    QueueCapacity, TARGET,
};
use crate::queue::{Fifo, Limit, QueueDiscipline, QueuedPacket};
use fullpipe_schema::component::{Component, Declaration, InvalidSettings, SettingsReader};
use fullpipe_schema::quantity::format_link_queue_limit;
use fullpipe_schema::{Field, FieldKind, keys};
use fullpipe_units::{Duration, Instant, RandomStream, Rate, math};
use std::sync::Arc;

/// The unit of the average queue length and of the thresholds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedUnit {
    /// Packets; all packets have the same drop probability.
    #[default]
    Packets,
    /// Bytes; the drop probability of a packet is proportional to its size.
    Bytes,
}

/// Settings of Adaptive RED, which changes the maximum probability. The defaults are those of Floyd, Gummadi and
/// Shenker 2001, section 4.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveRedSpecification {
    /// Time between adaptations.
    pub interval: Duration,
    /// Amount of an increase (alpha), limited to a quarter of the current probability.
    pub increase: f64,
    /// Factor by which a decrease multiplies the current probability (beta).
    pub decrease: f64,
    /// Lower bound of the maximum probability.
    pub lowest: f64,
    /// Upper bound of the maximum probability.
    pub highest: f64,
}

impl Default for AdaptiveRedSpecification {
    fn default() -> Self {
        AdaptiveRedSpecification {
            interval: Duration::from_millis(500),
            increase: 0.01,
            decrease: 0.9,
            lowest: 0.01,
            highest: 0.5,
        }
    }
}

/// Settings of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSpecification {
    /// Limit of the queue.
    pub limit: Limit,
    /// Unit of the average queue length and of the thresholds.
    pub unit: RedUnit,
    /// Lower threshold: average queue length below which no packet is dropped.
    pub min_threshold: f64,
    /// Upper threshold: average queue length at which packets are dropped with [`RedSpecification::max_probability`].
    pub max_threshold: f64,
    /// Drop probability at the upper threshold (max_p).
    pub max_probability: f64,
    /// Weight of the current queue length in the average (w_q).
    pub weight: f64,
    /// Whether the probability rises linearly to 1 between the upper threshold and twice the upper threshold, instead
    /// of in one step.
    pub gentle: bool,
    /// Size of a typical packet on the wire in bytes. It determines how fast the average decays while the queue is
    /// empty.
    pub mean_packet_bytes: u32,
    /// Size of the largest packet on the wire in bytes. If the unit is bytes, a packet of this size has the full drop
    /// probability.
    pub max_packet_bytes: u32,
    /// Rate at which packets depart.
    pub rate: Rate,
    /// Whether ECN-capable packets are marked instead of dropped while the average is below the upper threshold.
    pub ecn: bool,
    /// Settings of Adaptive RED; `None` if the maximum probability is constant.
    pub adaptive: Option<AdaptiveRedSpecification>,
}

impl RedSpecification {
    /// Returns the recommended settings of RED in packets (Floyd 1997): thresholds of 5 and 15 packets, max_p 0.1, w_q
    /// 0.002, gentle.
    pub fn recommended(limit: Limit, rate: Rate) -> Self {
        RedSpecification {
            limit,
            unit: RedUnit::Packets,
            min_threshold: 5.0,
            max_threshold: 15.0,
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            mean_packet_bytes: 1500,
            max_packet_bytes: 1518,
            rate,
            ecn: false,
            adaptive: None,
        }
    }

    /// Returns settings of Adaptive RED that are derived from the rate and the target delay (Floyd, Gummadi and Shenker
    /// 2001, section 5). The lower threshold is half the number of packets that depart in the target delay, at least 5
    /// packets. The upper threshold is three times that. w_q = 1 - exp(-1/C), where C is the rate in packets per
    /// second.
    pub fn adaptive(limit: Limit, rate: Rate, target_delay: Duration) -> Self {
        let base = Self::recommended(limit, rate);
        let packets_per_second = rate.bits_per_second() as f64 / (8.0 * f64::from(base.mean_packet_bytes));
        let min_threshold = (target_delay.as_secs_f64() * packets_per_second / 2.0).max(5.0);
        RedSpecification {
            min_threshold,
            max_threshold: 3.0 * min_threshold,
            weight: 1.0 - math::exp(-1.0 / packets_per_second),
            adaptive: Some(AdaptiveRedSpecification::default()),
            ..base
        }
    }
}

pub(super) static RED: DisciplineComponent = Component {
    declaration: Declaration {
        name: "red",
        version: "Floyd and Jacobson (1993)",
        source: "IEEE/ACM ToN 1(4), 1993",
        text: "random early detection, based on the average queue length (Floyd and Jacobson 1993).",
        fields: &[keys! {
            LIMIT;
            /// Lower threshold: average queue length below which no packet is dropped.
            "min": FieldKind::LinkQueueLimit, default "5packets";
            /// Upper threshold: average queue length at which the drop probability is `max_probability`, in the unit of
            /// `min`.
            "max": FieldKind::LinkQueueLimit, default "15packets";
            /// Drop probability at `max`.
            "max_probability": FieldKind::PROBABILITY, default "0.1";
            /// Weight of the current queue length in the average.
            "weight": FieldKind::number(1e-9, 1.0), default "0.002";
            /// Whether the drop probability rises linearly to 1 between `max` and twice `max`.
            "gentle": FieldKind::Boolean, default "true";
            ECN_OFF;
        }],
    },
    read,
};

pub(super) static ARED: DisciplineComponent = Component {
    declaration: Declaration {
        name: "ared",
        version: "Floyd, Gummadi and Shenker (2001)",
        source: "Adaptive RED, ICIR, 2001",
        text: "adaptive RED: thresholds follow from the link rate and a target delay, and `max_probability` adapts (Floyd, \
               Gummadi and Shenker 2001).",
        fields: &[&[LIMIT, Field::default("target", TARGET, "5ms", "Target of the mean queueing delay."), ECN_OFF]],
    },
    read: |reader, device| {
        let limit = device.limit(reader, LIMIT_KEY);
        Ok(Some(Arc::new(RedSpecification {
            ecn: reader.tree.boolean("ecn"),
            max_packet_bytes: device.max_frame_bytes(),
            ..RedSpecification::adaptive(limit, device.rate, reader.tree.duration("target"))
        })))
    },
};

fn read(reader: &mut SettingsReader<'_, '_>, device: &LinkParameters) -> Result<Option<Discipline>, InvalidSettings> {
    let (tree, path) = (reader.tree, reader.path);
    let of = |key: &str| match device.limit(reader, key) {
        Limit::Packets(packets) => (RedUnit::Packets, packets as f64),
        Limit::Bytes(bytes) => (RedUnit::Bytes, bytes as f64),
        Limit::Unlimited => (RedUnit::Bytes, f64::INFINITY),
    };
    let ((unit, min_threshold), (unit_of_max, max_threshold)) = (of("min"), of("max"));
    let text = |key: &str| format_link_queue_limit(tree.link_queue_limit(key));
    // No limit has no unit, so this precedes the comparison of units.
    for (key, threshold) in [("min", min_threshold), ("max", max_threshold)] {
        if threshold.is_infinite() {
            let message = format!("{path}.{key} = \"{}\" is not a threshold", text(key));
            return Err(reader.add_error(key, message, "a limit such as \"15packets\""));
        }
    }
    let at = if tree.is_given("max") { "max" } else { "min" };
    if unit != unit_of_max {
        let message = format!("one of {path}.min and {path}.max counts packets and the other bytes");
        return Err(reader.add_error(at, message, "both limits in packets, or neither"));
    }
    if min_threshold >= max_threshold {
        let message = format!("{path}.min = \"{}\" is not below max = \"{}\"", text("min"), text("max"));
        return Err(reader.add_error(at, message, "min below max"));
    }
    Ok(Some(Arc::new(RedSpecification {
        unit,
        min_threshold,
        max_threshold,
        max_probability: tree.number("max_probability"),
        weight: tree.number("weight"),
        gentle: tree.boolean("gentle"),
        max_packet_bytes: device.max_frame_bytes(),
        ecn: tree.boolean("ecn"),
        ..RedSpecification::recommended(device.limit(reader, LIMIT_KEY), device.rate)
    })))
}

impl DisciplineSettings for RedSpecification {
    fn name(&self) -> &'static str {
        if self.adaptive.is_some() { ARED.declaration.name } else { RED.declaration.name }
    }

    fn build(&self, context: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline> {
        Box::new(Red::new(*self, context.random_stream()))
    }

    fn capacity(&self) -> QueueCapacity {
        QueueCapacity::from_limit(self.limit)
    }

    fn reorders(&self) -> bool {
        false
    }
}

/// The RED queue discipline.
#[derive(Debug)]
pub struct Red {
    settings: RedSpecification,
    stream: RandomStream,
    queue: Fifo,
    average: f64,
    /// When the queue became empty.
    empty_since: Option<Instant>,
    /// Number of packets accepted since the last drop; `None` while the average is below the lower threshold.
    spared: Option<u64>,
    max_probability: f64,
    adaptations: Option<PeriodicTimer>,
}

/// The decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Take,
    /// Mark the packet if it is ECN-capable, otherwise drop it.
    Signal,
    Drop,
}

impl Red {
    /// Returns an empty discipline. Random numbers from `stream` select the packets that are dropped.
    pub fn new(settings: RedSpecification, stream: RandomStream) -> Self {
        Red {
            queue: Fifo::new(settings.limit),
            average: 0.0,
            empty_since: Some(Instant::ZERO),
            spared: None,
            max_probability: settings.max_probability,
            adaptations: settings.adaptive.map(|adaptive| PeriodicTimer::after(Instant::ZERO, adaptive.interval)),
            settings,
            stream,
        }
    }

    /// Returns the average queue length, in the unit of the settings, as of the last arrival.
    pub fn average(&self) -> f64 {
        self.average
    }

    /// Returns the current maximum probability (max_p), as of the last arrival.
    pub fn max_probability(&self) -> f64 {
        self.max_probability
    }

    /// Executes the adaptations that are due; the average has not changed since the last arrival.
    fn adapt(&mut self, now: Instant) {
        let (Some(adaptive), Some(adaptations)) = (self.settings.adaptive, &mut self.adaptations) else { return };
        let RedSpecification { min_threshold, max_threshold, .. } = self.settings;
        let low = min_threshold + 0.4 * (max_threshold - min_threshold);
        let high = min_threshold + 0.6 * (max_threshold - min_threshold);
        while adaptations.due(now).is_some() {
            let before = self.max_probability;
            if self.average > high && before <= adaptive.highest {
                self.max_probability += adaptive.increase.min(before / 4.0);
            } else if self.average < low && before >= adaptive.lowest {
                self.max_probability *= adaptive.decrease;
            }
            self.max_probability = self.max_probability.min(adaptive.highest).max(adaptive.lowest);
            if self.max_probability == before {
                adaptations.skip(now);
            }
        }
    }

    fn update_average(&mut self, now: Instant) {
        let weight = self.settings.weight;
        if let Some(since) = self.empty_since {
            let typical = self.settings.rate.transmission_time(u64::from(self.settings.mean_packet_bytes.max(1)));
            let missed = now.saturating_since(since).as_secs_f64() / typical.as_secs_f64();
            self.average *= math::pow(1.0 - weight, missed);
        } else {
            let present = match self.settings.unit {
                RedUnit::Packets => self.queue.packets(),
                RedUnit::Bytes => self.queue.bytes(),
            };
            self.average += weight * (present as f64 - self.average);
        }
    }

    /// Returns the probability p_b at the current average, before drops are spread evenly.
    fn base_probability(&self, packet: &QueuedPacket) -> f64 {
        let RedSpecification { min_threshold, max_threshold, .. } = self.settings;
        let probability = if self.average < max_threshold {
            self.max_probability * (self.average - min_threshold) / (max_threshold - min_threshold)
        } else {
            self.max_probability + (1.0 - self.max_probability) * (self.average - max_threshold) / max_threshold
        };
        match self.settings.unit {
            RedUnit::Packets => probability,
            RedUnit::Bytes => probability * f64::from(packet.wire_bytes) / f64::from(self.settings.max_packet_bytes),
        }
    }

    fn judge(&mut self, packet: &QueuedPacket) -> Verdict {
        let RedSpecification { min_threshold, max_threshold, gentle, .. } = self.settings;
        if self.average < min_threshold {
            self.spared = None;
            return Verdict::Take;
        }
        let certain = if gentle { 2.0 * max_threshold } else { max_threshold };
        if self.average >= certain {
            self.spared = Some(0);
            return Verdict::Drop;
        }
        // The count starts at the first packet above the lower threshold.
        let spared = self.spared.map_or(0, |spared| spared + 1);
        self.spared = Some(spared);
        let base = self.base_probability(packet);
        let room = 1.0 - spared as f64 * base;
        if room > 0.0 && !self.stream.bernoulli(base / room) {
            return Verdict::Take;
        }
        self.spared = Some(0);
        if self.average < max_threshold { Verdict::Signal } else { Verdict::Drop }
    }
}

impl QueueDiscipline for Red {
    fn name(&self) -> &'static str {
        self.settings.name()
    }

    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: QueuedPacket,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        self.adapt(now);
        self.update_average(now);
        let verdict = self.judge(&packet);
        if !self.queue.admits(packet.wire_bytes) {
            self.spared = self.spared.map(|_| 0);
            return Err(packet);
        }
        let taken = match verdict {
            Verdict::Take => true,
            Verdict::Signal => self.settings.ecn && packet.mark(),
            Verdict::Drop => false,
        };
        if !taken {
            // The average of an empty queue decays from the last arrival, even if that packet was dropped.
            if self.empty_since.is_some() {
                self.empty_since = Some(now);
            }
            dropped.push(packet.dropped_early());
            return Ok(());
        }
        self.empty_since = None;
        self.queue.enqueue(now, packet, dropped)
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let packet = self.queue.dequeue(now, dropped)?;
        if self.queue.packets() == 0 {
            self.empty_since = Some(now);
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
