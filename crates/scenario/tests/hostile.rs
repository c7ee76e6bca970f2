//! Tests with hostile input: no text causes a panic, excessive memory use or a long run time, and an accepted file
//! equals its resolved file.

use fullpipe_scenario::{Errors, Override, load};
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

/// Whether the text is accepted. Checks the conditions that hold for every result.
fn answered(text: &str, overrides: &[Override]) -> bool {
    match load(text, "any.toml", overrides) {
        Ok(loaded) => {
            let again = load(&loaded.resolved, "resolved.toml", &[]);
            let again = again.unwrap_or_else(|errors| panic!("{errors}\nin\n{}\nfrom\n{text}", loaded.resolved));
            assert_eq!(again.scenario, loaded.scenario, "{text}");
            assert_eq!(again.resolved, loaded.resolved, "{text}");
            true
        }
        Err(Errors(errors)) => {
            assert!(!errors.is_empty() && errors.len() <= 100);
            let lines = text.lines().count().max(1);
            for error in &errors {
                // An error is at a line of the file or in an override.
                if error.line == 0 {
                    assert!(error.file.starts_with("--set "), "{error}");
                } else {
                    assert_eq!(error.file, "any.toml");
                    assert!(error.line <= lines + 1 && error.column >= 1, "{error} in\n{text}");
                }
                assert!(!error.message.is_empty());
                assert!(!error.to_string().chars().any(char::is_control), "{error:?}");
                assert!(
                    error.to_string().len()
                        < 2000 + overrides.iter().map(|o| o.value.len() + o.path.len()).sum::<usize>(),
                    "{error}"
                );
            }
            false
        }
    }
}

#[test]
fn hostile_files_are_rejected_or_resolve_to_the_same_scenario() {
    let mut accepted = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(here().join("tests/corpus")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        count += 1;
        if answered(&String::from_utf8_lossy(&bytes), &[]) {
            accepted.push(path.file_stem().unwrap().to_string_lossy().into_owned());
        }
    }
    assert!(count >= 35);
    accepted.sort();
    let expected = [
        "byte-order-mark",
        "carriage-returns",
        "largest-everything",
        "longest-transfers",
        "minus-zero",
        "slow-rate",
        "smallest-float",
    ];
    assert_eq!(accepted, expected);
}

/// Initial files: all scenario files of the repository.
static SEEDS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let root = here().join("../../scenarios");
    let mut texts = Vec::new();
    for folder in [root.clone(), root.join("bench"), here().join("tests/wrong")] {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "toml")) {
            texts.push(std::fs::read_to_string(path).unwrap());
        }
    }
    // Large files are too slow for this test; other tests cover them.
    texts.retain(|text| !text.contains("10000") && !text.contains("1000000"));
    texts
});

/// Fragments of files, and fragments that are not valid.
const PIECES: &[&str] = &[
    "[topology]",
    "kind",
    "\"dumbbell\"",
    "\"chain\"",
    "\"ethernet\"",
    "pairs",
    "access",
    "bottleneck",
    "access_right",
    "link",
    "[[link]]",
    "[[host]]",
    "[[router]]",
    "[[ethernet]]",
    "[[flow]]",
    "[[probe]]",
    "[tcp]",
    "[flow.tcp]",
    "name",
    "from",
    "to",
    "rate",
    "delay",
    "mtu",
    "framing",
    "queue",
    "discipline",
    "loss",
    "reverse",
    "hosts",
    "arp",
    "duplex",
    "count",
    "protocol",
    "workload",
    "size",
    "payload",
    "interval",
    "packets",
    "transfers",
    "start",
    "start_spread",
    "\"left*\"",
    "\"right1\"",
    "\"source\"",
    "\"sink\"",
    "\"a\"",
    "\"b\"",
    "\"1Mbit/s\"",
    "\"10ms\"",
    "\"0s\"",
    "\"-1s\"",
    "\"100packets\"",
    "\"unlimited\"",
    "\"bernoulli\"",
    "\"periodic\"",
    "\"fifo\"",
    "\"none\"",
    "\"udp\"",
    "\"idle\"",
    "\"constant-rate\"",
    "\"ns3\"",
    "probability",
    "every",
    "offset",
    "limit",
    "0.5",
    "0",
    "1",
    "-1",
    "7",
    "9223372036854775807",
    "nan",
    "inf",
    "true",
    "false",
    "{",
    "}",
    "[",
    "]",
    "=",
    ",",
    ".",
    "\n",
    "\n",
    "\n",
    "\"",
    "#",
    "\u{feff}",
    "\r",
    "\0",
    "é",
    "metrics",
    "[\"drops\"]",
    "[\"throughput_bps\"]",
    "flow",
    "\"*\"",
    "title",
    "duration",
    "seed",
    "preset",
    "mss",
    "congestion",
    "\"newreno\"",
    "1979-05-27",
    "[[program]]",
    "[real_time]",
    "host",
    "\"left1\"",
    "command",
    "[\"true\"]",
    "after",
    "ready",
    "port",
    "from_by",
    "\"kernel\"",
    "\"program\"",
    "ipv4",
    "\"10.0.0.2\"",
    "interface",
];

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![8 => prop::sample::select(PIECES).prop_map(str::to_string), 1 => "\\PC{0,6}"]
}

