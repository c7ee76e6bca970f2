//! Tests the keys of transports: each key sets its own field only, has a unique name, and settings are unchanged after
//! they are written and read.

use fullpipe_schema::component::SettingsReader;
use fullpipe_schema::settings::{FieldAccess, SettingKey, SettingsTable, fields};
use fullpipe_schema::{
    Diagnostics, Field, FieldKind, LoadedFile, SourceLocation, Table, Tree, Value, ValueData, at, load, resolved_toml,
};
use fullpipe_transport::tunnel;
use fullpipe_units::{Duration, QueueLimit};
use std::fmt::Debug;
use {fullpipe_quic as quic, fullpipe_tcp as tcp};

/// Writes these settings as a file and reads them again, then sets each key to another value. Returns the first fault.
fn verify<S: Default + PartialEq + Debug>(of: &SettingsTable<S>, settings: &S) -> Result<(), String> {
    let usual = of.write(settings);
    let text = resolved_toml(of.table, &usual);
    let LoadedFile { root, sources, .. } = load(of.table, &text, "file", &[]).map_err(|errors| errors.to_string())?;
    let read = |tree: &Tree| {
        let mut check = Diagnostics::new(&sources);
        of.read(&mut SettingsReader { tree, path: "", check: &mut check }).expect("the keys are consistent")
    };
    let again = read(&root);
    if again != *settings {
        return Err(format!("{settings:?} were written as\n{text}and read as {again:?}"));
    }
    let mut seen = Vec::new();
    for field in of.keys.iter().flat_map(|keys| keys.fields()) {
        if seen.contains(&field.key) {
            return Err(format!("there are two keys {}", field.key));
        }
        seen.push(field.key);
        let mut tree = usual.clone();
        let data = another(&field.kind, usual.get(field.key).map(|value| &value.data));
        tree.set(field.key, Value { data, place: SourceLocation::default(), given: true });
        let changed = read(&tree);
        if changed == *settings {
            return Err(format!("{} sets nothing", field.key));
        }
        if of.write(&changed) != tree {
            return Err(format!("{} sets the field of another key", field.key));
        }
    }
    Ok(())
}

/// A value of this kind that differs from the given one.
fn another(kind: &FieldKind, usual: Option<&ValueData>) -> ValueData {
    let next = |value: u64, min: u64, max: u64| if value < max { value + 1 } else { min };
    match (kind, usual) {
        (FieldKind::Boolean, usual) => ValueData::Boolean(usual != Some(&ValueData::Boolean(true))),
        (FieldKind::Integer { min, .. }, None) => ValueData::Integer(*min),
        (FieldKind::Integer { min, max }, Some(ValueData::Integer(value))) => {
            ValueData::Integer(if value < max { value + 1 } else { *min })
        }
        (FieldKind::Size { min, .. }, None) => ValueData::Size(*min),
        (FieldKind::Size { min, max }, Some(ValueData::Size(value))) => ValueData::Size(next(*value, *min, *max)),
        (FieldKind::Duration { min, .. }, None) => ValueData::Duration(*min),
        (FieldKind::Duration { min, max }, Some(ValueData::Duration(value))) => {
            ValueData::Duration(Duration::from_nanos(next(value.as_nanos(), min.as_nanos(), max.as_nanos())))
        }
        (FieldKind::QueueLimit, usual) => {
            let limit = ValueData::QueueLimit(QueueLimit::Bytes(1000));
            if usual == Some(&limit) { ValueData::QueueLimit(QueueLimit::Unlimited) } else { limit }
        }
        (FieldKind::Choice(list), usual) => {
            let names = list.iter().filter(|choice| choice.available).map(|choice| ValueData::Choice(choice.name));
            names.into_iter().find(|name| usual != Some(name)).expect("the key has at least two names")
        }
        (FieldKind::Either(first, _), usual) => another(first, usual),
        (kind, usual) => panic!("no other value of {kind:?} than {usual:?}"),
    }
}

#[test]
fn each_key_of_tcp_sets_its_own_field() {
    for preset in [tcp::Settings::linux(), tcp::Settings::ns3()] {
        assert_eq!(verify(&tcp::settings::SETTINGS, &preset), Ok(()));
    }
}

#[test]
fn each_key_of_quic_sets_its_own_field() {
    assert_eq!(verify(&quic::settings::SETTINGS, &quic::Settings::default()), Ok(()));
}

#[test]
fn each_key_of_a_tunnel_sets_its_own_field() {
    assert_eq!(verify(&tunnel::SETTINGS, &tunnel::Settings::default()), Ok(()));
}

#[derive(Debug, Default, PartialEq)]
struct Two {
    one: bool,
    other: bool,
}

const fn key(name: &'static str, access: FieldAccess<Two>) -> SettingKey<Two> {
    SettingKey::setting(name, FieldKind::Boolean, "", access)
}

/// A declaration with a mistake, in a table.
macro_rules! mistaken {
    ($one:expr, $other:expr) => {{
        static KEYS: [SettingKey<Two>; 2] = [$one, $other];
        static FIELDS: [Field; 2] = fields(&KEYS);
        static TABLE: Table = Table { name: "two", fields: &[&FIELDS], ..Table::EMPTY };
        static SETTINGS: SettingsTable<Two> = SettingsTable { table: &TABLE, keys: &[&KEYS] };
        verify(&SETTINGS, &Two::default())
    }};
}

#[test]
fn verify_detects_a_mistake_in_a_declaration() {
    assert_eq!(mistaken!(key("one", at!(one)), key("other", at!(other))), Ok(()));
    let twice = mistaken!(key("one", at!(one)), key("one", at!(other)));
    assert!(twice.is_err(), "{twice:?}");
    // The second key overwrites the value of the first key.
    let same = mistaken!(key("one", at!(one)), key("other", at!(one)));
    assert_eq!(same, Err("one sets nothing".to_string()));
    let ignored = mistaken!(
        key("one", at!(one)),
        key("other", FieldAccess { get: |_, _| Some(ValueData::Boolean(false)), set: |_, _| {} })
    );
    assert_eq!(ignored, Err("other sets nothing".to_string()));
}
