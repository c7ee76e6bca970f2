//! The receiver: times of acknowledgments, reported ranges, announced windows, and acceptance of segments.

use crate::common::*;
use fullpipe_tcp::Config;
use fullpipe_transport::{Stream, TransportEvent};
use fullpipe_units::Duration;
use fullpipe_wire::tcp::flags;

fn open(config: Config) -> Script {
    Script::client(config, ms(10))
}

/// Acknowledgment number and SACK blocks, as the peer's offsets.
fn report(script: &mut Script) -> (u32, Vec<(u32, u32)>) {
    let acks = script.out();
    assert_eq!(acks.len(), 1, "one acknowledgment");
    let blocks =
        acks[0].sacks.iter().map(|block| (script.peer_offset(block.start), script.peer_offset(block.end))).collect();
    (script.peer_offset(acks[0].header.acknowledgement), blocks)
}

#[test]
fn every_second_segment_is_acknowledged_and_a_single_one_after_the_delay() {
    let mut script = open(Config { quick_ack: false, ..Config::linux() });
    script.data(0, 1448, 0);
    assert!(script.out().is_empty());
    assert_eq!(script.connection.fast_timer_deadline(), at_ms(10 + 40));
    script.advance(ms(15));
    script.data(1448, 1448, 0);
    assert_eq!(report(&mut script), (2896, vec![]));
    assert!(script.connection.fast_timer_deadline().is_never());
    script.data(2896, 10, 0);
    assert!(script.out().is_empty());
    assert_eq!(script.timer(), at_ms(25 + 40));
    assert_eq!(report(&mut script), (2906, vec![]));
    // Counts of 1 and 3.
    let mut script = open(Config { delayed_ack_segments: 1, quick_ack: false, ..Config::linux() });
    script.data(0, 1448, 0);
    assert_eq!(report(&mut script), (1448, vec![]));
    let mut script = open(Config { delayed_ack_segments: 3, quick_ack: false, ..Config::linux() });
    script.data(0, 10, 0);
    script.data(10, 10, 0);
    assert!(script.out().is_empty());
    script.data(20, 10, 0);
    assert_eq!(report(&mut script), (30, vec![]));
}

// Duplicates (RFC 2883) ------------------------------------------------------------------------------------------------

#[test]
fn duplicate_below_the_acknowledgment_is_reported() {
    // Section 4.1.1: 3000 to 3499 arrive twice, because the first acknowledgments were lost.
    let mut script = open(Config::linux());
    script.data(0, 3000, 0);
    script.data(3000, 500, 0);
    script.data(3500, 500, 0);
    script.out();
    script.data(3000, 500, 0);
    assert_eq!(report(&mut script), (4000, vec![(3000, 3500)]));
    // Once: the next acknowledgment does not repeat it.
    script.data(4500, 500, 0);
    assert_eq!(report(&mut script), (4000, vec![(4500, 5000)]));
}

#[test]
fn duplicate_is_reported_before_ranges_beyond_a_gap() {
    // Section 4.1.2: 3500 to 3999 are missing, 4000 to 4499 arrived, 3000 to 3499 arrive again.
    let mut script = open(Config::linux());
    script.data(0, 3500, 0);
    script.data(4000, 500, 0);
    script.out();
    script.data(3000, 500, 0);
    assert_eq!(report(&mut script), (3500, vec![(3000, 3500), (4000, 4500)]));
}

#[test]
fn duplicate_beyond_a_gap_is_reported_with_the_block_that_contains_it() {
    // Section 4.1.3: 4000 to 4499 are missing, 4500 to 5499 arrived, 5000 to 5499 arrive again.
    let mut script = open(Config::linux());
    script.data(0, 4000, 0);
    script.data(4500, 500, 0);
    script.data(5000, 500, 0);
    script.out();
    script.data(5000, 500, 0);
    assert_eq!(report(&mut script), (4000, vec![(5000, 5500), (4500, 5500)]));
}

#[test]
fn duplicate_part_of_a_segment_is_reported() {
    // Section 4.2: segments with another size than before. 1500 to 1999 arrived before 1000 to 1999.
    let mut script = open(Config::linux());
    script.data(0, 1000, 0);
    script.data(1500, 500, 0);
    script.out();
    script.data(1000, 1000, 0);
    assert_eq!(report(&mut script), (2000, vec![(1500, 2000)]));
    // Both below the acknowledgment and beyond a gap: the part below.
    let mut script = open(Config::linux());
    script.data(0, 1500, 0);
    script.data(2000, 500, 0);
    script.out();
    script.data(1000, 1500, 0);
    assert_eq!(report(&mut script), (2500, vec![(1000, 1500)]));
}

