//! The tables of all results: one per experiment, with a row per point and a column per metric. For a single run, there
//! are tables of its flows.

use crate::error::ReportError;
use crate::input::flows::{Flows, read_flows};
use crate::input::{Records, distinct};
use crate::markup::{escape, markdown};
use crate::numbers::count;
use crate::numbers::{exact, mean_and_interval, trimmed};
use crate::page::published::{axis_field, axis_heading, experiments, unit_of};
use crate::page::table::{Field, Heading, Table};
use crate::page::{events, experience, links};
use crate::plot::gather::{varying, word_for};
use crate::totals::describe_total;
use crate::unit::Unit;
use fullpipe_archive::{Cell, CellKind, Column, FlowRow};
use fullpipe_archive::{Point, ResultRow, SummaryRow};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The maximum number of flows; the file contains all flows.
const MOST_FLOWS: usize = 200;
/// The number of rows beyond which a table is collapsed.
const FOLD_ABOVE: usize = 40;

/// Returns the section with the tables of all results.
pub(crate) fn section(records: &Records) -> Result<String, ReportError> {
    let mut out = String::new();
    if records.is_single_run() {
        flows(&mut out, records)?;
    }
    let rows: Vec<&SummaryRow> =
        records.summary.iter().filter(|r| r.claim().is_none() && (r.mean.is_some() || r.run_count() > 0)).collect();
    for name in experiments(&rows) {
        let rows: Vec<&SummaryRow> = rows.iter().copied().filter(|r| r.point.experiment() == name).collect();
        if let Some(name) = name {
            let _ = writeln!(out, "<h3>{}</h3>", escape(name));
            let text = records
                .study
                .experiment
                .iter()
                .find(|known| known.name == name)
                .map_or("", |known| known.text.as_str());
            if !text.is_empty() {
                let _ = writeln!(out, "<p>{}</p>", markdown(text));
            }
        }
        if records.is_single_run() {
            of_run(records, &rows).write(&mut out);
        } else {
            fold(&mut out, &of_points(records, &rows, name));
        }
        experience::tables(records, name).iter().for_each(|table| fold(&mut out, table));
    }
    if let Some(table) = links::table(records)? {
        out.push_str("<h3>Links</h3>\n");
        fold(&mut out, &table);
    }
    if let Some(table) = events::table(records)? {
        out.push_str("<h3>Events</h3>\n");
        fold(&mut out, &table);
    }
    definitions(&mut out, records);
    Ok(out)
}

fn fold(out: &mut String, table: &Table) {
    if table.len() > FOLD_ABOVE {
        table.write_folded(out, &format!("{} ({})", table.caption, count(table.len(), "row")));
    } else {
        table.write(out);
    }
}

/// Significant digits of a value of a single run, which has no interval.
const DIGITS: usize = 4;

/// Returns the metrics of a single run with their definitions, because some are sums over flows and some are means.
fn of_run(records: &Records, rows: &[&SummaryRow]) -> Table {
    let body = rows.iter().map(|row| {
        let told = records.study.words_of(&row.metric).map_or("", |words| words.text.as_str());
        let expression = records.study.metric.iter().find(|metric| metric.name == row.metric);
        let total = expression.and_then(|metric| describe_total(&metric.expression)).unwrap_or_default();
        let value = row.mean.map_or_else(String::new, |mean| {
            let unit = unit_of(records, row).scale_for(mean.abs());
            unit.with_unit(&exact(unit.value(mean), DIGITS))
        });
        vec![
            Field::Text(crate::unit::words(&row.metric)),
            Field::Text(total.to_owned()),
            Field::Number(value),
            Field::Markup(markdown(told)),
        ]
    });
    let headings =
        vec![Heading::text("Metric"), Heading::text("Total"), Heading::number("Value"), Heading::long("What it is")];
    Table::of_rows("Metrics of the run", 1, headings, body)
}

