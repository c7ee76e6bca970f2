//! The trait between applications and whatever carries their data.

use fullpipe_transport::{Event, Priority, Stream};
use fullpipe_units::{Duration, Instant};
use std::fmt;

/// A stream of an application: the number that [`Io::open`] gave, or that of an accepted stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// What of a stream may differ from what its flow says; of initiator and acceptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Payload of a full segment, in bytes.
    pub mss_bytes: Option<[u32; 2]>,
    /// Receive buffer in bytes: bounds the window that is offered.
    pub receive_buffer_bytes: Option<[u64; 2]>,
    /// Other streams will be opened beside it: the connection stays until [`Io::close_connection`], and does not end with
    /// its only stream.
    pub several_streams: bool,
}

/// What an application can do. Everything is at [`Io::now`].
pub trait Io {
    /// Now.
    fn now(&self) -> Instant;

    /// Asks to be woken at an instant; a later call replaces an earlier one. [`Instant::NEVER`] cancels.
    fn wake_at(&mut self, at: Instant);

    /// Opens a stream to the peer of the application's flow. It can be written to at once; data leave when the
    /// connection is established.
    fn open(&mut self) -> StreamId {
        self.open_with(&OpenOptions::default())
    }

    /// Opens a stream that differs from the flow's others.
    fn open_with(&mut self, options: &OpenOptions) -> StreamId;

    /// Opens another stream on the connection that carries `beside`: `None` where a connection has one stream only (TCP), where
    /// the connection is gone, or where the peer allows no further stream for now.
    fn open_beside(&mut self, _beside: StreamId) -> Option<StreamId> {
        None
    }

    /// Says how urgent what is written to a stream is. A transport with one stream has nothing to choose from and
    /// ignores it.
    fn set_priority(&mut self, _stream: StreamId, _priority: Priority) {}

    /// Ends the connection that carries a stream, with all its streams, when what was written has been delivered. A
    /// connection with one stream ends when both sides have finished that.
    fn close_connection(&mut self, _stream: StreamId) {}

    /// One of the application's streams, or `None` if it is closed and gone.
    fn stream(&mut self, stream: StreamId) -> Option<&mut dyn Stream>;

    /// Which of its flow's connections a stream is, counted from 0 in the order in which they were opened; `None` if
    /// it is gone. Both ends agree on it, as ends that know each other's ports do, in whatever order connections
    /// arrive.
    fn connection_number(&self, stream: StreamId) -> Option<u32>;

    /// Which of its connection's streams opened by the same side one is, counted from 0; both ends agree on it. `None` if
    /// it is gone. Where a connection has one stream, that is stream 0.
    fn stream_number(&self, stream: StreamId) -> Option<u64> {
        self.connection_number(stream).map(|_| 0)
    }

    /// Sends a datagram of so many payload bytes to the peer of the application's flow.
    fn send_datagram(&mut self, payload_bytes: u32);
}

/// What an application has achieved; read when the run is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Payload bytes that reached this application in order.
    pub received_bytes: u64,
    /// When the last of them did.
    pub last_received: Option<Instant>,
    /// When all that was to come had come (the peer finished, or the known size was reached).
    pub completed: Option<Instant>,
}

impl Progress {
    /// Counts payload bytes that reached the application at an instant.
    #[inline]
    pub fn receive(&mut self, bytes: u64, now: Instant) {
        self.received_bytes += bytes;
        self.last_received = Some(now);
    }
}

/// An exchange or a transfer that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When the application began with it.
    pub started: Instant,
    /// When its last byte had come.
    pub completed: Instant,
    /// Payload bytes that had come.
    pub bytes: u64,
}

/// A result with a name, in the unit that the name ends in (`_s`, `_bps`; a count without).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Its name, for instance `rebuffer_s`.
    pub name: &'static str,
    /// Its value; no number if there is none, such as the mean of nothing.
    pub value: f64,
}

