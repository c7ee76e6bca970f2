//! Studies as data: sweeps over a scenario, replications, published values and claims with verdicts, and an archive that
//! a killed sweep goes on from.
//!
//! [`open`] or [`load()`] reads a study, [`Study::apply`] puts the user's settings on top, [`run`] runs it into a folder
//! with a [`Laboratory`]. [`single`] makes a study of one scenario run once. `docs/studies.md` tells the language.

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
mod shelf;
pub mod study;
pub mod summary;
pub mod sweep;
mod tables;
mod words;

pub use error::StudyError;
pub use files::Files;
pub use fullpipe_archive::{ExpectationRow, SummaryRow, Verdict};
pub use fullpipe_verdict::{self as verdict, statistics};
pub use laboratory::VirtualLaboratory;
pub use load::{load, open};
pub use port::{Laboratory, ResolvedScenario, RunError, RunOptions, RunRecords, ScenarioSource};
#[cfg(all(feature = "real-time", target_os = "linux"))]
pub use real::{Laboratories, Live, RealLaboratory};
pub use replay::ReplayLaboratory;
pub use run::{Options, Outcome, run, single};
pub use settings::Settings;
pub use shelf::{Embedded, Folder, Shelf};
pub use study::Study;
pub use sweep::{FinishedRun, Progress};
