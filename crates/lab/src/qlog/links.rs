//! What happens at links: how much waits where, and what is dropped or marked.
//!
//! Links are told of ahead of the clock (a chain of links is computed at once), so that what is heard is put in order of
//! time first and written when the clock has passed it. What changes a queue at one instant makes one event, and none if
//! the queue is afterwards as it was: a packet that finds a free transmitter does not wait.

use crate::promise::declared_links;
use fullpipe_audit::DeclaredLink;
use fullpipe_record::qlog::QlogWriter;
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_scenario::Scenario;
use fullpipe_units::{FlowId, Instant, LinkId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What is heard, in order of time, and within an instant as it was told.
pub(super) type Heard = Arc<Mutex<BTreeMap<(Instant, u64), Change>>>;

/// Something that happened at a link.
#[derive(Clone, Copy, Debug)]
pub(super) enum Change {
    /// A frame of so many bytes begins to wait.
    Comes(LinkId, u32),
    /// It waits no more.
    Goes(LinkId, u32),
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

/// The observer.
#[derive(Debug)]
pub(super) struct Ears {
    pub(super) heard: Heard,
    /// Links whose queue is watched, by number.
    pub(super) watched: Vec<bool>,
    pub(super) told: u64,
}

impl Ears {
    fn note(&mut self, at: Instant, change: Change) {
        self.told += 1;
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).insert((at, self.told), change);
    }

    fn watches(&self, link: LinkId) -> bool {
        self.watched.get(link.index()).copied().unwrap_or(false)
    }
}

impl Observer for Ears {
    fn dropped(&mut self, now: Instant, packet: &PacketView, link: Option<LinkId>, reason: DropReason) {
        self.note(now, Change::Dropped { link, flow: packet.flow, ip_bytes: packet.ip_bytes, reason });
    }

    fn offered(&mut self, now: Instant, link: LinkId, wire_bytes: u32) {
        if self.watches(link) {
            self.note(now, Change::Comes(link, wire_bytes));
        }
    }

    fn link_dropped(&mut self, now: Instant, link: LinkId, wire_bytes: u32, _reason: DropReason) {
        if self.watches(link) {
            self.note(now, Change::Goes(link, wire_bytes));
        }
    }

    fn marked(&mut self, now: Instant, packet: &PacketView, link: LinkId) {
        self.note(now, Change::Marked { link, flow: packet.flow, ip_bytes: packet.ip_bytes });
    }

    fn transmitted(&mut self, transmission: &Transmission) {
        let Transmission { link, wire_bytes, start, .. } = *transmission;
        if self.watches(link) {
            self.note(start, Change::Goes(link, wire_bytes));
        }
    }

    fn passed(&mut self, transmission: &Transmission) {
        if transmission.start > transmission.offered {
            self.offered(transmission.offered, transmission.link, transmission.wire_bytes);
            self.transmitted(transmission);
        }
    }
}

/// What waits at a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Waiting {
    packets: u64,
    bytes: u64,
}

#[derive(Debug)]
struct Link {
    name: String,
    waiting: Waiting,
    written: Waiting,
}

/// Writes what is heard.
#[derive(Debug)]
pub(super) struct LinkLog {
    pub(super) heard: Heard,
    links: Vec<Link>,
}

impl LinkLog {
    pub(super) fn new(scenario: &Scenario) -> LinkLog {
        let links = declared_links(scenario).into_iter();
        let links = links.map(|DeclaredLink { name, .. }| Link {
            name,
            waiting: Waiting::default(),
            written: Waiting::default(),
        });
        LinkLog { heard: Heard::default(), links: links.collect() }
    }

    /// The observer that tells it, of these links' queues and of all drops and marks.
    pub(super) fn ears(&self, queues: impl Iterator<Item = LinkId>) -> Ears {
        let mut watched = vec![false; self.links.len()];
        queues.for_each(|link| watched[link.index()] = true);
        Ears { heard: self.heard.clone(), watched, told: 0 }
    }

    /// Writes all that happened before `until`, with the names of flows that `name` gives.
    pub(super) fn write(&mut self, until: Instant, writer: &mut QlogWriter, name: impl Fn(FlowId) -> String) {
        while let Some((at, changes)) = self.next_instant(until) {
            self.write_instant(at, &changes, writer, &name);
        }
    }

