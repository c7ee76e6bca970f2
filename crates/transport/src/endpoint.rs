//! Endpoints of all kinds: their identifiers, their deadlines, and the report for observers.
//!
//! An endpoint is one end of a flow. It is a connection of the TCP model, of the QUIC model or of the real QUIC stack,
//! a socket of this machine's kernel, or a client or proxy of a tunnel. Probes, logs and records read
//! [`EndpointReport`] and need not distinguish these kinds.

use fullpipe_units::{Duration, Instant};
use std::fmt;
use std::num::NonZeroU32;

/// The implementation of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EndpointKind {
    /// The TCP model.
    Tcp = 0,
    /// The QUIC model.
    QuicModel = 1,
    /// The real QUIC stack.
    QuicStack = 2,
    /// This machine's kernel, in real time.
    Kernel = 3,
    /// A client or proxy of a CONNECT-UDP tunnel.
    Tunnel = 4,
}

impl EndpointKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [EndpointKind; 5] = [
        EndpointKind::Tcp,
        EndpointKind::QuicModel,
        EndpointKind::QuicStack,
        EndpointKind::Kernel,
        EndpointKind::Tunnel,
    ];
}

/// The number of an endpoint: its kind and its index among the endpoints of that kind, in 32 bits.
///
/// ```
/// use fullpipe_transport::endpoint::{EndpointId, EndpointKind};
/// let id = EndpointId::new(EndpointKind::QuicModel, 7);
/// assert_eq!((id.kind(), id.index()), (EndpointKind::QuicModel, 7));
/// assert_eq!(size_of::<Option<EndpointId>>(), 4);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndpointId(
    /// The complement of the bits, which are never all ones.
    NonZeroU32,
);

const INDEX_BITS: u32 = 29;

impl EndpointId {
    /// Largest index of an endpoint.
    pub const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

    /// Returns the identifier of endpoint `index` of a kind.
    ///
    /// # Panics
    /// Panics if the index is larger than [`EndpointId::MAX_INDEX`].
    #[inline]
    pub const fn new(kind: EndpointKind, index: u32) -> Self {
        assert!(index <= Self::MAX_INDEX, "an endpoint index has at most 29 bits");
        match NonZeroU32::new(!((kind as u32) << INDEX_BITS | index)) {
            Some(complement) => EndpointId(complement),
            None => panic!("kind number 7 does not exist"),
        }
    }

    /// Returns the kind.
    #[inline(always)]
    pub const fn kind(self) -> EndpointKind {
        match self.to_bits() >> INDEX_BITS {
            0 => EndpointKind::Tcp,
            1 => EndpointKind::QuicModel,
            2 => EndpointKind::QuicStack,
            3 => EndpointKind::Kernel,
            _ => EndpointKind::Tunnel,
        }
    }

    /// Returns the index among the endpoints of its kind.
    #[inline(always)]
    pub const fn index(self) -> u32 {
        self.to_bits() & Self::MAX_INDEX
    }

    /// Returns kind and index as one number. The number of a TCP endpoint is its index.
    #[inline(always)]
    pub const fn to_bits(self) -> u32 {
        !self.0.get()
    }

    /// Returns the endpoint with this number; `None` if there is no such kind.
    #[inline(always)]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits >> INDEX_BITS > EndpointKind::Tunnel as u32 {
            return None;
        }
        match NonZeroU32::new(!bits) {
            Some(complement) => Some(EndpointId(complement)),
            None => None,
        }
    }
}

impl fmt::Debug for EndpointId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?} {}", self.kind(), self.index())
    }
}

/// The times of an endpoint's next timers; [`Instant::NEVER`] if there is no timer.
///
/// There are two deadlines, because some timers are rearmed for every packet. These timers must not move the rare
/// timers in the event calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerDeadlines {
    /// The next timer that rarely expires: retransmission, keep-alive, idle timeout.
    pub far: Instant,
    /// The next timer that often expires: delayed acknowledgment, pacing, reordering.
    pub near: Instant,
}

