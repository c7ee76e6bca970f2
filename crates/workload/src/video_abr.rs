//! Adaptive bit rate streaming: a client fetches segments of a video, each at a bit rate of its choice.
//!
//! The structure of DASH (ISO/IEC 23009-1) over one persistent connection: the client asks for one segment at a time,
//! the server answers at once with rate times playing time, to the byte below. A segment can be played when it is whole.
//! Playback starts when `start_level` is buffered; when the buffer runs dry it stalls until `resume_level` is buffered
//! again (or until the buffer has no room for another segment, or all is there). The next segment is asked for as soon
//! as the buffer has room for it. What is fetched is settled (`choice.rs`) at the moment of asking. The first segment is
//! asked for when the connection is opened, so its time, and what the client learns from it, includes the handshake.
//!
//! Only the client knows which rate it wants, so it writes that into its request, as a request for a URL would: the
//! first eight bytes are the rate in bit/s and the next eight the segment's number, both big-endian. These are the only
//! bytes with content; the segments are lengths.

mod choice;
mod client;
mod playback;
mod server;

pub use client::VideoAbrClient;
pub use server::VideoAbrServer;

use crate::application::{Application, Metric};
use crate::component::{COUNT, FlowContext, Protocol, WorkloadComponent, WorkloadSettings, count, small};
use crate::demand::{self, Demand};
use fullpipe_schema::component::{Declaration, choices};
use fullpipe_schema::{Choice, Kind, Tree, Value, keys, named};
use fullpipe_units::{Duration, Invalid, Rate};

pub(crate) static VIDEO_ABR: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "video-abr",
        text: "adaptive streaming (TCP): `from` is the player, which requests segment after segment from `to` and chooses \
               the bit rate of each. Default port 80.",
        fields: &[keys! {
            /// Bit rates to choose from, ascending.
            "ladder": Kind::List(&Kind::RATE), required;
            /// Playing time of a segment.
            "segment": Kind::INTERVAL, default "4s";
            /// Segments of the video.
            "segments": COUNT, optional "without end";
            /// Size of a request.
            "request": Kind::size(16, 1 << 20), default "300B";
            /// Playback starts when so much is buffered.
            "start_level": Kind::DURATION, default "4s";
            /// Playback goes on after a stall at this level.
            "resume_level": Kind::DURATION, default "4s";
            /// Size of the player's buffer.
            "max_level": Kind::DURATION, default "30s";
            /// How a bit rate is chosen.
            "choice": Kind::Choice(&choices(&CHOICE)), default "buffer";
            /// With `buffer`: level up to which the lowest rate is taken.
            "reservoir": Kind::DURATION, default "8s";
            /// With `buffer`: from there to the highest rate.
            "cushion": Kind::INTERVAL, default "18s";
            /// With `throughput`: the part of it that is used.
            "safety": Kind::number(0.01, 1.0), default "0.9";
            /// With `throughput`: segments in the mean.
            "samples": Kind::integer(1, 1000), default "5";
        }],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Quic],
    port: 80,
    metrics: &[&METRICS, &STALLS, &[STARTUP, MEAN_BIT_RATE]],
    read: |reader, _| {
        let tree = reader.tree;
        Ok(Box::new(VideoAbrSpec {
            ladder: tree.list("ladder").iter().map(Value::rate).collect(),
            segment: tree.duration("segment"),
            segments: count(tree, "segments"),
            request_bytes: small(tree, "request"),
            start_level: tree.duration("start_level"),
            resume_level: tree.duration("resume_level"),
            max_level: tree.duration("max_level"),
            choice: tree.chosen("choice", &CHOICE)(tree),
        }))
    },
    ..WorkloadComponent::EMPTY
};

/// Reads the keys of one way to choose a bit rate.
type ReadChoice = fn(&Tree) -> RateChoice;

static CHOICE: [(Choice, ReadChoice); 2] = named! {
    /// by the buffer's level: BBA-0 (Huang et al., SIGCOMM 2014).
    "buffer" => |tree| RateChoice::Buffer {
        reservoir: tree.duration("reservoir"),
        cushion: tree.duration("cushion"),
    };
    /// by the harmonic mean of the last throughputs.
    "throughput" => |tree| RateChoice::Throughput {
        safety: tree.number("safety"),
        samples: u32::try_from(tree.integer("samples")).unwrap_or(u32::MAX),
    };
};

static METRICS: [Metric; 2] = [
    Metric::new("segments", "", "Segments that the player has whole."),
    Metric::new("switches", "", "Segments whose bit rate differs from that of the segment before."),
];

