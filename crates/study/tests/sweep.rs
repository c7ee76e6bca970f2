//! Tests of whole studies with the fake laboratory: the contents of tables, independence of the number of threads, and the reuse
//! of runs.

use crate::common;

use crate::common::{Fake, STUDY, Temporary, run_into, stamps, study, study_of, table, tree, with};
use fullpipe_archive::{SUMMARY, describe_chance_verdicts};
use fullpipe_study::summary::SeedVerdicts;
use fullpipe_study::{
    EmbeddedStudy, FileSystem, FinishedRun, RunOptions, StudyError, StudyObserver, StudyOptions, Verdict, run,
};
use fullpipe_units::random::derive_run_seed;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn tables_have_what_the_runs_gave() {
    let folder = Temporary::new("tables");
    let laboratory = Fake::new();
    let outcome = run_into(&study(), &laboratory, &folder.join("out"), 1).unwrap();
    assert_eq!((outcome.exit_status(), outcome.reused), (0, 0));
    // Three sizes and two shapes with three runs each; the round shape of size 20 is the point size=20.
    assert_eq!(outcome.made, 12);

    let results = table(&folder.join("out"), "results.csv");
    assert_eq!(results.len(), 15);
    let header = std::fs::read_to_string(folder.join("out/results.csv")).unwrap();
    assert_eq!(header.lines().next().unwrap(), "experiment,size,shape,seed,key,packets,rate_bps,window_bytes,per_size");
    // Runs have the seeds f(4, 0), f(4, 1), f(4, 2) at every point.
    for (row, cells) in results.iter().enumerate() {
        assert_eq!(cells["seed"], derive_run_seed(4, row as u64 % 3).to_string());
    }
    // 40 packets of 1000 bytes in (10 + seed mod 7) * 0.1 s.
    let rate = 40.0 * 8000.0 / ((10 + derive_run_seed(4, 0) % 7) as f64 / 10.0);
    let row = &results[6];
    assert_eq!((row["size"].as_str(), row["shape"].as_str(), row["packets"].as_str()), ("40", "", "40"));
    assert!((row["rate_bps"].parse::<f64>().unwrap() - rate).abs() < 1e-9 * rate);
    assert_eq!((row["window_bytes"].as_str(), row["per_size"].as_str()), ("20", "1"));
    // Cells that do not apply are empty.
    assert_eq!((results[9]["window_bytes"].as_str(), results[9]["size"].as_str()), ("", ""));
    assert_eq!(results[9]["key"], results[3]["key"]);

    let summary = table(&folder.join("out"), "summary.csv");
    // The columns are the declared ones, and each has a value in some row.
    let header = std::fs::read_to_string(folder.join("out/summary.csv")).unwrap();
    assert!(header.lines().next().unwrap().split(',').eq(SUMMARY.names()), "{header}");
    // Support and the interval of a median exist only for points with random numbers; these have none.
    let of_random = ["support", "median_low", "median_high"];
    for column in SUMMARY.names().filter(|column| !of_random.contains(column)) {
        assert!(summary.iter().any(|row| !row[column].is_empty()), "{column}");
    }
    let find = |point: &str, metric: &str| {
        summary.iter().find(|row| row["point"] == point && row["metric"] == metric).expect("the row")
    };
    let row = find("experiment=sizes;size=10", "packets");
    let cells: Vec<&str> = ["unit", "n", "mean", "ci95", "min", "median", "max", "published", "tolerance", "verdict"]
        .iter()
        .map(|column| row[*column].as_str())
        .collect();
    // No random number was drawn: there is one value and no interval.
    assert_eq!(cells, ["packets", "1", "10", "", "10", "10", "10", "10", "0", "match"]);
    assert_eq!((row["low"].as_str(), row["high"].as_str(), row["published_runs"].as_str()), ("", "", "1"));
    assert_eq!((row["source"].as_str(), row["note"].as_str()), ("book", "exactly"));
    // 40 against 50 within 10 %: it differs, and no claim explains it.
    assert_eq!(find("experiment=sizes;size=40", "packets")["verdict"], "differs");
    // 20 against 40 within 1 %: explained, because the variant has 40; the note names the runs.
    let row = find("experiment=sizes;size=20", "packets");
    assert_eq!(row["verdict"], "explained");
    let key = &results[6]["key"];
    assert!(
        row["note"].contains(&format!(
            "claim:more-is-more (More packets when there are more.), shown by sizes at size=40 (run {key})"
        )),
        "{}",
        row["note"]
    );
    assert_eq!(find("experiment=shapes;shape=round", "packets")["published"], "");
    let row = find("", "claim:more-is-more");
    assert_eq!((row["mean"].as_str(), row["verdict"].as_str(), row["n"].as_str()), ("1", "match", ""));
    let row = find("", "claim:less-is-more");
    assert_eq!((row["mean"].as_str(), row["verdict"].as_str(), row["source"].as_str()), ("0", "refuted", "a bad book"));
    // The variant does not match all published values of these points.
    assert!(find("", "claim:less-is-more")["note"].ends_with("see claim:more-is-more"));
    assert_eq!(summary.len(), 3 * 4 + 2 * 2 + 2);
}

#[test]
fn a_claim_that_does_not_hold_and_a_claim_that_explains_nothing_are_refuted() {
    let text = common::STUDY.replace("name = \"more-is-more\"\ntext = \"More packets when there are more.\"\nexpression = 'metric(\"sizes\", \"packets\", size = 40) >", "name = \"more-is-more\"\ntext = \"\"\nexpression = 'metric(\"sizes\", \"packets\", size = 40) <");
    let folder = Temporary::new("refuted");
    let outcome = run_into(&study_of(&text), &Fake::new(), &folder.join("out"), 1).unwrap();
    let verdict = |metric: &str| outcome.rows.iter().find(|row| row.metric == metric).unwrap().verdict;
    assert_eq!(verdict("claim:more-is-more"), Some(Verdict::Refuted));
    assert_eq!(verdict("claim:less-is-more"), Some(Verdict::Refuted));
    let differs = outcome.rows.iter().filter(|row| row.verdict == Some(Verdict::Differs)).count();
    assert_eq!(differs, 2);
}

