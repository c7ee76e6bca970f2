//! From the scenario's programs to those that the machine starts.

use fullpipe_emulate::{ProgramSettings, Readiness};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Program, Ready};
use fullpipe_units::{Instant, NodeId};
use std::path::Path;

/// `real`: the nodes of the namespaces, in order. `folder`: what relative folders are relative to. `at_terminal`: the name of
/// the program that has the terminal.
pub(crate) fn settings(
    scenario: &Scenario,
    real: &[NodeId],
    folder: Option<&Path>,
    at_terminal: Option<&str>,
) -> Vec<ProgramSettings> {
    let programs = scenario.programs.iter();
    programs
        .map(|program| ProgramSettings {
            terminal: at_terminal == Some(&program.name),
            ..one(program, scenario, real, folder)
        })
        .collect()
}

fn one(program: &Program, scenario: &Scenario, real: &[NodeId], folder: Option<&Path>) -> ProgramSettings {
    let place = |name: &String| scenario.programs.iter().position(|other| other.name == *name);
    ProgramSettings {
        name: program.name.clone(),
        host: real.iter().position(|node| *node == program.host).expect("a host with a program is real"),
        command: program.command.words(),
        environment: program.environment.clone(),
        folder: folder.map(|folder| folder.join(&program.directory)),
        after: program.after.iter().filter_map(place).collect(),
        readiness: match &program.ready {
            Ready::Started => Readiness::Started,
            Ready::TcpPort(port) => Readiness::TcpPort(*port),
            Ready::UdpPort(port) => Readiness::UdpPort(*port),
            Ready::Output(text) => Readiness::Output(text.clone()),
            Ready::Exit => Readiness::Exit,
        },
        ready_within: program.ready_timeout,
        start: Instant::ZERO.saturating_add(program.start),
        timeout: program.timeout,
        background: program.background,
        exit_status: program.exit_status,
        terminal: false,
    }
}
