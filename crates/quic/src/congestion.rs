//! The path for congestion control: window, bytes in flight, round-trip time, pacing, ECN (RFC 9002 sections 5 and 7).
//!
//! **Model.** A controller of the crate `fullpipe-congestion` reacts to acknowledgments, losses and marks. A congestion
//! event begins a recovery period, unless the affected packet was sent before the current recovery period began
//! (section 7.3.2). The window is reduced immediately. The recovery period ends when a packet that was sent during the
//! period is acknowledged. Proportional rate reduction, which is optional in that section, is not implemented. Probes
//! are sent independently of the window. Bytes in flight include the header and the authentication tag of each packet.
//!
//! Whether the window limits sending depends on the result of the last attempt to send (section 7.8). If the window or
//! the pacer prevented transmission, the window counts as fully used. If there was no data to send, it does not.

use crate::Config;
use crate::rtt::RttEstimator;
use crate::space::{PacketRun, RateSampleState, SentPacket, SpaceId, flag};
use fullpipe_congestion::pacing::Pacer;
use fullpipe_congestion::{AckReport, CongestionEvent, Controller, DeliveredPackets, Driver, PacketState, PlainAck};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wire::quic::EcnCounts;

/// The state of ECN validation (RFC 9000 section 13.4.2 and appendix A.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EcnState {
    /// Packets are not marked.
    Off,
    /// The first packets are marked, and none is acknowledged yet.
    Testing,
    /// Validation succeeded: the path forwards the marks.
    Capable,
    /// Validation failed: packets are no longer marked.
    Failed,
}

/// The counters of ECN validation.
#[derive(Debug)]
struct EcnValidation {
    /// Packets sent as ECN-capable, in all packet number spaces.
    packets_sent: u64,
    /// Datagrams that may still be marked before one is acknowledged.
    tests: u64,
    /// The counts that the peer has reported, by packet number space.
    seen: [EcnCounts; 3],
}

/// The duration of a burst for controllers without their own quantum: that of a few packets, but at least this value
/// and at most [`LONGEST_BURST_MS`]. At high rates, the minimum limits the number of timers.
const BURST_MS: u64 = 2;
const LONGEST_BURST_MS: u64 = 10;

/// Marked datagrams that are sent before one is acknowledged (RFC 9000 appendix A.4).
const TESTING_DATAGRAMS: u64 = 10;

/// The results of processing an acknowledgment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckResult {
    pub(crate) delivered: DeliveredPackets,
    /// The number and the send time of the newly acknowledged packet that was sent last.
    pub(crate) newest: Option<(u64, Instant)>,
    pub(crate) prior_in_flight_bytes: u64,
    /// Newly acknowledged packets that were sent as ECN-capable.
    pub(crate) ect_packets: u64,
    pub(crate) lost_bytes: u64,
}

/// The congestion control state of one path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) driver: Driver,
    pub(crate) rtt: RttEstimator,
    pub(crate) in_flight_bytes: u64,
    /// Whether the window or the pacer prevented the last attempt to send.
    limited: bool,
    pacer: Option<Box<Pacer>>,
    /// When the pacer permits the next packet, if a packet waits for it.
    pub(crate) pace_at: Instant,
    pub(crate) ecn: EcnState,
    /// The counters of ECN validation, if packets are marked.
    ecn_counts: Option<Box<EcnValidation>>,
    /// The first packet of the data space that was sent on this path.
    pub(crate) first_number: u64,
    established: bool,
    /// Whether losses began the last recovery, and it has not been undone. The recovery may be over.
    pub(crate) can_undo: bool,
    /// Number of recoveries.
    pub(crate) recoveries: u64,
    /// Number of times that persistent congestion was established.
    pub(crate) persistent: u64,
    /// Number of recoveries that were undone because all packets declared lost had arrived.
    pub(crate) undone: u64,
}

impl Path {
    pub(crate) fn new(config: &Config, controller: Box<dyn Controller>) -> Path {
        let mtu = u64::from(config.initial_mtu_bytes);
        let window = mtu.saturating_mul(config.initial_window_packets.max(1));
        let window = if config.bounded_initial_window { window.min((2 * mtu).max(14_720)) } else { window };
        let mut driver = Driver::new(controller, mtu, window);
        if config.keep_short_rate_samples {
            driver.keep_short_rate_samples();
        }
        Path {
            rtt: RttEstimator::new(config.initial_rtt),
            in_flight_bytes: 0,
            limited: false,
            pacer: (config.pacing || driver.needs_pacing()).then(|| Box::new(Pacer::new(0))),
            pace_at: Instant::NEVER,
            ecn: if config.ecn { EcnState::Testing } else { EcnState::Off },
            ecn_counts: config.ecn.then(|| {
                Box::new(EcnValidation { packets_sent: 0, tests: TESTING_DATAGRAMS, seen: Default::default() })
            }),
            first_number: 0,
            established: false,
            recoveries: 0,
            persistent: 0,
            undone: 0,
            can_undo: false,
            driver,
        }
    }

