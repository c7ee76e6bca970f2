//! The packets of a packet number space that were sent and whose fate is not known, and how losses among them are found
//! (RFC 9002 section 6).
//!
//! Records are in the order of packet numbers, which is that of time. Those that are settled leave at the front, so that
//! a search begins where something is outstanding. Packets that elicit no acknowledgement have no record. What a packet
//! carried stands in its record if that is one piece of a stream, else in a note beside it.

use crate::rtt::Rtt;
use crate::stream::Piece;
use fullpipe_congestion::PacketState;
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::QuicPacketType;
use std::collections::VecDeque;

/// A packet number space (RFC 9000 section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Id {
    Initial,
    Handshake,
    Data,
}

impl Id {
    /// The space of a packet of this type; Retry and Version Negotiation have none.
    pub(crate) fn of(packet_type: QuicPacketType) -> Option<Id> {
        match packet_type {
            QuicPacketType::Initial => Some(Id::Initial),
            QuicPacketType::Handshake => Some(Id::Handshake),
            QuicPacketType::ZeroRtt | QuicPacketType::OneRtt => Some(Id::Data),
            QuicPacketType::Retry | QuicPacketType::VersionNegotiation => None,
        }
    }
}

/// Flags of a [`Sent`].
pub(crate) mod flag {
    /// Was acknowledged.
    pub(crate) const ACKNOWLEDGED: u8 = 1;
    /// Its piece ends the stream.
    pub(crate) const FIN: u8 = 2;
    /// Sent while the application limited sending.
    pub(crate) const APP_LIMITED: u8 = 4;
    /// Sent as ECN-capable.
    pub(crate) const ECT: u8 = 8;
    /// Probes the path's MTU.
    pub(crate) const MTU_PROBE: u8 = 16;
    /// Carries a piece of a stream.
    pub(crate) const STREAM: u8 = 32;
    /// Marked lost.
    pub(crate) const LOST: u8 = 64;
}

/// What a packet carried besides a piece of a stream in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    Stream(u64, Piece),
    Crypto(Piece),
    /// An acknowledgement up to this number.
    Ack(u64),
    MaxData,
    MaxStreamData(u64),
    MaxStreams(usize),
    StreamsBlocked(usize),
    DataBlocked,
    StreamDataBlocked(u64),
    Reset(u64),
    Stop(u64),
    NewConnectionId(u64),
    RetireConnectionId(u64),
    HandshakeDone,
    AckFrequency,
    /// What nobody sends again: PING, PATH_CHALLENGE and PATH_RESPONSE, DATAGRAM of so many bytes, padding.
    Unrepeated,
    Datagram(u64),
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) number: u64,
    pub(crate) sent_at: Instant,
    delivered_bytes: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    in_flight_bytes: u32,
    lost_bytes: u32,
    /// Offset of its piece of a stream.
    offset: u64,
    /// Id of the stream; below 2^32.
    stream: u32,
    /// Place of its notes; [`NO_NOTES`]: none.
    notes: u32,
    length: u16,
    /// Bytes of the packet.
    pub(crate) bytes: u16,
    /// See [`flag`].
    pub(crate) flags: u8,
}

const NO_NOTES: u32 = u32::MAX;

impl Sent {
    #[inline]
    pub(crate) fn new(number: u64, state: &PacketState, flags: u8) -> Sent {
        Sent {
            number,
            sent_at: state.sent_at,
            delivered_bytes: state.delivered_bytes,
            delivered_at: state.delivered_at,
            first_sent_at: state.first_sent_at,
            in_flight_bytes: u32::try_from(state.in_flight_bytes).unwrap_or(u32::MAX),
            lost_bytes: state.lost_bytes as u32,
            offset: 0,
            stream: 0,
            notes: NO_NOTES,
            length: 0,
            bytes: state.bytes as u16,
            flags: flags | if state.app_limited { flag::APP_LIMITED } else { 0 },
        }
    }

