//! Adapter that runs Fullpipe's congestion controls in the real QUIC stack, in place of the stack's own.
//!
//! **Input from the stack**, and its use:
//!
//! * Each packet that was sent, acknowledged or lost, with its number. From these packets the adapter derives the state
//!   passed to the controls ([`PacketState`]), delivery-rate samples, rounds and the round-trip time of the newest
//!   packet of a batch, as the TCP model does.
//! * The end of an acknowledgment's packets, *before* the losses that the same acknowledgment reveals. Fullpipe's
//!   controls process losses first, so the batch waits until the stack reads the window or reports a new event.
//! * A congestion event with the sending time of its newest packet. The event begins a recovery period if that packet
//!   was sent after the current recovery period began (RFC 9002 section 7.3.2). The window is reduced to the threshold
//!   at once, as that section allows. The recovery ends with the first acknowledgment of a packet sent after its
//!   beginning.
//! * Persistent congestion, and spurious congestion events.
//! * Whether the application had no data to send. Otherwise the window or the pacer was the limit; RFC 9002 section 7.8
//!   counts both as using the window.
//!
//! **Missing input**, for which [`unsupported_reason`] rejects controls that need it: the number of marked packets (the
//! stack reports only that there are new marks), and one-way delays. The stack always sends ECT(0) and ends ECN if the peer reports
//! ECT(1), so a control cannot send L4S packets (RFC 9331). It reports neither probe timeouts, which reduce no window in
//! QUIC, nor the delay that the peer added to an acknowledgment. Round-trip
//! samples therefore contain this delay (at most 25 ms, for an acknowledgment of a single packet).
//!
//! **Output**: The stack sends while fewer bytes than the window are in flight, with a minimum window of two packets
//! (RFC 9002 section 7.2). It applies a pacing rate with its own bursts (2 ms of that rate, 10 to 256 packets, at most
//! 10 ms of that rate). The send quantum limits only the number of datagrams per call. Without a rate the stack paces
//! at 1.25 windows per smoothed round-trip time. It has no unpaced mode.
//!
//! Bytes are those of complete QUIC packets. The segment size passed to a control is the largest UDP payload of the
//! path.

use crate::RttStatistics;
use crate::clock::{duration_from_std, from_std};
use fullpipe_congestion::{
    AckReport, CongestionEvent, ControlRequirements, Controller, DeliveredPackets, Driver, PacketState,
};
use fullpipe_units::{Duration, Instant};
use noq_proto::RttEstimator;
use noq_proto::congestion::{self, ControllerMetrics};
use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Reason why the stack cannot drive a control, as a sentence; `None` if it can.
pub fn unsupported_reason(control: &dyn Controller) -> Option<String> {
    let ControlRequirements { ecn_counts, one_way_delay, .. } = control.requirements();
    let missing = if ecn_counts {
        "counts of congestion marks, and the QUIC stack reports only that there are new ones"
    } else if one_way_delay {
        "one-way delays, which the QUIC stack does not measure"
    } else {
        return None;
    };
    Some(format!("congestion control `{}` needs {missing}", control.name()))
}

/// Callback for each packet declared lost. The arguments are the packet number, whose packet number space is unknown,
/// and the size in bytes.
pub type LossListener = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Current state of a control.
#[derive(Clone, Debug, Default)]
pub struct ControlState {
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes; `u64::MAX` until the first reduction.
    pub ssthresh_bytes: u64,
    /// Bytes in flight, as the control counts them.
    pub in_flight_bytes: u64,
    /// Pacing rate of the control in bit/s; 0 if it does not pace.
    pub pacing_bps: u64,
    /// Latest delivery-rate sample in bit/s; 0 before the first.
    pub delivery_rate_bps: u64,
    /// Smallest round-trip sample; zero before the first.
    pub min_rtt: Duration,
    /// Latest round-trip sample; zero before the first.
    pub latest_rtt: Duration,
    /// Whether the control is in recovery.
    pub in_recovery: bool,
    /// Number of consecutive probe timeouts; `None` if the transport does not report it.
    pub pto_count: Option<u32>,
    /// Values specific to the control, by name.
    pub named: Vec<(&'static str, f64)>,
}

/// An adapter that implements the stack's controller interface with a congestion control of Fullpipe. The stack clones
/// the adapter when the peer's port changes. A clone drives the same control, because the path is the same.
#[derive(Clone)]
pub struct Adapter(Arc<Mutex<Path>>);

/// A reference that does not keep the control alive.
#[derive(Default)]
pub(crate) struct WeakAdapter(Weak<Mutex<Path>>);

impl WeakAdapter {
    pub(crate) fn upgrade(&self) -> Option<Adapter> {
        self.0.upgrade().map(Adapter)
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Adapter").field(&self.path().driver.controller()).finish()
    }
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    state: PacketState,
}

/// The packets of one acknowledgment that the stack has reported so far.
#[derive(Clone, Copy, Debug)]
struct Batch {
    now: Instant,
    delivered: DeliveredPackets,
    lost_bytes: u64,
    /// Sending time and number of the acknowledged packet that was sent last.
    newest: (Instant, u64),
    prior_in_flight_bytes: u64,
    /// The stack's smoothed and minimum round-trip times before this acknowledgment.
    smoothed_rtt: Duration,
    min_rtt: Duration,
    app_limited: bool,
    rtt: Option<Duration>,
    /// Whether the stack has reported all packets of the acknowledgment.
    complete: bool,
}

/// Values of the control in the stack's units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    window_bytes: u64,
    ssthresh_bytes: Option<u64>,
    pacing_bytes_per_second: Option<u64>,
    send_quantum_bytes: Option<u64>,
    delivery_rate_bps: Option<u64>,
}

