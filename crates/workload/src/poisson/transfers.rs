//! Transfers that arrive as a Poisson process, each on a new connection from initiator to acceptor.
//!
//! The time of a transfer is that from its arrival, when the connection is opened, until the acceptor has its last byte. It is
//! the flow completion time of the literature (Dukkipati and McKeown, Computer Communication Review 36(1), 2006). Both ends draw
//! times and sizes in advance (`plan.rs`). The number of a transfer is that of its connection.

use crate::application::{self, Application, ApplicationMetric, Completion, Io, MetricValue, Progress, StreamId};
use crate::component::{COUNT, FlowContext, Protocol, WorkloadComponent, WorkloadSettings, count};
use crate::demand::{self, Demand};
use crate::plan::DrawSequence;
use fullpipe_schema::component::Declaration;
use fullpipe_schema::distributions::SIZE_OR_RANDOM;
use fullpipe_schema::{Field, FieldKind};
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Distribution, Duration, Instant, ParameterError, RandomStream};
use std::collections::BTreeMap;

pub(crate) static POISSON_TRANSFERS: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "poisson-transfers",
        text: "transfers that arrive as a Poisson process, each on a connection of its own (TCP). Default port 5001.",
        fields: &[&[
            Field::required("interval", FieldKind::INTERVAL, "Mean time between transfers."),
            Field::required("size", SIZE_OR_RANDOM, "Size of a transfer."),
            Field::optional("transfers", COUNT, "without end", "Number of transfers."),
        ]],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Quic],
    port: 5001,
    metrics: &[&[BEGUN], &COMPLETED],
    read: |reader, _| {
        Ok(Box::new(PoissonTransfersSpec {
            mean_interval: reader.tree.duration("interval"),
            size_bytes: reader.distribution("size")?,
            count: count(reader.tree, "transfers"),
        }))
    },
    ..WorkloadComponent::EMPTY
};

const BEGUN: ApplicationMetric =
    ApplicationMetric::new("transfers_begun", "", "Transfers that the sender has started.");

static COMPLETED: [ApplicationMetric; 3] = [
    ApplicationMetric::new("transfers", "", "Transfers that the receiver has received completely."),
    ApplicationMetric::new("transfer_mean_s", "s", "Mean time of a transfer, from its arrival to its last byte."),
    ApplicationMetric::new("transfer_max_s", "s", "Longest time of a transfer."),
];

/// The settings of transfers that arrive as a Poisson process, each on its own connection, from initiator to acceptor.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonTransfersSpec {
    /// Mean time between arrivals.
    pub mean_interval: Duration,
    /// Sizes in bytes (each at least 1).
    pub size_bytes: Distribution,
    /// Number of transfers (`None`: unlimited).
    pub count: Option<u64>,
}

/// One transfer.
#[derive(Clone, Copy, Debug)]
struct Planned {
    at: Instant,
    size_bytes: u64,
}

impl WorkloadSettings for PoissonTransfersSpec {
    fn is_unlimited(&self) -> bool {
        self.count.is_none()
    }

    fn demand(&self, time_s: f64) -> Demand {
        let connections = demand::count(time_s, self.mean_interval.as_secs_f64(), self.count);
        let some = Demand { connections, lifetime_s: Some(0.0), timers: connections, ..Demand::NO_DATA };
        if !demand::is_steady(&self.size_bytes, connections) {
            let unlimited = Demand { bytes: [f64::INFINITY, 0.0], messages: [connections, 0.0], ..some };
            return unlimited.as_upper_bound("transfers of random sizes, counted as if they filled the path");
        }
        Demand { bytes: [connections * self.size_bytes.mean(), 0.0], messages: [connections, 0.0], ..some }
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let random = || context.random("workload");
        let acceptor = PoissonTransfersAcceptor::new(self, random(), context.start)?;
        Ok([Box::new(PoissonTransfersInitiator::new(self, random())?), Box::new(acceptor)])
    }

    fn check(&self) -> Result<(), ParameterError> {
        ParameterError::ensure(!self.mean_interval.is_zero(), "the mean interval must be positive")?;
        self.size_bytes.check().map_err(|invalid| invalid.in_field("size"))
    }
}

impl PoissonTransfersSpec {
    /// Returns transfer `index` of a flow that starts at `start`.
    fn transfer(&self, start: Instant, index: u32, plan: &mut DrawSequence<Planned>) -> Planned {
        plan.get(index, |random, last| Planned {
            at: last.map_or(start, |last| last.at).saturating_add(super::interval(self.mean_interval, random)),
            size_bytes: self.size_bytes.sample_bytes(random),
        })
    }
}

