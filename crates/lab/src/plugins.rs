//! Components that a program adds to a scenario: congestion controls, stream schedulers, queue disciplines, workloads,
//! and observers.
//!
//! A factory is called while the world is built, or when a connection opens. Its argument is the context of the
//! component. The factory should draw random numbers only from the random streams of this context, whose names depend
//! on the component's position in the scenario. A run with plug-ins is then as deterministic as a run without them. The
//! auditor checks both in the same way.

use fullpipe_congestion::source::ControlSource;
use fullpipe_congestion::{Controller, ExternalControl};
use fullpipe_network::{Limit, LinkProfile, QueueDiscipline};
use fullpipe_quic::scheduler::Scheduler;
use fullpipe_record::Observer;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Flow, Link, QuicStack, Transport};
use fullpipe_scenario::matches;
use fullpipe_scenario::schema::nearest_name;
use fullpipe_units::{LinkId, RandomStream};
use fullpipe_workload::Application;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::error::RunError;

/// The context in which a congestion controller or a stream scheduler is created: one end of one connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConnectionContext<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The flow, with TCP or QUIC as its transport.
    pub flow: &'a Flow,
    /// Number of the connection within the flow, from 0, in the order of opening.
    pub connection: u32,
    /// Whether this end opens the connection.
    pub initiator: bool,
}

impl ConnectionContext<'_> {
    /// Returns a random stream of this end of the connection. `purpose` is part of its name.
    pub fn random_stream(&self, purpose: &str) -> RandomStream {
        let end = if self.initiator { "initiator" } else { "acceptor" };
        RandomStream::new(self.scenario.seed, &self.flow.name, &format!("{purpose} {} {end}", self.connection))
    }
}

/// The context in which a queue discipline is created: one direction of a link.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct QueueContext<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The direction of the link, with its rate, delay and MTU.
    pub link: &'a Link,
    /// The limit of the drop-tail queue that the plug-in replaces. If the scenario sets a discipline for the link, this
    /// is the limit of the device queue. The device queue remains, and receives its packets from the plug-in.
    pub limit: Limit,
}

impl QueueContext<'_> {
    /// Returns a random stream of this direction of the link. `purpose` is part of its name.
    pub fn random_stream(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.scenario.seed, &self.link.name, purpose)
    }
}

/// The context in which a pair of applications is created: both ends of a flow.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct WorkloadContext<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The flow.
    pub flow: &'a Flow,
}

impl WorkloadContext<'_> {
    /// Returns a random stream of the flow. Each call with the same purpose returns the same stream from its start. If
    /// both ends must draw the same numbers, they use the same purpose; otherwise they use different ones.
    pub fn random_stream(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.scenario.seed, &self.flow.name, purpose)
    }

    /// Returns whether the flow uses a byte stream (TCP, QUIC), not datagrams.
    pub fn is_over_stream(&self) -> bool {
        self.flow.transport.is_stream()
    }
}

