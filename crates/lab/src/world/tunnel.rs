//! Tunnels (CONNECT-UDP): programs at hosts, and the mapping between their datagrams and packets of the network.
//!
//! The client or proxy of a tunnel runs on a [`crate::stack::Host`], which uses addresses and ports. The network uses
//! flow numbers instead. A datagram that leaves such a host is assigned the flow number of its pair of addresses. A
//! datagram that arrives is assigned the addresses of its flow number. The tunnel's own datagrams have the flow numbers
//! of the tunnel's flow. The flow numbers of a conversation through a tunnel are used only between the proxy and the
//! target. The conversation's initiator exchanges datagrams with the tunnel's client directly.
//!
//! A proxy sends the datagrams of a request from a port that it chooses. The target's address must identify the
//! conversation, so each conversation through a tunnel has its own port at its acceptor.

use super::ports::PortAllocator;
use super::quic_stack::of_control;
use super::wakeups::{WakeupTiming, Wakeups};
use crate::stack::tunnel::{TunnelClient, TunnelProxy, TunnelSettings};
use crate::stack::{ControlFactory, Datagram, Host, HostSettings, RandomStreams};
use crate::witness::RunObserver;
use fullpipe_congestion::catalogue;
use fullpipe_congestion::source::{ConnectionEnd, ControlSource};
use fullpipe_engine::TimerSlot;
use fullpipe_network::Network;
use fullpipe_scenario::description;
use fullpipe_transport::endpoint::{EndpointKind, EndpointReport};
use fullpipe_units::{FlowId, NodeId};
use fullpipe_wire::IpVersion;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Receive buffer of a socket of a client or proxy, in payload bytes: Linux's default of `net.core.rmem_default`.
const SOCKET_BUFFER_BYTES: u64 = 212_992;
/// The largest number of payload bytes that are queued for a tunnel whose flow has not started.
const EARLY_BYTES: usize = 1 << 20;

/// Creates the client and the proxy of a tunnel.
#[derive(Clone, Debug)]
pub(crate) struct TunnelFactory {
    /// The settings without the congestion control, which is separate because each end has its own random choices.
    settings: TunnelSettings,
    /// The congestion controls of the ends; `None` if the ends use none.
    control: Option<ControlSource>,
    pub(super) timing: WakeupTiming,
}

impl TunnelFactory {
    /// Returns the factory of a tunnel, or the reason why the tunnel is impossible.
    pub(crate) fn new(described: &Arc<description::Masque>) -> Result<TunnelFactory, String> {
        let options =
            catalogue::ControlOptions { hystart: described.hystart, paced: true, quic: true, ..Default::default() };
        let named = |name: &String| ControlSource::named(name, options, crate::stack::unsupported_reason);
        let control = described.congestion.as_ref().map(named).transpose()?;
        let refusal = crate::stack::certificate_size_error(described.cryptography, described.certificate_bytes);
        refusal.map_or(Ok(()), Err)?;
        let settings = TunnelSettings { tunnel: Arc::clone(described), control: None, journal: None };
        let timing =
            WakeupTiming { reaction: described.reaction.clone(), timer_granularity: described.timer_granularity };
        Ok(TunnelFactory { settings, control, timing })
    }

    /// Returns the name of the congestion control algorithm; `none` if there is none.
    pub(super) fn control_name(&self) -> &str {
        self.control.as_ref().map_or("none", |control| control.name())
    }

    /// Returns the settings of one end of a tunnel in the run with this seed, and its random streams.
    pub(super) fn end(&self, seed: u64, tunnel: &str, end: &str) -> (TunnelSettings, RandomStreams) {
        let name = format!("{tunnel} {end}");
        let control = self.control.clone().map(|control| -> ControlFactory {
            let seed = fullpipe_units::random::derive_number(seed, &name, "congestion");
            Arc::new(move || control.create(ConnectionEnd { seed, connection: 0, initiator: true }))
        });
        (TunnelSettings { control, ..self.settings.clone() }, RandomStreams::new(seed, &name))
    }
}

