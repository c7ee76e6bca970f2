//! The interface between workloads and transports: write, read, finish, abort, and events that indicate when to try
//! again.
//!
//! A workload is independent of the transport behind the trait: TCP, a QUIC stream, or a real stack. The same calls
//! accept a payload as a length (models) or as bytes (real programs). No call has a time argument. After every call,
//! the host of the transport polls the transport for output and passes the time.

pub mod buffers;
pub mod endpoint;
pub mod metrics;
pub mod quic;
pub mod ranges;
pub mod tls;
pub mod tunnel;

use bytes::Bytes;
use fullpipe_units::Duration;

/// Data that is written or read: a length, or bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A number of bytes without specified content.
    Length(u64),
    /// Payload bytes with content.
    Bytes(Bytes),
}

impl Payload {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Payload::Length(length) => *length,
            Payload::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// Returns whether the length is zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The reason why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Both sides finished, and everything was acknowledged.
    Finished,
    /// The peer reset the connection.
    Reset,
    /// The peer refused the connection.
    Refused,
    /// A timer ended the connection, for example after the maximum number of retransmissions.
    TimedOut,
    /// This side aborted the connection.
    Aborted,
}

/// An event that a transport reports to its workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportEvent {
    /// The connection is established.
    Connected,
    /// The send buffer has free space again.
    Writable,
    /// Bytes can be read in order.
    Readable,
    /// The peer has finished sending, and all its data can be read.
    PeerFinished,
    /// The connection is closed; no event follows.
    Closed(CloseReason),
}

/// The priority of the data that a stream sends, for transports that schedule several streams.
///
/// Each scheduler uses some of the fields: RFC 9218 uses `urgency` and `incremental`, weighted fair queueing uses
/// `weight`, and earliest deadline first uses `latency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 (most urgent) to 7 (RFC 9218 section 4.1).
    pub urgency: u8,
    /// Whether the peer can process the data incrementally, before all of it has arrived (RFC 9218 section 4.2).
    pub incremental: bool,
    /// Weight relative to other streams of the same urgency; at least 1.
    pub weight: u16,
    /// Latency target of each byte, measured from the write; `None`: the default of the scheduler.
    pub latency: Option<Duration>,
}

impl Default for Priority {
    /// Urgency 3, not incremental (RFC 9218 section 4), weight 1, no latency target.
    fn default() -> Self {
        Priority { urgency: 3, incremental: false, weight: 1, latency: None }
    }
}

/// A reliable, ordered, bidirectional byte stream.
pub trait Stream {
    /// Returns the number of bytes that [`Stream::write`] would accept now.
    fn writable_bytes(&self) -> u64;

    /// Returns the number of written bytes that have never been sent; `None` if the transport does not report it. Later
    /// writes are sent after them.
    fn unsent_bytes(&self) -> Option<u64> {
        None
    }

    /// Appends as much of `payload` to the send buffer as fits, and returns the number of bytes appended. After
    /// [`Stream::finish`], the stream accepts no data.
    fn write(&mut self, payload: Payload) -> u64;

    /// Repeatedly writes `write_bytes` bytes without content while a whole write fits, up to `most_bytes` in total. The
    /// last write can be shorter. Returns the number of bytes written.
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

    /// Sets the free space that the application needs for its next write. The stream need not report
    /// [`TransportEvent::Writable`] before `bytes` fit. The threshold is a hint, so an earlier event is allowed.
    fn set_writable_threshold(&mut self, _bytes: u64) {}

    /// Returns the number of bytes that have arrived in order and have not been read.
    fn readable_bytes(&self) -> u64;

    /// Reads at most `max_bytes` in order; `None` if nothing can be read.
    fn read(&mut self, max_bytes: u64) -> Option<Payload>;

    /// Closes the sending direction after all written data. No write may follow this call.
    fn finish(&mut self);

    /// Ends the connection immediately.
    fn abort(&mut self);
}
