//! The lifetime of a session between one inside endpoint and one outside endpoint.
//!
//! TCP sessions follow the state machine of RFC 6146 section 3.5.2.2, which RFC 7857 section 2.1 applies to all NATs.
//! There are two additions. A reset also ends a half-closed connection (RFC 7857 section 2.2). A SYN reopens a closed
//! connection, because hosts may reuse a port.

use super::NatSpecification;
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::tcp::flags;

/// The side from which a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Inside,
    Outside,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A UDP session, which has no further states.
    Datagrams,
    /// A SYN arrived from this side.
    Opening(Side),
    Established,
    /// A FIN arrived from this side.
    HalfClosed(Side),
    /// FINs arrived from both sides. Further packets do not extend the session.
    Closing,
    /// A reset arrived. It may be forged, so a later segment that is neither a reset nor a new SYN reestablishes the
    /// session.
    Reset,
}

/// The session of one pair of endpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    state: State,
    pub(super) expires: Instant,
}

impl Session {
    /// Returns a UDP session. Its first packet starts the timeout, whether it is from inside or outside.
    pub(super) fn udp(now: Instant, rules: &NatSpecification) -> Self {
        Session { state: State::Datagrams, expires: now.saturating_add(rules.udp_timeout) }
    }

    /// Returns a TCP session that a SYN from `side` starts.
    pub(super) fn tcp(now: Instant, side: Side, rules: &NatSpecification) -> Self {
        Session { state: State::Opening(side), expires: now.saturating_add(rules.tcp_transitory_timeout) }
    }

    /// Processes a packet; `flags` are those of a TCP segment.
    pub(super) fn passes(&mut self, now: Instant, side: Side, flags: Option<u16>, rules: &NatSpecification) {
        let lasts = match flags {
            None => (side == Side::Inside || rules.udp_inbound_refresh).then_some(rules.udp_timeout),
            Some(flags) => self.segment(side, flags, rules),
        };
        if let Some(lasts) = lasts {
            self.expires = now.saturating_add(lasts);
        }
    }

    /// Changes the state and returns the time from now until the session expires; `None` if that is unchanged.
    fn segment(&mut self, side: Side, bits: u16, rules: &NatSpecification) -> Option<Duration> {
        let has = |flag| bits & flag != 0;
        let (established, transitory) = (rules.tcp_established_timeout, rules.tcp_transitory_timeout);
        let (next, lasts) = match self.state {
            State::Opening(first) if has(flags::SYN) && side == first => (State::Opening(first), Some(transitory)),
            State::Opening(_) if has(flags::SYN) => (State::Established, Some(established)),
            State::Opening(first) => (State::Opening(first), None),
            State::Closing | State::Reset if has(flags::SYN) && !has(flags::ACK) => {
                (State::Opening(side), Some(transitory))
            }
            State::Closing => (State::Closing, None),
            State::Reset if has(flags::RST) => (State::Reset, None),
            State::Established | State::HalfClosed(_) if has(flags::RST) => (State::Reset, Some(transitory)),
            State::HalfClosed(first) if has(flags::FIN) && side != first => (State::Closing, Some(transitory)),
            State::HalfClosed(first) => (State::HalfClosed(first), Some(established)),
            State::Established if has(flags::FIN) => (State::HalfClosed(side), Some(established)),
            State::Established | State::Reset | State::Datagrams => (State::Established, Some(established)),
        };
        self.state = next;
        lasts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Inside, Outside};
    use fullpipe_units::NodeId;

    const SYN: u16 = flags::SYN;
    const SYN_ACK: u16 = flags::SYN | flags::ACK;
    const ACK: u16 = flags::ACK;
    const FIN: u16 = flags::FIN | flags::ACK;
    const RST: u16 = flags::RST;

    /// Processes packets at these times in seconds; returns when the session then expires, in seconds.
    fn expires(packets: &[(u64, Side, u16)]) -> u64 {
        let rules = NatSpecification::new(NodeId(0), Vec::new());
        let at = |seconds| Instant::ZERO.saturating_add(Duration::from_secs(seconds));
        let mut session = Session::tcp(at(packets[0].0), packets[0].1, &rules);
        for (seconds, side, flags) in &packets[1..] {
            session.passes(at(*seconds), *side, Some(*flags), &rules);
        }
        session.expires.as_nanos() / 1_000_000_000
    }

    const OPEN: [(u64, Side, u16); 3] = [(0, Inside, SYN), (1, Outside, SYN_ACK), (2, Inside, ACK)];

    /// 4 min are 240 s, and 2 h 4 min are 7440 s (RFC 5382 REQ-5).
    #[test]
    fn tcp_sessions_expire_after_the_timeout_of_their_state() {
        let after = |more: &[(u64, Side, u16)]| expires(&[&OPEN, more].concat());
        assert_eq!(expires(&OPEN[..1]), 240);
        // A retransmitted SYN extends the session; other segments in this state do not.
        assert_eq!(expires(&[(0, Inside, SYN), (3, Inside, SYN)]), 243);
        assert_eq!(expires(&[(0, Inside, SYN), (3, Outside, RST), (4, Inside, ACK)]), 240);
        assert_eq!(expires(&OPEN[..2]), 7441);
        assert_eq!(after(&[]), 7442);
        assert_eq!(after(&[(100, Outside, ACK)]), 7540);
        // Half closed: the same timeout as established, from either side.
        assert_eq!(after(&[(100, Inside, FIN), (200, Outside, ACK)]), 7640);
        assert_eq!(after(&[(100, Inside, FIN), (200, Inside, FIN)]), 7640);
        assert_eq!(after(&[(100, Inside, FIN), (200, Outside, FIN), (201, Inside, ACK)]), 440);
        assert_eq!(after(&[(100, Outside, FIN), (200, Inside, FIN)]), 440);
        // A reset starts the short timeout; a second one does not extend it. A packet after it shows that it was
        // forged.
        assert_eq!(after(&[(100, Outside, RST), (150, Outside, RST)]), 340);
        assert_eq!(after(&[(100, Outside, RST), (150, Inside, ACK)]), 7590);
        assert_eq!(after(&[(100, Inside, FIN), (150, Outside, RST)]), 390);
        // The ports are reused.
        assert_eq!(after(&[(100, Inside, FIN), (200, Outside, FIN), (210, Inside, SYN)]), 450);
        assert_eq!(
            after(&[(100, Inside, FIN), (200, Outside, FIN), (210, Inside, SYN), (211, Outside, SYN_ACK)]),
            7651
        );
    }

    #[test]
    fn simultaneous_open_establishes_a_session() {
        assert_eq!(expires(&[(0, Inside, SYN), (1, Outside, SYN)]), 7441);
        assert_eq!(expires(&[(0, Outside, SYN), (1, Inside, SYN_ACK)]), 7441);
    }

    #[test]
    fn udp_is_refreshed_from_inside_and_if_configured_from_outside() {
        let mut rules = NatSpecification::new(NodeId(0), Vec::new());
        let at = |seconds| Instant::ZERO.saturating_add(Duration::from_secs(seconds));
        let mut session = Session::udp(at(0), &rules);
        session.passes(at(50), Inside, None, &rules);
        assert_eq!(session.expires, at(170));
        session.passes(at(60), Outside, None, &rules);
        assert_eq!(session.expires, at(170));
        rules.udp_inbound_refresh = true;
        session.passes(at(60), Outside, None, &rules);
        assert_eq!(session.expires, at(180));
    }
}
