//! Path MTU discovery (RFC 8899, RFC 9000 section 14.3): a search between the validated size and the largest permitted
//! size. Probes are packets with PING and padding, and their loss does not indicate congestion.
//!
//! The search halves the interval until the remaining gain is too small for another probe. A size is rejected after
//! three lost probes. The path is assumed to have changed in two cases. In the first case, bursts of losses repeatedly
//! begin with full packets while no full packet arrives. In the second case, nothing arrives for three successive
//! timeouts. The size is then reset to the base size, and the search restarts after ten minutes.

use fullpipe_units::{Duration, Instant};

/// The smallest gain in bytes that justifies a probe.
const WORTH: u16 = 20;
/// The number of lost probes after which a size is rejected (RFC 8899 section 5.1.2: MAX_PROBES).
const PROBES: u8 = 3;
/// The time after which the search restarts (RFC 8899 section 5.1.1: PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);
/// The number of successive losses of packets above the base size after which the size is reset.
const BLACK_HOLE: u8 = 3;

/// The state of the search.
#[derive(Clone, Debug)]
pub(crate) struct PathMtuDiscovery {
    base: u16,
    /// The validated size.
    current: u16,
    /// The largest size that may pass; at most `current` when the search is over.
    upper: u16,
    most: u16,
    /// The size that is being probed, and the number of lost probes of this size.
    probing: Option<u16>,
    losses: u8,
    suspicious: u8,
    begin_at: Instant,
}

impl PathMtuDiscovery {
    /// Creates the state. Datagrams of `base` bytes pass; `most` is the largest permitted size.
    pub(crate) fn new(base: u16, most: Option<u16>) -> PathMtuDiscovery {
        let most = most.unwrap_or(base).max(base);
        PathMtuDiscovery {
            base,
            current: base,
            upper: most,
            most,
            probing: None,
            losses: 0,
            suspicious: 0,
            begin_at: Instant::ZERO,
        }
    }

    #[inline(always)]
    pub(crate) fn current(&self) -> u16 {
        self.current
    }

    /// Resets the state for a new path.
    pub(crate) fn begin_anew(&mut self) {
        *self = PathMtuDiscovery::new(self.base, Some(self.most));
    }

    /// When the search restarts after a reset.
    pub(crate) fn begins_at(&self) -> Instant {
        self.begin_at
    }

    /// Limits the size to the largest that the peer accepts.
    pub(crate) fn bound(&mut self, most: u64) {
        let most = u16::try_from(most).unwrap_or(u16::MAX).max(self.base);
        self.most = self.most.min(most);
        self.upper = self.upper.min(most);
    }

    /// The size of the next probe, if one is to be sent.
    pub(crate) fn next_probe(&self, now: Instant) -> Option<u16> {
        if self.probing.is_some()
            || now < self.begin_at
            || self.upper < self.current.saturating_add(WORTH.min(self.most - self.base).max(1))
        {
            return None;
        }
        let between = self.upper - self.current;
        // Near a largest permitted size that was not tried yet, probes that size.
        Some(if between <= 2 * WORTH && self.upper == self.most { self.upper } else { self.current + between / 2 })
    }

    pub(crate) fn on_probe_sent(&mut self, bytes: u16) {
        self.probing = Some(bytes);
    }

    /// Handles the arrival of a probe; returns whether the size has changed.
    pub(crate) fn on_probe_acknowledged(&mut self) -> bool {
        let Some(bytes) = self.probing.take() else { return false };
        self.losses = 0;
        let raised = bytes > self.current;
        self.current = self.current.max(bytes);
        raised
    }

    pub(crate) fn on_probe_lost(&mut self) {
        let Some(bytes) = self.probing.take() else { return };
        self.losses += 1;
        if self.losses >= PROBES {
            self.losses = 0;
            self.upper = bytes - 1;
        }
    }

    /// Handles the arrival of a packet of this size, which shows that such packets pass.
    #[inline(always)]
    pub(crate) fn on_acknowledged(&mut self, bytes: u16) {
        if bytes > self.base {
            self.suspicious = 0;
        }
    }

    /// Handles the loss of a packet of this size when a smaller packet after it was not lost. Returns whether the size
    /// was reset.
    pub(crate) fn on_lost(&mut self, now: Instant, bytes: u16) -> bool {
        if bytes <= self.base || self.current == self.base {
            return false;
        }
        self.suspicious += 1;
        if self.suspicious < BLACK_HOLE {
            return false;
        }
        self.fall(now);
        true
    }

    /// Handles this number of successive timeouts, which may be due to the size. Returns whether the size was reset.
    pub(crate) fn on_time_out(&mut self, now: Instant, count: u32) -> bool {
        let falls = count >= u32::from(BLACK_HOLE) && self.current > self.base;
        if falls {
            self.fall(now);
        }
        falls
    }

    fn fall(&mut self, now: Instant) {
        self.suspicious = 0;
        self.current = self.base;
        self.upper = self.most;
        self.begin_at = now.saturating_add(RAISE);
    }
}
