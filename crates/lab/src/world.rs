//! Whoever lives at the hosts: connections, applications, and the table of conversations that ties them together.
//!
//! A conversation (five-tuple) is interned when it is opened: it gets two neighbouring [`FlowId`]s, and the receiver of
//! a packet is found by its flow's number, not by comparing addresses and ports. The first conversation of the
//! scenario's n-th flow has the numbers 2n and 2n + 1.

mod at_host;
mod model;
mod quic;
mod tunnels;
mod wakeups;
mod watch;

use self::at_host::AtHost;
pub(crate) use quic::QuicMaker;
pub(crate) use tunnels::{TunnelMaker, ends};
pub(crate) use watch::End;

use crate::plugins::ControlMaker;
use crate::real_time::{Delivery, RealHosts};
use crate::witness::Witness;
use fullpipe_congestion::{Controller, catalogue};
use fullpipe_engine::{EventClass, EventId, Slot};
use fullpipe_network::{Content, Ends, Handle, Hosts, Network, Notice, Reason, Side};
use fullpipe_scenario::Scenario;
use fullpipe_tcp::{Beside, Connection, Cookie, FastOpenEntry, Segment};
use fullpipe_transport::tls::{self, Session};
use fullpipe_transport::{Event, Payload, Stream};
use fullpipe_units::{FlowId, Instant, NodeId};
use fullpipe_wire::tcp::flags;
use fullpipe_wire::{IpVersion, TcpHeader};
use fullpipe_workload::{Application, OpenOptions, Progress, StreamId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Number of no endpoint.
const NONE: u32 = u32::MAX;

/// Flow of the conversations between real hosts that no flow of the scenario describes.
const UNDESCRIBED: u32 = u32::MAX;

/// How the connections of a flow are made.
#[derive(Clone, Debug)]
pub(crate) struct TcpMaker {
    pub(crate) config: Arc<fullpipe_tcp::Config>,
    /// Name of the congestion control.
    control: Arc<str>,
    options: catalogue::Options,
    fast_open_known: bool,
    tls: Option<tls::Settings>,
    /// Who makes the control, if not the catalogue.
    plugged: Option<Box<ControlMaker>>,
    /// Settings of connections that differ from the others, by segment size and receive buffer.
    special: BTreeMap<(u32, u64), Arc<fullpipe_tcp::Config>>,
}

impl TcpMaker {
    /// Settings of a flow's connections, or why they cannot be made.
    pub(crate) fn new(settings: &fullpipe_scenario::description::Tcp) -> Result<Self, String> {
        let options = catalogue::Options {
            hystart: settings.hystart,
            linux_hystart: settings.linux_hystart,
            paced: settings.connection.pacing,
            // RFC 9331 section 4.2: who sends ECT(1) needs accurate feedback.
            ect1: settings.connection.ecn_feedback == fullpipe_tcp::EcnFeedback::Accurate,
            ..Default::default()
        };
        catalogue::create(&settings.congestion, &options).map_err(|unknown| unknown.to_string())?;
        Ok(TcpMaker {
            config: Arc::new(settings.connection.clone()),
            control: settings.congestion.as_str().into(),
            options,
            fast_open_known: settings.fast_open_known,
            tls: settings.tls,
            plugged: None,
            special: BTreeMap::new(),
        })
    }

    /// The same with a plugged-in control, or why TCP cannot drive it.
    pub(crate) fn with_control(self, maker: ControlMaker) -> Result<Self, String> {
        let control = maker.make(0, true);
        if control.signals().one_way_delay {
            return Err(format!(
                "congestion control `{}` needs one-way delays, which TCP does not have",
                control.name()
            ));
        }
        Ok(TcpMaker { control: control.name().into(), plugged: Some(Box::new(maker)), ..self })
    }

    /// The settings of one end (0: initiator) of a connection that was opened with these options.
    fn config(&mut self, options: &OpenOptions, end: usize) -> Arc<fullpipe_tcp::Config> {
        if *options == OpenOptions::default() {
            return self.config.clone();
        }
        let mss_bytes = options.mss_bytes.map_or(self.config.mss_bytes, |mss| mss[end].clamp(1, 65_000));
        let buffer_bytes = options.receive_buffer_bytes.map_or(self.config.receive_buffer_bytes, |bytes| bytes[end]);
        // Room for a segment there must be.
        let buffer_bytes = buffer_bytes.max(u64::from(mss_bytes));
        let special = self.special.entry((mss_bytes, buffer_bytes));
        let usual = &self.config;
        let make = || {
            Arc::new(fullpipe_tcp::Config {
                mss_bytes,
                receive_buffer_bytes: buffer_bytes,
                ..fullpipe_tcp::Config::clone(usual)
            })
        };
        special.or_insert_with(make).clone()
    }

    /// The control of one end of the flow's n-th connection; `seed` decides the random choices that it may make.
    fn controller(&self, seed: u64, connection: u32, initiator: bool) -> Box<dyn Controller> {
        if let Some(maker) = &self.plugged {
            return maker.make(connection, initiator);
        }
        let options = catalogue::Options { seed, ..self.options };
        catalogue::create(&self.control, &options).expect("it could be created when the world was built")
    }
}

/// One end of a connection at a host.
#[derive(Debug)]
struct Endpoint {
    connection: Connection,
    /// What protects its stream, if anything does.
    tls: Option<Box<Session>>,
    /// Whether events need more than being handed on: under TLS, and to learn a Fast Open cookie.
    attended: bool,
    /// Flow of the packets it sends.
    flow: FlowId,
    application: u32,
    node: NodeId,
    peer: NodeId,
    version: IpVersion,
    far: Slot,
    near: Slot,
}

/// An application's timer.
#[derive(Debug)]
struct Wake {
    deadline: Instant,
    slot: Slot,
}

/// A conversation.
#[derive(Debug)]
struct Conversation {
    /// Index of the scenario's flow.
    flow: u32,
    /// Which of the flow's conversations it is, in the order in which they were opened.
    number: u32,
    /// Endpoints of initiator and acceptor.
    endpoints: [u32; 2],
    /// Segments that endpoints that are gone have sent again: all that is kept of them, for a run may have hundreds of
    /// thousands.
    gone: [Option<u32>; 2],
}

/// A flow of the scenario.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) start: Instant,
    pub(crate) version: IpVersion,
    /// How its TCP connections are made; `None` for other transports.
    pub(crate) tcp: Option<TcpMaker>,
    /// The same for QUIC.
    pub(crate) quic: Option<Box<QuicMaker>>,
    /// What it is made with if it is a tunnel.
    pub(crate) tunnel: Option<Box<TunnelMaker>>,
    /// Number of the flow that is the tunnel which it goes through.
    pub(crate) via: Option<u32>,
}

