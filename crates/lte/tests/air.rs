//! Tests of the radio channel between cells and UEs: SINR of both directions, gains of antennas and modes, sounding, and
//! interference of neighbors. Each number is computed by hand at its test.
//!
//! In free space the loss is 20 log10(4 pi d f / c): in the downlink at 2120 MHz 78.97 dB at 100 m and 6.02 dB more for each
//! doubling, in the uplink at 1930 MHz 0.82 dB less. The noise is -121.45 dBm in a resource block plus the receiver's noise
//! figure.

use crate::common::*;
use fullpipe_lte::config::{CellConfig, Config, CqiSource, UeConfig, UplinkReports};
use fullpipe_lte::radio::amc::{Amc, BIT_ERROR_RATE};
use fullpipe_lte::radio::antenna::{Antenna, TransmissionMode};
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::fading::{DelayProfile, Fading, FadingParameters, Trace, TraceSampling};
use fullpipe_lte::radio::power::PowerControlConfig;
use fullpipe_lte::rlc::{LinkDirection, RlcMode};
use fullpipe_lte::{AccessNetwork, BlockRecord};
use fullpipe_units::Duration;
use std::sync::Arc;

fn cell(name: &str, x: f64, resource_blocks: u32) -> CellConfig {
    CellConfig { position: at(x), ..CellConfig::reference(name, Bandwidth::new(resource_blocks).unwrap()) }
}

fn saturated(number: usize, x: f64) -> UeConfig {
    let mut phone = ue(number, x);
    phone.bearers[0].mode = RlcMode::Saturated;
    phone
}

/// Runs a network without sources. Returns its blocks and its final state.
fn blocks(config: Config, until: f64) -> (Vec<BlockRecord>, AccessNetwork) {
    let mut network = network(config);
    network.record_blocks();
    run_on(&mut network, &[], ms(until));
    (network.take_block_records(), network)
}

fn schemes(blocks: &[BlockRecord], uplink: bool, ue: u16) -> Vec<u8> {
    blocks.iter().filter(|block| (block.uplink, block.ue) == (uplink, ue)).map(|block| block.mcs).collect()
}

/// A cell with 25 resource blocks and a UE 4 km away with a noise figure of 7 dB: 19.45 dB in the downlink (reference, row
/// throughput-011). Without power control the uplink has 10 - 13.98 - 110.20 + 121.45 - 5 = 2.27 dB.
fn four_kilometres() -> Config {
    let phone = UeConfig { noise_figure_db: 7.0, power_control: None, ..saturated(0, 4_000.0) };
    Config::reference(1, cell("cell", 0.0, 25), vec![phone])
}

fn sinr_db(config: Config) -> [f64; 2] {
    let (_, network) = blocks(config, 50.0);
    network.ue_status(0).last.map(|last| last.sinr_db)
}

fn assert_near(found: [f64; 2], expected: [f64; 2]) {
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() < 0.01, "{found} dB instead of {expected}");
    }
}

/// An antenna has its gain in both directions: 1 dB on its axis and 3 dB less at half of its beam width. Transmission modes gain
/// 4.2 dB and lose 2.8 dB in the downlink (reference, section 7), plus the data region's power offset.
#[test]
fn antennas_modes_and_power_offsets_have_their_gains() {
    assert_near(sinr_db(four_kilometres()), [19.45, 2.27]);
    let mut config = four_kilometres();
    config.cells[0].antenna =
        Antenna::Cosine { orientation_degrees: 45.0, beam_width_degrees: 90.0, largest_gain_db: 1.0 };
    assert_near(sinr_db(config), [17.45, 0.27]);
    let modes = [(TransmissionMode::TransmitDiversity, 4.2), (TransmissionMode::OpenLoopMultiplexing, -2.8)];
    for (mode, gain) in modes {
        let mut config = four_kilometres();
        config.ues[0].transmission_mode = mode;
        config.ues[0].data_power_offset_db = -3.0;
        assert_near(sinr_db(config), [19.45 + gain - 3.0, 2.27]);
    }
}

