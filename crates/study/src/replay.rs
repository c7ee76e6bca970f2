//! The runner for replays: repeats a real-time run in virtual time with the recorded arrivals.

use crate::laboratory::{self, VirtualTimeRunner};
use crate::port::{ResolvedScenario, RunError, RunOptions, RunRecords, Runner, ScenarioSource};
use fullpipe_lab::real_time;
use fullpipe_scenario::Override;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Runs scenarios in virtual time with the recorded arrivals of a real-time run.
#[derive(Clone, Debug)]
pub struct ReplayRunner {
    resolver: VirtualTimeRunner,
    arrivals: Vec<u8>,
}

impl ReplayRunner {
    /// Creates a runner with this build identity and the recorded arrivals in the file at the path `arrivals`.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(build: impl Into<String>, arrivals: &Path) -> std::io::Result<Self> {
        Ok(ReplayRunner { resolver: VirtualTimeRunner::new(build), arrivals: std::fs::read(arrivals)? })
    }
}

impl Runner for ReplayRunner {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        let mut resolved = self.resolver.resolve(scenario, overrides)?;
        resolved.content.extend(b"\narrivals: ");
        resolved.content.extend(Sha256::digest(&self.arrivals));
        Ok(resolved)
    }

    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError> {
        let loaded = laboratory::load(scenario, seed, options)?;
        let lab_options = laboratory::lab_options(options);
        let stop = || options.stop.load(Ordering::Relaxed);
        let result = real_time::replay(Arc::new(loaded), &lab_options, &self.arrivals, &stop);
        let result = result.map_err(|error| RunError::Failed(error.to_string()))?;
        if stop() {
            return Err(RunError::Interrupted);
        }
        let mut records = laboratory::records(&result.outcome, scenario, options, "replay")?;
        records.run.arrivals = Some(result.arrivals);
        records.run.icmp = Some(result.answered);
        records.run.refused_frames = Some(result.refused);
        Ok(records)
    }

    fn build_identity(&self) -> String {
        self.resolver.build_identity()
    }
}
