//! Explicit congestion notification: negotiation in SYN segments, feedback of marks by the receiver, and evaluation of
//! the feedback by the sender.
//!
//! **Model.** A queue sets CE on packets that were sent as ECN-capable (ECT). The receiver returns feedback in one of
//! three forms:
//!
//! * *classic* (RFC 3168): after a mark, every acknowledgment carries ECE until a segment with CWR reports that the
//!   sender has reduced its window. The sender receives at most one mark per window;
//! * *DCTCP* (RFC 8257 section 3.2): ECE states whether the acknowledged segments were marked. When this changes, the
//!   receiver sends an acknowledgment immediately. A delayed acknowledgment of earlier segments is sent before it, as
//!   in Linux. Exactly the marked bytes are therefore acknowledged with ECE;
//! * *accurate* (RFC 9768): the flags AE, CWR and ECE contain the number of marked packets modulo eight (ACE), with the
//!   initial value five, and an option counts bytes by codepoint.
//!
//! Only payload that is sent for the first time is ECN-capable: no SYN, no pure acknowledgment, no retransmission and
//! no window probe (RFC 3168 sections 6.1.1 to 6.1.6). If the peer reports our SYN or SYN-ACK with any codepoint other
//! than "not ECT", the path changes the bits. We then send nothing as ECN-capable (RFC 9768 section 3.2.2.3).
//!
//! **Choices.** For each acknowledgment, ACE is interpreted as the safest likely case (RFC 9768 appendix A.2). If an
//! acknowledgment covers as many segments as the counter can represent, the counter may have wrapped. Every pure
//! acknowledgment carries the option with all three counters if they fit after timestamps and SACK blocks. Data
//! segments are full and carry none.

use crate::config::EcnFeedback;
use fullpipe_units::EcnCodepoint;
use fullpipe_wire::tcp::{flags, options};
use fullpipe_wire::{AccurateEcn, SegmentOptions, TcpHeader};

/// All three ECN flags.
pub(crate) const ALL_FLAGS: u16 = flags::AE | flags::CWR | flags::ECE;
/// Initial value of the counters of marked packets (RFC 9768 section 3.2.1).
const FIRST_CE_PACKETS: u32 = 5;
/// Byte counters are modulo this mask plus one.
const BYTE_MASK: u32 = (1 << 24) - 1;
/// Size of the option with three counters, in bytes.
const OPTION_BYTES: u8 = 11;
/// Maximum size of a TCP header.
const LARGEST_HEADER_BYTES: u32 = 60;
/// Numbers of marks since the last acknowledgment that trigger a new one: with new data, and with acknowledgments only
/// (RFC 9768 section 3.2.2.5.1).
const MARKS_PER_ACK: u8 = 2;
const MARKS_PER_PURE_ACK: u8 = 3;

/// The three flags as a number (ACE).
#[inline]
fn ace(flags_of_segment: u16) -> u32 {
    u32::from(flags_of_segment & flags::AE != 0) << 2
        | u32::from(flags_of_segment & flags::CWR != 0) << 1
        | u32::from(flags_of_segment & flags::ECE != 0)
}

/// The flags that represent these three bits.
fn ace_flags(bits: u32) -> u16 {
    let mut shown = 0;
    for (bit, flag) in [(4, flags::AE), (2, flags::CWR), (1, flags::ECE)] {
        if bits & bit != 0 {
            shown |= flag;
        }
    }
    shown
}

/// The three bits that report the codepoint of a SYN or SYN-ACK (RFC 9768 tables 2 and 3).
fn handshake_bits(codepoint: EcnCodepoint) -> u32 {
    match codepoint {
        EcnCodepoint::NotEct => 0b010,
        EcnCodepoint::Ect1 => 0b011,
        EcnCodepoint::Ect0 => 0b100,
        EcnCodepoint::Ce => 0b110,
    }
}

/// The ECN flags of a SYN that is sent as the `lost`-th retransmission (0: the original). If packets that request ECN
/// are lost, the connection does not use it (RFC 3168 section 6.1.1.1, RFC 9768 section 3.1.4).
pub(crate) fn syn_flags(feedback: EcnFeedback, lost: u32) -> u16 {
    match feedback {
        EcnFeedback::Accurate if lost < 2 => ALL_FLAGS,
        EcnFeedback::Classic | EcnFeedback::Dctcp if lost < 1 => flags::CWR | flags::ECE,
        _ => 0,
    }
}

