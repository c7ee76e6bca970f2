//! Processes an acknowledgment, or its absence (RFC 9002 sections 5 to 7 and appendix A).
//!
//! The order is that of the congestion-control trait: newly acknowledged packets, the round-trip time sample, losses,
//! and the beginning or end of a recovery period. One call of the controller and the update of timers follow.

use crate::Connection;
use crate::congestion::{AckResult, EcnState};
use crate::connection::{TransportError, unusual};
use crate::space::{FrameRecord, LossPeriod, LossThresholds, SentPacket, SpaceId, flag};
use crate::status::{LostPacket, State};
use crate::stream::{ControlFrameState, StreamChunk};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::QuicPacketType;
use fullpipe_wire::quic::{AckRange, EcnCounts};

/// The number of probes that a probe timeout sends (RFC 9002 section 6.2.4: one or two).
const PROBES: u8 = 2;

impl Connection {
    /// Handles an acknowledgment of packets in these ranges, the largest first. Fails if it contains a packet that was
    /// not sent.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        now: Instant,
        id: SpaceId,
        ranges: &[AckRange],
        delay: u64,
        ecn: Option<EcnCounts>,
    ) -> Result<(), TransportError> {
        let mut batch = self.path.batch();
        let server = self.server;
        let largest = ranges[0].1;
        let Connection { path, data, streams, opening, mtu, statistics, .. } = self;
        let layer = match id {
            SpaceId::Data => &mut *data,
            _ => {
                let Some(opening) = opening.as_deref_mut() else { return Ok(()) };
                let layer = if id == SpaceId::Initial { &mut opening.initial } else { &mut opening.handshake };
                let Some(layer) = layer else { return Ok(()) };
                layer
            }
        };
        // RFC 9000 section 13.1: acknowledges a packet that was not sent.
        if largest >= layer.space.next_number {
            return Err(TransportError::Protocol);
        }
        let mut largest_sent_at = None;
        let mut probe_arrived = false;
        // Successive chunks of a stream are acknowledged together.
        let mut pending: Option<(u64, StreamChunk)> = None;
        let smoothed = path.rtt.smoothed();
        for (first, last) in ranges.iter().rev() {
            layer.space.acknowledge(*first, *last, |sent, sample| {
                path.on_acknowledged(now, sent, sample, &mut batch);
                statistics.rtt_sum = statistics.rtt_sum.saturating_add(smoothed);
                statistics.rtt_count += 1;
                mtu.on_acknowledged(sent.bytes);
                probe_arrived |= sent.has(flag::MTU_PROBE);
                if let Some((stream, piece)) = sent.piece() {
                    match &mut pending {
                        Some((of, before)) if *of == stream && before.precedes(&piece) => {
                            before.length += piece.length;
                            before.fin |= piece.fin;
                        }
                        _ => {
                            if let Some((of, before)) = pending.replace((stream, piece)) {
                                streams.on_acknowledged(of, &before);
                            }
                        }
                    }
                }
                if sent.number == largest {
                    largest_sent_at = Some(sent.sent_at);
                }
            });
        }
        if let Some((stream, piece)) = pending {
            streams.on_acknowledged(stream, &piece);
        }
        let space = &mut layer.space;
        let raised = space.largest_acknowledged.is_none_or(|before| largest > before);
        space.largest_acknowledged = Some(space.largest_acknowledged.map_or(largest, |before| before.max(largest)));
        if layer.space.has_arrived_notes() || probe_arrived {
            self.take_arrived_notes(now, id, probe_arrived);
        }
        self.judge_losses(now, id, ranges);
        if batch.newest.is_none() {
            return Ok(());
        }
        // RFC 9002 section 5.3.
        let mut ack_delay = Duration::ZERO;
        let mut rtt = None;
        if let Some(sent_at) = largest_sent_at
            && largest >= self.path.first_number
        {
            if id == SpaceId::Data {
                ack_delay = self.ack_delay(delay);
                if self.opening.is_none() {
                    ack_delay = ack_delay.min(self.peer_max_ack_delay);
                }
            }
            let latest = now.saturating_since(sent_at);
            self.path.on_rtt(now, latest, ack_delay);
            rtt = Some(latest);
        }
        let reads_marks = raised && self.path.ecn != EcnState::Off;
        let marks = if reads_marks { self.path.on_ecn(id, ecn, &batch) } else { 0 };
        self.find_losses(now, id, &mut batch);
        if marks > 0
            && !self.path.driver.responds_to_marks()
            && let Some(sent_at) = largest_sent_at.or(batch.newest.map(|(_, sent_at)| sent_at))
        {
            self.path.on_congestion(now, sent_at, &batch, true, false);
        }
        self.path.finish(now, &batch, rtt, ack_delay, marks);
        self.path.update_pacing(&self.config);
        // RFC 9002 section 6.2.1: a client does not reset the backoff until the server is known to have validated its
        // address.
        if server || self.opening.as_ref().is_none_or(|opening| opening.validated || id == SpaceId::Handshake) {
            self.pto_count = 0;
        }
        if !server
            && id == SpaceId::Handshake
            && let Some(opening) = self.opening.as_deref_mut()
        {
            opening.validated = true;
        }
        self.set_timers(now);
        if self.closes_when_done {
            self.close_if_done(now);
        }
        Ok(())
    }

    /// Handles the most frequent acknowledgment: one range on a confirmed connection that acknowledges all packets up
    /// to its end for the first time. No packet is lost, marked, or a candidate for loss. If this applies, the effect
    /// is that of [`Connection::on_ack`]; otherwise nothing changes. On `quic-1`, it saves 440 of 800 instructions.
    #[inline]
    pub(crate) fn take_plain_ack(&mut self, now: Instant, first: u64, largest: u64, delay: u64) -> bool {
        let path = &self.path;
        if path.ecn != EcnState::Off || path.in_recovery() || largest < path.first_number {
            return false;
        }
        let smoothed = path.rtt.smoothed();
        let Some(run) = self.data.space.take_run(first, largest) else { return false };
        let samples = smoothed.saturating_mul(u64::from(run.packets));
        self.statistics.rtt_sum = self.statistics.rtt_sum.saturating_add(samples);
        self.statistics.rtt_count += u64::from(run.packets);
        self.mtu.on_acknowledged(run.largest_bytes);
        self.streams.on_acknowledged(run.stream, &run.piece);
        let ack_delay = self.ack_delay(delay).min(self.peer_max_ack_delay);
        self.path.on_run_acknowledged(now, &run, ack_delay);
        self.path.update_pacing(&self.config);
        self.pto_count = 0;
        self.set_timers(now);
        if self.closes_when_done {
            self.close_if_done(now);
        }
        true
    }

    /// The delay that the peer reports for an acknowledgment in the application data space.
    fn ack_delay(&self, delay: u64) -> Duration {
        let exponent = u32::from(self.peer_ack_delay_exponent);
        Duration::from_micros(delay.checked_shl(exponent).unwrap_or(u64::MAX).min(1 << 40))
    }

    /// Checks whether packets that were declared lost have arrived. If none is missing anymore, the last recovery was
    /// spurious and is undone, even if it has ended: a packet can arrive after those that were sent in the recovery.
    #[inline]
    fn judge_losses(&mut self, now: Instant, id: SpaceId, ranges: &[AckRange]) {
        if self.layer(id).is_some_and(|layer| layer.space.has_lost()) {
            let patience = self.path.rtt.pto().saturating_mul(2);
            self.judge_losses_slowly(now, id, ranges, patience);
        }
    }

    #[cold]
    #[inline(never)]
    fn judge_losses_slowly(&mut self, now: Instant, id: SpaceId, ranges: &[AckRange], patience: Duration) {
        let Some(layer) = self.layer(id) else { return };
        let arrived: usize = ranges.iter().map(|(first, last)| layer.space.recover(*first, *last)).sum();
        let all = !layer.space.has_lost();
        layer.space.forget_lost(Instant::from_nanos(now.as_nanos().saturating_sub(patience.as_nanos())));
        if arrived > 0 {
            self.statistics.spuriously_lost_packets += arrived as u64;
            if all && self.path.can_undo {
                self.path.leave_recovery(now, true);
            }
        }
    }

    /// Handles the frame records of packets that have arrived, and the arrival of a probe of the path's MTU.
    #[cold]
    #[inline(never)]
    fn take_arrived_notes(&mut self, now: Instant, id: SpaceId, probe: bool) {
        if probe {
            self.unusual |= unusual::MTU;
            if self.mtu.on_probe_acknowledged() {
                self.path.set_mtu(now, self.mtu.current(), &self.config);
            }
        }
        while let Some(note) = self.layer(id).and_then(|layer| layer.space.take_arrived_note()) {
            self.on_note_arrived(id, note);
        }
    }

    fn on_note_arrived(&mut self, id: SpaceId, note: FrameRecord) {
        match note {
            FrameRecord::Stream(stream, piece) => self.streams.on_acknowledged(u64::from(stream), &piece.into()),
            FrameRecord::Crypto(piece) => {
                if let Some(layer) = self.layer(id) {
                    layer.crypto().out.on_acknowledged(&piece.into());
                }
            }
            FrameRecord::Ack(largest) => {
                if let Some(layer) = self.layer(id) {
                    layer.received.on_ack_acknowledged(largest);
                }
            }
            FrameRecord::ResetStream(stream) => {
                if let Some(index) = self.streams.find(stream)
                    && let Some(stream) = self.streams.get_mut(index)
                {
                    stream.sending.reset = ControlFrameState::Acknowledged;
                    self.streams.settle(index);
                }
            }
            FrameRecord::StopSending(stream) => {
                if let Some(index) = self.streams.find(stream)
                    && let Some(stream) = self.streams.get_mut(index)
                {
                    stream.receiving.stop = ControlFrameState::Acknowledged;
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn find_losses(&mut self, now: Instant, id: SpaceId, batch: &mut AckResult) {
        let rtt = self.path.rtt;
        let packets = self.packet_threshold;
        let thresholds = || LossThresholds { packets, delay: rtt.loss_delay() };
        let mut lost: Vec<SentPacket> = Vec::new();
        let mut stretch = LossPeriod::default();
        let Connection { path, data, opening, .. } = self;
        let layer = match (id, opening.as_deref_mut()) {
            (SpaceId::Data, _) => &mut *data,
            (SpaceId::Initial, Some(opening)) => match &mut opening.initial {
                Some(layer) => layer,
                None => return,
            },
            (SpaceId::Handshake, Some(opening)) => match &mut opening.handshake {
                Some(layer) => layer,
                None => return,
            },
            _ => return,
        };
        layer.space.detect(now, thresholds, |sent, sample, broken| {
            path.on_lost(now, sent, sample, batch);
            if !sent.has(flag::MTU_PROBE) {
                stretch.add(sent, &path.rtt, broken);
            }
            lost.push(*sent);
        });
        if lost.is_empty() {
            return;
        }
        if self.rare.losses_noted.is_some() {
            self.note_lost(id, &lost);
        }
        self.on_lost(now, id, batch, &lost, &stretch);
    }

    #[cold]
    #[inline(never)]
    fn note_lost(&mut self, id: SpaceId, lost: &[SentPacket]) {
        let packet_type = match id {
            SpaceId::Initial => QuicPacketType::Initial,
            SpaceId::Handshake => QuicPacketType::Handshake,
            SpaceId::Data => QuicPacketType::OneRtt,
        };
        let largest = self.layer(id).and_then(|layer| layer.space.largest_acknowledged).unwrap_or(0);
        let threshold = self.packet_threshold;
        let noted = lost.iter().map(|sent| LostPacket {
            packet_type,
            number: sent.number,
            bytes: sent.bytes,
            by_reordering: largest.saturating_sub(sent.number) >= threshold,
            mtu_probe: sent.has(flag::MTU_PROBE),
        });
        self.rare.losses_noted.get_or_insert_default().extend(noted);
    }

    #[cold]
    #[inline(never)]
    fn on_lost(&mut self, now: Instant, id: SpaceId, batch: &AckResult, lost: &[SentPacket], stretch: &LossPeriod) {
        let mut newest = None;
        for sent in lost {
            if sent.has(flag::MTU_PROBE) {
                // The loss of an MTU probe does not indicate congestion (RFC 9000 section 14.4).
                self.mtu.on_probe_lost();
                self.unusual |= unusual::MTU;
            } else {
                self.statistics.lost_packets += 1;
                if sent.number >= self.path.first_number {
                    newest = Some(sent.sent_at);
                }
            }
            self.send_again(id, sent);
        }
        let Some(sent_at) = newest else { return };
        // A burst of losses counts as one.
        if let Some(first) = lost.iter().find(|sent| !sent.has(flag::MTU_PROBE))
            && self.mtu.on_lost(now, first.bytes)
        {
            self.path.set_mtu(now, self.mtu.current(), &self.config);
            self.rare.search_at = self.mtu.begins_at();
            self.has_rare_deadline = true;
        }
        let rtt = &self.path.rtt;
        let period = rtt.pto().saturating_add(self.peer_max_ack_delay);
        let persistent = stretch.longest() > period.saturating_mul(self.config.persistent_congestion_threshold);
        self.path.on_congestion(now, sent_at, batch, false, persistent);
    }

    /// Schedules the content of a packet for retransmission where it is still needed (RFC 9000 section 13.3).
    fn send_again(&mut self, id: SpaceId, sent: &SentPacket) {
        if let Some((stream, piece)) = sent.piece() {
            return self.streams.on_lost(stream, &piece);
        }
        self.notes_again(id, sent.number);
    }

    /// Schedules the content of a packet other than its stream chunk for retransmission.
    pub(crate) fn notes_again(&mut self, id: SpaceId, number: u64) {
        while let Some(note) = self.layer(id).and_then(|layer| layer.space.take_note(number)) {
            self.note_again(id, note);
        }
    }

    pub(crate) fn note_again(&mut self, id: SpaceId, note: FrameRecord) {
        match note {
            FrameRecord::Stream(stream, piece) => self.streams.on_lost(u64::from(stream), &piece.into()),
            FrameRecord::Crypto(piece) => {
                if let Some(layer) = self.layer(id) {
                    layer.crypto().out.on_lost(&piece.into());
                }
            }
            // The current value is sent, if it is still needed.
            FrameRecord::MaxData => self.streams.limit_due = true,
            FrameRecord::MaxStreamData(stream) => self.control_again(stream, |stream| {
                stream.receiving.limit_due =
                    stream.receiving.final_size.is_none() && stream.receiving.stop == ControlFrameState::NotRequested;
            }),
            FrameRecord::MaxStreams(kind) => self.streams.remote[usize::from(kind)].due = true,
            FrameRecord::ResetStream(stream) => self.control_again(stream, |stream| {
                if stream.sending.reset == ControlFrameState::Sent {
                    stream.sending.reset = ControlFrameState::Due;
                }
            }),
            FrameRecord::StopSending(stream) => self.control_again(stream, |stream| {
                if stream.receiving.stop == ControlFrameState::Sent && !stream.receiving.is_complete() {
                    stream.receiving.stop = ControlFrameState::Due;
                }
            }),
            FrameRecord::DataBlocked => self.streams.blocked_at = None,
            FrameRecord::StreamDataBlocked(stream) => {
                self.control_again(stream, |stream| stream.sending.blocked_due = true)
            }
            FrameRecord::StreamsBlocked(kind) => self.streams.local[usize::from(kind)].due = true,
            FrameRecord::Datagram(_) => self.statistics.datagrams_lost += 1,
            FrameRecord::Ack(_) | FrameRecord::NotRetransmitted => return,
            FrameRecord::NewConnectionId(_)
            | FrameRecord::RetireConnectionId(_)
            | FrameRecord::HandshakeDone
            | FrameRecord::AckFrequency => {
                self.note_due(note);
            }
        }
        self.unusual |= unusual::CONTROL;
    }

    fn control_again(&mut self, stream: u64, change: impl FnOnce(&mut crate::stream::Stream)) {
        if let Some(index) = self.streams.find(stream)
            && let Some(stream) = self.streams.get_mut(index)
        {
            change(stream);
            self.streams.control(index);
        }
    }

    /// Declares packets lost by the time threshold.
    pub(crate) fn on_loss_timer(&mut self, now: Instant) {
        for id in [SpaceId::Initial, SpaceId::Handshake, SpaceId::Data] {
            if self.layer(id).is_some_and(|layer| layer.space.loss_at <= now) {
                let mut batch = self.path.batch();
                self.find_losses(now, id, &mut batch);
            }
        }
        self.path.update_pacing(&self.config);
        self.set_timers(now);
    }

    /// Sends probes, because no acknowledgment has arrived within a probe timeout (RFC 9002 section 6.2.4).
    #[cold]
    pub(crate) fn on_probe_timer(&mut self, now: Instant) {
        self.pto_count += 1;
        self.statistics.probe_timeouts += 1;
        if self.mtu.on_time_out(now, self.pto_count) {
            self.path.set_mtu(now, self.mtu.current(), &self.config);
            self.rare.search_at = self.mtu.begins_at();
            self.has_rare_deadline = true;
        }
        let due = self.probe_deadline();
        match due {
            Some((_, id)) => {
                if let Some(layer) = self.layer(id) {
                    layer.probes = PROBES;
                }
            }
            None => {
                // RFC 9002 section 6.2.2.1: the client sends, so that a server that waits for address validation can
                // continue.
                let id = if self.layer(SpaceId::Handshake).is_some() { SpaceId::Handshake } else { SpaceId::Initial };
                if let Some(layer) = self.layer(id) {
                    layer.probes = 1;
                }
            }
        }
        if self.data.probes > 0 {
            self.unusual |= unusual::PROBE;
        }
        self.set_timers(now);
    }

    /// The time and the packet number space of the next probe, from the outstanding packets.
    fn probe_deadline(&self) -> Option<(Instant, SpaceId)> {
        let duration = self.path.rtt.pto();
        let backed_off = |duration: Duration| duration.saturating_mul(1 << self.pto_count.min(20));
        let mut due = None;
        if let Some(opening) = &self.opening {
            for (layer, id) in [(&opening.initial, SpaceId::Initial), (&opening.handshake, SpaceId::Handshake)] {
                if let Some(layer) = layer
                    && (layer.space.outstanding > 0 || layer.has_crypto())
                {
                    // Otherwise a flight could wait forever: the window may be full of data that the peer cannot read
                    // yet.
                    let since = match layer.space.last_eliciting_at {
                        Instant::NEVER => self.data.space.last_eliciting_at,
                        since => since,
                    };
                    let at = since.saturating_add(backed_off(duration));
                    if !at.is_never() && due.is_none_or(|(earliest, _)| at < earliest) {
                        due = Some((at, id));
                    }
                }
            }
            // No probe for data before the handshake is confirmed.
            return due;
        }
        if self.data.space.outstanding > 0 {
            let with_delay = duration.saturating_add(self.peer_max_ack_delay);
            due = Some((self.data.space.last_eliciting_at.saturating_add(backed_off(with_delay)), SpaceId::Data));
        }
        due
    }

    /// Sets the probe timer (RFC 9002 appendix A.8).
    #[inline]
    pub(crate) fn set_timers(&mut self, now: Instant) {
        if matches!(self.state, State::Closing | State::Draining | State::Closed) {
            return;
        }
        if self.opening.is_none() {
            // The deadline of the time threshold is earlier and separate.
            self.pto_at = if self.data.space.outstanding == 0 || !self.data.space.loss_at.is_never() {
                Instant::NEVER
            } else {
                let pto = self.path.rtt.pto().saturating_add(self.peer_max_ack_delay);
                // The deadline may be in the past, if the handshake was confirmed late or a sample shortened the
                // time-out.
                let at =
                    self.data.space.last_eliciting_at.saturating_add(pto.saturating_mul(1 << self.pto_count.min(20)));
                at.max(now)
            };
            return;
        }
        self.set_timers_of_opening(now);
    }

    #[cold]
    fn set_timers_of_opening(&mut self, now: Instant) {
        let Some(opening) = self.opening.as_deref() else { return };
        // RFC 9002 section 6.2.2.1: a server without credit to send waits for the client.
        let blocked = self.server && !opening.validated && opening.credit == 0;
        let keeps_alive = !self.server && !opening.validated;
        self.pto_at = match self.probe_deadline() {
            _ if blocked => Instant::NEVER,
            Some((at, _)) => at.max(now),
            None if keeps_alive => now.saturating_add(self.path.rtt.pto().saturating_mul(1 << self.pto_count.min(20))),
            None => Instant::NEVER,
        };
    }

    /// Schedules the oldest outstanding data for a probe without new data, because it is the most likely to be lost.
    pub(crate) fn repeat_oldest(&mut self, id: SpaceId) {
        let Some(layer) = self.layer(id) else { return };
        let Some(oldest) = layer.space.on_their_way().next().copied() else { return };
        if let Some((stream, piece)) = oldest.piece() {
            return self.streams.on_lost(stream, &piece);
        }
        let notes = layer.space.notes(oldest.number);
        for note in notes {
            if !matches!(note, FrameRecord::Datagram(_)) {
                self.note_again(id, note);
            }
        }
    }
}
