//! Creates endpoints: opens a conversation at its initiator, and accepts it at its acceptor.

use super::binding::Binding;
use super::flow::{Conversation, EndpointFactory, Flow, UNDESCRIBED};
use super::quic_model::ModelEndpoint;
use super::quic_stack::StackEndpoint;
use super::state::HostState;
use super::streams::{NO_STREAM, StreamKey};
use super::tcp::TcpEndpoint;
use crate::stack::RandomStreams;
use crate::witness::RunObserver;
use fullpipe_congestion::source::ConnectionEnd;
use fullpipe_engine::TimerSlot;
use fullpipe_network::Network;
use fullpipe_quic::ZeroRttEntry;
use fullpipe_tcp::{Connection, Cookie, FastOpenEntry};
use fullpipe_transport::endpoint::{EndpointId, EndpointKind};
use fullpipe_transport::tls::Session;
use fullpipe_units::{FlowId, Instant, NodeId};
use fullpipe_wire::TcpHeader;
use fullpipe_wire::tcp::flags;
use fullpipe_workload::{OpenOptions, StreamId};
use std::net::SocketAddr;

/// The first ephemeral port (RFC 6335 section 6) for initiators over the QUIC stack, and the number of these ports.
const FIRST_PORT: u16 = 49_152;
const PORTS: usize = 16_384;

/// The random values of one end of a conversation.
struct Draws {
    initial_sequence: u32,
    /// Seed of the end's congestion control.
    congestion: u64,
}

impl HostState {
    fn draw(&self, conversation: usize, end: &str) -> Draws {
        let Conversation { flow, number, .. } = &self.conversations[conversation];
        let name = format!("{} conversation {number} {end}", self.scenario.flows[*flow as usize].name);
        let draw = |purpose| fullpipe_units::random::derive_number(self.scenario.seed, &name, purpose);
        Draws { initial_sequence: draw("initial-sequence") as u32, congestion: draw("congestion") }
    }

    /// Returns the random streams of one end of a conversation over the QUIC stack.
    fn entropy(&self, conversation: usize, end: &str) -> RandomStreams {
        let Conversation { flow, number, .. } = &self.conversations[conversation];
        let name = &self.scenario.flows[*flow as usize].name;
        RandomStreams::new(self.scenario.seed, &format!("{name} conversation {number} {end}"))
    }

    fn initiator(&self, conversation: usize) -> Binding {
        let flow = self.conversations[conversation].flow;
        let &Flow { from, to, version, .. } = &self.flows[flow as usize];
        Binding { flow: FlowId(2 * conversation as u32), application: 2 * flow, node: from, peer: to, version }
    }

    fn acceptor(&self, conversation: usize) -> Binding {
        let Binding { flow, application, node, peer, version } = self.initiator(conversation);
        Binding { flow: flow.reverse(), application: application + 1, node: peer, peer: node, version }
    }

    fn keep_options(&mut self, conversation: usize, options: &OpenOptions) {
        if *options != OpenOptions::default() {
            self.options.insert(conversation as u32, *options);
        }
    }

    fn set_endpoint(&mut self, conversation: usize, end: usize, kind: EndpointKind, index: u32) {
        self.conversations[conversation].endpoints[end] = Some(EndpointId::new(kind, index));
    }

    /// Opens a new conversation of a flow (active open). Returns its first stream, or [`NO_STREAM`].
    pub(super) fn open(&mut self, network: &mut Network<RunObserver>, flow: u32, options: &OpenOptions) -> StreamId {
        let opened = self.opened[flow as usize];
        self.opened[flow as usize] += 1;
        let conversation = if opened == 0 {
            flow as usize
        } else {
            self.conversations.push(Conversation::new(flow, opened));
            network.observer.grow(self.conversations.len(), self.flows[flow as usize].version);
            let conversation = self.conversations.len() - 1;
            // If the flow's first conversation has declared ports, this conversation needs ports too.
            if let Some(like) = network.directory.endpoints(FlowId(2 * flow)) {
                network.directory.add_with_next_port(
                    FlowId(2 * conversation as u32),
                    like.source.node,
                    like.destination,
                );
            }
            conversation
        };
        let opened = match &self.flows[flow as usize].endpoints {
            EndpointFactory::Tcp(_) => self.open_tcp(network.now(), conversation, options),
            EndpointFactory::QuicModel(_) => self.open_model(network.now(), conversation, options),
            EndpointFactory::QuicStack(_) => self.open_stack(network, conversation, options),
            EndpointFactory::None | EndpointFactory::Tunnel(_) => None,
        };
        opened.map_or(NO_STREAM, StreamKey::id)
    }

