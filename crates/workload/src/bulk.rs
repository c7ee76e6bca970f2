//! Bulk transfer: writes of one size as long as the send buffer has room for a whole write, up to a total.
//!
//! A write that does not fit whole waits until it does (a blocking `write` of that size, ns-3's BulkSend). The last
//! write is what remains. When all is written the stream is finished.

use crate::application::{Application, Io, StreamId};
use crate::content::Content;
use bytes::Bytes;
use fullpipe_transport::{Event, Payload};

/// A bulk sender.
#[derive(Debug)]
pub struct Bulk {
    /// Bytes still to write; `u64::MAX` without end.
    remaining_bytes: u64,
    write_bytes: u64,
    stream: Option<StreamId>,
    /// What it writes, if not just bytes.
    content: Option<Box<Content>>,
}

impl Bulk {
    /// A sender of `size_bytes` (`None`: without end) in writes of `write_bytes` (at least 1).
    pub fn new(size_bytes: Option<u64>, write_bytes: u64) -> Self {
        Bulk {
            remaining_bytes: size_bytes.unwrap_or(u64::MAX),
            write_bytes: write_bytes.max(1),
            stream: None,
            content: None,
        }
    }

    /// The same with bytes that matter.
    pub fn with_content(self, content: Content) -> Self {
        Bulk { content: Some(Box::new(content)), ..self }
    }

    /// The payload of the next write.
    fn payload(content: &mut Option<Box<Content>>, bytes: u64) -> Payload {
        let Some(content) = content else { return Payload::Length(bytes) };
        let mut payload = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        content.fill(&mut payload);
        Payload::Bytes(Bytes::from(payload))
    }

    fn fill(&mut self, io: &mut dyn Io) {
        let Some(id) = self.stream else { return };
        let Some(stream) = io.stream(id) else { return };
        while self.remaining_bytes > 0 {
            let next = self.write_bytes.min(self.remaining_bytes);
            if stream.writable_bytes() < next || stream.write(Self::payload(&mut self.content, next)) != next {
                return;
            }
            if self.remaining_bytes != u64::MAX {
                self.remaining_bytes -= next;
            }
        }
        stream.finish();
        self.stream = None;
    }
}

impl Application for Bulk {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.stream = Some(io.open());
        self.fill(io);
    }

    fn on_stream(&mut self, _stream: StreamId, event: Event, io: &mut dyn Io) {
        if matches!(event, Event::Connected | Event::Writable) {
            self.fill(io);
        }
    }

    fn digest(&self) -> Option<String> {
        self.content.as_ref().map(|content| content.digest().text())
    }
}
