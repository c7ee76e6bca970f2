//! The sending side of a packet number space: packets that are neither acknowledged nor lost, and loss detection (RFC
//! 9002 section 6).
//!
//! Records are in the order of packet numbers, which is also the order of sending. Completed records are removed at the
//! front, so that a search begins at an outstanding packet. Packets that are not ack-eliciting have no record. If the
//! content of a packet is one stream chunk, it is in the packet's record; all other content is in separate frame
//! records.

use crate::rtt::RttEstimator;
use crate::stream::StreamChunk;
use fullpipe_congestion::PacketState;
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::QuicPacketType;
use std::collections::VecDeque;

/// A packet number space (RFC 9000 section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SpaceId {
    Initial,
    Handshake,
    Data,
}

impl SpaceId {
    /// The space of a packet of this type; `None` for Retry and Version Negotiation.
    pub(crate) fn of(packet_type: QuicPacketType) -> Option<SpaceId> {
        match packet_type {
            QuicPacketType::Initial => Some(SpaceId::Initial),
            QuicPacketType::Handshake => Some(SpaceId::Handshake),
            QuicPacketType::ZeroRtt | QuicPacketType::OneRtt => Some(SpaceId::Data),
            QuicPacketType::Retry | QuicPacketType::VersionNegotiation => None,
        }
    }
}

/// Flags of a [`SentPacket`].
pub(crate) mod flag {
    /// The packet was acknowledged.
    pub(crate) const ACKNOWLEDGED: u8 = 1;
    /// The chunk ends the stream.
    pub(crate) const FIN: u8 = 2;
    /// Sent while the application limited sending.
    pub(crate) const APP_LIMITED: u8 = 4;
    /// Sent as ECN-capable.
    pub(crate) const ECT: u8 = 8;
    /// The packet probes the path's MTU.
    pub(crate) const MTU_PROBE: u8 = 16;
    /// The packet contains a stream chunk.
    pub(crate) const STREAM: u8 = 32;
    /// The packet is marked lost.
    pub(crate) const LOST: u8 = 64;
    /// The packet has frame records.
    pub(crate) const NOTED: u8 = 128;
}

/// Content of a packet other than the stream chunk in its record. It takes 24 bytes, because stream IDs are below 2^32
/// in the model, and the data of a frame fits into a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameRecord {
    Stream(u32, PackedChunk),
    Crypto(PackedChunk),
    /// An acknowledgment up to this number.
    Ack(u64),
    MaxData,
    MaxStreamData(u64),
    MaxStreams(u8),
    StreamsBlocked(u8),
    DataBlocked,
    StreamDataBlocked(u64),
    ResetStream(u64),
    StopSending(u64),
    NewConnectionId(u64),
    RetireConnectionId(u64),
    HandshakeDone,
    AckFrequency,
    /// Frames that are never retransmitted: PING, PATH_CHALLENGE and PATH_RESPONSE, DATAGRAM, padding.
    NotRetransmitted,
    Datagram(u64),
}

const _: () = assert!(size_of::<FrameRecord>() == 24, "notes are small");

/// A [`StreamChunk`] that fits into a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedChunk {
    offset: u64,
    length: u16,
    fin: bool,
}

impl From<StreamChunk> for PackedChunk {
    fn from(piece: StreamChunk) -> PackedChunk {
        PackedChunk { offset: piece.offset, length: piece.length as u16, fin: piece.fin }
    }
}

impl From<PackedChunk> for StreamChunk {
    fn from(piece: PackedChunk) -> StreamChunk {
        StreamChunk { offset: piece.offset, length: u64::from(piece.length), fin: piece.fin }
    }
}

/// A frame record of a packet in flight.
#[derive(Clone, Copy, Debug)]
struct Noted {
    number: u64,
    /// `None` if the frame record was taken.
    note: Option<FrameRecord>,
    /// Whether the packet was acknowledged and the frame record is to be taken.
    arrived: bool,
}

