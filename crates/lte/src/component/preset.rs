//! Presets of an LTE access network, and its defaults that depend on other keys.

use super::keys::{BUFFERS, CELL, NETWORK, PLACES, PRESETS, Preset, RLC, UE};
use fullpipe_schema::{DefaultValue, Field, FieldKind, SourceLocation, Table, Tree, Value, ValueData, parse_default};

impl Preset {
    fn fill_rlc(&self, owner: &mut Tree) {
        let Some(rlc) = owner.table_mut("rlc") else { return };
        put(rlc, &RLC, self.rlc);
        if !rlc.is_given("preset") {
            put(rlc, &RLC, &[("buffer", self.buffer)]);
        }
    }

    fn fill(&self, network: &mut Tree) {
        put(network, &NETWORK, self.network);
        for cell in network.tables_mut("cell") {
            put(cell, &CELL, self.cell);
        }
        for ue in network.tables_mut("ue") {
            put(ue, &UE, self.ue);
            if PLACES.iter().all(|key| ue.get(key).is_none()) {
                put(ue, &UE, &[("distance", self.distance)]);
            }
            self.fill_rlc(ue);
            for bearer in ue.tables_mut("bearer") {
                self.fill_rlc(bearer);
            }
        }
    }
}

/// Sets values of keys that the file does not set.
fn put(tree: &mut Tree, schema: &'static Table, values: &[(&str, &str)]) {
    for (key, text) in values {
        let field = schema.common_fields().find(|field| field.key == *key);
        let Field { key, kind, .. } = field.expect("a preset has existing keys only");
        if tree.is_given(key) {
            continue;
        }
        let place = tree.place;
        let data = match kind {
            FieldKind::Table(table) => ValueData::Table(variant(table, text, place)),
            kind => parse_default(kind, text),
        };
        tree.set(key, Value { data, place, given: false });
    }
}

/// Returns a variant of a table with its defaults.
fn variant(table: &'static Table, name: &str, place: SourceLocation) -> Tree {
    let variants = table.variants.expect("a preset has variants only of tables with variants");
    let variant = variants.find(name).expect("a preset has existing variants only");
    let value = |data| Value { data, place, given: false };
    let mut tree = Tree::empty_at(place);
    tree.set(variants.key, value(ValueData::Choice(variant.name)));
    for field in variant.fields() {
        if let DefaultValue::Value(text) = field.default {
            tree.set(field.key, value(parse_default(&field.kind, text)));
        }
    }
    tree
}

/// Sets the defaults that depend on other keys.
pub(super) fn fill(network: &mut Tree) {
    if let Some(preset) = network.choice_value("preset", &PRESETS) {
        preset.fill(network);
    }
    for (key, like) in [("uplink_resource_blocks", "resource_blocks"), ("uplink_fading", "fading")] {
        if let Some(data) = network.get(like).map(|value| value.data.clone()) {
            network.fill(key, data);
        }
    }
    for (number, cell) in network.tables_mut("cell").iter_mut().enumerate() {
        cell.fill("name", ValueData::Text(format!("cell{}", number + 1)));
    }
    for ue in network.tables_mut("ue") {
        fill_rlc(ue);
        ue.tables_mut("bearer").iter_mut().for_each(fill_rlc);
    }
}

fn fill_rlc(owner: &mut Tree) {
    let Some(rlc) = owner.table_mut("rlc") else { return };
    let buffer = rlc.choice_value("preset", &BUFFERS);
    rlc.fill("buffer", ValueData::QueueLimit(buffer));
}