    /// The run has ended at `end`: nobody sees queues change after it, but what has been dropped has been.
    pub(super) fn finish(&mut self, end: Instant, writer: &mut QlogWriter, name: impl Fn(FlowId) -> String) {
        while let Some((at, mut changes)) = self.next_instant(Instant::NEVER) {
            if at > end {
                changes.retain(|change| !matches!(change, Change::Comes(..) | Change::Goes(..)));
            }
            self.write_instant(at, &changes, writer, &name);
        }
    }

    fn next_instant(&self, until: Instant) -> Option<(Instant, Vec<Change>)> {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let at = heard.first_key_value().map(|((at, _), _)| *at).filter(|at| *at < until)?;
        let mut changes = Vec::new();
        while let Some(first) = heard.first_entry().filter(|first| first.key().0 == at) {
            changes.push(first.remove());
        }
        Some((at, changes))
    }

    fn write_instant(
        &mut self,
        at: Instant,
        changes: &[Change],
        writer: &mut QlogWriter,
        name: &impl Fn(FlowId) -> String,
    ) {
        for change in changes {
            match *change {
                Change::Comes(link, wire_bytes) => {
                    let waiting = &mut self.links[link.index()].waiting;
                    waiting.packets += 1;
                    waiting.bytes += u64::from(wire_bytes);
                }
                Change::Goes(link, wire_bytes) => {
                    let waiting = &mut self.links[link.index()].waiting;
                    waiting.packets = waiting.packets.saturating_sub(1);
                    waiting.bytes = waiting.bytes.saturating_sub(u64::from(wire_bytes));
                }
                Change::Dropped { link, flow, ip_bytes, reason } => {
                    let link = link.and_then(|link| self.links.get(link.index())).map(|link| link.name.as_str());
                    writer.event(at, &group(link), "link:packet_dropped", |data| {
                        link.iter().for_each(|link| data.text("link", link));
                        data.text("flow", &name(flow));
                        data.object("raw", |raw| raw.unsigned("length", u64::from(ip_bytes)));
                        data.text("trigger", word(reason));
                    });
                }
                Change::Marked { link, flow, ip_bytes } => {
                    let link = &self.links[link.index()].name;
                    writer.event(at, &group(Some(link)), "link:packet_marked", |data| {
                        data.text("link", link);
                        data.text("flow", &name(flow));
                        data.object("raw", |raw| raw.unsigned("length", u64::from(ip_bytes)));
                    });
                }
            }
        }
        for change in changes {
            let (Change::Comes(link, _) | Change::Goes(link, _)) = *change else { continue };
            let Link { name, waiting, written } = &mut self.links[link.index()];
            if waiting != written {
                *written = *waiting;
                writer.event(at, &group(Some(name)), "link:queue_updated", |data| {
                    data.text("link", name);
                    data.unsigned("packets", waiting.packets);
                    data.unsigned("bytes", waiting.bytes);
                });
            }
        }
    }
}

/// Events at a link make a group; so do those that are at none.
fn group(link: Option<&str>) -> String {
    link.map_or_else(|| "network".to_owned(), |link| format!("link {link}"))
}

fn word(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "queue_full",
        DropReason::Discipline => "queue_discipline",
        DropReason::Loss => "loss",
        DropReason::Corrupted => "corrupted",
        DropReason::Resolution => "address_resolution",
        DropReason::Collision => "collision",
        DropReason::TooBig => "too_big",
        DropReason::Reassembly => "reassembly",
        DropReason::Radio => "radio",
        DropReason::Nat => "address_translation",
        DropReason::Unreachable => "unreachable",
    }
}

/// The slowest link of each way: of two that are equally slow the first. The way's packets wait there.
pub(super) fn bottlenecks<'a>(
    scenario: &Scenario,
    ways: impl Iterator<Item = &'a [LinkId]> + 'a,
) -> impl Iterator<Item = LinkId> + 'a {
    let rates: Vec<u64> = declared_links(scenario).iter().map(|link| link.rate_bps).collect();
    ways.filter_map(move |way| way.iter().copied().min_by_key(|link| rates.get(link.index()).copied()))
}
