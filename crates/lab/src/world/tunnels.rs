//! Tunnels (CONNECT-UDP): programs at hosts, and how their datagrams become packets of the network.
//!
//! A host with a tunnel's client or proxy runs it on a host of the real stack ([`fullpipe_stack::Host`]), which speaks of
//! addresses and ports; the network speaks of flows. What leaves such a host is given the flow of its pair of addresses,
//! what arrives the addresses of its flow. The tunnel's own datagrams have the flow numbers of the tunnel's flow. A
//! conversation that goes through a tunnel has its own numbers beyond the proxy only: before it, its initiator hands
//! datagrams to the tunnel's client and is handed those that come by it.
//!
//! A proxy's requests reach their target from a port that the proxy chooses. So that the target's address tells which
//! conversation is meant, each that comes through a tunnel has a port of its own at its acceptor.

use super::{Core, World};
use crate::witness::Witness;
use fullpipe_congestion::catalogue;
use fullpipe_engine::{EventClass, EventId, Slot};
use fullpipe_network::packet::{IpVersion, UDP_HEADER_BYTES};
use fullpipe_network::{Content, Network, Packet};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{self, QueueLimit};
use fullpipe_stack::tunnel::{
    self, DropPolicy, Scheduler, TunnelClient, TunnelProxy, TunnelSettings, TunnelStatistics,
};
use fullpipe_stack::{Addressed, Datagram, Entropy, Host, HostSettings, Maker};
use fullpipe_units::{Codepoint, Duration, FlowId, NodeId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

/// Event of the first host's timer, beyond those of QUIC ends (of which there are 2^26 at most).
pub(super) const FIRST_TIMER: u32 = 3 << 26;
/// Payload bytes that may wait at a socket of a client or proxy: Linux's `net.core.rmem_default`.
const SOCKET_BUFFER_BYTES: u64 = 212_992;
/// First port of the tunnels' clients, each of which has its own; below those of everybody else.
const FIRST_CLIENT_PORT: u16 = 40_000;

/// How a tunnel's ends are made.
#[derive(Clone, Debug)]
pub(crate) struct TunnelMaker {
    settings: TunnelSettings,
    /// Name of the congestion control.
    pub(super) control: Arc<str>,
}

impl TunnelMaker {
    /// Settings of a tunnel, or why it cannot be made.
    pub(crate) fn new(described: &description::Masque) -> Result<TunnelMaker, String> {
        let control = match &described.congestion {
            Some(name) => Some(maker(name, described.hystart)?),
            None => None,
        };
        let settings = TunnelSettings {
            stream_mode: described.stream_mode,
            control,
            initial_window_packets: described.initial_window_packets,
            initial_mtu_bytes: described.initial_mtu_bytes,
            largest_mtu_bytes: described.largest_mtu_bytes,
            queue_limit: match described.queue_limit {
                QueueLimit::Bytes(bytes) => tunnel::QueueLimit::Bytes(bytes),
                QueueLimit::Time(time) => tunnel::QueueLimit::Time(std::time::Duration::from_nanos(time.as_nanos())),
                // The language refuses numbers of packets.
                QueueLimit::Unlimited | QueueLimit::Packets(_) => tunnel::QueueLimit::None,
            },
            drop_policy: if described.drop_oldest { DropPolicy::Oldest } else { DropPolicy::Newest },
            scheduler: if described.in_order_of_arrival { Scheduler::Fifo } else { Scheduler::RoundRobin },
            coalesce: described.coalesce,
            datagram_buffer_bytes: usize::try_from(described.datagram_buffer_bytes).unwrap_or(usize::MAX),
            stream_buffer_bytes: described.send_buffer_bytes,
            receive_buffer_bytes: u32::try_from(described.receive_buffer_bytes).unwrap_or(u32::MAX),
            idle_timeout: described.idle_timeout,
            certificate_bytes: described.certificate_bytes,
            cryptography: super::quic::cryptography(described.tls, described.certificate_bytes)?,
        };
        Ok(TunnelMaker { settings, control: described.congestion.as_deref().unwrap_or("none").into() })
    }
}

/// What makes a control of this name, or why the stack cannot drive it.
fn maker(name: &str, hystart: bool) -> Result<Maker, String> {
    let options = catalogue::Options { hystart, paced: true, quic: true, ..Default::default() };
    let control = catalogue::create(name, &options).map_err(|unknown| unknown.to_string())?;
    if let Some(reason) = fullpipe_stack::refusal(&*control) {
        return Err(reason);
    }
    let name = name.to_owned();
    Ok(Arc::new(move || catalogue::create(&name, &options).expect("it could be created before")))
}

/// A host on which programs run.
#[derive(Debug)]
struct ProgramHost {
    node: NodeId,
    host: Host,
    timer: Slot,
}

/// One tunnel.
#[derive(Debug)]
struct Running {
    client_host: usize,
    local: SocketAddr,
    proxy_address: SocketAddr,
    /// None until the tunnel's flow starts.
    client: Option<TunnelClient>,
    proxy: TunnelProxy,
}

/// What a tunnel has done, and sees of its path now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TunnelReport {
    pub(crate) client: TunnelStatistics,
    pub(crate) proxy: TunnelStatistics,
    pub(crate) smoothed_rtt: Option<Duration>,
    /// QUIC packets that the client found lost.
    pub(crate) client_lost_packets: u64,
}

