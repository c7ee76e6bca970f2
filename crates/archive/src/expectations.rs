//! `expectations.csv`: the bounds on metrics that a scenario or a study declares in `[[expect]]`, with the measured
//! values.

use crate::table;

table! {
    /// A row of `expectations.csv`: one `[[expect]]`.
    pub struct ExpectationRow;
    /// The expectations of a run or of a study.
    pub static EXPECTATIONS = "expectations.csv":
        "One row for each `[[expect]]` of the scenario that was run, or of the study; no file without one.";
    expectation: String, "", "Metric, with the flow or the points that it is of.";
    subject: String, "", "Flow or point with the value; if there are several, the one that is farthest outside the bounds, or else \
        the one nearest to a bound.";
    unit: String, "", "Unit of min, max and value.";
    min: Option<f64>, "", "Smallest accepted value.";
    max: Option<f64>, "", "Largest accepted value.";
    value: Option<f64>, "", "Measured value; of a point the mean over its runs. Empty if there is none.";
    outcome: String, "", "`met`, `failed` or `not checked`.";
    note: String, "", "Why it failed or was not checked.";
}

impl ExpectationRow {
    /// The outcome of a value within the bounds.
    pub const MET: &'static str = "met";
    /// The outcome of a value outside the bounds, or of a missing value.
    pub const FAILED: &'static str = "failed";
    /// The outcome if the run failed, or if the settings exclude all points of the expectation.
    pub const NOT_CHECKED: &'static str = "not checked";

    /// Returns whether the expectation failed.
    pub fn has_failed(&self) -> bool {
        self.outcome == Self::FAILED
    }
}
