//! Processes received datagrams, their packets and their frames (RFC 9000 sections 12, 13 and 19).
//!
//! After the duplicate check, the frames of a packet are processed in order. A frame that violates the protocol closes
//! the connection with the error code of the RFC. No input has a more severe effect.

use crate::Connection;
use crate::connection::{TransportError, unusual};
use crate::opening::{AT_ONCE, EncryptionLevel};
use crate::space::{FrameRecord, SpaceId};
use crate::status::State;
use crate::stream::{ControlFrameState, StreamChunk, StreamViolation, event, is_unidirectional};
use crate::streams::StreamIdError;
use fullpipe_transport::CloseReason;
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::quic::{AckRange, MAX_VARINT, varint_bytes};
use fullpipe_wire::tcp::MAX_SACK_BLOCKS;
use fullpipe_wire::{QuicDatagram, QuicForm, QuicFrame, QuicHeader, QuicPacket, QuicPacketType, SegmentOptions};

/// The maximum number of DATAGRAM frames that wait for the application.
const MOST_DATAGRAMS: usize = 1024;

impl From<StreamViolation> for TransportError {
    fn from(breach: StreamViolation) -> TransportError {
        match breach {
            StreamViolation::FlowControl => TransportError::FlowControl,
            StreamViolation::FinalSize => TransportError::FinalSize,
        }
    }
}

impl From<StreamIdError> for TransportError {
    fn from(misnamed: StreamIdError) -> TransportError {
        match misnamed {
            StreamIdError::LimitExceeded => TransportError::StreamLimit,
            StreamIdError::NotOpened => TransportError::StreamState,
        }
    }
}

impl Connection {
    /// Whether [`Connection::receive_fast_path`] can process a datagram. This is the most frequent case at an endpoint
    /// that only receives. The datagram contains an in-order packet with in-order data. All earlier data of the stream
    /// has been read, and the connection has no other work. [`Connection::receive_fast_path`] then has the same effect
    /// as [`Connection::handle_datagram`], followed by polling the event and reading all data.
    #[inline(always)]
    pub fn is_fast_path_datagram(&self, header: &QuicHeader, codepoint: EcnCodepoint) -> bool {
        header.form == QuicForm::Stream
            && self.unusual == 0
            && !header.fin
            && header.path == self.peer_path
            && self.data.received.expects(header.number, header.number_bytes, codepoint)
            && self.streams.expects(
                u64::from(header.stream),
                header.offset_or_largest_acked(),
                u64::from(header.length),
            )
    }

    /// Processes a datagram that [`Connection::is_fast_path_datagram`] accepts, and reads all data. Returns the number
    /// of bytes read.
    #[inline(always)]
    pub fn receive_fast_path(&mut self, now: Instant, header: &QuicHeader, udp_payload_bytes: u32) -> u64 {
        let length = u64::from(header.length);
        self.statistics.received_bytes += u64::from(udp_payload_bytes);
        self.statistics.received_packets += 1;
        self.statistics.stream_bytes_read += length;
        self.sent_since_heard = false;
        self.restart_idle(now);
        self.data.received.insert_expected(now, &self.policy);
        let rtt = if self.path.rtt.has_sample() { self.path.rtt.smoothed() } else { Duration::ZERO };
        self.streams.take_expected(length, now, rtt, &self.config);
        if self.streams.limit_due || !self.streams.control_due.is_empty() {
            self.unusual |= unusual::CONTROL;
        }
        length
    }

