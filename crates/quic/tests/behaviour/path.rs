//! Tests of paths: migration of a client, validation, the path's MTU (RFC 9000 sections 8.2, 9 and 14; RFC 8899).

use super::*;

fn challenge(flight: &Flight) -> Option<u64> {
    frames(flight).iter().find_map(|frame| match frame {
        QuicFrame::PathChallenge(data) => Some(*data),
        _ => None,
    })
}

/// A server with data to send. A datagram of this size has arrived from another address of its client.
fn moved(bytes: u32) -> (Lone, Vec<Flight>) {
    let mut lone = Lone::server(plain(), plain());
    let stream = lone.open(true);
    lone.write(stream, 1_000_000);
    let flights = lone.receive_from(1, bytes, EcnCodepoint::NotEct, vec![QuicFrame::Ping]);
    (lone, flights)
}

#[test]
fn server_follows_its_client_to_a_new_address_and_validates_it() {
    let (mut lone, flights) = moved(1200);
    assert_eq!(lone.connection.peer_path(), 1);
    // Section 8.2.1: in a datagram of 1200 bytes.
    let data = challenge(&flights[0]).expect("a challenge goes first");
    assert_eq!(flights[0].bytes, 1200);
    // Section 9.3.1: three times the bytes received, and no more.
    assert_eq!(flights.iter().map(|flight| flight.bytes).sum::<u32>(), 3600);
    // Section 9.4: window and round-trip time are those of an unknown path.
    let inspect = lone.connection.inspect();
    assert_eq!((inspect.cwnd_bytes, inspect.in_flight_bytes), (12_000, 3600));
    assert_eq!((inspect.smoothed_rtt, inspect.pto), (Duration::ZERO, ms(999)));
    // The response ends the limit.
    let flights = lone.receive_from(1, 1200, EcnCodepoint::NotEct, vec![QuicFrame::PathResponse(data)]);
    assert_eq!(lone.connection.statistics().migrations, 1);
    assert_eq!(flights.len(), 7, "ten packets in flight");
    assert!(lone.connection.inspect().in_flight_bytes <= 12_000);
}

#[test]
fn packets_of_the_old_path_do_not_affect_the_new_path() {
    // Section 9.4.
    let (mut lone, flights) = moved(1200);
    let data = challenge(&flights[0]).unwrap();
    lone.receive_from(1, 1200, EcnCodepoint::NotEct, vec![QuicFrame::PathResponse(data)]);
    lone.pass(ms(300));
    let first = lone.first;
    // Of the ten packets before, some arrive and some are lost.
    let old = QuicFrame::Ack { delay: 0, ranges: vec![(first + 8, first + 9)], ecn: None };
    lone.receive_from(1, 100, EcnCodepoint::NotEct, vec![old]);
    let inspect = lone.connection.inspect();
    assert_eq!((inspect.cwnd_bytes, inspect.smoothed_rtt), (12_000, Duration::ZERO));
    assert_eq!(lone.connection.statistics().recoveries, 0);
    assert!(lone.connection.statistics().lost_packets > 0, "they are sent again");
}

#[test]
fn spurious_loss_on_the_old_path_does_not_change_the_new_window() {
    // Section 9.4: the window of the new path is the initial one. A recovery of the old path is not undone there.
    let mut lone = Lone::server(plain(), plain());
    let stream = lone.open(true);
    lone.write(stream, 1_000_000);
    lone.pass(ms(100));
    let first = lone.first;
    lone.acknowledge(&[(first + 3, first + 3)]);
    let lost = lone.connection.statistics().lost_packets;
    assert!(lost > 0 && lone.connection.statistics().recoveries == 1);
    let flights = lone.receive_from(1, 1200, EcnCodepoint::NotEct, vec![QuicFrame::Ping]);
    let data = challenge(&flights[0]).unwrap();
    lone.receive_from(1, 1200, EcnCodepoint::NotEct, vec![QuicFrame::PathResponse(data)]);
    let window = lone.connection.inspect().cwnd_bytes;
    let old = QuicFrame::Ack { delay: 0, ranges: vec![(first.saturating_sub(1), first + 3)], ecn: None };
    lone.receive_from(1, 100, EcnCodepoint::NotEct, vec![old]);
    let statistics = lone.connection.statistics();
    assert_eq!((statistics.spuriously_lost_packets, statistics.undone_recoveries), (lost, 0));
    assert_eq!(lone.connection.inspect().cwnd_bytes, window);
}

