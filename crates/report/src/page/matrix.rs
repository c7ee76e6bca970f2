//! The section with the matrix of a study (`[matrix]`): an overview of the cells, the findings, the values of each cell,
//! the cells that are not run with their reasons, and the statements of the candidate's author.

use crate::input::Records;
use crate::markup::escape;
use crate::numbers::significant;
use crate::page::table::{Field, Heading, Table};
use crate::unit::Unit;
use fullpipe_archive::{Finding, FindingRow, MatrixRecord, MatrixRow};
use std::fmt::Write;

/// Significant digits of a value.
const DIGITS: usize = 3;

/// Returns the section; empty without a matrix.
pub(crate) fn section(records: &Records) -> String {
    let mut out = String::new();
    let Some(matrix) = records.study.matrix.as_ref().filter(|_| !records.matrix.is_empty()) else { return out };
    let findings = &records.findings;
    let count = |wanted: Finding| findings.iter().filter(|row| row.finding == Some(wanted)).count();
    let comparisons = findings.first().map_or(0, |row| row.comparisons);
    let _ = writeln!(
        out,
        "<p>{} comparisons: {} better, {} worse, {} not distinguishable, {} undecided. A finding is the mean difference from the \
         reference over the points of the cell, paired by replication. Its interval is Student's with the confidence 1 − 0.05/{comparisons} \
         (Bonferroni), so that all intervals hold together with 95 %. It covers the replications, not other points. There is no pass \
         mark.</p>",
        findings.len(),
        count(Finding::Better),
        count(Finding::Worse),
        count(Finding::NotDistinguishable),
        count(Finding::Undecided),
    );
    overview(records, matrix).write(&mut out);
    findings_table(records, matrix).write(&mut out);
    values(records, matrix).write_folded(&mut out, "Worst and median point of each cell and control");
    not_run(records, matrix).write_folded(&mut out, "Cells that are not run, with reasons");
    if let Some(statements) = matrix.statement.as_ref().filter(|statements| !statements.is_empty()) {
        for statement in statements {
            let text = if statement.text.trim().is_empty() { "not supplied" } else { &statement.text };
            let _ = writeln!(
                out,
                "<h3>{} {}</h3>\n<p>{}</p>",
                escape(&statement.section),
                escape(&statement.title),
                escape(text)
            );
        }
    }
    out
}

/// Returns the name of a row or column with its title.
fn titled(names: &[(String, String)], name: &str) -> String {
    let title = names.iter().find(|(known, _)| known == name).map_or("", |(_, title)| title.as_str());
    format!("{name} {title}").trim_end().to_owned()
}

/// Returns the cells with the numbers of findings: a row for each criterion, and a column for each condition.
fn overview(records: &Records, matrix: &MatrixRecord) -> Table {
    let headings = std::iter::once(Heading::text("Criterion"))
        .chain(matrix.columns.iter().map(|(column, title)| Heading::text(format!("{column} {title}"))));
    let row = |(row, title): &(String, String)| {
        let cell = |(column, _): &(String, String)| {
            let mut rows = records.matrix.iter().filter(|cell| cell.row == *row && cell.column == *column);
            if rows.all(|cell| cell.metric.is_empty()) {
                return Field::Text("not run".to_owned());
            }
            let of: Vec<&FindingRow> =
                records.findings.iter().filter(|cell| cell.row == *row && cell.column == *column).collect();
            let parts = Finding::ALL.into_iter().filter_map(|finding| {
                let count = of.iter().filter(|row| row.finding == Some(finding)).count();
                (count > 0).then(|| format!("{count} {}", finding.name()))
            });
            let text = parts.collect::<Vec<_>>().join(", ");
            Field::Text(if text.is_empty() { "run".to_owned() } else { text })
        };
        std::iter::once(Field::Text(format!("{row} {title}"))).chain(matrix.columns.iter().map(cell)).collect()
    };
    Table {
        caption: "Cells, with the number of findings".to_owned(),
        keys: 1,
        headings: headings.collect(),
        groups: vec![(None, matrix.rows.iter().map(row).collect())],
        ..Table::default()
    }
}

/// Formats a value of a metric with its unit.
fn quantity(value: Option<f64>, unit: &Unit) -> String {
    value.map_or_else(String::new, |value| {
        let unit = unit.scale_for(value.abs());
        unit.with_unit(&significant(unit.value(value), DIGITS))
    })
}

/// Formats a difference with its interval.
fn difference(row: &FindingRow) -> String {
    let unit = Unit::new(&row.unit);
    let ends = [row.difference, row.low, row.high].into_iter().flatten();
    let unit = unit.scale_for(ends.fold(0.0, |largest: f64, value| largest.max(value.abs())));
    let number = |value: Option<f64>| value.map(|value| significant(unit.value(value), DIGITS));
    let Some(mean) = number(row.difference) else { return String::new() };
    match (number(row.low), number(row.high)) {
        (Some(low), Some(high)) => unit.with_unit(&format!("{mean} ({low} to {high})")),
        _ => unit.with_unit(&mean),
    }
}

