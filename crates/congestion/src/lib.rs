//! Congestion controls, and what they are told.
//!
//! A control is written once. It knows units (bytes, nanoseconds, bits per second), not packets, and is driven alike by
//! the TCP model, the QUIC model and the real QUIC stack. The transport owns the window ([`Control`]) and hands it to
//! the control by `&mut`: one call per acknowledgement batch.

pub mod control;
pub use control::{
    Ack, Codepoint, Congestion, Control, Controller, DeliveryRate, PacketState, RecoveryExit, Signals, Timeout,
};
