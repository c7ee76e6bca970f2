//! The trait between applications and whatever carries their data.

use fullpipe_transport::{Event, Stream};
use fullpipe_units::Instant;
use std::fmt;

/// A stream of an application: the number that [`Io::open`] gave, or that of an accepted stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// What an application can do. Everything is at [`Io::now`].
pub trait Io {
    /// Now.
    fn now(&self) -> Instant;

    /// Asks to be woken at an instant; a later call replaces an earlier one. [`Instant::NEVER`] cancels.
    fn wake_at(&mut self, at: Instant);

    /// Opens a stream to the peer of the application's flow. It can be written to at once; data leave when the
    /// connection is established.
    fn open(&mut self) -> StreamId;

    /// One of the application's streams, or `None` if it is closed and gone.
    fn stream(&mut self, stream: StreamId) -> Option<&mut dyn Stream>;

    /// Sends a datagram of so many payload bytes to the peer of the application's flow.
    fn send_datagram(&mut self, payload_bytes: u32);
}

/// What an application has achieved; read when the run is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Payload bytes that reached this application in order.
    pub received_bytes: u64,
    /// When the last of them did.
    pub last_received: Option<Instant>,
    /// When all that was to come had come (the peer finished, or the known size was reached).
    pub completed: Option<Instant>,
}

/// An application at one host. All methods default to doing nothing.
pub trait Application: fmt::Debug + Send {
    /// The flow starts (only the side that opens).
    fn on_start(&mut self, _io: &mut dyn Io) {}

    /// The instant asked for by [`Io::wake_at`] has come.
    fn on_wake(&mut self, _io: &mut dyn Io) {}

    /// Something happened on a stream. An accepting side first hears of a stream by [`Event::Connected`].
    fn on_stream(&mut self, _stream: StreamId, _event: Event, _io: &mut dyn Io) {}

    /// A datagram came.
    fn on_datagram(&mut self, _payload_bytes: u32, _io: &mut dyn Io) {}

    /// What has been achieved.
    fn progress(&self) -> Progress {
        Progress::default()
    }
}
