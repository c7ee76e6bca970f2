//! Finding losses and answering them: RFC 6675, RFC 8985, RFC 9937, RFC 6582. Windows of n segments of 1000 bytes, round
//! trip 100 ms, data written at 100 ms.

use crate::common::*;
use fullpipe_congestion::{Ack, Congestion, Control, Controller, PacketState, RecoveryExit, Signals, Timeout};
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

/// A sender whose window is full: `window` segments sent at 100 ms, more to send.
fn full(window: u32, detection: LossDetection) -> Script {
    let mut script = Script::client(config(window, detection), ms(100));
    script.write(1_000_000);
    assert_eq!(script.sent().len(), window as usize);
    script.advance(ms(100));
    script
}

/// A sender that has sent `count` segments and has no more.
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

/// Numbers of the segments that leave.
fn sent(script: &mut Script) -> Vec<u32> {
    script.sent().iter().map(|segment| segment.0 / 1000).collect()
}

const SACK: LossDetection = LossDetection::DuplicateAcks;
const RACK: LossDetection = LossDetection::Rack;

// Proportional rate reduction -----------------------------------------------------------------------------------------

#[test]
fn rate_reduction_with_one_loss_of_twenty() {
    // RFC 9937 section 7 (the same case as RFC 6937 section 3.1): 20 in flight, segment 0 lost, threshold 10. The first
    // two duplicates let a new segment go each (limited transmit), the third begins recovery: outstanding 22, of which
    // 2 selectively acknowledged before, so RecoverFS = 20. At the k-th duplicate k - 2 are delivered and
    // ceil((k - 2) * 10 / 20) may have been sent: one at 3 (the retransmission), 5, 7, ... 17. In flight: 18 after the
    // third, then one less each and one more for each sent, so 10 at the 19th: not above the threshold any more. Then
    // it stays there: at the 20th it falls to 9, one leaves.
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
    // The end: the window is the threshold.
    sack(&mut script, 22, &[]);
    let inspect = script.connection.inspect();
    assert!(!inspect.in_recovery);
    assert_eq!(inspect.cwnd_bytes, 10_000);
    assert_eq!(script.connection.statistics().recoveries, 1);
    assert_eq!(script.connection.statistics().retransmitted_segments, 1);
}

