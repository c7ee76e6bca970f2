//! Opening of a connection: LISTEN, SYN-SENT and SYN-RECEIVED (RFC 9293 sections 3.5 and 3.10.7), and the negotiation of options in SYN
//! segments (RFC 7323, RFC 2018).

use super::{Connection, Segment, SegmentContents, event, pending};
use crate::config::{EcnFeedback, EcnMode};
use crate::ecn::{self, EcnReceiver, EcnSender, EcnState};
use crate::sender::LARGEST_MSS;
use crate::sequence::SequenceSpace;
use crate::status::State;
use fullpipe_transport::CloseReason;
use fullpipe_units::{EcnCodepoint, Instant};
use fullpipe_wire::TcpHeader;
use fullpipe_wire::tcp::{flags, options};

/// The MSS if we announce one and the peer does not (RFC 9293 section 3.7.1).
const DEFAULT_MSS: u64 = 536;
/// Minimum payload of segments, even if the peer announces a smaller MSS (Linux `TCP_MIN_SND_MSS`).
pub(super) const SMALLEST_MSS: u64 = 48;
/// Bytes of the timestamp option in every segment.
const TIMESTAMP_BYTES: u64 = 12;

/// State of the handshake, dropped once the connection is open.
#[derive(Debug, Default)]
pub(super) struct HandshakeState {
    /// Time of the first SYN.
    pub(super) begun_at: Instant,
    /// Time of the last SYN.
    pub(super) syn_sent_at: Instant,
    /// Whether this is the passive end, which returns to LISTEN when a handshake is reset.
    pub(super) passive: bool,
    /// Whether both ends offered window scaling.
    pub(super) scaled: bool,
    /// ECN field of the packet with the peer's SYN.
    pub(super) syn_codepoint: EcnCodepoint,
    /// The MSS that the peer announced.
    pub(super) peer_mss: Option<u16>,
}

impl Connection {
    pub(super) fn send_syn(&mut self, now: Instant) {
        self.pending |= pending::SYN;
        let first = self.sender.repair().counts.lost_syns == 0;
        let opening = self.opening.get_or_insert_default();
        opening.syn_sent_at = now;
        if first {
            opening.begun_at = now;
        }
        let give_up_at = self.config.user_timeout.map_or(Instant::NEVER, |most| opening.begun_at.saturating_add(most));
        self.sender.rto_at = now.saturating_add(self.sender.rtt.rto()).min(give_up_at);
    }

    pub(super) fn opening(&mut self) -> &mut HandshakeState {
        self.opening.get_or_insert_default()
    }

    /// Processes a segment in LISTEN (RFC 9293 section 3.10.7.2).
    pub(super) fn arrive_listening(&mut self, now: Instant, segment: &Segment<'_>) {
        let header = segment.header;
        if header.has_flag(flags::RST) {
            return;
        }
        if header.has_flag(flags::ACK) {
            return self.answer_with_reset(header);
        }
        if header.has_flag(flags::SYN) {
            self.take_syn(now, header);
            self.agree_on_ecn(segment);
            self.state = State::SynReceived;
            if self.judge_cookie(segment) {
                self.open_early(now, segment);
            }
            self.send_syn(now);
        }
    }

    /// Processes a segment in SYN-SENT (RFC 9293 section 3.10.7.3).
    pub(super) fn arrive_syn_sent(&mut self, now: Instant, segment: &Segment<'_>) {
        let header = segment.header;
        let acknowledges = header.has_flag(flags::ACK);
        if acknowledges && self.acknowledged_by(header).is_none() {
            return self.answer_with_reset(header);
        }
        if header.has_flag(flags::RST) {
            if acknowledges {
                self.close(CloseReason::Refused);
            }
            return;
        }
        if !header.has_flag(flags::SYN) {
            return;
        }
        self.take_syn(now, header);
        self.agree_on_ecn(segment);
        if acknowledges {
            self.establish(now, segment);
            self.pending |= pending::ACK | pending::ACK_FIRST;
        } else {
            // Simultaneous open: answer with SYN and ACK.
            self.state = State::SynReceived;
            self.send_syn(now);
        }
    }

    /// Processes a SYN in SYN-RECEIVED: a retransmission of the peer's first, or its SYN-ACK in a simultaneous open.
    pub(super) fn arrive_second_syn(&mut self, now: Instant, segment: &Segment<'_>) {
        if !segment.header.has_flag(flags::ACK) {
            // The SYN-ACK reports the codepoint of the newest SYN (RFC 9768 section 3.1.5).
            self.opening().syn_codepoint = segment.codepoint;
            let accurate = self.config.ecn_feedback == EcnFeedback::Accurate;
            if let Some(ecn) = &mut self.sender.ecn
                && !ecn.sender.on_second_syn(segment.header, accurate)
            {
                self.arrive_reset();
                return self.answer_with_reset(segment.header);
            }
            self.pending |= pending::SYN;
        } else if self.complete_open(now, segment) {
            self.pending |= pending::ACK | pending::ACK_FIRST;
        }
    }

