//! Changes of addresses: connection IDs, path validation, and the reaction of a server to a migration of its client
//! (RFC 9000 sections 5.1, 8.2 and 9).
//!
//! **Model.** A path is a number that identifies the client address from which a datagram arrived at the server. The
//! server migrates to another path when the newest packet arrives on it and is not only a probe. It then sends a
//! PATH_CHALLENGE. Until the response arrives, it sends at most three times the bytes received on the path. The
//! capacity of the new path is unknown, so congestion control and round-trip time are reset. Without a response within
//! three probe timeouts, the server returns to the last validated address. Clients respond to challenges; they do not
//! initiate migrations.

use crate::Connection;
use crate::connection::{TransportError, unusual};
use crate::output::SMALLEST_DATAGRAM;
use crate::rtt::RttEstimator;
use crate::space::FrameRecord;
use fullpipe_units::Instant;
use fullpipe_wire::{QuicFrame, QuicPacket};
use std::collections::{BTreeSet, VecDeque};

/// A path that is being validated.
#[derive(Clone, Copy, Debug)]
struct Validation {
    data: u64,
    /// The previous path, which was validated last.
    before: u8,
    /// Whether a challenge must be sent.
    due: bool,
    again_at: Instant,
    fails_at: Instant,
    /// Bytes that may be sent on the path before it is validated.
    credit: u64,
    /// Whether the challenge was smaller than the minimum size of a full datagram, so that a second validation must
    /// check that size.
    small: bool,
}

/// A set of sequence numbers of connection IDs. Nearly all connections have only small numbers, which need no
/// allocation.
#[derive(Debug, Default)]
struct Ids {
    /// The numbers below 64, as bits.
    small: u64,
    large: Option<Box<BTreeSet<u64>>>,
}

impl Ids {
    fn zero() -> Ids {
        Ids { small: 1, large: None }
    }

    fn len(&self) -> u64 {
        u64::from(self.small.count_ones()) + self.large.as_ref().map_or(0, |large| large.len() as u64)
    }

    fn contains(&self, id: u64) -> bool {
        if id < 64 { self.small >> id & 1 == 1 } else { self.large.as_ref().is_some_and(|large| large.contains(&id)) }
    }

    /// Adds a number; returns whether it was new.
    fn insert(&mut self, id: u64) -> bool {
        if id >= 64 {
            return self.large.get_or_insert_default().insert(id);
        }
        let is_new = !self.contains(id);
        self.small |= 1 << id;
        is_new
    }

    /// Removes a number; returns whether it was present.
    fn remove(&mut self, id: u64) -> bool {
        if id >= 64 {
            return self.large.as_mut().is_some_and(|large| large.remove(&id));
        }
        let was_there = self.contains(id);
        self.small &= !(1 << id);
        was_there
    }

    fn first(&self) -> Option<u64> {
        match self.small {
            0 => self.large.as_ref()?.first().copied(),
            small => Some(u64::from(small.trailing_zeros())),
        }
    }

    fn pop_first(&mut self) -> Option<u64> {
        let first = self.first()?;
        self.remove(first);
        Some(first)
    }

    /// Removes and returns the first number, if it is below `floor`.
    fn pop_first_below(&mut self, floor: u64) -> Option<u64> {
        self.first().filter(|first| *first < floor)?;
        self.pop_first()
    }
}

/// Connection IDs and paths.
#[derive(Debug)]
pub(crate) struct Migration {
    seed: u64,
    challenges: u64,
    validation: Option<Validation>,
    /// The data of challenges that require a response.
    responses: VecDeque<u64>,
    /// The number of IDs that this end has issued so far, and the sequence numbers of those that are not retired.
    issued: u64,
    live: Ids,
    /// Unused IDs that the peer has issued. All IDs below `retired_below` are retired.
    spare: Ids,
    known: Ids,
    retired_below: u64,
    /// IDs from `retired_below` that were used and retired.
    given_back: Ids,
}

impl Migration {
    pub(crate) fn new(seed: u64) -> Migration {
        Migration {
            seed,
            challenges: 0,
            validation: None,
            responses: VecDeque::new(),
            issued: 1,
            live: Ids::zero(),
            spare: Ids::default(),
            known: Ids::zero(),
            retired_below: 0,
            given_back: Ids::default(),
        }
    }

    /// Discards the state at the end of the connection.
    pub(crate) fn end(&mut self) {
        self.validation = None;
        self.responses.clear();
    }

    /// Whether a path is being validated.
    pub(crate) fn is_validating(&self) -> bool {
        self.validation.is_some()
    }

