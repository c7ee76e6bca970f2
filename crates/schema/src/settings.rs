//! Tables of a transport's settings: one for all flows, and one after a `[[flow]]` for that one.
//!
//! Where a value comes from, first found wins: the flow's own key, the key in the table for all, the default.

use crate::{Data, Place, Table, Tree, default_data};

/// A table of settings with the default values of its keys.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The table.
    pub table: &'static Table,
    /// Keys and defaults, as a file would write them.
    pub values: &'static [(&'static str, &'static str)],
}

impl Settings {
    /// Fills in every key of a table of this kind: from `inherited`, if there is one, those that the table `takes`.
    pub fn fill(&self, tree: &mut Tree, inherited: Option<&Tree>, takes: impl Fn(&str) -> bool) {
        if let Some(inherited) = inherited {
            for (key, value) in inherited.iter().filter(|(key, _)| takes(key)) {
                tree.fill(key, value.data.clone());
            }
        }
        for field in self.table.common() {
            if let Some((_, value)) = self.values.iter().find(|(key, _)| *key == field.key) {
                tree.fill(field.key, default_data(&field.kind, value));
            }
        }
    }

    /// A filled table with nothing of its own.
    pub fn defaults(&self, place: Place) -> Tree {
        let mut tree = Tree::at(place);
        self.fill(&mut tree, None, |_| true);
        tree
    }

    /// The filled table for all flows.
    pub fn common(&self, root: &Tree) -> Tree {
        let Some(Data::Table(given)) = root.get(self.table.name).map(|value| &value.data) else {
            return self.defaults(root.place);
        };
        let mut tree = given.clone();
        self.fill(&mut tree, None, |_| true);
        tree
    }
}
