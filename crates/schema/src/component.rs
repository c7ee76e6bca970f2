//! Components that a file selects by name: the declaration of each, and the catalog of all components of a kind. The
//! table's variants, the conversion into settings, lists and the reference page are derived from the catalog.
//!
//! The source file of a component contains its [`Declaration`] and the function that converts its checked keys into
//! typed settings. No other code matches on its name.
//!
//! ```
//! use fullpipe_schema::component::{Catalog, Component, Declaration, SettingsReader, variants};
//! use fullpipe_schema::{Diagnostics, Field, FieldKind, Table, Variants, load};
//! use fullpipe_units::Duration;
//!
//! static CONSTANT: Component<Duration, ()> = Component {
//!     declaration: Declaration {
//!         name: "constant",
//!         version: "",
//!         source: "",
//!         text: "the same wait every time.",
//!         fields: &[&[Field::required("wait", FieldKind::INTERVAL, "How long.")]],
//!     },
//!     read: |reader, _| Ok(reader.tree.duration("wait")),
//! };
//! static NONE: Component<Duration, ()> = Component {
//!     declaration: Declaration { name: "none", text: "no wait.", ..Declaration::EMPTY },
//!     read: |_, _| Ok(Duration::ZERO),
//! };
//! const WAITS: &[&Component<Duration, ()>] = &[&CONSTANT, &NONE];
//! static CATALOG: Catalog<Duration, ()> = Catalog { key: "kind", components: &[WAITS] };
//! static WAIT: Table = Table {
//!     name: "wait",
//!     variants: Some(&Variants {
//!         key: "kind",
//!         default: Some("none"),
//!         text: "",
//!         list: &variants::<_, _, { WAITS.len() }>(&[WAITS]),
//!         later: &[],
//!     }),
//!     ..Table::EMPTY
//! };
//!
//! let loaded = load(&WAIT, "kind = 'constant'\nwait = '3ms'", "wait.toml", &[]).unwrap();
//! let mut check = Diagnostics::new(&loaded.sources);
//! let mut reader = SettingsReader { tree: &loaded.root, path: "", check: &mut check };
//! assert_eq!(CATALOG.read(&mut reader, &()), Ok(Duration::from_millis(3)));
//! assert_eq!(CATALOG.declarations().count(), 2);
//! let errors = load(&WAIT, "kind = 'constnat'", "wait.toml", &[]).unwrap_err();
//! assert_eq!(errors.0[0].suggestion.as_deref(), Some("\"constant\""));
//! ```

use crate::check::Diagnostics;
use crate::tree::{Tree, Value};
use crate::{Choice, Field, FieldKind, Variant};
use std::any::Any;
use std::fmt;

/// The declaration of a component.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// The name that selects the component in a file.
    pub name: &'static str,
    /// The version that the component implements, such as "RFC 8289 (2018)"; if empty, the version of Fullpipe.
    pub version: &'static str,
    /// The publication that describes the component; if empty, the component is Fullpipe's own.
    pub source: &'static str,
    /// Description in one sentence, for the reference page and lists.
    pub text: &'static str,
    /// The keys of the component, in groups that several components can share.
    pub fields: &'static [&'static [Field]],
}

impl Declaration {
    /// An empty declaration, for struct update syntax.
    pub const EMPTY: Declaration = Declaration { name: "", version: "", source: "", text: "", fields: &[] };

    /// Returns the variant of a table whose selecting key has this component's name as its value.
    pub const fn variant(&self) -> Variant {
        Variant { name: self.name, text: self.text, fields: self.fields }
    }

    /// Returns the component's name as a choice of a key. The table has no further keys for this choice.
    pub const fn choice(&self) -> Choice {
        Choice::new(self.name, self.text)
    }

    /// Returns the description without its final full stop, for use within a line.
    pub fn summary(&self) -> &'static str {
        self.text.trim_end_matches('.')
    }
}

/// A component: its declaration, and the conversion of its checked keys into settings of type `S`. `C` is additional
/// input of the conversion, such as the rate of the link.
pub struct Component<S: 'static, C: 'static> {
    /// The declaration.
    pub declaration: Declaration,
    /// Converts the checked keys into settings.
    pub read: fn(&mut SettingsReader<'_, '_>, &C) -> Result<S, InvalidSettings>,
}

/// Creates a component without its own version and source.
pub const fn choice_component<S, C>(
    name: &'static str,
    text: &'static str,
    fields: &'static [&'static [Field]],
    read: fn(&mut SettingsReader<'_, '_>, &C) -> Result<S, InvalidSettings>,
) -> Component<S, C> {
    Component { declaration: Declaration { name, text, fields, ..Declaration::EMPTY }, read }
}

impl<S, C> fmt::Debug for Component<S, C> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.declaration.fmt(formatter)
    }
}

/// The error that keys of a table contradict each other. The [`Diagnostics`] contains the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidSettings;

/// A checked table whose keys are being converted, with its path for errors.
#[derive(Debug)]
pub struct SettingsReader<'a, 'c> {
    /// The checked keys of the table.
    pub tree: &'a Tree,
    /// The dotted path of the table, for errors.
    pub path: &'a str,
    /// Collects errors.
    pub check: &'a mut Diagnostics<'c>,
}

impl<'c> SettingsReader<'_, 'c> {
    /// Returns the dotted path of a key.
    pub fn path_of(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    /// Creates a reader of a table that this table contains.
    pub fn nested<'b>(&'b mut self, tree: &'b Tree, path: &'b str) -> SettingsReader<'b, 'c> {
        SettingsReader { tree, path, check: self.check }
    }

    /// Adds an error at the value of a key. Returns the error that the conversion must return.
    pub fn add_error(&mut self, key: &str, message: impl Into<String>, expected: &str) -> InvalidSettings {
        self.check.add_error_at(self.tree, self.path, key, message, expected);
        InvalidSettings
    }
}

