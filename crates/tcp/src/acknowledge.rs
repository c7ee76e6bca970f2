//! Processing of an acknowledgment by the sender: scoreboard, round-trip time, losses, congestion control, timers.
//!
//! The order is that of RFC 8985 section 6.2 and of the congestion-control trait: deliveries, round-trip sample,
//! losses, start or end of recovery, congestion control, window of fast recovery, timers. On an undisturbed path,
//! nearly all of the cost is the loop over the acknowledged segments and one call of the control.

use crate::Config;
use crate::config::LossDetection;
use crate::recovery::{self, DUPLICATE_THRESHOLD, Prr, Rack, RecoveryPhase};
use crate::scoreboard::{RateSampleState, SegmentRecord, flag};
use crate::sender::{Sender, note_lost};
use crate::sequence::{SequenceSpace, timestamp_before};
use fullpipe_congestion::{Ack, AckReport, CongestionEvent, DeliveredPackets, Driver, PlainAck};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::SackBlock;

/// The acknowledgment fields of a received segment, after validation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceivedAck<'a> {
    pub(crate) now: Instant,
    /// All data before this offset has arrived. The offset is not beyond the data sent.
    pub(crate) acknowledged: u64,
    /// The right edge of the window, if this segment may update it.
    pub(crate) window_end: Option<u64>,
    pub(crate) sacks: &'a [SackBlock],
    pub(crate) numbering: SequenceSpace,
    /// The echoed timestamp, and the time since we sent it.
    pub(crate) echo: Option<(u32, Duration)>,
    /// Whether the segment has neither payload nor FIN, so that it may be a duplicate acknowledgment.
    pub(crate) bare: bool,
}

/// The results of one acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckResult {
    /// The newly acknowledged data.
    pub(crate) delivered: DeliveredPackets,
    /// Round-trip time of the newest segment that was sent once; [`Duration::MAX`] if there is none.
    rtt: Duration,
}

/// Results that matter only during a recovery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecoveryEvidence {
    /// The duplicate range that the receiver reported (RFC 2883).
    pub(crate) duplicate: Option<(u64, u64)>,
    /// Whether the acknowledgment covers a segment that was sent only once, before the current recovery began.
    pub(crate) original: bool,
    /// Whether the acknowledgment covers a segment that is marked lost and was sent only once.
    pub(crate) late: bool,
    /// Whether the cumulative acknowledgment advanced.
    pub(crate) advanced: bool,
    /// Whether this acknowledgment widened RACK's reordering window.
    pub(crate) widened: bool,
}

impl AckResult {
    fn new() -> AckResult {
        AckResult { delivered: DeliveredPackets::default(), rtt: Duration::MAX }
    }
}

/// Accounts for a newly acknowledged segment.
#[inline(always)]
fn take_delivery(
    config: &Config,
    arrival: &ReceivedAck<'_>,
    min_rtt: Duration,
    batch: &mut AckResult,
    driver: &mut Driver,
    rack: &mut Rack,
    (segment, sample): (&SegmentRecord, RateSampleState),
) {
    let now = arrival.now;
    let state = segment.packet_state(sample, driver.delivered_bytes(), driver.lost_bytes());
    driver.on_delivered(now, &state, &mut batch.delivered);
    let elapsed = now.saturating_since(segment.sent_at);
    if !segment.has(flag::RETRANSMITTED) {
        batch.rtt = batch.rtt.min(elapsed);
    } else if answers_an_earlier_transmission(config, segment, arrival.echo, elapsed, min_rtt) {
        return;
    }
    rack.on_delivered(now, segment);
}

/// The timestamp clock: ticks since the start plus one, because zero means "none".
#[inline]
pub(crate) fn timestamp(config: &Config, at: Instant) -> u32 {
    ((at.as_nanos() / config.timestamp_tick.as_nanos().max(1)) as u32).wrapping_add(1)
}

impl Sender {
    /// Processes an acceptable acknowledgment. Returns whether it acknowledged new data in order.
    #[inline]
    pub(crate) fn on_ack(&mut self, config: &Config, arrival: &ReceivedAck<'_>) -> bool {
        let advanced = arrival.acknowledged > self.una;
        let window_changed = self.on_window(arrival.window_end);
        let expected = self.next > self.una || self.tail_probe_end != 0;
        let duplicate_form = !advanced && arrival.bare && !window_changed && expected;
        if !advanced && arrival.sacks.is_empty() && !duplicate_form {
            return false;
        }
        if advanced && arrival.sacks.is_empty() && self.is_quiet() {
            self.process_quiet(config, arrival);
        } else {
            // A copy, so that in the usual case the fields are not written to memory.
            self.process(config, &{ *arrival }, advanced, duplicate_form);
        }
        advanced
    }

