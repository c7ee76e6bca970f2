//! Events at links: changes of queues, drops and marks.
//!
//! The network computes a chain of links at once, so it reports events ahead of the clock. The events are sorted by
//! time, and written when the clock has passed them. All changes of a queue at one instant are one event. If a queue
//! has the same length before and after the instant, no event is written. For example, a packet that arrives at an idle
//! transmitter does not wait.

use crate::promise::declared_links;
use fullpipe_audit::DeclaredLink;
use fullpipe_record::qlog::QlogWriter;
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_scenario::Scenario;
use fullpipe_units::{FlowId, Instant, LinkId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Changes that are not written yet, by time and, within an instant, in the order in which they were reported.
pub(super) type PendingChanges = Arc<Mutex<BTreeMap<(Instant, u64), LinkChange>>>;

/// A change of a link's queue, a drop or a mark.
#[derive(Clone, Copy, Debug)]
pub(super) enum LinkChange {
    /// A frame with this number of bytes enters the queue of this link.
    Enqueued(LinkId, u32),
    /// A frame with this number of bytes leaves the queue of this link.
    Dequeued(LinkId, u32),
    Dropped {
        link: Option<LinkId>,
        flow: FlowId,
        ip_bytes: u32,
        reason: DropReason,
    },
    Marked {
        link: LinkId,
        flow: FlowId,
        ip_bytes: u32,
    },
}

/// The observer that collects the changes.
#[derive(Debug)]
pub(super) struct LinkObserver {
    pub(super) pending: PendingChanges,
    /// Whether each link's queue is logged, by number of the link.
    pub(super) watched: Vec<bool>,
    /// Number of changes reported so far.
    pub(super) reported: u64,
}

impl LinkObserver {
    fn note(&mut self, at: Instant, change: LinkChange) {
        self.reported += 1;
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert((at, self.reported), change);
    }

    fn watches(&self, link: LinkId) -> bool {
        self.watched.get(link.index()).copied().unwrap_or(false)
    }
}

impl Observer for LinkObserver {
    fn on_dropped(&mut self, now: Instant, packet: &PacketView, link: Option<LinkId>, reason: DropReason) {
        self.note(now, LinkChange::Dropped { link, flow: packet.flow, ip_bytes: packet.ip_bytes, reason });
    }

    fn on_offered(&mut self, now: Instant, link: LinkId, wire_bytes: u32) {
        if self.watches(link) {
            self.note(now, LinkChange::Enqueued(link, wire_bytes));
        }
    }

    fn on_link_dropped(&mut self, now: Instant, link: LinkId, wire_bytes: u32, _reason: DropReason) {
        if self.watches(link) {
            self.note(now, LinkChange::Dequeued(link, wire_bytes));
        }
    }

    fn on_marked(&mut self, now: Instant, packet: &PacketView, link: LinkId) {
        self.note(now, LinkChange::Marked { link, flow: packet.flow, ip_bytes: packet.ip_bytes });
    }

    fn on_transmitted(&mut self, transmission: &Transmission) {
        let Transmission { link, wire_bytes, start, .. } = *transmission;
        if self.watches(link) {
            self.note(start, LinkChange::Dequeued(link, wire_bytes));
        }
    }

    fn on_passed(&mut self, transmission: &Transmission) {
        if transmission.start > transmission.offered {
            self.on_offered(transmission.offered, transmission.link, transmission.wire_bytes);
            self.on_transmitted(transmission);
        }
    }
}

/// The length of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct QueueLength {
    packets: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Link {
    name: String,
    queue: QueueLength,
    /// The queue length in the latest event.
    written: QueueLength,
}

/// Writes the events of links.
#[derive(Debug)]
pub(super) struct LinkLog {
    pending: PendingChanges,
    links: Vec<Link>,
}

impl LinkLog {
    pub(super) fn new(scenario: &Scenario) -> LinkLog {
        let links = declared_links(scenario).into_iter();
        let links = links.map(|DeclaredLink { name, .. }| Link {
            name,
            queue: QueueLength::default(),
            written: QueueLength::default(),
        });
        LinkLog { pending: PendingChanges::default(), links: links.collect() }
    }

    /// Returns the observer that collects the changes of these links' queues, and all drops and marks.
    pub(super) fn observer(&self, queues: impl Iterator<Item = LinkId>) -> LinkObserver {
        let mut watched = vec![false; self.links.len()];
        queues.for_each(|link| watched[link.index()] = true);
        LinkObserver { pending: self.pending.clone(), watched, reported: 0 }
    }

    /// Writes all events before `until`; `name` returns the name of a flow.
    pub(super) fn write(&mut self, until: Instant, writer: &mut QlogWriter, name: impl Fn(FlowId) -> String) {
        while let Some((at, changes)) = self.next_instant(until) {
            self.write_instant(at, &changes, writer, &name);
        }
    }

    /// Writes the remaining events of a run that ended at `end`. Changes of queues after the end are omitted. Drops and
    /// marks after the end are written if the network has already computed them.
    pub(super) fn finish(&mut self, end: Instant, writer: &mut QlogWriter, name: impl Fn(FlowId) -> String) {
        while let Some((at, mut changes)) = self.next_instant(Instant::NEVER) {
            if at > end {
                changes.retain(|change| !matches!(change, LinkChange::Enqueued(..) | LinkChange::Dequeued(..)));
            }
            self.write_instant(at, &changes, writer, &name);
        }
    }

    fn next_instant(&self, until: Instant) -> Option<(Instant, Vec<LinkChange>)> {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let at = pending.first_key_value().map(|((at, _), _)| *at).filter(|at| *at < until)?;
        let mut changes = Vec::new();
        while let Some(first) = pending.first_entry().filter(|first| first.key().0 == at) {
            changes.push(first.remove());
        }
        Some((at, changes))
    }

    fn write_instant(
        &mut self,
        at: Instant,
        changes: &[LinkChange],
        writer: &mut QlogWriter,
        name: &impl Fn(FlowId) -> String,
    ) {
        for change in changes {
            match *change {
                LinkChange::Enqueued(link, wire_bytes) => {
                    let queue = &mut self.links[link.index()].queue;
                    queue.packets += 1;
                    queue.bytes += u64::from(wire_bytes);
                }
                LinkChange::Dequeued(link, wire_bytes) => {
                    let queue = &mut self.links[link.index()].queue;
                    queue.packets = queue.packets.saturating_sub(1);
                    queue.bytes = queue.bytes.saturating_sub(u64::from(wire_bytes));
                }
                LinkChange::Dropped { link, flow, ip_bytes, reason } => {
                    let link = link.and_then(|link| self.links.get(link.index())).map(|link| link.name.as_str());
                    writer.write_event(at, &group(link), "link:packet_dropped", |data| {
                        link.iter().for_each(|link| data.text("link", link));
                        data.text("flow", &name(flow));
                        data.object("raw", |raw| raw.unsigned("length", u64::from(ip_bytes)));
                        data.text("trigger", word(reason));
                    });
                }
                LinkChange::Marked { link, flow, ip_bytes } => {
                    let link = &self.links[link.index()].name;
                    writer.write_event(at, &group(Some(link)), "link:packet_marked", |data| {
                        data.text("link", link);
                        data.text("flow", &name(flow));
                        data.object("raw", |raw| raw.unsigned("length", u64::from(ip_bytes)));
                    });
                }
            }
        }
        for change in changes {
            let (LinkChange::Enqueued(link, _) | LinkChange::Dequeued(link, _)) = *change else { continue };
            let Link { name, queue, written } = &mut self.links[link.index()];
            if queue != written {
                *written = *queue;
                writer.write_event(at, &group(Some(name)), "link:queue_updated", |data| {
                    data.text("link", name);
                    data.unsigned("packets", queue.packets);
                    data.unsigned("bytes", queue.bytes);
                });
            }
        }
    }
}

/// Returns the group of the events at a link; `network` for events that belong to no link.
fn group(link: Option<&str>) -> String {
    link.map_or_else(|| "network".to_owned(), |link| format!("link {link}"))
}

fn word(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "queue_full",
        DropReason::QueueDiscipline => "queue_discipline",
        DropReason::Loss => "loss",
        DropReason::Policer => "policer",
        DropReason::Corruption => "corrupted",
        DropReason::AddressResolution => "address_resolution",
        DropReason::Collision => "collision",
        DropReason::PacketTooBig => "too_big",
        DropReason::Reassembly => "reassembly",
        DropReason::Radio => "radio",
        DropReason::Nat => "address_translation",
        DropReason::Unreachable => "unreachable",
    }
}

/// Returns, for each path, the link with the lowest rate, at which packets queue; the first of several.
pub(super) fn bottlenecks<'a>(
    scenario: &Scenario,
    paths: impl Iterator<Item = &'a [LinkId]> + 'a,
) -> impl Iterator<Item = LinkId> + 'a {
    let rates: Vec<u64> = declared_links(scenario).iter().map(|link| link.rate_bps).collect();
    paths.filter_map(move |path| path.iter().copied().min_by_key(|link| rates.get(link.index()).copied()))
}
