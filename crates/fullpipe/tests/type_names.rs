//! Tests that the names of public types are nouns: no participles, and no one-word names with several meanings.

use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Nouns and proper names that end like a participle.
const NOUNS: [&str; 6] = ["Bed", "Embed", "Feed", "Red", "Seed", "Speed"];
/// Participles that do not end in "ed".
const IRREGULAR: [&str; 30] = [
    "Begun",
    "Built",
    "Chosen",
    "Come",
    "Drawn",
    "Found",
    "Given",
    "Gone",
    "Heard",
    "Held",
    "Hidden",
    "Kept",
    "Known",
    "Left",
    "Lost",
    "Made",
    "Met",
    "Paid",
    "Seen",
    "Sent",
    "Shown",
    "Spent",
    "Taken",
    "Thought",
    "Thrown",
    "Told",
    "Understood",
    "Withheld",
    "Worn",
    "Written",
];
/// One-word names that say nothing without the code.
const VAGUE: [&str; 7] = ["Course", "Ears", "Fate", "Habits", "Way", "Wish", "Witness"];

/// The last word of a name in camel case.
fn last_word(name: &str) -> &str {
    name.rfind(char::is_uppercase).map_or(name, |at| &name[at..])
}

fn is_noun(name: &str) -> bool {
    let word = last_word(name);
    let is_participle = (word.ends_with("ed") && !NOUNS.contains(&word)) || IRREGULAR.contains(&word);
    !is_participle && !VAGUE.contains(&name)
}

/// The public type that a line of code declares.
fn declared_type(line: &str) -> Option<&str> {
    let mut words = line.trim_start().strip_prefix("pub ")?.split(|c: char| !c.is_alphanumeric() && c != '_');
    matches!(words.next()?, "struct" | "enum" | "trait" | "type" | "union").then(|| words.next()).flatten()
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

#[test]
fn public_types_are_named_by_nouns() {
    let mut files = Vec::new();
    for krate in std::fs::read_dir(Path::new(ROOT).join("crates")).expect("the crates are in the repository") {
        sources(&krate.expect("a readable folder").path().join("src"), &mut files);
    }
    let (mut types, mut wrong) = (0, Vec::new());
    for file in &files {
        let text = std::fs::read_to_string(file).expect("sources are text");
        for name in text.lines().filter_map(declared_type) {
            types += 1;
            if !is_noun(name) {
                wrong.push(format!("{}: {name}", file.strip_prefix(ROOT).unwrap_or(file).display()));
            }
        }
    }
    assert!(types > 500, "only {types} public types found in {} files", files.len());
    assert!(
        wrong.is_empty(),
        "type names that are not nouns (style: types are nouns, functions are verbs):\n{}",
        wrong.join("\n")
    );
}

#[test]
fn participles_and_vague_names_are_recognized() {
    for name in ["Told", "AckSent", "Refused", "Way", "Fated", "Known"] {
        assert!(!is_noun(name), "{name}");
    }
    for name in ["LinkObserver", "HighSpeed", "SentSegment", "MediumDirection", "QueuedPacket", "Red", "Course2"] {
        assert!(is_noun(name), "{name}");
    }
    assert_eq!(declared_type("    pub struct Told(u8);"), Some("Told"));
    assert_eq!(declared_type("pub(crate) struct Told(u8);"), None);
    assert_eq!(declared_type("pub fn told() {}"), None);
}
