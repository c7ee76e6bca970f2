//! Queue disciplines, which select the packet that departs next and the packets that are marked or dropped.
//!
//! Each discipline implements [`crate::QueueDiscipline`] and is built from a plain specification, which implements
//! [`DisciplineSettings`](settings::DisciplineSettings). Its file declares its keys. To add a discipline, add a file
//! and two lines here. Sizes are in bytes on the wire unless the documentation states that they apply to the IP layer.
//! Periodic updates are executed at the next arrival or departure, with the state at the instants when they were due.
//! Results do not depend on when a discipline is inspected.
//! | discipline | decides | by | source |
//! |---|---|---|---|
//! | [`Red`] | at arrival | the average queue | Floyd and Jacobson 1993; Floyd, Gummadi and Shenker 2001 |
//! | [`CoDel`] | at departure | sojourn time | RFC 8289 |
//! | [`FqCoDel`] | at departure, per flow | sojourn time | RFC 8290 |
//! | [`Pie`] | at arrival | estimated delay | RFC 8033 |
//! | [`DualPi2`] | at departure, in two queues | sojourn time of the head | RFC 9332 |
//! | [`StepMarker`] | at arrival or departure | current queue | Alizadeh et al. 2010 |
//! | [`StrictPriority`](strict_priority::StrictPriority) | at departure, per band | disciplines of the bands | |

pub mod codel;
pub mod dual_pi2;
pub mod fair_queue;
pub mod fifo;
mod periodic;
pub mod pie;
pub mod red;
pub mod settings;
pub mod step_marker;
pub mod strict_priority;
pub mod table;

pub use codel::{CoDel, CoDelSpecification};
pub use dual_pi2::{DualPi2, DualPi2Scheduler, DualPi2Specification};
pub use fair_queue::{FqCoDel, FqCoDelSpecification};
pub use pie::{Pie, PieDelayEstimator, PieSpecification};
pub use red::{AdaptiveRedSpecification, Red, RedSpecification, RedUnit};
pub use step_marker::{StepMarker, StepMarkerSpecification, StepThreshold};

use fullpipe_schema::component::{Catalog, variants};
use fullpipe_schema::{Table, Variants};
use settings::{Discipline, DisciplineComponent, LinkParameters};

/// All disciplines except strict priority, which contains the others, in the order of the reference page and of the
/// program's lists.
const IN_BANDS: &[&DisciplineComponent] = &[
    &fifo::NONE,
    &fifo::FIFO,
    &red::RED,
    &red::ARED,
    &codel::CODEL,
    &fair_queue::FQ_CODEL,
    &pie::PIE,
    &dual_pi2::DUALPI2,
    &step_marker::STEP,
];

/// Names reserved for later versions.
const LATER: &[&str] = &["rem", "choke", "sfq", "fq", "drr", "cake"];

/// The disciplines that a band of strict priority can have.
static BANDS: Catalog<Option<Discipline>, LinkParameters> = Catalog { key: "kind", components: &[IN_BANDS] };

/// The table of one band.
static BAND: Table = Table {
    name: "band",
    text: "The discipline of one band of strict priority.",
    variants: Some(&Variants {
        key: BANDS.key,
        default: None,
        text: "It selects the discipline.",
        list: &variants::<_, _, { IN_BANDS.len() }>(BANDS.components),
        later: &["priority"],
    }),
    ..Table::EMPTY
};
