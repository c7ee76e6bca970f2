//! The rules that assign a verdict to a published value or a claim: pure functions of the values of replications.
//!
//! * A published value is judged by an equivalence test (Schuirmann 1987). It matches if the interval of our mean lies
//!   entirely within the tolerance. It differs if the interval lies entirely outside, and the value is also outside the
//!   prediction interval. That interval is for a mean of as many runs as the publication has.
//! * A claim is judged part by part by its support: the share of bootstrap resamples of the replications for which it
//!   holds.
//!
//! `docs/verdicts.md` states the rules for users, with their error rates as `tests/all.rs` simulates them.

mod difference;
pub mod statistics;

pub use difference::{PairedDifference, judge_difference};

use crate::statistics::{
    RESAMPLE_COUNT, Resamples, expanded_tail_probability, mean, quantile_of_sorted, skewness, standard_deviation,
    student_t_quantile,
};
use fullpipe_archive::Verdict;
use fullpipe_units::RandomStream;

/// The minimum number of replications that a verdict on a stochastic point requires.
pub const MIN_REPLICATIONS: usize = 10;
/// The minimum number of replications if the values are skewed ([`is_skewed`]).
pub const MIN_REPLICATIONS_SKEWED: usize = 30;
/// The minimum number of replications if a claim has more than [`MANY_PARTS_THRESHOLD`] parts.
pub const MIN_REPLICATIONS_MANY_PARTS: usize = 20;
/// The largest number of parts for which [`MIN_REPLICATIONS`] applies.
pub const MANY_PARTS_THRESHOLD: usize = 5;

/// A verdict with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgment {
    /// The verdict.
    pub verdict: Verdict,
    /// The reason for the verdict; `None` if the interval and the published value show it.
    pub note: Option<String>,
}

impl Judgment {
    fn new(verdict: Verdict, note: Option<String>) -> Self {
        Judgment { verdict, note }
    }
}

/// A value from a publication.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedValue {
    /// The value, in the unit of the metric.
    pub value: f64,
    /// The permitted difference from the published value, in the same unit.
    pub tolerance: f64,
    /// The number of runs of which the value is the mean; `None` if the value is exact.
    pub runs: Option<u64>,
    /// The method that predicts the mean of `runs` other runs from the measured values.
    pub prediction: Prediction,
}

/// The method that predicts a mean of other runs of the same system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prediction {
    /// Student's t: mean ± t·s·sqrt(1/n + 1/m). The n measured runs have the standard deviation s; m is the number of
    /// other runs.
    #[default]
    Student,
    /// Resampling of the measured runs, for ratios, shares, medians and percentiles.
    Resampling,
}