struct Path {
    driver: Driver,
    /// Cached values of the control; `None` after a change. The stack reads these values about six
    /// times per datagram (`masque-1-datagram`).
    answer: Option<Answer>,
    round_trips: RttStatistics,
    initial_window_bytes: u64,
    /// Packets in flight, in the order of sending.
    sent: VecDeque<Sent>,
    in_flight_bytes: u64,
    batch: Option<Batch>,
    smoothed_rtt: Duration,
    min_rtt: Option<Duration>,
    /// Time of the latest event.
    now: Instant,
    /// Latest round-trip sample; zero before the first.
    latest_rtt: Duration,
    losses: Option<LossListener>,
}

impl Adapter {
    pub(crate) fn new(
        controller: Box<dyn Controller>,
        mtu_bytes: u64,
        initial_window: u64,
        round_trips: RttStatistics,
        losses: Option<LossListener>,
    ) -> Adapter {
        let initial_window_bytes = initial_window.saturating_mul(mtu_bytes);
        Adapter(Arc::new(Mutex::new(Path {
            driver: Driver::new(controller, mtu_bytes, initial_window_bytes),
            answer: None,
            round_trips,
            initial_window_bytes,
            sent: VecDeque::new(),
            in_flight_bytes: 0,
            batch: None,
            smoothed_rtt: Duration::ZERO,
            min_rtt: None,
            now: Instant::ZERO,
            latest_rtt: Duration::ZERO,
            losses,
        })))
    }

    pub(crate) fn downgrade(&self) -> WeakAdapter {
        WeakAdapter(Arc::downgrade(&self.0))
    }

    /// Locks the path. Only one thread at a time drives a connection, so the lock is uncontended.
    fn path(&self) -> MutexGuard<'_, Path> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the path for an event that changes the control's values.
    fn change(&self) -> MutexGuard<'_, Path> {
        let mut path = self.path();
        path.answer = None;
        path
    }

    /// Name of the control.
    pub fn name(&self) -> &'static str {
        self.path().driver.controller().name()
    }

    /// Current state of the control.
    pub fn inspect(&self) -> ControlState {
        let mut path = self.path();
        path.finish_batch();
        let mut named = Vec::new();
        path.driver.controller().inspect(&mut named);
        ControlState {
            cwnd_bytes: path.driver.control.cwnd_bytes,
            ssthresh_bytes: path.driver.control.ssthresh_bytes,
            in_flight_bytes: path.in_flight_bytes,
            pacing_bps: path.driver.control.pacing_bps,
            delivery_rate_bps: path.driver.delivery_rate_bps(),
            min_rtt: path.min_rtt.unwrap_or_default(),
            latest_rtt: path.latest_rtt,
            in_recovery: path.driver.in_recovery(),
            pto_count: None,
            named,
        }
    }
}

impl Path {
    /// Removes a packet from those in flight. The packet number spaces of the handshake use the same numbers, so the
    /// size must match as well.
    fn take(&mut self, number: u64, bytes: u64) -> Option<PacketState> {
        let place = self.sent.iter().position(|sent| sent.number == number && sent.state.bytes == bytes)?;
        self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
        let sent = if place == 0 { self.sent.pop_front() } else { self.sent.remove(place) };
        sent.map(|sent| sent.state)
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u64, number: u64) {
        self.finish_batch();
        let restarts = self.driver.restart_if_idle(now, self.in_flight_bytes, self.min_rtt.is_some());
        if restarts || self.driver.needs_on_sent() {
            self.answer = None;
        }
        let state = self.driver.on_sent(now, bytes, self.in_flight_bytes);
        self.in_flight_bytes = self.in_flight_bytes.saturating_add(bytes);
        self.sent.push_back(Sent { number, state });
    }

