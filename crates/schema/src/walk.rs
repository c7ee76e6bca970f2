//! Checks a file against a schema: returns a [`Tree`] of the values, or one [`Error`] for each mistake.

use crate::error::{Error, Hint, MOST_ERRORS, nearest_name};
use crate::node::{Entry, Node, NodeContent, SourceLocation, Sources};
use crate::quantity::{self, QuantityError, format_size};
use crate::tree::{NamedValue, Tree, Value, ValueData};
use crate::{Choice, DefaultValue, Field, FieldKind, MAX_DURATION, MAX_LIST_LENGTH, MAX_RATE, Table, Variant};
use fullpipe_units::{Duration, LinkQueueLimit, QueueLimit};
use std::fmt;

/// The dotted path of a value, for errors.
pub(crate) enum KeyPath<'a> {
    Root,
    Key(&'a KeyPath<'a>, &'a str),
    Index(&'a KeyPath<'a>, usize),
}

impl KeyPath<'_> {
    /// Returns the path without indices, as a table header has it: "lte.cell" for the path "lte.0.cell".
    fn header(&self) -> String {
        match self {
            KeyPath::Root => String::new(),
            KeyPath::Index(parent, _) => parent.header(),
            KeyPath::Key(parent, key) => {
                let (parent, key) = (parent.header(), crate::node::quote_key(key));
                if parent.is_empty() { key } else { format!("{parent}.{key}") }
            }
        }
    }
}

impl fmt::Display for KeyPath<'_> {
    /// Formats "flow.0.start", as `--set` accepts it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parent = match self {
            KeyPath::Root => return Ok(()),
            KeyPath::Key(parent, _) | KeyPath::Index(parent, _) => parent,
        };
        if !matches!(parent, KeyPath::Root) {
            write!(formatter, "{parent}.")?;
        }
        match self {
            KeyPath::Root => Ok(()),
            KeyPath::Key(_, key) => formatter.write_str(&crate::node::quote_key(key)),
            KeyPath::Index(_, index) => write!(formatter, "{index}"),
        }
    }
}

/// Returns a name with its indefinite article: "a link", "an ethernet".
pub(crate) fn with_article(name: &str) -> String {
    let article = if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {name}")
}

fn between<T: PartialOrd + Copy>(
    what: &str,
    [min, max]: [T; 2],
    [least, most]: [T; 2],
    text: impl Fn(T) -> String,
) -> String {
    let bounded = (min > least, max < most);
    let (min, max) = (text(min), text(max));
    match bounded {
        (true, true) => format!("{what} from {min} to {max}"),
        (true, false) => format!("{what}, at least {min}"),
        (false, true) => format!("{what}, at most {max}"),
        (false, false) => what.to_string(),
    }
}

/// Returns a duration in hours or minutes if it is a whole number of them: "1h" instead of "3600s".
fn hours(duration: Duration) -> String {
    match duration.as_nanos() / 1_000_000_000 {
        seconds if duration != Duration::from_secs(seconds) || seconds < 60 => duration.to_string(),
        seconds if seconds % 3600 == 0 => format!("{}h", seconds / 3600),
        seconds if seconds % 60 == 0 => format!("{}min", seconds / 60),
        _ => duration.to_string(),
    }
}

/// Returns an integer in TOML syntax. From seven digits on, digits are in groups of three: "1_000_000".
fn grouped(number: i64) -> String {
    let digits = number.to_string();
    if digits.trim_start_matches('-').len() < 7 {
        return digits;
    }
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) && !text.ends_with('-') {
            text.push('_');
        }
        text.push(digit);
    }
    text
}

