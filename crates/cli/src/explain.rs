//! `fullpipe explain`: the meaning of a name, from the declarations.

use crate::exit::Failure;
use crate::names::{self, KEYS, NamedItem};
use crate::output::print_line;
use fullpipe::scenario::schema::nearest_name;
use std::fmt::Write;

/// The maximum number of entries that are printed in full.
const MOST_ENTRIES: usize = 8;
/// The maximum number of printed paths of a key, values or columns.
const MOST_PATHS: usize = 6;

/// Prints all entries with this name.
pub(crate) fn explain(name: &str) -> Result<(), Failure> {
    if name.trim().is_empty() {
        return Err(Failure::usage(
            "the name is empty; expected a key, a column, a metric or another name, such as `cwnd_bytes`",
        ));
    }
    let all = names::all();
    let found = find(&all, name);
    if found.is_empty() {
        return Err(unknown(&all, name));
    }
    let (shown, more) = found.split_at(found.len().min(MOST_ENTRIES));
    let texts: Vec<String> = shown.iter().map(|named| text(named)).collect();
    print_line!("{}", texts.join("\n").trim_end());
    if !more.is_empty() {
        print_line!("\n{} more have this name; for one of them, give a longer path:", more.len());
        more.iter().for_each(|named| print_line!("  {}", named.paths.first().unwrap_or(&named.what)));
    }
    Ok(())
}

/// Returns all entries with this name, and all keys whose paths end with it. The complete path of a key selects only
/// that key.
fn find<'a>(all: &'a [NamedItem], name: &str) -> Vec<&'a NamedItem> {
    let name = name.trim().trim_matches(['[', ']', '"', '`']);
    let wanted: Vec<&str> = name.split('.').collect();
    let of_paths = |fits: &dyn Fn(&[&str]) -> bool| -> Vec<&'a NamedItem> {
        let has_path = |named: &&NamedItem| named.paths.iter().any(|path| fits(&path.split('.').collect::<Vec<_>>()));
        all.iter().filter(has_path).collect()
    };
    if wanted.len() > 1 {
        let exact = of_paths(&|path| is_path(path, &wanted, true));
        if !exact.is_empty() {
            return exact;
        }
        let ending = of_paths(&|path| is_path(path, &wanted, false));
        if !ending.is_empty() {
            return ending;
        }
    }
    let is_alike = |named: &&NamedItem| named.name.eq_ignore_ascii_case(name);
    all.iter().filter(is_alike).collect()
}

/// Returns whether a path equals or ends with the wanted path. `NAME` and `N` match any name, and can be omitted.
fn is_path(path: &[&str], wanted: &[&str], is_whole: bool) -> bool {
    match (path, wanted) {
        ([], []) => true,
        (_, []) => !is_whole,
        ([], _) => false,
        ([above @ .., "NAME" | "N"], [before @ .., _]) => {
            is_path(above, wanted, is_whole) || is_path(above, before, is_whole)
        }
        ([above @ .., key], [before @ .., last]) => key == last && is_path(above, before, is_whole),
    }
}

/// Formats an entry as lines.
fn text(named: &NamedItem) -> String {
    let mut text = format!("{}: {}\n", named.name, named.what);
    let mut line = |line: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {}", line.trim_end());
    };
    if !named.text.is_empty() {
        line(&names::plain(&named.text));
    }
    for (fact, value) in named.facts.iter().filter(|(_, value)| !value.is_empty()) {
        // The values of a choice are listed below, each with its text.
        if *fact == "type" && named.list.iter().any(|(name, _)| value.contains(name.as_str())) {
            continue;
        }
        line(&format!("{fact}: {value}"));
    }
    if !named.paths.is_empty() {
        let (shown, more) = named.paths.split_at(named.paths.len().min(MOST_PATHS));
        let more = if more.is_empty() { String::new() } else { format!(", and {} more", more.len()) };
        line(&format!("paths: {}{more}", shown.join(", ")));
    }
    if !named.list.is_empty() {
        line(if named.group == KEYS { "values:" } else { "with:" });
        let width = named.list.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        for (name, text) in &named.list {
            line(&format!("  {name:width$}  {}", names::plain(text)));
        }
    }
    text
}

/// Returns the error for an unknown name.
fn unknown(all: &[NamedItem], name: &str) -> Failure {
    let hint = nearest_names(all, name);
    Failure::usage(format!("unknown name `{name}`{hint} (`fullpipe help WORD` searches names and texts)"))
}

/// Returns the known names that are similar to this one, for an error message.
pub(crate) fn nearest_names(all: &[NamedItem], name: &str) -> String {
    let last = name.rsplit('.').next().unwrap_or(name);
    let mut names: Vec<&str> = all.iter().map(|named| named.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    // Names that contain the name, otherwise the nearest names by spelling.
    let containing = names.iter().copied().filter(|name| last.len() > 2 && name.contains(last));
    let mut near: Vec<&str> = containing.take(6).collect();
    if near.is_empty() {
        near.extend(nearest_name(last, names.iter().copied()));
    }
    match near.as_slice() {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        several => format!("; the nearest names are {}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_matches_without_names_of_elements() {
        let path = ["flow", "NAME", "tcp", "ecn"];
        for wanted in ["flow.bulk.tcp.ecn", "flow.0.tcp.ecn", "flow.tcp.ecn"] {
            let wanted: Vec<&str> = wanted.split('.').collect();
            assert!(is_path(&path, &wanted, true), "{wanted:?}");
        }
        assert!(is_path(&path, &["tcp", "ecn"], false) && !is_path(&path, &["tcp", "ecn"], true));
        assert!(!is_path(&path, &["quic", "ecn"], false));
    }

    #[test]
    fn complete_path_finds_one_key_and_a_name_finds_all() {
        let all = names::all();
        for (path, what) in [
            ("topology.bottleneck.queue", "key of a topology link"),
            ("flow.0.congestion", "key of a flow"),
            ("measurement.from", "key of a measurement"),
        ] {
            let found = find(&all, path);
            assert_eq!(found.len(), 1, "{path}: {found:#?}");
            assert!(found[0].what.starts_with(what), "{path}: {}", found[0].what);
        }
        assert!(find(&all, "limit").len() > 3);
        assert_eq!(find(&all, "codel")[0].what, "queue discipline");
        for term in ["undecided", "BDP", "study", "base round-trip time"] {
            let found = find(&all, term);
            assert!(found.iter().any(|named| named.group == names::TERMS), "{term}: {found:#?}");
        }
    }

    #[test]
    fn each_declared_name_has_an_explanation() {
        let all = names::all();
        assert!(all.len() > 500, "{}", all.len());
        for named in &all {
            assert!(!named.text.trim().is_empty(), "{}: {} has no text", named.name, named.what);
            assert!(find(&all, &named.name).iter().any(|found| found.what == named.what), "{}", named.name);
        }
    }
}
