//! The settings in which two folders of records differ: the builds, the parameters and axes of the studies, and the
//! values in their resolved scenarios.

use crate::input::distinct;
use crate::input::study::{Study, shown};
use toml_edit::{Document, Item, TableLike, Value};

/// The maximum number of characters of a value that is shown completely.
const LONGEST: usize = 60;

/// A setting with different values in two folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingDifference {
    /// The path of the setting, as in `--set`.
    pub(crate) path: String,
    /// The value of this folder.
    pub(crate) here: String,
    /// The value of the other folder.
    pub(crate) there: String,
}

/// Returns the settings that differ, in the order of this folder.
pub(crate) fn differing(here: &Study, there: &Study) -> Vec<SettingDifference> {
    let mut out = Vec::new();
    let mut push = |path: &str, a: &str, b: &str| {
        if a != b {
            out.push(SettingDifference { path: path.to_owned(), here: a.to_owned(), there: b.to_owned() });
        }
    };
    push("build", &here.build, &there.build);
    let axis = |study: &Study, name: &str| {
        study
            .axis
            .iter()
            .find(|axis| axis.name == name)
            .map_or_else(|| NOT_SET.to_owned(), |axis| axis.values.join(", "))
    };
    for name in distinct(here.axis.iter().chain(&there.axis).map(|axis| axis.name.as_str())) {
        push(name, &axis(here, name), &axis(there, name));
    }
    let parameter = |study: &Study, name: &str| {
        let known = study.parameters.iter().find(|(known, _)| known == name);
        known.and_then(|(_, parameter)| parameter.default.as_ref()).map_or_else(|| NOT_SET.to_owned(), shown)
    };
    for name in distinct(here.parameters.iter().chain(&there.parameters).map(|(name, _)| name.as_str())) {
        push(name, &parameter(here, name), &parameter(there, name));
    }
    for (name, scenario) in &here.scenarios {
        let Some((_, other)) = there.scenarios.iter().find(|(known, _)| known == name) else { continue };
        let (Some(a), Some(b)) = (parse(&scenario.text.0), parse(&other.text.0)) else { continue };
        // The name of a scenario is redundant if there is only one.
        let path = if here.scenarios.len() > 1 { name.as_str() } else { "" };
        compare(path, Some(&a), Some(&b), &mut out);
    }
    // The title describes the settings but is not a setting.
    out.retain(|one| one.path != "title" && !one.path.ends_with(".title"));
    out
}

const NOT_SET: &str = "not set";

/// A scenario as a tree. The keys of a list of tables are the names of its tables, or the indices of tables without a
/// name.
#[derive(Clone, Debug, PartialEq)]
enum Setting {
    Value(String),
    Table(Vec<(String, Setting)>),
}

/// Returns the tree of a resolved scenario; `None` if it is not TOML.
fn parse(text: &str) -> Option<Setting> {
    Document::parse(text).ok().map(|document| of_table(document.as_table()))
}

fn of_table(table: &dyn TableLike) -> Setting {
    Setting::Table(table.iter().map(|(key, item)| (key.to_owned(), of_item(item))).collect())
}

fn of_item(item: &Item) -> Setting {
    let list = |tables: Vec<&dyn TableLike>| {
        let key = |(index, table): (usize, &dyn TableLike)| {
            let name = table.get("name").and_then(Item::as_str).map_or_else(|| index.to_string(), str::to_owned);
            (name, of_table(table))
        };
        Setting::Table(tables.into_iter().enumerate().map(key).collect())
    };
    match item {
        Item::Table(table) => of_table(table),
        Item::ArrayOfTables(tables) => list(tables.iter().map(|table| table as &dyn TableLike).collect()),
        Item::Value(Value::InlineTable(table)) => of_table(table),
        Item::Value(Value::Array(values)) if !values.is_empty() && values.iter().all(Value::is_inline_table) => {
            list(values.iter().filter_map(Value::as_inline_table).map(|table| table as &dyn TableLike).collect())
        }
        Item::Value(Value::String(text)) => Setting::Value(text.value().clone()),
        item => Setting::Value(item.to_string().trim().to_owned()),
    }
}

impl Setting {
    fn get(&self, key: &str) -> Option<&Setting> {
        match self {
            Setting::Table(entries) => entries.iter().find(|(known, _)| known == key).map(|(_, value)| value),
            Setting::Value(_) => None,
        }
    }

    fn shown(&self) -> String {
        match self {
            Setting::Value(text) => cut(text),
            Setting::Table(_) => "set".to_owned(),
        }
    }
}

fn compare(path: &str, here: Option<&Setting>, there: Option<&Setting>, out: &mut Vec<SettingDifference>) {
    if here == there {
        return;
    }
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    if let (Some(Setting::Table(a)), Some(Setting::Table(b))) = (here, there) {
        for key in distinct(a.iter().chain(b).map(|(key, _)| key)) {
            compare(&below(key), here.and_then(|a| a.get(key)), there.and_then(|b| b.get(key)), out);
        }
        return;
    }
    let value = |setting: Option<&Setting>| setting.map_or_else(|| NOT_SET.to_owned(), Setting::shown);
    out.push(SettingDifference { path: path.to_owned(), here: value(here), there: value(there) });
}

fn cut(text: &str) -> String {
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_differ_by_path_with_both_values() {
        let parse = |text: &str| parse(text).unwrap();
        let here = "duration = \"60s\"\nprobe = [{ interval = \"1s\" }]\n[[link]]\nname = \"lan\"\nrate = 5\n[[link]]\nname = \
                    \"access\"\ndiscipline = { kind = \"fifo\", limit = \"200packets\" }\n";
        let there = "duration = \"60s\"\nprobe = [{ interval = \"2s\" }]\n[[link]]\nname = \"access\"\ndiscipline = { kind = \
                     \"codel\" }\n[[link]]\nname = \"lan\"\nrate = 5\n[flow]\nsize = 1\n";
        let mut out = Vec::new();
        compare("", Some(&parse(here)), Some(&parse(there)), &mut out);
        let found: Vec<_> = out.iter().map(|one| (one.path.as_str(), one.here.as_str(), one.there.as_str())).collect();
        // The order of the links does not matter, because they have names.
        assert_eq!(
            found,
            [
                ("probe.0.interval", "1s", "2s"),
                ("link.access.discipline.kind", "fifo", "codel"),
                ("link.access.discipline.limit", "200packets", "not set"),
                ("flow", "not set", "set"),
            ]
        );
    }
}
