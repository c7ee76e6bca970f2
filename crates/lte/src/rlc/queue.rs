//! SDUs of one way of a bearer: those that wait, and those that were begun and whose fate is open.
//!
//! An SDU gets its number when its first byte is put into a PDU, so numbers on the air have no gaps whatever the discard
//! timer has thrown away.

use super::sequence::{after, distance};
use super::{Outcome, Pdu, Sdu};
use fullpipe_units::Instant;
use std::collections::VecDeque;

/// What fits a length indicator of 11 bits.
const MOST_INDICATED_BYTES: u32 = 2047;
/// If no more is left of an opportunity, no other segment is begun.
const LITTLE_BYTES: u32 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// Those that were begun, then those of which nothing was sent. (One list with a mark in it: with one of each,
    /// moving an SDU over took 27 instructions.)
    sdus: VecDeque<Sdu>,
    /// How many were begun: they have numbers from `base` on. Of the last, `rest` bytes were not sent yet.
    begun: usize,
    /// Number of the first that was begun; modulo 2^32.
    base: u32,
    rest: u32,
    /// Bytes not sent yet: of all that were not begun, and `rest`.
    bytes: u64,
}

impl Queue {
    /// Bytes not sent yet.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// SDUs of which something was not sent yet.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.sdus.len() - self.begun + usize::from(self.rest > 0)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    #[inline]
    pub(super) fn push(&mut self, sdu: Sdu) {
        self.bytes += u64::from(sdu.bytes);
        self.sdus.push_back(sdu);
    }

    /// When the oldest SDU came of which something was not sent yet.
    #[inline]
    pub(super) fn head_of_line(&self) -> Instant {
        self.sdus.get(self.begun - usize::from(self.rest > 0)).map_or(Instant::NEVER, |sdu| sdu.arrived)
    }

    /// When the oldest SDU came of which nothing was sent yet.
    #[inline]
    pub(super) fn oldest_untouched(&self) -> Instant {
        self.sdus.get(self.begun).map_or(Instant::NEVER, |sdu| sdu.arrived)
    }

    /// Throws away the oldest SDU of which nothing was sent.
    pub(super) fn discard(&mut self) -> Sdu {
        let sdu = self.sdus.remove(self.begun).expect("there is one");
        self.bytes -= u64::from(sdu.bytes);
        sdu
    }

    pub(super) fn begun(&self) -> impl Iterator<Item = &Sdu> {
        self.sdus.range(..self.begun)
    }

    pub(super) fn untouched(&self) -> impl Iterator<Item = &Sdu> {
        self.sdus.range(self.begun..)
    }

    /// The bytes of the next SDU, if none is half sent.
    #[inline]
    pub(super) fn next_bytes(&self) -> Option<u32> {
        self.sdus.get(self.begun).map(|sdu| sdu.bytes)
    }

    /// Begins the next SDU; its number.
    #[inline]
    fn begin(&mut self) -> u32 {
        self.rest = self.sdus[self.begun].bytes;
        self.begun += 1;
        self.last_begun()
    }

    /// Number of the last SDU that was begun.
    #[inline]
    fn last_begun(&self) -> u32 {
        self.base.wrapping_add(self.begun as u32 - 1)
    }

    /// Segments and concatenates what waits into a PDU of at most `bytes`, more than its fixed header's.
    #[inline]
    pub(super) fn fill(&mut self, header_bytes: u32, bytes: u32, sn: u16) -> Pdu {
        let mut room = bytes - header_bytes;
        let continues = self.rest > 0;
        let first = if continues { self.last_begun() } else { self.begin() };
        let (mut segments, mut payload_bytes, mut header_bytes) = (1, 0, header_bytes);
        loop {
            if self.rest > room || self.rest > MOST_INDICATED_BYTES {
                let segment = self.rest.min(room);
                payload_bytes += segment;
                self.rest -= segment;
                break;
            }
            payload_bytes += self.rest;
            room -= self.rest;
            self.rest = 0;
            if room <= LITTLE_BYTES || self.begun == self.sdus.len() {
                break;
            }
            // Two indicators are 3 bytes; the first alone is padded to 2.
            let indicator = if segments % 2 == 1 { 2 } else { 1 };
            room -= indicator;
            header_bytes += indicator;
            self.begin();
            segments += 1;
        }
        self.bytes -= u64::from(payload_bytes);
        let flags = if continues { Pdu::CONTINUES } else { 0 } | if self.rest > 0 { Pdu::CUT } else { 0 };
        Pdu { bytes: header_bytes + payload_bytes, payload_bytes, first, segments, sn, flags, epoch: 0 }
    }