/// Everything but the applications themselves, which call into it.
#[derive(Debug)]
struct Core {
    endpoints: Vec<Option<Endpoint>>,
    free_endpoints: Vec<u32>,
    /// Ends of QUIC connections.
    quic: quic::QuicEnds,
    /// Those that our model plays.
    model: model::ModelEnds,
    /// Tunnels, if there are any.
    tunnels: Option<Box<tunnels::Tunnels>>,
    /// By number of the conversation.
    conversations: Vec<Conversation>,
    flows: Vec<Flow>,
    /// Conversations opened by each flow so far.
    opened: Vec<u32>,
    wakes: Vec<Wake>,
    /// Endpoints that an application has called and that must be asked for output.
    touched: Vec<u32>,
    /// Ends of conversations that applications have called, if anybody watches.
    called: Option<Vec<(usize, usize)>>,
    beside: Beside,
    /// Seed and names: random streams are named after flows, not after their place in the file.
    scenario: Arc<Scenario>,
    /// Options of conversations whose acceptor has not heard of them yet.
    options: BTreeMap<u32, OpenOptions>,
    /// Fast Open: what a client (first) remembers of a server.
    fast_open: BTreeMap<(NodeId, NodeId), FastOpenEntry>,
    /// From this acknowledgement on, receivers lie (a fault for the auditor); 0: never.
    lie_from: u64,
    acknowledgements: u64,
    /// Hosts that are none of the model's, in real time.
    real: Option<Box<RealHosts>>,
}