/// All programs, and which addresses mean which flow.
#[derive(Debug, Default)]
pub(super) struct Tunnels {
    hosts: Vec<ProgramHost>,
    at: BTreeMap<NodeId, usize>,
    /// By number of the tunnel's flow.
    running: BTreeMap<u32, Running>,
    /// Flow of what goes from one address to another.
    flows: BTreeMap<(SocketAddr, SocketAddr), FlowId>,
    /// From where to where what has this flow and comes to a host goes.
    addresses: BTreeMap<FlowId, (SocketAddr, SocketAddr)>,
    /// Acceptors of conversations that go through tunnels.
    targets: BTreeMap<SocketAddr, u32>,
    /// The same by conversation.
    acceptors: BTreeMap<u32, SocketAddr>,
    /// Hosts whose programs have something to do.
    awake: BTreeSet<usize>,
    /// Whether somebody is looking after the hosts at this moment.
    serving: bool,
}

impl Tunnels {
    fn host(&mut self, node: NodeId, network: &Network<Witness>) -> usize {
        let number = self.hosts.len();
        *self.at.entry(node).or_insert_with(|| {
            let versions = [IpVersion::V4, IpVersion::V6];
            let addresses = versions.map(|version| network.directory.address(node, version)).to_vec();
            let host = Host::new(HostSettings { addresses, receive_buffer_bytes: SOCKET_BUFFER_BYTES });
            self.hosts.push(ProgramHost { node, host, timer: Slot::default() });
            number
        })
    }

    /// The first of an address's ports, from a wanted one on, at which no conversation through a tunnel is accepted.
    fn acceptor(&mut self, wanted: SocketAddr, conversation: u32) -> SocketAddr {
        if let Some(known) = self.acceptors.get(&conversation) {
            return *known;
        }
        let mut address = wanted;
        while self.targets.contains_key(&address) {
            address.set_port(address.port().checked_add(1).unwrap_or(1024));
        }
        self.targets.insert(address, conversation);
        self.acceptors.insert(conversation, address);
        address
    }
}

/// The networks' tables know the way of a flow's packets: of one that goes through a tunnel, from the proxy on.
pub(crate) fn ends(scenario: &Scenario, flow: usize) -> (NodeId, NodeId) {
    let described = &scenario.flows[flow];
    (described.via.map_or(described.from, |tunnel| scenario.flows[tunnel].to), described.to)
}