/// The feedback negotiated from the flags of a SYN and our setting: the server's part of RFC 9768 table 2.
pub(crate) fn agree_on_syn(ours: EcnFeedback, syn: u16) -> Option<EcnFeedback> {
    let asked = syn & ALL_FLAGS;
    if ours == EcnFeedback::Accurate {
        return match asked {
            0 => None,
            classic if classic == flags::CWR | flags::ECE => Some(EcnFeedback::Classic),
            // Any other combination, with a future meaning, comes from a peer that supports accurate feedback (section
            // 3.1.3).
            _ => Some(EcnFeedback::Accurate),
        };
    }
    (asked & flags::CWR != 0 && asked & flags::ECE != 0).then_some(ours)
}

/// The feedback negotiated from the flags of a SYN-ACK and our setting: the client's part of RFC 9768 table 2.
pub(crate) fn agree_on_syn_ack(ours: EcnFeedback, syn_ack: u16) -> Option<EcnFeedback> {
    let answer = syn_ack & ALL_FLAGS;
    if ours == EcnFeedback::Accurate {
        return match answer {
            // No ECN, or a defective peer that repeats the received flags.
            0 | ALL_FLAGS => None,
            flags::ECE => Some(EcnFeedback::Classic),
            _ => Some(EcnFeedback::Accurate),
        };
    }
    (answer & (flags::CWR | flags::ECE) == flags::ECE).then_some(ours)
}

/// Both halves of ECN, present once the SYN segments negotiated it.
#[derive(Debug)]
pub(crate) struct EcnState {
    pub(crate) receiver: EcnReceiver,
    pub(crate) sender: EcnSender,
}

/// The response that the ECN field of a segment requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckRequest {
    None,
    /// An acknowledgment before any data.
    AckFirst,
    /// Quick acknowledgments: the echo of a mark begins, and the sender's window may soon be small.
    QuickAcks,
    /// An acknowledgment of this data: the sender has reduced its window.
    Ack,
}

/// The receiver's half.
#[derive(Debug)]
pub(crate) struct EcnReceiver {
    feedback: EcnFeedback,
    /// Classic: a mark is echoed until CWR arrives. DCTCP: the newest data segment was marked (DCTCP.CE).
    echo: bool,
    /// DCTCP: number and ECE of the unsent acknowledgment of data before a change.
    earlier: Option<(u64, bool)>,
    /// Number of marked packets (r.cep).
    ce_packets: u32,
    counters: AccurateEcn,
    /// Codepoint of the previous packet, and of the newest packet counted in bytes.
    previous: EcnCodepoint,
    counted: EcnCodepoint,
    marks_since_ack: u8,
    /// Codepoint of the SYN-ACK, which the client's first acknowledgment reports.
    handshake: Option<EcnCodepoint>,
    /// Whether this is a client with accurate feedback, whose answer to every SYN-ACK reports the codepoint.
    client: bool,
    /// Whether a marked SYN-ACK has been counted. Only the first one counts (RFC 9768 section 3.2.2.2).
    marked_answer: bool,
}

impl EcnReceiver {
    /// Creates the receiver's half. At a client, `first_ack_tells` is the codepoint of the SYN-ACK.
    pub(crate) fn new(feedback: EcnFeedback, first_ack_tells: Option<EcnCodepoint>) -> EcnReceiver {
        let marked = first_ack_tells == Some(EcnCodepoint::Ce);
        EcnReceiver {
            feedback,
            echo: false,
            earlier: None,
            ce_packets: FIRST_CE_PACKETS + u32::from(marked),
            counters: AccurateEcn { ect0_bytes: 1, ce_bytes: 0, ect1_bytes: 1, fields: 3, ect1_first: false },
            previous: EcnCodepoint::NotEct,
            counted: EcnCodepoint::NotEct,
            marks_since_ack: 0,
            handshake: first_ack_tells.filter(|_| feedback == EcnFeedback::Accurate),
            client: first_ack_tells.is_some() && feedback == EcnFeedback::Accurate,
            marked_answer: marked,
        }
    }

    /// Processes a retransmitted SYN-ACK. Its acknowledgment reports the codepoint, too (RFC 9768 section 3.2.2.1).
    pub(crate) fn on_repeated_answer(&mut self, codepoint: EcnCodepoint) {
        if !self.client {
            return;
        }
        self.handshake = Some(codepoint);
        if codepoint == EcnCodepoint::Ce && !self.marked_answer {
            self.marked_answer = true;
            self.ce_packets = self.ce_packets.wrapping_add(1);
        }
    }

