//! Bulk transfer: writes of one size, whenever the send buffer has room for a whole write, up to a total.
//!
//! A write that does not fit completely waits until it does, as a blocking `write` of that size or ns-3's BulkSend. The last
//! write has the remaining bytes. Then the application finishes the stream.

use crate::application::{Application, Io, StreamId};
use crate::component::{FlowContext, Protocol, SocketTraffic, WorkloadComponent, WorkloadSettings};
use crate::content::{self, Content};
use crate::demand::Demand;
use crate::limited::{self, LimitedSender, WRITE_LIMIT, WriteLimit};
use crate::sink::Sink;
use fullpipe_schema::component::{Declaration, choices};
use fullpipe_schema::{Choice, FieldKind, Value, keys};
use fullpipe_transport::TransportEvent;
use fullpipe_units::ParameterError;
use std::sync::Arc;

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
            /// Times at which the application limits its rate, pauses or continues, for example
            /// `[{ at = "5s", rate = "1Mbit/s" }, { at = "8s" }]`. Times must increase. The application then keeps less than two
            /// writes unsent, or 16KiB and one write if that is more.
            "limits": FieldKind::Tables(&WRITE_LIMIT), optional "none";
        }],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Tcp, Protocol::Quic],
    write_key: Some("write_size"),
    on_sockets: true,
    read: |reader, _| {
        let limits = reader.tree.get("limits").map(|value| limited::read(reader, value.tables())).transpose()?;
        Ok(Box::new(BulkSpec {
            size_bytes: reader.tree.get("size").map(Value::size),
            write_bytes: reader.tree.size("write_size"),
            random_content: reader.tree.choice_value("content", &CONTENT),
            limits,
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
    /// Whether the payload consists of bytes from a random stream. Both ends then report its SHA-256.
    pub random_content: bool,
    /// Limits of the application's rate, in order of time; `None`: the application always fills the send buffer.
    pub limits: Option<Vec<WriteLimit>>,
}

impl WorkloadSettings for BulkSpec {
    fn sends_on_one_stream(&self) -> bool {
        true
    }

    fn is_unlimited(&self) -> bool {
        self.size_bytes.is_none()
    }

    fn demand(&self, _time_s: f64) -> Demand {
        let demand = Demand::from_initiator(self.size_bytes.map_or(f64::INFINITY, |bytes| bytes as f64));
        match &self.limits {
            Some(limits) if !limits.is_empty() => {
                demand.as_upper_bound("a bulk transfer with limits, counted without them")
            }
            _ => demand,
        }
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        let content = self.random_content.then(|| Content::of_flow(context.seed, context.flow));
        let sink = Sink::new(context.receiver_closes);
        let sink = if self.random_content { sink.with_digest() } else { sink };
        let sender: Box<dyn Application> = match (&self.limits, content) {
            (Some(limits), content) => {
                Box::new(LimitedSender::new(self.size_bytes, self.write_bytes, limits.clone(), content))
            }
            (None, Some(content)) => Box::new(BulkSender::new(self.size_bytes, self.write_bytes).with_content(content)),
            (None, None) => Box::new(BulkSender::new(self.size_bytes, self.write_bytes)),
        };
        Ok([sender, Box::new(sink)])
    }

    fn write_limits(&self) -> Option<&[WriteLimit]> {
        Some(self.limits.as_deref().unwrap_or_default())
    }

    fn with_write_limits(&self, limits: Vec<WriteLimit>) -> Option<Arc<dyn WorkloadSettings>> {
        Some(Arc::new(BulkSpec { limits: Some(limits), ..self.clone() }))
    }

    fn socket_traffic(&self) -> Option<SocketTraffic> {
        let BulkSpec { size_bytes, write_bytes, random_content, limits: None } = *self else { return None };
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

    /// Sets the content of the payload. Without this call the payload has only a length.
    pub fn with_content(self, content: Content) -> Self {
        BulkSender { content: Some(Box::new(content)), ..self }
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
            if stream.writable_bytes() < next || stream.write(content::payload(&mut self.content, next)) != next {
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
