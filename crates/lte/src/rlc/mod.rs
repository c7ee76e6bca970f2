//! Radio link control (3GPP TS 36.322) and the two bytes of PDCP above it: what becomes of a packet between the core
//! network and the transport blocks.
//!
//! **A bearer is both of its ends.** The eNB's and the UE's entity live in one [`Bearer`], so no byte is copied and no list
//! travels: a [`Pdu`] names a range of SDUs by their numbers, and what its header would say of them (sequence number,
//! whether its first segment continues an SDU, whether its last is cut off). What a receiver does depends on nothing else,
//! and it does not look at what only the sender can know.
//!
//! **Ways.** [`Way`] always means the direction in which bytes travel. A STATUS report about downlink data travels
//! uplink: it is sent at an uplink opportunity and received as an uplink PDU.
//!
//! **An SDU's way.** [`Bearer::offer`] puts it into the transmit buffer, or drops it at the tail. At an
//! [`Bearer::opportunity`] the MAC says how many bytes it may have; SDUs are segmented and concatenated into one PDU of at
//! most that size. [`Bearer::receive`] puts PDUs into order again, which HARQ has disturbed, and says of each SDU exactly
//! once what became of it ([`Outcome`]), in order. What may still come, nobody is told of: SDUs of the last PDU before
//! silence stay [`Bearer::inside`] if it was lost.
//!
//! * [`Mode::Unacknowledged`] is in `um`,
//! * [`Mode::Acknowledged`] in `am`.
//! * [`Mode::Transparent`]: a PDU is a whole SDU, without header or order: what comes is delivered;
//! * [`Mode::Saturated`]: no RLC of 3GPP but a source that always has data, for tests of the radio. No SDUs.
//!
//! **Building a PDU** (36.322 section 6.2.1). Behind a fixed header of 2 bytes (UM) or 4 (AM, re-segmentation fields
//! included) stand segments of SDUs, all but the last with a length indicator of 11 bits and an extension bit, which come
//! in pairs of 3 bytes: 2 for the first, 1 for the second. So k segments cost ceil(1.5 (k - 1)) bytes. A segment of more
//! than 2047 bytes fits no length indicator and is always the last. After a segment no other is begun if two bytes or
//! fewer are left.
//!
//! **PDCP** (36.323) adds [`PDCP_HEADER_BYTES`] to a packet. Its discard timer is off by default ([`Limits::discard_after`]),
//! as in the reference model, which only traces it.

mod am;
mod queue;
mod transparent;
mod um;

#[cfg(test)]
mod tests;

use fullpipe_units::{Duration, Instant};
use queue::Queue;

/// Bytes that PDCP adds to a packet: a data PDU with a 12-bit sequence number (36.323 section 6.2.3).
pub const PDCP_HEADER_BYTES: u32 = 2;

/// Bytes that a saturated source says are waiting.
pub const SATURATED_BYTES: u32 = 80_000;

/// The direction in which bytes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From the eNB to the UE.
    Downlink = 0,
    /// From the UE to the eNB.
    Uplink = 1,
}

impl Way {
    /// Both, in order of their index.
    pub const BOTH: [Way; 2] = [Way::Downlink, Way::Uplink];

    /// The other one.
    #[inline]
    pub const fn back(self) -> Way {
        match self {
            Way::Downlink => Way::Uplink,
            Way::Uplink => Way::Downlink,
        }
    }
}

/// What a bearer's RLC does about loss and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// UM: order is restored, loss is not.
    Unacknowledged,
    /// AM: what is lost is sent again.
    Acknowledged,
    /// SM: always has data to send, and none that anybody wants. It is reported after each opportunity.
    Saturated,
    /// TM: nothing is done.
    Transparent,
}

impl Mode {
    /// Bytes of a data PDU's header, without length indicators.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Mode::Unacknowledged => um::HEADER_BYTES,
            Mode::Acknowledged => am::HEADER_BYTES,
            Mode::Saturated | Mode::Transparent => 0,
        }
    }
}

/// What RLC is given by the layer above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sdu {
    /// Size of the PDCP PDU: of the packet, and [`PDCP_HEADER_BYTES`]. Not 0.
    pub bytes: u32,
    /// Whatever the caller knows it by.
    pub token: u64,
    /// When it came.
    pub arrived: Instant,
}

/// What became of an SDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The SDU, as it was offered.
    pub sdu: Sdu,
    /// Whether it reached the other end.
    pub delivered: bool,
}

