//! Creates the plan of a study. It contains every point of every selected experiment with its resolved scenario, and
//! every run with its seed and key. Points with equal scenarios share their runs.

use crate::error::StudyError;
use crate::evaluate::{self, EvaluationContext, direction_matches, end_of, flow_matches};
use crate::expression::link_column;
use crate::port::{ResolvedScenario, Runner};
use crate::published::{pairs, point_label};
use crate::study::{Experiment, SeedSource, Setting, Study, number_of};
use fullpipe_archive as archive;
use fullpipe_scenario::schema::{Override, nearest_name};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The points and runs of a study.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Points, in the order of the study.
    pub points: Vec<Point>,
    /// Runs without duplicates, in the order in which points first need them.
    pub runs: Vec<PlannedRun>,
    /// The columns of `results.csv` before the seed: `experiment` if the study has several experiments, then all axes.
    pub columns: Vec<String>,
}

/// A point of an experiment.
#[derive(Clone, Debug)]
pub struct Point {
    /// The name of the experiment.
    pub experiment: String,
    /// For each axis of the experiment, the index of the point's level.
    pub levels: Vec<usize>,
    /// The values of the axes as `axis=value;axis=value`, without the experiment.
    pub own_label: String,
    /// `own_label`, with the experiment if the study has several.
    pub label: String,
    /// The values of the axes, and the experiment if the study has several.
    pub place: archive::Point,
    /// The axes and parameters with a numeric value at this point.
    pub numbers: BTreeMap<String, f64>,
    /// The indices of the point's runs, in order.
    pub runs: Vec<usize>,
}

/// A run of the plan.
#[derive(Clone, Debug)]
pub struct PlannedRun {
    /// The key, which names the folder of the run.
    pub key: String,
    /// The seed.
    pub seed: u64,
    /// Whether the run is in real time.
    pub real: bool,
    /// The scenario of the run.
    pub scenario: Arc<ResolvedScenario>,
    /// The indices of the points that use the run.
    pub points: Vec<usize>,
    /// The label of the first point that uses the run, and the number of the run at this point, for messages.
    pub label: String,
}

