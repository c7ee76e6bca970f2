//! Duplication, which makes frames arrive twice.

use super::settings::{
    Impairment, ImpairmentComponent, ImpairmentContext, ImpairmentEffects, ImpairmentModel, ImpairmentSettings,
    ImpairmentStage,
};
use fullpipe_schema::{Field, FieldKind, ValueData};
use std::sync::Arc;

pub(super) static DUPLICATION: ImpairmentComponent = ImpairmentComponent {
    field: Field::default(
        "duplication",
        FieldKind::PROBABILITY,
        "0.0",
        "Probability that a frame arrives twice. Fragments are not duplicated.",
    ),
    fill: |direction| direction.fill("duplication", ValueData::Number(0.0)),
    read: |_, value| {
        let probability = value.number();
        let copies = (probability > 0.0).then(|| Arc::new(Duplication { probability }) as Impairment);
        Ok(copies.into_iter().collect())
    },
};

/// Random duplication of arriving frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duplication {
    /// Probability that a frame arrives twice.
    pub probability: f64,
}

impl ImpairmentSettings for Duplication {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        let (probability, mut stream) = (self.probability, context.random_stream("duplication"));
        ImpairmentModel::new(ImpairmentStage::Transmission, move |_, outcome| {
            outcome.copied |= stream.bernoulli(probability)
        })
    }

    fn effects(&self) -> ImpairmentEffects {
        ImpairmentEffects { duplicates: true, ..ImpairmentEffects::default() }
    }
}
