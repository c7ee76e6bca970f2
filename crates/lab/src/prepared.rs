//! A world that is ready to run, and its run in virtual time.

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
use std::sync::Arc;

/// A world that has been built but has not run. Measurements of its run exclude the time of building.
#[derive(Debug)]
pub struct PreparedRun {
    pub(crate) world: World,
    pub(crate) network: Network<RunObserver>,
    pub(crate) probes: Sampler,
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) recorder: Option<Box<QlogRecorder>>,
}

impl PreparedRun {
    /// Conditions known before the run that make its results suspicious.
    pub fn warnings(&self) -> Vec<Warning> {
        warnings::before_run(&self.scenario, &self.network)
    }

    /// Runs the scenario to its end.
    pub fn run(self) -> Outcome {
        self.run_until(|| false).expect("the run cannot be stopped")
    }

    /// Runs the scenario to its end or until `stop` returns true. `stop` is called about a thousand times per run.
    /// Returns `None` if the run was stopped.
    pub fn run_until(self, stop: impl Fn() -> bool) -> Option<Outcome> {
        let PreparedRun { mut world, mut network, mut probes, scenario, mut recorder } = self;
        let end = Instant::ZERO.saturating_add(scenario.duration);
        let slice = (scenario.duration / 1000).max(Duration::from_nanos(1));
        let mut slice_end = Instant::ZERO;
        world.start(&mut network);
        // A run with a log has different hosts, so that runs without a log need no check.
        let mut run = |world: &mut World, network: &mut Network<_>, until| match &mut recorder {
            None => network.run(world, until, end),
            Some(recorder) => network.run(&mut LoggingWorld { world, recorder }, until, end),
        };
        loop {
            if stop() {
                return None;
            }
            slice_end = slice_end.saturating_add(slice).min(end);
            while let Some(sample_at) = probes.next_at().filter(|at| *at <= slice_end) {
                run(&mut world, &mut network, sample_at);
                probes.sample(sample_at, &mut world, &mut network);
            }
            let left = run(&mut world, &mut network, slice_end);
            if !left || slice_end == end {
                let logged = recorder.map_or(Ok(()), |recorder| recorder.finish(&mut world, &network));
                let sampled = probes.finish();
                return Some(Outcome::new(scenario, world, network, probes, !left).logged(logged).logged(sampled));
            }
        }
    }
}
