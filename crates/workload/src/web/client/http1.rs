//! HTTP/1.1: several connections, each with one request at a time.

use super::super::WebSpec;
use super::super::load::PageLoad;
use super::super::outbox::SendBuffer;
use super::super::wire::Request;
use super::{Browser, Came, News};
use crate::application::{self, Io, StreamId};
use fullpipe_transport::TransportEvent;
use std::collections::BTreeMap;

/// An object in progress.
#[derive(Debug)]
struct Fetch {
    request: Request,
    missing_bytes: u64,
}

#[derive(Debug, Default)]
struct Connection {
    out: SendBuffer,
    fetch: Option<Fetch>,
}

#[derive(Debug)]
pub(super) struct Http1 {
    spec: WebSpec,
    connections: BTreeMap<StreamId, Connection>,
}

impl Http1 {
    pub(super) fn new(spec: &WebSpec) -> Self {
        Http1 { spec: spec.clone(), connections: BTreeMap::new() }
    }

    /// Returns an idle connection; opens one if there is none and the limit permits.
    fn idle(&mut self, io: &mut dyn Io) -> Option<StreamId> {
        let idle = self.connections.iter().find(|(_, connection)| connection.fetch.is_none());
        idle.map(|(&id, _)| id).or_else(|| {
            ((self.connections.len() as u64) < u64::from(self.spec.connections)).then(|| {
                let id = io.open();
                self.connections.insert(id, Connection::default());
                id
            })
        })
    }

    fn write(&mut self, id: StreamId, io: &mut dyn Io) {
        if let Some(connection) = self.connections.get_mut(&id)
            && let Some(stream) = io.stream(id)
        {
            connection.out.flush(stream);
        }
    }

    fn read(&mut self, id: StreamId, news: &mut News, io: &mut dyn Io) {
        let Some(Connection { fetch: fetching, .. }) = self.connections.get_mut(&id) else { return };
        let Some(fetch) = fetching else { return };
        let bytes = application::read_length(id, fetch.missing_bytes, io);
        news.bytes += bytes;
        fetch.missing_bytes -= bytes;
        if fetch.missing_bytes == 0 {
            news.came.push(Came { request: fetch.request, stream: None });
            *fetching = None;
        }
    }

    /// Handles the end of a connection.
    fn over(&mut self, id: StreamId, news: &mut News) {
        if let Some(connection) = self.connections.remove(&id) {
            news.lost = connection.fetch.is_some();
        }
    }
}

impl Browser for Http1 {
    fn request(&mut self, load: &mut PageLoad, io: &mut dyn Io) -> bool {
        while load.has_ready()
            && let Some(id) = self.idle(io)
            && let Some(object) = load.request_next(io.now())
        {
            let missing_bytes = self.spec.response_length(load.object(object).bytes);
            if let Some(connection) = self.connections.get_mut(&id) {
                let request = Request { page: load.page.number, object };
                connection.out.push_bytes(request.bytes(self.spec.request_bytes));
                connection.fetch = Some(Fetch { request, missing_bytes });
            }
            self.write(id, io);
        }
        false
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) -> News {
        let mut news = News::default();
        match event {
            TransportEvent::Connected | TransportEvent::Writable => self.write(stream, io),
            TransportEvent::Readable => self.read(stream, &mut news, io),
            TransportEvent::PeerFinished => {
                if self.connections.contains_key(&stream)
                    && let Some(open) = io.stream(stream)
                {
                    open.finish();
                }
                self.over(stream, &mut news);
            }
            TransportEvent::Closed(_) => self.over(stream, &mut news),
        }
        news
    }

    fn leave(&mut self, io: &mut dyn Io) {
        for id in std::mem::take(&mut self.connections).into_keys() {
            if let Some(stream) = io.stream(id) {
                stream.finish();
            }
        }
    }

    fn abandon(&mut self, io: &mut dyn Io) {
        for id in std::mem::take(&mut self.connections).into_keys() {
            if let Some(stream) = io.stream(id) {
                stream.abort();
            }
        }
    }
}
