//! Tests of streams: IDs, limits of their number, their ends (RFC 9000 sections 2 to 4).

use super::*;
use fullpipe_transport::CloseReason;

#[test]
fn stream_id_contains_initiator_and_direction() {
    // RFC 9000 section 2.1, table 1.
    for (mut lone, ids) in
        [(Lone::client(plain(), plain()), [0, 4, 2, 6]), (Lone::server(plain(), plain()), [1, 5, 3, 7])]
    {
        for (id, bidirectional) in ids.into_iter().zip([true, true, false, false]) {
            let stream = lone.open(bidirectional);
            assert_eq!(lone.connection.stream_id(stream), Some(id));
        }
    }
}

#[test]
fn endpoint_opens_at_most_the_allowed_streams() {
    let mut lone = Lone::client(plain(), Config { max_streams: 2, ..plain() });
    let now = lone.now;
    lone.open(true);
    lone.open(true);
    assert_eq!(lone.connection.open_stream(now, true), None);
    let flights = lone.drain();
    let blocked = QuicFrame::StreamsBlocked { bidirectional: true, limit: 2 };
    assert!(flights.iter().flat_map(frames).any(|frame| frame == blocked));
    lone.receive(vec![QuicFrame::MaxStreams { bidirectional: true, maximum: 1 }]);
    assert_eq!(lone.connection.open_stream(now, true), None, "limits do not fall");
    lone.receive(vec![QuicFrame::MaxStreams { bidirectional: true, maximum: 3 }]);
    lone.open(true);
    assert_eq!(lone.connection.open_stream(now, true), None);
    // More than 2^60 is invalid: FRAME_ENCODING_ERROR.
    assert_eq!(lone.error_of(vec![QuicFrame::MaxStreams { bidirectional: true, maximum: (1 << 60) + 1 }]), Some(7));
}

#[test]
fn streams_opened_before_the_limit_is_known_wait() {
    // The client's own limit is 100, the server permits one.
    let mut pair = pair(plain(), Config { max_streams: 1, ..plain() });
    let streams: Vec<u32> = (0..3).map(|_| pair.client.open_stream(pair.now, true).unwrap()).collect();
    for stream in &streams {
        pair.write(*stream, Payload::Length(1000));
        pair.finish(*stream);
    }
    settle(&mut pair);
    assert_eq!((pair.client.state(), pair.received[1]), (State::Open, 1000));
    // The first ends at the other side too, so the next may be opened.
    let now = pair.now;
    pair.server.stream(now, 0).unwrap().finish();
    settle(&mut pair);
    assert_eq!((pair.client.state(), pair.received[1]), (State::Open, 2000));
}

#[test]
fn stream_beyond_the_limit_closes_the_connection() {
    // STREAM_LIMIT_ERROR is 0x4; a stream opens all lower streams of its type.
    let server = Config { max_streams: 2, ..plain() };
    let mut lone = Lone::server(plain(), server.clone());
    assert_eq!(lone.error_of(vec![data(4, 0, 1, false)]), None);
    assert_eq!(lone.connection.active_streams(), 2);
    assert_eq!(lone.error_of(vec![data(8, 0, 1, false)]), Some(4));
    let stop = QuicFrame::StopSending { stream: 8, error: 0 };
    assert_eq!(Lone::server(plain(), server).error_of(vec![stop]), Some(4));
}

#[test]
fn completed_stream_raises_the_limit() {
    let mut lone = Lone::server(plain(), Config { max_streams: 1, ..plain() });
    // A unidirectional stream is over when its end has been read.
    let flights = lone.receive(vec![data(2, 0, 0, true)]);
    let allowed = QuicFrame::MaxStreams { bidirectional: false, maximum: 2 };
    assert!(flights.iter().flat_map(frames).any(|frame| frame == allowed), "{flights:?}");
}

