//! The implementation of [`Machine`] for this Linux machine.

use super::clock::WallClock;
use super::port::Port;
use super::program::Programs;
use super::waiting;
use crate::machine::{Arrival, Machine};
use bytes::Bytes;
use fullpipe_units::{Duration, Instant};
use std::collections::VecDeque;
use std::io;

/// A Linux machine with ports to real hosts, and with the programs that run on these hosts.
#[derive(Debug)]
pub struct LinuxMachine {
    clock: WallClock,
    ports: Vec<Box<dyn Port>>,
    programs: Option<Programs>,
    /// Arrival time of the last frame of each port.
    last: Vec<Instant>,
    ready: Vec<bool>,
    outgoing: Vec<VecDeque<Vec<u8>>>,
    drops: u64,
}

impl LinuxMachine {
    /// Creates a machine with a running clock. Sets the timer slack of the calling thread to its minimum, so the caller
    /// should be the thread that drives the run.
    pub fn new(clock: WallClock, ports: Vec<Box<dyn Port>>, programs: Option<Programs>) -> Self {
        waiting::ask_for_exact_wakeups();
        let count = ports.len();
        LinuxMachine {
            clock,
            ports,
            programs,
            last: vec![Instant::ZERO; count],
            ready: vec![true; count],
            outgoing: vec![VecDeque::new(); count],
            drops: 0,
        }
    }

    /// Returns the programs, which the caller must end with [`Programs::finish`] after the run; `None` if there are
    /// none.
    pub fn into_programs(self) -> Option<Programs> {
        self.programs
    }
}

impl Machine for LinuxMachine {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn wait(&mut self, deadline: Instant) -> io::Result<()> {
        waiting::wait(&self.clock, deadline, &self.ports, &mut self.ready)
    }

    fn receive(&mut self, arrivals: &mut Vec<Arrival>) -> io::Result<()> {
        let Self { clock, ports, last, ready, .. } = self;
        for (number, port) in ports.iter_mut().enumerate() {
            if !ready.get(number).copied().unwrap_or(true) {
                continue;
            }
            let last = &mut last[number];
            let reading = clock.read();
            let received = port.receive(&mut |frame| {
                let at = reading.instant_of(frame.stamp_nanos).max(*last);
                *last = at;
                arrivals.push(Arrival { port: number, at, bytes: Bytes::copy_from_slice(frame.bytes) });
            });
            match received {
                Ok(_) => {}
                // The host has set its interface down and may set the interface up again.
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn send(&mut self, port: usize, frame: Vec<u8>) {
        if let Some(queue) = self.outgoing.get_mut(port) {
            queue.push_back(frame);
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        for (port, frames) in self.ports.iter_mut().zip(&mut self.outgoing) {
            if !frames.is_empty() {
                port.send(frames);
            }
        }
        Ok(())
    }

    fn set_clock_back(&mut self, by: Duration) {
        self.clock.set_back(by);
    }

    fn take_drops(&mut self) -> io::Result<u64> {
        let mut drops = 0;
        for port in &mut self.ports {
            let counters = port.counters()?;
            drops += counters.receive_drops + counters.send_drops;
        }
        Ok(drops - std::mem::replace(&mut self.drops, drops))
    }

    fn is_done(&self) -> bool {
        self.programs.as_ref().is_some_and(Programs::is_done)
    }
}
