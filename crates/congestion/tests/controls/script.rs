//! Scripted acknowledgements, for tests of the controls that measure the path.

use crate::simulator::{MSS, full_window_ack};
use fullpipe_congestion::catalogue::{ControlOptions, create};
use fullpipe_congestion::{CongestionEvent, Controller, DeliveryRate, PacketState, RecoveryExit, Timeout, WindowState};
use fullpipe_units::{Duration, Instant};

/// Round-trip time of a script's path.
pub(crate) const RTT: Duration = Duration::from_millis(100);

/// An acknowledgement of one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Time since the previous acknowledgement.
    pub(crate) wait: Duration,
    /// Rate of its sample.
    pub(crate) rate_bps: u64,
    /// Whether its packet was sent after the previous acknowledgement, so that a round begins.
    pub(crate) new_round: bool,
    /// The bytes delivered when its packet was sent, unless `new_round` determines them.
    pub(crate) sent_after: Option<u64>,
    pub(crate) acked: u64,
    /// Bytes in flight afterwards.
    pub(crate) in_flight: u64,
    /// Bytes newly lost, and bytes lost since its packet was sent, with this number in flight.
    pub(crate) lost: u64,
    pub(crate) lost_since: u64,
    pub(crate) sent_with: u64,
    pub(crate) app_limited: bool,
    pub(crate) cwnd_limited: bool,
    pub(crate) rtt: Duration,
}

/// A round of a flow at 10 Mbit/s with a full window.
pub(crate) const STEP: Step = Step {
    wait: RTT,
    rate_bps: 10_000_000,
    new_round: true,
    sent_after: None,
    acked: MSS,
    in_flight: 1_000 * MSS,
    lost: 0,
    lost_since: 0,
    sent_with: 1_000 * MSS,
    app_limited: false,
    cwnd_limited: true,
    rtt: RTT,
};

pub(crate) struct Script {
    pub(crate) control: WindowState,
    pub(crate) controller: Box<dyn Controller>,
    pub(crate) now: Instant,
    pub(crate) delivered: u64,
    /// The bytes delivered when the current round began, minus one: the state of packets from the previous round.
    before_round: u64,
    in_recovery: bool,
    /// Whether the application limited sending when the lost packets left.
    pub(crate) lose_limited: bool,
}

impl Script {
    pub(crate) fn new(name: &str, seed: u64) -> Self {
        let mut controller =
            create(name, &ControlOptions { seed, ..ControlOptions::default() }).expect("a name from the catalogue");
        let mut control = WindowState::new(MSS, 10 * MSS);
        crate::simulator::set_codepoint(&mut control, &*controller);
        controller.on_established(&mut control, Instant::ZERO, Some(RTT));
        Script {
            control,
            controller,
            now: Instant::ZERO,
            delivered: 0,
            before_round: 0,
            in_recovery: false,
            lose_limited: false,
        }
    }

    pub(crate) fn ack(&mut self, step: Step) {
        self.now += step.wait;
        let prior = step.sent_after.unwrap_or(if step.new_round { self.delivered } else { self.before_round });
        self.delivered += step.acked;
        if step.new_round {
            self.before_round = self.delivered.saturating_sub(1);
        }
        let mut ack = full_window_ack(self.now, step.acked, step.rtt, step.in_flight + step.acked);
        ack.delivered_bytes = self.delivered;
        ack.in_flight_bytes = step.in_flight;
        ack.lost_bytes = step.lost;
        ack.in_recovery = self.in_recovery;
        ack.round_start = step.new_round;
        ack.cwnd_limited = step.cwnd_limited;
        ack.rate = Some(DeliveryRate {
            delivered_bytes: step.rate_bps / 8 / 10,
            interval: RTT,
            prior_delivered_bytes: prior,
            lost_bytes: step.lost_since,
            in_flight_bytes: step.sent_with,
            app_limited: step.app_limited,
        });
        self.controller.on_ack(&mut self.control, &ack);
    }

    /// Runs `count` equal rounds.
    pub(crate) fn rounds(&mut self, count: usize, step: Step) {
        for _ in 0..count {
            self.ack(step);
        }
    }

    /// Runs a round of `samples` acknowledgements with this smallest round-trip time in milliseconds. The last one ends the
    /// round.
    pub(crate) fn round(&mut self, milliseconds: u64, samples: u32) {
        for sample in 1..=samples {
            let rtt = Duration::from_millis(if sample == 1 { milliseconds } else { milliseconds + 20 });
            self.ack(Step { wait: Duration::ZERO, rtt, new_round: sample == samples, ..STEP });
        }
    }

    /// A flow in congestion avoidance with this window.
    pub(crate) fn avoiding(name: &str, segments: u64) -> Self {
        let mut script = Script::new(name, 0);
        script.control.cwnd_bytes = segments * MSS;
        script.control.ssthresh_bytes = 2 * MSS;
        script
    }

    /// Repeats an acknowledgement until the state is, or is no longer, `state`; returns the number of acknowledgements.
    pub(crate) fn until(&mut self, state: u32, is: bool, step: Step) -> usize {
        for count in 0..10_000 {
            if (self.state() == state) == is {
                return count;
            }
            self.ack(step);
        }
        panic!("still in state {}", self.state());
    }

    /// Reports the loss of a packet of one segment that was sent with these bytes in flight and lost.
    pub(crate) fn lose(&mut self, in_flight: u64, lost_bytes: u64) {
        let packet = PacketState {
            sent_at: self.now,
            bytes: MSS,
            delivered_bytes: self.delivered,
            in_flight_bytes: in_flight,
            lost_bytes,
            app_limited: self.lose_limited,
            ..PacketState::default()
        };
        self.controller.on_packet_lost(&mut self.control, self.now, &packet);
    }

    pub(crate) fn enter_recovery(&mut self, in_flight_bytes: u64) {
        self.in_recovery = true;
        let congestion =
            CongestionEvent { now: self.now, in_flight_bytes, lost_bytes: MSS, ecn: false, persistent: false };
        self.controller.on_congestion(&mut self.control, &congestion);
    }

    pub(crate) fn leave_recovery(&mut self, undone: bool) {
        self.in_recovery = false;
        let exit = RecoveryExit { now: self.now, in_flight_bytes: 0, undone };
        self.controller.on_recovery_exit(&mut self.control, &exit);
    }

    pub(crate) fn time_out(&mut self) {
        let timeout = Timeout { now: self.now, in_flight_bytes: 10 * MSS, repeated: false };
        self.controller.on_timeout(&mut self.control, &timeout);
    }

    /// Sends the first packet after a pause of the application.
    pub(crate) fn send_after_idling(&mut self, pause: Duration) {
        self.now += pause;
        let packet = PacketState {
            sent_at: self.now,
            bytes: MSS,
            in_flight_bytes: MSS,
            app_limited: true,
            delivered_bytes: self.delivered,
            ..PacketState::default()
        };
        self.controller.on_sent(&mut self.control, &packet);
    }

    pub(crate) fn value(&self, name: &str) -> f64 {
        let mut values = Vec::new();
        self.controller.inspect(&mut values);
        values.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no value {name}")).1
    }

    pub(crate) fn state(&self) -> u32 {
        self.value("state") as u32
    }

    pub(crate) fn window(&self) -> u64 {
        self.control.cwnd_bytes / MSS
    }
}
