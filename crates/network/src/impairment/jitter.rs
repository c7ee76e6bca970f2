//! Jitter: a random time that is added to a link's delay.

use super::settings::{
    ImpairmentComponent, ImpairmentContext, ImpairmentEffects, ImpairmentModel, ImpairmentSettings, ImpairmentStage,
};
use crate::link::DELAY;
use fullpipe_schema::component::{Catalog, Component, choice_component, variants};
use fullpipe_schema::{Field, FieldKind, Table, Variants};
use fullpipe_units::{Duration, RandomStream, math};
use std::sync::Arc;

pub(super) static JITTER: ImpairmentComponent = ImpairmentComponent {
    field: Field::optional(
        "jitter",
        FieldKind::Table(&TABLE),
        "none",
        "A random time that is added to the delay of each frame.",
    ),
    fill: |_| (),
    read: |reader, value| {
        let path = reader.path_of("jitter");
        let distribution = DISTRIBUTIONS.read(&mut reader.nested(value.table(), &path), &())?;
        Ok(vec![Arc::new(Jitter { distribution, in_order: value.table().boolean("in_order") })])
    },
};

static TABLE: Table = Table {
    name: "jitter",
    text: "A random time that is added to the link's delay, drawn for each frame; never negative.",
    variants: Some(&Variants {
        key: DISTRIBUTIONS.key,
        default: None,
        text: "It selects the distribution.",
        list: &variants::<_, _, { ALL.len() }>(DISTRIBUTIONS.components),
        later: &[],
    }),
    ..Table::EMPTY
};

const ALL: &[&Component<JitterDistribution, ()>] = &[
    &choice_component(
        "uniform",
        "uniform from 0 to `max`.",
        &[&[Field::required("max", DELAY, "Upper bound, exclusive."), IN_ORDER]],
        |reader, _| Ok(JitterDistribution::Uniform { max: reader.tree.duration("max") }),
    ),
    &choice_component(
        "normal",
        "normal; negative samples are set to 0.",
        &[&[MEAN, Field::required("deviation", DELAY, "Standard deviation."), IN_ORDER]],
        |reader, _| {
            let [mean, deviation] = ["mean", "deviation"].map(|key| reader.tree.duration(key));
            Ok(JitterDistribution::Normal { mean, deviation })
        },
    ),
    &choice_component("exponential", "exponential.", &[&[MEAN, IN_ORDER]], |reader, _| {
        Ok(JitterDistribution::Exponential { mean: reader.tree.duration("mean") })
    }),
];

/// All distributions of jitter.
pub static DISTRIBUTIONS: Catalog<JitterDistribution, ()> = Catalog { key: "kind", components: &[ALL] };

const IN_ORDER: Field = Field::default(
    "in_order",
    FieldKind::Boolean,
    "true",
    "Whether frames arrive in order; otherwise frames with less jitter overtake others.",
);

const MEAN: Field = Field::required("mean", DELAY, "Mean.");

/// A random time that is added to the link's delay, drawn for each frame; never negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// The distribution.
    pub distribution: JitterDistribution,
    /// Whether frames keep their order; otherwise frames with less jitter may overtake others.
    pub in_order: bool,
}

/// Distribution of a [`Jitter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Uniform distribution in [0, max).
    Uniform {
        /// The maximum, exclusive.
        max: Duration,
    },
    /// Normal distribution (Box and Muller 1958); negative values become 0.
    Normal {
        /// Mean of the distribution.
        mean: Duration,
        /// Standard deviation of the distribution.
        deviation: Duration,
    },
    /// Exponential distribution.
    Exponential {
        /// Mean of the distribution.
        mean: Duration,
    },
}

impl JitterDistribution {
    fn draw(self, stream: &mut RandomStream) -> Duration {
        match self {
            JitterDistribution::Uniform { max } => stream.uniform_duration(max),
            JitterDistribution::Exponential { mean } => Duration::from_secs_f64(stream.exponential(mean.as_secs_f64())),
            JitterDistribution::Normal { mean, deviation } => {
                // The Box-Muller transform yields two normal numbers; using only one avoids storing the other.
                let radius = (-2.0 * math::ln(1.0 - stream.uniform())).sqrt();
                let angle = std::f64::consts::TAU * stream.uniform();
                Duration::from_secs_f64(mean.as_secs_f64() + deviation.as_secs_f64() * radius * math::cos(angle))
            }
        }
    }
}

impl ImpairmentSettings for Jitter {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        let (Jitter { distribution, in_order }, mut stream) = (*self, context.random_stream("jitter"));
        ImpairmentModel::new(ImpairmentStage::Transmission, move |_, outcome| {
            outcome.arrival = outcome.arrival.saturating_add(distribution.draw(&mut stream));
            outcome.overtakes |= !in_order;
        })
    }

    fn effects(&self) -> ImpairmentEffects {
        ImpairmentEffects { delays: true, reorders: !self.in_order, ..ImpairmentEffects::default() }
    }
}
