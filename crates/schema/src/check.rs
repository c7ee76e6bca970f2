//! The errors of a file that span several keys, collected while a checked [`Tree`](crate::Tree) becomes typed settings.

use crate::error::{Error, Errors, MOST_ERRORS};
use crate::node::{Place, Sources};

/// Collects errors that span several keys; mistakes within one key are found before, against the schema.
#[derive(Debug)]
pub struct Check<'a> {
    /// The texts that places point into.
    pub sources: &'a Sources,
    errors: Vec<Error>,
}

impl<'a> Check<'a> {
    /// A check that has found nothing yet.
    pub fn new(sources: &'a Sources) -> Self {
        Check { sources, errors: Vec::new() }
    }

    /// Whether there is no use in looking for more errors.
    pub fn full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// Adds an error.
    pub fn push(&mut self, error: Error) {
        if !self.full() {
            self.errors.push(error);
        }
    }

    /// Adds an error about what stands at a place. Repeated in succession, it counts once: one table may stand for many
    /// links.
    pub fn error(&mut self, place: Place, path: &str, message: impl Into<String>, expected: Vec<String>) {
        let error = self.sources.error(place, path, message, expected);
        if self.errors.last() != Some(&error) {
            self.push(error);
        }
    }

    /// Adds an error about something that is not there.
    pub fn missing(&mut self, place: Place, path: &str, message: impl Into<String>, expected: Vec<String>) {
        if !self.full() {
            let mut error = self.sources.error(place, path, message, expected);
            error.found = String::new();
            self.errors.push(error);
        }
    }

    /// How many errors there are.
    pub fn count(&self) -> usize {
        self.errors.len()
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// The end of the check.
    ///
    /// # Errors
    /// What was found, in the order of the file.
    pub fn done(self) -> Result<(), Errors> {
        if self.errors.is_empty() { Ok(()) } else { Err(Errors::sorted(self.errors)) }
    }
}
