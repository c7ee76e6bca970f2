//! The head of the page: title, summary of validity, and the runs.

use crate::input::Records;
use crate::input::run::Run;
use crate::input::study::shown;
use crate::markup::{escape, markdown};
use crate::numbers::count;
use crate::numbers::trimmed;
use crate::page::table::{Field, Heading, Table};
use crate::page::verdict;
use fullpipe_archive::{Verdict, WarningKind};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The maximum number of reasons in a banner; the section on validity contains all reasons.
const REASONS_IN_BANNER: usize = 5;

/// Writes the description of the study.
pub(crate) fn description(out: &mut String, records: &Records) {
    if records.study.quick && !records.study.description.trim().is_empty() {
        out.push_str(
            "<p class=\"note\">This is the description of the whole study. <code>--quick</code> made fewer or shorter runs, \
             so its numbers of runs and times do not apply here.</p>\n",
        );
    }
    for paragraph in records.study.description.split("\n\n").filter(|p| !p.trim().is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", markdown(paragraph.trim()));
    }
}

/// Writes the title, the source, the banners and the tally of verdicts.
pub(crate) fn header(out: &mut String, records: &Records, compared: Option<&str>) {
    let _ = writeln!(out, "<h1>{}</h1>", escape(&records.title()));
    if let Some(compared) = compared {
        let _ = writeln!(out, "<p class=\"source\"><a href=\"#comparison\">{}</a></p>", escape(compared));
    }
    let source = &records.study.source;
    if !source.trim().is_empty() {
        let _ = writeln!(out, "<p class=\"source\">Compared with: {}</p>", markdown(source));
    }
    if records.study.quick {
        out.push_str(
            "<div class=\"banner quick\" role=\"note\"><p><strong>Quick run.</strong> <code>--quick</code> shortened this \
             study: fewer or shorter runs than it specifies. Draw no conclusions from it.</p></div>\n",
        );
    }
    distrust_banner(out, records);
    warnings_banner(out, records);
    tally(out, records);
}

/// Writes the number of values and claims with each verdict, the number of failed expectations, and the runs on which
/// they are based.
fn tally(out: &mut String, records: &Records) {
    out.push_str("<ul class=\"tally\" aria-label=\"Verdicts\">");
    let verdicts = || records.summary.iter().filter_map(|r| r.verdict);
    for kind in Verdict::ALL {
        let n = verdicts().filter(|v| *v == kind).count();
        if n > 0 {
            let _ = write!(out, "<li>{n} {}</li>", verdict(kind));
        }
    }
    let unjudged = records.claims().iter().filter(|row| row.verdict.is_none()).count();
    if unjudged > 0 {
        let _ = write!(out, "<li>no verdict: {}</li>", count(unjudged, "claim"));
    }
    if !records.expectations.is_empty() {
        let failed = records.expectations.iter().filter(|row| row.has_failed()).count();
        let of = count(records.expectations.len(), "expectation");
        let text = if failed == 0 { format!("{of} met") } else { format!("{failed} of {of} failed") };
        let class = if failed == 0 { "match" } else { "differs" };
        let _ = write!(out, "<li><a class=\"verdict {class}\" href=\"#expectations\">{text}</a></li>");
    }
    let untrusted = records.doubtful().len();
    let audit = match (records.runs.len(), untrusted) {
        (0, _) => String::new(),
        (1, 0) => ", valid".to_owned(),
        (_, 0) => ", all valid".to_owned(),
        (_, n) => format!(", {n} not to be trusted"),
    };
    let _ = write!(out, " <li class=\"soft\">{}{audit}</li>", escape(&runs_in_words(records)));
    let time = times_in_words(records);
    if !time.is_empty() {
        let clock = if records.runs.iter().all(Run::is_virtual) { "simulated" } else { "real time" };
        let _ = write!(out, " <li class=\"soft\">· {} {clock}</li>", escape(&time));
    }
    out.push_str("</ul>\n");
}

/// Describes the duration of the run, or the total duration of all runs.
fn times_in_words(records: &Records) -> String {
    let times: Vec<f64> = records.runs.iter().map(|r| r.record.duration_s).collect();
    match times.as_slice() {
        [] => String::new(),
        [one] => format!("{} s", trimmed(*one, 6)),
        many => {
            let longest = many.iter().copied().fold(f64::MIN, f64::max);
            format!("{} s in all, longest run {} s", trimmed(many.iter().sum(), 4), trimmed(longest, 4))
        }
    }
}

fn distrust_banner(out: &mut String, records: &Records) {
    let bad: Vec<_> = records.runs.iter().map(|r| (r, r.distrust())).filter(|(_, why)| !why.is_empty()).collect();
    if bad.is_empty() {
        return;
    }
    let verb = if bad.len() == 1 { "is" } else { "are" };
    let _ = write!(
        out,
        "<div class=\"banner distrust\" role=\"alert\"><p><strong>Not to be trusted.</strong> {} of {} {verb} not \
         valid:</p><ul>",
        count(bad.len(), "run"),
        records.runs.len()
    );
    let reasons: Vec<(&str, &String)> =
        bad.iter().flat_map(|(run, why)| why.iter().map(|w| (run.key.as_str(), w))).collect();
    for (key, why) in reasons.iter().take(REASONS_IN_BANNER) {
        let _ = write!(out, "<li><code>{}</code>: {}</li>", escape(short(key)), escape(why));
    }
    if reasons.len() > REASONS_IN_BANNER {
        let _ = write!(
            out,
            "<li>and {} more, see <a href=\"#validity\">Validity</a></li>",
            reasons.len() - REASONS_IN_BANNER
        );
    }
    out.push_str("</ul></div>\n");
}

