//! Reordering, which makes frames arrive later than frames that departed after them.

use super::settings::{
    ImpairmentComponent, ImpairmentContext, ImpairmentEffects, ImpairmentModel, ImpairmentSettings, ImpairmentStage,
};
use crate::link::DELAY;
use fullpipe_schema::component::{Catalog, Component, choice_component, variants};
use fullpipe_schema::{Field, FieldKind, Table, Variants, keys};
use fullpipe_units::Duration;
use std::sync::Arc;

pub(super) static REORDERING: ImpairmentComponent = ImpairmentComponent {
    field: Field::optional("reordering", FieldKind::Table(&TABLE), "none", "Frames that arrive out of order."),
    fill: |_| (),
    read: |reader, value| {
        let path = reader.path_of("reordering");
        Ok(vec![Arc::new(KINDS.read(&mut reader.nested(value.table(), &path), &())?)])
    },
};

static TABLE: Table = Table {
    name: "reordering",
    text: "Frames that arrive out of order.",
    variants: Some(&Variants {
        key: KINDS.key,
        default: None,
        text: "It selects which frames are delayed.",
        list: &variants::<_, _, { ALL.len() }>(KINDS.components),
        later: &[],
    }),
    ..Table::EMPTY
};

const ALL: &[&Component<Reordering, ()>] = &[
    &choice_component(
        "late",
        "each frame is delayed with a probability, and others overtake it.",
        &[&[
            Field::required("probability", FieldKind::PROBABILITY, "Probability that a frame is delayed."),
            Field::required("extra", DELAY, "Additional delay."),
        ]],
        |reader, _| {
            Ok(Reordering::Late {
                probability: reader.tree.number("probability"),
                extra: reader.tree.duration("extra"),
            })
        },
    ),
    &choice_component(
        "early",
        "as netem's `reorder`: all frames are delayed, except that after `gap` - 1 delayed frames each further frame is delivered \
         without additional delay with a probability; then the count restarts.",
        &[keys! {
            /// Probability that a frame after `gap` - 1 delayed ones is not delayed.
            "probability": FieldKind::PROBABILITY, required;
            /// Smallest distance between frames that are not delayed.
            "gap" ["frames"]: FieldKind::Integer { min: 1, max: 1_000_000_000 }, default "1";
            /// Additional delay of the other frames.
            "extra": DELAY, required;
        }],
        |reader, _| {
            Ok(Reordering::Early {
                probability: reader.tree.number("probability"),
                gap: reader.tree.integer("gap") as u64,
                extra: reader.tree.duration("extra"),
            })
        },
    ),
];

/// All kinds of reordering.
pub static KINDS: Catalog<Reordering, ()> = Catalog { key: "kind", components: &[ALL] };

/// Reordering of frames by an additional delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reordering {
    /// Each frame arrives `extra` later with this probability, so that others overtake it.
    Late {
        /// Probability that a frame is delayed.
        probability: f64,
        /// Additional delay of the delayed frames.
        extra: Duration,
    },
    /// The behavior of netem's `reorder`. Frames arrive `extra` later. After `gap` - 1 delayed frames, each frame is
    /// delivered without this delay with the given probability, and overtakes others. The count then restarts. (A `gap`
    /// of 0 is treated as 1.)
    Early {
        /// Probability that a frame is not delayed, after `gap` - 1 delayed frames.
        probability: f64,
        /// Minimum distance between frames that are not delayed.
        gap: u64,
        /// Additional delay of the delayed frames.
        extra: Duration,
    },
}

impl ImpairmentSettings for Reordering {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        // Number of delayed frames since the last immediate one.
        let mut held = 0;
        let (reordering, mut stream) = (*self, context.random_stream("reordering"));
        ImpairmentModel::new(ImpairmentStage::Reordering, move |_, outcome| {
            let (is_late, extra) = match reordering {
                Reordering::Late { probability, extra } => (stream.bernoulli(probability), extra),
                Reordering::Early { probability, gap, extra } => {
                    let chosen = stream.bernoulli(probability);
                    let is_late = held + 1 < gap || !chosen;
                    held = if is_late { held + 1 } else { 0 };
                    (is_late, extra)
                }
            };
            if is_late {
                outcome.arrival = outcome.arrival.saturating_add(extra);
            }
        })
    }

    fn effects(&self) -> ImpairmentEffects {
        ImpairmentEffects { delays: true, reorders: true, ..ImpairmentEffects::default() }
    }
}
