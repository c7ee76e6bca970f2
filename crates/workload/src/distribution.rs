//! Random sizes and times: the distributions that traffic models are written in.
//!
//! A sample is drawn by inverse transform: the quantile function at a number that is uniform in [0, 1), from the random
//! stream that is handed in. So one sample costs one number of the stream whatever the distribution, and two models
//! that share a seed stay on common random numbers. Mean and quantile are closed forms (Johnson, Kotz and Balakrishnan,
//! Continuous Univariate Distributions, 2nd edition 1994); the normal quantile behind the log-normal is in `normal.rs`.

/// A distribution of sizes (in bytes) or times (in seconds).
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always this value.
    Constant {
        /// The value.
        value: f64,
    },
    /// Uniform between two values.
    Uniform {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// Exponential: P(X > x) = exp(-x / mean).
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// Pareto: P(X > x) = (scale / x)^shape for x >= scale.
    Pareto {
        /// Tail index; the mean is infinite at 1 and below, the variance at 2 and below.
        shape: f64,
        /// Smallest value.
        scale: f64,
    },
    /// Pareto with this shape and smallest value, on condition that it is not above the largest value.
    BoundedPareto {
        /// Tail index.
        shape: f64,
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// The natural logarithm is normal with this mean and standard deviation.
    LogNormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Weibull: P(X > x) = exp(-(x / scale)^shape).
    Weibull {
        /// Shape; 1 is the exponential distribution, below 1 the tail is heavier.
        shape: f64,
        /// Scale.
        scale: f64,
    },
    /// Largest extreme value (Gumbel): P(X <= x) = exp(-exp(-(x - location) / scale)). It reaches below zero; where a
    /// size or a time is wanted, that counts as the smallest that there is.
    ExtremeValue {
        /// The mode (`a` in traffic models).
        location: f64,
        /// Scale (`b` in traffic models).
        scale: f64,
    },
    /// A table of the cumulative distribution, straight lines between its points. If the first point's probability is
    /// above zero, its value has that probability.
    Empirical {
        /// Value and probability of not exceeding it, both ascending; the last probability is 1.
        points: Vec<(f64, f64)>,
    },
}
