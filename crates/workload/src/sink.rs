//! The receiving end of one-way workloads: reads everything at once and records how much and when.

use crate::application::{Application, Io, Progress, StreamId};
use crate::content::Digest;
use fullpipe_transport::{Payload, TransportEvent};

/// A receiver that reads all data as soon as it arrives and counts the bytes.
#[derive(Debug)]
pub struct Sink {
    /// Whether it closes its own side after the peer has closed.
    closes: bool,
    progress: Progress,
    /// The digest of the data read, if the content matters.
    digest: Option<Box<Digest>>,
}

impl Sink {
    /// Creates a sink. If `closes` is set, the sink closes its side after its peer has closed; otherwise its side stays
    /// open.
    pub fn new(closes: bool) -> Self {
        Sink { closes, progress: Progress::default(), digest: None }
    }

    /// Makes the sink compute the SHA-256 of the data that it reads.
    pub fn with_digest(self) -> Self {
        Sink { digest: Some(Box::default()), ..self }
    }
}

impl Application for Sink {
    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        let now = io.now();
        match event {
            TransportEvent::Readable => {
                let Some(stream) = io.stream(stream) else { return };
                // Bytes are returned in the pieces in which they arrived.
                while let Some(payload) = stream.read(u64::MAX) {
                    self.progress.count_received(payload.len(), now);
                    if let (Some(digest), Payload::Bytes(bytes)) = (&mut self.digest, &payload) {
                        digest.update(bytes);
                    }
                }
            }
            TransportEvent::PeerFinished => {
                self.progress.completed = Some(now);
                if self.closes
                    && let Some(stream) = io.stream(stream)
                {
                    stream.finish();
                }
            }
            TransportEvent::Connected | TransportEvent::Writable | TransportEvent::Closed(_) => {}
        }
    }

    #[inline]
    fn receive_counter(&mut self) -> Option<&mut Progress> {
        self.digest.is_none().then_some(&mut self.progress)
    }

    fn on_datagram(&mut self, payload_bytes: u32, io: &mut dyn Io) {
        self.progress.count_received(u64::from(payload_bytes), io.now());
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn digest(&self) -> Option<String> {
        self.digest.as_ref().map(|digest| digest.to_hex())
    }
}
