//! Events of a scenario: when their conditions are met, and what they record.
//!
//! An event happens at a time that depends on the run. A change of a link must be known before it happens, for two
//! reasons: links compute transmissions ahead, and the auditor checks them against the declared schedule. A run is a
//! function of its scenario and seed, and a change has no effect on earlier events. To find the time of a change, the
//! scenario runs until that time. The run then starts again with a schedule that contains the change. In the last pass
//! all times are known, so it is an ordinary run of a scenario with schedules. Each pass must find the same times
//! again.

use crate::probes::Target;
use crate::witness::RunObserver;
use crate::world::World;
use fullpipe_network::Network;
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{Event, EventDelay};
use fullpipe_units::{Duration, Instant};

/// The shortest time from a condition to its event. It ensures that everything that happens at the time of the
/// condition precedes the event.
const SHORTEST_DELAY: Duration = Duration::from_nanos(1);

/// The state of an event: whether and when it has happened, and what it recorded.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EventOutcome {
    /// Time at which the condition was met; `None` if it was not met.
    pub met: Option<Instant>,
    /// Time at which the event happened; `None` if it did not happen before the end of the run.
    pub at: Option<Instant>,
    /// Recorded metrics with their values, in the order of the scenario. A value is `None` if the metric had no value
    /// when the event happened.
    pub values: Vec<(String, Option<f64>)>,
}

/// The state of an event during a run.
#[derive(Debug)]
struct WatchedEvent {
    /// The metric of the condition; `None` if the condition is always met.
    condition: Option<Target>,
    records: Vec<Target>,
    /// The smoothed round-trip time of the subject.
    round_trip: Option<Target>,
    /// Whether the condition must first be unmet before it can be met.
    awaits_unmet: bool,
    /// The time at which the event is due; it may be after the end of the run.
    due: Option<Instant>,
    outcome: EventOutcome,
}

/// A step of an event that a check detects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventNote {
    /// The condition of the event was met.
    Met,
    /// The event happened.
    Happened,
}

/// Checks the conditions of a run's events between the events of the simulation.
#[derive(Debug, Default)]
pub(crate) struct EventWatcher {
    events: Vec<WatchedEvent>,
}

impl EventWatcher {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let watched = |event: &Event| {
            let target = |name: &str| Target::at_any_time(scenario, event.subject?, name);
            WatchedEvent {
                condition: event.condition.as_ref().and_then(|condition| target(&condition.metric)),
                records: event.records.iter().filter_map(|name| target(name)).collect(),
                round_trip: target("srtt_s"),
                awaits_unmet: event.condition.as_ref().is_some_and(|condition| condition.entry),
                due: None,
                outcome: EventOutcome::default(),
            }
        };
        EventWatcher { events: scenario.events.iter().map(watched).collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the links whose metrics are read, which must therefore not be computed ahead.
    pub(crate) fn targets(&self) -> impl Iterator<Item = &Target> {
        self.events.iter().flat_map(|event| event.condition.iter().chain(&event.records))
    }

    /// Returns the next time after `now` at which an event is due, or at which its condition can first be met.
    pub(crate) fn next_at(&self, scenario: &Scenario, now: Instant) -> Option<Instant> {
        let times = self
            .events
            .iter()
            .zip(&scenario.events)
            .map(|(event, described)| event.due.unwrap_or_else(|| Instant::ZERO.saturating_add(described.from)));
        times.filter(|at| *at > now).min()
    }

    /// Checks all conditions, and records the metrics of events that are due. Called after the last simulation event at
    /// `now`. Returns the numbers of the events whose conditions were met or that happened.
    pub(crate) fn check(
        &mut self,
        scenario: &Scenario,
        now: Instant,
        world: &mut World,
        network: &mut Network<RunObserver>,
    ) -> Vec<(usize, EventNote)> {
        let mut notes = Vec::new();
        for index in 0..self.events.len() {
            let described = &scenario.events[index];
            if self.events[index].due.is_none() && self.is_met(index, described, now, world, network) {
                let delay = match described.delay {
                    EventDelay::Fixed(time) => Some(time),
                    EventDelay::RoundTrips(number) => {
                        let event = &self.events[index];
                        let round_trip =
                            event.round_trip.as_ref().and_then(|target| target.value_at(now, world, network));
                        round_trip.map(|seconds| Duration::from_secs_f64(seconds * number))
                    }
                };
                // The time of the event is unknown until there is a round-trip time.
                let Some(delay) = delay else { continue };
                let event = &mut self.events[index];
                event.outcome.met = Some(now);
                event.due = Some(now.saturating_add(delay.max(SHORTEST_DELAY)));
                notes.push((index, EventNote::Met));
            }
            let event = &mut self.events[index];
            if event.due == Some(now) && event.outcome.at.is_none() {
                let values = event.records.iter().map(|target| target.value_at(now, world, network));
                event.outcome.values = described.records.iter().cloned().zip(values).collect();
                event.outcome.at = Some(now);
                notes.push((index, EventNote::Happened));
            }
        }
        notes
    }

    fn is_met(
        &mut self,
        index: usize,
        described: &Event,
        now: Instant,
        world: &mut World,
        network: &mut Network<RunObserver>,
    ) -> bool {
        let has_happened = |event: usize| self.events[event].outcome.at.is_some();
        if now < Instant::ZERO.saturating_add(described.from) || !described.follows.is_none_or(has_happened) {
            return false;
        }
        let event = &mut self.events[index];
        let Some(condition) = &described.condition else { return true };
        let Some(value) = event.condition.as_ref().and_then(|target| target.value_at(now, world, network)) else {
            return false;
        };
        let accepted = condition.test.accepts(value);
        event.awaits_unmet &= accepted;
        accepted && !event.awaits_unmet
    }

    /// Returns the time of each event that is due within the run.
    pub(crate) fn due_times(&self, scenario: &Scenario) -> Vec<Option<Duration>> {
        let end = Instant::ZERO.saturating_add(scenario.duration);
        let due =
            |event: &WatchedEvent| event.due.filter(|due| *due <= end).map(|due| due.saturating_since(Instant::ZERO));
        self.events.iter().map(due).collect()
    }

    /// Returns the state of an event so far.
    pub(crate) fn outcome(&self, event: usize) -> &EventOutcome {
        &self.events[event].outcome
    }

    /// Returns the final state of each event.
    pub(crate) fn into_outcomes(self) -> Vec<EventOutcome> {
        self.events.into_iter().map(|event| event.outcome).collect()
    }
}

/// Returns whether the scenario has an event that changes the run.
pub(crate) fn has_changes(scenario: &Scenario) -> bool {
    scenario.events.iter().any(|event| event.change.is_some())
}

/// Returns the number and the time of the first change whose time was not known before this pass.
pub(crate) fn new_change(
    scenario: &Scenario,
    known: &[Option<Duration>],
    found: &[Option<Duration>],
) -> Option<(usize, Duration)> {
    let is_new =
        |event: &usize| scenario.events[*event].change.is_some() && known.get(*event).is_none_or(Option::is_none);
    let new = (0..scenario.events.len()).filter(is_new).filter_map(|event| Some((event, found[event]?)));
    new.min_by_key(|(_, at)| *at)
}
