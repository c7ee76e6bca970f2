//! Writes the log: inspects the connections after each event and before the next.

use super::connection::ConnectionLog;
use super::datagram::{self, DatagramView};
use super::frames;
use super::links::{self, LinkLog};
use super::tcp;
use super::words::TransportSide;
use crate::events::{EventNote, EventWatcher};
use crate::options::QlogOptions;
use crate::outcome::direction_name;
use crate::plugins::AnyObserver;
use crate::witness::RunObserver;
use crate::world::{ConnectionMut, ConversationEnd, World, sender};
use fullpipe_engine::EventId;
use fullpipe_network::{
    CaptureDirection, CapturedPacket, Endpoint, HostEndpoints, Network, Packet, PacketContent, PacketHandle,
    SourceNotification, Tap,
};
use fullpipe_record::qlog::{MAIN_SCHEMA_DRAFT, ObjectWriter, QUIC_EVENTS, QlogHeader, QlogWriter};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::Transport;
use fullpipe_units::{FlowId, Instant, LinkId, NodeId};
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_wire::{IpVersion, QuicDatagram, QuicPacketType, SegmentOptions};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The schema of the events of links.
const LINK_SCHEMA: &str = "urn:fullpipe:qlog:events:link-1";
/// The schema of the events of the scenario.
const SCENARIO_SCHEMA: &str = "urn:fullpipe:qlog:events:scenario-1";
/// The name of the file.
const FILE: &str = "run.sqlog";
/// The schemas of all events; the last is used only if the scenario has events.
const SCHEMAS: [&str; 4] = [QUIC_EVENTS, tcp::SCHEMA, LINK_SCHEMA, SCENARIO_SCHEMA];
/// Number of buffered bytes at which they are appended to the file.
const PIECE_BYTES: usize = 1 << 16;

/// A packet that an endpoint sent or received.
#[derive(Clone, Debug)]
struct ObservedPacket {
    /// The time at which it was sent or received. A host may send a packet later than its endpoint creates it.
    at: Instant,
    packet: Packet,
    options: Option<SegmentOptions>,
    datagram: Option<QuicDatagram>,
}

/// Packets sent since the recorder last removed them.
type ObservedPackets = Arc<Mutex<Vec<ObservedPacket>>>;

/// The tap that collects the packets that hosts send.
#[derive(Debug)]
struct Departures(ObservedPackets);

impl Tap for Departures {
    fn on_packet(
        &mut self,
        _now: Instant,
        _node: NodeId,
        _direction: CaptureDirection,
        _captured: &CapturedPacket<'_>,
    ) {
    }

    fn on_host_send(&mut self, now: Instant, _node: NodeId, captured: &CapturedPacket<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ObservedPacket {
            at: now,
            packet: *captured.packet,
            options: captured.options.copied(),
            datagram: captured.datagram.cloned(),
        });
    }
}

/// Writes the log of a run.
#[derive(Debug)]
pub(crate) struct QlogRecorder {
    scenario: Arc<Scenario>,
    append: QlogOptions,
    writer: QlogWriter,
    failed: io::Result<()>,
    observed: ObservedPackets,
    links: LinkLog,
    known: BTreeMap<ConversationEnd, ConnectionLog>,
}

impl QlogRecorder {
    pub(crate) fn new(settings: &QlogOptions, scenario: &Arc<Scenario>) -> QlogRecorder {
        let mut writer = QlogWriter::default();
        let title = if scenario.title.is_empty() { "a run of Fullpipe" } else { &scenario.title };
        let description = format!(
            "All connections of a simulated run at both ends (group_id FLOW/client, FLOW/server) and its queues (link NAME). \
             Main schema draft {MAIN_SCHEMA_DRAFT}; seed {}; time 0 is the run's beginning.",
            scenario.seed
        );
        writer.begin(&QlogHeader {
            title,
            description: &description,
            software: concat!("fullpipe ", env!("CARGO_PKG_VERSION")),
            event_schemas: if scenario.events.is_empty() { &SCHEMAS[..3] } else { &SCHEMAS },
        });
        QlogRecorder {
            links: LinkLog::new(scenario),
            scenario: scenario.clone(),
            append: settings.clone(),
            writer,
            failed: Ok(()),
            observed: ObservedPackets::default(),
            known: BTreeMap::new(),
        }
    }

