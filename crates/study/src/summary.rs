//! Computes `results.csv` and `summary.csv`: the values of the runs and the published values, with verdicts by the
//! rules of the crate `verdict`.
//!
//! * A point is deterministic if its runs drew no random numbers. It then has one value and no interval.
//! * A value that differs is `explained` if a variant that changes one assumption matches the published values of the
//!   value's experiment. The claim in `explained_by` contains the variant.
//! * There is no verdict without a published value, or if necessary runs were not made.
//!
//! A run that fell behind real time or failed the audit does not represent the network. It is excluded from every
//! statistic, and the note of the row states the number of such runs. The remaining runs represent a point if they are
//! at least half of its runs and contain a value. Otherwise the point supports no verdict, and its row has the values
//! of all runs and a note.

use crate::check::{passes, point_passes};
use crate::evaluate::{self, ClaimParts, EvaluationContext};
use crate::expression::{COMPARISONS, Comparison, ExpressionError, Filter, Literal, Lookup};
use crate::plan::{PHASE_RUNS, Plan};
use crate::statistics::{self, RESAMPLE_COUNT, Resamples, SampleStatistics, summarize};
use crate::study::{Claim, Level, PublishedResult, Study};
use crate::sweep::RunResult;
use crate::tables::half_tolerance;
use crate::verdict::{
    ClaimJudgment, Judgment, MIN_REPLICATIONS, PointMeasurement, PublishedValue, Replications, ResampleCount,
    is_skewed, judge_claim, judge_deterministic, judge_phase, judge_published, judge_refuted,
    missing_replications_reason,
};
use crate::words::list_of;
use fullpipe_archive::{
    Cell, Column, LeftOut, ResultRow, Results, RobustnessRow, SUMMARY, SummaryRow, Verdict, Warning, WarningKind,
};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

/// Converts a row of `summary.csv` to a JSON object. Empty cells are null, and a shortened study has `"quick": true`.
pub fn row_to_json(row: &SummaryRow, quick: bool) -> Value {
    let cell = |column: &Column<SummaryRow>| match (column.cell)(row) {
        // The point of a claim is empty but not missing; any other empty text is missing.
        Cell::Text(text) if text.is_empty() && column.name != SummaryRow::point().name => Value::Null,
        cell => cell.into(),
    };
    let cells = SUMMARY.columns.iter().map(|column| (column.name.to_owned(), cell(column)));
    let quick = quick.then(|| ("quick".to_owned(), Value::Bool(true)));
    Value::Object(cells.chain(quick).collect())
}

/// The verdicts on one published value or claim in a study that was repeated under several study seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct SeedVerdicts {
    /// The point and the metric, or the claim.
    pub name: String,
    /// The verdict of all runs together.
    pub pooled: Verdict,
    /// The verdict under each study seed; `None` if there is no verdict under that seed.
    pub of_seeds: Vec<Option<Verdict>>,
    /// The CPU time in seconds of the runs from which the verdicts are computed; `None` if the time of one of them is
    /// unknown.
    pub cpu_s: Option<f64>,
}

impl SeedVerdicts {
    /// Returns whether the verdict under a seed contradicts the pooled verdict: `match` against `differs` or `refuted`.
    pub fn is_contradicted(&self) -> bool {
        self.contradicting() > 0
    }

    fn contradicting(&self) -> usize {
        let contradicts = |verdict: &&Option<Verdict>| {
            matches!(
                (self.pooled, verdict),
                (Verdict::Match, Some(Verdict::Differs | Verdict::Refuted))
                    | (Verdict::Differs | Verdict::Refuted, Some(Verdict::Match))
            )
        };
        self.of_seeds.iter().filter(contradicts).count()
    }

    fn words(&self, separator: &str) -> String {
        let words: Vec<&str> = self.of_seeds.iter().map(|verdict| verdict.map_or("none", Verdict::name)).collect();
        words.join(separator)
    }

    /// Returns the row of `robustness.csv`.
    pub fn to_row(&self) -> RobustnessRow {
        RobustnessRow {
            name: self.name.clone(),
            verdicts: self.words(";"),
            pooled: Some(self.pooled),
            seeds: self.of_seeds.len() as u64,
            agreeing: self.of_seeds.iter().filter(|verdict| **verdict == Some(self.pooled)).count() as u64,
            contradicting: self.contradicting() as u64,
            cpu_s: self.cpu_s,
        }
    }

    /// Formats the rows of `robustness.csv` as a Markdown table.
    pub fn markdown_table(study: &str, all: &[SeedVerdicts]) -> String {
        let mut text = "| study | claim or value | verdict per seed | pooled verdict | agreement | CPU time |\n|---|---|---|---|---|---:|\n"
            .to_owned();
        for row in all.iter().map(SeedVerdicts::to_row) {
            let RobustnessRow { name, verdicts, seeds, agreeing, contradicting, .. } = &row;
            let (verdicts, pooled) = (verdicts.replace(';', ", "), row.pooled.map_or("", Verdict::name));
            let contradicted = if *contradicting > 0 { ", contradicted" } else { "" };
            let name = name.strip_prefix("claim:").unwrap_or(name);
            let cpu = row.cpu_s.map_or("unknown".to_owned(), |cpu_s| format!("{cpu_s:.1} s"));
            let _ = writeln!(
                text,
                "| {study} | {name} | {verdicts} | {pooled} | {agreeing} of {seeds}{contradicted} | {cpu} |"
            );
        }
        text
    }
}

/// The values of all metrics at all points, by point, run and metric.
pub(crate) struct MeasuredValues<'a> {
    study: &'a Study,
    plan: &'a Plan,
    points: Vec<Vec<OfRun<'a>>>,
    /// By point: whether all runs drew no random numbers.
    deterministic: Vec<bool>,
    /// By run: the CPU time in seconds, if known.
    cpu_s: Vec<Option<f64>>,
    /// By point: whether only some of the runs that count have a time-out or a stall.
    mixed: Vec<bool>,
    /// By point and run: the values in both halves of the measured interval.
    halves: Vec<Vec<Option<Halves<'a>>>>,
    /// By point: whether several runs drew random numbers but have equal records.
    equal: Vec<bool>,
    /// Cached resamples by name, number of replications and sample size.
    resamples: RefCell<BTreeMap<(String, usize, usize), Rc<Resamples>>>,
    /// The runs with random starts, by the index of a deterministic point to which claims refer.
    random_starts: BTreeMap<usize, Vec<OfRun<'a>>>,
}

