//! The burst of frames that a link with [`super::Aggregation::Frames`] holds, and the time of its release.

use fullpipe_units::{Duration, Instant};

/// The burst of frames that a link currently holds. Its release time is not known yet.
#[derive(Debug)]
pub struct HeldBurst {
    frames: u64,
    timeout: Duration,
    /// Number of frames in the burst.
    held: u64,
    /// When the frames are released if no further frame arrives.
    due: Instant,
    /// Latest time at which one of these frames reached the end of the link.
    latest: Instant,
}

/// The outcome of a frame at the end of a link that holds frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldOutcome {
    /// The frame is held until this time, unless the burst is completed earlier.
    Held(Instant),
    /// The frame completes the burst. It arrives at `at`, together with the `earlier` frames, which were held until
    /// `due`.
    Released {
        /// When all frames of the burst arrive.
        at: Instant,
        /// Number of frames that were held.
        earlier: u64,
        /// When the held frames would have been released.
        due: Instant,
    },
}

impl HeldBurst {
    /// Returns a burst without frames.
    pub(super) fn new(frames: u64, timeout: Duration) -> Self {
        HeldBurst { frames, timeout, held: 0, due: Instant::ZERO, latest: Instant::ZERO }
    }

    /// Processes the next frame, which reaches the end of the link at `arrival`.
    pub(crate) fn add(&mut self, arrival: Instant) -> HoldOutcome {
        if self.held > 0 && arrival > self.due {
            // The timeout has released the burst before this frame arrives.
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
