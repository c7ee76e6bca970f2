//! The interface between a study and a runner, which resolves and runs scenarios and identifies the build.
//!
//! `laboratory.rs` implements it with the `lab` crate; tests have their own implementations.

use fullpipe_archive::RunRecord;
use fullpipe_lab::cost::Cost;
use fullpipe_scenario::schema::Override;
use fullpipe_units::Duration;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The text of a scenario and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioSource {
    /// The name in errors: the path, or the name of an embedded scenario.
    pub name: String,
    /// The name of the scenario's file, as the study states it.
    pub origin: String,
    /// The text of the scenario.
    pub text: String,
    /// The folder of the files to which the scenario refers; `None` if the scenario is embedded.
    pub folder: Option<PathBuf>,
}

/// A scenario with overrides applied and defaults inserted.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedScenario {
    /// The resolved scenario in the scenario language. A run needs only this text and the files to which it refers.
    pub text: String,
    /// All data that determines a run, except the seed and the build: the text, and the content of every file to which
    /// the text refers.
    pub content: Vec<u8>,
    /// The names of the scenario's flows as in `flows.csv`, including reverse directions.
    pub flows: Vec<String>,
    /// The names of the main directions of flows: those from an end that sends most of the flow's data. The type is a
    /// set because each of thousands of flows is looked up.
    pub main_flows: BTreeSet<String>,
    /// The names of the measured directions of links, as in `links.csv`.
    pub links: Vec<String>,
    /// The names of the scenario's hosts and routers.
    pub hosts: Vec<String>,
    /// The subjects and metrics of the scenario's probes, as in `series.csv`.
    pub series: Vec<(String, String)>,
    /// The pairs of an event and a value that it records: `met_s`, `at_s` or a metric.
    pub events: Vec<(String, String)>,
    /// The measured interval: its start, and its end in a run of the full duration.
    pub measured_interval: (Duration, Duration),
    /// The folder of the files to which the scenario refers; `None` if the scenario is embedded.
    pub folder: Option<PathBuf>,
    /// The estimated cost of a run. A study uses it to start the longest runs first. The records do not contain it.
    pub cost: Cost,
    /// The reason why this build cannot run the scenario; `None` if it can.
    pub unsupported: Option<String>,
}

impl ResolvedScenario {
    /// What precedes the hash of a file in [`ResolvedScenario::content`].
    const FILE: &'static [u8] = b"\nfile: ";
    /// The length of a SHA-256 hash in bytes.
    const HASH_BYTES: usize = 32;

    /// Appends the SHA-256 hash of a file to the content of a resolved scenario.
    pub(crate) fn append_file_hash(content: &mut Vec<u8>, hash: &[u8]) {
        content.extend(Self::FILE);
        content.extend(hash);
    }

    /// Returns the SHA-256 hashes of the files to which the scenario refers, as they were when it was resolved, in the order
    /// of `Scenario::referenced_files`.
    pub fn file_hashes(&self) -> impl Iterator<Item = &[u8]> {
        let records =
            self.content.get(self.text.len()..).unwrap_or_default().chunks(Self::FILE.len() + Self::HASH_BYTES);
        records.map_while(|record| record.strip_prefix(Self::FILE))
    }
}

/// Returns the reason why a run fails if a file has another content than when its scenario was resolved.
pub fn changed_file_reason(path: &Path) -> String {
    format!("{} changed after the scenario was read; to use its new content, start again", path.display())
}

/// The options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Whether the auditor checks every packet, in addition to the checks that need only constant memory.
    pub audit: bool,
    /// Maximum number of bytes per packet in packet captures, 0 for all; `None` writes no captures.
    pub pcap: Option<u32>,
    /// Whether to write qlog files.
    pub qlog: bool,
    /// Whether a run in real time records every arrival, for a replay.
    pub record: bool,
    /// Whether to also reuse runs that are not reproducible, namely runs in real time.
    pub resume: bool,
    /// The destination of files that are too large for [`RunRecords::files`].
    pub attach: RunFileSink,
    /// The flag that the caller sets to end a run early. The run then returns [`RunError::Interrupted`].
    pub stop: Arc<AtomicBool>,
}

/// The destination of files that a run writes in chunks. These files are stored together with the run's records, or not
/// at all.
#[derive(Clone, Default)]
pub struct RunFileSink(Option<Arc<AppendTo>>);

type AppendTo = dyn Fn(&str, &[u8]) -> io::Result<()> + Send + Sync;

impl RunFileSink {
    /// Creates a destination from a function that appends bytes to the file with the given name.
    pub fn new(append: impl Fn(&str, &[u8]) -> io::Result<()> + Send + Sync + 'static) -> Self {
        RunFileSink(Some(Arc::new(append)))
    }

    /// Returns whether there is a destination.
    pub fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Appends bytes to a file, and creates the file if it does not exist.
    ///
    /// # Errors
    /// The error of the disk; [`io::ErrorKind::Unsupported`] if there is no destination.
    pub fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match &self.0 {
            Some(append) => append(name, bytes),
            None => Err(io::Error::new(io::ErrorKind::Unsupported, "this run has no folder for further files")),
        }
    }
}

impl fmt::Debug for RunFileSink {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Attach" } else { "Attach(nowhere)" })
    }
}

/// The records of a run.
#[derive(Clone, Debug, Default)]
pub struct RunRecords {
    /// The run's tables and further files, as name and content. They always include `flows.csv`.
    pub files: Vec<(String, Vec<u8>)>,
    /// The content of `run.json`. The key, build, seed and options are inserted when the content is stored.
    pub run: RunRecord,
    /// The CPU time of the run in seconds; `None` if unknown. `run.json` does not contain it.
    pub cpu_s: Option<f64>,
}

/// The reason why a run has no records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The run failed, with the reason as a sentence.
    Failed(String),
    /// An operation of the operating system failed, for example because of a full disk, a missing permission or too
    /// little memory.
    System(String),
    /// [`RunOptions::stop`] interrupted the run.
    Interrupted,
}

/// Resolves and runs scenarios.
pub trait Runner: Sync {
    /// Applies overrides, checks the scenario, and inserts defaults. Later overrides take precedence.
    ///
    /// # Errors
    /// All errors of the scenario, one line each, with their positions.
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String>;

    /// Runs a scenario with this seed instead of the scenario's own seed.
    ///
    /// # Errors
    /// The reason why the run has no records.
    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError>;

    /// Returns whether a repeated run has the same result. This is false for runs in real time.
    fn is_repeatable(&self) -> bool {
        true
    }

    /// Returns the override that delays the start of each flow of a scenario by a random part of a round-trip time, to
    /// detect phase effects. Returns `None` if the runner does not support this.
    fn random_starts_override(&self) -> Option<Override> {
        None
    }

    /// Returns the runner for real time; `None` if there is none.
    fn real_time_runner(&self) -> Option<&dyn Runner> {
        None
    }

    /// Returns whether other processes make the runs. The threads of a study then only wait for them and for the disk.
    fn runs_elsewhere(&self) -> bool {
        false
    }

    /// Returns the identity of the build: equal builds create equal records.
    fn build_identity(&self) -> String;
}
