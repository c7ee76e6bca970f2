//! Endpoints of the QUIC model ([`fullpipe_quic`]).
//!
//! An endpoint is one end of a connection. Applications refer to its streams by indices, which are reused when a stream
//! is closed.

use super::binding::Binding;
use super::slots::Slab;
use super::timers::{Timer, TimerPair, TimerRange};
use crate::plugins::{ControlFactory, SchedulerFactory};
use crate::witness::RunObserver;
use fullpipe_congestion::source::ControlSource;
use fullpipe_congestion::{Controller, catalogue};
use fullpipe_network::{Network, PacketContent, PacketHandle, SideDataHandle};
use fullpipe_quic::{Config, Connection, DatagramContents};
use fullpipe_scenario::description;
use fullpipe_transport::endpoint::{
    EndpointKind, EndpointReport, TimerDeadlines, finite_threshold, nonzero_duration, nonzero_rate,
};
use fullpipe_wire::QuicForm;
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_workload::OpenOptions;
use std::sync::Arc;

/// Creates the connections of a flow.
#[derive(Clone, Debug)]
pub(crate) struct ModelFactory {
    config: Arc<Config>,
    pub(super) control: ControlSource,
    pub(super) zero_rtt: bool,
    /// The plugged-in stream scheduler, which overrides that of the settings, if any.
    scheduler: Option<SchedulerFactory>,
    /// Whether the congestion controller is a plug-in, which may read delivery rates without declaring it.
    is_plugged_in: bool,
}

impl ModelFactory {
    /// Returns the factory of a flow's connections, or the reason why the flow cannot have any.
    pub(crate) fn new(described: &description::Quic) -> Result<ModelFactory, String> {
        let config = Arc::new(described.connection.clone());
        let options = catalogue::ControlOptions { paced: config.pacing, quic: true, ..described.control };
        let control = ControlSource::named(&described.congestion, options, |control| refusal(control, config.ecn))?;
        Ok(ModelFactory { zero_rtt: config.zero_rtt, config, control, scheduler: None, is_plugged_in: false })
    }

    /// Sets a plugged-in congestion control, or returns the reason why the model does not support it.
    pub(crate) fn with_control(self, maker: ControlFactory) -> Result<Self, String> {
        let control = maker.source(|control| refusal(control, self.config.ecn))?;
        Ok(ModelFactory { control, is_plugged_in: true, ..self })
    }

    /// Sets a plugged-in stream scheduler, if there is one.
    pub(crate) fn with_scheduler(self, scheduler: Option<SchedulerFactory>) -> Self {
        ModelFactory { scheduler, ..self }
    }

    /// Prepares one end of the flow's n-th connection: sets the plugged-in stream scheduler, if there is one. With
    /// `observed`, samples must be taken because observers may read delivery rates.
    pub(super) fn prepare(&self, connection: &mut Connection, number: u32, initiator: bool, observed: bool) {
        if !observed && !self.is_plugged_in {
            connection.disable_rate_samples();
        }
        if let Some(maker) = &self.scheduler {
            connection.set_scheduler(maker.make(number, initiator));
        }
    }

    /// Returns the settings of one end (0: initiator) of a connection that was opened with these options.
    pub(super) fn config(&self, options: &OpenOptions, end: usize) -> Arc<Config> {
        match options.receive_buffer_bytes {
            None => self.config.clone(),
            Some(bytes) => Arc::new(Config { receive_buffer_bytes: bytes[end], ..Config::clone(&self.config) }),
        }
    }
}

/// Returns the reason why the model does not support a congestion controller; `None` if it does.
fn refusal(control: &dyn Controller, ecn: bool) -> Option<String> {
    let signals = control.requirements();
    let missing = if signals.one_way_delay {
        "one-way delays, which the QUIC model does not measure"
    } else if signals.ecn_counts && !ecn {
        "counts of congestion marks: `quic.ecn = true`"
    } else {
        return None;
    };
    Some(format!("congestion control `{}` needs {missing}", control.name()))
}

