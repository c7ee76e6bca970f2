//! A user-defined queue discipline: CHOKe, which limits unresponsive flows without state per flow. An arriving packet
//! is compared with a random packet of the queue. If both belong to the same flow, both are dropped. (Pan, Prabhakar
//! and Psounis, INFOCOM 2000; here with a fixed threshold, without RED.)
//!
//!     cargo run -p fullpipe --example queue_discipline

use fullpipe::network::{Limit, QueueDiscipline, QueuedPacket};
use fullpipe::units::{Instant, RandomStream};
use fullpipe::{Error, Simulation};
use std::collections::VecDeque;

#[derive(Debug)]
struct Choke {
    limit: Limit,
    /// The queue length from which packets are compared.
    threshold_packets: usize,
    random: RandomStream,
    queue: VecDeque<QueuedPacket>,
    bytes: u64,
}

impl Choke {
    fn new(limit: Limit, threshold_packets: usize, random: RandomStream) -> Self {
        Choke { limit, threshold_packets, random, queue: VecDeque::new(), bytes: 0 }
    }
}

impl QueueDiscipline for Choke {
    fn name(&self) -> &'static str {
        "choke"
    }

    fn enqueue(
        &mut self,
        _now: Instant,
        packet: QueuedPacket,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        if self.queue.len() >= self.threshold_packets.max(1) {
            let drawn = self.random.uniform_below(self.queue.len() as u64) as usize;
            if self.queue[drawn].key == packet.key {
                // `early`: the queue had room for the packets.
                let victim = self.queue.remove(drawn).expect("the drawn index is in the queue");
                self.bytes -= u64::from(victim.wire_bytes);
                dropped.push(QueuedPacket { early: true, ..victim });
                dropped.push(QueuedPacket { early: true, ..packet });
                return Ok(());
            }
        }
        if !self.limit.admits(self.packets(), self.bytes, packet.wire_bytes) {
            return Err(packet);
        }
        self.bytes += u64::from(packet.wire_bytes);
        self.queue.push_back(packet);
        Ok(())
    }

    fn dequeue(&mut self, _now: Instant, _dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        let packet = self.queue.pop_front()?;
        self.bytes -= u64::from(packet.wire_bytes);
        Some(packet)
    }

    fn packets(&self) -> u64 {
        self.queue.len() as u64
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Eight TCP flows, and UDP datagrams at twice the rate of the bottleneck.
const WORLD: &str = r#"
    duration = "20s"

    [topology]
    kind = "dumbbell"
    pairs = 9
    access = { rate = "100Mbit/s", delay = "1ms" }
    bottleneck = { rate = "10Mbit/s", delay = "10ms", queue = "100packets" }

    [[flow]]
    name = "download"
    count = 8
    from = "left*"
    to = "right*"

    [[flow]]
    name = "flood"
    from = "left9"
    to = "right9"
    protocol = "udp"
    workload = "constant-rate"
    payload = "1000B"
    interval = "400us"
"#;

fn main() -> Result<(), Error> {
    println!("bottleneck   eight downloads      the flood   dropped   mean wait");
    for discipline in ["drop-tail", "CHOKe"] {
        let mut simulation = Simulation::new(WORLD);
        if discipline == "CHOKe" {
            simulation = simulation
                .queue("bottleneck", |context| Box::new(Choke::new(context.limit, 20, context.random_stream("choke"))));
        }
        let outcome = simulation.run()?;
        assert!(outcome.verdict().passed(), "{}", outcome.verdict());

        let goodput = |name: &str| outcome.flow(name).and_then(|row| row.goodput_bps).unwrap_or(0.0) / 1e6;
        let downloads: f64 = (1..=8).map(|n| goodput(&format!("download.{n}"))).sum();
        let bottleneck = outcome.link("bottleneck").expect("the scenario has this link");
        println!(
            "{discipline:<10}   {downloads:>8.2} Mbit/s   {:>5.2} Mbit/s   {:>7}   {:>6.1} ms",
            goodput("flood"),
            bottleneck.counters.queue_drops,
            bottleneck.mean_queue_delay_s().unwrap_or(0.0) * 1e3,
        );
    }
    Ok(())
}
