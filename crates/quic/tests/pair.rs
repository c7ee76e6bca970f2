//! Tests of transfers between two ends over a path.

use crate::common::{Pair, PathModel};
use fullpipe_quic::scheduler::{Fifo, StreamScheduler};
use fullpipe_quic::{Config, HandshakeSizes, State};
use fullpipe_transport::{Payload, TransportEvent};
use fullpipe_units::{Duration, Instant};
use fullpipe_wire::QuicFrame;

#[test]
fn transfer_larger_than_all_windows_arrives() {
    let config = Config { receive_buffer_bytes: 50_000, connection_receive_buffer_bytes: 80_000, ..Config::default() };
    let mut pair = Pair::new(config.clone(), config, PathModel::ideal(Duration::from_millis(10)));
    let stream = pair.client.open_stream(pair.now, true).expect("the first");
    let mut left = 1_000_000u64;
    pair.run_until(|pair| {
        left -= pair.write(stream, Payload::Length(left.min(10_000)));
        if left == 0 {
            pair.finish(stream);
        }
        pair.received[1] == 1_000_000
    });
    assert_eq!(left, 0);
    assert_eq!(pair.client.state(), State::Open);
    assert!(pair.events[1].contains(&TransportEvent::PeerFinished));
}

#[test]
fn server_at_its_limit_waits_for_its_client() {
    // The flight of more than 4000 bytes exceeds three times the client's 1200, and the acknowledgement of the client's 0-RTT
    // data becomes due while the rest waits. The client has all of it after two round trips of 100 ms.
    let handshake = HandshakeSizes { certificate_bytes: 4000, ..HandshakeSizes::default() };
    let config = Config { zero_rtt: true, handshake, ..Config::default() };
    let mut pair = Pair::new(config.clone(), config, PathModel::ideal(Duration::from_millis(50)));
    let stream = pair.client.open_stream(pair.now, true).expect("the first");
    pair.write(stream, Payload::Length(300));
    pair.run_until(|pair| pair.received[1] == 300);
    assert_eq!(pair.now, Instant::ZERO + Duration::from_millis(50));
    pair.run_until(|pair| pair.client.state() == State::Open);
    assert_eq!(pair.now, Instant::ZERO + Duration::from_millis(200));
    pair.run_until(|pair| pair.server.is_confirmed() && pair.client.is_confirmed());
    assert_eq!(pair.now, Instant::ZERO + Duration::from_millis(300));
}

#[test]
fn fifo_keeps_the_order_of_simultaneous_writes() {
    let config = Config { scheduler: StreamScheduler::new(Fifo), ..Config::default() };
    let mut pair = Pair::new(config.clone(), config, PathModel::ideal(Duration::from_millis(10)));
    pair.run_until(|pair| pair.client.is_confirmed());
    pair.keep_sent = true;
    let streams: Vec<u32> = (0..2).filter_map(|_| pair.client.open_stream(pair.now, true)).collect();
    for (stream, bytes) in [(1, 100), (0, 200), (1, 300), (1, 50), (0, 400)] {
        assert_eq!(pair.write(streams[stream], Payload::Length(bytes)), bytes);
    }
    pair.run_for(Duration::from_millis(1));
    let mut frames = Vec::new();
    for (_, flight) in &pair.sent[0] {
        for packet in flight.datagram.iter().flat_map(|datagram| &datagram.packets) {
            frames.extend(packet.frames.iter().filter_map(|frame| match frame {
                QuicFrame::Stream { stream, offset, length, .. } => Some((*stream, *offset, *length)),
                _ => None,
            }));
        }
    }
    // Successive writes to one stream are one frame; no frame overtakes earlier writes.
    assert_eq!(frames, [(4, 0, 100), (0, 0, 200), (4, 100, 350), (0, 200, 400)]);
}
