//! `summary.csv` (one row per point and metric, and one per claim) and `results.csv` (one row per run).

use crate::error::ReportError;
use crate::input::table::{Table, shorten};
use std::path::Path;

/// Values of the axes at one point of a sweep, in the study's order.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point(pub(crate) Vec<(String, String)>);

impl Point {
    /// `axis=value;axis=value`.
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self::default());
        }
        text.split(';')
            .map(|p| p.split_once('=').map(|(a, v)| (a.to_owned(), v.to_owned())))
            .collect::<Option<_>>()
            .map(Self)
    }

    /// The value of an axis.
    pub(crate) fn get(&self, axis: &str) -> Option<&str> {
        self.0.iter().find(|(a, _)| a == axis).map(|(_, v)| v.as_str())
    }

    /// The experiment it belongs to, in a study of several.
    pub(crate) fn experiment(&self) -> Option<&str> {
        self.get("experiment")
    }

    /// The point in words: "transport udp, packets 10 000".
    pub(crate) fn words(&self) -> String {
        self.0.iter().map(|(a, v)| format!("{} {v}", a.replace('_', " "))).collect::<Vec<_>>().join(", ")
    }
}

/// How a measured value stands to a published one, or how a claim came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Match,
    Explained,
    Differs,
    Refuted,
    /// Nothing can be said: too many of the runs behind it are not to be trusted.
    Untrusted,
}

impl Verdict {
    /// All, from good to bad.
    pub(crate) const ALL: [Self; 5] = [Self::Match, Self::Explained, Self::Differs, Self::Refuted, Self::Untrusted];

    /// The word in the records.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Explained => "explained",
            Self::Differs => "differs",
            Self::Refuted => "refuted",
            Self::Untrusted => "untrusted",
        }
    }
}

/// A row of `summary.csv`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SummaryRow {
    pub(crate) point: Point,
    pub(crate) metric: String,
    pub(crate) unit: String,
    pub(crate) n: u64,
    pub(crate) mean: Option<f64>,
    pub(crate) half_width: Option<f64>,
    pub(crate) min: Option<f64>,
    pub(crate) median: Option<f64>,
    pub(crate) max: Option<f64>,
    pub(crate) published: Option<f64>,
    pub(crate) tolerance: String,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) source: String,
    pub(crate) note: String,
}

impl SummaryRow {
    /// The name of the claim, if the row is one.
    pub(crate) fn claim(&self) -> Option<&str> {
        self.metric.strip_prefix("claim:")
    }
}

/// Reads `summary.csv`.
pub(crate) fn read_summary(file: &Path) -> Result<Vec<SummaryRow>, ReportError> {
    let mut table = Table::open(file)?;
    let names = [
        "point",
        "metric",
        "unit",
        "n",
        "mean",
        "ci95",
        "min",
        "median",
        "max",
        "published",
        "tolerance",
        "verdict",
        "source",
        "note",
    ];
    let mut columns = [0; 14];
    for (column, name) in columns.iter_mut().zip(names) {
        *column = table.column(name)?;
    }
    let [point, metric, unit, n, mean, ci95, min, median, max, published, tolerance, verdict, source, note] = columns;
    let mut rows = Vec::new();
    while table.next()? {
        let parsed = Point::parse(table.text(point)).ok_or_else(|| {
            table.problem(format!(
                "column `point`: expected `axis=value;axis=value`, found `{}`",
                shorten(table.text(point))
            ))
        })?;
        let verdict = match table.text(verdict).trim() {
            "" => None,
            word => Some(Verdict::ALL.into_iter().find(|v| v.word() == word).ok_or_else(|| {
                let expected = "match, differs, explained, refuted, untrusted or nothing";
                table.problem(format!("column `verdict`: expected {expected}, found `{}`", shorten(word)))
            })?),
        };
        if let Some(half) = table.number(ci95)?
            && half < 0.0
        {
            return Err(table.problem(format!("column `ci95`: a half width is not negative, found {half}")));
        }
        rows.push(SummaryRow {
            point: parsed,
            metric: table.text(metric).to_owned(),
            unit: table.text(unit).to_owned(),
            n: count(&table, n)?,
            mean: table.number(mean)?,
            half_width: table.number(ci95)?,
            min: table.number(min)?,
            median: table.number(median)?,
            max: table.number(max)?,
            published: table.number(published)?,
            tolerance: table.text(tolerance).trim().to_owned(),
            verdict,
            source: table.text(source).to_owned(),
            note: table.text(note).to_owned(),
        });
    }
    Ok(rows)
}

fn count(table: &Table, column: usize) -> Result<u64, ReportError> {
    let value = table.number(column)?.unwrap_or(0.0);
    if value < 0.0 || value.fract() != 0.0 {
        return Err(table.problem(format!("column `n`: expected a count, found {value}")));
    }
    Ok(value as u64)
}

/// A row of `results.csv`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ResultRow {
    pub(crate) point: Point,
    pub(crate) seed: String,
    pub(crate) key: String,
    /// In the order of [`Results::metrics`]; `None` where the run has no such value.
    pub(crate) values: Vec<Option<f64>>,
}

/// `results.csv`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Results {
    pub(crate) metrics: Vec<String>,
    pub(crate) rows: Vec<ResultRow>,
}

/// Reads `results.csv`: axes, `seed`, `key`, then one column per metric.
pub(crate) fn read_results(file: &Path) -> Result<Results, ReportError> {
    let mut table = Table::open(file)?;
    let seed = table.column("seed")?;
    let key = table.column("key")?;
    if key < seed {
        return Err(ReportError::corrupt_at(file, 1, "column `key` stands before `seed`"));
    }
    let header = table.header().to_vec();
    let metrics: Vec<usize> = (key + 1..header.len()).collect();
    let mut rows = Vec::new();
    while table.next()? {
        let name = table.text(key).to_owned();
        // The key becomes part of a path.
        if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return Err(table
                .problem(format!("column `key`: expected letters, digits, `-` and `_`, found `{}`", shorten(&name))));
        }
        let mut values = Vec::with_capacity(metrics.len());
        for column in &metrics {
            // A truth is no number: it is the business of claims.
            let truth = matches!(table.text(*column).trim(), "true" | "false");
            values.push(if truth { None } else { table.number(*column)? });
        }
        // An axis that an experiment does not have is empty there, and absent from its points in the summary.
        let axes = (0..seed).filter(|c| !table.text(*c).is_empty());
        let point = axes.map(|c| (header[c].clone(), table.text(c).to_owned())).collect();
        rows.push(ResultRow { point: Point(point), seed: table.text(seed).to_owned(), key: name, values });
    }
    Ok(Results { metrics: metrics.into_iter().map(|c| header[c].clone()).collect(), rows })
}
