//! Shared Ethernet against numbers worked out by hand from the rules in `src/ethernet.rs`.

mod common;

use common::{Recorder, Source, World};
use fullpipe_network::{ArpSpecification, EthernetSpecification, Fifo, Limit, Network, QueueDiscipline};
use fullpipe_record::DropReason;
use fullpipe_units::{Duration, Instant, NodeId, Rate};

const NEVER: Instant = Instant::NEVER;

/// The segment of the TCP-UDP study: 1 Gbit/s, 2 us, half duplex, 10 240 packets above a device queue of 100.
fn study(hosts: &[NodeId], half_duplex: bool, seed: u64, fixed_ms: &[u64]) -> EthernetSpecification {
    EthernetSpecification {
        hosts: hosts.iter().map(|node| (*node, format!("host-{node}"))).collect(),
        seed,
        rate: Rate::from_megabits_per_second(1000),
        delay: Duration::from_micros(2),
        half_duplex,
        mtu_bytes: 1500,
        framing_bytes: 18,
        min_frame_bytes: 64,
        interframe_gap_bits: 96,
        slot: Duration::from_micros(1),
        backoff_ceiling: 10,
        max_retries: 1000,
        device_queue: Limit::Packets(100),
        disciplines: hosts
            .iter()
            .map(|_| Box::new(Fifo::new(Limit::Packets(10_240))) as Box<dyn QueueDiscipline>)
            .collect(),
        arp: ArpSpecification {
            enabled: true,
            pending_packets: 3,
            request_jitter: Duration::from_millis(10),
            request_jitter_step: Duration::from_millis(1),
            fixed_delays: fixed_ms.iter().map(|ms| Duration::from_millis(*ms)).collect(),
            reply_timeout: Duration::from_secs(1),
            max_requests: 3,
        },
    }
}

fn udp(from: NodeId, to: NodeId, ip_bytes: u32, interval_us: u64, count: u64) -> Source {
    let interval = Duration::from_micros(interval_us);
    Source { from, to, ip_bytes, start: Instant::ZERO, interval, count, tcp: false }
}

fn two_hosts() -> (Network<Recorder>, NodeId, NodeId) {
    let mut network = Network::new(Recorder::default());
    let a = network.add_node(false);
    let b = network.add_node(false);
    (network, a, b)
}

/// Runs to the end; nothing may be left.
fn run(network: &mut Network<Recorder>, world: &mut World) {
    world.declare(network);
    network.finish();
    network.run(world, NEVER, NEVER);
    assert_eq!(network.arena.live_packets().count(), 0, "nothing is left behind");
    network.observer.check_conservation(&network.remaining());
}

#[test]
fn the_first_packets_of_the_published_run_come_at_their_nanosecond() {
    // A sends 56 bytes at 0; B answers 56 bytes upon reception. Delays of requests: 7 ms at A, 2 ms at B.
    //   7 000 000  A's request, 64 bytes = 512 ns, heard 2 us later at 7 002 512
    //              B answers, medium occupied: one slot: 7 003 512 to 7 004 024, heard 7 006 024
    //              A's packet of 74 bytes: one slot: 7 007 024 to 7 007 616, heard 7 009 616.
    //   B's answer waits for B's own request, which it learned nothing for: 2 ms later, 9 009 616, by the same steps
    //   + 512 + 2000 + 1000 + 512 + 2000 + 1000 + 592 + 2000 = 9616: 9 019 232.
    let (mut network, a, b) = two_hosts();
    network.add_ethernet(study(&[a, b], true, 1, &[7, 2]));
    let mut world = World::new(vec![udp(a, b, 56, 1, 1)]);
    world.echo_bytes = Some(56);
    run(&mut network, &mut world);
    let times: Vec<u64> = world.received.iter().map(|(_, _, at)| at.as_nanos()).collect();
    assert_eq!(times, [7_009_616, 9_019_232]);
}

#[test]
fn a_lone_sender_needs_14_74_us_per_packet() {
    // Service of 1500 bytes = 1518 on the medium: 12.144 us, gap 0.096, first back-off 1 us (1.096 us after the end:
    // still occupied), second 1 or 2 us, equally likely: at 2.096 or 3.096 us it is idle. So 14.24 or 15.24 us, mean
    // 14.74, standard deviation 0.5. Known from 7.006024 ms on (see above): packets 0, 1, 2 waited, packets from number
    // 3504 (7.008 ms) come through, 3 to 3503 are dropped.
    let (mut network, a, b) = two_hosts();
    network.add_ethernet(study(&[a, b], true, 5321, &[7]));
    let mut world = World::new(vec![udp(a, b, 1500, 2, 10_000)]);
    run(&mut network, &mut world);
    assert_eq!(world.received.len(), 3 + 6496);
    assert_eq!(network.observer.drops().into_iter().collect::<Vec<_>>(), [(DropReason::Resolution, 3501)]);
    let starts: Vec<u64> = network.observer.transmissions().filter(|t| t.2 == 1518).map(|t| t.4.as_nanos()).collect();
    let mut long = 0;
    for pair in starts.windows(2) {
        match pair[1] - pair[0] {
            14_240 => (),
            15_240 => long += 1,
            other => panic!("service of {other} ns"),
        }
    }
    // Binomial(6498, 1/2): mean 3249, standard deviation 40.3; four of them on either side.
    assert!((3088..=3410).contains(&long), "{long}");
}
