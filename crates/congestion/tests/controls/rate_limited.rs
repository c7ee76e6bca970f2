//! Tests of rate-limited increase: the examples of the draft with every control, and the limits of the controls by hand.

use crate::simulator::full_window_ack;
use fullpipe_congestion::catalogue::{ControlOptions, create};
use fullpipe_congestion::{CongestionEvent, Controller, PacketState, WindowState};
use fullpipe_units::{Duration, Instant};

/// The segment size of the draft's example.
const SMSS: u64 = 1_000;

struct Sender {
    control: WindowState,
    controller: Box<dyn Controller>,
    now: Instant,
    rtt: Duration,
}

impl Sender {
    fn new(name: &str, rate_limited_increase: bool, milliseconds: u64) -> Sender {
        let options = ControlOptions { rate_limited_increase, ..ControlOptions::default() };
        let mut controller = create(name, &options).expect("a name from the catalogue");
        let mut control = WindowState::new(SMSS, 10 * SMSS);
        let rtt = Duration::from_millis(milliseconds);
        controller.on_established(&mut control, Instant::ZERO, Some(rtt));
        Sender { control, controller, now: Instant::ZERO, rtt }
    }

    /// A flow in congestion avoidance with this window, in segments, all of which has been in flight.
    fn avoiding(name: &str, rate_limited_increase: bool, milliseconds: u64, segments: u64) -> Sender {
        let mut sender = Sender::new(name, rate_limited_increase, milliseconds);
        sender.control.cwnd_bytes = segments * SMSS;
        sender.control.ssthresh_bytes = 2 * SMSS;
        sender.send(segments);
        sender
    }

    fn send(&mut self, packets: u64) {
        for number in 1..=packets {
            let in_flight_bytes = number * SMSS;
            let packet = PacketState { sent_at: self.now, bytes: SMSS, in_flight_bytes, ..PacketState::default() };
            self.controller.on_sent(&mut self.control, &packet);
        }
    }

    /// Sends packets at once and receives an acknowledgment for each of them a round trip later. The application limits sending.
    fn round(&mut self, packets: u64) {
        self.send(packets);
        self.now += self.rtt;
        for number in 1..=packets {
            let mut ack = full_window_ack(self.now, SMSS, self.rtt, (packets - number + 1) * SMSS);
            ack.cwnd_limited = false;
            ack.app_limited = true;
            ack.round_start = number == 1;
            self.controller.on_ack(&mut self.control, &ack);
        }
    }

    fn rounds(&mut self, count: u32, packets: u64) {
        for _ in 0..count {
            self.round(packets);
        }
    }

    fn mark(&mut self) {
        let in_flight_bytes = self.control.cwnd_bytes;
        let congestion =
            CongestionEvent { now: self.now, in_flight_bytes, lost_bytes: 0, ecn: true, persistent: false };
        self.controller.on_congestion(&mut self.control, &congestion);
    }
}

#[test]
fn slow_start_of_every_control_follows_the_example_of_the_draft() {
    // Appendix A: rounds of 4, 8, 4 and 20 packets. maxFS is 10 segments until 20 are sent. A round-trip time of 25 ms, at which
    // Hybla's slow start is the standard one.
    for name in [
        "newreno",
        "linux-reno",
        "cubic",
        "bic",
        "highspeed",
        "htcp",
        "hybla",
        "illinois",
        "scalable",
        "vegas",
        "veno",
        "westwood",
        "yeah",
        "lp",
        "dctcp",
    ] {
        let mut sender = Sender::new(name, true, 25);
        for (packets, window) in [(4, 14_000), (8, 20_000), (4, 20_000), (20, 40_000)] {
            sender.round(packets);
            assert_eq!(sender.control.cwnd_bytes, window, "{name} after {packets} packets");
        }
        // Section 3.1: 10 packets, then 4.
        let mut sender = Sender::new(name, true, 25);
        sender.round(10);
        sender.round(4);
        assert_eq!(sender.control.cwnd_bytes, 20_000, "{name}");
    }
}

#[test]
fn without_the_option_the_window_grows_without_a_limit_or_not_at_all() {
    // RFC 5681 has no rule: 36 acknowledgments add 36 segments. Linux's Reno does not let an unused window grow.
    for (name, window) in [("newreno", 46_000), ("linux-reno", 10_000)] {
        let mut sender = Sender::new(name, false, 25);
        for packets in [4, 8, 4, 20] {
            sender.round(packets);
        }
        assert_eq!(sender.control.cwnd_bytes, window, "{name}");
    }
}

#[test]
fn slow_start_of_hybla_is_limited_to_its_own_growth() {
    // rho = 100 / 25 = 4: 2^4 - 1 = 15 segments for each acknowledged. From 10 segments to 10 + 4 * 15 = 70, and at most to 16 * 10.
    let mut sender = Sender::new("hybla", true, 100);
    sender.round(4);
    assert_eq!(sender.control.cwnd_bytes, 70_000);
    sender.round(8);
    assert_eq!(sender.control.cwnd_bytes, 160_000);
}

