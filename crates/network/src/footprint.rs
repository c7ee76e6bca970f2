//! Memory sizes of the parts of a network, for the estimated cost of a scenario.

use crate::link::Link;
use crate::network::Node;
use crate::packet::{InFlightPacket, Packet};
use crate::queue::QueuedPacket;
use crate::routing::Edge;
use fullpipe_units::{Instant, NodeId};

/// Bytes of a node, with the header of its list of edges.
pub const NODE_BYTES: usize = size_of::<Node>() + size_of::<Vec<Edge>>();
/// Bytes of one direction of a link, with its entries in the lists of sources and edges.
pub const LINK_BYTES: usize = size_of::<Link>() + size_of::<NodeId>() + size_of::<Edge>();
/// Bytes of a packet in the arena, with its entry in the list of free slots.
pub const PACKET_BYTES: usize = size_of::<Packet>() + size_of::<u32>();
/// Bytes of a packet in flight on a link.
pub const IN_FLIGHT_PACKET_BYTES: usize = size_of::<(Instant, InFlightPacket)>();
/// Bytes of a packet in the queue of a link: the larger of its entry in a device queue and its entry in a discipline.
pub const QUEUED_PACKET_BYTES: usize = {
    let (start, queued) = (size_of::<(Instant, u32)>(), size_of::<QueuedPacket>());
    if start > queued { start } else { queued }
};
/// Bytes of a router's route to a node.
pub const ROUTE_BYTES: usize = size_of::<u32>();
