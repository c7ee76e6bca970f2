//! Settings that a file states in a table, such as those of a transport. One table applies to all flows, and a table
//! within a `[[flow]]` applies to that flow.
//!
//! Each key is declared once, together with the corresponding field of the settings ([`SettingKey`],
//! [`at!`](crate::at!)). The default values of the settings are therefore the defaults of the keys, and reading a table
//! is always consistent with writing it. The value is the first that exists of: the flow's own key, the key in the
//! table for all flows, the default.
//!
//! ```
//! use fullpipe_schema::component::{SettingsReader, choices};
//! use fullpipe_schema::settings::{SettingKey, SettingsTable, fields};
//! use fullpipe_schema::{
//!     Choice, Diagnostics, FieldKind, SourceLocation, Table, at, load, render_reference, resolved_toml, setting_keys,
//! };
//! use fullpipe_units::Duration;
//!
//! #[derive(Clone, Copy, Debug, PartialEq)]
//! enum Order {
//!     First,
//!     Last,
//! }
//! #[derive(Debug, PartialEq)]
//! struct Server {
//!     wait: Duration,
//!     order: Order,
//!     limit: Option<u32>,
//! }
//! impl Default for Server {
//!     fn default() -> Server {
//!         Server { wait: Duration::from_millis(3), order: Order::First, limit: None }
//!     }
//! }
//! static ORDER: [(Choice, Order); 2] =
//!     [(Choice::new("first", "the oldest."), Order::First), (Choice::new("last", "the newest."), Order::Last)];
//! static KEYS: [SettingKey<Server>; 3] = setting_keys! {
//!     /// How long.
//!     "wait": FieldKind::DURATION, setting => at!(wait);
//!     /// What goes first.
//!     "order": FieldKind::Choice(&choices(&ORDER)), setting => at!(order, ORDER);
//!     /// How many.
//!     "limit": FieldKind::integer(1, 9), optional "none" => at!(limit);
//! };
//! static SERVER: Table = Table {
//!     name: "server",
//!     fields: &[&fields(&KEYS)],
//!     defaults: Some(|| SETTINGS.defaults(SourceLocation::default())),
//!     ..Table::EMPTY
//! };
//! static SETTINGS: SettingsTable<Server> = SettingsTable { table: &SERVER, keys: &[&KEYS] };
//!
//! let loaded = load(&SERVER, "order = 'last'\nlimit = 5", "server.toml", &[]).unwrap();
//! let mut server = loaded.root.clone();
//! SETTINGS.fill(&mut server, None, |_| true);
//! let mut check = Diagnostics::new(&loaded.sources);
//! let settings = SETTINGS.read(&mut SettingsReader { tree: &server, path: "", check: &mut check }).unwrap();
//! assert_eq!(settings, Server { order: Order::Last, limit: Some(5), ..Server::default() });
//! assert_eq!(SETTINGS.write(&settings), server);
//! assert_eq!(resolved_toml(&SERVER, &SETTINGS.defaults(SourceLocation::default())), "wait = \"3ms\"\norder = \"first\"\n");
//! assert!(render_reference(&SERVER).contains("| `wait` | duration | `\"3ms\"` | How long. |"));
//! ```

use crate::component::{InvalidSettings, SettingsReader};
use crate::{Choice, Field, FieldKind, SourceLocation, Table, Tree, Value, ValueData};
use fullpipe_units::{Duration, QueueLimit};
use std::fmt;

/// A key of settings of type `S`: its declaration and the corresponding field.
pub struct SettingKey<S: 'static> {
    /// The declaration.
    pub field: Field,
    /// Reads and writes the field.
    pub access: FieldAccess<S>,
}

impl<S> SettingKey<S> {
    /// Creates a key whose default is the default value of the settings.
    pub const fn setting(key: &'static str, kind: FieldKind, text: &'static str, access: FieldAccess<S>) -> Self {
        SettingKey { field: Field::setting(key, kind, text), access }
    }

    /// Sets the unit.
    pub const fn with_unit(self, unit: &'static str) -> Self {
        SettingKey { field: self.field.with_unit(unit), access: self.access }
    }
}

/// The functions that read and write a field of settings of type `S` for a key ([`at!`](crate::at!)).
#[derive(Clone, Copy, Debug)]
pub struct FieldAccess<S: 'static> {
    /// Returns the value of the key for these settings, as a file states it. `None` if a file with these settings does
    /// not contain the key.
    pub get: fn(&S, &FieldKind) -> Option<ValueData>,
    /// Sets the field to the value in a file; `None` if the key is absent from the file.
    pub set: fn(&mut S, Option<&Value>),
}

