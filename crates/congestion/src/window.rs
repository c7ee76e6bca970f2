//! What the window-based controls share: the initial and the smallest window, and what to go back to when a reduction
//! proves spurious.
//!
//! **Source.** RFC 6928 (initial window), RFC 5681 sections 3.1 and 4.1 (lower bounds, restart after idling), RFC 4015
//! and Linux `tcp_undo_cwnd_reduction` (undo).

use crate::control::{Congestion, Control, RecoveryExit, Timeout};

/// The initial window of RFC 6928 section 2: ten segments, but no more than 14 600 bytes or two segments, whichever is
/// more.
pub fn initial_window_bytes(mss_bytes: u64) -> u64 {
    mss_bytes.saturating_mul(10).min(mss_bytes.saturating_mul(2).max(14_600))
}

/// The segment size as a divisor: never zero.
#[inline(always)]
pub(crate) fn segment(control: &Control) -> u64 {
    control.mss_bytes.max(1)
}

/// The smallest threshold: two segments (RFC 5681 equation 4).
#[inline(always)]
pub(crate) fn two_segments(control: &Control) -> u64 {
    segment(control).saturating_mul(2)
}

/// Sets threshold and, where the transport does not do it, the window of a reduction to `reduced_bytes`. A loss leaves
/// the window to the transport's proportional rate reduction. A mark may take the window down to one segment (RFC 3168
/// section 6.1.2), the threshold not below two.
pub(crate) fn reduce(control: &mut Control, congestion: &Congestion, reduced_bytes: u64) {
    control.ssthresh_bytes = reduced_bytes.max(two_segments(control));
    if congestion.ecn {
        control.cwnd_bytes = control.cwnd_bytes.min(reduced_bytes).max(segment(control));
    }
    if congestion.persistent {
        // RFC 9002 section 7.6.2: the smallest window, two segments.
        control.cwnd_bytes = two_segments(control);
    }
}

/// The restart after idling: no more than the initial window leaves at once (RFC 5681 section 4.1).
pub(crate) fn restart(control: &mut Control) {
    control.cwnd_bytes = control.cwnd_bytes.min(initial_window_bytes(segment(control)));
}

/// A change of the segment size: no window below one segment, no threshold below two.
pub(crate) fn resize(control: &mut Control) {
    control.cwnd_bytes = control.cwnd_bytes.max(segment(control));
    control.ssthresh_bytes = control.ssthresh_bytes.max(two_segments(control));
}

/// Remembers the way back to the window at which doubling may end: three quarters of the present one (RFC 7661
/// section 4.4.1, Linux `tcp_current_ssthresh`).
pub(crate) fn keep_three_quarters(control: &mut Control) {
    let three_quarters = control.cwnd_bytes / 4 * 3;
    control.ssthresh_bytes = control.ssthresh_bytes.max(three_quarters);
}

/// Window and threshold before the last reduction, to go back to if it proves spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Undo {
    cwnd_bytes: u64,
    ssthresh_bytes: u64,
    saved: bool,
    in_recovery: bool,
}

impl Undo {
    /// A reduction begins. A mark is never spurious, and what was before it must not come back.
    pub(crate) fn on_congestion(&mut self, control: &Control, congestion: &Congestion) {
        if congestion.ecn {
            self.saved = false;
        } else {
            self.save(control);
            self.in_recovery = true;
        }
    }

    /// The timer expired. If it ended a fast recovery, what was before that recovery counts.
    pub(crate) fn on_timeout(&mut self, control: &Control, timeout: &Timeout) {
        if !timeout.repeated && !self.in_recovery {
            self.save(control);
        }
        self.in_recovery = false;
    }

    /// Recovery ends; goes back if it was for nothing, and says whether it did. That may become known only after its
    /// end.
    pub(crate) fn on_recovery_exit(&mut self, control: &mut Control, exit: &RecoveryExit) -> bool {
        let goes_back = exit.undone && self.saved;
        if goes_back {
            control.cwnd_bytes = control.cwnd_bytes.max(self.cwnd_bytes).max(segment(control));
            control.ssthresh_bytes = control.ssthresh_bytes.max(self.ssthresh_bytes);
            self.saved = false;
        }
        self.in_recovery = false;
        goes_back
    }

    fn save(&mut self, control: &Control) {
        self.cwnd_bytes = control.cwnd_bytes;
        self.ssthresh_bytes = control.ssthresh_bytes;
        self.saved = true;
    }
}
