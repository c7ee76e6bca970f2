//! Bursts compared with their segments sent one by one: the results are equal, for observers with and without support for bursts.

#![allow(missing_docs, reason = "a test")]

use crate::common::{Record, Recorder};
use fullpipe_engine::{EventClass, EventId};
use fullpipe_network::QueueDiscipline;
use fullpipe_network::{
    Fifo, HostEndpoints, Limit, LinkProfile, LinkSpecification, LossModel, Network, Packet, PacketContent, PacketHandle,
};
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId, Rate};
use fullpipe_wire::TcpHeader;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A recorder that accepts bursts.
#[derive(Debug, Default)]
struct OfBursts(Recorder);

impl Observer for OfBursts {
    fn on_sent(&mut self, now: Instant, packet: &PacketView) {
        self.0.on_sent(now, packet);
    }
    fn on_sent_burst(&mut self, now: Instant, first: &PacketView, packets: u32, _step_bytes: u32) -> bool {
        (0..packets).for_each(|_| self.0.on_sent(now, first));
        true
    }
    fn on_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        self.0.on_delivered(now, packet, sent);
    }
    fn on_dropped(&mut self, now: Instant, packet: &PacketView, link: Option<LinkId>, reason: DropReason) {
        self.0.on_dropped(now, packet, link, reason);
    }
    fn on_offered(&mut self, now: Instant, link: LinkId, wire_bytes: u32) {
        self.0.on_offered(now, link, wire_bytes);
    }
    fn on_link_dropped(&mut self, now: Instant, link: LinkId, wire_bytes: u32, reason: DropReason) {
        self.0.on_link_dropped(now, link, wire_bytes, reason);
    }
    fn on_transmitted(&mut self, transmission: &Transmission) {
        self.0.on_transmitted(transmission);
    }
}

/// Bursts to send: time, number of segments, and bytes per segment.
type Bursts = Vec<(u64, u32, u32)>;

/// Sends bursts from one host to another, and records the sequence numbers that arrive.
#[derive(Debug, Default)]
struct Ends {
    from: NodeId,
    to: NodeId,
    bursts: Bursts,
    at_once: bool,
    next: u32,
    received: Vec<(Instant, u32)>,
}

impl<O: Observer> HostEndpoints<O> for Ends {
    fn receive(&mut self, network: &mut Network<O>, _node: NodeId, handle: PacketHandle) {
        if let PacketContent::Tcp(header) = &network.arena.get(handle).content {
            self.received.push((network.now(), header.sequence));
        }
        network.arena.release(handle);
    }

    fn on_timer(&mut self, network: &mut Network<O>, event: EventId) {
        let (_, segments, payload_bytes) = self.bursts[event.index() as usize];
        let packet = |number: u32| {
            let sequence = self.next.wrapping_add(number * payload_bytes);
            let header = TcpHeader { sequence, payload_bytes: payload_bytes as u16, ..TcpHeader::default() };
            Packet::new(FlowId(0), self.to, 40 + payload_bytes, PacketContent::Tcp(header))
        };
        if self.at_once {
            network.send_burst(self.from, &packet(0), segments, payload_bytes);
        } else {
            (0..segments).for_each(|number| network.send(self.from, &packet(number)));
        }
        self.next = self.next.wrapping_add(segments * payload_bytes);
    }
}

/// The path of a run: two links with a router between them.
#[derive(Clone, Debug)]
struct Setting {
    rates_bps: [u64; 2],
    limit: Limit,
    mtu_bytes: u32,
    with_discipline: bool,
    /// Every n-th packet is lost on the first link.
    lost_every: Option<u64>,
    bursts: Bursts,
}

type Seen = (BTreeMap<String, Vec<Record>>, Vec<(Instant, u32)>);

fn run<O: Observer>(setting: &Setting, observer: O, at_once: bool, records: impl Fn(&O) -> &Recorder) -> Seen {
    let mut network = Network::new(observer);
    let [from, router, to] = [false, true, false].map(|router| network.add_node(router));
    for (index, (from, to)) in [(from, router), (router, to)].into_iter().enumerate() {
        let is_first = index == 0;
        let fifo = || Box::new(Fifo::new(Limit::Packets(5))) as Box<dyn QueueDiscipline>;
        let lost_every = setting.lost_every.filter(|_| is_first);
        network.add_link(LinkSpecification {
            from,
            to,
            rate: Rate::from_bits_per_second(setting.rates_bps[index]),
            delay: Duration::from_micros(10),
            mtu_bytes: if is_first { 1500 } else { setting.mtu_bytes },
            framing_bytes: 2,
            queue: setting.limit,
            discipline: (is_first && setting.with_discipline).then(fifo),
            loss: lost_every.map(|every| LossModel::Periodic { every, next: every }),
            course: LinkProfile::Constant,
            impairments: None,
        });
    }
    network.declare_conversation(from, to);
    let mut ends =
        Ends { from, to, bursts: setting.bursts.clone(), at_once, next: u32::MAX - 5000, received: Vec::new() };
    for (number, (at, ..)) in (0..).zip(&setting.bursts) {
        network.calendar.schedule(Instant::from_nanos(*at), EventId::new(EventClass::Application, number));
    }
    network.finalize();
    network.run(&mut ends, Instant::NEVER, Instant::NEVER);
    (records(&network.observer).histories(), ends.received)
}

fn setting() -> impl Strategy<Value = Setting> {
    let rate = || prop_oneof![Just(1_000_000_000u64), Just(7_000_000)];
    let limit =
        prop_oneof![(0u64..8).prop_map(Limit::Packets), (0u64..9000).prop_map(Limit::Bytes), Just(Limit::Unlimited)];
    let burst = (0u64..3_000_000, 0u32..9, prop_oneof![3 => Just(1460u32), 1 => 1u32..1461]);
    let options =
        (prop_oneof![3 => Just(1500u32), 1 => Just(600)], prop::bool::weighted(0.2), prop::option::of(1u64..6));
    ((rate(), rate()), limit, options, prop::collection::vec(burst, 1..12)).prop_map(
        |(rates, limit, (mtu_bytes, with_discipline, lost_every), mut bursts)| {
            bursts.sort();
            Setting { rates_bps: [rates.0, rates.1], limit, mtu_bytes, with_discipline, lost_every, bursts }
        },
    )
}

proptest! {
    #[test]
    fn a_burst_is_its_segments_one_by_one(setting in setting()) {
        let singly = run(&setting, Recorder::default(), false, |observer| observer);
        prop_assert_eq!(&run(&setting, Recorder::default(), true, |observer| observer), &singly);
        prop_assert_eq!(&run(&setting, OfBursts::default(), true, |observer| &observer.0), &singly);
        // Each segment is sent, even if it is dropped later.
        let sent = singly.0.get("sent 0").map_or(0, Vec::len) as u32;
        prop_assert_eq!(sent, setting.bursts.iter().map(|burst| burst.1).sum::<u32>());
    }
}
