//! Timers of endpoints and applications, and their events in the calendar.
//!
//! The number of an event determines its order among events at the same instant, and therefore affects the results. The
//! numbers of timers must not change. Within [`EventClass::Transport`], TCP endpoint n has the numbers 2n and 2n + 1.
//! Endpoint n of the QUIC model has 2^27 + 2n and 2^27 + 2n + 1. Within [`EventClass::Application`], application n has
//! the number n, and endpoint n of the QUIC stack has 2^27 + n (at most 2^26 of them). The programs of host n have 3 *
//! 2^26 + n.

use fullpipe_engine::{Calendar, EventClass, EventId, TimerSlot};
use fullpipe_transport::endpoint::TimerDeadlines;
use fullpipe_units::Instant;

const FIRST_OF_MODEL: u32 = 1 << 27;
const FIRST_OF_STACK: u32 = 1 << 27;
const FIRST_OF_PROGRAMS: u32 = 3 << 26;

/// A timer. Endpoints of the models have two (see [`TimerDeadlines`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// TCP endpoint.
    Tcp(u32, TimerRange),
    /// Endpoint of the QUIC model.
    QuicModel(u32, TimerRange),
    /// Application: 2n is the initiator of flow n, 2n + 1 its acceptor.
    Application(u32),
    /// Endpoint of the QUIC stack.
    QuicStack(u32),
    /// Host with programs.
    Programs(u32),
}

/// The two timers of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerRange {
    Far = 0,
    Near = 1,
}

impl Timer {
    /// Returns the event of the timer.
    #[inline(always)]
    pub(super) fn event(self) -> EventId {
        let (class, index) = match self {
            Timer::Tcp(number, reach) => (EventClass::Transport, 2 * number + reach as u32),
            Timer::QuicModel(number, reach) => (EventClass::Transport, FIRST_OF_MODEL + 2 * number + reach as u32),
            Timer::Application(number) => (EventClass::Application, number),
            Timer::QuicStack(number) => (EventClass::Application, FIRST_OF_STACK + number),
            Timer::Programs(number) => (EventClass::Application, FIRST_OF_PROGRAMS + number),
        };
        EventId::new(class, index)
    }

    /// Returns the timer of an event of the class `Transport` or `Application`.
    #[inline(always)]
    pub(super) fn of(event: EventId) -> Timer {
        let index = event.index();
        if event.class() == EventClass::Transport {
            let reach = if index.is_multiple_of(2) { TimerRange::Far } else { TimerRange::Near };
            return match index.checked_sub(FIRST_OF_MODEL) {
                Some(of_model) => Timer::QuicModel(of_model / 2, reach),
                None => Timer::Tcp(index / 2, reach),
            };
        }
        if index >= FIRST_OF_PROGRAMS {
            return Timer::Programs(index - FIRST_OF_PROGRAMS);
        }
        match index.checked_sub(FIRST_OF_STACK) {
            Some(of_stack) => Timer::QuicStack(of_stack),
            None => Timer::Application(index),
        }
    }
}

/// The two timers of an endpoint in the calendar.
#[derive(Debug, Default)]
pub(super) struct TimerPair {
    far: TimerSlot,
    near: TimerSlot,
}

impl TimerPair {
    /// Arms the timers at the endpoint's deadlines. `events` are the events of the far timer and of the near timer.
    #[inline(always)]
    pub(super) fn arm(&mut self, calendar: &mut Calendar, events: [EventId; 2], deadlines: TimerDeadlines) {
        self.far.arm(calendar, events[0], deadlines.far);
        self.near.arm(calendar, events[1], deadlines.near);
    }

    /// Arms only the near timer, because the deadline of the far timer is unchanged.
    #[inline(always)]
    pub(super) fn arm_near(&mut self, calendar: &mut Calendar, event: EventId, near: Instant) {
        self.near.arm(calendar, event, near);
    }

    /// Returns whether an event of one of the timers is the event that was armed last.
    #[inline(always)]
    pub(super) fn fired(&mut self, reach: TimerRange, now: Instant) -> bool {
        match reach {
            TimerRange::Far => self.far.on_wakeup(now),
            TimerRange::Near => self.near.on_wakeup(now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers are those of the module documentation. They order events, so records depend on them.
    #[test]
    fn timers_have_the_numbers_that_order_their_events() {
        let transport = |index| EventId::new(EventClass::Transport, index);
        let application = |index| EventId::new(EventClass::Application, index);
        for (timer, event) in [
            (Timer::Tcp(0, TimerRange::Far), transport(0)),
            (Timer::Tcp(0, TimerRange::Near), transport(1)),
            (Timer::Tcp(7, TimerRange::Near), transport(15)),
            (Timer::Tcp((1 << 26) - 1, TimerRange::Near), transport(134_217_727)),
            (Timer::QuicModel(0, TimerRange::Far), transport(134_217_728)),
            (Timer::QuicModel(3, TimerRange::Near), transport(134_217_735)),
            (Timer::Application(5), application(5)),
            (Timer::QuicStack(0), application(134_217_728)),
            (Timer::QuicStack((1 << 26) - 1), application(201_326_591)),
            (Timer::Programs(0), application(201_326_592)),
            (Timer::Programs(9), application(201_326_601)),
        ] {
            assert_eq!(timer.event(), event, "{timer:?}");
            assert_eq!(Timer::of(event), timer);
        }
    }

    #[test]
    fn each_timer_of_a_pair_fires_at_its_own_deadline() {
        let (mut calendar, mut pair) = (Calendar::new(), TimerPair::default());
        let events = [Timer::Tcp(1, TimerRange::Far).event(), Timer::Tcp(1, TimerRange::Near).event()];
        let [near, far] = [Instant::from_nanos(10), Instant::from_nanos(20)];
        pair.arm(&mut calendar, events, TimerDeadlines { far, near });
        let mut fired = Vec::new();
        while let Some((now, event)) = calendar.peek() {
            calendar.pop();
            let Timer::Tcp(1, reach) = Timer::of(event) else { panic!("another timer: {event:?}") };
            assert!(pair.fired(reach, now) && !pair.fired(reach, now), "once");
            fired.push((now, reach));
        }
        assert_eq!(fired, [(near, TimerRange::Near), (far, TimerRange::Far)]);
    }
}
