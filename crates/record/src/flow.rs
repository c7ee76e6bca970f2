//! Flow counters with the definitions of ns-3's FlowMonitor (Carneiro, Fortuna, Ricardo 2009).
//!
//! Packets and bytes are counted at the IP layer. A packet counts as sent when its source passes it to IP, before
//! address resolution and fragmentation. It counts as received when its destination has received the whole packet. The
//! delay is the difference between these times. The jitter sum is the sum of |d(i) - d(i-1)| over packets in order of
//! reception.

use crate::histogram::DelayHistogram;
use crate::observer::{DropReason, Observer, PacketView};
use fullpipe_units::{Duration, EcnCodepoint, FlowId, Instant, LinkId};
use std::collections::BTreeMap;

/// Counters of one direction of one conversation, at the IP layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowCounters {
    /// Number of packets that the source sent.
    pub tx_packets: u64,
    /// Number of bytes of these packets, with IP headers.
    pub tx_bytes: u64,
    /// Number of packets that the destination received.
    pub rx_packets: u64,
    /// Number of bytes of these packets, with IP headers.
    pub rx_bytes: u64,
    /// Number of packets that were dropped in the network.
    pub lost_packets: u64,
    /// Sum of the delays of received packets, from sending to reception.
    pub delay_sum: Duration,
    /// Sum of the absolute differences between the delays of successively received packets.
    pub jitter_sum: Duration,
    /// Delay of the last received packet.
    pub last_delay: Duration,
    /// Time at which the first packet was sent; valid if `tx_packets` is not zero.
    pub first_tx: Instant,
    /// Time at which the last packet was sent; valid if `tx_packets` is not zero.
    pub last_tx: Instant,
    /// Time at which the first packet was received; valid if `rx_packets` is not zero.
    pub first_rx: Instant,
    /// Time at which the last packet was received; valid if `rx_packets` is not zero.
    pub last_rx: Instant,
    /// Number of packets received with the ECN codepoint CE ("congestion experienced").
    pub marked_packets: u64,
}

impl FlowCounters {
    /// Adds the counters of another flow. `last_delay` becomes the delay of the packet that was received last of both
    /// flows.
    pub fn add(&mut self, other: &FlowCounters) {
        if other.tx_packets > 0 {
            self.first_tx = if self.tx_packets > 0 { self.first_tx.min(other.first_tx) } else { other.first_tx };
            self.last_tx = self.last_tx.max(other.last_tx);
        }
        if other.rx_packets > 0 {
            self.first_rx = if self.rx_packets > 0 { self.first_rx.min(other.first_rx) } else { other.first_rx };
            self.last_delay = if other.last_rx >= self.last_rx { other.last_delay } else { self.last_delay };
            self.last_rx = self.last_rx.max(other.last_rx);
        }
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.lost_packets += other.lost_packets;
        self.delay_sum = self.delay_sum.saturating_add(other.delay_sum);
        self.jitter_sum = self.jitter_sum.saturating_add(other.jitter_sum);
        self.marked_packets += other.marked_packets;
    }
}

/// The counters of a flow.
///
/// The counters fill two cache lines. A received packet changes both lines; a sent packet changes only the second. With
/// thousands of flows, each additional line causes a cache miss.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
struct Counted {
    rx_packets: u64,
    rx_bytes: u64,
    delay_sum: Duration,
    jitter_sum: Duration,
    last_delay: Duration,
    first_rx: Instant,
    last_rx: Instant,
    marked_packets: u64,
    // Second cache line.
    /// Delays of the packets that were received in the measured interval.
    delays: DelayHistogram,
    tx_packets: u64,
    tx_bytes: u64,
    first_tx: Instant,
    last_tx: Instant,
}

const _: () = assert!(size_of::<Counted>() == 128, "the counters of a flow must fill two cache lines");

impl Counted {
    fn counters(&self, lost_packets: u64) -> FlowCounters {
        FlowCounters {
            tx_packets: self.tx_packets,
            tx_bytes: self.tx_bytes,
            rx_packets: self.rx_packets,
            rx_bytes: self.rx_bytes,
            lost_packets,
            delay_sum: self.delay_sum,
            jitter_sum: self.jitter_sum,
            last_delay: self.last_delay,
            first_tx: self.first_tx,
            last_tx: self.last_tx,
            first_rx: self.first_rx,
            last_rx: self.last_rx,
            marked_packets: self.marked_packets,
        }
    }
}