/// What an application reports at the end of a run: a column of numbers, each a [`Figure`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Its name, which ends in the unit (`_s`, `_bps`, `_bytes`; a count has none).
    pub name: &'static str,
    /// Its unit; empty for a count.
    pub unit: &'static str,
    /// What it is, in one sentence.
    pub text: &'static str,
}

impl Metric {
    /// A metric.
    pub const fn new(name: &'static str, unit: &'static str, text: &'static str) -> Self {
        Metric { name, unit, text }
    }

    /// A value of it.
    pub const fn figure(&self, value: f64) -> Figure {
        Figure { name: self.name, value }
    }

    /// A value of each of several.
    pub fn figures<const N: usize>(metrics: &[Metric; N], values: [f64; N]) -> Vec<Figure> {
        metrics.iter().zip(values).map(|(metric, value)| metric.figure(value)).collect()
    }
}

/// Reads at most so many bytes whose content does not matter, in as many pieces as they come in, and says how many it
/// were.
pub(crate) fn read_length(stream: StreamId, max_bytes: u64, io: &mut dyn Io) -> u64 {
    let Some(stream) = io.stream(stream) else { return 0 };
    let mut length = 0;
    while length < max_bytes
        && let Some(payload) = stream.read(max_bytes - length)
    {
        length += payload.len();
    }
    length
}

/// Number, mean and longest time of completions; of none there is only the number.
pub(crate) fn summary(completions: &[Completion], metrics: &[Metric; 3]) -> Vec<Figure> {
    let count = completions.len() as f64;
    let mut figures = vec![metrics[0].figure(count)];
    let times = || completions.iter().map(|one| one.completed.saturating_since(one.started));
    if let Some(longest) = times().max() {
        let sum: f64 = times().map(|time| time.as_secs_f64()).sum();
        figures.push(metrics[1].figure(sum / count));
        figures.push(metrics[2].figure(longest.as_secs_f64()));
    }
    figures
}

/// Times in seconds, ascending; of none there is neither mean nor quantile.
pub(crate) struct Sorted(Vec<f64>);

impl Sorted {
    pub(crate) fn new(times: &[Duration]) -> Self {
        let mut seconds: Vec<f64> = times.iter().map(|time| time.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        Sorted(seconds)
    }

    pub(crate) fn mean(&self) -> f64 {
        if self.0.is_empty() { f64::NAN } else { self.0.iter().sum::<f64>() / self.0.len() as f64 }
    }

    /// The nearest rank.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }
}

/// An application at one host. All methods default to doing nothing.
pub trait Application: fmt::Debug + Send {
    /// The flow starts (only the side that opens).
    fn on_start(&mut self, _io: &mut dyn Io) {}

    /// The instant asked for by [`Io::wake_at`] has come.
    fn on_wake(&mut self, _io: &mut dyn Io) {}

    /// The progress of an application that reacts to [`Event::Readable`] only by reading everything and counting its bytes. Its host
    /// may then do both without calling [`Application::on_stream`] for that event.
    fn receive_counter(&mut self) -> Option<&mut Progress> {
        None
    }

    /// Something happened on a stream. An accepting side first hears of a stream by [`Event::Connected`].
    fn on_stream(&mut self, _stream: StreamId, _event: Event, _io: &mut dyn Io) {}

    /// A datagram came.
    fn on_datagram(&mut self, _payload_bytes: u32, _io: &mut dyn Io) {}

    /// What has been achieved.
    fn progress(&self) -> Progress {
        Progress::default()
    }

    /// Exchanges or transfers that are over, in the order in which they were. One end of a flow tells them: the one
    /// that waited for the last byte.
    fn completions(&self) -> &[Completion] {
        &[]
    }

    /// SHA-256 of what it has written or read, in hexadecimal, where the content matters.
    fn digest(&self) -> Option<String> {
        None
    }

    /// Other results, in a fixed order, of a run that ended at `end`.
    fn figures(&self, _end: Instant) -> Vec<Figure> {
        Vec::new()
    }
}