    /// Processes the fields and options of the peer's SYN (RFC 9293 section 3.2, RFC 7323, RFC 2018).
    pub(super) fn take_syn(&mut self, now: Instant, header: &TcpHeader) {
        self.peer_numbering = SequenceSpace::from_syn(header.sequence);
        let agreed = |option: u8, ours: bool| ours && header.options & option != 0;
        self.options = 0;
        if agreed(options::TIMESTAMPS, self.config.timestamps) {
            self.options = options::TIMESTAMPS;
            self.recent_timestamp = header.timestamp;
            self.recent_timestamp_at = now;
        }
        self.sender.sack = agreed(options::SACK_PERMITTED, self.config.sack);
        if agreed(options::WINDOW_SCALE, self.config.window_scaling) {
            self.opening().scaled = true;
            self.window_shift = self.config.window_scale();
            self.peer_window_shift = header.window_scale.min(14);
        } else {
            self.opening().scaled = false;
            self.window_shift = 0;
            self.peer_window_shift = 0;
        }
        self.receiver.limit_window(65_535 << self.window_shift);
        self.opening().peer_mss = (header.options & options::MSS != 0).then_some(header.mss);
        // The window of a SYN is never scaled.
        self.sender.window_end = u64::from(header.window);
        self.largest_window = u64::from(header.window);
        self.window_updated_by = 0;
    }

    /// Returns how many bytes after our SYN the segment acknowledges, if its acknowledgment is acceptable.
    fn acknowledged_by(&self, header: &TcpHeader) -> Option<u64> {
        let sent = self.syn_bytes().max(self.sender.next) as i64;
        let offset = self.numbering.to_offset(header.acknowledgement, 0);
        (0..=sent).contains(&offset).then_some(offset as u64)
    }

    /// Negotiates ECN from the flags of the peer's SYN or SYN-ACK (RFC 3168 section 6.1.1, RFC 9768 section 3.1).
    fn agree_on_ecn(&mut self, segment: &Segment<'_>) {
        let Segment { header, codepoint: arrived_as, .. } = *segment;
        let ours = self.config.ecn_feedback;
        self.opening().syn_codepoint = arrived_as;
        let answer = header.has_flag(flags::ACK).then_some(header.flags);
        let agreed = match (answer, self.config.ecn) {
            (Some(flags), EcnMode::Active) => ecn::agree_on_syn_ack(ours, flags),
            (None, EcnMode::Active | EcnMode::Passive) => ecn::agree_on_syn(ours, header.flags),
            _ => None,
        };
        self.plain_options = if agreed.is_some() { u8::MAX } else { self.options };
        let signals = self.sender.driver.controller().requirements();
        let mut counts = signals.ecn_counts;
        if signals.l4s && agreed.is_some_and(|agreed| agreed != EcnFeedback::Accurate) {
            // RFC 9331 section 4.2: without accurate feedback, no packet is sent as ECT(1), and the control responds as Reno.
            self.sender.driver.control.codepoint = EcnCodepoint::Ect0;
            counts = false;
        }
        self.sender.ecn = agreed.map(|agreed| {
            Box::new(EcnState {
                receiver: EcnReceiver::new(agreed, answer.map(|_| arrived_as)),
                sender: EcnSender::new(agreed, answer, counts),
            })
        });
        // If one of our SYNs did not request ECN, we must not send ECN-capable packets (RFC 3168 section 6.1.1). The exception is a
        // client whose server negotiated accurate feedback (RFC 9768 section 3.1.5).
        let certain = answer.is_some() && agreed == Some(EcnFeedback::Accurate);
        let plain_syn = !self.opening().passive && ecn::syn_flags(ours, self.sender.repair().counts.lost_syns) == 0;
        if plain_syn
            && !certain
            && let Some(ecn) = &mut self.sender.ecn
        {
            ecn.sender.forbid();
        }
    }

    /// Processes a retransmitted SYN-ACK in an open connection.
    pub(super) fn note_repeated_answer(&mut self, segment: &Segment<'_>) {
        if self.acknowledged_by(segment.header).is_some()
            && let Some(ecn) = &mut self.sender.ecn
        {
            ecn.receiver.on_repeated_answer(segment.codepoint);
        }
    }

