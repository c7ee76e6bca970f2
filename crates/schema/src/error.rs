//! Errors in a file: the place, what was found, what is accepted, and the nearest valid name.

use std::fmt;

/// One error in a file or in a `--set` override.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Name of the file; for an override the text `--set PATH=VALUE`.
    pub file: String,
    /// Line, from 1; 0 for an override.
    pub line: usize,
    /// Column in characters, from 1; 0 for an override.
    pub column: usize,
    /// Dotted path of the key; empty if the error is not at a key.
    pub path: String,
    /// The incorrect text as it is written in the file; empty if a key or value is missing.
    pub found: String,
    /// What is accepted: a description, or the valid names.
    pub expected: Vec<String>,
    /// The problem as a sentence. The place, the accepted values and the suggestion are separate fields.
    pub message: String,
    /// The nearest valid name or value; `None` if none is similar enough.
    pub suggestion: Option<String>,
}

impl fmt::Display for Error {
    /// Formats one sentence on one line. Control characters of a file are escaped, because a terminal would interpret
    /// them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&escape(&self.file))?;
        if self.line > 0 {
            write!(formatter, ":{}:{}", self.line, self.column)?;
        }
        write!(formatter, ": {}", self.problem())
    }
}

fn escape(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escaped).collect()
}

impl Error {
    /// Returns the problem, what is accepted and the nearest valid name, without the place. A long list of accepted
    /// values is abbreviated.
    pub fn problem(&self) -> String {
        let expected = match self.expected.as_slice() {
            [] => None,
            [one] => Some(one.clone()),
            [one, other] => Some(format!("{one} or {other}")),
            several if several.len() > LONGEST_LIST => {
                Some(format!("one of {}, {} more", several[..FEW].join(", "), several.len() - FEW))
            }
            several => Some(format!("one of {}", several.join(", "))),
        };
        let message = &self.message;
        // The nearest name comes first, because a list of names can be long. A list that contains only this name is
        // omitted.
        escape(&match (&self.suggestion, expected) {
            (Some(near), Some(expected)) if *near != expected => {
                format!("{message}; did you mean {near}? (expected {expected})")
            }
            (Some(near), _) => format!("{message}; did you mean {near}?"),
            (None, Some(expected)) => format!("{message}; expected {expected}"),
            (None, None) => message.clone(),
        })
    }
}

impl std::error::Error for Error {}

/// Advice about a valid file, such as the current spelling of an outdated key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hint {
    /// Name of the file; for an override the text `--set PATH=VALUE`.
    pub file: String,
    /// Line, from 1; 0 for an override.
    pub line: usize,
    /// Dotted path of the key.
    pub path: String,
    /// The advice, in one sentence.
    pub message: String,
}

impl fmt::Display for Hint {
    /// Formats one sentence on one line.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&escape(&self.file))?;
        if self.line > 0 {
            write!(formatter, ":{}", self.line)?;
        }
        write!(formatter, ": {}", escape(&self.message))
    }
}

/// The errors of a file, in the order of the file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errors(pub Vec<Error>);

/// The largest number of errors that are kept. More errors usually have one common cause.
pub(crate) const MOST_ERRORS: usize = 100;

impl Errors {
    /// Sorts the errors in the order of the file; those of overrides come last.
    pub(crate) fn sorted(mut errors: Vec<Error>) -> Self {
        errors.sort_by_key(|error| (error.line == 0, error.line, error.column));
        Errors(errors)
    }
}

