//! Errors that involve several keys, collected while a checked [`Tree`](crate::Tree) is converted into typed settings.

use crate::error::{Error, Errors, MOST_ERRORS};
use crate::node::{Place, Sources};

/// Collects errors that involve several keys. [`load`](crate::load) finds errors within one key before.
#[derive(Debug)]
pub struct Check<'a> {
    /// The texts that places refer to.
    pub sources: &'a Sources,
    errors: Vec<Error>,
}

impl<'a> Check<'a> {
    /// A check without errors.
    pub fn new(sources: &'a Sources) -> Self {
        Check { sources, errors: Vec::new() }
    }

    /// Whether the check keeps no further errors.
    pub fn full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// Adds an error.
    pub fn push(&mut self, error: Error) {
        if !self.full() {
            self.errors.push(error);
        }
    }

    /// Adds an error about the text at a place. An error equal to the one before is dropped: one table can declare many
    /// links, each of which would report it.
    pub fn error(&mut self, place: Place, path: &str, message: impl Into<String>, expected: Vec<String>) {
        let error = self.sources.error(place, path, message, expected);
        if self.errors.last() != Some(&error) {
            self.push(error);
        }
    }

    /// Adds an error about a value that is missing.
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

    /// Whether there are no errors so far.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Ends the check.
    ///
    /// # Errors
    /// The errors, in the order of the file.
    pub fn done(self) -> Result<(), Errors> {
        if self.errors.is_empty() { Ok(()) } else { Err(Errors::sorted(self.errors)) }
    }
}
