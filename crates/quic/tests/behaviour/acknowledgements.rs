//! Tests of acknowledgments: when they are sent, and what they contain (RFC 9000 section 13.2;
//! draft-ietf-quic-ack-frequency-11).

use super::*;

#[test]
fn every_second_packet_is_acknowledged_immediately_and_a_single_one_after_25_ms() {
    let mut lone = Lone::client(plain(), plain());
    assert!(lone.receive(vec![QuicFrame::Ping]).is_empty());
    let answers = lone.receive(vec![QuicFrame::Ping]);
    assert!(answers.len() == 1 && is_ack(&answers[0]));
    let begin = lone.now;
    assert!(lone.receive(vec![QuicFrame::Ping]).is_empty());
    let answers = lone.pass(ms(1000));
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].0, begin + ms(25));
    // ACK Delay: 25 000 us in units of 2^3 us.
    assert_eq!(answers[0].1.header.stream, 3125);
}

#[test]
fn gap_and_its_end_and_a_mark_are_acknowledged_immediately() {
    let mut lone = Lone::client(plain(), plain());
    lone.number += 1;
    assert_eq!(lone.receive(vec![QuicFrame::Ping]).len(), 1, "one is missing");
    assert_eq!(lone.receive(vec![QuicFrame::Ping]).len(), 0, "the next in order");
    lone.pass(ms(100));
    lone.number -= 3;
    assert_eq!(lone.receive(vec![QuicFrame::Ping]).len(), 1, "fills the gap");
    lone.number += 2;
    assert_eq!(lone.receive_from(0, 100, EcnCodepoint::Ce, vec![QuicFrame::Ping]).len(), 1, "marked");
}

#[test]
fn packet_that_elicits_no_acknowledgment_is_not_acknowledged() {
    let mut lone = Lone::client(plain(), plain());
    let first = lone.first;
    for _ in 0..10 {
        assert!(
            lone.receive(vec![QuicFrame::Ack { delay: 0, ranges: vec![(first - 1, first - 1)], ecn: None }]).is_empty()
        );
        assert!(lone.receive(vec![QuicFrame::Padding(100)]).is_empty());
    }
    assert!(lone.pass(ms(1000)).is_empty());
}

#[test]
fn peer_sets_the_acknowledgment_frequency() {
    let mut lone = Lone::client(plain(), plain());
    let ask = QuicFrame::AckFrequency { sequence: 0, threshold: 9, max_ack_delay_us: 100_000, reordering: 0 };
    lone.receive(vec![ask]);
    lone.pass(ms(1000));
    // Nine packets may arrive without an acknowledgement; the tenth causes one.
    let counts: Vec<usize> = (0..20).map(|_| lone.receive(vec![QuicFrame::Ping]).len()).collect();
    assert_eq!((counts[9], counts[19], counts.iter().sum::<usize>()), (1, 1, 2));
    // The delay is the requested one, and a gap causes no immediate acknowledgement.
    lone.number += 5;
    let begin = lone.now;
    assert!(lone.receive(vec![QuicFrame::Ping]).is_empty());
    assert_eq!(lone.pass(ms(1000))[0].0, begin + ms(100));
    // An older frame has no effect.
    lone.receive(vec![QuicFrame::AckFrequency { sequence: 0, threshold: 0, max_ack_delay_us: 1000, reordering: 1 }]);
    lone.pass(ms(1000));
    assert!(lone.receive(vec![QuicFrame::Ping]).is_empty());
    assert_eq!(lone.receive(vec![QuicFrame::ImmediateAck]).len(), 1);
}

#[test]
fn sender_requests_its_configured_acknowledgment_frequency() {
    let asked = fullpipe_quic::AckFrequency { threshold: 9, max_ack_delay: ms(50) };
    let mut pair = confirmed(Config { ack_frequency: Some(asked), ..plain() }, plain());
    let asks = pair.sent[0].iter().flat_map(|(_, flight)| frames(flight));
    let asks: Vec<_> = asks.filter(|frame| matches!(frame, QuicFrame::AckFrequency { .. })).collect();
    assert_eq!(asks, [QuicFrame::AckFrequency { sequence: 0, threshold: 9, max_ack_delay_us: 50_000, reordering: 1 }]);
    // At least 100 full packets cause ten acknowledgements, not the fifty of every second packet.
    let before = pair.server.statistics().sent_packets;
    let now = pair.now;
    let stream = pair.client.open_stream(now, true).unwrap();
    pair.write(stream, Payload::Length(117_000));
    settle(&mut pair);
    let acknowledgements = pair.server.statistics().sent_packets - before;
    assert!((10..25).contains(&acknowledgements), "{acknowledgements}");
}

/// An error of the ns-3 module: it kept ranges forever.
#[test]
fn acknowledged_ranges_are_not_reported_again() {
    let mut lone = Lone::client(plain(), plain());
    let stream = lone.open(true);
    for _ in 0..3 {
        lone.number += 1;
        lone.receive(vec![QuicFrame::Ping]);
    }
    // Data with an acknowledgement, which is then acknowledged.
    lone.receive(vec![QuicFrame::Ping]);
    let flights = lone.write(stream, 10);
    let told = |flights: &[Flight]| {
        flights.iter().flat_map(frames).find_map(|frame| match frame {
            QuicFrame::Ack { ranges, .. } => Some(ranges),
            _ => None,
        })
    };
    let before = told(&flights).expect("it goes with data");
    assert_eq!(before.len(), 4, "all of the handshake, and three");
    let number = u64::from(packets(&flights[0])[0].number);
    lone.first = number;
    lone.acknowledge(&[(0, 0)]);
    lone.receive(vec![QuicFrame::Ping]);
    let after = told(&lone.write(stream, 10)).expect("it goes with data");
    assert_eq!(after.len(), 1, "{after:?}");
}

#[test]
fn number_of_reported_ranges_is_bounded() {
    let mut lone = Lone::client(plain(), plain());
    let mut longest = 0;
    for _ in 0..100 {
        lone.number += 1;
        for flight in lone.receive(vec![QuicFrame::Ping]) {
            for frame in frames(&flight) {
                if let QuicFrame::Ack { ranges, .. } = frame {
                    longest = longest.max(ranges.len());
                }
            }
        }
    }
    assert_eq!(longest, 32);
}

#[test]
fn acknowledgment_of_an_unsent_packet_closes_the_connection() {
    // RFC 9000 section 13.1: PROTOCOL_VIOLATION.
    let mut lone = Lone::client(plain(), plain());
    let first = lone.first;
    assert_eq!(lone.error_of(vec![QuicFrame::Ack { delay: 0, ranges: vec![(0, first)], ecn: None }]), Some(0xa));
}

#[test]
fn duplicate_packet_is_processed_once() {
    let mut lone = Lone::client(plain(), plain());
    lone.receive(vec![QuicFrame::Datagram { length: 5, explicit_length: true }]);
    lone.number -= 1;
    lone.receive(vec![QuicFrame::Datagram { length: 5, explicit_length: true }]);
    let statistics = lone.connection.statistics();
    assert_eq!((statistics.datagrams_received, statistics.duplicate_packets), (1, 1));
}
