//! Tests of loss detection and congestion control (RFC 9002).

use super::*;

/// A client with a stream. Its datagrams have 1200 bytes: 1 + 8 bytes of header, one of packet number, 16 of tag, and a STREAM
/// frame.
fn sender() -> (Lone, u32) {
    let mut lone = Lone::client(plain(), plain());
    let stream = lone.open(true);
    (lone, stream)
}

fn pto(lone: &Lone) -> Duration {
    // Section 6.2.1: with the peer's max_ack_delay.
    lone.connection.inspect().pto + ms(25)
}

#[test]
fn initial_window_is_ten_packets() {
    // Section 7.2: 10 * 1200, plus the few bytes of growth in the handshake, which the window did not limit.
    let (mut lone, stream) = sender();
    assert_eq!(lone.connection.inspect().cwnd_bytes, 12_000);
    assert_eq!(lone.write(stream, 1_000_000).len(), 10);
    assert_eq!(lone.connection.inspect().in_flight_bytes, 12_000);
    let bounded = Config { bounded_initial_window: true, initial_mtu_bytes: 1472, ..plain() };
    let lone = Lone::client(bounded, plain());
    // min(10 * 1472, max(14 720, 2 * 1472)).
    assert_eq!(lone.connection.inspect().cwnd_bytes, 14_720);
}

/// An error of the ns-3 module: the smoothed time was zero after the second sample, the smallest was always zero.
#[test]
fn measured_round_trip_time_equals_that_of_the_path() {
    let (mut lone, stream) = sender();
    let inspect = lone.connection.inspect();
    assert_eq!((inspect.min_rtt, inspect.latest_rtt.as_nanos() / 1_000_000), (ms(100), 100));
    for number in 0..50 {
        lone.write(stream, 100);
        lone.pass(ms(100));
        lone.acknowledge(&[(number, number)]);
    }
    let inspect = lone.connection.inspect();
    assert_eq!(inspect.min_rtt, ms(100));
    assert!(inspect.smoothed_rtt.abs_diff(ms(100)) < Duration::from_micros(100), "{}", inspect.smoothed_rtt);
    let before = inspect.smoothed_rtt;
    lone.write(stream, 100);
    lone.pass(ms(180));
    lone.first += 50;
    // The probes that were sent in this time have no effect: the first packet is acknowledged.
    lone.acknowledge(&[(0, 0)]);
    // 7/8 of 100 ms and 1/8 of 180 ms.
    let expected = (before * 7 + ms(180)) / 8;
    assert_eq!(lone.connection.inspect().smoothed_rtt, expected);
}

/// An error of the ns-3 module: backoff was an exclusive or, not a power.
#[test]
fn probes_follow_doubling_timeouts_for_any_window() {
    let (mut lone, stream) = sender();
    let pto = pto(&lone);
    let begin = lone.now;
    lone.write(stream, 1_000_000);
    let probes = lone.pass(pto * 16);
    // Two at each time-out (section 6.2.4), after 1, 1 + 2 and 1 + 2 + 4 time-outs, and 8 more.
    let times: Vec<_> = probes.iter().map(|(sent, _)| *sent).collect();
    let expected = [1, 3, 7, 15].map(|times| begin + pto * times);
    assert_eq!(times.chunks(2).map(|pair| pair[0]).collect::<Vec<_>>(), expected);
    assert_eq!(times.chunks(2).map(|pair| pair[1]).collect::<Vec<_>>(), expected);
    assert!(lone.connection.inspect().in_flight_bytes > lone.connection.inspect().cwnd_bytes);
    assert_eq!(lone.connection.inspect().cwnd_bytes, 12_000, "a time-out is no loss (section 7.5)");
    // A packet that arrives ends the backoff.
    lone.acknowledge(&[(0, 0)]);
    let again = self::pto(&lone);
    assert!(lone.connection.slow_timer_deadline() <= lone.now + again);
}

#[test]
fn packet_is_lost_when_the_third_later_one_arrives() {
    // Section 6.1.1: kPacketThreshold is 3.
    let (mut lone, stream) = sender();
    lone.write(stream, 10_000);
    lone.pass(ms(100));
    lone.acknowledge(&[(2, 2)]);
    assert_eq!(lone.connection.statistics().lost_packets, 0);
    lone.acknowledge(&[(3, 3)]);
    assert_eq!(lone.connection.statistics().lost_packets, 1);
}

