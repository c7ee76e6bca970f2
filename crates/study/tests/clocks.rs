//! Tests of studies with two clocks: the clock axis, the laboratory of each run, and that no other run is made during a real-time
//! run.

use crate::common::{Fake, STUDY, Temporary, study_of, table, with};
use fullpipe_archive::LateRuns;
use fullpipe_scenario::schema::Override;
use fullpipe_study::plan::make_plan;
use fullpipe_study::{
    FileSystem, ResolvedScenario, RunError, RunOptions, RunRecords, Runner, ScenarioSource, Study, StudyError,
    StudyOptions, StudyOutcome, UserSettings, run,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// The number of virtual runs in progress, or -1 for a real-time run.
#[derive(Default)]
struct Machine(AtomicI32);

/// Two laboratories that check which other runs are in progress.
struct Both {
    virtual_time: Fake,
    real_time: Real,
}

struct Real {
    fake: Fake,
    machine: Machine,
    made: AtomicUsize,
}

impl Both {
    fn new() -> Self {
        let real_time = Real { fake: Fake::new(), machine: Machine::default(), made: AtomicUsize::new(0) };
        Both { virtual_time: Fake::new(), real_time }
    }
}

impl Runner for Both {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        self.virtual_time.resolve(scenario, overrides)
    }

    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError> {
        assert!(self.real_time.machine.0.fetch_add(1, Ordering::SeqCst) >= 0, "beside a real run");
        let records = self.virtual_time.run(scenario, seed, options);
        self.real_time.machine.0.fetch_sub(1, Ordering::SeqCst);
        records
    }

    fn real_time_runner(&self) -> Option<&dyn Runner> {
        Some(&self.real_time)
    }

    fn build_identity(&self) -> String {
        self.virtual_time.build_identity()
    }
}

impl Runner for Real {
    fn resolve(&self, scenario: &ScenarioSource, overrides: &[Override]) -> Result<ResolvedScenario, String> {
        let mut resolved = self.fake.resolve(scenario, overrides)?;
        resolved.content.extend(b"real");
        Ok(resolved)
    }

