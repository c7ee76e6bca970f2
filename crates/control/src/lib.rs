//! Congestion control of the real QUIC stack (noq): ours in the place of its own ([`Factory`]), or none ([`Uncontrolled`]), and
//! what connections tell of their round-trip times ([`RoundTrips`]). It is the same on virtual time and on the machine's clock,
//! since the stack takes instants as arguments ([`clock`]).

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
