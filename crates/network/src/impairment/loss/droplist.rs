//! A droplist: loss of the frames with given numbers.

use super::super::FRAME_NUMBER;
use super::super::settings::{Impairment, ImpairmentContext, ImpairmentModel, ImpairmentSettings, ImpairmentStage};
use super::LossComponent;
use crate::selection::{FrameFilter, PROTOCOL};
use fullpipe_schema::component::choice_component;
use fullpipe_schema::{FieldKind, keys};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) static DROPLIST: LossComponent = choice_component(
    "droplist",
    "the frames with the given numbers are lost.",
    &[keys! {
        /// Numbers of the lost frames, from 1, in any order.
        "frames": FieldKind::List(&FRAME_NUMBER), required;
        /// Whether frames without transport payload are not counted and never lost.
        "data_only": FieldKind::Boolean, default "true";
        PROTOCOL;
    }],
    |reader, _| {
        let numbers: Vec<u64> = reader.tree.list("frames").iter().map(|number| number.integer() as u64).collect();
        let (data_only, frames) = (reader.tree.boolean("data_only"), FrameFilter::read(reader.tree));
        Ok((!numbers.is_empty()).then(|| Arc::new(Droplist { data_only, frames, numbers }) as Impairment))
    },
);

/// Loss of the frames with given numbers on the link; the first frame has number 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Droplist {
    /// Whether only frames with transport payload are counted.
    pub data_only: bool,
    /// Which frames are counted.
    pub frames: FrameFilter,
    /// Numbers of the lost frames, in any order.
    pub numbers: Vec<u64>,
}

impl ImpairmentSettings for Droplist {
    fn build(&self, _: &ImpairmentContext<'_>) -> ImpairmentModel {
        let (data_only, frames) = (self.data_only, self.frames);
        let mut numbers: BTreeSet<u64> = self.numbers.iter().copied().collect();
        let mut counted = 0;
        ImpairmentModel::new(ImpairmentStage::Transmission, move |frame, outcome| {
            if frames.include(frame) && (frame.has_payload || !data_only) {
                counted += 1;
                outcome.lost |= numbers.remove(&counted);
            }
        })
    }
}
