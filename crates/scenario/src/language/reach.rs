//! Which hosts can reach each other: over one link, segment or access network, or through routers. Hosts do not
//! forward.

use super::network::Network;
use fullpipe_units::NodeId;

/// Decides whether two hosts can reach each other. All lists are in ascending order.
pub(crate) struct Reachability {
    /// The neighbors of each node.
    neighbours: Vec<Vec<u32>>,
    /// The segments of each node.
    segments: Vec<Vec<u32>>,
    /// The connected groups of routers that each node is adjacent to.
    groups: Vec<Vec<u32>>,
}

impl Reachability {
    pub(crate) fn new(network: &Network) -> Self {
        let count = network.nodes.len();
        let router = |node: &NodeId| network.nodes[node.index()].router;
        let mut neighbours = vec![Vec::new(); count];
        let mut union = Union { parent: (0..count as u32).collect() };
        // Both directions are in the list, so each link is visited from both ends.
        for link in &network.links {
            neighbours[link.from.index()].push(link.to.0);
            if router(&link.from) && router(&link.to) {
                union.join(link.from.0, link.to.0);
            }
        }
        for access in &network.access {
            let hub = access.hub();
            for station in access.stations() {
                neighbours[hub.index()].push(station.0);
                neighbours[station.index()].push(hub.0);
                if router(&hub) && router(station) {
                    union.join(hub.0, station.0);
                }
            }
        }
        let mut segments = vec![Vec::new(); count];
        for (number, segment) in network.ethernets.iter().enumerate() {
            let mut routers = segment.hosts.iter().filter(|host| router(host));
            if let Some(first) = routers.next() {
                routers.for_each(|other| union.join(first.0, other.0));
            }
            for host in &segment.hosts {
                segments[host.index()].push(number as u32);
            }
        }
        let mut groups: Vec<Vec<u32>> = vec![Vec::new(); count];
        for node in 0..count {
            for near in neighbours[node].iter().filter(|near| router(&NodeId(**near))) {
                groups[node].push(union.find(*near));
            }
            for segment in &segments[node] {
                let routers = network.ethernets[*segment as usize].hosts.iter().filter(|host| router(host));
                groups[node].extend(routers.map(|near| union.find(near.0)));
            }
        }
        for list in neighbours.iter_mut().chain(&mut groups) {
            list.sort_unstable();
            list.dedup();
        }
        Reachability { neighbours, segments, groups }
    }

    /// Returns whether packets can travel from host `a` to host `b`. Links have two directions, so the reverse is also
    /// true.
    pub(crate) fn connected(&self, a: NodeId, b: NodeId) -> bool {
        let (a, b) = (a.index(), b.index());
        self.neighbours[a].binary_search(&(b as u32)).is_ok()
            || share(&self.segments[a], &self.segments[b])
            || share(&self.groups[a], &self.groups[b])
    }
}

/// Returns whether two ascending lists have an element in common.
fn share(a: &[u32], b: &[u32]) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    short.iter().any(|element| long.binary_search(element).is_ok())
}

/// Disjoint sets with path halving.
struct Union {
    parent: Vec<u32>,
}

impl Union {
    fn find(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            let grandparent = self.parent[self.parent[node as usize] as usize];
            self.parent[node as usize] = grandparent;
            node = grandparent;
        }
        node
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        // The smaller number is the root.
        self.parent[a.max(b) as usize] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use crate::load;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Searches breadth-first from `a`, through routers only.
    fn search(edges: &[(usize, usize)], routers: usize, a: usize, b: usize) -> bool {
        let mut reached = BTreeSet::from([a]);
        let mut queue = vec![a];
        while let Some(node) = queue.pop() {
            // Nodes with numbers below `routers` are routers. Hosts do not forward.
            if node != a && node >= routers {
                continue;
            }
            for (x, y) in edges {
                for (from, to) in [(*x, *y), (*y, *x)] {
                    if from == node && reached.insert(to) {
                        queue.push(to);
                    }
                }
            }
        }
        reached.contains(&b)
    }

    proptest! {
        #[test]
        fn reach_equals_a_breadth_first_search(
            edges in prop::collection::vec((0..9usize, 0..9usize), 0..10),
            lan in prop::collection::btree_set(4..9usize, 0..4),
        ) {
            // Nodes 0 to 3 are routers r0 to r3, nodes 4 to 8 hosts h4 to h8.
            let name = |node: usize| format!("{}{node}", if node < 4 { 'r' } else { 'h' });
            let mut text: String = (0..4).map(|n| format!("[[router]]\nname = '{}'\n", name(n))).collect();
            text.extend((4..9).map(|n| format!("[[host]]\nname = '{}'\n", name(n))));
            let mut edges: Vec<(usize, usize)> = edges.into_iter().filter(|(a, b)| a != b).collect();
            for (n, (a, b)) in edges.iter().enumerate() {
                text += &format!(
                    "[[link]]\nname = 'l{n}'\nfrom = '{}'\nto = '{}'\nrate = '1Mbit/s'\ndelay = '1ms'\n",
                    name(*a),
                    name(*b)
                );
            }
            if lan.len() > 1 {
                let hosts: Vec<String> = lan.iter().map(|host| format!("'{}'", name(*host))).collect();
                text += &format!("[[ethernet]]\nname = 'lan'\nhosts = [{}]\n", hosts.join(", "));
                text += "rate = '1Mbit/s'\ndelay = '1us'\n";
                edges.extend(lan.iter().flat_map(|a| lan.iter().map(|b| (*a, *b))));
            }
            for a in 4..9 {
                for b in (4..9).filter(|b| *b != a) {
                    let text = format!("{text}[[flow]]\nfrom = '{}'\nto = '{}'\n", name(a), name(b));
                    prop_assert_eq!(load(&text, "t", &[]).is_ok(), search(&edges, 4, a, b), "{}", text);
                }
            }
        }
    }
}
