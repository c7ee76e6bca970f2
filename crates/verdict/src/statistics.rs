//! Statistics of repeated runs: mean, extremes, median, skewness, confidence intervals and the bootstrap.
//!
//! The interval of a mean is Student's: mean +- t(n - 1, 0.975) s / sqrt(n), where s^2 is the unbiased variance. It
//! assumes approximately normal means and independent runs; named random streams make runs independent. The intervals
//! of other statistics are those of the percentile bootstrap (Efron and Tibshirani 1993, chapter 13) with Hesterberg's
//! expanded percentiles. Two points of a sweep share the seeds of their runs, so they are resampled jointly (common
//! random numbers; Law, Simulation Modeling and Analysis, section 11.2). The rules of verdicts use these functions.
//!
//! Quantiles of t are computed, not tabulated. For integer degrees of freedom the distribution is a finite sum of
//! powers of a cosine (Abramowitz and Stegun 26.7.3 and 26.7.4). The sum is inverted by bisection.

use fullpipe_units::{RandomStream, math};

/// Statistics of the values of one metric over the runs of one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampleStatistics {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); `None` for one value.
    pub ci95: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Median; the mean of the two middle values if the number of values is even.
    pub median: f64,
    /// Largest value.
    pub max: f64,
}

/// Returns statistics of `values`, which must be finite; `None` if there are no values.
pub fn summarize(values: &[f64]) -> Option<SampleStatistics> {
    let mean = mean(values)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some(SampleStatistics {
        n: values.len(),
        mean,
        ci95: half_width_95(values, mean),
        min: *sorted.first()?,
        median: quantile_of_sorted(&sorted, 0.5)?,
        max: *sorted.last()?,
    })
}

/// Returns the arithmetic mean; `None` without values. The mean is exact if all values are equal.
pub fn mean(values: &[f64]) -> Option<f64> {
    let first = *values.first()?;
    // Sums the deviations from the first value: for equal values the sum is exactly zero.
    Some(first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64)
}

/// Returns the standard deviation of a sample (n - 1); `None` for fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    variance(values, mean(values)?).map(f64::sqrt)
}

/// Returns the unbiased variance of a sample with this mean; `None` for fewer than two values.
fn variance(values: &[f64], mean: f64) -> Option<f64> {
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// Returns Jain's fairness index of shares (Jain, Chiu and Hawe, DEC-TR-301, 1984): 1 if all are equal, 1/n if all but
/// one are zero. `None` without values, or if all are zero.
pub fn jain_index(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Returns the quantile with linear interpolation between order statistics (type 7 of Hyndman and Fan 1996); `None`
/// without values. `probability` is clamped to 0..1.
pub fn quantile(values: &[f64], probability: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, probability)
}

/// Returns the same result as [`quantile`], for values in ascending order.
pub fn quantile_of_sorted(sorted: &[f64], probability: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = probability.clamp(0.0, 1.0) * last as f64;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64))
}

fn half_width_95(values: &[f64], mean: f64) -> Option<f64> {
    let n = values.len();
    variance(values, mean).map(|variance| student_t_quantile(n - 1, 0.95) * (variance / n as f64).sqrt())
}

/// Returns the adjusted sample skewness, G1 = sqrt(n (n - 1)) / (n - 2) m3 / m2^(3/2) (Joanes and Gill 1998). m2 and m3
/// are the second and third central moments. `None` for fewer than three values, or if all values are equal.
pub fn skewness(values: &[f64]) -> Option<f64> {
    let (n, mean) = (values.len() as f64, mean(values)?);
    let moment = |power: i32| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / n;
    let variance = moment(2);
    (n > 2.0 && variance > 0.0).then(|| (n * (n - 1.0)).sqrt() / (n - 2.0) * moment(3) / (variance * variance.sqrt()))
}

