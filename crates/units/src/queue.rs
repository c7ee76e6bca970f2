//! How much a queue holds, as scenarios state it.

use crate::Duration;

/// How much a drop-tail queue holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets.
    Packets(u32),
    /// So many bytes on the wire.
    Bytes(u64),
    /// What the link transmits in this time (bytes = rate x time / 8).
    Time(Duration),
    /// No limit.
    Unlimited,
}