    fn next_challenge(&mut self) -> u64 {
        // The increments of SplitMix64 suffice, because no attacker guesses the data in a simulation.
        self.challenges += 1;
        self.seed ^ self.challenges.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        match &self.validation {
            None => Instant::NEVER,
            Some(validation) => validation.again_at.min(validation.fails_at),
        }
    }
}

impl Connection {
    /// Issues connection IDs up to the peer's limit (section 5.1.1).
    pub(crate) fn issue_connection_ids(&mut self) {
        let limit =
            self.peer().map_or(2, |peer| peer.active_connection_id_limit).min(self.config.active_connection_ids.max(2));
        while self.rare.migration.live.len() < limit {
            let sequence = self.rare.migration.issued;
            self.rare.migration.issued += 1;
            self.rare.migration.live.insert(sequence);
            self.note_due(FrameRecord::NewConnectionId(sequence));
        }
    }

    pub(crate) fn on_new_connection_id(&mut self, sequence: u64, retire_prior_to: u64) -> Result<(), TransportError> {
        // Section 19.15: an end that uses empty connection IDs must not receive others.
        if self.config.connection_id_bytes == 0 {
            return Err(TransportError::Protocol);
        }
        let migration = &mut self.rare.migration;
        if sequence < migration.retired_below {
            self.note_due(FrameRecord::RetireConnectionId(sequence));
            return Ok(());
        }
        if migration.given_back.contains(sequence) {
            return Ok(());
        }
        if migration.known.insert(sequence) {
            migration.spare.insert(sequence);
        }
        migration.retired_below = migration.retired_below.max(retire_prior_to);
        let floor = migration.retired_below;
        while migration.spare.pop_first_below(floor).is_some() {}
        while migration.given_back.pop_first_below(floor).is_some() {}
        while let Some(sequence) = self.rare.migration.known.pop_first_below(floor) {
            self.note_due(FrameRecord::RetireConnectionId(sequence));
        }
        let too_many = self.rare.migration.known.len() > self.config.active_connection_ids.max(2);
        if too_many {
            return Err(TransportError::ConnectionIdLimit);
        }
        if self.peer_connection_id < floor {
            self.take_spare_id();
        }
        Ok(())
    }

    fn take_spare_id(&mut self) -> bool {
        let Some(id) = self.rare.migration.spare.pop_first() else { return false };
        self.peer_connection_id = id;
        true
    }

    pub(crate) fn on_retire_connection_id(&mut self, sequence: u64) -> Result<(), TransportError> {
        // Section 19.16: retires an ID that was not issued.
        if sequence >= self.rare.migration.issued {
            return Err(TransportError::Protocol);
        }
        if self.rare.migration.live.remove(sequence) {
            self.issue_connection_ids();
        }
        Ok(())
    }

    pub(crate) fn on_path_challenge(&mut self, data: u64) {
        // Limits the number of pending responses to a peer that sends many challenges.
        let responses = &mut self.rare.migration.responses;
        if responses.len() >= 4 {
            responses.pop_front();
        }
        responses.push_back(data);
        self.unusual |= unusual::PATH;
    }

    pub(crate) fn on_path_response(&mut self, now: Instant, data: u64) {
        let migration = &mut self.rare.migration;
        let Some(validation) = migration.validation.filter(|validation| validation.data == data) else { return };
        if validation.small {
            // Section 8.2.1: the address is validated, but the path may not support full datagrams.
            let (pto, data) = (self.path.rtt.pto(), migration.next_challenge());
            migration.validation = Some(Validation {
                data,
                due: true,
                again_at: Instant::NEVER,
                fails_at: now.saturating_add(pto.saturating_mul(3)),
                credit: u64::MAX,
                small: false,
                ..validation
            });
            self.unusual |= unusual::PATH;
            return;
        }
        migration.validation = None;
        self.statistics.migrations += 1;
        self.set_timers(now);
    }

    /// Counts bytes that arrive on the current path during its validation.
    pub(crate) fn count_path_bytes(&mut self, path: u8, bytes: u32) {
        if path == self.peer_path
            && let Some(validation) = &mut self.rare.migration.validation
        {
            validation.credit = validation.credit.saturating_add(3 * u64::from(bytes));
        }
    }

