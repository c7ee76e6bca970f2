//! An independent check of every run from what observers saw.
//!
//! The auditor is told what was promised ([`DeclaredLink`], [`DeclaredFlow`]) and hears the events of a run through
//! [`fullpipe_record::Observer`]. It shares no code with what it audits: its own arithmetic says how long a frame takes,
//! its own counters say what is missing. Two auditors: [`Auditor`] is always on, in benchmarks too, with constant
//! state per link and flow; [`PacketAuditor`] follows every packet (`--audit`) and costs what that costs. Each ends
//! with a [`Verdict`].
//!
//! A pass says that what was reported obeys the rules in [`Rule`]. It does not say that everything was reported: a world
//! that forgets a packet in every one of its events, its counters and its end state is consistent.

mod auditor;
mod balance;
mod course;
mod declared;
mod flow;
mod link;
mod packet;
mod verdict;

pub use auditor::{Auditor, EndState};
pub use declared::{Course, DeclaredFlow, DeclaredLink, Medium, QueuePromise, Variation};
pub use flow::{FlowEnd, Published, PublishedTimes};
pub use link::LinkEnd;
pub use packet::PacketAuditor;
/// Memory of the auditor for each direction of a conversation.
pub const DIRECTION_BYTES: usize = size_of::<flow::FlowState>();
/// Memory of the auditor for each link.
pub const LINK_BYTES: usize = size_of::<link::LinkState>() + size_of::<link::LinkDetails>();

pub use verdict::{Failure, MAX_FAILURES_KEPT, Rule, Subject, Verdict};
