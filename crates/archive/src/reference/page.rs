//! Generates `docs/records.md`, the reference page of all files.

use super::TableReference;
use super::declared::{run_table_references, study_table_references};
use crate::json::{JsonKey, JsonValue};
use crate::run::RunRecord;
use crate::study::{STUDY, StudyRecord};
use crate::warning::WarningKind;
use fullpipe_schema::{FieldKind, Table, describe_kind};
use std::fmt::Write;

/// Returns the page `docs/records.md`. `components` are the tables of a run that other crates declare. `metrics` are
/// the metrics of `figures.csv`: a table for each workload or transport whose endpoints report them.
pub fn render_records_page(components: &[TableReference], metrics: &[TableReference]) -> String {
    let mut out = String::from(PAGE);
    for table in study_table_references().iter().chain(&run_table_references()).chain(components) {
        section(&mut out, table);
    }
    let _ = write!(
        out,
        "## Metrics of figures.csv\n\n{METRICS}\n\n| Of | Metric | Unit | Description |\n|---|---|---|---|\n"
    );
    for table in metrics {
        for metric in &table.columns {
            let _ = writeln!(out, "| `{}` | `{}` | {} | {} |", table.file, metric.name, metric.unit, metric.text);
        }
    }
    out.push('\n');
    let _ = write!(out, "## {}\n\n{STUDY_FILE}\n\n| Key | Type | Description |\n|---|---|---|\n", StudyRecord::FILE);
    keys_of_toml(&mut out, "", &STUDY);
    out.push('\n');
    // Writing to a string cannot fail.
    let _ = write!(out, "## {}\n\n{RUN}\n\n| Key | Type | Unit | Description |\n|---|---|---|---|\n", RunRecord::FILE);
    for JsonKey { path, kind, unit, text, is_optional } in RunRecord::keys() {
        let missing = if is_optional { " or none" } else { "" };
        let _ = writeln!(out, "| `{path}` | {kind}{missing} | {unit} | {text} |");
    }
    let _ = write!(out, "\n## Warnings\n\n{WARNINGS}\n\n| Name | Description |\n|---|---|\n");
    for kind in WarningKind::ALL {
        let _ = writeln!(out, "| `{}` | {} |", kind.name(), kind.description());
    }
    out
}

/// The introduction of the page.
const PAGE: &str = "# Records

*Every column of every file that a run or a study writes. This page is generated from the declarations in
`crates/archive` and in the crates of components; regenerate it with
`FULLPIPE_UPDATE=1 cargo test -p fullpipe-lab --test all records`.*

```text
DIR/
  study.toml            the study as resolved, every default written out (docs/studies.md has its keys)
  results.csv           one row for each run at each point
  summary.csv           one row for each metric at each point, and for each claim
  flow_summary.csv      application metrics and packet delays of each flow at each point
  report.html plots/    generated from the other files; `fullpipe report DIR` regenerates them
  runs/KEY/             one folder for each run
    run.json            build, seed, options, packet counts and audit
    flows.csv           one row for each direction of each flow
    ...                 further tables, if the scenario has what they describe
```

Tables are CSV files with a line of column names. Find columns by name, because later versions may add columns. A cell is
empty if a value does not apply. *seconds* are exact decimals with up to nine places, a *number* is printed in the
shortest form that reads back the same, and a *count* is a nonnegative integer. The name of a column ends with its unit:
`_bps` (bit/s), `_s` (seconds), `_bytes`, `_packets`.

";

/// The introduction to `study.toml`.
const STUDY_FILE: &str = "The study as resolved: a study file that repeats the study. A dot leads into a table or into each table \
                          of an array; NAME is chosen by the author. A key is left out where it does not apply. \
                          [Studies](studies.md) has the defaults of files that people write.";

/// Writes the rows of a table's keys. The rows of a contained table follow the row of its key.
fn keys_of_toml(out: &mut String, path: &str, table: &Table) {
    for field in table.common_fields() {
        let path = format!("{path}{}", field.key);
        let (kind, below) = match &field.kind {
            FieldKind::Tables(below) | FieldKind::Either(_, FieldKind::Tables(below)) => {
                ("array of tables".to_owned(), Some((".", below)))
            }
            FieldKind::Map(FieldKind::Table(below) | FieldKind::Either(_, FieldKind::Table(below))) => {
                ("tables by name".to_owned(), Some((".NAME.", below)))
            }
            FieldKind::Table(below) => ("table".to_owned(), Some((".", below))),
            kind => (describe_kind(kind), None),
        };
        let _ = writeln!(out, "| `{path}` | {kind} | {} |", field.text);
        if let Some((step, below)) = below {
            keys_of_toml(out, &format!("{path}{step}"), below);
        }
    }
}
/// The introduction to the metrics of `figures.csv`.
const METRICS: &str = "Both ends of a flow report the metrics of its workload that they can measure; each end of a flow over QUIC, and of a \
                       tunnel (`masque`), reports those of its transport too. A metric without a value has an empty cell, or no \
                       row where nothing was measured. Real programs can report metrics of a flow, too.";

/// The introduction to `run.json`.
const RUN: &str = "One JSON object. A dot in a key denotes a member of an object, or of each object of an array. Keys marked \
                   *or none* are omitted, or null, if they do not apply.";

/// The introduction to the warnings.
const WARNINGS: &str = "A warning makes results suspicious although nothing failed. `fullpipe check` prints those that are known before \
                        the run; `run.json`, the terminal and the report have all of a run.";

/// Writes a table's section of the page, in Markdown.
fn section(out: &mut String, table: &TableReference) {
    // Writing to a string cannot fail.
    let _ = write!(out, "## {}\n\n{}\n\n", table.file, table.text);
    out.push_str("| Column | Type | Unit | Description |\n|---|---|---|---|\n");
    for column in &table.columns {
        let optional = if column.is_optional { " or empty" } else { "" };
        let _ = writeln!(out, "| `{}` | {}{optional} | {} | {} |", column.name, column.kind, column.unit, column.text);
    }
    out.push('\n');
}
