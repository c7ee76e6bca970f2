//! Access networks as components: what the crate of one declares of itself, and what a scenario states of one.
//!
//! An access network is a star: stations reach a hub over a [`Medium`], which is a model of the component's own. The
//! component declares its table of a scenario file, turns the checked keys into [`AccessNetworkSettings`], builds the
//! medium from them, and names the metrics and tables that the medium then reports. Everybody else uses these traits.

use crate::medium::{Medium, Way};
use fullpipe_archive::reference::TableReference;
use fullpipe_schema::check::Check;
use fullpipe_schema::component::{Comparable, Declaration, Invalid, Reader};
use fullpipe_schema::error::{COMPARED, some_of};
use fullpipe_schema::metric::MetricDeclaration;
use fullpipe_schema::{Place, Table, Tree, is_pattern, matches, natural_order};
use fullpipe_units::{Duration, NodeId};
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

/// A kind of access network.
pub struct AccessNetworkComponent {
    /// Its name is the key of its tables in a scenario file, an array of tables; its keys are those of `table`.
    pub declaration: Declaration,
    /// The keys of one access network, `name` among them.
    pub table: &'static Table,
    /// What its stations are called.
    pub station: StationDeclaration,
    /// What probes can sample of each station, for each way, with the declarations of [`crate::metrics`] where they fit.
    pub metrics: fn() -> Vec<&'static MetricDeclaration>,
    /// What its keys choose by name, for lists.
    pub choices: &'static [ChoiceList],
    /// The tables that its media add to the records of a run.
    pub tables: fn() -> Vec<TableReference>,
    /// Fills in defaults that depend on other keys.
    pub fill: fn(&mut Tree),
    /// Reads the keys of one access network.
    pub read: fn(&mut Reader<'_, '_>, &mut AccessContext<'_>) -> Result<AccessNetwork, Invalid>,
}

impl fmt::Debug for AccessNetworkComponent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.declaration.fmt(formatter)
    }
}

/// Things that a key of an access network chooses by name, as a part of one of the program's lists.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceList {
    /// The list: `schedulers` or `channels`.
    pub list: &'static str,
    /// What these are in it.
    pub kind: &'static str,
    /// What they declare.
    pub declarations: fn() -> Vec<&'static Declaration>,
}

/// What the stations of a kind of access network are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationDeclaration {
    /// The key by which a probe chooses stations.
    pub key: &'static str,
    /// What one is called: "UE".
    pub name: &'static str,
}

/// What a scenario states of an access network. It does not depend on the seed.
pub trait AccessNetworkSettings: Comparable + fmt::Debug + Send + Sync {
    /// The component.
    fn component(&self) -> &'static AccessNetworkComponent;

    /// Its name, unique among links and media.
    fn name(&self) -> &str;

    /// The node through which packets enter and leave.
    fn hub(&self) -> NodeId;

    /// The stations, in order of their numbers.
    fn stations(&self) -> &[NodeId];

    /// Largest IP packet.
    fn mtu_bytes(&self) -> u32;

    /// What a way promises, which the auditor checks.
    fn promise(&self, way: Way) -> WayPromise;

    /// What its medium costs in a run that lasts so long.
    fn cost(&self, duration: Duration) -> MediumCost {
        MediumCost::assumed(self.stations().len(), duration)
    }

    /// Files that its keys name, each once.
    fn files(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// The medium. Random numbers come from streams of this seed.
    ///
    /// # Errors
    /// What of the settings cannot be, as a sentence.
    fn build(&self, seed: u64) -> Result<Box<dyn Medium>, String>;
}

/// The settings of an access network, whichever it is.
pub type AccessNetwork = Arc<dyn AccessNetworkSettings>;

impl PartialEq for dyn AccessNetworkSettings {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other as &dyn Any)
    }
}

impl dyn AccessNetworkSettings {
    /// The name of a way as a link: `NAME.downlink` or `NAME.uplink`.
    pub fn link_name(&self, way: Way) -> String {
        format!("{}.{}", self.name(), way.name())
    }

    /// Whether a node is its hub or a station.
    pub fn is_at(&self, node: NodeId) -> bool {
        self.hub() == node || self.stations().contains(&node)
    }
}

/// What a way through a medium promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WayPromise {
    /// Most bits that it delivers in a second; 0: no bound.
    pub rate_bps: u64,
    /// Least time that a packet takes.
    pub least_delay: Duration,
}

