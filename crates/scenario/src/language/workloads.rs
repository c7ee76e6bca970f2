//! The workloads that a flow can name: their keys, and the plain description they become.

use super::distributions::{SIZE_OR_RANDOM, TIME_OR_RANDOM, distribution};
use super::{Check, web};
use crate::description::{TmixTrace, TmixWorkload, Transfer, Workload};
use crate::schema::{Choice, Field, Kind, Table, Tree, Value, Variant};
use fullpipe_tmix::{Order, Prefill};
use fullpipe_units::Duration;
use fullpipe_workload::{
    ConnectionUse, GamingSpec, Invalid, OnOffSpec, PoissonPacketsSpec, PoissonTransfersSpec, RateChoice,
    RequestResponseSpec, TalkSpurts, TmixOptions, VideoAbrSpec, VideoCbrSpec, VoiceSpec,
};
use std::path::{Path, PathBuf};

/// Largest payload of a UDP datagram in IPv4.
const LARGEST_DATAGRAM: u64 = 65_507;
/// A packet's payload, or a write.
const PAYLOAD: Kind = Kind::Size { min: 1, max: LARGEST_DATAGRAM };
const SEED: Kind = Kind::Integer { min: 0, max: i64::MAX };
const COUNT: Kind = Kind::Integer { min: 1, max: 1_000_000_000_000_000 };
const PACKETS: Field = Field::optional("packets", COUNT, "without end", "How many packets or writes.");

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

