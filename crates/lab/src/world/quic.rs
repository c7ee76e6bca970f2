//! QUIC flows: ends of connections that the real stack plays, each with a UDP port of its own.
//!
//! Their numbers begin where no TCP endpoint's number is, so that neither pays for the other: a stream, and what an
//! application has called, is a QUIC end's from [`FIRST`] on, and the timer of end n is event [`FIRST_TIMER`] + n of the
//! class of applications.

use super::model::ModelMaker;
use super::wakeups::{Habits, Wakeups};
use super::{AtHost, Conversation, Core, NONE, World};
use crate::plugins::ControlMaker;
use crate::witness::Witness;
use fullpipe_congestion::{Controller, catalogue};
use fullpipe_engine::{EventClass, EventId, Slot};
use fullpipe_network::{Content, Handle, Network, Packet};
use fullpipe_scenario::description;
use fullpipe_stack::journal::Journal;
use fullpipe_stack::{Connection, Cryptography, Datagram, Entropy, Inspection, Settings, Statistics};
use fullpipe_transport::Stream;
use fullpipe_units::{FlowId, Instant, NodeId};
use fullpipe_wire::IpVersion;
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_workload::{OpenOptions, StreamId};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Number of the first QUIC end.
pub(super) const FIRST: u32 = 1 << 31;
/// Event of the first QUIC end's timer.
pub(super) const FIRST_TIMER: u32 = 1 << 27;
/// The first port that initiators use (RFC 6335 section 6), and how many there are.
const FIRST_PORT: u16 = 49_152;
const PORTS: usize = 16_384;

/// How the connections of a flow are made, and by whom they are played.
#[derive(Clone, Debug)]
pub(crate) enum QuicMaker {
    /// By the real stack.
    Stack(StackMaker),
    /// By our model.
    Model(ModelMaker),
}

impl QuicMaker {
    /// Settings of a flow's connections, or why they cannot be made.
    pub(crate) fn new(described: &description::Quic) -> Result<QuicMaker, String> {
        Ok(match &described.model {
            Some(model) => QuicMaker::Model(ModelMaker::new(described, model)?),
            None => QuicMaker::Stack(StackMaker::new(described)?),
        })
    }

    /// The same with a plugged-in control, or why it cannot be driven.
    pub(crate) fn with_control(self, maker: ControlMaker) -> Result<Self, String> {
        Ok(match self {
            QuicMaker::Model(model) => QuicMaker::Model(model.with_control(maker)?),
            QuicMaker::Stack(stack) => QuicMaker::Stack(stack.with_control(maker)?),
        })
    }

    /// Name of the congestion control.
    pub(super) fn control(&self) -> &str {
        match self {
            QuicMaker::Model(model) => &model.control,
            QuicMaker::Stack(stack) => &stack.control,
        }
    }

    pub(super) fn model(&self) -> Option<&ModelMaker> {
        match self {
            QuicMaker::Model(model) => Some(model),
            QuicMaker::Stack(_) => None,
        }
    }

    fn stack(&self) -> Option<&StackMaker> {
        match self {
            QuicMaker::Model(_) => None,
            QuicMaker::Stack(stack) => Some(stack),
        }
    }
}

/// How the real stack's connections of a flow are made.
#[derive(Clone, Debug)]
pub(crate) struct StackMaker {
    settings: Settings,
    /// Name of the congestion control.
    pub(super) control: Arc<str>,
    options: catalogue::Options,
    /// Who makes the control, if not the catalogue.
    plugged: Option<ControlMaker>,
    habits: Habits,
}

impl StackMaker {
    fn new(described: &description::Quic) -> Result<StackMaker, String> {
        let options = catalogue::Options { hystart: described.hystart, paced: true, quic: true, ..Default::default() };
        let control = catalogue::create(&described.congestion, &options).map_err(|unknown| unknown.to_string())?;
        accept(&*control)?;
        let cryptography = cryptography(described.tls, described.certificate_bytes)?;
        let settings = Settings {
            initial_mtu_bytes: described.initial_mtu_bytes,
            largest_mtu_bytes: described.largest_mtu_bytes,
            initial_window_packets: described.initial_window_packets,
            send_buffer_bytes: described.send_buffer_bytes,
            receive_buffer_bytes: described.receive_buffer_bytes,
            idle_timeout: described.idle_timeout,
            certificate_bytes: described.certificate_bytes,
            cryptography,
            journal: None,
        };
        let control = described.congestion.as_str().into();
        let habits = Habits { reaction: described.reaction.clone(), timer_granularity: described.timer_granularity };
        Ok(StackMaker { settings, control, options, plugged: None, habits })
    }