/// One end of a connection at a host.
#[derive(Debug)]
pub(super) struct ModelEndpoint {
    pub(super) connection: Connection,
    pub(super) binding: Binding,
    /// Whether the connection closes when its only stream closes.
    pub(super) single: bool,
    pub(super) timers: TimerPair,
    streams: StreamIndices,
}

/// Indices of a connection's streams for the application, by the stream's number on the connection. The first index is
/// stored inline.
#[derive(Debug, Default)]
struct StreamIndices {
    first: Option<u32>,
    #[expect(clippy::box_collection, reason = "nearly all connections have one stream")]
    further: Option<Box<Vec<Option<u32>>>>,
}

impl StreamIndices {
    #[inline]
    fn entry(&mut self, number: u32) -> &mut Option<u32> {
        let Some(place) = (number as usize).checked_sub(1) else { return &mut self.first };
        let further = self.further.get_or_insert_default();
        if further.len() <= place {
            further.resize(place + 1, None);
        }
        &mut further[place]
    }

    fn indices(&self) -> impl Iterator<Item = u32> {
        self.first.iter().chain(self.further.iter().flat_map(|further| further.iter().flatten())).copied()
    }
}

impl ModelEndpoint {
    pub(super) fn new(connection: Connection, binding: Binding, single: bool) -> Self {
        ModelEndpoint { connection, binding, single, timers: TimerPair::default(), streams: StreamIndices::default() }
    }

    pub(super) fn report(&self) -> EndpointReport {
        let (seen, counts) = (self.connection.inspect(), self.connection.statistics());
        let mut control_values = Vec::new();
        self.connection.inspect_control(&mut control_values);
        EndpointReport {
            cwnd_bytes: Some(seen.cwnd_bytes),
            ssthresh_bytes: finite_threshold(seen.ssthresh_bytes),
            in_flight_bytes: Some(seen.in_flight_bytes),
            smoothed_rtt: nonzero_duration(seen.smoothed_rtt),
            min_rtt: nonzero_duration(seen.min_rtt),
            latest_rtt: nonzero_duration(seen.latest_rtt),
            mean_rtt: (counts.rtt_count > 0).then(|| counts.rtt_sum / counts.rtt_count),
            pacing_bps: nonzero_rate(seen.pacing_bps),
            delivery_rate_bps: nonzero_rate(seen.delivery_rate_bps),
            in_recovery: seen.in_recovery,
            pto_count: Some(seen.pto_count),
            sent_packets: Some(counts.sent_packets),
            lost_packets: Some(counts.lost_packets),
            congestion_events: Some(counts.recoveries),
            spurious_congestion_events: Some(counts.undone_recoveries),
            mtu_bytes: Some(seen.mtu_bytes),
            control_values,
            ..EndpointReport::new(EndpointKind::QuicModel)
        }
    }
}

/// The state of an endpoint after it has sent all pending datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputState {
    /// Sending has produced events for the application.
    HasEvents,
    /// The endpoint waits for a packet or a timer.
    Idle,
    /// The endpoint's connection is closed.
    Closed,
}

/// All endpoints of the QUIC model, and the indices of their streams.
#[derive(Debug)]
pub(super) struct ModelEndpoints {
    pub(super) slots: Slab<ModelEndpoint>,
    /// The endpoint of each stream, and the stream's number on its connection.
    streams: Slab<(u32, u32)>,
    beside: DatagramContents,
}

impl ModelEndpoints {
    pub(super) fn new(expected: usize) -> Self {
        // Reserve exactly the expected number: a vector that doubles could waste the memory of 10 000 endpoints.
        let (slots, streams) = (Slab::with_capacity(expected), Slab::with_capacity(expected));
        ModelEndpoints { slots, streams, beside: DatagramContents::default() }
    }

