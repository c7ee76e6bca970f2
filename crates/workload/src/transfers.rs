//! A list of transfers on one connection: each begins at its time, or when the one before has been written if that is
//! later. The stream is finished after the last.

use crate::application::{Application, Io, StreamId};
use fullpipe_transport::{Event, Payload};
use fullpipe_units::{Duration, Instant};

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// When, counted from the start of the flow.
    pub at: Duration,
    /// How much.
    pub size_bytes: u64,
}

/// A sender of transfers.
#[derive(Debug)]
pub struct Transfers {
    transfers: Vec<Transfer>,
    next: usize,
    written_bytes: u64,
    started: Instant,
    stream: Option<StreamId>,
}

impl Transfers {
    /// A sender of these transfers, in this order.
    pub fn new(transfers: Vec<Transfer>) -> Self {
        Transfers { transfers, next: 0, written_bytes: 0, started: Instant::ZERO, stream: None }
    }

    fn fill(&mut self, io: &mut dyn Io) {
        let Some(id) = self.stream else { return };
        while let Some(transfer) = self.transfers.get(self.next) {
            let at = self.started.saturating_add(transfer.at);
            if at > io.now() {
                return io.wake_at(at);
            }
            let Some(stream) = io.stream(id) else { return };
            self.written_bytes += stream.write(Payload::Length(transfer.size_bytes - self.written_bytes));
            if self.written_bytes < transfer.size_bytes {
                return;
            }
            self.next += 1;
            self.written_bytes = 0;
        }
        if let Some(stream) = io.stream(id) {
            stream.finish();
        }
        self.stream = None;
    }
}

impl Application for Transfers {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.started = io.now();
        self.stream = Some(io.open());
        self.fill(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        self.fill(io);
    }

    fn on_stream(&mut self, _stream: StreamId, event: Event, io: &mut dyn Io) {
        if matches!(event, Event::Connected | Event::Writable) {
            self.fill(io);
        }
    }
}
