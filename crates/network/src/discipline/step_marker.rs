//! A drop-tail queue that marks ECN-capable packets while the queue exceeds a threshold (Alizadeh et al., "Data Center
//! TCP (DCTCP)", SIGCOMM 2010, section 3.1; RFC 8257).

use super::settings::{DisciplineComponent, DisciplineContext, DisciplineSettings, LIMIT, LIMIT_KEY, QueueCapacity};
use crate::queue::{Fifo, Limit, QueueDiscipline, QueuedPacket};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_schema::{FieldKind, keys};
use fullpipe_units::{Duration, Instant, QueueLimit};
use std::sync::Arc;

/// The threshold of the step marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    /// An arriving packet is marked if more than this number of packets wait.
    Packets(u64),
    /// An arriving packet is marked if more than this number of bytes on the wire wait.
    Bytes(u64),
    /// A departing packet is marked if it has waited longer than this time.
    Delay(Duration),
}

/// Settings of the step marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMarkerSpecification {
    /// Limit of the queue.
    pub limit: Limit,
    /// The marking threshold (K).
    pub threshold: StepThreshold,
    /// Whether packets that are not ECN-capable are dropped above the threshold, as in RED with equal thresholds.
    pub drops_incapable: bool,
}

impl Default for StepMarkerSpecification {
    /// Returns the threshold of the paper for 10 Gbit/s: 65 packets.
    fn default() -> Self {
        StepMarkerSpecification {
            limit: Limit::Packets(1000),
            threshold: StepThreshold::Packets(65),
            drops_incapable: false,
        }
    }
}

pub(super) static STEP: DisciplineComponent = Component {
    declaration: Declaration {
        name: "step",
        version: "RFC 8257 (2017)",
        source: "RFC 8257",
        text: "drop-tail that marks all packets above a threshold (DCTCP, RFC 8257).",
        fields: &[keys! {
            LIMIT;
            /// Queue length above which arriving packets are marked; a time is the sojourn time above which they are
            /// marked.
            "threshold": FieldKind::LinkQueueLimit, default "65packets";
            /// Whether packets that are not ECN-capable are dropped above the threshold.
            "drops_incapable": FieldKind::Boolean, default "false";
        }],
    },
    read: |reader, device| {
        Ok(Some(Arc::new(StepMarkerSpecification {
            limit: device.limit(reader, LIMIT_KEY),
            threshold: match device.resolve_limit(reader.tree.link_queue_limit("threshold")) {
                QueueLimit::Packets(packets) => StepThreshold::Packets(u64::from(packets)),
                QueueLimit::Bytes(bytes) => StepThreshold::Bytes(bytes),
                QueueLimit::Time(time) => StepThreshold::Delay(time),
                QueueLimit::Unlimited => StepThreshold::Bytes(u64::MAX),
            },
            drops_incapable: reader.tree.boolean("drops_incapable"),
        })))
    },
};

impl DisciplineSettings for StepMarkerSpecification {
    fn name(&self) -> &'static str {
        STEP.declaration.name
    }

    fn build(&self, _: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline> {
        Box::new(StepMarker::new(*self))
    }

    fn capacity(&self) -> QueueCapacity {
        QueueCapacity::from_limit(self.limit)
    }

    fn reorders(&self) -> bool {
        false
    }
}

/// The step-marking queue discipline.
#[derive(Debug)]
pub struct StepMarker {
    settings: StepMarkerSpecification,
    queue: Fifo,
}

impl StepMarker {
    /// Returns an empty discipline.
    pub fn new(settings: StepMarkerSpecification) -> Self {
        StepMarker { settings, queue: Fifo::new(settings.limit) }
    }
}

impl QueueDiscipline for StepMarker {
    fn name(&self) -> &'static str {
        STEP.declaration.name
    }

    fn enqueue(
        &mut self,
        now: Instant,
        mut packet: QueuedPacket,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        let above = match self.settings.threshold {
            StepThreshold::Packets(threshold) => self.queue.packets() > threshold,
            StepThreshold::Bytes(threshold) => self.queue.bytes() > threshold,
            StepThreshold::Delay(_) => false,
        };
        if !self.queue.admits(packet.wire_bytes) {
            return Err(packet);
        }
        if above && !packet.mark() && self.settings.drops_incapable {
            dropped.push(packet.dropped_early());
            return Ok(());
        }
        self.queue.enqueue(now, packet, dropped)
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        loop {
            let mut packet = self.queue.dequeue(now, dropped)?;
            if let StepThreshold::Delay(threshold) = self.settings.threshold
                && now.saturating_since(packet.since) > threshold
                && !packet.mark()
                && self.settings.drops_incapable
            {
                dropped.push(packet.dropped_early());
                continue;
            }
            return Some(packet);
        }
    }

    fn packets(&self) -> u64 {
        self.queue.packets()
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }
}