/// The state and the counters of an endpoint of any kind. A value is `None` if this kind does not report it, or if no
/// value exists yet.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointReport {
    /// The kind of the endpoint.
    pub kind: EndpointKind,
    /// Congestion window in bytes; `None` without a congestion control.
    pub cwnd_bytes: Option<u64>,
    /// Slow-start threshold in bytes; `None` before the first reduction.
    pub ssthresh_bytes: Option<u64>,
    /// Bytes sent that are neither acknowledged nor declared lost.
    pub in_flight_bytes: Option<u64>,
    /// Smoothed round-trip time.
    pub smoothed_rtt: Option<Duration>,
    /// Smallest round-trip time.
    pub min_rtt: Option<Duration>,
    /// Newest round-trip sample.
    pub latest_rtt: Option<Duration>,
    /// Mean of the smoothed round-trip times at each acknowledged packet.
    pub mean_rtt: Option<Duration>,
    /// Pacing rate in bits per second; `None` if the endpoint does not pace.
    pub pacing_bps: Option<u64>,
    /// Newest delivery-rate sample in bits per second.
    pub delivery_rate_bps: Option<u64>,
    /// Whether the endpoint is in recovery.
    pub in_recovery: bool,
    /// Retransmission or probe timeouts since the last acknowledgment.
    pub pto_count: Option<u32>,
    /// Packets sent: QUIC packets, or TCP segments with data or FIN.
    pub sent_packets: Option<u64>,
    /// Packets declared lost.
    pub lost_packets: Option<u64>,
    /// Packets retransmitted; `None` for QUIC, which retransmits frames in new packets.
    pub retransmitted_packets: Option<u64>,
    /// Recoveries that began because of losses or congestion marks.
    pub congestion_events: Option<u64>,
    /// Recoveries that were undone because no packet was lost.
    pub spurious_congestion_events: Option<u64>,
    /// Largest payload of a packet in bytes: of a TCP segment, or of a UDP datagram that the path is known to support.
    pub mtu_bytes: Option<u64>,
    /// Values specific to the congestion control, by name.
    pub control_values: Vec<(&'static str, f64)>,
    /// Counters of one end of a tunnel; `None` for other endpoints.
    pub tunnel: Option<TunnelCounters>,
}

/// Counters of one end of a tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelCounters {
    /// Payloads dropped because they exceed the maximum datagram size or the path MTU.
    pub dropped_too_large: u64,
    /// Payloads dropped because a queue was full, or because they waited in it for too long.
    pub dropped_queue: u64,
    /// Payload bytes that are currently queued ahead of the QUIC stack.
    pub queued_bytes: u64,
    /// Maximum number of queued payload bytes so far.
    pub peak_queued_bytes: u64,
    /// Requests that the proxy rejected.
    pub requests_refused: u64,
    /// Requests that are currently open at the proxy.
    pub requests_open: u64,
}

impl EndpointReport {
    /// Returns a report without values.
    pub fn new(kind: EndpointKind) -> Self {
        EndpointReport {
            kind,
            cwnd_bytes: None,
            ssthresh_bytes: None,
            in_flight_bytes: None,
            smoothed_rtt: None,
            min_rtt: None,
            latest_rtt: None,
            mean_rtt: None,
            pacing_bps: None,
            delivery_rate_bps: None,
            in_recovery: false,
            pto_count: None,
            sent_packets: None,
            lost_packets: None,
            retransmitted_packets: None,
            congestion_events: None,
            spurious_congestion_events: None,
            mtu_bytes: None,
            control_values: Vec::new(),
            tunnel: None,
        }
    }

    /// Returns the value with this name from [`EndpointReport::control_values`]; `None` if there is none.
    pub fn control_value(&self, name: &str) -> Option<f64> {
        self.control_values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Returns a measured time; `None` if it is zero, which transports use before the first sample.
pub fn nonzero_duration(time: Duration) -> Option<Duration> {
    (!time.is_zero()).then_some(time)
}

/// Returns a configured or measured rate; `None` if it is zero.
pub fn nonzero_rate(bits_per_second: u64) -> Option<u64> {
    (bits_per_second > 0).then_some(bits_per_second)
}

/// Returns a slow-start threshold; `None` if it is `u64::MAX`, which controls use before the first reduction.
pub fn finite_threshold(bytes: u64) -> Option<u64> {
    (bytes < u64::MAX).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_endpoint_id_has_its_kind_and_index() {
        let mut seen = BTreeSet::new();
        for kind in EndpointKind::ALL {
            for index in [0, 1, 2, 1 << 27, EndpointId::MAX_INDEX - 1, EndpointId::MAX_INDEX] {
                let id = EndpointId::new(kind, index);
                assert_eq!((id.kind(), id.index()), (kind, index));
                assert_eq!(EndpointId::from_bits(id.to_bits()), Some(id));
                assert!(seen.insert(id.to_bits()), "{id:?} must have a unique number");
            }
        }
        assert_eq!(EndpointId::new(EndpointKind::Tcp, 12).to_bits(), 12);
    }

    #[test]
    fn a_number_with_an_unknown_kind_is_rejected() {
        // Kinds 5 to 7; the last includes the number that represents `None`.
        for bits in [5 << 29, 6 << 29, 7 << 29, u32::MAX] {
            assert_eq!(EndpointId::from_bits(bits), None, "{bits:#x}");
        }
        assert_eq!(EndpointId::from_bits((5 << 29) - 1), Some(EndpointId::new(EndpointKind::Tunnel, (1 << 29) - 1)));
    }

    #[test]
    #[should_panic(expected = "29 bits")]
    fn an_index_of_30_bits_panics() {
        let _ = EndpointId::new(EndpointKind::Tcp, 1 << 29);
    }

    #[test]
    fn placeholders_of_missing_values_become_none() {
        assert_eq!((nonzero_duration(Duration::ZERO), nonzero_rate(0), finite_threshold(u64::MAX)), (None, None, None));
        let nanosecond = Duration::from_nanos(1);
        assert_eq!(
            (nonzero_duration(nanosecond), nonzero_rate(1), finite_threshold(0)),
            (Some(nanosecond), Some(1), Some(0))
        );
    }
}
