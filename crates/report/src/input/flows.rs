//! `flows.csv`: the flows of one run.

use crate::error::ReportError;
use fullpipe_archive::{Column, FLOWS, FlowRow};
use std::path::Path;

/// The flows of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Flows {
    /// The first rows, at most as many as were asked for.
    pub(crate) rows: Vec<FlowRow>,
    /// How many rows the file has.
    pub(crate) total: usize,
}

/// Reads a run's `flows.csv`, keeping the first `most` rows.
pub(crate) fn read_flows(folder: &Path, most: usize) -> Result<Flows, ReportError> {
    let mut reader = FLOWS.open(&folder.join(FLOWS.file))?;
    let (mut flows, mut row) = (Flows::default(), FlowRow::default());
    while reader.next_into(&mut row)? {
        flows.total += 1;
        if flows.rows.len() < most {
            flows.rows.push(row.clone());
        }
    }
    FlowRow::sort_main_first(&mut flows.rows);
    Ok(flows)
}

/// A column of numbers of a run's `flows.csv`, missing values left out.
pub(crate) fn read_flow_column(folder: &Path, column: &Column<FlowRow>) -> Result<Vec<f64>, ReportError> {
    let mut reader = FLOWS.open(&folder.join(FLOWS.file))?;
    let (mut values, mut row) = (Vec::new(), FlowRow::default());
    while reader.next_into(&mut row)? {
        values.extend(Some(column.number(&row)).filter(|value| !value.is_nan()));
    }
    Ok(values)
}
