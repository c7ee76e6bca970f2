//! `--set PATH=VALUE`: inserts a value into the tree of a file before the file is checked. The schema defines the valid
//! paths.

use crate::error::{Error, nearest_name};
use crate::node::{Entry, Node, NodeContent, Override, SourceLocation, Sources};
use crate::pattern;
use crate::walk::{unknown_key, with_article};
use crate::{FieldKind, Table, Variant};

/// Applies the overrides in order and returns the errors in their paths. If the path of an override does not exist yet,
/// the override is applied after the others, because one of them may select the variant with its key. An override has
/// no effect if a later one, already applied, has set its path or a table around it.
pub(crate) fn apply(schema: &'static Table, root: &mut Node, sources: &Sources, overrides: &[Override]) -> Vec<Error> {
    let mut waiting: Vec<usize> = (0..overrides.len()).collect();
    let mut applied: Vec<usize> = Vec::new();
    loop {
        let mut errors = Vec::new();
        let before = waiting.len();
        waiting.retain(|&index| {
            let (set, place) = (&overrides[index], SourceLocation::Override(index as u32));
            let setter = Setter { sources, place, path: &set.path, value: Node::from_override(&set.value, place) };
            let own = segments(&set.path);
            let replaced =
                applied.iter().any(|&later| later > index && own.starts_with(&segments(&overrides[later].path)));
            // An override with a wrong path must not change the tree.
            let mut changed = root.clone();
            match setter.in_table(schema, &mut changed, &own) {
                Ok(()) if replaced => {}
                Ok(()) => *root = changed,
                Err(mut error) => {
                    if let Some(path) = setter.complete_path(schema, root, &own) {
                        error.suggestion = Some(path);
                        error.expected.clear();
                    }
                    errors.push(*error);
                    return true;
                }
            }
            applied.push(index);
            false
        });
        if waiting.is_empty() || waiting.len() == before {
            return errors;
        }
    }
}

/// Returns the parts of a dotted path. A part in quotation marks may contain dots.
fn segments(path: &str) -> Vec<String> {
    match toml_edit::Key::parse(path) {
        Ok(keys) => keys.iter().map(|key| key.get().to_string()).collect(),
        Err(_) => path.split('.').map(|part| part.trim().to_string()).collect(),
    }
}

struct Setter<'a> {
    sources: &'a Sources,
    place: SourceLocation,
    path: &'a str,
    value: Node,
}

type Outcome = Result<(), Box<Error>>;

