//! The benchmark `relay`: the delay and the rate limits that the emulator adds between two real hosts.
//!
//! Measurements through the emulator alternate with measurements over a direct pair of interfaces, three times each,
//! and medians are reported. There are four measurements:
//!
//! * the round-trip time of a small datagram every millisecond, without and with the emulator;
//! * the delay of 10 000 datagrams per second over a link of 10 ms;
//! * the rate at which an overloaded link of 100 Mbit/s forwards packets for ten seconds;
//! * the forwarding of 100 000 packets of 1500 bytes per second.

use crate::exit::Failure;
use crate::measurement::{self, median};
use fullpipe::embedded;
use fullpipe::lab::real_time::{self, HostNamespace, HostSettings, Lateness, RealTimeOptions};
use fullpipe::lab::{self, real_time::measure};
use fullpipe::scenario::{self, Override};
use fullpipe::units::{Duration, Instant};
use serde_json::{Value, json};
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

const ROUNDS: usize = 3;
const ROUND_TRIPS: u32 = 1500;

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::machine(format!("relay: {error}"))
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

const LEFT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const RIGHT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

fn ends(hosts: &[HostNamespace]) -> io::Result<[measure::PathEndpoint<'_>; 2]> {
    match hosts {
        [left, right] => Ok([
            measure::PathEndpoint { host: left, address: LEFT },
            measure::PathEndpoint { host: right, address: RIGHT },
        ]),
        _ => Err(io::Error::other("expected two hosts")),
    }
}

/// The result of a measurement through the emulator, and the lateness of the emulator.
pub(crate) struct EmulatorMeasurement<T> {
    pub(crate) result: T,
    pub(crate) lateness: Lateness,
    refused: u64,
}

/// The sums over all runs.
#[derive(Default)]
pub(crate) struct RunSums {
    seconds: f64,
    packets: u64,
    hops: u64,
}

