//! qlog of a run: every connection, TCP and QUIC, at both its ends, and the queues between them, in one file on one axis of
//! time.
//!
//! **Nobody is asked to tell.** The hosts of a run that is logged are wrapped ([`Logged`]): whatever reaches them or wakes them
//! is written down and handed on, and after each such event, with the world standing still, the connections that it may have
//! concerned are looked at: what they found lost, their state, their window. What leaves a host is seen by a tap
//! ([`fullpipe_network::Tap::handed_over`]), links by an observer ([`links`]), packets of the real stack by its journal
//! ([`fullpipe_stack::journal`]). A run without a log has none of this in its code's way.
//!
//! **One file.** A connection has two ends, and what happened at each is a group of its own (`group_id`): `FLOW/client` and
//! `FLOW/server`. With the queues in the same file, a loss is seen where it was made, where it was found, and in what the
//! control made of it, without aligning anything.

mod datagram;
mod frames;
mod links;
mod metrics;
mod tcp;

use self::datagram::{Carried, Numbers, TransportSide};
use self::links::LinkLog;
use self::metrics::{Metrics, positive, sampled, threshold};
use crate::capture::Append;
use crate::outcome::direction_name;
use crate::plugins::Plugged;
use crate::witness::Witness;
use crate::world::{End, World};
use fullpipe_engine::EventId;
use fullpipe_network::{Captured, Content, Direction, Endpoint, Handle, Hosts, Network, Notice, Packet, Tap};
use fullpipe_record::qlog::{MAIN_SCHEMA_DRAFT, Object, Preamble, QUIC_EVENTS, QlogWriter};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::Transport;
use fullpipe_stack::journal::Entry;
use fullpipe_units::{Codepoint, Duration, FlowId, Instant, LinkId, NodeId};
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_wire::{IpVersion, QuicDatagram, QuicPacketType, SegmentOptions};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, io};

/// The schema of links' events.
const LINK_SCHEMA: &str = "urn:fullpipe:qlog:events:link-1";
/// The file's name.
const FILE: &str = "run.sqlog";
/// Bytes of the file that are kept in memory.
const PIECE_BYTES: usize = 1 << 16;

/// Where a log goes.
#[derive(Clone)]
pub struct Qlog {
    /// Takes the file, `run.sqlog`, piece by piece.
    pub append: Append,
}

impl fmt::Debug for Qlog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Qlog").finish_non_exhaustive()
    }
}

/// One end of a conversation: its number, and which end (0: initiator).
type Place = (usize, usize);

/// A packet that a host's transport has handed to the network.
#[derive(Clone, Debug)]
struct Handed {
    /// When: a host may take its time between making a packet and sending it.
    at: Instant,
    packet: Packet,
    options: Option<SegmentOptions>,
    datagram: Option<QuicDatagram>,
}

/// Packets handed over since they were taken last.
type HandedOver = Arc<Mutex<Vec<Handed>>>;

/// Sees what leaves hosts.
#[derive(Debug)]
struct Departures(HandedOver);

impl Tap for Departures {
    fn packet(&mut self, _now: Instant, _node: NodeId, _direction: Direction, _captured: &Captured<'_>) {}

    fn handed_over(&mut self, now: Instant, _node: NodeId, captured: &Captured<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Handed {
            at: now,
            packet: *captured.packet,
            options: captured.options.copied(),
            datagram: captured.datagram.cloned(),
        });
    }
}

/// What is known of one end of a conversation.
#[derive(Debug, Default)]
struct Known {
    group: String,
    control: String,
    tcp: bool,
    /// Its settings are written.
    configured: bool,
    state: Option<&'static str>,
    congestion: Option<&'static str>,
    metrics: Metrics,
    /// Packets (TCP) or datagrams (QUIC) sent and received.
    sent: u64,
    received: u64,
    /// TCP: time-outs so far.
    timeouts: u64,
    /// The model: packet numbers sent and received, and the exponents of acknowledgement delays, ours and the peer's.
    numbers: [Numbers; 2],
    exponents: [Option<u8>; 2],
    /// A Handshake packet was sent or received.
    handshake: bool,
    confirmed: bool,
    /// Who has closed the connection, by the frame that said so.
    closed_by: Option<TransportSide>,
    /// The real stack: long-header packets that were sent, with their bytes, and the newest probe of the path's MTU.
    opening: Vec<(u64, usize, QuicPacketType)>,
    probe: Option<u64>,
    lost_probes: u64,
    over: bool,
}

