//! The page that documents every file, `docs/records.md`.

use super::TableReference;
use super::declared::{run_tables, study_tables};
use crate::json::{Json, Key};
use crate::run::RunRecord;
use std::fmt::Write;

/// The page `docs/records.md`; `components`: the tables of a run that other crates declare.
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

/// How the page begins.
const PAGE: &str = "# Records

*Every column of every file that a run or a study leaves behind. This page is made from the declarations in
`crates/archive` and in the crates of components; write it anew with
`FULLPIPE_UPDATE=1 cargo test -p fullpipe-lab --test records`.*

```
DIR/
  study.toml            the study as resolved, every default written out (docs/studies.md has its keys)
  results.csv           one row for each run at each point
  summary.csv           one row for each metric at each point, and for each claim
  report.html plots/    made from the other files; `fullpipe report DIR` makes them again
  runs/KEY/             one folder for each run
    run.json            build, seed, options, packet counts and audit
    flows.csv           one row for each direction of each flow
    ...                 further tables, where the scenario has what they describe
```

Tables are CSV files with a line of column names; readers find columns by name, and columns may be added. A cell is
empty where a value does not apply. *seconds* are exact decimals with up to nine places, a *number* is printed in the
shortest form that reads back the same, a *count* is a whole number. The unit of a column is at the end of its name:
`_bps` bit/s, `_s` seconds, `_bytes`, `_packets`.

";

/// The introduction to `run.json`.
const RUN: &str = "One JSON object. A dot leads into an object or into each object of a list. Keys that are marked *or none* are \
                   left out, or null, where they do not apply.";

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
