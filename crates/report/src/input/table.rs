//! Reading the CSV records: columns by name, so that columns may be added; numbers checked on the way in, so that
//! nothing behind this door meets a value that is not finite.

use crate::error::ReportError;
use std::path::{Path, PathBuf};

/// Larger numbers than this are no measurement (and their differences would overflow).
const LARGEST: f64 = 1e200;

/// A CSV file that is being read.
pub(crate) struct Table {
    file: PathBuf,
    header: Vec<String>,
    reader: csv::Reader<std::fs::File>,
    record: csv::StringRecord,
}

impl Table {
    /// Opens a file and reads its header.
    pub(crate) fn open(file: &Path) -> Result<Self, ReportError> {
        let opened = std::fs::File::open(file).map_err(|cause| ReportError::read(file, cause))?;
        let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(opened);
        let header = match reader.headers() {
            Ok(header) => header.iter().map(str::to_owned).collect::<Vec<_>>(),
            Err(error) => return Err(csv_error(file, error)),
        };
        if header.iter().all(String::is_empty) {
            return Err(ReportError::corrupt(file, "is empty, expected a line of column names"));
        }
        Ok(Self { file: file.to_path_buf(), header, reader, record: csv::StringRecord::new() })
    }

    /// The column names.
    pub(crate) fn header(&self) -> &[String] {
        &self.header
    }

    /// The place of a column that must be there.
    pub(crate) fn column(&self, name: &str) -> Result<usize, ReportError> {
        self.header.iter().position(|h| h == name).ok_or_else(|| {
            let found = self.header.join(",");
            ReportError::corrupt_at(&self.file, 1, format!("has no column `{name}`; its columns are `{found}`"))
        })
    }

    /// Reads the next row; false at the end.
    pub(crate) fn next(&mut self) -> Result<bool, ReportError> {
        self.reader.read_record(&mut self.record).map_err(|error| csv_error(&self.file, error))
    }

    /// A field of the current row.
    pub(crate) fn text(&self, column: usize) -> &str {
        self.record.get(column).unwrap_or("")
    }

    /// A field of the current row as a number; `None` if it is empty.
    pub(crate) fn number(&self, column: usize) -> Result<Option<f64>, ReportError> {
        let text = self.text(column).trim();
        if text.is_empty() {
            return Ok(None);
        }
        match parse_number(text) {
            Some(value) => Ok(Some(value)),
            None => {
                let name = self.header.get(column).map_or("?", String::as_str);
                Err(self.problem(format!("column `{name}`: expected a number, found `{}`", shorten(text))))
            }
        }
    }

    /// A number that must be there.
    pub(crate) fn required(&self, column: usize) -> Result<f64, ReportError> {
        self.number(column)?.ok_or_else(|| {
            let name = self.header.get(column).map_or("?", String::as_str);
            self.problem(format!("column `{name}`: expected a number, found nothing"))
        })
    }

    /// An error at the current row.
    pub(crate) fn problem(&self, problem: impl Into<String>) -> ReportError {
        ReportError::corrupt_at(&self.file, self.record.position().map_or(1, csv::Position::line), problem)
    }
}

/// A finite number of a believable size.
pub(crate) fn parse_number(text: &str) -> Option<f64> {
    text.parse::<f64>().ok().filter(|v| v.abs() <= LARGEST)
}

/// The beginning of a text, for messages.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().count() <= 40 { text.to_owned() } else { text.chars().take(40).chain(['…']).collect() }
}

fn csv_error(file: &Path, error: csv::Error) -> ReportError {
    let line = error.position().map(csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(cause) => ReportError::read(file, cause),
        csv::ErrorKind::Utf8 { pos, .. } => ReportError::Corrupt {
            file: file.to_path_buf(),
            line: pos.map(|p| p.line()).or(line),
            problem: "is not UTF-8 text".to_owned(),
        },
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => ReportError::Corrupt {
            file: file.to_path_buf(),
            line: pos.map(|p| p.line()).or(line),
            problem: format!("expected {expected_len} fields, found {len}"),
        },
        _ => ReportError::corrupt(file, "is not a readable CSV file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_pass() {
        assert_eq!(parse_number("1e3"), Some(1000.0));
        for bad in ["inf", "NaN", "-inf", "1e201", "12x", ""] {
            assert_eq!(parse_number(bad), None, "{bad}");
        }
    }
}