/// Returns the values that a kind accepts at a path, in words. For a choice these are its names.
fn expected(kind: &FieldKind, path: &KeyPath) -> Vec<String> {
    let one = match kind {
        FieldKind::Text => "a string".to_string(),
        FieldKind::Name => "a name: a letter, then letters, digits, \"-\" and \"_\", at most 64 characters".to_string(),
        FieldKind::Boolean => return vec!["true".to_string(), "false".to_string()],
        FieldKind::Integer { min, max } => between("an integer", [*min, *max], [i64::MIN, i64::MAX], grouped),
        FieldKind::Number { min, max } => {
            between("a number", [*min, *max], [f64::NEG_INFINITY, f64::INFINITY], |number| number.to_string())
        }
        FieldKind::Duration { min, max } if *min == Duration::from_nanos(1) && *max == MAX_DURATION => {
            "a duration above zero such as \"10ms\"".to_string()
        }
        FieldKind::Duration { min, max } => {
            between("a duration such as \"10ms\"", [*min, *max], [Duration::ZERO, MAX_DURATION], hours)
        }
        FieldKind::Rate => "a rate such as \"100Mbit/s\"".to_string(),
        FieldKind::Size { min, max } => {
            // An example outside the bounds would mislead.
            let what = match ((*min..=*max).contains(&250_000), *min) {
                (true, 1) => "a size above zero such as \"250kB\"",
                (true, _) => "a size such as \"250kB\"",
                (false, _) => "a size",
            };
            between(what, [*min, *max], [1, crate::MAX_SIZE], format_size)
        }
        FieldKind::QueueLimit => {
            "a queue limit such as \"100packets\", \"250kB\", \"100ms\" or \"unlimited\"".to_string()
        }
        FieldKind::LinkQueueLimit => {
            "a queue limit such as \"100packets\", \"250kB\", \"100ms\", \"2BDP\" or \"unlimited\"".to_string()
        }
        FieldKind::Choice(choices) => return available(choices).map(|name| format!("\"{name}\"")).collect(),
        FieldKind::Table(table) => expected_table(table),
        FieldKind::Tables(_) => format!("[[{}]]", path.header()),
        FieldKind::List(element) => format!("an array, each element {}", expected(element, path).join(" or ")),
        FieldKind::Map(element) => format!("a table of names, each with {}", expected(element, path).join(" or ")),
        FieldKind::Either(FieldKind::Number { .. }, FieldKind::Text) => {
            return vec!["a number".to_string(), "a quantity such as \"20Mbit/s\" or \"50ms\"".to_string()];
        }
        FieldKind::Either(first, second) => {
            let mut both = expected(first, path);
            both.extend(expected(second, path));
            return both;
        }
        FieldKind::Raw => "a value".to_string(),
    };
    vec![one]
}

/// Returns a table with its keys, in words.
fn expected_table(table: &Table) -> String {
    const FEW: usize = 8;
    let keys: Vec<&str> = table
        .variants
        .iter()
        .map(|variants| variants.key)
        .chain(table.common_fields().map(|field| field.key))
        .collect();
    match keys[..] {
        [] => "a table".to_string(),
        [key] => format!("a table with the key {key}"),
        _ if keys.len() <= FEW => format!("a table with the keys {}", keys.join(", ")),
        _ => format!("a table with the keys {}, {} more", keys[..FEW].join(", "), keys.len() - FEW),
    }
}

/// Returns a value of a kind in TOML syntax, for suggestions. `None` if no value is typical.
fn example(kind: &FieldKind) -> Option<String> {
    let text = match kind {
        FieldKind::Duration { min, max } if (*min..=*max).contains(&Duration::from_millis(10)) => "10ms",
        FieldKind::Rate => "100Mbit/s",
        FieldKind::Size { min, max } if (*min..=*max).contains(&250_000) => "250kB",
        FieldKind::QueueLimit | FieldKind::LinkQueueLimit => "100packets",
        FieldKind::Either(first, _) => return example(first),
        _ => return None,
    };
    Some(crate::node::quote(text))
}

/// Returns the table that is probably meant by the name of a variant in its place, with examples of the required keys:
/// `{ kind = "fifo", limit = "100packets" }` for "fifo". `None` if a required key has no example.
fn table_of_variant(table: &Table, name: &str) -> Option<String> {
    let variants = table.variants?;
    let variant = variants.find(name)?;
    let mut pairs = vec![format!("{} = {}", variants.key, crate::node::quote(name))];
    for field in table.common_fields().chain(variant.fields()) {
        if matches!(field.default, DefaultValue::Required) {
            pairs.push(format!("{} = {}", field.key, example(&field.kind)?));
        }
    }
    Some(format!("{{ {} }}", pairs.join(", ")))
}

