//! The numbers of a plot as CSV, for readers who draw it themselves: one row for each value, in base units.

use std::fmt::Write;

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Datum {
    /// A text.
    Text(String),
    /// A number in the unit at the end of the column's name; `None` if there is no value.
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

/// The numbers of a plot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Data {
    columns: Vec<String>,
    rows: Vec<Vec<Datum>>,
}

impl Data {
    /// Creates a table without rows.
    pub(crate) fn new<'a>(columns: impl IntoIterator<Item = &'a str>) -> Self {
        Self { columns: columns.into_iter().map(str::to_owned).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn push<const N: usize>(&mut self, row: [Datum; N]) {
        self.rows.push(row.to_vec());
    }

    /// The table as CSV (RFC 4180, with the line ends of the other records). Numbers have the shortest form that parses
    /// to the same number.
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

/// A text in quotation marks if it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_if_necessary_and_missing_numbers_are_empty() {
        let mut data = Data::new(["series", "x", "goodput_bps"]);
        data.push(["a, \"b\"".into(), 0.1.into(), None.into()]);
        data.push(["c".into(), 2.0.into(), 9_400_000.5.into()]);
        assert_eq!(data.to_csv(), "series,x,goodput_bps\n\"a, \"\"b\"\"\",0.1,\nc,2,9400000.5\n");
    }
}