/// An RLC PDU, without its bytes: sizes, and which SDUs it has parts of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Bytes on the air: header and segments.
    pub bytes: u32,
    /// Bytes of SDUs in it.
    pub payload_bytes: u32,
    /// Number of the first segment's SDU; for a STATUS report its own number.
    first: u32,
    /// Segments of SDUs in it, each of the SDU after the one before.
    segments: u32,
    /// Sequence number: modulo 1024 as on the air, but AM's is kept modulo 2^16.
    sn: u16,
    flags: u8,
    /// How often the bearer had been re-established.
    epoch: u8,
}

impl Pdu {
    /// The first segment is not its SDU's beginning.
    const CONTINUES: u8 = 1;
    /// The last segment is not its SDU's end.
    const CUT: u8 = 2;
    /// AM: asks for a STATUS report.
    const POLL: u8 = 4;
    /// AM: a STATUS report.
    const STATUS: u8 = 8;
    /// AM: data sent again.
    const AGAIN: u8 = 16;

    /// Whether it is a STATUS report of AM, not data.
    #[inline]
    pub const fn is_status(&self) -> bool {
        self.flags & Self::STATUS != 0
    }

    #[inline]
    const fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// What a bearer's RLC is configured with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most bytes of SDUs in a transmit buffer, or none. What would exceed it is dropped.
    pub max_buffer_bytes: Option<u32>,
    /// Most SDUs in it of which something was not sent yet, or none.
    pub max_buffer_sdus: Option<u32>,
    /// PDCP's discard timer: an SDU of which nothing was sent for so long is thrown away.
    pub discard_after: Option<Duration>,
    /// t-Reordering: for how long a receiver waits for a PDU that HARQ may still bring.
    pub reordering: Duration,
    /// After how long a buffer's state is reported to the MAC again while it is not empty.
    pub report_again: Duration,
    /// Of AM only.
    pub acknowledgement: Acknowledgement,
}

/// How AM asks and answers (36.331 section 6.3.2, RLC-Config).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// pollPDU: every so many-th new PDU polls.
    pub poll_after_pdus: u32,
    /// pollByte: a poll after so many new bytes.
    pub poll_after_bytes: u32,
    /// t-PollRetransmit: for how long the answer to a poll is waited for.
    pub poll_retransmit: Duration,
    /// t-StatusProhibit: least time between STATUS reports.
    pub status_prohibit: Duration,
    /// maxRetxThreshold: how often a PDU is sent again before that is too often.
    pub max_retransmissions: u32,
    /// Whether too often ends the bearer ([`Bearer::has_failed`]), as it does in a real network, or is only counted.
    pub fails: bool,
}

impl Acknowledgement {
    /// The reference model's: every PDU polls, 20 ms, 10 ms, 5 times, without consequence.
    pub const REFERENCE: Acknowledgement = Acknowledgement {
        poll_after_pdus: 1,
        poll_after_bytes: 50,
        poll_retransmit: Duration::from_millis(20),
        status_prohibit: Duration::from_millis(10),
        max_retransmissions: 5,
        fails: false,
    };
}

impl Limits {
    /// The reference model's: 10240 bytes, no discarding; t-Reordering 100 ms and a report every 10 ms, with AM 10 ms and
    /// 20 ms; [`Acknowledgement::REFERENCE`].
    pub const fn of(mode: Mode) -> Limits {
        let acknowledged = matches!(mode, Mode::Acknowledged);
        Limits {
            max_buffer_bytes: Some(10_240),
            max_buffer_sdus: None,
            discard_after: None,
            reordering: Duration::from_millis(if acknowledged { 10 } else { 100 }),
            report_again: Duration::from_millis(if acknowledged { 20 } else { 10 }),
            acknowledgement: Acknowledgement::REFERENCE,
        }
    }
}

/// A buffer status report to the MAC: what waits for opportunities of one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// SDUs or parts of them not sent yet; in UM 2 bytes more for each.
    pub new_data_bytes: u32,
    /// PDUs to be sent again. AM only.
    pub retransmission_bytes: u32,
    /// A STATUS report that may be sent now. AM only.
    pub status_bytes: u32,
    /// When the oldest SDU of the new data came; [`Instant::NEVER`] if there is none, and for a saturated source.
    pub head_of_line: Instant,
}

impl Report {
    /// All that waits, bytes.
    pub fn total(&self) -> u32 {
        self.new_data_bytes.saturating_add(self.retransmission_bytes).saturating_add(self.status_bytes)
    }
}

/// What the MAC has to be told after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Due {
    /// Ways whose [`Report`] has to be given to the MAC, by their index.
    pub report: [bool; 2],
}

