//! Scenarios built in code: method calls set the tables and keys of a scenario file.
//!
//! A [`ScenarioBuilder`] generates the text of a scenario file and loads it like a file. Keys, defaults and checks are
//! those of the scenario reference (`docs/scenario-reference.md`). Errors have the same messages; their position is the
//! dotted path of the value.
//!
//! ```
//! use fullpipe::Simulation;
//! use fullpipe::builder::{Flow, Link, Probe, QueueLimit, ScenarioBuilder, Topology};
//! use fullpipe::units::{Duration, Rate};
//!
//! let access = Link::new(Rate::from_megabits_per_second(100), Duration::from_millis(1));
//! // Every quantity can also be written as in a file.
//! let bottleneck = Link::new("10Mbit/s", "18ms").queue(QueueLimit::Bytes(50_000));
//! let scenario = ScenarioBuilder::new()
//!     .duration(Duration::from_secs(10))
//!     .topology(Topology::dumbbell(access, bottleneck))
//!     .flow(Flow::new("left1", "right1").name("download").congestion("cubic").size(1_000_000))
//!     .probe(Probe::flow("download", ["cwnd_bytes"]));
//! let outcome = Simulation::new(scenario).run()?;
//! assert!(outcome.verdict().passed());
//! # Ok::<(), fullpipe::Error>(())
//! ```
//!
//! The error message for an unknown congestion control:
//!
//! ```
//! use fullpipe::builder::{Flow, Link, ScenarioBuilder, Topology};
//!
//! let errors = ScenarioBuilder::new()
//!     .topology(Topology::chain([Link::new("10Mbit/s", "5ms")]))
//!     .flow(Flow::new("source", "sink").congestion("cubci"))
//!     .build()
//!     .unwrap_err();
//! let message = errors.to_string();
//! assert!(message.starts_with(r#"scenario.flow.0.congestion: unknown value "cubci" for flow.0.congestion; "#));
//! assert!(message.contains(r#"did you mean "cubic"? (expected one of "#));
//! ```

pub use fullpipe_scenario::description::{BdpMultiple, LinkQueueLimit, QueueLimit};

use fullpipe_scenario::schema::node::quote_key;
use fullpipe_scenario::schema::quantity::{format_link_queue_limit, format_queue_limit};
use fullpipe_scenario::schema::{Entry, Node, NodeContent, SourceLocation};
use fullpipe_scenario::{Errors, Language, Override, Scenario};
use fullpipe_units::{Duration, Rate};

/// The name of a scenario that is built in code; errors contain it instead of a file name.
const NAME: &str = "scenario";

/// A value of a key: text, a number, a boolean, a quantity, a [`Table`], or a list of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Value(Node);

impl Value {
    fn new(content: NodeContent) -> Self {
        Value(Node { content, place: SourceLocation::default() })
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::new(NodeContent::Text(text.to_owned()))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::new(NodeContent::Text(text))
    }
}

impl From<bool> for Value {
    fn from(boolean: bool) -> Self {
        Value::new(NodeContent::Boolean(boolean))
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::new(NodeContent::Float(number))
    }
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(
            impl From<$type> for Value {
                /// An integer outside TOML's 64-bit range becomes a string of its digits, which no key accepts.
                fn from(number: $type) -> Self {
                    i64::try_from(number)
                        .map_or_else(|_| Value::from(number.to_string()), |number| Value::new(NodeContent::Integer(number)))
                }
            }
        )*
    };
}

integers! { i32 i64 u16 u32 u64 usize }

impl From<Duration> for Value {
    fn from(duration: Duration) -> Self {
        Value::from(duration.to_string())
    }
}

impl From<std::time::Duration> for Value {
    fn from(duration: std::time::Duration) -> Self {
        Value::from(format!("{}ns", duration.as_nanos()))
    }
}

impl From<Rate> for Value {
    fn from(rate: Rate) -> Self {
        Value::from(rate.to_string())
    }
}