    fn with_control(self, maker: ControlMaker) -> Result<Self, String> {
        let control = maker.make(0, true);
        accept(&*control)?;
        Ok(StackMaker { control: control.name().into(), plugged: Some(maker), ..self })
    }

    /// When one end wakes up; `seed` is that of its control.
    fn wakeups(&self, seed: u64) -> Wakeups {
        Wakeups::new(&self.habits, fullpipe_units::Stream::new(seed, "end", "reaction"))
    }

    /// What makes the control of one end of the flow's n-th connection; `seed` decides the random choices that it may
    /// make.
    fn controls(&self, seed: u64, connection: u32, initiator: bool) -> fullpipe_stack::Maker {
        if let Some(maker) = self.plugged.clone() {
            return Arc::new(move || maker.make(connection, initiator));
        }
        let (name, options) = (self.control.clone(), catalogue::Options { seed, ..self.options });
        Arc::new(move || catalogue::create(&name, &options).expect("it could be created when the world was built"))
    }

    /// The settings of one end (0: initiator) of a connection that was opened with these options.
    fn settings(&self, options: &OpenOptions, end: usize) -> Settings {
        let usual = self.settings.receive_buffer_bytes;
        let receive_buffer_bytes = options.receive_buffer_bytes.map_or(usual, |bytes| bytes[end]);
        Settings { receive_buffer_bytes, ..self.settings.clone() }
    }
}

/// TLS, or nothing in its sizes; or why there is no certificate of this size.
pub(super) fn cryptography(tls: bool, certificate_bytes: u64) -> Result<Cryptography, String> {
    let cryptography = if tls { Cryptography::Tls } else { Cryptography::Null };
    cryptography.refusal(certificate_bytes).map_or(Ok(cryptography), Err)
}

fn accept(control: &dyn Controller) -> Result<(), String> {
    fullpipe_stack::refusal(control).map_or(Ok(()), Err)
}

/// One end of a connection at a host.
#[derive(Debug)]
pub(super) struct QuicEnd {
    pub(super) connection: Connection,
    /// Flow of the packets it sends.
    flow: FlowId,
    application: u32,
    node: NodeId,
    peer: NodeId,
    version: IpVersion,
    timer: Slot,
    /// Number of the tunnel's flow that its datagrams go by.
    via: Option<u32>,
    wakeups: Wakeups,
}

impl QuicEnd {
    /// Its conversation, and which end of it (0: initiator) it is.
    fn place(&self) -> (u32, usize) {
        ((self.flow.index() / 2) as u32, usize::from(!self.flow.is_forward()))
    }
}

/// All ends of QUIC connections.
#[derive(Debug, Default)]
pub(super) struct QuicEnds {
    ends: Vec<Option<Box<QuicEnd>>>,
    free: Vec<u32>,
    /// Statistics of ends that are gone, by conversation and end.
    gone: BTreeMap<(u32, usize), Statistics>,
    /// The same by flow and end, in the order in which the connections were opened; after the run.
    of_flows: BTreeMap<(u32, usize), Vec<Statistics>>,
    /// What ends note for an observer, by conversation and end, if they do.
    pub(super) journals: Option<BTreeMap<(usize, usize), Journal>>,
}

