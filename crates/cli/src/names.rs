//! All names in scenarios, studies and records, collected from the declarations, for `explain` and `help`.

use crate::init::TEMPLATES;
use fullpipe::archive::STUDY;
use fullpipe::archive::json::{JsonKey, JsonValue};
use fullpipe::archive::reference::{TableReference, run_table_references, study_table_references};
use fullpipe::archive::{RunRecord, WarningKind};
use fullpipe::congestion::catalogue;
use fullpipe::network::discipline::table::DISCIPLINES;
use fullpipe::quic::scheduler::SCHEDULERS;
use fullpipe::scenario::access::ACCESS_NETWORKS;
use fullpipe::scenario::schema::component::Declaration;
use fullpipe::scenario::schema::{Choice, DefaultValue, Field, FieldKind, Table, Tree, describe_kind, format_inline};
use fullpipe::workload::WORKLOADS;
use fullpipe::{embedded, lab, scenario};
use std::collections::BTreeMap;

/// An entry with a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct NamedItem {
    pub(crate) name: String,
    /// The kind of the entry: `key of a link`, `column of flows.csv`.
    pub(crate) what: String,
    /// The group in which `help` lists the entry.
    pub(crate) group: &'static str,
    /// Its meaning.
    pub(crate) text: String,
    /// Additional facts: type, unit, default, source.
    pub(crate) facts: Vec<(&'static str, String)>,
    /// The values of a key, or the keys of a component, each with its text.
    pub(crate) list: Vec<(String, String)>,
    /// Dotted paths of a key. `NAME` represents the name of an array element, `N` its index.
    pub(crate) paths: Vec<String>,
}

pub(crate) const KEYS: &str = "keys";
pub(crate) const COLUMNS: &str = "columns and keys of records";
pub(crate) const METRICS: &str = "metrics";
pub(crate) const NAMES: &str = "names";
pub(crate) const TERMS: &str = "terms";
/// In the order in which `help` lists groups that match equally.
pub(crate) const GROUPS: [&str; 5] = [KEYS, NAMES, METRICS, COLUMNS, TERMS];

/// Returns all entries.
pub(crate) fn all() -> Vec<NamedItem> {
    let mut all = Vec::new();
    components(&mut all);
    metrics(&mut all);
    keys(&mut all, scenario::root_table(), "a scenario file");
    keys(&mut all, &STUDY, "a study file");
    columns(&mut all);
    terms(&mut all);
    all
}

/// Adds the terms of the glossary. A row with several terms, `| endpoint, end | ...`, is an entry for each.
fn terms(all: &mut Vec<NamedItem>) {
    let page = embedded::PAGES.iter().find(|(file, _)| *file == GLOSSARY).map_or("", |(_, text)| text);
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    for (terms, meaning) in rows.filter(|(terms, _)| *terms != "term") {
        all.extend(terms.split(", ").map(|term| NamedItem {
            name: plain(term),
            what: format!("term of the glossary (docs/{GLOSSARY})"),
            group: TERMS,
            text: meaning.replace('*', ""),
            ..NamedItem::default()
        }));
    }
}

/// The page with the terms.
const GLOSSARY: &str = "glossary.md";

/// Returns the title in an embedded file. These files are valid, and a title is on its own line, so it is not necessary
/// to load them.
fn title(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("title = \"")?.strip_suffix('"')).unwrap_or_default()
}

/// Returns the title of an embedded study.
pub(crate) fn embedded_study_title(name: &str) -> &'static str {
    let files = embedded::study_files(name);
    files.iter().find(|(file, _)| *file == "study.toml").map_or("", |(_, text)| title(text))
}

