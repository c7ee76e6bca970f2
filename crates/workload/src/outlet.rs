//! The output of a source: datagrams, or writes to one stream.
//!
//! Data that do not fit into the send buffer wait in a backlog, which is written as soon as there is room. Pieces that wait lose
//! their boundaries, as with a program that has a buffer of its own.

use crate::application::{Io, StreamId};
use fullpipe_transport::{Payload, TransportEvent};

#[derive(Debug)]
pub(crate) struct PayloadSender {
    over_stream: bool,
    stream: Option<StreamId>,
    backlog_bytes: u64,
    ended: bool,
}

impl PayloadSender {
    pub(crate) fn new(over_stream: bool) -> Self {
        PayloadSender { over_stream, stream: None, backlog_bytes: 0, ended: false }
    }

    /// Opens the stream, if the output is a stream.
    pub(crate) fn open(&mut self, io: &mut dyn Io) {
        if self.over_stream {
            self.stream = Some(io.open());
        }
    }

    /// Sends a datagram or writes to the stream.
    #[inline]
    pub(crate) fn send(&mut self, payload_bytes: u32, io: &mut dyn Io) {
        if !self.over_stream {
            return io.send_datagram(payload_bytes);
        }
        self.backlog_bytes = self.backlog_bytes.saturating_add(u64::from(payload_bytes));
        self.flush(io);
    }

    /// Ends the output: the stream is finished when the backlog is written.
    pub(crate) fn end(&mut self, io: &mut dyn Io) {
        self.ended = true;
        self.flush(io);
    }

    pub(crate) fn on_stream(&mut self, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Connected | TransportEvent::Writable => self.flush(io),
            TransportEvent::Closed(_) => self.stream = None,
            TransportEvent::Readable | TransportEvent::PeerFinished => {}
        }
    }

    fn flush(&mut self, io: &mut dyn Io) {
        let Some(stream) = self.stream.and_then(|id| io.stream(id)) else { return };
        if self.backlog_bytes > 0 {
            self.backlog_bytes -= stream.write(Payload::Length(self.backlog_bytes)).min(self.backlog_bytes);
        }
        if self.ended && self.backlog_bytes == 0 {
            stream.finish();
            self.stream = None;
        }
    }
}
