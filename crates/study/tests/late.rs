//! Runs that fell behind real time count for nothing: neither for a value nor for a claim.

mod common;

use common::{Fake, STUDY, Temporary, run_into, study, study_of, table};
use fullpipe_study::{Outcome, SummaryRow, Verdict};
use fullpipe_units::random::run_seed;

/// The runs of these numbers at size 10 fell behind, and received `more` packets too many.
fn late(runs: &[u64], more: u64) -> Fake {
    Fake { late: Some((10, runs.iter().map(|run| run_seed(4, *run)).collect(), more)), ..Fake::new() }
}

fn packets(outcome: &Outcome, size: u64) -> &SummaryRow {
    let point = format!("experiment=sizes;size={size}");
    outcome.rows.iter().find(|row| row.point == point.as_str() && row.metric == "packets").expect("a row")
}

fn claim<'a>(outcome: &'a Outcome, name: &str) -> &'a SummaryRow {
    outcome.rows.iter().find(|row| row.metric == format!("claim:{name}")).expect("a claim")
}

#[test]
fn a_late_run_is_left_out_of_values_and_claims() {
    // Every run receives 10 packets, the late one 1010: the mean of all three would be 343.3, not as published (10) and
    // more than at size 40.
    let folder = Temporary::new("late");
    let outcome = run_into(&study(), &late(&[1], 1000), &folder.join("out"), 2).expect("tables");
    let row = packets(&outcome, 10);
    assert_eq!((row.n, row.mean, row.max, row.verdict), (Some(2), Some(10.0), Some(10.0), Some(Verdict::Match)));
    assert!(row.note.contains("1 of 3 runs fell behind real time, left out"), "{}", row.note);
    let row = claim(&outcome, "more-is-more");
    assert_eq!((row.mean, row.verdict), (Some(1.0), Some(Verdict::Match)));
    assert!(row.note.contains("1 of 6 runs behind it are not to be trusted and left out"), "{}", row.note);
    assert_eq!(outcome.exit_status(), 0);
    // What it measured is in the table of runs all the same.
    let results = table(&folder.join("out"), "results.csv");
    assert_eq!(results.iter().filter(|row| row["packets"] == "1010").count(), 1);
    // Records say the same again when they are only read.
    let again = run_into(&study(), &Fake::new(), &folder.join("out"), 2).expect("tables");
    assert_eq!((again.made, again.rows), (0, outcome.rows));
}

#[test]
fn too_few_runs_left_support_nothing_even_if_all_values_agree() {
    let folder = Temporary::new("too-late");
    let outcome = run_into(&study(), &late(&[0, 2], 0), &folder.join("out"), 2).expect("tables");
    let row = packets(&outcome, 10);
    assert_eq!((row.n, row.mean, row.verdict), (Some(3), Some(10.0), Some(Verdict::Untrusted)));
    assert!(
        row.note
            .contains("2 of 3 runs fell behind real time, too many for a verdict: the figures are those of all runs"),
        "{}",
        row.note
    );
    for name in ["more-is-more", "less-is-more"] {
        let row = claim(&outcome, name);
        assert_eq!((row.mean, row.verdict), (None, Some(Verdict::Untrusted)));
        assert!(row.note.contains("2 of 6 runs behind it are not to be trusted, and at experiment=sizes;size=10"));
    }
    // What the claim would have explained is no longer explained: 40 packets, published are 50.
    assert_eq!(packets(&outcome, 40).verdict, Some(Verdict::Differs));
    // Points without late runs stand.
    assert_eq!(packets(&outcome, 20).n, Some(3));
    assert_eq!((outcome.exit_status(), outcome.untrusted.len()), (3, 3));
}

#[test]
fn half_of_the_runs_is_enough() {
    let study = study_of(&STUDY.replace("runs = 3", "runs = 4"));
    let folder = Temporary::new("half-late");
    let outcome = run_into(&study, &late(&[0, 3], 1000), &folder.join("a"), 2).expect("tables");
    let row = packets(&outcome, 10);
    assert_eq!((row.n, row.mean, row.verdict), (Some(2), Some(10.0), Some(Verdict::Match)));
    let outcome = run_into(&study, &late(&[0, 1, 3], 1000), &folder.join("b"), 2).expect("tables");
    assert_eq!(packets(&outcome, 10).verdict, Some(Verdict::Untrusted));
}

