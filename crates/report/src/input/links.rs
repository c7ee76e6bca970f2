//! `links.csv`: what measured links carried. A run has one if its scenario measures links.

use crate::error::ReportError;
use fullpipe_archive::{LINKS, LinkRow};
use std::path::Path;

/// Reads a run's `links.csv`; nothing if there is none.
pub(crate) fn read_links(folder: &Path) -> Result<Vec<LinkRow>, ReportError> {
    let file = folder.join(LINKS.file);
    if !file.exists() {
        return Ok(Vec::new());
    }
    Ok(LINKS.open(&file)?.rows()?)
}
