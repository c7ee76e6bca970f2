//! `fullpipe tmix find-target`.

use super::arguments::FindTargetArguments;
use super::{failure, files};
use crate::exit::Failure;
use crate::output::{self, print_line};
use fullpipe::tmix::{
    ExperimentPlan, ExperimentSpec, ScaleAttempt, SyntheticTrace, Trace, find_scale as search, generate,
};
use fullpipe::units::Duration;
use serde_json::{Value, json};

/// Checks that a load is within the range of the suite.
pub(super) fn check_load(load: f64) -> Result<(), Failure> {
    if (0.001..=10.0).contains(&load) {
        return Ok(());
    }
    Err(Failure::usage(format!("--load: expected a fraction from 0.001 to 10, such as 0.6, found {load}")))
}

pub(super) fn find_target(arguments: &FindTargetArguments) -> Result<(), Failure> {
    check_load(arguments.load)?;
    let mut suite = ExperimentSpec::draft(arguments.capacity, arguments.load, arguments.max_rtt, arguments.seed);
    suite.direction = arguments.direction;
    suite.bin = arguments.bin.unwrap_or(suite.bin);
    suite.minimum_bins = arguments.minimum_bins.unwrap_or(suite.minimum_bins);
    suite.balance_tolerance = arguments.balance_tolerance.unwrap_or(suite.balance_tolerance);
    if !(0.001..=1.0).contains(&suite.balance_tolerance) {
        return Err(Failure::usage(format!(
            "--balance-tolerance: expected a fraction from 0.001 to 1, such as 0.05, found {}",
            suite.balance_tolerance
        )));
    }
    let mut traces: Vec<Box<dyn Trace>> = if arguments.traces.is_empty() {
        let synthetic = SyntheticTrace::suite(arguments.trace_seed, generate::DEFAULT_LENGTH);
        synthetic.into_iter().map(|trace| Box::new(trace) as Box<dyn Trace>).collect()
    } else {
        let indexed = files::open_traces(&arguments.traces, &arguments.reading)?;
        indexed.into_iter().map(|trace| Box::new(trace) as Box<dyn Trace>).collect()
    };
    let tell = |attempt: &ScaleAttempt| {
        if !arguments.reading.quiet {
            let steady = if attempt.balanced { "steady" } else { "never steady" };
            eprintln!("scale {:.4}: load {:.4} over {}, {steady}", attempt.scale, attempt.load, attempt.duration);
        }
    };
    let plan = search(&suite, &mut traces, tell).map_err(failure)?;
    print(&plan, arguments.json);
    Ok(())
}

fn print(plan: &ExperimentPlan, json_wanted: bool) {
    let schedule = &plan.schedule;
    let row = json!({
        "scale": schedule.scale,
        "bin_s": seconds(schedule.bin),
        "prefill_t_s": seconds(schedule.prefill.time),
        "prefill_si_s": seconds(schedule.prefill.interval),
        "prefill_share_bps": schedule.prefill.share_bps.round(),
        "warmup_s": seconds(plan.warmup),
        "test_s": seconds(plan.test),
        "load": plan.load,
    });
    if json_wanted {
        output::json(&Value::Array(vec![row]));
    } else if let Value::Object(fields) = row {
        for (name, value) in fields {
            print_line!("{name:14}{value}");
        }
    }
}

/// Rounds to whole seconds, so that the printed number has no meaningless digits.
fn seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e9
}
