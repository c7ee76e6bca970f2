//! Minstrel-HT against the vectors, and against ideal rate control.

use crate::common::saturated::{Saturated, Source};
use crate::common::{Check, multi_stream, vectors};
use fullpipe_units::Instant;
use fullpipe_wifi::config::{Config, StationConfig};
use fullpipe_wifi::phy::{Band, ChannelWidth, Preamble, Standard};
use fullpipe_wifi::rate_control::minstrel::{attempts, average_length, filter, packet_time_ns, throughput};
use fullpipe_wifi::rate_control::{Capabilities, IdealTarget, RateControlConfig};

#[test]
fn minstrel_computes_the_numbers_of_the_vectors() {
    let mut check = Check::new("minstrel");
    for row in vectors("minstrel") {
        let inputs = &row.inputs;
        let numbers = |key: &str| inputs.numbers(key).into_iter().map(|number| number as u32).collect::<Vec<_>>();
        let expected: Option<Vec<u32>> = row
            .expected
            .has("averages")
            .then(|| row.expected.numbers("averages").iter().map(|number| *number as u32).collect());
        let what = inputs.text("what");
        if what == "low-pass" {
            let mut last: Option<[u32; 2]> = None;
            let averages = numbers("samples").into_iter().map(|sample| {
                let next = last.map_or(sample.max(1), |last| filter(sample, last));
                last = Some([next, last.map_or(next, |last| last[0])]);
                next
            });
            check.equal(&row.id, Some(averages.collect::<Vec<_>>()), expected);
            continue;
        }
        if what.starts_with("EWMA") {
            let mut average = inputs.integer("start") as u32;
            let averages = numbers("samples").into_iter().map(|sample| {
                average = average_length(average, sample);
                average
            });
            check.equal(&row.id, Some(averages.collect::<Vec<_>>()), expected);
            continue;
        }
        let (phy, mcs) = if inputs.has("ht mcs 0") {
            ("ht", 0)
        } else if inputs.has("ht mcs 7") {
            ("ht", 7)
        } else {
            ("vht", 9)
        };
        let guard = if inputs.text("short_gi") == "1" { 400.0 } else { 800.0 };
        let time = packet_time_ns(multi_stream(phy, mcs, inputs.integer("width_mhz"), inputs.integer("nss"), guard));
        match what {
            "packet time" => check.relative(&row.id, time as f64, row.expected.number("ns"), 0.005),
            "throughput" => {
                let probability = inputs.number("prob") as u32;
                let found = throughput(probability, time, 4096 * inputs.integer("ampdu") as u32);
                let expected = row.expected.number("value");
                // 0.5 % of the value, rounded to whole numbers.
                check.absolute(&row.id, found as f64, expected, (0.005 * expected).floor());
            }
            _ => {
                let found = attempts(4096, time, 4096 * inputs.integer("ampdu") as u32, false);
                check.equal(&row.id, f64::from(found), row.expected.number("without rts"));
            }
        }
    }
    check.finish(33);
}

fn network(standard: Standard, distance_m: f64, control: RateControlConfig, shadowing: &[(Instant, f64)]) -> Config {
    let mut config = Config::new("lan", 12, standard);
    let mut station = StationConfig::new("station", distance_m, control);
    station.shadowing = shadowing.to_vec();
    config.stations.push(station);
    config
}

fn seconds(seconds: f64) -> Instant {
    Instant::from_nanos((1e9 * seconds) as u64)
}

/// Goodput of a saturated station in Mbit/s from one time to another.
fn goodput(config: Config, from: Instant, to: Instant) -> f64 {
    let mut saturated = Saturated::new(config, vec![Source::uplink(0, 1472, 200)]);
    saturated.run(from, u64::MAX);
    let before = saturated.delivered[0];
    saturated.run(to, u64::MAX);
    ((saturated.delivered[0] - before) * 8 * 1472) as f64 * 1e3 / (to - from).as_nanos() as f64
}

const CASES: [(Standard, u8, ChannelWidth); 3] = [
    (Standard::N(Band::Ghz5), 1, ChannelWidth::Mhz20),
    (Standard::N(Band::Ghz5), 2, ChannelWidth::Mhz40),
    (Standard::Ac, 2, ChannelWidth::Mhz80),
];

/// Minstrel-HT reaches the throughput of ideal rate control (bit errors of 1e-6) within 10 %. It is up to 15 % below the
/// best constant rate: it accepts rates that lose 30 % of the MPDUs if they are fast enough, and its estimate does not
/// include that such losses stall the window and shorten aggregates.
#[test]
fn minstrel_reaches_the_throughput_of_ideal_rate_control_on_a_fixed_channel() {
    for (standard, streams, width) in CASES {
        let capabilities = Capabilities { streams, width, short_guard: true };
        for distance in [5.0, 15.0, 25.0, 35.0] {
            let run = |control, to| goodput(network(standard, distance, control, &[]), seconds(1.0), seconds(to));
            let ideal = run(RateControlConfig::Ideal { capabilities, target: IdealTarget::default() }, 2.0);
            let minstrel = run(RateControlConfig::MinstrelHt(capabilities), 4.0);
            let best = capabilities.rates(standard, Preamble::Long).into_iter();
            let best = best.map(|rate| run(RateControlConfig::Constant(rate), 1.3)).fold(0.0, f64::max);
            println!(
                "{standard:?} {streams} streams, {distance} m: ideal {ideal:.1}, minstrel {minstrel:.1}, \
                 best constant {best:.1} Mbit/s"
            );
            assert!(minstrel > 0.9 * ideal && minstrel > 0.85 * best, "{minstrel} {ideal} {best}");
        }
    }
}

/// The loss increases by 10 dB at 3 s and decreases again at 6 s. Minstrel-HT reaches 85 % of its later throughput within
/// 1.5 s and 2.5 s. Each rate that has become too fast fails for up to three intervals of 50 ms until its filtered
/// probability is low. After the decrease, a faster rate needs three successful samples before its probability exceeds
/// 90 %, there is a sample of such a rate every 40 ms, and there are several steps.
#[test]
fn minstrel_recovers_after_a_step_of_10_db() {
    for (standard, streams, width) in CASES {
        let capabilities = Capabilities { streams, width, short_guard: true };
        let steps = [(seconds(3.0), 10.0), (seconds(6.0), 0.0)];
        let config = network(standard, 15.0, RateControlConfig::MinstrelHt(capabilities), &steps);
        let mut saturated = Saturated::new(config, vec![Source::uplink(0, 1472, 200)]);
        let slices: Vec<f64> = (1..=180)
            .map(|slice| {
                let before = saturated.delivered[0];
                saturated.run(seconds(0.05 * f64::from(slice)), u64::MAX);
                (saturated.delivered[0] - before) as f64
            })
            .collect();
        let mean = |slices: &[f64]| slices.iter().sum::<f64>() / slices.len() as f64;
        for (name, from, limit) in [("worse", 60, 1.5), ("better", 120, 2.5)] {
            let later = mean(&slices[from + 50..from + 60]);
            let reached = (from..from + 50).find(|slice| mean(&slices[*slice..slice + 4]) > 0.85 * later);
            let seconds = reached.map(|slice| 0.05 * (slice - from) as f64);
            let mbps = later * 1472.0 * 8.0 / 50e3;
            println!("{standard:?} {streams} streams, {name}: {mbps:.1} Mbit/s, 85 % of it after {seconds:?} s");
            assert!(seconds.is_some_and(|seconds| seconds <= limit), "{seconds:?}");
        }
    }
}
