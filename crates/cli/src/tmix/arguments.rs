//! The command lines of `fullpipe tmix`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};
use fullpipe::scenario::schema::quantity;
use fullpipe::tmix::{self, LoadDirection, TraceFormat};
use fullpipe::units::{Duration, Rate};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum TmixCommand {
    /// Statistics of traces: counts, sizes, waits, round-trip times, offered load
    Stats(StatsArguments),
    /// Write a trace in the other format; checks it on the way
    Convert(ConvertArguments),
    /// Write the nine synthetic traces of the evaluation suite
    Generate(GenerateArguments),
    /// Write traces as a run would play them: shuffled by bins, scaled, long connections first
    Shuffle(ShuffleArguments),
    /// Find the scale, warm-up and duration that give a load
    FindTarget(FindTargetArguments),
}

/// What every command that reads traces has.
#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Leave out malformed connections, and count them
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// No progress on standard error
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// Trace files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reading: TraceArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArguments {
    /// The format to write
    #[arg(long, value_parser = one_of(&FORMATS))]
    pub(crate) to: TraceFormat,
    /// The trace, in either format
    pub(crate) input: PathBuf,
    /// The file to write
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) reading: TraceArguments,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateArguments {
    /// Folder for the traces, r4s1.org to r6s3.org
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Seed of all random streams
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Length of each trace
    #[arg(long, default_value_t = tmix::generate::DEFAULT_LENGTH.as_nanos() / 1_000_000_000,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) seconds: u64,
    /// The format to write
    #[arg(long, default_value = "original", value_parser = one_of(&FORMATS))]
    pub(crate) to: TraceFormat,
    /// No progress on standard error
    #[arg(long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShuffleArguments {
    /// Trace files, or folders of them (*.org, *.orig, *.alt, *.cvec)
    #[arg(required = true)]
    pub(crate) traces: Vec<PathBuf>,
    /// Run time over trace time
    #[arg(long)]
    pub(crate) scale: f64,
    /// Length of the run, such as 600s
    #[arg(long, value_parser = duration)]
    pub(crate) duration: Duration,
    /// Length of a bin in run time
    #[arg(long, default_value = "5s", value_parser = duration)]
    pub(crate) bin: Duration,
    /// Seed of the shuffle
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Leave the bins in the order of the trace
    #[arg(long)]
    pub(crate) as_recorded: bool,
    /// With --load and --max-rtt: long connections first, for a link of this rate
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "load", requires = "max_rtt")]
    pub(crate) capacity: Option<Rate>,
    /// The load that the scale is meant to give, as a fraction
    #[arg(long, requires = "capacity")]
    pub(crate) load: Option<f64>,
    /// Longest round-trip time with full queues, such as 408ms
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "capacity")]
    pub(crate) max_rtt: Option<Duration>,
    /// Folder for the shuffled traces
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// The format to write
    #[arg(long, default_value = "original", value_parser = one_of(&FORMATS))]
    pub(crate) to: TraceFormat,
    #[command(flatten)]
    pub(crate) reading: TraceArguments,
}

#[derive(Debug, Args)]
pub(crate) struct FindTargetArguments {
    /// Trace files, or folders of them; without any, the nine synthetic ones
    pub(crate) traces: Vec<PathBuf>,
    /// Rate of the central link
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) capacity: Rate,
    /// The load that is wanted, as a fraction
    #[arg(long)]
    pub(crate) load: f64,
    /// Longest round-trip time with full queues, such as 408ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) max_rtt: Duration,
    /// Which way the load is counted: from initiators to acceptors, or back
    #[arg(long, default_value = "reverse", value_parser = one_of(&DIRECTIONS))]
    pub(crate) direction: LoadDirection,
    /// Length of a bin in run time [default: 500 Mbit of the capacity]
    #[arg(long, value_parser = duration)]
    pub(crate) bin: Option<Duration>,
    /// A run has at least so many bins
    #[arg(long)]
    pub(crate) minimum_bins: Option<usize>,
    /// The part by which halves and thirds of a steady run may differ [default: 0.05]
    #[arg(long, value_name = "FRACTION")]
    pub(crate) balance_tolerance: Option<f64>,
    /// Seed of the shuffle
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Seed of the synthetic traces
    #[arg(long, default_value_t = 1)]
    pub(crate) trace_seed: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reading: TraceArguments,
}

static FORMATS: [(&str, &str, TraceFormat); 2] =
    [("original", "SEQ, CONC; >, <, t", TraceFormat::Original), ("alternate", "S, C; I, A", TraceFormat::Alternate)];

static DIRECTIONS: [(&str, &str, LoadDirection); 3] = [
    ("forward", "From initiators to acceptors", LoadDirection::Forward),
    ("reverse", "From acceptors to initiators", LoadDirection::Reverse),
    ("both", "The sum", LoadDirection::Both),
];

/// Parses one of several names, each with its meaning.
fn one_of<T: Copy + Send + Sync>(known: &'static [(&str, &str, T)]) -> impl TypedValueParser<Value = T> {
    let names = known.iter().map(|(name, text, _)| PossibleValue::new(*name).help(*text));
    PossibleValuesParser::new(names).try_map(|name| {
        let found = known.iter().find(|(known, ..)| *known == name);
        found.map(|(_, _, value)| *value).ok_or("not a known name")
    })
}

fn malformed(expected: &str, why: quantity::QuantityError) -> String {
    let reason = why.reason.map_or_else(String::new, |reason| format!(": {reason}"));
    let hint = why.suggestion.map_or_else(String::new, |right| format!("; did you mean {right}?"));
    format!("expected {expected}{reason}{hint}")
}

fn duration(text: &str) -> Result<Duration, String> {
    quantity::parse_duration(text).map_err(|why| malformed("a duration such as \"408ms\"", why))
}

fn rate(text: &str) -> Result<Rate, String> {
    quantity::parse_rate(text).map_err(|why| malformed("a rate such as \"100Mbit/s\"", why))
}
