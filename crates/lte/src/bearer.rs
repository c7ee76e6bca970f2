//! Bearers.