    /// Whether this segment acknowledges our SYN in SYN-RECEIVED. If not, it is answered with a reset.
    pub(super) fn complete_open(&mut self, now: Instant, segment: &Segment<'_>) -> bool {
        if self.acknowledged_by(segment.header).is_none() {
            self.answer_with_reset(segment.header);
            return false;
        }
        self.establish(now, segment);
        true
    }

    /// The negotiated payload of a full segment.
    pub(super) fn agreed_mss(&self) -> u64 {
        let ours = u64::from(self.config.mss_bytes.clamp(1, LARGEST_MSS));
        let room = if self.options != 0 { TIMESTAMP_BYTES } else { 0 };
        let mss = match self.opening.as_ref().and_then(|opening| opening.peer_mss) {
            Some(mss) => ours.min(u64::from(mss).saturating_sub(room)),
            None if self.config.mss_option => ours.min(DEFAULT_MSS),
            None => ours,
        };
        mss.max(SMALLEST_MSS).min(ours)
    }

    /// Completes the handshake.
    pub(super) fn establish(&mut self, now: Instant, segment: &Segment<'_>) {
        let header = segment.header;
        self.state = State::Established;
        self.open = true;
        self.pending &= !pending::SYN;
        let mss = self.agreed_mss();
        let opening = self.opening.take().unwrap_or_default();
        let lost_syns = self.sender.repair().counts.lost_syns;
        let rtt = if lost_syns == 0 {
            Some(now.saturating_since(opening.syn_sent_at))
        } else if self.options != 0 && header.timestamp_echo != 0 {
            Some(self.echo_age(now, header))
        } else {
            None
        };
        let rtt = rtt.filter(|rtt| !rtt.is_zero());
        let sack = self.sender.sack;
        self.begin_life(now);
        if self.is_early() {
            self.end_early();
            return self.sender.end_early(&self.config, now, rtt);
        }
        self.events |= event::CONNECTED;
        self.sender.establish(&self.config, now, mss, rtt, sack, lost_syns);
        if self.syn_bytes() > 0 || self.config.fast_open {
            let taken = self.numbering.to_offset(header.acknowledgement, 0).max(0) as u64;
            self.note_fast_open_answer(segment, taken);
            self.sender.skip_to(taken);
            if taken > 0 {
                self.events |= event::WRITABLE;
            }
        }
    }

    pub(super) fn fill_syn(&mut self, now: Instant, header: &mut TcpHeader, out: &mut SegmentContents) {
        let answer = self.state == State::SynReceived;
        let config = self.config.clone();
        // The first SYN offers all options; the SYN-ACK only those of the SYN.
        let mut offered = 0;
        let mut offer = |option: u8, wanted: bool| {
            if wanted {
                offered |= option;
            }
        };
        offer(options::MSS, config.mss_option);
        offer(options::SACK_PERMITTED, if answer { self.sender.sack } else { config.sack });
        offer(options::TIMESTAMPS, if answer { self.options != 0 } else { config.timestamps });
        let scaled = if answer { self.opening().scaled } else { config.window_scaling };
        offer(options::WINDOW_SCALE, scaled);
        let room = if offered & options::TIMESTAMPS != 0 { TIMESTAMP_BYTES } else { 0 };
        *header = TcpHeader {
            sequence: self.numbering.syn(),
            acknowledgement: if answer { self.peer_numbering.to_wire(self.receiver.next) } else { 0 },
            timestamp: if offered & options::TIMESTAMPS != 0 { self.clock(now) } else { 0 },
            timestamp_echo: if answer && self.options != 0 { self.recent_timestamp } else { 0 },
            flags: if answer { flags::SYN | flags::ACK } else { flags::SYN },
            window: self.receiver.window_bytes().min(65_535) as u16,
            payload_bytes: 0,
            mss: if config.mss_option { (u64::from(config.mss_bytes) + room).min(65_535) as u16 } else { 0 },
            options: offered,
            window_scale: if scaled { config.window_scale() } else { 0 },
            sack_count: 0,
            other_option_bytes: 0,
        };
        out.payload = None;
        out.codepoint = EcnCodepoint::NotEct;
        let lost_syns = self.sender.repair().counts.lost_syns;
        if answer {
            self.grant_fast_open(header, out);
            let syn_codepoint = self.opening().syn_codepoint;
            if let Some(ecn) = &self.sender.ecn {
                let option = &mut out.options.accurate_ecn;
                ecn.receiver.complete_syn_ack(syn_codepoint, lost_syns == 0, header, option);
            }
        } else {
            if config.ecn == EcnMode::Active {
                header.flags |= ecn::syn_flags(config.ecn_feedback, lost_syns);
            }
            if config.fast_open && lost_syns == 0 {
                self.add_fast_open(header, out);
            }
        }
    }
}
