//! Video at a constant bit rate: a frame per frame time, in packets of at most a payload size.

use fullpipe_units::Rate;

/// A video source.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoCbrSpec {
    /// Rate of payload bits over a group of pictures.
    pub rate: Rate,
    /// Frames per second, for instance 25 or 29.97.
    pub frames_per_s: f64,
    /// Frames of a group of pictures, the first of which is an I frame and the others P frames; 1: I frames only.
    pub group_frames: u32,
    /// Size of an I frame over that of a P frame.
    pub i_to_p_ratio: f64,
    /// Largest payload of a packet.
    pub max_payload_bytes: u32,
    /// Frames to send (`None`: without end).
    pub frames: Option<u64>,
}
