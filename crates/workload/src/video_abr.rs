//! Adaptive bit rate streaming: a client fetches segments of a video and selects a bit rate for each.
//!
//! The structure is that of DASH (ISO/IEC 23009-1) over one persistent connection. The client requests one segment at a time. The
//! server responds at once with rate times playing time, rounded down to whole bytes. A segment can be played when it is
//! complete. Playback starts when `start_level` is buffered. When the buffer is empty, playback stalls until `resume_level` is
//! buffered again, the buffer has no room for another segment, or the video is complete. The client requests the next segment as
//! soon as the buffer has room for it, and selects the bit rate (`choice.rs`) at that moment. The first request is sent when the
//! connection is opened, so its time and its throughput sample include the handshake.
//!
//! The request contains the selected rate, as a URL would. The first eight bytes are the rate in bit/s and the next
//! eight the segment's number, both big-endian. These are the only bytes with content; segments are lengths.

mod choice;
mod client;
mod playback;
mod server;

pub use client::VideoAbrClient;
pub use server::VideoAbrServer;

use crate::application::{Application, ApplicationMetric};
use crate::component::{COUNT, FlowContext, Protocol, WorkloadComponent, WorkloadSettings, count, small};
use crate::demand::{self, Demand};
use fullpipe_schema::component::{Declaration, choices};
use fullpipe_schema::{Choice, FieldKind, Tree, Value, keys, named};
use fullpipe_units::{Duration, ParameterError, Rate};

pub(crate) static VIDEO_ABR: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "video-abr",
        text: "adaptive streaming (TCP): `from` is the player, which requests one segment after another from `to` and chooses \
               the bit rate of each. Default port 80.",
        fields: &[keys! {
            /// Available bit rates, in ascending order.
            "ladder": FieldKind::List(&FieldKind::RATE), required;
            /// Playing time of a segment.
            "segment": FieldKind::INTERVAL, default "4s";
            /// Number of segments.
            "segments": COUNT, optional "without end";
            /// Size of a request.
            "request": FieldKind::size(16, 1 << 20), default "300B";
            /// Buffer level at which playback starts.
            "start_level": FieldKind::DURATION, default "4s";
            /// Buffer level at which playback resumes after a stall.
            "resume_level": FieldKind::DURATION, default "4s";
            /// Size of the player's buffer.
            "max_level": FieldKind::DURATION, default "30s";
            /// Algorithm that selects the bit rate.
            "choice": FieldKind::Choice(&choices(&CHOICE)), default "buffer";
            /// With `buffer`: level up to which the lowest rate is selected.
            "reservoir": FieldKind::DURATION, default "8s";
            /// With `buffer`: range of levels above `reservoir` over which the rate rises to the highest.
            "cushion": FieldKind::INTERVAL, default "18s";
            /// With `throughput`: fraction of the measured throughput that is used.
            "safety": FieldKind::number(0.01, 1.0), default "0.9";
            /// With `throughput`: number of segments in the mean.
            "samples": FieldKind::integer(1, 1000), default "5";
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
            choice: tree.choice_value("choice", &CHOICE)(tree),
        }))
    },
    ..WorkloadComponent::EMPTY
};

/// Reads the keys of one algorithm of rate selection.
type ReadChoice = fn(&Tree) -> AbrAlgorithm;

static CHOICE: [(Choice, ReadChoice); 2] = named! {
    /// by the buffer's level: BBA-0 (Huang et al., SIGCOMM 2014).
    "buffer" => |tree| AbrAlgorithm::Buffer {
        reservoir: tree.duration("reservoir"),
        cushion: tree.duration("cushion"),
    };
    /// by the harmonic mean of the last throughputs.
    "throughput" => |tree| AbrAlgorithm::Throughput {
        safety: tree.number("safety"),
        samples: u32::try_from(tree.integer("samples")).unwrap_or(u32::MAX),
    };
};

static METRICS: [ApplicationMetric; 2] = [
    ApplicationMetric::new("segments", "", "Segments that the player has received completely."),
    ApplicationMetric::new("switches", "", "Segments whose bit rate differs from that of the segment before."),
];

static STALLS: [ApplicationMetric; 2] = [
    ApplicationMetric::new(
        "rebuffers",
        "",
        "Number of stalls: times that the player's buffer became empty during playback; missing if playback never started.",
    ),
    ApplicationMetric::new("rebuffer_s", "s", "Total time of stalls; missing if playback never started."),
];

