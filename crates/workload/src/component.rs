//! Workloads as components: their declarations, their settings, and the catalogue of all workloads. The keys of a flow, their
//! parsing, lists and the reference pages are derived from the catalogue.

use crate::application::{Application, ApplicationMetric};
use crate::content::Content;
use crate::demand::Demand;
use crate::limited::WriteLimit;
use crate::sink::Sink;
use fullpipe_schema::component::{self, Declaration, DynPartialEq, SettingsReader};
use fullpipe_schema::{Field, FieldKind, Tree, Variant};
use fullpipe_units::{Duration, Instant, ParameterError, RandomStream};
use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// The transports that workloads distinguish.
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
    /// The name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Quic => "quic",
            Protocol::Masque => "masque",
        }
    }
}

/// The transport of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowTransport {
    /// The protocol.
    pub protocol: Protocol,
    /// Whether a connection can have several streams.
    pub several_streams: bool,
}

/// A function that reads the keys of a workload.
pub type WorkloadParser =
    fn(&mut SettingsReader<'_, '_>, &FlowTransport) -> Result<Box<dyn WorkloadSettings>, component::InvalidSettings>;

/// A workload that scenarios can select.
#[derive(Debug)]
pub struct WorkloadComponent {
    /// The name, keys and description.
    pub declaration: Declaration,
    /// Supported transports; the first is the default.
    pub protocols: &'static [Protocol],
    /// The key for the size of a write. A write waits until the send buffer has room for all of it, so the write must
    /// fit into the buffer. `None` if the workload has no such key.
    pub write_key: Option<&'static str>,
    /// Whether kernel sockets can send the traffic ([`WorkloadSettings::socket_traffic`]).
    pub on_sockets: bool,
    /// The metrics of its applications, in groups.
    pub metrics: &'static [&'static [ApplicationMetric]],
    /// The acceptor's default port: that of a corresponding service (9 discard, RFC 863; 80 HTTP; 5004 RTP), or else a
    /// user port (RFC 6335). The text of the declaration states the port.
    pub port: u16,
    /// The function that reads the keys.
    pub read: WorkloadParser,
}

impl WorkloadComponent {
    /// A component with default values. The declaration of a workload overrides its fields.
    pub const EMPTY: WorkloadComponent = WorkloadComponent {
        declaration: Declaration::EMPTY,
        protocols: &[],
        write_key: None,
        on_sockets: false,
        metrics: &[],
        port: 9,
        read: |_, _| Err(component::InvalidSettings),
    };

    /// The metrics that its applications report.
    pub fn metrics(&self) -> impl Iterator<Item = &'static ApplicationMetric> {
        self.metrics.iter().flat_map(|group| group.iter())
    }
}

/// The settings of a workload.
pub trait WorkloadSettings: DynPartialEq + fmt::Debug + Send + Sync {
    /// Whether the workload continues until the end of the run.
    fn is_unlimited(&self) -> bool {
        true
    }

    /// Creates the applications of the initiator and the acceptor, in this order.
    ///
    /// # Errors
    /// If the settings are invalid, or a file cannot be read.
    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError>;

    /// Checks the settings.
    ///
    /// # Errors
    /// Returns the rule that the settings violate.
    fn check(&self) -> Result<(), ParameterError> {
        Ok(())
    }

    /// The acceptor's port if it differs from [`WorkloadComponent::port`]; otherwise `None`.
    fn port(&self) -> Option<u16> {
        None
    }

    /// Whether initiator and acceptor send data.
    fn senders(&self) -> [bool; 2] {
        [true, false]
    }

    /// Whether the initiator sends all data, over a single stream that it opens at the start.
    fn sends_on_one_stream(&self) -> bool {
        false
    }

    /// Whether initiator and acceptor send most of the data. The direction from such an end is a main direction of the
    /// flow, and rates of the flow are those of its main directions. By default both directions are main directions if
    /// both ends send data; a workload can select one of them here. Without data, the direction from the initiator is
    /// the main direction.
    fn main_senders(&self) -> [bool; 2] {
        match self.senders() {
            [false, false] => [true, false],
            senders => senders,
        }
    }

    /// The path of a file that is read while the scenario runs; `None` if there is no such file.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Whether all connections of a flow share one row of `flows.csv`.
    fn sums_connections(&self) -> bool {
        false
    }

    /// Estimates what the flow sends in `time_s` seconds. The cost estimate of a scenario uses the result. By default,
    /// only the transport limits the demand.
    fn demand(&self, _time_s: f64) -> Demand {
        Demand::unlimited(self.senders()).as_upper_bound("a workload that does not state what it sends")
    }

