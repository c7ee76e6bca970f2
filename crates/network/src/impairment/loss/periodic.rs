//! Periodic loss of every `every`-th frame.

use super::super::FRAME_NUMBER;
use super::super::settings::{ImpairmentContext, ImpairmentModel, ImpairmentSettings};
use super::LossComponent;
use crate::loss::LossModel;
use fullpipe_schema::component::choice_component;
use fullpipe_schema::{Field, Tree, Value};
use std::sync::Arc;

pub(super) static PERIODIC: LossComponent = choice_component(
    "periodic",
    "every n-th frame is lost. Frames without transport payload are not counted and never lost.",
    &[&[
        Field::required("every", FRAME_NUMBER, "Distance n between lost frames.").with_unit("frames"),
        Field::optional("offset", FRAME_NUMBER, "as `every`", "Number of the first lost frame, from 1."),
    ]],
    |reader, _| {
        let [every, offset] = ["every", "offset"].map(|key| reader.tree.integer(key) as u64);
        Ok(Some(Arc::new(PeriodicLoss { every, offset })))
    },
);

/// Fills in the default of `offset`.
pub(super) fn fill(loss: &mut Tree) {
    if let Some(every) = loss.get("every").map(|value: &Value| value.data.clone()) {
        loss.fill("offset", every);
    }
}

/// Loss of frame number `offset` and then of every `every`-th frame (the first frame has number 1). Frames without
/// transport payload are neither counted nor lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodicLoss {
    /// Number of frames from one loss to the next; 0 is treated as 1.
    pub every: u64,
    /// Number of the first lost frame; 0 is treated as 1.
    pub offset: u64,
}

impl ImpairmentSettings for PeriodicLoss {
    fn build(&self, _: &ImpairmentContext<'_>) -> ImpairmentModel {
        ImpairmentModel::Loss(LossModel::Periodic { every: self.every.max(1), next: self.offset.max(1) })
    }
}
