//! A page in progress: which objects may be requested, and which have arrived.

use super::page::{Object, Page};
use fullpipe_units::{Duration, Instant};
use std::collections::VecDeque;

/// State of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Number of objects on which it depends that have not arrived.
    Waits(u32),
    Ready,
    Requested(Instant),
    Came,
}

/// A page in progress.
#[derive(Debug)]
pub(super) struct PageLoad {
    pub(super) page: Page,
    pub(super) started: Instant,
    stages: Vec<Stage>,
    /// The dependents of each object.
    followers: Vec<Vec<u32>>,
    /// Objects that may be requested, in the order in which they became so, then in the page's order.
    ready: VecDeque<u32>,
    missing: usize,
    missing_mains: usize,
    missing_above_fold: usize,
    /// Received bytes and time of the last byte of each stream, if streams are distinguished.
    pub(super) streams: Vec<(u64, Instant)>,
}

/// The result of the first arrival of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ObjectArrival {
    /// When the object was requested.
    pub(super) requested: Instant,
    /// Time that all main objects took, if this was the last of them.
    pub(super) mains: Option<Duration>,
    /// Time that all objects above the fold took, if this was the last of them.
    pub(super) above_fold: Option<Duration>,
}

impl PageLoad {
    /// Starts a page now. `streams` is the number of streams that are distinguished.
    pub(super) fn new(page: Page, streams: usize, now: Instant) -> Self {
        let mut followers = vec![Vec::new(); page.objects.len()];
        for (number, object) in (0..).zip(&page.objects) {
            for &before in &object.after {
                followers[before as usize].push(number);
            }
        }
        let stage = |object: &Object| match object.after.len() {
            0 => Stage::Ready,
            waits => Stage::Waits(waits as u32),
        };
        let stages: Vec<Stage> = page.objects.iter().map(stage).collect();
        let ready = (0..).zip(&stages).filter(|(_, stage)| **stage == Stage::Ready).map(|(number, _)| number).collect();
        let missing_mains = page.objects.iter().filter(|object| object.main).count();
        let missing_above_fold = page.objects.iter().filter(|object| object.above_fold).count();
        PageLoad {
            missing: page.objects.len(),
            missing_mains,
            missing_above_fold,
            streams: vec![(0, now); streams],
            stages,
            followers,
            ready,
            started: now,
            page,
        }
    }

    /// Whether an object may be requested.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Marks the next object as requested and returns it.
    pub(super) fn request_next(&mut self, now: Instant) -> Option<u32> {
        let object = self.ready.pop_front()?;
        self.stages[object as usize] = Stage::Requested(now);
        Some(object)
    }

    /// Requests all objects at once, regardless of dependencies.
    pub(super) fn request_all(&mut self, now: Instant) {
        self.ready.clear();
        self.stages.fill(Stage::Requested(now));
    }

    /// Returns an object.
    pub(super) fn object(&self, number: u32) -> &Object {
        &self.page.objects[number as usize]
    }

    /// Handles the arrival of an object. `None` if the object was not requested or has already arrived.
    pub(super) fn arrive(&mut self, number: u32, stream: Option<u32>, now: Instant) -> Option<ObjectArrival> {
        let Stage::Requested(requested) = self.stages[number as usize] else { return None };
        self.stages[number as usize] = Stage::Came;
        self.missing -= 1;
        let &Object { main, above_fold, bytes, .. } = self.object(number);
        let had = (self.missing_mains == 0, self.missing_above_fold == 0);
        self.missing_mains -= usize::from(main);
        self.missing_above_fold -= usize::from(above_fold);
        let took = now.saturating_since(self.started);
        let mains = (self.missing_mains == 0 && !had.0).then_some(took);
        let above_fold = (self.missing_above_fold == 0 && !had.1).then_some(took);
        if let Some((sum, last)) = stream.and_then(|stream| self.streams.get_mut(stream as usize)) {
            *sum = sum.saturating_add(bytes);
            *last = now;
        }
        for follower in std::mem::take(&mut self.followers[number as usize]) {
            let stage = &mut self.stages[follower as usize];
            match stage {
                Stage::Waits(1) => {
                    *stage = Stage::Ready;
                    self.ready.push_back(follower);
                }
                Stage::Waits(others) => *others -= 1,
                _ => {}
            }
        }
        Some(ObjectArrival { requested, mains, above_fold })
    }

    /// Whether all objects have arrived.
    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Total bytes of all objects.
    pub(super) fn bytes(&self) -> u64 {
        self.page.objects.iter().map(|object| object.bytes).fold(0, u64::saturating_add)
    }
}