/// A host on which programs run.
#[derive(Debug)]
pub(super) struct ProgramHost {
    pub(super) node: NodeId,
    pub(super) host: Host,
    pub(super) timer: TimerSlot,
    pub(super) wakeups: Wakeups,
    /// The flows of the tunnels whose clients run here, in ascending order.
    pub(super) clients: Vec<u32>,
    /// The last two different pairs of addresses with their flows. There are two, because a proxy alternates between
    /// clients and targets.
    pub(super) recent: [Option<(SocketAddr, SocketAddr, FlowId)>; 2],
}

impl ProgramHost {
    /// Returns the flow of a pair of addresses, if one of the last two datagrams had it.
    pub(super) fn recent_flow(&self, source: SocketAddr, destination: SocketAddr) -> Option<FlowId> {
        let same = |known: &&(SocketAddr, SocketAddr, FlowId)| known.0 == source && known.1 == destination;
        self.recent.iter().flatten().find(same).map(|known| known.2)
    }

    /// Records the flow of a pair of addresses that is not among the last two.
    pub(super) fn note_flow(&mut self, source: SocketAddr, destination: SocketAddr, flow: FlowId) {
        self.recent = [Some((source, destination, flow)), self.recent[0]];
    }
}

/// A set of host numbers that are removed in ascending order.
#[derive(Debug, Default)]
pub(super) struct HostSet {
    /// In descending order, so that the lowest number is last and can be popped.
    numbers: Vec<usize>,
}

impl HostSet {
    pub(super) fn insert(&mut self, number: usize) {
        if let Err(place) = self.numbers.binary_search_by(|other| number.cmp(other)) {
            self.numbers.insert(place, number);
        }
    }

    pub(super) fn pop_first(&mut self) -> Option<usize> {
        self.numbers.pop()
    }
}

/// A tunnel and its programs.
#[derive(Debug)]
pub(super) struct RunningTunnel {
    pub(super) client_host: usize,
    pub(super) local: SocketAddr,
    pub(super) proxy_address: SocketAddr,
    /// The client; `None` until the tunnel's flow starts.
    pub(super) client: Option<TunnelClient>,
    pub(super) early: EarlyDatagrams,
    pub(super) proxy: TunnelProxy,
}

/// The queue of datagrams that are sent through a tunnel before its flow starts.
#[derive(Debug, Default)]
pub(super) struct EarlyDatagrams {
    /// Datagrams with their conversation and target.
    pub(super) held: Vec<(u32, SocketAddr, Datagram)>,
    pub(super) held_bytes: usize,
    pub(super) dropped: u64,
}

impl EarlyDatagrams {
    pub(super) fn hold(&mut self, conversation: u32, target: SocketAddr, datagram: Datagram) {
        let bytes = self.held_bytes + datagram.payload.len();
        if bytes > EARLY_BYTES {
            self.dropped += 1;
            return;
        }
        self.held_bytes = bytes;
        self.held.push((conversation, target, datagram));
    }

    /// Drops the datagrams of a closed conversation.
    pub(super) fn forget(&mut self, conversation: u32) {
        self.held.retain(|(other, _, _)| *other != conversation);
        self.held_bytes = self.held.iter().map(|(_, _, datagram)| datagram.payload.len()).sum();
    }
}