    /// The limits of the rate at which the initiator writes, in order of time. `None` if the rate cannot be limited.
    fn write_limits(&self) -> Option<&[WriteLimit]> {
        None
    }

    /// Returns the same settings with other limits; `None` if the rate cannot be limited.
    fn with_write_limits(&self, _limits: Vec<WriteLimit>) -> Option<Arc<dyn WorkloadSettings>> {
        None
    }

    /// The traffic that a kernel socket sends in place of the initiator's application. `None` if a socket cannot
    /// replace the application.
    fn socket_traffic(&self) -> Option<SocketTraffic> {
        None
    }
}

/// A workload with its settings. Clones share the settings.
#[derive(Clone)]
pub struct Workload {
    component: &'static WorkloadComponent,
    settings: Arc<dyn WorkloadSettings>,
}

impl Workload {
    /// The name by which a scenario selects the workload.
    pub fn name(&self) -> &'static str {
        self.component.declaration.name
    }

    /// The acceptor's port if the scenario sets none.
    pub fn default_port(&self) -> u16 {
        self.port().unwrap_or(self.component.port)
    }

    /// Returns the same workload with further limits of the rate at which the initiator writes. A new limit replaces an
    /// existing limit at the same time. `None` if the rate cannot be limited.
    pub fn with_more_write_limits(&self, more: &[WriteLimit]) -> Option<Workload> {
        let mut limits = self.write_limits()?.to_vec();
        for limit in more {
            limits.retain(|other| other.at != limit.at);
            limits.insert(limits.partition_point(|other| other.at < limit.at), *limit);
        }
        Some(Workload { component: self.component, settings: self.settings.with_write_limits(limits)? })
    }

    /// Returns the same workload with settings derived from its own.
    pub(crate) fn with_settings<S: WorkloadSettings>(
        &self,
        other: impl FnOnce(&Arc<dyn WorkloadSettings>) -> Option<S>,
    ) -> Option<Workload> {
        Some(Workload { component: self.component, settings: Arc::new(other(&self.settings)?) })
    }

    /// Returns the settings if they have type `T`, and `None` otherwise.
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
        (*self.settings).dyn_eq(&*other.settings as &dyn Any)
    }
}

impl fmt::Debug for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(formatter)
    }
}

/// The flow for which the two applications are created.
#[derive(Clone, Copy, Debug)]
pub struct FlowContext<'a> {
    /// Seed of the run.
    pub seed: u64,
    /// Name of the flow.
    pub flow: &'a str,
    /// When the flow starts.
    pub start: Instant,
    /// Time from the flow's start to the end of the run.
    pub duration: Duration,
    /// Start of the measured interval.
    pub measured_from: Instant,
    /// Whether the flow runs over a stream (TCP, QUIC) rather than over datagrams.
    pub over_stream: bool,
    /// Whether an end that only receives closes its side after its peer has closed.
    pub receiver_closes: bool,
}

impl FlowContext<'_> {
    /// Returns a new random stream of the flow. Streams with the same purpose produce the same numbers. Two ends that
    /// must draw the same numbers use the same purpose; otherwise they use different purposes.
    pub fn random(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.seed, self.flow, purpose)
    }

    /// Combines a sender with an acceptor that only receives.
    pub fn with_sink(&self, sender: impl Application + 'static) -> [Box<dyn Application>; 2] {
        [Box::new(sender), Box::new(Sink::new(self.receiver_closes))]
    }
}

/// Traffic that a plain socket can send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketTraffic {
    /// As many bytes as the transport accepts, up to a total size.
    Bulk {
        /// Total bytes; `None`: unlimited.
        size_bytes: Option<u64>,
        /// Bytes per write.
        write_bytes: u64,
        /// Whether the payload is [`Content::of_flow`].
        has_content: bool,
    },
    /// Datagrams or writes of one size at a constant interval.
    ConstantRate {
        /// Payload bytes of each message.
        payload_bytes: u32,
        /// Time between messages.
        interval: Duration,
        /// Number of messages; `None`: unlimited.
        count: Option<u64>,
    },
}

impl SocketTraffic {
    /// Total payload in bytes; `None` if it is unlimited.
    pub fn total_bytes(&self) -> Option<u64> {
        match *self {
            SocketTraffic::Bulk { size_bytes, .. } => size_bytes,
            SocketTraffic::ConstantRate { payload_bytes, count, .. } => {
                count.map(|count| count.saturating_mul(u64::from(payload_bytes)))
            }
        }
    }

