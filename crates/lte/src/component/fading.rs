//! The kinds of fading in scenarios, their keys, and the construction of fading from settings.

use crate::config::CellCarrier;
use crate::radio::RadioError as Refused;
use crate::radio::fading::{DOPPLER_LIMIT_HZ, DelayProfile, Fading, FadingParameters, Generator, Trace, TraceSampling};
use crate::radio::frequency;
use fullpipe_schema::component::{Catalog, Component, InvalidSettings, SettingsReader, choice_component, variants};
use fullpipe_schema::error::describe_io_error;
use fullpipe_schema::{Diagnostics, Field, FieldKind, Table, Variants, keys};
use fullpipe_units::Duration;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The source of the fading gains of one direction.
#[derive(Clone, Debug, PartialEq)]
pub enum FadingSource {
    /// No fading.
    None,
    /// Generated fading.
    Generator {
        /// Delay profile.
        profile: DelayProfile,
        /// Speed of the UE in km/h.
        speed_kmh: f64,
        /// Length in seconds of the fading that is generated once and repeated; `None` if the fading is not repeated.
        repeat_s: Option<u32>,
    },
    /// Fading that is read from a trace file.
    Trace {
        /// Path of the file.
        path: PathBuf,
        /// Content of the file.
        trace: Arc<Trace>,
        /// Which positions of the trace are used.
        places: TraceSampling,
    },
}

impl FadingSource {
    /// Returns the path of the trace file; `None` if the fading is not from a file.
    pub fn file(&self) -> Option<&Path> {
        match self {
            FadingSource::Trace { path, .. } => Some(path),
            FadingSource::None | FadingSource::Generator { .. } => None,
        }
    }

    /// Creates the fading of a carrier.
    pub(super) fn build(
        &self,
        seed: u64,
        CellCarrier { centre_hz, bandwidth }: CellCarrier,
    ) -> Result<Fading, Refused> {
        match self {
            FadingSource::None => Ok(Fading::None),
            FadingSource::Generator { profile, speed_kmh, repeat_s } => {
                let recipe = recipe(*profile, *speed_kmh, centre_hz);
                match repeat_s {
                    None => Fading::generator(recipe, seed, bandwidth),
                    Some(seconds) => {
                        let trace = Generator::new(recipe, seed, bandwidth.resource_blocks())?.to_trace(*seconds);
                        Fading::trace(Arc::new(trace), TraceSampling::Continuous, seed, bandwidth)
                    }
                }
            }
            FadingSource::Trace { trace, places, .. } => Fading::trace(trace.clone(), *places, seed, bandwidth),
        }
    }
}

fn recipe(profile: DelayProfile, speed_kmh: f64, carrier_hz: f64) -> FadingParameters {
    FadingParameters { profile, speed_kmh, carrier_hz, spacing_hz: frequency::RESOURCE_BLOCK_HZ }
}

/// The context for reading fading: its carrier, and the trace of the other direction, which is not read twice.
pub(super) struct FadingContext {
    pub(super) carrier: CellCarrier,
    pub(super) other: Option<FadingSource>,
}

const SPEED: &[Field] = keys! {
    /// Speed that determines the Doppler shift only. Other keys define the movement of UEs.
    "speed" ["km/h"]: FieldKind::number(0.0, 1000.0), default "3.0";
    /// Length of fading that is generated once for all pairs and repeated, in whole seconds. Each pair starts at a
    /// random position. It is as fast as a trace.
    "repeat": FieldKind::duration(Duration::from_secs(1), Duration::from_secs(60)), optional "never";
};

const LIST: &[&Component<FadingSource, FadingContext>] = &[
    &choice_component("none", "no fading.", &[], |_, _| Ok(FadingSource::None)),
    &choice_component("epa", "generated: Extended Pedestrian A (3GPP TS 36.104).", &[SPEED], |reader, band| {
        generated(reader, band, DelayProfile::ExtendedPedestrianA)
    }),
    &choice_component("eva", "generated: Extended Vehicular A.", &[SPEED], |reader, band| {
        generated(reader, band, DelayProfile::ExtendedVehicularA)
    }),
    &choice_component("etu", "generated: Extended Typical Urban.", &[SPEED], |reader, band| {
        generated(reader, band, DelayProfile::ExtendedTypicalUrban)
    }),
    &choice_component(
        "trace",
        "read from a file in the format of ns-3 (`.fad`): a line for each resource block, with a gain in dB for each \
                       millisecond.",
        &[keys! {
            /// Trace file, as a path relative to the scenario's folder.
            "file": FieldKind::Text, required;
            /// Time after which all pairs move to another random position of the trace, in whole milliseconds.
            "window": FieldKind::duration(Duration::from_millis(1), Duration::from_secs(3600)), default "500ms";
            /// Whether each pair continues from its first random position instead.
            "continuous": FieldKind::Boolean, default "false";
        }],
        traced,
    ),
];

