//! What applications send, and when
