//! Runs a study from the library: reads it, shortens it, runs it on two threads and prints the summary.
//!
//! ```text
//! cargo run -p fullpipe-study --example study [STUDY.toml [FOLDER]]
//! ```

use fullpipe_archive::SUMMARY;
use fullpipe_study::{
    FileSystem, FinishedRun, StudyError, StudyObserver, StudyOptions, UserSettings, VirtualTimeRunner, load_file, run,
};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

struct Lines;

impl StudyObserver for Lines {
    fn on_run_finished(&mut self, run: &FinishedRun<'_>) {
        eprintln!("[{}/{}] {}", run.finished, run.total, run.label);
    }
    fn on_message(&mut self, text: &str) {
        eprintln!("{text}");
    }
}

fn main() -> ExitCode {
    match example() {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("{error}");
            error.exit_status().into()
        }
    }
}

fn example() -> Result<u8, StudyError> {
    let mut arguments = std::env::args().skip(1);
    let given = arguments.next();
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../studies/tcp-vs-udp/study.toml");
    let file = PathBuf::from(given.as_deref().unwrap_or(default));
    let folder = arguments.next().map_or_else(|| std::env::temp_dir().join("fullpipe-example-study"), PathBuf::from);

    let laboratory = VirtualTimeRunner::new("example");
    let mut study = load_file(&file)?;
    let settings = UserSettings { quick: given.is_none(), ..UserSettings::default() };
    for message in study.apply(&settings, &laboratory)? {
        eprintln!("{message}");
    }
    let options = StudyOptions { jobs: 2, ..StudyOptions::default() };
    let outcome = run(&study, &laboratory, &folder, &FileSystem::new(), &options, &mut Lines, &AtomicBool::new(false))?;
    print!("{}", String::from_utf8_lossy(&SUMMARY.to_bytes(&outcome.rows)));
    for (run, reason) in outcome.failed.iter().chain(&outcome.untrusted) {
        eprintln!("{run}: {reason}");
    }
    eprintln!("records in {}", folder.display());
    Ok(outcome.exit_status())
}
