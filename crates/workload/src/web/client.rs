//! The browser: page after page, object after object, and what it notes of them.
//!
//! How objects are fetched is a [`Browser`]'s business, one for each version of HTTP. A page whose connection is lost has
//! failed: what is left of it is given up, and the next follows after its reading time on new connections.

mod http1;
mod http2;
mod http3;
mod streams;

use super::load::Load;
use super::page::Pages;
use super::results::Results;
use super::{Http, WebSpec};
use crate::application::{Application, Completion, Figure, Io, OpenOptions, Progress, StreamId};
use crate::component::WorkloadSettings;
use fullpipe_transport::Event;
use fullpipe_units::{Duration, Instant, Invalid, Stream};
use std::fmt;

/// How long to wait before asking again for a stream that the peer did not allow.
const RETRY: Duration = Duration::from_millis(1);

/// How a connection for several streams is opened: it stays until it is closed.
const SEVERAL_STREAMS: OpenOptions = OpenOptions { mss_bytes: None, receive_buffer_bytes: None, several_streams: true };

/// What a browser has learnt from an event.
#[derive(Debug, Default)]
struct News {
    /// Bytes read.
    bytes: u64,
    /// Objects that have come, with the stream where streams are told apart.
    came: Vec<(u32, Option<u32>)>,
    /// A connection that was needed is lost.
    lost: bool,
}

/// Fetches objects in the way of one version of HTTP.
trait Browser: fmt::Debug + Send {
    /// Requests of what may be requested as much as it can. Says whether it ought to be asked again a little later even if
    /// nothing happens.
    fn request(&mut self, load: &mut Load, io: &mut dyn Io) -> bool;

    /// Something happened on a stream.
    fn on_stream(&mut self, stream: StreamId, event: Event, io: &mut dyn Io) -> News;

    /// Ends its connections when all is delivered; nothing is on its way.
    fn leave(&mut self, io: &mut dyn Io);

    /// Ends its connections at once.
    fn abandon(&mut self, io: &mut dyn Io);
}

/// The side that fetches pages.
#[derive(Debug)]
pub struct WebClient {
    spec: WebSpec,
    pages: Pages,
    browser: Box<dyn Browser>,
    /// The page on its way.
    load: Option<Load>,
    /// Of each stream of that page the bytes that have come and when the last did, where streams are told apart.
    streams: Vec<(u64, Instant)>,
    /// Number of the next page.
    next: u32,
    results: Results,
    progress: Progress,
}

impl WebClient {
    /// The client; `random` is equal to that of the server.
    ///
    /// # Errors
    /// If the description makes no sense.
    pub fn new(spec: &WebSpec, random: Stream) -> Result<Self, Invalid> {
        spec.check()?;
        let browser: Box<dyn Browser> = match spec.http {
            Http::One => Box::new(http1::Http1::new(spec)),
            Http::Two => Box::new(http2::Http2::new(spec)),
            Http::Three => Box::new(http3::Http3::new(spec)),
            Http::Streams => Box::new(streams::Streams::new(spec)),
        };
        let streams = if spec.http == Http::Streams { spec.streams() } else { 0 };
        Ok(WebClient {
            pages: Pages::new(spec, random),
            browser,
            load: None,
            streams: vec![(0, Instant::ZERO); streams as usize],
            next: 0,
            results: Results::new(spec.completions, streams),
            progress: Progress::default(),
            spec: spec.clone(),
        })
    }

    fn begin(&mut self, io: &mut dyn Io) {
        if !self.spec.has(self.next) {
            return;
        }
        self.load = Some(Load::new(self.pages.page(self.next), io.now()));
        self.next += 1;
        self.streams.fill((0, io.now()));
        self.request(io);
    }

    fn request(&mut self, io: &mut dyn Io) {
        if let Some(load) = &mut self.load
            && self.browser.request(load, io)
        {
            io.wake_at(io.now().saturating_add(RETRY));
        }
    }

    fn learn(&mut self, news: &News, io: &mut dyn Io) {
        let now = io.now();
        if news.bytes > 0 {
            self.progress.receive(news.bytes, now);
        }
        for &(number, stream) in &news.came {
            self.came(number, stream, now);
        }
        let Some(load) = &self.load else { return };
        if load.is_complete() {
            self.complete(now, io);
        } else if news.lost {
            self.fail(io);
        } else {
            self.request(io);
        }
    }

    fn came(&mut self, number: u32, stream: Option<u32>, now: Instant) {
        let Some(load) = &mut self.load else { return };
        let before = load.has_mains();
        let Some(started) = load.arrive(number) else { return };
        let bytes = load.object(number).bytes;
        self.results.object(Completion { started, completed: now, bytes });
        if load.has_mains() && !before {
            self.results.mains(now.saturating_since(load.started));
        }
        if let Some((sum, last)) = stream.and_then(|stream| self.streams.get_mut(stream as usize)) {
            *sum = sum.saturating_add(bytes);
            *last = now;
        }
    }

    fn complete(&mut self, now: Instant, io: &mut dyn Io) {
        let Some(load) = self.load.take() else { return };
        let page = Completion { started: load.started, completed: now, bytes: load.bytes() };
        self.results.page(page, &self.streams);
        let last = !self.spec.has(self.next);
        if last || !self.spec.keep_connections {
            self.browser.leave(io);
        }
        if last {
            self.progress.completed = Some(now);
            io.wake_at(Instant::NEVER);
        } else if load.page.reading.is_zero() {
            self.begin(io);
        } else {
            io.wake_at(now.saturating_add(load.page.reading));
        }
    }

    fn fail(&mut self, io: &mut dyn Io) {
        let Some(load) = self.load.take() else { return };
        self.results.page_failed();
        self.browser.abandon(io);
        // At least a nanosecond: where every connection is refused at once, time goes on all the same.
        let reading = load.page.reading.max(Duration::from_nanos(1));
        io.wake_at(io.now().saturating_add(reading));
    }
}

impl Application for WebClient {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.begin(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        if self.load.is_some() {
            self.request(io);
        } else {
            self.begin(io);
        }
    }

    fn on_stream(&mut self, stream: StreamId, event: Event, io: &mut dyn Io) {
        let news = self.browser.on_stream(stream, event, io);
        self.learn(&news, io);
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn completions(&self) -> &[Completion] {
        &self.results.completions
    }

    fn figures(&self, _end: Instant) -> Vec<Figure> {
        self.results.figures()
    }
}
