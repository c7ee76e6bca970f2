//! The reference page of a schema, in Markdown.

use crate::node::quote;
use crate::quantity::format_size;
use crate::resolve::format_inline;
use crate::tree::Tree;
use crate::{DefaultValue, Field, FieldKind, Table};

/// Returns the reference page, with one section for each table of the schema, in the order in which tables are first
/// mentioned. The first section describes the top level of the file.
pub fn render_reference(schema: &'static Table) -> String {
    let mut page = String::new();
    let mut queue: Vec<(&'static Table, String)> = vec![(schema, String::new())];
    let mut next = 0;
    while next < queue.len() {
        let (table, _) = queue[next];
        next += 1;
        section(table, &mut page);
        for field in all_fields(table) {
            for found in tables_of(&field.kind) {
                if !queue.iter().any(|(known, _)| std::ptr::eq(*known, found)) {
                    queue.push((found, field.key.to_string()));
                }
            }
        }
    }
    page
}

fn all_fields(table: &'static Table) -> Vec<&'static Field> {
    let mut fields: Vec<&'static Field> = table.common_fields().collect();
    if let Some(variants) = table.variants {
        fields.extend(variants.list.iter().flat_map(|variant| variant.fields()));
    }
    fields
}

fn tables_of(kind: &FieldKind) -> Vec<&'static Table> {
    match kind {
        FieldKind::Table(table) | FieldKind::Tables(table) => vec![table],
        FieldKind::List(kind) | FieldKind::Map(kind) => tables_of(kind),
        FieldKind::Either(first, second) => {
            let mut both = tables_of(first);
            both.extend(tables_of(second));
            both
        }
        _ => Vec::new(),
    }
}

fn section(table: &'static Table, page: &mut String) {
    if !table.name.is_empty() {
        page.push_str(&format!("## {}\n\n", capitalised(table.name)));
    }
    if !table.text.is_empty() {
        page.push_str(&format!("{}\n\n", table.text));
    }
    if let Some(variants) = table.variants {
        let default = variants.default.map_or("required".to_string(), |name| format!("default `{}`", quote(name)));
        page.push_str(&format!(
            "The key `{}` ({default}) determines which further keys apply. {}\n\n",
            variants.key, variants.text
        ));
    }
    let common: Vec<&'static Field> = table.common_fields().collect();
    rows(table, &common, page);
    if let Some(variants) = table.variants {
        for variant in variants.list {
            page.push_str(&format!("With `{} = {}`: {}\n\n", variants.key, quote(variant.name), variant.text));
            rows(table, &variant.fields().collect::<Vec<_>>(), page);
        }
    }
    for field in all_fields(table) {
        choices(field, page);
    }
}

fn rows(table: &'static Table, fields: &[&'static Field], page: &mut String) {
    if fields.is_empty() {
        return;
    }
    let defaults = table.defaults.map(|defaults| defaults());
    page.push_str("| key | type | default | meaning |\n|---|---|---|---|\n");
    for field in fields {
        let mut kind = describe_kind(&field.kind);
        if !field.unit.is_empty() {
            kind = format!("{kind}, in {}", field.unit);
        }
        let row = [format!("`{}`", field.key), kind, default_text(field, defaults.as_ref()), field.text.to_string()];
        let row: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|").replace('\n', " ")).collect();
        page.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    page.push('\n');
}

fn default_text(field: &'static Field, defaults: Option<&Tree>) -> String {
    match field.default {
        DefaultValue::Required => "required".to_string(),
        DefaultValue::Empty => "empty".to_string(),
        DefaultValue::Absent(text) => text.to_string(),
        DefaultValue::Setting => {
            let value = defaults.and_then(|defaults| defaults.get(field.key));
            let value = value.unwrap_or_else(|| panic!("the settings of the table lack the key {}", field.key));
            format!("`{}`", format_inline(Some(&field.kind), value))
        }
        DefaultValue::Value(value) | DefaultValue::Inherited(value) => match field.kind {
            FieldKind::Boolean | FieldKind::Integer { .. } | FieldKind::Number { .. } | FieldKind::List(_) => {
                format!("`{value}`")
            }
            FieldKind::Either(FieldKind::Integer { .. }, _) => format!("`{value}`"),
            _ => format!("`{}`", quote(value)),
        },
    }
}

/// Describes a kind in words, in Markdown. Tables are links to their sections.
pub fn describe_kind(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Text => "text".to_string(),
        FieldKind::Name => "name".to_string(),
        FieldKind::Boolean => "boolean".to_string(),
        FieldKind::Integer { min, max } => match (*min > i64::MIN, *max < i64::MAX) {
            (true, true) => format!("integer, {min} to {max}"),
            (true, false) => format!("integer, at least {min}"),
            (false, true) => format!("integer, at most {max}"),
            (false, false) => "integer".to_string(),
        },
        FieldKind::Number { min, max } => match (min.is_finite(), max.is_finite()) {
            (true, true) => format!("number, {min} to {max}"),
            (true, false) => format!("number, at least {min}"),
            (false, true) => format!("number, at most {max}"),
            (false, false) => "number".to_string(),
        },
        FieldKind::Duration { min, max } => {
            let above = match min.as_nanos() {
                0 => String::new(),
                1 => ", above 0".to_string(),
                _ => format!(", at least {min}"),
            };
            let below = if *max < crate::MAX_DURATION { format!(", at most {max}") } else { String::new() };
            format!("duration{above}{below}")
        }
        FieldKind::Rate => "rate".to_string(),
        FieldKind::Size { min, max } => match (*min > 1, *max < crate::MAX_SIZE) {
            (true, true) => format!("size, {} to {}", format_size(*min), format_size(*max)),
            (true, false) => format!("size, at least {}", format_size(*min)),
            (false, true) => format!("size, at most {}", format_size(*max)),
            (false, false) => "size".to_string(),
        },
        FieldKind::QueueLimit => "queue limit".to_string(),
        FieldKind::LinkQueueLimit => "queue limit or BDP".to_string(),
        FieldKind::Choice(choices) => {
            let names: Vec<String> = choices
                .iter()
                .filter(|choice| choice.available)
                .map(|choice| format!("`{}`", quote(choice.name)))
                .collect();
            names.join(", ")
        }
        FieldKind::Table(table) => format!("table: {}", link(table)),
        FieldKind::Tables(table) => format!("tables: {}", link(table)),
        FieldKind::List(kind) => format!("list of {}", describe_kind(kind)),
        FieldKind::Map(kind) => format!("names, each with {}", describe_kind(kind)),
        FieldKind::Either(first, second) => format!("{}; or {}", describe_kind(first), describe_kind(second)),
        FieldKind::Raw => "any value".to_string(),
    }
}

fn link(table: &Table) -> String {
    format!("[{}](#{})", table.name, table.name.to_lowercase().replace(' ', "-"))
}

fn choices(field: &Field, page: &mut String) {
    let list = match &field.kind {
        FieldKind::Choice(list) | FieldKind::List(FieldKind::Choice(list)) => list,
        _ => return,
    };
    let described: Vec<_> = list.iter().filter(|choice| choice.available && !choice.text.is_empty()).collect();
    if described.is_empty() {
        return;
    }
    page.push_str(&format!("Values of `{}`:\n\n", field.key));
    for choice in described {
        page.push_str(&format!("- `{}`: {}\n", quote(choice.name), choice.text));
    }
    page.push('\n');
}

fn capitalised(text: &str) -> String {
    // Names of protocols are written in uppercase letters.
    if ["tcp", "udp", "arp", "quic"].contains(&text) {
        return text.to_uppercase();
    }
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
