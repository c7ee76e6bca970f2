//! Tests with missing or invalid records: the result is an error with the file name, never a panic and never a
//! malformed page.

use crate::records::{Folder, parse};
use proptest::prelude::*;
use std::fs;

#[test]
fn missing_record_gives_an_error_with_its_name() {
    for file in Folder::copy_of("study").records() {
        let folder = Folder::copy_of("study");
        fs::remove_file(folder.0.join(&file)).unwrap();
        match fullpipe_report::write_report(&folder.0) {
            // The flows of a study are read only if a plot needs them.
            Ok(_) => assert!(file.ends_with("flows.csv"), "{file}"),
            Err(error) => {
                assert!(error.to_string().starts_with("cannot read ") && error.to_string().contains(&file), "{error}");
            }
        }
    }
    let folder = Folder::copy_of("run");
    fs::remove_file(folder.0.join("runs/c0ffee0123456789abcdef01/flows.csv")).unwrap();
    assert!(fullpipe_report::write_report(&folder.0).unwrap_err().to_string().contains("flows.csv"));
    // Samples are optional.
    let folder = Folder::copy_of("run");
    fs::remove_file(folder.0.join("runs/c0ffee0123456789abcdef01/series.csv")).unwrap();
    let built = fullpipe_report::write_report(&folder.0).unwrap();
    // Without samples, the picture is that of the flows.
    assert!(built.plots.len() == 1 && built.plots[0].ends_with("plots/flows.svg"), "{:?}", built.plots);
    assert_eq!(folder.text("plots/flows.csv"), "series,flow,goodput_bps\n,bulk.2,46902000\n,bulk.1,46901000\n");
}

#[test]
fn wrong_record_gives_an_error_with_line_and_expectation() {
    let check = |fixture: &str, file: &str, old: &str, new: &str, expected: &str| {
        let folder = Folder::copy_of(fixture);
        folder.replace(file, old, new);
        let error = match fullpipe_report::write_report(&folder.0) {
            Ok(_) => panic!("{file}: {new} was accepted"),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(file) && error.contains(expected), "{error} is not: {expected}");
    };
    check("study", "study.toml", "seed = 5321", "seed = ", "line 5: invalid TOML");
    check(
        "study",
        "study.toml",
        "kind = \"bars\"",
        "kind = \"pie\"",
        "unknown value \"pie\" for plot.6.kind; expected one of \"line\", \"bars\"",
    );
    check(
        "study",
        "study.toml",
        "y_scale = \"log\"",
        "y_scale = \"cube\"",
        "unknown value \"cube\" for plot.1.y_scale; expected \"linear\" or \"log\"",
    );
    check("study", "summary.csv", "point,metric", "points,metric", "line 1: has no column `point`");
    check("study", "summary.csv", ",refuted,", ",refuting,", "column `verdict`: expected match, differs");
    check("study", "summary.csv", ",30,", ",3.5,", "column `n`: expected a count, found `3.5`");
    check(
        "study",
        "summary.csv",
        "packets=10000;draw=published,rx",
        "packets:10000;draw=published,rx",
        "line 2: column `point`",
    );
    check(
        "study",
        "results.csv",
        "seed,key",
        "key,seed",
        "line 1: expected column `seed` before `key`, found it after",
    );
    let folder = Folder::copy_of("study");
    let key =
        folder.records().iter().find_map(|r| r.strip_prefix("runs/")?.split('/').next().map(str::to_owned)).unwrap();
    check("study", "results.csv", &key, "../../etc", "column `key`: expected letters, digits");
    let run = format!("runs/{key}/run.json");
    check("study", &run, "\"seed\"", "\"sead\"", "has no `seed`");
    check("study", &run, "\"failures\": []", "\"failures\": 7", "`audit.failures`: expected an array, found 7");
    check("study", &run, "{", "", "is not valid JSON");
    let run = "runs/c0ffee0123456789abcdef01";
    check(
        "run",
        &format!("{run}/flows.csv"),
        "6299.54",
        "6299.5x",
        "line 2: column `delay_sum_s`: expected a number of seconds, found `6299.5x`",
    );
    check("run", &format!("{run}/flows.csv"), "6299.54", "inf", "expected a number of seconds, found `inf`");
    check(
        "run",
        &format!("{run}/series.csv"),
        "0.400000,bulk.1",
        "0.100000,bulk.1",
        "is earlier than the previous time",
    );
}