impl fmt::Display for Errors {
    /// Formats one line for each error.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, error) in self.0.iter().enumerate() {
            if n > 0 {
                writeln!(formatter)?;
            }
            write!(formatter, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Errors {}

/// The number of names of an abbreviated list.
const FEW: usize = 8;

/// The largest number of accepted values that a message lists completely. The keys of a table are fewer.
const LONGEST_LIST: usize = 25;

/// The maximum number of names that callers of [`nearest_name`] should pass. The limit is sufficient for any file that
/// is written by hand.
pub const MAX_COMPARED_NAMES: usize = 2000;

/// Returns the first eight names in quotation marks, and the number of further names, for [`Error::expected`].
pub fn abbreviate_names<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Vec<String> {
    let more = names.len().saturating_sub(FEW);
    let mut some: Vec<String> = names.take(FEW).map(|name| format!("\"{name}\"")).collect();
    if more > 0 {
        some.push(format!("{more} more"));
    }
    some
}

/// Formats an error of the operating system for use within a sentence, without the error number: "no such file or
/// directory".
pub fn describe_io_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or_default();
    let mut characters = words.chars();
    match characters.next() {
        Some(first) => first.to_lowercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// Words of other programs, and the names that mean the same here. The first name that is valid at a place is
/// suggested.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("algorithm", &["congestion"]),
    ("aqm", &["discipline"]),
    ("bandwidth", &["rate"]),
    ("bbr", &["bbr3"]),
    ("bottleneck_rate", &["rate"]),
    ("buffer", &["queue", "limit"]),
    ("capacity", &["rate"]),
    ("cc", &["congestion"]),
    ("destination", &["to"]),
    ("dst", &["to"]),
    ("ftp", &["bulk"]),
    // A column of flows, but not a metric of samples.
    ("goodput_bps", &["throughput_bps"]),
    ("latency", &["delay"]),
    ("limit", &["queue"]),
    ("maximum", &["max"]),
    ("minimum", &["min"]),
    ("pkt", &["packets"]),
    ("pkts", &["packets"]),
    ("qdisc", &["discipline"]),
    ("reno", &["newreno"]),
    ("source", &["from"]),
    ("src", &["from"]),
];

/// Returns the name that was probably intended; `None` if no name is similar enough. The first of these that exists is
/// returned:
///
/// 1. A name that differs only in case.
/// 2. A name that means the same, from a list of words that other programs use.
/// 3. A name that begins or ends with `found`, such as "goodput_bps" for "goodput". `found` must have at least four
///    characters and at least half the length of the name. If `found` consists of the first words of the name, a third
///    of the length is sufficient, such as "hard-limit" for "hard".
/// 4. The name with the smallest Damerau-Levenshtein distance; the first one if several are equal. The distance may be
///    at most a third of the length of `found`, or two if that is larger. If `found` has two or three characters, the
///    distance may be at most one.
/// 5. A name that contains the characters of `found` in order, such as "probe_bw_up" for "probe_up". `found` must have
///    at least four characters and at least half the length of the name.
///
/// No two different names of one character are similar. If `found` begins with a number, names with other digits are
/// not similar, because they are different values: "20" is not a misspelling of "30".
pub fn nearest_name<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = found.chars().count();
    if length > 64 {
        return None;
    }
    let found = found.to_lowercase();
    let digits = |text: &str| text.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect::<String>();
    let is_number = found.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit());
    let is_comparable = |candidate: &&str| candidate.len() <= 80 && (!is_number || digits(candidate) == digits(&found));
    let same: &[&str] = SYNONYMS.iter().find(|(word, _)| *word == found).map_or(&[], |(_, names)| names);
    let limit = if length < 4 { 1 } else { (length / 3).max(2) };
    // The class of a candidate, then its distance within the class.
    let mut best: Option<((usize, usize), &str)> = None;
    for candidate in candidates.into_iter().filter(is_comparable) {
        let name = candidate.to_lowercase();
        let distance = strsim::damerau_levenshtein(&found, &name);
        let is_long = length >= 4 && name.len() <= 2 * found.len();
        let rest = name.strip_prefix(&*found).filter(|_| length >= 4 && name.len() <= 3 * found.len());
        let is_word = rest.is_some_and(|rest| rest.starts_with(['-', '_']));
        let is_part = is_word || is_long && (name.starts_with(&found) || name.ends_with(&found));
        let rank = match same.iter().position(|same| *same == name) {
            _ if distance == 0 => (0, 0),
            Some(position) => (1, position),
            None if is_part => (2, distance),
            None if distance <= limit && distance < length => (3, distance),
            None if is_long && contains_in_order(&name, &found) => (4, distance),
            None => continue,
        };
        if best.is_none_or(|(least, _)| rank < least) {
            best = Some((rank, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Returns whether a name contains the characters of a text in order, with others between them.
fn contains_in_order(name: &str, text: &str) -> bool {
    let mut name = name.chars();
    text.chars().all(|wanted| name.any(|c| c == wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_returns_only_candidates_within_the_distance_limit() {
        let names = ["cubic", "newreno", "linux-reno"];
        assert_eq!(nearest_name("cubci", names), Some("cubic"));
        assert_eq!(nearest_name("CUBIC", names), Some("cubic"));
        assert_eq!(nearest_name("reno", names), Some("newreno"));
        assert_eq!(nearest_name("vegas", names), None);
        // A part of a name is nearer than a name with another letter, but only if the rest of the name is short.
        assert_eq!(nearest_name("reno", ["veno", "linux-reno", "newreno"]), Some("newreno"));
        assert_eq!(nearest_name("goodput", ["throughput", "goodput_bps", "whole_goodput_bps"]), Some("goodput_bps"));
        assert_eq!(nearest_name("queue", ["rto", "queue_of_the_whole_run"]), None);
        assert_eq!(nearest_name("hard", ["best-effort", "hard-limit"]), Some("hard-limit"));
        assert_eq!(nearest_name("hard", ["best-effort", "hardlimits"]), None);
        assert_eq!(nearest_name("goodput_bps", ["cwnd_bytes", "throughput_bps"]), Some("throughput_bps"));
        // Words of other programs.
        assert_eq!(nearest_name("buffer", ["rate", "queue"]), Some("queue"));
        assert_eq!(nearest_name("limit", ["rate", "limits", "queue"]), Some("queue"));
        assert_eq!(nearest_name("limit", ["rate", "limits"]), Some("limits"));
        assert_eq!(nearest_name("minimum", ["metric", "min", "max"]), Some("min"));
        // Names that contain the characters in order.
        assert_eq!(nearest_name("probe_up", ["probe_rtt", "probe_bw_up"]), Some("probe_bw_up"));
        assert_eq!(nearest_name("rtt", ["round_trip_time"]), None);
        // Names of one character have nothing in common.
        assert_eq!(nearest_name("s", ["a", "b"]), None);
        assert_eq!(nearest_name("A", ["a", "b"]), Some("a"));
        assert_eq!(nearest_name("linuxreno", names), Some("linux-reno"));
        assert_eq!(nearest_name("", names), None);
        assert_eq!(nearest_name("20", ["10", "30"]), None);
        assert_eq!(nearest_name("3Mbit/s", ["1Mbit/s", "2Mbit/s"]), None);
        assert_eq!(nearest_name("3mbit/s", ["1Mbit/s", "3Mbit/s"]), Some("3Mbit/s"));
        assert_eq!(nearest_name(&"x".repeat(1_000_000), names), None);
    }

    #[test]
    fn an_error_displays_as_one_sentence() {
        let mut error = Error {
            file: "a.toml".into(),
            line: 12,
            column: 8,
            path: "x.rate".into(),
            found: "\"10 Mbps/s\"".into(),
            expected: vec!["a rate such as \"100Mbit/s\"".into()],
            message: "found \"10 Mbps/s\" for x.rate".into(),
            suggestion: Some("\"10Mbit/s\"".into()),
        };
        assert_eq!(
            error.to_string(),
            "a.toml:12:8: found \"10 Mbps/s\" for x.rate; did you mean \"10Mbit/s\"? (expected a rate such as \
             \"100Mbit/s\")"
        );
        error.line = 0;
        error.suggestion = None;
        error.message.push('\u{1b}');
        assert!(error.to_string().contains("for x.rate\\u{1b}; expected"));
        error.message.pop();
        error.expected = vec!["a".into(), "b".into()];
        assert_eq!(error.to_string(), "a.toml: found \"10 Mbps/s\" for x.rate; expected a or b");
        error.expected.push("c".into());
        assert_eq!(error.to_string(), "a.toml: found \"10 Mbps/s\" for x.rate; expected one of a, b, c");
        error.expected = (0..26).map(|number| number.to_string()).collect();
        assert!(error.to_string().ends_with("; expected one of 0, 1, 2, 3, 4, 5, 6, 7, 18 more"));
        error.expected = vec!["a".into()];
        error.suggestion = Some("a".into());
        assert_eq!(error.to_string(), "a.toml: found \"10 Mbps/s\" for x.rate; did you mean a?");
    }
}
