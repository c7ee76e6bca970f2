//! The `fullpipe` command. docs/command-line.md specifies its arguments, output and files.

/// Prints a line on standard error like the macro of the standard library. If the pipe is closed, it ends the command
/// instead of panicking. It is defined before all modules, so that all of them use it.
macro_rules! eprintln {
    ($($argument:tt)*) => { $crate::output::write_error_line(format_args!($($argument)*)) };
}

#[cfg(not(all(feature = "stack", feature = "real-time", feature = "plots", target_os = "linux")))]
mod absent;
mod allocator;
mod arguments;
mod bench;
mod cost;
mod evaluate;
mod exit;
mod expectations;
mod explain;
mod findings;
mod flow_table;
mod guidance;
mod help;
mod init;
mod json_schema;
mod junit;
mod list;
mod manual;
#[cfg(feature = "stack")]
mod masque;
mod measurement;
mod names;
mod new_file;
mod open;
mod output;
mod progress;
#[cfg(all(feature = "real-time", target_os = "linux"))]
mod real_time;
mod records;
mod report;
mod sabotage;
mod tmix;

#[cfg(not(feature = "stack"))]
use absent::masque;
#[cfg(not(all(feature = "real-time", target_os = "linux")))]
use absent::real_time;
use arguments::{Arguments, Command};
use clap::{CommandFactory, Parser};
use std::process::ExitCode;

fn main() -> ExitCode {
    allocator::fix_limits();
    let given = match masque::expand(std::env::args_os().collect()) {
        Ok(given) => given,
        Err(failure) => return failed(&failure),
    };
    let arguments = match Arguments::try_parse_from(given) {
        Ok(arguments) => arguments,
        Err(error) => {
            // The output of `--help` and `--version` is not an error; everything else is invalid usage.
            let status = if error.use_stderr() { 2 } else { 0 };
            if let Some(message) = guidance::unknown_option(&error) {
                eprintln!("fullpipe: {message}");
            } else if let Err(error) = error.print() {
                output::cannot_write(&error);
            }
            return ExitCode::from(status);
        }
    };
    match run(arguments.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure),
    }
}

/// Prints the message of a failure, and returns its status.
fn failed(failure: &exit::Failure) -> ExitCode {
    if !failure.message.is_empty() {
        eprintln!("fullpipe: {failure}");
    }
    ExitCode::from(failure.status)
}

fn run(command: Command) -> Result<(), exit::Failure> {
    match command {
        Command::Run(run) => records::run_scenario(&run),
        Command::Study { command } => match command {
            arguments::StudyCommand::List { json } => records::list_studies(json),
            arguments::StudyCommand::Run(run) => records::run_study(&run),
            arguments::StudyCommand::Merge(merge) => records::merge_shards(merge),
            arguments::StudyCommand::Unknown(words) => Err(records::unknown_study_command(&words)),
        },
        Command::Evaluate(evaluate) => evaluate::evaluate(evaluate),
        Command::Report(arguments) => report::report(&arguments),
        Command::Check { files, cost: false, .. } => records::check(&files),
        Command::Check { files, cost: true, json, quick } => cost::check(&files, json, quick),
        Command::List { what, json } => list::list(what.as_deref(), json),
        Command::Bench { names, json, quiet, in_this_process } => {
            if in_this_process {
                let name = names.first().ok_or_else(|| exit::Failure::usage("name one benchmark"))?;
                bench::measure(name)
            } else {
                bench::bench(&names, json, quiet)
            }
        }
        Command::Doctor(arguments) => real_time::doctor(&arguments),
        Command::Shell(arguments) => real_time::shell(&arguments),
        Command::Simulator(arguments) => real_time::simulate(&arguments),
        Command::Tmix { command } => tmix::tmix(&command),
        Command::Masque(arguments) => masque::masque(&arguments),
        Command::Http3(arguments) => masque::http3(&arguments),
        Command::Init { template, file } => init::init(template.as_deref(), file.as_deref()),
        Command::Explain { name } => explain::explain(name.as_deref().unwrap_or_default()),
        Command::Help { topic } => help::help(&topic),
        Command::Schema { of } => {
            json_schema::print(of);
            Ok(())
        }
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { command, out } => manual::manual(&command, out.as_deref()),
        Command::Later(words) => {
            let word = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
            let declared = Arguments::command();
            let known: Vec<&str> = declared.get_subcommands().map(clap::Command::get_name).collect();
            let hint = fullpipe::scenario::schema::nearest_name(&word, known.iter().copied())
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            Err(exit::Failure::usage(format!(
                "unknown command `{word}`{hint} (there are: {}; see `fullpipe --help`)",
                known.join(", ")
            )))
        }
    }
}
