//! Output of a connection: selection and contents of the next segment (RFC 9293 section 3.10.7.4, RFC 7323, RFC 2018).
//!
//! **Model.** The host polls for segments until there is none. Special segments are sent first: a reset, a SYN, a
//! keep-alive probe, and acknowledgments that must not wait for data. Data follows as far as the sender permits, with
//! an acknowledgment in each segment. A pure acknowledgment is sent last, if one is still due.

use super::{Connection, pending};
use crate::sender::OutgoingSegment;
use crate::status::State;
use bytes::Bytes;
use fullpipe_units::{EcnCodepoint, Instant};
use fullpipe_wire::tcp::{MAX_SACK_BLOCKS, flags};
use fullpipe_wire::{SegmentOptions, TcpHeader};

/// A segment to send. Create one and pass it to every [`Connection::poll_transmit`].
#[derive(Clone, Debug, Default)]
pub struct Transmit {
    /// The header.
    pub header: TcpHeader,
    /// Options, payload and ECN field.
    pub beside: SegmentContents,
}

/// The parts of an outgoing segment that are not in its [`TcpHeader`].
#[derive(Clone, Debug, Default)]
pub struct SegmentContents {
    /// Options outside of the header. Only options that the header indicates are valid.
    pub options: SegmentOptions,
    /// The payload if it consists of bytes; `None` if only its length is modeled (`header.payload_bytes`).
    pub payload: Option<Bytes>,
    /// ECN field of the packet.
    pub codepoint: EcnCodepoint,
}

/// Segments that are sent together: see [`Connection::poll_burst`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    /// Number of segments.
    pub segments: u32,
    /// Whether [`Connection::poll_segment`] has nothing to send after these segments.
    pub is_all: bool,
    /// The header of the first segment. The sequence number of each following segment is larger by `payload_bytes`.
    pub header: TcpHeader,
}

