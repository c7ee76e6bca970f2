//! Handles the events of hosts: packets, timers, and notifications about packets of real hosts.

use super::at_host::ApplicationIo;
use super::binding::place_of;
use super::state::World;
use super::streams::NO_STREAM;
use super::timers::{Timer, TimerRange};
use crate::stack::Datagram;
use crate::witness::RunObserver;
use fullpipe_engine::EventId;
use fullpipe_network::{HostEndpoints, Network, NotificationReason, PacketContent, PacketHandle, SourceNotification};
use fullpipe_tcp::Segment;
use fullpipe_transport::endpoint::{EndpointId, EndpointKind};
use fullpipe_units::{FlowId, Instant, NodeId};
use fullpipe_wire::TcpHeader;
use fullpipe_wire::udp::UDP_HEADER_BYTES;

impl World {
    /// Handles a segment for this TCP endpoint.
    #[inline(always)]
    fn receive_segment(&mut self, network: &mut Network<RunObserver>, index: u32, handle: PacketHandle) {
        let packet = network.arena.get(handle);
        let tcp = &mut self.core.endpoints.tcp;
        let (PacketContent::Tcp(header), Some(endpoint)) = (&packet.content, tcp.slots.get_mut(index)) else {
            return network.arena.release(handle);
        };
        if packet.options.is_none() && packet.payload.is_none() && !endpoint.attended {
            let now = network.now();
            if endpoint.connection.is_fast_path_ack(header) {
                endpoint.connection.process_fast_path_ack(now, header);
                network.arena.release_without_side_data(handle);
                if endpoint.connection.has_event() {
                    self.service_event(network, index);
                } else {
                    endpoint.output(&mut tcp.output, network, index, now);
                }
                return;
            }
            if endpoint.connection.is_fast_path_data(now, header)
                && let Some(progress) = self.applications[endpoint.binding.application as usize].receive_counter()
            {
                progress.count_received(endpoint.connection.receive_fast_path(now, header), now);
                network.arena.release_without_side_data(handle);
                if endpoint.connection.sends_only_acknowledgements() {
                    if endpoint.connection.is_ack_pending() {
                        endpoint.acknowledge(&mut tcp.output, network, now);
                    }
                    endpoint.arm_near(network, index);
                } else {
                    endpoint.output(&mut tcp.output, network, index, now);
                }
                return;
            }
        }
        self.receive_other_segment(network, index, handle);
    }

    #[inline(never)]
    fn service_event(&mut self, network: &mut Network<RunObserver>, index: u32) {
        self.service_tcp(network, index);
        self.service_touched(network);
    }

    /// Handles a segment outside the fast paths. It is a separate function, because its code would enlarge the stack
    /// frame of the fast paths.
    #[inline(never)]
    fn receive_other_segment(&mut self, network: &mut Network<RunObserver>, index: u32, handle: PacketHandle) {
        let packet = network.arena.get(handle);
        let (PacketContent::Tcp(header), Some(endpoint)) =
            (&packet.content, self.core.endpoints.tcp.slots.get_mut(index))
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
        self.service_event(network, index);
    }

    /// Handles a segment without an endpoint. The segment is for a real host, opens a connection, or is for a closed
    /// connection. A closed connection sends no reset (RFC 9293 section 3.10.7.1), because its peer is closed too and
    /// no endpoint would receive the reset.
    #[cold]
    #[inline(never)]
    fn receive_unexpected(
        &mut self,
        network: &mut Network<RunObserver>,
        node: NodeId,
        handle: PacketHandle,
        header: &TcpHeader,
    ) {
        if self.core.deliver(network, node, handle) {
            return;
        }
        match self.core.accept_tcp(network.now(), network.arena.get(handle).flow, header) {
            Some(acceptor) => self.receive_segment(network, acceptor, handle),
            None => network.arena.release(handle),
        }
    }