    /// Processes a received datagram. `ranges` and `datagram` contain what the header does not, as in
    /// [`DatagramContents`](crate::DatagramContents). `udp_payload_bytes` is the length of the UDP payload, and
    /// `codepoint` is the ECN codepoint of the IP packet.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        header: &QuicHeader,
        ranges: Option<&SegmentOptions>,
        datagram: Option<&QuicDatagram>,
        udp_payload_bytes: u32,
        codepoint: EcnCodepoint,
    ) {
        self.statistics.received_bytes += u64::from(udp_payload_bytes);
        if self.unusual & (unusual::OPENING | unusual::CLOSING | unusual::PATH) == 0
            && header.form != QuicForm::Packets
            && header.path == self.peer_path
        {
            return self.handle_short(now, header, ranges, codepoint);
        }
        self.handle_any(now, header, ranges, datagram, udp_payload_bytes, codepoint);
    }

    /// Processes a 1-RTT packet with one frame, on an open connection whose peer has not migrated.
    #[inline]
    fn handle_short(
        &mut self,
        now: Instant,
        header: &QuicHeader,
        ranges: Option<&SegmentOptions>,
        codepoint: EcnCodepoint,
    ) {
        let number = self.data.received.decode(header.number, header.number_bytes);
        if self.data.received.has(number) {
            self.statistics.duplicate_packets += 1;
            return;
        }
        self.statistics.received_packets += 1;
        self.sent_since_heard = false;
        self.restart_idle(now);
        let eliciting = header.form == QuicForm::Stream;
        let taken = if eliciting { self.take_piece(now, header) } else { self.take_ack(now, header, ranges) };
        self.data.received.insert(now, number, eliciting, codepoint, &self.policy);
        if let Err(violation) = taken {
            self.fail(now, violation);
        }
    }

    #[inline]
    fn take_piece(&mut self, now: Instant, header: &QuicHeader) -> Result<(), TransportError> {
        let piece =
            StreamChunk { offset: header.offset_or_largest_acked(), length: u64::from(header.length), fin: header.fin };
        self.on_stream(now, u64::from(header.stream), piece, None)
    }

    #[inline]
    fn take_ack(
        &mut self,
        now: Instant,
        header: &QuicHeader,
        further: Option<&SegmentOptions>,
    ) -> Result<(), TransportError> {
        let (largest, delay) = (header.offset_or_largest_acked(), u64::from(header.stream));
        if header.ranges == 0
            && let Some(first) = largest.checked_sub(u64::from(header.first_range))
            && self.take_plain_ack(now, first, largest, delay)
        {
            return Ok(());
        }
        self.take_ranges(now, header, further)
    }

    #[inline(never)]
    fn take_ranges(
        &mut self,
        now: Instant,
        header: &QuicHeader,
        further: Option<&SegmentOptions>,
    ) -> Result<(), TransportError> {
        let (ranges, count) = short_ranges(header, further).ok_or(TransportError::FrameEncoding)?;
        self.on_ack(now, SpaceId::Data, &ranges[..count], u64::from(header.stream), None)
    }

    /// Processes any other datagram.
    #[cold]
    fn handle_any(
        &mut self,
        now: Instant,
        header: &QuicHeader,
        ranges: Option<&SegmentOptions>,
        datagram: Option<&QuicDatagram>,
        udp_payload_bytes: u32,
        codepoint: EcnCodepoint,
    ) {
        match self.state {
            State::Closing => return self.answer_after_close(now),
            State::Draining | State::Closed => return,
            State::Opening | State::Open => {}
        }
        if self.server
            && let Some(opening) = &mut self.opening
            && !opening.validated
        {
            // RFC 9000 section 8.1.
            opening.credit = opening.credit.saturating_add(3 * u64::from(udp_payload_bytes));
        }
        self.count_path_bytes(header.path, udp_payload_bytes);
        if header.form != QuicForm::Packets {
            let frame = match header.form {
                QuicForm::Stream => QuicFrame::Stream {
                    stream: u64::from(header.stream),
                    offset: header.offset_or_largest_acked(),
                    length: u64::from(header.length),
                    fin: header.fin,
                    explicit_length: false,
                    content: None,
                },
                _ => match short_ack(header, ranges) {
                    Some(frame) => frame,
                    None => return self.fail(now, TransportError::FrameEncoding),
                },
            };
            let packet = QuicPacket {
                packet_type: QuicPacketType::OneRtt,
                number: header.number,
                number_bytes: header.number_bytes,
                connection_id: u64::from(header.connection_id),
                token: None,
                bytes: udp_payload_bytes,
                frames: vec![frame],
            };
            self.handle_packet(now, &packet, header.path, udp_payload_bytes, codepoint);
            return self.set_timers(now);
        }
        for packet in datagram.iter().flat_map(|datagram| &datagram.packets) {
            self.handle_packet(now, packet, header.path, udp_payload_bytes, codepoint);
            if matches!(self.state, State::Closing | State::Draining | State::Closed) {
                return;
            }
        }
        self.set_timers(now);
    }

    fn handle_packet(
        &mut self,
        now: Instant,
        packet: &QuicPacket,
        path: u8,
        udp_payload_bytes: u32,
        codepoint: EcnCodepoint,
    ) {
        let Some(id) = SpaceId::of(packet.packet_type) else {
            if packet.packet_type == QuicPacketType::Retry {
                self.on_retry(packet.token);
            }
            return;
        };
        if packet.packet_type == QuicPacketType::Initial && self.is_forged(packet.token) {
            return self.fail(now, TransportError::InvalidToken);
        }
        if !self.may_read(packet, udp_payload_bytes) {
            self.statistics.unreadable_packets += 1;
            return;
        }
        let policy = self.policy;
        let Some(layer) = self.layer(id) else {
            self.statistics.unreadable_packets += 1;
            return;
        };
        let number = layer.received.decode(packet.number, packet.number_bytes);
        if layer.received.has(number) {
            self.statistics.duplicate_packets += 1;
            return;
        }
        let newest = layer.received.largest().is_none_or(|largest| number > largest);
        // RFC 9000 section 12.4: a packet contains at least one frame.
        if packet.frames.is_empty() {
            return self.fail(now, TransportError::Protocol);
        }
        let eliciting = packet.frames.iter().any(QuicFrame::is_ack_eliciting);
        let policy = if id == SpaceId::Data { policy } else { AT_ONCE };
        layer.received.insert(now, number, eliciting, codepoint, &policy);
        self.statistics.received_packets += 1;
        self.sent_since_heard = false;
        self.restart_idle(now);
        if id == SpaceId::Handshake && self.server {
            self.on_handshake_packet();
        }
        for frame in &packet.frames {
            if let Err(violation) = self.on_frame(now, packet.packet_type, frame) {
                return self.fail(now, violation);
            }
            if matches!(self.state, State::Closing | State::Draining | State::Closed) {
                return;
            }
        }
        if self.server && id == SpaceId::Data && path != self.peer_path && self.opening.is_none() {
            let probing = packet.frames.iter().all(QuicFrame::is_probing);
            self.on_moved(now, path, newest && !probing, udp_payload_bytes);
        }
    }

    /// Whether an Initial packet has a token that this server did not issue (RFC 9000 section 8.1.2).
    fn is_forged(&self, token: Option<u64>) -> bool {
        let awaits = self.opening.as_ref().is_some_and(|opening| !opening.validated && !opening.begun);
        self.server && self.config.retry && awaits && token.is_some_and(|token| token != retry_token(self.config.seed))
    }

    /// Whether the keys of a packet are available and the RFC does not require that it is ignored.
    fn may_read(&mut self, packet: &QuicPacket, udp_payload_bytes: u32) -> bool {
        let (server, retry) = (self.server, self.config.retry);
        let Some(opening) = self.opening.as_deref_mut() else {
            return packet.packet_type == QuicPacketType::OneRtt;
        };
        match packet.packet_type {
            QuicPacketType::Initial => {
                // RFC 9000 section 14.1: a server ignores Initial packets in smaller datagrams.
                if server && udp_payload_bytes < 1200 {
                    return false;
                }
                if server && retry && !opening.validated && !opening.begun {
                    if packet.token.is_none() {
                        opening.retry_due = true;
                        return false;
                    }
                    opening.validated = true;
                }
                opening.initial.is_some()
            }
            QuicPacketType::Handshake => opening.handshake.is_some(),
            QuicPacketType::ZeroRtt => server && opening.zero_rtt,
            QuicPacketType::OneRtt => opening.may_read_data,
            QuicPacketType::Retry | QuicPacketType::VersionNegotiation => false,
        }
    }

    fn on_frame(&mut self, now: Instant, packet: QuicPacketType, frame: &QuicFrame) -> Result<(), TransportError> {
        if !is_allowed(packet, frame) {
            return Err(TransportError::Protocol);
        }
        if !is_encodable(frame) {
            return Err(TransportError::FrameEncoding);
        }
        match frame {
            QuicFrame::Padding(_) | QuicFrame::Ping => Ok(()),
            QuicFrame::Ack { delay, ranges, ecn } => {
                let Some(id) = SpaceId::of(packet) else { return Ok(()) };
                if !are_descending(ranges) {
                    return Err(TransportError::FrameEncoding);
                }
                self.on_ack(now, id, ranges, *delay, *ecn)
            }
            QuicFrame::Crypto { offset, length, ends, parameters } => {
                let Some(id) = SpaceId::of(packet) else { return Ok(()) };
                let piece = StreamChunk { offset: *offset, length: *length, fin: *ends };
                self.on_crypto(now, id, &piece, parameters.as_deref())
            }
            QuicFrame::Stream { stream, offset, length, fin, content, .. } => {
                let piece = StreamChunk { offset: *offset, length: *length, fin: *fin };
                self.on_stream(now, *stream, piece, content.clone())
            }
            QuicFrame::ResetStream { stream, final_size, .. } => self.on_reset(now, *stream, *final_size),
            QuicFrame::StopSending { stream, .. } => self.on_stop_sending(now, *stream),
            QuicFrame::MaxData(maximum) => {
                self.streams.send_limit = self.streams.send_limit.max(*maximum);
                self.streams.blocked_at = None;
                Ok(())
            }
            QuicFrame::MaxStreamData { stream, maximum } => self.on_max_stream_data(now, *stream, *maximum),
            QuicFrame::MaxStreams { bidirectional, maximum } => {
                if *maximum > 1 << 60 {
                    return Err(TransportError::FrameEncoding);
                }
                let kind = &self.streams.local[usize::from(!bidirectional)];
                if *maximum > kind.limit {
                    self.streams.limit_local(usize::from(!bidirectional), *maximum);
                    self.unusual |= unusual::CONTROL;
                }
                Ok(())
            }
            QuicFrame::StreamsBlocked { limit, .. } if *limit > 1 << 60 => Err(TransportError::FrameEncoding),
            QuicFrame::StreamDataBlocked { stream, .. } => {
                if is_unidirectional(*stream) && self.streams.is_local(*stream) {
                    return Err(TransportError::StreamState);
                }
                self.streams.named(*stream, &self.windows(), now)?;
                Ok(())
            }
            QuicFrame::DataBlocked(_) | QuicFrame::StreamsBlocked { .. } => Ok(()),
            QuicFrame::NewConnectionId { sequence, retire_prior_to, length } => {
                if *retire_prior_to > *sequence || *length == 0 || *length > 20 {
                    return Err(TransportError::FrameEncoding);
                }
                self.on_new_connection_id(*sequence, *retire_prior_to)
            }
            QuicFrame::RetireConnectionId(sequence) => self.on_retire_connection_id(*sequence),
            QuicFrame::PathChallenge(data) => {
                self.on_path_challenge(*data);
                Ok(())
            }
            QuicFrame::PathResponse(data) => {
                self.on_path_response(now, *data);
                Ok(())
            }
            QuicFrame::ConnectionClose { application, error } => {
                self.on_close(now, *application, *error);
                Ok(())
            }
            QuicFrame::HandshakeDone => {
                if self.server {
                    return Err(TransportError::Protocol);
                }
                self.confirm(now);
                Ok(())
            }
            QuicFrame::NewToken(length) => {
                if self.server {
                    return Err(TransportError::Protocol);
                }
                if *length == 0 { Err(TransportError::FrameEncoding) } else { Ok(()) }
            }
            QuicFrame::Datagram { length, explicit_length } => {
                // RFC 9221 section 3: DATAGRAM frames are not permitted, or not of this size.
                if frame_bytes_beyond(*length, *explicit_length, self.config.max_datagram_frame_bytes) {
                    return Err(TransportError::Protocol);
                }
                self.statistics.datagrams_received += 1;
                self.rare.datagrams_received.push_back(*length);
                // RFC 9221 section 5: a receiver may drop frames that its application does not fetch. The model drops
                // the oldest.
                if self.rare.datagrams_received.len() > MOST_DATAGRAMS {
                    self.rare.datagrams_received.pop_front();
                    self.statistics.datagrams_dropped += 1;
                }
                Ok(())
            }
            QuicFrame::AckFrequency { sequence, threshold, max_ack_delay_us, reordering } => {
                self.on_ack_frequency(*sequence, *threshold, *max_ack_delay_us, *reordering)
            }
            QuicFrame::ImmediateAck => {
                self.data.received.acknowledge_now(now);
                Ok(())
            }
        }
    }

    #[inline]
    fn on_stream(
        &mut self,
        now: Instant,
        id: u64,
        piece: StreamChunk,
        content: Option<bytes::Bytes>,
    ) -> Result<(), TransportError> {
        let index = match self.streams.find(id) {
            Some(index) => index,
            None => {
                if is_unidirectional(id) && self.streams.is_local(id) {
                    return Err(TransportError::StreamState);
                }
                let windows = self.windows();
                match self.streams.named(id, &windows, now)? {
                    Some(index) => index,
                    None => return Ok(()),
                }
            }
        };
        let unordered = self.config.unordered;
        let Some(stream) = self.streams.get_mut(index) else { return Ok(()) };
        if is_unidirectional(id) && stream.receiving.reset && stream.receiving.final_size.is_none() {
            // The peer cannot send on a unidirectional stream that this end opened.
            return Err(TransportError::StreamState);
        }
        let grown = stream.receiving.receive(&piece, content, unordered)?;
        let readable = !stream.receiving.reset
            && stream.receiving.stop == ControlFrameState::NotRequested
            && stream.receiving.readable_bytes() > 0;
        let finished = stream.receiving.is_complete() && !stream.receiving.told_finished && !stream.receiving.reset;
        stream.receiving.told_finished |= finished;
        self.streams.received_bytes += grown;
        if self.streams.received_bytes > self.streams.receive_limit {
            return Err(TransportError::FlowControl);
        }
        if readable {
            self.streams.notice(index, event::READABLE);
        }
        if finished {
            self.streams.notice(index, event::PEER_FINISHED);
            self.streams.settle(index);
        }
        Ok(())
    }

    fn on_reset(&mut self, now: Instant, id: u64, final_size: u64) -> Result<(), TransportError> {
        if is_unidirectional(id) && self.streams.is_local(id) {
            return Err(TransportError::StreamState);
        }
        let Some(index) = self.streams.named(id, &self.windows(), now)? else { return Ok(()) };
        let Some(stream) = self.streams.get_mut(index) else { return Ok(()) };
        let grown = stream.receiving.reset(final_size)?;
        self.streams.received_bytes += grown;
        if self.streams.received_bytes > self.streams.receive_limit {
            return Err(TransportError::FlowControl);
        }
        // A peer that resets its sending direction does not read the other either: both directions end, as after a TCP
        // reset.
        if !is_unidirectional(id)
            && let Some(stream) = self.streams.get_mut(index)
            && stream.sending.reset == ControlFrameState::NotRequested
            && !stream.sending.is_over()
        {
            stream.sending.reset = ControlFrameState::Due;
            self.streams.control(index);
            self.unusual |= unusual::CONTROL;
        }
        self.streams.requeue(index);
        self.streams.settle(index);
        Ok(())
    }

    fn on_stop_sending(&mut self, now: Instant, id: u64) -> Result<(), TransportError> {
        if is_unidirectional(id) && !self.streams.is_local(id) {
            return Err(TransportError::StreamState);
        }
        let Some(index) = self.streams.named(id, &self.windows(), now)? else { return Ok(()) };
        if let Some(stream) = self.streams.get_mut(index)
            && stream.sending.reset == ControlFrameState::NotRequested
            && !stream.sending.is_over()
        {
            // RFC 9000 section 3.5.
            stream.sending.reset = ControlFrameState::Due;
            self.streams.requeue(index);
            self.streams.control(index);
            self.unusual |= unusual::CONTROL;
        }
        Ok(())
    }

    fn on_max_stream_data(&mut self, now: Instant, id: u64, maximum: u64) -> Result<(), TransportError> {
        if is_unidirectional(id) && !self.streams.is_local(id) {
            return Err(TransportError::StreamState);
        }
        let Some(index) = self.streams.named(id, &self.windows(), now)? else { return Ok(()) };
        if let Some(stream) = self.streams.get_mut(index) {
            stream.sending.limit = stream.sending.limit.max(maximum);
            stream.sending.blocked_at = None;
        }
        self.streams.requeue(index);
        Ok(())
    }

    fn on_ack_frequency(
        &mut self,
        sequence: u64,
        threshold: u64,
        delay_us: u64,
        reordering: u64,
    ) -> Result<(), TransportError> {
        // draft-ietf-quic-ack-frequency section 4: at least our min_ack_delay of 1 ms.
        if !(1000..=MAX_VARINT / 1000).contains(&delay_us) {
            return Err(TransportError::Protocol);
        }
        if self.rare.ack_frequency_sequence.is_some_and(|last| last >= sequence) {
            return Ok(());
        }
        self.rare.ack_frequency_sequence = Some(sequence);
        self.policy.every = threshold.saturating_add(1);
        self.policy.max_delay = Duration::from_micros(delay_us.min(1 << 30));
        self.policy.reordering = reordering;
        Ok(())
    }

    fn on_crypto(
        &mut self,
        now: Instant,
        id: SpaceId,
        piece: &StreamChunk,
        parameters: Option<&fullpipe_wire::TransportParameters>,
    ) -> Result<(), TransportError> {
        let Some(layer) = self.layer(id) else { return Ok(()) };
        let incoming = &mut layer.crypto().incoming;
        let was_complete = incoming.is_complete();
        match incoming.receive(piece, None, false) {
            // RFC 9000 section 7.5.
            Err(StreamViolation::FlowControl) => return Err(TransportError::CryptoBufferExceeded),
            received => received?,
        };
        if piece.fin
            && let Some(parameters) = parameters
            && !self.knows_peer()
        {
            self.take_parameters(now, parameters)?;
        }
        let Some(layer) = self.layer(id) else { return Ok(()) };
        if !was_complete && layer.crypto().incoming.is_complete() {
            // RFC 9000 section 7.4: a complete flight contains the transport parameters.
            if !self.knows_peer() && (id == SpaceId::Initial) == self.server && id != SpaceId::Data {
                return Err(TransportError::TransportParameter);
            }
            self.on_flight(now, id);
        }
        Ok(())
    }

    /// Handles the arrival of all messages of an encryption level.
    fn on_flight(&mut self, now: Instant, id: SpaceId) {
        let sizes = self.config.handshake;
        let (server, zero_rtt) = (self.server, self.config.zero_rtt);
        let Some(opening) = self.opening.as_deref_mut() else { return };
        match (id, server) {
            (SpaceId::Initial, true) => {
                opening.begun = true;
                opening.zero_rtt = zero_rtt;
                if let Some(initial) = &mut opening.initial {
                    initial.write(sizes.server_hello_bytes);
                }
                let mut handshake = EncryptionLevel::new();
                handshake.write(sizes.server_flight_bytes + sizes.certificate_bytes);
                opening.handshake = Some(handshake);
                opening.may_send_data = true;
            }
            (SpaceId::Initial, false) => opening.handshake = Some(EncryptionLevel::new()),
            (SpaceId::Handshake, false) => {
                if let Some(handshake) = &mut opening.handshake {
                    handshake.write(sizes.client_finished_bytes);
                }
                opening.may_send_data = true;
                opening.may_read_data = true;
                self.complete(now);
            }
            (SpaceId::Handshake, true) => {
                opening.may_read_data = true;
                self.complete(now);
                self.note_due(FrameRecord::HandshakeDone);
                self.confirm(now);
            }
            (SpaceId::Data, _) => {}
        }
    }

    /// Completes the handshake.
    fn complete(&mut self, now: Instant) {
        self.state = State::Open;
        self.streams.announce();
        if self.config.connection_id_bytes > 0 {
            self.issue_connection_ids();
        }
        self.close_if_done(now);
    }

    /// Confirms the handshake and discards its keys.
    fn confirm(&mut self, now: Instant) {
        if self.opening.is_none() || self.state == State::Opening {
            return;
        }
        self.discard(SpaceId::Initial);
        self.discard(SpaceId::Handshake);
        self.opening = None;
        self.unusual &= !unusual::OPENING;
        self.unusual |= unusual::MTU;
        self.pto_count = 0;
        self.set_timers(now);
    }

    /// Discards the keys of a level and its packets in flight (RFC 9001 section 4.9, RFC 9002 section 6.4).
    pub(crate) fn discard(&mut self, id: SpaceId) {
        let Some(opening) = self.opening.as_deref_mut() else { return };
        let layer = if id == SpaceId::Initial { opening.initial.take() } else { opening.handshake.take() };
        if let Some(mut layer) = layer {
            self.path.on_discarded(layer.space.discard());
            self.pto_count = 0;
        }
    }

    /// Server: validates the client's address and discards the Initial keys, because a Handshake packet has arrived.
    fn on_handshake_packet(&mut self) {
        if let Some(opening) = self.opening.as_deref_mut() {
            opening.validated = true;
        }
        self.discard(SpaceId::Initial);
    }

    /// Handles a Retry packet. Only the first is processed, and none after another packet (RFC 9000 section 17.2.5.2).
    fn on_retry(&mut self, token: Option<u64>) {
        let heard = self.statistics.received_packets > 0;
        let client_hello_bytes = self.config.handshake.client_hello_bytes;
        let Some(opening) = self.opening.as_deref_mut() else { return };
        if self.server || heard || opening.token.is_some() || token.is_none() {
            return;
        }
        opening.token = token;
        if let Some(mut initial) = opening.initial.take() {
            // Packet numbers continue (section 17.2.5.3).
            let next_number = initial.space.next_number;
            self.path.on_discarded(initial.space.discard());
            let mut again = EncryptionLevel::new();
            again.space.next_number = next_number;
            again.write(client_hello_bytes);
            opening.initial = Some(again);
        }
        // 0-RTT data is also sent again.
        self.send_early_data_again();
        self.pto_count = 0;
    }

    /// Handles the peer's CONNECTION_CLOSE.
    fn on_close(&mut self, now: Instant, application: bool, error: u64) {
        let reason = match (application, error, self.state) {
            (true, 0, _) => CloseReason::Finished,
            (_, _, State::Opening) => CloseReason::Refused,
            _ => CloseReason::Reset,
        };
        self.begin_end(now, State::Draining, reason);
    }

    /// Responds to a packet after our CONNECTION_CLOSE with another one, at growing intervals (RFC 9000 section
    /// 10.2.1).
    fn answer_after_close(&mut self, now: Instant) {
        let pto = self.path.rtt.pto();
        if let Some(close) = &mut self.rare.close
            && now >= close.again_from
        {
            close.due = true;
            close.again_from = now.saturating_add(pto);
        }
    }
}

