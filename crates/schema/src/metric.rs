//! Metrics that probes sample: what each declares, and how it is read from a report.
//!
//! A crate that has a report of something (an endpoint, a link) has one table of metrics over it. Nothing else names them.
//!
//! ```
//! use fullpipe_schema::metric::{MetricDeclaration, ProbeMetric, Reading, Sample};
//!
//! struct Tank {
//!     liters: Option<f64>,
//! }
//!
//! static TANK: [ProbeMetric<Tank>; 1] = [ProbeMetric {
//!     declaration: MetricDeclaration { name: "level_l", unit: "l", text: "how full it is." },
//!     reading: Reading::Value(|tank| tank.liters),
//! }];
//!
//! let metric = ProbeMetric::find(&TANK, "level_l").unwrap();
//! assert_eq!(metric.sample(&Tank { liters: Some(3.0) }), Some(Sample::Value(3.0)));
//! ```

use fullpipe_units::Duration;
use std::fmt;

/// What a metric declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDeclaration {
    /// The name by which a file chooses it.
    pub name: &'static str,
    /// Its unit; empty: it has none.
    pub unit: &'static str,
    /// What it is, in one sentence.
    pub text: &'static str,
}

/// A metric of whatever has a report of type `R`.
pub struct ProbeMetric<R: 'static> {
    /// What it declares.
    pub declaration: MetricDeclaration,
    /// How it is read from the report.
    pub reading: Reading<R>,
}

/// How a metric is read from a report of type `R`.
pub enum Reading<R: 'static> {
    /// The value; `None`: there is none yet, and no sample is written.
    Value(fn(&R) -> Option<f64>),
    /// Bytes since the start; the sample is the rate since the last one, in bit/s.
    Rate(fn(&R) -> u64),
    /// A sample whose kind depends on the report; `None`: there is none yet.
    Sample(fn(&R) -> Option<Sample>),
    /// The sum of some times and their number, both since the start; the sample is the mean of those since the last one, in seconds.
    /// No sample is written if there are none.
    MeanTime(fn(&R) -> Times),
}

/// What a metric reads from a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// The value.
    Value(f64),
    /// Bytes since the start; the sample is the rate since the last one, in bit/s.
    Bytes(u64),
    /// Times since the start; the sample is the mean of those since the last one, in seconds. None since then: no sample.
    Times(Times),
}

/// Times that are summed up, such as those that packets have waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Their sum.
    pub sum: Duration,
    /// How many there are.
    pub count: u64,
}

impl Times {
    /// Adds one.
    pub fn add(&mut self, time: Duration) {
        self.sum += time;
        self.count += 1;
    }

    /// The mean, in seconds, of those that came after `earlier`; `None` if none did.
    pub fn mean_since(self, earlier: Times) -> Option<f64> {
        let count = self.count.checked_sub(earlier.count).filter(|count| *count > 0)?;
        Some((self.sum - earlier.sum).as_secs_f64() / count as f64)
    }
}

impl<R> ProbeMetric<R> {
    /// A metric that has a value at each instant.
    pub const fn value(declaration: MetricDeclaration, value: fn(&R) -> Option<f64>) -> Self {
        ProbeMetric { declaration, reading: Reading::Value(value) }
    }

    /// The present value.
    pub fn sample(&self, report: &R) -> Option<Sample> {
        match self.reading {
            Reading::Value(value) => value(report).map(Sample::Value),
            Reading::Rate(bytes) => Some(Sample::Bytes(bytes(report))),
            Reading::Sample(sample) => sample(report),
            Reading::MeanTime(times) => Some(Sample::Times(times(report))),
        }
    }

    /// What each of them declares.
    pub fn declarations(metrics: &'static [Self]) -> impl Iterator<Item = &'static MetricDeclaration> {
        metrics.iter().map(|metric| &metric.declaration)
    }

    /// The metric of this name.
    pub fn find<'a>(metrics: &'a [Self], name: &str) -> Option<&'a Self> {
        metrics.iter().find(|metric| metric.declaration.name == name)
    }
}

impl<R> fmt::Debug for ProbeMetric<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.declaration.fmt(formatter)
    }
}
