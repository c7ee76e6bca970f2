//! Queue disciplines: what decides which packet leaves a queue next, and which is marked or dropped before it does.
//!
//! Each implements [`crate::QueueDiscipline`] and is built from a plain specification. Sizes are bytes on the wire
//! unless it is said that they are those of the IP layer. What a discipline does periodically it makes up for at the
//! next arrival or departure, with the state that held at the due instants; nothing depends on whether it is looked at.

pub mod codel;
pub mod dual_pi2;
pub mod fair_queue;
pub mod pie;
pub mod red;
pub mod step_marker;
pub mod strict_priority;

pub use codel::CoDelSpecification;
pub use dual_pi2::{DualPi2Specification, Scheduler};
pub use fair_queue::{FairQueue, FairQueueSpecification};
pub use pie::{PieDelay, PieSpecification};
pub use red::{AdaptiveRedSpecification, RedSpecification, RedUnit};
pub use step_marker::{StepMarkerSpecification, StepThreshold};
pub use strict_priority::Classifier;
