//! Distributions of random sizes and times for traffic models.
//!
//! A sample is drawn by inverse transform: the quantile function is applied to a uniform number in [0, 1) from the
//! caller's random stream. Each sample thus uses one number of the stream for every distribution, and two models with
//! the same seed use common random numbers. Mean and quantile are closed forms (Johnson, Kotz and Balakrishnan,
//! Continuous Univariate Distributions, 2nd edition 1994). `normal.rs` contains the normal quantile for the log-normal
//! distribution.

use crate::{Duration, RandomStream, math};
use crate::{ParameterError, normal};

/// The largest size that [`Distribution::sample_bytes`] returns (2^50 bytes). A distribution without a finite mean
/// could otherwise return a size that overflows counters.
const MAX_SAMPLE_BYTES: f64 = (1u64 << 50) as f64;

/// The Euler-Mascheroni constant, which is the mean of the standard Gumbel distribution.
const EULER: f64 = 0.577_215_664_901_532_9;

/// A distribution of sizes (in bytes) or times (in seconds).
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Always this value.
    Constant {
        /// The value.
        value: f64,
    },
    /// Uniform between `low` and `high`.
    Uniform {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// Exponential: P(X > x) = exp(-x / mean).
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Pareto: P(X > x) = (scale / x)^shape for x >= scale.
    Pareto {
        /// The tail index. If it is 1 or less, the mean is infinite; if it is 2 or less, the variance is infinite.
        shape: f64,
        /// Smallest value.
        scale: f64,
    },
    /// A Pareto distribution with this shape and smallest value, truncated at the largest value.
    BoundedPareto {
        /// The tail index.
        shape: f64,
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// The natural logarithm of the value has a normal distribution with this mean and standard deviation.
    LogNormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Weibull: P(X > x) = exp(-(x / scale)^shape).
    Weibull {
        /// The shape. With a shape of 1, the distribution is exponential; below 1, the tail is heavier.
        shape: f64,
        /// The scale.
        scale: f64,
    },
    /// Largest extreme value (Gumbel): P(X <= x) = exp(-exp(-(x - location) / scale)). Its values can be negative; a
    /// negative value becomes a size of 1 byte or a time of 0 s.
    ExtremeValue {
        /// The mode (`a` in traffic models).
        location: f64,
        /// The scale (`b` in traffic models).
        scale: f64,
    },
    /// A table of the cumulative distribution with linear interpolation between its points. If the probability of the
    /// first point is above zero, samples have the value of this point with this probability.
    Empirical {
        /// Pairs of a value and the probability that it is not exceeded, both ascending; the last probability is 1.
        points: Vec<(f64, f64)>,
    },
}

impl Distribution {
    /// Checks that the parameters describe a distribution of sizes or times.
    ///
    /// # Errors
    /// Returns the rule that the parameters violate.
    pub fn check(&self) -> Result<(), ParameterError> {
        let positive = |value: f64| value > 0.0 && value.is_finite();
        let (holds, rule) = match *self {
            Self::Constant { value } => {
                (value >= 0.0 && value.is_finite(), "a constant must be finite and not negative")
            }
            Self::Uniform { low, high } => {
                (0.0 <= low && low <= high && high.is_finite(), "a uniform distribution must have 0 <= low <= high")
            }
            Self::Exponential { mean } => (positive(mean), "the mean of an exponential distribution must be positive"),
            Self::Pareto { shape, scale } => {
                (positive(shape) && positive(scale), "shape and scale of a Pareto distribution must be positive")
            }
            Self::BoundedPareto { shape, low, high } => (
                positive(shape) && positive(low) && low < high && high.is_finite(),
                "a bounded Pareto distribution must have a positive shape and 0 < low < high",
            ),
            Self::LogNormal { mu, sigma } => (
                mu.is_finite() && sigma >= 0.0 && sigma.is_finite(),
                "sigma of a log-normal distribution must not be negative",
            ),
            Self::Weibull { shape, scale } => {
                (positive(shape) && positive(scale), "shape and scale of a Weibull distribution must be positive")
            }
            Self::ExtremeValue { location, scale } => (
                location.is_finite() && scale >= 0.0 && scale.is_finite(),
                "the scale of an extreme value distribution must not be negative",
            ),
            Self::Empirical { ref points } => (
                table_ascends(points),
                "the points of an empirical distribution must ascend, from a value of at least 0 to the probability 1",
            ),
        };
        if holds { Ok(()) } else { Err(ParameterError(rule.into())) }
    }

    /// Returns the value that a sample does not exceed with this probability. The probability must be at least 0 and
    /// less than 1.
    pub fn quantile(&self, probability: f64) -> f64 {
        let above = 1.0 - probability;
        match *self {
            Self::Constant { value } => value,
            Self::Uniform { low, high } => low + (high - low) * probability,
            Self::Exponential { mean } => -mean * math::ln(above),
            Self::Pareto { shape, scale } => scale * math::pow(above, -1.0 / shape),
            Self::BoundedPareto { shape, low, high } => {
                let cut_off = math::pow(low / high, shape);
                low * math::pow(1.0 - probability * (1.0 - cut_off), -1.0 / shape)
            }
            Self::LogNormal { mu, sigma } => math::exp(mu + sigma * normal::quantile(probability)),
            Self::Weibull { shape, scale } => scale * math::pow(-math::ln(above), 1.0 / shape),
            Self::ExtremeValue { location, scale } => location - scale * math::ln(-math::ln(probability)),
            Self::Empirical { ref points } => interpolate(points, probability),
        }
    }

    /// Returns the mean, which is infinite for a Pareto distribution of shape 1 or less.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant { value } => value,
            Self::Uniform { low, high } => (low + high) / 2.0,
            Self::Exponential { mean } => mean,
            Self::Pareto { shape, .. } if shape <= 1.0 => f64::INFINITY,
            Self::Pareto { shape, scale } => shape * scale / (shape - 1.0),
            Self::BoundedPareto { shape, low, high } => bounded_pareto_mean(shape, low, high),
            Self::LogNormal { mu, sigma } => math::exp(mu + sigma * sigma / 2.0),
            Self::Weibull { shape, scale } => scale * math::gamma(1.0 + 1.0 / shape),
            Self::ExtremeValue { location, scale } => location + EULER * scale,
            Self::Empirical { ref points } => {
                let first = points.first().map_or(0.0, |&(value, probability)| value * probability);
                let piece = |pair: &[(f64, f64)]| (pair[1].1 - pair[0].1) * (pair[0].0 + pair[1].0) / 2.0;
                first + points.windows(2).map(piece).sum::<f64>()
            }
        }
    }

    /// Draws a sample, with one number of the random stream.
    #[inline]
    pub fn sample(&self, random: &mut RandomStream) -> f64 {
        self.quantile(random.uniform())
    }

    /// Draws a sample as a size in bytes: rounded to the nearest byte, at least 1 and at most 2^50.
    pub fn sample_bytes(&self, random: &mut RandomStream) -> u64 {
        self.sample(random).round().clamp(1.0, MAX_SAMPLE_BYTES) as u64
    }

    /// Draws a sample in seconds as a duration: rounded to the nearest nanosecond, zero if negative.
    pub fn sample_duration(&self, random: &mut RandomStream) -> Duration {
        Duration::from_secs_f64(self.sample(random))
    }
}

