//! Runs scenarios: builds the world, executes it, collects observations, and creates the tables of results.
//!
//! ```
//! use fullpipe_lab::{Options, run};
//! let text = r#"
//!     duration = "2s"
//!     [topology]
//!     kind = "chain"
//!     link = [{ rate = "10Mbit/s", delay = "5ms", queue = "25packets" }]
//!     [[flow]]
//!     name = "bulk"
//!     from = "source"
//!     to = "sink"
//!     workload = "bulk"
//!     size = "100kB"
//! "#;
//! let loaded = fullpipe_scenario::load(text, "example.toml", &[]).expect("a good scenario");
//! let outcome = run(&loaded.scenario, &Options::default()).expect("a good run");
//! assert!(outcome.verdict().passed());
//! // 100 000 bytes at 10 Mbit/s take at least 80 ms.
//! let flow = outcome.flow_rows().next().expect("the flow");
//! assert!(flow.completion.expect("completed").as_secs_f64() > 0.08);
//! ```

mod archive;
mod assemble;
mod capture;
pub mod cost;
mod error;
mod events;
mod figures;
mod gathered;
mod halves;
mod options;
mod outcome;
mod plugins;
mod prepared;
mod probes;
mod processing;
mod promise;
mod qlog;
mod readable;
pub mod real_time;
mod run;
mod series_file;
mod stack;
mod starts;
mod stepping;
mod warnings;
mod witness;
mod world;

pub use error::RunError;
pub use events::EventOutcome;
pub use figures::{metric_names, metrics};
pub use options::{CaptureOptions, FileAppender, InjectedFault, Options, QlogOptions, SampleOutput};
pub use outcome::{
    CompletionRow, ContentRow, DelayPercentiles, FigureRow, FlowRow, LinkRow, MeasuredLink, Outcome, RunTotals,
    UnknownSeries,
};
pub use plugins::{ConnectionContext, Plugins, QueueContext, WorkloadContext};
pub use prepared::PreparedRun;
pub use probes::SeriesRow;
pub use run::{prepare, prepare_shared, prepare_with, run, run_with, start, unsupported_reason};
pub use stepping::{ConnectionSnapshot, FlowSnapshot, LinkSnapshot, RunningSimulation, StepError};
