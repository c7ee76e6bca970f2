//! Tests with scenarios of the previous version: each renamed key is still accepted, with a hint.
//!
//! For each former key there are two files in `former`: `KEY.toml` in the spelling of the previous version, and
//! `KEY.now.toml` in the current spelling. Both give the same scenario.

use fullpipe_scenario::schema::{Field, FieldKind, Table};
use fullpipe_scenario::{load, root_table};
use std::collections::BTreeSet;
use std::path::Path;

/// The former keys of a table and of all tables below it.
fn former_keys(table: &'static Table, known: &mut Vec<&'static Table>, found: &mut BTreeSet<&'static str>) {
    if known.iter().any(|known| std::ptr::eq(*known, table)) {
        return;
    }
    known.push(table);
    let of_variants =
        table.variants.into_iter().flat_map(|variants| variants.list).flat_map(|variant| variant.fields());
    let fields: Vec<&'static Field> = table.common_fields().chain(of_variants).collect();
    for field in fields {
        found.extend(field.former.iter().map(|former| former.key));
        tables_of(&field.kind).into_iter().for_each(|below| former_keys(below, known, found));
    }
}

fn tables_of(kind: &'static FieldKind) -> Vec<&'static Table> {
    match kind {
        FieldKind::Table(table) | FieldKind::Tables(table) => vec![table],
        FieldKind::List(kind) | FieldKind::Map(kind) => tables_of(kind),
        FieldKind::Either(first, second) => [tables_of(first), tables_of(second)].concat(),
        _ => Vec::new(),
    }
}

#[test]
fn file_with_a_former_key_loads_with_a_hint_and_equals_the_current_one() {
    let mut keys = BTreeSet::new();
    former_keys(root_table(), &mut Vec::new(), &mut keys);
    assert!(!keys.is_empty());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/former");
    let read =
        |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    for key in &keys {
        let [former, present] = ["", ".now"].map(|ending| {
            let name = format!("{key}{ending}.toml");
            load(&read(&name), &name, &[]).unwrap_or_else(|errors| panic!("{errors}"))
        });
        assert_eq!(former.scenario, present.scenario, "{key}");
        assert_eq!(former.resolved, present.resolved, "{key}");
        assert_eq!(former.hints.len(), 1, "{key}: {:?}", former.hints);
        let hint = former.hints[0].to_string();
        assert!(hint.contains(&format!("{key} is now called ")), "{hint}");
        assert!(present.hints.is_empty(), "{key}: {:?}", present.hints);
    }
    let files = std::fs::read_dir(&folder).expect("the folder is readable").count();
    assert_eq!(files, 2 * keys.len(), "a file of {} belongs to no former key", folder.display());
}
