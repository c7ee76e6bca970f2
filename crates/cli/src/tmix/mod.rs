//! `fullpipe tmix`: commands for connection vectors, without a network.

pub(crate) mod arguments;
mod files;
mod stats;
mod target;

use crate::exit::Failure;
use arguments::{ConvertArguments, GenerateArguments, ShuffleArguments, TmixCommand};
use files::{OutputFile, ProgressCounter};
use fullpipe::tmix::{
    BinOrder, Error, ExperimentSpec, IndexedTrace, Prefill, Schedule, SyntheticTrace, Trace, TraceReader, generate,
};
use fullpipe::units::Duration;

/// The length of a trace that the suite uses, even if the trace is longer. Another length would change the shuffle.
const TRACE_LENGTH: Duration = Duration::from_secs(3000);

/// Runs a `tmix` command.
pub(crate) fn tmix(command: &TmixCommand) -> Result<(), Failure> {
    match command {
        TmixCommand::Stats(arguments) => stats::stats(arguments),
        TmixCommand::Convert(arguments) => convert(arguments),
        TmixCommand::Generate(arguments) => generate(arguments),
        TmixCommand::Shuffle(arguments) => shuffle(arguments),
        TmixCommand::FindTarget(arguments) => target::find_target(arguments),
    }
}

/// Converts an error. An I/O error has exit status 1; an invalid file or invalid arguments have exit status 2.
fn failure(error: Error) -> Failure {
    match error {
        Error::Io { ref source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Failure::usage(error.to_string())
        }
        Error::Io { .. } => Failure::machine(error.to_string()),
        _ => Failure::usage(error.to_string()),
    }
}

fn convert(arguments: &ConvertArguments) -> Result<(), Failure> {
    let input = files::open(&arguments.input)?;
    if files::same(&arguments.input, &arguments.output) {
        return Err(Failure::usage("input and output are the same file; expected two different files"));
    }
    let name = arguments.input.display().to_string();
    let mut output = OutputFile::create(&arguments.output)?;
    let mut shown = ProgressCounter::new(arguments.reading.quiet, &name, input.length);
    let mut reader = TraceReader::new(input.reader, &name).skip_malformed(arguments.reading.skip_bad);
    let mut count = 0u64;
    while let Some(connection) = reader.next() {
        output.write(&connection.map_err(failure)?, arguments.to)?;
        count += 1;
        shown.at(reader.offset());
    }
    output.finish()?;
    shown.done(&format!("{name}: {count} connections written to {}", arguments.output.display()));
    files::tell_skipped(&name, reader.skipped(), reader.first_skipped());
    Ok(())
}

fn generate(arguments: &GenerateArguments) -> Result<(), Failure> {
    let length = Duration::from_secs(arguments.seconds);
    let traces = SyntheticTrace::suite(arguments.seed, length);
    let names: Vec<String> = generate::TRACE_NAMES.iter().map(|name| file_name(name)).collect();
    files::folder_for(&arguments.out, &names)?;
    for (trace, name) in traces.iter().zip(&names) {
        let path = arguments.out.join(name);
        let mut output = OutputFile::create(&path)?;
        let mut shown = ProgressCounter::new(arguments.quiet, name, arguments.seconds);
        let mut count = 0u64;
        for second in 0..arguments.seconds {
            for connection in trace.connections_in_second(second) {
                output.write(&connection, arguments.to)?;
                count += 1;
            }
            shown.at(second);
        }
        output.finish()?;
        shown.done(&format!("{}: {count} connections", path.display()));
    }
    Ok(())
}

fn file_name(trace: &str) -> String {
    format!("{trace}.org")
}

fn shuffle(arguments: &ShuffleArguments) -> Result<(), Failure> {
    let mut traces = files::open_traces(&arguments.traces, &arguments.reading)?;
    let schedule = schedule(arguments, &mut traces)?;
    let names: Vec<String> = traces.iter().map(|trace| file_name(trace.name())).collect();
    files::folder_for(&arguments.out, &names)?;
    for (trace, name) in traces.iter_mut().zip(&names) {
        let path = arguments.out.join(name);
        let stream = schedule.schedule_trace(trace).map_err(failure)?;
        let mut output = OutputFile::create(&path)?;
        let mut shown = ProgressCounter::new(arguments.reading.quiet, name, arguments.duration.as_nanos());
        let mut count = 0u64;
        for connection in stream {
            let connection = connection.map_err(failure)?;
            shown.at(connection.start.as_nanos());
            output.write(&connection, arguments.to)?;
            count += 1;
        }
        output.finish()?;
        shown.done(&format!("{}: {count} connections in {}", path.display(), arguments.duration));
    }
    Ok(())
}

fn schedule(arguments: &ShuffleArguments, traces: &mut [IndexedTrace]) -> Result<Schedule, Failure> {
    let order = if arguments.as_recorded { BinOrder::Original } else { BinOrder::Shuffled };
    let (Some(capacity), Some(load), Some(max_rtt)) = (arguments.capacity, arguments.load, arguments.max_rtt) else {
        return Ok(Schedule {
            scale: arguments.scale,
            bin: arguments.bin,
            order,
            seed: arguments.seed,
            trace_length: TRACE_LENGTH,
            duration: arguments.duration,
            prefill: Prefill::NONE,
        });
    };
    target::check_load(load)?;
    let suite = ExperimentSpec {
        bin: arguments.bin,
        order,
        trace_length: TRACE_LENGTH,
        ..ExperimentSpec::draft(capacity, load, max_rtt, arguments.seed)
    };
    suite.schedule(arguments.scale, arguments.duration, traces).map_err(failure)
}
