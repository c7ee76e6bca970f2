//! A workload as a component: what it declares, its settings as an object, and the catalogue of all, from which a flow's keys,
//! their reading, lists and the reference pages are derived.

use crate::application::{Application, Metric};
use crate::content::Content;
use crate::demand::Demand;
use crate::sink::Sink;
use fullpipe_schema::component::{self, Comparable, Declaration, Reader};
use fullpipe_schema::{Field, Kind, Tree, Variant};
use fullpipe_units::{Duration, Instant, Invalid, Stream};
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// A transport, as far as workloads distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// QUIC.
    Quic,
    /// A tunnel (CONNECT-UDP).
    Masque,
}

impl Protocol {
    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Quic => "quic",
            Protocol::Masque => "masque",
        }
    }
}

/// What a flow runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// The transport.
    pub protocol: Protocol,
    /// Whether a connection can have several streams.
    pub several_streams: bool,
}

/// Reads the keys of a workload.
pub type ReadSettings = fn(&mut Reader<'_, '_>, &Carrier) -> Result<Box<dyn WorkloadSettings>, component::Invalid>;

/// A workload that scenarios can name.
#[derive(Debug)]
pub struct WorkloadComponent {
    /// Its name, its keys, and what it is.
    pub declaration: Declaration,
    /// What it runs over; a flow that states no protocol runs over the first.
    pub protocols: &'static [Protocol],
    /// The key that holds the size of a write. A write waits until the send buffer has room for all of it, so it must fit
    /// into that.
    pub write_key: Option<&'static str>,
    /// Whether sockets of the kernel can send it ([`WorkloadSettings::socket_traffic`]).
    pub on_sockets: bool,
    /// What its applications report.
    pub metrics: &'static [&'static [Metric]],
    /// The port at which the acceptor listens where the file states none: the assigned one where there is such a service
    /// (RFC 863 discard, 80 HTTP, 5004 RTP), else one of the user ports. Its text names it.
    pub port: u16,
    /// Reads its keys.
    pub read: ReadSettings,
}

impl WorkloadComponent {
    /// A component to start from.
    pub const EMPTY: WorkloadComponent = WorkloadComponent {
        declaration: Declaration::EMPTY,
        protocols: &[],
        write_key: None,
        on_sockets: false,
        metrics: &[],
        port: 9,
        read: |_, _| Err(component::Invalid),
    };

    /// The metrics that its applications report.
    pub fn metrics(&self) -> impl Iterator<Item = &'static Metric> {
        self.metrics.iter().flat_map(|group| group.iter())
    }
}

/// The settings of a workload.
pub trait WorkloadSettings: Comparable + fmt::Debug + Send + Sync {
    /// Whether the workload has no end of its own.
    fn is_unlimited(&self) -> bool {
        true
    }

    /// The applications of initiator and acceptor.
    ///
    /// # Errors
    /// The rule that the settings break, or why a file cannot be read.
    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], Invalid>;

    /// Whether the settings describe a workload.
    ///
    /// # Errors
    /// The rule that is broken.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// The port at which the acceptor listens, if it is not [`WorkloadComponent::port`].
    fn port(&self) -> Option<u16> {
        None
    }

    /// The ends that send data: initiator, acceptor.
    fn senders(&self) -> [bool; 2] {
        [true, false]
    }

    /// Whether all data go from the initiator to the acceptor, over a single stream that the initiator opens when it starts.
    fn sends_on_one_stream(&self) -> bool {
        false
    }

    /// The ends that send most of the data: initiator, acceptor. The direction from such an end to the other is a main direction
    /// of the flow, and rates of the flow are those of its main direction. A workload that sends both ways says here which way
    /// counts; without a word both do. A flow without any data has a main direction, too: that of its initiator.
    fn main_senders(&self) -> [bool; 2] {
        match self.senders() {
            [false, false] => [true, false],
            senders => senders,
        }
    }

    /// A file that is read while the scenario runs.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Whether all connections of a flow share one row of `flows.csv`.
    fn sums_connections(&self) -> bool {
        false
    }

    /// What a flow sends that lasts so long, for the estimated cost of a scenario. A workload that does not say it counts with as
    /// much as the transport takes.
    fn demand(&self, _time_s: f64) -> Demand {
        Demand::unlimited(self.senders()).at_most("a workload that does not state what it sends")
    }

    /// What a socket of the kernel sends in place of the initiator's application; `None`: a socket cannot replace it.
    fn socket_traffic(&self) -> Option<SocketTraffic> {
        None
    }
}

