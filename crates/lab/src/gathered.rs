//! The tables of a run column by column, gathered when they are asked for the first time.

use fullpipe_archive::Columns;
use std::sync::OnceLock;

/// Tables that were asked for column by column.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) flows: OnceLock<Columns>,
    pub(crate) samples: OnceLock<Columns>,
    pub(crate) links: OnceLock<Columns>,
    pub(crate) figures: OnceLock<Columns>,
    pub(crate) completions: OnceLock<Columns>,
}
