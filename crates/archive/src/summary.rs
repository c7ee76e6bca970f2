//! `summary.csv`, the metrics of a study at each point and the verdicts on its claims; and `results.csv`, one row for
//! each run. The columns of `results.csv` are the axes of the study, the seed and the key of the run, and the metrics
//! of the study.

use crate::error::{RecordError, shorten};
use crate::reference::{ColumnReference, TableReference};
use crate::table;
use crate::table::CsvLines;
use crate::value::{Cell, CellKind, CellValue, parse_number};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// Prefix of a claim's name in the column `metric`.
const CLAIM: &str = "claim:";
/// Name of the column with the seed of the run in `results.csv`.
const SEED: &str = "seed";
/// Name of the column with the key of the run in `results.csv`.
const KEY: &str = "key";

/// The axis values at one point of a study, in the study's order. In a study with several experiments, the first pair
/// is `experiment` and the experiment's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Point(pub Vec<(String, String)>);

impl Point {
    /// The name of the pair that contains the experiment of a point.
    pub const EXPERIMENT: &'static str = "experiment";

    /// Returns the value of an axis; `None` if the point does not have the axis.
    pub fn get(&self, axis: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == axis).map(|(_, value)| value.as_str())
    }

    /// Returns the experiment of the point; `None` in a study with one experiment.
    pub fn experiment(&self) -> Option<&str> {
        self.get(Point::EXPERIMENT)
    }

    /// Returns whether the point has no axes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the point in words: "transport udp, packets 10000".
    pub fn describe(&self) -> String {
        self.0.iter().map(|(axis, value)| format!("{} {value}", axis.replace('_', " "))).collect::<Vec<_>>().join(", ")
    }
}

/// `axis=value;axis=value`.
impl fmt::Display for Point {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (axis, value)) in self.0.iter().enumerate() {
            write!(formatter, "{}{axis}={value}", if number > 0 { ";" } else { "" })?;
        }
        Ok(())
    }
}

impl PartialEq<&str> for Point {
    fn eq(&self, other: &&str) -> bool {
        self.to_string() == **other
    }
}

impl CellValue for Point {
    const KIND: CellKind = CellKind::Text;
    const EXPECTED: &'static str = "`axis=value;axis=value`";

    fn to_cell(&self) -> Cell<'_> {
        Cell::Text(self.to_string().into())
    }

    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Point::default());
        }
        let pairs = text.split(';').map(|pair| pair.split_once('='));
        pairs
            .map(|pair| pair.map(|(axis, value)| (axis.to_owned(), value.to_owned())))
            .collect::<Option<_>>()
            .map(Point)
    }
}

/// The result of the comparison of a metric with its published value, or of the test of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The value matches the published one, or the claim holds.
    Match,
    /// The value differs from the published value, but matches in a variant that changes one assumption.
    Explained,
    /// The results of the runs are not conclusive.
    Undecided,
    /// The value differs from the published value.
    Differs,
    /// The claim does not hold.
    Refuted,
    /// Too many of the runs on which the value or claim depends are invalid.
    Untrusted,
}

impl Verdict {
    /// All verdicts, from best to worst.
    pub const ALL: [Self; 6] =
        [Self::Match, Self::Explained, Self::Undecided, Self::Differs, Self::Refuted, Self::Untrusted];

    /// Returns the name of the verdict in `summary.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Match => "match",
            Verdict::Explained => "explained",
            Verdict::Undecided => "undecided",
            Verdict::Differs => "differs",
            Verdict::Refuted => "refuted",
            Verdict::Untrusted => "untrusted",
        }
    }
}

impl CellValue for Verdict {
    const KIND: CellKind = CellKind::Text;
    const EXPECTED: &'static str = "match, differs, undecided, explained, refuted, untrusted or nothing";

    fn to_cell(&self) -> Cell<'_> {
        Cell::Text(Cow::Borrowed(self.name()))
    }

    fn parse(text: &str) -> Option<Self> {
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == text.trim())
    }
}

