//! Compares samples with their distributions: means, variances and the distribution function.

use fullpipe_units::{Duration, RandomStream, math};
use fullpipe_workload::Distribution;
use std::f64::consts::{E, FRAC_1_SQRT_2, PI};

const SAMPLES: usize = 200_000;

/// Normal distribution function by Marsaglia's series (Journal of Statistical Software 11(4), 2004):
/// 1/2 + phi(x) (x + x^3/3 + x^5/(3 5) + ...).
fn normal(x: f64) -> f64 {
    if x.abs() > 8.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut sum, mut term, mut odd) = (x, x, 3.0);
    while sum + term != sum {
        term *= x * x / odd;
        sum += term;
        odd += 2.0;
    }
    0.5 + sum * math::exp(-x * x / 2.0) / (2.0 * PI).sqrt()
}

struct Case {
    distribution: Distribution,
    /// Mean and variance from the textbook formulas, as numbers.
    mean: f64,
    variance: f64,
    /// Distribution function.
    cumulative: fn(f64) -> f64,
}

fn cases() -> Vec<Case> {
    vec![
        Case {
            distribution: Distribution::Uniform { low: 2.0, high: 6.0 },
            mean: 4.0,
            variance: 16.0 / 12.0,
            cumulative: |x| (x - 2.0) / 4.0,
        },
        Case {
            distribution: Distribution::Exponential { mean: 3.0 },
            mean: 3.0,
            variance: 9.0,
            cumulative: |x| 1.0 - math::exp(-x / 3.0),
        },
        Case {
            // a m / (a - 1) = 13.5 / 3.5; a m^2 / ((a - 1)^2 (a - 2)) = 40.5 / (12.25 * 2.5).
            distribution: Distribution::Pareto { shape: 4.5, scale: 3.0 },
            mean: 27.0 / 7.0,
            variance: 40.5 / 30.625,
            cumulative: |x| 1.0 - math::pow(3.0 / x, 4.5),
        },
        Case {
            // Density 2 x^-3 / (3/4) on 1..2: mean (8/3)(1 - 1/2) = 4/3, second moment (8/3) ln 2.
            distribution: Distribution::BoundedPareto { shape: 2.0, low: 1.0, high: 2.0 },
            mean: 4.0 / 3.0,
            variance: 8.0 / 3.0 * std::f64::consts::LN_2 - 16.0 / 9.0,
            cumulative: |x| (1.0 - 1.0 / (x * x)) / 0.75,
        },
        Case {
            // exp(1 + 1/8); (exp(1/4) - 1) exp(2 + 1/4).
            distribution: Distribution::LogNormal { mu: 1.0, sigma: 0.5 },
            mean: 3.080_216_848_918_031,
            variance: 2.694_758_124_344_943,
            cumulative: |x| normal((math::ln(x) - 1.0) / 0.5),
        },
        Case {
            // Shape 2 is Rayleigh's distribution: sqrt(pi) / 2 and 1 - pi / 4 at scale 1.
            distribution: Distribution::Weibull { shape: 2.0, scale: 1.0 },
            mean: 0.886_226_925_452_758,
            variance: 1.0 - PI / 4.0,
            cumulative: |x| 1.0 - math::exp(-x * x),
        },
        Case {
            // 120 + 0.577 216 * 36; (36 pi)^2 / 6.
            distribution: Distribution::ExtremeValue { location: 120.0, scale: 36.0 },
            mean: 140.779_763_936_456,
            variance: 1296.0 * PI * PI / 6.0,
            cumulative: |x| math::exp(-math::exp(-(x - 120.0) / 36.0)),
        },
        Case {
            // Pieces of weight 0.4 uniform on 5..10 and 0.6 on 10..20: mean 0.4 * 7.5 + 0.6 * 15 = 12; second moment
            // 0.4 (1000 - 125) / 15 + 0.6 (8000 - 1000) / 30 = 23.333 + 140.
            distribution: Distribution::Empirical { points: vec![(5.0, 0.0), (10.0, 0.4), (20.0, 1.0)] },
            mean: 12.0,
            variance: 163.333_333_333 - 144.0,
            cumulative: |x| if x < 10.0 { (x - 5.0) * 0.08 } else { 0.4 + (x - 10.0) * 0.06 },
        },
    ]
}

