//! Aggregation: frames that arrive in bursts, as over Wi-Fi, cable upstreams, cellular grants, and interrupt
//! coalescing.
//!
//! The link holds frames at its end, and the frames of a burst arrive together, in order. A burst is released
//!
//! * at each multiple of `interval` since the start of the run (netem's `slot` with a constant distance), or
//! * when `frames` frames are held, or when its first frame has been held for `timeout` (`rx-frames` and `rx-usecs` of
//!   `ethtool(8)`).
//!
//! Loss and the other impairments are applied first, so lost frames are not counted.

use super::held::HeldBurst;
use super::settings::{
    ImpairmentComponent, ImpairmentContext, ImpairmentEffects, ImpairmentModel, ImpairmentSettings, ImpairmentStage,
};
use crate::link::DELAY;
use fullpipe_schema::component::InvalidSettings;
use fullpipe_schema::{Field, FieldKind, Table, keys};
use fullpipe_units::{Duration, Instant};
use std::sync::Arc;

pub(super) static AGGREGATION: ImpairmentComponent = ImpairmentComponent {
    field: Field::optional("aggregation", FieldKind::Table(&TABLE), "none", "Frames that arrive in bursts."),
    fill: |_| (),
    read: |reader, value| {
        let tree = value.table();
        let aggregation = match (tree.get("interval"), tree.get("frames")) {
            (Some(interval), None) => Aggregation::Interval(interval.duration()),
            (None, Some(frames)) => {
                Aggregation::Frames { frames: frames.integer() as u64, timeout: tree.duration("timeout") }
            }
            (one, _) => {
                let path = reader.path_of("aggregation");
                let what = if one.is_some() { "both interval and" } else { "neither interval nor" };
                let expected = vec!["exactly one of them".into()];
                reader.check.add_error(tree.place, &path, format!("{path} has {what} frames"), expected);
                return Err(InvalidSettings);
            }
        };
        Ok(vec![Arc::new(aggregation)])
    },
};

static TABLE: Table = Table {
    name: "aggregation",
    text: "Frames that arrive in bursts, as over Wi-Fi, cable upstreams and cellular uplinks. Exactly one of `interval` and \
           `frames` must be given.",
    fields: &[keys! {
        /// Frames are held until the next multiple of this time since the start of the run.
        "interval": FieldKind::INTERVAL, optional "from `frames`";
        /// Frames are held until there are so many.
        "frames" ["frames"]: FieldKind::Integer { min: 1, max: 1_000_000 }, optional "from `interval`";
        /// With `frames`: longest time that a frame is held.
        "timeout": DELAY, default "5ms";
    }],
    ..Table::EMPTY
};

/// Aggregation of frames into bursts, which arrive together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregation {
    /// Frames are held until the next multiple of this time since the start of the run.
    Interval(Duration),
    /// Frames are held until a burst is complete or a timeout expires.
    Frames {
        /// Number of frames in a burst.
        frames: u64,
        /// Maximum time for which a frame is held.
        timeout: Duration,
    },
}

impl ImpairmentSettings for Aggregation {
    fn build(&self, _: &ImpairmentContext<'_>) -> ImpairmentModel {
        match *self {
            Aggregation::Interval(interval) => ImpairmentModel::new(ImpairmentStage::Arrival, move |_, outcome| {
                outcome.arrival = next_multiple(outcome.arrival, interval);
            }),
            Aggregation::Frames { frames, timeout } => ImpairmentModel::Hold(HeldBurst::new(frames, timeout)),
        }
    }

    fn effects(&self) -> ImpairmentEffects {
        let holds = matches!(self, Aggregation::Frames { .. });
        ImpairmentEffects { delays: true, holds, ..ImpairmentEffects::default() }
    }
}

/// Returns the first multiple of `interval` that is not before `at`.
fn next_multiple(at: Instant, interval: Duration) -> Instant {
    match at.as_nanos().checked_next_multiple_of(interval.as_nanos()) {
        Some(next) => Instant::from_nanos(next),
        None => at,
    }
}
