//! HTTP/1.1 and HTTP/3: a stream carries consecutive requests (HTTP/1.1) or a single one (HTTP/3), and the responses.

use super::super::PageProtocol;
use super::super::outbox::SendBuffer;
use super::super::wire::{CONTENT_BYTES, Collector, Request};
use super::Shelf;
use crate::application::{self, Application, Io, Progress, StreamId};
use fullpipe_transport::{Priority, TransportEvent};
use std::collections::BTreeMap;

/// A stream.
#[derive(Debug)]
struct Served {
    /// The incoming request.
    request: Collector<CONTENT_BYTES>,
    out: SendBuffer,
    peer_finished: bool,
}

#[derive(Debug)]
pub(super) struct HttpServer {
    shelf: Shelf,
    served: BTreeMap<StreamId, Served>,
    progress: Progress,
}

impl HttpServer {
    pub(super) fn new(shelf: Shelf) -> Self {
        HttpServer { shelf, served: BTreeMap::new(), progress: Progress::default() }
    }

    fn accept(&mut self, id: StreamId, io: &mut dyn Io) {
        // The server ignores data on HTTP/3's control stream.
        let control = self.shelf.spec.http == PageProtocol::Http3 && io.stream_number(id) == Some(0);
        if !control {
            let request = Collector::new(self.shelf.spec.request_length());
            self.served.insert(id, Served { request, out: SendBuffer::default(), peer_finished: false });
        }
    }

    /// Continues responses and requests as far as possible. Further requests wait in the stream until the previous one is
    /// answered.
    fn serve(&mut self, id: StreamId, io: &mut dyn Io) {
        let Some(served) = self.served.get_mut(&id) else {
            let bytes = application::read_length(id, u64::MAX, io);
            return self.progress.count_received(bytes, io.now());
        };
        let now = io.now();
        loop {
            let Some(stream) = io.stream(id) else { return };
            if !served.out.flush(stream) {
                return;
            }
            let Some(payload) = stream.read(served.request.missing_bytes()) else { break };
            self.progress.count_received(payload.len(), now);
            let Some(content) = served.request.take(&payload) else { continue };
            served.request = Collector::new(self.shelf.spec.request_length());
            let Some((length, urgency, incremental)) = answer(&mut self.shelf, &content) else {
                return stream.abort();
            };
            served.out.push_length(length);
            io.set_priority(id, Priority { urgency, incremental, ..Priority::default() });
        }
        if served.peer_finished
            && let Some(stream) = io.stream(id)
        {
            stream.finish();
        }
    }
}

/// Length, urgency and incrementality of the response to a request.
fn answer(shelf: &mut Shelf, content: &[u8; CONTENT_BYTES]) -> Option<(u64, u8, bool)> {
    let object = shelf.object(Request::parse(content)?)?.clone();
    let (urgency, incremental) = shelf.spec.urgency_of(&object);
    Some((shelf.spec.response_length(object.bytes), urgency, incremental))
}

impl Application for HttpServer {
    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Connected => self.accept(stream, io),
            TransportEvent::Readable | TransportEvent::Writable => self.serve(stream, io),
            TransportEvent::PeerFinished => {
                if let Some(served) = self.served.get_mut(&stream) {
                    served.peer_finished = true;
                }
                self.serve(stream, io);
            }
            TransportEvent::Closed(_) => {
                self.served.remove(&stream);
            }
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
