//! Building and running in one call each.

use crate::assemble;
use crate::error::RunError;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::plugins::Plugins;
use crate::prepared::Prepared;
use crate::stack;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Stack, Transport};
use std::sync::Arc;

/// Why this build cannot run a scenario that others can: its first flow that needs the real QUIC stack, in a build without it.
pub fn unsupported(scenario: &Scenario) -> Option<String> {
    let reason = stack::ABSENT?;
    let needs_stack = |transport: &Transport| match transport {
        Transport::Quic(settings) => settings.stack == Stack::Noq,
        Transport::Masque(_) => true,
        Transport::Tcp(_) | Transport::Udp => false,
    };
    let flow = scenario.flows.iter().find(|flow| needs_stack(&flow.transport))?;
    Some(format!("flow {:?}: {reason}", flow.name))
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