static STALLS: [Metric; 2] = [
    Metric::new(
        "rebuffers",
        "",
        "Stalls: how often the player's buffer ran dry during playback; missing if playback never started.",
    ),
    Metric::new("rebuffer_s", "s", "Total time of stalls; missing if playback never started."),
];

const STARTUP: Metric = Metric::new("startup_s", "s", "Time from the start of the flow to the start of playback.");
const MEAN_BIT_RATE: Metric = Metric::new("mean_bit_rate_bps", "bit/s", "Mean bit rate of the segments.");

/// Bytes of a request that say what is wanted.
const REQUEST_CONTENT_BYTES: u32 = 16;

/// Largest request: its bytes are real ones.
const MAX_REQUEST_BYTES: u32 = 1 << 20;

/// How the client chooses the next segment's bit rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateChoice {
    /// By the buffer's level: BBA-0 (Huang et al., SIGCOMM 2014).
    Buffer {
        /// Up to this level the lowest rate is taken.
        reservoir: Duration,
        /// Over so much above the reservoir the rate rises linearly from lowest to highest.
        cushion: Duration,
    },
    /// By throughput: the highest rate not above `safety` times the harmonic mean of the last samples.
    Throughput {
        /// Part of the throughput that may be used, for instance 0.9.
        safety: f64,
        /// Number of samples (segments) in the mean, for instance 5.
        samples: u32,
    },
}

/// A client and a server of segments.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoAbrSpec {
    /// Bit rates offered, ascending and not empty.
    pub ladder: Vec<Rate>,
    /// Playing time of a segment.
    pub segment: Duration,
    /// Segments of the video (`None`: without end).
    pub segments: Option<u64>,
    /// Size of a request (from 16 bytes to 1 MiB).
    pub request_bytes: u32,
    /// Playback starts when so much is buffered.
    pub start_level: Duration,
    /// Playback resumes after a stall when so much is buffered.
    pub resume_level: Duration,
    /// The buffer's size: no segment is requested for which it has no room.
    pub max_level: Duration,
    /// How a bit rate is chosen.
    pub choice: RateChoice,
}

impl WorkloadSettings for VideoAbrSpec {
    fn is_unlimited(&self) -> bool {
        self.segments.is_none()
    }

    /// Requests are small.
    fn senders(&self) -> [bool; 2] {
        [false, true]
    }

    fn demand(&self, time_s: f64) -> Demand {
        // The player is ahead of the playing time by its buffer.
        let ahead_s = time_s + self.max_level.as_secs_f64();
        let segments = demand::count(ahead_s, self.segment.as_secs_f64(), self.segments);
        let highest = self.ladder.iter().map(|rate| rate.bits_per_second()).max().unwrap_or_default() as f64;
        let bytes = [f64::from(self.request_bytes), highest / 8.0 * self.segment.as_secs_f64()];
        let all = Demand { bytes: bytes.map(|each| each * segments), messages: [segments; 2], ..Demand::SILENT };
        Demand { timers: segments, ..all }.at_most("adaptive video, counted with its highest bit rate")
    }

    fn applications(&self, _: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], Invalid> {
        Ok([Box::new(VideoAbrClient::new(self)?), Box::new(VideoAbrServer::new(self)?)])
    }

    fn check(&self) -> Result<(), Invalid> {
        let ascending = self.ladder.is_sorted_by(|lower, higher| lower < higher);
        Invalid::unless(ascending, "the bit rates of ladder must ascend")?;
        let smallest = self.ladder.first().map_or(0, |rate| rate.bytes_in(self.segment));
        Invalid::unless(smallest > 0, "a segment at the lowest bit rate of ladder must have at least 1 byte")?;
        let request = (REQUEST_CONTENT_BYTES..=MAX_REQUEST_BYTES).contains(&self.request_bytes);
        Invalid::unless(request, "request must have from 16 bytes to 1 MiB")?;
        let room = self.segment <= self.max_level;
        Invalid::unless(room, "buffer must have room for one segment")?;
        match self.choice {
            RateChoice::Buffer { cushion, .. } => Invalid::unless(!cushion.is_zero(), "cushion must be positive"),
            RateChoice::Throughput { safety, samples } => {
                Invalid::unless(safety > 0.0 && safety.is_finite(), "safety must be positive")?;
                Invalid::unless(samples > 0, "samples must be at least 1")
            }
        }
    }
}