/// By metric: the values of one run at one point in the halves of the measured interval.
type Halves<'a> = &'a [Option<[f64; 2]>];

/// The result of a run at a point.
#[derive(Clone, Copy)]
enum OfRun<'a> {
    /// The run failed.
    Nothing,
    /// The values of all metrics.
    Sound(&'a [Option<f64>]),
    /// The values of a run that fell behind real time.
    Late(&'a [Option<f64>]),
    /// The values of a run that fell behind real time, in an experiment that counts such runs.
    LateAndCounted(&'a [Option<f64>]),
    /// The values of a run that failed its checks.
    Distrusted(&'a [Option<f64>]),
}

impl<'a> OfRun<'a> {
    fn new(study: &Study, plan: &Plan, results: &'a [RunResult], run: usize, point: usize) -> Self {
        let Some(RunResult::Values { values, distrust, late, .. }) = results.get(run) else { return OfRun::Nothing };
        let counts_late = plan.points.get(point).is_some_and(|point| study.counts_late_runs(&point.experiment));
        let place = plan.runs.get(run).and_then(|run| run.points.iter().position(|known| *known == point));
        match place.and_then(|place| values.get(place)) {
            None => OfRun::Nothing,
            Some(values) if *late && !counts_late => OfRun::Late(values),
            Some(values) if !distrust.is_empty() => OfRun::Distrusted(values),
            Some(values) if *late => OfRun::LateAndCounted(values),
            Some(values) => OfRun::Sound(values),
        }
    }

    /// Returns all values, whether or not they are trusted.
    fn values(self) -> Option<&'a [Option<f64>]> {
        match self {
            OfRun::Nothing => None,
            OfRun::Sound(values) | OfRun::Late(values) | OfRun::LateAndCounted(values) | OfRun::Distrusted(values) => {
                Some(values)
            }
        }
    }

    /// Returns the values, if they are trusted.
    fn sound(self) -> Option<&'a [Option<f64>]> {
        match self {
            OfRun::Sound(values) | OfRun::LateAndCounted(values) => Some(values),
            OfRun::Nothing | OfRun::Late(_) | OfRun::Distrusted(_) => None,
        }
    }
}

impl<'a> MeasuredValues<'a> {
    /// Collects the values of a study's runs. `digest` returns the SHA-256 of the tables of a run, by its key.
    pub(crate) fn new(
        study: &'a Study,
        plan: &'a Plan,
        results: &'a [RunResult],
        digest: impl Fn(&str) -> Option<[u8; 32]>,
    ) -> Self {
        let points =
            plan.points.iter().enumerate().map(|(index, point)| {
                point.runs.iter().map(|run| OfRun::new(study, plan, results, *run, index)).collect()
            });
        let is_deterministic =
            |run: &usize| !matches!(results.get(*run), Some(RunResult::Values { deterministic: false, .. }));
        // Runs of different scenarios are a sample, even if none draws random numbers.
        let same_scenario = |pair: &[usize]| match (plan.runs.get(pair[0]), plan.runs.get(pair[1])) {
            (Some(one), Some(other)) => one.scenario.content == other.scenario.content,
            _ => true,
        };
        let deterministic = plan
            .points
            .iter()
            .map(|point| point.runs.iter().all(is_deterministic) && point.runs.windows(2).all(same_scenario));
        let equal = plan.points.iter().enumerate().map(|(index, point)| {
            let runs: BTreeSet<usize> = point.runs.iter().copied().collect();
            let runs = runs.into_iter().filter_map(|run| match results.get(run) {
                Some(RunResult::Values { deterministic: false, values, experience, .. }) => {
                    let run = plan.runs.get(run)?;
                    let place = run.points.iter().position(|known| *known == index)?;
                    Some((&run.key, (values.get(place), experience)))
                }
                _ => None,
            });
            let runs: Vec<_> = runs.collect();
            let Some(((first, values), others)) = runs.split_first() else { return false };
            // Equal tables require equal values, which are already known, so that only few runs must be read again.
            let has_equal_values = others.iter().all(|(_, of_other)| of_other == values);
            let has_equal_tables =
                || digest(first).is_some_and(|of_first| others.iter().all(|(key, _)| digest(key) == Some(of_first)));
            !others.is_empty() && has_equal_values && has_equal_tables()
        });
        let points: Vec<Vec<OfRun<'a>>> = points.collect();
        let at = |point: usize| {
            plan.points[point].runs.iter().zip(&points[point]).filter(|(_, of_run)| of_run.sound().is_some())
        };
        let is_mixed = |point: usize| {
            let interrupted =
                |run: usize| matches!(results.get(run), Some(RunResult::Values { interrupted: true, .. }));
            let with = at(point).filter(|(run, _)| interrupted(**run)).count();
            0 < with && with < at(point).count()
        };
        let halves_of = |run: usize, point: usize| match results.get(run) {
            Some(RunResult::Values { halves, .. }) => {
                halves.get(plan.runs[run].points.iter().position(|known| *known == point)?).map(Vec::as_slice)
            }
            _ => None,
        };
        let halves_at = |point: usize| {
            let runs = plan.points[point].runs.iter().zip(&points[point]);
            runs.map(|(run, of_run)| of_run.sound().and_then(|_| halves_of(*run, point))).collect()
        };
        MeasuredValues {
            study,
            plan,
            cpu_s: results.iter().map(cpu_of).collect(),
            mixed: (0..points.len()).map(is_mixed).collect(),
            halves: (0..points.len()).map(halves_at).collect(),
            points,
            deterministic: deterministic.collect(),
            equal: equal.collect(),
            resamples: RefCell::default(),
            random_starts: BTreeMap::new(),
        }
    }

    /// Adds the runs with random starts at these points.
    pub(crate) fn with_random_starts(
        mut self,
        points: &BTreeSet<usize>,
        plan: &'a Plan,
        results: &'a [RunResult],
    ) -> Self {
        for (number, (point, planned)) in points.iter().zip(&plan.points).enumerate() {
            let runs = planned.runs.iter().map(|run| OfRun::new(self.study, plan, results, *run, number));
            self.random_starts.insert(*point, runs.collect());
        }
        self
    }

    /// Returns the points of claims that refer only to deterministic points.
    pub(crate) fn points_of_deterministic_claims(&self) -> BTreeSet<usize> {
        let claims = self.study.claims.iter().filter(|claim| Behind::new(self, claim).replications.n.is_none());
        let lookups = claims.flat_map(|claim| claim.expression.lookups()).filter(|lookup| !is_published(lookup));
        let points = lookups.flat_map(|lookup| self.points(lookup));
        points.filter(|point| self.deterministic[*point] && !self.is_real(*point)).collect()
    }

    /// Returns the only value of a metric at a deterministic point.
    fn deterministic(&self, point: usize, metric: usize) -> Option<f64> {
        let values: Vec<f64> = self.of(point, metric).into_iter().flatten().collect();
        let first = *values.first()?;
        (self.deterministic[point] && values.iter().all(|value| *value == first)).then_some(first)
    }

    fn resamples(&self, name: String, n: usize, size: usize) -> Rc<Resamples> {
        let mut known = self.resamples.borrow_mut();
        let key = (name, n, size);
        known.entry(key).or_insert_with_key(|(name, n, size)| Rc::new(Resamples::with_size(name, *n, *size))).clone()
    }

    /// Compares a metric at a point with a published value; `None` if the metric has no value.
    fn judgment(&self, point: usize, metric: usize, published: &PublishedResult) -> Option<Judgment> {
        let PublishedResult { value, runs, .. } = *published;
        let (tolerance, prediction) =
            (published.tolerance.absolute(value), self.study.metrics.get(metric)?.prediction());
        let published = PublishedValue { value, tolerance, runs, prediction };
        let values: Vec<f64> = self.of(point, metric).into_iter().flatten().collect();
        let measured = match self.deterministic(point, metric) {
            Some(value) => PointMeasurement::Deterministic(value),
            None if values.is_empty() => return None,
            None if self.mixed[point] => PointMeasurement::Mixed(&values),
            None => PointMeasurement::Stochastic(&values),
        };
        Some(judge_published(measured, &published, self.study.raised))
    }

    /// Returns the trusted values of a metric at a point, in the order of runs.
    pub(crate) fn of(&self, point: usize, metric: usize) -> Vec<Option<f64>> {
        let value = |run: &OfRun<'_>| run.sound()?.get(metric).copied().flatten();
        self.points[point].iter().map(value).collect()
    }

    /// Returns the points of the plan.
    pub(crate) fn points_of_plan(&self) -> &'a [crate::plan::Point] {
        &self.plan.points
    }

    fn summary(&self, point: usize, metric: usize) -> Option<SampleStatistics> {
        summary_of(self.of(point, metric))
    }

    /// Returns the statistics of a metric at a point over all values, trusted or not.
    fn summary_of_all(&self, point: usize, metric: usize) -> Option<SampleStatistics> {
        let value = |run: &OfRun<'_>| run.values()?.get(metric).copied().flatten();
        summary_of(self.points[point].iter().map(value).collect())
    }

    /// Returns whether the runs of a point are in real time.
    fn is_real(&self, point: usize) -> bool {
        let mut runs = self.plan.points[point].runs.iter().filter_map(|run| self.plan.runs.get(*run));
        runs.any(|run| run.real)
    }

    /// Returns whether fewer than half of the runs of a point are trusted.
    fn is_thin(&self, point: usize) -> bool {
        let runs = &self.points[point];
        let sound = runs.iter().filter(|run| run.sound().is_some()).count();
        let left_out = runs.iter().filter(|run| run.values().is_some()).count() - sound;
        left_out > 0 && 2 * sound < runs.len()
    }

    /// Returns notes about the runs at a point that failed or are not trusted.
    fn doubts(&self, point: usize) -> Vec<String> {
        let runs = &self.points[point];
        let told = |n: usize, what: &str| (n > 0).then(|| format!("{n} of {} runs {what}", runs.len()));
        let left_out =
            if self.is_thin(point) { "too many for a verdict: the values are those of all runs" } else { "left out" };
        let count = |wanted: fn(&OfRun<'_>) -> bool| runs.iter().filter(|run| wanted(run)).count();
        let failed = count(|run| matches!(run, OfRun::Nothing));
        let late = count(|run| matches!(run, OfRun::Late(_)));
        let counted = count(|run| matches!(run, OfRun::LateAndCounted(_)));
        let distrusted = count(|run| matches!(run, OfRun::Distrusted(_)));
        let notes = [
            told(failed, "failed"),
            told(late, &format!("fell behind real time, {left_out}")),
            told(counted, "fell behind real time, and are included"),
            told(distrusted, &format!("did not pass their checks, {left_out}")),
        ];
        let equal =
            self.equal[point].then(|| format!("{} runs drew random numbers, but their records are equal", runs.len()));
        notes.into_iter().chain([equal]).flatten().collect()
    }

    /// Returns warnings for the points at which several runs drew random numbers but have equal records, with the
    /// number of runs.
    pub(crate) fn equal_records(&self) -> Vec<Warning> {
        let points = self.plan.points.iter().zip(&self.equal).filter(|(_, equal)| **equal);
        points
            .map(|(point, _)| {
                let runs = point.runs.len();
                let text =
                    format!("{runs} runs drew random numbers, but their records are equal: they are not independent");
                Warning::new(WarningKind::EqualRecords, point.label.clone(), text)
            })
            .collect()
    }

    /// Returns a note if a long-term value is not stationary: over all runs, the means of the halves of the measured
    /// interval differ too much.
    fn not_stationary(&self, point: usize, metric: usize) -> Option<String> {
        let tolerance = half_tolerance(self.study.metrics.get(metric)?)?;
        let of_run = |run: &Option<&[Option<[f64; 2]>]>| run.as_ref()?.get(metric).copied().flatten();
        let halves: Vec<[f64; 2]> = self.halves[point].iter().filter_map(of_run).collect();
        let mean = |half: usize| statistics::mean(&halves.iter().map(|halves| halves[half]).collect::<Vec<_>>());
        let (first, second) = (mean(0)?, mean(1)?);
        let differ = (first - second).abs() > tolerance * (first + second).abs() / 2.0;
        let short = |number: f64| format!("{number:.3e}").parse::<f64>().unwrap_or(number);
        differ.then(|| {
            format!(
                "not stationary: {} in the first half of the measured interval, {} in the second",
                short(first),
                short(second)
            )
        })
    }

    /// Returns the note about the first non-stationary value on which a claim depends.
    fn not_stationary_behind(&self, claim: &Claim) -> Option<String> {
        let lookups = claim.expression.lookups().into_iter().filter(|lookup| !is_published(lookup));
        let mut values = lookups.flat_map(|lookup| {
            let metric = self.study.metrics.iter().position(|metric| metric.name == lookup.metric);
            let points = self.points(lookup).into_iter();
            points.filter_map(move |point| Some((point, metric?)))
        });
        values.find_map(|(point, metric)| {
            let note = self.not_stationary(point, metric)?;
            let label = &self.plan.points[point].label;
            let place = if label.is_empty() { String::new() } else { format!(" at {label}") };
            Some(format!("{}{place} is {note}", self.study.metrics[metric].name))
        })
    }

    /// Returns the runs of a point whose values count: the trusted runs, or all runs if fewer than half are trusted.
    pub(crate) fn counting(&self, point: usize) -> Vec<usize> {
        let thin = self.is_thin(point);
        let counts = |run: &OfRun<'_>| if thin { run.values().is_some() } else { run.sound().is_some() };
        let runs = self.plan.points[point].runs.iter().zip(&self.points[point]);
        runs.filter(|(_, of_run)| counts(of_run)).map(|(run, _)| *run).collect()
    }

    fn published(&self, point: usize, metric: &str) -> Option<&'a PublishedResult> {
        let point = self.plan.points.get(point)?;
        let mut published = self.study.published.iter();
        published.find(|row| row.experiment == point.experiment && row.point == point.own_label && row.metric == metric)
    }

    /// Returns the table `results.csv`.
    pub(crate) fn results(&self) -> Results {
        let rows = self.plan.points.iter().zip(&self.points).flat_map(|(point, runs)| {
            point.runs.iter().zip(runs).filter_map(|(run, of_run)| {
                let run = self.plan.runs.get(*run)?;
                let (point, key, values) = (point.place.clone(), run.key.clone(), of_run.values()?.to_vec());
                Some(ResultRow { point, seed: run.seed, key, values })
            })
        });
        Results {
            axes: self.plan.columns.clone(),
            metrics: self.study.metrics.iter().map(|metric| metric.name.clone()).collect(),
            rows: rows.collect(),
        }
    }

    /// Returns all rows of `summary.csv`: metrics point by point, then claims. If the study was repeated under several
    /// study seeds, the verdict is that of all runs together, and the note contains the verdicts under each seed.
    pub(crate) fn rows(&self) -> (Vec<SummaryRow>, Vec<SeedVerdicts>) {
        let mut rows = self.rows_of_all_runs();
        let seeds = self.study.study_seeds as usize;
        if seeds < 2 {
            return (rows, Vec::new());
        }
        let of_seeds: Vec<Vec<SummaryRow>> =
            (0..seeds).map(|seed| self.of_seed(seed, seeds).rows_of_all_runs()).collect();
        let mut all = Vec::new();
        for (index, row) in rows.iter_mut().enumerate() {
            let Some(pooled) = row.verdict else { continue };
            let of_seeds = of_seeds.iter().map(|rows| rows.get(index).and_then(|row| row.verdict)).collect();
            let verdicts = SeedVerdicts { name: row.name(), pooled, of_seeds, cpu_s: self.cpu_behind(row) };
            let contradicted = if verdicts.is_contradicted() { ", which contradict" } else { "" };
            let note = format!("by study seed: {}{contradicted}", verdicts.words(", "));
            row.note = if row.note.is_empty() { note } else { format!("{}; {note}", row.note) };
            all.push(verdicts);
        }
        (rows, all)
    }

    /// Returns the CPU time in seconds of the runs on which a row depends, each counted once. It excludes runs with
    /// random starts. Returns `None` if any of these times is unknown.
    fn cpu_behind(&self, row: &SummaryRow) -> Option<f64> {
        let points: Vec<usize> = match row.claim().map(|name| self.study.claim(name)) {
            Some(claim) => claim?.expression.lookups().into_iter().flat_map(|lookup| self.points(lookup)).collect(),
            None => self.plan.points.iter().position(|point| point.place == row.point).into_iter().collect(),
        };
        let runs: BTreeSet<usize> = points.into_iter().flat_map(|point| self.plan.points[point].runs.clone()).collect();
        runs.into_iter().map(|run| self.cpu_s.get(run).copied().flatten()).sum()
    }

    /// Returns the same values, but only for the runs of one study seed.
    fn of_seed(&self, seed: usize, seeds: usize) -> Self {
        fn of_one<T: Copy>(runs: &[T], seed: usize, seeds: usize) -> Vec<T> {
            let count = runs.len() / seeds;
            runs.iter().skip(seed * count).take(count).copied().collect()
        }
        MeasuredValues {
            study: self.study,
            plan: self.plan,
            points: self.points.iter().map(|runs| of_one(runs, seed, seeds)).collect(),
            cpu_s: Vec::new(),
            mixed: self.mixed.clone(),
            halves: self.halves.iter().map(|runs| of_one(runs, seed, seeds)).collect(),
            deterministic: self.deterministic.clone(),
            equal: self.equal.clone(),
            resamples: RefCell::default(),
            random_starts: self.random_starts.clone(),
        }
    }

    fn rows_of_all_runs(&self) -> Vec<SummaryRow> {
        let mut rows = Vec::new();
        for (index, point) in self.plan.points.iter().enumerate() {
            for (number, metric) in self.study.metrics.iter().enumerate() {
                if !metric.applies_to(&point.experiment) {
                    continue;
                }
                let thin = self.is_thin(index);
                let summary = if thin { self.summary_of_all(index, number) } else { self.summary(index, number) };
                let deterministic = !thin && self.deterministic(index, number).is_some();
                let ci95 = summary.and_then(|summary| summary.ci95).filter(|ci95| *ci95 > 0.0 && !deterministic);
                let end = |sign: f64| Some(summary?.mean + sign * ci95?);
                let values: Vec<f64> = self.of(index, number).into_iter().flatten().collect();
                let is_random = !thin && !self.deterministic[index];
                let median_interval = statistics::quantile_interval(&values, 0.5).filter(|_| is_random);
                let n = summary.map_or(0, |summary| if deterministic { 1 } else { summary.n as u64 });
                let mut row = SummaryRow {
                    point: point.place.clone(),
                    metric: metric.name.clone(),
                    unit: metric.unit.clone(),
                    n: Some(n),
                    mean: summary.map(|summary| summary.mean),
                    ci95,
                    low: end(-1.0),
                    high: end(1.0),
                    min: summary.map(|summary| summary.min),
                    median: summary.map(|summary| summary.median),
                    median_low: median_interval.map(|ends| ends.0),
                    median_high: median_interval.map(|ends| ends.1),
                    max: summary.map(|summary| summary.max),
                    ..SummaryRow::default()
                };
                let mut notes = self.doubts(index);
                let heard = |run: &&OfRun<'_>| if thin { run.values().is_some() } else { run.sound().is_some() };
                let heard = self.points[index].iter().filter(heard).count();
                let missing = heard.saturating_sub(summary.map_or(0, |summary| summary.n));
                if missing > 0 && summary.is_some() {
                    notes.push(format!("{missing} of {} runs have no value", point.runs.len()));
                }
                if is_random && values.len() >= MIN_REPLICATIONS && values.iter().all(|value| *value == 0.0) {
                    let (n, most) = (values.len(), 100.0 * statistics::upper_bound_of_share(values.len()));
                    notes.push(format!("0 in all {n} runs: another value in at most {most:.1} % of runs (95 %)"));
                }
                notes.extend(self.not_stationary(index, number));
                if let Some(published) = self.published(index, &metric.name) {
                    self.judge((index, number), published, thin, &mut row, &mut notes);
                }
                row.note = self.note(notes);
                rows.push(row);
            }
        }
        rows.extend(self.study.claims.iter().map(|claim| self.claim_row(claim)));
        rows
    }

    /// Joins the notes of a row. In a shortened study, every row has a note that states this.
    fn note(&self, mut notes: Vec<String>) -> String {
        if self.study.quick {
            notes.insert(0, "quick".to_owned());
        }
        notes.join("; ")
    }

    fn judge(
        &self,
        (point, metric): (usize, usize),
        published: &PublishedResult,
        thin: bool,
        row: &mut SummaryRow,
        notes: &mut Vec<String>,
    ) {
        row.published = Some(published.value);
        row.published_runs = published.runs;
        row.tolerance = published.tolerance.to_string();
        row.source.clone_from(&published.source);
        if !published.note.is_empty() {
            notes.push(published.note.clone());
        }
        if thin {
            row.verdict = Some(Verdict::Untrusted);
            return;
        }
        let Some(judgment) = self.judgment(point, metric, published) else { return };
        notes.extend(judgment.note);
        notes.extend(self.raised());
        let mut verdict = judgment.verdict;
        if verdict == Verdict::Differs
            && let Some(claim) = self.study.claim(&published.explained_by)
        {
            if self.explains(claim, |row| row.explained_by == claim.name) {
                verdict = Verdict::Explained;
                notes.push(self.explanation(claim));
            } else {
                notes.push(
                    self.movement(claim, published, row.mean).unwrap_or_else(|| format!("see claim:{}", claim.name)),
                );
            }
        }
        row.verdict = Some(verdict);
    }

    /// Returns the note of a study whose number of runs was increased.
    fn raised(&self) -> Option<String> {
        let raised = self.study.raised;
        (raised > 0).then(|| format!("runs raised {}, stricter threshold", if raised == 1 { "once" } else { "twice" }))
    }

    /// Returns the point and the metric at which a claim's variant corresponds to a published value. The values of the
    /// axes are equal, except those that the variant sets.
    fn variant(&self, claim: &Claim, published: &PublishedResult) -> Option<(usize, usize)> {
        let (experiment, set) = claim.variant.split_once(';').unwrap_or((&claim.variant, ""));
        let pairs = |text: &str| -> Vec<(String, String)> {
            let pairs = text.split(';').filter_map(|pair| pair.split_once('='));
            pairs.map(|(axis, value)| (axis.trim().to_owned(), value.trim().to_owned())).collect()
        };
        let (set, known) = (pairs(set), pairs(&published.point));
        let axes = &self.study.experiment(experiment.trim())?.axes;
        let value = |axis: &str| {
            let of = |pairs: &[(String, String)]| {
                pairs.iter().find(|(name, _)| name == axis).map(|(_, value)| value.clone())
            };
            Some(format!("{axis}={}", of(&set).or_else(|| of(&known))?))
        };
        let label = axes.iter().map(|axis| value(&axis.name)).collect::<Option<Vec<_>>>()?.join(";");
        let mut points = self.plan.points.iter();
        let point = points.position(|point| point.experiment == experiment.trim() && point.own_label == label)?;
        let metric = self.study.metrics.iter().position(|metric| metric.name == published.metric)?;
        Some((point, metric))
    }

    /// Returns whether a claim explains published values. This is so if the claim matches, was not chosen in view of
    /// results, and its variant matches all of the values. There must be at least one value.
    fn explains(&self, claim: &Claim, concerns: impl Fn(&PublishedResult) -> bool) -> bool {
        let matches = |published: &PublishedResult| {
            let variant = self.variant(claim, published).filter(|(point, _)| !self.is_thin(*point));
            let judgment = variant.and_then(|(point, metric)| self.judgment(point, metric, published));
            judgment.is_some_and(|judgment| judgment.verdict == Verdict::Match)
        };
        let mut rows = self.study.published.iter().filter(|row| concerns(row)).peekable();
        !claim.exploratory
            && rows.peek().is_some()
            && rows.all(matches)
            && self.doubts_of(claim).thin.is_none()
            && self.tested(claim).is_ok_and(|tested| tested.is_some_and(|tested| tested.verdict == Verdict::Match))
    }

    fn explanation(&self, claim: &Claim) -> String {
        format!("explained by claim:{} ({}), shown by {}", claim.name, claim.text, self.shown_by(claim))
    }

    /// Returns the note about a variant that changes a value but does not explain the difference.
    fn movement(&self, claim: &Claim, published: &PublishedResult, from: Option<f64>) -> Option<String> {
        let ((point, metric), from) = (self.variant(claim, published)?, from?);
        let (to, value) = (self.summary(point, metric)?.mean, published.value);
        ((to - value).abs() < (from - value).abs()).then(|| {
            let short = |number: f64| format!("{:.4e}", number).parse::<f64>().unwrap_or(number);
            format!(
                "moves toward the published value: {} → {} (published {value}), see claim:{}",
                short(from),
                short(to),
                claim.name
            )
        })
    }

    /// Returns the points to which a claim refers, each with the key of its first run.
    fn shown_by(&self, claim: &Claim) -> String {
        let mut shown: Vec<String> = Vec::new();
        for lookup in claim.expression.lookups() {
            let Some(point) = self.points(lookup).first().and_then(|index| self.plan.points.get(*index)) else {
                continue;
            };
            let key = point.runs.first().and_then(|run| self.plan.runs.get(*run)).map_or("", |run| &run.key);
            let words = if lookup.filters.is_empty() {
                lookup.experiment.clone()
            } else {
                let filters: Vec<String> = lookup.filters.iter().map(filter_words).collect();
                format!("{} at {}", lookup.experiment, filters.join(", "))
            };
            let words = format!("{words} (run {key})");
            if !shown.contains(&words) {
                shown.push(words);
            }
        }
        shown.join(" and ")
    }

    /// Returns the indices of the points to which a lookup refers.
    fn points(&self, lookup: &Lookup) -> Vec<usize> {
        let Some(experiment) = self.study.experiment(&lookup.experiment) else { return Vec::new() };
        let points = self.plan.points.iter().enumerate();
        points
            .filter(|(_, point)| point.experiment == experiment.name && point_passes(lookup, experiment, &point.levels))
            .map(|(index, _)| index)
            .collect()
    }

    /// Returns the doubts about the runs at the points to which a claim refers.
    fn doubts_of(&self, claim: &Claim) -> Doubts<'a> {
        let lookups = claim.expression.lookups();
        let points: BTreeSet<usize> = lookups.iter().flat_map(|lookup| self.points(lookup)).collect();
        let runs = || points.iter().flat_map(|point| &self.points[*point]);
        let thin = points.iter().find(|point| self.is_thin(**point));
        Doubts {
            runs: runs().count(),
            left_out: runs().filter(|run| run.values().is_some() && run.sound().is_none()).count(),
            thin: thin.and_then(|point| self.plan.points.get(*point)).map(|point| point.label.as_str()),
        }
    }

    /// Returns the note about points of a claim that the user excluded.
    fn left_out_of(&self, claim: &Claim) -> Option<String> {
        let lookups = claim.expression.lookups();
        let speaks_of = |left_out: &LeftOut, value: &str| {
            let level = Level { label: value.to_owned(), value: None, set: Vec::new(), replications: None };
            let of_axis = |filter: &&Filter| filter.axis == left_out.axis;
            lookups.iter().any(|lookup| {
                lookup.experiment == left_out.experiment
                    && lookup.filters.iter().filter(of_axis).all(|filter| passes(filter, &level))
            })
        };
        let values = self.study.left_out.iter().flat_map(|left_out| {
            let values = left_out.values.iter().filter(|value| speaks_of(left_out, value));
            values.map(|value| format!("{}={value}", left_out.axis))
        });
        let mut without: Vec<String> = Vec::new();
        for value in values {
            if !without.contains(&value) {
                without.push(value);
            }
        }
        (!without.is_empty()).then(|| {
            let list = list_of(without.iter().map(String::as_str));
            format!("not all of the study's points were run (excluded: {list})")
        })
    }

    fn claim_row(&self, claim: &Claim) -> SummaryRow {
        let mut notes = vec![claim.text.clone()];
        notes.extend(self.left_out_of(claim));
        let doubts = self.doubts_of(claim);
        let mut row = SummaryRow {
            metric: SummaryRow::metric_of_claim(&claim.name),
            source: claim.source.clone(),
            ..SummaryRow::default()
        };
        match (doubts.thin, self.tested(claim)) {
            (Some(point), _) => {
                notes.push(doubts.of_thin(point));
                row.verdict = Some(Verdict::Untrusted);
            }
            (None, Ok(Some(tested))) => {
                notes.extend(doubts.of_left_out());
                notes.extend(tested.note);
                notes.extend(self.not_stationary_behind(claim));
                notes.extend(self.raised());
                row.n = tested.n;
                row.mean = Some(f64::from(u8::from(tested.holds)));
                row.support = tested.support;
                row.published_runs = claim.published_runs;
                row.verdict = Some(tested.verdict);
                if tested.verdict == Verdict::Refuted
                    && let Some(explaining) = self.study.claim(&claim.explained_by)
                {
                    let lookups = claim.expression.lookups();
                    let concerns = |published: &PublishedResult| {
                        lookups.iter().any(|lookup| {
                            lookup.experiment == published.experiment && lookup.metric == published.metric
                        })
                    };
                    if self.explains(explaining, concerns) {
                        row.verdict = Some(Verdict::Explained);
                        notes.push(self.explanation(explaining));
                    } else {
                        notes.push(format!("see claim:{}", explaining.name));
                    }
                }
            }
            (None, Ok(None)) => {
                let reads_event = |lookup: &&Lookup| {
                    let mut metrics = self.study.metrics.iter();
                    metrics.any(|metric| metric.name == lookup.metric && metric.expression.reads_events())
                };
                notes.push(match claim.expression.lookups().iter().any(reads_event) {
                    true => "not exercised: an event that it needs did not happen, or a value is missing".to_owned(),
                    false => "cannot be determined: a value that it needs is missing".to_owned(),
                });
                notes.extend(doubts.of_left_out());
                row.verdict = (doubts.left_out > 0).then_some(Verdict::Untrusted);
            }
            (None, Err(error)) => notes.push(format!("cannot be determined: {error}")),
        }
        if claim.exploratory {
            notes.push("exploratory".to_owned());
        }
        row.note = self.note(notes);
        row
    }

    /// Tests a claim; `None` if a value that the decision needs is missing.
    fn tested(&self, claim: &Claim) -> Result<Option<Tested>, ExpressionError> {
        let behind = Behind::new(self, claim);
        let measured = evaluate::parts(&claim.expression, &Sampled { behind: &behind, samples: Samples::AsMeasured })?;
        let Some(holds) = measured.formula.holds(&measured.truths) else { return Ok(None) };
        let Some(n) = behind.replications.n else {
            let Some(judgment) = judge_deterministic(&measured.formula, &measured.truths) else { return Ok(None) };
            let judgment = self.with_phase(claim, judgment, holds)?;
            return Ok(Some(self.result(claim, &measured, judgment, holds, None, None)));
        };
        let mut counts = vec![ResampleCount::default(); measured.truths.len()];
        let mut whole = ResampleCount::default();
        let enough = missing_replications_reason(&measured.formula, &behind.replications).is_none();
        for number in (0..RESAMPLE_COUNT).take_while(|_| enough) {
            let sampled = Sampled { behind: &behind, samples: Samples::Resample(number) };
            let parts = evaluate::parts(&claim.expression, &sampled)?;
            whole.add(parts.formula.holds(&parts.truths));
            counts.iter_mut().zip(&parts.truths).for_each(|(count, truth)| count.add(*truth));
        }
        let mut judgment = judge_claim(&measured.formula, &counts, &behind.replications);
        if judgment.verdict == Verdict::Refuted
            && let Some(published_runs) = claim.published_runs
        {
            let mut as_published = ResampleCount::default();
            for number in 0..RESAMPLE_COUNT {
                let sampled = Sampled { behind: &behind, samples: Samples::AsPublished(number) };
                as_published.add(evaluate::evaluate_truth(&claim.expression, &sampled)?);
            }
            let again = judge_refuted(as_published, published_runs);
            judgment = ClaimJudgment { verdict: again.verdict, note: again.note, ..judgment };
        }
        let support = enough.then(|| whole.support());
        Ok(Some(self.result(claim, &measured, judgment, holds, Some(n as u64), support)))
    }

    /// Returns the verdict on a claim over deterministic points after the runs with random starts, if there are any.
    fn with_phase(
        &self,
        claim: &Claim,
        judgment: ClaimJudgment,
        holds: bool,
    ) -> Result<ClaimJudgment, ExpressionError> {
        let mut lookups = claim.expression.lookups().into_iter().flat_map(|lookup| self.points(lookup));
        if !lookups.any(|point| self.random_starts.contains_key(&point)) {
            return Ok(judgment);
        }
        let mut agree = 0;
        for run in 0..PHASE_RUNS {
            let parts = evaluate::parts(&claim.expression, &RandomStarts { measured: self, run: run as usize })?;
            agree += u64::from(parts.formula.holds(&parts.truths) == Some(holds));
        }
        Ok(judge_phase(judgment, agree, PHASE_RUNS))
    }

    fn result(
        &self,
        claim: &Claim,
        parts: &ClaimParts,
        judgment: ClaimJudgment,
        holds: bool,
        n: Option<u64>,
        support: Option<f64>,
    ) -> Tested {
        let deciding = judgment.deciding.map(|part| self.part(claim, parts, part));
        let note = [judgment.note, deciding].into_iter().flatten().collect::<Vec<_>>().join("; ");
        Tested { verdict: judgment.verdict, holds, n, support, note: Some(note).filter(|note| !note.is_empty()) }
    }

    /// Returns the name of a part of a claim: its number, and the point if the comparison is over several points.
    fn part(&self, claim: &Claim, parts: &ClaimParts, part: usize) -> String {
        let (column, index, of) = parts.places.get(part).copied().unwrap_or((0, 0, 1));
        let point = claim.expression.lookups_below(column).into_iter().find_map(|lookup| {
            let points = self.points(lookup);
            let point = points.get(index).filter(|_| points.len() == of)?;
            self.plan.points.get(*point).map(|point| point.label.clone())
        });
        let place = point.filter(|point| !point.is_empty()).map_or_else(String::new, |point| format!(" ({point})"));
        format!("decided by part {} of {}{place}", part + 1, parts.truths.len())
    }
}