/// What happened in one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// SDUs offered.
    pub sdus_offered: u64,
    /// Of these, dropped because the buffer was full.
    pub sdus_dropped: u64,
    /// Of these, thrown away by the discard timer.
    pub sdus_discarded: u64,
    /// Of these, lost on the air.
    pub sdus_lost: u64,
    /// Of these, delivered.
    pub sdus_delivered: u64,
    /// Bytes of those delivered.
    pub bytes_delivered: u64,
    /// PDUs that travelled this way, all kinds, retransmissions by RLC included.
    pub pdus: u64,
    /// Bytes of these.
    pub pdu_bytes: u64,
    /// PDUs received.
    pub pdus_received: u64,
    /// Bytes of these.
    pub pdu_bytes_received: u64,
    /// Of the PDUs, data sent again.
    pub pdus_retransmitted: u64,
    /// Of the PDUs, STATUS reports.
    pub status_pdus: u64,
    /// How often a PDU was found missing once more than it may be sent again.
    pub retransmissions_exhausted: u64,
}

#[derive(Clone, Debug)]
enum Machine {
    Unacknowledged([um::Path; 2]),
    Acknowledged(Box<[am::Path; 2]>),
    Saturated,
    Transparent([transparent::Path; 2]),
}

/// Both ends of a bearer, both ways.
#[derive(Clone, Debug)]
pub struct Bearer {
    mode: Mode,
    limits: Limits,
    epoch: u8,
    failed: bool,
    /// The earliest of all timers.
    next_timer: Instant,
    queues: [Queue; 2],
    machine: Machine,
    counters: [Counters; 2],
}

impl Bearer {
    /// A bearer with nothing in it.
    pub fn new(mode: Mode, limits: Limits) -> Bearer {
        Bearer {
            mode,
            limits,
            epoch: 0,
            failed: false,
            next_timer: Instant::NEVER,
            queues: Default::default(),
            machine: match mode {
                Mode::Unacknowledged => Machine::Unacknowledged(Default::default()),
                Mode::Acknowledged => Machine::Acknowledged(Default::default()),
                Mode::Saturated => Machine::Saturated,
                Mode::Transparent => Machine::Transparent(Default::default()),
            },
            counters: Default::default(),
        }
    }

    /// What it does about loss.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// What it was configured with.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Takes an SDU to be sent, or drops it because the buffer is full: false. A report is due after it in either case.
    ///
    /// SDUs come in order of their arrival. A saturated source takes none.
    #[inline]
    pub fn offer(&mut self, way: Way, sdu: Sdu) -> bool {
        assert!(sdu.bytes > 0, "an SDU without bytes");
        let index = way as usize;
        self.counters[index].sdus_offered += 1;
        let queue = &mut self.queues[index];
        let most = self.limits.max_buffer_bytes.map_or(u64::MAX, u64::from);
        let has_room = queue.bytes() + u64::from(sdu.bytes) <= most
            && self.limits.max_buffer_sdus.is_none_or(|most| queue.len() < most as usize);
        let fits = has_room && !matches!(self.machine, Machine::Saturated) && !self.failed;
        if fits {
            queue.push(sdu);
        } else {
            self.counters[index].sdus_dropped += 1;
        }
        match &mut self.machine {
            Machine::Unacknowledged(paths) => {
                // Nearly always: no timer of the bearer changes.
                if !paths[index].offered() && self.limits.discard_after.is_none() {
                    return fits;
                }
            }
            Machine::Acknowledged(paths) => paths[index].offered(sdu.arrived.saturating_add(self.limits.report_again)),
            Machine::Transparent(paths) => paths[index].offered(),
            Machine::Saturated => {}
        }
        self.arm();
        fits
    }

