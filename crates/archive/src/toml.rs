//! TOML records: tables whose keys are declared once, with type, kind, default and text. Checking, reading, writing and
//! documentation follow from the declaration.

use fullpipe_schema::node::{format_float, quote, quote_key};
use fullpipe_schema::{FieldKind, Node, Tree, Value};
use fullpipe_units::Duration;
use std::fmt::Write;

/// A type of values of a TOML key.
pub trait TomlValue: Sized {
    /// Whether the value is written under its own header.
    const IS_TABLE: bool = false;

    /// Converts a value that the schema has checked.
    fn from_toml(value: &Value) -> Self;

    /// Returns the value if the key is absent and the schema permits this.
    fn from_absent() -> Self {
        panic!("the key is absent; the schema permits this, but the record requires it")
    }

    /// Returns the value in TOML after the equals sign; `None` omits the key.
    fn to_inline_toml(&self) -> Option<String>;

    /// Writes the tables that follow the values of the parent table. `path` is the path of the key.
    fn write_tables(&self, _path: &str, _out: &mut String) {}

    /// Returns whether this is an empty array of tables.
    fn has_no_tables(&self) -> bool {
        false
    }
}

/// Returns the key of a field: the name without the prefix `r#` of Rust keywords.
pub(crate) const fn key(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Declares a table. Each key has a name, a type, the constructor of its [`Field`](fullpipe_schema::Field) with kind
/// and default, and a sentence. The name of the key is also the name of the field.
macro_rules! toml_table {
    (
        $(#[$attribute:meta])*
        pub struct $Record:ident;
        $visibility:vis static $TABLE:ident = $name:literal: $about:literal;
        $($key:ident: $Type:ty = $make:ident($($argument:expr),+), $text:literal;)+
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $Record {
            $(#[doc = $text] pub $key: $Type,)+
        }

        #[doc = $about]
        $visibility static $TABLE: fullpipe_schema::Table = fullpipe_schema::Table {
            name: $name,
            text: $about,
            fields: &[&[$(
                fullpipe_schema::Field::$make($crate::toml::key(stringify!($key)), $($argument,)+ $text),
            )+]],
            ..fullpipe_schema::Table::EMPTY
        };

        impl $Record {
            fn from_tree(tree: &fullpipe_schema::Tree) -> Self {
                $Record { $($key: $crate::toml::read_key(tree, $crate::toml::key(stringify!($key))),)+ }
            }

            fn write(&self, path: &str, out: &mut String) {
                $($crate::toml::line($crate::toml::key(stringify!($key)), &self.$key, out);)+
                $(self.$key.write_tables(&format!("{path}{}", $crate::toml::key(stringify!($key))), out);)+
            }
        }

        impl $crate::toml::TomlValue for $Record {
            const IS_TABLE: bool = true;

            fn from_toml(value: &fullpipe_schema::Value) -> Self {
                $Record::from_tree(value.table())
            }

            fn to_inline_toml(&self) -> Option<String> {
                None
            }

            fn write_tables(&self, path: &str, out: &mut String) {
                self.write(&format!("{path}."), out);
            }
        }
    };
}
pub(crate) use toml_table;

/// Declares the names that a key accepts, each with its meaning. The first name is the default.
macro_rules! names {
    ($(#[$attribute:meta])* pub enum $Names:ident { $first:ident = $first_name:literal: $first_text:literal, $($variant:ident = $name:literal: $text:literal,)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $Names {
            #[default]
            #[doc = $first_text]
            $first,
            $(#[doc = $text] $variant,)*
        }

        impl $Names {
            /// All names.
            pub const ALL: &'static [Self] = &[$Names::$first, $($Names::$variant,)*];

            /// The names with their meanings.
            pub const CHOICES: &'static [fullpipe_schema::Choice] = &[
                fullpipe_schema::Choice::new($first_name, $first_text),
                $(fullpipe_schema::Choice::new($name, $text),)*
            ];

            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self {
                    $Names::$first => $first_name,
                    $($Names::$variant => $name,)*
                }
            }
        }

        impl $crate::toml::TomlValue for $Names {
            fn from_toml(value: &fullpipe_schema::Value) -> Self {
                match value.choice() {
                    $first_name => $Names::$first,
                    $($name => $Names::$variant,)*
                    other => panic!("{other} is in the schema but not in the declaration"),
                }
            }

            fn to_inline_toml(&self) -> Option<String> {
                Some(fullpipe_schema::node::quote(self.name()))
            }
        }
    };
}
pub(crate) use names;

/// Returns the value of a key in a checked table, with the declared type of the key.
///
/// # Panics
/// If the key is declared with another type.
pub fn read_key<T: TomlValue>(tree: &Tree, key: &str) -> T {
    tree.get(key).map_or_else(T::from_absent, T::from_toml)
}

pub(crate) fn line(key: &str, value: &impl TomlValue, out: &mut String) {
    if let Some(value) = value.to_inline_toml() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{} = {value}", quote_key(key));
    }
}

/// Implements [`TomlValue`] for values that are written on one line.
macro_rules! plain {
    ($($Type:ty, $read:expr, $write:expr;)+) => {$(
        impl TomlValue for $Type {
            fn from_toml(value: &Value) -> Self {
                let read: fn(&Value) -> $Type = $read;
                read(value)
            }

            fn to_inline_toml(&self) -> Option<String> {
                let write: fn(&$Type) -> String = $write;
                Some(write(self))
            }
        }
    )+};
}

plain! {
    bool, Value::boolean, bool::to_string;
    u64, |value| value.integer().unsigned_abs(), u64::to_string;
    f64, Value::number, |number| format_float(*number);
    Duration, Value::duration, |duration| quote(&duration.to_string());
    String, |value| value.text().to_owned(), |text| quote(text);
    Node, |value| value.raw().clone(), Node::to_toml;
    MultilineText, |value| MultilineText(value.text().to_owned()), |text| text.to_toml();
    Bound, Bound::from_checked_value, Bound::to_toml;
    AxisValue, |value| AxisValue(value.raw().clone()), |value| value.to_toml();
    ScenarioSettings, |value| ScenarioSettings(Vec::from_toml(value)), |settings| pairs(&settings.0, quote);
    Points, |value| Points(Vec::from_toml(value)), |points| points.to_toml();
}

/// `None` omits the key. A key that is absent from the file is read as `None`, regardless of its default.
impl<T: TomlValue> TomlValue for Option<T> {
    const IS_TABLE: bool = T::IS_TABLE;

    fn from_toml(value: &Value) -> Self {
        value.given.then(|| T::from_toml(value))
    }

    fn from_absent() -> Self {
        None
    }

    fn to_inline_toml(&self) -> Option<String> {
        let inner = self.as_ref()?;
        inner.to_inline_toml().or_else(|| inner.has_no_tables().then(|| "[]".to_owned()))
    }

    fn write_tables(&self, path: &str, out: &mut String) {
        self.iter().for_each(|inner| inner.write_tables(path, out));
    }
}

/// A list of values, or an array of tables.
impl<T: TomlValue> TomlValue for Vec<T> {
    const IS_TABLE: bool = T::IS_TABLE;

    fn from_toml(value: &Value) -> Self {
        match &value.data {
            fullpipe_schema::ValueData::Tables(trees) => {
                let table =
                    |tree: &Tree| Value { data: fullpipe_schema::ValueData::Table(tree.clone()), ..value.clone() };
                trees.iter().map(|tree| T::from_toml(&table(tree))).collect()
            }
            _ => value.list().iter().map(T::from_toml).collect(),
        }
    }

    fn to_inline_toml(&self) -> Option<String> {
        let values = || self.iter().filter_map(T::to_inline_toml).collect::<Vec<_>>().join(", ");
        (!T::IS_TABLE).then(|| format!("[{}]", values()))
    }

    fn write_tables(&self, path: &str, out: &mut String) {
        for table in self.iter().filter(|_| T::IS_TABLE) {
            let _ = writeln!(out, "\n[[{path}]]");
            table.write_tables(path, out);
        }
    }

    fn has_no_tables(&self) -> bool {
        T::IS_TABLE && self.is_empty()
    }
}

/// Values or tables under names that are chosen by the author of the file.
impl<T: TomlValue> TomlValue for Vec<(String, T)> {
    const IS_TABLE: bool = T::IS_TABLE;

    fn from_toml(value: &Value) -> Self {
        value.map().iter().map(|entry| (entry.name.clone(), T::from_toml(&entry.value))).collect()
    }

    fn to_inline_toml(&self) -> Option<String> {
        (!T::IS_TABLE).then(|| pairs(self, quote_key))
    }

    fn write_tables(&self, path: &str, out: &mut String) {
        for (name, table) in self.iter().filter(|_| T::IS_TABLE) {
            let path = format!("{path}.{}", quote_key(name));
            let _ = writeln!(out, "\n[{path}]");
            table.write_tables(&path, out);
        }
    }
}

/// A single table under its own header.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubTable<T>(pub T);

impl<T> std::ops::Deref for SubTable<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: TomlValue> TomlValue for SubTable<T> {
    const IS_TABLE: bool = true;

    fn from_toml(value: &Value) -> Self {
        SubTable(T::from_toml(value))
    }

    fn to_inline_toml(&self) -> Option<String> {
        None
    }

    fn write_tables(&self, path: &str, out: &mut String) {
        let _ = writeln!(out, "\n[{path}]");
        self.0.write_tables(path, out);
    }
}

fn pairs(pairs: &[(String, impl TomlValue)], quote: fn(&str) -> String) -> String {
    let pair = |(key, value): &(String, _)| Some(format!("{} = {}", quote(key), TomlValue::to_inline_toml(value)?));
    let pairs: Vec<String> = pairs.iter().filter_map(pair).collect();
    if pairs.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", pairs.join(", ")) }
}

/// A text that is written as a multi-line string if it contains line breaks and TOML permits this form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MultilineText(pub String);

impl MultilineText {
    fn to_toml(&self) -> String {
        let MultilineText(text) = self;
        let plain = text.chars().all(|c| c == '\n' || c == '\t' || !c.is_control());
        if plain && text.contains('\n') && !text.contains("'''") && !text.ends_with('\'') {
            format!("'''\n{text}'''")
        } else {
            quote(text)
        }
    }
}

/// A bound on a metric as it is written in a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// A number in the metric's unit.
    Number(f64),
    /// A quantity with its unit, such as "20Mbit/s".
    Quantity(String),
}

