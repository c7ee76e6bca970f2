//! Sizes of endpoints, flows and conversations in memory, for the estimated cost of a scenario.

use super::flow::{Conversation, Flow};
use super::quic_model::{ModelEndpoint, ModelFactory};
use super::quic_stack::StackEndpoint;
use super::state::ApplicationTimer;
use super::tcp::TcpEndpoint;
use fullpipe_workload::Application;

/// A flow of the world without its endpoints: its entries in the tables of flows, and two applications with their
/// timers.
pub(crate) const FLOW_BYTES: usize =
    size_of::<Flow>() + size_of::<u32>() + 2 * (size_of::<Box<dyn Application>>() + size_of::<ApplicationTimer>());
/// Bytes of a conversation of a flow.
pub(crate) const CONVERSATION_BYTES: usize = size_of::<Conversation>();
/// Bytes of a TCP endpoint.
pub(crate) const TCP_BYTES: usize = size_of::<Option<TcpEndpoint>>();
/// Bytes of an endpoint of the QUIC model.
pub(crate) const QUIC_MODEL_BYTES: usize = size_of::<Option<Box<ModelEndpoint>>>() + size_of::<ModelEndpoint>();
/// Bytes of the additional state of a flow of the QUIC model.
pub(crate) const QUIC_MAKER_BYTES: usize = size_of::<ModelFactory>();
/// Bytes of an endpoint of the real QUIC stack, without the state in the stack itself.
pub(crate) const QUIC_STACK_BYTES: usize = size_of::<Option<Box<StackEndpoint>>>() + size_of::<StackEndpoint>();

// A run can have 200 000 endpoints of TCP, and 20 000 of the QUIC model. State that only some of them need is boxed.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(TCP_BYTES <= 728, "100 000 idle TCP connections take less than 2.5 kB each, both ends together");
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Option<ModelEndpoint>>() <= 1584, "what few QUIC connections need is in a box");
