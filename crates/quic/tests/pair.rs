//! Two ends and a path between them.

mod common;

use common::{Pair, PathModel};
use fullpipe_quic::{Config, State};
use fullpipe_transport::{Event, Payload};
use fullpipe_units::Duration;

#[test]
fn a_transfer_larger_than_all_windows_arrives() {
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
    assert!(pair.events[1].contains(&Event::PeerFinished));
}