/// Writes the banner about warnings. For a run that delivered nothing, the banner includes the reason.
fn warnings_banner(out: &mut String, records: &Records) {
    let warnings = || records.runs.iter().filter_map(|run| run.record.warnings.as_ref()).flatten();
    let silent = || warnings().filter(|warning| warning.has_kind(WarningKind::NothingDelivered));
    if let Some(first) = silent().next() {
        let of = if records.runs.len() > 1 {
            format!("{} of {} runs", silent().count(), records.runs.len())
        } else {
            String::new()
        };
        let of = if of.is_empty() { of } else { format!("In {of}: ") };
        let _ = writeln!(
            out,
            "<div class=\"banner distrust\" role=\"alert\"><p><strong>Nothing was delivered.</strong> {of}{}. See \
             <a href=\"#validity\">Validity</a>.</p></div>",
            escape(&first.text)
        );
    } else if warnings().next().is_some() {
        let kinds: BTreeSet<&str> = warnings().map(|warning| warning.name.as_str()).collect();
        let _ = writeln!(
            out,
            "<p class=\"note\">There are warnings ({}): see <a href=\"#validity\">Validity</a>.</p>",
            escape(&kinds.into_iter().collect::<Vec<_>>().join(", "))
        );
    }
}

/// Returns the beginning of a key, which suffices to find the folder.
pub(crate) fn short(key: &str) -> &str {
    key.get(..12).unwrap_or(key)
}

/// Returns the facts, the parameters and the axes of the study.
pub(crate) fn what_was_run(records: &Records) -> String {
    let mut out = String::from("<dl class=\"facts\">\n");
    let mut fact = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = writeln!(out, "<dt>{name}</dt><dd>{}</dd>", escape(value));
        }
    };
    fact("Runs", &runs_in_words(records));
    let list = |values: BTreeSet<&str>, most: usize| {
        let more = values.len().saturating_sub(most);
        let shown: Vec<&str> = values.into_iter().take(most).collect();
        if more > 0 { format!("{} and {more} more", shown.join(", ")) } else { shown.join(", ") }
    };
    fact("Build", &list(records.runs.iter().map(|r| r.record.build.as_str()).collect(), 4));
    let seeds: BTreeSet<u64> = records.runs.iter().map(|r| r.record.seed).collect();
    let derived = format!("{} derived from it", count(seeds.len(), "run seed"));
    if records.study.is_single_run() {
        let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
        fact("Seed", &list(seeds.iter().map(String::as_str).collect(), 4));
    } else {
        fact("Seed", &format!("{}; {derived}", records.study.seed));
    }
    let all_virtual = records.runs.iter().all(Run::is_virtual);
    fact(if all_virtual { "Simulated time" } else { "Time" }, &times_in_words(records));
    fact("Clock", &list(records.runs.iter().map(|r| r.record.clock.as_str()).collect(), 4));
    out.push_str("</dl>\n");
    parameters(&mut out, records);
    if !records.study.text.trim().is_empty() {
        let _ = writeln!(
            out,
            "<details><summary>The whole study, every default written out (<code>study.toml</code>)</summary>\
             <pre tabindex=\"0\">{}</pre></details>",
            escape(&records.study.text)
        );
    }
    out
}

fn runs_in_words(records: &Records) -> String {
    let points: BTreeSet<_> = records.results.rows.iter().map(|r| &r.point).collect();
    let runs = count(records.runs.len(), "run");
    if points.len() > 1 { format!("{runs} at {}", count(points.len(), "point")) } else { runs }
}

fn parameters(out: &mut String, records: &Records) {
    let study = &records.study;
    if study.parameters.is_empty() && study.axis.is_empty() {
        return;
    }
    let axes = study.axis.iter().map(|axis| (&axis.name, "axis", axis.values.join(", "), &axis.text));
    let parameters = study.parameters.iter().map(|(name, parameter)| {
        let value = parameter.default.as_ref().map_or_else(|| "as in the scenario".to_owned(), shown);
        (name, "parameter", value, &parameter.text)
    });
    let rows = axes.chain(parameters).map(|(name, role, value, text)| {
        vec![
            Field::Markup(format!("<code>{}</code>", escape(name))),
            Field::Text(role.to_owned()),
            Field::Text(value),
            Field::Markup(markdown(text)),
        ]
    });
    let headings =
        vec![Heading::text("Name"), Heading::text("Role"), Heading::long("Value"), Heading::long("What it is")];
    Table::of_rows("Parameters and axes", 1, headings, rows).write(out);
}
