//! The client, which sends requests, reads responses and pauses.

use super::{COMPLETED, ConnectionUse, Exchange, FAILED, RequestResponseSpec};
use crate::application::{self, Application, Completion, Io, MetricValue, Progress, StreamId};
use crate::component::WorkloadSettings;
use crate::plan::DrawSequence;
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Duration, Instant, ParameterError, RandomStream};

/// The exchange in progress.
#[derive(Debug)]
struct UnderWay {
    started: Instant,
    planned: Exchange,
    unwritten_bytes: u64,
    unread_bytes: u64,
}

/// The client, which sends requests and receives responses.
#[derive(Debug)]
pub struct RequestResponseClient {
    spec: RequestResponseSpec,
    plan: DrawSequence<Exchange>,
    /// Number of the next exchange.
    next: u32,
    stream: Option<StreamId>,
    under_way: Option<UnderWay>,
    completions: Vec<Completion>,
    failed: u64,
    progress: Progress,
}

impl RequestResponseClient {
    /// Creates the client. `random` is a copy of the server's random stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &RequestResponseSpec, random: RandomStream) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(RequestResponseClient {
            spec: spec.clone(),
            plan: DrawSequence::new(random),
            next: 0,
            stream: None,
            under_way: None,
            completions: Vec::new(),
            failed: 0,
            progress: Progress::default(),
        })
    }

    fn begin(&mut self, io: &mut dyn Io) {
        if !self.spec.has(self.next) {
            return;
        }
        let planned = self.spec.exchange(self.next, &mut self.plan);
        self.next += 1;
        self.under_way = Some(UnderWay {
            started: io.now(),
            planned,
            unwritten_bytes: planned.request_bytes,
            unread_bytes: planned.response_bytes,
        });
        if self.stream.is_none() {
            self.stream = Some(io.open());
        }
        self.write(io);
    }

    fn write(&mut self, io: &mut dyn Io) {
        let (Some(exchange), Some(id)) = (&mut self.under_way, self.stream) else { return };
        if exchange.unwritten_bytes > 0
            && let Some(stream) = io.stream(id)
        {
            exchange.unwritten_bytes -= stream.write(Payload::Length(exchange.unwritten_bytes));
        }
    }

    fn read(&mut self, io: &mut dyn Io) {
        let (Some(exchange), Some(id)) = (&mut self.under_way, self.stream) else { return };
        let now = io.now();
        let length = application::read_length(id, exchange.unread_bytes, io);
        if length == 0 {
            return;
        }
        exchange.unread_bytes -= length;
        self.progress.count_received(length, now);
        if exchange.unread_bytes == 0 {
            self.complete(now, io);
        }
    }

    fn complete(&mut self, now: Instant, io: &mut dyn Io) {
        let Some(exchange) = self.under_way.take() else { return };
        let bytes = exchange.planned.response_bytes;
        self.completions.push(Completion { started: exchange.started, completed: now, bytes });
        let last = !self.spec.has(self.next);
        if last || self.spec.connection == ConnectionUse::PerExchange {
            self.leave(io);
        }
        if last {
            self.progress.completed = Some(now);
        } else {
            self.rest(exchange.planned.idle, io);
        }
    }

    /// Finishes the connection and removes its state.
    fn leave(&mut self, io: &mut dyn Io) {
        if let Some(stream) = self.stream.take().and_then(|id| io.stream(id)) {
            stream.finish();
        }
    }

    fn rest(&mut self, idle: Duration, io: &mut dyn Io) {
        if idle.is_zero() {
            self.begin(io);
        } else {
            let at = io.now().saturating_add(idle);
            io.wake_at(at);
        }
    }

    /// Handles the end of the connection. An exchange in progress has failed. On a connection for all exchanges it was the last.
    fn closed(&mut self, io: &mut dyn Io) {
        self.stream = None;
        let failed = self.under_way.take();
        self.failed += u64::from(failed.is_some());
        if self.spec.connection == ConnectionUse::Persistent {
            io.wake_at(Instant::NEVER);
        } else if let Some(exchange) = failed {
            // At least a nanosecond, so that time advances even if every connection is refused at once.
            self.rest(exchange.planned.idle.max(Duration::from_nanos(1)), io);
        }
    }
}

impl Application for RequestResponseClient {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.begin(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        if self.under_way.is_none() {
            self.begin(io);
        }
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        // Finished connections still produce events for a while.
        if self.stream != Some(stream) {
            return;
        }
        match event {
            TransportEvent::Connected | TransportEvent::Writable => self.write(io),
            TransportEvent::Readable => self.read(io),
            TransportEvent::Closed(_) => self.closed(io),
            TransportEvent::PeerFinished => {}
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn completions(&self) -> &[Completion] {
        &self.completions
    }

    fn metric_values(&self, _end: Instant) -> Vec<MetricValue> {
        let mut figures = application::summary(&self.completions, &COMPLETED);
        figures.push(FAILED.value(self.failed as f64));
        figures
    }
}
