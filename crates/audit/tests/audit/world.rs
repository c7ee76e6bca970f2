//! A small correct network, written for these tests only: it shares no code with the auditor or the simulator.
//!
//! A chain of links connects the left host to the right one, and another chain leads back (or one shared medium serves both directions).
//! Times are exact: a link stores the end of its busy period as a fraction over its rate. Frames wait in drop-tail queues;
//! some are lost after transmission; packets that exceed an MTU are fragmented. The events are stored in a list that a
//! test can falsify before the auditors process it.

use fullpipe_audit::{
    AuditReport, Auditor, DeclaredFlow, DeclaredLink, DeclaredQueueLimit, FinalFlowState, FinalLinkState, FinalState,
    MediumAccess, PacketAuditor, PublishedCounters,
};
use fullpipe_record::{DropReason, FlowMonitor, Observer, PacketView, TcpView, Transmission};
use fullpipe_units::{EcnCodepoint, FlowId, Instant, LinkId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// One call of an observer method.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Sent(u64, PacketView),
    Delivered(u64, PacketView, u64),
    Dropped(u64, PacketView, DropReason),
    Offered(LinkId, u32),
    LinkDropped(LinkId, u32, DropReason),
    Transmitted(Transmission),
}

/// The declarations, the events, and the state at the end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Run {
    pub(crate) links: Vec<DeclaredLink>,
    pub(crate) flows: Vec<(FlowId, DeclaredFlow)>,
    pub(crate) events: Vec<Event>,
    pub(crate) link_ends: Vec<FinalLinkState>,
    pub(crate) flow_ends: BTreeMap<FlowId, FinalFlowState>,
}

impl FinalState for Run {
    fn link(&self, link: LinkId) -> FinalLinkState {
        self.link_ends.get(link.index()).copied().unwrap_or_default()
    }

    fn flow(&self, flow: FlowId) -> FinalFlowState {
        self.flow_ends.get(&flow).copied().unwrap_or_default()
    }

    fn flow_name(&self, flow: FlowId) -> String {
        format!("conversation {}", flow.index() / 2)
    }
}

fn tell(observer: &mut impl Observer, event: &Event) {
    let at = Instant::from_nanos;
    match event {
        Event::Sent(now, packet) => observer.on_sent(at(*now), packet),
        Event::Delivered(now, packet, sent) => observer.on_delivered(at(*now), packet, at(*sent)),
        Event::Dropped(now, packet, reason) => observer.on_dropped(at(*now), packet, None, *reason),
        Event::Offered(link, bytes) => observer.on_offered(Instant::ZERO, *link, *bytes),
        Event::LinkDropped(link, bytes, reason) => observer.on_link_dropped(Instant::ZERO, *link, *bytes, *reason),
        Event::Transmitted(frame) => observer.on_transmitted(frame),
    }
}

impl Run {
    /// Returns the verdict of the auditor with constant state.
    pub(crate) fn streaming(&self) -> AuditReport {
        let mut auditor = Auditor::new(self.links.clone());
        for (flow, declared) in &self.flows {
            auditor.add_flow(*flow, declared);
        }
        let mut told_at_once = auditor.clone();
        self.events.iter().for_each(|event| tell(&mut auditor, event));
        let verdict = auditor.finish(self);
        self.tell_at_once(&mut told_at_once);
        assert_eq!(told_at_once.finish(self).to_string(), verdict.to_string());
        verdict
    }

    /// Reports each frame that arrived and was transmitted without an event in between in one call.
    fn tell_at_once(&self, observer: &mut impl Observer) {
        let mut events = self.events.iter().peekable();
        while let Some(event) = events.next() {
            match (event, events.peek()) {
                (&Event::Offered(link, bytes), Some(Event::Transmitted(frame)))
                    if frame.link == link && frame.wire_bytes == bytes =>
                {
                    observer.on_passed(frame);
                    events.next();
                }
                _ => tell(observer, event),
            }
        }
    }

    /// Returns the verdict of the auditor of every packet.
    pub(crate) fn packets(&self) -> AuditReport {
        let mut auditor = PacketAuditor::new(self.links.clone());
        for (flow, declared) in &self.flows {
            auditor.add_flow(*flow, declared);
        }
        self.events.iter().for_each(|event| tell(&mut auditor, event));
        auditor.finish(self)
    }

