//! What is on the air and what the cells make of it: SINR of both ways, gains of antennas and modes, sounding, and what
//! neighbours add. Each number is worked out by hand beside its test.
//!
//! In free space the loss is 20 log10(4 pi d f / c), in the downlink at 2120 MHz 78.97 dB at 100 m and 6.02 dB more for each
//! doubling, in the uplink at 1930 MHz 0.82 dB less. Noise is -121.45 dBm in a resource block, and the receiver's figure.

use crate::common::*;
use fullpipe_lte::config::{CellConfig, Config, CqiSource, UeConfig, UplinkReports};
use fullpipe_lte::radio::amc::{Amc, BIT_ERROR_RATE};
use fullpipe_lte::radio::antenna::{Antenna, TransmissionMode};
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::fading::{Fading, Places, Profile, Recipe, Trace};
use fullpipe_lte::radio::power::PowerControl;
use fullpipe_lte::rlc::{Mode, Way};
use fullpipe_lte::{AccessNetwork, BlockRecord};
use fullpipe_units::Duration;
use std::sync::Arc;

fn cell(name: &str, x: f64, resource_blocks: u32) -> CellConfig {
    CellConfig { position: at(x), ..CellConfig::reference(name, Bandwidth::new(resource_blocks).unwrap()) }
}

fn saturated(number: usize, x: f64) -> UeConfig {
    let mut phone = ue(number, x);
    phone.bearers[0].mode = Mode::Saturated;
    phone
}

/// Blocks and end of a run of a network without sources.
fn blocks(config: Config, until: f64) -> (Vec<BlockRecord>, AccessNetwork) {
    let mut network = network(config);
    network.record_blocks();
    run_on(&mut network, &[], ms(until));
    (network.blocks(), network)
}

fn schemes(blocks: &[BlockRecord], uplink: bool, ue: u16) -> Vec<u8> {
    blocks.iter().filter(|block| (block.uplink, block.ue) == (uplink, ue)).map(|block| block.mcs).collect()
}

/// A cell of 25 resource blocks and a UE 4 km away with a noise figure of 7 dB: 19.45 dB in the downlink (reference, row
/// throughput-011). Without power control the uplink has 10 - 13.98 - 110.20 + 121.45 - 5 = 2.27 dB.
fn four_kilometres() -> Config {
    let phone = UeConfig { noise_figure_db: 7.0, power_control: None, ..saturated(0, 4_000.0) };
    Config::reference(1, cell("cell", 0.0, 25), vec![phone])
}

fn sinr_db(config: Config) -> [f64; 2] {
    let (_, network) = blocks(config, 50.0);
    network.ue(0).last.map(|last| last.sinr_db)
}

fn assert_near(found: [f64; 2], expected: [f64; 2]) {
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() < 0.01, "{found} dB instead of {expected}");
    }
}