impl From<QueueLimit> for Value {
    fn from(limit: QueueLimit) -> Self {
        Value::from(format_queue_limit(limit))
    }
}

impl From<BdpMultiple> for Value {
    fn from(multiple: BdpMultiple) -> Self {
        Value::from(format_link_queue_limit(LinkQueueLimit::Bdp(multiple)))
    }
}

impl From<LinkQueueLimit> for Value {
    fn from(limit: LinkQueueLimit) -> Self {
        Value::from(format_link_queue_limit(limit))
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(list: Vec<T>) -> Self {
        list.into_iter().collect()
    }
}

impl<T: Into<Value>, const N: usize> From<[T; N]> for Value {
    fn from(list: [T; N]) -> Self {
        list.into_iter().collect()
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    fn from_iter<I: IntoIterator<Item = T>>(list: I) -> Self {
        Value::new(NodeContent::Array(list.into_iter().map(|element| element.into().0).collect()))
    }
}

/// A table of keys and values, in the order in which the keys were first set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table(Vec<Entry>);

impl Table {
    /// Creates a table without keys.
    pub fn new() -> Self {
        Table::default()
    }

    /// Sets a key and replaces its previous value. The path is dotted: `tcp.mss` is the key `mss` of the table `tcp`,
    /// and `link.0.delay` is the key `delay` of the first table in the list `link`.
    #[must_use]
    pub fn set(mut self, path: &str, value: impl Into<Value>) -> Self {
        let parts: Vec<&str> = path.split('.').collect();
        put(&mut self.0, &parts, value.into().0);
        self
    }