fn available(choices: &'static [Choice]) -> impl Iterator<Item = &'static str> {
    choices.iter().filter(|choice| choice.available).map(|choice| choice.name)
}

/// Returns whether a kind accepts the TOML type of a value.
pub(crate) fn type_fits(kind: &FieldKind, content: &NodeContent) -> bool {
    match kind {
        FieldKind::Text
        | FieldKind::Name
        | FieldKind::Choice(_)
        | FieldKind::Rate
        | FieldKind::QueueLimit
        | FieldKind::LinkQueueLimit
        | FieldKind::Duration { .. } => matches!(content, NodeContent::Text(_)),
        FieldKind::Boolean => matches!(content, NodeContent::Boolean(_)),
        FieldKind::Integer { .. } => matches!(content, NodeContent::Integer(_)),
        FieldKind::Number { .. } => matches!(content, NodeContent::Integer(_) | NodeContent::Float(_)),
        FieldKind::Size { .. } => matches!(content, NodeContent::Integer(_) | NodeContent::Text(_)),
        FieldKind::Table(_) | FieldKind::Map(_) => matches!(content, NodeContent::Table(_)),
        FieldKind::Tables(_) | FieldKind::List(_) => matches!(content, NodeContent::Array(_)),
        FieldKind::Either(first, second) => type_fits(first, content) || type_fits(second, content),
        FieldKind::Raw => true,
    }
}

pub(crate) struct Walker<'a> {
    pub(crate) sources: &'a Sources,
    pub(crate) errors: Vec<Error>,
    pub(crate) hints: Vec<Hint>,
}