#[test]
fn rate_reduction_with_fifteen_losses_of_twenty() {
    // RFC 6937 section 3.1, second case: segments 0 to 14 lost. Duplicates by 15 and 16 let 20 and 21 go. At 17 three
    // segments are known to have arrived: 15 lost, 22 - 3 - 15 = 4 in flight, below the threshold of 10. The bound lets
    // as much go as arrives (one each for 17, 18, 19: the line PRR-CRB), and one more only when the cumulative
    // acknowledgement advances without a new loss (RFC 9937: a safe acknowledgement).
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
fn rate_reduction_catches_up_to_the_threshold_at_most() {
    // 10 in flight, threshold 5, segments 0 to 2 lost; 3, 4, 5 arrive in one acknowledgement: 10 - 3 - 3 = 4 in flight.
    // Three arrived, none sent: 3, but only up to the threshold: 1.
    let mut script = full(10, SACK);
    sack(&mut script, 0, &[(3, 6)]);
    assert_eq!(sent(&mut script), [0]);
    // One more arrives: 4 in flight, delivered 4, sent 1: 3, at most 1.
    sack(&mut script, 0, &[(3, 7)]);
    assert_eq!(sent(&mut script), [1]);
}

// RFC 6675 ------------------------------------------------------------------------------------------------------------

#[test]
fn a_segment_is_lost_when_more_than_two_segments_arrived_above_it() {
    let mut script = full(10, SACK);
    sack(&mut script, 0, &[(1, 3)]);
    // Two: limited transmit.
    assert_eq!(sent(&mut script), [10, 11]);
    assert!(!script.connection.inspect().in_recovery);
    // Not the three below segment 9: 1 and 2 arrived, 9 too, but above 8 only one did.
    sack(&mut script, 0, &[(9, 10), (1, 3)]);
    assert_eq!(sent(&mut script), [0]);
    assert!(script.connection.inspect().in_recovery);
    // In flight: 12 outstanding - 3 arrived - segment 0 lost + segment 0 again.
    assert_eq!(script.connection.inspect().in_flight_bytes, 9_000);
}

#[test]
fn a_segment_is_lost_when_three_separate_ranges_arrived_above_it() {
    // Small segments: 100 bytes each, so bytes alone do not decide.
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
    // Segment 0 has three above it; the one at 200 has two.
    assert_eq!(script.sent()[0], (0, 100));
    assert!(script.connection.inspect().in_recovery);
}

#[test]
fn three_ranges_in_one_acknowledgement_suffice() {
    let mut script = Script::client(config(10, SACK), ms(100));
    for _ in 0..8 {
        script.write(100);
        script.out();
    }
    script.advance(ms(100));
    script.ack(0, &[(500, 600), (300, 400), (100, 200)]);
    // 0 is lost and sent again; 200 and 400 are not, but with nothing else to send they are suspects (rule 3).
    assert!(script.connection.inspect().in_recovery);
    let statistics = script.connection.inspect();
    assert_eq!(statistics.in_flight_bytes, 400, "800 - 300 arrived - 100 lost");
    assert_eq!(script.sent()[0], (0, 100));
}

#[test]
fn a_block_that_covers_a_segment_in_part_does_not_count_for_it() {
    let mut script = full(10, SACK);
    script.ack(0, &[(1_000, 2_999)]);
    assert_eq!(script.connection.inspect().in_flight_bytes, 9_000);
    script.ack(0, &[(1_500, 4_500)]);
    assert_eq!(script.connection.inspect().in_flight_bytes, 6_000, "2 and 3 now, so 0 is lost");
    // Blocks that make no sense are ignored: backwards, empty, beyond what was sent.
    script.ack(0, &[(6_000, 5_000), (5_000, 5_000), (9_000, 10_500)]);
    assert_eq!(script.connection.inspect().in_flight_bytes, 6_000);
}

#[test]
fn three_duplicates_make_the_first_segment_lost_whatever_they_cover() {
    // RFC 6675 section 5 step 1: contiguous small segments, 300 bytes in all.
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
fn with_nothing_else_to_send_a_suspect_and_then_the_last_segment_is_sent_again() {
    // RFC 6675 section 4, NextSeg rule 3. Six segments, 0 and 3 lost, window 20, threshold 10.
    let mut script = short(6, SACK);
    sack(&mut script, 0, &[(1, 3)]);
    sack(&mut script, 0, &[(4, 5), (1, 3)]);
    // Above segment 0 three arrived: lost. 3 is not: one arrived above it. But nothing else can be sent, and what
    // arrived (1) allows one segment: segment 0.
    assert_eq!(sent(&mut script), [0]);
    sack(&mut script, 0, &[(4, 6), (1, 3)]);
    assert_eq!(sent(&mut script), [3], "rule 3");
    // Rule 4: five segments, 0 and 4 lost. When the retransmission of 0 is acknowledged, 4 is still outstanding and
    // nothing above it can tell.
    let mut script = short(5, SACK);
    sack(&mut script, 0, &[(1, 4)]);
    assert_eq!(sent(&mut script), [0, 4], "PRR lets three go: the second is the rescue");
    script.write(1_000);
    assert_eq!(sent(&mut script), [5]);
    script.advance(ms(100));
    sack(&mut script, 4, &[]);
    assert_eq!(sent(&mut script), Vec::<u32>::new(), "once per recovery");
}

#[test]
fn retransmissions_are_not_judged_by_later_arrivals_again() {
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
fn without_sack_three_duplicates_and_partial_acknowledgements_find_losses() {
    // RFC 5681 section 3.2, RFC 6582 section 3.2. 10 in flight, 0 and 4 lost.
    let mut script = Script::client(Config { sack: false, ..config(10, SACK) }, ms(100));
    // The window of the SYN is not scaled, this one is; a change of the window would hide the first duplicate.
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
    // 12 outstanding, 3 presumed to have arrived, one lost and sent again.
    assert_eq!(script.connection.inspect().in_flight_bytes, 9_000);
    assert_eq!(script.connection.inspect().ssthresh_bytes, 5_000);
    script.ack(0, &[]);
    script.advance(ms(100));
    // Partial: the next hole is lost without further duplicates.
    script.ack(4_000, &[]);
    // Four were acknowledged: the hole, and three of the four presumed. Outstanding are 4 to 11, one presumed: delivered
    // 3, so ceil(3 * 5 / 10) = 2 may have been sent.
    assert_eq!(sent(&mut script), [4]);
    assert_eq!(script.connection.inspect().in_flight_bytes, 7_000);
    script.ack(12_000, &[]);
    let inspect = script.connection.inspect();
    assert!(!inspect.in_recovery);
    assert_eq!(inspect.cwnd_bytes, 5_000);
    // Duplicates of what was repaired begin no second recovery.
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
fn a_hole_is_lost_after_a_quarter_of_a_round_trip() {
    // Sent at 100, SACK of a later segment at 200: round trip 100, window 100 / 4. RFC 8985 section 6.2.
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 2)]);
    assert_eq!(sent(&mut script), [10]);
    assert_eq!(script.connection.near_deadline(), at_ms(225));
    assert_eq!(script.timer(), at_ms(225));
    assert!(script.connection.inspect().in_recovery);
    assert_eq!(sent(&mut script), [0]);
    assert!(script.connection.near_deadline().is_never());
}

#[test]
fn a_hole_is_lost_at_once_with_three_segments_above_it() {
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 2), (3, 4)]);
    assert!(script.connection.near_deadline() == at_ms(225));
    sack(&mut script, 0, &[(1, 2), (3, 5)]);
    assert!(script.connection.inspect().in_recovery);
    assert!(script.connection.near_deadline().is_never());
    script.out();
    // 0 and 2 lost; what was sent after the newest arrival is not judged.
    assert_eq!(script.connection.statistics().recoveries, 1);
}