/// Returns the key of a run: the first 128 bits of a SHA-256 hash, in hexadecimal. The hash covers the scenario with
/// the content of every file to which it refers, the seed, and the build.
pub fn run_key(content: &[u8], seed: u64, build: &str) -> String {
    let mut hash = Sha256::new();
    for part in [b"fullpipe run".as_slice(), content, &seed.to_le_bytes(), build.as_bytes()] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Creates the plan of a study: resolves the scenario of each point, and checks that the scenario has the flows that
/// the metrics need.
///
/// # Errors
/// If the scenario is invalid at a point, or a metric refers to a flow that does not exist.
pub fn make_plan(study: &Study, laboratory: &dyn Runner) -> Result<Plan, StudyError> {
    let build = laboratory.build_identity();
    let several = study.experiments.len() > 1;
    let mut columns: Vec<String> = several.then(|| archive::Point::EXPERIMENT.to_owned()).into_iter().collect();
    columns.extend(study.axis_names().into_iter().map(str::to_owned));
    let mut plan = Plan { points: Vec::new(), runs: Vec::new(), columns };
    let mut by_key: BTreeMap<String, usize> = BTreeMap::new();
    for experiment in study.experiments.iter().filter(|experiment| study.selected.contains(&experiment.name)) {
        for levels in experiment.combinations() {
            let real = experiment.is_real_time(&levels);
            // A check without runs has no runner for real time and does not need one.
            let by_clock = laboratory.real_time_runner().filter(|_| real);
            let nobody = real && by_clock.is_none();
            let laboratory = by_clock.unwrap_or(laboratory);
            let varies = rows_of(experiment, &levels).next().is_some();
            let scenario_of = |run: u64| -> Result<(Point, Arc<ResolvedScenario>), StudyError> {
                let (point, overrides) = describe(study, experiment, levels.clone(), several, run)?;
                let mut scenario = resolve(study, experiment, &point, &overrides, laboratory)?;
                if nobody {
                    // The key of the run must differ from that of the run in virtual time.
                    scenario.content.extend(b"\nclock: real");
                }
                Ok((point, Arc::new(scenario)))
            };
            let (mut point, scenario) = scenario_of(0)?;
            check_metrics(study, &point, &scenario)?;
            let is_exact = matches!(study.seeds, SeedSource::Fixed(_));
            let (runs_of_one_seed, study_seeds) = match is_exact {
                true => (1 + study.more_seeds.len() as u64, 1),
                false => (experiment.runs, study.study_seeds.max(1)),
            };
            let runs = runs_of_one_seed * study_seeds;
            for run in 0..runs {
                let more = if is_exact { run.checked_sub(1) } else { None };
                let more = more.and_then(|index| study.more_seeds.get(index as usize)).copied();
                let seed =
                    more.unwrap_or_else(|| study.seeds.run_seed_under(run / runs_of_one_seed, run % runs_of_one_seed));
                let scenario = if varies { scenario_of(run)?.1 } else { scenario.clone() };
                let key = run_key(&scenario.content, seed, &build);
                let index = *by_key.entry(key.clone()).or_insert_with(|| {
                    let number = match runs {
                        0 | 1 => String::new(),
                        _ if is_exact => format!("seed {seed}"),
                        _ => format!("run {}", run + 1),
                    };
                    let label: Vec<&str> =
                        [point.label.as_str(), &number].into_iter().filter(|l| !l.is_empty()).collect();
                    let label = if label.is_empty() { study.name.clone() } else { label.join(", ") };
                    plan.runs.push(PlannedRun { key, seed, real, scenario, points: Vec::new(), label });
                    plan.runs.len() - 1
                });
                point.runs.push(index);
                if plan.runs[index].points.last() != Some(&plan.points.len()) {
                    plan.runs[index].points.push(plan.points.len());
                }
            }
            plan.points.push(point);
        }
    }
    Ok(plan)
}

/// The number of runs with random start times of flows at each deterministic point. These runs show whether a claim
/// over such points depends on the phase between flows.
pub const PHASE_RUNS: u64 = 10;

/// Returns the plan of the runs with random starts at some points of a study's plan, in the order of these points. The
/// seeds are those of the first replications. The content determines the keys, as for all runs.
///
/// # Errors
/// If a scenario is invalid with `random_starts`.
pub(crate) fn with_random_starts(
    study: &Study,
    laboratory: &dyn Runner,
    plan: &Plan,
    points: &BTreeSet<usize>,
    random_starts: &Override,
) -> Result<Plan, StudyError> {
    let build = laboratory.build_identity();
    let several = study.experiments.len() > 1;
    let mut starts = Plan { points: Vec::new(), runs: Vec::new(), columns: plan.columns.clone() };
    let mut by_key: BTreeMap<String, usize> = BTreeMap::new();
    for known in points.iter().filter_map(|point| plan.points.get(*point)) {
        let Some(experiment) = study.experiment(&known.experiment) else { continue };
        let (mut point, _) = describe(study, experiment, known.levels.clone(), several, 0)?;
        for run in 0..PHASE_RUNS {
            let (_, mut overrides) = describe(study, experiment, known.levels.clone(), several, run)?;
            overrides.push(random_starts.clone());
            let scenario = Arc::new(resolve(study, experiment, &point, &overrides, laboratory)?);
            let seed = study.seeds.run_seed(run);
            let key = run_key(&scenario.content, seed, &build);
            let index = *by_key.entry(key.clone()).or_insert_with(|| {
                let (place, number) = (if point.label.is_empty() { &study.name } else { &point.label }, run + 1);
                let label = format!("{place}, random starts, run {number}");
                starts.runs.push(PlannedRun { key, seed, real: false, scenario, points: Vec::new(), label });
                starts.runs.len() - 1
            });
            point.runs.push(index);
            if starts.runs[index].points.last() != Some(&starts.points.len()) {
                starts.runs[index].points.push(starts.points.len());
            }
        }
        starts.points.push(point);
    }
    Ok(starts)
}

/// Returns the names of the replications whose rows the runs of a point use. The replications of the experiment are
/// first.
fn rows_of<'a>(experiment: &'a Experiment, levels: &'a [usize]) -> impl Iterator<Item = &'a str> {
    let of_axes = experiment.axes.iter().zip(levels).filter_map(|(axis, level)| axis.levels.get(*level));
    let of_axes = of_axes.filter_map(|level| level.replications.as_deref());
    experiment.replications.as_deref().into_iter().chain(of_axes)
}

/// Returns the row of replications that a run uses, counted from 0 over all study seeds.
fn row<'a>(study: &'a Study, experiment: &Experiment, name: &str, run: u64) -> Result<&'a [Setting], StudyError> {
    let wrong =
        |problem: String| StudyError::Usage(format!("study {}, experiment {}: {problem}", study.name, experiment.name));
    let Some(rows) = study.replications(name) else {
        return Err(wrong(format!("unknown replications {name}")));
    };
    let row = usize::try_from(run).ok().and_then(|run| rows.get(run));
    row.map(Vec::as_slice).ok_or_else(|| {
        let (found, needed) = (rows.len(), experiment.runs * study.study_seeds.max(1));
        wrong(format!(
            "{needed} runs per point, and the replications {name} have {found} rows; expected at least as many rows as \
             runs, of all study seeds together (--runs, --seeds)"
        ))
    })
}

