//! Generates `docs/records.md`, the page that documents every file.

use super::TableReference;
use super::declared::{run_tables, study_tables};
use crate::json::{Json, Key};
use crate::run::RunRecord;
use std::fmt::Write;

/// The page `docs/records.md`. `components` are the tables of a run that other crates declare.
pub fn page(components: &[TableReference]) -> String {
    let mut out = String::from(PAGE);
    for table in study_tables().iter().chain(&run_tables()).chain(components) {
        section(&mut out, table);
    }
    // Writing to a string cannot fail.
    let _ = write!(out, "## {}\n\n{RUN}\n\n| Key | Type | Unit | Description |\n|---|---|---|---|\n", RunRecord::FILE);
    for Key { path, kind, unit, text, is_optional } in RunRecord::keys() {
        let missing = if is_optional { " or none" } else { "" };
        let _ = writeln!(out, "| `{path}` | {kind}{missing} | {unit} | {text} |");
    }
    out
}

/// The introduction of the page.
const PAGE: &str = "# Records

*Every column of every file that a run or a study writes. This page is generated from the declarations in
`crates/archive` and in the crates of components; regenerate it with
`FULLPIPE_UPDATE=1 cargo test -p fullpipe-lab --test records`.*

```
DIR/
  study.toml            the study as resolved, every default written out (docs/studies.md has its keys)
  results.csv           one row for each run at each point
  summary.csv           one row for each metric at each point, and for each claim
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

/// The introduction to `run.json`.
const RUN: &str = "One JSON object. A dot in a key denotes a member of an object, or of each object of an array. Keys marked \
                   *or none* are omitted, or null, if they do not apply.";

/// A table's section of the page, in Markdown.
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
