//! Tests `fullpipe schema`: the JSON Schemas of scenario and study files. `.ci/schema` checks with taplo which files
//! they accept.

use fullpipe::archive::STUDY;
use fullpipe::scenario::{root_table, schema};
use serde_json::Value;
use std::process::Command;

fn fullpipe(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_fullpipe")).args(arguments).output().expect("the command starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// Collects the references to definitions below a value.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn schema_prints_every_key_of_the_declaration() {
    for (arguments, table) in [(&["schema"][..], root_table()), (&["schema", "study"], &STUDY)] {
        let (status, printed, errors) = fullpipe(arguments);
        assert_eq!((status, errors.as_str()), (Some(0), ""), "{arguments:?}");
        let schema: Value = serde_json::from_str(&printed).expect("JSON and nothing else");
        assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
        for field in table.common_fields() {
            assert!(schema["properties"][field.key]["description"].is_string(), "{}", field.key);
        }
        let mut found = Vec::new();
        references(&schema, &mut found);
        assert!(found.len() > 10, "{found:?}");
        for reference in found {
            let name = reference.strip_prefix("#/definitions/").expect("a definition");
            assert!(schema["definitions"][name].is_object(), "{reference}");
        }
    }
    let (status, _, errors) = fullpipe(&["schema", "studies"]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("study"), "{errors}");
}

/// A choice lists its names with their texts. A key has its default, unit and former spelling.
#[test]
fn keys_have_types_choices_defaults_and_texts() {
    let schema = schema::json_schema(root_table(), "", "");
    let flow = &schema["definitions"]["flow"];
    assert_eq!(schema["properties"]["flow"]["items"]["$ref"], "#/definitions/flow");
    assert_eq!(flow["required"], serde_json::json!(["from", "to"]));
    let controls = flow["properties"]["congestion"]["enum"].as_array().expect("names");
    assert!(controls.contains(&"cubic".into()), "{controls:?}");
    assert_eq!(schema["properties"]["duration"]["default"], "60s");
    let discipline = schema["definitions"]["discipline"]["properties"].as_object().expect("keys");
    assert_eq!(discipline["limit_packets"]["deprecated"], true);
    let link = &schema["definitions"]["topology-link"];
    assert_eq!(link["required"], serde_json::Value::Null, "a trace has its own rate and delay");
}
