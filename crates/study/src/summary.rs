//! `results.csv` and `summary.csv`: what the runs gave, beside what was published, with verdicts.
//!
//! * `match`: |mean - published| <= tolerance + ci95, where a missing interval counts as none. For a claim: it holds.
//! * `differs` (a value), `refuted` (a claim): it does not, and nothing in this study explains it.
//! * `explained`: it does not, but the claim named in `explained_by` holds in these very runs; the note says which.
//! * `untrusted`: too many of the runs that it rests on are not to be trusted, whatever their values say.
//! * empty: nothing was published, or it cannot be told because runs that it needs were not made.
//!
//! A run that fell behind real time, or that the auditor caught, shows what the machine did and not what the network
//! does: it is left out of every statistic, and the row's note says how many were. What is left stands for a point as
//! long as it is at least half of the point's runs and there is a value in it; otherwise the point supports no verdict,
//! and its row shows the values of all runs, marked as such.

use crate::check::{passes, point_passes};
use crate::evaluate::{self, Environment};
use crate::expression::{COMPARISONS, Comparison, Filter, Literal, Lookup};
use crate::plan::Plan;
use crate::statistics::{Summary, summarize};
use crate::study::{Claim, Level, Published, Study};
use crate::sweep::RunResult;
use crate::words::list_of;
use fullpipe_archive::{Cell, Column, LeftOut, ResultRow, Results, SUMMARY, SummaryRow, Verdict};
use serde_json::Value;
use std::collections::BTreeSet;

/// A row of `summary.csv` as a JSON object; empty cells are null, and a shortened study says `"quick": true`.
pub fn json(row: &SummaryRow, quick: bool) -> Value {
    let cell = |column: &Column<SummaryRow>| match (column.cell)(row) {
        // A claim is at no point; any other empty text is missing.
        Cell::Text(text) if text.is_empty() && column.name != SummaryRow::point().name => Value::Null,
        cell => cell.into(),
    };
    let cells = SUMMARY.columns.iter().map(|column| (column.name.to_owned(), cell(column)));
    let quick = quick.then(|| ("quick".to_owned(), Value::Bool(true)));
    Value::Object(cells.chain(quick).collect())
}

/// Values of all metrics at all points, by point, run, metric.
pub(crate) struct Measured<'a> {
    study: &'a Study,
    plan: &'a Plan,
    points: Vec<Vec<OfRun<'a>>>,
}

