//! Tests of runs without a value: those that fell behind real time count neither for a value nor for a claim.

use crate::common::{Fake, STUDY, Temporary, run_into, study_of, table};
use fullpipe_study::{Study, StudyOutcome, SummaryRow, Verdict};
use fullpipe_units::random::derive_run_seed;

/// A laboratory whose runs with these numbers at size 10 fell behind, and received `more` additional packets.
fn late(runs: &[u64], more: u64) -> Fake {
    Fake { late: Some((10, runs.iter().map(|run| derive_run_seed(4, *run)).collect(), more)), ..Fake::new() }
}

/// The fake study with this number of runs.
fn study_with(runs: u64) -> Study {
    study_of(&STUDY.replace("runs = 3", &format!("runs = {runs}")))
}

fn packets(outcome: &StudyOutcome, size: u64) -> &SummaryRow {
    let point = format!("experiment=sizes;size={size}");
    outcome.rows.iter().find(|row| row.point == point.as_str() && row.metric == "packets").expect("a row")
}

fn claim<'a>(outcome: &'a StudyOutcome, name: &str) -> &'a SummaryRow {
    outcome.rows.iter().find(|row| row.metric == format!("claim:{name}")).expect("a claim")
}

#[test]
fn a_late_run_is_left_out_of_values_and_claims() {
    // Every run receives 10 packets, the late one 1010. The mean of all eleven would be 100.9, which is neither the published 10
    // nor less than at size 40.
    let folder = Temporary::new("late");
    let study = study_with(11);
    let outcome = run_into(&study, &late(&[1], 1000), &folder.join("out"), 2).expect("tables");
    let row = packets(&outcome, 10);
    assert_eq!((row.n, row.mean, row.max, row.verdict), (Some(10), Some(10.0), Some(10.0), Some(Verdict::Match)));
    assert!(row.note.contains("1 of 11 runs fell behind real time, left out"), "{}", row.note);
    let row = claim(&outcome, "more-is-more");
    assert_eq!((row.mean, row.verdict), (Some(1.0), Some(Verdict::Match)));
    assert!(row.note.contains("1 of 22 runs behind it are not to be trusted and are left out"), "{}", row.note);
    assert_eq!(outcome.exit_status(), 0);
    // The values of the late run are still in the table of runs.
    let results = table(&folder.join("out"), "results.csv");
    assert_eq!(results.iter().filter(|row| row["packets"] == "1010").count(), 1);
    // The result is the same when the records are read again.
    let again = run_into(&study, &Fake::new(), &folder.join("out"), 2).expect("tables");
    assert_eq!((again.made, again.rows), (0, outcome.rows));
}

#[test]
fn too_few_runs_left_support_nothing_even_if_all_values_agree() {
    let folder = Temporary::new("too-late");
    let outcome = run_into(&study_with(11), &late(&[0, 2, 3, 4, 5, 6], 0), &folder.join("out"), 2).expect("tables");
    let row = packets(&outcome, 10);
    assert_eq!((row.n, row.mean, row.verdict), (Some(11), Some(10.0), Some(Verdict::Untrusted)));
    assert!(
        row.note
            .contains("6 of 11 runs fell behind real time, too many for a verdict: the values are those of all runs"),
        "{}",
        row.note
    );
    for name in ["more-is-more", "less-is-more"] {
        let row = claim(&outcome, name);
        assert_eq!((row.mean, row.verdict), (None, Some(Verdict::Untrusted)));
        assert!(row.note.contains("6 of 22 runs behind it are not to be trusted, and at experiment=sizes;size=10"));
    }
    // The claim no longer explains the value: 20 packets, while 40 are published, as at size 40.
    assert_eq!(packets(&outcome, 20).verdict, Some(Verdict::Differs));
    // Points without late runs are not affected.
    assert_eq!(packets(&outcome, 20).n, Some(11));
    assert_eq!((outcome.exit_status(), outcome.untrusted.len()), (3, 3));
}

#[test]
fn half_of_the_runs_is_enough() {
    let study = study_with(20);
    let folder = Temporary::new("half-late");
    let ten: Vec<u64> = (0..10).collect();
    let outcome = run_into(&study, &late(&ten, 1000), &folder.join("a"), 2).expect("tables");
    let row = packets(&outcome, 10);
    assert_eq!((row.n, row.mean, row.verdict), (Some(10), Some(10.0), Some(Verdict::Match)));
    let outcome = run_into(&study, &late(&[&ten[..], &[15]].concat(), 1000), &folder.join("b"), 2).expect("tables");
    assert_eq!(packets(&outcome, 10).verdict, Some(Verdict::Untrusted));
}

