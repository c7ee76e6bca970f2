//! Converts the scenario's programs to commands, and their output to metrics.

use crate::outcome::ProgramMetric;
use fullpipe_emulate::{ProgramOutcome, ProgramSettings, Readiness};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Program, ReadyCondition};
use fullpipe_units::{Instant, NodeId};
use serde_json::Value;
use std::path::Path;

/// Creates the commands of the scenario's programs. `real` contains the nodes of the namespaces, in order; `folder` is
/// the base of relative folders; `at_terminal` is the name of the program that is connected to the terminal.
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
        command: program.command.argv(),
        environment: program.environment.clone(),
        folder: folder.map(|folder| folder.join(&program.directory)),
        after: program.after.iter().filter_map(place).collect(),
        readiness: match &program.ready {
            ReadyCondition::Started => Readiness::Started,
            ReadyCondition::TcpPort(port) => Readiness::TcpPort(*port),
            ReadyCondition::UdpPort(port) => Readiness::UdpPort(*port),
            ReadyCondition::Output(text) => Readiness::Output(text.clone()),
            ReadyCondition::Exit => Readiness::Exit,
        },
        ready_within: program.ready_timeout,
        start: Instant::ZERO.saturating_add(program.start),
        timeout: program.timeout,
        background: program.background,
        exit_status: program.exit_status,
        terminal: false,
    }
}

/// Returns the metrics that programs reported, in the order of the scenario.
pub(crate) fn told(scenario: &Scenario, ended: &[ProgramOutcome]) -> Vec<ProgramMetric> {
    let programs = scenario.programs.iter();
    let told = programs.filter_map(|program| {
        let flow = program.figures_of?;
        let ended = ended.iter().find(|ended| ended.name == program.name)?;
        let figures = figures(&ended.output).into_iter();
        Some(figures.map(move |(name, value)| ProgramMetric { flow, host: program.host, name, value }))
    });
    told.flatten().collect()
}

/// Returns the numbers of the last line that is a JSON object.
fn figures(output: &[u8]) -> Vec<(String, f64)> {
    let lines = output.rsplit(|byte| *byte == b'\n');
    let object = lines.filter_map(|line| match serde_json::from_slice(line) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    });
    let numbers = object.take(1).flatten().filter_map(|(name, value)| Some((name, value.as_f64()?)));
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::figures;

    #[test]
    fn last_json_object_contains_the_metrics() {
        let output =
            b"{\"a\": 1}\nready\n{\"b_s\": 0.5, \"text\": \"x\", \"c\": -2, \"n\": null}\n[3]\n7\nbye {\"d\": 4}\n";
        assert_eq!(figures(output), [("b_s".to_owned(), 0.5), ("c".to_owned(), -2.0)]);
        assert_eq!(figures(b""), []);
        assert_eq!(figures(b"{\"a\": 1"), [], "a truncated line");
    }
}