#[test]
fn means_match_the_closed_forms() {
    for (number, case) in cases().iter().enumerate() {
        let claimed = case.distribution.mean();
        assert!((claimed - case.mean).abs() < 1e-9 * case.mean, "{:?}: {claimed}", case.distribution);
        let mut random = RandomStream::new(11, "mean", &number.to_string());
        let sum: f64 = (0..SAMPLES).map(|_| case.distribution.sample(&mut random)).sum();
        let found = sum / SAMPLES as f64;
        // Five standard errors of the mean.
        let bound = 5.0 * (case.variance / SAMPLES as f64).sqrt();
        assert!((found - case.mean).abs() < bound, "{:?}: {found}, bound {bound}", case.distribution);
    }
}

#[test]
fn second_moments_match_the_closed_forms() {
    for (number, case) in cases().iter().enumerate() {
        let mut random = RandomStream::new(12, "variance", &number.to_string());
        let deviations: Vec<f64> =
            (0..SAMPLES).map(|_| (case.distribution.sample(&mut random) - case.mean).powi(2)).collect();
        let found = deviations.iter().sum::<f64>() / SAMPLES as f64;
        // The bound is five standard errors; the standard error of the squared deviations comes from the samples themselves. It
        // is finite: the Pareto distribution of the table has a fourth moment.
        let spread = deviations.iter().map(|d| (d - found).powi(2)).sum::<f64>() / SAMPLES as f64;
        let bound = 5.0 * (spread / SAMPLES as f64).sqrt();
        assert!((found - case.variance).abs() < bound, "{:?}: {found}, bound {bound}", case.distribution);
        assert!(bound < 0.1 * case.variance, "{:?}: the bound {bound} is too wide", case.distribution);
    }
}

#[test]
fn samples_follow_the_distribution_function() {
    for (number, case) in cases().iter().enumerate() {
        let mut random = RandomStream::new(13, "curve", &number.to_string());
        let mut samples: Vec<f64> = (0..SAMPLES).map(|_| case.distribution.sample(&mut random)).collect();
        samples.sort_by(f64::total_cmp);
        let n = SAMPLES as f64;
        let distance = samples.iter().enumerate().fold(0.0f64, |largest, (rank, &sample)| {
            let expected = (case.cumulative)(sample);
            largest.max(expected - rank as f64 / n).max((rank + 1) as f64 / n - expected)
        });
        // Kolmogorov-Smirnov: sqrt(n) D exceeds 1.95 in one of a thousand cases (sqrt(ln(2000) / 2) = 1.949).
        assert!(n.sqrt() * distance < 1.95, "{:?}: {}", case.distribution, n.sqrt() * distance);
    }
}

#[test]
fn quantiles_match_values_computed_by_hand() {
    let quantile = |distribution: Distribution, probability| distribution.quantile(probability);
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12 * expected.abs(), "{found}");
    near(quantile(Distribution::Exponential { mean: 2.0 }, 1.0 - 1.0 / E), 2.0);
    // Half of a Pareto distribution of shape 1 lies below twice its smallest value.
    near(quantile(Distribution::Pareto { shape: 1.0, scale: 7.0 }, 0.5), 14.0);
    near(quantile(Distribution::BoundedPareto { shape: 2.0, low: 1.0, high: 2.0 }, 0.0), 1.0);
    near(quantile(Distribution::BoundedPareto { shape: 1.0, low: 1.0, high: 4.0 }, 2.0 / 3.0), 2.0);
    near(quantile(Distribution::LogNormal { mu: 2.0, sigma: 3.0 }, 0.5), E * E);
    // One standard deviation above the mean: probability 0.841 344 746 068 543.
    near(quantile(Distribution::LogNormal { mu: 0.0, sigma: 1.0 }, 0.841_344_746_068_542_9), E);
    near(quantile(Distribution::Weibull { shape: 0.5, scale: 4.0 }, 1.0 - 1.0 / E), 4.0);
    // exp(-exp(0)) = 1/e at the location.
    near(quantile(Distribution::ExtremeValue { location: 55.0, scale: 6.0 }, 1.0 / E), 55.0);
    near(quantile(Distribution::Uniform { low: 1.0, high: 3.0 }, 0.25), 1.5);
    near(quantile(Distribution::Constant { value: 3.5 }, FRAC_1_SQRT_2), 3.5);
}

#[test]
fn empirical_tables_may_have_jumps_and_flat_parts() {
    // Two values with probabilities 1/4 and 1/4, then 5..9 with the rest, and nothing between 2 and 5.
    let table = Distribution::Empirical { points: vec![(1.0, 0.25), (2.0, 0.25), (2.0, 0.5), (5.0, 0.5), (9.0, 1.0)] };
    table.check().unwrap();
    for (probability, value) in [(0.0, 1.0), (0.25, 1.0), (0.3, 2.0), (0.5, 2.0), (0.75, 7.0), (0.999, 8.992)] {
        assert!((table.quantile(probability) - value).abs() < 1e-12, "{probability}: {}", table.quantile(probability));
    }
    // 1/4 * 1 + 1/4 * 2 + 1/2 * 7.
    assert!((table.mean() - 4.25).abs() < 1e-12);
}

