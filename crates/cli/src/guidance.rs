//! Messages about options that are keys of scenarios.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use fullpipe::scenario;
use fullpipe::scenario::schema::FieldKind;
use std::env;

/// Returns the message about an unknown option of `run` or `study run` that is a key of a scenario file, such as
/// `--duration 10`. `None` for any other error.
pub(crate) fn unknown_option(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    // `env::args` panics if an argument is not Unicode.
    let arguments: Vec<String> = env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect();
    let path = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["run", ..] => "",
        ["study", "run", ..] => "scenario.",
        _ => return None,
    };
    let key = option.trim_start_matches('-').replace('-', "_");
    let field = scenario::root_table().common_fields().find(|field| field.key == key)?;
    let at = arguments.iter().position(|argument| argument.split('=').next() == Some(option))?;
    let value = arguments[at].split_once('=').map(|(_, value)| value.to_owned());
    let value = value.or_else(|| arguments.get(at + 1).filter(|next| !next.starts_with('-')).cloned());
    let value = match (value, &field.kind) {
        (Some(value), FieldKind::Duration { .. }) if value.parse::<f64>().is_ok() => format!("{value}s"),
        (Some(value), _) => value,
        (None, _) => "VALUE".to_owned(),
    };
    Some(format!("unknown option {option}; `{key}` is a key of the scenario: use `--set {path}{key}={value}`"))
}