    /// Processes the peer's window update. Returns whether the window changed.
    #[inline(always)]
    pub(crate) fn on_window(&mut self, window_end: Option<u64>) -> bool {
        if self.probing_window {
            self.timeouts_in_row = 0;
        }
        let Some(end) = window_end else { return false };
        std::mem::replace(&mut self.window_end, end) != end
    }

    /// Has the effect of `process` in the usual case: no losses, no selective acknowledgments, no undo or tail probe
    /// under evaluation.
    #[inline]
    fn process_quiet(&mut self, config: &Config, arrival: &ReceivedAck<'_>) {
        let now = arrival.now;
        let prior_in_flight_bytes = self.board.in_flight_bytes;
        let cumulative_bytes = arrival.acknowledged - self.una;
        let mut batch = AckResult::new();
        if !self.take_originals(arrival, &mut batch) {
            let Sender { board, driver, rack, rtt, .. } = self;
            let min_rtt = rtt.min().unwrap_or_default();
            let in_part = board.acknowledge_whole(arrival.acknowledged, |segment, sample| {
                take_delivery(config, arrival, min_rtt, &mut batch, driver, rack, (segment, sample));
            });
            if in_part {
                batch = self.deliver_part(config, *arrival, batch);
            }
        }
        self.board.forget_below(arrival.acknowledged);
        self.advance(arrival.acknowledged);
        let rtt = self.sample_rtt(config, arrival, &batch, true);
        if !self.tell_plainly(&batch, now) {
            self.tell_control(config, &batch, now, rtt, prior_in_flight_bytes, cumulative_bytes, 0);
        }
        if self.phase.reduces() {
            self.reduce_window(batch.delivered.bytes, true);
        }
        self.update_pacing(config);
        self.rearm(now, true);
    }

    /// Has the effect of `take_delivery` for segments that were sent once, if no samples are taken. Returns whether
    /// nothing else was acknowledged.
    #[inline(always)]
    fn take_originals(&mut self, arrival: &ReceivedAck<'_>, batch: &mut AckResult) -> bool {
        if self.driver.takes_rate_samples() || !self.rack.is_below(self.una) {
            return false;
        }
        let originals = self.board.acknowledge_originals(arrival.acknowledged);
        if originals.bytes > 0 {
            let prior_delivered_bytes = originals.prior_delivered_bytes(self.driver.delivered_bytes());
            self.driver.on_delivered_unsampled(originals.bytes, prior_delivered_bytes, &mut batch.delivered);
            batch.rtt = arrival.now.saturating_since(originals.sent_at);
            self.rack.on_originals_delivered(arrival.now, originals.end, originals.sent_at);
        }
        originals.are_all
    }

    /// Passes an acknowledgment without loss, mark or recovery to a control that accepts plain acknowledgments. Returns
    /// whether it did.
    #[inline(always)]
    fn tell_plainly(&mut self, batch: &AckResult, now: Instant) -> bool {
        if !self.driver.takes_plain_acks() || self.ecn.is_some() || self.phase != RecoveryPhase::Open {
            return false;
        }
        let (smoothed_rtt, cwnd_limited) = (self.rtt.smoothed(), self.is_window_limited());
        let ack = PlainAck { now, acked_bytes: batch.delivered.bytes, smoothed_rtt, cwnd_limited };
        self.driver.on_plain_ack(&ack, &batch.delivered);
        true
    }

    /// Whether [`Sender::take_acknowledgement`] has the effect of [`Sender::on_ack`] for an acknowledgment of new data
    /// without SACK blocks.
    #[inline(always)]
    pub(crate) fn takes_acknowledgements(&self) -> bool {
        self.is_quiet() && self.ecn.is_none() && self.bytes.is_none()
    }

