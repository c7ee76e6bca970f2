//! Static routes with the fewest hops. Among equal routes, the one over the link declared first is used.
//!
//! A host with one edge, to a router, needs no table and sends all packets to that router. Every other node has a table
//! of the next hops toward all nodes, which is computed by one breadth-first search per table.

use crate::medium::MediumDirection;
use fullpipe_units::{LinkId, NodeId};
use std::collections::VecDeque;

/// The next hop from a node toward a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextHop {
    /// A point-to-point link.
    Link(LinkId),
    /// A station on a shared segment.
    Station {
        /// The number of the segment.
        segment: u32,
        /// The number of the station on the segment.
        station: u32,
    },
    /// A direction of a medium with a hub.
    Medium {
        /// The number of the medium.
        medium: u16,
        /// The direction, from the hub or to it.
        way: MediumDirection,
        /// The number of the station.
        station: u32,
    },
    /// The node translates addresses before it determines the next hop. [`crate::Network::path`] contains the hop after
    /// the translation instead.
    Translation,
    /// No route.
    None,
}

/// The routes of one node in compact form. With 20 000 hosts, the routes of most hosts are not in the cache when they
/// are needed.
#[derive(Clone, Debug)]
pub(crate) enum Routes {
    /// All packets use this hop. It leads to a router that drops packets to unreachable destinations.
    Default(NextHop),
    /// Only this neighbor, a host, can be reached.
    Neighbor(NodeId, NextHop),
    /// A next hop per destination.
    Table(Box<ForwardingTable>),
    /// These routes, after address translation.
    AfterNat(Box<Routes>),
}

/// Next hops by destination, four bytes each. With 20 000 hosts, a table of [`NextHop`]s would exceed the cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct ForwardingTable {
    /// The number of a link, or [`STATION`] plus an index into `stations`, or [`NO_WAY`].
    codes: Vec<u32>,
    stations: Vec<NextHop>,
}

const STATION: u32 = 1 << 31;
const NO_WAY: u32 = u32::MAX;

impl ForwardingTable {
    fn new(ways: &[NextHop]) -> Self {
        let mut table = ForwardingTable { codes: Vec::with_capacity(ways.len()), stations: Vec::new() };
        for way in ways {
            table.codes.push(match way {
                NextHop::Link(link) => link.0,
                NextHop::None | NextHop::Translation => NO_WAY,
                NextHop::Station { .. } | NextHop::Medium { .. } => {
                    table.stations.push(*way);
                    STATION + table.stations.len() as u32 - 1
                }
            });
        }
        table
    }

    #[inline(always)]
    fn toward(&self, destination: NodeId) -> NextHop {
        match self.codes.get(destination.index()).copied() {
            Some(link) if link < STATION => NextHop::Link(LinkId(link)),
            Some(NO_WAY) | None => NextHop::None,
            Some(station) => self.stations[(station - STATION) as usize],
        }
    }
}

impl Routes {
    #[inline(always)]
    pub(crate) fn toward(&self, destination: NodeId) -> NextHop {
        // Two comparisons are faster than a match over all variants, which compiles to a jump table with six more
        // instructions per hop.
        if let Routes::Table(table) = self {
            return table.toward(destination);
        }
        if let Routes::Default(attachment) = self {
            return *attachment;
        }
        self.toward_neighbour(destination)
    }

    #[inline(never)]
    fn toward_neighbour(&self, destination: NodeId) -> NextHop {
        match self {
            Routes::Neighbor(neighbour, attachment) if *neighbour == destination => *attachment,
            Routes::AfterNat(_) => NextHop::Translation,
            _ => NextHop::None,
        }
    }

    /// Returns the next hop after address translation.
    pub(crate) fn beyond(&self, destination: NodeId) -> NextHop {
        match self {
            Routes::AfterNat(routes) => routes.toward(destination),
            routes => routes.toward(destination),
        }
    }
}

/// A connection from a node to a neighbor.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The neighbor.
    pub to: NodeId,
    /// The link, station or medium that leads to the neighbor.
    pub by: NextHop,
}

/// The routes of a network that has not been built yet; they equal those of the built [`crate::Network`].
#[derive(Clone, Debug)]
pub struct RoutingTables(Vec<Routes>);

impl RoutingTables {
    /// Computes the routes of all nodes from their edges. The edges of a node must be in this order: links, segments,
    /// media, each in order of declaration. `forwards[n]` states whether node n forwards packets.
    pub fn new(edges: &[Vec<Edge>], forwards: &[bool]) -> Self {
        RoutingTables(compute(edges, forwards))
    }

    /// Returns the next hop from a node to a destination.
    pub fn next_hop(&self, node: NodeId, destination: NodeId) -> NextHop {
        self.0[node.index()].toward(destination)
    }
}

/// Computes the routes of all nodes from their edges, in order of declaration. `forwards[n]` states whether node n
/// forwards packets.
pub(crate) fn compute(edges: &[Vec<Edge>], forwards: &[bool]) -> Vec<Routes> {
    (0..edges.len())
        .map(|node| match edges[node].as_slice() {
            [] => Routes::Default(NextHop::None),
            [only] if !forwards[only.to.index()] => Routes::Neighbor(only.to, only.by),
            // A neighbor with a default route could return packets to unreachable destinations forever. A router that
            // is itself the destination could do so too.
            [only] if !forwards[node] && edges[only.to.index()].len() > 1 => Routes::Default(only.by),
            _ => Routes::Table(Box::new(ForwardingTable::new(&table(node, edges, forwards)))),
        })
        .collect()
}

fn table(origin: usize, edges: &[Vec<Edge>], forwards: &[bool]) -> Vec<NextHop> {
    let mut first = vec![NextHop::None; edges.len()];
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
