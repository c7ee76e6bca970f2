//! Tests of kills and disk errors at every step that writes to a folder of records.
//!
//! The killed process is real. The test program starts itself with a folder and the number of a step. The child reports that it
//! has reached the step and waits there until it is killed (SIGKILL on Unix). Files are written in pieces of a few hundred bytes,
//! so that kills also occur in the middle of a file.

use crate::common;

use crate::common::{Fake, Temporary, run_into, run_with, stamps, study, tree};
use fullpipe_study::files::{FileHook, FileOperation, FileSystem};
use fullpipe_study::{Study, StudyError};
use fullpipe_units::RandomStream;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes per write.
const CHUNK: usize = 300;
const FOLDER: &str = "FULLPIPE_TEST_FOLDER";
const STEP: &str = "FULLPIPE_TEST_STEP";
const TAKES: &str = "FULLPIPE_TEST_TAKES_MS";
const REACHED: &str = "the step is reached";

/// A study with few runs: two sizes, two runs each.
fn small() -> Study {
    let (mut study, _) = common::with(&["size=[10, 40]", "experiments=sizes"], false).expect("good settings");
    study.experiments.iter_mut().for_each(|experiment| experiment.runs = 2);
    study
}

/// A laboratory whose runs write a further file in pieces while they run.
fn capturing() -> Fake {
    Fake { captures: true, ..Fake::new() }
}

/// Counts the steps, and calls a function at one of them.
fn hook(
    at: usize,
    what: impl Fn(FileOperation<'_>) -> io::Result<()> + Send + Sync + 'static,
) -> (FileHook, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    // Steps that only read leave no change.
    let hook: FileHook = Arc::new(move |step| {
        if step.modifies_disk() && counter.fetch_add(1, Ordering::SeqCst) == at { what(step) } else { Ok(()) }
    });
    (hook, count)
}

/// The number of steps of an undisturbed run into a new folder.
fn steps(study: &Study, folder: &Path) -> usize {
    let (hook, count) = hook(usize::MAX, |_| Ok(()));
    run_with(study, &capturing(), folder, 1, &FileSystem::with_hook(hook, CHUNK)).expect("nothing disturbs");
    count.load(Ordering::SeqCst)
}

/// The process that is killed; not a test of its own.
#[test]
fn victim() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let takes = Duration::from_millis(number(TAKES).unwrap_or(0) as u64);
    let (hook, _) = hook(number(STEP).unwrap_or(usize::MAX), |_| {
        println!("{REACHED}");
        let _ = io::stdout().flush();
        std::thread::sleep(Duration::from_secs(600));
        Ok(())
    });
    let laboratory = Fake { takes, captures: number(STEP).is_some(), ..Fake::new() };
    let study = if number(STEP).is_some() { small() } else { study() };
    let jobs = if number(STEP).is_some() { 1 } else { 2 };
    run_with(&study, &laboratory, Path::new(&folder), jobs, &FileSystem::with_hook(hook, CHUNK)).expect("a good study");
}

fn start(folder: &Path, more: &[(&str, String)]) -> Child {
    let program = std::env::current_exe().expect("a test has a program");
    let mut command = Command::new(program);
    command.args(["disk::victim", "--exact", "--nocapture", "--test-threads=1"]).env(FOLDER, folder);
    more.iter().for_each(|(name, value)| {
        command.env(name, value);
    });
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it can be started")
}

fn kill(mut child: Child) {
    child.kill().expect("it can be killed");
    child.wait().expect("it has ended");
}

/// Starts the victim, waits until it has reached a step, and kills it. Returns false if it ended before.
fn kill_at(step: usize, folder: &Path) -> bool {
    let mut child = start(folder, &[(STEP, step.to_string())]);
    let output = child.stdout.take().expect("it is piped");
    let reached = BufReader::new(output).lines().map_while(Result::ok).any(|line| line.contains(REACHED));
    kill(child);
    reached
}

/// Checks that every run in the folder is complete; returns their number.
fn only_whole_runs(folder: &Path, whole: &BTreeMap<String, Vec<u8>>) -> usize {
    let Ok(entries) = std::fs::read_dir(folder.join("runs")) else { return 0 };
    let names = entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
    let mut finished = 0;
    for name in names.filter(|name| !name.starts_with(".unfinished-")) {
        let prefix = format!("runs/{name}/");
        let expected: BTreeMap<&String, &Vec<u8>> =
            whole.iter().filter(|(path, _)| path.starts_with(&prefix) && **path != prefix).collect();
        let files = tree(&folder.join("runs").join(&name));
        assert_eq!(files.len(), expected.len(), "files of {name}");
        for (path, content) in expected {
            assert_eq!(&files[&path[prefix.len()..]], content, "{path}");
        }
        finished += 1;
    }
    finished
}

