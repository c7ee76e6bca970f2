//! Handshake: options of SYN segments, the negotiated parameters, and lost segments.

use crate::common::*;
use fullpipe_tcp::{Config, Connection, State};
use fullpipe_transport::{CloseReason, Stream, TransportEvent};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::tcp::{flags, options};
use std::sync::Arc;

fn server(config: Config) -> Connection {
    Connection::server(Arc::new(config), Box::new(Halving), 500, Instant::ZERO)
}

#[test]
fn syn_segments_carry_the_options_of_the_presets() {
    // MSS 4 + window scale 3 + SACK permitted 2 + timestamps 10 = 19, padded 20; 6 MiB >> 7 = 49 152 fits in 16 bits, one shift less does
    // not. The MSS option includes the 12 bytes of timestamps: 1448 + 12.
    let mut linux = Script::unopened(Config::linux(), Box::new(Halving));
    let syn = linux.out().remove(0);
    assert_eq!(syn.header.header_bytes(), 40);
    assert_eq!((syn.header.mss, syn.header.window_scale, syn.header.window), (1460, 7, 65_535));
    assert_eq!(syn.header.flags, flags::SYN);
    assert_eq!(syn.header.sequence, linux.initial);
    // 3 + 2 + 10 = 15, padded 16; 131 072 >> 1 is 65 536, one too many, so 2.
    let mut ns3 = Script::unopened(Config::ns3(), Box::new(Halving));
    let syn = ns3.out().remove(0);
    assert_eq!(syn.header.header_bytes(), 36);
    assert_eq!(syn.header.options, options::WINDOW_SCALE | options::SACK_PERMITTED | options::TIMESTAMPS);
    assert_eq!(syn.header.window_scale, 2);
}

#[test]
fn syn_ack_has_only_the_offered_options() {
    for bits in 0..16u8 {
        let config = Config {
            sack: bits & 1 != 0,
            timestamps: bits & 2 != 0,
            window_scaling: bits & 4 != 0,
            initial_receive_window_bytes: None,
            ..Config::linux()
        };
        let mut client = Script::unopened(config, Box::new(Halving));
        let mut accepting = server(Config { sack: bits & 8 != 0, ..Config::linux() });
        let syn = client.out().remove(0);
        deliver(&mut accepting, at_ms(5), &syn);
        assert_eq!(accepting.state(), State::SynReceived);
        let answer = drain(&mut accepting, at_ms(5)).remove(0);
        let has = |option: u8| answer.header.options & option != 0;
        assert_eq!(has(options::SACK_PERMITTED), bits & 1 != 0 && bits & 8 != 0);
        assert_eq!(has(options::TIMESTAMPS), bits & 2 != 0);
        assert_eq!(has(options::WINDOW_SCALE), bits & 4 != 0);
        assert_eq!(answer.header.flags, flags::SYN | flags::ACK);
        assert_eq!(answer.header.acknowledgement, client.initial.wrapping_add(1));
        if has(options::TIMESTAMPS) {
            assert_eq!(answer.header.timestamp_echo, syn.header.timestamp);
        }
        client.advance(ms(10));
        client.deliver(answer);
        assert_eq!(client.connection.state(), State::Established);
        assert_eq!(client.events, [TransportEvent::Connected]);
        let ack = client.out();
        assert_eq!(ack.len(), 1);
        deliver(&mut accepting, at_ms(15), &ack[0]);
        assert_eq!(accepting.state(), State::Established);
        assert_eq!(accepting.poll_event(), Some(TransportEvent::Connected));
        assert_eq!(accepting.poll_event(), None);
        // Both measured 10 ms.
        assert_eq!(client.connection.inspect().smoothed_rtt, ms(10));
        assert_eq!(accepting.inspect().smoothed_rtt, ms(10));
        // Unscaled windows have 16 bits.
        let window = client.connection.inspect().peer_window_bytes;
        assert_eq!(window, 65_535);
        let ack_window = u64::from(ack[0].header.window);
        if bits & 4 != 0 {
            assert_eq!(ack_window << 7, 6 << 20);
        } else {
            assert_eq!(ack_window, 65_535);
        }
    }
}

#[test]
fn handshake_ends_with_a_pure_acknowledgment_before_data() {
    let mut script = Script::unopened(Config::linux(), Box::new(Halving));
    script.write(5000);
    let syn = script.out();
    assert_eq!(syn.len(), 1, "data waits for the handshake");
    script.advance(ms(10));
    let mut answer = script.segment(0, flags::SYN | flags::ACK);
    answer.header.sequence = script.peer_initial;
    answer.header.window = 65_535;
    script.deliver(answer);
    // The SYN-ACK had no options: no MSS, so 536 bytes (RFC 9293 section 3.7.1).
    assert_eq!(script.sent()[..3], [(0, 0), (0, 536), (536, 536)]);
}