/// The record of a packet in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentPacket {
    pub(crate) number: u64,
    pub(crate) sent_at: Instant,
    delivered_bytes: u64,
    /// The offset of the packet's stream chunk.
    offset: u64,
    /// The ID of that stream; below 2^32.
    stream: u32,
    in_flight_bytes: u32,
    length: u16,
    /// The size of the packet in bytes.
    pub(crate) bytes: u16,
    /// See [`flag`].
    pub(crate) flags: u8,
}

/// The state of a packet in flight for delivery-rate samples; stored only if samples are taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateSampleState {
    delivered_at: Instant,
    first_sent_at: Instant,
    lost_bytes: u32,
}

impl RateSampleState {
    #[inline]
    pub(crate) fn new(state: &PacketState) -> RateSampleState {
        RateSampleState {
            delivered_at: state.delivered_at,
            first_sent_at: state.first_sent_at,
            lost_bytes: state.lost_bytes as u32,
        }
    }
}

impl SentPacket {
    #[inline]
    pub(crate) fn new(number: u64, state: &PacketState, flags: u8) -> SentPacket {
        SentPacket {
            number,
            sent_at: state.sent_at,
            delivered_bytes: state.delivered_bytes,
            in_flight_bytes: u32::try_from(state.in_flight_bytes).unwrap_or(u32::MAX),
            offset: 0,
            stream: 0,
            length: 0,
            bytes: state.bytes as u16,
            flags: flags | if state.app_limited { flag::APP_LIMITED } else { 0 },
        }
    }

    /// Adds a stream chunk.
    #[inline]
    pub(crate) fn with_piece(self, stream: u64, piece: &StreamChunk) -> SentPacket {
        let fin = if piece.fin { flag::FIN } else { 0 };
        SentPacket {
            stream: stream as u32,
            offset: piece.offset,
            length: piece.length as u16,
            flags: self.flags | flag::STREAM | fin,
            ..self
        }
    }

    #[inline(always)]
    pub(crate) fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// The stream ID and the chunk in the record, if any.
    #[inline]
    pub(crate) fn piece(&self) -> Option<(u64, StreamChunk)> {
        let piece = StreamChunk { offset: self.offset, length: u64::from(self.length), fin: self.has(flag::FIN) };
        self.has(flag::STREAM).then_some((u64::from(self.stream), piece))
    }

    /// The state of the packet for the congestion controller. `lost_bytes` is the connection's current count of lost
    /// bytes. If no rate samples are taken, `delivered_at` and `first_sent_at` are zero, because no controller reads
    /// them.
    #[inline]
    pub(crate) fn state(&self, sample: Option<&RateSampleState>, lost_bytes: u64) -> PacketState {
        let state = PacketState {
            sent_at: self.sent_at,
            bytes: u64::from(self.bytes),
            delivered_bytes: self.delivered_bytes,
            in_flight_bytes: u64::from(self.in_flight_bytes),
            lost_bytes,
            app_limited: self.has(flag::APP_LIMITED),
            ..PacketState::default()
        };
        let Some(sample) = sample else { return state };
        let since = (lost_bytes as u32).wrapping_sub(sample.lost_bytes);
        PacketState {
            delivered_at: sample.delivered_at,
            first_sent_at: sample.first_sent_at,
            lost_bytes: lost_bytes.saturating_sub(u64::from(since)),
            ..state
        }
    }
}

/// The thresholds of loss detection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LossThresholds {
    pub(crate) packets: u64,
    pub(crate) delay: Duration,
}

/// The sending side of a space.
#[derive(Debug)]
pub(crate) struct SendSpace {
    pub(crate) next_number: u64,
    sent: VecDeque<SentPacket>,
    /// Rate samples of the packets in `sent`, if they are taken.
    samples: Option<Box<VecDeque<RateSampleState>>>,
    /// Frame records, in the order of packet numbers.
    notes: VecDeque<Noted>,
    /// Number of frame records of acknowledged packets that are to be taken.
    arrived_notes: u32,
    /// Number of outstanding packets.
    pub(crate) outstanding: u32,
    arrived_from: u64,
    pub(crate) largest_acknowledged: Option<u64>,
    /// When the time threshold will declare the next packet lost.
    pub(crate) loss_at: Instant,
    /// When the last ack-eliciting packet was sent.
    pub(crate) last_eliciting_at: Instant,
    /// Packets declared lost recently, oldest first: the number, and when the loss was detected.
    lost: VecDeque<(u64, Instant)>,
}

