//! The events that a run reports, and the records that are created from them.
//!
//! The network reports events only to an [`Observer`]; flow counters, time series and the auditor are observers. An
//! observer returns no data to the network, so it cannot change a run.

pub mod flow;
pub mod histogram;
pub mod link;
pub mod observer;
pub mod pcapng;
pub mod qlog;

pub use flow::{FlowCounters, FlowMonitor};
pub use histogram::DelayHistogram;
pub use link::{LinkMonitor, LinkSummary, TrafficVolume};
pub use observer::{DropReason, MediumExchange, Observer, PacketView, Protocol, TcpView, Transmission};