    /// `estimates` are the stack's smoothed and minimum round-trip times.
    fn on_ack(&mut self, now: Instant, sent_at: Instant, bytes: u64, number: u64, estimates: [Duration; 2]) {
        if self.batch.is_some_and(|batch| batch.complete) {
            self.finish_batch();
        }
        let prior_in_flight_bytes = self.in_flight_bytes;
        let state = self.take(number, bytes);
        let batch = self.batch.get_or_insert(Batch {
            now,
            delivered: DeliveredPackets::default(),
            lost_bytes: 0,
            newest: (sent_at, number),
            prior_in_flight_bytes,
            smoothed_rtt: estimates[0],
            min_rtt: estimates[1],
            app_limited: false,
            rtt: None,
            complete: false,
        });
        batch.newest = batch.newest.max((sent_at, number));
        match state {
            Some(state) => self.driver.on_delivered(now, &state, &mut batch.delivered),
            // The packet's record was removed earlier: its bytes count, but there is no rate sample.
            None => batch.delivered.bytes = batch.delivered.bytes.saturating_add(bytes),
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight_bytes: u64, app_limited: bool, largest: Option<u64>) {
        // The stack's count is authoritative: it excludes packets whose keys were discarded and lost path MTU probes,
        // for which there is no event.
        self.in_flight_bytes = in_flight_bytes;
        if in_flight_bytes == 0 {
            self.sent.clear();
        }
        if app_limited {
            self.driver.mark_app_limited(in_flight_bytes);
        }
        // An acknowledgment without known packets does not change an earlier batch.
        if let Some(batch) = self.batch.as_mut().filter(|batch| !batch.complete) {
            batch.complete = true;
            batch.app_limited = app_limited;
            // RFC 9002 section 5.1: only the largest packet gives a sample, and only if it is newly acknowledged.
            batch.rtt = (Some(batch.newest.1) == largest).then(|| now.saturating_since(batch.newest.0));
        }
    }

    fn on_packet_lost(&mut self, now: Instant, bytes: u64, number: u64) {
        if let Some(losses) = &self.losses {
            losses(number, bytes);
        }
        let Some(state) = self.take(number, bytes) else { return };
        if let Some(batch) = &mut self.batch {
            batch.lost_bytes = batch.lost_bytes.saturating_add(bytes);
        }
        self.driver.on_lost(now, bytes, |_| state);
    }

    fn on_congestion(&mut self, now: Instant, sent_at: Instant, lost_bytes: u64, ecn: bool, persistent: bool) {
        // The lost packets were already removed from those in flight.
        let in_flight_bytes = self.in_flight_bytes.saturating_add(lost_bytes);
        self.driver.on_congestion(&CongestionEvent { now, in_flight_bytes, lost_bytes, ecn, persistent }, sent_at);
    }

    fn leave_recovery(&mut self, now: Instant, undone: bool) {
        self.driver.end_recovery(now, self.in_flight_bytes, undone);
    }

    /// Passes a complete batch to the control.
    fn finish_batch(&mut self) {
        let Some(batch) = self.batch.take_if(|batch| batch.complete) else { return };
        self.answer = None;
        self.note_rtt(&batch);
        self.driver.end_recovery_on_ack(batch.now, batch.newest.0, self.in_flight_bytes);
        let report = AckReport {
            now: batch.now,
            delivered: batch.delivered,
            cumulative_bytes: batch.delivered.bytes,
            lost_bytes: batch.lost_bytes,
            rtt: batch.rtt,
            smoothed_rtt: self.smoothed_rtt,
            min_rtt: self.min_rtt.unwrap_or_default(),
            ack_delay: Duration::ZERO,
            prior_in_flight_bytes: batch.prior_in_flight_bytes,
            in_flight_bytes: self.in_flight_bytes,
            cwnd_limited: !batch.app_limited,
            in_recovery: self.driver.in_recovery(),
            ce_packets: 0,
        };
        let ack = self.driver.summarize(&report);
        self.driver.on_ack(&ack);
    }

    /// Records a round-trip sample. The stack's estimates are from before this batch; for the first batch there are
    /// none.
    fn note_rtt(&mut self, batch: &Batch) {
        let Some(sample) = batch.rtt else { return };
        self.latest_rtt = sample;
        match self.min_rtt {
            None => {
                (self.min_rtt, self.smoothed_rtt) = (Some(sample), sample);
                self.driver.on_established(batch.now, Some(sample));
            }
            Some(least) => {
                self.min_rtt = Some(least.min(sample).min(batch.min_rtt));
                self.smoothed_rtt = batch.smoothed_rtt;
            }
        }
    }

    /// The control's values after the acknowledgments so far.
    fn answer(&mut self) -> Answer {
        self.finish_batch();
        match self.answer {
            Some(answer) => answer,
            None => *self.answer.insert(self.fresh_answer()),
        }
    }

    fn fresh_answer(&self) -> Answer {
        let control = &self.driver.control;
        let positive = |value: u64| (value > 0).then_some(value);
        Answer {
            window_bytes: control.cwnd_bytes.max(control.mss_bytes.saturating_mul(2)),
            ssthresh_bytes: Some(control.ssthresh_bytes).filter(|bytes| *bytes < u64::MAX),
            pacing_bytes_per_second: positive(control.pacing_bps.div_ceil(8)),
            send_quantum_bytes: positive(control.send_quantum_bytes),
            delivery_rate_bps: positive(self.driver.delivery_rate_bps()),
        }
    }
}

impl congestion::Controller for Adapter {
    fn on_packet_sent(&mut self, now: std::time::Instant, bytes: u16, pn: u64) {
        let mut path = self.path();
        path.now = from_std(now);
        let now = path.now;
        path.on_packet_sent(now, u64::from(bytes), pn);
    }

