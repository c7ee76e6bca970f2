//! QUIC flows whose ends our model plays ([`fullpipe_quic`]).
//!
//! An end is a connection; its streams are what applications see, each under a number of its own from [`FIRST`] on, which
//! is free for another when the stream is over. The timers of end n are events [`FIRST_TIMER`] + 2n and 2n + 1 of the
//! class of transports.

use super::{AtHost, Conversation, Core, NONE, World, quic};
use crate::plugins::ControlMaker;
use crate::witness::Witness;
use fullpipe_congestion::{Controller, catalogue};
use fullpipe_engine::{EventClass, EventId, Slot};
use fullpipe_network::{Content, Handle, Network, Side};
use fullpipe_quic::scheduler::{Discipline, Retransmission};
use fullpipe_quic::{AckFrequency, Beside, Config, Connection, Entry, HandshakeSizes};
use fullpipe_scenario::description::{self, QuicHandshake, StreamScheduler};
use fullpipe_transport::{Event, Priority, Stream};
use fullpipe_units::{Duration, FlowId, NodeId};
use fullpipe_wire::IpVersion;
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_workload::{OpenOptions, StreamId};
use std::sync::Arc;

/// Number of the first stream.
pub(super) const FIRST: u32 = 3 << 30;
/// Event of the first end's first timer.
pub(super) const FIRST_TIMER: u32 = 1 << 27;

/// How the connections of a flow are made.
#[derive(Clone, Debug)]
pub(crate) struct ModelMaker {
    config: Arc<Config>,
    /// Name of the congestion control.
    pub(super) control: Arc<str>,
    options: catalogue::Options,
    zero_rtt: bool,
    /// Who makes the control, if not the catalogue.
    plugged: Option<ControlMaker>,
}

impl ModelMaker {
    /// Settings of a flow's connections, or why they cannot be made.
    pub(crate) fn new(described: &description::Quic, model: &description::QuicModel) -> Result<ModelMaker, String> {
        let options =
            catalogue::Options { hystart: described.hystart, paced: model.pacing, quic: true, ..Default::default() };
        let control = catalogue::create(&described.congestion, &options).map_err(|unknown| unknown.to_string())?;
        accept(&*control, model.ecn)?;
        let handshake = HandshakeSizes { certificate_bytes: described.certificate_bytes, ..HandshakeSizes::default() };
        let config = Config {
            initial_mtu_bytes: described.initial_mtu_bytes,
            largest_mtu_bytes: described.largest_mtu_bytes,
            initial_window_packets: described.initial_window_packets,
            send_buffer_bytes: described.send_buffer_bytes,
            receive_buffer_bytes: described.receive_buffer_bytes,
            connection_receive_buffer_bytes: model.connection_receive_buffer_bytes,
            initial_receive_window_bytes: model.initial_receive_window_bytes,
            max_streams: model.max_streams,
            idle_timeout: described.idle_timeout,
            handshake,
            max_ack_delay: model.max_ack_delay,
            ack_every_packets: model.ack_every_packets,
            ack_frequency: model.ack_frequency_packets.map(|threshold| AckFrequency {
                threshold,
                max_ack_delay: model.max_ack_delay.max(Duration::from_millis(1)),
            }),
            ecn: model.ecn,
            pacing: model.pacing,
            pacing_burst_packets: model.pacing_burst_packets,
            pace_first_flight: model.pace_first_flight,
            zero_rtt: model.handshake == QuicHandshake::ZeroRtt,
            retry: model.handshake == QuicHandshake::Retry,
            scheduler: match model.scheduler {
                StreamScheduler::Fifo => Discipline::Fifo,
                StreamScheduler::Pfifo => Discipline::Pfifo,
                StreamScheduler::Edf(latency) => Discipline::Edf(latency),
                StreamScheduler::RoundRobin => Discipline::RoundRobin,
                StreamScheduler::Weighted => Discipline::Weighted,
                StreamScheduler::Priorities => Discipline::Priorities,
            },
            retransmission: if model.scheduled_retransmission {
                Retransmission::Scheduled
            } else {
                Retransmission::First
            },
            unordered: model.unordered,
            ..Config::default()
        };
        Ok(ModelMaker {
            zero_rtt: config.zero_rtt,
            config: Arc::new(config),
            control: described.congestion.as_str().into(),
            options,
            plugged: None,
        })
    }

