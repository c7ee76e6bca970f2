//! Path loss models: their names and keys in scenarios.

use super::{DECIBELS, DISTANCE};
use crate::radio::path_loss::{CitySize, Environment, PathLoss, Street, Wall};
use fullpipe_schema::component::{Catalog, Component, choice_component, choices, variants};
use fullpipe_schema::{Choice, Field, FieldKind, Table, Tree, Variants, keys};

const ENVIRONMENTS: [(Choice, Environment); 3] = [
    (Choice::new("urban", "built up."), Environment::Urban),
    (Choice::new("suburban", "suburban."), Environment::Suburban),
    (Choice::new("open", "open areas."), Environment::Open),
];
const CITIES: [(Choice, CitySize); 2] =
    [(Choice::new("large", "large."), CitySize::Large), (Choice::new("small", "medium or small."), CitySize::Small)];
const WALLS: [(Choice, Option<Wall>); 5] = [
    (Choice::new("none", "both ends are outdoors."), None),
    (Choice::new("wood", "4 dB."), Some(Wall::Wood)),
    (Choice::new("concrete-with-windows", "7 dB."), Some(Wall::ConcreteWithWindows)),
    (Choice::new("concrete", "15 dB."), Some(Wall::Concrete)),
    (Choice::new("stone", "12 dB."), Some(Wall::Stone)),
];

const ENVIRONMENT: Field =
    Field::default("environment", FieldKind::Choice(&choices(&ENVIRONMENTS)), "urban", "Type of the environment.");
const CITY: Field = Field::default("city", FieldKind::Choice(&choices(&CITIES)), "large", "Size of the city.");
const STREET: &[Field] = &[
    Field::default("rooftop", DISTANCE, "20.0", "Height of rooftops.").with_unit("m"),
    Field::default("street_width", DISTANCE, "20.0", "Width of streets.").with_unit("m"),
    Field::default("built_up", DISTANCE, "80.0", "Length of the path that is covered by buildings.").with_unit("m"),
    Field::default("separation", DISTANCE, "50.0", "Distance between neighboring rows of buildings.").with_unit("m"),
    Field::default("orientation", FieldKind::number(0.0, 90.0), "45.0", "Angle between street and path.")
        .with_unit("degrees"),
    CITY,
];

fn street(tree: &Tree) -> Street {
    Street {
        rooftop_m: tree.number("rooftop"),
        width_m: tree.number("street_width"),
        buildings_m: tree.number("built_up"),
        separation_m: tree.number("separation"),
        orientation_degrees: tree.number("orientation"),
        city: tree.choice_value("city", &CITIES),
    }
}

