//! The interface between applications and the transports that carry their data.

use fullpipe_transport::{Priority, Stream, TransportEvent};
use fullpipe_units::{Duration, Instant};
use std::fmt;

/// The number of a stream within an application. [`Io::open`] returns the number of an opened stream; the first event
/// of an accepted stream contains its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// Options of one stream that override those of its flow. Arrays contain the initiator's value, then the acceptor's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// Payload of a full segment, in bytes; `None` keeps the value of the flow.
    pub mss_bytes: Option<[u32; 2]>,
    /// Receive buffer in bytes, which limits the advertised window; `None` keeps the value of the flow.
    pub receive_buffer_bytes: Option<[u64; 2]>,
    /// Whether the connection will have several streams. If so, the connection stays open until
    /// [`Io::close_connection`], even after its last open stream has ended.
    pub several_streams: bool,
}

/// The operations that an application can perform. All of them take effect at the time [`Io::now`].
pub trait Io {
    /// The current time.
    fn now(&self) -> Instant;

    /// Sets the application's timer; a later call replaces an earlier one. [`Instant::NEVER`] cancels the timer.
    fn wake_at(&mut self, at: Instant);

    /// Opens a stream to the peer of the application's flow. The application can write to the stream at once; the data
    /// are sent when the connection is established.
    fn open(&mut self) -> StreamId {
        self.open_with(&OpenOptions::default())
    }

    /// Opens a stream with options that override those of the flow.
    fn open_with(&mut self, options: &OpenOptions) -> StreamId;

    /// Opens another stream on the connection of `beside`. Returns `None` if the transport has one stream per connection (TCP),
    /// the connection is closed, or the peer's stream limit is reached.
    fn open_on_same_connection(&mut self, _beside: StreamId) -> Option<StreamId> {
        None
    }

    /// Sets the priority of a stream's data. A transport with one stream per connection ignores the priority.
    fn set_priority(&mut self, _stream: StreamId, _priority: Priority) {}

    /// Closes the connection of a stream, with all its streams, after all written data have been delivered. A connection with one
    /// stream closes when both ends have finished the stream.
    fn close_connection(&mut self, _stream: StreamId) {}

    /// Returns one of the application's streams, or `None` if it is closed and removed.
    fn stream(&mut self, stream: StreamId) -> Option<&mut dyn Stream>;

    /// Number of the stream's connection within the flow, counted from 0 in the order in which connections were opened.
    /// `None` if the stream is removed. Both ends use the same number, even if connections arrive in a different order.
    /// In a real network, port numbers identify a connection at both ends.
    fn connection_number(&self, stream: StreamId) -> Option<u32>;

    /// Number of the stream among the streams of its connection that the same side opened, counted from 0. Both ends
    /// use the same number. `None` if the stream is removed. The only stream of a connection has number 0.
    fn stream_number(&self, stream: StreamId) -> Option<u64> {
        self.connection_number(stream).map(|_| 0)
    }

    /// Sends a datagram with `payload_bytes` bytes to the peer of the application's flow.
    fn send_datagram(&mut self, payload_bytes: u32);
}

/// The progress of an application, read at the end of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Payload bytes that this application received in order.
    pub received_bytes: u64,
    /// When the last of these bytes arrived; `None` if no bytes have arrived.
    pub last_received: Option<Instant>,
    /// When all expected data had arrived: the peer finished, or the known size was reached. `None` if data are
    /// missing.
    pub completed: Option<Instant>,
}

impl Progress {
    /// Counts payload bytes that the application received at `now`.
    #[inline]
    pub fn count_received(&mut self, bytes: u64, now: Instant) {
        self.received_bytes += bytes;
        self.last_received = Some(now);
    }
}

/// A completed exchange or transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When the application started the exchange or transfer.
    pub started: Instant,
    /// When the last byte arrived.
    pub completed: Instant,
    /// Payload bytes received.
    pub bytes: u64,
}

/// A named result. The suffix of the name is the unit (`_s`, `_bps`); a count has no suffix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricValue {
    /// The name, for instance `rebuffer_s`.
    pub name: &'static str,
    /// The value; NaN if it is undefined, such as a mean without samples.
    pub value: f64,
}

