//! A user-defined congestion control: additive increase, multiplicative decrease (AIMD) with any pair of constants.
//! Here it competes with CUBIC on one bottleneck.
//!
//!     cargo run -p fullpipe --example congestion_control

use fullpipe::congestion::{Ack, CongestionEvent, Controller, Timeout, WindowState};
use fullpipe::{Error, Simulation};

/// The window grows by `increase` segments per round trip, and a loss multiplies it by `decrease`. Reno is (1, 0.5).
#[derive(Debug)]
struct Aimd {
    increase: f64,
    decrease: f64,
    /// The part of the window's growth that is less than one byte.
    fraction: f64,
}

impl Aimd {
    fn new(increase: f64, decrease: f64) -> Self {
        Aimd { increase, decrease, fraction: 0.0 }
    }

    fn reduced(&self, bytes: u64, control: &WindowState) -> u64 {
        ((bytes as f64 * self.decrease) as u64).max(2 * control.mss_bytes)
    }
}

impl Controller for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        // During recovery the transport sets the window. If the flow does not use the whole window, it does not grow.
        if ack.in_recovery || !ack.cwnd_limited {
            return;
        }
        if control.cwnd_bytes < control.ssthresh_bytes {
            control.cwnd_bytes += ack.acked_bytes;
            return;
        }
        // One window of bytes is acknowledged per round trip, so each byte adds increase x MSS / window.
        let growth = self.increase * control.mss_bytes as f64 / control.cwnd_bytes as f64;
        self.fraction += ack.acked_bytes as f64 * growth;
        let whole = self.fraction as u64;
        self.fraction -= whole as f64;
        control.cwnd_bytes += whole;
    }

    fn on_congestion(&mut self, control: &mut WindowState, _congestion: &CongestionEvent) {
        // During fast recovery the transport reduces the window to this value.
        control.ssthresh_bytes = self.reduced(control.cwnd_bytes, control);
    }

    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        if !timeout.repeated {
            control.ssthresh_bytes = self.reduced(timeout.in_flight_bytes, control);
        }
    }
}

const WORLD: &str = r#"
    duration = "60s"

    [topology]
    kind = "dumbbell"
    pairs = 2
    access = { rate = "100Mbit/s", delay = "1ms" }
    bottleneck = { rate = "20Mbit/s", delay = "23ms", queue = "60kB" }

    [[flow]]
    name = "cubic"
    from = "left1"
    to = "right1"
    congestion = "cubic"

    [[flow]]
    name = "mine"
    from = "left2"
    to = "right2"
    start = "500ms"
"#;

fn main() -> Result<(), Error> {
    println!("increase   decrease   CUBIC beside it        it   retransmitted");
    for (increase, decrease) in [(0.3, 0.7), (1.0, 0.5), (1.0, 0.875), (4.0, 0.5)] {
        let outcome = Simulation::new(WORLD).control("mine", move |_| Box::new(Aimd::new(increase, decrease))).run()?;
        assert!(outcome.verdict().passed(), "{}", outcome.verdict());

        let cubic = outcome.flow("cubic").expect("the scenario has this flow");
        let mine = outcome.flow("mine").expect("the scenario has this flow");
        assert_eq!(mine.congestion, Some("aimd"));
        println!(
            "{increase:>8}   {decrease:>8}   {:>8.2} Mbit/s   {:>5.2} Mbit/s   {:>8}",
            cubic.goodput_bps.unwrap_or(0.0) / 1e6,
            mine.goodput_bps.unwrap_or(0.0) / 1e6,
            mine.retransmitted_packets.unwrap_or(0),
        );
    }
    Ok(())
}