    /// Processes an acknowledgment of new data without selective acknowledgments, if [`Sender::takes_acknowledgements`]
    /// is true. `echo` is the echoed timestamp and the time since we sent it.
    #[inline(always)]
    pub(crate) fn take_acknowledgement(
        &mut self,
        config: &Config,
        now: Instant,
        acknowledged: u64,
        echo: Option<(u32, Duration)>,
    ) {
        let numbering = SequenceSpace::default();
        self.process_quiet(
            config,
            &ReceivedAck { now, acknowledged, window_end: None, sacks: &[], numbering, echo, bare: true },
        );
    }

    /// Accounts for a partial acknowledgment of the first segment.
    #[cold]
    fn deliver_part(&mut self, config: &Config, arrival: ReceivedAck<'_>, mut batch: AckResult) -> AckResult {
        let Sender { board, driver, rack, rtt, .. } = self;
        let min_rtt = rtt.min().unwrap_or_default();
        board.acknowledge(arrival.acknowledged, |segment, sample| {
            take_delivery(config, &arrival, min_rtt, &mut batch, driver, rack, (segment, sample));
        });
        batch
    }

    /// Whether only the cumulative acknowledgment matters.
    #[inline(always)]
    fn is_quiet(&self) -> bool {
        self.phase == RecoveryPhase::Open
            && self.sack
            && self.duplicates == 0
            && self.tail_probe_end == 0
            && self.reorder_at.is_never()
            && !self.board.is_troubled()
    }

    #[cold]
    fn process(&mut self, config: &Config, arrival: &ReceivedAck<'_>, advanced: bool, duplicate_form: bool) {
        let now = arrival.now;
        let presumed_before = self.repair().presumed_bytes;
        let prior_in_flight_bytes = self.board.in_flight_bytes;
        let lost_before = self.driver.lost_bytes();
        let una_before = self.una;
        self.settle_presumed();

        let (mut batch, mut reports) = self.deliver(config, arrival);
        if advanced {
            self.advance(arrival.acknowledged);
        }
        if !self.sack {
            self.count_duplicates(&mut batch, presumed_before, advanced, duplicate_form);
        } else if !advanced && batch.delivered.bytes > 0 {
            self.duplicates = self.duplicates.saturating_add(1);
        }
        if self.duplicates > 0 && !config.limited_transmit {
            self.hold_back();
        }
        reports.widened = reports.duplicate.is_some() && self.rack.on_duplicate(self.next);
        let rtt = self.sample_rtt(config, arrival, &batch, advanced);
        if self.tail_probe_end != 0 {
            self.judge_tail_probe(now, arrival, &reports, duplicate_form);
        }
        if self.episode().is_some() {
            self.judge_episode(now, arrival, &batch, &reports);
        }
        self.find_losses(config, now);
        self.change_phase(config, now, &batch, lost_before, reports.widened);
        if batch.delivered.bytes > 0 {
            let newly_lost_bytes = self.driver.lost_bytes() - lost_before;
            let cumulative_bytes = self.una - una_before;
            self.tell_control(config, &batch, now, rtt, prior_in_flight_bytes, cumulative_bytes, newly_lost_bytes);
            if self.phase.reduces() && !self.driver.has_own_recovery() {
                self.reduce_window(batch.delivered.bytes, advanced && newly_lost_bytes == 0);
            }
            self.update_pacing(config);
        }
        self.rearm(now, advanced);
    }

    /// Advances the cumulative acknowledgment.
    #[inline(always)]
    fn advance(&mut self, acknowledged: u64) {
        self.una = acknowledged;
        self.timeouts_in_row = 0;
        self.duplicates = 0;
        self.rack.on_acknowledged(acknowledged);
        if let Some(bytes) = &mut self.bytes {
            bytes.remove_below(acknowledged);
        }
    }

    /// Returns the round-trip sample of an acknowledgment, if it has one.
    #[inline(always)]
    fn sample_rtt(
        &mut self,
        config: &Config,
        arrival: &ReceivedAck<'_>,
        batch: &AckResult,
        advanced: bool,
    ) -> Option<Duration> {
        let echoed = arrival.echo.filter(|_| advanced).map(|echo| echo.1);
        let own = (batch.rtt != Duration::MAX).then_some(batch.rtt);
        let rtt = if config.rtt_from_timestamps { echoed.or(own) } else { own.or(echoed) };
        if let Some(rtt) = rtt {
            self.rtt.on_sample(&config.rtt(), arrival.now, rtt);
        }
        rtt
    }

