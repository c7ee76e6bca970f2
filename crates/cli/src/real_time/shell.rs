//! `fullpipe shell`: runs a scenario in real time with a shell on one of its hosts.
//!
//! The background programs of the scenario run; the user replaces its other programs. The run lasts as long as the
//! shell, and writes no records.

use super::arguments::ShellArguments;
use crate::exit::Failure;
use crate::records::{find_scenario, overrides};
use fullpipe::find::FoundScenario;
use fullpipe::lab;
use fullpipe::lab::real_time::{self, Lateness, RealTimeOptions};
use fullpipe::scenario::description::{Command, EndpointBackend, Program};
use fullpipe::scenario::{self, Scenario};
use fullpipe::units::{Duration, Instant, NodeId};
use std::io::IsTerminal;
use std::sync::Arc;

/// The name of the shell among the programs. Names in a file cannot contain brackets.
const NAME: &str = "(shell)";

/// The time limit of a shell: a year.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

pub(crate) fn shell(arguments: &ShellArguments) -> Result<(), Failure> {
    let FoundScenario { text, name, folder, .. } = find_scenario(&arguments.scenario)?;
    let set = overrides(&arguments.set)?;
    let mut scenario = scenario::load(&text, &name, &set).map_err(Failure::usage)?.scenario;
    let host = put_shell(&mut scenario, arguments)?;
    let home = super::enter()?;
    if std::io::stdin().is_terminal() {
        eprintln!("shell at {host}: the names of hosts resolve; the run ends when the shell exits");
    }
    let (options, mut each) = (lab::Options::default(), |_: Instant, _: &Lateness| false);
    let asked = RealTimeOptions {
        folder: folder.as_deref(),
        at_terminal: Some(NAME),
        early_exit: Some(Box::new(|exited| eprintln!("fullpipe: {exited}"))),
        ..RealTimeOptions::new(&options, &home, &mut each)
    };
    let outcome = real_time::run(Arc::new(scenario), asked).map_err(super::failure)?;
    // The exit status of the shell is that of its last command, which is not a result of the run.
    let others = outcome.programs.iter().filter(|ended| ended.name != NAME || ended.started.is_none());
    let failures: Vec<&str> = others.filter_map(|ended| ended.failure.as_deref()).collect();
    if failures.is_empty() { Ok(()) } else { Err(Failure::run(failures.join("; "))) }
}

/// Adds the shell as a program of the scenario. Returns the name of the host.
fn put_shell(scenario: &mut Scenario, arguments: &ShellArguments) -> Result<String, Failure> {
    let hosts = || scenario.nodes.iter().filter(|node| !node.router).map(|node| node.name.as_str());
    let Some(number) = scenario.nodes.iter().position(|node| node.name == arguments.host && !node.router) else {
        let all: Vec<&str> = hosts().collect();
        let hint = scenario::schema::nearest_name(&arguments.host, hosts())
            .map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
        let (wrong, all) = (&arguments.host, all.join(", "));
        return Err(Failure::usage(format!("unknown host {wrong:?}{hint} (one of: {all})")));
    };
    let host = NodeId(number as u32);
    // A host is either real or a model host.
    let played = scenario.flows.iter().find(|flow| {
        (flow.from == host && flow.from_by == EndpointBackend::Model)
            || (flow.to == host && flow.to_by == EndpointBackend::Model)
    });
    if let Some(flow) = played {
        return Err(Failure::usage(format!(
            "cannot open a shell at {}: flow {} has a simulated end there; set from_by or to_by = \"program\"",
            arguments.host, flow.name
        )));
    }
    scenario.programs.retain(|program| program.background);
    let names: Vec<String> = scenario.programs.iter().map(|program| program.name.clone()).collect();
    for program in &mut scenario.programs {
        program.after.retain(|name| names.contains(name));
    }
    let command = if arguments.command.is_empty() {
        vec![std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())]
    } else {
        arguments.command.clone()
    };
    scenario.nodes[number].real = true;
    scenario.duration = LONGEST;
    let mut shell = Program::new(NAME, host, Command::Arguments(command), LONGEST);
    shell.environment = vec![("FULLPIPE_HOST".to_owned(), arguments.host.clone())];
    shell.directory = std::env::current_dir().map(|folder| folder.display().to_string()).unwrap_or_default();
    shell.after = names;
    scenario.programs.push(shell);
    Ok(arguments.host.clone())
}