/// A list of [`SettingKey`]s, in the syntax of [`keys!`](crate::keys!) with the [`FieldAccess`] after `=>`. The list
/// can also contain constants of type [`SettingKey`].
#[macro_export]
macro_rules! setting_keys {
    (@ [$($keys:tt)*]) => { [$($keys)*] };
    (@ [$($keys:tt)*] $(#[doc = $text:literal])+ $key:literal $([$unit:literal])?: $kind:expr, $make:ident $($value:expr)?
     => $access:expr; $($rest:tt)*) => {
        $crate::setting_keys!(
            @ [$($keys)* $crate::settings::SettingKey {
                field: $crate::Field::$make($key, $kind, $($value,)? $crate::join_doc_lines(concat!($($text),+)))$(.with_unit($unit))?,
                access: $access,
            },]
            $($rest)*
        )
    };
    (@ [$($keys:tt)*] $key:expr; $($rest:tt)*) => { $crate::setting_keys!(@ [$($keys)* $key,] $($rest)*) };
    ($($items:tt)*) => { $crate::setting_keys!(@ [] $($items)*) };
}

/// The [`FieldAccess`] to the field at a path of the settings. If the field's values are names in the file, the second
/// argument is the list of these names and their values ([`choices`](crate::component::choices)).
#[macro_export]
macro_rules! at {
    ($($path:ident).+) => {
        $crate::settings::FieldAccess {
            get: |settings, kind| $crate::settings::SettingValue::to_data(&settings.$($path).+, kind),
            set: |settings, value| $crate::settings::SettingValue::assign(&mut settings.$($path).+, value),
        }
    };
    ($($path:ident).+, $names:expr) => {
        $crate::settings::FieldAccess {
            get: |settings, _| $crate::settings::choice_name(&settings.$($path).+, &$names),
            set: |settings, value| $crate::settings::set_from_choice(&mut settings.$($path).+, value, &$names),
        }
    };
}

/// A type of a field of settings whose values a file can contain.
pub trait SettingValue: Sized {
    /// Converts a value of a file.
    fn from_value(value: &Value) -> Self;

    /// Returns the value as a file states it, for a key of this kind. `None` if a file with this value does not contain
    /// the key.
    fn to_data(&self, kind: &FieldKind) -> Option<ValueData>;

    /// Sets the field to a value of a file. If the key is absent, the field is unchanged.
    fn assign(&mut self, value: Option<&Value>) {
        if let Some(value) = value {
            *self = Self::from_value(value);
        }
    }
}

/// A key that may be absent.
impl<T: SettingValue> SettingValue for Option<T> {
    fn from_value(value: &Value) -> Self {
        Some(T::from_value(value))
    }

    fn to_data(&self, kind: &FieldKind) -> Option<ValueData> {
        self.as_ref()?.to_data(kind)
    }

    fn assign(&mut self, value: Option<&Value>) {
        *self = value.map(T::from_value);
    }
}

macro_rules! settings {
    ($($type:ty: $read:ident, $variant:ident;)*) => {$(
        impl SettingValue for $type {
            fn from_value(value: &Value) -> Self {
                value.$read()
            }

            fn to_data(&self, _: &FieldKind) -> Option<ValueData> {
                Some(ValueData::$variant(*self))
            }
        }
    )*};
}

settings! {
    bool: boolean, Boolean;
    f64: number, Number;
    Duration: duration, Duration;
    QueueLimit: queue_limit, QueueLimit;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        /// An integer or a size; the kind's bounds keep it within the type.
        impl SettingValue for $type {
            fn from_value(value: &Value) -> Self {
                match value.data {
                    ValueData::Size(bytes) => <$type>::try_from(bytes).unwrap_or(<$type>::MAX),
                    _ => <$type>::try_from(value.integer()).unwrap_or(<$type>::MAX),
                }
            }

            fn to_data(&self, kind: &FieldKind) -> Option<ValueData> {
                Some(match kind {
                    FieldKind::Size { .. } => ValueData::Size(u64::try_from(*self).unwrap_or(u64::MAX)),
                    _ => ValueData::Integer(i64::try_from(*self).unwrap_or(i64::MAX)),
                })
            }
        }
    )*};
}

integers! { u16 u32 u64 usize }

/// A text, or one of the names of the kind.
impl SettingValue for String {
    fn from_value(value: &Value) -> Self {
        match &value.data {
            ValueData::Choice(name) => (*name).to_string(),
            _ => value.text().to_string(),
        }
    }

    fn to_data(&self, kind: &FieldKind) -> Option<ValueData> {
        match kind {
            FieldKind::Choice(list) => {
                list.iter().find(|choice| choice.name == self).map(|choice| ValueData::Choice(choice.name))
            }
            _ => Some(ValueData::Text(self.clone())),
        }
    }
}

/// Returns the name of a value; `None` if the list does not contain the value.
pub fn choice_name<T: PartialEq>(value: &T, names: &[(Choice, T)]) -> Option<ValueData> {
    names.iter().find(|(_, other)| other == value).map(|(choice, _)| ValueData::Choice(choice.name))
}

/// Sets the field to the value of a name. If the key is absent, the field is unchanged.
///
/// # Panics
/// If the list ([`choices`](crate::component::choices)) does not contain the name.
pub fn set_from_choice<T: Clone>(field: &mut T, value: Option<&Value>, names: &[(Choice, T)]) {
    if let Some(value) = value {
        *field = value.choice_value(names);
    }
}

