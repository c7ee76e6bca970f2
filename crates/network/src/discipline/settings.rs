//! What a scenario states of a queue discipline: the settings as an object, what they are read and built with, and the keys
//! that several disciplines share.

use crate::queue::{Limit, QueueDiscipline};
use fullpipe_schema::component::{Comparable, Component, Reader};
use fullpipe_schema::{Field, Kind};
use fullpipe_units::{Duration, FlowId, LinkQueueLimit, QueueLimit, Rate, Stream};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The settings of a queue discipline.
pub trait DisciplineSettings: Comparable + fmt::Debug + Send + Sync {
    /// The name by which a scenario chooses the discipline.
    fn name(&self) -> &'static str;

    /// An empty discipline with these settings.
    fn build(&self, context: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline>;

    /// How much it may hold, which the auditor checks.
    fn capacity(&self) -> Capacity;

    /// Whether the order of arrivals does not determine which packet leaves next: because others may overtake it, or
    /// because packets are dropped from the front, where an observer of sizes cannot tell which one it was.
    fn reorders(&self) -> bool;

    /// Whether it only drops what exceeds its limit. Such a queue adds to the device's queue below it; any other discipline cannot act
    /// on packets that wait in the device.
    fn is_drop_tail(&self) -> bool {
        false
    }
}

/// The settings of a queue discipline, whichever it is.
pub type Discipline = Arc<dyn DisciplineSettings>;

impl PartialEq for dyn DisciplineSettings {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other as &dyn Any)
    }
}

/// A discipline as a component; `None` stands for the device's queue alone.
pub type DisciplineComponent = Component<Option<Discipline>, Device>;

/// The link that a discipline serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its rate.
    pub rate: Rate,
    /// Rate and round-trip time of a bandwidth-delay product; read only where a key states a multiple of one.
    pub bdp: (Rate, Duration),
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Bytes that framing adds to each IP packet.
    pub framing_bytes: u32,
}

impl Device {
    /// The largest frame.
    pub fn largest_bytes(self) -> u32 {
        self.mtu_bytes.saturating_add(self.framing_bytes)
    }

    /// The limit that a key states.
    pub(super) fn limit(self, reader: &Reader<'_, '_>, key: &str) -> Limit {
        Limit::at(self.fixed(reader.tree.link_queue_limit(key)), self.rate)
    }

    /// A limit without a bandwidth-delay product: its bytes in the place of a multiple of one.
    pub fn fixed(self, limit: LinkQueueLimit) -> QueueLimit {
        let (rate, round_trip) = self.bdp;
        match limit {
            LinkQueueLimit::Fixed(limit) => limit,
            LinkQueueLimit::Bdp(multiple) => QueueLimit::Bytes(multiple.bytes(rate, round_trip)),
        }
    }
}

/// What a discipline is built with.
#[derive(Clone, Copy, Debug)]
pub struct DisciplineContext<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the interface: that of a link, or of a segment and its host.
    pub interface: &'a str,
    /// Bands of the flows that have a `priority`, both ways.
    pub bands: &'a BTreeMap<FlowId, usize>,
}

impl DisciplineContext<'_> {
    /// The random stream of the interface's discipline.
    pub fn random(&self) -> Stream {
        Stream::new(self.seed, self.interface, "queue")
    }
}

/// How much a queue may hold: packets and bytes on the wire, where either is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Most packets.
    pub packets: Option<u64>,
    /// Most bytes.
    pub bytes: Option<u64>,
}

impl Capacity {
    /// Of no queue at all.
    pub const NOTHING: Capacity = Capacity { packets: Some(0), bytes: Some(0) };

    /// Of a queue with this limit.
    pub fn of(limit: Limit) -> Self {
        match limit {
            Limit::Packets(packets) => Capacity { packets: Some(packets), bytes: None },
            Limit::Bytes(bytes) => Capacity { packets: None, bytes: Some(bytes) },
            Limit::Unlimited => Capacity { packets: None, bytes: None },
        }
    }

    /// Of a queue that has both of these limits.
    pub fn within(self, other: Self) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        Capacity { packets: least(self.packets, other.packets), bytes: least(self.bytes, other.bytes) }
    }

    /// Of two queues together. Limits in the same unit add up; in different ones they do not limit the sum.
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Capacity { packets: sum(self.packets, other.packets), bytes: sum(self.bytes, other.bytes) }
    }
}

pub(super) const TARGET: Kind = Kind::duration(Duration::from_nanos(1), Duration::from_secs(1000));
/// The key of every discipline's limit, so that an axis over it holds for all of them.
pub const LIMIT_KEY: &str = "limit";
pub(super) const LIMIT: Field = limit("1000packets");
pub(super) const ECN_OFF: Field = ecn("false");
pub(super) const ECN_ON: Field = ecn("true");

/// The limit of a discipline that holds so much by default.
pub(super) const fn limit(default: &'static str) -> Field {
    Field::default(LIMIT_KEY, Kind::LinkQueueLimit, default, "How much it holds.")
}

const fn ecn(default: &'static str) -> Field {
    Field::default("ecn", Kind::Boolean, default, "Mark ECN-capable packets instead of dropping them.")
}
