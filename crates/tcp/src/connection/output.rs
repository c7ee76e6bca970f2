//! What a connection sends: which segment next, and what it says (RFC 9293 section 3.10.7.4, RFC 7323, RFC 2018).
//!
//! **Model.** The host asks for segments until there is none. Whatever is out of the ordinary goes first: a reset, a SYN,
//! a keep-alive probe, acknowledgements that must not wait for data. Then comes data as far as the sending
//! half lets it leave, each segment with the acknowledgement, and last an acknowledgement of its own if one is still due.

use super::{Connection, pending};
use crate::sender::Outgoing;
use crate::status::State;
use bytes::Bytes;
use fullpipe_units::{Codepoint, Instant};
use fullpipe_wire::tcp::{MAX_SACK_BLOCKS, flags};
use fullpipe_wire::{SegmentOptions, TcpHeader};

/// A segment to send. Make one and hand it to every [`Connection::poll_transmit`].
#[derive(Clone, Debug, Default)]
pub struct Transmit {
    /// The header.
    pub header: TcpHeader,
    /// What goes with it.
    pub beside: Beside,
}

/// What goes with the header of a segment to send.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Options beside the header; hold as far as the header says so.
    pub options: SegmentOptions,
    /// The payload where it consists of bytes; `None` for a mere length (`header.payload_bytes`).
    pub payload: Option<Bytes>,
    /// ECN bits of the packet that carries it.
    pub codepoint: Codepoint,
}

/// Segments that leave together: see [`Connection::poll_burst`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    /// How many.
    pub segments: u32,
    /// Whether [`Connection::poll_segment`] has nothing to send after them.
    pub is_all: bool,
    /// The header of the first. In each of the next, the sequence number is larger by `payload_bytes`.
    pub header: TcpHeader,
}

impl Connection {
    /// Fills in the next segment to send now, or says that there is none. To be called until it does.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Transmit) -> bool {
        self.poll_segment(now, &mut out.header, &mut out.beside)
    }

    /// The same for a host that wants the header where its packet will lie. Copying a header whose fields were stored
    /// just before, in words that several of them share, stalled the processor four times a segment.
    #[inline]
    pub fn poll_segment(&mut self, now: Instant, header: &mut TcpHeader, out: &mut Beside) -> bool {
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
    pub fn is_silent(&self) -> bool {
        self.pending == 0 && self.open && self.sender.is_idle()
    }

    /// Whether [`Connection::poll_segment`] would return at most an acknowledgement without anything unusual: so it is with an end
    /// that only receives. [`Connection::poll_acknowledgement`] then does the same.
    #[inline(always)]
    pub fn sends_only_acknowledgements(&self) -> bool {
        self.pending & !pending::ACK == 0 && self.open && self.sender.is_idle()
    }

    /// Whether an acknowledgement is to be sent.
    #[inline(always)]
    pub fn owes_acknowledgement(&self) -> bool {
        self.pending & pending::ACK != 0
    }

    /// Fills in the acknowledgement that is to be sent now. Neither deadline but that of the acknowledgement changes.
    #[inline]
    pub fn poll_acknowledgement(&mut self, now: Instant, header: &mut TcpHeader, out: &mut Beside) {
        debug_assert!(self.sends_only_acknowledgements() && self.owes_acknowledgement());
        self.pending &= !pending::ACK;
        self.fill_ack(now, header, out);
    }

    /// Segments of new data that may leave now, if nothing else is to be considered: all have full size, and their headers differ
    /// in the sequence number alone. What it does not return, [`Connection::poll_segment`] does. An acknowledgement mostly
    /// releases two segments: together they take 90 instructions less each than one by one.
    #[inline]
    pub fn poll_burst(&mut self, now: Instant) -> Burst {
        let mut burst = Burst::default();
        if self.sender.is_idle() || self.pending & !pending::ACK != 0 || !self.open || self.receiver.is_answer(now) {
            return burst;
        }
        let sent = self.sender.send_burst(now);
        if sent.segments > 0 {
            burst.segments = sent.segments;
            let mut beside = Beside::default();
            self.fill_header(now, self.numbering.to_wire(sent.start), &mut burst.header, &mut beside);
            burst.header.payload_bytes = sent.payload_bytes as u16;
            self.pending &= !pending::ACK;
        }
        burst.is_all = sent.is_all && self.pending == 0;
        burst
    }

    #[cold]
    fn poll_unusual(&mut self, now: Instant, header: &mut TcpHeader, out: &mut Beside) -> bool {
        if self.pending & pending::RESET != 0 {
            self.pending &= !pending::RESET;
            *header = self.rare().reply;
            out.codepoint = Codepoint::NotEct;
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

    /// The header that every segment of an open connection has.
    #[inline(always)]
    fn fill_header(&mut self, now: Instant, sequence: u32, header: &mut TcpHeader, out: &mut Beside) {
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
        out.codepoint = Codepoint::NotEct;
        self.receiver.on_ack_sent();
    }

    /// What an acknowledgement would have said that was being delayed when the marks began or ended (DCTCP).
    #[cold]
    fn fill_earlier_ack(&mut self, now: Instant, number: u64, echo: bool, header: &mut TcpHeader, out: &mut Beside) {
        let since = self.receiver.next - number;
        self.fill_header(now, self.numbering.to_wire(self.sender.next), header, out);
        header.acknowledgement = self.peer_numbering.to_wire(number);
        // Rounded once, as in every other segment: rounded apart, the two would take the edge of the window back.
        header.window = ((self.receiver.window_bytes() + since) >> self.window_shift).min(65_535) as u16;
        header.flags = flags::ACK | if echo { flags::ECE } else { 0 };
    }

    #[inline]
    fn fill_ack(&mut self, now: Instant, header: &mut TcpHeader, out: &mut Beside) {
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
    pub(super) fn fill_data(&mut self, now: Instant, outgoing: &Outgoing, header: &mut TcpHeader, out: &mut Beside) {
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

    /// New data: ECN-capable, and the first after a reduction says so (RFC 3168 section 6.1.2).
    #[inline(never)]
    fn fill_ecn(&mut self, outgoing: &Outgoing, header: &mut TcpHeader, out: &mut Beside) {
        let Some(ecn) = &mut self.sender.ecn else { return };
        header.flags |= ecn.receiver.flags();
        if !outgoing.fresh() || outgoing.payload_bytes == 0 || !ecn.sender.is_capable() {
            return;
        }
        out.codepoint = match self.sender.driver.control.codepoint {
            Codepoint::NotEct => Codepoint::Ect0,
            chosen => chosen,
        };
        if ecn.sender.take_reduced() {
            header.flags |= flags::CWR;
        }
    }

    #[cold]
    pub(super) fn fill_bytes(&mut self, outgoing: &Outgoing, out: &mut Beside) {
        out.payload = self.sender.bytes.as_ref().and_then(|bytes| bytes.slice(outgoing.start, outgoing.payload_bytes));
    }
}