    /// Appends a table to a list of tables, as `[[key]]` does in a file.
    #[must_use]
    pub fn add(mut self, key: &str, table: impl Into<Table>) -> Self {
        let table = Value::from(table.into()).0;
        match self.0.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node.content) {
            Some(NodeContent::Array(list)) => list.push(table),
            _ => put(&mut self.0, &[key], Value::new(NodeContent::Array(vec![table])).0),
        }
        self
    }
}

impl From<Table> for Value {
    fn from(table: Table) -> Self {
        Value::new(NodeContent::Table(table.0))
    }
}

/// Sets the value at a path. If a part of the path is neither a table nor a list element, the rest of the path becomes
/// a key with dots. Loading then reports that key.
fn put(entries: &mut Vec<Entry>, path: &[&str], node: Node) {
    let [first, rest @ ..] = path else { return };
    let known = entries.iter().position(|entry| entry.key == *first);
    let inner = match (known, rest) {
        (Some(at), []) => {
            entries[at].node = node;
            return;
        }
        (None, [_, ..]) => {
            entries.push(entry(first, Value::from(Table::new()).0));
            let last = entries.len() - 1;
            part(&mut entries[last].node, rest)
        }
        (Some(at), _) if part(&mut entries[at].node, rest).is_some() => part(&mut entries[at].node, rest),
        _ => None,
    };
    match inner {
        Some((inner, rest)) => put(inner, rest, node),
        None => entries.push(entry(&path.join("."), node)),
    }
}

/// Returns the table, at or below a value, in which a path continues, and the rest of the path.
fn part<'n, 'p>(node: &'n mut Node, path: &'p [&'p str]) -> Option<(&'n mut Vec<Entry>, &'p [&'p str])> {
    match (&mut node.content, path) {
        (NodeContent::Table(entries), [_, ..]) => Some((entries, path)),
        (NodeContent::Array(list), [index, rest @ ..]) => part(list.get_mut(index.parse::<usize>().ok()?)?, rest),
        _ => None,
    }
}

fn entry(key: &str, node: Node) -> Entry {
    Entry { key: key.to_owned(), key_place: SourceLocation::default(), node }
}

/// Declares builders: tables with methods for the keys that most scenarios use.
macro_rules! tables {
    ($($(#[$text:meta])* $name:ident;)*) => {
        $(
            $(#[$text])*
            #[derive(Clone, Debug, PartialEq)]
            pub struct $name(Table);

            impl $name {
                /// Sets any key by its dotted path; see [`Table::set`].
                #[must_use]
                pub fn set(self, path: &str, value: impl Into<Value>) -> Self {
                    $name(self.0.set(path, value))
                }

                /// Appends a table to a list of tables; see [`Table::add`].
                #[must_use]
                pub fn add(self, key: &str, table: impl Into<Table>) -> Self {
                    $name(self.0.add(key, table))
                }
            }

            impl From<$name> for Table {
                fn from(table: $name) -> Table {
                    table.0
                }
            }

            impl From<$name> for Value {
                fn from(table: $name) -> Value {
                    table.0.into()
                }
            }
        )*
    };
}

tables! {
    /// A predefined network, `[topology]`.
    Topology;
    /// A point-to-point link of a topology or between two nodes, `[[link]]`.
    Link;
    /// A flow or a group of identical flows, `[[flow]]`.
    Flow;
    /// A probe, which samples metrics during the run, `[[probe]]`.
    Probe;
    /// A scenario; the [module documentation](self) has an example.
    ScenarioBuilder;
}

impl Topology {
    /// Creates a topology of this kind; the scenario reference lists the kinds. [`set`](Topology::set) sets the other
    /// keys.
    pub fn new(kind: &str) -> Self {
        Topology(Table::new().set("kind", kind))
    }

    /// Creates a dumbbell: the hosts `left1`, `left2`, ... and `right1`, `right2`, ... on the two sides of the link
    /// `bottleneck`. It has one pair of hosts unless [`pairs`](Topology::pairs) sets another number.
    pub fn dumbbell(access: Link, bottleneck: Link) -> Self {
        Topology::new("dumbbell").set("access", access).set("bottleneck", bottleneck)
    }

    /// Sets the number of pairs of hosts of a dumbbell.
    #[must_use]
    pub fn pairs(self, pairs: usize) -> Self {
        self.set("pairs", pairs)
    }

    /// Creates a chain: the host `source`, routers, and the host `sink`, connected by `link1`, `link2`, ....
    pub fn chain(links: impl IntoIterator<Item = Link>) -> Self {
        Topology::new("chain").set("link", links.into_iter().collect::<Value>())
    }

    /// Creates a star: the hosts `host1`, `host2`, ..., each connected to the router `hub` by a link like `access`.
    pub fn star(hosts: usize, access: Link) -> Self {
        Topology::new("star").set("hosts", hosts).set("access", access)
    }

    /// Creates a parking lot: `hops` links `bottleneck1`, ... from the host `source` to the host `sink`, and hosts for
    /// cross traffic at each of these links.
    pub fn parking_lot(hops: usize, bottleneck: Link, access: Link) -> Self {
        Topology::new("parking-lot").set("hops", hops).set("bottleneck", bottleneck).set("access", access)
    }
}

impl Link {
    /// Creates a link with this rate and propagation delay.
    pub fn new(rate: impl Into<Value>, delay: impl Into<Value>) -> Self {
        Link(Table::new().set("rate", rate).set("delay", delay))
    }

    /// Sets the name of a link between two nodes, and the nodes at which its forward direction starts and ends.
    #[must_use]
    pub fn between(self, name: &str, from: &str, to: &str) -> Self {
        self.set("name", name).set("from", from).set("to", to)
    }

    /// Sets the limit of the queue (`discipline.limit`), which also applies without a queue discipline. The limit is a
    /// number of packets, a size, a time, or a multiple of the bandwidth-delay product (a [`BdpMultiple`], or text such
    /// as `"2BDP"`).
    #[must_use]
    pub fn limit(self, limit: impl Into<Value>) -> Self {
        self.set("discipline.limit", limit)
    }

    /// Sets the round-trip time of the bandwidth-delay product. The default is the largest base round-trip time of the
    /// flows through the link.
    #[must_use]
    pub fn bdp_rtt(self, round_trip: impl Into<Value>) -> Self {
        self.set("bdp_rtt", round_trip)
    }

    /// Sets the limit of the device's drop-tail queue (`queue`), which is the only queue if there is no queue
    /// discipline.
    #[must_use]
    pub fn queue(self, limit: impl Into<Value>) -> Self {
        self.set("queue", limit)
    }

    /// Sets the queue discipline by its name. [`set`](Link::set) sets its keys, as `discipline.KEY`.
    #[must_use]
    pub fn discipline(self, kind: &str) -> Self {
        self.set("discipline.kind", kind)
    }

    /// Sets the probability (0 to 1) with which each frame of the forward direction is lost, independently of other
    /// frames.
    #[must_use]
    pub fn loss(self, probability: f64) -> Self {
        self.set("loss", Table::new().set("kind", "bernoulli").set("probability", probability))
    }

    /// Changes the rate at this time after the start of the run. Can be called several times.
    #[must_use]
    pub fn rate_at(self, at: impl Into<Value>, rate: impl Into<Value>) -> Self {
        self.add("schedule", Table::new().set("at", at).set("rate", rate))
    }

    /// Changes the propagation delay at this time after the start of the run. Can be called several times.
    #[must_use]
    pub fn delay_at(self, at: impl Into<Value>, delay: impl Into<Value>) -> Self {
        self.add("schedule", Table::new().set("at", at).set("delay", delay))
    }
}

impl Flow {
    /// Creates a flow from the host `from` to the host `to`, each given by name or pattern.
    pub fn new(from: &str, to: &str) -> Self {
        Flow(Table::new().set("from", from).set("to", to))
    }

    /// Sets the name.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.set("name", name)
    }

    /// Sets the number of identical flows in the group.
    #[must_use]
    pub fn count(self, count: usize) -> Self {
        self.set("count", count)
    }

    /// Sets the start time, measured from the start of the run.
    #[must_use]
    pub fn start(self, start: impl Into<Value>) -> Self {
        self.set("start", start)
    }

    /// Sets the protocol: `tcp`, `udp`, `quic` or `masque`.
    #[must_use]
    pub fn protocol(self, protocol: &str) -> Self {
        self.set("protocol", protocol)
    }

    /// Sets the congestion control by its name.
    #[must_use]
    pub fn congestion(self, control: &str) -> Self {
        self.set("congestion", control)
    }

    /// Sets the workload by its name. [`set`](Flow::set) sets its keys.
    #[must_use]
    pub fn workload(self, workload: &str) -> Self {
        self.set("workload", workload)
    }

    /// Sets the size of a bulk transfer. A transfer without a size does not end.
    #[must_use]
    pub fn size(self, size: impl Into<Value>) -> Self {
        self.set("size", size)
    }
}

impl Probe {
    /// Creates a probe that samples these metrics of flows, which are given by name or pattern.
    pub fn flow<M: Into<Value>>(flows: &str, metrics: impl IntoIterator<Item = M>) -> Self {
        Probe::select("flow", flows, metrics)
    }

    /// Creates a probe that samples these metrics of link directions, which are given by name or pattern.
    pub fn link<M: Into<Value>>(links: &str, metrics: impl IntoIterator<Item = M>) -> Self {
        Probe::select("link", links, metrics)
    }

    /// Creates a probe that samples these metrics of other objects, such as UEs, which are given by name or pattern.
    /// `key` is the key of the probe that selects such objects.
    pub fn select<M: Into<Value>>(key: &str, names: &str, metrics: impl IntoIterator<Item = M>) -> Self {
        Probe(Table::new().set(key, names).set("metrics", metrics.into_iter().collect::<Value>()))
    }

    /// Sets the interval between samples.
    #[must_use]
    pub fn interval(self, interval: impl Into<Value>) -> Self {
        self.set("interval", interval)
    }
}

impl Default for ScenarioBuilder {
    fn default() -> Self {
        ScenarioBuilder::new()
    }
}

impl ScenarioBuilder {
    /// Creates a scenario without keys. A scenario needs at least a network and a flow.
    pub fn new() -> Self {
        ScenarioBuilder(Table::new())
    }

    /// Sets the title, a single line for reports.
    #[must_use]
    pub fn title(self, title: &str) -> Self {
        self.set("title", title)
    }

    /// Sets the maximum duration of the run.
    #[must_use]
    pub fn duration(self, duration: impl Into<Value>) -> Self {
        self.set("duration", duration)
    }

    /// Sets the seed of all random streams of the run.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.set("seed", seed)
    }

    /// Sets a predefined network. A scenario has either a topology or its own nodes and links.
    #[must_use]
    pub fn topology(self, topology: Topology) -> Self {
        self.set("topology", topology)
    }

    /// Adds a host.
    #[must_use]
    pub fn host(self, name: &str) -> Self {
        self.add("host", Table::new().set("name", name))
    }

    /// Adds a router.
    #[must_use]
    pub fn router(self, name: &str) -> Self {
        self.add("router", Table::new().set("name", name))
    }

    /// Adds a link between two nodes; [`Link::between`] sets its nodes.
    #[must_use]
    pub fn link(self, link: Link) -> Self {
        self.add("link", link)
    }

    /// Adds a flow.
    #[must_use]
    pub fn flow(self, flow: Flow) -> Self {
        self.add("flow", flow)
    }

    /// Adds a probe.
    #[must_use]
    pub fn probe(self, probe: Probe) -> Self {
        self.add("probe", probe)
    }

    /// Returns the equivalent scenario file. Its paths to other files are relative to the current directory.
    pub fn to_toml(&self) -> String {
        let is_table = |node: &Node| matches!(node.content, NodeContent::Table(_));
        let mut text = String::new();
        let mut headed = String::new();
        for Entry { key, node, .. } in &self.0.0 {
            let key = quote_key(key);
            match &node.content {
                NodeContent::Table(entries) => {
                    headed += &format!("\n[{key}]\n");
                    lines(entries, &mut headed);
                }
                NodeContent::Array(list) if !list.is_empty() && list.iter().all(is_table) => {
                    for element in list {
                        let NodeContent::Table(entries) = &element.content else { continue };
                        headed += &format!("\n[[{key}]]\n");
                        lines(entries, &mut headed);
                    }
                }
                _ => text += &format!("{key} = {}\n", node.to_toml()),
            }
        }
        text + &headed
    }

    /// Returns the scenario with all defaults filled in.
    ///
    /// # Errors
    /// All errors in the scenario. Their positions are the dotted paths of the values.
    pub fn build(&self) -> Result<Scenario, Errors> {
        self.load(&Language::default(), &[])
    }

    /// Like [`ScenarioBuilder::build`], with overrides and in this language.
    pub(crate) fn load(&self, language: &Language, overrides: &[Override]) -> Result<Scenario, Errors> {
        match language.load(&self.to_toml(), NAME, overrides) {
            Ok(loaded) => Ok(loaded.scenario),
            Err(mut errors) => {
                // The author has not seen the generated text, so the path replaces its line. Errors in overrides have
                // no line.
                for error in errors.0.iter_mut().filter(|error| error.line > 0) {
                    (error.line, error.column) = (0, 0);
                    if !error.path.is_empty() {
                        error.file = format!("{NAME}.{}", error.path);
                    }
                }
                Err(errors)
            }
        }
    }
}

/// Writes the keys of a table, one per line.
fn lines(entries: &[Entry], text: &mut String) {
    for Entry { key, node, .. } in entries {
        *text += &format!("{} = {}\n", quote_key(key), node.to_toml());
    }
}
