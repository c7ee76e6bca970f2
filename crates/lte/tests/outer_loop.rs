//! Tests of outer-loop link adaptation: its gain with wrong reports, and its cost with correct ones.

use crate::common::*;
use fullpipe_lte::BlockRecord;
use fullpipe_lte::config::{CellConfig, Config, Position, Trajectory, UeConfig};
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::fading::{DelayProfile, Fading, FadingParameters};
use fullpipe_lte::rlc::LinkDirection;

fn cell(name: &str, outer_loop: bool) -> CellConfig {
    CellConfig { outer_loop, ..CellConfig::reference(name, Bandwidth::new(25).unwrap()) }
}

/// The fraction of first transmissions from a subframe on that were lost.
fn lost_share(blocks: &[BlockRecord], uplink: bool, ue: u16, from: u64) -> f64 {
    let first: Vec<_> = (blocks.iter())
        .filter(|block| (block.uplink, block.ue, block.redundancy) == (uplink, ue, 0) && block.subframe >= from)
        .collect();
    assert!(first.len() > 1_000, "{} blocks", first.len());
    first.iter().filter(|block| !block.decoded).count() as f64 / first.len() as f64
}

/// Two cells 400 m apart. A UE of the first is 50 m from its antenna, and one of the second in the middle. With power control
/// both arrive with -80 dBm per resource block at their own antennas, and the second one also at the first antenna: 0 dB. That UE
/// is the second of its cell, so it sounds a subframe later. The UE that sounds together with the first is 10 m from the other
/// antenna and sends nothing else. It arrives with -80 - 31.8 = -111.8 dBm, which with noise of -116.4 dBm leaves 30 dB for the
/// sounding signal: CQI 15.
fn two_cells(outer_loop: bool) -> Config {
    let place = |x| Position { x, y: 0.0, z: 0.0 };
    let phone = |number: usize, cell, x| UeConfig { cell, course: Trajectory::stationary(place(x)), ..ue(number, 0.0) };
    let phones = vec![phone(0, 0, 50.0), phone(1, 1, 390.0), phone(2, 1, 200.0)];
    let mut config = Config::reference(1, cell("a", outer_loop), phones);
    config.cells.push(CellConfig { position: place(400.0), ..cell("b", outer_loop) });
    config
}

/// At 0 dB a bit of 64QAM carries 0.137 of information (row of `mutual_information` of the vectors), and four attempts of MCS 28
/// still have the code rate 0.93 / 4 = 0.23: every block is lost permanently. With the outer loop, one in ten first transmissions
/// is lost in the long run, since each loss compensates for nine decoded blocks. The change of the offset, less than 10 dB or 450
/// steps, is 5 % of one in ten of 10 000 blocks.
#[test]
fn sounding_without_interference_does_not_lose_every_block() {
    for outer_loop in [false, true] {
        let mut network = network(two_cells(outer_loop));
        network.record_blocks();
        let end = ms(20_000.0);
        let sources = [0, 2].map(|ue| saturating(LinkDirection::Uplink, ue, 1_400, 25.0, end));
        let story = run(&mut network, &sources, end);
        let blocks = network.take_block_records();
        let lost = lost_share(&blocks, true, 0, 5_000);
        let goodput = goodput_mbps(&story, LinkDirection::Uplink, 0, ms(5_000.0), end);
        println!("{outer_loop}: lost {lost}, {goodput} Mbit/s");
        if outer_loop {
            assert!((lost - 0.1).abs() < 0.005, "{lost}");
            // At 0 dB the Shannon bound with the gap of CQI reports gives CQI 2, MCS 2: 1 096 bits in 25 resource blocks and a
            // subframe.
            assert!(goodput > 1.0, "{goodput}");
        } else {
            assert!(lost > 0.99, "{lost}");
            assert!(goodput < 0.01, "{goodput}");
        }
    }
}

/// Flat fading that is faster than reports (see `behaviour.rs`): without the outer loop far more than one in ten blocks is lost.
#[test]
fn outdated_reports_lose_one_block_in_ten() {
    for outer_loop in [false, true] {
        let band = Bandwidth::new(6).unwrap();
        let cell = CellConfig { scheduler: "rr".into(), outer_loop, ..CellConfig::reference("cell", band) };
        let mut config = Config::reference(3, cell, vec![ue(0, 3_000.0)]);
        let recipe = FadingParameters::ns3_traces(DelayProfile::ExtendedPedestrianA, 60.0);
        config.downlink_fading = Fading::generator(recipe, 3, band).unwrap();
        let mut network = network(config);
        network.record_blocks();
        let end = ms(20_000.0);
        let story = run(&mut network, &[saturating(LinkDirection::Downlink, 0, 1_400, 6.0, end)], end);
        let lost = lost_share(&network.take_block_records(), false, 0, 5_000);
        println!(
            "{outer_loop}: lost {lost}, {} Mbit/s",
            goodput_mbps(&story, LinkDirection::Downlink, 0, ms(5_000.0), end)
        );
        if outer_loop {
            assert!((lost - 0.1).abs() < 0.005, "{lost}");
        } else {
            assert!(lost > 0.15, "{lost}");
        }
    }
}

/// A constant channel with correct reports. The outer loop tries the next CQI in one of ten blocks and retransmits it: ten blocks
/// take eleven subframes. No block is smaller than before, as the offset falls by no more than the distance of two CQI when that
/// fails (see its header). If reports are pessimistic the next CQI always succeeds, and the UE gains. With CQI 15 there is
/// nothing to try.
#[test]
fn correct_reports_cost_at_most_one_subframe_in_eleven() {
    for (distance, way) in [99.0, 1_000.0, 4_000.0, 8_000.0, 16_000.0]
        .into_iter()
        .flat_map(|distance| LinkDirection::BOTH.map(|way| (distance, way)))
    {
        let [without, with] = [false, true].map(|outer_loop| {
            let mut network = network(Config::reference(1, cell("cell", outer_loop), vec![ue(0, distance)]));
            let story = run(&mut network, &[saturating(way, 0, 1_400, 25.0, ms(10_000.0))], ms(10_000.0));
            goodput_mbps(&story, way, 0, ms(2_000.0), ms(10_000.0))
        });
        println!("{distance} m {way:?}: {without} {with}");
        assert!(with >= without * 10.0 / 11.0 * 0.995, "{distance} m {way:?}: {with} instead of {without}");
        if distance == 99.0 {
            assert_eq!(with, without);
        }
    }
}
