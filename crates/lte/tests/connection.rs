//! Tests of UEs that attach after the start of the run: packets before the bearers exist are dropped, later ones are not.

use crate::common::{Source, ms, network, run, ue};
use fullpipe_lte::config::{CellConfig, Config};
use fullpipe_lte::connection::{AttachProcedure, SignalingMode};
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::rlc::LinkDirection;
use fullpipe_units::Duration;

fn packets(way: LinkDirection, first: f64) -> Source {
    Source {
        way,
        ue: 0,
        bearer: 0,
        bytes: 100,
        first: ms(first),
        interval: Duration::from_millis(10),
        until: ms(100.0),
    }
}

fn config(attach: AttachProcedure, signalling: SignalingMode) -> Config {
    let mut phone = ue(0, 99.0);
    phone.attach = attach;
    let mut config = Config::reference(1, CellConfig::reference("cell", Bandwidth::new(25).unwrap()), vec![phone]);
    config.signalling = signalling;
    config
}

/// With radio signaling a UE with a known cell has its bearers after 44 ms (the reference's time line). Of packets at 0.5,
/// 10.5, ... 90.5 ms five are earlier, in each direction.
#[test]
fn packets_before_the_bearers_are_dropped() {
    let attach = AttachProcedure::KnownCell { switched_on: ms(0.0) };
    let mut network = network(config(attach, SignalingMode::Radio));
    let story =
        run(&mut network, &[packets(LinkDirection::Downlink, 0.5), packets(LinkDirection::Uplink, 0.5)], ms(150.0));
    assert_eq!((story.offered, story.lost), ([10, 10], [5, 5]));
    let status = network.ue_status(0);
    assert_eq!(status.established.ready, ms(44.0));
    for counters in &status.counters {
        assert_eq!((counters.packets, counters.early_packets, counters.lost_packets), (10, 5, 0));
        assert_eq!(counters.delivered_packets, 5);
    }
    // The first packet that is not dropped takes its 4 - d ms, minus the nanosecond by which a block is decoded before the next
    // subframe; the uplink packet takes 12.93 - d.
    let first = |way| story.arrivals.iter().find(|arrival| arrival.way == way).unwrap();
    assert_eq!((first(LinkDirection::Downlink).sent, first(LinkDirection::Uplink).sent), (ms(50.5), ms(50.5)));
    assert_eq!((first(LinkDirection::Downlink).at - ms(50.5)).as_nanos(), 3_499_999);
    assert_eq!((first(LinkDirection::Uplink).at - ms(50.5)).as_nanos() / 10_000, 1_242);
}

/// A packet that enters at the gateway earlier, but arrives at the eNB after the bearers exist, is delivered.
#[test]
fn arrival_at_the_cell_decides_whether_a_packet_is_dropped() {
    let attach = AttachProcedure::KnownCell { switched_on: ms(0.0) };
    let mut config = config(attach, SignalingMode::Radio);
    config.core.s1_delay = Duration::from_millis(10);
    let story = run(&mut network(config), &[packets(LinkDirection::Downlink, 4.5)], ms(150.0));
    // Of those at 4.5, 14.5, 24.5 and 34.5 the last arrives at the eNB at 44.5.
    assert_eq!((story.offered[0], story.lost[0]), (10, 3));
}

#[test]
fn ue_attached_from_the_start_loses_nothing() {
    let story = run(
        &mut network(config(AttachProcedure::Ideal, SignalingMode::Radio)),
        &[packets(LinkDirection::Downlink, 0.0)],
        ms(150.0),
    );
    assert_eq!((story.offered[0], story.lost[0], story.arrivals.len()), (10, 0, 10));
}
