//! Tests that pages, messages and comments contain none of the phrases in `phrases.txt`, which readers did not understand.

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// The list itself, this test, and the page that quotes messages of earlier versions.
const EXEMPT: [&str; 3] = ["phrases.txt", "style.rs", "CHANGELOG.md"];
/// The extensions of files with texts for readers.
const TEXTS: [&str; 4] = ["rs", "md", "toml", "txt"];

/// Each phrase with its replacement.
fn phrases() -> Vec<(String, &'static str)> {
    let lines = include_str!("phrases.txt").lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &'static str| line.split_once(" => ").unwrap_or_else(|| panic!("no replacement: {line}"));
    lines.map(pair).map(|(phrase, instead)| (phrase.to_lowercase(), instead)).collect()
}

/// A text in lowercase on one line, without comment markers and without the markers that continue a string.
fn one_line(text: &str) -> String {
    let words = text.lines().flat_map(|line| {
        let line = line.trim().trim_end_matches('\\');
        let line = ["///", "//!", "//", "#"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        line.split_whitespace()
    });
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !name.starts_with('.') && name != "target" {
                files(&path, found);
            }
        } else if !EXEMPT.contains(&name.as_str())
            && path.extension().is_some_and(|end| TEXTS.iter().any(|text| end == *text))
        {
            found.push(path);
        }
    }
}

#[test]
fn no_text_contains_a_phrase_of_the_list() {
    let phrases = phrases();
    assert!(phrases.len() > 20, "{}", phrases.len());
    let mut texts = Vec::new();
    files(Path::new(ROOT), &mut texts);
    assert!(texts.len() > 500, "only {} texts", texts.len());
    let mut found = Vec::new();
    for file in texts {
        // Some test files are not UTF-8.
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let text = one_line(&text);
        let hits = phrases.iter().filter(|(phrase, _)| text.contains(phrase));
        found.extend(hits.map(|(phrase, instead)| format!("{}: \"{phrase}\": write {instead:?}", file.display())));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn phrase_is_found_across_lines_of_comments_and_strings() {
    let text =
        "/// It asks for a sign\n    /// of life.\nlet text = \"all their ways out \\\n    lead by the router\";";
    let line = one_line(text);
    assert!(line.contains("sign of life") && line.contains("ways out lead by the router"), "{line}");
}
