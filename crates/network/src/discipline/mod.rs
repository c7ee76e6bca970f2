//! Queue disciplines: what decides which packet leaves a queue next, and which is marked or dropped before it does.
//!
//! Each implements [`crate::QueueDiscipline`] and is built from a plain specification. Sizes are bytes on the wire
//! unless it is said that they are those of the IP layer. What a discipline does periodically it makes up for at the
//! next arrival or departure, with the state that held at the due instants; nothing depends on whether it is looked at.
//!
//! | discipline | decides | by | source |
//! |---|---|---|---|
//! | [`Red`] | at arrival | the average queue | Floyd and Jacobson 1993; Floyd, Gummadi and Shenker 2001 |
//! | [`CoDel`] | at departure | how long packets waited | RFC 8289 |
//! | [`FairQueue`] | at departure, for each flow | how long its packets waited | RFC 8290 |
//! | [`Pie`] | at arrival | the estimated wait | RFC 8033 |
//! | [`DualPi2`] | at departure, in two queues | how long their heads waited | RFC 9332 |
//! | [`StepMarker`] | at arrival or departure | the queue of the moment | Alizadeh et al. 2010 |
//! | [`StrictPriority`] | by class, at departure | its bands' disciplines | |

pub mod codel;
pub mod dual_pi2;
pub mod fair_queue;
mod periodic;
pub mod pie;
pub mod red;
pub mod step_marker;
pub mod strict_priority;

pub use codel::{CoDel, CoDelSpecification};
pub use dual_pi2::{DualPi2, DualPi2Specification, Scheduler};
pub use fair_queue::{FairQueue, FairQueueSpecification};
pub use pie::{Pie, PieDelay, PieSpecification};
pub use red::{AdaptiveRedSpecification, Red, RedSpecification, RedUnit};
pub use step_marker::{StepMarker, StepMarkerSpecification, StepThreshold};
pub use strict_priority::{Classifier, StrictPriority};
