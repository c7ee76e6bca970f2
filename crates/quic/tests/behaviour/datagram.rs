//! Tests of DATAGRAM frames (RFC 9221).

use super::*;

#[test]
fn datagrams_arrive_and_are_not_retransmitted() {
    let mut pair = confirmed(plain(), plain());
    let sent = pair.client.statistics().sent_datagrams;
    pair.drop[0] = vec![sent];
    assert!(pair.client.send_datagram(100));
    pair.service();
    assert!(pair.client.send_datagram(200));
    settle(&mut pair);
    assert_eq!((pair.server.receive_datagram(), pair.server.receive_datagram()), (Some(200), None));
    assert_eq!(pair.client.statistics().datagrams_lost, 1);
}

#[test]
fn peer_without_datagram_support_receives_no_datagrams() {
    // Section 3: max_datagram_frame_size includes type and length.
    let mut lone = Lone::client(plain(), Config { max_datagram_frame_bytes: 0, ..plain() });
    assert!(!lone.connection.send_datagram(0));
    let mut lone = Lone::client(plain(), Config { max_datagram_frame_bytes: 103, ..plain() });
    assert!(lone.connection.send_datagram(100), "two bytes of length and one of type");
    assert!(!lone.connection.send_datagram(101));
    assert!(!lone.connection.send_datagram(u64::MAX));
    // A frame that the receiver does not permit, or not of this size, is a violation: PROTOCOL_VIOLATION.
    let take = |most, length| {
        let server = Config { max_datagram_frame_bytes: most, ..plain() };
        Lone::server(plain(), server).error_of(vec![QuicFrame::Datagram { length, explicit_length: true }])
    };
    assert_eq!((take(0, 0), take(103, 101), take(103, 100)), (Some(0xa), Some(0xa), None));
}

#[test]
fn datagram_fits_into_one_packet() {
    // 1200 bytes: header 1 + 8, packet number up to 4, tag 16; type 1, length 2.
    let mut lone = Lone::client(plain(), plain());
    assert!(lone.connection.send_datagram(1200 - 29 - 3));
    assert!(!lone.connection.send_datagram(1200 - 29 - 2));
}

#[test]
fn congestion_window_but_not_flow_control_limits_datagrams() {
    let narrow = Config { receive_buffer_bytes: 0, connection_receive_buffer_bytes: 0, ..plain() };
    let mut lone = Lone::client(plain(), narrow);
    for _ in 0..100 {
        assert!(lone.connection.send_datagram(1100));
    }
    // Ten at once, as 12 000 bytes permit: 1100 + 3 + 26 each; the window must have room for a full packet.
    assert_eq!(lone.drain().len(), 10);
    lone.pass(ms(100));
    assert!(!lone.acknowledge(&[(0, 1)]).is_empty());
}

#[test]
fn datagrams_elicit_acknowledgments() {
    let mut lone = Lone::client(plain(), plain());
    let datagram = || vec![QuicFrame::Datagram { length: 10, explicit_length: true }];
    lone.receive(datagram());
    assert_eq!(lone.receive(datagram()).len(), 1);
}