/// Returns a description of a point, and the settings of the scenario for one of its runs. Their order is: parameters;
/// the run's row of the experiment's replications; the settings of the experiment; the settings of the user; the
/// settings of the axes, each after its row of replications. If several settings have the same path, the last one
/// applies. Axes are last, so that their labels are correct.
fn describe(
    study: &Study,
    experiment: &Experiment,
    levels: Vec<usize>,
    several: bool,
    run: u64,
) -> Result<(Point, Vec<Override>), StudyError> {
    let mut overrides: Vec<Override> = Vec::new();
    let mut set = |path: &str, value: String| {
        overrides.retain(|earlier| earlier.path != path);
        overrides.push(Override { path: path.to_owned(), value });
    };
    let mut numbers = BTreeMap::new();
    for (name, parameter) in &study.parameters {
        let Some(value) = &parameter.default else { continue };
        if let Some(number) = number_of(value) {
            numbers.insert(name.clone(), number);
        }
        if parameter.scenarios.is_empty() || parameter.scenarios.contains(&experiment.scenario) {
            parameter.paths.iter().for_each(|path| set(path, value.to_toml()));
        }
    }
    if let Some(name) = &experiment.replications {
        row(study, experiment, name, run)?.iter().for_each(|setting| set(&setting.path, setting.value.to_toml()));
    }
    experiment.set.iter().for_each(|setting| set(&setting.path, setting.value.to_toml()));
    for setting in study.scenario_settings.iter().filter(|setting| setting.scenario == experiment.scenario) {
        set(&setting.path, setting.value.to_toml());
    }
    for (axis, level) in experiment.axes.iter().zip(&levels) {
        let Some(level) = axis.levels.get(*level) else { continue };
        if let Some(name) = &level.replications {
            row(study, experiment, name, run)?.iter().for_each(|setting| set(&setting.path, setting.value.to_toml()));
        }
        level.set.iter().for_each(|setting| set(&setting.path, setting.value.to_toml()));
        if let Some(value) = &level.value {
            axis.paths.iter().for_each(|path| set(path, value.to_toml()));
        }
        match level.number() {
            Some(number) => numbers.insert(axis.name.clone(), number),
            None => numbers.remove(&axis.name),
        };
    }
    let own_label = point_label(experiment, &levels);
    let of_experiment = (archive::Point::EXPERIMENT.to_owned(), experiment.name.clone());
    let mut place = archive::Point(several.then_some(of_experiment).into_iter().collect());
    place.0.extend(pairs(experiment, &levels));
    let (label, experiment) = (place.to_string(), experiment.name.clone());
    let point = Point { experiment, levels, own_label, label, place, numbers, runs: Vec::new() };
    Ok((point, overrides))
}

fn resolve(
    study: &Study,
    experiment: &Experiment,
    point: &Point,
    overrides: &[Override],
    laboratory: &dyn Runner,
) -> Result<ResolvedScenario, StudyError> {
    let source = study.scenarios.iter().find(|(name, _)| *name == experiment.scenario).map(|(_, source)| source);
    let Some(source) = source else {
        return Err(StudyError::Usage(format!("the experiment {} has no scenario", experiment.name)));
    };
    laboratory.resolve(source, overrides).map_err(|message| {
        let place = if point.own_label.is_empty() { String::new() } else { format!(" at {}", point.own_label) };
        // The scenario's checker reports a setting of an experiment as a `--set` option.
        let message = message.replace("--set ", "setting ");
        StudyError::Usage(format!("study {}, experiment {}{place}:\n{message}", study.name, experiment.name))
    })
}

/// A context that answers with as many numbers as there will be flows, and records names that match no flow.
struct Names<'a> {
    scenario: &'a ResolvedScenario,
    point: &'a Point,
    /// The kind of subject that was expected, and the unmatched name.
    unmatched: std::cell::RefCell<Option<(Subject, String)>>,
}

/// The subject of a column.
#[derive(Clone, Copy, Debug)]
enum Subject {
    Flow,
    Link,
    Host,
    Series,
    Event,
}