/// All programs, and the mapping between addresses and flows.
#[derive(Debug, Default)]
pub(super) struct Tunnels {
    pub(super) hosts: Vec<ProgramHost>,
    pub(super) at: BTreeMap<NodeId, usize>,
    /// The tunnels by number of the tunnel's flow.
    pub(super) running: BTreeMap<u32, RunningTunnel>,
    /// The flow of datagrams from one address to another.
    pub(super) flows: BTreeMap<(SocketAddr, SocketAddr), FlowId>,
    /// Source and destination of datagrams of a flow that arrive at a host, by flow number.
    pub(super) addresses: Vec<Option<(SocketAddr, SocketAddr)>>,
    /// The conversation of each acceptor behind a tunnel, by the acceptor's address.
    pub(super) targets: BTreeMap<SocketAddr, u32>,
    pub(super) target_ports: PortAllocator,
    /// The address of each acceptor behind a tunnel, by conversation.
    pub(super) acceptors: BTreeMap<u32, SocketAddr>,
    /// Hosts whose programs have work.
    pub(super) awake: HostSet,
    /// The QUIC stack endpoints that have received datagrams through tunnels and are not served yet. The vector is
    /// empty between calls; only its memory is reused.
    pub(super) touched: Vec<u32>,
    /// Whether `serve_programs` is running. It must not be reentered.
    pub(super) serving: bool,
}

impl Tunnels {
    pub(super) fn host(&mut self, node: NodeId, network: &Network<RunObserver>) -> usize {
        let number = self.hosts.len();
        *self.at.entry(node).or_insert_with(|| {
            let versions = [IpVersion::V4, IpVersion::V6];
            let addresses = versions.map(|version| network.directory.address(node, version)).to_vec();
            let host = Host::new(HostSettings { addresses, receive_buffer_bytes: SOCKET_BUFFER_BYTES });
            let timer = TimerSlot::default();
            let (wakeups, clients, recent) = (Wakeups::default(), Vec::new(), [None; 2]);
            self.hosts.push(ProgramHost { node, host, timer, wakeups, clients, recent });
            number
        })
    }

    /// Sets the source and the destination of datagrams of a flow.
    pub(super) fn set_addresses(
        addresses: &mut Vec<Option<(SocketAddr, SocketAddr)>>,
        flow: FlowId,
        pair: (SocketAddr, SocketAddr),
    ) {
        if addresses.len() <= flow.index() {
            addresses.resize(flow.index() + 1, None);
        }
        addresses[flow.index()] = Some(pair);
    }

    /// Returns the address of the acceptor of a conversation through a tunnel. Its port is the first, from the wanted
    /// port on, that no other conversation uses. `None` if no port is free.
    pub(super) fn acceptor(&mut self, wanted: SocketAddr, conversation: u32) -> Option<SocketAddr> {
        if let Some(known) = self.acceptors.get(&conversation) {
            return Some(*known);
        }
        let address = self.target_ports.take(wanted, u16::MAX)?;
        self.targets.insert(address, conversation);
        self.acceptors.insert(conversation, address);
        Some(address)
    }
}

impl Tunnels {
    /// Returns the report of the client (0) or the proxy (1) of a tunnel, by the number of the tunnel's flow.
    pub(super) fn report(&self, flow: u32, end: usize) -> Option<EndpointReport> {
        let running = self.running.get(&flow)?;
        Some(if end == 0 { running.report_client() } else { running.report_proxy() })
    }
}

impl RunningTunnel {
    fn report_client(&self) -> EndpointReport {
        let client = self.client.as_ref();
        let mut counts = client.map(TunnelClient::statistics).unwrap_or_default();
        counts.counters.dropped_queue += self.early.dropped;
        EndpointReport {
            smoothed_rtt: client.and_then(TunnelClient::smoothed_rtt),
            mean_rtt: counts.mean_rtt,
            lost_packets: Some(client.map_or(0, TunnelClient::lost_packets)),
            tunnel: Some(counts.counters),
            ..of_control(EndpointKind::Tunnel, client.and_then(TunnelClient::inspect))
        }
    }

