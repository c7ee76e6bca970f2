//! Progress of long operations on standard error: a bar on a terminal, otherwise a line every few seconds.

use crate::measurement::elapsed_seconds;
use crate::output;
use fullpipe::study::{FinishedRun, StudyObserver};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Progress on standard error.
pub(crate) enum ProgressDisplay {
    /// `--quiet`.
    Quiet,
    /// Lines, because standard error is not a terminal.
    Lines(ProgressLines),
    /// A bar on a terminal.
    Bar(ProgressBar),
}

impl ProgressDisplay {
    /// Creates the progress display for the current standard error.
    pub(crate) fn new(quiet: bool) -> Self {
        if quiet {
            ProgressDisplay::Quiet
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(0);
            // The template is constant. If it were invalid, the bar would have the default style.
            if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left  {msg}") {
                bar.set_style(style);
            }
            ProgressDisplay::Bar(bar)
        } else {
            ProgressDisplay::Lines(ProgressLines::new(now_s()))
        }
    }

    /// Removes the bar, or prints the last line.
    pub(crate) fn done(&mut self) {
        match self {
            ProgressDisplay::Quiet => {}
            ProgressDisplay::Lines(lines) => lines.last().iter().for_each(|line| output::write_progress(line)),
            ProgressDisplay::Bar(bar) => bar.finish_and_clear(),
        }
    }
}

impl StudyObserver for ProgressDisplay {
    fn on_planned(&mut self, total: usize) {
        if let ProgressDisplay::Bar(bar) = self {
            bar.set_length(total as u64);
        }
    }

    fn on_run_finished(&mut self, run: &FinishedRun<'_>) {
        match self {
            ProgressDisplay::Quiet => {}
            ProgressDisplay::Lines(lines) => {
                lines.finished(now_s(), run).iter().for_each(|line| output::write_progress(line))
            }
            ProgressDisplay::Bar(bar) => {
                bar.set_position(run.finished as u64);
                bar.set_message(output::printable(run.label).into_owned());
                if let Some(reason) = run.failure {
                    bar.println(output::printable(&format!("{} failed: {reason}", run.label)));
                }
            }
        }
    }

    fn on_message(&mut self, text: &str) {
        match self {
            ProgressDisplay::Quiet => {}
            ProgressDisplay::Lines(_) => output::write_progress(text),
            ProgressDisplay::Bar(bar) => bar.println(output::printable(text)),
        }
    }
}

fn now_s() -> f64 {
    elapsed_seconds()
}

/// The minimum time between two lines, in seconds. A failed run always has a line.
const INTERVAL_S: f64 = 5.0;

/// Progress as lines.
pub(crate) struct ProgressLines {
    begin_s: f64,
    printed_s: f64,
    /// The number of runs that were computed and not reused.
    computed: usize,
    /// The line of the last run, if it is not printed yet.
    pending: Option<String>,
}

impl ProgressLines {
    fn new(now_s: f64) -> Self {
        ProgressLines { begin_s: now_s, printed_s: now_s, computed: 0, pending: None }
    }

    /// Returns the line to print after a run, if there is one.
    fn finished(&mut self, now_s: f64, run: &FinishedRun<'_>) -> Option<String> {
        self.computed += usize::from(!run.reused);
        let outcome = match run.failure {
            Some(reason) => format!(" failed: {reason}"),
            None if run.reused => " (reused)".to_owned(),
            None => String::new(),
        };
        let left = self.left(now_s, run.total.saturating_sub(run.finished));
        let line = format!("[{}/{}{left}] {}{outcome}", run.finished, run.total, run.label);
        if run.failure.is_some() || run.finished == run.total || now_s - self.printed_s >= INTERVAL_S {
            (self.printed_s, self.pending) = (now_s, None);
            return Some(line);
        }
        self.pending = Some(line);
        None
    }

    /// Returns the estimated remaining time, based on the runs that were computed. Reused runs take no time.
    fn left(&self, now_s: f64, runs: usize) -> String {
        match (runs, self.computed) {
            (0, _) | (_, 0) => String::new(),
            _ => format!(", {} left", rounded((now_s - self.begin_s) / self.computed as f64 * runs as f64)),
        }
    }

    /// Returns the line of the last run, if it is not printed yet, for example after an interrupt.
    fn last(&mut self) -> Option<String> {
        self.pending.take()
    }
}

/// Returns a rounded time in words: `42 s`, `5 min`, `1 h 20 min`.
fn rounded(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match (seconds.ceil() as u64, minutes) {
        (s @ 0..=99, _) => format!("{s} s"),
        (_, m @ 0..=99) => format!("{m} min"),
        (_, m) => format!("{} h {} min", m / 60, m % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(finished: usize, reused: bool, failure: Option<&str>) -> FinishedRun<'_> {
        FinishedRun { finished, total: 1740, label: "tcp at rate=1", key: "", seed: 1, reused, failure }
    }

    #[test]
    fn lines_appear_every_few_seconds_and_after_the_last_run() {
        let mut lines = ProgressLines::new(100.0);
        // Ten runs per second.
        let printed: Vec<String> = (1..=1740)
            .filter_map(|finished| lines.finished(100.0 + finished as f64 / 10.0, &run(finished, false, None)))
            .collect();
        assert_eq!(printed.len(), 35, "{printed:#?}");
        assert_eq!(printed[0], "[50/1740, 3 min left] tcp at rate=1");
        assert_eq!(printed[33], "[1700/1740, 4 s left] tcp at rate=1");
        assert_eq!(printed[34], "[1740/1740] tcp at rate=1");
        assert_eq!(lines.last(), None);
    }

    #[test]
    fn remaining_time_counts_computed_runs_only() {
        let mut lines = ProgressLines::new(0.0);
        for finished in 1..=1000 {
            assert_eq!(lines.finished(0.001, &run(finished, true, None)), None);
        }
        assert_eq!(lines.finished(5.0, &run(1001, true, None)).as_deref(), Some("[1001/1740] tcp at rate=1 (reused)"));
        let line = lines.finished(10.0, &run(1002, false, None));
        assert_eq!(line.as_deref(), Some("[1002/1740, 2 h 3 min left] tcp at rate=1"));
    }

    #[test]
    fn failed_run_has_an_immediate_line_and_interrupted_study_a_last_one() {
        let mut lines = ProgressLines::new(0.0);
        let line = lines.finished(1.0, &run(1, false, Some("no memory")));
        assert_eq!(line.as_deref(), Some("[1/1740, 29 min left] tcp at rate=1 failed: no memory"));
        assert_eq!(lines.finished(1.5, &run(2, false, None)), None);
        assert_eq!(lines.last().as_deref(), Some("[2/1740, 22 min left] tcp at rate=1"));
        assert_eq!(lines.last(), None);
    }
}
