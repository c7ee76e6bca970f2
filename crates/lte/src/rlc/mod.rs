//! RLC.
