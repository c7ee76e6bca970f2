//! The command line: commands, arguments and options.

pub(crate) use crate::masque::arguments::{Http3Arguments, MasqueArguments};
pub(crate) use crate::real_time::arguments::{DoctorArguments, ShellArguments, SimulatorArguments};
pub(crate) use crate::tmix::arguments::TmixCommand;
use clap::{Args, Parser, Subcommand, ValueEnum};
use fullpipe::study::Shard;
use std::ffi::OsString;
use std::path::PathBuf;

/// A laboratory for transport protocols.
#[derive(Debug, Parser)]
#[command(name = "fullpipe", version = fullpipe::BUILD, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The arguments of `fullpipe report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Folder with the records of a run or a study
    pub(crate) folder: PathBuf,
    /// Compare with another folder: differences with paired 95 % intervals (same point and seed), also in comparison.csv
    #[arg(long, value_name = "DIR")]
    pub(crate) compare: Option<PathBuf>,
    /// Additional formats of the plots; SVG is always written
    #[arg(long, value_delimiter = ',', value_name = "svg,pdf,png")]
    pub(crate) format: Vec<PlotFormatName>,
    /// Open the report in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

/// The name of a format of plots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotFormatName {
    /// Scalable Vector Graphics
    Svg,
    /// Portable Document Format
    Pdf,
    /// Portable Network Graphics
    Png,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run one scenario: a file, or the name of an embedded one (`fullpipe list scenarios`)
    Run(RunArguments),
    /// Run a study, or list the embedded ones
    Study {
        #[command(subcommand)]
        command: StudyCommand,
    },
    /// Evaluate a congestion control according to RFC 9743 (BCP 133), with Reno, CUBIC and BBRv3 as references
    Evaluate(EvaluateArguments),
    /// Rebuild report.html and plots/ from the records in a folder
    Report(ReportArguments),
    /// Check scenarios, studies and proxy configurations without running them
    Check {
        /// Scenario and study files, configurations of `masque proxy`, and names of embedded scenarios; with --cost also names of
        /// embedded studies
        #[arg(required = true)]
        files: Vec<String>,
        /// Print the estimated cost: events, CPU time and peak memory
        #[arg(long)]
        cost: bool,
        /// Print the estimated cost as JSON
        #[arg(long, requires = "cost")]
        json: bool,
        /// With --cost: the cost of `study run --quick`
        #[arg(long, requires = "cost")]
        quick: bool,
    },
    /// List the names that scenarios and commands accept
    List {
        #[arg(help = format!("What to list: {}", crate::list::names()))]
        what: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run benchmark scenarios (all, or those named) and print the speed of one core
    Bench {
        /// Names of benchmarks [default: all]
        names: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// No progress on standard error
        #[arg(long)]
        quiet: bool,
        /// Measure in this process instead of a separate one
        #[arg(long, hide = true)]
        in_this_process: bool,
    },
    /// Check whether this machine supports real time and how exact it is, and print what to change
    Doctor(DoctorArguments),
    /// Run a scenario in real time with a shell or another command at one of its hosts
    Shell(ShellArguments),
    /// Run a scenario of quic-network-simulator between two interfaces of this machine
    Simulator(SimulatorArguments),
    /// Process connection vectors of Tmix: statistics, conversion, synthetic traces, shuffling to a load
    Tmix {
        #[command(subcommand)]
        command: TmixCommand,
    },
    /// Run a CONNECT-UDP proxy or its client
    Masque(MasqueArguments),
    /// Run an HTTP/3 file server or client
    Http3(Http3Arguments),
    /// Write a commented scenario or study file to start from
    Init {
        #[arg(help = format!("The template: {}", crate::init::names()))]
        template: Option<String>,
        /// The new file [default: TEMPLATE.toml]
        file: Option<PathBuf>,
    },
    /// Explain a key, a column, a metric, a term, a congestion control or another name that `fullpipe list` prints
    Explain {
        /// The name, such as `cwnd_bytes` or `codel`, or the path of a key, such as `topology.bottleneck.queue`
        name: Option<String>,
    },
    /// Search commands, keys, columns, metrics, names and pages of the documentation
    Help {
        /// A command, or the words to search for
        topic: Vec<String>,
    },
    /// Print the JSON Schema of scenario files, or of study files, for editors
    Schema {
        /// The kind of file
        #[arg(default_value = "scenario")]
        of: SchemaOf,
    },
    /// Print the completion script of a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print a manual page, in roff
    Man {
        /// The command, such as `study run` [default: the page of fullpipe itself]
        command: Vec<String>,
        /// Write the pages of all commands to this folder instead
        #[arg(long, value_name = "DIR", conflicts_with = "command")]
        out: Option<PathBuf>,
    },
    /// Misspelled commands
    #[command(external_subcommand)]
    Later(Vec<OsString>),
}

/// A kind of file that has a schema.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Scenario files
    Scenario,
    /// Study files
    Study,
}

