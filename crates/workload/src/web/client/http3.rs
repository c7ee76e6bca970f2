//! HTTP/3: one connection with a stream for each object.
//!
//! The connection's first stream is the control stream, which stays open. Other streams are opened on the same connection.

use super::super::WebSpec;
use super::super::load::PageLoad;
use super::super::outbox::SendBuffer;
use super::super::wire::{self, Request};
use super::{Browser, Came, News, SEVERAL_STREAMS};
use crate::application::{self, Io, StreamId};
use bytes::BytesMut;
use fullpipe_transport::TransportEvent;
use std::collections::BTreeMap;

/// An object in progress.
#[derive(Debug)]
struct Fetch {
    request: Request,
    out: SendBuffer,
    missing_bytes: u64,
}

impl Fetch {
    /// Writes the request and finishes the stream after it.
    fn write(&mut self, id: StreamId, io: &mut dyn Io) {
        if let Some(stream) = io.stream(id)
            && !self.out.is_empty()
            && self.out.flush(stream)
        {
            stream.finish();
        }
    }
}

#[derive(Debug)]
pub(super) struct Http3 {
    spec: WebSpec,
    control: Option<StreamId>,
    settings: SendBuffer,
    fetches: BTreeMap<StreamId, Fetch>,
}

impl Http3 {
    pub(super) fn new(spec: &WebSpec) -> Self {
        Http3 { spec: spec.clone(), control: None, settings: SendBuffer::default(), fetches: BTreeMap::new() }
    }

    /// Returns the control stream; opens it if there is none.
    fn control(&mut self, io: &mut dyn Io) -> StreamId {
        *self.control.get_or_insert_with(|| {
            let id = io.open_with(&SEVERAL_STREAMS);
            self.settings = SendBuffer::default();
            // The stream type and an empty SETTINGS frame.
            self.settings.push_length(1 + wire::http3_frame_bytes(0));
            if let Some(stream) = io.stream(id) {
                self.settings.flush(stream);
            }
            id
        })
    }

    fn request_bytes(&self, request: Request) -> bytes::Bytes {
        // At most 16 KiB and a frame header.
        let length = u32::try_from(self.spec.request_length()).unwrap_or(u32::MAX);
        let mut bytes = BytesMut::with_capacity(length as usize);
        request.put(length, &mut bytes);
        bytes.freeze()
    }

    fn write(&mut self, id: StreamId, io: &mut dyn Io) {
        if let Some(fetch) = self.fetches.get_mut(&id) {
            fetch.write(id, io);
        } else if self.control == Some(id)
            && let Some(stream) = io.stream(id)
        {
            self.settings.flush(stream);
        }
    }

    fn read(&mut self, id: StreamId, news: &mut News, io: &mut dyn Io) {
        let Some(fetch) = self.fetches.get_mut(&id) else {
            news.bytes += application::read_length(id, u64::MAX, io);
            return;
        };
        let bytes = application::read_length(id, fetch.missing_bytes, io);
        news.bytes += bytes;
        fetch.missing_bytes -= bytes;
        if fetch.missing_bytes == 0 {
            news.came.push(Came { request: fetch.request, stream: None });
            self.fetches.remove(&id);
        }
    }
}

impl Browser for Http3 {
    fn request(&mut self, load: &mut PageLoad, io: &mut dyn Io) -> bool {
        while load.has_ready() && (self.fetches.len() as u64) < u64::from(self.spec.concurrent) {
            let control = self.control(io);
            let Some(id) = io.open_on_same_connection(control) else { return true };
            let Some(object) = load.request_next(io.now()) else { return false };
            let mut out = SendBuffer::default();
            let request = Request { page: load.page.number, object };
            out.push_bytes(self.request_bytes(request));
            let missing_bytes = self.spec.response_length(load.object(object).bytes);
            let mut fetch = Fetch { request, out, missing_bytes };
            fetch.write(id, io);
            self.fetches.insert(id, fetch);
        }
        false
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) -> News {
        let mut news = News::default();
        match event {
            TransportEvent::Connected | TransportEvent::Writable => self.write(stream, io),
            TransportEvent::Readable => self.read(stream, &mut news, io),
            TransportEvent::PeerFinished | TransportEvent::Closed(_) if self.control == Some(stream) => {
                // The connection is closed. If it was never established, no request has been sent.
                self.control = None;
                news.lost = true;
            }
            TransportEvent::PeerFinished | TransportEvent::Closed(_) => {
                news.lost = self.fetches.remove(&stream).is_some()
            }
        }
        news
    }

    fn leave(&mut self, io: &mut dyn Io) {
        self.fetches.clear();
        if let Some(control) = self.control.take() {
            io.close_connection(control);
        }
    }

    fn abandon(&mut self, io: &mut dyn Io) {
        for id in std::mem::take(&mut self.fetches).into_keys() {
            if let Some(stream) = io.stream(id) {
                stream.abort();
            }
        }
        self.leave(io);
    }
}