#[test]
fn a_claim_over_deterministic_points_is_undecided_if_random_starts_change_it() {
    // Of ten runs with random starts, the first one or two receive fewer packets if there are more.
    for (phases, expected) in [(0, Verdict::Match), (1, Verdict::Match), (2, Verdict::Undecided)] {
        let folder = Temporary::new(&format!("phase-{phases}"));
        let laboratory = Fake { phases: Some(phases), ..Fake::new() };
        let outcome = run_into(&study(), &laboratory, &folder.join("out"), 1).unwrap();
        let row = outcome.rows.iter().find(|row| row.metric == "claim:more-is-more").unwrap();
        assert_eq!(row.verdict, Some(expected), "{phases}: {}", row.note);
        assert_eq!(row.note.contains("phase effect: 8 of 10 runs"), phases == 2, "{}", row.note);
        // Ten runs at each of two points, which have no rows in the results.
        assert_eq!((outcome.made, outcome.exit_status()), (12 + 20, 0));
        assert_eq!(table(&folder.join("out"), "results.csv").len(), 15);
        let before = tree(&folder.join("out"));
        let again = run_into(&study(), &laboratory, &folder.join("out"), 1).unwrap();
        assert_eq!((again.made, again.reused), (0, 32));
        assert_eq!(tree(&folder.join("out")), before);
    }
    // Points with random numbers have different runs already.
    let folder = Temporary::new("phase-random");
    let laboratory = Fake { phases: Some(2), draws: true, ..Fake::new() };
    assert_eq!(run_into(&study(), &laboratory, &folder.join("out"), 1).unwrap().made, 12);
}

#[test]
fn runs_of_which_only_some_have_a_timeout_decide_nothing_below_thirty() {
    // packets is 10 in every run, so the width of the interval is 0.
    let published = "\n[[published]]\nexperiment = \"sizes\"\npoint = \"size=10\"\nmetric = \"packets\"\nvalue = 10\n";
    for (runs, timeouts, expected) in
        [(12, 0, Verdict::Match), (12, 1, Verdict::Undecided), (12, 12, Verdict::Match), (30, 1, Verdict::Match)]
    {
        let folder = Temporary::new(&format!("timeouts-{runs}-{timeouts}"));
        let (study, laboratory) = random_study(runs, published);
        let laboratory = Fake { timeouts, ..laboratory };
        let outcome = run_into(&study, &laboratory, &folder.join("out"), 1).unwrap();
        let find = |name: &str| outcome.rows.iter().find(|row| row.metric == name && row.verdict.is_some()).unwrap();
        for row in [find("packets"), find("claim:more-is-more")] {
            assert_eq!(
                row.verdict,
                Some(expected),
                "{runs} runs, {timeouts} with a time-out: {}: {}",
                row.metric,
                row.note
            );
            let note = "12 complete replications, 30 are needed, because only some of the runs have a time-out";
            assert_eq!(row.note.contains(note), expected == Verdict::Undecided, "{}", row.note);
        }
    }
}

/// A number as notes print it.
fn short(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap()
}

#[test]
fn long_term_values_whose_halves_differ_are_not_stationary() {
    let metric = |name: &str, unit: &str| {
        format!("\n[[metric]]\nname = \"{name}\"\nunit = \"{unit}\"\nexpression = 'goodput_bps[\"bulk\"]'\n")
    };
    let claim =
        "\n[[claim]]\nname = \"goes\"\ntext = \"\"\nexpression = 'metric(\"sizes\", \"goodput\", size = 40) > 1'\n";
    let more = metric("goodput", "bit/s") + &metric("slow", "s") + &metric("count", "packets") + claim;
    // 5 % of the mean of 100 and 105.1 is 5.1275; 20 % of the mean of 100 and 122.3 is 22.23.
    for (second, rate, delay) in
        [(105.1, false, false), (105.2, true, false), (122.2, true, false), (122.3, true, true)]
    {
        let folder = Temporary::new(&format!("halves-{second}"));
        let (study, laboratory) = random_study(3, &more);
        let laboratory = Fake { second_half_bps: Some(second), ..laboratory };
        let outcome = run_into(&study, &laboratory, &folder.join("out"), 1).unwrap();
        let has = |metric: &str| {
            let note = format!(
                "not stationary: 100 in the first half of the measured interval, {} in the second",
                short(second)
            );
            let row = outcome.rows.iter().find(|row| row.metric == metric).unwrap();
            assert_eq!(row.note.contains("stationary"), row.note.contains(&note), "{}", row.note);
            row.note.contains(&note)
        };
        assert_eq!(
            (has("goodput"), has("slow"), has("count"), has("packets")),
            (rate, delay, false, false),
            "{second}"
        );
        assert_eq!(has("claim:goes"), rate);
    }
}

#[test]
fn a_median_has_an_interval_from_six_runs_on_and_no_event_bounds_its_share() {
    let losses = "\n[[metric]]\nname = \"losses\"\nunit = \"packets\"\nexpression = 'lost_packets[\"bulk\"]'\n";
    for (runs, draws) in [(5, true), (6, true), (10, true), (10, false)] {
        let folder = Temporary::new(&format!("median-{runs}-{draws}"));
        let (study, laboratory) = random_study(runs, losses);
        let outcome = run_into(&study, &Fake { draws, ..laboratory }, &folder.join("out"), 1).unwrap();
        let find = |metric: &str| outcome.rows.iter().find(|row| row.metric == metric).unwrap();
        let (rate, losses) = (find("rate_bps"), find("losses"));
        if runs < 6 || !draws {
            assert_eq!((rate.median_low, rate.median_high), (None, None), "{runs}");
        } else if runs == 6 {
            // From the smallest value to the largest: 2 * 2^-6 = 3 % of intervals miss the median.
            assert_eq!((rate.median_low, rate.median_high), (rate.min, rate.max));
        } else {
            // From the second to the ninth of ten: 2 * 11 / 1024 = 2 %.
            assert!(rate.median_low >= rate.min && rate.median_low <= rate.median && rate.median_high >= rate.median);
        }
        let note = "0 in all 10 runs: another value in at most 30.0 % of runs (95 %)";
        assert_eq!(losses.note.contains(note), runs == 10 && draws, "{}", losses.note);
    }
}