#[derive(Debug, Subcommand)]
pub(crate) enum StudyCommand {
    /// List the embedded studies
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a study: the name of an embedded one, or a file
    Run(StudyArguments),
    /// Combine the folders of all shards of a study (`study run --shard I/N`) into that of the whole study
    Merge(MergeArguments),
    /// Any other word, for the error message
    #[command(external_subcommand)]
    Unknown(Vec<OsString>),
}

/// The arguments that `run` and `study run` share.
#[derive(Debug, Args)]
pub(crate) struct CommonArguments {
    /// Set a value (repeatable)
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of all random streams
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Folder for the records [default: fullpipe-out/NAME]
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Audit every packet, not only sums
    #[arg(long)]
    pub(crate) audit: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a JUnit XML file with a test case for each expectation (`[[expect]]`) and each claim
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// No progress on standard error
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Reuse earlier real-time runs (runs in virtual time are always reused)
    #[arg(long)]
    pub(crate) resume: bool,
    /// Open the report in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Run even if the estimated memory exceeds that of this machine
    #[arg(long)]
    pub(crate) ignore_memory: bool,
    /// Inject a fault to test the auditor: fast-link:LINK, silent-drop:LINK:EVERY or premature-ack:FROM (repeatable)
    #[arg(long, value_name = "FAULT")]
    pub(crate) sabotage: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// A scenario file, or the name of an embedded scenario
    pub(crate) scenario: String,
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    /// Capture the packets of each host in HOST.pcapng: the first BYTES of each packet, or `all` [default: 128, enough for
    /// all headers]
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = "128",
        value_parser = snap_bytes)]
    pub(crate) pcap: Option<u32>,
    /// Log the events at connections and queues in run.sqlog (qlog)
    #[arg(long)]
    pub(crate) qlog: bool,
    /// Run in real time: hosts with programs become namespaces of this machine
    #[arg(long)]
    pub(crate) real_time: bool,
    /// Record every frame that a real host sends in arrivals.pcapng, for --replay
    #[arg(long, requires = "real_time")]
    pub(crate) record: bool,
    /// Replay a real-time run in virtual time, with the arrivals that it recorded
    #[arg(long, value_name = "ARRIVALS.pcapng", conflicts_with = "real_time")]
    pub(crate) replay: Option<PathBuf>,
}

/// Parses the number of bytes to capture per packet; 0 for all.
fn snap_bytes(text: &str) -> Result<u32, String> {
    match text {
        "all" => Ok(0),
        text => text
            .parse()
            .ok()
            .filter(|bytes| (1..=65_535).contains(bytes))
            .ok_or_else(|| "expected 1 to 65535, or all".to_string()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct StudyArguments {
    /// A study file, or the name of an embedded study
    pub(crate) study: String,
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    /// Runs per point
    #[arg(long)]
    pub(crate) runs: Option<u64>,
    /// Repeat the study under K study seeds; verdicts are those of all runs together, and of each seed
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) seeds: Option<u64>,
    /// Number of parallel runs [default: the number of cores]; results do not depend on it
    #[arg(long)]
    pub(crate) jobs: Option<usize>,
    /// Log the events at connections and queues of each run in virtual time in run.sqlog (qlog)
    #[arg(long)]
    pub(crate) qlog: bool,
    /// Shorten the study to at most 20 s on two cores; its records are marked
    #[arg(long)]
    pub(crate) quick: bool,
    /// Make only the runs of part I of N, without tables and report; `study merge` combines the folders of all parts
    /// [default folder: fullpipe-out/NAME-shard-I-of-N]
    #[arg(long, value_name = "I/N", conflicts_with_all = ["json", "junit", "open"])]
    pub(crate) shard: Option<Shard>,
}

#[derive(Debug, Args)]
pub(crate) struct EvaluateArguments {
    /// The congestion control (`fullpipe list congestion`)
    pub(crate) control: String,
    /// The study with the matrix: a file, or the name of an embedded study
    #[arg(long, default_value = "bcp-133")]
    pub(crate) study: String,
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    /// Runs per point
    #[arg(long)]
    pub(crate) runs: Option<u64>,
    /// Number of parallel runs [default: the number of cores]; results do not depend on it
    #[arg(long)]
    pub(crate) jobs: Option<usize>,
    /// Shorten the study to at most 60 s on two cores; its records are marked
    #[arg(long)]
    pub(crate) quick: bool,
    /// Copy finished runs from this record folder, such as that of another congestion control (repeatable) [default:
    /// evaluation folders next to the output folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) reuse: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArguments {
    /// The folders of the shards, in any order
    #[arg(required = true)]
    pub(crate) folders: Vec<PathBuf>,
    /// Folder for the records of the whole study
    #[arg(long, required = true)]
    pub(crate) out: PathBuf,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a JUnit XML file with a test case for each expectation (`[[expect]]`) and each claim
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// No progress on standard error
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Open the report in the browser
    #[arg(long)]
    pub(crate) open: bool,
}
