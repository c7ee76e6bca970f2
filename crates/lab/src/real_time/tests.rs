//! Tests of the driver on a simulated machine, whose clock and frames the test sets.

mod hostile;
mod icmp;
mod nat;
mod world;

use super::driver::Driver;
use super::gateway::Gateway;
use crate::world::{RealHost, RealHosts};
use crate::{Options, Outcome, Plugins, PreparedRun, assemble};
use bytes::Bytes;
use etherparse::{Ipv4Header, UdpHeader, ip_number};
use fullpipe_emulate::{Arrival, Lateness, LatenessLimits, Machine};
use fullpipe_scenario::description::StallPolicy;
use fullpipe_units::{Duration, Instant, NodeId};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use world::{FAST, World};

fn micros(number: u64) -> Duration {
    Duration::from_nanos(number * 1000)
}

fn at(micros_since_begin: u64) -> Instant {
    Instant::ZERO + micros(micros_since_begin)
}

/// A simulated machine whose clock advances only in waits.
#[derive(Default)]
struct MadeUp {
    clock: Instant,
    /// Frames that will arrive: the time at which each can be read, and the arrival.
    coming: VecDeque<(Instant, Arrival)>,
    /// Waits, by number, that take longer than requested, with the additional time.
    oversleeps: BTreeMap<u32, Duration>,
    waits: u32,
    drops: u64,
    /// Time, port and bytes of each sent frame.
    sent: Vec<(Instant, usize, Vec<u8>)>,
}

impl Machine for MadeUp {
    fn now(&self) -> Instant {
        self.clock
    }

    fn wait(&mut self, deadline: Instant) -> io::Result<()> {
        let readable = self.coming.front().map_or(Instant::NEVER, |(readable, _)| *readable);
        let more = self.oversleeps.get(&self.waits).copied().unwrap_or(Duration::ZERO);
        self.waits += 1;
        self.clock = self.clock.max(deadline.min(readable)) + more;
        Ok(())
    }

    fn receive(&mut self, arrivals: &mut Vec<Arrival>) -> io::Result<()> {
        while self.coming.front().is_some_and(|(readable, _)| *readable <= self.clock) {
            arrivals.extend(self.coming.pop_front().map(|(_, arrival)| arrival));
        }
        Ok(())
    }

