//! The tables that this crate declares.

use super::TableReference;

/// Returns the tables of a run that this crate declares.
pub fn run_table_references() -> Vec<TableReference> {
    vec![
        crate::FLOWS.reference(),
        crate::SERIES.reference(),
        crate::LINKS.reference(),
        crate::HALVES.reference(),
        crate::EVENTS.reference(),
        crate::FIGURES.reference(),
        crate::COMPLETIONS.reference(),
    ]
}

/// Returns the tables of a study.
pub fn study_table_references() -> Vec<TableReference> {
    vec![
        crate::Results::reference(),
        crate::SUMMARY.reference(),
        crate::FLOW_SUMMARY.reference(),
        crate::EXPECTATIONS.reference(),
        crate::MATRIX.reference(),
        crate::FINDINGS.reference(),
        crate::COMPARISON.reference(),
        crate::ROBUSTNESS.reference(),
        crate::CPU.reference(),
    ]
}
