//! Serves endpoints: passes the events of their streams to applications, and sends their pending packets.

use super::at_host::ApplicationIo;
use super::quic_model::OutputState;
use super::state::{HostState, World};
use super::streams::StreamKey;
use super::timers::Timer;
use crate::stack::Datagram;
use crate::witness::RunObserver;
use fullpipe_network::{Network, Packet, PacketContent};
use fullpipe_transport::{Stream as _, TransportEvent};
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use fullpipe_workload::StreamId;

impl World {
    /// Calls an application with an event of a stream.
    #[inline(always)]
    fn on_stream(
        &mut self,
        network: &mut Network<RunObserver>,
        application: u32,
        stream: StreamId,
        event: TransportEvent,
    ) {
        let mut io = ApplicationIo { core: &mut self.core, network, application, serviced: stream };
        self.applications[application as usize].on_stream(stream, event, &mut io);
    }

    /// Serves the endpoints of all other streams on which applications have acted.
    #[inline(always)]
    pub(super) fn service_touched(&mut self, network: &mut Network<RunObserver>) {
        while let Some(stream) = self.core.touched.pop() {
            self.service_stream(network, stream);
        }
    }

    #[inline(never)]
    fn service_stream(&mut self, network: &mut Network<RunObserver>, stream: StreamId) {
        let Some(key) = StreamKey::of(stream) else { return };
        if self.core.called.is_some() {
            self.core.note_called(key);
        }
        match key {
            StreamKey::Tcp(index) => self.service_tcp(network, index),
            StreamKey::QuicModel(stream) => {
                if let Some((index, _)) = self.core.endpoints.quic_model.locate(stream) {
                    self.service_model(network, index);
                }
            }
            StreamKey::QuicStack(index) => self.service_stack(network, index),
        }
    }

    /// Serves a TCP endpoint.
    #[inline]
    pub(super) fn service_tcp(&mut self, network: &mut Network<RunObserver>, index: u32) {
        let now = network.now();
        loop {
            let Some(endpoint) = self.core.endpoints.tcp.slots.get_mut(index) else { return };
            if !endpoint.connection.has_event() {
                break;
            }
            let application = endpoint.binding.application;
            let Some(event) = endpoint.connection.poll_event() else { break };
            if event == TransportEvent::Readable
                && !endpoint.attended
                && let Some(progress) = self.applications[application as usize].receive_counter()
            {
                while let Some(payload) = endpoint.connection.read(u64::MAX) {
                    progress.count_received(payload.len(), now);
                }
                continue;
            }
            if endpoint.attended {
                self.core.note_fast_open(index);
                if self.on_protected(network, index, event) {
                    continue;
                }
            }
            self.on_stream(network, application, StreamKey::Tcp(index).id(), event);
        }
        if self.core.endpoints.tcp.output(network, index, now) {
            self.core.forget_tcp(index);
        }
    }

    /// Passes an event of a connection to its TLS session, and the session's events to the application. Returns false
    /// if the endpoint has no session.
    #[cold]
    #[inline(never)]
    fn on_protected(&mut self, network: &mut Network<RunObserver>, index: u32, event: TransportEvent) -> bool {
        let Some(endpoint) = self.core.endpoints.tcp.slots.get_mut(index) else { return false };
        let Some(session) = &mut endpoint.tls else { return false };
        session.on_event(&mut endpoint.connection, event);
        loop {
            let Some(endpoint) = self.core.endpoints.tcp.slots.get_mut(index) else { return true };
            let application = endpoint.binding.application;
            let Some(event) = endpoint.tls.as_mut().and_then(|session| session.poll_event()) else { return true };
            self.on_stream(network, application, StreamKey::Tcp(index).id(), event);
        }
    }