/// The control region is sent with full power, whatever the power of the data. So a CQI from the control region does not include
/// the 6 dB by which the data are weaker. MCS 26 belongs to 19.45 dB, 18 to 13.43 (reference, rows throughput-011 and -012).
#[test]
fn only_the_mixed_cqi_includes_the_power_of_data() {
    for (source, mcs) in [(CqiSource::Control, 26), (CqiSource::Mixed, 18)] {
        let mut config = four_kilometres();
        config.ues[0].data_power_offset_db = -6.0;
        config.cells[0].cqi_source = source;
        let (blocks, _) = blocks(config, 50.0);
        assert!(schemes(&blocks, false, 0).iter().all(|found| *found == mcs), "{source:?}");
    }
}

/// Fading that is constant in time, given in dB for each resource block.
fn still(gains: &[f64], band: Bandwidth) -> Fading {
    let text: String = gains.iter().map(|gain| format!("{gain} {gain} {gain}\n")).collect();
    Fading::trace(Arc::new(Trace::read(text.as_bytes()).unwrap()), TraceSampling::Continuous, 1, band).unwrap()
}

/// UEs 99 m from a cell with 6 resource blocks, each with a target of `target_dbm`. At -100 dBm they have -100 + 0.82 + 121.45 -
/// 5 = 17.26 dB and the efficiency log2(1 + 53.2 / 5.529) = 3.41: CQI 11 (3.32 to 3.90), MCS 20. At -80 dBm, with 37.26 dB, MCS
/// 28.
fn uplink(ues: usize, target_dbm: f64, gains: [f64; 6], reports: UplinkReports) -> Config {
    let phones = (0..ues).map(|number| {
        let control = PowerControlConfig { target_dbm, ..PowerControlConfig::default() };
        UeConfig { power_control: Some(control), ..saturated(number, 99.0) }
    });
    let mut config = Config::reference(1, cell("cell", 0.0, 6), phones.collect());
    config.uplink_fading = still(&gains, Bandwidth::new(6).unwrap());
    config.cells[0].uplink_reports = reports;
    config.errors.data = false;
    config
}

const SOUNDING: UplinkReports = UplinkReports::Sounding { period: 40 };

/// The fourth resource block has 20 dB less. A single UE has all of them; of two UEs the first has the first three.
#[test]
fn worst_resource_block_of_a_grant_determines_the_mcs() {
    for (ues, expected) in [(1, vec![20]), (2, vec![28, 20])] {
        let (blocks, _) = blocks(uplink(ues, -80.0, [0.0, 0.0, 0.0, -20.0, 0.0, 0.0], SOUNDING), 50.0);
        for (ue, mcs) in expected.into_iter().enumerate() {
            assert!(schemes(&blocks, true, ue as u16).iter().all(|found| *found == mcs), "UE {ue} of {ues}");
        }
    }
}

/// With an offset of 7 the sounding signal is as strong as data, with 1 it is 9 dB weaker: 8.25 dB, log2(1 + 6.68 / 5.529) =
/// 1.14, CQI 5 (0.88 to 1.18), MCS 8.
#[test]
fn sounding_signal_has_its_own_power() {
    for (sounding_offset, mcs) in [(7, 20), (1, 8)] {
        let mut config = uplink(1, -100.0, [0.0; 6], SOUNDING);
        config.ues[0].power_control.as_mut().unwrap().sounding_offset = sounding_offset;
        let (blocks, _) = blocks(config, 50.0);
        assert!(schemes(&blocks, true, 0).iter().all(|found| *found == mcs), "{sounding_offset}");
    }
}

/// The second and third resource block have 10 dB less: 7.25 dB, log2(1 + 5.31 / 5.529) = 0.97, CQI 5, MCS 8 for a UE that has
/// just sent in the first three. For the other blocks the mean of 1, 0.1 and 0.1 is assumed: 0.4 times 53.2 is 13.25 dB, and
/// log2(1 + 21.1 / 5.529) = 2.27 is CQI 8 (1.91 to 2.41), MCS 14.
#[test]
fn data_measures_the_channel_in_its_blocks_and_its_mean_elsewhere() {
    let gains = [0.0, -10.0, -10.0, 0.0, 0.0, 0.0];
    // Two UEs, always in the same blocks. Grants before subframe 12 have no measurement, which applies up to subframe 17.
    let (two, _) = blocks(uplink(2, -100.0, gains, UplinkReports::Data), 50.0);
    // Of three UEs, one has the first three blocks and the others in turn, so that its last measurement is always of the other
    // half.
    let (three, _) = blocks(uplink(3, -100.0, gains, UplinkReports::Data), 50.0);
    for (blocks, schemes) in [(two, [8, 20]), (three, [20, 14])] {
        let blocks: Vec<&BlockRecord> = blocks.iter().filter(|block| block.uplink).collect();
        assert!(blocks.iter().filter(|block| block.subframe <= 17).all(|block| block.mcs == 0));
        for block in blocks.iter().filter(|block| block.subframe > 18) {
            assert_eq!(block.mcs, schemes[usize::from(block.place.0 == 3)], "{block:?}");
        }
    }
}

