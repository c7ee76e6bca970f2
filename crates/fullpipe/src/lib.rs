//! The library of Fullpipe, a laboratory for transport protocols.
//!
//! A [`Simulation`] consists of a scenario as text, overrides, and your own components. Running it returns an
//! [`Outcome`]:
//!
//! ```
//! use fullpipe::Simulation;
//!
//! let outcome = Simulation::embedded("quick-start")?.run()?;
//! println!("{}", outcome.verdict());
//! for row in outcome.flow_rows() {
//!     println!("{}: {} packets received", row.flow, row.counters.rx_packets);
//! }
//! # Ok::<(), fullpipe::Error>(())
//! ```
//!
//! A scenario can also be [built in code](builder). A program can add these components by implementing their traits:
//!
//! | component | trait | example |
//! |---|---|---|
//! | a congestion control | [`congestion::Controller`] | `examples/congestion_control.rs` |
//! | a stream scheduler of the QUIC model | [`quic::Scheduler`] | `docs/add-a-stream-scheduler.md` |
//! | a queue discipline | [`network::QueueDiscipline`] | `examples/queue_discipline.rs` |
//! | a workload | [`workload::Application`] | `examples/workload.rs` |
//! | an access network | [`access::AccessNetworkComponent`] | `docs/add-an-access-network.md` |
//! | an observer | [`record::Observer`] | `examples/observer.rs` |
//!
//! # Stability
//!
//! This is the only Fullpipe crate with a stable interface. It follows semantic versioning: a program that compiles
//! with one release compiles with every later release that Cargo considers compatible. This documentation shows the
//! interface, and `crates/fullpipe/api.txt` lists it. Hidden items exist for the `fullpipe` command. They and the other
//! crates may change in any release. Results may also change in any release: [`BUILD`] identifies the build that
//! produced them.

/// Congestion controls.
pub mod congestion {
    pub use fullpipe_congestion::{
        Ack, CongestionEvent, ControlRequirements, Controller, DeliveryRate, EcnCodepoint, ExternalControl,
        PacketState, PlainAck, RecoveryExit, Timeout, WindowState,
    };

    #[doc(hidden)]
    pub use fullpipe_congestion::*;
}

/// Queue disciplines and media. A medium is a link with its own model, such as an access network.
pub mod network {
    pub use fullpipe_network::{
        CompletedFrame, Endpoint, EndpointPair, Exchange, Fifo, HeaderFields, Limit, Medium, MediumDirection,
        MediumFrame, MediumOutcome, NatCounters, PacketHandle, QueueDiscipline, QueuedPacket,
    };

    pub use fullpipe_wire::IpVersion;

    #[doc(hidden)]
    pub use fullpipe_network::*;
}

/// Stream schedulers of the QUIC model.
pub mod quic {
    pub use fullpipe_quic::scheduler::{Candidate, Scheduler};

    #[doc(hidden)]
    pub use fullpipe_quic::*;
}

/// Observers and the counters of observers and records.
pub mod record {
    pub use fullpipe_record::{
        DropReason, FlowCounters, LinkSummary, MediumExchange, Observer, PacketView, Protocol, TcpView, TrafficVolume,
        Transmission,
    };

    #[doc(hidden)]
    pub use fullpipe_record::*;
}

/// Scenarios: loading text into a description, and errors with their positions.
pub mod scenario {
    pub use fullpipe_scenario::description::{BdpLimit, Flow, Link, Node};
    pub use fullpipe_scenario::schema::Hint;
    pub use fullpipe_scenario::{Error, Errors, LoadedScenario, Override, Scenario, load};

    #[doc(hidden)]
    pub use fullpipe_scenario::*;
}