/// Whether a frame of this length exceeds the limit of its receiver.
fn frame_bytes_beyond(length: u64, explicit_length: bool, most: u64) -> bool {
    let field = if explicit_length { u64::from(varint_bytes(length)) } else { 0 };
    length.saturating_add(1 + field) > most
}

/// Whether all numbers of a frame can be encoded and no offset exceeds the maximum (RFC 9000 sections 16, 19.6 and
/// 19.8).
fn is_encodable(frame: &QuicFrame) -> bool {
    let fits = |values: &[u64]| values.iter().all(|value| *value <= MAX_VARINT);
    let ends_within = |offset: u64, length: u64| offset.saturating_add(length) <= MAX_VARINT;
    match frame {
        QuicFrame::Ack { delay, ecn, .. } => {
            fits(&[*delay]) && ecn.is_none_or(|counts| fits(&[counts.ect0, counts.ect1, counts.ce]))
        }
        QuicFrame::ResetStream { stream, error, final_size } => fits(&[*stream, *error, *final_size]),
        QuicFrame::StopSending { stream, error } => fits(&[*stream, *error]),
        QuicFrame::Crypto { offset, length, .. } => ends_within(*offset, *length),
        QuicFrame::Stream { stream, offset, length, content, .. } => {
            let is_whole = content.as_ref().is_none_or(|content| content.len() as u64 == *length);
            fits(&[*stream]) && ends_within(*offset, *length) && is_whole
        }
        QuicFrame::MaxData(value)
        | QuicFrame::DataBlocked(value)
        | QuicFrame::RetireConnectionId(value)
        | QuicFrame::NewToken(value)
        | QuicFrame::Datagram { length: value, .. }
        | QuicFrame::MaxStreams { maximum: value, .. }
        | QuicFrame::StreamsBlocked { limit: value, .. }
        | QuicFrame::ConnectionClose { error: value, .. } => fits(&[*value]),
        QuicFrame::MaxStreamData { stream, maximum: value } | QuicFrame::StreamDataBlocked { stream, limit: value } => {
            fits(&[*stream, *value])
        }
        QuicFrame::NewConnectionId { sequence, retire_prior_to, .. } => fits(&[*sequence, *retire_prior_to]),
        QuicFrame::AckFrequency { sequence, threshold, max_ack_delay_us, reordering } => {
            fits(&[*sequence, *threshold, *max_ack_delay_us, *reordering])
        }
        QuicFrame::Padding(_)
        | QuicFrame::Ping
        | QuicFrame::PathChallenge(_)
        | QuicFrame::PathResponse(_)
        | QuicFrame::HandshakeDone
        | QuicFrame::ImmediateAck => true,
    }
}

