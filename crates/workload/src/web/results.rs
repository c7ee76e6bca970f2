//! What a browser has to say of its run.

use super::WebCompletions;
use crate::application::{Completion, Figure};
use fullpipe_units::{Duration, Instant};

/// Figures of all pages: number, those given up, and load times. A quantile is the nearest rank.
const PAGES: [&str; 2] = ["pages", "pages_failed"];
const LOAD: [&str; 3] = ["page_load_mean_s", "page_load_median_s", "page_load_p95_s"];
const MAIN: [&str; 2] = ["page_main_mean_s", "page_main_median_s"];
/// Of each of the first two streams.
const STREAMS: [[&str; 4]; 2] = [
    ["stream_1_load_mean_s", "stream_1_load_p25_s", "stream_1_load_median_s", "stream_1_load_p75_s"],
    ["stream_2_load_mean_s", "stream_2_load_p25_s", "stream_2_load_median_s", "stream_2_load_p75_s"],
];

#[derive(Debug)]
pub(super) struct Results {
    of: WebCompletions,
    pub(super) completions: Vec<Completion>,
    failed: u64,
    page_loads: Vec<Duration>,
    main_loads: Vec<Duration>,
    /// Load times of each stream, of pages that have something on it.
    stream_loads: Vec<Vec<Duration>>,
}

impl Results {
    /// Of pages on so many streams (0: they are not told apart).
    pub(super) fn new(of: WebCompletions, streams: u32) -> Self {
        Results {
            of,
            completions: Vec::new(),
            failed: 0,
            page_loads: Vec::new(),
            main_loads: Vec::new(),
            stream_loads: vec![Vec::new(); streams as usize],
        }
    }

    pub(super) fn object(&mut self, completion: Completion) {
        if self.of == WebCompletions::Objects {
            self.completions.push(completion);
        }
    }

    /// The last main object of a page has come.
    pub(super) fn mains(&mut self, took: Duration) {
        self.main_loads.push(took);
    }

    /// A page has come. `streams`: of each stream its bytes and when the last of them came.
    pub(super) fn page(&mut self, page: Completion, streams: &[(u64, Instant)]) {
        self.page_loads.push(page.completed.saturating_since(page.started));
        if self.of == WebCompletions::Pages {
            self.completions.push(page);
        }
        for (&(bytes, completed), loads) in streams.iter().zip(&mut self.stream_loads) {
            if bytes > 0 {
                loads.push(completed.saturating_since(page.started));
            }
            if self.of == WebCompletions::Streams {
                self.completions.push(Completion { started: page.started, completed, bytes });
            }
        }
    }

    pub(super) fn page_failed(&mut self) {
        self.failed += 1;
    }

    pub(super) fn figures(&self) -> Vec<Figure> {
        let counts = [self.page_loads.len() as f64, self.failed as f64];
        let mut figures = named(PAGES, counts);
        let loads = Sorted::new(&self.page_loads);
        figures.extend(named(LOAD, [loads.mean(), loads.quantile(0.5), loads.quantile(0.95)]));
        let mains = Sorted::new(&self.main_loads);
        figures.extend(named(MAIN, [mains.mean(), mains.quantile(0.5)]));
        for (loads, names) in self.stream_loads.iter().zip(STREAMS) {
            let loads = Sorted::new(loads);
            let quartiles = [0.25, 0.5, 0.75].map(|share| loads.quantile(share));
            figures.extend(named(names, [loads.mean(), quartiles[0], quartiles[1], quartiles[2]]));
        }
        figures
    }
}

fn named<const N: usize>(names: [&'static str; N], values: [f64; N]) -> Vec<Figure> {
    names.into_iter().zip(values).map(|(name, value)| Figure { name, value }).collect()
}

/// Times in seconds, ascending; of none there is neither mean nor quantile.
struct Sorted(Vec<f64>);

impl Sorted {
    fn new(times: &[Duration]) -> Self {
        let mut seconds: Vec<f64> = times.iter().map(|time| time.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        Sorted(seconds)
    }

    fn mean(&self) -> f64 {
        if self.0.is_empty() { f64::NAN } else { self.0.iter().sum::<f64>() / self.0.len() as f64 }
    }

    fn quantile(&self, share: f64) -> f64 {
        let rank = (share * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
    }
}