#[test]
fn a_claim_over_single_runs_does_not_see_late_ones() {
    let text = STUDY.replace("runs = 3", "runs = 11");
    let study = study_of(&format!(
        "{text}\n[[claim]]\nname = \"mean\"\ntext = \"Ten.\"\n\
         expression = 'mean(runs(\"sizes\", \"packets\", size = 10)) == 10'\n\
         [[claim]]\nname = \"count\"\ntext = \"Ten runs.\"\n\
         expression = 'count(runs(\"sizes\", \"packets\", size = 10)) == 10'\n"
    ));
    let folder = Temporary::new("late-runs");
    let outcome = run_into(&study, &late(&[1], 1000), &folder.join("out"), 2).expect("tables");
    for name in ["mean", "count"] {
        let row = claim(&outcome, name);
        assert_eq!((row.n, row.verdict), (Some(10), Some(Verdict::Match)), "{name}");
    }
}

#[test]
fn where_lateness_is_the_subject_late_runs_count() {
    let text = STUDY.replace("runs = 3", "runs = 11");
    let study = study_of(&text.replace("scenario = \"plain\"\n[[", "scenario = \"plain\"\nlate_runs = \"count\"\n[["));
    let folder = Temporary::new("late-counted");
    let all: Vec<u64> = (0..11).collect();
    let outcome = run_into(&study, &late(&all, 1000), &folder.join("out"), 2).expect("tables");
    // Every run received 1010 packets; 10 are published.
    let row = packets(&outcome, 10);
    assert_eq!((row.n, row.mean, row.verdict), (Some(11), Some(1010.0), Some(Verdict::Differs)));
    assert!(row.note.contains("11 of 11 runs fell behind real time, and are included"), "{}", row.note);
    assert_eq!(claim(&outcome, "more-is-more").verdict, Some(Verdict::Refuted));
    assert_eq!((outcome.exit_status(), outcome.untrusted.len()), (0, 0));
    // The resolved study has the setting too.
    let text = std::fs::read_to_string(folder.join("out/study.toml")).expect("the study");
    let again = run_into(&study_of(&text), &Fake::new(), &folder.join("out"), 2).expect("tables");
    assert_eq!((again.made, again.rows), (0, outcome.rows));

    // A failed check still excludes a run.
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
    // In virtual time there is no lateness record.
    run_into(&study, &Fake::new(), &folder.join("virtual"), 2).expect("tables");
    assert!(table(&folder.join("virtual"), "results.csv").iter().all(|row| row["on_time"].is_empty()));
}

#[test]
fn a_claim_over_present_values_leaves_out_points_without_any() {
    // A metric has a value only where the run received 10 packets, which is at size 10. With `present`, the claim is about the
    // values there, which are all equal. Without it, the claim needs a value at each of the three points.
    let text = STUDY.replace("runs = 3", "runs = 11");
    let claims =
        [("whole", "mean(metric('sizes', 'ten')) == 10"), ("present", "mean(present(metric('sizes', 'ten'))) == 10")];
    let claims: String = claims
        .iter()
        .map(|(name, expression)| {
            format!("[[claim]]\nname = \"{name}\"\ntext = \"Ten.\"\nexpression = \"{expression}\"\n")
        })
        .collect();
    let metric = "[[metric]]\nname = \"ten\"\nexpression = 'rx_packets[\"bulk\"] / holds(rx_packets[\"bulk\"] == 10)'\n\
                  experiments = [\"sizes\"]\n\n[[metric]]\nname = \"packets\"";
    let study = study_of(&format!("{}\n{claims}", text.replacen("[[metric]]\nname = \"packets\"", metric, 1)));
    let folder = Temporary::new("present");
    let outcome = run_into(&study, &Fake::new(), &folder.join("out"), 2).expect("tables");
    assert_eq!(claim(&outcome, "whole").verdict, None);
    let row = claim(&outcome, "present");
    assert_eq!((row.n, row.mean, row.verdict), (None, Some(1.0), Some(Verdict::Match)), "{}", row.note);
    // If runs draw random numbers, the values of that point are replications.
    let random = run_into(&study, &Fake { draws: true, ..Fake::new() }, &folder.join("random"), 2).expect("tables");
    assert_eq!(claim(&random, "whole").verdict, None);
    let row = claim(&random, "present");
    assert_eq!((row.n, row.verdict), (Some(11), Some(Verdict::Match)), "{}", row.note);
    // With nine runs there are too few.
    let few = study_of(&format!(
        "{}\n{claims}",
        STUDY.replace("runs = 3", "runs = 9").replacen("[[metric]]\nname = \"packets\"", metric, 1)
    ));
    let few = run_into(&few, &Fake { draws: true, ..Fake::new() }, &folder.join("few"), 2).expect("tables");
    assert_eq!((claim(&few, "present").n, claim(&few, "present").verdict), (Some(9), Some(Verdict::Undecided)));
}