#[test]
fn claims_that_too_few_runs_can_never_decide_are_named() {
    let names = |runs: u64, more: &str| random_study(runs, more).0.undecidable_claims();
    let parts = "\n[[claim]]\nname = \"six\"\ntext = \"\"\nexpression = 'all(metric(\"sizes\", \"packets\") > 1) and all(metric(\"sizes\", \"packets\") < 99)'\n";
    assert_eq!(names(10, ""), Vec::<String>::new());
    // A single run may be deterministic.
    assert_eq!(names(1, ""), Vec::<String>::new());
    let nine = names(9, "");
    assert_eq!(nine.len(), 2);
    assert!(nine[0].starts_with(
        "claim more-is-more: experiment sizes has 9 runs per point; a claim over random runs requires 10"
    ));
    let many = names(19, parts);
    assert_eq!(many.len(), 1);
    assert!(many[0].contains("claim six") && many[0].contains("with 6 parts requires 20"), "{many:?}");
    assert_eq!(names(20, parts), Vec::<String>::new());
}

#[test]
fn a_shortened_study_makes_no_runs_with_random_starts_and_says_so() {
    #[derive(Default)]
    struct Messages(Vec<String>);
    impl StudyObserver for Messages {
        fn on_message(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
    }
    let (folder, mut messages) = (Temporary::new("phase-quick"), Messages::default());
    let (study, _) = with(&[], true).unwrap();
    let laboratory = Fake { phases: Some(2), ..Fake::new() };
    let (options, stop) = (StudyOptions::default(), AtomicBool::new(false));
    let outcome =
        run(&study, &laboratory, &folder.join("out"), &FileSystem::new(), &options, &mut messages, &stop).unwrap();
    let row = outcome.rows.iter().find(|row| row.metric == "claim:more-is-more").unwrap();
    assert_eq!((row.verdict, row.note.contains("phase")), (Some(Verdict::Match), false));
    assert!(messages.0.iter().any(|text| text.contains("not tested with random starts")), "{:?}", messages.0);
}

/// The fake study with this number of runs, which draw random numbers, and further text at the end.
fn random_study(runs: u64, more: &str) -> (fullpipe_study::Study, Fake) {
    let text = STUDY.replace("runs = 3", &format!("runs = {runs}")) + more;
    (study_of(&text), Fake { draws: true, ..Fake::new() })
}

#[test]
fn a_value_matches_only_if_its_whole_interval_is_within_the_tolerance() {
    // rate_bps varies with the seed.
    let folder = Temporary::new("interval");
    let (study, laboratory) = random_study(12, "");
    let outcome = run_into(&study, &laboratory, &folder.join("a"), 1).unwrap();
    let row = outcome.rows.iter().find(|row| row.metric == "rate_bps").unwrap();
    let (mean, width) = (row.mean.unwrap(), row.ci95.unwrap());
    assert!(width > 0.0);
    assert_eq!((row.low, row.high), (Some(mean - width), Some(mean + width)));
    // The skewness of these twelve rates is 0.0767, so for verdicts the upper end is 1.018 widths above the mean. The prediction
    // interval for one other run is sqrt(1/12 + 1) / sqrt(1/12) = 3.6 widths.
    for (off, tolerance, runs, expected) in [
        (0.0, 1.02, 1, Verdict::Match),
        (0.0, 1.01, 1, Verdict::Undecided),
        (0.5, 1.49, 1, Verdict::Undecided),
        (3.7, 0.0, 1, Verdict::Differs),
        (3.5, 0.0, 1, Verdict::Undecided),
        (1.02, 0.0, 0, Verdict::Differs),
        (1.01, 0.0, 0, Verdict::Undecided),
        (-1.01, 0.0, 0, Verdict::Differs),
        (0.99, 0.0, 0, Verdict::Undecided),
    ] {
        let published = format!(
            "published = [{{ experiment = \"sizes\", point = \"size=10\", metric = \"rate_bps\", value = {:?}, \
             tolerance = \"{:?}\", published_runs = {runs} }}]\n[scenarios]",
            mean + off * width,
            tolerance * width
        );
        let study = study_of(&STUDY.replace("runs = 3", "runs = 12").replace("[scenarios]", &published));
        let outcome = run_into(&study, &laboratory, &folder.join("a"), 1).unwrap();
        let row = outcome.rows.iter().find(|row| row.metric == "rate_bps").unwrap();
        assert_eq!(row.verdict, Some(expected), "{off} {tolerance} {runs}");
        assert_eq!(row.published_runs, Some(runs).filter(|runs| *runs > 0));
        assert_eq!(row.note.contains("compatible with one run"), off == 3.5, "{}", row.note);
        assert_eq!((outcome.made, outcome.reused), (0, 48));
    }
}

const RATES: &str = r#"
[[claim]]
name = "twice"
text = "Twice the packets give exactly twice the rate."
expression = 'metric("sizes", "rate_bps", size = 20) == 2 * metric("sizes", "rate_bps", size = 10)'
[[claim]]
name = "above-the-mean"
text = "A rate is above a number near its mean."
expression = 'metric("sizes", "rate_bps", size = 10) > 63000'
exploratory = true
[[claim]]
name = "parts"
text = "All rates are large."
expression = 'all(metric("sizes", "rate_bps") > 100000)'
"#;

#[test]
fn claims_over_random_points_are_judged_by_their_support() {
    let folder = Temporary::new("support");
    let (study, laboratory) = random_study(10, RATES);
    let outcome = run_into(&study, &laboratory, &folder.join("ten"), 1).unwrap();
    let claim = |name: &str| outcome.rows.iter().find(|row| row.metric == format!("claim:{name}")).unwrap();
    // Points are resampled jointly; otherwise the claim would hold in few resamples.
    let row = claim("twice");
    assert_eq!((row.n, row.support, row.verdict), (Some(10), Some(1.0), Some(Verdict::Match)));
    let row = claim("above-the-mean");
    let support = row.support.unwrap();
    assert!((0.01..0.99).contains(&support), "{support}");
    assert_eq!(row.verdict, Some(Verdict::Undecided));
    assert!(row.note.ends_with("; exploratory"), "{}", row.note);
    // At size 10 the largest rate is 80 000. The note names the part that decides.
    let row = claim("parts");
    assert_eq!((row.mean, row.verdict), (Some(0.0), Some(Verdict::Refuted)));
    assert!(row.note.contains("decided by part 1 of 3 (experiment=sizes;size=10)"), "{}", row.note);

    let (study, laboratory) = random_study(9, RATES);
    let outcome = run_into(&study, &laboratory, &folder.join("nine"), 1).unwrap();
    for row in outcome.rows.iter().filter(|row| row.claim().is_some() || row.published.is_some()) {
        assert_eq!((row.verdict, row.support), (Some(Verdict::Undecided), None), "{row:?}");
        assert!(row.note.contains("9 complete replications, 10 are needed"), "{}", row.note);
    }
}

/// A run at size 10 has one of seven rates, 80 000 / (1.0, 1.1, ..., 1.6), with a mean of 63 058 and a deviation of 10 200. The
/// half width for the mean of 60 runs is 2 640, so 66 667 lies outside. One run in seven has exactly that rate (14 %), but the
/// mean of 1000 runs, with a deviation of 323, is always far from it.
#[test]
fn a_claim_is_refuted_only_if_the_runs_of_the_publication_could_not_satisfy_it() {
    let folder = Temporary::new("published-runs");
    for (runs, expected) in [(None, Verdict::Refuted), (Some(1), Verdict::Undecided), (Some(1000), Verdict::Refuted)] {
        let stated = runs.map_or_else(String::new, |runs: u64| format!("published_runs = {runs}"));
        let claim = format!(
            "[[claim]]\nname = \"near\"\ntext = \"\"\n{stated}\n\
             expression = 'abs(metric(\"sizes\", \"rate_bps\", size = 10) - 66667) <= 100'\n"
        );
        let (study, laboratory) = random_study(60, &claim);
        let outcome = run_into(&study, &laboratory, &folder.join("out"), 1).unwrap();
        let row = outcome.rows.iter().find(|row| row.metric == "claim:near").unwrap();
        assert_eq!(row.verdict, Some(expected), "{runs:?}: {row:?}");
        assert_eq!(row.published_runs, runs);
        assert_eq!(row.note.contains("compatible with one run"), runs == Some(1), "{}", row.note);
    }
}

#[test]
fn a_study_under_several_seeds_is_judged_by_all_runs_together() {
    let folder = Temporary::new("seeds");
    let (mut study, laboratory) = random_study(6, RATES);
    let undecided = run_into(&study, &laboratory, &folder.join("out"), 1).unwrap();
    let find = |outcome: &fullpipe_study::StudyOutcome| {
        outcome.rows.iter().find(|row| row.metric == "claim:twice").unwrap().clone()
    };
    assert_eq!((undecided.made, find(&undecided).verdict), (24, Some(Verdict::Undecided)));
    let settings = fullpipe_study::UserSettings { seeds: Some(3), ..fullpipe_study::UserSettings::default() };
    study.apply(&settings, &laboratory).unwrap();
    // The runs of the first seed are those of the study without `--seeds`.
    let pooled = run_into(&study, &laboratory, &folder.join("out"), 1).unwrap();
    assert_eq!((pooled.made, pooled.reused), (48, 24));
    let row = find(&pooled);
    assert_eq!((row.n, row.verdict), (Some(18), Some(Verdict::Match)));
    assert!(row.note.ends_with("by study seed: undecided, undecided, undecided"), "{}", row.note);
    // The resolved study has the setting too.
    let text = std::fs::read_to_string(folder.join("out/study.toml")).unwrap();
    assert!(text.contains("study_seeds = 3"), "{text}");
    assert_eq!(run_into(&study_of(&text), &laboratory, &folder.join("out"), 1).unwrap().rows, pooled.rows);
}

#[test]
fn the_verdicts_of_study_seeds_are_a_table_and_chance_is_stated() {
    let folder = Temporary::new("robustness");
    let (mut study, laboratory) = random_study(10, RATES);
    let laboratory = Fake { cpu_s: Some(2.0), ..laboratory };
    let out = folder.join("out");
    let single = run_into(&study, &laboratory, &out, 1).unwrap();
    assert!(single.seeds.is_empty() && !out.join("robustness.md").exists());
    // Two claims of the fake study compare numbers of packets, three compare rates; all five depend on random runs.
    assert_eq!(
        describe_chance_verdicts(&single.rows).unwrap(),
        "5 claims were tested, 5 of them by support in random runs. If each of these lay exactly at its bound, 0.12 would be a \
         match and 0.12 refuted by chance."
    );
    study.study_seeds = 2;
    let pooled = run_into(&study, &laboratory, &out, 1).unwrap();
    let page = std::fs::read_to_string(out.join("robustness.md")).unwrap();
    assert!(page.contains("| fake | twice | match, match | match | 2 of 2 | 80.0 s |\n"), "{page}");
    assert!(page.contains("| fake | parts | refuted, refuted | refuted | 2 of 2 | 120.0 s |\n"), "{page}");
    let verdicts = pooled.rows.iter().filter(|row| row.verdict.is_some()).count();
    assert_eq!((page.lines().count(), pooled.seeds.len()), (verdicts + 2, verdicts));
    // Two points with 20 runs each; the runs of the first seed exist already.
    assert_eq!((pooled.made, pooled.cpu_s), (40, 160.0));
    let rows = table(&out, "robustness.csv");
    let row = rows.iter().find(|row| row["name"] == "claim:twice").unwrap();
    let cells =
        ["verdicts", "pooled", "seeds", "agreeing", "contradicting", "cpu_s"].map(|column| row[column].as_str());
    assert_eq!(cells, ["match;match", "match", "2", "2", "0", "80"]);
    assert_eq!(rows.len(), verdicts);
    // Another run of a complete study reads the times from the folder.
    let again = run_into(&study, &Fake { cpu_s: Some(9.0), draws: true, ..Fake::new() }, &out, 1).unwrap();
    assert_eq!((again.made, again.cpu_s), (0, 160.0));
    let mut twice = pooled.seeds.iter().find(|verdicts| verdicts.name == "claim:twice").unwrap().clone();
    for (other, contradicted) in [(Verdict::Undecided, false), (Verdict::Refuted, true), (Verdict::Differs, true)] {
        twice.of_seeds[1] = Some(other);
        assert_eq!(twice.is_contradicted(), contradicted);
    }
    let table = SeedVerdicts::markdown_table("s", &[twice]);
    assert!(table.ends_with("| s | twice | match, differs | match | 1 of 2, contradicted | 80.0 s |\n"), "{table}");
}

#[test]
fn several_seeds_repeat_only_the_robust_claims_and_their_points() {
    let folder = Temporary::new("robust");
    let text = format!("[robust]\nclaims = [\"twice\"]\n{RATES}");
    let (mut study, laboratory) = random_study(5, &text);
    assert_eq!(run_into(&study, &laboratory, &folder.join("out"), 1).unwrap().made, 20);
    let settings = fullpipe_study::UserSettings { seeds: Some(2), ..fullpipe_study::UserSettings::default() };
    study.apply(&settings, &laboratory).unwrap();
    // The claim refers to sizes 10 and 20: five new runs at each. Those of the first seed exist.
    let outcome = run_into(&study, &laboratory, &folder.join("out"), 1).unwrap();
    assert_eq!((outcome.made, outcome.reused), (10, 10));
    let claims: Vec<_> = outcome.rows.iter().filter_map(|row| Some((row.claim()?, row.n, row.verdict))).collect();
    assert_eq!(claims, [("twice", Some(10), Some(Verdict::Match))]);
    assert!(
        outcome
            .rows
            .iter()
            .all(|row| !row.point.to_string().contains("40") && row.point.experiment() != Some("shapes"))
    );
    // The resolved study can be loaded.
    let text = std::fs::read_to_string(folder.join("out/study.toml")).unwrap();
    assert_eq!(run_into(&study_of(&text), &laboratory, &folder.join("out"), 1).unwrap().rows, outcome.rows);
    for wrong in ["[robust]\nclaims = [\"twise\"]\n", "[robust]\nclaim = [\"twice\"]\n"] {
        let files = [("plain.txt", common::SCENARIO)];
        let loaded =
            fullpipe_study::load(&format!("{STUDY}{wrong}{RATES}"), "study.toml", "x", &EmbeddedStudy("fake", &files));
        assert!(loaded.unwrap_err().to_string().contains("did you mean"), "{wrong}");
    }
}

#[test]
fn samples_that_are_written_during_a_run_give_the_same_records_and_metrics() {
    let folder = Temporary::new("samples");
    let files = |laboratory: &Fake, name: &str| {
        let outcome = run_into(&study(), laboratory, &folder.join(name), 2).unwrap();
        (outcome.rows, tree(&folder.join(name)))
    };
    let kept = files(&Fake::new(), "kept");
    assert!(kept.0.iter().any(|row| row.metric == "window_bytes" && row.mean == Some(20.0)));
    assert_eq!(files(&Fake { writes_samples: true, ..Fake::new() }, "written"), kept);
    // The records of reused runs are read from the files.
    assert_eq!(files(&Fake::new(), "written"), kept);
}

#[test]
fn no_more_runs_are_computed_at_once_than_there_are_jobs() {
    let folder = Temporary::new("jobs");
    for jobs in [1, 2, 3] {
        // A step on the disk takes longer than a run: other workers compute in this time.
        let slow = FileSystem::with_hook(
            std::sync::Arc::new(|step: fullpipe_study::files::FileOperation<'_>| {
                std::thread::sleep(Duration::from_micros(if step.modifies_disk() { 500 } else { 0 }));
                Ok(())
            }),
            usize::MAX,
        );
        let laboratory = Fake { takes: Duration::from_millis(2), ..Fake::new() };
        let out = folder.join(&jobs.to_string());
        assert_eq!(common::run_with(&study(), &laboratory, &out, jobs, &slow).unwrap().made, 12);
        assert_eq!(laboratory.most_computing.load(Ordering::SeqCst), jobs);
    }
}