/// Every workload, with the keys that it adds to a flow.
pub(super) const LIST: &[Variant] = &[
    Variant {
        name: "bulk",
        text: "as much as the transport takes, up to a size (TCP).",
        fields: &[&[
            Field::optional("size", Kind::SIZE, "without end", "Bytes in all."),
            Field::optional(
                "write_size",
                Kind::Size { min: 1, max: 1 << 30 },
                "64KiB, or the send buffer if that is smaller",
                "Bytes that the application writes at a time. A write waits until the send buffer has room for \
             all of it.",
            ),
            Field::default(
                "content",
                Kind::Choice(&[
                    Choice::new("none", "its length is all that matters."),
                    Choice::new("random", "bytes of a random stream; both ends tell their SHA-256, in `run.json`."),
                ]),
                "none",
                "What the payload is.",
            ),
        ]],
    },
    Variant {
        name: "constant-rate",
        text: "datagrams (UDP) or writes (TCP) of one size at a constant interval.",
        fields: &[&[
            Field::required(
                "payload",
                Kind::Size { min: 1, max: 16 << 20 },
                "Payload of each; at most 65507B in a UDP datagram.",
            ),
            Field::optional("interval", Kind::INTERVAL, "from `rate`", "From one to the next."),
            Field::optional(
                "rate",
                Kind::RATE,
                "from `interval`",
                "Payload bits per second, instead of `interval`: the interval is the nearest nanosecond.",
            ),
            Field::optional(
                "packets",
                Kind::Integer { min: 1, max: 1_000_000_000_000_000 },
                "without end",
                "How many datagrams or writes.",
            ),
        ]],
    },
    Variant {
        name: "transfers",
        text: "a list of transfers one after another on one connection (TCP): each starts at its time, or when the \
           one before has been written if that is later.",
        fields: &[&[Field::required(
            "transfers",
            Kind::Tables(&TRANSFER),
            "The transfers, in the order of their times, for example `[{ at = \"0s\", size = \"1MB\" }]`.",
        )]],
    },
    Variant {
        name: "on-off",
        text: "packets (UDP) or writes (TCP) at a rate during on periods, nothing during off periods; the periods \
               alternate, beginning with an on period.",
        fields: &[&[
            Field::required("rate", Kind::RATE, "Payload bits per second while on."),
            Field::required("payload", PAYLOAD, "Payload of each packet or write."),
            Field::required("on", TIME_OR_RANDOM, "Length of on periods."),
            Field::required("off", TIME_OR_RANDOM, "Length of off periods."),
            PACKETS,
        ]],
    },
    Variant {
        name: "poisson-packets",
        text: "datagrams that come as a Poisson process (UDP).",
        fields: &[&[
            Field::required("interval", Kind::INTERVAL, "Mean time from one to the next."),
            Field::required("size", SIZE_OR_RANDOM, "Size of each."),
            Field::default(
                "size_includes",
                Kind::Size { min: 0, max: 1000 },
                "0B",
                "Headers that `size` counts besides the payload, taken off it: with 30B (IPv4, UDP and the framing of a \
                 link) the size on the wire has the distribution, as queueing theory assumes.",
            ),
            PACKETS,
        ]],
    },
    Variant {
        name: "poisson-transfers",
        text: "transfers that come as a Poisson process, each on a connection of its own (TCP).",
        fields: &[&[
            Field::required("interval", Kind::INTERVAL, "Mean time from one to the next."),
            Field::required("size", SIZE_OR_RANDOM, "Size of each."),
            Field::optional("transfers", COUNT, "without end", "How many."),
        ]],
    },
    Variant {
        name: "request-response",
        text: "requests from `from`, each answered by `to` (TCP); the next follows when the response is there.",
        fields: &[&[
            Field::required("request", SIZE_OR_RANDOM, "Size of requests."),
            Field::required("response", SIZE_OR_RANDOM, "Size of responses."),
            Field::default("think", TIME_OR_RANDOM, "0s", "From the end of a request to the begin of its response."),
            Field::default("idle", TIME_OR_RANDOM, "0s", "From the end of a response to the next request."),
            Field::default(
                "connection",
                Kind::Choice(&[
                    Choice::new("kept", "one connection for all exchanges."),
                    Choice::new("per-exchange", "a new connection for each."),
                ]),
                "kept",
                "How connections are used.",
            ),
            Field::optional("exchanges", COUNT, "without end", "How many."),
        ]],
    },
    Variant {
        name: "tmix",
        text: "connections as a Tmix trace has them (TCP), opened by `from`: sizes, their order and waits, segment sizes and \
               receive windows. See docs/tmix.md.",
        fields: &[&[
            Field::optional(
                "file",
                Kind::Text,
                "none",
                "A trace in either format, by its path from this file's folder.",
            ),
            Field::optional(
                "trace",
                Kind::Choice(TRACES),
                "the flow's name, if it is one of these; else `\"r4s1\"`",
                "A synthetic trace, by its name in the Common TCP Evaluation Suite.",
            ),
            Field::optional(
                "folder",
                Kind::Text,
                "none",
                "A folder of traces, by its path from this file's: of it the file named as `trace` says and ending with \
                 `.org`, `.orig`, `.alt` or `.cvec`, in place of the synthetic one.",
            ),
            Field::default("trace_seed", SEED, "1", "Seed of the synthetic traces."),
            Field::default(
                "trace_length",
                Kind::INTERVAL,
                "3000s",
                "How much of a trace is used; of a shorter one all.",
            ),
            Field::default(
                "scale",
                Kind::Number { min: 1e-6, max: 1e9 },
                "1",
                "Time of the run over time of the trace: 2 halves the load.",
            ),
            Field::default("bin", Kind::INTERVAL, "5s", "The trace is cut into bins of so much of the run's time."),
            Field::default("shuffle", Kind::Boolean, "true", "Whether the bins come in random order."),
            Field::optional("shuffle_seed", SEED, "the scenario's `seed`", "Seed of that order."),
            Field::default(
                "prefill",
                Kind::DURATION,
                "0s",
                "Of connections that start before this time only those that live longer than half of it are kept...",
            ),
            Field::optional(
                "prefill_interval",
                Kind::DURATION,
                "`prefill`",
                "...and start within this time before its end.",
            ),
            Field::default(
                "prefill_share",
                Kind::RATE,
                "1Mbit/s",
                "The rate by which lives are estimated: a connection's share of the link.",
            ),
            Field::default(
                "segments",
                Kind::Choice(&[
                    Choice::new("trace", "as the trace says, where it does."),
                    Choice::new("flow", "`mss` of `[flow.tcp]`."),
                ]),
                "trace",
                "Payload of full segments.",
            ),
            Field::default(
                "windows",
                Kind::Choice(&[
                    Choice::new("trace", "as the trace says, where it does."),
                    Choice::new("flow", "`receive_buffer` of `[flow.tcp]`."),
                ]),
                "trace",
                "Receive windows.",
            ),
            Field::default(
                "padded",
                Kind::Boolean,
                "false",
                "Fill each unit up to whole segments, as ns-2's one-way TCP does.",
            ),
            Field::default(
                "exchanges",
                Kind::Boolean,
                "false",
                "Whether each exchange has a row in `completions.csv`; response times by size are in `figures.csv` anyway.",
            ),
        ]],
    },
    Variant {
        name: "video-cbr",
        text: "video at a constant bit rate: groups of an I frame and P frames, each frame in packets (UDP) or writes \
               (TCP) that follow one another at once.",
        fields: &[&[
            Field::required("rate", Kind::RATE, "Payload bits per second over a group."),
            Field::default("frame_rate", Kind::Number { min: 0.1, max: 1000.0 }, "25.0", "Frames per second."),
            Field::default("group", Kind::Integer { min: 1, max: 10_000 }, "12", "From one I frame to the next.")
                .unit("frames"),
            Field::default(
                "i_to_p",
                Kind::Number { min: 1.0, max: 1000.0 },
                "3.0",
                "Size of an I frame over a P frame.",
            ),
            Field::default("payload", PAYLOAD, "1200B", "Largest payload of a packet or write."),
            Field::optional("frames", COUNT, "without end", "How many frames."),
        ]],
    },
    Variant {
        name: "video-abr",
        text: "adaptive streaming (TCP): `from` is the player, which requests segment after segment from `to` and chooses \
               the bit rate of each.",
        fields: &[&[
            Field::required("ladder", Kind::List(&Kind::RATE), "Bit rates to choose from, ascending."),
            Field::default("segment", Kind::INTERVAL, "4s", "Playing time of a segment."),
            Field::optional("segments", COUNT, "without end", "Segments of the video."),
            Field::default("request", Kind::Size { min: 16, max: 1 << 20 }, "300B", "Size of a request."),
            Field::default("start_level", Kind::DURATION, "4s", "Playback starts when so much is buffered."),
            Field::default("resume_level", Kind::DURATION, "4s", "Playback goes on after a stall at this level."),
            Field::default("max_level", Kind::DURATION, "30s", "Size of the player's buffer."),
            Field::default(
                "choice",
                Kind::Choice(&[
                    Choice::new("buffer", "by the buffer's level: BBA-0 (Huang et al., SIGCOMM 2014)."),
                    Choice::new("throughput", "by the harmonic mean of the last throughputs."),
                ]),
                "buffer",
                "How a bit rate is chosen.",
            ),
            Field::default(
                "reservoir",
                Kind::DURATION,
                "8s",
                "With `buffer`: level up to which the lowest rate is taken.",
            ),
            Field::default("cushion", Kind::INTERVAL, "18s", "With `buffer`: from there to the highest rate."),
            Field::default(
                "safety",
                Kind::Number { min: 0.01, max: 1.0 },
                "0.9",
                "With `throughput`: the part of it that is used.",
            ),
            Field::default(
                "samples",
                Kind::Integer { min: 1, max: 1000 },
                "5",
                "With `throughput`: segments in the mean.",
            ),
        ]],
    },
    Variant {
        name: "web",
        text: "web pages: `from` is the browser, which fetches pages of many objects from `to`. See docs/web-pages.md.",
        fields: &[web::FIELDS],
    },
    Variant {
        name: "gaming",
        text: "a first-person shooter's state updates (UDP): `from` is the player, `to` the server.",
        fields: &[&[
            Field::default(
                "model",
                Kind::Choice(&[
                    Choice::new("counter-strike", "Färber, NetGames 2002."),
                    Choice::new("ngmn", "the gaming user of NGMN (2008) and 3GPP R1-070674."),
                ]),
                "counter-strike",
                "Sizes and intervals.",
            ),
            Field::optional("time", Kind::INTERVAL, "without end", "How long each side sends."),
        ]],
    },
    Variant {
        name: "voice",
        text: "a call (UDP): speech under an RTP header, in talk spurts or all the time.",
        fields: &[&[
            Field::default(
                "codec",
                Kind::Choice(&[
                    Choice::new("g711", "64 kbit/s: 172 bytes every 20 ms with the RTP header."),
                    Choice::new("g729", "8 kbit/s: 32 bytes every 20 ms with the RTP header."),
                    Choice::new("amr", "12.2 kbit/s: 44 bytes every 20 ms with the RTP header."),
                ]),
                "g711",
                "Sizes and intervals.",
            ),
            Field::default(
                "silence_suppression",
                Kind::Boolean,
                "true",
                "Talk spurts of 1.004 s and pauses of 1.587 s in the mean, both exponential (ITU-T P.59).",
            ),
            Field::default("both_ways", Kind::Boolean, "true", "Whether the callee speaks too."),
            Field::optional("time", Kind::INTERVAL, "without end", "How long each side speaks."),
        ]],
    },
    Variant { name: "idle", text: "opens the connection and stays silent (TCP).", fields: &[] },
    Variant {
        name: "tunnel",
        text: "carries what other flows send through it, which name it in `via` (MASQUE).",
        fields: &[],
    },
];

