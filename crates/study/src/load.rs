//! Loads a [`Study`] from the text of a study file. The schema checks keys and types. This module checks everything
//! else (names that must exist, levels, points, expressions). It reports all errors with their positions.

use crate::check;
use crate::expect;
use crate::expression::{self, Expression, ExpressionPurpose};
use crate::level::{flattened, level_of, wrong_for_fixed_name};
use crate::matrix;
use crate::port::ScenarioSource;
use crate::published;
use crate::replications;
use crate::shelf::{StudyFiles, StudyFolder};
use crate::study::{Axis, CLOCK_AXIS, Claim, Experiment, Level, Metric, SeedSource, Setting, Study, clocks, label_of};
use fullpipe_archive::{
    BOX_QUANTILES, ClaimRecord, Clock, MetricRecord, ParameterRecord, Plot, PlotKind, STUDY, read_key,
};
use fullpipe_scenario::schema::{self, Error, Errors, Node, SourceLocation, Sources, Tree, Value, ValueData};
use std::collections::BTreeSet;
use std::path::Path;

/// Loads a study from a file on the disk. If the file does not state a name, the study has the name of the folder (for
/// `study.toml`) or of the file without its extension.
///
/// # Errors
/// All errors in the file and in the files of its folder to which it refers.
pub fn load_file(path: &Path) -> Result<Study, Errors> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shelf = StudyFolder(folder.to_owned());
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = shelf.read(&file).map_err(|reason| {
        let sources = Sources::new(&path.display().to_string(), "", &[]);
        Errors(vec![sources.error(SourceLocation::default(), "", format!("cannot be read: {reason}"), Vec::new())])
    })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = match folder.canonicalize().ok().as_deref().and_then(Path::file_name) {
        Some(name) if file == "study.toml" => name.to_string_lossy().into_owned(),
        _ => stem,
    };
    load(&text, &path.display().to_string(), &name, &shelf)
}

/// Loads a study from its text. `file` is the file name in errors. `default_name` is the name of the study if the text
/// does not state one.
///
/// # Errors
/// All errors in the text and in the files of `shelf` to which it refers.
pub fn load(text: &str, file: &str, default_name: &str, shelf: &dyn StudyFiles) -> Result<Study, Errors> {
    let loaded = schema::load(&STUDY, text, file, &[])?;
    let mut loader = Loader { sources: &loaded.sources, text, shelf, replications: Vec::new(), errors: Vec::new() };
    let mut study = loader.study(&loaded.root, default_name);
    loader.published(&loaded.root, &mut study);
    // Records may be those of only a part of a study. The claims were checked when the study was complete.
    if loader.errors.is_empty() && loaded.root.text("build").is_empty() {
        check::claims(
            &study,
            &mut loader.errors,
            |claim, column| {
                let tree = loaded.root.tables("claim").iter().find(|tree| tree.text("name") == claim);
                tree.map(|tree| expression_place(text, tree, "expression", column)).unwrap_or_default()
            },
            &loaded.sources,
        );
    }
    let mut errors = loader.errors;
    if errors.is_empty() {
        return Ok(study);
    }
    errors
        .sort_by(|a, b| (a.file != file, &a.file, a.line, a.column).cmp(&(b.file != file, &b.file, b.line, b.column)));
    Err(Errors(errors))
}

/// Names that have another meaning in `--set` or in tables.
const RESERVED: [&str; 8] = ["experiments", "runs", "clock", "experiment", "seed", "key", "quick", "scenario"];

struct Loader<'a> {
    sources: &'a Sources,
    text: &'a str,
    shelf: &'a dyn StudyFiles,
    /// The names of the study's replications.
    replications: Vec<String>,
    errors: Vec<Error>,
}

