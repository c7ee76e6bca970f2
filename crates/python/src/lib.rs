//! The native part of the Python package `fullpipe`: a thin layer over the facade crate.
//!
//! The modules in `python/fullpipe` define the interface that users see. This part resolves and runs scenarios and
//! studies, converts records to Arrow tables, and calls congestion controls that are written in Python.

mod arrow;
mod control;
mod environments;
mod errors;
mod interrupt;
mod request;
mod scenario;
mod steps;
mod study;
mod threads;
mod values;

use pyo3::prelude::*;

/// The native part of the Python package `fullpipe`.
#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use crate::arrow::ArrowTable;
    #[pymodule_export]
    use crate::control::{Ack, CongestionControl, CongestionEvent, Timeout};
    #[pymodule_export]
    use crate::environments::NativeEnvironments;
    #[pymodule_export]
    use crate::errors::{Error, FolderError, RunError, ScenarioError, StudyError, SystemError};
    #[pymodule_export]
    use crate::request::run_request;
    #[pymodule_export]
    use crate::scenario::{NativeResult, NativeScenario};
    #[pymodule_export]
    use crate::steps::NativeSimulation;
    #[pymodule_export]
    use crate::study::{NativeStudy, merge};
    #[pymodule_export]
    use crate::values::to_toml;

    /// The identity of the build: the same as that of the command `fullpipe` from the same sources.
    #[pymodule_export]
    const BUILD: &str = fullpipe::BUILD;

    /// Returns the names of the embedded scenarios.
    #[pyfunction]
    fn embedded_scenarios() -> Vec<&'static str> {
        fullpipe::embedded::scenario_names().collect()
    }

    /// Returns the names of the embedded studies.
    #[pyfunction]
    fn embedded_studies() -> Vec<&'static str> {
        fullpipe::embedded::study_names().collect()
    }

    /// Reads a CSV file of records.
    ///
    /// # Errors
    /// `FolderError` if the file cannot be read or is not a table.
    #[pyfunction]
    fn read_table(path: std::path::PathBuf) -> PyResult<ArrowTable> {
        crate::arrow::read_file(&path)
    }
}
