//! Tests of `--set`, `--runs`, `--seed` and `--quick` on a study.

use crate::common;

use crate::common::{Fake, Temporary, run_into, study, table, with};
use fullpipe_scenario::schema::Override;
use fullpipe_study::plan::make_plan;
use fullpipe_study::resolved::resolved_text;
use fullpipe_study::{EmbeddedStudy, Study, StudyError, UserSettings, VirtualTimeRunner, load};

/// The points of the plan, with the number of runs of each.
fn points(study: &Study) -> Vec<(String, usize)> {
    let plan = make_plan(study, &Fake::new()).unwrap_or_else(|error| panic!("{error}"));
    plan.points.into_iter().map(|point| (point.label, point.runs.len())).collect()
}

fn labels(settings: &[&str], quick: bool) -> Vec<String> {
    points(&with(settings, quick).unwrap_or_else(|error| panic!("{error}")).0)
        .into_iter()
        .map(|(label, _)| label)
        .collect()
}

/// Checks the error of a setting: its message, the accepted names, the suggestion.
#[track_caller]
fn refused(setting: &str, says: &str, expects: &str) {
    let error = with(&[setting], false).unwrap_err();
    assert_eq!(error.exit_status(), 2);
    let StudyError::InvalidFile(errors) = &error else { panic!("{error:?}") };
    let error = &errors.0[0];
    assert_eq!((error.file.as_str(), error.line), (format!("--set {setting}").as_str(), 0));
    assert!(error.message.contains(says), "{error}");
    let expected = format!("{}|{}", error.expected.join("|"), error.suggestion.as_deref().unwrap_or(""));
    assert!(expected.contains(expects), "{error}\nexpected set: {expected}");
}

#[test]
fn an_axis_gets_other_values() {
    assert_eq!(
        labels(&["size=[40, 15]"], false),
        [
            "experiment=sizes;size=40",
            "experiment=sizes;size=15",
            "experiment=shapes;shape=round",
            "experiment=shapes;shape=square"
        ]
    );
    // One value is a list of one; a label selects the value with this label.
    assert_eq!(labels(&["shape=square", "experiments=shapes"], false), ["experiment=shapes;shape=square"]);
    assert_eq!(labels(&["shape=[\"square\", \"round\"]", "experiments=[\"shapes\"]"], false).len(), 2);
}

#[test]
fn a_claim_says_which_of_its_points_the_user_left_out() {
    let claims = [
        ("all", "all(metric(\"sizes\", \"packets\") > 5)"),
        ("small", "all(metric(\"sizes\", \"packets\", size < 30) > 5)"),
        ("shapes", "all(metric(\"shapes\", \"packets\") > 5)"),
    ];
    let claims = claims.map(|(name, expression)| {
        format!("\n[[claim]]\nname = \"{name}\"\ntext = \"Enough.\"\nexpression = '{expression}'\n")
    });
    let folder = Temporary::new("left-out");
    let notes = |study: &Study, out: &str| {
        run_into(study, &Fake::new(), &folder.join(out), 1).unwrap();
        let rows = table(&folder.join(out), "summary.csv");
        ["all", "small", "shapes"].map(|name| {
            let row = rows.iter().find(|row| row["metric"] == format!("claim:{name}")).unwrap();
            assert_eq!(row["verdict"], "match");
            row["note"].clone()
        })
    };
    let mut study = common::study_of(&(common::STUDY.to_owned() + &claims.concat()));
    assert_eq!(notes(&study, "whole"), ["Enough.", "Enough.", "Enough."]);
    let set = vec![Override::parse("size=[10, 20, 30]").unwrap()];
    study.apply(&UserSettings { set, ..UserSettings::default() }, &Fake::new()).unwrap();
    let without = "Enough.; not all of the study's points were run (excluded: size=40)";
    assert_eq!(notes(&study, "part"), [without, "Enough.", "Enough."]);
    // A repetition of the records has the same note.
    let text = std::fs::read_to_string(folder.join("part/study.toml")).unwrap();
    let again = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &[])).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(again.left_out, study.left_out);
    assert_eq!(notes(&again, "again"), [without, "Enough.", "Enough."]);
}

