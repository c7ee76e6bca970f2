//! Runs the programs at hosts, which are the clients and proxies of tunnels. Starts the programs, and moves datagrams
//! between them, the network, and the endpoints that use the tunnels.

use super::endpoints::tunnel_endpoint;
use super::flow::{EndpointFactory, Flow};
use super::ports::TunnelAddressAllocator;
use super::state::{HostState, World};
use super::timers::Timer;
use super::tunnel::{EarlyDatagrams, RunningTunnel, Tunnels};
use super::wakeups::Wakeups;
use crate::stack::tunnel::{TunnelClient, TunnelProxy};
use crate::stack::{AddressedDatagram, Datagram};
use crate::witness::RunObserver;
use fullpipe_network::{Network, Packet, PacketContent};
use fullpipe_units::{EcnCodepoint, FlowId, NodeId, RandomStream};
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use std::net::SocketAddr;

/// The name of a flow, and the reason why it cannot have a tunnel.
type Refused = (String, String);

impl World {
    /// Starts the proxies.
    ///
    /// # Errors
    /// If no ports can be allocated to a tunnel: the flow's name and the reason.
    pub(crate) fn prepare_tunnels(&mut self, network: &Network<RunObserver>) -> Result<(), Refused> {
        let addresses = self.core.tunnel_addresses(network)?;
        if addresses.is_empty() {
            return Ok(());
        }
        let mut tunnels = Box::<Tunnels>::default();
        for (number, [local, proxy_address]) in addresses {
            let flow = &self.core.flows[number];
            let EndpointFactory::Tunnel(maker) = &flow.endpoints else { continue };
            let name = &self.core.scenario.flows[number].name;
            let (client_host, proxy_host) = (tunnels.host(flow.from, network), tunnels.host(flow.to, network));
            for (host, end) in [(client_host, "client"), (proxy_host, "proxy")] {
                let random = RandomStream::new(self.core.scenario.seed, &format!("{name} {end}"), "reaction");
                tunnels.hosts[host].wakeups.slow_down(Wakeups::new(&maker.timing, random));
            }
            let (mut settings, entropy) = maker.end(self.core.scenario.seed, name, "proxy");
            settings.journal = self.core.endpoints.quic_stack.open_journal((number, 1));
            let host = &tunnels.hosts[proxy_host].host;
            let proxy = TunnelProxy::start(host, &settings, &entropy, proxy_address)
                .map_err(|error| (name.clone(), error.to_string()))?;
            let forward = FlowId(2 * number as u32);
            for (flow, from, to) in [(forward, local, proxy_address), (forward.reverse(), proxy_address, local)] {
                tunnels.flows.insert((from, to), flow);
                Tunnels::set_addresses(&mut tunnels.addresses, flow, (from, to));
            }
            tunnels.hosts[client_host].clients.push(number as u32);
            tunnels.awake.insert(proxy_host);
            let running = RunningTunnel {
                client_host,
                local,
                proxy_address,
                client: None,
                early: EarlyDatagrams::default(),
                proxy,
            };
            let number = number as u32;
            tunnels.running.insert(number, running);
            self.core.conversations[number as usize].endpoints = [0, 1].map(|end| Some(tunnel_endpoint(number, end)));
        }
        self.core.endpoints.tunnels = Some(tunnels);
        Ok(())
    }

    /// Connects the client of a tunnel when its flow starts. Returns false if the flow is not a tunnel.
    #[cold]
    pub(super) fn start_tunnel(&mut self, network: &mut Network<RunObserver>, flow: u32) -> bool {
        let HostState { endpoints, flows, scenario, conversations, .. } = &mut self.core;
        let Some(tunnels) = &mut endpoints.tunnels else { return false };
        let EndpointFactory::Tunnel(maker) = &flows[flow as usize].endpoints else { return false };
        let Tunnels { running, hosts, awake, .. } = &mut **tunnels;
        if let Some(running) = running.get_mut(&flow) {
            let (mut settings, entropy) = maker.end(scenario.seed, &scenario.flows[flow as usize].name, "client");
            settings.journal = endpoints.quic_stack.open_journal((flow as usize, 0));
            let host = &hosts[running.client_host].host;
            let client = TunnelClient::start(host, &settings, &entropy, running.local, running.proxy_address)
                .expect("each client has a port of its own at a host that has the address");
            for (conversation, target, datagram) in running.early.held.drain(..) {
                let flow = conversations[conversation as usize].flow as usize;
                client.send(conversation, target, scenario.flows[flow].via_mode, datagram.payload);
            }
            running.client = Some(client);
            awake.insert(running.client_host);
        }
        self.serve_programs(network);
        true
    }