/// All hosts.
#[derive(Debug)]
pub(crate) struct World {
    core: Core,
    /// Two per flow: initiator's at 2n, acceptor's at 2n + 1.
    applications: Vec<Box<dyn Application>>,
    started: Vec<bool>,
}

impl World {
    pub(crate) fn new(
        flows: Vec<Flow>,
        applications: Vec<Box<dyn Application>>,
        scenario: Arc<Scenario>,
        lie_from: u64,
    ) -> Self {
        let wakes =
            applications.iter().map(|_| Wake { deadline: Instant::NEVER, slot: Slot::default() }).collect::<Vec<_>>();
        let opened = vec![0; flows.len()];
        let streams = flows.iter().filter(|flow| flow.tcp.is_some()).count();
        let conversations = (0..flows.len())
            .map(|flow| Conversation { flow: flow as u32, number: 0, endpoints: [NONE; 2], gone: [None, None] })
            .collect();
        World {
            started: vec![false; flows.len()],
            core: Core {
                // Exactly what is needed: doubling a vector of 200 000 endpoints costs more memory than they do.
                endpoints: Vec::with_capacity(2 * streams),
                free_endpoints: Vec::new(),
                quic: quic::QuicEnds::default(),
                model: model::ModelEnds::default(),
                tunnels: None,
                conversations,
                flows,
                opened,
                wakes,
                touched: Vec::new(),
                called: None,
                beside: Beside::default(),
                scenario,
                options: BTreeMap::new(),
                fast_open: BTreeMap::new(),
                lie_from,
                acknowledgements: 0,
                real: None,
            },
            applications,
        }
    }

    /// Puts the start of every flow into the calendar.
    pub(crate) fn start(&mut self, network: &mut Network<Witness>) {
        for flow in 0..self.core.flows.len() {
            let application = 2 * flow as u32;
            if self.is_real(self.core.flows[flow].from) {
                continue;
            }
            let start = self.core.flows[flow].start;
            self.core.wake_at(network, application, start);
        }
    }

    /// Number of conversations opened so far (those of flows that have not started included).
    pub(crate) fn conversations(&self) -> usize {
        self.core.conversations.len()
    }

    /// Scenario flow of a conversation; `None` if it is one of real hosts that no flow describes.
    pub(crate) fn flow_of(&self, conversation: usize) -> Option<usize> {
        let flow = self.core.conversations[conversation].flow;
        (flow != UNDESCRIBED).then_some(flow as usize)
    }

    /// Makes hosts real: what reaches them leaves the model.
    pub(crate) fn set_real(&mut self, network: &mut Network<Witness>, hosts: RealHosts) {
        network.notify_sources(hosts.hosts.iter().map(|host| host.node));
        self.core.real = Some(Box::new(hosts));
    }

    /// Looks after the real hosts, if there are any.
    pub(crate) fn real_mut(&mut self) -> Option<&mut RealHosts> {
        self.core.real.as_deref_mut()
    }

    /// The real hosts, if there are any.
    pub(crate) fn real(&self) -> Option<&RealHosts> {
        self.core.real.as_deref()
    }

    /// Whether a host is real.
    pub(crate) fn is_real(&self, node: NodeId) -> bool {
        self.core.real.as_ref().is_some_and(|real| real.port(node).is_some())
    }

    /// What has reached real hosts since the last call.
    pub(crate) fn delivered(&mut self) -> impl Iterator<Item = Delivery> {
        self.core.real.iter_mut().flat_map(|real| real.delivered.drain(..))
    }

    /// A conversation that a real host begins, or takes part in: its number. It belongs to the flow that describes it.
    #[cold]
    pub(crate) fn introduce_real(
        &mut self,
        network: &mut Network<Witness>,
        described: Option<u32>,
        ends: Ends,
        version: IpVersion,
        protocol: u8,
    ) -> u32 {
        let flow = described.unwrap_or(UNDESCRIBED);
        let number = self.core.opened.get(flow as usize).copied().unwrap_or(0);
        if let Some(opened) = self.core.opened.get_mut(flow as usize) {
            *opened += 1;
        }
        let conversation = if described.is_some() && number == 0 {
            flow
        } else {
            self.core.conversations.push(Conversation { flow, number, endpoints: [NONE; 2], gone: [None, None] });
            network.observer.grow(self.core.conversations.len(), version);
            self.core.conversations.len() as u32 - 1
        };
        network.directory.declare(FlowId(2 * conversation), ends);
        if described.is_none()
            && let Some(real) = &mut self.core.real
        {
            real.conversations.insert(conversation, (protocol, ends));
        }
        conversation
    }

