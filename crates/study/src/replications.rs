//! Reads replications, which are settings that differ between runs. Their source is a CSV file in the folder of a
//! study, or a list of tables in the study.
//!
//! The columns of the file are paths of a scenario. Row r, counted from 1, applies to run r. A cell is a value as in
//! `--set`. Lines that begin with `#` are comments.

use crate::level::flattened;
use crate::settings::value_of;
use crate::study::Setting;
use fullpipe_scenario::schema::{Error, Value};

/// Returns the rows of a CSV file, and reports each line that is not a row as an error.
pub(crate) fn rows(text: &str, file: &str, errors: &mut Vec<Error>) -> Vec<Vec<Setting>> {
    let error = |line: u64, message: String, expected: Vec<String>| Error {
        file: file.to_owned(),
        line: line as usize,
        column: 1,
        path: String::new(),
        found: String::new(),
        expected,
        message,
        suggestion: None,
    };
    let mut reader =
        csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(reason) => {
            errors.push(error(1, format!("invalid CSV: {reason}"), Vec::new()));
            return Vec::new();
        }
    };
    let header_line = header.position().map_or(1, csv::Position::line);
    if header.iter().any(str::is_empty) {
        let expected = vec!["paths of the scenario".to_owned()];
        errors.push(error(header_line, "a column has no name".to_owned(), expected));
        return Vec::new();
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(reason) => {
                let line = reason.position().map_or(0, csv::Position::line);
                errors.push(error(line, format!("invalid CSV: {reason}"), Vec::new()));
                break;
            }
        };
        let line = record.position().map_or(0, csv::Position::line);
        if record.len() != header.len() {
            let expected = vec![format!("{} fields, as in the first line", header.len())];
            errors.push(error(line, format!("this line has {} fields", record.len()), expected));
            continue;
        }
        if let Some(column) = record.iter().position(str::is_empty) {
            let message = format!("this line has no value for {}", &header[column]);
            errors.push(error(line, message, vec!["a value in every column".to_owned()]));
            continue;
        }
        let setting = |(path, cell): (&str, &str)| Setting { path: path.to_owned(), value: value_of(cell) };
        rows.push(header.iter().zip(&record).map(setting).collect());
    }
    rows
}

/// Returns a row from a table of the study.
pub(crate) fn row(value: &Value) -> Vec<Setting> {
    value.map().iter().flat_map(|entry| flattened(&entry.name, entry.value.raw())).collect()
}
