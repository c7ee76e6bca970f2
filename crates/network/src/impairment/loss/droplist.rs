//! Loss of frames by their numbers.

use super::super::FRAME_NUMBER;
use super::super::settings::{
    Frame, FrameModel, FrameOutcome, Impairment, ImpairmentContext, ImpairmentModel, ImpairmentSettings,
};
use super::LossComponent;
use crate::selection::{Frames, PROTOCOL};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_schema::{Field, Kind};
use std::sync::Arc;

pub(super) static DROPLIST: LossComponent = Component {
    declaration: Declaration {
        name: "droplist",
        text: "the frames of these numbers.",
        fields: &[&[
            Field::required("frames", Kind::List(&FRAME_NUMBER), "Numbers, from 1, in any order."),
            Field::default(
                "data_only",
                Kind::Boolean,
                "true",
                "Whether frames without transport payload are not counted and never lost.",
            ),
            PROTOCOL,
        ]],
        ..Declaration::EMPTY
    },
    read: |reader, _| {
        let numbers: Vec<u64> = reader.tree.list("frames").iter().map(|number| number.integer() as u64).collect();
        let (data_only, frames) = (reader.tree.boolean("data_only"), Frames::read(reader.tree));
        Ok((!numbers.is_empty()).then(|| Arc::new(Droplist { data_only, frames, numbers }) as Impairment))
    },
};

/// Loss of frames by their number on the link, from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Droplist {
    /// Whether only frames with transport payload are counted.
    pub data_only: bool,
    /// Which frames are counted at all.
    pub frames: Frames,
    /// Numbers, in any order.
    pub numbers: Vec<u64>,
}

impl ImpairmentSettings for Droplist {
    fn build(&self, _: &ImpairmentContext<'_>) -> ImpairmentModel {
        let mut list = self.clone();
        list.numbers.sort_unstable_by(|a, b| b.cmp(a));
        list.numbers.dedup();
        ImpairmentModel::Transmission(Box::new(Counter { list, counted: 0 }))
    }
}

#[derive(Debug)]
struct Counter {
    /// With the numbers that are still to come, the next one last.
    list: Droplist,
    counted: u64,
}

impl FrameModel for Counter {
    fn process(&mut self, frame: &Frame, outcome: &mut FrameOutcome) {
        let Droplist { data_only, frames, numbers } = &mut self.list;
        if *data_only && !frame.has_payload || !frames.include(frame) {
            return;
        }
        self.counted += 1;
        while numbers.last().is_some_and(|number| *number < self.counted) {
            numbers.pop();
        }
        outcome.lost |= numbers.last() == Some(&self.counted);
    }
}