    /// Sets the timers after an acknowledgment.
    #[inline(always)]
    fn rearm(&mut self, now: Instant, advanced: bool) {
        if self.board.segments.is_empty() {
            if !self.probing_window {
                self.rto_at = Instant::NEVER;
            }
            self.probe_at = Instant::NEVER;
            self.reorder_at = Instant::NEVER;
        } else if advanced {
            // RFC 6298 rule 5.3.
            self.rto_at = now.saturating_add(self.rtt.rto());
            if self.tail_loss_probe {
                self.arm_tail_probe(now);
            }
        } else if self.board.sacked_segments() > 0 || !self.phase.is_calm() {
            self.probe_at = Instant::NEVER;
        }
    }

    /// Removes acknowledged segments from the scoreboard.
    fn deliver(&mut self, config: &Config, arrival: &ReceivedAck<'_>) -> (AckResult, RecoveryEvidence) {
        let una = self.una;
        let next = self.next;
        let mut batch = AckResult::new();
        let recovery_end = self.repair().recovery_end;
        let Sender { board, driver, rack, rtt, .. } = self;
        let min_rtt = rtt.min().unwrap_or_default();
        let (mut original, mut late) = (false, false);
        let mut delivered = |segment: &SegmentRecord, sample: RateSampleState| {
            original |= !segment.has(flag::RETRANSMITTED) && segment.end() <= recovery_end;
            late |= !segment.has(flag::RETRANSMITTED) && segment.has(flag::LOST);
            take_delivery(config, arrival, min_rtt, &mut batch, driver, rack, (segment, sample));
        };
        if arrival.acknowledged > una {
            board.acknowledge(arrival.acknowledged, &mut delivered);
        }
        let floor = una.max(arrival.acknowledged);
        let mut duplicate = None;
        for (index, block) in arrival.sacks.iter().enumerate() {
            let start = arrival.numbering.to_offset(block.start, floor);
            let end = arrival.numbering.to_offset(block.end, floor);
            if end <= start || end > next as i64 {
                continue;
            }
            if index == 0 && is_duplicate_report(arrival, start, end, floor) {
                duplicate = Some((start.max(0) as u64, end.max(0) as u64));
            }
            if end > floor as i64 {
                board.sack((start.max(floor as i64)) as u64, end as u64, &mut delivered);
            }
        }
        let advanced = arrival.acknowledged > una;
        (batch, RecoveryEvidence { duplicate, original, late, advanced, widened: false })
    }

    /// Counts duplicate acknowledgments. Without SACK each of them states that one segment has arrived, but not which
    /// (RFC 5681 section 3.2, RFC 6582). Such segments do not count as in flight until the cumulative acknowledgment
    /// accounts for them.
    #[cold]
    fn count_duplicates(&mut self, batch: &mut AckResult, presumed_before: u64, advanced: bool, duplicate_form: bool) {
        let mss_bytes = self.driver.control.mss_bytes;
        let mut presumed = presumed_before;
        if advanced {
            // One segment filled the gap; the others are those presumed to have arrived.
            let accounted = batch.delivered.bytes.saturating_sub(mss_bytes).min(presumed);
            presumed -= accounted;
            batch.delivered.bytes -= accounted;
        } else if duplicate_form {
            self.duplicates = self.duplicates.saturating_add(1);
            let arrived = mss_bytes.min(self.board.in_flight_bytes.saturating_sub(presumed));
            presumed += arrived;
            batch.delivered.bytes += arrived;
        }
        self.presume(presumed);
    }

    /// Evaluates a tail loss probe (RFC 8985 section 7.4): whether it repaired a loss.
    #[cold]
    fn judge_tail_probe(
        &mut self,
        now: Instant,
        arrival: &ReceivedAck<'_>,
        reports: &RecoveryEvidence,
        duplicate_form: bool,
    ) {
        if arrival.acknowledged < self.tail_probe_end {
            return;
        }
        // The report of a duplicate does not include the FIN of the probe.
        let fin = u64::from(self.tail_probe_end > self.written);
        let reported =
            reports.duplicate.is_some_and(|(_, end)| end == self.tail_probe_end || end + fin == self.tail_probe_end);
        if !self.tail_probe_was_retransmission || reported {
            // New data arrived, or both the original and the probe arrived.
            self.tail_probe_end = 0;
        } else if arrival.acknowledged > self.tail_probe_end {
            // The probe repaired a loss, and the control responds to that loss.
            self.tail_probe_end = 0;
            if self.phase == RecoveryPhase::Open {
                self.end_episode();
                self.answer_loss(now, self.board.in_flight_bytes, self.driver.control.mss_bytes);
                if !self.driver.has_own_recovery() {
                    self.driver.control.cwnd_bytes =
                        self.driver.control.ssthresh_bytes.min(self.driver.control.cwnd_bytes);
                }
                self.tell_recovery_exit(now, false);
            }
        } else if duplicate_form && arrival.sacks.is_empty() {
            self.tail_probe_end = 0;
        }
    }