    /// Returns whether probes or a log read the state of endpoints during the run.
    fn is_observed(&self) -> bool {
        self.called.is_some() || !self.scenario.probes.is_empty()
    }

    fn open_tcp(&mut self, now: Instant, conversation: usize, options: &OpenOptions) -> Option<StreamKey> {
        let observed = self.is_observed();
        let Draws { initial_sequence, congestion } = self.draw(conversation, "initiator");
        let &Conversation { flow, number, .. } = &self.conversations[conversation];
        let EndpointFactory::Tcp(maker) = &mut self.flows[flow as usize].endpoints else { return None };
        let control = maker.control.create(ConnectionEnd { seed: congestion, connection: number, initiator: true });
        let mut connection = Connection::client(maker.config(options, 0), control, initial_sequence, now);
        maker.prepare(&mut connection, observed);
        let tls = maker.tls.map(|settings| Box::new(Session::client(settings)));
        self.keep_options(conversation, options);
        if connection.config().fast_open {
            self.set_fast_open_entry(&mut connection, flow);
        }
        let endpoint = TcpEndpoint::new(connection, tls, self.initiator(conversation));
        let index = self.endpoints.tcp.slots.insert(endpoint);
        self.set_endpoint(conversation, 0, EndpointKind::Tcp, index);
        Some(StreamKey::Tcp(index))
    }

    /// Accepts a TCP connection (passive open) if a segment without an endpoint is a SYN. Returns the new endpoint's
    /// index.
    #[cold]
    pub(super) fn accept_tcp(&mut self, now: Instant, flow: FlowId, header: &TcpHeader) -> Option<u32> {
        let conversation = flow.index() / 2;
        if !flow.is_forward() || !header.has_flag(flags::SYN) || header.has_flag(flags::ACK | flags::RST) {
            return None;
        }
        let &Conversation { flow: described, number, .. } = self.conversations.get(conversation)?;
        if described == UNDESCRIBED {
            return None;
        }
        let observed = self.is_observed();
        let Draws { initial_sequence, congestion } = self.draw(conversation, "acceptor");
        let options = self.options.remove(&(conversation as u32)).unwrap_or_default();
        let EndpointFactory::Tcp(maker) = &mut self.flows[described as usize].endpoints else { return None };
        let control = maker.control.create(ConnectionEnd { seed: congestion, connection: number, initiator: false });
        let mut connection = Connection::server(maker.config(&options, 1), control, initial_sequence, now);
        maker.prepare(&mut connection, observed);
        let tls = maker.tls.map(|settings| Box::new(Session::server(settings)));
        let binding = self.acceptor(conversation);
        if connection.config().fast_open
            && let Some(cookie) = self.fast_open_cookie(binding.peer, binding.node)
        {
            connection.set_fast_open_cookie(cookie);
        }
        let index = self.endpoints.tcp.slots.insert(TcpEndpoint::new(connection, tls, binding));
        self.set_endpoint(conversation, 1, EndpointKind::Tcp, index);
        Some(index)
    }

    /// Returns the Fast Open cookie that a server accepts from a client (RFC 7413 section 4.1.2).
    fn fast_open_cookie(&self, client: NodeId, server: NodeId) -> Option<Cookie> {
        let name = format!("server {} client {}", server.0, client.0);
        Cookie::new(&fullpipe_units::random::derive_number(self.scenario.seed, &name, "fast-open").to_be_bytes())
    }

