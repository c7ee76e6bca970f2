//! Voice: packets of a speech codec, all the time or in talk spurts.

use crate::Distribution;
use fullpipe_units::Duration;

/// Silence suppression: a speaker's talk spurts and the pauses between.
#[derive(Clone, Debug, PartialEq)]
pub struct TalkSpurts {
    /// Lengths of talk spurts in seconds.
    pub talk_s: Distribution,
    /// Lengths of pauses in seconds.
    pub pause_s: Distribution,
}

/// A call.
#[derive(Clone, Debug, PartialEq)]
pub struct VoiceSpec {
    /// Speech and RTP header (12 bytes) of a packet.
    pub payload_bytes: u32,
    /// Time between packets while the speaker talks.
    pub interval: Duration,
    /// Silence suppression (`None`: packets all the time).
    pub talk_spurts: Option<TalkSpurts>,
    /// Whether the callee speaks too, or only listens.
    pub both_ways: bool,
    /// How long each side speaks, from its start (`None`: without end).
    pub duration: Option<Duration>,
}