#[test]
fn a_claim_over_single_runs_does_not_see_late_ones() {
    let study = study_of(&format!(
        "{STUDY}\n[[claim]]\nname = \"present\"\ntext = \"Ten.\"\n\
         expression = 'max(present(runs(\"sizes\", \"packets\", size = 10))) == 10'\n\
         [[claim]]\nname = \"every\"\ntext = \"Ten.\"\n\
         expression = 'max(runs(\"sizes\", \"packets\", size = 10)) >= 10'\n\
         [[claim]]\nname = \"largest\"\ntext = \"Ten.\"\n\
         expression = 'metric(\"sizes\", \"packets\", \"max\", size = 10) == 10'\n"
    ));
    let folder = Temporary::new("late-runs");
    let outcome = run_into(&study, &late(&[1], 1000), &folder.join("out"), 2).expect("tables");
    assert_eq!(claim(&outcome, "present").verdict, Some(Verdict::Match));
    assert_eq!(claim(&outcome, "largest").verdict, Some(Verdict::Match));
    // It needs all runs, and one is missing.
    assert_eq!(claim(&outcome, "every").verdict, Some(Verdict::Untrusted));
}

#[test]
fn where_lateness_is_the_subject_late_runs_count() {
    let study = study_of(&STUDY.replace("scenario = \"plain\"\n[[", "scenario = \"plain\"\nlate_runs = \"count\"\n[["));
    let folder = Temporary::new("late-counted");
    let outcome = run_into(&study, &late(&[0, 1, 2], 1000), &folder.join("out"), 2).expect("tables");
    // Every run received 1010 packets; published are 10.
    let row = packets(&outcome, 10);
    assert_eq!((row.n, row.mean, row.verdict), (Some(3), Some(1010.0), Some(Verdict::Differs)));
    assert!(row.note.contains("3 of 3 runs fell behind real time, and count"), "{}", row.note);
    assert_eq!(claim(&outcome, "more-is-more").verdict, Some(Verdict::Refuted));
    assert_eq!((outcome.exit_status(), outcome.untrusted.len()), (0, 0));
    // The records say so, too.
    let text = std::fs::read_to_string(folder.join("out/study.toml")).expect("the study");
    let again = run_into(&study_of(&text), &Fake::new(), &folder.join("out"), 2).expect("tables");
    assert_eq!((again.made, again.rows), (0, outcome.rows));

    // A failed check is another matter.
    let laboratory = Fake { lies_at: Some(10), ..late(&[0, 2], 1000) };
    let outcome = run_into(&study, &laboratory, &folder.join("lies"), 2).expect("tables");
    assert_eq!((packets(&outcome, 10).verdict, outcome.exit_status()), (Some(Verdict::Untrusted), 3));
}

#[test]
fn lateness_is_a_metric() {
    let study = study_of(&STUDY.replace(
        "[[claim]]\nname = \"more-is-more\"",
        "[[metric]]\nname = \"on_time\"\nexpression = 'lateness(\"on_time\")'\n\n[[claim]]\nname = \"more-is-more\"",
    ));
    let folder = Temporary::new("late-metric");
    run_into(&study, &late(&[1], 0), &folder.join("out"), 2).expect("tables");
    let on_time = |size: &str| {
        let rows = table(&folder.join("out"), "results.csv").into_iter();
        let rows = rows.filter(|row| row["experiment"] == "sizes" && row["size"] == size);
        rows.map(|row| row["on_time"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((on_time("10"), on_time("20")), (vec!["1".into(), "0".into(), "1".into()], vec!["1".into(); 3]));
    // In virtual time there is no account.
    run_into(&study, &Fake::new(), &folder.join("virtual"), 2).expect("tables");
    assert!(table(&folder.join("virtual"), "results.csv").iter().all(|row| row["on_time"].is_empty()));
}
