//! Constant rate: one datagram, or one write on a stream, per interval.

use crate::application::{Application, Io, StreamId};
use crate::outlet::Outlet;
use fullpipe_transport::Event;
use fullpipe_units::{Duration, Instant};

/// A sender at a constant rate.
#[derive(Debug)]
pub struct ConstantRate {
    payload_bytes: u32,
    interval: Duration,
    remaining: u64,
    next: Instant,
    outlet: Outlet,
}

impl ConstantRate {
    /// `count` payloads (`None`: without end) of `payload_bytes`, one per `interval` (at least 1 ns), the first at the
    /// start; as datagrams, or as writes on a stream.
    pub fn new(payload_bytes: u32, interval: Duration, count: Option<u64>, over_stream: bool) -> Self {
        ConstantRate {
            payload_bytes,
            interval: interval.max(Duration::from_nanos(1)),
            remaining: count.unwrap_or(u64::MAX),
            next: Instant::ZERO,
            outlet: Outlet::new(over_stream),
        }
    }
}

impl Application for ConstantRate {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.next = io.now();
        self.outlet.open(io);
        self.on_wake(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        if self.remaining == 0 {
            return;
        }
        if self.remaining != u64::MAX {
            self.remaining -= 1;
        }
        self.outlet.send(self.payload_bytes, io);
        if self.remaining > 0 {
            self.next = self.next.saturating_add(self.interval);
            io.wake_at(self.next);
        } else {
            self.outlet.end(io);
        }
    }

    fn on_stream(&mut self, _stream: StreamId, event: Event, io: &mut dyn Io) {
        self.outlet.on_stream(event, io);
    }
}