fn table_ascends(points: &[(f64, f64)]) -> bool {
    let ascending = |pair: &[(f64, f64)]| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1;
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return false };
    let numbers = points.iter().all(|(value, probability)| value.is_finite() && probability.is_finite());
    numbers && first.0 >= 0.0 && first.1 >= 0.0 && last.1 == 1.0 && points.windows(2).all(ascending)
}

/// The value at a probability. Up to the probability of the first point, it is the value of that point.
fn interpolate(points: &[(f64, f64)], probability: f64) -> f64 {
    let after = points.partition_point(|point| point.1 < probability);
    let Some(&(high, high_probability)) = points.get(after) else { return points.last().map_or(0.0, |point| point.0) };
    if after == 0 {
        return high;
    }
    // The probability is above that of the preceding point, so the two points differ.
    let (low, low_probability) = points[after - 1];
    low + (high - low) * (probability - low_probability) / (high_probability - low_probability)
}

/// The integral of x f(x) with f(x) = shape low^shape x^(-shape - 1) / (1 - (low / high)^shape).
fn bounded_pareto_mean(shape: f64, low: f64, high: f64) -> f64 {
    let kept = 1.0 - math::pow(low / high, shape);
    if shape == 1.0 {
        return low * math::ln(high / low) / kept;
    }
    let tail = math::pow(low / high, shape - 1.0);
    low * shape / (shape - 1.0) * (1.0 - tail) / kept
}
