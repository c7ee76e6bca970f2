//! Weighted fair queueing: while streams have data to send, they send bytes in proportion to their weights, with a
//! deviation of at most one frame each.
//!
//! **Model.** Start-time fair queueing (Goyal, Vin, Cheng, SIGCOMM 1996). Each stream has a tag, which grows by the
//! bytes sent divided by the weight. The stream with the smallest tag sends next. The virtual time is the tag of the
//! stream that sent last. A stream that had no data to send resumes at the virtual time, so that it cannot accumulate
//! credit.

use super::{Candidate, Scheduler, SchedulerComponent, StreamScheduler};
use fullpipe_schema::component::{Component, Declaration};
use fullpipe_transport::Priority;
use std::collections::BTreeMap;

pub(super) static WEIGHTED: SchedulerComponent = Component {
    declaration: Declaration {
        name: "weighted",
        source: "Start-time fair queueing (SIGCOMM 1996)",
        text: "bytes in proportion to the weights of streams.",
        ..Declaration::EMPTY
    },
    read: |_, ()| Ok(StreamScheduler::new(WeightedFair::default())),
};

/// The fixed-point precision of tags: the unit is 2^-16 byte divided by the weight.
const SCALE: u32 = 16;

/// A weighted fair queueing scheduler, with the tags of the streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WeightedFair {
    tags: BTreeMap<u64, u128>,
    virtual_time: u128,
}

impl WeightedFair {
    fn tag(&self, stream: u64) -> u128 {
        self.tags.get(&stream).copied().unwrap_or(0).max(self.virtual_time)
    }
}

impl Scheduler for WeightedFair {
    fn name(&self) -> &'static str {
        WEIGHTED.declaration.name
    }

    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        super::first_by(candidates, |candidate| self.tag(candidate.stream))
    }

    fn on_sent(&mut self, stream: u64, priority: &Priority, bytes: u64) {
        let start = self.tag(stream);
        self.virtual_time = start;
        let cost = (u128::from(bytes) << SCALE) / u128::from(priority.weight.max(1));
        self.tags.insert(stream, start + cost);
    }

    fn on_closed(&mut self, stream: u64) {
        self.tags.remove(&stream);
    }
}
