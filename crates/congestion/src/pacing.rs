//! Pacing: spreading packets over time instead of sending a window at once.
//!
//! **Model.** A virtual clock runs ahead by the time each packet takes at the pacing rate; nothing may leave before
//! real time has caught up. To save timers, up to a *quantum* of bytes leaves in one burst, and the next burst waits
//! for the time the whole burst takes. The part of a nanosecond that a packet leaves over is carried on, so the rate is
//! exact over any number of packets. A sender that comes late (the window was shut, a timer ran late) may win back at
//! most the time of half a quantum; time idled away beyond that is lost and never becomes a burst.
//!
//! **Source.** Linux `tcp_update_skb_after_send` and `fq`'s earliest departure times (win-back there: half a packet's
//! time per packet); the default rate is Linux's `tcp_update_pacing_rate` (200 % of the window per smoothed round trip
//! in slow start, 120 % after it).

use fullpipe_units::{Duration, Instant};

const NANOSECOND_BITS_PER_BYTE: u64 = 8 * 1_000_000_000;
/// Bytes times nanosecond-bits stay within 64 bits; no packet or quantum is larger.
const MAX_BYTES: u64 = u64::MAX / NANOSECOND_BITS_PER_BYTE;

/// Says when the next packet may leave.
#[derive(Clone, Debug)]
pub struct Pacer {
    rate_bps: u64,
    quantum_bytes: u64,
    /// End of the time that the packets sent so far take.
    next_at: Instant,
    /// Part of a nanosecond on top, in units of 1/rate nanoseconds; always below the rate.
    remainder: u64,
    /// What the burst under way may still send before `next_at`.
    burst_bytes: u64,
    /// Longest lateness that is won back.
    slack: Duration,
}

impl Pacer {
    /// A pacer that does not pace until it is given a rate, with this much per burst (at least one packet leaves
    /// whatever the quantum).
    pub fn new(quantum_bytes: u64) -> Self {
        Pacer {
            rate_bps: 0,
            quantum_bytes,
            next_at: Instant::ZERO,
            remainder: 0,
            burst_bytes: 0,
            slack: Duration::ZERO,
        }
    }

    /// Sets the rate; 0 stops pacing. Packets already sent keep the time they were given.
    #[inline]
    pub fn set_rate_bps(&mut self, rate_bps: u64) {
        if rate_bps == self.rate_bps {
            return;
        }
        if self.rate_bps == 0 || rate_bps == 0 {
            // What a pacer without a rate left behind is no debt.
            self.next_at = Instant::ZERO;
            self.burst_bytes = 0;
            self.remainder = 0;
        } else {
            // The same fraction of a nanosecond in the new unit.
            let scaled = (self.remainder as f64 * (rate_bps as f64 / self.rate_bps as f64)) as u64;
            self.remainder = scaled.min(rate_bps - 1);
        }
        self.rate_bps = rate_bps;
        self.set_slack();
    }

    /// The rate in bits per second; 0 if unpaced.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps
    }

    /// Sets how many bytes may leave in one burst.
    #[inline]
    pub fn set_quantum_bytes(&mut self, quantum_bytes: u64) {
        if quantum_bytes != self.quantum_bytes {
            self.quantum_bytes = quantum_bytes;
            self.set_slack();
        }
    }

    /// When the next packet may leave; [`Instant::ZERO`] or any time past: at once.
    #[inline]
    pub fn release_at(&self) -> Instant {
        if self.burst_bytes > 0 { Instant::ZERO } else { self.next_at }
    }

    /// Whether a packet may leave now.
    #[inline]
    pub fn may_send(&self, now: Instant) -> bool {
        self.burst_bytes > 0 || now >= self.next_at
    }

    /// A packet of `bytes` (as the rate counts them) leaves now.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        if self.rate_bps == 0 {
            return;
        }
        if now >= self.next_at {
            let late = now.saturating_since(self.next_at);
            if late > self.slack {
                self.next_at = Instant::from_nanos(now.as_nanos() - self.slack.as_nanos());
                self.remainder = 0;
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

    fn set_slack(&mut self) {
        let half = self.quantum_bytes.min(MAX_BYTES) / 2 * NANOSECOND_BITS_PER_BYTE;
        self.slack = Duration::from_nanos(half.checked_div(self.rate_bps).unwrap_or(0));
    }
}

/// The pacing rate of a control that sets none, in bits per second: the window per smoothed round-trip time, times 2
/// while the window is below half the threshold and times 1.2 after that (Linux `tcp_pacing_ss_ratio`,
/// `tcp_pacing_ca_ratio`). 0 (unpaced) before the first round-trip sample.
#[inline]
pub fn window_rate_bps(cwnd_bytes: u64, ssthresh_bytes: u64, smoothed_rtt: Duration) -> u64 {
    if smoothed_rtt.is_zero() {
        return 0;
    }
    let ratio = if cwnd_bytes < ssthresh_bytes / 2 { 2.0 } else { 1.2 };
    // `as` saturates.
    ((cwnd_bytes as f64 * 8e9 * ratio / smoothed_rtt.as_nanos() as f64) as u64).max(1)
}
