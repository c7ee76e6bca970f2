//! Two ends over paths that lose, delay, reorder and repeat: every byte arrives once, in order, and then the end.

mod common;

use common::*;
use fullpipe_tcp::{Config, LossDetection, State};
use fullpipe_transport::CloseReason;

#[test]
fn a_clean_transfer_both_ways_ends_in_order() {
    let mut pair = Pair::new([Config::linux(), Config::linux()], [1, 2], 1);
    pair.applications = [Application::new(3_000_000), Application::new(1_000_000)];
    assert!(pair.run(fullpipe_units::Duration::from_secs(500)));
    assert_eq!(pair.applications[0].read, 1_000_000);
    assert_eq!(pair.applications[1].read, 3_000_000);
    for end in 0..2 {
        assert!(pair.applications[end].peer_finished);
        assert_eq!(pair.applications[end].closed, Some(CloseReason::Finished));
        assert_eq!(pair.ends[end].state(), State::Closed);
        assert_eq!(pair.ends[end].statistics().retransmitted_segments, 0);
    }
}

#[test]
fn losses_are_repaired() {
    for detection in [LossDetection::Rack, LossDetection::DuplicateAcks] {
        for sack in [true, false] {
            for timestamps in [true, false] {
                let config = Config { loss_detection: detection, sack, timestamps, ..Config::linux() };
                let mut pair = Pair::new([config.clone(), config], [1, u32::MAX - 10], 1);
                pair.applications = [Application::new(3_000_000), Application::new(1_000_000)];
                for path in &mut pair.paths {
                    path.loss = 0.02;
                }
                let rest = pair.run(fullpipe_units::Duration::from_secs(2000));
                assert!(rest, "{detection:?} {sack} {timestamps}: {:?}", pair.ends);
                assert_eq!(pair.applications[0].read, 1_000_000);
                assert_eq!(pair.applications[1].read, 3_000_000);
            }
        }
    }
}