/// Runs the scenario with these settings until the measurement that starts on its hosts is complete.
pub(crate) fn through<T: 'static>(
    home: &real_time::EmulatorNamespace,
    set: &[&str],
    sums: &mut RunSums,
    begin: impl Fn(&real_time::EmulatorNamespace, [measure::PathEndpoint<'_>; 2]) -> io::Result<measure::Measurement<T>>,
) -> Result<EmulatorMeasurement<T>, Failure> {
    let text = embedded::scenario_text("bench/relay").ok_or_else(|| failed("no embedded scenario bench/relay"))?;
    let set: Vec<Override> = set.iter().map(|text| Override::parse(text).map_err(failed)).collect::<Result<_, _>>()?;
    let loaded = scenario::load(text, "scenarios/bench/relay.toml", &set).map_err(failed)?;
    let running = std::cell::RefCell::new(None);
    let options = lab::Options::default();
    let mut each = |_: Instant, _: &Lateness| running.borrow().as_ref().is_some_and(measure::Measurement::is_done);
    let asked = RealTimeOptions {
        at_hosts: Some(&mut |hosts: &[HostNamespace]| {
            *running.borrow_mut() = Some(begin(home, ends(hosts)?)?);
            Ok(())
        }),
        ..RealTimeOptions::new(&options, home, &mut each)
    };
    let outcome = real_time::run(Arc::new(loaded.scenario), asked).map_err(failed)?;
    let measurement = running.into_inner().ok_or_else(|| failed("nothing was measured"))?;
    let refused = outcome.refused;
    let totals = outcome.outcome.totals();
    sums.seconds += outcome.ran.as_secs_f64();
    sums.packets += totals.data_packets;
    sums.hops += totals.packet_hops;
    let verdict = outcome.outcome.verdict();
    if !verdict.passed() {
        return Err(Failure::untrusted(verdict.to_string()));
    }
    Ok(EmulatorMeasurement {
        result: measurement.finish().map_err(failed)?,
        lateness: outcome.lateness,
        refused: refused.malformed + refused.too_many_conversations,
    })
}

/// Creates two hosts with a direct connection.
fn pair(home: &real_time::EmulatorNamespace) -> io::Result<[HostNamespace; 2]> {
    let [left, right] = [[2, 1, 0, 0, 0, 1], [2, 1, 0, 0, 0, 2]];
    let settings = |address, mac, gateway_mac| HostSettings {
        name: "bench".to_owned(),
        addresses: vec![address],
        mac,
        gateway_mac,
        mtu_bytes: 1500,
    };
    home.add_pair([&settings(LEFT, left, right), &settings(RIGHT, right, left)])
}

fn sorted(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort();
    times
}

/// Runs the measurement and returns the benchmark's row. The process must have a single thread.
pub(super) fn measure() -> Result<Value, Failure> {
    real_time::enter_user_namespace().map_err(failed)?;
    let home = real_time::EmulatorNamespace::new().map_err(failed)?;
    let millisecond = Duration::from_millis(1);
    let mut sums = RunSums::default();
    let begin = measurement::cpu_seconds();
    let (mut direct, mut relayed, mut direct_99, mut relayed_99) = (vec![], vec![], vec![], vec![]);
    let (mut delay_50, mut delay_99, mut direct_delay, mut rate) = (vec![], vec![], vec![], vec![]);
    let (mut lost, mut own_losses, mut packets_per_second) = (vec![], 0, vec![]);
    for _ in 0..ROUNDS {
        let hosts = pair(&home).map_err(failed)?;
        let [left, right] = ends(&hosts).map_err(failed)?;
        let times = measure::measure_round_trips(&home, left, right, ROUND_TRIPS, millisecond).and_then(|m| m.finish());
        let times = sorted(times.map_err(failed)?);
        direct.push(micros(measure::quantile(&times, 0.5)));
        direct_99.push(micros(measure::quantile(&times, 0.99)));
        let stream = measure::measure_datagrams(&home, left, right, 100, Duration::from_nanos(100_000), 20_000);
        let delays = stream.and_then(|m| m.finish()).map_err(failed)?.delays();
        direct_delay.push(micros(measure::quantile(&delays, 0.5)));

        let times = through(&home, &[], &mut sums, |home, [left, right]| {
            measure::measure_round_trips(home, left, right, ROUND_TRIPS, millisecond)
        })?;
        let times = sorted(times.result);
        relayed.push(micros(measure::quantile(&times, 0.5)));
        relayed_99.push(micros(measure::quantile(&times, 0.99)));

        // 10 ms, plus 10 ns for 128 bytes at 100 Gbit/s.
        let stream = through(&home, &["link.path.delay=10ms"], &mut sums, |home, [left, right]| {
            measure::measure_datagrams(home, left, right, 100, Duration::from_nanos(100_000), 50_000)
        })?;
        let errors: Vec<Duration> = stream.result.delays();
        let error = |share| (micros(measure::quantile(&errors, share)) - 10_000.0).abs();
        delay_50.push(error(0.5));
        delay_99.push(error(0.99));

        // 1500 bytes every 109 us are 110 Mbit/s.
        let set = ["link.path.rate=100Mbit/s", "link.path.queue=100packets"];
        let stream = through(&home, &set, &mut sums, |home, [left, right]| {
            measure::measure_datagrams(home, left, right, 1472, Duration::from_nanos(109_090), 92_000)
        })?;
        rate.push(stream.result.arrivals_per_second() * 12_000.0);

        let stream = through(&home, &[], &mut sums, |home, [left, right]| {
            measure::measure_datagrams(home, left, right, 1472, Duration::from_nanos(10_000), 300_000)
        })?;
        let sent = stream.result.sent;
        lost.push((sent - (stream.result.arrived.len() as u64).min(sent)) as f64);
        own_losses += stream.lateness.drops() + stream.refused;
        packets_per_second.push(stream.result.arrivals_per_second());
    }
    let (direct, relayed) = (median(direct), median(relayed));
    let rate = median(rate);
    let cpu_seconds = measurement::cpu_seconds() - begin;
    let counts = [Some(sums.packets), Some(sums.hops)];
    let further = json!({
        "direct_round_trip_p50_us": direct,
        "direct_round_trip_p99_us": median(direct_99),
        "round_trip_p50_us": relayed,
        "round_trip_p99_us": median(relayed_99),
        "added_round_trip_p50_us": relayed - direct,
        "delay_error_p50_us": median(delay_50),
        "delay_error_p99_us": median(delay_99),
        "direct_delay_p50_us": median(direct_delay),
        "rate_bps": rate,
        "rate_error_percent": (rate / 1e8 - 1.0) * 100.0,
        "relayed_packets_per_second": median(packets_per_second),
        "packets_not_arrived": median(lost),
        "own_losses": own_losses,
    });
    Ok(measurement::row(measurement::RELAY, sums.seconds, counts, cpu_seconds, measurement::peak_rss_bytes(), further))
}

/// Returns the row in words.
pub(super) fn describe(row: &Value) -> String {
    let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    format!(
        "relay: round trip {:.1} us (p50) instead of {:.1} with a direct pair: {:.1} us more; delay of 10 ms missed by {:.1} us \
         (p50) and {:.0} us (p99); 100 Mbit/s held within {:.2} %; {:.0} packets of 1500 bytes a second, {} of 300000 not \
         arrived, own losses {}",
        number("round_trip_p50_us"),
        number("direct_round_trip_p50_us"),
        number("added_round_trip_p50_us"),
        number("delay_error_p50_us"),
        number("delay_error_p99_us"),
        number("rate_error_percent").abs(),
        number("relayed_packets_per_second"),
        number("packets_not_arrived"),
        number("own_losses"),
    )
}