/// Downlink and uplink of a pair fade independently, by generators with the same seed. Over many seeds their difference has a
/// standard deviation of 5.57 sqrt(2) = 7.9 dB, or slightly less, as each value is a mean over the band.
#[test]
fn both_directions_fade_independently() {
    let differences = (0..40).map(|seed| {
        let mut config = Config::reference(seed, cell("cell", 0.0, 6), vec![saturated(0, 1_000.0)]);
        let band = Bandwidth::new(6).unwrap();
        let recipe = FadingParameters::ns3_traces(DelayProfile::ExtendedPedestrianA, 0.0);
        config.downlink_fading = Fading::generator(recipe, 1, band).unwrap();
        config.uplink_fading = config.downlink_fading.clone();
        let [down, up] = sinr_db(config);
        down - up
    });
    let differences: Vec<f64> = differences.filter(|difference| difference.is_finite()).collect();
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    let square = differences.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>() / differences.len() as f64;
    assert!(differences.len() > 30 && square.sqrt() > 4.0, "{} dB of {}", square.sqrt(), differences.len());
}

/// A UE of the neighbor is 200 m from this cell's antenna and sounds with full power, 23 - 7.78 - 84.17 = -68.95 dBm in a
/// resource block, since its own cell is 2.8 km away. In the same subframe, this cell's UE, which arrives with -79.2 dBm, has
/// -10.2 dB and CQI 0 (log2(1 + 0.095 / 5.529) = 0.02). A UE near the neighbor's antenna arrives with -109 dBm and causes no
/// interference. So the result depends on which of them sounds first, that is, in the same subframe.
#[test]
fn sounding_in_another_subframe_causes_no_interference() {
    for (first, second, granted) in [(3_100.0, 200.0, true), (200.0, 3_100.0, false)] {
        let mut phones = vec![ue(0, 99.0), ue(1, first), ue(2, second)];
        phones[1].cell = 1;
        phones[2].cell = 1;
        let mut config = Config::reference(1, cell("a", 0.0, 6), phones);
        config.cells.push(cell("b", 3_000.0, 6));
        let mut network = network(config);
        let source = Source {
            way: LinkDirection::Uplink,
            ue: 0,
            bearer: 0,
            bytes: 100,
            first: ms(41.2),
            interval: Duration::from_secs(1),
            until: ms(41.3),
        };
        let story = run(&mut network, &[source], ms(100.0));
        assert_eq!(story.arrivals.len(), usize::from(granted), "{first} m first");
        assert_eq!(network.ue_status(0).counters[1].blocks_by_mcs[28], u64::from(granted));
    }
}

/// Two cells are 1 km apart, with a UE of the first in the middle: both arrive with the same power. The other cell's UE decodes
/// nothing, so its block of subframe 4, with 6 dB less, is retransmitted in 11. In both subframes, in which the UE here gets the
/// same block, the SINR is 6 dB.
#[test]
fn retransmission_interferes_with_the_power_of_data() {
    let mut phones = vec![ue(0, 500.0), ue(1, 900.0)];
    phones[1].cell = 1;
    phones[1].noise_figure_db = 100.0;
    phones[1].data_power_offset_db = -6.0;
    let mut config = Config::reference(1, cell("a", 0.0, 6), phones);
    config.cells.push(CellConfig { amc: Amc::Piro { bit_error_rate: 0.199_999 }, ..cell("b", 1_000.0, 6) });
    config.errors.control = false;
    let mut network = network(config);
    network.record_blocks();
    let sources = [0, 1].map(|ue| Source {
        way: LinkDirection::Downlink,
        ue,
        bearer: 0,
        bytes: 100,
        first: ms(1.2),
        interval: Duration::from_secs(1),
        until: ms(1.3),
    });
    run_on(&mut network, &sources, ms(4.0));
    for subframe in [4, 11] {
        run_on(&mut network, &[], ms(subframe as f64));
        let last: Vec<(u64, u16)> =
            network.take_block_records().iter().map(|block| (block.subframe, block.ue)).collect();
        assert_eq!(last, [(subframe, 0), (subframe, 1)]);
        assert!((network.ue_status(0).last[0].sinr_db - 6.0).abs() < 0.01, "{}", network.ue_status(0).last[0].sinr_db);
    }
}