/// The sending end.
#[derive(Debug)]
pub struct PoissonTransfersInitiator {
    spec: PoissonTransfersSpec,
    plan: DrawSequence<Planned>,
    start: Instant,
    /// Number of transfers started.
    begun: u32,
    /// Bytes still to write, by stream.
    writing: BTreeMap<StreamId, u64>,
}

impl PoissonTransfersInitiator {
    /// Creates the sending end. `random` is a copy of the receiving end's random stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &PoissonTransfersSpec, random: RandomStream) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(PoissonTransfersInitiator {
            spec: spec.clone(),
            plan: DrawSequence::new(random),
            start: Instant::ZERO,
            begun: 0,
            writing: BTreeMap::new(),
        })
    }

    fn schedule(&mut self, io: &mut dyn Io) {
        if self.spec.count.is_none_or(|count| u64::from(self.begun) < count) {
            io.wake_at(self.spec.transfer(self.start, self.begun, &mut self.plan).at);
        }
    }

    fn fill(&mut self, id: StreamId, io: &mut dyn Io) {
        let Some(remaining) = self.writing.get_mut(&id) else { return };
        let Some(stream) = io.stream(id) else { return };
        *remaining -= stream.write(Payload::Length(*remaining)).min(*remaining);
        if *remaining == 0 {
            stream.finish();
            self.writing.remove(&id);
        }
    }
}

impl Application for PoissonTransfersInitiator {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.start = io.now();
        self.schedule(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        let transfer = self.spec.transfer(self.start, self.begun, &mut self.plan);
        self.begun = self.begun.saturating_add(1);
        let id = io.open();
        self.writing.insert(id, transfer.size_bytes);
        self.fill(id, io);
        self.schedule(io);
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Connected | TransportEvent::Writable => self.fill(stream, io),
            TransportEvent::Closed(_) => {
                self.writing.remove(&stream);
            }
            TransportEvent::Readable | TransportEvent::PeerFinished => {}
        }
    }

    fn metric_values(&self, _end: Instant) -> Vec<MetricValue> {
        vec![BEGUN.value(f64::from(self.begun))]
    }
}

/// An incoming transfer.
#[derive(Debug)]
struct Incoming {
    planned: Planned,
    received_bytes: u64,
}

/// The receiving end, which records completed transfers.
#[derive(Debug)]
pub struct PoissonTransfersAcceptor {
    spec: PoissonTransfersSpec,
    plan: DrawSequence<Planned>,
    start: Instant,
    incoming: BTreeMap<StreamId, Incoming>,
    completions: Vec<Completion>,
    progress: Progress,
}

impl PoissonTransfersAcceptor {
    /// Creates the receiving end of a flow that starts at `start`. `random` is a copy of the sending end's random
    /// stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &PoissonTransfersSpec, random: RandomStream, start: Instant) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(PoissonTransfersAcceptor {
            spec: spec.clone(),
            plan: DrawSequence::new(random),
            start,
            incoming: BTreeMap::new(),
            completions: Vec::new(),
            progress: Progress::default(),
        })
    }

    fn accept(&mut self, id: StreamId, io: &dyn Io) {
        let Some(number) = io.connection_number(id) else { return };
        let planned = self.spec.transfer(self.start, number, &mut self.plan);
        self.incoming.insert(id, Incoming { planned, received_bytes: 0 });
    }

    fn read(&mut self, id: StreamId, io: &mut dyn Io) {
        let now = io.now();
        let Some(transfer) = self.incoming.get_mut(&id) else { return };
        let size = transfer.planned.size_bytes;
        let length = application::read_length(id, size - transfer.received_bytes, io);
        if length == 0 {
            return;
        }
        transfer.received_bytes += length;
        self.progress.count_received(length, now);
        if transfer.received_bytes == size {
            self.completions.push(Completion { started: transfer.planned.at, completed: now, bytes: size });
            if self.spec.count == Some(self.completions.len() as u64) {
                self.progress.completed = Some(now);
            }
        }
    }
}

impl Application for PoissonTransfersAcceptor {
    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Connected => self.accept(stream, io),
            TransportEvent::Readable => self.read(stream, io),
            TransportEvent::PeerFinished => {
                if let Some(stream) = io.stream(stream) {
                    stream.finish();
                }
            }
            TransportEvent::Closed(_) => {
                self.incoming.remove(&stream);
            }
            TransportEvent::Writable => {}
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn completions(&self) -> &[Completion] {
        &self.completions
    }

    fn metric_values(&self, _end: Instant) -> Vec<MetricValue> {
        application::summary(&self.completions, &COMPLETED)
    }
}