/// An error of the ns-3 module: 9/8 was 1.
#[test]
fn packet_is_lost_nine_eighths_of_a_round_trip_after_it_was_sent() {
    let (mut lone, stream) = sender();
    let sent = lone.now;
    lone.write(stream, 3000);
    lone.pass(ms(104));
    lone.acknowledge(&[(1, 1)]);
    // The newest sample of 104 ms is longer than the smoothed one: 117 ms.
    assert_eq!(lone.connection.statistics().lost_packets, 0);
    assert_eq!(lone.connection.fast_timer_deadline(), sent + ms(117));
    lone.pass(ms(12));
    assert_eq!(lone.connection.statistics().lost_packets, 0);
    lone.pass(ms(1));
    assert_eq!(lone.connection.statistics().lost_packets, 1);
}

#[test]
fn window_is_reduced_once_per_round_trip() {
    // Section 7.3.2; NewReno's factor is a half (section 7.3.2, kLossReductionFactor).
    let (mut lone, stream) = sender();
    lone.write(stream, 1_000_000);
    lone.pass(ms(100));
    let before = lone.connection.inspect().cwnd_bytes;
    lone.acknowledge(&[(3, 3)]);
    let halved = lone.connection.inspect().cwnd_bytes;
    assert!(halved <= before / 2 + 1200 && halved >= before / 2, "{before} {halved}");
    lone.acknowledge(&[(6, 6)]);
    assert!(lone.connection.statistics().lost_packets >= 3);
    assert_eq!((lone.connection.inspect().cwnd_bytes, lone.connection.statistics().recoveries), (halved, 1));
}

#[test]
fn loss_of_a_packet_sent_before_recovery_starts_no_other_recovery() {
    // Appendix B.6: the time at which the last recovery began is kept beyond its end.
    let mut lone = Lone::client(Config { packet_threshold: 6, ..plain() }, plain());
    let stream = lone.open(true);
    lone.write(stream, 1_000_000);
    lone.pass(ms(80));
    // 0 and 1 are lost; six packets are in flight, more than half of the window.
    lone.acknowledge(&[(6, 7)]);
    assert_eq!(lone.connection.statistics().recoveries, 1);
    lone.pass(ms(2));
    // 2, 8 and 9 remain: 10 and 11 leave, and 10 ends the recovery. The acknowledgement also shows the loss of 2, eight packets
    // before 10.
    lone.acknowledge(&[(3, 5)]);
    lone.pass(ms(2));
    lone.acknowledge(&[(10, 10)]);
    let statistics = lone.connection.statistics();
    assert_eq!((statistics.lost_packets, statistics.recoveries), (3, 1));
    assert!(!lone.connection.inspect().in_recovery, "10 was sent after its beginning");
    let before = lone.connection.inspect().cwnd_bytes;
    // 8 and 9 left 86 ms ago. Samples of 80, 82, 2 and 2 ms reduce the smoothed time from 100 to 97.5, 95.6, 83.9 and 73.6 ms, of
    // which nine eighths are 82.8.
    lone.pass(ms(2));
    lone.acknowledge(&[(12, 13)]);
    let statistics = lone.connection.statistics();
    assert_eq!((statistics.lost_packets, statistics.recoveries), (5, 1));
    assert!(lone.connection.inspect().cwnd_bytes >= before);
}

#[test]
fn long_period_of_losses_is_persistent_congestion() {
    // Section 7.6.1: the period is longer than 3 * (smoothed + 4 * variation + max_ack_delay), both ends are lost, and no packet
    // between them is acknowledged.
    for (beyond, between, persistent) in [(true, false, true), (false, false, false), (true, true, false)] {
        let (mut lone, stream) = sender();
        // The sample of 100 ms of the acknowledgement reduces the variation to three quarters (section 5.3).
        let inspect = lone.connection.inspect();
        let period = (inspect.smoothed_rtt + (inspect.pto - inspect.smoothed_rtt) * 3 / 4 + ms(25)) * 3;
        lone.write(stream, 10);
        lone.pass(period / 2);
        lone.write(stream, 10);
        let middle = lone.newest();
        // Probes are sent in this time; they are lost as well.
        let end = if beyond { period + ms(1) } else { period - ms(1) };
        lone.pass(end - period / 2);
        for _ in 0..4 {
            lone.write(stream, 10);
        }
        // The first of these four is the last lost packet, by the packet threshold.
        let newest = lone.newest();
        lone.pass(ms(100));
        let ranges = [(newest, newest), (middle, middle)];
        lone.acknowledge(if between { &ranges } else { &ranges[..1] });
        let statistics = lone.connection.statistics();
        assert_eq!(statistics.persistent_congestions, u64::from(persistent), "{beyond} {between}");
        let cwnd = lone.connection.inspect().cwnd_bytes;
        assert!(if persistent { cwnd == 2 * 1200 } else { cwnd >= 6000 }, "{cwnd}");
    }
}