impl QuicEnds {
    fn get(&self, number: u32) -> Option<&QuicEnd> {
        self.ends.get(number.checked_sub(FIRST)? as usize)?.as_deref()
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut QuicEnd> {
        self.ends.get_mut(number.checked_sub(FIRST)? as usize)?.as_deref_mut()
    }

    /// Conversation, and which end of it (0: initiator), of an end.
    pub(super) fn place(&self, number: u32) -> Option<(usize, usize)> {
        self.get(number).map(|end| (end.flow.index() / 2, end.place().1))
    }

    /// A journal for one end of a conversation, if journals are kept.
    pub(super) fn open_journal(&mut self, place: (usize, usize)) -> Option<Journal> {
        let journals = self.journals.as_mut()?;
        Some(journals.entry(place).or_default().clone())
    }

    /// A stream of an application that is none of TCP's.
    #[cold]
    #[inline(never)]
    pub(super) fn stream(&mut self, number: u32, application: u32) -> Option<&mut dyn Stream> {
        let end = self.get_mut(number)?;
        (end.application == application).then_some(&mut end.connection as &mut dyn Stream)
    }

    /// Ends that live.
    pub(super) fn live(&self) -> usize {
        self.ends.len() - self.free.len()
    }

    /// A datagram has come to an end; says whether that lives.
    pub(super) fn handle_datagram(&mut self, number: u32, now: Instant, datagram: Datagram) -> bool {
        let Some(end) = self.get_mut(number) else { return false };
        end.connection.handle_datagram(now, datagram);
        true
    }

    /// Whether an end to which a datagram has come waits before it reacts; its timer is then armed.
    fn waits(&mut self, network: &mut Network<Witness>, number: u32) -> bool {
        let Some(end) = self.get_mut(number).filter(|end| !end.wakeups.is_at_once()) else { return false };
        if let Some(at) = end.wakeups.begin(network.now()) {
            let timer = EventId::new(EventClass::Application, FIRST_TIMER + (number - FIRST));
            end.timer.arm(&mut network.calendar, timer, at.min(end.wakeups.tick(end.connection.next_timeout())));
        }
        true
    }

    /// Statistics of an end that is gone.
    pub(super) fn note_gone(&mut self, place: (u32, usize), statistics: Statistics) {
        self.gone.insert(place, statistics);
    }

    /// Whether an end was there and is gone.
    pub(super) fn is_gone(&self, place: (u32, usize)) -> bool {
        self.gone.contains_key(&place)
    }

    fn insert(&mut self, end: QuicEnd) -> u32 {
        let end = Some(Box::new(end));
        if let Some(place) = self.free.pop() {
            self.ends[place as usize] = end;
            FIRST + place
        } else {
            self.ends.push(end);
            FIRST + self.ends.len() as u32 - 1
        }
    }
}

impl World {
    /// What the congestion control at one end of a conversation (0: initiator) shows, and the smoothed round-trip time,
    /// while the connection lives; nothing if the flow does not run over QUIC.
    pub(crate) fn quic_inspection(&self, conversation: usize, end: usize) -> Option<(Inspection, f64)> {
        let Some(end_of_stack) = self.core.quic.get(self.core.conversations[conversation].endpoints[end]) else {
            return self.model_inspection(conversation, end);
        };
        let connection = &end_of_stack.connection;
        let smoothed_rtt_s = connection.smoothed_rtt().map_or(0.0, |rtt| rtt.as_secs_f64());
        Some((connection.inspect()?, smoothed_rtt_s))
    }

    /// Statistics of one end of a conversation (0: initiator) over QUIC that is gone, or of any after
    /// [`World::note_statistics`].
    pub(crate) fn quic_statistics(&self, conversation: usize, end: usize) -> Option<Statistics> {
        self.core.quic.gone.get(&(conversation as u32, end)).copied()
    }

    /// The same of all connections of a flow, in the order in which they were opened; after [`World::note_statistics`].
    pub(crate) fn quic_statistics_of_flow(&self, flow: usize, end: usize) -> &[Statistics] {
        self.core.quic.of_flows.get(&(flow as u32, end)).map_or(&[], Vec::as_slice)
    }

    /// The run is over: notes the statistics of the ends that live, which the stack tells only when it may change.
    pub(crate) fn note_statistics(&mut self) {
        let Core { quic: QuicEnds { ends, gone, of_flows, .. }, model, conversations, .. } = &mut self.core;
        for end in ends.iter_mut().flatten() {
            gone.insert(end.place(), end.connection.statistics());
        }
        gone.extend(model.statistics());
        of_flows.clear();
        for (&(conversation, end), statistics) in &*gone {
            let flow = conversations[conversation as usize].flow;
            of_flows.entry((flow, end)).or_default().push(*statistics);
        }
    }