    /// Handles a datagram with bytes. Returns false if it is not for a program of the host.
    #[cold]
    pub(super) fn receive_by_program(
        &mut self,
        network: &mut Network<RunObserver>,
        node: NodeId,
        packet: &Packet,
    ) -> bool {
        let Some(tunnels) = &mut self.core.endpoints.tunnels else { return false };
        let (Some(&number), Some(&Some((source, destination)))) =
            (tunnels.at.get(&node), tunnels.addresses.get(packet.flow.index()))
        else {
            return false;
        };
        let Some(payload) = network.arena.take_payload(packet.payload) else { return true };
        let datagram = Datagram { payload, codepoint: packet.codepoint };
        let program = &mut tunnels.hosts[number];
        program.host.handle_datagram(network.now(), AddressedDatagram { source, destination, datagram });
        if program.wakeups.is_at_once() {
            tunnels.awake.insert(number);
        } else if let Some(at) = program.wakeups.begin(network.now()) {
            let timer = Timer::Programs(number as u32).event();
            program.timer.arm(&mut network.calendar, timer, at.min(program.wakeups.tick(program.host.next_timeout())));
        }
        true
    }

    /// Handles the timer of a host's programs.
    #[cold]
    pub(super) fn program_timer(&mut self, network: &mut Network<RunObserver>, number: u32) {
        let now = network.now();
        let Some(tunnels) = &mut self.core.endpoints.tunnels else { return };
        let number = number as usize;
        if tunnels.hosts.get_mut(number).is_some_and(|host| host.timer.on_wakeup(now)) {
            tunnels.awake.insert(number);
            self.serve_programs(network);
        }
    }

    /// Runs the programs that have work, sends their datagrams, and delivers the datagrams that arrived through
    /// tunnels, until all programs wait.
    #[cold]
    pub(super) fn serve_programs(&mut self, network: &mut Network<RunObserver>) {
        match &mut self.core.endpoints.tunnels {
            Some(tunnels) if !tunnels.serving => tunnels.serving = true,
            _ => return,
        }
        while let Some(number) = self.core.endpoints.tunnels.as_mut().and_then(|tunnels| tunnels.awake.pop_first()) {
            let mut touched = self.core.serve_host(network, number);
            for end in touched.drain(..) {
                self.service_stack(network, end);
            }
            if let Some(tunnels) = &mut self.core.endpoints.tunnels {
                tunnels.touched = touched;
            }
            self.service_touched(network);
        }
        if let Some(tunnels) = &mut self.core.endpoints.tunnels {
            tunnels.serving = false;
        }
    }
}

