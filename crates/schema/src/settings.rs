//! Settings that a table of a file states, such as those of a transport: one for all flows, and one after a `[[flow]]`
//! for that one.
//!
//! Each key is declared once, together with the field of the settings that it stands for ([`Key`], [`at!`](crate::at!)).
//! The settings' own default values are therefore the defaults of the keys, and reading a table and writing one cannot
//! differ. Where a value comes from, first found wins: the flow's own key, the key in the table for all, the default.
//!
//! ```
//! use fullpipe_schema::component::{Reader, choices};
//! use fullpipe_schema::settings::{Key, SettingsTable, fields};
//! use fullpipe_schema::{Check, Choice, Kind, Place, Table, at, load, reference, resolved, setting_keys};
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
//! static KEYS: [Key<Server>; 3] = setting_keys! {
//!     /// How long.
//!     "wait": Kind::DURATION, setting => at!(wait);
//!     /// What goes first.
//!     "order": Kind::Choice(&choices(&ORDER)), setting => at!(order, ORDER);
//!     /// How many.
//!     "limit": Kind::integer(1, 9), optional "none" => at!(limit);
//! };
//! static SERVER: Table = Table {
//!     name: "server",
//!     fields: &[&fields(&KEYS)],
//!     defaults: Some(|| SETTINGS.defaults(Place::default())),
//!     ..Table::EMPTY
//! };
//! static SETTINGS: SettingsTable<Server> = SettingsTable { table: &SERVER, keys: &[&KEYS] };
//!
//! let loaded = load(&SERVER, "order = 'last'\nlimit = 5", "server.toml", &[]).unwrap();
//! let mut server = loaded.root.clone();
//! SETTINGS.fill(&mut server, None, |_| true);
//! let mut check = Check::new(&loaded.sources);
//! let settings = SETTINGS.read(&mut Reader { tree: &server, path: "", check: &mut check }).unwrap();
//! assert_eq!(settings, Server { order: Order::Last, limit: Some(5), ..Server::default() });
//! assert_eq!(SETTINGS.write(&settings), server);
//! assert_eq!(resolved(&SERVER, &SETTINGS.defaults(Place::default())), "wait = \"3ms\"\norder = \"first\"\n");
//! assert!(reference(&SERVER).contains("| `wait` | duration | `\"3ms\"` | How long. |"));
//! ```

use crate::component::{Invalid, Reader};
use crate::{Choice, Data, Field, Kind, Place, Table, Tree, Value};
use fullpipe_units::{Duration, QueueLimit};
use std::fmt;

/// A key of settings of type `S`: what it declares, and the field that it stands for.
pub struct Key<S: 'static> {
    /// The declaration.
    pub field: Field,
    /// Gets and sets the field.
    pub access: Access<S>,
}

impl<S> Key<S> {
    /// A key that has the default value of the settings.
    pub const fn setting(key: &'static str, kind: Kind, text: &'static str, access: Access<S>) -> Self {
        Key { field: Field::setting(key, kind, text), access }
    }

    /// Sets the unit.
    pub const fn unit(self, unit: &'static str) -> Self {
        Key { field: self.field.unit(unit), access: self.access }
    }
}

/// How a key gets and sets a field of settings of type `S` ([`at!`](crate::at!)).
#[derive(Clone, Copy, Debug)]
pub struct Access<S: 'static> {
    /// What a file would say for these settings; `None`: the key would be absent.
    pub get: fn(&S, &Kind) -> Option<Data>,
    /// Sets the field to what a file says.
    pub set: fn(&mut S, Option<&Value>),
}

