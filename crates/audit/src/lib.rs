//! An independent check of every run, based on the events that observers receive.
//!
//! The auditor receives declarations ([`DeclaredLink`], [`DeclaredFlow`]) and the events of a run
//! ([`fullpipe_record::Observer`]). It shares no code with the model that it checks: it computes transmission times and
//! counts packets itself. There are two auditors. [`Auditor`] checks every run, including benchmarks, with constant
//! state per link and flow. [`PacketAuditor`] follows every packet (`--audit`), at a cost several times that of the
//! run. Each auditor returns an [`AuditReport`].
//!
//! A passed audit means that the reported events obey the rules in [`Rule`]. It does not mean that all events were
//! reported: the audit cannot detect a packet that is missing from all events, all counters and the final state.

mod auditor;
mod balance;
mod course;
mod declared;
mod exchange;
mod flow;
mod link;
mod packet;
mod verdict;

pub use auditor::{Auditor, FinalState};
pub use declared::{DeclaredFlow, DeclaredLink, DeclaredQueueLimit, LinkVariation, MediumAccess, RateProfile};
pub use flow::{FinalFlowState, PublishedCounters, PublishedTimes};
pub use link::FinalLinkState;
pub use packet::PacketAuditor;
/// Memory of the auditor per direction of a conversation, in bytes.
pub const DIRECTION_BYTES: usize = size_of::<flow::FlowState>();
/// Memory of the auditor per link, in bytes.
pub const LINK_BYTES: usize = size_of::<link::LinkState>() + size_of::<link::LinkDetails>();

pub use verdict::{AuditReport, Failure, MAX_FAILURES_KEPT, Rule, Subject};
