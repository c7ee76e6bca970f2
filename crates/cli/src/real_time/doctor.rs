//! `fullpipe doctor`: the requirements of real time that this machine meets, and its timing error.

use super::arguments::DoctorArguments;
use super::relay::{RunSums, through};
use crate::exit::Failure;
use crate::output::{self, print_line};
use fullpipe::lab::real_time::doctor::{self, CheckStatus, Finding};
use fullpipe::lab::real_time::{EmulatorNamespace, measure};
use fullpipe::units::Duration;
use serde_json::{Value, json};

/// The number of datagrams of the calibration run: one every 100 us for three seconds.
const DATAGRAMS: u64 = 30_000;

/// Runs the calibration: two hosts, a delay of 10 ms between them, 10 000 small datagrams per second.
fn calibrate(home: &EmulatorNamespace) -> Result<Value, Failure> {
    let set = ["link.path.delay=10ms"];
    let ran = through(home, &set, &mut RunSums::default(), |home, [left, right]| {
        measure::measure_datagrams(home, left, right, 100, Duration::from_nanos(100_000), DATAGRAMS)
    })?;
    let delays = ran.result.delays();
    let error = |share| (measure::quantile(&delays, share).as_nanos() as f64 / 1e3 - 10_000.0).abs();
    let events = ran.lateness.events();
    let (stalls, own_drops) = (ran.lateness.stall_count(), ran.lateness.drops());
    Ok(json!({
        "packets": DATAGRAMS,
        "packets_arrived": delays.len(),
        "packets_per_second": ran.result.arrivals_per_second(),
        "delay_error_p50_us": error(0.5),
        "delay_error_p99_us": error(0.99),
        "wake_lateness_p50_us": events.p50_nanos as f64 / 1e3,
        "wake_lateness_p99_us": events.p99_nanos as f64 / 1e3,
        "stalls": stalls,
        "own_drops": own_drops,
        "advice": advice(own_drops, stalls, [error(0.5), error(0.99)]),
    }))
}

/// Returns the interpretation of the results for scenarios with delays of milliseconds.
fn advice(own_drops: u64, stalls: u64, [error_p50_us, error_p99_us]: [f64; 2]) -> &'static str {
    if own_drops > 0 {
        "The emulator lost packets because it did not read them in time: it supports fewer than 10 000 packets/s. See load and \
         socket buffers above."
    } else if error_p99_us > 1000.0 || stalls > 0 {
        "The emulator is sometimes descheduled: results are accurate to within 1 to 2 ms. Stop other processes, and check \
         the lateness of each run."
    } else if error_p50_us > 50.0 {
        "Delays exceed the configured values by more than 50 us at the median: see clock source and timer slack above."
    } else {
        "This machine is suitable for real time."
    }
}

/// Returns the calibration in words.
fn calibration_text(found: &Value) -> String {
    let number = |key: &str| found[key].as_f64().unwrap_or(f64::NAN);
    format!(
        "calibration: delay of 10 ms between two hosts, 10000 packets/s offered, {:.0} packets/s delivered ({} of {DATAGRAMS} packets)\n  \
         delay error {:.1} us (p50), {:.0} us (p99); wake-up lateness {:.1} us (p50), {:.0} us (p99); stalls {}, packets dropped by the emulator {}\n  {}",
        number("packets_per_second"),
        number("packets_arrived"),
        number("delay_error_p50_us"),
        number("delay_error_p99_us"),
        number("wake_lateness_p50_us"),
        number("wake_lateness_p99_us"),
        number("stalls"),
        number("own_drops"),
        found["advice"].as_str().unwrap_or_default(),
    )
}

/// Runs `fullpipe doctor`. This function must be called before a second thread exists.
pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<(), Failure> {
    let (findings, home) = doctor::run_checks();
    let calibration = home.as_ref().map(calibrate).transpose();
    let possible = matches!(calibration, Ok(Some(_)));
    if arguments.json {
        let calibration = calibration.as_ref().ok().and_then(Option::as_ref);
        let answer = json!({
            "real_time": possible,
            "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
            "calibration": calibration,
        });
        output::json(&answer);
    } else {
        findings.iter().for_each(|finding| print_line!("{}", finding_text(finding)));
        if let Ok(Some(found)) = &calibration {
            print_line!("{}\nThis machine supports real time.", calibration_text(found));
        } else {
            print_line!("This machine does not support real time.");
        }
    }
    calibration?;
    if possible { Ok(()) } else { Err(Failure::machine(what_is_bad(&findings))) }
}

fn finding_json(finding: &Finding) -> Value {
    json!({
        "subject": finding.subject,
        "state": finding.state.name(),
        "found": finding.found,
        "advice": finding.advice,
    })
}

fn finding_text(finding: &Finding) -> String {
    let mark = match finding.state {
        CheckStatus::Good => " ",
        CheckStatus::Warning => "!",
        CheckStatus::Bad => "X",
    };
    let advice = finding.advice.as_ref().map_or_else(String::new, |advice| format!("\n    {advice}"));
    format!("{mark} {}: {}{advice}", finding.subject, finding.found)
}

fn what_is_bad(findings: &[Finding]) -> String {
    let bad = findings.iter().filter(|finding| finding.state == CheckStatus::Bad);
    let bad: Vec<String> = bad
        .map(|finding| format!("{}: {}. {}", finding.subject, finding.found, finding.advice.as_deref().unwrap_or("")))
        .collect();
    format!("this machine does not support real time: {}", bad.join("; "))
}