static TRANSFER: Table = Table {
    name: "transfer",
    text: "One transfer of a list.",
    fields: &[&[
        Field::required("at", Kind::DURATION, "When, counted from the start of the flow."),
        Field::required("size", Kind::SIZE, "How much."),
    ]],
    ..Table::EMPTY
};

/// Over what a workload can run.
#[derive(Clone, Copy)]
pub(super) struct Transports {
    pub(super) tcp: bool,
    pub(super) udp: bool,
    pub(super) quic: bool,
    pub(super) masque: bool,
}

/// Over what the workload of this name can run.
pub(super) fn transports(kind: &str) -> Transports {
    const NONE: Transports = Transports { tcp: false, udp: false, quic: false, masque: false };
    match kind {
        "constant-rate" | "on-off" | "video-cbr" => Transports { tcp: true, udp: true, quic: true, ..NONE },
        "poisson-packets" | "gaming" | "voice" => Transports { udp: true, ..NONE },
        // A trace says of its connections what only TCP has: a segment size.
        "tmix" => Transports { tcp: true, ..NONE },
        "tunnel" => Transports { masque: true, ..NONE },
        _ => Transports { tcp: true, quic: true, ..NONE },
    }
}

/// What a flow sends. `None` on an error.
pub(super) fn workload(tree: &Tree, path: &str, check: &mut Check) -> Option<Workload> {
    let kind = tree.choice("workload");
    let has = tree.choice("protocol");
    let udp = has == "udp";
    let over = transports(kind);
    let can = |over: Transports| match has {
        "udp" => over.udp,
        "quic" => over.quic,
        "masque" => over.masque,
        _ => over.tcp,
    };
    if !can(over) {
        let at = if tree.is_given("workload") { "workload" } else { "protocol" };
        let needed = match over {
            Transports { tcp: true, .. } => "TCP",
            Transports { masque: true, .. } => "MASQUE",
            _ => "UDP",
        };
        let message = format!("workload = \"{kind}\" needs {needed}, and {path} has protocol = \"{has}\"");
        let others = LIST.iter().map(|variant| variant.name).filter(|name| can(transports(name)));
        check.error(
            tree.place_of(at),
            &format!("{path}.{at}"),
            message,
            others.map(|name| format!("\"{name}\"")).collect(),
        );
        return None;
    }
    let described = match kind {
        "bulk" => {
            let size_bytes = tree.get("size").map(Value::size);
            let random_content = tree.choice("content") == "random";
            return Some(Workload::Bulk { size_bytes, write_bytes: tree.size("write_size"), random_content });
        }
        "constant-rate" => return constant_rate(tree, udp, path, check),
        "transfers" => return transfers(tree, path, check),
        "idle" => return Some(Workload::Idle),
        "tunnel" => return Some(Workload::Tunnel),
        "on-off" => on_off(tree, path, check)?,
        "poisson-packets" => poisson_packets(tree, path, check)?,
        "poisson-transfers" => poisson_transfers(tree, path, check)?,
        "request-response" => request_response(tree, path, check)?,
        "video-cbr" => video_cbr(tree),
        "video-abr" => video_abr(tree),
        "gaming" => gaming(tree),
        "tmix" => return tmix(tree, path, check),
        "web" => web::workload(tree, path, check)?,
        _ => voice(tree),
    };
    match rule(&described) {
        Ok(()) => Some(described),
        Err(rule) => {
            check.error(tree.place, path, format!("{path} makes no sense as {kind}"), vec![rule.to_string()]);
            None
        }
    }
}

