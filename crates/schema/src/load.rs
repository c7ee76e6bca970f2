//! Reads a file and its overrides, and checks them against a schema.

use crate::Table;
use crate::error::{Error, Errors, Hint};
use crate::node::{Node, Override, SourceLocation, Sources, quote};
use crate::overrides;
use crate::tree::Tree;
use crate::walk::{KeyPath, Walker, is_name};
use toml_edit::Document;

/// A checked file.
#[derive(Clone, Debug)]
pub struct LoadedFile {
    /// The values in the file and their defaults.
    pub root: Tree,
    /// The source texts to which the places in `root` refer, for the errors of later checks.
    pub sources: Sources,
    /// Advice about spellings that are accepted but outdated, in the order of the file's tables.
    pub hints: Vec<Hint>,
}

/// A file longer than this is rejected before it is parsed.
const LONGEST_FILE: usize = 256 << 20;

/// Parses a file without a schema. `file` is its name in errors.
///
/// # Errors
/// The first error if the file is not valid TOML, or if it has more than 256 MiB.
///
/// # Examples
///
/// ```
/// let (root, _) = fullpipe_schema::parse("rate = \"10Mbit/s\"", "a.toml").expect("it is TOML");
/// assert_eq!(root.get("rate").and_then(|rate| rate.as_text()), Some("10Mbit/s"));
/// let error = fullpipe_schema::parse("rate = ", "a.toml").unwrap_err();
/// assert!(error.to_string().starts_with("a.toml:1:1: "));
/// ```
pub fn parse(text: &str, file: &str) -> Result<(Node, Sources), Errors> {
    parse_with(text, file, &[])
}

fn parse_with(text: &str, file: &str, overrides: &[Override]) -> Result<(Node, Sources), Errors> {
    if text.len() > LONGEST_FILE {
        let sources = Sources::new(file, "", &[]);
        let error =
            sources.error(SourceLocation::default(), "", "the file is too large", vec!["at most 256 MiB".into()]);
        return Err(Errors(vec![error]));
    }
    let sources = Sources::new(file, text, overrides);
    let document = Document::parse(text).map_err(|error| Errors(vec![syntax_error(&error, &sources, text)]))?;
    Ok((Node::from_document(&document), sources))
}

/// Parses a file, applies the overrides, and checks the result against a schema. `file` is the name of the file in
/// errors.
///
/// # Errors
/// At most a hundred errors, in the order of the file. If the file is not valid TOML, only the first error. A file of
/// more than 256 MiB is rejected.
pub fn load(schema: &'static Table, text: &str, file: &str, overrides: &[Override]) -> Result<LoadedFile, Errors> {
    let (mut root, sources) = parse_with(text, file, overrides)?;
    let mut errors = overrides::apply(schema, &mut root, &sources, overrides);
    let mut walker = Walker { sources: &sources, errors: Vec::new(), hints: Vec::new() };
    let tree = walker.table(schema, &root, &KeyPath::Root);
    errors.append(&mut walker.errors);
    let hints = walker.hints;
    match tree {
        Some(root) if errors.is_empty() => Ok(LoadedFile { root, sources, hints }),
        _ => Err(Errors::sorted(errors)),
    }
}

/// Returns the message about a key or a table that occurs twice, and what is accepted. The second one is at `start`. The
/// line of the first one is included if a line begins with it.
fn duplicate(text: &str, start: usize, found: &str) -> (String, Vec<String>) {
    let before = text.get(..start).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = text[line_start..].lines().next().unwrap_or_default().trim_start();
    let lines: Vec<&str> = text[..line_start].lines().map(str::trim_start).collect();
    if line.starts_with('[')
        && !line.starts_with("[[")
        && let Some(end) = line.find(']')
    {
        let header = &line[..=end];
        if let Some(first) = lines.iter().position(|other| other.starts_with(header)) {
            let message = format!("the table {header} occurs twice (first on line {})", first + 1);
            return (message, vec!["each table once".to_string()]);
        }
    }
    // A header begins another table, which can have the same key.
    let first_of_table = lines.iter().rposition(|other| other.starts_with('[')).map_or(0, |header| header + 1);
    let is_key = |other: &&str| other.strip_prefix(found).is_some_and(|rest| rest.trim_start().starts_with('='));
    let first = lines[first_of_table..].iter().position(is_key).filter(|_| line.starts_with(found));
    let first = first.map_or(String::new(), |first| format!(" (first on line {})", first_of_table + first + 1));
    (format!("the key {found} occurs twice{first}"), vec!["each key once".to_string()])
}

fn syntax_error(error: &toml_edit::TomlError, sources: &Sources, text: &str) -> Error {
    let span = error.span().unwrap_or(0..0);
    let mut start = span.start.min(text.len());
    let mut end = span.end.clamp(start, text.len());
    if text.get(start..end).is_none_or(|found| found.trim().is_empty()) {
        // The parser reports a position in blank space, so report the text before it on the line.
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let line = text[..start].rfind('\n').map_or(0, |at| at + 1);
        end = start;
        start = line + text[line..end].len() - text[line..end].trim_start().len();
    }
    let place = SourceLocation::File { start: start as u32, end: end as u32 };
    let (message, expected) = match error.message().split_once(", expected ") {
        Some((message, expected)) => (message, expected.split(", ").map(str::to_string).collect()),
        None => (error.message(), Vec::new()),
    };
    let found = sources.excerpt(place);
    let value = || vec!["a value such as 5, true or \"text\"".to_string()];
    let (message, expected) = match message {
        "duplicate key" => duplicate(text, start, &found),
        "string values must be quoted" if found.ends_with('=') => {
            (format!("invalid TOML: no value after `{found}`"), value())
        }
        "string values must be quoted" => (format!("invalid TOML: `{found}` is not a value"), value()),
        "integer number overflowed" => {
            (format!("invalid TOML: the integer {found} is too large"), vec!["a 64-bit integer".to_string()])
        }
        _ if found.is_empty() => (format!("invalid TOML: {message}"), expected),
        _ => (format!("invalid TOML: {message} at `{found}`"), expected),
    };
    let unquoted = expected.first().is_some_and(|expected| expected.starts_with("a value"));
    let mut error = sources.error(place, "", "", expected);
    error.message = message;
    if unquoted && is_name(&error.found) {
        error.suggestion = Some(quote(&error.found));
    }
    error
}
