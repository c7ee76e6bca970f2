//! Bulk transfer: writes of one size, whenever the send buffer has room for a whole write, up to a total.
//!
//! A write that does not fit completely waits until it does, as a blocking `write` of that size or ns-3's BulkSend. The last
//! write has the remaining bytes. Then the application finishes the stream.

use crate::application::{Application, Io, StreamId};
use crate::component::{FlowContext, Protocol, SocketTraffic, WorkloadComponent, WorkloadSettings};
use crate::content::Content;
use crate::demand::Demand;
use crate::sink::Sink;
use bytes::Bytes;
use fullpipe_schema::component::{Declaration, choices};
use fullpipe_schema::{Choice, FieldKind, Value, keys};
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::ParameterError;

pub(crate) static BULK: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "bulk",
        text: "as much data as the transport accepts, up to a size (TCP). Default port 9.",
        fields: &[keys! {
            /// Total size of the transfer.
            "size": FieldKind::SIZE, optional "without end";
            /// Size of a write. A write waits until the send buffer has room for all of it.
            "write_size": FieldKind::size(1, 1 << 30), optional "64KiB, or the send buffer if that is smaller";
            /// Content of the payload.
            "content": FieldKind::Choice(&choices(&CONTENT)), default "none";
        }],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Quic],
    write_key: Some("write_size"),
    on_sockets: true,
    read: |reader, _| {
        Ok(Box::new(BulkSpec {
            size_bytes: reader.tree.get("size").map(Value::size),
            write_bytes: reader.tree.size("write_size"),
            random_content: reader.tree.choice_value("content", &CONTENT),
        }))
    },
    ..WorkloadComponent::EMPTY
};

/// Whether the payload is bytes of a random stream.
static CONTENT: [(Choice, bool); 2] = [
    (Choice::new("none", "no content; only sizes are simulated."), false),
    (Choice::new("random", "bytes of a random stream; both ends report their SHA-256, in `run.json`."), true),
];

/// The settings of a bulk transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkSpec {
    /// Total bytes; `None`: unlimited.
    pub size_bytes: Option<u64>,
    /// Bytes per write. The application writes only when the send buffer has room for a whole write.
    pub write_bytes: u64,
    /// Whether the payload is bytes of a random stream. Both ends then report its SHA-256.
    pub random_content: bool,
}

impl WorkloadSettings for BulkSpec {
    fn sends_on_one_stream(&self) -> bool {
        true
    }

    fn is_unlimited(&self) -> bool {
        self.size_bytes.is_none()
    }

    fn demand(&self, _time_s: f64) -> Demand {
        Demand::from_initiator(self.size_bytes.map_or(f64::INFINITY, |bytes| bytes as f64))
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let bulk = BulkSender::new(self.size_bytes, self.write_bytes);
        if !self.random_content {
            return Ok(context.with_sink(bulk));
        }
        let sink = Sink::new(context.receiver_closes).with_digest();
        Ok([Box::new(bulk.with_content(Content::of_flow(context.seed, context.flow))), Box::new(sink)])
    }

    fn socket_traffic(&self) -> Option<SocketTraffic> {
        let BulkSpec { size_bytes, write_bytes, random_content } = *self;
        Some(SocketTraffic::Bulk { size_bytes, write_bytes, has_content: random_content })
    }
}

/// The sender of a bulk transfer.
#[derive(Debug)]
pub struct BulkSender {
    /// Bytes still to write; `u64::MAX` if unlimited.
    remaining_bytes: u64,
    write_bytes: u64,
    stream: Option<StreamId>,
    /// The payload's content, if it has one.
    content: Option<Box<Content>>,
}

impl BulkSender {
    /// Creates a sender of `size_bytes` (`None`: unlimited) in writes of `write_bytes` (at least 1).
    pub fn new(size_bytes: Option<u64>, write_bytes: u64) -> Self {
        BulkSender {
            remaining_bytes: size_bytes.unwrap_or(u64::MAX),
            write_bytes: write_bytes.max(1),
            stream: None,
            content: None,
        }
    }

    /// Sends this content instead of payload without content.
    pub fn with_content(self, content: Content) -> Self {
        BulkSender { content: Some(Box::new(content)), ..self }
    }

    /// Returns the payload of the next write.
    fn payload(content: &mut Option<Box<Content>>, bytes: u64) -> Payload {
        let Some(content) = content else { return Payload::Length(bytes) };
        let mut payload = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        content.fill(&mut payload);
        Payload::Bytes(Bytes::from(payload))
    }

    fn fill(&mut self, io: &mut dyn Io) {
        let Some(id) = self.stream else { return };
        let Some(stream) = io.stream(id) else { return };
        if self.content.is_none() {
            let written = stream.write_lengths(self.write_bytes, self.remaining_bytes);
            if self.remaining_bytes != u64::MAX {
                self.remaining_bytes -= written;
            }
            if self.remaining_bytes > 0 {
                return stream.set_writable_threshold(self.write_bytes.min(self.remaining_bytes));
            }
        }
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

impl Application for BulkSender {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.stream = Some(io.open());
        self.fill(io);
    }

    fn on_stream(&mut self, _stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        if matches!(event, TransportEvent::Connected | TransportEvent::Writable) {
            self.fill(io);
        }
    }

    fn digest(&self) -> Option<String> {
        self.content.as_ref().map(|content| content.digest().to_hex())
    }
}
