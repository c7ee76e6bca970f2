//! The frames that a link with [`super::Aggregation`] by number holds, and when they are released.

use fullpipe_units::{Duration, Instant};

/// The burst whose release is not known yet.
#[derive(Debug)]
pub struct HeldBurst {
    frames: u64,
    timeout: Duration,
    /// Frames in the burst.
    held: u64,
    /// When they are released if no further frame arrives.
    due: Instant,
    /// Latest arrival of these frames at the end of the link.
    latest: Instant,
}

/// What happens with a frame at the end of a link that holds frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldOutcome {
    /// It is held until this time, unless the burst is completed earlier.
    Held(Instant),
    /// It completes the burst: it arrives at `at`, and the `earlier` frames before it, which were held until `due`, as well.
    Released {
        /// When all of them arrive.
        at: Instant,
        /// Number of frames that were held.
        earlier: u64,
        /// When those would have been released.
        due: Instant,
    },
}

impl HeldBurst {
    /// Returns a burst without frames.
    pub(super) fn new(frames: u64, timeout: Duration) -> Self {
        HeldBurst { frames, timeout, held: 0, due: Instant::ZERO, latest: Instant::ZERO }
    }

    /// Processes the next frame, which is at the end of the link at `arrival`.
    pub(crate) fn add(&mut self, arrival: Instant) -> HoldOutcome {
        if self.held > 0 && arrival > self.due {
            // The timeout releases the burst before this frame is there.
            self.held = 0;
        }
        if self.held == 0 {
            self.due = arrival.saturating_add(self.timeout);
            self.latest = arrival;
        }
        self.latest = self.latest.max(arrival);
        if self.held + 1 < self.frames {
            self.held += 1;
            return HoldOutcome::Held(self.due);
        }
        let earlier = std::mem::take(&mut self.held);
        HoldOutcome::Released { at: self.latest, earlier, due: self.due }
    }
}