/// Repeats the call and checks that finished runs did not change and the result is that of an undisturbed folder.
fn repeat(study: &Study, laboratory: &Fake, folder: &Path, whole: &BTreeMap<String, Vec<u8>>, what: &str) {
    let finished = only_whole_runs(folder, whole);
    let before = if folder.join("runs").exists() { stamps(folder) } else { BTreeMap::new() };
    let outcome = run_into(study, laboratory, folder, 2).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(outcome.reused, finished, "{what}");
    let after = stamps(folder);
    for (name, stamp) in before.iter().filter(|(name, _)| name.len() > "runs/".len() && !name.contains(".unfinished-"))
    {
        assert_eq!(after[name], *stamp, "{what}: {name} was touched");
    }
    assert_eq!(&tree(folder), whole, "{what}");
}

#[test]
fn what_is_written_during_a_run_appears_with_it_or_not_at_all() {
    let folder = Temporary::new("attached");
    let study = small();
    let out = folder.join("out");
    let captures = |out: &Path| -> Vec<Vec<u8>> {
        tree(out).into_iter().filter(|(name, _)| name.ends_with("a.pcapng")).map(|(_, content)| content).collect()
    };
    // Without captures, with, without again: made, made again, and reused.
    let plain = run_into(&study, &Fake::new(), &out, 1).expect("nothing disturbs");
    assert_eq!((plain.made, captures(&out).len()), (4, 0));
    let records = tree(&out);
    let outcome = run_into(&study, &capturing(), &out, 2).expect("nothing disturbs");
    assert_eq!((outcome.made, outcome.reused, captures(&out).len()), (4, 0, 4));
    // 128 bytes, then 384.
    for content in captures(&out) {
        assert_eq!((content.len(), &content[..128]), (512, &[1; 128][..]));
    }
    let outcome = run_into(&study, &Fake::new(), &out, 1).expect("nothing disturbs");
    assert_eq!((outcome.made, outcome.reused, captures(&out).len()), (0, 4, 4));
    let others = |tree: BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
        tree.into_iter().filter(|(name, _)| !name.ends_with("run.json") && !name.ends_with("a.pcapng")).collect()
    };
    assert_eq!(others(tree(&out)), others(records), "captures change no other record");
    // A run that fails after its first pieces leaves no file.
    let failing = Fake { fails_at: Some(10), ..capturing() };
    let out = folder.join("failing");
    assert_eq!(run_into(&study, &failing, &out, 1).expect("a failed run is no error").failed.len(), 2);
    assert!(tree(&out.join("runs")).keys().all(|name| !name.contains(".unfinished")));
    assert_eq!(captures(&out).len(), 2);
}

#[test]
fn killed_at_every_step_of_a_new_study() {
    let folder = Temporary::new("kill-new");
    let study = small();
    let total = steps(&study, &folder.join("whole"));
    let whole = tree(&folder.join("whole"));
    // study.toml; per run a folder, four files, syncs and renames; two tables: one kill at each step.
    assert!(total > 60, "{total} steps");
    for step in 0..total {
        let out = folder.join(&step.to_string());
        assert!(kill_at(step, &out), "step {step} of {total} is reached");
        repeat(&study, &capturing(), &out, &whole, &format!("killed at step {step} of {total}"));
        std::fs::remove_dir_all(&out).expect("it is ours");
    }
}

#[test]
fn killed_at_every_step_of_a_continued_study() {
    // The folder has one finished run of four, an unfinished run, and tables of another part of the study.
    let folder = Temporary::new("kill-continued");
    let study = small();
    run_into(&study, &capturing(), &folder.join("whole"), 1).expect("nothing disturbs");
    let whole = tree(&folder.join("whole"));
    let prepare = |out: &Path| {
        let (mut part, _) = common::with(&["size=[40]", "experiments=sizes"], false).expect("good settings");
        part.experiments.iter_mut().for_each(|experiment| experiment.runs = 1);
        run_into(&part, &capturing(), out, 1).expect("nothing disturbs");
        std::fs::create_dir_all(out.join(".unfinished-0123")).expect("it is ours");
        std::fs::write(out.join(".unfinished-0123/flows.csv"), "flow,so").expect("it is ours");
        std::fs::write(out.join(".unfinished-summary.csv"), "poi").expect("it is ours");
        std::fs::write(out.join("report.html"), "of another part").expect("it is ours");
    };
    let first = folder.join("first");
    prepare(&first);
    let total = steps(&study, &first);
    assert_eq!(tree(&first), whole);
    for step in 0..total {
        let out = folder.join(&step.to_string());
        prepare(&out);
        assert!(kill_at(step, &out), "step {step} of {total} is reached");
        repeat(&study, &capturing(), &out, &whole, &format!("killed at step {step} of {total}"));
        std::fs::remove_dir_all(&out).expect("it is ours");
    }
}

