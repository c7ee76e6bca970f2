//! The client, which requests, buffers and plays segments.

use super::choice::RateSelector;
use super::playback::Playback;
use super::{MEAN_BIT_RATE, METRICS, REQUEST_CONTENT_BYTES, STALLS, STARTUP, VideoAbrSpec};
use crate::application::{Application, ApplicationMetric, Completion, Io, MetricValue, Progress, StreamId};
use crate::component::WorkloadSettings;
use bytes::{BufMut, Bytes, BytesMut};
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Duration, Instant, ParameterError, Rate};

/// The requested segment.
#[derive(Debug)]
struct Fetch {
    asked: Instant,
    rate: Rate,
    bytes: u64,
    unread_bytes: u64,
}

/// The client, which requests segments of the video and plays them.
#[derive(Debug)]
pub struct VideoAbrClient {
    spec: VideoAbrSpec,
    chooser: RateSelector,
    playback: Playback,
    start: Instant,
    stream: Option<StreamId>,
    /// The unwritten part of the request.
    unwritten: Bytes,
    fetch: Option<Fetch>,
    /// Number of segments requested.
    asked: u64,
    /// Rates of the received segments: sum in bit/s, number of changes, last.
    rate_sum: u128,
    switches: u64,
    last_rate: Option<Rate>,
    completions: Vec<Completion>,
    progress: Progress,
}

impl VideoAbrClient {
    /// Creates the client.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &VideoAbrSpec) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(VideoAbrClient {
            chooser: RateSelector::new(spec.choice, spec.ladder.clone()),
            playback: Playback::new(spec.start_level, spec.resume_level),
            spec: spec.clone(),
            start: Instant::ZERO,
            stream: None,
            unwritten: Bytes::new(),
            fetch: None,
            asked: 0,
            rate_sum: 0,
            switches: 0,
            last_rate: None,
            completions: Vec::new(),
            progress: Progress::default(),
        })
    }

    fn ask(&mut self, level: Duration, io: &mut dyn Io) {
        let rate = self.chooser.next(level);
        let bytes = rate.bytes_in(self.spec.segment);
        self.fetch = Some(Fetch { asked: io.now(), rate, bytes, unread_bytes: bytes });
        self.unwritten = self.request(rate);
        self.asked += 1;
        self.write(io);
    }

    fn request(&self, rate: Rate) -> Bytes {
        let mut request = BytesMut::with_capacity(self.spec.request_bytes as usize);
        request.put_u64(rate.bits_per_second());
        request.put_u64(self.asked);
        request.put_bytes(0, (self.spec.request_bytes - REQUEST_CONTENT_BYTES) as usize);
        request.freeze()
    }

    fn write(&mut self, io: &mut dyn Io) {
        if !self.unwritten.is_empty()
            && let Some(stream) = self.stream.and_then(|id| io.stream(id))
        {
            let written = stream.write(Payload::Bytes(self.unwritten.clone()));
            let _ = self.unwritten.split_to(written as usize);
        }
    }

    fn read(&mut self, io: &mut dyn Io) {
        let now = io.now();
        let (Some(fetch), Some(id)) = (&mut self.fetch, self.stream) else { return };
        let Some(stream) = io.stream(id) else { return };
        while fetch.unread_bytes > 0
            && let Some(payload) = stream.read(fetch.unread_bytes)
        {
            fetch.unread_bytes -= payload.len();
            self.progress.count_received(payload.len(), now);
        }
        if fetch.unread_bytes == 0 {
            self.arrived(now, io);
        }
    }

    fn arrived(&mut self, now: Instant, io: &mut dyn Io) {
        let Some(fetch) = self.fetch.take() else { return };
        self.chooser.sample(fetch.bytes, now.saturating_since(fetch.asked));
        self.rate_sum += u128::from(fetch.rate.bits_per_second());
        self.switches += u64::from(self.last_rate.is_some_and(|last| last != fetch.rate));
        self.last_rate = Some(fetch.rate);
        self.completions.push(Completion { started: fetch.asked, completed: now, bytes: fetch.bytes });
        let last = self.spec.segments.is_some_and(|segments| self.asked >= segments);
        let (segment, max_level) = (self.spec.segment, self.spec.max_level);
        self.playback.add(now, segment, |level| level.saturating_add(segment) <= max_level, last);
        if last {
            self.progress.completed = Some(now);
            if let Some(stream) = self.stream.take().and_then(|id| io.stream(id)) {
                stream.finish();
            }
        } else {
            self.ask_when_there_is_room(io);
        }
    }

    fn ask_when_there_is_room(&mut self, io: &mut dyn Io) {
        let level = self.playback.advance(io.now());
        let excess = level.saturating_add(self.spec.segment).saturating_sub(self.spec.max_level);
        if excess.is_zero() {
            self.ask(level, io);
        } else {
            // The buffer has no room, so it is playing.
            let at = io.now().saturating_add(excess);
            io.wake_at(at);
        }
    }
}

impl Application for VideoAbrClient {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.start = io.now();
        if self.spec.segments != Some(0) {
            self.stream = Some(io.open());
            self.ask(Duration::ZERO, io);
        }
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        if self.fetch.is_none() && self.stream.is_some() {
            self.ask_when_there_is_room(io);
        }
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        if self.stream != Some(stream) {
            return;
        }
        match event {
            TransportEvent::Connected | TransportEvent::Writable => self.write(io),
            TransportEvent::Readable => self.read(io),
            TransportEvent::Closed(_) => {
                self.stream = None;
                self.fetch = None;
            }
            TransportEvent::PeerFinished => {}
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn completions(&self) -> &[Completion] {
        &self.completions
    }

    fn metric_values(&self, end: Instant) -> Vec<MetricValue> {
        let mut playback = self.playback.clone();
        playback.advance(end);
        let stalled = self.playback.stalled_until(end).as_secs_f64();
        let mut figures = ApplicationMetric::values(&METRICS, [self.completions.len() as f64, self.switches as f64]);
        // A video that never plays has no stalls, but must not look like one that played without stalls.
        if let Some(started) = self.playback.started {
            figures.extend(ApplicationMetric::values(&STALLS, [playback.stalls as f64, stalled]));
            figures.push(STARTUP.value(started.saturating_since(self.start).as_secs_f64()));
        }
        if !self.completions.is_empty() {
            let mean = self.rate_sum as f64 / self.completions.len() as f64;
            figures.push(MEAN_BIT_RATE.value(mean));
        }
        figures
    }
}
