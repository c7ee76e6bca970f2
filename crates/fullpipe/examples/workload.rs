//! A user-defined workload: datagrams whose rate is a sawtooth. It rises from the lowest to the highest rate within a
//! period, then returns at once. The example finds the rate at which a link begins to drop packets.
//!
//!     cargo run -p fullpipe --example workload

use fullpipe::units::{Duration, Instant};
use fullpipe::workload::{Application, Io, MetricValue, Progress};
use fullpipe::{Error, Simulation};

/// The sender; its rate rises linearly in each period.
#[derive(Debug)]
struct Sawtooth {
    lowest_bps: f64,
    highest_bps: f64,
    period: Duration,
    started: Instant,
}

impl Sawtooth {
    const PAYLOAD_BYTES: u32 = 1000;

    fn rate_bps(&self, now: Instant) -> f64 {
        let age = now.saturating_since(self.started).as_nanos() % self.period.as_nanos();
        let part = age as f64 / self.period.as_nanos() as f64;
        self.lowest_bps + (self.highest_bps - self.lowest_bps) * part
    }
}

impl Application for Sawtooth {
    fn on_start(&mut self, io: &mut dyn Io) {
        self.started = io.now();
        self.on_wake(io);
    }

    fn on_wake(&mut self, io: &mut dyn Io) {
        io.send_datagram(Sawtooth::PAYLOAD_BYTES);
        let gap_s = f64::from(8 * Sawtooth::PAYLOAD_BYTES) / self.rate_bps(io.now());
        io.wake_at(io.now().saturating_add(Duration::from_secs_f64(gap_s)));
    }
}

/// The receiver; it records the longest time between two datagrams.
#[derive(Debug, Default)]
struct Meter {
    progress: Progress,
    datagrams: u64,
    longest_gap: Duration,
}

impl Application for Meter {
    fn on_datagram(&mut self, payload_bytes: u32, io: &mut dyn Io) {
        if let Some(last) = self.progress.last_received {
            self.longest_gap = self.longest_gap.max(io.now().saturating_since(last));
        }
        self.datagrams += 1;
        self.progress.received_bytes += u64::from(payload_bytes);
        self.progress.last_received = Some(io.now());
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    // The metrics in `figures.csv` and `Outcome::figure_rows`. Each name ends with its unit.
    fn metric_values(&self, _end: Instant) -> Vec<MetricValue> {
        vec![
            MetricValue { name: "datagrams", value: self.datagrams as f64 },
            MetricValue { name: "longest_gap_s", value: self.longest_gap.as_secs_f64() },
        ]
    }
}

/// The user-defined workload replaces the workload of the flow. Neither ends before the run.
const WORLD: &str = r#"
    duration = "20s"

    [topology]
    kind = "chain"
    link = [{ rate = "10Mbit/s", delay = "5ms", queue = "20packets" }]

    [[flow]]
    name = "saw"
    from = "source"
    to = "sink"
    protocol = "udp"
    workload = "constant-rate"
    payload = "1000B"
    interval = "1ms"
"#;

fn main() -> Result<(), Error> {
    println!("teeth up to   goodput         received   longest gap   dropped");
    for highest_mbps in [5.0, 9.0, 12.0, 20.0] {
        let outcome = Simulation::new(WORLD)
            .workload("saw", move |_| {
                let (lowest_bps, highest_bps) = (1e6, highest_mbps * 1e6);
                let period = Duration::from_secs(2);
                let saw = Sawtooth { lowest_bps, highest_bps, period, started: Instant::ZERO };
                [Box::new(saw), Box::new(Meter::default())]
            })
            .run()?;
        assert!(outcome.verdict().passed(), "{}", outcome.verdict());

        let figure = |name: &str| outcome.figure_rows().find(|row| row.name == name).map(|row| row.value);
        println!(
            "{highest_mbps:>4} Mbit/s   {:>5.2} Mbit/s   {:>9}   {:>8.1} ms   {:>7}",
            outcome.flow("saw").and_then(|row| row.goodput_bps).unwrap_or(0.0) / 1e6,
            figure("datagrams").unwrap_or(0.0),
            figure("longest_gap_s").unwrap_or(0.0) * 1e3,
            outcome.link("link1").expect("the scenario has this link").counters.queue_drops,
        );
    }
    Ok(())
}
