//! The interface between a machine and the driver of a real-time run: a clock, ports, and waiting. Tests run the same
//! driver on a simulated machine, which provides the time and the frames.

use bytes::Bytes;
use fullpipe_units::{Duration, Instant};
use std::io;

/// A frame from a real host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Index of the port that received the frame.
    pub port: usize,
    /// Arrival time, which is never before that of an earlier frame at the same port.
    pub at: Instant,
    /// The frame.
    pub bytes: Bytes,
}

/// A machine on which the driver of a real-time run operates: a clock, ports, and waiting.
pub trait Machine {
    /// Returns the time since the start of the run.
    fn now(&self) -> Instant;

    /// Waits until `deadline` or until frames arrive, whichever is first.
    ///
    /// # Errors
    /// Returns the machine's error.
    fn wait(&mut self, deadline: Instant) -> io::Result<()>;

    /// Appends the received frames; the frames of each port are in order of arrival.
    ///
    /// # Errors
    /// Returns the machine's error.
    fn receive(&mut self, arrivals: &mut Vec<Arrival>) -> io::Result<()>;

    /// Queues a frame for sending by [`Machine::flush`].
    fn send(&mut self, port: usize, frame: Vec<u8>);

    /// Sends the queued frames.
    ///
    /// # Errors
    /// Returns the machine's error.
    fn flush(&mut self) -> io::Result<()>;

    /// Sets the clock back by `by`, as if it had been stopped for that long.
    fn set_clock_back(&mut self, by: Duration);

    /// Returns the number of frames that the machine has dropped in either direction since the last call.
    ///
    /// # Errors
    /// Returns the machine's error.
    fn take_drops(&mut self) -> io::Result<u64>;

    /// Returns whether the run should end early, because all real programs have finished or one has failed.
    fn is_done(&self) -> bool;
}
