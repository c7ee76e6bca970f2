//! Fading: how a scenario names its kinds, their keys, and what it is built from.

use crate::config::Carrier;
use crate::radio::Invalid as Refused;
use crate::radio::fading::{Fading, Generator, Places, Profile, Recipe, Trace};
use crate::radio::frequency;
use fullpipe_schema::component::{Catalogue, Component, Invalid, Reader, choice, variants};
use fullpipe_schema::{Check, Field, Kind, Table, Variants, keys};
use fullpipe_units::Duration;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the gains of one direction come from.
#[derive(Clone, Debug, PartialEq)]
pub enum FadingSource {
    /// No fading.
    None,
    /// Generated.
    Generated {
        /// Delay profile.
        profile: Profile,
        /// Speed, km/h.
        speed_kmh: f64,
        /// Seconds that are generated once and repeated, if they are.
        repeat_s: Option<u32>,
    },
    /// From a file.
    Trace {
        /// Which file.
        path: PathBuf,
        /// What it says.
        trace: Arc<Trace>,
        /// Which places of it are used.
        places: Places,
    },
}

impl FadingSource {
    /// The file that it comes from.
    pub fn file(&self) -> Option<&Path> {
        match self {
            FadingSource::Trace { path, .. } => Some(path),
            FadingSource::None | FadingSource::Generated { .. } => None,
        }
    }

    /// The fading of a carrier.
    pub(super) fn build(&self, seed: u64, Carrier { centre_hz, bandwidth }: Carrier) -> Result<Fading, Refused> {
        match self {
            FadingSource::None => Ok(Fading::None),
            FadingSource::Generated { profile, speed_kmh, repeat_s } => {
                let recipe = recipe(*profile, *speed_kmh, centre_hz);
                match repeat_s {
                    None => Fading::generator(recipe, seed, bandwidth),
                    Some(seconds) => {
                        let trace = Generator::new(recipe, seed, bandwidth.resource_blocks())?.to_trace(*seconds);
                        Fading::trace(Arc::new(trace), Places::Continuous, seed, bandwidth)
                    }
                }
            }
            FadingSource::Trace { trace, places, .. } => Fading::trace(trace.clone(), *places, seed, bandwidth),
        }
    }
}

fn recipe(profile: Profile, speed_kmh: f64, carrier_hz: f64) -> Recipe {
    Recipe { profile, speed_kmh, carrier_hz, spacing_hz: frequency::RESOURCE_BLOCK_HZ }
}

/// What fading is read with: its carrier, and the trace that the other direction has, which need not be read again.
pub(super) struct Faded {
    pub(super) carrier: Carrier,
    pub(super) other: Option<FadingSource>,
}

const SPEED: &[Field] = keys! {
    /// Speed of UEs, for the Doppler shift only: they move by their own keys.
    "speed" ["km/h"]: Kind::number(0.0, 1000.0), default "3.0";
    /// Whole seconds that are generated once, for all pairs, of which each reads from a random place on, again and
    /// again; as from a trace, and as fast.
    "repeat": Kind::duration(Duration::from_secs(1), Duration::from_secs(60)), optional "never";
};

const LIST: &[&Component<FadingSource, Faded>] = &[
    &choice("none", "no fading.", &[], |_, _| Ok(FadingSource::None)),
    &choice("epa", "generated: Extended Pedestrian A (3GPP TS 36.104).", &[SPEED], |reader, band| {
        generated(reader, band, Profile::ExtendedPedestrianA)
    }),
    &choice("eva", "generated: Extended Vehicular A.", &[SPEED], |reader, band| {
        generated(reader, band, Profile::ExtendedVehicularA)
    }),
    &choice("etu", "generated: Extended Typical Urban.", &[SPEED], |reader, band| {
        generated(reader, band, Profile::ExtendedTypicalUrban)
    }),
    &choice(
        "trace",
        "read from a file as ns-3 has them (`.fad`): a line for each resource block, with a gain in dB for each \
                       millisecond.",
        &[keys! {
            /// The file, by its path from this file's folder.
            "file": Kind::Text, required;
            /// Whole milliseconds after which all pairs go on at another random place of the trace.
            "window": Kind::duration(Duration::from_millis(1), Duration::from_secs(3600)), default "500ms";
            /// Whether each pair reads on from its first random place instead.
            "continuous": Kind::Boolean, default "false";
        }],
        traced,
    ),
];

/// Every kind.
pub(super) static KINDS: Catalogue<FadingSource, Faded> = Catalogue { key: "kind", components: &[LIST] };

/// The table that names one.
pub(super) static FADING: Table = Table {
    name: "fading",
    text: "How the signal of each resource block changes with time, for each pair of cell and UE on its own.",
    variants: Some(&Variants {
        key: KINDS.key,
        default: Some("none"),
        text: "It says where gains come from.",
        list: &variants::<_, _, { LIST.len() }>(KINDS.components),
        later: &["3gpp-38901"],
    }),
    ..Table::EMPTY
};

fn generated(reader: &mut Reader<'_, '_>, faded: &Faded, profile: Profile) -> Result<FadingSource, Invalid> {
    let speed_kmh = reader.tree.number("speed");
    let repeat = reader.tree.get("repeat").map(|repeat| repeat.duration().as_nanos());
    if repeat.is_some_and(|repeat| !repeat.is_multiple_of(1_000_000_000)) {
        return Err(reader.error("repeat", "repeat is not a multiple of 1s", "a whole number of seconds"));
    }
    let repeat_s = repeat.map(|repeat| (repeat / 1_000_000_000) as u32);
    let Carrier { centre_hz, bandwidth } = faded.carrier;
    match Fading::generator(recipe(profile, speed_kmh, centre_hz), 0, bandwidth) {
        Ok(_) => Ok(FadingSource::Generated { profile, speed_kmh, repeat_s }),
        Err(reason) => Err(reader.error("speed", reason.to_string(), "a lower speed")),
    }
}

fn traced(reader: &mut Reader<'_, '_>, faded: &Faded) -> Result<FadingSource, Invalid> {
    let tree = reader.tree;
    let path = here(reader.check).join(tree.text("file"));
    let window = tree.duration("window").as_nanos();
    let milliseconds = u32::try_from(window / 1_000_000).unwrap_or(u32::MAX);
    let places = if tree.boolean("continuous") { Places::Continuous } else { Places::Windows { milliseconds } };
    if !window.is_multiple_of(1_000_000) {
        return Err(reader.error("window", "window is not a multiple of 1ms", "a whole number of milliseconds"));
    }
    let read = || match &faded.other {
        Some(FadingSource::Trace { path: other, trace, .. }) if *other == path => Ok(trace.clone()),
        _ => {
            let file = File::open(&path).map_err(|reason| reason.to_string())?;
            Trace::read(BufReader::new(file)).map(Arc::new).map_err(|reason| reason.to_string())
        }
    };
    let trace = read().and_then(|trace| {
        // It finds out whether the trace is wide and long enough.
        let fits = Fading::trace(trace.clone(), places, 0, faded.carrier.bandwidth);
        fits.map(|_| trace).map_err(|reason| reason.to_string())
    });
    trace.map(|trace| FadingSource::Trace { path, trace, places }).map_err(|reason| {
        let message = format!("cannot use the fading trace {}: {reason}", tree.text("file"));
        reader.error(
            "file",
            message,
            "a file with a line for each resource block and a gain in dB for each millisecond",
        )
    })
}

/// The folder of the file that is read.
pub(super) fn here(check: &Check<'_>) -> PathBuf {
    Path::new(check.sources.file()).parent().unwrap_or(Path::new("")).to_owned()
}
