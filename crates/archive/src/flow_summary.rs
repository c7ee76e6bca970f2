//! `flow_summary.csv`: application metrics and packet delays of the flows of a study at each point.

use crate::summary::Point;
use crate::table;

table! {
    /// A row of `flow_summary.csv`: a metric of a flow at a point.
    pub struct FlowSummaryRow;
    /// The application metrics and packet delays of the flows of a study at each point.
    pub static FLOW_SUMMARY = "flow_summary.csv":
        "One row for each application metric of each end of a flow, and for each percentile of its packets' delay, at each point. \
         A run contributes one value. Points with more than 100 flows have no rows; flows with several connections have no delays.";
    point: Point, "", "Point as `axis=value;axis=value` in the study's order.";
    flow: String, "", "Name of the flow as in `flows.csv`.";
    host: String, "", "Host of the application; of a delay, the host that receives the packets.";
    metric: String, "", "Name of the metric of `figures.csv`, or `delay_p50_s`, `delay_p95_s` or `delay_p99_s`.";
    unit: String, "", "Unit of the metric.";
    n: u64, "", "Number of runs with a value.";
    mean: Option<f64>, "", "Mean over those runs.";
    ci95: Option<f64>, "", "Half the width of the mean's 95 % confidence interval; empty with fewer than two runs and if all values \
        are equal.";
    low: Option<f64>, "", "Lower end of that interval.";
    high: Option<f64>, "", "Upper end of that interval.";
    min: Option<f64>, "", "Smallest value.";
    median: Option<f64>, "", "Median.";
    max: Option<f64>, "", "Largest value.";
}

impl FlowSummaryRow {
    /// Returns whether the row is a percentile of packet delay. Otherwise it is an application metric.
    pub fn is_delay(&self) -> bool {
        DELAY_COLUMNS.contains(&self.metric.as_str())
    }
}

/// The columns of `flows.csv` with percentiles of delay.
pub const DELAY_COLUMNS: [&str; 3] = ["delay_p50_s", "delay_p95_s", "delay_p99_s"];
