//! NATs in a network: which packets pass, which addresses are visible outside, and chains across NATs.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Recorder, Send, World};
use fullpipe_network::{
    CaptureDirection, CapturedPacket, Endpoint, EndpointPair, Limit, LinkSpecification, NatCounters, NatSpecification,
    Network, PacketContent, PortAllocation, Tap, address,
};
use fullpipe_record::{DropReason, Observer};
use fullpipe_units::{Duration, FlowId, Instant, NodeId, RandomStream, Rate};
use fullpipe_wire::{ParsedContent, parse};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

const NEVER: Instant = Instant::NEVER;
const SECOND: u64 = 1_000_000_000;

fn link<O: Observer>(network: &mut Network<O>, a: NodeId, b: NodeId) {
    for (from, to) in [(a, b), (b, a)] {
        network.add_link(LinkSpecification {
            from,
            to,
            rate: Rate::from_megabits_per_second(100),
            delay: Duration::from_millis(1),
            mtu_bytes: 1500,
            framing_bytes: 0,
            queue: Limit::Unlimited,
            discipline: None,
            loss: None,
            course: fullpipe_network::LinkProfile::Constant,
            impairments: None,
        });
    }
}

fn send(at_seconds: u64, flow: u32, from: NodeId, to: NodeId, ip_bytes: u32) -> Send {
    Send { at: Instant::from_nanos(at_seconds * SECOND), flow: FlowId(flow), from, to, ip_bytes, tcp: false }
}

/// Two hosts at a router, which is connected to another router with a server. Flow 0 is from the first host to the server, flow 2
/// from the second.
struct Home {
    network: Network<Recorder>,
    hosts: [NodeId; 2],
    router: NodeId,
    server: NodeId,
}

fn random() -> RandomStream {
    RandomStream::new(1, "nat", "ports")
}

fn home(change: impl FnOnce(&mut NatSpecification)) -> Home {
    let mut network = Network::new(Recorder::default());
    let hosts = [network.add_node(false), network.add_node(false)];
    let router = network.add_node(true);
    let far = network.add_node(true);
    let server = network.add_node(false);
    for (a, b) in [(hosts[0], router), (hosts[1], router), (router, far), (far, server)] {
        link(&mut network, a, b);
    }
    let mut specification = NatSpecification::new(router, hosts.to_vec());
    change(&mut specification);
    network.add_nat(specification, random());
    for (number, host) in hosts.into_iter().enumerate() {
        network.declare_conversation(host, server);
        network.directory.add_with_next_port(FlowId(2 * number as u32), host, Endpoint { node: server, port: 53 });
    }
    Home { network, hosts, router, server }
}

impl Home {
    fn run(&mut self, script: Vec<Send>, echo_bytes: Option<u32>) -> World {
        let mut world = World::new(script);
        world.echo_bytes = echo_bytes;
        world.declare(&mut self.network);
        self.network.finalize();
        assert_eq!(self.network.find_bypassed_nat(), None);
        self.network.run(&mut world, NEVER, NEVER);
        self.network.observer.check_conservation(&self.network.remaining_packets());
        world
    }

    fn counters(&self) -> NatCounters {
        self.network.nat_counters(self.router).unwrap()
    }
}

/// The packets captured at each host.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Vec<Sight>>>);

/// Node, direction, source, destination, hop limit.
type Sight = (NodeId, CaptureDirection, SocketAddr, SocketAddr, u8);

impl Tap for Seen {
    fn on_packet(&mut self, _: Instant, node: NodeId, direction: CaptureDirection, captured: &CapturedPacket<'_>) {
        let mut bytes = Vec::new();
        captured.write(usize::MAX, &mut bytes).unwrap();
        let parsed = parse(&bytes).unwrap();
        assert_eq!(parsed.content, ParsedContent::Udp);
        self.0.lock().unwrap().push((node, direction, parsed.source, parsed.destination, parsed.hop_limit));
    }
}

/// Returns counters with these values; all others are zero.
fn counters(mappings: u64, expired: u64, unsolicited: u64, exhausted: u64) -> NatCounters {
    let mut counters = NatCounters::default();
    (counters.mappings, counters.expired) = (mappings, expired);
    (counters.unsolicited, counters.exhausted) = (unsolicited, exhausted);
    counters
}