/// Successive packets, each with a chunk of the same stream that begins where the previous one ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacketRun {
    pub(crate) packets: u32,
    /// Bytes of all packets, and of the largest.
    pub(crate) bytes: u64,
    pub(crate) largest_bytes: u16,
    /// When the last packet was sent.
    pub(crate) sent_at: Instant,
    pub(crate) delivered_bytes: u64,
    /// The stream of the chunks.
    pub(crate) stream: u64,
    pub(crate) piece: StreamChunk,
}

/// Reserves capacity for one more element. A full buffer grows by half of its length. Buffers that double would be half
/// empty with ten thousand connections.
#[inline(always)]
fn reserve_one<T>(ring: &mut VecDeque<T>) {
    if ring.len() == ring.capacity() {
        grow(ring);
    }
}

#[cold]
#[inline(never)]
fn grow<T>(ring: &mut VecDeque<T>) {
    ring.reserve_exact((ring.len() / 2).max(2));
}

impl SendSpace {
    pub(crate) fn new() -> SendSpace {
        SendSpace {
            next_number: 0,
            sent: VecDeque::new(),
            samples: None,
            notes: VecDeque::new(),
            arrived_notes: 0,
            outstanding: 0,
            arrived_from: 0,
            largest_acknowledged: None,
            loss_at: Instant::NEVER,
            last_eliciting_at: Instant::NEVER,
            lost: VecDeque::new(),
        }
    }

    /// Length in bytes of the next packet number on the wire (RFC 9000 section 17.1 and appendix A.2). It must
    /// distinguish twice as many numbers as there are between the largest acknowledged number and the next.
    #[inline]
    pub(crate) fn number_bytes(&self) -> u8 {
        let unacknowledged = self.next_number + 1 - self.largest_acknowledged.map_or(0, |largest| largest + 1);
        match unacknowledged * 2 {
            0..0x100 => 1,
            0x100..0x1_0000 => 2,
            0x1_0000..0x100_0000 => 3,
            _ => 4,
        }
    }

    /// Records a packet that is sent.
    #[inline]
    pub(crate) fn push(&mut self, sent: SentPacket, sample: Option<RateSampleState>) {
        self.last_eliciting_at = sent.sent_at;
        self.outstanding += 1;
        reserve_one(&mut self.sent);
        self.sent.push_back(sent);
        if let Some(sample) = sample {
            self.samples.get_or_insert_default().push_back(sample);
        }
    }

    /// Records a packet with frame records that is sent.
    pub(crate) fn push_noted(&mut self, mut sent: SentPacket, sample: Option<RateSampleState>, notes: &[FrameRecord]) {
        for &note in notes {
            reserve_one(&mut self.notes);
            self.notes.push_back(Noted { number: sent.number, note: Some(note), arrived: false });
        }
        sent.flags |= flag::NOTED;
        self.push(sent, sample);
    }

    /// Adds padding to the packet that was sent last; returns whether there is such a packet.
    pub(crate) fn grow_last(&mut self, bytes: u32) -> bool {
        let next_number = self.next_number;
        match self.sent.back_mut() {
            Some(last) if last.number + 1 == next_number => {
                last.bytes += bytes as u16;
                true
            }
            _ => false,
        }
    }

    /// Takes the next frame record of a lost packet.
    pub(crate) fn take_note(&mut self, number: u64) -> Option<FrameRecord> {
        let start = self.notes.partition_point(|noted| noted.number < number);
        let of_packet = self.notes.iter_mut().skip(start).take_while(|noted| noted.number == number);
        let note = of_packet.into_iter().find_map(|noted| noted.note.take());
        self.forget_taken_notes();
        note
    }

    /// Whether a frame record of an acknowledged packet is to be taken.
    #[inline(always)]
    pub(crate) fn has_arrived_notes(&self) -> bool {
        self.arrived_notes > 0
    }

