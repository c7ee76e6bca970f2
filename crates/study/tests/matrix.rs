//! Tests of `[matrix]`: its errors, the rows of `matrix.csv` and `findings.csv`, and `--set` of the compared axis.

use crate::common::{Fake, SCENARIO, Temporary, run_into, study_of, table};
use fullpipe_archive::{Finding, FindingRow, MatrixRow};
use fullpipe_scenario::schema::Override;
use fullpipe_study::{EmbeddedStudy, Study, UserSettings, load};

/// The fake flow receives `size` packets, whatever the seed and the color.
const STUDY: &str = r#"
name = "compared"
published = []
title = "A matrix"
runs = 10
seed = 4

[scenarios]
plain = "plain.txt"

[[experiment]]
name = "base"
scenario = "plain"
[[experiment.axis]]
name = "size"
paths = ["size"]
values = [10, 20]
[[experiment.axis]]
name = "colour"
paths = ["colour"]
values = [1, 2, 3]

[[experiment]]
name = "again"
scenario = "plain"
[[experiment.axis]]
name = "size"
values_of = "base"
[[experiment.axis]]
name = "colour"
values_of = "base"
quick = [2]

[[metric]]
name = "packets"
unit = "packets"
expression = 'rx_packets["bulk"] * colour'

[[metric]]
name = "inverse"
expression = '1 / rx_packets["bulk"]'
experiments = ["base"]

[matrix]
axis = "size"
references = ["10", "20"]

[matrix.rows]
"1.1" = "Load"
"1.2" = "Loss"

[matrix.columns]
"2.1" = "Here"
"2.2" = "There"

[[matrix.cell]]
rows = ["1.1"]
columns = ["2.1"]
experiments = ["base"]
worse = { packets = "high", inverse = "high" }

[[matrix.cell]]
rows = ["1.1"]
columns = ["2.2"]
experiments = ["again"]
where = { colour = [1, 2] }
worse = { packets = "low" }

[[matrix.cell]]
rows = ["1.2"]
columns = ["2.1", "2.2"]
not_run = "the fake has no losses"
"#;

fn with(set: &[&str], quick: bool) -> Study {
    let mut study = study_of(STUDY);
    let set = set.iter().map(|text| Override::parse(text).expect("PATH=VALUE")).collect();
    study.apply(&UserSettings { set, quick, ..UserSettings::default() }, &Fake::new()).expect("settings");
    study
}

fn rows_of(study: &Study, folder: &str) -> (Vec<MatrixRow>, Vec<FindingRow>) {
    let folder = Temporary::new(folder);
    let outcome = run_into(study, &Fake { draws: true, ..Fake::new() }, &folder.0, 2).expect("a study");
    assert_eq!(table(&folder.0, "matrix.csv").len(), outcome.matrix.len());
    assert_eq!(table(&folder.0, "findings.csv").len(), outcome.findings.len());
    (outcome.matrix, outcome.findings)
}

fn cell<'a>(rows: &'a [MatrixRow], column: &str, metric: &str, control: &str) -> &'a MatrixRow {
    let is_wanted = |row: &&MatrixRow| row.column == column && row.metric == metric && row.control == control;
    rows.iter().find(is_wanted).unwrap_or_else(|| panic!("{column} {metric} {control}"))
}

fn finding<'a>(rows: &'a [FindingRow], column: &str, metric: &str, reference: &str) -> &'a FindingRow {
    let is_wanted = |row: &&FindingRow| row.column == column && row.metric == metric && row.reference == reference;
    rows.iter().find(is_wanted).unwrap_or_else(|| panic!("{column} {metric} {reference}"))
}

#[test]
fn a_cell_has_the_worst_and_the_median_point_of_each_control() {
    let (rows, _) = rows_of(&with(&["size=40"], false), "matrix-cells");
    // packets = size * color: 40, 80, 120 with three colors. More is worse, so color 3 is the worst point.
    let row = cell(&rows, "2.1", "packets", "40");
    assert_eq!((row.worst, row.median, row.n), (Some(120.0), Some(80.0), Some(30)));
    assert_eq!(row.worst_point, "experiment=base;colour=3");
    // Fewer is worse, and `where` leaves colors 1 and 2: the median of 40 and 80 is 60.
    let row = cell(&rows, "2.2", "packets", "40");
    assert_eq!((row.worst, row.median, row.n), (Some(40.0), Some(60.0), Some(20)));
    assert_eq!(row.worst_point, "experiment=again;colour=1");
    let row = cell(&rows, "2.1", "inverse", "10");
    assert_eq!((row.worst, row.median), (Some(0.1), Some(0.1)));
    let notes: Vec<&str> = rows.iter().filter(|row| row.row == "1.2").map(|row| row.note.as_str()).collect();
    assert_eq!(notes, ["not run: the fake has no losses"; 2]);
}

