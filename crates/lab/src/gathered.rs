//! The tables of a run by column. Each table is built when it is first used.

use fullpipe_archive::Columns;
use std::sync::OnceLock;

/// Tables that have been requested by column.
#[derive(Debug, Default)]
pub(crate) struct ColumnCache {
    pub(crate) flows: OnceLock<Columns>,
    pub(crate) samples: OnceLock<Columns>,
    pub(crate) links: OnceLock<Columns>,
    pub(crate) figures: OnceLock<Columns>,
    pub(crate) completions: OnceLock<Columns>,
}
