//! `comparison.csv`: the differences of a folder of records from another folder, over pairs of runs with the same point
//! and seed.

use crate::table;

table! {
    /// A row of `comparison.csv`: a metric at a point.
    pub struct ComparisonRow;
    /// The differences that `fullpipe report DIR --compare OTHER` writes into DIR.
    pub static COMPARISON = "comparison.csv":
        "One row for each metric and point that both folders have; written by `fullpipe report DIR --compare OTHER`.";
    point: String, "", "Point: `axis=value;axis=value` in the order of the study.";
    flow: String, "", "Flow, if the metric is of a single flow; otherwise empty.";
    metric: String, "", "Metric.";
    unit: String, "", "Unit of the metric.";
    pairs: u64, "", "Pairs of valid runs with equal point and seed.";
    mean: Option<f64>, "", "Mean over the runs of DIR.";
    other_mean: Option<f64>, "", "Mean over the runs of OTHER.";
    difference: Option<f64>, "", "Mean of the differences, DIR minus OTHER.";
    ci95: Option<f64>, "", "Half width of the 95 % interval of the mean difference (paired, Student's t); empty for a single pair.";
    low: Option<f64>, "", "Lower end of the interval.";
    high: Option<f64>, "", "Upper end of the interval.";
    relative: Option<f64>, "", "Difference over the absolute value of `other_mean`; empty if that is zero.";
}