    /// Returns the names of the rules that either auditor found broken, each once.
    pub(crate) fn broken(&self) -> Vec<&'static str> {
        let verdict = self.streaming().merge(self.packets());
        let mut rules: Vec<&str> = verdict.failures.iter().map(|failure| failure.rule.name()).collect();
        rules.dedup();
        rules
    }
}

/// Random numbers (splitmix64, Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A link as declared, and as it is.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) declared: DeclaredLink,
    pub(crate) rate_bps: u64,
    pub(crate) delay_ns: u64,
    pub(crate) queue_packets: usize,
    pub(crate) loss_percent: u64,
    /// Whether a departure is reported when it happens instead of when the frame arrives.
    pub(crate) reports_late: bool,
}

impl Link {
    /// Returns a link that is as declared, with a queue of this many packets.
    pub(crate) fn new(rate_bps: u64, delay_ns: u64, queue_packets: usize) -> Link {
        let declared = DeclaredLink {
            name: format!("{rate_bps} bit/s"),
            medium: MediumAccess::PointToPoint,
            rate_bps,
            delay_ns,
            delay_varies: false,
            varies: fullpipe_audit::LinkVariation::default(),
            framing_bytes: 2,
            min_frame_bytes: 0,
            mtu_bytes: 1500,
            queue: Some(DeclaredQueueLimit { packets: Some(queue_packets as u64), bytes: None }),
        };
        Link { declared, rate_bps, delay_ns, queue_packets, loss_percent: 0, reports_late: false }
    }

    /// Returns the same link as a medium that both directions share, with Ethernet frames.
    pub(crate) fn shared(self) -> Link {
        let declared =
            DeclaredLink { medium: MediumAccess::HalfDuplex, framing_bytes: 18, min_frame_bytes: 64, ..self.declared };
        Link { declared, reports_late: false, ..self }
    }
}

/// The packets that are sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Traffic {
    /// Datagrams to the right, with random sizes up to `ip_bytes` and random intervals below `interval_ns`.
    Datagrams { ip_bytes: u32, interval_ns: u64 },
    /// A TCP transfer to the right of `segments` segments in a fixed window, with these initial numbers.
    Transfer { segments: u64, window: u64, initial: [u32; 2] },
}

#[derive(Clone, Debug, Default)]
struct LinkState {
    /// End of the busy period, in units of 1/rate ns.
    exact: u128,
    free_from: u64,
    starts: VecDeque<u64>,
    queued: FinalLinkState,
}

#[derive(Clone, Debug)]
struct Packet {
    view: PacketView,
    sent: u64,
    pieces: u32,
    failed: Option<DropReason>,
    /// Index of the segment, for a transfer.
    segment: u64,
}

/// A packet, or a fragment of one, that is about to enter link number `hop` of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    packet: usize,
    ip_bytes: u32,
    hop: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Comes(Piece),
    Departs(usize),
    Next(usize),
    Timer(usize),
}

/// State of the two ends of a transfer.
#[derive(Clone, Debug, Default)]
struct Transfer {
    established: bool,
    next: u64,
    acknowledged: u64,
    received: u64,
    early: BTreeSet<u64>,
    acknowledged_at_timer: u64,
}

const SEGMENT_BYTES: u32 = 1000;
const TIMEOUT_NS: u64 = 50_000_000;

/// The network during a run.
pub(crate) struct World {
    links: Vec<Link>,
    states: Vec<LinkState>,
    /// Links to the right and links to the left.
    ways: [Vec<usize>; 2],
    traffic: Vec<Traffic>,
    transfers: Vec<Transfer>,
    packets: Vec<Packet>,
    due: BinaryHeap<Reverse<(u64, u64, Due)>>,
    /// Departures that are not reported yet, by link.
    departures: Vec<VecDeque<(Transmission, Piece, bool)>>,
    counter: u64,
    random: Random,
    events: Vec<Event>,
    /// Number of an acknowledgment, and the error that is added to it and all later ones.
    pub(crate) acknowledgement_error: Option<(u64, u32)>,
    acknowledgements: u64,
}

