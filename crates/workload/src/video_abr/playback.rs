//! The client's buffer and its playback. Playback consumes one second of content per second; it stalls when the buffer
//! is empty.

use fullpipe_units::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Starting,
    Playing,
    /// Stalled since this time.
    Stalled(Instant),
    /// All segments have arrived: the video ends when the buffer is empty.
    Ending,
}

#[derive(Clone, Debug)]
pub(super) struct Playback {
    start_level: Duration,
    resume_level: Duration,
    level: Duration,
    /// The time to which `level` refers.
    at: Instant,
    state: State,
    /// When playback started.
    pub(super) started: Option<Instant>,
    /// Total time of completed stalls.
    pub(super) stalled: Duration,
    /// Number of stalls so far.
    pub(super) stalls: u64,
}

impl Playback {
    pub(super) fn new(start_level: Duration, resume_level: Duration) -> Self {
        Playback {
            start_level,
            resume_level,
            level: Duration::ZERO,
            at: Instant::ZERO,
            state: State::Starting,
            started: None,
            stalled: Duration::ZERO,
            stalls: 0,
        }
    }

    /// Plays until `now` and returns the buffer level.
    pub(super) fn advance(&mut self, now: Instant) -> Duration {
        let passed = now.saturating_since(self.at);
        if self.state == State::Playing && passed > self.level {
            self.state = State::Stalled(self.at.saturating_add(self.level));
            self.level = Duration::ZERO;
            self.stalls += 1;
        }
        match self.state {
            State::Playing | State::Ending => self.level = self.level.saturating_sub(passed),
            State::Starting | State::Stalled(_) => {}
        }
        self.at = now;
        self.level
    }

    /// Adds a segment. `room`: whether another segment fits at a level; `last`: whether this is the last segment.
    pub(super) fn add(&mut self, now: Instant, segment: Duration, room: impl Fn(Duration) -> bool, last: bool) {
        self.advance(now);
        self.level = self.level.saturating_add(segment);
        let enough = |level: Duration| self.level >= level || last || !room(self.level);
        match self.state {
            State::Starting if enough(self.start_level) => {
                self.started = Some(now);
                self.state = State::Playing;
            }
            State::Stalled(since) if enough(self.resume_level) => {
                self.stalled = self.stalled.saturating_add(now.saturating_since(since));
                self.state = State::Playing;
            }
            _ => {}
        }
        if last {
            self.state = State::Ending;
        }
    }

    /// Total time of stalls until `end`, including a present one.
    pub(super) fn stalled_until(&self, end: Instant) -> Duration {
        let mut then = self.clone();
        then.advance(end);
        let open = if let State::Stalled(since) = then.state { end.saturating_since(since) } else { Duration::ZERO };
        then.stalled.saturating_add(open)
    }
}
