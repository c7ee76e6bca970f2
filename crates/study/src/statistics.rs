//! What a study says about repeated runs: mean, extremes, median, confidence intervals.
//!
//! The interval of a mean is Student's: mean +- t(n - 1, 0.975) s / sqrt(n), with s^2 the unbiased variance. It assumes
//! independent runs, which named random streams give, and roughly normal means. Two points of a sweep share the seeds of
//! their runs, so their difference is judged by the interval of the paired differences (common random numbers; Law,
//! Simulation Modeling and Analysis, section 11.2). For other statistics there is the percentile bootstrap (Efron and
//! Tibshirani 1993, chapter 13).
//!
//! The quantiles of t are computed, not tabulated: for whole degrees of freedom the distribution is a finite sum of
//! powers of a cosine (Abramowitz and Stegun 26.7.3 and 26.7.4), inverted by bisection.

use fullpipe_units::{Stream, math};

/// Statistics of the runs of one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half width of the 95 % interval of the mean; `None` for one value.
    pub ci95: Option<f64>,
    /// Smallest.
    pub min: f64,
    /// Median; the mean of the middle two if their number is even.
    pub median: f64,
    /// Largest.
    pub max: f64,
}

/// Statistics of some values; `None` if there are none. Values must be finite.
pub fn summarize(values: &[f64]) -> Option<Summary> {
    let mean = mean(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(Summary {
        n: values.len(),
        mean,
        ci95: half_width_95(values, mean),
        min: *sorted.first()?,
        median: quantile_of_sorted(&sorted, 0.5)?,
        max: *sorted.last()?,
    })
}

/// Arithmetic mean; `None` of nothing. Exact if all values are equal.
pub fn mean(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    // Deviations from the first value: equal values sum to exactly nothing.
    Some(first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64)
}

/// Standard deviation of a sample (n - 1); `None` of fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    variance(values, mean(values)?).map(f64::sqrt)
}

/// The unbiased variance of a sample whose mean is known; `None` of fewer than two values.
fn variance(values: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// Jain's index of fairness of shares (Jain, Chiu and Hawe, DEC-TR-301, 1984): 1 if all are equal, 1/n if one has all;
/// `None` of nothing, or if nobody has anything.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Quantile with linear interpolation between order statistics (type 7 of Hyndman and Fan 1996); `None` of nothing.
/// `probability` is clamped to 0..1.
pub fn quantile(values: &[f64], probability: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, probability)
}

fn quantile_of_sorted(sorted: &[f64], probability: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = probability.clamp(0.0, 1.0) * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64))
}

fn half_width_95(values: &[f64], mean: f64) -> Option<f64> {
    let n = values.len();
    variance(values, mean).map(|variance| student_t(n - 1, 0.95) * (variance / n as f64).sqrt())
}

/// Statistics of first minus second, run by run. Pairs with a missing side are left out; `None` if no pair is left.
pub fn paired_difference(first: &[Option<f64>], second: &[Option<f64>]) -> Option<Summary> {
    let differences: Vec<f64> = first
        .iter()
        .zip(second)
        .filter_map(|(first, second)| Some((*first)? - (*second)?))
        .filter(|difference| difference.is_finite())
        .collect();
    summarize(&differences)
}

/// A 95 % percentile bootstrap interval of any statistic: `resamples` samples with replacement, drawn from the stream
/// that `seed` names. `None` of nothing, or if the statistic is never finite.
pub fn bootstrap_95(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    resamples: usize,
    seed: u64,
) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let mut stream = Stream::new(seed, "study", "bootstrap");
    let mut sample = vec![0.0; values.len()];
    let mut results = Vec::with_capacity(resamples);
    for _ in 0..resamples {
        for slot in &mut sample {
            *slot = values[stream.below(values.len() as u64) as usize];
        }
        let result = statistic(&sample);
        if result.is_finite() {
            results.push(result);
        }
    }
    Some((quantile(&results, 0.025)?, quantile(&results, 0.975)?))
}

/// A 95 % percentile bootstrap interval of the median of `first` over the median of `second`, both drawn anew in each of
/// 10 000 resamples; what is missing is left out. `None` if nothing is left of one of them.
///
/// ```
/// use fullpipe_study::statistics::ratio_of_medians_95;
///
/// assert_eq!(ratio_of_medians_95(&[Some(3.0), None], &[Some(2.0), Some(2.0)]), Some((1.5, 1.5)));
/// ```
pub fn ratio_of_medians_95(first: &[Option<f64>], second: &[Option<f64>]) -> Option<(f64, f64)> {
    const RESAMPLES: usize = 10_000;
    let medians = |values: &[Option<f64>], purpose: &str| {
        let values: Vec<f64> = values.iter().copied().flatten().collect();
        let mut stream = Stream::new(0, "ratio of medians", purpose);
        let mut median = || {
            let sample: Vec<f64> = values.iter().map(|_| values[stream.below(values.len() as u64) as usize]).collect();
            quantile(&sample, 0.5)
        };
        (0..RESAMPLES).map(|_| median()).collect::<Option<Vec<f64>>>()
    };
    let (first, second) = (medians(first, "first")?, medians(second, "second")?);
    let ratios: Vec<f64> = first.iter().zip(&second).map(|(first, second)| first / second).collect();
    let finite = ratios.iter().all(|ratio| ratio.is_finite());
    finite.then(|| Some((quantile(&ratios, 0.025)?, quantile(&ratios, 0.975)?)))?
}