    /// The PDU that is sent if the MAC has room for so many bytes, or none if nothing waits or fits.
    #[inline]
    pub fn opportunity(&mut self, way: Way, now: Instant, bytes: u32) -> Option<Pdu> {
        if self.failed {
            return None;
        }
        let index = way as usize;
        let queue = &mut self.queues[index];
        let again = now.saturating_add(self.limits.report_again);
        let mut pdu = match &mut self.machine {
            Machine::Unacknowledged(paths) => paths[index].opportunity(queue, bytes, again),
            Machine::Acknowledged(paths) => {
                let how = &self.limits.acknowledgement;
                let answered = &mut paths[way.back() as usize];
                if answered.status_goes_first(now) {
                    answered.status(now, bytes, how)
                } else {
                    paths[index].opportunity(queue, now, bytes, how)
                }
            }
            Machine::Transparent(paths) => paths[index].opportunity(queue, bytes, again),
            Machine::Saturated => (bytes > 0).then_some(Pdu {
                bytes,
                payload_bytes: bytes,
                first: 0,
                segments: 0,
                sn: 0,
                flags: 0,
                epoch: 0,
            }),
        };
        self.arm();
        if let Some(pdu) = &mut pdu {
            pdu.epoch = self.epoch;
            let counters = &mut self.counters[index];
            counters.pdus += 1;
            counters.pdu_bytes += u64::from(pdu.bytes);
            counters.pdus_retransmitted += u64::from(pdu.is(Pdu::AGAIN));
            counters.status_pdus += u64::from(pdu.is_status());
        }
        pdu
    }

    /// A PDU has come, travelling this way. Adds to `out` of which SDUs the fate is known now.
    #[inline]
    pub fn receive(&mut self, way: Way, now: Instant, pdu: Pdu, out: &mut Vec<Outcome>) -> Due {
        if pdu.epoch != self.epoch {
            return Due::default();
        }
        let index = way as usize;
        let before = out.len();
        let mut due = Due::default();
        self.counters[index].pdus_received += 1;
        self.counters[index].pdu_bytes_received += u64::from(pdu.bytes);
        match &mut self.machine {
            Machine::Unacknowledged(paths) => {
                paths[index].receive(&mut self.queues[index], pdu, now, self.limits.reordering, out);
            }
            Machine::Acknowledged(paths) => {
                let back = way.back() as usize;
                if pdu.is_status() {
                    due.report[back] = paths[back].acknowledged(&self.queues[back], &pdu, &self.limits.acknowledgement);
                } else {
                    due.report[back] = paths[index].receive(&mut self.queues[index], pdu, now, &self.limits, out);
                }
            }
            Machine::Transparent(paths) => paths[index].receive(&mut self.queues[index], pdu, out),
            Machine::Saturated => {}
        }
        self.count(way, &out[before..]);
        self.look_for_failure();
        self.arm();
        due
    }

    /// What the MAC is to be told of one way's buffers. Of AM the reference model does not tell when nothing is left.
    #[inline]
    pub fn report(&self, way: Way) -> Report {
        let queue = &self.queues[way as usize];
        let (mut retransmission_bytes, mut status_bytes) = (0, 0);
        let new_data_bytes = match &self.machine {
            Machine::Unacknowledged(_) => queue.bytes() + 2 * queue.len() as u64,
            Machine::Acknowledged(paths) => {
                retransmission_bytes = paths[way as usize].retransmission_bytes();
                status_bytes = paths[way.back() as usize].status_bytes();
                queue.bytes()
            }
            Machine::Transparent(_) => queue.bytes(),
            Machine::Saturated => u64::from(SATURATED_BYTES),
        };
        let saturated = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
        Report {
            new_data_bytes: saturated(new_data_bytes),
            retransmission_bytes: saturated(retransmission_bytes),
            status_bytes,
            head_of_line: queue.head_of_line(),
        }
    }

    /// Bytes of SDUs not sent yet.
    #[inline]
    pub fn waiting_bytes(&self, way: Way) -> u64 {
        self.queues[way as usize].bytes()
    }

    /// When [`Bearer::expire`] has to be called next; [`Instant::NEVER`]: not before something else happens.
    #[inline]
    pub const fn next_timer(&self) -> Instant {
        self.next_timer
    }

    /// Does what timers up to now ask for; what is told of SDUs of the downlink comes before what is told of the uplink's.
    /// SDUs that the discard timer throws away are told of at once, before older ones that are on the air.
    pub fn expire(&mut self, now: Instant, out: &mut Vec<Outcome>) -> Due {
        let mut due = Due::default();
        if now < self.next_timer {
            return due;
        }
        for way in Way::BOTH {
            let index = way as usize;
            let queue = &mut self.queues[index];
            if let Some(after) = self.limits.discard_after {
                while queue.oldest_untouched().saturating_add(after) <= now {
                    let sdu = queue.discard();
                    self.counters[index].sdus_discarded += 1;
                    out.push(Outcome { sdu, delivered: false });
                    // The MAC believes that more is waiting than is.
                    due.report[index] = true;
                }
            }
            let before = out.len();
            let again = now.saturating_add(self.limits.report_again);
            due.report[index] |= match &mut self.machine {
                Machine::Unacknowledged(paths) => paths[index].expire(queue, now, self.limits.reordering, again, out),
                Machine::Acknowledged(paths) => {
                    let expired = paths[index].expire(queue, now, &self.limits);
                    due.report[way.back() as usize] |= expired.status;
                    expired.data
                }
                Machine::Transparent(paths) => paths[index].expire(queue, now, again),
                Machine::Saturated => false,
            };
            self.count(way, &out[before..]);
        }
        self.look_for_failure();
        self.arm();
        due
    }

