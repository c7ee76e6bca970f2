//! Real hosts: packets for them leave the model. The kernel of this machine implements their endpoints.

use super::answers::HostReplies;
use super::binding::ConversationEnd;
use fullpipe_network::{EndpointPair, Network, PacketContent, PacketHandle};
use fullpipe_record::Observer;
use fullpipe_transport::endpoint::EndpointReport;
use fullpipe_units::{Instant, NodeId};
use std::collections::BTreeMap;

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// Bytes of an Ethernet header.
pub(crate) const ETHERNET_HEADER_BYTES: usize = 14;
/// EtherTypes of IPv4, IPv6 and ARP.
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(crate) const ETHERTYPE_ARP: u16 = 0x0806;

/// A real host and its Ethernet port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RealHost {
    pub(crate) node: NodeId,
    /// The host's Ethernet address. The next field is the emulator's address on the same link.
    pub(crate) mac: Mac,
    pub(crate) gateway_mac: Mac,
}

impl RealHost {
    /// Creates the host of a node. Its locally administered addresses contain the node's number.
    pub(crate) fn numbered(node: NodeId) -> Self {
        let [a, b, c, d] = node.0.to_be_bytes();
        let mac = |side: u8| -> Mac { [0x02, side, a, b, c, d] };
        RealHost { node, mac: mac(1), gateway_mac: mac(0) }
    }
}

/// A frame that the model has delivered to a real host.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) at: Instant,
    pub(crate) port: usize,
    pub(crate) frame: Vec<u8>,
}

/// All real hosts of a world.
#[derive(Debug, Default)]
pub(crate) struct RealHosts {
    pub(crate) hosts: Vec<RealHost>,
    /// The port number of each node; `None` if the node is not real.
    ports: Vec<Option<u32>>,
    pub(crate) delivered: Vec<Delivery>,
    /// Conversations that no flow of the scenario declares: protocol and ends.
    pub(crate) conversations: BTreeMap<u32, (u8, EndpointPair)>,
    /// Number of packets that could not be encoded as bytes.
    pub(crate) unwritable: u64,
    /// Replies of the model's nodes to real hosts.
    pub(crate) answers: HostReplies,
}

/// Endpoints that the kernel implements: the report of each at the end of the run, by flow and end.
#[derive(Debug, Default)]
pub(super) struct KernelEndpoints {
    pub(super) reports: BTreeMap<ConversationEnd, EndpointReport>,
}

impl RealHosts {
    pub(crate) fn new(hosts: Vec<RealHost>, nodes: usize) -> Self {
        let mut ports = vec![None; nodes];
        for (number, host) in hosts.iter().enumerate() {
            ports[host.node.index()] = Some(number as u32);
        }
        RealHosts {
            hosts,
            ports,
            delivered: Vec::new(),
            conversations: BTreeMap::new(),
            unwritable: 0,
            answers: HostReplies::default(),
        }
    }

    /// Returns the port of a node; `None` if it is not real.
    pub(crate) fn port(&self, node: NodeId) -> Option<usize> {
        self.ports.get(node.index()).copied().flatten().map(|port| port as usize)
    }

    /// Encodes a packet for a real host as a frame, and queues it for delivery. Returns false if the host is not real.
    /// The caller still owns the packet.
    pub(crate) fn deliver<O: Observer>(&mut self, network: &Network<O>, node: NodeId, handle: PacketHandle) -> bool {
        let Some(port) = self.port(node) else { return false };
        let Some(captured) = network.packet_at(node, handle) else { return false };
        let host = &self.hosts[port];
        let mut frame = Vec::with_capacity(ETHERNET_HEADER_BYTES + captured.packet.ip_bytes as usize);
        frame.extend(host.mac);
        frame.extend(host.gateway_mac);
        let v4 = captured.envelope.source.is_ipv4();
        frame.extend(if v4 { ETHERTYPE_IPV4 } else { ETHERTYPE_IPV6 }.to_be_bytes());
        debug_assert!(
            !matches!(captured.packet.content, PacketContent::Arp { .. }),
            "ARP packets stay on their segment"
        );
        match captured.write(usize::MAX, &mut frame) {
            Ok(_) => self.delivered.push(Delivery { at: network.now(), port, frame }),
            // A model endpoint sent content that no header can encode. The records contain this count.
            Err(_) => self.unwritable += 1,
        }
        true
    }
}
