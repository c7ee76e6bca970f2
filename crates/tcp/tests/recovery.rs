//! Loss detection and recovery: RFC 6675, RFC 8985, RFC 9937, RFC 6582. Windows of n segments of 1000 bytes, round-trip time 100 ms, data
//! written at 100 ms.

use crate::common::*;
use fullpipe_congestion::{
    Ack, CongestionEvent, ControlRequirements, Controller, PacketState, RecoveryExit, Timeout, WindowState,
};
use fullpipe_tcp::{Config, LossDetection};
use fullpipe_units::{Duration, Instant};
use std::sync::{Arc, Mutex};

fn config(window: u32, detection: LossDetection) -> Config {
    Config {
        mss_bytes: 1000,
        initial_window_segments: window,
        nagle: false,
        tail_loss_probe: false,
        loss_detection: detection,
        ..Config::linux()
    }
}

/// A sender with a full window: `window` segments sent at 100 ms, and more data.
fn full(window: u32, detection: LossDetection) -> Script {
    let mut script = Script::client(config(window, detection), ms(100));
    script.write(1_000_000);
    assert_eq!(script.sent().len(), window as usize);
    script.advance(ms(100));
    script
}

/// A sender that has sent `count` segments and has no more data.
fn short(count: u64, detection: LossDetection) -> Script {
    let mut script = Script::client(config(20, detection), ms(100));
    script.write(count * 1000);
    assert_eq!(script.sent().len(), count as usize);
    script.advance(ms(100));
    script
}

/// Acknowledges everything before segment `acknowledged`, and selectively the segments of each range.
fn sack(script: &mut Script, acknowledged: u32, ranges: &[(u32, u32)]) {
    let blocks: Vec<_> = ranges.iter().map(|(from, to)| (from * 1000, to * 1000)).collect();
    script.ack(acknowledged * 1000, &blocks);
}

/// Numbers of the segments that are sent.
fn sent(script: &mut Script) -> Vec<u32> {
    script.sent().iter().map(|segment| segment.0 / 1000).collect()
}

const SACK: LossDetection = LossDetection::DuplicateAcks;
const RACK: LossDetection = LossDetection::Rack;

// Proportional rate reduction -----------------------------------------------------------------------------------------

#[test]
fn prr_with_one_loss_of_twenty_follows_rfc_9937() {
    // RFC 9937 section 7 (the same case as RFC 6937 section 3.1): 20 in flight, segment 0 lost, threshold 10. The first two duplicates
    // release a new segment each (limited transmit), and the third begins recovery. 22 are outstanding, 2 of which were selectively
    // acknowledged before, so RecoverFS = 20. At the k-th duplicate k - 2 are delivered and ceil((k - 2) * 10 / 20) may have been sent:
    // one at 3 (the retransmission), 5, 7, ... 17. In flight are 18 after the third, then one less per duplicate and one more per segment
    // sent. At the 19th duplicate 10 are in flight, which is no longer above the threshold. From then on the number stays there: at the
    // 20th it falls to 9, and one is sent.
    let mut script = full(20, SACK);
    let mut new = 20;
    for duplicate in 1..=21u32 {
        sack(&mut script, 0, &[(1, duplicate + 1)]);
        let expected = match duplicate {
            1 | 2 => vec![new],
            3 => vec![0],
            5 | 7 | 9 | 11 | 13 | 15 | 17 | 20 | 21 => vec![new],
            _ => vec![],
        };
        if expected == [new] {
            new += 1;
        }
        assert_eq!(sent(&mut script), expected, "duplicate {duplicate}");
    }
    let inspect = script.connection.inspect();
    assert!(inspect.in_recovery);
    assert_eq!(inspect.in_flight_bytes, 10_000);
    // At the end, the window equals the threshold.
    sack(&mut script, 22, &[]);
    let inspect = script.connection.inspect();
    assert!(!inspect.in_recovery);
    assert_eq!(inspect.cwnd_bytes, 10_000);
    assert_eq!(script.connection.statistics().recoveries, 1);
    assert_eq!(script.connection.statistics().retransmitted_segments, 1);
}