#[test]
fn experiments_are_chosen_in_the_order_of_the_study() {
    assert_eq!(labels(&["experiments=[\"shapes\", \"sizes\"]"], false), labels(&[], false));
    // A setting of an experiment that is not run need not exist, in any order of settings.
    assert_eq!(
        labels(&["shape=round", "experiments=shapes"], false),
        labels(&["experiments=shapes", "shape=round"], false)
    );
}

#[test]
fn a_parameter_reaches_its_paths() {
    let folder = Temporary::new("parameter");
    let resolved = |settings: &[&str]| {
        let plan = make_plan(&with(settings, false).unwrap().0, &Fake::new()).unwrap();
        plan.runs[0].scenario.text.clone()
    };
    assert!(resolved(&[]).contains("colour = 3"));
    assert!(resolved(&["colour=8"]).contains("colour = 8"));
    // The user's setting of the scenario overrides a parameter.
    assert!(resolved(&["colour=8", "scenario.colour=9"]).contains("colour = 9"));
    // It is in the records.
    let (study, _) = with(&["scenario.colour=9"], false).unwrap();
    run_into(&study, &Fake::new(), &folder.join("out"), 1).unwrap();
    let text = std::fs::read_to_string(folder.join("out/study.toml")).unwrap();
    assert!(text.contains("path = \"colour\"\nvalue = 9"), "{text}");
}

#[test]
fn an_axis_keeps_its_word_against_a_setting_of_the_scenario() {
    // The experiment sizes sweeps size, shapes fixes it. The setting applies to shapes only, and a message states that.
    let (study, messages) = with(&["scenario.size=77"], false).unwrap();
    assert_eq!(messages, ["size is not changed in the experiment sizes, because the axis size set it"]);
    let plan = make_plan(&study, &Fake::new()).unwrap();
    let sizes: Vec<bool> =
        plan.points.iter().map(|p| plan.runs[p.runs[0]].scenario.text.contains("size = 77")).collect();
    assert_eq!(sizes, [false, false, false, true, true]);
    let error = with(&["scenario.size=77", "experiments=sizes"], false).unwrap_err();
    assert!(error.to_string().contains("in every selected experiment, the axis size set size"), "{error}");
}

#[test]
fn what_cannot_be_set() {
    refused("siz=3", "no axis or parameter siz", "size");
    refused("color=3", "no axis or parameter color", "|colour");
    refused("load=0.5", "no axis or parameter load", "scenario.PATH");
    refused("experiments=shades", "unknown experiment shades", "|shapes");
    refused("experiments=[]", "no experiment is selected", "sizes");
    refused("runs=0", "found 0 for runs", "1 to 1000000");
    refused("runs=many", "found \"many\" for runs", "an integer");
    refused("clock=later", "found \"later\" for clock", "both");
    refused("clock=vitual", "found \"vitual\" for clock", "virtual");
    refused("size=[]", "would have no values", "at least one");
    refused("size=[10, 10]", "duplicate value 10", "once");
    refused("size=[[1, 2]]", "cannot be written in a table", "label");
    refused("shape=triangle", "triangle is not a value of shape", "square");
    refused("scenario.weight=3", "there is no weight", "");
}

#[test]
fn a_path_that_one_scenario_lacks_is_set_in_the_other() {
    let text = common::STUDY
        .replace("plain = \"plain.txt\"", "plain = \"plain.txt\"\nother = \"other.txt\"")
        .replace("name = \"shapes\"\nscenario = \"plain\"", "name = \"shapes\"\nscenario = \"other\"");
    let files = [("plain.txt", common::SCENARIO), ("other.txt", "size = 1\ncorners = 1\ncolour = 1\nweight = 2\n")];
    let mut study = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)).unwrap();
    let set = vec![Override::parse("scenario.weight=5").unwrap()];
    let messages = study.apply(&UserSettings { set, ..UserSettings::default() }, &Fake::new()).unwrap();
    assert_eq!(messages, ["weight is set in other; the scenario plain does not accept it"]);
    let plan = make_plan(&study, &Fake::new()).unwrap();
    assert!(plan.runs.last().unwrap().scenario.text.contains("weight = 5"));
}

