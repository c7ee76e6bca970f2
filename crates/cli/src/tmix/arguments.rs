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
    /// Check a trace and write it in the other format
    Convert(ConvertArguments),
    /// Write the nine synthetic traces of the evaluation suite
    Generate(GenerateArguments),
    /// Write traces as a run replays them: shuffled by bins, scaled, long connections first
    Shuffle(ShuffleArguments),
    /// Find the scale, warm-up and duration for a given load
    FindTarget(FindTargetArguments),
}

/// The arguments of every command that reads traces.
#[derive(Debug, Args)]
pub(crate) struct TraceArguments {
    /// Skip malformed connections and print their number
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
    /// Format of the output
    #[arg(long, value_parser = one_of(&FORMATS))]
    pub(crate) to: TraceFormat,
    /// The trace, in either format
    pub(crate) input: PathBuf,
    /// Output file
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
    /// Format of the output
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
    /// Time in the run divided by time in the trace
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
    /// Keep the bins in the order of the trace
    #[arg(long)]
    pub(crate) as_recorded: bool,
    /// Rate of the link; with --load and --max-rtt, long connections are placed first
    #[arg(long, value_name = "RATE", value_parser = rate, requires = "load", requires = "max_rtt")]
    pub(crate) capacity: Option<Rate>,
    /// Load at this scale, as a fraction of the capacity
    #[arg(long, requires = "capacity")]
    pub(crate) load: Option<f64>,
    /// Largest round-trip time with full queues, such as 408ms
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "capacity")]
    pub(crate) max_rtt: Option<Duration>,
    /// Folder for the shuffled traces
    #[arg(long)]
    pub(crate) out: PathBuf,
    /// Format of the output
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
    /// Target load, as a fraction of the capacity
    #[arg(long)]
    pub(crate) load: f64,
    /// Largest round-trip time with full queues, such as 408ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) max_rtt: Duration,
    /// Direction of the load: from initiators to acceptors, or back
    #[arg(long, default_value = "reverse", value_parser = one_of(&DIRECTIONS))]
    pub(crate) direction: LoadDirection,
    /// Length of a bin in run time [default: 500 Mbit of the capacity]
    #[arg(long, value_parser = duration)]
    pub(crate) bin: Option<Duration>,
    /// Minimum number of bins of a run
    #[arg(long)]
    pub(crate) minimum_bins: Option<usize>,
    /// Fraction by which halves and thirds of a steady run may differ [default: 0.05]
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