/// Counts the packets of all flows of a run.
#[derive(Clone, Debug, Default)]
pub struct FlowMonitor {
    flows: Vec<Counted>,
    /// Dropped packets by flow, up to the highest flow with a drop.
    lost: Vec<u64>,
    /// Copies by flow, up to the highest flow with copies.
    duplicates: Vec<u64>,
    /// Start of the measured interval.
    measured_from: Instant,
    /// Packets dropped before the measured interval, by flow. Links that are computed ahead report drops early, so the
    /// time of the drop is used, not the time of the report.
    lost_before: BTreeMap<FlowId, u64>,
}

impl FlowMonitor {
    /// Memory per flow, in bytes.
    pub const BYTES_PER_FLOW: usize = size_of::<Counted>();

    /// Returns a monitor without flows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the start of the measured interval; see [`FlowMonitor::measured_counters`].
    pub fn measure_from(&mut self, from: Instant) {
        self.measured_from = from;
    }

    /// Returns the counters of a flow for the measured interval. `earlier` contains the flow's counters at the start of
    /// the interval. The times and `last_delay` are those of the whole run.
    pub fn measured_counters(&self, flow: FlowId, earlier: &FlowCounters) -> FlowCounters {
        let whole = self.flow(flow);
        FlowCounters {
            tx_packets: whole.tx_packets - earlier.tx_packets,
            tx_bytes: whole.tx_bytes - earlier.tx_bytes,
            rx_packets: whole.rx_packets - earlier.rx_packets,
            rx_bytes: whole.rx_bytes - earlier.rx_bytes,
            lost_packets: whole.lost_packets - self.lost_before.get(&flow).copied().unwrap_or_default(),
            delay_sum: whole.delay_sum - earlier.delay_sum,
            jitter_sum: whole.jitter_sum - earlier.jitter_sum,
            marked_packets: whole.marked_packets - earlier.marked_packets,
            ..whole
        }
    }

    /// Allocates state for the flows with numbers below `count`. Flows with higher numbers must not send packets.
    pub fn reserve_flows(&mut self, count: usize) {
        if count > self.flows.len() {
            self.flows.resize(count, Counted::default());
        }
    }

    /// Returns the number of copies that links made of a flow's packets. The following always holds: received + lost +
    /// in flight = sent + copies.
    pub fn duplicates(&self, flow: FlowId) -> u64 {
        self.duplicates.get(flow.index()).copied().unwrap_or_default()
    }

    /// Returns the state of a flow, for prefetching; `None` for an unknown flow.
    #[inline(always)]
    pub fn state(&self, flow: FlowId) -> Option<&impl Sized> {
        self.flows.get(flow.index())
    }

    /// Returns the counters of a flow; all counters are zero if the flow never sent a packet.
    pub fn flow(&self, flow: FlowId) -> FlowCounters {
        let lost_packets = self.lost.get(flow.index()).copied().unwrap_or_default();
        self.flows.get(flow.index()).map(|flow| flow.counters(lost_packets)).unwrap_or_default()
    }

    /// Returns the delays of a flow's packets that were received in the measured interval; `None` for an unknown flow.
    pub fn delays(&self, flow: FlowId) -> Option<&DelayHistogram> {
        self.flows.get(flow.index()).map(|flow| &flow.delays)
    }
}

impl Observer for FlowMonitor {
    #[inline(always)]
    fn on_sent(&mut self, now: Instant, packet: &PacketView) {
        let flow = &mut self.flows[packet.flow.index()];
        if flow.tx_packets == 0 {
            flow.first_tx = now;
        }
        flow.tx_packets += 1;
        flow.tx_bytes += u64::from(packet.ip_bytes);
        flow.last_tx = now;
    }

    #[inline(always)]
    fn on_sent_burst(&mut self, now: Instant, first: &PacketView, packets: u32, _step_bytes: u32) -> bool {
        let flow = &mut self.flows[first.flow.index()];
        if flow.tx_packets == 0 {
            flow.first_tx = now;
        }
        flow.tx_packets += u64::from(packets);
        flow.tx_bytes += u64::from(packets) * u64::from(first.ip_bytes);
        flow.last_tx = now;
        true
    }

