//! The JUnit XML of `--junit`, in the form that GitHub actions and GitLab read: a test case for each expectation and each claim, and
//! for each run that failed or is not valid.

use crate::exit::Failure;
use fullpipe::archive::{ExpectationRow, SummaryRow, Verdict};
use fullpipe::study::{Outcome, Study};
use fullpipe::units::words::in_words;
use std::fmt::Write;
use std::path::Path;

/// Fails if the file cannot be written later because its folder does not exist or it is a folder.
pub(crate) fn check_place(file: &Path) -> Result<(), Failure> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Failure::usage(format!(
            "--junit {}: the folder {} does not exist",
            file.display(),
            folder.display()
        )));
    }
    if file.is_dir() {
        return Err(Failure::usage(format!(
            "--junit {}: this is a folder; expected the name of a file",
            file.display()
        )));
    }
    Ok(())
}

/// Writes the file.
pub(crate) fn write(file: &Path, study: &Study, outcome: &Outcome) -> Result<(), Failure> {
    std::fs::write(file, document(study, outcome))
        .map_err(|error| Failure::machine(format!("--junit {}: {error}", file.display())))
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
    /// What was measured.
    output: String,
}

fn document(study: &Study, outcome: &Outcome) -> String {
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

fn of_expectation(row: &ExpectationRow, outcome: &Outcome) -> Case {
    let message = if row.subject.is_empty() { row.note.clone() } else { format!("{}: {}", row.subject, row.note) };
    let result = match row.outcome.as_str() {
        ExpectationRow::NOT_CHECKED if !outcome.failed.is_empty() => CaseResult::Error(message),
        ExpectationRow::NOT_CHECKED => CaseResult::Skipped(message),
        // A value that is not to be trusted neither meets nor fails an expectation.
        _ if !outcome.untrusted.is_empty() => CaseResult::Error("the result is not valid".to_owned()),
        ExpectationRow::MET => CaseResult::Passed,
        _ => CaseResult::Failed(message),
    };
    let bound = |name: &str, bound: Option<f64>| bound.map(|bound| format!("{name} {}", in_words(bound, &row.unit)));
    let value = row.value.map(|value| format!("value {}", in_words(value, &row.unit)));
    let output: Vec<String> = [value, bound("min", row.min), bound("max", row.max)].into_iter().flatten().collect();
    let of = if row.subject.is_empty() { String::new() } else { format!("{}: ", row.subject) };
    Case { kind: "expectation", name: row.expectation.clone(), result, output: of + &output.join(", ") }
}

fn of_claim(study: &Study, row: &SummaryRow) -> Option<Case> {
    let name = row.claim()?;
    let verdict = row.verdict.map_or("no verdict", Verdict::word);
    let words = study.claim(name).map_or("", |claim| claim.text.as_str());
    // The note begins with the claim's text.
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

/// A text in XML. Characters that XML 1.0 does not allow are replaced.
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
    fn a_text_in_xml_has_no_markup_and_no_forbidden_characters() {
        assert_eq!(escaped("a < b & \"c\" > d\n\u{1b}[0m"), "a &lt; b &amp; &quot;c&quot; &gt; d&#10;\u{fffd}[0m");
    }
}
