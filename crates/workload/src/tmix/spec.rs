//! The keys and settings of Tmix: the trace, its connections and their times.

use super::{BoxedTrace, METRICS, RESPONSES, SharedTrace, TmixAcceptor, TmixInitiator, TmixOptions};
use crate::application::Application;
use crate::component::{FlowContext, Protocol, WorkloadComponent, WorkloadSettings};
use crate::demand::Demand;
use fullpipe_schema::component::{self, Declaration, SettingsReader, choices};
use fullpipe_schema::{Choice, Field, FieldKind, keys};
use fullpipe_tmix::{BinOrder, Error, IndexedTrace, Prefill, Schedule, SyntheticTrace};
use fullpipe_units::{Duration, Instant, ParameterError};
use std::path::{Path, PathBuf};

pub(crate) static TMIX: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "tmix",
        text: "connections of a Tmix trace (TCP), opened by `from`: sizes, their order and waits, segment sizes and \
               receive windows. See docs/tmix.md. Default port 5001.",
        fields: &[FIELDS],
        ..Declaration::EMPTY
    },
    // A trace states a segment size, which only TCP has.
    protocols: &[Protocol::Tcp],
    port: 5001,
    metrics: &[&METRICS, &RESPONSES[0], &RESPONSES[1], &RESPONSES[2], &RESPONSES[3], &RESPONSES[4]],
    read: |reader, _| read(reader),
    ..WorkloadComponent::EMPTY
};

const SEED: FieldKind = FieldKind::integer(0, i64::MAX);

/// The synthetic traces.
const TRACES: &[Choice] = &[
    Choice::new("r4s1", "initiator at node 1, acceptor at node 4."),
    Choice::new("r4s2", "initiator at node 2, acceptor at node 4."),
    Choice::new("r4s3", "initiator at node 3, acceptor at node 4."),
    Choice::new("r5s1", "initiator at node 1, acceptor at node 5."),
    Choice::new("r5s2", "initiator at node 2, acceptor at node 5."),
    Choice::new("r5s3", "initiator at node 3, acceptor at node 5."),
    Choice::new("r6s1", "initiator at node 1, acceptor at node 6."),
    Choice::new("r6s2", "initiator at node 2, acceptor at node 6."),
    Choice::new("r6s3", "initiator at node 3, acceptor at node 6."),
];

/// Whether the trace sets segment sizes.
static SEGMENTS: [(Choice, bool); 2] = [
    (Choice::new("trace", "that of the trace, if it states one."), true),
    (Choice::new("flow", "`mss` of `[flow.tcp]`."), false),
];

/// Whether the trace sets receive windows.
static WINDOWS: [(Choice, bool); 2] = [
    (Choice::new("trace", "that of the trace, if it states one."), true),
    (Choice::new("flow", "`receive_buffer` of `[flow.tcp]`."), false),
];