#[test]
fn the_router_address_is_visible_outside_and_answers_return() {
    let mut home = home(|specification| specification.first_port = 50_000);
    let seen = Seen::default();
    home.network.tap = Some(Box::new(seen.clone()));
    let [first, second] = home.hosts;
    let world = home.run(vec![send(0, 0, first, home.server, 100), send(1, 2, second, home.server, 100)], Some(60));
    assert_eq!(world.received.len(), 4);
    let socket = |node: NodeId, port| SocketAddr::new(address::ipv4(node).into(), port);
    // Both hosts use port 49 152, which is not in the pool.
    let mut expected = Vec::new();
    for (host, outside) in [(first, 50_000), (second, 50_001)] {
        let (inner, outer) = (socket(host, 49_152), socket(home.router, outside));
        let server = socket(home.server, 53);
        expected.push((host, CaptureDirection::Outbound, inner, server, 64));
        expected.push((home.server, CaptureDirection::Inbound, outer, server, 62));
        expected.push((home.server, CaptureDirection::Outbound, server, outer, 64));
        expected.push((host, CaptureDirection::Inbound, server, inner, 62));
    }
    assert_eq!(*seen.0.lock().unwrap(), expected);
    assert_eq!(home.counters(), counters(2, 0, 0, 0));
}

#[test]
fn an_answer_after_two_minutes_is_dropped() {
    let mut home = home(|_| ());
    let [first, _] = home.hosts;
    let server = home.server;
    // The mapping is created shortly after 1 ms and not refreshed from outside.
    let script = vec![
        send(0, 0, first, server, 100),
        send(119, 1, server, first, 100),
        send(121, 1, server, first, 100),
        send(122, 0, first, server, 100),
        send(123, 1, server, first, 100),
        send(123, 3, server, home.hosts[1], 100),
    ];
    let world = home.run(script, None);
    assert_eq!(world.received.iter().map(|(flow, ..)| flow.0).collect::<Vec<_>>(), [0, 1, 0, 1]);
    assert_eq!(home.network.observer.drops().into_iter().collect::<Vec<_>>(), [(DropReason::Nat, 2)]);
    assert_eq!(home.counters(), counters(2, 1, 2, 0));
}

#[test]
fn without_a_free_port_packets_are_dropped_at_the_router() {
    let mut home = home(|specification| {
        (specification.first_port, specification.last_port) = (1024, 1024);
        specification.allocation = PortAllocation::Sequential;
    });
    let [first, second] = home.hosts;
    let server = home.server;
    let script = vec![
        send(0, 0, first, server, 100),
        send(1, 2, second, server, 100),
        // Fragmented into three; the NAT processes each fragment.
        send(2, 2, second, server, 3500),
        send(3, 0, first, server, 3500),
        send(130, 2, second, server, 100),
    ];
    let world = home.run(script, None);
    assert_eq!(world.received.iter().map(|(flow, ..)| flow.0).collect::<Vec<_>>(), [0, 0, 2]);
    assert_eq!(home.network.observer.drops().into_iter().collect::<Vec<_>>(), [(DropReason::Nat, 2)]);
    assert_eq!(home.counters(), counters(2, 1, 0, 4));
}

#[test]
fn a_flow_that_is_not_in_the_directory_does_not_pass() {
    let mut home = home(|_| ());
    let script = vec![send(0, 4, home.hosts[0], home.server, 100)];
    assert!(home.run(script, None).received.is_empty());
    assert_eq!(home.network.observer.drops().into_iter().collect::<Vec<_>>(), [(DropReason::Nat, 1)]);
}

/// A carrier-grade NAT outside a home NAT: its inside endpoint is the home's address, and its port limit is per home.
#[test]
fn nested_nats_translate_in_sequence() {
    let mut network = Network::new(Recorder::default());
    let hosts = [network.add_node(false), network.add_node(false)];
    let home = network.add_node(true);
    let carrier = network.add_node(true);
    let server = network.add_node(false);
    let neighbour = network.add_node(false);
    for (a, b) in [(hosts[0], home), (hosts[1], home), (home, carrier), (neighbour, carrier), (carrier, server)] {
        link(&mut network, a, b);
    }
    let pool = |router, inside, first_port| NatSpecification {
        first_port,
        allocation: PortAllocation::Sequential,
        ..NatSpecification::new(router, inside)
    };
    // The outer NAT is added first: the order must have no effect.
    let limited = pool(carrier, vec![hosts[0], hosts[1], neighbour], 3000);
    network.add_nat(NatSpecification { ports_per_host: Some(2), ..limited }, random());
    network.add_nat(pool(home, hosts.to_vec(), 2000), random());
    let script: Vec<Send> =
        [(0, hosts[0], server), (2, hosts[1], server), (4, hosts[0], server), (6, neighbour, server)]
            .into_iter()
            .chain([(8, hosts[0], neighbour)])
            .enumerate()
            .map(|(second, (flow, from, to))| {
                network.directory.add_with_next_port(FlowId(flow), from, Endpoint { node: to, port: 53 });
                send(second as u64, flow, from, to, 100)
            })
            .collect();
    let seen = Seen::default();
    network.tap = Some(Box::new(seen.clone()));
    let mut world = World::new(script);
    world.echo_bytes = Some(60);
    world.declare(&mut network);
    network.finalize();
    network.run(&mut world, NEVER, NEVER);
    let at = |viewer: NodeId, way: CaptureDirection| -> Vec<SocketAddr> {
        let seen = seen.0.lock().unwrap();
        seen.iter().filter(|seen| seen.0 == viewer && seen.1 == way).map(|seen| seen.2).collect()
    };
    let socket = |node: NodeId, port| SocketAddr::new(address::ipv4(node).into(), port);
    // The third conversation exceeds the home's limit of two ports.
    assert_eq!(
        at(server, CaptureDirection::Inbound),
        [socket(carrier, 3000), socket(carrier, 3001), socket(carrier, 3002)]
    );
    assert_eq!(at(neighbour, CaptureDirection::Inbound), [socket(server, 53), socket(home, 2003)]);
    assert_eq!(world.received.len(), 8);
    assert_eq!(network.nat_counters(carrier).map(|counters| counters.exhausted), Some(1));
    assert_eq!(network.nat_counters(home).map(|counters| counters.mappings), Some(4));
    assert_eq!(network.nat_counters(server), None);
}