/// All kinds of fading.
pub(super) static KINDS: Catalog<FadingSource, FadingContext> = Catalog { key: "kind", components: &[LIST] };

/// The table that selects a kind of fading.
pub(super) static FADING: Table = Table {
    name: "fading",
    text: "Variation of the signal of each resource block with time, independent for each pair of cell and UE.",
    variants: Some(&Variants {
        key: KINDS.key,
        default: Some("none"),
        text: "It selects the source of the gains.",
        list: &variants::<_, _, { LIST.len() }>(KINDS.components),
        later: &["3gpp-38901"],
    }),
    ..Table::EMPTY
};

fn generated(
    reader: &mut SettingsReader<'_, '_>,
    faded: &FadingContext,
    profile: DelayProfile,
) -> Result<FadingSource, InvalidSettings> {
    let speed_kmh = reader.tree.number("speed");
    let repeat = reader.tree.get("repeat").map(|repeat| repeat.duration().as_nanos());
    if repeat.is_some_and(|repeat| !repeat.is_multiple_of(1_000_000_000)) {
        let found = reader.check.sources.excerpt(reader.tree.location_of("repeat"));
        let message = format!("{} = {found} is not a multiple of 1s", reader.path_of("repeat"));
        return Err(reader.add_error("repeat", message, "a whole number of seconds such as \"2s\""));
    }
    let repeat_s = repeat.map(|repeat| (repeat / 1_000_000_000) as u32);
    let CellCarrier { centre_hz, bandwidth } = faded.carrier;
    let parameters = recipe(profile, speed_kmh, centre_hz);
    let doppler_hz = parameters.max_doppler_hz();
    if doppler_hz >= DOPPLER_LIMIT_HZ {
        let message = format!(
            "{} = {speed_kmh} gives a Doppler shift of {doppler_hz:.0} Hz at {:.0} MHz, but fading at intervals of 1 ms \
             requires less than {DOPPLER_LIMIT_HZ} Hz",
            reader.path_of("speed"),
            centre_hz / 1e6
        );
        // The Doppler shift is proportional to the speed.
        let limit_kmh = (speed_kmh * DOPPLER_LIMIT_HZ / doppler_hz).floor();
        return Err(reader.add_error("speed", message, &format!("a speed below {limit_kmh} km/h")));
    }
    match Fading::generator(parameters, 0, bandwidth) {
        Ok(_) => Ok(FadingSource::Generator { profile, speed_kmh, repeat_s }),
        Err(reason) => Err(reader.add_error("speed", reason.to_string(), "a lower speed")),
    }
}

fn traced(reader: &mut SettingsReader<'_, '_>, faded: &FadingContext) -> Result<FadingSource, InvalidSettings> {
    let tree = reader.tree;
    let path = here(reader.check).join(tree.text("file"));
    let window = tree.duration("window").as_nanos();
    let milliseconds = u32::try_from(window / 1_000_000).unwrap_or(u32::MAX);
    let places =
        if tree.boolean("continuous") { TraceSampling::Continuous } else { TraceSampling::Windows { milliseconds } };
    if !window.is_multiple_of(1_000_000) {
        let found = reader.check.sources.excerpt(tree.location_of("window"));
        let message = format!("{} = {found} is not a multiple of 1ms", reader.path_of("window"));
        return Err(reader.add_error("window", message, "a whole number of milliseconds such as \"500ms\""));
    }
    let read = || match &faded.other {
        Some(FadingSource::Trace { path: other, trace, .. }) if *other == path => Ok(trace.clone()),
        _ => {
            let cannot_read =
                |reason: &io::Error| format!("cannot read {}: {}", path.display(), describe_io_error(reason));
            let file = File::open(&path).map_err(|reason| cannot_read(&reason))?;
            Trace::read(BufReader::new(file)).map(Arc::new).map_err(|reason| reason.to_string())
        }
    };
    let trace = read().and_then(|trace| {
        // This checks that the trace is wide and long enough.
        let fits = Fading::trace(trace.clone(), places, 0, faded.carrier.bandwidth);
        fits.map(|_| trace).map_err(|reason| reason.to_string())
    });
    trace.map(|trace| FadingSource::Trace { path, trace, places }).map_err(|reason| {
        let found = reader.check.sources.excerpt(tree.location_of("file"));
        let message = format!("{} = {found}: {reason}", reader.path_of("file"));
        reader.add_error(
            "file",
            message,
            "a file with a line for each resource block and a gain in dB for each millisecond",
        )
    })
}

/// Returns the folder of the scenario file.
pub(super) fn here(check: &Diagnostics<'_>) -> PathBuf {
    Path::new(check.sources.file()).parent().unwrap_or(Path::new("")).to_owned()
}
