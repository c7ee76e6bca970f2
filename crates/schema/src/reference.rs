//! The reference page of a schema, in Markdown.

use crate::node::quote;
use crate::quantity::format_size;
use crate::resolve::one_line;
use crate::tree::Tree;
use crate::{Default, Field, Kind, Table};

/// The reference page with one section for each table of the schema, in order of first mention. The first section is
/// the file itself.
pub fn reference(schema: &'static Table) -> String {
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
    let mut fields: Vec<&'static Field> = table.common().collect();
    if let Some(variants) = table.variants {
        fields.extend(variants.list.iter().flat_map(|variant| variant.fields()));
    }
    fields
}

fn tables_of(kind: &Kind) -> Vec<&'static Table> {
    match kind {
        Kind::Table(table) | Kind::Tables(table) => vec![table],
        Kind::List(kind) | Kind::Map(kind) => tables_of(kind),
        Kind::Either(first, second) => {
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
        let default =
            variants.default.map_or("it must be given".to_string(), |name| format!("default `{}`", quote(name)));
        page.push_str(&format!(
            "The key `{}` decides about further keys ({default}). {}\n\n",
            variants.key, variants.text
        ));
    }
    let common: Vec<&'static Field> = table.common().collect();
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
        let mut kind = kind_text(&field.kind);
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
        Default::Required => "required".to_string(),
        Default::Empty => "empty".to_string(),
        Default::Absent(text) => text.to_string(),
        Default::Setting => {
            let value = defaults.and_then(|defaults| defaults.get(field.key));
            let value = value.unwrap_or_else(|| panic!("the settings of the table lack the key {}", field.key));
            format!("`{}`", one_line(Some(&field.kind), value))
        }
        Default::Value(value) | Default::Inherited(value) => match field.kind {
            Kind::Boolean | Kind::Integer { .. } | Kind::Number { .. } | Kind::List(_) => format!("`{value}`"),
            Kind::Either(Kind::Integer { .. }, _) => format!("`{value}`"),
            _ => format!("`{}`", quote(value)),
        },
    }
}

/// A kind in words, in Markdown. Tables are links to their sections.
pub fn kind_text(kind: &Kind) -> String {
    match kind {
        Kind::Text => "text".to_string(),
        Kind::Name => "name".to_string(),
        Kind::Boolean => "boolean".to_string(),
        Kind::Integer { min, max } => match (*min > i64::MIN, *max < i64::MAX) {
            (true, true) => format!("integer, {min} to {max}"),
            (true, false) => format!("integer, at least {min}"),
            (false, true) => format!("integer, at most {max}"),
            (false, false) => "integer".to_string(),
        },
        Kind::Number { min, max } => match (min.is_finite(), max.is_finite()) {
            (true, true) => format!("number, {min} to {max}"),
            (true, false) => format!("number, at least {min}"),
            (false, true) => format!("number, at most {max}"),
            (false, false) => "number".to_string(),
        },
        Kind::Duration { min, max } => {
            let above = match min.as_nanos() {
                0 => String::new(),
                1 => ", above 0".to_string(),
                _ => format!(", at least {min}"),
            };
            let below = if *max < crate::LONGEST { format!(", at most {max}") } else { String::new() };
            format!("duration{above}{below}")
        }
        Kind::Rate => "rate".to_string(),
        Kind::Size { min, max } => match (*min > 1, *max < crate::LARGEST) {
            (true, true) => format!("size, {} to {}", format_size(*min), format_size(*max)),
            (true, false) => format!("size, at least {}", format_size(*min)),
            (false, true) => format!("size, at most {}", format_size(*max)),
            (false, false) => "size".to_string(),
        },
        Kind::QueueLimit => "queue limit".to_string(),
        Kind::LinkQueueLimit => "queue limit or BDP".to_string(),
        Kind::Choice(choices) => {
            let names: Vec<String> = choices
                .iter()
                .filter(|choice| choice.available)
                .map(|choice| format!("`{}`", quote(choice.name)))
                .collect();
            names.join(", ")
        }
        Kind::Table(table) => format!("table: {}", link(table)),
        Kind::Tables(table) => format!("tables: {}", link(table)),
        Kind::List(kind) => format!("list of {}", kind_text(kind)),
        Kind::Map(kind) => format!("names, each with {}", kind_text(kind)),
        Kind::Either(first, second) => format!("{}; or {}", kind_text(first), kind_text(second)),
        Kind::Raw => "any value".to_string(),
    }
}

fn link(table: &Table) -> String {
    format!("[{}](#{})", table.name, table.name.to_lowercase().replace(' ', "-"))
}

fn choices(field: &Field, page: &mut String) {
    let list = match &field.kind {
        Kind::Choice(list) | Kind::List(Kind::Choice(list)) => list,
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
    // Names of protocols are written in capital letters.
    if ["tcp", "udp", "arp", "quic"].contains(&text) {
        return text.to_uppercase();
    }
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
