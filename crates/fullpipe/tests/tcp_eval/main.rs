//! The study `tcp-eval`: its loads are what `find-target` finds, and what the paper of its ns-3 implementation lists as open
//! (WNS3 2017, section 6) is closed.

mod issues;
mod targets;
mod traces;
