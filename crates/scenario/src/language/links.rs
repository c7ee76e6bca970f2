//! Schedules and traces of links: their keys, and their description.

use super::Diagnostics;
use crate::schema::component::SettingsReader;
use crate::schema::error::describe_io_error;
use crate::schema::{Field, FieldKind, Table, Tree, Value, ValueData, keys};
use fullpipe_network::link::DELAY;
use fullpipe_network::mahimahi::TraceError;
use fullpipe_network::{DeliveryTrace, Impairments, LinkProfile, LinkSchedule, ScheduleStep};
use fullpipe_units::Rate;
use std::path::Path;

/// Milliseconds in a trace: up to 31 years.
const MILLISECONDS: FieldKind = FieldKind::Integer { min: 0, max: 1_000_000_000_000 };

/// Keys that each direction of a link has separately, like the keys of impairments. The reverse direction does not
/// inherit them.
pub(super) const OWN: &[Field] = keys! {
    /// Changes of rate and delay at given times, for example `[{ at = "5s", rate = "1Mbit/s" }]`. A frame in
    /// transmission continues at the new rate. A frame has the delay at the time at which its last bit leaves, but does not
    /// overtake other frames.
    "schedule": FieldKind::Tables(&STEP), optional "none";
    /// Period with which the schedule repeats.
    "schedule_repeat": FieldKind::INTERVAL, optional "never";
    /// Delivery opportunities in the format of mahimahi: times in milliseconds, each of which delivers 1504 bytes. A list, or
    /// a file with one number per line (path relative to the scenario's folder). The trace repeats.
    "trace": FieldKind::Either(&FieldKind::List(&MILLISECONDS), &FieldKind::Text), optional "none";
};

static STEP: Table = Table {
    name: "step",
    text: "A change of a link's rate, its delay or both; keys that are not given keep their values.",
    fields: &[keys! {
        /// Time, from the start of the run or of the repetition.
        "at": FieldKind::DURATION, required;
        /// New rate.
        "rate": FieldKind::RATE, optional "as before";
        /// Whether the link stops transmitting, instead of `rate`.
        "outage": FieldKind::Boolean, default "false";
        /// New delay.
        "delay": DELAY, optional "as before";
    }],
    ..Table::EMPTY
};

/// Replaces the file name of a trace by the content of the file.
pub(super) fn fill(link: &mut Tree, path: &str, check: &mut Diagnostics) {
    let Some(Value { data: ValueData::Text(name), place, .. }) = link.get("trace").cloned() else { return };
    let path = format!("{path}.trace");
    let folder = Path::new(check.sources.file()).parent().unwrap_or(Path::new(""));
    let file = folder.join(&name);
    let read = read(&file).map_err(|reason| format!("cannot read {}: {reason}", file.display()));
    match read.and_then(|text| DeliveryTrace::parse(&text).map_err(|reason| reason.to_string())) {
        Ok(trace) => {
            let number = |ms: &u64| Value { data: ValueData::Integer(*ms as i64), place, given: true };
            let data = ValueData::List(trace.opportunities().iter().map(number).collect());
            link.set("trace", Value { data, place, given: true });
        }
        Err(reason) => {
            let expected = vec!["a file with one whole number of milliseconds per line, in ascending order".into()];
            let message = format!("{path} = {}: {reason}", check.sources.excerpt(place));
            check.add_error(place, &path, message, expected);
            link.remove("trace");
        }
    }
}

/// Fills in the rate of a link that has a trace and no `rate`: the mean rate of the trace.
pub(super) fn fill_rate(link: &mut Tree) {
    let Some(Value { data: ValueData::List(opportunities), .. }) = link.get("trace") else { return };
    // `describe` reports the errors in the trace; until then any rate is sufficient.
    let rate = parse(opportunities).map_or(Rate::from_bits_per_second(1), |trace| trace.mean_rate());
    link.fill("rate", ValueData::Rate(rate));
}

fn parse(opportunities: &[Value]) -> Result<DeliveryTrace, TraceError> {
    let lines: Vec<String> = opportunities.iter().map(|ms| ms.integer().to_string()).collect();
    DeliveryTrace::parse(&lines.join("\n"))
}

