//! Statistics of a trace, in one pass and constant memory.
//!
//! Percentiles come from histograms of three significant digits; counts, sums and extremes are exact. The waits are those
//! of the canonical form, closes included; exchanges are those of sequential connections.

use crate::load::{self, Direction, Overhead};
use crate::vector::{Adu, ConnectionVector, Kind, Side};
use fullpipe_units::Duration;
use hdrhistogram::Histogram;

/// Values beyond this are counted as this.
const LARGEST: u64 = 1 << 50;

/// A distribution of whole numbers.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u64>,
    sum: f64,
    most: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        // Both arguments are constants that the library allows.
        let histogram = Histogram::new_with_max(LARGEST, 3).expect("three digits up to 2^50 are allowed");
        Distribution { histogram, sum: 0.0, most: 0 }
    }
}

impl Distribution {
    fn add(&mut self, value: u64) {
        self.histogram.saturating_record(value);
        self.sum += value as f64;
        self.most = self.most.max(value);
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean; 0 of none.
    pub fn mean(&self) -> f64 {
        self.sum / self.count().max(1) as f64
    }

    /// The value that this fraction does not exceed, within a thousandth; 0 of none.
    pub fn quantile(&self, fraction: f64) -> u64 {
        self.histogram.value_at_quantile(fraction).min(self.most)
    }

    /// The greatest.
    pub fn most(&self) -> u64 {
        self.most
    }
}

/// What a trace is like.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Connections whose sides take turns.
    pub sequential: u64,
    /// Connections whose sides send by themselves.
    pub concurrent: u64,
    /// Connections in which the acceptor sends the first unit.
    pub acceptor_first: u64,
    /// Connections with a loss above 0.
    pub lossy: u64,
    /// The greatest loss.
    pub greatest_loss: f64,
    /// Connections with segments of less than 1000 bytes.
    pub small_segments: u64,
    /// Connections that start before the one before them in the file.
    pub out_of_order: u64,
    /// The first start.
    pub first_start: Option<Duration>,
    /// The last start.
    pub last_start: Duration,
    /// Bytes from initiators.
    pub initiator_bytes: u128,
    /// Bytes from acceptors.
    pub acceptor_bytes: u128,
    /// Bits that are offered towards acceptors and towards initiators, headers and acknowledgements counted.
    pub offered_bits: [u128; 2],
    /// Microseconds from one start to the next in the file; those out of order left out.
    pub gap_us: Distribution,
    /// Bytes of initiators' units.
    pub initiator_adu_bytes: Distribution,
    /// Bytes of acceptors' units.
    pub acceptor_adu_bytes: Distribution,
    /// Bytes of a connection, both ways.
    pub connection_bytes: Distribution,
    /// Exchanges of a sequential connection.
    pub epochs: Distribution,
    /// Microseconds, of connections that tell it.
    pub rtt_us: Distribution,
    /// Microseconds.
    pub receive_wait_us: Distribution,
    /// Microseconds.
    pub send_wait_us: Distribution,
}

impl Statistics {
    /// Counts one more connection.
    pub fn add(&mut self, connection: &ConnectionVector) {
        match connection.kind {
            Kind::Sequential { epochs } => {
                self.sequential += 1;
                self.epochs.add(epochs);
            }
            Kind::Concurrent { .. } => self.concurrent += 1,
        }
        self.add_start(connection.start);
        self.acceptor_first += u64::from(connection.body.first().is_some_and(|adu| adu.side == Side::Acceptor));
        if let Some(loss) = connection.loss {
            let loss = loss.initiator.max(loss.acceptor);
            self.lossy += u64::from(loss > 0.0);
            self.greatest_loss = self.greatest_loss.max(loss);
        }
        if let Some(mss) = connection.mss_bytes {
            self.small_segments += u64::from(mss.initiator.min(mss.acceptor) < 1000);
        }
        if let Some(rtt) = connection.rtt {
            self.rtt_us.add(rtt.as_nanos() / 1000);
        }
        let bytes = [connection.bytes(Side::Initiator), connection.bytes(Side::Acceptor)];
        self.initiator_bytes += u128::from(bytes[0]);
        self.acceptor_bytes += u128::from(bytes[1]);
        self.connection_bytes.add(bytes[0] + bytes[1]);
        // Bits do not depend on the share of the link.
        let estimate = load::estimate(connection, &Overhead::default(), 1e6);
        for (sum, direction) in self.offered_bits.iter_mut().zip([Direction::Forward, Direction::Reverse]) {
            *sum += u128::from(estimate.bits_towards(direction));
        }
        connection.body.iter().for_each(|adu| self.add_adu(adu));
    }

    /// Connections.
    pub fn connections(&self) -> u64 {
        self.sequential + self.concurrent
    }

    /// From the first start to the last.
    pub fn span(&self) -> Duration {
        self.last_start.saturating_sub(self.first_start.unwrap_or_default())
    }

    /// Offered load over the span towards acceptors and towards initiators, in bit/s; 0 if there is no span.
    pub fn offered_bps(&self) -> [f64; 2] {
        let seconds = self.span().as_secs_f64();
        self.offered_bits.map(|bits| if seconds > 0.0 { bits as f64 / seconds } else { 0.0 })
    }

    fn add_start(&mut self, start: Duration) {
        match self.first_start {
            None => self.first_start = Some(start),
            Some(_) if start < self.last_start => self.out_of_order += 1,
            Some(_) => self.gap_us.add((start - self.last_start).as_nanos() / 1000),
        }
        self.first_start = self.first_start.map(|first| first.min(start));
        self.last_start = self.last_start.max(start);
    }

    fn add_adu(&mut self, adu: &Adu) {
        if !adu.send_wait.is_zero() {
            self.send_wait_us.add(adu.send_wait.as_nanos() / 1000);
        }
        if !adu.receive_wait.is_zero() {
            self.receive_wait_us.add(adu.receive_wait.as_nanos() / 1000);
        }
        match adu.side {
            _ if adu.is_close() => {}
            Side::Initiator => self.initiator_adu_bytes.add(adu.size_bytes),
            Side::Acceptor => self.acceptor_adu_bytes.add(adu.size_bytes),
        }
    }
}
