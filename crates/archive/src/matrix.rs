//! `matrix.csv` and `findings.csv`: the cells of a study's `[matrix]`, and the comparisons of the candidate with each
//! reference.

use crate::table;
use crate::value::{Cell, CellKind, CellValue};
use std::borrow::Cow;

table! {
    /// A row of `matrix.csv`: a metric of one control in a cell, or the reason why a cell is not run.
    pub struct MatrixRow;
    /// The cells of a matrix.
    pub static MATRIX = "matrix.csv":
        "One row for each metric and control in each cell of a `[matrix]`, and one for each cell that is not run.";
    row: String, "", "Row of the matrix, such as the section of a criterion.";
    column: String, "", "Column of the matrix, such as the section of a condition.";
    metric: String, "", "Metric; empty if the cell is not run.";
    control: String, "", "Value of the axis that the matrix compares, such as a congestion control; empty if the cell is not run.";
    n: Option<u64>, "", "Number of runs with a value, over all points of the cell.";
    worst: Option<f64>, "", "Worst mean of a point, in the metric's unit and in the metric's declared direction.";
    median: Option<f64>, "", "Median of the means of the points.";
    low: Option<f64>, "", "Lower end of the 95 % interval of the mean at the worst point (Student's t over runs); empty for one run.";
    high: Option<f64>, "", "Upper end of this interval.";
    worst_point: String, "", "Worst point as `axis=value;axis=value`, without the compared axis.";
    note: String, "", "Why the cell is not run, or why values are missing.";
}

/// The result of the comparison of a candidate with a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// The interval of the difference lies on the better side of zero.
    Better,
    /// The interval of the difference lies on the worse side of zero.
    Worse,
    /// The interval of the difference contains zero.
    NotDistinguishable,
    /// There are too few replications for a finding.
    Undecided,
}

impl Finding {
    /// All findings.
    pub const ALL: [Self; 4] = [Self::Better, Self::Worse, Self::NotDistinguishable, Self::Undecided];

    /// Returns the name of the finding in `findings.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Finding::Better => "better",
            Finding::Worse => "worse",
            Finding::NotDistinguishable => "not distinguishable",
            Finding::Undecided => "undecided",
        }
    }
}

impl CellValue for Finding {
    const KIND: CellKind = CellKind::Text;
    const EXPECTED: &'static str = "better, worse, not distinguishable, undecided or nothing";

    fn to_cell(&self) -> Cell<'_> {
        Cell::Text(Cow::Borrowed(self.name()))
    }

    fn parse(text: &str) -> Option<Self> {
        Finding::ALL.into_iter().find(|finding| finding.name() == text.trim())
    }
}

table! {
    /// A row of `findings.csv`: a comparison of the candidate with a reference.
    pub struct FindingRow;
    /// The comparisons of the candidates of a matrix with its references.
    pub static FINDINGS = "findings.csv":
        "One row for each metric, candidate and reference in each cell of a `[matrix]` that is run.";
    row: String, "", "Row of the matrix.";
    column: String, "", "Column of the matrix.";
    metric: String, "", "Metric.";
    unit: String, "", "Unit of the metric.";
    control: String, "", "Candidate.";
    reference: String, "", "Reference.";
    n: u64, "", "Replications that are complete at all points of the cell for both.";
    points: u64, "", "Points of the cell at which the runs have values.";
    difference: Option<f64>, "", "Candidate minus reference: mean over replications of the mean difference over points.";
    low: Option<f64>, "", "Lower end of the interval of the difference: paired, Student's t, simultaneous over all comparisons of the matrix.";
    high: Option<f64>, "", "Upper end of this interval.";
    comparisons: u64, "", "Comparisons of the matrix. The interval has the confidence 1 - 0.05 / `comparisons` (Bonferroni).";
    finding: Option<Finding>, "", "`better`, `worse`, `not distinguishable`, or `undecided` with too few replications.";
    note: String, "", "Why a comparison is undecided, or what the interval does not cover.";
}