/// Largest file of a trace.
const MOST_BYTES: u64 = 64 << 20;

fn read(path: &Path) -> Result<String, String> {
    let about = std::fs::metadata(path).map_err(|reason| describe_io_error(&reason))?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(format!("not a file of at most {} MiB", MOST_BYTES >> 20));
    }
    std::fs::read_to_string(path).map_err(|reason| describe_io_error(&reason))
}

/// Returns the schedule and the impairments of a direction, from its table.
pub(super) fn describe(tree: &Tree, path: &str, check: &mut Diagnostics) -> (LinkProfile, Impairments) {
    let course = match (schedule(tree, path, check), trace(tree, path, check)) {
        (None, None) => LinkProfile::Constant,
        (Some(schedule), None) => LinkProfile::Steps(schedule),
        (None, Some(trace)) => LinkProfile::Trace(trace),
        (Some(_), Some(_)) => {
            let message = format!("{path} has both schedule and trace");
            check.add_error(
                tree.location_of("trace"),
                &format!("{path}.trace"),
                message,
                vec!["only one of them".into()],
            );
            LinkProfile::Constant
        }
    };
    (course, Impairments::read(&mut SettingsReader { tree, path, check }))
}

fn schedule(tree: &Tree, path: &str, check: &mut Diagnostics) -> Option<LinkSchedule> {
    let repeat = tree.get("schedule_repeat").map(Value::duration);
    let Some(value) = tree.get("schedule") else {
        if repeat.is_some() {
            let message = format!("{path} has schedule_repeat, but no schedule");
            check.add_error(
                tree.location_of("schedule_repeat"),
                &format!("{path}.schedule_repeat"),
                message,
                vec!["a schedule".into()],
            );
        }
        return None;
    };
    let path = format!("{path}.schedule");
    let mut steps = Vec::new();
    for (index, step) in value.tables().iter().enumerate() {
        let outage = step.boolean("outage");
        if outage && step.get("rate").is_some() {
            let path = format!("{path}.{index}");
            let message = format!("{path} has both rate and outage");
            check.add_error(
                step.location_of("rate"),
                &format!("{path}.rate"),
                message,
                vec!["only one of them".into()],
            );
        }
        let rate = if outage { Some(Rate::from_bits_per_second(0)) } else { step.get("rate").map(Value::rate) };
        steps.push(ScheduleStep { at: step.duration("at"), rate, delay: step.get("delay").map(Value::duration) });
    }
    match LinkSchedule::new(steps, repeat) {
        Ok(schedule) => Some(schedule),
        Err(reason) => {
            let times: Vec<String> = value.tables().iter().map(|step| step.duration("at").to_string()).collect();
            let repeat = repeat.map_or_else(String::new, |repeat| format!(" and repeats after {repeat}"));
            let message = format!("{path} has steps at [{}]{repeat}, but {reason}", times.join(", "));
            check.add_error(value.place, &path, message, vec!["times in ascending order".into()]);
            None
        }
    }
}

fn trace(tree: &Tree, path: &str, check: &mut Diagnostics) -> Option<DeliveryTrace> {
    let value = tree.get("trace")?;
    match parse(value.list()) {
        Ok(trace) => Some(trace),
        Err(reason) => {
            let path = format!("{path}.trace");
            // Each element is a line, and no line is empty.
            let message = match reason {
                TraceError::NotSorted { line, time, previous } => {
                    format!("{path}.{} = {time} is earlier than trace.{} = {previous}", line - 1, line - 2)
                }
                TraceError::Empty => format!("{path} is empty"),
                TraceError::ZeroPeriod { .. } => format!("{path} has no time above zero"),
                TraceError::InvalidTime { line, text } => {
                    format!("{path}.{} = {text} is not a time in milliseconds", line - 1)
                }
            };
            let expected = vec!["whole numbers of milliseconds in ascending order".into()];
            check.add_error(value.place, &path, message, expected);
            None
        }
    }
}
