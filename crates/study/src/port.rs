//! What a study needs of a laboratory, and nothing more: make sense of a scenario, run it, say which build it is.
//!
//! `laboratory.rs` implements this over the real one; tests bring their own.

use fullpipe_archive::RunRecord;
use fullpipe_lab::cost::Cost;
use fullpipe_scenario::schema::Override;
use fullpipe_units::Duration;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The text of a scenario and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioSource {
    /// What errors call it: its path, or its name if it is embedded.
    pub name: String,
    /// What the study calls its file.
    pub origin: String,
    /// The text.
    pub text: String,
    /// Where the files that it names are; `None` if it is embedded.
    pub folder: Option<PathBuf>,
}

/// A scenario with overrides applied and defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedScenario {
    /// The scenario as resolved, in its own language; running it needs nothing else.
    pub text: String,
    /// Everything that decides a run except seed and build: the text and the content of every file that it names.
    pub content: Vec<u8>,
    /// Names of its flows as in `flows.csv`, reverse directions included.
    pub flows: Vec<String>,
    /// Those of main directions: looked up for each flow, of which there may be ten thousand.
    pub main_flows: BTreeSet<String>,
    /// Names of the directions of links that it measures, as in `links.csv`.
    pub links: Vec<String>,
    /// Names of its hosts and routers.
    pub hosts: Vec<String>,
    /// What its probes sample: subject and metric, as in `series.csv`.
    pub series: Vec<(String, String)>,
    /// The part of the run that rates, means and ratios are of: its start, and its end if the run lasts for the whole duration.
    pub measured_interval: (Duration, Duration),
    /// Where the files that it names are.
    pub folder: Option<PathBuf>,
    /// What a run of it costs, estimated: a study begins with its longest runs. No part of the records.
    pub cost: Cost,
    /// Why this build cannot run it, if it cannot.
    pub unsupported: Option<String>,
}

/// How to run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Check packet by packet.
    pub audit: bool,
    /// Write packets: how many bytes of each at most, 0 for all.
    pub pcap: Option<u32>,
    /// Write qlog.
    pub qlog: bool,
    /// In real time: keep every arrival, for replay.
    pub record: bool,
    /// Reuse also what would not be the same if it were made again: real-time runs.
    pub resume: bool,
    /// Where files go that are too large for [`RunRecords::files`].
    pub attach: Attach,
    /// Set from outside to end a run early; the run then returns [`RunError::Interrupted`].
    pub stop: Arc<AtomicBool>,
}

/// Takes further files of a run, piece by piece: appends bytes to the file of a name. They appear together with the
/// run's records, or not at all.
#[derive(Clone, Default)]
pub struct Attach(Option<Arc<AppendTo>>);

type AppendTo = dyn Fn(&str, &[u8]) -> io::Result<()> + Send + Sync;

impl Attach {
    /// A place for files.
    pub fn new(append: impl Fn(&str, &[u8]) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Attach(Some(Arc::new(append)))
    }

    /// Whether there is a place.
    pub fn has_place(&self) -> bool {
        self.0.is_some()
    }

    /// Appends bytes to a file, which is created if there is none.
    ///
    /// # Errors
    /// What the disk refused; [`io::ErrorKind::Unsupported`] if there is no place.
    pub fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match &self.0 {
            Some(append) => append(name, bytes),
            None => Err(io::Error::new(io::ErrorKind::Unsupported, "there is no place for further files")),
        }
    }
}

impl fmt::Debug for Attach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Attach" } else { "Attach(nowhere)" })
    }
}

/// What a run leaves behind.
#[derive(Clone, Debug, Default)]
pub struct RunRecords {
    /// The run's tables and further files: name and content. `flows.csv` is always among them.
    pub files: Vec<(String, Vec<u8>)>,
    /// What `run.json` says; key, build, seed and options are filled in when it is stored.
    pub run: RunRecord,
    /// CPU time of the run, if it is known; no part of the records.
    pub cpu_s: Option<f64>,
}

/// Why there are no records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The run failed.
    Failed(String),
    /// The machine refused something (memory, disk, permission).
    Machine(String),
    /// It was told to stop.
    Interrupted,
}

/// Runs scenarios.
pub trait Laboratory: Sync {
    /// Applies overrides, later ones over earlier ones, checks, and fills in defaults.
    ///
    /// # Errors
    /// One line for each mistake, with its place.
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String>;

    /// Runs a scenario with a seed, which replaces its own.
    ///
    /// # Errors
    /// If there is nothing to record.
    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError>;

    /// Whether a run made before is as good as one made now: what real time brings is never the same twice.
    fn repeats(&self) -> bool {
        true
    }

    /// What makes each flow of a scenario start later by a random part of a round trip, if the laboratory can do that: shows
    /// phase effects.
    fn random_starts(&self) -> Option<Override> {
        None
    }

    /// Who runs what the wall clock drives, if somebody does.
    fn real(&self) -> Option<&dyn Laboratory> {
        None
    }

    /// Identity of the build: equal builds give equal records.
    fn build(&self) -> String;
}