#[test]
fn means_at_the_limits_of_parameters_are_correct() {
    assert!(Distribution::Pareto { shape: 1.0, scale: 2.0 }.mean().is_infinite());
    // Shape 1 on 1..e: the integral of x^-1 is 1, divided by the remaining probability 1 - 1/e.
    let mean = Distribution::BoundedPareto { shape: 1.0, low: 1.0, high: E }.mean();
    assert!((mean - 1.581_976_706_869_326).abs() < 1e-12, "{mean}");
    // Gamma(1 + 2) = 2.
    assert!((Distribution::Weibull { shape: 0.5, scale: 3.0 }.mean() - 6.0).abs() < 1e-12);
}

#[test]
fn sample_uses_one_random_number_for_every_distribution() {
    let mut after = RandomStream::new(1, "a", "b");
    after.uniform();
    let expected = after.uniform();
    let constant = Distribution::Constant { value: 1.0 };
    for distribution in cases().into_iter().map(|case| case.distribution).chain([constant]) {
        let mut random = RandomStream::new(1, "a", "b");
        distribution.sample(&mut random);
        assert_eq!(random.uniform(), expected, "{distribution:?}");
    }
}

#[test]
fn sizes_and_times_stay_within_the_range_of_counters() {
    let mut random = RandomStream::new(2, "a", "b");
    let sizes = |distribution: Distribution, random: &mut RandomStream| -> Vec<u64> {
        (0..1000).map(|_| distribution.sample_bytes(random)).collect()
    };
    assert!(sizes(Distribution::Constant { value: 0.0 }, &mut random).iter().all(|&size| size == 1));
    assert!(sizes(Distribution::Constant { value: 2.5 }, &mut random).iter().all(|&size| size == 3));
    // Half of the samples of a Pareto distribution of shape 0.01 exceed 2^100.
    let huge = sizes(Distribution::Pareto { shape: 0.01, scale: 1.0 }, &mut random);
    assert_eq!(huge.iter().max(), Some(&(1 << 50)));
    let below_zero = Distribution::ExtremeValue { location: -1e6, scale: 1.0 };
    assert!(sizes(below_zero.clone(), &mut random).iter().all(|&size| size == 1));
    assert_eq!(below_zero.sample_duration(&mut random), Duration::ZERO);
    let time = Distribution::Constant { value: 1.587 }.sample_duration(&mut random);
    assert_eq!(time, Duration::from_millis(1587));
}

#[test]
fn invalid_parameters_are_rejected() {
    for case in cases() {
        case.distribution.check().unwrap();
    }
    let table = |points: &[(f64, f64)]| Distribution::Empirical { points: points.to_vec() };
    for bad in [
        Distribution::Constant { value: -1.0 },
        Distribution::Constant { value: f64::NAN },
        Distribution::Uniform { low: 2.0, high: 1.0 },
        Distribution::Uniform { low: -1.0, high: 1.0 },
        Distribution::Uniform { low: 0.0, high: f64::INFINITY },
        Distribution::Exponential { mean: 0.0 },
        Distribution::Exponential { mean: f64::INFINITY },
        Distribution::Pareto { shape: 0.0, scale: 1.0 },
        Distribution::Pareto { shape: 1.0, scale: 0.0 },
        Distribution::BoundedPareto { shape: 1.0, low: 1.0, high: 1.0 },
        Distribution::BoundedPareto { shape: 1.0, low: 0.0, high: 1.0 },
        Distribution::LogNormal { mu: 0.0, sigma: -1.0 },
        Distribution::LogNormal { mu: f64::NAN, sigma: 1.0 },
        Distribution::Weibull { shape: 1.0, scale: -1.0 },
        Distribution::ExtremeValue { location: f64::NAN, scale: 1.0 },
        Distribution::ExtremeValue { location: 1.0, scale: -1.0 },
        table(&[]),
        table(&[(1.0, 0.0), (2.0, 0.9)]),
        table(&[(2.0, 0.0), (1.0, 1.0)]),
        table(&[(1.0, 0.5), (2.0, 0.4), (3.0, 1.0)]),
        table(&[(-1.0, 0.0), (2.0, 1.0)]),
        table(&[(1.0, f64::NAN), (2.0, 1.0)]),
    ] {
        assert!(bad.check().is_err(), "{bad:?}");
    }
}