#[test]
fn small_datagram_from_a_new_address_causes_a_small_challenge_and_then_a_full_one() {
    // Section 8.2.1: a datagram of 1200 bytes may not be sent to an address that has sent 100. The second validation checks that
    // such datagrams pass.
    let (mut lone, flights) = moved(100);
    assert_eq!(flights.len(), 1);
    assert_eq!(flights[0].bytes, 300);
    let data = challenge(&flights[0]).unwrap();
    let flights = lone.receive_from(1, 1200, EcnCodepoint::NotEct, vec![QuicFrame::PathResponse(data)]);
    assert_eq!(lone.connection.statistics().migrations, 0);
    let again = challenge(&flights[0]).expect("a second challenge");
    assert_eq!(flights[0].bytes, 1200);
    assert_ne!(data, again);
    lone.receive_from(1, 1200, EcnCodepoint::NotEct, vec![QuicFrame::PathResponse(again)]);
    assert_eq!(lone.connection.statistics().migrations, 1);
}

#[test]
fn server_returns_to_the_old_path_when_validation_fails() {
    // Section 8.2.4: three times the larger time-out, 999 ms if the round-trip time is unknown.
    let (mut lone, flights) = moved(1200);
    let data = challenge(&flights[0]).unwrap();
    let begin = lone.now;
    let later = lone.pass(ms(2996));
    assert_eq!(lone.connection.peer_path(), 1);
    assert!(later.iter().all(|(sent, _)| sent.saturating_since(begin) >= ms(900)));
    lone.pass(ms(1));
    assert_eq!(lone.connection.peer_path(), 0);
    // The response is too late, or the wrong one.
    lone.receive(vec![QuicFrame::PathResponse(data)]);
    assert_eq!(lone.connection.statistics().migrations, 0);
}

#[test]
fn probing_and_old_packets_cause_no_migration() {
    // Sections 9.1 and 9.3: only the newest packet causes a migration, and not one that is only a probe.
    let mut lone = Lone::server(plain(), plain());
    lone.receive_from(1, 1200, EcnCodepoint::NotEct, vec![QuicFrame::PathChallenge(5), QuicFrame::Padding(1000)]);
    assert_eq!(lone.connection.peer_path(), 0);
    lone.number += 5;
    lone.receive(vec![QuicFrame::Ping]);
    lone.number -= 4;
    lone.receive_from(1, 1200, EcnCodepoint::NotEct, vec![QuicFrame::Ping]);
    assert_eq!(lone.connection.peer_path(), 0);
}

#[test]
fn path_response_contains_the_data_of_the_challenge() {
    let mut lone = Lone::client(plain(), plain());
    let answers = lone.receive(vec![QuicFrame::PathChallenge(0x1234)]);
    assert!(frames(&answers[0]).contains(&QuicFrame::PathResponse(0x1234)));
    assert_eq!(answers[0].bytes, 1200);
    // It is not sent again (section 13.3).
    let later = lone.pass(ms(5000));
    assert!(!later.iter().any(|(_, flight)| frames(flight).contains(&QuicFrame::PathResponse(0x1234))));
}

#[test]
fn transfer_continues_after_an_address_change() {
    let mut pair = confirmed(Config::default(), Config::default());
    let now = pair.now;
    let stream = pair.client.open_stream(now, true).unwrap();
    let mut left = 2_000_000u64;
    pair.run_until(|pair| {
        left -= pair.write(stream, Payload::Length(left.min(100_000)));
        pair.address = u8::from(pair.received[1] > 500_000);
        pair.received[1] == 2_000_000
    });
    settle(&mut pair);
    assert_eq!((pair.server.peer_path(), pair.server.statistics().migrations), (1, 1));
    // The new path uses another connection ID (section 9.5).
    let last = pair.sent[1].iter().rev().find(|(_, flight)| flight.header.form != QuicForm::Packets);
    assert!(last.is_none_or(|(_, flight)| flight.header.connection_id == 1));
    let retired = pair.sent[1].iter().flat_map(|(_, flight)| frames(flight));
    assert!(retired.into_iter().any(|frame| frame == QuicFrame::RetireConnectionId(0)));
}

