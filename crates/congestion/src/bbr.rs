//! Measurements that both versions of BBR use: round trips, a windowed maximum, and the marking of rate samples from
//! phases in which the control itself limited sending.
//!
//! **Source.** draft-ietf-ccwg-bbr sections "BBR.round_count" and "Detecting application-limited phases". The window of
//! the maximum is that of Linux `lib/win_minmax.c`: a sample counts until it is older than a given number of rounds.
//! Linux keeps the three best samples and approximates the maximum; this filter computes it exactly.

use crate::component::declare;
use crate::control::WindowState;
use crate::window::segment;
use fullpipe_schema::metric::MetricDeclaration;
use fullpipe_units::Duration;

/// Values that probes can sample from both versions.
pub(crate) const VALUES: [MetricDeclaration; 8] = [
    declare("control_state", "", "the congestion control's state, as numbered in its documentation (BBR)."),
    declare("control_bw_bps", "bit/s", "its estimate of the bottleneck's rate (BBR)."),
    declare("control_min_rtt_s", "s", "its estimate of the path's round-trip time (BBR)."),
    declare("control_pacing_gain", "", "its pacing gain (BBR)."),
    declare("control_cwnd_gain", "", "its window gain (BBR)."),
    declare(
        "control_extra_acked_bytes",
        "bytes",
        "its estimate of the bytes acknowledged in excess of the rate (BBR).",
    ),
    declare("control_full_bw_reached", "", "1 after its start-up has reached the full bandwidth, 0 before (BBR)."),
    declare("control_round_count", "", "the round trips that it has counted (BBR)."),
];

/// Returns the values of both versions, followed by those of one version; `N` is the total number.
pub(crate) const fn with_values<const N: usize>(own: &[MetricDeclaration]) -> [MetricDeclaration; N] {
    assert!(N == VALUES.len() + own.len(), "N must be the number of all values");
    let mut all = [VALUES[0]; N];
    let mut n = 1;
    while n < N {
        all[n] = if n < VALUES.len() { VALUES[n] } else { own[n - VALUES.len()] };
        n += 1;
    }
    all
}

/// Unlimited, as a number of bytes or of bits per second.
pub(crate) const UNBOUNDED: u64 = u64::MAX;

/// The rounds over which both versions keep a maximum (bandwidth, aggregation).
pub(crate) const FILTER_ROUNDS: u64 = 10;

/// The bytes that are transmitted at this rate in this time.
pub(crate) fn bytes_in(rate_bps: u64, time: Duration) -> u64 {
    let bytes = u128::from(rate_bps) * u128::from(time.as_nanos()) / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// A gain times bytes or bits per second, rounded.
pub(crate) fn times(gain: f64, quantity: u64) -> u64 {
    (gain * quantity as f64).round() as u64
}

/// Four segments: the smallest window that keeps a path busy if the receiver acknowledges every other segment.
pub(crate) fn four_segments(control: &WindowState) -> u64 {
    segment(control).saturating_mul(4)
}

/// Counts round trips by delivery: a round ends when a packet sent after its start is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundCounter {
    /// Bytes delivered on the connection when the current round began.
    end_bytes: u64,
    pub(crate) count: u64,
    /// Whether the current acknowledgment began a round.
    pub(crate) start: bool,
}

impl RoundCounter {
    /// Processes an acknowledgment. `prior_delivered_bytes` is the number of bytes that had been delivered when the
    /// newest acknowledged packet was sent.
    pub(crate) fn on_ack(&mut self, prior_delivered_bytes: Option<u64>, delivered_bytes: u64) {
        self.start = prior_delivered_bytes.is_some_and(|prior| prior >= self.end_bytes);
        if self.start {
            self.begin(delivered_bytes);
            self.count += 1;
        }
    }

    /// Begins a round now.
    pub(crate) fn begin(&mut self, delivered_bytes: u64) {
        self.end_bytes = delivered_bytes;
    }
}

/// The maximum of the values in the current round and in the [`FILTER_ROUNDS`] rounds before it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowedMax {
    /// The maximum of each round, at the index of the round's number modulo the length.
    slots: [u64; FILTER_ROUNDS as usize + 1],
    newest: u64,
}

impl WindowedMax {
    pub(crate) fn update(&mut self, round: u64, value: u64) {
        let length = self.slots.len() as u64;
        for forgotten in self.newest + 1..=round.min(self.newest + length) {
            self.slots[(forgotten % length) as usize] = 0;
        }
        self.newest = self.newest.max(round);
        let slot = &mut self.slots[(round % length) as usize];
        *slot = value.max(*slot);
    }

    /// The maximum over the round of the last update and the `rounds` rounds before it.
    pub(crate) fn over(&self, rounds: u64) -> u64 {
        let length = self.slots.len() as u64;
        let oldest = self.newest.saturating_sub(rounds.min(length - 1));
        (oldest..=self.newest).map(|round| self.slots[(round % length) as usize]).max().unwrap_or(0)
    }

    pub(crate) fn get(&self) -> u64 {
        self.over(FILTER_ROUNDS)
    }
}

