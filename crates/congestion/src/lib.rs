//! Congestion controls, and the interface to the transports that use them.
//!
//! Each control is implemented once, in bytes, nanoseconds and bits per second, not in packets. The TCP model, the QUIC
//! model and the real QUIC stack all use that implementation. The transport owns the window ([`WindowState`]) and
//! passes it to the control as `&mut`, with one call per acknowledgment batch.
//!
//! * [`control`]: the trait and its data types;
//! * [`controls`]: a file for each control, with its declaration ([`component`]); [`catalogue`]: the controls by name;
//!   [`source`]: creates the controls for a flow's connections;
//! * [`newreno`], [`linux_reno`], [`cubic`], with [`hystart`] for the first slow start; [`vegas`]; [`lp`]; [`ledbat`]; [`copa`];
//!   [`dctcp`]; [`bbr1`] and [`bbr3`]; [`prague`]: the controls;
//! * [`external`]: a control whose window the program sets;
//! * [`law`], the common part of [`bic`], [`highspeed`], [`htcp`], [`hybla`], [`illinois`], [`scalable`], [`veno`],
//!   [`westwood`] and [`yeah`];
//! * [`rate_limited`]: the growth of a window that does not limit sending;
//! * [`driver`], with [`rate`] and [`recovery`]: the code that every transport needs to run its control; [`rtt`] and
//!   [`pacing`]: round-trip time estimation and pacing;
//! * [`keys`]: the scenario keys that the transports share.

mod bbr;
pub mod catalogue;
pub mod component;
pub mod control;
pub mod controls;
pub mod driver;
pub mod external;
pub mod hystart;
pub mod keys;
pub mod law;
pub mod pacing;
pub mod rate;
pub mod rate_limited;
pub mod recovery;
pub mod rtt;
pub mod source;
mod window;

pub use controls::*;

pub use control::{
    Ack, CongestionEvent, ControlRequirements, Controller, DeliveryRate, EcnCodepoint, PacketState, PlainAck,
    RecoveryExit, Timeout, WindowState,
};
pub use driver::{AckReport, DeliveredPackets, Driver};
pub use external::ExternalControl;
