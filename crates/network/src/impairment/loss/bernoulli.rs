//! Independent loss of each frame, with a maximum burst length, for all frames or one protocol.

use super::super::settings::{ImpairmentContext, ImpairmentModel, ImpairmentSettings, ImpairmentStage};
use super::LossComponent;
use crate::loss::LossModel;
use crate::selection::{FrameFilter, FrameSelection, FrameSelector, LARGEST_BURST, PROTOCOL};
use fullpipe_schema::component::choice_component;
use fullpipe_schema::{Field, FieldKind};
use std::sync::Arc;

pub(super) static BERNOULLI: LossComponent = choice_component(
    "bernoulli",
    "each frame is lost independently, with an optional limit on bursts.",
    &[&[
        Field::required("probability", FieldKind::PROBABILITY, "Probability that a frame is lost."),
        LARGEST_BURST,
        PROTOCOL,
    ]],
    |reader, _| {
        let frames = FrameFilter::read(reader.tree);
        Ok(Some(Arc::new(BernoulliLoss { selection: FrameSelection::read(reader.tree, frames) })))
    },
);

/// Independent random loss of frames.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BernoulliLoss {
    /// Which frames are lost.
    pub selection: FrameSelection,
}

impl ImpairmentSettings for BernoulliLoss {
    fn build(&self, context: &ImpairmentContext<'_>) -> ImpairmentModel {
        let stream = context.random_stream("loss");
        match self.selection {
            FrameSelection { probability, largest_burst: None, frames: FrameFilter::All } => {
                ImpairmentModel::Loss(LossModel::Bernoulli { probability, stream })
            }
            selection => {
                let mut selector = FrameSelector::new(selection, stream);
                ImpairmentModel::new(ImpairmentStage::Transmission, move |frame, outcome| {
                    outcome.lost |= selector.chooses(frame, false);
                })
            }
        }
    }
}