/// The phases in which the control itself limits sending. While BBR probes for the round-trip time, its window is too
/// small to fill the path. BBR then marks the connection as application-limited, so that a low rate does not count as
/// the rate of the path. The control cannot mark the transport's packets, but it can identify them. The state of a
/// packet contains the bytes delivered when the packet was sent.
///
/// If a round trip takes seconds, packets of one phase may be acknowledged in the next. The last two phases are
/// therefore stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProbeRttAppLimit {
    /// Bytes delivered when the last two phases began and ended. Packets are marked if the bytes delivered when they
    /// were sent are at least the first value and less than the second. The second value is [`UNBOUNDED`] during the
    /// phase.
    phases: [(u64, u64); 2],
    /// The phase ends when more than this number of bytes is delivered; 0 outside a phase.
    until_bytes: u64,
}

impl ProbeRttAppLimit {
    /// Begins or extends a phase. It lasts at least until the bytes now in flight have been delivered.
    pub(crate) fn mark(&mut self, delivered_bytes: u64, in_flight_bytes: u64) {
        let [_, last] = &mut self.phases;
        if self.until_bytes == 0 && last.1 == delivered_bytes {
            // The last phase has just ended, so it continues.
            last.1 = UNBOUNDED;
        } else if self.until_bytes == 0 {
            self.phases = [*last, (delivered_bytes, UNBOUNDED)];
        }
        self.until_bytes = delivered_bytes.saturating_add(in_flight_bytes).max(1);
    }

    /// Processes an acknowledgment.
    pub(crate) fn on_ack(&mut self, delivered_bytes: u64) {
        if self.until_bytes != 0 && delivered_bytes > self.until_bytes {
            self.until_bytes = 0;
            self.phases[1].1 = delivered_bytes;
        }
    }

    /// Whether a packet was sent in a phase.
    pub(crate) fn covers(&self, prior_delivered_bytes: u64) -> bool {
        self.phases.iter().any(|(from, end)| (*from..*end).contains(&prior_delivered_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_until_it_is_more_than_ten_rounds_old() {
        let mut filter = WindowedMax::default();
        filter.update(3, 900);
        for round in 4..=13 {
            filter.update(round, 100 + round);
            assert_eq!(filter.get(), 900, "round {round}");
        }
        filter.update(14, 5);
        // The rounds 4 to 14 remain; round 13 had 113.
        assert_eq!(filter.get(), 113);
        assert_eq!(filter.over(0), 5);
        assert_eq!(filter.over(1), 113);
        // A jump in the round number discards all values, whatever its distance.
        for jump in [11, 12, 100] {
            let mut jumped = filter;
            jumped.update(14 + jump, 1);
            assert_eq!(jumped.get(), 1, "{jump}");
        }
        filter.update(24, 1);
        assert_eq!(filter.get(), 5, "round 14 is the oldest that counts");
        let mut first = WindowedMax::default();
        first.update(0, 900);
        first.update(11, 5);
        assert_eq!(first.get(), 5, "round 0 is not");
    }

    #[test]
    fn a_round_lasts_until_a_packet_sent_in_it_is_delivered() {
        let mut rounds = RoundCounter::default();
        rounds.on_ack(Some(0), 1_000);
        assert!(rounds.start && rounds.count == 1);
        rounds.on_ack(Some(999), 2_000);
        rounds.on_ack(None, 2_500);
        assert!(!rounds.start && rounds.count == 1);
        rounds.on_ack(Some(1_000), 3_000);
        assert!(rounds.start && rounds.count == 2);
        rounds.begin(4_000);
        rounds.on_ack(Some(3_999), 5_000);
        assert!(!rounds.start);
    }

    #[test]
    fn packets_sent_in_a_phase_are_identified() {
        let mut limit = ProbeRttAppLimit::default();
        assert!(!limit.covers(0) && !limit.covers(u64::MAX));
        limit.mark(1_000, 500);
        limit.mark(1_200, 400);
        assert!(!limit.covers(999) && limit.covers(1_000) && limit.covers(1_300));
        limit.on_ack(1_600);
        assert!(limit.covers(1_600), "exactly what was in flight has been delivered: the phase continues");
        limit.on_ack(1_700);
        assert!(limit.covers(1_699) && !limit.covers(1_700));
        // The next phase begins while packets of this phase are in flight.
        limit.mark(2_000, 700);
        assert!(limit.covers(1_000) && limit.covers(1_699) && !limit.covers(1_700) && !limit.covers(1_999));
        assert!(limit.covers(2_000) && limit.covers(9_999));
        limit.on_ack(2_701);
        limit.mark(3_000, 0);
        assert!(!limit.covers(1_699) && limit.covers(2_700) && !limit.covers(2_701) && limit.covers(3_000));
    }

    #[test]
    fn a_phase_that_is_marked_again_at_its_end_continues() {
        // With nothing in flight, the phase ends at the next delivery, unless that packet was sent in the phase too.
        let mut limit = ProbeRttAppLimit::default();
        limit.mark(1_000, 0);
        for delivered in [1_100, 1_200, 1_300] {
            limit.on_ack(delivered);
            limit.mark(delivered, 0);
        }
        assert!(!limit.covers(999) && limit.covers(1_000) && limit.covers(1_099) && limit.covers(5_000));
    }

    #[test]
    fn bytes_in_a_time_and_gains_match_values_computed_by_hand() {
        // 100 Mbit/s for 20 ms are 250 kB.
        assert_eq!(bytes_in(100_000_000, Duration::from_millis(20)), 250_000);
        assert_eq!(bytes_in(u64::MAX, Duration::MAX), u64::MAX);
        assert_eq!(times(1.25, 1_001), 1_251);
        assert_eq!(times(2.0, u64::MAX), u64::MAX);
    }
}
