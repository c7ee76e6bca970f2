//! Streams: the response to a request for a page is all its objects, in the page's order, each on its stream.
//!
//! The order of writing determines what is sent first if the transport sends in that order. So an object whose stream is not open
//! yet delays the objects after it.

use super::super::outbox::SendBuffer;
use super::super::page::Object;
use super::super::wire::{CONTENT_BYTES, Collector, Request};
use super::Shelf;
use crate::application::{self, Application, Io, Progress, StreamId};
use fullpipe_transport::{Priority, TransportEvent};
use std::collections::{BTreeMap, VecDeque};

/// A stream, from its first event.
#[derive(Debug, Default)]
struct Channel {
    id: Option<StreamId>,
    out: SendBuffer,
}

impl Channel {
    fn write(&mut self, io: &mut dyn Io) {
        if let Some(stream) = self.id.and_then(|id| io.stream(id)) {
            self.out.flush(stream);
        }
    }
}

#[derive(Debug)]
struct Connection {
    /// The incoming request.
    request: Collector<CONTENT_BYTES>,
    channels: Vec<Channel>,
    /// Streams and lengths of the objects still to write, in order.
    queue: VecDeque<(usize, u64)>,
}

impl Connection {
    /// Writes objects as long as their streams are open.
    fn write(&mut self, io: &mut dyn Io) {
        while let Some(&(number, length)) = self.queue.front()
            && let Some(channel) = self.channels.get_mut(number).filter(|channel| channel.id.is_some())
        {
            channel.out.push_length(length);
            channel.write(io);
            self.queue.pop_front();
        }
    }
}

#[derive(Debug)]
pub(super) struct StreamsServer {
    shelf: Shelf,
    /// Connections by number.
    connections: BTreeMap<u32, Connection>,
    /// Connection and index in it of each stream.
    streams: BTreeMap<StreamId, (u32, usize)>,
    progress: Progress,
}

impl StreamsServer {
    pub(super) fn new(shelf: Shelf) -> Self {
        StreamsServer { shelf, connections: BTreeMap::new(), streams: BTreeMap::new(), progress: Progress::default() }
    }

    fn accept(&mut self, id: StreamId, io: &mut dyn Io) {
        let (Some(connection), Some(number)) = (io.connection_number(id), io.stream_number(id)) else { return };
        let spec = &self.shelf.spec;
        let served = self.connections.entry(connection).or_insert_with(|| Connection {
            request: Collector::new(spec.request_length()),
            channels: (0..spec.streams()).map(|_| Channel::default()).collect(),
            queue: VecDeque::new(),
        });
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(channel) = served.channels.get_mut(number) else { return };
        channel.id = Some(id);
        self.streams.insert(id, (connection, number));
        io.set_priority(id, spec.priority_of_stream(number));
        served.write(io);
    }

    fn read(&mut self, id: StreamId, io: &mut dyn Io) {
        let now = io.now();
        let Some(&(connection, 0)) = self.streams.get(&id) else {
            // The first bytes of the other streams carry no information.
            let bytes = application::read_length(id, u64::MAX, io);
            return self.progress.count_received(bytes, now);
        };
        while let Some(served) = self.connections.get_mut(&connection)
            && let Some(stream) = io.stream(id)
            && let Some(payload) = stream.read(served.request.missing_bytes())
        {
            self.progress.count_received(payload.len(), now);
            let Some(content) = served.request.take(&payload) else { continue };
            served.request = Collector::new(self.shelf.spec.request_length());
            let Some(objects) = answer(&mut self.shelf, &content) else { return stream.abort() };
            served.queue.extend(objects);
            served.write(io);
        }
    }

    fn write(&mut self, id: StreamId, io: &mut dyn Io) {
        if let Some((connection, number)) = self.streams.get(&id)
            && let Some(served) = self.connections.get_mut(connection)
            && let Some(channel) = served.channels.get_mut(*number)
        {
            channel.write(io);
        }
    }

    /// Handles the end of a stream in one direction or both: the connection ends.
    fn over(&mut self, id: StreamId, io: &mut dyn Io) {
        if let Some((connection, _)) = self.streams.remove(&id) {
            self.connections.remove(&connection);
        }
        if let Some(stream) = io.stream(id) {
            stream.finish();
        }
    }
}

/// Streams and lengths of the responses to a request, in the page's order. `None` if there is no such page.
fn answer(shelf: &mut Shelf, content: &[u8; CONTENT_BYTES]) -> Option<Vec<(usize, u64)>> {
    let request = Request::parse(content)?;
    shelf.page(request.page)?;
    let Shelf { spec, last: Some(page), .. } = shelf else { return None };
    let response = |object: &Object| (spec.stream_of(object) as usize, spec.response_length(object.bytes));
    Some(page.objects.iter().map(response).collect())
}

impl super::super::WebSpec {
    /// Returns the priority of a stream: the lower its number, the more urgent.
    fn priority_of_stream(&self, number: usize) -> Priority {
        let latency = self.stream_latencies.get(number).or(self.stream_latencies.last()).copied();
        let urgency = u8::try_from(number.min(7)).unwrap_or(7);
        Priority { urgency, latency, ..Priority::default() }
    }
}

impl Application for StreamsServer {
    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Connected => self.accept(stream, io),
            TransportEvent::Readable => self.read(stream, io),
            TransportEvent::Writable => self.write(stream, io),
            TransportEvent::PeerFinished | TransportEvent::Closed(_) => self.over(stream, io),
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
