//! Tests that every name in the schema is in the reference page, is accepted, and has a distinct meaning. For two names
//! of a key, there is a file that has different descriptions with each of them. The test iterates over the schema, so
//! it covers new keys and components without a change.

use super::random;
use crate::language::{LANGUAGE, load};
use crate::schema::{self, Choice, DefaultValue, Field, FieldKind, Override, Table, Tree, ValueData, Variant};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The name of a table and a key in it.
type Key = (&'static str, &'static str);

/// The path of the generated files. Paths in them are relative to its folder.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/file.toml");

/// Two names of one key.
type Pair = (Key, &'static str, &'static str);

/// The choices of a kind, and whether they are elements of a list.
fn choices(kind: &'static FieldKind) -> Option<(&'static [Choice], bool)> {
    match kind {
        FieldKind::Choice(choices) => Some((choices, false)),
        FieldKind::List(FieldKind::Choice(choices)) => Some((choices, true)),
        FieldKind::Either(first, second) => choices(first).or_else(|| choices(second)),
        _ => None,
    }
}

/// The names that a field accepts.
fn names(field: &'static Field) -> impl Iterator<Item = &'static str> {
    let choices = choices(&field.kind).map_or(&[][..], |(choices, _)| choices);
    choices.iter().filter(|choice| choice.available).map(|choice| choice.name)
}

fn tables(kind: &'static FieldKind) -> Vec<&'static Table> {
    match kind {
        FieldKind::Table(table) | FieldKind::Tables(table) => vec![table],
        FieldKind::List(kind) | FieldKind::Map(kind) => tables(kind),
        FieldKind::Either(first, second) => [tables(first), tables(second)].concat(),
        _ => Vec::new(),
    }
}

fn variants(table: &'static Table) -> impl Iterator<Item = &'static Variant> {
    table.variants.iter().flat_map(|variants| variants.list)
}

/// The fields of a table and of all its variants.
fn fields(table: &'static Table) -> impl Iterator<Item = &'static Field> {
    table.common_fields().chain(variants(table).flat_map(|variant| variant.fields()))
}

/// A table and all tables within it.
fn reachable(table: &'static Table) -> Vec<&'static Table> {
    let mut found = vec![table];
    let mut next = 0;
    while next < found.len() {
        for table in fields(found[next]).flat_map(|field| tables(&field.kind)) {
            if !found.iter().any(|known| std::ptr::eq(*known, table)) {
                found.push(table);
            }
        }
        next += 1;
    }
    found
}

/// The names of all keys that accept names.
fn declared() -> BTreeMap<Key, BTreeSet<&'static str>> {
    let mut declared: BTreeMap<Key, BTreeSet<&'static str>> = BTreeMap::new();
    for table in reachable(LANGUAGE.schema) {
        for field in fields(table) {
            declared.entry((table.name, field.key)).or_default().extend(names(field));
        }
        if let Some(key) = table.variants.map(|variants| variants.key) {
            declared.entry((table.name, key)).or_default().extend(variants(table).map(|variant| variant.name));
        }
    }
    declared.retain(|_, names| !names.is_empty());
    declared
}

/// A name of a key, with the override that selects it. If the key selects a variant, the variant can have further keys.
struct Place {
    key: Key,
    names: Vec<(&'static str, Override, Option<&'static Variant>)>,
}

struct Search {
    /// Names that no file has contained so far.
    unseen: BTreeSet<(Key, &'static str)>,
    /// Pairs of names without different descriptions so far, and whether a file accepted both names.
    alike: BTreeMap<Pair, bool>,
    /// Keys with open names or pairs.
    open: BTreeSet<Key>,
    /// For each table, the names of the tables that it contains.
    within: BTreeMap<&'static str, BTreeSet<&'static str>>,
    /// Number of random values so far.
    drawn: u64,
}

impl Search {
    fn new() -> Self {
        let (mut unseen, mut alike, mut within) = (BTreeSet::new(), BTreeMap::new(), BTreeMap::new());
        for (key, names) in declared() {
            unseen.extend(names.iter().map(|name| (key, *name)));
            let pairs = names.iter().flat_map(|a| names.iter().filter(move |b| a < *b).map(move |b| (key, *a, *b)));
            alike.extend(pairs.map(|pair| (pair, false)));
        }
        for table in reachable(LANGUAGE.schema) {
            let names: &mut BTreeSet<_> = within.entry(table.name).or_default();
            names.extend(reachable(table).into_iter().map(|table| table.name));
        }
        let mut search = Search { unseen, alike, open: BTreeSet::new(), within, drawn: 0 };
        search.note_open();
        search
    }

    /// Updates the keys with open names or pairs.
    fn note_open(&mut self) {
        let unseen = self.unseen.iter().filter(|(key, name)| !is_refused(*key, name)).map(|(key, _)| *key);
        let compared = |pair: &&Pair| {
            let (key, a, b) = **pair;
            !APART.iter().any(|(apart, _)| *apart == key)
                && !EQUAL.iter().any(|(equal, _)| equal == *pair)
                && ![a, b].iter().any(|name| is_refused(key, name))
        };
        self.open = unseen.chain(self.alike.keys().filter(compared).map(|pair| pair.0)).collect();
    }

    /// Whether a table or a table within it has open names or pairs.
    fn is_open(&self, table: &'static Table) -> bool {
        self.open.iter().any(|(name, _)| self.within[table.name].contains(name))
    }

    /// As [`Self::is_open`], for fields of a table.
    fn are_open(&self, table: &'static str, mut fields: impl Iterator<Item = &'static Field>) -> bool {
        fields.any(|field| {
            self.open.contains(&(table, field.key)) || tables(&field.kind).into_iter().any(|table| self.is_open(table))
        })
    }

    /// The required keys of a table, with random values.
    fn required(&mut self, table: &'static Table, fields: impl Iterator<Item = &'static Field>) -> Vec<String> {
        let required = fields.filter(|field| matches!(field.default, DefaultValue::Required));
        let pair = |field: &'static Field| {
            self.drawn += 1;
            random::pair(self.drawn, table, field)
        };
        required.map(pair).collect()
    }

    /// A table with these pairs, a variant, and the keys that the variant requires.
    fn table(&mut self, table: &'static Table, variant: Option<&'static Variant>, mut pairs: Vec<String>) -> String {
        let key = table.variants.map_or("", |variants| variants.key);
        pairs.extend(variant.map(|variant| format!("{key} = '{}'", variant.name)));
        pairs.extend(self.required(table, variant.into_iter().flat_map(|variant| variant.fields())));
        format!("{{ {} }}", pairs.join(", "))
    }

    /// Finds the places in a tree where names can be selected, and the tables that can be added.
    fn places(
        &mut self,
        table: &'static Table,
        tree: &Tree,
        path: &str,
        found: &mut Vec<Place>,
        add: &mut Vec<Override>,
    ) {
        let variant = table.variants.and_then(|variants| variants.find(tree.choice(variants.key)));
        if let Some(key) = table.variants.map(|variants| variants.key) {
            let given = |field: &'static Field| {
                let value = tree.get(field.key).filter(|value| value.given)?;
                Some(format!("{} = {}", field.key, schema::format_inline(Some(&field.kind), value)))
            };
            let set = |other: &'static Variant| {
                let kept = table.common_fields().filter_map(given);
                let value = if variant.is_some_and(|variant| variant.name == other.name) {
                    let kept: Vec<String> = kept.chain(other.fields().filter_map(given)).collect();
                    format!("{{ {key} = '{}', {} }}", other.name, kept.join(", "))
                } else {
                    self.table(table, Some(other), kept.collect())
                };
                (other.name, Override { path: path.to_owned(), value }, Some(other))
            };
            let names = variants(table).map(set).collect();
            found.push(Place { key: (table.name, key), names });
        }
        for field in table.common_fields().chain(variant.into_iter().flat_map(|variant| variant.fields())) {
            let path = if path.is_empty() { field.key.to_owned() } else { format!("{path}.{}", field.key) };
            let below = tables(&field.kind);
            match tree.get(field.key).map(|value| &value.data) {
                Some(ValueData::Table(tree)) => self.places(below[0], tree, &path, found, add),
                Some(ValueData::Tables(trees)) if !trees.is_empty() => {
                    for (index, tree) in trees.iter().enumerate() {
                        self.places(below[0], tree, &format!("{path}.{index}"), found, add);
                    }
                }
                _ => {
                    for below in below {
                        if self.is_open(below) {
                            let all: Vec<&'static Variant> = variants(below).collect();
                            let variant = (!all.is_empty()).then(|| all[self.drawn as usize % all.len()]);
                            let pairs = self.required(below, below.common_fields());
                            let value = self.table(below, variant, pairs);
                            let is_array =
                                matches!(field.kind, FieldKind::Tables(_) | FieldKind::Either(FieldKind::Tables(_), _));
                            let value = if is_array { format!("[{value}]") } else { value };
                            add.push(Override { path: path.clone(), value });
                        }
                    }
                }
            }
            if let Some((_, is_list)) = choices(&field.kind) {
                let set = |name: &'static str| {
                    let value = if is_list { format!("['{name}']") } else { format!("'{name}'") };
                    (name, Override { path: path.clone(), value }, None)
                };
                found.push(Place { key: (table.name, field.key), names: names(field).map(set).collect() });
            }
        }
    }

    /// Selects every name at every place of a file, and adds tables that have unseen names.
    fn examine(&mut self, text: &str, overrides: &[Override], depth: u32) {
        let Ok(loaded) = schema::load(LANGUAGE.schema, text, FILE, overrides) else { return };
        if load(text, FILE, overrides).is_err() {
            return;
        }
        self.note_open();
        let (mut places, mut further) = (Vec::new(), Vec::new());
        self.places(LANGUAGE.schema, &loaded.root, "", &mut places, &mut further);
        for Place { key, names } in places {
            let mut accepted = Vec::new();
            for (name, set, variant) in names {
                let variant_is_open = |variant: &'static Variant| self.are_open(key.0, variant.fields());
                let variant_is_open = depth < 2 && variant.is_some_and(variant_is_open);
                if !self.open.contains(&key) && !variant_is_open {
                    continue;
                }
                let all = [overrides, std::slice::from_ref(&set)].concat();
                let Ok(loaded) = load(text, FILE, &all) else { continue };
                self.unseen.remove(&(key, name));
                if variant_is_open {
                    further.push(set);
                }
                accepted.push((name, loaded.scenario));
            }
            for (index, (a, with_a)) in accepted.iter().enumerate() {
                for (b, with_b) in &accepted[..index] {
                    let pair = (key, *a.min(b), *a.max(b));
                    if with_a != with_b {
                        self.alike.remove(&pair);
                    } else if let Some(both) = self.alike.get_mut(&pair) {
                        *both = true;
                    }
                }
            }
        }
        if depth < 2 {
            for set in further {
                self.examine(text, &[overrides, &[set]].concat(), depth + 1);
            }
        }
    }
}

/// Files with features that the random files lack.
const FURTHER: [(&str, &str); 10] = [
    (
        "host = [{ name = 'h1' }, { name = 'h2' }]\nethernet = [{ name = 'lan', hosts = ['h1', 'h2'], rate = '10Mbit/s', \
         delay = '1us' }]",
        "from = 'h1', to = 'h2'",
    ),
    (
        CHAIN,
        "from = 'source', to = 'sink', protocol = 'quic', workload = 'web', http = 'streams', quic = { stack = 'model' }",
    ),
    (CHAIN, "from = 'source', to = 'sink', protocol = 'quic', quic = { stack = 'model' }"),
    (
        CHAIN,
        "from = 'source', to = 'sink', protocol = 'udp', workload = 'constant-rate', payload = 9, interval = '1ms'",
    ),
    (
        "topology = { kind = 'chain', link = [{ rate = '10Mbit/s', delay = '5ms' }] }\n\
         program = [{ name = 'client', host = 'source', command = 'a' }, { name = 'server', host = 'sink', command = 'b' }]",
        "from = 'source', to = 'sink', from_by = 'program', to_by = 'program'",
    ),
    (
        "host = [{ name = 'h1' }, { name = 'h2' }]\nrouter = [{ name = 'pgw' }]\n\
         link = [{ name = 'sgi', from = 'h1', to = 'pgw', rate = '10Mbit/s', delay = '5ms', rebinding = { first = '1s' } }]\n\
         lte = [{ name = 'lte', gateway = 'pgw', fading = { kind = 'trace', file = 'tests/data/tone.fad', continuous = true }, cell = [{ name = 'c1' }], ue = [{ host = 'h2', distance = 9 }] }]\n\
         probe = [{ ue = 'h2', metrics = ['cqi'] }]",
        "from = 'h1', to = 'h2'",
    ),
    (
        "topology = { kind = 'chain', link = [{ rate = '10Mbit/s', delay = '5ms' }] }\n\
         probe = [{ flow = 'tunnel', metrics = ['proxy_queue_bytes'] }]",
        "name = 'tunnel', from = 'source', to = 'sink', workload = 'tunnel'",
    ),
    (
        "host = [{ name = 'h1' }, { name = 'h2' }]\nrouter = [{ name = 'ap' }]\n\
         link = [{ name = 'lan', from = 'h1', to = 'ap', rate = '10Mbit/s', delay = '5ms' }]\n\
         wifi = [{ name = 'wifi', access_point = 'ap', standard = 'n', access = [{ aifsn = 5 }], category = [{ category = 'voice', remote_ports = [1, 2] }], station = [{ host = 'h2' }] }]\n\
         probe = [{ station = 'h2', metrics = ['retries'] }]",
        "from = 'h1', to = 'h2'",
    ),
    (
        "host = [{ name = 'h1' }, { name = 'h2' }]\nrouter = [{ name = 'ap' }]\n\
         link = [{ name = 'lan', from = 'h1', to = 'ap', rate = '10Mbit/s', delay = '5ms' }]\n\
         wifi = [{ name = 'wifi', access_point = 'ap', standard = 'n', mcs = 3, station = [{ host = 'h2', mcs = 2 }] }]",
        "from = 'h1', to = 'h2'",
    ),
    (
        "host = [{ name = 'h1' }, { name = 'h2' }]\nrouter = [{ name = 'ap' }]\n\
         link = [{ name = 'lan', from = 'h1', to = 'ap', rate = '10Mbit/s', delay = '5ms' }]\n\
         wifi = [{ name = 'wifi', access_point = 'ap', standard = 'b', station = [{ host = 'h2' }] }]",
        "from = 'h1', to = 'h2'",
    ),
];

/// A network of two hosts.
const CHAIN: &str = "topology = { kind = 'chain', link = [{ rate = '10Mbit/s', delay = '5ms' }] }";

/// Keys for which no file accepts two names that are otherwise not compared, with the reason.
const APART: [(Key, &str); 8] = [
    (("Wi-Fi network", "rate_control"), "only a constant rate has an MCS"),
    (("Wi-Fi station", "rate_control"), "only a constant rate has an MCS"),
    (("topology", "kind"), "each kind has hosts of its own names, which flows name"),
    (("probe", "metrics"), "a probe watches one kind of thing, and each kind has its own metrics"),
    (("flow", "protocol"), "a tunnel is a workload of its own"),
    (("flow", "http"), "each transport has its own versions of HTTP"),
    (("flow", "from_by"), "a host is real or of the model"),
    (("flow", "to_by"), "a host is real or of the model"),
];

/// Names with the same meaning, with the reason.
const EQUAL: [(Pair, &str); 0] = [];

/// Names that no file contains, with the reason.
const REFUSED: [((Key, &str), &str); 1] = [((("band", "kind"), "none"), "a band without a queue is an error")];

fn is_refused(key: Key, name: &str) -> bool {
    REFUSED.iter().any(|((of, refused), _)| *of == key && *refused == name)
}

#[test]
fn each_declared_name_is_accepted_and_has_a_distinct_meaning() {
    let mut search = Search::new();
    let number = search.alike.len();
    assert!(number > 500, "{number}");
    let further = FURTHER.map(|(network, flow)| format!("duration = '1s'\n{network}\nflow = [{{ {flow} }}]"));
    for text in &further {
        load(text, FILE, &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    }
    for text in further.into_iter().chain((0..6000).map(random::file)) {
        search.note_open();
        if search.open.is_empty() {
            break;
        }
        search.examine(&text, &[], 0);
    }
    let Search { mut unseen, mut alike, .. } = search;
    for ((key, name), _) in REFUSED {
        assert!(unseen.remove(&(key, name)), "a file has {}.{} = {name}", key.0, key.1);
        alike.retain(|pair, _| pair.0 != key || pair.1 != name && pair.2 != name);
    }
    for (pair, _) in EQUAL {
        assert_eq!(alike.remove(&pair), Some(true), "{pair:?}");
    }
    for (key, _) in APART {
        let number = alike.len();
        alike.retain(|pair, both| *both || pair.0 != key);
        assert!(alike.len() < number, "files accept all names of {key:?}");
    }
    let unseen: Vec<String> = unseen.iter().map(|((table, key), a)| format!("{table}.{key}: {a}")).collect();
    let alike = |of: bool| -> Vec<String> {
        let alike = alike.iter().filter(|(_, both)| **both == of);
        alike.map(|(((table, key), a, b), _)| format!("{table}.{key}: {a}, {b}")).collect()
    };
    let (apart, alike) = (alike(false), alike(true));
    assert!(
        unseen.is_empty() && apart.is_empty() && alike.is_empty(),
        "no file with these names is accepted:\n{}\n\nno file accepts both of these names:\n{}\n\nno file has two \
         descriptions with these names:\n{}",
        unseen.join("\n"),
        apart.join("\n"),
        alike.join("\n")
    );
}

#[test]
fn each_declared_name_is_in_the_reference_page() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario-reference.md");
    let page = std::fs::read_to_string(page).expect("the reference page is readable");
    for table in reachable(LANGUAGE.schema) {
        let is_heading = |heading: &str| match table.name {
            "" => heading == "The file",
            name => heading.eq_ignore_ascii_case(name),
        };
        let section = page.split("\n## ").find(|section| section.lines().next().is_some_and(is_heading));
        let section = section.unwrap_or_else(|| panic!("no section of {}", table.name));
        for field in fields(table) {
            assert!(section.contains(&format!("| `{}` |", field.key)), "{}: {}", table.name, field.key);
            for name in names(field) {
                assert!(section.contains(&format!("`\"{name}\"`")), "{}.{}: {name}", table.name, field.key);
            }
        }
        for variant in variants(table) {
            assert!(section.contains(&format!("= \"{}\"`:", variant.name)), "{}: {}", table.name, variant.name);
        }
    }
}