/// The result of the test of a claim.
struct Tested {
    verdict: Verdict,
    /// Whether the claim holds for the measured values.
    holds: bool,
    /// The smallest number of complete replications; `None` if all points are deterministic.
    n: Option<u64>,
    support: Option<f64>,
    note: Option<String>,
}

/// The values on which a claim depends, by the column of the lookup in its expression.
struct Behind<'a> {
    lookups: BTreeMap<usize, (&'a Lookup, Vec<PointValues>)>,
    replications: Replications,
}

/// The values of a metric at a point.
enum PointValues {
    /// One value that is not resampled; `None` if it is missing.
    Fixed(Option<f64>),
    /// The values of the complete replications and their resamples.
    Replicated {
        values: Vec<f64>,
        resamples: Rc<Resamples>,
        /// Samples with the publication's number of runs, if the claim states that number. The samples of different
        /// points are independent.
        as_published: Option<Rc<Resamples>>,
    },
}

impl<'a> Behind<'a> {
    fn new(measured: &MeasuredValues<'_>, claim: &'a Claim) -> Self {
        let metric_of = |lookup: &Lookup| measured.study.metrics.iter().position(|metric| metric.name == lookup.metric);
        // The points with random numbers, and the metrics that the claim uses there.
        let mut stochastic: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for lookup in claim.expression.lookups().into_iter().filter(|lookup| !is_published(lookup)) {
            let Some(metric) = metric_of(lookup) else { continue };
            for point in measured.points(lookup) {
                if measured.deterministic(point, metric).is_none() {
                    stochastic.entry(point).or_default().insert(metric);
                }
            }
        }
        // Points in virtual time have common random numbers, so the same replications must be complete at all of them.
        // Points in real time are independent. So are points that the claim reads only with `present`: each has the
        // replications with a value there, which may be none.
        let complete = |point: usize| -> BTreeSet<usize> {
            let values: Vec<Vec<Option<f64>>> =
                stochastic[&point].iter().map(|metric| measured.of(point, *metric)).collect();
            (0..measured.points[point].len()).filter(|run| values.iter().all(|of| of[*run].is_some())).collect()
        };
        let is_real = |point: usize| measured.is_real(point);
        let columns = claim.expression.lookups_of_present_values();
        let read_whole: BTreeSet<usize> = (claim.expression.lookups().into_iter())
            .filter(|lookup| !columns.contains(&lookup.column))
            .flat_map(|lookup| measured.points(lookup))
            .collect();
        let is_paired = |point: usize| !is_real(point) && read_whole.contains(&point);
        let in_virtual_time = stochastic.keys().filter(|point| is_paired(**point)).map(|point| complete(*point));
        let common = in_virtual_time.reduce(|all, next| all.intersection(&next).copied().collect());
        let complete_at = |point: usize| match &common {
            Some(common) if is_paired(point) => common.clone(),
            _ => complete(point),
        };
        let mut skewed = false;
        let mut values_at = |lookup: &Lookup, metric: usize, point: usize| {
            if is_published(lookup) {
                return PointValues::Fixed(measured.published(point, &lookup.metric).map(|published| published.value));
            }
            if let Some(value) = measured.deterministic(point, metric) {
                return PointValues::Fixed(Some(value));
            }
            let complete = complete_at(point);
            let all = measured.of(point, metric);
            let values: Vec<f64> = complete.iter().filter_map(|run| all[*run]).collect();
            skewed |= is_skewed(&values);
            let name = if is_real(point) { format!("real-time point {point}") } else { "replications".to_owned() };
            let n = values.len();
            if n == 0 && !is_real(point) && !is_paired(point) {
                return PointValues::Fixed(None);
            }
            let resamples = measured.resamples(name, n, n);
            let draws = |runs| measured.resamples(format!("published runs of point {point}"), n, runs as usize);
            let as_published = claim.published_runs.map(draws);
            PointValues::Replicated { values, resamples, as_published }
        };
        let mut lookups = BTreeMap::new();
        for lookup in claim.expression.lookups() {
            let points = measured.points(lookup);
            let values = match metric_of(lookup) {
                None => Vec::new(),
                // The points were not run, so there is one missing value.
                Some(_) if points.is_empty() => vec![PointValues::Fixed(None)],
                Some(metric) => points.into_iter().map(|point| values_at(lookup, metric, point)).collect(),
            };
            lookups.insert(lookup.column, (lookup, values));
        }
        let (whole, partial): (Vec<usize>, Vec<usize>) =
            stochastic.keys().partition(|point| is_real(**point) || is_paired(**point));
        let of_whole = whole.into_iter().map(|point| complete_at(point).len()).min();
        // The claim is about all values at such points together.
        let of_partial = Some(partial.into_iter().map(|point| complete_at(point).len()).sum()).filter(|n| *n > 0);
        let n = [of_whole, of_partial].into_iter().flatten().min();
        let mixed = stochastic.keys().any(|point| measured.mixed[*point]);
        Behind { lookups, replications: Replications { n, skewed, mixed, raised: measured.study.raised } }
    }
}

