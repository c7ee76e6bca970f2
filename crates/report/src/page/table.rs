//! Tables: headings with scope, numbers aligned at the decimal point, and a scrollable frame if the table is wider than
//! the screen.

use crate::markup::escape;
use crate::numbers::align;
use std::fmt::Write;

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Field {
    /// Text, which is escaped when it is written.
    Text(String),
    /// A formatted number, aligned within its column.
    Number(String),
    /// Markup from this crate.
    Markup(String),
    /// A number that is the best of its column.
    Best(String),
    /// Highlighted text about a problem.
    Bad(String),
}

/// A table. The first `keys` columns are row headings.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) keys: usize,
    pub(crate) headings: Vec<Heading>,
    /// The row above the headings: texts, and the number of columns that each spans. If empty, there is no such row.
    pub(crate) spans: Vec<(String, usize)>,
    /// Rows in groups. The name of a group is a separate row.
    pub(crate) groups: Vec<(Option<String>, Vec<Vec<Field>>)>,
}

/// A column's heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Heading {
    pub(crate) text: String,
    /// Whether the column is right-aligned.
    pub(crate) number: bool,
    /// Whether the column contains long texts and needs a minimum width.
    pub(crate) long: bool,
}

impl Heading {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: false, long: false }
    }

    pub(crate) fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: true, long: false }
    }

    pub(crate) fn long(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: false, long: true }
    }
}

impl Table {
    /// Creates a table without groups and without columns that are empty in all rows.
    pub(crate) fn of_rows(
        caption: impl Into<String>,
        keys: usize,
        headings: Vec<Heading>,
        rows: impl Iterator<Item = Vec<Field>>,
    ) -> Self {
        let groups = vec![(None, rows.collect())];
        let mut table = Self { caption: caption.into(), keys, headings, groups, ..Self::default() };
        table.drop_empty_columns();
        table
    }

    /// Returns the number of rows in all groups.
    pub(crate) fn len(&self) -> usize {
        self.groups.iter().map(|(_, rows)| rows.len()).sum()
    }

    /// Removes columns that are empty in all rows.
    pub(crate) fn drop_empty_columns(&mut self) {
        let empty = |field: &Field| match field {
            Field::Text(t) | Field::Number(t) | Field::Best(t) | Field::Markup(t) | Field::Bad(t) => {
                t.is_empty() || t == "–"
            }
        };
        for column in (self.keys..self.headings.len()).rev() {
            let rows = || self.groups.iter().flat_map(|(_, rows)| rows);
            if rows().all(|row| row.get(column).is_none_or(empty)) {
                self.headings.remove(column);
                // The text above the removed column then spans one column less.
                let mut end = 0;
                let above = self.spans.iter_mut().find(|(_, columns)| {
                    end += columns;
                    column < end
                });
                if let Some((_, columns)) = above {
                    *columns -= 1;
                }
                for row in self.groups.iter_mut().flat_map(|(_, rows)| rows).filter(|row| row.len() > column) {
                    row.remove(column);
                }
            }
        }
    }

    /// Writes the table.
    pub(crate) fn write(&self, out: &mut String) {
        let label = escape(&self.caption);
        let _ = write!(out, "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"{label}\"><table>");
        let _ = write!(out, "<caption>{label}</caption>\n<thead>");
        let heading = |out: &mut String, heading: &Heading, rows: &str| {
            let class = if heading.number { " class=\"n\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{class}{rows}>{}</th>", escape(&heading.text));
        };
        // A heading without a text above spans both rows, so that the upper row has no empty cells.
        let mut below: Vec<&Heading> = self.headings.iter().collect();
        if !self.spans.is_empty() {
            below.clear();
            out.push_str("<tr>");
            let mut headings = self.headings.iter();
            for (text, columns) in self.spans.iter().filter(|(_, columns)| *columns > 0) {
                let of_span = headings.by_ref().take(*columns);
                if text.is_empty() {
                    of_span.for_each(|one| heading(out, one, " rowspan=\"2\""));
                } else {
                    below.extend(of_span);
                    let text = escape(text);
                    let _ = write!(out, "<th scope=\"colgroup\" class=\"over\" colspan=\"{columns}\">{text}</th>");
                }
            }
            below.extend(headings);
            out.push_str("</tr>\n");
        }
        out.push_str("<tr>");
        below.into_iter().for_each(|one| heading(out, one, ""));
        out.push_str("</tr></thead>\n");
        for (name, rows) in &self.groups {
            out.push_str("<tbody>");
            if let Some(name) = name {
                let (span, name) = (self.headings.len(), escape(name));
                let _ = writeln!(out, "<tr><th scope=\"rowgroup\" class=\"group\" colspan=\"{span}\">{name}</th></tr>");
            }
            for row in aligned(rows) {
                self.write_row(out, &row);
            }
            out.push_str("</tbody>\n");
        }
        out.push_str("</table></div>\n");
    }

