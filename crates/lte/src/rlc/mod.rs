//! Radio link control (3GPP TS 36.322) and the PDCP header of two bytes above it: the path of a packet between the core
//! network and the transport blocks.
//!
//! **A bearer contains both of its ends.** The entities of the eNB and the UE are in one [`Bearer`], so no byte is
//! copied and no list is transmitted. A [`Pdu`] contains a range of SDU numbers and the information of its header. This
//! is the sequence number, whether the first segment continues an SDU, and whether the last segment is incomplete. The
//! receiver uses only this information, and no data that only the sender has.
//!
//! **Directions.** [`LinkDirection`] is the direction in which bytes are transmitted. A STATUS report about downlink
//! data is transmitted in the uplink: it is sent at an uplink opportunity and received as an uplink PDU.
//!
//! **The path of an SDU.** [`Bearer::offer`] appends the SDU to the transmit buffer or drops it. At a
//! [`Bearer::on_transmit_opportunity`], the MAC states a number of bytes. RLC then segments and concatenates SDUs into
//! one PDU of at most that size. [`Bearer::receive`] restores the order of PDUs, which HARQ may change, and returns the
//! [`SduOutcome`] of each SDU exactly once, in order. An SDU that may still arrive has no outcome. If the last PDU
//! before an idle period is lost, its SDUs therefore remain in [`Bearer::pending_sdus`].
//!
//! * [`RlcMode::Unacknowledged`]: see `um.rs`;
//! * [`RlcMode::Acknowledged`]: see `am.rs`;
//! * [`RlcMode::Transparent`]: a PDU is a whole SDU, without header or reordering; each received SDU is delivered;
//! * [`RlcMode::Saturated`]: not an RLC mode of 3GPP, but a source without SDUs that always has data, for tests of the
//!   radio.
//!
//! **Building a PDU** (TS 36.322, clause 6.2.1). A fixed header of 2 bytes (UM) or 4 (AM, including re-segmentation
//! fields) is followed by segments of SDUs. All but the last segment have a length indicator of 11 bits and an
//! extension bit. A pair of indicators takes 3 bytes: 2 for the first and 1 for the second. The indicators of k
//! segments therefore take ceil(1.5 (k - 1)) bytes. A segment of more than 2047 bytes exceeds the length indicator and
//! is always the last. No further segment is started if two bytes or fewer are left.
//!
//! **PDCP** (TS 36.323) adds [`PDCP_HEADER_BYTES`] to a packet. Its discard timer is off by default
//! ([`RlcConfig::discard_after`]), as in the reference model (ns-3's `lte` module).

mod am;
mod queue;
mod transparent;
mod um;

#[cfg(test)]
mod tests;

use fullpipe_units::{Duration, Instant};
use queue::Queue;

/// Bytes that PDCP adds to a packet: a data PDU with a 12-bit sequence number (TS 36.323, clause 6.2.3).
pub const PDCP_HEADER_BYTES: u32 = 2;

/// Bytes that a saturated source reports as waiting.
pub const SATURATED_BYTES: u32 = 80_000;

/// The direction in which bytes are transmitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkDirection {
    /// From the eNB to the UE.
    Downlink = 0,
    /// From the UE to the eNB.
    Uplink = 1,
}

impl LinkDirection {
    /// Both directions, in order of their index.
    pub const BOTH: [LinkDirection; 2] = [LinkDirection::Downlink, LinkDirection::Uplink];

    /// Returns the opposite direction.
    #[inline]
    pub const fn opposite(self) -> LinkDirection {
        match self {
            LinkDirection::Downlink => LinkDirection::Uplink,
            LinkDirection::Uplink => LinkDirection::Downlink,
        }
    }
}

/// The RLC mode of a bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RlcMode {
    /// UM: restores the order of SDUs, but does not retransmit lost data.
    Unacknowledged,
    /// AM: retransmits lost data.
    Acknowledged,
    /// SM: not a 3GPP mode, but a source without SDUs that always has data to send. Its buffer status is reported after
    /// each transmission opportunity.
    Saturated,
    /// TM: neither restores the order of SDUs nor retransmits lost data.
    Transparent,
}

impl RlcMode {
    /// Returns the size of a data PDU's header in bytes, without length indicators.
    pub const fn header_bytes(self) -> u32 {
        match self {
            RlcMode::Unacknowledged => um::HEADER_BYTES,
            RlcMode::Acknowledged => am::HEADER_BYTES,
            RlcMode::Saturated | RlcMode::Transparent => 0,
        }
    }
}

/// A service data unit: the data that the layer above passes to RLC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sdu {
    /// Size in bytes of the PDCP PDU: the packet plus [`PDCP_HEADER_BYTES`]. At least 1.
    pub bytes: u32,
    /// The caller's identifier of the packet.
    pub token: u64,
    /// When the SDU arrived.
    pub arrived: Instant,
}

