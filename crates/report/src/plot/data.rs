//! The numbers of a plot as CSV, for readers who draw the plot themselves. There is one row for each value, in base
//! units.

/// The value of a CSV field.
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

    /// Formats the table as CSV (RFC 4180, with the line ends of the other records). Numbers have the shortest form
    /// from which parsing returns the same number.
    pub(crate) fn to_csv(&self) -> String {
        let mut lines = csv::Writer::from_writer(Vec::new());
        let field = |datum: &Datum| match datum {
            Datum::Text(text) => text.clone(),
            Datum::Number(value) => value.filter(|value| value.is_finite()).map_or_else(String::new, |v| v.to_string()),
        };
        // Writing to memory cannot fail, and all rows have the same length.
        let _ = lines.write_record(&self.columns);
        for row in &self.rows {
            let _ = lines.write_record(row.iter().map(field));
        }
        lines.into_inner().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }
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
