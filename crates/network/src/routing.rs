//! Static routes: fewest hops, ties to the link declared first.
//!
//! A node with one way out needs no table: it sends everything to the router there. Every other node has, for each node
//! of the network, the link toward it, found by one breadth-first search per such node.

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
    /// No way.
    None,
}

/// Routes of one node.
#[derive(Clone, Debug)]
pub(crate) enum Routes {
    /// Everything goes this way: to a router that knows what it cannot reach.
    Default(Attachment),
    /// Only this neighbour, a host, can be reached.
    Neighbour(NodeId, Attachment),
    /// By destination.
    Table(Vec<Attachment>),
}

impl Routes {
    #[inline(always)]
    pub(crate) fn toward(&self, destination: NodeId) -> Attachment {
        match self {
            Routes::Default(attachment) => *attachment,
            Routes::Neighbour(neighbour, attachment) if *neighbour == destination => *attachment,
            Routes::Neighbour(..) => Attachment::None,
            Routes::Table(table) => table.get(destination.index()).copied().unwrap_or(Attachment::None),
        }
    }
}

/// One way from a node to a neighbour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    pub(crate) to: NodeId,
    pub(crate) by: Attachment,
}

/// Routes for all nodes from their edges, in order of declaration. `forwards[n]` tells whether node n passes packets
/// on for others.
pub(crate) fn compute(edges: &[Vec<Edge>], forwards: &[bool]) -> Vec<Routes> {
    (0..edges.len())
        .map(|node| match edges[node].as_slice() {
            [] => Routes::Default(Attachment::None),
            [only] if !forwards[only.to.index()] => Routes::Neighbour(only.to, only.by),
            // A neighbour that has a default way itself might send what cannot be reached back and forth for ever.
            [only] if edges[only.to.index()].len() > 1 => Routes::Default(only.by),
            _ => Routes::Table(table(node, edges, forwards)),
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
