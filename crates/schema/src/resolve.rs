//! Writes a checked tree as TOML with all defaults, in the order of the schema. Equal values always give equal text,
//! and parsing the text gives the same values.

use crate::node::{format_float, quote, quote_key};
use crate::quantity::{format_link_queue_limit, format_queue_limit, format_size};
use crate::tree::{Data, Tree, Value};
use crate::{Field, Kind, Table};

/// Returns the TOML file with the values of `tree`, including all defaults.
pub fn resolved(schema: &'static Table, tree: &Tree) -> String {
    let mut text = String::new();
    table(schema, tree, "", &mut text);
    text
}

/// The fields of a tree in the order of the schema.
fn fields<'a>(schema: &'static Table, tree: &'a Tree) -> Vec<(&'static str, Option<&'static Field>, &'a Value)> {
    let mut list = Vec::new();
    let mut fields: Vec<&'static Field> = schema.common().collect();
    if let Some(variants) = schema.variants
        && let Some(value) = tree.get(variants.key)
    {
        list.push((variants.key, None, value));
        fields.extend(variants.find(value.choice()).into_iter().flat_map(|variant| variant.fields()));
    }
    for field in fields {
        if let Some(value) = tree.get(field.key) {
            list.push((field.key, Some(field), value));
        }
    }
    list
}

/// The kind of a value. For [`Kind::Either`] it is one of its two kinds.
fn actual(kind: &'static Kind, data: &Data) -> &'static Kind {
    match kind {
        Kind::Either(first, second) => {
            let first_fits = match (first, data) {
                (Kind::Tables(_), Data::Tables(_)) | (Kind::Table(_), Data::Table(_)) => true,
                (Kind::Tables(_) | Kind::Table(_), _) => false,
                (_, Data::Tables(_) | Data::Table(_)) => false,
                _ => true,
            };
            actual(if first_fits { first } else { second }, data)
        }
        other => other,
    }
}

/// The fields of a table: first the values on one line, then the tables under headers. A header ends the values of its
/// parent.
fn table(schema: &'static Table, tree: &Tree, prefix: &str, text: &mut String) {
    let fields = fields(schema, tree);
    for (key, field, value) in &fields {
        if !under_header(field.map(|field| &field.kind), value) {
            let written = one_line(field.map(|field| &field.kind), value);
            text.push_str(&format!("{} = {written}\n", quote_key(key)));
        }
    }
    for (key, field, value) in fields {
        let path = format!("{prefix}{}", quote_key(key));
        let Some(field) = field else { continue };
        if under_header(Some(&field.kind), value) {
            below_header(&field.kind, &value.data, &path, text);
        }
    }
}

/// A value under its own headers.
fn below_header(kind: &'static Kind, data: &Data, path: &str, text: &mut String) {
    match (actual(kind, data), data) {
        (Kind::Table(schema), Data::Table(tree)) => {
            header(&format!("[{path}]"), text);
            table(schema, tree, &format!("{path}."), text);
        }
        (Kind::Tables(schema), Data::Tables(trees)) => {
            for tree in trees {
                header(&format!("[[{path}]]"), text);
                table(schema, tree, &format!("{path}."), text);
            }
        }
        (Kind::Map(kind), Data::Map(map)) => named(kind, map, path, text),
        _ => {}
    }
}

fn named(kind: &'static Kind, map: &[crate::Named], path: &str, text: &mut String) {
    header(&format!("[{path}]"), text);
    for entry in map.iter().filter(|entry| !under_header(Some(kind), &entry.value)) {
        text.push_str(&format!("{} = {}\n", quote_key(&entry.name), one_line(Some(kind), &entry.value)));
    }
    for entry in map.iter().filter(|entry| under_header(Some(kind), &entry.value)) {
        let path = format!("{path}.{}", quote_key(&entry.name));
        below_header(kind, &entry.value.data, &path, text);
    }
}

fn header(header: &str, text: &mut String) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(header);
    text.push('\n');
}

/// Whether a value gets its own header. A table of up to three fields without such values is written inline. An empty
/// array of tables can only be written as `[]`.
fn under_header(kind: Option<&'static Kind>, value: &Value) -> bool {
    match (kind.map(|kind| actual(kind, &value.data)), &value.data) {
        (Some(Kind::Table(schema)), Data::Table(tree)) => {
            let fields = fields(schema, tree);
            fields.len() > 3 || fields.iter().any(|(_, field, value)| under_header(field.map(|f| &f.kind), value))
        }
        (Some(Kind::Tables(schema)), Data::Tables(trees)) => {
            trees.iter().any(|tree| under_header_as_table(schema, tree))
        }
        (_, Data::Map(_)) => true,
        _ => false,
    }
}

fn under_header_as_table(schema: &'static Table, tree: &Tree) -> bool {
    let fields = fields(schema, tree);
    fields.len() > 3 || fields.iter().any(|(_, field, value)| under_header(field.map(|f| &f.kind), value))
}

/// A value as TOML on one line. `kind` is `None` for the key that selects the variant of a table.
pub fn one_line(kind: Option<&'static Kind>, value: &Value) -> String {
    let kind = kind.map(|kind| actual(kind, &value.data));
    match &value.data {
        Data::Text(text) => quote(text),
        Data::Boolean(boolean) => boolean.to_string(),
        Data::Integer(number) => number.to_string(),
        Data::Number(number) => format_float(*number),
        Data::Duration(duration) => quote(&duration.to_string()),
        Data::Rate(rate) => quote(&rate.to_string()),
        Data::Size(bytes) => quote(&format_size(*bytes)),
        Data::QueueLimit(limit) => quote(&format_queue_limit(*limit)),
        Data::LinkQueueLimit(limit) => quote(&format_link_queue_limit(*limit)),
        Data::Choice(name) => quote(name),
        Data::Raw(node) => node.to_toml(),
        Data::List(list) => {
            let element = match kind {
                Some(Kind::List(element)) => Some(*element),
                _ => None,
            };
            format!("[{}]", list.iter().map(|value| one_line(element, value)).collect::<Vec<_>>().join(", "))
        }
        Data::Table(tree) => match kind {
            Some(Kind::Table(schema)) => inline(schema, tree),
            _ => "{}".to_string(),
        },
        Data::Tables(trees) => match kind {
            Some(Kind::Tables(schema)) => {
                format!("[{}]", trees.iter().map(|tree| inline(schema, tree)).collect::<Vec<_>>().join(", "))
            }
            _ => "[]".to_string(),
        },
        Data::Map(map) => {
            let element = match kind {
                Some(Kind::Map(element)) => Some(*element),
                _ => None,
            };
            let pairs: Vec<String> = map
                .iter()
                .map(|entry| format!("{} = {}", quote_key(&entry.name), one_line(element, &entry.value)))
                .collect();
            if pairs.is_empty() { "{}".to_string() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
    }
}

fn inline(schema: &'static Table, tree: &Tree) -> String {
    let pairs: Vec<String> = fields(schema, tree)
        .into_iter()
        .map(|(key, field, value)| format!("{} = {}", quote_key(key), one_line(field.map(|f| &f.kind), value)))
        .collect();
    if pairs.is_empty() { "{}".to_string() } else { format!("{{ {} }}", pairs.join(", ")) }
}
