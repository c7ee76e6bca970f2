//! `study.toml` with what the report adds to it: units that end the texts of axes, and values as a reader wants them.

use crate::error::ReportError;
use fullpipe_archive::StudyRecord;
use fullpipe_schema::{Content, Node};
use std::ops::Deref;
use std::path::Path;

pub(crate) use fullpipe_archive::Plot as PlotSpec;

/// The words of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Study {
    record: StudyRecord,
    /// Texts of metrics and axes.
    pub(crate) words: Vec<Words>,
    /// The file as it stands.
    pub(crate) text: String,
}

/// What a metric or an axis is called.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Words {
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
            Words { name: name.clone(), text, unit }
        });
        Ok(Self { words: words.collect(), record, text })
    }

    /// What a metric or axis is called, where the study says it.
    pub(crate) fn words_of(&self, name: &str) -> Option<&Words> {
        self.words.iter().find(|w| w.name == name)
    }
}

/// An axis has no key for its unit; its text may end with one: "Send buffer, bytes".
fn split_unit(text: &str) -> (String, Option<String>) {
    match text.rsplit_once(", ") {
        Some((name, unit @ ("bytes" | "bit/s" | "packets" | "s" | "ms" | "us" | "ns" | "Hz" | "dB" | "%"))) => {
            (name.to_owned(), Some(unit.to_owned()))
        }
        _ => (text.to_owned(), None),
    }
}

/// A list of values, or one value as a list of one, each as `summary.csv` writes it.
pub(crate) fn list(node: &Node) -> Vec<String> {
    match &node.content {
        Content::Array(nodes) => nodes.iter().map(shown).collect(),
        _ => vec![shown(node)],
    }
}

/// A value as a reader wants it: texts without quotes, everything else as TOML.
pub(crate) fn shown(node: &Node) -> String {
    match &node.content {
        Content::Text(text) => text.clone(),
        Content::Array(_) => list(node).join(", "),
        _ => node.to_toml(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_may_end_a_text() {
        assert_eq!(split_unit("Send buffer, bytes"), ("Send buffer".to_owned(), Some("bytes".to_owned())));
        assert_eq!(split_unit("Published, or random"), ("Published, or random".to_owned(), None));
    }
}
