//! Independent loss of each frame, with a maximum burst length, for all frames or one protocol.

use super::super::settings::{ImpairmentContext, ImpairmentModel, ImpairmentSettings, Stage};
use super::LossComponent;
use crate::loss::LossModel;
use crate::selection::{Frames, LARGEST_BURST, PROTOCOL, Selection, Selector};
use fullpipe_schema::component::choice;
use fullpipe_schema::{Field, Kind};
use std::sync::Arc;

pub(super) static BERNOULLI: LossComponent = choice(
    "bernoulli",
    "each frame independently, up to a largest burst.",
    &[&[
        Field::required("probability", Kind::PROBABILITY, "Probability that a frame is lost."),
        LARGEST_BURST,
        PROTOCOL,
    ]],
    |reader, _| {
        let frames = Frames::read(reader.tree);
        Ok(Some(Arc::new(BernoulliLoss { selection: Selection::read(reader.tree, frames) })))
    },
);

/// Independent random loss of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BernoulliLoss {
    /// Which frames are lost.
    pub selection: Selection,
}

impl ImpairmentSettings for BernoulliLoss {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        let stream = context.random("loss");
        match self.selection {
            Selection { probability, largest_burst: None, frames: Frames::All } => {
                ImpairmentModel::Loss(LossModel::Bernoulli { probability, stream })
            }
            selection => {
                let mut selector = Selector::new(selection, stream);
                ImpairmentModel::new(Stage::Transmission, move |frame, outcome| {
                    outcome.lost |= selector.chooses(frame, false);
                })
            }
        }
    }
}
