//! `study.toml` written and read back.

use fullpipe_archive::{
    AxisOfStudy, AxisRecord, AxisValue, Best, Bound, ClaimRecord, Clock, ExpectRecord, ExperimentRecord, LateRuns,
    LeftOut, MatrixCell, MatrixRecord, MatrixStatement, MetricRecord, MultilineText, ParameterRecord, Plot, PlotKind,
    Points, PublishedRecord, Scale, Scaling, ScenarioRecord, ScenarioSetting, ScenarioSettings, StudyRecord, SubTable,
};
use fullpipe_schema::{Entry, Node, NodeContent, SourceLocation};
use fullpipe_units::Duration;
use proptest::prelude::*;
use std::path::Path;

fn node(content: NodeContent) -> Node {
    Node { content, place: SourceLocation::default() }
}

fn text(text: &str) -> Node {
    node(NodeContent::Text(text.to_owned()))
}

fn table(keys: &[(&str, Node)]) -> Node {
    let entry = |(key, node): &(&str, Node)| Entry {
        key: (*key).to_owned(),
        key_place: SourceLocation::default(),
        node: node.clone(),
    };
    node(NodeContent::Table(keys.iter().map(entry).collect()))
}

/// A study with all keys; `odd` is the content of all free texts.
fn whole(odd: &str, number: f64) -> StudyRecord {
    let odd = || odd.to_owned();
    let name = |name: &str| name.to_owned();
    let set = || {
        ScenarioSettings(vec![("duration".to_owned(), text("1s")), (odd() + ".x", node(NodeContent::Float(number)))])
    };
    let point = || vec![("axis".to_owned(), text("a")), ("other".to_owned(), node(NodeContent::Integer(-3)))];
    let labelled = table(&[
        ("label", text("b")),
        ("value", node(NodeContent::Boolean(true))),
        ("set", table(&[("duration", text("2s")), ("a.b", node(NodeContent::Array(vec![text("c")])))])),
        ("replications", text("rows")),
    ]);
    StudyRecord {
        name: Some(name("study")),
        title: odd(),
        source: odd(),
        description: odd(),
        seed: (1 << 53) - 1,
        exact_seed: Some(true),
        more_seeds: Some(vec![2, (1 << 53) - 1]),
        study_seeds: Some(3),
        clock: Clock::Both,
        runs: Some(2),
        quick_runs: Some(1),
        raised: 2,
        experiments: Some(vec![name("first")]),
        robust: Some(vec![(name("claims"), vec![name("claim")])]),
        quick: true,
        build: odd(),
        scenarios: vec![(odd(), ScenarioRecord { origin: odd(), text: MultilineText(odd() + "\n" + &odd()) })],
        replications: Some(vec![(name("rows"), Points(vec![point(), set().0]))]),
        parameters: vec![(
            odd(),
            ParameterRecord {
                default: Some(node(NodeContent::Float(number))),
                quick: Some(text("x")),
                text: odd(),
                paths: vec![odd()],
                scenarios: vec![name("plain")],
            },
        )],
        scenario_setting: vec![ScenarioSetting { scenario: name("plain"), path: odd(), value: text("v") }],
        left_out: vec![LeftOut { experiment: name("first"), axis: name("axis"), values: vec![odd(), odd()] }],
        experiment: vec![ExperimentRecord {
            name: name("first"),
            former: Some(vec![name("first-former")]),
            scenario: name("plain"),
            text: odd(),
            runs: Some(30),
            quick_runs: Some(2),
            late_runs: Some(LateRuns::Count),
            metrics: Some(vec![name("metric")]),
            set: set(),
            replications: Some(name("rows")),
            quick_set: Some(set()),
            points: Some(Points(vec![point(), point()])),
            quick_points: Some(Points(vec![point()])),
            axis: vec![AxisRecord {
                name: name("axis"),
                text: odd(),
                values_of: Some(name("first")),
                paths: vec![odd()],
                values: vec![AxisValue(text("a")), AxisValue(labelled)],
                quick: Some(vec![AxisValue(text("a"))]),
            }],
        }],
        axis: vec![AxisOfStudy { name: name("axis"), text: odd(), values: vec![odd()] }],
        metric: vec![MetricRecord {
            name: name("rate_bps"),
            unit: odd(),
            text: odd(),
            expression: odd(),
            experiments: vec![name("first")],
        }],
        plot: vec![
            Plot { name: name("bare"), ..Plot::default() },
            Plot {
                name: name("whole"),
                title: Some(odd()),
                kind: PlotKind::Ellipse,
                x: Some(odd()),
                y: Some(odd()),
                subject: Some(odd()),
                group: Some(Duration::from_millis(1500)),
                scaling: Some(Scaling::N3),
                along: Some(odd()),
                metrics: Some(vec![name("rate_bps")]),
                labels: Some(vec![odd()]),
                rows: Some(odd()),
                columns: Some(odd()),
                best: Some(vec![(odd(), Best::Low)]),
                series: Some(vec![]),
                r#where: Some(vec![(odd(), text("a"))]),
                x_scale: Some(Scale::Log),
                y_scale: Some(Scale::Linear),
                x_label: Some(odd()),
                y_label: Some(odd()),
                x_unit: Some(odd()),
                y_unit: Some(odd()),
                x_reversed: Some(true),
                x_min: Some(number),
                x_max: Some(-number),
                y_min: Some(0.0),
                y_max: Some(1e-9),
                caption: Some(odd()),
            },
        ],
        claim: vec![ClaimRecord {
            name: name("holds"),
            text: odd(),
            source: odd(),
            expression: odd(),
            explained_by: odd(),
            exploratory: true,
            published_runs: Some(10),
            variant: odd(),
        }],
        expect: vec![ExpectRecord {
            metric: name("rate_bps"),
            experiments: vec![name("first")],
            r#where: Some(point()),
            min: Some(Bound::Number(number)),
            max: Some(Bound::Quantity(odd())),
        }],
        matrix: Some(SubTable(MatrixRecord {
            axis: name("axis"),
            references: vec![odd(), odd()],
            candidate: Some(odd()),
            rows: vec![("5.1.1".to_owned(), odd()), (odd(), odd())],
            columns: vec![("6.1".to_owned(), odd())],
            cell: vec![MatrixCell {
                rows: vec![odd()],
                columns: vec![odd()],
                experiments: Some(vec![name("first")]),
                r#where: Some(point()),
                worse: Some(vec![(name("rate_bps"), Best::Low)]),
                note: Some(odd()),
                not_run: Some(odd()),
            }],
            statement: Some(vec![MatrixStatement { section: odd(), title: odd(), text: odd() }]),
        })),
        published: Some(vec![PublishedRecord {
            experiment: Some(name("first")),
            point: odd(),
            metric: name("rate_bps"),
            value: number,
            tolerance: odd(),
            published_runs: 10,
            source: odd(),
            note: odd(),
            explained_by: odd(),
        }]),
    }
}

