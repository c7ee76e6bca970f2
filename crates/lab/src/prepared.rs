//! A world that is ready to run, and its run in virtual time.

use crate::events::{EventWatcher, new_change};
use crate::outcome::Outcome;
use crate::probes::Sampler;
use crate::qlog::{LoggingWorld, QlogRecorder};
use crate::warnings;
use crate::witness::RunObserver;
use crate::world::World;
use fullpipe_archive::Warning;
use fullpipe_network::Network;
use fullpipe_scenario::Scenario;
use fullpipe_units::{Duration, Instant};
use std::fmt;
use std::sync::Arc;

/// A simulation that has been built but has not run. A program can thus measure the time of the run without the time to
/// build the simulation.
#[derive(Debug)]
pub struct PreparedRun {
    pub(crate) world: World,
    pub(crate) network: Network<RunObserver>,
    pub(crate) probes: Sampler,
    pub(crate) events: EventWatcher,
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) recorder: Option<Box<QlogRecorder>>,
    /// Builds further passes, if the scenario has changes whose times are not known yet. The world is then the first
    /// pass, without these changes.
    pub(crate) passes: Option<PassBuilder>,
}

/// Builds a pass of a scenario with changes at these times, with or without output during the run.
pub(crate) struct PassBuilder(pub(crate) Box<BuildPass>);

type BuildPass = dyn Fn(&[Option<Duration>], bool) -> PreparedRun + Send;

impl fmt::Debug for PassBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PassBuilder")
    }
}

impl PreparedRun {
    /// Returns the conditions, known before the run, that make the results suspicious.
    pub fn warnings(&self) -> Vec<Warning> {
        warnings::before_run(&self.scenario, &self.network)
    }

    /// Runs the scenario to its end.
    pub fn run(self) -> Outcome {
        self.run_until(|| false).expect("the run cannot be stopped")
    }

    /// Runs the scenario to its end or until `stop` returns true. `stop` is called about a thousand times per run.
    /// Returns `None` if the run was stopped.
    pub fn run_until(mut self, stop: impl Fn() -> bool) -> Option<Outcome> {
        let Some(passes) = self.passes.take() else { return self.run_pass(&stop, &[]).outcome() };
        let mut times = vec![None; self.scenario.events.len()];
        let mut pass = self;
        loop {
            match pass.run_pass(&stop, &times) {
                PassEnd::Stopped => return None,
                PassEnd::Outcome(_) => break,
                PassEnd::NewChange(event, at) => times[event] = Some(at),
            }
            pass = (passes.0)(&times, false);
        }
        (passes.0)(&times, true).run_pass(&stop, &times).outcome()
    }

    /// Runs to the end, or until the time of a change becomes known that is not among the known times.
    fn run_pass(self, stop: &impl Fn() -> bool, known: &[Option<Duration>]) -> PassEnd {
        let mut run = ActiveRun::begin(self);
        while !run.is_over() {
            if stop() {
                return PassEnd::Stopped;
            }
            if let Some((event, at)) = run.advance(run.slice_end, known) {
                return PassEnd::NewChange(event, at);
            }
        }
        PassEnd::Outcome(Box::new(run.into_outcome(known)))
    }
}

/// A run in progress.
///
/// The run is divided into a thousand slices. At the end of each slice it is checked whether the run is over, so that the
/// records of a run do not depend on the times up to which [`ActiveRun::advance`] is called.
#[derive(Debug)]
pub(crate) struct ActiveRun {
    pub(crate) world: World,
    pub(crate) network: Network<RunObserver>,
    pub(crate) probes: Sampler,
    events: EventWatcher,
    pub(crate) scenario: Arc<Scenario>,
    recorder: Option<Box<QlogRecorder>>,
    slice: Duration,
    /// End of the current slice.
    pub(crate) slice_end: Instant,
    /// The time up to which the conditions of the scenario's events were checked.
    checked: Instant,
    /// Whether events of the simulation are left.
    left: bool,
    is_over: bool,
}

