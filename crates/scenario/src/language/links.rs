//! Schedules and traces of links: their keys, and their description.

use super::Diagnostics;
use super::csv_trace::{self, CsvRow, CsvTrace};
use crate::schema::component::SettingsReader;
use crate::schema::error::describe_io_error;
use crate::schema::quantity::parse_duration;
use crate::schema::{Field, FieldKind, SourceLocation, Table, Tree, Value, ValueData, keys};
use fullpipe_network::impairment::loss_schedule::REPEAT_KEY as LOSS_REPEAT;
use fullpipe_network::link::DELAY;
use fullpipe_network::mahimahi::TraceError;
use fullpipe_network::{DeliveryTrace, Impairments, LinkProfile, LinkSchedule, ScheduleStep};
use fullpipe_units::{Duration, Rate};
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
    /// a file with one number per line (path relative to the scenario's folder). A file whose name ends with `.csv`, or a
    /// text of several lines, is instead a [CSV trace](traces.md) of rate, delay and loss, which replaces `schedule` and
    /// `loss_schedule`. The trace repeats.
    "trace": FieldKind::Either(&FieldKind::List(&MILLISECONDS), &FieldKind::Text), optional "none";
    /// Time within the trace, or within schedules that repeat, at which the run starts: a duration, or `"random"`. A random
    /// offset is a whole number of milliseconds, uniform over the period and drawn from the seed. The two directions of a link
    /// have the same random offset, drawn from the longer period.
    "trace_offset": FieldKind::Text, optional "none: the run starts at the start of the trace";
    /// Period with which `loss_schedule` repeats. Each period begins with the last probability of the previous one.
    "loss_schedule_repeat": FieldKind::INTERVAL, optional "never";
};

/// The value of `trace_offset` for an offset that is drawn from the seed.
const RANDOM: &str = "random";

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

/// What a trace determines of a link's keys.
#[derive(Default)]
pub(super) struct TraceDefaults {
    /// Whether the trace has an error, which has been reported.
    pub invalid: bool,
    /// The mean rate.
    pub rate: Option<Rate>,
    /// The first delay.
    pub delay: Option<Duration>,
}

impl TraceDefaults {
    const INVALID: TraceDefaults = TraceDefaults { invalid: true, rate: None, delay: None };

    /// Fills in the rate and the delay of a direction that has none.
    pub(super) fn fill(&self, link: &mut Tree, with_rate: bool) {
        if let Some(rate) = self.rate.filter(|_| with_rate) {
            link.fill("rate", ValueData::Rate(rate));
        }
        if let Some(delay) = self.delay {
            link.fill("delay", ValueData::Duration(delay));
        }
    }
}

/// Replaces the file name of a trace by the content of the file: delivery opportunities, or schedules for a CSV trace.
pub(super) fn fill(link: &mut Tree, path: &str, check: &mut Diagnostics) -> TraceDefaults {
    match link.get("trace") {
        Some(Value { data: ValueData::Text(text), place, .. }) => {
            let (text, place) = (text.clone(), *place);
            fill_text(link, &text, place, path, check)
        }
        _ => TraceDefaults { rate: mean_rate(link), ..TraceDefaults::default() },
    }
}

fn fill_text(link: &mut Tree, name: &str, place: SourceLocation, path: &str, check: &mut Diagnostics) -> TraceDefaults {
    let inline = name.contains('\n');
    let is_csv = inline || Path::new(name).extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
    let keys = path;
    let path = format!("{path}.trace");
    let folder = Path::new(check.sources.file()).parent().unwrap_or(Path::new(""));
    let file = folder.join(name);
    let read = if inline {
        Ok(name.to_owned())
    } else {
        read(&file).map_err(|reason| format!("cannot read {}: {reason}", file.display()))
    };
    if is_csv {
        let parsed = read.map_err(|reason| (reason, csv_trace::HEADER.to_owned())).and_then(|text| {
            let at = |line| if inline { format!("line {line}") } else { format!("{}:{line}", file.display()) };
            CsvTrace::parse(&text).map_err(|error| (format!("{}: {}", at(error.line), error.found), error.expected))
        });
        return match parsed {
            Ok(trace) => set_schedules(link, &trace, place, keys, check),
            Err((reason, expected)) => {
                let message = format!("{path} = {}: {reason}", check.sources.excerpt(place));
                check.add_error(place, &path, message, vec![expected]);
                link.remove("trace");
                TraceDefaults::INVALID
            }
        };
    }
    match read.and_then(|text| DeliveryTrace::parse(&text).map_err(|reason| reason.to_string())) {
        Ok(trace) => {
            let number = |ms: &u64| Value { data: ValueData::Integer(*ms as i64), place, given: true };
            let data = ValueData::List(trace.opportunities().iter().map(number).collect());
            link.set("trace", Value { data, place, given: true });
            TraceDefaults { rate: mean_rate(link), ..TraceDefaults::default() }
        }
        Err(reason) => {
            let expected = vec!["a file with one whole number of milliseconds per line, in ascending order".into()];
            let message = format!("{path} = {}: {reason}", check.sources.excerpt(place));
            check.add_error(place, &path, message, expected);
            link.remove("trace");
            TraceDefaults::INVALID
        }
    }
}

