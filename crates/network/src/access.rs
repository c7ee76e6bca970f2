//! Access networks as components: the declaration of a component, and the settings of one access network in a scenario.
//!
//! An access network is a star in which a [`Medium`] connects the stations to a hub. The component implements the
//! medium. It declares its table of a scenario file, converts the checked keys to [`AccessNetworkSettings`] and builds
//! the medium from these. It also declares the metrics and tables that the medium reports. All other code uses these
//! traits.

use crate::medium::{Medium, MediumDirection};
use fullpipe_archive::reference::TableReference;
use fullpipe_schema::check::Diagnostics;
use fullpipe_schema::component::{Declaration, DynPartialEq, InvalidSettings, SettingsReader};
use fullpipe_schema::error::{MAX_COMPARED_NAMES, abbreviate_names};
use fullpipe_schema::metric::MetricDeclaration;
use fullpipe_schema::{SourceLocation, Table, Tree, compare_natural, is_pattern, matches};
use fullpipe_units::{Duration, NodeId};
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// A component that provides one kind of access network.
pub struct AccessNetworkComponent {
    /// The declaration. Its name is the key of an array of tables in a scenario file; its keys are those of `table`.
    pub declaration: Declaration,
    /// The keys of one access network, including `name`.
    pub table: &'static Table,
    /// The probe key and the term for the stations.
    pub station: StationDeclaration,
    /// The metrics that probes can sample per station and direction. Where possible, they use the declarations of
    /// [`crate::metrics`].
    pub metrics: fn() -> Vec<&'static MetricDeclaration>,
    /// The values that keys select by name. The command `list` prints them.
    pub choices: &'static [ChoiceList],
    /// The tables that the medium adds to the records of a run.
    pub tables: fn() -> Vec<TableReference>,
    /// Fills in defaults that depend on other keys.
    pub fill: fn(&mut Tree),
    /// Converts the keys of one access network. If they are invalid, adds errors to the reader's diagnostics and
    /// returns [`InvalidSettings`].
    pub read: fn(&mut SettingsReader<'_, '_>, &mut AccessContext<'_>) -> Result<AccessNetwork, InvalidSettings>,
}

impl fmt::Debug for AccessNetworkComponent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.declaration.fmt(formatter)
    }
}

/// Values that a key of an access network selects by name, and the list of the command `list` that contains them.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceList {
    /// Name of the list: `schedulers` or `channels`.
    pub list: &'static str,
    /// The kind of these values, such as `fading`. The list shows the kind of each value.
    pub kind: &'static str,
    /// Declarations of the values.
    pub declarations: fn() -> Vec<&'static Declaration>,
}

/// The probe key and the term for the stations of one kind of access network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationDeclaration {
    /// The key with which a probe selects stations.
    pub key: &'static str,
    /// The term for one station, such as "UE".
    pub name: &'static str,
}

/// The settings of an access network in a scenario. They do not depend on the seed.
pub trait AccessNetworkSettings: DynPartialEq + fmt::Debug + Send + Sync {
    /// Returns the component that declares this kind of access network.
    fn component(&self) -> &'static AccessNetworkComponent;

    /// Returns the name, unique among links and media.
    fn name(&self) -> &str;

    /// Returns the hub: the node to which all stations are connected.
    fn hub(&self) -> NodeId;

    /// Returns the stations, in order of their numbers.
    fn stations(&self) -> &[NodeId];

    /// Returns the size of the largest IP packet in bytes.
    fn mtu_bytes(&self) -> u32;

    /// Returns the bounds of a direction, which the auditor checks.
    fn bounds(&self, way: MediumDirection) -> DirectionBounds;

    /// Returns the estimated cost of the medium in a run of this duration.
    fn cost(&self, duration: Duration) -> MediumCost {
        MediumCost::default_estimate(self.stations().len(), duration)
    }

    /// Returns the files that the keys name, each once.
    fn files(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// Builds the medium. Its random streams use this seed.
    ///
    /// # Errors
    /// If the settings are impossible; the error is a sentence that states which ones.
    fn build(&self, seed: u64) -> Result<Box<dyn Medium>, String>;
}

/// The settings of an access network of any kind.
pub type AccessNetwork = Arc<dyn AccessNetworkSettings>;

impl PartialEq for dyn AccessNetworkSettings {
    fn eq(&self, other: &Self) -> bool {
        self.dyn_eq(other as &dyn Any)
    }
}

impl dyn AccessNetworkSettings {
    /// Returns the link name of a direction: `NAME.downlink` or `NAME.uplink`.
    pub fn link_name(&self, way: MediumDirection) -> String {
        format!("{}.{}", self.name(), way.name())
    }

    /// Returns whether a node is the hub or a station.
    pub fn contains_node(&self, node: NodeId) -> bool {
        self.hub() == node || self.stations().contains(&node)
    }
}

/// The bounds that the auditor checks for one direction of a medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectionBounds {
    /// Maximum rate of delivery in bit/s; 0 means no limit.
    pub rate_bps: u64,
    /// Minimum delay of a packet.
    pub least_delay: Duration,
}

/// The estimated cost of a medium, in addition to the cost of the packets that it carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediumCost {
    /// Number of events of the medium in the run.
    pub events: f64,
    /// CPU time per event, as a multiple of the CPU time for the arrival of a TCP segment in the benchmark `tcp-1`.
    pub weight: f64,
    /// Memory in bytes.
    pub bytes: f64,
    /// The reason why the numbers are upper bounds; `None` if they are not.
    pub bound: Option<&'static str>,
}