    /// Processes the ECN field of a segment. `delayed` is the number of the acknowledgment that is being delayed, if
    /// any.
    pub(crate) fn on_segment(
        &mut self,
        header: &TcpHeader,
        codepoint: EcnCodepoint,
        delayed: Option<u64>,
    ) -> AckRequest {
        let data = header.payload_bytes > 0;
        match self.feedback {
            EcnFeedback::Classic if data => {
                let reduced = header.has_flag(flags::CWR);
                let marked = codepoint == EcnCodepoint::Ce;
                let echoed = self.echo && !reduced;
                self.echo = echoed || marked;
                match () {
                    () if marked && !echoed => AckRequest::QuickAcks,
                    () if reduced => AckRequest::Ack,
                    () => AckRequest::None,
                }
            }
            EcnFeedback::Dctcp if data => {
                let marked = codepoint == EcnCodepoint::Ce;
                let changed = marked != self.echo;
                if changed {
                    self.earlier = delayed.map(|number| (number, self.echo));
                    self.echo = marked;
                }
                if changed { AckRequest::AckFirst } else { AckRequest::None }
            }
            EcnFeedback::Accurate => {
                let must = self.count(u32::from(header.payload_bytes), codepoint);
                if must { AckRequest::AckFirst } else { AckRequest::None }
            }
            _ => AckRequest::None,
        }
    }

    fn count(&mut self, bytes: u32, codepoint: EcnCodepoint) -> bool {
        let marked = codepoint == EcnCodepoint::Ce;
        let begins = marked && self.previous != EcnCodepoint::Ce;
        self.previous = codepoint;
        if marked {
            self.ce_packets = self.ce_packets.wrapping_add(1);
            self.marks_since_ack = self.marks_since_ack.saturating_add(1);
        }
        let counter = match codepoint {
            EcnCodepoint::NotEct => return false,
            EcnCodepoint::Ect0 => &mut self.counters.ect0_bytes,
            EcnCodepoint::Ect1 => &mut self.counters.ect1_bytes,
            EcnCodepoint::Ce => &mut self.counters.ce_bytes,
        };
        *counter = counter.wrapping_add(bytes) & BYTE_MASK;
        if bytes == 0 {
            return self.marks_since_ack >= MARKS_PER_PURE_ACK;
        }
        let other = self.counted != codepoint && self.counted != EcnCodepoint::NotEct;
        self.counted = codepoint;
        begins || other || self.marks_since_ack >= MARKS_PER_ACK
    }

    /// The ECN flags of a segment to send.
    pub(crate) fn flags(&mut self) -> u16 {
        match self.feedback {
            EcnFeedback::Accurate => {
                self.marks_since_ack = 0;
                ace_flags(self.ce_packets)
            }
            _ if self.echo => flags::ECE,
            _ => 0,
        }
    }

    /// DCTCP: takes the number and ECE of the acknowledgment that must be sent before the next.
    pub(crate) fn take_earlier(&mut self) -> Option<(u64, bool)> {
        self.earlier.take()
    }

    /// Adds the remaining ECN fields of a pure acknowledgment.
    pub(crate) fn complete_ack(&mut self, header: &mut TcpHeader, option: &mut AccurateEcn) {
        if self.feedback != EcnFeedback::Accurate {
            return;
        }
        if let Some(codepoint) = self.handshake
            && header.sack_count == 0
        {
            header.flags = header.flags & !ALL_FLAGS | ace_flags(handshake_bits(codepoint));
        }
        self.handshake = None;
        self.add_option(header, option);
    }

    /// Sets the flags of a SYN-ACK in answer to a SYN with this codepoint, and the option on the first SYN-ACK.
    pub(crate) fn complete_syn_ack(
        &self,
        syn: EcnCodepoint,
        first: bool,
        header: &mut TcpHeader,
        option: &mut AccurateEcn,
    ) {
        if self.feedback == EcnFeedback::Accurate {
            header.flags |= ace_flags(handshake_bits(syn));
            if first {
                self.add_option(header, option);
            }
        } else {
            header.flags |= flags::ECE;
        }
    }

    fn add_option(&self, header: &mut TcpHeader, option: &mut AccurateEcn) {
        let mut longer = *header;
        longer.options |= options::ACCURATE_ECN;
        longer.other_option_bytes += OPTION_BYTES;
        if longer.header_bytes() <= LARGEST_HEADER_BYTES {
            *header = longer;
            *option = self.counters;
        }
    }
}

