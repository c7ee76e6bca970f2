//! The loop of a real-time run: what has arrived goes in, the model runs up to the clock, what is due goes out; then it
//! waits for the next event or arrival, whichever is first.
//!
//! **Time.** An arrival enters the model at the instant of its stamp, however late it was read. To be able to, the model never
//! runs further than the clock stood before arrivals were asked for: whatever was stamped before that is among them, but for
//! the microseconds between a frame's stamp and its being there. One that comes late all the same enters at the model's clock,
//! and its lateness is counted. A packet for a real host is due at the instant at which the model delivers it, and leaves as
//! soon as the clock has passed that: releases wait for no tick.
//!
//! **Stalls.** If the loop comes round much later than it meant to (the machine had other things to do, or the process was
//! stopped), that is a stall. What was due meanwhile leaves at once, so that links keep their rate; or the clock is held as if
//! the time had not passed, so that queues keep their delay.

use super::gateway::Gateway;
use crate::prepared::Prepared;
use bytes::Bytes;
use fullpipe_emulate::{Arrival, Lateness, Machine};
use fullpipe_scenario::description::AfterStall;
use fullpipe_units::{Duration, Instant};
use std::io;

/// Longest sleep: a stall is noticed by its gap even if nothing was due in it.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);

/// How often drops are asked for and the account is told.
const ACCOUNT_EVERY: Duration = Duration::from_millis(100);

/// Keeps arrivals: when each entered the model, at which port, and its bytes.
pub(crate) type Journal<'a> = dyn FnMut(Instant, usize, &Bytes) -> io::Result<()> + 'a;

/// A world in step with a machine's clock.
pub(crate) struct Driver<'a, M> {
    pub(crate) prepared: &'a mut Prepared,
    pub(crate) gateway: &'a mut Gateway,
    pub(crate) machine: &'a mut M,
    pub(crate) lateness: &'a mut Lateness,
    pub(crate) after_stall: AfterStall,
    /// Hears of every arrival, where they are to be kept.
    pub(crate) journal: Option<&'a mut Journal<'a>>,
    /// Hears the clock and the account ten times a second, and says whether to stop.
    pub(crate) each: &'a mut dyn FnMut(Instant, &Lateness) -> bool,
}

impl<M: Machine> Driver<'_, M> {
    /// Runs it to the scenario's end, or until the machine or `each` has enough. Returns how far the model has come.
    ///
    /// # Errors
    /// The machine's.
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
                self.lateness.event(now.saturating_since(at));
            }
            self.machine.receive(&mut arrivals)?;
            // Each port hands its frames over in order; a stable sort keeps that.
            arrivals.sort_by_key(|arrival: &Arrival| arrival.at);
            for arrival in arrivals.drain(..) {
                self.enter(arrival)?;
            }
            // An arrival may be stamped later than the clock was read.
            self.run_to(now.max(self.prepared.network.now()));
            self.release(&mut due)?;
            let over = now >= end || self.machine.done();
            if over || now >= told_at {
                told_at = now + ACCOUNT_EVERY;
                self.lateness.dropped(self.machine.take_drops()?);
                if (self.each)(now, self.lateness) || over {
                    return Ok(self.prepared.network.now());
                }
            }
            self.lateness.worked(self.machine.now().saturating_since(now));
            let wake = self.next_at().unwrap_or(end).min(end).min(now + LONGEST_SLEEP);
            self.machine.wait(wake)?;
            expected = wake.max(now);
        }
    }

    fn end(&self) -> Instant {
        Instant::ZERO.saturating_add(self.prepared.scenario.duration)
    }

    /// Reads the clock, which should show no more than `expected`.
    fn begin_round(&mut self, expected: Instant) -> Instant {
        let now = self.machine.now();
        let gap = now.saturating_since(expected);
        if self.lateness.gap(gap) && self.after_stall == AfterStall::Pause {
            self.machine.hold(gap);
            return self.machine.now();
        }
        now
    }

    /// When something is due.
    fn next_at(&self) -> Option<Instant> {
        let event = self.prepared.network.calendar.next().map(|(at, _)| at);
        event.into_iter().chain(self.prepared.probes.next_at()).min()
    }

    /// Lets everything happen up to an instant, and the clock go on to it.
    fn run_to(&mut self, to: Instant) {
        let to = to.min(self.end());
        while let Some(sample_at) = self.prepared.probes.next_at().filter(|at| *at <= to) {
            self.work_off(sample_at);
            let Prepared { world, network, probes, .. } = &mut *self.prepared;
            probes.sample(sample_at, world, network);
        }
        self.work_off(to);
    }

    /// Works off all events up to an instant, and notes of each subframe when that was: instant by instant, since an event may
    /// make work for a subframe of which nobody knew.
    fn work_off(&mut self, to: Instant) {
        let end = self.end();
        while !self.prepared.scenario.access.is_empty()
            && let Some((at, _)) = self.prepared.network.calendar.next().filter(|(at, _)| *at <= to)
        {
            let begins = self.next_subframe().filter(|begins| *begins <= at);
            let Prepared { world, network, .. } = &mut *self.prepared;
            network.run(world, at, end);
            begins.into_iter().for_each(|begins| self.lateness.subframe(self.machine.now().saturating_since(begins)));
        }
        let Prepared { world, network, .. } = &mut *self.prepared;
        network.run(world, to, end);
        network.advance(to);
    }

    /// When the next subframe begins in which an access network has something to do.
    fn next_subframe(&self) -> Option<Instant> {
        let Prepared { network, scenario, .. } = &*self.prepared;
        (0..scenario.access.len()).map(|number| network.medium(number as u16).next()).filter(|at| !at.is_never()).min()
    }

    fn enter(&mut self, arrival: Arrival) -> io::Result<()> {
        let clock = self.prepared.network.now();
        if arrival.at.max(clock) >= self.end() {
            return Ok(());
        }
        self.lateness.arrival(clock.saturating_since(arrival.at));
        let at = arrival.at.max(clock);
        self.run_to(at);
        if let Some(journal) = &mut self.journal {
            journal(at, arrival.port, &arrival.bytes)?;
        }
        let Prepared { world, network, .. } = &mut *self.prepared;
        if let Some((port, frame)) = self.gateway.enter(world, network, arrival) {
            self.machine.send(port, frame);
        }
        Ok(())
    }

    /// Sends off what the model has delivered to real hosts. `due` is room for when that was.
    fn release(&mut self, due: &mut Vec<Instant>) -> io::Result<()> {
        for delivery in self.prepared.world.delivered() {
            self.machine.send(delivery.port, delivery.frame);
            due.push(delivery.at);
        }
        self.machine.flush()?;
        if !due.is_empty() {
            let sent = self.machine.now();
            due.drain(..).for_each(|due| self.lateness.packet(sent.saturating_since(due)));
        }
        Ok(())
    }
}
