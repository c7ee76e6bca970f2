//! Reads published values: `published.csv` in the folder of a study, or `[[published]]` in the study.
//!
//! Required columns, in any order: experiment (may be empty if the study has only one), point
//! (`axis=value;axis=value`), metric, and value. Optional columns: tolerance, published_runs (1 if unknown; empty for
//! exact values), source, note, and explained_by. Lines that begin with `#` are comments.

use crate::study::{Axis, Experiment, PublishedResult, Study, Tolerance};
use crate::words::{list_of, suggestion};
use fullpipe_archive::Point;
use fullpipe_scenario::schema::{Error, SourceLocation, Sources, Tree, Value, nearest_name};

/// The columns of `published.csv`.
pub const PUBLISHED_COLUMNS: [&str; 9] =
    ["experiment", "point", "metric", "value", "tolerance", "source", "note", "explained_by", PUBLISHED_RUNS];
const PUBLISHED_RUNS: &str = "published_runs";
const REQUIRED: [&str; 3] = ["point", "metric", "value"];

/// A published value as written, with its positions for errors.
pub(crate) struct PublishedRow<'a> {
    fields: [String; 9],
    place: RowPlace<'a>,
}

enum RowPlace<'a> {
    Tree(&'a Sources, &'a Tree),
    Line { file: String, line: usize, columns: [usize; 9] },
}

/// Returns the rows of a CSV file, and reports each line that is not a row as an error.
pub(crate) fn rows(text: &str, file: &str, errors: &mut Vec<Error>) -> Vec<PublishedRow<'static>> {
    let error = |line: usize, column: usize, found: &str, message: String, expected: Vec<String>| Error {
        file: file.to_owned(),
        line,
        column,
        path: String::new(),
        found: found.to_owned(),
        expected,
        message,
        suggestion: None,
    };
    let mut reader =
        csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).flexible(true).from_reader(text.as_bytes());
    let header = match reader.headers() {
        Ok(header) => header.clone(),
        Err(reason) => {
            errors.push(error(1, 1, "", format!("invalid CSV: {reason}"), Vec::new()));
            return Vec::new();
        }
    };
    let header_line = header.position().map_or(1, |position| position.line() as usize);
    let mut bad_header = false;
    for (index, name) in header.iter().enumerate() {
        if !PUBLISHED_COLUMNS.contains(&name) {
            let column = column_of(text, header_line, &header, index);
            let expected = PUBLISHED_COLUMNS.iter().map(|name| (*name).to_owned()).collect();
            let mut wrong =
                error(header_line, column, name, format!("{name} is not a column of published values"), expected);
            wrong.suggestion = nearest_name(name, PUBLISHED_COLUMNS).map(str::to_owned);
            errors.push(wrong);
            bad_header = true;
        }
    }
    for name in REQUIRED {
        if !header.iter().any(|known| known == name) {
            let message = format!("the column {name} is missing");
            errors.push(error(header_line, 1, "", message, vec![name.to_owned()]));
            bad_header = true;
        }
    }
    if bad_header {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = match record {
            Ok(record) => record,
            Err(reason) => {
                let line = reason.position().map_or(0, |position| position.line() as usize);
                errors.push(error(line, 1, "", format!("invalid CSV: {reason}"), Vec::new()));
                break;
            }
        };
        let line = record.position().map_or(0, |position| position.line() as usize);
        if record.len() != header.len() {
            let message = format!("this line has {} fields", record.len());
            errors.push(error(
                line,
                1,
                record.get(0).unwrap_or(""),
                message,
                vec![format!("{} fields, as in the first line", header.len())],
            ));
            continue;
        }
        let mut fields: [String; 9] = Default::default();
        let mut columns = [1; 9];
        for (field, column) in PUBLISHED_COLUMNS.iter().enumerate() {
            if let Some(index) = header.iter().position(|name| name == *column) {
                fields[field] = record.get(index).unwrap_or("").to_owned();
                columns[field] = column_of(text, line, &record, index);
            } else if *column == PUBLISHED_RUNS {
                // Without the column, the number of runs is unknown, for which 1 is used.
                "1".clone_into(&mut fields[field]);
            }
        }
        rows.push(PublishedRow { fields, place: RowPlace::Line { file: file.to_owned(), line, columns } });
    }
    rows
}