#[test]
fn first_of_two_duplicate_parts_is_reported() {
    // Section 4.3: two separate parts, one block.
    let mut script = open(Config::linux());
    script.data(0, 1000, 0);
    script.data(1500, 500, 0);
    script.data(2500, 500, 0);
    script.out();
    script.data(1000, 2500, 0);
    assert_eq!(report(&mut script), (3500, vec![(1500, 2000)]));
}

#[test]
fn duplicates_are_not_reported_without_dsack() {
    let mut script = open(Config { dsack: false, ..Config::linux() });
    script.data(0, 1000, 0);
    script.data(2000, 500, 0);
    script.out();
    script.data(0, 1000, 0);
    assert_eq!(report(&mut script), (1000, vec![(2000, 2500)]));
    script.data(2000, 500, 0);
    assert_eq!(report(&mut script), (1000, vec![(2000, 2500)]));
}

#[test]
fn sent_data_carries_the_acknowledgment() {
    let mut script = open(Config::linux());
    script.data(0, 1448, 0);
    script.write(100);
    let sent = script.out();
    assert_eq!(sent.len(), 1);
    assert_eq!(script.peer_offset(sent[0].header.acknowledgement), 1448);
    assert!(script.connection.fast_timer_deadline().is_never());
}

#[test]
fn data_beyond_a_gap_is_reported_immediately_with_the_newest_range_first() {
    let mut script = open(Config::linux());
    script.data(1000, 1000, 0);
    assert_eq!(report(&mut script), (0, vec![(1000, 2000)]));
    assert_eq!(script.connection.readable_bytes(), 0);
    script.data(3000, 1000, 0);
    assert_eq!(report(&mut script), (0, vec![(3000, 4000), (1000, 2000)]));
    script.data(5000, 1000, 0);
    assert_eq!(report(&mut script), (0, vec![(5000, 6000), (3000, 4000), (1000, 2000)]));
    // Three blocks fit with timestamps (RFC 2018 section 3); the least recently changed one is omitted.
    script.data(7000, 1000, 0);
    assert_eq!(report(&mut script), (0, vec![(7000, 8000), (5000, 6000), (3000, 4000)]));
    // A range that grows is first again.
    script.data(2000, 500, 0);
    assert_eq!(report(&mut script), (0, vec![(1000, 2500), (7000, 8000), (5000, 6000)]));
    // Two ranges merge.
    script.data(2500, 500, 0);
    assert_eq!(report(&mut script), (0, vec![(1000, 4000), (7000, 8000), (5000, 6000)]));
    // The gap is filled: everything up to the next one is acknowledged immediately.
    script.data(0, 1000, 0);
    assert_eq!(report(&mut script), (4000, vec![(7000, 8000), (5000, 6000)]));
    assert_eq!(script.connection.readable_bytes(), 4000);
    // In order, but a gap remains: immediately.
    script.data(4000, 10, 0);
    assert_eq!(report(&mut script), (4010, vec![(7000, 8000), (5000, 6000)]));
    // A segment that fills the last gap and duplicates data in it is reported.
    script.data(4010, 2990, 0);
    assert_eq!(report(&mut script), (8000, vec![(5000, 6000)]));
    assert_eq!(script.connection.statistics().received_bytes, 8000);
}

#[test]
fn sack_ranges_are_in_order_of_change_followed_by_evicted_ones() {
    let mut script = open(Config::linux());
    for offset in [9000, 5000, 1000] {
        script.data(offset, 1000, 0);
    }
    // One range that grows many times does not change the order of the others.
    for step in 0..4 {
        script.data(2000 + step * 100, 100, 0);
    }
    assert_eq!(report(&mut script), (0, vec![(1000, 2400), (5000, 6000), (9000, 10_000)]));
    // Five ranges: the oldest is evicted; when the others merge, it is reported again.
    let mut script = open(Config::linux());
    for offset in [1000, 3000, 5000, 7000, 9000, 4000, 6000, 8000] {
        script.data(offset, 1000, 0);
    }
    assert_eq!(report(&mut script), (0, vec![(3000, 10_000), (1000, 2000)]));
}

#[test]
fn four_sack_blocks_fit_without_timestamps_and_none_without_sack() {
    let mut script = open(Config { timestamps: false, ..Config::linux() });
    for offset in [1000, 3000, 5000, 7000, 9000] {
        script.data(offset, 1000, 0);
    }
    assert_eq!(report(&mut script), (0, vec![(9000, 10000), (7000, 8000), (5000, 6000), (3000, 4000)]));
    let mut script = open(Config { sack: false, ..Config::linux() });
    script.data(1000, 1000, 0);
    assert_eq!(report(&mut script), (0, vec![]));
}