    /// Marks lost segments by the configured rules, and sets the time of the next check.
    fn find_losses(&mut self, config: &Config, now: Instant) {
        let window = self.reordering_window();
        let presumed = self.repair().presumed_bytes;
        self.settle_presumed();
        let recovery_end = self.repair().recovery_end;
        let edge = recovery::lost_below(&self.board, self.driver.control.mss_bytes);
        let Sender { board, rack, driver, .. } = self;
        let mut lost = |(segment, sample): (SegmentRecord, RateSampleState)| note_lost(driver, now, &segment, sample);
        if config.loss_detection == LossDetection::Rack && self.sack {
            self.reorder_at = rack.detect(board, now, window, &mut lost);
            return;
        }
        if self.sack {
            recovery::mark_lost_below(board, edge, &mut lost);
        }
        // The third duplicate acknowledgment always marks the first segment as lost. Without SACK, so does each partial
        // acknowledgment in recovery (RFC 6582 section 3.2). After a recovery without SACK, duplicates of the segments
        // that it repaired must not begin another recovery.
        let third = self.phase.is_calm()
            && u32::from(self.duplicates) >= DUPLICATE_THRESHOLD
            && (self.sack || self.una > recovery_end || recovery_end == 0);
        let partial =
            !self.sack && self.phase == RecoveryPhase::FastRecovery && self.duplicates == 0 && self.una < recovery_end;
        if (third || partial)
            && board.segments.front().is_some_and(|head| head.in_flight() && !head.has(flag::RETRANSMITTED))
        {
            lost(board.mark_lost(0));
        }
        self.presume(presumed);
    }

    /// Sets the window in fast recovery, or after a mark.
    fn reduce_window(&mut self, delivered_bytes: u64, safe: bool) {
        let allowed = self.reduce_rate(delivered_bytes, safe);
        self.driver.control.cwnd_bytes = self.board.in_flight_bytes.saturating_add(allowed);
    }

    /// Returns how many bytes may be sent in fast recovery after a delivery of `delivered_bytes`.
    fn reduce_rate(&mut self, delivered_bytes: u64, safe: bool) -> u64 {
        let in_flight_bytes = self.board.in_flight_bytes;
        let prr = &mut self.board.loss_mut().prr;
        prr.on_ack(
            delivered_bytes,
            in_flight_bytes,
            self.driver.control.ssthresh_bytes,
            self.driver.control.mss_bytes,
            safe,
        )
    }

    /// Begins or ends recovery. `widened` states that this acknowledgment widened the reordering window.
    fn change_phase(&mut self, config: &Config, now: Instant, batch: &AckResult, lost_before: u64, widened: bool) {
        if self.phase == RecoveryPhase::Cwr {
            // Beyond the end of the phase, so that the segment with CWR has arrived.
            if self.una > self.repair().recovery_end {
                self.phase = RecoveryPhase::Open;
                self.driver.control.cwnd_bytes = self.driver.control.ssthresh_bytes;
            }
        } else if self.phase != RecoveryPhase::Open && self.una >= self.repair().recovery_end {
            let fast = self.phase == RecoveryPhase::FastRecovery;
            self.phase = RecoveryPhase::Open;
            if !widened {
                self.rack.on_recovery_end();
            }
            self.duplicates = 0;
            self.settle_presumed();
            if fast && !self.driver.has_own_recovery() {
                self.driver.control.cwnd_bytes = self.driver.control.ssthresh_bytes;
            }
            self.tell_recovery_exit(now, false);
        }
        if self.phase.is_calm() && self.board.lost_bytes() > 0 {
            self.enter_recovery(config, now, batch.delivered.bytes, self.driver.lost_bytes() - lost_before);
        }
    }