    /// With a piece of a stream.
    #[inline]
    pub(crate) fn with_piece(self, stream: u64, piece: &Piece) -> Sent {
        let fin = if piece.fin { flag::FIN } else { 0 };
        Sent {
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

    /// The piece of a stream in the record.
    #[inline]
    pub(crate) fn piece(&self) -> Option<(u64, Piece)> {
        let piece = Piece { offset: self.offset, length: u64::from(self.length), fin: self.has(flag::FIN) };
        self.has(flag::STREAM).then_some((u64::from(self.stream), piece))
    }

    /// What the congestion control is told of it; `lost_bytes` is the connection's present count.
    #[inline]
    pub(crate) fn state(&self, lost_bytes: u64) -> PacketState {
        let since = (lost_bytes as u32).wrapping_sub(self.lost_bytes);
        PacketState {
            sent_at: self.sent_at,
            bytes: u64::from(self.bytes),
            delivered_bytes: self.delivered_bytes,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight_bytes: u64::from(self.in_flight_bytes),
            lost_bytes: lost_bytes.saturating_sub(u64::from(since)),
            app_limited: self.has(flag::APP_LIMITED),
        }
    }
}

/// When a packet is lost though nothing said so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    pub(crate) packets: u64,
    pub(crate) delay: Duration,
}

/// The sending side of a space.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) next_number: u64,
    sent: VecDeque<Sent>,
    /// Notes of packets, and places that are free.
    notes: Vec<Vec<Note>>,
    free_notes: Vec<u32>,
    pub(crate) largest_acknowledged: Option<u64>,
    /// When the next packet is lost by time.
    pub(crate) loss_at: Instant,
    /// When the last ack-eliciting packet left.
    pub(crate) last_eliciting_at: Instant,
    /// Packets outstanding.
    pub(crate) outstanding: u32,
    /// Packets lost not long ago, oldest first: number, and when it was found.
    lost: VecDeque<(u64, Instant)>,
}

impl Space {
    pub(crate) fn new() -> Space {
        Space {
            next_number: 0,
            sent: VecDeque::new(),
            notes: Vec::new(),
            free_notes: Vec::new(),
            largest_acknowledged: None,
            loss_at: Instant::NEVER,
            last_eliciting_at: Instant::NEVER,
            outstanding: 0,
            lost: VecDeque::new(),
        }
    }

    /// Bytes of the next packet number on the wire (RFC 9000 section 17.1 and appendix A.2): twice as many numbers as lie
    /// between it and the largest acknowledged must be told apart.
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

    /// A packet leaves.
    #[inline]
    pub(crate) fn push(&mut self, sent: Sent) {
        self.last_eliciting_at = sent.sent_at;
        self.outstanding += 1;
        self.sent.push_back(sent);
    }

    /// A packet with notes leaves.
    pub(crate) fn push_noted(&mut self, sent: Sent, notes: Vec<Note>) {
        let place = match self.free_notes.pop() {
            Some(place) => {
                self.notes[place as usize] = notes;
                place
            }
            None => {
                self.notes.push(notes);
                self.notes.len() as u32 - 1
            }
        };
        self.push(Sent { notes: place, ..sent });
    }

    /// The packet that left last was padded; whether there is such a packet.
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

    /// The notes of a packet whose fate is known.
    #[inline]
    pub(crate) fn take_notes(&mut self, sent: &Sent) -> Vec<Note> {
        if sent.notes == NO_NOTES {
            return Vec::new();
        }
        self.free_notes.push(sent.notes);
        std::mem::take(&mut self.notes[sent.notes as usize])
    }

    /// The notes of a packet that is still on its way.
    pub(crate) fn notes(&self, sent: &Sent) -> &[Note] {
        self.notes.get(sent.notes as usize).map_or(&[], |notes| notes)
    }

    /// Packets on their way, oldest first.
    pub(crate) fn on_their_way(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(|sent| !sent.has(flag::ACKNOWLEDGED | flag::LOST))
    }

