//! A simulation before its run: a scenario, overrides, and plug-ins.

use crate::builder::ScenarioBuilder;
use fullpipe_congestion::{Controller, ExternalControl};
use fullpipe_lab::{
    ConnectionContext, Options, Outcome, Plugins, QueueContext, RunError, RunningSimulation, WorkloadContext, run_with,
};
use fullpipe_network::QueueDiscipline;
use fullpipe_network::access::AccessNetworkComponent;
use fullpipe_quic::scheduler::Scheduler;
use fullpipe_record::Observer;
use fullpipe_scenario::schema::nearest_name;
use fullpipe_scenario::{Errors, Language, Override, Scenario};
use fullpipe_workload::Application;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The reason why a simulation has no outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[non_exhaustive]
    Read {
        /// The file.
        file: String,
        /// The kind of the error.
        kind: std::io::ErrorKind,
        /// The message of the operating system.
        reason: String,
    },
    /// The library has no embedded scenario with this name.
    #[non_exhaustive]
    UnknownScenario {
        /// The unknown name.
        name: String,
        /// The nearest valid name; `None` if no name is similar enough.
        nearest: Option<&'static str>,
    },
    /// The scenario or an override has errors.
    Scenario(Errors),
    /// The network or the endpoints could not be built.
    Run(RunError),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Read { file, reason, .. } => write!(formatter, "cannot read {file}: {reason}"),
            Error::UnknownScenario { name, nearest } => {
                write!(formatter, "unknown embedded scenario {name:?}")?;
                nearest.iter().try_for_each(|nearest| write!(formatter, "; did you mean {nearest:?}?"))
            }
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
            Error::Read { .. } | Error::UnknownScenario { .. } => None,
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

/// The scenario of a [`Simulation`]: the text of a scenario file, or a [`ScenarioBuilder`].
#[derive(Clone, Debug)]
pub struct ScenarioSource(Content);

#[derive(Clone, Debug)]
enum Content {
    Text { text: String, file: String },
    Built(ScenarioBuilder),
}

impl From<&str> for ScenarioSource {
    fn from(text: &str) -> Self {
        ScenarioSource::from(text.to_owned())
    }
}

impl From<String> for ScenarioSource {
    fn from(text: String) -> Self {
        ScenarioSource(Content::Text { text, file: String::from("scenario") })
    }
}

impl From<ScenarioBuilder> for ScenarioSource {
    fn from(builder: ScenarioBuilder) -> Self {
        ScenarioSource(Content::Built(builder))
    }
}

/// A scenario, overrides of its values, and the components that the calling program adds.
///
/// [`run`](Simulation::run) and [`scenario`](Simulation::scenario) check the scenario; the other methods do not.
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
/// let download = outcome.flow("download").expect("the scenario has this flow");
/// // 1 MB at 20 Mbit/s takes at least 0.4 s.
/// assert!(download.completion.expect("it completed").as_secs_f64() > 0.4);
/// assert_eq!(outcome.link("bottleneck").expect("a dumbbell has this link").counters.losses, 0);
/// # Ok::<(), fullpipe::Error>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    source: ScenarioSource,
    overrides: Vec<Override>,
    language: Language,
    options: Options,
    plugins: Plugins,
}

impl Simulation {
    /// Creates a simulation of a scenario that is given as text or by a [`ScenarioBuilder`].
    pub fn new(scenario: impl Into<ScenarioSource>) -> Self {
        Simulation {
            source: scenario.into(),
            overrides: Vec::new(),
            language: Language::default(),
            options: Options::default(),
            plugins: Plugins::new(),
        }
    }