#[test]
fn a_route_that_bypasses_the_nat_is_detected() {
    let mut network = Network::new(());
    let (host, server) = (network.add_node(false), network.add_node(false));
    let (nat, other) = (network.add_node(true), network.add_node(true));
    for (a, b) in [(host, other), (other, server), (host, nat), (nat, server)] {
        link(&mut network, a, b);
    }
    network.add_nat(NatSpecification::new(nat, vec![host]), random());
    network.declare_conversation(host, server);
    network.finalize();
    assert_eq!(network.find_bypassed_nat(), Some((nat, host, server)));
}

/// A NAT processes each packet at its arrival time, so links across it must not be computed at once. The first host's
/// packet arrives at the router 80 us after a datagram of the second, which uses a slower link. If the chain were
/// computed when the packet is sent, it would get the port first.
#[test]
fn chains_end_at_a_nat() {
    let run = |fuse: bool| {
        let mut network = Network::new(Recorder::default());
        network.set_chaining(fuse);
        let hosts = [network.add_node(false), network.add_node(false)];
        let router = network.add_node(true);
        let before = network.add_node(true);
        let servers = [network.add_node(false), network.add_node(false)];
        for (a, b) in
            [(hosts[0], before), (before, router), (hosts[1], router), (router, servers[0]), (router, servers[1])]
        {
            link(&mut network, a, b);
        }
        let one_port = NatSpecification { last_port: 1024, ..NatSpecification::new(router, hosts.to_vec()) };
        network.add_nat(one_port, random());
        let script = vec![
            Send { at: Instant::ZERO, ..send(0, 0, hosts[0], servers[0], 1000) },
            Send { at: Instant::from_nanos(1_000_000), ..send(0, 2, hosts[1], servers[1], 100) },
        ];
        for send in &script {
            let ends = EndpointPair {
                source: Endpoint { node: send.from, port: 5000 },
                destination: Endpoint { node: send.to, port: 53 },
            };
            network.directory.add(send.flow, ends);
        }
        let mut world = World::new(script);
        world.declare(&mut network);
        network.finalize();
        network.run(&mut world, NEVER, NEVER);
        (network.observer.histories(), world.received, network.nat_counters(router))
    };
    let (fused, by_hops) = (run(true), run(false));
    // 1000 bytes twice and 2 ms against 100 bytes, 1 ms and a start 1 ms later: 2.160 ms against 2.008 ms.
    assert_eq!(fused.1.iter().map(|(flow, ..)| flow.0).collect::<Vec<_>>(), [2]);
    assert_eq!(fused, by_hops);
}

/// The chain before the NAT, a conversation that does not cross it, and IPv6 are unaffected.
#[test]
fn packets_that_do_not_cross_the_nat_are_unaffected() {
    let mut home = home(|specification| specification.last_port = 1024);
    let [first, second] = home.hosts;
    home.network.directory.add_with_next_port(FlowId(4), first, Endpoint { node: second, port: 9 });
    let mut world = World::new(vec![send(0, 4, first, second, 100)]);
    world.echo_bytes = Some(60);
    world.declare(&mut home.network);
    home.network.finalize();
    let packet = fullpipe_network::Packet {
        version: fullpipe_wire::IpVersion::V6,
        ..fullpipe_network::Packet::new(FlowId(3), second, 148, PacketContent::Udp { payload_bytes: 100 })
    };
    home.network.send(home.server, &packet);
    home.network.run(&mut world, NEVER, NEVER);
    assert_eq!(world.received.iter().map(|(flow, ..)| flow.0).collect::<Vec<_>>(), [4, 3, 5]);
    assert_eq!(home.counters(), NatCounters::default());
}
