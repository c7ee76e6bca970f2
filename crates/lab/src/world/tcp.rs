//! Endpoints of the TCP model ([`fullpipe_tcp`]), each with one stream, and with a TLS session if the flow uses TLS.

use super::binding::Binding;
use super::slots::Slab;
use super::timers::{Timer, TimerPair, TimerRange};
use crate::plugins::ControlFactory;
use crate::witness::RunObserver;
use fullpipe_congestion::source::ControlSource;
use fullpipe_congestion::{Controller, catalogue};
use fullpipe_network::{Network, Packet, PacketContent, PacketHandle, SideDataHandle};
use fullpipe_tcp::{Connection, SegmentContents, Statistics};
use fullpipe_transport::endpoint::{
    EndpointKind, EndpointReport, TimerDeadlines, finite_threshold, nonzero_duration, nonzero_rate,
};
use fullpipe_transport::tls::{self, Session};
use fullpipe_transport::{Payload, Stream};
use fullpipe_units::Instant;
use fullpipe_wire::TcpHeader;
use fullpipe_workload::OpenOptions;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// Creates the connections of a flow. The factory is small, because a run can have hundreds of thousands of flows. They
/// share their settings.
#[derive(Clone, Debug)]
pub(crate) struct TcpFactory {
    shared: Arc<SharedTcpSettings>,
    /// Settings of connections with a different segment size or receive buffer, by segment size and receive buffer.
    special: Option<Box<SpecialConfigs>>,
}

type SpecialConfigs = BTreeMap<(u32, u64), Arc<fullpipe_tcp::Config>>;

/// The state that connections of flows with the same settings share.
#[derive(Clone, Debug)]
pub(crate) struct SharedTcpSettings {
    config: Arc<fullpipe_tcp::Config>,
    pub(super) control: ControlSource,
    /// Whether the congestion controller is a plug-in, which may read delivery rates without declaring it.
    is_plugged_in: bool,
    pub(super) fast_open_known: bool,
    pub(super) tls: Option<tls::Settings>,
}

impl Deref for TcpFactory {
    type Target = SharedTcpSettings;

    fn deref(&self) -> &SharedTcpSettings {
        &self.shared
    }
}

impl TcpFactory {
    /// Returns the factory of a flow's connections, or the reason why the flow cannot have any.
    pub(crate) fn new(settings: &fullpipe_tcp::Settings) -> Result<Self, String> {
        let options = catalogue::ControlOptions {
            paced: settings.connection.pacing,
            // RFC 9331 section 4.2: a sender of ECT(1) needs accurate ECN feedback.
            ect1: settings.connection.ecn_feedback == fullpipe_tcp::EcnFeedback::Accurate,
            ..settings.control
        };
        let shared = SharedTcpSettings {
            config: Arc::new(settings.connection.clone()),
            control: ControlSource::named(&settings.congestion, options, refusal)?,
            is_plugged_in: false,
            fast_open_known: settings.fast_open_known,
            tls: settings.tls(),
        };
        Ok(TcpFactory { shared: Arc::new(shared), special: None })
    }

    /// Sets a plugged-in congestion control, or returns the reason why TCP does not support it.
    pub(crate) fn with_control(self, maker: ControlFactory) -> Result<Self, String> {
        let shared = SharedTcpSettings {
            control: maker.source(refusal)?,
            is_plugged_in: true,
            ..SharedTcpSettings::clone(&self.shared)
        };
        Ok(TcpFactory { shared: Arc::new(shared), ..self })
    }

    /// Prepares a new connection. With `observed`, samples must be taken because observers may read delivery rates.
    pub(super) fn prepare(&self, connection: &mut Connection, observed: bool) {
        if !observed && !self.is_plugged_in {
            connection.disable_rate_samples();
        }
    }

    /// Returns the settings of one end (0: initiator) of a connection that was opened with these options.
    pub(super) fn config(&mut self, options: &OpenOptions, end: usize) -> Arc<fullpipe_tcp::Config> {
        if *options == OpenOptions::default() {
            return self.config.clone();
        }
        let mss_bytes = options.mss_bytes.map_or(self.config.mss_bytes, |mss| mss[end].clamp(1, 65_000));
        let buffer_bytes = options.receive_buffer_bytes.map_or(self.config.receive_buffer_bytes, |bytes| bytes[end]);
        // The buffer must hold at least one segment.
        let buffer_bytes = buffer_bytes.max(u64::from(mss_bytes));
        let special = self.special.get_or_insert_default().entry((mss_bytes, buffer_bytes));
        let usual = &self.shared.config;
        let make = || {
            Arc::new(fullpipe_tcp::Config {
                mss_bytes,
                receive_buffer_bytes: buffer_bytes,
                ..fullpipe_tcp::Config::clone(usual)
            })
        };
        special.or_insert_with(make).clone()
    }
}

