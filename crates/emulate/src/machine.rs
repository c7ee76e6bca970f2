//! The machine as the driver of a real-time run sees it: a clock, ports, and waiting. Tests drive the same driver with a
//! machine that they make up, in which time and frames are what they say.

use bytes::Bytes;
use fullpipe_units::{Duration, Instant};
use std::io;

/// A frame from a real host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the port.
    pub port: usize,
    /// When it arrived there; never before one that the same port handed over earlier.
    pub at: Instant,
    /// The frame.
    pub bytes: Bytes,
}

/// What the driver needs of a machine.
pub trait Machine {
    /// Time since the run's begin.
    fn now(&self) -> Instant;

    /// Waits until `deadline`, or less long if frames come.
    ///
    /// # Errors
    /// The machine's.
    fn wait(&mut self, deadline: Instant) -> io::Result<()>;

    /// Appends the frames that have come, in order of arrival at each port.
    ///
    /// # Errors
    /// The machine's.
    fn receive(&mut self, arrivals: &mut Vec<Arrival>) -> io::Result<()>;

    /// Puts a frame on its way; [`Machine::flush`] sees it off.
    fn send(&mut self, port: usize, frame: Vec<u8>);

    /// Sends what was put on its way.
    ///
    /// # Errors
    /// The machine's.
    fn flush(&mut self) -> io::Result<()>;

    /// Sets the clock back, as if it had stood still for so long.
    fn hold(&mut self, by: Duration);

    /// Frames that the machine has lost on either way since the last call.
    ///
    /// # Errors
    /// The machine's.
    fn take_drops(&mut self) -> io::Result<u64>;

    /// Whether the run should end before its time: what real programs were to do is done, or one has failed.
    fn done(&self) -> bool;
}