const STARTUP: ApplicationMetric =
    ApplicationMetric::new("startup_s", "s", "Time from the start of the flow to the start of playback.");
const MEAN_BIT_RATE: ApplicationMetric =
    ApplicationMetric::new("mean_bit_rate_bps", "bit/s", "Mean bit rate of the segments.");

/// Bytes of a request that have content.
const REQUEST_CONTENT_BYTES: u32 = 16;

/// Largest request in bytes; all of its bytes are generated.
const MAX_REQUEST_BYTES: u32 = 1 << 20;

/// The algorithm that selects the next segment's bit rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AbrAlgorithm {
    /// Selection by the buffer level: BBA-0 (Huang et al., SIGCOMM 2014).
    Buffer {
        /// Level up to which the lowest rate is selected.
        reservoir: Duration,
        /// Range above the reservoir over which the rate rises linearly from lowest to highest.
        cushion: Duration,
    },
    /// Selection by throughput: the highest rate not above `safety` times the harmonic mean of the last `samples`
    /// samples.
    Throughput {
        /// Fraction of the throughput that is used, for instance 0.9.
        safety: f64,
        /// Number of samples (segments) in the mean, for instance 5.
        samples: u32,
    },
}

/// The settings of a client and a server of video segments.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoAbrSpec {
    /// Available bit rates, ascending and not empty.
    pub ladder: Vec<Rate>,
    /// Playing time of a segment.
    pub segment: Duration,
    /// Number of segments (`None`: unlimited).
    pub segments: Option<u64>,
    /// Size of a request (from 16 bytes to 1 MiB).
    pub request_bytes: u32,
    /// Buffer level at which playback starts.
    pub start_level: Duration,
    /// Buffer level at which playback resumes after a stall.
    pub resume_level: Duration,
    /// Size of the buffer. The client requests a segment only if the buffer has room for it.
    pub max_level: Duration,
    /// The algorithm that selects the bit rate.
    pub choice: AbrAlgorithm,
}

impl WorkloadSettings for VideoAbrSpec {
    fn is_unlimited(&self) -> bool {
        self.segments.is_none()
    }

    /// The server sends most of the data, since requests are small.
    fn senders(&self) -> [bool; 2] {
        [false, true]
    }

    fn demand(&self, time_s: f64) -> Demand {
        // The player fetches ahead of the playing time by its buffer.
        let ahead_s = time_s + self.max_level.as_secs_f64();
        let segments = demand::count(ahead_s, self.segment.as_secs_f64(), self.segments);
        let highest = self.ladder.iter().map(|rate| rate.bits_per_second()).max().unwrap_or_default() as f64;
        let bytes = [f64::from(self.request_bytes), highest / 8.0 * self.segment.as_secs_f64()];
        let all = Demand { bytes: bytes.map(|each| each * segments), messages: [segments; 2], ..Demand::NO_DATA };
        Demand { timers: segments, ..all }.as_upper_bound("adaptive video, counted with its highest bit rate")
    }

    fn applications(&self, _: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        Ok([Box::new(VideoAbrClient::new(self)?), Box::new(VideoAbrServer::new(self)?)])
    }

    fn check(&self) -> Result<(), ParameterError> {
        let ascending = self.ladder.is_sorted_by(|lower, higher| lower < higher);
        ParameterError::ensure(ascending, "the bit rates of ladder must ascend")?;
        let smallest = self.ladder.first().map_or(0, |rate| rate.bytes_in(self.segment));
        ParameterError::ensure(smallest > 0, "a segment at the lowest bit rate of ladder must have at least 1 byte")?;
        let request = (REQUEST_CONTENT_BYTES..=MAX_REQUEST_BYTES).contains(&self.request_bytes);
        ParameterError::ensure(request, "request must have from 16 bytes to 1 MiB")?;
        let room = self.segment <= self.max_level;
        ParameterError::ensure(room, "buffer must have room for one segment")?;
        match self.choice {
            AbrAlgorithm::Buffer { cushion, .. } => {
                ParameterError::ensure(!cushion.is_zero(), "cushion must be positive")
            }
            AbrAlgorithm::Throughput { safety, samples } => {
                ParameterError::ensure(safety > 0.0 && safety.is_finite(), "safety must be positive")?;
                ParameterError::ensure(samples > 0, "samples must be at least 1")
            }
        }
    }
}
