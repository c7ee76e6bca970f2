//! The content of a file after the check against a schema: typed values with their places, with defaults filled in.

use crate::node::{Node, SourceLocation};
use fullpipe_units::{Duration, LinkQueueLimit, QueueLimit, Rate};

/// A checked value.
#[derive(Clone, Debug)]
pub struct Value {
    /// The value.
    pub data: ValueData,
    /// Its place. The place of a default is that of its table.
    pub place: SourceLocation,
    /// Whether the file or an override contains the value; false for a default.
    pub given: bool,
}

/// A typed value.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueData {
    /// A text or a name.
    Text(String),
    /// A boolean.
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// A finite number.
    Number(f64),
    /// A duration.
    Duration(Duration),
    /// A rate.
    Rate(Rate),
    /// A size in bytes.
    Size(u64),
    /// A queue limit.
    QueueLimit(QueueLimit),
    /// A queue limit of a link.
    LinkQueueLimit(LinkQueueLimit),
    /// One of the names in the schema.
    Choice(&'static str),
    /// A table.
    Table(Tree),
    /// An array of tables.
    Tables(Vec<Tree>),
    /// An array of values of one kind.
    List(Vec<Value>),
    /// Names chosen by the author of the file, with their values, in the order of the file.
    Map(Vec<NamedValue>),
    /// Any TOML value.
    Raw(Node),
}

/// A value under a name that the author of the file chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedValue {
    /// The name.
    pub name: String,
    /// The place of the name.
    pub name_place: SourceLocation,
    /// The value.
    pub value: Value,
}

impl PartialEq for Value {
    /// Compares without places.
    fn eq(&self, other: &Self) -> bool {
        self.data == other.data
    }
}

/// A checked table: the schema's keys that are present or have a default.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The place of the table's header or opening brace.
    pub place: SourceLocation,
    fields: Vec<(&'static str, Value)>,
}

impl PartialEq for Tree {
    /// Compares without places and without order.
    fn eq(&self, other: &Self) -> bool {
        self.fields.len() == other.fields.len()
            && self.fields.iter().all(|(key, value)| other.get(key).is_some_and(|other| other == value))
    }
}

macro_rules! accessors {
    ($($(#[$text:meta])* $name:ident: $variant:ident -> $type:ty, |$value:ident| $read:expr;)*) => {
        impl Value {
            $(
                $(#[$text])*
                ///
                /// # Panics
                /// If the schema declares another kind. This is a programming error, not an error in the file.
                pub fn $name(&self) -> $type {
                    match &self.data {
                        ValueData::$variant($value) => $read,
                        other => panic!("the schema declares another kind than {}: {other:?}", stringify!($variant)),
                    }
                }
            )*
        }

        impl Tree {
            $(
                $(#[$text])*
                ///
                /// # Panics
                /// If the key is absent, because the schema neither requires it nor has a default, or if it is of
                /// another kind.
                pub fn $name(&self, key: &str) -> $type {
                    self.required(key).$name()
                }
            )*
        }
    };
}

accessors! {
    /// Returns the text.
    text: Text -> &str, |value| value;
    /// Returns the boolean.
    boolean: Boolean -> bool, |value| *value;
    /// Returns the integer.
    integer: Integer -> i64, |value| *value;
    /// Returns the number.
    number: Number -> f64, |value| *value;
    /// Returns the duration.
    duration: Duration -> Duration, |value| *value;
    /// Returns the rate.
    rate: Rate -> Rate, |value| *value;
    /// Returns the size in bytes.
    size: Size -> u64, |value| *value;
    /// Returns the queue limit.
    queue_limit: QueueLimit -> QueueLimit, |value| *value;
    /// Returns the queue limit of a link.
    link_queue_limit: LinkQueueLimit -> LinkQueueLimit, |value| *value;
    /// Returns the chosen name.
    choice: Choice -> &'static str, |value| value;
    /// Returns the table.
    table: Table -> &Tree, |value| value;
    /// Returns the tables.
    tables: Tables -> &[Tree], |value| value;
    /// Returns the values.
    list: List -> &[Value], |value| value;
    /// Returns the named values.
    map: Map -> &[NamedValue], |value| value;
    /// Returns the TOML value.
    raw: Raw -> &Node, |value| value;
}

impl Tree {
    /// Creates an empty table at a place.
    pub fn empty_at(place: SourceLocation) -> Self {
        Tree { place, fields: Vec::new() }
    }

    /// Returns the value of a key; `None` if the key is absent.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.fields.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Returns a mutable reference to the value of a key; `None` if the key is absent.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.fields.iter_mut().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Returns a mutable reference to the table of a key; `None` if the key is absent or is not a table.
    pub fn table_mut(&mut self, key: &str) -> Option<&mut Tree> {
        match &mut self.get_mut(key)?.data {
            ValueData::Table(tree) => Some(tree),
            _ => None,
        }
    }

    /// Returns a mutable reference to the array of tables of a key; empty if the key is absent.
    pub fn tables_mut(&mut self, key: &str) -> &mut [Tree] {
        match self.get_mut(key).map(|value| &mut value.data) {
            Some(ValueData::Tables(tables)) => tables,
            _ => &mut [],
        }
    }

    /// Returns whether the file or an override contains the key.
    pub fn is_given(&self, key: &str) -> bool {
        self.get(key).is_some_and(|value| value.given)
    }

    /// Returns the place of a key's value, or of the table if the key is absent.
    pub fn location_of(&self, key: &str) -> SourceLocation {
        self.get(key).map_or(self.place, |value| value.place)
    }

    pub(crate) fn required(&self, key: &str) -> &Value {
        self.get(key)
            .unwrap_or_else(|| panic!("the key {key} is absent; the schema permits this, but the program requires it"))
    }

    /// Sets the value of a key, replacing any existing value.
    pub fn set(&mut self, key: &'static str, value: Value) {
        match self.get_mut(key) {
            Some(old) => *old = value,
            None => self.fields.push((key, value)),
        }
    }

    /// Sets the value of a key if the key is absent, for a default that depends on other values.
    pub fn fill(&mut self, key: &'static str, data: ValueData) {
        if self.get(key).is_none() {
            let place = self.place;
            self.fields.push((key, Value { data, place, given: false }));
        }
    }

    /// Removes a key and returns its value; `None` if the key is absent.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.fields.iter().position(|(name, _)| *name == key)?;
        Some(self.fields.remove(at).1)
    }

    /// Returns the keys with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.fields.iter().map(|(key, value)| (*key, value))
    }
}
