//! Tests of expectations: the bounds of `[[expect]]`, their errors, their rows, and the exit status.

use crate::common::{Fake, SCENARIO, STUDY, Temporary, run_into, study_of, table};
use fullpipe_scenario::schema::{Error, Errors};
use fullpipe_study::expect::scenario_expectations;
use fullpipe_study::{
    EmbeddedStudy, ScenarioSource, StudyOptions, StudyOutcome, VirtualTimeRunner, load, single_run_study,
};
use std::sync::atomic::AtomicBool;

fn outcomes(outcome: &StudyOutcome) -> Vec<(&str, &str, Option<f64>)> {
    outcome.expectations.iter().map(|row| (row.subject.as_str(), row.outcome.as_str(), row.value)).collect()
}

fn study_with(expectations: &str) -> fullpipe_study::Study {
    study_of(&(STUDY.to_owned() + expectations))
}

#[test]
fn the_mean_of_each_selected_point_must_be_within_the_bounds() {
    let study = study_with(
        "[[expect]]\nmetric = 'packets'\nexperiments = ['sizes']\nwhere = { size = [10, 20] }\nmin = 10\nmax = 20\n\
         [[expect]]\nmetric = 'packets'\nmax = 30\n\
         [[expect]]\nmetric = 'packets'\nwhere = { shape = 'round' }\nmin = 20\n",
    );
    let folder = Temporary::new("expectations");
    let outcome = run_into(&study, &Fake::new(), &folder.0, 2).expect("a study");
    let expected = [
        ("experiment=sizes;size=10", "met", Some(10.0)),
        ("experiment=sizes;size=40", "failed", Some(40.0)),
        ("experiment=shapes;shape=round", "met", Some(20.0)),
    ];
    assert_eq!(outcomes(&outcome), expected);
    assert_eq!(outcome.exit_status(), 4);
    let rows = table(&folder.0, "expectations.csv");
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[1]["note"], "40 packets is above the maximum 30 packets");
    // A folder without expectations has no table of them.
    let plain = run_into(&study_with(""), &Fake::new(), &folder.0, 2).expect("a study");
    assert_eq!(plain.exit_status(), 0);
    assert!(!folder.join("expectations.csv").exists());
}

#[test]
fn a_result_that_is_not_valid_comes_before_a_failed_expectation() {
    let study = study_with("[[expect]]\nmetric = 'packets'\nmax = 1\n");
    let folder = Temporary::new("expectations-untrusted");
    let outcome = run_into(&study, &Fake { lies_at: Some(20), ..Fake::new() }, &folder.0, 1).expect("a study");
    assert!(outcome.expectations[0].has_failed());
    assert_eq!(outcome.exit_status(), 3);
    let folder = Temporary::new("expectations-failed");
    let outcome = run_into(&study, &Fake { fails_at: Some(20), ..Fake::new() }, &folder.0, 1).expect("a study");
    assert_eq!(outcome.exit_status(), 1);
}

#[test]
fn points_that_the_settings_leave_out_are_not_checked() {
    let mut study = study_with("[[expect]]\nmetric = 'packets'\nwhere = { size = 20 }\nmin = 1000\n");
    let settings = fullpipe_study::UserSettings { quick: true, ..Default::default() };
    study.apply(&settings, &Fake::new()).expect("settings");
    let folder = Temporary::new("expectations-quick");
    let outcome = run_into(&study, &Fake::new(), &folder.0, 1).expect("a study");
    assert_eq!(outcomes(&outcome), [("", "not checked", None)]);
    assert_eq!(outcome.exit_status(), 0);
}

#[test]
fn the_resolved_study_has_the_same_expectations() {
    let study = study_with(
        "[[expect]]\nmetric = 'rate_bps'\nwhere = { size = [10, 20] }\nmin = '20Mbit/s'\nmax = 5e9\n\
         [[expect]]\nmetric = 'packets'\nexperiments = ['shapes']\nmax = 3\n",
    );
    let text = fullpipe_study::resolved::resolved_text(&study, "b");
    let again = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &[])).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(again.expectations, study.expectations);
    assert_eq!(study.expectations[0].min, Some(20e6));
}

