//! Tests of replications that differ in more than their seed: rows of settings, one for each run.

use crate::common::{Fake, PUBLISHED, SCENARIO, STUDY, Temporary, run_into, table};
use fullpipe_scenario::schema::Override;
use fullpipe_study::plan::make_plan;
use fullpipe_study::resolved::resolved_text;
use fullpipe_study::{EmbeddedStudy, Study, UserSettings, load};

/// Two columns of settings, for four runs.
const ROWS: &str = "# made by hand\nsize,colour\n10,7\n20,8\n30,9\n40,10\n";

/// The fake study with `runs = 3`, whose squares use a row for each run.
fn text() -> String {
    STUDY
        .replace("[parameters.colour]", "[replications]\nsquares = \"rows.csv\"\n\n[parameters.colour]")
        .replace("set = { corners = 4 } }", "set = { corners = 4 }, replications = \"squares\" }")
}

fn try_load(text: &str, rows: &str) -> Result<Study, String> {
    let files = [("plain.txt", SCENARIO), ("published.csv", PUBLISHED), ("rows.csv", rows)];
    load(text, "study.toml", "fallback", &EmbeddedStudy("fake", &files)).map_err(|errors| errors.to_string())
}

fn study(text: &str) -> Study {
    try_load(text, ROWS).unwrap_or_else(|errors| panic!("{errors}"))
}

/// The scenarios of the runs of a point, in order.
fn scenarios(study: &Study, label: &str) -> Vec<String> {
    let plan = make_plan(study, &Fake::new()).unwrap_or_else(|error| panic!("{error}"));
    let point = plan.points.iter().find(|point| point.label.ends_with(label)).expect("the point");
    point.runs.iter().map(|run| plan.runs[*run].scenario.text.clone()).collect()
}

fn scenario(colour: u64, corners: u64, size: u64) -> String {
    format!("colour = {colour}\ncorners = {corners}\nsize = {size}\n")
}

#[test]
fn each_run_takes_its_row_where_the_value_of_an_axis_names_the_replications() {
    let study = study(&text());
    let expected = [scenario(7, 4, 10), scenario(8, 4, 20), scenario(9, 4, 30)];
    assert_eq!(scenarios(&study, "shape=square"), expected);
    // The other value has no replications: three runs of one scenario, with the parameter and the settings of the experiment.
    assert_eq!(scenarios(&study, "shape=round"), vec![scenario(3, 0, 20); 3]);
    // The row of a run does not change its seed.
    let plan = make_plan(&study, &Fake::new()).unwrap();
    let seeds = |label: &str| -> Vec<u64> {
        let point = plan.points.iter().find(|point| point.label.ends_with(label)).expect("the point");
        point.runs.iter().map(|run| plan.runs[*run].seed).collect()
    };
    assert_eq!(seeds("shape=square"), seeds("shape=round"));
}

#[test]
fn the_rows_of_an_experiment_go_before_its_axes() {
    let study = study(&text().replace(
        "name = \"sizes\"\nscenario = \"plain\"",
        "name = \"sizes\"\nscenario = \"plain\"\nreplications = \"squares\"",
    ));
    let expected = [scenario(7, 0, 20), scenario(8, 0, 20), scenario(9, 0, 20)];
    assert_eq!(scenarios(&study, "size=20"), expected, "size is the axis'");
}

#[test]
fn what_is_set_beside_replications_overrides_their_rows() {
    let text = text().replace("set = { size = 20 }", "set = { size = 20 }\nreplications = \"squares\"");
    assert_eq!(scenarios(&study(&text), "shape=round"), [scenario(7, 0, 20), scenario(8, 0, 20), scenario(9, 0, 20)]);
    let text = self::text().replace("set = { corners = 4 }", "set = { corners = 4, size = 6 }");
    assert_eq!(scenarios(&study(&text), "shape=square"), [scenario(7, 4, 6), scenario(8, 4, 6), scenario(9, 4, 6)]);
}

#[test]
fn rows_are_counted_over_all_study_seeds_and_must_suffice() {
    let text = text().replace("runs = 3", "runs = 2");
    let mut two = study(&text);
    let settings = UserSettings { seeds: Some(2), ..UserSettings::default() };
    two.apply(&settings, &Fake::new()).unwrap();
    let expected = [scenario(7, 4, 10), scenario(8, 4, 20), scenario(9, 4, 30), scenario(10, 4, 40)];
    assert_eq!(scenarios(&two, "shape=square"), expected);
    let mut many = study(&text);
    many.apply(&UserSettings { seeds: Some(3), ..UserSettings::default() }, &Fake::new()).unwrap();
    let error = make_plan(&many, &Fake::new()).unwrap_err().to_string();
    assert!(error.contains("6 runs per point, and the replications squares have 4 rows"), "{error}");
}