    /// Writes the table, collapsed under a summary.
    pub(crate) fn write_folded(&self, out: &mut String, summary: &str) {
        let _ = writeln!(out, "<details><summary>{}</summary>", escape(summary));
        self.write(out);
        out.push_str("</details>\n");
    }

    fn write_row(&self, out: &mut String, row: &[Field]) {
        out.push_str("<tr>");
        for (column, field) in row.iter().enumerate() {
            let heading = self.headings.get(column);
            let number = heading.is_some_and(|h| h.number) || matches!(field, Field::Number(_) | Field::Best(_));
            let class = match field {
                Field::Bad(_) => " class=\"bad\"",
                _ if number => " class=\"n\"",
                _ if heading.is_some_and(|h| h.long) => " class=\"text\"",
                _ => "",
            };
            let content = match field {
                Field::Text(text) | Field::Number(text) | Field::Bad(text) => escape(text),
                Field::Best(text) => format!("<strong>★\u{a0}{}</strong>", escape(text)),
                Field::Markup(markup) => markup.clone(),
            };
            if column < self.keys {
                let _ = write!(out, "<th scope=\"row\"{class}>{content}</th>");
            } else {
                let _ = write!(out, "<td{class}>{content}</td>");
            }
        }
        out.push_str("</tr>\n");
    }
}

/// Returns the rows with numbers that are padded to align at the decimal point in each column.
fn aligned(rows: &[Vec<Field>]) -> Vec<Vec<Field>> {
    let mut rows = rows.to_vec();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    for column in 0..columns {
        let text = |row: &Vec<Field>| match row.get(column) {
            Some(Field::Number(text) | Field::Best(text)) => text.clone(),
            _ => String::new(),
        };
        let mut texts: Vec<String> = rows.iter().map(text).collect();
        align(&mut texts);
        for (row, text) in rows.iter_mut().zip(texts) {
            if let Some(Field::Number(old) | Field::Best(old)) = row.get_mut(column) {
                *old = text;
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_scope_and_text_is_escaped() {
        let table = Table {
            caption: "a < b".to_owned(),
            keys: 1,
            headings: vec![Heading::text("name"), Heading::number("value"), Heading::text("nothing")],
            spans: vec![(String::new(), 1), ("over < two".to_owned(), 2)],
            groups: vec![(
                Some("g".to_owned()),
                vec![vec![
                    Field::Text("<script>".to_owned()),
                    Field::Number("1.5".to_owned()),
                    Field::Text(String::new()),
                ]],
            )],
        };
        let mut out = String::new();
        table.write(&mut out);
        for piece in [
            "<caption>a &lt; b</caption>",
            "<th scope=\"col\" class=\"n\">value</th>",
            "<th scope=\"col\" rowspan=\"2\">name</th><th scope=\"colgroup\" class=\"over\" colspan=\"2\">over &lt; two</th>",
            "<th scope=\"row\">&lt;script&gt;</th>",
            "<td class=\"n\">1.5</td>",
            "<th scope=\"rowgroup\" class=\"group\" colspan=\"3\">g</th>",
        ] {
            assert!(out.contains(piece), "{piece} in {out}");
        }
        let mut table = table;
        table.drop_empty_columns();
        assert_eq!(table.headings.len(), 2);
    }
}
