//! Adaptive bit rate streaming: a client fetches segments of a video, each at a bit rate of its choice.

use fullpipe_units::{Duration, Rate};

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
    /// Size of a request (at least 16 bytes).
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