#[test]
fn prr_with_fifteen_losses_of_twenty_follows_rfc_6937() {
    // RFC 6937 section 3.1, second case: segments 0 to 14 lost. Duplicates for 15 and 16 release 20 and 21. At 17, three segments have
    // arrived: 15 lost, 22 - 3 - 15 = 4 in flight, below the threshold of 10. The bound permits as much as arrives (one each for 17, 18,
    // 19: the line PRR-CRB). It permits one more only if the cumulative acknowledgment advances without a new loss (RFC 9937: a safe
    // acknowledgment).
    let mut script = full(20, SACK);
    sack(&mut script, 0, &[(15, 16)]);
    assert_eq!(sent(&mut script), [20]);
    sack(&mut script, 0, &[(15, 17)]);
    assert_eq!(sent(&mut script), [21]);
    for (arrived, expected) in [(17, 0), (18, 1), (19, 2)] {
        sack(&mut script, 0, &[(15, arrived + 1)]);
        assert_eq!(sent(&mut script), [expected]);
        assert_eq!(
            script.connection.inspect().in_flight_bytes,
            5_000 - 1000 * u64::from(arrived > 17) + u64::from(arrived > 17) * 1000
        );
    }
    script.advance(ms(100));
    // 20 and 21: one each; then the retransmissions: two each.
    sack(&mut script, 0, &[(15, 21)]);
    assert_eq!(sent(&mut script), [3]);
    sack(&mut script, 0, &[(15, 22)]);
    assert_eq!(sent(&mut script), [4]);
    sack(&mut script, 1, &[(15, 22)]);
    assert_eq!(sent(&mut script), [5, 6]);
    sack(&mut script, 2, &[(15, 22)]);
    assert_eq!(sent(&mut script), [7, 8]);
}

#[test]
fn prr_sends_at_most_up_to_the_threshold() {
    // 10 in flight, threshold 5, segments 0 to 2 lost; 3, 4, 5 arrive in one acknowledgment: 10 - 3 - 3 = 4 in flight. Three arrived,
    // none sent: 3, but only up to the threshold: 1.
    let mut script = full(10, SACK);
    sack(&mut script, 0, &[(3, 6)]);
    assert_eq!(sent(&mut script), [0]);
    // One more arrives: 4 in flight, delivered 4, sent 1: 3, at most 1.
    sack(&mut script, 0, &[(3, 7)]);
    assert_eq!(sent(&mut script), [1]);
}

// RFC 6675 ------------------------------------------------------------------------------------------------------------

#[test]
fn segment_below_more_than_two_arrived_segments_is_lost() {
    let mut script = full(10, SACK);
    sack(&mut script, 0, &[(1, 3)]);
    // Two: limited transmit.
    assert_eq!(sent(&mut script), [10, 11]);
    assert!(!script.connection.inspect().in_recovery);
    // Not the three below segment 9: 1, 2 and 9 arrived, but above 8 only one did.
    sack(&mut script, 0, &[(9, 10), (1, 3)]);
    assert_eq!(sent(&mut script), [0]);
    assert!(script.connection.inspect().in_recovery);
    // In flight: 12 outstanding - 3 arrived - segment 0 lost + its retransmission.
    assert_eq!(script.connection.inspect().in_flight_bytes, 9_000);
}

#[test]
fn segment_below_three_separate_ranges_is_lost() {
    // Small segments of 100 bytes each, so that the byte count is not decisive.
    let mut script = Script::client(config(10, SACK), ms(100));
    for _ in 0..8 {
        script.write(100);
        script.out();
    }
    script.advance(ms(100));
    script.ack(0, &[(100, 200)]);
    script.ack(0, &[(100, 200), (300, 400)]);
    assert_eq!(script.sent(), []);
    script.ack(0, &[(100, 200), (300, 400), (500, 600)]);
    // Segment 0 has three ranges above it; the one at 200 has two.
    assert_eq!(script.sent()[0], (0, 100));
    assert!(script.connection.inspect().in_recovery);
}

#[test]
fn three_ranges_in_one_acknowledgment_are_sufficient() {
    let mut script = Script::client(config(10, SACK), ms(100));
    for _ in 0..8 {
        script.write(100);
        script.out();
    }
    script.advance(ms(100));
    script.ack(0, &[(500, 600), (300, 400), (100, 200)]);
    // 0 is lost and retransmitted. 200 and 400 are not lost, but with nothing else to send they are candidates (rule 3).
    assert!(script.connection.inspect().in_recovery);
    let statistics = script.connection.inspect();
    assert_eq!(statistics.in_flight_bytes, 400, "800 - 300 arrived - 100 lost");
    assert_eq!(script.sent()[0], (0, 100));
}

