//! Whom an endpoint of a model belongs to: its flow, its application, its host and its peer's.

use fullpipe_units::{FlowId, NodeId};
use fullpipe_wire::IpVersion;

/// A conversation, and which end of it (0: initiator).
pub(crate) type Place = (usize, usize);

/// Whom an endpoint belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    /// Flow of the packets it sends.
    pub(super) flow: FlowId,
    pub(super) application: u32,
    pub(super) node: NodeId,
    pub(super) peer: NodeId,
    pub(super) version: IpVersion,
}

impl Binding {
    /// Its conversation, and which end of it it is.
    #[inline]
    pub(super) fn place(&self) -> Place {
        place_of(self.flow)
    }
}

/// The end of a conversation that sends the packets of a flow.
#[inline]
pub(super) fn place_of(flow: FlowId) -> Place {
    (flow.index() / 2, usize::from(!flow.is_forward()))
}