/// The models, in the order of lists and of the reference page.
const LIST: &[&Component<PathLoss, ()>] = &[
    &choice_component(
        "friis",
        "free space, at the carrier's frequency.",
        &[&[Field::default("smallest", DECIBELS, "0.0", "Lower limit of the loss.").with_unit("dB")]],
        |reader, _| Ok(PathLoss::Friis { smallest_db: reader.tree.number("smallest") }),
    ),
    &choice_component(
        "friis-per-block",
        "free space, at the frequency of each resource block, as in ns-3's tests.",
        &[],
        |_, _| Ok(PathLoss::FriisPerBlock),
    ),
    &choice_component(
        "constant",
        "the same loss everywhere.",
        &[&[Field::required("loss", DECIBELS, "The loss.").with_unit("dB")]],
        |reader, _| Ok(PathLoss::Constant { db: reader.tree.number("loss") }),
    ),
    &choice_component(
        "log-distance",
        "`reference_loss` + 10 `exponent` log10(distance / `reference_distance`).",
        &[keys! {
            /// Path loss exponent.
            "exponent": FieldKind::number(0.0, 20.0), default "3.0";
            /// Reference distance; at smaller distances the loss is the reference loss.
            "reference_distance" ["m"]: FieldKind::number(1e-3, 1e6), default "1.0";
            /// Loss at the reference distance: by default that of free space at 5.15 GHz.
            "reference_loss" ["dB"]: DECIBELS, default "46.68";
        }],
        |reader, _| {
            Ok(PathLoss::LogDistance {
                exponent: reader.tree.number("exponent"),
                reference_m: reader.tree.number("reference_distance"),
                reference_db: reader.tree.number("reference_loss"),
            })
        },
    ),
    &choice_component(
        "three-log-distance",
        "log-distance in three pieces: exponent 1.9 from 1 m, 3.8 from 200 m, 3.8 from 500 m; 46.68 dB at 1 m.",
        &[],
        |_, _| Ok(PathLoss::three_log_distance()),
    ),
    &choice_component(
        "two-ray-ground",
        "free space at short distances, beyond them interference with the reflection from flat ground.",
        &[],
        |_, _| Ok(PathLoss::TwoRayGround),
    ),
    &choice_component(
        "okumura-hata",
        "Okumura (1968) and Hata (1980), above 1.5 GHz COST 231. Requires realistic heights: 30 m or more for cells.",
        &[&[ENVIRONMENT, CITY]],
        |reader, _| {
            Ok(PathLoss::OkumuraHata {
                environment: reader.tree.choice_value("environment", &ENVIRONMENTS),
                city: reader.tree.choice_value("city", &CITIES),
            })
        },
    ),
    &choice_component(
        "cost231",
        "COST 231 with fixed heights.",
        &[&[
            Field::default("base_height", DISTANCE, "50.0", "Height of cells.").with_unit("m"),
            Field::default("mobile_height", DISTANCE, "3.0", "Height of UEs.").with_unit("m"),
            Field::default("constant", DECIBELS, "10.0", "Constant term of the loss.").with_unit("dB"),
            Field::default("smallest_distance", DISTANCE, "0.5", "Distance below which the loss is 0 dB.")
                .with_unit("m"),
        ]],
        |reader, _| {
            Ok(PathLoss::Cost231 {
                base_m: reader.tree.number("base_height"),
                mobile_m: reader.tree.number("mobile_height"),
                constant_db: reader.tree.number("constant"),
                smallest_m: reader.tree.number("smallest_distance"),
            })
        },
    ),
    &choice_component("itu-r-1411-los", "ITU-R P.1411, line of sight in a street canyon.", &[], |_, _| {
        Ok(PathLoss::P1411LineOfSight)
    }),
    &choice_component("itu-r-1411-nlos", "ITU-R P.1411, over rooftops.", &[STREET], |reader, _| {
        Ok(PathLoss::P1411OverRooftops(street(reader.tree)))
    }),
    &choice_component("kun-2600", "measurements at 2.6 GHz: 36 + 26 log10(distance).", &[], |_, _| {
        Ok(PathLoss::Kun2600)
    }),
    &choice_component(
        "buildings",
        "ns-3's choice among these for macro cells: beyond 1 km Okumura and Hata, or Kun above 2.3 GHz; nearer \
                       ITU-R P.1411.",
        &[
            keys! {
                ENVIRONMENT;
                /// Distance up to which there is line of sight.
                "line_of_sight" ["m"]: DISTANCE, default "200.0";
                /// Wall of the building in which UEs are.
                "wall": FieldKind::Choice(&choices(&WALLS)), default "none";
                /// Floor on which UEs are; each floor reduces the loss by 2 dB.
                "floor": FieldKind::integer(0, 200), default "0";
            },
            STREET,
        ],
        |reader, _| {
            Ok(PathLoss::Buildings {
                environment: reader.tree.choice_value("environment", &ENVIRONMENTS),
                street: street(reader.tree),
                line_of_sight_m: reader.tree.number("line_of_sight"),
                wall: reader.tree.choice_value("wall", &WALLS),
                floor: reader.tree.integer("floor") as u32,
            })
        },
    ),
];

/// All models.
pub(super) static MODELS: Catalog<PathLoss, ()> = Catalog { key: "model", components: &[LIST] };

/// The table that selects a path loss model.
pub(super) static PATH_LOSS: Table = Table {
    name: "path loss",
    text: "Attenuation of signals between cells and UEs.",
    variants: Some(&Variants {
        key: MODELS.key,
        default: Some("friis"),
        text: "It selects the path loss model.",
        list: &variants::<_, _, { LIST.len() }>(MODELS.components),
        later: &["3gpp-38901"],
    }),
    ..Table::EMPTY
};