impl Bound {
    /// The kind of a key that has a bound as its value.
    pub const KIND: FieldKind = FieldKind::NUMBER_OR_QUANTITY;

    /// Converts a value of the kind [`Bound::KIND`].
    pub fn from_checked_value(value: &Value) -> Self {
        match &value.data {
            fullpipe_schema::ValueData::Text(text) => Bound::Quantity(text.clone()),
            _ => Bound::Number(value.number()),
        }
    }

    fn to_toml(&self) -> String {
        match self {
            Bound::Number(number) => format_float(*number),
            Bound::Quantity(text) => quote(text),
        }
    }
}

/// Paths of a scenario with the values to which they are set. The paths are written in quotation marks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioSettings(pub Vec<(String, Node)>);

/// A value of an axis: a plain value, or a table with the label, the value and the [`ScenarioSettings`].
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValue(pub Node);

impl AxisValue {
    fn to_toml(&self) -> String {
        let fullpipe_schema::NodeContent::Table(entries) = &self.0.content else { return self.0.to_toml() };
        let value = |entry: &fullpipe_schema::Entry| match &entry.node.content {
            fullpipe_schema::NodeContent::Table(paths) if entry.key == "set" => {
                let set: Vec<_> = paths.iter().map(|path| (path.key.clone(), path.node.clone())).collect();
                format!("set = {}", pairs(&set, quote))
            }
            _ => format!("{} = {}", quote_key(&entry.key), entry.node.to_toml()),
        };
        format!("{{ {} }}", entries.iter().map(value).collect::<Vec<_>>().join(", "))
    }
}

/// Points of an experiment, written one per line. Each point has a value for each axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points(pub Vec<Vec<(String, Node)>>);

impl Points {
    fn to_toml(&self) -> String {
        let lines: String = self.0.iter().map(|point| format!("  {},\n", pairs(point, quote_key))).collect();
        format!("[\n{lines}]")
    }
}
