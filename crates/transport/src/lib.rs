//! How workloads use a transport: write, read, finish, abort; events tell when it is worth trying again.
//!
//! A workload neither knows nor cares whether TCP, a QUIC stream or a real stack is behind the trait. A payload is a
//! length (models) or bytes (real programs) behind the same calls. Nothing here takes the time: a transport's host
//! asks it for output, with the time, after every call.

pub mod buffers;
pub mod endpoint;
pub mod metrics;
pub mod quic;
pub mod ranges;
pub mod tls;
pub mod tunnel;

use bytes::Bytes;
use fullpipe_units::Duration;

/// What is written and read: a count, or bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// So many bytes whose content does not matter.
    Length(u64),
    /// These bytes.
    Bytes(Bytes),
}

impl Payload {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Payload::Length(length) => *length,
            Payload::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both sides finished and everything was acknowledged.
    Finished,
    /// The peer reset the connection.
    Reset,
    /// The peer refused it.
    Refused,
    /// Retransmissions were given up.
    TimedOut,
    /// This side aborted it.
    Aborted,
}

/// What a transport tells the workload above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The connection is established.
    Connected,
    /// Space has come free in the send buffer.
    Writable,
    /// Bytes can be read in order.
    Readable,
    /// The peer will send nothing more, and all it sent can be read.
    PeerFinished,
    /// The connection is over; no event follows.
    Closed(CloseReason),
}

/// How urgent what a stream sends is, for transports that choose between streams.
///
/// Each scheduler reads what it knows: RFC 9218 urgency and `incremental`, weighted fair queueing the weight, earliest
/// deadline first the latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 (most urgent) to 7 (RFC 9218 section 4.1).
    pub urgency: u8,
    /// Whether its bytes are of use before all have come (RFC 9218 section 4.2).
    pub incremental: bool,
    /// Share beside other streams of the same urgency; at least 1.
    pub weight: u16,
    /// How long after it was written a byte is wanted; `None`: the scheduler's own default.
    pub latency: Option<Duration>,
}

impl Default for Priority {
    /// Urgency 3, not incremental (RFC 9218 section 4), weight 1, no latency of its own.
    fn default() -> Self {
        Priority { urgency: 3, incremental: false, weight: 1, latency: None }
    }
}

/// A reliable, ordered, two-way byte stream.
pub trait Stream {
    /// Bytes that [`Stream::write`] would take now.
    fn writable_bytes(&self) -> u64;

    /// Bytes written that have never been sent, where the transport tells: what is still to be written can only come after
    /// them.
    fn unsent_bytes(&self) -> Option<u64> {
        None
    }

    /// Appends to the send buffer as much as fits and says how much that was. After [`Stream::finish`] it takes
    /// nothing.
    fn write(&mut self, payload: Payload) -> u64;

    /// Makes writes of `write_bytes` bytes whose content does not matter, while a whole one fits, and `most_bytes` in all at most:
    /// the last write is what remains of them. Returns the number of bytes written.
    fn write_lengths(&mut self, write_bytes: u64, most_bytes: u64) -> u64 {
        let mut written = 0;
        while written < most_bytes {
            let next = write_bytes.min(most_bytes - written);
            if self.writable_bytes() < next {
                break;
            }
            let taken = self.write(Payload::Length(next));
            written += taken;
            if taken != next {
                break;
            }
        }
        written
    }

    /// The application makes its next write when `bytes` fit: a stream need not report [`Event::Writable`] before. It is a hint,
    /// so an earlier event is not wrong.
    fn set_writable_threshold(&mut self, _bytes: u64) {}

    /// Bytes that have arrived in order and were not read.
    fn readable_bytes(&self) -> u64;

    /// Takes at most `max_bytes` in order; `None` if there is nothing.
    fn read(&mut self, max_bytes: u64) -> Option<Payload>;

    /// Nothing more will be written: the send side closes when all is delivered.
    fn finish(&mut self);

    /// Ends the connection at once.
    fn abort(&mut self);
}
