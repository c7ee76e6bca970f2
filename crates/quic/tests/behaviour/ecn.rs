//! Tests of explicit congestion notification: counts, validation, marks (RFC 9000 section 13.4 and appendix A.4; RFC 9002 section
//! 7.1).

use super::*;

fn marking() -> Config {
    Config { ecn: true, ..plain() }
}

fn transfer(path: PathModel) -> Pair {
    let mut pair = Pair::new(marking(), marking(), path);
    pair.keep_sent = true;
    let stream = pair.client.open_stream(pair.now, true).unwrap();
    let mut left = 300_000u64;
    pair.run_until(|pair| {
        left -= pair.write(stream, Payload::Length(left));
        pair.received[1] == 300_000
    });
    pair
}

fn last_codepoints(pair: &Pair, end: usize) -> Vec<EcnCodepoint> {
    pair.sent[end].iter().rev().take(10).map(|(_, flight)| flight.codepoint).collect()
}

#[test]
fn path_that_preserves_ecn_bits_is_used_with_ecn() {
    let pair = transfer(PathModel::ideal(ms(20)));
    assert!(pair.sent[0].iter().all(|(_, flight)| flight.codepoint == EcnCodepoint::Ect0));
    assert!(pair.sent[1].iter().all(|(_, flight)| flight.codepoint == EcnCodepoint::Ect0));
    assert_eq!(pair.client.statistics().recoveries, 0);
}

#[test]
fn path_that_clears_ecn_bits_is_used_without_ecn() {
    let pair = transfer(PathModel { bleach: true, ..PathModel::ideal(ms(20)) });
    for end in 0..2 {
        assert!(last_codepoints(&pair, end).iter().all(|codepoint| *codepoint == EcnCodepoint::NotEct));
        let marked = pair.sent[end].iter().filter(|(_, flight)| flight.codepoint != EcnCodepoint::NotEct).count();
        assert!((1..=10).contains(&marked), "ten datagrams at most test it: {marked}");
    }
}

#[test]
fn mark_reduces_the_window_at_most_once_per_round_trip() {
    let mut lone = Lone::client(marking(), marking());
    let stream = lone.open(true);
    let sent = lone.write(stream, 1_000_000).len() as u64;
    assert_eq!(sent, 10);
    lone.pass(ms(100));
    let before = lone.connection.inspect().cwnd_bytes;
    let first = lone.first;
    let mut acknowledge = |upto: u64, ce: u64| {
        // The peer has counted all data packets so far, including those of the handshake.
        let counts = fullpipe_wire::quic::EcnCounts { ect0: first + upto + 1 - ce, ect1: 0, ce };
        lone.receive(vec![QuicFrame::Ack { delay: 0, ranges: vec![(0, first + upto)], ecn: Some(counts) }]);
        (lone.connection.inspect().cwnd_bytes, lone.connection.statistics().recoveries)
    };
    let (halved, recoveries) = acknowledge(1, 1);
    assert_eq!(recoveries, 1);
    assert!(halved >= before / 2 && halved <= before / 2 + 2400, "{before} {halved}");
    assert_eq!(acknowledge(3, 2), (halved, 1));
    assert_eq!(lone.connection.statistics().lost_packets, 0);
}

#[test]
fn impossible_ecn_counts_disable_ecn() {
    // Section 13.4.2.1: no counts, too few, more than were sent, or those of the other codepoint.
    let first = Lone::client(marking(), marking()).first;
    let all = first + 1;
    let counts = |ect0, ect1, ce| Some(fullpipe_wire::quic::EcnCounts { ect0, ect1, ce });
    for (ecn, good) in [
        (counts(all, 0, 0), true),
        (counts(all - 1, 0, 1), true),
        (None, false),
        (counts(first - 1, 0, 0), false),
        (counts(all + 1000, 0, 0), false),
        (counts(all, 1, 0), false),
    ] {
        let mut lone = Lone::client(marking(), marking());
        let stream = lone.open(true);
        lone.write(stream, 10);
        lone.receive(vec![QuicFrame::Ack { delay: 0, ranges: vec![(0, first)], ecn }]);
        let next = lone.write(stream, 10);
        let expected = if good { EcnCodepoint::Ect0 } else { EcnCodepoint::NotEct };
        assert_eq!(next[0].codepoint, expected, "{ecn:?}");
    }
}

#[test]
fn old_acknowledgment_does_not_disable_ecn() {
    // Section 13.4.2.1: only frames that increase the largest acknowledged number are processed.
    let mut lone = Lone::client(marking(), marking());
    let stream = lone.open(true);
    for _ in 0..4 {
        lone.write(stream, 10);
    }
    let first = lone.first;
    let counts = |ect0| Some(fullpipe_wire::quic::EcnCounts { ect0, ect1: 0, ce: 0 });
    lone.receive(vec![QuicFrame::Ack { delay: 0, ranges: vec![(first + 3, first + 3)], ecn: counts(first + 4) }]);
    lone.receive(vec![QuicFrame::Ack { delay: 0, ranges: vec![(0, first + 1)], ecn: counts(first + 2) }]);
    assert_eq!(lone.write(stream, 10)[0].codepoint, EcnCodepoint::Ect0);
}