    /// Which of its flow's conversations one is, from 0.
    pub(crate) fn number_of(&self, conversation: usize) -> u32 {
        self.core.conversations[conversation].number
    }

    /// Name of a flow's congestion control, for TCP, QUIC and tunnels.
    pub(crate) fn control(&self, flow: usize) -> Option<&str> {
        let Flow { tcp, quic, tunnel, .. } = &self.core.flows[flow];
        let of_quic = quic.as_ref().map(|quic| quic.control());
        let of_tunnel = tunnel.as_ref().map(|tunnel| &*tunnel.control);
        tcp.as_ref().map(|tcp| &*tcp.control).or(of_quic).or(of_tunnel)
    }

    /// What the application at one end of a flow (0: initiator) has achieved.
    pub(crate) fn progress(&self, flow: usize, end: usize) -> Progress {
        self.application(flow, end).progress()
    }

    /// The application at one end of a flow (0: initiator).
    pub(crate) fn application(&self, flow: usize, end: usize) -> &dyn Application {
        &*self.applications[2 * flow + end]
    }

    /// The connection at one end of a conversation (0: initiator), while it lives.
    pub(crate) fn connection(&self, conversation: usize, end: usize) -> Option<&Connection> {
        let endpoint = self.core.conversations[conversation].endpoints[end];
        self.core.endpoints.get(endpoint as usize)?.as_ref().map(|endpoint| &endpoint.connection)
    }

    /// Segments that one end of a conversation (0: initiator) has sent again, also after its end.
    pub(crate) fn retransmitted_segments(&self, conversation: usize, end: usize) -> Option<u64> {
        match self.connection(conversation, end) {
            Some(connection) => Some(connection.statistics().retransmitted_segments),
            None => self.core.conversations[conversation].gone[end].map(u64::from),
        }
    }

    /// Endpoints that live.
    pub(crate) fn live_endpoints(&self) -> usize {
        self.core.endpoints.len() - self.core.free_endpoints.len() + self.core.quic.live() + self.core.model.live()
    }

    /// Tells applications what happened at an endpoint, sends what it has to send, arms its timers.
    #[inline]
    fn service(&mut self, network: &mut Network<Witness>, number: u32) {
        self.service_one(network, number);
        self.service_touched(network);
    }

    /// Applications may have called other streams than their own.
    #[inline]
    fn service_touched(&mut self, network: &mut Network<Witness>) {
        while let Some(other) = self.core.touched.pop() {
            if self.core.called.is_some() {
                self.note_called(other);
            }
            if other >= model::FIRST {
                self.service_model_stream(network, other);
            } else if other >= quic::FIRST {
                self.service_quic(network, other);
            } else {
                self.service_one(network, other);
            }
        }
    }

    #[inline]
    fn service_one(&mut self, network: &mut Network<Witness>, number: u32) {
        let now = network.now();
        loop {
            let Some(endpoint) = &mut self.core.endpoints[number as usize] else { return };
            let application = endpoint.application;
            let Some(event) = endpoint.connection.poll_event() else { break };
            if endpoint.attended {
                self.core.note_fast_open(number);
                if self.tell_secured(network, number, event) {
                    continue;
                }
            }
            let mut io = AtHost { core: &mut self.core, network, application, serviced: number };
            self.applications[application as usize].on_stream(StreamId(number), event, &mut io);
        }
        self.core.output(network, number, now);
    }
}

impl World {
    /// A segment is for this endpoint.
    #[inline(always)]
    fn receive_segment(&mut self, network: &mut Network<Witness>, number: u32, handle: Handle) {
        let packet = network.arena.get(handle);
        let (Content::Tcp(header), Some(endpoint)) = (&packet.content, &mut self.core.endpoints[number as usize])
        else {
            return network.arena.release(handle);
        };
        let segment = Segment {
            header,
            options: network.arena.options(packet.options),
            payload: network.arena.payload(packet.payload),
            codepoint: packet.codepoint,
        };
        endpoint.connection.handle_segment(network.now(), &segment);
        network.arena.release(handle);
        self.service(network, number);
    }

