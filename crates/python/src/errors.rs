//! The exceptions of the package. Their messages are those of the command line.

use fullpipe::study::StudyError as Failed;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;

pyo3::create_exception!(fullpipe, Error, PyException, "The base class of the errors of Fullpipe.");
pyo3::create_exception!(fullpipe, ScenarioError, Error, "A scenario, or an override of its values, is invalid.");
pyo3::create_exception!(fullpipe, StudyError, Error, "A study, or a setting of it, is invalid.");
pyo3::create_exception!(fullpipe, RunError, Error, "A run failed.");
pyo3::create_exception!(fullpipe, FolderError, Error, "A folder of records has other content, or is in use.");
pyo3::create_exception!(
    fullpipe,
    SystemError,
    Error,
    "The disk is full, a permission is missing, or there is too little memory."
);

/// Converts the error of a study.
pub(crate) fn of_study(error: Failed) -> PyErr {
    let message = error.to_string();
    match error {
        Failed::InvalidFile(_) | Failed::Usage(_) => StudyError::new_err(message),
        Failed::Folder(_) => FolderError::new_err(message),
        Failed::System(_) => SystemError::new_err(message),
        Failed::Interrupted { .. } => PyKeyboardInterrupt::new_err(message),
    }
}

/// Converts the error of a run.
pub(crate) fn of_run(error: fullpipe::study::RunError) -> PyErr {
    match error {
        fullpipe::study::RunError::Failed(reason) => RunError::new_err(reason),
        fullpipe::study::RunError::System(reason) => SystemError::new_err(reason),
        fullpipe::study::RunError::Interrupted => PyKeyboardInterrupt::new_err("the run was interrupted"),
    }
}
