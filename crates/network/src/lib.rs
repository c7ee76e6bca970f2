//! The simulated network: packets, links, queues, loss, shared Ethernet, media with a hub, and routing.
//!
//! [`Network`] owns the links, the packets and the event calendar. The endpoints at hosts implement [`HostEndpoints`].
//! [`Network::send`] records the send time of a packet and routes it to a link. The link's queue, transmitter and
//! propagation delay determine its arrival. Routers forward the packet, and its destination host receives it through
//! [`HostEndpoints::receive`]. If only one link feeds each link of a chain, the whole chain is computed when the packet
//! enters the chain (see [`chain`]).

pub mod access;
pub mod address;
mod adjustable;
mod adjusting;
pub mod arp;
mod bytes;
pub mod chain;
pub mod discipline;
pub mod ethernet;
pub mod fault;
pub mod filter;
pub mod footprint;
pub mod fragment;
pub mod impairment;
pub mod link;
pub mod loss;
pub mod mahimahi;
pub mod medium;
pub mod metrics;
pub mod nat;
pub mod network;
pub mod notice;
pub mod packet;
pub mod processing;
pub mod queue;
pub mod rebinding;
pub mod routing;
pub mod schedule;
pub mod selection;
pub mod special;
pub mod tap;

pub use address::{ConversationTable, Endpoint, EndpointPair};
pub use arp::ArpSpecification;
pub use discipline::strict_priority::{Classifier, StrictPriority};
pub use discipline::{
    AdaptiveRedSpecification, CoDel, CoDelSpecification, DualPi2, DualPi2Scheduler, DualPi2Specification, FqCoDel,
    FqCoDelSpecification, Pie, PieDelayEstimator, PieSpecification, Red, RedSpecification, RedUnit, StepMarker,
    StepMarkerSpecification, StepThreshold,
};
pub use ethernet::{EthernetContext, EthernetSpecification, StationCounters};
pub use fault::Fault;
pub use impairment::{
    Aggregation, BernoulliLoss, Blackhole, Corruption, Droplist, Duplication, ErrorRate, GilbertElliott, Impairments,
    Jitter, JitterDistribution, PayloadCorruption, PeriodicLoss, Policer, Reordering,
};
pub use link::{LinkCounters, LinkSpecification};
pub use loss::LossModel;
pub use mahimahi::DeliveryTrace;
pub use medium::{CompletedFrame, Exchange, Medium, MediumDirection, MediumFrame, MediumOutcome, MediumSpecification};
pub use nat::{NatCounters, NatFilter, NatSpecification, PortAllocation};
pub use network::{HostEndpoints, Network};
pub use notice::{NotificationReason, SourceNotification};
pub use packet::{Packet, PacketContent, PacketDisposition, PacketHandle, SideDataHandle};
pub use queue::{Fifo, Limit, QueueDiscipline, QueuedPacket};
pub use rebinding::{Rebinding, RebindingDirection};
pub use routing::NextHop;
pub use schedule::{LinkSchedule, ScheduleStep};
pub use selection::{FrameFilter, FrameSelection};
pub use special::LinkProfile;
pub use tap::{CaptureDirection, CapturedPacket, HeaderFields, Tap};
