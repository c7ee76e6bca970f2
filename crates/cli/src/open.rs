//! `--open`: shows a report in the browser.

use std::env;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// The platform's command that opens a file in its application, with the arguments before the file.
const OPENER: (&str, &[&str]) = if cfg!(target_os = "macos") {
    ("open", &[])
} else if cfg!(windows) {
    ("cmd", &["/C", "start", ""])
} else {
    ("xdg-open", &[])
};

/// The time limit for the command to report that it cannot open the file. A browser may be its child process and keep
/// running.
const PATIENCE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(20);

/// Opens a report, or prints why it cannot be opened and what to do. The exit status of a run does not depend on it.
pub(crate) fn open(report: &Path) {
    if let Err(reason) = try_open(report) {
        eprintln!("warning: --open: {reason}; open {} in a browser", report.display());
    }
}

fn try_open(report: &Path) -> Result<(), String> {
    let (program, arguments) = OPENER;
    let absolute = env::current_dir().map_or_else(|_| report.to_owned(), |folder| folder.join(report));
    let mut command = Command::new(program);
    command.args(arguments).arg(absolute).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("the command `{program}` is not installed"),
        _ => format!("`{program}`: {error}"),
    })?;
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("`{program}` could not open a browser ({status})")),
            Ok(None) => thread::sleep(STEP),
            Err(error) => return Err(format!("`{program}`: {error}")),
        }
        waited += STEP;
    }
    Ok(())
}
