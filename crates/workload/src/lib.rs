//! What applications send, and when.
//!
//! An [`Application`] is a state machine at one host. It is told that it starts, that its timer has come up, or that
//! something happened on one of its streams; it acts through [`Io`], which is whatever transport the scenario chose.
//! It reads no clock and draws no random numbers of its own: its random [`Stream`](fullpipe_units::Stream) is handed in
//! when it is made. What a server must know of a client's wishes is either drawn at both ends from equal copies of one
//! stream (request-response, Poisson transfers, pages) or written into the request (adaptive video, which object of a page).

pub mod application;
mod bulk;
mod constant_rate;
mod content;
mod gaming;
mod idle;
mod on_off;
mod outlet;
mod plan;
mod poisson;
mod request_response;
mod sink;
mod tmix;
mod transfers;
mod video_abr;
mod video_cbr;
mod voice;
mod web;

pub use application::{Application, Completion, Figure, Io, OpenOptions, Progress, StreamId};
pub use bulk::Bulk;
pub use constant_rate::ConstantRate;
pub use content::{Content, Digest};
pub use fullpipe_units::{Distribution, Invalid};
pub use gaming::{GamePackets, Gaming, GamingSpec};
pub use idle::Idle;
pub use on_off::{OnOff, OnOffSpec};
pub use poisson::{
    PoissonPackets, PoissonPacketsSpec, PoissonTransfers, PoissonTransfersAcceptor, PoissonTransfersSpec,
};
pub use request_response::{ConnectionUse, RequestResponseClient, RequestResponseServer, RequestResponseSpec};
pub use sink::Sink;
pub use tmix::{BoxedTrace, SharedTrace, TmixAcceptor, TmixInitiator, TmixOptions};
pub use transfers::{Transfer, Transfers};
pub use video_abr::{RateChoice, VideoAbrClient, VideoAbrServer, VideoAbrSpec};
pub use video_cbr::{VideoCbr, VideoCbrSpec};
pub use voice::{TalkSpurts, Voice, VoiceSpec};
pub use web::{
    Dependencies, Http, Law, ObjectSpec, PageLaws, PageSource, WebClient, WebCompletions, WebServer, WebSpec,
};

/// The figures that applications of this crate tell, and then those of QUIC's ends and of tunnels; see [`Figure`].
pub const FIGURE_NAMES: [&str; 63] = [
    "segments",
    "switches",
    "rebuffers",
    "rebuffer_s",
    "startup_s",
    "mean_bit_rate_bps",
    "exchanges",
    "exchange_mean_s",
    "exchange_max_s",
    "exchanges_failed",
    "transfers_begun",
    "transfers",
    "transfer_mean_s",
    "transfer_max_s",
    "connections_begun",
    "connections_finished",
    "connections_broken_off",
    "connections_open",
    "trace_broken",
    "responses_1kB",
    "mean_response_1kB_s",
    "median_response_1kB_s",
    "p95_response_1kB_s",
    "responses_10kB",
    "mean_response_10kB_s",
    "median_response_10kB_s",
    "p95_response_10kB_s",
    "responses_100kB",
    "mean_response_100kB_s",
    "median_response_100kB_s",
    "p95_response_100kB_s",
    "responses_1MB",
    "mean_response_1MB_s",
    "median_response_1MB_s",
    "p95_response_1MB_s",
    "responses_above",
    "mean_response_above_s",
    "median_response_above_s",
    "p95_response_above_s",
    "pages",
    "pages_failed",
    "page_load_mean_s",
    "page_load_median_s",
    "page_load_p95_s",
    "page_main_mean_s",
    "page_main_median_s",
    "stream_1_load_mean_s",
    "stream_1_load_p25_s",
    "stream_1_load_median_s",
    "stream_1_load_p75_s",
    "stream_2_load_mean_s",
    "stream_2_load_p25_s",
    "stream_2_load_median_s",
    "stream_2_load_p75_s",
    "quic_packets_sent",
    "quic_packets_lost",
    "quic_mean_rtt_s",
    "tunnel_mean_rtt_s",
    "tunnel_dropped_too_large",
    "tunnel_dropped_queue",
    "tunnel_peak_queue_bytes",
    "tunnel_requests_refused",
    "tunnel_requests_open",
];

/// Largest payload of a UDP datagram over IPv4.
const MAX_DATAGRAM_BYTES: u32 = 65_507;

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
    Entry { name: "on-off", summary: "datagrams or writes at a rate during on periods of random length" },
    Entry { name: "poisson-packets", summary: "datagrams that arrive as a Poisson process, of random size" },
    Entry { name: "poisson-transfers", summary: "transfers of random size, a connection each, as a Poisson process" },
    Entry { name: "request-response", summary: "requests of a client, answers of a server, think and idle times" },
    Entry { name: "video-cbr", summary: "video frames at a constant bit rate, as datagrams or writes" },
    Entry { name: "video-abr", summary: "segments of a video, each at a bit rate that the client adapts" },
    Entry { name: "gaming", summary: "state updates of a first-person shooter, both ways" },
    Entry { name: "voice", summary: "packets of a speech codec, all the time or in talk spurts" },
    Entry { name: "web", summary: "pages of many objects, over HTTP/1.1, HTTP/2, HTTP/3 or a few streams" },
    Entry { name: "tmix", summary: "connections as a trace has them, scaled and shuffled" },
    Entry { name: "idle", summary: "opens a connection and stays silent" },
];