#[test]
fn sack_block_that_covers_part_of_a_segment_does_not_acknowledge_it() {
    let mut script = full(10, SACK);
    script.ack(0, &[(1_000, 2_999)]);
    assert_eq!(script.connection.inspect().in_flight_bytes, 9_000);
    script.ack(0, &[(1_500, 4_500)]);
    assert_eq!(script.connection.inspect().in_flight_bytes, 6_000, "2 and 3 now, so 0 is lost");
    // Invalid blocks are ignored: reversed, empty, beyond the sent data.
    script.ack(0, &[(6_000, 5_000), (5_000, 5_000), (9_000, 10_500)]);
    assert_eq!(script.connection.inspect().in_flight_bytes, 6_000);
}

#[test]
fn three_duplicates_mark_the_first_segment_lost_for_any_range() {
    // RFC 6675 section 5 step 1: contiguous small segments, 300 bytes in total.
    let mut script = Script::client(config(10, SACK), ms(100));
    for _ in 0..8 {
        script.write(100);
        script.out();
    }
    script.advance(ms(100));
    script.ack(0, &[(100, 200)]);
    script.ack(0, &[(100, 300)]);
    assert_eq!(script.sent(), []);
    script.ack(0, &[(100, 400)]);
    assert_eq!(script.sent()[0], (0, 100));
}

#[test]
fn rescue_retransmission_is_sent_without_other_data() {
    // RFC 6675 section 4, NextSeg rule 3. Six segments, 0 and 3 lost, window 20, threshold 10.
    let mut script = short(6, SACK);
    sack(&mut script, 0, &[(1, 3)]);
    sack(&mut script, 0, &[(4, 5), (1, 3)]);
    // Three segments arrived above segment 0: it is lost. 3 is not, because one arrived above it. But nothing else can be sent, and the
    // delivered data (1) permits one segment: segment 0.
    assert_eq!(sent(&mut script), [0]);
    sack(&mut script, 0, &[(4, 6), (1, 3)]);
    assert_eq!(sent(&mut script), [3], "rule 3");
    // Rule 4: five segments, 0 and 4 lost. When the retransmission of 0 is acknowledged, 4 is still outstanding, and no segment above it
    // can show its loss.
    let mut script = short(5, SACK);
    sack(&mut script, 0, &[(1, 4)]);
    assert_eq!(sent(&mut script), [0, 4], "PRR permits three: the second is the rescue");
    script.write(1_000);
    assert_eq!(sent(&mut script), [5]);
    script.advance(ms(100));
    sack(&mut script, 4, &[]);
    assert_eq!(sent(&mut script), Vec::<u32>::new(), "once per recovery");
}

#[test]
fn retransmission_is_not_marked_lost_by_later_arrivals() {
    let mut script = full(10, SACK);
    sack(&mut script, 0, &[(1, 4)]);
    assert_eq!(sent(&mut script), [0, 10], "three delivered: ceil(3 * 5 / 10) = 2");
    for arrived in 5..=10 {
        sack(&mut script, 0, &[(1, arrived)]);
        assert!(sent(&mut script).iter().all(|segment| *segment >= 10));
    }
    assert_eq!(script.connection.statistics().retransmitted_segments, 1);
}

#[test]
fn losses_without_sack_are_detected_by_duplicates_and_partial_acknowledgments() {
    // RFC 5681 section 3.2, RFC 6582 section 3.2. 10 in flight, 0 and 4 lost.
    let mut script = Script::client(Config { sack: false, ..config(10, SACK) }, ms(100));
    // The window of the SYN is not scaled, this one is. A change of the window would hide the first duplicate.
    script.ack(0, &[]);
    script.write(1_000_000);
    script.out();
    script.advance(ms(100));
    script.ack(0, &[]);
    assert_eq!(sent(&mut script), [10], "limited transmit (RFC 3042)");
    script.ack(0, &[]);
    assert_eq!(sent(&mut script), [11]);
    script.ack(0, &[]);
    assert_eq!(sent(&mut script), [0]);
    // 12 outstanding, 3 presumed to have arrived, one lost and retransmitted.
    assert_eq!(script.connection.inspect().in_flight_bytes, 9_000);
    assert_eq!(script.connection.inspect().ssthresh_bytes, 5_000);
    script.ack(0, &[]);
    script.advance(ms(100));
    // Partial: the next hole is lost without further duplicates.
    script.ack(4_000, &[]);
    // Four were acknowledged: the hole, and three of the four presumed. 4 to 11 are outstanding, one of which is presumed: 3 delivered,
    // so ceil(3 * 5 / 10) = 2 may have been sent.
    assert_eq!(sent(&mut script), [4]);
    assert_eq!(script.connection.inspect().in_flight_bytes, 7_000);
    script.ack(12_000, &[]);
    let inspect = script.connection.inspect();
    assert!(!inspect.in_recovery);
    assert_eq!(inspect.cwnd_bytes, 5_000);
    // Duplicates of repaired segments begin no second recovery.
    let statistics = script.connection.statistics();
    assert_eq!((statistics.recoveries, statistics.retransmitted_segments), (1, 2));
    script.out();
    for _ in 0..5 {
        script.ack(12_000, &[]);
        script.out();
    }
    assert_eq!(script.connection.statistics().recoveries, 1);
}