    fn send(&mut self, port: usize, frame: Vec<u8>) {
        self.sent.push((self.clock, port, frame));
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn set_clock_back(&mut self, by: Duration) {
        self.clock = Instant::ZERO + self.clock.saturating_since(Instant::ZERO).saturating_sub(by);
    }

    fn take_drops(&mut self) -> io::Result<u64> {
        Ok(std::mem::take(&mut self.drops))
    }

    fn is_done(&self) -> bool {
        false
    }
}

/// A frame with a UDP datagram of 97 bytes in an IPv4 packet of 125 bytes: exactly 100 us at 10 Mbit/s.
fn frame(from: u8, to: u8, port: u16) -> Bytes {
    let payload = [7_u8; 97];
    let (source, destination) = ([10, 0, 0, from], [10, 0, 0, to]);
    let mut ip = Ipv4Header::new(8 + 97, 64, ip_number::UDP, source, destination).expect("a short packet");
    ip.header_checksum = ip.calc_header_checksum();
    let udp = UdpHeader::with_ipv4_checksum(5000, port, &ip, &payload).expect("a short datagram");
    let ethernet = [2, 0, 0, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0x08, 0x00];
    let bytes = [&ethernet[..], &ip.to_bytes(), &udp.to_bytes(), &payload].concat();
    assert_eq!(bytes.len(), 14 + 125);
    bytes.into()
}

fn arrival(stamp_micros: u64, port: usize, bytes: Bytes) -> Arrival {
    Arrival { port, at: at(stamp_micros), bytes }
}

struct Ran {
    machine: MadeUp,
    lateness: Lateness,
    outcome: Outcome,
    journal: Vec<(Instant, usize, Vec<u8>)>,
    refused: fullpipe_archive::RefusedFrames,
    answered: fullpipe_archive::IcmpRecord,
}

/// Runs two real hosts.
fn run(machine: MadeUp, after_stall: StallPolicy) -> Ran {
    run_world(&World::pair(""), machine, after_stall)
}

/// Runs any network whose first two hosts are real.
fn run_world(world: &World, machine: MadeUp, after_stall: StallPolicy) -> Ran {
    run_hosts(world, 2, machine, after_stall)
}

/// Runs any network whose first `hosts` hosts are real.
fn run_hosts(world: &World, hosts: u32, machine: MadeUp, after_stall: StallPolicy) -> Ran {
    let scenario =
        Arc::new(fullpipe_scenario::load(&world.to_string(), "test", &[]).expect("the scenario is valid").scenario);
    let mut prepared =
        assemble::assemble_addressed(Arc::clone(&scenario), &Options::default(), Plugins::default()).expect("a world");
    let nodes: Vec<NodeId> = (0..hosts).map(NodeId).collect();
    let host = |node: &NodeId| RealHost { node: *node, mac: [2, 1, 0, 0, 0, 0], gateway_mac: [2, 0, 0, 0, 0, 0] };
    prepared
        .world
        .set_real(&mut prepared.network, RealHosts::new(nodes.iter().map(host).collect(), scenario.nodes.len()));
    let mut gateway = Gateway::new(&scenario, &prepared.network, nodes);
    let mut lateness = Lateness::new(LatenessLimits { stall_after: micros(10_000), ..LatenessLimits::default() });
    let mut machine = machine;
    let mut journal = Vec::new();
    let mut keep = |entered, port, bytes: &Bytes| {
        journal.push((entered, port, bytes.to_vec()));
        Ok(())
    };
    let driver = Driver {
        prepared: &mut prepared,
        gateway: &mut gateway,
        machine: &mut machine,
        lateness: &mut lateness,
        after_stall,
        journal: Some(&mut keep),
        each: &mut |_, _| false,
    };
    driver.run().expect("a machine without faults");
    let refused = gateway.refused;
    let PreparedRun { world, network, probes, scenario, .. } = prepared;
    let answered = world.real().expect("real hosts").answers.sent.clone();
    let outcome = Outcome::new(scenario, world, network, probes, false);
    Ran { machine, lateness, outcome, journal, refused, answered }
}

fn with(frames: impl IntoIterator<Item = (u64, Arrival)>) -> MadeUp {
    MadeUp {
        coming: frames.into_iter().map(|(readable, arrival)| (at(readable), arrival)).collect(),
        ..MadeUp::default()
    }
}

/// The frame is sent after 100 us of transmission and 5 ms of propagation from its timestamp, with the same bytes after
/// the Ethernet header.
#[test]
fn packet_due_time_is_relative_to_its_timestamp() {
    // Read immediately, or 2 ms late: the due time is relative to the timestamp.
    for readable in [1000, 3000] {
        let ran = run(with([(readable, arrival(1000, 0, frame(1, 2, 9)))]), StallPolicy::CatchUp);
        let [(sent, port, bytes)] = ran.machine.sent.as_slice() else { panic!("{:?}", ran.machine.sent) };
        assert_eq!((*sent, *port), (at(6100), 1), "read at {readable} us");
        assert_eq!(bytes[14..], frame(1, 2, 9)[14..]);
        assert_eq!(ran.lateness.packets().max_nanos, 0);
        assert_eq!(ran.lateness.arrivals().max_nanos, 0);
        assert!(ran.lateness.result().is_on_time());
        let row = ran.outcome.flow("datagrams").expect("the flow");
        assert_eq!((row.counters.tx_packets, row.counters.rx_packets, row.counters.rx_bytes), (1, 1, 125));
        assert!(ran.outcome.verdict().passed(), "{}", ran.outcome.verdict());
    }
}

/// Two simultaneous packets: the second waits for the first.
#[test]
fn link_with_simultaneous_arrivals_keeps_its_rate() {
    let pair = [(1000, arrival(1000, 0, frame(1, 2, 9))), (1000, arrival(1000, 0, frame(1, 2, 9)))];
    let ran = run(with(pair), StallPolicy::CatchUp);
    let sent: Vec<Instant> = ran.machine.sent.iter().map(|(sent, _, _)| *sent).collect();
    assert_eq!(sent, [at(6100), at(6200)]);
}

/// The model has reached 3 ms (a packet of the other host was read then) when a frame with the timestamp 2 ms is read.
#[test]
fn arrival_with_a_past_timestamp_enters_at_the_models_clock_and_is_late() {
    let frames = [(3000, arrival(3000, 1, frame(2, 1, 77))), (3500, arrival(2000, 0, frame(1, 2, 9)))];
    let ran = run(with(frames), StallPolicy::CatchUp);
    let mut sent: Vec<_> = ran.machine.sent.iter().map(|(sent, port, _)| (*sent, *port)).collect();
    sent.sort();
    assert_eq!(sent, [(at(8100), 0), (at(8100), 1)]);
    assert_eq!(ran.journal.iter().map(|(entered, ..)| *entered).collect::<Vec<_>>(), [at(3000), at(3000)]);
    assert!(ran.lateness.arrivals().max_nanos.abs_diff(1_000_000) < 1000, "{:?}", ran.lateness.arrivals());
}

/// The machine sleeps 50 ms longer than requested, at 1.1 ms, with a packet due at 6.1 ms.
#[test]
fn stall_is_reported_and_handled_as_configured() {
    let stalled = || MadeUp {
        // The first wait ends with the frame. The second should end at 6 ms, 5 ms later.
        oversleeps: BTreeMap::from([(1, micros(50_000))]),
        ..with([(1000, arrival(1000, 0, frame(1, 2, 9)))])
    };
    let ran = run(stalled(), StallPolicy::CatchUp);
    assert_eq!(ran.lateness.stalls(), [micros(50_000)]);
    assert_eq!(ran.machine.sent[0].0, at(56_000));
    assert!(ran.lateness.packets().max_nanos.abs_diff(49_900_000) < 50_000, "{:?}", ran.lateness.packets());
    let reasons = ran.lateness.result().reasons;
    assert!(reasons.iter().any(|reason| reason.contains("stalled 1 time")), "{reasons:?}");

    let ran = run(stalled(), StallPolicy::Pause);
    assert_eq!(ran.lateness.stalls(), [micros(50_000)]);
    assert_eq!(ran.machine.sent[0].0, at(6100), "by a clock that stopped during the stall");
    assert_eq!(ran.lateness.packets().max_nanos, 0);
    assert!(!ran.lateness.result().is_on_time());
}

/// A UE in a cell that is idle except for one packet.
fn cell() -> World {
    World::new("100ms")
        .hosts(&["phone", "server"])
        .routers(&["gateway"])
        .link("server", "gateway", FAST)
        .entry("lte", "name = 'access', gateway = 'gateway', cell = [{}], ue = [{ host = 'phone', distance = 50 }]")
        .datagrams("server", "phone", "")
}

/// Subframes are executed when they begin. If the machine sleeps over their starts, each has its own lateness.
#[test]
fn each_subframe_has_its_own_lateness() {
    let frames = || [(1000, arrival(1000, 1, frame(2, 1, 9)))];
    let ran = run_world(&cell(), with(frames()), StallPolicy::CatchUp);
    let on_time = ran.lateness.subframes();
    assert_eq!(on_time.max_nanos, 0);
    assert_eq!(ran.machine.sent.len(), 1);
    assert_eq!(
        run(with([(1000, arrival(1000, 0, frame(1, 2, 9)))]), StallPolicy::CatchUp).lateness.subframes().count,
        0
    );

    // The packet (127 bytes with framing, 1016 ns) is at the gateway at 2.001016 ms. The machine adds 9 ms to this
    // wait, so the next iteration is at 11.001016 ms. Subframes begin at 3, 4, ..., 11 ms; all but the last are late by
    // more than 1 ms, the first by 8.001016 ms, the middle one by 4.001016 ms. Three digits are kept.
    let machine = MadeUp { oversleeps: BTreeMap::from([(1, micros(9000))]), ..with(frames()) };
    let ran = run_world(&cell(), machine, StallPolicy::CatchUp);
    let late = ran.lateness.subframes();
    assert_eq!((on_time.count, late.count, late.late), (9, 9, 8), "{late:?}");
    assert!(late.max_nanos.abs_diff(8_001_016) <= 8001 && late.p50_nanos.abs_diff(4_001_016) <= 4001, "{late:?}");
    assert_eq!(ran.machine.sent.len(), 1);
    // They count as one event.
    assert_eq!(ran.lateness.events().late, 1);
}

#[test]
fn run_with_frames_lost_by_the_machine_fails() {
    let ran = run(MadeUp { drops: 3, ..MadeUp::default() }, StallPolicy::CatchUp);
    assert_eq!(ran.lateness.drops(), 3);
    assert!(!ran.lateness.result().is_on_time());
}

/// A frame that was late in the first run enters at the same time again, but is read on time.
#[test]
fn replayed_journal_gives_the_same_records() {
    let frames = (0..200).map(|number| {
        let stamp = 500 + number * 137;
        let (port, bytes) = if number % 3 == 0 { (1, frame(2, 1, 77)) } else { (0, frame(1, 2, 9)) };
        // Read late by 0 to 1.2 ms, listed in order of reading.
        (stamp + 1200 - (number * 53) % 1200, arrival(stamp, port, bytes))
    });
    let mut frames: Vec<_> = frames.collect();
    frames.sort_by_key(|(readable, _)| *readable);
    // Each port returns frames in order of their timestamps.
    let mut last = [Instant::ZERO; 2];
    for (_, arrival) in &mut frames {
        arrival.at = arrival.at.max(last[arrival.port]);
        last[arrival.port] = arrival.at;
    }
    let first = run(with(frames), StallPolicy::CatchUp);
    assert!(first.lateness.arrivals().max_nanos > 0, "some were late");
    let again = first.journal.iter().map(|(entered, port, bytes)| {
        let arrival = Arrival { port: *port, at: *entered, bytes: bytes.clone().into() };
        (entered.as_nanos() / 1000 + 1, arrival)
    });
    let replayed = run(with(again), StallPolicy::CatchUp);
    let rows = |ran: &Ran| ran.outcome.flow_rows().map(|row| format!("{row:?}")).collect::<Vec<_>>();
    assert_eq!(rows(&first), rows(&replayed));
    let frames = |ran: &Ran| ran.machine.sent.iter().map(|(_, port, bytes)| (*port, bytes.clone())).collect::<Vec<_>>();
    assert_eq!(frames(&first), frames(&replayed));
}

#[test]
fn frame_that_cannot_enter_is_counted_by_its_reason() {
    let mut short = frame(1, 2, 9).to_vec();
    short.truncate(13);
    let mut arp = frame(1, 2, 9).to_vec();
    arp[13] = 6;
    let mut damaged = frame(1, 2, 9).to_vec();
    damaged[14 + 9] ^= 0x10;
    let frames = [short, arp, damaged, frame(1, 99, 9).to_vec()];
    let ran = run(with(frames.map(|bytes| (1000, arrival(1000, 0, bytes.into())))), StallPolicy::CatchUp);
    let refused = ran.refused;
    assert_eq!((refused.malformed, refused.not_ip, refused.unroutable), (2, 1, 1), "{refused:?}");
    assert!(ran.machine.sent.is_empty());
}

/// In the order of ports, hosts that are interfaces follow hosts that are namespaces. Recordings have their names in
/// this order, and replays use it. Arrivals of the client, declared first, are those of the second port.
#[test]
fn recording_of_interfaces_is_replayed_by_port() {
    let world = World::new("100ms")
        .entry("host", "name = 'client', interface = 'eth0'")
        .hosts(&["server"])
        .link("client", "server", "rate = '10Mbit/s', delay = '5ms', framing = '0B'")
        .datagrams("client", "server", ", from_by = 'program', to_by = 'program'")
        .entry("program", "name = 'server', host = 'server', command = ['true']");
    let text = world.to_string();
    let scenario = Arc::new(fullpipe_scenario::load(&text, "test", &[]).expect("the scenario is valid").scenario);
    assert_eq!(super::replay::real_nodes(&scenario), [NodeId(1), NodeId(0)]);
    let recorded = |names: [&str; 2]| {
        let file = Arc::new(std::sync::Mutex::new(Vec::new()));
        let disk = Arc::clone(&file);
        let append: crate::FileAppender = Arc::new(move |_, bytes: &[u8]| {
            disk.lock().expect("no panic").extend_from_slice(bytes);
            Ok(())
        });
        let recorder = super::recorder::ArrivalRecorder::start(append, names.into_iter()).expect("a thread");
        recorder.keep(at(1000), 1, &frame(1, 2, 9));
        recorder.keep(at(2000), 0, &frame(2, 1, 77));
        // The address of another host, which has the other port.
        recorder.keep(at(3000), 0, &frame(1, 2, 9));
        assert_eq!(recorder.finish(at(50_000)).expect("a disk"), 0);
        file.lock().expect("no panic").clone()
    };
    let file = recorded(["server", "client"]);
    let replayed =
        super::replay(Arc::clone(&scenario), &Options::default(), &file, &|| false).expect("the recording fits");
    assert_eq!((replayed.arrivals, replayed.refused.spoofed), (3, 1));
    let row = replayed.outcome.flow("datagrams").expect("the flow");
    assert_eq!((row.counters.tx_packets, row.counters.rx_packets), (1, 1));
    assert_eq!(row.counters.first_rx, at(6100));
    let wrong = recorded(["client", "server"]);
    assert!(
        super::replay(scenario, &Options::default(), &wrong, &|| false).is_err(),
        "a recording with other ports was accepted"
    );
}