    /// A segment finds no endpoint: it is for a real host, or it opens a connection, or it is for one that is gone. Both
    /// ends are ours then and know that it is over: the reset of RFC 9293 section 3.10.7.1 would meet nobody.
    #[cold]
    #[inline(never)]
    fn receive_unexpected(&mut self, network: &mut Network<Witness>, node: NodeId, handle: Handle, header: &TcpHeader) {
        if self.core.deliver(network, node, handle) {
            return;
        }
        match self.core.accept(network.now(), network.arena.get(handle).flow, header) {
            Some(acceptor) => self.receive_segment(network, acceptor, handle),
            None => network.arena.release(handle),
        }
    }

    /// An event of a stream under TLS: the session hears of it, and tells the application what it makes of it. Says
    /// whether there is a session.
    #[cold]
    #[inline(never)]
    fn tell_secured(&mut self, network: &mut Network<Witness>, number: u32, event: Event) -> bool {
        let Some(Some(Endpoint { connection, tls: Some(session), .. })) = self.core.endpoints.get_mut(number as usize)
        else {
            return false;
        };
        session.on_event(connection, event);
        loop {
            let Some(Some(Endpoint { tls: Some(session), application, .. })) =
                self.core.endpoints.get_mut(number as usize)
            else {
                return true;
            };
            let application = *application;
            let Some(event) = session.poll_event() else { return true };
            let mut io = AtHost { core: &mut self.core, network, application, serviced: number };
            self.applications[application as usize].on_stream(StreamId(number), event, &mut io);
        }
    }
}

impl Endpoint {
    #[cold]
    #[inline(never)]
    fn write_secured(&mut self, payload: Payload) -> u64 {
        self.tls.as_mut().map_or(0, |session| session.over(&mut self.connection).write(payload))
    }

    #[cold]
    #[inline(never)]
    fn read_secured(&mut self, max_bytes: u64) -> Option<Payload> {
        self.tls.as_mut()?.over(&mut self.connection).read(max_bytes)
    }
}

/// The stream as its application sees it: the connection's, or what TLS makes of it.
impl Stream for Endpoint {
    #[inline]
    fn writable_bytes(&self) -> u64 {
        match &self.tls {
            None => self.connection.writable_bytes(),
            Some(session) => session.writable_bytes(&self.connection),
        }
    }

    fn unsent_bytes(&self) -> Option<u64> {
        self.connection.unsent_bytes()
    }

    #[inline]
    fn write(&mut self, payload: Payload) -> u64 {
        if self.tls.is_some() { self.write_secured(payload) } else { self.connection.write(payload) }
    }

    #[inline]
    fn readable_bytes(&self) -> u64 {
        match &self.tls {
            None => self.connection.readable_bytes(),
            Some(session) => session.readable_bytes(),
        }
    }

    #[inline]
    fn read(&mut self, max_bytes: u64) -> Option<Payload> {
        if self.tls.is_some() { self.read_secured(max_bytes) } else { self.connection.read(max_bytes) }
    }

    fn finish(&mut self) {
        match &mut self.tls {
            None => self.connection.finish(),
            Some(session) => session.over(&mut self.connection).finish(),
        }
    }

    fn abort(&mut self) {
        self.connection.abort();
    }
}

#[cold]
#[inline(never)]
fn store_options(network: &mut Network<Witness>, beside: &Beside) -> Side {
    network.arena.store_options(&beside.options)
}

