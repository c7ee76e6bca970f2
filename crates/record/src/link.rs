//! Counters of links within a window of a run, from the end of the warm-up to the end of the run.
//!
//! An event counts if its time is in the window, both ends included. A packet arrives when it reaches the queue. It
//! departs when its first bit is transmitted, which is when it leaves the queue. It is dropped when the queue or its
//! discipline drops it. Therefore in every window
//!
//! ```text
//! waiting at its start + arrivals = departed + dropped + waiting at its end
//! ```
//!
//! A packet that arrived before the window and departs in it is not counted as an arrival. It is counted as departed,
//! with its whole delay. The delay of a packet that still waits at the end is not counted.
//!
//! Two quantities are integrated over the window: the length of the queue in packets and bytes, and the busy time of
//! the transmitter. The integral is computed from the queue length itself, not from the delays. By Little's law both
//! agree if no packet waits at the start or the end of the window.
//!
//! Bytes are counted on the wire, including framing. The packet in transmission does not count as waiting.

use crate::histogram::DelayHistogram;
use crate::observer::{DropReason, Observer, PacketView, Transmission};
use fullpipe_units::{Duration, Instant, LinkId};
use std::collections::VecDeque;

/// A number of packets and the number of their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficVolume {
    /// Number of packets.
    pub packets: u64,
    /// Bytes on the wire.
    pub bytes: u64,
}

impl TrafficVolume {
    fn add(&mut self, wire_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(wire_bytes);
    }

    /// Removes a packet. The counts never become negative; the auditor reports packets that were not added before.
    fn take(&mut self, wire_bytes: u32) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(wire_bytes));
    }
}

/// Counters of one direction of a link within a time window of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LinkSummary {
    /// Start of the window.
    pub from: Instant,
    /// End of the window.
    pub to: Instant,
    /// Packets in the queue when the window started.
    pub waiting_first: TrafficVolume,
    /// Packets in the queue when the window ended.
    pub waiting_last: TrafficVolume,
    /// Packets that arrived at the queue.
    pub arrivals: TrafficVolume,
    /// Packets that left the queue for the transmitter.
    pub departed: TrafficVolume,
    /// Packets dropped by the queue or its discipline.
    pub dropped_packets: u64,
    /// Packets that the discipline marked CE ("congestion experienced") as they departed.
    pub marked_packets: u64,
    /// Sum over departed packets of the time from arrival to departure, in nanoseconds.
    pub delay_sum_ns: u128,
    /// Median of the time from arrival to departure over departed packets; at most 1/64 too large. `None` if no packet
    /// departed.
    pub delay_p50: Option<Duration>,
    /// 99th percentile of the time from arrival to departure over departed packets; at most 1/64 too large. `None` if
    /// no packet departed.
    pub delay_p99: Option<Duration>,
    /// Integral of the number of packets in the queue over time, in packets times nanoseconds.
    pub packet_ns: u128,
    /// Integral of the number of bytes in the queue over time, in bytes times nanoseconds.
    pub byte_ns: u128,
    /// Time in which the transmitter was busy.
    pub busy: Duration,
}

impl LinkSummary {
    /// Returns the length of the window.
    pub fn measured_duration(&self) -> Duration {
        self.to.saturating_since(self.from)
    }

    /// Returns dropped packets divided by arrivals; `None` if no packet arrived.
    pub fn drop_ratio(&self) -> Option<f64> {
        ratio(self.dropped_packets as f64, self.arrivals.packets as f64)
    }

    /// Returns marked packets divided by arrivals; `None` if no packet arrived.
    pub fn mark_ratio(&self) -> Option<f64> {
        ratio(self.marked_packets as f64, self.arrivals.packets as f64)
    }

    /// Returns the throughput in bits per second: the bits of departed packets on the wire, divided by the length of
    /// the window. `None` if the length of the window is zero.
    pub fn throughput_bps(&self) -> Option<f64> {
        ratio(self.departed.bytes as f64 * 8e9, self.measured_duration().as_nanos() as f64)
    }

    /// Returns the fraction of the window in which the transmitter was busy; `None` if the length of the window is
    /// zero.
    pub fn utilization(&self) -> Option<f64> {
        ratio(self.busy.as_nanos() as f64, self.measured_duration().as_nanos() as f64)
    }