#[test]
fn equal_records_of_runs_with_random_numbers_are_a_warning() {
    let folder = Temporary::new("equal");
    let warnings = |laboratory: &Fake, name: &str| run_into(&study(), laboratory, &folder.join(name), 1).unwrap();
    // The time of the last packet depends on the seed.
    assert!(warnings(&Fake { draws: true, ..Fake::new() }, "different").warnings.is_empty());
    let equal = warnings(&Fake { draws: true, ignores_seed: true, ..Fake::new() }, "equal");
    assert_eq!(equal.warnings.len(), 5);
    let expected = "experiment=sizes;size=10: 3 runs drew random numbers, but their records are equal: they are not independent \
         (equal-records)";
    assert_eq!(equal.warnings[0].to_string(), expected);
    let mut metrics = equal.rows.iter().filter(|row| row.claim().is_none());
    assert!(metrics.all(|row| row.note.contains("their records are equal") && row.ci95.is_none()));
    // Runs without random numbers are equal by design.
    assert!(warnings(&Fake { ignores_seed: true, ..Fake::new() }, "deterministic").warnings.is_empty());
}

#[test]
fn a_study_whose_runs_were_raised_prints_it() {
    let folder = Temporary::new("raised");
    let study = study_of(&STUDY.replace("runs = 3", "runs = 20\nraised = 1"));
    let outcome = run_into(&study, &Fake { draws: true, ..Fake::new() }, &folder.join("out"), 1).unwrap();
    for row in outcome.rows.iter().filter(|row| row.verdict.is_some()) {
        assert!(row.note.contains("runs raised once, stricter threshold"), "{row:?}");
    }
}