    /// Returns the tap that collects the packets that hosts send.
    pub(crate) fn tap(&self) -> Box<dyn Tap> {
        Box::new(Departures(self.observed.clone()))
    }

    /// Returns the observer of links; `paths` are the links of each flow's path.
    pub(crate) fn observer<'a>(&self, paths: impl Iterator<Item = &'a [LinkId]> + 'a) -> Box<dyn AnyObserver> {
        Box::new(self.links.observer(links::bottlenecks(&self.scenario, paths)))
    }

    /// Writes the remaining events after the end of the run.
    ///
    /// # Errors
    /// The first error of writing the file.
    pub(crate) fn finish(mut self, world: &mut World, network: &Network<RunObserver>) -> io::Result<()> {
        let now = network.now();
        self.advance(world, network);
        self.settle(world, network, None);
        let QlogRecorder { links, writer, scenario, .. } = &mut self;
        links.finish(now, writer, |flow| name_of(world, scenario, flow));
        self.flush();
        self.failed
    }

    /// Writes an event of the scenario: either its condition was met, or it happened.
    pub(crate) fn note_event(&mut self, at: Instant, event: usize, note: EventNote, events: &EventWatcher) {
        let name = match note {
            EventNote::Met => "scenario:condition_met",
            EventNote::Happened => "scenario:event",
        };
        let described = &self.scenario.events[event];
        let values = &events.outcome(event).values;
        self.writer.write_event(at, "scenario", name, |data| {
            data.text("name", &described.name);
            if note == EventNote::Happened {
                data.boolean("changes", described.change.is_some());
                data.object("values", |out| {
                    let known = values.iter().filter_map(|(metric, value)| Some((metric, (*value)?)));
                    known.for_each(|(metric, value)| out.number(metric, value));
                });
            }
        });
    }

    fn flush(&mut self) {
        if self.failed.is_ok() {
            self.failed = (self.append.append)(FILE, self.writer.as_bytes());
        }
        self.writer.clear();
    }

    /// Writes the events between the previous and the current event. Called before each event.
    fn advance(&mut self, world: &World, network: &Network<RunObserver>) {
        for observed in self.take_observed() {
            self.write_links(world, observed.at);
            self.carried(world, network, sender(&observed.packet), &observed, TransportSide::Local);
        }
        self.write_links(world, network.now());
        if self.writer.len() >= PIECE_BYTES {
            self.flush();
        }
    }

    /// Writes the events of links before an instant.
    fn write_links(&mut self, world: &World, until: Instant) {
        let QlogRecorder { links, writer, scenario, .. } = self;
        links.write(until, writer, |flow| name_of(world, scenario, flow));
    }

    fn take_observed(&self) -> Vec<ObservedPacket> {
        std::mem::take(&mut *self.observed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the log's state of an endpoint, and writes `connection_started` at the first call. Returns `None` if the
    /// endpoint is neither TCP nor QUIC.
    fn known(
        &mut self,
        world: &World,
        network: &Network<RunObserver>,
        place: ConversationEnd,
        at: Instant,
    ) -> Option<&mut ConnectionLog> {
        let (conversation, end) = place;
        if !self.known.contains_key(&place) {
            if conversation >= world.conversations() {
                return None;
            }
            let flow = world.flow_of(conversation)?;
            let described = &self.scenario.flows[flow];
            let tcp = match described.transport {
                Transport::Tcp(_) => true,
                Transport::Quic(_) | Transport::Masque(_) => false,
                Transport::Udp => return None,
            };
            let name = direction_name(&described.name, world.number_of(conversation) + 1, 0);
            let group = format!("{name}/{}", ["client", "server"][end]);
            let event = if tcp { "tcp:connection_started" } else { "quic:connection_started" };
            let ends = network.directory.endpoints(FlowId(2 * conversation as u32));
            let ends = ends.map(|ends| if end == 0 { ends } else { ends.reverse() });
            self.writer.write_event(at, &group, event, |data| {
                let mut side = |key, endpoint: Option<Endpoint>| {
                    data.object(key, |out| endpoint.iter().for_each(|e| socket(out, network, *e, described.ip)));
                };
                side("local", ends.map(|ends| ends.source));
                side("remote", ends.map(|ends| ends.destination));
            });
            let control = world.control(flow).unwrap_or_default().to_owned();
            self.known.insert(place, ConnectionLog { group, control, tcp, ..ConnectionLog::default() });
        }
        self.known.get_mut(&place)
    }

    /// Writes a packet that has reached a host. Returns the endpoint that receives it.
    fn received(
        &mut self,
        world: &World,
        network: &Network<RunObserver>,
        handle: PacketHandle,
    ) -> Option<ConversationEnd> {
        let packet = network.arena.get(handle);
        // The receiver of a forward packet is the acceptor.
        let place = (packet.flow.index() / 2, usize::from(packet.flow.is_forward()));
        let observed = ObservedPacket {
            at: network.now(),
            packet: *packet,
            options: network.arena.options(packet.options).copied().filter(|_| has_options(packet)),
            datagram: network.arena.datagram(packet.payload).cloned(),
        };
        self.carried(world, network, place, &observed, TransportSide::Remote);
        Some(place)
    }

    /// Writes a packet that was sent or received.
    fn carried(
        &mut self,
        world: &World,
        network: &Network<RunObserver>,
        place: ConversationEnd,
        observed: &ObservedPacket,
        side: TransportSide,
    ) {
        let ObservedPacket { at, packet, options, datagram } = observed;
        let at = *at;
        if !matches!(packet.content, PacketContent::Tcp(_) | PacketContent::Quic(_)) {
            return;
        }
        if self.known(world, network, place, at).is_none() {
            return;
        }
        let QlogRecorder { writer, known, .. } = self;
        let Some(known) = known.get_mut(&place) else { return };
        let id = known.count(side);
        let options = options.as_ref();
        match &packet.content {
            PacketContent::Tcp(header) => {
                let event = if side == TransportSide::Local { "tcp:packet_sent" } else { "tcp:packet_received" };
                writer.write_event(at, &known.group, event, |data| {
                    tcp::segment(data, header, options, packet.codepoint, id);
                });
            }
            PacketContent::Quic(header) => {
                let bytes = packet.ip_bytes - packet.version.header_bytes() - UDP_HEADER_BYTES;
                let codepoint = packet.codepoint;
                let carried = DatagramView { at, group: &known.group, side, id, codepoint, bytes: u64::from(bytes) };
                let index = usize::from(side == TransportSide::Remote);
                let exponent = known.exponents[index].unwrap_or(datagram::ACK_DELAY_EXPONENT);
                let numbers = &mut known.numbers[index];
                let effects =
                    datagram::of_model(writer, &carried, header, options, datagram.as_ref(), numbers, exponent);
                known.handshake |= effects.handshake;
                if effects.closes {
                    known.closed_by.get_or_insert(side);
                }
                if let Some(parameters) = effects.parameters.filter(|_| known.exponents[index].is_none()) {
                    known.exponents[index] = Some(parameters.ack_delay_exponent);
                    writer.write_event(at, &known.group, "quic:parameters_set", |data| {
                        frames::parameters(data, side, &parameters);
                    });
                }
            }
            _ => {}
        }
    }

    /// Writes the effects of an event after the hosts have handled it. `place` is the endpoint that received the packet
    /// or whose timer fired.
    fn settle(&mut self, world: &mut World, network: &Network<RunObserver>, place: Option<ConversationEnd>) {
        let observed = self.take_observed();
        let mut affected: Vec<ConversationEnd> = Vec::new();
        let called = world.take_called();
        let candidates =
            place.into_iter().chain(called).chain(observed.iter().map(|observed| sender(&observed.packet)));
        for place in candidates.chain(world.tunneled()) {
            if !affected.contains(&place) {
                affected.push(place);
            }
        }
        for place in &affected {
            self.inspect_losses(world, network, *place);
        }
        for observed in &observed {
            self.carried(world, network, sender(&observed.packet), observed, TransportSide::Local);
        }
        for place in affected {
            self.inspect_state(world, network, place);
        }
    }

    /// Writes the settings at the first call, then packets that were newly declared lost, and the packet log of the
    /// QUIC stack.
    fn inspect_losses(&mut self, world: &mut World, network: &Network<RunObserver>, place: ConversationEnd) {
        let journal = world.journal(place).map(|journal| journal.take()).unwrap_or_default();
        // The log of an endpoint begins when its connection exists; that of a tunnel begins with its first packet.
        let begins = !journal.is_empty() || world.connection_mut(place).is_some();
        if !self.known.contains_key(&place) && !begins {
            return;
        }
        let at = network.now();
        if self.known(world, network, place, at).is_none() {
            return;
        }
        let flow = world.flow_of(place.0);
        let QlogRecorder { writer, known, scenario, .. } = self;
        let Some(known) = known.get_mut(&place) else { return };
        let first = !std::mem::replace(&mut known.configured, true);
        if let Some(Transport::Masque(settings)) = flow.map(|flow| &scenario.flows[flow].transport) {
            if first {
                let packets = settings.congestion.as_ref().map(|_| settings.initial_window_packets);
                known.recovery_parameters(writer, at, u64::from(settings.initial_mtu_bytes), packets);
                let stream_bytes = u64::from(settings.receive_buffer_bytes);
                let windows = [stream_bytes.saturating_mul(8), stream_bytes];
                known.stack_parameters(writer, at, settings.idle_timeout, windows);
            }
            known.write_journal(writer, at, journal);
            return;
        }
        match world.connection_mut(place) {
            Some(ConnectionMut::Tcp(connection)) => {
                if !first {
                    let timeouts = connection.statistics().timeouts;
                    let timeout = std::mem::replace(&mut known.timeouts, timeouts) < timeouts;
                    for segment in connection.take_losses() {
                        writer.write_event(at, &known.group, "tcp:packet_lost", |data| {
                            tcp::lost(data, &segment, timeout)
                        });
                    }
                } else {
                    connection.record_losses();
                    let (config, control) = (connection.config(), &known.control);
                    writer.write_event(at, &known.group, "tcp:parameters_set", |data| {
                        tcp::parameters(data, config, control)
                    });
                }
            }
            Some(ConnectionMut::Model(connection)) => {
                if !first {
                    for lost in connection.take_losses() {
                        let trigger = if lost.by_reordering { "reordering_threshold" } else { "time_threshold" };
                        known.lost(writer, at, lost.packet_type, lost.number, lost.mtu_probe, Some(trigger));
                    }
                } else {
                    connection.record_losses();
                    let config = connection.config();
                    let (mtu, packets) = (config.initial_mtu_bytes, config.initial_window_packets);
                    known.recovery_parameters(writer, at, u64::from(mtu), Some(packets));
                }
            }
            Some(ConnectionMut::Stack(connection)) => {
                if let Some(Transport::Quic(settings)) = flow.map(|flow| &scenario.flows[flow].transport)
                    && first
                {
                    let settings = &settings.connection;
                    let (mtu, packets) = (settings.initial_mtu_bytes, settings.initial_window_packets);
                    known.recovery_parameters(writer, at, u64::from(mtu), Some(packets));
                    let bytes = settings.receive_buffer_bytes;
                    known.stack_parameters(writer, at, settings.idle_timeout, [bytes, bytes]);
                }
                known.write_journal(writer, at, journal);
                let probes = connection.lost_mtu_probes();
                let newly = probes.saturating_sub(std::mem::replace(&mut known.lost_probes, probes));
                for _ in 0..newly {
                    known.lost(writer, at, QuicPacketType::OneRtt, known.probe.unwrap_or(0), true, None);
                }
            }
            None => {
                known.configured = !first;
                known.write_journal(writer, at, journal);
            }
        }
    }

    /// Writes state and metrics that have changed.
    fn inspect_state(&mut self, world: &mut World, network: &Network<RunObserver>, place: ConversationEnd) {
        let QlogRecorder { writer, known, scenario, .. } = self;
        let Some(known) = known.get_mut(&place) else { return };
        let state = match world.connection_mut(place) {
            Some(ConnectionMut::Tcp(connection)) => tcp::state(connection.state()),
            Some(ConnectionMut::Model(connection)) => {
                use fullpipe_quic::State;
                match connection.state() {
                    State::Opening | State::Open if connection.is_confirmed() => "handshake_confirmed",
                    State::Opening | State::Open => known.opening_state(),
                    State::Closing => "closing",
                    State::Draining => "draining",
                    State::Closed => "closed",
                }
            }
            Some(ConnectionMut::Stack(connection)) => {
                use crate::stack::ConnectionState;
                // A server confirms the handshake when the handshake is complete, and a client when it receives
                // HANDSHAKE_DONE (RFC 9001 section 4.1.2).
                known.confirmed |= place.1 == 1 && connection.state() == ConnectionState::Established;
                match connection.state() {
                    ConnectionState::Listening | ConnectionState::Handshaking | ConnectionState::Established => {
                        known.opening_state()
                    }
                    ConnectionState::Closing if known.closed_by == Some(TransportSide::Remote) => "draining",
                    ConnectionState::Closing => "closing",
                    ConnectionState::Drained => "closed",
                }
            }
            // The conversation of a tunnel has the number of the tunnel's flow.
            None if scenario.flows.get(place.0).is_some_and(|flow| matches!(flow.transport, Transport::Masque(_))) => {
                match known.closed_by {
                    Some(TransportSide::Remote) => "draining",
                    Some(TransportSide::Local) => "closing",
                    None => known.opening_state(),
                }
            }
            None if known.configured => "closed",
            None => return,
        };
        let report = world.report(place);
        known.update(writer, network.now(), state, report.as_ref());
    }
}

/// Writes an address and a port.
fn socket(out: &mut ObjectWriter<'_>, network: &Network<RunObserver>, endpoint: Endpoint, version: IpVersion) {
    let address = network.directory.address(endpoint.node, version).to_string();
    match version {
        IpVersion::V4 => {
            out.text("ip_v4", &address);
            out.unsigned("port_v4", u64::from(endpoint.port));
        }
        IpVersion::V6 => {
            out.text("ip_v6", &address);
            out.unsigned("port_v6", u64::from(endpoint.port));
        }
    }
}

/// Returns whether a packet has further options in the arena.
fn has_options(packet: &Packet) -> bool {
    match &packet.content {
        PacketContent::Tcp(header) => header.has_segment_options(),
        PacketContent::Quic(header) => header.ranges > 0,
        _ => false,
    }
}

/// Returns the name of a packet's flow, as in `flows.csv`.
fn name_of(world: &World, scenario: &Scenario, flow: FlowId) -> String {
    let conversation = flow.index() / 2;
    let described = (conversation < world.conversations()).then(|| world.flow_of(conversation)).flatten();
    described.map_or_else(String::new, |index| {
        let name = &scenario.flows[index].name;
        direction_name(name, world.number_of(conversation) + 1, usize::from(!flow.is_forward())).into_owned()
    })
}

/// The hosts of a run with a log: forwards each event to the world and writes its effects.
pub(crate) struct LoggingWorld<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) recorder: &'a mut QlogRecorder,
}

impl HostEndpoints<RunObserver> for LoggingWorld<'_> {
    fn receive(&mut self, network: &mut Network<RunObserver>, node: NodeId, packet: PacketHandle) {
        self.recorder.advance(self.world, network);
        let place = self.recorder.received(self.world, network, packet);
        self.world.receive(network, node, packet);
        self.recorder.settle(self.world, network, place);
    }

    fn on_timer(&mut self, network: &mut Network<RunObserver>, event: EventId) {
        self.recorder.advance(self.world, network);
        let place = self.world.place_of_timer(event);
        self.world.on_timer(network, event);
        self.recorder.settle(self.world, network, place);
    }

    fn receive_fragment(&mut self, network: &mut Network<RunObserver>, node: NodeId, fragment: PacketHandle) -> bool {
        self.world.receive_fragment(network, node, fragment)
    }

    fn on_notification(&mut self, network: &mut Network<RunObserver>, notice: SourceNotification) {
        self.recorder.advance(self.world, network);
        self.world.on_notification(network, notice);
        self.recorder.settle(self.world, network, None);
    }
}