/// A list of [`Key`]s, as [`keys!`](crate::keys!) is one of fields: the [`Access`] follows after `=>`. Other keys stand for
/// themselves.
#[macro_export]
macro_rules! setting_keys {
    (@ [$($keys:tt)*]) => { [$($keys)*] };
    (@ [$($keys:tt)*] $(#[doc = $text:literal])+ $key:literal $([$unit:literal])?: $kind:expr, $make:ident $($value:expr)?
     => $access:expr; $($rest:tt)*) => {
        $crate::setting_keys!(
            @ [$($keys)* $crate::settings::Key {
                field: $crate::Field::$make($key, $kind, $($value,)? $crate::joined(concat!($($text),+)))$(.unit($unit))?,
                access: $access,
            },]
            $($rest)*
        )
    };
    (@ [$($keys:tt)*] $key:expr; $($rest:tt)*) => { $crate::setting_keys!(@ [$($keys)* $key,] $($rest)*) };
    ($($items:tt)*) => { $crate::setting_keys!(@ [] $($items)*) };
}

/// The [`Access`] to the field of settings at a path; a list of names and what each stands for
/// ([`choices`](crate::component::choices)) follows if its values are names.
#[macro_export]
macro_rules! at {
    ($($path:ident).+) => {
        $crate::settings::Access {
            get: |settings, kind| $crate::settings::Setting::write(&settings.$($path).+, kind),
            set: |settings, value| $crate::settings::Setting::assign(&mut settings.$($path).+, value),
        }
    };
    ($($path:ident).+, $names:expr) => {
        $crate::settings::Access {
            get: |settings, _| $crate::settings::named(&settings.$($path).+, &$names),
            set: |settings, value| $crate::settings::set_named(&mut settings.$($path).+, value, &$names),
        }
    };
}

/// A type of settings' fields whose values a file can state.
pub trait Setting: Sized {
    /// What a value of a file stands for.
    fn read(value: &Value) -> Self;

    /// What a file would say for it, where a key holds this kind of value; `None`: the key would be absent.
    fn write(&self, kind: &Kind) -> Option<Data>;

    /// Takes what a file says; a key that is absent changes nothing.
    fn assign(&mut self, value: Option<&Value>) {
        if let Some(value) = value {
            *self = Self::read(value);
        }
    }
}

/// A key that may be absent.
impl<T: Setting> Setting for Option<T> {
    fn read(value: &Value) -> Self {
        Some(T::read(value))
    }

    fn write(&self, kind: &Kind) -> Option<Data> {
        self.as_ref()?.write(kind)
    }

    fn assign(&mut self, value: Option<&Value>) {
        *self = value.map(T::read);
    }
}

macro_rules! settings {
    ($($type:ty: $read:ident, $variant:ident;)*) => {$(
        impl Setting for $type {
            fn read(value: &Value) -> Self {
                value.$read()
            }

            fn write(&self, _: &Kind) -> Option<Data> {
                Some(Data::$variant(*self))
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
        impl Setting for $type {
            fn read(value: &Value) -> Self {
                match value.data {
                    Data::Size(bytes) => <$type>::try_from(bytes).unwrap_or(<$type>::MAX),
                    _ => <$type>::try_from(value.integer()).unwrap_or(<$type>::MAX),
                }
            }

            fn write(&self, kind: &Kind) -> Option<Data> {
                Some(match kind {
                    Kind::Size { .. } => Data::Size(u64::try_from(*self).unwrap_or(u64::MAX)),
                    _ => Data::Integer(i64::try_from(*self).unwrap_or(i64::MAX)),
                })
            }
        }
    )*};
}

integers! { u16 u32 u64 usize }

/// A text, or one of the names that the kind lists.
impl Setting for String {
    fn read(value: &Value) -> Self {
        match &value.data {
            Data::Choice(name) => (*name).to_string(),
            _ => value.text().to_string(),
        }
    }

    fn write(&self, kind: &Kind) -> Option<Data> {
        match kind {
            Kind::Choice(list) => {
                list.iter().find(|choice| choice.name == self).map(|choice| Data::Choice(choice.name))
            }
            _ => Some(Data::Text(self.clone())),
        }
    }
}

/// The name that stands for a value.
pub fn named<T: PartialEq>(value: &T, names: &[(Choice, T)]) -> Option<Data> {
    names.iter().find(|(_, other)| other == value).map(|(choice, _)| Data::Choice(choice.name))
}

/// Takes what a name stands for; a key that is absent changes nothing.
///
/// # Panics
/// If the schema's choices are not those of the list ([`choices`](crate::component::choices)).
pub fn set_named<T: Clone>(field: &mut T, value: Option<&Value>, names: &[(Choice, T)]) {
    if let Some(value) = value {
        *field = value.chosen(names);
    }
}

/// The declarations of keys, for a table.
pub const fn fields<S, const N: usize>(keys: &[Key<S>; N]) -> [Field; N] {
    let mut list = [Field::empty("", Kind::Raw, ""); N];
    let mut n = 0;
    while n < N {
        list[n] = keys[n].field;
        n += 1;
    }
    list
}

/// Keys of settings of type `S`, or of a part of them.
pub trait Keys<S>: Sync {
    /// What they declare.
    fn fields(&self) -> Vec<Field>;

    /// Fills in every key that these settings state.
    fn write(&self, settings: &S, tree: &mut Tree);

    /// Sets every field to what a checked table says.
    ///
    /// # Errors
    /// If keys contradict each other.
    fn read(&self, settings: &mut S, reader: &mut Reader<'_, '_>) -> Result<(), Invalid>;
}

impl<S, const N: usize> Keys<S> for [Key<S>; N] {
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

    fn read(&self, settings: &mut S, reader: &mut Reader<'_, '_>) -> Result<(), Invalid> {
        self.iter().for_each(|key| (key.access.set)(settings, reader.tree.get(key.field.key)));
        Ok(())
    }
}

/// Keys of a part `P` of settings of type `S`, such as the settings of another crate.
pub struct Part<S: 'static, P: 'static> {
    /// The keys.
    pub keys: &'static dyn Keys<P>,
    /// The part.
    pub get: fn(&S) -> &P,
    /// The part, to be changed.
    pub get_mut: fn(&mut S) -> &mut P,
}

impl<S, P> Keys<S> for Part<S, P> {
    fn fields(&self) -> Vec<Field> {
        self.keys.fields()
    }

    fn write(&self, settings: &S, tree: &mut Tree) {
        self.keys.write((self.get)(settings), tree);
    }

    fn read(&self, settings: &mut S, reader: &mut Reader<'_, '_>) -> Result<(), Invalid> {
        self.keys.read((self.get_mut)(settings), reader)
    }
}

/// A table of settings of type `S`.
pub struct SettingsTable<S: 'static> {
    /// The table.
    pub table: &'static Table,
    /// Its keys and the fields that they stand for.
    pub keys: &'static [&'static dyn Keys<S>],
}

impl<S> fmt::Debug for SettingsTable<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt(formatter)
    }
}

