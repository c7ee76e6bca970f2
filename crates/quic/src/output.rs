//! Packet transmission: selects the next packet and the frames in it (RFC 9000 sections 12 to 14 and 17).
//!
//! **Model.** The host polls for datagrams until none is left. Packets without stream data are sent first:
//! CONNECTION_CLOSE, handshake flights, probes, control frames. Then data is sent as far as the congestion window and
//! the pacer permit. Each packet is as full as possible, and contains an acknowledgment if one is due. If an
//! acknowledgment is still due, an ACK-only packet follows last.
//!
//! ACK-only packets are neither limited by the window nor paced.

use crate::Connection;
use crate::connection::unusual;
use crate::rtt::GRANULARITY;
use crate::space::{FrameRecord, SpaceId, flag};
use crate::spare::BufferPool;
use crate::status::State;
use crate::stream::{ControlFrameState, StreamChunk};
use fullpipe_units::{EcnCodepoint, Instant};
use fullpipe_wire::quic::{TAG_BYTES, stream_header_bytes, varint_bytes};
use fullpipe_wire::tcp::MAX_SACK_BLOCKS;
use fullpipe_wire::{
    QuicDatagram, QuicForm, QuicFrame, QuicHeader, QuicPacket, QuicPacketType, SackBlock, SegmentOptions,
};

/// The minimum size in bytes of a datagram with an Initial packet or a path challenge (RFC 9000 sections 14.1 and
/// 8.2.1).
pub(crate) const SMALLEST_DATAGRAM: u32 = 1200;
/// The minimum length in bytes of packet number and payload for header protection (RFC 9001 section 5.4.2).
const SAMPLED: u32 = 4;

/// A datagram to send. Reuse one value for all calls of [`Connection::poll_transmit`], so that its buffers are reused.
#[derive(Clone, Debug, Default)]
pub struct Transmit {
    /// The header.
    pub header: QuicHeader,
    /// The contents of the datagram that the header does not contain.
    pub beside: DatagramContents,
}

/// The contents of a datagram that its header does not contain.
#[derive(Clone, Debug, Default)]
pub struct DatagramContents {
    /// The ranges after the first of an ACK in the short form. The header states how many are valid.
    pub ranges: SegmentOptions,
    /// The packets of the datagram; `None` if the header alone describes the datagram.
    pub datagram: Option<QuicDatagram>,
    /// Buffers for later packets.
    spare: BufferPool,
    /// The UDP payload of the datagram in bytes.
    pub udp_payload_bytes: u32,
    /// The ECN codepoint of the IP packet that contains the datagram.
    pub codepoint: EcnCodepoint,
}

impl DatagramContents {
    /// Stores the buffers of a datagram that is no longer used, for reuse.
    pub fn recycle(&mut self, datagram: QuicDatagram) {
        self.spare.recycle(datagram);
    }
}

/// The result of [`Connection::next_datagram`]: the kind of the next datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextDatagram(Next);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Data of a stream.
    Data(u32),
    /// An ACK-only packet.
    Ack,
    /// Any other datagram. Only the general path determines which, and whether there is one.
    Other,
}

/// A packet that is being assembled.
#[derive(Debug)]
struct Draft {
    frames: Vec<QuicFrame>,
    notes: Vec<FrameRecord>,
    /// The remaining bytes for frames.
    room: u32,
    eliciting: bool,
}

impl Draft {
    fn new(room: u32, spare: &mut BufferPool) -> Draft {
        let frames = spare.frames.pop().unwrap_or_else(|| Vec::with_capacity(2));
        Draft { frames, notes: std::mem::take(&mut spare.notes), room, eliciting: false }
    }

    /// Adds a frame if it fits; returns whether it does.
    fn add(&mut self, frame: QuicFrame, note: FrameRecord) -> bool {
        let bytes = frame.bytes();
        if bytes > self.room {
            return false;
        }
        self.room -= bytes;
        self.eliciting |= frame.is_ack_eliciting();
        self.frames.push(frame);
        self.notes.push(note);
        true
    }
}