    fn on_ack(
        &mut self,
        now: std::time::Instant,
        sent: std::time::Instant,
        bytes: u64,
        pn: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let mut path = self.path();
        path.now = from_std(now);
        let now = path.now;
        let smoothed = duration_from_std(rtt.get());
        path.round_trips.add(smoothed);
        path.on_ack(now, from_std(sent), bytes, pn, [smoothed, duration_from_std(rtt.min())]);
    }

    fn on_end_acks(&mut self, now: std::time::Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.path().on_end_acks(from_std(now), in_flight, app_limited, largest);
    }

    fn on_congestion_event(
        &mut self,
        now: std::time::Instant,
        sent: std::time::Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        self.change().on_congestion(from_std(now), from_std(sent), lost_bytes, is_ecn, is_persistent_congestion);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: std::time::Instant) {
        self.change().on_packet_lost(from_std(now), u64::from(lost_bytes), pn);
    }

    /// The stack does not report the time of this event, which is that of the latest event or shortly afterwards.
    fn on_spurious_congestion_event(&mut self) {
        let mut path = self.change();
        path.finish_batch();
        let now = path.now;
        path.leave_recovery(now, true);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let mut path = self.change();
        let now = path.now;
        path.driver.set_mss(now, u64::from(new_mtu));
    }

    fn window(&self) -> u64 {
        self.path().answer().window_bytes
    }

    fn metrics(&self) -> ControllerMetrics {
        let answer = self.path().answer();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = answer.window_bytes;
        metrics.ssthresh = answer.ssthresh_bytes;
        metrics.pacing_rate = answer.pacing_bytes_per_second;
        metrics.send_quantum = answer.send_quantum_bytes;
        metrics.bandwidth_estimate = answer.delivery_rate_bps;
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.path().initial_window_bytes
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_congestion::Timeout;
    use fullpipe_congestion::catalogue::{ControlOptions, DECLARATIONS, create};
    use fullpipe_congestion::{Ack, RecoveryExit, WindowState};
    use noq_proto::congestion::Controller as _;
    use proptest::prelude::*;

    const MTU: u64 = 1000;
    const RTT: Duration = Duration::from_millis(20);

    fn at(milliseconds: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(milliseconds)
    }

    /// Records its input; halves the window on demand.
    #[derive(Debug, Default)]
    struct Scribe {
        told: Arc<Mutex<Vec<String>>>,
        acks: Arc<Mutex<Vec<Ack>>>,
        needs: ControlRequirements,
    }

    impl Scribe {
        fn note(&self, line: String) {
            self.told.lock().unwrap().push(line);
        }
    }

    impl Controller for Scribe {
        fn name(&self) -> &'static str {
            "scribe"
        }

        fn requirements(&self) -> ControlRequirements {
            self.needs
        }

        fn on_established(&mut self, _control: &mut WindowState, _now: Instant, rtt: Option<Duration>) {
            self.note(format!("established {}", rtt.map_or(0, |rtt| rtt.as_nanos() / 1_000_000)));
        }

        fn on_sent(&mut self, _control: &mut WindowState, packet: &PacketState) {
            self.note(format!("sent {} in flight {}", packet.bytes, packet.in_flight_bytes));
        }

        fn on_ack(&mut self, _control: &mut WindowState, ack: &Ack) {
            self.acks.lock().unwrap().push(ack.clone());
            let rtt = ack.rtt.map_or(0, |rtt| rtt.as_nanos() / 1_000_000);
            let Ack { acked_bytes, lost_bytes, in_flight_bytes, round_count, in_recovery, cwnd_limited, .. } = ack;
            self.note(format!(
                "ack {acked_bytes} lost {lost_bytes} flight {} to {in_flight_bytes} rtt {rtt} round {round_count} recovery \
                 {in_recovery} limited {cwnd_limited}",
                ack.prior_in_flight_bytes
            ));
        }

        fn on_idle_restart(&mut self, _control: &mut WindowState, _now: Instant) {
            self.note("idle restart".into());
        }

        fn on_path_change(&mut self, control: &mut WindowState, _now: Instant) {
            self.note(format!("segments of {}", control.mss_bytes));
        }

        fn on_packet_lost(&mut self, _control: &mut WindowState, _now: Instant, packet: &PacketState) {
            self.note(format!("lost {}", packet.sent_at.as_nanos() / 1_000_000));
        }

        fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
            control.ssthresh_bytes = control.cwnd_bytes / 2;
            let CongestionEvent { in_flight_bytes, lost_bytes, ecn, persistent, .. } = congestion;
            self.note(format!(
                "congestion flight {in_flight_bytes} lost {lost_bytes} ecn {ecn} persistent {persistent}"
            ));
        }

