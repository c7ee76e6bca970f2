//! Tests of the study `bcp-133` and of evaluations of a program's control.

#[allow(dead_code, reason = "the example's main function is not called")]
#[path = "../examples/evaluate.rs"]
mod example;

use example::Fixed;
use fullpipe::congestion::catalogue::{ControlOptions, create};
use fullpipe::evaluation::Dossier;
use fullpipe::find;
use fullpipe::study::Study;
use fullpipe::units::math;
use std::path::PathBuf;

fn study() -> Study {
    find::study("bcp-133").expect("the embedded study")
}

/// The sections of the RFC that begin with this letter in the list.
fn sections(kind: &str) -> Vec<&'static str> {
    let lines = include_str!("rfc9743-sections.txt").lines().filter(|line| !line.starts_with('#'));
    let parts = lines.map(|line| line.split(' ').collect::<Vec<_>>());
    parts.filter(|parts| parts[0] == kind).map(|parts| parts[1]).collect()
}

#[test]
fn matrix_has_all_criteria_and_conditions_of_rfc_9743() {
    let matrix = study().matrix.expect("a matrix");
    let names = |list: &[(String, String)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&matrix.rows), sections("c"));
    assert_eq!(names(&matrix.columns), sections("d"));
    let statements = matrix.statement.iter().flatten().map(|statement| statement.section.clone());
    assert_eq!(statements.collect::<Vec<_>>(), sections("t"));
    assert_eq!(matrix.references, ["newreno", "cubic", "bbr3"]);
    // The loader checks that each of the 8 x 15 cells is declared once, with experiments or a reason.
    let cells: usize = matrix.cell.iter().map(|cell| cell.rows.len() * cell.columns.len()).sum();
    assert_eq!(cells, 120);
}

/// Rate in Mbit/s, round-trip time in ms and buffer in BDP from a label such as "12.3 Mbit/s 44.9 ms 16 BDP".
fn network(label: &str) -> [f64; 3] {
    let words: Vec<&str> = label.split(' ').collect();
    [words[0], words[2], words[4]].map(|number| number.parse().expect("a number"))
}

/// In each dimension, the 12 points have the 12 logarithmic steps low * (high / low)^(i / 11), rounded to three digits.
#[test]
fn networks_are_a_latin_hypercube_over_the_declared_ranges() {
    let study = study();
    let mut seen = 0;
    for experiment in &study.experiments {
        let Some((_, axis)) = experiment.axis("network") else { continue };
        seen += 1;
        let points: Vec<[f64; 3]> = axis.levels.iter().map(|level| network(&level.label)).collect();
        assert_eq!(points.len(), 12, "{}", experiment.name);
        for (dimension, (low, high)) in [(1.0, 1000.0), (2.0, 600.0), (0.25, 16.0)].into_iter().enumerate() {
            let mut values: Vec<f64> = points.iter().map(|point| point[dimension]).collect();
            values.sort_by(f64::total_cmp);
            for (step, value) in values.iter().enumerate() {
                let expected = low * math::pow(high / low, step as f64 / 11.0);
                assert!((value / expected - 1.0).abs() < 0.005, "{}: {value} is not {expected}", experiment.name);
            }
        }
        // In units of steps, the nearest two points are sqrt(22) = 4.7 apart. Random hypercubes of 12 points have about 2.
        let step = |value: f64, low: f64, high: f64| 11.0 * math::ln(value / low) / math::ln(high / low);
        let place = |p: &[f64; 3]| [step(p[0], 1.0, 1000.0), step(p[1], 2.0, 600.0), step(p[2], 0.25, 16.0)];
        let places: Vec<[f64; 3]> = points.iter().map(place).collect();
        for (index, one) in places.iter().enumerate() {
            for other in &places[..index] {
                let square: f64 = one.iter().zip(other).map(|(a, b)| (a - b) * (a - b)).sum();
                assert!(square > 21.5, "{square}");
            }
        }
        // Rate, delay and buffer are those of the label.
        for (level, [rate, rtt, bdp]) in axis.levels.iter().zip(&points) {
            let of = |path: &str| {
                let setting = level.set.iter().find(|setting| setting.path == path).expect("a setting");
                setting.value.as_text().expect("a text").to_owned()
            };
            assert_eq!(of("topology.bottleneck.rate"), format!("{rate}Mbit/s"));
            let delay: f64 = of("topology.bottleneck.delay").trim_end_matches("ms").parse().expect("ms");
            // Each access link adds 0.1 ms in each direction.
            assert!((2.0 * (delay + 0.2) - rtt).abs() < 1e-6, "{delay} {rtt}");
            let limit: f64 = of("topology.bottleneck.discipline.limit").trim_end_matches('B').parse().expect("bytes");
            let bytes = f64::max(3000.0, rate * 1e6 * rtt / 1e3 / 8.0 * bdp);
            assert!((limit - bytes).abs() <= 1.0, "{limit} {bytes}");
        }
    }
    assert!(seen >= 10, "{seen}");
}

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("fullpipe-evaluation-{name}-{}", std::process::id()))
}

