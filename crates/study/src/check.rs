//! Checks claims before any run: the experiments, metrics, axes and values in them exist, and lists that are combined
//! have equal lengths. The checks use the complete study, not a shortened one.

use crate::evaluate::{self, EvaluationContext, compare};
use crate::expression::{Comparison, Filter, Literal, Lookup};
use crate::study::{Claim, Experiment, Level, Study};
use crate::verdict::{MIN_REPLICATIONS, replications_for_parts};
use fullpipe_scenario::schema::{Error, SourceLocation, Sources};

/// Returns whether a level passes a filter.
pub(crate) fn passes(filter: &Filter, level: &Level) -> bool {
    match &filter.literal {
        Literal::Text(text) => (filter.comparison == Comparison::Equal) == (level.label == *text),
        Literal::Number(number) => match level.number() {
            Some(value) => compare(filter.comparison, value, *number),
            None => filter.comparison == Comparison::NotEqual,
        },
    }
}

/// Returns whether a point of an experiment passes all filters.
pub(crate) fn point_passes(lookup: &Lookup, experiment: &Experiment, levels: &[usize]) -> bool {
    lookup.filters.iter().all(|filter| {
        let Some((index, axis)) = experiment.axis(&filter.axis) else { return false };
        levels.get(index).and_then(|level| axis.levels.get(*level)).is_some_and(|level| passes(filter, level))
    })
}

/// Checks all claims. `place` returns the position in the file of a character of a claim's expression.
pub(crate) fn claims(
    study: &Study,
    errors: &mut Vec<Error>,
    place: impl Fn(&str, usize) -> SourceLocation,
    sources: &Sources,
) {
    for claim in &study.claims {
        let before = errors.len();
        for lookup in claim.expression.lookups() {
            if let Err((column, message, name, valid)) = lookup_exists(study, lookup) {
                let valid: Vec<&str> = valid.iter().map(String::as_str).collect();
                errors.push(sources.unknown_name(place(&claim.name, column), "expression", message, &name, &valid));
            }
        }
        if errors.len() == before
            && let Err(error) = evaluate::evaluate_truth(&claim.expression, &Shapes(study))
        {
            errors.push(sources.error(place(&claim.name, error.column), "expression", error.message, Vec::new()));
        }
    }
}

impl Study {
    /// Returns a warning for each claim that stays undecided because an experiment has too few runs per point. The
    /// warning contains the required number of runs. Experiments with one run per point are ignored, because their
    /// points may be deterministic. This is known only after a run.
    pub fn undecidable_claims(&self) -> Vec<String> {
        let warning = |claim: &Claim| {
            let parts = evaluate::parts(&claim.expression, &Shapes(self)).map_or(1, |parts| parts.truths.len());
            let needed = replications_for_parts(parts);
            let lookups = claim.expression.lookups().into_iter();
            let experiments = lookups.filter_map(|lookup| self.experiment(&lookup.experiment));
            let fewest =
                experiments.filter(|experiment| experiment.runs > 1).min_by_key(|experiment| experiment.runs)?;
            let (name, runs) = (&claim.name, fewest.runs);
            (runs < needed as u64).then(|| {
                let many = if needed > MIN_REPLICATIONS { format!(" with {parts} parts") } else { String::new() };
                format!(
                    "claim {name}: experiment {} has {runs} runs per point; a claim over random runs{many} requires {needed} and is \
                     undecided otherwise",
                    fewest.name
                )
            })
        };
        self.claims.iter().filter_map(warning).collect()
    }
}

type Unknown = (usize, String, String, Vec<String>);

fn lookup_exists(study: &Study, lookup: &Lookup) -> Result<(), Unknown> {
    let Some(experiment) = study.experiment(&lookup.experiment) else {
        let valid = study.experiments.iter().map(|experiment| experiment.name.clone()).collect();
        let message = format!("unknown experiment {}", lookup.experiment);
        return Err((lookup.column, message, lookup.experiment.clone(), valid));
    };
    let applies =
        |name: &str| study.metrics.iter().any(|metric| metric.name == name && metric.applies_to(&experiment.name));
    if !applies(&lookup.metric) {
        let valid = study.metrics.iter().filter(|metric| metric.applies_to(&experiment.name));
        let valid = valid.map(|metric| metric.name.clone()).collect();
        let message = format!("{} has no metric {}", experiment.name, lookup.metric);
        return Err((lookup.column, message, lookup.metric.clone(), valid));
    }
    for filter in &lookup.filters {
        let Some((_, axis)) = experiment.axis(&filter.axis) else {
            let valid = experiment.axes.iter().map(|axis| axis.name.clone()).collect();
            let message = format!("{} has no axis {}", experiment.name, filter.axis);
            return Err((filter.column, message, filter.axis.clone(), valid));
        };
        if !axis.levels.iter().any(|level| passes(filter, level)) {
            let valid = axis.levels.iter().map(|level| level.label.clone()).collect();
            let found = match &filter.literal {
                Literal::Text(text) => text.clone(),
                Literal::Number(number) => number.to_string(),
            };
            let message = format!("no value of {} meets this condition with {found}", axis.name);
            return Err((filter.column, message, found, valid));
        }
    }
    if !experiment.combinations().iter().any(|levels| point_passes(lookup, experiment, levels)) {
        let message = format!("no point of {} meets these conditions", experiment.name);
        return Err((lookup.column, message, String::new(), Vec::new()));
    }
    Ok(())
}

/// A context that answers every lookup with as many numbers as the study will have.
struct Shapes<'a>(&'a Study);

impl EvaluationContext for Shapes<'_> {
    fn lookup(&self, lookup: &Lookup) -> Vec<Option<f64>> {
        let Some(experiment) = self.0.experiment(&lookup.experiment) else { return Vec::new() };
        let points = experiment.combinations().iter().filter(|levels| point_passes(lookup, experiment, levels)).count();
        let runs = if lookup.statistic.is_some() { 1 } else { usize::try_from(experiment.runs).unwrap_or(usize::MAX) };
        vec![Some(1.0); points.saturating_mul(runs).min(10_000_000)]
    }
}