impl World {
    /// Returns a network with these links to the right and to the left; with `None`, the first list is one shared medium for both.
    pub(crate) fn new(right: Vec<Link>, left: Option<Vec<Link>>, traffic: Vec<Traffic>, seed: u64) -> World {
        let there: Vec<usize> = (0..right.len()).collect();
        let mut links = right;
        let back = match left {
            Some(left) => {
                let back = (links.len()..links.len() + left.len()).collect();
                links.extend(left);
                back
            }
            None => there.clone(),
        };
        World {
            states: vec![LinkState::default(); links.len()],
            departures: vec![VecDeque::new(); links.len()],
            links,
            ways: [there, back],
            transfers: vec![Transfer::default(); traffic.len()],
            traffic,
            packets: Vec::new(),
            due: BinaryHeap::new(),
            counter: 0,
            random: Random(seed),
            events: Vec::new(),
            acknowledgement_error: None,
            acknowledgements: 0,
        }
    }

    fn schedule(&mut self, at: u64, due: Due) {
        self.counter += 1;
        self.due.push(Reverse((at, self.counter, due)));
    }

    /// Runs to `end`, or until `packets` packets have been sent, and returns the events.
    pub(crate) fn run(mut self, end: u64, packets: usize) -> Run {
        for number in 0..self.traffic.len() {
            let start = self.random.below(1_000_000);
            self.schedule(start, Due::Next(number));
        }
        while let Some(&Reverse((at, _, due))) = self.due.peek() {
            if at > end || self.packets.len() >= packets {
                break;
            }
            self.due.pop();
            match due {
                Due::Comes(piece) => self.comes(at, piece),
                Due::Departs(link) => self.departs(link),
                Due::Next(number) => self.next(at, number),
                Due::Timer(number) => self.timer(at, number),
            }
        }
        self.close()
    }

    fn departs(&mut self, link: usize) {
        let (frame, piece, lost) = self.departures[link].pop_front().expect("a departure was planned");
        self.states[link].queued.queued_frames -= 1;
        self.states[link].queued.queued_bytes -= u64::from(frame.wire_bytes);
        self.depart(frame, piece, lost);
    }

    fn next(&mut self, at: u64, number: usize) {
        match self.traffic[number] {
            Traffic::Datagrams { ip_bytes, interval_ns } => {
                let size = 28 + self.random.below(u64::from(ip_bytes) - 27) as u32;
                self.send(at, 2 * number, size, size - 28, None, 0);
                let pause = self.random.below(interval_ns);
                self.schedule(at + pause, Due::Next(number));
            }
            Traffic::Transfer { .. } => {
                self.segment(at, number, 0, None, true);
                self.schedule(at + TIMEOUT_NS, Due::Timer(number));
            }
        }
    }

    fn timer(&mut self, at: u64, number: usize) {
        let Traffic::Transfer { segments, .. } = self.traffic[number] else { return };
        let transfer = &mut self.transfers[number];
        if transfer.acknowledged >= segments {
            return;
        }
        if transfer.acknowledged == transfer.acknowledged_at_timer {
            transfer.next = transfer.acknowledged;
            if transfer.established { self.fill(at, number) } else { self.segment(at, number, 0, None, true) }
        }
        let transfer = &mut self.transfers[number];
        transfer.acknowledged_at_timer = transfer.acknowledged;
        self.schedule(at + TIMEOUT_NS, Due::Timer(number));
    }

    fn fill(&mut self, at: u64, number: usize) {
        let Traffic::Transfer { segments, window, .. } = self.traffic[number] else { return };
        while self.transfers[number].next < segments.min(self.transfers[number].acknowledged + window) {
            let index = self.transfers[number].next;
            self.transfers[number].next += 1;
            self.segment(at, number, 0, Some(index), true);
        }
    }

