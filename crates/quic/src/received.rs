//! The receiving side of a packet number space: received packets, and when they are acknowledged (RFC 9000 section
//! 13.2).
//!
//! An acknowledgment is sent immediately for every second ack-eliciting packet, and for a packet that creates or fills
//! a gap or is marked CE. In the Initial and Handshake spaces, all acknowledgments are immediate. Otherwise an
//! acknowledgment is sent max_ack_delay after the packet. With ACK_FREQUENCY, the peer sets the number of packets, the
//! delay and the size of the gap.
//!
//! Ranges are discarded once the peer is known to have received them. Beyond a maximum number, the oldest ranges are
//! discarded too. Packets below a discarded range then count as duplicates. An endpoint that only receives needs
//! acknowledgments of its own acknowledgments. While such an endpoint stores more than one range, it adds a PING to
//! every 32nd successive ACK-only packet (section 13.2.4).

use fullpipe_transport::ranges::RangeSet;
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::quic::{AckRange, EcnCounts};

/// The maximum number of ranges that are stored and sent.
const MOST_RANGES: usize = 32;
/// The number of successive ACK-only packets after which an end adds a PING, so that the peer acknowledges them.
const ALONE: u32 = 32;

/// The policy for acknowledgments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckPolicy {
    /// The number of ack-eliciting packets after which an acknowledgment is sent immediately.
    pub(crate) every: u64,
    pub(crate) max_delay: Duration,
    /// The distance of a packet ahead of a missing one that causes an immediate acknowledgment; 0 disables it.
    pub(crate) reordering: u64,
}

/// The receiving side of a space.
#[derive(Debug, Default)]
pub(crate) struct ReceiveSpace {
    ranges: RangeSet,
    largest: Option<u64>,
    largest_at: Instant,
    /// All packets below this number count as received.
    floor: u64,
    /// The ECN counts; `None` until a packet with an ECN codepoint arrives.
    ecn: Option<Box<EcnCounts>>,
    /// Ack-eliciting packets since the last acknowledgment.
    eliciting: u64,
    /// When an acknowledgment is due; [`Instant::NEVER`] if none is.
    pub(crate) ack_at: Instant,
    /// Whether a packet of any kind has arrived since the last acknowledgment.
    fresh: bool,
    alone: u32,
}

impl ReceiveSpace {
    pub(crate) fn new() -> ReceiveSpace {
        ReceiveSpace { ack_at: Instant::NEVER, ..ReceiveSpace::default() }
    }

    /// Decodes a truncated packet number (RFC 9000 appendix A.3).
    #[inline]
    pub(crate) fn decode(&self, truncated: u32, bytes: u8) -> u64 {
        let expected = self.largest.map_or(0, |largest| largest + 1);
        let window = 1u64 << (8 * u32::from(bytes.clamp(1, 4)));
        let half = window / 2;
        let candidate = expected & !(window - 1) | u64::from(truncated) & (window - 1);
        if candidate + half <= expected && candidate < (1 << 62) - window {
            candidate + window
        } else if candidate > expected + half && candidate >= window {
            candidate - window
        } else {
            candidate
        }
    }

    /// Whether a packet has arrived before, or may have arrived before.
    #[inline]
    pub(crate) fn has(&self, number: u64) -> bool {
        match self.largest {
            None => false,
            Some(largest) => number < self.floor || number <= largest && self.ranges.find(number).is_some(),
        }
    }

    pub(crate) fn largest(&self) -> Option<u64> {
        self.largest
    }

