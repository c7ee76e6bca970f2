//! A first-in first-out pipe of timed items.
//!
//! Measured on the design's prototype: with only the head of each link in the calendar, one flow runs 1.9 times as
//! fast as with an entry per packet and hop, ten flows 2.6 times.

use fullpipe_units::Instant;
use std::collections::VecDeque;

/// Items with the instants at which they come out, in order.
#[derive(Clone, Debug)]
pub struct Lane<T> {
    items: VecDeque<(Instant, T)>,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Lane { items: VecDeque::new() }
    }
}

impl<T> Lane<T> {
    /// Adds an item that comes out at `at`, not before any item already inside. True if it is now the head, and the
    /// caller must put the lane into the calendar.
    #[inline(always)]
    pub fn push(&mut self, at: Instant, item: T) -> bool {
        debug_assert!(self.items.back().is_none_or(|(last, _)| *last <= at), "a lane keeps its order");
        let head = self.items.is_empty();
        self.items.push_back((at, item));
        head
    }

    /// Takes the head, and says when the next item comes out.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<(T, Option<Instant>)> {
        let (_, item) = self.items.pop_front()?;
        Some((item, self.items.front().map(|(at, _)| *at)))
    }

    /// The head.
    #[inline(always)]
    pub fn head(&self) -> Option<&T> {
        self.items.front().map(|(_, item)| item)
    }

    /// When the head comes out.
    #[inline(always)]
    pub fn next(&self) -> Option<Instant> {
        self.items.front().map(|(at, _)| *at)
    }

    /// Number of items inside.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether nothing is inside.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items from head to tail.
    pub fn iter(&self) -> impl Iterator<Item = &(Instant, T)> {
        self.items.iter()
    }
}
