//! Tests of the metrics of a scenario that is run on its own: they are those of the main direction of each flow.

use crate::common::Temporary;
use fullpipe_study::{
    FileSystem, RunOptions, Runner, ScenarioSource, StudyError, StudyOptions, StudyOutcome, VirtualTimeRunner,
    single_run_study,
};
use std::sync::atomic::AtomicBool;

/// Ten segments of 4 s at 2 Mbit/s: 10 MB.
const VIDEO: &str = "duration = '61s'
[topology]
kind = 'chain'
link = [{ rate = '10Mbit/s', delay = '10ms' }]
[[flow]]
name = 'video'
from = 'source'
to = 'sink'
workload = 'video-abr'
ladder = ['2Mbit/s']
segment = '4s'
segments = 10
[[flow]]
name = 'background'
from = 'source'
to = 'sink'
workload = 'constant-rate'
payload = '100B'
interval = '1s'
";

fn source(text: &str) -> ScenarioSource {
    ScenarioSource { name: "test.toml".into(), origin: "scenario.toml".into(), text: text.to_owned(), folder: None }
}

fn run(text: &str, metrics: &[(&str, &str)]) -> Result<StudyOutcome, StudyError> {
    // Tests run simultaneously, so each scenario and metric has its own folder.
    let name: String = metrics.iter().map(|(name, _)| *name).collect();
    let folder =
        Temporary::new(&format!("directions-{name}-{}", metrics.iter().map(|(_, text)| text.len()).sum::<usize>()));
    let mut study = single_run_study("video", "Video", source(text), 1);
    for (name, expression) in metrics {
        let expression =
            fullpipe_study::expression::parse(expression, fullpipe_study::expression::ExpressionPurpose::Metric);
        let mut metric = study.metrics[0].clone();
        metric.record.name = (*name).to_owned();
        metric.expression = expression.expect("an expression");
        study.metrics.push(metric);
    }
    let (laboratory, options, stop) = (VirtualTimeRunner::new("test"), StudyOptions::default(), AtomicBool::new(false));
    fullpipe_study::run(&study, &laboratory, &folder.0, &FileSystem::new(), &options, &mut (), &stop)
}

#[test]
fn metrics_of_a_single_run_are_of_the_main_direction() {
    let video = VIDEO.split("[[flow]]\nname = 'background'").next().expect("the video alone");
    let outcome = run(video, &[]).expect("a run");
    let value = |name: &str| {
        let row = outcome.rows.iter().find(|row| row.metric == name).unwrap_or_else(|| panic!("a row of {name}"));
        row.mean.unwrap_or_else(|| panic!("a value of {name}"))
    };
    // 10 MB are 6907 segments of 1448 bytes. Their requests and acknowledgements are sent in the other direction.
    assert!((6900.0..7100.0).contains(&value("tx_packets")), "{}", value("tx_packets"));
    assert!((1000.0..7000.0).contains(&value("opposite_tx_packets")), "{}", value("opposite_tx_packets"));
    // The buffer holds 30 s of video, and the other 10 s follow at 2 Mbit/s: the last segment ends before 61 s.
    assert!((1.3e6..9.7e6).contains(&value("throughput_bps")), "{}", value("throughput_bps"));
    assert!((1.3e6..9.7e6).contains(&value("goodput_bps")), "{}", value("goodput_bps"));
    assert_eq!(value("opposite_lost_packets"), 0.0);
}

#[test]
fn patterns_name_main_and_opposite_directions() {
    let metrics = [
        ("main", "sum(rx_packets['*.main'])"),
        ("by_name", "rx_packets['video.reverse'] + rx_packets['background']"),
        ("opposite", "rx_packets['video.opposite'] / rx_packets['video']"),
    ];
    let outcome = run(VIDEO, &metrics).expect("a run");
    let value = |name: &str| outcome.rows.iter().find(|row| row.metric == name).and_then(|row| row.mean);
    assert_eq!(value("main"), value("by_name"));
    assert_eq!(value("opposite"), Some(1.0));
}

#[test]
fn a_metric_over_a_series_that_no_probe_samples_is_an_error_with_the_known_names() {
    let probed = format!("{VIDEO}[[probe]]\nflow = 'video'\nmetrics = ['throughput_bps']\n");
    run(&probed, &[("rate", "mean(series('video.reverse', 'throughput_bps'))")]).expect("the probe samples it");
    let error =
        run(&probed, &[("rate", "mean(series('video', 'throughput_bps'))")]).expect_err("it does not sample it");
    let error = error.to_string();
    assert!(error.contains("no [[probe]] of the scenario samples \"video, throughput_bps\""), "{error}");
    assert!(error.contains("expected one of video.reverse, throughput_bps"), "{error}");
}

#[test]
fn the_duration_of_a_run_is_the_nearest_number_to_its_nanoseconds() {
    // 61 s times 1e-9 would be 61.00000000000001.
    let laboratory = VirtualTimeRunner::new("test");
    let text = VIDEO.replace("segments = 10\n", "");
    let resolved = laboratory.resolve(&source(&text), &[]).expect("a scenario");
    let run = laboratory.run(&resolved, 1, &RunOptions::default()).expect("a run").run;
    assert_eq!(run.duration_s.to_string(), "61");
}