impl Walker<'_> {
    fn full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    fn push(&mut self, error: Error) {
        if !self.full() {
            self.errors.push(error);
        }
    }

    /// Adds an error about a value: "PATH = X REASON".
    fn wrong(&mut self, node: &Node, path: &KeyPath, reason: &str, kind: &FieldKind, suggestion: Option<String>) {
        if self.full() {
            return;
        }
        let accepted = expected(kind, path);
        let path = path.to_string();
        let found = self.sources.excerpt(node.place);
        // Reasons are sentences that begin with "it".
        let reason = reason.strip_prefix("it ").unwrap_or(reason);
        let message = match (kind, &node.content) {
            (FieldKind::Choice(_), NodeContent::Text(_)) if reason.is_empty() => {
                format!("unknown value {found} for {path}")
            }
            (_, NodeContent::Table(_) | NodeContent::Array(_)) => format!("{path} {reason}"),
            _ if reason.is_empty() => format!("{path} = {found} is not a number with a unit"),
            _ => format!("{path} = {found} {reason}"),
        };
        let mut error = self.sources.error(node.place, &path, message, accepted);
        error.suggestion = suggestion;
        self.push(error);
    }

    fn wrong_type(&mut self, node: &Node, path: &KeyPath, kind: &FieldKind) {
        // An integer without a unit has no suggestion, because the unit is unknown. Zero is an exception: it is the
        // same in every unit.
        let suggestion = match (kind, &node.content) {
            (FieldKind::Duration { .. }, NodeContent::Integer(0)) => Some("\"0s\"".to_string()),
            (FieldKind::Boolean, NodeContent::Text(text)) => nearest_name(text, ["true", "false"]).map(str::to_string),
            (FieldKind::Tables(_), NodeContent::Table(_)) if matches!(path, KeyPath::Key(KeyPath::Root, _)) => {
                Some(format!("[[{path}]]"))
            }
            (FieldKind::Number { min, max }, NodeContent::Text(text)) => {
                let number = percentage(text).filter(|_| *max <= 1.0).or_else(|| text.trim().parse().ok());
                number
                    .filter(|number| number.is_finite() && within(number, min, max).is_ok())
                    .map(|number| number.to_string())
            }
            // A name instead of the table that it selects.
            (FieldKind::Table(table), NodeContent::Text(text)) => {
                table_of_variant(table, text).or_else(|| table_with_number(table, &node.content))
            }
            (FieldKind::Table(table), content) => table_with_number(table, content),
            _ => None,
        };
        let reason = match (kind, &node.content) {
            (FieldKind::Tables(_), NodeContent::Table(_)) => "it is a single table".to_string(),
            _ => format!("it is {}", node.type_name()),
        };
        self.wrong(node, path, &reason, kind, suggestion);
    }

    fn missing(&mut self, place: SourceLocation, path: &KeyPath, expected: Vec<String>) {
        if self.full() {
            return;
        }
        let path = path.to_string();
        let mut error = self.sources.error(place, &path, format!("{path} is missing"), expected);
        error.found = String::new();
        self.push(error);
    }

    /// Checks a table. Returns `None` if it has an error.
    pub(crate) fn table(&mut self, schema: &'static Table, node: &Node, path: &KeyPath) -> Option<Tree> {
        let NodeContent::Table(entries) = &node.content else {
            self.wrong_type(node, path, &FieldKind::Table(schema));
            return None;
        };
        let mut tree = Tree::empty_at(node.place);
        let mut good = true;
        let mut variant = None;
        if let Some(variants) = schema.variants {
            let entry = entries.iter().find(|entry| entry.key == variants.key);
            match self.variant(schema, node, entry, path) {
                Some(found) => {
                    variant = Some(found);
                    let place = entry.map_or(node.place, |entry| entry.node.place);
                    tree.set(
                        variants.key,
                        Value { data: ValueData::Choice(found.name), place, given: entry.is_some() },
                    );
                }
                None => good = false,
            }
        }
        let declared = || schema.common_fields().chain(variant.into_iter().flat_map(Variant::fields));
        for entry in entries {
            let known = declared().any(|field| field.is_named(&entry.key))
                || schema.variants.is_some_and(|variants| variants.key == entry.key);
            if !known {
                good = false;
                if !self.full() {
                    let is_selected =
                        schema.variants.is_some_and(|variants| entries.iter().any(|entry| entry.key == variants.key));
                    self.unknown_key(schema, variant.map(|variant| (variant, is_selected)), entry, path);
                }
            }
        }
        for field in declared() {
            let former = self.former(field, entries, path, &mut good);
            let path = KeyPath::Key(path, field.key);
            let entry = entries.iter().find(|entry| entry.key == field.key);
            let value = match entry.map(|entry| &entry.node).or(former.as_ref()) {
                Some(node) => self.value(&field.kind, node, &path),
                None => match self.default(field, node.place, &path) {
                    Ok(None) => continue,
                    Ok(value) => value,
                    Err(()) => None,
                },
            };
            match value {
                Some(value) => tree.set(field.key, value),
                None => good = false,
            }
        }
        good.then_some(tree)
    }

    /// Returns the value of a field under a former spelling of its key, with a hint. It is an error to use both
    /// spellings.
    fn former(&mut self, field: &'static Field, entries: &[Entry], path: &KeyPath, good: &mut bool) -> Option<Node> {
        if field.former.is_empty() {
            return None;
        }
        let mut named = entries.iter().filter(|entry| field.is_named(&entry.key));
        let entry = named.find(|entry| entry.key != field.key)?;
        let former = field.former.iter().find(|former| former.key == entry.key)?;
        let (old, path) = (&entry.key, KeyPath::Key(path, &entry.key).to_string());
        if entries.iter().filter(|entry| field.is_named(&entry.key)).count() > 1 {
            *good = false;
            let message = format!("{path} is the former spelling of {}, which the table also has", field.key);
            self.push(self.sources.error(entry.key_place, &path, message, vec![format!("only {}", field.key)]));
            return None;
        }
        let node = Node { content: (former.value)(&entry.node.content), place: entry.node.place };
        let message = format!(
            "{old} is now called {key}: write {key} = {value} ({old} is accepted until the next version)",
            key = field.key,
            value = node.to_toml()
        );
        self.hints.push(self.sources.hint(entry.key_place, &path, message));
        Some(node)
    }

    fn variant(
        &mut self,
        schema: &'static Table,
        node: &Node,
        entry: Option<&Entry>,
        path: &KeyPath,
    ) -> Option<&'static Variant> {
        let variants = schema.variants?;
        let path = KeyPath::Key(path, variants.key);
        let names = || variants.list.iter().map(|variant| format!("\"{}\"", variant.name)).collect::<Vec<_>>();
        let Some(entry) = entry else {
            let found = variants.default.and_then(|default| variants.find(default));
            if found.is_none() {
                self.missing(node.place, &path, names());
            }
            return found;
        };
        let found = entry.node.as_text().and_then(|name| variants.find(name));
        if found.is_none() && !self.full() {
            let path = path.to_string();
            let place = entry.node.place;
            let token = self.sources.excerpt(place);
            let text = entry.node.as_text();
            let error = if text.is_some_and(|name| variants.later.contains(&name)) {
                let message = format!("{path} = {token} is not supported");
                self.sources.error(place, &path, message, names())
            } else {
                let message = match text {
                    Some(_) => format!("unknown value {token} for {path}"),
                    None => format!("{path} is {}, not a string", entry.node.type_name()),
                };
                let mut error = self.sources.error(place, &path, message, names());
                let valid = variants.list.iter().map(|variant| variant.name);
                error.suggestion = text.and_then(|text| nearest_name(text, valid)).map(|name| format!("\"{name}\""));
                error
            };
            self.push(error);
        }
        found
    }

    fn unknown_key(
        &mut self,
        schema: &'static Table,
        variant: Option<(&'static Variant, bool)>,
        entry: &Entry,
        path: &KeyPath,
    ) {
        let full_path = KeyPath::Key(path, &entry.key).to_string();
        let error = unknown_key(self.sources, schema, variant, &entry.key, entry.key_place, &full_path);
        self.errors.extend(error);
    }

    fn default(&mut self, field: &'static Field, place: SourceLocation, path: &KeyPath) -> Result<Option<Value>, ()> {
        let data = match field.default {
            DefaultValue::Required => {
                let mut accepted = expected(&field.kind, path);
                if let (FieldKind::Tables(_), Some(header)) = (&field.kind, accepted.first_mut()) {
                    *header = format!("at least one {header}");
                }
                self.missing(place, path, accepted);
                return Err(());
            }
            DefaultValue::Absent(_) | DefaultValue::Inherited(_) | DefaultValue::Setting => return Ok(None),
            DefaultValue::Value(text) => parse_default(&field.kind, text),
            DefaultValue::Empty => match &field.kind {
                FieldKind::Table(table) => {
                    let empty = Node { content: NodeContent::Table(Vec::new()), place };
                    ValueData::Table(self.table(table, &empty, path).ok_or(())?)
                }
                FieldKind::Tables(_) => ValueData::Tables(Vec::new()),
                FieldKind::Map(_) => ValueData::Map(Vec::new()),
                FieldKind::List(_) => ValueData::List(Vec::new()),
                other => panic!("{} cannot be empty by default: {other:?}", field.key),
            },
        };
        Ok(Some(Value { data, place, given: false }))
    }

    /// Checks a value of a kind. Returns `None` if it has an error.
    pub(crate) fn value(&mut self, kind: &'static FieldKind, node: &Node, path: &KeyPath) -> Option<Value> {
        let data = self.data(kind, node, path)?;
        Some(Value { data, place: node.place, given: true })
    }

    fn data(&mut self, kind: &'static FieldKind, node: &Node, path: &KeyPath) -> Option<ValueData> {
        if !type_fits(kind, &node.content) {
            self.wrong_type(node, path, kind);
            return None;
        }
        let (outcome, suggestion) = match (kind, &node.content) {
            (FieldKind::Table(table), _) => return self.table(table, node, path).map(ValueData::Table),
            (FieldKind::Tables(table), NodeContent::Array(list)) => {
                let mut trees = Vec::new();
                let mut good = self.length(list, node, path, kind);
                for (index, element) in list.iter().enumerate().take(MAX_LIST_LENGTH) {
                    match self.table(table, element, &KeyPath::Index(path, index)) {
                        Some(tree) => trees.push(tree),
                        None => good = false,
                    }
                }
                return good.then_some(ValueData::Tables(trees));
            }
            (FieldKind::List(element_kind), NodeContent::Array(list)) => {
                let mut values = Vec::new();
                let mut good = self.length(list, node, path, kind);
                for (index, element) in list.iter().enumerate().take(MAX_LIST_LENGTH) {
                    match self.value(element_kind, element, &KeyPath::Index(path, index)) {
                        Some(value) => values.push(value),
                        None => good = false,
                    }
                }
                return good.then_some(ValueData::List(values));
            }
            (FieldKind::Map(element_kind), NodeContent::Table(entries)) => {
                let mut map = Vec::new();
                for entry in entries {
                    if let Some(value) = self.value(element_kind, &entry.node, &KeyPath::Key(path, &entry.key)) {
                        map.push(NamedValue { name: entry.key.clone(), name_place: entry.key_place, value });
                    }
                }
                return (map.len() == entries.len()).then_some(ValueData::Map(map));
            }
            (FieldKind::Either(first, second), content) => {
                let kind = if type_fits(first, content) { first } else { second };
                return self.data(kind, node, path);
            }
            (FieldKind::Raw, _) => return Some(ValueData::Raw(node.clone())),
            (FieldKind::Choice(choices), NodeContent::Text(text)) => {
                return self.choose(choices, text, node, path, kind);
            }
            (_, content) => scalar(kind, content),
        };
        match outcome {
            Ok(data) => Some(data),
            Err(reason) => {
                self.wrong(node, path, &reason, kind, suggestion);
                None
            }
        }
    }

    fn length(&mut self, list: &[Node], node: &Node, path: &KeyPath, kind: &FieldKind) -> bool {
        if list.len() > MAX_LIST_LENGTH {
            self.wrong(node, path, &format!("it has more than {MAX_LIST_LENGTH} elements"), kind, None);
        }
        list.len() <= MAX_LIST_LENGTH
    }

    fn choose(
        &mut self,
        choices: &'static [Choice],
        text: &str,
        node: &Node,
        path: &KeyPath,
        kind: &FieldKind,
    ) -> Option<ValueData> {
        match choices.iter().find(|choice| choice.name == text) {
            Some(choice) if choice.available => return Some(ValueData::Choice(choice.name)),
            Some(_) => self.wrong(node, path, "it is not supported", kind, None),
            None => {
                let suggestion = nearest_name(text, available(choices)).map(|name| format!("\"{name}\""));
                self.wrong(node, path, "", kind, suggestion);
            }
        }
        None
    }
}