#[test]
fn paths_that_are_valid_only_together_are_set_in_any_order() {
    // `measurement.from` must be before the end of the run.
    let scenario = "
        duration = '100s'
        measurement.from = '40s'
        [topology]
        kind = 'chain'
        link = [{ rate = '10Mbit/s', delay = '1ms' }]
        [[flow]]
        from = 'source'
        to = 'sink'
        workload = 'bulk'
        size = '1MB'";
    let text = "
        name = 'x'
        title = 'x'
        scenarios = { short = 'short.toml' }
        [[experiment]]
        name = 'alone'
        scenario = 'short'
        [[metric]]
        name = 'packets'
        unit = ''
        text = 'Packets sent.'
        expression = 'tx_packets[\"flow1\"]'";
    let laboratory = VirtualTimeRunner::new("test");
    let apply = |settings: &[&str]| {
        let mut study = load(text, "study.toml", "x", &EmbeddedStudy("x", &[("short.toml", scenario)])).unwrap();
        let set = settings.iter().map(|setting| Override::parse(setting).unwrap()).collect();
        study.apply(&UserSettings { set, ..UserSettings::default() }, &laboratory).map(|_| ())
    };
    apply(&["scenario.duration=3s", "scenario.measurement.from=1s"]).unwrap();
    apply(&["scenario.measurement.from=1s", "scenario.duration=3s"]).unwrap();
    let error = apply(&["scenario.duration=3s", "scenario.measurement.from=50s"]).unwrap_err();
    assert!(error.to_string().contains("is not before the end of the run"), "{error}");
}

#[test]
fn runs_and_seed() {
    assert!(points(&with(&["runs=7"], false).unwrap().0).iter().all(|(_, runs)| *runs == 7));
    let mut study = study();
    // The option overrides the setting.
    let set = vec![Override::parse("runs=7").unwrap()];
    study.apply(&UserSettings { set, runs: Some(2), seed: Some(99), ..UserSettings::default() }, &Fake::new()).unwrap();
    let plan = make_plan(&study, &Fake::new()).unwrap();
    assert!(plan.points.iter().all(|point| point.runs.len() == 2));
    assert_eq!(plan.runs[1].seed, fullpipe_units::random::derive_run_seed(99, 1));
}

#[test]
fn a_shortened_study_is_shorter_and_says_so() {
    assert_eq!(labels(&["experiments=sizes"], true), ["experiment=sizes;size=10", "experiment=sizes;size=40"]);
    // Axes that the user set are not shortened.
    assert_eq!(labels(&["experiments=sizes", "size=[10, 20, 30]"], true).len(), 3);
    let text =
        common::STUDY.replace("runs = 3", "runs = 3\nquick_runs = 2").replace("default = 3", "default = 3\nquick = 5");
    let files = [("plain.txt", common::SCENARIO), ("published.csv", common::PUBLISHED)];
    let mut study = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)).unwrap();
    study.apply(&UserSettings { quick: true, ..UserSettings::default() }, &Fake::new()).unwrap();
    assert!(points(&study).iter().all(|(_, runs)| *runs == 2));
    assert!(make_plan(&study, &Fake::new()).unwrap().runs[0].scenario.text.contains("colour = 5"));
    let folder = Temporary::new("quick");
    let outcome = run_into(&study, &Fake::new(), &folder.join("out"), 1).unwrap();
    assert!(outcome.quick && outcome.rows.iter().all(|row| row.note.starts_with("quick")));
    assert!(table(&folder.join("out"), "summary.csv").iter().all(|row| row["note"].starts_with("quick")));
    assert!(outcome.to_json().as_array().unwrap().iter().all(|row| row["quick"] == true));
    assert!(std::fs::read_to_string(folder.join("out/study.toml")).unwrap().contains("\nquick = true\n"));
    // A claim about an excluded point has no verdict; the others have one.
    assert!(outcome.rows.iter().any(|row| row.metric == "claim:more-is-more" && row.verdict.is_some()));
}