#[test]
fn frame_for_the_wrong_kind_of_stream_closes_the_connection() {
    // STREAM_STATE_ERROR is 0x5. Stream 2 is a unidirectional stream of the client.
    let client = || {
        let mut lone = Lone::client(plain(), plain());
        lone.open(false);
        lone
    };
    assert_eq!(client().error_of(vec![data(2, 0, 1, false)]), Some(5));
    assert_eq!(client().error_of(vec![QuicFrame::ResetStream { stream: 2, error: 0, final_size: 0 }]), Some(5));
    assert_eq!(client().error_of(vec![QuicFrame::StreamDataBlocked { stream: 2, limit: 0 }]), Some(5));
    let server = || Lone::server(plain(), plain());
    assert_eq!(server().error_of(vec![QuicFrame::MaxStreamData { stream: 2, maximum: 1 }]), Some(5));
    assert_eq!(server().error_of(vec![QuicFrame::StopSending { stream: 2, error: 0 }]), Some(5));
    // A local stream that was not opened.
    assert_eq!(server().error_of(vec![QuicFrame::MaxStreamData { stream: 1, maximum: 1 }]), Some(5));
    assert_eq!(server().error_of(vec![data(1, 0, 1, false)]), Some(5));
}

#[test]
fn changed_final_size_closes_the_connection() {
    // FINAL_SIZE_ERROR is 0x6 (RFC 9000 section 4.5).
    let lone = || Lone::server(plain(), plain());
    let reset = |final_size| QuicFrame::ResetStream { stream: 0, error: 0, final_size };
    assert_eq!(lone().error_of(vec![data(0, 0, 100, true), data(0, 100, 1, false)]), Some(6));
    assert_eq!(lone().error_of(vec![data(0, 0, 100, true), data(0, 0, 99, true)]), Some(6));
    assert_eq!(lone().error_of(vec![data(0, 50, 50, false), data(0, 0, 60, true)]), Some(6));
    assert_eq!(lone().error_of(vec![data(0, 50, 50, true), reset(99)]), Some(6));
    assert_eq!(lone().error_of(vec![data(0, 50, 50, false), reset(99)]), Some(6));
    assert_eq!(lone().error_of(vec![data(0, 50, 50, true), reset(100)]), None);
}

#[test]
fn stop_sending_causes_a_reset_with_the_sent_size() {
    // RFC 9000 section 3.5; the final size is the number of bytes sent.
    let mut lone = Lone::client(plain(), plain());
    let stream = lone.open(true);
    lone.write(stream, 700);
    let answers = lone.receive(vec![QuicFrame::StopSending { stream: 0, error: 9 }]);
    let reset = answers.iter().flat_map(frames).find(|frame| matches!(frame, QuicFrame::ResetStream { .. }));
    assert_eq!(reset, Some(QuicFrame::ResetStream { stream: 0, error: 0, final_size: 700 }));
    // No data is sent after it, or retransmitted.
    assert!(lone.write(stream, 700).is_empty());
    let later = lone.pass(ms(2000));
    let data = |flight: &Flight| {
        flight.header.form == QuicForm::Stream
            || frames(flight).iter().any(|frame| matches!(frame, QuicFrame::Stream { .. }))
    };
    assert!(!later.iter().any(|(_, flight)| data(flight)));
    // The reset was lost, as the acknowledged probes show, so it is sent again.
    let newest = lone.newest();
    let flights = lone.acknowledge(&[(newest, newest)]);
    assert!(flights.iter().flat_map(frames).any(|frame| Some(frame) == reset));
}

#[test]
fn abandoned_stream_ends_in_both_directions_at_both_endpoints() {
    let mut pair = confirmed(plain(), plain());
    let now = pair.now;
    let stream = pair.client.open_stream(now, true).unwrap();
    pair.write(stream, Payload::Length(5000));
    settle(&mut pair);
    let now = pair.now;
    pair.client.stream(now, stream).unwrap().abort();
    settle(&mut pair);
    assert_eq!((pair.client.active_streams(), pair.server.active_streams()), (0, 0));
    assert!(pair.events[0].iter().any(|event| matches!(event, TransportEvent::Closed(_))));
    assert!(pair.events[1].contains(&TransportEvent::Closed(CloseReason::Reset)));
}

#[test]
fn lost_end_of_a_stream_is_retransmitted() {
    let mut pair = confirmed(plain(), plain());
    let now = pair.now;
    let stream = pair.client.open_stream(now, true).unwrap();
    let sent = pair.client.statistics().sent_datagrams;
    pair.drop[0] = vec![sent];
    pair.finish(stream);
    settle(&mut pair);
    assert!(pair.events[1].contains(&TransportEvent::PeerFinished));
    assert_eq!(pair.client.statistics().probe_timeouts, 1);
}
