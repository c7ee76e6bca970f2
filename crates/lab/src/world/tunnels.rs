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

mod ports;

use self::ports::{Places, Ports};
use super::wakeups::{Habits, Wakeups};
use super::{Core, Flow, World};
use crate::witness::Witness;
use fullpipe_congestion::catalogue;
use fullpipe_engine::{EventClass, EventId, Slot};
use fullpipe_network::{Content, Network, Packet};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{self, QueueLimit};
use fullpipe_stack::tunnel::{
    self, DropPolicy, Scheduler, TunnelClient, TunnelProxy, TunnelSettings, TunnelStatistics,
};
use fullpipe_stack::{Addressed, Datagram, Entropy, Host, HostSettings, Inspection, Maker};
use fullpipe_units::{Codepoint, Duration, FlowId, NodeId, Stream};
use fullpipe_wire::IpVersion;
use fullpipe_wire::udp::UDP_HEADER_BYTES;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;

/// Event of the first host's timer, beyond those of QUIC ends (of which there are 2^26 at most).
pub(super) const FIRST_TIMER: u32 = 3 << 26;
/// Payload bytes that may wait at a socket of a client or proxy: Linux's `net.core.rmem_default`.
const SOCKET_BUFFER_BYTES: u64 = 212_992;
/// Payload bytes that wait for a tunnel whose flow has not started.
const EARLY_BYTES: usize = 1 << 20;

/// A flow's name, and why it cannot be.
type Refused = (String, String);

/// How a tunnel's ends are made.
#[derive(Clone, Debug)]
pub(crate) struct TunnelMaker {
    /// All but the congestion control, since each end's makes random choices of its own.
    settings: TunnelSettings,
    /// Name of the congestion control.
    pub(super) control: Arc<str>,
    /// `None`: there is no control.
    options: Option<catalogue::Options>,
    habits: Habits,
}

impl TunnelMaker {
    /// Settings of a tunnel, or why it cannot be made.
    pub(crate) fn new(described: &description::Masque) -> Result<TunnelMaker, String> {
        let options = match &described.congestion {
            Some(name) => Some(options(name, described.hystart)?),
            None => None,
        };
        let settings = TunnelSettings {
            stream_mode: described.stream_mode,
            control: None,
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
            journal: None,
        };
        let control = described.congestion.as_deref().unwrap_or("none").into();
        let habits = Habits { reaction: described.reaction.clone(), timer_granularity: described.timer_granularity };
        Ok(TunnelMaker { settings, control, options, habits })
    }

    /// The settings of one end of a tunnel in the run with this seed, and what is random at it.
    fn end(&self, seed: u64, tunnel: &str, end: &str) -> (TunnelSettings, Entropy) {
        let name = format!("{tunnel} {end}");
        let control = self.options.map(|options| -> Maker {
            let seed = Stream::new(seed, &name, "congestion").bits();
            let (control, options) = (self.control.clone(), catalogue::Options { seed, ..options });
            Arc::new(move || {
                catalogue::create(&control, &options).expect("it could be created when the world was built")
            })
        });
        (TunnelSettings { control, ..self.settings.clone() }, Entropy::new(seed, &name))
    }
}

/// Options of the control of this name, or why the stack cannot drive it.
fn options(name: &str, hystart: bool) -> Result<catalogue::Options, String> {
    let options = catalogue::Options { hystart, paced: true, quic: true, ..Default::default() };
    let control = catalogue::create(name, &options).map_err(|unknown| unknown.to_string())?;
    fullpipe_stack::refusal(&*control).map_or(Ok(options), Err)
}

/// A host on which programs run.
#[derive(Debug)]
struct ProgramHost {
    node: NodeId,
    host: Host,
    timer: Slot,
    wakeups: Wakeups,
}

/// One tunnel.
#[derive(Debug)]
struct Running {
    client_host: usize,
    local: SocketAddr,
    proxy_address: SocketAddr,
    /// None until the tunnel's flow starts.
    client: Option<TunnelClient>,
    early: Early,
    proxy: TunnelProxy,
}

/// What is sent through a tunnel before its flow starts.
#[derive(Debug, Default)]
struct Early {
    /// Each with its conversation and its target.
    held: Vec<(u32, SocketAddr, Datagram)>,
    held_bytes: usize,
    dropped: u64,
}

impl Early {
    fn hold(&mut self, conversation: u32, target: SocketAddr, datagram: Datagram) {
        let bytes = self.held_bytes + datagram.payload.len();
        if bytes > EARLY_BYTES {
            self.dropped += 1;
            return;
        }
        self.held_bytes = bytes;
        self.held.push((conversation, target, datagram));
    }