    fn enter_recovery(&mut self, config: &Config, now: Instant, delivered_bytes: u64, newly_lost_bytes: u64) {
        self.repair_mut().counts.recoveries += 1;
        let reducing = self.phase == RecoveryPhase::Cwr;
        self.phase = RecoveryPhase::FastRecovery;
        self.begin_episode(config);
        self.tail_probe_end = 0;
        self.probe_at = Instant::NEVER;
        self.begin_rescue();
        if reducing && !self.ecn.as_ref().is_some_and(|ecn| ecn.sender.counts) {
            // The reduction that a mark began continues to its own end, as in Linux.
            return;
        }
        self.repair_mut().recovery_end = self.next;
        // Outstanding bytes without those selectively acknowledged before this acknowledgment.
        let flight_bytes = self.board.in_flight_bytes + self.board.lost_bytes() + delivered_bytes;
        self.board.loss_mut().prr = Prr::begin(flight_bytes);
        self.answer_loss(now, self.board.in_flight_bytes + newly_lost_bytes, newly_lost_bytes);
    }

    /// Reduces the window after a loss, unless a mark in the same window has already reduced it (RFC 3168 section
    /// 6.1.2). A control that counts marks responds to losses nevertheless (RFC 8257 section 3.5).
    fn answer_loss(&mut self, now: Instant, in_flight_bytes: u64, lost_bytes: u64) {
        let answered = self.ecn.as_ref().is_some_and(|ecn| self.una < ecn.sender.answered_until && !ecn.sender.counts);
        if !answered {
            let congestion = CongestionEvent { now, in_flight_bytes, lost_bytes, ecn: false, persistent: false };
            self.driver.reduce(&congestion);
        }
        self.note_reduction();
    }

    /// Processes the ECN feedback of an acknowledgment, and reduces the window once per flight with marks.
    #[inline(never)]
    fn take_marks(&mut self, config: &Config, ack: &mut Ack) {
        let Some(ecn) = &mut self.ecn else { return };
        let marks = ecn.sender.marks(ack.acked_bytes, self.driver.control.mss_bytes);
        ack.ce_packets = marks.packets;
        ack.ce_bytes = marks.bytes;
        if self.driver.responds_to_marks() {
            return;
        }
        // The window does not grow with an acknowledgment that reports a mark (RFC 3168 section 6.1.2).
        ack.in_recovery |= marks.packets > 0 && !self.driver.has_own_recovery();
        if marks.packets > 0 && self.phase == RecoveryPhase::Open && self.una > ecn.sender.answered_until {
            let in_flight_bytes = self.board.in_flight_bytes + ack.acked_bytes;
            let congestion =
                CongestionEvent { now: ack.now, in_flight_bytes, lost_bytes: 0, ecn: true, persistent: false };
            let cwnd_bytes = self.driver.control.cwnd_bytes;
            self.driver.reduce(&congestion);
            // A window of one segment (RFC 3168 section 6.1.2) is below the threshold and is therefore set immediately.
            if config.proportional_ecn_reduction
                && !self.driver.has_own_recovery()
                && self.driver.control.cwnd_bytes >= self.driver.control.ssthresh_bytes
            {
                self.driver.control.cwnd_bytes = cwnd_bytes;
                self.phase = RecoveryPhase::Cwr;
                self.repair_mut().recovery_end = self.next;
                self.board.loss_mut().prr = Prr::begin(in_flight_bytes);
            }
            self.note_reduction();
            // The reduction after earlier losses can no longer be undone.
            self.end_episode();
        }
    }

    pub(crate) fn tell_recovery_exit(&mut self, now: Instant, undone: bool) {
        self.driver.end_recovery(now, self.board.in_flight_bytes, undone);
    }

    #[inline]
    #[allow(clippy::too_many_arguments, reason = "what one acknowledgement found out; it has two callers")]
    fn tell_control(
        &mut self,
        config: &Config,
        batch: &AckResult,
        now: Instant,
        rtt: Option<Duration>,
        prior_in_flight_bytes: u64,
        cumulative_bytes: u64,
        lost_bytes: u64,
    ) {
        let report = AckReport {
            now,
            delivered: batch.delivered,
            cumulative_bytes,
            lost_bytes,
            rtt,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min().unwrap_or_default(),
            ack_delay: Duration::ZERO,
            prior_in_flight_bytes,
            in_flight_bytes: self.board.in_flight_bytes,
            cwnd_limited: self.is_window_limited(),
            in_recovery: self.phase.reduces(),
            ce_packets: 0,
        };
        let mut ack = self.driver.summarize(&report);
        if self.ecn.is_some() {
            self.take_marks(config, &mut ack);
        }
        self.driver.on_ack(&ack);
    }