    /// The window in bytes, at least two packets (RFC 9002 section 7.2).
    #[inline(always)]
    pub(crate) fn window_bytes(&self) -> u64 {
        self.driver.control.cwnd_bytes.max(2 * self.driver.control.mss_bytes)
    }

    /// Whether the window permits a packet: it must have space for a full packet.
    #[inline(always)]
    pub(crate) fn window_allows(&self) -> bool {
        self.in_flight_bytes + self.driver.control.mss_bytes <= self.window_bytes()
    }

    /// Whether the window and the pacer permit a packet. If not, records that they limit sending.
    #[inline]
    pub(crate) fn may_send(&mut self, now: Instant) -> bool {
        if !self.window_allows() {
            self.limited = true;
            return false;
        }
        if let Some(pacer) = &self.pacer
            && !pacer.may_send(now)
        {
            self.limited = true;
            self.pace_at = pacer.release_at();
            return false;
        }
        true
    }

    /// Records that there is no (more) data to send, although the window and the pacer permit it.
    #[inline]
    pub(crate) fn stop_for_data(&mut self) {
        self.limited = false;
        if self.window_allows() {
            self.driver.mark_app_limited(self.in_flight_bytes);
        }
    }

    pub(crate) fn in_recovery(&self) -> bool {
        self.driver.in_recovery()
    }

    pub(crate) fn pacing_bps(&self) -> u64 {
        self.pacer.as_ref().map_or(0, |pacer| pacer.rate_bps())
    }