    /// Returns the endpoint of a stream, and the stream's number on its connection.
    #[inline]
    pub(super) fn locate(&self, stream: u32) -> Option<(u32, u32)> {
        self.streams.get(stream).copied()
    }

    /// Returns whether two streams are on the same connection.
    pub(super) fn same_connection(&self, one: u32, other: u32) -> bool {
        matches!((self.locate(one), self.locate(other)), (Some(one), Some(other)) if one.0 == other.0)
    }

    /// Returns the index of a stream by its number on its connection. A new stream is assigned an index.
    pub(super) fn stream(&mut self, endpoint: u32, number: u32) -> Option<u32> {
        let owner = self.slots.get_mut(endpoint)?;
        let known = owner.streams.entry(number);
        if known.is_some() {
            return *known;
        }
        *known = Some(self.streams.insert((endpoint, number)));
        *known
    }

    /// Releases the index of a closed stream.
    pub(super) fn release(&mut self, endpoint: u32, number: u32) {
        let Some(owner) = self.slots.get_mut(endpoint) else { return };
        if let Some(index) = owner.streams.entry(number).take() {
            self.streams.remove(index);
        }
    }

    /// Removes an endpoint, and releases the indices of its streams.
    pub(super) fn remove(&mut self, index: u32) -> Option<ModelEndpoint> {
        let endpoint = self.slots.remove(index)?;
        for stream in endpoint.streams.indices() {
            self.streams.remove(stream);
        }
        Some(endpoint)
    }

    /// Sends all pending datagrams of an endpoint. Arms its timers unless sending produced events.
    #[inline]
    pub(super) fn output(&mut self, network: &mut Network<RunObserver>, index: u32) -> OutputState {
        let now = network.now();
        let ModelEndpoints { slots, beside, .. } = self;
        let Some(endpoint) = slots.get_mut(index) else { return OutputState::Idle };
        let ModelEndpoint { connection, binding, timers, .. } = endpoint;
        while let Some(next) = connection.next_datagram(now) {
            // Write the header into the packet's slot of the arena, to avoid a copy.
            let (handle, packet) = network.arena.claim();
            let header = packet.quic_header();
            if !connection.fill_datagram(now, next, header, beside) {
                network.arena.cancel_claim(handle);
                break;
            }
            let with_side = header.ranges > 0 || header.form == QuicForm::Packets;
            packet.sent = now;
            packet.flow = binding.flow;
            packet.destination = binding.peer;
            packet.ip_bytes = binding.version.header_bytes() + UDP_HEADER_BYTES + beside.udp_payload_bytes;
            packet.options = SideDataHandle::NONE;
            packet.payload = SideDataHandle::NONE;
            packet.codepoint = beside.codepoint;
            packet.version = binding.version;
            packet.corrupted = false;
            if with_side {
                store_beside(network, handle, beside);
            }
            network.send_filled(binding.node, handle);
        }
        if connection.has_events() {
            return OutputState::HasEvents;
        }
        let events =
            [Timer::QuicModel(index, TimerRange::Far).event(), Timer::QuicModel(index, TimerRange::Near).event()];
        let deadlines =
            TimerDeadlines { far: connection.slow_timer_deadline(), near: connection.fast_timer_deadline() };
        timers.arm(&mut network.calendar, events, deadlines);
        if connection.is_closed() { OutputState::Closed } else { OutputState::Idle }
    }
}

/// Stores the parts of a datagram that are not in its header.
#[inline(never)]
fn store_beside(network: &mut Network<RunObserver>, handle: PacketHandle, beside: &mut DatagramContents) {
    if let PacketContent::Quic(header) = &network.arena.get(handle).content
        && header.ranges > 0
    {
        let options = network.arena.store_options(&beside.ranges);
        network.arena.get_mut(handle).options = options;
    }
    if let Some(datagram) = beside.datagram.take() {
        let (payload, old) = network.arena.store_datagram(datagram);
        network.arena.get_mut(handle).payload = payload;
        beside.recycle(old);
    }
}