fn error_of(expectation: &str) -> Error {
    let text = format!("{STUDY}\n[[expect]]\n{expectation}\n");
    match load(&text, "study.toml", "fallback", &EmbeddedStudy("fake", &[("plain.txt", SCENARIO)])) {
        Ok(_) => panic!("this is accepted:\n{expectation}"),
        Err(Errors(mut errors)) => {
            assert_eq!(errors.len(), 1, "{errors:?}");
            errors.remove(0)
        }
    }
}

#[test]
fn a_wrong_expectation_of_a_study_is_an_error_with_the_nearest_name() {
    for (expectation, says) in [
        ("metric = 'packet'\nmin = 1", "unknown metric packet;|did you mean packets?"),
        ("metric = 'packets'\nexperiments = ['size']\nmin = 1", "unknown experiment size;|did you mean sizes?"),
        ("metric = 'packets'\nwhere = { sise = 10 }\nmin = 1", "unknown axis sise;|did you mean size?"),
        (
            "metric = 'packets'\nwhere = { size = 11 }\nmin = 1",
            "11 is not a value of the axis size; expected one of 10, 20",
        ),
        ("metric = 'per_size'\nexperiments = ['shapes']\nmin = 1", "no point with the metric per_size is selected"),
        ("metric = 'packets'", "expect.0 has neither min nor max; expected min or max"),
        ("metric = 'packets'\nmin = '5ms'", "the unit of the metric is packets; expected a number of packets"),
        ("metric = 'rate_bps'\nmin = '5ms'", "expected a rate such as \"20Mbit/s\", or a number of bit/s"),
        ("metric = 'rate_bps'\nmin = '5Mbit'", "(did you mean \"5Mbit/s\"?)"),
        ("metric = 'rate_bps'\nmin = '5Mbit/s'\nmax = 7", "min = '5Mbit/s' is above max = 7 bit/s"),
    ] {
        let error = error_of(expectation).to_string();
        for part in says.split('|') {
            assert!(error.contains(part), "{error}\nwithout {part}");
        }
    }
}

const LINK: &str = "duration = '5s'
[topology]
kind = 'dumbbell'
access = { rate = '1Gbit/s', delay = '1ms' }
bottleneck = { rate = '10Mbit/s', delay = '8ms', queue = '50kB' }
[[flow]]
name = 'download'
from = 'left1'
to = 'right1'
size = '1MB'
[[flow]]
name = 'video'
from = 'left1'
to = 'right1'
workload = 'video-abr'
ladder = ['500kbit/s']
segment = '1s'
segments = 3
[[flow]]
name = 'endless'
from = 'left1'
to = 'right1'
start = '4s'
[[flow]]
name = 'huge'
from = 'left1'
to = 'right1'
start = '4s'
size = '1GB'
";

fn run_single(name: &str, expectations: &str) -> StudyOutcome {
    let text = LINK.to_owned() + expectations;
    let loaded = fullpipe_scenario::load(&text, "link.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let source = ScenarioSource {
        name: "link.toml".into(),
        origin: "s.toml".into(),
        text: loaded.resolved.clone(),
        folder: None,
    };
    let mut study = single_run_study("link", "Link", source, 1);
    study.expectations = scenario_expectations(&loaded).unwrap_or_else(|errors| panic!("{errors}"));
    let folder = Temporary::new(name);
    let laboratory = VirtualTimeRunner::new("test");
    let stop = AtomicBool::new(false);
    let files = fullpipe_study::FileSystem::new();
    fullpipe_study::run(&study, &laboratory, &folder.0, &files, &StudyOptions::default(), &mut (), &stop)
        .expect("a run")
}