impl Core {
    #[inline]
    fn output(&mut self, network: &mut Network<Witness>, number: u32, now: Instant) {
        let Some(endpoint) = &mut self.endpoints[number as usize] else { return };
        loop {
            // The header is written to where the packet will lie.
            let handle = network.arena.vacant();
            let header = network.arena.get_mut(handle).tcp_header();
            if !endpoint.connection.poll_segment(now, header, &mut self.beside) {
                break;
            }
            if self.lie_from != 0 {
                self.acknowledgements += u64::from(header.payload_bytes == 0);
                if self.acknowledgements >= self.lie_from && header.payload_bytes == 0 {
                    header.acknowledgement = header.acknowledgement.wrapping_add(1);
                }
            }
            let ip_bytes = endpoint.version.header_bytes() + header.header_bytes() + u32::from(header.payload_bytes);
            let options = match header.has_side_options() {
                false => Side::NONE,
                true => store_options(network, &self.beside),
            };
            let payload = match &self.beside.payload {
                None => Side::NONE,
                bytes => network.arena.store_payload(bytes.clone()),
            };
            let packet = network.arena.get_mut(handle);
            packet.sent = now;
            packet.flow = endpoint.flow;
            packet.destination = endpoint.peer;
            packet.ip_bytes = ip_bytes;
            packet.options = options;
            packet.payload = payload;
            packet.codepoint = self.beside.codepoint;
            packet.version = endpoint.version;
            packet.corrupted = false;
            network.send_filled(endpoint.node, handle);
        }
        let far = EventId::new(EventClass::Transport, 2 * number);
        let near = EventId::new(EventClass::Transport, 2 * number + 1);
        endpoint.far.arm(&mut network.calendar, far, endpoint.connection.far_deadline());
        endpoint.near.arm(&mut network.calendar, near, endpoint.connection.near_deadline());
        if endpoint.connection.is_closed() {
            self.forget(number);
        }
    }

    #[cold]
    fn forget(&mut self, number: u32) {
        let Some(endpoint) = self.endpoints[number as usize].take() else { return };
        let end = usize::from(!endpoint.flow.is_forward());
        let conversation = &mut self.conversations[endpoint.flow.index() / 2];
        conversation.endpoints[end] = NONE;
        let again = endpoint.connection.statistics().retransmitted_segments;
        conversation.gone[end] = Some(u32::try_from(again).unwrap_or(u32::MAX));
        self.free_endpoints.push(number);
    }

    fn insert(&mut self, endpoint: Endpoint) -> u32 {
        if let Some(number) = self.free_endpoints.pop() {
            self.endpoints[number as usize] = Some(endpoint);
            number
        } else {
            self.endpoints.push(Some(endpoint));
            self.endpoints.len() as u32 - 1
        }
    }

    fn wake_at(&mut self, network: &mut Network<Witness>, application: u32, at: Instant) {
        let wake = &mut self.wakes[application as usize];
        wake.deadline = at;
        wake.slot.arm(&mut network.calendar, EventId::new(EventClass::Application, application), at);
    }

    /// What one end of a conversation draws: its initial sequence number and the seed of its congestion control.
    fn draw(&self, conversation: usize, end: &str) -> (u32, u64) {
        let Conversation { flow, number, .. } = &self.conversations[conversation];
        let name = format!("{} conversation {number} {end}", self.scenario.flows[*flow as usize].name);
        let draw = |purpose| fullpipe_units::Stream::new(self.scenario.seed, &name, purpose).bits();
        (draw("initial-sequence") as u32, draw("congestion"))
    }

    /// The active side of a new conversation of a flow.
    fn open(&mut self, network: &mut Network<Witness>, flow: u32, options: &OpenOptions) -> u32 {
        let opened = self.opened[flow as usize];
        self.opened[flow as usize] += 1;
        let conversation = if opened == 0 {
            flow as usize
        } else {
            self.conversations.push(Conversation { flow, number: opened, endpoints: [NONE; 2], gone: [None, None] });
            network.observer.grow(self.conversations.len(), self.flows[flow as usize].version);
            let conversation = self.conversations.len() - 1;
            // Where anybody asks for ports, the flow's first conversation has them.
            if let Some(like) = network.directory.ends(FlowId(2 * flow)) {
                network.directory.introduce(FlowId(2 * conversation as u32), like.source.node, like.destination);
            }
            conversation
        };
        if let Some(maker) = &self.flows[flow as usize].quic {
            return match maker.model() {
                Some(_) => self.open_model(network, conversation, options),
                None => self.open_quic(network, conversation, options),
            };
        }
        let (initial_sequence, seed) = self.draw(conversation, "initiator");
        let Some(tcp) = &mut self.flows[flow as usize].tcp else { return NONE };
        let control = tcp.controller(seed, opened, true);
        let mut connection = Connection::client(tcp.config(options, 0), control, initial_sequence, network.now());
        if *options != OpenOptions::default() {
            self.options.insert(conversation as u32, *options);
        }
        if connection.config().fast_open {
            self.set_fast_open_entry(&mut connection, flow);
        }
        let described = &self.flows[flow as usize];
        let settings = described.tcp.as_ref().and_then(|tcp| tcp.tls);
        let mut tls = settings.map(|settings| Box::new(Session::client(settings)));
        if let Some(session) = &mut tls {
            session.start(&mut connection);
        }
        let number = self.insert(Endpoint {
            attended: tls.is_some() || connection.config().fast_open,
            connection,
            tls,
            flow: FlowId(2 * conversation as u32),
            application: 2 * flow,
            node: described.from,
            peer: described.to,
            version: described.version,
            far: Slot::default(),
            near: Slot::default(),
        });
        self.conversations[conversation].endpoints[0] = number;
        number
    }