/// What a run has to say at a point.
#[derive(Clone, Copy)]
enum OfRun<'a> {
    /// It failed.
    Nothing,
    /// The values of all metrics.
    Sound(&'a [Option<f64>]),
    /// Likewise, but the run fell behind real time.
    Late(&'a [Option<f64>]),
    /// Likewise; the run fell behind real time, which the experiment asks about.
    LateAndCounted(&'a [Option<f64>]),
    /// Likewise, but the run says itself that it is not to be trusted.
    Distrusted(&'a [Option<f64>]),
}

impl<'a> OfRun<'a> {
    fn new(study: &Study, plan: &Plan, results: &'a [RunResult], run: usize, point: usize) -> Self {
        let Some(RunResult::Values { values, distrust, late, .. }) = results.get(run) else { return OfRun::Nothing };
        let counts_late = plan.points.get(point).is_some_and(|point| study.counts_late(&point.experiment));
        let place = plan.runs.get(run).and_then(|run| run.points.iter().position(|known| *known == point));
        match place.and_then(|place| values.get(place)) {
            None => OfRun::Nothing,
            Some(values) if *late && !counts_late => OfRun::Late(values),
            Some(values) if !distrust.is_empty() => OfRun::Distrusted(values),
            Some(values) if *late => OfRun::LateAndCounted(values),
            Some(values) => OfRun::Sound(values),
        }
    }

    /// All that it says, whether or not one may believe it.
    fn values(self) -> Option<&'a [Option<f64>]> {
        match self {
            OfRun::Nothing => None,
            OfRun::Sound(values) | OfRun::Late(values) | OfRun::LateAndCounted(values) | OfRun::Distrusted(values) => {
                Some(values)
            }
        }
    }

    /// What it says if one may believe it.
    fn sound(self) -> Option<&'a [Option<f64>]> {
        match self {
            OfRun::Sound(values) | OfRun::LateAndCounted(values) => Some(values),
            OfRun::Nothing | OfRun::Late(_) | OfRun::Distrusted(_) => None,
        }
    }
}

impl<'a> Measured<'a> {
    pub(crate) fn new(study: &'a Study, plan: &'a Plan, results: &'a [RunResult]) -> Self {
        let points =
            plan.points.iter().enumerate().map(|(index, point)| {
                point.runs.iter().map(|run| OfRun::new(study, plan, results, *run, index)).collect()
            });
        Measured { study, plan, points: points.collect() }
    }

    /// A metric's values at a point that one may believe, in the order of runs.
    fn of(&self, point: usize, metric: usize) -> Vec<Option<f64>> {
        let value = |run: &OfRun<'_>| run.sound()?.get(metric).copied().flatten();
        self.points[point].iter().map(value).collect()
    }

    fn summary(&self, point: usize, metric: usize) -> Option<Summary> {
        statistics(self.of(point, metric))
    }

    /// A metric's statistics at a point over all that was measured there, sound or not.
    fn summary_of_all(&self, point: usize, metric: usize) -> Option<Summary> {
        let value = |run: &OfRun<'_>| run.values()?.get(metric).copied().flatten();
        statistics(self.points[point].iter().map(value).collect())
    }

    /// Whether too few runs are left at a point because some are not to be trusted: fewer than half of them.
    fn is_thin(&self, point: usize) -> bool {
        let runs = &self.points[point];
        let sound = runs.iter().filter(|run| run.sound().is_some()).count();
        let left_out = runs.iter().filter(|run| run.values().is_some()).count() - sound;
        left_out > 0 && 2 * sound < runs.len()
    }

    /// Of the runs at a point: which failed, and which are not to be trusted.
    fn doubts(&self, point: usize) -> Vec<String> {
        let runs = &self.points[point];
        let told = |n: usize, what: &str| (n > 0).then(|| format!("{n} of {} runs {what}", runs.len()));
        let left_out =
            if self.is_thin(point) { "too many for a verdict: the figures are those of all runs" } else { "left out" };
        let count = |wanted: fn(&OfRun<'_>) -> bool| runs.iter().filter(|run| wanted(run)).count();
        let failed = count(|run| matches!(run, OfRun::Nothing));
        let late = count(|run| matches!(run, OfRun::Late(_)));
        let counted = count(|run| matches!(run, OfRun::LateAndCounted(_)));
        let distrusted = count(|run| matches!(run, OfRun::Distrusted(_)));
        let notes = [
            told(failed, "failed"),
            told(late, &format!("fell behind real time, {left_out}")),
            told(counted, "fell behind real time, and count"),
            told(distrusted, &format!("did not pass their checks, {left_out}")),
        ];
        notes.into_iter().flatten().collect()
    }

    fn published(&self, point: usize, metric: &str) -> Option<&'a Published> {
        let point = self.plan.points.get(point)?;
        let mut published = self.study.published.iter();
        published.find(|row| row.experiment == point.experiment && row.point == point.own_label && row.metric == metric)
    }

    /// `results.csv`.
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

    /// All rows of `summary.csv`: metrics point by point, then claims.
    pub(crate) fn rows(&self) -> Vec<SummaryRow> {
        let mut rows = Vec::new();
        for (index, point) in self.plan.points.iter().enumerate() {
            for (number, metric) in self.study.metrics.iter().enumerate() {
                if !metric.applies_to(&point.experiment) {
                    continue;
                }
                let thin = self.is_thin(index);
                let summary = if thin { self.summary_of_all(index, number) } else { self.summary(index, number) };
                let mut row = SummaryRow {
                    point: point.place.clone(),
                    metric: metric.name.clone(),
                    unit: metric.unit.clone(),
                    n: Some(summary.map_or(0, |summary| summary.n as u64)),
                    mean: summary.map(|summary| summary.mean),
                    ci95: summary.and_then(|summary| summary.ci95),
                    min: summary.map(|summary| summary.min),
                    median: summary.map(|summary| summary.median),
                    max: summary.map(|summary| summary.max),
                    ..SummaryRow::default()
                };
                let mut notes = self.doubts(index);
                let heard = |run: &&OfRun<'_>| if thin { run.values().is_some() } else { run.sound().is_some() };
                let heard = self.points[index].iter().filter(heard).count();
                let missing = (heard as u64).saturating_sub(row.n.unwrap_or(0));
                if missing > 0 && summary.is_some() {
                    notes.push(format!("{missing} of {} runs have no value", point.runs.len()));
                }
                if let Some(published) = self.published(index, &metric.name) {
                    self.judge(published, thin, &mut row, &mut notes);
                }
                row.note = self.note(notes);
                rows.push(row);
            }
        }
        rows.extend(self.study.claims.iter().map(|claim| self.claim_row(claim)));
        rows
    }

    /// A shortened study says so in every row.
    fn note(&self, mut notes: Vec<String>) -> String {
        if self.study.quick {
            notes.insert(0, "quick".to_owned());
        }
        notes.join("; ")
    }

    fn judge(&self, published: &Published, thin: bool, row: &mut SummaryRow, notes: &mut Vec<String>) {
        row.published = Some(published.value);
        row.tolerance = published.tolerance.to_string();
        row.source.clone_from(&published.source);
        if !published.note.is_empty() {
            notes.push(published.note.clone());
        }
        if thin {
            row.verdict = Some(Verdict::Untrusted);
            return;
        }
        let Some(mean) = row.mean else { return };
        let allowed = published.tolerance.around(published.value) + row.ci95.unwrap_or(0.0);
        row.verdict = Some(if (mean - published.value).abs() <= allowed {
            Verdict::Match
        } else {
            self.explanation(&published.explained_by, notes).unwrap_or(Verdict::Differs)
        });
    }

    /// `explained` if the claim of this name holds here, with a note of what shows it.
    fn explanation(&self, explained_by: &str, notes: &mut Vec<String>) -> Option<Verdict> {
        let claim = self.study.claim(explained_by)?;
        if self.doubts_of(claim).thin.is_some() || evaluate::truth(&claim.expression, self) != Ok(Some(true)) {
            return None;
        }
        notes.push(format!("explained by claim:{} ({}), shown by {}", claim.name, claim.text, self.shown_by(claim)));
        Some(Verdict::Explained)
    }

    /// The points that a claim speaks of, each with the key of its first run.
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

    /// Indices of the points that a look-up speaks of.
    fn points(&self, lookup: &Lookup) -> Vec<usize> {
        let Some(experiment) = self.study.experiment(&lookup.experiment) else { return Vec::new() };
        let points = self.plan.points.iter().enumerate();
        points
            .filter(|(_, point)| point.experiment == experiment.name && point_passes(lookup, experiment, &point.levels))
            .map(|(index, _)| index)
            .collect()
    }

    /// How far the runs at the points that a claim speaks of can be believed.
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

    /// What the user left out of the points that a claim speaks of.
    fn left_out_of(&self, claim: &Claim) -> Option<String> {
        let lookups = claim.expression.lookups();
        let speaks_of = |left_out: &LeftOut, value: &str| {
            let level = Level { label: value.to_owned(), value: None, set: Vec::new() };
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
            format!("not all of the study's points were run, without {list}")
        })
    }

    fn claim_row(&self, claim: &Claim) -> SummaryRow {
        let mut notes = vec![claim.text.clone()];
        notes.extend(self.left_out_of(claim));
        let doubts = self.doubts_of(claim);
        let (held, verdict) = match (doubts.thin, evaluate::truth(&claim.expression, self)) {
            (Some(point), _) => {
                notes.push(doubts.of_thin(point));
                (None, Some(Verdict::Untrusted))
            }
            (None, Ok(Some(held))) => {
                notes.extend(doubts.of_left_out());
                let mut explained = || self.explanation(&claim.explained_by, &mut notes).unwrap_or(Verdict::Refuted);
                (Some(held), Some(if held { Verdict::Match } else { explained() }))
            }
            (None, Ok(None)) => {
                notes.push("cannot be told: a value that it needs is missing".to_owned());
                notes.extend(doubts.of_left_out());
                (None, (doubts.left_out > 0).then_some(Verdict::Untrusted))
            }
            (None, Err(error)) => {
                notes.push(format!("cannot be told: {error}"));
                (None, None)
            }
        };
        SummaryRow {
            metric: SummaryRow::metric_of_claim(&claim.name),
            mean: held.map(|held| f64::from(u8::from(held))),
            verdict,
            source: claim.source.clone(),
            note: self.note(notes),
            ..SummaryRow::default()
        }
    }
}

