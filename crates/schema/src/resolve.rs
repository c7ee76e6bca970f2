//! Writes a checked tree as TOML with all defaults, in the order of the schema. Equal values always result in equal
//! text, and parsing the text returns the same values.

use crate::node::{format_float, quote, quote_key};
use crate::quantity::{format_link_queue_limit, format_queue_limit, format_size};
use crate::tree::{Tree, Value, ValueData};
use crate::{Field, FieldKind, Table};

/// Returns the text of a TOML file with the values of `tree`, including all defaults.
pub fn resolved_toml(schema: &'static Table, tree: &Tree) -> String {
    let mut text = String::new();
    table(schema, tree, "", &mut text);
    text
}

/// Returns the fields of a tree in the order of the schema.
fn fields<'a>(schema: &'static Table, tree: &'a Tree) -> Vec<(&'static str, Option<&'static Field>, &'a Value)> {
    let mut list = Vec::new();
    let mut fields: Vec<&'static Field> = schema.common_fields().collect();
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

/// Returns the kind of a value. For [`FieldKind::Either`] it is one of its two kinds.
fn actual(kind: &'static FieldKind, data: &ValueData) -> &'static FieldKind {
    match kind {
        FieldKind::Either(first, second) => {
            let first_fits = match (first, data) {
                (FieldKind::Tables(_), ValueData::Tables(_)) | (FieldKind::Table(_), ValueData::Table(_)) => true,
                (FieldKind::Tables(_) | FieldKind::Table(_), _) => false,
                (_, ValueData::Tables(_) | ValueData::Table(_)) => false,
                _ => true,
            };
            actual(if first_fits { first } else { second }, data)
        }
        other => other,
    }
}

/// Writes the fields of a table: first the values on one line, then the tables under headers. A header ends the values
/// of its parent.
fn table(schema: &'static Table, tree: &Tree, prefix: &str, text: &mut String) {
    let fields = fields(schema, tree);
    for (key, field, value) in &fields {
        if !under_header(field.map(|field| &field.kind), value) {
            let written = format_inline(field.map(|field| &field.kind), value);
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

/// Writes a value under its own headers.
fn below_header(kind: &'static FieldKind, data: &ValueData, path: &str, text: &mut String) {
    match (actual(kind, data), data) {
        (FieldKind::Table(schema), ValueData::Table(tree)) => {
            header(&format!("[{path}]"), text);
            table(schema, tree, &format!("{path}."), text);
        }
        (FieldKind::Tables(schema), ValueData::Tables(trees)) => {
            for tree in trees {
                header(&format!("[[{path}]]"), text);
                table(schema, tree, &format!("{path}."), text);
            }
        }
        (FieldKind::Map(kind), ValueData::Map(map)) => named(kind, map, path, text),
        _ => {}
    }
}

fn named(kind: &'static FieldKind, map: &[crate::NamedValue], path: &str, text: &mut String) {
    header(&format!("[{path}]"), text);
    for entry in map.iter().filter(|entry| !under_header(Some(kind), &entry.value)) {
        text.push_str(&format!("{} = {}\n", quote_key(&entry.name), format_inline(Some(kind), &entry.value)));
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

/// Returns whether a value gets its own header. A table of up to three fields without such values is written inline. An
/// empty array of tables can only be written as `[]`.
fn under_header(kind: Option<&'static FieldKind>, value: &Value) -> bool {
    match (kind.map(|kind| actual(kind, &value.data)), &value.data) {
        (Some(FieldKind::Table(schema)), ValueData::Table(tree)) => {
            let fields = fields(schema, tree);
            fields.len() > 3 || fields.iter().any(|(_, field, value)| under_header(field.map(|f| &f.kind), value))
        }
        (Some(FieldKind::Tables(schema)), ValueData::Tables(trees)) => {
            trees.iter().any(|tree| under_header_as_table(schema, tree))
        }
        (_, ValueData::Map(_)) => true,
        _ => false,
    }
}

fn under_header_as_table(schema: &'static Table, tree: &Tree) -> bool {
    let fields = fields(schema, tree);
    fields.len() > 3 || fields.iter().any(|(_, field, value)| under_header(field.map(|f| &f.kind), value))
}

/// Returns a value as TOML on one line. `kind` is `None` for the key that selects the variant of a table.
pub fn format_inline(kind: Option<&'static FieldKind>, value: &Value) -> String {
    let kind = kind.map(|kind| actual(kind, &value.data));
    match &value.data {
        ValueData::Text(text) => quote(text),
        ValueData::Boolean(boolean) => boolean.to_string(),
        ValueData::Integer(number) => number.to_string(),
        ValueData::Number(number) => format_float(*number),
        ValueData::Duration(duration) => quote(&duration.to_string()),
        ValueData::Rate(rate) => quote(&rate.to_string()),
        ValueData::Size(bytes) => quote(&format_size(*bytes)),
        ValueData::QueueLimit(limit) => quote(&format_queue_limit(*limit)),
        ValueData::LinkQueueLimit(limit) => quote(&format_link_queue_limit(*limit)),
        ValueData::Choice(name) => quote(name),
        ValueData::Raw(node) => node.to_toml(),
        ValueData::List(list) => {
            let element = match kind {
                Some(FieldKind::List(element)) => Some(*element),
                _ => None,
            };
            format!("[{}]", list.iter().map(|value| format_inline(element, value)).collect::<Vec<_>>().join(", "))
        }
        ValueData::Table(tree) => match kind {
            Some(FieldKind::Table(schema)) => inline(schema, tree),
            _ => "{}".to_string(),
        },
        ValueData::Tables(trees) => match kind {
            Some(FieldKind::Tables(schema)) => {
                format!("[{}]", trees.iter().map(|tree| inline(schema, tree)).collect::<Vec<_>>().join(", "))
            }
            _ => "[]".to_string(),
        },
        ValueData::Map(map) => {
            let element = match kind {
                Some(FieldKind::Map(element)) => Some(*element),
                _ => None,
            };
            let pairs: Vec<String> = map
                .iter()
                .map(|entry| format!("{} = {}", quote_key(&entry.name), format_inline(element, &entry.value)))
                .collect();
            if pairs.is_empty() { "{}".to_string() } else { format!("{{ {} }}", pairs.join(", ")) }
        }
    }
}

fn inline(schema: &'static Table, tree: &Tree) -> String {
    let pairs: Vec<String> = fields(schema, tree)
        .into_iter()
        .map(|(key, field, value)| format!("{} = {}", quote_key(key), format_inline(field.map(|f| &f.kind), value)))
        .collect();
    if pairs.is_empty() { "{}".to_string() } else { format!("{{ {} }}", pairs.join(", ")) }
}
