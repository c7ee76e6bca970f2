//! The trait for the settings of a queue discipline in a scenario, the contexts for reading and building them, and the
//! keys that several disciplines share.

use crate::queue::{Limit, QueueDiscipline};
use fullpipe_schema::component::{Component, DynPartialEq, SettingsReader};
use fullpipe_schema::{Field, FieldKind};
use fullpipe_units::{Duration, FlowId, LinkQueueLimit, QueueLimit, RandomStream, Rate};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The settings of a queue discipline.
pub trait DisciplineSettings: DynPartialEq + fmt::Debug + Send + Sync {
    /// Returns the name with which a scenario selects the discipline.
    fn name(&self) -> &'static str;

    /// Returns an empty discipline with these settings.
    fn build(&self, context: &DisciplineContext<'_>) -> Box<dyn QueueDiscipline>;

    /// Returns the capacity of the discipline, which the auditor checks.
    fn capacity(&self) -> QueueCapacity;

    /// Returns whether the order of departures can differ from the order of arrivals. This is the case if packets can
    /// overtake others. It is also the case if packets are dropped from the head, because an observer that receives
    /// only sizes cannot identify the dropped packet.
    fn reorders(&self) -> bool;

    /// Returns whether the discipline only drops packets that exceed its limit. The capacity of such a discipline adds
    /// to that of the device queue below it. Any other discipline cannot control packets that wait in the device queue.
    fn is_drop_tail(&self) -> bool {
        false
    }
}

/// The settings of a queue discipline of any kind.
pub type Discipline = Arc<dyn DisciplineSettings>;

impl PartialEq for dyn DisciplineSettings {
    fn eq(&self, other: &Self) -> bool {
        self.dyn_eq(other as &dyn Any)
    }
}

/// A component that declares a queue discipline. A setting of `None` means that there is only the device queue.
pub type DisciplineComponent = Component<Option<Discipline>, LinkParameters>;

/// The parameters of the link on which a discipline is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkParameters {
    /// The rate of the link.
    pub rate: Rate,
    /// Rate and round-trip time of the bandwidth-delay product, used only for keys that state a multiple of this
    /// product.
    pub bdp: (Rate, Duration),
    /// Size of the largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Bytes that framing adds to each IP packet.
    pub framing_bytes: u32,
}

impl LinkParameters {
    /// Returns the size of the largest frame in bytes.
    pub fn max_frame_bytes(self) -> u32 {
        self.mtu_bytes.saturating_add(self.framing_bytes)
    }

    /// Returns the limit that a key sets.
    pub(super) fn limit(self, reader: &SettingsReader<'_, '_>, key: &str) -> Limit {
        Limit::from_queue_limit(self.resolve_limit(reader.tree.link_queue_limit(key)), self.rate)
    }

    /// Returns the limit. A multiple of the bandwidth-delay product is converted to bytes.
    pub fn resolve_limit(self, limit: LinkQueueLimit) -> QueueLimit {
        let (rate, round_trip) = self.bdp;
        match limit {
            LinkQueueLimit::Fixed(limit) => limit,
            LinkQueueLimit::Bdp(multiple) => QueueLimit::Bytes(multiple.bytes(rate, round_trip)),
        }
    }
}

/// The context in which a discipline is built.
#[derive(Clone, Copy, Debug)]
pub struct DisciplineContext<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the interface: the name of a link, or of a segment and its host.
    pub interface: &'a str,
    /// The band of each flow that has a `priority`, for both directions of its conversation.
    pub bands: &'a BTreeMap<FlowId, usize>,
}

impl DisciplineContext<'_> {
    /// Returns the random stream of the interface's discipline.
    pub fn random_stream(&self) -> RandomStream {
        RandomStream::new(self.seed, self.interface, "queue")
    }
}

/// The capacity of a queue in packets and in bytes on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueCapacity {
    /// Maximum number of packets; `None` means no limit.
    pub packets: Option<u64>,
    /// Maximum number of bytes; `None` means no limit.
    pub bytes: Option<u64>,
}

impl QueueCapacity {
    /// The capacity of a queue that does not exist.
    pub const NOTHING: QueueCapacity = QueueCapacity { packets: Some(0), bytes: Some(0) };

    /// Returns the capacity of a queue with this limit.
    pub fn from_limit(limit: Limit) -> Self {
        match limit {
            Limit::Packets(packets) => QueueCapacity { packets: Some(packets), bytes: None },
            Limit::Bytes(bytes) => QueueCapacity { packets: None, bytes: Some(bytes) },
            Limit::Unlimited => QueueCapacity { packets: None, bytes: None },
        }
    }

    /// Returns the capacity of a queue to which both limits apply.
    pub fn intersect(self, other: Self) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        QueueCapacity { packets: least(self.packets, other.packets), bytes: least(self.bytes, other.bytes) }
    }

    /// Returns the capacity of two queues together. In each unit, the two limits add up. If either queue has no limit
    /// in a unit, the sum has none in this unit.
    pub fn combine(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        QueueCapacity { packets: sum(self.packets, other.packets), bytes: sum(self.bytes, other.bytes) }
    }
}

pub(super) const TARGET: FieldKind = FieldKind::duration(Duration::from_nanos(1), Duration::from_secs(1000));
/// The key for the limit. All disciplines use this key, so that one axis can vary the limit of any discipline.
pub const LIMIT_KEY: &str = "limit";
pub(super) const LIMIT: Field = limit("1000packets");
pub(super) const ECN_OFF: Field = ecn("false");
pub(super) const ECN_ON: Field = ecn("true");

/// Returns the field [`LIMIT_KEY`] with this default.
pub(super) const fn limit(default: &'static str) -> Field {
    Field::default(LIMIT_KEY, FieldKind::LinkQueueLimit, default, "Limit of the discipline's queue.")
}

const fn ecn(default: &'static str) -> Field {
    Field::default("ecn", FieldKind::Boolean, default, "Whether ECN-capable packets are marked instead of dropped.")
}
