//! Tests that a key that is changed in the file and the same key that is changed by an override give the same scenario.

use fullpipe_scenario::{Override, load};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Value};

/// The resolved scenarios of the repository, with all defaults. Large ones are omitted to save time.
fn resolved() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut paths: Vec<PathBuf> = [root]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    let resolved = paths.iter().map(|path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(path).unwrap();
        (name, load(&text, "file", &[]).unwrap_or_else(|errors| panic!("{errors}")).resolved)
    });
    resolved.filter(|(_, text)| text.len() < 12_000).collect()
}

/// The paths of all values in a file, element by element in arrays.
fn leaves(item: &Item, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    let mut below = |key: String, item: &Item| {
        path.push(key);
        leaves(item, path, found);
        path.pop();
    };
    if let Some(table) = item.as_table_like() {
        table.iter().for_each(|(key, item)| below(key.to_string(), item));
    } else if let Some(tables) = item.as_array_of_tables() {
        tables.iter().enumerate().for_each(|(n, table)| below(n.to_string(), &Item::Table(table.clone())));
    } else if let Some(values) = item.as_array().filter(|values| !values.is_empty()) {
        values.iter().enumerate().for_each(|(n, value)| below(n.to_string(), &Item::Value(value.clone())));
    } else if let Some(value) = item.as_value() {
        found.push((path.clone(), value.clone().decorated("", "").to_string()));
    }
}

/// The file with another value at the path.
fn edited(text: &str, path: &[String], value: &str) -> String {
    let mut document: DocumentMut = text.parse().unwrap();
    let mut item = document.as_item_mut();
    for key in path {
        let is_list = item.is_array() || item.is_array_of_tables();
        let below = if is_list { item.get_mut(key.parse::<usize>().unwrap()) } else { item.get_mut(key) };
        item = below.unwrap();
    }
    *item = Item::Value(value.parse::<Value>().unwrap());
    document.to_string()
}

#[test]
fn override_equals_an_edit_of_the_file() {
    let files = resolved();
    let values: Vec<Vec<(Vec<String>, String)>> = files
        .iter()
        .map(|(_, text)| {
            let mut found = Vec::new();
            leaves(text.parse::<DocumentMut>().unwrap().as_item(), &mut Vec::new(), &mut found);
            found
        })
        .collect();
    // All values of the same key in all files, so that they have the correct kind.
    let mut by_key: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (path, value) in values.iter().flatten() {
        let known = by_key.entry(path.last().unwrap()).or_default();
        if !known.contains(&value.as_str()) {
            known.push(value);
        }
    }
    let (mut accepted, mut changed, mut refused) = (0, 0, 0);
    for ((name, text), leaves) in files.iter().zip(&values) {
        let before = load(text, "file", &[]).unwrap();
        let step = leaves.len().div_ceil(80);
        for (n, (path, value)) in leaves.iter().enumerate().step_by(step) {
            let others = &by_key[path.last().unwrap().as_str()];
            let at = others.iter().position(|other| other == value).unwrap();
            let other = others[(at + 1 + n / step % 3) % others.len()];
            // Names may contain dots and blanks.
            let dotted: Vec<String> = path.iter().map(|key| toml_edit::Key::new(key).to_string()).collect();
            let set = Override { path: dotted.join("."), value: other.to_string() };
            let by_override = load(text, "file", std::slice::from_ref(&set));
            let by_edit = load(&edited(text, path, other), "file", &[]);
            match (by_override, by_edit) {
                (Ok(one), Ok(two)) => {
                    assert_eq!(one.scenario, two.scenario, "{name}: {set:?}");
                    assert_eq!(one.resolved, two.resolved, "{name}: {set:?}");
                    accepted += 1;
                    changed += usize::from(one.resolved != before.resolved);
                }
                (Err(_), Err(_)) => refused += 1,
                (Ok(_), Err(errors)) => panic!("{name}: {set:?} is accepted, the edit is not: {errors}"),
                (Err(errors), Ok(_)) => panic!("{name}: the edit is accepted, {set:?} is not: {errors}"),
            }
        }
    }
    assert!(
        accepted > 300 && changed > 80 && refused > 60,
        "{accepted} accepted, {changed} changed, {refused} refused"
    );
}
