//! Tests of study files and their errors: the line, the invalid token, and what is accepted.

use crate::common;

use crate::common::{PUBLISHED, SCENARIO, STUDY, study};
use fullpipe_scenario::schema::{Error, Errors};
use fullpipe_study::{EmbeddedStudy, load};
use proptest::prelude::*;

fn errors_of(text: &str, published: &str) -> Vec<Error> {
    let files = [("plain.txt", SCENARIO), ("published.csv", published)];
    match load(text, "study.toml", "fallback", &EmbeddedStudy("fake", &files)) {
        Ok(_) => panic!("this is right:\n{text}"),
        Err(Errors(errors)) => errors,
    }
}

/// The line, from 1, of the first occurrence of a text.
fn line_of(text: &str, part: &str) -> usize {
    let at = text.find(part).unwrap_or_else(|| panic!("no {part}"));
    text[..at].matches('\n').count() + 1
}

/// Replaces a part of the study by an invalid one. The only error must be on the line of `on` and at the token `found`; its
/// message must contain `says` and `expects`.
#[track_caller]
fn wrong(right: &str, wrong: &str, on: &str, found: &str, says: &str, expects: &str) {
    assert!(STUDY.contains(right), "the study has no {right}");
    let text = STUDY.replacen(right, wrong, 1);
    let errors = errors_of(&text, PUBLISHED);
    let error = &errors[0];
    assert_eq!(error.file, "study.toml", "{error}");
    assert_eq!(error.line, line_of(&text, on), "{error}");
    assert_eq!(error.found, found, "{error}");
    assert!(error.message.contains(says), "{error}");
    let expected = format!("{}|{}", error.expected.join("|"), error.suggestion.as_deref().unwrap_or(""));
    assert!(expected.contains(expects), "{error}\nexpected set: {expected}");
}

/// The study with `metrics` in its first experiment, `sizes`.
fn with_own_metrics(metrics: &str) -> String {
    STUDY.replacen("name = \"sizes\"\n", &format!("name = \"sizes\"\nmetrics = {metrics}\n"), 1)
}

#[test]
fn metrics_of_an_experiment_exclude_the_other_metrics_without_experiments() {
    let study = common::study_of(&with_own_metrics("[\"packets\", \"window_bytes\"]"));
    let applies = |metric: &str, experiment: &str| {
        study.metrics.iter().any(|known| known.name == metric && known.applies_to(experiment))
    };
    assert!(applies("packets", "sizes") && applies("packets", "shapes"));
    // Not listed, and names no experiments.
    assert!(!applies("rate_bps", "sizes") && applies("rate_bps", "shapes"));
    // Names the experiment itself, listed or not.
    assert!(applies("window_bytes", "sizes") && applies("per_size", "sizes"));
}

#[test]
fn metrics_of_an_experiment_must_exist_and_apply() {
    let first = |text: &str| errors_of(text, PUBLISHED)[0].to_string();
    let unknown = first(&with_own_metrics("[\"packet\"]"));
    assert!(unknown.contains("unknown metric packet") && unknown.contains("packets"), "{unknown}");
    let other = STUDY.replacen("name = \"shapes\"\n", "name = \"shapes\"\nmetrics = [\"per_size\"]\n", 1);
    assert!(first(&other).contains("per_size applies to sizes only"), "{}", first(&other));
    let nowhere = with_own_metrics("[\"packets\"]").replacen(
        "name = \"shapes\"\n",
        "name = \"shapes\"\nmetrics = [\"packets\"]\n",
        1,
    );
    assert!(first(&nowhere).contains("no experiment has the metric rate_bps"), "{}", first(&nowhere));
}