    fn run(&self, scenario: &ResolvedScenario, seed: u64, options: &RunOptions) -> Result<RunRecords, RunError> {
        assert_eq!(self.machine.0.swap(-1, Ordering::SeqCst), 0, "it has the machine to itself");
        std::thread::sleep(std::time::Duration::from_millis(2));
        let records = self.fake.run(scenario, seed, options);
        assert_eq!(self.machine.0.swap(0, Ordering::SeqCst), -1, "it has the machine to itself");
        self.made.fetch_add(1, Ordering::SeqCst);
        records
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn build_identity(&self) -> String {
        self.fake.build_identity()
    }
}

fn labels(study: &Study) -> Vec<String> {
    let plan = make_plan(study, &Both::new()).unwrap_or_else(|error| panic!("{error}"));
    plan.points.into_iter().map(|point| point.label).collect()
}

fn run_into(study: &Study, laboratory: &dyn Runner, folder: &Path, jobs: usize) -> Result<StudyOutcome, StudyError> {
    run_or_resume(study, laboratory, folder, jobs, false)
}

fn run_or_resume(
    study: &Study,
    laboratory: &dyn Runner,
    folder: &Path,
    jobs: usize,
    resume: bool,
) -> Result<StudyOutcome, StudyError> {
    let options = StudyOptions { jobs, run: RunOptions { resume, ..RunOptions::default() }, ..StudyOptions::default() };
    run(study, laboratory, folder, &FileSystem::new(), &options, &mut (), &AtomicBool::new(false))
}

/// The fake study with both clocks, without its claims, which refer to single points.
fn both() -> Study {
    let (text, _) = STUDY.split_once("[[claim]]").expect("claims come last");
    study_of(&text.replace("seed = 4", "seed = 4\nclock = \"both\"\npublished = []"))
}

#[test]
fn both_clocks_are_an_axis_of_each_experiment() {
    let study = both();
    assert!(study.needs_real_time());
    let labels = labels(&study);
    assert_eq!(labels.len(), 10);
    assert_eq!(labels[..2], ["experiment=sizes;clock=virtual;size=10", "experiment=sizes;clock=virtual;size=20"]);
    assert!(labels.contains(&"experiment=shapes;clock=real;shape=square".to_owned()), "{labels:?}");
}

#[test]
fn the_user_may_choose_the_clock() {
    let (study, _) = with(&["clock=real"], false).expect("a clock");
    assert!(study.needs_real_time());
    assert_eq!(labels(&study)[0], "experiment=sizes;clock=real;size=10");
    let (study, _) = with(&["clock=virtual"], false).expect("a clock");
    assert!(!study.needs_real_time());
    assert_eq!(labels(&study)[0], "experiment=sizes;size=10");
    let mut study = both();
    let set = vec![Override::parse("clock=virtual").expect("a setting")];
    study.apply(&UserSettings { set, ..UserSettings::default() }, &Both::new()).expect("a clock of the study");
    assert!(!study.needs_real_time());
    assert_eq!(labels(&study).len(), 5);
    assert_eq!(labels(&study)[0], "experiment=sizes;clock=virtual;size=10");
    assert!(with(&["clock=sun"], false).is_err());
}

#[test]
fn runs_go_to_the_laboratory_of_their_clock_and_real_ones_are_alone() {
    let folder = Temporary::new("clocks");
    let laboratory = Both::new();
    let outcome = run_into(&both(), &laboratory, &folder.join("out"), 4).expect("tables");
    assert_eq!(outcome.failed, []);
    // Four scenarios (two experiments share one) with three runs each, with either clock.
    assert_eq!(laboratory.virtual_time.made.load(Ordering::SeqCst), 12);
    assert_eq!(laboratory.real_time.made.load(Ordering::SeqCst), 12);
    let results = table(&folder.join("out"), "results.csv");
    assert_eq!(results.iter().filter(|row| row["clock"] == "real").count(), 15);
    // The resolved study in the records gives the same results. Real-time runs are made again.
    let text = std::fs::read_to_string(folder.join("out/study.toml")).expect("the study");
    assert_eq!(labels(&study_of(&text)), labels(&both()));
    run_into(&both(), &laboratory, &folder.join("out"), 4).expect("tables");
    assert_eq!(laboratory.virtual_time.made.load(Ordering::SeqCst), 12);
    assert_eq!(laboratory.real_time.made.load(Ordering::SeqCst), 24);
}

#[test]
fn without_a_laboratory_for_it_a_real_run_fails_with_a_sentence() {
    let folder = Temporary::new("no-real-laboratory");
    let outcome = run_into(&both(), &Fake::new(), &folder.join("out"), 1).expect("tables");
    assert!(!outcome.failed.is_empty());
    assert!(outcome.failed.iter().all(|(_, why)| why.contains("requires real time")), "{:?}", outcome.failed);
}

#[test]
fn resuming_makes_anew_only_what_fell_behind() {
    let folder = Temporary::new("resume");
    let study = both();
    let mut laboratory = Both::new();
    let second = make_plan(&study, &laboratory).expect("a plan").runs[1].seed;
    laboratory.real_time.fake.late = Some((10, vec![second], 3));
    let late = |outcome: &StudyOutcome| outcome.rows.iter().filter(|row| row.note.contains("fell behind")).count();
    let outcome = run_or_resume(&study, &laboratory, &folder.join("out"), 1, false).expect("tables");
    assert_eq!((laboratory.real_time.made.load(Ordering::SeqCst), late(&outcome) > 0), (12, true));
    // The run falls behind again.
    let outcome = run_or_resume(&study, &laboratory, &folder.join("out"), 1, true).expect("tables");
    assert_eq!((laboratory.real_time.made.load(Ordering::SeqCst), late(&outcome) > 0), (13, true));
    // The run is on time, and counts from then on.
    laboratory.real_time.fake.late = Some((10, vec![], 0));
    for _ in 0..2 {
        let outcome = run_or_resume(&study, &laboratory, &folder.join("out"), 1, true).expect("tables");
        assert_eq!((laboratory.real_time.made.load(Ordering::SeqCst), late(&outcome)), (14, 0));
    }
}

#[test]
fn what_counts_though_it_fell_behind_is_not_made_anew() {
    let folder = Temporary::new("resume-counted");
    let mut study = both();
    for experiment in &mut study.experiments {
        experiment.late_runs = LateRuns::Count;
    }
    let mut laboratory = Both::new();
    let second = make_plan(&study, &laboratory).expect("a plan").runs[1].seed;
    laboratory.real_time.fake.late = Some((10, vec![second], 3));
    for _ in 0..2 {
        run_or_resume(&study, &laboratory, &folder.join("out"), 1, true).expect("tables");
        assert_eq!(laboratory.real_time.made.load(Ordering::SeqCst), 12);
    }
}
