//! Strict priority among several bands, each with its own discipline. A band is served only if no earlier band has a
//! packet to send.

use super::settings::{
    Discipline, DisciplineComponent, DisciplineContext, DisciplineSettings, LIMIT_KEY, LinkParameters, QueueCapacity,
};
use super::{BAND, BANDS};
use crate::queue::{Limit, QueueDiscipline, QueuedPacket};
use fullpipe_record::Protocol;
use fullpipe_schema::component::{Component, Declaration, InvalidSettings, SettingsReader, choices};
use fullpipe_schema::{Choice, Field, FieldKind, keys};
use fullpipe_units::{EcnCodepoint, FlowId, Instant};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How packets are assigned to bands. Band 0 is served first; numbers beyond the last band select the last band.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Classifier {
    /// By transport protocol.
    Protocol {
        /// Band of TCP segments.
        tcp: usize,
        /// Band of UDP datagrams, and of all fragments.
        udp: usize,
    },
    /// By ECN codepoint.
    Ecn {
        /// Band of packets that are not ECN-capable.
        not_ect: usize,
        /// Band of packets with ECT(0).
        ect0: usize,
        /// Band of packets with ECT(1).
        ect1: usize,
        /// Band of packets with CE ("congestion experienced").
        ce: usize,
    },
    /// By size at the IP layer.
    Size {
        /// Maximum packet size of each band except the last, in bytes, in increasing order.
        largest_bytes: Vec<u32>,
    },
    /// By flow; each direction of a conversation is a separate flow.
    Flow {
        /// Bands of the given flows.
        bands: BTreeMap<FlowId, usize>,
        /// Band of all other flows, and of fragments after the first, which have no ports.
        others: usize,
    },
}

impl Classifier {
    /// Returns the band of a packet.
    fn band(&self, packet: &QueuedPacket) -> usize {
        match self {
            Classifier::Protocol { tcp, udp } => match packet.protocol {
                Protocol::Tcp => *tcp,
                Protocol::Udp => *udp,
            },
            Classifier::Ecn { not_ect, ect0, ect1, ce } => match packet.codepoint {
                EcnCodepoint::NotEct => *not_ect,
                EcnCodepoint::Ect0 => *ect0,
                EcnCodepoint::Ect1 => *ect1,
                EcnCodepoint::Ce => *ce,
            },
            Classifier::Size { largest_bytes } => largest_bytes.partition_point(|largest| *largest < packet.ip_bytes),
            Classifier::Flow { bands, others } => {
                let flow = u32::try_from(packet.key).ok().map(FlowId);
                flow.and_then(|flow| bands.get(&flow)).copied().unwrap_or(*others)
            }
        }
    }
}

/// Maximum number of bands.
const MOST_BANDS: usize = 64;

/// How a scenario assigns packets to bands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BandClassifier {
    /// By the flow's `priority`; flows without a priority use the last band.
    Flow,
    /// UDP and fragments use the first band, TCP the second.
    Protocol,
    /// ECT(1) and CE use the first band, all others the second.
    Ecn,
    /// By size at the IP layer.
    Size {
        /// Maximum packet size of each band except the last, in bytes, in increasing order.
        largest_bytes: Vec<u32>,
    },
}

static BY: [(Choice, BandClassifier); 4] = [
    (Choice::new("flow", "by the flow's `priority`; flows without one use the last band."), BandClassifier::Flow),
    (Choice::new("protocol", "UDP and fragments use the first band, TCP the second."), BandClassifier::Protocol),
    (Choice::new("codepoint", "ECT(1) and CE use the first band, all others the second."), BandClassifier::Ecn),
    (Choice::new("size", "by packet size; see `sizes`."), BandClassifier::Size { largest_bytes: Vec::new() }),
];

pub(super) static PRIORITY: DisciplineComponent = Component {
    declaration: Declaration {
        name: "priority",
        text: "strict priority: a band is served only while all bands before it are empty.",
        fields: &[keys! {
            /// Criterion that assigns packets to bands.
            "by": FieldKind::Choice(&choices(&BY)), default "flow";
            /// With `by = "size"`: size of the largest IP packet of each band but the last, in ascending order.
            "sizes": FieldKind::List(&FieldKind::size(1, 65_535)), default "[]";
            Field::optional(
                LIMIT_KEY,
                FieldKind::LinkQueueLimit,
                "only the limit of each band",
                "Limit of all bands together; a packet that exceeds it is dropped on arrival, whatever its band.",
            );
            /// Disciplines of the bands, in order of service.
            "bands": FieldKind::Tables(&BAND), required;
        }],
        ..Declaration::EMPTY
    },
    read,
};