/// The t that encloses `confidence` (two-sided, between 0 and 1) of Student's distribution; zero degrees of freedom
/// give infinity.
pub fn student_t(degrees_of_freedom: usize, confidence: f64) -> f64 {
    if degrees_of_freedom == 0 {
        return f64::INFINITY;
    }
    // Beyond this the finite sum gets long: it gives the normal quantile, from which the expansion in 1/degrees goes on.
    const LONG: usize = 1000;
    if degrees_of_freedom > LONG {
        let at_limit = student_t(LONG, confidence);
        let mut normal = at_limit;
        for _ in 0..5 {
            normal = at_limit - excess_over_normal(normal, LONG as f64);
        }
        return normal + excess_over_normal(normal, degrees_of_freedom as f64);
    }
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    // The interval halves each time: after 60 it is as short as a float gets.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if enclosed(degrees_of_freedom, middle) < confidence {
            low = middle;
        } else {
            high = middle;
        }
    }
    let angle = 0.5 * (low + high);
    (degrees_of_freedom as f64).sqrt() * math::sin(angle) / math::cos(angle)
}

/// What the quantile of t exceeds the normal quantile z by: the first two terms of Abramowitz and Stegun 26.7.5; the third
/// is below 1e-8 from a thousand degrees on.
fn excess_over_normal(z: f64, degrees: f64) -> f64 {
    let square = z * z;
    z * (square + 1.0) / (4.0 * degrees) + z * ((5.0 * square + 16.0) * square + 3.0) / (96.0 * degrees * degrees)
}