    /// The same with a plugged-in control, or why the model cannot drive it.
    pub(crate) fn with_control(self, maker: ControlMaker) -> Result<Self, String> {
        let control = maker.make(0, true);
        accept(&*control, self.config.ecn)?;
        Ok(ModelMaker { control: control.name().into(), plugged: Some(maker), ..self })
    }

    /// The control of one end of the flow's n-th connection; `seed` decides the random choices that it may make.
    fn controller(&self, seed: u64, connection: u32, initiator: bool) -> Box<dyn Controller> {
        if let Some(maker) = &self.plugged {
            return maker.make(connection, initiator);
        }
        let options = catalogue::Options { seed, ..self.options };
        catalogue::create(&self.control, &options).expect("it could be created when the world was built")
    }

    /// The settings of one end (0: initiator) of a connection that was opened with these options.
    fn config(&self, options: &OpenOptions, end: usize) -> Arc<Config> {
        match options.receive_buffer_bytes {
            None => self.config.clone(),
            Some(bytes) => Arc::new(Config { receive_buffer_bytes: bytes[end], ..Config::clone(&self.config) }),
        }
    }
}

fn accept(control: &dyn Controller, ecn: bool) -> Result<(), String> {
    let signals = control.signals();
    let name = control.name();
    if signals.one_way_delay {
        return Err(format!("congestion control `{name}` needs one-way delays, which the QUIC model does not measure"));
    }
    if signals.ecn_counts && !ecn {
        return Err(format!("congestion control `{name}` needs counts of congestion marks: `quic.ecn = true`"));
    }
    Ok(())
}

/// One end of a connection at a host.
#[derive(Debug)]
pub(super) struct ModelEnd {
    pub(super) connection: Connection,
    /// Flow of the packets it sends.
    flow: FlowId,
    application: u32,
    node: NodeId,
    peer: NodeId,
    version: IpVersion,
    /// The connection ends with its only stream.
    single: bool,
    far: Slot,
    near: Slot,
    /// Numbers of its streams for the application, by the connection's numbers of them.
    streams: Vec<u32>,
}

impl ModelEnd {
    /// Its conversation, and which end of it (0: initiator) it is.
    fn place(&self) -> (u32, usize) {
        ((self.flow.index() / 2) as u32, usize::from(!self.flow.is_forward()))
    }
}

/// All ends, and the numbers of their streams.
#[derive(Debug, Default)]
pub(super) struct ModelEnds {
    ends: Vec<Option<Box<ModelEnd>>>,
    free: Vec<u32>,
    /// End, and the connection's number, of each stream.
    handles: Vec<(u32, u32)>,
    free_handles: Vec<u32>,
    beside: Beside,
}

impl ModelEnds {
    #[inline]
    fn get(&self, end: u32) -> Option<&ModelEnd> {
        self.ends.get(end as usize)?.as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, end: u32) -> Option<&mut ModelEnd> {
        self.ends.get_mut(end as usize)?.as_deref_mut()
    }

    /// Conversation, and which end of it (0: initiator), of an end.
    pub(super) fn place(&self, end: u32) -> Option<(usize, usize)> {
        self.get(end).map(|end| (end.flow.index() / 2, end.place().1))
    }

    /// The end that a conversation's entry names, if it is one of these.
    fn of_endpoint(&self, endpoint: u32) -> Option<&ModelEnd> {
        if endpoint == NONE { None } else { self.get(endpoint.checked_sub(FIRST)?) }
    }

    /// End and number of a stream of an application.
    pub(super) fn locate(&self, stream: u32) -> Option<(u32, u32)> {
        let place = *self.handles.get(stream.checked_sub(FIRST)? as usize)?;
        (place.0 != NONE).then_some(place)
    }

    /// Whether two streams are of the same connection.
    pub(super) fn same_connection(&self, one: u32, other: u32) -> bool {
        matches!((self.locate(one), self.locate(other)), (Some(one), Some(other)) if one.0 == other.0)
    }

    /// The number of a stream for its application, given if it has none.
    fn handle(&mut self, end: u32, index: u32) -> u32 {
        let Some(owner) = self.ends[end as usize].as_deref_mut() else { return NONE };
        if owner.streams.len() <= index as usize {
            owner.streams.resize(index as usize + 1, NONE);
        }
        let known = &mut owner.streams[index as usize];
        if *known != NONE {
            return *known;
        }
        let place = match self.free_handles.pop() {
            Some(place) => {
                self.handles[place as usize] = (end, index);
                place
            }
            None => {
                self.handles.push((end, index));
                self.handles.len() as u32 - 1
            }
        };
        *known = FIRST + place;
        *known
    }

