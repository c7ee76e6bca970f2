//! Evaluates `cfg` predicates with unknown values.

use crate::source::{Token, group_end};

/// The assumptions about a build; `None` means unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Build {
    pub(crate) has_real_time: Option<bool>,
    pub(crate) is_linux: Option<bool>,
    pub(crate) is_unix: Option<bool>,
    pub(crate) is_test: Option<bool>,
}

/// The builds outside Linux.
pub(crate) const OTHER_SYSTEMS: Build =
    Build { has_real_time: None, is_linux: Some(false), is_unix: None, is_test: None };

/// The builds that contain a part of a source: those for which all values that are true here are true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gate {
    pub(crate) real_time: bool,
    pub(crate) linux: bool,
    pub(crate) unix: bool,
    pub(crate) test: bool,
}

impl Gate {
    /// The builds for which a predicate is true.
    pub(crate) fn of(predicate: &[Token]) -> Gate {
        let is_false = |build| value(predicate, build) == Some(false);
        let unknown = Build::default();
        Gate {
            real_time: is_false(Build { has_real_time: Some(false), ..unknown }),
            linux: is_false(OTHER_SYSTEMS),
            unix: is_false(Build { is_unix: Some(false), ..OTHER_SYSTEMS }),
            test: is_false(Build { is_test: Some(false), ..unknown }),
        }
    }

    pub(crate) fn and(self, other: Gate) -> Gate {
        Gate {
            real_time: self.real_time || other.real_time,
            linux: self.linux || other.linux,
            unix: self.unix || other.unix,
            test: self.test || other.test,
        }
    }
}

/// Whether a predicate depends, or may depend, on the feature `real-time` in builds outside Linux.
pub(crate) fn has_effect_outside_linux(predicate: &[Token]) -> bool {
    predicate.contains(&Token::Text("real-time".to_owned())) && value(predicate, OTHER_SYSTEMS).is_none()
}

/// The value of a predicate in a build; `None` if it depends on unknown values.
fn value(predicate: &[Token], build: Build) -> Option<bool> {
    let (first, rest) = predicate.split_first()?;
    let parts = || match rest {
        [open, inner @ .., close] if open.is('(') && close.is(')') => split(inner),
        _ => panic!("{predicate:?} is not a predicate"),
    };
    match (first.word()?, rest) {
        ("all", _) => conjunction(parts().iter().map(|part| value(part, build))),
        // At least one part is true unless all are false.
        ("any", _) => conjunction(parts().iter().map(|part| value(part, build).map(|value| !value))).map(|none| !none),
        ("not", _) => value(parts().first()?, build).map(|value| !value),
        ("unix", []) => {
            if build.is_linux == Some(true) {
                Some(true)
            } else {
                build.is_unix
            }
        }
        ("test" | "doctest", []) => build.is_test,
        ("feature", [_, Token::Text(name)]) if name == "real-time" => build.has_real_time,
        ("target_os", [_, Token::Text(name)]) if name == "linux" => build.is_linux,
        _ => None,
    }
}

/// Whether all values are true; `None` if this depends on unknown values.
fn conjunction(values: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let values: Vec<Option<bool>> = values.collect();
    if values.contains(&Some(false)) {
        Some(false)
    } else if values.contains(&None) {
        None
    } else {
        Some(true)
    }
}

/// Splits at commas that are outside of brackets.
pub(crate) fn split(tokens: &[Token]) -> Vec<&[Token]> {
    let (mut parts, mut begin, mut at) = (Vec::new(), 0, 0);
    while at < tokens.len() {
        if tokens[at].is(',') {
            parts.push(&tokens[begin..at]);
            (begin, at) = (at + 1, at + 1);
        } else if ['(', '[', '{'].iter().any(|bracket| tokens[at].is(*bracket)) {
            at = group_end(tokens, at);
        } else {
            at += 1;
        }
    }
    parts.push(&tokens[begin..]);
    parts.retain(|part| !part.is_empty());
    parts
}
