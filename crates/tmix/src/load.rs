//! The load that connections offer to a link, estimated without simulating them.
//!
//! Each unit is a burst of its bytes plus a header per segment. The time of the burst assumes that every connection has
//! a fixed share of the link and that the network has no delay. The opposite direction carries the acknowledgments.
//! Each side's first burst includes the segments that open and close the connection. This is the reference suite's
//! estimate (draft-irtf-iccrg-tcpeval-01, section 2.3, and its authors' implementation). The estimate is accurate for
//! the mean load, not for the load at an instant.

use crate::vector::{ConnectionVector, Side};
use fullpipe_units::Duration;

/// The direction in which a load is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadDirection {
    /// From initiators to acceptors.
    Forward,
    /// From acceptors to initiators.
    Reverse,
    /// The sum of both directions, for a shared medium.
    Both,
}

/// Overhead of headers and acknowledgments on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// Segment size in bytes if the trace does not state one.
    pub mss_bytes: u32,
    /// Bytes of the IP and TCP headers of a segment or an acknowledgment.
    pub header_bytes: u32,
    /// Segments per acknowledgment.
    pub segments_per_ack: u32,
}

impl Default for Overhead {
    /// Segments of 1460 bytes, headers of 40 bytes, and an acknowledgment for every second segment (RFC 1122,
    /// section 4.2.3.2).
    fn default() -> Self {
        Overhead { mss_bytes: 1460, header_bytes: 40, segments_per_ack: 2 }
    }
}

/// One unit as a burst: the bits that it adds to the link in its own direction, and its acknowledgments in the opposite
/// direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Start of the burst, in the same time base as [`ConnectionVector::start`].
    pub at: Duration,
    /// The sender.
    pub side: Side,
    /// Bits of data segments.
    pub bits: u64,
    /// Bits of acknowledgments in the opposite direction.
    pub ack_bits: u64,
}

impl Burst {
    /// Returns the bits of the burst in a direction.
    pub fn bits_in_direction(&self, direction: LoadDirection) -> u64 {
        match (direction, self.side) {
            (LoadDirection::Both, _) => self.bits + self.ack_bits,
            (LoadDirection::Forward, Side::Initiator) | (LoadDirection::Reverse, Side::Acceptor) => self.bits,
            (LoadDirection::Forward, Side::Acceptor) | (LoadDirection::Reverse, Side::Initiator) => self.ack_bits,
        }
    }
}

/// Bursts of one connection in the order of its body, and its estimated lifetime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// The bursts.
    pub bursts: Vec<Burst>,
    /// Time from the start to the last close.
    pub lifetime: Duration,
}

impl Estimate {
    /// Returns the bits of the burst in a direction.
    pub fn bits_in_direction(&self, direction: LoadDirection) -> u64 {
        self.bursts.iter().map(|burst| burst.bits_in_direction(direction)).sum()
    }
}

/// Estimates the bursts of a connection that gets `share_bps` of the link, in bit/s.
pub fn estimate(connection: &ConnectionVector, overhead: &Overhead, share_bps: f64) -> Estimate {
    // The MSS of either end limits the segments of the other; a trace states the same value for both.
    let announced = connection.mss_bytes.map(|mss| mss.initiator.min(mss.acceptor));
    let mss = u64::from(announced.unwrap_or(overhead.mss_bytes).max(1));
    let header = u64::from(overhead.header_bytes);
    let mut finished = [connection.start; 2];
    let mut opened = [false; 2];
    let mut bursts = Vec::with_capacity(connection.body.len());
    for adu in &connection.body {
        let (own, peer) = if adu.side == Side::Initiator { (0, 1) } else { (1, 0) };
        let at = if adu.receive_wait.is_zero() {
            finished[own].saturating_add(adu.send_wait)
        } else {
            finished[peer].saturating_add(adu.receive_wait)
        };
        let time = Duration::from_secs_f64(adu.size_bytes as f64 * 8.0 / share_bps);
        finished[own] = at.saturating_add(time);
        if adu.is_close() {
            continue;
        }
        let segments = adu.size_bytes.div_ceil(mss);
        let opening = if opened[own] { 0 } else { 2 };
        opened[own] = true;
        let acks = segments.div_ceil(u64::from(overhead.segments_per_ack.max(1)));
        let bits = 8 * (adu.size_bytes + (segments + opening) * header);
        bursts.push(Burst { at, side: adu.side, bits, ack_bits: 8 * acks * header });
    }
    Estimate { bursts, lifetime: finished[0].max(finished[1]).saturating_sub(connection.start) }
}

/// Offered bits per time bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bins {
    width: Duration,
    /// Bits that a link carries in one bin, which is the largest part of a burst in one bin.
    most: u64,
    bits: Vec<u64>,
    direction: LoadDirection,
}

impl Bins {
    /// Creates `count` empty bins for a link with a capacity of `capacity_bps` bit/s.
    pub fn new(width: Duration, capacity_bps: f64, direction: LoadDirection, count: usize) -> Self {
        let most = ((capacity_bps * width.as_secs_f64()) as u64).max(1);
        Bins { width: width.max(Duration::from_nanos(1)), most, bits: vec![0; count], direction }
    }

    /// Adds the bursts of a connection. A burst with more bits than the link carries in one bin continues in the
    /// following bins. Bits beyond the last bin are not counted.
    pub fn add(&mut self, estimate: &Estimate) {
        for burst in &estimate.bursts {
            let mut rest = burst.bits_in_direction(self.direction);
            let first = burst.at.as_nanos() / self.width.as_nanos();
            let first = usize::try_from(first).unwrap_or(usize::MAX).min(self.bits.len());
            for bin in &mut self.bits[first..] {
                let part = rest.min(self.most);
                *bin += part;
                rest -= part;
                if rest == 0 {
                    break;
                }
            }
        }
    }

    /// The offered bits of each bin.
    pub fn bits(&self) -> &[u64] {
        &self.bits
    }

    /// The length of a bin.
    pub fn width(&self) -> Duration {
        self.width
    }
}

/// Whether the means of `parts` equal parts of `values` differ by at most the fraction `tolerance` of the largest mean.
fn parts_agree(values: &[f64], parts: usize, tolerance: f64) -> bool {
    if values.len() < parts {
        return false;
    }
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    for part in 0..parts {
        let (from, to) = (part * values.len() / parts, (part + 1) * values.len() / parts);
        let mean = values[from..to].iter().sum::<f64>() / (to - from) as f64;
        least = least.min(mean);
        most = most.max(mean);
    }
    most - least <= tolerance * most
}

/// Whether a load or a throughput is steady: the means of its halves differ by at most the fraction `tolerance` (draft,
/// section 3), and so do those of its thirds. The thirds are also compared because a load that rises and falls again
/// has equal halves.
pub fn is_steady(values: &[f64], tolerance: f64) -> bool {
    parts_agree(values, 2, tolerance) && parts_agree(values, 3, tolerance)
}

/// Returns the first index from which the remaining values are steady: the end of the warm-up. `None` if the values
/// never become steady. The values are loads; in a run they are throughput (tolerance 5 %) or queue lengths (tolerance
/// 20 %).
pub fn find_steady_start(values: &[f64], tolerance: f64) -> Option<usize> {
    (0..values.len()).find(|first| is_steady(&values[*first..], tolerance))
}