    /// Sets the server's Fast Open cookie in a client's connection, if the client has a cookie.
    #[cold]
    fn set_fast_open_entry(&self, connection: &mut Connection, flow: u32) {
        let Flow { from, to, endpoints, .. } = &self.flows[flow as usize];
        let known = matches!(endpoints, EndpointFactory::Tcp(maker) if maker.fast_open_known);
        let assumed = || {
            let cookie = self.fast_open_cookie(*from, *to).filter(|_| known)?;
            Some(FastOpenEntry { cookie, mss_bytes: u16::try_from(connection.config().mss_bytes).ok() })
        };
        if let Some(entry) = self.fast_open.get(&(*from, *to)).copied().or_else(assumed) {
            connection.set_fast_open_entry(entry);
        }
    }

    /// Stores the Fast Open cookie that a client has received.
    #[cold]
    pub(super) fn note_fast_open(&mut self, index: u32) {
        let Some(endpoint) = self.endpoints.tcp.slots.get(index) else { return };
        if let Some(entry) = endpoint.connection.fast_open_entry() {
            self.fast_open.insert((endpoint.binding.node, endpoint.binding.peer), entry);
        }
    }

    fn open_model(&mut self, now: Instant, conversation: usize, options: &OpenOptions) -> Option<StreamKey> {
        let seed = self.draw(conversation, "initiator").congestion;
        let &Conversation { flow, number, .. } = &self.conversations[conversation];
        let EndpointFactory::QuicModel(maker) = &self.flows[flow as usize].endpoints else { return None };
        let config = maker.config(options, 0);
        let known = maker.zero_rtt.then(|| ZeroRttEntry::from_server_config(&maker.config(options, 1)));
        let control = maker.control.create(ConnectionEnd { seed, connection: number, initiator: true });
        let mut connection = fullpipe_quic::Connection::client(config, control, now, known);
        maker.prepare(&mut connection, number, true, self.is_observed());
        let stream = connection.open_stream(now, true);
        let endpoint = ModelEndpoint::new(connection, self.initiator(conversation), !options.several_streams);
        let index = self.endpoints.quic_model.slots.insert(endpoint);
        self.keep_options(conversation, options);
        self.set_endpoint(conversation, 0, EndpointKind::QuicModel, index);
        self.endpoints.quic_model.stream(index, stream?).map(StreamKey::QuicModel)
    }

    /// Accepts a connection of the QUIC model, because a datagram without an endpoint has arrived. Returns the new
    /// endpoint's index; `None` if the connection is already closed.
    #[cold]
    pub(super) fn accept_model(&mut self, now: Instant, flow: FlowId) -> Option<u32> {
        let conversation = self.acceptable(flow)?;
        let &Conversation { flow: described, number, .. } = &self.conversations[conversation];
        let options = self.options.remove(&(conversation as u32)).unwrap_or_default();
        let seed = self.draw(conversation, "acceptor").congestion;
        let EndpointFactory::QuicModel(maker) = &self.flows[described as usize].endpoints else { return None };
        let control = maker.control.create(ConnectionEnd { seed, connection: number, initiator: false });
        let mut connection = fullpipe_quic::Connection::server(maker.config(&options, 1), control, now);
        maker.prepare(&mut connection, number, false, self.is_observed());
        let endpoint = ModelEndpoint::new(connection, self.acceptor(conversation), false);
        let index = self.endpoints.quic_model.slots.insert(endpoint);
        self.set_endpoint(conversation, 1, EndpointKind::QuicModel, index);
        Some(index)
    }

    /// Returns the conversation whose acceptor a datagram may create, if any. Each acceptor is created at most once.
    fn acceptable(&self, flow: FlowId) -> Option<usize> {
        let conversation = flow.index() / 2;
        let described = self.conversations.get(conversation)?.flow;
        let is_open = flow.is_forward() && described != UNDESCRIBED;
        (is_open && !self.over.contains_key(&(conversation as u32, 1))).then_some(conversation)
    }