fn is_published(lookup: &Lookup) -> bool {
    lookup.statistic.as_deref() == Some("published")
}

/// The selection of runs from which the values of a claim are computed.
#[derive(Clone, Copy)]
enum Samples {
    /// All runs.
    AsMeasured,
    /// The resample with this number.
    Resample(usize),
    /// The draw with this number, which has the publication's number of runs.
    AsPublished(usize),
}

/// The values on which a claim depends, for a selection of runs.
struct Sampled<'a> {
    behind: &'a Behind<'a>,
    samples: Samples,
}

impl EvaluationContext for Sampled<'_> {
    fn lookup(&self, lookup: &Lookup) -> Vec<Option<f64>> {
        let Some((_, points)) = self.behind.lookups.get(&lookup.column) else { return Vec::new() };
        let mut found = Vec::with_capacity(points.len());
        let mut sample = Vec::new();
        for point in points {
            let (values, resamples, as_published) = match point {
                PointValues::Fixed(value) => {
                    found.push(*value);
                    continue;
                }
                PointValues::Replicated { values, resamples, as_published } => (values, resamples, as_published),
            };
            sample.clear();
            let drawn = match self.samples {
                Samples::AsMeasured => None,
                Samples::Resample(number) => Some((resamples, number)),
                Samples::AsPublished(number) => as_published.as_ref().map(|draws| (draws, number)),
            };
            match drawn {
                None => sample.extend(values),
                Some((draws, number)) => {
                    sample.extend(draws.get(number).iter().map(|index| values[*index as usize]));
                }
            }
            match lookup.statistic.as_deref() {
                None => found.extend(sample.iter().copied().map(Some)),
                Some("median") => found.push(statistics::quantile(&sample, 0.5)),
                Some("deviation") => found.push(statistics::standard_deviation(&sample)),
                Some(_) => found.push(statistics::mean(&sample)),
            }
        }
        found
    }
}

