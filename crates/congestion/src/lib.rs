//! Congestion controls, and what they are told.
//!
//! A control is written once. It knows units (bytes, nanoseconds, bits per second), not packets, and is driven alike by
//! the TCP model, the QUIC model and the real QUIC stack. The transport owns the window ([`Control`]) and hands it to
//! the control by `&mut`: one call per acknowledgement batch.
//!
//! * [`control`]: the trait, and what passes through it;
//! * [`controls`]: a file for each control, with its declaration ([`component`]); [`catalogue`]: the controls by name;
//!   [`source`]: where a flow's connections get theirs from;
//! * [`newreno`], [`linux_reno`], [`cubic`], with [`hystart`] for the first slow start; [`vegas`]; [`dctcp`]; [`bbr1`]
//!   and [`bbr3`]: the controls;
//! * [`law`], the frame of [`bic`], [`highspeed`], [`htcp`], [`hybla`], [`illinois`], [`scalable`], [`veno`],
//!   [`westwood`] and [`yeah`];
//! * [`driver`]: what every transport does for its control, with [`rate`] and [`recovery`]; [`rtt`], [`pacing`]: what a
//!   transport adds.

mod bbr;
pub mod catalogue;
pub mod component;
pub mod control;
pub mod controls;
pub mod driver;
pub mod hystart;
pub mod law;
pub mod pacing;
pub mod rate;
pub mod recovery;
pub mod rtt;
pub mod source;
mod window;

pub use controls::*;

pub use control::{
    Ack, Codepoint, Congestion, Control, Controller, DeliveryRate, PacketState, PlainAck, RecoveryExit, Signals,
    Timeout,
};
pub use driver::{AckReport, Delivered, Driver};