/// A workload with its settings. Equal flows share one object.
#[derive(Clone)]
pub struct Workload {
    component: &'static WorkloadComponent,
    settings: Arc<dyn WorkloadSettings>,
}

impl Workload {
    /// The name by which a scenario chooses the workload.
    pub fn name(&self) -> &'static str {
        self.component.declaration.name
    }

    /// The port at which the acceptor listens where the file states none.
    pub fn default_port(&self) -> u16 {
        self.port().unwrap_or(self.component.port)
    }

    /// The same workload with other settings, made from its own.
    pub(crate) fn with_settings<S: WorkloadSettings>(
        &self,
        other: impl FnOnce(&Arc<dyn WorkloadSettings>) -> Option<S>,
    ) -> Option<Workload> {
        Some(Workload { component: self.component, settings: Arc::new(other(&self.settings)?) })
    }

    /// The settings, if they are of this type.
    pub fn downcast_ref<T: WorkloadSettings>(&self) -> Option<&T> {
        (&*self.settings as &dyn Any).downcast_ref()
    }
}

impl Deref for Workload {
    type Target = dyn WorkloadSettings;

    fn deref(&self) -> &Self::Target {
        &*self.settings
    }
}

impl PartialEq for Workload {
    fn eq(&self, other: &Self) -> bool {
        (*self.settings).equals(&*other.settings as &dyn Any)
    }
}

impl fmt::Debug for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(formatter)
    }
}

/// What the two applications of a flow are made with.
#[derive(Clone, Copy, Debug)]
pub struct FlowContext<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the flow.
    pub flow: &'a str,
    /// When the flow starts.
    pub start: Instant,
    /// From then to the end of the run.
    pub duration: Duration,
    /// What begins earlier is not measured.
    pub measured_from: Instant,
    /// Whether the flow runs over a stream (TCP, QUIC) and not over datagrams.
    pub over_stream: bool,
    /// Whether an end that only receives closes its side when its peer has closed.
    pub receiver_closes: bool,
}

impl FlowContext<'_> {
    /// A random stream of the flow, from its beginning. Two ends that must draw the same numbers ask for one purpose, others
    /// for two.
    pub fn random(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, self.flow, purpose)
    }

    /// A sender, and an acceptor that only receives.
    pub fn with_sink(&self, sender: impl Application + 'static) -> [Box<dyn Application>; 2] {
        [Box::new(sender), Box::new(Sink::new(self.receiver_closes))]
    }
}

/// What a plain socket can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketTraffic {
    /// As much as the transport takes, up to a size.
    Bulk {
        /// Bytes in all; `None`: without end.
        size_bytes: Option<u64>,
        /// Bytes per write.
        write_bytes: u64,
        /// Whether the payload is [`Content::of_flow`].
        has_content: bool,
    },
    /// Datagrams or writes of one size at a constant interval.
    Regular {
        /// Payload bytes of each.
        payload_bytes: u32,
        /// From one to the next.
        interval: Duration,
        /// How many; `None`: without end.
        count: Option<u64>,
    },
}

impl SocketTraffic {
    /// Payload in all, if it ends.
    pub fn total_bytes(&self) -> Option<u64> {
        match *self {
            SocketTraffic::Bulk { size_bytes, .. } => size_bytes,
            SocketTraffic::Regular { payload_bytes, count, .. } => {
                count.map(|count| count.saturating_mul(u64::from(payload_bytes)))
            }
        }
    }

    /// The payload of a flow of this name, where its bytes matter.
    pub fn content(&self, seed: u64, flow: &str) -> Option<Content> {
        let has_content = matches!(self, SocketTraffic::Bulk { has_content: true, .. });
        has_content.then(|| Content::of_flow(seed, flow))
    }
}