#[test]
fn duplicate_is_reported_in_the_first_block() {
    // RFC 2883 section 4.
    let mut script = open(Config::linux());
    script.data(0, 1000, 0);
    script.data(1000, 1000, 0);
    script.out();
    script.data(500, 1000, 0);
    assert_eq!(report(&mut script), (2000, vec![(500, 1500)]));
    // Only once.
    script.data(2000, 10, 0);
    script.data(2010, 10, 0);
    assert_eq!(report(&mut script), (2020, vec![]));
    // Partly old, partly new.
    script.data(2000, 100, 0);
    assert_eq!(report(&mut script), (2100, vec![(2000, 2020)]));
    // Beyond a gap: the duplicate, then the range that contains it.
    script.data(3000, 1000, 0);
    script.out();
    script.data(3000, 1000, 0);
    assert_eq!(report(&mut script), (2100, vec![(3000, 4000), (3000, 4000)]));
    assert_eq!(script.connection.statistics().duplicate_segments_received, 2);
    assert_eq!(script.connection.readable_bytes(), 2100);
}

#[test]
fn readable_event_occurs_once_for_new_bytes() {
    let mut script = open(Config::linux());
    script.events.clear();
    script.data(0, 100, 0);
    script.data(100, 100, 0);
    assert_eq!(script.events, [TransportEvent::Readable, TransportEvent::Readable]);
    script.data(500, 100, 0);
    script.data(0, 100, 0);
    assert_eq!(script.events.len(), 2, "an event without new data in order");
}

#[test]
fn window_is_the_free_part_of_the_buffer() {
    // 100 000 >> 1 = 50 000 fits in 16 bits: scale 1.
    let config = Config {
        receive_buffer_bytes: 100_000,
        initial_receive_window_bytes: None,
        delayed_ack_segments: 1,
        mss_bytes: 1000,
        ..Config::linux()
    };
    let mut script = open(config);
    script.data(0, 40_000, 0);
    assert_eq!(script.out()[0].header.window, 30_000);
    // Beyond half of the buffer, the window's end is still the read offset plus the buffer size.
    script.data(40_000, 40_000, 0);
    assert_eq!(script.out()[0].header.window, 10_000);
    // Data beyond the window is discarded.
    script.data(80_000, 30_000, 0);
    let ack = script.out().remove(0);
    assert_eq!((script.peer_offset(ack.header.acknowledgement), ack.header.window), (100_000, 0));
    // A probe beyond the edge is answered but not accepted.
    script.data(100_000, 1, 0);
    let ack = script.out().remove(0);
    assert_eq!((script.peer_offset(ack.header.acknowledgement), ack.header.window), (100_000, 0));
    // Reading less than a segment does not open the window (RFC 9293 section 3.8.6.2.2).
    assert_eq!(script.connection.read(999).unwrap().len(), 999);
    assert!(script.out().is_empty());
    script.peer_next = 99_999;
    let probe = script.segment(0, flags::ACK);
    script.deliver(probe);
    assert_eq!(script.out()[0].header.window, 0, "a probe does not open it");
    // Reading a segment's worth opens it, and the peer gets an update.
    assert_eq!(script.connection.read(1).unwrap().len(), 1);
    assert_eq!(script.out()[0].header.window, 500);
    // From then on the peer gets an update when the window has at least doubled.
    script.connection.read(999);
    assert!(script.out().is_empty());
    script.connection.read(1);
    assert_eq!(script.out()[0].header.window, 1000);
    script.connection.read(1_999);
    assert!(script.out().is_empty());
    script.connection.read(1);
    assert_eq!(script.out()[0].header.window, 2000);
    script.connection.read(98_000);
    assert_eq!(script.out()[0].header.window, 50_000);
}

#[test]
fn data_within_any_announced_window_is_accepted_despite_rounding() {
    // RFC 7323 section 2.4: the field has the window in units of its scale, rounded down, so the edge may move left by less than a unit.
    // Data within any announced window is acceptable. The test has a shift of 1 (units of 2), segments of odd length, and a reader that
    // waits.
    let config = Config {
        receive_buffer_bytes: 100_001,
        initial_receive_window_bytes: None,
        delayed_ack_segments: 1,
        ..Config::linux()
    };
    let mut script = open(config);
    let (mut edge, mut retreats) = (100_000, 0);
    for segment in 0..10 {
        script.data(segment * 1001, 1001, 0);
        let ack = script.out().remove(0);
        let now = script.peer_offset(ack.header.acknowledgement) + (u32::from(ack.header.window) << 1);
        assert!(now + 2 > edge, "segment {segment}: from {edge} to {now}");
        retreats += u32::from(now < edge);
        edge = edge.max(now);
    }
    assert!(retreats > 0, "the case did not occur");
    for offset in (10_010..edge).step_by(10_000) {
        script.data(offset, (edge - offset).min(10_000) as u16, 0);
    }
    assert_eq!(script.connection.readable_bytes(), u64::from(edge));
}