/// Returns the differences between the candidates and each reference, row by row.
fn findings_table(records: &Records, matrix: &MatrixRecord) -> Table {
    let headings = vec![
        Heading::text("Condition"),
        Heading::text("Metric"),
        Heading::text("Control"),
        Heading::text("Finding"),
        Heading::text("Difference and interval"),
        Heading::number("Replications"),
        Heading::number("Points"),
        Heading::long("Note"),
    ];
    let line = |row: &FindingRow| {
        let word = match row.finding {
            Some(Finding::Better) => format!("better than {}", row.reference),
            Some(Finding::Worse) => format!("worse than {}", row.reference),
            Some(Finding::NotDistinguishable) => format!("not distinguishable from {}", row.reference),
            Some(Finding::Undecided) | None => format!("undecided against {}", row.reference),
        };
        vec![
            Field::Text(titled(&matrix.columns, &row.column)),
            Field::Text(row.metric.clone()),
            Field::Text(row.control.clone()),
            Field::Text(word),
            Field::Text(difference(row)),
            Field::Number(row.n.to_string()),
            Field::Number(row.points.to_string()),
            Field::Text(row.note.clone()),
        ]
    };
    let group = |(name, title): &(String, String)| {
        let rows: Vec<_> = records.findings.iter().filter(|row| row.row == *name).map(line).collect();
        (!rows.is_empty()).then(|| (Some(format!("{name} {title}")), rows))
    };
    let groups = matrix.rows.iter().filter_map(group).collect();
    let mut table = Table { caption: "Findings".to_owned(), keys: 2, headings, groups, ..Table::default() };
    table.drop_empty_columns();
    table
}

/// Returns the worst and the median point of each cell and control.
fn values(records: &Records, matrix: &MatrixRecord) -> Table {
    let headings = vec![
        Heading::text("Condition"),
        Heading::text("Metric"),
        Heading::text("Control"),
        Heading::text("Worst point"),
        Heading::text("95 % interval"),
        Heading::text("Median point"),
        Heading::number("Runs"),
        Heading::long("Where the worst is"),
        Heading::long("Note"),
    ];
    let line = |row: &MatrixRow| {
        let metric = records.study.metric.iter().find(|metric| metric.name == row.metric);
        let unit = Unit::new(metric.map_or("", |metric| metric.unit.as_str()));
        let interval = match (row.low, row.high) {
            (Some(_), Some(_)) => format!("{} to {}", quantity(row.low, &unit), quantity(row.high, &unit)),
            _ => String::new(),
        };
        vec![
            Field::Text(titled(&matrix.columns, &row.column)),
            Field::Text(row.metric.clone()),
            Field::Text(row.control.clone()),
            Field::Text(quantity(row.worst, &unit)),
            Field::Text(interval),
            Field::Text(quantity(row.median, &unit)),
            Field::Number(row.n.map_or_else(String::new, |n| n.to_string())),
            Field::Text(row.worst_point.replace(';', ", ")),
            Field::Text(row.note.clone()),
        ]
    };
    let group = |(name, title): &(String, String)| {
        let rows = records.matrix.iter().filter(|row| row.row == *name && !row.metric.is_empty());
        let rows: Vec<_> = rows.map(line).collect();
        (!rows.is_empty()).then(|| (Some(format!("{name} {title}")), rows))
    };
    let groups = matrix.rows.iter().filter_map(group).collect();
    let mut table =
        Table { caption: "Worst and median point".to_owned(), keys: 3, headings, groups, ..Table::default() };
    table.drop_empty_columns();
    table
}

/// Returns the cells that are not run, and those that leave something out, with the reasons.
fn not_run(records: &Records, matrix: &MatrixRecord) -> Table {
    let headings = vec![Heading::text("Criterion"), Heading::text("Condition"), Heading::long("Reason")];
    let unrun = records.matrix.iter().filter(|row| row.metric.is_empty());
    let unrun = unrun.map(|row| (row.row.as_str(), row.column.as_str(), row.note.as_str()));
    let partial = matrix.cell.iter().filter_map(|cell| Some((cell, cell.note.as_deref()?)));
    let partial = partial.flat_map(|(cell, note)| {
        let columns = move |row| cell.columns.iter().map(move |column| (row, column.as_str(), note));
        cell.rows.iter().map(String::as_str).flat_map(columns)
    });
    let rows = unrun.chain(partial).map(|(row, column, note)| {
        vec![
            Field::Text(titled(&matrix.rows, row)),
            Field::Text(titled(&matrix.columns, column)),
            Field::Text(note.to_owned()),
        ]
    });
    Table::of_rows("What is not run", 2, headings, rows)
}