impl Loader<'_> {
    fn wrong(&mut self, place: SourceLocation, path: &str, message: impl Into<String>, expected: &[&str]) {
        let expected = expected.iter().map(|text| (*text).to_owned()).collect();
        self.errors.push(self.sources.error(place, path, message, expected));
    }

    fn unknown(&mut self, place: SourceLocation, path: &str, message: String, name: &str, valid: &[&str]) {
        self.errors.push(self.sources.unknown_name(place, path, message, name, valid));
    }

    /// Checks that a name is one of `valid`.
    fn exists(&mut self, place: SourceLocation, path: &str, what: &str, name: &str, valid: &[&str]) {
        if !valid.contains(&name) {
            self.unknown(place, path, format!("unknown {what} {name}"), name, valid);
        }
    }

    fn study(&mut self, root: &Tree, default_name: &str) -> Study {
        let name = root.get("name").map_or(default_name, Value::text).to_owned();
        let scenarios = self.scenarios(root);
        let scenario_names: Vec<&str> = scenarios.iter().map(|(name, _)| name.as_str()).collect();
        let parameters = self.parameters(root, &scenario_names);
        let replications = self.replications(root);
        let runs = root.integer("runs").unsigned_abs();
        let quick_runs = root.get("quick_runs").map(|value| value.integer().unsigned_abs());
        let clock: Clock = read_key(root, "clock");
        let mut experiments: Vec<Experiment> = Vec::new();
        for tree in root.tables("experiment") {
            self.unique(tree, "experiment", experiments.iter().map(|experiment| experiment.name.as_str()));
            let mut experiment = self.experiment(tree, &scenario_names, &parameters, runs, quick_runs, &experiments);
            experiment.vary_clock(clocks(clock));
            experiments.push(experiment);
        }
        if experiments.is_empty() {
            self.wrong(
                root.location_of("experiment"),
                "experiment",
                "the study has no experiment",
                &["[[experiment]]"],
            );
        }
        let mut metrics = self.metrics(root, &experiments, &parameters);
        self.apply_own_metrics(root, &mut metrics);
        let names: Vec<&str> = experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        let selected = self.selected(root, &names);
        let claims = self.claims(root);
        let seed = root.integer("seed").unsigned_abs();
        let exact = root.get("exact_seed").is_some_and(Value::boolean);
        let plots = self.plots(root, &experiments, &metrics);
        let expectations = expect::of_study(root, &experiments, &metrics, self.sources, &mut self.errors);
        let robust = self.robust(root);
        let matrix = matrix::of_study(root, &experiments, &metrics, self.sources, &mut self.errors);
        Study {
            name,
            title: root.text("title").to_owned(),
            source: root.text("source").to_owned(),
            description: root.text("description").to_owned(),
            seeds: if exact { SeedSource::Fixed(seed) } else { SeedSource::Derived(seed) },
            more_seeds: root
                .get("more_seeds")
                .map(|value| value.list().iter().map(|seed| seed.integer().unsigned_abs()).collect())
                .unwrap_or_default(),
            study_seeds: root.get("study_seeds").map_or(1, |value| value.integer().unsigned_abs()),
            raised: root.integer("raised").unsigned_abs(),
            robust,
            quick: root.boolean("quick"),
            selected,
            scenarios,
            replications,
            parameters,
            experiments,
            metrics,
            plots,
            claims,
            expectations,
            matrix,
            published: Vec::new(),
            scenario_settings: read_key(root, "scenario_setting"),
            left_out: read_key(root, "left_out"),
        }
    }

    /// Reads the claims of `[robust]`.
    fn robust(&mut self, root: &Tree) -> Vec<String> {
        let names: Vec<&str> = root.tables("claim").iter().map(|tree| tree.text("name")).collect();
        let mut robust = Vec::new();
        for entry in root.get("robust").map(Value::map).unwrap_or_default() {
            self.exists(entry.name_place, "robust", "key", &entry.name, &["claims"]);
            for value in entry.value.list() {
                self.exists(value.place, "robust", "claim", value.text(), &names);
                robust.push(value.text().to_owned());
            }
        }
        robust
    }

    fn unique<'b>(&mut self, tree: &Tree, what: &str, mut before: impl Iterator<Item = &'b str>) {
        let name = tree.text("name");
        if before.any(|earlier| earlier == name) {
            let message = format!("duplicate {what} name {name}");
            self.wrong(tree.location_of("name"), what, message, &["each name once"]);
        }
    }

    fn selected(&mut self, root: &Tree, names: &[&str]) -> Vec<String> {
        let Some(list) = root.get("experiments") else { return names.iter().map(|name| (*name).to_owned()).collect() };
        let chosen: Vec<&str> = list.list().iter().map(Value::text).collect();
        for value in list.list() {
            self.exists(value.place, "experiments", "experiment", value.text(), names);
        }
        if chosen.is_empty() {
            self.wrong(list.place, "experiments", "no experiment is selected", &["at least one"]);
        }
        names.iter().filter(|name| chosen.contains(name)).map(|name| (*name).to_owned()).collect()
    }

    fn scenarios(&mut self, root: &Tree) -> Vec<(String, ScenarioSource)> {
        let mut scenarios = Vec::new();
        for entry in root.map("scenarios") {
            if !schema::is_name(&entry.name) {
                let expected = "a letter, then letters, digits, \"-\" and \"_\"";
                self.wrong(entry.name_place, "scenarios", format!("{:?} is not a valid name", entry.name), &[expected]);
            }
            let (origin, text) = match &entry.value.data {
                ValueData::Table(tree) => (tree.text("origin"), tree.text("text").to_owned()),
                _ => {
                    let file = entry.value.text();
                    let text = self.shelf.read(file).unwrap_or_else(|reason| {
                        let message = format!("cannot read the scenario {}: {reason}", self.shelf.display_name(file));
                        self.wrong(entry.value.place, "scenarios", message, &["a scenario file in the study's folder"]);
                        String::new()
                    });
                    (file, text)
                }
            };
            let (name, folder) = (self.shelf.display_name(origin), self.shelf.folder());
            scenarios.push((entry.name.clone(), ScenarioSource { name, origin: origin.to_owned(), text, folder }));
        }
        scenarios
    }

    fn replications(&mut self, root: &Tree) -> Vec<(String, Vec<Vec<Setting>>)> {
        let mut all = Vec::new();
        for entry in root.get("replications").map(Value::map).unwrap_or_default() {
            if !schema::is_name(&entry.name) {
                let expected = "a letter, then letters, digits, \"-\" and \"_\"";
                self.wrong(
                    entry.name_place,
                    "replications",
                    format!("{:?} is not a valid name", entry.name),
                    &[expected],
                );
            }
            let before = self.errors.len();
            let rows = match &entry.value.data {
                ValueData::Text(file) => match self.shelf.read(file) {
                    Ok(text) => replications::rows(&text, &self.shelf.display_name(file), &mut self.errors),
                    Err(reason) => {
                        let message = format!("cannot read {}: {reason}", self.shelf.display_name(file));
                        self.wrong(entry.value.place, "replications", message, &["a CSV file in the study's folder"]);
                        Vec::new()
                    }
                },
                _ => entry.value.list().iter().map(replications::row).collect(),
            };
            if rows.is_empty() && self.errors.len() == before {
                let message = format!("the replications {} have no rows", entry.name);
                self.wrong(entry.value.place, "replications", message, &["a row for each run"]);
            }
            self.replications.push(entry.name.clone());
            all.push((entry.name.clone(), rows));
        }
        all
    }

    /// Checks that replications with this name exist.
    fn replications_exist(&mut self, place: SourceLocation, name: &str) {
        let known = std::mem::take(&mut self.replications);
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        if names.is_empty() {
            let message = format!("the study has no replications {name}");
            self.wrong(place, "replications", message, &["[replications] with this name"]);
        } else {
            self.exists(place, "replications", "table or file of replications", name, &names);
        }
        self.replications = known;
    }

    /// Checks the name of an axis or a parameter, which is also used as a column, in expressions and in `--set`.
    fn usable_name(&mut self, name: &str, place: SourceLocation, what: &str) {
        if RESERVED.contains(&name) {
            let message = format!("{name} is a reserved name; it cannot be the name of {what}");
            self.wrong(place, what, message, &["another name"]);
        } else if !schema::is_name(name) || name.contains('-') {
            let message = format!("{name} is not a valid name of {what}, because expressions use the name");
            self.wrong(place, what, message, &["a letter, then letters, digits and \"_\""]);
        }
    }

    fn parameters(&mut self, root: &Tree, scenarios: &[&str]) -> Vec<(String, ParameterRecord)> {
        let parameters: Vec<(String, ParameterRecord)> = read_key(root, "parameters");
        for entry in root.map("parameters") {
            let tree = entry.value.table();
            self.usable_name(&entry.name, entry.name_place, "a parameter");
            for value in tree.list("scenarios") {
                self.exists(value.place, "scenarios", "scenario", value.text(), scenarios);
            }
            for value in ["default", "quick"].into_iter().filter_map(|key| tree.get(key)) {
                self.fixed_name(&entry.name, value.raw());
            }
        }
        parameters
    }

    /// Checks the value of a name that is fixed for all studies.
    fn fixed_name(&mut self, name: &str, value: &Node) {
        if let Some(expected) = wrong_for_fixed_name(name, value) {
            let message = format!("{name} cannot be {}", value.to_toml());
            self.wrong(value.place, name, message, &[expected]);
        }
    }

    fn experiment(
        &mut self,
        tree: &Tree,
        scenarios: &[&str],
        parameters: &[(String, ParameterRecord)],
        runs: u64,
        quick_runs: Option<u64>,
        earlier: &[Experiment],
    ) -> Experiment {
        let scenario = tree.text("scenario");
        self.exists(tree.location_of("scenario"), "scenario", "scenario", scenario, scenarios);
        let mut axes: Vec<Axis> = Vec::new();
        for axis in tree.tables("axis") {
            self.unique(axis, "axis", axes.iter().map(|axis| axis.name.as_str()));
            axes.push(self.axis(axis, parameters, earlier));
        }
        let points = tree.get("points").map(|list| self.points(list, &mut axes, true));
        let quick_points = tree.get("quick_points").map(|list| self.points(list, &mut axes, points.is_some()));
        for (axis, axis_tree) in axes.iter().zip(tree.tables("axis")) {
            if axis.levels.is_empty() {
                let message = format!("the axis {} has no values", axis.name);
                self.wrong(axis_tree.place, "axis", message, &["values, or points of the experiment"]);
            }
        }
        let own = |key: &str| tree.get(key).map(|value| value.integer().unsigned_abs());
        let replications = tree.get("replications").map(|value| value.text().to_owned());
        if let Some(name) = &replications {
            self.replications_exist(tree.location_of("replications"), name);
        }
        let experiment = Experiment {
            name: tree.text("name").to_owned(),
            former: tree
                .get("former")
                .map(Value::list)
                .unwrap_or_default()
                .iter()
                .map(|name| name.text().to_owned())
                .collect(),
            text: tree.text("text").to_owned(),
            scenario: scenario.to_owned(),
            set: tree.map("set").iter().flat_map(|entry| flattened(&entry.name, entry.value.raw())).collect(),
            replications,
            quick_set: tree.map("quick_set").iter().flat_map(|e| flattened(&e.name, e.value.raw())).collect(),
            axes,
            points,
            quick_points,
            runs: own("runs").unwrap_or(runs),
            quick_runs: own("quick_runs").or(quick_runs),
            late_runs: read_key(tree, "late_runs"),
        };
        let count = experiment.axes.iter().try_fold(1usize, |n, axis| n.checked_mul(axis.levels.len()));
        if experiment.points.is_none() && count.is_none_or(|count| count > 1_000_000) {
            self.wrong(
                tree.place,
                "experiment",
                "its axes have more than a million combinations",
                &["at most 1000000"],
            );
        }
        experiment
    }

    /// Reads an axis. With `values_of`, it is the axis of the same name of an earlier experiment.
    fn axis(&mut self, tree: &Tree, parameters: &[(String, ParameterRecord)], earlier: &[Experiment]) -> Axis {
        let name = tree.text("name").to_owned();
        if let Some(of) = tree.get("values_of").filter(|value| value.given) {
            let has_axis = |experiment: &&Experiment| experiment.axis(&name).is_some();
            let valid: Vec<&str> = earlier.iter().filter(has_axis).map(|experiment| experiment.name.as_str()).collect();
            self.exists(of.place, "values_of", &format!("earlier experiment with the axis {name}:"), of.text(), &valid);
            if let Some(value) = ["values", "paths"].into_iter().find_map(|key| tree.get(key).filter(|v| v.given)) {
                self.wrong(value.place, "values_of", "the axis has values_of, and values or paths", &["one of them"]);
            }
            let found = earlier.iter().find(|experiment| experiment.name == of.text());
            if let Some((_, axis)) = found.and_then(|experiment| experiment.axis(&name)) {
                let mut axis = axis.clone();
                if tree.get("quick").is_some_and(|value| value.given) {
                    axis.quick = self.quick_levels(tree, &name, &axis.levels);
                }
                return axis;
            }
        }
        let of_clock = name == CLOCK_AXIS;
        if !of_clock {
            self.usable_name(&name, tree.location_of("name"), "an axis");
        }
        let mut levels: Vec<Level> = Vec::new();
        // An axis may have thousands of values.
        let mut labels = BTreeSet::new();
        for value in tree.list("values") {
            let Some(level) = self.level(&name, value.raw()) else { continue };
            if of_clock && !clocks(Clock::Both).iter().any(|clock| clock.name() == level.label) {
                let message = format!("found {} for clock", level.label);
                self.wrong(value.place, "values", message, &["\"virtual\"", "\"real\""]);
            }
            if !labels.insert(level.label.clone()) {
                let message = format!("the axis {name} has the value {} twice", level.label);
                self.wrong(value.place, "values", message, &["each value once"]);
                continue;
            }
            levels.push(level);
        }
        let mut paths: Vec<String> = read_key(tree, "paths");
        if let Some((_, parameter)) = parameters.iter().find(|(known, _)| paths.is_empty() && *known == name) {
            paths.clone_from(&parameter.paths);
        }
        let sets_itself =
            |level: &Level| level.value.is_none() && (!level.set.is_empty() || level.replications.is_some());
        if !of_clock && paths.is_empty() && (levels.is_empty() || !levels.iter().all(sets_itself)) {
            let message = format!("the axis {name} sets nothing");
            let expected = ["paths", "the name of a parameter", "values with `set`"];
            self.wrong(tree.location_of("name"), "axis", message, &expected);
        }
        let quick = self.quick_levels(tree, &name, &levels);
        Axis { name, text: tree.text("text").to_owned(), paths, levels, quick }
    }

    /// Reads the labels of the levels that a shortened study keeps; `None` for all.
    fn quick_levels(&mut self, tree: &Tree, name: &str, levels: &[Level]) -> Option<Vec<String>> {
        tree.get("quick").map(|list| {
            let mut kept = Vec::new();
            for value in list.list() {
                match levels.iter().find(|level| level.is(value.raw())) {
                    Some(level) => kept.push(level.label.clone()),
                    None => {
                        let label = label_of(value.raw());
                        let valid: Vec<&str> = levels.iter().map(|level| level.label.as_str()).collect();
                        self.unknown(value.place, "quick", format!("{label} is not a value of {name}"), &label, &valid);
                    }
                }
            }
            if list.list().is_empty() {
                self.wrong(list.place, "quick", "no value is left", &["at least one of the values"]);
            }
            kept
        })
    }

    /// Reads a level from a plain value or from `{ label, value, set }`.
    fn level(&mut self, axis: &str, node: &Node) -> Option<Level> {
        let level = match level_of(node) {
            Ok(level) => level,
            Err((message, expected)) => {
                self.wrong(node.place, axis, message, &[expected]);
                return None;
            }
        };
        if let Some(value) = &level.value {
            self.fixed_name(axis, value);
        }
        if let Some(name) = &level.replications {
            self.replications_exist(node.place, name);
        }
        Some(level)
    }

    /// Reads points as indices of levels. If `may_add`, an axis without declared values receives the values in the
    /// points.
    fn points(&mut self, list: &Value, axes: &mut [Axis], may_add: bool) -> Vec<Vec<usize>> {
        let declared: Vec<bool> = axes.iter().map(|axis| !axis.levels.is_empty()).collect();
        let mut points: Vec<Vec<usize>> = Vec::new();
        for value in list.list() {
            let entries = value.map();
            let before = self.errors.len();
            let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
            for entry in entries {
                self.exists(entry.name_place, "points", "axis", &entry.name, &names);
            }
            let mut point = Vec::new();
            for (axis, declared) in axes.iter_mut().zip(&declared) {
                let Some(entry) = entries.iter().find(|entry| entry.name == axis.name) else {
                    // If the name of an axis is misspelled, the correct name is missing too, so this error would be
                    // redundant.
                    if self.errors.len() == before {
                        let message = format!("this point has no value for the axis {}", axis.name);
                        self.wrong(value.place, "points", message, &[&axis.name]);
                    }
                    continue;
                };
                let node = entry.value.raw();
                if let Some(found) = axis.levels.iter().position(|level| level.is(node)) {
                    point.push(found);
                } else if *declared || !may_add {
                    let valid: Vec<&str> = axis.levels.iter().map(|level| level.label.as_str()).collect();
                    let label = label_of(node);
                    let message = format!("{label} is not a value of {}", axis.name);
                    self.unknown(entry.value.place, "points", message, &label, &valid);
                } else if let Some(level) = self.level(&axis.name, node) {
                    point.push(axis.levels.len());
                    axis.levels.push(level);
                }
            }
            if points.contains(&point) && point.len() == axes.len() {
                self.wrong(value.place, "points", "duplicate point", &["each point once"]);
            }
            points.push(point);
        }
        if list.list().is_empty() {
            self.wrong(list.place, "points", "the list of points is empty", &["at least one"]);
        }
        points
    }

    fn expression(&mut self, tree: &Tree, purpose: ExpressionPurpose) -> Option<Expression> {
        match expression::parse(tree.text("expression"), purpose) {
            Ok(expression) => Some(expression),
            Err(error) => {
                let place = expression_place(self.text, tree, "expression", error.column);
                self.wrong(place, "expression", error.message, &[]);
                None
            }
        }
    }

    fn metrics(
        &mut self,
        root: &Tree,
        experiments: &[Experiment],
        parameters: &[(String, ParameterRecord)],
    ) -> Vec<Metric> {
        let axes = || experiments.iter().flat_map(|experiment| &experiment.axes).map(|axis| axis.name.as_str());
        let words: Vec<&str> = axes().chain(parameters.iter().map(|(name, _)| name.as_str())).collect();
        let experiment_names: Vec<&str> = experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        let mut metrics: Vec<Metric> = Vec::new();
        let records: Vec<MetricRecord> = read_key(root, "metric");
        for (record, tree) in records.into_iter().zip(root.tables("metric")) {
            self.unique(tree, "metric", metrics.iter().map(|metric| metric.name.as_str()));
            let name = record.name.as_str();
            if words.contains(&name) || RESERVED.contains(&name) {
                let message = format!("{name} is the name of another column");
                self.wrong(tree.location_of("name"), "metric", message, &["another name"]);
            }
            for value in tree.list("experiments") {
                self.exists(value.place, "experiments", "experiment", value.text(), &experiment_names);
            }
            // A metric with an invalid expression has a separate error. The metric exists, so plots and expectations
            // may use its name.
            let placeholder = || expression::parse("0", ExpressionPurpose::Metric).ok();
            let found = self.expression(tree, ExpressionPurpose::Metric).or_else(placeholder);
            let Some(expression) = found else { continue };
            for (word, column) in expression.variables() {
                let place = expression_place(self.text, tree, "expression", column);
                self.exists(place, "expression", "axis or parameter", word, &words);
            }
            metrics.push(Metric { record, expression });
        }
        metrics
    }

    /// Applies the key `metrics` of experiments: a metric that names no experiments does not apply to an experiment
    /// that has the key and does not list the metric.
    fn apply_own_metrics(&mut self, root: &Tree, metrics: &mut [Metric]) {
        let experiments = root.tables("experiment");
        let names: Vec<String> = metrics.iter().map(|metric| metric.name.clone()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for tree in experiments.iter().filter(|tree| tree.get("metrics").is_some()) {
            let experiment = tree.text("name");
            for value in tree.list("metrics") {
                self.exists(value.place, "metrics", "metric", value.text(), &names);
                let named = metrics.iter().find(|metric| metric.name == value.text());
                if let Some(metric) = named.filter(|metric| !metric.applies_to(experiment)) {
                    let message = format!("{} applies to {} only", metric.name, metric.experiments.join(", "));
                    self.wrong(value.place, "metrics", message, &["a metric without `experiments`, or with this one"]);
                }
            }
        }
        let lists = |tree: &Tree, metric: &str| {
            tree.get("metrics").is_none() || tree.list("metrics").iter().any(|value| value.text() == metric)
        };
        for metric in metrics.iter_mut().filter(|metric| metric.experiments.is_empty()) {
            let of: Vec<&Tree> = experiments.iter().filter(|tree| lists(tree, &metric.name)).collect();
            if of.is_empty() {
                let place = root.tables("metric").iter().find(|tree| tree.text("name") == metric.name);
                let place = place.map_or(root.place, |tree| tree.location_of("name"));
                let message = format!("no experiment has the metric {}", metric.name);
                self.wrong(place, "metric", message, &["an experiment that lists it in `metrics`"]);
            } else if of.len() < experiments.len() {
                metric.record.experiments = of.iter().map(|tree| tree.text("name").to_owned()).collect();
            }
        }
    }

    fn claims(&mut self, root: &Tree) -> Vec<Claim> {
        let names: Vec<&str> = root.tables("claim").iter().map(|tree| tree.text("name")).collect();
        let mut claims: Vec<Claim> = Vec::new();
        let records: Vec<ClaimRecord> = read_key(root, "claim");
        for (record, tree) in records.into_iter().zip(root.tables("claim")) {
            self.unique(tree, "claim", claims.iter().map(|claim| claim.name.as_str()));
            let (explained_by, place) = (&record.explained_by, tree.location_of("explained_by"));
            if !explained_by.is_empty() {
                self.exists(place, "explained_by", "claim", explained_by, &names);
            }
            if *explained_by == record.name {
                self.wrong(place, "explained_by", "a claim cannot explain itself", &["another claim"]);
            }
            let Some(expression) = self.expression(tree, ExpressionPurpose::Claim) else { continue };
            if let Some((word, column)) = expression.variables().first() {
                let place = expression_place(self.text, tree, "expression", *column);
                let message = format!("{word} has no value in a claim");
                self.wrong(place, "expression", message, &["metric(\"EXPERIMENT\", \"METRIC\", AXIS = VALUE)"]);
            }
            claims.push(Claim { record, expression });
        }
        claims
    }

    fn plots(&mut self, root: &Tree, experiments: &[Experiment], metrics: &[Metric]) -> Vec<Plot> {
        let mut axes: Vec<&str> =
            experiments.iter().flat_map(|experiment| &experiment.axes).map(|axis| axis.name.as_str()).collect();
        axes.push("experiment");
        let metrics: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        let both: Vec<&str> = axes.iter().chain(&metrics).copied().collect();
        let plots: Vec<Plot> = read_key(root, "plot");
        for (index, (plot, tree)) in plots.iter().zip(root.tables("plot")).enumerate() {
            self.unique(tree, "plot", plots[..index].iter().map(|plot| plot.name.as_str()));
            let kind = plot.kind;
            let named = [
                ("along", &axes, "axis"),
                ("rows", &axes, "axis"),
                ("columns", &axes, "axis"),
                ("x", &both, "axis or metric"),
                ("y", &metrics, "metric"),
            ];
            // The scenario determines the metrics of series.csv.
            let of_samples = matches!(kind, PlotKind::Time | PlotKind::Ellipse);
            for (key, valid, what) in named.into_iter().take(if of_samples { 3 } else { 5 }) {
                if let Some(value) = tree.get(key) {
                    self.exists(value.place, key, what, value.text(), valid);
                }
            }
            for value in tree.list("metrics") {
                self.exists(value.place, "metrics", "metric", value.text(), &metrics);
            }
            for entry in tree.map("best") {
                let shown: Vec<&str> = tree.list("metrics").iter().map(Value::text).collect();
                self.exists(entry.name_place, "best", "metric of this table", &entry.name, &shown);
            }
            for value in tree.get("series").map(Value::list).unwrap_or_default() {
                self.exists(value.place, "series", "axis", value.text(), &axes);
            }
            for entry in tree.get("where").map(Value::map).unwrap_or_default() {
                self.exists(entry.name_place, "where", "axis", &entry.name, &axes);
            }
            self.plot_is_whole(tree, kind);
        }
        plots
    }

    /// Checks that the keys are present that a kind of plot requires in addition to the common ones.
    fn plot_is_whole(&mut self, tree: &Tree, kind: PlotKind) {
        let needed: &[&str] = match kind {
            PlotKind::Ellipse => &["x", "y", "subject"],
            PlotKind::Curve => &["x", "y", "along"],
            // Five quantiles of each run can replace y.
            PlotKind::Box if tree.list("metrics").is_empty() => &["x", "y"],
            PlotKind::Box => &["x"],
            PlotKind::Profile => &["metrics"],
            PlotKind::Table => &["rows", "columns", "metrics"],
            PlotKind::Line | PlotKind::Bars | PlotKind::Scatter | PlotKind::Distribution | PlotKind::Time => &[],
        };
        for key in needed.iter().filter(|key| tree.get(key).is_none_or(|value| !value.given)) {
            let message = format!("a plot of kind {} requires {key}", kind.name());
            self.wrong(tree.location_of("kind"), "kind", message, &[key]);
        }
        let (metrics, labels) = (tree.list("metrics").len(), tree.list("labels").len());
        if kind == PlotKind::Box && metrics > 0 {
            let expected = ["lower whisker, first quartile, median, third quartile, upper whisker"];
            if metrics != BOX_QUANTILES {
                let message = format!("a box plot requires {BOX_QUANTILES} metrics, but there are {metrics}");
                self.wrong(tree.location_of("metrics"), "metrics", message, &expected);
            }
            if tree.get("y").is_some_and(|value| value.given) {
                let message = "a box plot has both y and metrics".to_owned();
                self.wrong(tree.location_of("y"), "y", message, &expected);
            }
        }
        if labels > 0 && labels != metrics {
            let message = format!("there are {labels} labels for {metrics} metrics");
            self.wrong(tree.location_of("labels"), "labels", message, &["a label for each metric, in their order"]);
        }
    }

    fn published(&mut self, root: &Tree, study: &mut Study) {
        match root.get("published") {
            Some(Value { data: ValueData::Tables(trees), .. }) => {
                for tree in trees {
                    let row = published::PublishedRow::of_tree(tree, self.sources);
                    row.check(study, &mut self.errors);
                }
            }
            given => {
                let file = given.map_or("published.csv", |value| value.text());
                match self.shelf.read(file) {
                    Ok(text) => {
                        for row in published::rows(&text, &self.shelf.display_name(file), &mut self.errors) {
                            row.check(study, &mut self.errors);
                        }
                    }
                    Err(reason) => {
                        if let Some(given) = given {
                            let message = format!("cannot read {}: {reason}", self.shelf.display_name(file));
                            self.wrong(given.place, "published", message, &["a CSV file in the study's folder"]);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the position in the file of a character of an expression. If the text is written with escapes, returns the
/// position of the complete text.
fn expression_place(file: &str, tree: &Tree, key: &str, column: usize) -> SourceLocation {
    let whole = tree.location_of(key);
    let SourceLocation::File { start, end } = whole else { return whole };
    let Some(raw) = file.get(start as usize..end as usize) else { return whole };
    let expression = tree.text(key);
    let quotes = if raw.starts_with("'''") || raw.starts_with("\"\"\"") { 3 } else { 1 };
    let Some(mut inside) = raw.get(quotes..) else { return whole };
    let mut skipped = quotes;
    if quotes == 3 && !expression.starts_with('\n') {
        let trimmed = inside.strip_prefix("\r\n").or_else(|| inside.strip_prefix('\n')).unwrap_or(inside);
        skipped += inside.len() - trimmed.len();
        inside = trimmed;
    }
    if !inside.starts_with(expression) {
        return whole;
    }
    let offset = expression.char_indices().nth(column.saturating_sub(1)).map_or(expression.len(), |(offset, _)| offset);
    let rest = &expression[offset..];
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let first = rest.chars().next().unwrap_or(' ');
    let length = if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
    let from = start as usize + skipped + offset;
    let to = (from + length.min(rest.len())).min(end as usize);
    SourceLocation::File { start: from as u32, end: to as u32 }
}