/// The values that were measured at one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PointMeasurement<'a> {
    /// The value of a run that drew no random numbers.
    Deterministic(f64),
    /// The values of the replications.
    Stochastic(&'a [f64]),
    /// The values of the replications, of which some but not all have a retransmission timeout, an outage or a stall.
    Mixed(&'a [f64]),
}

/// Returns whether values are so skewed that a claim needs [`MIN_REPLICATIONS_SKEWED`] replications: the absolute value
/// of the sample skewness is greater than 1.
pub fn is_skewed(values: &[f64]) -> bool {
    skewness(values).is_some_and(|skewness| skewness.abs() > 1.0)
}

/// Returns the number of replications that the mean of values with a sample skewness of G needs: 30 G², at most
/// [`MIN_REPLICATIONS_SKEWED`].
///
/// The one-sided error of Student's interval exceeds 2.5 % by |G| / (6 sqrt(n)) (2 z² + 1) φ(z) = 0.085 |G| / sqrt(n)
/// in the first order of Edgeworth's expansion (Hall 1992, section 2.6; z = 1.96), so the number of runs for the same
/// error grows with the square of the skewness (Cochran 1977, section 2.15: 25 G²). A skewness of 1 needs 30 runs,
/// where the error is 4 %.
fn needed_for_skewness(values: &[f64]) -> usize {
    let needed = skewness(values).map_or(0.0, |skewness| (MIN_REPLICATIONS_SKEWED as f64 * skewness * skewness).ceil());
    (needed as usize).clamp(MIN_REPLICATIONS, MIN_REPLICATIONS_SKEWED)
}

/// Returns the number of replications that a claim with `parts` parts needs.
pub fn replications_for_parts(parts: usize) -> usize {
    if parts > MANY_PARTS_THRESHOLD { MIN_REPLICATIONS_MANY_PARTS } else { MIN_REPLICATIONS }
}

/// Reports missing replications: how many exist, how many are needed, and why. `for_skewness` is the number needed
/// because of skewed values.
fn too_few(n: usize, for_skewness: usize, is_mixed: bool, parts: usize) -> Option<String> {
    let (needed, reason) = if is_mixed {
        (MIN_REPLICATIONS_SKEWED, ", because only some of the runs have a time-out or a stall")
    } else if for_skewness > MIN_REPLICATIONS {
        (for_skewness, ", because they are skewed")
    } else if parts > MANY_PARTS_THRESHOLD {
        (replications_for_parts(parts), ", because the claim has more than five parts")
    } else {
        (MIN_REPLICATIONS, "")
    };
    (n < needed).then(|| format!("{n} complete replications, {needed} are needed{reason}"))
}

/// The confidence interval of the mean, and the interval for verdicts. The former is Student's 95 % interval, or that
/// of confidence 1 - 0.05/k after the number of runs was raised k - 1 times.
#[derive(Clone, Copy, Debug)]
struct Interval {
    mean: f64,
    /// Half the width of Student's interval.
    half: f64,
    /// The distances by which the lower and the upper end are extended for verdicts.
    wider: (f64, f64),
}

impl Interval {
    /// Returns `None` for fewer than two values.
    ///
    /// For values that are skewed to the right, Student's interval lies too low. For verdicts, the end on the side of
    /// the skew is moved outward by the first term of the Cornish-Fisher expansion of the studentized mean,
    /// G s (2 t² + 1) / (6 n) (Johnson 1978; Hall 1992). The other end does not change, so the interval is never
    /// narrower than Student's.
    fn new(values: &[f64], k: u64) -> Option<Self> {
        let (n, mean) = (values.len() as f64, mean(values)?);
        let (t, s) = (student_t_quantile(values.len() - 1, 1.0 - 0.05 / k as f64), standard_deviation(values)?);
        let shift = skewness(values).unwrap_or(0.0) * s * (2.0 * t * t + 1.0) / (6.0 * n);
        Some(Interval { mean, half: t * s / n.sqrt(), wider: ((-shift).max(0.0), shift.max(0.0)) })
    }

    fn ends(&self) -> (f64, f64) {
        (self.mean - self.half - self.wider.0, self.mean + self.half + self.wider.1)
    }
}

/// The largest number of runs of a publication for which draws are made. For more runs, the spread of their mean is
/// below 3 % of that of one run.
const MOST_DRAWN: u64 = 1000;

/// Returns whether a mean of `m` runs of the same system explains a value. It does if the value lies in the
/// distribution of our mean plus a difference. The difference is that between the mean of `m` draws and the mean of n
/// draws from our n runs. A share of a(n, k) of the differences is excluded at each end.
fn explained_by_draws(values: &[f64], value: f64, m: u64, k: u64) -> Option<bool> {
    let (n, center) = (values.len(), mean(values)?);
    let mut stream = RandomStream::new(0, "replications", "prediction");
    let mut mean_of = |count: usize| {
        let sum: f64 = (0..count).map(|_| values[stream.uniform_below(n as u64) as usize] - center).sum();
        sum / count as f64
    };
    let m = m.min(MOST_DRAWN) as usize;
    let mut differences: Vec<f64> = (0..RESAMPLE_COUNT).map(|_| mean_of(m) - mean_of(n)).collect();
    differences.sort_by(f64::total_cmp);
    let tail = expanded_tail_probability(n, k);
    let (low, high) = (quantile_of_sorted(&differences, tail)?, quantile_of_sorted(&differences, 1.0 - tail)?);
    Some((low..=high).contains(&(value - center)))
}

/// Judges the measured values of a point against a published value. `raised` is the number of times that the number of
/// runs was increased after the verdict `undecided`.
pub fn judge_published(measured: PointMeasurement<'_>, published: &PublishedValue, raised: u64) -> Judgment {
    let PublishedValue { value, tolerance, runs, prediction } = *published;
    let values = match measured {
        PointMeasurement::Deterministic(measured) => {
            let matches = (measured - value).abs() <= tolerance;
            return Judgment::new(if matches { Verdict::Match } else { Verdict::Differs }, None);
        }
        PointMeasurement::Stochastic(values) | PointMeasurement::Mixed(values) => values,
    };
    let (n, k) = (values.len(), raised + 1);
    let undecided = |note| Judgment::new(Verdict::Undecided, note);
    let is_mixed = matches!(measured, PointMeasurement::Mixed(_));
    if let Some(missing) = too_few(n, needed_for_skewness(values), is_mixed, 1) {
        return undecided(Some(missing));
    }
    let Some(interval) = Interval::new(values, k) else { return undecided(None) };
    let (low, high) = interval.ends();
    let within = |low: f64, high: f64| value - low <= tolerance && high - value <= tolerance;
    if within(low, high) {
        return Judgment::new(Verdict::Match, None);
    }
    if low - value <= tolerance && value - high <= tolerance {
        let students = within(interval.mean - interval.half, interval.mean + interval.half);
        return undecided(
            students.then(|| "the interval, widened because the runs are skewed, exceeds the tolerance".to_owned()),
        );
    }
    if let Some(m) = runs.filter(|runs| *runs > 0) {
        // The prediction interval for the mean of m other runs of the same system.
        let explained = match prediction {
            Prediction::Student => (value - interval.mean).abs() <= interval.half * (1.0 + n as f64 / m as f64).sqrt(),
            Prediction::Resampling => explained_by_draws(values, value, m, k).unwrap_or(true),
        };
        if explained {
            return undecided(Some(compatible(m)));
        }
    }
    Judgment::new(Verdict::Differs, None)
}

/// A logical combination of the parts of a claim, which are comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Formula {
    /// The part with this number, from 0.
    Part(usize),
    /// The conjunction: all operands must hold.
    All(Vec<Formula>),
    /// The disjunction: at least one operand must hold.
    Any(Vec<Formula>),
    /// The negation: the operand must not hold.
    Not(Box<Formula>),
}