    /// The cookie that a server holds to be right for a client (RFC 7413 section 4.1.2).
    fn fast_open_cookie(&self, client: NodeId, server: NodeId) -> Option<Cookie> {
        let name = format!("server {} client {}", server.0, client.0);
        Cookie::new(&fullpipe_units::Stream::new(self.scenario.seed, &name, "fast-open").bits().to_be_bytes())
    }

    /// Tells a client's connection what it remembers of the server.
    #[cold]
    fn set_fast_open_entry(&self, connection: &mut Connection, flow: u32) {
        let Flow { from, to, tcp, .. } = &self.flows[flow as usize];
        let known = tcp.as_ref().is_some_and(|tcp| tcp.fast_open_known);
        let assumed = || {
            let cookie = self.fast_open_cookie(*from, *to).filter(|_| known)?;
            Some(FastOpenEntry { cookie, mss_bytes: u16::try_from(connection.config().mss_bytes).ok() })
        };
        if let Some(entry) = self.fast_open.get(&(*from, *to)).copied().or_else(assumed) {
            connection.set_fast_open_entry(entry);
        }
    }

    /// A client remembers what the server granted.
    #[cold]
    fn note_fast_open(&mut self, number: u32) {
        let Some(endpoint) = &self.endpoints[number as usize] else { return };
        if let Some(entry) = endpoint.connection.fast_open_entry() {
            self.fast_open.insert((endpoint.node, endpoint.peer), entry);
        }
    }

    /// A packet for a real host leaves the model; says whether the host is one.
    #[cold]
    #[inline(never)]
    fn deliver(&mut self, network: &mut Network<Witness>, node: NodeId, handle: Handle) -> bool {
        let delivered = self.real.as_mut().is_some_and(|real| real.deliver(network, node, handle));
        if delivered {
            network.arena.release(handle);
        }
        delivered
    }

    /// The passive side, when a SYN finds nobody.
    #[cold]
    fn accept(&mut self, now: Instant, flow: FlowId, header: &TcpHeader) -> Option<u32> {
        let conversation = flow.index() / 2;
        if !flow.is_forward() || !header.has(flags::SYN) || header.has(flags::ACK | flags::RST) {
            return None;
        }
        let &Conversation { flow: described, number, .. } = self.conversations.get(conversation)?;
        if described == UNDESCRIBED {
            return None;
        }
        let (initial_sequence, seed) = self.draw(conversation, "acceptor");
        let options = self.options.remove(&(conversation as u32)).unwrap_or_default();
        let tcp = self.flows[described as usize].tcp.as_mut()?;
        let control = tcp.controller(seed, number, false);
        let mut connection = Connection::server(tcp.config(&options, 1), control, initial_sequence, now);
        let flow_of = &self.flows[described as usize];
        let tcp = flow_of.tcp.as_ref()?;
        if connection.config().fast_open
            && let Some(cookie) = self.fast_open_cookie(flow_of.from, flow_of.to)
        {
            connection.set_fast_open_cookie(cookie);
        }
        let mut tls = tcp.tls.map(|settings| Box::new(Session::server(settings)));
        if let Some(session) = &mut tls {
            session.start(&mut connection);
        }
        let number = self.insert(Endpoint {
            attended: tls.is_some() || connection.config().fast_open,
            connection,
            tls,
            flow: flow.reverse(),
            application: 2 * described + 1,
            node: flow_of.to,
            peer: flow_of.from,
            version: flow_of.version,
            far: Slot::default(),
            near: Slot::default(),
        });
        self.conversations[conversation].endpoints[1] = number;
        Some(number)
    }
}

