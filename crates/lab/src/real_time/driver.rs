//! The loop of a real-time run. It passes arrivals to the model, runs the model up to the clock time, and sends due
//! packets. It then waits for the next event or arrival.
//!
//! **Time.** An arrival enters the model at the time of its timestamp, even if it was read later. The model therefore
//! never runs beyond the clock time at which arrivals were last read. The arrivals read until then include all earlier
//! timestamps, except during the microseconds between a frame's timestamp and its availability. A frame that is
//! nevertheless late enters at the model's clock, and its lateness is counted. A packet for a real host is due when the
//! model delivers it. It is sent as soon as the clock has passed that time, without a fixed tick.
//!
//! **Stalls.** A stall is an iteration that starts much later than planned, because the machine was busy or the process
//! was stopped. Overdue packets are then sent immediately, so that links keep their rate. Alternatively, the clock is
//! set back by the stall, so that queues keep their delay.

use super::gateway::Gateway;
use crate::prepared::PreparedRun;
use bytes::Bytes;
use fullpipe_emulate::{Arrival, Lateness, Machine};
use fullpipe_scenario::description::StallPolicy;
use fullpipe_units::{Duration, Instant};
use std::io;

/// Maximum sleep, so that a stall is detected even if nothing was due.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);

/// Interval between reads of the drop counters, and between progress reports.
const ACCOUNT_EVERY: Duration = Duration::from_millis(100);

/// Records arrivals: the time at which each arrival entered the model, its port, and its bytes.
pub(crate) type ArrivalSink<'a> = dyn FnMut(Instant, usize, &Bytes) -> io::Result<()> + 'a;

/// A world that runs in step with the machine's clock.
pub(crate) struct Driver<'a, M> {
    pub(crate) prepared: &'a mut PreparedRun,
    pub(crate) gateway: &'a mut Gateway,
    pub(crate) machine: &'a mut M,
    pub(crate) lateness: &'a mut Lateness,
    pub(crate) after_stall: StallPolicy,
    /// Receives every arrival, if arrivals are recorded.
    pub(crate) journal: Option<&'a mut ArrivalSink<'a>>,
    /// Called ten times per second with the clock and the lateness; returns true to stop the run.
    pub(crate) each: &'a mut dyn FnMut(Instant, &Lateness) -> bool,
}

impl<M: Machine> Driver<'_, M> {
    /// Runs the scenario to its end, or until the machine or `each` stops it. Returns the time that the model reached.
    ///
    /// # Errors
    /// Errors of the machine.
    pub(crate) fn run(mut self) -> io::Result<Instant> {
        let end = self.end();
        let mut arrivals = Vec::new();
        let mut due = Vec::new();
        let mut expected = self.machine.now();
        let mut told_at = Instant::ZERO;
        self.prepared.world.start(&mut self.prepared.network);
        loop {
            let now = self.begin_round(expected);
            if let Some(at) = self.next_at().filter(|at| *at <= now) {
                self.lateness.record_event(now.saturating_since(at));
            }
            self.machine.receive(&mut arrivals)?;
            // Each port returns its frames in order; a stable sort preserves that order.
            arrivals.sort_by_key(|arrival: &Arrival| arrival.at);
            for arrival in arrivals.drain(..) {
                self.enter(arrival)?;
            }
            // An arrival's timestamp may be later than the clock reading.
            self.run_to(now.max(self.prepared.network.now()));
            self.release(&mut due)?;
            let over = now >= end || self.machine.is_done();
            if over || now >= told_at {
                told_at = now + ACCOUNT_EVERY;
                self.lateness.add_drops(self.machine.take_drops()?);
                if (self.each)(now, self.lateness) || over {
                    return Ok(self.prepared.network.now());
                }
            }
            self.lateness.add_busy_time(self.machine.now().saturating_since(now));
            let wake = self.next_at().unwrap_or(end).min(end).min(now + LONGEST_SLEEP);
            self.machine.wait(wake)?;
            expected = wake.max(now);
        }
    }

    fn end(&self) -> Instant {
        Instant::ZERO.saturating_add(self.prepared.scenario.duration)
    }

    /// Reads the clock, which should be at most `expected`; a later reading is a stall.
    fn begin_round(&mut self, expected: Instant) -> Instant {
        let now = self.machine.now();
        let gap = now.saturating_since(expected);
        if self.lateness.record_gap(gap) && self.after_stall == StallPolicy::Pause {
            self.machine.set_clock_back(gap);
            return self.machine.now();
        }
        now
    }

    /// Returns the time of the next due event.
    fn next_at(&self) -> Option<Instant> {
        let event = self.prepared.network.calendar.peek().map(|(at, _)| at);
        event.into_iter().chain(self.prepared.probes.next_at()).min()
    }

    /// Executes all events up to a time, and advances the clock to it.
    fn run_to(&mut self, to: Instant) {
        let to = to.min(self.end());
        while let Some(sample_at) = self.prepared.probes.next_at().filter(|at| *at <= to) {
            self.work_off(sample_at);
            let PreparedRun { world, network, probes, .. } = &mut *self.prepared;
            probes.sample(sample_at, world, network);
        }
        self.work_off(to);
    }

    /// Executes all events up to a time, and records the execution time of each subframe. It executes one event time
    /// after another, because an event may create work in a new subframe.
    fn work_off(&mut self, to: Instant) {
        let end = self.end();
        while !self.prepared.scenario.access.is_empty()
            && let Some((at, _)) = self.prepared.network.calendar.peek().filter(|(at, _)| *at <= to)
        {
            let begins = self.next_subframe().filter(|begins| *begins <= at);
            let PreparedRun { world, network, .. } = &mut *self.prepared;
            network.run(world, at, end);
            begins
                .into_iter()
                .for_each(|begins| self.lateness.record_subframe(self.machine.now().saturating_since(begins)));
        }
        let PreparedRun { world, network, .. } = &mut *self.prepared;
        network.run(world, to, end);
        network.advance(to);
    }

    /// Returns the start of the next subframe in which an access network has work.
    fn next_subframe(&self) -> Option<Instant> {
        let PreparedRun { network, scenario, .. } = &*self.prepared;
        (0..scenario.access.len())
            .map(|number| network.medium(number as u16).next_wakeup())
            .filter(|at| !at.is_never())
            .min()
    }

    fn enter(&mut self, arrival: Arrival) -> io::Result<()> {
        let clock = self.prepared.network.now();
        if arrival.at.max(clock) >= self.end() {
            return Ok(());
        }
        self.lateness.record_arrival(clock.saturating_since(arrival.at));
        let at = arrival.at.max(clock);
        self.run_to(at);
        if let Some(journal) = &mut self.journal {
            journal(at, arrival.port, &arrival.bytes)?;
        }
        let PreparedRun { world, network, .. } = &mut *self.prepared;
        if let Some((port, frame)) = self.gateway.enter(world, network, arrival) {
            self.machine.send(port, frame);
        }
        Ok(())
    }

    /// Sends packets that the model has delivered to real hosts. `due` is a buffer for their due times.
    fn release(&mut self, due: &mut Vec<Instant>) -> io::Result<()> {
        for delivery in self.prepared.world.delivered() {
            self.machine.send(delivery.port, delivery.frame);
            due.push(delivery.at);
        }
        self.machine.flush()?;
        if !due.is_empty() {
            let sent = self.machine.now();
            due.drain(..).for_each(|due| self.lateness.record_packet(sent.saturating_since(due)));
        }
        Ok(())
    }
}
