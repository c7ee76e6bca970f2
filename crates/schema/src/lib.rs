//! Declared file formats. A schema is data: keys, kinds, units, defaults and texts. From a schema this crate derives
//! the check of a file, its error messages, the typed values, and the resolved file with all defaults. It also derives
//! overrides by dotted path, the reference page, and a JSON Schema for editors.
//!
//! ```
//! use fullpipe_schema::{self as schema, FieldKind, Table, keys};
//!
//! static LINK: Table = Table {
//!     name: "link",
//!     text: "A link.",
//!     fields: &[keys! {
//!         /// Bit rate.
//!         "rate": FieldKind::RATE, required;
//!         /// Propagation delay.
//!         "delay": FieldKind::DURATION, default "1ms";
//!     }],
//!     ..Table::EMPTY
//! };
//! let link = schema::load(&LINK, "rate = '10Mbit/s'", "link.toml", &[]).unwrap();
//! assert_eq!(link.root.rate("rate").bits_per_second(), 10_000_000);
//! assert_eq!(schema::resolved_toml(&LINK, &link.root), "rate = \"10Mbit/s\"\ndelay = \"1ms\"\n");
//!
//! let errors = schema::load(&LINK, "rat = '10Mbit/s'\nrate = '10Mbot/s'", "link.toml", &[]).unwrap_err();
//! assert!(errors.0[0].to_string().starts_with("link.toml:1:1: rat is not a key of a link"));
//! assert_eq!(errors.0[1].suggestion.as_deref(), Some("\"10Mbit/s\""));
//! ```

pub mod check;
pub mod component;
pub mod distributions;
pub mod error;
mod json_schema;
mod load;
pub mod metric;
pub mod node;
mod overrides;
mod pattern;
pub mod quantity;
mod reference;
mod resolve;
pub mod settings;
pub mod tree;
mod walk;

pub use check::Diagnostics;
pub use error::{Error, Errors, Hint, abbreviate_names, nearest_name};
pub use json_schema::json_schema;
pub use load::{LoadedFile, load, parse};
pub use node::{Entry, Node, NodeContent, Override, SourceLocation, Sources};
pub use pattern::{compare_natural, is_pattern, matches};
pub use reference::{describe_kind, render_reference};
pub use resolve::{format_inline, resolved_toml};
pub use settings::SettingsTable;
pub use tree::{NamedValue, Tree, Value, ValueData};
pub use walk::{is_name, parse_default};

use fullpipe_units::{Duration, Rate};

/// The longest duration that a file may contain: 10^8 s, more than three years. The sum of a few such durations is far
/// below 2^64 ns, so it cannot overflow.
pub const MAX_DURATION: Duration = Duration::from_secs(100_000_000);
/// The highest rate that a file may contain: 1000 Tbit/s.
pub const MAX_RATE: Rate = Rate::from_bits_per_second(1_000_000_000_000_000);
/// The largest size that a file may contain: 10^18 bytes.
pub const MAX_SIZE: u64 = 1_000_000_000_000_000_000;
/// The largest number of elements of a list in a file.
pub const MAX_LIST_LENGTH: usize = 1_000_000;

