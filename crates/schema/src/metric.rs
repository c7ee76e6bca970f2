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
    /// The name that selects the metric in a file.
    pub name: &'static str,
    /// Its unit; empty if it has none.
    pub unit: &'static str,
    /// Description in one sentence.
    pub text: &'static str,
}

/// A metric that is read from a report of type `R`, such as the report of an endpoint or a link.
pub struct ProbeMetric<R: 'static> {
    /// The declaration.
    pub declaration: MetricDeclaration,
    /// The function that reads the metric from the report.
    pub reading: MetricReader<R>,
}

/// The function that reads a metric from a report of type `R`, and how a sample is computed from its result.
pub enum MetricReader<R: 'static> {
    /// Returns the value. If it is `None`, there is no value yet, and no sample is written.
    Value(fn(&R) -> Option<f64>),
    /// Returns the number of bytes since the start of the run. The sample is the rate since the previous sample, in
    /// bit/s.
    Rate(fn(&R) -> u64),
    /// Returns a sample whose kind depends on the report. If it is `None`, there is no value yet, and no sample is
    /// written.
    Sample(fn(&R) -> Option<Sample>),
    /// Returns the sum and the number of times since the start of the run. The sample is the mean of the times since
    /// the previous sample, in seconds. If there are none, no sample is written.
    MeanTime(fn(&R) -> TimeSum),
}

/// The value that a metric reads from a report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// The value.
    Value(f64),
    /// The number of bytes since the start of the run. The written sample is the rate since the previous sample, in
    /// bit/s.
    Bytes(u64),
    /// The sum and the number of times since the start of the run. The written sample is the mean of the times since
    /// the previous sample, in seconds. If there are none, no sample is written.
    TimeSum(TimeSum),
}

/// The sum and the number of times, such as the waiting times of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSum {
    /// The sum of the times.
    pub sum: Duration,
    /// The number of times.
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
    /// Creates a metric with a [`MetricReader::Value`].
    pub const fn value(declaration: MetricDeclaration, value: fn(&R) -> Option<f64>) -> Self {
        ProbeMetric { declaration, reading: MetricReader::Value(value) }
    }

    /// Reads the metric from a report; `None` if there is no value yet.
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

    /// Returns the metric with this name; `None` if there is none.
    pub fn find<'a>(metrics: &'a [Self], name: &str) -> Option<&'a Self> {
        metrics.iter().find(|metric| metric.declaration.name == name)
    }
}

impl<R> fmt::Debug for ProbeMetric<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.declaration.fmt(formatter)
    }
}