        fn on_recovery_exit(&mut self, _control: &mut WindowState, exit: &RecoveryExit) {
            self.note(format!("exit undone {}", exit.undone));
        }

        fn on_timeout(&mut self, _control: &mut WindowState, _timeout: &Timeout) {
            self.note("timeout".into());
        }
    }

    struct Play {
        adapter: Adapter,
        told: Arc<Mutex<Vec<String>>>,
        acks: Arc<Mutex<Vec<Ack>>>,
    }

    impl Play {
        fn new(needs: ControlRequirements) -> Play {
            let (told, acks) = (Arc::default(), Arc::default());
            let scribe = Scribe { told: Arc::clone(&told), acks: Arc::clone(&acks), needs };
            Play { adapter: Adapter::new(Box::new(scribe), MTU, 10, RttStatistics::default(), None), told, acks }
        }

        fn send(&mut self, now: u64, number: u64) {
            self.adapter.path().on_packet_sent(at(now), MTU, number);
        }

        fn ack(&mut self, now: u64, packets: &[(u64, u64)], in_flight: u64) {
            for (number, sent) in packets {
                self.adapter.path().on_ack(at(now), at(*sent), MTU, *number, [RTT, RTT]);
            }
            let largest = packets.last().map(|(number, _)| *number);
            self.adapter.path().on_end_acks(at(now), in_flight, false, largest);
        }

        /// The latest acknowledgment passed to the control, after the stack has read the window.
        fn last_ack(&self) -> Ack {
            self.adapter.window();
            self.acks.lock().unwrap().last().cloned().expect("an acknowledgment was passed to the control")
        }

        /// The events passed to the control since the last call.
        fn told(&self) -> Vec<String> {
            std::mem::take(&mut *self.told.lock().unwrap())
        }
    }

    #[test]
    fn losses_of_an_acknowledgment_are_passed_before_it() {
        let mut play = Play::new(ControlRequirements::default());
        (0..5).for_each(|number| play.send(number, number));
        play.ack(24, &[(0, 0), (4, 4)], 3_000);
        // Nothing is passed to the control while losses may follow.
        assert_eq!(play.told(), [""; 0]);
        play.adapter.change().on_packet_lost(at(24), MTU, 1);
        play.adapter.change().on_congestion(at(24), at(1), MTU, false, false);
        assert_eq!(play.adapter.window(), 5_000);
        assert_eq!(
            play.told(),
            [
                "lost 1",
                "congestion flight 3000 lost 1000 ecn false persistent false",
                "established 20",
                "ack 2000 lost 1000 flight 5000 to 2000 rtt 20 round 1 recovery true limited true",
            ]
        );
    }

    #[test]
    fn recovery_reduces_once_and_ends_with_a_packet_sent_in_it() {
        let mut play = Play::new(ControlRequirements::default());
        (0..6).for_each(|number| play.send(number, number));
        play.adapter.change().on_packet_lost(at(30), MTU, 0);
        play.adapter.change().on_congestion(at(30), at(0), MTU, false, false);
        // Packet 5 was sent before the recovery began: no further reduction (RFC 9002 section 7.3.2).
        play.adapter.change().on_packet_lost(at(31), MTU, 5);
        play.adapter.change().on_congestion(at(31), at(5), MTU, false, false);
        assert_eq!(play.adapter.window(), 5_000);
        play.send(32, 6);
        play.ack(33, &[(1, 1)], 4_000);
        assert_eq!(play.adapter.window(), 5_000);
        play.told();
        play.ack(52, &[(6, 32)], 3_000);
        play.adapter.window();
        assert_eq!(
            play.told(),
            ["exit undone false", "ack 1000 lost 0 flight 4000 to 3000 rtt 20 round 1 recovery false limited true"]
        );
        // A loss of a later packet causes another reduction.
        play.send(53, 7);
        play.adapter.change().on_packet_lost(at(80), MTU, 7);
        play.adapter.change().on_congestion(at(80), at(53), MTU, false, false);
        assert_eq!(play.adapter.window(), 2_500);
    }