    /// Sends one segment: SYN, data (`index`), or an acknowledgment.
    fn segment(&mut self, at: u64, number: usize, side: usize, index: Option<u64>, content: bool) {
        let Traffic::Transfer { initial, .. } = self.traffic[number] else { return };
        let transfer = &self.transfers[number];
        let syn = content && index.is_none();
        let offset = |segments: u64| 1u32.wrapping_add((segments as u32).wrapping_mul(SEGMENT_BYTES));
        let sequence = match (side, index) {
            (_, Some(index)) => initial[side].wrapping_add(offset(index)),
            (_, None) if syn => initial[side],
            (0, None) => initial[0].wrapping_add(offset(transfer.next)),
            _ => initial[side].wrapping_add(1),
        };
        let length = if syn { 1 } else { SEGMENT_BYTES * u32::from(content) };
        let has_ack = !(syn && side == 0);
        let other = initial[side ^ 1];
        let mut acknowledgement =
            if side == 0 { other.wrapping_add(1) } else { other.wrapping_add(offset(transfer.received)) };
        self.acknowledgements += u64::from(has_ack);
        if let Some((from, error)) = self.acknowledgement_error
            && has_ack
            && self.acknowledgements >= from
        {
            acknowledgement = acknowledgement.wrapping_add(error);
        }
        let tcp = TcpView {
            sequence,
            sequence_end: sequence.wrapping_add(length),
            acknowledgement: if has_ack { acknowledgement } else { 0 },
            has_ack,
            syn,
        };
        let payload = if syn || !content { 0 } else { SEGMENT_BYTES };
        self.send(at, 2 * number + side, 40 + payload, payload, Some(tcp), index.unwrap_or(u64::MAX));
    }

    fn send(&mut self, at: u64, flow: usize, ip_bytes: u32, payload_bytes: u32, tcp: Option<TcpView>, segment: u64) {
        let view =
            PacketView { flow: FlowId(flow as u32), ip_bytes, payload_bytes, codepoint: EcnCodepoint::NotEct, tcp };
        self.events.push(Event::Sent(at, view));
        self.packets.push(Packet { view, sent: at, pieces: 1, failed: None, segment });
        self.comes(at, Piece { packet: self.packets.len() - 1, ip_bytes, hop: 0 });
    }

    /// Processes the arrival of a fragment at the next link of its path, or at its destination.
    fn comes(&mut self, at: u64, piece: Piece) {
        let side = self.packets[piece.packet].view.flow.index() & 1;
        let Some(&link) = self.ways[side].get(piece.hop) else {
            return self.ends(at, piece.packet, None);
        };
        let mtu = self.links[link].declared.mtu_bytes;
        if piece.ip_bytes <= mtu {
            return self.offer(at, link, piece);
        }
        // RFC 791: the payload of each fragment but the last is a multiple of eight bytes; each has a header of 20 bytes.
        let each = (mtu - 20) / 8 * 8;
        let mut left = piece.ip_bytes - 20;
        let mut pieces = Vec::new();
        while left > 0 {
            let now = left.min(each);
            pieces.push(Piece { ip_bytes: 20 + now, ..piece });
            left -= now;
        }
        self.packets[piece.packet].pieces += pieces.len() as u32 - 1;
        for piece in pieces {
            self.offer(at, link, piece);
        }
    }

    fn offer(&mut self, at: u64, link: usize, piece: Piece) {
        let Link { declared, rate_bps, delay_ns, queue_packets, loss_percent, reports_late } = self.links[link].clone();
        let id = LinkId(link as u32);
        let shared = declared.medium == MediumAccess::HalfDuplex;
        let bytes = (piece.ip_bytes + declared.framing_bytes).max(declared.min_frame_bytes);
        let rate = u128::from(rate_bps);
        self.events.push(Event::Offered(id, bytes));
        let state = &mut self.states[link];
        while state.starts.front().is_some_and(|start| *start <= at) {
            state.starts.pop_front();
        }
        let mut start = at.max(state.free_from);
        if start > at && state.starts.len() >= queue_packets {
            self.events.push(Event::LinkDropped(id, bytes, DropReason::QueueFull));
            return self.ends(at, piece.packet, Some(DropReason::QueueFull));
        }
        if shared {
            // Stations sometimes leave the medium idle for a while.
            start += self.random.below(3) * 96;
        }
        let state = &mut self.states[link];
        if start > at {
            state.starts.push_back(start);
        }
        // On a shared medium each frame is computed alone.
        let begin = if shared { u128::from(start) * rate } else { state.exact.max(u128::from(start) * rate) };
        state.exact = begin + u128::from(bytes) * 8_000_000_000;
        let finish = (state.exact / rate) as u64;
        let arrival = finish + delay_ns;
        state.free_from = if shared { arrival } else { finish };
        let flow = self.packets[piece.packet].view.flow;
        let at_instant = Instant::from_nanos;
        let frame = Transmission {
            link: id,
            flow,
            wire_bytes: bytes,
            offered: at_instant(at),
            start: at_instant(start),
            finish: at_instant(finish),
            arrival: at_instant(arrival),
        };
        let lost = self.random.chance(loss_percent);
        if reports_late {
            state.queued.queued_frames += 1;
            state.queued.queued_bytes += u64::from(bytes);
            self.departures[link].push_back((frame, piece, lost));
            self.schedule(start, Due::Departs(link));
        } else {
            self.depart(frame, piece, lost);
        }
    }