/// Returns the share of resamples that the percentile bootstrap excludes at each end: a(n, k) = Phi(-sqrt(n / (n - 1))
/// t(1 - 0.025 / k, n - 1)). With this share, the interval of n values is as wide as Student's for k simultaneous
/// tests. See section 4.3.3 of Hesterberg 2015, "What teachers should know about the bootstrap". Returns 0 for fewer
/// than two values.
pub fn expanded_tail_probability(n: usize, k: u64) -> f64 {
    if n < 2 {
        return 0.0;
    }
    let t = student_t_quantile(n - 1, 1.0 - 0.05 / k.max(1) as f64);
    let x = (n as f64 / (n - 1) as f64).sqrt() * t;
    0.5 * math::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The number of resamples of a bootstrap.
pub const RESAMPLE_COUNT: usize = 10_000;

/// Bootstrap resamples of n replications: samples with replacement of the numbers 0 to n - 1, drawn from the random
/// stream `bootstrap`. They depend only on the name, n and the sample size, so equal calls draw equal samples.
#[derive(Clone, Debug)]
pub struct Resamples {
    n: usize,
    /// The number of replications in a sample.
    size: usize,
    indices: Vec<u32>,
}

impl Resamples {
    /// Draws [`RESAMPLE_COUNT`] samples of n replications. Resamples with different names are independent.
    pub fn new(name: &str, n: usize) -> Self {
        Resamples::with_size(name, n, n)
    }

    /// Draws [`RESAMPLE_COUNT`] samples, each of `size` of the n replications. A sample represents a possible result of
    /// a publication with `size` runs of the same system.
    pub fn with_size(name: &str, n: usize, size: usize) -> Self {
        let mut stream = RandomStream::new(0, name, "bootstrap");
        let indices = (0..if n == 0 { 0 } else { RESAMPLE_COUNT * size })
            .map(|_| stream.uniform_below(n as u64) as u32)
            .collect();
        Resamples { n, size, indices }
    }

    /// Returns the number of replications, n.
    pub fn replications(&self) -> usize {
        self.n
    }

    /// Returns the sample with this number, from 0. The sample is empty if the number is not below [`RESAMPLE_COUNT`].
    pub fn get(&self, number: usize) -> &[u32] {
        self.indices.get(number * self.size..(number + 1) * self.size).unwrap_or_default()
    }

    /// Returns the samples. Each sample contains numbers of replications, from 0. There are no samples if n is 0.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        self.indices.chunks_exact(self.size.max(1))
    }
}

/// Returns the 95 % confidence interval of a statistic of n replications, by the percentile bootstrap with expanded
/// percentiles ([`expanded_tail_probability`]). `statistic` receives the numbers of the replications in a resample,
/// from 0. `None` for fewer than two replications, or if the statistic of a resample is not finite.
pub fn bootstrap_interval(resamples: &Resamples, statistic: impl FnMut(&[u32]) -> f64) -> Option<(f64, f64)> {
    if resamples.replications() < 2 {
        return None;
    }
    let mut results: Vec<f64> = resamples.iter().map(statistic).collect();
    if !results.iter().all(|result| result.is_finite()) {
        return None;
    }
    results.sort_by(f64::total_cmp);
    let tail = expanded_tail_probability(resamples.replications(), 1);
    Some((quantile_of_sorted(&results, tail)?, quantile_of_sorted(&results, 1.0 - tail)?))
}

/// Returns the 95 % confidence interval of a quantile over runs by order statistics (David and Nagaraja 2003, section
/// 7.1). The interval does not assume a distribution. `None` if there are too few runs: a median needs 6 runs, and a
/// 95th percentile needs 72.
pub fn quantile_interval(values: &[f64], probability: f64) -> Option<(f64, f64)> {
    let n = values.len();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    // The number of values below the quantile is binomial: `cumulative[i]` is the probability of at most i.
    let mut term = math::pow(1.0 - probability, n as f64);
    let mut cumulative = vec![term];
    for i in 0..n {
        term *= (n - i) as f64 / (i + 1) as f64 * probability / (1.0 - probability);
        cumulative.push(cumulative[i] + term);
    }
    let below = cumulative.iter().take_while(|probability| **probability <= 0.025).count().checked_sub(1)?;
    let above = cumulative.iter().position(|probability| 1.0 - probability <= 0.025).filter(|above| *above < n)?;
    Some((*sorted.get(below)?, *sorted.get(above)?))
}

/// Returns the upper 95 % confidence bound of the share of runs with an event that none of n runs had (the rule of
/// three).
pub fn upper_bound_of_share(n: usize) -> f64 {
    (3.0 / n as f64).min(1.0)
}