impl<S> SettingsTable<S> {
    /// The table that states these settings, without a place.
    pub fn write(&self, settings: &S) -> Tree {
        let mut tree = Tree::default();
        self.fill_in(&mut tree, settings);
        tree
    }

    /// Fills in every key that a table leaves open with what these settings state.
    pub fn fill_in(&self, tree: &mut Tree, settings: &S) {
        self.keys.iter().for_each(|keys| keys.write(settings, tree));
    }
}

impl<S: Default> SettingsTable<S> {
    /// Fills in every absent key: from `inherited` if that has the key and `takes` accepts it, otherwise by the default.
    pub fn fill(&self, tree: &mut Tree, inherited: Option<&Tree>, takes: impl Fn(&str) -> bool) {
        if let Some(inherited) = inherited {
            for (key, value) in inherited.iter().filter(|(key, _)| takes(key)) {
                tree.fill(key, value.data.clone());
            }
        }
        self.fill_in(tree, &S::default());
    }

    /// A table in which every key has its default.
    pub fn defaults(&self, place: Place) -> Tree {
        let mut tree = Tree::at(place);
        self.fill(&mut tree, None, |_| true);
        tree
    }

    /// The table for all flows, with its defaults filled in.
    pub fn common(&self, root: &Tree) -> Tree {
        let Some(Data::Table(given)) = root.get(self.table.name).map(|value| &value.data) else {
            return self.defaults(root.place);
        };
        let mut tree = given.clone();
        self.fill(&mut tree, None, |_| true);
        tree
    }

    /// The settings that a filled table states.
    ///
    /// # Errors
    /// If keys contradict each other.
    pub fn read(&self, reader: &mut Reader<'_, '_>) -> Result<S, Invalid> {
        let mut settings = S::default();
        self.keys.iter().try_for_each(|keys| keys.read(&mut settings, reader))?;
        Ok(settings)
    }
}
