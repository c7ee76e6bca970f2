//! The sender of an open connection: selection of the next segment (RFC 9293 sections 3.7 and 3.8, RFC 5681) and timers
//! (RFC 6298, RFC 8985 section 7). `acknowledge.rs` processes acknowledgments.
//!
//! **Model.** The application's bytes are buffered until they are acknowledged. A segment contains as many of them as
//! are available, up to the MSS. It is sent if it fits completely into the peer's window and the congestion window, and
//! if Nagle's algorithm and the pacer permit it. Lost segments precede new data. The FIN is sent with the last byte, or
//! alone if the last byte has already been sent.

use crate::Config;
use crate::config::LossDetection;
use crate::ecn::EcnState;
use crate::path_mtu::PathMtuDiscovery;
use crate::recovery::{self, Rack, RecoveryPhase};
use crate::scoreboard::{RateSampleState, Scoreboard, SegmentRecord, flag};
use fullpipe_congestion::pacing::{Pacer, window_rate_bps};
use fullpipe_congestion::rtt::RttEstimator;
use fullpipe_congestion::{Controller, Driver, Timeout};
use fullpipe_transport::buffers::ByteStore;
use fullpipe_units::{Duration, Instant};
use std::num::NonZeroU64;

/// Maximum delay of an acknowledgment that is expected from a receiver (RFC 8985 section 7.2, TLP.max_ack_delay).
const MAX_ACK_DELAY: Duration = Duration::from_millis(200);
/// Margin that Linux adds to the timeout of a tail loss probe: two ticks of its clock.
const PROBE_MARGIN: Duration = Duration::from_millis(2);
/// Probe timeout before the first round-trip sample (RFC 8985 section 7.2).
const FIRST_PROBE: Duration = Duration::from_secs(1);

/// Largest MSS in bytes. A record of a segment has 16 bits for its length, including a FIN.
pub(crate) const LARGEST_MSS: u32 = 65_000;

/// Segments to send out of order; bits of [`Sender::pending`].
mod pending {
    /// Retransmit the first outstanding segment, regardless of the window.
    pub(super) const HEAD: u8 = 1;
    /// A tail loss probe.
    pub(super) const TAIL_PROBE: u8 = 2;
    /// A window probe.
    pub(super) const WINDOW_PROBE: u8 = 4;
    /// Duplicate acknowledgments release no segment, because limited transmit is disabled.
    pub(super) const HELD: u8 = 32;
    /// Continue the search for the largest segment size that passes.
    pub(super) const PATH_PROBE: u8 = 8;
}

/// A segment to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingSegment {
    /// Offset of the first byte; one less for a window probe without payload.
    pub(crate) start: u64,
    pub(crate) payload_bytes: u64,
    /// [`OutgoingSegment::FIN`] and [`OutgoingSegment::FRESH`] in one word. Two booleans would be stored as bytes and
    /// loaded as a word, which prevents store forwarding (8 % of the time of one flow). The value is never zero, so
    /// that an `Option` of it is no larger.
    pub(crate) marks: NonZeroU64,
}

impl OutgoingSegment {
    /// The segment ends the stream.
    pub(crate) const FIN: u64 = 2;
    /// The segment is sent for the first time and is not a window probe.
    pub(crate) const FRESH: u64 = 4;

    /// Marks of a retransmission or probe, which may end the stream.
    #[inline(always)]
    pub(crate) fn marks(fin: bool) -> NonZeroU64 {
        NonZeroU64::MIN | (OutgoingSegment::FIN * u64::from(fin))
    }

    #[inline(always)]
    pub(crate) fn fin(&self) -> bool {
        self.marks.get() & OutgoingSegment::FIN != 0
    }

    #[inline(always)]
    pub(crate) fn fresh(&self) -> bool {
        self.marks.get() & OutgoingSegment::FRESH != 0
    }
}

/// Consecutive new segments of full size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewDataBurst {
    /// Offset of the first byte.
    pub(crate) start: u64,
    /// Payload bytes of each segment.
    pub(crate) payload_bytes: u64,
    pub(crate) segments: u32,
    /// Whether the congestion window permits no more segments.
    pub(crate) is_all: bool,
}

/// Counts that only reports need.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) retransmissions: u32,
    pub(crate) timeouts: u32,
    pub(crate) tail_loss_probes: u32,
    pub(crate) window_probes: u32,
    pub(crate) recoveries: u32,
    /// Reductions that were undone.
    pub(crate) undone: u32,
    /// SYN retransmissions.
    pub(crate) lost_syns: u32,
}