#[test]
fn names_that_do_not_exist() {
    wrong("runs = 3", "rums = 3", "rums", "rums", "rums is not a key", "runs");
    wrong("scenario = \"plain\"", "scenario = \"plane\"", "plane", "\"plane\"", "unknown scenario plane", "plain");
    wrong(
        "plain = \"plain.txt\"",
        "plain = \"plane.txt\"",
        "plane.txt",
        "\"plane.txt\"",
        "cannot read the scenario fake/plane.txt",
        "a scenario file",
    );
    wrong(
        "seed = 4",
        "seed = 4\nexperiments = [\"size\"]",
        "[\"size\"]",
        "\"size\"",
        "unknown experiment size",
        "sizes",
    );
    wrong("[[experiment.axis]]", "[[experiment.axes]]", "axes", "axes", "axes is not a key of an experiment", "axis");
    wrong(
        "experiments = [\"sizes\"]",
        "experiments = [\"sized\"]",
        "sized",
        "\"sized\"",
        "unknown experiment sized",
        "sizes",
    );
    wrong(
        "explained_by = \"more-is-more\"",
        "explained_by = \"more\"",
        "\"more\"",
        "\"more\"",
        "unknown claim more",
        "more-is-more",
    );
    wrong(
        "paths = [\"colour\"]",
        "paths = [\"colour\"]\nscenarios = [\"plan\"]",
        "[\"plan\"]",
        "\"plan\"",
        "unknown scenario plan",
        "plain",
    );
}

#[test]
fn names_that_are_there_already_or_mean_something_else() {
    wrong(
        "name = \"shapes\"",
        "name = \"sizes\"\n#",
        "name = \"sizes\"\n#",
        "\"sizes\"",
        "duplicate experiment name sizes",
        "each name once",
    );
    wrong(
        "name = \"rate_bps\"",
        "name = \"packets\"\n#",
        "name = \"packets\"\n#",
        "\"packets\"",
        "duplicate metric name packets",
        "once",
    );
    wrong(
        "name = \"less-is-more\"",
        "name = \"more-is-more\"\n#",
        "name = \"more-is-more\"\n#",
        "\"more-is-more\"",
        "duplicate claim name",
        "once",
    );
    wrong(
        "name = \"shape\"",
        "name = \"runs\"",
        "name = \"runs\"",
        "\"runs\"",
        "runs is a reserved name",
        "another name",
    );
    wrong(
        "name = \"shape\"",
        "name = \"the-shape\"",
        "the-shape",
        "\"the-shape\"",
        "not a valid name of an axis",
        "\"_\"",
    );
    wrong(
        "name = \"packets\"",
        "name = \"size\"\n#",
        "name = \"size\"\n#",
        "\"size\"",
        "another column",
        "another name",
    );
    wrong("[parameters.colour]", "[parameters.clock]", "clock", "clock", "clock is a reserved name", "another name");
    wrong(
        "explained_by = \"more-is-more\"",
        "explained_by = \"less-is-more\"",
        "explained_by = \"less",
        "\"less-is-more\"",
        "cannot explain itself",
        "another claim",
    );
}

#[test]
fn values_of_the_wrong_kind() {
    wrong("runs = 3", "runs = 0", "runs = 0", "0", "too small", "from 1");
    wrong("runs = 3", "runs = \"3\"", "runs = \"3\"", "\"3\"", "is a string", "an integer");
    wrong("seed = 4", "seed = -4", "seed = -4", "-4", "too small", "from 0");
    wrong("seed = 4", "clock = \"virtul\"", "clock", "\"virtul\"", "unknown value", "virtual");
    wrong("title = \"A fake study\"", "", "", "", "title is missing", "a string");
    wrong("values = [10, 20, 40]", "values = 10", "values = 10", "10", "is an integer", "an array");
    wrong("seed = 4", "seed = ", "seed = ", "seed = ", "invalid TOML", "");
}

