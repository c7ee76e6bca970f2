//! The numbers behind a plot as CSV, for a reader who draws them again: one row for each value, in base units.

use std::fmt::Write;

/// A field of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum {
    /// A text.
    Text(String),
    /// A number in the unit that the name of its column ends with; `None`: there is none.
    Number(Option<f64>),
}

impl From<&str> for Datum {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<f64> for Datum {
    fn from(value: f64) -> Self {
        Self::Number(Some(value))
    }
}

impl From<Option<f64>> for Datum {
    fn from(value: Option<f64>) -> Self {
        Self::Number(value)
    }
}

/// The numbers behind a plot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Data {
    columns: Vec<String>,
    rows: Vec<Vec<Datum>>,
}

impl Data {
    /// A table without rows.
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> Self {
        Self { columns: columns.into_iter().map(str::to_owned).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn push<const N: usize>(&mut self, row: [Datum; N]) {
        self.rows.push(row.to_vec());
    }

    /// The table as CSV (RFC 4180, lines end as in the other files of a folder of records). Numbers are the shortest that read
    /// back as the same.
    pub(crate) fn to_csv(&self) -> String {
        let mut out = String::new();
        let line = |out: &mut String, fields: &mut dyn Iterator<Item = String>| {
            for (number, field) in fields.enumerate() {
                let _ = write!(out, "{}{field}", if number > 0 { "," } else { "" });
            }
            out.push('\n');
        };
        line(&mut out, &mut self.columns.iter().map(|column| quoted(column)));
        for row in &self.rows {
            line(
                &mut out,
                &mut row.iter().map(|field| match field {
                    Datum::Text(text) => quoted(text),
                    Datum::Number(value) => {
                        value.filter(|value| value.is_finite()).map_or_else(String::new, |v| v.to_string())
                    }
                }),
            );
        }
        out
    }
}

/// A text in quotes if it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be_and_missing_numbers_are_empty() {
        let mut data = Data::new(["series", "x", "goodput_bps"]);
        data.push(["a, \"b\"".into(), 0.1.into(), None.into()]);
        data.push(["c".into(), 2.0.into(), 9_400_000.5.into()]);
        assert_eq!(data.to_csv(), "series,x,goodput_bps\n\"a, \"\"b\"\"\",0.1,\nc,2,9400000.5\n");
    }
}