    #[test]
    fn spurious_reduction_is_undone() {
        let mut play = Play::new(ControlRequirements::default());
        (0..2).for_each(|number| play.send(number, number));
        play.adapter.change().on_packet_lost(at(30), MTU, 0);
        play.adapter.change().on_congestion(at(30), at(0), MTU, false, false);
        play.told();
        play.adapter.on_spurious_congestion_event();
        assert_eq!(play.told(), ["exit undone true"]);
        // No recovery remains that an acknowledgment could end.
        play.send(40, 2);
        play.ack(60, &[(2, 40)], 1_000);
        play.adapter.window();
        assert_eq!(play.told().len(), 2, "the round-trip time and the acknowledgement");
    }

    #[test]
    fn marks_and_persistent_congestion_are_passed_with_their_cause() {
        let mut play = Play::new(ControlRequirements::default());
        play.send(0, 0);
        play.adapter.change().on_congestion(at(20), at(0), 0, true, false);
        assert_eq!(play.told(), ["congestion flight 1000 lost 0 ecn true persistent false"]);
        // Persistent congestion is reported in and outside recovery.
        play.adapter.change().on_congestion(at(21), at(0), 0, false, true);
        assert_eq!(play.told(), ["congestion flight 1000 lost 0 ecn false persistent true"]);
        assert_eq!(play.adapter.window(), 2_500);
    }

    #[test]
    fn packets_with_one_number_in_two_spaces_are_distinguished_by_size() {
        let play = Play::new(ControlRequirements::default());
        let mut path = play.adapter.path();
        path.on_packet_sent(at(0), 1_200, 0);
        path.on_packet_sent(at(1), 700, 0);
        path.on_ack(at(20), at(1), 700, 0, [RTT, RTT]);
        let left: Vec<u64> = path.sent.iter().map(|sent| sent.state.bytes).collect();
        assert_eq!(left, [1_200]);
    }

    #[test]
    fn pacing_control_is_notified_of_an_idle_restart() {
        let heard = |pacing| {
            let mut play = Play::new(ControlRequirements { pacing, ..ControlRequirements::default() });
            // The very first packet is no restart.
            play.send(0, 0);
            play.ack(20, &[(0, 0)], 0);
            (1..3).for_each(|number| play.send(100, number));
            play.told().iter().filter(|line| *line == "idle restart").count()
        };
        assert_eq!([heard(true), heard(false)], [1, 0]);
    }

    #[test]
    fn application_limit_is_passed_to_the_control() {
        let mut play = Play::new(ControlRequirements::default());
        (0..3).for_each(|number| play.send(number, number));
        play.ack(20, &[(0, 0)], 2_000);
        let ack = play.last_ack();
        assert_eq!((ack.app_limited, ack.cwnd_limited), (false, true));
        play.adapter.path().on_ack(at(21), at(1), MTU, 1, [RTT, RTT]);
        play.adapter.path().on_end_acks(at(21), 1_000, true, Some(1));
        let ack = play.last_ack();
        assert_eq!((ack.app_limited, ack.cwnd_limited), (true, false));
    }

    #[test]
    fn rate_sample_contains_bytes_lost_since_its_packet_was_sent() {
        let mut play = Play::new(ControlRequirements::default());
        (0..3).for_each(|number| play.send(number, number));
        play.ack(20, &[(0, 0)], 2_000);
        play.adapter.change().on_packet_lost(at(20), MTU, 1);
        play.ack(22, &[(2, 2)], 0);
        assert_eq!(play.last_ack().rate.expect("the acknowledgment has a rate sample").lost_bytes, 1_000);
    }

    #[test]
    fn recovery_covers_packets_sent_until_its_beginning_and_ends_with_a_later_one() {
        let mut play = Play::new(ControlRequirements::default());
        (0..3).for_each(|number| play.send(number, number));
        play.adapter.change().on_packet_lost(at(30), MTU, 0);
        play.adapter.change().on_congestion(at(30), at(0), MTU, false, false);
        (3..6).for_each(|number| play.send(30 + (number - 3) * 2, number));
        // A packet sent at the instant at which recovery began belongs to it (RFC 9002 section 7.3.2) and does not end
        // it.
        play.adapter.change().on_congestion(at(50), at(30), MTU, false, false);
        play.ack(51, &[(3, 30)], 4_000);
        assert_eq!((play.adapter.window(), play.last_ack().in_recovery), (5_000, true));
        play.told();
        // A loss of a packet sent later begins another recovery.
        play.adapter.change().on_packet_lost(at(60), MTU, 4);
        play.adapter.change().on_congestion(at(60), at(32), MTU, false, false);
        let told = play.told();
        assert_eq!(told[..2], ["lost 32", "exit undone false"]);
        assert!(told[2].starts_with("congestion") && told.len() == 3, "{told:?}");
        assert_eq!(play.adapter.window(), 2_500);
    }

