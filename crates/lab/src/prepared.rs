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
        let PreparedRun { mut world, mut network, mut probes, mut events, scenario, mut recorder, .. } = self;
        let end = Instant::ZERO.saturating_add(scenario.duration);
        let slice = (scenario.duration / 1000).max(Duration::from_nanos(1));
        let (mut slice_end, mut checked) = (Instant::ZERO, Instant::ZERO);
        world.start(&mut network);
        // A run with a log uses a different host type, so that runs without a log do not need a check.
        let run = |world: &mut World, network: &mut Network<_>, recorder: &mut Option<Box<QlogRecorder>>, until| {
            match recorder {
                None => network.run(world, until, end),
                Some(recorder) => network.run(&mut LoggingWorld { world, recorder }, until, end),
            }
        };
        loop {
            if stop() {
                return PassEnd::Stopped;
            }
            slice_end = slice_end.saturating_add(slice).min(end);
            loop {
                let sample_at = probes.next_at().filter(|at| *at <= slice_end);
                if !events.is_empty() {
                    // Conditions are checked after each event of the simulation.
                    let next =
                        [network.next_event_at(), events.next_at(&scenario, checked)].into_iter().flatten().min();
                    if let Some(at) = next.filter(|at| *at <= sample_at.unwrap_or(slice_end)) {
                        run(&mut world, &mut network, &mut recorder, at);
                        checked = at;
                        let noted = events.check(&scenario, at, &mut world, &mut network);
                        if let Some(recorder) = &mut recorder {
                            noted.iter().for_each(|(event, note)| recorder.note_event(at, *event, *note, &events));
                        }
                        if !noted.is_empty() {
                            let found = events.due_times(&scenario);
                            if let Some((event, at)) = new_change(&scenario, known, &found) {
                                return PassEnd::NewChange(event, at);
                            }
                        }
                        continue;
                    }
                }
                let Some(sample_at) = sample_at else { break };
                run(&mut world, &mut network, &mut recorder, sample_at);
                probes.sample(sample_at, &mut world, &mut network);
            }
            let left = run(&mut world, &mut network, &mut recorder, slice_end);
            let idle = !left && events.next_at(&scenario, checked).is_none_or(|at| at > end);
            if idle || slice_end == end {
                let found = events.due_times(&scenario);
                let is_change = |event: &usize| scenario.events[*event].change.is_some();
                let same = (0..known.len()).filter(is_change).all(|event| known[event] == found[event]);
                assert!(same, "a pass must find the times of the earlier passes: {known:?}, {found:?}");
                let logged = recorder.map_or(Ok(()), |recorder| recorder.finish(&mut world, &network));
                let sampled = probes.finish();
                let outcome = Outcome::new(scenario, world, network, probes, !left).with_events(events);
                return PassEnd::Outcome(Box::new(outcome.logged(logged).logged(sampled)));
            }
        }
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
