//! What is observed of a run, and how it is kept.
//!
//! [`Observer`] is the one window into a running world: the network reports to it, flow counters, series and the
//! auditor listen. An observer is told; it cannot answer, so it cannot change a run.

pub mod flow;
pub mod histogram;
pub mod link;
pub mod observer;
pub mod pcapng;
pub mod qlog;

pub use flow::{FlowCounters, FlowMonitor};
pub use histogram::DelayHistogram;
pub use link::{Amount, LinkMonitor, LinkSummary};
pub use observer::{DropReason, Observer, PacketView, Protocol, TcpView, Transmission};