/// Writes the log of a run.
#[derive(Debug)]
pub(crate) struct Recorder {
    scenario: Arc<Scenario>,
    append: Qlog,
    writer: QlogWriter,
    failed: io::Result<()>,
    handed: HandedOver,
    links: LinkLog,
    known: BTreeMap<Place, Known>,
}

impl Recorder {
    pub(crate) fn new(settings: &Qlog, scenario: &Arc<Scenario>) -> Recorder {
        let mut writer = QlogWriter::default();
        let title = if scenario.title.is_empty() { "a run of Fullpipe" } else { &scenario.title };
        let description = format!(
            "All connections of a simulated run at both ends (group_id FLOW/client, FLOW/server) and its queues (link NAME). \
             Main schema draft {MAIN_SCHEMA_DRAFT}; seed {}; time 0 is the run's beginning.",
            scenario.seed
        );
        writer.begin(&Preamble {
            title,
            description: &description,
            software: concat!("fullpipe ", env!("CARGO_PKG_VERSION")),
            event_schemas: &[QUIC_EVENTS, tcp::SCHEMA, LINK_SCHEMA],
        });
        Recorder {
            links: LinkLog::new(scenario),
            scenario: scenario.clone(),
            append: settings.clone(),
            writer,
            failed: Ok(()),
            handed: HandedOver::default(),
            known: BTreeMap::new(),
        }
    }

    /// Who sees what leaves hosts.
    pub(crate) fn tap(&self) -> Box<dyn Tap> {
        Box::new(Departures(self.handed.clone()))
    }