// RACK ----------------------------------------------------------------------------------------------------------------

#[test]
fn hole_is_lost_after_a_quarter_of_a_round_trip() {
    // Sent at 100, SACK of a later segment at 200: round-trip time 100, window 100 / 4. RFC 8985 section 6.2.
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 2)]);
    assert_eq!(sent(&mut script), [10]);
    assert_eq!(script.connection.fast_timer_deadline(), at_ms(225));
    assert_eq!(script.timer(), at_ms(225));
    assert!(script.connection.inspect().in_recovery);
    assert_eq!(sent(&mut script), [0]);
    assert!(script.connection.fast_timer_deadline().is_never());
}

#[test]
fn hole_below_three_segments_is_lost_immediately() {
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 2), (3, 4)]);
    assert!(script.connection.fast_timer_deadline() == at_ms(225));
    sack(&mut script, 0, &[(1, 2), (3, 5)]);
    assert!(script.connection.inspect().in_recovery);
    assert!(script.connection.fast_timer_deadline().is_never());
    script.out();
    // 0 and 2 lost; segments sent after the newest arrival are not evaluated.
    assert_eq!(script.connection.statistics().recoveries, 1);
}

#[test]
fn reordering_timer_waits_for_the_latest_waiting_segment() {
    // Sent at 100, 105, 110 ms; the third arrives first: the second is overdue at 105 + 100 + 25 (section 6.2 step 5: the longest of the
    // remaining times).
    let mut script = Script::client(config(10, RACK), ms(100));
    for _ in 0..3 {
        script.write(1000);
        script.out();
        script.advance(ms(5));
    }
    script.advance(ms(95));
    assert_eq!(script.now, at_ms(210));
    sack(&mut script, 0, &[(2, 3)]);
    assert_eq!(script.timer(), at_ms(230));
    // Nothing arrived, so one segment is sent.
    assert_eq!(sent(&mut script), [0]);
    // The other is sent at its acknowledgment (safe: two segments).
    script.advance(ms(100));
    sack(&mut script, 1, &[(2, 3)]);
    assert_eq!(sent(&mut script), [1]);
}

#[test]
fn three_segments_after_observed_reordering_are_not_sufficient() {
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 2)]);
    script.advance(ms(10));
    // The missing segment was only late: reordering.
    sack(&mut script, 2, &[]);
    script.out();
    assert!(script.connection.fast_timer_deadline().is_never());
    sack(&mut script, 2, &[(3, 7)]);
    assert!(!script.connection.inspect().in_recovery);
    // Newest arrival at 210, sent at 100: round-trip time 110; 100 + 110 + 25.
    assert_eq!(script.connection.fast_timer_deadline(), at_ms(235));
}

#[test]
fn retransmission_that_arrives_late_is_not_reordering() {
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 4)]);
    script.out();
    script.advance(ms(100));
    // The retransmission arrives long after segments sent after the original: this is not reordering.
    sack(&mut script, 10, &[]);
    script.out();
    script.advance(ms(100));
    let all = script.connection.statistics().data_segments_sent as u32 - 1;
    sack(&mut script, all, &[]);
    let first = sent(&mut script)[0];
    assert_eq!(first, all);
    script.advance(ms(100));
    sack(&mut script, all, &[(all + 1, all + 4)]);
    assert!(script.connection.inspect().in_recovery, "without a reordering window");
}

#[test]
fn retransmission_has_the_reordering_window_too() {
    let mut script = full(20, RACK);
    sack(&mut script, 0, &[(1, 2)]);
    script.advance(ms(10));
    // Reordering was observed, so the reordering window also applies in recovery.
    sack(&mut script, 2, &[]);
    script.out();
    sack(&mut script, 2, &[(3, 7)]);
    assert_eq!(script.timer(), at_ms(235));
    assert_eq!(sent(&mut script), [2]);
    script.advance(ms(5));
    // More segments sent at 100 arrive; they do not affect the retransmission.
    sack(&mut script, 2, &[(3, 13)]);
    let new = script.out();
    assert!(!new.is_empty());
    let number = script.offset(new[0].header.sequence) / 1000;
    script.advance(ms(100));
    sack(&mut script, 2, &[(3, 13), (number, number + 1)]);
    // The one sent at 240 arrived after 100: segments sent before it, at 235 or at 100, are evaluated by 340 + 25 at the latest. Those
    // sent at 100 are overdue; the retransmission of 2 waits.
    assert_eq!(script.connection.fast_timer_deadline(), at_ms(365));
    assert!(sent(&mut script).iter().all(|segment| *segment != 2));
    script.timer();
    assert_eq!(sent(&mut script), [2]);
}