#[test]
fn a_point_whose_runs_have_different_scenarios_is_not_deterministic() {
    // Runs of the fake laboratory draw no random number, and receive as many packets as `size` states: 10, 20, 30.
    let folder = Temporary::new("replications");
    let laboratory = Fake { ignores_seed: true, ..Fake::new() };
    let outcome = run_into(&study(&text()), &laboratory, &folder.join("out"), 1).unwrap();
    let row = |point: &str, metric: &str| {
        let mut rows = outcome.rows.iter().filter(|row| row.point.to_string().ends_with(point));
        let row = rows.find(|row| row.metric == metric).expect("the row");
        (row.n, row.mean, row.ci95.is_some())
    };
    assert_eq!(row("shape=square", "packets"), (Some(3), Some(20.0), true));
    assert_eq!(row("shape=round", "packets"), (Some(1), Some(20.0), false));
    // Ten equal values of different scenarios are ten replications: colour does not affect the packets received.
    let only_colour = try_load(&text(), "colour\n7\n8\n9\n").unwrap();
    let outcome = run_into(&only_colour, &laboratory, &folder.join("colour"), 1).unwrap();
    let row = outcome.rows.iter().find(|row| row.metric == "packets" && row.point.to_string().ends_with("square"));
    assert_eq!(row.expect("the row").n, Some(3));
    assert_eq!(table(&folder.join("out"), "results.csv").len(), 15, "a row for each run of the five points");
}

#[test]
fn the_records_state_the_rows_and_read_back() {
    let study = study(&text());
    let record = resolved_text(&study, "fake 1");
    assert!(record.contains("{ size = 10, colour = 7 }"), "{record}");
    let again =
        load(&record, "study.toml", "x", &EmbeddedStudy("fake", &[])).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(resolved_text(&again, "fake 1"), record);
    assert_eq!(scenarios(&again, "shape=square"), scenarios(&study, "shape=square"));
    // Rows that no experiment uses are omitted.
    let mut sizes = study;
    let set = vec![Override::parse("experiments=sizes").unwrap()];
    sizes.apply(&UserSettings { set, ..UserSettings::default() }, &Fake::new()).unwrap();
    sizes.experiments.retain(|experiment| experiment.name == "sizes");
    assert!(!resolved_text(&sizes, "fake 1").contains("colour = 7"));
}

#[test]
fn what_a_shortened_study_fixes_the_rows_do_not_set() {
    let mut quick = study(&text().replace("set = { size = 20 }", "set = { size = 20 }\nquick_set = { size = 5 }"));
    quick.apply(&UserSettings { quick: true, ..UserSettings::default() }, &Fake::new()).unwrap();
    assert_eq!(scenarios(&quick, "shape=square"), [scenario(7, 4, 5), scenario(8, 4, 5), scenario(9, 4, 5)]);
    let record = resolved_text(&quick, "fake 1");
    let again =
        load(&record, "study.toml", "x", &EmbeddedStudy("fake", &[])).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(scenarios(&again, "shape=square"), scenarios(&quick, "shape=square"));
}

#[test]
fn a_setting_of_the_user_does_not_replace_what_the_rows_set() {
    let set = |setting: &str, text: &str| {
        let mut study = study(text);
        let set = vec![Override::parse("experiments=shapes").unwrap(), Override::parse(setting).unwrap()];
        study.apply(&UserSettings { set, ..UserSettings::default() }, &Fake::new()).map_err(|error| error.to_string())
    };
    let error = set("scenario.colour=1", &text()).unwrap_err();
    assert!(error.contains("in every selected experiment, the rows of the replications set colour"), "{error}");
    assert!(error.contains("--runs N"), "{error}");
}

#[test]
fn mistakes_are_said_with_their_place() {
    let cases = [
        ("size,colour\n10\n", "rows.csv:2", "this line has 1 fields"),
        ("size,colour\n10,\n", "rows.csv:2", "this line has no value for colour"),
        ("size,\n10,2\n", "rows.csv:1", "a column has no name"),
        ("size,colour\n", "study.toml", "the replications squares have no rows"),
    ];
    for (rows, place, message) in cases {
        let error = try_load(&text(), rows).unwrap_err();
        assert!(error.contains(place) && error.contains(message), "{error}");
    }
    let unknown =
        try_load(&text().replace("replications = \"squares\"", "replications = \"square\""), ROWS).unwrap_err();
    assert!(unknown.contains("did you mean squares"), "{unknown}");
    let missing = try_load(&text().replace("rows.csv", "row.csv"), ROWS).unwrap_err();
    assert!(missing.contains("cannot read fake/row.csv"), "{missing}");
    // A path that the scenario does not have is detected before any run.
    let study = try_load(&text(), "sise\n10\n20\n30\n").unwrap();
    let error = make_plan(&study, &Fake::new()).unwrap_err().to_string();
    assert!(error.contains("there is no sise"), "{error}");
}
