//! Reads `links.csv`, the metrics of measured links. The file exists if the scenario measures links.

use crate::error::ReportError;
use fullpipe_archive::{LINKS, LinkRow};
use std::path::Path;

/// Reads a run's `links.csv`; empty if there is no such file.
pub(crate) fn read_links(folder: &Path) -> Result<Vec<LinkRow>, ReportError> {
    let file = folder.join(LINKS.file);
    if !file.exists() {
        return Ok(Vec::new());
    }
    Ok(LINKS.open(&file)?.rows()?)
}
