//! The server, which responds to each request at once with a segment of the requested rate.

use super::{REQUEST_CONTENT_BYTES, VideoAbrSpec};
use crate::application::{Application, Io, Progress, StreamId};
use crate::component::WorkloadSettings;
use fullpipe_transport::{Payload, Stream, TransportEvent};
use fullpipe_units::{Duration, ParameterError, Rate};
use std::collections::BTreeMap;

/// One connection.
#[derive(Debug, Default)]
struct Served {
    /// The received content of the current request, at most the bytes that are needed.
    content: Vec<u8>,
    request_bytes: u64,
    unwritten_bytes: u64,
    peer_finished: bool,
}

/// The server, which sends the requested segments of the video.
#[derive(Debug)]
pub struct VideoAbrServer {
    request_bytes: u64,
    segment: Duration,
    served: BTreeMap<StreamId, Served>,
    progress: Progress,
}

impl VideoAbrServer {
    /// Creates the server.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &VideoAbrSpec) -> Result<Self, ParameterError> {
        spec.check()?;
        Ok(VideoAbrServer {
            request_bytes: u64::from(spec.request_bytes),
            segment: spec.segment,
            served: BTreeMap::new(),
            progress: Progress::default(),
        })
    }

    fn read(&mut self, id: StreamId, io: &mut dyn Io) {
        let now = io.now();
        let Some(served) = self.served.get_mut(&id) else { return };
        let Some(stream) = io.stream(id) else { return };
        // Further requests wait in the stream until this one is answered.
        while served.unwritten_bytes == 0
            && let Some(payload) = stream.read(self.request_bytes - served.request_bytes)
        {
            self.progress.count_received(payload.len(), now);
            served.request_bytes += payload.len();
            served.keep(&payload);
            if served.request_bytes == self.request_bytes {
                served.request_bytes = 0;
                let Some(rate) = rate_asked_for(&std::mem::take(&mut served.content)) else {
                    // This is not a request, so the server does not respond with video.
                    return stream.abort();
                };
                served.unwritten_bytes = rate.bytes_in(self.segment);
                served.write(stream);
            }
        }
        if served.peer_finished && served.unwritten_bytes == 0 {
            stream.finish();
        }
    }

    fn write(&mut self, id: StreamId, io: &mut dyn Io) {
        if let Some(served) = self.served.get_mut(&id)
            && let Some(stream) = io.stream(id)
        {
            served.write(stream);
        }
        self.read(id, io);
    }
}

impl Served {
    /// Keeps the part of the request that has content.
    fn keep(&mut self, payload: &Payload) {
        if let Payload::Bytes(bytes) = payload {
            let wanted = (REQUEST_CONTENT_BYTES as usize).saturating_sub(self.content.len());
            self.content.extend(bytes.iter().take(wanted));
        }
    }

    fn write(&mut self, stream: &mut dyn Stream) {
        self.unwritten_bytes -= stream.write(Payload::Length(self.unwritten_bytes));
    }
}

/// The rate in a request's first eight bytes.
fn rate_asked_for(content: &[u8]) -> Option<Rate> {
    let rate = content.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))?;
    (rate > 0 && content.len() == REQUEST_CONTENT_BYTES as usize).then(|| Rate::from_bits_per_second(rate))
}

impl Application for VideoAbrServer {
    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Connected => {
                self.served.insert(stream, Served::default());
            }
            TransportEvent::Readable => self.read(stream, io),
            TransportEvent::Writable => self.write(stream, io),
            TransportEvent::PeerFinished => {
                self.progress.completed = Some(io.now());
                if let Some(served) = self.served.get_mut(&stream) {
                    served.peer_finished = true;
                }
                self.write(stream, io);
            }
            TransportEvent::Closed(_) => {
                self.served.remove(&stream);
            }
        }
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}