#[test]
fn smaller_of_both_mss_is_used() {
    let mut script = Script::unopened(Config { nagle: false, ..Config::linux() }, Box::new(Halving));
    let syn = script.out().remove(0);
    let mut answer = script.segment(0, flags::SYN | flags::ACK);
    answer.header.sequence = script.peer_initial;
    answer.header.options = syn.header.options;
    answer.header.mss = 1000;
    script.deliver(answer);
    script.with_timestamps = true;
    script.write(2000);
    // 1000 less 12 bytes of timestamps.
    assert_eq!(script.sent(), [(0, 0), (0, 988), (988, 988), (1976, 24)]);
}

#[test]
fn window_shift_above_14_counts_as_14() {
    // RFC 7323 section 2.3.
    let mut script = Script::unopened(Config::linux(), Box::new(Halving));
    let syn = script.out().remove(0);
    let mut answer = script.segment(0, flags::SYN | flags::ACK);
    answer.header.sequence = script.peer_initial;
    answer.header.options = syn.header.options;
    answer.header.mss = 1460;
    answer.header.window_scale = 15;
    script.deliver(answer);
    script.with_timestamps = true;
    script.window = 3;
    script.peer_next = 0;
    script.ack(0, &[]);
    assert_eq!(script.connection.inspect().peer_window_bytes, 3 << 14);
}

#[test]
fn syn_is_retransmitted_after_1_3_7_15_31_63_seconds() {
    let mut script = Script::unopened(Config::linux(), Box::new(Halving));
    assert_eq!(script.out().len(), 1);
    for seconds in [1, 3, 7, 15, 31, 63] {
        assert_eq!(script.timer(), Instant::ZERO + Duration::from_secs(seconds));
        let again = script.out();
        assert_eq!(again.len(), 1);
        assert!(again[0].header.has_flag(flags::SYN));
        assert_eq!(again[0].header.sequence, script.initial);
    }
    assert_eq!(script.timer(), Instant::ZERO + Duration::from_secs(127));
    assert_eq!(script.events, [TransportEvent::Closed(CloseReason::TimedOut)]);
    assert!(script.connection.is_closed());
    assert_eq!(script.connection.statistics().syn_retransmissions, 6);
}

/// A client whose SYN was lost this many times, and was then answered with or without timestamps.
fn after_lost_syns(lost: u32, timestamps: bool) -> Script {
    let mut script = Script::unopened(Config { timestamps, ..Config::linux() }, Box::new(Halving));
    let mut syn = script.out().remove(0);
    for _ in 0..lost {
        script.timer();
        syn = script.out().remove(0);
    }
    script.advance(ms(40));
    let mut answer = script.segment(0, flags::SYN | flags::ACK);
    answer.header.sequence = script.peer_initial;
    answer.header.options = syn.header.options;
    answer.header.mss = 1460;
    answer.header.timestamp_echo = syn.header.timestamp;
    script.deliver(answer);
    script
}

#[test]
fn lost_syn_reduces_the_initial_window_and_increases_the_timeout() {
    // RFC 6928 section 2: the window stays after one loss, and is one segment after more. RFC 6298 rule 5.7: without a
    // sample (Karn) the timeout starts at 3 s; timestamps provide a sample.
    assert_eq!(after_lost_syns(0, true).connection.inspect().cwnd_bytes, 14_480);
    assert_eq!(after_lost_syns(1, true).connection.inspect().cwnd_bytes, 14_480);
    assert_eq!(after_lost_syns(2, true).connection.inspect().cwnd_bytes, 1_448);
    let without = after_lost_syns(1, false).connection.inspect();
    assert_eq!(without.rto, Duration::from_secs(3));
    assert!(without.smoothed_rtt.is_zero());
    assert_eq!(after_lost_syns(1, true).connection.inspect().smoothed_rtt, ms(40));
}

#[test]
fn reset_of_a_syn_needs_the_right_acknowledgment() {
    let mut script = Script::unopened(Config::linux(), Box::new(Halving));
    script.out();
    // Without ACK, or with a wrong one, a reset has no effect. A segment other than a reset with a wrong ACK is answered with a reset.
    let bare = script.segment(0, flags::RST);
    script.deliver(bare);
    let wrong = script.segment(5, flags::RST | flags::ACK);
    script.deliver(wrong);
    assert_eq!(script.connection.state(), State::SynSent);
    assert!(script.out().is_empty());
    let half_open = script.segment(5, flags::ACK);
    let expected = half_open.header.acknowledgement;
    script.deliver(half_open);
    let reset = script.out().remove(0);
    assert_eq!((reset.header.flags, reset.header.sequence), (flags::RST, expected));
    assert_eq!(script.connection.state(), State::SynSent);
    let right = script.segment(0, flags::RST | flags::ACK);
    script.deliver(right);
    assert_eq!(script.events, [TransportEvent::Closed(CloseReason::Refused)]);
    assert!(script.connection.is_closed());
}

