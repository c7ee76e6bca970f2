//! The exceptions of the package. Their messages are those of the command, with arguments of Python instead of options.

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

/// Options and commands in messages of the command, and what a program in Python uses instead.
const IN_PYTHON: [(&str, &str); 4] = [
    ("with --out", "with out="),
    ("`fullpipe list scenarios` lists", "`fullpipe.embedded_scenarios()` lists"),
    ("`fullpipe study list` lists", "`fullpipe.embedded_studies()` lists"),
    // The place of an error in an override, such as `--set duration=x: ...`.
    ("--set ", "set: "),
];

/// Returns a message of the command for users of Python.
fn in_python(message: &str) -> String {
    IN_PYTHON.iter().fold(message.to_owned(), |message, (command, python)| message.replace(command, python))
}

/// Returns the error of an invalid scenario.
pub(crate) fn of_scenario(message: impl std::fmt::Display) -> PyErr {
    ScenarioError::new_err(in_python(&message.to_string()))
}

/// Converts the error of a study.
pub(crate) fn of_study(error: Failed) -> PyErr {
    let message = in_python(&error.to_string());
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