    /// Handles a datagram of the QUIC model.
    #[inline]
    fn receive_model(&mut self, network: &mut Network<RunObserver>, node: NodeId, handle: PacketHandle) {
        let flow = network.arena.get(handle).flow;
        // The receiver of a forward packet is the acceptor.
        let endpoint = self.core.conversations[flow.index() / 2].endpoints[usize::from(flow.is_forward())];
        let accepted = || self.core.accept_model(network.now(), flow);
        let Some(index) = endpoint.map(EndpointId::index).or_else(accepted) else {
            return network.arena.release(handle);
        };
        let packet = network.arena.get(handle);
        let (PacketContent::Quic(header), Some(endpoint)) =
            (&packet.content, self.core.endpoints.quic_model.slots.get_mut(index))
        else {
            return network.arena.release(handle);
        };
        debug_assert_eq!(endpoint.binding.node, node, "a packet is delivered to its destination");
        let udp_payload_bytes = packet.ip_bytes - packet.version.header_bytes() - UDP_HEADER_BYTES;
        if endpoint.connection.is_fast_path_datagram(header, packet.codepoint)
            && let Some(progress) = self.applications[endpoint.binding.application as usize].receive_counter()
        {
            let now = network.now();
            progress.count_received(endpoint.connection.receive_fast_path(now, header, udp_payload_bytes), now);
            network.arena.release_without_side_data(handle);
            return self.service_model(network, index);
        }
        endpoint.connection.handle_datagram(
            network.now(),
            header,
            network.arena.options(packet.options),
            network.arena.datagram(packet.payload),
            udp_payload_bytes,
            packet.codepoint,
        );
        network.arena.release(handle);
        self.service_model(network, index);
        self.service_touched(network);
    }

    /// Handles a UDP datagram with bytes, which is for a tunnel or for the QUIC stack.
    #[cold]
    #[inline(never)]
    fn receive_datagram(&mut self, network: &mut Network<RunObserver>, node: NodeId, handle: PacketHandle) {
        let packet = *network.arena.get(handle);
        if self.core.endpoints.tunnels.is_some() && self.receive_by_program(network, node, &packet) {
            network.arena.release(handle);
            return self.serve_programs(network);
        }
        let payload = network.arena.take_payload(packet.payload);
        network.arena.release(handle);
        let Some(payload) = payload else { return };
        let (conversation, end) = place_of(packet.flow.reverse());
        let index = match self.core.conversations[conversation].endpoints[end] {
            Some(id) if id.kind() == EndpointKind::QuicStack => id.index(),
            Some(_) => return,
            None => match self.core.accept_stack(network, packet.flow) {
                Some(acceptor) => acceptor,
                None => return,
            },
        };
        let datagram = Datagram { payload, codepoint: packet.codepoint };
        let stack = &mut self.core.endpoints.quic_stack;
        if !stack.handle_datagram(index, network.now(), datagram) || stack.waits(network, index) {
            return;
        }
        self.service_stack(network, index);
        self.service_touched(network);
    }

    fn tcp_timer(&mut self, network: &mut Network<RunObserver>, index: u32, reach: TimerRange, now: Instant) {
        let Some(endpoint) = self.core.endpoints.tcp.slots.get_mut(index) else { return };
        if endpoint.timers.fired(reach, now) {
            endpoint.connection.handle_timeout(now);
            self.service_tcp(network, index);
            self.service_touched(network);
        }
    }

    fn model_timer(&mut self, network: &mut Network<RunObserver>, index: u32, reach: TimerRange, now: Instant) {
        let Some(endpoint) = self.core.endpoints.quic_model.slots.get_mut(index) else { return };
        if endpoint.timers.fired(reach, now) {
            endpoint.connection.handle_timeout(now);
            self.service_model(network, index);
            self.service_touched(network);
        }
    }

    #[cold]
    #[inline(never)]
    fn stack_timer(&mut self, network: &mut Network<RunObserver>, index: u32, now: Instant) {
        let Some(endpoint) = self.core.endpoints.quic_stack.slots.get_mut(index) else { return };
        if !endpoint.timer.on_wakeup(now) {
            return;
        }
        if endpoint.connection.next_timeout() <= now {
            endpoint.connection.handle_timeout(now);
        }
        self.service_stack(network, index);
        self.service_touched(network);
    }

