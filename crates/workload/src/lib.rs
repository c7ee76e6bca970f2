//! What applications send, and when.
//!
//! An [`Application`] is a state machine at one host. It is told that it starts, that its timer has come up, or that
//! something happened on one of its streams; it acts through [`Io`], which is whatever transport the scenario chose.
//! It reads no clock and draws no random numbers of its own.

pub mod application;
mod bulk;
mod constant_rate;
mod distribution;
mod gaming;
mod idle;
mod invalid;
mod normal;
mod on_off;
mod outlet;
mod plan;
mod poisson;
mod request_response;
mod sink;
mod transfers;
mod video_abr;
mod video_cbr;
mod voice;

pub use application::{Application, Completion, Figure, Io, Progress, StreamId};
pub use bulk::Bulk;
pub use constant_rate::ConstantRate;
pub use distribution::Distribution;
pub use gaming::{GamePackets, GamingSpec};
pub use idle::Idle;
pub use invalid::Invalid;
pub use on_off::{OnOff, OnOffSpec};
pub use poisson::{
    PoissonPackets, PoissonPacketsSpec, PoissonTransfers, PoissonTransfersAcceptor, PoissonTransfersSpec,
};
pub use request_response::{ConnectionUse, RequestResponseSpec};
pub use sink::Sink;
pub use transfers::{Transfer, Transfers};
pub use video_abr::{RateChoice, VideoAbrSpec};
pub use video_cbr::VideoCbrSpec;
pub use voice::{TalkSpurts, VoiceSpec};

/// A workload that scenarios can name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
}

/// The workloads of this version.
pub const CATALOGUE: &[Entry] = &[
    Entry { name: "bulk", summary: "as much as the transport takes, up to a size, in writes of a given size" },
    Entry { name: "constant-rate", summary: "datagrams or writes of one size at a constant interval" },
    Entry { name: "transfers", summary: "a list of transfers, each at its time, on one connection" },
    Entry { name: "idle", summary: "opens a connection and stays silent" },
];
