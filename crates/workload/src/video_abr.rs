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

use crate::Invalid;
use fullpipe_units::{Duration, Rate};

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

impl VideoAbrSpec {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), Invalid> {
        let ascending = self.ladder.is_sorted_by(|lower, higher| lower < higher);
        Invalid::unless(ascending, "ladder: its bit rates ascend")?;
        let smallest = self.ladder.first().map_or(0, |rate| rate.bytes_in(self.segment));
        Invalid::unless(smallest > 0, "ladder: a segment at its lowest bit rate has at least a byte")?;
        let request = (REQUEST_CONTENT_BYTES..=MAX_REQUEST_BYTES).contains(&self.request_bytes);
        Invalid::unless(request, "request: it has from 16 bytes to 1 MiB")?;
        let room = self.segment <= self.max_level;
        Invalid::unless(room, "buffer: it has room for a segment")?;
        match self.choice {
            RateChoice::Buffer { cushion, .. } => Invalid::unless(!cushion.is_zero(), "cushion: it is positive"),
            RateChoice::Throughput { safety, samples } => {
                Invalid::unless(safety > 0.0 && safety.is_finite(), "safety: it is positive")?;
                Invalid::unless(samples > 0, "samples: there is at least one")
            }
        }
    }
}