#[test]
fn report_that_cannot_be_written_gives_an_error() {
    let folder = Folder::copy_of("run");
    fs::write(folder.0.join("plots"), "not a folder").unwrap();
    let error = fullpipe_report::write_report(&folder.0).unwrap_err().to_string();
    assert!(error.starts_with("cannot write ") && error.contains("plots"), "{error}");
}

/// The damage of a record.
#[derive(Clone, Debug)]
enum Damage {
    Cut(usize),
    Flip(usize, u8),
    Remove(usize, usize),
    Insert(usize, Vec<u8>),
    /// Replaces the n-th number.
    Number(usize, &'static str),
    /// Exchanges two lines.
    Swap(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let numbers = [
        "-1",
        "0",
        "1e300",
        "-1e200",
        "1e-300",
        "nan",
        "inf",
        "99999999999999999999",
        "18446744073709551616",
        "1e200",
        "",
        "true",
        "-0",
        "5%",
        "0x10",
        "\"",
        "<script>",
    ];
    prop_oneof![
        any::<usize>().prop_map(Damage::Cut),
        (any::<usize>(), any::<u8>()).prop_map(|(a, b)| Damage::Flip(a, b)),
        (any::<usize>(), 1..200_usize).prop_map(|(a, b)| Damage::Remove(a, b)),
        (any::<usize>(), prop::collection::vec(any::<u8>(), 1..30)).prop_map(|(a, b)| Damage::Insert(a, b)),
        (any::<usize>(), prop::sample::select(numbers.to_vec())).prop_map(|(a, b)| Damage::Number(a, b)),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Damage::Swap(a, b)),
    ]
}

fn apply(bytes: &mut Vec<u8>, damage: &Damage) {
    let length = bytes.len().max(1);
    match damage {
        Damage::Cut(at) => bytes.truncate(at % length),
        Damage::Flip(at, mask) => {
            if let Some(byte) = bytes.get_mut(at % length) {
                *byte ^= mask;
            }
        }
        Damage::Remove(at, count) => {
            let start = (at % length).min(bytes.len());
            let end = (start + count).min(bytes.len());
            bytes.drain(start..end);
        }
        Damage::Insert(at, new) => {
            let at = (at % length).min(bytes.len());
            bytes.splice(at..at, new.iter().copied());
        }
        Damage::Number(which, new) => {
            let digit = |b: u8| b.is_ascii_digit() || b == b'.';
            let starts: Vec<usize> =
                (0..bytes.len()).filter(|i| digit(bytes[*i]) && (*i == 0 || !digit(bytes[*i - 1]))).collect();
            if let Some(start) = starts.get(which % starts.len().max(1)).copied() {
                let end = (start..bytes.len()).find(|i| !digit(bytes[*i])).unwrap_or(bytes.len());
                bytes.splice(start..end, new.bytes());
            }
        }
        Damage::Swap(a, b) => {
            let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
            let count = lines.len();
            lines.swap(a % count, b % count);
            *bytes = lines.join(&b'\n');
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_records_cause_no_panic_and_no_malformed_page(
        fixture in prop::sample::select(vec!["study", "run", "suite"]),
        which in any::<usize>(),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let folder = Folder::copy_of(fixture);
        let records = folder.records();
        let file = &records[which % records.len()];
        let path = folder.0.join(file);
        let mut bytes = fs::read(&path).unwrap();
        for damage in &damages {
            apply(&mut bytes, damage);
        }
        fs::write(&path, &bytes).unwrap();
        match fullpipe_report::write_report(&folder.0) {
            Ok(built) => {
                let page = folder.text("report.html");
                let document = parse(&page);
                prop_assert!(document.descendants().all(|n| n.tag_name().name() != "script"));
                for plot in built.plots {
                    let text = fs::read_to_string(plot).unwrap();
                    parse(&text);
                    prop_assert!(!text.contains("NaN"), "{text}");
                }
            }
            Err(error) => {
                let message = error.to_string();
                // A damaged key refers to a run that does not exist; every other error contains the file name.
                prop_assert!(message.contains(file.as_str()) || message.contains("run.json") || message.contains("flows.csv"), "{message}");
                prop_assert!(message.len() < 1000, "{message}");
            }
        }
    }
}
