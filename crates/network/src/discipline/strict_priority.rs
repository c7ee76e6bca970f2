//! Strict priority: a number of bands, each with a discipline of its own; a band is served only while all before it have
//! nothing to send.

use crate::queue::{QueueDiscipline, Queued};
use fullpipe_record::Protocol;
use fullpipe_units::{Codepoint, FlowId, Instant};
use std::collections::BTreeMap;

/// How packets are told to bands. Band 0 goes first; a number beyond the last band means the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Classifier {
    /// By transport protocol.
    Protocol {
        /// Band of TCP segments.
        tcp: usize,
        /// Band of UDP datagrams, and of all fragments.
        udp: usize,
    },
    /// By ECN bits.
    Codepoint {
        /// Band of packets that are not ECN-capable.
        not_ect: usize,
        /// Band of ECT(0).
        ect0: usize,
        /// Band of ECT(1).
        ect1: usize,
        /// Band of packets that carry "congestion experienced".
        ce: usize,
    },
    /// By size at the IP layer.
    Size {
        /// Largest size of the band, for each band but the last, rising.
        largest_bytes: Vec<u32>,
    },
    /// By flow; each direction of a conversation is a flow of its own.
    Flow {
        /// Bands of the flows named.
        bands: BTreeMap<FlowId, usize>,
        /// Band of all others, and of fragments after the first, which carry no ports.
        others: usize,
    },
}

impl Classifier {
    /// The band that a packet is told to.
    fn band(&self, packet: &Queued) -> usize {
        match self {
            Classifier::Protocol { tcp, udp } => match packet.protocol {
                Protocol::Tcp => *tcp,
                Protocol::Udp => *udp,
            },
            Classifier::Codepoint { not_ect, ect0, ect1, ce } => match packet.codepoint {
                Codepoint::NotEct => *not_ect,
                Codepoint::Ect0 => *ect0,
                Codepoint::Ect1 => *ect1,
                Codepoint::Ce => *ce,
            },
            Classifier::Size { largest_bytes } => largest_bytes.partition_point(|largest| *largest < packet.ip_bytes),
            Classifier::Flow { bands, others } => {
                let flow = u32::try_from(packet.key).ok().map(FlowId);
                flow.and_then(|flow| bands.get(&flow)).copied().unwrap_or(*others)
            }
        }
    }
}

/// The discipline.
#[derive(Debug)]
pub struct StrictPriority {
    classifier: Classifier,
    bands: Vec<Box<dyn QueueDiscipline>>,
}

impl StrictPriority {
    /// Bands in the order in which they are served. Without any, every packet is refused.
    pub fn new(classifier: Classifier, bands: Vec<Box<dyn QueueDiscipline>>) -> Self {
        StrictPriority { classifier, bands }
    }
}

impl QueueDiscipline for StrictPriority {
    fn enqueue(&mut self, now: Instant, packet: Queued, dropped: &mut Vec<Queued>) -> Result<(), Queued> {
        let last = self.bands.len().saturating_sub(1);
        match self.bands.get_mut(self.classifier.band(&packet).min(last)) {
            Some(band) => band.enqueue(now, packet, dropped),
            None => Err(packet),
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<Queued>) -> Option<Queued> {
        self.bands.iter_mut().find_map(|band| band.dequeue(now, dropped))
    }

    fn packets(&self) -> u64 {
        self.bands.iter().map(|band| band.packets()).sum()
    }

    fn bytes(&self) -> u64 {
        self.bands.iter().map(|band| band.bytes()).sum()
    }
}
