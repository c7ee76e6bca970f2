//! The JUnit XML of `--junit`, in the format that GitHub Actions and GitLab read: a test case for each expectation and
//! each claim, and for each failed or invalid run.

use crate::exit::Failure;
use crate::new_file::NewFile;
use fullpipe::archive::{ExpectationRow, SummaryRow, Verdict};
use fullpipe::study::{Study, StudyOutcome};
use fullpipe::units::words::format_quantity;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The file of `--junit`, opened before the first run. A path that is not writable is therefore reported before any
/// run, and the file of an earlier command is always removed.
pub(crate) struct JunitFile {
    path: PathBuf,
    file: NewFile,
}

impl JunitFile {
    /// Opens the file. It must be new or the JUnit XML of an earlier command, so that `--junit` cannot replace a
    /// scenario or a record.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let wrong = |text: &str| Failure::usage(format!("--junit {}: {text}", path.display()));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            return Err(wrong("its folder does not exist"));
        }
        if path.exists() {
            if !path.is_file() {
                return Err(wrong("this is not a file; expected the name of a new file"));
            }
            let text = fs::read_to_string(path).unwrap_or_default();
            if !text.is_empty() && !text.contains("<testsuites") {
                return Err(wrong("this file exists and is not JUnit XML; it is not overwritten"));
            }
            fs::remove_file(path).map_err(|error| wrong(&error.to_string()))?;
        }
        let file = NewFile::create(path, ".part").map_err(|error| wrong(&error.to_string()))?;
        Ok(JunitFile { path: path.to_owned(), file })
    }

    /// Writes the file.
    pub(crate) fn write(mut self, study: &Study, outcome: &StudyOutcome) -> Result<(), Failure> {
        let failure = |reason: String| Failure::machine(format!("--junit {}: {reason}", self.path.display()));
        // A record has the same path.
        if self.path.exists() {
            return Err(failure("this run wrote a file of this name; choose another name".to_owned()));
        }
        let written = self.file.writer.write_all(document(study, outcome).as_bytes());
        written.and_then(|()| self.file.finish()).map_err(|error| failure(error.to_string()))
    }
}

/// The result of a test case, with its message.
enum CaseResult {
    Passed,
    Failed(String),
    Error(String),
    Skipped(String),
}

struct Case {
    kind: &'static str,
    name: String,
    result: CaseResult,
    /// The measured values.
    output: String,
}

fn document(study: &Study, outcome: &StudyOutcome) -> String {
    let mut cases: Vec<Case> = outcome.expectations.iter().map(|row| of_expectation(row, outcome)).collect();
    cases.extend(outcome.rows.iter().filter_map(|row| of_claim(study, row)));
    for (kind, list) in [("failed run", &outcome.failed), ("validity", &outcome.untrusted)] {
        let case = |(name, reason): &(String, String)| Case {
            kind,
            name: if name.is_empty() { "run".to_owned() } else { name.clone() },
            result: CaseResult::Error(reason.clone()),
            output: String::new(),
        };
        cases.extend(list.iter().map(case));
    }
    number_equal_names(&mut cases);
    let count = |is: fn(&CaseResult) -> bool| cases.iter().filter(|case| is(&case.result)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        count(|result| matches!(result, CaseResult::Failed(_))),
        count(|result| matches!(result, CaseResult::Error(_))),
        count(|result| matches!(result, CaseResult::Skipped(_))),
    );
    let name = escaped(&study.name);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"fullpipe\" {counts} time=\"{time:.3}\">\n  \
         <testsuite name=\"{name}\" {counts} time=\"{time:.3}\">\n",
        time = outcome.cpu_s,
    );
    for case in &cases {
        // Writing to a string cannot fail.
        let class = format!("{name}.{}", case.kind);
        let _ = write!(text, "    <testcase classname=\"{class}\" name=\"{}\" time=\"0\">", escaped(&case.name));
        let inner = |element: &str, message: &str| {
            let message = escaped(message);
            format!("\n      <{element} message=\"{message}\">{message}</{element}>")
        };
        match &case.result {
            CaseResult::Passed => {}
            CaseResult::Failed(message) => text += &inner("failure", message),
            CaseResult::Error(message) => text += &inner("error", message),
            CaseResult::Skipped(message) => text += &format!("\n      <skipped message=\"{}\"/>", escaped(message)),
        }
        if !case.output.is_empty() {
            let _ = write!(text, "\n      <system-out>{}</system-out>", escaped(&case.output));
        }
        text +=
            if text.ends_with('>') && !text.ends_with("time=\"0\">") { "\n    </testcase>\n" } else { "</testcase>\n" };
    }
    text + "  </testsuite>\n</testsuites>\n"
}