/// All workloads, in the order of lists and of the reference page.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadCatalogue(pub(crate) &'static [&'static WorkloadComponent]);

impl WorkloadCatalogue {
    /// The key of a flow that holds a workload's name.
    pub const KEY: &'static str = "workload";

    /// The components in order.
    pub fn iter(&self) -> impl Iterator<Item = &'static WorkloadComponent> + use<> {
        self.0.iter().copied()
    }

    /// What the components declare.
    pub fn declarations(&self) -> impl Iterator<Item = &'static Declaration> + use<> {
        self.iter().map(|component| &component.declaration)
    }

    /// The component of this name.
    ///
    /// # Panics
    /// If there is none: the names of a checked flow are those of this catalogue.
    pub fn named(&self, name: &str) -> &'static WorkloadComponent {
        let component = self.iter().find(|component| component.declaration.name == name);
        component.unwrap_or_else(|| panic!("the schema has {name}, the catalogue does not"))
    }

    /// The settings that a checked flow states, over what it runs on.
    ///
    /// # Errors
    /// If the workload does not run over it, or its keys contradict each other.
    pub fn read(&self, reader: &mut Reader<'_, '_>, carrier: &Carrier) -> Result<Workload, component::Invalid> {
        let component = self.named(reader.tree.choice(Self::KEY));
        let (name, path, place) = (component.declaration.name, reader.path, reader.tree.place);
        let protocol = carrier.protocol.name();
        if !component.protocols.contains(&carrier.protocol) {
            let key = if reader.tree.is_given(Self::KEY) { Self::KEY } else { "protocol" };
            let accepted: Vec<String> = component.protocols.iter().map(|one| format!("\"{}\"", one.name())).collect();
            let message = format!(
                "{} = \"{name}\" requires protocol = {}, but {path} has protocol = \"{protocol}\"",
                Self::KEY,
                accepted.join(" or ")
            );
            let others = self.iter().filter(|other| other.protocols.contains(&carrier.protocol));
            let expected = others.map(|other| format!("\"{}\"", other.declaration.name)).collect();
            reader.check.error(reader.tree.place_of(key), &format!("{path}.{key}"), message, expected);
            return Err(component::Invalid);
        }
        let settings = (component.read)(reader, carrier)?;
        settings.check().map_err(|rule| {
            let rule = rule.to_string();
            // A rule names the key that breaks it, if a single one does.
            let is_named =
                |key: &str| rule.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == key);
            let given = reader.tree.iter().find(|(key, value)| value.given && is_named(key));
            let (place, path, message) = match given {
                Some((key, value)) => {
                    let found = reader.check.sources.found(value.place);
                    (value.place, format!("{path}.{key}"), format!("{path}.{key} = {found}, but {rule}"))
                }
                None => (place, path.to_owned(), format!("{path} with workload = \"{name}\": {rule}")),
            };
            reader.check.error(place, &path, message, Vec::new());
            component::Invalid
        })?;
        Ok(Workload { component, settings: settings.into() })
    }
}

/// The variants of a flow, one for each workload; `N` is their number.
pub(crate) const fn variants<const N: usize>(components: &[&WorkloadComponent]) -> [Variant; N] {
    let mut list = [Declaration::EMPTY.variant(); N];
    let mut n = 0;
    while n < N {
        list[n] = components[n].declaration.variant();
        n += 1;
    }
    list
}

/// Payload of a packet, or size of a write.
pub(crate) const PAYLOAD: Kind = Kind::size(1, crate::MAX_DATAGRAM_BYTES as u64);
/// A number of packets, transfers or the like.
pub(crate) const COUNT: Kind = Kind::integer(1, 1_000_000_000_000_000);
/// After how many packets a workload ends.
pub(crate) const PACKETS: Field = Field::optional("packets", COUNT, "without end", "How many packets or writes.");

/// The value of an optional key with a number.
pub(crate) fn count(tree: &Tree, key: &str) -> Option<u64> {
    tree.get(key).map(|count| u64::try_from(count.integer()).unwrap_or_default())
}

/// A size below 4 GiB.
pub(crate) fn small(tree: &Tree, key: &str) -> u32 {
    u32::try_from(tree.size(key)).unwrap_or(u32::MAX)
}
