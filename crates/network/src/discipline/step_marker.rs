//! Drop-tail with a step: marks ECN-capable packets while the queue is above a threshold (Alizadeh et al., "Data Center
//! TCP (DCTCP)", SIGCOMM 2010, section 3.1; RFC 8257).

use crate::queue::{Fifo, Limit, QueueDiscipline, Queued};
use fullpipe_units::{Duration, Instant};

/// Above what the step marker marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    /// A packet is marked that finds more packets than this waiting.
    Packets(u64),
    /// A packet is marked that finds more bytes on the wire than this waiting.
    Bytes(u64),
    /// A packet is marked that has waited longer than this.
    Delay(Duration),
}

/// Settings of the step marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMarkerSpecification {
    /// Of the queue itself.
    pub limit: Limit,
    /// The step (K).
    pub threshold: StepThreshold,
    /// Whether packets that are not ECN-capable are dropped above the step (as RED with equal thresholds does).
    pub drops_incapable: bool,
}

impl Default for StepMarkerSpecification {
    /// The paper's: 65 packets, its figure for 10 Gbit/s.
    fn default() -> Self {
        StepMarkerSpecification {
            limit: Limit::Packets(1000),
            threshold: StepThreshold::Packets(65),
            drops_incapable: false,
        }
    }
}

/// The discipline.
#[derive(Debug)]
pub struct StepMarker {
    settings: StepMarkerSpecification,
    queue: Fifo,
}

impl StepMarker {
    /// An empty discipline.
    pub fn new(settings: StepMarkerSpecification) -> Self {
        StepMarker { settings, queue: Fifo::new(settings.limit) }
    }
}

impl QueueDiscipline for StepMarker {
    fn enqueue(&mut self, now: Instant, mut packet: Queued, dropped: &mut Vec<Queued>) -> Result<(), Queued> {
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

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Queued>) -> Option<Queued> {
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