/// Access networks: their declarations, their settings in a scenario, and their reports.
pub mod access {
    pub use fullpipe_archive::reference::{ColumnReference, TableReference};
    pub use fullpipe_archive::{
        Cell, CellKind, Column, RecordError, RecordTable, TableReader, Tables, Warning, WarningKind, table,
    };
    pub use fullpipe_network::access::{
        AccessContext, AccessNetwork, AccessNetworkComponent, AccessNetworkSettings, ChoiceList, DirectionBounds,
        MediumCost, NodeLookup, StationDeclaration,
    };
    pub use fullpipe_network::metrics::{DROPS, QUEUE, QUEUE_DELAY, THROUGHPUT};
    pub use fullpipe_scenario::schema::component::{Declaration, DynPartialEq, InvalidSettings, SettingsReader};
    pub use fullpipe_scenario::schema::metric::{MetricDeclaration, Sample, TimeSum};
    pub use fullpipe_scenario::schema::{
        Choice, DefaultValue, Diagnostics, Entry, Field, FieldKind, FormerKey, Hint, NamedValue, Node, NodeContent,
        SourceLocation, Sources, Table, Tree, Value, ValueData, Variant, Variants, keys, named,
    };
}

/// The interface between workloads and transports.
pub mod transport {
    pub use bytes::Bytes;
    pub use fullpipe_transport::{CloseReason, Payload, Priority, Stream, TransportEvent};

    #[doc(hidden)]
    pub use fullpipe_transport::*;
}

/// Instants, durations, rates, identifiers and random streams.
pub mod units {
    pub use fullpipe_units::{
        Distribution, Duration, EcnCodepoint, FlowId, Instant, LinkId, NodeId, ParameterError, RandomStream, Rate,
    };

    #[doc(hidden)]
    pub use fullpipe_units::*;
}

/// Workloads.
pub mod workload {
    pub use fullpipe_workload::{
        Application, BulkSender, Completion, Content, Digest, Io, MetricValue, OpenOptions, Progress, Sink, StreamId,
    };

    #[doc(hidden)]
    pub use fullpipe_workload::*;
}

/// The rows of a run's records and the auditor's verdict.
pub mod outcome {
    pub use fullpipe_archive::{Columns, UnknownColumn};
    pub use fullpipe_audit::{AuditReport, Failure, Rule, Subject};
    pub use fullpipe_lab::{
        CompletionRow, ContentRow, DelayPercentiles, EventOutcome, FigureRow, FlowRow, LinkRow, MeasuredLink,
        RunTotals, SeriesRow, UnknownSeries,
    };
    pub use fullpipe_network::LinkCounters;
}

/// Runs in steps: the states of flows and links, and errors. See [`RunningSimulation`].
pub mod stepping {
    pub use fullpipe_lab::{ConnectionSnapshot, FlowSnapshot, LinkSnapshot, StepError};
}

#[doc(hidden)]
pub use fullpipe_archive as archive;
#[doc(hidden)]
pub use fullpipe_audit as audit;
#[doc(hidden)]
pub use fullpipe_engine as engine;
#[doc(hidden)]
pub use fullpipe_lab as lab;
#[doc(hidden)]
pub use fullpipe_lte as lte;
#[doc(hidden)]
pub use fullpipe_report as report;
#[doc(hidden)]
pub use fullpipe_study as study;
#[doc(hidden)]
pub use fullpipe_tcp as tcp;
pub use fullpipe_tmix as tmix;
#[doc(hidden)]
pub use fullpipe_wire as wire;

pub mod builder;
pub mod embedded;
pub mod evaluation;
#[doc(hidden)]
pub mod find;
mod simulation;

pub use evaluation::evaluate;
pub use fullpipe_lab::{
    ConnectionContext, Outcome, Plugins, QueueContext, RunError, RunningSimulation, WorkloadContext,
};
pub use simulation::{Error, ScenarioSource, Simulation};

/// The identity of this build: the package's version and a hash of the sources of all Fullpipe crates and Cargo.lock.
pub const BUILD: &str = env!("FULLPIPE_BUILD");

/// The code of the pages in `docs/`, compiled and run as documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/tutorial.md"))]
    struct Tutorial;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/build-a-world.md"))]
    struct BuildAWorld;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-a-congestion-control.md"))]
    struct AddACongestionControl;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-a-queue-discipline.md"))]
    struct AddAQueueDiscipline;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-a-workload.md"))]
    struct AddAWorkload;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-a-stream-scheduler.md"))]
    struct AddAStreamScheduler;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-an-access-network.md"))]
    struct AddAnAccessNetwork;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/add-an-observer.md"))]
    struct AddAnObserver;
    #[doc = include_str!(concat!(env!("FULLPIPE_DOCS"), "/tmix.md"))]
    struct Tmix;
}