/// A factory of components for one end of a connection.
type EndFactory<T> = dyn Fn(&ConnectionContext<'_>) -> Box<T> + Send + Sync;
type QueueFactory = dyn Fn(&QueueContext<'_>) -> Box<dyn QueueDiscipline> + Send + Sync;
type WorkloadFactory = dyn Fn(&WorkloadContext<'_>) -> [Box<dyn Application>; 2] + Send + Sync;

/// An observer that can be found by its type.
pub(crate) trait AnyObserver: Observer + Any + Send {}

impl<T: Observer + Any + Send> AnyObserver for T {}

/// The components that a program adds to a scenario.
///
/// Flows and links are selected by name or by a pattern (`*` matches any characters, `?` one). The name of a `[[flow]]`
/// selects all flows of its group. The last matching selection takes precedence.
///
/// ```
/// use fullpipe_congestion::cubic::Cubic;
/// use fullpipe_lab::Plugins;
/// let plugins = Plugins::new().control("bulk", |_| Box::new(Cubic::default()));
/// ```
#[derive(Default)]
pub struct Plugins {
    controls: Vec<(String, Arc<EndFactory<dyn Controller>>)>,
    schedulers: Vec<(String, Arc<EndFactory<dyn Scheduler>>)>,
    queues: Vec<(String, Arc<QueueFactory>)>,
    workloads: Vec<(String, Arc<WorkloadFactory>)>,
    /// The controls whose window the program sets; `controls` contains their factories.
    external: Vec<(String, ExternalControl)>,
    /// The links whose rate and delay the program changes during the run.
    adjustable: Vec<String>,
    pub(crate) observers: Vec<Box<dyn AnyObserver>>,
}

impl fmt::Debug for Plugins {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn names<F: ?Sized>(factories: &[(String, Arc<F>)]) -> Vec<&str> {
            factories.iter().map(|(name, _)| name.as_str()).collect()
        }
        formatter
            .debug_struct("Plugins")
            .field("controls", &names(&self.controls))
            .field("schedulers", &names(&self.schedulers))
            .field("queues", &names(&self.queues))
            .field("workloads", &names(&self.workloads))
            .field("external", &self.external)
            .field("adjustable", &self.adjustable)
            .field("observers", &self.observers.len())
            .finish()
    }
}

impl Plugins {
    /// Creates a set without components.
    pub fn new() -> Self {
        Plugins::default()
    }

    /// Returns whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        let Plugins { controls, schedulers, queues, workloads, external: _, adjustable, observers } = self;
        controls.is_empty()
            && schedulers.is_empty()
            && queues.is_empty()
            && workloads.is_empty()
            && adjustable.is_empty()
            && observers.is_empty()
    }

    /// Sets the congestion control of both ends of every connection of these flows, instead of the scenario's
    /// algorithm. The factory is called for each end of each connection. It is called once more per flow before the
    /// run, to get the algorithm's name and requirements.
    #[must_use]
    pub fn control(
        mut self,
        flows: &str,
        factory: impl Fn(&ConnectionContext<'_>) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Self {
        self.controls.push((flows.to_owned(), Arc::new(factory)));
        self
    }

    /// Sets a congestion control whose window and pacing rate the program sets, at both ends of every connection of these
    /// flows. All these connections have the same window.
    #[must_use]
    pub fn external_control(mut self, flows: &str, control: &ExternalControl) -> Self {
        self.external.push((flows.to_owned(), control.clone()));
        let control = control.clone();
        self.control(flows, move |_| control.controller())
    }

    /// Sets the stream scheduler of both ends of every connection of these flows, instead of the scenario's scheduler.
    /// The flows must use the QUIC model. The factory is called for each end of each connection.
    #[must_use]
    pub fn scheduler(
        mut self,
        flows: &str,
        factory: impl Fn(&ConnectionContext<'_>) -> Box<dyn Scheduler> + Send + Sync + 'static,
    ) -> Self {
        self.schedulers.push((flows.to_owned(), Arc::new(factory)));
        self
    }

    /// Sets the queue discipline of these link directions (`bottleneck`, `bottleneck.reverse`), instead of the
    /// scenario's drop-tail queue or discipline. The factory is called once per direction. The auditor checks that the
    /// plug-in conserves packets, but does not check the order of packets or the limit.
    #[must_use]
    pub fn queue(
        mut self,
        links: &str,
        factory: impl Fn(&QueueContext<'_>) -> Box<dyn QueueDiscipline> + Send + Sync + 'static,
    ) -> Self {
        self.queues.push((links.to_owned(), Arc::new(factory)));
        self
    }

    /// Makes the rate and the delay of these link directions (`bottleneck`, `bottleneck.reverse`) adjustable during a run
    /// in steps. The links must have neither a schedule nor a trace. The counters of an adjustable link include a frame
    /// from the end of its transmission on.
    #[must_use]
    pub fn adjustable_links(mut self, links: &str) -> Self {
        self.adjustable.push(links.to_owned());
        self
    }

    /// Sets the applications of these flows, initiator and acceptor, instead of the scenario's workload. The factory is
    /// called once per flow. The scenario still determines whether the amount of data is limited, which affects how the
    /// flow's goodput is computed.
    #[must_use]
    pub fn workload(
        mut self,
        flows: &str,
        factory: impl Fn(&WorkloadContext<'_>) -> [Box<dyn Application>; 2] + Send + Sync + 'static,
    ) -> Self {
        self.workloads.push((flows.to_owned(), Arc::new(factory)));
        self
    }

    /// Adds an observer of the whole run. An observer cannot change the run.
    /// [`Outcome::observers`](crate::Outcome::observers) returns all added observers of a type.
    #[must_use]
    pub fn observe(mut self, observer: impl Observer + Send + 'static) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Returns an error if a name or pattern selects nothing.
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), RunError> {
        let flows = || scenario.flows.iter();
        let names: Vec<&str> = flows().map(|flow| flow.name.as_str()).collect();
        for (chosen, _) in &self.workloads {
            known("flow", chosen, &names, chooses_flow)?;
        }
        for (chosen, _) in &self.controls {
            known("flow", chosen, &names, chooses_flow)?;
            let mut chosen_flows = flows().filter(|flow| chooses_flow(chosen, &flow.name)).peekable();
            let is_tunnel = chosen_flows.peek().is_some_and(|flow| matches!(flow.transport, Transport::Masque(_)));
            if !chosen_flows.any(|flow| flow.transport.is_stream()) {
                let reason = match is_tunnel {
                    true => "plug-ins cannot replace the congestion control of a tunnel; use masque.congestion",
                    false => "it runs over UDP, which has no congestion control to replace",
                };
                return Err(RunError::CongestionControl { flow: chosen.clone(), reason: reason.into() });
            }
        }
        for (chosen, _) in &self.schedulers {
            known("flow", chosen, &names, chooses_flow)?;
            let is_modeled =
                |flow: &Flow| matches!(&flow.transport, Transport::Quic(quic) if quic.stack == QuicStack::Model);
            if !flows().any(|flow| chooses_flow(chosen, &flow.name) && is_modeled(flow)) {
                let reason = "only flows of the QUIC model have a stream scheduler; expected protocol = \"quic\" and quic.stack = \"model\"";
                return Err(RunError::Scheduler { flow: chosen.clone(), reason: reason.into() });
            }
        }
        let names: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
        let chosen = self.queues.iter().map(|(chosen, _)| chosen).chain(&self.adjustable);
        chosen.into_iter().try_for_each(|chosen| known("link", chosen, &names, matches))?;
        let is_variable = |link: &&Link| !matches!(link.course, LinkProfile::Constant);
        match self.adjustable_ids(scenario).map(|link| &scenario.links[link.index()]).find(is_variable) {
            Some(link) => Err(RunError::AdjustableLink { link: link.name.clone() }),
            None => Ok(()),
        }
    }

    /// Returns the plugged-in congestion control of a flow, if any.
    pub(crate) fn control_of(&self, scenario: &Arc<Scenario>, flow: usize) -> Option<ControlFactory> {
        Factory::find(&self.controls, scenario, flow)
    }

    /// Returns the controls whose window the program sets, each with the numbers of its flows.
    pub(crate) fn external_controls(&self, scenario: &Scenario) -> Vec<(ExternalControl, Vec<usize>)> {
        let flows_of = |chosen: &str| {
            let flows = scenario.flows.iter().enumerate();
            flows.filter(|(_, flow)| chooses_flow(chosen, &flow.name)).map(|(index, _)| index).collect()
        };
        self.external.iter().map(|(chosen, control)| (control.clone(), flows_of(chosen))).collect()
    }

    /// Returns the plugged-in stream scheduler of a flow, if any.
    pub(crate) fn scheduler_of(&self, scenario: &Arc<Scenario>, flow: usize) -> Option<SchedulerFactory> {
        Factory::find(&self.schedulers, scenario, flow)
    }

    /// Returns the plugged-in queue discipline of a link, if any.
    pub(crate) fn queue_of(&self, scenario: &Scenario, link: &Link, limit: Limit) -> Option<Box<dyn QueueDiscipline>> {
        let (_, factory) = self.queues.iter().rev().find(|(chosen, _)| matches(chosen, &link.name))?;
        Some(factory(&QueueContext { scenario, link, limit }))
    }

    /// Returns the links with a plugged-in discipline.
    pub(crate) fn queued_links(&self, scenario: &Scenario) -> impl Iterator<Item = LinkId> {
        let chosen = |name: &str| self.queues.iter().any(|(pattern, _)| matches(pattern, name));
        let links = scenario.links.iter().enumerate();
        links.filter(move |(_, link)| chosen(&link.name)).map(|(index, _)| LinkId(index as u32))
    }

    /// Returns the links whose rate and delay the program changes during the run.
    pub(crate) fn adjustable_ids(&self, scenario: &Scenario) -> impl Iterator<Item = LinkId> {
        let chosen = |name: &str| self.adjustable.iter().any(|pattern| matches(pattern, name));
        let links = scenario.links.iter().enumerate();
        links.filter(move |(_, link)| chosen(&link.name)).map(|(index, _)| LinkId(index as u32))
    }

    /// Returns the plugged-in applications of a flow, if any.
    pub(crate) fn workload_of(&self, scenario: &Scenario, flow: &Flow) -> Option<[Box<dyn Application>; 2]> {
        let (_, factory) = self.workloads.iter().rev().find(|(chosen, _)| chooses_flow(chosen, &flow.name))?;
        Some(factory(&WorkloadContext { scenario, flow }))
    }
}

/// Creates the plugged-in components of a flow's ends.
pub(crate) struct Factory<T: ?Sized> {
    factory: Arc<EndFactory<T>>,
    scenario: Arc<Scenario>,
    flow: usize,
}

pub(crate) type ControlFactory = Factory<dyn Controller>;
pub(crate) type SchedulerFactory = Factory<dyn Scheduler>;

impl<T: ?Sized> Clone for Factory<T> {
    fn clone(&self) -> Self {
        Factory { factory: self.factory.clone(), scenario: self.scenario.clone(), flow: self.flow }
    }
}

impl<T: ?Sized> fmt::Debug for Factory<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Maker").field("flow", &self.flow).finish_non_exhaustive()
    }
}

impl<T: ?Sized> Factory<T> {
    /// Returns the last factory that selects the flow, if any.
    fn find(factories: &[(String, Arc<EndFactory<T>>)], scenario: &Arc<Scenario>, flow: usize) -> Option<Self> {
        let name = &scenario.flows[flow].name;
        let (_, factory) = factories.iter().rev().find(|(chosen, _)| chooses_flow(chosen, name))?;
        Some(Factory { factory: factory.clone(), scenario: scenario.clone(), flow })
    }

    pub(crate) fn make(&self, connection: u32, initiator: bool) -> Box<T> {
        let scenario = &*self.scenario;
        (self.factory)(&ConnectionContext { scenario, flow: &scenario.flows[self.flow], connection, initiator })
    }
}

impl ControlFactory {
    /// Returns the congestion controllers of the flow's connections, or the reason why the transport rejects them.
    pub(crate) fn source(
        self,
        refusal: impl FnOnce(&dyn Controller) -> Option<String>,
    ) -> Result<ControlSource, String> {
        ControlSource::program(Arc::new(move |end| self.make(end.connection, end.initiator)), refusal)
    }
}

/// Returns the name of the `[[flow]]` from which a flow was created.
fn group(flow: &str) -> &str {
    flow.split_once('.').map_or(flow, |(group, _)| group)
}

/// Returns whether a name or pattern selects a flow, by the flow's name or that of its group.
fn chooses_flow(chosen: &str, flow: &str) -> bool {
    matches(chosen, flow) || matches(chosen, group(flow))
}

/// Returns an error if a name or pattern selects nothing.
fn known(
    what: &'static str,
    chosen: &str,
    names: &[&str],
    chooses: impl Fn(&str, &str) -> bool,
) -> Result<(), RunError> {
    if names.iter().any(|name| chooses(chosen, name)) {
        return Ok(());
    }
    let candidates = names.iter().copied().chain(names.iter().map(|name| group(name)).filter(|_| what == "flow"));
    let nearest = nearest_name(chosen, candidates).map(str::to_owned);
    Err(RunError::UnknownPluginTarget { what, found: chosen.to_owned(), nearest })
}
