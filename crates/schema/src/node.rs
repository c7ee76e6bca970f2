//! A TOML file as a tree in which each value has a place: a position in the file, or an override.
//!
//! `toml_edit`'s own tree loses its spans when it is edited. This tree keeps the places when overrides edit it.

use crate::error::{Error, Errors, Hint, nearest_name};
use toml_edit::{Document, Item, Table, Value};

/// The place at which a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceLocation {
    /// A range of bytes of the file.
    File {
        /// Index of the first byte.
        start: u32,
        /// Index after the last byte.
        end: u32,
    },
    /// The override with this index.
    Override(u32),
}

impl Default for SourceLocation {
    fn default() -> Self {
        SourceLocation::File { start: 0, end: 0 }
    }
}

/// A TOML value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// The value.
    pub content: NodeContent,
    /// Its place.
    pub place: SourceLocation,
}

/// The content of a TOML value.
#[derive(Clone, Debug)]
pub enum NodeContent {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// A floating-point number, which may be infinite or not a number.
    Float(f64),
    /// A boolean.
    Boolean(bool),
    /// A date, a time or both, as text. No schema accepts one.
    Datetime(String),
    /// An array, or an array of tables.
    Array(Vec<Node>),
    /// A table, in the order of the file.
    Table(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub key_place: SourceLocation,
    /// The value.
    pub node: Node,
}

impl PartialEq for Node {
    /// Compares without places.
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.node == other.node
    }
}

impl PartialEq for NodeContent {
    /// Numbers are compared by their bits, so that a NaN equals itself.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (NodeContent::Text(a), NodeContent::Text(b)) | (NodeContent::Datetime(a), NodeContent::Datetime(b)) => {
                a == b
            }
            (NodeContent::Integer(a), NodeContent::Integer(b)) => a == b,
            (NodeContent::Float(a), NodeContent::Float(b)) => a.to_bits() == b.to_bits(),
            (NodeContent::Boolean(a), NodeContent::Boolean(b)) => a == b,
            (NodeContent::Array(a), NodeContent::Array(b)) => a == b,
            (NodeContent::Table(a), NodeContent::Table(b)) => a == b,
            _ => false,
        }
    }
}

fn file_place(span: Option<std::ops::Range<usize>>) -> Option<SourceLocation> {
    let span = span?;
    Some(SourceLocation::File { start: u32::try_from(span.start).ok()?, end: u32::try_from(span.end).ok()? })
}

impl Node {
    /// Converts a parsed file to a tree.
    pub(crate) fn from_document(document: &Document<&str>) -> Self {
        Node::from_table(document.as_table(), SourceLocation::default())
    }

    fn from_item(item: &Item, parent: SourceLocation) -> Self {
        match item {
            Item::None => Node { content: NodeContent::Table(Vec::new()), place: parent },
            Item::Value(value) => Node::from_value(value, parent),
            Item::Table(table) => Node::from_table(table, parent),
            Item::ArrayOfTables(tables) => {
                let list: Vec<Node> = tables.iter().map(|table| Node::from_table(table, parent)).collect();
                let place = list.first().map_or(parent, |first| first.place);
                Node { content: NodeContent::Array(list), place }
            }
        }
    }

    fn entry(key: &toml_edit::Key, item: &Item, parent: SourceLocation) -> Entry {
        let key_place = file_place(key.span()).unwrap_or(parent);
        Entry { key: key.get().to_string(), key_place, node: Node::from_item(item, key_place) }
    }

    fn from_table(table: &Table, parent: SourceLocation) -> Self {
        let own = file_place(table.span());
        let entries: Vec<Entry> = table
            .iter()
            .filter_map(|(key, _)| table.get_key_value(key))
            .map(|(key, item)| Node::entry(key, item, own.unwrap_or(parent)))
            .collect();
        // A table without its own header, such as `a` in `[a.b]`, has the place of its first entry.
        let place = own.or_else(|| entries.first().map(|entry| entry.key_place)).unwrap_or(parent);
        Node { content: NodeContent::Table(entries), place }
    }