    /// Handles the timer of an application. Application 2n is the initiator of flow n; its first timer starts the flow.
    fn application_timer(&mut self, network: &mut Network<RunObserver>, number: u32, now: Instant) {
        let wake = &mut self.core.wakes[number as usize];
        if !wake.slot.on_wakeup(now) {
            return;
        }
        if wake.deadline > now {
            let deadline = wake.deadline;
            return self.core.wake_at(network, number, deadline);
        }
        wake.deadline = Instant::NEVER;
        let mut io = ApplicationIo { core: &mut self.core, network, application: number, serviced: NO_STREAM };
        let application = &mut self.applications[number as usize];
        let initiator = number.is_multiple_of(2);
        if initiator && !std::mem::replace(&mut self.started[number as usize / 2], true) {
            application.on_start(&mut io);
            if self.core.endpoints.tunnels.is_some() && self.start_tunnel(network, number / 2) {
                return;
            }
        } else {
            application.on_wake(&mut io);
        }
        self.service_touched(network);
    }
}

impl HostEndpoints<RunObserver> for World {
    #[inline]
    fn receive(&mut self, network: &mut Network<RunObserver>, node: NodeId, handle: PacketHandle) {
        let packet = network.arena.get(handle);
        let (flow, packet_payload) = (packet.flow, packet.payload);
        match &packet.content {
            PacketContent::Tcp(header) => {
                // The receiver of a forward packet is the acceptor.
                let end = usize::from(flow.is_forward());
                match self.core.conversations[flow.index() / 2].endpoints[end] {
                    None => {
                        let header = *header;
                        self.receive_unexpected(network, node, handle, &header);
                    }
                    Some(id) => {
                        debug_assert_eq!(id.kind(), EndpointKind::Tcp, "only TCP flows have segments");
                        self.receive_segment(network, id.index(), handle);
                    }
                }
            }
            PacketContent::Quic(_) => self.receive_model(network, node, handle),
            &PacketContent::Udp { payload_bytes } => {
                if self.core.endpoints.real.is_some() && self.core.deliver(network, node, handle) {
                    return;
                }
                if !packet_payload.is_none() {
                    return self.receive_datagram(network, node, handle);
                }
                network.arena.release(handle);
                let flow_index = self.core.conversations[flow.index() / 2].flow;
                let application = 2 * flow_index + u32::from(flow.is_forward());
                let mut io = ApplicationIo { core: &mut self.core, network, application, serviced: NO_STREAM };
                self.applications[application as usize].on_datagram(payload_bytes, &mut io);
                self.service_touched(network);
            }
            PacketContent::RawIp { .. } => {
                if !self.core.deliver(network, node, handle) {
                    let notice = network.notification_for(handle, node, NotificationReason::Delivered);
                    network.arena.release(handle);
                    if let Some(notice) = notice {
                        self.answer(network, &notice);
                    }
                }
            }
            PacketContent::Fragment { .. } | PacketContent::Arp { .. } => network.arena.release(handle),
        }
    }

    #[inline(always)]
    fn prefetch(&self, flow: FlowId) {
        let endpoint = self.core.conversations[flow.index() / 2].endpoints[usize::from(flow.is_forward())];
        match endpoint.map(|id| (id.kind(), id.index())) {
            Some((EndpointKind::Tcp, index)) => self.core.endpoints.tcp.slots.prefetch::<16>(index),
            Some((EndpointKind::QuicModel, index)) => self.core.endpoints.quic_model.slots.prefetch::<32>(index),
            _ => {}
        }
    }

    fn receive_fragment(&mut self, network: &mut Network<RunObserver>, node: NodeId, fragment: PacketHandle) -> bool {
        self.real_mut().is_some_and(|real| real.deliver(network, node, fragment))
    }

    fn on_notification(&mut self, network: &mut Network<RunObserver>, notice: SourceNotification) {
        self.answer(network, &notice);
    }

    fn on_timer(&mut self, network: &mut Network<RunObserver>, event: EventId) {
        let now = network.now();
        match Timer::of(event) {
            Timer::Tcp(index, reach) => self.tcp_timer(network, index, reach, now),
            Timer::QuicModel(index, reach) => self.model_timer(network, index, reach, now),
            Timer::QuicStack(index) => self.stack_timer(network, index, now),
            Timer::Programs(host) => self.program_timer(network, host),
            Timer::Application(number) => self.application_timer(network, number, now),
        }
    }
}
