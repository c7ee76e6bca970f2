//! The recovery periods of QUIC: which losses and marks require a reaction, and when a recovery ends.
//!
//! **Model.** A loss or a mark begins a recovery, unless the affected packet was sent before the last recovery began
//! (`congestion_recovery_start_time`). Such an event belongs to that recovery, even if the recovery has ended. A
//! recovery ends when a packet sent after its start is acknowledged. A recovery that was undone does not count.
//! Persistent congestion always begins a recovery.
//!
//! **Source.** RFC 9002 section 7.3.2 and appendix B.6. The QUIC model and the adapter of the real stack both use it.

use fullpipe_units::Instant;

/// The recovery state of a path.
///
/// ```
/// use fullpipe_congestion::recovery::{RecoveryDecision, Recovery};
/// use fullpipe_units::{Duration, Instant};
/// let at = |ms| Instant::ZERO + Duration::from_millis(ms);
/// let mut recovery = Recovery::default();
/// // A loss of a packet that left at 0 is detected at 30 ms: a recovery begins. A packet that left at 31 ms ends it.
/// assert_eq!(recovery.on_congestion(at(30), at(0), false), RecoveryDecision::Begin { ends_another: false });
/// assert!(!recovery.is_ended_by(at(30)) && recovery.is_ended_by(at(31)));
/// recovery.end(false);
/// // A packet that left before the recovery began belongs to it, even after its end.
/// assert_eq!(recovery.on_congestion(at(60), at(29), false), RecoveryDecision::AlreadyInRecovery);
/// assert_eq!(recovery.on_congestion(at(70), at(31), false), RecoveryDecision::Begin { ends_another: false });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    since: Option<Instant>,
    answered_until: Option<Instant>,
}

/// The reaction that a congestion event requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryDecision {
    /// No reaction: the event belongs to a recovery that has already begun.
    AlreadyInRecovery,
    /// A recovery begins.
    Begin {
        /// Whether the new recovery ends an earlier recovery that is still active. `false` if persistent congestion
        /// restarts the active recovery.
        ends_another: bool,
    },
}

impl Recovery {
    /// Whether a recovery is active.
    pub fn is_active(&self) -> bool {
        self.since.is_some()
    }

    /// Handles a congestion event that is detected now. `sent_at` is the send time of the affected packet that was sent
    /// last. `persistent` states that persistent congestion was established.
    pub fn on_congestion(&mut self, now: Instant, sent_at: Instant, persistent: bool) -> RecoveryDecision {
        let known = self.answered_until.is_some_and(|until| sent_at <= until);
        if known && !persistent {
            return RecoveryDecision::AlreadyInRecovery;
        }
        let ends_another = self.since.is_some() && !known;
        self.since = Some(now);
        self.answered_until = Some(now);
        RecoveryDecision::Begin { ends_another }
    }

    /// Whether the acknowledgment of a packet sent at `sent_at` ends the current recovery.
    #[inline]
    pub fn is_ended_by(&self, sent_at: Instant) -> bool {
        self.since.is_some_and(|since| sent_at > since)
    }

    /// Ends the recovery. `undone` states that all packets declared lost had arrived.
    pub fn end(&mut self, undone: bool) {
        self.since = None;
        if undone {
            self.answered_until = None;
        }
    }
}