#[test]
fn a_variant_that_only_moves_a_value_explains_nothing() {
    let files = [
        ("plain.txt", common::SCENARIO),
        (
            "published.csv",
            "experiment,point,metric,value,tolerance,explained_by\n\
        sizes,size=20,packets,50,1%,more-is-more\n",
        ),
    ];
    let shelf = fullpipe_study::EmbeddedStudy("fake", &files);
    let moved = fullpipe_study::load(STUDY, "study.toml", "x", &shelf).unwrap();
    let folder = Temporary::new("moves");
    let outcome = run_into(&moved, &Fake::new(), &folder.join("out"), 1).unwrap();
    let row = outcome.rows.iter().find(|row| row.published.is_some()).unwrap();
    assert_eq!(row.verdict, Some(Verdict::Differs));
    assert!(row.note.contains("moves toward the published value: 20 → 40 (published 50)"), "{}", row.note);
    // An exploratory claim explains no value, even if its variant matches.
    let exploratory = STUDY.replace("variant = ", "exploratory = true\nvariant = ");
    let outcome = run_into(&study_of(&exploratory), &Fake::new(), &folder.join("exploratory"), 1).unwrap();
    assert!(outcome.rows.iter().all(|row| row.verdict != Some(Verdict::Explained)));
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let folder = Temporary::new("threads");
    for jobs in [1, 2, 7, 100] {
        let laboratory = Fake { takes: Duration::from_millis(3), ..Fake::new() };
        run_into(&study(), &laboratory, &folder.join(&jobs.to_string()), jobs).unwrap();
        assert_eq!(laboratory.made.load(Ordering::SeqCst), 12, "each run once");
    }
    let one = tree(&folder.join("1"));
    assert!(one.contains_key("summary.csv") && one.contains_key("results.csv") && one.contains_key("study.toml"));
    assert_eq!(one.keys().filter(|name| name.ends_with("run.json")).count(), 12);
    for jobs in ["2", "7", "100"] {
        assert_eq!(tree(&folder.join(jobs)), one, "{jobs} jobs");
    }
}

