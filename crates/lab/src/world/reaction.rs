//! How long a program takes to react: it looks at its socket some time after a datagram has come, and then deals with all that has
//! come meanwhile.
//!
//! The time is what the machine takes to wake it up and the program to do its work, from some tens of microseconds on. It may be drawn
//! anew each time: where it is always the same, or nothing, ends keep step with networks that work in a rhythm (a cell's subframes),
//! which no program does.

use fullpipe_units::{Instant, Stream};
use fullpipe_workload::Distribution;

/// What a program that has its own time to react is waiting for.
#[derive(Debug, Default)]
pub(super) struct Reaction {
    /// None: it reacts at once.
    drawn: Option<Box<(Distribution, Stream)>>,
    /// When it looks at what has come.
    due: Option<Instant>,
}

impl Reaction {
    /// A program that takes times of this distribution, in seconds.
    pub(super) fn new(seconds: &Distribution, random: Stream) -> Self {
        let at_once = matches!(seconds, Distribution::Constant { value } if *value == 0.0);
        Reaction { drawn: (!at_once).then(|| Box::new((seconds.clone(), random))), due: None }
    }

    /// Of two programs at one host, the one that takes longer on average is waited for.
    pub(super) fn slow_down(&mut self, other: Reaction) {
        let mean = |of: &Reaction| of.drawn.as_deref().map_or(0.0, |(seconds, _)| seconds.mean());
        if mean(&other) > mean(self) {
            *self = other;
        }
    }

    /// Whether it deals with a datagram as soon as that has come.
    pub(super) fn is_at_once(&self) -> bool {
        self.drawn.is_none()
    }

    /// A datagram has come. Returns when the program looks at it, if that was not known before.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Instant> {
        let (seconds, random) = self.drawn.as_deref_mut().filter(|_| self.due.is_none())?;
        let at = now.saturating_add(seconds.sample_duration(random));
        self.due = Some(at);
        Some(at)
    }

    /// It has looked at all that has come.
    pub(super) fn end(&mut self) {
        self.due = None;
    }
}
