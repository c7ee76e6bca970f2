//! The values of axes, and settings of scenarios, as files and users write them.

use crate::study::{Level, Setting, is_label, label_of, number_of};
use fullpipe_scenario::schema::{Node, NodeContent};

const LEVEL_KEYS: [&str; 4] = ["label", "value", "set", "replications"];

/// Reads a level. An error contains the problem and what is accepted.
pub(crate) fn level_of(node: &Node) -> Result<Level, (String, &'static str)> {
    let NodeContent::Table(entries) = &node.content else {
        let label = label_of(node);
        if matches!(node.content, NodeContent::Array(_)) || !is_label(&label) {
            return Err((
                format!("{} cannot be written in a table", node.to_toml()),
                "{ label = \"NAME\", value = ... }",
            ));
        }
        return Ok(Level { label, value: Some(node.clone()), set: Vec::new(), replications: None });
    };
    if let Some(entry) = entries.iter().find(|entry| !LEVEL_KEYS.contains(&entry.key.as_str())) {
        return Err((format!("{} is not a key of a value of an axis", entry.key), "label, value, set or replications"));
    }
    let label =
        node.get("label").filter(|label| !matches!(label.content, NodeContent::Array(_) | NodeContent::Table(_)));
    let label = label.map(label_of).filter(|label| is_label(label));
    let Some(label) = label else {
        return Err(("this value has no label for tables".to_owned(), "label = \"NAME\""));
    };
    let value = node.get("value").cloned();
    let set = node.get("set");
    if set.is_some_and(|set| !matches!(set.content, NodeContent::Table(_))) {
        return Err(("`set` is not a table".to_owned(), "set = { PATH = VALUE }"));
    }
    let replications = node.get("replications");
    if replications.is_some_and(|name| name.as_text().is_none()) {
        return Err(("`replications` is not a name".to_owned(), "replications = \"NAME\""));
    }
    let replications = replications.and_then(Node::as_text).map(str::to_owned);
    if value.is_none() && set.is_none() && replications.is_none() {
        return Err((format!("the value {label} sets nothing"), "value, set or replications"));
    }
    let set = match set.map(|set| &set.content) {
        Some(NodeContent::Table(entries)) => {
            entries.iter().flat_map(|entry| flattened(&entry.key, &entry.node)).collect()
        }
        _ => Vec::new(),
    };
    Ok(Level { label, value, set, replications })
}

/// Returns the accepted values of a name that is fixed for all studies, if this value is invalid.
pub(crate) fn wrong_for_fixed_name(name: &str, value: &Node) -> Option<&'static str> {
    match name {
        "load" if number_of(value).is_none_or(|load| load <= 0.0) => Some("a fraction above zero, such as 0.8"),
        "congestion" if value.as_text().is_none() => Some("the name of a congestion control"),
        _ => None,
    }
}

/// Flattens tables to dotted paths: `[experiment.set] flow.data.size = 1` is `"flow.data.size" = 1`. If the key itself
/// contains dots, a table is the value: `"topology.discipline" = { kind = "fifo", limit = "10packets" }` replaces the
/// complete discipline.
pub(crate) fn flattened(key: &str, node: &Node) -> Vec<Setting> {
    match &node.content {
        NodeContent::Table(entries) if !entries.is_empty() && !key.contains('.') => entries
            .iter()
            .flat_map(|entry| flattened(&entry.key, &entry.node))
            .map(|setting| Setting { path: format!("{key}.{}", setting.path), ..setting })
            .collect(),
        _ => vec![Setting { path: key.to_owned(), value: node.clone() }],
    }
}
