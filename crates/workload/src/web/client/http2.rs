//! HTTP/2: one connection, on which requests and responses are frames.

use super::super::WebSpec;
use super::super::load::PageLoad;
use super::super::outbox::SendBuffer;
use super::super::wire::{self, Collector, FRAME_HEADER_BYTES, FrameHeader, Request};
use super::{Browser, Came, News};
use crate::application::{Io, StreamId};
use bytes::BytesMut;
use fullpipe_transport::{Payload, TransportEvent};
use std::collections::BTreeMap;

/// Largest number of a stream (RFC 9113 section 5.1.1: 31 bits).
const LAST_STREAM: u32 = (1 << 31) - 1;

/// A response in progress.
#[derive(Debug)]
struct Fetch {
    request: Request,
    /// Missing bytes of header and object.
    missing_bytes: u64,
}

/// The position in the sequence of responses.
#[derive(Debug)]
enum Reading {
    Header(Collector<FRAME_HEADER_BYTES>),
    Payload { stream: u32, missing_bytes: u64 },
}

impl Reading {
    fn header() -> Self {
        Reading::Header(Collector::new(FRAME_HEADER_BYTES as u64))
    }

    fn missing_bytes(&self) -> u64 {
        match self {
            Reading::Header(collector) => collector.missing_bytes(),
            Reading::Payload { missing_bytes, .. } => *missing_bytes,
        }
    }
}

#[derive(Debug)]
struct Connection {
    id: StreamId,
    out: SendBuffer,
    reading: Reading,
    /// Responses by the number of the HTTP/2 stream.
    fetches: BTreeMap<u32, Fetch>,
    next_stream: u32,
}

#[derive(Debug)]
pub(super) struct Http2 {
    spec: WebSpec,
    connection: Option<Connection>,
}

impl Http2 {
    pub(super) fn new(spec: &WebSpec) -> Self {
        Http2 { spec: spec.clone(), connection: None }
    }
}

impl Connection {
    fn open(io: &mut dyn Io) -> Self {
        Connection {
            id: io.open(),
            out: SendBuffer::default(),
            reading: Reading::header(),
            fetches: BTreeMap::new(),
            next_stream: 1,
        }
    }

    fn ask(&mut self, request: Request, missing_bytes: u64, request_bytes: u32) {
        let mut frame = BytesMut::with_capacity(FRAME_HEADER_BYTES + request_bytes as usize);
        let flags = wire::END_STREAM | wire::END_HEADERS;
        FrameHeader { length: request_bytes, kind: wire::HEADERS, flags, stream: self.next_stream }.put(&mut frame);
        request.put(request_bytes, &mut frame);
        self.out.push_bytes(frame.freeze());
        self.fetches.insert(self.next_stream, Fetch { request, missing_bytes });
        self.next_stream += 2;
    }

    fn write(&mut self, io: &mut dyn Io) {
        if let Some(stream) = io.stream(self.id) {
            self.out.flush(stream);
        }
    }

    fn read(&mut self, news: &mut News, io: &mut dyn Io) {
        let Some(stream) = io.stream(self.id) else { return };
        while let Some(payload) = stream.read(self.reading.missing_bytes()) {
            news.bytes += payload.len();
            if self.take(&payload, news).is_none() {
                // A frame of an unknown stream is a protocol error of the server.
                news.lost = true;
                return;
            }
        }
    }

    /// Handles a piece of data; `None` if it is invalid.
    fn take(&mut self, payload: &Payload, news: &mut News) -> Option<()> {
        match &mut self.reading {
            Reading::Header(collector) => {
                let Some(content) = collector.take(payload) else { return Some(()) };
                let FrameHeader { length, stream, .. } = FrameHeader::parse(&content);
                let fetch = self.fetches.get(&stream)?;
                if u64::from(length) > fetch.missing_bytes {
                    return None;
                }
                self.reading = match length {
                    0 => Reading::header(),
                    length => Reading::Payload { stream, missing_bytes: u64::from(length) },
                };
            }
            Reading::Payload { stream, missing_bytes } => {
                let fetch = self.fetches.get_mut(stream)?;
                fetch.missing_bytes -= payload.len();
                *missing_bytes -= payload.len();
                if fetch.missing_bytes == 0 {
                    news.came.push(Came { request: fetch.request, stream: None });
                    self.fetches.remove(stream);
                }
                if *missing_bytes == 0 {
                    self.reading = Reading::header();
                }
            }
        }
        Some(())
    }
}

impl Browser for Http2 {
    fn request(&mut self, load: &mut PageLoad, io: &mut dyn Io) -> bool {
        let now = io.now();
        if load.has_ready() {
            let connection = self.connection.get_or_insert_with(|| Connection::open(io));
            while (connection.fetches.len() as u64) < u64::from(self.spec.concurrent)
                && connection.next_stream < LAST_STREAM
                && let Some(object) = load.request_next(now)
            {
                let bytes = self.spec.response_length(load.object(object).bytes);
                connection.ask(Request { page: load.page.number, object }, bytes, self.spec.request_bytes);
            }
            connection.write(io);
        }
        false
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) -> News {
        let mut news = News::default();
        let Some(connection) = self.connection.as_mut().filter(|connection| connection.id == stream) else {
            return news;
        };
        match event {
            TransportEvent::Connected | TransportEvent::Writable => connection.write(io),
            TransportEvent::Readable => connection.read(&mut news, io),
            TransportEvent::PeerFinished | TransportEvent::Closed(_) => {
                news.lost = !connection.fetches.is_empty();
                if let Some(stream) = io.stream(stream) {
                    stream.finish();
                }
                self.connection = None;
            }
        }
        news
    }

    fn leave(&mut self, io: &mut dyn Io) {
        if let Some(stream) = self.connection.take().and_then(|connection| io.stream(connection.id)) {
            stream.finish();
        }
    }

    fn abandon(&mut self, io: &mut dyn Io) {
        if let Some(stream) = self.connection.take().and_then(|connection| io.stream(connection.id)) {
            stream.abort();
        }
    }
}
