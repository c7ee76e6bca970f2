//! JSON records: objects whose keys are declared once, with type, unit and text. Writing, reading and documentation
//! follow from the declaration.

use crate::error::shorten;
use serde_json::{Map, Value};

/// A type of values in a JSON record.
pub trait JsonValue: Sized {
    /// Name of the type, for messages and documentation: "a count".
    const TYPE: &'static str;

    /// Converts the value to a JSON value; `None` omits the key.
    fn to_json(&self) -> Option<Value>;

    /// Reads the value of the key at `path`.
    ///
    /// # Errors
    /// A clause that begins with the path and states what was expected and what was found.
    fn from_json(value: &Value, path: &str) -> Result<Self, String>;

    /// Returns the value if the key is missing; `None` if the key is required.
    fn from_missing() -> Option<Self> {
        None
    }

    /// Returns the keys of the type, if it is an object or an array of objects.
    fn keys() -> Vec<JsonKey> {
        Vec::new()
    }
}

/// The declaration of a key, for documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonKey {
    /// Dotted path from the root of the record.
    pub path: String,
    /// Name of the type of the value.
    pub kind: &'static str,
    /// Unit of the value; empty if it has none.
    pub unit: &'static str,
    /// Meaning of the key.
    pub text: &'static str,
    /// Whether the key may be missing.
    pub is_optional: bool,
}

/// Declares a JSON object. Each key has a name, a type, a unit and a sentence. The fields of the struct have the names
/// of the keys.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        pub struct $Record:ident;
        $($key:ident: $Type:ty, $unit:literal, $text:literal;)+
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct $Record {
            $(#[doc = $text] pub $key: $Type,)+
        }

        impl $crate::json::JsonValue for $Record {
            const TYPE: &'static str = "an object";

            fn to_json(&self) -> Option<serde_json::Value> {
                let mut object = serde_json::Map::new();
                $(object.extend(self.$key.to_json().map(|value| (stringify!($key).to_owned(), value)));)+
                Some(serde_json::Value::Object(object))
            }

            fn from_json(value: &serde_json::Value, path: &str) -> Result<Self, String> {
                let object = $crate::json::object(value, path)?;
                Ok($Record { $($key: $crate::json::field(object, path, stringify!($key))?,)+ })
            }

            fn keys() -> Vec<$crate::json::JsonKey> {
                let mut keys = Vec::new();
                $($crate::json::declare::<$Type>(&mut keys, stringify!($key), $unit, $text);)+
                keys
            }
        }
    };
}
pub(crate) use record;

pub(crate) fn object<'a>(value: &'a Value, path: &str) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| unexpected(path, "an object", value))
}

pub(crate) fn field<T: JsonValue>(object: &Map<String, Value>, path: &str, key: &str) -> Result<T, String> {
    let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match object.get(key) {
        Some(value) => T::from_json(value, &path),
        None => T::from_missing().ok_or_else(|| format!("has no `{path}`")),
    }
}

pub(crate) fn declare<T: JsonValue>(keys: &mut Vec<JsonKey>, key: &str, unit: &'static str, text: &'static str) {
    keys.push(JsonKey { path: key.to_owned(), kind: T::TYPE, unit, text, is_optional: T::from_missing().is_some() });
    keys.extend(T::keys().into_iter().map(|below| JsonKey { path: format!("{key}.{}", below.path), ..below }));
}

fn unexpected(path: &str, expected: &str, found: &Value) -> String {
    let found = shorten(&found.to_string());
    if path.is_empty() {
        format!("expected {expected}, found {found}")
    } else {
        format!("`{path}`: expected {expected}, found {found}")
    }
}

/// Implements [`JsonValue`] for types with a direct equivalent in JSON.
macro_rules! plain {
    ($($Type:ty, $text:literal, $read:expr;)+) => {$(
        impl JsonValue for $Type {
            const TYPE: &'static str = $text;

            fn to_json(&self) -> Option<Value> {
                Some(Value::from(self.clone()))
            }

            fn from_json(value: &Value, path: &str) -> Result<Self, String> {
                let read: fn(&Value) -> Option<$Type> = $read;
                read(value).ok_or_else(|| unexpected(path, $text, value))
            }
        }
    )+};
}

plain! {
    bool, "a boolean", Value::as_bool;
    u64, "a count", Value::as_u64;
    f64, "a number", |value| value.as_f64().filter(|number| number.abs() <= crate::value::LARGEST);
    String, "a string", |value| value.as_str().map(str::to_owned);
}

/// `None` omits the key. Null is read as `None`, unless `T` itself accepts null.
impl<T: JsonValue> JsonValue for Option<T> {
    const TYPE: &'static str = T::TYPE;

    fn to_json(&self) -> Option<Value> {
        self.as_ref()?.to_json()
    }

    fn from_json(value: &Value, path: &str) -> Result<Self, String> {
        if value.is_null() && T::from_missing().is_none() { Ok(None) } else { T::from_json(value, path).map(Some) }
    }

    fn from_missing() -> Option<Self> {
        Some(None)
    }

    fn keys() -> Vec<JsonKey> {
        T::keys()
    }
}

/// An optional value; `None` is written as null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nullable<T>(pub Option<T>);

impl<T: JsonValue> JsonValue for Nullable<T> {
    const TYPE: &'static str = T::TYPE;

    fn to_json(&self) -> Option<Value> {
        self.0.as_ref().map_or(Some(Value::Null), T::to_json)
    }

    fn from_json(value: &Value, path: &str) -> Result<Self, String> {
        Option::from_json(value, path).map(Nullable)
    }

    fn from_missing() -> Option<Self> {
        Some(Nullable(None))
    }

    fn keys() -> Vec<JsonKey> {
        T::keys()
    }
}

impl<T: JsonValue> JsonValue for Vec<T> {
    const TYPE: &'static str = "an array";

    fn to_json(&self) -> Option<Value> {
        Some(self.iter().filter_map(T::to_json).collect())
    }

    fn from_json(value: &Value, path: &str) -> Result<Self, String> {
        let list = value.as_array().ok_or_else(|| unexpected(path, Self::TYPE, value))?;
        let items = list.iter().enumerate();
        items.map(|(number, item)| T::from_json(item, &format!("{path}[{number}]"))).collect()
    }

    fn keys() -> Vec<JsonKey> {
        T::keys()
    }
}

/// Counts with names, in the order in which they were added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedCounts(pub Vec<(String, u64)>);

impl JsonValue for NamedCounts {
    const TYPE: &'static str = "counts by name";

    fn to_json(&self) -> Option<Value> {
        Some(Value::Object(self.0.iter().map(|(name, count)| (name.clone(), Value::from(*count))).collect()))
    }

    fn from_json(value: &Value, path: &str) -> Result<Self, String> {
        let counts = object(value, path)?.iter();
        let count = |(name, count)| Ok((String::clone(name), u64::from_json(count, &format!("{path}.{name}"))?));
        counts.map(count).collect::<Result<_, String>>().map(NamedCounts)
    }
}