/// The outcome of an SDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SduOutcome {
    /// The SDU as offered.
    pub sdu: Sdu,
    /// Whether the SDU reached the other end.
    pub delivered: bool,
}

/// An RLC PDU without its content: its sizes, and the SDUs of which it contains segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Size on the air in bytes: header and segments.
    pub bytes: u32,
    /// Bytes of SDU segments in the PDU.
    pub payload_bytes: u32,
    /// Number of the first segment's SDU; for a STATUS report the number of the report.
    first: u32,
    /// Number of segments, of consecutive SDUs.
    segments: u32,
    /// Sequence number: modulo 1024 as on the air, for AM modulo 2^16.
    sn: u16,
    flags: u8,
    /// Number of earlier re-establishments of the bearer.
    epoch: u8,
}

impl Pdu {
    /// The first segment is not the beginning of its SDU.
    const CONTINUES: u8 = 1;
    /// The last segment is not the end of its SDU.
    const CUT: u8 = 2;
    /// AM: requests a STATUS report.
    const POLL: u8 = 4;
    /// AM: a STATUS report.
    const STATUS: u8 = 8;
    /// AM: a retransmission.
    const AGAIN: u8 = 16;

    /// Whether the PDU is a STATUS report of AM rather than data.
    #[inline]
    pub const fn is_status(&self) -> bool {
        self.flags & Self::STATUS != 0
    }

    #[inline]
    const fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The configuration of a bearer's RLC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RlcConfig {
    /// Size of the transmit buffer of each direction, in bytes of SDUs; `None` if it is unlimited. SDUs that do not fit
    /// are dropped.
    pub max_buffer_bytes: Option<u32>,
    /// Maximum number of SDUs in the buffer that are not completely sent; `None` if it is unlimited.
    pub max_buffer_sdus: Option<u32>,
    /// PDCP's discard timer: an SDU is discarded if none of it was sent within this time. `None` if the timer is off.
    pub discard_after: Option<Duration>,
    /// t-Reordering: time for which a receiver waits for a PDU that HARQ may still deliver.
    pub reordering: Duration,
    /// Time after which the buffer status is reported to MAC again while the buffer is not empty.
    pub report_again: Duration,
    /// Parameters of AM.
    pub acknowledgement: AmConfig,
}

/// The parameters of AM polling and STATUS reporting (3GPP TS 36.331 section 6.3.2, RLC-Config).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmConfig {
    /// pollPDU: number of new PDUs after which a PDU polls.
    pub poll_after_pdus: u32,
    /// pollByte: number of new bytes after which a PDU polls.
    pub poll_after_bytes: u32,
    /// t-PollRetransmit: time for which the sender waits for the answer to a poll.
    pub poll_retransmit: Duration,
    /// t-StatusProhibit: shortest time between STATUS reports.
    pub status_prohibit: Duration,
    /// maxRetxThreshold: largest number of retransmissions of a PDU.
    pub max_retransmissions: u32,
    /// Whether the bearer fails ([`Bearer::has_failed`]) when a PDU exceeds [`AmConfig::max_retransmissions`], as in a
    /// real network. Otherwise the event is only counted.
    pub fails: bool,
}

impl AmConfig {
    /// The parameters of the reference model: every PDU polls, t-PollRetransmit is 20 ms and t-StatusProhibit is 10 ms.
    /// After 5 retransmissions, the bearer does not fail.
    pub const REFERENCE: AmConfig = AmConfig {
        poll_after_pdus: 1,
        poll_after_bytes: 50,
        poll_retransmit: Duration::from_millis(20),
        status_prohibit: Duration::from_millis(10),
        max_retransmissions: 5,
        fails: false,
    };
}

impl RlcConfig {
    /// Returns the configuration of the reference model: a buffer of 10 240 bytes, no discard timer, and
    /// [`AmConfig::REFERENCE`]. t-Reordering is 100 ms (AM: 10 ms), and the buffer status is reported every 10 ms (AM:
    /// 20 ms).
    pub const fn for_mode(mode: RlcMode) -> RlcConfig {
        let acknowledged = matches!(mode, RlcMode::Acknowledged);
        RlcConfig {
            max_buffer_bytes: Some(10_240),
            max_buffer_sdus: None,
            discard_after: None,
            reordering: Duration::from_millis(if acknowledged { 10 } else { 100 }),
            report_again: Duration::from_millis(if acknowledged { 20 } else { 10 }),
            acknowledgement: AmConfig::REFERENCE,
        }
    }
}

