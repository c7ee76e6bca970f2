//! The metrics of a browser.

use super::CompletionUnit;
use crate::application::{ApplicationMetric, Completion, MetricValue, SortedTimes};
use fullpipe_units::{Duration, Instant};

/// All metrics of a browser. A quantile is the nearest rank.
pub(super) const METRICS: &[&[ApplicationMetric]] = &[&PAGES, &LOAD, &MAIN, &FOLD, &STREAMS[0], &STREAMS[1]];

static PAGES: [ApplicationMetric; 3] = [
    ApplicationMetric::new("pages", "", "Completely loaded pages, to which load times refer."),
    ApplicationMetric::new("pages_failed", "", "Pages that failed because a connection was lost."),
    ApplicationMetric::new("pages_unfinished", "", "Pages that were being loaded when the run ended."),
];

static LOAD: [ApplicationMetric; 3] = [
    ApplicationMetric::new(
        "page_load_mean_s",
        "s",
        "Mean time from the request of a page's first object to its last byte.",
    ),
    ApplicationMetric::new("page_load_median_s", "s", "Median of page load times."),
    ApplicationMetric::new("page_load_p95_s", "s", "95th percentile of page load times."),
];

static MAIN: [ApplicationMetric; 2] = [
    ApplicationMetric::new("page_main_mean_s", "s", "Mean time until all main objects of a page had arrived."),
    ApplicationMetric::new(
        "page_main_median_s",
        "s",
        "Median of the times until all main objects of a page had arrived.",
    ),
];

static FOLD: [ApplicationMetric; 2] = [
    ApplicationMetric::new(
        "page_fold_mean_s",
        "s",
        "Mean time until all objects of a page above the fold had arrived (with `above_fold`).",
    ),
    ApplicationMetric::new("page_fold_median_s", "s", "Median of these times."),
];

macro_rules! stream_metrics {
    ($number:literal) => {
        [
            ApplicationMetric::new(
                concat!("stream_", $number, "_load_mean_s"),
                "s",
                concat!(
                    "Mean time from the request of a page to its last byte on stream ",
                    $number,
                    ", over pages with data on that stream (`http = \"streams\"`)."
                ),
            ),
            ApplicationMetric::new(concat!("stream_", $number, "_load_p5_s"), "s", "5th percentile of these times."),
            ApplicationMetric::new(concat!("stream_", $number, "_load_p25_s"), "s", "25th percentile of these times."),
            ApplicationMetric::new(concat!("stream_", $number, "_load_median_s"), "s", "Median of these times."),
            ApplicationMetric::new(concat!("stream_", $number, "_load_p75_s"), "s", "75th percentile of these times."),
            ApplicationMetric::new(concat!("stream_", $number, "_load_p95_s"), "s", "95th percentile of these times."),
        ]
    };
}

/// The metrics of each of the first two streams.
static STREAMS: [[ApplicationMetric; 6]; 2] = [stream_metrics!(1), stream_metrics!(2)];

#[derive(Debug)]
pub(super) struct Results {
    of: CompletionUnit,
    pub(super) completions: Vec<Completion>,
    failed: u64,
    page_loads: Vec<Duration>,
    main_loads: Vec<Duration>,
    /// Times until all objects above the fold had arrived, if the fold is modeled.
    fold_loads: Option<Vec<Duration>>,
    /// Load times of each stream, for pages with data on it.
    stream_loads: Vec<Vec<Duration>>,
}

impl Results {
    /// Creates the results. `streams` is the number of streams that are distinguished (0: none). `fold`: whether the fold is
    /// modeled.
    pub(super) fn new(of: CompletionUnit, streams: usize, fold: bool) -> Self {
        Results {
            of,
            completions: Vec::new(),
            failed: 0,
            page_loads: Vec::new(),
            main_loads: Vec::new(),
            fold_loads: fold.then(Vec::new),
            stream_loads: vec![Vec::new(); streams],
        }
    }

    pub(super) fn object(&mut self, completion: Completion) {
        if self.of == CompletionUnit::Objects {
            self.completions.push(completion);
        }
    }

    /// Records the arrival of the last main object of a page.
    pub(super) fn mains(&mut self, took: Duration) {
        self.main_loads.push(took);
    }

    /// Records the arrival of the last object above the fold.
    pub(super) fn above_fold(&mut self, took: Duration) {
        if let Some(loads) = &mut self.fold_loads {
            loads.push(took);
        }
    }

    /// Records a complete page. `streams`: the bytes of each stream and the time of the last one.
    pub(super) fn page(&mut self, page: Completion, streams: &[(u64, Instant)]) {
        self.page_loads.push(page.completed.saturating_since(page.started));
        if self.of == CompletionUnit::Pages {
            self.completions.push(page);
        }
        for (&(bytes, completed), loads) in streams.iter().zip(&mut self.stream_loads) {
            if bytes > 0 {
                loads.push(completed.saturating_since(page.started));
            }
            if self.of == CompletionUnit::Streams {
                self.completions.push(Completion { started: page.started, completed, bytes });
            }
        }
    }

    pub(super) fn page_failed(&mut self) {
        self.failed += 1;
    }

    /// Returns the metrics. `unfinished` is the number of pages in progress.
    pub(super) fn figures(&self, unfinished: usize) -> Vec<MetricValue> {
        let counts = [self.page_loads.len() as f64, self.failed as f64, unfinished as f64];
        let mut figures = ApplicationMetric::values(&PAGES, counts);
        let loads = SortedTimes::new(&self.page_loads);
        figures.extend(ApplicationMetric::values(&LOAD, [loads.mean(), loads.quantile(0.5), loads.quantile(0.95)]));
        let mains = SortedTimes::new(&self.main_loads);
        figures.extend(ApplicationMetric::values(&MAIN, [mains.mean(), mains.quantile(0.5)]));
        if let Some(loads) = &self.fold_loads {
            let loads = SortedTimes::new(loads);
            figures.extend(ApplicationMetric::values(&FOLD, [loads.mean(), loads.quantile(0.5)]));
        }
        for (loads, metrics) in self.stream_loads.iter().zip(&STREAMS) {
            let loads = SortedTimes::new(loads);
            let [p5, p25, median, p75, p95] = [0.05, 0.25, 0.5, 0.75, 0.95].map(|share| loads.quantile(share));
            figures.extend(ApplicationMetric::values(metrics, [loads.mean(), p5, p25, median, p75, p95]));
        }
        figures
    }
}