    /// The conversation is over: nobody waits for what it sent.
    fn forget(&mut self, conversation: u32) {
        self.held.retain(|(other, _, _)| *other != conversation);
        self.held_bytes = self.held.iter().map(|(_, _, datagram)| datagram.payload.len()).sum();
    }
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
    target_ports: Ports,
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
            let timer = Slot::default();
            self.hosts.push(ProgramHost { node, host, timer, wakeups: Wakeups::default() });
            number
        })
    }

    /// Where a conversation through a tunnel is accepted: at the first of the address's ports, from the wanted one on, at
    /// which no other is. `None`: there is none left.
    fn acceptor(&mut self, wanted: SocketAddr, conversation: u32) -> Option<SocketAddr> {
        if let Some(known) = self.acceptors.get(&conversation) {
            return Some(*known);
        }
        let address = self.target_ports.take(wanted, u16::MAX)?;
        self.targets.insert(address, conversation);
        self.acceptors.insert(conversation, address);
        Some(address)
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
    /// If a tunnel cannot have its ports, with the flow's name and the reason.
    pub(crate) fn prepare_tunnels(&mut self, network: &Network<Witness>) -> Result<(), Refused> {
        let places = self.core.tunnel_places(network)?;
        if places.is_empty() {
            return Ok(());
        }
        let mut tunnels = Box::<Tunnels>::default();
        for (number, [local, proxy_address]) in places {
            let flow = &self.core.flows[number];
            let Some(maker) = &flow.tunnel else { continue };
            let name = &self.core.scenario.flows[number].name;
            let (client_host, proxy_host) = (tunnels.host(flow.from, network), tunnels.host(flow.to, network));
            for (host, end) in [(client_host, "client"), (proxy_host, "proxy")] {
                let random = Stream::new(self.core.scenario.seed, &format!("{name} {end}"), "reaction");
                tunnels.hosts[host].wakeups.slow_down(Wakeups::new(&maker.habits, random));
            }
            let (mut settings, entropy) = maker.end(self.core.scenario.seed, name, "proxy");
            settings.journal = self.core.quic.open_journal((number, 1));
            let host = &tunnels.hosts[proxy_host].host;
            let proxy = TunnelProxy::start(host, &settings, &entropy, proxy_address)
                .map_err(|error| (name.clone(), error.to_string()))?;
            let forward = FlowId(2 * number as u32);
            for (flow, from, to) in [(forward, local, proxy_address), (forward.reverse(), proxy_address, local)] {
                tunnels.flows.insert((from, to), flow);
                tunnels.addresses.insert(flow, (from, to));
            }
            tunnels.awake.insert(proxy_host);
            let running = Running { client_host, local, proxy_address, client: None, early: Early::default(), proxy };
            tunnels.running.insert(number as u32, running);
        }
        self.core.tunnels = Some(tunnels);
        Ok(())
    }

    /// The tunnel of a flow, if it is one.
    pub(crate) fn tunnel_report(&self, flow: usize) -> Option<TunnelReport> {
        let running = self.core.tunnels.as_ref()?.running.get(&(flow as u32))?;
        let client = running.client.as_ref();
        let mut client_statistics = client.map(TunnelClient::statistics).unwrap_or_default();
        client_statistics.dropped_queue += running.early.dropped;
        Some(TunnelReport {
            client: client_statistics,
            proxy: running.proxy.statistics(),
            smoothed_rtt: client.and_then(TunnelClient::smoothed_rtt),
            client_lost_packets: client.map_or(0, TunnelClient::lost_packets),
        })
    }

    /// What the congestion control at one end of a tunnel (0: client) shows, and the smoothed round-trip time as far as it is
    /// known: the proxy does not tell. `None`: the flow is none, there is no connection, or no control.
    pub(crate) fn tunnel_inspection(&self, flow: usize, end: usize) -> Option<(Inspection, Option<Duration>)> {
        let running = self.core.tunnels.as_ref()?.running.get(&(flow as u32))?;
        if end == 1 {
            return running.proxy.inspect().map(|seen| (seen, None));
        }
        let client = running.client.as_ref()?;
        client.inspect().map(|seen| (seen, client.smoothed_rtt()))
    }

    /// A tunnel's flow starts: its client connects. Says whether it is a tunnel's.
    #[cold]
    pub(super) fn start_tunnel(&mut self, network: &mut Network<Witness>, flow: u32) -> bool {
        let Core { tunnels: Some(tunnels), flows, scenario, quic, .. } = &mut self.core else { return false };
        let Some(maker) = &flows[flow as usize].tunnel else { return false };
        let Tunnels { running, hosts, awake, .. } = &mut **tunnels;
        if let Some(running) = running.get_mut(&flow) {
            let (mut settings, entropy) = maker.end(scenario.seed, &scenario.flows[flow as usize].name, "client");
            settings.journal = quic.open_journal((flow as usize, 0));
            let host = &hosts[running.client_host].host;
            let client = TunnelClient::start(host, &settings, &entropy, running.local, running.proxy_address)
                .expect("each client has a port of its own at a host that has the address");
            for (conversation, target, datagram) in running.early.held.drain(..) {
                client.send(conversation, target, datagram.payload);
            }
            running.client = Some(client);
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
        let program = &mut tunnels.hosts[number];
        program.host.handle_datagram(network.now(), Addressed { source, destination, datagram });
        if program.wakeups.is_at_once() {
            tunnels.awake.insert(number);
        } else if let Some(at) = program.wakeups.begin(network.now()) {
            let timer = EventId::new(EventClass::Application, FIRST_TIMER + number as u32);
            program.timer.arm(&mut network.calendar, timer, at.min(program.wakeups.tick(program.host.next_timeout())));
        }
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
        program.wakeups.end();
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
        program.timer.arm(&mut network.calendar, timer, program.wakeups.tick(program.host.next_timeout()));
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

    /// Numbers of the tunnels' flows, and the addresses of their clients and proxies; or the name of the flow that there
    /// are none for, and why.
    fn tunnel_places(&self, network: &Network<Witness>) -> Result<Vec<(usize, [SocketAddr; 2])>, Refused> {
        let mut places = Places::default();
        let tunnels = self.flows.iter().enumerate().filter(|(_, flow)| flow.tunnel.is_some());
        let place = |(number, flow): (usize, &Flow)| {
            let described = &self.scenario.flows[number];
            let [client, proxy] = [flow.from, flow.to].map(|node| network.directory.address(node, flow.version));
            let addresses = places.of_tunnel(client, SocketAddr::new(proxy, described.port));
            addresses.map(|addresses| (number, addresses)).map_err(|reason| (described.name.clone(), reason))
        };
        tunnels.map(place).collect()
    }

    /// The address at which a conversation's acceptor is reached; `None`: it goes through a tunnel, and no port is left.
    pub(super) fn tunnelled_acceptor(&mut self, wanted: SocketAddr, conversation: usize) -> Option<SocketAddr> {
        let flow = &self.flows[self.conversations[conversation].flow as usize];
        match (flow.via, &mut self.tunnels) {
            (Some(_), Some(tunnels)) => tunnels.acceptor(wanted, conversation as u32),
            _ => Some(wanted),
        }
    }

    /// Hands a datagram of a conversation's initiator to its tunnel.
    #[cold]
    pub(super) fn send_through(&mut self, tunnel: u32, conversation: u32, datagram: Datagram) {
        let Some(tunnels) = &mut self.tunnels else { return };
        let Some(target) = tunnels.acceptors.get(&conversation).copied() else { return };
        let Some(running) = tunnels.running.get_mut(&tunnel) else { return };
        tunnels.awake.insert(running.client_host);
        match &running.client {
            Some(client) => client.send(conversation, target, datagram.payload),
            None => running.early.hold(conversation, target, datagram),
        }
    }

    /// A conversation is over: so is its request.
    pub(super) fn close_request(&mut self, tunnel: u32, conversation: u32) {
        let Some(tunnels) = &mut self.tunnels else { return };
        let Some(running) = tunnels.running.get_mut(&tunnel) else { return };
        match &running.client {
            Some(client) => {
                client.close(conversation);
                tunnels.awake.insert(running.client_host);
            }
            None => running.early.forget(conversation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    /// 64 512 ports from 1024 to 65 535, each of which one conversation has.
    #[test]
    fn conversations_beyond_all_ports_of_a_host_are_not_accepted() {
        let mut tunnels = Tunnels::default();
        let ports: BTreeSet<_> = (0..64_512).map(|conversation| tunnels.acceptor(at(2000), conversation)).collect();
        assert!(ports.len() == 64_512 && !ports.contains(&None));
        assert_eq!(tunnels.acceptor(at(2000), 64_512), None);
        assert_eq!(tunnels.acceptor(at(2000), 7), Some(at(2007)));
    }

    #[test]
    fn each_end_of_a_tunnel_makes_random_choices_of_its_own() {
        let loaded = fullpipe_scenario::load(
            "duration = '1s'\n[topology]\nkind = 'chain'\n[[topology.link]]\nrate = '1Mbit/s'\ndelay = '1ms'\n\
             [[flow]]\nfrom = 'source'\nto = 'sink'\nworkload = 'tunnel'\ncongestion = 'bbr3'\n",
            "test",
            &[],
        );
        let scenario = loaded.unwrap_or_else(|errors| panic!("{errors}")).scenario;
        let description::Transport::Masque(described) = &scenario.flows[0].transport else { panic!("it is a tunnel") };
        let maker = TunnelMaker::new(described).expect("the stack drives it");
        let control = |seed, tunnel, end| {
            let (settings, _) = maker.end(seed, tunnel, end);
            let make = settings.control.expect("it has one");
            format!("{:?}", make())
        };
        let one = control(1, "a", "client");
        assert_eq!(one, control(1, "a", "client"));
        for other in [control(2, "a", "client"), control(1, "b", "client"), control(1, "a", "proxy")] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn what_is_sent_too_early_waits_up_to_a_bound() {
        let mut early = Early::default();
        let datagram = || Datagram { payload: vec![0; 1200].into(), codepoint: Codepoint::NotEct };
        // 873 times 1200 bytes are 1 047 600 of 1 048 576.
        for number in 0..875 {
            early.hold(number % 2, at(443), datagram());
        }
        assert_eq!((early.held.len(), early.held_bytes, early.dropped), (873, 1_047_600, 2));
        // Every second is conversation 0's, the first and the last that is held among them.
        early.forget(0);
        assert_eq!((early.held.len(), early.held_bytes), (436, 436 * 1200));
        early.hold(1, at(443), datagram());
        assert_eq!((early.held.len(), early.dropped), (437, 2));
    }
}