/// What the model itself says of its description.
fn rule(workload: &Workload) -> Result<(), Invalid> {
    match workload {
        Workload::OnOff(spec) => spec.check(),
        Workload::PoissonPackets(spec) => spec.check(),
        Workload::PoissonTransfers(spec) => spec.check(),
        Workload::RequestResponse(spec) => spec.check(),
        Workload::VideoCbr(spec) => spec.check(),
        Workload::VideoAbr(spec) => spec.check(),
        Workload::Web(spec) => spec.check(),
        Workload::Gaming(spec) => spec.check(),
        Workload::Voice(spec) => spec.check(),
        Workload::Bulk { .. } | Workload::ConstantRate { .. } | Workload::Transfers { .. } | Workload::Idle => Ok(()),
        Workload::Tmix(_) | Workload::Tunnel => Ok(()),
    }
}

fn count(tree: &Tree, key: &str) -> Option<u64> {
    tree.get(key).map(|count| u64::try_from(count.integer()).unwrap_or_default())
}

fn small(tree: &Tree, key: &str) -> u32 {
    u32::try_from(tree.size(key)).unwrap_or(u32::MAX)
}

fn on_off(tree: &Tree, path: &str, check: &mut Check) -> Option<Workload> {
    Some(Workload::OnOff(Box::new(OnOffSpec {
        rate: tree.rate("rate"),
        payload_bytes: small(tree, "payload"),
        on_s: distribution(tree, "on", path, check)?,
        off_s: distribution(tree, "off", path, check)?,
        count: count(tree, "packets"),
    })))
}

