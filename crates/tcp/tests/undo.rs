//! Spurious reductions (RFC 3522, 4015, 5682, D-SACK as in Linux), and limited transmit (RFC 3042). Windows of ten segments of 1000
//! bytes, round-trip time 100 ms, data written at 100 ms, NewReno.

use crate::common::*;
use fullpipe_congestion::cubic::Cubic;
use fullpipe_congestion::linux_reno::LinuxReno;
use fullpipe_congestion::newreno::NewReno;
use fullpipe_tcp::{Config, LossDetection};
use fullpipe_units::Duration;
use fullpipe_wire::tcp::flags;

/// All three detectors disabled.
fn config(detection: LossDetection) -> Config {
    Config {
        mss_bytes: 1000,
        initial_window_segments: 10,
        nagle: false,
        tail_loss_probe: false,
        loss_detection: detection,
        dsack_undo: false,
        eifel: false,
        frto: false,
        ..Config::linux()
    }
}

const SACK: LossDetection = LossDetection::DuplicateAcks;
const RACK: LossDetection = LossDetection::Rack;

/// Ten segments in flight, and more data.
fn full(config: Config) -> Script {
    let mut script = Script::client_with(config, Box::new(NewReno::new(None)), ms(100));
    script.write(100_000);
    assert_eq!(script.sent().len(), 10);
    script
}

fn sack(script: &mut Script, acknowledged: u32, ranges: &[(u32, u32)]) {
    let blocks: Vec<_> = ranges.iter().map(|(from, to)| (from * 1000, to * 1000)).collect();
    script.ack(acknowledged * 1000, &blocks);
}

fn sent(script: &mut Script) -> Vec<u32> {
    script.sent().iter().map(|segment| segment.0 / 1000).collect()
}

fn window(script: &Script) -> (u64, u64) {
    let inspect = script.connection.inspect();
    (inspect.cwnd_bytes, inspect.ssthresh_bytes)
}

fn undone(script: &Script) -> u64 {
    script.connection.statistics().undone_reductions
}

/// Segment 0 is only late: retransmitted at 200 ms, after 1 to 3 were reported.
fn late(config: Config) -> Script {
    let mut script = full(config);
    script.advance(ms(100));
    sack(&mut script, 0, &[(1, 4)]);
    assert_eq!(sent(&mut script)[0], 0);
    assert!(script.connection.inspect().in_recovery);
    // Half of the seven in flight.
    assert_eq!(script.connection.inspect().ssthresh_bytes, 3_500);
    script
}

// F-RTO ---------------------------------------------------------------------------------------------------------------

/// Everything is delayed beyond the timeout at 400 ms (100 + 100 + 4 x 50); the first segment is retransmitted.
fn after_time_out(config: Config) -> Script {
    let mut script = full(config);
    assert_eq!(script.timer(), at_ms(400));
    assert_eq!(sent(&mut script), [0]);
    // Half of the ten in flight; one segment.
    assert_eq!(window(&script), (1_000, 5_000));
    script
}

#[test]
fn spurious_timeout_is_detected_by_an_original_and_the_window_restored() {
    for detection in [SACK, RACK] {
        let mut script = after_time_out(Config { frto: true, ..config(detection) });
        script.advance(ms(10));
        // Step 2b: the acknowledgment advances, so two new segments are sent (one window and one of slow start).
        sack(&mut script, 1, &[]);
        assert_eq!(sent(&mut script), [10, 11]);
        // Step 3b: segment 1 arrived and was sent once: the timeout was spurious. Ten segments are restored, without a threshold, and
        // slow start adds one for this acknowledgment. In flight: 2 to 11, so one more is sent.
        sack(&mut script, 2, &[]);
        assert_eq!(undone(&script), 1);
        assert_eq!(window(&script), (11_000, u64::MAX));
        assert_eq!(sent(&mut script), [12]);
        assert_eq!(script.connection.inspect().in_flight_bytes, 11_000);
        sack(&mut script, 13, &[]);
        assert_eq!(script.connection.statistics().retransmitted_segments, 1);
        assert_eq!(script.connection.statistics().recoveries, 0);
    }
}

#[test]
fn first_acknowledgment_beyond_the_retransmission_is_sufficient() {
    let mut script = after_time_out(Config { frto: true, ..config(RACK) });
    script.advance(ms(10));
    sack(&mut script, 3, &[]);
    assert_eq!((undone(&script), window(&script)), (1, (11_000, u64::MAX)));
    // 3 to 9 are in flight again, and four more fit.
    assert_eq!(sent(&mut script), [10, 11, 12, 13]);
}

#[test]
fn duplicate_after_the_new_data_confirms_the_losses() {
    // Step 3a: only data sent after the timeout arrived.
    let mut script = after_time_out(Config { frto: true, ..config(RACK) });
    script.advance(ms(100));
    sack(&mut script, 1, &[]);
    assert_eq!(sent(&mut script), [10, 11]);
    script.advance(ms(100));
    sack(&mut script, 1, &[(10, 11)]);
    assert_eq!(undone(&script), 0);
    assert_eq!(sent(&mut script)[0], 1);
    assert!(window(&script).0 < 5_000);
}

