//! A transfer on request: the acceptor, not the initiator, sends the data of the workload.
//!
//! The initiator opens the stream and writes a request of one byte. The acceptor runs the workload's sender, which starts when
//! the stream arrives and uses that stream instead of opening one. A tunnel (CONNECT-UDP) connects its client to any target, but
//! not the reverse, so a download through a tunnel is such a transfer.

use crate::application::{Application, Completion, Io, MetricValue, OpenOptions, Progress, StreamId, read_length};
use crate::component::{FlowContext, Workload, WorkloadSettings};
use crate::demand::Demand;
use fullpipe_transport::{Payload, Priority, Stream, TransportEvent};
use fullpipe_units::{Instant, ParameterError};
use std::path::Path;
use std::sync::Arc;

/// Size of the request in bytes.
const REQUEST_BYTES: u64 = 1;

/// The settings of a workload whose data the acceptor sends.
#[derive(Clone, Debug)]
pub struct DownloadSpec(Arc<dyn WorkloadSettings>);

impl DownloadSpec {
    /// Returns the workload with the acceptor as the sender. `None` unless the workload sends all data over one stream of its
    /// initiator.
    pub(crate) fn of(sent: &Arc<dyn WorkloadSettings>) -> Option<DownloadSpec> {
        sent.sends_on_one_stream().then(|| DownloadSpec(Arc::clone(sent)))
    }
}

impl Workload {
    /// Returns the workload with the acceptor as the sender, on request of the initiator. `None` unless the workload sends all
    /// data over a single stream.
    #[must_use]
    pub fn to_download(&self) -> Option<Workload> {
        self.with_settings(DownloadSpec::of)
    }
}

impl PartialEq for DownloadSpec {
    fn eq(&self, other: &Self) -> bool {
        self.0.dyn_eq(&*other.0 as &dyn std::any::Any)
    }
}

impl WorkloadSettings for DownloadSpec {
    fn is_unlimited(&self) -> bool {
        self.0.is_unlimited()
    }

    fn demand(&self, time_s: f64) -> Demand {
        self.0.demand(time_s).reversed()
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let [sender, receiver] = self.0.applications(context)?;
        Ok([Box::new(Fetching(receiver)), Box::new(Serving { sender, stream: None })])
    }

    fn check(&self) -> Result<(), ParameterError> {
        self.0.check()
    }

    fn port(&self) -> Option<u16> {
        self.0.port()
    }

    /// The initiator sends no more than a request.
    fn senders(&self) -> [bool; 2] {
        [false, true]
    }

    fn file(&self) -> Option<&Path> {
        self.0.file()
    }

    fn sums_connections(&self) -> bool {
        self.0.sums_connections()
    }
}

/// Sends the request, then behaves as the workload's receiver.
#[derive(Debug)]
struct Fetching(Box<dyn Application>);

impl Application for Fetching {
    fn on_start(&mut self, io: &mut dyn Io) {
        let id = io.open();
        if let Some(stream) = io.stream(id) {
            stream.write(Payload::Length(REQUEST_BYTES));
        }
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        self.0.on_wake(io);
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        self.0.on_stream(stream, event, io);
    }

    fn progress(&self) -> Progress {
        self.0.progress()
    }

    fn completions(&self) -> &[Completion] {
        self.0.completions()
    }

    fn digest(&self) -> Option<String> {
        self.0.digest()
    }

    fn metric_values(&self, end: Instant) -> Vec<MetricValue> {
        self.0.metric_values(end)
    }
}

/// Behaves as the workload's sender, on the stream of the request.
#[derive(Debug)]
struct Serving {
    sender: Box<dyn Application>,
    stream: Option<StreamId>,
}

impl Application for Serving {
    fn on_wake(&mut self, io: &mut dyn Io) {
        self.sender.on_wake(&mut OneStream { io, stream: self.stream });
    }

    fn on_stream(&mut self, id: StreamId, event: TransportEvent, io: &mut dyn Io) {
        if self.stream.is_none() {
            self.stream = Some(id);
            self.sender.on_start(&mut OneStream { io, stream: self.stream });
        }
        if event == TransportEvent::Readable {
            read_length(id, u64::MAX, io);
        } else {
            self.sender.on_stream(id, event, &mut OneStream { io, stream: self.stream });
        }
    }

    fn progress(&self) -> Progress {
        self.sender.progress()
    }

    fn completions(&self) -> &[Completion] {
        self.sender.completions()
    }

    fn digest(&self) -> Option<String> {
        self.sender.digest()
    }

    fn metric_values(&self, end: Instant) -> Vec<MetricValue> {
        self.sender.metric_values(end)
    }
}

/// An [`Io`] whose `open` returns the existing stream.
struct OneStream<'a> {
    io: &'a mut dyn Io,
    stream: Option<StreamId>,
}

impl Io for OneStream<'_> {
    fn now(&self) -> Instant {
        self.io.now()
    }

    fn wake_at(&mut self, at: Instant) {
        self.io.wake_at(at);
    }

    fn open_with(&mut self, options: &OpenOptions) -> StreamId {
        self.stream.unwrap_or_else(|| self.io.open_with(options))
    }

    fn set_priority(&mut self, stream: StreamId, priority: Priority) {
        self.io.set_priority(stream, priority);
    }

    fn close_connection(&mut self, stream: StreamId) {
        self.io.close_connection(stream);
    }

    fn stream(&mut self, stream: StreamId) -> Option<&mut dyn Stream> {
        self.io.stream(stream)
    }

    fn connection_number(&self, stream: StreamId) -> Option<u32> {
        self.io.connection_number(stream)
    }

    fn stream_number(&self, stream: StreamId) -> Option<u64> {
        self.io.stream_number(stream)
    }

    fn send_datagram(&mut self, payload_bytes: u32) {
        self.io.send_datagram(payload_bytes);
    }
}