/// The declaration of a metric that an application reports at the end of a run. Its values are [`MetricValue`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApplicationMetric {
    /// The name, which ends in the unit (`_s`, `_bps`, `_bytes`); a count has no suffix.
    pub name: &'static str,
    /// The unit; empty for a count.
    pub unit: &'static str,
    /// The description, in one sentence.
    pub text: &'static str,
}

impl ApplicationMetric {
    /// Creates a metric.
    pub const fn new(name: &'static str, unit: &'static str, text: &'static str) -> Self {
        ApplicationMetric { name, unit, text }
    }

    /// Returns a [`MetricValue`] of this metric.
    pub const fn value(&self, value: f64) -> MetricValue {
        MetricValue { name: self.name, value }
    }

    /// Returns one [`MetricValue`] for each metric, in order. `values` has the same order as `metrics`.
    pub fn values<const N: usize>(metrics: &[ApplicationMetric; N], values: [f64; N]) -> Vec<MetricValue> {
        metrics.iter().zip(values).map(|(metric, value)| metric.value(value)).collect()
    }
}

/// Reads at most `max_bytes` bytes without regard to their content, in as many pieces as they arrive in. Returns their number.
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

/// Number, mean and longest time of completions. Without completions there is only the number.
pub(crate) fn summary(completions: &[Completion], metrics: &[ApplicationMetric; 3]) -> Vec<MetricValue> {
    let count = completions.len() as f64;
    let mut figures = vec![metrics[0].value(count)];
    let times = || completions.iter().map(|one| one.completed.saturating_since(one.started));
    if let Some(longest) = times().max() {
        let sum: f64 = times().map(|time| time.as_secs_f64()).sum();
        figures.push(metrics[1].value(sum / count));
        figures.push(metrics[2].value(longest.as_secs_f64()));
    }
    figures
}

/// Times in seconds, in ascending order. Without times, mean and quantiles are NaN.
pub(crate) struct SortedTimes(Vec<f64>);

impl SortedTimes {
    pub(crate) fn new(times: &[Duration]) -> Self {
        let mut seconds: Vec<f64> = times.iter().map(|time| time.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        SortedTimes(seconds)
    }

    pub(crate) fn mean(&self) -> f64 {
        if self.0.is_empty() { f64::NAN } else { self.0.iter().sum::<f64>() / self.0.len() as f64 }
    }

    /// The quantile, as the nearest rank.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }
}

/// An application at one host. By default all methods do nothing.
pub trait Application: fmt::Debug + Send {
    /// Called when the flow starts, at the initiator only.
    fn on_start(&mut self, _io: &mut dyn Io) {}

    /// Called when the timer set by [`Io::wake_at`] expires.
    fn on_wake(&mut self, _io: &mut dyn Io) {}

    /// Returns the progress of an application whose only action on [`TransportEvent::Readable`] is to read all data and
    /// count the bytes. The host may then do both without a call of [`Application::on_stream`] for that event. `None`
    /// for all other applications.
    fn receive_counter(&mut self) -> Option<&mut Progress> {
        None
    }

    /// Called for each event on a stream. The first event of a stream at an accepting side is
    /// [`TransportEvent::Connected`].
    fn on_stream(&mut self, _stream: StreamId, _event: TransportEvent, _io: &mut dyn Io) {}

    /// Called when a datagram arrives.
    fn on_datagram(&mut self, _payload_bytes: u32, _io: &mut dyn Io) {}

    /// Returns the progress so far.
    fn progress(&self) -> Progress {
        Progress::default()
    }

    /// Returns the completed exchanges or transfers in order of completion. Only the end of a flow that receives the
    /// last byte reports them.
    fn completions(&self) -> &[Completion] {
        &[]
    }

    /// Returns the SHA-256 of the data written or read, in hexadecimal; `None` if the application computes no digest.
    fn digest(&self) -> Option<String> {
        None
    }

    /// Returns the values of the application's metrics for a run that ended at `end`, in a fixed order.
    fn metric_values(&self, _end: Instant) -> Vec<MetricValue> {
        Vec::new()
    }
}