impl World {
    /// Starts the proxies.
    ///
    /// # Errors
    /// If one cannot be started, with the flow's name and the reason.
    pub(crate) fn prepare_tunnels(&mut self, network: &Network<Witness>) -> Result<(), (String, String)> {
        if self.core.flows.iter().all(|flow| flow.tunnel.is_none()) {
            return Ok(());
        }
        let mut tunnels = Box::<Tunnels>::default();
        for (number, flow) in self.core.flows.iter().enumerate() {
            let Some(maker) = &flow.tunnel else { continue };
            let name = &self.core.scenario.flows[number].name;
            let address = |node| network.directory.address(node, flow.version);
            let (client_host, proxy_host) = (tunnels.host(flow.from, network), tunnels.host(flow.to, network));
            let mut proxy_address = SocketAddr::new(address(flow.to), self.core.scenario.flows[number].port);
            while tunnels.running.values().any(|other| other.proxy_address == proxy_address) {
                proxy_address.set_port(proxy_address.port().checked_add(1).unwrap_or(1024));
            }
            let port = FIRST_CLIENT_PORT.saturating_add(u16::try_from(tunnels.running.len()).unwrap_or(u16::MAX));
            let local = SocketAddr::new(address(flow.from), port);
            let entropy = Entropy::new(self.core.scenario.seed, &format!("{name} proxy"));
            let host = &tunnels.hosts[proxy_host].host;
            let proxy = TunnelProxy::start(host, &maker.settings, &entropy, proxy_address)
                .map_err(|error| (name.clone(), error.to_string()))?;
            let forward = FlowId(2 * number as u32);
            for (flow, from, to) in [(forward, local, proxy_address), (forward.reverse(), proxy_address, local)] {
                tunnels.flows.insert((from, to), flow);
                tunnels.addresses.insert(flow, (from, to));
            }
            tunnels.awake.insert(proxy_host);
            tunnels.running.insert(number as u32, Running { client_host, local, proxy_address, client: None, proxy });
        }
        self.core.tunnels = Some(tunnels);
        Ok(())
    }

    /// The tunnel of a flow, if it is one.
    pub(crate) fn tunnel_report(&self, flow: usize) -> Option<TunnelReport> {
        let running = self.core.tunnels.as_ref()?.running.get(&(flow as u32))?;
        let client = running.client.as_ref();
        Some(TunnelReport {
            client: client.map(TunnelClient::statistics).unwrap_or_default(),
            proxy: running.proxy.statistics(),
            smoothed_rtt: client.and_then(TunnelClient::smoothed_rtt),
            client_lost_packets: client.map_or(0, TunnelClient::lost_packets),
        })
    }

    /// A tunnel's flow starts: its client connects. Says whether it is a tunnel's.
    #[cold]
    pub(super) fn start_tunnel(&mut self, network: &mut Network<Witness>, flow: u32) -> bool {
        let Core { tunnels: Some(tunnels), flows, scenario, .. } = &mut self.core else { return false };
        let Some(maker) = &flows[flow as usize].tunnel else { return false };
        let Tunnels { running, hosts, awake, .. } = &mut **tunnels;
        if let Some(running) = running.get_mut(&flow) {
            let entropy = Entropy::new(scenario.seed, &format!("{} client", scenario.flows[flow as usize].name));
            let host = &hosts[running.client_host].host;
            let client = TunnelClient::start(host, &maker.settings, &entropy, running.local, running.proxy_address);
            running.client = Some(client.expect("each client has a port of its own at a host that has the address"));
            awake.insert(running.client_host);
        }
        self.serve_programs(network);
        true
    }

    /// A datagram with bytes has come to a host; says whether a program there was meant.
    #[cold]
    pub(super) fn receive_by_program(&mut self, network: &mut Network<Witness>, node: NodeId, packet: &Packet) -> bool {
        let Some(tunnels) = &mut self.core.tunnels else { return false };
        let (Some(&number), Some(&(source, destination))) =
            (tunnels.at.get(&node), tunnels.addresses.get(&packet.flow))
        else {
            return false;
        };
        let Some(payload) = network.arena.payload(packet.payload).cloned() else { return true };
        let datagram = Datagram { payload, codepoint: packet.codepoint };
        tunnels.hosts[number].host.handle_datagram(network.now(), Addressed { source, destination, datagram });
        tunnels.awake.insert(number);
        true
    }

    /// The timer of a host's programs has come up.
    #[cold]
    pub(super) fn program_timer(&mut self, network: &mut Network<Witness>, number: u32) {
        let now = network.now();
        let Some(tunnels) = &mut self.core.tunnels else { return };
        let number = number as usize;
        if tunnels.hosts.get_mut(number).is_some_and(|host| host.timer.fired(now)) {
            tunnels.awake.insert(number);
            self.serve_programs(network);
        }
    }