    /// A stream is over: its number is free.
    fn release(&mut self, end: u32, index: u32) {
        let Some(owner) = self.get_mut(end) else { return };
        let Some(handle) = owner.streams.get_mut(index as usize) else { return };
        let handle = std::mem::replace(handle, NONE);
        if handle != NONE {
            self.handles[(handle - FIRST) as usize] = (NONE, 0);
            self.free_handles.push(handle - FIRST);
        }
    }

    fn insert(&mut self, end: ModelEnd) -> u32 {
        let end = Some(Box::new(end));
        if let Some(place) = self.free.pop() {
            self.ends[place as usize] = end;
            place
        } else {
            self.ends.push(end);
            self.ends.len() as u32 - 1
        }
    }

    /// Ends that live.
    pub(super) fn live(&self) -> usize {
        self.ends.len() - self.free.len()
    }

    /// Statistics of the ends that live, with their places.
    pub(super) fn statistics(&self) -> impl Iterator<Item = ((u32, usize), fullpipe_stack::Statistics)> + '_ {
        self.ends.iter().flatten().map(|end| (end.place(), statistics(&end.connection)))
    }
}

/// What is reported of a connection, as of one of the real stack.
fn statistics(connection: &Connection) -> fullpipe_stack::Statistics {
    let counts = connection.statistics();
    fullpipe_stack::Statistics {
        sent_packets: counts.sent_packets,
        lost_packets: counts.lost_packets,
        congestion_events: counts.recoveries,
        spurious_congestion_events: counts.undone_recoveries,
        mtu_bytes: u16::try_from(counts.mtu_bytes).unwrap_or(u16::MAX),
        smoothed_rtt: connection.inspect().smoothed_rtt,
        mean_rtt: (counts.rtt_count > 0).then(|| counts.rtt_sum / counts.rtt_count),
    }
}

impl World {
    /// What the congestion control at one end of a conversation (0: initiator) shows, and the smoothed round-trip time.
    pub(super) fn model_inspection(
        &self,
        conversation: usize,
        end: usize,
    ) -> Option<(fullpipe_stack::Inspection, f64)> {
        let connection = &self.core.model.of_endpoint(self.core.conversations[conversation].endpoints[end])?.connection;
        let seen = connection.inspect();
        let mut named = Vec::new();
        connection.inspect_control(&mut named);
        let inspection = fullpipe_stack::Inspection {
            cwnd_bytes: seen.cwnd_bytes,
            ssthresh_bytes: seen.ssthresh_bytes,
            in_flight_bytes: seen.in_flight_bytes,
            pacing_bps: seen.pacing_bps,
            delivery_rate_bps: seen.delivery_rate_bps,
            min_rtt: seen.min_rtt,
            latest_rtt: seen.latest_rtt,
            in_recovery: seen.in_recovery,
            pto_count: Some(seen.pto_count),
            named,
        };
        Some((inspection, seen.smoothed_rtt.as_secs_f64()))
    }

    /// A datagram of the model has come to a host.
    #[inline]
    pub(super) fn receive_model(&mut self, network: &mut Network<Witness>, node: NodeId, handle: Handle) {
        let packet = network.arena.get(handle);
        let flow = packet.flow;
        // The receiver of a forward packet is the acceptor.
        let endpoint = self.core.conversations[flow.index() / 2].endpoints[usize::from(flow.is_forward())];
        let number = if endpoint == NONE {
            match self.core.accept_model(network, flow) {
                Some(acceptor) => acceptor,
                None => return network.arena.release(handle),
            }
        } else {
            endpoint.wrapping_sub(FIRST)
        };
        let packet = network.arena.get(handle);
        let (Content::Quic(header), Some(end)) = (&packet.content, self.core.model.get_mut(number)) else {
            return network.arena.release(handle);
        };
        debug_assert_eq!(end.node, node, "a packet is handed to the host that it is for");
        let udp_payload_bytes = packet.ip_bytes - packet.version.header_bytes() - UDP_HEADER_BYTES;
        end.connection.handle_datagram(
            network.now(),
            header,
            network.arena.options(packet.options),
            network.arena.datagram(packet.payload),
            udp_payload_bytes,
            packet.codepoint,
        );
        network.arena.release(handle);
        self.service_model(network, number);
        self.service_touched(network);
    }

