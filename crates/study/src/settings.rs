//! Applies the user's options to a study: `--set`, `--runs`, `--seed`, `--quick`.
//!
//! `--set NAME=VALUE` sets the fixed names `experiments`, `runs` and `clock`, the study's parameters, and its axes
//! (VALUE replaces the values of an axis; a single value is a list of one). `--set scenario.PATH=VALUE` applies to
//! every scenario with the path. `--quick` shortens what the user has not set.

use crate::check::point_passes;
use crate::error::StudyError;
use crate::level::{level_of, wrong_for_fixed_name};
use crate::port::Runner;
use crate::study::{Axis, CLOCK_AXIS, Experiment, Level, SeedSource, Setting, Study, clocks, label_of};
use crate::words::list_of;
use fullpipe_archive::{Clock, LeftOut, ScenarioSetting};
use fullpipe_scenario::schema::{
    self, Error, Errors, Field, FieldKind, Node, NodeContent, Override, SourceLocation, Sources, Table,
};

/// The user's options for a study, as on the command line.
#[derive(Clone, Debug, Default)]
pub struct UserSettings {
    /// The `--set` options, in order. If several options have the same name, the last one applies.
    pub set: Vec<Override>,
    /// The number of runs per point (`--runs`); `None` keeps the study's numbers.
    pub runs: Option<u64>,
    /// The study seed (`--seed`); `None` keeps the study's own seed.
    pub seed: Option<u64>,
    /// The number of study seeds under which each run is repeated; `None` keeps the study's number.
    pub seeds: Option<u64>,
    /// Whether the study is shortened (`--quick`).
    pub quick: bool,
}

const FIXED: [&str; 3] = ["experiments", "runs", "clock"];

static ANYTHING: Table =
    Table { name: "value", fields: &[&[Field::required("value", FieldKind::Raw, "")]], ..Table::EMPTY };

/// Parses VALUE as TOML, where a bare word is a string.
pub(crate) fn value_of(text: &str) -> Node {
    let loaded = schema::load(&ANYTHING, &format!("value = {text}\n"), "", &[]);
    match loaded {
        Ok(loaded) => loaded.root.raw("value").clone(),
        Err(_) => Node { content: NodeContent::Text(text.to_owned()), place: SourceLocation::default() },
    }
}

struct Applier<'a> {
    sources: Sources,
    settings: &'a UserSettings,
    messages: Vec<String>,
}

type Outcome<T> = Result<T, Box<Error>>;

impl Study {
    /// Applies the user's options to the study, and returns messages for the user.
    ///
    /// # Errors
    /// If an option refers to a name or a value that the study does not have. The error contains the nearest valid one.
    pub fn apply(&mut self, settings: &UserSettings, laboratory: &dyn Runner) -> Result<Vec<String>, StudyError> {
        let sources = Sources::new("", "", &settings.set);
        let mut applier = Applier { sources, settings, messages: Vec::new() };
        applier.all(self, laboratory).map_err(|error| StudyError::InvalidFile(Errors(vec![*error])))?;
        Ok(applier.messages)
    }
}