fn parse(text: &str) -> Result<StudyRecord, String> {
    StudyRecord::parse(Path::new(StudyRecord::FILE), text).map_err(|error| error.to_string())
}

proptest! {
    #[test]
    fn study_reads_back_as_written(
        odd in "(\\PC|[\n\r\t'\"\\\\]){1,20}|''' *|[a-z]+\n",
        number in proptest::num::f64::NORMAL | proptest::num::f64::ZERO,
    ) {
        let study = whole(&odd, number);
        let text = study.to_toml();
        prop_assert_eq!(parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")), study, "{}", text);
    }
}

#[test]
fn written_study_has_the_documented_form() {
    let mut study = whole("o", 0.5);
    study.plot.truncate(1);
    study.published = Some(Vec::new());
    let text = study.to_toml();
    // Written by hand: values first, then each table under its header; paths in quotation marks; one point on each line.
    let begin = format!(
        "{}\nname = \"study\"\ntitle = \"o\"\nsource = \"o\"\ndescription = \"o\"\nseed = 9007199254740991\nexact_seed = \
         true\nmore_seeds = [2, 9007199254740991]\nstudy_seeds = 3\nclock = \"both\"\nruns = 2\nquick_runs = 1\nraised = 2\nexperiments = [\"first\"]\nrobust = {{ claims = [\"claim\"] }}\nquick = true\nbuild = \"o\"\n\
         replications = {{ rows = [\n  {{ axis = \"a\", other = -3 }},\n  {{ duration = \"1s\", \"o.x\" = 0.5 }},\n] }}\n\
         published = []\n\n[scenarios.o]\norigin = \"o\"\ntext = '''\no\no'''\n\n[parameters.o]\ndefault = 0.5\n",
        StudyRecord::FIRST_LINE
    );
    assert!(text.starts_with(&begin), "{text}");
    for part in [
        "set = { \"duration\" = \"1s\", \"o.x\" = 0.5 }\n",
        "points = [\n  { axis = \"a\", other = -3 },\n  { axis = \"a\", other = -3 },\n]\n",
        "\n[[experiment.axis]]\nname = \"axis\"\ntext = \"o\"\nvalues_of = \"first\"\npaths = [\"o\"]\nvalues = [\"a\", { label = \"b\", value = true, \
         set = { \"duration\" = \"2s\", \"a.b\" = [\"c\"] }, replications = \"rows\" }]\nquick = [\"a\"]\n",
        "\n[[plot]]\nname = \"bare\"\nkind = \"line\"\n\n[[claim]]\n",
        "\n[matrix]\naxis = \"axis\"\nreferences = [\"o\", \"o\"]\ncandidate = \"o\"\nrows = { \"5.1.1\" = \"o\", o = \"o\" }\n",
        "\n[[matrix.cell]]\nrows = [\"o\"]\ncolumns = [\"o\"]\nexperiments = [\"first\"]\nwhere = { axis = \"a\", other = -3 }\n\
         worse = { rate_bps = \"low\" }\n",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
}

const SMALL: &str = r#"name = "small"
title = "t"
seed = 1
quick = true
published = []
scenarios = { plain = { text = "" } }
experiment = [{ name = "e", scenario = "plain" }]
metric = [{ name = "m", expression = "1" }]
[[plot]]
name = "p"
kind = "ellipse"
group = "1500ms"
"#;

#[test]
fn wrong_study_error_has_line_and_expectation() {
    assert_eq!(parse(SMALL).expect("a valid file").plot[0].group, Some(Duration::from_millis(1500)));
    for (line, old, new, expected) in [
        (
            11,
            "\"ellipse\"",
            "\"elipse\"",
            "unknown value \"elipse\" for plot.0.kind; did you mean \"ellipse\"? (expected one of \"line\", \"bars\",",
        ),
        (4, "true", "1", "quick = 1 is an integer; expected true or false"),
        (2, "title", "titel", "titel is not a key of a study; did you mean title? (expected"),
        (12, "1500ms", "0s", "plot.0.group = \"0s\" is too small"),
        (3, "= 1", "= ", "invalid TOML"),
        (8, "metric", "metrics", "metrics is not a key of a study"),
        (5, "[]", "\"published.csv\"", "found the name of a file, \"published.csv\"; expected what the file contains"),
        (
            6,
            "{ text = \"\" }",
            "\"plain.toml\"",
            "found the name of a file, \"plain.toml\"; expected what the file contains",
        ),
        (
            5,
            "published = []",
            "replications = { r = \"r.csv\" }",
            "found the name of a file, \"r.csv\"; expected what the file contains",
        ),
    ] {
        assert!(SMALL.contains(old), "{old}");
        let error = parse(&SMALL.replacen(old, new, 1)).expect_err(new);
        assert!(error.contains(expected) && error.starts_with(&format!("study.toml: line {line}: ")), "{error}");
    }
}