/// Probability that |T| < t, where t = sqrt(degrees) tan(angle).
fn enclosed(degrees: usize, angle: f64) -> f64 {
    let (sine, cosine) = (math::sin(angle), math::cos(angle));
    let square = cosine * cosine;
    let series = |first_power: usize, mut term: f64| {
        let mut sum = 0.0;
        for power in (first_power..degrees).step_by(2) {
            sum += term;
            term *= square * (power + 1) as f64 / (power + 2) as f64;
        }
        sum
    };
    if degrees % 2 == 1 {
        // 2/pi (angle + sin (cos + 2/3 cos^3 + (2 4)/(3 5) cos^5 + ... up to cos^(degrees - 2)))
        std::f64::consts::FRAC_2_PI * (angle + sine * series(1, cosine))
    } else {
        // sin (1 + 1/2 cos^2 + (1 3)/(2 4) cos^4 + ... up to cos^(degrees - 2))
        sine * series(0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quantiles_of_t_are_those_of_the_published_table() {
        // NIST/SEMATECH e-Handbook of Statistical Methods, section 1.3.6.7.2: critical values, three decimals.
        let table_975 = [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (19, 2.093),
            (29, 2.045),
            (30, 2.042),
            (60, 2.000),
            (99, 1.984),
            (100, 1.984),
        ];
        for (degrees, expected) in table_975 {
            assert!((student_t(degrees, 0.95) - expected).abs() <= 0.0005 + 1e-9, "{degrees}");
        }
        let table_995 = [(1, 63.657), (2, 9.925), (7, 3.499), (29, 2.756), (100, 2.626)];
        for (degrees, expected) in table_995 {
            assert!((student_t(degrees, 0.99) - expected).abs() <= 0.0005 + 1e-9, "{degrees}");
        }
    }

    #[test]
    fn quantiles_of_t_have_closed_forms_for_one_and_two_degrees() {
        // One degree: t = tan(pi p / 2). Two: t = p sqrt(2 / (1 - p^2)).
        let confidence: f64 = 0.95;
        let one =
            math::sin(std::f64::consts::FRAC_PI_2 * confidence) / math::cos(std::f64::consts::FRAC_PI_2 * confidence);
        assert!((student_t(1, confidence) / one - 1.0).abs() < 1e-12);
        let two = confidence * (2.0 / (1.0 - confidence * confidence)).sqrt();
        assert!((student_t(2, confidence) / two - 1.0).abs() < 1e-12);
    }

    #[test]
    fn many_degrees_approach_the_normal_distribution() {
        // The normal quantile is 1.959963985; the expansion adds (z^3 + z) / (4 degrees) = 2.37227 / degrees:
        // 1.959966357 at a million.
        assert!((student_t(1_000_000, 0.95) - 1.959_966_357).abs() < 1e-8);
        assert!(student_t(1000, 0.95) > student_t(1001, 0.95));
        assert!(student_t(1001, 0.95) > student_t(5000, 0.95));
    }

    #[test]
    fn a_sample_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 40/8 = 5, squares 9+1+1+1+0+0+4+16 = 32, s^2 = 32/7, s/sqrt(8) = 0.7559289,
        // t(7, 0.975) = 2.364624 (R, qt(0.975, 7)): half width 1.787488.
        let summary = summarize(&[9.0, 4.0, 2.0, 4.0, 5.0, 4.0, 7.0, 5.0]).unwrap();
        assert_eq!((summary.n, summary.mean, summary.min, summary.median, summary.max), (8, 5.0, 2.0, 4.5, 9.0));
        assert!((summary.ci95.unwrap() - 1.787_488).abs() < 1e-5);
    }

    #[test]
    fn one_value_has_no_interval_and_none_has_no_summary() {
        let summary = summarize(&[3.0]).unwrap();
        assert_eq!((summary.n, summary.mean, summary.ci95, summary.median), (1, 3.0, None, 3.0));
        assert_eq!(summarize(&[]), None);
    }

    #[test]
    fn equal_values_have_no_spread_at_all() {
        // Ten times 0.1 does not add up to 1 in floats.
        let summary = summarize(&[0.1; 10]).unwrap();
        assert_eq!((summary.mean, summary.ci95), (0.1, Some(0.0)));
    }

    #[test]
    fn a_paired_interval_sees_what_common_random_numbers_leave() {
        // Runs differ by hundreds, the pairs by exactly one: the difference is 1 +- 0. The third pair has a side missing.
        let first = [Some(100.0), Some(300.0), None, Some(500.0)];
        let second = [Some(99.0), Some(299.0), Some(1.0), Some(499.0)];
        let difference = paired_difference(&first, &second).unwrap();
        assert_eq!((difference.n, difference.mean, difference.ci95), (3, 1.0, Some(0.0)));
    }

    #[test]
    fn the_interval_covers_the_mean_as_often_as_it_says() {
        // 4000 samples of 5 uniform numbers: coverage of a 95 % interval. Five uniforms are near enough to normal that
        // the true coverage is 0.94..0.95 (their kurtosis is below the normal's); four standard errors of 4000 trials
        // are 0.014.
        let mut stream = Stream::new(1, "test", "coverage");
        let trials = 4000;
        let covered = (0..trials)
            .filter(|_| {
                let sample: Vec<f64> = (0..5).map(|_| stream.uniform()).collect();
                let summary = summarize(&sample).unwrap();
                (summary.mean - 0.5).abs() <= summary.ci95.unwrap()
            })
            .count();
        let coverage = covered as f64 / f64::from(trials);
        assert!((0.92..0.965).contains(&coverage), "{coverage}");
    }

    #[test]
    fn the_bootstrap_of_a_mean_is_near_its_standard_error() {
        // 400 values 0..399 / 400: s = 0.2890, standard error 0.01445, so the interval is about 0.49875 +- 0.0283.
        let values: Vec<f64> = (0..400).map(|i| f64::from(i) / 400.0).collect();
        let (low, high) = bootstrap_95(&values, |sample| mean(sample).unwrap_or(f64::NAN), 2000, 7).unwrap();
        assert!((low - 0.4704).abs() < 0.004 && (high - 0.5271).abs() < 0.004, "{low} {high}");
        assert_eq!(bootstrap_95(&values, |sample| sample[0], 50, 7), bootstrap_95(&values, |sample| sample[0], 50, 7));
        assert_eq!(bootstrap_95(&[], |_| 0.0, 10, 7), None);
    }

    /// Of seven values 1 to 7 the median of a resample is 1 with probability 0.010 (four of seven or more are 1, each with
    /// 1/7) and at most 2 with 0.108: so 2 is the quantile at 0.025, and 6 that at 0.975.
    #[test]
    fn the_interval_of_a_ratio_of_medians_by_counting() {
        let seven: Vec<Option<f64>> = (1..=7).map(|value| Some(f64::from(value))).collect();
        assert_eq!(ratio_of_medians_95(&seven, &[Some(1.0)]), Some((2.0, 6.0)));
        assert_eq!(ratio_of_medians_95(&[Some(1.0)], &seven), Some((1.0 / 6.0, 0.5)));
        assert_eq!(ratio_of_medians_95(&[None], &seven), None);
        assert_eq!(ratio_of_medians_95(&seven, &[Some(0.0)]), None);
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_bounds_hold(mut values in prop::collection::vec(-1e6..1e6f64, 1..40)) {
            let summary = summarize(&values).unwrap();
            prop_assert!(summary.min <= summary.median && summary.median <= summary.max);
            prop_assert!(summary.min <= summary.mean + 1e-6 && summary.mean <= summary.max + 1e-6);
            values.reverse();
            let reversed = summarize(&values).unwrap();
            prop_assert_eq!((reversed.min, reversed.median, reversed.max), (summary.min, summary.median, summary.max));
            prop_assert!((reversed.mean - summary.mean).abs() < 1e-6);
        }

        #[test]
        fn enclosed_probability_grows_with_the_angle(degrees in 1usize..200, low in 0.0..1.5f64, step in 0.001..0.07f64) {
            prop_assert!(enclosed(degrees, low) < enclosed(degrees, low + step) + 1e-12);
        }
    }
}
