//! The server, which has all pages and responds to requests at once.
//!
//! Invalid data, or a request for a missing object, ends the stream or connection.

mod frames;
mod responses;
mod streams;

use super::page::{Object, Page, Pages};
use super::wire::Request;
use super::{PageProtocol, WebSpec};
use crate::application::{Application, Io, Progress, StreamId};
use crate::component::WorkloadSettings;
use fullpipe_transport::TransportEvent;
use fullpipe_units::{ParameterError, RandomStream};

/// The server of pages.
#[derive(Debug)]
pub struct WebServer(Box<dyn Application>);

impl WebServer {
    /// Creates the server. `random` is a copy of the client's random stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &WebSpec, random: RandomStream) -> Result<Self, ParameterError> {
        spec.check()?;
        let shelf = Shelf { spec: spec.clone(), pages: Pages::new(spec, random), last: None };
        Ok(WebServer(match spec.http {
            PageProtocol::Http1 | PageProtocol::Http3 => Box::new(responses::HttpServer::new(shelf)),
            PageProtocol::Http2 => Box::new(frames::Http2Server::new(shelf)),
            PageProtocol::Streams => Box::new(streams::StreamsServer::new(shelf)),
        }))
    }
}

impl Application for WebServer {
    fn on_wake(&mut self, io: &mut dyn Io) {
        self.0.on_wake(io);
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        self.0.on_stream(stream, event, io);
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }
}

/// The pages. The last requested page is cached.
#[derive(Debug)]
struct Shelf {
    spec: WebSpec,
    pages: Pages,
    last: Option<Page>,
}

impl Shelf {
    /// Returns the page with this number, if there is one.
    fn page(&mut self, number: u32) -> Option<&Page> {
        if !self.spec.has(number) {
            return None;
        }
        if self.last.as_ref().is_none_or(|page| page.number != number) {
            self.last = Some(self.pages.page(number));
        }
        self.last.as_ref()
    }

    /// Returns the requested object, if it exists.
    fn object(&mut self, request: Request) -> Option<&Object> {
        self.page(request.page)?.objects.get(request.object as usize)
    }
}
