//! Controls that set their own rate: the rate applies from the transmission at which it was set, and everything arrives.

use crate::common::*;
use fullpipe_congestion::catalogue::{ControlOptions, DECLARATIONS, create};
use fullpipe_congestion::{Ack, CongestionEvent, ControlRequirements, Controller, PacketState, Timeout, WindowState};
use fullpipe_tcp::{Config, Connection};
use fullpipe_units::{Duration, Instant, Rate};
use std::sync::Arc;

/// Paces at 8 Mbit/s, and at 4 after an idle time.
#[derive(Debug)]
struct Slower;

impl Controller for Slower {
    fn name(&self) -> &'static str {
        "slower"
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { pacing: true, on_sent: true, own_recovery: true, ..ControlRequirements::default() }
    }

    fn on_established(&mut self, control: &mut WindowState, _now: Instant, _rtt: Option<Duration>) {
        control.pacing_bps = 8_000_000;
        control.send_quantum_bytes = 1;
    }

    fn on_sent(&mut self, control: &mut WindowState, packet: &PacketState) {
        if packet.in_flight_bytes == packet.bytes && packet.delivered_bytes > 0 {
            control.pacing_bps = 4_000_000;
        }
    }

    fn on_ack(&mut self, _control: &mut WindowState, _ack: &Ack) {}

    fn on_congestion(&mut self, _control: &mut WindowState, _congestion: &CongestionEvent) {}

    fn on_timeout(&mut self, _control: &mut WindowState, _timeout: &Timeout) {}
}

/// Sets the segment size to zero at the first acknowledgment.
#[derive(Debug)]
struct NoSegments;

impl Controller for NoSegments {
    fn name(&self) -> &'static str {
        "no-segments"
    }

    fn on_ack(&mut self, control: &mut WindowState, _ack: &Ack) {
        control.mss_bytes = 0;
    }

    fn on_congestion(&mut self, _control: &mut WindowState, _congestion: &CongestionEvent) {}

    fn on_timeout(&mut self, _control: &mut WindowState, _timeout: &Timeout) {}
}

#[test]
fn control_that_sets_the_segment_size_to_zero_stops_only_its_flow() {
    let config = Config { mss_bytes: 1000, ..Config::linux() };
    let mut script = Script::client_with(config, Box::new(NoSegments), ms(100));
    script.write(100_000);
    assert_eq!(script.sent().len(), 10);
    // `Script` requests single segments; nine are outstanding, and the window has room for a tenth.
    script.ack(1_000, &[]);
    assert!(script.sent().is_empty());
    assert_eq!(script.connection.poll_burst(script.now).segments, 0);
}

#[test]
fn pacing_rate_set_at_a_transmission_applies_to_the_next() {
    let config = Config { mss_bytes: 1000, nagle: false, tail_loss_probe: false, ..Config::linux() };
    let mut script = Script::client_with(config, Box::new(Slower), ms(100));
    script.write(1_000);
    assert_eq!(script.sent().len(), 1);
    script.advance(ms(100));
    script.ack(1_000, &[]);
    assert_eq!(script.connection.inspect().pacing_bps, 8_000_000);
    script.advance(Duration::from_secs(10));
    script.write(3_000);
    // The first packet takes one millisecond at the rate at its transmission, the second two.
    assert_eq!(script.connection.inspect().pacing_bps, 8_000_000);
    let idle_end = script.now;
    assert_eq!(script.sent().len(), 1);
    assert_eq!(script.connection.inspect().pacing_bps, 4_000_000);
    for milliseconds in [1, 3] {
        script.timer();
        assert_eq!(script.now, idle_end + ms(milliseconds));
        assert_eq!(script.sent().len(), 1);
    }
}

#[test]
fn every_control_completes_a_transfer_over_a_lossy_path() {
    // 10 Mbit/s, 20 ms, a short queue, 3 % loss in both directions.
    for name in DECLARATIONS.iter().map(|entry| entry.name) {
        let config = Config::linux();
        let mut pair = Pair::new([config.clone(), config.clone()], [1, 2], 1);
        let control = create(name, &ControlOptions::default()).expect("a name of the catalogue");
        pair.ends[0] = Connection::client(Arc::new(config), control, 1, Instant::ZERO);
        for path in &mut pair.paths {
            path.rate = Some(Rate::from_megabits_per_second(10));
            path.queue = ms(10);
            path.loss = 0.03;
        }
        pair.applications[0] = Application::new(2_000_000);
        assert!(pair.run(Duration::from_secs(500)), "{name}");
        assert_eq!(pair.applications[1].read, 2_000_000, "{name}");
        assert!(pair.applications[1].peer_finished, "{name}");
    }
}
