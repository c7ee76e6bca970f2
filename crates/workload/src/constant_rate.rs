//! Constant rate: one datagram, or one write on a stream, per interval.

use crate::application::{Application, Io, StreamId};
use fullpipe_transport::{Event, Payload};
use fullpipe_units::{Duration, Instant};

/// A sender at a constant rate.
#[derive(Debug)]
pub struct ConstantRate {
    payload_bytes: u32,
    interval: Duration,
    remaining: u64,
    over_stream: bool,
    next: Instant,
    stream: Option<StreamId>,
    /// Bytes due on a stream that did not fit into its send buffer yet.
    backlog_bytes: u64,
}

impl ConstantRate {
    /// `count` payloads (`None`: without end) of `payload_bytes`, one per `interval` (at least 1 ns), the first at the
    /// start; as datagrams, or as writes on a stream.
    pub fn new(payload_bytes: u32, interval: Duration, count: Option<u64>, over_stream: bool) -> Self {
        ConstantRate {
            payload_bytes,
            interval: interval.max(Duration::from_nanos(1)),
            remaining: count.unwrap_or(u64::MAX),
            over_stream,
            next: Instant::ZERO,
            stream: None,
            backlog_bytes: 0,
        }
    }

    fn flush(&mut self, io: &mut dyn Io) {
        let Some(stream) = self.stream.and_then(|id| io.stream(id)) else { return };
        self.backlog_bytes -= stream.write(Payload::Length(self.backlog_bytes)).min(self.backlog_bytes);
        if self.remaining == 0 && self.backlog_bytes == 0 {
            stream.finish();
            self.stream = None;
        }
    }
}

impl Application for ConstantRate {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.next = io.now();
        if self.over_stream {
            self.stream = Some(io.open());
        }
        self.on_wake(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        if self.remaining == 0 {
            return;
        }
        if self.remaining != u64::MAX {
            self.remaining -= 1;
        }
        if self.over_stream {
            self.backlog_bytes += u64::from(self.payload_bytes);
            self.flush(io);
        } else {
            io.send_datagram(self.payload_bytes);
        }
        if self.remaining > 0 {
            self.next = self.next.saturating_add(self.interval);
            io.wake_at(self.next);
        }
    }

    fn on_stream(&mut self, _stream: StreamId, event: Event, io: &mut dyn Io) {
        if matches!(event, Event::Connected | Event::Writable) && self.backlog_bytes > 0 {
            self.flush(io);
        }
    }
}