#[test]
fn finished_runs_are_reused_untouched() {
    let folder = Temporary::new("reuse");
    let out = folder.join("out");
    run_into(&study(), &Fake::new(), &out, 2).unwrap();
    let (before, stamped) = (tree(&out), stamps(&out));
    let again = Fake::new();
    let outcome = run_into(&study(), &again, &out, 2).unwrap();
    assert_eq!((outcome.made, outcome.reused, again.made.load(Ordering::SeqCst)), (0, 12, 0));
    assert_eq!((tree(&out), stamps(&out)), (before, stamped));

    // More runs: existing runs are kept, and the tables are of the whole study.
    let (mut longer, _) = with(&[], false).unwrap();
    longer.experiments.iter_mut().for_each(|experiment| experiment.runs = 5);
    let outcome = run_into(&longer, &Fake::new(), &out, 2).unwrap();
    assert_eq!((outcome.made, outcome.reused), (8, 12));
    let fresh = folder.join("fresh");
    run_into(&longer, &Fake::new(), &fresh, 1).unwrap();
    assert_eq!(tree(&out), tree(&fresh));
}

#[test]
fn another_build_or_seed_reuses_nothing() {
    let folder = Temporary::new("build");
    let out = folder.join("out");
    run_into(&study(), &Fake::new(), &out, 1).unwrap();
    let outcome = run_into(&study(), &Fake { build: "fake 2".into(), ..Fake::new() }, &out, 1).unwrap();
    assert_eq!((outcome.made, outcome.reused), (12, 0));
    let mut other = study();
    other.seeds = fullpipe_study::study::SeedSource::Derived(5);
    let outcome = run_into(&other, &Fake::new(), &out, 1).unwrap();
    assert_eq!((outcome.made, outcome.reused), (12, 0));
}

#[test]
fn a_damaged_run_is_made_again() {
    let folder = Temporary::new("damaged");
    let out = folder.join("out");
    run_into(&study(), &Fake::new(), &out, 1).unwrap();
    let whole = tree(&out);
    let runs: Vec<String> = whole.keys().filter(|name| name.ends_with("/run.json")).cloned().collect();
    std::fs::write(out.join(&runs[0]), b"{ \"key\": ").unwrap();
    std::fs::remove_file(out.join(&runs[1]).with_file_name("flows.csv")).unwrap();
    std::fs::write(out.join(&runs[2]), whole[&runs[3]].clone()).unwrap();
    // A record of the audit without its result.
    let silent = String::from_utf8(whole[&runs[4]].clone()).unwrap().replace("\"passed\":", "\"past\":");
    assert_ne!(silent.as_bytes(), whole[&runs[4]]);
    std::fs::write(out.join(&runs[4]), silent).unwrap();
    let outcome = run_into(&study(), &Fake::new(), &out, 1).unwrap();
    assert_eq!((outcome.made, outcome.reused), (4, 8));
    assert_eq!(tree(&out), whole);
}

#[test]
fn a_run_made_without_what_is_asked_for_is_made_again() {
    let folder = Temporary::new("options");
    let out = folder.join("out");
    let go = |audit: bool| {
        let options = StudyOptions { run: RunOptions { audit, ..RunOptions::default() }, ..StudyOptions::default() };
        run(&study(), &Fake::new(), &out, &FileSystem::new(), &options, &mut (), &AtomicBool::new(false)).unwrap()
    };
    assert_eq!(go(false).made, 12);
    assert_eq!(go(true).made, 12);
    assert_eq!(go(true).reused, 12);
    assert_eq!(go(false).reused, 12);
}

#[test]
fn a_failing_run_leaves_the_others() {
    let folder = Temporary::new("failing");
    let laboratory = Fake { fails_at: Some(40), ..Fake::new() };
    let outcome = run_into(&study(), &laboratory, &folder.join("out"), 2).unwrap();
    assert_eq!((outcome.exit_status(), outcome.made, outcome.failed.len()), (1, 9, 3));
    assert_eq!(outcome.failed[0], ("experiment=sizes;size=40, run 1".to_owned(), "it was told to".to_owned()));
    let row = outcome.rows.iter().find(|row| row.point == "experiment=sizes;size=40").unwrap();
    assert_eq!((row.n, row.mean, row.verdict), (Some(0), None, None));
    assert!(row.note.contains("3 of 3 runs failed"), "{}", row.note);
    // A claim that needs the point has no verdict.
    let claim = outcome.rows.iter().find(|row| row.metric == "claim:more-is-more").unwrap();
    assert_eq!((claim.mean, claim.verdict), (None, None));
    assert!(claim.note.contains("cannot be determined"), "{}", claim.note);
    // With a laboratory that does not fail, only the failed runs are made.
    let outcome = run_into(&study(), &Fake::new(), &folder.join("out"), 2).unwrap();
    assert_eq!((outcome.exit_status(), outcome.made, outcome.reused), (0, 3, 9));
}

