//! Endpoints of the QUIC model ([`fullpipe_quic`]).
//!
//! An endpoint is one end of a connection. Applications refer to its streams by indices, which are reused when a stream is
//! closed.

use super::binding::Binding;
use super::slots::Slots;
use super::timers::{Reach, Timer, TimerPair};
use crate::plugins::{ControlMaker, SchedulerMaker};
use crate::witness::Witness;
use fullpipe_congestion::source::ControlSource;
use fullpipe_congestion::{Controller, catalogue};
use fullpipe_network::{Network, Side};
use fullpipe_quic::{Beside, Config, Connection};
use fullpipe_scenario::description;
use fullpipe_transport::endpoint::{Deadlines, EndpointKind, EndpointReport, known_rate, known_threshold, measured};
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_workload::OpenOptions;
use std::sync::Arc;

/// Creates the connections of a flow.
#[derive(Clone, Debug)]
pub(crate) struct ModelMaker {
    config: Arc<Config>,
    pub(super) control: ControlSource,
    pub(super) zero_rtt: bool,
    /// The plugged-in stream scheduler, which overrides that of the settings.
    scheduler: Option<SchedulerMaker>,
}

impl ModelMaker {
    /// The maker of a flow's connections, or the reason why it cannot have any.
    pub(crate) fn new(described: &description::Quic) -> Result<ModelMaker, String> {
        let config = Arc::new(described.connection.clone());
        let hystart = described.hystart;
        let options = catalogue::Options { hystart, paced: config.pacing, quic: true, ..Default::default() };
        let control = ControlSource::named(&described.congestion, options, |control| refusal(control, config.ecn))?;
        Ok(ModelMaker { zero_rtt: config.zero_rtt, config, control, scheduler: None })
    }

    /// Sets a plugged-in congestion control, or returns the reason why the model cannot drive it.
    pub(crate) fn with_control(self, maker: ControlMaker) -> Result<Self, String> {
        let control = maker.source(|control| refusal(control, self.config.ecn))?;
        Ok(ModelMaker { control, ..self })
    }

    /// Sets a plugged-in stream scheduler, if there is one.
    pub(crate) fn with_scheduler(self, scheduler: Option<SchedulerMaker>) -> Self {
        ModelMaker { scheduler, ..self }
    }

    /// Gives one end of the flow's n-th connection the plugged-in stream scheduler, if there is one.
    pub(super) fn schedule(&self, connection: &mut Connection, number: u32, initiator: bool) {
        if let Some(maker) = &self.scheduler {
            connection.set_scheduler(maker.make(number, initiator));
        }
    }

    /// The settings of one end (0: initiator) of a connection that was opened with these options.
    pub(super) fn config(&self, options: &OpenOptions, end: usize) -> Arc<Config> {
        match options.receive_buffer_bytes {
            None => self.config.clone(),
            Some(bytes) => Arc::new(Config { receive_buffer_bytes: bytes[end], ..Config::clone(&self.config) }),
        }
    }
}

/// The reason why the model cannot drive a control; `None` if it can.
fn refusal(control: &dyn Controller, ecn: bool) -> Option<String> {
    let signals = control.signals();
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
    /// Whether the connection closes with its only stream.
    pub(super) single: bool,
    pub(super) timers: TimerPair,
    /// Indices of its streams for the application, by their numbers on the connection.
    streams: Vec<Option<u32>>,
}

impl ModelEndpoint {
    pub(super) fn new(connection: Connection, binding: Binding, single: bool) -> Self {
        ModelEndpoint { connection, binding, single, timers: TimerPair::default(), streams: Vec::new() }
    }

