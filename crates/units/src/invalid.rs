//! Why a description, such as that of a workload, is rejected.

use std::fmt;

/// The rule that a description breaks, in words: what would have to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invalid(pub String);

impl Invalid {
    /// The rule, unless it holds.
    ///
    /// # Errors
    /// The rule.
    pub fn unless(holds: bool, rule: &str) -> Result<(), Invalid> {
        if holds { Ok(()) } else { Err(Invalid(rule.into())) }
    }

    /// With the name of the field in front.
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
