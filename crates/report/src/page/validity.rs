//! The section on the validity of the results (intervals, audit, warm-up, seeds, lateness, limitations) and on how to
//! repeat the runs.

use crate::input::Records;
use crate::input::run::{Run, lateness_in_words, passed};
use crate::markup::escape;
use crate::numbers::count;
use crate::numbers::{fixed, trimmed};
use crate::page::overview::short;
use crate::page::table::{Field, Heading, Table};
use crate::plot::frame::ValueRange;
use fullpipe_archive::{PacketCounts, SummaryRow, Warning, describe_chance_verdicts};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The number of runs beyond which a list is collapsed.
const FOLD_ABOVE: usize = 20;
/// The maximum number of warnings in the list.
const MOST_WARNINGS: usize = 50;
/// The number of runs below which an interval is wide and depends on the normality of the values.
const FEW_RUNS: u64 = 5;

/// Returns the section.
pub(crate) fn section(records: &Records) -> String {
    let mut out = String::new();
    let mut item = |name: &str, text: String| {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{text}</dd>");
    };
    item("Intervals", escape(&intervals(records)));
    if let Some(text) = describe_chance_verdicts(&records.summary) {
        item("Claims", escape(&text));
    }
    item("Audit", escape(&audit(records)));
    item("Seeds", escape(&seeds(records)));
    item("Warm-up", escape(&warm_up(records)));
    item("Lateness", escape(&lateness(records)));
    let mut out = format!("<dl class=\"facts\">\n{out}</dl>\n");
    failures(&mut out, records);
    warnings(&mut out, records);
    run_table(&mut out, records);
    out
}

fn intervals(records: &Records) -> String {
    let counts: Vec<u64> =
        records.summary.iter().filter(|r| r.claim().is_none() && r.mean.is_some()).map(SummaryRow::run_count).collect();
    let (Some(low), Some(high)) = (counts.iter().min(), counts.iter().max()) else {
        return "The summary contains no means.".to_owned();
    };
    if *high <= 1 {
        return "One run per point: there is no interval, so the effect of another seed is unknown.".to_owned();
    }
    let runs = if low == high { format!("{low}") } else { format!("{low} to {high}") };
    let mut text = format!(
        "{runs} independent runs per point. “±” is the half width of the 95 % interval of the mean (Student’s t over \
         runs, not over packets)."
    );
    let few = counts.iter().filter(|n| **n < FEW_RUNS).count();
    if few > 0 {
        let one = counts.iter().filter(|n| **n == 1).count();
        let alone = if one > 0 { format!(", {one} of them on one, without an interval") } else { String::new() };
        text.push_str(&format!(" {few} of {} values are from fewer than {FEW_RUNS} runs{alone}.", counts.len()));
    }
    text
}

fn audit(records: &Records) -> String {
    let audits = || records.runs.iter().map(|r| &r.record.audit);
    let all = records.runs.len();
    if all == 0 {
        return "No run has an audit.".to_owned();
    }
    let passed = audits().filter(|audit| passed(audit)).count();
    let mut checks: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, n) in audits().flat_map(|audit| &audit.checks.0) {
        *checks.entry(name).or_default() += n;
    }
    let mut text = match (passed == all, passed) {
        (true, 1) => "The run passed.".to_owned(),
        (true, _) => format!("All {passed} runs passed."),
        (false, _) => format!("{passed} of {all} runs passed, {} failed.", all - passed),
    };
    if !checks.is_empty() {
        let list: Vec<String> =
            checks.iter().map(|(name, n)| format!("{} {}", name.replace('_', " "), fixed(*n as f64, 0))).collect();
        text.push_str(&format!(" Checked, all runs together: {}.", list.join(", ")));
    }
    text
}

fn seeds(records: &Records) -> String {
    let mut by_point: BTreeMap<_, BTreeSet<u64>> = BTreeMap::new();
    for row in &records.results.rows {
        by_point.entry(&row.point).or_default().insert(row.seed);
    }
    let Some(most) = by_point.values().max_by_key(|s| s.len()) else { return "None.".to_owned() };
    let count = count(most.len(), "seed");
    if by_point.len() == 1 {
        return format!("{count}; every random stream of a run follows from its seed.");
    }
    if by_point.values().all(|s| s.is_subset(most)) {
        let fewer =
            if by_point.values().any(|s| s.len() < most.len()) { ", fewer where a point has fewer runs" } else { "" };
        format!(
            "The same {count} at every point{fewer} (common random numbers): points differ only by what was varied."
        )
    } else {
        "Points were run with different sets of seeds.".to_owned()
    }
}

fn warm_up(records: &Records) -> String {
    let from = ValueRange::of(records.runs.iter().map(|r| r.record.measurement_from_s)).filter(|from| from.high > 0.0);
    match from {
        None => "None is declared: counters cover each run from its first to its last packet.".to_owned(),
        Some(ValueRange { low, high }) => {
            let from =
                if low == high { trimmed(low, 9) } else { format!("{} to {}", trimmed(low, 9), trimmed(high, 9)) };
            format!(
                "Rates, delays, shares and loss ratios are of the time from {from} s on. Counters and sums of packets and \
                 bytes are of the whole run."
            )
        }
    }
}

fn lateness(records: &Records) -> String {
    let late: Vec<_> = records.runs.iter().filter_map(|r| r.record.lateness.as_ref()).collect();
    if late.is_empty() {
        return "Does not apply: time is simulated.".to_owned();
    }
    let good = late.iter().filter(|lateness| lateness.on_time).count();
    format!("{good} of {} real-time runs kept up with real time; the table has the figures.", late.len())
}

