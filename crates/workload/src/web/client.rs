//! The browser: page after page, object after object, and what it notes of them.
//!
//! A [`Browser`] fetches objects by one version of HTTP. A page whose connection is lost has failed: the rest of it is given
//! up, and the next follows after its reading time on new connections. With `page_interval` several pages can be on their way,
//! and a lost connection fails all of them.

mod http1;
mod http2;
mod http3;
mod streams;

use super::load::Load;
use super::page::Pages;
use super::results::Results;
use super::wire::Request;
use super::{Http, WebSpec};
use crate::application::{Application, Completion, Figure, Io, OpenOptions, Progress, StreamId};
use crate::component::WorkloadSettings;
use fullpipe_transport::Event;
use fullpipe_units::{Duration, Instant, Invalid, Stream};
use std::collections::BTreeMap;
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
    /// Objects that have come.
    came: Vec<Came>,
    /// A connection that was needed is lost.
    lost: bool,
}

/// An object that has come.
#[derive(Debug)]
struct Came {
    request: Request,
    /// Where streams are told apart.
    stream: Option<u32>,
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
    /// The pages on their way, by number: one, unless pages overlap.
    loads: BTreeMap<u32, Load>,
    /// Number of the next page.
    next: u32,
    /// When the next page begins, if that is known.
    next_start: Instant,
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
        Ok(WebClient {
            pages: Pages::new(spec, random),
            browser,
            loads: BTreeMap::new(),
            next: 0,
            next_start: Instant::NEVER,
            results: Results::new(spec.completions, streams_told_apart(spec), spec.has_fold()),
            progress: Progress::default(),
            spec: spec.clone(),
        })
    }

    fn begin(&mut self, io: &mut dyn Io) {
        self.next_start = Instant::NEVER;
        if !self.spec.has(self.next) {
            return;
        }
        let page = self.pages.page(self.next);
        if let Some(interval) = page.interval
            && self.spec.has(self.next + 1)
        {
            self.start_next_at(io.now().saturating_add(interval), io);
        }
        self.loads.insert(self.next, Load::new(page, streams_told_apart(&self.spec), io.now()));
        self.next += 1;
        self.request(io);
    }

    fn start_next_at(&mut self, at: Instant, io: &mut dyn Io) {
        self.next_start = at;
        io.wake_at(at);
    }

    /// Requests what may be requested, of earlier pages first.
    fn request(&mut self, io: &mut dyn Io) {
        let mut again = false;
        for load in self.loads.values_mut() {
            again |= self.browser.request(load, io);
        }
        if again {
            io.wake_at(io.now().saturating_add(RETRY).min(self.next_start));
        }
    }

    fn learn(&mut self, news: &News, io: &mut dyn Io) {
        let now = io.now();
        if news.bytes > 0 {
            self.progress.receive(news.bytes, now);
        }
        for came in &news.came {
            self.came(came, now);
        }
        if self.loads.is_empty() {
            return;
        }
        let complete: Vec<u32> =
            self.loads.iter().filter(|(_, load)| load.is_complete()).map(|(&number, _)| number).collect();
        for &number in &complete {
            self.complete(number, io);
        }
        // Without overlapping pages the next one has begun by itself, on a connection that is not the lost one.
        if (complete.is_empty() || self.spec.page_interval_s.is_some()) && !self.loads.is_empty() {
            if news.lost {
                self.fail(io);
            } else {
                self.request(io);
            }
        }
    }

    fn came(&mut self, came: &Came, now: Instant) {
        let Some(load) = self.loads.get_mut(&came.request.page) else { return };
        let number = came.request.object;
        let Some(arrival) = load.arrive(number, came.stream, now) else { return };
        let bytes = load.object(number).bytes;
        self.results.object(Completion { started: arrival.requested, completed: now, bytes });
        if let Some(took) = arrival.mains {
            self.results.mains(took);
        }
        if let Some(took) = arrival.above_fold {
            self.results.above_fold(took);
        }
    }

    fn complete(&mut self, number: u32, io: &mut dyn Io) {
        let now = io.now();
        let Some(load) = self.loads.remove(&number) else { return };
        let page = Completion { started: load.started, completed: now, bytes: load.bytes() };
        self.results.page(page, &load.streams);
        let last = !self.spec.has(self.next) && self.loads.is_empty();
        if last || !self.spec.keep_connections {
            self.browser.leave(io);
        }
        if last {
            self.progress.completed = Some(now);
            io.wake_at(Instant::NEVER);
        } else if load.page.interval.is_some() {
            // The next page begins, or has begun, whatever has come of this one.
        } else if load.page.reading.is_zero() {
            self.begin(io);
        } else {
            self.start_next_at(now.saturating_add(load.page.reading), io);
        }
    }

    /// Gives up the pages on their way.
    fn fail(&mut self, io: &mut dyn Io) {
        let loads = std::mem::take(&mut self.loads);
        if loads.is_empty() {
            return;
        }
        loads.values().for_each(|_| self.results.page_failed());
        self.browser.abandon(io);
        if self.spec.page_interval_s.is_none() {
            // At least a nanosecond: where every connection is refused at once, time goes on all the same.
            let reading = loads.values().map(|load| load.page.reading).max().unwrap_or_default();
            self.start_next_at(io.now().saturating_add(reading.max(Duration::from_nanos(1))), io);
        }
    }
}

/// Streams that are told apart in results.
fn streams_told_apart(spec: &WebSpec) -> usize {
    if spec.http == Http::Streams { spec.streams() as usize } else { 0 }
}

impl Application for WebClient {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.begin(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        if self.next_start <= io.now() {
            return self.begin(io);
        }
        if self.next_start != Instant::NEVER {
            io.wake_at(self.next_start);
        }
        self.request(io);
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
        self.results.figures(self.loads.len())
    }
}