static FIELDS: &[Field] = keys! {
    /// Trace file in either format, as a path relative to the scenario's folder.
    "file": FieldKind::Text, optional "none";
    /// Name of a synthetic trace of the Common TCP Evaluation Suite.
    "trace": FieldKind::Choice(TRACES), optional "the flow's name, if it is one of these; else `\"r4s1\"`";
    /// Folder of traces, as a path relative to the scenario's folder, instead of synthetic traces. The file has the name in
    /// `trace` and the extension `.org`, `.orig`, `.alt` or `.cvec`.
    "folder": FieldKind::Text, optional "none";
    /// Seed of the synthetic traces.
    "trace_seed": SEED, default "1";
    /// Length of the part of the trace that is used. A shorter trace is used completely.
    "trace_length": FieldKind::INTERVAL, default "3000s";
    /// Time in the run divided by time in the trace: 2 halves the load.
    "scale": FieldKind::number(1e-6, 1e9), default "1";
    /// Length of the bins into which the trace is split, in time of the run.
    "bin": FieldKind::INTERVAL, default "5s";
    /// Whether the bins are in random order.
    "shuffle": FieldKind::Boolean, default "true";
    /// Seed of the random order.
    "shuffle_seed": SEED, optional "the scenario's `seed`";
    /// Of the connections that start before this time, only those with a lifetime above half of it are kept.
    "prefill": FieldKind::DURATION, default "0s";
    /// The kept connections start within this time before the end of `prefill`.
    "prefill_interval": FieldKind::DURATION, optional "`prefill`";
    /// A connection's share of the link, from which lifetimes are estimated.
    "prefill_share": FieldKind::RATE, default "1Mbit/s";
    /// Payload of full segments.
    "segments": FieldKind::Choice(&choices(&SEGMENTS)), default "trace";
    /// Receive windows of connections.
    "windows": FieldKind::Choice(&choices(&WINDOWS)), default "trace";
    /// Whether each unit is padded to whole segments, as with ns-2's one-way TCP.
    "padded": FieldKind::Boolean, default "false";
    /// Whether each exchange has a row in `completions.csv`. Response times by size are always in `figures.csv`.
    "exchanges": FieldKind::Boolean, default "false";
};

/// The settings of Tmix.
#[derive(Clone, Debug, PartialEq)]
pub struct TmixSpec {
    /// The source of the connections.
    pub trace: TmixTraceSource,
    /// Run time divided by trace time.
    pub scale: f64,
    /// Length of a bin in run time.
    pub bin: Duration,
    /// Order of the bins.
    pub order: BinOrder,
    /// Seed of the shuffle; `None`: the seed of the scenario.
    pub shuffle_seed: Option<u64>,
    /// Length of the part of a trace that is used.
    pub trace_length: Duration,
    /// The prefill with long-lived connections.
    pub prefill: Prefill,
    /// How connections are opened and which properties they take from the trace.
    pub options: TmixOptions,
}

/// The source of connection vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TmixTraceSource {
    /// One of the nine synthetic traces.
    Synthetic {
        /// The name, `r4s1` to `r6s3`.
        name: String,
        /// The seed of the generator.
        seed: u64,
    },
    /// A trace file in the original or the alternate format.
    File(PathBuf),
}

/// Extensions of trace files.
const ENDINGS: [&str; 4] = ["org", "orig", "alt", "cvec"];

/// Returns the file of a trace in a folder. If there is none, returns the first candidate, whose absence is reported when it is
/// read.
fn trace_in(folder: &Path, name: &str) -> PathBuf {
    let candidates = ENDINGS.map(|ending| folder.join(format!("{name}.{ending}")));
    let found = candidates.iter().find(|file| file.is_file());
    found.unwrap_or(&candidates[0]).clone()
}

