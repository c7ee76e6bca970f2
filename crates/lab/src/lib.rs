//! From a description to results: builds the world, drives it, keeps what was observed, writes the run archive.
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

mod applications;
mod archive;
mod assemble;
mod capture;
mod lte;
mod outcome;
mod plugins;
mod probes;
mod processing;
mod promise;
mod qlog;
pub mod real_time;
mod settings;
mod witness;
mod world;

pub use archive::{write_figures, write_flows, write_links, write_series};
pub use capture::{Append, Capture};
pub use fullpipe_workload::FIGURE_NAMES;
pub use lte::{BearerRow, UeRow};
pub use outcome::{CompletionRow, ContentRow, FigureRow, FlowRow, LinkRow, MeasuredLink, Outcome, SeriesRow, Totals};
pub use plugins::{ControlContext, Plugins, QueueContext, WorkloadContext};
pub use qlog::Qlog;

use fullpipe_network::Fault;
use fullpipe_scenario::Scenario;
use fullpipe_units::{Duration, Instant};
use std::fmt;
use std::sync::Arc;

/// How to run, besides what the scenario says. Nothing here changes a result.
#[derive(Clone, Debug)]
pub struct Options {
    /// Audit packet by packet, not only with constant state.
    pub audit_packets: bool,
    /// Compute chains of links at once where possible.
    pub fusion: bool,
    /// Faults to put into the world on purpose (these do change results: the auditor must notice).
    pub faults: Vec<Sabotage>,
    /// Capture packets at every host.
    pub capture: Option<Capture>,
    /// Write what happens at connections and queues as qlog; in virtual time.
    pub qlog: Option<Qlog>,
}

impl Default for Options {
    fn default() -> Self {
        Options { audit_packets: false, fusion: true, faults: Vec::new(), capture: None, qlog: None }
    }
}

/// A fault put into the world on purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// A fault of the network.
    Network(Fault),
    /// Receivers acknowledge one byte more than was sent, from the n-th acknowledgement on.
    PrematureAcknowledgement {
        /// Which acknowledgement of the run begins it, from 1.
        from: u64,
    },
}

/// Why a run could not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The congestion control is unknown, or cannot be driven by the transport; or a tunnel finds no port.
    Control {
        /// The flow.
        flow: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
    /// A flow's workload makes no sense.
    Workload {
        /// The flow.
        flow: String,
        /// The rule that is broken.
        reason: String,
    },
    /// An access network cannot be built.
    Radio {
        /// The network.
        network: String,
        /// What is wrong, as a sentence.
        reason: String,
    },
    /// Packets between two hosts that an address translator parts would not pass it.
    BypassedNat {
        /// The translating router.
        router: String,
        /// One host.
        from: String,
        /// The other host.
        to: String,
    },
    /// A plug-in is meant for something that the scenario does not have.
    Unknown {
        /// What it should be: "flow" or "link".
        what: &'static str,
        /// What was asked for: a name or a pattern.
        found: String,
        /// The name that resembles it most, if one does.
        nearest: Option<String>,
    },
    /// The machine refused what real time takes.
    Machine(String),
    /// A recording of arrivals cannot be replayed.
    Recording(String),
    /// More entities than the engine can number.
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Radio { network, reason } => write!(formatter, "LTE network {network}: {reason}"),
            RunError::Control { flow, reason } | RunError::Workload { flow, reason } => {
                write!(formatter, "flow {flow:?}: {reason}")
            }
            RunError::BypassedNat { router, from, to } => {
                write!(formatter, "{router} translates addresses, but the way from {from} to {to} does not lead by it")
            }
            RunError::Unknown { what, found, nearest } => {
                write!(formatter, "no {what} {found:?} in the scenario")?;
                nearest.iter().try_for_each(|name| write!(formatter, "; did you mean {name:?}?"))
            }
            RunError::Machine(reason) => formatter.write_str(reason),
            RunError::Recording(reason) => write!(formatter, "the recording cannot be replayed: {reason}"),
            RunError::TooLarge { what, limit } => {
                write!(formatter, "too many {what}: at most {limit} can be simulated")
            }
        }
    }
}

impl std::error::Error for RunError {}

/// A world that has been built and not run yet, so that building can be kept out of a measurement.
#[derive(Debug)]
pub struct Prepared {
    world: world::World,
    network: fullpipe_network::Network<witness::Witness>,
    probes: probes::Sampler,
    scenario: Arc<Scenario>,
    recorder: Option<Box<qlog::Recorder>>,
}

/// Builds the world of a scenario.
///
/// # Errors
/// If a flow's congestion control does not exist, or the scenario is larger than can be simulated.
pub fn prepare(scenario: &Scenario, options: &Options) -> Result<Prepared, RunError> {
    prepare_shared(Arc::new(scenario.clone()), options)
}

/// The same without a copy of the description, which for 100 000 flows is worth having once only.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_shared(scenario: Arc<Scenario>, options: &Options) -> Result<Prepared, RunError> {
    assemble::assemble(scenario, options, Plugins::default())
}

/// Builds the world of a scenario with parts of the caller's own.
///
/// # Errors
/// As [`prepare`]; and if a plug-in is meant for a flow or link that is not there.
pub fn prepare_with(scenario: Arc<Scenario>, options: &Options, plugins: Plugins) -> Result<Prepared, RunError> {
    assemble::assemble(scenario, options, plugins)
}

impl Prepared {
    /// Runs it to its end.
    pub fn run(self) -> Outcome {
        self.run_unless(|| false).expect("nobody stops it")
    }

    /// Runs it to its end, or until `stop` says so, which is asked about a thousand times in a run; `None` if stopped.
    pub fn run_unless(self, stop: impl Fn() -> bool) -> Option<Outcome> {
        let Prepared { mut world, mut network, mut probes, scenario, mut recorder } = self;
        let end = Instant::ZERO.saturating_add(scenario.duration);
        let slice = (scenario.duration / 1000).max(Duration::from_nanos(1));
        let mut slice_end = Instant::ZERO;
        world.start(&mut network);
        // The hosts of a run that is logged are others, so that those of all others have nothing to ask.
        let mut run = |world: &mut world::World, network: &mut fullpipe_network::Network<_>, until| match &mut recorder
        {
            None => network.run(world, until, end),
            Some(recorder) => network.run(&mut qlog::Logged { world, recorder }, until, end),
        };
        loop {
            if stop() {
                return None;
            }
            slice_end = slice_end.saturating_add(slice).min(end);
            while let Some(sample_at) = probes.next_at().filter(|at| *at <= slice_end) {
                run(&mut world, &mut network, sample_at);
                probes.sample(sample_at, &world, &mut network);
            }
            let left = run(&mut world, &mut network, slice_end);
            if !left || slice_end == end {
                let logged = recorder.map_or(Ok(()), |recorder| recorder.finish(&mut world, &network));
                return Some(Outcome::new(scenario, world, network, probes, !left).logged(logged));
            }
        }
    }
}

/// Builds and runs.
///
/// # Errors
/// As [`prepare`].
pub fn run(scenario: &Scenario, options: &Options) -> Result<Outcome, RunError> {
    Ok(prepare(scenario, options)?.run())
}

/// Builds and runs with parts of the caller's own.
///
/// # Errors
/// As [`prepare_with`].
pub fn run_with(scenario: &Scenario, options: &Options, plugins: Plugins) -> Result<Outcome, RunError> {
    Ok(prepare_with(Arc::new(scenario.clone()), options, plugins)?.run())
}
