//! Property tests: random sequences of calls with extreme values always leave a usable window.

use fullpipe_congestion::catalogue::{ControlOptions, DECLARATIONS, create};
use fullpipe_congestion::{
    Ack, CongestionEvent, Controller, DeliveryRate, PacketState, RecoveryExit, Timeout, WindowState,
};
use fullpipe_units::{Duration, Instant};
use proptest::prelude::*;

/// A rate sample: interval, bytes, bytes delivered when the packet was sent, bytes in flight at that time, bytes lost since.
type Rate = (u64, u64, u64, u64, u64);

#[derive(Clone, Debug)]
enum Call {
    Established { rtt: Option<u64> },
    Sent { bytes: u64, in_flight: u64, limited: bool },
    Ack { wait: u64, bytes: u64, rtt: Option<u64>, limited: bool, round_start: bool, lost: u64, rate: Option<Rate> },
    Loss { in_flight: u64, ecn: bool, persistent: bool },
    Exit { undone: bool },
    Timeout { in_flight: u64, repeated: bool },
    Idle,
    Mss(u64),
}

/// Mostly typical sizes, sometimes any number.
fn quantity() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..100_000u64, 2 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(0)]
}

fn rtt() -> impl Strategy<Value = Option<u64>> {
    proptest::option::of(prop_oneof![4 => 0..400_000_000u64, 1 => any::<u64>()])
}

fn rate() -> impl Strategy<Value = Option<Rate>> {
    let interval = prop_oneof![8 => 0..400_000_000u64, 1 => any::<u64>()];
    proptest::option::weighted(0.8, (interval, quantity(), quantity(), quantity(), quantity()))
}

fn ack() -> impl Strategy<Value = Call> {
    let lost = prop_oneof![3 => Just(0), 1 => quantity()];
    (quantity(), quantity(), rtt(), any::<bool>(), any::<bool>(), lost, rate()).prop_map(
        |(wait, bytes, rtt, limited, round_start, lost, rate)| Call::Ack {
            wait,
            bytes,
            rtt,
            limited,
            round_start,
            lost,
            rate,
        },
    )
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        12 => ack(),
        4 => (quantity(), quantity(), any::<bool>())
            .prop_map(|(bytes, in_flight, limited)| Call::Sent { bytes, in_flight, limited }),
        1 => rtt().prop_map(|rtt| Call::Established { rtt }),
        3 => (quantity(), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(in_flight, ecn, persistent)| Call::Loss { in_flight, ecn, persistent }),
        2 => any::<bool>().prop_map(|undone| Call::Exit { undone }),
        1 => (quantity(), any::<bool>()).prop_map(|(in_flight, repeated)| Call::Timeout { in_flight, repeated }),
        1 => Just(Call::Idle),
        1 => prop_oneof![9 => 1..10_000u64, 1 => any::<u64>().prop_map(|mss| mss.max(1))].prop_map(Call::Mss),
    ]
}

/// A transport that implements only the contract with the control.
struct Transport {
    control: WindowState,
    controller: Box<dyn Controller>,
    now: Instant,
    in_recovery: bool,
    own_recovery: bool,
    delivered_bytes: u64,
    /// The largest window so far: a control with its own recovery may restore it at once.
    largest_bytes: u64,
}

impl Transport {
    fn new(name: &str, options: ControlOptions, mss: u64) -> Self {
        let controller = create(name, &options).expect("a name from the catalogue");
        let mut control = WindowState::new(mss, fullpipe_congestion::catalogue::initial_window_bytes(mss));
        crate::simulator::set_codepoint(&mut control, &*controller);
        let own_recovery = controller.requirements().own_recovery;
        Transport {
            largest_bytes: control.cwnd_bytes,
            control,
            controller,
            now: Instant::ZERO,
            in_recovery: false,
            own_recovery,
            delivered_bytes: 0,
        }
    }