#[test]
fn one_of_several_losses_detected_by_the_timer_is_retransmitted() {
    let mut script = full(20, RACK);
    sack(&mut script, 0, &[(1, 2)]);
    script.advance(ms(10));
    sack(&mut script, 2, &[]);
    script.out();
    sack(&mut script, 2, &[(4, 8)]);
    script.timer();
    assert_eq!(sent(&mut script), [2]);
    script.advance(ms(5));
    sack(&mut script, 2, &[(4, 13)]);
    let next = sent(&mut script);
    assert_eq!(next[0], 3);
    let new = next[1];
    script.advance(ms(100));
    sack(&mut script, 2, &[(4, 13), (new, new + 1)]);
    script.out();
    // Both retransmissions are overdue at 365 (see above), and nothing arrives.
    let before = script.connection.inspect().in_flight_bytes;
    assert_eq!(script.timer(), at_ms(365));
    assert_eq!(before - script.connection.inspect().in_flight_bytes, 2_000);
    assert_eq!(sent(&mut script), [2]);
}

#[test]
fn duplicate_report_widens_the_reordering_window_once_per_round() {
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 2)]);
    script.advance(ms(10));
    // Reordering: only then does a duplicate have an effect (step 4).
    sack(&mut script, 2, &[(0, 1)]);
    sack(&mut script, 2, &[(0, 1)]);
    script.out();
    script.advance(ms(10));
    sack(&mut script, 2, &[(3, 4)]);
    // Sent at 100, arrived at 220: 120; minimum round-trip time 100, two quarters: 50.
    assert_eq!(script.connection.fast_timer_deadline(), at_ms(100 + 120 + 50));
    // The data sent before the report was acknowledged: another round, another quarter.
    script.advance(ms(100));
    let all = script.connection.statistics().data_segments_sent as u32;
    sack(&mut script, all, &[]);
    let count = script.out().len() as u32;
    script.advance(ms(100));
    sack(&mut script, all, &[(0, 1), (all + 1, all + 2)]);
    assert_eq!(script.connection.fast_timer_deadline(), at_ms(320 + 100 + 75));
    assert!(count > 2);
}

#[test]
fn lost_retransmission_is_detected_by_later_segments() {
    let mut script = full(20, RACK);
    sack(&mut script, 0, &[(1, 4)]);
    // Three delivered: ceil(3 * 10 / 20) = 2 may have been sent; with five delivered 3.
    assert_eq!(sent(&mut script), [0, 20]);
    script.advance(ms(1));
    sack(&mut script, 0, &[(1, 6)]);
    assert_eq!(sent(&mut script), [21]);
    // 21, sent 1 ms after the retransmission, arrives. In recovery without reordering there is no reordering window: 0 is lost again, as
    // are 6 to 20. Six delivered, three sent, nothing in flight: three are sent, missing segments first.
    script.advance(ms(100));
    sack(&mut script, 0, &[(1, 6), (21, 22)]);
    assert_eq!(sent(&mut script), [0, 6, 7]);
}

#[test]
fn acknowledgment_of_the_original_is_not_one_of_the_retransmission() {
    // Step 2: an echoed timestamp older than the retransmission, or a response sooner than the path permits.
    for (timestamps, later) in [(true, 10), (true, 110), (false, 10)] {
        let mut script = Script::client(Config { timestamps, ..config(10, RACK) }, ms(100));
        script.write(10_000);
        script.out();
        script.advance(ms(100));
        sack(&mut script, 0, &[(1, 4)]);
        // Kept for the peer's echo: the timestamp sent at 100.
        let echo = script.segment(0, 0).header.timestamp_echo;
        assert_eq!(sent(&mut script), [0]);
        script.advance(ms(later));
        let mut late = script.segment(4_000, fullpipe_wire::tcp::flags::ACK);
        late.header.timestamp_echo = echo;
        script.deliver(late);
        // If it were for the retransmission, segments 4 to 9, sent earlier, would be lost.
        assert_eq!(sent(&mut script), Vec::<u32>::new());
        assert_eq!(script.connection.statistics().retransmitted_segments, 1);
    }
}