    /// Returns the addresses of the initiator and the acceptor of a conversation over the QUIC stack: those of the
    /// hosts, without address translation.
    fn stack_addresses(&self, network: &Network<RunObserver>, conversation: usize) -> [SocketAddr; 2] {
        let flow = self.conversations[conversation].flow as usize;
        let described = &self.flows[flow];
        let address = |node| network.directory.address(node, described.version);
        let port = FIRST_PORT + (conversation % PORTS) as u16;
        let acceptor = self.scenario.flows[flow].port;
        [SocketAddr::new(address(described.from), port), SocketAddr::new(address(described.to), acceptor)]
    }

    /// Returns the address of a conversation's acceptor; `None` if the conversation goes through a tunnel and no port
    /// is free.
    fn tunneled_acceptor(&mut self, wanted: SocketAddr, conversation: usize) -> Option<SocketAddr> {
        let flow = &self.flows[self.conversations[conversation].flow as usize];
        match (flow.via, &mut self.endpoints.tunnels) {
            (Some(_), Some(tunnels)) => tunnels.acceptor(wanted, conversation as u32),
            _ => Some(wanted),
        }
    }

    #[cold]
    fn open_stack(
        &mut self,
        network: &mut Network<RunObserver>,
        conversation: usize,
        options: &OpenOptions,
    ) -> Option<StreamKey> {
        let &Conversation { flow, number, .. } = &self.conversations[conversation];
        let [initiator, wanted] = self.stack_addresses(network, conversation);
        let acceptor = self.tunneled_acceptor(wanted, conversation)?;
        let seed = self.draw(conversation, "initiator").congestion;
        let entropy = self.entropy(conversation, "initiator");
        let binding = self.initiator(conversation);
        let Flow { endpoints: EndpointFactory::QuicStack(maker), via, .. } = &self.flows[flow as usize] else {
            return None;
        };
        let (mut settings, control) = (maker.settings(options, 0), maker.controls(seed, number, true));
        settings.journal = self.endpoints.quic_stack.open_journal((conversation, 0));
        let addresses = [initiator, acceptor];
        let connection = crate::stack::Connection::client(&settings, control, &entropy, network.now(), addresses);
        let endpoint = StackEndpoint {
            connection: connection.ok()?,
            binding,
            timer: TimerSlot::default(),
            via: *via,
            wakeups: maker.wakeups(seed),
        };
        self.keep_options(conversation, options);
        let index = self.endpoints.quic_stack.slots.insert(Box::new(endpoint));
        self.set_endpoint(conversation, 0, EndpointKind::QuicStack, index);
        Some(StreamKey::QuicStack(index))
    }

    /// Accepts a connection of the QUIC stack, because a datagram without an endpoint has arrived. Returns the new
    /// endpoint's index; `None` if the connection is already closed.
    pub(super) fn accept_stack(&mut self, network: &Network<RunObserver>, flow: FlowId) -> Option<u32> {
        let conversation = self.acceptable(flow)?;
        let &Conversation { flow: described, number, .. } = &self.conversations[conversation];
        let options = self.options.remove(&(conversation as u32)).unwrap_or_default();
        let [initiator, acceptor] = self.stack_addresses(network, conversation);
        let seed = self.draw(conversation, "acceptor").congestion;
        let entropy = self.entropy(conversation, "acceptor");
        let mut binding = self.acceptor(conversation);
        let Flow { endpoints: EndpointFactory::QuicStack(maker), via, .. } = &self.flows[described as usize] else {
            return None;
        };
        if let Some(tunnel) = via {
            // Datagrams that arrive through a tunnel have the proxy as their source.
            binding.peer = self.flows[*tunnel as usize].to;
        }
        let (mut settings, control) = (maker.settings(&options, 1), maker.controls(seed, number, false));
        settings.journal = self.endpoints.quic_stack.open_journal((conversation, 1));
        let endpoint = StackEndpoint {
            connection: crate::stack::Connection::server(&settings, control, &entropy, [acceptor, initiator]),
            binding,
            timer: TimerSlot::default(),
            via: None,
            wakeups: maker.wakeups(seed),
        };
        let index = self.endpoints.quic_stack.slots.insert(Box::new(endpoint));
        self.set_endpoint(conversation, 1, EndpointKind::QuicStack, index);
        Some(index)
    }
}
