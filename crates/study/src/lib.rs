//! Studies as data: sweeps over scenarios, replications, published values and claims with verdicts, and an archive from
//! which an interrupted sweep continues.
//!
//! [`load_file`] or [`load()`] loads a study, [`Study::apply`] applies the user's settings, and [`run`] executes the
//! study with a [`Runner`] and stores the records in a folder. [`single_run_study`] creates a study with one run of one
//! scenario. `docs/studies.md` describes the language.

mod archive;
mod bound;
mod check;
pub mod cost;
pub mod error;
pub mod evaluate;
pub mod expect;
mod experience;
pub mod expression;
pub mod files;
mod flow_values;
mod laboratory;
mod lateness;
mod level;
pub mod load;
mod matrix;
pub mod plan;
pub mod port;
pub mod published;
#[cfg(all(feature = "real-time", target_os = "linux"))]
mod real;
mod replay;
mod replications;
pub mod resolved;
mod run;
pub mod settings;
pub mod shard;
mod shelf;
mod single_metrics;
pub mod study;
pub mod summary;
pub mod sweep;
mod tables;
mod words;

pub use error::StudyError;
pub use files::FileSystem;
pub use fullpipe_archive::{ExpectationRow, SummaryRow, Verdict};
pub use fullpipe_verdict::{self as verdict, statistics};
pub use laboratory::{SimulatedRun, VirtualTimeRunner};
pub use load::{load, load_file};
pub use port::{
    ResolvedScenario, RunError, RunFileSink, RunOptions, RunRecords, Runner, ScenarioSource, changed_file_reason,
};
#[cfg(all(feature = "real-time", target_os = "linux"))]
pub use real::{LatenessObserver, RealTimeRunner, RunnerPair};
pub use replay::ReplayRunner;
pub use run::{ScenarioStudy, StudyOptions, StudyOutcome, run, scenario_study, single_run_study};
pub use settings::UserSettings;
pub use shard::{Shard, merge, run_shard};
pub use shelf::{EmbeddedStudy, StudyFiles, StudyFolder};
pub use study::Study;
pub use sweep::{FinishedRun, StudyObserver};