    /// Returns the mean time from arrival to departure of the departed packets, in seconds; `None` if no packet
    /// departed.
    pub fn mean_queue_delay_s(&self) -> Option<f64> {
        ratio(self.delay_sum_ns as f64, self.departed.packets as f64 * 1e9)
    }

    /// Returns the time average of the number of packets in the queue; `None` if the length of the window is zero.
    pub fn mean_queue_packets(&self) -> Option<f64> {
        ratio(self.packet_ns as f64, self.measured_duration().as_nanos() as f64)
    }

    /// Returns the time average of the number of bytes in the queue; `None` if the length of the window is zero.
    pub fn mean_queue_bytes(&self) -> Option<f64> {
        ratio(self.byte_ns as f64, self.measured_duration().as_nanos() as f64)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A packet whose departure time is known.
#[derive(Clone, Copy, Debug)]
struct Departure {
    offered: Instant,
    start: Instant,
    finish: Instant,
    wire_bytes: u32,
}

/// The sums of one link, and its queue as of `now`.
#[derive(Clone, Debug)]
struct Watch {
    link: LinkId,
    now: Instant,
    waiting: TrafficVolume,
    /// Whether the window has started and `summary.waiting_first` is set.
    begun: bool,
    /// Packets whose departure was reported ahead of time, in order.
    ahead: VecDeque<Departure>,
    /// When the transmission of the last departed packet ends.
    busy_until: Instant,
    delays: DelayHistogram,
    summary: LinkSummary,
}

impl Watch {
    fn new(link: LinkId, from: Instant) -> Self {
        Watch {
            link,
            now: Instant::ZERO,
            waiting: TrafficVolume::default(),
            begun: false,
            ahead: VecDeque::new(),
            busy_until: Instant::ZERO,
            delays: DelayHistogram::default(),
            summary: LinkSummary { from, ..LinkSummary::default() },
        }
    }

    /// Advances the time with an unchanged queue. Returns whether events at `to` are in the window.
    fn pass_to(&mut self, to: Instant) -> bool {
        let to = to.max(self.now);
        let counts = to >= self.summary.from;
        if counts {
            if !self.begun {
                self.begun = true;
                self.summary.waiting_first = self.waiting;
            }
            let time = u128::from((to - self.now.max(self.summary.from)).as_nanos());
            self.summary.packet_ns += u128::from(self.waiting.packets) * time;
            self.summary.byte_ns += u128::from(self.waiting.bytes) * time;
        }
        self.now = to;
        counts
    }

    /// Advances the time and processes all departures until then. Returns whether events at `to` are in the window.
    fn advance(&mut self, to: Instant) -> bool {
        while let Some(departure) = self.ahead.front().copied().filter(|departure| departure.start <= to) {
            self.ahead.pop_front();
            self.depart(departure);
        }
        self.pass_to(to)
    }

    fn depart(&mut self, departure: Departure) {
        let counts = self.pass_to(departure.start);
        self.waiting.take(departure.wire_bytes);
        let began = departure.start.max(self.summary.from);
        self.summary.busy += departure.finish.saturating_since(began);
        self.busy_until = departure.finish;
        if counts {
            let delay = departure.start.saturating_since(departure.offered);
            self.summary.departed.add(departure.wire_bytes);
            self.summary.delay_sum_ns += u128::from(delay.as_nanos());
            self.delays.add(delay);
        }
    }

    fn arrive(&mut self, now: Instant, wire_bytes: u32) {
        if self.advance(now) {
            self.summary.arrivals.add(wire_bytes);
        }
        self.waiting.add(wire_bytes);
    }

    fn dropped(&mut self, now: Instant, wire_bytes: u32) {
        if self.advance(now) {
            self.summary.dropped_packets += 1;
        }
        self.waiting.take(wire_bytes);
    }

    /// Returns the summary up to `to`, or up to the last reported event if that is later.
    fn summary(&self, to: Instant) -> LinkSummary {
        let mut ended = self.clone();
        ended.advance(to);
        let mut summary = ended.summary;
        if !ended.begun {
            return LinkSummary { from: summary.from, to: summary.from, ..LinkSummary::default() };
        }
        let beyond = ended.busy_until.saturating_since(ended.now.max(summary.from));
        summary.busy = summary.busy.saturating_sub(beyond);
        let quantile = |share| ended.delays.percentile(share);
        (summary.delay_p50, summary.delay_p99) = (quantile(50), quantile(99));
        LinkSummary { to: ended.now, waiting_last: ended.waiting, ..summary }
    }
}

/// An observer that counts the packets of selected links.
#[derive(Clone, Debug, Default)]
pub struct LinkMonitor {
    watches: Vec<Watch>,
}

impl LinkMonitor {
    /// Returns a monitor of `links` that counts events at `from` and later.
    pub fn new(links: impl IntoIterator<Item = LinkId>, from: Instant) -> Self {
        LinkMonitor { watches: links.into_iter().map(|link| Watch::new(link, from)).collect() }
    }

    /// Returns the summary of each link, in the order of [`LinkMonitor::new`], for a run that ended at `to`. Reported
    /// events with a later time also count, such as the loss of a packet after the last arrival.
    pub fn summaries(&self, to: Instant) -> impl Iterator<Item = (LinkId, LinkSummary)> {
        self.watches.iter().map(move |watch| (watch.link, watch.summary(to)))
    }

    fn watch(&mut self, link: LinkId) -> Option<&mut Watch> {
        self.watches.iter_mut().find(|watch| watch.link == link)
    }
}

impl Observer for LinkMonitor {
    fn on_offered(&mut self, now: Instant, link: LinkId, wire_bytes: u32) {
        if let Some(watch) = self.watch(link) {
            watch.arrive(now, wire_bytes);
        }
    }

    fn on_link_dropped(&mut self, now: Instant, link: LinkId, wire_bytes: u32, _reason: DropReason) {
        if let Some(watch) = self.watch(link) {
            watch.dropped(now, wire_bytes);
        }
    }

    fn on_marked(&mut self, now: Instant, _packet: &PacketView, link: LinkId) {
        if let Some(watch) = self.watch(link)
            && watch.advance(now)
        {
            watch.summary.marked_packets += 1;
        }
    }

    fn on_transmitted(&mut self, frame: &Transmission) {
        if let Some(watch) = self.watch(frame.link) {
            let Transmission { offered, start, finish, wire_bytes, .. } = *frame;
            watch.ahead.push_back(Departure { offered, start, finish, wire_bytes });
            // With a discipline, the transmission starts now.
            watch.advance(watch.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LINK: LinkId = LinkId(3);

    fn at(nanoseconds: u64) -> Instant {
        Instant::from_nanos(nanoseconds)
    }

    fn frame(offered: u64, start: u64) -> Transmission {
        // 1000 bytes at 8 Mbit/s take a millisecond.
        let (offered, start, finish) = (at(offered), at(start), at(start + MS));
        Transmission { link: LINK, flow: Default::default(), wire_bytes: 1000, offered, start, finish, arrival: finish }
    }

    fn monitor(from: u64) -> LinkMonitor {
        LinkMonitor::new([LINK], at(from))
    }

    /// Four packets arrive at once and start at 0, 1, 2 and 3 ms; a fifth packet, at 1.2 ms, is dropped because the
    /// queue is full.
    fn four(from: u64, to: u64) -> LinkSummary {
        let mut monitor = monitor(from);
        (0..4).for_each(|number| monitor.on_passed(&frame(0, number * MS)));
        monitor.on_passed(&Transmission { link: LinkId(4), ..frame(0, 0) });
        monitor.on_offered(at(1_200_000), LINK, 1000);
        monitor.on_link_dropped(at(1_200_000), LINK, 1000, DropReason::QueueFull);
        monitor.summaries(at(to)).next().expect("one link").1
    }

    fn balanced(summary: &LinkSummary) -> bool {
        summary.waiting_first.packets + summary.arrivals.packets
            == summary.departed.packets + summary.dropped_packets + summary.waiting_last.packets
    }

    #[test]
    fn a_whole_run_matches_a_calculation_by_hand() {
        let whole = four(0, 5 * MS);
        assert_eq!((whole.waiting_first.packets, whole.waiting_last.packets), (0, 0));
        assert_eq!(
            (whole.arrivals, whole.departed),
            (TrafficVolume { packets: 5, bytes: 5000 }, TrafficVolume { packets: 4, bytes: 4000 })
        );
        // Delays 0 + 1 + 2 + 3 ms; 3, 2 and 1 packets wait for a millisecond each.
        assert_eq!((whole.delay_sum_ns, whole.packet_ns, whole.byte_ns), (6_000_000, 6_000_000, 6_000_000_000));
        assert_eq!((whole.mean_queue_delay_s(), whole.mean_queue_packets()), (Some(0.0015), Some(1.2)));
        assert_eq!((whole.utilization(), whole.throughput_bps()), (Some(0.8), Some(6_400_000.0)));
        assert_eq!((whole.drop_ratio(), whole.mark_ratio()), (Some(0.2), Some(0.0)));
        assert!(balanced(&whole));
    }

    #[test]
    fn events_before_the_window_do_not_count() {
        // At 1.5 ms two packets wait: both for half a millisecond, then the last one for another. The transmitter is
        // busy from 1.5 to 4 ms.
        let late = four(1_500_000, 5 * MS);
        assert_eq!(
            (late.waiting_first, late.arrivals),
            (TrafficVolume { packets: 2, bytes: 2000 }, TrafficVolume::default())
        );
        assert_eq!((late.departed.packets, late.dropped_packets, late.delay_sum_ns), (2, 0, 5_000_000));
        assert_eq!((late.packet_ns, late.busy.as_nanos()), (2_000_000, 2_500_000));
        assert_eq!((late.drop_ratio(), late.mean_queue_delay_s()), (None, Some(0.0025)));
        assert!(balanced(&late));
    }

    #[test]
    fn both_ends_belong_to_the_window() {
        // The departure at 2 ms exactly, and the drop at 1.2 ms with its arrival.
        for (from, departed, waiting, dropped) in
            [(2 * MS, 2, 2, 0), (2 * MS + 1, 1, 1, 0), (1_200_000, 2, 2, 1), (1_200_001, 2, 2, 0)]
        {
            let summary = four(from, 5 * MS);
            assert_eq!((summary.departed.packets, summary.waiting_first.packets), (departed, waiting), "{from}");
            assert_eq!((summary.dropped_packets, summary.arrivals.packets), (dropped, dropped), "{from}");
            assert!(balanced(&summary));
        }
        for (to, departed, busy) in [(3 * MS, 4, 3 * MS), (3 * MS - 1, 3, 3 * MS - 1), (3 * MS + 1, 4, 3 * MS + 1)] {
            let summary = four(0, to);
            assert_eq!((summary.departed.packets, summary.waiting_last.packets), (departed, 4 - departed), "{to}");
            assert_eq!((summary.busy.as_nanos(), summary.utilization()), (busy, Some(1.0)));
            assert!(balanced(&summary));
        }
        // The summary is empty if the run ended before the window.
        let never = four(9 * MS, 5 * MS);
        assert_eq!(never, LinkSummary { from: at(9 * MS), to: at(9 * MS), ..LinkSummary::default() });
        assert_eq!((never.throughput_bps(), never.utilization(), never.mean_queue_packets()), (None, None, None));
    }

    #[test]
    fn the_waiting_time_of_a_packet_that_a_discipline_drops_counts() {
        let mut monitor = monitor(2);
        monitor.on_offered(at(0), LINK, 100);
        monitor.on_offered(at(5), LINK, 300);
        monitor.on_link_dropped(at(9), LINK, 100, DropReason::QueueDiscipline);
        let packet = PacketView {
            flow: Default::default(),
            ip_bytes: 298,
            payload_bytes: 0,
            codepoint: fullpipe_units::EcnCodepoint::Ce,
            tcp: None,
        };
        monitor.on_marked(at(12), &packet, LINK);
        monitor.on_transmitted(&Transmission { wire_bytes: 300, ..frame(5, 12) });
        monitor.on_offered(at(15), LINK, 50);
        let summary = monitor.summaries(at(20)).next().expect("one link").1;
        // The first packet waits from 2 to 9, the second from 5 to 12, the third from 15 to 20.
        assert_eq!((summary.packet_ns, summary.byte_ns), (7 + 7 + 5, 700 + 2100 + 250));
        assert_eq!((summary.waiting_first.bytes, summary.waiting_last.bytes), (100, 50));
        assert_eq!((summary.delay_sum_ns, summary.marked_packets, summary.mark_ratio()), (7, 1, Some(0.5)));
        assert_eq!((summary.busy.as_nanos(), summary.delay_p50), (8, Some(Duration::from_nanos(7))));
        assert!(balanced(&summary));
    }
}