impl EvaluationContext for Names<'_> {
    fn column(&self, column: &str, pattern: &str) -> Vec<Option<f64>> {
        let of_links = link_column(column).is_some();
        let (subject, names) =
            if of_links { (Subject::Link, &self.scenario.links) } else { (Subject::Flow, &self.scenario.flows) };
        let (pattern, host) = if of_links { (pattern, None) } else { end_of(pattern) };
        let unmatched = |subject, pattern: &str| {
            if !pattern.contains(['*', '?', '#']) {
                *self.unmatched.borrow_mut() = Some((subject, pattern.to_owned()));
            }
        };
        let matches = |name: &&String| match of_links {
            true => flow_matches(pattern, name),
            false => direction_matches(pattern, name, self.scenario.main_flows.contains(*name)),
        };
        let found = names.iter().filter(matches).count();
        if found == 0 && (of_links || !names.is_empty()) {
            unmatched(subject, pattern);
        }
        let hosts = &self.scenario.hosts;
        let is_no_host = |host: &&str| !hosts.is_empty() && !hosts.iter().any(|name| flow_matches(host, name));
        host.filter(is_no_host).into_iter().for_each(|host| unmatched(Subject::Host, host));
        vec![Some(1.0); found]
    }
    fn series(&self, subject: &str, metric: &str, _from_s: f64, _to_s: f64) -> Vec<Option<f64>> {
        if !self.scenario.series.iter().any(|(of, what)| of == subject && what == metric) {
            *self.unmatched.borrow_mut() = Some((Subject::Series, format!("{subject}, {metric}")));
        }
        // The number of samples is unknown before the run.
        Vec::new()
    }
    fn measured_series(&self, subject: &str, metric: &str) -> Vec<Option<f64>> {
        self.series(subject, metric, 0.0, 0.0)
    }
    fn event(&self, event: &str, value: &str) -> Option<f64> {
        if !self.scenario.events.iter().any(|(of, what)| of == event && what == value) {
            *self.unmatched.borrow_mut() = Some((Subject::Event, format!("{event}, {value}")));
        }
        Some(1.0)
    }
    fn completion(&self, flow: &str, _number: u64, _column: &str) -> Option<f64> {
        if !self.scenario.flows.is_empty() && !self.scenario.flows.iter().any(|name| name == flow) {
            *self.unmatched.borrow_mut() = Some((Subject::Flow, flow.to_owned()));
        }
        Some(1.0)
    }
    fn variable(&self, name: &str) -> Option<f64> {
        self.point.numbers.get(name).copied()
    }
}

fn check_metrics(study: &Study, point: &Point, scenario: &ResolvedScenario) -> Result<(), StudyError> {
    for metric in study.metrics.iter().filter(|metric| metric.applies_to(&point.experiment)) {
        let names = Names { scenario, point, unmatched: std::cell::RefCell::new(None) };
        let outcome = evaluate::evaluate_number(&metric.expression, &names);
        let series: Vec<String> =
            scenario.series.iter().map(|(subject, metric)| format!("{subject}, {metric}")).collect();
        let events: Vec<String> = scenario.events.iter().map(|(event, value)| format!("{event}, {value}")).collect();
        let problem = match (names.unmatched.into_inner(), outcome) {
            (Some((subject, name)), _) => {
                let (unknown, names) = match subject {
                    Subject::Flow => (format!("unknown flow {name:?}"), &scenario.flows),
                    Subject::Link => (format!("the scenario does not measure {name:?}"), &scenario.links),
                    Subject::Host => (format!("unknown host {name:?}"), &scenario.hosts),
                    Subject::Event => (format!("no [[event]] of the scenario records {name:?}"), &events),
                    Subject::Series => (format!("no [[probe]] of the scenario samples {name:?}"), &series),
                };
                let near = nearest_name(&name, names.iter().map(String::as_str));
                let near = near.map_or_else(String::new, |near| format!("; did you mean {near:?}?"));
                let known: Vec<&str> = names.iter().take(20).map(String::as_str).collect();
                if matches!(subject, Subject::Link) && known.is_empty() {
                    format!("the scenario measures no link; expected [measurement] with {name:?} in `links`")
                } else {
                    format!("{unknown}{near} (expected one of {})", known.join(", "))
                }
            }
            (None, Err(error)) => error.to_string(),
            (None, Ok(_)) => continue,
        };
        return Err(StudyError::Usage(format!(
            "study {}, metric {}, experiment {}: {problem}",
            study.name, metric.name, point.experiment
        )));
    }
    Ok(())
}