fn read(reader: &mut SettingsReader<'_, '_>) -> Result<Box<dyn WorkloadSettings>, component::InvalidSettings> {
    let tree = reader.tree;
    let seed = |key: &str| tree.get(key).map(|seed| u64::try_from(seed.integer()).unwrap_or_default());
    let file = tree.get("file").map(|value| value.text());
    let name = tree.get("trace").map(|_| tree.choice("trace"));
    let here = Path::new(reader.check.sources.file()).parent().unwrap_or(Path::new("")).to_owned();
    let folder = tree.get("folder").map(|value| here.join(value.text()));
    let trace = match (file, folder, name) {
        (Some(_), folder, name) if folder.is_some() || name.is_some() => {
            let other = if folder.is_some() { "folder" } else { "trace" };
            let message = format!("{} has both file and {other}", reader.path);
            return Err(reader.add_error(other, message, "only one of them"));
        }
        (Some(file), ..) => TmixTraceSource::File(here.join(file)),
        (None, folder, name) => {
            let flow = tree.get("name").map(|name| name.text());
            let name = name.or(flow.filter(|flow| TRACES.iter().any(|trace| trace.name == *flow)));
            let name = name.unwrap_or("r4s1");
            match folder {
                Some(folder) => TmixTraceSource::File(trace_in(&folder, name)),
                None => {
                    TmixTraceSource::Synthetic { name: name.to_owned(), seed: seed("trace_seed").unwrap_or_default() }
                }
            }
        }
    };
    let time = tree.duration("prefill");
    let interval = tree.get("prefill_interval").map_or(time, |_| tree.duration("prefill_interval")).min(time);
    let share_bps = tree.rate("prefill_share").bits_per_second() as f64;
    let prefill = if time.is_zero() {
        Prefill::NONE
    } else {
        Prefill { time, interval, lifetime: time / 2, share_bps: share_bps.max(1.0) }
    };
    Ok(Box::new(TmixSpec {
        trace,
        scale: tree.number("scale"),
        bin: tree.duration("bin"),
        order: if tree.boolean("shuffle") { BinOrder::Shuffled } else { BinOrder::Original },
        shuffle_seed: seed("shuffle_seed"),
        trace_length: tree.duration("trace_length"),
        prefill,
        options: TmixOptions {
            mss_of_trace: tree.choice_value("segments", &SEGMENTS),
            window_of_trace: tree.choice_value("windows", &WINDOWS),
            padded: tree.boolean("padded"),
            exchanges: tree.boolean("exchanges"),
            measured_from: Instant::ZERO,
        },
    }))
}

impl TmixSpec {
    /// Returns the connections for a run with this seed and duration after the flow's start, generated on demand.
    fn connections(&self, seed: u64, duration: Duration) -> Result<SharedTrace, Error> {
        let schedule = Schedule {
            scale: self.scale,
            bin: self.bin,
            order: self.order,
            seed: self.shuffle_seed.unwrap_or(seed),
            trace_length: self.trace_length,
            duration,
            prefill: self.prefill,
        };
        let trace: BoxedTrace = match &self.trace {
            TmixTraceSource::Synthetic { name, seed } => Box::new(SyntheticTrace::new(*seed, name, self.trace_length)?),
            TmixTraceSource::File(path) => Box::new(IndexedTrace::open(path, false)?),
        };
        Ok(SharedTrace::new(schedule.schedule_trace(trace)?))
    }
}

impl WorkloadSettings for TmixSpec {
    fn senders(&self) -> [bool; 2] {
        [true, true]
    }

    fn file(&self) -> Option<&Path> {
        match &self.trace {
            TmixTraceSource::File(path) => Some(path),
            TmixTraceSource::Synthetic { .. } => None,
        }
    }

    fn sums_connections(&self) -> bool {
        true
    }

    fn demand(&self, time_s: f64) -> Demand {
        if matches!(self.trace, TmixTraceSource::File(_)) {
            let reason = "connections of a trace file, counted as if they filled the path";
            return Demand::unlimited([true, true]).as_upper_bound(reason);
        }
        // The prefill's connections start within its last interval and offer the load of any other time.
        let Prefill { time, interval, .. } = self.prefill;
        let time_s = (time_s - time.saturating_sub(interval).as_secs_f64()).max(0.0);
        let played = SyntheticTrace::estimate_traffic(time_s, self.scale);
        let both = |sides: fullpipe_tmix::PerSide<f64>| [sides.initiator, sides.acceptor];
        Demand {
            bytes: both(played.bytes),
            messages: both(played.segments),
            connections: played.connections,
            lifetime_s: Some(played.open_s / played.connections.max(1.0)),
            timers: played.timers,
            ..Demand::NO_DATA
        }
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let connections = self.connections(context.seed, context.duration);
        let connections = connections.map_err(|error| ParameterError(error.to_string()))?;
        let options = TmixOptions { measured_from: context.measured_from, ..self.options };
        let initiator = TmixInitiator::new(connections.clone(), options, context.start);
        Ok([Box::new(initiator), Box::new(TmixAcceptor::new(connections, options, context.start))])
    }
}
