//! `fullpipe help TOPIC`: the help of a command, or a search over commands, keys, columns, metrics, names and pages.

use crate::arguments::Arguments;
use crate::exit::Failure;
use crate::explain;
use crate::manual;
use crate::names::{self, GROUPS};
use crate::output::print_line;
use clap::CommandFactory;
use fullpipe::embedded;

/// The maximum number of rows of a group.
const MOST_ROWS: usize = 10;
/// The maximum width of a line in characters; longer lines are cut.
const WIDTH: usize = 120;

/// Runs `fullpipe help`.
pub(crate) fn help(topic: &[String]) -> Result<(), Failure> {
    if topic.iter().all(|word| word.trim().is_empty()) {
        print_line!("{}", Arguments::command().render_long_help().to_string().trim_end());
        return Ok(());
    }
    if let Ok(mut command) = manual::find(topic) {
        print_line!("{}", command.render_long_help().to_string().trim_end());
        return Ok(());
    }
    search(&topic.join(" "))
}

/// A row of a search result: its text, and how well it matches (0 is best).
struct Row {
    fit: usize,
    name: String,
    text: String,
}

fn search(topic: &str) -> Result<(), Failure> {
    let groups = find(topic);
    if groups.is_empty() {
        let hint = explain::nearest_names(&names::all(), topic);
        return Err(Failure::usage(format!("nothing is found for `{topic}`{hint}")));
    }
    for (number, (group, rows)) in groups.into_iter().enumerate() {
        if number > 0 {
            print_line!("");
        }
        let (shown, more) = rows.split_at(rows.len().min(MOST_ROWS));
        print_line!("{group}:");
        let width = shown.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        shown.iter().for_each(|row| print_line!("  {}", cut(&format!("{:width$}  {}", row.name, row.text))));
        if !more.is_empty() {
            print_line!("  and {} more", more.len());
        }
    }
    print_line!("\n`fullpipe explain NAME` prints all about a name, `fullpipe help COMMAND` the options of a command.");
    Ok(())
}

/// Returns the groups with a match, each with its best matches first. The group with the best match is the first; of
/// equal groups, keys precede the options of commands. Pages are last.
fn find(topic: &str) -> Vec<(&'static str, Vec<Row>)> {
    let words: Vec<String> = topic.split_whitespace().map(str::to_lowercase).collect();
    let all = names::all();
    let mut groups: Vec<(&str, Vec<Row>)> = Vec::new();
    for group in GROUPS {
        let of_group = all.iter().filter(|named| named.group == group);
        let rows = of_group.filter_map(|named| {
            let text = names::plain(&named.text);
            let fit = fit(&words, &named.name, &text)?;
            Some(Row { fit, name: named.name.clone(), text: format!("({}) {text}", named.what) })
        });
        groups.push((group, rows.collect()));
    }
    groups.push(("commands", commands(&words)));
    groups.sort_by_key(|(_, rows)| rows.iter().map(|row| row.fit).min());
    groups.push(("pages", pages(&words)));
    groups.retain(|(_, rows)| !rows.is_empty());
    groups.iter_mut().for_each(|(_, rows)| rows.sort_by_key(|row| row.fit));
    groups
}

/// Returns how well a name and its text match the words; `None` if a word does not occur. A name that equals one of
/// several words matches even if another word does not occur, so `queue size` finds the key `queue`.
fn fit(words: &[String], name: &str, text: &str) -> Option<usize> {
    let (name, text) = (name.to_lowercase(), text.to_lowercase());
    if words.len() > 1 && words.contains(&name) {
        return Some(1);
    }
    if !words.iter().all(|word| name.contains(word.as_str()) || text.contains(word.as_str())) {
        return None;
    }
    let is_whole = words.len() == 1 && name == words[0];
    let in_name = words.iter().filter(|word| name.contains(word.as_str())).count();
    Some(if is_whole { 0 } else { 1 + words.len() - in_name })
}