    /// A timer of an end has come up.
    pub(super) fn model_timer(&mut self, network: &mut Network<Witness>, index: u32) {
        let now = network.now();
        let Some(end) = self.core.model.get_mut(index / 2) else { return };
        let slot = if index.is_multiple_of(2) { &mut end.far } else { &mut end.near };
        if slot.fired(now) {
            end.connection.handle_timeout(now);
            self.service_model(network, index / 2);
            self.service_touched(network);
        }
    }

    /// An application has called a stream.
    pub(super) fn service_model_stream(&mut self, network: &mut Network<Witness>, stream: u32) {
        if let Some((end, _)) = self.core.model.locate(stream) {
            self.service_model(network, end);
        }
    }

    /// Tells the application what happened at an end, sends what it has to send, arms its timers.
    #[inline]
    fn service_model(&mut self, network: &mut Network<Witness>, number: u32) {
        loop {
            let Some(end) = self.core.model.get_mut(number) else { return };
            let application = end.application;
            let Some((index, event)) = end.connection.poll_event() else {
                // Sending may bring the end of the connection, which the application hears of, too.
                if self.core.model_output(network, number) {
                    continue;
                }
                return;
            };
            let stream = self.core.model.handle(number, index);
            let mut io = AtHost { core: &mut self.core, network, application, serviced: stream };
            self.applications[application as usize].on_stream(StreamId(stream), event, &mut io);
            if let Event::Closed(_) = event {
                self.core.model.release(number, index);
                if let Some(end) = self.core.model.get_mut(number)
                    && end.single
                {
                    end.connection.close_when_done(network.now());
                }
            }
        }
    }
}

impl Core {
    /// Sends all that an end has to send and arms its timers. Returns whether its application ought to know something first.
    #[inline]
    fn model_output(&mut self, network: &mut Network<Witness>, number: u32) -> bool {
        let now = network.now();
        let super::model::ModelEnds { ends, beside, .. } = &mut self.model;
        let Some(end) = ends[number as usize].as_deref_mut() else { return false };
        loop {
            let handle = network.arena.vacant();
            let header = network.arena.get_mut(handle).quic_header();
            if !end.connection.poll_datagram_into(now, header, beside) {
                break;
            }
            let has_ranges = header.ranges > 0;
            let ip_bytes = end.version.header_bytes() + UDP_HEADER_BYTES + beside.udp_payload_bytes;
            let options = if has_ranges { network.arena.store_options(&beside.ranges) } else { Side::NONE };
            let payload = match beside.datagram.take() {
                None => Side::NONE,
                Some(datagram) => network.arena.store_datagram(datagram),
            };
            let packet = network.arena.get_mut(handle);
            packet.sent = now;
            packet.flow = end.flow;
            packet.destination = end.peer;
            packet.ip_bytes = ip_bytes;
            packet.options = options;
            packet.payload = payload;
            packet.codepoint = beside.codepoint;
            packet.version = end.version;
            packet.corrupted = false;
            network.send_filled(end.node, handle);
        }
        if end.connection.has_events() {
            return true;
        }
        let timer = FIRST_TIMER + 2 * number;
        let far = EventId::new(EventClass::Transport, timer);
        let near = EventId::new(EventClass::Transport, timer + 1);
        end.far.arm(&mut network.calendar, far, end.connection.far_deadline());
        end.near.arm(&mut network.calendar, near, end.connection.near_deadline());
        if end.connection.is_closed() {
            self.forget_model(number);
        }
        false
    }

    #[cold]
    fn forget_model(&mut self, number: u32) {
        let Some(end) = self.model.ends.get_mut(number as usize).and_then(Option::take) else { return };
        for &stream in end.streams.iter().filter(|stream| **stream != NONE) {
            self.model.handles[(stream - FIRST) as usize] = (NONE, 0);
            self.model.free_handles.push(stream - FIRST);
        }
        let (conversation, side) = end.place();
        self.conversations[conversation as usize].endpoints[side] = NONE;
        self.quic.note_gone((conversation, side), statistics(&end.connection));
        self.model.free.push(number);
    }

