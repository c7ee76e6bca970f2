//! Access networks in a file: the keys of each component's table, and the resulting networks.

use super::network::Network;
use crate::schema::component::SettingsReader;
use crate::schema::{Diagnostics, Field, FieldKind, Table, Tree, Value};
use fullpipe_network::access::{AccessContext, AccessNetworkComponent, NodeLookup};
use fullpipe_network::address;
use fullpipe_units::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Returns the keys under which a file declares access networks, one for each component.
pub(super) fn fields(components: &[&'static AccessNetworkComponent]) -> Vec<Field> {
    let field = |component: &&'static AccessNetworkComponent| {
        let declaration = &component.declaration;
        Field::optional(declaration.name, FieldKind::Tables(component.table), "none", declaration.text)
    };
    components.iter().map(field).collect()
}

/// Returns a copy of a table with further keys after its first group. The table is never freed.
pub(super) fn with_keys(table: &Table, keys: Vec<Field>) -> Table {
    let mut groups = table.fields.to_vec();
    groups.insert(1, keys.leak());
    Table { fields: groups.leak(), ..*table }
}

/// Fills in defaults that depend on other keys.
pub(super) fn fill(root: &mut Tree, components: &[&'static AccessNetworkComponent]) {
    for component in components {
        root.tables_mut(component.declaration.name).iter_mut().for_each(component.fill);
    }
}

/// Adds the access networks in the file to the network.
pub(super) fn networks(root: &Tree, network: &mut Network, check: &mut Diagnostics<'_>) {
    let mut stations: BTreeMap<&str, BTreeSet<NodeId>> = BTreeMap::new();
    for component in network.components {
        let key = component.declaration.name;
        let stations = stations.entry(component.station.key).or_default();
        for (index, tree) in root.get(key).map(Value::tables).unwrap_or_default().iter().enumerate() {
            if check.is_full() {
                return;
            }
            let path = format!("{key}.{index}");
            network.name_medium(tree, &path, check);
            let mut context = AccessContext { nodes: &*network, stations };
            if let Ok(settings) = (component.read)(&mut SettingsReader { tree, path: &path, check }, &mut context) {
                network.access.push(settings);
            }
        }
    }
}

impl NodeLookup for Network {
    fn count(&self) -> usize {
        self.nodes.len()
    }

    fn name(&self, node: NodeId) -> &str {
        &self.nodes[node.index()].name
    }

    fn is_router(&self, node: NodeId) -> bool {
        self.nodes[node.index()].router
    }

    fn addresses(&self, node: NodeId) -> [IpAddr; 2] {
        let described = &self.nodes[node.index()];
        [
            IpAddr::V4(described.ipv4().unwrap_or_else(|| address::ipv4(node))),
            IpAddr::V6(described.ipv6().unwrap_or_else(|| address::ipv6(node))),
        ]
    }

    fn find(&self, name: &str) -> Option<NodeId> {
        self.node_named(name)
    }
}