    fn from_value(value: &Value, parent: SourceLocation) -> Self {
        let place = file_place(value.span()).unwrap_or(parent);
        let content = match value {
            Value::String(text) => NodeContent::Text(text.value().clone()),
            Value::Integer(number) => NodeContent::Integer(*number.value()),
            Value::Float(number) => NodeContent::Float(*number.value()),
            Value::Boolean(boolean) => NodeContent::Boolean(*boolean.value()),
            Value::Datetime(datetime) => NodeContent::Datetime(datetime.value().to_string()),
            Value::Array(list) => NodeContent::Array(list.iter().map(|value| Node::from_value(value, place)).collect()),
            Value::InlineTable(table) => NodeContent::Table(
                table
                    .iter()
                    .filter_map(|(key, _)| table.get_key_value(key))
                    .map(|(key, item)| Node::entry(key, item, place))
                    .collect(),
            ),
        };
        Node { content, place }
    }

    /// Parses the value of an override: TOML, or a bare word, which becomes a string.
    pub(crate) fn from_override(text: &str, place: SourceLocation) -> Self {
        let mut node = match text.trim().parse::<Value>() {
            Ok(value) => Node::from_value(&value, place),
            Err(_) => Node { content: NodeContent::Text(text.to_string()), place },
        };
        node.move_to(place);
        node
    }

    fn move_to(&mut self, place: SourceLocation) {
        self.place = place;
        match &mut self.content {
            NodeContent::Array(list) => list.iter_mut().for_each(|node| node.move_to(place)),
            NodeContent::Table(entries) => entries.iter_mut().for_each(|entry| {
                entry.key_place = place;
                entry.node.move_to(place);
            }),
            _ => {}
        }
    }

    /// Returns the value of a key; `None` if this is not a table or does not have the key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.content {
            NodeContent::Table(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node),
            _ => None,
        }
    }

    /// Returns the text; `None` if this is not a string.
    pub fn as_text(&self) -> Option<&str> {
        match &self.content {
            NodeContent::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the TOML type with its indefinite article, for messages.
    pub fn type_name(&self) -> &'static str {
        match self.content {
            NodeContent::Text(_) => "a string",
            NodeContent::Integer(_) => "an integer",
            NodeContent::Float(_) => "a floating-point number",
            NodeContent::Boolean(_) => "a boolean",
            NodeContent::Datetime(_) => "a date or time",
            NodeContent::Array(_) => "an array",
            NodeContent::Table(_) => "a table",
        }
    }

    /// Returns this value as TOML on one line.
    pub fn to_toml(&self) -> String {
        match &self.content {
            NodeContent::Text(text) => quote(text),
            NodeContent::Integer(number) => number.to_string(),
            NodeContent::Float(number) => format_float(*number),
            NodeContent::Boolean(boolean) => boolean.to_string(),
            NodeContent::Datetime(text) => text.clone(),
            NodeContent::Array(list) => {
                format!("[{}]", list.iter().map(Node::to_toml).collect::<Vec<_>>().join(", "))
            }
            NodeContent::Table(entries) if entries.is_empty() => "{}".to_string(),
            NodeContent::Table(entries) => {
                let pairs: Vec<String> = entries
                    .iter()
                    .map(|entry| format!("{} = {}", quote_key(&entry.key), entry.node.to_toml()))
                    .collect();
                format!("{{ {} }}", pairs.join(", "))
            }
        }
    }
}

/// Formats a text as a TOML basic string on one line.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Formats a TOML key: bare if possible, otherwise quoted.
pub fn quote_key(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if bare { key.to_string() } else { quote(key) }
}

/// Formats a number so that TOML parses it as the same float and not as an integer.
pub fn format_float(number: f64) -> String {
    if number.is_nan() {
        "nan".to_string()
    } else if number.is_infinite() {
        if number > 0.0 { "inf".to_string() } else { "-inf".to_string() }
    } else {
        format!("{number:?}")
    }
}

