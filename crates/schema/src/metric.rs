//! Metrics that probes sample: their declarations, and the functions that read them from a report.
//!
//! A crate with a report of a subject (an endpoint, a link) has one table of metrics that are read from that report. No
//! other code contains their names.
//!
//! ```
//! use fullpipe_schema::metric::{MetricDeclaration, MetricReader, ProbeMetric, Sample};
//!
//! struct Tank {
//!     liters: Option<f64>,
//! }
//!
//! static TANK: [ProbeMetric<Tank>; 1] = [ProbeMetric {
//!     declaration: MetricDeclaration { name: "level_l", unit: "l", text: "how full it is." },
//!     reading: MetricReader::Value(|tank| tank.liters),
//! }];
//!
//! let metric = ProbeMetric::find(&TANK, "level_l").unwrap();
//! assert_eq!(metric.sample(&Tank { liters: Some(3.0) }), Some(Sample::Value(3.0)));
//! ```

use fullpipe_units::Duration;
use std::fmt;

/// The declaration of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDeclaration {
    /// The name by which a file chooses it.
    pub name: &'static str,
    /// Its unit; empty if it has none.
    pub unit: &'static str,
    /// Description in one sentence.
    pub text: &'static str,
}

/// A metric of a subject that has a report of type `R`.
pub struct ProbeMetric<R: 'static> {
    /// The declaration.
    pub declaration: MetricDeclaration,
    /// The function that reads the metric from the report.
    pub reading: MetricReader<R>,
}

/// The reader of a metric, from a report of type `R`.
pub enum MetricReader<R: 'static> {
    /// The value. `None` if there is no value yet; then no sample is written.
    Value(fn(&R) -> Option<f64>),
    /// Bytes since the start. The sample is the rate since the previous sample, in bit/s.
    Rate(fn(&R) -> u64),
    /// A sample whose kind depends on the report. `None` if there is no value yet.
    Sample(fn(&R) -> Option<Sample>),
    /// The sum and the number of some times since the start. The sample is the mean of the times since the previous
    /// sample, in seconds. If there are none, no sample is written.
    MeanTime(fn(&R) -> TimeSum),
}

/// The value that a metric reads from a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// The value.
    Value(f64),
    /// Bytes since the start. The written sample is the rate since the previous one, in bit/s.
    Bytes(u64),
    /// Times since the start. The written sample is the mean of the times since the previous one, in seconds. If there
    /// are none, no sample is written.
    TimeSum(TimeSum),
}

/// A sum of times, such as the waiting times of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSum {
    /// Their sum.
    pub sum: Duration,
    /// Their number.
    pub count: u64,
}

impl TimeSum {
    /// Adds a time.
    pub fn add(&mut self, time: Duration) {
        self.sum += time;
        self.count += 1;
    }

    /// Returns the mean of the times added after `earlier`, in seconds; `None` if there are none.
    pub fn mean_since(self, earlier: TimeSum) -> Option<f64> {
        let count = self.count.checked_sub(earlier.count).filter(|count| *count > 0)?;
        Some((self.sum - earlier.sum).as_secs_f64() / count as f64)
    }
}

impl<R> ProbeMetric<R> {
    /// Creates a metric that has a value at each instant.
    pub const fn value(declaration: MetricDeclaration, value: fn(&R) -> Option<f64>) -> Self {
        ProbeMetric { declaration, reading: MetricReader::Value(value) }
    }

    /// Returns the current value.
    pub fn sample(&self, report: &R) -> Option<Sample> {
        match self.reading {
            MetricReader::Value(value) => value(report).map(Sample::Value),
            MetricReader::Rate(bytes) => Some(Sample::Bytes(bytes(report))),
            MetricReader::Sample(sample) => sample(report),
            MetricReader::MeanTime(times) => Some(Sample::TimeSum(times(report))),
        }
    }

    /// Returns the declarations of the metrics.
    pub fn declarations(metrics: &'static [Self]) -> impl Iterator<Item = &'static MetricDeclaration> {
        metrics.iter().map(|metric| &metric.declaration)
    }

    /// Returns the metric with this name.
    pub fn find<'a>(metrics: &'a [Self], name: &str) -> Option<&'a Self> {
        metrics.iter().find(|metric| metric.declaration.name == name)
    }
}

impl<R> fmt::Debug for ProbeMetric<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.declaration.fmt(formatter)
    }
}