fn components(all: &mut Vec<NamedItem>) {
    let mut add = |what: &str, list: &str, declaration: &Declaration, used: &str| {
        let text = |text: &str| if text.is_empty() { None } else { Some(text.to_owned()) };
        let version = text(declaration.version).map(|version| ("version", version));
        let source = text(declaration.source).map(|source| ("source", source));
        let used = ("used in", format!("{used} (`fullpipe list {list}` lists all)"));
        let fields = declaration.fields.iter().flat_map(|group| group.iter());
        all.push(NamedItem {
            name: declaration.name.to_owned(),
            what: what.to_owned(),
            group: NAMES,
            text: sentence(declaration.text),
            facts: version.into_iter().chain(source).chain([used]).collect(),
            list: fields.map(|field| (format!("{} = ...", field.key), field.text.to_owned())).collect(),
            paths: Vec::new(),
        });
    };
    let of_flows = "`congestion` of a [[flow]], of [tcp] and of [quic]";
    catalogue::DECLARATIONS.iter().for_each(|control| add("congestion control", "congestion", control, of_flows));
    let of_links = "`discipline.kind` of a link";
    DISCIPLINES.declarations().for_each(|discipline| add("queue discipline", "queues", discipline, of_links));
    WORKLOADS.declarations().for_each(|workload| add("workload", "workloads", workload, "`workload` of a [[flow]]"));
    let of_quic = "`scheduler` of [quic], for the streams of the QUIC model";
    SCHEDULERS.declarations().for_each(|scheduler| add("stream scheduler", "schedulers", scheduler, of_quic));
    for network in ACCESS_NETWORKS {
        let table = format!("[[{}]] of a scenario", network.declaration.name);
        add("access network", "access-networks", &network.declaration, &table);
        for choices in network.choices {
            let what = format!("{} {}", choices.kind, choices.list.trim_end_matches('s'));
            for choice in (choices.declarations)() {
                add(&what, choices.list, choice, &table);
            }
        }
    }
    let run = |name: &str, what: &str, text: String, command: String| NamedItem {
        name: name.to_owned(),
        what: what.to_owned(),
        group: NAMES,
        text: sentence(&text),
        facts: vec![("used in", command)],
        ..NamedItem::default()
    };
    let scenarios = embedded::scenario_names().map(|name| {
        let text = title(embedded::scenario_text(name).unwrap_or_default()).to_owned();
        run(name, "embedded scenario", text, format!("`fullpipe run {name}`"))
    });
    all.extend(scenarios);
    let studies = embedded::study_names().map(|name| {
        let title = embedded_study_title(name).to_owned();
        run(name, "embedded study", title, format!("`fullpipe study run {name}`"))
    });
    all.extend(studies);
    let template = |template: &crate::init::Template| {
        run(template.name, "template", template.summary.to_owned(), format!("`fullpipe init {}`", template.name))
    };
    all.extend(TEMPLATES.iter().map(template));
    all.extend(WarningKind::ALL.iter().map(|kind| NamedItem {
        name: kind.name().to_owned(),
        what: "warning".to_owned(),
        group: NAMES,
        text: sentence(kind.description()),
        facts: vec![("used in", "`fullpipe check`, `run` and `study run`; run.json and the report".to_owned())],
        ..NamedItem::default()
    }));
}

fn metrics(all: &mut Vec<NamedItem>) {
    let of_probes = scenario::probe_metrics(ACCESS_NETWORKS).into_iter().map(|(metric, text)| NamedItem {
        name: metric.name.to_owned(),
        what: "metric of probes".to_owned(),
        group: METRICS,
        text: sentence(&text),
        facts: vec![
            ("unit", unit(metric.unit)),
            (
                "used in",
                format!(
                    "`metrics` of a [[probe]], series.csv, and expressions of studies: mean(series(\"NAME\", \"{}\"))",
                    metric.name
                ),
            ),
        ],
        ..NamedItem::default()
    });
    all.extend(of_probes);
    for (of, metrics) in lab::metrics() {
        all.extend(metrics.into_iter().map(|metric| NamedItem {
            name: metric.name.to_owned(),
            what: format!("application metric of `{of}`"),
            group: METRICS,
            text: sentence(metric.text),
            facts: vec![
                ("unit", unit(metric.unit)),
                ("used in", format!("figures.csv, and expressions of studies: mean(figure_{}[\"FLOW\"])", metric.name)),
            ],
            ..NamedItem::default()
        }));
    }
}

fn columns(all: &mut Vec<NamedItem>) {
    let of_access = ACCESS_NETWORKS.iter().flat_map(|network| (network.tables)());
    for TableReference { file, text, columns } in
        study_table_references().into_iter().chain(run_table_references()).chain(of_access)
    {
        all.push(NamedItem {
            name: file.to_owned(),
            what: "file of records".to_owned(),
            group: COLUMNS,
            text: text.to_owned(),
            list: columns.iter().map(|column| (column.name.to_owned(), column.text.to_owned())).collect(),
            ..NamedItem::default()
        });
        // Studies use the columns of these tables in expressions.
        let prefix = match file {
            "flows.csv" => Some(""),
            "links.csv" => Some("link_"),
            _ => None,
        };
        for column in columns {
            let empty = if column.is_optional { ", or empty" } else { "" };
            let expression = prefix.filter(|_| column.kind != "text").map_or_else(String::new, |prefix| {
                format!(", and expressions of studies: sum({prefix}{}[\"*\"])", column.name)
            });
            all.push(NamedItem {
                name: column.name.to_owned(),
                what: format!("column of {file}"),
                group: COLUMNS,
                text: column.text.to_owned(),
                facts: vec![
                    ("type", format!("{}{empty}", column.kind)),
                    ("unit", unit(column.unit)),
                    ("used in", format!("{file}{expression}")),
                ],
                ..NamedItem::default()
            });
        }
    }
    all.extend(RunRecord::keys().into_iter().map(|JsonKey { path, kind, unit, text, is_optional }| {
        let empty = if is_optional { ", or none" } else { "" };
        let name = path.rsplit('.').next().unwrap_or_default().to_owned();
        NamedItem {
            name,
            what: format!("key of {}", RunRecord::FILE),
            group: COLUMNS,
            text: text.to_owned(),
            facts: vec![
                ("type", format!("{kind}{empty}")),
                ("unit", self::unit(unit)),
                ("used in", format!("{}: {path}", RunRecord::FILE)),
            ],
            ..NamedItem::default()
        }
    }));
}

