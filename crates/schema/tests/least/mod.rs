//! The minimal keys with which a file selects a component, for tests that iterate over a catalogue. Tests of several
//! crates include this file.

use fullpipe_schema::component::Declaration;
use fullpipe_schema::{DefaultValue, Field, FieldKind, Table, Variant};

/// Keys that a component needs in addition to the required ones.
const FURTHER: [(&str, &str); 1] = [("constant-rate", "interval = '10ms'")];

/// TOML lines in which `key` selects the component. For a required choice there is one text for each value.
pub(crate) fn texts(key: &str, component: &Declaration) -> Vec<String> {
    let further = FURTHER.iter().find(|(of, _)| *of == component.name).map(|(_, line)| line.to_string());
    let mut texts = vec![vec![format!("{key} = '{}'", component.name)]];
    texts[0].extend(further);
    for field in component.fields.iter().flat_map(|group| group.iter()).filter(|field| is_required(field)) {
        let with = |text: &Vec<String>, value: &String| [&text[..], &[format!("{} = {value}", field.key)]].concat();
        let values = values(field);
        texts = texts.iter().flat_map(|text| values.iter().map(move |value| with(text, value))).collect();
    }
    texts.into_iter().map(|lines| lines.join("\n") + "\n").collect()
}

fn is_required(field: &Field) -> bool {
    matches!(field.default, DefaultValue::Required)
}

/// Valid values of a key: all names of a choice, otherwise one value.
fn values(field: &Field) -> Vec<String> {
    match field.kind {
        FieldKind::Choice(choices) => choices.iter().map(|choice| format!("'{}'", choice.name)).collect(),
        kind => vec![value(&kind)],
    }
}

fn value(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Either(first, _) => value(first),
        FieldKind::Size { .. } => "1000".to_owned(),
        FieldKind::Duration { .. } => "'10ms'".to_owned(),
        FieldKind::Rate => "'100kbit/s'".to_owned(),
        FieldKind::QueueLimit | FieldKind::LinkQueueLimit => "'50packets'".to_owned(),
        FieldKind::Integer { min, .. } => min.to_string(),
        FieldKind::List(kind) => format!("[{}]", value(kind)),
        FieldKind::Tables(table) => format!("[{}]", table_with_least(table)),
        other => panic!("no value for {other:?}"),
    }
}

/// A table with the first variant that has keys, if the table has variants.
fn table_with_least(table: &Table) -> String {
    let variant = table.variants.and_then(|variants| {
        let with = |variant: &&Variant, required: bool| variant.fields().any(|field| !required || is_required(field));
        let required = variants.list.iter().find(|variant| with(variant, true));
        let with_keys = required.or_else(|| variants.list.iter().find(|variant| with(variant, false)))?;
        Some((variants.key, with_keys))
    });
    let named = variant.map(|(key, variant)| format!("{key} = '{}'", variant.name));
    let fields = table.common_fields().chain(variant.into_iter().flat_map(|(_, variant)| variant.fields()));
    let pairs =
        fields.filter(|field| is_required(field)).map(|field| format!("{} = {}", field.key, value(&field.kind)));
    format!("{{ {} }}", named.into_iter().chain(pairs).collect::<Vec<_>>().join(", "))
}