#[test]
fn peer_receives_as_many_connection_ids_as_it_stores() {
    let pair = confirmed(plain(), Config { active_connection_ids: 4, ..plain() });
    let given = |end: usize| {
        pair.sent[end]
            .iter()
            .flat_map(|(_, flight)| frames(flight))
            .filter(|frame| matches!(frame, QuicFrame::NewConnectionId { .. }))
            .count()
    };
    // Both limit the number to the smaller one: two, of which the handshake provided one.
    assert_eq!((given(0), given(1)), (1, 1));
    let id = |sequence, retire_prior_to| QuicFrame::NewConnectionId { sequence, retire_prior_to, length: 8 };
    // One ID above the limit is a CONNECTION_ID_LIMIT_ERROR; a repeated ID is no error.
    let client = || Lone::client(plain(), plain());
    assert_eq!(client().error_of(vec![id(1, 0), id(1, 0)]), None);
    assert_eq!(client().error_of(vec![id(2, 0)]), Some(9));
    // Lower IDs are retired, and the next is used.
    let mut lone = client();
    let answers = lone.receive(vec![id(2, 1)]);
    assert!(answers.iter().flat_map(frames).any(|frame| frame == QuicFrame::RetireConnectionId(0)));
    assert_eq!(packets(&answers[0])[0].connection_id, 1);
    // An invalid frame is a FRAME_ENCODING_ERROR; an ID that was never issued is a PROTOCOL_VIOLATION.
    assert_eq!(client().error_of(vec![id(3, 4)]), Some(7));
    assert_eq!(client().error_of(vec![QuicFrame::RetireConnectionId(2)]), Some(0xa));
}

#[test]
fn retired_connection_id_is_not_accepted_as_new() {
    let mut lone = Lone::server(plain(), plain());
    lone.receive_from(1, 1200, EcnCodepoint::NotEct, vec![QuicFrame::Ping]);
    // The client used 0, uses 1 and has retired 0: both may be issued again.
    let id = |sequence| QuicFrame::NewConnectionId { sequence, retire_prior_to: 0, length: 8 };
    assert_eq!(lone.error_of(vec![id(0), id(1), id(2)]), None);
}

fn probe(flight: &Flight) -> bool {
    flight.bytes > 1200
}

#[test]
fn path_mtu_search_finds_the_largest_size() {
    let with = |most| Config { largest_mtu_bytes: Some(most), ..plain() };
    let pair = confirmed(with(1452), plain());
    assert_eq!(pair.client.statistics().mtu_bytes, 1452);
    assert_eq!(pair.server.statistics().mtu_bytes, 1200);
    // Probes above a size are lost: three of each size, without a reaction of congestion control.
    let mut pair = self::pair(with(1452), plain());
    pair.largest = 1400;
    pair.run_until(|pair| pair.client.is_confirmed());
    let now = pair.now;
    let stream = pair.client.open_stream(now, true).unwrap();
    let mut left = 3_000_000u64;
    pair.run_until(|pair| {
        left -= pair.write(stream, Payload::Length(left.min(1000)));
        pair.received[1] == 3_000_000
    });
    let found = pair.client.statistics().mtu_bytes;
    assert!((1380..=1400).contains(&found), "{found}");
    assert_eq!((pair.client.statistics().recoveries, pair.client.statistics().lost_packets), (0, 0));
}

#[test]
fn black_hole_for_large_packets_is_detected() {
    let mut pair = confirmed(Config::default(), Config::default());
    assert_eq!(pair.client.statistics().mtu_bytes, 1452);
    pair.largest = 1300;
    let now = pair.now;
    let stream = pair.client.open_stream(now, true).unwrap();
    pair.write(stream, Payload::Length(200_000));
    pair.run_until(|pair| pair.received[1] == 200_000);
    assert_eq!(pair.client.statistics().mtu_bytes, 1200);
    // Ten minutes later the search restarts (RFC 8899 section 5.1.1), and finds 1300.
    pair.sent = Default::default();
    let mut waited = 0;
    while pair.client.statistics().mtu_bytes < 1280 {
        let now = pair.now;
        assert!(pair.client.stream(now, stream).is_some());
        pair.write(stream, Payload::Length(10));
        settle(&mut pair);
        pair.now += Duration::from_secs(10);
        waited += 10;
        assert!(waited < 1000, "{}", pair.client.statistics().mtu_bytes);
    }
    assert!(waited >= 580, "{waited}");
    assert!(pair.sent[0].iter().any(|(_, flight)| probe(flight)));
}
