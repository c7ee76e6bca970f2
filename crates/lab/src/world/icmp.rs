//! Replies of routers and hosts of the model to packets of real hosts: ICMP errors, echo replies, and replies to
//! packets for a closed port. A closed port replies to a UDP datagram with an ICMP error, and to a TCP segment with a
//! reset (RFC 9293 section 3.10.7.1).
//!
//! The reply of a node behind a NAT has the NAT's address as its source (RFC 5508 REQ-5).

use super::answers::HostReplies;
use super::state::World;
use crate::witness::RunObserver;
use fullpipe_network::{
    Endpoint, EndpointPair, Network, NotificationReason, Packet, PacketContent, PacketDisposition, SourceNotification,
};
use fullpipe_units::{FlowId, NodeId};
use fullpipe_wire::{self as wire, IcmpError, IpVersion, Unreachable, icmp, protocol};

impl World {
    /// Replies to a packet of a real host whose path ended at a node of the model, if the packet requires a reply.
    #[cold]
    pub(crate) fn answer(&mut self, network: &mut Network<RunObserver>, notice: &SourceNotification) {
        let now = network.now();
        let from = network.directory.address(seen_as(network, notice), notice.version);
        if !self.is_real(notice.source) {
            return;
        }
        let Some(HostReplies { identification, sent, .. }) = self.real_mut().map(|real| &mut real.answers) else {
            return;
        };
        *identification = identification.wrapping_add(1);
        let mut bytes = Vec::new();
        let error = match notice.reason {
            NotificationReason::Error(error) => error,
            NotificationReason::Delivered
                if icmp::write_echo_reply(&notice.bytes, *identification, &mut bytes).is_ok() =>
            {
                sent.echo_replies += 1;
                return send(network, notice, notice.flow.reverse(), protocol(notice.version), bytes);
            }
            NotificationReason::Delivered if wire::write_reset(&notice.bytes, *identification, &mut bytes).is_ok() => {
                sent.resets += 1;
                return send(network, notice, notice.flow.reverse(), protocol::TCP, bytes);
            }
            NotificationReason::Delivered if notice.protocol == protocol::UDP => {
                IcmpError::Unreachable(Unreachable::Port)
            }
            NotificationReason::Delivered => return,
        };
        if icmp::write_error(&notice.bytes, error, from, *identification, &mut bytes).is_err() {
            return;
        }
        if !self.real_mut().is_some_and(|real| real.answers.may_send_error(now, notice.node)) {
            return;
        }
        let flow = self.error_flow(network, notice);
        if let Some(real) = self.real_mut() {
            real.answers.sent.errors += 1;
        }
        send(network, notice, flow, protocol(notice.version), bytes);
    }

    /// Returns the flow of errors from a node to a host.
    fn error_flow(&mut self, network: &mut Network<RunObserver>, notice: &SourceNotification) -> FlowId {
        let protocol = protocol(notice.version);
        let key = (notice.node, notice.source, protocol);
        if let Some(known) = self.real().and_then(|real| real.answers.flows.get(&key)) {
            return *known;
        }
        let end = |node| Endpoint { node, port: 0 };
        let ends = EndpointPair { source: end(notice.node), destination: end(notice.source) };
        let flow = FlowId(2 * self.introduce_real(network, None, ends, notice.version, protocol));
        if let Some(real) = self.real_mut() {
            real.answers.flows.insert(key, flow);
        }
        flow
    }
}

fn protocol(version: IpVersion) -> u8 {
    match version {
        IpVersion::V4 => protocol::ICMP,
        IpVersion::V6 => protocol::ICMPV6,
    }
}

/// Returns the node whose address is the source of the reply. It is the node where the packet's path ended, or the last
/// NAT on the path back to the packet's source.
fn seen_as(network: &Network<RunObserver>, notice: &SourceNotification) -> NodeId {
    let mut path = network.path(notice.node, notice.source).into_iter().filter_map(|hop| network.hop_destination(hop));
    let hides = |node: &NodeId| {
        notice.version == IpVersion::V4 && network.is_nat(*node) && !network.is_inside_nat(*node, notice.source)
    };
    path.rfind(hides).unwrap_or(notice.node)
}

/// Sends a reply. Its addresses are final, so NATs on the path do not translate it.
fn send(network: &mut Network<RunObserver>, notice: &SourceNotification, flow: FlowId, protocol: u8, bytes: Vec<u8>) {
    let length = bytes.len() as u32;
    let content = PacketContent::RawIp {
        payload_bytes: length - notice.version.header_bytes(),
        protocol,
        flags: 0,
        dont_fragment: false,
        origin: notice.node,
        about: None,
        purpose: PacketDisposition::AlreadyTranslated,
    };
    let payload = network.arena.store_payload(Some(bytes.into()));
    let packet = Packet::new(flow, notice.source, length, content);
    network.send(notice.node, &Packet { payload, version: notice.version, ..packet });
}
