//! The JSON Schema of a declared file format. Editors use it for completion, hover texts and checks of a TOML file.
//!
//! The schema accepts every file that [`load`](crate::load) accepts. It also accepts some files that `load` rejects,
//! because JSON Schema cannot compare two keys and cannot bound quantities such as `"10ms"`.
//!
//! Draft 7 (<https://json-schema.org/draft-07>) is the version that taplo, the TOML tool of most editors, supports
//! best. Each table is a definition. A table with variants has the keys of all variants. For each variant a condition
//! excludes the keys of the other variants, so that an error is reported at the key and not at the table.

use crate::quantity;
use crate::tree::{Tree, ValueData};
use crate::walk::parse_default;
use crate::{Choice, DefaultValue, Field, FieldKind, MAX_LIST_LENGTH, Table, Variants};
use fullpipe_units::Duration;
use serde_json::{Map, Value, json};

/// Returns the JSON Schema of a file, with this title and description.
pub fn json_schema(root: &'static Table, title: &str, description: &str) -> Value {
    let mut tables = Tables { known: vec![(root, String::new())] };
    let mut definitions = Map::new();
    let mut schema = Map::new();
    schema.insert("$schema".into(), json!("http://json-schema.org/draft-07/schema#"));
    schema.insert("title".into(), json!(title));
    schema.extend(table_schema(root, &mut tables));
    schema.insert("description".into(), json!(description));
    let mut next = 1;
    while next < tables.known.len() {
        let (table, name) = tables.known[next].clone();
        definitions.insert(name, Value::Object(table_schema(table, &mut tables)));
        next += 1;
    }
    schema.insert("definitions".into(), Value::Object(definitions));
    Value::Object(schema)
}

/// The tables that have a definition, in the order of first mention.
struct Tables {
    known: Vec<(&'static Table, String)>,
}

impl Tables {
    /// Returns a reference to the definition of a table.
    fn reference(&mut self, table: &'static Table) -> Value {
        let known = self.known.iter().find(|(known, _)| std::ptr::eq(*known, table)).map(|(_, name)| name.clone());
        let name = known.unwrap_or_else(|| {
            let base = table.name.replace(' ', "-");
            // Two tables can have the same name.
            let taken = |name: &String| self.known.iter().any(|(_, known)| known == name);
            let numbered = (2..).map(|number| format!("{base}-{number}"));
            let name = std::iter::once(base.clone()).chain(numbered).find(|name| !taken(name)).unwrap_or(base);
            self.known.push((table, name.clone()));
            name
        });
        json!({ "$ref": format!("#/definitions/{name}") })
    }
}

fn table_schema(table: &'static Table, tables: &mut Tables) -> Map<String, Value> {
    let defaults = table.defaults.map(|defaults| defaults());
    let mut properties = Map::new();
    if let Some(variants) = table.variants {
        properties.insert(variants.key.into(), variant_key(variants));
    }
    for field in table.common_fields() {
        let schema = field_schema(field, defaults.as_ref(), tables);
        add_field(field, schema, &mut properties);
    }
    let mut conditions = Vec::new();
    if let Some(variants) = table.variants {
        let fields = || variants.list.iter().flat_map(|variant| variant.fields());
        for field in fields() {
            if properties.contains_key(field.key) {
                add_former(field, &mut properties);
                continue;
            }
            let kind = kind_schema(&field.kind, tables);
            let same: Vec<&'static Field> = fields().filter(|other| other.key == field.key).collect();
            let is_one_kind = same.iter().all(|other| kind_schema(&other.kind, tables) == kind);
            // The conditions below contain the kind in each variant. A kind here would hide their errors.
            let schema = match is_one_kind {
                true => field_schema(field, defaults.as_ref(), tables),
                false => json!({ "description": same.iter().map(|other| other.text).collect::<Vec<_>>().join(" ") }),
            };
            add_field(field, schema, &mut properties);
        }
        conditions = variants.list.iter().map(|variant| condition(variants, variant.name, tables)).collect();
    }
    let mut required: Vec<Value> =
        table.common_fields().filter(|field| is_required(field)).map(|field| json!(field.key)).collect();
    if let Some(variants) = table.variants.filter(|variants| variants.default.is_none()) {
        required.push(json!(variants.key));
    }
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    if !table.text.is_empty() {
        schema.insert("description".into(), json!(table.text));
    }
    schema.insert("properties".into(), Value::Object(properties));
    schema.insert("additionalProperties".into(), json!(false));
    if !required.is_empty() {
        schema.insert("required".into(), Value::Array(required));
    }
    if !conditions.is_empty() {
        schema.insert("allOf".into(), Value::Array(conditions));
    }
    schema
}

/// Adds a field with its key and its former keys.
fn add_field(field: &'static Field, schema: Value, properties: &mut Map<String, Value>) {
    properties.insert(field.key.into(), schema);
    add_former(field, properties);
}

/// Adds the former keys of a field. They accept any value, because each has its own conversion of values.
fn add_former(field: &'static Field, properties: &mut Map<String, Value>) {
    for former in field.former {
        let text = format!("Former spelling of `{}`.", field.key);
        properties.insert(former.key.into(), json!({ "description": text, "deprecated": true }));
    }
}

fn is_required(field: &Field) -> bool {
    matches!(field.default, DefaultValue::Required) && field.former.is_empty()
}

/// Returns the schema of the key that selects a variant.
fn variant_key(variants: &'static Variants) -> Value {
    let choices: Vec<Choice> = variants.list.iter().map(|variant| Choice::new(variant.name, variant.text)).collect();
    let mut schema = choice(&choices);
    schema.insert("description".into(), json!(variants.text));
    if let Some(default) = variants.default {
        schema.insert("default".into(), json!(default));
    }
    Value::Object(schema)
}

/// Returns the condition if a variant is selected: its keys have its kinds, and keys of other variants are absent.
fn condition(variants: &'static Variants, name: &str, tables: &mut Tables) -> Value {
    let mut selected = json!({ "properties": { variants.key: { "const": name } } });
    // If the key is absent, the default is selected.
    if variants.default != Some(name) {
        selected["required"] = json!([variants.key]);
    }
    let own: Vec<&'static Field> = variants.find(name).into_iter().flat_map(|variant| variant.fields()).collect();
    let mut properties = Map::new();
    for field in &own {
        properties.insert(field.key.into(), kind_schema(&field.kind, tables));
    }
    for field in variants.list.iter().flat_map(|variant| variant.fields()) {
        let keys = std::iter::once(field.key).chain(field.former.iter().map(|former| former.key));
        for key in keys.filter(|key| !own.iter().any(|own| own.is_named(key))) {
            properties.entry(key).or_insert(json!(false));
        }
    }
    let required: Vec<&str> = own.iter().filter(|field| is_required(field)).map(|field| field.key).collect();
    let mut then = Map::new();
    then.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        then.insert("required".into(), json!(required));
    }
    json!({ "if": selected, "then": then })
}