/// State that only losses, timeouts and probes need. It is allocated at the first of these events. An endpoint that
/// only receives, or an idle connection, does not have it.
#[derive(Debug, Default)]
pub(crate) struct Repair {
    /// The phase ends when this offset is acknowledged.
    pub(crate) recovery_end: u64,
    /// Time at which the first outstanding segment was last sent, recorded at the first of the current consecutive
    /// timeouts.
    pub(crate) stalled_since: Instant,
    /// Without SACK: number of bytes that duplicate acknowledgments report as arrived, without their positions.
    pub(crate) presumed_bytes: u64,
    /// The search for the largest segment size that passes, if one is active.
    pub(crate) search: Option<Box<PathMtuDiscovery>>,
    pub(crate) counts: Counts,
}

/// The state of a connection without losses, timeouts or probes.
static NO_REPAIR: Repair = Repair {
    recovery_end: 0,
    stalled_since: Instant::ZERO,
    presumed_bytes: 0,
    search: None,
    counts: Counts {
        retransmissions: 0,
        timeouts: 0,
        tail_loss_probes: 0,
        window_probes: 0,
        recoveries: 0,
        undone: 0,
        lost_syns: 0,
    },
};

/// The sender of a connection.
#[derive(Debug)]
pub(crate) struct Sender {
    // Fields that every acknowledgment and every segment access.
    /// Offset up to which everything is acknowledged.
    pub(crate) una: u64,
    /// Offset up to which everything was sent.
    pub(crate) next: u64,
    /// End of the peer's window.
    pub(crate) window_end: u64,
    /// End of the data that the application has written. A FIN has this offset.
    pub(crate) written: u64,
    pub(crate) board: Scoreboard,
    pub(crate) driver: Driver,
    pub(crate) rtt: RttEstimator,
    /// Deadline of the retransmission timeout or the next window probe.
    pub(crate) rto_at: Instant,
    /// Deadline of the tail loss probe.
    pub(crate) probe_at: Instant,
    /// End of the reordering window.
    pub(crate) reorder_at: Instant,
    /// Time at which the pacer releases the next segment.
    pub(crate) pace_at: Instant,
    /// Last time when data or a FIN was sent.
    last_sent_at: Instant,
    /// End of the flight over which window usage is measured, and the maximum in flight during it.
    usage_end: u64,
    usage_bytes: u64,
    pub(crate) phase: RecoveryPhase,
    pub(crate) finished: bool,
    window_limited: bool,
    sent_since_judged: bool,
    /// Whether both ends offered SACK.
    pub(crate) sack: bool,
    /// Whether tail loss probes are enabled.
    pub(crate) tail_loss_probe: bool,
    /// Whether `rto_at` is the deadline of the next window probe.
    pub(crate) probing_window: bool,
    pub(crate) probe_backoff: u8,
    pending: u8,
    /// Number of the last consecutive duplicate acknowledgments.
    pub(crate) duplicates: u8,
    rescued: bool,
    /// Timeouts without progress.
    pub(crate) timeouts_in_row: u32,
    /// Number of data segments sent.
    pub(crate) data_segments: u64,
    pub(crate) rack: Rack,
    /// The outstanding tail loss probe is evaluated when this offset is acknowledged; 0 if there is none.
    pub(crate) tail_probe_end: u64,
    pub(crate) tail_probe_was_retransmission: bool,

    /// Rarely needed state, see [`Sender::repair`].
    pub(crate) repair: Option<Box<Repair>>,
    /// ECN state, once ECN is negotiated.
    pub(crate) ecn: Option<Box<EcnState>>,
    pub(crate) pacer: Option<Box<Pacer>>,
    pub(crate) bytes: Option<Box<ByteStore>>,
}

/// Reports a segment marked lost to the congestion control.
pub(crate) fn note_lost(driver: &mut Driver, now: Instant, segment: &SegmentRecord, sample: RateSampleState) {
    let delivered_bytes = driver.delivered_bytes();
    driver.on_lost(now, segment.bytes(), |lost_bytes| segment.packet_state(sample, delivered_bytes, lost_bytes));
}

