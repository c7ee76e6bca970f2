//! Reads `events.csv`, the events of a run. The file exists if the scenario has events.

use crate::error::ReportError;
use fullpipe_archive::{EVENTS, EventRow};
use std::path::Path;

/// Reads a run's `events.csv`; empty if there is no such file.
pub(crate) fn read_events(folder: &Path) -> Result<Vec<EventRow>, ReportError> {
    let file = folder.join(EVENTS.file);
    if !file.exists() {
        return Ok(Vec::new());
    }
    Ok(EVENTS.open(&file)?.rows()?)
}