/// How far the runs behind a claim can be believed.
struct Doubts<'a> {
    /// Runs at the points that it speaks of.
    runs: usize,
    /// Those that are not to be trusted.
    left_out: usize,
    /// The first point at which too few are left.
    thin: Option<&'a str>,
}

impl Doubts<'_> {
    fn of_left_out(&self) -> Option<String> {
        let (left_out, runs) = (self.left_out, self.runs);
        (left_out > 0).then(|| format!("{left_out} of {runs} runs behind it are not to be trusted and left out"))
    }

    fn of_thin(&self, point: &str) -> String {
        let (left_out, runs) = (self.left_out, self.runs);
        let place = if point.is_empty() { String::new() } else { format!(" at {point}") };
        format!(
            "cannot be told: {left_out} of {runs} runs behind it are not to be trusted, and{place} fewer than half of \
             the runs are left"
        )
    }
}

/// Statistics of the values that are there.
fn statistics(values: Vec<Option<f64>>) -> Option<Summary> {
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

impl Environment for Measured<'_> {
    fn lookup(&self, lookup: &Lookup) -> Vec<Option<f64>> {
        let Some(metric) = self.study.metrics.iter().position(|metric| metric.name == lookup.metric) else {
            return Vec::new();
        };
        let points = self.points(lookup);
        if points.is_empty() {
            // Not run this time: one value that is missing.
            return vec![None];
        }
        let Some(statistic) = &lookup.statistic else {
            return points.iter().flat_map(|point| self.of(*point, metric)).collect();
        };
        let one = |point: &usize| {
            if statistic == "published" {
                return self.published(*point, &lookup.metric).map(|published| published.value);
            }
            let summary = self.summary(*point, metric)?;
            match statistic.as_str() {
                "min" => Some(summary.min),
                "max" => Some(summary.max),
                "median" => Some(summary.median),
                "n" => Some(summary.n as f64),
                "ci95" => summary.ci95,
                "low" => Some(summary.mean - summary.ci95?),
                "high" => Some(summary.mean + summary.ci95?),
                _ => Some(summary.mean),
            }
        };
        points.iter().map(one).collect()
    }
}
