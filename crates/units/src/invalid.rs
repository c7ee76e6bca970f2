//! The error for invalid parameters, such as those of a workload.

use std::fmt;

/// The rule that the parameters violate, as a sentence that states the condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParameterError(pub String);

impl ParameterError {
    /// Returns the rule as an error unless the condition holds.
    ///
    /// # Errors
    /// Returns the rule if `holds` is false.
    pub fn ensure(holds: bool, rule: &str) -> Result<(), ParameterError> {
        if holds { Ok(()) } else { Err(ParameterError(rule.into())) }
    }

    /// Prepends the name of the field to the rule.
    #[must_use]
    pub fn in_field(self, field: &str) -> ParameterError {
        ParameterError(format!("{field}: {}", self.0))
    }
}

impl fmt::Display for ParameterError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ParameterError {}