    /// Server: handles a packet from another address of the client. `for_good` if it is the newest packet and not only
    /// a probe.
    pub(crate) fn on_moved(&mut self, now: Instant, path: u8, for_good: bool, udp_payload_bytes: u32) {
        if !for_good {
            return;
        }
        // Section 8.2.4: the round-trip time of the new path is unknown.
        let pto = self.path.rtt.pto().max(RttEstimator::new(self.config.initial_rtt).pto());
        let migration = &mut self.rare.migration;
        let data = migration.next_challenge();
        let before = migration.validation.map_or(self.peer_path, |validation| validation.before);
        migration.validation = Some(Validation {
            data,
            before,
            due: true,
            again_at: Instant::NEVER,
            fails_at: now.saturating_add(pto.saturating_mul(3)),
            credit: 3 * u64::from(udp_payload_bytes),
            small: false,
        });
        self.has_rare_deadline = true;
        self.peer_path = path;
        self.unusual |= unusual::PATH;
        // Section 9.5: the new path uses an unused connection ID, if there is one.
        let old = self.peer_connection_id;
        if self.take_spare_id() {
            self.rare.migration.known.remove(old);
            self.rare.migration.given_back.insert(old);
            self.note_due(FrameRecord::RetireConnectionId(old));
        }
        self.data.space.leave_path();
        self.mtu.begin_anew();
        self.path.driver.control.mss_bytes = u64::from(self.mtu.current());
        self.path.begin_anew(self.data.space.next_number, &self.config);
        self.unusual |= unusual::MTU;
        self.set_timers(now);
    }

    /// Ends a validation without a response, or schedules another challenge.
    #[cold]
    pub(crate) fn on_validation_timer(&mut self, now: Instant) {
        let Some(validation) = &mut self.rare.migration.validation else { return };
        if validation.fails_at <= now {
            self.peer_path = validation.before;
            self.rare.migration.validation = None;
        } else {
            validation.again_at = Instant::NEVER;
            validation.due = true;
            self.unusual |= unusual::PATH;
        }
    }

    /// The next datagram for the validation of a path, if one is due.
    pub(crate) fn poll_path(&mut self, now: Instant) -> Option<Vec<QuicPacket>> {
        let most = self.rare.migration.validation.map_or(u64::MAX, |validation| validation.credit);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        if let Some(&data) = self.rare.migration.responses.front()
            && let Some(packet) = self.path_packet(now, QuicFrame::PathResponse(data), most)
        {
            self.rare.migration.responses.pop_front();
            return Some(vec![packet]);
        }
        let pto = self.path.rtt.pto();
        if let Some(Validation { due: true, data, .. }) = self.rare.migration.validation
            && let Some(packet) = self.path_packet(now, QuicFrame::PathChallenge(data), most)
            && let Some(validation) = &mut self.rare.migration.validation
        {
            validation.due = false;
            validation.small = packet.bytes < SMALLEST_DATAGRAM;
            validation.again_at = now.saturating_add(pto);
            return Some(vec![packet]);
        }
        if self.rare.migration.validation.is_none() && self.rare.migration.responses.is_empty() {
            self.unusual &= !unusual::PATH;
        }
        None
    }

    /// Whether a full datagram may be sent to the peer's current address (section 9.3.1).
    pub(crate) fn path_allows(&self) -> bool {
        let most = u64::from(self.mtu.current());
        self.rare.migration.validation.is_none_or(|validation| validation.credit >= most)
    }

    /// Subtracts a datagram from the credit of a path that is not validated.
    #[cold]
    pub(crate) fn use_path_credit(&mut self, bytes: u32) {
        if let Some(validation) = &mut self.rare.migration.validation {
            validation.credit = validation.credit.saturating_sub(u64::from(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Small and large numbers together behave as one ordered set.
        #[test]
        fn set_of_connection_ids_agrees_with_a_model(operations in prop::collection::vec((0u8..4, 0u64..130), 1..80)) {
            let (mut ids, mut set) = (Ids::zero(), BTreeSet::from([0]));
            for (operation, id) in operations {
                match operation {
                    0 => prop_assert_eq!(ids.insert(id), set.insert(id)),
                    1 => prop_assert_eq!(ids.remove(id), set.remove(&id)),
                    2 => prop_assert_eq!(ids.pop_first(), set.pop_first()),
                    _ => {
                        let below = set.first().copied().filter(|first| *first < id);
                        prop_assert_eq!(ids.pop_first_below(id), below);
                        below.map(|first| set.remove(&first));
                    }
                }
                prop_assert_eq!(ids.len(), set.len() as u64);
                prop_assert!((0..130).all(|id| ids.contains(id) == set.contains(&id)));
            }
        }
    }
}