impl Formula {
    /// Returns whether the claim holds if its parts have these truth values, by number of the part. `None` if a truth
    /// value that the decision requires is missing.
    pub fn holds(&self, truths: &[Option<bool>]) -> Option<bool> {
        let any = |formulas: &[Formula], decisive: bool| {
            let mut missing = false;
            for formula in formulas {
                match formula.holds(truths) {
                    Some(truth) if truth == decisive => return Some(decisive),
                    Some(_) => {}
                    None => missing = true,
                }
            }
            (!missing).then_some(!decisive)
        };
        match self {
            Formula::Part(part) => truths.get(*part).copied().flatten(),
            Formula::All(formulas) => any(formulas, false),
            Formula::Any(formulas) => any(formulas, true),
            Formula::Not(formula) => formula.holds(truths).map(|truth| !truth),
        }
    }

    /// Returns the numbers of the parts in the formula.
    fn parts(&self) -> Vec<usize> {
        match self {
            Formula::Part(part) => vec![*part],
            Formula::All(formulas) | Formula::Any(formulas) => formulas.iter().flat_map(Formula::parts).collect(),
            Formula::Not(formula) => formula.parts(),
        }
    }
}

/// The number of resamples for which a condition holds, and the number for which it does not. Resamples without a truth
/// value are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResampleCount {
    /// Number of resamples for which the condition holds.
    pub holds: usize,
    /// Number of resamples for which the condition does not hold.
    pub fails: usize,
}

impl ResampleCount {
    /// Counts one resample, unless its truth value is missing.
    pub fn add(&mut self, truth: Option<bool>) {
        match truth {
            Some(true) => self.holds += 1,
            Some(false) => self.fails += 1,
            None => {}
        }
    }

    /// Returns the support of the condition: the share of all [`RESAMPLE_COUNT`] resamples for which the condition
    /// holds.
    pub fn support(self) -> f64 {
        self.holds as f64 / RESAMPLE_COUNT as f64
    }
}

