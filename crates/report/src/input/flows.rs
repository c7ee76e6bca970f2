//! Reads `flows.csv`, the flows of a run.

use crate::error::ReportError;
use fullpipe_archive::{Column, FLOWS, FlowRow};
use std::collections::BTreeMap;
use std::path::Path;

/// The flows of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Flows {
    /// The first rows, up to the requested number.
    pub(crate) rows: Vec<FlowRow>,
    /// The number of rows in the file.
    pub(crate) total: usize,
}

/// Reads a run's `flows.csv` and keeps the first `most` rows.
pub(crate) fn read_flows(folder: &Path, most: usize) -> Result<Flows, ReportError> {
    let mut reader = FLOWS.open(&folder.join(FLOWS.file))?;
    let (mut flows, mut row) = (Flows::default(), FlowRow::default());
    while reader.read_next(&mut row)? {
        flows.total += 1;
        if flows.rows.len() < most {
            flows.rows.push(row.clone());
        }
    }
    FlowRow::sort_main_first(&mut flows.rows);
    Ok(flows)
}

/// Returns a column of numbers in a run's `flows.csv`, without missing values.
pub(crate) fn read_flow_column(folder: &Path, column: &Column<FlowRow>) -> Result<Vec<f64>, ReportError> {
    let mut reader = FLOWS.open(&folder.join(FLOWS.file))?;
    let (mut values, mut row) = (Vec::new(), FlowRow::default());
    while reader.read_next(&mut row)? {
        values.extend(Some(column.number(&row)).filter(|value| !value.is_nan()));
    }
    Ok(values)
}

/// The times when the flows of a run were active.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Activity {
    /// The time of the last packet of each flow in either direction, in seconds.
    by_flow: BTreeMap<String, f64>,
    /// The time of the last packet of all flows, in seconds.
    last_s: f64,
}

impl Activity {
    /// Reads the times from a run's `flows.csv`; `None` if there is no such file, or if no flow sent a packet.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, ReportError> {
        let file = folder.join(FLOWS.file);
        if !file.exists() {
            return Ok(None);
        }
        let (mut reader, mut row) = (FLOWS.open(&file)?, FlowRow::default());
        let mut activity = Self::default();
        while reader.read_next(&mut row)? {
            let ends = [row.last_tx_s, row.last_rx_s].into_iter().flatten().map(|end| end.as_secs_f64());
            let Some(end) = ends.reduce(f64::max) else { continue };
            let flow = row.flow.strip_suffix(REVERSE).unwrap_or(&row.flow);
            match activity.by_flow.get_mut(flow) {
                Some(known) => *known = known.max(end),
                None => {
                    activity.by_flow.insert(flow.to_owned(), end);
                }
            }
            activity.last_s = activity.last_s.max(end);
        }
        Ok((activity.last_s > 0.0).then_some(activity))
    }

    /// Returns the time of the last packet of a subject of `series.csv`. For a link or a cell, it is the time of the
    /// last packet of all flows.
    pub(crate) fn end_s(&self, subject: &str) -> f64 {
        let flow = subject.strip_suffix(REVERSE).unwrap_or(subject);
        self.by_flow.get(flow).copied().unwrap_or(self.last_s)
    }
}

/// The suffix of the name of a flow's direction from the acceptor to the initiator.
pub(crate) const REVERSE: &str = ".reverse";