/// Whether a packet of this type may contain the frame (RFC 9000 table 3).
fn is_allowed(packet: QuicPacketType, frame: &QuicFrame) -> bool {
    match packet {
        QuicPacketType::Initial | QuicPacketType::Handshake => matches!(
            frame,
            QuicFrame::Padding(_)
                | QuicFrame::Ping
                | QuicFrame::Ack { .. }
                | QuicFrame::Crypto { .. }
                | QuicFrame::ConnectionClose { application: false, .. }
        ),
        QuicPacketType::ZeroRtt => !matches!(
            frame,
            QuicFrame::Ack { .. }
                | QuicFrame::Crypto { .. }
                | QuicFrame::HandshakeDone
                | QuicFrame::NewToken(_)
                | QuicFrame::PathResponse(_)
                | QuicFrame::RetireConnectionId(_)
        ),
        QuicPacketType::OneRtt => true,
        QuicPacketType::Retry | QuicPacketType::VersionNegotiation => false,
    }
}

/// Whether ranges are in descending order with a gap between any two.
fn are_descending(ranges: &[AckRange]) -> bool {
    !ranges.is_empty()
        && ranges.iter().all(|(first, last)| first <= last && *last <= MAX_VARINT)
        && ranges.windows(2).all(|pair| pair[1].1 + 2 <= pair[0].0)
}