impl Setter<'_> {
    fn error(&self, found: &str, message: String, expected: Vec<String>) -> Box<Error> {
        let mut error = self.sources.error(self.place, self.path, message, expected);
        error.found = found.to_string();
        Box::new(error)
    }

    /// Returns the only path in the file that ends with the given path, or with the given path without its first part:
    /// `topology.bottleneck.rate` for `bottleneck.rate` and for `link.bottleneck.rate`.
    fn complete_path(&self, schema: &'static Table, root: &Node, segments: &[String]) -> Option<String> {
        let mut tables = Vec::new();
        tables_of(schema, root, &mut Vec::new(), &mut tables);
        let mut endings = (0..segments.len().min(2)).map(|skipped| &segments[skipped..]);
        endings.find_map(|ending| {
            let mut found = tables.iter().filter(|(above, schema, node)| {
                // Such a key accepts any path.
                let is_raw = schema
                    .common_fields()
                    .any(|field| field.key == ending[0] && matches!(field.kind, FieldKind::Raw | FieldKind::Map(_)));
                !above.is_empty() && !is_raw && self.in_table(schema, &mut (*node).clone(), ending).is_ok()
            });
            let (above, _, _) = found.next().filter(|_| found.next().is_none())?;
            Some([above.as_slice(), ending].concat().join("."))
        })
    }

    fn in_table(&self, schema: &'static Table, node: &mut Node, segments: &[String]) -> Outcome {
        let [key, rest @ ..] = segments else {
            *node = self.value.clone();
            return Ok(());
        };
        if !matches!(node.content, NodeContent::Table(_)) {
            let message = format!("{} does not exist: {key} would be a key of {}", self.path, node.type_name());
            return Err(self.error(key, message, vec![with_article(schema.name)]));
        }
        let variant = schema.variants.and_then(|variants| {
            let name = node.get(variants.key).map_or(variants.default, Node::as_text)?;
            variants.find(name)
        });
        // The key that selects the variant is not in the list of fields.
        if schema.variants.is_some_and(|variants| variants.key == key) {
            if let Some(part) = rest.first() {
                return Err(self.error(part, format!("{key} is not a table"), Vec::new()));
            }
            *self.entry(node, key) = self.value.clone();
            return Ok(());
        }
        let field = schema
            .common_fields()
            .chain(variant.into_iter().flat_map(Variant::fields))
            .find(|field| field.is_named(key));
        let Some(field) = field else {
            let is_selected = schema.variants.is_some_and(|variants| node.get(variants.key).is_some());
            let variant = variant.map(|variant| (variant, is_selected));
            let error = unknown_key(self.sources, schema, variant, key, self.place, self.path);
            let mut error = error.map(Box::new).unwrap_or_else(|| {
                self.error(key, format!("{} depends on {}", self.path, schema.variants.map_or("", |v| v.key)), vec![])
            });
            error.found = key.clone();
            return Err(error);
        };
        if rest.is_empty() {
            // This also replaces a value under another spelling of the key.
            if let NodeContent::Table(entries) = &mut node.content {
                entries.retain(|entry| entry.key == *key || !field.is_named(&entry.key));
            }
            *self.entry(node, key) = self.value.clone();
            return Ok(());
        }
        self.in_kind(&field.kind, self.entry(node, key), key, rest)
    }

    /// Returns the value of a key. If the key is absent, adds an empty table under it.
    fn entry<'n>(&self, node: &'n mut Node, key: &str) -> &'n mut Node {
        if !matches!(node.content, NodeContent::Table(_)) {
            return node;
        }
        let NodeContent::Table(entries) = &mut node.content else { unreachable!("the node is a table") };
        let at = entries.iter().position(|entry| entry.key == key).unwrap_or_else(|| {
            let node = Node { content: NodeContent::Table(Vec::new()), place: self.place };
            entries.push(Entry { key: key.to_string(), key_place: self.place, node });
            entries.len() - 1
        });
        &mut entries[at].node
    }

    fn in_kind(&self, kind: &'static FieldKind, node: &mut Node, key: &str, rest: &[String]) -> Outcome {
        match kind {
            FieldKind::Table(table) => self.in_table(table, node, rest),
            FieldKind::Tables(table) if pattern::is_pattern(&rest[0]) => {
                let elements = self.matching(node, key, &rest[0])?;
                elements.into_iter().try_for_each(|element| self.in_table(table, element, &rest[1..]))
            }
            FieldKind::Tables(table) => {
                let element = self.element(node, key, &rest[0])?;
                self.in_table(table, element, &rest[1..])
            }
            FieldKind::List(kind) => {
                let element = self.element(node, key, &rest[0])?;
                if rest.len() == 1 {
                    *element = self.value.clone();
                    return Ok(());
                }
                self.in_kind(kind, element, key, &rest[1..])
            }
            FieldKind::Map(kind) => {
                let entry = self.entry(node, &rest[0]);
                if rest.len() == 1 {
                    *entry = self.value.clone();
                    return Ok(());
                }
                self.in_kind(kind, entry, &rest[0], &rest[1..])
            }
            FieldKind::Either(first, second) => {
                let fits = crate::walk::type_fits(second, &node.content);
                self.in_kind(if fits { second } else { first }, node, key, rest)
            }
            FieldKind::Raw => {
                let mut node = node;
                for (n, part) in rest.iter().enumerate() {
                    if matches!(node.content, NodeContent::Array(_)) {
                        node = self.element(node, if n == 0 { key } else { &rest[n - 1] }, part)?;
                        continue;
                    }
                    if !matches!(node.content, NodeContent::Table(_)) {
                        *node = Node { content: NodeContent::Table(Vec::new()), place: self.place };
                    }
                    node = self.entry(node, part);
                }
                *node = self.value.clone();
                Ok(())
            }
            _ => Err(self.error(&rest[0], format!("{key} has no parts, so {} does not exist", self.path), Vec::new())),
        }
    }

    /// Returns all elements of an array whose names match a pattern; an error if none matches.
    fn matching<'n>(&self, node: &'n mut Node, key: &str, part: &str) -> Result<Vec<&'n mut Node>, Box<Error>> {
        let NodeContent::Array(list) = &mut node.content else {
            return Err(self.error(part, format!("no {key} matches {part}: the file has no {key}"), Vec::new()));
        };
        let name = |node: &Node| node.get("name").and_then(Node::as_text).map(str::to_string);
        let names: Vec<String> = list.iter().filter_map(name).take(20).collect();
        let found: Vec<&mut Node> =
            list.iter_mut().filter(|node| name(node).is_some_and(|name| pattern::matches(part, &name))).collect();
        if found.is_empty() {
            return Err(self.error(part, format!("no {key} has a name that matches {part}"), names));
        }
        Ok(found)
    }

    /// Returns an element of an array, selected by its index or its name.
    fn element<'n>(&self, node: &'n mut Node, key: &str, part: &str) -> Result<&'n mut Node, Box<Error>> {
        let list: &[Node] = match &node.content {
            NodeContent::Array(list) => list,
            // The file has no such array, so `entry` added an empty table.
            NodeContent::Table(entries) if entries.is_empty() => &[],
            _ => return Err(self.error(part, format!("{key} is not an array"), Vec::new())),
        };
        let named = |node: &Node| node.get("name").and_then(Node::as_text).map(str::to_string);
        let at = list.iter().position(|node| named(node).as_deref() == Some(part));
        let at = at.or_else(|| part.parse::<usize>().ok().filter(|index| *index < list.len()));
        let names: Vec<String> = list.iter().filter_map(named).take(20).collect();
        let length = list.len();
        if let (Some(at), NodeContent::Array(list)) = (at, &mut node.content) {
            return Ok(&mut list[at]);
        }
        let mut expected = names.clone();
        if length > 0 {
            expected.push(format!("an index from 0 to {}", length - 1));
        }
        let message = match length {
            0 => format!("unknown {key} {part}: the file has no {key}"),
            _ => format!("unknown {key} {part}"),
        };
        let mut error = self.error(part, message, expected);
        error.suggestion = nearest_name(part, names.iter().map(String::as_str)).map(str::to_string);
        Err(error)
    }
}