/// Numbers cases with equal kind and name, because readers of JUnit XML treat them as a single test.
fn number_equal_names(cases: &mut [Case]) {
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for case in cases {
        let count = counts.entry((case.kind, case.name.clone())).or_insert(0);
        *count += 1;
        if *count > 1 {
            case.name += &format!(" #{count}");
        }
    }
}

fn of_expectation(row: &ExpectationRow, outcome: &StudyOutcome) -> Case {
    let message = if row.subject.is_empty() { row.note.clone() } else { format!("{}: {}", row.subject, row.note) };
    let result = match row.outcome.as_str() {
        ExpectationRow::NOT_CHECKED if !outcome.failed.is_empty() => CaseResult::Error(message),
        ExpectationRow::NOT_CHECKED => CaseResult::Skipped(message),
        // An invalid value neither meets nor fails an expectation.
        _ if !outcome.untrusted.is_empty() => CaseResult::Error("the result is not valid".to_owned()),
        ExpectationRow::MET => CaseResult::Passed,
        _ => CaseResult::Failed(message),
    };
    let bound =
        |name: &str, bound: Option<f64>| bound.map(|bound| format!("{name} {}", format_quantity(bound, &row.unit)));
    let bounds: Vec<String> = [bound("min", row.min), bound("max", row.max)].into_iter().flatten().collect();
    let value = row.value.map(|value| format!("value {}", format_quantity(value, &row.unit)));
    let output: Vec<String> = value.into_iter().chain(bounds.iter().cloned()).collect();
    let of = if row.subject.is_empty() { String::new() } else { format!("{}: ", row.subject) };
    let name = format!("{}, {}", row.expectation, bounds.join(", "));
    Case { kind: "expectation", name, result, output: of + &output.join(", ") }
}

fn of_claim(study: &Study, row: &SummaryRow) -> Option<Case> {
    let name = row.claim()?;
    let verdict = row.verdict.map_or("no verdict", Verdict::name);
    let words = study.claim(name).map_or("", |claim| claim.text.as_str());
    // The note begins with the text of the claim.
    let note = if row.note.contains(words) { row.note.clone() } else { format!("{words} {}", row.note) };
    let message = format!("{verdict}: {}", note.trim());
    let result = match row.verdict {
        Some(Verdict::Match) => CaseResult::Passed,
        Some(Verdict::Differs | Verdict::Refuted) => CaseResult::Failed(message),
        Some(Verdict::Untrusted) => CaseResult::Error(message),
        Some(Verdict::Explained | Verdict::Undecided) | None => CaseResult::Skipped(message),
    };
    Some(Case { kind: "claim", name: name.to_owned(), result, output: format!("{verdict}: {words}") })
}

/// Escapes a text for XML. Characters that XML 1.0 forbids are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' => out += "&#10;",
            '\t' => out += "&#9;",
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_with_equal_names_are_numbered() {
        let case = |name: &str| Case {
            kind: "claim",
            name: name.to_owned(),
            result: CaseResult::Passed,
            output: String::new(),
        };
        let mut cases = [case("a"), case("b"), case("a"), case("a")];
        number_equal_names(&mut cases);
        assert_eq!(cases.map(|case| case.name), ["a", "b", "a #2", "a #3"]);
    }

    #[test]
    fn escaped_text_has_no_markup_and_no_forbidden_characters() {
        assert_eq!(escaped("a < b & \"c\" > d\n\u{1b}[0m"), "a &lt; b &amp; &quot;c&quot; &gt; d&#10;\u{fffd}[0m");
    }
}