    pub(super) fn report(&self) -> EndpointReport {
        let (seen, counts) = (self.connection.inspect(), self.connection.statistics());
        let mut control_values = Vec::new();
        self.connection.inspect_control(&mut control_values);
        EndpointReport {
            cwnd_bytes: Some(seen.cwnd_bytes),
            ssthresh_bytes: known_threshold(seen.ssthresh_bytes),
            in_flight_bytes: Some(seen.in_flight_bytes),
            smoothed_rtt: measured(seen.smoothed_rtt),
            min_rtt: measured(seen.min_rtt),
            latest_rtt: measured(seen.latest_rtt),
            mean_rtt: (counts.rtt_count > 0).then(|| counts.rtt_sum / counts.rtt_count),
            pacing_bps: known_rate(seen.pacing_bps),
            delivery_rate_bps: known_rate(seen.delivery_rate_bps),
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
pub(super) enum AfterOutput {
    /// Sending has produced events for the application.
    Reports,
    /// It waits for a packet or a timer.
    Waits,
    /// Its connection is closed.
    Ends,
}

/// All endpoints of the QUIC model, and the indices of their streams.
#[derive(Debug, Default)]
pub(super) struct ModelEndpoints {
    pub(super) slots: Slots<Box<ModelEndpoint>>,
    /// The endpoint of each stream, and the stream's number on its connection.
    streams: Slots<(u32, u32)>,
    beside: Beside,
}

impl ModelEndpoints {
    /// The endpoint of a stream, and the stream's number on its connection.
    #[inline]
    pub(super) fn locate(&self, stream: u32) -> Option<(u32, u32)> {
        self.streams.get(stream).copied()
    }

    /// Whether two streams are on the same connection.
    pub(super) fn same_connection(&self, one: u32, other: u32) -> bool {
        matches!((self.locate(one), self.locate(other)), (Some(one), Some(other)) if one.0 == other.0)
    }

    /// The index of a stream by its number on its connection. A new stream gets an index.
    pub(super) fn stream(&mut self, endpoint: u32, number: u32) -> Option<u32> {
        let owner = self.slots.get_mut(endpoint)?;
        if owner.streams.len() <= number as usize {
            owner.streams.resize(number as usize + 1, None);
        }
        let known = &mut owner.streams[number as usize];
        if known.is_some() {
            return *known;
        }
        *known = Some(self.streams.insert((endpoint, number)));
        *known
    }

    /// Releases the index of a closed stream.
    pub(super) fn release(&mut self, endpoint: u32, number: u32) {
        let Some(owner) = self.slots.get_mut(endpoint) else { return };
        if let Some(index) = owner.streams.get_mut(number as usize).and_then(Option::take) {
            self.streams.remove(index);
        }
    }

    /// Removes an endpoint, and releases the indices of its streams.
    pub(super) fn remove(&mut self, index: u32) -> Option<Box<ModelEndpoint>> {
        let endpoint = self.slots.remove(index)?;
        for &stream in endpoint.streams.iter().flatten() {
            self.streams.remove(stream);
        }
        Some(endpoint)
    }

    /// Sends all pending datagrams of an endpoint. Arms its timers unless sending produced events.
    #[inline]
    pub(super) fn output(&mut self, network: &mut Network<Witness>, index: u32) -> AfterOutput {
        let now = network.now();
        let ModelEndpoints { slots, beside, .. } = self;
        let Some(endpoint) = slots.get_mut(index) else { return AfterOutput::Waits };
        let ModelEndpoint { connection, binding, timers, .. } = &mut **endpoint;
        loop {
            let (handle, packet) = network.arena.claim();
            let header = packet.quic_header();
            if !connection.poll_datagram_into(now, header, beside) {
                network.arena.give_back(handle);
                break;
            }
            let has_ranges = header.ranges > 0;
            let ip_bytes = binding.version.header_bytes() + UDP_HEADER_BYTES + beside.udp_payload_bytes;
            let options = if has_ranges { network.arena.store_options(&beside.ranges) } else { Side::NONE };
            let payload = match beside.datagram.take() {
                None => Side::NONE,
                Some(datagram) => network.arena.store_datagram(datagram),
            };
            let packet = network.arena.get_mut(handle);
            packet.sent = now;
            packet.flow = binding.flow;
            packet.destination = binding.peer;
            packet.ip_bytes = ip_bytes;
            packet.options = options;
            packet.payload = payload;
            packet.codepoint = beside.codepoint;
            packet.version = binding.version;
            packet.corrupted = false;
            network.send_filled(binding.node, handle);
        }
        if connection.has_events() {
            return AfterOutput::Reports;
        }
        let events = [Timer::QuicModel(index, Reach::Far).event(), Timer::QuicModel(index, Reach::Near).event()];
        let deadlines = Deadlines { far: connection.far_deadline(), near: connection.near_deadline() };
        timers.arm(&mut network.calendar, events, deadlines);
        if connection.is_closed() { AfterOutput::Ends } else { AfterOutput::Waits }
    }
}