#[test]
fn a_panic_in_a_run_is_a_failed_run() {
    let folder = Temporary::new("panic");
    let laboratory = Fake { panics_at: Some(40), ..Fake::new() };
    let outcome = run_into(&study(), &laboratory, &folder.join("out"), 2).unwrap();
    assert_eq!((outcome.exit_status(), outcome.failed.len()), (1, 3));
    assert!(outcome.failed[0].1.contains("it was told to panic"), "{}", outcome.failed[0].1);
}

#[test]
fn distrust_lasts() {
    let folder = Temporary::new("distrust");
    let first = run_into(&study(), &Fake { lies_at: Some(10), ..Fake::new() }, &folder.join("out"), 2).unwrap();
    assert_eq!(first.exit_status(), 3);
    let (runs, verdicts) = first.untrusted.split_at(3);
    assert!(runs.iter().all(|(_, why)| why == "audit: faster than light"), "{runs:?}");
    // They support no verdict: neither that of the published value there nor those of both claims.
    let of = |(what, why): &(String, String)| (what.clone(), why.contains("3 of "));
    let expected = ["experiment=sizes;size=10, packets", "claim:more-is-more", "claim:less-is-more"];
    assert_eq!(verdicts.iter().map(of).collect::<Vec<_>>(), expected.map(|what| (what.to_owned(), true)));
    // The runs are reused with the reason.
    let second = run_into(&study(), &Fake::new(), &folder.join("out"), 2).unwrap();
    assert_eq!((second.exit_status(), second.reused), (3, 12));
    assert_eq!(first.untrusted, second.untrusted);
}

#[test]
fn what_the_machine_refuses_ends_the_study() {
    let folder = Temporary::new("machine");
    let error = run_into(&study(), &Fake { broken: true, ..Fake::new() }, &folder.join("out"), 2).unwrap_err();
    assert_eq!(error, StudyError::System("out of memory".into()));
    assert_eq!(error.exit_status(), 1);
}

#[test]
fn an_interrupted_study_goes_on() {
    let folder = Temporary::new("interrupted");
    let out = folder.join("out");
    let laboratory = Fake { stop_after: Some(4), takes: Duration::from_millis(2), ..Fake::new() };
    let error = run_into(&study(), &laboratory, &out, 1).unwrap_err();
    let StudyError::Interrupted { finished, total } = error else { panic!("{error}") };
    // The fifth run may have begun before the flag was set.
    assert!((4..12).contains(&finished) && total == 12, "{finished} of {total}");
    assert_eq!(error.exit_status(), 130);
    assert!(!out.join("summary.csv").exists());
    let kept = stamps(&out);
    let outcome = run_into(&study(), &Fake::new(), &out, 1).unwrap();
    assert_eq!((outcome.made, outcome.reused), (12 - finished, finished));
    let after = stamps(&out);
    assert!(kept.iter().all(|(name, stamp)| name == "runs/" || after[name] == *stamp));
    run_into(&study(), &Fake::new(), &folder.join("undisturbed"), 1).unwrap();
    assert_eq!(tree(&out), tree(&folder.join("undisturbed")));
}

#[test]
fn stopped_before_it_began() {
    let folder = Temporary::new("stopped");
    let laboratory = Fake::new();
    laboratory.stop.store(true, Ordering::SeqCst);
    let error = run_into(&study(), &laboratory, &folder.join("out"), 2).unwrap_err();
    assert_eq!(error, StudyError::Interrupted { finished: 0, total: 12 });
}