/// The marks that an acknowledgment reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CeFeedback {
    /// Packets newly reported as marked.
    pub(crate) packets: u64,
    /// Payload bytes of these packets.
    pub(crate) bytes: u64,
}

/// The sender's half.
#[derive(Debug)]
pub(crate) struct EcnSender {
    feedback: EcnFeedback,
    /// Whether data may be sent as ECN-capable.
    capable: bool,
    /// Whether the next new data carries CWR.
    reduced: bool,
    /// Whether the control counts marks, and responds to losses separately.
    pub(crate) counts: bool,
    /// Marks of data sent before this offset do not cause a second reduction.
    pub(crate) answered_until: u64,
    /// ECN flags of the newest segment that arrived.
    flags: u16,
    option: Option<AccurateEcn>,
    /// Whether the next segment is the first without SYN.
    first: bool,
    /// Whether that segment acknowledges our SYN-ACK.
    passive: bool,
    /// Reported marked packets (s.cep) and bytes (s.ceb).
    ce_packets: u32,
    ce_bytes: u32,
    /// Bytes counted by estimate since the last option.
    estimated_bytes: u64,
    option_trusted: bool,
    /// Whether the peer's feedback is invalid and therefore ignored.
    deaf: bool,
}

impl EcnSender {
    /// Creates the sender's half. At a client, `answer` contains the flags of the SYN-ACK.
    pub(crate) fn new(feedback: EcnFeedback, answer: Option<u16>, counts: bool) -> EcnSender {
        let told = answer.map(ace);
        // Our SYN was sent as "not ECT"; 101 is reserved and counts as "not ECT" received.
        let unchanged = told.is_none_or(|bits| bits == handshake_bits(EcnCodepoint::NotEct) || bits == 0b101);
        EcnSender {
            feedback,
            capable: feedback != EcnFeedback::Accurate || unchanged,
            reduced: false,
            counts,
            answered_until: 0,
            flags: 0,
            option: None,
            first: true,
            passive: answer.is_none(),
            ce_packets: FIRST_CE_PACKETS,
            ce_bytes: 0,
            estimated_bytes: 0,
            option_trusted: true,
            deaf: false,
        }
    }

    /// Processes a retransmitted or different SYN of the peer (RFC 9768 section 3.1.5, for `accurate` servers; RFC 3168
    /// section 6.1.1). If it does not request ECN, we no longer send ECN-capable packets, but continue the feedback.
    /// Returns whether the two SYNs are compatible: one must not request classic and the other accurate feedback.
    #[must_use]
    pub(crate) fn on_second_syn(&mut self, header: &TcpHeader, accurate: bool) -> bool {
        let asked = header.flags & ALL_FLAGS;
        let classic = flags::CWR | flags::ECE;
        if self.feedback == EcnFeedback::Accurate {
            self.capable &= asked != 0;
            return asked != classic;
        }
        self.capable &= asked & classic == classic;
        !accurate || asked != ALL_FLAGS
    }

    /// Disables ECN-capable packets after we have sent a SYN without an ECN request.
    pub(crate) fn forbid(&mut self) {
        self.capable = false;
    }

    /// Records the ECN fields of a segment.
    pub(crate) fn note(&mut self, header: &TcpHeader, option: Option<&AccurateEcn>) {
        self.flags = header.flags;
        self.option = option.copied().filter(|_| self.option_trusted);
        if self.first && self.feedback == EcnFeedback::Accurate {
            self.check_first(header);
        }
        self.first = false;
    }

    /// Checks the first segment without SYN (RFC 9768 sections 3.2.2.1 and 3.2.2.4). If it only acknowledges our
    /// SYN-ACK, it reports the codepoint of the SYN-ACK. It also shows whether a middlebox clears the field.
    fn check_first(&mut self, header: &TcpHeader) {
        let bits = ace(header.flags);
        let bare = header.payload_bytes == 0 && header.sack_count == 0 && !header.has_flag(flags::FIN);
        if bits == 0 {
            self.capable = false;
            // Table 4: in a report of the codepoint of our SYN-ACK, zero means that the client counts nothing.
            self.deaf = self.passive && bare;
        } else if self.passive && bare {
            self.capable &= !matches!(bits, 0b011 | 0b100 | 0b110);
            self.ce_packets = FIRST_CE_PACKETS + u32::from(bits == 0b110);
            // The field is evaluated here; it is not a counter.
            self.flags = self.flags & !ALL_FLAGS | ace_flags(self.ce_packets);
        }
        // Counters with initial value one cannot be zero (section 3.2.3.2.4). The first field is present in every
        // length.
        let zeroed = |option: AccurateEcn| {
            let first = if option.ect1_first { option.ect1_bytes } else { option.ect0_bytes };
            option.fields > 0 && first == 0
        };
        if self.option.is_some_and(zeroed) {
            self.option_trusted = false;
            self.option = None;
        }
    }