    fn call(&mut self, call: &Call) {
        let (control, controller) = (&mut self.control, &mut self.controller);
        let before = control.clone();
        match *call {
            Call::Established { rtt } => controller.on_established(control, self.now, rtt.map(Duration::from_nanos)),
            Call::Sent { bytes, in_flight, limited } => {
                let packet = PacketState {
                    sent_at: self.now,
                    bytes,
                    delivered_bytes: self.delivered_bytes,
                    in_flight_bytes: in_flight.max(bytes),
                    app_limited: limited,
                    ..PacketState::default()
                };
                controller.on_sent(control, &packet);
                assert!(control.cwnd_bytes <= before.cwnd_bytes.max(self.largest_bytes));
            }
            Call::Ack { wait, bytes, rtt, limited, round_start, lost, rate } => {
                self.now = self.now.saturating_add(Duration::from_nanos(wait.saturating_mul(1_000)));
                self.delivered_bytes = self.delivered_bytes.saturating_add(bytes);
                let rtt = rtt.map(Duration::from_nanos);
                let rate = rate.map(|(interval, delivered_bytes, prior, in_flight_bytes, lost_bytes)| DeliveryRate {
                    delivered_bytes,
                    interval: Duration::from_nanos(interval),
                    prior_delivered_bytes: prior.min(self.delivered_bytes),
                    lost_bytes,
                    in_flight_bytes,
                    app_limited: !limited,
                });
                let ack = Ack {
                    now: self.now,
                    acked_bytes: bytes,
                    cumulative_bytes: bytes,
                    lost_bytes: lost,
                    rtt,
                    smoothed_rtt: rtt.unwrap_or(Duration::ZERO),
                    min_rtt: rtt.unwrap_or(Duration::ZERO),
                    ack_delay: Duration::ZERO,
                    one_way_delay: None,
                    prior_in_flight_bytes: bytes,
                    in_flight_bytes: 0,
                    delivered_bytes: self.delivered_bytes,
                    round_count: 0,
                    round_start,
                    rate,
                    app_limited: !limited,
                    cwnd_limited: limited,
                    in_recovery: self.in_recovery,
                    ce_packets: 0,
                    ce_bytes: if limited { 0 } else { lost },
                };
                controller.on_ack(control, &ack);
                // No control may grow faster than by the bytes acknowledged. One segment is permitted for rounding, and the
                // rounding error of an f64 in windows beyond 2^53 bytes.
                let largest = before.cwnd_bytes.saturating_add(bytes);
                let rounding = control.mss_bytes.saturating_add(largest >> 52);
                let mut from = before.cwnd_bytes;
                if self.own_recovery {
                    // Back to a window before recovery or probing, or to the smallest that keeps a path busy.
                    from = from.max(self.largest_bytes).max(control.mss_bytes.saturating_mul(4));
                } else {
                    // Only a control that limits queues shrinks the window without a loss or a mark.
                    let shrinks = ["vegas", "yeah", "lp", "ledbat", "prague"].contains(&controller.name());
                    assert!(shrinks || control.cwnd_bytes >= before.cwnd_bytes, "an acknowledgement shrank the window");
                    assert!(!self.in_recovery || control.cwnd_bytes == before.cwnd_bytes, "growth in recovery");
                }
                // Hybla's slow start multiplies the growth, by at most 2^16 - 1.
                let factor = if controller.name() == "hybla" { 65_535 } else { 1 };
                let most = from.saturating_add(bytes.saturating_mul(factor)).saturating_add(rounding);
                assert!(
                    control.cwnd_bytes <= most,
                    "an acknowledgement of {bytes} bytes opened the window from {} to {}",
                    before.cwnd_bytes,
                    control.cwnd_bytes
                );
            }
            Call::Loss { in_flight, ecn, persistent } => {
                let packet =
                    PacketState { bytes: control.mss_bytes, in_flight_bytes: in_flight, ..PacketState::default() };
                controller.on_packet_lost(control, self.now, &packet);
                let congestion =
                    CongestionEvent { now: self.now, in_flight_bytes: in_flight, lost_bytes: 0, ecn, persistent };
                controller.on_congestion(control, &congestion);
                assert!(control.ssthresh_bytes >= control.mss_bytes.saturating_mul(2));
                self.in_recovery = !ecn;
            }
            Call::Exit { undone } => {
                // The part of the transport.
                if self.in_recovery && !self.own_recovery {
                    control.cwnd_bytes = control.ssthresh_bytes;
                }
                self.in_recovery = false;
                let exit = RecoveryExit { now: self.now, in_flight_bytes: 0, undone };
                controller.on_recovery_exit(control, &exit);
            }
            Call::Timeout { in_flight, repeated } => {
                controller.on_timeout(control, &Timeout { now: self.now, in_flight_bytes: in_flight, repeated });
                if !repeated {
                    assert!(control.ssthresh_bytes >= control.mss_bytes.saturating_mul(2));
                }
                if self.own_recovery {
                    assert!(control.cwnd_bytes <= control.mss_bytes.saturating_mul(2));
                } else {
                    control.cwnd_bytes = control.mss_bytes;
                }
                self.in_recovery = false;
            }
            Call::Idle => {
                controller.on_idle_restart(control, self.now);
                assert!(control.cwnd_bytes <= before.cwnd_bytes);
            }
            Call::Mss(mss) => {
                control.mss_bytes = mss;
                controller.on_path_change(control, self.now);
            }
        }
        self.largest_bytes = self.largest_bytes.max(control.cwnd_bytes);
        if self.own_recovery {
            assert!(control.pacing_bps > 0 || before.pacing_bps == 0, "the control reset the pacing rate to zero");
        }
        let mut values = Vec::new();
        controller.inspect(&mut values);
        assert!(values.iter().all(|(_, value)| value.is_finite()), "{values:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_window_never_falls_below_a_segment_and_nothing_overflows(
        calls in prop::collection::vec(call(), 1..200),
        hystart: bool,
        hystart_all: bool,
        rate_limited_increase: bool,
        paced: bool,
        mss in prop_oneof![9 => 1..10_000u64, 1 => any::<u64>().prop_map(|mss| mss.max(1))],
    ) {
        for entry in DECLARATIONS {
            let options = ControlOptions { hystart, hystart_all, rate_limited_increase, paced, ..ControlOptions::default() };
            let mut transport = Transport::new(entry.name, options, mss);
            let mut twin = Transport::new(entry.name, options, mss);
            for call in &calls {
                transport.call(call);
                twin.call(call);
                prop_assert!(
                    transport.control.cwnd_bytes >= transport.control.mss_bytes,
                    "{}: {:?} after {call:?}", entry.name, transport.control
                );
                prop_assert_eq!(transport.control.cwnd_bytes, twin.control.cwnd_bytes);
                prop_assert_eq!(transport.control.ssthresh_bytes, twin.control.ssthresh_bytes);
            }
        }
    }
}
