//! Numbered notes below a table, so that long texts do not stretch its rows. Each text is listed once, even if several
//! rows have it.

use crate::markup::markdown;
use std::fmt::Write;

/// Notes that are shorter than this number of characters are written in their row.
const SHORT_NOTE: usize = 70;
/// Names of sources that are shorter than this number of characters are written in their row.
const SHORT_SOURCE: usize = 24;

/// Notes of one section.
#[derive(Clone, Debug)]
pub(crate) struct Notes {
    /// Prefix of the `id` attributes of the notes.
    id: &'static str,
    /// The word before the number of a note. The word "note" results in "note 3", and an empty word in "[3]".
    word: &'static str,
    texts: Vec<String>,
}

impl Notes {
    pub(crate) fn new(id: &'static str, word: &'static str) -> Self {
        Self { id, word, texts: Vec::new() }
    }

    /// Returns a short text unchanged, and a reference to a long text.
    pub(crate) fn short_or_mark(&mut self, text: &str) -> String {
        match text.chars().count() {
            0 => String::new(),
            n if n <= SHORT_SOURCE => format!("<span class=\"whole\">{}</span>", markdown(text)),
            n if n <= SHORT_NOTE && !self.word.is_empty() => markdown(text),
            _ => self.mark(text),
        }
    }

    /// Returns a reference to a text.
    pub(crate) fn mark(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let known = self.texts.iter().position(|t| t == text);
        let number = known.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.texts.len() - 1
        }) + 1;
        let (id, word) = (self.id, self.word);
        let shown = if word.is_empty() { format!("[{number}]") } else { format!("{word}\u{a0}{number}") };
        format!("<a href=\"#{id}-{number}\">{shown}</a>")
    }

    /// Writes the list of all referenced texts.
    pub(crate) fn write(&self, out: &mut String, title: &str) {
        if self.texts.is_empty() {
            return;
        }
        let _ = write!(out, "<p class=\"soft\">{title}</p>\n<ol class=\"notes\">\n");
        for (i, text) in self.texts.iter().enumerate() {
            let _ = writeln!(out, "<li id=\"{}-{}\">{}</li>", self.id, i + 1, markdown(text));
        }
        out.push_str("</ol>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_list_each_text_once() {
        let mut notes = Notes::new("n", "note");
        let long = "x".repeat(100);
        assert_eq!(notes.short_or_mark("a < b"), "<span class=\"whole\">a &lt; b</span>");
        assert_eq!(notes.short_or_mark(&"y".repeat(60)), "y".repeat(60));
        assert_eq!(notes.short_or_mark(&long), "<a href=\"#n-1\">note\u{a0}1</a>");
        assert_eq!(notes.mark("y"), "<a href=\"#n-2\">note\u{a0}2</a>");
        assert_eq!(notes.mark(&long), "<a href=\"#n-1\">note\u{a0}1</a>");
        let mut out = String::new();
        notes.write(&mut out, "Notes");
        assert_eq!(out.matches("<li").count(), 2);
    }
}