#[test]
fn the_timer_waits_for_the_latest_of_the_waiting_segments() {
    // Sent at 100, 105, 110 ms; the third arrives first: the second is overdue at 105 + 100 + 25 (section 6.2 step 5:
    // the longest of the remaining times).
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
    // Nothing arrived, so one segment leaves.
    assert_eq!(sent(&mut script), [0]);
    // With its acknowledgement (safe: two segments) the other.
    script.advance(ms(100));
    sack(&mut script, 1, &[(2, 3)]);
    assert_eq!(sent(&mut script), [1]);
}

#[test]
fn once_reordering_was_seen_three_segments_do_not_suffice() {
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 2)]);
    script.advance(ms(10));
    // The hole was only late: reordering.
    sack(&mut script, 2, &[]);
    script.out();
    assert!(script.connection.near_deadline().is_never());
    sack(&mut script, 2, &[(3, 7)]);
    assert!(!script.connection.inspect().in_recovery);
    // Newest arrival at 210 of what left at 100: round trip 110; 100 + 110 + 25.
    assert_eq!(script.connection.near_deadline(), at_ms(235));
}

#[test]
fn a_repaired_hole_is_no_reordering() {
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 4)]);
    script.out();
    script.advance(ms(100));
    // The retransmission arrives long after what was sent after the original: that is not reordering.
    sack(&mut script, 10, &[]);
    script.out();
    script.advance(ms(100));
    let all = script.connection.statistics().data_segments_sent as u32 - 1;
    sack(&mut script, all, &[]);
    let first = sent(&mut script)[0];
    assert_eq!(first, all);
    script.advance(ms(100));
    sack(&mut script, all, &[(all + 1, all + 4)]);
    assert!(script.connection.inspect().in_recovery, "without patience");
}

#[test]
fn a_retransmission_is_given_the_reordering_window_too() {
    let mut script = full(20, RACK);
    sack(&mut script, 0, &[(1, 2)]);
    script.advance(ms(10));
    // Reordering was seen, so there is patience in recovery as well.
    sack(&mut script, 2, &[]);
    script.out();
    sack(&mut script, 2, &[(3, 7)]);
    assert_eq!(script.timer(), at_ms(235));
    assert_eq!(sent(&mut script), [2]);
    script.advance(ms(5));
    // More arrive that were sent at 100; they say nothing of the retransmission.
    sack(&mut script, 2, &[(3, 13)]);
    let new = script.out();
    assert!(!new.is_empty());
    let number = script.offset(new[0].header.sequence) / 1000;
    script.advance(ms(100));
    sack(&mut script, 2, &[(3, 13), (number, number + 1)]);
    // The one sent at 240 arrived after 100: whatever left before it, at 235 or at 100, is judged by 340 + 25 at the
    // latest. What left at 100 is overdue; the retransmission of 2 waits.
    assert_eq!(script.connection.near_deadline(), at_ms(365));
    assert!(sent(&mut script).iter().all(|segment| *segment != 2));
    script.timer();
    assert_eq!(sent(&mut script), [2]);
}

