//! A page on its way: which objects may be requested, which have come.

use super::page::{Object, Page};
use fullpipe_units::Instant;
use std::collections::VecDeque;

/// State of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// So many of those that it comes after have not come.
    Waits(u32),
    Ready,
    Requested(Instant),
    Came,
}

/// A page on its way.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) page: Page,
    pub(super) started: Instant,
    stages: Vec<Stage>,
    /// Who comes after each object.
    followers: Vec<Vec<u32>>,
    /// What may be requested, in the order in which it became so; at one time in the page's order.
    ready: VecDeque<u32>,
    missing: usize,
    missing_mains: usize,
}

impl Load {
    /// A page that is begun now.
    pub(super) fn new(page: Page, now: Instant) -> Self {
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
        Load { missing: page.objects.len(), missing_mains, stages, followers, ready, started: now, page }
    }

    /// Whether something may be requested.
    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next object to request, which is then requested.
    pub(super) fn request_next(&mut self, now: Instant) -> Option<u32> {
        let object = self.ready.pop_front()?;
        self.stages[object as usize] = Stage::Requested(now);
        Some(object)
    }

    /// Requests all at once, whatever waits for what.
    pub(super) fn request_all(&mut self, now: Instant) {
        self.ready.clear();
        self.stages.fill(Stage::Requested(now));
    }

    /// An object.
    pub(super) fn object(&self, number: u32) -> &Object {
        &self.page.objects[number as usize]
    }

    /// An object has come. When it was requested; `None` if it was not, or has come before.
    pub(super) fn arrive(&mut self, number: u32) -> Option<Instant> {
        let Stage::Requested(requested) = self.stages[number as usize] else { return None };
        self.stages[number as usize] = Stage::Came;
        self.missing -= 1;
        self.missing_mains -= usize::from(self.object(number).main);
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
        Some(requested)
    }

    /// Whether all main objects have come.
    pub(super) fn has_mains(&self) -> bool {
        self.missing_mains == 0
    }

    /// Whether all has come.
    pub(super) fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Bytes of all objects.
    pub(super) fn bytes(&self) -> u64 {
        self.page.objects.iter().map(|object| object.bytes).fold(0, u64::saturating_add)
    }
}