#[test]
fn duplicate_before_the_acknowledgment_advances_decides_nothing() {
    let mut script = after_time_out(Config { frto: true, ..config(SACK) });
    script.advance(ms(10));
    sack(&mut script, 0, &[]);
    assert_eq!(sent(&mut script), Vec::<u32>::new());
    sack(&mut script, 1, &[]);
    assert_eq!(sent(&mut script), [10, 11]);
    let mut script = after_time_out(Config { frto: false, ..config(SACK) });
    script.advance(ms(100));
    sack(&mut script, 1, &[]);
    assert_eq!(sent(&mut script), [1, 2], "without F-RTO");
}

#[test]
fn retransmissions_continue_without_new_data() {
    let mut script = Script::client_with(Config { frto: true, ..config(RACK) }, Box::new(NewReno::new(None)), ms(100));
    script.write(10_000);
    script.out();
    script.timer();
    script.out();
    script.advance(ms(100));
    sack(&mut script, 1, &[]);
    assert_eq!(sent(&mut script), [1, 2]);
    // F-RTO no longer evaluates: 3 arrives, but the timeout remains.
    script.advance(ms(100));
    sack(&mut script, 4, &[]);
    assert_eq!(undone(&script), 0);
}

#[test]
fn backoff_ends_with_a_spurious_timeout() {
    let mut script = after_time_out(Config { frto: true, ..config(RACK) });
    assert_eq!(script.connection.inspect().rto, ms(600));
    script.advance(ms(10));
    sack(&mut script, 3, &[]);
    // The sample of an original: 310 ms. srtt 100 + 210 / 8 = 126.25, variation 50 + (210 - 50) / 4 = 90.
    assert_eq!(script.connection.inspect().rto, Duration::from_micros(126_250 + 360_000));
}

// Eifel ---------------------------------------------------------------------------------------------------------------

/// The acknowledgment of a receiver that got the original, sent at 100 ms.
fn with_echo_of_the_original(script: &mut Script, acknowledged: u32) {
    let mut segment = script.segment(acknowledged, flags::ACK);
    // The clock starts at one.
    segment.header.timestamp_echo = 101;
    script.deliver(segment);
}

#[test]
fn old_timestamp_in_fast_recovery_undoes_the_reduction() {
    for detection in [SACK, RACK] {
        let mut script = late(Config { eifel: true, ..config(detection) });
        script.advance(ms(10));
        with_echo_of_the_original(&mut script, 4_000);
        assert_eq!(undone(&script), 1);
        // Ten restored, and one of slow start.
        assert_eq!(window(&script), (11_000, u64::MAX));
        assert!(!script.connection.inspect().in_recovery);
    }
}

#[test]
fn original_that_arrives_before_any_retransmission_undoes_the_reduction() {
    for (eifel, expected) in [(true, 1), (false, 0)] {
        let mut script = full(Config { eifel, ..config(RACK) });
        script.advance(ms(100));
        sack(&mut script, 0, &[(1, 4)]);
        assert!(script.connection.inspect().in_recovery);
        // A small window or pacing holds the retransmission back, and the acknowledgment of the original arrives. It echoes the
        // timestamp of a later segment.
        script.advance(ms(1));
        sack(&mut script, 4, &[]);
        assert_eq!(undone(&script), expected);
        assert_eq!(script.connection.inspect().in_recovery, !eifel);
        if eifel {
            assert_eq!(window(&script), (11_000, u64::MAX));
            assert_eq!(sent(&mut script)[0], 10, "nothing is retransmitted");
        }
    }
}

#[test]
fn advance_after_a_retransmission_shows_nothing() {
    // As above, but segment 0 was retransmitted before the acknowledgment advances, which may be the retransmission's.
    let mut script = late(Config { eifel: true, ..config(RACK) });
    script.advance(ms(100));
    sack(&mut script, 1, &[]);
    assert_eq!(undone(&script), 0);
}

#[test]
fn timestamp_of_the_retransmission_confirms_the_reduction() {
    let mut script = late(Config { eifel: true, ..config(RACK) });
    script.advance(ms(100));
    sack(&mut script, 4, &[]);
    assert_eq!(undone(&script), 0);
    assert!(script.connection.inspect().in_recovery);
}

#[test]
fn old_timestamp_after_a_timeout_undoes_it() {
    let mut script = after_time_out(Config { eifel: true, ..config(RACK) });
    script.advance(ms(10));
    with_echo_of_the_original(&mut script, 1_000);
    assert_eq!((undone(&script), window(&script)), (1, (11_000, u64::MAX)));
    assert_eq!(sent(&mut script), [10, 11], "nine in flight again");
}

