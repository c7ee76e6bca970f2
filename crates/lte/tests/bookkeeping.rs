//! What the eNB keeps account of: what it believes to wait, how often it sends a block, for how long it holds a process, and
//! how old what it knows of the channel is. Each number is worked out by hand beside its test.
//!
//! Unless said otherwise the cell has 6 resource blocks and its UEs are so near that all have MCS 28. A transport block of the
//! whole band, either way, then has 4392 bits, 549 bytes (36.213 table 7.1.7.2.1-1: I_TBS 26, 6 resource blocks). With the 2
//! bytes of an RLC header it holds 547 bytes of data.

mod common;

use common::*;
use fullpipe_lte::config::{BearerConfig, CellConfig, Config, Course, UeConfig, UplinkReports};
use fullpipe_lte::radio::amc::Amc;
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::rlc::{Mode, Way};
use fullpipe_lte::{AccessNetwork, BlockRecord};
use fullpipe_units::{Duration, Instant};

fn narrow() -> CellConfig {
    CellConfig::reference("cell", Bandwidth::new(6).unwrap())
}

fn near(ues: usize) -> Config {
    Config::reference(1, narrow(), (0..ues).map(|number| ue(number, 99.0)).collect())
}

/// One packet.
fn packet(way: Way, bytes: u32, milliseconds: f64) -> Source {
    let first = ms(milliseconds);
    let until = first + Duration::from_nanos(1);
    Source { way, ue: 0, bearer: 0, bytes, first, interval: Duration::from_secs(1), until }
}

fn recorded(config: Config, sources: &[Source], until: f64) -> (AccessNetwork, Story, Vec<BlockRecord>) {
    let mut network = network(config);
    network.record_blocks();
    let story = run(&mut network, sources, ms(until));
    let blocks = network.blocks();
    (network, story, blocks)
}

/// A receiver that hears nothing: 30 - 10 log10(6) - 108.5 + 121.4 - 66 = -31 dB at 3 km. Its CQI is not 0, at which nothing
/// would be sent, as the gap to Shannon's bound is -ln(5 * 0.199999) / 1.5 = 3.3e-6.
fn deaf(seed: u64, phone: UeConfig) -> Config {
    let phone = UeConfig { noise_figure_db: 66.0, course: Course::at(at(3_000.0)), ..phone };
    Config::reference(seed, CellConfig { amc: Amc::Piro { bit_error_rate: 0.199_999 }, ..narrow() }, vec![phone])
}

/// The UE hears no control region, so that no feedback comes of what is sent in it. Eight blocks take the eight processes, one
/// in each subframe from 0 to 7; that of subframe 0 is free again in subframe 11 (reference, section 2.3), and what it carried is
/// lost.
#[test]
fn a_process_of_which_nothing_is_heard_is_free_after_eleven_subframes() {
    let mut all_missed = 0;
    for seed in 1..=32 {
        let mut phone = ue(0, 3_000.0);
        phone.bearers[0].mode = Mode::Saturated;
        let mut network = network(deaf(seed, phone));
        let mut counted = Vec::new();
        for subframe in 0..=12 {
            network.advance(Instant::ZERO + Duration::from_millis(subframe));
            let counters = &network.ue(0).counters[0];
            counted.push((counters.blocks, counters.lost_blocks, counters.control_errors));
        }
        // The last of the eight is on the air in subframe 9. Even below -10 dB 0.0774 of all control regions are heard.
        if counted[9].2 < 8 {
            continue;
        }
        all_missed += 1;
        let blocks: Vec<u64> = counted.iter().map(|(blocks, ..)| *blocks).collect();
        assert_eq!(blocks, [1, 2, 3, 4, 5, 6, 7, 8, 8, 8, 8, 9, 10], "seed {seed}");
        assert_eq!([counted[10].1, counted[11].1, counted[12].1], [0, 1, 2], "seed {seed}");
    }
    // 0.9226^8 = 0.52 of 32 seeds: 17, with a standard deviation of 2.8.
    assert!((6..=28).contains(&all_missed), "{all_missed}");
}

/// 543 bytes have 2 more in PDCP, and RLC reports 2 for the header: 547. A block of 549 takes its header off and leaves 0. Of 545
/// bytes 549 are reported and 2 are left when all is sent, for which another block is made (reference, section 8.2).
#[test]
fn a_block_less_a_header_is_taken_off_what_waits_in_the_downlink() {
    for (bytes, blocks) in [(543, 1), (545, 2), (543 + 547, 2), (545 + 547, 3)] {
        let (network, story, _) = recorded(near(1), &[packet(Way::Downlink, bytes, 1.2)], 100.0);
        assert_eq!(story.arrivals.len(), 1);
        assert_eq!(network.ue(0).counters[0].blocks, blocks, "{bytes} bytes");
    }
}

/// 5000 bytes, 2 of PDCP and 2 for RLC's header are in the step up to 5476 (36.321 table 6.1.3.1-1). Ten grants take 547 each off
/// it and leave 6, for which there is an eleventh; ten times 549 would have been enough.
#[test]
fn a_block_less_a_header_is_taken_off_what_waits_in_the_uplink() {
    let (network, story, _) = recorded(near(1), &[packet(Way::Uplink, 5_000, 1.2)], 100.0);
    assert_eq!(story.arrivals.len(), 1);
    assert_eq!(network.ue(0).counters[1].blocks, 11);
}