fn field_schema(field: &'static Field, defaults: Option<&Tree>, tables: &mut Tables) -> Value {
    let mut text = field.text.to_owned();
    if !field.unit.is_empty() {
        text += &format!(" In {}.", field.unit);
    }
    let mut default = None;
    match field.default {
        DefaultValue::Absent(effect) => text += &format!(" Default: {effect}."),
        DefaultValue::Value(value) | DefaultValue::Inherited(value) => {
            default = to_json(&parse_default(&field.kind, value))
        }
        DefaultValue::Setting => {
            default = defaults.and_then(|defaults| defaults.get(field.key)).and_then(|value| to_json(&value.data));
        }
        DefaultValue::Required | DefaultValue::Empty => {}
    }
    let schema = kind_schema(&field.kind, tables);
    let mut schema = match schema {
        // Draft 7 ignores the siblings of a reference.
        Value::Object(schema) if schema.contains_key("$ref") => {
            let mut around = Map::new();
            around.insert("allOf".into(), json!([schema]));
            around
        }
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    schema.insert("description".into(), json!(text));
    if let Some(default) = default {
        schema.insert("default".into(), default);
    }
    Value::Object(schema)
}

/// Returns a default in the form of a value in a file.
fn to_json(data: &ValueData) -> Option<Value> {
    Some(match data {
        ValueData::Text(text) => json!(text),
        ValueData::Boolean(boolean) => json!(boolean),
        ValueData::Integer(number) => json!(number),
        ValueData::Number(number) => json!(number),
        ValueData::Duration(duration) => json!(duration.to_string()),
        ValueData::Rate(rate) => json!(rate.to_string()),
        ValueData::Size(bytes) => json!(quantity::format_size(*bytes)),
        ValueData::QueueLimit(limit) => json!(quantity::format_queue_limit(*limit)),
        ValueData::LinkQueueLimit(limit) => json!(quantity::format_link_queue_limit(*limit)),
        ValueData::Choice(name) => json!(name),
        ValueData::List(list) => Value::Array(list.iter().map(|value| to_json(&value.data)).collect::<Option<_>>()?),
        ValueData::Table(_) | ValueData::Tables(_) | ValueData::Map(_) | ValueData::Raw(_) => return None,
    })
}

fn kind_schema(kind: &'static FieldKind, tables: &mut Tables) -> Value {
    match kind {
        FieldKind::Text => json!({ "type": "string" }),
        FieldKind::Name => json!({ "type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$" }),
        FieldKind::Boolean => json!({ "type": "boolean" }),
        FieldKind::Integer { min, max } => {
            let mut schema = json!({ "type": "integer" });
            if *min > i64::MIN {
                schema["minimum"] = json!(min);
            }
            if *max < i64::MAX {
                schema["maximum"] = json!(max);
            }
            schema
        }
        FieldKind::Number { min, max } => {
            let mut schema = json!({ "type": "number" });
            if min.is_finite() {
                schema["minimum"] = json!(min);
            }
            if max.is_finite() {
                schema["maximum"] = json!(max);
            }
            schema
        }
        FieldKind::Duration { min, .. } => {
            let mut schema = json!({ "type": "string", "pattern": quantity::duration_pattern() });
            if *min > Duration::ZERO {
                // A duration above zero contains a digit above zero.
                schema["allOf"] = json!([{ "pattern": "[1-9]" }]);
            }
            schema
        }
        FieldKind::Rate => json!({ "type": "string", "pattern": quantity::rate_pattern() }),
        // The bounds apply to an integer, the pattern to a text.
        FieldKind::Size { min, max } => {
            json!({ "type": ["string", "integer"], "pattern": quantity::size_pattern(), "minimum": min, "maximum": max })
        }
        FieldKind::QueueLimit => json!({ "type": "string", "pattern": quantity::queue_limit_pattern() }),
        FieldKind::LinkQueueLimit => json!({ "type": "string", "pattern": quantity::link_queue_limit_pattern() }),
        FieldKind::Choice(choices) => {
            let available: Vec<Choice> = choices.iter().copied().filter(|choice| choice.available).collect();
            Value::Object(choice(&available))
        }
        FieldKind::Table(table) => tables.reference(table),
        FieldKind::Tables(table) => {
            json!({ "type": "array", "items": tables.reference(table), "maxItems": MAX_LIST_LENGTH })
        }
        FieldKind::List(kind) => {
            json!({ "type": "array", "items": kind_schema(kind, tables), "maxItems": MAX_LIST_LENGTH })
        }
        FieldKind::Map(kind) => json!({ "type": "object", "additionalProperties": kind_schema(kind, tables) }),
        FieldKind::Either(first, second) => {
            json!({ "anyOf": [kind_schema(first, tables), kind_schema(second, tables)] })
        }
        FieldKind::Raw => json!({}),
    }
}

/// Returns the names of a choice, each with its text in the form that editors show.
fn choice(choices: &[Choice]) -> Map<String, Value> {
    let names: Vec<&str> = choices.iter().map(|choice| choice.name).collect();
    let texts: Vec<&str> = choices.iter().map(|choice| choice.text).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), json!("string"));
    schema.insert("enum".into(), json!(names));
    if texts.iter().any(|text| !text.is_empty()) {
        schema.insert("x-taplo".into(), json!({ "docs": { "enumValues": texts } }));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FormerKey, NodeContent, Variant, keys};

    static PART: Table = Table {
        name: "part",
        text: "A part.",
        fields: &[keys! {
            /// Its name.
            "name": FieldKind::Name, required;
        }],
        variants: Some(&Variants {
            key: "kind",
            default: Some("plain"),
            text: "The kind.",
            list: &[
                Variant::new("plain", "nothing more.", &[]),
                Variant::new(
                    "timed",
                    "with a time.",
                    &[keys! {
                        /// The time.
                        "value": FieldKind::INTERVAL, required;
                    }],
                ),
                Variant::new(
                    "sized",
                    "with a size.",
                    &[keys! {
                        /// The size.
                        "value": FieldKind::SIZE, default "5kB";
                    }],
                ),
            ],
            later: &[],
        }),
        ..Table::EMPTY
    };
    static FILE: Table = Table {
        fields: &[keys! {
            /// Parts.
            "part": FieldKind::Tables(&PART), empty;
            /// The best part.
            "best": FieldKind::Table(&PART), optional "none";
            Field::default("share", FieldKind::PROBABILITY, "0.5", "A share.").with_former_keys(FORMER);
        }],
        ..Table::EMPTY
    };
    const FORMER: &[FormerKey] = &[FormerKey { key: "part_of_all", value: NodeContent::clone }];

    #[test]
    fn schema_has_tables_as_definitions_and_variants_as_conditions() {
        let schema = json_schema(&FILE, "T", "D");
        assert_eq!(schema["properties"]["part"]["items"]["$ref"], "#/definitions/part");
        assert_eq!(schema["properties"]["best"]["allOf"][0]["$ref"], "#/definitions/part");
        assert_eq!(schema["properties"]["best"]["description"], "The best part. Default: none.");
        assert_eq!(schema["properties"]["share"]["default"], 0.5);
        assert_eq!(schema["properties"]["part_of_all"]["deprecated"], true);
        assert_eq!(schema["additionalProperties"], false);
        let part = &schema["definitions"]["part"];
        assert_eq!(part["required"], json!(["name"]));
        assert_eq!(part["properties"]["kind"]["enum"], json!(["plain", "timed", "sized"]));
        // A duration or a size, depending on the conditions.
        assert_eq!(part["properties"]["value"], json!({ "description": "The time. The size." }));
        let [plain, timed, sized] = [0, 1, 2].map(|number| &part["allOf"][number]);
        // If `kind` is absent, the condition of the default applies.
        assert_eq!(plain["if"], json!({ "properties": { "kind": { "const": "plain" } } }));
        assert_eq!(plain["then"]["properties"]["value"], false);
        assert_eq!(timed["if"]["required"], json!(["kind"]));
        assert_eq!(timed["then"]["required"], json!(["value"]));
        assert_eq!(timed["then"]["properties"]["value"]["type"], "string");
        assert_eq!(sized["then"]["properties"]["value"]["type"], json!(["string", "integer"]));
        assert_eq!(sized["then"]["required"], Value::Null);
    }
}
