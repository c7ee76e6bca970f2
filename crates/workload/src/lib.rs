//! Workloads: what applications send, and when.
//!
//! An [`Application`] is a state machine at one host. The host calls the application when the flow starts, when its
//! timer expires, and for each event on one of its streams. The application acts through [`Io`], which is independent
//! of the scenario's transport. It reads no clock of the machine and creates no random numbers: it receives a
//! [`RandomStream`](fullpipe_units::RandomStream) at construction. The data that a server needs to serve a request come
//! from one of two sources. Either both ends draw the data from equal copies of one random stream (request-response,
//! Poisson transfers, pages). Or the client writes the data into the request (adaptive video, the object of a page).
//!
//! The file of a workload declares a [`WorkloadComponent`]: the keys, transports, metrics and settings. The settings
//! create the two applications ([`WorkloadSettings`]). A new workload requires a new file, and two lines in this file.

pub mod application;
mod bulk;
mod component;
mod constant_rate;
mod content;
mod demand;
mod fetched;
mod gaming;
mod idle;
mod limited;
mod on_off;
mod outlet;
mod plan;
mod poisson;
mod request_response;
mod sink;
mod tmix;
mod transfers;
mod tunnel;
mod video_abr;
mod video_cbr;
mod voice;
mod web;

pub use application::{Application, ApplicationMetric, Completion, Io, MetricValue, OpenOptions, Progress, StreamId};
pub use bulk::{BulkSender, BulkSpec};
pub use component::{
    FlowContext, FlowTransport, Protocol, SocketTraffic, Workload, WorkloadCatalogue, WorkloadComponent,
    WorkloadParser, WorkloadSettings,
};
pub use constant_rate::{ConstantRateSender, ConstantRateSpec};
pub use content::{Content, Digest};
pub use demand::{Demand, Exchanges};
pub use fetched::DownloadSpec;
pub use fullpipe_units::{Distribution, ParameterError};
pub use gaming::{GamePackets, GamingEndpoint, GamingSpec};
pub use idle::{IdleApplication, IdleSpec};
pub use limited::{WriteLimit, WriteRate};
pub use on_off::{OnOffSender, OnOffSpec};
pub use poisson::{
    PoissonPacketsSender, PoissonPacketsSpec, PoissonTransfersAcceptor, PoissonTransfersInitiator, PoissonTransfersSpec,
};
pub use request_response::{ConnectionUse, RequestResponseClient, RequestResponseServer, RequestResponseSpec};
pub use sink::Sink;
pub use tmix::{BoxedTrace, SharedTrace, TmixAcceptor, TmixInitiator, TmixOptions, TmixSpec, TmixTraceSource};
pub use transfers::{Transfer, TransfersReceiver, TransfersSender, TransfersSpec};
pub use tunnel::TunnelSpec;
pub use video_abr::{AbrAlgorithm, VideoAbrClient, VideoAbrServer, VideoAbrSpec};
pub use video_cbr::{VideoCbrSender, VideoCbrSpec};
pub use voice::{TalkSpurts, VoiceEndpoint, VoiceSpec};
pub use web::{
    BoundedDistribution, CompletionUnit, Dependencies, ObjectSpec, PageDistributions, PageProtocol, PageSource,
    WebClient, WebServer, WebSpec,
};

use fullpipe_schema::Variant;

/// Largest payload of a UDP datagram over IPv4, in bytes.
const MAX_DATAGRAM_BYTES: u32 = 65_507;

/// The workloads in the order of lists and of the reference page.
const COMPONENTS: &[&WorkloadComponent] = &[
    &bulk::BULK,
    &constant_rate::CONSTANT_RATE,
    &transfers::TRANSFERS,
    &on_off::ON_OFF,
    &poisson::POISSON_PACKETS,
    &poisson::POISSON_TRANSFERS,
    &request_response::REQUEST_RESPONSE,
    &tmix::TMIX,
    &video_cbr::VIDEO_CBR,
    &video_abr::VIDEO_ABR,
    &web::WEB,
    &gaming::GAMING,
    &voice::VOICE,
    &idle::IDLE,
    &tunnel::TUNNEL,
];

/// All workloads.
pub static WORKLOADS: WorkloadCatalogue = WorkloadCatalogue(COMPONENTS);

/// The keys that each workload adds to a flow.
pub static VARIANTS: [Variant; COMPONENTS.len()] = component::variants(COMPONENTS);