impl Connection {
    /// Writes the next datagram to `out`; returns `false` if there is none to send now. Call this function until it
    /// returns `false`.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Transmit) -> bool {
        self.poll_datagram_into(now, &mut out.header, &mut out.beside)
    }

    /// Like [`Connection::poll_transmit`], but writes the header to a separate location.
    #[inline]
    pub fn poll_datagram_into(&mut self, now: Instant, header: &mut QuicHeader, out: &mut DatagramContents) -> bool {
        match self.next_datagram(now) {
            Some(next) => self.fill_datagram(now, next, header, out),
            None => false,
        }
    }

    /// Determines the next datagram, for [`Connection::fill_datagram`]; `None` if there is none. With this function, a
    /// host can allocate memory only when there may be a datagram to send.
    #[inline]
    pub fn next_datagram(&mut self, now: Instant) -> Option<NextDatagram> {
        if self.unusual != 0 {
            return Some(NextDatagram(Next::Other));
        }
        debug_assert!(self.opening.is_none() && self.state == State::Open, "anything else is unusual");
        match self.streams.choose() {
            Some(index) => {
                if self.path.may_send(now) {
                    return Some(NextDatagram(Next::Data(index)));
                }
            }
            None => {
                self.path.stop_for_data();
                if self.streams.is_blocked() || !self.streams.control_due.is_empty() {
                    return Some(NextDatagram(Next::Other));
                }
            }
        }
        self.data.received.is_due(now).then_some(NextDatagram(Next::Ack))
    }

    /// Writes the datagram that [`Connection::next_datagram`] determined; returns `false` if there is no datagram to
    /// send. This must be the next call after [`Connection::next_datagram`].
    #[inline]
    pub fn fill_datagram(
        &mut self,
        now: Instant,
        next: NextDatagram,
        header: &mut QuicHeader,
        out: &mut DatagramContents,
    ) -> bool {
        match next.0 {
            Next::Data(index) => self.send_data(now, index, header, out),
            Next::Ack => {
                self.send_ack(now, header, out);
                true
            }
            Next::Other => self.poll_other(now, header, out),
        }
    }

    /// Writes the next datagram, of any kind.
    #[inline(never)]
    fn poll_other(&mut self, now: Instant, header: &mut QuicHeader, out: &mut DatagramContents) -> bool {
        if self.unusual != 0
            && let Some(decided) = self.poll_unusual(now, header, out)
        {
            return decided;
        }
        if self.opening.is_some() || self.state != State::Open {
            return false;
        }
        match self.streams.choose() {
            Some(index) => {
                if self.path.may_send(now) {
                    return self.send_data(now, index, header, out);
                }
            }
            None => {
                self.path.stop_for_data();
                if (self.streams.is_blocked() || !self.streams.control_due.is_empty()) && self.has_control() {
                    self.unusual |= unusual::CONTROL;
                    if self.path.may_send(now) && self.send_full(now, header, out, false) {
                        return true;
                    }
                }
            }
        }
        if self.data.received.is_due(now) {
            self.send_ack(now, header, out);
            return true;
        }
        self.unusual & unusual::MTU != 0 && self.poll_mtu(now, false, header, out)
    }

    /// Sends a packet with stream data, in the short form if it has only one frame without content.
    #[inline]
    fn send_data(&mut self, now: Instant, index: u32, header: &mut QuicHeader, out: &mut DatagramContents) -> bool {
        if self.data.received.has_fresh() {
            return self.send_full(now, header, out, false);
        }
        let number_bytes = self.data.space.number_bytes();
        let overhead = 1 + u32::from(self.config.connection_id_bytes) + u32::from(number_bytes) + TAG_BYTES;
        let allowed = self.streams.send_limit - self.streams.sent_bytes.min(self.streams.send_limit);
        let room = u32::from(self.mtu.current()) - overhead;
        let Some(stream) = self.streams.get(index) else { return false };
        let id = stream.id;
        let frame_header = stream_header_bytes(id, stream.sending.next_offset());
        let most = u64::from(room - frame_header).min(self.streams.most_at_once(stream));
        let Some(piece) = stream.sending.next_piece(most, allowed) else { return false };
        let bytes = overhead + frame_header + piece.length as u32;
        if stream.sending.has_bytes()
            || frame_header + (piece.length as u32) < room && self.streams.has_more_after(index, &piece)
        {
            return self.send_full(now, header, out, false);
        }
        let number = self.data.space.next_number;
        if piece.offset < stream.sending.sent {
            self.statistics.stream_bytes_resent += piece.length;
        } else {
            self.statistics.stream_bytes_sent += piece.length;
        }
        self.streams.on_sent(index, &piece);
        let codepoint = self.path.codepoint();
        let (sent, sample) = self.path.on_sent(now, u64::from(bytes), number, &self.config);
        self.data.space.next_number += 1;
        self.data.space.push(sent.with_piece(id, &piece), sample);
        self.on_eliciting_sent(now);
        *header = QuicHeader {
            number: number as u32,
            stream: id as u32,
            length: piece.length as u16,
            form: QuicForm::Stream,
            number_bytes,
            fin: piece.fin,
            connection_id: self.peer_connection_id as u8,
            ..QuicHeader::default()
        };
        header.set_offset_or_largest_acked(piece.offset);
        self.fill(out, bytes, codepoint);
        true
    }

    #[inline]
    fn note_piece(&mut self, piece: &StreamChunk, index: u32) {
        let sent_before = self.streams.get(index).map_or(0, |stream| stream.sending.sent);
        if piece.offset < sent_before {
            self.statistics.stream_bytes_resent += piece.length;
        } else {
            self.statistics.stream_bytes_sent += piece.length;
        }
    }

    #[inline]
    fn fill(&mut self, out: &mut DatagramContents, bytes: u32, codepoint: EcnCodepoint) {
        out.datagram = None;
        out.udp_payload_bytes = bytes;
        out.codepoint = codepoint;
        self.statistics.sent_packets += 1;
        self.statistics.sent_datagrams += 1;
        self.statistics.sent_bytes += u64::from(bytes);
        if codepoint != EcnCodepoint::NotEct {
            self.path.on_marked_datagram();
        }
        if self.unusual & unusual::PATH != 0 {
            self.use_path_credit(bytes);
        }
    }

    /// Updates the timers when an ack-eliciting packet is sent.
    #[inline]
    fn on_eliciting_sent(&mut self, now: Instant) {
        self.statistics.eliciting_packets += 1;
        if !self.sent_since_heard {
            self.sent_since_heard = true;
            self.restart_idle(now);
        }
        self.set_timers(now);
    }

    /// Sends an ACK-only packet, in the short form if it fits.
    #[inline]
    fn send_ack(&mut self, now: Instant, header: &mut QuicHeader, out: &mut DatagramContents) {
        let ranges = self.data.received.ranges();
        if ranges.len() > 1 + MAX_SACK_BLOCKS || ranges.is_empty() || self.data.received.ecn().is_some() {
            self.send_full(now, header, out, true);
            return;
        }
        let delay = self.data.received.delay(now, self.config.ack_delay_exponent);
        let number_bytes = self.data.space.number_bytes();
        let (start, end) = ranges[ranges.len() - 1];
        let (largest, first_range) = (end - 1, end - 1 - start);
        let mut bytes = varint_bytes(largest) + varint_bytes(delay) + varint_bytes(first_range) + 2;
        let mut above = start;
        for (block, &(start, end)) in out.ranges.sacks.iter_mut().zip(ranges.iter().rev().skip(1)) {
            *block = SackBlock { start: start as u32, end: (end - 1) as u32 };
            bytes += varint_bytes(above - end - 1) + varint_bytes(end - 1 - start);
            above = start;
        }
        *header = QuicHeader {
            number: self.data.space.next_number as u32,
            stream: delay.min(u64::from(u32::MAX)) as u32,
            first_range: first_range as u32,
            form: QuicForm::Ack,
            number_bytes,
            ranges: (ranges.len() - 1) as u8,
            connection_id: self.peer_connection_id as u8,
            ..QuicHeader::default()
        };
        header.set_offset_or_largest_acked(largest);
        if self.data.received.on_ack_sent(true) {
            // Adds an ack-eliciting frame, so that the peer acknowledges this packet.
            self.note_due(FrameRecord::NotRetransmitted);
        }
        self.data.space.next_number += 1;
        let overhead = 1 + u32::from(self.config.connection_id_bytes) + u32::from(number_bytes) + TAG_BYTES;
        let codepoint = self.path.codepoint();
        if codepoint != EcnCodepoint::NotEct {
            self.path.on_marked_without_record();
        }
        self.fill(out, overhead + bytes, codepoint);
    }

    /// Sends a packet for one of the reasons in [`unusual`], if one is due. Returns `None` if the caller is to continue
    /// with data.
    #[cold]
    #[inline(never)]
    fn poll_unusual(&mut self, now: Instant, header: &mut QuicHeader, out: &mut DatagramContents) -> Option<bool> {
        if self.unusual & unusual::FINISHED != 0 {
            self.unusual &= !unusual::FINISHED;
            self.close_if_done(now);
        }
        if self.unusual & unusual::CLOSING != 0 {
            return Some(self.poll_close(header, out));
        }
        if self.unusual & unusual::OPENING != 0 {
            return Some(self.poll_opening(now, header, out));
        }
        if self.unusual & unusual::PATH != 0 {
            if let Some(packets) = self.poll_path(now) {
                return Some(self.hand_out(header, out, packets));
            }
            if !self.path_allows() {
                self.postpone_ack(now);
                return Some(false);
            }
        }
        if self.unusual & unusual::PROBE != 0 {
            if self.data.probes > 0 {
                self.data.probes -= 1;
                if self.streams.choose().is_none() && self.rare.notes_due.is_empty() {
                    self.repeat_oldest(SpaceId::Data);
                }
                let room = u32::from(self.mtu.current());
                if let Some(packet) = self.build(now, QuicPacketType::OneRtt, room, true, true, &mut out.spare) {
                    let packets = out.spare.one_packet(packet);
                    return Some(self.hand_out(header, out, packets));
                }
            }
            self.unusual &= !unusual::PROBE;
        }
        if self.unusual & (unusual::CONTROL | unusual::DATAGRAM) != 0 {
            if !self.has_control() {
                self.unusual &= !(unusual::CONTROL | unusual::DATAGRAM);
            } else if self.path.may_send(now) && self.send_full(now, header, out, false) {
                return Some(true);
            }
        }
        if self.unusual & unusual::MTU != 0
            && self.rare.probe_waits_since.saturating_add(self.path.rtt.smoothed()) <= now
            && self.poll_mtu(now, true, header, out)
        {
            return Some(true);
        }
        None
    }

    /// Sends a probe of the path's MTU. Data is sent first (`leads` is then false), so that no short response waits for
    /// the window space of a probe. A probe waits at most one round-trip time, because otherwise continuous data would
    /// prevent probes.
    #[cold]
    fn poll_mtu(&mut self, now: Instant, leads: bool, header: &mut QuicHeader, out: &mut DatagramContents) -> bool {
        let may = (leads || self.streams.choose().is_none()) && self.path.window_allows();
        match self.mtu.next_probe(now) {
            Some(bytes) if may && !self.rare.migration.is_validating() => {
                self.rare.probe_waits_since = Instant::NEVER;
                return self.send_mtu_probe(now, bytes, header, out);
            }
            // Waits until the window and the path permit it.
            Some(_) => self.rare.probe_waits_since = self.rare.probe_waits_since.min(now),
            None => {
                self.unusual &= !unusual::MTU;
                self.rare.probe_waits_since = Instant::NEVER;
            }
        }
        false
    }

    /// Postpones the deadline of a due acknowledgment that cannot be sent before another event. Otherwise virtual time
    /// would not advance.
    fn postpone_ack(&mut self, now: Instant) {
        if self.data.received.is_due(now) {
            self.data.received.postpone(now.saturating_add(self.policy.max_delay.max(GRANULARITY)));
        }
    }

    /// Whether control frames or DATAGRAM frames are queued.
    fn has_control(&mut self) -> bool {
        self.streams.limit_due
            || !self.streams.control_due.is_empty()
            || !self.rare.notes_due.is_empty()
            || !self.rare.datagrams.is_empty()
            || self.streams.local.iter().chain(&self.streams.remote).any(|kind| kind.due)
            || self.streams.is_blocked() && self.streams.blocked_at != Some(self.streams.send_limit)
    }

    /// Sends a packet with all due frames. Returns whether there were any.
    #[cold]
    #[inline(never)]
    fn send_full(&mut self, now: Instant, header: &mut QuicHeader, out: &mut DatagramContents, only_ack: bool) -> bool {
        let room = u32::from(self.mtu.current());
        match self.build(now, QuicPacketType::OneRtt, room, !only_ack, false, &mut out.spare) {
            Some(packet) => {
                let packets = out.spare.one_packet(packet);
                self.hand_out(header, out, packets)
            }
            None => false,
        }
    }

    /// Completes a datagram with these packets.
    fn hand_out(&mut self, header: &mut QuicHeader, out: &mut DatagramContents, packets: Vec<QuicPacket>) -> bool {
        let bytes = packets.iter().map(|packet| packet.bytes).sum();
        *header = QuicHeader { form: QuicForm::Packets, ..QuicHeader::default() };
        out.codepoint = self.path.codepoint();
        if out.codepoint != EcnCodepoint::NotEct {
            self.path.on_marked_datagram();
        }
        out.udp_payload_bytes = bytes;
        self.statistics.sent_datagrams += 1;
        self.statistics.sent_bytes += u64::from(bytes);
        if self.unusual & unusual::PATH != 0 {
            self.use_path_credit(bytes);
        }
        if self.server
            && let Some(opening) = &mut self.opening
        {
            opening.credit = opening.credit.saturating_sub(u64::from(bytes));
        }
        out.datagram = Some(QuicDatagram { packets });
        true
    }

    /// Bytes of a packet's header, packet number and tag.
    fn overhead(&self, packet_type: QuicPacketType, number_bytes: u8) -> u32 {
        let id = u32::from(self.config.connection_id_bytes);
        let token = self.opening.as_ref().and_then(|opening| opening.token);
        let long = match packet_type {
            QuicPacketType::OneRtt => return 1 + id + u32::from(number_bytes) + TAG_BYTES,
            // First byte, version, both IDs with their lengths, and a Length field of two bytes.
            QuicPacketType::Initial if !self.server && token.is_some() => {
                1 + 4 + 2 + 2 * id + TOKEN_HEADER_BYTES + TOKEN_BYTES + 2
            }
            QuicPacketType::Initial => 1 + 4 + 2 + 2 * id + 1 + 2,
            QuicPacketType::Handshake | QuicPacketType::ZeroRtt => 1 + 4 + 2 + 2 * id + 2,
            // The token and the integrity tag.
            QuicPacketType::Retry => return 1 + 4 + 2 + 2 * id + TOKEN_BYTES + 16,
            QuicPacketType::VersionNegotiation => return 1 + 4 + 2 + 2 * id + 4,
        };
        long + u32::from(number_bytes) + TAG_BYTES
    }

    /// Assembles a packet and counts it as sent; `None` if it would have no frames. With `data`, it may contain frames
    /// other than ACK. With `probe`, it is always ack-eliciting.
    fn build(
        &mut self,
        now: Instant,
        packet_type: QuicPacketType,
        room: u32,
        data: bool,
        probe: bool,
        spare: &mut BufferPool,
    ) -> Option<QuicPacket> {
        let id = SpaceId::of(packet_type)?;
        let exponent = if id == SpaceId::Data { self.config.ack_delay_exponent } else { 3 };
        let may_acknowledge = packet_type != QuicPacketType::ZeroRtt;
        let layer = self.layer(id)?;
        let number_bytes = layer.space.number_bytes();
        let number = layer.space.next_number;
        let overhead = self.overhead(packet_type, number_bytes);
        // If the frames are shorter than the minimum payload, the packet is padded to it. That minimum must fit too.
        let shortest = overhead + SAMPLED - u32::from(number_bytes);
        if room < shortest {
            return None;
        }
        let mut draft = Draft::new(room - overhead, spare);
        let layer = self.layer(id)?;
        let mut acknowledges = may_acknowledge
            && (layer.received.is_due(now) || layer.received.has_fresh() && data)
            && !layer.received.ranges().is_empty();
        if acknowledges {
            let frame = QuicFrame::Ack {
                delay: if id == SpaceId::Data { layer.received.delay(now, exponent) } else { 0 },
                ranges: layer.received.ack_ranges(spare.ranges.pop().unwrap_or_default()),
                ecn: layer.received.ecn(),
            };
            let largest = layer.received.largest().unwrap_or(0);
            acknowledges = draft.add(frame, FrameRecord::Ack(largest));
        }
        if data {
            if id == SpaceId::Data {
                self.add_control(&mut draft);
                self.add_streams(&mut draft);
            } else {
                self.add_crypto(id, &mut draft);
            }
        }
        if probe && !draft.eliciting {
            draft.add(QuicFrame::Ping, FrameRecord::NotRetransmitted);
        }
        if acknowledges {
            let alone = !draft.eliciting;
            let asks = self.layer(id)?.received.on_ack_sent(alone && id == SpaceId::Data);
            if asks {
                draft.add(QuicFrame::Ping, FrameRecord::NotRetransmitted);
            }
        }
        if draft.frames.is_empty() {
            spare.frames.push(draft.frames);
            spare.notes = draft.notes;
            return None;
        }
        let mut bytes = overhead + draft.frames.iter().map(QuicFrame::bytes).sum::<u32>();
        if bytes < shortest {
            draft.frames.push(QuicFrame::Padding(shortest - bytes));
            bytes = shortest;
        }
        debug_assert!(bytes <= room, "{packet_type:?} of {bytes} bytes where {room} are left");
        let token = self.token_of(packet_type);
        let packet = QuicPacket {
            packet_type,
            number: number as u32,
            number_bytes,
            connection_id: self.peer_connection_id,
            token,
            bytes,
            frames: draft.frames,
        };
        self.count_sent(now, id, number, bytes, draft.eliciting, &draft.notes, 0);
        spare.notes = draft.notes;
        spare.notes.clear();
        Some(packet)
    }

    /// The token that a packet contains.
    fn token_of(&self, packet_type: QuicPacketType) -> Option<u64> {
        let carries = packet_type == QuicPacketType::Initial && !self.server;
        self.opening.as_ref().and_then(|opening| opening.token).filter(|_| carries)
    }

    /// Whether the anti-amplification limit of an unvalidated address permits these packets (RFC 9000 sections 8.1 and
    /// 10.2.3).
    fn may_send_close(&self, packets: &[QuicPacket]) -> bool {
        let bytes: u64 = packets.iter().map(|packet| u64::from(packet.bytes)).sum();
        !self.server || self.opening.as_ref().is_none_or(|opening| opening.validated || opening.credit >= bytes)
    }

    /// Counts a packet as sent, and creates its record if it is ack-eliciting.
    #[allow(clippy::too_many_arguments, reason = "what is known of a packet; it has few callers")]
    fn count_sent(
        &mut self,
        now: Instant,
        id: SpaceId,
        number: u64,
        bytes: u32,
        eliciting: bool,
        notes: &[FrameRecord],
        flags: u8,
    ) {
        self.statistics.sent_packets += 1;
        if !eliciting && self.path.codepoint() != EcnCodepoint::NotEct {
            self.path.on_marked_without_record();
        }
        let sent = eliciting.then(|| self.path.on_sent(now, u64::from(bytes), number, &self.config));
        if let Some(layer) = self.layer(id) {
            layer.space.next_number += 1;
            if let Some((mut sent, sample)) = sent {
                sent.flags |= flags;
                layer.space.push_noted(sent, sample, notes);
            }
        }
        if eliciting {
            self.on_eliciting_sent(now);
        }
    }

    /// Adds control frames.
    fn add_control(&mut self, draft: &mut Draft) {
        let mut due = std::mem::take(&mut self.rare.notes_due);
        for note in due.drain(..) {
            let frame = match &note {
                FrameRecord::HandshakeDone => QuicFrame::HandshakeDone,
                FrameRecord::NewConnectionId(sequence) => QuicFrame::NewConnectionId {
                    sequence: *sequence,
                    retire_prior_to: 0,
                    length: self.config.connection_id_bytes,
                },
                FrameRecord::RetireConnectionId(sequence) => QuicFrame::RetireConnectionId(*sequence),
                FrameRecord::AckFrequency => match self.config.ack_frequency {
                    Some(asked) => QuicFrame::AckFrequency {
                        sequence: 0,
                        threshold: asked.threshold,
                        max_ack_delay_us: asked.max_ack_delay.as_nanos() / 1000,
                        reordering: 1,
                    },
                    None => continue,
                },
                _ => QuicFrame::Ping,
            };
            if !draft.add(frame, note) {
                self.rare.notes_due.push(note);
            }
        }
        if self.streams.limit_due && draft.add(QuicFrame::MaxData(self.streams.receive_limit), FrameRecord::MaxData) {
            self.streams.limit_due = false;
        }
        for (kind, bidirectional) in [(0, true), (1, false)] {
            let remote = self.streams.remote[kind];
            if remote.due
                && draft.add(
                    QuicFrame::MaxStreams { bidirectional, maximum: remote.limit },
                    FrameRecord::MaxStreams(kind as u8),
                )
            {
                self.streams.remote[kind].due = false;
            }
            let local = self.streams.local[kind];
            if local.due
                && draft.add(
                    QuicFrame::StreamsBlocked { bidirectional, limit: local.limit },
                    FrameRecord::StreamsBlocked(kind as u8),
                )
            {
                self.streams.local[kind].due = false;
            }
        }
        let blocked_at = self.streams.send_limit;
        if self.streams.is_blocked()
            && self.streams.blocked_at != Some(blocked_at)
            && draft.add(QuicFrame::DataBlocked(blocked_at), FrameRecord::DataBlocked)
        {
            self.streams.blocked_at = Some(blocked_at);
        }
        let mut control_due = std::mem::take(&mut self.streams.control_due);
        for index in control_due.drain(..) {
            if !self.add_control_of(index, draft) {
                self.streams.control(index);
            }
        }
        if self.streams.control_due.is_empty() {
            self.streams.control_due = control_due;
        }
        while let Some(&length) = self.rare.datagrams.front() {
            let frame = QuicFrame::Datagram { length, explicit_length: true };
            if frame.bytes() + self.overhead(QuicPacketType::OneRtt, 4) > u32::from(self.mtu.current()) {
                // The path's MTU is now too small for the frame.
                self.rare.datagrams.pop_front();
                self.statistics.datagrams_lost += 1;
                continue;
            }
            if !draft.add(frame, FrameRecord::Datagram(length)) {
                break;
            }
            self.rare.datagrams.pop_front();
        }
    }

    /// Adds the control frames of a stream; returns whether all fitted.
    fn add_control_of(&mut self, index: u32, draft: &mut Draft) -> bool {
        let Some(stream) = self.streams.get_mut(index) else { return true };
        let id = stream.id;
        let mut all = true;
        if stream.sending.reset == ControlFrameState::Due {
            let frame = QuicFrame::ResetStream { stream: id, error: 0, final_size: stream.sending.sent };
            if draft.add(frame, FrameRecord::ResetStream(id)) {
                stream.sending.reset = ControlFrameState::Sent;
            } else {
                all = false;
            }
        }
        if stream.sending.blocked_due {
            let frame = QuicFrame::StreamDataBlocked { stream: id, limit: stream.sending.limit };
            // STREAM_DATA_BLOCKED is not needed if the limit has increased since.
            let blocked = stream.sending.sent < stream.sending.written && stream.sending.sent >= stream.sending.limit;
            if !blocked || draft.add(frame, FrameRecord::StreamDataBlocked(id)) {
                stream.sending.blocked_due = false;
            } else {
                all = false;
            }
        }
        if stream.receiving.stop == ControlFrameState::Due {
            if draft.add(QuicFrame::StopSending { stream: id, error: 0 }, FrameRecord::StopSending(id)) {
                stream.receiving.stop = ControlFrameState::Sent;
            } else {
                all = false;
            }
        }
        if stream.receiving.limit_due {
            let frame = QuicFrame::MaxStreamData { stream: id, maximum: stream.receiving.limit };
            if draft.add(frame, FrameRecord::MaxStreamData(id)) {
                stream.receiving.limit_due = false;
            } else {
                all = false;
            }
        }
        all
    }

    /// Adds STREAM frames, as the scheduler selects, until the packet is full.
    fn add_streams(&mut self, draft: &mut Draft) {
        while let Some(index) = self.streams.choose() {
            let allowed = self.streams.send_limit - self.streams.sent_bytes.min(self.streams.send_limit);
            let Some(stream) = self.streams.get(index) else { return };
            let id = stream.id;
            let header = stream_header_bytes(id, stream.sending.next_offset());
            let Some(most) = draft.room.checked_sub(header).filter(|most| *most > 0) else { return };
            let at_once = self.streams.most_at_once(stream);
            let Some(mut piece) = stream.sending.next_piece(u64::from(most).min(at_once), allowed) else { return };
            // A frame that fills the packet needs no Length field.
            let explicit_length = piece.length < u64::from(most);
            if explicit_length {
                let with_length = u64::from(most).saturating_sub(u64::from(varint_bytes(piece.length)));
                if piece.length > with_length {
                    match stream.sending.next_piece(with_length.min(at_once), allowed) {
                        Some(shorter) => piece = shorter,
                        None => return,
                    }
                }
            }
            let content = stream.sending.content(&piece);
            let frame = QuicFrame::Stream {
                stream: id,
                offset: piece.offset,
                length: piece.length,
                fin: piece.fin,
                explicit_length,
                content,
            };
            if !draft.add(frame, FrameRecord::Stream(id as u32, piece.into())) {
                return;
            }
            self.note_piece(&piece, index);
            self.streams.on_sent(index, &piece);
        }
    }

    /// Adds a CRYPTO frame, if data of the flight remains.
    fn add_crypto(&mut self, id: SpaceId, draft: &mut Draft) {
        // The transport parameters are in ClientHello, and in the server's EncryptedExtensions.
        let holds_parameters = (id == SpaceId::Initial) != self.server;
        let config = self.config.clone();
        let Some(layer) = self.layer(id) else { return };
        if !layer.has_crypto() {
            return;
        }
        let crypto = &mut layer.crypto().out;
        let offset = crypto.next_offset();
        let frame = |length| 1 + varint_bytes(offset) + varint_bytes(length);
        let Some(most) = draft.room.checked_sub(frame(u64::from(draft.room))).filter(|most| *most > 0) else { return };
        let Some(piece) = crypto.next_piece(u64::from(most), u64::MAX) else { return };
        let parameters = (holds_parameters && piece.fin).then(|| Box::new(config.parameters()));
        let frame = QuicFrame::Crypto { offset: piece.offset, length: piece.length, ends: piece.fin, parameters };
        if draft.add(frame, FrameRecord::Crypto(piece.into())) {
            crypto.on_sent(&piece);
        }
    }

    /// Sends a handshake datagram, with packets of all levels that have frames to send (RFC 9000 section 12.2).
    #[cold]
    fn poll_opening(&mut self, now: Instant, header: &mut QuicHeader, out: &mut DatagramContents) -> bool {
        let mut most = u32::from(self.mtu.current());
        let Some(opening) = self.opening.as_deref_mut() else { return false };
        if std::mem::take(&mut opening.retry_due) {
            let token = crate::input::retry_token(self.config.seed);
            let bytes = self.overhead(QuicPacketType::Retry, 0);
            let packet = QuicPacket {
                packet_type: QuicPacketType::Retry,
                number: 0,
                number_bytes: 0,
                connection_id: 0,
                token: Some(token),
                bytes,
                frames: Vec::new(),
            };
            return self.hand_out(header, out, vec![packet]);
        }
        if self.server && !opening.validated {
            if opening.credit == 0 {
                // RFC 9002 section 6.2.2.1: no probe is due until a packet from the client arrives. A deadline of the
                // pacer would then remain in the past.
                self.pto_at = Instant::NEVER;
                self.path.pace_at = Instant::NEVER;
                self.postpone_ack(now);
                return false;
            }
            most = most.min(u32::try_from(opening.credit).unwrap_or(u32::MAX));
        }
        let mut packets = out.spare.packets.pop().unwrap_or_default();
        // The vector has no spare capacity: with ten thousand handshakes at once, 40 000 datagrams are in flight.
        let (mut pads, mut held) = (false, false);
        for id in [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data] {
            let used: u32 = packets.iter().map(|packet| packet.bytes).sum();
            let Some(packet_type) = self.type_of(id) else { continue };
            // RFC 9000 section 14.1: a packet that cannot be padded waits, unless it contains only acknowledgements.
            let too_small = id == SpaceId::Initial && self.server && most < SMALLEST_DATAGRAM;
            let probes = self.layer(id).map_or(0, |layer| layer.probes);
            let probe = probes > 0 && !too_small;
            if probe {
                if self.layer(id).is_some_and(|layer| !layer.has_crypto()) {
                    self.repeat_oldest(id);
                }
                if let Some(layer) = self.layer(id) {
                    layer.probes = probes - 1;
                }
            }
            // The bytes in flight include those of all levels. Acknowledgements are sent in any case.
            let data = probe || !too_small && self.path.may_send(now);
            held |= !data;
            let Some(packet) = self.build(now, packet_type, most - used, data, probe, &mut out.spare) else { continue };
            // RFC 9000 section 14.1: applies to a client's Initial packets, and to a server's that elicit
            // acknowledgements.
            pads |= id == SpaceId::Initial && (!self.server || packet.frames.iter().any(QuicFrame::is_ack_eliciting));
            if id == SpaceId::Handshake && !self.server {
                // RFC 9001 section 4.9.1.
                self.discard(SpaceId::Initial);
            }
            packets.reserve_exact(1);
            packets.push(packet);
        }
        let bytes: u32 = packets.iter().map(|packet| packet.bytes).sum();
        if let Some(last) = packets.last_mut()
            && pads
            && bytes < SMALLEST_DATAGRAM.min(most)
        {
            let padding = SMALLEST_DATAGRAM.min(most) - bytes;
            last.frames.push(QuicFrame::Padding(padding));
            last.bytes += padding;
            self.count_padding(last.packet_type, padding);
        }
        if packets.is_empty() {
            out.spare.packets.push(packets);
            if !held && self.opening.as_ref().is_some_and(|opening| opening.sends_data().is_some()) {
                self.path.stop_for_data();
            }
            self.postpone_ack(now);
            return false;
        }
        self.hand_out(header, out, packets)
    }

    /// Padding counts as in flight with its packet (RFC 9002 section 2).
    fn count_padding(&mut self, packet_type: QuicPacketType, padding: u32) {
        let Some(id) = SpaceId::of(packet_type) else { return };
        if let Some(layer) = self.layer(id)
            && layer.space.grow_last(padding)
        {
            self.path.in_flight_bytes += u64::from(padding);
        }
    }

    /// The packet type that can carry the frames of a space now, if any.
    fn type_of(&self, id: SpaceId) -> Option<QuicPacketType> {
        let opening = self.opening.as_deref()?;
        match id {
            SpaceId::Initial => opening.initial.as_ref().map(|_| QuicPacketType::Initial),
            SpaceId::Handshake => opening.handshake.as_ref().map(|_| QuicPacketType::Handshake),
            SpaceId::Data => opening.sends_data(),
        }
    }

    fn send_mtu_probe(
        &mut self,
        now: Instant,
        bytes: u16,
        header: &mut QuicHeader,
        out: &mut DatagramContents,
    ) -> bool {
        let number_bytes = self.data.space.number_bytes();
        let number = self.data.space.next_number;
        let overhead = self.overhead(QuicPacketType::OneRtt, number_bytes);
        let frames = vec![QuicFrame::Ping, QuicFrame::Padding(u32::from(bytes) - overhead - 1)];
        self.count_sent(
            now,
            SpaceId::Data,
            number,
            u32::from(bytes),
            true,
            &[FrameRecord::NotRetransmitted],
            flag::MTU_PROBE,
        );
        self.mtu.on_probe_sent(bytes);
        let packet = QuicPacket {
            packet_type: QuicPacketType::OneRtt,
            number: number as u32,
            number_bytes,
            connection_id: self.peer_connection_id,
            token: None,
            bytes: u32::from(bytes),
            frames,
        };
        self.hand_out(header, out, vec![packet])
    }

    /// Builds a separate packet for a path validation frame. It has the minimum datagram size, but at most `most` bytes
    /// (RFC 9000 section 8.2.1); `None` if the frame does not fit.
    pub(crate) fn path_packet(&mut self, now: Instant, frame: QuicFrame, most: u32) -> Option<QuicPacket> {
        let number_bytes = self.data.space.number_bytes();
        let number = self.data.space.next_number;
        let overhead = self.overhead(QuicPacketType::OneRtt, number_bytes);
        let bytes = overhead + frame.bytes();
        let padded = bytes.max(SMALLEST_DATAGRAM.min(most));
        if padded > most {
            return None;
        }
        let mut frames = vec![frame];
        if padded > bytes {
            frames.push(QuicFrame::Padding(padded - bytes));
        }
        self.count_sent(now, SpaceId::Data, number, padded, true, &[FrameRecord::NotRetransmitted], 0);
        Some(QuicPacket {
            packet_type: QuicPacketType::OneRtt,
            number: number as u32,
            number_bytes,
            connection_id: self.peer_connection_id,
            token: None,
            bytes: padded,
            frames,
        })
    }

    /// Sends CONNECTION_CLOSE in all packet types that the peer may be able to read (RFC 9000 section 10.2.3).
    fn poll_close(&mut self, header: &mut QuicHeader, out: &mut DatagramContents) -> bool {
        let Some(close) = &mut self.rare.close else { return false };
        if !std::mem::take(&mut close.due) {
            return false;
        }
        let (application, error) = (close.application, close.error);
        let mut packets = Vec::new();
        for id in [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data] {
            let packet_type = if self.opening.is_none() && id == SpaceId::Data {
                Some(QuicPacketType::OneRtt)
            } else {
                self.type_of(id).filter(|packet_type| *packet_type != QuicPacketType::ZeroRtt)
            };
            let Some(packet_type) = packet_type else { continue };
            // During the handshake, APPLICATION_ERROR replaces the application's error code.
            let frame = match (packet_type, application) {
                (QuicPacketType::OneRtt, _) => QuicFrame::ConnectionClose { application, error },
                (_, true) => QuicFrame::ConnectionClose { application: false, error: 0xc },
                (_, false) => QuicFrame::ConnectionClose { application: false, error },
            };
            let Some(layer) = self.layer(id) else { continue };
            let (number, number_bytes) = (layer.space.next_number, layer.space.number_bytes());
            layer.space.next_number += 1;
            let bytes = self.overhead(packet_type, number_bytes) + frame.bytes();
            self.statistics.sent_packets += 1;
            packets.push(QuicPacket {
                packet_type,
                number: number as u32,
                number_bytes,
                connection_id: self.peer_connection_id,
                token: self.token_of(packet_type),
                bytes,
                frames: vec![frame],
            });
        }
        if packets.is_empty() || !self.may_send_close(&packets) {
            return false;
        }
        if !self.server && packets[0].packet_type == QuicPacketType::Initial {
            let bytes: u32 = packets.iter().map(|packet| packet.bytes).sum();
            let padding = SMALLEST_DATAGRAM.saturating_sub(bytes);
            if let Some(last) = packets.last_mut() {
                last.frames.push(QuicFrame::Padding(padding));
                last.bytes += padding;
            }
        }
        self.hand_out(header, out, packets)
    }
}

/// Bytes of a token in a Retry packet, and of its length field in an Initial packet.
const TOKEN_BYTES: u32 = 64;
const TOKEN_HEADER_BYTES: u32 = 2;
