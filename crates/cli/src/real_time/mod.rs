//! Real time on the command line: the commands `doctor`, `shell` and `simulator`, real-time runs, and the benchmarks of
//! the emulator.

pub(crate) mod arguments;
mod doctor;
mod lte;
mod relay;
mod shell;
mod simulator;

use crate::exit::Failure;
use crate::measurement;
pub(crate) use doctor::doctor;
use fullpipe::BUILD;
use fullpipe::lab::RunError;
use fullpipe::lab::real_time::{self, EmulatorNamespace, Lateness};
use fullpipe::study::{RealTimeRunner, Runner, RunnerPair, Study, VirtualTimeRunner};
use serde_json::Value;
pub(crate) use shell::shell;
pub(crate) use simulator::simulate;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// The reasons why the last run fell behind, if it did; set when the run has ended.
type Behind = Arc<Mutex<Vec<String>>>;

/// Enters new namespaces. The process must have a single thread.
fn enter() -> Result<EmulatorNamespace, Failure> {
    let home = real_time::enter_user_namespace().and_then(|()| EmulatorNamespace::new());
    home.map_err(|refused| Failure::machine(format!("this machine does not support real time: {refused}")))
}

/// Converts the error of a run.
fn failure(error: RunError) -> Failure {
    match error {
        RunError::System(reason) => Failure::machine(reason),
        other => Failure::run(other),
    }
}

/// Enters new namespaces and creates a laboratory there. The process must have a single thread.
fn laboratory(quiet: bool) -> Result<(Box<dyn Runner>, Behind), Failure> {
    let home = enter()?;
    let terminal = !quiet && std::io::stderr().is_terminal();
    let behind = Behind::default();
    let known = Arc::clone(&behind);
    let live = move |now, lateness: &Lateness| {
        *known.lock().unwrap_or_else(PoisonError::into_inner) = lateness.result().reasons;
        if terminal {
            let mut stderr = std::io::stderr().lock();
            // A closed terminal has no reader.
            let _ = write!(stderr, "\r{}\x1b[K", line(now, lateness)).and_then(|()| stderr.flush());
        }
    };
    Ok((Box::new(RealTimeRunner::new(BUILD, home, Box::new(live))), behind))
}

/// Returns the current state of the run, in one line.
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

/// Runs the scenario of `make` in a laboratory on the wall clock. `interfaces` are those of this machine to which hosts
/// are connected. This function must be called before a second thread exists.
pub(crate) fn run_with(
    interfaces: &[&str],
    quiet: bool,
    make: impl FnOnce(&dyn Runner) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let _blocked = simulator::forwarding::ForwardingGuard::between(interfaces);
    let (laboratory, behind) = laboratory(quiet)?;
    let made = make(&*laboratory);
    // With a hard limit, the run fails because it fell behind.
    if made.is_ok() && !quiet {
        let reasons = behind.lock().unwrap_or_else(PoisonError::into_inner);
        reasons.iter().for_each(|reason| eprintln!("fell behind real time: {reason}"));
    }
    made
}

/// Returns the laboratories that a study needs.
pub(crate) fn laboratories(ours: VirtualTimeRunner, study: &Study, quiet: bool) -> Result<Box<dyn Runner>, Failure> {
    if !study.needs_real_time() {
        return Ok(Box::new(ours));
    }
    let (real, _) = laboratory(quiet)?;
    Ok(Box::new(RunnerPair::new(ours, real)))
}

/// Measures one of the two benchmarks of the emulator.
pub(crate) fn measure(name: &str) -> Result<Value, Failure> {
    if name == measurement::RELAY { relay::measure() } else { lte::measure() }
}

/// Returns the row of a benchmark in words.
pub(crate) fn describe(name: &str, row: &Value) -> String {
    if name == measurement::RELAY { relay::describe(row) } else { lte::describe(row) }
}