#[test]
fn immediate_reads_send_no_window_updates() {
    let mut script = open(Config::ns3());
    for segment in 0..1000 {
        script.data(segment * 512, 512, 0);
        assert_eq!(script.connection.read(u64::MAX).unwrap().len(), 512);
        let acks = script.out();
        // The first immediately, then every second.
        assert_eq!(acks.len(), usize::from(segment % 2 == 0));
        // The full 131 072 bytes, with a shift of 2.
        assert!(acks.iter().all(|ack| ack.header.window == 32_768));
    }
}

#[test]
fn echoed_timestamp_is_that_of_the_first_unacknowledged_segment() {
    // RFC 7323 section 4.3, figure in (A): for two segments acknowledged together, the timestamp of the first is echoed.
    let mut script = open(Config::linux());
    let first = 1_000_000 + 10;
    script.data(0, 1000, 0);
    script.advance(ms(7));
    script.data(1000, 1000, 0);
    assert_eq!(script.out()[0].header.timestamp_echo, first);
    // (B): beyond a gap it remains that of the last segment in order; when the gap is filled, it is that of the filling segment.
    script.advance(ms(1));
    script.data(2000, 1000, 0);
    script.connection.handle_timeout(script.now + ms(40));
    assert_eq!(script.out()[0].header.timestamp_echo, first + 8);
    script.advance(ms(1));
    script.data(4000, 1000, 0);
    assert_eq!(script.out()[0].header.timestamp_echo, first + 8);
    script.advance(ms(1));
    script.data(3000, 1000, 0);
    assert_eq!(script.out()[0].header.timestamp_echo, first + 10);
}

#[test]
fn segment_with_an_older_timestamp_is_dropped() {
    // RFC 7323 section 5: the segment is acknowledged and dropped.
    let mut script = open(Config::linux());
    script.advance(ms(100));
    script.data(0, 1000, 0);
    let mut old = script.segment(0, flags::ACK);
    old.header.sequence = script.peer_initial.wrapping_add(1001);
    old.header.payload_bytes = 1000;
    old.header.timestamp -= 1;
    script.deliver(old.clone());
    assert_eq!(script.connection.readable_bytes(), 1000);
    assert_eq!(script.out().len(), 1);
    // A reset is not checked.
    let mut reset = script.segment(0, flags::RST);
    reset.header.sequence = script.peer_initial.wrapping_add(1001);
    reset.header.timestamp -= 1;
    // After 24 days without a segment, the remembered timestamp is invalid.
    script.advance(Duration::from_secs(25 * 86_400));
    script.deliver(old);
    assert_eq!(script.connection.readable_bytes(), 2000);
    reset.header.sequence = reset.header.sequence.wrapping_add(1000);
    script.deliver(reset);
    assert!(script.connection.is_closed());
}

#[test]
fn duplicate_with_an_older_timestamp_is_reported() {
    // The retransmission of a segment arrives first. The original has an older timestamp than the data after it. It is
    // dropped (RFC 7323 section 5), and the acknowledgment reports it (RFC 2883), as Linux's does.
    let mut script = open(Config::linux());
    script.advance(ms(100));
    script.data(0, 1000, 0);
    let mut old = script.segment(0, flags::ACK);
    old.header.payload_bytes = 1000;
    old.header.sequence = script.peer_initial.wrapping_add(1);
    old.header.timestamp -= 1;
    script.out();
    script.deliver(old.clone());
    assert_eq!(report(&mut script), (1000, vec![(0, 1000)]));
    assert_eq!(script.connection.statistics().duplicate_segments_received, 1);
    // New data with an old timestamp is not a duplicate.
    old.header.sequence = old.header.sequence.wrapping_add(1000);
    script.deliver(old);
    assert_eq!(report(&mut script), (1000, vec![]));
    assert_eq!(script.connection.statistics().duplicate_segments_received, 1);
}

#[test]
fn segment_without_negotiated_timestamps_is_dropped() {
    let mut script = open(Config::linux());
    script.with_timestamps = false;
    script.data(0, 1000, 0);
    assert_eq!(script.connection.readable_bytes(), 0);
    assert!(script.out().is_empty());
}

#[test]
fn keep_alive_probe_is_always_answered() {
    let mut script = open(Config::linux());
    script.peer_next = u32::MAX;
    for _ in 0..3 {
        let probe = script.segment(0, flags::ACK);
        script.deliver(probe);
        assert_eq!(script.out().len(), 1);
    }
    // Other old numbers are answered only twice per second, so that two ends do not answer each other forever.
    script.peer_next = u32::MAX - 7;
    for expected in [1, 0, 0] {
        let old = script.segment(0, flags::ACK);
        script.deliver(old);
        assert_eq!(script.out().len(), expected);
    }
}