    /// Creates a simulation of a scenario in a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = path.as_ref().display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Simulation::new(ScenarioSource(Content::Text { text, file }))),
            Err(error) => Err(Error::Read { file, kind: error.kind(), reason: error.to_string() }),
        }
    }

    /// Creates a simulation of an embedded scenario; [`embedded`](crate::embedded) lists them.
    ///
    /// # Errors
    /// If there is no embedded scenario with this name.
    pub fn embedded(name: &str) -> Result<Self, Error> {
        match crate::embedded::scenario_text(name) {
            Some(text) => {
                Ok(Simulation::new(ScenarioSource(Content::Text { text: text.to_owned(), file: name.to_owned() })))
            }
            None => Err(Error::UnknownScenario {
                name: name.to_owned(),
                nearest: nearest_name(name, crate::embedded::scenario_names()),
            }),
        }
    }

    /// Overrides a value of the scenario, as `--set` does. The path is dotted, and the value is written as in the file.
    /// Text that is not a TOML value, such as `10Mbit/s`, needs no quotes.
    #[must_use]
    pub fn set(mut self, path: &str, value: impl fmt::Display) -> Self {
        self.overrides.push(Override { path: path.to_owned(), value: value.to_string() });
        self
    }

    /// Enables the audit of every packet, in addition to the checks with constant memory per link and flow. The auditor
    /// then needs memory for every packet in the network.
    #[must_use]
    pub fn audit_packets(mut self) -> Self {
        self.options.audit_packets = true;
        self
    }

    /// Replaces the congestion control of the selected flows; see [`Plugins::control`].
    #[must_use]
    pub fn control(
        mut self,
        flows: &str,
        factory: impl Fn(&ConnectionContext<'_>) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Self {
        self.plugins = self.plugins.control(flows, factory);
        self
    }

    /// Replaces the congestion control of the selected flows by one whose window and pacing rate the program sets while
    /// the simulation runs in steps; see [`Plugins::external_control`] and [`RunningSimulation`].
    #[must_use]
    pub fn external_control(mut self, flows: &str, control: &ExternalControl) -> Self {
        self.plugins = self.plugins.external_control(flows, control);
        self
    }

    /// Replaces the stream scheduler of the QUIC model for the selected flows; see [`Plugins::scheduler`].
    #[must_use]
    pub fn scheduler(
        mut self,
        flows: &str,
        factory: impl Fn(&ConnectionContext<'_>) -> Box<dyn Scheduler> + Send + Sync + 'static,
    ) -> Self {
        self.plugins = self.plugins.scheduler(flows, factory);
        self
    }

    /// Replaces the queue discipline of the selected links; see [`Plugins::queue`].
    #[must_use]
    pub fn queue(
        mut self,
        links: &str,
        factory: impl Fn(&QueueContext<'_>) -> Box<dyn QueueDiscipline> + Send + Sync + 'static,
    ) -> Self {
        self.plugins = self.plugins.queue(links, factory);
        self
    }

    /// Makes the rate and the delay of the selected link directions adjustable during a run in steps; see
    /// [`Plugins::adjustable_links`] and [`RunningSimulation::set_link_rate`].
    #[must_use]
    pub fn adjustable_links(mut self, links: &str) -> Self {
        self.plugins = self.plugins.adjustable_links(links);
        self
    }

    /// Replaces the applications of the selected flows; see [`Plugins::workload`].
    #[must_use]
    pub fn workload(
        mut self,
        flows: &str,
        factory: impl Fn(&WorkloadContext<'_>) -> [Box<dyn Application>; 2] + Send + Sync + 'static,
    ) -> Self {
        self.plugins = self.plugins.workload(flows, factory);
        self
    }

    /// Adds an access network that the program defines. The scenario can have tables under its name.
    ///
    /// # Panics
    /// If the name of the access network is already a key of a scenario.
    #[must_use]
    pub fn access_network(mut self, component: &'static AccessNetworkComponent) -> Self {
        self.language = self.language.with_access_network(component);
        self
    }

    /// Adds an observer; see [`Plugins::observe`].
    #[must_use]
    pub fn observe(mut self, observer: impl Observer + Send + 'static) -> Self {
        self.plugins = self.plugins.observe(observer);
        self
    }

    /// Returns the scenario with all defaults filled in.
    ///
    /// # Errors
    /// All errors in the text and the overrides, with their positions.
    pub fn scenario(&self) -> Result<Scenario, Errors> {
        match &self.source.0 {
            Content::Text { text, file } => {
                self.language.load(text, file, &self.overrides).map(|loaded| loaded.scenario)
            }
            Content::Built(builder) => builder.load(&self.language, &self.overrides),
        }
    }

    /// Runs the simulation. [`Outcome::verdict`] returns the result of the auditor.
    ///
    /// # Errors
    /// If the scenario has errors, a plug-in selects a flow or link that does not exist, or the network cannot be
    /// built.
    pub fn run(self) -> Result<Outcome, Error> {
        let scenario = self.scenario()?;
        Ok(run_with(&scenario, &self.options, self.plugins)?)
    }

    /// Builds the network without running it, to run the simulation in steps.
    ///
    /// ```
    /// use fullpipe::Simulation;
    /// use fullpipe::congestion::ExternalControl;
    /// use fullpipe::units::{Duration, Rate};
    ///
    /// let control = ExternalControl::new(15_000);
    /// let simulation = Simulation::embedded("quick-start")?.set("duration", "5s");
    /// let mut run = simulation.external_control("download", &control).adjustable_links("bottleneck").start()?;
    /// let (download, bottleneck) = (run.flow("download")?, run.link("bottleneck")?);
    /// while run.run_until(run.now() + Duration::from_millis(10))? {
    ///     let queue_bytes = run.link_snapshot(bottleneck).queue_bytes;
    ///     let window_bytes = control.window_bytes();
    ///     control.set_window(if queue_bytes < 10_000 { window_bytes + 100 } else { window_bytes - window_bytes / 8 });
    ///     run.set_link_rate(bottleneck, Rate::from_bits_per_second(5_000_000))?;
    /// }
    /// let received_bytes = run.flow_snapshot(download).received_bytes;
    /// // 5 s at 5 Mbit/s, less headers and the first round-trip times.
    /// assert!((2_000_000..3_125_000).contains(&received_bytes), "{received_bytes}");
    /// assert!(run.finish().verdict().passed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Simulation::run`]. Also an error if the scenario has events that change a link or an application,
    /// because such events repeat the run.
    pub fn start(self) -> Result<RunningSimulation, Error> {
        let scenario = self.scenario()?;
        Ok(fullpipe_lab::start(Arc::new(scenario), &self.options, self.plugins)?)
    }
}