    /// Adds a packet that arrives for the first time.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        number: u64,
        eliciting: bool,
        codepoint: EcnCodepoint,
        policy: &AckPolicy,
    ) {
        let before = self.largest;
        if !self.ranges.extend_last(number, number + 1) {
            self.insert_elsewhere(number);
        }
        if before.is_none_or(|largest| number > largest) {
            self.largest = Some(number);
            self.largest_at = now;
        }
        if codepoint != EcnCodepoint::NotEct {
            self.count_mark(codepoint);
        }
        self.fresh = true;
        if !eliciting {
            return;
        }
        self.eliciting += 1;
        let expected = before.map_or(0, |largest| largest + 1);
        let at_once = self.eliciting >= policy.every
            || codepoint == EcnCodepoint::Ce
            || policy.reordering > 0 && number != expected && self.is_out_of_order(number, expected, policy.reordering);
        if at_once {
            self.ack_at = now;
        } else if self.ack_at.is_never() {
            self.ack_at = now.saturating_add(policy.max_delay);
        }
    }

    #[inline(never)]
    fn count_mark(&mut self, codepoint: EcnCodepoint) {
        let ecn = self.ecn.get_or_insert_default();
        match codepoint {
            EcnCodepoint::NotEct => {}
            EcnCodepoint::Ect0 => ecn.ect0 += 1,
            EcnCodepoint::Ect1 => ecn.ect1 += 1,
            EcnCodepoint::Ce => ecn.ce += 1,
        }
    }

    fn insert_elsewhere(&mut self, number: u64) {
        self.ranges.insert(number, number + 1, |_, _| ());
        if self.ranges.as_slice().len() > MOST_RANGES {
            let (_, end) = self.ranges.as_slice()[0];
            self.forget_below(end);
        }
    }

    /// Whether a packet is the next one according to its truncated number, and not marked.
    #[inline(always)]
    pub(crate) fn expects(&self, truncated: u32, bytes: u8, codepoint: EcnCodepoint) -> bool {
        let Some(largest) = self.largest else { return false };
        let mask = u32::MAX >> (8 * (4 - u32::from(bytes.clamp(1, 4))));
        codepoint == EcnCodepoint::NotEct && (truncated ^ (largest + 1) as u32) & mask == 0
    }

    /// Like [`ReceiveSpace::insert`], for an ack-eliciting packet that [`ReceiveSpace::expects`] accepts.
    #[inline(always)]
    pub(crate) fn insert_expected(&mut self, now: Instant, policy: &AckPolicy) {
        let number = self.largest.map_or(0, |largest| largest + 1);
        if !self.ranges.extend_last(number, number + 1) {
            self.insert_elsewhere(number);
        }
        self.largest = Some(number);
        self.largest_at = now;
        self.fresh = true;
        self.eliciting += 1;
        if self.eliciting >= policy.every {
            self.ack_at = now;
        } else if self.ack_at.is_never() {
            self.ack_at = now.saturating_add(policy.max_delay);
        }
    }

    /// Whether a packet fills a gap, or creates one that requires an immediate acknowledgment.
    #[cold]
    fn is_out_of_order(&self, number: u64, expected: u64, reordering: u64) -> bool {
        if number < expected {
            return true;
        }
        // The first number since the expected one is missing.
        number - expected >= reordering.saturating_sub(1).max(1) || reordering <= 1
    }

    /// Handles the peer's request for an immediate acknowledgment (IMMEDIATE_ACK).
    pub(crate) fn acknowledge_now(&mut self, now: Instant) {
        self.ack_at = now;
    }

    /// Postpones a due acknowledgment that cannot be sent now.
    pub(crate) fn postpone(&mut self, until: Instant) {
        self.ack_at = until;
    }

    /// Whether an acknowledgment is due.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.ack_at <= now
    }

    /// Whether packets await an acknowledgment, which can accompany other frames.
    #[inline]
    pub(crate) fn has_fresh(&self) -> bool {
        self.fresh && !self.ack_at.is_never()
    }

    /// The ACK Delay field of an acknowledgment sent now.
    #[inline]
    pub(crate) fn delay(&self, now: Instant, exponent: u8) -> u64 {
        (now.saturating_since(self.largest_at).as_nanos() / 1000) >> exponent.min(20)
    }

    /// The ranges to acknowledge, half-open, the smallest first.
    #[inline]
    pub(crate) fn ranges(&self) -> &[(u64, u64)] {
        self.ranges.as_slice()
    }

    /// The ranges to acknowledge, in the order of an ACK frame: the largest first. `ranges` is an empty vector whose
    /// memory is reused.
    pub(crate) fn ack_ranges(&self, mut ranges: Vec<AckRange>) -> Vec<AckRange> {
        ranges.extend(self.ranges.as_slice().iter().rev().map(|(start, end)| (*start, end - 1)));
        ranges
    }

    /// The ECN counts; `None` until a packet with an ECN codepoint arrives.
    #[inline]
    pub(crate) fn ecn(&self) -> Option<EcnCounts> {
        self.ecn.as_deref().copied()
    }

    /// Records that an acknowledgment is sent; `alone` if the packet has no other frames. Returns whether to add a
    /// PING.
    #[inline]
    pub(crate) fn on_ack_sent(&mut self, alone: bool) -> bool {
        self.eliciting = 0;
        self.ack_at = Instant::NEVER;
        self.fresh = false;
        if !alone || self.ranges.as_slice().len() < 2 {
            self.alone = 0;
            return false;
        }
        self.alone += 1;
        if self.alone < ALONE {
            return false;
        }
        self.alone = 0;
        true
    }

    /// Handles the peer's receipt of acknowledgments up to a number: lower packets are not acknowledged again (section
    /// 13.2.4).
    pub(crate) fn on_ack_acknowledged(&mut self, largest: u64) {
        // The range of that number remains, so that the newest packet is always acknowledged.
        let start = self.ranges.find(largest).map_or(largest + 1, |range| range.0);
        self.forget_below(start);
    }

    fn forget_below(&mut self, number: u64) {
        self.ranges.remove_below(number);
        self.floor = self.floor.max(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: AckPolicy = AckPolicy { every: 2, max_delay: Duration::from_millis(25), reordering: 1 };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn with_largest(largest: u64) -> ReceiveSpace {
        ReceiveSpace { largest: Some(largest), ..ReceiveSpace::new() }
    }

    #[test]
    fn truncated_packet_number_is_decoded_as_in_the_rfc() {
        // RFC 9000 appendix A.3: largest 0xa82f30ea, 16 bits 0x9b32.
        assert_eq!(with_largest(0xa82f_30ea).decode(0x9b32, 2), 0xa82f_9b32);
        // One byte, on both sides of a wraparound.
        assert_eq!(with_largest(255).decode(0, 1), 256);
        assert_eq!(with_largest(256).decode(255, 1), 255);
        assert_eq!(with_largest(0).decode(127, 1), 127);
        assert_eq!(ReceiveSpace::new().decode(3, 1), 3);
    }

    #[test]
    fn every_second_packet_is_acknowledged_immediately() {
        let mut received = ReceiveSpace::new();
        received.insert(at(0), 0, true, EcnCodepoint::NotEct, &POLICY);
        assert_eq!(received.ack_at, at(25));
        received.insert(at(1), 1, true, EcnCodepoint::NotEct, &POLICY);
        assert!(received.is_due(at(1)));
        assert_eq!(received.ack_ranges(Vec::new()), [(0, 1)]);
        received.on_ack_sent(true);
        // A packet that is not ack-eliciting is acknowledged only with the next one.
        received.insert(at(2), 2, false, EcnCodepoint::NotEct, &POLICY);
        assert!(received.ack_at.is_never());
        assert!(!received.has_fresh());
    }

    #[test]
    fn gap_or_mark_is_acknowledged_immediately() {
        let mut received = ReceiveSpace::new();
        for (number, codepoint, due) in [
            (0, EcnCodepoint::Ect0, false),
            (2, EcnCodepoint::Ect0, true),
            (3, EcnCodepoint::Ect0, false),
            (1, EcnCodepoint::Ect0, true),
            (4, EcnCodepoint::Ce, true),
            (5, EcnCodepoint::Ect0, false),
        ] {
            received.insert(at(0), number, true, codepoint, &POLICY);
            assert_eq!(received.is_due(at(0)), due, "{number}");
            received.on_ack_sent(true);
        }
        assert_eq!(received.ecn(), Some(EcnCounts { ect0: 5, ect1: 0, ce: 1 }));
    }

    #[test]
    fn ranges_are_dropped_after_the_peer_acknowledged_their_report() {
        let mut received = ReceiveSpace::new();
        for number in [0, 1, 3, 4, 6, 7] {
            received.insert(at(0), number, true, EcnCodepoint::NotEct, &POLICY);
        }
        received.on_ack_acknowledged(4);
        assert_eq!(received.ack_ranges(Vec::new()), [(6, 7), (3, 4)]);
        assert!(received.has(2) && received.has(3) && !received.has(5) && !received.has(8));
    }

    #[test]
    fn number_of_kept_ranges_is_bounded() {
        let mut received = ReceiveSpace::new();
        for number in 0..100 {
            received.insert(at(0), 2 * number, true, EcnCodepoint::NotEct, &POLICY);
        }
        assert_eq!(received.ranges().len(), MOST_RANGES);
        assert!(received.has(1), "packets below count as received");
        assert_eq!(received.ack_ranges(Vec::new())[0], (198, 198));
    }

    #[test]
    fn receiver_only_endpoint_elicits_acknowledgments_periodically() {
        let mut received = ReceiveSpace::new();
        received.insert(at(0), 0, true, EcnCodepoint::NotEct, &POLICY);
        assert!((0..100).all(|_| !received.on_ack_sent(true)), "a single range needs no PING");
        received.insert(at(0), 2, true, EcnCodepoint::NotEct, &POLICY);
        let asked = (0..96).filter(|_| received.on_ack_sent(true)).count();
        assert_eq!(asked, 3);
    }
}