fn poisson_packets(tree: &Tree, path: &str, check: &mut Check) -> Option<Workload> {
    Some(Workload::PoissonPackets(Box::new(PoissonPacketsSpec {
        mean_interval: tree.duration("interval"),
        size_bytes: distribution(tree, "size", path, check)?,
        header_bytes: small(tree, "size_includes"),
        max_payload_bytes: LARGEST_DATAGRAM as u32,
        count: count(tree, "packets"),
    })))
}

fn poisson_transfers(tree: &Tree, path: &str, check: &mut Check) -> Option<Workload> {
    Some(Workload::PoissonTransfers(Box::new(PoissonTransfersSpec {
        mean_interval: tree.duration("interval"),
        size_bytes: distribution(tree, "size", path, check)?,
        count: count(tree, "transfers"),
    })))
}

fn request_response(tree: &Tree, path: &str, check: &mut Check) -> Option<Workload> {
    Some(Workload::RequestResponse(Box::new(RequestResponseSpec {
        request_bytes: distribution(tree, "request", path, check)?,
        response_bytes: distribution(tree, "response", path, check)?,
        think_s: distribution(tree, "think", path, check)?,
        idle_s: distribution(tree, "idle", path, check)?,
        connection: match tree.choice("connection") {
            "kept" => ConnectionUse::Kept,
            _ => ConnectionUse::PerExchange,
        },
        count: count(tree, "exchanges"),
    })))
}

