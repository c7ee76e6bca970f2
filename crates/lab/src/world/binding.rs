//! The flow, application, host and peer of an endpoint.

use fullpipe_units::{FlowId, NodeId};
use fullpipe_wire::IpVersion;

/// The number of a conversation, and one of its ends (0: initiator, 1: acceptor).
pub(crate) type ConversationEnd = (usize, usize);

/// The flow, application, host and peer of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    /// Flow of the packets that the endpoint sends.
    pub(super) flow: FlowId,
    pub(super) application: u32,
    pub(super) node: NodeId,
    pub(super) peer: NodeId,
    pub(super) version: IpVersion,
}

impl Binding {
    /// Returns the endpoint's conversation and its end of that conversation.
    #[inline]
    pub(super) fn place(&self) -> ConversationEnd {
        place_of(self.flow)
    }
}

/// Returns the conversation and the end that sends the packets of a flow.
#[inline]
pub(super) fn place_of(flow: FlowId) -> ConversationEnd {
    (flow.index() / 2, usize::from(!flow.is_forward()))
}
