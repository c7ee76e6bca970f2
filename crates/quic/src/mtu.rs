//! How large a datagram may be (RFC 8899, RFC 9000 section 14.3): a search between what is known to pass and the largest
//! that is wanted, by packets of PING and padding whose loss says nothing of congestion.
//!
//! The search halves what lies between, until that is not worth a packet. A size is given up after three losses. When
//! bursts of losses begin with full packets again and again and no full packet arrives, or nothing arrives for three
//! time-outs in a row, the path has become another: the size falls to the smallest, and the search begins anew after ten minutes.

use fullpipe_units::{Duration, Instant};

/// The smallest gain that is worth a probe, in bytes.
const WORTH: u16 = 20;
/// Losses of a size before it is given up (RFC 8899 section 5.1.2: MAX_PROBES).
const PROBES: u8 = 3;
/// After how long the search begins anew (RFC 8899 section 5.1.1: PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);
/// Losses in a row of packets larger than the smallest size after which the size falls.
const BLACK_HOLE: u8 = 3;

/// The search.
#[derive(Clone, Debug)]
pub(crate) struct PathMtu {
    base: u16,
    /// Known to pass.
    current: u16,
    /// The largest size that may pass; below or at `current` when the search is over.
    upper: u16,
    most: u16,
    /// Being probed, and how often it was lost.
    probing: Option<u16>,
    losses: u8,
    suspicious: u8,
    begin_at: Instant,
}

impl PathMtu {
    /// Datagrams of `base` bytes pass; `most` is the largest that is wanted.
    pub(crate) fn new(base: u16, most: Option<u16>) -> PathMtu {
        let most = most.unwrap_or(base).max(base);
        PathMtu {
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

    /// The path is another: nothing is known of it.
    pub(crate) fn begin_anew(&mut self) {
        *self = PathMtu::new(self.base, Some(self.most));
    }

    /// When the search begins anew after a fall.
    pub(crate) fn begins_at(&self) -> Instant {
        self.begin_at
    }

    /// The peer takes nothing larger.
    pub(crate) fn bound(&mut self, most: u64) {
        let most = u16::try_from(most).unwrap_or(u16::MAX).max(self.base);
        self.most = self.most.min(most);
        self.upper = self.upper.min(most);
    }

    /// The size to probe now, if any.
    pub(crate) fn next_probe(&self, now: Instant) -> Option<u16> {
        if self.probing.is_some()
            || now < self.begin_at
            || self.upper < self.current.saturating_add(WORTH.min(self.most - self.base).max(1))
        {
            return None;
        }
        let between = self.upper - self.current;
        // Close to a largest size that was not tried yet, that size.
        Some(if between <= 2 * WORTH && self.upper == self.most { self.upper } else { self.current + between / 2 })
    }

    pub(crate) fn on_probe_sent(&mut self, bytes: u16) {
        self.probing = Some(bytes);
    }

    /// A probe has arrived; whether the size has changed.
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

    /// A packet of this size has arrived: such packets pass.
    #[inline(always)]
    pub(crate) fn on_acknowledged(&mut self, bytes: u16) {
        if bytes > self.base {
            self.suspicious = 0;
        }
    }

    /// A packet of this size was lost, and a smaller one after it was not. Whether the size has fallen.
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

    /// So many time-outs in a row: nothing passes, maybe for its size. Whether that has fallen.
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