#[test]
fn eifel_without_timestamps_detects_nothing() {
    let mut script = late(Config { eifel: true, timestamps: false, ..config(RACK) });
    script.advance(ms(10));
    sack(&mut script, 4, &[]);
    assert_eq!(undone(&script), 0);
}

// Duplicate reports ---------------------------------------------------------------------------------------------------

#[test]
fn report_of_the_only_retransmission_undoes_the_reduction() {
    let mut script = late(Config { dsack_undo: true, ..config(SACK) });
    script.advance(ms(10));
    sack(&mut script, 4, &[]);
    assert!(script.connection.inspect().in_recovery);
    sack(&mut script, 4, &[(0, 1)]);
    assert_eq!((undone(&script), window(&script)), (1, (10_000, u64::MAX)));
    assert!(!script.connection.inspect().in_recovery);
}

#[test]
fn report_after_the_end_of_recovery_undoes_the_reduction_once() {
    for detection in [SACK, RACK] {
        let mut script = late(Config { dsack_undo: true, ..config(detection) });
        let new = script.connection.statistics().data_segments_sent as u32 - 1;
        script.advance(ms(50));
        sack(&mut script, new, &[]);
        // One acknowledgment of congestion avoidance: 1000 x 1000 / 3500.
        assert_eq!(window(&script), (3_500 + 285, 3_500));
        sack(&mut script, new, &[(0, 1)]);
        assert_eq!((undone(&script), window(&script)), (1, (10_000, u64::MAX)));
        sack(&mut script, new, &[(0, 1)]);
        assert_eq!(undone(&script), 1);
    }
}

#[test]
fn report_of_one_of_two_retransmissions_does_not_undo() {
    // 0 and 1 are late, 2 to 5 were reported.
    let mut script = full(Config { dsack_undo: true, ..config(SACK) });
    script.advance(ms(100));
    sack(&mut script, 0, &[(2, 6)]);
    assert_eq!(sent(&mut script), [0, 1]);
    script.advance(ms(10));
    sack(&mut script, 6, &[]);
    sack(&mut script, 6, &[(0, 1)]);
    assert_eq!(undone(&script), 0);
    sack(&mut script, 6, &[(1, 2)]);
    assert_eq!((undone(&script), window(&script).1), (1, u64::MAX));
}

#[test]
fn reduction_is_not_undone_without_detectors() {
    let mut script = late(config(RACK));
    script.advance(ms(10));
    with_echo_of_the_original(&mut script, 4_000);
    sack(&mut script, 4, &[(0, 1)]);
    assert_eq!(undone(&script), 0);
    let mut script = after_time_out(config(RACK));
    script.advance(ms(10));
    with_echo_of_the_original(&mut script, 3_000);
    assert_eq!((undone(&script), window(&script).1), (0, 5_000));
    let ns3 = Config::ns3();
    assert!(!ns3.dsack && !ns3.dsack_undo && !ns3.eifel && !ns3.frto);
}

#[test]
fn every_control_restores_its_window() {
    // Before: ten segments and no threshold. LinuxReno and CUBIC add all acknowledged bytes: three.
    let mut controls: Vec<Box<dyn fullpipe_congestion::Controller>> =
        vec![Box::new(LinuxReno::default()), Box::new(Cubic::default())];
    for control in controls.drain(..) {
        let mut script = Script::client_with(Config { eifel: true, ..config(RACK) }, control, ms(100));
        script.write(100_000);
        script.out();
        script.timer();
        script.out();
        assert_eq!(script.connection.inspect().cwnd_bytes, 1_000);
        script.advance(ms(10));
        with_echo_of_the_original(&mut script, 3_000);
        assert_eq!(window(&script), (13_000, u64::MAX));
    }
}

// Limited transmit ----------------------------------------------------------------------------------------------------

#[test]
fn first_two_duplicates_without_limited_transmit_release_nothing() {
    for with_sack in [true, false] {
        for (limited_transmit, expected) in [(true, vec![10]), (false, vec![])] {
            let mut script = full(Config { limited_transmit, sack: with_sack, ..config(SACK) });
            let report = |script: &mut Script, up_to| {
                if with_sack { sack(script, 0, &[(1, up_to)]) } else { sack(script, 0, &[]) }
            };
            script.advance(ms(100));
            if !with_sack {
                // Not a duplicate: the window changes from that of the SYN, which is not scaled.
                script.ack(0, &[]);
            }
            report(&mut script, 2);
            assert_eq!(sent(&mut script), expected, "{with_sack}");
            report(&mut script, 3);
            assert_eq!(sent(&mut script).len(), expected.len());
            report(&mut script, 4);
            assert_eq!(sent(&mut script)[0], 0);
            // Half of twelve, or of ten, less three that arrived.
            let threshold = if limited_transmit { 4_500 } else { 3_500 };
            assert_eq!(script.connection.inspect().ssthresh_bytes, threshold);
        }
    }
}
