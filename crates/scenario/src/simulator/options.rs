//! Parses the name of a scenario and its options.

use super::{SCENARIO_NAMES, ScenarioStringError};
use crate::schema::nearest_name;
use std::collections::BTreeMap;

/// The options that are not read yet, and the names of all options that the scenario supports.
pub(super) struct OptionParser {
    name: &'static str,
    given: BTreeMap<String, Option<String>>,
    known: Vec<String>,
}

/// Replaces `_` by `-`, because both are equivalent.
fn plain(option: &str) -> String {
    option.replace('_', "-")
}

impl OptionParser {
    /// Parses the words, which are separated by blanks. Quotation marks around a word or a value are removed.
    pub(super) fn parse(text: &str) -> Result<Self, ScenarioStringError> {
        let unquoted = text.replace(['"', '\''], "");
        let mut words = unquoted.split_whitespace();
        let Some(first) = words.next() else {
            return Err(ScenarioStringError(format!(
                "the scenario is empty; expected one of {}",
                SCENARIO_NAMES.join(", ")
            )));
        };
        let Some(name) = SCENARIO_NAMES.into_iter().find(|name| *name == first) else {
            let hint =
                nearest_name(first, SCENARIO_NAMES).map_or_else(String::new, |near| format!("; did you mean {near}?"));
            return Err(ScenarioStringError(format!(
                "unknown scenario {first}{hint} (one of: {})",
                SCENARIO_NAMES.join(", ")
            )));
        };
        let mut given = BTreeMap::new();
        for word in words {
            let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else {
                return Err(ScenarioStringError(format!(
                    "{word} is not an option; expected options such as --delay=15ms"
                )));
            };
            let (option, value) = match option.split_once('=') {
                Some((option, value)) => (option, Some(value.to_string())),
                None => (option, None),
            };
            given.insert(plain(option), value);
        }
        Ok(OptionParser { name, given, known: Vec::new() })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    fn take(&mut self, option: &str) -> Option<Option<String>> {
        self.known.push(option.to_string());
        self.given.remove(&plain(option))
    }

    /// Returns the value of an optional option.
    pub(super) fn optional<T>(
        &mut self,
        option: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ScenarioStringError> {
        match self.take(option) {
            None => Ok(None),
            Some(value) => {
                let value = value.unwrap_or_default();
                let told =
                    |expected| ScenarioStringError(format!("--{option}={value} is invalid; expected {expected}"));
                read(&value).map(Some).map_err(told)
            }
        }
    }

    /// Returns the value of a required option.
    pub(super) fn required<T>(
        &mut self,
        option: &str,
        meaning: &str,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, ScenarioStringError> {
        let missing = || ScenarioStringError(format!("{} requires --{option}, {meaning}", self.name));
        let missing = missing();
        self.optional(option, read)?.ok_or(missing)
    }

    /// Returns whether a switch is on: it is present without a value, or with a true value.
    pub(super) fn flag(&mut self, option: &str) -> Result<bool, ScenarioStringError> {
        let read = |text: &str| match text {
            "" | "1" | "t" | "true" => Ok(true),
            "0" | "f" | "false" => Ok(false),
            _ => Err("true or false".to_string()),
        };
        Ok(self.optional(option, read)?.unwrap_or(false))
    }

    /// Returns one of several words; the first word if the option is missing.
    pub(super) fn choice<const N: usize>(
        &mut self,
        option: &str,
        words: [&'static str; N],
    ) -> Result<&'static str, ScenarioStringError> {
        let read = |text: &str| {
            words.into_iter().find(|word| *word == text).ok_or_else(|| format!("one of {}", words.join(", ")))
        };
        Ok(self.optional(option, read)?.unwrap_or(words[0]))
    }

    /// Checks that all options in the string are options of the scenario.
    pub(super) fn done(self) -> Result<(), ScenarioStringError> {
        let Some(unknown) = self.given.into_keys().next() else { return Ok(()) };
        let known: Vec<String> = self.known.iter().map(|option| format!("--{option}")).collect();
        let hint = nearest_name(&unknown, self.known.iter().map(String::as_str));
        let hint = hint.map_or_else(String::new, |near| format!("; did you mean --{near}?"));
        Err(ScenarioStringError(format!(
            "{} has no option --{unknown}{hint} (one of: {})",
            self.name,
            known.join(", ")
        )))
    }
}