fn failures(out: &mut String, records: &Records) {
    let bad: Vec<_> = records.runs.iter().map(|r| (r, r.distrust())).filter(|(_, why)| !why.is_empty()).collect();
    if bad.is_empty() {
        return;
    }
    let _ = write!(out, "<h3>Not to be trusted: {}</h3>\n<ul>\n", count(bad.len(), "run"));
    for (run, reasons) in bad {
        let _ = write!(out, "<li><code>runs/{}</code><ul>", escape(&run.key));
        for reason in reasons {
            let _ = write!(out, "<li>{}</li>", escape(&reason));
        }
        out.push_str("</ul></li>\n");
    }
    out.push_str("</ul>\n");
}

/// Writes the warnings of all runs. A warning that several runs share is listed once.
fn warnings(out: &mut String, records: &Records) {
    let mut found: Vec<(&Warning, usize)> = Vec::new();
    for warning in records.runs.iter().filter_map(|run| run.record.warnings.as_ref()).flatten() {
        let place = found.iter().position(|(known, _)| known.name == warning.name && known.place == warning.place);
        match place {
            Some(place) => found[place].1 += 1,
            None if found.len() < MOST_WARNINGS => found.push((warning, 1)),
            None => {}
        }
    }
    if found.is_empty() {
        return;
    }
    let rows = found.iter().map(|(warning, runs)| {
        vec![
            Field::Markup(format!("<code>{}</code>", escape(&warning.name))),
            Field::Text(warning.place.clone()),
            Field::Text(warning.text.clone()),
            Field::Number(runs.to_string()),
        ]
    });
    let headings = vec![
        Heading::text("Warning"),
        Heading::text("Where"),
        Heading::long("What was found"),
        Heading::number("Runs"),
    ];
    out.push_str("<h3>Warnings</h3>\n");
    Table::of_rows(
        "What makes results suspicious although no check failed; the text is that of the first run",
        1,
        headings,
        rows,
    )
    .write(out);
}

fn run_table(out: &mut String, records: &Records) {
    let mut headings =
        vec![Heading::text("Run"), Heading::text("Point"), Heading::number("Seed"), Heading::number("Time (s)")];
    let packets = ["Packets received", "Packets received with data", "Packets lost", "Packet hops"];
    headings.extend(packets.map(Heading::number));
    headings.extend([Heading::text("Audit"), Heading::number("Checks"), Heading::text("Lateness")]);
    let mut points: BTreeMap<&str, String> = BTreeMap::new();
    for row in &records.results.rows {
        points.entry(&row.key).or_insert_with(|| row.point.describe());
    }
    let body = records.runs.iter().map(|run| run_row(run, points.get(run.key.as_str())));
    let table = Table::of_rows("Runs", 1, headings, body);
    if table.len() > FOLD_ABOVE {
        table.write_folded(out, &format!("Every run ({})", count(table.len(), "row")));
    } else {
        table.write(out);
    }
}

fn run_row(run: &Run, point: Option<&String>) -> Vec<Field> {
    let mut fields = vec![
        Field::Markup(format!("<code>{}</code>", escape(short(&run.key)))),
        Field::Text(point.cloned().unwrap_or_default()),
        Field::Number(run.record.seed.to_string()),
        Field::Number(trimmed(run.record.duration_s, 6)),
    ];
    let PacketCounts { received, received_with_data, lost, hops } = run.record.packets;
    fields.extend([received, received_with_data, lost, hops].map(|n| Field::Number(trimmed(n as f64, 9))));
    let audit = &run.record.audit;
    fields.push(match passed(audit) {
        true => Field::Text("✓ passed".to_owned()),
        false => Field::Bad("✗ failed".to_owned()),
    });
    fields.push(Field::Number(fixed(audit.checks.0.iter().map(|(_, n)| *n as f64).sum::<f64>(), 0)));
    fields.push(match &run.record.lateness {
        None => Field::Text(String::new()),
        Some(lateness) => {
            let word = if lateness.on_time { "✓ kept up" } else { "✗ fell behind" };
            let text = format!("{word}; {}", lateness_in_words(lateness));
            if lateness.on_time { Field::Text(text) } else { Field::Bad(text) }
        }
    });
    fields
}

/// Returns the command that reproduces the records.
pub(crate) fn repeat(records: &Records) -> String {
    let builds: BTreeSet<&str> = records.runs.iter().map(|r| r.record.build.as_str()).collect();
    let builds: Vec<String> = builds.into_iter().map(|b| format!("<code>{}</code>", escape(b))).collect();
    let mut out = String::from(
        "<pre tabindex=\"0\">fullpipe study run study.toml --out again</pre>\n\
         <p>In the folder of this page: <code>study.toml</code> holds every setting, seed included.</p>\n",
    );
    let virtual_time = records.runs.iter().all(Run::is_virtual);
    if !builds.is_empty() {
        let _ = writeln!(
            out,
            "<p>With build {}{}</p>",
            builds.join(", "),
            if virtual_time {
                " this gives the same records to the last bit, on any machine and for any number of jobs."
            } else {
                "; runs in real time do not repeat to the bit."
            }
        );
    }
    out.push_str(
        "<p>This page and its plots alone: <code>fullpipe report DIR</code> with the folder of these records.</p>\n",
    );
    out
}
