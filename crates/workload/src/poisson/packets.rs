//! Packets that arrive as a Poisson process.

use crate::application::{Application, Io};
use crate::component::{FlowContext, PACKETS, Protocol, WorkloadComponent, WorkloadSettings, count, small};
use crate::demand::{self, Demand};
use fullpipe_schema::component::Declaration;
use fullpipe_schema::distributions::SIZE_OR_RANDOM;
use fullpipe_schema::{FieldKind, keys};
use fullpipe_units::{Distribution, Duration, Instant, ParameterError, RandomStream};

pub(crate) static POISSON_PACKETS: WorkloadComponent = WorkloadComponent {
    declaration: Declaration {
        name: "poisson-packets",
        text: "datagrams that arrive as a Poisson process (UDP). Default port 9.",
        fields: &[keys! {
            /// Mean time between packets.
            "interval": FieldKind::INTERVAL, required;
            /// Size of a packet.
            "size": SIZE_OR_RANDOM, required;
            /// Header bytes that `size` includes and that are subtracted to give the payload. With 30B (IPv4, UDP and the link's
            /// framing), the size on the wire has the distribution, as queueing theory assumes.
            "size_includes": FieldKind::size(0, 1000), default "0B";
            PACKETS;
        }],
        ..Declaration::EMPTY
    },
    protocols: &[Protocol::Udp],
    read: |reader, _| {
        Ok(Box::new(PoissonPacketsSpec {
            mean_interval: reader.tree.duration("interval"),
            size_bytes: reader.distribution("size")?,
            header_bytes: small(reader.tree, "size_includes"),
            max_payload_bytes: crate::MAX_DATAGRAM_BYTES,
            count: count(reader.tree, "packets"),
        }))
    },
    ..WorkloadComponent::EMPTY
};

/// The settings of datagrams that arrive as a Poisson process.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonPacketsSpec {
    /// Mean time between arrivals.
    pub mean_interval: Duration,
    /// Sizes in bytes: of payloads, or of whole packets if `header_bytes` is above 0.
    pub size_bytes: Distribution,
    /// Header bytes that are subtracted from each size; the result, at least 0, is the payload size. The size of the
    /// packet on the wire, including headers, then has the given distribution, as queueing theory assumes.
    pub header_bytes: u32,
    /// Largest payload in bytes; larger payloads are truncated. At most 65 507, the maximum for UDP over IPv4.
    pub max_payload_bytes: u32,
    /// Number of packets (`None`: unlimited).
    pub count: Option<u64>,
}

impl WorkloadSettings for PoissonPacketsSpec {
    fn is_unlimited(&self) -> bool {
        self.count.is_none()
    }

    fn demand(&self, time_s: f64) -> Demand {
        let messages = demand::count(time_s, self.mean_interval.as_secs_f64(), self.count);
        let largest = f64::from(self.max_payload_bytes);
        let payload = (self.size_bytes.mean() - f64::from(self.header_bytes)).clamp(0.0, largest);
        Demand::timer_driven(messages, payload)
    }

    fn applications(&self, context: &FlowContext<'_>) -> Result<[Box<dyn Application>; 2], ParameterError> {
        Ok(context.with_sink(PoissonPacketsSender::new(self, context.random("workload"))?))
    }

    fn check(&self) -> Result<(), ParameterError> {
        ParameterError::ensure(!self.mean_interval.is_zero(), "the mean interval must be positive")?;
        ParameterError::ensure(
            self.max_payload_bytes <= crate::MAX_DATAGRAM_BYTES,
            "the largest payload must be at most 65507 bytes",
        )?;
        self.size_bytes.check().map_err(|invalid| invalid.in_field("size"))
    }
}

/// A sender of datagrams at random times.
#[derive(Debug)]
pub struct PoissonPacketsSender {
    spec: PoissonPacketsSpec,
    random: RandomStream,
    next: Instant,
    remaining: u64,
}

impl PoissonPacketsSender {
    /// Creates a sender.
    ///
    /// # Errors
    /// If the settings are invalid.
    pub fn new(spec: &PoissonPacketsSpec, random: RandomStream) -> Result<Self, ParameterError> {
        spec.check()?;
        let remaining = spec.count.unwrap_or(u64::MAX);
        Ok(PoissonPacketsSender { spec: spec.clone(), random, next: Instant::ZERO, remaining })
    }

    fn schedule(&mut self, io: &mut dyn Io) {
        if self.remaining > 0 {
            self.next = self.next.saturating_add(super::interval(self.spec.mean_interval, &mut self.random));
            io.wake_at(self.next);
        }
    }
}

impl Application for PoissonPacketsSender {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.next = io.now();
        self.schedule(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        let size = self.spec.size_bytes.sample_bytes(&mut self.random);
        let payload = size.saturating_sub(u64::from(self.spec.header_bytes));
        io.send_datagram(payload.min(u64::from(self.spec.max_payload_bytes)) as u32);
        if self.remaining != u64::MAX {
            self.remaining -= 1;
        }
        self.schedule(io);
    }
}