/// The UE is in the middle between two cells. The one with 50 resource blocks has groups of three, the one with 25 groups of two.
/// In group 4 of the larger cell, blocks 12 to 14, each block has 13 dBm. In its own group 6, blocks 12 and 13, the smaller cell
/// has 16 dBm and the SINR is 3.01 dB. In its group 4, blocks 8 and 9, there is no interference and the SINR is 16.02 - 92.95 +
/// 121.45 - 9 = 35.52 dB.
#[test]
fn groups_of_a_neighbor_have_the_positions_of_its_own_bandwidth() {
    for (group, expected) in [(6, 3.01), (4, 35.52)] {
        let mut phones = vec![saturated(0, 500.0), saturated(1, 1_050.0)];
        phones[1].cell = 1;
        let mut config = Config::reference(1, cell("a", 0.0, 25), phones);
        config.cells[0].downlink_groups = Some((group, 1));
        config.cells.push(CellConfig { downlink_groups: Some((4, 1)), ..cell("b", 1_000.0, 50) });
        config.errors.data = false;
        let (_, network) = blocks(config, 50.0);
        let found = network.ue_status(0).last[0].sinr_db;
        assert!((found - expected).abs() < 0.01, "{found} dB instead of {expected}");
    }
}

/// The control region of a neighbor with 25 resource blocks overlaps blocks 0 to 24 of a cell with 50. There the SINR is -3.01
/// dB, 13 against 16 dBm, too low for any CQI (log2(1 + 0.5 / 5.529) = 0.125, less than the 0.15 of CQI 1). From group 9 on,
/// block 27, there is only noise.
#[test]
fn neighbor_interferes_only_within_its_own_bandwidth() {
    for (groups, mcs) in [((0, 8), None), ((9, 7), Some(28))] {
        let mut config = Config::reference(1, cell("a", 0.0, 50), vec![saturated(0, 500.0)]);
        config.cells[0].downlink_groups = Some(groups);
        config.cells[0].cqi_source = CqiSource::Control;
        config.cells[0].amc = Amc::Piro { bit_error_rate: BIT_ERROR_RATE };
        config.cells.push(cell("b", 1_000.0, 25));
        config.errors.control = false;
        let (blocks, _) = blocks(config, 50.0);
        assert_eq!(schemes(&blocks, false, 0).into_iter().max(), mcs, "{groups:?}");
    }
}

/// The mixed CQI has the interference of the last data region before its own control region. The neighbor sends from subframe 4
/// on, after the control region of 4. The control region of 6 includes the interference of 5 and is used seven subframes later.
#[test]
fn mixed_cqi_uses_the_data_region_before_its_control_region() {
    let mut phones = vec![saturated(0, 500.0), ue(1, 1_050.0)];
    phones[1].cell = 1;
    let mut config = Config::reference(1, cell("a", 0.0, 6), phones);
    config.cells.push(cell("b", 1_000.0, 6));
    config.errors.data = false;
    config.errors.control = false;
    let mut network = network(config);
    network.record_blocks();
    let source = Source { first: ms(1.2), ..saturating(LinkDirection::Downlink, 1, 1400, 20.0, ms(40.0)) };
    run(&mut network, &[source], ms(40.0));
    let blocks = network.take_block_records();
    let known =
        blocks.iter().find(|block| !block.uplink && block.ue == 0 && block.mcs < 28).map(|block| block.subframe);
    assert_eq!(known, Some(13));
}