impl Hosts<Witness> for World {
    #[inline]
    fn receive(&mut self, network: &mut Network<Witness>, node: NodeId, handle: Handle) {
        let packet = network.arena.get(handle);
        let (flow, packet_payload) = (packet.flow, packet.payload);
        match &packet.content {
            Content::Tcp(header) => {
                // The receiver of a forward packet is the acceptor.
                let end = usize::from(flow.is_forward());
                match self.core.conversations[flow.index() / 2].endpoints[end] {
                    NONE => {
                        let header = *header;
                        self.receive_unexpected(network, node, handle, &header);
                    }
                    number => self.receive_segment(network, number, handle),
                }
            }
            Content::Quic(_) => self.receive_model(network, node, handle),
            &Content::Udp { payload_bytes } => {
                if self.core.real.is_some() && self.core.deliver(network, node, handle) {
                    return;
                }
                if !packet_payload.is_none() {
                    return self.receive_datagram(network, node, handle);
                }
                network.arena.release(handle);
                let flow_index = self.core.conversations[flow.index() / 2].flow;
                let application = 2 * flow_index + u32::from(flow.is_forward());
                let mut io = AtHost { core: &mut self.core, network, application, serviced: NONE };
                self.applications[application as usize].on_datagram(payload_bytes, &mut io);
                self.service_touched(network);
            }
            Content::Wire { .. } => {
                if !self.core.deliver(network, node, handle) {
                    let notice = network.notice_of(handle, node, Reason::Arrived);
                    network.arena.release(handle);
                    if let Some(notice) = notice {
                        self.answer(network, &notice);
                    }
                }
            }
            Content::Fragment { .. } | Content::Arp { .. } => network.arena.release(handle),
        }
    }

    fn receive_fragment(&mut self, network: &mut Network<Witness>, node: NodeId, fragment: Handle) -> bool {
        self.core.real.as_mut().is_some_and(|real| real.deliver(network, node, fragment))
    }

    fn notice(&mut self, network: &mut Network<Witness>, notice: Notice) {
        self.answer(network, &notice);
    }

    fn timer(&mut self, network: &mut Network<Witness>, event: EventId) {
        let now = network.now();
        let index = event.index();
        if event.class() == EventClass::Transport {
            if index >= model::FIRST_TIMER {
                return self.model_timer(network, index - model::FIRST_TIMER);
            }
            let number = index / 2;
            let Some(endpoint) = &mut self.core.endpoints[number as usize] else { return };
            let slot = if index.is_multiple_of(2) { &mut endpoint.far } else { &mut endpoint.near };
            if slot.fired(now) {
                endpoint.connection.handle_timeout(now);
                self.service(network, number);
            }
            return;
        }
        if index >= tunnels::FIRST_TIMER {
            return self.program_timer(network, index - tunnels::FIRST_TIMER);
        }
        if index >= quic::FIRST_TIMER {
            return self.quic_timer(network, index - quic::FIRST_TIMER);
        }
        let wake = &mut self.core.wakes[index as usize];
        if !wake.slot.fired(now) {
            return;
        }
        if wake.deadline > now {
            let deadline = wake.deadline;
            return self.core.wake_at(network, index, deadline);
        }
        wake.deadline = Instant::NEVER;
        let mut io = AtHost { core: &mut self.core, network, application: index, serviced: NONE };
        let application = &mut self.applications[index as usize];
        let initiator = index.is_multiple_of(2);
        if initiator && !std::mem::replace(&mut self.started[index as usize / 2], true) {
            application.on_start(&mut io);
            if self.core.tunnels.is_some() && self.start_tunnel(network, index / 2) {
                return;
            }
        } else {
            application.on_wake(&mut io);
        }
        self.service_touched(network);
    }
}