/// Returns the fields of `keys`, for the declaration of a table.
pub const fn fields<S, const N: usize>(keys: &[SettingKey<S>; N]) -> [Field; N] {
    let mut list = [Field::empty("", FieldKind::Raw, ""); N];
    let mut n = 0;
    while n < N {
        list[n] = keys[n].field;
        n += 1;
    }
    list
}

/// Keys of settings of type `S`, or of a part of these settings.
pub trait SettingKeys<S>: Sync {
    /// Returns the declarations of the keys.
    fn fields(&self) -> Vec<Field>;

    /// Writes these settings into the tree: every key that has a value.
    fn write(&self, settings: &S, tree: &mut Tree);

    /// Sets every field to the value in a checked table.
    ///
    /// # Errors
    /// [`InvalidSettings`] if keys contradict each other.
    fn read(&self, settings: &mut S, reader: &mut SettingsReader<'_, '_>) -> Result<(), InvalidSettings>;
}

impl<S, const N: usize> SettingKeys<S> for [SettingKey<S>; N] {
    fn fields(&self) -> Vec<Field> {
        fields(self).to_vec()
    }

    fn write(&self, settings: &S, tree: &mut Tree) {
        for key in self {
            if let Some(data) = (key.access.get)(settings, &key.field.kind) {
                tree.fill(key.field.key, data);
            }
        }
    }

    fn read(&self, settings: &mut S, reader: &mut SettingsReader<'_, '_>) -> Result<(), InvalidSettings> {
        self.iter().for_each(|key| (key.access.set)(settings, reader.tree.get(key.field.key)));
        Ok(())
    }
}

/// Keys of a part `P` of settings of type `S`, such as settings that another crate declares.
pub struct SettingsPart<S: 'static, P: 'static> {
    /// The keys.
    pub keys: &'static dyn SettingKeys<P>,
    /// Returns a reference to the part.
    pub get: fn(&S) -> &P,
    /// Returns a mutable reference to the part.
    pub get_mut: fn(&mut S) -> &mut P,
}

impl<S, P> SettingKeys<S> for SettingsPart<S, P> {
    fn fields(&self) -> Vec<Field> {
        self.keys.fields()
    }

    fn write(&self, settings: &S, tree: &mut Tree) {
        self.keys.write((self.get)(settings), tree);
    }

    fn read(&self, settings: &mut S, reader: &mut SettingsReader<'_, '_>) -> Result<(), InvalidSettings> {
        self.keys.read((self.get_mut)(settings), reader)
    }
}

/// A table of settings of type `S`.
pub struct SettingsTable<S: 'static> {
    /// The table.
    pub table: &'static Table,
    /// Its keys with the corresponding fields.
    pub keys: &'static [&'static dyn SettingKeys<S>],
}

impl<S> fmt::Debug for SettingsTable<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(formatter)
    }
}

impl<S> SettingsTable<S> {
    /// Returns the table that states these settings. It has no place in a file.
    pub fn write(&self, settings: &S) -> Tree {
        let mut tree = Tree::default();
        self.fill_from(&mut tree, settings);
        tree
    }

    /// Fills in every absent key of a table from these settings.
    pub fn fill_from(&self, tree: &mut Tree, settings: &S) {
        self.keys.iter().for_each(|keys| keys.write(settings, tree));
    }
}

impl<S: Default> SettingsTable<S> {
    /// Fills in every absent key. The value is that of `inherited` if `inherited` has the key and `takes` accepts it;
    /// otherwise it is the default.
    pub fn fill(&self, tree: &mut Tree, inherited: Option<&Tree>, takes: impl Fn(&str) -> bool) {
        if let Some(inherited) = inherited {
            for (key, value) in inherited.iter().filter(|(key, _)| takes(key)) {
                tree.fill(key, value.data.clone());
            }
        }
        self.fill_from(tree, &S::default());
    }

    /// Returns a table in which every key has its default.
    pub fn defaults(&self, place: SourceLocation) -> Tree {
        let mut tree = Tree::empty_at(place);
        self.fill(&mut tree, None, |_| true);
        tree
    }

    /// Returns the table for all flows in the file `root`, with defaults filled in.
    pub fn common_settings(&self, root: &Tree) -> Tree {
        let Some(ValueData::Table(given)) = root.get(self.table.name).map(|value| &value.data) else {
            return self.defaults(root.place);
        };
        let mut tree = given.clone();
        self.fill(&mut tree, None, |_| true);
        tree
    }

    /// Returns the settings that a filled table states.
    ///
    /// # Errors
    /// [`InvalidSettings`] if keys contradict each other.
    pub fn read(&self, reader: &mut SettingsReader<'_, '_>) -> Result<S, InvalidSettings> {
        let mut settings = S::default();
        self.keys.iter().try_for_each(|keys| keys.read(&mut settings, reader))?;
        Ok(settings)
    }
}