impl HostState {
    /// Runs a host's programs once. Returns the QUIC stack endpoints that have received datagrams through tunnels, in
    /// ascending order.
    fn serve_host(&mut self, network: &mut Network<RunObserver>, number: usize) -> Vec<u32> {
        let now = network.now();
        let HostState { endpoints, flows, conversations, .. } = self;
        let Some(tunnels) = &mut endpoints.tunnels else { return Vec::new() };
        let Tunnels { hosts, running, flows: known, addresses, targets, touched, .. } = &mut **tunnels;
        let program = &mut hosts[number];
        program.wakeups.end();
        program.host.handle_timeout(now);
        while let Some(AddressedDatagram { source, destination, datagram }) = program.host.poll_transmit() {
            let flow = program.recent_flow(source, destination).or_else(|| {
                let flow = known.get(&(source, destination)).copied().or_else(|| {
                    // The first datagram of a request: its source port is the one that the proxy chose.
                    let forward = FlowId(2 * *targets.get(&destination)?);
                    known.insert((source, destination), forward);
                    Tunnels::set_addresses(addresses, forward.reverse(), (destination, source));
                    Some(forward)
                })?;
                program.note_flow(source, destination, flow);
                Some(flow)
            });
            let Some(flow) = flow else { continue };
            let described = &flows[conversations[flow.index() / 2].flow as usize];
            let to = if flow.is_forward() { described.to } else { described.from };
            let payload_bytes = datagram.payload.len() as u32;
            let ip_bytes = described.version.header_bytes() + UDP_HEADER_BYTES + payload_bytes;
            let payload = network.arena.store_payload(Some(datagram.payload));
            let packet = Packet::new(flow, to, ip_bytes, PacketContent::Udp { payload_bytes });
            let packet = Packet { version: described.version, codepoint: datagram.codepoint, payload, ..packet };
            network.send(program.node, &packet);
        }
        let timer = Timer::Programs(number as u32).event();
        program.timer.arm(&mut network.calendar, timer, program.wakeups.tick(program.host.next_timeout()));
        let mut touched = std::mem::take(touched);
        for client in program.clients.iter().filter_map(|flow| running.get(flow)?.client.as_ref()) {
            while let Some((conversation, payload)) = client.poll_receive() {
                let Some(id) = conversations[conversation as usize].endpoints[0] else { continue };
                // RFC 9298 section 6.2: a tunnel transfers no congestion marks.
                let datagram = Datagram { payload, codepoint: EcnCodepoint::NotEct };
                if endpoints.quic_stack.handle_datagram(id.index(), now, datagram) {
                    touched.push(id.index());
                }
            }
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Returns the flow numbers of all tunnels, with the addresses of their clients and proxies. Fails with the first
    /// flow that cannot have addresses.
    fn tunnel_addresses(&self, network: &Network<RunObserver>) -> Result<Vec<(usize, [SocketAddr; 2])>, Refused> {
        let mut ports = TunnelAddressAllocator::default();
        let tunnels =
            self.flows.iter().enumerate().filter(|(_, flow)| matches!(flow.endpoints, EndpointFactory::Tunnel(_)));
        let allocate = |(number, flow): (usize, &Flow)| {
            let described = &self.scenario.flows[number];
            let [client, proxy] = [flow.from, flow.to].map(|node| network.directory.address(node, flow.version));
            let addresses = ports.allocate(client, SocketAddr::new(proxy, described.port));
            addresses.map(|addresses| (number, addresses)).map_err(|reason| (described.name.clone(), reason))
        };
        tunnels.map(allocate).collect()
    }

    /// Sends a datagram of a conversation's initiator through its tunnel.
    #[cold]
    pub(super) fn send_through(&mut self, tunnel: u32, conversation: u32, datagram: Datagram) {
        let Some(tunnels) = &mut self.endpoints.tunnels else { return };
        let Some(target) = tunnels.acceptors.get(&conversation).copied() else { return };
        let Some(running) = tunnels.running.get_mut(&tunnel) else { return };
        tunnels.awake.insert(running.client_host);
        match &running.client {
            Some(client) => {
                let flow = self.conversations[conversation as usize].flow as usize;
                client.send(conversation, target, self.scenario.flows[flow].via_mode, datagram.payload);
            }
            None => running.early.hold(conversation, target, datagram),
        }
    }

    /// Closes the request of a closed conversation.
    pub(super) fn close_request(&mut self, tunnel: u32, conversation: u32) {
        let Some(tunnels) = &mut self.endpoints.tunnels else { return };
        let Some(running) = tunnels.running.get_mut(&tunnel) else { return };
        match &running.client {
            Some(client) => {
                client.close_request(conversation);
                tunnels.awake.insert(running.client_host);
            }
            None => running.early.forget(conversation),
        }
    }
}