/// Counts the resamples for which one part of a claim holds. `holds` receives a resample and returns the truth value of
/// the part; `None` if it is missing. Counting stops when neither outcome can reach the share 1 - a(n)
/// ([`expanded_tail_probability`]), because the verdict on the part is then final.
pub fn count_resamples(resamples: &Resamples, mut holds: impl FnMut(&[u32]) -> Option<bool>) -> ResampleCount {
    let limit = expanded_tail_probability(resamples.replications(), 1) * RESAMPLE_COUNT as f64;
    let mut count = ResampleCount::default();
    for sample in resamples.iter() {
        count.add(holds(sample));
        if count.holds as f64 > limit && count.fails as f64 > limit {
            break;
        }
    }
    count
}

/// Properties of the replications from which a claim is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replications {
    /// The smallest number of complete replications of a point; `None` if all points are deterministic.
    pub n: Option<usize>,
    /// Whether the values of at least one metric at one point are skewed ([`is_skewed`]).
    pub skewed: bool,
    /// Whether there is a point at which some but not all runs have a retransmission timeout, an outage or a stall.
    pub mixed: bool,
    /// The number of times that the number of runs was increased after the verdict `undecided`.
    pub raised: u64,
}

/// The verdict on a claim, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimJudgment {
    /// The verdict.
    pub verdict: Verdict,
    /// The number of the part that decides the verdict, from 0; `None` if the claim has only one part or if no single
    /// part decides.
    pub deciding: Option<usize>,
    /// The reason for the verdict `undecided`; `None` for other verdicts, and if the reason is the support.
    pub note: Option<String>,
}

/// Judges a claim that refers only to deterministic points. Returns `None` if a truth value that the decision requires
/// is missing.
pub fn judge_deterministic(formula: &Formula, truths: &[Option<bool>]) -> Option<ClaimJudgment> {
    let holds = formula.holds(truths)?;
    let verdict = if holds { Verdict::Match } else { Verdict::Refuted };
    let several = truths.len() > 1;
    // The first part that fails decides a conjunction that fails; the first part that holds decides a disjunction that
    // holds.
    let deciding = |wanted: bool| truths.iter().position(|truth| *truth == Some(wanted));
    let deciding = match formula {
        Formula::All(_) if !holds => deciding(false),
        Formula::Any(_) if holds => deciding(true),
        _ => None,
    };
    Some(ClaimJudgment { verdict, deciding: deciding.filter(|_| several), note: None })
}

/// The minimum number of runs with random start times that must agree with the deterministic run. The crate `study`
/// executes ten such runs (`PHASE_RUNS`).
pub const MIN_PHASE_AGREEMENT: u64 = 9;

/// Returns the verdict on a claim over deterministic points after `runs` runs with random start times. The verdict
/// becomes `undecided` if fewer than [`MIN_PHASE_AGREEMENT`] of these runs agree with `judgment`.
pub fn judge_phase(judgment: ClaimJudgment, agree: u64, runs: u64) -> ClaimJudgment {
    if agree >= MIN_PHASE_AGREEMENT {
        return judgment;
    }
    let note =
        format!("phase effect: {agree} of {runs} runs with random starts agree, {MIN_PHASE_AGREEMENT} are needed");
    ClaimJudgment { verdict: Verdict::Undecided, deciding: None, note: Some(note) }
}

/// Returns the reason why there are too few replications for any verdict on a claim; `None` if there are enough.
pub fn missing_replications_reason(formula: &Formula, replications: &Replications) -> Option<String> {
    let for_skewness = if replications.skewed { MIN_REPLICATIONS_SKEWED } else { 0 };
    too_few(replications.n?, for_skewness, replications.mixed, formula.parts().len())
}

/// Judges a claim from `counts`, the counts of resamples by part. With n replications, a part holds if its support is
/// at least 1 - a(n). It does not hold if its support is at most a(n). If one of k parts decides, its threshold is a(n,
/// k). [`expanded_tail_probability`] defines a(n) = a(n, 1) and a(n, k).
pub fn judge_claim(formula: &Formula, counts: &[ResampleCount], replications: &Replications) -> ClaimJudgment {
    let undecided = |note| ClaimJudgment { verdict: Verdict::Undecided, deciding: None, note };
    if let Some(missing) = missing_replications_reason(formula, replications) {
        return undecided(Some(missing));
    }
    let k = replications.raised + 1;
    let rule = Rule { counts, n: replications.n.unwrap_or(0) };
    let (verdict, deciding) = rule.judge(formula, k, k);
    ClaimJudgment { verdict, deciding: deciding.filter(|_| counts.len() > 1), note: None }
}