/// Returns a table with one row per point and one column per metric.
fn of_points(records: &Records, rows: &[&SummaryRow], experiment: Option<&str>) -> Table {
    let axes = varying(rows.iter().map(|r| &r.point));
    let mut points: Vec<&Point> = Vec::new();
    let mut cells: BTreeMap<(&Point, &str), &SummaryRow> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for row in rows {
        if seen.insert(&row.point) {
            points.push(&row.point);
        }
        cells.insert((&row.point, &row.metric), row);
    }
    let metrics = distinct(rows.iter().map(|row| row.metric.as_str()));
    let mut headings: Vec<Heading> = axes.iter().map(|a| axis_heading(records, a, rows)).collect();
    let mut units = Vec::new();
    for metric in &metrics {
        let column = || rows.iter().filter(|r| r.metric == *metric);
        let largest = column().filter_map(|r| r.mean).fold(0.0, |a: f64, v| a.max(v.abs()));
        let unit = column().next().map_or_else(|| Unit::new(""), |r| unit_of(records, r)).scale_for(largest);
        let word = word_for(records, metric);
        headings.push(Heading::number(unit.heading(&word)));
        units.push(unit);
    }
    headings.push(Heading::number("Runs"));
    let doubtful = records.doubtful();
    // The row of a point with fewer runs than the others states the reason. Otherwise data would seem to be missing.
    let most = rows.iter().map(|row| row.run_count()).max().unwrap_or(0);
    let is_deterministic = |point: &Point| {
        let mut runs = records.results.rows.iter().filter(|row| row.point == *point).peekable();
        let draws_nothing = |row: &ResultRow| {
            let streams = records.run(&row.key).and_then(|run| run.record.random_streams.as_ref());
            streams.is_some_and(|streams| streams.0.is_empty())
        };
        runs.peek().is_some() && runs.all(draws_nothing)
    };
    let mut any_deterministic = false;
    let body = points.iter().map(|point| {
        let of_point = || metrics.iter().map(|m| cells.get(&(*point, *m)).copied());
        let mut fields: Vec<Field> = axes
            .iter()
            .map(|a| of_point().flatten().next().map_or(Field::Text(String::new()), |r| axis_field(r, a)))
            .collect();
        for (row, unit) in of_point().zip(&units) {
            let shown = match row.and_then(|r| r.mean.map(|mean| (mean, r.ci95))) {
                Some((mean, half)) => match mean_and_interval(unit.value(mean), half.map(|h| unit.value(h))) {
                    (mean, Some(half)) => format!("{mean} ± {half}"),
                    (mean, None) => mean,
                },
                None => "–".to_owned(),
            };
            fields.push(Field::Number(shown));
        }
        let counted = of_point().flatten().map(|r| r.run_count()).max().unwrap_or(0);
        fields.push(match runs(records, &doubtful, point, counted) {
            Field::Number(text) if counted < most && is_deterministic(point) => {
                any_deterministic = true;
                Field::Number(format!("{text} (deterministic)"))
            }
            field => field,
        });
        fields
    });
    let body: Vec<Vec<Field>> = body.collect();
    let mut caption = match (experiment, rows.iter().all(|r| r.run_count() <= 1)) {
        (Some(name), false) => format!("{name}: means over runs ± half width of the 95 % interval"),
        (None, false) => "Means over runs ± half width of the 95 % interval".to_owned(),
        (Some(name), true) => format!("{name}: values of one run per point"),
        (None, true) => "Values of one run".to_owned(),
    };
    if any_deterministic {
        caption.push_str("; a deterministic point draws no random numbers, so one run is exact");
    }
    Table::of_rows(caption, axes.len(), headings, body.into_iter())
}

/// Formats the number of runs of a point, and the number of invalid runs. Invalid runs are excluded if enough valid
/// runs remain.
fn runs(records: &Records, doubtful: &BTreeSet<&str>, point: &Point, counted: u64) -> Field {
    if doubtful.is_empty() {
        return Field::Number(counted.to_string());
    }
    let runs = || records.results.rows.iter().filter(|row| row.point == *point);
    let not_valid = runs().filter(|row| doubtful.contains(row.key.as_str())).count() as u64;
    let sound = runs().count() as u64 - not_valid;
    match not_valid {
        0 => Field::Number(counted.to_string()),
        _ if sound == 0 => Field::Bad(format!("{counted}, none to be trusted")),
        _ if counted > sound => Field::Bad(format!("{counted}, {not_valid} not to be trusted")),
        _ => Field::Bad(format!("{counted}, {not_valid} left out")),
    }
}

/// Writes the definition of each metric.
fn definitions(out: &mut String, records: &Records) {
    let shown = |name: &str| records.summary.iter().any(|r| r.metric == name);
    let rows = records.study.metric.iter().filter(|metric| shown(&metric.name)).map(|metric| {
        let code = |text: &str| Field::Markup(format!("<code>{}</code>", escape(text)));
        let (unit, text) = (Field::Text(metric.unit.clone()), Field::Markup(markdown(&metric.text)));
        let total = Field::Text(describe_total(&metric.expression).unwrap_or_default().to_owned());
        vec![code(&metric.name), total, unit, text, code(&metric.expression)]
    });
    let headings = vec![
        Heading::text("Metric"),
        Heading::text("Total"),
        Heading::text("Unit"),
        Heading::long("What it is"),
        Heading::long("Expression"),
    ];
    let table = Table::of_rows("How the metrics are computed from flows.csv", 1, headings, rows);
    if table.len() > 0 {
        table.write_folded(out, &table.caption);
    }
}

