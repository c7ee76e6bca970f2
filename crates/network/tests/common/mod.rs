//! Common code of the tests of this crate: hosts that count, send at a constant rate and echo; observers that record
//! all events.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test uses a part")]

pub mod segment;

use fullpipe_engine::{EventClass, EventId};
use fullpipe_network::{HostEndpoints, Network, Packet, PacketContent, PacketHandle};
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId};
use std::collections::BTreeMap;

/// A packet to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Send {
    pub at: Instant,
    pub flow: FlowId,
    pub from: NodeId,
    pub to: NodeId,
    pub ip_bytes: u32,
    pub tcp: bool,
}

/// Returns `count` datagrams from time 0 on, one every `interval`, as flow 0.
pub fn constant_rate(from: NodeId, to: NodeId, ip_bytes: u32, interval: Duration, count: u64) -> Vec<Send> {
    (0..count)
        .map(|n| Send { at: Instant::ZERO + interval * n, flow: FlowId(0), from, to, ip_bytes, tcp: false })
        .collect()
}

/// Hosts that send the packets of a script and, with `echo_bytes`, answer packets of even flows.
#[derive(Debug, Default)]
pub struct World {
    pub script: Vec<Send>,
    /// Size of an answer.
    pub echo_bytes: Option<u32>,
    /// Flow, node and time of the arrival of each whole packet.
    pub received: Vec<(FlowId, NodeId, Instant)>,
}

impl World {
    pub fn new(script: Vec<Send>) -> Self {
        World { script, ..World::default() }
    }

    /// Adds the script to the calendar and declares the conversations.
    pub fn declare<O: Observer>(&self, network: &mut Network<O>) {
        for (number, send) in self.script.iter().enumerate() {
            network.declare_conversation(send.from, send.to);
            network.calendar.schedule(send.at, EventId::new(EventClass::Application, number as u32));
        }
    }

    pub fn received_of(&self, flow: u32) -> Vec<u64> {
        self.received.iter().filter(|(f, _, _)| f.0 == flow).map(|(_, _, at)| at.as_nanos()).collect()
    }
}

pub fn content(ip_bytes: u32, tcp: bool) -> PacketContent {
    if tcp {
        let header = fullpipe_wire::TcpHeader { payload_bytes: (ip_bytes - 40) as u16, ..Default::default() };
        PacketContent::Tcp(header)
    } else {
        PacketContent::Udp { payload_bytes: ip_bytes - 28 }
    }
}

impl<O: Observer> HostEndpoints<O> for World {
    fn receive(&mut self, network: &mut Network<O>, node: NodeId, handle: PacketHandle) {
        let packet = *network.arena.get(handle);
        network.arena.release(handle);
        assert_eq!(packet.destination, node, "a packet must arrive only at its destination");
        self.received.push((packet.flow, node, network.now()));
        if let Some(ip_bytes) = self.echo_bytes
            && packet.flow.is_forward()
        {
            let back = self.script.iter().find(|send| send.flow == packet.flow).map(|send| send.from);
            let reply = content(ip_bytes, false);
            network.send(node, &Packet::new(packet.flow.reverse(), back.unwrap(), ip_bytes, reply));
        }
    }

    fn on_timer(&mut self, network: &mut Network<O>, event: EventId) {
        let Send { flow, from, to, ip_bytes, tcp, .. } = self.script[event.index() as usize];
        network.send(from, &Packet::new(flow, to, ip_bytes, content(ip_bytes, tcp)));
    }
}

/// An event that an observer receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Record {
    Sent(Instant, FlowId, u32),
    Delivered(Instant, FlowId, u32, Instant),
    Dropped(Instant, FlowId, u32, Option<LinkId>, DropReason),
    /// arrival, flow, bytes, link
    Duplicated(Instant, FlowId, u32, LinkId),
    Offered(LinkId, u32),
    LinkDropped(LinkId, u32, DropReason),
    /// link, flow, bytes, offered, start, finish, arrival
    Transmitted(LinkId, FlowId, u32, Instant, Instant, Instant, Instant),
}

/// An observer that records all events.
#[derive(Debug, Default)]
pub struct Recorder {
    pub records: Vec<Record>,
}

