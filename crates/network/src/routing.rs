//! Static routes: fewest hops, ties to the link declared first.
//!
//! A node with one way out needs no table: it sends everything to the router there. Every other node has, for each node
//! of the network, the link toward it, found by one breadth-first search per such node.

use crate::medium::Way;
use fullpipe_units::{LinkId, NodeId};
use std::collections::VecDeque;

/// A way out of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attachment {
    /// A point-to-point link.
    Link(LinkId),
    /// A station of a shared segment: number of the segment, number of the station.
    Station {
        /// Which segment.
        segment: u32,
        /// Which station on it.
        station: u32,
    },
    /// A way through a medium with a hub.
    Medium {
        /// Which medium.
        medium: u16,
        /// From the hub or to it.
        way: Way,
        /// The station at the other end.
        station: u32,
    },
    /// Through the node's own address translation first, which then knows the way. [`crate::Network::path`] has the ways
    /// behind it instead.
    Translation,
    /// No way.
    None,
}

/// Routes of one node, in few bytes: with 20 000 hosts those of most are not in the cache when they are needed.
#[derive(Clone, Debug)]
pub(crate) enum Routes {
    /// Everything goes this way: to a router that knows what it cannot reach.
    Default(Attachment),
    /// Only this neighbour, a host, can be reached.
    Neighbour(NodeId, Attachment),
    /// By destination.
    Table(Box<Table>),
    /// These, after address translation.
    Translated(Box<Routes>),
}

/// Ways by destination, four bytes each: with 20 000 hosts a table of [`Attachment`]s outgrows the cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// A link's number, or [`STATION`] plus an index into `stations`, or [`NO_WAY`].
    codes: Vec<u32>,
    stations: Vec<Attachment>,
}

const STATION: u32 = 1 << 31;
const NO_WAY: u32 = u32::MAX;

impl Table {
    fn new(ways: &[Attachment]) -> Self {
        let mut table = Table { codes: Vec::with_capacity(ways.len()), stations: Vec::new() };
        for way in ways {
            table.codes.push(match way {
                Attachment::Link(link) => link.0,
                Attachment::None | Attachment::Translation => NO_WAY,
                Attachment::Station { .. } | Attachment::Medium { .. } => {
                    table.stations.push(*way);
                    STATION + table.stations.len() as u32 - 1
                }
            });
        }
        table
    }

    #[inline(always)]
    fn toward(&self, destination: NodeId) -> Attachment {
        match self.codes.get(destination.index()).copied() {
            Some(link) if link < STATION => Attachment::Link(LinkId(link)),
            Some(NO_WAY) | None => Attachment::None,
            Some(station) => self.stations[(station - STATION) as usize],
        }
    }
}

impl Routes {
    #[inline(always)]
    pub(crate) fn toward(&self, destination: NodeId) -> Attachment {
        // Two comparisons. A match over all kinds is a jump through a table, six instructions more for each hop.
        if let Routes::Table(table) = self {
            return table.toward(destination);
        }
        if let Routes::Default(attachment) = self {
            return *attachment;
        }
        self.toward_neighbour(destination)
    }

    #[inline(never)]
    fn toward_neighbour(&self, destination: NodeId) -> Attachment {
        match self {
            Routes::Neighbour(neighbour, attachment) if *neighbour == destination => *attachment,
            Routes::Translated(_) => Attachment::Translation,
            _ => Attachment::None,
        }
    }

    /// The way behind address translation.
    pub(crate) fn beyond(&self, destination: NodeId) -> Attachment {
        match self {
            Routes::Translated(routes) => routes.toward(destination),
            routes => routes.toward(destination),
        }
    }
}

/// One way from a node to a neighbour.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The neighbour.
    pub to: NodeId,
    /// What leads there.
    pub by: Attachment,
}

/// The routes of a network that is not built: those that [`crate::Network`] has once it is.
#[derive(Clone, Debug)]
pub struct Routing(Vec<Routes>);

impl Routing {
    /// Routes for all nodes from their edges: links, then segments, then media, each in order of declaration.
    /// `forwards[n]` tells whether node n passes packets on for others.
    pub fn new(edges: &[Vec<Edge>], forwards: &[bool]) -> Self {
        Routing(compute(edges, forwards))
    }

    /// The hop from a node toward another.
    pub fn toward(&self, node: NodeId, destination: NodeId) -> Attachment {
        self.0[node.index()].toward(destination)
    }
}

/// Routes for all nodes from their edges, in order of declaration. `forwards[n]` tells whether node n passes packets
/// on for others.
pub(crate) fn compute(edges: &[Vec<Edge>], forwards: &[bool]) -> Vec<Routes> {
    (0..edges.len())
        .map(|node| match edges[node].as_slice() {
            [] => Routes::Default(Attachment::None),
            [only] if !forwards[only.to.index()] => Routes::Neighbour(only.to, only.by),
            // A neighbour that has a default way itself might send what cannot be reached back and forth for ever; so might
            // a router that is addressed itself.
            [only] if !forwards[node] && edges[only.to.index()].len() > 1 => Routes::Default(only.by),
            _ => Routes::Table(Box::new(Table::new(&table(node, edges, forwards)))),
        })
        .collect()
}

fn table(origin: usize, edges: &[Vec<Edge>], forwards: &[bool]) -> Vec<Attachment> {
    let mut first = vec![Attachment::None; edges.len()];
    let mut reached = vec![false; edges.len()];
    reached[origin] = true;
    let mut queue = VecDeque::new();
    for edge in &edges[origin] {
        if !std::mem::replace(&mut reached[edge.to.index()], true) {
            first[edge.to.index()] = edge.by;
            queue.push_back(edge.to.index());
        }
    }
    while let Some(node) = queue.pop_front() {
        if !forwards[node] {
            continue;
        }
        for edge in &edges[node] {
            if !std::mem::replace(&mut reached[edge.to.index()], true) {
                first[edge.to.index()] = first[node];
                queue.push_back(edge.to.index());
            }
        }
    }
    first
}
