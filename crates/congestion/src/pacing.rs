//! Pacing: spreads packets over time instead of sending a window at once.
//!
//! **Model.** A virtual clock advances by the time that each packet takes at the pacing rate. No packet may leave
//! before real time has reached the virtual clock. To save timers, up to a *quantum* of bytes leaves in one burst, and
//! the next burst waits for the time of the whole burst. The fraction of a nanosecond that remains after a packet is
//! carried over to the next, so the rate is exact over any number of packets. A sender that is late (a closed window, a
//! late timer) may catch up by at most the time of half a quantum. Longer idle time is discarded and does not permit a
//! burst.
//!
//! **Source.** Linux `tcp_update_skb_after_send` and the earliest departure times of `fq` (where a packet may catch up
//! by half of its time). The default rate is that of Linux's `tcp_update_pacing_rate` (200 % of the window per smoothed
//! round trip in slow start, 120 % after it).

use fullpipe_units::{Duration, Instant};

const NANOSECOND_BITS_PER_BYTE: u64 = 8 * 1_000_000_000;
/// The largest number of bytes whose product with the constant above fits in 64 bits; all packets and quanta are
/// smaller.
const MAX_BYTES: u64 = u64::MAX / NANOSECOND_BITS_PER_BYTE;

/// Computes when the next packet may leave.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate_bps: u64,
    quantum_bytes: u64,
    /// The end of the transmission times of all packets sent so far.
    next_at: Instant,
    /// The additional fraction of a nanosecond, in units of 1/rate nanoseconds; always below the rate.
    remainder: u64,
    /// The bytes that the current burst may still send before `next_at`.
    burst_bytes: u64,
}

impl Pacer {
    /// Creates a pacer that does not pace until a rate is set. A burst contains up to `quantum_bytes`, but at least one
    /// packet.
    pub fn new(quantum_bytes: u64) -> Self {
        Pacer { rate_bps: 0, quantum_bytes, next_at: Instant::ZERO, remainder: 0, burst_bytes: 0 }
    }

    /// Sets the rate in bits per second; 0 disables pacing. The transmission times of packets already sent do not
    /// change.
    #[inline]
    pub fn set_rate_bps(&mut self, rate_bps: u64) {
        if rate_bps == self.rate_bps {
            return;
        }
        if self.rate_bps == 0 || rate_bps == 0 {
            // Time from the period without a rate does not count.
            self.next_at = Instant::ZERO;
            self.burst_bytes = 0;
            self.remainder = 0;
        } else {
            // The same fraction of a nanosecond in the new unit.
            let scaled = (self.remainder as f64 * (rate_bps as f64 / self.rate_bps as f64)) as u64;
            self.remainder = scaled.min(rate_bps - 1);
        }
        self.rate_bps = rate_bps;
    }

    /// The rate in bits per second; 0 without pacing.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// Sets the number of bytes that may leave in one burst.
    #[inline]
    pub fn set_quantum_bytes(&mut self, quantum_bytes: u64) {
        self.quantum_bytes = quantum_bytes;
    }

    /// When the next packet may leave. [`Instant::ZERO`] or any past time means immediately.
    #[inline]
    pub fn release_at(&self) -> Instant {
        if self.burst_bytes > 0 { Instant::ZERO } else { self.next_at }
    }

    /// Whether a packet may leave now.
    #[inline]
    pub fn may_send(&self, now: Instant) -> bool {
        self.burst_bytes > 0 || now >= self.next_at
    }

    /// Records that a packet of `bytes` leaves now. `bytes` and the rate must include the same headers.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        if self.rate_bps == 0 {
            return;
        }
        if now >= self.next_at {
            if now > self.next_at {
                self.forgive(now);
            }
            self.burst_bytes = self.quantum_bytes;
        }
        self.burst_bytes = self.burst_bytes.saturating_sub(bytes);
        let scaled = bytes.min(MAX_BYTES) * NANOSECOND_BITS_PER_BYTE;
        let mut nanoseconds = scaled / self.rate_bps;
        let fraction = scaled % self.rate_bps;
        // remainder + fraction >= rate, written so that it cannot overflow.
        if fraction >= self.rate_bps - self.remainder {
            self.remainder = fraction - (self.rate_bps - self.remainder);
            nanoseconds += 1;
        } else {
            self.remainder += fraction;
        }
        self.next_at = self.next_at.saturating_add(Duration::from_nanos(nanoseconds));
    }

    /// If `now` is late, discards all of the lateness except the time of half a quantum.
    fn forgive(&mut self, now: Instant) {
        let half = self.quantum_bytes.min(MAX_BYTES) / 2 * NANOSECOND_BITS_PER_BYTE / self.rate_bps;
        if now.saturating_since(self.next_at).as_nanos() > half {
            self.next_at = Instant::from_nanos(now.as_nanos() - half);
            self.remainder = 0;
        }
    }
}

