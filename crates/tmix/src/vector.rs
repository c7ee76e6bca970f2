//! A connection vector: the data that the two ends of one TCP connection of a trace sent, without the effects of the
//! network.
//!
//! The body has the form of the alternate format: a list of application data units (ADUs), each with its sender and one
//! wait. In a *sequential* connection the sides take turns. A side sends its next unit after one of two waits:
//! `receive_wait` after it has received all of the peer's preceding unit, or `send_wait` after it has sent its own. The
//! first unit is sent when the connection is established. In a *concurrent* connection each side sends its units
//! independently of the other, `send_wait` after its preceding unit. A unit of size 0 closes its side.
//!
//! Source: Weigle et al., "Tmix: A Tool for Generating Realistic TCP Application Workloads in ns-2", CCR 36(3), 2006.

use fullpipe_units::Duration;

/// The two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The end that opens the connection.
    Initiator,
    /// The end that accepts the connection.
    Acceptor,
}

impl Side {
    /// Returns the other end.
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
    /// The value of the initiator.
    pub initiator: T,
    /// The value of the acceptor.
    pub acceptor: T,
}

impl<T> PerSide<T> {
    /// Returns the value of one end.
    pub const fn get(&self, side: Side) -> &T {
        match side {
            Side::Initiator => &self.initiator,
            Side::Acceptor => &self.acceptor,
        }
    }

    /// Returns a mutable reference to the value of one end.
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
    /// The sender.
    pub side: Side,
    /// Wait after the side's own preceding unit. The wait of the first unit of a concurrent connection begins when the
    /// connection is established.
    pub send_wait: Duration,
    /// Wait after all of the peer's preceding unit has arrived; 0 in a concurrent connection.
    pub receive_wait: Duration,
    /// Size in bytes; 0 closes this side.
    pub size_bytes: u64,
}

impl Adu {
    /// Whether this unit closes its side.
    pub const fn is_close(&self) -> bool {
        self.size_bytes == 0
    }
}

/// Whether a connection is sequential or concurrent, with the counts that the trace declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// The sides take turns: the units of both sides have one order.
    Sequential {
        /// Number of exchanges. An exchange has at most one unit of the initiator, then at most one of the acceptor.
        epochs: u64,
    },
    /// Each side sends independently.
    Concurrent {
        /// Units of each side, without closes.
        adus: PerSide<u64>,
    },
}

/// One connection of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionVector {
    /// Time at which the connection opens, since the start of the trace or, once scheduled, since the start of the run.
    pub start: Duration,
    /// Sequential or concurrent.
    pub kind: ConnectionKind,
    /// Two numbers that the author of the trace assigned; the second identifies the connection.
    pub ids: [u64; 2],
    /// Maximum segment size of each end in bytes; `None` if the trace does not state it.
    pub mss_bytes: Option<PerSide<u32>>,
    /// Largest receive window of each end in bytes; `None` if the trace does not state it.
    pub window_bytes: Option<PerSide<u64>>,
    /// Smallest measured round-trip time; `None` if the trace does not state it.
    pub rtt: Option<Duration>,
    /// Fraction of packets lost in each direction, by sender; `None` if the trace does not state it.
    pub loss: Option<PerSide<f64>>,
    /// Units and closes. The body ends with one close (sequential) or with a close of each side (concurrent).
    pub body: Box<[Adu]>,
}

impl ConnectionVector {
    /// Whether the connection is sequential.
    pub const fn is_sequential(&self) -> bool {
        matches!(self.kind, ConnectionKind::Sequential { .. })
    }

    /// The number of bytes that one side sends.
    pub fn bytes(&self, side: Side) -> u64 {
        self.body.iter().filter(|adu| adu.side == side).map(|adu| adu.size_bytes).sum()
    }

    /// Counts the exchanges of a body. A unit that cannot continue the current exchange begins a new one.
    pub fn count_epochs(body: &[Adu]) -> u64 {
        let mut last = None;
        let mut epochs = 0;
        for adu in body.iter().filter(|adu| !adu.is_close()) {
            // Within an exchange, only the acceptor's unit can follow, after the initiator's.
            if !(last == Some(Side::Initiator) && adu.side == Side::Acceptor) {
                epochs += 1;
            }
            last = Some(adu.side);
        }
        epochs
    }
}