    /// RFC 9002 appendix B.6 keeps the time at which the last recovery began. A packet sent before this time belongs to
    /// that recovery even if its loss is detected after its end. This does not apply to a spurious recovery.
    #[test]
    fn late_detected_loss_begins_no_second_recovery() {
        let mut play = Play::new(ControlRequirements::default());
        (0..3).for_each(|number| play.send(number, number));
        play.adapter.change().on_packet_lost(at(30), MTU, 0);
        play.adapter.change().on_congestion(at(30), at(0), MTU, false, false);
        play.send(31, 3);
        play.ack(50, &[(3, 31)], 2_000);
        assert_eq!((play.adapter.window(), play.last_ack().in_recovery), (5_000, false));
        play.adapter.change().on_packet_lost(at(55), MTU, 1);
        play.adapter.change().on_congestion(at(55), at(1), MTU, false, false);
        assert_eq!(play.adapter.window(), 5_000);
        play.adapter.change().leave_recovery(at(56), true);
        play.adapter.change().on_congestion(at(57), at(2), MTU, false, false);
        assert_eq!(play.adapter.window(), 2_500);
    }

    #[test]
    fn control_with_its_own_recovery_keeps_its_window() {
        let mut play = Play::new(ControlRequirements { own_recovery: true, ..ControlRequirements::default() });
        play.send(0, 0);
        play.adapter.change().on_packet_lost(at(30), MTU, 0);
        play.adapter.change().on_congestion(at(30), at(0), MTU, false, false);
        assert_eq!(play.adapter.window(), 10_000);
    }

    #[test]
    fn round_trip_times_are_the_stacks_and_rounds_follow_the_newest_packet() {
        let mut play = Play::new(ControlRequirements::default());
        (0..2).for_each(|number| play.send(number, number));
        play.ack(20, &[(0, 0)], 1_000);
        let first = play.last_ack();
        assert_eq!((first.smoothed_rtt, first.min_rtt, first.round_count), (RTT, RTT, 1));
        // Packet 2 is sent after a round trip. Its acknowledgment begins the second round; that of packet 1 begins
        // none.
        play.send(21, 2);
        let estimates = [Duration::from_millis(25), Duration::from_millis(18)];
        play.adapter.path().on_ack(at(31), at(1), MTU, 1, estimates);
        play.adapter.path().on_end_acks(at(31), 1_000, false, Some(1));
        let second = play.last_ack();
        assert_eq!(second.rtt, Some(Duration::from_millis(30)));
        assert_eq!((second.smoothed_rtt, second.min_rtt, second.round_count), (estimates[0], estimates[1], 1));
        play.ack(41, &[(2, 21)], 0);
        assert_eq!(play.last_ack().round_count, 2);
    }

    #[test]
    fn window_is_at_least_two_packets() {
        let play = Play::new(ControlRequirements::default());
        play.adapter.change().driver.control.cwnd_bytes = 1;
        assert_eq!(play.adapter.window(), 2_000);
        assert_eq!(play.adapter.metrics().congestion_window, 2_000);
        assert_eq!(play.adapter.initial_window(), 10_000);
    }

    #[test]
    fn packet_removed_by_the_stack_without_an_event_leaves_the_flight() {
        let mut play = Play::new(ControlRequirements { on_sent: true, ..ControlRequirements::default() });
        // Packet 0 of two packet number spaces; the keys of the first are discarded.
        play.send(0, 0);
        play.send(0, 0);
        play.send(1, 1);
        assert_eq!(play.told().last().map(String::as_str), Some("sent 1000 in flight 3000"));
        play.ack(20, &[(0, 0)], 1_000);
        play.send(21, 2);
        assert_eq!(play.told().last().map(String::as_str), Some("sent 1000 in flight 2000"));
        play.ack(41, &[(1, 1), (2, 21)], 0);
        play.send(42, 3);
        assert_eq!(play.told().last().map(String::as_str), Some("sent 1000 in flight 1000"));
        assert_eq!(play.adapter.path().sent.len(), 1, "records of discarded packets are removed");
    }

    #[test]
    fn acknowledgment_without_the_largest_packet_gives_no_round_trip_sample() {
        let mut play = Play::new(ControlRequirements::default());
        (0..3).for_each(|number| play.send(number, number));
        play.adapter.path().on_ack(at(20), at(0), MTU, 0, [RTT, RTT]);
        play.adapter.path().on_end_acks(at(20), 2_000, false, Some(2));
        play.adapter.window();
        assert_eq!(play.told(), ["ack 1000 lost 0 flight 3000 to 2000 rtt 0 round 1 recovery false limited true"]);
    }

