//! `links.csv`: what measured links carried. A run has one if its scenario measures links.

use crate::error::ReportError;
use crate::input::table::Table;
use std::path::Path;

/// What is read of a link, in the order of [`LinkRow::values`].
pub(crate) const LINK_COLUMNS: [&str; 6] =
    ["throughput_bps", "utilisation", "mean_queue_delay_s", "p99_queue_delay_s", "drop_ratio", "mark_ratio"];

/// A direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkRow {
    pub(crate) link: String,
    /// By [`LINK_COLUMNS`]; `None` where there is no such value.
    pub(crate) values: [Option<f64>; 6],
}

/// Reads a run's `links.csv`; nothing if there is none.
pub(crate) fn read_links(folder: &Path) -> Result<Vec<LinkRow>, ReportError> {
    let file = folder.join("links.csv");
    let mut rows = Vec::new();
    if !file.exists() {
        return Ok(rows);
    }
    let mut table = Table::open(&file)?;
    let link = table.column("link")?;
    let mut columns = [0; 6];
    for (column, name) in columns.iter_mut().zip(LINK_COLUMNS) {
        *column = table.column(name)?;
    }
    while table.next()? {
        let mut values = [None; 6];
        for (value, column) in values.iter_mut().zip(columns) {
            *value = table.number(column)?;
        }
        rows.push(LinkRow { link: table.text(link).to_owned(), values });
    }
    Ok(rows)
}