    /// Returns the payload content of the flow with this name; `None` if its payload has only a length.
    pub fn content(&self, seed: u64, flow: &str) -> Option<Content> {
        let has_content = matches!(self, SocketTraffic::Bulk { has_content: true, .. });
        has_content.then(|| Content::of_flow(seed, flow))
    }
}

/// All workloads, in the order in which lists and the reference page show them.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadCatalogue(pub(crate) &'static [&'static WorkloadComponent]);

impl WorkloadCatalogue {
    /// The key of a flow that selects the workload.
    pub const KEY: &'static str = "workload";

    /// The components in order.
    pub fn iter(&self) -> impl Iterator<Item = &'static WorkloadComponent> + use<> {
        self.0.iter().copied()
    }

    /// The declarations of the components.
    pub fn declarations(&self) -> impl Iterator<Item = &'static Declaration> + use<> {
        self.iter().map(|component| &component.declaration)
    }

    /// Returns the component with this name.
    ///
    /// # Panics
    /// If there is no such component. A checked flow contains only names of this catalogue.
    pub fn find(&self, name: &str) -> &'static WorkloadComponent {
        let component = self.iter().find(|component| component.declaration.name == name);
        component.unwrap_or_else(|| panic!("the schema has {name}, the catalogue does not"))
    }

    /// Reads the settings of a checked flow for its transport.
    ///
    /// # Errors
    /// If the workload does not support the transport, or its keys contradict each other.
    pub fn read(
        &self,
        reader: &mut SettingsReader<'_, '_>,
        carrier: &FlowTransport,
    ) -> Result<Workload, component::InvalidSettings> {
        let component = self.find(reader.tree.choice(Self::KEY));
        let (name, path, place) = (component.declaration.name, reader.path, reader.tree.place);
        let protocol = carrier.protocol.name();
        if !component.protocols.contains(&carrier.protocol) {
            let is_given = reader.tree.is_given(Self::KEY);
            let key = if is_given { Self::KEY } else { "protocol" };
            let quoted = |names: Vec<&str>| names.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>();
            let accepted = quoted(component.protocols.iter().map(|one| one.name()).collect());
            let accepted = format!("protocol = {}", accepted.join(" or "));
            let others = self.iter().filter(|other| other.protocols.contains(&carrier.protocol));
            let others = quoted(others.map(|other| other.declaration.name).collect()).join(", ");
            // The value of either key can be changed, so each list of values has its key.
            let (selected, expected) = if is_given {
                (
                    format!("{path}.{} = \"{name}\"", Self::KEY),
                    format!("{accepted}, or a workload for {}: {others}", protocol.to_uppercase()),
                )
            } else {
                (
                    format!("{path} has no {}, and the default \"{name}\"", Self::KEY),
                    format!("a workload for {} ({others}), or {accepted}", protocol.to_uppercase()),
                )
            };
            let message = format!("{selected} requires {accepted}, but {path} has protocol = \"{protocol}\"");
            reader.check.add_error(reader.tree.location_of(key), &format!("{path}.{key}"), message, vec![expected]);
            return Err(component::InvalidSettings);
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
                    let found = reader.check.sources.excerpt(value.place);
                    (value.place, format!("{path}.{key}"), format!("{path}.{key} = {found}, but {rule}"))
                }
                None => (place, path.to_owned(), format!("{path} with workload = \"{name}\": {rule}")),
            };
            reader.check.add_error(place, &path, message, Vec::new());
            component::InvalidSettings
        })?;
        Ok(Workload { component, settings: settings.into() })
    }
}

/// The variants of a flow, one per workload; `N` is their number.
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
pub(crate) const PAYLOAD: FieldKind = FieldKind::size(1, crate::MAX_DATAGRAM_BYTES as u64);
/// A number of packets, transfers or similar items.
pub(crate) const COUNT: FieldKind = FieldKind::integer(1, 1_000_000_000_000_000);
/// Number of packets after which a workload ends.
pub(crate) const PACKETS: Field = Field::optional("packets", COUNT, "without end", "Number of packets or writes.");

/// The value of an optional numeric key.
pub(crate) fn count(tree: &Tree, key: &str) -> Option<u64> {
    tree.get(key).map(|count| u64::try_from(count.integer()).unwrap_or_default())
}

/// A size below 4 GiB.
pub(crate) fn small(tree: &Tree, key: &str) -> u32 {
    u32::try_from(tree.size(key)).unwrap_or(u32::MAX)
}
