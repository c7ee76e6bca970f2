//! Packets that arrive as a Poisson process.

use crate::application::{Application, Io};
use crate::{Distribution, Invalid};
use fullpipe_units::{Duration, Instant, Stream};

/// Datagrams that arrive as a Poisson process.
#[derive(Clone, Debug, PartialEq)]
pub struct PoissonPacketsSpec {
    /// Mean time between arrivals.
    pub mean_interval: Duration,
    /// Sizes in bytes: of payloads, or of whole packets if `header_bytes` says what to take off.
    pub size_bytes: Distribution,
    /// Taken off each size to give the payload (at least 0): what the layers below add. With it the size of the packet
    /// on the wire, headers and all, has the wanted distribution, as queueing theory assumes.
    pub header_bytes: u32,
    /// Largest payload; what is larger is cut. At most 65 507, that of UDP over IPv4.
    pub max_payload_bytes: u32,
    /// Packets to send (`None`: without end).
    pub count: Option<u64>,
}

impl PoissonPacketsSpec {
    /// Whether it makes sense.
    ///
    /// # Errors
    /// The rule that is broken.
    pub fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(!self.mean_interval.is_zero(), "mean interval: it is positive")?;
        Invalid::unless(
            self.max_payload_bytes <= crate::MAX_DATAGRAM_BYTES,
            "largest payload: it is at most 65507 bytes",
        )?;
        self.size_bytes.check().map_err(|invalid| invalid.of("size"))
    }
}

/// A sender of datagrams at random times.
#[derive(Debug)]
pub struct PoissonPackets {
    spec: PoissonPacketsSpec,
    random: Stream,
    next: Instant,
    remaining: u64,
}

impl PoissonPackets {
    /// A sender.
    ///
    /// # Errors
    /// If the description makes no sense.
    pub fn new(spec: &PoissonPacketsSpec, random: Stream) -> Result<Self, Invalid> {
        spec.check()?;
        let remaining = spec.count.unwrap_or(u64::MAX);
        Ok(PoissonPackets { spec: spec.clone(), random, next: Instant::ZERO, remaining })
    }

    fn schedule(&mut self, io: &mut dyn Io) {
        if self.remaining > 0 {
            self.next = self.next.saturating_add(super::interval(self.spec.mean_interval, &mut self.random));
            io.wake_at(self.next);
        }
    }
}

impl Application for PoissonPackets {
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