fn commands(words: &[String]) -> Vec<Row> {
    let mut rows = Vec::new();
    let Ok(root) = manual::find(&[]) else { return rows };
    let mut commands: Vec<clap::Command> = root.get_subcommands().cloned().collect();
    commands.reverse();
    while let Some(command) = commands.pop() {
        let name = command.get_bin_name().unwrap_or_default().to_owned();
        let text = command.get_about().map(ToString::to_string).unwrap_or_default();
        let options = command.get_arguments().filter(|argument| !argument.is_hide_set()).filter_map(|argument| {
            let option = format!("{name} --{}", argument.get_long()?);
            let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
            // The name of the command is in each of its options, so it does not count.
            let fit = fit(words, argument.get_long()?, &text)?;
            Some(Row { fit: fit + 1, name: option, text })
        });
        rows.extend(options);
        if let Some(fit) = fit(words, &name, &text) {
            rows.push(Row { fit, name, text });
        }
        commands.extend(command.get_subcommands().cloned());
    }
    // Every command has `--help`.
    rows.retain(|row| !row.name.ends_with(" --help"));
    rows
}

/// Returns the sections of the documentation in which all words occur.
fn pages(words: &[String]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (file, page) in embedded::PAGES {
        let mut in_code = false;
        let (mut title, mut body) = (String::new(), String::new());
        let mut section = |title: &str, body: &str| {
            if let Some(fit) = fit(words, title, body).filter(|_| !title.is_empty()) {
                // Sections with a word in the heading rank first. Other sections rank by the number of occurrences.
                let body = body.to_lowercase();
                let mentions: usize = words.iter().map(|word| body.matches(word.as_str()).count()).sum();
                let phrases = body.matches(&words.join(" ")).count();
                let fit = fit * 1000 + 999 - (20 * phrases + mentions).min(999);
                rows.push(Row { fit, name: format!("docs/{file}"), text: names::plain(title) });
            }
        };
        for line in page.lines() {
            in_code ^= line.starts_with("```");
            match line.strip_prefix('#').filter(|_| !in_code) {
                Some(heading) => {
                    section(&title, &body);
                    title = heading.trim_start_matches('#').trim().to_owned();
                    body.clear();
                }
                None => {
                    body.push_str(line);
                    body.push('\n');
                }
            }
        }
        section(&title, &body);
    }
    rows
}

/// Cuts a line to the width of a terminal.
fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}...", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn search_requires_all_words_and_prefers_names_to_texts() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        assert_eq!(fit(&words("codel"), "codel", "drops"), Some(0));
        assert_eq!(fit(&words("codel"), "fq-codel", "drops"), Some(1));
        assert_eq!(fit(&words("queue drop"), "codel", "Drops packets of the queue"), Some(3));
        assert_eq!(fit(&words("queue size"), "queue", "Limit of the link"), Some(1));
        assert_eq!(fit(&words("queue mark"), "codel", "Drops packets of the queue"), None);
    }

    /// Searches by many words of the pages, whose matches rank by the number of occurrences.
    #[test]
    fn search_accepts_words_of_the_pages() {
        let mut words: Vec<&str> = Vec::new();
        for (_, page) in embedded::PAGES {
            words.extend(page.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()));
        }
        words.sort_unstable();
        words.dedup();
        assert!(words.len() > 1000, "{}", words.len());
        for word in words.into_iter().step_by(8) {
            pages(&[word.to_lowercase()]);
            cut(word);
        }
        // Keys with the name precede options of commands that only mention it.
        let groups = find("queue size");
        assert_eq!((groups[0].0, groups[0].1[0].name.as_str()), (names::KEYS, "queue"));
        for topic in ["loss", "plot", "buffer", "rate"] {
            assert!(!find(topic).is_empty(), "{topic}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn search_accepts_any_text(topic in ".{0,40}", words in "[a-z ]{1,6}") {
            find(&topic);
            find(&words).iter().flat_map(|(_, rows)| rows).for_each(|row| { cut(&row.text); });
        }
    }
}