#[test]
fn killed_at_fifty_random_moments() {
    let folder = Temporary::new("kill-random");
    let study = study();
    run_into(&study, &Fake::new(), &folder.join("whole"), 1).expect("nothing disturbs");
    let whole = tree(&folder.join("whole"));
    let mut moments = RandomStream::new(20, "test", "moments");
    let mut in_the_middle = 0;
    for attempt in 0..50 {
        let out = folder.join(&attempt.to_string());
        let child = start(&out, &[(TAKES, "8".to_owned())]);
        // At a random time when some of the twelve runs are finished: a run takes 8 ms.
        let count = || {
            let names = std::fs::read_dir(out.join("runs")).into_iter().flatten().flatten();
            names.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')).count()
        };
        while count() < attempt % 12 {
            std::thread::sleep(Duration::from_micros(200));
        }
        std::thread::sleep(Duration::from_micros(moments.uniform_below(9_000)));
        kill(child);
        let finished = if out.exists() { only_whole_runs(&out, &whole) } else { 0 };
        in_the_middle += usize::from((1..12).contains(&finished));
        repeat(&study, &Fake::new(), &out, &whole, &format!("random moment {attempt}"));
        std::fs::remove_dir_all(&out).expect("it is ours");
    }
    assert!(in_the_middle > 0, "no kill came between the first and the last run");
}

#[test]
fn a_disk_that_refuses_at_every_step_gives_a_sentence_and_harms_nothing() {
    let folder = Temporary::new("refuse");
    let study = small();
    let total = steps(&study, &folder.join("whole"));
    let whole = tree(&folder.join("whole"));
    for (kind, words) in [
        (io::ErrorKind::StorageFull, "the disk is full"),
        (io::ErrorKind::PermissionDenied, "permission denied"),
        (io::ErrorKind::ReadOnlyFilesystem, "the file system is read-only"),
    ] {
        for step in 0..total {
            let out = folder.join("out");
            let (hook, _) = hook(step, move |_| Err(kind.into()));
            let error = run_with(&study, &capturing(), &out, 1, &FileSystem::with_hook(hook, CHUNK)).unwrap_err();
            let StudyError::System(sentence) = &error else { panic!("step {step}: {error:?}") };
            assert_eq!(error.exit_status(), 1);
            assert!(sentence.starts_with("cannot ") && sentence.ends_with(words), "{sentence}");
            assert!(sentence.contains(&*out.to_string_lossy()), "{sentence}");
            repeat(&study, &capturing(), &out, &whole, &format!("{kind} at step {step}"));
            std::fs::remove_dir_all(&out).expect("it is ours");
        }
    }
}

#[test]
fn a_folder_that_cannot_be_made_gives_a_sentence() {
    let folder = Temporary::new("below-a-file");
    std::fs::write(folder.join("file"), "text").expect("it is ours");
    let error = run_into(&small(), &Fake::new(), &folder.join("file/below"), 1).unwrap_err();
    assert_eq!(error.exit_status(), 1, "{error:?}");
    assert!(error.to_string().contains("cannot"), "{error}");
}