    /// Handles the expiry of the reordering window of some segments.
    pub(crate) fn on_reorder_timer(&mut self, config: &Config, now: Instant) {
        self.reorder_at = Instant::NEVER;
        let lost_before = self.driver.lost_bytes();
        self.find_losses(config, now);
        let newly_lost_bytes = self.driver.lost_bytes() - lost_before;
        if newly_lost_bytes == 0 {
            return;
        }
        let prior_cwnd_bytes = self.driver.control.cwnd_bytes;
        if self.phase.is_calm() {
            self.enter_recovery(config, now, 0, newly_lost_bytes);
            if !self.driver.has_own_recovery() {
                let allowed = self.reduce_rate(0, false);
                self.driver.control.cwnd_bytes = self.board.in_flight_bytes + allowed;
            }
        } else if self.phase == RecoveryPhase::FastRecovery && !self.driver.has_own_recovery() {
            // Nothing arrived, so at most one segment is sent.
            self.driver.control.cwnd_bytes =
                prior_cwnd_bytes.min(self.board.in_flight_bytes + self.driver.control.mss_bytes);
        }
        self.update_pacing(config);
    }
}

/// Whether an acknowledgment of a retransmitted segment is for an earlier transmission (RFC 8985 section 6.2, step 2):
/// its timestamp is older, or it arrived too early.
#[cold]
fn answers_an_earlier_transmission(
    config: &Config,
    segment: &SegmentRecord,
    echo: Option<(u32, Duration)>,
    elapsed: Duration,
    min_rtt: Duration,
) -> bool {
    match echo {
        Some((echoed, _)) if timestamp_before(echoed, timestamp(config, segment.sent_at)) => true,
        _ => elapsed < min_rtt,
    }
}

/// Whether the first SACK block reports a duplicate (RFC 2883 section 4): it is below the cumulative acknowledgment or
/// within the second block.
fn is_duplicate_report(arrival: &ReceivedAck<'_>, start: i64, end: i64, floor: u64) -> bool {
    end <= floor as i64
        || arrival.sacks.get(1).is_some_and(|second| {
            arrival.numbering.to_offset(second.start, floor) <= start
                && end <= arrival.numbering.to_offset(second.end, floor)
        })
}

#[cfg(test)]
mod tests {
    use crate::{Config, Connection, Transmit};
    use fullpipe_congestion::newreno::NewReno;
    use fullpipe_transport::{Payload, Stream as _};
    use fullpipe_units::Instant;
    use fullpipe_wire::TcpHeader;
    use fullpipe_wire::tcp::flags;
    use std::sync::Arc;

    #[test]
    fn acknowledged_bytes_are_forgotten() {
        let config = Config { timestamps: false, ..Config::linux() };
        let mut connection = Connection::client(Arc::new(config), Box::new(NewReno::new(None)), 0, Instant::ZERO);
        let mut transmit = Transmit::default();
        while connection.poll_transmit(Instant::ZERO, &mut transmit) {}
        let mut header =
            TcpHeader { acknowledgement: 1, flags: flags::SYN | flags::ACK, window: 9000, ..TcpHeader::default() };
        connection.handle_segment(Instant::ZERO, &crate::Segment::from_header(&header));
        connection.write(Payload::Bytes(vec![1; 500].into()));
        connection.write(Payload::Bytes(vec![2; 500].into()));
        while connection.poll_transmit(Instant::ZERO, &mut transmit) {}
        let held = |connection: &Connection| connection.sender.bytes.as_ref().unwrap().held_bytes();
        assert_eq!(held(&connection), 1000);
        header = TcpHeader { sequence: 1, acknowledgement: 1 + 536, flags: flags::ACK, window: 9000, ..header };
        connection.handle_segment(Instant::ZERO, &crate::Segment::from_header(&header));
        assert_eq!(held(&connection), 1000 - 536);
    }
}
