//! Common functions of the window-based controls: the initial and the smallest window, and the undo of a spurious
//! reduction.
//!
//! **Source.** RFC 6928 (initial window), RFC 5681 sections 3.1 and 4.1 (lower bounds, restart after idle periods), RFC
//! 4015 and Linux `tcp_undo_cwnd_reduction` (undo).

use crate::control::{CongestionEvent, RecoveryExit, Timeout, WindowState};

/// The initial window of RFC 6928 section 2: ten segments, but at most 14 600 bytes or two segments, whichever is
/// larger.
pub fn initial_window_bytes(mss_bytes: u64) -> u64 {
    mss_bytes.saturating_mul(10).min(mss_bytes.saturating_mul(2).max(14_600))
}

/// The segment size as a divisor, at least 1.
#[inline(always)]
pub(crate) fn segment(control: &WindowState) -> u64 {
    control.mss_bytes.max(1)
}

/// The smallest threshold: two segments (RFC 5681 equation 4).
#[inline(always)]
pub(crate) fn two_segments(control: &WindowState) -> u64 {
    segment(control).saturating_mul(2)
}

/// Reduces the window to `reduced_bytes`: sets the threshold, and the window if the transport does not set it. After a
/// loss, the transport sets the window by proportional rate reduction. A mark may reduce the window to one segment (RFC
/// 3168 section 6.1.2), but the threshold is at least two.
pub(crate) fn reduce(control: &mut WindowState, congestion: &CongestionEvent, reduced_bytes: u64) {
    control.ssthresh_bytes = reduced_bytes.max(two_segments(control));
    if congestion.ecn {
        control.cwnd_bytes = control.cwnd_bytes.min(reduced_bytes).max(segment(control));
    }
    if congestion.persistent {
        // RFC 9002 section 7.6.2: the smallest window, two segments.
        control.cwnd_bytes = two_segments(control);
    }
}

/// The window after a mark with Alternative Backoff with ECN: 0.8 of it, the value of RFC 8511 section 3.1 for Reno, in
/// integers and without overflow.
pub(crate) fn reno_after_mark(window_bytes: u64) -> u64 {
    window_bytes / 5 * 4 + window_bytes % 5 * 4 / 5
}

/// Restarts after an idle period: limits the window to the initial window (RFC 5681 section 4.1).
pub(crate) fn restart(control: &mut WindowState) {
    control.cwnd_bytes = control.cwnd_bytes.min(initial_window_bytes(segment(control)));
}

/// Applies a change of the segment size: the window is at least one segment, the threshold at least two.
pub(crate) fn resize(control: &mut WindowState) {
    control.cwnd_bytes = control.cwnd_bytes.max(segment(control));
    control.ssthresh_bytes = control.ssthresh_bytes.max(two_segments(control));
}

/// Raises the threshold to at least three quarters of the current window, so that slow start can resume up to that
/// value (RFC 7661 section 4.4.1, Linux `tcp_current_ssthresh`).
pub(crate) fn keep_three_quarters(control: &mut WindowState) {
    let three_quarters = control.cwnd_bytes / 4 * 3;
    control.ssthresh_bytes = control.ssthresh_bytes.max(three_quarters);
}

/// Window and threshold before the last reduction, for an undo.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UndoState {
    cwnd_bytes: u64,
    ssthresh_bytes: u64,
    saved: bool,
    in_recovery: bool,
}

impl UndoState {
    /// Saves the state at the beginning of a reduction. A mark is never spurious, and the state before it must not be
    /// restored.
    pub(crate) fn on_congestion(&mut self, control: &WindowState, congestion: &CongestionEvent) {
        if congestion.ecn {
            self.saved = false;
        } else {
            self.save(control);
            self.in_recovery = true;
        }
    }

    /// Saves the state at an expiry of the timer. If the timeout ends a fast recovery, the state before that recovery
    /// is kept.
    pub(crate) fn on_timeout(&mut self, control: &WindowState, timeout: &Timeout) {
        if !timeout.repeated && !self.in_recovery {
            self.save(control);
        }
        self.in_recovery = false;
    }

    /// Handles the end of a recovery: restores the state if the recovery was spurious, and returns whether it did. The
    /// transport may detect a spurious recovery after its end.
    pub(crate) fn on_recovery_exit(&mut self, control: &mut WindowState, exit: &RecoveryExit) -> bool {
        let goes_back = exit.undone && self.saved;
        if goes_back {
            control.cwnd_bytes = control.cwnd_bytes.max(self.cwnd_bytes).max(segment(control));
            control.ssthresh_bytes = control.ssthresh_bytes.max(self.ssthresh_bytes);
            self.saved = false;
        }
        self.in_recovery = false;
        goes_back
    }

    /// Discards the saved state.
    pub(crate) fn forget(&mut self) {
        self.saved = false;
    }

    fn save(&mut self, control: &WindowState) {
        self.cwnd_bytes = control.cwnd_bytes;
        self.ssthresh_bytes = control.ssthresh_bytes;
        self.saved = true;
    }
}
