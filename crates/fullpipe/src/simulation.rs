//! A scenario, overrides and plug-ins gathered until they are run.

use fullpipe_congestion::Controller;
use fullpipe_lab::{ControlContext, Options, Outcome, Plugins, QueueContext, RunError, WorkloadContext, run_with};
use fullpipe_network::QueueDiscipline;
use fullpipe_record::Observer;
use fullpipe_scenario::{Errors, Override, Scenario};
use fullpipe_workload::Application;
use std::fmt;
use std::path::Path;

/// Why a simulation gave no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The scenario or an override is wrong: what and where.
    Scenario(Errors),
    /// The world could not be built.
    Run(RunError),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Scenario(errors) => errors.fmt(formatter),
            Error::Run(error) => error.fmt(formatter),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Scenario(errors) => Some(errors),
            Error::Run(error) => Some(error),
        }
    }
}

impl From<Errors> for Error {
    fn from(errors: Errors) -> Self {
        Error::Scenario(errors)
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        Error::Run(error)
    }
}

/// A run to be: a scenario in the scenario language, what is changed of it, and what is plugged in.
///
/// Nothing is read or checked before [`run`](Simulation::run) or [`scenario`](Simulation::scenario).
///
/// ```
/// use fullpipe::Simulation;
///
/// let outcome = Simulation::new(r#"
///     duration = "10s"
///
///     [topology]
///     kind = "dumbbell"
///     access = { rate = "100Mbit/s", delay = "1ms" }
///     bottleneck = { rate = "10Mbit/s", delay = "18ms", queue = "50kB" }
///
///     [[flow]]
///     name = "download"
///     from = "left1"
///     to = "right1"
///     size = "1MB"
/// "#)
/// .set("topology.bottleneck.rate", "20Mbit/s")
/// .run()?;
///
/// let download = outcome.flow("download").expect("the scenario has it");
/// // 1 MB at 20 Mbit/s takes at least 0.4 s.
/// assert!(download.completion.expect("it completed").as_secs_f64() > 0.4);
/// assert_eq!(outcome.link("bottleneck").expect("so is this").counters.losses, 0);
/// # Ok::<(), fullpipe::Error>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    text: String,
    file: String,
    overrides: Vec<Override>,
    options: Options,
    plugins: Plugins,
}

impl Simulation {
    /// Of a scenario given as text.
    pub fn new(text: impl Into<String>) -> Self {
        Simulation {
            text: text.into(),
            file: String::from("scenario"),
            overrides: Vec::new(),
            options: Options::default(),
            plugins: Plugins::new(),
        }
    }

    /// Of a scenario in a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(path: impl AsRef<Path>) -> std::io::Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path)?;
        Ok(Simulation { file: path.display().to_string(), ..Simulation::new(text) })
    }

    /// Of a scenario that comes inside the library, see [`embedded`](crate::embedded); `None` if there is none of that
    /// name.
    pub fn embedded(name: &str) -> Option<Self> {
        Some(Simulation { file: name.to_owned(), ..Simulation::new(crate::embedded::scenario(name)?) })
    }

    /// Changes a value of the scenario, as `--set` does: the path is dotted, the value is written as in the file (a bare
    /// word or a number with its unit needs no quotes).
    #[must_use]
    pub fn set(mut self, path: &str, value: impl fmt::Display) -> Self {
        self.overrides.push(Override { path: path.to_owned(), value: value.to_string() });
        self
    }

    /// Audits packet by packet, not only with constant state.
    #[must_use]
    pub fn audit_packets(mut self) -> Self {
        self.options.audit_packets = true;
        self
    }

    /// Plugs in a congestion control, see [`Plugins::control`].
    #[must_use]
    pub fn control(
        mut self,
        flows: &str,
        factory: impl Fn(&ControlContext<'_>) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Self {
        self.plugins = self.plugins.control(flows, factory);
        self
    }

    /// Plugs in a queue discipline, see [`Plugins::queue`].
    #[must_use]
    pub fn queue(
        mut self,
        links: &str,
        factory: impl Fn(&QueueContext<'_>) -> Box<dyn QueueDiscipline> + Send + Sync + 'static,
    ) -> Self {
        self.plugins = self.plugins.queue(links, factory);
        self
    }

    /// Plugs in the applications of a flow, see [`Plugins::workload`].
    #[must_use]
    pub fn workload(
        mut self,
        flows: &str,
        factory: impl Fn(&WorkloadContext<'_>) -> [Box<dyn Application>; 2] + Send + Sync + 'static,
    ) -> Self {
        self.plugins = self.plugins.workload(flows, factory);
        self
    }

    /// Plugs in an observer, see [`Plugins::observe`].
    #[must_use]
    pub fn observe(mut self, observer: impl Observer + Send + 'static) -> Self {
        self.plugins = self.plugins.observe(observer);
        self
    }

    /// The scenario with every default filled in.
    ///
    /// # Errors
    /// Every mistake in the text or the overrides, with its place.
    pub fn scenario(&self) -> Result<Scenario, Errors> {
        fullpipe_scenario::load(&self.text, &self.file, &self.overrides).map(|loaded| loaded.scenario)
    }

    /// Runs it. Whether the auditor found it right is in [`Outcome::verdict`].
    ///
    /// # Errors
    /// If the scenario is wrong, a plug-in is meant for a flow or link that is not there, or the world cannot be built.
    pub fn run(self) -> Result<Outcome, Error> {
        let scenario = self.scenario()?;
        Ok(run_with(&scenario, &self.options, self.plugins)?)
    }
}
