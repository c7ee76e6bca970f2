//! Congestion control for the real QUIC stack (noq): Fullpipe's controls in place of the stack's own
//! ([`AdapterFactory`]), or none ([`NoCongestionControl`]), and the round-trip times of connections
//! ([`RttStatistics`]). The crate works in virtual time and in real time, since the stack receives instants as
//! arguments ([`clock`]).

mod adapter;
pub mod clock;
mod factory;
mod named;
mod round_trips;
mod uncontrolled;

pub use adapter::{Adapter, ControlState, LossListener, unsupported_reason};
pub use factory::{AdapterFactory, ControlFactory, LatestControl};
pub use named::{INITIAL_WINDOW_PACKETS, control_factory, control_name};
pub use round_trips::RttStatistics;
pub use uncontrolled::NoCongestionControl;