#[test]
fn progress_is_told_of_each_run() {
    #[derive(Default)]
    struct Seen(Vec<(usize, usize, bool, String)>, usize);
    impl StudyObserver for Seen {
        fn on_planned(&mut self, total: usize) {
            self.1 = total;
        }
        fn on_run_finished(&mut self, run: &FinishedRun<'_>) {
            self.0.push((run.finished, run.total, run.reused, run.label.to_owned()));
        }
    }
    let folder = Temporary::new("progress");
    let go = |seen: &mut Seen| {
        let options = StudyOptions { jobs: 2, ..StudyOptions::default() };
        run(&study(), &Fake::new(), &folder.join("out"), &FileSystem::new(), &options, seen, &AtomicBool::new(false))
            .unwrap();
    };
    let mut seen = Seen::default();
    go(&mut seen);
    assert_eq!((seen.1, seen.0.len()), (12, 12));
    assert_eq!(seen.0.iter().map(|run| run.0).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
    assert!(seen.0.iter().all(|run| run.1 == 12 && !run.2));
    assert!(seen.0.iter().any(|run| run.3 == "experiment=sizes;size=10, run 1"));
    let mut seen = Seen::default();
    go(&mut seen);
    assert!(seen.0.iter().all(|run| run.2));
}

#[test]
fn a_folder_that_holds_something_else_is_refused_and_left_alone() {
    let folder = Temporary::new("foreign");
    let refused = |name: &str, files: &[(&str, &str)]| {
        let out = folder.join(name);
        std::fs::create_dir_all(&out).unwrap();
        for (file, text) in files {
            std::fs::write(out.join(file), text).unwrap();
        }
        let before = tree(&out);
        let laboratory = Fake::new();
        let error = run_into(&study(), &laboratory, &out, 1).unwrap_err();
        assert!(matches!(error, StudyError::Folder(_)) && error.exit_status() == 2, "{error}");
        assert_eq!((tree(&out), laboratory.made.load(Ordering::SeqCst)), (before, 0));
        error.to_string()
    };
    assert!(refused("letters", &[("letter.txt", "dear")]).contains("letter.txt"));
    // The source of a study is not a folder of records, even with the same name.
    assert!(refused("source", &[("study.toml", common::STUDY)]).contains("not one of records"));
    let other = common::STUDY.replace("name = \"fake\"", "name = \"forged\"");
    run_into(&study_of(&other), &Fake::new(), &folder.join("other"), 1).unwrap();
    assert!(refused("other", &[]).contains("name = \"forged\""));
    // A file at the path of the folder.
    std::fs::write(folder.join("file"), "text").unwrap();
    let error = run_into(&study(), &Fake::new(), &folder.join("file"), 1).unwrap_err();
    assert_eq!(error.exit_status(), 2);
    // An empty folder is accepted.
    std::fs::create_dir(folder.join("empty")).unwrap();
    run_into(&study(), &Fake::new(), &folder.join("empty"), 1).unwrap();
}

#[test]
fn two_processes_do_not_share_a_folder() {
    let folder = Temporary::new("locked");
    let out = folder.join("out");
    run_into(&study(), &Fake::new(), &out, 1).unwrap();
    let held = std::fs::File::open(&out).unwrap();
    held.lock().unwrap();
    let error = run_into(&study(), &Fake::new(), &out, 1).unwrap_err();
    assert!(error.to_string().contains("another process") && error.exit_status() == 2, "{error}");
    drop(held);
    run_into(&study(), &Fake::new(), &out, 1).unwrap();
}

#[test]
fn no_table_stands_beside_a_study_that_it_is_not_of() {
    let folder = Temporary::new("stale");
    let out = folder.join("out");
    run_into(&study(), &Fake::new(), &out, 1).unwrap();
    std::fs::write(out.join("report.html"), "the report").unwrap();
    // The same study does not remove it.
    run_into(&study(), &Fake::new(), &out, 1).unwrap();
    assert!(out.join("report.html").exists());
    // Another part of the study removes it, even if it is interrupted before it has its own tables.
    let (other, _) = with(&["size=[10]"], false).unwrap();
    let laboratory = Fake::new();
    laboratory.stop.store(true, Ordering::SeqCst);
    run_into(&other, &laboratory, &out, 1).unwrap_err();
    for name in ["report.html", "summary.csv", "results.csv"] {
        assert!(!out.join(name).exists(), "{name}");
    }
    let outcome = run_into(&study(), &Fake::new(), &out, 1).unwrap();
    assert_eq!(outcome.reused, 12);
}

#[test]
fn the_resolved_study_repeats_the_study() {
    let folder = Temporary::new("resolved");
    run_into(&study(), &Fake::new(), &folder.join("first"), 1).unwrap();
    let again = fullpipe_study::load_file(&folder.join("first/study.toml")).unwrap_or_else(|errors| panic!("{errors}"));
    run_into(&again, &Fake::new(), &folder.join("second"), 1).unwrap();
    assert_eq!(tree(&folder.join("first")), tree(&folder.join("second")));
}

#[test]
fn a_scenario_on_its_own_is_one_run_with_its_seed() {
    let folder = Temporary::new("single");
    let source = fullpipe_study::ScenarioSource {
        name: "plain.txt".into(),
        origin: "plain.txt".into(),
        text: common::SCENARIO.into(),
        folder: None,
    };
    let study = fullpipe_study::single_run_study("plain", "Plain", source, 77);
    let laboratory = Fake::new();
    let outcome = run_into(&study, &laboratory, &folder.join("out"), 4).unwrap();
    assert_eq!((outcome.made, *laboratory.seeds.lock().unwrap() == [77]), (1, true));
    let header = std::fs::read_to_string(folder.join("out/results.csv")).unwrap();
    assert!(header.starts_with("seed,key,goodput_bps,throughput_bps,"), "{header}");
    let row = |metric: &str| outcome.rows.iter().find(|row| row.metric == metric).unwrap();
    // bulk has size * 10 = 100 bit/s, other has 5: the value is the mean of the two; the reverse direction does not count.
    assert_eq!((row("goodput_bps").mean, row("goodput_bps").point.to_string()), (Some(52.5), String::new()));
    assert_eq!(row("rx_packets").mean, Some(17.0));
    // The fake laboratory counts no sent packets.
    assert_eq!(row("tx_packets").mean, Some(0.0));
}

#[test]
fn a_claim_that_cannot_be_told_explains_nothing() {
    // The value at size 20 differs. The claim that explains it needs size 40, and those runs fail.
    let study = study();
    let folder = Temporary::new("untold");
    let verdict = |laboratory: &Fake| {
        let outcome = run_into(&study, laboratory, &folder.join("out"), 1).unwrap();
        let row = outcome.rows.iter().find(|row| row.point == "experiment=sizes;size=20" && row.metric == "packets");
        row.and_then(|row| row.verdict)
    };
    assert_eq!(verdict(&Fake { fails_at: Some(40), ..Fake::new() }), Some(Verdict::Differs));
    assert_eq!(verdict(&Fake::new()), Some(Verdict::Explained));
}

#[test]
fn runs_that_deliver_nothing_are_warnings_and_a_study_of_nothing_else_is_not_done() {
    let folder = Temporary::new("nothing");
    let some = Fake { delivers_nothing_at: Some(10), ..Fake::new() };
    let some = run_into(&study(), &some, &folder.join("some"), 2).unwrap();
    // Three of 12 runs at the point of size 10. Their values count, because a bad result is still a result.
    let warnings: Vec<String> = some.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        ["no application received any payload (3 of 12 runs; first in experiment=sizes;size=10, run 1) \
             (nothing-delivered)"]
    );
    assert_eq!((some.exit_status(), some.untrusted.len()), (0, 0));
    assert!(some.rows.iter().any(|row| row.point == "experiment=sizes;size=10" && row.n == Some(1)));
    let all = Fake { delivers_nothing_at: Some(0), ..Fake::new() };
    let all = run_into(&study(), &all, &folder.join("all"), 2).unwrap();
    assert_eq!(all.exit_status(), 3);
    assert_eq!(all.untrusted, [("all 12 runs".to_owned(), "no application received any payload".to_owned())]);
}

#[test]
fn what_flows_experienced_is_a_table() {
    let folder = Temporary::new("experience");
    let outcome = run_into(&study(), &Fake { draws: true, ..Fake::new() }, &folder.join("out"), 1).unwrap();
    let text = std::fs::read_to_string(folder.join("out/flow_summary.csv")).unwrap();
    // The fake study's flow has a median delay of one millisecond for each of its packets; all runs have `size` packets.
    let row = "experiment=sizes;size=20,bulk,b,delay_p50_s,s,3,0.02,,,,0.02,0.02,0.02";
    assert!(text.lines().any(|line| line == row), "{text}");
    // Two directions of one flow and another flow, at five points.
    assert_eq!((outcome.flows.len(), text.lines().count()), (15, 16));
}