/// Replaces a CSV trace by the schedules that it describes.
fn set_schedules(
    link: &mut Tree,
    trace: &CsvTrace,
    place: SourceLocation,
    path: &str,
    check: &mut Diagnostics,
) -> TraceDefaults {
    link.remove("trace");
    let first = trace.rows.first().copied().unwrap_or_default();
    let of_rates =
        ["schedule", "schedule_repeat"].into_iter().filter(|_| first.rate.is_some() || first.delay.is_some());
    let of_losses = ["loss_schedule", LOSS_REPEAT].into_iter().filter(|_| first.loss.is_some());
    if let Some(other) = of_rates.chain(of_losses).find(|key| link.get(key).is_some()) {
        let message = format!("{path} has both {other} and trace");
        check.add_error(place, &format!("{path}.trace"), message, vec!["only one of them".into()]);
        return TraceDefaults::INVALID;
    }
    let value = |data| Value { data, place, given: true };
    let (mut schedule, mut losses) = (Vec::new(), Vec::new());
    // Each step has the values that change.
    let mut before = CsvRow::default();
    for row in &trace.rows {
        let (rate, delay) =
            (row.rate.filter(|_| row.rate != before.rate), row.delay.filter(|_| row.delay != before.delay));
        if rate.is_some() || delay.is_some() {
            let mut step = Tree::empty_at(place);
            step.set("at", value(ValueData::Duration(row.at)));
            let outage = rate.is_some_and(|rate| rate.bits_per_second() == 0);
            if let Some(rate) = rate.filter(|_| !outage) {
                step.set("rate", value(ValueData::Rate(rate)));
            }
            step.set("outage", Value { data: ValueData::Boolean(outage), place, given: outage });
            if let Some(delay) = delay {
                step.set("delay", value(ValueData::Duration(delay)));
            }
            schedule.push(step);
        }
        if let Some(loss) = row.loss.filter(|_| row.loss != before.loss) {
            let mut step = Tree::empty_at(place);
            step.set("at", value(ValueData::Duration(row.at)));
            step.set("probability", value(ValueData::Number(loss)));
            losses.push(step);
        }
        before = *row;
    }
    for (key, repeat, steps) in [("schedule", "schedule_repeat", schedule), ("loss_schedule", LOSS_REPEAT, losses)] {
        if !steps.is_empty() {
            link.set(key, value(ValueData::Tables(steps)));
            link.set(repeat, value(ValueData::Duration(trace.period)));
        }
    }
    TraceDefaults { invalid: false, rate: trace.mean_rate(), delay: first.delay }
}

/// Returns the mean rate of a list of delivery opportunities; `None` if the link has none.
fn mean_rate(link: &Tree) -> Option<Rate> {
    let Some(Value { data: ValueData::List(opportunities), .. }) = link.get("trace") else { return None };
    // `describe` reports the errors in the trace; until then any rate is sufficient.
    Some(parse(opportunities).map_or(Rate::from_bits_per_second(1), |trace| trace.mean_rate()))
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

/// Returns the schedule and the impairments of a direction, from its table, and whether they start at a random offset.
pub(super) fn describe(tree: &Tree, path: &str, check: &mut Diagnostics) -> (LinkProfile, Impairments, bool) {
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
    let impairments = Impairments::read(&mut SettingsReader { tree, path, check });
    if tree.get(LOSS_REPEAT).is_some() && tree.get("loss_schedule").is_none() {
        let message = format!("{path} has {LOSS_REPEAT}, but no loss_schedule");
        check.add_error_at(tree, path, LOSS_REPEAT, message, "a loss_schedule");
    }
    match offset(tree, &course, path, check) {
        Some(TraceOffset::Fixed(offset)) => (course.starting_at(offset), impairments.starting_at(offset), false),
        Some(TraceOffset::Random) => (course, impairments, true),
        None => (course, impairments, false),
    }
}

enum TraceOffset {
    Fixed(Duration),
    Random,
}

fn offset(tree: &Tree, course: &LinkProfile, path: &str, check: &mut Diagnostics) -> Option<TraceOffset> {
    const KEY: &str = "trace_offset";
    let text = tree.get(KEY)?.text();
    if course.period().is_none() && tree.get(LOSS_REPEAT).is_none() {
        let message = format!("{path} has {KEY}, but nothing that repeats");
        check.add_error_at(tree, path, KEY, message, "a trace, schedule_repeat or loss_schedule_repeat");
        return None;
    }
    if text == RANDOM {
        return Some(TraceOffset::Random);
    }
    match parse_duration(text) {
        Ok(offset) if matches!(course, LinkProfile::Trace(_)) && offset.as_nanos() % 1_000_000 != 0 => {
            let message = format!("{path}.{KEY} = \"{text}\" is not a whole number of milliseconds");
            check.add_error_at(tree, path, KEY, message, "whole milliseconds, as in the trace, such as \"10ms\"");
            None
        }
        Ok(offset) => Some(TraceOffset::Fixed(offset)),
        Err(_) => {
            let message = format!("{path}.{KEY} = \"{text}\" is not a time");
            check.add_error_at(tree, path, KEY, message, "a duration such as \"10s\", or \"random\"");
            None
        }
    }
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