/// What a medium costs besides the packets that it carries: an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MediumCost {
    /// Events of the medium.
    pub events: f64,
    /// CPU time of one of them, over that of the arrival of a TCP segment in the benchmark `tcp-1`.
    pub weight: f64,
    /// Memory.
    pub bytes: f64,
    /// Why the numbers are upper bounds, if they are.
    pub bound: Option<&'static str>,
}

impl MediumCost {
    /// That of a medium that does not state its own: events every millisecond, whose work grows with the stations.
    pub fn assumed(stations: usize, duration: Duration) -> MediumCost {
        let stations = stations as f64;
        let bound = Some("a medium that does not state its cost");
        MediumCost { events: 2e3 * duration.as_secs_f64(), weight: 1.0 + stations, bytes: 2e4 * stations, bound }
    }
}

/// What the keys of an access network are read with.
pub struct AccessContext<'a> {
    /// The hosts and routers that keys can name.
    pub nodes: &'a dyn Nodes,
    /// The stations of the access networks of this kind, those before included: each node is one once.
    pub stations: &'a mut BTreeSet<NodeId>,
}

impl fmt::Debug for AccessContext<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AccessContext").field("stations", &self.stations).finish_non_exhaustive()
    }
}

/// The hosts and routers of a scenario.
pub trait Nodes {
    /// How many there are; their numbers count from 0.
    fn count(&self) -> usize;

    /// The name of one.
    fn name(&self, node: NodeId) -> &str;

    /// Whether it is a router.
    fn is_router(&self, node: NodeId) -> bool;

    /// Its IPv4 and its IPv6 address.
    fn addresses(&self, node: NodeId) -> [IpAddr; 2];

    /// The one of this name.
    fn find(&self, name: &str) -> Option<NodeId>;
}

fn names(nodes: &dyn Nodes) -> impl ExactSizeIterator<Item = &str> + Clone {
    (0..nodes.count()).map(|number| nodes.name(NodeId(number as u32)))
}

/// The node of a name, or an error with the nearest name.
pub fn known(name: &str, place: Place, path: &str, nodes: &dyn Nodes, check: &mut Check<'_>) -> Option<NodeId> {
    let found = nodes.find(name);
    if found.is_none() && !check.full() {
        let shown: String = name.chars().take(64).collect();
        let message = format!("unknown host or router \"{shown}\"");
        check.unknown_name(place, path, message, name, names(nodes));
    }
    found
}

impl AccessContext<'_> {
    /// The node that a key names, or an error.
    ///
    /// # Errors
    /// If there is none.
    pub fn node(&self, reader: &mut Reader<'_, '_>, key: &str) -> Result<NodeId, Invalid> {
        let (text, place, path) = (reader.tree.text(key), reader.tree.place_of(key), reader.path_of(key));
        known(text, place, &path, self.nodes, reader.check).ok_or(Invalid)
    }

    /// The nodes that a key names: one by its name, or all hosts that match a pattern, in the order of their numbers.
    ///
    /// # Errors
    /// If there is none.
    pub fn matching(&self, reader: &mut Reader<'_, '_>, key: &str) -> Result<Vec<NodeId>, Invalid> {
        let text = reader.tree.text(key);
        if !is_pattern(text) {
            return Ok(vec![self.node(reader, key)?]);
        }
        let hosts = (0..self.nodes.count()).map(|number| NodeId(number as u32));
        let hosts = hosts.filter(|node| !self.nodes.is_router(*node));
        let name = |node: &NodeId| self.nodes.name(*node);
        let mut found: Vec<NodeId> = hosts.clone().filter(|node| matches(text, name(node))).collect();
        if found.is_empty() {
            let (place, hosts) = (reader.tree.place_of(key), hosts.take(COMPARED).collect::<Vec<_>>());
            let message = format!("no host matches {}", reader.check.sources.found(place));
            reader.check.error(place, &reader.path_of(key), message, some_of(hosts.iter().map(name)));
            return Err(Invalid);
        }
        found.sort_by(|a, b| natural_order(name(a), name(b)));
        Ok(found)
    }

    /// Takes a node as a station of this kind of access network, which `key` of the table names.
    ///
    /// # Errors
    /// If it already is one.
    pub fn take(
        &mut self,
        reader: &mut Reader<'_, '_>,
        key: &str,
        node: NodeId,
        called: StationDeclaration,
    ) -> Result<(), Invalid> {
        if self.stations.insert(node) {
            return Ok(());
        }
        let message = format!("{} is declared as a {} twice", self.nodes.name(node), called.name);
        Err(reader.error(key, message, "each host once"))
    }
}