    /// Takes the next frame record of an acknowledged packet.
    #[inline]
    pub(crate) fn take_arrived_note(&mut self) -> Option<FrameRecord> {
        if self.arrived_notes == 0 { None } else { self.find_arrived_note() }
    }

    fn find_arrived_note(&mut self) -> Option<FrameRecord> {
        let start = self.notes.partition_point(|noted| noted.number < self.arrived_from);
        let noted = self.notes.iter_mut().skip(start).find(|noted| noted.arrived)?;
        noted.arrived = false;
        self.arrived_from = noted.number;
        self.arrived_notes -= 1;
        let note = noted.note.take();
        self.forget_taken_notes();
        note
    }

    fn forget_taken_notes(&mut self) {
        while self.notes.front().is_some_and(|noted| noted.note.is_none()) {
            self.notes.pop_front();
        }
    }

    /// Marks the frame records of an acknowledged packet as to be taken.
    #[cold]
    #[inline(never)]
    fn mark_arrived(&mut self, number: u64) {
        let start = self.notes.partition_point(|noted| noted.number < number);
        let of_packet = self.notes.iter_mut().skip(start).take_while(|noted| noted.number == number);
        for noted in of_packet.filter(|noted| noted.note.is_some()) {
            if self.arrived_notes == 0 || number < self.arrived_from {
                self.arrived_from = number;
            }
            self.arrived_notes += 1;
            noted.arrived = true;
        }
    }

    /// The frame records of a packet that is still in flight.
    pub(crate) fn notes(&self, number: u64) -> Vec<FrameRecord> {
        self.notes.iter().filter(|noted| noted.number == number).filter_map(|noted| noted.note).collect()
    }

    /// The packets in flight, oldest first.
    pub(crate) fn on_their_way(&self) -> impl Iterator<Item = &SentPacket> {
        self.sent.iter().filter(|sent| !sent.has(flag::ACKNOWLEDGED | flag::LOST))
    }

    /// The index of the first record whose number is at least this. Packet numbers are mostly successive.
    #[inline]
    fn position(&self, number: u64) -> usize {
        let Some(front) = self.sent.front() else { return 0 };
        let Some(guess) = number.checked_sub(front.number) else { return 0 };
        match self.sent.get(guess as usize) {
            Some(sent) if sent.number == number => guess as usize,
            _ => self.sent.partition_point(|sent| sent.number < number),
        }
    }

    #[inline(always)]
    fn pop_front(&mut self) {
        self.sent.pop_front();
        if let Some(samples) = &mut self.samples {
            samples.pop_front();
        }
    }

    /// Acknowledges an inclusive range, and passes each newly acknowledged packet to `told`, in order.
    #[inline]
    pub(crate) fn acknowledge(
        &mut self,
        first: u64,
        last: u64,
        mut told: impl FnMut(&SentPacket, Option<&RateSampleState>),
    ) {
        let mut index = self.position(first);
        while let Some(sent) = self.sent.get_mut(index)
            && sent.number <= last
        {
            if !sent.has(flag::ACKNOWLEDGED | flag::LOST) {
                sent.flags |= flag::ACKNOWLEDGED;
                self.outstanding -= 1;
                told(sent, self.samples.as_ref().and_then(|samples| samples.get(index)));
                if sent.has(flag::NOTED) {
                    let number = sent.number;
                    self.mark_arrived(number);
                }
            }
            if index == 0 {
                self.pop_front();
            } else {
                index += 1;
            }
        }
    }