impl MediumCost {
    /// Returns the default estimate, for a medium that does not state its own cost. The estimate assumes two events per
    /// millisecond. The CPU time of each event grows with the number of stations.
    pub fn default_estimate(stations: usize, duration: Duration) -> MediumCost {
        let stations = stations as f64;
        let bound = Some("a medium that does not state its cost");
        MediumCost { events: 2e3 * duration.as_secs_f64(), weight: 1.0 + stations, bytes: 2e4 * stations, bound }
    }
}

/// The context in which the keys of an access network are read.
pub struct AccessContext<'a> {
    /// The hosts and routers that keys can name.
    pub nodes: &'a dyn NodeLookup,
    /// The stations of all access networks of this kind so far; a node can be a station only once.
    pub stations: &'a mut BTreeSet<NodeId>,
}

impl fmt::Debug for AccessContext<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AccessContext").field("stations", &self.stations).finish_non_exhaustive()
    }
}

/// The hosts and routers of a scenario.
pub trait NodeLookup {
    /// Returns the number of nodes; node numbers start at 0.
    fn count(&self) -> usize;

    /// Returns the name of a node.
    fn name(&self, node: NodeId) -> &str;

    /// Returns whether a node is a router.
    fn is_router(&self, node: NodeId) -> bool;

    /// Returns the IPv4 and the IPv6 address of a node.
    fn addresses(&self, node: NodeId) -> [IpAddr; 2];

    /// Returns the node with this name; `None` if there is none.
    fn find(&self, name: &str) -> Option<NodeId>;
}

fn names(nodes: &dyn NodeLookup) -> impl ExactSizeIterator<Item = &str> + Clone {
    (0..nodes.count()).map(|number| nodes.name(NodeId(number as u32)))
}

/// Returns the node with this name. If there is none, adds an error with the nearest name to `check` and returns
/// `None`.
pub fn find_node(
    name: &str,
    place: SourceLocation,
    path: &str,
    nodes: &dyn NodeLookup,
    check: &mut Diagnostics<'_>,
) -> Option<NodeId> {
    let found = nodes.find(name);
    if found.is_none() && !check.is_full() {
        let shown: String = name.chars().take(64).collect();
        let message = format!("unknown host or router \"{shown}\"");
        check.add_unknown_name(place, path, message, name, names(nodes));
    }
    found
}

/// Returns the node with this name, for a key that accepts only hosts. If there is no such node, adds an error with the
/// nearest host name to `check` and returns `None`. The result can be a router, which the caller must reject.
pub fn find_host(
    name: &str,
    place: SourceLocation,
    path: &str,
    nodes: &dyn NodeLookup,
    check: &mut Diagnostics<'_>,
) -> Option<NodeId> {
    let found = nodes.find(name);
    if found.is_none() && !check.is_full() {
        let shown: String = name.chars().take(64).collect();
        let hosts = (0..nodes.count()).map(|number| NodeId(number as u32)).filter(|node| !nodes.is_router(*node));
        let hosts: Vec<&str> = hosts.map(|node| nodes.name(node)).collect();
        check.add_unknown_name(place, path, format!("unknown host \"{shown}\""), name, hosts.iter().copied());
    }
    found
}

impl AccessContext<'_> {
    /// Returns the node that a key names.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn node(&self, reader: &mut SettingsReader<'_, '_>, key: &str) -> Result<NodeId, InvalidSettings> {
        let (text, place, path) = (reader.tree.text(key), reader.tree.location_of(key), reader.path_of(key));
        find_node(text, place, &path, self.nodes, reader.check).ok_or(InvalidSettings)
    }

    /// Returns the nodes that a key selects: one node by its name, or all hosts that match a pattern. The hosts are in
    /// natural order of their names.
    ///
    /// # Errors
    /// If the key selects no node.
    pub fn find_matching(
        &self,
        reader: &mut SettingsReader<'_, '_>,
        key: &str,
    ) -> Result<Vec<NodeId>, InvalidSettings> {
        let text = reader.tree.text(key);
        if !is_pattern(text) {
            return Ok(vec![self.node(reader, key)?]);
        }
        let hosts = (0..self.nodes.count()).map(|number| NodeId(number as u32));
        let hosts = hosts.filter(|node| !self.nodes.is_router(*node));
        let name = |node: &NodeId| self.nodes.name(*node);
        let mut found: Vec<NodeId> = hosts.clone().filter(|node| matches(text, name(node))).collect();
        if found.is_empty() {
            let (place, hosts) = (reader.tree.location_of(key), hosts.take(MAX_COMPARED_NAMES).collect::<Vec<_>>());
            let message = format!("no host matches {}", reader.check.sources.excerpt(place));
            reader.check.add_error(place, &reader.path_of(key), message, abbreviate_names(hosts.iter().map(name)));
            return Err(InvalidSettings);
        }
        found.sort_by(|a, b| compare_natural(name(a), name(b)));
        Ok(found)
    }

    /// Registers a node, which `key` of the table names, as a station of this kind of access network.
    ///
    /// # Errors
    /// If the node is already a station of this kind of access network.
    pub fn claim_station(
        &mut self,
        reader: &mut SettingsReader<'_, '_>,
        key: &str,
        node: NodeId,
        called: StationDeclaration,
    ) -> Result<(), InvalidSettings> {
        if self.stations.insert(node) {
            return Ok(());
        }
        let found = reader.check.sources.excerpt(reader.tree.location_of(key));
        let name = format!("\"{}\"", self.nodes.name(node));
        // A pattern does not show which of its hosts is the second one.
        let selected = if found == name { String::new() } else { format!(" selects {name}, which") };
        let message = format!("{} = {found}{selected} is already a {}", reader.path_of(key), called.name);
        Err(reader.add_error(key, message, "each host once"))
    }
}