/// The maximum number of tables that are searched for a path.
const MOST_TABLES: usize = 200;

/// A table of a file: its path, its schema and its content.
type TableOfFile<'n> = (Vec<String>, &'static Table, &'n Node);

/// Collects the tables of a file.
fn tables_of<'n>(schema: &'static Table, node: &'n Node, path: &mut Vec<String>, tables: &mut Vec<TableOfFile<'n>>) {
    let NodeContent::Table(entries) = &node.content else { return };
    if tables.len() >= MOST_TABLES {
        return;
    }
    tables.push((path.clone(), schema, node));
    let variant = schema
        .variants
        .and_then(|variants| variants.find(node.get(variants.key).map_or(variants.default, Node::as_text)?));
    for entry in entries {
        let mut fields = schema.common_fields().chain(variant.into_iter().flat_map(Variant::fields));
        let Some(field) = fields.find(|field| field.key == entry.key) else { continue };
        path.push(entry.key.clone());
        match (&field.kind, &entry.node.content) {
            (FieldKind::Table(table), _) => tables_of(table, &entry.node, path, tables),
            (FieldKind::Tables(table), NodeContent::Array(elements)) => {
                for (index, element) in elements.iter().enumerate() {
                    let name = element.get("name").and_then(Node::as_text);
                    path.push(name.map_or_else(|| index.to_string(), str::to_owned));
                    tables_of(table, element, path, tables);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
}
