//! `robustness.csv`: the verdicts of a study that is repeated under several study seeds; and `cpu.csv`: the CPU time of
//! its runs. `cpu.csv` is not a record, because CPU time is not reproducible.

use crate::summary::Verdict;
use crate::table;

table! {
    /// A row of `robustness.csv`: a published value or a claim.
    pub struct RobustnessRow;
    /// The verdicts of a study that is repeated under several study seeds.
    pub static ROBUSTNESS = "robustness.csv":
        "One row for each verdict of a study that was repeated under several study seeds (`--seeds`).";
    name: String, "", "`claim:NAME`, or the point and the metric of a published value.";
    verdicts: String, "", "Verdict under each study seed in their order, joined with semicolons; `none` where there is none.";
    pooled: Option<Verdict>, "", "Verdict of all runs together.";
    seeds: u64, "", "Number of study seeds.";
    agreeing: u64, "", "Of these, seeds with the same verdict.";
    contradicting: u64, "", "Of these, seeds that contradict it: `match` against `differs` or `refuted`.";
    cpu_s: Option<f64>, "s", "CPU time of the runs behind it; empty if it is not known of all of them.";
}

table! {
    /// A row of `cpu.csv`: a run.
    pub struct CpuRow;
    /// The CPU time of the runs of a study.
    pub static CPU = "cpu.csv":
        "One row for each run that was made, in the order in which they ended. The times differ from one machine to another.";
    key: String, "", "Key of the run: the name of its folder below `runs`.";
    cpu_s: f64, "s", "CPU time of the thread that made it.";
}
