//! The error for an invalid description, such as that of a workload.

use std::fmt;

/// The rule that a description violates, as a sentence: the condition that must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub String);

impl Invalid {
    /// Returns the rule as an error unless the condition holds.
    ///
    /// # Errors
    /// The rule, if `holds` is false.
    pub fn unless(holds: bool, rule: &str) -> Result<(), Invalid> {
        if holds { Ok(()) } else { Err(Invalid(rule.into())) }
    }

    /// Adds the name of the field before the rule.
    #[must_use]
    pub fn of(self, field: &str) -> Invalid {
        Invalid(format!("{field}: {}", self.0))
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}
