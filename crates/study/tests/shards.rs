//! Tests of shards: all of them together are the whole study, and an incomplete merge says what is missing.

use crate::common::{Fake, Temporary, run_into, study, tree, with};
use fullpipe_study::{FileSystem, Shard, Study, StudyError, StudyOptions, merge, run, run_shard};
use std::path::{Path, PathBuf};

fn shard_of(text: &str) -> Shard {
    text.parse().expect("a shard")
}

/// Makes a shard in a folder; returns the numbers of runs made and reused.
fn make(study: &Study, laboratory: &Fake, folder: &Path, shard: &str) -> (usize, usize) {
    let (files, options) = (FileSystem::new(), StudyOptions::default());
    let shard = shard_of(shard);
    let outcome =
        run_shard(study, shard, laboratory, folder, &files, &options, &mut (), &laboratory.stop).expect("a shard");
    (outcome.made, outcome.reused)
}

/// Merges folders and writes the tables.
fn combine(study: &Study, folders: &[PathBuf], out: &Path) -> Result<usize, StudyError> {
    let (laboratory, files) = (Fake::new(), FileSystem::new());
    merge(study, &laboratory, folders, out, &files)?;
    let options = StudyOptions { only_reuse: true, ..StudyOptions::default() };
    let outcome = run(study, &laboratory, out, &files, &options, &mut (), &laboratory.stop)?;
    assert_eq!(outcome.made, 0);
    Ok(outcome.reused)
}

#[test]
fn shards_in_any_order_equal_the_whole_even_if_one_is_lost_and_made_again() {
    let folder = Temporary::new("shards");
    let whole = folder.join("whole");
    run_into(&study(), &Fake::new(), &whole, 1).expect("the whole study");
    // 12 runs in 16 shards: each of the last four is empty.
    let folders: Vec<PathBuf> = (1..=16).map(|index| folder.join(&format!("shard-{index}"))).collect();
    for (position, path) in folders.iter().enumerate() {
        let runs = usize::from(position < 12);
        assert_eq!(make(&study(), &Fake::new(), path, &format!("{}/16", position + 1)), (runs, 0));
    }
    std::fs::remove_dir_all(&folders[4]).expect("a shard is lost");
    let out = folder.join("merged");
    let rest: Vec<PathBuf> = folders.iter().rev().filter(|path| path.exists()).cloned().collect();
    let error = combine(&study(), &rest, &out).expect_err("a run is missing").to_string();
    assert!(error.contains("1 of 12 runs are missing"), "{error}");
    assert!(error.contains("shard 5/16 (1 run): no folder is given"), "{error}");
    assert_eq!(make(&study(), &Fake::new(), &folders[4], "5/16"), (1, 0));
    assert_eq!(make(&study(), &Fake::new(), &folders[4], "5/16"), (0, 1));
    let all: Vec<PathBuf> = folders.iter().rev().cloned().collect();
    assert_eq!(combine(&study(), &all, &out).expect("all runs"), 12);
    assert_eq!(tree(&out), tree(&whole));
    // The same merge again, and with folders that have the same runs, changes nothing.
    assert_eq!(combine(&study(), &[all.clone(), all].concat(), &out).expect("all runs"), 12);
    assert_eq!(tree(&out), tree(&whole));
}

#[test]
fn runs_are_distributed_over_shards_and_none_is_made_twice() {
    let folder = Temporary::new("distribution");
    let mut keys = Vec::new();
    for index in 1..=5 {
        let path = folder.join(&format!("{index}"));
        // 12 runs: positions 0, 5, 10 and 1, 6, 11, then two each.
        let expected = if index <= 2 { 3 } else { 2 };
        assert_eq!(make(&study(), &Fake::new(), &path, &format!("{index}/5")), (expected, 0));
        keys.extend(std::fs::read_dir(path.join("runs")).expect("runs").map(|entry| entry.expect("a run").file_name()));
    }
    keys.sort();
    let number = keys.len();
    keys.dedup();
    assert_eq!((number, keys.len()), (12, 12));
}

#[test]
fn incomplete_shards_and_foreign_folders_are_named() {
    let folder = Temporary::new("foreign");
    let [first, second, other] = ["first", "second", "other"].map(|name| folder.join(name));
    make(&study(), &Fake::new(), &first, "1/2");
    // The run with size 40 fails in the second shard, so it is not stored.
    let laboratory = Fake { fails_at: Some(40), ..Fake::new() };
    let (files, options) = (FileSystem::new(), StudyOptions::default());
    let outcome =
        run_shard(&study(), shard_of("2/2"), &laboratory, &second, &files, &options, &mut (), &laboratory.stop)
            .expect("a shard");
    assert_eq!(outcome.exit_status(), 1);
    let failed = outcome.failed.len();
    assert!(failed > 0);
    let error = combine(&study(), &[first.clone(), second.clone()], &folder.join("out")).expect_err("runs are missing");
    assert!(error.to_string().contains(&format!("shard 2/2 in {}", second.display())), "{error}");
    assert!(error.to_string().contains("run this shard again"), "{error}");
    // Another number of runs is another study, and so is a folder without records.
    let (quick, _) = with(&[], true).expect("the quick study");
    make(&quick, &Fake::new(), &other, "1/2");
    let error = combine(&study(), &[first.clone(), other], &folder.join("out")).expect_err("it is another study");
    assert!(error.to_string().contains("differ in study, settings or build"), "{error}");
    let error = combine(&study(), &[folder.join("none")], &folder.join("out")).expect_err("it does not exist");
    assert!(error.to_string().contains("has no study.toml"), "{error}");
    // A folder keeps its shard.
    let error = run_shard(&study(), shard_of("2/2"), &Fake::new(), &first, &files, &options, &mut (), &laboratory.stop)
        .expect_err("the folder has another shard");
    assert!(error.to_string().contains("has shard 1/2"), "{error}");
}

#[test]
fn text_that_is_no_shard_is_rejected() {
    for text in ["", "3", "0/4", "5/4", "1/0", "a/b", "1/2/3", "-1/4", "1 / 4"] {
        let error = text.parse::<Shard>().expect_err(text);
        assert!(error.contains("expected I/N"), "{error}");
    }
    assert_eq!(shard_of("4/4").to_string(), "4/4");
}