impl Applier<'_> {
    fn error<E: Into<String>>(
        &self,
        index: usize,
        message: String,
        expected: impl IntoIterator<Item = E>,
    ) -> Box<Error> {
        let path = self.settings.set.get(index).map_or("", |set| &set.path);
        let expected = expected.into_iter().map(Into::into).collect();
        Box::new(self.sources.error(SourceLocation::Override(index as u32), path, message, expected))
    }

    fn all(&mut self, study: &mut Study, laboratory: &dyn Runner) -> Outcome<()> {
        let mut axes_set: Vec<&str> = Vec::new();
        let mut parameters_set: Vec<&str> = Vec::new();
        let mut runs = self.settings.runs;
        let mut scenario_sets: Vec<usize> = Vec::new();
        // Only the experiments that are run must have the name or the path that is set.
        for (index, set) in self.settings.set.iter().enumerate().filter(|(_, set)| set.path == "experiments") {
            self.choose_experiments(study, index, &value_of(&set.value))?;
        }
        for (index, set) in self.settings.set.iter().enumerate() {
            let value = value_of(&set.value);
            match set.path.as_str() {
                "experiments" => {}
                "clock" => {
                    axes_set.push(CLOCK_AXIS);
                    self.clock(study, index, &value)?;
                }
                "runs" => runs = runs.or(Some(self.runs(index, &value)?)),
                path if path.starts_with("scenario.") => scenario_sets.push(index),
                name => {
                    let is_axis = study.axis_names().contains(&name);
                    let is_parameter = study.parameters.iter().any(|(known, _)| known == name);
                    if !is_axis && !is_parameter {
                        return Err(self.unknown(study, index, name));
                    }
                    if is_axis {
                        axes_set.push(name);
                        let all = study.with_references(name, &value);
                        self.replace_axis(study, index, name, &all)?;
                        let is_single = !matches!(value.content, NodeContent::Array(_));
                        if let Some(matrix) = study.matrix.as_mut().filter(|matrix| matrix.axis == name && is_single) {
                            matrix.candidate = Some(labeled(&value));
                        }
                    }
                    if is_parameter && !(is_axis && matches!(value.content, NodeContent::Array(_))) {
                        if let Some(expected) = wrong_for_fixed_name(name, &value) {
                            return Err(self.error(index, format!("{name} cannot be {}", value.to_toml()), [expected]));
                        }
                        parameters_set.push(name);
                        for (_, parameter) in study.parameters.iter_mut().filter(|(known, _)| known == name) {
                            parameter.default = Some(value.clone());
                        }
                    }
                }
            }
        }
        if self.settings.quick {
            shorten(study, &axes_set, &parameters_set);
        }
        if let Some(runs) = runs {
            study.experiments.iter_mut().for_each(|experiment| experiment.runs = runs.max(1));
        }
        if let Some(seeds) = self.settings.seeds {
            study.study_seeds = seeds.max(1);
            if seeds > 1 {
                keep_robust(study);
            }
        }
        if let Some(seed) = self.settings.seed {
            study.seeds = match study.seeds {
                SeedSource::Derived(_) => SeedSource::Derived(seed),
                SeedSource::Fixed(_) => SeedSource::Fixed(seed),
            };
        }
        let all: Vec<Override> = scenario_sets.iter().map(|&index| of_scenario(&self.settings.set[index])).collect();
        for index in scenario_sets {
            self.set_scenarios(study, index, &all, laboratory)?;
        }
        Ok(())
    }

    fn unknown(&self, study: &Study, index: usize, name: &str) -> Box<Error> {
        let mut valid: Vec<&str> = study.axis_names();
        valid.extend(study.parameters.iter().map(|(name, _)| name.as_str()));
        valid.extend(FIXED);
        valid.push("scenario.PATH");
        let message = format!("the study {} has no axis or parameter {name}", study.name);
        let mut error = self.sources.unknown_name(SourceLocation::Override(index as u32), name, message, name, &valid);
        error.found = name.to_owned();
        Box::new(error)
    }

    fn choose_experiments(&mut self, study: &mut Study, index: usize, value: &Node) -> Outcome<()> {
        let names: Vec<String> = study.experiments.iter().map(|experiment| experiment.name.clone()).collect();
        let mut chosen: Vec<String> = as_list(value).into_iter().map(label_of).collect();
        for name in chosen.iter_mut().filter(|name| !names.contains(name)) {
            if let Some(present) = study.experiments.iter().find(|experiment| experiment.former.contains(name)) {
                let present = &present.name;
                self.messages.push(format!(
                    "hint: the experiment {name} is now called {present} ({name} is accepted until the next version)"
                ));
                name.clone_from(present);
            }
        }
        if let Some(unknown) = chosen.iter().find(|name| !names.contains(name)) {
            let valid: Vec<&str> = names.iter().map(String::as_str).collect();
            let message = format!("unknown experiment {unknown}");
            let mut error = self.sources.unknown_name(
                SourceLocation::Override(index as u32),
                "experiments",
                message,
                unknown,
                &valid,
            );
            error.found.clone_from(unknown);
            return Err(Box::new(error));
        }
        if chosen.is_empty() {
            return Err(self.error(index, "no experiment is selected".into(), names));
        }
        study.selected = names.into_iter().filter(|name| chosen.contains(name)).collect();
        Ok(())
    }

    fn clock(&mut self, study: &mut Study, index: usize, value: &Node) -> Outcome<()> {
        let named = |clock: &&Clock| value.as_text() == Some(clock.name());
        let Some(clock) = Clock::ALL.iter().find(named) else {
            let expected = Clock::ALL.iter().map(|clock| format!("\"{}\"", clock.name()));
            return Err(self.error(index, format!("found {} for clock", value.to_toml()), expected));
        };
        if study.axis_names().contains(&CLOCK_AXIS) {
            let one = |clock: &Clock| Node {
                content: NodeContent::Text(clock.name().to_owned()),
                place: SourceLocation::default(),
            };
            let wanted = if *clock == Clock::Virtual { &[Clock::Virtual] } else { clocks(*clock) };
            let wanted = Node {
                content: NodeContent::Array(wanted.iter().map(one).collect()),
                place: SourceLocation::default(),
            };
            self.replace_axis(study, index, CLOCK_AXIS, &wanted)?;
        }
        study.experiments.iter_mut().for_each(|experiment| experiment.vary_clock(clocks(*clock)));
        Ok(())
    }

    fn runs(&self, index: usize, value: &Node) -> Outcome<u64> {
        match value.content {
            NodeContent::Integer(runs) if (1..=1_000_000).contains(&runs) => Ok(runs.unsigned_abs()),
            _ => {
                let message = format!("found {} for runs", value.to_toml());
                Err(self.error(index, message, ["an integer from 1 to 1000000"]))
            }
        }
    }

    fn replace_axis(&mut self, study: &mut Study, index: usize, name: &str, value: &Node) -> Outcome<()> {
        let wanted = as_list(value);
        if wanted.is_empty() {
            return Err(self.error(index, format!("the axis {name} would have no values"), ["at least one value"]));
        }
        let selected = study.selected.clone();
        // An axis or value of one experiment does not have to exist in the others.
        let axes = study.experiments.iter().filter(|experiment| selected.contains(&experiment.name));
        let axes: Vec<&Axis> = axes.flat_map(|experiment| &experiment.axes).filter(|axis| axis.name == name).collect();
        let has = |axis: &&Axis, node: &Node| !axis.paths.is_empty() || axis.levels.iter().any(|level| level.is(node));
        let elsewhere: Vec<bool> = wanted.iter().map(|node| axes.iter().any(|axis| has(axis, node))).collect();
        let mut left = 0;
        for experiment in study.experiments.iter_mut().filter(|experiment| selected.contains(&experiment.name)) {
            let Some(position) = experiment.axes.iter().position(|axis| axis.name == name) else {
                left += 1;
                continue;
            };
            let axis = &mut experiment.axes[position];
            let known = |node: &Node| axis.levels.iter().position(|level| level.is(node));
            let kept: Vec<usize> = wanted.iter().filter_map(|node| known(node)).collect();
            let is_kept = |point: &[usize]| point.get(position).is_some_and(|level| kept.contains(level));
            let gone = axis.levels.iter().enumerate().filter(|(level, _)| !kept.contains(level));
            let gone: Vec<String> = gone.map(|(_, level)| level.label.clone()).collect();
            if let Some(points) = &experiment.points {
                let points: Vec<Vec<usize>> = points.iter().filter(|point| is_kept(point)).cloned().collect();
                if points.is_empty() {
                    let labels = list_of(axis.levels.iter().map(|level| level.label.as_str()));
                    let name = &experiment.name;
                    self.messages.push(format!(
                        "the experiment {name} is left out: none of its points has {}={} (it has {labels})",
                        axis.name,
                        value.to_toml()
                    ));
                    study.selected.retain(|selected| selected != name);
                    continue;
                }
                if let Some(quick) = &mut experiment.quick_points {
                    quick.retain(|point| is_kept(point));
                }
                experiment.points = Some(points);
            } else {
                let mut levels: Vec<Level> = Vec::new();
                for (node, elsewhere) in wanted.iter().zip(&elsewhere) {
                    let level = match known(node) {
                        None if axis.paths.is_empty() && *elsewhere => continue,
                        Some(known) => axis.levels[known].clone(),
                        None => {
                            let valid: Vec<String> = axis.levels.iter().map(|level| level.label.clone()).collect();
                            let level =
                                level_of(node).map_err(|(message, expected)| self.error(index, message, [expected]))?;
                            if level.value.is_some() && axis.paths.is_empty() {
                                let message = format!("{} is not a value of {name}", level.label);
                                let mut error = self.error(index, message, valid.clone());
                                error.suggestion = schema::nearest_name(&level.label, valid.iter().map(String::as_str))
                                    .map(str::to_owned);
                                return Err(error);
                            }
                            if let Some(expected) =
                                level.value.as_ref().and_then(|value| wrong_for_fixed_name(name, value))
                            {
                                let message = format!("{name} cannot be {}", level.label);
                                return Err(self.error(index, message, [expected]));
                            }
                            level
                        }
                    };
                    if levels.iter().any(|earlier| earlier.label == level.label) {
                        return Err(self.error(index, format!("duplicate value {}", level.label), ["each value once"]));
                    }
                    levels.push(level);
                }
                if levels.is_empty() {
                    let labels = list_of(axis.levels.iter().map(|level| level.label.as_str()));
                    let experiment = &experiment.name;
                    self.messages
                        .push(format!("the experiment {experiment} is left out: its values of {name} are {labels}"));
                    study.selected.retain(|selected| selected != experiment);
                    continue;
                }
                axis.levels = levels;
                axis.quick = None;
            }
            if !gone.is_empty() {
                let (experiment, axis) = (experiment.name.clone(), name.to_owned());
                study.left_out.push(LeftOut { experiment, axis, values: gone });
            }
            left += 1;
        }
        if left == 0 {
            let message = format!("no point has {name}={}", value.to_toml());
            let labels =
                study.experiments.iter().flat_map(|experiment| &experiment.axes).filter(|axis| axis.name == name);
            let mut valid: Vec<String> =
                labels.flat_map(|axis| axis.levels.iter().map(|level| level.label.clone())).collect();
            valid.dedup();
            return Err(self.error(index, message, valid));
        }
        Ok(())
    }

    /// Sets a path in every scenario that has it. `all`: the settings of all paths, for values that are valid only together, such
    /// as a shorter run and an earlier begin of the measurement.
    fn set_scenarios(
        &mut self,
        study: &mut Study,
        index: usize,
        all: &[Override],
        laboratory: &dyn Runner,
    ) -> Outcome<()> {
        let single = of_scenario(&self.settings.set[index]);
        let value = value_of(&single.value);
        let path = single.path.clone();
        let selected = || study.experiments.iter().filter(|experiment| study.selected.contains(&experiment.name));
        let swept_by = |experiment: &Experiment| {
            let in_rows = |name: &str| {
                let mut rows = study.replications(name).unwrap_or_default().iter().flatten();
                rows.any(|setting| setting.path == path)
            };
            let is_fixed = experiment.set.iter().any(|setting| setting.path == path);
            if experiment.replications().any(in_rows) && !is_fixed {
                return Some(Owner::Replications);
            }
            let sets = |axis: &&Axis| {
                axis.paths.contains(&path)
                    || axis.levels.iter().any(|level| level.set.iter().any(|set| set.path == path))
            };
            experiment.axes.iter().find(sets).map(|axis| Owner::Axis(axis.name.clone()))
        };
        let swept: Vec<(String, Owner)> =
            selected().filter_map(|experiment| Some((experiment.name.clone(), swept_by(experiment)?))).collect();
        if let (Some((_, owner)), true) = (swept.first(), swept.len() == selected().count()) {
            let message = format!("in every selected experiment, {owner} set {path}");
            let expected = match owner {
                Owner::Axis(axis) => format!("--set {axis}=[...]"),
                Owner::Replications => "--runs N: run r takes row r of the replications".to_owned(),
            };
            return Err(self.error(index, message, [expected]));
        }
        for (experiment, owner) in swept {
            self.messages.push(format!("{path} is not changed in the experiment {experiment}, because {owner} set it"));
        }
        let mut reached = Vec::new();
        let mut missed: Option<(String, String)> = None;
        for (name, source) in &study.scenarios {
            let used =
                |experiment: &&Experiment| experiment.scenario == *name && study.selected.contains(&experiment.name);
            if !study.experiments.iter().any(|experiment| used(&experiment)) {
                continue;
            }
            match laboratory.resolve(source, std::slice::from_ref(&single)) {
                Ok(_) => reached.push(name.clone()),
                Err(_) if all.len() > 1 && laboratory.resolve(source, all).is_ok() => reached.push(name.clone()),
                Err(message) => missed = missed.or(Some((name.clone(), message))),
            }
        }
        match missed {
            Some((_, message)) if reached.is_empty() => {
                // The runner's message states the problem and the alternatives; the position is added here.
                let place = format!("--set {path}={}: ", single.value);
                let message = message.strip_prefix(&place).unwrap_or(&message).to_owned();
                return Err(self.error(index, message, Vec::<String>::new()));
            }
            Some((name, _)) => {
                self.messages
                    .push(format!("{path} is set in {}; the scenario {name} does not accept it", reached.join(", ")));
            }
            None => {}
        }
        for name in reached {
            study.scenario_settings.retain(|setting| !(setting.scenario == name && setting.path == path));
            let (path, value) = (path.clone(), value.clone());
            study.scenario_settings.push(ScenarioSetting { scenario: name, path, value });
        }
        Ok(())
    }
}