    /// Serves an endpoint of the QUIC model.
    #[inline]
    pub(super) fn service_model(&mut self, network: &mut Network<RunObserver>, index: u32) {
        loop {
            let Some(endpoint) = self.core.endpoints.quic_model.slots.get_mut(index) else { return };
            let application = endpoint.binding.application;
            let event = if endpoint.connection.has_events() { endpoint.connection.poll_event() } else { None };
            let Some((number, event)) = event else {
                match self.core.endpoints.quic_model.output(network, index) {
                    // Sending can, for example, close the connection.
                    OutputState::HasEvents => continue,
                    OutputState::Idle => return,
                    OutputState::Closed => return self.core.forget_model(index),
                }
            };
            if event == TransportEvent::Readable
                && let Some(progress) = self.applications[application as usize].receive_counter()
            {
                let now = network.now();
                if let Some(stream) = endpoint.connection.stream(now, number) {
                    while let Some(payload) = stream.read(u64::MAX) {
                        progress.count_received(payload.len(), now);
                    }
                }
                continue;
            }
            let Some(stream) = self.core.endpoints.quic_model.stream(index, number) else { return };
            self.on_stream(network, application, StreamKey::QuicModel(stream).id(), event);
            if let TransportEvent::Closed(_) = event {
                let model = &mut self.core.endpoints.quic_model;
                model.release(index, number);
                if let Some(endpoint) = model.slots.get_mut(index)
                    && endpoint.single
                {
                    endpoint.connection.close_when_done(network.now());
                }
            }
        }
    }

    /// Serves an endpoint of the QUIC stack.
    #[cold]
    #[inline(never)]
    pub(super) fn service_stack(&mut self, network: &mut Network<RunObserver>, index: u32) {
        // Sending can produce further events, such as the end of the connection.
        loop {
            let Some(endpoint) = self.core.endpoints.quic_stack.slots.get_mut(index) else { return };
            endpoint.wakeups.end();
            let application = endpoint.binding.application;
            if let Some(event) = endpoint.connection.poll_event() {
                self.on_stream(network, application, StreamKey::QuicStack(index).id(), event);
            } else if !self.core.stack_output(network, index) {
                break;
            }
        }
        let Some(endpoint) = self.core.endpoints.quic_stack.slots.get_mut(index) else { return };
        if endpoint.connection.is_drained() {
            self.core.forget_stack(index);
        } else {
            let at = endpoint.wakeups.tick(endpoint.connection.next_timeout());
            endpoint.timer.arm(&mut network.calendar, Timer::QuicStack(index).event(), at);
        }
        if self.core.endpoints.tunnels.is_some() {
            self.serve_programs(network);
        }
    }
}

impl HostState {
    /// Sends all pending datagrams of a QUIC stack endpoint. Returns whether it has events for its application.
    fn stack_output(&mut self, network: &mut Network<RunObserver>, index: u32) -> bool {
        let now = network.now();
        let Some(endpoint) = self.endpoints.quic_stack.slots.get_mut(index) else { return false };
        let binding = endpoint.binding;
        if let Some(tunnel) = endpoint.via {
            let conversation = binding.place().0 as u32;
            while let Some(datagram) = self
                .endpoints
                .quic_stack
                .slots
                .get_mut(index)
                .and_then(|endpoint| endpoint.connection.poll_transmit(now))
            {
                self.send_through(tunnel, conversation, datagram);
            }
            return self.endpoints.quic_stack.slots.get(index).is_some_and(|endpoint| endpoint.connection.has_events());
        }
        while let Some(Datagram { payload, codepoint }) = endpoint.connection.poll_transmit(now) {
            let payload_bytes = payload.len() as u32;
            let ip_bytes = binding.version.header_bytes() + UDP_HEADER_BYTES + payload_bytes;
            let payload = network.arena.store_payload(Some(payload));
            let packet = Packet::new(binding.flow, binding.peer, ip_bytes, PacketContent::Udp { payload_bytes });
            network.send(binding.node, &Packet { version: binding.version, codepoint, payload, ..packet });
        }
        endpoint.connection.has_events()
    }

    fn forget_stack(&mut self, index: u32) {
        let Some(mut endpoint) = self.endpoints.quic_stack.slots.remove(index) else { return };
        let place = endpoint.binding.place();
        self.keep_last_report(place, endpoint.report());
        if let Some(tunnel) = endpoint.via {
            self.close_request(tunnel, place.0 as u32);
        }
    }
}