#[test]
fn listener_ignores_resets_and_answers_acknowledgments_with_a_reset() {
    let mut accepting = server(Config::linux());
    let script = Script::unopened(Config::linux(), Box::new(Halving));
    deliver(&mut accepting, at_ms(1), &script.segment(0, flags::RST));
    assert!(drain(&mut accepting, at_ms(1)).is_empty());
    let stray = script.segment(9, flags::ACK);
    deliver(&mut accepting, at_ms(1), &stray);
    let reset = drain(&mut accepting, at_ms(1)).remove(0);
    assert_eq!((reset.header.flags, reset.header.sequence), (flags::RST, stray.header.acknowledgement));
    assert_eq!(accepting.state(), State::Listen);
    assert!(next_deadline(&accepting).is_never());
}

/// A server that has received a SYN with number 77 and sent its SYN-ACK.
fn half_open() -> (Connection, Script) {
    let mut accepting = server(Config::linux());
    let script = Script::unopened(Config::linux(), Box::new(Halving));
    let mut syn = script.segment(0, flags::SYN);
    syn.header.sequence = 77;
    deliver(&mut accepting, at_ms(0), &syn);
    assert_eq!(drain(&mut accepting, at_ms(0)).len(), 1);
    (accepting, script)
}

#[test]
fn reset_of_a_half_open_connection_returns_to_listen() {
    let (mut accepting, mut script) = half_open();
    let mut reset = script.segment(0, flags::RST);
    reset.header.sequence = 78;
    deliver(&mut accepting, at_ms(5), &reset);
    assert_eq!(accepting.state(), State::Listen);
    assert!(next_deadline(&accepting).is_never());
    assert_eq!(accepting.poll_event(), None);
    // Another client can connect.
    let syn = script.out().remove(0);
    deliver(&mut accepting, at_ms(10), &syn);
    let answer = drain(&mut accepting, at_ms(10)).remove(0);
    script.deliver(answer);
    let ack = script.out().remove(0);
    deliver(&mut accepting, at_ms(12), &ack);
    assert_eq!(accepting.state(), State::Established);
}

#[test]
fn half_open_server_retransmits_its_syn_ack_and_resets_wrong_acknowledgments() {
    let (mut accepting, script) = half_open();
    // The client retransmits its SYN.
    let mut syn = script.segment(0, flags::SYN);
    syn.header.sequence = 77;
    deliver(&mut accepting, at_ms(5), &syn);
    let again = drain(&mut accepting, at_ms(5)).remove(0);
    assert_eq!(again.header.flags, flags::SYN | flags::ACK);
    // By the timer, one second after the first.
    assert_eq!(accepting.slow_timer_deadline(), at_ms(1000));
    accepting.handle_timeout(at_ms(1000));
    assert_eq!(drain(&mut accepting, at_ms(1000)).len(), 1);
    // An acknowledgment of unsent data.
    let mut wrong = script.segment(0, flags::ACK);
    wrong.header.sequence = 78;
    wrong.header.acknowledgement = 555;
    deliver(&mut accepting, at_ms(1001), &wrong);
    let reset = drain(&mut accepting, at_ms(1001)).remove(0);
    assert_eq!((reset.header.flags, reset.header.sequence), (flags::RST, 555));
    assert_eq!(accepting.state(), State::SynReceived);
}

#[test]
fn data_with_the_last_acknowledgment_of_the_handshake_is_accepted() {
    let (mut accepting, script) = half_open();
    let mut data = script.segment(0, flags::ACK);
    data.header.sequence = 78;
    data.header.acknowledgement = 501;
    data.header.payload_bytes = 100;
    deliver(&mut accepting, at_ms(5), &data);
    assert_eq!(accepting.state(), State::Established);
    assert_eq!(accepting.poll_event(), Some(TransportEvent::Connected));
    assert_eq!(accepting.poll_event(), Some(TransportEvent::Readable));
    assert_eq!(accepting.readable_bytes(), 100);
}

#[test]
fn simultaneous_open_connects() {
    // RFC 9293 figure 7.
    let mut one = Script::unopened(Config::linux(), Box::new(Halving));
    let config = Arc::new(Config::linux());
    let mut two = Connection::client(config, Box::new(Halving), 9_000, Instant::ZERO);
    let first = one.out().remove(0);
    let second = drain(&mut two, Instant::ZERO).remove(0);
    one.advance(ms(10));
    one.deliver(second);
    deliver(&mut two, at_ms(10), &first);
    assert_eq!(one.connection.state(), State::SynReceived);
    assert_eq!(two.state(), State::SynReceived);
    let mut from_one = one.out();
    let mut from_two = drain(&mut two, at_ms(10));
    assert_eq!(from_one[0].header.flags, flags::SYN | flags::ACK);
    for round in 2..5 {
        one.advance(ms(10));
        from_two.drain(..).for_each(|segment| one.deliver(segment));
        from_one.drain(..).for_each(|segment| deliver(&mut two, at_ms(10 * round), &segment));
        from_one = one.out();
        from_two = drain(&mut two, at_ms(10 * round));
    }
    assert_eq!(one.connection.state(), State::Established);
    assert_eq!(two.state(), State::Established);
    assert!(from_one.is_empty() && from_two.is_empty(), "the exchange continues");
}