    /// Takes the next SDU as a whole; its number and size.
    #[inline]
    pub(super) fn take(&mut self) -> (u32, u32) {
        let number = self.begin();
        let bytes = std::mem::take(&mut self.rest);
        self.bytes -= u64::from(bytes);
        (number, bytes)
    }

    /// How many SDUs with open fate come before this number; negative: its fate is known.
    #[inline]
    pub(super) fn position(&self, number: u32) -> i32 {
        number.wrapping_sub(self.base) as i32
    }

    /// An SDU that was begun.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Sdu {
        debug_assert!(position < self.begun, "it was begun");
        self.sdus[position]
    }

    /// The fate of the oldest SDU that was begun is known.
    #[inline]
    pub(super) fn settle(&mut self) -> Sdu {
        assert!(self.begun > 0, "no SDU is settled twice");
        self.begun -= 1;
        self.base = self.base.wrapping_add(1);
        self.sdus.pop_front().expect("those that were begun are in the list")
    }

    /// The fates of the oldest SDUs that were begun are known: all were delivered but perhaps the first.
    #[inline]
    fn settle_first(&mut self, count: usize, first_delivered: bool, out: &mut Vec<Outcome>) {
        assert!(count <= self.begun, "no SDU is settled twice");
        let from = out.len();
        out.extend(self.sdus.range(..count).map(|&sdu| Outcome { sdu, delivered: true }));
        self.sdus.drain(..count);
        if let Some(first) = out.get_mut(from) {
            first.delivered = first_delivered;
        }
        self.begun -= count;
        self.base = self.base.wrapping_add(count as u32);
    }

    /// All that is left is lost.
    pub(super) fn clear(&mut self, out: &mut Vec<Outcome>) {
        self.base = self.base.wrapping_add(self.begun as u32);
        out.extend(self.sdus.drain(..).map(|sdu| Outcome { sdu, delivered: false }));
        (self.begun, self.rest, self.bytes) = (0, 0, 0);
    }
}

/// Puts SDUs together again of PDUs in order, some of which may be missing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reassembler {
    /// The PDU that would go on, modulo 1024.
    next: u16,
    /// The last PDU ended with a segment of this SDU, of which everything before had come.
    part: Option<u32>,
}

impl Reassembler {
    /// The next PDU in order. SDUs of which something was missing are lost as soon as something of a later one comes.
    #[inline]
    pub(super) fn pass(&mut self, queue: &mut Queue, pdu: &Pdu, out: &mut Vec<Outcome>) {
        let follows = distance(self.next, pdu.sn) == 0;
        self.next = after(pdu.sn, 1);
        let mut whole = !pdu.is(Pdu::CONTINUES) || (follows && self.part == Some(pdu.first));
        let position = queue.position(pdu.first);
        for _ in 0..position {
            out.push(Outcome { sdu: queue.settle(), delivered: false });
        }
        let ended = pdu.segments - u32::from(pdu.is(Pdu::CUT));
        if queue.position(pdu.first) == 0 {
            // Nothing of these was told: 38 instructions for each, 51 where each is looked for.
            queue.settle_first(ended as usize, whole, out);
            self.part = (pdu.is(Pdu::CUT) && (whole || ended > 0)).then(|| pdu.first.wrapping_add(ended));
            return;
        }
        for k in 0..ended {
            // After so long a silence that sequence numbers have come round, a receiver may take old PDUs for new ones.
            if queue.position(pdu.first.wrapping_add(k)) == 0 {
                out.push(Outcome { sdu: queue.settle(), delivered: whole });
            }
            whole = true;
        }
        self.part = (pdu.is(Pdu::CUT) && whole).then(|| pdu.first.wrapping_add(ended));
    }
}
