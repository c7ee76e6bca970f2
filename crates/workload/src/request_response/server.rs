//! The server, which reads a complete request, waits for the think time and responds. It serves any number of connections in
//! parallel.

use super::{ConnectionUse, Exchange, RequestResponseSpec};
use crate::application::{self, Application, Io, Progress, StreamId};
use crate::component::WorkloadSettings;
use crate::plan::DrawSequence;
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Instant, ParameterError, RandomStream};
use std::collections::{BTreeMap, BTreeSet};

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Missing bytes of the request.
    Reading(u64),
    Thinking,
    /// Unwritten bytes of the response.
    Writing(u64),
}

/// One connection.
#[derive(Debug)]
struct Served {
    /// Number of the current exchange.
    exchange: u32,
    stage: Stage,
    peer_finished: bool,
}

/// The server, which receives requests and sends responses.
#[derive(Debug)]
pub struct RequestResponseServer {
    spec: RequestResponseSpec,
    plan: DrawSequence<Exchange>,
    served: BTreeMap<StreamId, Served>,
    /// Connections in their think time, by its end.
    thinking: BTreeSet<(Instant, StreamId)>,
    requests: u64,
    progress: Progress,
}

impl RequestResponseServer {
    /// Creates the server. `random` is a copy of the client's random stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &RequestResponseSpec, random: RandomStream) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(RequestResponseServer {
            spec: spec.clone(),
            plan: DrawSequence::new(random),
            served: BTreeMap::new(),
            thinking: BTreeSet::new(),
            requests: 0,
            progress: Progress::default(),
        })
    }

    fn accept(&mut self, id: StreamId, io: &dyn Io) {
        let exchange = match self.spec.connection {
            ConnectionUse::Persistent => 0,
            ConnectionUse::PerExchange => io.connection_number(id).unwrap_or(0),
        };
        let request_bytes = self.spec.exchange(exchange, &mut self.plan).request_bytes;
        let stage = Stage::Reading(request_bytes);
        self.served.insert(id, Served { exchange, stage, peer_finished: false });
    }

    /// Reads the available bytes of the current request. Bytes of the following request stay in the stream.
    fn read(&mut self, id: StreamId, io: &mut dyn Io) {
        let now = io.now();
        let Some(served) = self.served.get_mut(&id) else { return };
        let Stage::Reading(missing_bytes) = served.stage else { return };
        let length = application::read_length(id, missing_bytes, io);
        if length == 0 {
            return;
        }
        self.progress.count_received(length, now);
        served.stage = Stage::Reading(missing_bytes - length);
        if length < missing_bytes {
            return;
        }
        self.requests += 1;
        if self.spec.count == Some(self.requests) {
            self.progress.completed = Some(now);
        }
        let think = self.spec.exchange(served.exchange, &mut self.plan).think;
        served.stage = Stage::Thinking;
        if think.is_zero() {
            return self.answer(id, io);
        }
        self.thinking.insert((now.saturating_add(think), id));
        self.wake(io);
    }

    fn wake(&self, io: &mut dyn Io) {
        if let Some(&(at, _)) = self.thinking.first() {
            io.wake_at(at);
        }
    }

    fn answer(&mut self, id: StreamId, io: &mut dyn Io) {
        let Some(served) = self.served.get_mut(&id) else { return };
        served.stage = Stage::Writing(self.spec.exchange(served.exchange, &mut self.plan).response_bytes);
        self.write(id, io);
    }

    fn write(&mut self, id: StreamId, io: &mut dyn Io) {
        let Some(served) = self.served.get_mut(&id) else { return };
        let Stage::Writing(mut unwritten_bytes) = served.stage else { return };
        let Some(stream) = io.stream(id) else { return };
        unwritten_bytes -= stream.write(Payload::Length(unwritten_bytes));
        served.stage = Stage::Writing(unwritten_bytes);
        if unwritten_bytes > 0 {
            return;
        }
        if self.spec.connection == ConnectionUse::PerExchange {
            stream.finish();
            self.served.remove(&id);
            return;
        }
        served.exchange += 1;
        served.stage = Stage::Reading(self.spec.exchange(served.exchange, &mut self.plan).request_bytes);
        self.read(id, io);
        self.finish_if_over(id, io);
    }

    /// Finishes a connection if no more requests follow and all are answered.
    fn finish_if_over(&mut self, id: StreamId, io: &mut dyn Io) {
        if let Some(served) = self.served.get(&id)
            && served.peer_finished
            && matches!(served.stage, Stage::Reading(_))
            && let Some(stream) = io.stream(id)
        {
            stream.finish();
        }
    }
}

impl Application for RequestResponseServer {
    fn on_wake(&mut self, io: &mut dyn Io) {
        while let Some(&(at, id)) = self.thinking.first()
            && at <= io.now()
        {
            self.thinking.pop_first();
            self.answer(id, io);
        }
        self.wake(io);
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Connected => self.accept(stream, io),
            TransportEvent::Readable => self.read(stream, io),
            TransportEvent::Writable => self.write(stream, io),
            TransportEvent::PeerFinished => {
                if let Some(served) = self.served.get_mut(&stream) {
                    served.peer_finished = true;
                }
                self.finish_if_over(stream, io);
            }
            TransportEvent::Closed(_) => {
                self.served.remove(&stream);
                self.thinking.retain(|&(_, thinking)| thinking != stream);
            }
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
