//! Loss of frames by their numbers.

use super::super::FRAME_NUMBER;
use super::super::settings::{Impairment, ImpairmentContext, ImpairmentModel, ImpairmentSettings, Stage};
use super::LossComponent;
use crate::selection::{Frames, PROTOCOL};
use fullpipe_schema::component::choice;
use fullpipe_schema::{Kind, keys};
use std::collections::BTreeSet;
use std::sync::Arc;

pub(super) static DROPLIST: LossComponent = choice(
    "droplist",
    "the frames of these numbers.",
    &[keys! {
        /// Numbers, from 1, in any order.
        "frames": Kind::List(&FRAME_NUMBER), required;
        /// Whether frames without transport payload are not counted and never lost.
        "data_only": Kind::Boolean, default "true";
        PROTOCOL;
    }],
    |reader, _| {
        let numbers: Vec<u64> = reader.tree.list("frames").iter().map(|number| number.integer() as u64).collect();
        let (data_only, frames) = (reader.tree.boolean("data_only"), Frames::read(reader.tree));
        Ok((!numbers.is_empty()).then(|| Arc::new(Droplist { data_only, frames, numbers }) as Impairment))
    },
);

/// Loss of frames by their number on the link, from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Droplist {
    /// Whether only frames with transport payload are counted.
    pub data_only: bool,
    /// Which frames are counted.
    pub frames: Frames,
    /// Numbers, in any order.
    pub numbers: Vec<u64>,
}

impl ImpairmentSettings for Droplist {
    fn build(&self, _: &ImpairmentContext<'_>) -> ImpairmentModel {
        let (data_only, frames) = (self.data_only, self.frames);
        let mut numbers: BTreeSet<u64> = self.numbers.iter().copied().collect();
        let mut counted = 0;
        ImpairmentModel::new(Stage::Transmission, move |frame, outcome| {
            if frames.include(frame) && (frame.has_payload || !data_only) {
                counted += 1;
                outcome.lost |= numbers.remove(&counted);
            }
        })
    }
}