#[test]
fn congestion_avoidance_adds_at_most_the_increase_of_one_window() {
    // 20 segments were in flight, and 4 are from now on. Reno reaches 21. NewReno of RFC 5681 would grow on, Linux's Reno not at all.
    for (name, without) in [("newreno", 21_001..40_000), ("linux-reno", 20_000..20_001)] {
        let mut sender = Sender::avoiding(name, true, 100, 20);
        sender.rounds(50, 4);
        assert_eq!(sender.control.cwnd_bytes, 21_000, "{name}");
        let mut sender = Sender::avoiding(name, false, 100, 20);
        sender.rounds(50, 4);
        assert!(without.contains(&sender.control.cwnd_bytes), "{name}: {}", sender.control.cwnd_bytes);
    }
    // The increases at 200 segments without a queue: Scalable one hundredth of the window, 2, and 2.0202 at the limit; HighSpeed
    // 0.078 * 200^0.8 * 2 b / (2 - b) = 2.82 with b = 0.5 - 0.4 ln(200 / 38) / ln(83000 / 38) = 0.414; Hybla rho^2 = 16; Illinois 10
    // without delay; Westwood and Veno 1; YeAH as Scalable; H-TCP 1 in the first second.
    for (name, low, high) in [
        ("scalable", 202_000, 202_021),
        ("highspeed", 202_700, 202_900),
        ("hybla", 216_000, 216_000),
        ("illinois", 210_000, 210_000),
        ("westwood", 201_000, 201_000),
        ("veno", 201_000, 201_000),
        ("yeah", 202_000, 202_021),
    ] {
        let mut sender = Sender::avoiding(name, true, 100, 200);
        sender.rounds(100, 20);
        assert!((low..=high).contains(&sender.control.cwnd_bytes), "{name}: {}", sender.control.cwnd_bytes);
    }
}

#[test]
fn cubic_adds_at_most_half_of_the_flight() {
    // RFC 9438 section 4.2: the target is at most 1.5 times the window. After 100 s the curve is far above that.
    let mut sender = Sender::avoiding("cubic", true, 100, 20);
    sender.rounds(1_000, 4);
    assert_eq!(sender.control.cwnd_bytes, 30_000);
    // A second after the start of the curve at w_max, W(1.1) = 0.4 * 1.1^3 = 0.53 segments above it, less than Reno's one.
    let mut sender = Sender::avoiding("cubic", true, 100, 20);
    sender.rounds(10, 4);
    assert!(sender.control.cwnd_bytes > 20_000 && sender.control.cwnd_bytes <= 21_000, "{}", sender.control.cwnd_bytes);
}

#[test]
fn cubic_does_not_jump_when_the_limit_rises() {
    // A second with the limit of 21 segments: 80 acknowledgments are four windows, in which Reno's estimate would have grown by up to four.
    let mut sender = Sender::avoiding("cubic", true, 100, 20);
    sender.rounds(10, 8);
    assert!(sender.control.cwnd_bytes <= 21_000, "{}", sender.control.cwnd_bytes);
    let before = sender.control.cwnd_bytes;
    sender.send(40);
    sender.round(1);
    assert!(sender.control.cwnd_bytes <= before + SMSS, "{} after {before}", sender.control.cwnd_bytes);
}

#[test]
fn a_reduction_resets_the_largest_flight() {
    let mut sender = Sender::avoiding("linux-reno", true, 100, 20);
    sender.mark();
    assert_eq!(sender.control.cwnd_bytes, 10_000);
    // 4 segments in flight: the limit of 5 is below the window, which neither grows nor shrinks.
    sender.rounds(50, 4);
    assert_eq!(sender.control.cwnd_bytes, 10_000);
    // 10 in flight: the limit is 11.
    sender.rounds(50, 10);
    assert_eq!(sender.control.cwnd_bytes, 11_000);
    // The transport can also reduce the window, for instance after a timeout.
    sender.control.cwnd_bytes = 8_000;
    sender.rounds(50, 4);
    assert_eq!(sender.control.cwnd_bytes, 8_000);
}

#[test]
fn a_used_window_is_not_limited() {
    // Rounds of the whole window: slow start doubles it, congestion avoidance adds one segment per round.
    let mut sender = Sender::new("linux-reno", true, 100);
    for window in [20, 40, 80] {
        let packets = sender.control.cwnd_bytes / SMSS;
        sender.round(packets);
        assert_eq!(sender.control.cwnd_bytes, window * SMSS);
    }
    sender.mark();
    for window in 41..60 {
        let packets = sender.control.cwnd_bytes / SMSS;
        sender.round(packets);
        assert_eq!(sender.control.cwnd_bytes, window * SMSS);
    }
}

#[test]
fn controls_that_set_a_rate_are_unchanged() {
    for name in ["copa", "bbr1", "bbr3"] {
        let options = ControlOptions { rate_limited_increase: true, ..ControlOptions::default() };
        let mut values = Vec::new();
        create(name, &options).expect("a name from the catalogue").inspect(&mut values);
        assert!(values.iter().all(|(name, _)| *name != "largest_flight_bytes"), "{name}");
    }
}
