//! A user-defined observer: a histogram of one-way delays for each flow, printed as bars.
//!
//!     cargo run -p fullpipe --example observer

use fullpipe::record::{Observer, PacketView};
use fullpipe::units::{FlowId, Instant};
use fullpipe::{Error, Simulation};
use std::collections::BTreeMap;

/// The number of packets by flow and by one-way delay, in steps of 5 ms.
#[derive(Debug, Default)]
struct Delays {
    flows: BTreeMap<FlowId, BTreeMap<u64, u64>>,
}

const STEP_NS: u64 = 5_000_000;

impl Observer for Delays {
    fn on_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        let step = now.saturating_since(sent).as_nanos() / STEP_NS;
        *self.flows.entry(packet.flow).or_default().entry(step).or_default() += 1;
    }
}

const WORLD: &str = r#"
    duration = "20s"

    [topology]
    kind = "dumbbell"
    pairs = 2
    access = { rate = "100Mbit/s", delay = "1ms" }
    bottleneck = { rate = "10Mbit/s", delay = "18ms", queue = "50kB" }

    [[flow]]
    name = "download"
    from = "left1"
    to = "right1"

    [[flow]]
    name = "call"
    from = "left2"
    to = "right2"
    protocol = "udp"
    workload = "constant-rate"
    payload = "160B"
    interval = "20ms"
"#;

fn main() -> Result<(), Error> {
    let outcome = Simulation::new(WORLD).observe(Delays::default()).run()?;
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());

    let delays: &Delays = outcome.observers().next().expect("it was plugged in above");
    for (flow, steps) in &delays.flows {
        let packets: u64 = steps.values().sum();
        println!("{}: {packets} packets", outcome.flow_name(*flow).expect("a flow of the run"));
        for (step, count) in steps {
            let part = *count as f64 / packets as f64;
            let bar = "#".repeat((part * 60.0).round() as usize);
            println!("  {:>3} to {:>3} ms  {:>5.1} %  {bar}", step * 5, step * 5 + 5, part * 100.0);
        }
    }
    Ok(())
}