impl Connection {
    /// Fills in the next segment to send. Returns `false` if there is none. Must be called until it returns `false`.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Transmit) -> bool {
        self.poll_segment(now, &mut out.header, &mut out.beside)
    }

    /// Equivalent to [`Connection::poll_transmit`], but writes the header directly to its destination. A copy of a
    /// header immediately after its fields are stored stalls the processor four times per segment.
    #[inline]
    pub fn poll_segment(&mut self, now: Instant, header: &mut TcpHeader, out: &mut SegmentContents) -> bool {
        if self.pending & pending::UNUSUAL != 0 && self.poll_unusual(now, header, out) {
            return true;
        }
        if !self.open {
            return self.poll_early(now, header, out);
        }
        if let Some(outgoing) = self.sender.poll(&self.config, now) {
            self.fill_data(now, &outgoing, header, out);
            return true;
        }
        if self.pending & pending::ACK != 0 {
            self.pending &= !pending::ACK;
            self.fill_ack(now, header, out);
            return true;
        }
        false
    }

    /// Whether [`Connection::poll_segment`] would return `false` and change nothing.
    #[inline(always)]
    pub fn has_nothing_to_send(&self) -> bool {
        self.pending == 0 && self.open && self.sender.is_idle()
    }

    /// Whether [`Connection::poll_segment`] would return no segment other than a pure acknowledgment, as at an endpoint
    /// that only receives. [`Connection::poll_acknowledgement`] then has the same effect.
    #[inline(always)]
    pub fn sends_only_acknowledgements(&self) -> bool {
        self.pending & !pending::ACK == 0 && self.open && self.sender.is_idle()
    }

    /// Whether an acknowledgment is to be sent.
    #[inline(always)]
    pub fn is_ack_pending(&self) -> bool {
        self.pending & pending::ACK != 0
    }

    /// Fills in the pending acknowledgment. Must be called only if [`Connection::sends_only_acknowledgements`] and
    /// [`Connection::is_ack_pending`] return true. Only the deadline of the acknowledgment changes.
    #[inline]
    pub fn poll_acknowledgement(&mut self, now: Instant, header: &mut TcpHeader, out: &mut SegmentContents) {
        debug_assert!(self.sends_only_acknowledgements() && self.is_ack_pending());
        self.pending &= !pending::ACK;
        self.fill_ack(now, header, out);
    }

    /// Returns the segments of new data that may be sent now. The burst is empty if another segment must be sent first.
    /// All segments have full size, and their headers differ only in the sequence number. [`Connection::poll_segment`]
    /// returns all other segments. An acknowledgment usually releases two segments; one burst takes 90 fewer
    /// instructions per segment than separate calls.
    #[inline]
    pub fn poll_burst(&mut self, now: Instant) -> Burst {
        let mut burst = Burst::default();
        if self.sender.is_idle() || self.pending & !pending::ACK != 0 || !self.open || self.receiver.is_answer(now) {
            return burst;
        }
        let sent = self.sender.send_burst(now);
        if sent.segments > 0 {
            burst.segments = sent.segments;
            let mut beside = SegmentContents::default();
            self.fill_header(now, self.numbering.to_wire(sent.start), &mut burst.header, &mut beside);
            burst.header.payload_bytes = sent.payload_bytes as u16;
            self.pending &= !pending::ACK;
        }
        burst.is_all = sent.is_all && self.pending == 0;
        burst
    }

    #[cold]
    fn poll_unusual(&mut self, now: Instant, header: &mut TcpHeader, out: &mut SegmentContents) -> bool {
        if self.pending & pending::RESET != 0 {
            self.pending &= !pending::RESET;
            *header = self.rare().reply;
            out.codepoint = EcnCodepoint::NotEct;
            out.payload = None;
            return true;
        }
        if self.pending & pending::SYN != 0 {
            self.pending &= !pending::SYN;
            self.fill_syn(now, header, out);
            return true;
        }
        if self.pending & pending::KEEP_ALIVE != 0 {
            self.pending &= !pending::KEEP_ALIVE;
            let sequence = self.numbering.to_wire(self.sender.next).wrapping_sub(1);
            self.fill_header(now, sequence, header, out);
            if let Some(ecn) = &mut self.sender.ecn {
                header.flags |= ecn.receiver.flags();
            }
            return true;
        }
        if let Some(ecn) = &mut self.sender.ecn
            && let Some((number, echo)) = ecn.receiver.take_earlier()
            && self.open
        {
            self.fill_earlier_ack(now, number, echo, header, out);
            return true;
        }
        let again = self.pending & pending::ACK_TWICE;
        if self.pending & (pending::ACK_FIRST | pending::ACK_TWICE) != 0 && self.state != State::Closed {
            self.pending &= !(pending::ACK | pending::ACK_FIRST | pending::ACK_TWICE);
            if again != 0 {
                self.pending |= pending::ACK;
            }
            self.fill_ack(now, header, out);
            return true;
        }
        false
    }

    /// Fills in the header fields of every segment of an open connection.
    #[inline(always)]
    fn fill_header(&mut self, now: Instant, sequence: u32, header: &mut TcpHeader, out: &mut SegmentContents) {
        let window = (self.receiver.window_bytes() >> self.window_shift).min(65_535) as u16;
        let timestamp = if self.options != 0 { self.clock(now) } else { 0 };
        *header = TcpHeader {
            sequence,
            acknowledgement: self.peer_numbering.to_wire(self.receiver.next),
            timestamp,
            timestamp_echo: if self.options != 0 { self.recent_timestamp } else { 0 },
            flags: flags::ACK,
            window,
            payload_bytes: 0,
            mss: 0,
            options: self.options,
            window_scale: 0,
            sack_count: 0,
            other_option_bytes: 0,
        };
        out.payload = None;
        out.codepoint = EcnCodepoint::NotEct;
        self.receiver.on_ack_sent();
    }

    /// Fills in the acknowledgment that was being delayed when marks began or ended (DCTCP).
    #[cold]
    fn fill_earlier_ack(
        &mut self,
        now: Instant,
        number: u64,
        echo: bool,
        header: &mut TcpHeader,
        out: &mut SegmentContents,
    ) {
        let since = self.receiver.next - number;
        self.fill_header(now, self.numbering.to_wire(self.sender.next), header, out);
        header.acknowledgement = self.peer_numbering.to_wire(number);
        // The sum is rounded once, as in every other segment. If its parts were rounded separately, the window's edge
        // would move back.
        header.window = ((self.receiver.window_bytes() + since) >> self.window_shift).min(65_535) as u16;
        header.flags = flags::ACK | if echo { flags::ECE } else { 0 };
    }

    #[inline]
    fn fill_ack(&mut self, now: Instant, header: &mut TcpHeader, out: &mut SegmentContents) {
        let sequence = self.numbering.to_wire(self.sender.next);
        self.fill_header(now, sequence, header, out);
        if self.sender.sack {
            let most = if self.options != 0 { MAX_SACK_BLOCKS - 1 } else { MAX_SACK_BLOCKS };
            header.sack_count = self.receiver.sack_blocks(self.peer_numbering, most, &mut out.options.sacks);
        }
        if let Some(ecn) = &mut self.sender.ecn {
            header.flags |= ecn.receiver.flags();
            ecn.receiver.complete_ack(header, &mut out.options.accurate_ecn);
        }
    }

    #[inline]
    pub(super) fn fill_data(
        &mut self,
        now: Instant,
        outgoing: &OutgoingSegment,
        header: &mut TcpHeader,
        out: &mut SegmentContents,
    ) {
        self.fill_header(now, self.numbering.to_wire(outgoing.start), header, out);
        self.receiver.on_data_sent(now);
        self.pending &= !pending::ACK;
        header.payload_bytes = outgoing.payload_bytes as u16;
        if self.sender.bytes.is_some() && outgoing.payload_bytes > 0 {
            self.fill_bytes(outgoing, out);
        }
        if self.sender.ecn.is_some() {
            self.fill_ecn(outgoing, header, out);
        }
        if outgoing.fin() {
            header.flags |= flags::FIN;
            match self.state {
                State::Established => self.state = State::FinWait1,
                State::CloseWait => self.state = State::LastAck,
                _ => {}
            }
        }
    }

    /// Marks new data as ECN-capable, and sets CWR on the first segment after a reduction (RFC 3168 section 6.1.2).
    #[inline(never)]
    fn fill_ecn(&mut self, outgoing: &OutgoingSegment, header: &mut TcpHeader, out: &mut SegmentContents) {
        let Some(ecn) = &mut self.sender.ecn else { return };
        header.flags |= ecn.receiver.flags();
        if !outgoing.fresh() || outgoing.payload_bytes == 0 || !ecn.sender.is_capable() {
            return;
        }
        out.codepoint = match self.sender.driver.control.codepoint {
            EcnCodepoint::NotEct => EcnCodepoint::Ect0,
            chosen => chosen,
        };
        if ecn.sender.take_reduced() {
            header.flags |= flags::CWR;
        }
    }

    #[cold]
    pub(super) fn fill_bytes(&mut self, outgoing: &OutgoingSegment, out: &mut SegmentContents) {
        out.payload = self.sender.bytes.as_ref().and_then(|bytes| bytes.slice(outgoing.start, outgoing.payload_bytes));
    }
}