    /// Index of the first record whose number is at least this. Numbers mostly follow each other.
    #[inline]
    fn position(&self, number: u64) -> usize {
        let Some(front) = self.sent.front() else { return 0 };
        let guess = number.saturating_sub(front.number) as usize;
        match self.sent.get(guess) {
            Some(sent) if sent.number == number => guess,
            _ => self.sent.partition_point(|sent| sent.number < number),
        }
    }

    /// The packets of a range, both ends included, that are newly acknowledged, in order.
    #[inline]
    pub(crate) fn acknowledge(&mut self, first: u64, last: u64, mut told: impl FnMut(&Sent)) {
        let mut index = self.position(first);
        while let Some(sent) = self.sent.get_mut(index)
            && sent.number <= last
        {
            if !sent.has(flag::ACKNOWLEDGED | flag::LOST) {
                sent.flags |= flag::ACKNOWLEDGED;
                self.outstanding -= 1;
                told(sent);
            }
            if index == 0 {
                self.sent.pop_front();
            } else {
                index += 1;
            }
        }
    }

    /// Numbers of a range that were thought to be lost: how many. They lie in order, so that usually two searches show that
    /// there is none; a look at each cost a seventh of the benchmark's instructions.
    pub(crate) fn recover(&mut self, first: u64, last: u64) -> usize {
        let start = self.lost.partition_point(|(number, _)| *number < first);
        let end = self.lost.partition_point(|(number, _)| *number <= last);
        self.lost.drain(start..end).count()
    }

    /// Whether no packet that was thought to be lost is missing.
    pub(crate) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Forgets losses found before an instant.
    pub(crate) fn forget_lost(&mut self, before: Instant) {
        while self.lost.front().is_some_and(|(_, at)| *at < before) {
            self.lost.pop_front();
        }
    }

    /// Marks what is lost (RFC 9002 section 6.1 and appendix A.10) and says when to look again. With each goes whether a
    /// packet between it and the one lost before was acknowledged.
    #[inline]
    pub(crate) fn detect(&mut self, now: Instant, thresholds: &Thresholds, mut told: impl FnMut(&Sent, bool)) {
        self.loss_at = Instant::NEVER;
        let Some(largest) = self.largest_acknowledged else { return };
        let (mut index, mut broken) = (0, false);
        while let Some(sent) = self.sent.get_mut(index)
            && sent.number < largest
        {
            if sent.has(flag::ACKNOWLEDGED | flag::LOST) {
                broken |= sent.has(flag::ACKNOWLEDGED);
                if index == 0 {
                    self.sent.pop_front();
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
            self.lost.push_back((sent.number, now));
            told(sent, broken);
            broken = false;
        }
    }

    /// What is on its way took another path: it counts as in flight no more, though it may still be acknowledged.
    pub(crate) fn leave_path(&mut self) {
        for sent in &mut self.sent {
            sent.bytes = 0;
            sent.flags &= !(flag::MTU_PROBE | flag::ECT);
        }
    }

    /// Everything is given up: keys were discarded, or packets of a kind were refused. What was in flight of it, in bytes.
    pub(crate) fn discard(&mut self) -> u64 {
        let bytes = self.on_their_way().map(|sent| u64::from(sent.bytes)).sum();
        self.sent.clear();
        self.notes.clear();
        self.free_notes.clear();
        self.lost.clear();
        self.outstanding = 0;
        self.loss_at = Instant::NEVER;
        self.last_eliciting_at = Instant::NEVER;
        bytes
    }
}

/// A stretch of losses, in one look, between which nothing was acknowledged (RFC 9002 section 7.6).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stretch {
    begin: Option<Instant>,
    longest: Duration,
}

impl Stretch {
    /// The next packet that is lost; `broken`: one between it and the last was acknowledged.
    #[inline]
    pub(crate) fn add(&mut self, sent: &Sent, rtt: &Rtt, broken: bool) {
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