/// One override, `--set PATH=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The dotted path of a key, such as "topology.bottleneck.rate".
    pub path: String,
    /// The value as TOML; a bare word is a string.
    pub value: String,
}

impl Override {
    /// Parses "PATH=VALUE".
    ///
    /// # Errors
    /// If the equals sign or the path is missing.
    pub fn parse(text: &str) -> Result<Self, Errors> {
        match text.split_once('=') {
            Some((path, value)) if !path.trim().is_empty() => {
                Ok(Override { path: path.trim().to_string(), value: value.trim().to_string() })
            }
            _ => Err(Errors(vec![Error {
                file: format!("--set {text}"),
                line: 0,
                column: 0,
                path: String::new(),
                found: text.to_string(),
                expected: vec!["PATH=VALUE, such as topology.bottleneck.rate=10Mbit/s".to_string()],
                message: "the path of the override is missing".to_string(),
                suggestion: None,
            }])),
        }
    }
}

/// The source texts to which places refer: the file and the overrides.
#[derive(Clone, Debug)]
pub struct Sources {
    file: String,
    text: String,
    line_starts: Vec<usize>,
    overrides: Vec<Override>,
}

/// The largest number of characters of a file that an error quotes.
const LONGEST_FOUND: usize = 60;

impl Sources {
    /// Returns the file's name.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Creates the sources from the name and text of a file and from the overrides.
    pub fn new(file: &str, text: &str, overrides: &[Override]) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1));
        Sources { file: file.to_string(), text: text.to_string(), line_starts, overrides: overrides.to_vec() }
    }

    /// Returns the line and the column of a byte of the file, both from 1. The column is in characters. `byte` is an
    /// index from 0.
    pub fn position(&self, byte: usize) -> (usize, usize) {
        let mut byte = byte.min(self.text.len());
        while !self.text.is_char_boundary(byte) {
            byte -= 1;
        }
        let line = self.line_starts.partition_point(|start| *start <= byte).max(1);
        (line, self.text[self.line_starts[line - 1]..byte].chars().count() + 1)
    }

    /// Returns the first line of the text at a place, truncated to 60 characters.
    pub fn excerpt(&self, place: SourceLocation) -> String {
        let text = match place {
            SourceLocation::File { start, end } => self.text.get(start as usize..end as usize).unwrap_or(""),
            SourceLocation::Override(index) => self.overrides.get(index as usize).map_or("", |set| &set.value),
        };
        let line = text.lines().next().unwrap_or("");
        match line.char_indices().nth(LONGEST_FOUND) {
            Some((end, _)) => format!("{}...", &line[..end]),
            None => line.to_string(),
        }
    }

    /// Creates a hint about the text at a place.
    pub fn hint(&self, place: SourceLocation, path: &str, message: impl Into<String>) -> Hint {
        let Error { file, line, path, message, .. } = self.error(place, path, message, Vec::new());
        Hint { file, line, path, message }
    }

    /// Creates an error at a place. [`Error::found`] is the text at the place.
    pub fn error(&self, place: SourceLocation, path: &str, message: impl Into<String>, expected: Vec<String>) -> Error {
        let (file, line, column) = match place {
            SourceLocation::File { start, .. } => {
                let (line, column) = self.position(start as usize);
                (self.file.clone(), line, column)
            }
            SourceLocation::Override(index) => {
                let set = self.overrides.get(index as usize);
                (set.map_or("--set".to_string(), |set| format!("--set {}={}", set.path, set.value)), 0, 0)
            }
        };
        Error {
            file,
            line,
            column,
            path: path.to_string(),
            found: self.excerpt(place),
            expected,
            message: message.into(),
            suggestion: None,
        }
    }

    /// Creates an error about an unknown name, with the nearest valid name.
    pub fn unknown_name(
        &self,
        place: SourceLocation,
        path: &str,
        message: impl Into<String>,
        name: &str,
        valid: &[&str],
    ) -> Error {
        let mut error = self.error(place, path, message, valid.iter().map(|name| (*name).to_string()).collect());
        error.suggestion = nearest_name(name, valid.iter().copied()).map(str::to_string);
        error
    }
}