    /// Whether data may be sent as ECN-capable.
    pub(crate) fn is_capable(&self) -> bool {
        self.capable
    }

    /// Records a reduction, for any reason, as the response to marks of all data sent before `next`.
    pub(crate) fn on_reduction(&mut self, next: u64) {
        self.answered_until = next;
        self.reduced = self.feedback != EcnFeedback::Accurate;
    }

    /// Processes the undo of a reduction.
    pub(crate) fn withdraw(&mut self) {
        self.reduced = false;
    }

    /// Returns whether the next new data carries CWR, and resets it.
    pub(crate) fn take_reduced(&mut self) -> bool {
        std::mem::take(&mut self.reduced)
    }

    /// Returns the marks reported by the newest acknowledgment, which newly acknowledges `bytes`.
    pub(crate) fn marks(&mut self, bytes: u64, mss_bytes: u64) -> CeFeedback {
        let mss_bytes = mss_bytes.max(1);
        if bytes == 0 {
            return CeFeedback::default();
        }
        if self.feedback == EcnFeedback::Accurate {
            return self.accurate_marks(bytes, mss_bytes);
        }
        if self.flags & flags::ECE == 0 {
            return CeFeedback::default();
        }
        CeFeedback { packets: bytes.div_ceil(mss_bytes), bytes }
    }

    /// Evaluates accurate feedback (RFC 9768 appendix A.2).
    fn accurate_marks(&mut self, acked_bytes: u64, mss_bytes: u64) -> CeFeedback {
        if self.deaf {
            return CeFeedback::default();
        }
        let reported = self.option.take().filter(|option| option.fields >= 2);
        let newly_marked_bytes =
            reported.map(|option| u64::from(option.ce_bytes.wrapping_sub(self.ce_bytes) & BYTE_MASK));
        let least = u64::from(ace(self.flags).wrapping_sub(self.ce_packets) & 7);
        let acked_packets = acked_bytes.div_ceil(mss_bytes);
        let most = if acked_packets > least { least + (acked_packets - least) / 8 * 8 } else { least };
        let packets = match newly_marked_bytes {
            // Segments of at most half the usual size: the field has not wrapped.
            Some(bytes) if bytes / most.max(1) < mss_bytes / 2 => least,
            _ => most,
        };
        self.ce_packets = self.ce_packets.wrapping_add(packets as u32);
        if most == 0 && self.estimated_bytes == 0 && newly_marked_bytes.is_some_and(|bytes| bytes > 0) {
            // Marked bytes without a marked packet: the path changes the feedback (section 3.2.3.2.5).
            self.capable = false;
        }
        let bytes = match (reported, newly_marked_bytes) {
            (Some(option), Some(bytes)) => {
                self.ce_bytes = option.ce_bytes;
                bytes.saturating_sub(std::mem::take(&mut self.estimated_bytes))
            }
            _ => {
                let estimate = packets.saturating_mul(mss_bytes).min(acked_bytes);
                self.estimated_bytes += estimate;
                estimate
            }
        };
        CeFeedback { packets, bytes }
    }
}