impl Sender {
    pub(crate) fn new(config: &Config, controller: Box<dyn Controller>) -> Sender {
        let mss_bytes = u64::from(config.mss_bytes.clamp(1, LARGEST_MSS));
        let window_bytes = mss_bytes.saturating_mul(u64::from(config.initial_window_segments.max(1)));
        let driver = Driver::new(controller, mss_bytes, window_bytes);
        let paced = config.pacing || driver.needs_pacing();
        Sender {
            una: 0,
            next: 0,
            window_end: 0,
            written: 0,
            board: Scoreboard::new(mss_bytes, driver.takes_rate_samples()),
            driver,
            rtt: RttEstimator::new(&config.rtt()),
            rto_at: Instant::NEVER,
            probe_at: Instant::NEVER,
            reorder_at: Instant::NEVER,
            pace_at: Instant::NEVER,
            last_sent_at: Instant::ZERO,
            usage_end: 0,
            usage_bytes: 0,
            phase: RecoveryPhase::Open,
            finished: false,
            window_limited: false,
            sent_since_judged: false,
            sack: false,
            tail_loss_probe: false,
            probing_window: false,
            probe_backoff: 0,
            pending: 0,
            duplicates: 0,
            rescued: false,
            timeouts_in_row: 0,
            data_segments: 0,
            rack: Rack::default(),
            tail_probe_end: 0,
            tail_probe_was_retransmission: false,
            repair: None,
            ecn: None,
            pacer: paced.then(|| Box::new(Pacer::new(0))),
            bytes: None,
        }
    }

    /// Returns the state that only losses, timeouts and probes need.
    pub(crate) fn repair(&self) -> &Repair {
        self.repair.as_deref().unwrap_or(&NO_REPAIR)
    }

    /// Returns the state of [`Sender::repair`] mutably, and allocates it if necessary.
    pub(crate) fn repair_mut(&mut self) -> &mut Repair {
        self.repair.get_or_insert_default()
    }

    /// Processes the establishment of the connection. `lost_syns` counts retransmissions of our SYN.
    pub(crate) fn establish(
        &mut self,
        config: &Config,
        now: Instant,
        mss_bytes: u64,
        rtt: Option<Duration>,
        sack: bool,
        lost_syns: u32,
    ) {
        self.sack = sack;
        self.tail_loss_probe = config.tail_loss_probe && sack && config.loss_detection == LossDetection::Rack;
        self.driver.control.mss_bytes = mss_bytes;
        self.board.set_mss(mss_bytes);
        // RFC 6928 section 2: the configured initial window after at most one lost SYN, one segment after more.
        let segments = if lost_syns > 1 { 1 } else { config.initial_window_segments.max(1) };
        self.driver.control.cwnd_bytes = mss_bytes.saturating_mul(u64::from(segments));
        self.rto_at = Instant::NEVER;
        self.last_sent_at = now;
        match rtt {
            Some(rtt) => {
                self.rtt.on_sample(&config.rtt(), now, rtt);
                self.rack.set_first_rtt(rtt);
            }
            None if lost_syns > 0 => self.rtt.on_lost_syn(&config.rtt()),
            None => {}
        }
        self.driver.on_established(now, rtt);
        if let Some(bytes) = config.initial_ssthresh_bytes {
            self.driver.control.ssthresh_bytes = bytes;
        }
        self.update_pacing(config);
        // The application has not written data yet.
        self.driver.mark_app_limited(0);
    }

    /// Completes the handshake of a server that sent data during it. The timeout of data replaces that of the SYN.
    pub(crate) fn end_early(&mut self, config: &Config, now: Instant, rtt: Option<Duration>) {
        self.tail_loss_probe = config.tail_loss_probe && self.sack && config.loss_detection == LossDetection::Rack;
        match rtt {
            Some(rtt) => {
                self.rtt.on_sample(&config.rtt(), now, rtt);
                self.rack.set_first_rtt(rtt);
            }
            None => self.rtt.on_lost_syn(&config.rtt()),
        }
        self.rto_at = if self.board.segments.is_empty() { Instant::NEVER } else { now.saturating_add(self.rtt.rto()) };
        self.update_pacing(config);
    }