    /// Handles the sending of a packet that counts as in flight. Returns the state to store for it, and its codepoint.
    #[inline]
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        bytes: u64,
        number: u64,
        config: &Config,
    ) -> (SentPacket, Option<RateSampleState>) {
        if self.driver.restart_if_idle(now, self.in_flight_bytes, self.rtt.has_sample()) {
            self.update_pacing(config);
        }
        let state = self.driver.on_sent(now, bytes, self.in_flight_bytes);
        self.in_flight_bytes += bytes;
        if let Some(pacer) = &mut self.pacer {
            pacer.on_sent(now, bytes);
        }
        if self.driver.needs_on_sent() {
            self.update_pacing(config);
        }
        let ect = if self.codepoint() == EcnCodepoint::NotEct { 0 } else { flag::ECT };
        if ect != 0
            && let Some(counts) = &mut self.ecn_counts
        {
            counts.packets_sent += 1;
        }
        (SentPacket::new(number, &state, ect), self.driver.takes_rate_samples().then(|| RateSampleState::new(&state)))
    }

    /// The codepoint of the next packet.
    #[inline]
    pub(crate) fn codepoint(&self) -> EcnCodepoint {
        if self.ecn == EcnState::Off { EcnCodepoint::NotEct } else { self.marked_codepoint() }
    }

    #[inline(never)]
    fn marked_codepoint(&self) -> EcnCodepoint {
        let marked = match self.ecn {
            EcnState::Off | EcnState::Failed => false,
            EcnState::Testing => self.ecn_counts.as_ref().is_some_and(|counts| counts.tests > 0),
            EcnState::Capable => true,
        };
        match self.driver.control.codepoint {
            _ if !marked => EcnCodepoint::NotEct,
            EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
            _ => EcnCodepoint::Ect0,
        }
    }

    /// Counts a marked packet that is not ack-eliciting, because the peer counts it too.
    #[cold]
    pub(crate) fn on_marked_without_record(&mut self) {
        if let Some(counts) = &mut self.ecn_counts {
            counts.packets_sent += 1;
        }
    }

    /// Counts a marked datagram that is sent.
    #[cold]
    pub(crate) fn on_marked_datagram(&mut self) {
        if let Some(counts) = &mut self.ecn_counts {
            counts.tests = counts.tests.saturating_sub(1);
        }
    }

    pub(crate) fn batch(&self) -> AckResult {
        AckResult {
            delivered: DeliveredPackets::default(),
            newest: None,
            prior_in_flight_bytes: self.in_flight_bytes,
            ect_packets: 0,
            lost_bytes: 0,
        }
    }

    /// Handles a newly acknowledged packet.
    #[inline]
    pub(crate) fn on_acknowledged(
        &mut self,
        now: Instant,
        sent: &SentPacket,
        sample: Option<&RateSampleState>,
        batch: &mut AckResult,
    ) {
        let bytes = u64::from(sent.bytes);
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
        if batch.newest.is_none_or(|(number, _)| number < sent.number) {
            batch.newest = Some((sent.number, sent.sent_at));
        }
        batch.ect_packets += u64::from(sent.has(flag::ECT));
        let state = sent.state(sample, self.driver.lost_bytes());
        self.driver.on_delivered(now, &state, &mut batch.delivered);
    }

    /// Handles a lost packet.
    pub(crate) fn on_lost(
        &mut self,
        now: Instant,
        sent: &SentPacket,
        sample: Option<&RateSampleState>,
        batch: &mut AckResult,
    ) {
        let bytes = u64::from(sent.bytes);
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
        if sent.has(flag::MTU_PROBE) {
            return;
        }
        batch.lost_bytes += bytes;
        self.driver.on_lost(now, bytes, |lost_bytes| sent.state(sample, lost_bytes));
    }

    /// Subtracts bytes that were discarded without being lost from the bytes in flight.
    pub(crate) fn on_discarded(&mut self, bytes: u64) {
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
    }

    /// Handles a congestion event: losses, or a mark. The last of the affected packets was sent at `sent_at`. Returns
    /// whether the event began a recovery.
    pub(crate) fn on_congestion(
        &mut self,
        now: Instant,
        sent_at: Instant,
        batch: &AckResult,
        ecn: bool,
        persistent: bool,
    ) -> bool {
        let in_flight_bytes = self.in_flight_bytes + batch.lost_bytes;
        let congestion = CongestionEvent { now, in_flight_bytes, lost_bytes: batch.lost_bytes, ecn, persistent };
        let begins = self.driver.on_congestion(&congestion, sent_at);
        if begins {
            self.can_undo = !ecn;
        }
        self.recoveries += u64::from(begins);
        self.persistent += u64::from(begins && persistent);
        begins
    }

    /// Ends the recovery; `undone` if all packets declared lost have arrived.
    pub(crate) fn leave_recovery(&mut self, now: Instant, undone: bool) {
        self.driver.end_recovery(now, self.in_flight_bytes, undone);
        self.undone += u64::from(undone);
        self.can_undo &= !undone;
    }

    /// Adds the round-trip time of the largest newly acknowledged packet.
    pub(crate) fn on_rtt(&mut self, now: Instant, latest: Duration, ack_delay: Duration) {
        self.rtt.on_sample(now, latest, ack_delay);
        if !self.established {
            self.established = true;
            self.driver.on_established(now, Some(latest));
        }
    }

    /// Processes the ECN counts of a packet number space (RFC 9000 section 13.4.2.1) and returns the number of newly
    /// marked packets. Must be called only for ACK frames that increase the largest acknowledged number, because others
    /// may be outdated.
    #[cold]
    pub(crate) fn on_ecn(&mut self, space: SpaceId, counts: Option<EcnCounts>, batch: &AckResult) -> u64 {
        if matches!(self.ecn, EcnState::Off | EcnState::Failed) || batch.ect_packets == 0 && counts.is_none() {
            return 0;
        }
        let (Some(counts), Some(validation)) = (counts, &mut self.ecn_counts) else {
            self.ecn = EcnState::Failed;
            return 0;
        };
        let seen = validation.seen[space as usize];
        let ours = if self.driver.control.codepoint == EcnCodepoint::Ect1 {
            [(counts.ect1, seen.ect1), (counts.ect0, seen.ect0)]
        } else {
            [(counts.ect0, seen.ect0), (counts.ect1, seen.ect1)]
        };
        let marks = counts.ce.saturating_sub(seen.ce);
        let grown = ours[0].0.saturating_sub(ours[0].1).saturating_add(marks);
        let fallen = counts.ce < seen.ce || ours.iter().any(|(now, before)| now < before);
        let more_than_sent = counts.ce.saturating_add(ours[0].0) > validation.packets_sent;
        if fallen || grown < batch.ect_packets || ours[1].0 > 0 || more_than_sent {
            self.ecn = EcnState::Failed;
            return 0;
        }
        validation.seen[space as usize] = counts;
        if batch.ect_packets > 0 {
            self.ecn = EcnState::Capable;
        }
        marks
    }

    /// Passes the results of an acknowledgment to the controller.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        batch: &AckResult,
        rtt: Option<Duration>,
        ack_delay: Duration,
        ce_packets: u64,
    ) {
        if let Some((_, sent_at)) = batch.newest {
            self.driver.end_recovery_on_ack(now, sent_at, self.in_flight_bytes);
        }
        let report = AckReport {
            now,
            delivered: batch.delivered,
            cumulative_bytes: batch.delivered.bytes,
            lost_bytes: batch.lost_bytes,
            rtt,
            smoothed_rtt: if self.rtt.has_sample() { self.rtt.smoothed() } else { Duration::ZERO },
            min_rtt: self.rtt.min(),
            ack_delay,
            prior_in_flight_bytes: batch.prior_in_flight_bytes,
            in_flight_bytes: self.in_flight_bytes,
            cwnd_limited: self.limited,
            in_recovery: self.driver.in_recovery(),
            ce_packets,
        };
        let ack = self.driver.summarize(&report);
        self.driver.on_ack(&ack);
    }

    /// Has the same effect for a [`PacketRun`] as acknowledging its packets one by one, [`Path::on_rtt`] and
    /// [`Path::finish`]. There must be no recovery, no losses and no marks.
    #[inline]
    pub(crate) fn on_run_acknowledged(&mut self, now: Instant, run: &PacketRun, ack_delay: Duration) {
        let mut batch = self.batch();
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(run.bytes);
        let state = PacketState { bytes: run.bytes, delivered_bytes: run.delivered_bytes, ..PacketState::default() };
        self.driver.on_delivered(now, &state, &mut batch.delivered);
        let latest = now.saturating_since(run.sent_at);
        self.on_rtt(now, latest, ack_delay);
        if self.driver.takes_plain_acks() {
            let (acked_bytes, smoothed_rtt) = (run.bytes, self.rtt.smoothed());
            let ack = PlainAck { now, acked_bytes, smoothed_rtt, cwnd_limited: self.limited };
            self.driver.on_plain_ack(&ack, &batch.delivered);
        } else {
            self.finish(now, &batch, Some(latest), ack_delay, 0);
        }
    }

    /// Updates the rate and the burst size of the pacer from the window and the controller.
    #[inline]
    pub(crate) fn update_pacing(&mut self, config: &Config) {
        let Some(pacer) = &mut self.pacer else { return };
        if !self.rtt.has_sample() && !config.pace_first_flight {
            return;
        }
        let rate = match self.driver.control.pacing_bps {
            0 => {
                let window = self.driver.control.cwnd_bytes.max(2 * self.driver.control.mss_bytes);
                // `as` saturates.
                ((window as f64 * 8e9 * config.pacing_gain / self.rtt.smoothed().as_nanos().max(1) as f64) as u64)
                    .max(1)
            }
            rate => rate,
        };
        let quantum = match self.driver.control.send_quantum_bytes {
            0 => {
                let per_millisecond = rate / 8000;
                let burst = config.pacing_burst_packets.saturating_mul(self.driver.control.mss_bytes);
                burst.max(BURST_MS * per_millisecond).min(LONGEST_BURST_MS * per_millisecond)
            }
            quantum => quantum,
        };
        pacer.set_quantum_bytes(quantum);
        pacer.set_rate_bps(rate);
    }

    /// Changes the datagram size.
    pub(crate) fn set_mtu(&mut self, now: Instant, bytes: u16, config: &Config) {
        self.driver.set_mss(now, u64::from(bytes));
        self.update_pacing(config);
    }

    /// Applies a parameter that the program has changed in the controller. If the controller now has a pacing rate, the
    /// path paces; otherwise the setting of the connection applies. Before the handshake is complete, this function has
    /// no effect.
    pub(crate) fn apply_external_change(&mut self, config: &Config, now: Instant) {
        if !self.established {
            return;
        }
        self.driver.on_external_change(now);
        let paced = config.pacing || self.driver.control.pacing_bps > 0;
        if paced != self.pacer.is_some() {
            self.pacer = paced.then(|| Box::new(Pacer::new(0)));
        }
        self.pace_at = Instant::NEVER;
        self.update_pacing(config);
    }

    /// Resets the path after a migration of the peer. The round-trip time of the new path is unknown, and the window is
    /// the initial one (RFC 9000 section 9.4). Packets sent before `next_number` do not affect the new state.
    pub(crate) fn begin_anew(&mut self, next_number: u64, config: &Config) {
        self.first_number = next_number;
        self.in_flight_bytes = 0;
        self.can_undo = false;
        self.driver.reset_for_new_path(self.driver.control.mss_bytes * config.initial_window_packets.max(2));
        self.rtt = RttEstimator::new(config.initial_rtt);
        self.established = false;
        if let Some(pacer) = &mut self.pacer {
            **pacer = Pacer::new(0);
        }
        if self.ecn != EcnState::Off {
            self.ecn = EcnState::Testing;
            if let Some(counts) = &mut self.ecn_counts {
                counts.tests = TESTING_DATAGRAMS;
            }
        }
    }
}