table! {
    /// A row of `summary.csv`: a metric at a point, or a claim.
    pub struct SummaryRow;
    /// The metrics of a study at each point, and the verdicts on its claims.
    pub static SUMMARY = "summary.csv": "One row for each metric at each point, and one for each claim.";
    point: Point, "", "Point as `axis=value;axis=value` in the study's order; empty for a claim.";
    metric: String, "", "Name of the metric, or `claim:NAME`.";
    unit: String, "", "Unit of the metric, and so of mean, ci95, low, high, min, median, max and published.";
    n: Option<u64>, "", "Number of runs with a value, 1 at a deterministic point; for a claim the smallest number of complete \
        replications behind it.";
    mean: Option<f64>, "", "Mean over those runs; for a claim 1 if it holds for the measured values and 0 if not.";
    ci95: Option<f64>, "", "Half the width of the mean's 95 % confidence interval; empty at a deterministic point, with fewer than \
        two runs, and if all values are equal.";
    low: Option<f64>, "", "Lower end of that interval.";
    high: Option<f64>, "", "Upper end of that interval.";
    min: Option<f64>, "", "Smallest value.";
    median: Option<f64>, "", "Median.";
    max: Option<f64>, "", "Largest value.";
    published: Option<f64>, "", "Published value.";
    published_runs: Option<u64>, "", "Number of runs behind the published value; empty for an exact value.";
    tolerance: String, "", "Permitted difference from the published value, as `5%` or a number.";
    verdict: Option<Verdict>, "", "`match`, `differs`, `undecided`, `explained`, `refuted`, `untrusted`, or empty if nothing was \
        published or a value is missing.";
    support: Option<f64>, "", "Share of bootstrap resamples for which a claim holds; empty without enough replications and for \
        deterministic points.";
    source: String, "", "Citation of the published value or claim.";
    note: String, "", "Remarks: why it is undecided, the part of a claim that decides, runs left out, what explains a difference, \
        `exploratory`, `quick`.";
    median_low: Option<f64>, "", "Lower end of the median's 95 % confidence interval, by order statistics; empty at a deterministic \
        point and with fewer than six runs.";
    median_high: Option<f64>, "", "Upper end of that interval.";
}

impl SummaryRow {
    /// Returns the value of the column `metric` in the row of a claim.
    pub fn metric_of_claim(claim: &str) -> String {
        format!("{CLAIM}{claim}")
    }

    /// Returns the name of the claim; `None` if the row is not a claim.
    pub fn claim(&self) -> Option<&str> {
        self.metric.strip_prefix(CLAIM)
    }

    /// Returns the number of runs that have a value.
    pub fn run_count(&self) -> u64 {
        self.n.unwrap_or(0)
    }

    /// Returns the metric and the point, on one line.
    pub fn name(&self) -> String {
        if self.point.is_empty() { self.metric.clone() } else { format!("{}, {}", self.point, self.metric) }
    }
}

/// Returns a sentence with the number of claims that have a verdict; `None` if no claim has one. For claims over random
/// runs, the sentence also states the number of verdicts expected by chance. If such a claim lies exactly at its bound,
/// it is a match by chance with a probability of 2.5 %, and refuted with the same probability.
pub fn describe_chance_verdicts(rows: &[SummaryRow]) -> Option<String> {
    let tested = || rows.iter().filter(|row| row.claim().is_some() && row.verdict.is_some());
    let (all, random) = (tested().count(), tested().filter(|row| row.support.is_some()).count());
    let claims = |n: usize| if n == 1 { "1 claim was tested".to_owned() } else { format!("{n} claims were tested") };
    match (all, random) {
        (0, _) => None,
        (all, 0) => Some(format!("{}, none of them by its support in random runs.", claims(all))),
        (all, random) => Some(format!(
            "{}, {random} of them by support in random runs. If each of these lay exactly at its bound, {expected:.2} would be a \
             match and {expected:.2} refuted by chance.",
            claims(all),
            expected = 0.025 * random as f64
        )),
    }
}

/// Reads `summary.csv`.
///
/// # Errors
/// If the file cannot be read, lacks a column, or has a cell that does not match the declaration of its column.
pub fn read_summary(file: &Path) -> Result<Vec<SummaryRow>, RecordError> {
    let mut reader = SUMMARY.open(file)?;
    let (mut rows, mut row) = (Vec::new(), SummaryRow::default());
    while reader.read_next(&mut row)? {
        if let Some(half) = row.ci95.filter(|half| *half < 0.0) {
            let column = SummaryRow::ci95().name;
            return Err(reader.error(format!("column `{column}`: expected a number of at least 0, found {half}")));
        }
        rows.push(row.clone());
    }
    Ok(rows)
}