#[test]
fn axes_and_points() {
    wrong(
        "values = [10, 20, 40]",
        "values = [10, 20, 10]",
        "values = [10",
        "10",
        "has the value 10 twice",
        "each value once",
    );
    wrong(
        "values = [10, 20, 40]\nquick = [10, 40]",
        "values = []",
        "[[experiment.axis]]",
        "[[experiment.axis]]",
        "no values",
        "values",
    );
    wrong("quick = [10, 40]", "quick = [10, 50]", "quick = [10", "50", "50 is not a value of size", "40");
    wrong("quick = [10, 40]", "quick = []", "quick = []", "[]", "no value is left", "at least one");
    wrong("paths = [\"size\"]", "", "name = \"size\"", "\"size\"", "sets nothing", "paths");
    wrong(
        "values = [10, 20, 40]",
        "values = [[1], 20, 40]",
        "values = [[1]",
        "[1]",
        "cannot be written in a table",
        "label",
    );
    wrong(
        "values = [10, 20, 40]",
        "values = [\"a;b\", 20, 40]",
        "a;b",
        "\"a;b\"",
        "cannot be written in a table",
        "label",
    );
    wrong(
        "set = { corners = 4 } }]",
        "sets = { corners = 4 } }]",
        "sets",
        "{ label = \"square\", sets = { corners = 4 } }",
        "sets is not a key",
        "label, value, set or replications",
    );
    wrong(
        "{ label = \"square\", set = { corners = 4 } }",
        "{ label = \"square\" }",
        "square",
        "{ label = \"square\" }",
        "sets nothing",
        "value, set or replications",
    );
    wrong(
        "{ label = \"square\", set = { corners = 4 } }",
        "{ value = 4 }",
        "value = 4",
        "{ value = 4 }",
        "no label",
        "label = \"NAME\"",
    );
    wrong(
        "set = { size = 20 }",
        "points = [{ shape = \"triangle\" }]",
        "triangle",
        "\"triangle\"",
        "triangle is not a value of shape",
        "square",
    );
    wrong("set = { size = 20 }", "points = [{ shap = \"round\" }]", "shap = ", "shap", "unknown axis shap", "shape");
    wrong("set = { size = 20 }", "points = [{}]", "points = ", "{}", "no value for the axis shape", "shape");
    wrong(
        "set = { size = 20 }",
        "points = [{ shape = \"round\" }, { shape = \"round\" }]",
        "points = ",
        "{ shape = \"round\" }",
        "duplicate point",
        "once",
    );
    wrong("set = { size = 20 }", "points = []", "points = []", "[]", "list of points is empty", "at least one");
    wrong(
        "[parameters.colour]\ndefault = 3",
        "[parameters.load]\ndefault = \"high\"",
        "default = \"high\"",
        "\"high\"",
        "load cannot be",
        "a fraction",
    );
    wrong(
        "[parameters.colour]\ndefault = 3",
        "[parameters.congestion]\ndefault = 3",
        "default = 3",
        "3",
        "congestion cannot be",
        "name of a congestion control",
    );
}

#[test]
fn expressions_are_pointed_into() {
    wrong(
        "'rx_packets[\"bulk\"]'",
        "'rx_pakets[\"bulk\"]'",
        "rx_pakets",
        "rx_pakets",
        "did you mean `rx_packets`?",
        "",
    );
    wrong(
        "'rx_packets[\"bulk\"] / size'",
        "'rx_packets[\"bulk\"] / siz'",
        "/ siz'",
        "siz",
        "unknown axis or parameter siz",
        "size",
    );
    wrong("'rx_packets[\"bulk\"]'", "'rx_packets[\"bulk\"] +'", "\"bulk\"] +'", "", "found the end", "");
    wrong(
        "metric(\"sizes\", \"packets\", size = 40) >",
        "metric(\"size\", \"packets\", size = 40) >",
        "metric(\"size\"",
        "metric",
        "unknown experiment size",
        "sizes",
    );
    wrong(
        "metric(\"sizes\", \"packets\", size = 40) >",
        "metric(\"sizes\", \"packet\", size = 40) >",
        "\"packet\"",
        "metric",
        "sizes has no metric packet",
        "packets",
    );
    wrong(
        "metric(\"sizes\", \"packets\", size = 40) >",
        "metric(\"sizes\", \"packets\", sizes = 40) >",
        "sizes = 40",
        "sizes",
        "sizes has no axis sizes",
        "size",
    );
    wrong(
        "metric(\"sizes\", \"packets\", size = 40) >",
        "metric(\"sizes\", \"packets\", size = 41) >",
        "size = 41",
        "size",
        "no value of size meets",
        "40",
    );
    wrong(
        "metric(\"sizes\", \"packets\", size = 40) >",
        "metric(\"shapes\", \"per_size\") >",
        "per_size\") >",
        "metric",
        "shapes has no metric per_size",
        "packets",
    );
    wrong(
        "metric(\"sizes\", \"packets\", size = 40) >",
        "metric(\"sizes\", \"packets\") >",
        "metric(\"sizes\", \"packets\") >",
        ">",
        "the expression has 3 values",
        "",
    );
}