    /// Ends everything and begins anew (36.322 section 5.4): what can be put together of what was received is delivered, the
    /// rest is lost, and PDUs that are on the air mean nothing any more.
    pub fn reestablish(&mut self, out: &mut Vec<Outcome>) {
        for way in Way::BOTH {
            let before = out.len();
            let queue = &mut self.queues[way as usize];
            match &mut self.machine {
                Machine::Unacknowledged(paths) => paths[way as usize].reestablish(queue, out),
                Machine::Acknowledged(paths) => paths[way as usize].reestablish(queue, out),
                Machine::Transparent(paths) => paths[way as usize].reestablish(queue, out),
                Machine::Saturated => {}
            }
            queue.clear(out);
            self.count(way, &out[before..]);
        }
        self.epoch = self.epoch.wrapping_add(1);
        self.failed = false;
        self.arm();
    }

    /// Whether a PDU of AM was sent again too often, and that is to matter ([`Acknowledgement::fails`]): a radio link failure.
    /// Nothing is sent or taken until the bearer is re-established.
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// SDUs that were taken and of which nothing has been told, oldest first.
    pub fn inside(&self, way: Way) -> impl Iterator<Item = &Sdu> {
        let open = match &self.machine {
            Machine::Transparent(paths) => Some(&paths[way as usize]),
            _ => None,
        };
        let queue = &self.queues[way as usize];
        queue
            .begun()
            .enumerate()
            .filter(move |&(k, _)| open.is_none_or(|path| path.is_open(k)))
            .map(|(_, sdu)| sdu)
            .chain(queue.untouched())
    }

    /// What happened so far.
    pub const fn counters(&self, way: Way) -> &Counters {
        &self.counters[way as usize]
    }

    fn look_for_failure(&mut self) {
        if let Machine::Acknowledged(paths) = &mut self.machine {
            for (path, counters) in paths.iter_mut().zip(&mut self.counters) {
                let exhausted = std::mem::take(&mut path.exhausted);
                counters.retransmissions_exhausted += exhausted;
                self.failed |= exhausted > 0 && self.limits.acknowledgement.fails;
            }
        }
    }

    fn count(&mut self, way: Way, outcomes: &[Outcome]) {
        let (mut delivered, mut bytes) = (0, 0);
        for outcome in outcomes {
            delivered += u64::from(outcome.delivered);
            bytes += if outcome.delivered { u64::from(outcome.sdu.bytes) } else { 0 };
        }
        let counters = &mut self.counters[way as usize];
        counters.sdus_delivered += delivered;
        counters.bytes_delivered += bytes;
        counters.sdus_lost += outcomes.len() as u64 - delivered;
    }

    fn arm(&mut self) {
        if self.failed {
            self.next_timer = Instant::NEVER;
            return;
        }
        let mut next = match &self.machine {
            Machine::Acknowledged(paths) => paths[0].next_timer().min(paths[1].next_timer()),
            Machine::Unacknowledged([down, up]) => down.next_timer().min(up.next_timer()),
            Machine::Transparent([down, up]) => down.next_timer().min(up.next_timer()),
            Machine::Saturated => Instant::NEVER,
        };
        if let Some(after) = self.limits.discard_after {
            for queue in &self.queues {
                next = next.min(queue.oldest_untouched().saturating_add(after));
            }
        }
        self.next_timer = next;
    }
}

/// The reference's modulus and windows: sequence numbers of 10 bits.
mod sequence {
    /// Most PDUs in a window: half of the numbers.
    pub(super) const WINDOW: u16 = 512;

    /// How far `to` is ahead of `from`, 0 to 1023.
    #[inline]
    pub(super) const fn distance(from: u16, to: u16) -> u16 {
        to.wrapping_sub(from) & 1023
    }

    /// The number `by` after `sn`.
    #[inline]
    pub(super) const fn after(sn: u16, by: u16) -> u16 {
        sn.wrapping_add(by) & 1023
    }

    /// The number `by` before `sn`.
    #[inline]
    pub(super) const fn before(sn: u16, by: u16) -> u16 {
        sn.wrapping_sub(by) & 1023
    }
}
