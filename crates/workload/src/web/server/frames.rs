//! HTTP/2: frames of several responses on one connection, the most urgent first (RFC 9218 section 10).
//!
//! Of equally urgent responses first those that are not incremental, whole, in the order of their streams; then the
//! incremental ones, a frame each in turn. What has been written to the transport cannot be overtaken, so no frame is made
//! while the transport holds `low_water_bytes` that it has not sent (Linux programs ask for that by TCP_NOTSENT_LOWAT). A
//! transport sends after it has told of an event, and does not tell that it has sent: so the server asks again at the same
//! instant, until that changes nothing.

use super::super::outbox::Outbox;
use super::super::wire::{self, CONTENT_BYTES, Collector, FRAME_HEADER_BYTES, FrameHeader, Request};
use super::Shelf;
use crate::application::{Application, Io, Progress, StreamId};
use fullpipe_transport::{Event, Stream};
use std::collections::{BTreeMap, BTreeSet};

/// What a connection's requests begin with, frame header and content.
const FIRST_BYTES: usize = FRAME_HEADER_BYTES + CONTENT_BYTES;

/// Whose turn it is: the smallest goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    urgency: u8,
    incremental: bool,
    /// Of responses that are not incremental the stream, of others when they had a frame.
    order: u64,
}

/// What is left of a response.
#[derive(Debug)]
struct Response {
    stream: u32,
    /// Nothing has gone yet: the header goes first.
    fresh: bool,
    object_bytes: u64,
}

#[derive(Debug)]
struct Connection {
    /// The request that is coming.
    request: Collector<FIRST_BYTES>,
    responses: BTreeMap<Turn, Response>,
    /// Frames made so far.
    frames: u64,
    out: Outbox,
    peer_finished: bool,
}

/// Why no more frames are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    /// There are no more.
    All,
    /// The transport takes no more; it will tell when it does.
    Full,
    /// The transport holds enough that it has not sent; whether some of it was written just now.
    Enough { written: bool },
}

#[derive(Debug)]
pub(super) struct Frames {
    shelf: Shelf,
    connections: BTreeMap<StreamId, Connection>,
    /// Connections to look at again when the transport has sent.
    again: BTreeSet<StreamId>,
    progress: Progress,
}

impl Frames {
    pub(super) fn new(shelf: Shelf) -> Self {
        Frames { shelf, connections: BTreeMap::new(), again: BTreeSet::new(), progress: Progress::default() }
    }

    fn request_length(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.shelf.spec.request_bytes)
    }

    fn accept(&mut self, id: StreamId) {
        let connection = Connection {
            request: Collector::new(self.request_length()),
            responses: BTreeMap::new(),
            frames: 0,
            out: Outbox::default(),
            peer_finished: false,
        };
        self.connections.insert(id, connection);
    }

    fn read(&mut self, id: StreamId, io: &mut dyn Io) {
        let (now, length) = (io.now(), self.request_length());
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(stream) = io.stream(id) else { return };
        while let Some(payload) = stream.read(connection.request.missing_bytes()) {
            self.progress.receive(payload.len(), now);
            let Some(content) = connection.request.take(&payload) else { continue };
            connection.request = Collector::new(length);
            let Some((turn, response)) = asked(&mut self.shelf, &content) else {
                self.connections.remove(&id);
                return stream.abort();
            };
            connection.responses.insert(turn, response);
        }
        self.write(id, true, io);
    }

    /// Makes frames as long as the transport has sent most of what it was given. `told`: the transport has told of an event,
    /// and may send as soon as this is over.
    fn write(&mut self, id: StreamId, told: bool, io: &mut dyn Io) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(stream) = io.stream(id) else { return };
        let spec = &self.shelf.spec;
        let filled = connection.fill(spec.low_water_bytes, spec.response_header_bytes, stream);
        if matches!(filled, Filled::Enough { written } if written || told) {
            self.again.insert(id);
            let now = io.now();
            io.wake_at(now);
        }
    }
}

/// The response to a request and its turn.
fn asked(shelf: &mut Shelf, content: &[u8; FIRST_BYTES]) -> Option<(Turn, Response)> {
    let (header, content) = content.split_first_chunk::<FRAME_HEADER_BYTES>()?;
    let header = FrameHeader::parse(header);
    if header.kind != wire::HEADERS || header.length != shelf.spec.request_bytes || header.stream == 0 {
        return None;
    }
    let object = shelf.object(Request::parse(content.first_chunk()?)?)?.clone();
    let (urgency, incremental) = shelf.spec.urgency_of(&object);
    let turn = Turn { urgency, incremental, order: u64::from(header.stream) };
    Some((turn, Response { stream: header.stream, fresh: true, object_bytes: object.bytes }))
}

impl Connection {
    /// Writes frames until there are none or the transport holds enough.
    fn fill(&mut self, low_water_bytes: u64, header_bytes: u32, stream: &mut dyn Stream) -> Filled {
        let mut written = !self.out.is_empty();
        while self.out.flush(stream) {
            if self.responses.is_empty() {
                if self.peer_finished {
                    stream.finish();
                }
                return Filled::All;
            }
            if stream.unsent_bytes().is_some_and(|unsent| unsent >= low_water_bytes) {
                return Filled::Enough { written };
            }
            self.frame(header_bytes);
            written = true;
        }
        Filled::Full
    }

    /// Makes the next frame, and a frame of headers before a response's first.
    fn frame(&mut self, header_bytes: u32) {
        let Some((turn, mut response)) = self.responses.pop_first() else { return };
        self.frames += 1;
        let stream = response.stream;
        if std::mem::take(&mut response.fresh) {
            let headers = FrameHeader { length: header_bytes, kind: wire::HEADERS, flags: wire::END_HEADERS, stream };
            self.out.push_bytes(headers.bytes());
            self.out.push_length(u64::from(header_bytes));
        }
        let length = response.object_bytes.min(wire::MAX_FRAME_BYTES);
        response.object_bytes -= length;
        let flags = if response.object_bytes == 0 { wire::END_STREAM } else { 0 };
        let header = FrameHeader { length: length as u32, kind: wire::DATA, flags, stream };
        self.out.push_bytes(header.bytes());
        self.out.push_length(length);
        if response.object_bytes > 0 {
            // Behind the incremental ones that had their turn before; streams have numbers below 2^31.
            let order = if turn.incremental { (1 << 32) + self.frames } else { turn.order };
            self.responses.insert(Turn { order, ..turn }, response);
        }
    }
}

impl Application for Frames {
    fn on_wake(&mut self, io: &mut dyn Io) {
        for id in std::mem::take(&mut self.again) {
            self.write(id, false, io);
        }
    }

    fn on_stream(&mut self, stream: StreamId, event: Event, io: &mut dyn Io) {
        match event {
            Event::Connected => self.accept(stream),
            Event::Readable => self.read(stream, io),
            Event::Writable => self.write(stream, true, io),
            Event::PeerFinished => {
                if let Some(connection) = self.connections.get_mut(&stream) {
                    connection.peer_finished = true;
                }
                self.write(stream, true, io);
            }
            Event::Closed(_) => {
                self.connections.remove(&stream);
                self.again.remove(&stream);
            }
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