/// Returns a percentage such as "1%" as a fraction.
fn percentage(text: &str) -> Option<f64> {
    // Through the decimal digits, because 0.07 is not 7.0 * 0.01.
    format!("{}e-2", text.trim().strip_suffix('%')?.trim()).parse().ok()
}

/// Returns the table that is probably meant by a number or a percentage in its place: the first variant whose only
/// required key is a number, with this number. For a loss model, 0.01 and "1%" mean `{ kind = "bernoulli", probability
/// = 0.01 }`.
fn table_with_number(table: &'static Table, content: &NodeContent) -> Option<String> {
    let number = match content {
        NodeContent::Integer(number) => *number as f64,
        NodeContent::Float(number) => *number,
        NodeContent::Text(text) => percentage(text)?,
        _ => return None,
    };
    let variants = table.variants?;
    variants.list.iter().find_map(|variant| {
        let mut required = table
            .common_fields()
            .chain(variant.fields())
            .filter(|field| matches!(field.default, DefaultValue::Required));
        let field = required.next().filter(|_| required.next().is_none())?;
        let FieldKind::Number { min, max } = &field.kind else { return None };
        within(&number, min, max).ok()?;
        Some(format!("{{ {} = \"{}\", {} = {number} }}", variants.key, variant.name, field.key))
    })
}