    /// Removes all packets up to `last` if they are a [`PacketRun`] that the range acknowledges completely. No earlier
    /// packet may be missing, and there may be no frame records, losses, marks or samples. If this returns `None`,
    /// nothing has changed.
    #[inline]
    pub(crate) fn take_run(&mut self, first: u64, last: u64) -> Option<PacketRun> {
        // If the records wrap around the end of the buffer, `acknowledge` processes them.
        let records = self.sent.as_slices().0;
        let oldest = records.first()?;
        let packets = last.checked_sub(oldest.number)?.saturating_add(1);
        let records = records.get(..packets as usize)?;
        let newest = records.last()?;
        // Numbers increase. If the number of the newest is as far ahead as its index, none is missing.
        let is_complete = newest.number == last && first <= oldest.number;
        let is_old = self.largest_acknowledged.is_some_and(|largest| largest > last);
        if !is_complete || is_old || self.has_lost() || self.samples.is_some() {
            return None;
        }
        let mut run = PacketRun {
            packets: packets as u32,
            bytes: 0,
            largest_bytes: 0,
            sent_at: newest.sent_at,
            delivered_bytes: newest.delivered_bytes,
            stream: u64::from(oldest.stream),
            piece: StreamChunk { offset: oldest.offset, length: 0, fin: false },
        };
        for sent in records {
            let is_plain = sent.flags & !(flag::APP_LIMITED | flag::FIN) == flag::STREAM;
            let follows = sent.offset == run.piece.offset + run.piece.length && sent.stream == oldest.stream;
            if !is_plain || !follows {
                return None;
            }
            run.piece.length += u64::from(sent.length);
            run.piece.fin |= sent.has(flag::FIN);
            run.bytes += u64::from(sent.bytes);
            run.largest_bytes = run.largest_bytes.max(sent.bytes);
        }
        for _ in 0..packets {
            self.sent.pop_front();
        }
        self.outstanding -= packets as u32;
        self.largest_acknowledged = Some(last);
        self.loss_at = Instant::NEVER;
        Some(run)
    }

    /// Removes the numbers of a range from the packets declared lost; returns how many there were. Since they are
    /// sorted, two searches suffice. A check of each number cost a seventh of the benchmark's instructions.
    pub(crate) fn recover(&mut self, first: u64, last: u64) -> usize {
        if self.lost.back().is_none_or(|(newest, _)| first > *newest) {
            return 0;
        }
        let start = self.lost.partition_point(|(number, _)| *number < first);
        let end = self.lost.partition_point(|(number, _)| *number <= last);
        self.lost.drain(start..end).count()
    }

    /// Whether any packet that was declared lost has not arrived since.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Discards losses detected before an instant.
    pub(crate) fn forget_lost(&mut self, before: Instant) {
        while self.lost.front().is_some_and(|(_, at)| *at < before) {
            self.lost.pop_front();
        }
    }

    /// Marks lost packets (RFC 9002 section 6.1 and appendix A.10) and sets the time of the next check. For each lost
    /// packet, the callback also receives whether a packet between it and the previous lost one was acknowledged.
    #[inline]
    pub(crate) fn detect(
        &mut self,
        now: Instant,
        thresholds: impl Fn() -> LossThresholds,
        mut told: impl FnMut(&SentPacket, Option<&RateSampleState>, bool),
    ) {
        self.loss_at = Instant::NEVER;
        let Some(largest) = self.largest_acknowledged else { return };
        if self.sent.front().is_none_or(|sent| sent.number >= largest) {
            return;
        }
        let thresholds = thresholds();
        let (mut index, mut broken) = (0, false);
        while let Some(sent) = self.sent.get_mut(index)
            && sent.number < largest
        {
            if sent.has(flag::ACKNOWLEDGED | flag::LOST) {
                broken |= sent.has(flag::ACKNOWLEDGED);
                if index == 0 {
                    self.pop_front();
                } else {
                    index += 1;
                }
                continue;
            }
            let due = sent.sent_at.saturating_add(thresholds.delay);
            if largest - sent.number < thresholds.packets && due > now {
                self.loss_at = due;
                return;
            }
            sent.flags |= flag::LOST;
            self.outstanding -= 1;
            reserve_one(&mut self.lost);
            self.lost.push_back((sent.number, now));
            told(sent, self.samples.as_ref().and_then(|samples| samples.get(index)), broken);
            broken = false;
        }
    }

    /// Subtracts the packets that were sent on another path from the bytes in flight. They can still be acknowledged.
    pub(crate) fn leave_path(&mut self) {
        for sent in &mut self.sent {
            sent.bytes = 0;
            sent.flags &= !(flag::MTU_PROBE | flag::ECT);
        }
    }

