//! The fewest keys with which a flow names a workload, for tests that go through the catalogue.

use fullpipe_schema::{Default, Field, Kind};
use fullpipe_workload::WorkloadComponent;

/// What a workload needs besides the keys that must be given.
const FURTHER: [(&str, &str); 1] = [("constant-rate", "interval = '10ms'\n")];

/// Lines of TOML for a flow with this workload: one text for each value of a choice that must be made.
pub(crate) fn flows(component: &WorkloadComponent) -> Vec<String> {
    let name = component.declaration.name;
    let further = FURTHER.iter().find(|(of, _)| *of == name).map_or("", |(_, line)| line);
    let mut texts = vec![format!("workload = '{name}'\n{further}")];
    for field in component.declaration.fields.iter().flat_map(|group| group.iter()) {
        if matches!(field.default, Default::Required) {
            let with = |text: &String, value: &String| format!("{text}{} = {value}\n", field.key);
            let values = values(field);
            texts = texts.iter().flat_map(|text| values.iter().map(move |value| with(text, value))).collect();
        }
    }
    texts
}

/// Values that a key can have: all names of a choice, else one.
fn values(field: &Field) -> Vec<String> {
    match field.kind {
        Kind::Choice(choices) => choices.iter().map(|choice| format!("'{}'", choice.name)).collect(),
        kind => vec![value(&kind)],
    }
}

fn value(kind: &Kind) -> String {
    match kind {
        Kind::Either(first, _) => value(first),
        Kind::Size { .. } => "1000".to_owned(),
        Kind::Duration { .. } => "'10ms'".to_owned(),
        Kind::Rate => "'100kbit/s'".to_owned(),
        Kind::Integer { min, .. } => min.to_string(),
        Kind::List(kind) => format!("[{}]", value(kind)),
        Kind::Tables(table) => {
            let keys = table.common().filter(|field| matches!(field.default, Default::Required));
            let keys: Vec<String> = keys.map(|field| format!("{} = {}", field.key, value(&field.kind))).collect();
            format!("[{{ {} }}]", keys.join(", "))
        }
        other => panic!("no value for {other:?}"),
    }
}