    /// A datagram with bytes has come to a host.
    #[cold]
    #[inline(never)]
    pub(super) fn receive_datagram(&mut self, network: &mut Network<Witness>, node: NodeId, handle: Handle) {
        let packet = *network.arena.get(handle);
        if self.core.tunnels.is_some() && self.receive_by_program(network, node, &packet) {
            network.arena.release(handle);
            return self.serve_programs(network);
        }
        let payload = network.arena.payload(packet.payload).cloned();
        network.arena.release(handle);
        let Some(payload) = payload else { return };
        let conversation = packet.flow.index() / 2;
        // The receiver of a forward packet is the acceptor.
        let end = usize::from(packet.flow.is_forward());
        let mut number = self.core.conversations[conversation].endpoints[end];
        if number == NONE {
            let Some(acceptor) = self.core.accept_quic(network, packet.flow) else { return };
            number = acceptor;
        }
        let datagram = Datagram { payload, codepoint: packet.codepoint };
        if !self.core.quic.handle_datagram(number, network.now(), datagram) {
            return;
        }
        if self.core.quic.waits(network, number) {
            return;
        }
        self.service_quic(network, number);
        self.service_touched(network);
    }

    /// The timer of an end has come up.
    #[cold]
    #[inline(never)]
    pub(super) fn quic_timer(&mut self, network: &mut Network<Witness>, place: u32) {
        let now = network.now();
        let number = FIRST + place;
        let Some(end) = self.core.quic.get_mut(number) else { return };
        if !end.timer.fired(now) {
            return;
        }
        if end.connection.next_timeout() <= now {
            end.connection.handle_timeout(now);
        }
        self.service_quic(network, number);
        self.service_touched(network);
    }

    /// Tells the application what happened at an end, sends what it has to send, arms its timer.
    #[cold]
    #[inline(never)]
    pub(super) fn service_quic(&mut self, network: &mut Network<Witness>, number: u32) {
        // Sending may bring the end of the connection, which the application hears of, too.
        loop {
            let Some(end) = self.core.quic.get_mut(number) else { return };
            end.wakeups.end();
            let application = end.application;
            if let Some(event) = end.connection.poll_event() {
                let mut io = AtHost { core: &mut self.core, network, application, serviced: number };
                self.applications[application as usize].on_stream(StreamId(number), event, &mut io);
            } else if !self.core.quic_output(network, number) {
                break;
            }
        }
        let Some(end) = self.core.quic.get_mut(number) else { return };
        if end.connection.is_drained() {
            self.core.forget_quic(number);
        } else {
            let timer = EventId::new(EventClass::Application, FIRST_TIMER + (number - FIRST));
            end.timer.arm(&mut network.calendar, timer, end.wakeups.tick(end.connection.next_timeout()));
        }
        if self.core.tunnels.is_some() {
            self.serve_programs(network);
        }
    }
}

impl Core {
    /// Sends all that an end has to send. Returns whether its application ought to know something afterwards.
    fn quic_output(&mut self, network: &mut Network<Witness>, number: u32) -> bool {
        let now = network.now();
        let Some(end) = self.quic.get_mut(number) else { return false };
        if let Some(tunnel) = end.via {
            let conversation = end.place().0;
            while let Some(datagram) = self.quic.get_mut(number).and_then(|end| end.connection.poll_transmit(now)) {
                self.send_through(tunnel, conversation, datagram);
            }
            return self.quic.get(number).is_some_and(|end| end.connection.has_events());
        }
        while let Some(Datagram { payload, codepoint }) = end.connection.poll_transmit(now) {
            let payload_bytes = payload.len() as u32;
            let ip_bytes = end.version.header_bytes() + UDP_HEADER_BYTES + payload_bytes;
            let payload = network.arena.store_payload(Some(payload));
            let packet = Packet::new(end.flow, end.peer, ip_bytes, Content::Udp { payload_bytes });
            network.send(end.node, &Packet { version: end.version, codepoint, payload, ..packet });
        }
        end.connection.has_events()
    }

    fn forget_quic(&mut self, number: u32) {
        let place = number - FIRST;
        let Some(mut end) = self.quic.ends.get_mut(place as usize).and_then(Option::take) else { return };
        let (conversation, side) = end.place();
        self.conversations[conversation as usize].endpoints[side] = NONE;
        if let Some(tunnel) = end.via {
            self.close_request(tunnel, conversation);
        }
        self.quic.gone.insert((conversation, side), end.connection.statistics());
        self.quic.free.push(place);
    }