/// A buffer status report to MAC: the data that waits for transmission in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferStatus {
    /// Bytes of SDUs that are not sent yet. In UM, 2 bytes are added for each SDU.
    pub new_data_bytes: u32,
    /// Bytes of PDUs to retransmit (AM only).
    pub retransmission_bytes: u32,
    /// Bytes of a STATUS report that may be sent now (AM only).
    pub status_bytes: u32,
    /// When the oldest SDU of the new data arrived; [`Instant::NEVER`] if there is none, and for a saturated source.
    pub head_of_line: Instant,
}

impl BufferStatus {
    /// Returns the total number of waiting bytes.
    pub fn total_bytes(&self) -> u32 {
        self.new_data_bytes.saturating_add(self.retransmission_bytes).saturating_add(self.status_bytes)
    }
}

/// The buffer status reports that must be passed to MAC after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct DueReports {
    /// Whether the [`BufferStatus`] of each direction must be passed to MAC, by index of the direction.
    pub report: [bool; 2],
}

/// Counters of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// SDUs offered.
    pub sdus_offered: u64,
    /// Offered SDUs that were dropped because the buffer was full.
    pub sdus_dropped: u64,
    /// Offered SDUs that the discard timer discarded.
    pub sdus_discarded: u64,
    /// Offered SDUs that were lost on the air.
    pub sdus_lost: u64,
    /// Offered SDUs that were delivered.
    pub sdus_delivered: u64,
    /// Bytes of the delivered SDUs.
    pub bytes_delivered: u64,
    /// PDUs sent in this direction, of all kinds, including retransmissions by RLC.
    pub pdus: u64,
    /// Bytes of the PDUs sent.
    pub pdu_bytes: u64,
    /// PDUs received.
    pub pdus_received: u64,
    /// Bytes of the received PDUs.
    pub pdu_bytes_received: u64,
    /// Retransmissions among the PDUs sent.
    pub pdus_retransmitted: u64,
    /// STATUS reports among the PDUs sent.
    pub status_pdus: u64,
    /// Number of times that a PDU was still missing after the maximum number of retransmissions.
    pub retransmissions_exhausted: u64,
}

#[derive(Clone, Debug)]
enum Machine {
    Unacknowledged([um::UmEntity; 2]),
    Acknowledged(Box<[am::AmEntity; 2]>),
    Saturated,
    Transparent([transparent::TmEntity; 2]),
}

/// Both ends and both directions of a bearer.
#[derive(Clone, Debug)]
pub struct Bearer {
    mode: RlcMode,
    limits: RlcConfig,
    epoch: u8,
    failed: bool,
    /// The earliest of all timers.
    next_timer: Instant,
    queues: [Queue; 2],
    machine: Machine,
    counters: [Counters; 2],
}

impl Bearer {
    /// Creates an empty bearer.
    pub fn new(mode: RlcMode, limits: RlcConfig) -> Bearer {
        Bearer {
            mode,
            limits,
            epoch: 0,
            failed: false,
            next_timer: Instant::NEVER,
            queues: Default::default(),
            machine: match mode {
                RlcMode::Unacknowledged => Machine::Unacknowledged(Default::default()),
                RlcMode::Acknowledged => Machine::Acknowledged(Default::default()),
                RlcMode::Saturated => Machine::Saturated,
                RlcMode::Transparent => Machine::Transparent(Default::default()),
            },
            counters: Default::default(),
        }
    }

    /// Returns the RLC mode.
    pub const fn mode(&self) -> RlcMode {
        self.mode
    }

    /// Returns the configuration.
    pub const fn limits(&self) -> &RlcConfig {
        &self.limits
    }