/// Returns the error about a key that the table does not have. The variant has whether the file selects it; otherwise it
/// is the default.
pub(crate) fn unknown_key(
    sources: &Sources,
    schema: &'static Table,
    variant: Option<(&'static Variant, bool)>,
    key: &str,
    place: SourceLocation,
    path: &str,
) -> Option<Error> {
    let table = if schema.name.is_empty() { "this file".to_string() } else { with_article(schema.name) };
    let mut valid: Vec<&str> = schema.variants.iter().map(|variants| variants.key).collect();
    valid.extend(schema.common_fields().map(|field| field.key));
    if schema.later.contains(&key) {
        let valid = valid.iter().map(|key| (*key).to_string()).collect();
        return Some(sources.error(place, path, format!("{path} is not supported"), valid));
    }
    if let Some(variants) = schema.variants {
        let owner = variants.list.iter().find(|variant| variant.fields().any(|field| field.key == key));
        match (variant, owner) {
            // The variant has its own error, and the key may belong to the intended variant.
            (None, Some(_)) => return None,
            (Some((variant, is_selected)), Some(_)) => {
                let owners = variants.list.iter().filter(|variant| variant.fields().any(|field| field.key == key));
                let owners: Vec<String> = owners.map(|owner| format!("\"{}\"", owner.name)).collect();
                let choice = match owners.split_last() {
                    Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
                    _ => owners.join(""),
                };
                let found = if is_selected {
                    format!("this is {table} with {} = \"{}\"", variants.key, variant.name)
                } else {
                    format!("this {} has no {} (default: \"{}\")", schema.name, variants.key, variant.name)
                };
                let message = format!("{path} requires {} = {choice}, but {found}", variants.key);
                // The message already has the values if there are several.
                let remedy = match owners.as_slice() {
                    [owner] => format!("{} = {owner}", variants.key),
                    _ if is_selected => format!("another {}", variants.key),
                    _ => format!("one of these values of {}", variants.key),
                };
                return Some(sources.error(place, path, message, vec![remedy, format!("no {key}")]));
            }
            (Some((variant, _)), None) => valid.extend(variant.fields().map(|field| field.key)),
            (None, None) => {}
        }
    }
    let shown: String = key.chars().take(64).collect();
    Some(sources.unknown_name(place, path, format!("{shown} is not a key of {table}"), key, &valid))
}

/// Checks a value without parts. Returns the value or the reason, and a suggestion.
fn scalar(kind: &FieldKind, content: &NodeContent) -> (Result<ValueData, String>, Option<String>) {
    let result = match (kind, content) {
        (FieldKind::Text, NodeContent::Text(text)) => Ok(ValueData::Text(text.clone())),
        (FieldKind::Name, NodeContent::Text(text)) => {
            if is_name(text) {
                Ok(ValueData::Text(text.clone()))
            } else {
                Err("it is not a valid name".to_string())
            }
        }
        (FieldKind::Boolean, NodeContent::Boolean(boolean)) => Ok(ValueData::Boolean(*boolean)),
        (FieldKind::Integer { min, max }, NodeContent::Integer(number)) => {
            within(number, min, max).map(|number| ValueData::Integer(*number))
        }
        (FieldKind::Number { min, max }, NodeContent::Integer(number)) => {
            within(&(*number as f64), min, max).map(|number| ValueData::Number(*number))
        }
        (FieldKind::Number { min, max }, NodeContent::Float(number)) => {
            // Adding zero converts minus zero to zero, which prevents `-0.0` in the output.
            if number.is_nan() || number.is_infinite() {
                Err("it is not a finite number".to_string())
            } else {
                within(&(*number + 0.0), min, max).map(|number| ValueData::Number(*number))
            }
        }
        (FieldKind::Size { min, max }, NodeContent::Integer(number)) => match u64::try_from(*number) {
            Ok(bytes) => within(&bytes, min, max).map(|bytes| ValueData::Size(*bytes)),
            Err(_) => Err("it is negative".to_string()),
        },
        (FieldKind::Size { min, max }, NodeContent::Text(text)) => {
            return quantity_of(quantity::parse_size(text), |bytes| {
                within(bytes, min, max).map(|b| ValueData::Size(*b))
            });
        }
        (FieldKind::Duration { min, max }, NodeContent::Text(text)) => {
            return quantity_of(quantity::parse_duration(text), |duration| {
                within(duration, min, max).map(|duration| ValueData::Duration(*duration))
            });
        }
        (FieldKind::Rate, NodeContent::Text(text)) => {
            return quantity_of(quantity::parse_rate(text), |rate| {
                if rate.bits_per_second() == 0 {
                    Err("it is below 1 bit/s".to_string())
                } else if *rate > MAX_RATE {
                    Err("it is above 1000Tbit/s".to_string())
                } else {
                    Ok(ValueData::Rate(*rate))
                }
            });
        }
        (FieldKind::QueueLimit, NodeContent::Text(text)) => {
            return quantity_of(quantity::parse_queue_limit(text), |limit| {
                acceptable(*limit).map(|()| ValueData::QueueLimit(*limit))
            });
        }
        (FieldKind::LinkQueueLimit, NodeContent::Text(text)) => {
            return quantity_of(quantity::parse_link_queue_limit(text), |limit| {
                match limit {
                    LinkQueueLimit::Fixed(limit) => acceptable(*limit)?,
                    LinkQueueLimit::Bdp(multiple) if multiple.millionths() == 0 => return Err("it is zero".to_string()),
                    LinkQueueLimit::Bdp(_) => {}
                }
                Ok(ValueData::LinkQueueLimit(*limit))
            });
        }
        _ => Err(String::new()),
    };
    (result, None)
}

/// Checks that a queue can have this limit; the error is the reason why it cannot.
fn acceptable(limit: QueueLimit) -> Result<(), String> {
    match limit {
        QueueLimit::Packets(0) | QueueLimit::Bytes(0) | QueueLimit::Time(Duration::ZERO) => {
            Err("it is zero".to_string())
        }
        QueueLimit::Time(duration) if duration > MAX_DURATION => Err(format!("it is above {}", hours(MAX_DURATION))),
        _ => Ok(()),
    }
}

fn quantity_of<T>(
    parsed: Result<T, QuantityError>,
    check: impl FnOnce(&T) -> Result<ValueData, String>,
) -> (Result<ValueData, String>, Option<String>) {
    match parsed {
        Ok(value) => (check(&value), None),
        Err(malformed) => (Err(malformed.reason.unwrap_or_default()), malformed.suggestion),
    }
}

fn within<'a, T: PartialOrd>(value: &'a T, min: &T, max: &T) -> Result<&'a T, String> {
    if value < min {
        Err("it is too small".to_string())
    } else if value > max {
        Err("it is too large".to_string())
    } else {
        Ok(value)
    }
}

/// Returns whether a text is a valid name, for example of a host or a flow ([`FieldKind::Name`]). A name contains no
/// dots, because the program appends suffixes after a dot. A name begins with a letter, which distinguishes it from an
/// index.
pub fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Returns the value of a declared default.
///
/// # Panics
/// If the kind does not accept the default.
pub fn parse_default(kind: &FieldKind, text: &str) -> ValueData {
    let content = match kind {
        FieldKind::Choice(choices) => {
            let choice = choices.iter().find(|choice| choice.name == text);
            return ValueData::Choice(choice.expect("a default is one of the choices").name);
        }
        FieldKind::List(_) if text == "[]" => return ValueData::List(Vec::new()),
        FieldKind::Boolean => NodeContent::Boolean(text == "true"),
        FieldKind::Integer { .. } => NodeContent::Integer(text.parse().expect("a default is an integer")),
        FieldKind::Number { .. } => NodeContent::Float(text.parse().expect("a default is a number")),
        FieldKind::Either(first, _) => return parse_default(first, text),
        _ => NodeContent::Text(text.to_string()),
    };
    match scalar(kind, &content).0 {
        Ok(data) => data,
        Err(reason) => panic!("the schema's default {text} is rejected: {reason}"),
    }
}