    #[test]
    fn acknowledgment_of_only_acknowledgments_changes_no_batch() {
        let mut play = Play::new(ControlRequirements::default());
        play.send(0, 0);
        play.ack(20, &[(0, 0)], 0);
        // The stack has not read the window since; packet 0 is still the largest.
        play.adapter.path().on_end_acks(at(50), 0, true, Some(0));
        play.adapter.window();
        let [_, ack] = &play.told()[..] else { panic!("the round-trip time and the acknowledgement") };
        assert_eq!(ack, "ack 1000 lost 0 flight 1000 to 0 rtt 20 round 1 recovery false limited true");
    }

    #[test]
    fn constant_stream_yields_its_rate() {
        // 1000 bytes per millisecond are 8 Mbit/s; the round-trip time is 20 ms.
        let mut play = Play::new(ControlRequirements::default());
        for now in 0..100u64 {
            if now >= 20 {
                play.ack(now, &[(now - 20, now - 20)], 19_000);
            }
            play.send(now, now);
        }
        let seen = play.adapter.inspect();
        assert_eq!((seen.delivery_rate_bps, seen.in_flight_bytes), (8_000_000, 20_000));
    }

    #[test]
    fn pacing_rate_and_new_path_mtu_are_passed_on() {
        let mut play = Play::new(ControlRequirements::default());
        let metrics = play.adapter.metrics();
        assert_eq!((metrics.pacing_rate, metrics.send_quantum, metrics.ssthresh), (None, None, None));
        {
            let mut path = play.adapter.change();
            (path.driver.control.pacing_bps, path.driver.control.send_quantum_bytes) = (8_000_001, 3_000);
            path.driver.control.ssthresh_bytes = 7_000;
        }
        let metrics = play.adapter.metrics();
        assert_eq!((metrics.pacing_rate, metrics.send_quantum), (Some(1_000_001), Some(3_000)));
        assert_eq!(metrics.ssthresh, Some(7_000));
        play.adapter.on_mtu_update(1_452);
        assert_eq!(play.told(), ["segments of 1452"]);
        // A clone drives the same control.
        let clone = play.adapter.clone_box();
        play.adapter.change().driver.control.cwnd_bytes = 77_000;
        assert_eq!(clone.window(), 77_000);
    }

    proptest! {
        /// The cached values equal fresh ones after any sequence of events, for all controls.
        #[test]
        fn cached_answer_equals_a_fresh_one(
            which in 0..DECLARATIONS.len(),
            steps in prop::collection::vec((0u8..10, 0u64..60), 1..150),
        ) {
            let options = ControlOptions { quic: true, paced: true, ..ControlOptions::default() };
            let control = create(DECLARATIONS[which].name, &options).expect("the catalog lists this control");
            let mut adapter = Adapter::new(control, MTU, 10, RttStatistics::default(), None);
            let (mut now, mut next, mut flying) = (0, 0, VecDeque::new());
            for (kind, pause) in steps {
                now += pause;
                let std_now = crate::clock::to_std(at(now));
                match kind {
                    0..4 => {
                        congestion::Controller::on_packet_sent(&mut adapter, std_now, MTU as u16, next);
                        flying.push_back((next, now));
                        next += 1;
                    }
                    4..7 => {
                        let Some((number, sent)) = flying.pop_front() else { continue };
                        adapter.path().on_ack(at(now), at(sent), MTU, number, [RTT, RTT]);
                        let in_flight = MTU * flying.len() as u64;
                        congestion::Controller::on_end_acks(&mut adapter, std_now, in_flight, kind == 6, Some(number));
                    }
                    7 => {
                        let Some((number, sent)) = flying.pop_front() else { continue };
                        let std_sent = crate::clock::to_std(at(sent));
                        congestion::Controller::on_packet_lost(&mut adapter, MTU as u16, number, std_now);
                        adapter.on_congestion_event(std_now, std_sent, pause == 0, false, MTU, number);
                    }
                    8 => adapter.on_spurious_congestion_event(),
                    _ => adapter.on_mtu_update(1_200 + pause as u16),
                }
                let kept = adapter.path().answer();
                prop_assert_eq!(adapter.window(), kept.window_bytes);
                prop_assert_eq!(adapter.metrics().pacing_rate, kept.pacing_bytes_per_second);
                prop_assert_eq!(kept, adapter.path().fresh_answer());
            }
        }
    }

    #[test]
    fn controls_that_need_missing_input_are_rejected() {
        let refused: Vec<&str> = DECLARATIONS
            .iter()
            .filter(|entry| unsupported_reason(&*create(entry.name, &ControlOptions::default()).unwrap()).is_some())
            .map(|entry| entry.name)
            .collect();
        assert_eq!(refused, ["dctcp", "prague"]);
        let needy = Scribe {
            needs: ControlRequirements { one_way_delay: true, ..ControlRequirements::default() },
            ..Scribe::default()
        };
        let reason = unsupported_reason(&needy).expect("this control is rejected");
        assert_eq!(reason, "congestion control `scribe` needs one-way delays, which the QUIC stack does not measure");
    }
}