#[test]
fn what_gets_its_name_was_synced_and_the_name_is_synced_after() {
    // A kill does not reveal a missing sync, but a power failure would. The test therefore checks the order of steps: a file is
    // synced after its last write and before it (or its folder) is renamed; then the parent folder is synced.
    let folder = Temporary::new("order");
    let trace = Arc::new(std::sync::Mutex::new(Vec::new()));
    let writer = trace.clone();
    let hook: FileHook = Arc::new(move |step| {
        let line = match step {
            FileOperation::CreateFile(path) | FileOperation::Write(path) => ("write", path.to_owned(), path.to_owned()),
            FileOperation::SyncFile(path) | FileOperation::SyncFolder(path) => {
                ("sync", path.to_owned(), path.to_owned())
            }
            FileOperation::Rename(from, to) => ("rename", from.to_owned(), to.to_owned()),
            FileOperation::CreateFolder(path) | FileOperation::Remove(path) => {
                ("other", path.to_owned(), path.to_owned())
            }
            FileOperation::Read(_) | FileOperation::List(_) => return Ok(()),
        };
        writer.lock().expect("no panic").push(line);
        Ok(())
    });
    run_with(&small(), &capturing(), &folder.join("out"), 1, &FileSystem::with_hook(hook, CHUNK))
        .expect("nothing disturbs");
    let trace = trace.lock().expect("no panic");
    let mut renames = 0;
    for (at, (_, from, to)) in trace.iter().enumerate().filter(|(_, (what, _, _))| *what == "rename") {
        renames += 1;
        let written: Vec<usize> = (0..at).filter(|n| trace[*n].0 == "write" && trace[*n].1.starts_with(from)).collect();
        assert!(!written.is_empty(), "{from:?} was written");
        for n in written {
            let synced = trace[n..at].iter().any(|(what, path, _)| *what == "sync" && *path == trace[n].1);
            assert!(synced, "{:?} is synced before it is named {to:?}", trace[n].1);
        }
        if from.is_dir() || to.is_dir() {
            assert!(trace[..at].iter().any(|(what, path, _)| *what == "sync" && path == from), "{from:?} is synced");
        }
        // The files of one folder are renamed together.
        let (what, path, _) = trace[at..].iter().find(|(what, _, _)| *what != "rename").expect("a step");
        assert_eq!((*what, Some(path.as_path())), ("sync", to.parent()), "the name {to:?} is synced at once");
    }
    // study.toml, four runs, three tables.
    assert_eq!(renames, 8);
}

/// The steps of an additional run in a folder with this number of runs with other seeds: reads, writes, syncs and lists, with the
/// size of each file that is read.
fn steps_of_one_more_run(folder: &Temporary, before: u64) -> Vec<(String, u64)> {
    let study = |runs| {
        let (mut study, _) = common::with(&["size=[10]", "experiments=sizes"], false).expect("good settings");
        study.experiments.iter_mut().for_each(|experiment| experiment.runs = runs);
        study
    };
    let mut other_seeds = study(before);
    other_seeds.seeds = fullpipe_study::study::SeedSource::Derived(77);
    let laboratory = Fake { cpu_s: Some(1.0), ..Fake::new() };
    let out = folder.join(&format!("after-{before}"));
    run_into(&other_seeds, &laboratory, &out, 1).expect("nothing disturbs");
    let steps = Arc::new(std::sync::Mutex::new(Vec::new()));
    let (seen, root) = (steps.clone(), out.clone());
    let hook: FileHook = Arc::new(move |step| {
        let (what, path) = match step {
            FileOperation::Read(path) => ("read", path),
            FileOperation::List(path) => ("list", path),
            FileOperation::Write(path) => ("write", path),
            FileOperation::CreateFile(path) => ("create", path),
            FileOperation::SyncFile(path) | FileOperation::SyncFolder(path) => ("sync", path),
            FileOperation::Rename(_, path) => ("rename", path),
            FileOperation::CreateFolder(path) => ("create folder", path),
            FileOperation::Remove(path) => ("remove", path),
        };
        let amount = match step {
            FileOperation::Read(path) => std::fs::metadata(path).map_or(0, |file| file.len()),
            FileOperation::List(path) => std::fs::read_dir(path).map_or(0, |names| names.count() as u64),
            _ => 0,
        };
        let path = path.strip_prefix(&root).expect("within the folder").to_string_lossy().into_owned();
        seen.lock().expect("no panic").push((format!("{what} {path}"), amount));
        Ok(())
    });
    let files = FileSystem::with_hook(hook, usize::MAX);
    let outcome = run_with(&study(1), &laboratory, &out, 1, &files).expect("nothing disturbs");
    assert_eq!((outcome.made, outcome.reused), (1, 0));
    let steps = steps.lock().expect("no panic");
    steps.clone()
}

#[test]
fn a_run_takes_the_same_steps_however_many_runs_its_folder_has() {
    let folder = Temporary::new("many-runs");
    let (few, many) = (steps_of_one_more_run(&folder, 2), steps_of_one_more_run(&folder, 40));
    // The tables of the previous study are read to detect changes; their length depends on that study.
    let of_tables = |(step, _): &&(String, u64)| step.starts_with("read ") && !step.contains("runs/");
    let bounded = |steps: &[(String, u64)]| -> Vec<(String, u64)> {
        steps.iter().filter(|step| !of_tables(step)).cloned().collect()
    };
    assert_eq!(bounded(&few), bounded(&many));
    assert_eq!(few.len(), many.len());
    assert!(!many.iter().any(|(step, _)| step == "list runs" || step == "read cpu.csv"), "{many:?}");
}
