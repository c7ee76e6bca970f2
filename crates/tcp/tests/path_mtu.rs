//! Paths that drop what is too large, without a word or with one.

use crate::common::*;
use fullpipe_congestion::newreno::NewReno;
use fullpipe_tcp::{Config, Connection, LossDetection};
use fullpipe_units::{Duration, Instant, Rate};
use std::sync::Arc;

const IPV4_HEADER: u32 = 20;

fn packet_bytes(segment: &Segment) -> u32 {
    IPV4_HEADER + segment.header.header_bytes() + u32::from(segment.header.payload_bytes)
}

/// A transfer of 5 MB at 10 Mbit/s over a path whose MTU for data is 1300 without either end's knowing.
fn through_a_black_hole(config: Config) -> Pair {
    let mut pair = Pair::new([config.clone(), config.clone()], [1, 2], 2);
    pair.ends[0] = Connection::client(Arc::new(config), Box::new(NewReno::new(None)), 1, Instant::ZERO);
    pair.paths[0].rate = Some(Rate::from_megabits_per_second(10));
    pair.applications[0] = Application::new(5_000_000);
    pair.filter = Box::new(|_, _, segment| packet_bytes(segment) > 1300);
    pair
}

#[test]
fn a_black_hole_is_left_and_the_size_that_passes_found() {
    // 1300 less 20 for IPv4, 20 for TCP and 12 for timestamps: 1248 of payload pass. The third time-out halves 1448 to
    // 724. Then, midway each time (rounded up): 1086 passes, 1267 does not, 1177 (1176 and a half), 1222 (1221 and a
    // half) and 1244 pass, 1255 and 1250 (1249 and a half) do not; 1244 is within 8 bytes of 1249 and stays.
    for loss_detection in [LossDetection::Rack, LossDetection::DuplicateAcks] {
        let config = Config { black_hole_timeouts: Some(3), loss_detection, ..Config::linux() };
        let mut pair = through_a_black_hole(config);
        let mut threshold = None;
        while pair.step() {
            let inspect = pair.ends[0].inspect();
            if inspect.mss_bytes < 1448 && pair.applications[0].closed.is_none() {
                // No reduction but that of the time-outs: a probe's loss says nothing of congestion.
                assert!(
                    inspect.in_recovery || *threshold.get_or_insert(inspect.ssthresh_bytes) == inspect.ssthresh_bytes
                );
            }
        }
        assert_eq!(pair.applications[1].read, 5_000_000);
        assert_eq!(pair.ends[0].inspect().mss_bytes, 1244, "{loss_detection:?}");
        let statistics = pair.ends[0].statistics();
        assert_eq!((statistics.timeouts, statistics.recoveries), (3, 3), "{loss_detection:?}");
    }
}

#[test]
fn what_a_router_says_bounds_the_search() {
    // As before, but when segments have become small a router says 1200: 1148 of payload. Midway from 724: 936, 1042,
    // 1095, 1122, 1135, 1142, all of which pass; 1142 is within 8 bytes of 1148.
    let mut pair = through_a_black_hole(Config { black_hole_timeouts: Some(3), ..Config::linux() });
    let mut told = false;
    while pair.step() {
        let connection = &mut pair.ends[0];
        if !told && connection.inspect().mss_bytes == 724 {
            told = true;
            // The first byte, whose number is one more than the SYN's, is still outstanding.
            connection.on_packet_too_big(pair.now, 1200 - IPV4_HEADER, 2);
        }
    }
    assert!(told);
    assert_eq!(pair.applications[1].read, 5_000_000);
    assert_eq!(pair.ends[0].inspect().mss_bytes, 1142);
    assert_eq!(pair.ends[0].statistics().recoveries, 0);
}

#[test]
fn without_the_setting_a_black_hole_is_the_end() {
    let config = Config { max_retransmissions: 5, ..Config::linux() };
    let mut pair = through_a_black_hole(config);
    assert!(pair.run(Duration::from_secs(1000)));
    assert_eq!(pair.applications[1].read, 0);
    assert_eq!(pair.applications[0].closed, Some(fullpipe_transport::CloseReason::TimedOut));
}

#[test]
fn a_router_that_says_so_costs_a_round_trip_and_no_window() {
    // A router 5 ms away drops what is larger than 1300 bytes and says so: the host hears of it as soon as it has sent
    // the first flight, so to say. No time-out, no recovery, and everything arrives.
    let mut pair = Pair::new([Config::linux(), Config::linux()], [1, 2], 2);
    pair.paths[0].rate = Some(Rate::from_megabits_per_second(10));
    pair.applications[0] = Application::new(1_000_000);
    pair.filter = Box::new(|_, _, segment| packet_bytes(segment) > 1300);
    pair.log = Some(Vec::new());
    let mut told = false;
    while pair.step() {
        let dropped = pair.log.as_ref().unwrap().iter().find(|(_, _, segment)| packet_bytes(segment) > 1300);
        if let Some((at, _, segment)) = dropped.cloned()
            && !told
            && pair.now >= at
        {
            told = true;
            pair.ends[0].on_packet_too_big(pair.now, 1300 - IPV4_HEADER, segment.header.sequence);
        }
    }
    let statistics = pair.ends[0].statistics();
    assert_eq!((statistics.timeouts, statistics.recoveries, pair.applications[1].read), (0, 0, 1_000_000));
    assert_eq!(pair.ends[0].inspect().mss_bytes, 1248);
    // The first flight of ten segments went in vain: 14 480 bytes are twelve segments of 1248, one cut in two each.
    assert!(pair.ends[1].statistics().duplicate_segments_received == 0);
}