#[test]
fn expectations_of_a_scenario_are_of_its_flows() {
    let outcome = run_single(
        "expectations-single",
        "[[expect]]\nmetric = 'goodput_bps'\nflow = 'download'\nmin = '1Mbit/s'\n\
         [[expect]]\nmetric = 'goodput_bps'\nflow = 'download'\nmin = '20Mbit/s'\n\
         [[expect]]\nmetric = 'completion_s'\nflow = 'huge'\nmax = '1s'\n\
         [[expect]]\nmetric = 'loss_ratio'\nmax = '50%'\n\
         [[expect]]\nmetric = 'rebuffer_s'\nflow = 'video'\nmax = '5s'\n\
         [[expect]]\nmetric = 'tx_packets'\nflow = 'video.reverse'\nmin = 1\n",
    );
    let results: Vec<&str> = outcome.expectations.iter().map(|row| row.outcome.as_str()).collect();
    let notes: Vec<&str> = outcome.expectations.iter().map(|row| row.note.as_str()).collect();
    assert_eq!(results, ["met", "failed", "failed", "met", "met", "met"], "{notes:?}");
    assert!(notes[1].ends_with("Mbit/s is below the minimum 20 Mbit/s"), "{}", notes[1]);
    // A gigabyte takes longer than the run.
    assert!(notes[2].starts_with("no value (the flow is not complete"), "{}", notes[2]);
    // A video's data goes from `to` to `from`.
    assert_eq!(outcome.expectations[5].subject, "video.reverse");
    assert!(outcome.expectations[4].subject.starts_with("video@"), "{}", outcome.expectations[4].subject);
    assert_eq!(outcome.exit_status(), 4);
}

/// Bulk without a size has no end, a download no rebuffering, datagrams no retransmission, and no reverse direction.
#[test]
fn an_expectation_that_can_never_have_a_value_is_an_error() {
    let udp = "[[flow]]\nname = 'call'\nfrom = 'left1'\nto = 'right1'\nprotocol = 'udp'\nworkload = 'constant-rate'\n\
               interval = '20ms'\npayload = '172B'\n";
    for (metric, flow, says) in [
        (
            "completion_s",
            "endless",
            "flow endless has no completion_s, because its workload bulk has no end; expected a flow",
        ),
        ("completion_s", "*", "flow endless has no completion_s"),
        (
            "rebuffer_s",
            "download",
            "flow download has no rebuffer_s: its workload is bulk, its protocol tcp; expected a flow with workload = \"video-abr\"",
        ),
        ("quic_mean_rtt_s", "download", "expected a flow with protocol = \"quic\""),
        ("program_x_s", "download", "whose metrics a [[program]] reports"),
        ("retransmitted_packets", "call", "because UDP retransmits nothing"),
        ("tx_packets", "call.reverse", "flow call sends no packets in its reverse direction"),
    ] {
        let text = format!("{LINK}{udp}[[expect]]\nmetric = '{metric}'\nflow = '{flow}'\nmax = 1\n");
        let loaded = fullpipe_scenario::load(&text, "link.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let error = scenario_expectations(&loaded).expect_err(metric).to_string();
        assert!(error.contains(says), "{metric}: {error}");
    }
    for (metric, flow) in [
        ("completion_s", "download"),
        ("rebuffer_s", "video"),
        ("completion_s", "video.reverse"),
        ("retransmitted_packets", "endless"),
        ("tx_packets", "endless.reverse"),
    ] {
        let text = format!("{LINK}[[expect]]\nmetric = '{metric}'\nflow = '{flow}'\nmax = 1\n");
        let loaded = fullpipe_scenario::load(&text, "link.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        assert!(scenario_expectations(&loaded).is_ok(), "{metric}, {flow}");
    }
}

#[test]
fn an_unknown_metric_of_a_scenario_is_an_error_with_the_nearest_name() {
    for (metric, bound, says) in [
        ("goodput", "1", "link.toml:26:10: unknown metric goodput|did you mean \"goodput_bps\"?"),
        ("rebufer_s", "1", "did you mean \"rebuffer_s\"?"),
        ("protocol", "1", "unknown metric protocol"),
        ("delay_p95_s", "'10Mbit/s'", "link.toml:27:7: found '10Mbit/s' for max|expected a duration such as \"50ms\""),
    ] {
        let text = format!("{LINK}[[expect]]\nmetric = '{metric}'\nmax = {bound}\n");
        let line = text.lines().position(|line| line.starts_with("metric")).expect("a metric") + 1;
        let loaded = fullpipe_scenario::load(&text, "link.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let error = scenario_expectations(&loaded).expect_err(metric).to_string();
        for part in says.replace(":26:", &format!(":{line}:")).replace(":27:", &format!(":{}:", line + 1)).split('|') {
            assert!(error.contains(part), "{error}\nwithout {part}");
        }
    }
}
