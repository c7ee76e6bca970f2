//! Disciplines within a network: the marks and drops that observers and the receiver receive.

use fullpipe_engine::{EventClass, EventId};
use fullpipe_network::{
    HostEndpoints, Limit, LinkSpecification, Network, Packet, PacketContent, PacketHandle, Pie, PieSpecification,
    QueueDiscipline, Red, RedSpecification, StepMarker, StepMarkerSpecification, StepThreshold,
};
use fullpipe_record::{DropReason, Observer, PacketView};
use fullpipe_units::{Duration, EcnCodepoint, FlowId, Instant, LinkId, NodeId, RandomStream, Rate};
use std::collections::BTreeMap;

#[derive(Default)]
struct Watcher {
    marked: u64,
    delivered: BTreeMap<EcnCodepoint, u64>,
    drops: BTreeMap<DropReason, u64>,
    link_drops: BTreeMap<DropReason, u64>,
}

impl Observer for Watcher {
    fn on_marked(&mut self, _now: Instant, packet: &PacketView, _link: LinkId) {
        assert_eq!(packet.codepoint, EcnCodepoint::Ce);
        self.marked += 1;
    }
    fn on_delivered(&mut self, _now: Instant, packet: &PacketView, _sent: Instant) {
        *self.delivered.entry(packet.codepoint).or_default() += 1;
    }
    fn on_dropped(&mut self, _now: Instant, _packet: &PacketView, _link: Option<LinkId>, reason: DropReason) {
        *self.drops.entry(reason).or_default() += 1;
    }
    fn on_link_dropped(&mut self, _now: Instant, _link: LinkId, _wire_bytes: u32, reason: DropReason) {
        *self.link_drops.entry(reason).or_default() += 1;
    }
}

/// Sends 300 packets at once, of which every third is ECN-capable.
struct Burst {
    to: NodeId,
}

impl HostEndpoints<Watcher> for Burst {
    fn receive(&mut self, network: &mut Network<Watcher>, _node: NodeId, handle: PacketHandle) {
        network.arena.release(handle);
    }
    fn on_timer(&mut self, network: &mut Network<Watcher>, _event: EventId) {
        for n in 0..300 {
            let mut packet = Packet::new(FlowId(0), self.to, 1000, PacketContent::Udp { payload_bytes: 972 });
            packet.codepoint = if n % 3 == 0 { EcnCodepoint::Ect0 } else { EcnCodepoint::NotEct };
            network.send(NodeId(0), &packet);
        }
    }
}

fn watch(discipline: Box<dyn QueueDiscipline>) -> Watcher {
    let mut network = Network::new(Watcher::default());
    let (from, to) = (network.add_node(false), network.add_node(false));
    network.add_link(LinkSpecification {
        // No room below the discipline: all packets wait in it.
        queue: Limit::Packets(0),
        discipline: Some(discipline),
        ..link(from, to)
    });
    network.declare_conversation(from, to);
    network.finalize();
    network.calendar.schedule(Instant::from_nanos(1), EventId::new(EventClass::Application, 0));
    network.run(&mut Burst { to }, Instant::NEVER, Instant::NEVER);
    network.observer
}

fn link(from: NodeId, to: NodeId) -> LinkSpecification {
    LinkSpecification {
        from,
        to,
        rate: Rate::from_megabits_per_second(8),
        delay: Duration::from_millis(1),
        mtu_bytes: 1500,
        framing_bytes: 0,
        queue: Limit::Unlimited,
        discipline: None,
        loss: None,
        course: fullpipe_network::LinkProfile::Constant,
        impairments: None,
    }
}

#[test]
fn a_mark_is_reported_and_arrives() {
    // Packet n finds n - 1 packets waiting (the first is in transmission), which is more than 65 from n = 67 on. ECN-capable are 0, 3, ...
    // 297: 77 of them from 69 on.
    let watcher = watch(Box::new(StepMarker::new(StepMarkerSpecification {
        threshold: StepThreshold::Packets(65),
        ..StepMarkerSpecification::default()
    })));
    assert_eq!(watcher.marked, 77);
    assert_eq!(
        watcher.delivered,
        [(EcnCodepoint::NotEct, 200), (EcnCodepoint::Ect0, 23), (EcnCodepoint::Ce, 77)].into()
    );
    assert!(watcher.drops.is_empty());
}

#[test]
fn drops_without_room_and_drops_by_decision_have_different_reasons() {
    // Packets that are not ECN-capable are dropped above 65; the limit is 100.
    let watcher = watch(Box::new(StepMarker::new(StepMarkerSpecification {
        limit: Limit::Packets(100),
        threshold: StepThreshold::Packets(65),
        drops_incapable: true,
    })));
    // 67 to 299: 233 packets, of which 77 can be marked. 66 wait before; 34 more of those fit.
    assert_eq!(watcher.marked, 34);
    assert_eq!(watcher.drops[&DropReason::QueueFull] + watcher.drops[&DropReason::QueueDiscipline], 233 - 34);
    // The 34th packet to be marked is number 69 + 3 * 33 = 168; by then 67, 68 and each two after those are dropped by decision.
    assert_eq!(watcher.drops[&DropReason::QueueDiscipline], 2 + 2 * 33);
    assert_eq!(watcher.drops, watcher.link_drops);
}

#[test]
fn a_run_depends_only_on_the_random_stream() {
    let red = |seed| {
        let settings = RedSpecification {
            weight: 1.0,
            max_threshold: 200.0,
            ..RedSpecification::recommended(Limit::Unlimited, Rate::from_megabits_per_second(8))
        };
        watch(Box::new(Red::new(settings, RandomStream::new(seed, "link", "red")))).drops
    };
    assert_eq!(red(1), red(1));
    let pie = |seed| {
        let settings = PieSpecification { max_burst: Duration::ZERO, ..PieSpecification::default() };
        watch(Box::new(Pie::new(settings, RandomStream::new(seed, "link", "pie")))).drops
    };
    assert_eq!(pie(1), pie(1));
    assert!((0..20).any(|seed| red(seed) != red(1)));
}