impl ActiveRun {
    pub(crate) fn begin(prepared: PreparedRun) -> ActiveRun {
        let PreparedRun { mut world, mut network, probes, events, scenario, recorder, .. } = prepared;
        world.start(&mut network);
        let slice = (scenario.duration / 1000).max(Duration::from_nanos(1));
        let slice_end = Instant::ZERO.saturating_add(slice).min(Instant::ZERO.saturating_add(scenario.duration));
        ActiveRun {
            world,
            network,
            probes,
            events,
            scenario,
            recorder,
            slice,
            slice_end,
            checked: Instant::ZERO,
            left: true,
            is_over: false,
        }
    }

    /// Returns whether the run is over: it has reached its duration, or no event is left.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the end of the run.
    pub(crate) fn end(&self) -> Instant {
        Instant::ZERO.saturating_add(self.scenario.duration)
    }

    /// Processes all events up to `to`, which must not be after the end of the current slice. Stops earlier and returns
    /// the number and the time of a change whose time is not among the known times.
    pub(crate) fn advance(&mut self, to: Instant, known: &[Option<Duration>]) -> Option<(usize, Duration)> {
        debug_assert!(to <= self.slice_end, "a run advances by at most one slice");
        let end = self.end();
        let ActiveRun { world, network, probes, events, scenario, recorder, checked, .. } = self;
        // A run with a log uses a different host type, so that runs without a log do not need a check.
        let run = |world: &mut World, network: &mut Network<_>, recorder: &mut Option<Box<QlogRecorder>>, until| {
            match recorder {
                None => network.run(world, until, end),
                Some(recorder) => network.run(&mut LoggingWorld { world, recorder }, until, end),
            }
        };
        loop {
            let sample_at = probes.next_at().filter(|at| *at <= to);
            if !events.is_empty() {
                // Conditions are checked after each event of the simulation.
                let next = [network.next_event_at(), events.next_at(scenario, *checked)].into_iter().flatten().min();
                if let Some(at) = next.filter(|at| *at <= sample_at.unwrap_or(to)) {
                    run(world, network, recorder, at);
                    *checked = at;
                    let noted = events.check(scenario, at, world, network);
                    if let Some(recorder) = recorder {
                        noted.iter().for_each(|(event, note)| recorder.note_event(at, *event, *note, events));
                    }
                    if !noted.is_empty() {
                        let found = events.due_times(scenario);
                        if let Some(new) = new_change(scenario, known, &found) {
                            return Some(new);
                        }
                    }
                    continue;
                }
            }
            let Some(sample_at) = sample_at else { break };
            run(world, network, recorder, sample_at);
            probes.sample(sample_at, world, network);
        }
        self.left = run(world, network, recorder, to);
        if to == self.slice_end {
            let idle = !self.left && self.events.next_at(&self.scenario, self.checked).is_none_or(|at| at > end);
            self.is_over = (idle && !self.network.has_waiting_frames()) || to == end;
            self.slice_end = self.slice_end.saturating_add(self.slice).min(end);
        }
        None
    }

    /// Ends the run. `known` are the times of the scenario's changes.
    pub(crate) fn into_outcome(self, known: &[Option<Duration>]) -> Outcome {
        let ActiveRun { mut world, network, mut probes, events, scenario, recorder, left, .. } = self;
        let found = events.due_times(&scenario);
        let is_change = |event: &usize| scenario.events[*event].change.is_some();
        let same = (0..known.len()).filter(is_change).all(|event| known[event] == found[event]);
        assert!(same, "a pass must find the times of the earlier passes: {known:?}, {found:?}");
        let logged = recorder.map_or(Ok(()), |recorder| recorder.finish(&mut world, &network));
        let sampled = probes.finish();
        let outcome = Outcome::new(scenario, world, network, probes, !left).with_events(events);
        outcome.logged(logged).logged(sampled)
    }
}

/// The reason why a pass of a run ended.
enum PassEnd {
    /// The caller stopped the run.
    Stopped,
    /// The time of this change has become known.
    NewChange(usize, Duration),
    /// The pass reached the end of the run.
    Outcome(Box<Outcome>),
}

impl PassEnd {
    /// Returns the outcome of a pass in which the times of all changes were known.
    fn outcome(self) -> Option<Outcome> {
        match self {
            PassEnd::Stopped => None,
            PassEnd::Outcome(outcome) => Some(*outcome),
            PassEnd::NewChange(..) => unreachable!("the last pass has the times of all changes"),
        }
    }
}