// Tail loss probe -----------------------------------------------------------------------------------------------------

fn probing(window: u32) -> Config {
    Config { tail_loss_probe: true, ..config(window, RACK) }
}

#[test]
fn tail_loss_probe_retransmits_the_last_segment() {
    // Two round trips and 2 ms after the last transmission; the timeout (100 + 200 initially) restarts at the probe.
    let mut script = Script::client(probing(10), ms(100));
    script.write(3_000);
    script.out();
    assert_eq!(script.connection.slow_timer_deadline(), at_ms(100 + 202));
    assert_eq!(script.timer(), at_ms(302));
    assert_eq!(sent(&mut script), [2]);
    assert_eq!(script.connection.statistics().tail_loss_probes, 1);
    assert_eq!(script.timer(), at_ms(302 + 300));
    assert_eq!(script.connection.statistics().timeouts, 1);
    // Only the first is certainly lost, but the others are overdue too (RFC 8985 section 6.3).
    assert_eq!(sent(&mut script), [0]);
}

#[test]
fn one_tail_loss_probe_is_followed_by_the_timeout() {
    // RFC 8985 section 7.3: while a probe is outstanding, new data starts no other; the timeout of 100 + 200 ms started with the probe.
    let mut script = Script::client(probing(10), ms(100));
    script.write(3_000);
    script.out();
    assert_eq!(script.timer(), at_ms(302));
    assert_eq!(sent(&mut script), [2]);
    script.advance(ms(10));
    script.write(1_000);
    assert_eq!(sent(&mut script), [3]);
    assert_eq!(script.timer(), at_ms(302 + 300));
    let statistics = script.connection.statistics();
    assert_eq!((statistics.tail_loss_probes, statistics.timeouts), (1, 1));
}

#[test]
fn tail_loss_probe_of_a_single_segment_waits_for_a_delayed_acknowledgment() {
    // 2 * 100 + 2 + 200 = 402 would be later than the timeout at 300: then the probe replaces it.
    let mut script = Script::client(probing(10), ms(100));
    script.write(1_000);
    script.out();
    assert_eq!(script.timer(), at_ms(400));
    assert_eq!(sent(&mut script), [0]);
    assert_eq!(script.connection.statistics().tail_loss_probes, 1);
    assert_eq!(script.connection.statistics().timeouts, 0);
}

#[test]
fn tail_loss_probe_prefers_new_data_even_beyond_the_window() {
    let mut script = Script::client(probing(3), ms(100));
    script.write(10_000);
    assert_eq!(sent(&mut script).len(), 3);
    script.timer();
    assert_eq!(sent(&mut script), [3]);
    assert_eq!(script.connection.statistics().retransmitted_segments, 0);
    // The response to the probe shows the loss of 1 and 2, which are long overdue.
    script.advance(ms(100));
    sack(&mut script, 1, &[(3, 4)]);
    assert_eq!(sent(&mut script)[0], 1);
    assert!(script.connection.inspect().in_recovery);
}

#[test]
fn loss_repaired_by_a_probe_reduces_the_window() {
    // RFC 8985 section 7.4.2: of three segments the last was lost and the probe repaired it, so there is no other sign of the loss. It is
    // detected when later data is acknowledged without a report of a duplicate.
    let repaired = |report: &[(u32, u32)], bare: bool| {
        let mut script = Script::client(probing(10), ms(100));
        script.ack(0, &[]);
        script.write(3_000);
        script.out();
        script.timer();
        assert_eq!(sent(&mut script), [2]);
        script.advance(ms(100));
        sack(&mut script, 3, report);
        if bare {
            // From a receiver that does not report duplicates, which only repeats its acknowledgment.
            sack(&mut script, 3, &[]);
        }
        script.write(1_000);
        script.out();
        script.advance(ms(100));
        sack(&mut script, 4, &[]);
        script.connection.inspect().ssthresh_bytes
    };
    assert_eq!(repaired(&[], false), 5_000);
    assert_eq!(repaired(&[(2, 3)], false), u64::MAX);
    assert_eq!(repaired(&[], true), u64::MAX);
}

#[test]
fn tail_loss_probe_is_not_sent_in_recovery_or_with_sacked_segments() {
    let mut script = Script::client(probing(10), ms(100));
    script.write(10_000);
    script.out();
    script.advance(ms(100));
    sack(&mut script, 0, &[(1, 2)]);
    // The timeout remains: 100 + 300 (from the first sample; SACK provides a second: 100 + max(200, 150)).
    assert_eq!(script.connection.slow_timer_deadline(), at_ms(400));
    sack(&mut script, 0, &[(1, 4)]);
    assert!(script.connection.inspect().in_recovery);
    script.out();
    assert_eq!(script.connection.slow_timer_deadline(), at_ms(400));
}