    /// Who hears of links; `ways` are the links of each flow's way.
    pub(crate) fn ears<'a>(&self, ways: impl Iterator<Item = &'a [LinkId]> + 'a) -> Box<dyn Plugged> {
        Box::new(self.links.ears(links::bottlenecks(&self.scenario, ways)))
    }

    /// The run has ended.
    ///
    /// # Errors
    /// The first that writing met.
    pub(crate) fn finish(mut self, world: &mut World, network: &Network<Witness>) -> io::Result<()> {
        let now = network.now();
        self.advance(world, network);
        self.settle(world, network, None);
        let Recorder { links, writer, scenario, .. } = &mut self;
        links.finish(now, writer, |flow| name_of(world, scenario, flow));
        self.flush();
        self.failed
    }

    fn flush(&mut self) {
        if self.failed.is_ok() {
            self.failed = (self.append.append)(FILE, self.writer.as_bytes());
        }
        self.writer.clear();
    }

    /// The clock has come to the time of an event: what has happened since the last one is written.
    fn advance(&mut self, world: &World, network: &Network<Witness>) {
        for handed in self.take_handed() {
            self.write_links(world, handed.at);
            self.carried(world, network, sender(&handed), &handed, TransportSide::Local);
        }
        self.write_links(world, network.now());
        if self.writer.len() >= PIECE_BYTES {
            self.flush();
        }
    }

    /// Links are written up to an instant.
    fn write_links(&mut self, world: &World, until: Instant) {
        let Recorder { links, writer, scenario, .. } = self;
        links.write(until, writer, |flow| name_of(world, scenario, flow));
    }

    fn take_handed(&self) -> Vec<Handed> {
        std::mem::take(&mut *self.handed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is known of an end; at first sight its connection begins. `None` if it is none of TCP or QUIC.
    fn known(&mut self, world: &World, network: &Network<Witness>, place: Place, at: Instant) -> Option<&mut Known> {
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
            let ends = network.directory.ends(FlowId(2 * conversation as u32));
            let ends = ends.map(|ends| if end == 0 { ends } else { ends.reverse() });
            self.writer.event(at, &group, event, |data| {
                let mut side = |key, endpoint: Option<Endpoint>| {
                    data.object(key, |out| endpoint.iter().for_each(|e| socket(out, network, *e, described.ip)));
                };
                side("local", ends.map(|ends| ends.source));
                side("remote", ends.map(|ends| ends.destination));
            });
            let control = world.control(flow).unwrap_or_default().to_owned();
            self.known.insert(place, Known { group, control, tcp, ..Known::default() });
        }
        self.known.get_mut(&place)
    }

    /// A packet has reached a host. Returns whose it is.
    fn received(&mut self, world: &World, network: &Network<Witness>, handle: Handle) -> Option<Place> {
        let packet = network.arena.get(handle);
        // The receiver of a forward packet is the acceptor.
        let place = (packet.flow.index() / 2, usize::from(packet.flow.is_forward()));
        let handed = Handed {
            at: network.now(),
            packet: *packet,
            options: network.arena.options(packet.options).copied().filter(|_| has_options(packet)),
            datagram: network.arena.datagram(packet.payload).cloned(),
        };
        self.carried(world, network, place, &handed, TransportSide::Remote);
        Some(place)
    }

    /// Writes a packet that was sent or received.
    fn carried(
        &mut self,
        world: &World,
        network: &Network<Witness>,
        place: Place,
        handed: &Handed,
        side: TransportSide,
    ) {
        let Handed { at, packet, options, datagram } = handed;
        let at = *at;
        if !matches!(packet.content, Content::Tcp(_) | Content::Quic(_)) {
            return;
        }
        if self.known(world, network, place, at).is_none() {
            return;
        }
        let Recorder { writer, known, .. } = self;
        let Some(known) = known.get_mut(&place) else { return };
        let id = known.count(side);
        let options = options.as_ref();
        match &packet.content {
            Content::Tcp(header) => {
                let event = if side == TransportSide::Local { "tcp:packet_sent" } else { "tcp:packet_received" };
                writer.event(at, &known.group, event, |data| {
                    tcp::segment(data, header, options, packet.codepoint, id);
                });
            }
            Content::Quic(header) => {
                let bytes = packet.ip_bytes - packet.version.header_bytes() - UDP_HEADER_BYTES;
                let codepoint = packet.codepoint;
                let carried = Carried { at, group: &known.group, side, id, codepoint, bytes: u64::from(bytes) };
                let index = usize::from(side == TransportSide::Remote);
                let exponent = known.exponents[index].unwrap_or(datagram::ACK_DELAY_EXPONENT);
                let numbers = &mut known.numbers[index];
                let told = datagram::of_model(writer, &carried, header, options, datagram.as_ref(), numbers, exponent);
                known.handshake |= told.handshake;
                if told.closes {
                    known.closed_by.get_or_insert(side);
                }
                if let Some(parameters) = told.parameters.filter(|_| known.exponents[index].is_none()) {
                    known.exponents[index] = Some(parameters.ack_delay_exponent);
                    writer.event(at, &known.group, "quic:parameters_set", |data| {
                        frames::parameters(data, side, &parameters);
                    });
                }
            }
            _ => {}
        }
    }

    /// An event is over: writes what has come of it. `place`: the end that it was for.
    fn settle(&mut self, world: &mut World, network: &Network<Witness>, place: Option<Place>) {
        let handed = self.take_handed();
        let mut concerned: Vec<Place> = Vec::new();
        let called = world.take_called();
        let candidates = place.into_iter().chain(called).chain(handed.iter().map(sender));
        for place in candidates.chain(world.tunnelled()) {
            if !concerned.contains(&place) {
                concerned.push(place);
            }
        }
        for place in &concerned {
            self.look_at_losses(world, network, *place);
        }
        for handed in &handed {
            self.carried(world, network, sender(handed), handed, TransportSide::Local);
        }
        for place in concerned {
            self.look_at_state(world, network, place);
        }
    }

    /// Settings at first sight; what was found lost; what the real stack's journal tells.
    fn look_at_losses(&mut self, world: &mut World, network: &Network<Witness>, place: Place) {
        let journal = world.journal(place.0, place.1).map(|journal| journal.take()).unwrap_or_default();
        // A connection that nobody has heard of begins only with an end that lives; a tunnel's with its first packet.
        let begins = !journal.is_empty() || world.end_mut(place.0, place.1).is_some();
        if !self.known.contains_key(&place) && !begins {
            return;
        }
        let at = network.now();
        if self.known(world, network, place, at).is_none() {
            return;
        }
        let flow = world.flow_of(place.0);
        let Recorder { writer, known, scenario, .. } = self;
        let Some(known) = known.get_mut(&place) else { return };
        let first = !std::mem::replace(&mut known.configured, true);
        if let Some(Transport::Masque(settings)) = flow.map(|flow| &scenario.flows[flow].transport) {
            if first {
                let packets = settings.congestion.as_ref().map(|_| settings.initial_window_packets);
                known.recovery_parameters(writer, at, u64::from(settings.initial_mtu_bytes), packets);
                let stream_bytes = settings.receive_buffer_bytes;
                let windows = [stream_bytes.saturating_mul(8), stream_bytes];
                known.stack_parameters(writer, at, settings.idle_timeout, windows);
            }
            known.write_journal(writer, at, journal);
            return;
        }
        match world.end_mut(place.0, place.1) {
            Some(End::Tcp(connection)) => {
                if !first {
                    let timeouts = connection.statistics().timeouts;
                    let timeout = std::mem::replace(&mut known.timeouts, timeouts) < timeouts;
                    for segment in connection.take_losses() {
                        writer.event(at, &known.group, "tcp:packet_lost", |data| tcp::lost(data, &segment, timeout));
                    }
                } else {
                    connection.note_losses();
                    let (config, control) = (connection.config(), &known.control);
                    writer.event(at, &known.group, "tcp:parameters_set", |data| tcp::parameters(data, config, control));
                }
            }
            Some(End::Model(connection)) => {
                if !first {
                    for lost in connection.take_losses() {
                        let trigger = if lost.by_reordering { "reordering_threshold" } else { "time_threshold" };
                        known.lost(writer, at, lost.packet_type, lost.number, lost.mtu_probe, Some(trigger));
                    }
                } else {
                    connection.note_losses();
                    let config = connection.config();
                    let (mtu, packets) = (config.initial_mtu_bytes, config.initial_window_packets);
                    known.recovery_parameters(writer, at, u64::from(mtu), Some(packets));
                }
            }
            Some(End::Stack(connection)) => {
                if let Some(Transport::Quic(settings)) = flow.map(|flow| &scenario.flows[flow].transport)
                    && first
                {
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

    /// State and metrics, where they have changed.
    fn look_at_state(&mut self, world: &mut World, network: &Network<Witness>, place: Place) {
        let at = network.now();
        let Recorder { writer, known, scenario, .. } = self;
        let Some(known) = known.get_mut(&place) else { return };
        // A tunnel has its flow's number.
        let flow = place.0;
        let prefix = if known.tcp { "tcp" } else { "quic" };
        let mut named = Vec::new();
        let (state, seen) = match world.end_mut(place.0, place.1) {
            Some(End::Tcp(connection)) => {
                let inspect = connection.inspect();
                connection.controller().inspect(&mut named);
                (tcp::state(connection.state()), Some((tcp::metrics(&inspect), inspect.in_recovery)))
            }
            Some(End::Model(connection)) => {
                use fullpipe_quic::State;
                let confirmed = connection.is_confirmed();
                let state = match connection.state() {
                    State::Opening | State::Open if confirmed => "handshake_confirmed",
                    State::Opening | State::Open if known.handshake => "handshake_started",
                    State::Opening | State::Open => "attempted",
                    State::Closing => "closing",
                    State::Draining => "draining",
                    State::Closed => "closed",
                };
                let seen = connection.inspect();
                connection.inspect_control(&mut named);
                (state, Some((of_model(&seen), seen.in_recovery)))
            }
            Some(End::Stack(connection)) => {
                use fullpipe_stack::State;
                // A server confirms when its handshake is complete (RFC 9001 section 4.1.2), a client when it is told.
                known.confirmed |= place.1 == 1 && connection.state() == State::Open;
                let state = match connection.state() {
                    State::Waiting | State::Opening | State::Open if known.confirmed => "handshake_confirmed",
                    State::Waiting | State::Opening | State::Open if known.handshake => "handshake_started",
                    State::Waiting | State::Opening | State::Open => "attempted",
                    State::Closing if known.closed_by == Some(TransportSide::Remote) => "draining",
                    State::Closing => "closing",
                    State::Drained => "closed",
                };
                let seen = connection.inspect();
                let rtt = connection.smoothed_rtt();
                named = seen.as_ref().map(|seen| seen.named.clone()).unwrap_or_default();
                (state, seen.map(|seen| (of_stack(&seen, rtt), seen.in_recovery)))
            }
            None if scenario.flows.get(flow).is_some_and(|flow| matches!(flow.transport, Transport::Masque(_))) => {
                let state = match known.closed_by {
                    Some(TransportSide::Remote) => "draining",
                    Some(TransportSide::Local) => "closing",
                    None if known.confirmed => "handshake_confirmed",
                    None if known.handshake => "handshake_started",
                    None => "attempted",
                };
                let inspected = world.tunnel_inspection(place.0, place.1);
                named = inspected.as_ref().map(|(seen, _)| seen.named.clone()).unwrap_or_default();
                (state, inspected.map(|(seen, rtt)| (of_stack(&seen, rtt), seen.in_recovery)))
            }
            None if known.configured => ("closed", None),
            None => return,
        };
        if known.state != Some(state) {
            let before = known.state.replace(state);
            writer.event(at, &known.group, &format!("{prefix}:connection_state_updated"), |data| {
                before.iter().for_each(|before| data.text("old", before));
                data.text("new", state);
            });
            let over = matches!(state, "closing" | "draining" | "closed") && (!known.tcp || state == "closed");
            if over && !std::mem::replace(&mut known.over, true) {
                writer.event(at, &known.group, &format!("{prefix}:connection_closed"), |data| {
                    known.closed_by.iter().for_each(|side| data.text("initiator", side.word()));
                    if !known.tcp && known.closed_by.is_none() && state == "closed" {
                        data.text("trigger", "idle_timeout");
                    }
                });
            }
        }
        let Some((metrics, in_recovery)) = seen else { return };
        let congestion = metrics.state(in_recovery, &known.control, &named);
        if known.congestion != Some(congestion) {
            let before = known.congestion.replace(congestion);
            writer.event(at, &known.group, &format!("{prefix}:congestion_state_updated"), |data| {
                before.iter().for_each(|before| data.text("old", before));
                data.text("new", congestion);
            });
        }
        if metrics != known.metrics {
            let before = std::mem::replace(&mut known.metrics, metrics);
            writer.event(at, &known.group, &format!("{prefix}:recovery_metrics_updated"), |data| {
                metrics.write_changes(&before, data);
            });
        }
    }
}

impl Known {
    /// The number of the next packet or datagram.
    fn count(&mut self, side: TransportSide) -> u64 {
        let count = if side == TransportSide::Local { &mut self.sent } else { &mut self.received };
        *count += 1;
        *count - 1
    }

    fn lost(
        &self,
        writer: &mut QlogWriter,
        at: Instant,
        packet_type: QuicPacketType,
        number: u64,
        mtu_probe: bool,
        trigger: Option<&str>,
    ) {
        writer.event(at, &self.group, "quic:packet_lost", |data| {
            data.object("header", |header| {
                header.text("packet_type", datagram::type_word(packet_type));
                header.unsigned("packet_number", number);
            });
            if mtu_probe {
                data.boolean("is_mtu_probe_packet", true);
            }
            trigger.iter().for_each(|trigger| data.text("trigger", trigger));
        });
    }

    /// `initial_packets`: `None` without a congestion control.
    fn recovery_parameters(&self, writer: &mut QlogWriter, at: Instant, mtu_bytes: u64, initial_packets: Option<u64>) {
        writer.event(at, &self.group, "quic:recovery_parameters_set", |data| {
            data.unsigned("max_datagram_size", mtu_bytes);
            if let Some(packets) = initial_packets {
                data.unsigned("initial_congestion_window", mtu_bytes.saturating_mul(packets));
            }
            data.text("congestion_control", &self.control);
        });
    }

    /// Of the real stack only what it was set to is known: here the receive windows of the connection and of a stream, in
    /// bytes.
    fn stack_parameters(&self, writer: &mut QlogWriter, at: Instant, idle: Duration, windows: [u64; 2]) {
        writer.event(at, &self.group, "quic:parameters_set", |data| {
            data.text("initiator", TransportSide::Local.word());
            data.unsigned("max_idle_timeout", idle.as_nanos() / 1_000_000);
            data.unsigned("initial_max_data", windows[0]);
            for kind in ["bidi_local", "bidi_remote", "uni"] {
                data.unsigned(&format!("initial_max_stream_data_{kind}"), windows[1]);
            }
            data.array("unknown_parameters", |_| {});
        });
    }

    /// What the real stack has done, in its order.
    fn write_journal(&mut self, writer: &mut QlogWriter, at: Instant, journal: Vec<Entry>) {
        let mut made = Vec::new();
        let mut come: VecDeque<Come> = VecDeque::new();
        for entry in journal {
            match entry {
                Entry::DatagramReceived { bytes, codepoint } => {
                    let id = self.count(TransportSide::Remote);
                    come.push_back(Come { id, bytes, unread_bytes: bytes, codepoint });
                }
                Entry::Received(packet) => {
                    // Those before the one that the packet is of will not be read any more.
                    while come.front().is_some_and(|front| !front.may_hold(&packet)) {
                        self.write_unread(writer, at, come.pop_front());
                    }
                    let front = come.front_mut().map(|front| {
                        front.unread_bytes -= packet.bytes;
                        *front
                    });
                    let Come { id, bytes, codepoint, .. } = front.unwrap_or_default();
                    let (side, bytes) = (TransportSide::Remote, bytes as u64);
                    let carried = Carried { at, group: &self.group, side, id, codepoint, bytes };
                    let meaning = datagram::of_stack(writer, &carried, &packet);
                    self.handshake |= datagram::type_of(&packet.header) == QuicPacketType::Handshake;
                    self.confirmed |= meaning.confirms;
                    if meaning.closes {
                        self.closed_by.get_or_insert(side);
                    }
                }
                Entry::Sent(packet) => made.push(packet),
                Entry::DatagramSent { bytes, codepoint } => {
                    let id = self.count(TransportSide::Local);
                    for packet in made.drain(..) {
                        let side = TransportSide::Local;
                        let carried = Carried { at, group: &self.group, side, id, codepoint, bytes: bytes as u64 };
                        let meaning = datagram::of_stack(writer, &carried, &packet);
                        let packet_type = datagram::type_of(&packet.header);
                        self.handshake |= packet_type == QuicPacketType::Handshake;
                        self.confirmed |= meaning.confirms;
                        if packet_type != QuicPacketType::OneRtt {
                            self.opening.push((packet.number, packet.bytes, packet_type));
                        } else if meaning.probes {
                            self.probe = Some(packet.number);
                        }
                        if meaning.closes {
                            self.closed_by.get_or_insert(side);
                        }
                    }
                }
                Entry::Lost { number, bytes } => {
                    let of_opening =
                        |sent: &&(u64, usize, QuicPacketType)| sent.0 == number && sent.1 == usize::from(bytes);
                    let packet_type =
                        self.opening.iter().find(of_opening).map_or(QuicPacketType::OneRtt, |sent| sent.2);
                    self.lost(writer, at, packet_type, number, false, None);
                }
            }
        }
        for come in come {
            self.write_unread(writer, at, Some(come));
        }
    }

    /// A datagram is over; says so if the stack could read nothing of it.
    fn write_unread(&self, writer: &mut QlogWriter, at: Instant, come: Option<Come>) {
        let Some(Come { id, bytes, codepoint, .. }) = come.filter(|come| come.unread_bytes == come.bytes) else {
            return;
        };
        writer.event(at, &self.group, "quic:packet_dropped", |data| {
            data.object("raw", |raw| raw.unsigned("length", bytes as u64));
            data.unsigned("datagram_id", id & u64::from(u32::MAX));
            data.text("ecn", word_of(codepoint));
        });
    }
}

/// A datagram that has come, for the real stack to read.
#[derive(Clone, Copy, Debug, Default)]
struct Come {
    id: u64,
    bytes: usize,
    unread_bytes: usize,
    codepoint: Codepoint,
}

impl Come {
    /// Whether a packet may be the next of this datagram. The stack may be handed several datagrams before it reads the first;
    /// a packet with a short header ends its datagram (RFC 9000 section 12.2), which tells them apart.
    fn may_hold(&self, packet: &fullpipe_stack::journal::Packet) -> bool {
        let ends = datagram::type_of(&packet.header) == QuicPacketType::OneRtt;
        packet.bytes == self.unread_bytes || packet.bytes < self.unread_bytes && !ends
    }
}

/// What the QUIC model shows.
fn of_model(seen: &fullpipe_quic::Inspect) -> Metrics {
    Metrics {
        congestion_window: Some(seen.cwnd_bytes),
        bytes_in_flight: Some(seen.in_flight_bytes),
        ssthresh: threshold(seen.ssthresh_bytes),
        smoothed_rtt: sampled(seen.smoothed_rtt),
        latest_rtt: sampled(seen.latest_rtt),
        min_rtt: sampled(seen.min_rtt),
        pto_count: Some(u64::from(seen.pto_count)),
        pacing_rate: positive(seen.pacing_bps),
        delivery_rate: positive(seen.delivery_rate_bps),
    }
}

/// What the real stack shows.
fn of_stack(seen: &fullpipe_stack::Inspection, smoothed_rtt: Option<Duration>) -> Metrics {
    Metrics {
        congestion_window: Some(seen.cwnd_bytes),
        bytes_in_flight: Some(seen.in_flight_bytes),
        ssthresh: threshold(seen.ssthresh_bytes),
        smoothed_rtt: smoothed_rtt.and_then(sampled),
        latest_rtt: sampled(seen.latest_rtt),
        min_rtt: sampled(seen.min_rtt),
        pto_count: None,
        pacing_rate: positive(seen.pacing_bps),
        delivery_rate: positive(seen.delivery_rate_bps),
    }
}

/// An address and a port.
fn socket(out: &mut Object<'_>, network: &Network<Witness>, endpoint: Endpoint, version: IpVersion) {
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

/// Who has sent a packet.
fn sender(handed: &Handed) -> Place {
    (handed.packet.flow.index() / 2, usize::from(!handed.packet.flow.is_forward()))
}

/// Whether a packet's side data of that kind are its own.
fn has_options(packet: &Packet) -> bool {
    match &packet.content {
        Content::Tcp(header) => header.has_side_options(),
        Content::Quic(header) => header.ranges > 0,
        _ => false,
    }
}

/// The name in `flows.csv` of the flow that a packet is of.
fn name_of(world: &World, scenario: &Scenario, flow: FlowId) -> String {
    let conversation = flow.index() / 2;
    let described = (conversation < world.conversations()).then(|| world.flow_of(conversation)).flatten();
    described.map_or_else(String::new, |index| {
        let name = &scenario.flows[index].name;
        direction_name(name, world.number_of(conversation) + 1, usize::from(!flow.is_forward())).into_owned()
    })
}

/// ECN bits as qlog calls them.
fn word_of(codepoint: Codepoint) -> &'static str {
    match codepoint {
        Codepoint::NotEct => "Not-ECT",
        Codepoint::Ect1 => "ECT(1)",
        Codepoint::Ect0 => "ECT(0)",
        Codepoint::Ce => "CE",
    }
}

/// The hosts of a run that is logged.
pub(crate) struct Logged<'a> {
    pub(crate) world: &'a mut World,
    pub(crate) recorder: &'a mut Recorder,
}

impl Hosts<Witness> for Logged<'_> {
    fn receive(&mut self, network: &mut Network<Witness>, node: NodeId, packet: Handle) {
        self.recorder.advance(self.world, network);
        let place = self.recorder.received(self.world, network, packet);
        self.world.receive(network, node, packet);
        self.recorder.settle(self.world, network, place);
    }

    fn timer(&mut self, network: &mut Network<Witness>, event: EventId) {
        self.recorder.advance(self.world, network);
        let place = self.world.place_of_timer(event);
        self.world.timer(network, event);
        self.recorder.settle(self.world, network, place);
    }

    fn receive_fragment(&mut self, network: &mut Network<Witness>, node: NodeId, fragment: Handle) -> bool {
        self.world.receive_fragment(network, node, fragment)
    }

    fn notice(&mut self, network: &mut Network<Witness>, notice: Notice) {
        self.recorder.advance(self.world, network);
        self.world.notice(network, notice);
        self.recorder.settle(self.world, network, None);
    }
}
