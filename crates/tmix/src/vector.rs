//! A connection vector: what one TCP connection of a trace had to send, freed of what the network did to it.
//!
//! The body is kept in one form, that of the alternate format: a list of application data units (ADUs), each with the
//! side that sends it and one wait. In a *sequential* connection the sides take turns: a side sends its next unit
//! `receive_wait` after it has fully received the peer's preceding one, or `send_wait` after it has finished its own
//! preceding one; the first unit waits for nothing but the connection. In a *concurrent* connection each side sends its
//! own units independently of the other, `send_wait` after the preceding one. A unit of size 0 closes that side.
//!
//! Source: Weigle et al., "Tmix: A Tool for Generating Realistic TCP Application Workloads in ns-2", CCR 36(3), 2006.

use fullpipe_units::Duration;

/// The end that opens a connection, and the end that is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The end that opens the connection.
    Initiator,
    /// The end that is called.
    Acceptor,
}

impl Side {
    /// The other end.
    pub const fn other(self) -> Side {
        match self {
            Side::Initiator => Side::Acceptor,
            Side::Acceptor => Side::Initiator,
        }
    }
}

/// A value for each end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerSide<T> {
    /// That of the initiator.
    pub initiator: T,
    /// That of the acceptor.
    pub acceptor: T,
}

impl<T> PerSide<T> {
    /// The value of one end.
    pub const fn get(&self, side: Side) -> &T {
        match side {
            Side::Initiator => &self.initiator,
            Side::Acceptor => &self.acceptor,
        }
    }

    /// The value of one end, to change.
    pub const fn get_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Initiator => &mut self.initiator,
            Side::Acceptor => &mut self.acceptor,
        }
    }
}

/// One application data unit, or a close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adu {
    /// Who sends it.
    pub side: Side,
    /// Wait after this side's own preceding unit (in a concurrent connection, for its first: after the set-up).
    pub send_wait: Duration,
    /// Wait after the peer's preceding unit has fully arrived; 0 in a concurrent connection.
    pub receive_wait: Duration,
    /// Bytes; 0 closes this side.
    pub size_bytes: u64,
}

impl Adu {
    /// Whether this closes its side.
    pub const fn is_close(&self) -> bool {
        self.size_bytes == 0
    }
}

/// Whether the sides take turns, with the counts that the trace declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The sides take turns.
    Sequential {
        /// Exchanges: at most one unit of the initiator, then at most one of the acceptor.
        epochs: u64,
    },
    /// Each side sends by itself.
    Concurrent {
        /// Units of each side, closes not counted.
        adus: PerSide<u64>,
    },
}

/// One connection of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionVector {
    /// When it is opened, since the start of the trace (of the run, once scheduled).
    pub start: Duration,
    /// Sequential or concurrent.
    pub kind: Kind,
    /// Two numbers of whoever made the trace; the second names the connection.
    pub ids: [u64; 2],
    /// Maximum segment size of each end in bytes, where the trace has it.
    pub mss_bytes: Option<PerSide<u32>>,
    /// Largest receive window of each end in bytes, where the trace has it.
    pub window_bytes: Option<PerSide<u64>>,
    /// Smallest round-trip time that was seen, where the trace has it.
    pub rtt: Option<Duration>,
    /// Fraction of packets lost of what the initiator and what the acceptor sent, where the trace has it.
    pub loss: Option<PerSide<f64>>,
    /// Units and closes. Ends with the close (sequential), or with those of initiator and acceptor (concurrent).
    pub body: Box<[Adu]>,
}

impl ConnectionVector {
    /// Whether the sides take turns.
    pub const fn is_sequential(&self) -> bool {
        matches!(self.kind, Kind::Sequential { .. })
    }

    /// Bytes that one side sends.
    pub fn bytes(&self, side: Side) -> u64 {
        self.body.iter().filter(|adu| adu.side == side).map(|adu| adu.size_bytes).sum()
    }

    /// Exchanges of a body: a new one begins where a unit has no place after the present one's.
    pub fn count_epochs(body: &[Adu]) -> u64 {
        let mut last = None;
        let mut epochs = 0;
        for adu in body.iter().filter(|adu| !adu.is_close()) {
            // Within an exchange only "initiator, then acceptor" goes on.
            if !(last == Some(Side::Initiator) && adu.side == Side::Acceptor) {
                epochs += 1;
            }
            last = Some(adu.side);
        }
        epochs
    }
}