    /// Which of its flow's connections a stream of an application is, if it is one over QUIC.
    #[cold]
    pub(super) fn quic_connection_number(&self, number: u32, application: u32) -> Option<u32> {
        let end = self.quic.get(number)?;
        (end.application == application).then(|| self.conversations[end.flow.index() / 2].number)
    }

    /// Addresses of the ends of a conversation over QUIC, initiator and acceptor. They are those of the hosts: the stack
    /// sees no translator's.
    fn quic_addresses(&self, network: &Network<Witness>, conversation: usize) -> [SocketAddr; 2] {
        let flow = self.conversations[conversation].flow as usize;
        let described = &self.flows[flow];
        let address = |node| network.directory.address(node, described.version);
        let port = FIRST_PORT + (conversation % PORTS) as u16;
        let acceptor = self.scenario.flows[flow].port;
        [SocketAddr::new(address(described.from), port), SocketAddr::new(address(described.to), acceptor)]
    }

    /// The active side of a new conversation of a flow; [`NONE`] if it cannot be opened.
    #[cold]
    pub(super) fn open_quic(
        &mut self,
        network: &mut Network<Witness>,
        conversation: usize,
        options: &OpenOptions,
    ) -> u32 {
        let &Conversation { flow, number, .. } = &self.conversations[conversation];
        let [initiator, wanted] = self.quic_addresses(network, conversation);
        let Some(acceptor) = self.tunnelled_acceptor(wanted, conversation) else { return NONE };
        let (_, seed) = self.draw(conversation, "initiator");
        let entropy = self.entropy(conversation, "initiator");
        let described = &self.flows[flow as usize];
        let Some(quic) = described.quic.as_deref().and_then(QuicMaker::stack) else { return NONE };
        let (mut settings, control) = (quic.settings(options, 0), quic.controls(seed, number, true));
        settings.journal = self.quic.open_journal((conversation, 0));
        let Ok(connection) = Connection::client(&settings, control, &entropy, network.now(), [initiator, acceptor])
        else {
            return NONE;
        };
        let end = QuicEnd {
            connection,
            flow: FlowId(2 * conversation as u32),
            application: 2 * flow,
            node: described.from,
            peer: described.to,
            version: described.version,
            timer: Slot::default(),
            via: described.via,
            wakeups: quic.wakeups(seed),
        };
        if *options != OpenOptions::default() {
            self.options.insert(conversation as u32, *options);
        }
        let number = self.quic.insert(end);
        self.conversations[conversation].endpoints[0] = number;
        number
    }

    /// The passive side, when a datagram finds nobody: unless it was there and is gone.
    fn accept_quic(&mut self, network: &Network<Witness>, flow: FlowId) -> Option<u32> {
        let conversation = flow.index() / 2;
        if !flow.is_forward() || self.quic.gone.contains_key(&(conversation as u32, 1)) {
            return None;
        }
        let &Conversation { flow: described, number, .. } = self.conversations.get(conversation)?;
        let options = self.options.remove(&(conversation as u32)).unwrap_or_default();
        let [initiator, acceptor] = self.quic_addresses(network, conversation);
        let (_, seed) = self.draw(conversation, "acceptor");
        let entropy = self.entropy(conversation, "acceptor");
        let of_flow = self.flows.get(described as usize)?;
        let quic = of_flow.quic.as_deref()?.stack()?;
        let (mut settings, control) = (quic.settings(&options, 1), quic.controls(seed, number, false));
        settings.journal = self.quic.open_journal((conversation, 1));
        let end = QuicEnd {
            connection: Connection::server(&settings, control, &entropy, [acceptor, initiator]),
            flow: flow.reverse(),
            application: 2 * described + 1,
            node: of_flow.to,
            // What came through a tunnel came from its proxy.
            peer: of_flow.via.map_or(of_flow.from, |tunnel| self.flows[tunnel as usize].to),
            version: of_flow.version,
            timer: Slot::default(),
            via: None,
            wakeups: quic.wakeups(seed),
        };
        let number = self.quic.insert(end);
        self.conversations[conversation].endpoints[1] = number;
        Some(number)
    }

    /// The random streams of one end of a conversation's stack.
    fn entropy(&self, conversation: usize, end: &str) -> Entropy {
        let Conversation { flow, number, .. } = &self.conversations[conversation];
        let name = &self.scenario.flows[*flow as usize].name;
        Entropy::new(self.scenario.seed, &format!("{name} conversation {number} {end}"))
    }
}