/// Adds the keys of a file. A key with several paths is one entry.
fn keys(all: &mut Vec<NamedItem>, root: &'static Table, file: &str) {
    let mut found = Keys { file, named: Vec::new(), index: BTreeMap::new() };
    found.table(root, "", &mut Vec::new());
    all.append(&mut found.named);
}

/// The keys of a file.
struct Keys<'a> {
    file: &'a str,
    named: Vec<NamedItem>,
    /// The index of the entry of a key, by its table (address), name and text.
    index: BTreeMap<(usize, &'static str, &'static str), usize>,
}

impl Keys<'_> {
    fn table(&mut self, table: &'static Table, path: &str, above: &mut Vec<*const Table>) {
        let address: *const Table = table;
        if above.contains(&address) || above.len() > 8 {
            return;
        }
        above.push(address);
        let defaults = table.defaults.map(|defaults| defaults());
        for field in table.common_fields() {
            self.field(table, field, None, defaults.as_ref(), path, above);
        }
        if let Some(variants) = table.variants {
            self.selecting(table, path);
            for variant in variants.list {
                let condition = format!("{} = \"{}\"", variants.key, variant.name);
                for field in variant.fields.iter().flat_map(|group| group.iter()) {
                    self.field(table, field, Some(&condition), defaults.as_ref(), path, above);
                }
            }
        }
        above.pop();
    }

    /// Adds a path to the entry of a key. `new` creates the entry at its first occurrence.
    fn entry(
        &mut self,
        table: &'static Table,
        (key, text): (&'static str, &'static str),
        path: &str,
        new: impl FnOnce() -> NamedItem,
    ) -> &mut NamedItem {
        let address = std::ptr::from_ref(table) as usize;
        let number = *self.index.entry((address, key, text)).or_insert_with(|| {
            self.named.push(new());
            self.named.len() - 1
        });
        let named = &mut self.named[number];
        let path = format!("{path}{key}");
        if !named.paths.contains(&path) {
            named.paths.push(path);
        }
        named
    }

    fn what(&self, table: &Table) -> String {
        match table.name {
            "" => format!("key of {}", self.file),
            "tcp" | "quic" | "udp" | "arp" | "masque" => {
                format!("key of {}, in {}", table.name.to_uppercase(), self.file)
            }
            name => format!("key of {} {name}, in {}", article(name), self.file),
        }
    }

    /// Adds the key that selects further keys.
    fn selecting(&mut self, table: &'static Table, path: &str) {
        let Some(variants) = table.variants else { return };
        let what = self.what(table);
        self.entry(table, (variants.key, variants.text), path, || NamedItem {
            name: variants.key.to_owned(),
            what,
            group: KEYS,
            text: match variants.text {
                "" => "Determines which further keys apply.".to_owned(),
                text => text.to_owned(),
            },
            facts: vec![(
                "default",
                variants.default.map_or_else(|| "required".to_owned(), |default| format!("\"{default}\"")),
            )],
            list: variants
                .list
                .iter()
                .map(|variant| (format!("\"{}\"", variant.name), variant.text.to_owned()))
                .collect(),
            paths: Vec::new(),
        });
    }

    fn field(
        &mut self,
        table: &'static Table,
        field: &'static Field,
        condition: Option<&str>,
        defaults: Option<&Tree>,
        path: &str,
        above: &mut Vec<*const Table>,
    ) {
        let what = self.what(table);
        let named = self.entry(table, (field.key, field.text), path, || {
            let mut facts = vec![("type", plain(&describe_kind(&field.kind)))];
            if !field.unit.is_empty() {
                facts.push(("unit", field.unit.to_owned()));
            }
            facts.push(("default", default_text(field, defaults)));
            let list = choices(&field.kind).iter().filter(|choice| choice.available);
            NamedItem {
                name: field.key.to_owned(),
                what,
                group: KEYS,
                text: field.text.to_owned(),
                facts,
                list: list.map(|choice| (format!("\"{}\"", choice.name), choice.text.to_owned())).collect(),
                paths: Vec::new(),
            }
        });
        if let Some(condition) = condition {
            match named.facts.iter_mut().find(|(fact, _)| *fact == "only with") {
                Some((_, conditions)) if !conditions.split(", ").any(|known| known == condition) => {
                    *conditions += &format!(", {condition}");
                }
                Some(_) => {}
                None => named.facts.push(("only with", condition.to_owned())),
            }
        }
        let step = format!("{path}{}.", field.key);
        self.below(&field.kind, &step, above);
    }

    fn below(&mut self, kind: &'static FieldKind, path: &str, above: &mut Vec<*const Table>) {
        match kind {
            FieldKind::Table(table) => self.table(table, path, above),
            FieldKind::Tables(table) => {
                let has_name = table.common_fields().any(|field| field.key == "name");
                self.table(table, &format!("{path}{}.", if has_name { "NAME" } else { "N" }), above);
            }
            FieldKind::List(kind) => self.below(kind, &format!("{path}N."), above),
            FieldKind::Map(kind) => self.below(kind, &format!("{path}NAME."), above),
            FieldKind::Either(first, second) => {
                self.below(first, path, above);
                self.below(second, path, above);
            }
            _ => {}
        }
    }
}

