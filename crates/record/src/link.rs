//! What links carry within a window of a run: from an instant, before which the run has not settled, to its end.
//!
//! Everything that happens has an instant, and counts if that lies in the window, both ends included. A packet arrives
//! when it comes to the queue; it departs when its first bit leaves, which is when it leaves the queue; it is dropped
//! when the queue or its discipline drops it. So for every window
//!
//! ```text
//! waiting at its begin + arrivals = departed + dropped + waiting at its end
//! ```
//!
//! A packet that came before the window and departs in it is not among the arrivals, but among the departed, with the
//! whole of its delay. One that still waits at the end has no delay yet.
//!
//! Two things are not counted but measured over time, of each exactly the part that lies in the window: how many packets
//! and bytes wait, as the integral of the queue's length, and how long the transmitter is busy. The integral is that of
//! the queue itself, not the sum of delays: by Little's law the two agree where nobody crosses an end of the window.
//!
//! Bytes are those on the wire, framing included. The packet in transmission does not wait.

use crate::histogram::DelayHistogram;
use crate::observer::{DropReason, Observer, PacketView, Transmission};
use fullpipe_units::{Duration, Instant, LinkId};
use std::collections::VecDeque;

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Amount {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Amount {
    fn add(&mut self, wire_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(wire_bytes);
    }

    /// A packet that was never announced takes nothing away: that is for the auditor to say.
    fn take(&mut self, wire_bytes: u32) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(u64::from(wire_bytes));
    }
}

/// What one direction of a link carried in a window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct LinkSummary {
    /// Begin of the window.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
    /// Waiting when it began.
    pub waiting_first: Amount,
    /// Waiting when it ended.
    pub waiting_last: Amount,
    /// What came to the queue.
    pub arrivals: Amount,
    /// What left it for the transmitter.
    pub departed: Amount,
    /// Packets that queue or discipline dropped.
    pub dropped_packets: u64,
    /// Packets that the discipline marked "congestion experienced" as they departed.
    pub marked_packets: u64,
    /// Sum over departed packets of the time from coming to departing, in nanoseconds.
    pub delay_sum_ns: u128,
    /// The delay that half of the departed packets do not exceed; see [`LinkSummary::delay_p99`].
    pub delay_p50: Option<Duration>,
    /// The delay that 99 % of the departed packets do not exceed: up to one part in 64 too long.
    pub delay_p99: Option<Duration>,
    /// Integral over time of the packets that wait, in packet nanoseconds.
    pub packet_ns: u128,
    /// Integral over time of the bytes that wait, in byte nanoseconds.
    pub byte_ns: u128,
    /// How long the transmitter was busy.
    pub busy: Duration,
}

impl LinkSummary {
    /// Length of the window.
    pub fn measured(&self) -> Duration {
        self.to.saturating_since(self.from)
    }

    /// Dropped packets over arrivals; `None` without arrivals.
    pub fn drop_ratio(&self) -> Option<f64> {
        ratio(self.dropped_packets as f64, self.arrivals.packets as f64)
    }

    /// Marked packets over arrivals; `None` without arrivals.
    pub fn mark_ratio(&self) -> Option<f64> {
        ratio(self.marked_packets as f64, self.arrivals.packets as f64)
    }

    /// Departed bits per second; `None` if the window has no length, like what follows.
    pub fn throughput_bps(&self) -> Option<f64> {
        ratio(self.departed.bytes as f64 * 8e9, self.measured().as_nanos() as f64)
    }

    /// The part of the time in which the transmitter was busy.
    pub fn utilisation(&self) -> Option<f64> {
        ratio(self.busy.as_nanos() as f64, self.measured().as_nanos() as f64)
    }

    /// Mean over departed packets of the time from coming to departing, in seconds; `None` without any.
    pub fn mean_queue_delay_s(&self) -> Option<f64> {
        ratio(self.delay_sum_ns as f64, self.departed.packets as f64 * 1e9)
    }

    /// Mean over time of the packets that wait.
    pub fn mean_queue_packets(&self) -> Option<f64> {
        ratio(self.packet_ns as f64, self.measured().as_nanos() as f64)
    }