    /// The active side of a new conversation of a flow: its first stream.
    pub(super) fn open_model(
        &mut self,
        network: &mut Network<Witness>,
        conversation: usize,
        options: &OpenOptions,
    ) -> u32 {
        let &Conversation { flow, number, .. } = &self.conversations[conversation];
        let (_, seed) = self.draw(conversation, "initiator");
        let described = &self.flows[flow as usize];
        let Some(maker) = described.quic.as_deref().and_then(quic::QuicMaker::model) else { return NONE };
        let config = maker.config(options, 0);
        let known = maker.zero_rtt.then(|| Entry::of_server(&maker.config(options, 1)));
        let control = maker.controller(seed, number, true);
        let now = network.now();
        let mut connection = Connection::client(config, control, now, known);
        let index = connection.open_stream(now, true);
        let end = self.model.insert(ModelEnd {
            connection,
            flow: FlowId(2 * conversation as u32),
            application: 2 * flow,
            node: described.from,
            peer: described.to,
            version: described.version,
            single: !options.several_streams,
            far: Slot::default(),
            near: Slot::default(),
            streams: Vec::new(),
        });
        if *options != OpenOptions::default() {
            self.options.insert(conversation as u32, *options);
        }
        self.conversations[conversation].endpoints[0] = FIRST + end;
        index.map_or(NONE, |index| self.model.handle(end, index))
    }

    /// The passive side, when a datagram finds nobody: unless it was there and is gone.
    #[cold]
    fn accept_model(&mut self, network: &Network<Witness>, flow: FlowId) -> Option<u32> {
        let conversation = flow.index() / 2;
        if !flow.is_forward() || self.quic.is_gone((conversation as u32, 1)) {
            return None;
        }
        let &Conversation { flow: described, number, .. } = self.conversations.get(conversation)?;
        let options = self.options.remove(&(conversation as u32)).unwrap_or_default();
        let (_, seed) = self.draw(conversation, "acceptor");
        let of_flow = self.flows.get(described as usize)?;
        let maker = of_flow.quic.as_deref()?.model()?;
        let control = maker.controller(seed, number, false);
        let end = self.model.insert(ModelEnd {
            connection: Connection::server(maker.config(&options, 1), control, network.now()),
            flow: flow.reverse(),
            application: 2 * described + 1,
            node: of_flow.to,
            peer: of_flow.from,
            version: of_flow.version,
            single: false,
            far: Slot::default(),
            near: Slot::default(),
            streams: Vec::new(),
        });
        self.conversations[conversation].endpoints[1] = FIRST + end;
        Some(end)
    }
}

impl AtHost<'_> {
    /// A stream of the application that the model carries.
    pub(super) fn model_stream(&mut self, stream: u32) -> Option<&mut dyn Stream> {
        let (end, index) = self.core.model.locate(stream)?;
        let now = self.network.now();
        let end = self.core.model.get_mut(end)?;
        if end.application != self.application {
            return None;
        }
        end.connection.stream(now, index)
    }

    /// Another stream on the same connection.
    pub(super) fn model_open_beside(&mut self, beside: u32) -> Option<StreamId> {
        let (number, _) = self.core.model.locate(beside)?;
        let now = self.network.now();
        let end = self.core.model.get_mut(number)?;
        if end.application != self.application {
            return None;
        }
        let index = end.connection.open_stream(now, true)?;
        end.single = false;
        let stream = self.core.model.handle(number, index);
        self.core.touched.push(stream);
        Some(StreamId(stream))
    }

    /// The connection of a stream, which is to be asked for output.
    fn model_connection(&mut self, stream: u32) -> Option<(&mut Connection, u32)> {
        let (number, index) = self.core.model.locate(stream)?;
        let end = self.core.model.get_mut(number)?;
        (end.application == self.application).then_some((&mut end.connection, index))
    }

    pub(super) fn model_set_priority(&mut self, stream: u32, priority: Priority) {
        if let Some((connection, index)) = self.model_connection(stream) {
            connection.set_priority(index, priority);
        }
    }

    pub(super) fn model_close(&mut self, stream: u32) {
        let now = self.network.now();
        if let Some((connection, _)) = self.model_connection(stream) {
            connection.close_when_done(now);
            self.core.touched.push(stream);
        }
    }

    /// Which of its flow's connections a stream is on, and which of its connection's streams it is.
    pub(super) fn model_numbers(&self, stream: u32) -> Option<(u32, u64)> {
        let (number, index) = self.core.model.locate(stream)?;
        let end = self.core.model.get(number)?;
        let id = end.connection.stream_id(index)?;
        let conversation = self.core.conversations[end.flow.index() / 2].number;
        (end.application == self.application).then_some((conversation, id / 4))
    }
}
