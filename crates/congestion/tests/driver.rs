//! Tests of the driver with three kinds of transports, against values computed by hand.

#![allow(missing_docs, reason = "a test")]

use fullpipe_congestion::{
    Ack, AckReport, CongestionEvent, ControlRequirements, Controller, DeliveredPackets, Driver, EcnCodepoint,
    PacketState, RecoveryExit, Timeout, WindowState,
};
use fullpipe_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const PACKET: u64 = 1_000;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn at(milliseconds: u64) -> Instant {
    Instant::ZERO + ms(milliseconds)
}

fn in_ms(duration: Duration) -> u64 {
    duration.as_nanos() / 1_000_000
}

/// A control that records its calls, and halves the window on congestion.
#[derive(Debug, Default)]
struct Recorder {
    calls: Arc<Mutex<Vec<String>>>,
    needs: ControlRequirements,
}

impl Recorder {
    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

impl Controller for Recorder {
    fn name(&self) -> &'static str {
        "recorder"
    }

    fn requirements(&self) -> ControlRequirements {
        self.needs
    }

    fn on_sent(&mut self, _control: &mut WindowState, packet: &PacketState) {
        self.note(format!("sent {}", packet.in_flight_bytes));
    }

    fn on_ack(&mut self, _control: &mut WindowState, ack: &Ack) {
        let rate = ack
            .rate
            .map(|rate| format!("{} in {} ms, lost {}", rate.delivered_bytes, in_ms(rate.interval), rate.lost_bytes));
        self.note(format!(
            "ack {} lost {} rtt {:?} flight {} to {} delivered {} round {} start {} rate {rate:?} recovery {}",
            ack.acked_bytes,
            ack.lost_bytes,
            ack.rtt.map(in_ms),
            ack.prior_in_flight_bytes,
            ack.in_flight_bytes,
            ack.delivered_bytes,
            ack.round_count,
            ack.round_start,
            ack.in_recovery
        ));
    }

    fn on_idle_restart(&mut self, _control: &mut WindowState, _now: Instant) {
        self.note("idle restart".to_owned());
    }

    fn on_packet_lost(&mut self, _control: &mut WindowState, _now: Instant, packet: &PacketState) {
        self.note(format!(
            "lost what left at {} with {} lost",
            in_ms(packet.sent_at - Instant::ZERO),
            packet.lost_bytes
        ));
    }

    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        control.ssthresh_bytes = control.cwnd_bytes / 2;
        self.note(format!("congestion flight {} lost {}", congestion.in_flight_bytes, congestion.lost_bytes));
    }

    fn on_recovery_exit(&mut self, _control: &mut WindowState, exit: &RecoveryExit) {
        self.note(format!("exit flight {} undone {}", exit.in_flight_bytes, exit.undone));
    }

    fn on_timeout(&mut self, _control: &mut WindowState, _timeout: &Timeout) {}
}

fn driver(needs: ControlRequirements) -> (Driver, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::default();
    let recorder = Recorder { calls: Arc::clone(&calls), needs };
    (Driver::new(Box::new(recorder), PACKET, 10 * PACKET), calls)
}

/// How a transport determines when a recovery begins and ends, and when it passes a summary to the control.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// As TCP: by sequence numbers. The state of a lost packet is created when the packet is lost.
    Sequence,
    /// As the QUIC model: by the times at which packets left.
    Time,
    /// As the adapter of the real stack: by times too, but the summary is passed when the window is requested.
    Deferred,
}

struct User {
    way: Way,
    driver: Driver,
    sent: BTreeMap<u64, PacketState>,
    next: u64,
    in_flight_bytes: u64,
    recovery_end: Option<u64>,
    waiting: Option<AckReport>,
    newest: Instant,
}

impl User {
    fn send(&mut self, now: u64) {
        self.hand_over();
        let state = self.driver.on_sent(at(now), PACKET, self.in_flight_bytes);
        self.sent.insert(self.next, state);
        self.next += 1;
        self.in_flight_bytes += PACKET;
    }

