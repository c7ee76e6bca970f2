//! Tests of fading whose time starts with a packet: the rest of the run equals a run that starts with that packet.

use crate::common::*;
use fullpipe_lte::BlockRecord;
use fullpipe_lte::config::{CellConfig, Config, ErrorConfig, FadingStart, UplinkReports};
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::fading::{DelayProfile, Fading, FadingParameters, Generator, TraceSampling};
use fullpipe_lte::rlc::LinkDirection;
use fullpipe_units::Duration;
use std::sync::Arc;

/// UEs sound every 40 ms and report CQI every 2, so a run that starts this many milliseconds later has the same phase.
const LATER_MS: u64 = 40 * 7;

/// A UE at 2 km, at 30 km/h, whose CQI changes all the time. Random draws depend on the subframe, not on the fading, so there
/// must be no random losses.
fn world(fading: &Fading, begins: FadingStart, reports: UplinkReports) -> Config {
    let cell = CellConfig { uplink_reports: reports, ..CellConfig::reference("cell", Bandwidth::new(25).unwrap()) };
    let mut config = Config::reference(1, cell, vec![ue(0, 2_000.0)]);
    config.downlink_fading = fading.clone();
    config.uplink_fading = fading.clone();
    config.errors = ErrorConfig { data: false, control: false, ..ErrorConfig::default() };
    config.fading_begins = begins;
    config
}

fn fadings() -> [Fading; 3] {
    let band = Bandwidth::new(25).unwrap();
    let recipe = FadingParameters::ns3_traces(DelayProfile::ExtendedVehicularA, 30.0);
    let trace = Arc::new(Generator::new(recipe, 9, 25).unwrap().to_trace(2));
    let traced = |places| Fading::trace(Arc::clone(&trace), places, 5, band).unwrap();
    [
        Fading::generator(recipe, 3, band).unwrap(),
        traced(TraceSampling::Windows { milliseconds: 200 }),
        traced(TraceSampling::Continuous),
    ]
}

/// A packet of this size every 3 ms in each direction for a second, from 0.4 ms plus `later_ms` on.
fn sources(bytes: u32, later_ms: u64) -> Vec<Source> {
    let source = |way| Source {
        way,
        ue: 0,
        bearer: 0,
        bytes,
        first: ms(0.4) + Duration::from_millis(later_ms),
        interval: Duration::from_millis(3),
        until: ms(1_000.0) + Duration::from_millis(later_ms),
    };
    LinkDirection::BOTH.map(source).to_vec()
}

/// Transport blocks and arrivals, with times relative to `later_ms`.
fn story(config: Config, sources: &[Source], later_ms: u64) -> (Vec<BlockRecord>, Vec<Arrival>) {
    let mut network = network(config);
    network.record_blocks();
    let later = Duration::from_millis(later_ms);
    let mut story = run(&mut network, sources, ms(1_200.0) + later);
    let mut blocks = network.take_block_records();
    blocks.retain(|block| block.subframe >= later_ms);
    story.arrivals.retain(|arrival| arrival.sent >= ms(0.0) + later);
    for block in &mut blocks {
        block.subframe -= later_ms;
    }
    for arrival in &mut story.arrivals {
        (arrival.sent, arrival.at) = (arrival.sent - later, arrival.at - later);
    }
    (blocks, story.arrivals)
}

#[test]
fn run_with_fading_from_a_packet_equals_a_run_that_starts_with_it() {
    for reports in [UplinkReports::Sounding { period: 40 }, UplinkReports::Data] {
        for fading in fadings() {
            let first = FadingStart::Packet { least_bytes: 1 };
            let early = story(world(&fading, FadingStart::Run, reports), &sources(700, 0), 0);
            let schemes = |blocks: &[BlockRecord], uplink| {
                let of = blocks.iter().filter(|block| block.uplink == uplink);
                of.map(|block| block.mcs).collect::<std::collections::BTreeSet<_>>().len()
            };
            assert!(schemes(&early.0, false) > 5, "the channel fades");
            assert!(early.1.len() > 400, "{} of 2 x 334 packets", early.1.len());
            // With the first packet at once, the runs are equal.
            assert_eq!(story(world(&fading, first, reports), &sources(700, 0), 0), early);
            // With a later first packet, the runs are equal except for the offset.
            assert_eq!(story(world(&fading, first, reports), &sources(700, LATER_MS), LATER_MS), early);
            // If the fading starts with the run, they differ.
            assert_ne!(story(world(&fading, FadingStart::Run, reports), &sources(700, LATER_MS), LATER_MS), early);
        }
    }
}

#[test]
fn smaller_packets_do_not_start_the_fading() {
    let [fading, ..] = fadings();
    let reports = UplinkReports::Sounding { period: 40 };
    let begins = |least_bytes| world(&fading, FadingStart::Packet { least_bytes }, reports);
    // Pings of 84 bytes in the first 200 ms, which are all delivered when the large packets start.
    let mut all = sources(84, 20);
    all.iter_mut().for_each(|source| source.until = ms(200.0));
    all.extend(sources(700, LATER_MS));
    let early = story(begins(1), &sources(700, 0), 0);
    assert_eq!(story(begins(500), &all, LATER_MS), early);
    assert_eq!(story(begins(700), &all, LATER_MS), early);
    assert_ne!(story(begins(84), &all, LATER_MS), early);
    // Without a packet of that size the fading never starts, and all downlink blocks after the first reports are equal.
    let (blocks, _) = story(begins(701), &all, LATER_MS);
    let schemes: Vec<u8> = blocks.iter().filter(|block| !block.uplink).map(|block| block.mcs).collect();
    assert!(schemes.windows(2).all(|pair| pair[0] == pair[1]), "{schemes:?}");
}