impl Observer for Recorder {
    fn on_sent(&mut self, now: Instant, packet: &PacketView) {
        self.records.push(Record::Sent(now, packet.flow, packet.ip_bytes));
    }
    fn on_delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        self.records.push(Record::Delivered(now, packet.flow, packet.ip_bytes, sent));
    }
    fn on_dropped(&mut self, now: Instant, packet: &PacketView, link: Option<LinkId>, reason: DropReason) {
        self.records.push(Record::Dropped(now, packet.flow, packet.ip_bytes, link, reason));
    }
    fn on_offered(&mut self, _now: Instant, link: LinkId, wire_bytes: u32) {
        self.records.push(Record::Offered(link, wire_bytes));
    }
    fn on_link_dropped(&mut self, _now: Instant, link: LinkId, wire_bytes: u32, reason: DropReason) {
        self.records.push(Record::LinkDropped(link, wire_bytes, reason));
    }
    fn on_duplicated(&mut self, arrival: Instant, packet: &PacketView, link: LinkId) {
        self.records.push(Record::Duplicated(arrival, packet.flow, packet.ip_bytes, link));
    }
    fn on_transmitted(&mut self, t: &Transmission) {
        self.records.push(Record::Transmitted(t.link, t.flow, t.wire_bytes, t.offered, t.start, t.finish, t.arrival));
    }
}

impl Recorder {
    pub fn transmissions(&self) -> impl Iterator<Item = (LinkId, FlowId, u32, Instant, Instant, Instant, Instant)> {
        self.records.iter().filter_map(|record| match *record {
            Record::Transmitted(a, b, c, d, e, f, g) => Some((a, b, c, d, e, f, g)),
            _ => None,
        })
    }

    /// Returns the number of drops of whole packets by reason.
    pub fn drops(&self) -> BTreeMap<DropReason, u64> {
        let mut drops = BTreeMap::new();
        for record in &self.records {
            if let Record::Dropped(_, _, _, _, reason) = record {
                *drops.entry(*reason).or_default() += 1;
            }
        }
        drops
    }

    pub fn count(&self, which: impl Fn(&Record) -> bool) -> u64 {
        self.records.iter().filter(|record| which(record)).count() as u64
    }

    /// Returns the events of each link and of each flow in the order of the reports; drops of packets are in order of time.
    pub fn histories(&self) -> BTreeMap<String, Vec<Record>> {
        let mut histories: BTreeMap<String, Vec<Record>> = BTreeMap::new();
        for record in &self.records {
            let subject = match record {
                Record::Sent(_, flow, _) => format!("sent {flow}"),
                Record::Delivered(_, flow, ..) => format!("delivered {flow}"),
                Record::Dropped(_, flow, ..) => format!("dropped {flow}"),
                Record::Duplicated(_, flow, _, link) => format!("copied {flow} on {link}"),
                Record::Offered(link, _) | Record::LinkDropped(link, ..) | Record::Transmitted(link, ..) => {
                    format!("link {link}")
                }
            };
            histories.entry(subject).or_default().push(*record);
        }
        for (subject, records) in &mut histories {
            if subject.starts_with("dropped") {
                records.sort();
            }
        }
        histories
    }

    /// Checks that whole packets are conserved, and frames on each link.
    pub fn check_conservation(&self, network_left: &fullpipe_network::network::RemainingPackets) {
        let mut flows: BTreeMap<FlowId, (i64, i64)> = BTreeMap::new();
        let mut links: BTreeMap<LinkId, (i64, i64)> = BTreeMap::new();
        for record in &self.records {
            match *record {
                Record::Sent(_, flow, bytes) | Record::Duplicated(_, flow, bytes, _) => add(&mut flows, flow, 1, bytes),
                Record::Delivered(_, flow, bytes, _) | Record::Dropped(_, flow, bytes, _, _) => {
                    add(&mut flows, flow, -1, bytes);
                }
                Record::Offered(link, bytes) => add(&mut links, link, 1, bytes),
                Record::LinkDropped(link, bytes, _) | Record::Transmitted(link, _, bytes, ..) => {
                    add(&mut links, link, -1, bytes);
                }
            }
        }
        for (flow, balance) in flows {
            let (packets, bytes) = network_left.packets_per_flow.get(&flow).copied().unwrap_or_default();
            assert_eq!(balance, (packets as i64, bytes as i64), "flow {flow}");
        }
        for (link, balance) in links {
            let (packets, bytes) = network_left.queued_per_link[link.index()];
            assert_eq!(balance, (packets as i64, bytes as i64), "link {link}");
        }
    }
}

fn add<K: Ord>(balance: &mut BTreeMap<K, (i64, i64)>, key: K, sign: i64, bytes: u32) {
    let entry = balance.entry(key).or_default();
    entry.0 += sign;
    entry.1 += sign * i64::from(bytes);
}
