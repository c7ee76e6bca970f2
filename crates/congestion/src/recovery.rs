//! QUIC's recovery periods: which losses and marks call for an answer, and when the answer is over.
//!
//! **Model.** A loss or a mark begins a recovery, unless the packet that shows it left before the last recovery began: then it
//! belongs to that one, whether that is over or not (congestion_recovery_start_time). A recovery ends with the first packet
//! acknowledged that left after its beginning. One that was for nothing has answered nothing. Persistent congestion is
//! answered in any case.
//!
//! **Source.** RFC 9002 section 7.3.2 and appendix B.6. The QUIC model and the real stack's adapter keep it alike.

use fullpipe_units::Instant;

/// The recovery of a path.
///
/// ```
/// use fullpipe_congestion::recovery::{Answer, Recovery};
/// use fullpipe_units::{Duration, Instant};
/// let at = |ms| Instant::ZERO + Duration::from_millis(ms);
/// let mut recovery = Recovery::default();
/// // Found at 30 ms, of a packet that left at 0: a recovery begins, and ends with what left at 31 ms.
/// assert_eq!(recovery.on_congestion(at(30), at(0), false), Answer::Begin { ends_another: false });
/// assert!(!recovery.is_ended_by(at(30)) && recovery.is_ended_by(at(31)));
/// recovery.leave(false);
/// // What left before its beginning belongs to it also after its end.
/// assert_eq!(recovery.on_congestion(at(60), at(29), false), Answer::Known);
/// assert_eq!(recovery.on_congestion(at(70), at(31), false), Answer::Begin { ends_another: false });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    since: Option<Instant>,
    answered_until: Option<Instant>,
}

/// What a congestion event calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: it belongs to a recovery that has begun.
    Known,
    /// A recovery begins.
    Begin {
        /// Another one ends with that.
        ends_another: bool,
    },
}

impl Recovery {
    /// Whether a recovery is going on.
    pub fn is_on(&self) -> bool {
        self.since.is_some()
    }

    /// A congestion event is found now, of packets of which the last left at `sent_at`.
    pub fn on_congestion(&mut self, now: Instant, sent_at: Instant, persistent: bool) -> Answer {
        let known = self.answered_until.is_some_and(|until| sent_at <= until);
        if known && !persistent {
            return Answer::Known;
        }
        let ends_another = self.since.is_some() && !known;
        self.since = Some(now);
        self.answered_until = Some(now);
        Answer::Begin { ends_another }
    }

    /// Whether the acknowledgement of a packet that left then ends the present recovery.
    #[inline]
    pub fn is_ended_by(&self, sent_at: Instant) -> bool {
        self.since.is_some_and(|since| sent_at > since)
    }

    /// The recovery is over; `undone`: its losses had all arrived.
    pub fn leave(&mut self, undone: bool) {
        self.since = None;
        if undone {
            self.answered_until = None;
        }
    }
}