fn choices(kind: &'static FieldKind) -> &'static [Choice] {
    match kind {
        FieldKind::Choice(choices) => choices,
        FieldKind::List(kind) => choices(kind),
        _ => &[],
    }
}

fn default_text(field: &'static Field, defaults: Option<&Tree>) -> String {
    match field.default {
        DefaultValue::Required => "required".to_owned(),
        DefaultValue::Empty => "empty".to_owned(),
        DefaultValue::Absent(text) => plain(text),
        DefaultValue::Setting => defaults
            .and_then(|defaults| defaults.get(field.key))
            .map_or_else(String::new, |value| format_inline(Some(&field.kind), value)),
        DefaultValue::Value(value) | DefaultValue::Inherited(value) => match field.kind {
            FieldKind::Boolean | FieldKind::Integer { .. } | FieldKind::Number { .. } | FieldKind::List(_) => {
                value.to_owned()
            }
            FieldKind::Either(FieldKind::Integer { .. }, _) => value.to_owned(),
            _ => format!("\"{value}\""),
        },
    }
}

fn unit(unit: &str) -> String {
    if unit.is_empty() { "none".to_owned() } else { unit.to_owned() }
}

fn article(noun: &str) -> &'static str {
    let is_vowel = noun.starts_with(['a', 'e', 'i', 'o', 'A', 'E', 'I', 'O']) || ["LTE network", "RLC"].contains(&noun);
    if is_vowel { "an" } else { "a" }
}

/// Returns a text of the declarations as a sentence. In some lists the texts are parts of sentences.
fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    // A word with uppercase letters or digits after its first letter is a name.
    let first_word = text.split([' ', ',', ':']).next().unwrap_or_default();
    let is_name = first_word.chars().skip(1).any(|letter| !letter.is_lowercase());
    match letters.next() {
        None => String::new(),
        Some(first) if is_name => format!("{first}{}.", letters.as_str()),
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
    }
}

/// Converts Markdown to plain text: links are replaced by their texts, and code has no backquotes.
pub(crate) fn plain(markdown: &str) -> String {
    let (mut plain, mut rest) = (String::new(), markdown);
    while let Some((before, after)) = rest.split_once('[') {
        plain += before;
        rest = match after.split_once("](").and_then(|(text, target)| Some((text, target.split_once(')')?.1))) {
            Some((text, behind)) if !text.contains(['[', ']']) => {
                plain += text;
                behind
            }
            _ => {
                plain.push('[');
                after
            }
        };
    }
    (plain + rest).replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_converts_to_plain_text() {
        assert_eq!(plain("table: [path loss](#path-loss)"), "table: path loss");
        assert_eq!(plain("as `[tcp]`, [[flow]] or [a](b) and [c](d)"), "as [tcp], [[flow]] or a and c");
        assert_eq!(sentence("congestion window."), "Congestion window.");
        assert_eq!(sentence("A call"), "A call.");
        assert_eq!(sentence("mSCTP"), "mSCTP.");
    }
}
