//! Statistics of a trace, computed in one pass with constant memory.
//!
//! Percentiles come from histograms with three significant digits; counts, sums and extremes are exact. Waits are those
//! of the canonical form, including those of closes. Only sequential connections have exchanges.

use crate::load::{self, LoadDirection, Overhead};
use crate::vector::{Adu, ConnectionKind, ConnectionVector, Side};
use fullpipe_units::Duration;
use hdrhistogram::Histogram;

/// Larger values are counted as this value.
const LARGEST: u64 = 1 << 50;

/// A distribution of whole numbers.
#[derive(Clone, Debug)]
pub struct IntegerDistribution {
    histogram: Histogram<u64>,
    sum: f64,
    most: u64,
}

impl Default for IntegerDistribution {
    fn default() -> Self {
        // The library accepts both constants.
        let histogram = Histogram::new_with_max(LARGEST, 3).expect("three digits up to 2^50 are valid");
        IntegerDistribution { histogram, sum: 0.0, most: 0 }
    }
}

impl IntegerDistribution {
    fn add(&mut self, value: u64) {
        self.histogram.saturating_record(value);
        self.sum += value as f64;
        self.most = self.most.max(value);
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean; 0 without values.
    pub fn mean(&self) -> f64 {
        self.sum / self.count().max(1) as f64
    }

    /// The quantile at `fraction` (0 to 1), with an error of at most 0.1 %; 0 without values.
    pub fn quantile(&self, fraction: f64) -> u64 {
        self.histogram.value_at_quantile(fraction).min(self.most)
    }

    /// The largest value; 0 without values.
    pub fn max(&self) -> u64 {
        self.most
    }
}

/// The statistics of a trace.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// Number of sequential connections.
    pub sequential: u64,
    /// Number of concurrent connections.
    pub concurrent: u64,
    /// Number of connections in which the acceptor sends the first unit.
    pub acceptor_first: u64,
    /// Number of connections with a loss above 0 in either direction.
    pub lossy: u64,
    /// The largest loss, as a fraction of the packets.
    pub greatest_loss: f64,
    /// Number of connections with a maximum segment size of less than 1000 bytes.
    pub small_segments: u64,
    /// Number of connections that start before a connection that precedes them in the file.
    pub out_of_order: u64,
    /// The earliest start; `None` without connections.
    pub first_start: Option<Duration>,
    /// The latest start.
    pub last_start: Duration,
    /// Bytes that initiators send.
    pub initiator_bytes: u128,
    /// Bytes that acceptors send.
    pub acceptor_bytes: u128,
    /// Offered bits towards acceptors and towards initiators, including headers and acknowledgments.
    pub offered_bits: [u128; 2],
    /// Microseconds between consecutive starts in the file. Connections out of order are not included.
    pub gap_us: IntegerDistribution,
    /// Sizes of initiators' units in bytes.
    pub initiator_adu_bytes: IntegerDistribution,
    /// Sizes of acceptors' units in bytes.
    pub acceptor_adu_bytes: IntegerDistribution,
    /// Bytes of a connection, both directions together.
    pub connection_bytes: IntegerDistribution,
    /// Number of exchanges of a sequential connection.
    pub epochs: IntegerDistribution,
    /// Round-trip times in microseconds, of connections that state one.
    pub rtt_us: IntegerDistribution,
    /// Receive-waits in microseconds.
    pub receive_wait_us: IntegerDistribution,
    /// Send-waits in microseconds.
    pub send_wait_us: IntegerDistribution,
}

impl Statistics {
    /// Adds a connection.
    pub fn add(&mut self, connection: &ConnectionVector) {
        match connection.kind {
            ConnectionKind::Sequential { epochs } => {
                self.sequential += 1;
                self.epochs.add(epochs);
            }
            ConnectionKind::Concurrent { .. } => self.concurrent += 1,
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
        // The number of bits does not depend on the share of the link.
        let estimate = load::estimate(connection, &Overhead::default(), 1e6);
        for (sum, direction) in self.offered_bits.iter_mut().zip([LoadDirection::Forward, LoadDirection::Reverse]) {
            *sum += u128::from(estimate.bits_in_direction(direction));
        }
        connection.body.iter().for_each(|adu| self.add_adu(adu));
    }

    /// The number of connections.
    pub fn connections(&self) -> u64 {
        self.sequential + self.concurrent
    }

    /// The time from the first start to the last.
    pub fn span(&self) -> Duration {
        self.last_start.saturating_sub(self.first_start.unwrap_or_default())
    }

    /// Offered load over the span towards acceptors and towards initiators, in bit/s; 0 if the span is 0.
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
