//! Acknowledgment of MPDUs between two nodes in one access category: the sender's window, retransmissions, and the
//! receiver's reorder buffer (IEEE 802.11-2020 clauses 10.3.2.11 and 10.25).
//!
//! The sender may have MPDUs with sequence numbers below WinStart + window in transit, where WinStart is the oldest MPDU
//! that is not acknowledged. Retransmissions precede new MPDUs, in order. A lost MPDU therefore stalls a sender after 63
//! newer ones. The receiver delivers in order and discards duplicates. A window of 1 is the normal acknowledgment.
//!
//! Both ends are one object, since both are in the model. When the sender gives up an MPDU, it moves the window and
//! notifies the receiver with a BlockAckReq. This frame takes no air time here, and the receiver delivers the MPDUs that
//! waited for the one that was given up at the end of the same exchange.

use fullpipe_units::Instant;
use std::collections::VecDeque;

/// A packet in a queue or in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mpdu {
    /// The caller's identifier of the packet.
    pub token: u64,
    /// When the packet was offered.
    pub offered: Instant,
    /// When its first transmission began; [`Instant::NEVER`] before.
    pub started: Instant,
    /// Size of the IP packet in bytes.
    pub ip_bytes: u32,
    /// Number of transmissions.
    pub attempts: u16,
    /// Whether a queue discipline has set CE.
    pub marked: bool,
    received: bool,
    done: bool,
}

impl Mpdu {
    /// Returns a packet that has not been transmitted.
    pub fn new(token: u64, ip_bytes: u32, offered: Instant) -> Self {
        Mpdu {
            token,
            offered,
            started: Instant::NEVER,
            ip_bytes,
            attempts: 0,
            marked: false,
            received: false,
            done: false,
        }
    }

    /// Returns the packet with the CE mark of its queue.
    pub fn with_mark(self, marked: bool) -> Self {
        Mpdu { marked, ..self }
    }
}

/// What happens to an MPDU at the end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MpduOutcome {
    /// The receiver delivers it.
    Delivered(Mpdu),
    /// The sender gives it up, and the receiver does not have it.
    GivenUp(Mpdu),
}

/// The window of a sender and the reorder buffer of its receiver.
///
/// ```
/// use fullpipe_units::Instant;
/// use fullpipe_wifi::block_ack::{Mpdu, MpduOutcome, Session};
/// let mut session = Session::new(64, 7);
/// for token in 0..3 {
///     session.push(Mpdu::new(token, 1500, Instant::ZERO));
/// }
/// let mut delivered = Vec::new();
/// // The first of three MPDUs is lost: the receiver holds the others back.
/// session.complete(&[0, 1, 2], true, |index, _| index > 0, |outcome| delivered.push(outcome));
/// assert_eq!((session.window_start(), delivered.len()), (0, 0));
/// session.complete(&[0], true, |_, _| true, |outcome| delivered.push(outcome));
/// assert_eq!((session.window_start(), delivered.len()), (3, 3));
/// ```
#[derive(Debug)]
pub struct Session {
    /// MPDUs from WinStart on. `delivered` of them have left the reorder buffer.
    window: VecDeque<Mpdu>,
    delivered: usize,
    start: u64,
    size: u32,
    retry_limit: u16,
    /// Number of MPDUs in the window that the sender must still transmit.
    pending: u32,
}

impl Session {
    /// Returns a session with this window in MPDUs, whose sender gives up an MPDU after `retry_limit` transmissions.
    pub fn new(window: u32, retry_limit: u16) -> Self {
        Session {
            window: VecDeque::new(),
            delivered: 0,
            start: 0,
            size: window.max(1),
            retry_limit: retry_limit.max(1),
            pending: 0,
        }
    }

    /// Returns WinStart: the sequence number of the oldest MPDU that is not acknowledged.
    pub fn window_start(&self) -> u64 {
        self.start
    }

    /// Returns how many more MPDUs the window permits.
    pub fn room(&self) -> u32 {
        self.size - self.window.len() as u32
    }

    /// Returns the number of MPDUs in the window that must be transmitted again, or for the first time.
    pub fn pending(&self) -> u32 {
        self.pending
    }

    /// Returns the index of the next MPDU to add, relative to WinStart.
    pub fn next_index(&self) -> u32 {
        self.window.len() as u32
    }

    /// Returns the MPDUs to transmit that are in the window, with their index relative to WinStart.
    pub fn to_send(&self) -> impl Iterator<Item = (u32, &Mpdu)> {
        (0..).zip(&self.window).filter(|(_, mpdu)| !mpdu.done)
    }

    /// Returns whether none of these MPDUs, in ascending order of their indices, was transmitted before. MPDUs are
    /// transmitted in order, so the first one decides.
    pub fn is_new(&self, indices: &[u32]) -> bool {
        indices.first().is_none_or(|first| self.window[*first as usize].attempts == 0)
    }

    /// Returns the MPDU with an index relative to WinStart.
    pub fn mpdu(&self, index: u32) -> &Mpdu {
        &self.window[index as usize]
    }

    /// Adds a new MPDU at the end of the window.
    pub fn push(&mut self, mpdu: Mpdu) {
        debug_assert!(self.room() > 0, "the window must have room");
        self.window.push_back(mpdu);
        self.pending += 1;
    }

    /// Processes a transmission of the MPDUs with these indices. `received` states whether the receiver has received an
    /// MPDU. The sender learns it only if the response arrives (`acknowledged`). Without a response, all MPDUs count as
    /// failed. Returns how many of the MPDUs the sender considers received.
    pub fn complete(
        &mut self,
        indices: &[u32],
        acknowledged: bool,
        mut received: impl FnMut(u32, &Mpdu) -> bool,
        mut report: impl FnMut(MpduOutcome),
    ) -> u32 {
        let mut successes = 0;
        for &index in indices {
            let mpdu = &mut self.window[index as usize];
            mpdu.attempts += 1;
            let arrived = received(index, mpdu);
            mpdu.received |= arrived;
            if arrived && acknowledged {
                mpdu.done = true;
                successes += 1;
                self.pending -= 1;
            } else if mpdu.attempts >= self.retry_limit {
                mpdu.done = true;
                self.pending -= 1;
                if !mpdu.received {
                    report(MpduOutcome::GivenUp(*mpdu));
                }
            }
        }
        self.release(report);
        successes
    }

    /// The sender gives up the oldest MPDU that it must transmit, for example after internal collisions.
    pub fn give_up_first(&mut self, mut report: impl FnMut(MpduOutcome)) {
        let Some(mpdu) = self.window.iter_mut().find(|mpdu| !mpdu.done) else { return };
        mpdu.done = true;
        self.pending -= 1;
        if !mpdu.received {
            report(MpduOutcome::GivenUp(*mpdu));
        }
        self.release(report);
    }

    /// Delivers in order, and moves the window.
    fn release(&mut self, mut report: impl FnMut(MpduOutcome)) {
        while let Some(mpdu) = self.window.get(self.delivered)
            && (mpdu.received || mpdu.done)
        {
            if mpdu.received {
                report(MpduOutcome::Delivered(*mpdu));
            }
            self.delivered += 1;
        }
        let acknowledged = self.window.iter().take_while(|mpdu| mpdu.done).count();
        self.window.drain(..acknowledged);
        self.start += acknowledged as u64;
        self.delivered -= acknowledged;
    }

    /// Records the beginning of a transmission of these MPDUs.
    pub fn start(&mut self, indices: &[u32], now: Instant) {
        for &index in indices {
            let mpdu = &mut self.window[index as usize];
            mpdu.started = mpdu.started.min(now);
        }
    }
}
