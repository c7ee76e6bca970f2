//! Texts of error messages: the nearest known name, and lists.

use fullpipe_scenario::schema::nearest_name;

/// Returns " (did you mean `NAME`?)" for the known name nearest to `found`, or an empty text if none is near.
pub(crate) fn suggestion<'a>(found: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest_name(found, known).map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default()
}

/// Lists the names in one line; returns "nothing" if there are none.
pub(crate) fn list_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}
