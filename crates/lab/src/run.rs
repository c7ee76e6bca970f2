//! Functions that build and run a scenario in one call.

use crate::assemble;
use crate::error::RunError;
use crate::events;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::plugins::Plugins;
use crate::prepared::PreparedRun;
use crate::stack;
use crate::stepping::RunningSimulation;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{QuicStack, Transport};
use std::sync::Arc;

/// Returns the reason why this build cannot run a scenario: a flow needs the real QUIC stack, which the build does not
/// include. The reason names the first such flow. `None` if the build can run the scenario.
pub fn unsupported_reason(scenario: &Scenario) -> Option<String> {
    let reason = stack::ABSENT?;
    let needs_stack = |transport: &Transport| match transport {
        Transport::Quic(settings) => settings.stack == QuicStack::Noq,
        Transport::Masque(_) => true,
        Transport::Tcp(_) | Transport::Udp => false,
    };
    let flow = scenario.flows.iter().find(|flow| needs_stack(&flow.transport))?;
    Some(format!("flow {:?}: {reason}", flow.name))
}

/// Builds the simulation of a scenario, without running it.
///
/// # Errors
/// A [`RunError`] if the scenario cannot be run, for example because a flow's congestion control is unknown or there
/// are too many flows.
pub fn prepare(scenario: &Scenario, options: &Options) -> Result<PreparedRun, RunError> {
    prepare_shared(Arc::new(scenario.clone()), options)
}

/// Builds the simulation of a scenario like [`prepare`], but does not copy the scenario. This saves memory if the
/// scenario has very many flows, for example 100 000.
///
/// # Errors
/// The errors of [`prepare`].
pub fn prepare_shared(scenario: Arc<Scenario>, options: &Options) -> Result<PreparedRun, RunError> {
    assemble::assemble(scenario, options, Plugins::default())
}

/// Builds the simulation of a scenario with plug-ins, without running it.
///
/// # Errors
/// The errors of [`prepare`]. Also an error if a plug-in selects a flow or link that does not exist or does not support
/// it.
pub fn prepare_with(scenario: Arc<Scenario>, options: &Options, plugins: Plugins) -> Result<PreparedRun, RunError> {
    assemble::assemble(scenario, options, plugins)
}

/// Builds the simulation of a scenario with plug-ins, to run it in steps.
///
/// # Errors
/// The errors of [`prepare_with`]. Also an error if the scenario has events with changes, which repeat the run.
pub fn start(scenario: Arc<Scenario>, options: &Options, plugins: Plugins) -> Result<RunningSimulation, RunError> {
    if events::has_changes(&scenario) {
        return Err(RunError::StepsWithEvents);
    }
    let external = plugins.external_controls(&scenario);
    let options = Options { inspection: true, ..options.clone() };
    let prepared = assemble::assemble(scenario, &options, plugins)?;
    Ok(RunningSimulation::new(prepared, external))
}

/// Builds and runs a scenario.
///
/// # Errors
/// The errors of [`prepare`].
pub fn run(scenario: &Scenario, options: &Options) -> Result<Outcome, RunError> {
    Ok(prepare(scenario, options)?.run())
}

/// Builds and runs a scenario with plug-ins.
///
/// # Errors
/// The errors of [`prepare_with`].
pub fn run_with(scenario: &Scenario, options: &Options, plugins: Plugins) -> Result<Outcome, RunError> {
    Ok(prepare_with(Arc::new(scenario.clone()), options, plugins)?.run())
}