// Timeouts -----------------------------------------------------------------------------------------------------------

#[test]
fn timeout_marks_overdue_segments_with_rack_and_all_without() {
    for (detection, lost_again) in [(RACK, 2), (SACK, 3)] {
        let mut script = Script::client(config(10, detection), ms(100));
        script.write(2_000);
        script.out();
        // A third is sent shortly before the timeout at 400 (with RFC 6675 rules also at 300: 100 + 4 * 50).
        script.advance(ms(270));
        script.write(1_000);
        script.out();
        script.timer();
        assert_eq!(sent(&mut script), [0]);
        script.advance(ms(50));
        // With RACK the third still counts as in flight, so the window of two permits only one. (The acknowledgment arrives sooner than a
        // round trip, so it is not for the retransmission.)
        sack(&mut script, 1, &[]);
        let inspect = script.connection.inspect();
        assert_eq!(inspect.cwnd_bytes, 2_000);
        let again = sent(&mut script);
        assert_eq!(1 + again.len(), lost_again, "{detection:?}");
        assert_eq!(again[0], 1);
    }
}

#[test]
fn reneging_receiver_gets_all_data_again() {
    // RFC 2018 section 8: segment 0 was reported as arrived, but is still the first outstanding one at the timeout.
    let mut script = short(4, RACK);
    sack(&mut script, 0, &[(0, 2)]);
    script.out();
    while script.connection.statistics().timeouts == 0 {
        script.timer();
        if script.connection.statistics().timeouts == 0 {
            script.out();
        }
    }
    assert_eq!(sent(&mut script)[0], 0);
    script.advance(ms(50));
    sack(&mut script, 1, &[]);
    assert_eq!(sent(&mut script)[0], 1);
}

#[test]
fn partially_acknowledged_segment_is_retransmitted_from_the_rest() {
    let mut script = full(10, SACK);
    script.ack(500, &[(1_000, 4_000)]);
    // The rest of segment 0 is lost and retransmitted; the other segments are not relevant here.
    assert_eq!(script.sent()[0], (500, 500));
    script.ack(700, &[(1_000, 4_000)]);
    script.out();
    script.ack(10_000, &[]);
    assert!(!script.connection.inspect().in_recovery);
}

// Calls of the control ------------------------------------------------------------------------------------------------

#[derive(Clone, Debug, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, text: String) {
        self.0.lock().unwrap().push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Controller for Diary {
    fn name(&self) -> &'static str {
        "diary"
    }
    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { on_sent: true, ..ControlRequirements::default() }
    }
    fn on_established(&mut self, _: &mut WindowState, _: Instant, rtt: Option<Duration>) {
        self.note(format!("established {}", rtt.unwrap()));
    }
    fn on_sent(&mut self, _: &mut WindowState, packet: &PacketState) {
        self.note(format!("sent {} in flight {}", packet.bytes, packet.in_flight_bytes));
    }
    fn on_ack(&mut self, _: &mut WindowState, ack: &Ack) {
        self.note(format!(
            "ack {} cumulative {} lost {} in flight {} then {} delivered {} round {} recovery {}",
            ack.acked_bytes,
            ack.cumulative_bytes,
            ack.lost_bytes,
            ack.prior_in_flight_bytes,
            ack.in_flight_bytes,
            ack.delivered_bytes,
            ack.round_count,
            ack.in_recovery
        ));
    }
    fn on_packet_lost(&mut self, _: &mut WindowState, _: Instant, packet: &PacketState) {
        self.note(format!("lost {} sent at {}", packet.bytes, packet.sent_at));
    }
    fn on_congestion(&mut self, control: &mut WindowState, congestion: &CongestionEvent) {
        control.ssthresh_bytes = control.cwnd_bytes / 2;
        self.note(format!("congestion in flight {} lost {}", congestion.in_flight_bytes, congestion.lost_bytes));
    }
    fn on_recovery_exit(&mut self, control: &mut WindowState, _: &RecoveryExit) {
        self.note(format!("exit window {}", control.cwnd_bytes));
    }
    fn on_timeout(&mut self, control: &mut WindowState, timeout: &Timeout) {
        control.ssthresh_bytes = control.cwnd_bytes / 2;
        self.note(format!("timeout in flight {} repeated {}", timeout.in_flight_bytes, timeout.repeated));
    }
}