    fn depart(&mut self, frame: Transmission, piece: Piece, lost: bool) {
        let arrival = frame.arrival.as_nanos();
        self.events.push(Event::Transmitted(frame));
        if lost {
            self.events.push(Event::LinkDropped(frame.link, frame.wire_bytes, DropReason::Loss));
            return self.ends(arrival, piece.packet, Some(DropReason::Loss));
        }
        self.schedule(arrival, Due::Comes(Piece { hop: piece.hop + 1, ..piece }));
    }

    /// Ends a fragment; the last one ends the packet.
    fn ends(&mut self, at: u64, number: usize, failure: Option<DropReason>) {
        let packet = &mut self.packets[number];
        packet.pieces -= 1;
        packet.failed = packet.failed.or(failure);
        if packet.pieces > 0 {
            return;
        }
        let Packet { view, sent, failed, segment, .. } = *packet;
        if let Some(reason) = failed {
            return self.events.push(Event::Dropped(at, view, reason));
        }
        self.events.push(Event::Delivered(at, view, sent));
        if let Some(tcp) = view.tcp {
            self.receive(at, view.flow, tcp, segment);
        }
    }

    fn receive(&mut self, at: u64, flow: FlowId, tcp: TcpView, segment: u64) {
        let (number, side) = (flow.index() / 2, flow.index() & 1);
        if side == 0 {
            if tcp.syn {
                self.segment(at, number, 1, None, true);
            } else if segment != u64::MAX {
                let transfer = &mut self.transfers[number];
                if segment >= transfer.received {
                    transfer.early.insert(segment);
                }
                while transfer.early.remove(&transfer.received) {
                    transfer.received += 1;
                }
                self.segment(at, number, 1, None, false);
            }
            return;
        }
        let Traffic::Transfer { initial, .. } = self.traffic[number] else { return };
        let transfer = &mut self.transfers[number];
        transfer.established = true;
        let bytes = tcp.acknowledgement.wrapping_sub(initial[0]).wrapping_sub(1);
        transfer.acknowledged = transfer.acknowledged.max(u64::from(bytes / SEGMENT_BYTES));
        transfer.next = transfer.next.max(transfer.acknowledged);
        if tcp.syn {
            self.segment(at, number, 0, None, false);
        }
        self.fill(at, number);
    }

    /// Returns the run with the state at the end and the published counters.
    fn close(self) -> Run {
        let mut monitor = FlowMonitor::new();
        monitor.reserve_flows(2 * self.traffic.len());
        self.events.iter().for_each(|event| tell(&mut monitor, event));
        let path = |side: usize| self.ways[side].iter().map(|link| LinkId(*link as u32)).collect::<Vec<_>>();
        let mut flow_ends = BTreeMap::new();
        let mut flows = Vec::new();
        for index in 0..2 * self.traffic.len() {
            let flow = FlowId(index as u32);
            let on_the_way = self.packets.iter().filter(|packet| packet.view.flow == flow && packet.pieces > 0);
            let end = FinalFlowState {
                in_flight_packets: on_the_way.clone().count() as u64,
                in_flight_bytes: on_the_way.map(|packet| u64::from(packet.view.ip_bytes)).sum(),
                published: Some(PublishedCounters::from(&monitor.flow(flow))),
            };
            flow_ends.insert(flow, end);
            flows.push((flow, DeclaredFlow { path: path(index & 1), ipv6: false }));
        }
        Run {
            links: self.links.into_iter().map(|link| link.declared).collect(),
            flows,
            events: self.events,
            link_ends: self.states.iter().map(|state| state.queued).collect(),
            flow_ends,
        }
    }
}
