//! Tests of the study `tcp-vs-udp` in the real laboratory: it loads, its UDP rows match the published ones, its records do not
//! depend on the number of threads, and every verdict can be recomputed from `flows.csv`.

use crate::common::{Temporary, table, tree};
use fullpipe_scenario::schema::Override;
use fullpipe_study::{
    FileSystem, Study, StudyOptions, StudyOutcome, UserSettings, Verdict, VirtualTimeRunner, load_file, run,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/tcp-vs-udp/study.toml")
}

fn laboratory() -> VirtualTimeRunner {
    VirtualTimeRunner::new("test")
}

fn study(settings: &[&str], quick: bool) -> Study {
    let mut study = load_file(&source()).unwrap_or_else(|errors| panic!("{errors}"));
    let set = settings.iter().map(|text| Override::parse(text).unwrap()).collect();
    study
        .apply(&UserSettings { set, quick, ..UserSettings::default() }, &laboratory())
        .unwrap_or_else(|error| panic!("{error}"));
    study
}

fn run_into(study: &Study, folder: &Path, jobs: usize) -> StudyOutcome {
    let options = StudyOptions { jobs, ..StudyOptions::default() };
    run(study, &laboratory(), folder, &FileSystem::new(), &options, &mut (), &AtomicBool::new(false))
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_published_row_of_the_report_is_there() {
    let study = study(&[], false);
    let count = |experiment: &str, metric: &str| {
        study.published.iter().filter(|row| row.experiment == experiment && row.metric == metric).count()
    };
    // Twelve UDP rows of which ten have delays; three packet sizes; ten logged TCP rows and two with tiny transfers.
    for (metric, rows) in [
        ("rx_packets", 12),
        ("lost_packets", 12),
        ("throughput_mibps", 12),
        ("mean_delay_s", 10),
        ("mean_jitter_s", 10),
        ("last_rx_s", 10),
    ] {
        assert_eq!(count("udp", metric), rows, "udp {metric}");
    }
    for (metric, rows) in [("rx_packets", 3), ("throughput_mibps", 3), ("mean_delay_s", 3)] {
        assert_eq!(count("udp_payload", metric), rows, "udp_payload {metric}");
    }
    for (metric, rows) in [
        ("rx_packets", 10),
        ("ack_packets", 10),
        ("throughput_mibps", 12),
        ("mean_delay_s", 10),
        ("mean_jitter_s", 10),
        ("ack_throughput_mibps", 10),
        ("last_rx_s", 10),
    ] {
        assert_eq!(count("tcp", metric), rows, "tcp {metric}");
    }
    for claim in
        ["udp-twice-tcp", "udp-delay-larger", "tcp-jitter-larger", "udp-loses-tcp-does-not", "tiny-exceeds-line-rate"]
    {
        assert!(study.claim(claim).is_some_and(|claim| claim.source.contains("claim")), "{claim}");
    }
}

#[test]
fn udp_is_as_published() {
    let folder = Temporary::new("udp");
    // Thirty runs suffice for skewed values.
    let settings = ["experiments=udp", "runs=30", "packets=[10, 100, 10000, 20000]"];
    let outcome = run_into(&study(&settings, false), &folder.join("out"), 2);
    assert_eq!(outcome.exit_status(), 0, "{:?}", outcome.untrusted);
    for row in outcome.rows.iter().filter(|row| row.published.is_some()) {
        let tiny = matches!(row.point.get("packets"), Some("10" | "100"));
        // A tiny row has three packets: its throughput depends on one draw of the backoff.
        if !(tiny && row.metric == "throughput_mibps") {
            assert_eq!(row.verdict, Some(Verdict::Match), "{row:?}");
        }
    }
}

#[test]
fn the_shortened_study_holds_and_does_not_depend_on_the_number_of_threads() {
    let folder = Temporary::new("quick");
    let study = study(&[], true);
    let outcome = run_into(&study, &folder.join("one"), 1);
    assert_eq!(outcome.exit_status(), 0, "{:?} {:?}", outcome.failed, outcome.untrusted);
    run_into(&study, &folder.join("two"), 2);
    assert!(tree(&folder.join("one")) == tree(&folder.join("two")), "records differ between one and two threads");
    let refuted: Vec<&str> = outcome
        .rows
        .iter()
        .filter(|row| row.metric.starts_with("claim:") && row.verdict == Some(Verdict::Refuted))
        .map(|row| row.metric.as_str())
        .collect();
    // Two runs decide only if no random number is drawn.
    assert!(refuted.is_empty(), "{refuted:?}");
    assert!(outcome.rows.iter().any(|row| row.verdict == Some(Verdict::Undecided)));
}

#[test]
fn verdicts_can_be_computed_again_from_the_flows() {
    // Recomputes throughput, delay, receptions and their verdicts from flows.csv, results.csv (which run belongs to which point)
    // and published.csv, as the contract describes.
    let folder = Temporary::new("again");
    let out = folder.join("out");
    let settings = ["experiments=[\"udp\", \"udp_payload\"]", "runs=30", "packets=[10, 10000, 20000]"];
    run_into(&study(&settings, false), &out, 2);
    let published = table(source().parent().unwrap(), "published.csv");
    let results = table(&out, "results.csv");
    let mut judged = 0;
    for row in table(&out, "summary.csv").iter().filter(|row| !row["verdict"].is_empty() && !row["point"].is_empty()) {
        let parts: Vec<(&str, &str)> = row["point"].split(';').filter_map(|part| part.split_once('=')).collect();
        let values: Vec<f64> = results
            .iter()
            .filter(|result| parts.iter().all(|(axis, value)| result[*axis] == **value))
            .filter_map(|result| {
                let flows = table(&out.join("runs").join(&result["key"]), "flows.csv");
                let flow = flows.into_iter().find(|flow| flow["flow"] == "data").unwrap();
                let number = |column: &str| flow[column].parse::<f64>().unwrap();
                Some(match row["metric"].as_str() {
                    "rx_packets" => number("rx_packets"),
                    "lost_packets" => number("lost_packets"),
                    "throughput_mibps" => {
                        number("rx_bytes") * 8.0 / (number("last_rx_s") - number("first_rx_s")) / 1_048_576.0
                    }
                    "mean_delay_s" => number("delay_sum_s") / number("rx_packets"),
                    _ => return None,
                })
            })
            .collect();
        if values.len() != 30 {
            continue;
        }
        let mean = values.iter().sum::<f64>() / 30.0;
        let moment = |power: i32| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / 30.0;
        // The number of runs was increased once, so the confidence is 1 - 0.05/2: t(0.9875, 29) = 2.363846; s^2 is 30/29 of the
        // second moment. Skewness G: sqrt(870)/28 m3 / m2^1.5. On the side of the skew, the end is further out by G s (2 t^2 +
        // 1)/(6 x 30).
        let width = 2.363_846 * (moment(2) / 29.0).sqrt();
        let varies = moment(2) > 1e-18 * mean * mean;
        let skewness = 870f64.sqrt() / 28.0 * moment(3) / (moment(2) * moment(2).sqrt());
        let further = skewness * (moment(2) * 30.0 / 29.0).sqrt() * (2.0 * 2.363_846f64.powi(2) + 1.0) / 180.0;
        let skewed = varies && skewness.abs() > 1.0;
        let experiment = parts[0].1;
        let point: Vec<String> = parts[1..].iter().map(|(axis, value)| format!("{axis}={value}")).collect();
        let source = published
            .iter()
            .find(|p| p["experiment"] == experiment && p["point"] == point.join(";") && p["metric"] == row["metric"])
            .unwrap();
        let value: f64 = source["value"].parse().unwrap();
        let tolerance = match source["tolerance"].strip_suffix('%') {
            Some(percent) => value * percent.parse::<f64>().unwrap() / 100.0,
            None => source["tolerance"].parse().unwrap(),
        };
        assert!((row["mean"].parse::<f64>().unwrap() - mean).abs() <= 1e-12 * mean.abs(), "{row:?}");
        let (below, above) = if varies { (width - further.min(0.0), width + further.max(0.0)) } else { (0.0, 0.0) };
        let within = (value - (mean - below)).max(mean + above - value);
        let matches = within <= tolerance * (1.0 + 1e-9) && !skewed;
        assert_eq!(row["verdict"] == "match", matches, "{row:?}: {mean} +- {width}");
        judged += 1;
    }
    assert!(judged > 10, "{judged}");
}
