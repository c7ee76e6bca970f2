//! The radio.