#[test]
fn the_column_of_an_expression_is_that_of_the_file() {
    let text = STUDY.replace("'rx_packets[\"bulk\"]'", "'rx_packets[\"bulk\"] * colur'");
    let error = &errors_of(&text, PUBLISHED)[0];
    // expression = 'rx_packets["bulk"] * colur': 14 characters, the quotation mark included, then 21.
    assert_eq!((error.column, error.found.as_str()), (36, "colur"));
    let text = STUDY.replace("'rx_packets[\"bulk\"]'", "'''\nrx_packets[\"bulk\"]\n  * colur'''");
    let error = &errors_of(&text, PUBLISHED)[0];
    assert_eq!((error.line, error.column), (line_of(&text, "* colur"), 5));
}

#[test]
fn lists_of_unequal_length_are_found_before_anything_is_run() {
    let text = STUDY.replace(
        "metric(\"sizes\", \"packets\", size = 40) > metric(\"sizes\", \"packets\", size = 10)",
        "all(metric(\"sizes\", \"packets\") > metric(\"shapes\", \"packets\"))",
    );
    let error = &errors_of(&text, PUBLISHED)[0];
    assert!(error.message.contains("cannot combine a list of 3 values with a list of 2"), "{error}");
    assert_eq!(error.found, ">");
}

/// Checks the error for one invalid line in published.csv.
#[track_caller]
fn wrong_published(line: &str, column: usize, found: &str, says: &str, expects: &str) {
    let published = format!("{PUBLISHED}{line}\n");
    let error = &errors_of(STUDY, &published)[0];
    assert_eq!((error.file.as_str(), error.line), ("fake/published.csv", 6), "{error}");
    assert_eq!((error.column, error.found.as_str()), (column, found), "{error}");
    assert!(error.message.contains(says), "{error}");
    let expected = format!("{}|{}", error.expected.join("|"), error.suggestion.as_deref().unwrap_or(""));
    assert!(expected.contains(expects), "{error}\nexpected set: {expected}");
}

#[test]
fn published_values() {
    wrong_published("size,size=10,rate_bps,1,0,,,", 1, "size", "unknown experiment size", "sizes");
    wrong_published("sizes,sze=10,rate_bps,1,0,,,", 7, "sze=10", "sizes has no axis sze", "size");
    wrong_published("sizes,size=11,rate_bps,1,0,,,", 7, "size=11", "11 is not a value of size", "40");
    wrong_published("sizes,size,rate_bps,1,0,,,", 7, "size", "found \"size\" in the point", "axis=value");
    wrong_published("sizes,,rate_bps,1,0,,,", 7, "", "is not a point of sizes", "size=10");
    wrong_published("sizes,size=10,rate,1,0,,,", 15, "rate", "sizes has no metric rate", "rate_bps");
    wrong_published("shapes,shape=round,per_size,1,0,,,", 20, "per_size", "shapes has no metric per_size", "packets");
    wrong_published("sizes,size=10,rate_bps,one,0,,,", 24, "one", "found \"one\" for the value", "a number");
    wrong_published("sizes,size=10,rate_bps,inf,0,,,", 24, "inf", "for the value", "a number");
    wrong_published("sizes,size=10,rate_bps,1,5 percent,,,", 26, "5 percent", "for the tolerance", "5%");
    wrong_published("sizes,size=10,rate_bps,1,-5%,,,", 26, "-5%", "for the tolerance", "5%");
    wrong_published("sizes,size=10,rate_bps,1,0,,,more", 30, "more", "unknown claim more", "more-is-more");
    wrong_published("sizes,size=10,packets,1,0,,,", 15, "packets", "has a published value already", "one value");
    wrong_published("sizes,size=10,packets,1", 1, "sizes", "this line has 4 fields", "8");
    let published = PUBLISHED.replace("tolerance", "tolerence");
    let error = &errors_of(STUDY, &published)[0];
    assert_eq!((error.line, error.column, error.suggestion.as_deref()), (1, 31, Some("tolerance")), "{error}");
    let error = &errors_of(STUDY, "experiment,point,value\n")[0];
    assert!(error.message.contains("the column metric is missing"), "{error}");
}

#[test]
fn all_mistakes_are_told_at_once_in_order() {
    let text = STUDY
        .replace("scenario = \"plain\"\n[[", "scenario = \"plane\"\n[[")
        .replace("quick = [10, 40]", "quick = [11]")
        .replace("[\"bulk\"] / size", "[\"bulk\"] / siz");
    let lines: Vec<usize> =
        errors_of(&text, PUBLISHED).iter().filter(|e| e.file == "study.toml").map(|e| e.line).collect();
    assert_eq!(lines, [line_of(&text, "plane"), line_of(&text, "quick = [11]"), line_of(&text, "/ siz'")]);
}