    /// Discards all packets, because keys were discarded or packets were rejected. Returns the discarded bytes in
    /// flight.
    pub(crate) fn discard(&mut self) -> u64 {
        let bytes = self.on_their_way().map(|sent| u64::from(sent.bytes)).sum();
        self.sent.clear();
        self.samples = None;
        self.notes.clear();
        self.arrived_notes = 0;
        self.lost.clear();
        self.outstanding = 0;
        self.loss_at = Instant::NEVER;
        self.last_eliciting_at = Instant::NEVER;
        bytes
    }
}

/// A contiguous period of losses in one detection, during which no packet was acknowledged (RFC 9002 section 7.6).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossPeriod {
    begin: Option<Instant>,
    longest: Duration,
}

impl LossPeriod {
    /// Adds the next lost packet; `broken` if a packet between it and the previous one was acknowledged.
    #[inline]
    pub(crate) fn add(&mut self, sent: &SentPacket, rtt: &RttEstimator, broken: bool) {
        if rtt.first_at().is_none_or(|first| sent.sent_at < first) {
            return;
        }
        match self.begin {
            Some(since) if !broken => self.longest = self.longest.max(sent.sent_at.saturating_since(since)),
            _ => self.begin = Some(sent.sent_at),
        }
    }

    pub(crate) fn longest(&self) -> Duration {
        self.longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_congestion::PacketState;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A packet whose properties are the bits of a number; `offset` is where its piece of the stream begins.
    fn sent(number: u64, bits: u8, offset: u64) -> SentPacket {
        let state = PacketState {
            bytes: 100 + u64::from(bits & 3),
            sent_at: Instant::from_nanos(10 * number),
            delivered_bytes: 7 * number,
            app_limited: bits & 4 != 0,
            ..PacketState::default()
        };
        let sent = SentPacket::new(number, &state, if bits > 250 { flag::ECT } else { 0 });
        let piece = StreamChunk { offset: offset + u64::from(bits == 250), length: 50, fin: bits == 249 };
        sent.with_piece(u64::from(bits == 248), &piece)
    }

    /// The results of [`SendSpace::acknowledge`] and [`SendSpace::detect`] for a range, as a [`PacketRun`], and the
    /// number of lost packets.
    fn acknowledge(space: &mut SendSpace, first: u64, last: u64, now: Instant) -> (Option<PacketRun>, usize) {
        let mut run: Option<PacketRun> = None;
        space.acknowledge(first, last, |sent, _| {
            let (stream, piece) = sent.piece().unwrap_or((0, StreamChunk { offset: 0, length: 0, fin: false }));
            let (sent_at, delivered_bytes) = (sent.sent_at, sent.delivered_bytes);
            let before = run.map_or((0, 0, 0), |run| (run.packets, run.bytes, run.largest_bytes));
            let piece = match run {
                Some(run) => {
                    StreamChunk { length: run.piece.length + piece.length, fin: run.piece.fin | piece.fin, ..run.piece }
                }
                None => piece,
            };
            run = Some(PacketRun {
                packets: before.0 + 1,
                bytes: before.1 + u64::from(sent.bytes),
                largest_bytes: before.2.max(sent.bytes),
                sent_at,
                delivered_bytes,
                stream,
                piece,
            });
        });
        let largest = space.largest_acknowledged.map_or(last, |before| before.max(last));
        space.largest_acknowledged = Some(largest);
        let mut lost = 0;
        let thresholds = || LossThresholds { packets: 3, delay: Duration::from_nanos(70) };
        space.detect(now, thresholds, |_, _, _| lost += 1);
        (run, lost)
    }

    #[test]
    fn packets_acknowledged_in_order_are_a_run_and_those_beyond_a_gap_are_not() {
        let mut space = SendSpace::new();
        for number in 0..6 {
            space.push(sent(number, 0, 50 * number), None);
        }
        let run = space.take_run(0, 1).expect("the first two");
        assert_eq!((run.packets, run.bytes, run.piece), (2, 200, StreamChunk { offset: 0, length: 100, fin: false }));
        assert_eq!(space.take_run(3, 3), None, "packet 2 is missing");
        assert_eq!(space.take_run(2, 6), None, "packet 6 was not sent");
        assert_eq!(space.take_run(0, 5).map(|run| run.packets), Some(4), "ranges repeat what was acknowledged");
        assert_eq!(space.outstanding, 0);
    }

    proptest! {
        /// The notes of a packet are returned in order and once, when it is acknowledged or lost.
        #[test]
        fn notes_of_a_packet_are_returned_once_and_in_order(
            counts in prop::collection::vec(0usize..4, 1..30),
            fates in prop::collection::vec((any::<bool>(), 0u64..30, 0u64..4), 1..30),
        ) {
            let (mut space, mut expected) = (SendSpace::new(), BTreeMap::new());
            let mut value = 0;
            for (number, &count) in counts.iter().enumerate() {
                let notes: Vec<FrameRecord> = (0..count as u64).map(|place| FrameRecord::Ack(value + place)).collect();
                value += count as u64;
                let sent = SentPacket::new(number as u64, &PacketState::default(), 0);
                if count == 0 {
                    space.push(sent, None);
                } else {
                    space.push_noted(sent, None, &notes);
                }
                expected.insert(number as u64, notes);
            }
            let mut acknowledged = [false; 40];
            for (arrived, first, more) in fates {
                if arrived {
                    space.acknowledge(first, first + more, |_, _| ());
                    for number in first..=first + more {
                        let notes = expected.remove(&number).unwrap_or_default();
                        for note in notes.into_iter().filter(|_| !acknowledged[number as usize]) {
                            prop_assert_eq!(space.take_arrived_note(), Some(note));
                        }
                        acknowledged[number as usize] = true;
                    }
                    prop_assert_eq!(space.take_arrived_note(), None);
                } else {
                    let notes = expected.remove(&first).unwrap_or_default();
                    prop_assert_eq!(space.notes(first), notes.clone());
                    for note in notes {
                        prop_assert_eq!(space.take_note(first), Some(note));
                    }
                    prop_assert_eq!(space.take_note(first), None);
                }
            }
        }

        /// A run has the effect of acknowledging its packets one by one and detecting losses; otherwise nothing
        /// changes.
        #[test]
        fn run_agrees_with_its_packets_one_by_one(
            steps in prop::collection::vec((0usize..4, any::<u8>(), 0u64..6, 0u64..3, prop::bool::weighted(0.9)), 1..40),
        ) {
            let [mut short, mut long] = [SendSpace::new(), SendSpace::new()];
            let (mut next, mut offset, mut acknowledged) = (0, 0, 0);
            for (packets, bits, behind, ahead, in_order) in steps {
                for _ in 0..packets {
                    // Sometimes an acknowledgement has the number in between.
                    next += u64::from(bits == 247);
                    let packet = sent(next, bits, offset);
                    for space in [&mut short, &mut long] {
                        if bits == 246 {
                            space.push_noted(packet, None, &[FrameRecord::MaxData]);
                        } else {
                            space.push(packet, None);
                        }
                        space.next_number = next + 1;
                    }
                    next += 1;
                    offset += 50;
                }
                if next == 0 {
                    continue;
                }
                let last = (acknowledged + ahead + u64::from(!in_order)).min(next - 1);
                let first = if in_order { acknowledged.min(last) } else { last.saturating_sub(behind) };
                acknowledged = last + 1;
                let now = Instant::from_nanos(10 * next);
                let before = format!("{short:?}");
                match short.take_run(first, last) {
                    Some(run) => prop_assert_eq!(acknowledge(&mut long, first, last, now), (Some(run), 0)),
                    None => {
                        prop_assert_eq!(format!("{short:?}"), before);
                        prop_assert_eq!(acknowledge(&mut short, first, last, now), acknowledge(&mut long, first, last, now));
                    }
                }
                prop_assert_eq!(format!("{short:?}"), format!("{long:?}"));
            }
        }
    }
}
