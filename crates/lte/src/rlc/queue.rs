//! The SDUs of one direction of a bearer: waiting SDUs, and SDUs that were started and have no outcome yet.
//!
//! An SDU gets its number when its first byte is put into a PDU. So numbers on the air have no gaps, even if the
//! discard timer removes SDUs.

use super::sequence::{after, distance};
use super::{Pdu, Sdu, SduOutcome};
use fullpipe_units::Instant;
use std::collections::VecDeque;

/// Largest size in a length indicator of 11 bits.
const MOST_INDICATED_BYTES: u32 = 2047;
/// If no more bytes are left of an opportunity, no other segment is started.
const LITTLE_BYTES: u32 = 2;

#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    /// First the started SDUs, then those that are not started. (One list with a boundary; with two lists, moving an
    /// SDU took 27 instructions.)
    sdus: VecDeque<Sdu>,
    /// Number of started SDUs. They have numbers from `base` on. Of the last, `rest` bytes are not sent yet.
    begun: usize,
    /// Number of the first started SDU, modulo 2^32.
    base: u32,
    rest: u32,
    /// Bytes not sent yet: those of SDUs that are not started, and `rest`.
    bytes: u64,
}

impl Queue {
    /// Bytes not sent yet.
    #[inline]
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of SDUs that are not completely sent.
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

    /// When the oldest SDU that is not completely sent arrived.
    #[inline]
    pub(super) fn head_of_line(&self) -> Instant {
        self.sdus.get(self.begun - usize::from(self.rest > 0)).map_or(Instant::NEVER, |sdu| sdu.arrived)
    }

    /// When the oldest SDU that is not started arrived.
    #[inline]
    pub(super) fn oldest_untouched(&self) -> Instant {
        self.sdus.get(self.begun).map_or(Instant::NEVER, |sdu| sdu.arrived)
    }

    /// Discards the oldest SDU that is not started.
    pub(super) fn discard(&mut self) -> Sdu {
        let sdu = self.sdus.remove(self.begun).expect("an SDU is not started");
        self.bytes -= u64::from(sdu.bytes);
        sdu
    }

    pub(super) fn begun(&self) -> impl Iterator<Item = &Sdu> {
        self.sdus.range(..self.begun)
    }

    pub(super) fn untouched(&self) -> impl Iterator<Item = &Sdu> {
        self.sdus.range(self.begun..)
    }

    /// The bytes of the next SDU, if the previous one is completely sent.
    #[inline]
    pub(super) fn next_bytes(&self) -> Option<u32> {
        self.sdus.get(self.begun).map(|sdu| sdu.bytes)
    }

    /// Starts the next SDU and returns its number.
    #[inline]
    fn begin(&mut self) -> u32 {
        self.rest = self.sdus[self.begun].bytes;
        self.begun += 1;
        self.last_begun()
    }

    /// The number of the last started SDU.
    #[inline]
    fn last_begun(&self) -> u32 {
        self.base.wrapping_add(self.begun as u32 - 1)
    }

    /// Segments and concatenates waiting SDUs into a PDU of at most `bytes` bytes, which must exceed the fixed header.
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

    /// Starts the next SDU as a whole. Returns its number and size.
    #[inline]
    pub(super) fn take(&mut self) -> (u32, u32) {
        let number = self.begin();
        let bytes = std::mem::take(&mut self.rest);
        self.bytes -= u64::from(bytes);
        (number, bytes)
    }

    /// The number of SDUs without outcome before this number; negative if it already has an outcome.
    #[inline]
    pub(super) fn position(&self, number: u32) -> i32 {
        number.wrapping_sub(self.base) as i32
    }

    /// A started SDU.
    #[inline]
    pub(super) fn get(&self, position: usize) -> Sdu {
        debug_assert!(position < self.begun, "the SDU was started");
        self.sdus[position]
    }

    /// Removes the oldest started SDU, whose outcome is known.
    #[inline]
    pub(super) fn settle(&mut self) -> Sdu {
        assert!(self.begun > 0, "no SDU is settled twice");
        self.begun -= 1;
        self.base = self.base.wrapping_add(1);
        self.sdus.pop_front().expect("started SDUs are in the list")
    }

    /// Removes the oldest started SDUs, whose outcomes are known. All were delivered, except the first if
    /// `first_delivered` is false.
    #[inline]
    fn settle_first(&mut self, count: usize, first_delivered: bool, out: &mut Vec<SduOutcome>) {
        assert!(count <= self.begun, "no SDU is settled twice");
        let from = out.len();
        out.extend(self.sdus.range(..count).map(|&sdu| SduOutcome { sdu, delivered: true }));
        self.sdus.drain(..count);
        if let Some(first) = out.get_mut(from) {
            first.delivered = first_delivered;
        }
        self.begun -= count;
        self.base = self.base.wrapping_add(count as u32);
    }

    /// Marks all remaining SDUs as lost.
    pub(super) fn clear(&mut self, out: &mut Vec<SduOutcome>) {
        self.base = self.base.wrapping_add(self.begun as u32);
        out.extend(self.sdus.drain(..).map(|sdu| SduOutcome { sdu, delivered: false }));
        (self.begun, self.rest, self.bytes) = (0, 0, 0);
    }
}

/// Reassembles SDUs from PDUs in order, some of which may be missing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reassembler {
    /// The next PDU without a gap, modulo 1024.
    next: u16,
    /// The SDU that the last PDU left incomplete, if all of its earlier segments have arrived.
    part: Option<u32>,
}

impl Reassembler {
    /// Handles the next PDU in order. SDUs with a missing segment are lost as soon as a segment of a later SDU arrives.
    #[inline]
    pub(super) fn pass(&mut self, queue: &mut Queue, pdu: &Pdu, out: &mut Vec<SduOutcome>) {
        let follows = distance(self.next, pdu.sn) == 0;
        self.next = after(pdu.sn, 1);
        let mut whole = !pdu.is(Pdu::CONTINUES) || (follows && self.part == Some(pdu.first));
        let position = queue.position(pdu.first);
        for _ in 0..position {
            out.push(SduOutcome { sdu: queue.settle(), delivered: false });
        }
        let ended = pdu.segments - u32::from(pdu.is(Pdu::CUT));
        if queue.position(pdu.first) == 0 {
            // None of these has an outcome: 38 instructions for each, 51 with a search for each.
            queue.settle_first(ended as usize, whole, out);
            self.part = (pdu.is(Pdu::CUT) && (whole || ended > 0)).then(|| pdu.first.wrapping_add(ended));
            return;
        }
        for k in 0..ended {
            // After a silence in which sequence numbers wrapped, a receiver may accept old PDUs as new ones.
            if queue.position(pdu.first.wrapping_add(k)) == 0 {
                out.push(SduOutcome { sdu: queue.settle(), delivered: whole });
            }
            whole = true;
        }
        self.part = (pdu.is(Pdu::CUT) && whole).then(|| pdu.first.wrapping_add(ended));
    }
}