/// Returns the value t for which a variable with Student's distribution is within ±t with probability `confidence`,
/// between 0 and 1. Returns infinity for zero degrees of freedom.
pub fn student_t_quantile(degrees_of_freedom: usize, confidence: f64) -> f64 {
    if degrees_of_freedom == 0 {
        return f64::INFINITY;
    }
    // Above this limit the finite sum is long. The sum at the limit determines the normal quantile, to which the
    // expansion in 1/degrees is added.
    const LONG: usize = 1000;
    if degrees_of_freedom > LONG {
        let at_limit = student_t_quantile(LONG, confidence);
        let mut normal = at_limit;
        for _ in 0..5 {
            normal = at_limit - excess_over_normal(normal, LONG as f64);
        }
        return normal + excess_over_normal(normal, degrees_of_freedom as f64);
    }
    let (mut low, mut high) = (0.0, std::f64::consts::FRAC_PI_2);
    // Each step halves the interval; after 60 steps its width is at the resolution of the float.
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

/// Returns the difference between the quantile of t and the normal quantile z: the first two terms of Abramowitz and
/// Stegun 26.7.5. From a thousand degrees on, the third term is below 1e-8.
fn excess_over_normal(z: f64, degrees: f64) -> f64 {
    let square = z * z;
    z * (square + 1.0) / (4.0 * degrees) + z * ((5.0 * square + 16.0) * square + 3.0) / (96.0 * degrees * degrees)
}

/// Returns the probability that |T| < t, where t = sqrt(degrees) tan(angle).
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
    fn quantiles_of_t_match_the_published_table() {
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
            assert!((student_t_quantile(degrees, 0.95) - expected).abs() <= 0.0005 + 1e-9, "{degrees}");
        }
        let table_995 = [(1, 63.657), (2, 9.925), (7, 3.499), (29, 2.756), (100, 2.626)];
        for (degrees, expected) in table_995 {
            assert!((student_t_quantile(degrees, 0.99) - expected).abs() <= 0.0005 + 1e-9, "{degrees}");
        }
    }

    #[test]
    fn quantiles_of_t_match_closed_forms_for_one_and_two_degrees() {
        // One degree: t = tan(pi p / 2). Two: t = p sqrt(2 / (1 - p^2)).
        let confidence: f64 = 0.95;
        let one =
            math::sin(std::f64::consts::FRAC_PI_2 * confidence) / math::cos(std::f64::consts::FRAC_PI_2 * confidence);
        assert!((student_t_quantile(1, confidence) / one - 1.0).abs() < 1e-12);
        let two = confidence * (2.0 / (1.0 - confidence * confidence)).sqrt();
        assert!((student_t_quantile(2, confidence) / two - 1.0).abs() < 1e-12);
    }

    #[test]
    fn quantiles_of_t_approach_the_normal_quantile_for_many_degrees() {
        // The normal quantile is 1.959963985; the expansion adds (z^3 + z) / (4 degrees) = 2.37227 / degrees:
        // 1.959966357 at a million.
        assert!((student_t_quantile(1_000_000, 0.95) - 1.959_966_357).abs() < 1e-8);
        assert!(student_t_quantile(1000, 0.95) > student_t_quantile(1001, 0.95));
        assert!(student_t_quantile(1001, 0.95) > student_t_quantile(5000, 0.95));
    }

    #[test]
    fn a_summary_matches_values_computed_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 40/8 = 5, squares 9+1+1+1+0+0+4+16 = 32, s^2 = 32/7, s/sqrt(8) = 0.7559289,
        // t(7, 0.975) = 2.364624 (R, qt(0.975, 7)): half width 1.787488.
        let summary = summarize(&[9.0, 4.0, 2.0, 4.0, 5.0, 4.0, 7.0, 5.0]).unwrap();
        assert_eq!((summary.n, summary.mean, summary.min, summary.median, summary.max), (8, 5.0, 2.0, 4.5, 9.0));
        assert!((summary.ci95.unwrap() - 1.787_488).abs() < 1e-5);
    }

    #[test]
    fn one_value_has_no_interval_and_no_values_have_no_summary() {
        let summary = summarize(&[3.0]).unwrap();
        assert_eq!((summary.n, summary.mean, summary.ci95, summary.median), (1, 3.0, None, 3.0));
        assert_eq!(summarize(&[]), None);
    }

    #[test]
    fn equal_values_have_exactly_zero_spread() {
        // The sum of ten times 0.1 is not exactly 1 in floats.
        let summary = summarize(&[0.1; 10]).unwrap();
        assert_eq!((summary.mean, summary.ci95), (0.1, Some(0.0)));
    }

    #[test]
    fn expanded_tails_match_the_published_table() {
        // Phi(-sqrt(n / (n - 1)) t(0.975, n - 1)): n = 10: t = 2.262157, 1.054093 t = 2.384525, Phi = 0.00855.
        for (n, expected) in [(10, 0.0086), (20, 0.0159), (50, 0.0212)] {
            assert!(
                (expanded_tail_probability(n, 1) - expected).abs() < 0.00005,
                "{n}: {}",
                expanded_tail_probability(n, 1)
            );
        }
        // Many runs: 0.025, and half of it for two tests; t(0.9875, 9) = 2.685011: 2.830252, Phi = 0.002326.
        assert!((expanded_tail_probability(100_000, 1) - 0.025).abs() < 1e-5);
        assert!((expanded_tail_probability(100_000, 2) - 0.0125).abs() < 1e-5);
        assert!((expanded_tail_probability(10, 2) - 0.002_326).abs() < 2e-6, "{}", expanded_tail_probability(10, 2));
        assert_eq!((expanded_tail_probability(0, 1), expanded_tail_probability(1, 1)), (0.0, 0.0));
    }

    #[test]
    fn skewness_matches_values_computed_by_hand() {
        // 0, 0, 3: mean 1, m2 = 6/3, m3 = (-1 - 1 + 8)/3 = 2: g1 = 2 / 2^1.5 = 0.7071068, G1 = sqrt(6) g1 = 1.7320508.
        assert!((skewness(&[0.0, 0.0, 3.0]).unwrap() - 3f64.sqrt()).abs() < 1e-12);
        assert!(skewness(&[1.0, 2.0, 3.0]).unwrap().abs() < 1e-12);
        assert_eq!((skewness(&[1.0, 2.0]), skewness(&[4.0; 5])), (None, None));
    }

    #[test]
    fn quantile_intervals_need_enough_runs() {
        let values = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        // Median of six: P(no value below) = 1/64 = 0.0156. Of five: 1/32 = 0.031. Of nine: P(at most one of nine) =
        // 10/512 = 0.0195, at most two 46/512 = 0.09: from the second to the eighth value.
        assert_eq!(quantile_interval(&values(5), 0.5), None);
        assert_eq!(quantile_interval(&values(6), 0.5), Some((1.0, 6.0)));
        assert_eq!(quantile_interval(&values(9), 0.5), Some((2.0, 8.0)));
        // 0.95^71 = 0.0262, 0.95^72 = 0.0249.
        assert_eq!(quantile_interval(&values(71), 0.95), None);
        assert_eq!(quantile_interval(&values(72), 0.95).map(|(_, high)| high), Some(72.0));
    }

    #[test]
    fn the_share_bound_is_three_over_n_if_no_run_has_the_event() {
        assert_eq!((upper_bound_of_share(30), upper_bound_of_share(2)), (0.1, 1.0));
    }

    #[test]
    fn the_interval_covers_the_true_mean_at_its_nominal_rate() {
        // 4000 samples of 5 uniform numbers: the coverage of a 95 % interval. The mean of five uniform numbers is close
        // to normal (their kurtosis is below that of the normal distribution), so the true coverage is 0.94..0.95. Four
        // standard errors of 4000 trials are 0.014.
        let mut stream = RandomStream::new(1, "test", "coverage");
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
    fn the_bootstrap_interval_of_a_mean_is_as_wide_as_students() {
        // 400 values 0..399 / 400: s = 0.2890, standard error 0.01445, t(399) = 1.966: 0.49875 +- 0.0284.
        let values: Vec<f64> = (0..400).map(|i| f64::from(i) / 400.0).collect();
        let resamples = Resamples::new("test", 400);
        let mean_of = |sample: &[u32]| sample.iter().map(|index| values[*index as usize]).sum::<f64>() / 400.0;
        let (low, high) = bootstrap_interval(&resamples, mean_of).unwrap();
        assert!((low - 0.4704).abs() < 0.0012 && (high - 0.5271).abs() < 0.0012, "{low} {high}");
        assert_eq!(bootstrap_interval(&resamples, mean_of), Some((low, high)));
        assert_eq!(bootstrap_interval(&Resamples::new("test", 1), |_| 1.0), None);
        assert_eq!(bootstrap_interval(&Resamples::new("test", 0), |_| 1.0), None);
        assert_eq!(bootstrap_interval(&Resamples::new("test", 3), |_| f64::NAN), None);
    }

    /// The median of a resample of the values 1 to 7 is 1 if at least four of seven draws are 1, each with probability
    /// 1/7: 0.0099. It is at most 2 with probability 0.108. a(7) = Phi(-sqrt(7/6) 2.446912) = 0.0041, so 1 is the
    /// quantile.
    #[test]
    fn the_bootstrap_interval_of_a_median_matches_combinatorics() {
        let median =
            |sample: &[u32]| quantile(&sample.iter().map(|i| f64::from(i + 1)).collect::<Vec<_>>(), 0.5).unwrap();
        assert_eq!(bootstrap_interval(&Resamples::new("test", 7), median), Some((1.0, 7.0)));
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