/// Returns the reason why TCP does not support a congestion controller; `None` if it does.
fn refusal(control: &dyn Controller) -> Option<String> {
    let name = control.name();
    let needs_delays = control.requirements().one_way_delay;
    needs_delays.then(|| format!("congestion control `{name}` needs one-way delays, which TCP does not measure"))
}

/// One end of a connection at a host.
#[derive(Debug)]
pub(super) struct TcpEndpoint {
    pub(super) connection: Connection,
    /// The TLS session of the endpoint's stream, if the flow uses TLS.
    pub(super) tls: Option<Box<Session>>,
    /// Whether the endpoint's events need additional processing: for TLS, or to store a Fast Open cookie.
    pub(super) attended: bool,
    pub(super) binding: Binding,
    pub(super) timers: TimerPair,
}

/// Returns the number of retransmission timeouts of a connection, for its SYN or for data.
pub(super) fn timeouts(counts: &Statistics) -> u64 {
    counts.timeouts + counts.syn_retransmissions
}

impl TcpEndpoint {
    pub(super) fn new(mut connection: Connection, mut tls: Option<Box<Session>>, binding: Binding) -> Self {
        if let Some(session) = &mut tls {
            session.start(&mut connection);
        }
        let attended = tls.is_some() || connection.config().fast_open;
        TcpEndpoint { connection, tls, attended, binding, timers: TimerPair::default() }
    }

    pub(super) fn report(&self) -> EndpointReport {
        let (seen, counts) = (self.connection.inspect(), self.connection.statistics());
        let mut control_values = Vec::new();
        self.connection.controller().inspect(&mut control_values);
        EndpointReport {
            cwnd_bytes: Some(seen.cwnd_bytes),
            ssthresh_bytes: finite_threshold(seen.ssthresh_bytes),
            in_flight_bytes: Some(seen.in_flight_bytes),
            smoothed_rtt: nonzero_duration(seen.smoothed_rtt),
            min_rtt: nonzero_duration(seen.min_rtt),
            latest_rtt: nonzero_duration(seen.latest_rtt),
            pacing_bps: nonzero_rate(seen.pacing_bps),
            delivery_rate_bps: nonzero_rate(seen.delivery_rate_bps),
            in_recovery: seen.in_recovery,
            pto_count: Some(seen.backoff),
            sent_packets: Some(counts.data_segments_sent),
            retransmitted_packets: Some(counts.retransmitted_segments),
            congestion_events: Some(counts.recoveries),
            spurious_congestion_events: Some(counts.undone_reductions),
            mtu_bytes: Some(seen.mss_bytes),
            control_values,
            ..EndpointReport::new(EndpointKind::Tcp)
        }
    }
}

/// All TCP endpoints of a world.
#[derive(Debug)]
pub(super) struct TcpEndpoints {
    pub(super) slots: Slab<TcpEndpoint>,
    pub(super) output: TcpOutput,
}

/// The state that sending needs in addition to an endpoint.
#[derive(Debug)]
pub(super) struct TcpOutput {
    beside: SegmentContents,
    /// The first acknowledgment from which receivers acknowledge one byte too many, which is a fault for tests of the
    /// auditor; 0 means never.
    faulty_from: u64,
    acknowledgements: u64,
}

/// Stores the parts of a segment that are not in its header.
#[cold]
#[inline(never)]
fn store_beside(
    network: &mut Network<RunObserver>,
    handle: PacketHandle,
    beside: &SegmentContents,
    with_options: bool,
) {
    let options = if with_options { network.arena.store_options(&beside.options) } else { SideDataHandle::NONE };
    let payload = network.arena.store_payload(beside.payload.clone());
    let packet = network.arena.get_mut(handle);
    packet.options = options;
    packet.payload = payload;
}

impl TcpEndpoints {
    pub(super) fn new(expected: usize, faulty_from: u64) -> Self {
        TcpEndpoints {
            // Reserve exactly the expected number: a vector that doubles could waste the memory of 200 000 endpoints.
            slots: Slab::with_capacity(expected),
            output: TcpOutput { beside: SegmentContents::default(), faulty_from, acknowledgements: 0 },
        }
    }

    /// Sends all pending segments of an endpoint and arms its timers. Returns whether its connection is closed.
    #[inline(always)]
    pub(super) fn output(&mut self, network: &mut Network<RunObserver>, index: u32, now: Instant) -> bool {
        let Some(endpoint) = self.slots.get_mut(index) else { return false };
        endpoint.output(&mut self.output, network, index, now)
    }
}

impl Binding {
    /// Creates a packet that this endpoint sends now. It has no side data and is not ECN-capable.
    #[inline(always)]
    fn packet(&self, now: Instant, header: TcpHeader) -> Packet {
        let ip_bytes = self.version.header_bytes() + header.header_bytes() + u32::from(header.payload_bytes);
        let packet = Packet::new(self.flow, self.peer, ip_bytes, PacketContent::Tcp(header));
        Packet { sent: now, version: self.version, ..packet }
    }
}

