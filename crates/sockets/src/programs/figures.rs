//! Application metrics of the programs: those that a run in virtual time reports for its ends.

use fullpipe_control::RttStatistics;
use fullpipe_masque::metrics::Metrics;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Metrics of QUIC connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionMetrics {
    /// QUIC packets sent.
    pub packets_sent: u64,
    /// Sent packets that were declared lost.
    pub packets_lost: u64,
    /// Mean of the smoothed round-trip times at each acknowledged packet; `None` without samples. With several
    /// connections, each has the same weight, regardless of its number of packets.
    pub mean_rtt: Option<Duration>,
}

impl ConnectionMetrics {
    pub(super) fn new(stats: &noq::ConnectionStats, round_trips: &RttStatistics) -> ConnectionMetrics {
        ConnectionMetrics {
            packets_sent: stats.sent_packets,
            packets_lost: stats.lost_packets,
            mean_rtt: mean(round_trips),
        }
    }
}

/// Metrics of one side of a proxy's tunnels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelMetrics {
    /// Mean of the smoothed round-trip times at each acknowledged packet; `None` without samples or without congestion
    /// control.
    pub mean_rtt: Option<Duration>,
    /// Payloads dropped because they exceed the maximum datagram size or the path MTU.
    pub dropped_too_large: u64,
    /// Payloads dropped because a queue was full or they had waited too long.
    pub dropped_queue: u64,
    /// Peak number of payload bytes queued ahead of the QUIC stack.
    pub peak_queue_bytes: u64,
}

impl TunnelMetrics {
    pub(super) fn new(metrics: &Metrics, round_trips: &RttStatistics) -> TunnelMetrics {
        TunnelMetrics {
            mean_rtt: mean(round_trips),
            dropped_too_large: metrics.dropped_too_large_total.get(),
            dropped_queue: metrics.dropped_queue_total.get()
                + metrics.dropped_memory_total.get()
                + metrics.dropped_busy_total.get(),
            peak_queue_bytes: metrics.queued_peak_bytes.get(),
        }
    }
}

fn mean(round_trips: &RttStatistics) -> Option<Duration> {
    round_trips.mean().map(|mean| Duration::from_nanos(mean.as_nanos()))
}

/// The connections of a server, closed and open.
pub(super) struct ConnectionRegistry<T> {
    told: T,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    over: Sum,
    live: BTreeMap<u64, (noq::WeakConnectionHandle, RttStatistics)>,
    next: u64,
}

/// Sums of the metrics of connections.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    packets_sent: u64,
    packets_lost: u64,
    mean_rtts: Duration,
    /// Number of connections with a mean round-trip time.
    with_rtt: u32,
}

impl Sum {
    fn add(&mut self, figures: &ConnectionMetrics) {
        self.packets_sent += figures.packets_sent;
        self.packets_lost += figures.packets_lost;
        if let Some(mean_rtt) = figures.mean_rtt {
            self.mean_rtts += mean_rtt;
            self.with_rtt += 1;
        }
    }

    fn figures(&self) -> ConnectionMetrics {
        ConnectionMetrics {
            packets_sent: self.packets_sent,
            packets_lost: self.packets_lost,
            mean_rtt: self.mean_rtts.checked_div(self.with_rtt),
        }
    }
}

impl<T: Fn(ConnectionMetrics)> ConnectionRegistry<T> {
    /// Creates a ledger that calls `told` with the metrics of all connections so far, one call at a time.
    pub(super) fn new(told: T) -> ConnectionRegistry<T> {
        ConnectionRegistry { told, entries: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection that records its round-trip times in `round_trips`. Returns its number.
    pub(super) fn open(&self, connection: noq::WeakConnectionHandle, round_trips: RttStatistics) -> u64 {
        let mut entries = self.entries();
        let number = entries.next;
        entries.next += 1;
        entries.live.insert(number, (connection, round_trips));
        number
    }

    /// Marks a connection as closed with these counters, and reports the metrics.
    pub(super) fn close(&self, number: u64, stats: &noq::ConnectionStats) {
        let mut entries = self.entries();
        if let Some((_, round_trips)) = entries.live.remove(&number) {
            entries.over.add(&ConnectionMetrics::new(stats, &round_trips));
        }
        self.tell_of(&entries);
    }

    /// Reports the current metrics.
    pub(super) fn tell(&self) {
        self.tell_of(&self.entries());
    }

    /// The caller holds the lock of the entries, so later reports contain more.
    fn tell_of(&self, entries: &Entries) {
        let mut sum = entries.over;
        for (connection, round_trips) in entries.live.values() {
            if let Some(connection) = connection.upgrade() {
                sum.add(&ConnectionMetrics::new(&connection.stats(), round_trips));
            }
        }
        (self.told)(sum.figures());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(packets_sent: u64, packets_lost: u64, mean_rtt_ms: Option<u64>) -> ConnectionMetrics {
        ConnectionMetrics { packets_sent, packets_lost, mean_rtt: mean_rtt_ms.map(Duration::from_millis) }
    }

    /// A thousand packets at 20 ms and one at 40 ms: each connection counts once, so the mean is 30 ms. Without
    /// acknowledged packets there is no mean.
    #[test]
    fn mean_weights_each_connection_equally() {
        let mut sum = Sum::default();
        assert_eq!(sum.figures(), figures(0, 0, None));
        sum.add(&figures(3, 3, None));
        assert_eq!(sum.figures(), figures(3, 3, None));
        sum.add(&figures(1000, 5, Some(20)));
        sum.add(&figures(1, 0, Some(40)));
        assert_eq!(sum.figures(), figures(1004, 8, Some(30)));
    }
}
