//! A point-to-point link, one direction: queue, transmitter, propagation, loss.
//!
//! Two forms. With drop-tail alone, the departure of a packet is known when it comes: it begins when the transmitter
//! falls free and ends a transmission time later, so one event (the arrival) does for queue, transmission and
//! propagation; the queue is a list of the starts still to come. With a discipline above the device queue, a packet's
//! fate is open until the transmitter takes it, and each departure is an event of its own.
//!
//! The packet in transmission does not count against the queue's limit. A packet whose transmission begins at the very
//! instant at which another comes has left the queue.

use crate::loss::LossModel;
use crate::packet::Handle;
use crate::queue::{Interface, Limit, QueueDiscipline};
use fullpipe_engine::Lane;
use fullpipe_units::rate::Transmitter;
use fullpipe_units::{Duration, Instant, LinkId, NodeId, Rate};
use std::collections::VecDeque;

/// What a link is built from.
#[derive(Debug)]
pub struct LinkSpecification {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// Rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Duration,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Bytes that framing adds.
    pub framing_bytes: u32,
    /// Device queue.
    pub queue: Limit,
    /// Discipline above it.
    pub discipline: Option<Box<dyn QueueDiscipline>>,
    /// Loss after transmission.
    pub loss: Option<LossModel>,
}

/// Packets and bytes that wait, computed from when each will begin.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    starts: VecDeque<(Instant, u32)>,
    bytes: u64,
}

impl Backlog {
    /// Packets whose transmission has begun by `at` leave.
    #[inline(always)]
    pub(crate) fn settle(&mut self, at: Instant) {
        while let Some((start, wire_bytes)) = self.starts.front() {
            if *start > at {
                break;
            }
            self.bytes -= u64::from(*wire_bytes);
            self.starts.pop_front();
        }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, start: Instant, wire_bytes: u32) {
        self.starts.push_back((start, wire_bytes));
        self.bytes += u64::from(wire_bytes);
    }

    pub(crate) fn packets(&self) -> u64 {
        self.starts.len() as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// State of a link with a discipline: departures are events.
#[derive(Debug)]
pub(crate) struct Driven {
    pub(crate) interface: Interface,
    pub(crate) transmitting: bool,
}

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames transmitted.
    pub frames: u64,
    /// Bytes transmitted, framing included.
    pub bytes: u64,
    /// Frames dropped at the queue.
    pub queue_drops: u64,
    /// Frames lost after transmission.
    pub losses: u64,
    /// Sum over transmitted frames of the time between coming and beginning.
    pub queue_delay_sum: Duration,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    pub(crate) to: NodeId,
    /// The only link that feeds this one, if the chain may be computed at once.
    pub(crate) feeder: Option<LinkId>,
    pub(crate) transmitter: Transmitter,
    pub(crate) delay: Duration,
    pub(crate) busy_until: Instant,
    pub(crate) framing_bytes: u32,
    pub(crate) mtu_bytes: u32,
    pub(crate) limit: Limit,
    pub(crate) flight: Lane<Handle>,
    pub(crate) backlog: Backlog,
    pub(crate) counters: LinkCounters,
    pub(crate) loss: Option<Box<LossModel>>,
    pub(crate) driven: Option<Box<Driven>>,
}

impl Link {
    pub(crate) fn new(specification: LinkSpecification) -> Self {
        let LinkSpecification { from: _, to, rate, delay, mtu_bytes, framing_bytes, queue, discipline, loss } =
            specification;
        let driven = discipline.map(|discipline| {
            Box::new(Driven {
                interface: Interface::new(Some(discipline), queue, mtu_bytes + framing_bytes),
                transmitting: false,
            })
        });
        Link {
            to,
            feeder: None,
            transmitter: Transmitter::new(rate),
            delay,
            busy_until: Instant::ZERO,
            framing_bytes,
            mtu_bytes,
            limit: queue,
            flight: Lane::default(),
            backlog: Backlog::default(),
            counters: LinkCounters::default(),
            loss: loss.map(Box::new),
            driven,
        }
    }

    /// Its counters. Those of a link that is computed ahead are of a later instant; see [`crate::network`].
    pub fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// Packets and bytes that wait at `now` (not the one in transmission).
    pub fn queue(&mut self, now: Instant) -> (u64, u64) {
        match &self.driven {
            Some(driven) => (driven.interface.packets(), driven.interface.bytes()),
            None => {
                self.backlog.settle(now);
                (self.backlog.packets(), self.backlog.bytes())
            }
        }
    }

    /// Frames and bytes that were offered and neither reported as transmitted nor as dropped. A link without a
    /// discipline reports a transmission when the frame comes.
    pub(crate) fn queued(&self) -> (u64, u64) {
        self.driven.as_ref().map_or((0, 0), |driven| (driven.interface.packets(), driven.interface.bytes()))
    }
}
