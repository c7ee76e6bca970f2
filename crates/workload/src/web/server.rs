//! The server: knows all pages and answers requests for their objects at once.
//!
//! What is no request, or asks for what there is not, ends the stream or connection on which it came.

mod frames;
mod responses;
mod streams;

use super::page::{Object, Page, Pages};
use super::wire::Request;
use super::{Http, WebSpec};
use crate::application::{Application, Io, Progress, StreamId};
use crate::component::WorkloadSettings;
use fullpipe_transport::Event;
use fullpipe_units::{Invalid, Stream};

/// The side that has the pages.
#[derive(Debug)]
pub struct WebServer(Box<dyn Application>);

impl WebServer {
    /// The server; `random` is equal to that of the client.
    ///
    /// # Errors
    /// If the description makes no sense.
    pub fn new(spec: &WebSpec, random: Stream) -> Result<Self, Invalid> {
        spec.check()?;
        let shelf = Shelf { spec: spec.clone(), pages: Pages::new(spec, random), last: None };
        Ok(WebServer(match spec.http {
            Http::One | Http::Three => Box::new(responses::Responses::new(shelf)),
            Http::Two => Box::new(frames::Frames::new(shelf)),
            Http::Streams => Box::new(streams::Streams::new(shelf)),
        }))
    }
}

impl Application for WebServer {
    fn on_wake(&mut self, io: &mut dyn Io) {
        self.0.on_wake(io);
    }

    fn on_stream(&mut self, stream: StreamId, event: Event, io: &mut dyn Io) {
        self.0.on_stream(stream, event, io);
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }
}

/// The pages; of those that have been asked for the last is kept.
#[derive(Debug)]
struct Shelf {
    spec: WebSpec,
    pages: Pages,
    last: Option<Page>,
}

impl Shelf {
    /// A page, if there is one of this number.
    fn page(&mut self, number: u32) -> Option<&Page> {
        if !self.spec.has(number) {
            return None;
        }
        if self.last.as_ref().is_none_or(|page| page.number != number) {
            self.last = Some(self.pages.page(number));
        }
        self.last.as_ref()
    }

    /// What a request asks for, if it is there.
    fn object(&mut self, request: Request) -> Option<&Object> {
        self.page(request.page)?.objects.get(request.object as usize)
    }
}
