//! HTTP/2: frames of several responses on one connection, the most urgent first (RFC 9218 section 10).
//!
//! Of equally urgent responses, those that are not incremental are sent first, completely and in the order of their
//! streams. The incremental ones follow, one frame each in turn. Data written to the transport cannot be overtaken. So
//! the server writes no frame while the transport holds `low_water_bytes` of unsent data (Linux programs use
//! TCP_NOTSENT_LOWAT for this). A transport sends only after it has delivered an event, and delivers no event for data
//! sent. So the server checks again at the same instant until nothing changes.

use super::super::outbox::SendBuffer;
use super::super::wire::{self, CONTENT_BYTES, Collector, FRAME_HEADER_BYTES, FrameHeader, Request};
use super::Shelf;
use crate::application::{Application, Io, Progress, StreamId};
use fullpipe_transport::{Stream, TransportEvent};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes at the beginning of a request that are evaluated: frame header and content.
const FIRST_BYTES: usize = FRAME_HEADER_BYTES + CONTENT_BYTES;

/// The priority of a response: the smallest is next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    urgency: u8,
    incremental: bool,
    /// The stream of a response that is not incremental; for an incremental one, the time of its last frame.
    order: u64,
}

/// The unsent part of a response.
#[derive(Debug)]
struct Response {
    stream: u32,
    /// Whether nothing has been written yet: the header is next.
    fresh: bool,
    object_bytes: u64,
}

#[derive(Debug)]
struct Connection {
    /// The incoming request.
    request: Collector<FIRST_BYTES>,
    responses: BTreeMap<Turn, Response>,
    /// Number of frames written.
    frames: u64,
    out: SendBuffer,
    peer_finished: bool,
}

/// Why no more frames are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filled {
    /// There are no more frames.
    All,
    /// The transport accepts no more data; it will deliver an event when it does.
    Full,
    /// The transport holds enough unsent data. `written`: whether some of it was written just now.
    Enough { written: bool },
}

#[derive(Debug)]
pub(super) struct Http2Server {
    shelf: Shelf,
    connections: BTreeMap<StreamId, Connection>,
    /// Connections to check again after the transport has sent.
    again: BTreeSet<StreamId>,
    progress: Progress,
}

impl Http2Server {
    pub(super) fn new(shelf: Shelf) -> Self {
        Http2Server { shelf, connections: BTreeMap::new(), again: BTreeSet::new(), progress: Progress::default() }
    }

    fn request_length(&self) -> u64 {
        FRAME_HEADER_BYTES as u64 + u64::from(self.shelf.spec.request_bytes)
    }

    fn accept(&mut self, id: StreamId) {
        let connection = Connection {
            request: Collector::new(self.request_length()),
            responses: BTreeMap::new(),
            frames: 0,
            out: SendBuffer::default(),
            peer_finished: false,
        };
        self.connections.insert(id, connection);
    }

    fn read(&mut self, id: StreamId, io: &mut dyn Io) {
        let (now, length) = (io.now(), self.request_length());
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(stream) = io.stream(id) else { return };
        while let Some(payload) = stream.read(connection.request.missing_bytes()) {
            self.progress.count_received(payload.len(), now);
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

    /// Writes frames until the transport holds enough unsent data. `told`: the transport has delivered an event and may send as
    /// soon as this call returns.
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

/// Returns the response to a request and its priority.
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
    /// Writes frames until there are none or the transport holds enough unsent data.
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

    /// Writes the next frame, preceded by a HEADERS frame if it is the response's first.
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
            // After the incremental responses that had their turn earlier. Stream numbers are below 2^31.
            let order = if turn.incremental { (1 << 32) + self.frames } else { turn.order };
            self.responses.insert(Turn { order, ..turn }, response);
        }
    }
}

impl Application for Http2Server {
    fn on_wake(&mut self, io: &mut dyn Io) {
        for id in std::mem::take(&mut self.again) {
            self.write(id, false, io);
        }
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Connected => self.accept(stream),
            TransportEvent::Readable => self.read(stream, io),
            TransportEvent::Writable => self.write(stream, true, io),
            TransportEvent::PeerFinished => {
                if let Some(connection) = self.connections.get_mut(&stream) {
                    connection.peer_finished = true;
                }
                self.write(stream, true, io);
            }
            TransportEvent::Closed(_) => {
                self.connections.remove(&stream);
                self.again.remove(&stream);
            }
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
