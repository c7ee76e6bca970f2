//! The simulated network as plain values: packets, links, queues, loss, shared Ethernet, media with a hub, routing.
//!
//! [`Network`] owns links, packets and the calendar; the endpoints at hosts implement [`Hosts`]. [`Network::send`] records the send time of
//! a packet and routes it to a link. The link's queue, transmitter and propagation delay determine its arrival. A router
//! forwards it, and its destination host receives it by [`Hosts::receive`]. If every link of a chain is
//! fed by one link only, the whole chain is computed when the packet enters it (see [`chain`]).

pub mod access;
pub mod address;
pub mod arp;
mod bytes;
pub mod chain;
pub mod discipline;
pub mod ethernet;
pub mod fault;
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

pub use address::{Directory, Endpoint, Ends};
pub use arp::ArpSpecification;
pub use discipline::strict_priority::{Classifier, StrictPriority};
pub use discipline::{
    AdaptiveRedSpecification, CoDel, CoDelSpecification, DualPi2, DualPi2Specification, FairQueue,
    FairQueueSpecification, Pie, PieDelay, PieSpecification, Red, RedSpecification, RedUnit, Scheduler, StepMarker,
    StepMarkerSpecification, StepThreshold,
};
pub use ethernet::{EthernetContext, EthernetSpecification, StationCounters};
pub use fault::Fault;
pub use impairment::{
    BernoulliLoss, Blackhole, Corruption, Droplist, Duplication, Errors, GilbertElliott, Impairments, Jitter,
    JitterDistribution, PayloadCorruption, PeriodicLoss, Reordering,
};
pub use link::{LinkCounters, LinkSpecification};
pub use loss::LossModel;
pub use mahimahi::Trace;
pub use medium::{Fate, Fated, Frame, Medium, MediumSpecification, Way};
pub use nat::{NatCounters, NatFilter, NatSpecification, PortAllocation};
pub use network::{Hosts, Network};
pub use notice::{Notice, Reason};
pub use packet::{Content, Handle, Packet, Purpose, Side};
pub use queue::{Fifo, Limit, QueueDiscipline, Queued};
pub use rebinding::{Rebinding, RebindingSide};
pub use routing::Attachment;
pub use schedule::{Schedule, Step};
pub use selection::{Frames, Selection};
pub use special::Course;
pub use tap::{Captured, Direction, Envelope, Tap};