#[test]
fn a_shortened_list_of_points() {
    let text = common::STUDY.replace(
        "name = \"sizes\"\nscenario = \"plain\"",
        "name = \"sizes\"\nscenario = \"plain\"\npoints = [{ size = 40 }, { size = 20 }, { size = 10 }]\nquick_points = [{ size = 20 }, { size = 40 }]",
    );
    let files = [("plain.txt", common::SCENARIO)];
    let shortened = |settings: &[&str]| {
        let mut study = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)).unwrap();
        let set = settings.iter().map(|text| Override::parse(text).unwrap()).collect();
        study.apply(&UserSettings { set, quick: true, ..UserSettings::default() }, &Fake::new()).unwrap();
        study.selected.retain(|name| name == "sizes");
        points(&study).into_iter().map(|(label, _)| label).collect::<Vec<_>>()
    };
    // The points of quick_points that the axis contains.
    assert_eq!(shortened(&[]), ["experiment=sizes;size=40"]);
    assert_eq!(shortened(&["size=[20, 40]"]), ["experiment=sizes;size=20", "experiment=sizes;size=40"]);
    // A list of points cannot be extended. The experiment is excluded, or if no other sweeps the axis, it is an error.
    let mut study = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)).unwrap();
    let set = vec![Override::parse("size=33").unwrap()];
    let messages = study.apply(&UserSettings { set, ..UserSettings::default() }, &Fake::new()).unwrap();
    assert!(messages[0].contains("the experiment sizes is left out"), "{messages:?}");
}

#[test]
fn an_experiment_without_the_values_asked_for_is_left_out() {
    let level = |label: u32| format!("{{ label = {label}, set = {{ corners = {label} }} }}");
    let text = common::STUDY
        .replace("paths = [\"size\"]\nvalues = [10, 20, 40]\nquick = [10, 40]", &format!("values = [{}, {}, {}]", level(10), level(20), level(40)))
        .replace("name = \"shape\"\nvalues = [{ label = \"round\", set = { corners = 0 } }, { label = \"square\", set = { corners = 4 } }]", &format!("name = \"size\"\nvalues = [{}, {}]", level(20), level(30)));
    let apply = |setting: &str| {
        let mut study =
            load(&text, "study.toml", "x", &EmbeddedStudy("fake", &[("plain.txt", common::SCENARIO)])).unwrap();
        let set = vec![Override::parse(setting).unwrap()];
        let messages = study.apply(&UserSettings { set, ..UserSettings::default() }, &Fake::new())?;
        let labels: Vec<String> = points(&study).into_iter().map(|(label, _)| label).collect();
        Ok::<_, StudyError>((labels, messages))
    };
    let (labels, messages) = apply("size=20").unwrap();
    assert_eq!(
        (labels, messages.len()),
        (vec!["experiment=sizes;size=20".to_owned(), "experiment=shapes;size=20".to_owned()], 0)
    );
    // One experiment has 10, the other 30: each runs the values that it has.
    let (labels, _) = apply("size=[10, 30, 20]").unwrap();
    let both = [
        "experiment=sizes;size=10",
        "experiment=sizes;size=20",
        "experiment=shapes;size=30",
        "experiment=shapes;size=20",
    ];
    assert_eq!(labels, both);
    let (labels, messages) = apply("size=30").unwrap();
    assert_eq!(labels, ["experiment=shapes;size=30"]);
    assert!(messages[0].contains("sizes is left out: its values of size are 10, 20, 40"), "{messages:?}");
    // No experiment has 50.
    let error = apply("size=50").unwrap_err().to_string();
    assert!(error.contains("50 is not a value of size"), "{error}");
}