/// The values that a field accepts.
#[derive(Clone, Copy, Debug)]
pub enum FieldKind {
    /// Any text.
    Text,
    /// A name: a letter, then letters, digits, `-` and `_`; at most 64 characters.
    Name,
    /// `true` or `false`.
    Boolean,
    /// An integer within bounds.
    Integer {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// A finite number within bounds.
    Number {
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A duration within bounds, such as "10ms".
    Duration {
        /// Shortest duration.
        min: Duration,
        /// Longest duration.
        max: Duration,
    },
    /// A rate from 1 bit/s to [`MAX_RATE`], such as "100Mbit/s".
    Rate,
    /// A size within bounds: a quantity such as "250kB", or an integer number of bytes.
    Size {
        /// Smallest size.
        min: u64,
        /// Largest size.
        max: u64,
    },
    /// A queue limit such as "100packets", "250kB", "100ms" or "unlimited"; zero is rejected.
    QueueLimit,
    /// The queue limit of a link: a queue limit, or a multiple of its bandwidth-delay product such as "2BDP"; zero is
    /// rejected.
    LinkQueueLimit,
    /// One of several names.
    Choice(&'static [Choice]),
    /// A table.
    Table(&'static Table),
    /// An array of tables.
    Tables(&'static Table),
    /// An array of at most [`MAX_LIST_LENGTH`] values of one kind.
    List(&'static FieldKind),
    /// A table whose keys are chosen by the author of the file.
    Map(&'static FieldKind),
    /// The first kind if it accepts the TOML type of the value, otherwise the second kind.
    Either(&'static FieldKind, &'static FieldKind),
    /// Any TOML value.
    Raw,
}

impl FieldKind {
    /// Any duration up to [`MAX_DURATION`].
    pub const DURATION: FieldKind = FieldKind::duration(Duration::ZERO, MAX_DURATION);
    /// A number, or a quantity with a unit, such as "20Mbit/s". Another key defines the kind of the quantity.
    pub const NUMBER_OR_QUANTITY: FieldKind =
        FieldKind::Either(&FieldKind::number(f64::NEG_INFINITY, f64::INFINITY), &FieldKind::Text);
    /// A duration that is not zero, at most [`MAX_DURATION`].
    pub const INTERVAL: FieldKind = FieldKind::duration(Duration::from_nanos(1), MAX_DURATION);
    /// A rate.
    pub const RATE: FieldKind = FieldKind::Rate;
    /// A size that is not zero, at most [`MAX_SIZE`].
    pub const SIZE: FieldKind = FieldKind::size(1, MAX_SIZE);
    /// A probability: a number from 0 to 1.
    pub const PROBABILITY: FieldKind = FieldKind::number(0.0, 1.0);

    /// Returns the kind of integers within bounds.
    pub const fn integer(min: i64, max: i64) -> FieldKind {
        FieldKind::Integer { min, max }
    }

    /// Returns the kind of finite numbers within bounds.
    pub const fn number(min: f64, max: f64) -> FieldKind {
        FieldKind::Number { min, max }
    }

    /// Returns the kind of durations within bounds.
    pub const fn duration(min: Duration, max: Duration) -> FieldKind {
        FieldKind::Duration { min, max }
    }

    /// Returns the kind of sizes in bytes within bounds.
    pub const fn size(min: u64, max: u64) -> FieldKind {
        FieldKind::Size { min, max }
    }
}

/// One name of a [`FieldKind::Choice`].
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The name.
    pub name: &'static str,
    /// The meaning of the name, for the reference page.
    pub text: &'static str,
    /// Whether this version implements the name. If it does not, the name is reserved for a later version, and its use
    /// is an error with its own message.
    pub available: bool,
}

impl Choice {
    /// Creates an available name.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Choice { name, text, available: true }
    }

    /// Creates a name that is reserved for a later version.
    pub const fn reserved(name: &'static str) -> Self {
        Choice { name, text: "", available: false }
    }
}

/// The value of a field that is absent from a file.
#[derive(Clone, Copy, Debug)]
pub enum DefaultValue {
    /// There is no such value: the field is required.
    Required,
    /// This value. For texts, names, choices and quantities, the string is the content of the TOML string. For other
    /// kinds it is TOML, such as `true`, `5`, `0.5` or `[]`.
    Value(&'static str),
    /// An empty table, array of tables, map or list. The fields of an empty table have their defaults.
    Empty,
    /// The field is absent from the tree. The string describes the effect, for example that the program derives the
    /// value from other fields.
    Absent(&'static str),
    /// The field is absent from the tree until the program fills it in ([`SettingsTable`]). A table of one flow
    /// inherits the value from the table for all flows. Otherwise the value is this one.
    Inherited(&'static str),
    /// The field is absent from the tree until the program fills in the default value of the table's settings
    /// ([`Table::defaults`]).
    Setting,
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key.
    pub key: &'static str,
    /// The values that it accepts.
    pub kind: FieldKind,
    /// Its value if it is absent from the file.
    pub default: DefaultValue,
    /// Its unit, such as "segments", if the value is written without a unit; otherwise empty.
    pub unit: &'static str,
    /// Its meaning, for the reference page.
    pub text: &'static str,
    /// Former spellings of the key, which a file may still use. Each one causes a [`Hint`] and no error.
    pub former: &'static [FormerKey],
}

/// A former spelling of a key.
#[derive(Clone, Copy, Debug)]
pub struct FormerKey {
    /// The former spelling.
    pub key: &'static str,
    /// Converts a value of the former key into a value of the current key. It returns values that the former key did
    /// not accept unchanged; the check of the current key then reports an error.
    pub value: fn(&NodeContent) -> NodeContent,
}

impl Field {
    /// Creates a required field.
    pub const fn required(key: &'static str, kind: FieldKind, text: &'static str) -> Self {
        Field { key, kind, default: DefaultValue::Required, unit: "", text, former: &[] }
    }

    /// Creates a field with a default value.
    pub const fn default(key: &'static str, kind: FieldKind, value: &'static str, text: &'static str) -> Self {
        Field { key, kind, default: DefaultValue::Value(value), unit: "", text, former: &[] }
    }

    /// Creates a field for a table, array of tables, map or list that is empty if it is absent from the file.
    pub const fn empty(key: &'static str, kind: FieldKind, text: &'static str) -> Self {
        Field { key, kind, default: DefaultValue::Empty, unit: "", text, former: &[] }
    }

    /// Creates a field that may be absent; `absent` describes the effect of its absence.
    pub const fn optional(key: &'static str, kind: FieldKind, absent: &'static str, text: &'static str) -> Self {
        Field { key, kind, default: DefaultValue::Absent(absent), unit: "", text, former: &[] }
    }

    /// Creates a field that a table of one flow inherits from the table for all flows ([`DefaultValue::Inherited`]).
    /// `value` is the default.
    pub const fn inherited(key: &'static str, kind: FieldKind, value: &'static str, text: &'static str) -> Self {
        Field { key, kind, default: DefaultValue::Inherited(value), unit: "", text, former: &[] }
    }

    /// Creates a field whose default is the default value of the table's settings ([`Table::defaults`]).
    pub const fn setting(key: &'static str, kind: FieldKind, text: &'static str) -> Self {
        Field { key, kind, default: DefaultValue::Setting, unit: "", text, former: &[] }
    }

    /// Sets the former spellings of the key.
    pub const fn with_former_keys(mut self, former: &'static [FormerKey]) -> Self {
        self.former = former;
        self
    }

    /// Returns whether the current or a former spelling of the key is `key`.
    pub(crate) fn is_named(&self, key: &str) -> bool {
        self.key == key || self.former.iter().any(|former| former.key == key)
    }

    /// Sets the unit.
    pub const fn with_unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }
}

/// A group of [`Field`]s of a [`Table`]. A declaration begins with the text as a doc comment, the key, and the unit in
/// brackets if there is one. The kind and a constructor of [`Field`] with its further arguments follow. The list can
/// also contain constants of type [`Field`].
///
/// ```
/// use fullpipe_schema::{Field, FieldKind, keys};
///
/// const NAME: Field = Field::required("name", FieldKind::Name, "Its name.");
/// const FIELDS: &[Field] = keys! {
///     NAME;
///     /// Transmission power; macro cells have
///     /// 43 to 46 dBm.
///     "power" ["dBm"]: FieldKind::Number { min: -100.0, max: 100.0 }, default "30.0";
///     /// Where it is.
///     "position": FieldKind::Text, optional "anywhere";
/// };
/// let texts = FIELDS.iter().map(|field| (field.key, field.unit, field.text));
/// let expected = [
///     ("name", "", "Its name."),
///     ("power", "dBm", "Transmission power; macro cells have 43 to 46 dBm."),
///     ("position", "", "Where it is."),
/// ];
/// assert!(texts.eq(expected));
/// ```
#[macro_export]
macro_rules! keys {
    (@ [$($fields:tt)*]) => { &[$($fields)*] };
    (@ [$($fields:tt)*] $(#[doc = $text:literal])+ $key:literal $([$unit:literal])?: $kind:expr, $make:ident $($value:expr)?;
     $($rest:tt)*) => {
        $crate::keys!(
            @ [$($fields)* $crate::Field::$make($key, $kind, $($value,)? $crate::join_doc_lines(concat!($($text),+)))$(.with_unit($unit))?,]
            $($rest)*
        )
    };
    (@ [$($fields:tt)*] $field:expr; $($rest:tt)*) => { $crate::keys!(@ [$($fields)* $field,] $($rest)*) };
    ($($items:tt)*) => { $crate::keys!(@ [] $($items)*) };
}

/// A list of [`Choice`]s with their values. A declaration consists of the text as a doc comment, the name, and the
/// value.
///
/// ```
/// use fullpipe_schema::{Choice, named};
///
/// static ORDER: [(Choice, bool); 2] = named! {
///     /// The oldest.
///     "first" => true;
///     /// The newest.
///     "last" => false;
/// };
/// assert_eq!((ORDER[0].0.name, ORDER[0].0.text, ORDER[1].1), ("first", "The oldest.", false));
/// ```
#[macro_export]
macro_rules! named {
    ($($(#[doc = $text:literal])+ $name:literal => $value:expr;)+) => {
        [$(($crate::Choice::new($name, $crate::join_doc_lines(concat!($($text),+))), $value)),+]
    };
}

/// Returns the text of a doc comment without the leading space of the first line.
#[doc(hidden)]
pub const fn join_doc_lines(lines: &'static str) -> &'static str {
    lines.trim_ascii_start()
}

/// A table of a file.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// The name of a table of this kind, for errors and headings, such as "link".
    pub name: &'static str,
    /// Description, for the reference page.
    pub text: &'static str,
    /// The keys of the table, in groups that several tables can share.
    pub fields: &'static [&'static [Field]],
    /// Further keys that depend on the value of one key; `None` if there are none.
    pub variants: Option<&'static Variants>,
    /// Keys that are reserved for later versions. Each one has its own error message.
    pub later: &'static [&'static str],
    /// Returns the default values of the fields with [`DefaultValue::Setting`] (see [`SettingsTable::defaults`]).
    /// `None` if there are no such fields.
    pub defaults: Option<fn() -> Tree>,
}

impl Table {
    /// An empty table, for struct update syntax.
    pub const EMPTY: Table = Table { name: "", text: "", fields: &[], variants: None, later: &[], defaults: None };

    /// Returns the fields that do not depend on the variant.
    pub fn common_fields(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().flat_map(|group| group.iter())
    }
}

/// A key whose value selects the further keys of a table.
#[derive(Clone, Copy, Debug)]
pub struct Variants {
    /// The selecting key.
    pub key: &'static str,
    /// The default value of the selecting key; `None` if the key is required.
    pub default: Option<&'static str>,
    /// The meaning of the selection, for the reference page.
    pub text: &'static str,
    /// The values of the selecting key.
    pub list: &'static [Variant],
    /// Values that are reserved for later versions.
    pub later: &'static [&'static str],
}

/// One value of the selecting key, and the further keys that it adds.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The value of the selecting key.
    pub name: &'static str,
    /// The meaning of the value, for the reference page.
    pub text: &'static str,
    /// The further keys, in groups that several variants can share.
    pub fields: &'static [&'static [Field]],
}

impl Variant {
    /// Creates a variant with this name, text and further keys.
    pub const fn new(name: &'static str, text: &'static str, fields: &'static [&'static [Field]]) -> Self {
        Variant { name, text, fields }
    }

    /// Returns the fields of this variant only.
    pub fn fields(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().flat_map(|group| group.iter())
    }
}

impl Variants {
    /// Returns the variant with this name; `None` if there is none.
    pub fn find(&self, name: &str) -> Option<&'static Variant> {
        self.list.iter().find(|variant| variant.name == name)
    }
}