#[derive(Clone, Debug)]
enum Change {
    Delete(prop::sample::Index, usize),
    Insert(prop::sample::Index, String),
    Copy(prop::sample::Index, prop::sample::Index, usize),
    Swap(prop::sample::Index, prop::sample::Index),
    Byte(prop::sample::Index, u8),
}

fn change() -> impl Strategy<Value = Change> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), 0..20usize).prop_map(|(at, length)| Change::Delete(at, length)),
        (at(), piece()).prop_map(|(at, piece)| Change::Insert(at, piece)),
        (at(), at(), 0..40usize).prop_map(|(from, to, length)| Change::Copy(from, to, length)),
        (at(), at()).prop_map(|(a, b)| Change::Swap(a, b)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
    ]
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for change in changes {
        if bytes.is_empty() {
            break;
        }
        let length = bytes.len();
        match change {
            Change::Delete(at, count) => {
                let at = at.index(length);
                bytes.drain(at..(at + count).min(length));
            }
            Change::Insert(at, piece) => {
                let at = at.index(length);
                bytes.splice(at..at, piece.bytes());
            }
            Change::Copy(from, to, count) => {
                let from = from.index(length);
                let part = bytes[from..(from + count).min(length)].to_vec();
                let to = to.index(length);
                bytes.splice(to..to, part);
            }
            Change::Swap(a, b) => bytes.swap(a.index(length), b.index(length)),
            Change::Byte(at, byte) => bytes[at.index(length)] = *byte,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Changes that keep the text valid TOML: they replace the value after an equals sign.
fn revalued(text: &str, at: &prop::sample::Index, value: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let with_value: Vec<usize> = (0..lines.len()).filter(|n| lines[*n].contains(" = ")).collect();
    if with_value.is_empty() {
        return text.to_string();
    }
    let line = with_value[at.index(with_value.len())];
    let key = lines[line].split(" = ").next().unwrap_or_default();
    let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_string()).collect();
    lines[line] = format!("{key} = {value}");
    lines.join("\n")
}

fn toml_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(PIECES)
            .prop_filter("a value", |piece| piece.starts_with('"') && piece.len() > 2)
            .prop_map(str::to_string),
        any::<i64>().prop_map(|number| number.to_string()),
        (0..100i64).prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| format!("{number:?}").to_lowercase()),
        any::<bool>().prop_map(|boolean| boolean.to_string()),
        "[0-9]{1,22}(\\.[0-9]{1,12})?(ms|s|us|B|kB|Mbit/s|bps|packets)".prop_map(|text| format!("\"{text}\"")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = prop::sample::select(PIECES)
            .prop_filter("a key", |piece| piece.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
            .prop_map(str::to_string);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|list| format!("[{}]", list.join(", "))),
            prop::collection::btree_map(key, inner, 0..4).prop_map(|map| {
                let pairs: Vec<String> = map.iter().map(|(key, value)| format!("{key} = {value}")).collect();
                format!("{{ {} }}", pairs.join(", "))
            }),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    let known = prop::sample::select(PIECES).prop_map(|piece| piece.trim_matches(['[', ']', '"']).to_string());
    prop::collection::vec(prop_oneof![4 => known, 1 => "[0-2]", 1 => "\\PC{0,4}"], 1..5)
        .prop_map(|parts| parts.join("."))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        answered(&String::from_utf8_lossy(&bytes), &[]);
    }

    #[test]
    fn random_fragments_do_not_panic(pieces in prop::collection::vec(piece(), 0..60)) {
        answered(&pieces.join(" "), &[]);
    }

    #[test]
    fn changed_files_do_not_panic(seed in any::<prop::sample::Index>(), changes in prop::collection::vec(change(), 1..6)) {
        answered(&changed(&SEEDS[seed.index(SEEDS.len())], &changes), &[]);
    }

    #[test]
    fn replaced_values_do_not_panic(seed in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), value in toml_value()) {
        answered(&revalued(&SEEDS[seed.index(SEEDS.len())], &at, &value), &[]);
    }

    #[test]
    fn random_trees_do_not_panic(entries in prop::collection::vec((0..14usize, toml_value()), 0..8)) {
        let keys = [
            "title", "duration", "seed", "topology", "host", "router", "link", "ethernet", "tcp", "flow", "probe", "program",
            "real_time", "measurement",
        ];
        let text: String = entries.iter().map(|(key, value)| format!("{} = {value}\n", keys[*key])).collect();
        answered(&text, &[]);
    }

    #[test]
    fn random_overrides_do_not_panic(
        seed in any::<prop::sample::Index>(),
        sets in prop::collection::vec((path(), prop_oneof![toml_value(), "\\PC{0,10}"]), 1..4),
    ) {
        let overrides: Vec<Override> = sets.into_iter().map(|(path, value)| Override { path, value }).collect();
        answered(&SEEDS[seed.index(SEEDS.len())], &overrides);
    }
}