fn read(reader: &mut SettingsReader<'_, '_>, device: &LinkParameters) -> Result<Option<Discipline>, InvalidSettings> {
    let (tree, path) = (reader.tree, reader.path);
    let trees = tree.tables("bands");
    if trees.is_empty() || trees.len() > MOST_BANDS {
        let message = format!("{path} has {} bands", trees.len());
        return Err(reader.add_error("bands", message, &format!("1 to {MOST_BANDS} bands")));
    }
    let mut by = tree.choice_value("by", &BY);
    if let BandClassifier::Size { largest_bytes } = &mut by {
        let sizes = tree.list("sizes").iter().map(|size| u32::try_from(size.size()).unwrap_or(u32::MAX));
        largest_bytes.extend(sizes);
        if largest_bytes.len() + 1 != trees.len() || !largest_bytes.is_sorted() {
            let message = format!("{} sizes do not separate {} bands", largest_bytes.len(), trees.len());
            return Err(reader.add_error(
                "sizes",
                message,
                "sizes in ascending order, one for each band except the last",
            ));
        }
    }
    let mut bands = Vec::new();
    for (index, tree) in trees.iter().enumerate() {
        let path = format!("{path}.bands.{index}");
        let mut reader = SettingsReader { tree, path: &path, check: reader.check };
        match BANDS.read(&mut reader, device)? {
            Some(band) => bands.push(band),
            None => {
                return Err(reader.add_error(
                    BANDS.key,
                    format!("{path} has kind = \"none\", but a band requires a queue"),
                    "\"fifo\"",
                ));
            }
        }
    }
    let limit = tree.get(LIMIT_KEY).map_or(Limit::Unlimited, |_| device.limit(reader, LIMIT_KEY));
    Ok(Some(Arc::new(PrioritySpecification { by, limit, bands })))
}

/// Settings of strict priority.
#[derive(Clone, Debug, PartialEq)]
pub struct PrioritySpecification {
    /// How packets are assigned to bands.
    pub by: BandClassifier,
    /// Limit of all bands together.
    pub limit: Limit,
    /// The bands, in order of service.
    pub bands: Vec<Discipline>,
}

impl DisciplineSettings for PrioritySpecification {
    fn name(&self) -> &'static str {
        PRIORITY.declaration.name
    }

    fn build(&self, context: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline> {
        let classifier = match &self.by {
            BandClassifier::Protocol => Classifier::Protocol { tcp: 1, udp: 0 },
            BandClassifier::Ecn => Classifier::Ecn { not_ect: 1, ect0: 1, ect1: 0, ce: 0 },
            BandClassifier::Size { largest_bytes } => Classifier::Size { largest_bytes: largest_bytes.clone() },
            BandClassifier::Flow => {
                Classifier::Flow { bands: context.bands.clone(), others: self.bands.len().saturating_sub(1) }
            }
        };
        let build = |(index, band): (usize, &Discipline)| {
            let interface = format!("{} band {index}", context.interface);
            band.build(&DisciplineContext { interface: &interface, ..*context })
        };
        let bands = self.bands.iter().enumerate().map(build).collect();
        Box::new(StrictPriority::new(classifier, bands).with_limit(self.limit))
    }

    fn capacity(&self) -> QueueCapacity {
        let bands = self.bands.iter().map(|band| band.capacity()).fold(QueueCapacity::NOTHING, QueueCapacity::combine);
        bands.intersect(QueueCapacity::from_limit(self.limit))
    }

    fn reorders(&self) -> bool {
        true
    }
}

/// The strict-priority queue discipline.
#[derive(Debug)]
pub struct StrictPriority {
    classifier: Classifier,
    limit: Limit,
    bands: Vec<Box<dyn QueueDiscipline>>,
}

impl StrictPriority {
    /// Returns the discipline with bands in order of service. Without bands, it rejects every packet.
    pub fn new(classifier: Classifier, bands: Vec<Box<dyn QueueDiscipline>>) -> Self {
        StrictPriority { classifier, limit: Limit::Unlimited, bands }
    }

    /// Sets the limit that applies to all bands together; the default is unlimited.
    #[must_use]
    pub fn with_limit(self, limit: Limit) -> Self {
        StrictPriority { limit, ..self }
    }
}

impl QueueDiscipline for StrictPriority {
    fn name(&self) -> &'static str {
        PRIORITY.declaration.name
    }

    fn enqueue(
        &mut self,
        now: Instant,
        packet: QueuedPacket,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        if self.limit != Limit::Unlimited && !self.limit.admits(self.packets(), self.bytes(), packet.wire_bytes) {
            return Err(packet);
        }
        let last = self.bands.len().saturating_sub(1);
        match self.bands.get_mut(self.classifier.band(&packet).min(last)) {
            Some(band) => band.enqueue(now, packet, dropped),
            None => Err(packet),
        }
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        self.bands.iter_mut().find_map(|band| band.dequeue(now, dropped))
    }

    fn packets(&self) -> u64 {
        self.bands.iter().map(|band| band.packets()).sum()
    }

    fn bytes(&self) -> u64 {
        self.bands.iter().map(|band| band.bytes()).sum()
    }
}