/// Returns the setting of a scenario's path that `--set scenario.PATH=VALUE` means, with its value as TOML.
fn of_scenario(set: &Override) -> Override {
    let path = set.path.strip_prefix("scenario.").unwrap_or(&set.path).to_owned();
    Override { path, value: value_of(&set.value).to_toml() }
}

/// The setting that determines a path of a scenario at the points of an experiment.
enum Owner {
    Axis(String),
    Replications,
}

impl std::fmt::Display for Owner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Owner::Axis(axis) => write!(formatter, "the axis {axis}"),
            Owner::Replications => formatter.write_str("the rows of the replications"),
        }
    }
}

/// Returns the label of a value of an axis, which is plain or a table with a label.
pub(crate) fn labeled(value: &Node) -> String {
    level_of(value).map_or_else(|_| label_of(value), |level| level.label)
}

fn as_list(value: &Node) -> Vec<&Node> {
    match &value.content {
        NodeContent::Array(list) => list.iter().collect(),
        _ => vec![value],
    }
}

/// If `[robust]` lists claims, keeps only these claims and the points to which they refer.
fn keep_robust(study: &mut Study) {
    if study.robust.is_empty() {
        return;
    }
    let kept = |name: &str| study.robust.iter().any(|robust| robust == name);
    study.claims.retain(|claim| kept(&claim.name));
    for explained_by in study.claims.iter_mut().map(|claim| &mut claim.record.explained_by) {
        if !study.robust.contains(explained_by) {
            explained_by.clear();
        }
    }
    for explained_by in study.published.iter_mut().map(|published| &mut published.explained_by) {
        if !study.robust.contains(explained_by) {
            explained_by.clear();
        }
    }
    let lookups: Vec<_> = study.claims.iter().flat_map(|claim| claim.expression.lookups()).collect();
    for experiment in &mut study.experiments {
        let named = |levels: &Vec<usize>| {
            let mut of_experiment = lookups.iter().filter(|lookup| lookup.experiment == experiment.name);
            of_experiment.any(|lookup| point_passes(lookup, experiment, levels))
        };
        let points: Vec<Vec<usize>> = experiment.combinations().into_iter().filter(named).collect();
        if points.is_empty() {
            study.selected.retain(|name| *name != experiment.name);
        } else {
            experiment.points = Some(points);
        }
    }
}

