//! Congestion control of the real QUIC stack (noq): Fullpipe's controls in place of its own ([`Factory`]), or none
//! ([`Uncontrolled`]), and the round-trip times of connections ([`RoundTrips`]). The crate works in virtual time and in
//! real time, since the stack receives instants as arguments ([`clock`]).

mod adapter;
pub mod clock;
mod factory;
mod named;
mod round_trips;
mod uncontrolled;

pub use adapter::{Adapter, Inspection, LossListener, refusal};
pub use factory::{Factory, Maker, Newest};
pub use named::{INITIAL_WINDOW_PACKETS, name_of, named};
pub use round_trips::RoundTrips;
pub use uncontrolled::Uncontrolled;
