//! Tests of the flow control of streams and connections (RFC 9000 sections 4 and 19.9 to 19.13).

use super::*;

fn narrow() -> Config {
    Config { receive_buffer_bytes: 4000, connection_receive_buffer_bytes: 6000, ..plain() }
}

#[test]
fn data_beyond_the_credit_closes_the_connection() {
    // FLOW_CONTROL_ERROR is 0x3.
    let lone = || Lone::server(plain(), narrow());
    assert_eq!(lone().error_of(vec![data(0, 0, 4000, false)]), None);
    assert_eq!(lone().error_of(vec![data(0, 3900, 101, false)]), Some(3));
    assert_eq!(lone().error_of(vec![data(0, 0, 4000, false), data(4, 1000, 1000, false)]), None);
    assert_eq!(lone().error_of(vec![data(0, 0, 4000, false), data(4, 1000, 1001, false)]), Some(3));
    let reset = |final_size| QuicFrame::ResetStream { stream: 0, error: 0, final_size };
    assert_eq!(lone().error_of(vec![reset(4001)]), Some(3));
    assert_eq!(lone().error_of(vec![data(4, 0, 4000, false), reset(2001)]), Some(3), "a reset's final size counts");
    // The handshake has its own buffer: CRYPTO_BUFFER_EXCEEDED.
    let crypto = QuicFrame::Crypto { offset: 1 << 30, length: 1, ends: false, parameters: None };
    assert_eq!(lone().error_of(vec![crypto]), Some(0xd));
}

/// An error of the ns-3 module: it sent MAX_DATA depending on the number of acknowledgments, not of bytes.
#[test]
fn reading_bytes_raises_the_credit() {
    let mut lone = Lone::server(plain(), narrow());
    lone.receive(vec![data(0, 0, 4000, false)]);
    let stream = lone.events[0].0;
    let mut read = |bytes: u64| {
        let now = lone.now;
        let payload = lone.connection.stream(now, stream).unwrap().read(bytes);
        assert_eq!(payload, Some(Payload::Length(bytes)));
        lone.drain().iter().flat_map(frames).filter(|frame| !matches!(frame, QuicFrame::Ack { .. })).collect::<Vec<_>>()
    };
    // A quarter of the stream's 4000 bytes, then a quarter of the connection's 6000.
    assert_eq!(read(999), []);
    assert_eq!(read(1), [QuicFrame::MaxStreamData { stream: 0, maximum: 5000 }]);
    assert_eq!(read(499), []);
    assert_eq!(read(1), [QuicFrame::MaxData(7500)]);
    assert_eq!(read(500), [QuicFrame::MaxStreamData { stream: 0, maximum: 6000 }]);
}

#[test]
fn blocked_sender_reports_the_limit_and_continues_after_an_update() {
    let mut lone = Lone::client(plain(), narrow());
    let stream = lone.open(true);
    let sent = |flights: &[Flight]| -> u64 {
        flights
            .iter()
            .map(|flight| {
                let full = frames(flight).into_iter().map(|frame| match frame {
                    QuicFrame::Stream { length, .. } => length,
                    _ => 0,
                });
                full.sum::<u64>() + u64::from(flight.header.length)
            })
            .sum()
    };
    let flights = lone.write(stream, 10_000);
    assert_eq!(sent(&flights), 4000);
    let blocked = QuicFrame::StreamDataBlocked { stream: 0, limit: 4000 };
    assert!(flights.iter().flat_map(frames).any(|frame| frame == blocked));
    // A smaller limit is an old one.
    let limit = |maximum| vec![QuicFrame::MaxStreamData { stream: 0, maximum }];
    assert_eq!(sent(&lone.receive(limit(3000))), 0);
    assert_eq!(sent(&lone.receive(limit(4500))), 500);
    // Now the connection's limit of 6000 applies.
    let flights = lone.receive(limit(1 << 20));
    assert_eq!(sent(&flights), 1500);
    assert!(flights.iter().flat_map(frames).any(|frame| frame == QuicFrame::DataBlocked(6000)));
    assert_eq!(sent(&lone.receive(vec![QuicFrame::MaxData(5000)])), 0);
    assert_eq!(sent(&lone.receive(vec![QuicFrame::MaxData(6001)])), 1);
}

#[test]
fn unread_bytes_of_a_reset_stream_return_their_credit() {
    // Two streams use all 6000 bytes. One is reset without being read, and its share is returned to the connection.
    let mut lone = Lone::server(plain(), narrow());
    lone.receive(vec![data(0, 0, 2000, false), data(4, 0, 4000, false)]);
    let answers = lone.receive(vec![QuicFrame::ResetStream { stream: 4, error: 0, final_size: 4000 }]);
    let reset = answers.iter().flat_map(frames).any(|frame| matches!(frame, QuicFrame::ResetStream { stream: 4, .. }));
    assert!(reset);
    // The stream is removed when the reset of our direction has arrived.
    let flights = lone.acknowledge(&[(0, 0)]);
    let given = answers.iter().chain(&flights).flat_map(frames).any(|frame| frame == QuicFrame::MaxData(10_000));
    assert!(given, "{flights:?}");
}

#[test]
fn windows_that_are_read_quickly_grow_to_their_bounds() {
    let server = Config { initial_receive_window_bytes: Some(10_000), receive_buffer_bytes: 80_000, ..plain() };
    let mut pair = confirmed(plain(), server);
    let now = pair.now;
    let stream = pair.client.open_stream(now, true).unwrap();
    pair.write(stream, Payload::Length(2_000_000));
    pair.run_until(|pair| pair.received[1] == 2_000_000);
    let limits = pair.sent[1].iter().flat_map(|(_, flight)| frames(flight));
    let steps: Vec<u64> = limits
        .filter_map(|frame| match frame {
            QuicFrame::MaxStreamData { maximum, .. } => Some(maximum),
            _ => None,
        })
        .collect();
    let widest = steps.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    // A window of 80 000 bytes advances by at least a quarter.
    assert!(steps[0] <= 10_000 + 20_000 && widest >= 20_000, "{steps:?}");
}