/// Whether the control's worst point is worse than that of each reference.
fn is_outside(dossier: &Dossier, control: &str, [row, column, metric]: [&str; 3], high: bool) -> bool {
    let of = |wanted: &str| {
        let is_wanted = |cell: &&fullpipe::evaluation::MatrixRow| {
            [cell.row.as_str(), &cell.column, &cell.metric, &cell.control] == [row, column, metric, wanted]
        };
        let cell = dossier.cells.iter().find(is_wanted).unwrap_or_else(|| panic!("{row} {column} {metric} {wanted}"));
        cell.worst.expect("a value") * if high { 1.0 } else { -1.0 }
    };
    ["newreno", "cubic", "bbr3"].into_iter().all(|reference| of(control) > of(reference))
}

#[test]
fn a_fixed_window_that_ignores_losses_is_outside_the_range_of_the_references() {
    let folder = folder("fixed");
    let chosen = ["single", "collapse", "beside_newreno", "bursts", "outage"];
    let evaluation = fullpipe::evaluate("fixed", |_| Box::new(Fixed)).quick().experiments(&chosen).folder(&folder);
    let dossier = evaluation.run().expect("an evaluation");
    for (cell, high) in [
        // Collapse: ten flows of 300 segments on 64 kbit/s.
        (["5.1.1", "6.1", "drop_ratio"], true),
        // Losses: a window of 300 segments is more than 5 BDP and its buffer.
        (["5.1.3", "6.1", "drop_ratio"], true),
        (["5.1.3", "6.1", "retransmission_ratio"], true),
        // Fairness with Reno, and transient events.
        (["5.2.1", "6.1", "harm_goodput_to_newreno"], true),
        (["5.1.3", "7.8", "drop_ratio"], true),
    ] {
        assert!(is_outside(&dossier, "fixed", cell, high), "{cell:?}: {:#?}", dossier.cells);
    }
    std::fs::remove_dir_all(folder).expect("the folder of the evaluation");
}

/// Ten runs, with the correction for the number of comparisons.
#[test]
fn cubic_under_another_name_is_not_distinguishable_from_cubic() {
    let folder = folder("twin");
    let chosen = ["single", "constrained", "real_time"];
    // The options of the TCP model: HyStart++ is on by default.
    let cubic = || create("cubic", &ControlOptions { hystart: true, ..ControlOptions::default() }).expect("a control");
    let evaluation = fullpipe::evaluate("twin", move |_| cubic()).quick().runs(10);
    let dossier = evaluation.experiments(&chosen).folder(&folder).run().expect("an evaluation");
    let of_cubic: Vec<_> = dossier.findings.iter().filter(|finding| finding.reference == "cubic").collect();
    // Rows 5.1.2, 5.1.3 and 5.2.2 under 6.1, and 5.1.2 and 5.1.3 under 7.4: 2 + 2 + 4 + 2 * 2 metrics.
    assert_eq!(of_cubic.len(), 12);
    for finding in of_cubic {
        let found = (finding.difference, finding.finding.map(|finding| finding.name()));
        assert_eq!(found, (Some(0.0), Some("not distinguishable")), "{finding:?}");
    }
    // The comparison can find a difference: CUBIC differs from the other references somewhere.
    let decided = |finding: &&fullpipe::evaluation::FindingRow| {
        matches!(finding.finding.map(|finding| finding.name()), Some("better" | "worse"))
    };
    assert!(dossier.findings.iter().any(|finding| decided(&finding)), "{:#?}", dossier.findings);
    std::fs::remove_dir_all(folder).expect("the folder of the evaluation");
}

#[test]
fn names_of_built_in_controls_and_of_unknown_experiments_are_errors() {
    let error = |name: &str, experiment: &str| {
        let evaluation = fullpipe::evaluate(name, |_| Box::new(Fixed)).quick().experiments(&[experiment]);
        evaluation.folder(folder("errors")).run().expect_err(name).to_string()
    };
    assert!(error("cubic", "single").contains("cubic is the name of a built-in control"));
    assert!(error("not a name", "single").contains("not a valid name"));
    let text = error("mine", "singel");
    assert!(
        text.contains("unknown experiment singel; did you mean \"single\"") || text.contains("did you mean single"),
        "{text}"
    );
}