/// Tables of flows that are narrow enough for a page. For each table: the title, and the columns (heading, source in
/// `flows.csv`) after the name of the flow.
const FLOW_TABLES: [(&str, &[(&str, From)]); 2] = [
    (
        "both directions of each, the main direction first: rates and delays",
        &[
            ("Source", From::Column(FlowRow::source())),
            ("Destination", From::Column(FlowRow::destination())),
            ("Direction", From::Direction),
            ("Protocol", From::Column(FlowRow::protocol())),
            ("Congestion control", From::Column(FlowRow::congestion())),
            ("Goodput", From::Column(FlowRow::goodput_bps())),
            ("Throughput", From::Derived(RATE, FlowRow::throughput_bps)),
            ("Mean delay", From::Derived("s", FlowRow::mean_delay_s)),
            ("Mean jitter", From::Derived("s", FlowRow::mean_jitter_s)),
            ("Completion", From::Column(FlowRow::completion_s())),
        ],
    ),
    (
        "packets and bytes, counted at the IP layer",
        &[
            ("Packets sent", From::Column(FlowRow::tx_packets())),
            ("received", From::Column(FlowRow::rx_packets())),
            ("lost", From::Column(FlowRow::lost_packets())),
            ("retransmitted", From::Column(FlowRow::retransmitted_packets())),
            ("marked", From::Column(FlowRow::marked_packets())),
            ("Bytes sent", From::Column(FlowRow::tx_bytes())),
            ("received", From::Column(FlowRow::rx_bytes())),
            ("First sent", From::Column(FlowRow::first_tx_s())),
            ("Last received", From::Column(FlowRow::last_rx_s())),
        ],
    ),
];

/// The source of a column in a table of flows.
#[derive(Clone, Copy)]
enum From {
    /// A column of `flows.csv`.
    Column(Column<FlowRow>),
    /// The direction of the row: main or other.
    Direction,
    /// A value that is computed from several columns, with its unit.
    Derived(&'static str, fn(&FlowRow) -> Option<f64>),
}

impl From {
    /// Returns whether the column contains texts.
    fn is_text(self) -> bool {
        match self {
            From::Column(column) => column.kind == CellKind::Text,
            From::Direction => true,
            From::Derived(..) => false,
        }
    }

    /// Returns the unit of the column's numbers, which have the prefix for the largest value; `None` for counts, which
    /// are exact.
    fn unit(self) -> Option<&'static str> {
        match self {
            From::Column(column) => (column.kind != CellKind::Count).then_some(column.unit),
            From::Direction => None,
            From::Derived(unit, _) => Some(unit),
        }
    }

    fn text(self, row: &FlowRow) -> String {
        match self {
            From::Column(column) => match (column.cell)(row) {
                Cell::Text(text) => text.into_owned(),
                _ => String::new(),
            },
            From::Direction => if row.is_main() { "main" } else { "opposite" }.to_owned(),
            From::Derived(..) => String::new(),
        }
    }

    fn number(self, row: &FlowRow) -> Option<f64> {
        match self {
            From::Column(column) => Some(column.number(row)).filter(|value| !value.is_nan()),
            From::Direction => None,
            From::Derived(_, value) => value(row),
        }
    }
}

fn flows(out: &mut String, records: &Records) -> Result<(), ReportError> {
    let Some(run) = records.runs.first() else { return Ok(()) };
    let flows = read_flows(&run.folder, MOST_FLOWS)?;
    for (about, columns) in FLOW_TABLES {
        let table = flow_table(&flows, about, columns);
        if table.headings.len() > 1 {
            fold(out, &table);
        }
    }
    Ok(())
}

/// The unit of rates.
const RATE: &str = "bit/s";

/// Formats a rate with the prefix for its own size, because the rates of the two directions of a flow differ by orders
/// of magnitude.
pub(crate) fn rate(bps: f64) -> String {
    let unit = Unit::new(RATE).scale_for(bps);
    format!("{} {}", trimmed(unit.value(bps), 4), unit.label)
}

fn flow_table(flows: &Flows, about: &str, from: &[(&str, From)]) -> Table {
    let mut headings = Vec::new();
    let mut columns: Vec<Vec<Field>> = Vec::new();
    for (heading, from) in [&[("Flow", From::Column(FlowRow::flow()))], from].concat() {
        if from.is_text() {
            headings.push(Heading::text(heading));
            columns.push(flows.rows.iter().map(|row| Field::Text(from.text(row))).collect());
            continue;
        }
        if from.unit() == Some(RATE) {
            headings.push(Heading::number(heading));
            let field = |row| Field::Number(from.number(row).map_or_else(|| "–".to_owned(), rate));
            columns.push(flows.rows.iter().map(field).collect());
            continue;
        }
        let largest = flows.rows.iter().filter_map(|row| from.number(row)).fold(0.0, |a: f64, v| a.max(v.abs()));
        let unit = match from.unit() {
            None => Unit::new("").scale_for(1.0),
            Some(unit) => Unit::new(unit).scale_for(largest),
        };
        headings.push(Heading::number(unit.heading(heading)));
        // Times of events are exact; means are not.
        let exact_time = matches!(from, From::Column(_)) && from.unit().is_some();
        let shown = |value| if exact_time { trimmed(value, 6) } else { exact(value, DIGITS) };
        let field = |row| Field::Number(from.number(row).map_or_else(|| "–".to_owned(), |v| shown(unit.value(v))));
        columns.push(flows.rows.iter().map(field).collect());
    }
    let rows = (0..flows.rows.len()).map(|i| columns.iter().map(|c| c[i].clone()).collect());
    let shown = flows.rows.len();
    let caption = match flows.total {
        total if total > shown => format!("Flows, {about}: the first {shown} of {total}; flows.csv has all"),
        _ => format!("Flows, {about}"),
    };
    Table::of_rows(caption, 1, headings, rows)
}
