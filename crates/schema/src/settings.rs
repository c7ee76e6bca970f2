//! Tables of a transport's settings: one for all flows, and one below each `[[flow]]` for that flow.
//!
//! A value comes from the flow's own table if it has the key, otherwise from the table for all flows, otherwise from the
//! default.

use crate::{Data, Default, Place, Table, Tree, default_data};

/// A table of settings with the default values of its keys.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The table.
    pub table: &'static Table,
    /// Keys and defaults, as a file would write them, of keys that are not declared with [`Default::Inherited`].
    pub values: &'static [(&'static str, &'static str)],
}

impl Settings {
    /// Fills in every absent key: from `inherited` if that has the key and `takes` accepts it, otherwise by the default.
    pub fn fill(&self, tree: &mut Tree, inherited: Option<&Tree>, takes: impl Fn(&str) -> bool) {
        if let Some(inherited) = inherited {
            for (key, value) in inherited.iter().filter(|(key, _)| takes(key)) {
                tree.fill(key, value.data.clone());
            }
        }
        for field in self.table.common() {
            let listed = self.values.iter().find(|(key, _)| *key == field.key).map(|(_, value)| *value);
            let value = if let Default::Inherited(value) = field.default { Some(value) } else { listed };
            if let Some(value) = value {
                tree.fill(field.key, default_data(&field.kind, value));
            }
        }
    }

    /// A table in which every key has its default.
    pub fn defaults(&self, place: Place) -> Tree {
        let mut tree = Tree::at(place);
        self.fill(&mut tree, None, |_| true);
        tree
    }

    /// The table for all flows, with its defaults filled in.
    pub fn common(&self, root: &Tree) -> Tree {
        let Some(Data::Table(given)) = root.get(self.table.name).map(|value| &value.data) else {
            return self.defaults(root.place);
        };
        let mut tree = given.clone();
        self.fill(&mut tree, None, |_| true);
        tree
    }
}