/// An antenna has its gain both ways: 1 dB on its axis and 3 dB less at half of its beam's width. Transmission modes gain 4.2 dB and
/// lose 2.8 dB in the downlink (reference, section 7), to which the data region's power is added.
#[test]
fn antennas_modes_and_powers_gain_what_they_should() {
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

/// The control region is sent with full power, whatever the data has: a CQI from it alone does not know that the data has 6 dB less.
/// MCS 26 belongs to 19.45 dB, 18 to 13.43 (reference, rows throughput-011 and -012).
#[test]
fn the_power_of_data_is_in_the_mixed_cqi_only() {
    for (source, mcs) in [(CqiSource::Control, 26), (CqiSource::Mixed, 18)] {
        let mut config = four_kilometres();
        config.ues[0].data_power_offset_db = -6.0;
        config.cells[0].cqi_source = source;
        let (blocks, _) = blocks(config, 50.0);
        assert!(schemes(&blocks, false, 0).iter().all(|found| *found == mcs), "{source:?}");
    }
}

/// Fading of each resource block, dB, without change in time.
fn still(gains: &[f64], band: Bandwidth) -> Fading {
    let text: String = gains.iter().map(|gain| format!("{gain} {gain} {gain}\n")).collect();
    Fading::trace(Arc::new(Trace::read(text.as_bytes()).unwrap()), Places::Continuous, 1, band).unwrap()
}

/// UEs 99 m from a cell of 6 resource blocks, each of which is to arrive with so many dBm. At -100 they have -100 + 0.82 + 121.45 - 5
/// = 17.26 dB and the efficiency log2(1 + 53.2 / 5.529) = 3.41: CQI 11 (3.32 to 3.90), MCS 20. At -80, with 37.26 dB, MCS 28.
fn uplink(ues: usize, target_dbm: f64, gains: [f64; 6], reports: UplinkReports) -> Config {
    let phones = (0..ues).map(|number| {
        let control = PowerControl { target_dbm, ..PowerControl::default() };
        UeConfig { power_control: Some(control), ..saturated(number, 99.0) }
    });
    let mut config = Config::reference(1, cell("cell", 0.0, 6), phones.collect());
    config.uplink_fading = still(&gains, Bandwidth::new(6).unwrap());
    config.cells[0].uplink_reports = reports;
    config.errors.data = false;
    config
}

const SOUNDING: UplinkReports = UplinkReports::Sounding { period: 40 };

/// The fourth resource block has 20 dB less. Alone a UE has all of them; of two the first has the first three.
#[test]
fn the_worst_resource_block_of_a_grant_decides() {
    for (ues, expected) in [(1, vec![20]), (2, vec![28, 20])] {
        let (blocks, _) = blocks(uplink(ues, -80.0, [0.0, 0.0, 0.0, -20.0, 0.0, 0.0], SOUNDING), 50.0);
        for (ue, mcs) in expected.into_iter().enumerate() {
            assert!(schemes(&blocks, true, ue as u16).iter().all(|found| *found == mcs), "UE {ue} of {ues}");
        }
    }
}

/// With an offset of 7 the sounding signal is as strong as data, with 1 it is 9 dB weaker: 8.25 dB, log2(1 + 6.68 / 5.529) = 1.14,
/// CQI 5 (0.88 to 1.18), MCS 8.
#[test]
fn sounding_has_a_power_of_its_own() {
    for (sounding_offset, mcs) in [(7, 20), (1, 8)] {
        let mut config = uplink(1, -100.0, [0.0; 6], SOUNDING);
        config.ues[0].power_control.as_mut().unwrap().sounding_offset = sounding_offset;
        let (blocks, _) = blocks(config, 50.0);
        assert!(schemes(&blocks, true, 0).iter().all(|found| *found == mcs), "{sounding_offset}");
    }
}

/// The second and third resource block have 10 dB less: 7.25 dB, log2(1 + 5.31 / 5.529) = 0.97, CQI 5, MCS 8 for who has just sent in
/// the first three. For the others that is taken for their mean, of 1, 0.1 and 0.1: 0.4 times 53.2 are 13.25 dB, and log2(1 + 21.1 /
/// 5.529) = 2.27 is CQI 8 (1.91 to 2.41), MCS 14.
#[test]
fn data_shows_the_channel_where_it_was_sent_and_its_mean_elsewhere() {
    let gains = [0.0, -10.0, -10.0, 0.0, 0.0, 0.0];
    // Two UEs, always in the same places; what is granted before subframe 12 goes without knowledge, up to subframe 17.
    let (two, _) = blocks(uplink(2, -100.0, gains, UplinkReports::Data), 50.0);
    // Of three, a UE has the first three blocks and the others in turn, so that its last measurement is always of the other half.
    let (three, _) = blocks(uplink(3, -100.0, gains, UplinkReports::Data), 50.0);
    for (blocks, schemes) in [(two, [8, 20]), (three, [20, 14])] {
        let blocks: Vec<&BlockRecord> = blocks.iter().filter(|block| block.uplink).collect();
        assert!(blocks.iter().filter(|block| block.subframe <= 17).all(|block| block.mcs == 0));
        for block in blocks.iter().filter(|block| block.subframe > 18) {
            assert_eq!(block.mcs, schemes[usize::from(block.place.0 == 3)], "{block:?}");
        }
    }
}

/// Downlink and uplink of a pair fade each for itself, by generators of the same seed: over many seeds their difference has a
/// standard deviation of 5.57 sqrt(2) = 7.9 dB, or a little less, as each is a mean over the band.
#[test]
fn both_ways_fade_each_for_itself() {
    let differences = (0..40).map(|seed| {
        let mut config = Config::reference(seed, cell("cell", 0.0, 6), vec![saturated(0, 1_000.0)]);
        let band = Bandwidth::new(6).unwrap();
        let recipe = Recipe::like_the_traces(Profile::ExtendedPedestrianA, 0.0);
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

/// A UE of the neighbour stands 200 m from this cell's antenna and sounds with all its power, 23 - 7.78 - 84.17 = -68.95 dBm in a
/// resource block, as its own cell is 2.8 km away. In the subframe of this cell's UE, which arrives with -79.2 dBm, that leaves it
/// -10.2 dB and CQI 0 (log2(1 + 0.095 / 5.529) = 0.02). A UE beside the neighbour's antenna arrives with -109 dBm and disturbs
/// nobody. It matters who of them sounds first, that is, in the same subframe.
#[test]
fn who_sounds_in_another_subframe_does_not_disturb() {
    for (first, second, granted) in [(3_100.0, 200.0, true), (200.0, 3_100.0, false)] {
        let mut phones = vec![ue(0, 99.0), ue(1, first), ue(2, second)];
        phones[1].cell = 1;
        phones[2].cell = 1;
        let mut config = Config::reference(1, cell("a", 0.0, 6), phones);
        config.cells.push(cell("b", 3_000.0, 6));
        let mut network = network(config);
        let source = Source {
            way: Way::Uplink,
            ue: 0,
            bearer: 0,
            bytes: 100,
            first: ms(41.2),
            interval: Duration::from_secs(1),
            until: ms(41.3),
        };
        let story = run(&mut network, &[source], ms(100.0));
        assert_eq!(story.arrivals.len(), usize::from(granted), "{first} m first");
        assert_eq!(network.ue(0).counters[1].blocks_by_mcs[28], u64::from(granted));
    }
}

/// Two cells 1 km apart and a UE of the first between them: both arrive with the same power. The other cell's UE hears nothing, so
/// that what is sent to it in subframe 4, with 6 dB less, is sent again in 11: 6 dB remain in either, in which the UE here is sent
/// the same block.
#[test]
fn what_is_sent_again_disturbs_with_the_power_of_data() {
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
        way: Way::Downlink,
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
        let last: Vec<(u64, u16)> = network.blocks().iter().map(|block| (block.subframe, block.ue)).collect();
        assert_eq!(last, [(subframe, 0), (subframe, 1)]);
        assert!((network.ue(0).last[0].sinr_db - 6.0).abs() < 0.01, "{}", network.ue(0).last[0].sinr_db);
    }
}

/// Of two cells with the UE between them that of 50 resource blocks has groups of three, that of 25 of two. In group 4 of the
/// larger, blocks 12 to 14, it has 13 dBm each: in its own group 6, blocks 12 and 13, the smaller has 16 dBm and 3.01 dB remain; in
/// its group 4, blocks 8 and 9, nothing disturbs it and the SINR is 16.02 - 92.95 + 121.45 - 9 = 35.52 dB.
#[test]
fn groups_of_a_neighbour_are_where_its_own_bandwidth_has_them() {
    for (group, expected) in [(6, 3.01), (4, 35.52)] {
        let mut phones = vec![saturated(0, 500.0), saturated(1, 1_050.0)];
        phones[1].cell = 1;
        let mut config = Config::reference(1, cell("a", 0.0, 25), phones);
        config.cells[0].downlink_groups = Some((group, 1));
        config.cells.push(CellConfig { downlink_groups: Some((4, 1)), ..cell("b", 1_000.0, 50) });
        config.errors.data = false;
        let (_, network) = blocks(config, 50.0);
        let found = network.ue(0).last[0].sinr_db;
        assert!((found - expected).abs() < 0.01, "{found} dB instead of {expected}");
    }
}

/// The control region of a neighbour with 25 resource blocks reaches those of a cell with 50 up to number 24. There -3.01 dB remain
/// of 13 against 16 dBm, too little for any CQI (log2(1 + 0.5 / 5.529) = 0.125, less than the 0.15 of CQI 1); from group 9 on, block
/// 27, there is nothing but noise.
#[test]
fn a_neighbour_disturbs_no_further_than_its_own_bandwidth_goes() {
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

/// The mixed CQI has the interference of the last data region before its own control region. The neighbour sends from subframe 4 on,
/// which the control region of 4 comes before; that of 6 knows of 5 and is used seven subframes later.
#[test]
fn the_data_region_comes_after_the_control_region_that_a_cqi_is_measured_in() {
    let mut phones = vec![saturated(0, 500.0), ue(1, 1_050.0)];
    phones[1].cell = 1;
    let mut config = Config::reference(1, cell("a", 0.0, 6), phones);
    config.cells.push(cell("b", 1_000.0, 6));
    config.errors.data = false;
    config.errors.control = false;
    let mut network = network(config);
    network.record_blocks();
    let source = Source { first: ms(1.2), ..saturating(Way::Downlink, 1, 1400, 20.0, ms(40.0)) };
    run(&mut network, &[source], ms(40.0));
    let blocks = network.blocks();
    let known =
        blocks.iter().find(|block| !block.uplink && block.ue == 0 && block.mcs < 28).map(|block| block.subframe);
    assert_eq!(known, Some(13));
}