    /// Offers an SDU. Returns false if the SDU is dropped because the buffer is full or the bearer has failed. In
    /// either case, MAC must receive a buffer status report afterwards.
    ///
    /// SDUs are offered in order of arrival. A saturated source accepts none.
    #[inline]
    pub fn offer(&mut self, way: LinkDirection, sdu: Sdu) -> bool {
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

    /// Returns the PDU to send if MAC has room for `bytes` bytes; `None` if no data is waiting, nothing fits, or the
    /// bearer has failed.
    #[inline]
    pub fn on_transmit_opportunity(&mut self, way: LinkDirection, now: Instant, bytes: u32) -> Option<Pdu> {
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
                let answered = &mut paths[way.opposite() as usize];
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

    /// Handles a received PDU of this direction. Appends the resulting outcomes of SDUs to `out`.
    #[inline]
    pub fn receive(&mut self, way: LinkDirection, now: Instant, pdu: Pdu, out: &mut Vec<SduOutcome>) -> DueReports {
        if pdu.epoch != self.epoch {
            return DueReports::default();
        }
        let index = way as usize;
        let before = out.len();
        let mut due = DueReports::default();
        self.counters[index].pdus_received += 1;
        self.counters[index].pdu_bytes_received += u64::from(pdu.bytes);
        match &mut self.machine {
            Machine::Unacknowledged(paths) => {
                paths[index].receive(&mut self.queues[index], pdu, now, self.limits.reordering, out);
            }
            Machine::Acknowledged(paths) => {
                let back = way.opposite() as usize;
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

    /// Returns the report to MAC about one direction. In the reference model an AM bearer sends no report when nothing
    /// is left.
    #[inline]
    pub fn buffer_status(&self, way: LinkDirection) -> BufferStatus {
        let queue = &self.queues[way as usize];
        let (mut retransmission_bytes, mut status_bytes) = (0, 0);
        let new_data_bytes = match &self.machine {
            Machine::Unacknowledged(_) => queue.bytes() + 2 * queue.len() as u64,
            Machine::Acknowledged(paths) => {
                retransmission_bytes = paths[way as usize].retransmission_bytes();
                status_bytes = paths[way.opposite() as usize].status_bytes();
                queue.bytes()
            }
            Machine::Transparent(_) => queue.bytes(),
            Machine::Saturated => u64::from(SATURATED_BYTES),
        };
        let saturated = |bytes| u32::try_from(bytes).unwrap_or(u32::MAX);
        BufferStatus {
            new_data_bytes: saturated(new_data_bytes),
            retransmission_bytes: saturated(retransmission_bytes),
            status_bytes,
            head_of_line: queue.head_of_line(),
        }
    }

    /// Returns the bytes of SDUs that are not sent yet.
    #[inline]
    pub fn waiting_bytes(&self, way: LinkDirection) -> u64 {
        self.queues[way as usize].bytes()
    }

    /// Returns when [`Bearer::expire`] must be called next; [`Instant::NEVER`] if no timer is running.
    #[inline]
    pub const fn next_timer(&self) -> Instant {
        self.next_timer
    }

    /// Runs the timers up to `now`. Outcomes of downlink SDUs precede those of the uplink. The outcomes of discarded
    /// SDUs are reported at once, before those of older ones that are on the air.
    pub fn expire(&mut self, now: Instant, out: &mut Vec<SduOutcome>) -> DueReports {
        let mut due = DueReports::default();
        if now < self.next_timer {
            return due;
        }
        for way in LinkDirection::BOTH {
            let index = way as usize;
            let queue = &mut self.queues[index];
            if let Some(after) = self.limits.discard_after {
                while queue.oldest_untouched().saturating_add(after) <= now {
                    let sdu = queue.discard();
                    self.counters[index].sdus_discarded += 1;
                    out.push(SduOutcome { sdu, delivered: false });
                    // MAC assumes more waiting data than there are.
                    due.report[index] = true;
                }
            }
            let before = out.len();
            let again = now.saturating_add(self.limits.report_again);
            due.report[index] |= match &mut self.machine {
                Machine::Unacknowledged(paths) => paths[index].expire(queue, now, self.limits.reordering, again, out),
                Machine::Acknowledged(paths) => {
                    let expired = paths[index].expire(queue, now, &self.limits);
                    due.report[way.opposite() as usize] |= expired.status;
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

    /// Re-establishes the bearer (TS 36.322, clause 5.4). SDUs that can be reassembled from received PDUs are
    /// delivered, and the others are lost. PDUs that are on the air have no effect.
    pub fn reestablish(&mut self, out: &mut Vec<SduOutcome>) {
        for way in LinkDirection::BOTH {
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

    /// Whether the bearer has failed (radio link failure) because a PDU of AM exceeded the number of retransmissions
    /// and [`AmConfig::fails`] is set. A failed bearer neither sends nor accepts data until it is re-established.
    pub const fn has_failed(&self) -> bool {
        self.failed
    }

    /// Returns the accepted SDUs without an outcome, oldest first.
    pub fn pending_sdus(&self, way: LinkDirection) -> impl Iterator<Item = &Sdu> {
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

    /// Returns the counters of one direction.
    pub const fn counters(&self, way: LinkDirection) -> &Counters {
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

    fn count(&mut self, way: LinkDirection, outcomes: &[SduOutcome]) {
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

/// Modulus and windows of the reference model: sequence numbers of 10 bits.
mod sequence {
    /// Largest number of PDUs in a window: half of the numbers.
    pub(super) const WINDOW: u16 = 512;

    /// The distance from `from` to `to`, 0 to 1023.
    #[inline]
    pub(super) const fn distance(from: u16, to: u16) -> u16 {
        to.wrapping_sub(from) & 1023
    }

    /// The number that is `by` after `sn`.
    #[inline]
    pub(super) const fn after(sn: u16, by: u16) -> u16 {
        sn.wrapping_add(by) & 1023
    }

    /// The number that is `by` before `sn`.
    #[inline]
    pub(super) const fn before(sn: u16, by: u16) -> u16 {
        sn.wrapping_sub(by) & 1023
    }
}