/// Endings of trace files.
const ENDINGS: [&str; 4] = ["org", "orig", "alt", "cvec"];

/// The file of a trace in a folder; where there is none, the name that is missed when it is to be read.
fn trace_in(folder: &Path, name: &str) -> PathBuf {
    let candidates = ENDINGS.map(|ending| folder.join(format!("{name}.{ending}")));
    let found = candidates.iter().find(|file| file.is_file());
    found.unwrap_or(&candidates[0]).clone()
}

fn tmix(tree: &Tree, path: &str, check: &mut Check) -> Option<Workload> {
    let seed = |key: &str| tree.get(key).map(|seed| u64::try_from(seed.integer()).unwrap_or_default());
    let file = tree.get("file").map(|value| value.text().to_owned());
    let name = tree.get("trace").map(|_| tree.choice("trace").to_owned());
    let here = Path::new(check.sources.file()).parent().unwrap_or(Path::new("")).to_owned();
    let folder = tree.get("folder").map(|value| here.join(value.text()));
    let trace = match (file, folder, name) {
        (Some(_), folder, name) if folder.is_some() || name.is_some() => {
            let other = if folder.is_some() { "folder" } else { "trace" };
            let message = format!("{path} has a file and a {other}");
            check.error(tree.place_of(other), &format!("{path}.{other}"), message, vec!["one of the two".into()]);
            return None;
        }
        (Some(file), ..) => TmixTrace::File(here.join(file)),
        (None, folder, name) => {
            let flow = tree.get("name").map(|name| name.text().to_owned());
            let name = name.or(flow.filter(|flow| TRACES.iter().any(|trace| trace.name == flow)));
            let name = name.unwrap_or_else(|| "r4s1".to_owned());
            match folder {
                Some(folder) => TmixTrace::File(trace_in(&folder, &name)),
                None => TmixTrace::Synthetic { name, seed: seed("trace_seed").unwrap_or_default() },
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
    let shuffled = tree.boolean("shuffle");
    Some(Workload::Tmix(Box::new(TmixWorkload {
        trace,
        scale: tree.number("scale"),
        bin: tree.duration("bin"),
        order: if shuffled { Order::Shuffled } else { Order::Recorded },
        shuffle_seed: seed("shuffle_seed"),
        trace_length: tree.duration("trace_length"),
        prefill,
        options: TmixOptions {
            mss_of_trace: tree.choice("segments") == "trace",
            window_of_trace: tree.choice("windows") == "trace",
            padded: tree.boolean("padded"),
            exchanges: tree.boolean("exchanges"),
            ..TmixOptions::default()
        },
    })))
}

fn video_cbr(tree: &Tree) -> Workload {
    Workload::VideoCbr(Box::new(VideoCbrSpec {
        rate: tree.rate("rate"),
        frames_per_s: tree.number("frame_rate"),
        group_frames: u32::try_from(tree.integer("group")).unwrap_or(u32::MAX),
        i_to_p_ratio: tree.number("i_to_p"),
        max_payload_bytes: small(tree, "payload"),
        frames: count(tree, "frames"),
    }))
}

fn video_abr(tree: &Tree) -> Workload {
    Workload::VideoAbr(Box::new(VideoAbrSpec {
        ladder: tree.list("ladder").iter().map(Value::rate).collect(),
        segment: tree.duration("segment"),
        segments: count(tree, "segments"),
        request_bytes: small(tree, "request"),
        start_level: tree.duration("start_level"),
        resume_level: tree.duration("resume_level"),
        max_level: tree.duration("max_level"),
        choice: match tree.choice("choice") {
            "buffer" => RateChoice::Buffer { reservoir: tree.duration("reservoir"), cushion: tree.duration("cushion") },
            _ => RateChoice::Throughput {
                safety: tree.number("safety"),
                samples: u32::try_from(tree.integer("samples")).unwrap_or(u32::MAX),
            },
        },
    }))
}

fn gaming(tree: &Tree) -> Workload {
    let model = match tree.choice("model") {
        "ngmn" => GamingSpec::ngmn(),
        _ => GamingSpec::counter_strike(),
    };
    Workload::Gaming(Box::new(GamingSpec { duration: tree.get("time").map(Value::duration), ..model }))
}

fn voice(tree: &Tree) -> Workload {
    let codec = match tree.choice("codec") {
        "g729" => VoiceSpec::g729(),
        "amr" => VoiceSpec::amr_12_2(),
        _ => VoiceSpec::g711(),
    };
    Workload::Voice(Box::new(VoiceSpec {
        talk_spurts: tree.boolean("silence_suppression").then(TalkSpurts::p59),
        both_ways: tree.boolean("both_ways"),
        duration: tree.get("time").map(Value::duration),
        ..codec
    }))
}

fn constant_rate(tree: &Tree, udp: bool, path: &str, check: &mut Check) -> Option<Workload> {
    let payload = tree.size("payload");
    if udp && payload > LARGEST_DATAGRAM {
        let message = format!("{payload} bytes do not fit into a UDP datagram");
        let expected = vec![format!("at most {LARGEST_DATAGRAM}B")];
        check.error(tree.place_of("payload"), &format!("{path}.payload"), message, expected);
        return None;
    }
    let interval = match (tree.get("interval"), tree.get("rate")) {
        (Some(interval), None) => interval.duration(),
        (None, Some(rate)) => {
            let bits_per_second = u128::from(rate.rate().bits_per_second());
            let nanoseconds = (u128::from(payload) * 8_000_000_000 + bits_per_second / 2) / bits_per_second;
            if nanoseconds == 0 {
                let message = format!("at {} {payload} bytes take less than a nanosecond", rate.rate());
                check.error(rate.place, &format!("{path}.rate"), message, vec!["a lower rate".into()]);
                return None;
            }
            Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX)).min(crate::schema::LONGEST)
        }
        (None, None) => {
            let message = format!("{path} says neither interval nor rate");
            check.missing(tree.place, &format!("{path}.interval"), message, vec!["interval".into(), "rate".into()]);
            return None;
        }
        (Some(_), Some(rate)) => {
            let message = format!("{path} has an interval and a rate");
            check.error(rate.place, &format!("{path}.rate"), message, vec!["one of the two".into()]);
            return None;
        }
    };
    Some(Workload::ConstantRate {
        payload_bytes: u32::try_from(payload).unwrap_or(u32::MAX),
        interval,
        count: tree.get("packets").map(|count| u64::try_from(count.integer()).unwrap_or_default()),
    })
}

fn transfers(tree: &Tree, path: &str, check: &mut Check) -> Option<Workload> {
    let mut transfers: Vec<Transfer> = Vec::new();
    for (index, entry) in tree.tables("transfers").iter().enumerate() {
        let at = entry.duration("at");
        if transfers.last().is_some_and(|before| before.at > at) {
            let message = format!("the transfer at {at} comes after a later one");
            let expected = vec!["transfers in the order of their times".into()];
            check.error(entry.place_of("at"), &format!("{path}.transfers.{index}.at"), message, expected);
            return None;
        }
        transfers.push(Transfer { at, size_bytes: entry.size("size") });
    }
    if transfers.is_empty() {
        let place = tree.place_of("transfers");
        check.error(place, &format!("{path}.transfers"), "the list is empty", vec!["at least one transfer".into()]);
        return None;
    }
    Some(Workload::Transfers { transfers })
}