#[test]
fn tables_of_paths_are_dotted_paths() {
    let text = STUDY.replace("set = { size = 20 }", "set = { \"a.b\" = 1, c.d = { e = 2 }, \"f.g\" = { h = 3 } }");
    let files = [("plain.txt", SCENARIO)];
    let study = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)).unwrap();
    let paths: Vec<&str> = study.experiments[1].set.iter().map(|set| set.path.as_str()).collect();
    // Under a key with dots, a table is the value.
    assert_eq!(paths, ["a.b", "c.d.e", "f.g"]);
}

#[test]
fn explicit_points_are_the_points() {
    let text = STUDY.replace(
        "name = \"sizes\"\nscenario = \"plain\"",
        "name = \"sizes\"\nscenario = \"plain\"\npoints = [{ size = 40, hue = 1 }, { size = 10, hue = 2 }]",
    );
    let text =
        text.replace("quick = [10, 40]", "quick = [10, 40]\n[[experiment.axis]]\nname = \"hue\"\npaths = [\"colour\"]");
    let files = [("plain.txt", SCENARIO)];
    let study = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(study.experiments[0].combinations(), [[2, 0], [0, 1]]);
    let labels: Vec<&str> = study.experiments[0].axes[1].levels.iter().map(|level| level.label.as_str()).collect();
    assert_eq!(labels, ["1", "2"]);
}

#[test]
fn a_study_says_what_it_says() {
    let study = study();
    assert_eq!((study.name.as_str(), study.title.as_str()), ("fake", "A fake study"));
    assert_eq!(study.axis_names(), ["size", "shape"]);
    assert_eq!(study.selected, ["sizes", "shapes"]);
    assert_eq!(study.published.len(), 3);
    // Without a name in the file, the study has the default name.
    let files = [("plain.txt", SCENARIO)];
    let text = STUDY.replace("name = \"fake\"", "");
    assert_eq!(load(&text, "study.toml", "other", &EmbeddedStudy("fake", &files)).unwrap().name, "other");
}

#[test]
fn the_resolved_file_says_the_same_again() {
    let study = study();
    let once = fullpipe_study::resolved::resolved_text(&study, "b");
    let again = load(&once, "study.toml", "x", &EmbeddedStudy("fake", &[])).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(fullpipe_study::resolved::resolved_text(&again, "b"), once);
    assert_eq!((again.experiments.len(), again.published, again.claims), (2, study.published, study.claims));
}

const PLOTS: &str = r#"
[[plot]]
name = "cloud"
kind = "ellipse"
x = "srtt_s"
y = "throughput_bps"
subject = "bulk"
group = "1.5s"
scaling = "n3"
x_reversed = true

[[plot]]
name = "trade"
kind = "curve"
x = "packets"
y = "rate_bps"
along = "size"

[[plot]]
name = "side-by-side"
kind = "profile"
metrics = ["packets", "per_size"]
labels = ["all", "of each"]

[[plot]]
name = "boxes"
kind = "box"
x = "size"
y = "packets"

[[plot]]
name = "summary"
kind = "table"
rows = "size"
columns = "experiment"
metrics = ["packets", "rate_bps"]
best = { rate_bps = "high" }
"#;

#[test]
fn plots_reach_the_records_as_they_are_asked_for() {
    let study = common::study_of(&(STUDY.to_owned() + PLOTS));
    let resolved = fullpipe_study::resolved::resolved_text(&study, "b");
    for line in [
        "subject = \"bulk\"",
        "group = \"1500ms\"",
        "scaling = \"n3\"",
        "x_reversed = true",
        "along = \"size\"",
        "labels = [\"all\", \"of each\"]",
        "columns = \"experiment\"",
        "best = { rate_bps = \"high\" }",
    ] {
        assert!(resolved.lines().any(|found| found == line), "{line} in\n{resolved}");
    }
}