/// Returns the pacing rate for a control that sets none, in bits per second. It is the window per smoothed round-trip
/// time, times 2 while the window is below half the threshold, and otherwise times 1.2 (Linux `tcp_pacing_ss_ratio`,
/// `tcp_pacing_ca_ratio`). It is 0 (no pacing) before the first round-trip sample.
#[inline]
pub fn window_rate_bps(cwnd_bytes: u64, ssthresh_bytes: u64, smoothed_rtt: Duration) -> u64 {
    if smoothed_rtt.is_zero() {
        return 0;
    }
    let ratio = if cwnd_bytes < ssthresh_bytes / 2 { 2.0 } else { 1.2 };
    // `as` saturates.
    ((cwnd_bytes as f64 * 8e9 * ratio / smoothed_rtt.as_nanos() as f64) as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sends this number of packets as early as the pacer permits, from now on; returns the instant of each.
    fn departures(pacer: &mut Pacer, mut now: Instant, packets: usize, bytes: u64) -> Vec<u64> {
        (0..packets)
            .map(|_| {
                now = now.max(pacer.release_at());
                assert!(pacer.may_send(now));
                pacer.on_sent(now, bytes);
                now.as_nanos()
            })
            .collect()
    }

    fn pacer(rate_bps: u64, quantum_bytes: u64) -> Pacer {
        let mut pacer = Pacer::new(quantum_bytes);
        pacer.set_rate_bps(rate_bps);
        pacer
    }

    #[test]
    fn packets_take_exactly_their_transmission_time_at_the_rate() {
        // 1500 bytes at 7 Mbit/s: 12 000 / 7e6 s = 1 714 285.714... ns. The sums, rounded down; 7000 of them are 12 s.
        let mut pacer = pacer(7_000_000, 1_500);
        let times = departures(&mut pacer, Instant::ZERO, 7_001, 1_500);
        assert_eq!(times[..5], [0, 1_714_285, 3_428_571, 5_142_857, 6_857_142]);
        assert_eq!(times[7], 12_000_000);
        assert_eq!(times[7_000], 12_000_000_000);
    }

    #[test]
    fn a_quantum_leaves_at_once_and_the_next_waits_for_the_time_of_all_of_it() {
        // 1000 bytes at 8 Mbit/s: a millisecond each. Three leave with a quantum of 2500 (the third begins within it).
        let mut pacer = pacer(8_000_000, 2_500);
        let milliseconds: Vec<_> =
            departures(&mut pacer, Instant::ZERO, 8, 1_000).iter().map(|t| t / 1_000_000).collect();
        assert_eq!(milliseconds, [0, 0, 0, 3, 3, 3, 6, 6]);
        // With a quantum of 0 one packet still leaves.
        let mut pacer = super::tests::pacer(8_000_000, 0);
        let milliseconds: Vec<_> =
            departures(&mut pacer, Instant::ZERO, 4, 1_000).iter().map(|t| t / 1_000_000).collect();
        assert_eq!(milliseconds, [0, 1, 2, 3]);
    }

    #[test]
    fn the_rest_of_a_burst_may_leave_until_the_time_of_the_burst_is_over() {
        let mut pacer = pacer(8_000_000, 2_000);
        pacer.on_sent(Instant::ZERO, 1_000);
        let later = Instant::from_nanos(400_000);
        assert!(pacer.may_send(later));
        pacer.on_sent(later, 1_000);
        assert!(!pacer.may_send(Instant::from_nanos(1_999_999)));
        assert_eq!(pacer.release_at(), Instant::from_nanos(2_000_000));
        assert!(pacer.may_send(Instant::from_nanos(2_000_000)));
    }

    #[test]
    fn a_late_sender_catches_up_by_at_most_half_a_quantum() {
        // One packet of 1000 bytes per millisecond. The second leaves 0.3 ms late, the third at its original time.
        let mut late = pacer(8_000_000, 1_000);
        late.on_sent(Instant::ZERO, 1_000);
        late.on_sent(Instant::from_nanos(1_300_000), 1_000);
        assert_eq!(late.release_at(), Instant::from_nanos(2_000_000));
        // Ten milliseconds late: the sender catches up by half a millisecond only, once.
        late.on_sent(Instant::from_nanos(12_000_000), 1_000);
        assert_eq!(late.release_at(), Instant::from_nanos(12_500_000));
        late.on_sent(Instant::from_nanos(12_500_000), 1_000);
        assert_eq!(late.release_at(), Instant::from_nanos(13_500_000));
    }

    #[test]
    fn packets_leave_immediately_without_a_rate() {
        let mut pacer = Pacer::new(1_500);
        assert_eq!(departures(&mut pacer, Instant::from_nanos(5), 4, 1_500), [5; 4]);
        // A period without pacing leaves neither a delay nor a burst.
        pacer.set_rate_bps(8_000_000);
        assert_eq!(pacer.rate_bps(), 8_000_000);
        assert!(pacer.may_send(Instant::ZERO));
        pacer.on_sent(Instant::ZERO, 1_500);
        assert!(!pacer.may_send(Instant::from_nanos(10)));
        pacer.set_rate_bps(0);
        assert!(pacer.may_send(Instant::from_nanos(10)));
    }

    #[test]
    fn a_change_of_the_rate_keeps_the_remaining_time_and_its_fraction() {
        // At 3 Gbit/s a byte takes 2.667 ns: 2 ns and a remainder of 0.667 ns. At 6 Gbit/s a byte takes 1.333 ns:
        // 2.667 + 1.333 = 4 ns exactly.
        let mut pacer = pacer(3_000_000_000, 1);
        pacer.on_sent(Instant::ZERO, 1);
        assert_eq!(pacer.release_at().as_nanos(), 2);
        pacer.set_rate_bps(6_000_000_000);
        pacer.on_sent(Instant::from_nanos(2), 1);
        assert_eq!(pacer.release_at().as_nanos(), 4);
        // Two bytes at 3 Gbit/s, 5.333 ns, and one at 6 Gbit/s: 6.667 ns, still within the seventh nanosecond.
        let mut pacer = super::tests::pacer(3_000_000_000, 3);
        pacer.on_sent(Instant::ZERO, 2);
        pacer.set_rate_bps(6_000_000_000);
        pacer.on_sent(Instant::from_nanos(4), 1);
        assert_eq!(pacer.release_at().as_nanos(), 6);
    }

    #[test]
    fn a_change_of_the_quantum_applies_to_the_next_burst() {
        let mut pacer = pacer(8_000_000, 1_000);
        pacer.on_sent(Instant::ZERO, 1_000);
        pacer.set_quantum_bytes(3_000);
        assert!(!pacer.may_send(Instant::ZERO));
        let times = departures(&mut pacer, Instant::from_nanos(1_000_000), 4, 1_000);
        assert_eq!(times, [1_000_000, 1_000_000, 1_000_000, 4_000_000]);
    }

    #[test]
    fn the_default_rate_of_a_window_matches_linux() {
        // 100 kB per 100 ms are 8 Mbit/s: the rate is twice that below half the threshold, and 1.2 times that above.
        let rtt = Duration::from_millis(100);
        assert_eq!(window_rate_bps(100_000, u64::MAX, rtt), 16_000_000);
        assert_eq!(window_rate_bps(100_000, 200_002, rtt), 16_000_000);
        assert_eq!(window_rate_bps(100_000, 200_000, rtt), 9_600_000);
        assert_eq!(window_rate_bps(100_000, 0, rtt), 9_600_000);
        assert_eq!(window_rate_bps(100_000, 0, Duration::ZERO), 0);
        assert_eq!(window_rate_bps(1, 0, Duration::MAX), 1);
        assert_eq!(window_rate_bps(u64::MAX, 0, Duration::from_nanos(1)), u64::MAX);
    }

    proptest! {
        /// The pacer conforms to a token bucket of one and a half quanta and one packet.
        #[test]
        fn no_interval_exceeds_the_rate_and_a_burst(
            rate_bps in 1_000..10_000_000_000u64,
            quantum in 1..20_000u64,
            attempts in prop::collection::vec((0..3_000_000u64, 1..9_000u64), 1..200),
        ) {
            let mut pacer = pacer(rate_bps, quantum);
            let (mut now, mut sent) = (0u64, Vec::new());
            for (wait, bytes) in attempts {
                now += wait;
                if pacer.may_send(Instant::from_nanos(now)) {
                    pacer.on_sent(Instant::from_nanos(now), bytes);
                    sent.push((now, bytes));
                }
            }
            for from in 0..sent.len() {
                let mut total = 0;
                for to in from..sent.len() {
                    total += sent[to].1;
                    let bits = u128::from(rate_bps) * u128::from(sent[to].0 - sent[from].0) / 1_000_000_000;
                    // The burst in progress at the start may have begun up to a quantum earlier.
                    let burst = u128::from(quantum * 5 / 2 + 2 * 9_000);
                    prop_assert!(u128::from(total) <= bits / 8 + burst + 1);
                }
            }
        }

        #[test]
        fn extremes_do_not_overflow(
            calls in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 1..50),
        ) {
            let mut pacer = Pacer::new(u64::MAX);
            for (now, bytes, rate, quantum) in calls {
                pacer.set_rate_bps(rate);
                pacer.set_quantum_bytes(quantum);
                pacer.on_sent(Instant::from_nanos(now), bytes);
                pacer.set_rate_bps(rate % 3);
                pacer.on_sent(Instant::from_nanos(now), bytes % 10_000);
                prop_assert!(pacer.remainder < pacer.rate_bps.max(1));
            }
        }
    }
}
