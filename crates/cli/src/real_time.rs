//! Real time from the command line.

use crate::exit::Failure;
use fullpipe::BUILD;
use fullpipe::lab::RunError;
use fullpipe::lab::real_time::{self, Home, Lateness};
use fullpipe::study::{Laboratory, RealLaboratory};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Why the last run fell behind, if it did; known when it has ended.
pub(crate) type Behind = Arc<Mutex<Vec<String>>>;

/// Leaves for namespaces of its own. Threads must not exist yet.
pub(crate) fn enter() -> Result<Home, Failure> {
    let home = real_time::enter().and_then(|()| Home::new());
    home.map_err(|refused| Failure::machine(format!("real time is not possible here: {refused}")))
}

/// Why a run failed.
pub(crate) fn failure(error: RunError) -> Failure {
    match error {
        RunError::Machine(reason) => Failure::machine(reason),
        other => Failure::run(other),
    }
}

/// Leaves for namespaces of its own and makes a laboratory there. Threads must not exist yet.
pub(crate) fn laboratory(quiet: bool) -> Result<(Box<dyn Laboratory>, Behind), Failure> {
    let home = enter()?;
    let terminal = !quiet && std::io::stderr().is_terminal();
    let behind = Behind::default();
    let known = Arc::clone(&behind);
    let live = move |now, lateness: &Lateness| {
        *known.lock().unwrap_or_else(PoisonError::into_inner) = lateness.verdict().reasons;
        if terminal {
            let mut stderr = std::io::stderr().lock();
            // A terminal that is gone has no reader.
            let _ = write!(stderr, "\r{}\x1b[K", line(now, lateness)).and_then(|()| stderr.flush());
        }
    };
    Ok((Box::new(RealLaboratory::new(BUILD, home, Box::new(live))), behind))
}

/// How the run stands, in a line.
fn line(now: fullpipe::units::Instant, lateness: &Lateness) -> String {
    let packets = lateness.packets();
    let (stalls, drops) = (lateness.stall_count(), lateness.drops());
    format!(
        "{:.1} s  packets {} late by {:.0} us (p50) {:.0} us (p99), {} beyond the limit; stalls {stalls}, own drops {drops}",
        now.as_nanos() as f64 / 1e9,
        packets.count,
        packets.p50_nanos as f64 / 1e3,
        packets.p99_nanos as f64 / 1e3,
        packets.late,
    )
}