/// All components of one kind, in the order of lists and the reference page.
#[derive(Debug)]
pub struct Catalog<S: 'static, C: 'static> {
    /// The key that holds a component's name.
    pub key: &'static str,
    /// The components, in groups that several catalogs can share.
    pub components: &'static [&'static [&'static Component<S, C>]],
}

impl<S, C> Catalog<S, C> {
    /// Returns the components in order.
    pub fn iter(&self) -> impl Iterator<Item = &'static Component<S, C>> + use<S, C> {
        self.components.iter().flat_map(|group| group.iter().copied())
    }

    /// Returns the declarations of the components in order.
    pub fn declarations(&self) -> impl Iterator<Item = &'static Declaration> + use<S, C> {
        self.iter().map(|component| &component.declaration)
    }

    /// Converts a checked table into the settings of the component that the selecting key names.
    ///
    /// # Errors
    /// [`InvalidSettings`] if keys of the table contradict each other.
    ///
    /// # Panics
    /// If the table's variants are not those of this catalog ([`variants`]).
    pub fn read(&self, reader: &mut SettingsReader<'_, '_>, context: &C) -> Result<S, InvalidSettings> {
        let name = reader.tree.choice(self.key);
        let component = self.iter().find(|component| component.declaration.name == name);
        let component =
            component.unwrap_or_else(|| panic!("component {name} is in the schema but not in the catalogue"));
        (component.read)(reader, context)
    }
}

/// Returns the variants of a table whose selecting key names a component. `N` is the number of components.
///
/// # Panics
/// If `N` is not the number of components. For a static table this is an error at compile time.
pub const fn variants<S, C, const N: usize>(components: &[&[&Component<S, C>]]) -> [Variant; N] {
    let mut list = [Declaration::EMPTY.variant(); N];
    let (mut group, mut n) = (0, 0);
    while group < components.len() {
        let mut index = 0;
        while index < components[group].len() {
            list[n] = components[group][index].declaration.variant();
            index += 1;
            n += 1;
        }
        group += 1;
    }
    assert!(n == N, "the number of variants differs from the number of components");
    list
}

/// Returns the choices of a key that selects one of several components ([`variants`]), for a table that has the keys of
/// all components ([`fields`]).
pub const fn choice_names<const N: usize>(variants: &[Variant; N]) -> [Choice; N] {
    let mut list = [Choice::new("", ""); N];
    let mut n = 0;
    while n < N {
        list[n] = Choice::new(variants[n].name, variants[n].text);
        n += 1;
    }
    list
}

/// Returns the keys of all variants, for a table that has all these keys regardless of the choice. `N` is the number of
/// keys ([`variant_field_count`]).
pub const fn fields<const N: usize>(variants: &[Variant]) -> [Field; N] {
    let mut list = [Field::optional("", FieldKind::Raw, "", ""); N];
    let (mut variant, mut n) = (0, 0);
    while variant < variants.len() {
        let mut group = 0;
        while group < variants[variant].fields.len() {
            let mut index = 0;
            while index < variants[variant].fields[group].len() {
                list[n] = variants[variant].fields[group][index];
                index += 1;
                n += 1;
            }
            group += 1;
        }
        variant += 1;
    }
    list
}

/// Returns the total number of keys of all variants.
pub const fn variant_field_count(variants: &[Variant]) -> usize {
    let (mut variant, mut n) = (0, 0);
    while variant < variants.len() {
        let mut group = 0;
        while group < variants[variant].fields.len() {
            n += variants[variant].fields[group].len();
            group += 1;
        }
        variant += 1;
    }
    n
}

/// Returns the choices of a key, from a list of choices and their values. [`Tree::choice_value`] returns the value of a
/// choice.
pub const fn choices<T, const N: usize>(values: &[(Choice, T); N]) -> [Choice; N] {
    let mut list = [Choice::new("", ""); N];
    let mut n = 0;
    while n < N {
        list[n] = values[n].0;
        n += 1;
    }
    list
}

impl Value {
    /// Returns the value of the chosen name.
    ///
    /// # Panics
    /// If the list ([`choices`]) does not contain the name.
    pub fn choice_value<T: Clone>(&self, values: &[(Choice, T)]) -> T {
        let name = self.choice();
        let found = values.iter().find(|(choice, _)| choice.name == name);
        found.unwrap_or_else(|| panic!("{name} is in the schema but not in the list")).1.clone()
    }
}

impl Tree {
    /// Returns the value of the name that the file chose for a key.
    ///
    /// # Panics
    /// If the list from which the schema's choices were made ([`choices`]) does not contain the name.
    pub fn choice_value<T: Clone>(&self, key: &str, values: &[(Choice, T)]) -> T {
        self.required(key).choice_value(values)
    }

    /// Returns the same value as [`Tree::choice_value`]; `None` if the key is absent.
    pub fn optional_choice_value<T: Clone>(&self, key: &str, values: &[(Choice, T)]) -> Option<T> {
        self.get(key).map(|_| self.choice_value(key, values))
    }
}

/// Equality of trait objects. With `trait Settings: DynPartialEq`, `impl PartialEq for dyn Settings` can use
/// [`DynPartialEq::dyn_eq`].
pub trait DynPartialEq: Any {
    /// Returns whether both values have the same type and are equal.
    fn dyn_eq(&self, other: &dyn Any) -> bool;
}

impl<T: Any + PartialEq> DynPartialEq for T {
    fn dyn_eq(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>().is_some_and(|other| self == other)
    }
}
