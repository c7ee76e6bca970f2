//! The physical layer: rates, durations, timing and packet error rates. All functions are pure.

pub mod band;
pub mod duration;
pub mod error;
pub mod rate;
pub mod timing;

pub use band::Band;
pub use duration::{DurationRule, ppdu_duration, psdu_bytes_within, response_rate};
pub use error::{Coding, ErrorModel};
pub use rate::{
    ChannelWidth, CodeRate, DsssRate, GuardInterval, MCS, Modulation, MultiStreamRate, OfdmRate, PhyKind, PhyRate,
    Preamble,
};
pub use timing::{AccessCategory, AccessParameters, Standard, Timing};
