//! The browser, which fetches pages and records their load times.
//!
//! A [`Browser`] fetches objects with one version of HTTP. A page whose connection is lost has failed: its remaining objects are
//! abandoned, and the next page follows after the reading time on new connections. With `page_interval` several pages can be in
//! progress, and a lost connection fails all of them.

mod http1;
mod http2;
mod http3;
mod streams;

use super::load::PageLoad;
use super::page::Pages;
use super::results::Results;
use super::wire::Request;
use super::{PageProtocol, WebSpec};
use crate::application::{Application, Completion, Io, MetricValue, OpenOptions, Progress, StreamId};
use crate::component::WorkloadSettings;
use fullpipe_transport::TransportEvent;
use fullpipe_units::{Duration, Instant, ParameterError, RandomStream};
use std::collections::BTreeMap;
use std::fmt;

/// Time until the next attempt to open a stream after the peer's stream limit was reached.
const RETRY: Duration = Duration::from_millis(1);

/// Options of a connection for several streams: it stays open until it is closed explicitly.
const SEVERAL_STREAMS: OpenOptions = OpenOptions { mss_bytes: None, receive_buffer_bytes: None, several_streams: true };

/// The results of an event.
#[derive(Debug, Default)]
struct News {
    /// Bytes read.
    bytes: u64,
    /// Objects that have arrived.
    came: Vec<Came>,
    /// Whether a required connection is lost.
    lost: bool,
}

/// An object that has arrived.
#[derive(Debug)]
struct Came {
    request: Request,
    /// The stream, if streams are distinguished.
    stream: Option<u32>,
}

/// Fetches objects with one version of HTTP.
trait Browser: fmt::Debug + Send {
    /// Sends as many permitted requests as possible. Returns whether it must be called again a little later even without an
    /// event.
    fn request(&mut self, load: &mut PageLoad, io: &mut dyn Io) -> bool;

    /// Handles an event on a stream.
    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) -> News;

    /// Closes its connections after all data are delivered; no request is in progress.
    fn leave(&mut self, io: &mut dyn Io);

    /// Closes its connections at once.
    fn abandon(&mut self, io: &mut dyn Io);
}

/// The client, which fetches pages.
#[derive(Debug)]
pub struct WebClient {
    spec: WebSpec,
    pages: Pages,
    browser: Box<dyn Browser>,
    /// The pages in progress, by number; at most one unless pages overlap.
    loads: BTreeMap<u32, PageLoad>,
    /// Number of the next page.
    next: u32,
    /// When the next page starts, if known.
    next_start: Instant,
    results: Results,
    progress: Progress,
}

impl WebClient {
    /// Creates the client. `random` is a copy of the server's random stream.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &WebSpec, random: RandomStream) -> Result<Self, ParameterError> {
        spec.check()?;
        let browser: Box<dyn Browser> = match spec.http {
            PageProtocol::Http1 => Box::new(http1::Http1::new(spec)),
            PageProtocol::Http2 => Box::new(http2::Http2::new(spec)),
            PageProtocol::Http3 => Box::new(http3::Http3::new(spec)),
            PageProtocol::Streams => Box::new(streams::StreamsClient::new(spec)),
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
        self.loads.insert(self.next, PageLoad::new(page, streams_told_apart(&self.spec), io.now()));
        self.next += 1;
        self.request(io);
    }

    fn start_next_at(&mut self, at: Instant, io: &mut dyn Io) {
        self.next_start = at;
        io.wake_at(at);
    }

    /// Sends the permitted requests, those of earlier pages first.
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
            self.progress.count_received(news.bytes, now);
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
        // If pages do not overlap, the next one has already started, on a connection that is not the lost one.
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
            // With `page_interval`, the next page starts independently of this one.
        } else if load.page.reading.is_zero() {
            self.begin(io);
        } else {
            self.start_next_at(now.saturating_add(load.page.reading), io);
        }
    }

    /// Abandons the pages in progress.
    fn fail(&mut self, io: &mut dyn Io) {
        let loads = std::mem::take(&mut self.loads);
        if loads.is_empty() {
            return;
        }
        loads.values().for_each(|_| self.results.page_failed());
        self.browser.abandon(io);
        if self.spec.page_interval_s.is_none() {
            // At least a nanosecond, so that time advances even if every connection is refused at once.
            let reading = loads.values().map(|load| load.page.reading).max().unwrap_or_default();
            self.start_next_at(io.now().saturating_add(reading.max(Duration::from_nanos(1))), io);
        }
    }
}

/// Number of streams that results distinguish.
fn streams_told_apart(spec: &WebSpec) -> usize {
    if spec.http == PageProtocol::Streams { spec.streams() as usize } else { 0 }
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

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        let news = self.browser.on_stream(stream, event, io);
        self.learn(&news, io);
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn completions(&self) -> &[Completion] {
        &self.results.completions
    }

    fn metric_values(&self, _end: Instant) -> Vec<MetricValue> {
        self.results.figures(self.loads.len())
    }
}