impl TcpEndpoint {
    /// Sends all pending segments and arms the timers. Returns whether the connection is closed.
    #[inline]
    pub(super) fn output(
        &mut self,
        output: &mut TcpOutput,
        network: &mut Network<RunObserver>,
        index: u32,
        now: Instant,
    ) -> bool {
        let burst = self.connection.poll_burst(now);
        if burst.segments > 0 {
            let first = self.binding.packet(now, burst.header);
            network.send_burst(self.binding.node, &first, burst.segments, u32::from(burst.header.payload_bytes));
        }
        if !burst.is_all {
            self.output_singly(output, network, now);
        }
        let events = [Timer::Tcp(index, TimerRange::Far).event(), Timer::Tcp(index, TimerRange::Near).event()];
        let connection = &self.connection;
        let deadlines =
            TimerDeadlines { far: connection.slow_timer_deadline(), near: connection.fast_timer_deadline() };
        self.timers.arm(&mut network.calendar, events, deadlines);
        self.connection.is_closed()
    }

    #[inline]
    fn output_singly(&mut self, output: &mut TcpOutput, network: &mut Network<RunObserver>, now: Instant) {
        while !self.connection.has_nothing_to_send()
            && self
                .send(output, network, now, |connection, header, beside| connection.poll_segment(now, header, beside))
        {
        }
    }

    /// Sends the pending acknowledgment, if nothing else is to be sent.
    #[inline]
    pub(super) fn acknowledge(&mut self, output: &mut TcpOutput, network: &mut Network<RunObserver>, now: Instant) {
        self.send(output, network, now, |connection, header, beside| {
            connection.poll_acknowledgement(now, header, beside);
            true
        });
    }

    /// Sends the segment that `poll` writes, if any; returns whether there was one.
    #[inline(always)]
    fn send(
        &mut self,
        output: &mut TcpOutput,
        network: &mut Network<RunObserver>,
        now: Instant,
        poll: impl FnOnce(&mut Connection, &mut TcpHeader, &mut SegmentContents) -> bool,
    ) -> bool {
        let binding = &self.binding;
        // Write the header into the packet's slot of the arena, to avoid a copy.
        let (handle, packet) = network.arena.claim();
        let header = packet.tcp_header();
        if !poll(&mut self.connection, header, &mut output.beside) {
            network.arena.cancel_claim(handle);
            return false;
        }
        if output.faulty_from != 0 {
            output.acknowledgements += u64::from(header.payload_bytes == 0);
            if output.acknowledgements >= output.faulty_from && header.payload_bytes == 0 {
                header.acknowledgement = header.acknowledgement.wrapping_add(1);
            }
        }
        let ip_bytes = binding.version.header_bytes() + header.header_bytes() + u32::from(header.payload_bytes);
        let with_options = header.has_segment_options();
        packet.sent = now;
        packet.flow = binding.flow;
        packet.destination = binding.peer;
        packet.ip_bytes = ip_bytes;
        packet.options = SideDataHandle::NONE;
        packet.payload = SideDataHandle::NONE;
        packet.codepoint = output.beside.codepoint;
        packet.version = binding.version;
        packet.corrupted = false;
        if with_options || output.beside.payload.is_some() {
            store_beside(network, handle, &output.beside, with_options);
        }
        network.send_filled(binding.node, handle);
        true
    }
}

impl TcpEndpoint {
    /// Arms the near timer after the receipt of data that requires no other action.
    #[inline(always)]
    pub(super) fn arm_near(&mut self, network: &mut Network<RunObserver>, index: u32) {
        let near = self.connection.fast_timer_deadline();
        self.timers.arm_near(&mut network.calendar, Timer::Tcp(index, TimerRange::Near).event(), near);
    }

    #[cold]
    #[inline(never)]
    fn write_secured(&mut self, payload: Payload) -> u64 {
        self.tls.as_mut().map_or(0, |session| session.stream(&mut self.connection).write(payload))
    }

    #[cold]
    #[inline(never)]
    fn read_secured(&mut self, max_bytes: u64) -> Option<Payload> {
        self.tls.as_mut()?.stream(&mut self.connection).read(max_bytes)
    }
}

/// The application's stream: that of the connection, or that of the TLS session.
impl Stream for TcpEndpoint {
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

    fn write_lengths(&mut self, write_bytes: u64, most_bytes: u64) -> u64 {
        match &mut self.tls {
            None => self.connection.write_lengths(write_bytes, most_bytes),
            Some(session) => session.stream(&mut self.connection).write_lengths(write_bytes, most_bytes),
        }
    }

    fn set_writable_threshold(&mut self, bytes: u64) {
        // A TLS session also writes its own records, whenever there is space.
        if self.tls.is_none() {
            self.connection.set_writable_threshold(bytes);
        }
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
            Some(session) => session.stream(&mut self.connection).finish(),
        }
    }

    fn abort(&mut self) {
        self.connection.abort();
    }
}