#[test]
fn findings_have_the_declared_direction_and_the_number_of_comparisons() {
    let (_, findings) = rows_of(&with(&["size=40"], false), "matrix-findings");
    // Three metrics in two cells, with two references each.
    assert_eq!(findings.len(), 6);
    assert!(findings.iter().all(|row| row.comparisons == 6 && row.control == "40" && row.n == 10));
    // The mean over colors 1, 2 and 3 of (40 - 10) * color is 60; over colors 1 and 2 it is 45.
    let row = finding(&findings, "2.1", "packets", "10");
    assert_eq!((row.difference, row.low, row.finding), (Some(60.0), Some(60.0), Some(Finding::Worse)));
    let row = finding(&findings, "2.2", "packets", "10");
    assert_eq!((row.difference, row.finding, row.points), (Some(45.0), Some(Finding::Better), 2));
    // 1/40 - 1/20 = -0.025: less is better.
    let row = finding(&findings, "2.1", "inverse", "20");
    assert_eq!(row.finding, Some(Finding::Better));
    assert!((row.difference.expect("ten runs") + 0.025).abs() < 1e-12);
}

#[test]
fn a_control_under_another_name_is_not_distinguishable() {
    let (_, findings) = rows_of(&with(&["size={ label = \"twin\", value = 20 }"], false), "matrix-twin");
    for row in findings.iter().filter(|row| row.reference == "20") {
        let found = (row.difference, row.low, row.high, row.finding);
        assert_eq!(found, (Some(0.0), Some(0.0), Some(0.0), Some(Finding::NotDistinguishable)), "{row:?}");
    }
    assert_eq!(finding(&findings, "2.1", "packets", "10").finding, Some(Finding::Worse));
}

#[test]
fn a_reference_is_compared_with_the_other_references() {
    let (rows, findings) = rows_of(&with(&["size=20"], false), "matrix-reference");
    assert!(findings.iter().all(|row| row.control == "20" && row.reference == "10"));
    assert_eq!(findings.len(), 3);
    assert_eq!(rows.iter().filter(|row| row.column == "2.2" && row.metric == "packets").count(), 2);
}

#[test]
fn a_shortened_matrix_has_no_findings() {
    let study = with(&["size=40", "runs=2"], true);
    let (rows, findings) = rows_of(&study, "matrix-quick");
    assert!(findings.iter().all(|row| row.finding == Some(Finding::Undecided)));
    assert!(findings[0].note.starts_with("quick; 2 complete replications, 10 are needed"), "{}", findings[0].note);
    // The axis of `again` has its own short values.
    assert_eq!(cell(&rows, "2.2", "packets", "40").n, Some(2));
}

#[test]
fn cells_of_experiments_that_are_not_selected_are_not_run() {
    let (rows, findings) = rows_of(&with(&["size=40", "experiments=base"], false), "matrix-selected");
    let row = rows.iter().find(|row| row.row == "1.1" && row.column == "2.2").expect("a row");
    assert_eq!(row.note, "not run: the experiments are not selected (again)");
    assert!(findings.iter().all(|row| row.column == "2.1" && row.comparisons == 4));
}

#[test]
fn the_records_are_a_study_with_the_same_matrix() {
    let study = with(&["size=40"], false);
    let text = fullpipe_study::resolved::resolved_text(&study, "build");
    let again = load(&text, "study.toml", "compared", &EmbeddedStudy("fake", &[("plain.txt", SCENARIO)]));
    let again = again.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(again.matrix, study.matrix);
    assert_eq!(again.matrix.expect("a matrix").candidate.as_deref(), Some("40"));
    assert_eq!(again.experiments[1].axes, study.experiments[1].axes);
}

#[test]
fn errors_in_a_matrix_name_what_is_accepted() {
    for (old, new, expected) in [
        ("axis = \"size\"", "axis = \"sice\"", "unknown axis sice; did you mean"),
        ("references = [\"10\", \"20\"]", "references = [\"10\", \"21\"]", "unknown value of the axis 21"),
        ("rows = [\"1.2\"]", "rows = [\"1.3\"]", "unknown row 1.3"),
        ("columns = [\"2.1\", \"2.2\"]", "columns = [\"2.1\"]", "no cell for row 1.2 and column 2.2"),
        ("columns = [\"2.2\"]", "columns = [\"2.1\"]", "the cell of row 1.1 and column 2.1 is declared twice"),
        ("experiments = [\"again\"]", "experiments = [\"agian\"]", "unknown experiment agian; did you mean"),
        ("worse = { packets = \"low\" }", "worse = { packet = \"low\" }", "unknown metric packet; did you mean"),
        ("worse = { packets = \"low\" }", "worse = { inverse = \"low\" }", "applies to no experiment of the cell"),
        ("where = { colour = [1, 2] }", "where = { colour = [1, 9] }", "unknown value of the axis 9"),
        ("not_run = \"the fake has no losses\"", "not_run = \" \"", "the reason is empty"),
        ("not_run = \"the fake has no losses\"", "", "the cell is neither run nor has it a reason"),
        (
            "name = \"size\"\nvalues_of = \"base\"",
            "name = \"size\"\nvalues_of = \"bass\"",
            "unknown earlier experiment",
        ),
        (
            "values_of = \"base\"\nquick",
            "values_of = \"base\"\nvalues = [1]\nquick",
            "the axis has values_of, and values",
        ),
    ] {
        let text = STUDY.replacen(old, new, 1);
        assert_ne!(text, STUDY, "{old}");
        let errors = load(&text, "study.toml", "fallback", &EmbeddedStudy("fake", &[("plain.txt", SCENARIO)]));
        let errors = errors.expect_err(new).to_string();
        assert!(errors.contains(expected), "{new}: {errors}");
    }
}
