//! The flows of the scenario and the conversations that they open.
//!
//! A conversation is a five-tuple: one connection, or all datagrams of a UDP flow.

use super::quic_model::ModelFactory;
use super::quic_stack::StackFactory;
use super::tcp::TcpFactory;
use super::tunnel::TunnelFactory;
use crate::plugins::{ControlFactory, SchedulerFactory};
use fullpipe_scenario::Scenario;
use fullpipe_scenario::description::{self, QuicStack};
use fullpipe_transport::endpoint::EndpointId;
use fullpipe_units::NodeId;
use fullpipe_wire::IpVersion;
use std::num::NonZeroU32;
use std::sync::Arc;

/// Creates the endpoints of a flow.
#[derive(Debug)]
pub(crate) enum EndpointFactory {
    /// The flow needs no endpoints, because its applications send datagrams over UDP.
    None,
    Tcp(TcpFactory),
    QuicModel(Box<ModelFactory>),
    QuicStack(Box<StackFactory>),
    Tunnel(Box<TunnelFactory>),
}

impl EndpointFactory {
    /// Returns the factory of a QUIC flow, or the reason why the flow cannot have connections. The congestion control
    /// and the scheduler are plug-ins; only the QUIC model can have a plugged-in scheduler. `last` is the factory of
    /// the previous flow, whose settings can be shared.
    pub(crate) fn quic(
        described: &Arc<description::Quic>,
        control: Option<ControlFactory>,
        scheduler: Option<SchedulerFactory>,
        last: &mut Option<(Arc<description::Quic>, ModelFactory)>,
    ) -> Result<Self, String> {
        Ok(match described.stack {
            QuicStack::Model => {
                let maker = match last {
                    Some((same, maker)) if Arc::ptr_eq(same, described) => maker.clone(),
                    _ => ModelFactory::new(described)?,
                };
                *last = Some((described.clone(), maker.clone()));
                let maker = maker.with_scheduler(scheduler);
                EndpointFactory::QuicModel(Box::new(match control {
                    Some(control) => maker.with_control(control)?,
                    None => maker,
                }))
            }
            QuicStack::Noq => {
                let maker = StackFactory::new(described)?;
                EndpointFactory::QuicStack(Box::new(match control {
                    Some(control) => maker.with_control(control)?,
                    None => maker,
                }))
            }
        })
    }

    /// Returns the name of the congestion control algorithm.
    pub(super) fn control(&self) -> Option<&str> {
        match self {
            EndpointFactory::None => None,
            EndpointFactory::Tcp(maker) => Some(maker.control.name()),
            EndpointFactory::QuicModel(maker) => Some(maker.control.name()),
            EndpointFactory::QuicStack(maker) => Some(maker.control.name()),
            EndpointFactory::Tunnel(maker) => Some(maker.control_name()),
        }
    }
}

/// A flow of the scenario.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) version: IpVersion,
    pub(crate) endpoints: EndpointFactory,
    /// Number of the tunnel's flow, if a tunnel carries the flow.
    pub(crate) via: Option<u32>,
}

/// The flow number of conversations between real hosts that no flow of the scenario declares.
pub(super) const UNDESCRIBED: u32 = u32::MAX;

/// A conversation.
#[derive(Debug)]
pub(super) struct Conversation {
    /// Index of the scenario's flow.
    pub(super) flow: u32,
    /// Number within the flow, from 0, in the order in which the conversations were opened.
    pub(super) number: u32,
    /// Endpoints of initiator and acceptor, while their connections are not closed.
    pub(super) endpoints: [Option<EndpointId>; 2],
    /// The number of retransmitted segments of closed TCP connections plus one. This state is small, because a run can
    /// have hundreds of thousands of connections.
    pub(super) retransmitted: [Option<NonZeroU32>; 2],
    /// Retransmission timeouts of closed TCP connections, or probe timeouts of closed connections of the QUIC model.
    pub(super) timeouts: [u32; 2],
}

impl Conversation {
    pub(super) fn new(flow: u32, number: u32) -> Self {
        Conversation { flow, number, endpoints: [None; 2], retransmitted: [None; 2], timeouts: [0; 2] }
    }
}

/// Returns the nodes between which the network carries a flow's packets. For a flow through a tunnel, the first node is
/// the proxy.
pub(crate) fn ends(scenario: &Scenario, flow: usize) -> (NodeId, NodeId) {
    let described = &scenario.flows[flow];
    (described.via.map_or(described.from, |tunnel| scenario.flows[tunnel].to), described.to)
}