/// The values on which a claim over deterministic points depends, in one of the runs with random starts.
struct RandomStarts<'a> {
    measured: &'a MeasuredValues<'a>,
    run: usize,
}

impl EvaluationContext for RandomStarts<'_> {
    fn lookup(&self, lookup: &Lookup) -> Vec<Option<f64>> {
        let measured = self.measured;
        let metric = measured.study.metrics.iter().position(|metric| metric.name == lookup.metric);
        let value = |point: usize| {
            if is_published(lookup) {
                return measured.published(point, &lookup.metric).map(|published| published.value);
            }
            measured.random_starts.get(&point)?.get(self.run)?.sound()?.get(metric?).copied().flatten()
        };
        measured.points(lookup).into_iter().map(value).collect()
    }
}

/// Returns the CPU time of a run in seconds, if known.
pub(crate) fn cpu_of(result: &RunResult) -> Option<f64> {
    match result {
        RunResult::Values { cpu_s, .. } => *cpu_s,
        RunResult::Failed(_) => None,
    }
}

/// The untrusted runs on which a claim depends.
struct Doubts<'a> {
    /// The number of runs at the points to which the claim refers.
    runs: usize,
    /// The number of runs that are not trusted.
    left_out: usize,
    /// The first point at which too few runs are trusted.
    thin: Option<&'a str>,
}

