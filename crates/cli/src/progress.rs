//! How long work shows: a bar with the time left on a terminal, a line per finished run elsewhere, or nothing.

use fullpipe::study::{FinishedRun, Progress};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// Progress on standard error.
pub(crate) enum Shown {
    /// `--quiet`.
    Nothing,
    /// No terminal.
    Lines,
    /// A terminal.
    Bar(ProgressBar),
}

impl Shown {
    /// What fits standard error.
    pub(crate) fn new(quiet: bool) -> Self {
        if quiet {
            Shown::Nothing
        } else if std::io::stderr().is_terminal() {
            let bar = ProgressBar::new(0);
            // The template is ours: if it were wrong, the bar would have no style.
            if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left  {msg}") {
                bar.set_style(style);
            }
            Shown::Bar(bar)
        } else {
            Shown::Lines
        }
    }

    /// Takes the bar away.
    pub(crate) fn done(&self) {
        if let Shown::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

impl Progress for Shown {
    fn planned(&mut self, total: usize) {
        if let Shown::Bar(bar) = self {
            bar.set_length(total as u64);
        }
    }

    fn finished(&mut self, run: &FinishedRun<'_>) {
        match self {
            Shown::Nothing => {}
            Shown::Lines => {
                let how = match run.failure {
                    Some(reason) => format!("failed: {reason}"),
                    None if run.reused => "was there".to_string(),
                    None => "done".to_string(),
                };
                eprintln!("[{}/{}] {} {how}", run.finished, run.total, run.label);
            }
            Shown::Bar(bar) => {
                bar.set_position(run.finished as u64);
                bar.set_message(run.label.to_string());
                if let Some(reason) = run.failure {
                    bar.println(format!("{} failed: {reason}", run.label));
                }
            }
        }
    }

    fn message(&mut self, text: &str) {
        match self {
            Shown::Nothing => {}
            Shown::Lines => eprintln!("{text}"),
            Shown::Bar(bar) => bar.println(text),
        }
    }
}