#[test]
fn of_several_losses_found_by_the_timer_one_leaves() {
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
    // Both retransmissions are overdue at 365 (see above), nothing arrives.
    let before = script.connection.inspect().in_flight_bytes;
    assert_eq!(script.timer(), at_ms(365));
    assert_eq!(before - script.connection.inspect().in_flight_bytes, 2_000);
    assert_eq!(sent(&mut script), [2]);
}

#[test]
fn each_duplicate_report_widens_the_reordering_window_once_per_round() {
    let mut script = full(10, RACK);
    sack(&mut script, 0, &[(1, 2)]);
    script.advance(ms(10));
    // Reordering: only then is a duplicate of use (step 4).
    sack(&mut script, 2, &[(0, 1)]);
    sack(&mut script, 2, &[(0, 1)]);
    script.out();
    script.advance(ms(10));
    sack(&mut script, 2, &[(3, 4)]);
    // Sent at 100, arrived at 220: 120; smallest round trip 100, two quarters: 50.
    assert_eq!(script.connection.near_deadline(), at_ms(100 + 120 + 50));
    // What had been sent by the time of the report was acknowledged: another round, another quarter.
    script.advance(ms(100));
    let all = script.connection.statistics().data_segments_sent as u32;
    sack(&mut script, all, &[]);
    let count = script.out().len() as u32;
    script.advance(ms(100));
    sack(&mut script, all, &[(0, 1), (all + 1, all + 2)]);
    assert_eq!(script.connection.near_deadline(), at_ms(320 + 100 + 75));
    assert!(count > 2);
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut script = full(20, RACK);
    sack(&mut script, 0, &[(1, 4)]);
    // Three delivered: ceil(3 * 10 / 20) = 2 may have been sent, with five delivered 3.
    assert_eq!(sent(&mut script), [0, 20]);
    script.advance(ms(1));
    sack(&mut script, 0, &[(1, 6)]);
    assert_eq!(sent(&mut script), [21]);
    // 21, sent 1 ms after the retransmission, arrives; in recovery without reordering there is no patience: 0 is lost
    // again, and 6 to 20 as well. Six delivered, three sent, nothing in flight: three leave, what is missing first
    // before the others.
    script.advance(ms(100));
    sack(&mut script, 0, &[(1, 6), (21, 22)]);
    assert_eq!(sent(&mut script), [0, 6, 7]);
}

#[test]
fn an_acknowledgement_of_the_original_says_nothing_of_the_retransmission() {
    // Step 2: an echoed timestamp older than the retransmission, or an answer sooner than the path allows.
    for (timestamps, later) in [(true, 10), (true, 110), (false, 10)] {
        let mut script = Script::client(Config { timestamps, ..config(10, RACK) }, ms(100));
        script.write(10_000);
        script.out();
        script.advance(ms(100));
        sack(&mut script, 0, &[(1, 4)]);
        // Kept for the peer's echo: what was sent at 100.
        let echo = script.segment(0, 0).header.timestamp_echo;
        assert_eq!(sent(&mut script), [0]);
        script.advance(ms(later));
        let mut late = script.segment(4_000, fullpipe_wire::tcp::flags::ACK);
        late.header.timestamp_echo = echo;
        script.deliver(late);
        // Were it for the retransmission, segments 4 to 9, sent earlier, would be lost.
        assert_eq!(sent(&mut script), Vec::<u32>::new());
        assert_eq!(script.connection.statistics().retransmitted_segments, 1);
    }
}

// Tail loss probe -----------------------------------------------------------------------------------------------------