impl Doubts<'_> {
    fn of_left_out(&self) -> Option<String> {
        let (left_out, runs) = (self.left_out, self.runs);
        (left_out > 0).then(|| format!("{left_out} of {runs} runs behind it are not to be trusted and are left out"))
    }

    fn of_thin(&self, point: &str) -> String {
        let (left_out, runs) = (self.left_out, self.runs);
        let place = if point.is_empty() { String::new() } else { format!(" at {point}") };
        format!(
            "cannot be determined: {left_out} of {runs} runs behind it are not to be trusted, and{place} fewer than half of \
             the runs are left"
        )
    }
}

/// Returns the statistics of the values that are not missing.
fn summary_of(values: Vec<Option<f64>>) -> Option<SampleStatistics> {
    let values: Vec<f64> = values.into_iter().flatten().collect();
    summarize(&values).filter(|summary| summary.mean.is_finite())
}

fn filter_words(filter: &Filter) -> String {
    let symbol =
        COMPARISONS.into_iter().find(|(_, known)| *known == filter.comparison).map_or("", |(symbol, _)| symbol);
    let comparison = if filter.comparison == Comparison::Equal { "=".to_owned() } else { format!(" {symbol} ") };
    match &filter.literal {
        Literal::Number(number) => format!("{}{comparison}{number}", filter.axis),
        Literal::Text(text) => format!("{}{comparison}{text}", filter.axis),
    }
}