/// The ranges of an ACK frame in the short form, and their number.
#[inline]
fn short_ranges(
    header: &QuicHeader,
    further: Option<&SegmentOptions>,
) -> Option<([AckRange; 1 + MAX_SACK_BLOCKS], usize)> {
    let largest = header.offset_or_largest_acked();
    let first = largest.checked_sub(u64::from(header.first_range))?;
    let mut ranges = [(first, largest); 1 + MAX_SACK_BLOCKS];
    let mut count = 1;
    let Some(further) = further else { return Some((ranges, count)) };
    for block in further.sacks.iter().take(usize::from(header.ranges)) {
        let above = ranges[count - 1].0;
        // The upper 32 bits are those of the range above, or one less.
        let full = |low: u32| {
            let number = above & !0xffff_ffff | u64::from(low);
            if number > above { number.checked_sub(1 << 32) } else { Some(number) }
        };
        ranges[count] = (full(block.start)?, full(block.end)?);
        count += 1;
    }
    are_descending(&ranges[..count]).then_some((ranges, count))
}

/// Returns the ranges of packet numbers that the ACK frame of a short-form datagram acknowledges, largest first; `None`
/// if there is no such frame. `further` contains the ranges after the first.
pub fn acknowledged_ranges(header: &QuicHeader, further: Option<&SegmentOptions>) -> Option<Vec<AckRange>> {
    short_ranges(header, further).map(|(ranges, count)| ranges[..count].to_vec())
}

/// The ACK frame of a short form.
fn short_ack(header: &QuicHeader, further: Option<&SegmentOptions>) -> Option<QuicFrame> {
    let (ranges, count) = short_ranges(header, further)?;
    Some(QuicFrame::Ack { delay: u64::from(header.stream), ranges: ranges[..count].to_vec(), ecn: None })
}

/// The token that a server sends in a Retry packet. The server accepts it from any address.
pub(crate) fn retry_token(seed: u64) -> u64 {
    seed ^ 0x5265_7472_7954_6f6b
}