/// Two packets in a subframe make two reports for the same boundary, of which the second is sent: twice 600 + 4 bytes are in the
/// step up to 1326, which takes three grants of 547. With the step up to 706 of the first alone added it would be four.
#[test]
fn the_last_report_of_a_subframe_is_the_one_that_counts() {
    let sources = [1.2, 1.4].map(|at| packet(Way::Uplink, 600, at));
    let (network, story, _) = recorded(near(1), &sources, 100.0);
    assert_eq!(story.arrivals.len(), 2);
    assert_eq!(network.ue(0).counters[1].blocks, 3);
}

/// One packet on each of two bearers of one logical channel group: 2008 bytes, in the step up to 2127, take four grants of 547.
/// Of each block either bearer has 274 bytes, 272 without its header, of its 1002: both are complete with the fourth. Reported at
/// the boundary 2, known in subframe 7, granted for 13 to 16.
#[test]
fn bearers_share_a_ues_blocks_of_the_uplink() {
    let mut config = near(1);
    config.ues[0].bearers.push(BearerConfig::best_effort(Mode::Unacknowledged, 1_000_000));
    let sources = [0, 1].map(|bearer| Source { bearer, ..packet(Way::Uplink, 1_000, 1.2) });
    let (network, story, blocks) = recorded(config, &sources, 100.0);
    assert_eq!(blocks.iter().map(|block| block.subframe).collect::<Vec<_>>(), [13, 14, 15, 16]);
    // 13 of the 14 symbols of subframe 16, and both links of the core.
    assert!(story.arrivals.iter().all(|arrival| arrival.at > ms(16.928) && arrival.at < ms(16.940)), "{story:?}");
    assert_eq!((story.arrivals.len(), network.ue(0).counters[1].pdu_bytes), (2, 2 * (1_002 + 4 * 2)));
}

/// When a block was sent, how often before, and whether it came.
fn attempts(blocks: &[BlockRecord]) -> Vec<(u64, u8, bool)> {
    blocks.iter().map(|block| (block.subframe, block.redundancy, block.decoded)).collect()
}

/// Nobody decodes anything at -31 dB. What comes in subframe 1 is decided on in 2 and on the air in 4, and three times more, each
/// seven subframes later (reference, section 2.3).
#[test]
fn a_block_of_the_downlink_is_sent_four_times() {
    let mut config = deaf(1, ue(0, 3_000.0));
    config.errors.control = false;
    let (network, _, blocks) = recorded(config, &[packet(Way::Downlink, 100, 1.2)], 200.0);
    assert_eq!(attempts(&blocks), [(4, 0, false), (11, 1, false), (18, 2, false), (25, 3, false)]);
    let counters = &network.ue(0).counters[0];
    assert_eq!((counters.blocks, counters.retransmissions, counters.errors, counters.lost_blocks), (1, 3, 4, 1));
}

/// The UE sounded at 99 m in subframe 0 and is then 300 km away: granted by the old measurement, with MCS 28, which arrives at
/// 23 - 7.8 - 147.7 + 121.4 - 5 = -16 dB. Reported at the boundary 5, known in 10, on the air in 16.
#[test]
fn a_block_of_the_uplink_is_sent_four_times() {
    let mut config = near(1);
    config.ues[0].course = Course { points: vec![(0.003, at(99.0)), (0.004, at(300_000.0))] };
    config.cells[0].uplink_reports = UplinkReports::Sounding { period: 320 };
    config.errors.control = false;
    let (network, _, blocks) = recorded(config, &[packet(Way::Uplink, 100, 4.2)], 200.0);
    assert_eq!(attempts(&blocks), [(16, 0, false), (23, 1, false), (30, 2, false), (37, 3, false)]);
    assert_eq!(blocks[0].mcs, 28);
    let counters = &network.ue(0).counters[1];
    assert_eq!((counters.blocks, counters.retransmissions, counters.errors, counters.lost_blocks), (1, 3, 4, 1));
}

/// UEs sound one after the other, every 40 subframes: the first in 0, 40 and 80, the fourth in 3, 43 and 83. Both go from 99 m to
/// 20 km between 60 and 61 ms. What they sound in a subframe is known in the next, 81 and 84, in which 87 and 90 are granted.
#[test]
fn a_sounding_is_used_from_the_next_subframe_on() {
    let mut config = near(4);
    for phone in &mut config.ues {
        phone.course = Course { points: vec![(0.060, at(99.0)), (0.061, at(20_000.0))] };
    }
    config.errors.data = false;
    config.errors.control = false;
    let sources = [0, 3].map(|ue| Source {
        ue,
        interval: Duration::from_millis(1),
        until: ms(200.0),
        ..packet(Way::Uplink, 100, 0.5)
    });
    let (_, _, blocks) = recorded(config, &sources, 150.0);
    for (ue, known) in [(0, 87), (3, 90)] {
        let of: Vec<&BlockRecord> = blocks.iter().filter(|block| block.ue == ue && block.subframe > 20).collect();
        assert!(of.windows(2).all(|pair| pair[1].subframe == pair[0].subframe + 1), "a block in each subframe");
        let wrong = of.iter().find(|block| (block.mcs < 28) != (block.subframe >= known));
        assert_eq!(wrong, None, "UE {ue}");
    }
}
