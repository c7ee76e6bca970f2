//! Errors that involve several keys, collected while a checked [`Tree`] is converted into typed settings.

use crate::error::{Error, Errors, Hint, MAX_COMPARED_NAMES, MOST_ERRORS, abbreviate_names, nearest_name};
use crate::node::{SourceLocation, Sources};
use crate::tree::Tree;

/// Collects errors that involve several keys. [`load`](crate::load) has already reported errors within one key.
#[derive(Debug)]
pub struct Diagnostics<'a> {
    /// The source texts to which a [`SourceLocation`] refers.
    pub sources: &'a Sources,
    errors: Vec<Error>,
    /// Advice about spellings that are accepted but outdated.
    pub hints: Vec<Hint>,
}

impl<'a> Diagnostics<'a> {
    /// Creates a collector without errors.
    pub fn new(sources: &'a Sources) -> Self {
        Diagnostics { sources, errors: Vec::new(), hints: Vec::new() }
    }

    /// Returns whether the limit of errors is reached; further errors are dropped.
    pub fn is_full(&self) -> bool {
        self.errors.len() >= MOST_ERRORS
    }

    /// Adds an error, unless the limit of errors is reached.
    pub fn push_error(&mut self, error: Error) {
        if !self.is_full() {
            self.errors.push(error);
        }
    }

    /// Adds an error about the text at a place. An error equal to the previous one is dropped, because one table can
    /// declare many links that all have the same error.
    pub fn add_error(&mut self, place: SourceLocation, path: &str, message: impl Into<String>, expected: Vec<String>) {
        let error = self.sources.error(place, path, message, expected);
        if self.errors.last() != Some(&error) {
            self.push_error(error);
        }
    }

    /// Adds an error at the value of a key in the table at `path`.
    pub fn add_error_at(&mut self, tree: &Tree, path: &str, key: &str, message: impl Into<String>, expected: &str) {
        self.add_error(tree.location_of(key), &format!("{path}.{key}"), message, vec![expected.to_string()]);
    }

    /// Adds a hint about the text at a place. Equal hints are added once, because one table can declare many links.
    pub fn add_hint(&mut self, place: SourceLocation, path: &str, message: impl Into<String>) {
        let hint = self.sources.hint(place, path, message);
        if !self.hints.contains(&hint) {
            self.hints.push(hint);
        }
    }

    /// Adds an error about an unknown name, with the nearest valid name and up to eight valid names.
    pub fn add_unknown_name<'n>(
        &mut self,
        place: SourceLocation,
        path: &str,
        message: String,
        name: &str,
        names: impl ExactSizeIterator<Item = &'n str> + Clone,
    ) {
        if !self.is_full() {
            let mut error = self.sources.error(place, path, message, abbreviate_names(names.clone()));
            error.suggestion = nearest_name(name, names.take(MAX_COMPARED_NAMES)).map(|name| format!("\"{name}\""));
            self.push_error(error);
        }
    }

    /// Adds an error about a missing value.
    pub fn add_missing(
        &mut self,
        place: SourceLocation,
        path: &str,
        message: impl Into<String>,
        expected: Vec<String>,
    ) {
        if !self.is_full() {
            let mut error = self.sources.error(place, path, message, expected);
            error.found = String::new();
            self.errors.push(error);
        }
    }

    /// Returns the number of errors so far.
    pub fn error_count(&self) -> usize {
        self.errors.len()
    }

    /// Returns whether there are no errors so far.
    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Ends the check and returns the errors.
    ///
    /// # Errors
    /// The errors, in the order of the file.
    pub fn finish(self) -> Result<(), Errors> {
        if self.errors.is_empty() { Ok(()) } else { Err(Errors::sorted(self.errors)) }
    }
}