#[test]
fn a_shortened_experiment_sets_what_axes_set_besides_their_values() {
    let text =
        common::STUDY.replace("set = { size = 20 }", "set = { size = 20 }\nquick_set = { size = 5, corners = 1 }");
    let study = |quick: bool, settings: &[&str]| {
        let files = [("plain.txt", common::SCENARIO)];
        let mut study = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)).unwrap();
        let set = settings.iter().map(|text| Override::parse(text).unwrap()).collect();
        study.apply(&UserSettings { set, quick, ..UserSettings::default() }, &Fake::new()).unwrap();
        study
    };
    let scenarios = |study: &Study| {
        let plan = make_plan(study, &Fake::new()).unwrap();
        let of = |point: &str| {
            let run =
                plan.points.iter().find(|p| p.label == format!("experiment=shapes;shape={point}")).unwrap().runs[0];
            plan.runs[run].scenario.text.clone()
        };
        [of("round"), of("square")]
    };
    let text_of = |size, corners| format!("colour = 3\ncorners = {corners}\nsize = {size}\n");
    assert_eq!(scenarios(&study(false, &[])), [text_of(20, 0), text_of(20, 4)]);
    let quick = study(true, &[]);
    assert_eq!(scenarios(&quick), [text_of(5, 1), text_of(5, 1)]);
    // The user's setting overrides it.
    assert_eq!(scenarios(&study(true, &["scenario.size=7"]))[0], text_of(7, 1));
    // The records of a shortened and of a whole study both repeat it.
    for study in [quick, study(false, &[])] {
        let again = load(&resolved_text(&study, "fake 1"), "study.toml", "x", &EmbeddedStudy("fake", &[])).unwrap();
        assert_eq!(scenarios(&again), scenarios(&study));
        assert_eq!(again.experiments[1].quick_set, study.experiments[1].quick_set);
    }
}

#[test]
fn a_metric_that_speaks_of_a_flow_that_is_not_there_is_refused_before_anything_is_run() {
    for (expression, says) in [
        (
            "rx_packets[\"bulks\"]",
            "unknown flow \"bulks\"; did you mean \"bulk\"? (expected one of bulk, bulk.reverse, other)",
        ),
        (
            "link_drop_ratio[\"cores\"]",
            "the scenario does not measure \"cores\"; did you mean \"core\"? (expected one of core)",
        ),
        ("max(figure_rebuffer_s[\"bulk@far\"])", "unknown host \"far\" (expected one of near)"),
        (
            "max(figure_rebuffer_s[\"bulks@near\"])",
            "unknown flow \"bulks\"; did you mean \"bulk\"? (expected one of bulk",
        ),
        ("rx_packets[\"*\"]", "the expression has 2 values, expected one"),
    ] {
        let text = common::STUDY.replace("'rx_packets[\"bulk\"]'", &format!("'{expression}'"));
        let files = [("plain.txt", common::SCENARIO)];
        let study = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)).unwrap();
        let folder = Temporary::new("flows");
        let error = run_into(&study, &Fake::new(), &folder.join("out"), 1).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        assert!(error.to_string().contains(says), "{error}");
        assert!(!folder.join("out").exists());
    }
}

#[test]
fn a_scenario_that_is_wrong_at_a_point_names_the_point() {
    let text = common::STUDY.replace("set = { corners = 4 }", "set = { corner = 4 }");
    let files = [("plain.txt", common::SCENARIO)];
    let study = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)).unwrap();
    let error = make_plan(&study, &Fake::new()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "study fake, experiment shapes at shape=square:\nsetting corner=4: there is no corner"
    );
}

/// Former names of experiments in the studies of the repository, as users' scripts have them.
#[test]
fn a_former_name_of_an_experiment_is_accepted_with_a_hint() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    let mut checked = 0;
    for folder in std::fs::read_dir(folder).expect("the studies").flatten() {
        let file = folder.path().join("study.toml");
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        if !text.contains("\nformer = ") {
            continue;
        }
        let study = fullpipe_study::load_file(&file).unwrap_or_else(|errors| panic!("{errors}"));
        for experiment in &study.experiments {
            for former in &experiment.former {
                let chosen = |name: &str| {
                    let set = Override::parse(&format!("experiments=[\"{name}\"]")).expect("an override");
                    let settings = UserSettings { set: vec![set], ..UserSettings::default() };
                    let mut study = study.clone();
                    let messages = study.apply(&settings, &Fake::new()).expect("settings");
                    (study.selected, messages)
                };
                let (selected, messages) = chosen(former);
                assert_eq!(selected, std::slice::from_ref(&experiment.name));
                let expected = format!("hint: the experiment {former} is now called {}", experiment.name);
                assert!(messages.iter().any(|message| message.starts_with(&expected)), "{messages:?}");
                assert!(chosen(&experiment.name).1.is_empty());
                checked += 1;
            }
        }
    }
    assert!(checked >= 3, "{checked}");
}