    #[inline(always)]
    fn on_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        let flow = &mut self.flows[packet.flow.index()];
        let delay = now - sent;
        if now >= self.measured_from {
            flow.delays.add(delay);
        }
        if flow.rx_packets == 0 {
            flow.first_rx = now;
        } else {
            flow.jitter_sum += delay.abs_diff(flow.last_delay);
        }
        flow.rx_packets += 1;
        flow.rx_bytes += u64::from(packet.ip_bytes);
        flow.delay_sum += delay;
        flow.last_delay = delay;
        flow.marked_packets += u64::from(packet.codepoint == EcnCodepoint::Ce);
        flow.last_rx = now;
    }

    fn on_dropped(&mut self, now: Instant, packet: &PacketView, _link: Option<LinkId>, _reason: DropReason) {
        count(&mut self.lost, packet.flow);
        if now < self.measured_from {
            *self.lost_before.entry(packet.flow).or_default() += 1;
        }
    }

    fn on_duplicated(&mut self, _arrival: Instant, packet: &PacketView, _link: LinkId) {
        count(&mut self.duplicates, packet.flow);
    }
}

/// Increments the entry of a flow in `numbers`.
fn count(numbers: &mut Vec<u64>, flow: FlowId) {
    if flow.index() >= numbers.len() {
        numbers.resize(flow.index() + 1, 0);
    }
    numbers[flow.index()] += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet() -> PacketView {
        PacketView { flow: FlowId(0), ip_bytes: 100, payload_bytes: 72, codepoint: EcnCodepoint::NotEct, tcp: None }
    }

    #[test]
    fn a_burst_counts_like_its_packets_one_by_one() {
        let (mut at_once, mut singly) = (FlowMonitor::new(), FlowMonitor::new());
        at_once.reserve_flows(1);
        singly.reserve_flows(1);
        for (now, packets) in [(7, 3), (9, 1), (12, 2)] {
            let now = Instant::from_nanos(now);
            assert!(at_once.on_sent_burst(now, &packet(), packets, 60));
            (0..packets).for_each(|_| singly.on_sent(now, &packet()));
            assert_eq!(at_once.flow(FlowId(0)), singly.flow(FlowId(0)));
        }
        assert_eq!(singly.flow(FlowId(0)).tx_packets, 6);
    }

    #[test]
    fn delay_and_jitter_match_a_calculation_by_hand() {
        // Three packets sent at 0, 10, 20 ns, received at 5, 18, 22: delays 5, 8, 2; jitter |8-5| + |2-8| = 9.
        let mut monitor = FlowMonitor::new();
        monitor.reserve_flows(1);
        for (sent, received, bits) in [(0, 5, 0b11), (10, 18, 0b10), (20, 22, 0b11)] {
            monitor.on_sent(Instant::from_nanos(sent), &packet());
            let arrived = PacketView { codepoint: EcnCodepoint::from_bits(bits), ..packet() };
            monitor.on_delivered(Instant::from_nanos(received), &arrived, Instant::from_nanos(sent));
        }
        assert_eq!(monitor.flow(FlowId(0)).marked_packets, 2);
        monitor.on_sent(Instant::from_nanos(30), &packet());
        monitor.on_dropped(Instant::from_nanos(30), &packet(), None, DropReason::QueueFull);
        let flow = monitor.flow(FlowId(0));
        assert_eq!(
            (flow.tx_packets, flow.tx_bytes, flow.rx_packets, flow.rx_bytes, flow.lost_packets),
            (4, 400, 3, 300, 1)
        );
        assert_eq!((flow.delay_sum.as_nanos(), flow.jitter_sum.as_nanos()), (15, 9));
        assert_eq!((flow.first_tx.as_nanos(), flow.last_tx.as_nanos()), (0, 30));
        assert_eq!((flow.first_rx.as_nanos(), flow.last_rx.as_nanos()), (5, 22));
        let percentile = |percent| monitor.delays(FlowId(0)).unwrap().percentile(percent).unwrap().as_nanos();
        assert_eq!([34, 50, 67, 100].map(percentile), [5, 5, 8, 8]);
        assert!(monitor.delays(FlowId(1)).is_none());
    }

    #[test]
    fn percentiles_cover_the_packets_received_in_the_measured_interval() {
        let mut monitor = FlowMonitor::new();
        monitor.reserve_flows(1);
        monitor.measure_from(Instant::from_nanos(18));
        // The delays are 15, 8 and 2. The packet with 15 arrives a nanosecond before the interval, and the one with 8
        // at its start.
        for (sent, received) in [(2, 17), (10, 18), (20, 22)] {
            monitor.on_delivered(Instant::from_nanos(received), &packet(), Instant::from_nanos(sent));
        }
        let percentile = |percent| monitor.delays(FlowId(0)).unwrap().percentile(percent).unwrap().as_nanos();
        assert_eq!([50, 51, 100].map(percentile), [2, 8, 8]);
    }
}