/// The AccECN option of a segment, if present.
pub(crate) fn option_of<'a>(header: &TcpHeader, side: Option<&'a SegmentOptions>) -> Option<&'a AccurateEcn> {
    side.filter(|_| header.options & options::ACCURATE_ECN != 0).map(|side| &side.accurate_ecn)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: u16 = flags::AE;
    const W: u16 = flags::CWR;
    const E: u16 = flags::ECE;
    const CLASSIC: Option<EcnFeedback> = Some(EcnFeedback::Classic);
    const ACCURATE: Option<EcnFeedback> = Some(EcnFeedback::Accurate);

    #[test]
    fn server_negotiates_ecn_by_table_2_of_rfc_9768() {
        // A SYN with 111 requests accurate feedback, 011 classic, 000 none; any other value counts as 111 (section
        // 3.1.3).
        for (syn, agreed) in [
            (0, None),
            (W | E, CLASSIC),
            (A | W | E, ACCURATE),
            (A, ACCURATE),
            (A | W, ACCURATE),
            (A | E, ACCURATE),
            (W, ACCURATE),
            (E, ACCURATE),
        ] {
            assert_eq!(agree_on_syn(EcnFeedback::Accurate, flags::SYN | syn), agreed, "{syn:x}");
        }
        // A server of RFC 3168 evaluates two flags.
        for (syn, agreed) in [(0, None), (W | E, CLASSIC), (A | W | E, CLASSIC), (A, None), (W, None), (E, None)] {
            assert_eq!(agree_on_syn(EcnFeedback::Classic, flags::SYN | syn), agreed, "{syn:x}");
        }
    }

    #[test]
    fn client_negotiates_ecn_by_table_2_of_rfc_9768() {
        for (answer, agreed, unchanged) in [
            (W, ACCURATE, true),
            (W | E, ACCURATE, false),
            (A, ACCURATE, false),
            (A | W, ACCURATE, false),
            // Reserved: handled as if the SYN had arrived unchanged.
            (A | E, ACCURATE, true),
            (E, CLASSIC, true),
            (0, None, true),
            (A | W | E, None, true),
        ] {
            assert_eq!(agree_on_syn_ack(EcnFeedback::Accurate, flags::SYN | flags::ACK | answer), agreed, "{answer:x}");
            if let Some(agreed) = agreed {
                assert_eq!(EcnSender::new(agreed, Some(answer), false).is_capable(), unchanged, "{answer:x}");
            }
        }
        for (answer, agreed) in [(E, CLASSIC), (0, None), (W | E, None), (W, None), (A | E, CLASSIC)] {
            assert_eq!(agree_on_syn_ack(EcnFeedback::Classic, answer), agreed, "{answer:x}");
        }
    }

    #[test]
    fn handshake_codepoints_are_encoded_by_tables_2_and_3() {
        for (codepoint, bits) in [
            (EcnCodepoint::NotEct, 0b010),
            (EcnCodepoint::Ect1, 0b011),
            (EcnCodepoint::Ect0, 0b100),
            (EcnCodepoint::Ce, 0b110),
        ] {
            assert_eq!(handshake_bits(codepoint), bits);
        }
        for bits in 0..8 {
            assert_eq!(ace(ace_flags(bits)), bits);
        }
        assert_eq!(ace_flags(0b100), A);
        assert_eq!(ace_flags(0b001), E);
    }

    #[test]
    fn first_acknowledgment_is_evaluated_by_table_4() {
        // Bits, whether data may be sent as ECN-capable, and the initial count of marked packets.
        for (bits, capable, count) in [
            (0b000, false, 5),
            (0b001, true, 5),
            (0b010, true, 5),
            (0b011, false, 5),
            (0b100, false, 5),
            (0b101, true, 5),
            (0b110, false, 6),
            (0b111, true, 5),
        ] {
            let mut sender = EcnSender::new(EcnFeedback::Accurate, None, false);
            sender.note(&TcpHeader { flags: flags::ACK | ace_flags(bits), ..TcpHeader::default() }, None);
            assert_eq!((sender.is_capable(), sender.ce_packets), (capable, count), "{bits:b}");
        }
        // With payload the field is already a counter.
        let mut sender = EcnSender::new(EcnFeedback::Accurate, None, false);
        let header = TcpHeader { flags: flags::ACK | ace_flags(0b110), payload_bytes: 1, ..TcpHeader::default() };
        sender.note(&header, None);
        assert!(sender.is_capable());
        assert_eq!(sender.marks(1000, 1000), CeFeedback { packets: 1, bytes: 1000 });
    }

    /// A sender in the middle of a connection whose last reported count is `count`.
    fn told(count: u32) -> EcnSender {
        let mut sender = EcnSender::new(EcnFeedback::Accurate, Some(W), false);
        sender.first = false;
        sender.ce_packets = count;
        sender
    }

    fn header(count: u32) -> TcpHeader {
        TcpHeader { flags: flags::ACK | ace_flags(count & 7), ..TcpHeader::default() }
    }

    #[test]
    fn field_is_evaluated_as_the_safest_likely_case() {
        // RFC 9768 appendix A.2.1: newlyAckedPkt - ((newlyAckedPkt - d.cep) mod 8). Previous count, current field,
        // acknowledged segments, marks.
        for (before, field, segments, marks) in [
            (5, 5, 2, 0),
            (5, 6, 2, 1),
            (5, 0, 4, 3),
            (6, 5, 7, 7),
            // 8 - ((8 - 1) mod 8) = 1, 9 - ((9 - 1) mod 8) = 9.
            (5, 6, 8, 1),
            (5, 6, 9, 9),
            // 10 - ((10 - 2) mod 8) = 10, 20 - ((20 - 0) mod 8) = 16.
            (5, 7, 10, 10),
            (5, 5, 20, 16),
            // Fewer segments than marks: some were acknowledged before.
            (5, 1, 2, 4),
        ] {
            let mut sender = told(before);
            sender.note(&header(field), None);
            assert_eq!(sender.marks(segments * 1000, 1000).packets, marks, "{before} {field} {segments}");
            assert_eq!(sender.ce_packets & 7, field);
        }
    }

    #[test]
    fn option_bytes_show_whether_the_field_wrapped() {
        // Ten segments acknowledged, the field two higher: two marks or ten. 2000 bytes in ten segments would be far
        // from full segments; 10 000 would not.
        for (bytes, packets) in [(2_000, 2), (10_000, 10)] {
            let mut sender = told(5);
            let option = AccurateEcn { ect0_bytes: 1, ce_bytes: bytes, ect1_bytes: 1, fields: 3, ect1_first: false };
            sender.note(&header(7), Some(&option));
            assert_eq!(sender.marks(10_000, 1000), CeFeedback { packets, bytes: u64::from(bytes) });
        }
    }

    #[test]
    fn bytes_estimated_without_the_option_count_once_and_counters_wrap() {
        let mut sender = told(5);
        sender.ce_bytes = BYTE_MASK - 999;
        sender.note(&header(6), None);
        assert_eq!(sender.marks(2_000, 1000), CeFeedback { packets: 1, bytes: 1000 });
        // One more mark in between: 2000 bytes since the last option, 1000 of them estimated.
        let option = AccurateEcn { ect0_bytes: 1, ce_bytes: 1_000, ect1_bytes: 1, fields: 2, ect1_first: false };
        sender.note(&header(7), Some(&option));
        assert_eq!(sender.marks(2_000, 1000), CeFeedback { packets: 1, bytes: 1000 });
        sender.note(&header(7), Some(&option));
        assert_eq!(sender.marks(2_000, 1000), CeFeedback::default());
    }

    #[test]
    fn acknowledgment_of_no_new_data_is_not_evaluated() {
        // A reordered older one would look like seven marks.
        let mut sender = told(6);
        sender.note(&header(5), None);
        assert_eq!(sender.marks(0, 1000), CeFeedback::default());
        sender.note(&header(6), None);
        assert_eq!(sender.marks(1000, 1000), CeFeedback::default());
    }

    #[test]
    fn third_marked_pure_acknowledgment_triggers_an_acknowledgment() {
        let mut receiver = EcnReceiver::new(EcnFeedback::Accurate, None);
        let bare = header(5);
        assert_eq!(receiver.on_segment(&bare, EcnCodepoint::Ce, None), AckRequest::None);
        assert_eq!(receiver.on_segment(&bare, EcnCodepoint::Ce, None), AckRequest::None);
        assert_eq!(receiver.on_segment(&bare, EcnCodepoint::Ce, None), AckRequest::AckFirst);
        // 5 + 3 = 8.
        assert_eq!(receiver.flags(), 0);
        assert_eq!(receiver.on_segment(&bare, EcnCodepoint::Ce, None), AckRequest::None);
    }

    #[test]
    fn marked_bytes_without_a_marked_packet_disable_ecn_capable_packets() {
        let option = |ce_bytes| AccurateEcn { ect0_bytes: 1, ce_bytes, ect1_bytes: 1, fields: 3, ect1_first: false };
        let mut sender = told(5);
        sender.note(&header(6), Some(&option(1_000)));
        let _ = sender.marks(2_000, 1000);
        assert!(sender.is_capable(), "one packet of 1000 bytes");
        sender.note(&header(6), None);
        let _ = sender.marks(2_000, 1000);
        sender.note(&header(6), Some(&option(1_000)));
        let _ = sender.marks(2_000, 1000);
        assert!(sender.is_capable(), "no new data");
        sender.note(&header(6), Some(&option(2_000)));
        let _ = sender.marks(2_000, 1000);
        assert!(!sender.is_capable(), "1000 bytes more, but no packet; two segments cannot make the field wrap");
    }

    #[test]
    fn feedback_of_a_client_without_counters_is_ignored() {
        // Table 4, 000 on a pure acknowledgment of our SYN-ACK: neither ECN-capable packets nor responses to marks.
        let mut sender = EcnSender::new(EcnFeedback::Accurate, None, false);
        sender.note(&header(0), None);
        assert!(!sender.is_capable());
        sender.note(&header(7), None);
        assert_eq!(sender.marks(3_000, 1000), CeFeedback::default());
        // With payload the field is a cleared counter. The RFC only advises against ECN-capable packets; marks still
        // count here.
        let mut sender = EcnSender::new(EcnFeedback::Accurate, None, false);
        sender.note(&TcpHeader { payload_bytes: 1, ..header(0) }, None);
        assert!(!sender.is_capable());
        sender.note(&header(7), None);
        assert_eq!(sender.marks(3_000, 1000), CeFeedback { packets: 2, bytes: 2_000 });
    }

    #[test]
    fn second_syn_with_another_request_changes_ecn() {
        // RFC 9768 section 3.1.5. Negotiated feedback, whether the server supports accurate feedback, the second SYN;
        // whether the connection continues, and whether data may be ECN-capable.
        let (accurate, classic) = (EcnFeedback::Accurate, EcnFeedback::Classic);
        for (agreed, knows, syn, goes_on, capable) in [
            (accurate, true, A | W | E, true, true),
            (accurate, true, 0, true, false),
            (accurate, true, W | E, false, true),
            (classic, true, W | E, true, true),
            (classic, true, A | W | E, false, true),
            (classic, false, A | W | E, true, true),
            (classic, true, 0, true, false),
        ] {
            let mut sender = EcnSender::new(agreed, None, false);
            let second = TcpHeader { flags: flags::SYN | syn, ..TcpHeader::default() };
            assert_eq!(sender.on_second_syn(&second, knows), goes_on, "{agreed:?} {syn:x}");
            assert_eq!(sender.is_capable(), capable, "{agreed:?} {syn:x}");
        }
    }

    #[test]
    fn marked_syn_acks_count_once() {
        // RFC 9768 section 3.2.2.2: from five to six, and not beyond.
        let mut receiver = EcnReceiver::new(EcnFeedback::Accurate, Some(EcnCodepoint::NotEct));
        assert_eq!(receiver.flags(), ace_flags(5));
        receiver.on_repeated_answer(EcnCodepoint::Ce);
        assert_eq!(receiver.flags(), ace_flags(6));
        receiver.on_repeated_answer(EcnCodepoint::Ce);
        assert_eq!(receiver.flags(), ace_flags(6));
        let mut receiver = EcnReceiver::new(EcnFeedback::Accurate, Some(EcnCodepoint::Ce));
        receiver.on_repeated_answer(EcnCodepoint::Ce);
        assert_eq!(receiver.flags(), ace_flags(6));
    }

    #[test]
    fn option_of_every_length_and_order_is_evaluated() {
        // RFC 9768 table 5. Absent fields are zero here, which is not a zeroed counter.
        let full = AccurateEcn { ect0_bytes: 1, ce_bytes: 1_000, ect1_bytes: 1, fields: 3, ect1_first: false };
        let second = AccurateEcn { ect1_first: true, ..full };
        for (option, bytes) in [
            (full, 1_000),
            (AccurateEcn { ect1_bytes: 0, fields: 2, ..full }, 1_000),
            (AccurateEcn { ect1_bytes: 0, ce_bytes: 0, fields: 1, ..full }, 500),
            (AccurateEcn { fields: 0, ..AccurateEcn::default() }, 500),
            (second, 1_000),
            (AccurateEcn { ect0_bytes: 0, fields: 2, ..second }, 1_000),
            (AccurateEcn { ect0_bytes: 0, ce_bytes: 0, fields: 1, ..second }, 500),
        ] {
            let mut sender = EcnSender::new(EcnFeedback::Accurate, Some(W), false);
            sender.note(&header(6), Some(&option));
            // One mark of two segments of 500 bytes: by the field alone, 500 marked bytes.
            assert_eq!(sender.marks(1_000, 500), CeFeedback { packets: 1, bytes }, "{option:?}");
        }
    }

    #[test]
    fn zeroed_option_is_ignored() {
        let mut sender = EcnSender::new(EcnFeedback::Accurate, Some(W), false);
        let zero = AccurateEcn { fields: 3, ..AccurateEcn::default() };
        sender.note(&header(6), Some(&zero));
        assert_eq!(sender.marks(2_000, 1000), CeFeedback { packets: 1, bytes: 1000 });
    }
}