    /// Mean over time of the bytes that wait.
    pub fn mean_queue_bytes(&self) -> Option<f64> {
        ratio(self.byte_ns as f64, self.measured().as_nanos() as f64)
    }
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// A packet that is known to depart.
#[derive(Clone, Copy, Debug)]
struct Departure {
    offered: Instant,
    start: Instant,
    finish: Instant,
    wire_bytes: u32,
}

/// One link: its sums, and its queue as it was at `now`.
#[derive(Clone, Debug)]
struct Watch {
    link: LinkId,
    now: Instant,
    waiting: Amount,
    /// Whether the window has begun, and `summary.waiting_first` is what waited then.
    begun: bool,
    /// Those whose departure was told before it happens, in order.
    ahead: VecDeque<Departure>,
    /// When the last that departed is through.
    busy_until: Instant,
    delays: DelayHistogram,
    summary: LinkSummary,
}

impl Watch {
    fn new(link: LinkId, from: Instant) -> Self {
        Watch {
            link,
            now: Instant::ZERO,
            waiting: Amount::default(),
            begun: false,
            ahead: VecDeque::new(),
            busy_until: Instant::ZERO,
            delays: DelayHistogram::default(),
            summary: LinkSummary { from, ..LinkSummary::default() },
        }
    }

    /// Time goes on, with the queue as it is; says whether what happens at `to` counts.
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

    /// Time goes on, and all that is to depart until then does.
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

    /// What has happened until `to`, or until the last thing that was told if that is later.
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

/// Watches some links of a run.
#[derive(Clone, Debug, Default)]
pub struct LinkMonitor {
    watches: Vec<Watch>,
}

impl LinkMonitor {
    /// A monitor of `links`, of what happens from an instant on.
    pub fn new(links: impl IntoIterator<Item = LinkId>, from: Instant) -> Self {
        LinkMonitor { watches: links.into_iter().map(|link| Watch::new(link, from)).collect() }
    }

    /// What each link has carried, in the order in which they were named, in a run that ended at `to`. What a link was
    /// told of a later time (a packet that is lost after the last that arrives) still belongs to the run.
    pub fn summaries(&self, to: Instant) -> impl Iterator<Item = (LinkId, LinkSummary)> {
        self.watches.iter().map(move |watch| (watch.link, watch.summary(to)))
    }

    fn watch(&mut self, link: LinkId) -> Option<&mut Watch> {
        self.watches.iter_mut().find(|watch| watch.link == link)
    }
}

impl Observer for LinkMonitor {
    fn offered(&mut self, now: Instant, link: LinkId, wire_bytes: u32) {
        if let Some(watch) = self.watch(link) {
            watch.arrive(now, wire_bytes);
        }
    }

    fn link_dropped(&mut self, now: Instant, link: LinkId, wire_bytes: u32, _reason: DropReason) {
        if let Some(watch) = self.watch(link) {
            watch.dropped(now, wire_bytes);
        }
    }

    fn marked(&mut self, now: Instant, _packet: &PacketView, link: LinkId) {
        if let Some(watch) = self.watch(link)
            && watch.advance(now)
        {
            watch.summary.marked_packets += 1;
        }
    }

