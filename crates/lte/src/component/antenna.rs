//! Antennas of cells: their names and keys in scenarios.

use super::DECIBELS;
use crate::radio::antenna::Antenna;
use fullpipe_schema::component::{Catalog, Component, choice_component, variants};
use fullpipe_schema::{Field, FieldKind, Table, Variants, keys};

const SECTOR: &[Field] = keys! {
    /// Direction of the axis, counterclockwise from east.
    "orientation" ["degrees"]: FieldKind::number(-360.0, 360.0), default "0.0";
    /// Angle over which the gain is within 3 dB of its maximum.
    "beam_width" ["degrees"]: FieldKind::number(1.0, 359.0), default "65.0";
    /// Gain on the axis.
    "gain" ["dB"]: DECIBELS, default "0.0";
};

const LIST: &[&Component<Antenna, ()>] = &[
    &choice_component("isotropic", "equal gain in all directions.", &[], |_, _| Ok(Antenna::Isotropic)),
    &choice_component("cosine", "a sector.", &[SECTOR], |reader, _| {
        Ok(Antenna::Cosine {
            orientation_degrees: reader.tree.number("orientation"),
            beam_width_degrees: reader.tree.number("beam_width"),
            largest_gain_db: reader.tree.number("gain"),
        })
    }),
];

/// All antennas.
pub(super) static ANTENNAS: Catalog<Antenna, ()> = Catalog { key: "kind", components: &[LIST] };

/// The table that selects an antenna.
pub(super) static ANTENNA: Table = Table {
    name: "antenna",
    text: "A cell's antenna.",
    variants: Some(&Variants {
        key: ANTENNAS.key,
        default: Some("isotropic"),
        text: "It selects the antenna pattern.",
        list: &variants::<_, _, { LIST.len() }>(ANTENNAS.components),
        later: &["parabolic"],
    }),
    ..Table::EMPTY
};