/// Returns the column of the field with this index, in characters from 1. The result is approximate: quotation marks
/// are not parsed again, and the preceding fields are searched one after another.
fn column_of(text: &str, line: usize, record: &csv::StringRecord, index: usize) -> usize {
    let Some(line) = text.lines().nth(line.saturating_sub(1)) else { return 1 };
    let mut at = 0;
    for (n, field) in record.iter().enumerate().take(index + 1) {
        let Some(found) = line.get(at..).and_then(|rest| rest.find(field)) else { break };
        at += found;
        if n == index {
            break;
        }
        at += field.len();
        at += line.get(at..).and_then(|rest| rest.find(',')).map_or(0, |comma| comma + 1);
    }
    line.get(..at).map_or(1, |before| before.chars().count() + 1)
}

impl<'a> PublishedRow<'a> {
    /// Converts a row of `[[published]]`.
    pub(crate) fn of_tree(tree: &'a Tree, sources: &'a Sources) -> Self {
        let text = |key: &str| tree.get(key).map_or("", Value::text).to_owned();
        let fields = PUBLISHED_COLUMNS.map(|column| match column {
            "value" => tree.number("value").to_string(),
            PUBLISHED_RUNS => match tree.integer(PUBLISHED_RUNS) {
                0 => String::new(),
                runs => runs.to_string(),
            },
            column => text(column),
        });
        PublishedRow { fields, place: RowPlace::Tree(sources, tree) }
    }

    fn error(&self, field: usize, message: String, expected: Vec<String>) -> Error {
        match &self.place {
            RowPlace::Tree(sources, tree) => {
                let place: SourceLocation = tree.location_of(PUBLISHED_COLUMNS[field]);
                sources.error(place, "published", message, expected)
            }
            RowPlace::Line { file, line, columns } => Error {
                file: file.clone(),
                line: *line,
                column: columns[field],
                path: PUBLISHED_COLUMNS[field].to_owned(),
                found: self.fields[field].clone(),
                expected,
                message,
                suggestion: None,
            },
        }
    }

    fn unknown(&self, field: usize, message: String, valid: &[&str]) -> Error {
        let mut error = self.error(field, message, valid.iter().map(|name| (*name).to_owned()).collect());
        error.suggestion = nearest_name(&self.fields[field], valid.iter().copied()).map(str::to_owned);
        error
    }

    /// Adds the row to the study if all names in it exist.
    pub(crate) fn check(&self, study: &mut Study, errors: &mut Vec<Error>) {
        match self.checked(study) {
            Ok(published) => {
                let same = |known: &PublishedResult| {
                    known.experiment == published.experiment
                        && known.point == published.point
                        && known.metric == published.metric
                };
                if study.published.iter().any(same) {
                    let message = format!("{} at this point has a published value already", published.metric);
                    errors.push(self.error(2, message, vec!["one value for a point and a metric".into()]));
                } else {
                    study.published.push(published);
                }
            }
            Err(error) => errors.push(*error),
        }
    }