    fn ack(&mut self, now: u64, acked: &[u64], lost: &[u64]) {
        self.hand_over();
        let mut delivered = DeliveredPackets::default();
        let prior_in_flight_bytes = self.in_flight_bytes;
        let mut rtt = Duration::MAX;
        for number in acked {
            let state = self.sent.remove(number).unwrap();
            self.driver.on_delivered(at(now), &state, &mut delivered);
            self.in_flight_bytes -= PACKET;
            rtt = rtt.min(at(now) - state.sent_at);
            self.newest = state.sent_at;
        }
        for number in lost {
            let state = self.sent.remove(number).unwrap();
            self.in_flight_bytes -= PACKET;
            self.driver.on_lost(at(now), PACKET, |_| state);
            let in_flight_bytes = self.in_flight_bytes + PACKET;
            let congestion =
                CongestionEvent { now: at(now), in_flight_bytes, lost_bytes: PACKET, ecn: false, persistent: false };
            if self.way == Way::Sequence {
                self.driver.reduce(&congestion);
                self.driver.control.cwnd_bytes = self.driver.control.ssthresh_bytes;
                self.recovery_end = Some(self.next);
            } else {
                assert!(self.driver.on_congestion(&congestion, state.sent_at));
            }
        }
        self.waiting = Some(AckReport {
            now: at(now),
            delivered,
            cumulative_bytes: delivered.bytes,
            lost_bytes: lost.len() as u64 * PACKET,
            rtt: Some(rtt),
            smoothed_rtt: ms(20),
            min_rtt: ms(20),
            ack_delay: Duration::ZERO,
            prior_in_flight_bytes,
            in_flight_bytes: self.in_flight_bytes,
            cwnd_limited: true,
            in_recovery: false,
            ce_packets: 0,
        });
        if self.way != Way::Deferred {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let Some(mut report) = self.waiting.take() else { return };
        if self.way == Way::Sequence {
            let first = self.sent.first_key_value().map_or(self.next, |(number, _)| *number);
            if self.recovery_end.is_some_and(|end| first >= end) {
                self.recovery_end = None;
                self.driver.end_recovery(report.now, self.in_flight_bytes, false);
            }
            report.in_recovery = self.recovery_end.is_some();
        } else {
            self.driver.end_recovery_on_ack(report.now, self.newest, self.in_flight_bytes);
            report.in_recovery = self.driver.in_recovery();
        }
        let ack = self.driver.summarize(&report);
        self.driver.on_ack(&ack);
    }
}

/// Four packets leave at 0 to 3 ms, one at 21 ms. Packet 1 is detected as lost at 23 ms; packet 5, sent at 24 ms, ends the
/// recovery.
///
/// Packets 0, 2 and 3 left with nothing delivered: their samples begin at 0 ms and end with their acknowledgements. Packet 5 left
/// with 3000 bytes delivered, the last at 23 ms: 2000 bytes in 27 ms, longer than the 24 - 3 ms of the departures. It begins the
/// second round, because 3000 are at least the 1000 at which the first round ends.
#[test]
fn three_transports_report_the_same_acknowledgements() {
    let expected = [
        "ack 1000 lost 0 rtt Some(20) flight 4000 to 3000 delivered 1000 round 1 start true rate Some(\"1000 in 20 ms, \
         lost 0\") recovery false",
        "ack 1000 lost 0 rtt Some(20) flight 4000 to 3000 delivered 2000 round 1 start false rate Some(\"2000 in 22 ms, \
         lost 0\") recovery false",
        "lost what left at 1 with 0 lost",
        "congestion flight 2000 lost 1000",
        "ack 1000 lost 1000 rtt Some(20) flight 3000 to 1000 delivered 3000 round 1 start false rate Some(\"3000 in 23 \
         ms, lost 1000\") recovery true",
        "exit flight 0 undone false",
        "ack 2000 lost 0 rtt Some(26) flight 2000 to 0 delivered 5000 round 2 start true rate Some(\"2000 in 27 ms, lost \
         0\") recovery false",
    ];
    for way in [Way::Sequence, Way::Time, Way::Deferred] {
        let (driver, calls) = driver(ControlRequirements::default());
        let mut user = User {
            way,
            driver,
            sent: BTreeMap::new(),
            next: 0,
            in_flight_bytes: 0,
            recovery_end: None,
            waiting: None,
            newest: Instant::ZERO,
        };
        (0..4).for_each(|now| user.send(now));
        user.ack(20, &[0], &[]);
        user.send(21);
        user.ack(22, &[2], &[]);
        user.ack(23, &[3], &[1]);
        assert_eq!(user.driver.control.cwnd_bytes, 5 * PACKET, "{way:?}");
        user.send(24);
        user.ack(50, &[4, 5], &[]);
        user.hand_over();
        assert_eq!(calls.lock().unwrap()[..], expected, "{way:?}");
        // 16 000 bits in 27 ms.
        assert_eq!((user.driver.delivery_rate_bps(), user.driver.lost_bytes()), (592_592, PACKET), "{way:?}");
    }
}

fn congestion(now: u64, in_flight_bytes: u64, lost_bytes: u64, persistent: bool) -> CongestionEvent {
    CongestionEvent { now: at(now), in_flight_bytes, lost_bytes, ecn: false, persistent }
}

#[test]
fn a_loss_of_a_packet_sent_before_the_recovery_begins_no_other() {
    let (mut driver, calls) = driver(ControlRequirements::default());
    assert!(driver.on_congestion(&congestion(30, 5_000, 1_000, false), at(10)));
    assert!(!driver.on_congestion(&congestion(40, 4_000, 1_000, false), at(30)));
    assert_eq!((driver.control.cwnd_bytes, driver.in_recovery()), (5_000, true));
    // The loss of a later packet begins another recovery, which ends the first: 4000 - 1000 bytes are in flight then.
    assert!(driver.on_congestion(&congestion(60, 4_000, 1_000, false), at(31)));
    assert_eq!(driver.control.cwnd_bytes, 2_500);
    driver.end_recovery_on_ack(at(80), at(60), 0);
    assert!(driver.in_recovery(), "the packet left when the recovery began, not later");
    driver.end_recovery_on_ack(at(90), at(61), 2_000);
    assert!(!driver.in_recovery());
    let calls = calls.lock().unwrap();
    assert_eq!(
        calls[..],
        [
            "congestion flight 5000 lost 1000",
            "exit flight 3000 undone false",
            "congestion flight 4000 lost 1000",
            "exit flight 2000 undone false"
        ]
    );
}

#[test]
fn an_undone_recovery_does_not_count_as_a_reaction_to_its_losses() {
    let (mut driver, calls) = driver(ControlRequirements::default());
    driver.on_congestion(&congestion(30, 5_000, 1_000, false), at(10));
    driver.end_recovery(at(35), 4_000, true);
    assert_eq!(calls.lock().unwrap().last().map(String::as_str), Some("exit flight 4000 undone true"));
    assert!(driver.on_congestion(&congestion(40, 5_000, 1_000, false), at(10)));
}

#[test]
fn a_control_with_its_own_recovery_keeps_its_window() {
    let (mut driver, _) = driver(ControlRequirements { own_recovery: true, ..ControlRequirements::default() });
    driver.on_congestion(&congestion(30, 5_000, 1_000, false), at(10));
    assert_eq!((driver.control.cwnd_bytes, driver.control.ssthresh_bytes), (10_000, 5_000));
}

#[test]
fn departures_and_idle_restarts_are_passed_only_to_controls_that_request_them() {
    for (on_sent, pacing) in [(false, false), (true, true)] {
        let (mut driver, calls) = driver(ControlRequirements { on_sent, pacing, ..ControlRequirements::default() });
        assert!(!driver.restart_if_idle(at(0), 0, false), "there is no round-trip sample yet");
        assert!(!driver.restart_if_idle(at(1), 1, true), "something is in flight");
        assert_eq!(driver.restart_if_idle(at(2), 0, true), pacing);
        driver.on_sent(at(2), PACKET, 500);
        let expected: &[&str] = if on_sent { &["idle restart", "sent 1500"] } else { &[] };
        assert_eq!(calls.lock().unwrap()[..], *expected);
    }
}

#[test]
fn the_state_of_a_lost_packet_is_created_from_the_count_that_includes_it() {
    let (mut driver, _) = driver(ControlRequirements::default());
    let mut counts = Vec::new();
    for bytes in [700, 300] {
        driver.on_lost(at(0), bytes, |lost_bytes| {
            counts.push(lost_bytes);
            PacketState::default()
        });
    }
    assert_eq!(counts, [700, 1_000]);
}

#[test]
fn a_new_path_has_the_initial_window_and_no_recovery() {
    let (mut driver, _) = driver(ControlRequirements::default());
    driver.on_congestion(&congestion(30, 5_000, 1_000, false), at(10));
    (driver.control.codepoint, driver.control.pacing_bps) = (EcnCodepoint::Ect1, 7);
    driver.reset_for_new_path(2_000);
    let WindowState { cwnd_bytes, ssthresh_bytes, pacing_bps, codepoint, .. } = driver.control;
    assert_eq!((cwnd_bytes, ssthresh_bytes, pacing_bps, codepoint), (2_000, u64::MAX, 0, EcnCodepoint::Ect1));
    assert!(!driver.in_recovery());
    driver.set_mss(at(40), 1_400);
    assert_eq!(driver.control.mss_bytes, 1_400);
}

#[test]
fn short_rate_samples_are_discarded_unless_they_are_enabled() {
    // One packet leaves at 0 ms and is acknowledged at 10 ms; the smallest round-trip time is set to 20 ms.
    let rate = |keep: bool| {
        let (mut driver, calls) = driver(ControlRequirements::default());
        if keep {
            driver.keep_short_rate_samples();
        }
        let mut user = User {
            way: Way::Time,
            driver,
            sent: BTreeMap::new(),
            next: 0,
            in_flight_bytes: 0,
            recovery_end: None,
            waiting: None,
            newest: Instant::ZERO,
        };
        user.send(0);
        user.ack(10, &[0], &[]);
        let calls = calls.lock().unwrap();
        calls[0].split("rate ").nth(1).unwrap().split(" recovery").next().unwrap().to_owned()
    };
    assert_eq!(rate(false), "None");
    assert_eq!(rate(true), "Some(\"1000 in 10 ms, lost 0\")");
}

#[test]
fn rate_samples_are_not_taken_if_the_control_does_not_use_them() {
    let signals = |delivery_rate, on_sent, plain_acks| ControlRequirements {
        delivery_rate,
        on_sent,
        plain_acks,
        ..ControlRequirements::default()
    };
    for (needs, is_taken) in [
        (signals(false, false, false), false),
        // The declaration of CUBIC and Reno.
        (signals(false, false, true), false),
        (signals(true, false, false), true),
        (signals(false, true, false), true),
    ] {
        let (mut driver, _) = driver(needs);
        assert!(driver.takes_rate_samples(), "{needs:?}: they are taken by default");
        driver.disable_rate_samples();
        assert_eq!(driver.takes_rate_samples(), is_taken, "{needs:?}");
    }
}