/// Shortens a study for `--quick`, except for axes and parameters that the user set.
fn shorten(study: &mut Study, axes_set: &[&str], parameters_set: &[&str]) {
    study.quick = true;
    for (name, parameter) in &mut study.parameters {
        if !parameters_set.contains(&name.as_str()) && parameter.quick.is_some() {
            parameter.default = parameter.quick.take();
        }
    }
    let all = study.replications.clone();
    for experiment in &mut study.experiments {
        experiment.runs = experiment.quick_runs.take().unwrap_or(experiment.runs);
        let quick_set = std::mem::take(&mut experiment.quick_set);
        shorten_replications(experiment, &quick_set, &all, &mut study.replications);
        for setting in quick_set {
            let levels = experiment.axes.iter_mut().flat_map(|axis| &mut axis.levels);
            for same in levels.flat_map(|level| &mut level.set).filter(|other| other.path == setting.path) {
                same.value = setting.value.clone();
            }
            experiment.set.retain(|other| other.path != setting.path);
            experiment.set.push(setting);
        }
        let short: Vec<bool> = experiment
            .axes
            .iter()
            .map(|axis| axis.quick.is_some() && !axes_set.contains(&axis.name.as_str()))
            .collect();
        let kept = |axis: &Axis, level: usize| {
            let label = axis.levels.get(level).map(|level| &level.label);
            axis.quick.as_ref().is_none_or(|quick| label.is_some_and(|label| quick.contains(label)))
        };
        let quick_points = experiment.quick_points.take().filter(|points| !points.is_empty());
        match quick_points.or_else(|| experiment.points.clone()) {
            Some(points) => {
                let fewer: Vec<Vec<usize>> = points
                    .iter()
                    .filter(|point| {
                        experiment
                            .axes
                            .iter()
                            .zip(point.iter())
                            .zip(&short)
                            .all(|((axis, level), short)| !short || kept(axis, *level))
                    })
                    .cloned()
                    .collect();
                experiment.points = Some(if fewer.is_empty() { points } else { fewer });
            }
            None => {
                for (axis, short) in experiment.axes.iter_mut().zip(&short) {
                    if *short {
                        let quick = axis.quick.clone().unwrap_or_default();
                        axis.levels.retain(|level| quick.contains(&level.label));
                    }
                }
            }
        }
        experiment.axes.iter_mut().for_each(|axis| axis.quick = None);
    }
}

/// Removes the settings that a shortened study fixes from the experiment's replications. Other experiments may use the
/// same replications, so this experiment uses a copy.
fn shorten_replications(
    experiment: &mut Experiment,
    quick_set: &[Setting],
    all: &[(String, Vec<Vec<Setting>>)],
    out: &mut Vec<(String, Vec<Vec<Setting>>)>,
) {
    let suffix = format!("-{}", experiment.name);
    let levels = experiment.axes.iter_mut().flat_map(|axis| &mut axis.levels);
    let names = std::iter::once(&mut experiment.replications).chain(levels.map(|level| &mut level.replications));
    for name in names.flatten() {
        let Some((_, rows)) = all.iter().find(|(known, _)| known == name) else { continue };
        let is_fixed = |setting: &Setting| quick_set.iter().any(|fixed| fixed.path == setting.path);
        if !rows.iter().flatten().any(is_fixed) {
            continue;
        }
        name.push_str(&suffix);
        if !out.iter().any(|(known, _)| known == name) {
            let left = |row: &Vec<Setting>| row.iter().filter(|setting| !is_fixed(setting)).cloned().collect();
            out.push((name.clone(), rows.iter().map(left).collect()));
        }
    }
}