fn probing(window: u32) -> Config {
    Config { tail_loss_probe: true, ..config(window, RACK) }
}

#[test]
fn a_probe_sends_the_last_segment_again() {
    // Two round trips and 2 ms after the last departure; the time-out (100 + 200 at first) begins anew at the probe.
    let mut script = Script::client(probing(10), ms(100));
    script.write(3_000);
    script.out();
    assert_eq!(script.connection.far_deadline(), at_ms(100 + 202));
    assert_eq!(script.timer(), at_ms(302));
    assert_eq!(sent(&mut script), [2]);
    assert_eq!(script.connection.statistics().tail_loss_probes, 1);
    assert_eq!(script.timer(), at_ms(302 + 300));
    assert_eq!(script.connection.statistics().timeouts, 1);
    // Only the first is lost for sure, but the others are overdue too (RFC 8985 section 6.3).
    assert_eq!(sent(&mut script), [0]);
}

#[test]
fn one_probe_at_a_time_and_the_time_out_follows() {
    // RFC 8985 section 7.3: with a probe out, new data arm no other; the time-out of 100 + 200 ms began with the probe.
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
fn a_lone_segment_is_given_time_for_a_delayed_acknowledgement() {
    // 2 * 100 + 2 + 200 = 402 would be later than the time-out at 300: then the probe takes its place.
    let mut script = Script::client(probing(10), ms(100));
    script.write(1_000);
    script.out();
    assert_eq!(script.timer(), at_ms(400));
    assert_eq!(sent(&mut script), [0]);
    assert_eq!(script.connection.statistics().tail_loss_probes, 1);
    assert_eq!(script.connection.statistics().timeouts, 0);
}

#[test]
fn a_probe_prefers_new_data_even_beyond_the_window() {
    let mut script = Script::client(probing(3), ms(100));
    script.write(10_000);
    assert_eq!(sent(&mut script).len(), 3);
    script.timer();
    assert_eq!(sent(&mut script), [3]);
    assert_eq!(script.connection.statistics().retransmitted_segments, 0);
    // The answer to the probe finds the loss of 1 and 2: overdue since long.
    script.advance(ms(100));
    sack(&mut script, 1, &[(3, 4)]);
    assert_eq!(sent(&mut script)[0], 1);
    assert!(script.connection.inspect().in_recovery);
}

#[test]
fn a_probe_that_repaired_a_loss_is_answered_as_a_loss() {
    // RFC 8985 section 7.4.2: of three segments the last got lost; the probe repaired it, so no other sign of the loss
    // exists. Known when something beyond is acknowledged without a duplicate being reported.
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
            // From a receiver that does not report duplicates: it just says the same again.
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
fn no_probe_in_recovery_or_while_something_is_selectively_acknowledged() {
    let mut script = Script::client(probing(10), ms(100));
    script.write(10_000);
    script.out();
    script.advance(ms(100));
    sack(&mut script, 0, &[(1, 2)]);
    // The time-out remains: 100 + 300 (of the first sample; SACK gives a second: 100 + max(200, 150)).
    assert_eq!(script.connection.far_deadline(), at_ms(400));
    sack(&mut script, 0, &[(1, 4)]);
    assert!(script.connection.inspect().in_recovery);
    script.out();
    assert_eq!(script.connection.far_deadline(), at_ms(400));
}

// Time-outs -----------------------------------------------------------------------------------------------------------

#[test]
fn after_a_time_out_only_overdue_segments_are_lost_with_rack_and_all_without() {
    for (detection, lost_again) in [(RACK, 2), (SACK, 3)] {
        let mut script = Script::client(config(10, detection), ms(100));
        script.write(2_000);
        script.out();
        // A third leaves shortly before the time-out at 400 (with RFC 6675 rules: 300 too, 100 + 4 * 50).
        script.advance(ms(270));
        script.write(1_000);
        script.out();
        script.timer();
        assert_eq!(sent(&mut script), [0]);
        script.advance(ms(50));
        // With RACK the third still counts as in flight, so the window of two lets only one go. (The acknowledgement
        // comes sooner than a round trip, so it says nothing of the retransmission.)
        sack(&mut script, 1, &[]);
        let inspect = script.connection.inspect();
        assert_eq!(inspect.cwnd_bytes, 2_000);
        let again = sent(&mut script);
        assert_eq!(1 + again.len(), lost_again, "{detection:?}");
        assert_eq!(again[0], 1);
    }
}

#[test]
fn a_receiver_that_goes_back_on_its_word_gets_everything_again() {
    // RFC 2018 section 8: segment 0 arrived by its own report, but the time-out finds it first in line.
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
fn a_segment_acknowledged_in_part_goes_on_with_the_rest() {
    let mut script = full(10, SACK);
    script.ack(500, &[(1_000, 4_000)]);
    // The rest of segment 0 is lost and sent again; 11 new segments' worth minus what is missing do not matter here.
    assert_eq!(script.sent()[0], (500, 500));
    script.ack(700, &[(1_000, 4_000)]);
    script.out();
    script.ack(10_000, &[]);
    assert!(!script.connection.inspect().in_recovery);
}

// What the control is told --------------------------------------------------------------------------------------------

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
    fn signals(&self) -> Signals {
        Signals { on_sent: true, ..Signals::default() }
    }
    fn on_established(&mut self, _: &mut Control, _: Instant, rtt: Option<Duration>) {
        self.note(format!("established {}", rtt.unwrap()));
    }
    fn on_sent(&mut self, _: &mut Control, packet: &PacketState) {
        self.note(format!("sent {} in flight {}", packet.bytes, packet.in_flight_bytes));
    }
    fn on_ack(&mut self, _: &mut Control, ack: &Ack) {
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
    fn on_packet_lost(&mut self, _: &mut Control, _: Instant, packet: &PacketState) {
        self.note(format!("lost {} sent at {}", packet.bytes, packet.sent_at));
    }
    fn on_congestion(&mut self, control: &mut Control, congestion: &Congestion) {
        control.ssthresh_bytes = control.cwnd_bytes / 2;
        self.note(format!("congestion in flight {} lost {}", congestion.in_flight_bytes, congestion.lost_bytes));
    }
    fn on_recovery_exit(&mut self, control: &mut Control, _: &RecoveryExit) {
        self.note(format!("exit window {}", control.cwnd_bytes));
    }
    fn on_timeout(&mut self, control: &mut Control, timeout: &Timeout) {
        control.ssthresh_bytes = control.cwnd_bytes / 2;
        self.note(format!("timeout in flight {} repeated {}", timeout.in_flight_bytes, timeout.repeated));
    }
}

#[test]
fn the_control_is_told_in_the_order_of_its_trait() {
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
    fn on_ack(&mut self, _: &mut Control, ack: &Ack) {
        self.0.lock().unwrap().push((ack.rate.unwrap().app_limited, ack.app_limited));
    }
    fn on_congestion(&mut self, _: &mut Control, _: &Congestion) {}
    fn on_timeout(&mut self, _: &mut Control, _: &Timeout) {}
}

#[test]
fn samples_say_whether_the_application_limited_them() {
    // Linux tcp_rate_check_app_limited: packets sent after the application had run dry are marked, until what was in
    // flight then has been delivered.
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
    // Dry with three in flight.
    script.write(1_000);
    assert_eq!(sent(&mut script), [8]);
    sack(&mut script, 8, &[]);
    script.advance(ms(100));
    sack(&mut script, 9, &[]);
    // The dry phase lasts until more than 5000 + 3000 bytes are delivered: through the third acknowledgement, not the
    // fourth, whose packet was sent in it.
    let rates = rates.0.lock().unwrap();
    assert_eq!(*rates, [(true, false), (false, false), (false, true), (true, false)]);
}

#[derive(Debug)]
struct OwnRecovery;

impl Controller for OwnRecovery {
    fn name(&self) -> &'static str {
        "own"
    }
    fn signals(&self) -> Signals {
        Signals { own_recovery: true, ..Signals::default() }
    }
    fn on_ack(&mut self, _: &mut Control, _: &Ack) {}
    fn on_congestion(&mut self, _: &mut Control, _: &Congestion) {}
    fn on_timeout(&mut self, _: &mut Control, _: &Timeout) {}
}

#[test]
fn a_control_with_its_own_recovery_keeps_its_window() {
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