    /// Returns the report of the proxy. It contains neither the round-trip time nor the losses of the proxy's
    /// connection.
    fn report_proxy(&self) -> EndpointReport {
        let counts = self.proxy.statistics();
        EndpointReport {
            mean_rtt: counts.mean_rtt,
            tunnel: Some(counts.counters),
            ..of_control(EndpointKind::Tunnel, self.proxy.inspect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::{EcnCodepoint, RandomStream};
    use std::collections::BTreeSet;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn hosts_are_served_once_each_from_the_lowest_number() {
        let (mut set, mut model, mut random) =
            (HostSet::default(), BTreeSet::new(), RandomStream::new(1, "hosts", "order"));
        for _ in 0..2_000 {
            let bits = random.next_u64();
            if bits.is_multiple_of(3) {
                assert_eq!(set.pop_first(), model.pop_first());
            } else {
                let number = (bits >> 8) as usize % 9;
                set.insert(number);
                model.insert(number);
            }
        }
        while let Some(first) = model.pop_first() {
            assert_eq!(set.pop_first(), Some(first));
        }
        assert_eq!(set.pop_first(), None);
    }

    #[test]
    fn host_caches_the_flows_of_two_pairs_of_addresses() {
        let settings = HostSettings { addresses: Vec::new(), receive_buffer_bytes: 0 };
        let mut host = ProgramHost {
            node: NodeId(0),
            host: Host::new(settings),
            timer: TimerSlot::default(),
            wakeups: Wakeups::default(),
            clients: Vec::new(),
            recent: [None; 2],
        };
        assert_eq!(host.recent_flow(at(1), at(2)), None);
        for port in 1..4u16 {
            host.note_flow(at(port), at(9), FlowId(port.into()));
        }
        let known = [1, 2, 3].map(|port| host.recent_flow(at(port), at(9)));
        assert_eq!(known, [None, Some(FlowId(2)), Some(FlowId(3))]);
        assert_eq!(host.recent_flow(at(9), at(3)), None);
    }

    /// There are 64 512 ports from 1024 to 65 535, one for each conversation.
    #[test]
    fn a_conversation_without_a_free_port_has_no_acceptor() {
        let mut tunnels = Tunnels::default();
        let ports: BTreeSet<_> = (0..64_512).map(|conversation| tunnels.acceptor(at(2000), conversation)).collect();
        assert!(ports.len() == 64_512 && !ports.contains(&None));
        assert_eq!(tunnels.acceptor(at(2000), 64_512), None);
        assert_eq!(tunnels.acceptor(at(2000), 7), Some(at(2007)));
    }

    #[test]
    fn each_end_of_a_tunnel_has_its_own_random_choices() {
        let loaded = fullpipe_scenario::load(
            "duration = '1s'\n[topology]\nkind = 'chain'\n[[topology.link]]\nrate = '1Mbit/s'\ndelay = '1ms'\n\
             [[flow]]\nfrom = 'source'\nto = 'sink'\nworkload = 'tunnel'\ncongestion = 'bbr3'\n",
            "test",
            &[],
        );
        let scenario = loaded.unwrap_or_else(|errors| panic!("{errors}")).scenario;
        let description::Transport::Masque(described) = &scenario.flows[0].transport else { panic!("it is a tunnel") };
        let maker = TunnelFactory::new(described).expect("the stack drives it");
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
    fn the_queue_of_a_tunnel_before_its_start_is_bounded() {
        let mut early = EarlyDatagrams::default();
        let datagram = || Datagram { payload: vec![0; 1200].into(), codepoint: EcnCodepoint::NotEct };
        // 873 times 1200 bytes are 1 047 600 of 1 048 576.
        for number in 0..875 {
            early.hold(number % 2, at(443), datagram());
        }
        assert_eq!((early.held.len(), early.held_bytes, early.dropped), (873, 1_047_600, 2));
        // Every second datagram is of conversation 0, including the first and the last in the queue.
        early.forget(0);
        assert_eq!((early.held.len(), early.held_bytes), (436, 436 * 1200));
        early.hold(1, at(443), datagram());
        assert_eq!((early.held.len(), early.dropped), (437, 2));
    }
}
