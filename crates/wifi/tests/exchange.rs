//! Timing after failed exchanges, with times worked out by hand for 802.11a: SIFS 16 µs, slot 9 µs, DIFS 34 µs, ACK timeout
//! 16 + 9 + 20 = 45 µs, ACK at 24 Mbit/s 28 µs.

use crate::common::ofdm;
use crate::common::saturated::{Saturated, Source};
use fullpipe_network::MediumDirection;
use fullpipe_units::{Duration, Instant};
use fullpipe_wifi::config::{Config, FailureTiming, RtsPolicy, StationConfig};
use fullpipe_wifi::phy::{PhyRate, Standard};
use fullpipe_wifi::rate_control::RateControlConfig;
use fullpipe_wifi::report::PpduRecord;

/// Saturated stations at these distances, and the PPDUs of a number of accesses.
fn run(stations: &[(f64, PhyRate)], change: impl FnOnce(&mut Config), events: u64) -> (Saturated, Vec<PpduRecord>) {
    let mut config = Config::new("lan", 20, Standard::A);
    config.stations = (0..)
        .zip(stations)
        .map(|(number, (distance, rate))| {
            StationConfig::new(&format!("station {number}"), *distance, RateControlConfig::Constant(*rate))
        })
        .collect();
    change(&mut config);
    let sources = (0..stations.len() as u32).map(|station| Source::uplink(station, 1472, 4)).collect();
    let mut saturated = Saturated::new(config, sources);
    saturated.network.record_ppdus();
    saturated.run(Instant::NEVER, events);
    let ppdus = saturated.network.take_ppdus();
    (saturated, ppdus)
}

/// Slots from `from` to `to`.
///
/// # Panics
/// If they are not a whole number.
fn slots(from: Instant, to: Instant) -> u64 {
    let nanoseconds = (to - from).as_nanos();
    assert!(nanoseconds.is_multiple_of(9000), "{nanoseconds} ns from {from} to {to}");
    nanoseconds / 9000
}

const fn micros(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

#[test]
fn senders_of_a_collision_wait_for_the_ack_timeout() {
    for (timing, wait, bound) in [(FailureTiming::Timeout, 45 + 34, 0), (FailureTiming::Immediate, 34, 5)] {
        let stations = [(5.0, ofdm(54.0)); 2];
        let (_, ppdus) = run(&stations, |config| config.failure_timing = timing, 4000);
        let mut least = u64::MAX;
        for pair in ppdus.windows(2).filter(|pair| pair[0].collision && pair[1].access > pair[0].access) {
            // Both stations have collided, so both wait equally long.
            least = least.min(slots(pair[0].end + micros(wait), pair[1].access));
        }
        assert!(least <= bound, "{timing:?}: {least}");
    }
}

/// At 40 m the SNR is 15.2 dB. The table of 54 Mbit/s (64-QAM, 3/4) is 1 up to 16 dB.
#[test]
fn a_frame_without_a_response_is_repeated_until_the_retry_limit() {
    let (saturated, ppdus) = run(&[(40.0, ofdm(54.0))], |_| {}, 700);
    assert_eq!((saturated.delivered[0], saturated.lost[0], ppdus.len()), (0, 100, 700));
    let status = saturated.network.link_status(MediumDirection::Uplink, 0);
    assert_eq!((status.counters.failures, status.counters.retries), (700, 600));
    let waits: Vec<u64> = ppdus.windows(2).map(|pair| slots(pair[0].end + micros(45 + 34), pair[1].access)).collect();
    // Attempt k is followed by a backoff from 0 to 31, 63, 127, 255, 511 and 1023, and the last one by 0 to 15.
    for (attempt, window) in [(0, 31), (1, 63), (2, 127), (3, 255), (4, 511), (5, 1023), (6, 15)] {
        let of_attempt = || waits.iter().skip(attempt).step_by(7);
        assert!(of_attempt().all(|wait| *wait <= window), "{attempt}");
        assert!(of_attempt().any(|wait| 2 * wait > window), "{attempt}");
    }
}

#[test]
fn others_wait_for_the_duration_of_a_frame_that_is_lost_to_noise() {
    let (_, ppdus) = run(&[(40.0, ofdm(54.0)), (5.0, ofdm(54.0))], |_| {}, 4000);
    let mut least = u64::MAX;
    for pair in ppdus.windows(2) {
        if pair[0].collision || pair[0].received > 0 || pair[1].station == pair[0].station || pair[1].collision {
            continue;
        }
        // The other station waits SIFS, the ACK that does not come, and DIFS.
        least = least.min(slots(pair[0].end + micros(16 + 28 + 34), pair[1].access));
    }
    assert_eq!(least, 1, "a counter of a DCF station that was not the last to transmit is at least 1");
}

/// Beyond 51.4 m no preamble is detected, at any rate.
#[test]
fn no_frame_arrives_from_a_station_whose_preambles_are_not_detected() {
    let (saturated, ppdus) = run(&[(52.0, ofdm(6.0))], |_| {}, 70);
    assert_eq!((saturated.delivered[0], saturated.lost[0]), (0, 10));
    assert!(ppdus.iter().all(|ppdu| ppdu.received == 0 && ppdu.response_end == ppdu.end));
    let (saturated, _) = run(&[(51.0, ofdm(6.0))], |_| {}, 70);
    assert_eq!((saturated.delivered[0], saturated.lost[0]), (70, 0));
}

/// An RTS at 24 Mbit/s does not arrive with 10 dB of SNR, a frame at 6 Mbit/s does.
#[test]
fn a_missing_cts_counts_as_a_failure_of_the_frame() {
    let change = |config: &mut Config| {
        config.rts = RtsPolicy::Above(1000);
        config.channel.detection_dbm = -100.0;
        config.rts_rate = ofdm(54.0);
    };
    let (saturated, ppdus) = run(&[(55.0, ofdm(6.0))], change, 70);
    assert_eq!((saturated.delivered[0], saturated.lost[0]), (0, 10));
    let counters = saturated.network.link_status(MediumDirection::Uplink, 0).counters;
    assert_eq!((counters.ppdus, counters.failures, counters.airtime), (0, 70, Duration::ZERO));
    // The RTS of 20 bytes takes 20 + 4 = 24 µs at 54 Mbit/s.
    for pair in ppdus.windows(2) {
        assert_eq!((pair[0].mpdus, pair[0].end - pair[0].access), (0, micros(24)));
        slots(pair[0].end + micros(45 + 34), pair[1].access);
    }
    let robust = |config: &mut Config| {
        change(config);
        config.rts_rate = ofdm(6.0);
    };
    let (saturated, _) = run(&[(55.0, ofdm(6.0))], robust, 70);
    assert_eq!((saturated.delivered[0], saturated.lost[0]), (70, 0));
}
