//! Functions that build and run a scenario in one call.

use crate::assemble;
use crate::error::RunError;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::plugins::Plugins;
use crate::prepared::PreparedRun;
use crate::stack;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{QuicStack, Transport};
use std::sync::Arc;

/// Returns the reason why this build cannot run a scenario, if any: the build lacks the real QUIC stack that a flow
/// needs. The reason names the first such flow.
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

/// Builds the world of a scenario.
///
/// # Errors
/// If a flow's congestion control is unknown, or the scenario exceeds a limit of the simulator.
pub fn prepare(scenario: &Scenario, options: &Options) -> Result<PreparedRun, RunError> {
    prepare_shared(Arc::new(scenario.clone()), options)
}

/// Builds the world of a scenario like [`prepare`], but does not copy the scenario. This saves memory with 100 000
/// flows.
///
/// # Errors
/// The errors of [`prepare`].
pub fn prepare_shared(scenario: Arc<Scenario>, options: &Options) -> Result<PreparedRun, RunError> {
    assemble::assemble(scenario, options, Plugins::default())
}

/// Builds the world of a scenario with plug-ins.
///
/// # Errors
/// The errors of [`prepare`], and an error if a plug-in selects a flow or link that does not exist.
pub fn prepare_with(scenario: Arc<Scenario>, options: &Options, plugins: Plugins) -> Result<PreparedRun, RunError> {
    assemble::assemble(scenario, options, plugins)
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