/// Judges a refuted claim about a published value again. The claim stays refuted only if at most 2.5 % of the draws
/// satisfy it; otherwise it is `undecided`. A draw is a mean of `m` measured runs, drawn independently at each point.
/// `m` is the publication's number of runs. `count` counts the draws.
pub fn judge_refuted(count: ResampleCount, m: u64) -> Judgment {
    if count.support() <= 0.025 {
        return Judgment::new(Verdict::Refuted, None);
    }
    Judgment::new(Verdict::Undecided, Some(compatible(m)))
}

fn compatible(m: u64) -> String {
    format!("compatible with {}", if m == 1 { "one run".to_owned() } else { format!("a mean of {m} runs") })
}

struct Rule<'a> {
    counts: &'a [ResampleCount],
    n: usize,
}

impl Rule<'_> {
    /// Returns the verdict on a formula and the part that decides. `match` has the threshold a(n, k_match), `refuted`
    /// has a(n, k_refuted).
    fn judge(&self, formula: &Formula, k_match: u64, k_refuted: u64) -> (Verdict, Option<usize>) {
        match formula {
            Formula::Part(part) => {
                let count = self.counts.get(*part).copied().unwrap_or_default();
                let reaches = |count: usize, k| {
                    count as f64 >= (1.0 - expanded_tail_probability(self.n, k)) * RESAMPLE_COUNT as f64
                };
                let verdict = if reaches(count.holds, k_match) {
                    Verdict::Match
                } else if reaches(count.fails, k_refuted) {
                    Verdict::Refuted
                } else {
                    Verdict::Undecided
                };
                (verdict, Some(*part))
            }
            Formula::All(formulas) => {
                let k = formulas.len().max(1) as u64;
                let verdicts = formulas.iter().map(|formula| self.judge(formula, k_match, k_refuted * k));
                Self::combine(verdicts.collect(), Verdict::Match, Verdict::Refuted)
            }
            Formula::Any(formulas) => {
                let k = formulas.len().max(1) as u64;
                let verdicts = formulas.iter().map(|formula| self.judge(formula, k_match * k, k_refuted));
                Self::combine(verdicts.collect(), Verdict::Refuted, Verdict::Match)
            }
            Formula::Not(formula) => {
                let (verdict, deciding) = self.judge(formula, k_refuted, k_match);
                let verdict = match verdict {
                    Verdict::Match => Verdict::Refuted,
                    Verdict::Refuted => Verdict::Match,
                    other => other,
                };
                (verdict, deciding)
            }
        }
    }

    /// Returns `decisive` if one part has it, `unanimous` if all parts have it, and otherwise undecided for the first
    /// part that has neither.
    fn combine(
        verdicts: Vec<(Verdict, Option<usize>)>,
        unanimous: Verdict,
        decisive: Verdict,
    ) -> (Verdict, Option<usize>) {
        let first = |wanted: Verdict| verdicts.iter().find(|(verdict, _)| *verdict == wanted).map(|(_, part)| *part);
        if let Some(part) = first(decisive) {
            return (decisive, part);
        }
        match first(Verdict::Undecided) {
            Some(part) => (Verdict::Undecided, part),
            None if verdicts.is_empty() => (Verdict::Undecided, None),
            None => (unanimous, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Verdict::{Differs, Match, Refuted, Undecided};

    /// Ten values with mean 10 and s = 1: 10 +- sqrt(0.9) five times each. The half width is 2.262157 / sqrt(10) =
    /// 0.715357.
    fn ten() -> Vec<f64> {
        (0..10).map(|i| 10.0 + 0.9f64.sqrt() * if i % 2 == 0 { 1.0 } else { -1.0 }).collect()
    }

    fn judged(values: &[f64], value: f64, tolerance: f64, runs: Option<u64>) -> Judgment {
        let published = PublishedValue { value, tolerance, runs, prediction: Prediction::Student };
        judge_published(PointMeasurement::Stochastic(values), &published, 0)
    }

    #[test]
    fn a_value_matches_if_the_whole_interval_is_within_the_tolerance() {
        // The interval is [9.284643, 10.715357].
        for (value, tolerance, expected) in [
            (10.0, 0.716, Match),
            (10.0, 0.715, Undecided),
            (10.5, 1.216, Match),
            (10.5, 1.215, Undecided),
            (11.0, 0.286, Undecided),
            (11.0, 0.284, Differs),
            (9.0, 0.284, Differs),
        ] {
            assert_eq!(judged(&ten(), value, tolerance, None).verdict, expected, "{value} {tolerance}");
        }
    }

    #[test]
    fn a_value_differs_only_if_as_many_runs_as_published_do_not_explain_it() {
        // One run: 2.262157 sqrt(1/10 + 1) = 2.372572; ten runs: 2.262157 sqrt(0.2) = 1.011667.
        for (runs, value, expected) in [
            (Some(1), 12.37, Undecided),
            (Some(1), 12.38, Differs),
            (Some(10), 11.01, Undecided),
            (Some(10), 11.02, Differs),
            (None, 11.01, Differs),
        ] {
            let judgment = judged(&ten(), value, 0.0, runs);
            assert_eq!(judgment.verdict, expected, "{runs:?} {value}");
        }
        assert_eq!(judged(&ten(), 11.01, 0.0, Some(10)).note.as_deref(), Some("compatible with a mean of 10 runs"));
        assert_eq!(judged(&ten(), 12.0, 0.0, Some(1)).note.as_deref(), Some("compatible with one run"));
    }

    #[test]
    fn the_interval_is_wider_after_runs_were_raised() {
        // t(9, 0.9875) = 2.685011: half width 0.849075.
        let published = PublishedValue { value: 10.0, tolerance: 0.8, runs: None, prediction: Prediction::Student };
        assert_eq!(judge_published(PointMeasurement::Stochastic(&ten()), &published, 0).verdict, Match);
        assert_eq!(judge_published(PointMeasurement::Stochastic(&ten()), &published, 1).verdict, Undecided);
    }

    #[test]
    fn a_value_with_too_few_replications_is_undecided_and_a_deterministic_value_decides() {
        let judgment = judged(&[10.0; 9], 10.0, 1.0, None);
        assert_eq!(judgment.verdict, Undecided);
        assert_eq!(judgment.note.as_deref(), Some("9 complete replications, 10 are needed"));
        assert_eq!(judged(&[10.0; 10], 10.0, 0.0, None).verdict, Match);
        // One of ten values is an outlier: skewness sqrt(90)/8 * 8/3 = 3.16.
        let mut skewed = vec![10.0; 10];
        skewed[3] = 11.0;
        assert_eq!(judged(&skewed, 10.0, 5.0, None).verdict, Undecided);
        skewed.extend([10.0; 20]);
        assert_eq!(judged(&skewed, 10.0, 5.0, None).verdict, Match);
        let published = PublishedValue { value: 3.0, tolerance: 0.5, runs: Some(1), prediction: Prediction::Student };
        assert_eq!(judge_published(PointMeasurement::Deterministic(3.5), &published, 0).verdict, Match);
        assert_eq!(judge_published(PointMeasurement::Deterministic(3.6), &published, 0).verdict, Differs);
    }

    #[test]
    fn skewed_runs_need_thirty_times_the_square_of_their_skewness() {
        // The values 1 to 9 and a tenth value: G = 0.427 at 12 (30 G² = 5.5), 0.660553 at 13 (13.09), 2.86 at 40 (246).
        let one_off = |far: f64| (0..10).map(|i| if i == 0 { far } else { f64::from(i) }).collect::<Vec<_>>();
        let needed = |far: f64| needed_for_skewness(&one_off(far));
        assert_eq!((needed(12.0), needed(13.0), needed(40.0)), (10, 14, 30));
        let judgment = judged(&one_off(13.0), 5.0, 100.0, None);
        assert_eq!(judgment.note.as_deref(), Some("10 complete replications, 14 are needed, because they are skewed"));
        assert_eq!(judged(&one_off(12.0), 5.0, 100.0, None).verdict, Match);
    }

    /// Thirty values, 27 of them 0 and three 10: mean 1, s² = (27 + 3 * 81) / 29 = 9.310345, s = 3.051286; half =
    /// 2.045230 s / sqrt(30) = 1.139369. m2 = 9, m3 = (-27 + 3 * 729) / 30 = 72, g1 = 72/27 = 2.666667, G = sqrt(870) /
    /// 28 g1 = 2.809120. The upper end is higher by G s (2 t² + 1) / 180 = 0.0476186 * 9.365931 = 0.445997: [-0.139369,
    /// 2.585366].
    #[test]
    fn the_interval_of_skewed_values_is_wider_only_on_the_side_of_the_skew() {
        let values: Vec<f64> = (0..30).map(|i| if i % 10 == 0 { 10.0 } else { 0.0 }).collect();
        let (low, high) = Interval::new(&values, 1).unwrap().ends();
        assert!((low + 0.139_369).abs() < 2e-6 && (high - 2.585_366).abs() < 2e-6, "{low} {high}");
        let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
        let ends = Interval::new(&mirrored, 1).unwrap().ends();
        assert!((ends.0 + high).abs() < 1e-9 && (ends.1 + low).abs() < 1e-9);
        // Student's interval without the extension would be within 1 ± 1.2.
        let judgment = judged(&values, 1.0, 1.2, None);
        assert_eq!(judgment.verdict, Undecided);
        assert!(judgment.note.unwrap().contains("widened because the runs are skewed"));
        assert_eq!(judged(&values, 1.0, 1.6, None).verdict, Match);
    }

    /// A share of ten runs: five are 0 and five are 1. s = 0.527046, and Student's prediction interval for one run is
    /// 0.5 ± 2.372572 s = [-0.75, 1.75]. One draw is 0 or 1, and the mean of ten draws is between them. By draws, no
    /// value outside 0.5 ± 1 is thus explained.
    #[test]
    fn shares_are_predicted_by_draws() {
        let values: Vec<f64> = (0..10).map(|i| f64::from(i % 2)).collect();
        let judged = |value, prediction| {
            let published = PublishedValue { value, tolerance: 0.0, runs: Some(1), prediction };
            judge_published(PointMeasurement::Stochastic(&values), &published, 0).verdict
        };
        assert_eq!((judged(1.4, Prediction::Student), judged(1.7, Prediction::Student)), (Undecided, Undecided));
        assert_eq!((judged(1.0, Prediction::Resampling), judged(1.7, Prediction::Resampling)), (Undecided, Differs));
        assert_eq!((judged(1.51, Prediction::Resampling), judged(-0.51, Prediction::Resampling)), (Differs, Differs));
    }

    #[test]
    fn runs_with_a_timeout_in_only_some_of_them_need_thirty_replications() {
        let thirty: Vec<f64> = ten().into_iter().cycle().take(30).collect();
        let published = PublishedValue { value: 10.0, tolerance: 2.0, runs: None, prediction: Prediction::Student };
        let judged = |values: &[f64]| judge_published(PointMeasurement::Mixed(values), &published, 0);
        assert_eq!(judged(&thirty).verdict, Match);
        let judgment = judged(&thirty[..29]);
        assert_eq!(judgment.verdict, Undecided);
        let note = "29 complete replications, 30 are needed, because only some of the runs have a time-out or a stall";
        assert_eq!(judgment.note.as_deref(), Some(note));
        let count = [ResampleCount { holds: RESAMPLE_COUNT, fails: 0 }];
        let claim =
            |n| judge_claim(&part(0), &count, &Replications { n: Some(n), skewed: false, mixed: true, raised: 0 });
        assert_eq!((claim(29).verdict, claim(30).verdict), (Undecided, Match));
    }

    #[test]
    fn a_phase_check_is_undecided_unless_nine_of_ten_runs_agree() {
        let judgment = || ClaimJudgment { verdict: Match, deciding: Some(1), note: None };
        assert_eq!(judge_phase(judgment(), 9, 10), judgment());
        let undecided = judge_phase(judgment(), 8, 10);
        assert_eq!((undecided.verdict, undecided.deciding), (Undecided, None));
        assert!(undecided.note.unwrap().starts_with("phase effect: 8 of 10"));
    }

    fn part(n: usize) -> Formula {
        Formula::Part(n)
    }

    fn claim(formula: &Formula, supports: &[f64], n: usize) -> (Verdict, Option<usize>) {
        let count = |support: &f64| {
            let holds = (support * RESAMPLE_COUNT as f64).round() as usize;
            ResampleCount { holds, fails: RESAMPLE_COUNT - holds }
        };
        let counts: Vec<ResampleCount> = supports.iter().map(count).collect();
        let judgment =
            judge_claim(formula, &counts, &Replications { n: Some(n), skewed: false, mixed: false, raised: 0 });
        (judgment.verdict, judgment.deciding)
    }

    #[test]
    fn a_claim_is_judged_by_its_support() {
        // a(20) = 0.0159.
        for (support, expected) in [(0.985, Match), (0.984, Undecided), (0.016, Undecided), (0.0155, Refuted)] {
            assert_eq!(claim(&part(0), &[support], 20).0, expected, "{support}");
        }
        assert_eq!(claim(&part(0), &[1.0], 9).0, Undecided);
        let not = Formula::Not(Box::new(part(0)));
        assert_eq!((claim(&not, &[1.0], 20).0, claim(&not, &[0.0], 20).0), (Refuted, Match));
    }

    #[test]
    fn a_claim_with_quantifiers_is_judged_part_by_part() {
        let all = Formula::All(vec![part(0), part(1), part(2)]);
        let any = Formula::Any(vec![part(0), part(1), part(2)]);
        // a(20) = 0.0159; a(20, 3): t(19, 1 - 0.025/3) = 2.625106, 2.693310, Phi = 0.0035.
        assert_eq!(claim(&all, &[0.985, 0.985, 1.0], 20), (Match, None));
        assert_eq!(claim(&all, &[1.0, 0.984, 1.0], 20), (Undecided, Some(1)));
        assert_eq!(claim(&all, &[1.0, 0.5, 0.004], 20), (Undecided, Some(1)));
        assert_eq!(claim(&all, &[1.0, 0.5, 0.003], 20), (Refuted, Some(2)));
        assert_eq!(claim(&any, &[0.0, 0.996, 0.5], 20), (Undecided, Some(1)));
        assert_eq!(claim(&any, &[0.0, 0.997, 0.5], 20), (Match, Some(1)));
        assert_eq!(claim(&any, &[0.015, 0.0, 0.015], 20), (Refuted, None));
    }

    #[test]
    fn a_claim_with_more_than_five_parts_needs_twenty_replications() {
        let all = |k: usize| Formula::All((0..k).map(part).collect());
        assert_eq!(claim(&all(5), &[1.0; 5], 10).0, Match);
        assert_eq!(claim(&all(6), &[1.0; 6], 19).0, Undecided);
        assert_eq!(claim(&all(6), &[1.0; 6], 20).0, Match);
    }

    #[test]
    fn a_claim_over_deterministic_points_is_decided_by_their_values() {
        let all = Formula::All(vec![part(0), part(1)]);
        let judged =
            |truths: [Option<bool>; 2]| judge_deterministic(&all, &truths).map(|claim| (claim.verdict, claim.deciding));
        assert_eq!(judged([Some(true), Some(true)]), Some((Match, None)));
        assert_eq!(judged([None, Some(false)]), Some((Refuted, Some(1))));
        assert_eq!(judged([None, Some(true)]), None);
    }

    #[test]
    fn counting_stops_early_without_a_change_of_the_verdict() {
        let resamples = Resamples::new("test", 20);
        let holds = |sample: &[u32]| Some(sample[0] < 10);
        let mut whole = ResampleCount::default();
        resamples.iter().for_each(|sample| whole.add(holds(sample)));
        let early = count_resamples(&resamples, holds);
        assert!(early.holds + early.fails < 1000 && whole.holds + whole.fails == RESAMPLE_COUNT);
        let replications = Replications { n: Some(20), skewed: false, mixed: false, raised: 0 };
        let judged = |count| judge_claim(&part(0), &[count], &replications).verdict;
        assert_eq!((judged(early), judged(whole)), (Undecided, Undecided));
    }
}
