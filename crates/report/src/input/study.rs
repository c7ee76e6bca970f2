//! `study.toml`, with additions for the report: the units at the ends of the texts of axes, and values in readable
//! form.

use crate::error::ReportError;
use fullpipe_archive::StudyRecord;
use fullpipe_schema::{Node, NodeContent};
use std::ops::Deref;
use std::path::Path;

pub(crate) use fullpipe_archive::Plot as PlotSpec;

/// The texts of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Study {
    record: StudyRecord,
    /// The texts of metrics and axes.
    pub(crate) words: Vec<DisplayLabel>,
    /// The content of the file.
    pub(crate) text: String,
}

/// The text of a metric or an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DisplayLabel {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) unit: Option<String>,
}

impl Deref for Study {
    type Target = StudyRecord;

    fn deref(&self) -> &StudyRecord {
        &self.record
    }
}

impl Study {
    /// Reads the file.
    pub(crate) fn read(file: &Path) -> Result<Self, ReportError> {
        let (record, text) = StudyRecord::read(file)?;
        let metrics = record.metric.iter().map(|metric| (&metric.name, &metric.text, metric.unit.as_str()));
        let axes = record.axis.iter().map(|axis| (&axis.name, &axis.text, ""));
        let words = metrics.chain(axes).map(|(name, text, unit)| {
            let (text, unit) = match unit {
                "" => split_unit(text),
                unit => (text.clone(), Some(unit.to_owned())),
            };
            DisplayLabel { name: name.clone(), text, unit }
        });
        Ok(Self { words: words.collect(), record, text })
    }

    /// Returns the study's text of a metric or an axis, if there is one.
    pub(crate) fn words_of(&self, name: &str) -> Option<&DisplayLabel> {
        self.words.iter().find(|w| w.name == name)
    }
}

/// Splits a unit from the text of an axis. There is no key for the unit of an axis, but the text may end with a unit:
/// "Send buffer, bytes".
fn split_unit(text: &str) -> (String, Option<String>) {
    match text.rsplit_once(", ") {
        Some((name, unit @ ("bytes" | "bit/s" | "packets" | "s" | "ms" | "us" | "ns" | "Hz" | "dB" | "%"))) => {
            (name.to_owned(), Some(unit.to_owned()))
        }
        _ => (text.to_owned(), None),
    }
}

/// Returns the values of a list, or a single value as a list, each in the form of `summary.csv`.
pub(crate) fn list(node: &Node) -> Vec<String> {
    match &node.content {
        NodeContent::Array(nodes) => nodes.iter().map(shown).collect(),
        _ => vec![shown(node)],
    }
}

/// Formats a value in readable form: texts without quotes, other values as TOML.
pub(crate) fn shown(node: &Node) -> String {
    match &node.content {
        NodeContent::Text(text) => text.clone(),
        NodeContent::Array(_) => list(node).join(", "),
        _ => node.to_toml(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_unit_recognizes_a_unit_at_the_end_of_a_text() {
        assert_eq!(split_unit("Send buffer, bytes"), ("Send buffer".to_owned(), Some("bytes".to_owned())));
        assert_eq!(split_unit("Published, or random"), ("Published, or random".to_owned(), None));
    }
}
