//! Errors that involve several keys, collected while a checked [`Tree`] is converted into typed settings.

use crate::error::{COMPARED, Error, Errors, Hint, MOST_ERRORS, nearest, some_of};
use crate::node::{Place, Sources};
use crate::tree::Tree;

/// Collects errors that involve several keys. [`load`](crate::load) finds errors within one key before.
#[derive(Debug)]
pub struct Check<'a> {
    /// The texts that places refer to.
    pub sources: &'a Sources,
    errors: Vec<Error>,
    /// Advice about what is accepted.
    pub hints: Vec<Hint>,
}

impl<'a> Check<'a> {
    /// A check without errors.
    pub fn new(sources: &'a Sources) -> Self {
        Check { sources, errors: Vec::new(), hints: Vec::new() }
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

    /// Adds an error at the value of a key of the table at a path.
    pub fn error_at(&mut self, tree: &Tree, path: &str, key: &str, message: impl Into<String>, expected: &str) {
        self.error(tree.place_of(key), &format!("{path}.{key}"), message, vec![expected.to_string()]);
    }

    /// Adds a hint about the text at a place, once: one table can declare many links.
    pub fn hint(&mut self, place: Place, path: &str, message: impl Into<String>) {
        let hint = self.sources.hint(place, path, message);
        if !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }

    /// Adds an error about a name that does not exist, with some of the names that do and the nearest one.
    pub fn unknown_name<'n>(
        &mut self,
        place: Place,
        path: &str,
        message: String,
        name: &str,
        names: impl ExactSizeIterator<Item = &'n str> + Clone,
    ) {
        if !self.full() {
            let mut error = self.sources.error(place, path, message, some_of(names.clone()));
            error.suggestion = nearest(name, names.take(COMPARED)).map(|name| format!("\"{name}\""));
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
