//! The table `discipline` of a link or station, which selects one of all queue disciplines.

use super::settings::{Discipline, DisciplineComponent, LinkParameters};
use super::strict_priority::PRIORITY;
use super::{IN_BANDS, LATER};
use fullpipe_schema::component::{Catalog, variants};
use fullpipe_schema::{Table, Variants};

const PRIORITIES: &[&DisciplineComponent] = &[&PRIORITY];

/// All queue disciplines.
pub static DISCIPLINES: Catalog<Option<Discipline>, LinkParameters> =
    Catalog { key: "kind", components: &[IN_BANDS, PRIORITIES] };

/// The table that selects a discipline.
pub static DISCIPLINE: Table = Table {
    name: "discipline",
    text: "A queue discipline above a device's drop-tail queue: while that queue is full, packets wait here.",
    variants: Some(&Variants {
        key: DISCIPLINES.key,
        default: Some("none"),
        text: "It selects the discipline.",
        list: &variants::<_, _, { IN_BANDS.len() + PRIORITIES.len() }>(DISCIPLINES.components),
        later: LATER,
    }),
    ..Table::EMPTY
};