/// A row of `results.csv`: a run at a point.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultRow {
    /// The point of the run. An axis that the experiment does not have is missing in this value and empty in the file.
    pub point: Point,
    /// The seed of the run.
    pub seed: u64,
    /// The key of the run, which is the name of its folder in `runs`.
    pub key: String,
    /// The values in the order of [`Results::metrics`]; `None` if the run does not have the value.
    pub values: Vec<Option<f64>>,
}

/// The content of `results.csv`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    /// The names of the axes.
    pub axes: Vec<String>,
    /// The names of the metrics.
    pub metrics: Vec<String>,
    /// The rows, grouped by point.
    pub rows: Vec<ResultRow>,
}

impl Results {
    /// The file's name.
    pub const FILE: &'static str = "results.csv";

    /// Returns the content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let fixed = [SEED, KEY].map(str::to_owned);
        // Writing to memory cannot fail.
        let _ = writer.write_record(self.axes.iter().chain(&fixed).chain(&self.metrics));
        for row in &self.rows {
            let mut cells: Vec<String> =
                self.axes.iter().map(|axis| row.point.get(axis).unwrap_or("").to_owned()).collect();
            cells.extend([row.seed.to_string(), row.key.clone()]);
            cells.extend(row.values.iter().map(|value| {
                let mut text = String::new();
                value.to_cell().write_to(&mut text);
                text
            }));
            let _ = writer.write_record(&cells);
        }
        writer.into_inner().unwrap_or_default()
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If the file cannot be read or does not have the format of [`Results::to_bytes`].
    pub fn read(file: &Path) -> Result<Self, RecordError> {
        let mut lines = CsvLines::open(file)?;
        let (seed, key) = (lines.place(SEED)?, lines.place(KEY)?);
        if key < seed {
            let problem = format!("expected column `{SEED}` before `{KEY}`, found it after");
            return Err(RecordError::invalid(file, Some(1), problem));
        }
        let header = lines.header().to_vec();
        let mut results =
            Results { axes: header[..seed].to_vec(), metrics: header[key + 1..].to_vec(), rows: Vec::new() };
        while lines.advance()? {
            let of_run = lines.text(seed);
            let Some(of_run) = u64::parse(of_run) else { return Err(lines.unexpected(SEED, u64::EXPECTED, of_run)) };
            let name = lines.text(key).to_owned();
            // The key is used in a path, so restrict its characters.
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
                let found = shorten(&name);
                let problem = format!("column `{KEY}`: expected letters, digits, `-` and `_`, found `{found}`");
                return Err(lines.problem(problem));
            }
            let mut values = Vec::with_capacity(results.metrics.len());
            for (place, metric) in (key + 1..).zip(&results.metrics) {
                let text = lines.text(place);
                let value = parse_number(text);
                if value.is_none() && !text.trim().is_empty() {
                    return Err(lines.unexpected(metric, f64::EXPECTED, text));
                }
                values.push(value);
            }
            let axes = (0..seed).filter(|place| !lines.text(*place).is_empty());
            let point = Point(axes.map(|place| (header[place].clone(), lines.text(place).to_owned())).collect());
            results.rows.push(ResultRow { point, seed: of_run, key: name, values });
        }
        Ok(results)
    }

    /// Returns the declaration of the table, for documentation.
    pub fn reference() -> TableReference {
        let column = |name, kind: CellKind, text, is_optional| ColumnReference {
            name,
            kind: kind.name(),
            unit: "",
            text,
            is_optional,
        };
        TableReference {
            file: Results::FILE,
            text: "One row for each run at each point.",
            columns: vec![
                column(
                    "AXIS",
                    CellKind::Text,
                    "One column for each axis: its value, or empty if the experiment does not have it.",
                    true,
                ),
                column(SEED, CellKind::Count, "Seed of the run.", false),
                column(KEY, CellKind::Text, "Key of the run: the name of its folder below `runs`.", false),
                column(
                    "METRIC",
                    CellKind::Number,
                    "One column for each metric, in the unit that the study declares.",
                    true,
                ),
            ],
        }
    }
}