#[test]
fn pacer_spreads_a_transfer() {
    // Section 7.7: in a round-trip time 1.25 windows leave, in bursts of ten packets at most.
    let mut lone =
        Lone::client(Config { largest_mtu_bytes: None, pacing_burst_packets: 2, ..Config::default() }, plain());
    let stream = lone.open(true);
    let at_once = lone.write(stream, 1_000_000).len();
    assert!(at_once <= 3, "{at_once}");
    let begin = lone.now;
    let later = lone.pass(ms(90));
    // The rest of ten packets at 1.25 * 12 000 bytes in 100 ms: 8 ms each, so that all have left after 80 ms.
    assert_eq!(at_once + later.len(), 10);
    let last = later.last().unwrap().0.saturating_since(begin);
    assert!(last > ms(50) && last <= ms(80), "{last}");
}

/// An error of the ns-3 module: it compared packet numbers with bytes when it evaluated timeouts.
#[test]
fn spurious_losses_are_counted_and_the_window_is_restored() {
    let (mut lone, stream) = sender();
    lone.write(stream, 1_000_000);
    lone.pass(ms(100));
    let before = lone.connection.inspect().cwnd_bytes;
    lone.acknowledge(&[(3, 3)]);
    assert!(lone.connection.inspect().cwnd_bytes < before);
    lone.acknowledge(&[(0, 3)]);
    let statistics = lone.connection.statistics();
    assert_eq!((statistics.lost_packets, statistics.spuriously_lost_packets), (1, 1));
    assert_eq!(statistics.undone_recoveries, 1);
    assert!(lone.connection.inspect().cwnd_bytes >= before);
}

/// The recovery ends with the acknowledgment of a packet that was sent in it. The packet declared lost arrives after that one.
#[test]
fn spurious_recovery_is_undone_once_after_its_end() {
    let (mut lone, stream) = sender();
    lone.write(stream, 1_000_000);
    lone.pass(ms(100));
    let before = lone.connection.inspect().cwnd_bytes;
    lone.acknowledge(&[(3, 3)]);
    lone.pass(ms(1));
    let newest = lone.newest();
    lone.acknowledge(&[(1, newest)]);
    assert!(lone.connection.inspect().in_recovery, "all of them were sent before the recovery");
    lone.pass(ms(50));
    let newest = lone.newest();
    lone.acknowledge(&[(1, newest)]);
    assert!(!lone.connection.inspect().in_recovery);
    assert_eq!(lone.connection.statistics().undone_recoveries, 0, "packet 0 is missing");
    assert!(lone.connection.inspect().cwnd_bytes < before);
    lone.acknowledge(&[(0, newest)]);
    assert_eq!(lone.connection.statistics().undone_recoveries, 1);
    assert!(lone.connection.inspect().cwnd_bytes >= before);
}

#[test]
fn retransmission_canceled_by_an_acknowledgment_does_not_block_the_stream() {
    // A probe repeats the end of a stream. The window is full, so it waits, and the first copy arrives.
    let (mut lone, stream) = sender();
    lone.write(stream, 12_000 - 300);
    let now = lone.now;
    lone.connection.stream(now, stream).unwrap().finish();
    lone.drain();
    lone.pass(ms(100));
    lone.acknowledge(&[(4, 4)]);
    // Packets 0 and 1 are declared lost; they and all others arrive.
    let newest = lone.newest();
    lone.acknowledge(&[(0, newest)]);
    for _ in 0..2 {
        lone.receive(vec![QuicFrame::Ping]);
    }
    assert!(lone.connection.fast_timer_deadline() > lone.now, "acknowledgements leave");
}

#[test]
fn probe_repairs_a_lost_tail() {
    let mut pair = confirmed(plain(), plain());
    let now = pair.now;
    let stream = pair.client.open_stream(now, true).unwrap();
    let sent = pair.client.statistics().sent_datagrams;
    let pto = pair.client.inspect().pto + ms(25);
    pair.drop[0] = vec![sent];
    pair.write(stream, Payload::Length(500));
    pair.run_until(|pair| pair.received[1] == 500);
    assert_eq!(pair.now, now + pto + ms(50));
}
