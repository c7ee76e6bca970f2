//! Paths that drop large packets, with or without an ICMP error.

use crate::common::*;
use fullpipe_congestion::newreno::NewReno;
use fullpipe_tcp::{Config, Connection, LossDetection};
use fullpipe_units::{Duration, Instant, Rate};
use std::sync::Arc;

const IPV4_HEADER: u32 = 20;

fn packet_bytes(segment: &Segment) -> u32 {
    IPV4_HEADER + segment.header.header_bytes() + u32::from(segment.header.payload_bytes)
}

/// A transfer of 5 MB at 10 Mbit/s over a path whose MTU for data is 1300, which is unknown to both ends.
fn through_a_black_hole(config: Config) -> Pair {
    let mut pair = Pair::new([config.clone(), config.clone()], [1, 2], 2);
    pair.ends[0] = Connection::client(Arc::new(config), Box::new(NewReno::new(None)), 1, Instant::ZERO);
    pair.paths[0].rate = Some(Rate::from_megabits_per_second(10));
    pair.applications[0] = Application::new(5_000_000);
    pair.filter = Box::new(|_, _, segment| packet_bytes(segment) > 1300);
    pair
}

#[test]
fn black_hole_is_detected_and_the_path_mtu_found() {
    // 1300 less 20 for IPv4, 20 for TCP and 12 for timestamps: 1248 bytes of payload pass. The third timeout halves 1448 to 724. The
    // probes are midway (rounded up): 1086 passes, 1267 does not, 1177 (1176.5), 1222 (1221.5) and 1244 pass, 1255 and 1250 (1249.5) do
    // not. 1244 is within 8 bytes of 1249 and is kept.
    for loss_detection in [LossDetection::Rack, LossDetection::DuplicateAcks] {
        let config = Config { black_hole_timeouts: Some(3), loss_detection, ..Config::linux() };
        let mut pair = through_a_black_hole(config);
        let mut threshold = None;
        while pair.step() {
            let inspect = pair.ends[0].inspect();
            if inspect.mss_bytes < 1448 && pair.applications[0].closed.is_none() {
                // Only the timeouts reduce the window: the loss of a probe is not a sign of congestion.
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
fn packet_too_big_report_bounds_the_search() {
    // As above, but when segments have become small a router reports 1200: 1148 bytes of payload. Midway from 724: 936, 1042, 1095, 1122,
    // 1135, 1142, all of which pass; 1142 is within 8 bytes of 1148.
    let mut pair = through_a_black_hole(Config { black_hole_timeouts: Some(3), ..Config::linux() });
    let mut told = false;
    while pair.step() {
        let connection = &mut pair.ends[0];
        if !told && connection.inspect().mss_bytes == 724 {
            told = true;
            // The first byte, whose number follows that of the SYN, is still outstanding.
            connection.on_packet_too_big(pair.now, 1200 - IPV4_HEADER, 2);
        }
    }
    assert!(told);
    assert_eq!(pair.applications[1].read, 5_000_000);
    assert_eq!(pair.ends[0].inspect().mss_bytes, 1142);
    assert_eq!(pair.ends[0].statistics().recoveries, 0);
}

#[test]
fn black_hole_without_detection_aborts_the_connection() {
    let config = Config { max_retransmissions: 5, ..Config::linux() };
    let mut pair = through_a_black_hole(config);
    assert!(pair.run(Duration::from_secs(1000)));
    assert_eq!(pair.applications[1].read, 0);
    assert_eq!(pair.applications[0].closed, Some(fullpipe_transport::CloseReason::TimedOut));
}

#[test]
fn packet_too_big_report_costs_a_round_trip_without_a_reduction() {
    // A router 5 ms away drops packets larger than 1300 bytes and reports it. In this test the host receives the report immediately after
    // the first flight. There is no timeout and no recovery, and everything arrives.
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
    // The first flight of ten segments is lost: 14 480 bytes are twelve segments of 1248, and each segment is split in two.
    assert!(pair.ends[1].statistics().duplicate_segments_received == 0);
}