    fn transmitted(&mut self, frame: &Transmission) {
        if let Some(watch) = self.watch(frame.link) {
            let Transmission { offered, start, finish, wire_bytes, .. } = *frame;
            watch.ahead.push_back(Departure { offered, start, finish, wire_bytes });
            // With a discipline it begins now.
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

    /// Four packets that come at once begin at 0, 1, 2 and 3 ms; a fifth, at 1.2 ms, finds no room.
    fn four(from: u64, to: u64) -> LinkSummary {
        let mut monitor = monitor(from);
        (0..4).for_each(|number| monitor.passed(&frame(0, number * MS)));
        monitor.passed(&Transmission { link: LinkId(4), ..frame(0, 0) });
        monitor.offered(at(1_200_000), LINK, 1000);
        monitor.link_dropped(at(1_200_000), LINK, 1000, DropReason::QueueFull);
        monitor.summaries(at(to)).next().expect("one link").1
    }

    fn balanced(summary: &LinkSummary) -> bool {
        summary.waiting_first.packets + summary.arrivals.packets
            == summary.departed.packets + summary.dropped_packets + summary.waiting_last.packets
    }

    #[test]
    fn a_whole_run_by_hand() {
        let whole = four(0, 5 * MS);
        assert_eq!((whole.waiting_first.packets, whole.waiting_last.packets), (0, 0));
        assert_eq!(
            (whole.arrivals, whole.departed),
            (Amount { packets: 5, bytes: 5000 }, Amount { packets: 4, bytes: 4000 })
        );
        // Delays 0 + 1 + 2 + 3 ms; 3, 2 and 1 packets wait for a millisecond each.
        assert_eq!((whole.delay_sum_ns, whole.packet_ns, whole.byte_ns), (6_000_000, 6_000_000, 6_000_000_000));
        assert_eq!((whole.mean_queue_delay_s(), whole.mean_queue_packets()), (Some(0.0015), Some(1.2)));
        assert_eq!((whole.utilisation(), whole.throughput_bps()), (Some(0.8), Some(6_400_000.0)));
        assert_eq!((whole.drop_ratio(), whole.mark_ratio()), (Some(0.2), Some(0.0)));
        assert!(balanced(&whole));
    }

    #[test]
    fn what_lies_before_the_window_does_not_count() {
        // At 1.5 ms two wait: for half a millisecond both, for one more the last. Busy from 1.5 to 4 ms.
        let late = four(1_500_000, 5 * MS);
        assert_eq!((late.waiting_first, late.arrivals), (Amount { packets: 2, bytes: 2000 }, Amount::default()));
        assert_eq!((late.departed.packets, late.dropped_packets, late.delay_sum_ns), (2, 0, 5_000_000));
        assert_eq!((late.packet_ns, late.busy.as_nanos()), (2_000_000, 2_500_000));
        assert_eq!((late.drop_ratio(), late.mean_queue_delay_s()), (None, Some(0.0025)));
        assert!(balanced(&late));
    }

    #[test]
    fn both_ends_belong_to_the_window() {
        // The departure at 2 ms, to the nanosecond; and the drop at 1.2 ms with its arrival.
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
            assert_eq!((summary.busy.as_nanos(), summary.utilisation()), (busy, Some(1.0)));
            assert!(balanced(&summary));
        }
        // Nothing is known of a run that was over before.
        let never = four(9 * MS, 5 * MS);
        assert_eq!(never, LinkSummary { from: at(9 * MS), to: at(9 * MS), ..LinkSummary::default() });
        assert_eq!((never.throughput_bps(), never.utilisation(), never.mean_queue_packets()), (None, None, None));
    }

    #[test]
    fn a_packet_that_a_discipline_drops_has_waited() {
        let mut monitor = monitor(2);
        monitor.offered(at(0), LINK, 100);
        monitor.offered(at(5), LINK, 300);
        monitor.link_dropped(at(9), LINK, 100, DropReason::Discipline);
        let packet = PacketView {
            flow: Default::default(),
            ip_bytes: 298,
            payload_bytes: 0,
            codepoint: fullpipe_units::Codepoint::Ce,
            tcp: None,
        };
        monitor.marked(at(12), &packet, LINK);
        monitor.transmitted(&Transmission { wire_bytes: 300, ..frame(5, 12) });
        monitor.offered(at(15), LINK, 50);
        let summary = monitor.summaries(at(20)).next().expect("one link").1;
        // From 2 to 9 the first waits, from 5 to 12 the second, from 15 to 20 the third.
        assert_eq!((summary.packet_ns, summary.byte_ns), (7 + 7 + 5, 700 + 2100 + 250));
        assert_eq!((summary.waiting_first.bytes, summary.waiting_last.bytes), (100, 50));
        assert_eq!((summary.delay_sum_ns, summary.marked_packets, summary.mark_ratio()), (7, 1, Some(0.5)));
        assert_eq!((summary.busy.as_nanos(), summary.delay_p50), (8, Some(Duration::from_nanos(7))));
        assert!(balanced(&summary));
    }
}