#[test]
fn what_a_plot_lacks_or_misnames_is_told() {
    for (right, wrong, says) in [
        ("subject = \"bulk\"\n", "", "a plot of kind ellipse requires subject"),
        ("along = \"size\"\n", "", "a plot of kind curve requires along"),
        (
            "metrics = [\"packets\", \"per_size\"]\nlabels = [\"all\", \"of each\"]",
            "",
            "a plot of kind profile requires metrics",
        ),
        ("rows = \"size\"\n", "", "a plot of kind table requires rows"),
        ("x = \"size\"\ny = \"packets\"\n", "x = \"size\"\n", "a plot of kind box requires y"),
        ("x = \"size\"\ny = \"packets\"\n", "x = \"size\"\nmetrics = [\"packets\"]\n", "a box plot requires 5 metrics"),
        (
            "kind = \"box\"\n",
            "kind = \"box\"\nmetrics = [\"packets\", \"packets\", \"packets\", \"packets\", \"packets\"]\n",
            "both y and metrics",
        ),
        ("labels = [\"all\", \"of each\"]", "labels = [\"all\"]", "there are 1 labels for 2 metrics"),
        ("along = \"size\"", "along = \"sise\"", "unknown axis sise"),
        ("columns = \"experiment\"", "columns = \"packets\"", "unknown axis packets"),
        ("[\"packets\", \"rate_bps\"]", "[\"packets\", \"rate\"]", "unknown metric rate"),
        ("{ rate_bps = \"high\" }", "{ per_size = \"high\" }", "unknown metric of this table per_size"),
        ("{ rate_bps = \"high\" }", "{ rate_bps = \"best\" }", "best"),
        ("group = \"1.5s\"", "group = \"0s\"", "group"),
        ("x = \"packets\"\ny", "x = \"srtt_s\"\ny", "unknown axis or metric srtt_s"),
    ] {
        assert!(PLOTS.contains(right), "{right}");
        let errors = errors_of(&(STUDY.to_owned() + &PLOTS.replacen(right, wrong, 1)), PUBLISHED);
        assert!(errors[0].to_string().contains(says), "{}", errors[0]);
    }
}

#[test]
fn the_reference_page_is_the_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/studies.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let reference = fullpipe_scenario::schema::render_reference(&fullpipe_archive::STUDY);
    if std::env::var_os("FULLPIPE_UPDATE").is_some() {
        let heading = "# Reference of study files\n\n";
        let (own, _) = page.split_once(heading).expect("a heading");
        return std::fs::write(path, format!("{own}{heading}{reference}")).expect("the page is writable");
    }
    assert!(page.ends_with(&reference), "docs/studies.md does not end with the schema's reference:\n{reference}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_panics_on_a_damaged_study(at in 0usize..3000, length in 0usize..40, with in "[a-z\\[\\]{}=\"'0-9,. \n-]{0,12}") {
        let mut start = at % STUDY.len();
        while !STUDY.is_char_boundary(start) { start -= 1; }
        let mut end = (start + length).min(STUDY.len());
        while !STUDY.is_char_boundary(end) { end -= 1; }
        let text = format!("{}{with}{}", &STUDY[..start], &STUDY[end.max(start)..]);
        let files = [("plain.txt", SCENARIO), ("published.csv", PUBLISHED)];
        if let Err(Errors(errors)) = load(&text, "study.toml", "x", &EmbeddedStudy("fake", &files)) {
            prop_assert!(!errors.is_empty());
            prop_assert!(errors.iter().all(|error| error.line <= text.lines().count() + 1));
        }
    }

    #[test]
    fn nothing_panics_on_damaged_published_values(at in 0usize..300, length in 0usize..20, with in "[a-z=;,\"\n0-9%#é]{0,12}") {
        let start = at % PUBLISHED.len();
        let end = (start + length).min(PUBLISHED.len());
        let text = format!("{}{with}{}", &PUBLISHED[..start], &PUBLISHED[end..]);
        let files = [("plain.txt", SCENARIO), ("published.csv", text.as_str())];
        let _ = load(STUDY, "study.toml", "x", &EmbeddedStudy("fake", &files));
    }
}

#[test]
fn metric_with_a_wrong_expression_gives_one_error() {
    // Plots, claims and expectations name the metric.
    let right = STUDY.lines().find(|line| line.starts_with("expression = ")).expect("a metric");
    let errors = errors_of(&STUDY.replacen(right, "expression = 'goodputt[\"*\"]'", 1), PUBLISHED);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].message.contains("is not a column of flows.csv"), "{}", errors[0]);
}