#[test]
fn control_is_called_in_the_order_of_its_trait() {
    let diary = Diary::default();
    let mut script = Script::client_with(config(6, SACK), Box::new(diary.clone()), ms(100));
    assert_eq!(diary.take(), ["established 100ms"]);
    script.write(6_000);
    script.out();
    assert_eq!(diary.take()[5], "sent 1000 in flight 6000");
    script.advance(ms(100));
    sack(&mut script, 1, &[]);
    assert_eq!(
        diary.take(),
        ["ack 1000 cumulative 1000 lost 0 in flight 6000 then 5000 delivered 1000 round 1 recovery false"]
    );
    sack(&mut script, 1, &[(2, 5)]);
    assert_eq!(
        diary.take(),
        [
            "lost 1000 sent at 0.100000000 s",
            "congestion in flight 2000 lost 1000",
            "ack 3000 cumulative 0 lost 1000 in flight 5000 then 1000 delivered 4000 round 1 recovery true",
        ]
    );
    script.out();
    diary.take();
    script.advance(ms(100));
    sack(&mut script, 6, &[]);
    assert_eq!(
        diary.take(),
        [
            "exit window 3000",
            "ack 2000 cumulative 5000 lost 0 in flight 2000 then 0 delivered 6000 round 2 recovery false",
        ]
    );
    script.write(1_000);
    script.out();
    diary.take();
    script.timer();
    script.out();
    script.timer();
    let diary = diary.take();
    assert_eq!(diary[0], "timeout in flight 1000 repeated false");
    assert_eq!(diary[3], "timeout in flight 1000 repeated true");
}

#[derive(Clone, Debug, Default)]
struct Rates(Arc<Mutex<Vec<(bool, bool)>>>);

impl Controller for Rates {
    fn name(&self) -> &'static str {
        "rates"
    }
    fn on_ack(&mut self, _: &mut WindowState, ack: &Ack) {
        self.0.lock().unwrap().push((ack.rate.unwrap().app_limited, ack.app_limited));
    }
    fn on_congestion(&mut self, _: &mut WindowState, _: &CongestionEvent) {}
    fn on_timeout(&mut self, _: &mut WindowState, _: &Timeout) {}
}

#[test]
fn rate_samples_state_whether_the_application_limited_them() {
    // Linux tcp_rate_check_app_limited: packets sent after the application had no more data are marked, until all data in flight at that
    // time has been delivered.
    let rates = Rates::default();
    let mut script = Script::client_with(config(4, SACK), Box::new(rates.clone()), ms(100));
    script.write(8_000);
    assert_eq!(sent(&mut script), [0, 1, 2, 3]);
    script.advance(ms(100));
    // The connection was idle before, so these were marked; the phase ends with the first delivery.
    sack(&mut script, 4, &[]);
    assert_eq!(sent(&mut script), [4, 5, 6, 7]);
    script.advance(ms(100));
    sack(&mut script, 5, &[]);
    assert_eq!(sent(&mut script), Vec::<u32>::new());
    // No more data, with three in flight.
    script.write(1_000);
    assert_eq!(sent(&mut script), [8]);
    sack(&mut script, 8, &[]);
    script.advance(ms(100));
    sack(&mut script, 9, &[]);
    // The limited phase lasts until more than 5000 + 3000 bytes are delivered: through the third acknowledgment, not the fourth, whose
    // packet was sent in it.
    let rates = rates.0.lock().unwrap();
    assert_eq!(*rates, [(true, false), (false, false), (false, true), (true, false)]);
}

#[derive(Debug)]
struct OwnRecovery;

impl Controller for OwnRecovery {
    fn name(&self) -> &'static str {
        "own"
    }
    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { own_recovery: true, ..ControlRequirements::default() }
    }
    fn on_ack(&mut self, _: &mut WindowState, _: &Ack) {}
    fn on_congestion(&mut self, _: &mut WindowState, _: &CongestionEvent) {}
    fn on_timeout(&mut self, _: &mut WindowState, _: &Timeout) {}
}

#[test]
fn control_with_its_own_recovery_keeps_its_window() {
    let mut script = Script::client_with(config(10, SACK), Box::new(OwnRecovery), ms(100));
    script.write(100_000);
    script.out();
    script.advance(ms(100));
    sack(&mut script, 0, &[(1, 4)]);
    assert!(script.connection.inspect().in_recovery);
    assert_eq!(script.connection.inspect().cwnd_bytes, 10_000);
    assert_eq!(sent(&mut script), [0, 10, 11, 12]);
    script.timer();
    assert_eq!(script.connection.inspect().cwnd_bytes, 10_000);
}
