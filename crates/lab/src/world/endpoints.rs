//! All endpoints of a world. Each kind has its own table; an [`EndpointId`] refers to an entry of one of them.

use super::binding::{Binding, ConversationEnd};
use super::kernel::{KernelEndpoints, RealHosts};
use super::quic_model::ModelEndpoints;
use super::quic_stack::StackEndpoints;
use super::tcp::TcpEndpoints;
use super::tunnel::Tunnels;
use fullpipe_transport::endpoint::{EndpointId, EndpointKind, EndpointReport};

/// All endpoints of a world.
#[derive(Debug)]
pub(super) struct Endpoints {
    pub(super) tcp: TcpEndpoints,
    pub(super) quic_model: ModelEndpoints,
    pub(super) quic_stack: StackEndpoints,
    /// Tunnels, if there are any.
    pub(super) tunnels: Option<Box<Tunnels>>,
    /// Real hosts, in real time.
    pub(super) real: Option<Box<RealHosts>>,
    pub(super) kernel: KernelEndpoints,
}

/// A connection at one end of a conversation.
#[derive(Debug)]
pub(crate) enum ConnectionMut<'a> {
    Tcp(&'a mut fullpipe_tcp::Connection),
    Model(&'a mut fullpipe_quic::Connection),
    Stack(&'a mut crate::stack::Connection),
}

/// Returns the client (end 0) or the proxy (end 1) of the tunnel of a flow.
pub(super) fn tunnel_endpoint(flow: u32, end: u32) -> EndpointId {
    EndpointId::new(EndpointKind::Tunnel, 2 * flow + end)
}

impl Endpoints {
    pub(super) fn new(tcp: TcpEndpoints, quic_model: ModelEndpoints) -> Self {
        Endpoints {
            tcp,
            quic_model,
            quic_stack: StackEndpoints::default(),
            tunnels: None,
            real: None,
            kernel: KernelEndpoints::default(),
        }
    }

    /// Returns the binding of an endpoint that has a connection.
    pub(super) fn binding(&self, id: EndpointId) -> Option<&Binding> {
        match id.kind() {
            EndpointKind::Tcp => self.tcp.slots.get(id.index()).map(|endpoint| &endpoint.binding),
            EndpointKind::QuicModel => self.quic_model.slots.get(id.index()).map(|endpoint| &endpoint.binding),
            EndpointKind::QuicStack => self.quic_stack.slots.get(id.index()).map(|endpoint| &endpoint.binding),
            EndpointKind::Kernel | EndpointKind::Tunnel => None,
        }
    }

    /// Returns the conversation and the end of an endpoint that has a connection.
    pub(super) fn place(&self, id: EndpointId) -> Option<ConversationEnd> {
        self.binding(id).map(Binding::place)
    }

    /// Returns the connection of an endpoint; `None` for endpoints in the kernel and for tunnels.
    pub(super) fn connection_mut(&mut self, id: EndpointId) -> Option<ConnectionMut<'_>> {
        let index = id.index();
        Some(match id.kind() {
            EndpointKind::Tcp => ConnectionMut::Tcp(&mut self.tcp.slots.get_mut(index)?.connection),
            EndpointKind::QuicModel => ConnectionMut::Model(&mut self.quic_model.slots.get_mut(index)?.connection),
            EndpointKind::QuicStack => ConnectionMut::Stack(&mut self.quic_stack.slots.get_mut(index)?.connection),
            EndpointKind::Kernel | EndpointKind::Tunnel => return None,
        })
    }

    /// Returns the number of connections that are not closed.
    pub(super) fn live(&self) -> usize {
        self.tcp.slots.len() + self.quic_model.slots.len() + self.quic_stack.slots.len()
    }

    /// Returns the number of retransmission or probe timeouts of a model's connection; `None` for other endpoints.
    pub(super) fn timeouts(&self, id: EndpointId) -> Option<u64> {
        let index = id.index();
        match id.kind() {
            EndpointKind::Tcp => Some(super::tcp::timeouts(&self.tcp.slots.get(index)?.connection.statistics())),
            EndpointKind::QuicModel => Some(self.quic_model.slots.get(index)?.connection.statistics().probe_timeouts),
            EndpointKind::QuicStack | EndpointKind::Kernel | EndpointKind::Tunnel => None,
        }
    }

    /// Returns the state and counters of an endpoint.
    pub(super) fn report_mut(&mut self, id: EndpointId) -> Option<EndpointReport> {
        match id.kind() {
            // Reading the QUIC stack's counters needs mutable access.
            EndpointKind::QuicStack => self.quic_stack.slots.get_mut(id.index()).map(|endpoint| endpoint.report()),
            _ => self.report(id),
        }
    }

    /// Like [`Endpoints::report_mut`], but `None` for endpoints of the QUIC stack.
    pub(super) fn report(&self, id: EndpointId) -> Option<EndpointReport> {
        let index = id.index();
        match id.kind() {
            EndpointKind::Tcp => self.tcp.slots.get(index).map(|endpoint| endpoint.report()),
            EndpointKind::QuicModel => self.quic_model.slots.get(index).map(|endpoint| endpoint.report()),
            EndpointKind::Tunnel => self.tunnels.as_ref()?.report(index / 2, index as usize % 2),
            EndpointKind::QuicStack | EndpointKind::Kernel => None,
        }
    }
}