    fn checked(&self, study: &Study) -> Result<PublishedResult, Box<Error>> {
        let [experiment_name, point, metric, value, tolerance, source, note, explained_by, runs] = &self.fields;
        let names: Vec<&str> = study.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        let experiment = match study.experiments.as_slice() {
            [only] if experiment_name.is_empty() => only,
            _ => study
                .experiment(experiment_name)
                .ok_or_else(|| self.unknown(0, format!("unknown experiment {experiment_name}"), &names))?,
        };
        let point =
            canonical_point(experiment, point).map_err(|(message, expected)| self.error(1, message, expected))?;
        let metrics: Vec<&str> = study
            .metrics
            .iter()
            .filter(|metric| metric.applies_to(&experiment.name))
            .map(|metric| metric.name.as_str())
            .collect();
        if !metrics.contains(&metric.as_str()) {
            return Err(Box::new(self.unknown(2, format!("{} has no metric {metric}", experiment.name), &metrics)));
        }
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
        let value =
            number.ok_or_else(|| self.error(3, format!("found {value:?} for the value"), vec!["a number".into()]))?;
        let expected = || vec!["a percentage such as 5%".to_owned(), "a number in the metric's unit".to_owned()];
        let tolerance = match tolerance.as_str() {
            "" => Tolerance::Absolute(0.0),
            text => Tolerance::parse(text)
                .ok_or_else(|| self.error(4, format!("found {text:?} for the tolerance"), expected()))?,
        };
        let runs = match runs.as_str() {
            "" => None,
            text => Some(text.parse::<u64>().ok().filter(|runs| *runs > 0).ok_or_else(|| {
                let expected =
                    vec!["a number of runs".to_owned(), "1 if it is unknown".into(), "nothing if exact".into()];
                self.error(8, format!("found {text:?} for the number of runs"), expected)
            })?),
        };
        if !explained_by.is_empty() && study.claim(explained_by).is_none() {
            let claims: Vec<&str> = study.claims.iter().map(|claim| claim.name.as_str()).collect();
            return Err(Box::new(self.unknown(7, format!("unknown claim {explained_by}"), &claims)));
        }
        Ok(PublishedResult {
            experiment: experiment.name.clone(),
            point,
            metric: metric.clone(),
            value,
            tolerance,
            runs,
            source: source.clone(),
            note: note.clone(),
            explained_by: explained_by.clone(),
        })
    }
}

/// Returns the point in the experiment's order, or the problem and what is accepted.
fn canonical_point(experiment: &Experiment, text: &str) -> Result<String, (String, Vec<String>)> {
    let mut levels: Vec<Option<usize>> = vec![None; experiment.axes.len()];
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        let axes = || experiment.axes.iter().map(|axis| axis.name.as_str());
        let Some((name, value)) = part.split_once('=') else {
            return Err((format!("found {part:?} in the point"), vec!["axis=value;axis=value".to_owned()]));
        };
        let (name, value) = (name.trim(), value.trim());
        let Some((index, axis)) = experiment.axis(name) else {
            let message = format!("{} has no axis {name}{}", experiment.name, suggestion(name, axes()));
            return Err((message, vec![list_of(axes())]));
        };
        let found = axis.levels.iter().position(|level| level.label == value);
        let number = || value.parse::<f64>().ok();
        let found = found.or_else(|| {
            let number = number()?;
            axis.levels.iter().position(|level| level.number() == Some(number))
        });
        let Some(level) = found else {
            let labels = || axis.levels.iter().map(|level| level.label.as_str());
            let message = format!("{value} is not a value of {name}{}", suggestion(value, labels()));
            return Err((message, vec![list_of(labels())]));
        };
        levels[index] = Some(level);
    }
    let levels: Option<Vec<usize>> = levels.into_iter().collect();
    let Some(levels) = levels.filter(|levels| experiment.combinations().contains(levels)) else {
        let expected =
            experiment.combinations().iter().take(10).map(|levels| point_label(experiment, levels)).collect();
        return Err((format!("{text:?} is not a point of {}", experiment.name), expected));
    };
    Ok(point_label(experiment, &levels))
}

/// Formats a point as `axis=value;axis=value`, without the experiment.
pub(crate) fn point_label(experiment: &Experiment, levels: &[usize]) -> String {
    Point(pairs(experiment, levels).collect()).to_string()
}

/// Returns the axes of an experiment with their values at a point.
pub(crate) fn pairs<'a>(
    experiment: &'a Experiment,
    levels: &'a [usize],
) -> impl Iterator<Item = (String, String)> + 'a {
    let label = |(axis, level): (&Axis, &usize)| axis.levels.get(*level).map_or("", |level| &level.label).to_owned();
    experiment.axes.iter().zip(levels).map(move |at| (at.0.name.clone(), label(at)))
}
