//! What the tests of this crate share: hosts that count, send at a constant rate and echo; observers that write
//! everything down.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test uses a part")]

use fullpipe_engine::{EventClass, EventId};
use fullpipe_network::{Content, Handle, Hosts, Network, Side};
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_units::{Duration, FlowId, Instant, LinkId, NodeId};
use std::collections::BTreeMap;

/// A source of datagrams: `count` of `ip_bytes` from `from` to `to`, the first at `start`, then every `interval`.
#[derive(Clone, Debug)]
pub struct Source {
    pub from: NodeId,
    pub to: NodeId,
    pub ip_bytes: u32,
    pub start: Instant,
    pub interval: Duration,
    pub count: u64,
    pub tcp: bool,
}

/// Flow 2k is source k; flow 2k + 1 its echo.
#[derive(Debug, Default)]
pub struct World {
    pub sources: Vec<Source>,
    pub sent: Vec<u64>,
    pub echo_bytes: Option<u32>,
    /// When each whole packet came: flow, node, instant.
    pub received: Vec<(FlowId, NodeId, Instant)>,
}

impl World {
    pub fn new(sources: Vec<Source>) -> Self {
        World { sent: vec![0; sources.len()], sources, ..World::default() }
    }

    /// Puts the sources' first timers into the calendar and declares their conversations.
    pub fn declare<O: Observer>(&self, network: &mut Network<O>) {
        for (number, source) in self.sources.iter().enumerate() {
            network.declare_conversation(source.from, source.to);
            if source.count > 0 {
                network.calendar.schedule(source.start, EventId::new(EventClass::Application, number as u32));
            }
        }
    }

    pub fn received_of(&self, flow: u32) -> Vec<Instant> {
        self.received.iter().filter(|(f, _, _)| f.0 == flow).map(|(_, _, at)| *at).collect()
    }
}

pub fn content(ip_bytes: u32, tcp: bool) -> Content {
    if tcp {
        let header = fullpipe_network::TcpHeader { payload_bytes: (ip_bytes - 40) as u16, ..Default::default() };
        Content::Tcp(header)
    } else {
        Content::Udp { payload_bytes: ip_bytes - 28 }
    }
}

impl<O: Observer> Hosts<O> for World {
    fn receive(&mut self, network: &mut Network<O>, node: NodeId, handle: Handle) {
        let packet = *network.arena.get(handle);
        network.arena.release(handle);
        assert_eq!(packet.destination, node, "a packet comes to its destination only");
        self.received.push((packet.flow, node, network.now()));
        if let Some(ip_bytes) = self.echo_bytes
            && packet.flow.is_forward()
        {
            let back = self.sources[packet.flow.index() / 2].from;
            let reply = content(ip_bytes, false);
            network.send(node, packet.flow.reverse(), back, ip_bytes, reply, Side::NONE, Side::NONE);
        }
    }

    fn timer(&mut self, network: &mut Network<O>, event: EventId) {
        let number = event.index() as usize;
        let source = &self.sources[number];
        let body = content(source.ip_bytes, source.tcp);
        let flow = FlowId(2 * number as u32);
        network.send(source.from, flow, source.to, source.ip_bytes, body, Side::NONE, Side::NONE);
        self.sent[number] += 1;
        if self.sent[number] < source.count {
            network.calendar.schedule(network.now() + source.interval, event);
        }
    }
}

/// Every event an observer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Record {
    Sent(Instant, FlowId, u32),
    Delivered(Instant, FlowId, u32, Instant),
    Dropped(Instant, FlowId, u32, Option<LinkId>, DropReason),
    Offered(LinkId, u32),
    LinkDropped(LinkId, u32, DropReason),
    /// link, flow, bytes, offered, start, finish, arrival
    Transmitted(LinkId, FlowId, u32, Instant, Instant, Instant, Instant),
}

/// Writes everything down.
#[derive(Debug, Default)]
pub struct Recorder {
    pub records: Vec<Record>,
}

impl Observer for Recorder {
    fn sent(&mut self, now: Instant, packet: &PacketView) {
        self.records.push(Record::Sent(now, packet.flow, packet.ip_bytes));
    }
    fn delivered(&mut self, now: Instant, packet: &PacketView, sent: Instant) {
        self.records.push(Record::Delivered(now, packet.flow, packet.ip_bytes, sent));
    }
    fn dropped(&mut self, now: Instant, packet: &PacketView, link: Option<LinkId>, reason: DropReason) {
        self.records.push(Record::Dropped(now, packet.flow, packet.ip_bytes, link, reason));
    }
    fn offered(&mut self, link: LinkId, wire_bytes: u32) {
        self.records.push(Record::Offered(link, wire_bytes));
    }
    fn link_dropped(&mut self, link: LinkId, wire_bytes: u32, reason: DropReason) {
        self.records.push(Record::LinkDropped(link, wire_bytes, reason));
    }
    fn transmitted(&mut self, t: &Transmission) {
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

    /// Drops of whole packets by reason.
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

    /// Whole packets are conserved, and frames on each link.
    pub fn check_conservation(&self, network_left: &fullpipe_network::network::Remaining) {
        let mut flows: BTreeMap<FlowId, (i64, i64)> = BTreeMap::new();
        let mut links: BTreeMap<LinkId, (i64, i64)> = BTreeMap::new();
        for record in &self.records {
            match *record {
                Record::Sent(_, flow, bytes) => add(&mut flows, flow, 1, bytes),
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