    /// Skips the data before `offset`, which was sent with the SYN and has arrived.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        self.una = offset;
        self.next = offset;
        self.window_end = self.window_end.saturating_add(offset);
        if let Some(bytes) = &mut self.bytes {
            bytes.remove_below(offset);
        }
    }

    /// Disables delivery-rate samples, unless the control uses them. Must be called before the first segment is sent.
    pub(crate) fn disable_rate_samples(&mut self) {
        self.driver.disable_rate_samples();
        if !self.driver.takes_rate_samples() {
            self.board.samples = None;
        }
    }

    /// Bytes written and not yet acknowledged.
    #[inline(always)]
    pub(crate) fn buffered_bytes(&self) -> u64 {
        self.written - self.una.min(self.written)
    }

    /// Whether the peer acknowledged the FIN.
    #[inline(always)]
    pub(crate) fn fin_acknowledged(&self) -> bool {
        self.una > self.written
    }

    /// Whether data is outstanding or waits to be sent, so that keep-alive probes are not needed.
    pub(crate) fn is_outstanding(&self) -> bool {
        !self.board.segments.is_empty() || self.next < self.written
    }

    /// Deadline of the retransmission timeout, tail loss probe or window probe.
    #[inline(always)]
    pub(crate) fn deadline(&self) -> Instant {
        self.rto_at.min(self.probe_at)
    }

    /// Enters TIME-WAIT: all data has arrived, and no data follows. Releases the memory of segment records, because a
    /// busy server would have thousands of such connections.
    #[cold]
    pub(crate) fn rest(&mut self) {
        debug_assert!(self.board.segments.is_empty(), "the peer has acknowledged the FIN");
        self.board.release_records();
        self.bytes = None;
    }

    /// Closes the sender: it sends nothing more and releases its memory.
    pub(crate) fn close(&mut self) {
        self.rto_at = Instant::NEVER;
        self.probe_at = Instant::NEVER;
        self.reorder_at = Instant::NEVER;
        self.pace_at = Instant::NEVER;
        self.pending = 0;
        self.board = Scoreboard::new(self.driver.control.mss_bytes, self.driver.takes_rate_samples());
        if let Some(repair) = &mut self.repair {
            repair.presumed_bytes = 0;
            repair.search = None;
        }
        self.bytes = None;
        self.written = self.written.min(self.una);
        self.next = self.una;
    }

    /// Whether nothing is outstanding and nothing is to be sent, as at an endpoint that only receives.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.next >= self.written && self.board.segments.is_empty() && !(self.finished && self.next == self.written)
    }

    /// Returns the next segment to send now.
    #[inline]
    pub(crate) fn poll(&mut self, config: &Config, now: Instant) -> Option<OutgoingSegment> {
        if self.is_idle() {
            return None;
        }
        self.pace_at = Instant::NEVER;
        if self.pending != 0
            && let Some(decided) = self.poll_pending(config, now)
        {
            return decided;
        }
        if self.board.lost_bytes() > 0
            && !self.waits_for_new_data()
            && let Some(index) = self.board.next_lost()
        {
            let bytes = self.board.segments[index].bytes();
            if !self.fits_window(bytes) || !self.pacer_allows(now) {
                return self.stop(true);
            }
            return Some(self.retransmit(config, now, index));
        }
        self.poll_new(config, now)
    }

    #[inline]
    fn poll_new(&mut self, config: &Config, now: Instant) -> Option<OutgoingSegment> {
        if self.next > self.written {
            return self.stop_for_data(config, now);
        }
        let length = (self.written - self.next).min(self.driver.control.mss_bytes);
        let end = self.next + length;
        let fin = self.finished && end == self.written;
        if length == 0 && !fin {
            return self.stop_for_data(config, now);
        }
        if end > self.window_end {
            return self.stop_for_peer(config, now);
        }
        if config.nagle && length < self.driver.control.mss_bytes && !fin && self.una < self.next {
            return self.stop_for_data(config, now);
        }
        if self.board.segments.is_empty() {
            self.restart_after_idle(config, now);
        }
        if !self.fits_window(length) {
            return self.stop(true);
        }
        if !self.pacer_allows(now) {
            return self.stop(!self.fits_window(length + self.driver.control.mss_bytes));
        }
        Some(self.send_new(now, length, fin))
    }

    /// Whether `bytes` more may be in flight. One segment is always permitted.
    #[inline(always)]
    fn fits_window(&self, bytes: u64) -> bool {
        self.board.in_flight_bytes == 0 || self.board.in_flight_bytes + bytes <= self.driver.control.cwnd_bytes
    }

    #[inline(always)]
    fn pacer_allows(&mut self, now: Instant) -> bool {
        match &self.pacer {
            Some(pacer) if !pacer.may_send(now) => {
                self.pace_at = pacer.release_at();
                false
            }
            _ => true,
        }
    }

    /// Records that nothing can be sent now. `limited` states that the congestion window is the reason. For the flight
    /// that begins now, records whether this was ever the reason, and the maximum in flight (Linux
    /// `tcp_cwnd_validate`).
    #[inline(always)]
    fn stop(&mut self, limited: bool) -> Option<OutgoingSegment> {
        if (limited || self.sent_since_judged)
            && (limited
                || self.una >= self.usage_end
                || !self.window_limited && self.board.in_flight_bytes > self.usage_bytes)
        {
            self.window_limited = limited;
            self.usage_bytes = self.board.in_flight_bytes;
            self.usage_end = self.next;
        }
        self.sent_since_judged = false;
        None
    }

    /// Whether the congestion window limited sending in the last flight. In slow start, the window also counts as
    /// limiting if more than half of it was used, so that it can double (Linux `tcp_is_cwnd_limited`).
    #[inline(always)]
    pub(crate) fn is_window_limited(&self) -> bool {
        self.window_limited
            || self.driver.control.cwnd_bytes < self.driver.control.ssthresh_bytes
                && self.driver.control.cwnd_bytes < self.usage_bytes.saturating_mul(2)
    }

    /// Handles the lack of application data.
    #[inline]
    fn stop_for_data(&mut self, config: &Config, now: Instant) -> Option<OutgoingSegment> {
        if self.phase == RecoveryPhase::FastRecovery
            && let Some(outgoing) = self.poll_rescue(config, now)
        {
            return Some(outgoing);
        }
        if self.board.in_flight_bytes < self.driver.control.cwnd_bytes {
            self.driver.mark_app_limited(self.board.in_flight_bytes);
        }
        self.stop(false)
    }

    /// Handles a peer's window that is too small for the next segment.
    #[cold]
    fn stop_for_peer(&mut self, config: &Config, now: Instant) -> Option<OutgoingSegment> {
        if self.phase == RecoveryPhase::FastRecovery
            && let Some(outgoing) = self.poll_rescue(config, now)
        {
            return Some(outgoing);
        }
        if self.board.segments.is_empty() && self.rto_at.is_never() {
            self.probing_window = true;
            self.rto_at = now.saturating_add(self.probe_interval(config));
        }
        self.stop(false)
    }

    /// Rescue retransmissions (RFC 6675 section 4, NextSeg rules 3 and 4). In fast recovery with nothing else to send,
    /// a segment below selectively acknowledged data is retransmitted before it counts as lost. Once per recovery, the
    /// last outstanding segment is retransmitted.
    #[cold]
    fn poll_rescue(&mut self, config: &Config, now: Instant) -> Option<OutgoingSegment> {
        if config.loss_detection != LossDetection::DuplicateAcks || !self.sack || !self.fits_window(1) {
            return None;
        }
        let segments = &self.board.segments;
        let arrived =
            self.board.loss.as_ref().and_then(|loss| loss.sacked.as_slice().last()).map_or(0, |range| range.0);
        let untouched = |segment: &SegmentRecord| segment.in_flight() && !segment.has(flag::RETRANSMITTED);
        let mut index = self.board.position(self.board.loss.as_ref().map_or(0, |loss| loss.examined));
        while segments.get(index).is_some_and(|segment| !untouched(segment)) {
            index += 1;
        }
        if segments.get(index).is_none_or(|segment| segment.start >= arrived) {
            if self.rescued {
                return None;
            }
            index = segments.len().checked_sub(1).filter(|last| untouched(&segments[*last]))?;
            self.rescued = true;
        }
        if !self.fits_window(self.board.segments[index].bytes()) || !self.pacer_allows(now) {
            return None;
        }
        let (segment, sample) = self.board.mark_lost(index);
        note_lost(&mut self.driver, now, &segment, sample);
        if segment.start < arrived {
            self.board.loss_mut().examined = segment.end();
        }
        Some(self.retransmit(config, now, index))
    }

    /// Processes pending segments. Returns `None` if nothing is pending, `Some(None)` if nothing may be sent, and
    /// otherwise the segment.
    #[cold]
    fn poll_pending(&mut self, config: &Config, now: Instant) -> Option<Option<OutgoingSegment>> {
        let held = self.pending & pending::HELD;
        self.pending &= !pending::HELD;
        let outgoing = self.poll_out_of_turn(config, now);
        if held != 0 && self.duplicates > 0 && self.holds_back(config) {
            self.pending |= held;
            if outgoing.is_none() && self.board.lost_bytes() == 0 {
                return Some(self.stop(true));
            }
        }
        outgoing.map(Some)
    }

    /// Holds back new segments after duplicate acknowledgments, if limited transmit is disabled.
    pub(crate) fn hold_back(&mut self) {
        self.pending |= pending::HELD;
    }

    #[cold]
    fn poll_out_of_turn(&mut self, config: &Config, now: Instant) -> Option<OutgoingSegment> {
        let pending = std::mem::take(&mut self.pending);
        if pending & pending::PATH_PROBE != 0
            && let Some(outgoing) = self.poll_search(config, now)
        {
            self.pending |= pending & !pending::PATH_PROBE;
            return Some(outgoing);
        }
        let unsent = self.next < self.written || self.next == self.written && self.finished;
        let length = (self.written.saturating_sub(self.next)).min(self.driver.control.mss_bytes);
        let fin = self.finished && self.next + length == self.written;
        if pending & pending::HEAD != 0 && self.board.segments.front().is_some_and(|head| !head.has(flag::SACKED)) {
            return Some(self.retransmit(config, now, 0));
        }
        if pending & pending::TAIL_PROBE != 0 && !self.board.segments.is_empty() {
            // New data if available, otherwise the last segment again (RFC 8985 section 7.3).
            let fresh = unsent && self.next + length <= self.window_end;
            let last = self.board.segments.len() - 1;
            if fresh || !self.board.segments[last].has(flag::SACKED) {
                let outgoing = if fresh { self.send_new(now, length, fin) } else { self.retransmit(config, now, last) };
                self.tail_probe_end = self.next;
                self.tail_probe_was_retransmission = !fresh;
                self.probe_at = Instant::NEVER;
                self.repair_mut().counts.tail_loss_probes += 1;
                return Some(outgoing);
            }
        }
        if pending & pending::WINDOW_PROBE != 0 && unsent {
            self.repair_mut().counts.window_probes += 1;
            let room = self.window_end.saturating_sub(self.next).min(length);
            if room > 0 {
                // Less than a whole segment, but the peer does not open the window further (RFC 9293 section
                // 3.8.6.2.1).
                let sent = self.send_new(now, room, fin && room == length);
                return Some(OutgoingSegment { marks: OutgoingSegment::marks(sent.fin()), ..sent });
            }
            let start = self.una.wrapping_sub(1);
            return Some(OutgoingSegment { start, payload_bytes: 0, marks: OutgoingSegment::marks(false) });
        }
        None
    }

    /// Requests a step of the path MTU search at the next output.
    pub(crate) fn seek_path_probe(&mut self) {
        self.pending |= pending::PATH_PROBE;
    }

    #[inline]
    pub(crate) fn send_new(&mut self, now: Instant, length: u64, fin: bool) -> OutgoingSegment {
        let start = self.next;
        let bytes = length + u64::from(fin);
        let state = self.driver.on_sent(now, bytes, self.board.in_flight_bytes);
        self.board.push(SegmentRecord::new(start, length, fin, &state), &state);
        self.next += bytes;
        self.after_send(now, bytes);
        if self.driver.needs_on_sent() {
            self.follow_control_rate();
        }
        if self.tail_loss_probe {
            self.arm_tail_probe(now);
        }
        OutgoingSegment { start, payload_bytes: length, marks: OutgoingSegment::marks(fin) | OutgoingSegment::FRESH }
    }

    /// Sends as many new segments of full size as may be sent now, with the effect of repeated [`Sender::poll`]. Sends
    /// none if that function might send something else before, between or after them.
    #[inline]
    pub(crate) fn send_burst(&mut self, now: Instant) -> NewDataBurst {
        let (start, mss_bytes) = (self.next, self.driver.control.mss_bytes);
        let mut burst = NewDataBurst { start, payload_bytes: mss_bytes, segments: 0, is_all: false };
        // The control of a user's program may set the segment size to zero.
        let is_usual = self.pending == 0
            && mss_bytes > 0
            && self.phase == RecoveryPhase::Open
            && self.pacer.is_none()
            && self.ecn.is_none()
            && self.bytes.is_none()
            && !self.driver.needs_on_sent()
            && !self.board.segments.is_empty()
            && self.board.lost_bytes() == 0;
        if !is_usual {
            return burst;
        }
        // `poll` handles a segment that ends the stream.
        let most = self.written.saturating_sub(u64::from(self.finished)).min(self.window_end);
        let mut end = self.next + mss_bytes;
        let mut fits = end <= most && self.fits_window(mss_bytes);
        burst.is_all = end <= most && !fits;
        if fits {
            let state = self.driver.on_sent(now, mss_bytes, self.board.in_flight_bytes);
            let mut segment = SegmentRecord::new(self.next, mss_bytes, false, &state);
            while fits {
                self.board.push(segment, &state);
                segment.step();
                burst.segments += 1;
                end += mss_bytes;
                fits = end <= most && self.fits_window(mss_bytes);
            }
            burst.is_all = end <= most;
            self.next = end - mss_bytes;
            self.data_segments += u64::from(burst.segments) - 1;
            self.after_send(now, 0);
            if self.tail_loss_probe {
                self.arm_tail_probe(now);
            }
        }
        if burst.is_all {
            self.stop(true);
        }
        burst
    }

    fn retransmit(&mut self, config: &Config, now: Instant, index: usize) -> OutgoingSegment {
        let segment = self.board.segments[index];
        let others = self.board.in_flight_bytes - if segment.in_flight() { segment.bytes() } else { 0 };
        let state = self.driver.on_sent(now, segment.bytes(), others);
        self.board.retransmit(index, &state);
        self.after_send(now, segment.bytes());
        if self.driver.needs_on_sent() {
            self.follow_control_rate();
        }
        if config.loss_detection == LossDetection::DuplicateAcks {
            // Only RACK reads the queue of retransmissions, so it is cleared here to limit its growth.
            self.board.loss_mut().retransmissions.clear();
        }
        self.repair_mut().counts.retransmissions += 1;
        self.note_retransmission(config, now, segment.start);
        OutgoingSegment {
            start: segment.start,
            payload_bytes: segment.payload_bytes(),
            marks: OutgoingSegment::marks(segment.has(flag::FIN)),
        }
    }

    #[inline(always)]
    fn after_send(&mut self, now: Instant, bytes: u64) {
        self.data_segments += 1;
        self.last_sent_at = now;
        self.sent_since_judged = true;
        if self.phase.reduces() {
            self.board.loss_mut().prr.on_sent(bytes);
        }
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(now, bytes);
        }
        // RFC 6298 rule 5.1.
        if self.rto_at.is_never() || self.probing_window {
            self.probing_window = false;
            self.probe_backoff = 0;
            self.rto_at = now.saturating_add(self.rtt.rto());
        }
    }

    /// Starts the tail loss probe timer (RFC 8985 section 7.2). It expires no later than the retransmission timer.
    #[inline]
    pub(crate) fn arm_tail_probe(&mut self, now: Instant) {
        if !self.phase.is_calm() || self.tail_probe_end != 0 || self.board.sacked_segments() > 0 {
            self.probe_at = Instant::NEVER;
            return;
        }
        let mut wait = if self.rtt.has_sample() {
            self.rtt.smoothed().saturating_mul(2).saturating_add(PROBE_MARGIN)
        } else {
            FIRST_PROBE
        };
        if self.board.segments.len() == 1 {
            wait = wait.saturating_add(MAX_ACK_DELAY);
        }
        self.probe_at = now.saturating_add(wait).min(self.rto_at);
    }

    /// Restarts after an idle time longer than a timeout (RFC 5681 section 4.1), which stops the ACK clock.
    #[inline]
    fn restart_after_idle(&mut self, config: &Config, now: Instant) {
        if config.idle_restart && now.saturating_since(self.last_sent_at) > self.rtt.rto() && self.last_sent_at < now {
            self.driver.on_idle_restart(now);
            self.update_pacing(config);
        }
    }

    /// Applies a parameter that the program has changed in the control. If the control now has a pacing rate, the sender
    /// paces; otherwise the setting of the connection applies.
    pub(crate) fn apply_external_change(&mut self, config: &Config, now: Instant) {
        self.driver.on_external_change(now);
        let paced = config.pacing || self.driver.control.pacing_bps > 0;
        if paced != self.pacer.is_some() {
            self.pacer = paced.then(|| Box::new(Pacer::new(0)));
            self.pace_at = Instant::NEVER;
        }
        self.update_pacing(config);
    }

    /// Sets the pacer's rate: that of the control, or the window per round-trip time.
    #[inline]
    pub(crate) fn update_pacing(&mut self, config: &Config) {
        if let Some(pacer) = &mut self.pacer {
            let rate = match self.driver.control.pacing_bps {
                0 => window_rate_bps(
                    self.driver.control.cwnd_bytes,
                    self.driver.control.ssthresh_bytes,
                    self.rtt.smoothed(),
                ),
                rate => rate,
            };
            let quantum = match self.driver.control.send_quantum_bytes {
                0 => u64::from(config.pacing_quantum_segments).saturating_mul(self.driver.control.mss_bytes),
                quantum => quantum,
            };
            pacer.set_quantum_bytes(quantum);
            pacer.set_rate_bps(rate);
        }
    }

    fn probe_interval(&self, config: &Config) -> Duration {
        self.rtt.rto().saturating_mul(1 << self.probe_backoff.min(16)).min(config.max_rto)
    }

    /// Applies the pacing rate after a departure was reported to the control. At the end of an idle time, the control
    /// may change its rate, which must take effect before the next acknowledgment.
    fn follow_control_rate(&mut self) {
        if let Some(pacer) = &mut self.pacer
            && self.driver.control.pacing_bps > 0
        {
            pacer.set_rate_bps(self.driver.control.pacing_bps);
        }
    }

    /// Handles the timers of retransmission, tail loss probe and window probe. Returns whether to abort after too many
    /// consecutive timeouts.
    #[must_use]
    pub(crate) fn on_far_timer(&mut self, config: &Config, now: Instant) -> bool {
        if self.probe_at <= now {
            // If both are due, the probe replaces the timeout, which then follows the probe.
            self.probe_at = Instant::NEVER;
            self.pending |= pending::TAIL_PROBE;
            self.rto_at = now.saturating_add(self.rtt.rto());
            return false;
        }
        if self.rto_at > now {
            return false;
        }
        if self.timeouts_in_row == 0 {
            self.repair_mut().stalled_since = self.board.segments.front().map_or(now, |head| head.sent_at);
        }
        let give_up_at =
            config.user_timeout.map_or(Instant::NEVER, |most| self.repair().stalled_since.saturating_add(most));
        self.timeouts_in_row += 1;
        if self.timeouts_in_row > config.max_retransmissions || now >= give_up_at {
            return true;
        }
        if self.board.segments.is_empty() {
            self.rto_at = Instant::NEVER;
            if self.probing_window {
                self.pending |= pending::WINDOW_PROBE;
                self.probe_backoff = self.probe_backoff.saturating_add(1);
                self.rto_at = now.saturating_add(self.probe_interval(config)).min(give_up_at);
            }
            return false;
        }
        self.on_timeout(config, now);
        self.suspect_black_hole(config, now);
        self.rto_at = self.rto_at.min(give_up_at);
        false
    }

    /// Handles a retransmission timeout (RFC 6298 rules 5.4 to 5.6, RFC 5681 section 3.1, RFC 8985 section 6.3).
    #[cold]
    fn on_timeout(&mut self, config: &Config, now: Instant) {
        self.repair_mut().counts.timeouts += 1;
        let in_flight_bytes = self.board.in_flight_bytes + self.repair().presumed_bytes;
        self.settle_presumed();
        if self.board.segments.front().is_some_and(|head| head.has(flag::SACKED)) {
            self.board.renege();
        }
        self.begin_episode_of_timeout(config);
        let timeout = Timeout { now, in_flight_bytes, repeated: self.timeouts_in_row > 1 };
        self.driver.on_timeout(&timeout);
        let window = self.reordering_window();
        let rack = config.loss_detection == LossDetection::Rack && self.sack;
        for index in 0..self.board.segments.len() {
            let segment = self.board.segments[index];
            if segment.in_flight() && (!rack || index == 0 || self.rack.lost_on_timeout(&segment, now, window)) {
                let (segment, sample) = self.board.mark_lost(index);
                note_lost(&mut self.driver, now, &segment, sample);
            }
        }
        self.board.queue_lost_in_order();
        self.phase = RecoveryPhase::Loss;
        self.note_reduction();
        self.repair_mut().recovery_end = self.next;
        self.duplicates = 0;
        self.tail_probe_end = 0;
        if !self.driver.has_own_recovery() {
            self.driver.control.cwnd_bytes = self.driver.control.mss_bytes;
        }
        self.update_pacing(config);
        self.pending |= pending::HEAD;
        self.rtt.on_timeout(&config.rtt());
        self.rto_at = now.saturating_add(self.rtt.rto());
        self.probe_at = Instant::NEVER;
        self.reorder_at = Instant::NEVER;
    }

    pub(crate) fn reordering_window(&self) -> Duration {
        let impatient = !self.phase.is_calm() || self.board.sacked_segments() >= recovery::DUPLICATE_THRESHOLD;
        self.rack.reordering_window(impatient, self.rtt.min().unwrap_or_default(), self.rtt.smoothed())
    }

    /// Records a reduction of the window, for any reason, as the ECN response to marks of the same flight.
    pub(crate) fn note_reduction(&mut self) {
        if let Some(ecn) = &mut self.ecn {
            ecn.sender.on_reduction(self.next);
        }
    }

    /// Whether duplicate acknowledgments release no segment: the first two, without limited transmit (RFC 3042).
    #[cold]
    fn holds_back(&self, config: &Config) -> bool {
        !config.limited_transmit
            && config.loss_detection == LossDetection::DuplicateAcks
            && self.phase.is_calm()
            && self.board.in_flight_bytes
                + self.repair().presumed_bytes
                + self.board.sacked_bytes()
                + self.driver.control.mss_bytes
                > self.driver.control.cwnd_bytes
    }

    /// Without SACK, returns to flight the bytes that duplicate acknowledgments removed from it.
    pub(crate) fn settle_presumed(&mut self) {
        if let Some(repair) = &mut self.repair {
            self.board.in_flight_bytes += std::mem::take(&mut repair.presumed_bytes);
        }
    }

    /// Removes from flight the bytes that duplicate acknowledgments report as arrived, at most all bytes in flight.
    pub(crate) fn presume(&mut self, bytes: u64) {
        let presumed_bytes = bytes.min(self.board.in_flight_bytes);
        if presumed_bytes > 0 {
            self.repair_mut().presumed_bytes = presumed_bytes;
            self.board.in_flight_bytes -= presumed_bytes;
        }
    }

    pub(crate) fn begin_rescue(&mut self) {
        self.rescued = false;
    }
}