    /// Lets programs run that have something to do, sends what they have sent, and hands what came by tunnels to those
    /// whom it is for, until all wait.
    #[cold]
    pub(super) fn serve_programs(&mut self, network: &mut Network<Witness>) {
        match &mut self.core.tunnels {
            Some(tunnels) if !tunnels.serving => tunnels.serving = true,
            _ => return,
        }
        while let Some(number) = self.core.tunnels.as_mut().and_then(|tunnels| tunnels.awake.pop_first()) {
            let touched = self.core.serve_host(network, number);
            for end in touched {
                self.service_quic(network, end);
            }
            self.service_touched(network);
        }
        if let Some(tunnels) = &mut self.core.tunnels {
            tunnels.serving = false;
        }
    }
}

impl Core {
    /// Lets a host's programs run, once; the QUIC ends to which something has come by them.
    fn serve_host(&mut self, network: &mut Network<Witness>, number: usize) -> BTreeSet<u32> {
        let now = network.now();
        let Core { tunnels: Some(tunnels), flows, conversations, .. } = self else { return BTreeSet::new() };
        let Tunnels { hosts, running, flows: known, addresses, targets, .. } = &mut **tunnels;
        let program = &mut hosts[number];
        program.host.handle_timeout(now);
        while let Some(Addressed { source, destination, datagram }) = program.host.poll_transmit() {
            let flow = known.get(&(source, destination)).copied().or_else(|| {
                // A request's first datagram tells which port the proxy has given it.
                let forward = FlowId(2 * *targets.get(&destination)?);
                known.insert((source, destination), forward);
                addresses.insert(forward.reverse(), (destination, source));
                Some(forward)
            });
            let Some(flow) = flow else { continue };
            let described = &flows[conversations[flow.index() / 2].flow as usize];
            let to = if flow.is_forward() { described.to } else { described.from };
            let payload_bytes = datagram.payload.len() as u32;
            let ip_bytes = described.version.header_bytes() + UDP_HEADER_BYTES + payload_bytes;
            let payload = network.arena.store_payload(Some(datagram.payload));
            let packet = Packet::new(flow, to, ip_bytes, Content::Udp { payload_bytes });
            let packet = Packet { version: described.version, codepoint: datagram.codepoint, payload, ..packet };
            network.send(program.node, &packet);
        }
        let timer = EventId::new(EventClass::Application, FIRST_TIMER + number as u32);
        program.timer.arm(&mut network.calendar, timer, program.host.next_timeout());
        let mut touched = BTreeSet::new();
        for running in running.values().filter(|running| running.client_host == number) {
            while let Some((conversation, payload)) = running.client.as_ref().and_then(TunnelClient::poll_arrived) {
                let end = conversations[conversation as usize].endpoints[0];
                // RFC 9298 section 6.2: a tunnel carries no congestion marks.
                let datagram = Datagram { payload, codepoint: Codepoint::NotEct };
                if self.quic.handle_datagram(end, now, datagram) {
                    touched.insert(end);
                }
            }
        }
        touched
    }

    /// The address at which a conversation's acceptor is reached where it goes through a tunnel.
    pub(super) fn tunnelled_acceptor(&mut self, wanted: SocketAddr, conversation: usize) -> SocketAddr {
        let flow = &self.flows[self.conversations[conversation].flow as usize];
        match (flow.via, &mut self.tunnels) {
            (Some(_), Some(tunnels)) => tunnels.acceptor(wanted, conversation as u32),
            _ => wanted,
        }
    }

    /// Hands a datagram of a conversation's initiator to its tunnel.
    #[cold]
    pub(super) fn send_through(&mut self, tunnel: u32, conversation: u32, datagram: Datagram) {
        let Some(tunnels) = &mut self.tunnels else { return };
        let Some(target) = tunnels.acceptors.get(&conversation).copied() else { return };
        let Some(running) = tunnels.running.get(&tunnel) else { return };
        tunnels.awake.insert(running.client_host);
        // What is sent before the tunnel's flow has started is lost, as without a network.
        if let Some(client) = &running.client {
            client.send(conversation, target, datagram.payload);
        }
    }

    /// A conversation is over: so is its request.
    pub(super) fn close_request(&mut self, tunnel: u32, conversation: u32) {
        let Some(tunnels) = &mut self.tunnels else { return };
        let Some(running) = tunnels.running.get(&tunnel) else { return };
        if let Some(client) = &running.client {
            client.close(conversation);
            tunnels.awake.insert(running.client_host);
        }
    }
}
