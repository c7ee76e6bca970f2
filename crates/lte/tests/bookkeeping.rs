//! Tests of the eNB's accounts: the waiting data that it assumes, the number of transmissions of a block, the time for which it
//! keeps a process, and the age of its channel estimates. Each number is computed by hand at its test.
//!
//! Unless stated otherwise the cell has 6 resource blocks and its UEs are so near that all have MCS 28. A transport
//! block of the whole band in either direction then has 4392 bits, 549 bytes (TS 36.213, table 7.1.7.2.1-1: I_TBS 26, 6
//! resource blocks). With the 2 bytes of an RLC header it holds 547 bytes of data.

use crate::common::*;
use fullpipe_lte::bearer::Qci;
use fullpipe_lte::config::{BearerConfig, CellConfig, Config, Trajectory, UeConfig, UplinkReports};
use fullpipe_lte::radio::amc::Amc;
use fullpipe_lte::radio::antenna::TransmissionMode;
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::rlc::{LinkDirection, RlcMode};
use fullpipe_lte::{AccessNetwork, BlockRecord};
use fullpipe_units::{Duration, Instant, Rate};

fn narrow() -> CellConfig {
    CellConfig::reference("cell", Bandwidth::new(6).unwrap())
}

fn near(ues: usize) -> Config {
    Config::reference(1, narrow(), (0..ues).map(|number| ue(number, 99.0)).collect())
}

/// One packet.
fn packet(way: LinkDirection, bytes: u32, milliseconds: f64) -> Source {
    let first = ms(milliseconds);
    let until = first + Duration::from_nanos(1);
    Source { way, ue: 0, bearer: 0, bytes, first, interval: Duration::from_secs(1), until }
}

fn recorded(config: Config, sources: &[Source], until: f64) -> (AccessNetwork, Story, Vec<BlockRecord>) {
    let mut network = network(config);
    network.record_blocks();
    let story = run(&mut network, sources, ms(until));
    let blocks = network.take_block_records();
    (network, story, blocks)
}

/// A UE 3 km away, where the SINR is 30 - 10 log10(6) - 108.5 + 121.4 = 35.2 dB minus the noise figure. Its CQI is 15 at any
/// SINR, as the gap to the Shannon bound is -ln(5 * 0.199999) / 1.5 = 3.3e-6.
fn overrated(seed: u64, noise_figure_db: f64, phone: UeConfig) -> Config {
    let phone = UeConfig { noise_figure_db, course: Trajectory::stationary(at(3_000.0)), ..phone };
    Config::reference(seed, CellConfig { amc: Amc::Piro { bit_error_rate: 0.199_999 }, ..narrow() }, vec![phone])
}

/// A UE that decodes nothing, at -31 dB.
fn deaf(seed: u64, phone: UeConfig) -> Config {
    overrated(seed, 66.0, phone)
}

fn saturated(number: usize, distance: f64) -> UeConfig {
    let mut phone = ue(number, distance);
    phone.bearers[0].mode = RlcMode::Saturated;
    phone
}

/// UEs that sounded at 99 m in subframe 0 and are at this distance from 4 ms on.
fn vanishing(phones: &mut [UeConfig], distance: f64) {
    for phone in phones {
        phone.course = Trajectory { points: vec![(0.003, at(99.0)), (0.004, at(distance))] };
    }
}

/// The UE decodes no control region, so it sends no feedback. Eight blocks occupy the eight processes, one in each subframe from
/// 0 to 7. The process of subframe 0 is free again in subframe 11 (reference, section 2.3), and its data are lost.
#[test]
fn process_without_feedback_is_released_after_eleven_subframes() {
    let mut all_missed = 0;
    for seed in 1..=32 {
        let mut network = network(deaf(seed, saturated(0, 3_000.0)));
        let mut counted = Vec::new();
        for subframe in 0..=12 {
            network.advance(Instant::ZERO + Duration::from_millis(subframe));
            let counters = &network.ue_status(0).counters[0];
            counted.push((counters.blocks, counters.lost_blocks, counters.control_errors));
        }
        // The last of the eight is on the air in subframe 9. Even below -10 dB, 0.0774 of all control regions are decoded.
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

/// With a saturated UE in the cell, each subframe in which another UE has data gives it 3 of 6 groups, which hold 277
/// bytes (TS 36.213, table 7.1.7.2.1-1). 271 bytes have 2 more in PDCP, and RLC reports 2 for the header: 275. A block
/// of 277 minus its header leaves 0. For 273 bytes 277 are reported and 2 are left when all is sent, for which the UE
/// gets groups once more (reference, section 8.2). They stay empty: there is no block without a PDU.
#[test]
fn downlink_account_decreases_by_a_block_without_header() {
    for (bytes, halves) in [(271, 1), (273, 2), (271 + 275, 2), (273 + 275, 3)] {
        let cell = CellConfig { scheduler: "rr".into(), ..narrow() };
        let config = Config::reference(1, cell, vec![ue(0, 99.0), saturated(1, 99.0)]);
        let (network, story, blocks) = recorded(config, &[packet(LinkDirection::Downlink, bytes, 1.2)], 100.0);
        assert_eq!(story.arrivals.len(), 1);
        let of_the_other = blocks.iter().filter(|block| !block.uplink && block.ue == 1);
        assert_eq!(of_the_other.filter(|block| block.place.1.count_ones() == 3).count(), halves, "{bytes} bytes");
        assert_eq!(network.ue_status(0).counters[0].blocks, u64::from((bytes + 4).div_ceil(277)), "{bytes} bytes");
    }
}

/// 5000 bytes, 2 of PDCP and 2 for RLC's header are in the step up to 5476 (TS 36.321, table 6.1.3.1-1). Ten grants
/// subtract 547 each and leave 6, for which there is an eleventh; ten times 549 would have been enough. The report
/// arrives in subframe 9 and the first grant is used in 13; the eleventh in 19 and 23. A packet that arrives just
/// before is included in its block; with its own report it would be sent in 30.
#[test]
fn uplink_account_decreases_by_a_block_without_header() {
    let sources = [packet(LinkDirection::Uplink, 5_000, 1.2), packet(LinkDirection::Uplink, 60, 18.9)];
    let (_, story, blocks) = recorded(near(1), &sources, 100.0);
    assert_eq!(story.arrivals.len(), 2);
    assert_eq!(blocks.iter().map(|block| block.subframe).collect::<Vec<_>>(), (13..=23).collect::<Vec<_>>());
}

/// The same 5000 bytes, 5002 of data, are sent with ten blocks; the eleventh grant is not used.
#[test]
fn grant_without_data_is_not_used() {
    let (network, story, blocks) = recorded(near(1), &[packet(LinkDirection::Uplink, 5_000, 1.2)], 100.0);
    assert_eq!(story.arrivals.len(), 1);
    assert_eq!(blocks.iter().map(|block| block.subframe).collect::<Vec<_>>(), (13..=22).collect::<Vec<_>>());
    assert_eq!(network.ue_status(0).counters[1].blocks, 10);
}

/// Two packets in a subframe cause two reports for the same boundary, of which the second is sent. Twice 600 + 4 bytes are in the
/// step up to 1326, which takes three grants of 547. If the first report, with the step up to 706, counted too, there would be
/// four.
#[test]
fn last_report_of_a_subframe_counts() {
    let sources = [1.2, 1.4].map(|at| packet(LinkDirection::Uplink, 600, at));
    let (network, story, _) = recorded(near(1), &sources, 100.0);
    assert_eq!(story.arrivals.len(), 2);
    assert_eq!(network.ue_status(0).counters[1].blocks, 3);
}

/// A packet at 1.2 ms is reported at boundary 2; the report arrives in subframe 7, which sends the grant. The UE receives the
/// grant in subframe 9, in the first 3 of 14 symbols, 0.214 ms. Packets that arrive by then are included in the block, and the
/// report at boundary 10 is of an empty buffer. A later packet is reported there; the report arrives in 15, and the packet is on
/// the air in 21.
#[test]
fn packet_that_arrives_during_a_grant_is_included_in_its_block() {
    for (second, subframes) in [(9.0, vec![13]), (9.21, vec![13]), (9.22, vec![13, 21])] {
        let sources = [1.2, second].map(|at| packet(LinkDirection::Uplink, 60, at));
        let (network, story, blocks) = recorded(near(1), &sources, 100.0);
        assert_eq!(story.arrivals.len(), 2);
        assert_eq!(blocks.iter().map(|block| block.subframe).collect::<Vec<_>>(), subframes, "{second} ms");
        // Each packet is in its own PDU, with 2 bytes of PDCP and 2 of RLC.
        assert_eq!(network.ue_status(0).counters[1].pdu_bytes, 2 * (60 + 2 + 2));
    }
}

/// Of 547 bytes for data 62 are used when the subframe begins. The PDU of a second packet of 600 bytes has the other 485 bytes
/// including its header of 2. The report at boundary 10 has the remaining 119 plus 2: it arrives in 15, and the data are sent in
/// 21.
#[test]
fn packet_that_arrives_during_a_grant_uses_the_remaining_room() {
    let sources = [(60, 1.2), (600, 9.1)].map(|(bytes, at)| packet(LinkDirection::Uplink, bytes, at));
    let (network, story, blocks) = recorded(near(1), &sources, 100.0);
    assert_eq!(story.arrivals.len(), 2);
    assert_eq!(blocks.iter().map(|block| block.subframe).collect::<Vec<_>>(), [13, 21]);
    assert_eq!(network.ue_status(0).counters[1].pdu_bytes, 549 + (602 - (549 - 64 - 2) + 2));
}

/// 60 bytes every 0.95 ms compete with a saturated UE, with 25 resource blocks. From 1.22 ms on the first packet of each subframe
/// arrives 0.05 ms earlier than in the one before. The next report is of an empty buffer if no packet arrives between the
/// reception of the grant, at 0.214 ms, and the end of the subframe. That happens at 0.17, 0.12 and 0.07 ms, in 3 of 19
/// subframes, so the UE is granted in 16 of 19. In those the saturated UE has 12 or 13 of 25 resource blocks, 8.5 Mbit/s,
/// otherwise all, 17.92: together 10.0, as with ns-3 3.44.
#[test]
fn saturated_ue_gets_the_subframes_in_which_a_trickle_is_not_granted() {
    let cell = CellConfig::reference("cell", Bandwidth::new(25).unwrap());
    let config = Config::reference(1, cell, (0..2).map(|number| ue(number, 99.0)).collect());
    let interval = Duration::from_micros(950);
    let trickle = Source { ue: 1, interval, until: ms(4_000.0), ..packet(LinkDirection::Uplink, 60, 1.22) };
    let sources = [saturating(LinkDirection::Uplink, 0, 1400, 25.0, ms(4_000.0)), trickle];
    let (network, story, _) = recorded(config, &sources, 4_000.0);
    let share = network.ue_status(1).counters[1].blocks as f64 / 4_000.0;
    assert!((share / (16.0 / 19.0) - 1.0).abs() < 0.01, "{share}");
    let rate = goodput_mbps(&story, LinkDirection::Uplink, 0, ms(1_000.0), ms(4_000.0));
    assert!((rate / 10.0 - 1.0).abs() < 0.01, "{rate}");
}

/// One packet on each of two bearers of one logical channel group: 2008 bytes, in the step up to 2127, take four grants of 547.
/// In each block each bearer has 274 bytes, 272 without its header, of its 1002: both are complete with the fourth. Reported at
/// boundary 2; the report arrives in subframe 7, with grants for 13 to 16.
#[test]
fn bearers_share_the_uplink_blocks_of_a_ue() {
    let mut config = near(1);
    config.ues[0].bearers.push(BearerConfig::best_effort(RlcMode::Unacknowledged, 1_000_000));
    let sources = [0, 1].map(|bearer| Source { bearer, ..packet(LinkDirection::Uplink, 1_000, 1.2) });
    let (network, story, blocks) = recorded(config, &sources, 100.0);
    assert_eq!(blocks.iter().map(|block| block.subframe).collect::<Vec<_>>(), [13, 14, 15, 16]);
    // 13 of the 14 symbols of subframe 16, and both links of the core network.
    assert!(story.arrivals.iter().all(|arrival| arrival.at > ms(16.928) && arrival.at < ms(16.940)), "{story:?}");
    assert_eq!((story.arrivals.len(), network.ue_status(0).counters[1].pdu_bytes), (2, 2 * (1_002 + 4 * 2)));
}

/// Subframe, number of earlier transmissions and result of each transmission of blocks.
fn attempts(blocks: &[BlockRecord]) -> Vec<(u64, u8, bool)> {
    blocks.iter().map(|block| (block.subframe, block.redundancy, block.decoded)).collect()
}

/// Nothing is decoded at -31 dB. A packet that arrives in subframe 1 is scheduled in 2 and on the air in 4, and three more times,
/// each seven subframes later (reference, section 2.3). Two layers are two blocks.
#[test]
fn downlink_block_is_sent_four_times() {
    // 800 bytes exceed the block of one layer, which has 549 bytes with MCS 28 and fewer with any other.
    let modes = [(TransmissionMode::SingleAntenna, 1, 100), (TransmissionMode::OpenLoopMultiplexing, 2, 800)];
    for (mode, layers, bytes) in modes {
        let mut config = deaf(1, UeConfig { transmission_mode: mode, ..ue(0, 3_000.0) });
        config.errors.control = false;
        let (network, _, blocks) = recorded(config, &[packet(LinkDirection::Downlink, bytes, 1.2)], 200.0);
        for layer in 0..layers {
            let of: Vec<BlockRecord> = blocks.iter().filter(|block| block.layer == layer).copied().collect();
            assert_eq!(attempts(&of), [(4, 0, false), (11, 1, false), (18, 2, false), (25, 3, false)]);
        }
        let counters = &network.ue_status(0).counters[0];
        let counted = (counters.blocks, counters.retransmissions, counters.errors, counters.lost_blocks);
        let layers = u64::from(layers);
        assert_eq!(counted, (layers, 3 * layers, 4 * layers, layers));
    }
}

/// The grant uses a measurement at 99 m, MCS 28, but the transmission from 300 km arrives at 23 - 7.8 - 147.7 + 121.4 - 5 = -16
/// dB. Reported at boundary 5, received in 10, on the air in 16.
#[test]
fn uplink_block_is_sent_four_times() {
    let mut config = near(1);
    vanishing(&mut config.ues, 300_000.0);
    config.cells[0].uplink_reports = UplinkReports::Sounding { period: 320 };
    config.errors.control = false;
    let (network, _, blocks) = recorded(config, &[packet(LinkDirection::Uplink, 100, 4.2)], 200.0);
    assert_eq!(attempts(&blocks), [(16, 0, false), (23, 1, false), (30, 2, false), (37, 3, false)]);
    assert_eq!(blocks[0].mcs, 28);
    let counters = &network.ue_status(0).counters[1];
    assert_eq!((counters.blocks, counters.retransmissions, counters.errors, counters.lost_blocks), (1, 3, 4, 1));
}

#[test]
fn block_is_sent_once_without_harq() {
    let mut down = deaf(1, ue(0, 3_000.0));
    let mut up = near(1);
    vanishing(&mut up.ues, 300_000.0);
    up.cells[0].uplink_reports = UplinkReports::Sounding { period: 320 };
    for (way, config) in LinkDirection::BOTH.into_iter().zip([&mut down, &mut up]) {
        config.cells[0].harq = false;
        config.errors.control = false;
        let (network, _, blocks) = recorded(config.clone(), &[packet(way, 100, 4.2)], 200.0);
        let counters = &network.ue_status(0).counters[way as usize];
        assert_eq!((blocks.len(), counters.retransmissions, counters.lost_blocks), (1, 0, 1), "{way:?}");
    }
}

/// At 6.2 dB a bit of 64QAM carries (0.75 + 0.18 + 0.09) / 3 = 0.34 of information. One attempt of MCS 28 would need nearly all
/// of it. Two have the code rate 0.46 together, and three 0.31, for which 0.215 is the curve. So each block is decoded with its
/// third attempt, whatever its process held before. In the uplink 6.2 dB are 23 - 7.8 - 125.5 + 121.4 - 5, at 23.3 km.
#[test]
fn attempts_of_one_block_do_not_count_for_the_next() {
    let mut down = overrated(1, 29.0, saturated(0, 3_000.0));
    let mut up = Config::reference(1, narrow(), vec![saturated(0, 99.0)]);
    vanishing(&mut up.ues, 23_300.0);
    up.cells[0].uplink_reports = UplinkReports::Sounding { period: 320 };
    for (uplink, config) in [(false, &mut down), (true, &mut up)] {
        config.errors.control = false;
        let (_, _, blocks) = recorded(config.clone(), &[], 300.0);
        let blocks = blocks.iter().filter(|block| block.uplink == uplink && block.subframe > 11);
        let blocks: Vec<&BlockRecord> = blocks.filter(|block| block.mcs == 28).collect();
        assert!(blocks.len() > 250, "{uplink}: {}", blocks.len());
        let wrong = blocks.iter().find(|block| block.decoded != (block.redundancy == 2));
        assert_eq!(wrong, None);
    }
}

/// 15 resource blocks are shared by three saturated UEs, five each. The first has moved out of range. Its blocks, on the air from
/// subframe 11 on, are new for seven subframes and are retransmitted in the next three times seven, in the same resource blocks,
/// while the others share the remaining ten. In a subframe with a retransmission a UE gets no other block.
#[test]
fn uplink_retransmissions_leave_the_rest_to_other_ues() {
    let cell = CellConfig {
        uplink_reports: UplinkReports::Sounding { period: 320 },
        ..CellConfig::reference("cell", Bandwidth::new(15).unwrap())
    };
    let mut config = Config::reference(1, cell, (0..3).map(|number| saturated(number, 99.0)).collect());
    vanishing(&mut config.ues[..1], 300_000.0);
    config.errors.control = false;
    let (_, _, blocks) = recorded(config, &[], 120.0);
    for ue in 0..3 {
        let of = blocks.iter().filter(|block| block.uplink && block.ue == ue);
        for (subframe, block) in (11..).zip(of) {
            let redundancy = if ue == 0 { ((subframe - 11) / 7 % 4) as u8 } else { 0 };
            let found = (block.subframe, block.place, block.redundancy, block.decoded);
            assert_eq!(found, (subframe, (5 * u32::from(ue), 5), redundancy, ue > 0), "UE {ue}");
        }
    }
}

/// Two of five saturated UEs fit into 6 resource blocks, three each: they take turns.
#[test]
fn ues_take_turns_in_the_uplink() {
    let config = Config::reference(1, narrow(), (0..5).map(|number| saturated(number, 99.0)).collect());
    let (_, _, blocks) = recorded(config, &[], 30.0);
    let turns: Vec<u16> = blocks.iter().filter(|block| block.uplink).map(|block| block.ue).take(15).collect();
    assert_eq!(turns, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
}

/// Each group is rounded up to its step. 746 bytes, with headers 750, are in the step up to 826, and twice that takes four grants
/// of 547. 1500 bytes of one group are in the step up to 1552, which takes three. The first three grants are used in subframes 13
/// to 15 and hold all data. The fourth is received in 12. A packet that arrives before it is included in its block in 16;
/// otherwise it is reported and sent in 23.
#[test]
fn logical_channel_groups_are_reported_separately() {
    for (qci, last) in [(1, 16), (8, 23)] {
        let mut config = near(1);
        config.cells[0].scheduler = "pss".into();
        let mut second = BearerConfig::best_effort(RlcMode::Unacknowledged, 1_000_000);
        second.qci = Qci::new(qci).unwrap();
        second.guaranteed = Rate::from_bits_per_second(1_000_000);
        config.ues[0].bearers.push(second);
        let mut sources = [0, 1].map(|bearer| Source { bearer, ..packet(LinkDirection::Uplink, 746, 1.2) }).to_vec();
        sources.push(packet(LinkDirection::Uplink, 60, 11.9));
        let (_, _, blocks) = recorded(config, &sources, 100.0);
        let subframes: Vec<u64> = blocks.iter().map(|block| block.subframe).collect();
        assert_eq!(subframes, [13, 14, 15, last], "QCI {qci}");
    }
}

/// A grant is read in subframe 9, in which a report about packets of subframe 8 is also created. The report is created first,
/// with 102 and 872 bytes of data and 2 for each, in the step up to 1132. So although the grant then carries a part of the data,
/// the report causes three grants, not the one that would be enough for the remaining 429 bytes. The second and the third of
/// them, received in 17 and 18, carry packets that arrive just before.
#[test]
fn report_is_created_before_the_grant_of_its_subframe_is_used() {
    let sources =
        [(100, 1.2), (870, 8.5), (60, 16.9), (60, 17.9)].map(|(bytes, at)| packet(LinkDirection::Uplink, bytes, at));
    let (_, story, blocks) = recorded(near(1), &sources, 100.0);
    assert_eq!(story.arrivals.len(), 4);
    assert_eq!(blocks.iter().map(|block| block.subframe).collect::<Vec<_>>(), [13, 20, 21, 22]);
}

/// 100 bytes and 40 of the tunnel take 112 ns on each link at 10 Gbit/s. A packet that arrives at the eNB at 1.2 ms is scheduled
/// in subframe 2 and decoded a nanosecond before the end of 4. The uplink packet is on the air in 13, is decoded after 13 of its
/// 14 symbols minus a nanosecond, and then passes both links.
#[test]
fn packets_arrive_at_the_exact_nanosecond() {
    for (way, nanoseconds) in [(LinkDirection::Downlink, 4_999_999), (LinkDirection::Uplink, 13_928_570 + 2 * 112)] {
        let (_, story, _) = recorded(near(1), &[packet(way, 100, 1.2)], 100.0);
        assert_eq!(story.arrivals[0].at.as_nanos(), nanoseconds, "{way:?}");
    }
    // At the eNB at 1.999999 ms, or at 2 ms, when subframe 2, which has another packet to send, has begun without it.
    for (sent, arrives) in [(1_999_775, 4_999_999), (1_999_776, 5_999_999)] {
        let source = Source { first: Instant::from_nanos(sent), ..packet(LinkDirection::Downlink, 100, 2.0) };
        let (_, story, _) = recorded(near(1), &[packet(LinkDirection::Downlink, 100, 1.2), source], 100.0);
        assert_eq!(story.arrivals[1].at.as_nanos(), arrives);
    }
}

/// UEs sound one after the other, every 40 subframes: the first in 0, 40 and 80, the fourth in 3, 43 and 83. Both move from 99 m
/// to 20 km between 60 and 61 ms. A sounding result is available in the next subframe, 81 and 84, which grant 87 and 90.
#[test]
fn sounding_is_used_from_the_next_subframe_on() {
    let mut config = near(4);
    for phone in &mut config.ues {
        phone.course = Trajectory { points: vec![(0.060, at(99.0)), (0.061, at(20_000.0))] };
    }
    config.errors.data = false;
    config.errors.control = false;
    let sources = [0, 3].map(|ue| Source {
        ue,
        interval: Duration::from_millis(1),
        until: ms(200.0),
        ..packet(LinkDirection::Uplink, 100, 0.5)
    });
    let (_, _, blocks) = recorded(config, &sources, 150.0);
    for (ue, known) in [(0, 87), (3, 90)] {
        let of: Vec<&BlockRecord> = blocks.iter().filter(|block| block.ue == ue && block.subframe > 20).collect();
        assert!(of.windows(2).all(|pair| pair[1].subframe == pair[0].subframe + 1), "a block in each subframe");
        let wrong = of.iter().find(|block| (block.mcs < 28) != (block.subframe >= known));
        assert_eq!(wrong, None, "UE {ue}");
    }
}

/// The ninth UE sounds for the first time in subframe 8; until then the eNB assumes its channel of subframe 0.
#[test]
fn first_sounding_is_used_from_the_next_subframe_on() {
    let mut config = near(9);
    vanishing(&mut config.ues, 20_000.0);
    config.errors.data = false;
    config.errors.control = false;
    let source = Source {
        ue: 8,
        interval: Duration::from_millis(1),
        until: ms(50.0),
        ..packet(LinkDirection::Uplink, 100, 0.5)
    };
    let (_, _, blocks) = recorded(config, &[source], 50.0);
    // Reported at boundary 1, received in 6, on the air in 12. The grant of 9 is for 15.
    let blocks: Vec<(u64, bool)> = blocks.iter().map(|block| (block.subframe, block.mcs == 28)).collect();
    assert_eq!(blocks[..6], [(12, true), (13, true), (14, true), (15, false), (16, false), (17, false)]);
}

/// CQI is measured in even subframes and first used on the air seven subframes later (reference, section 2.3). The UE moves away
/// between 60 and 61 ms, or between 61 and 62, which is measured in subframe 62 and available in 67.
#[test]
fn cqi_is_used_seven_subframes_after_its_measurement() {
    for leaves in [0.060, 0.061] {
        let mut config = Config::reference(1, narrow(), vec![saturated(0, 99.0)]);
        config.ues[0].course = Trajectory { points: vec![(leaves, at(99.0)), (leaves + 0.001, at(20_000.0))] };
        config.errors.data = false;
        config.errors.control = false;
        let (_, _, blocks) = recorded(config, &[], 100.0);
        let of: Vec<&BlockRecord> = blocks.iter().filter(|block| !block.uplink).collect();
        assert!(of.windows(2).all(|pair| pair[1].subframe == pair[0].subframe + 1), "a block in each subframe");
        let wrong = of.iter().find(|block| (block.mcs < 28) != (block.subframe >= 69));
        assert_eq!(wrong, None);
    }
}

/// A UE that was never in range is measured by its data only. The first packet, without a measurement, is sent with MCS 0. Its
/// four attempts, the last of them in subframe 33, show that there is no channel. This measurement is used for 1000 subframes
/// (reference, section 5.4): data that wait since 0.9 s are granted in 1033 and on the air in 1039.
#[test]
fn uplink_measurement_is_used_for_a_thousand_subframes() {
    let mut config = Config::reference(1, narrow(), vec![ue(0, 300_000.0)]);
    config.cells[0].uplink_reports = UplinkReports::Data;
    config.errors.control = false;
    // 5 bytes are 9 with all headers, in the step up to 10. A block of MCS 0 holds 19.
    let sources = [0.2, 900.2].map(|at| packet(LinkDirection::Uplink, 5, at));
    let (_, _, blocks) = recorded(config, &sources, 1_050.0);
    let expected = [12, 19, 26, 33, 1_039, 1_046];
    assert_eq!(blocks.iter().map(|block| block.subframe).collect::<Vec<_>>(), expected);
    assert_eq!(blocks[4].redundancy, 0);
}

/// The scheduler uses the waiting time of the oldest packet on any of a UE's bearers. The second UE's arrived three subframes
/// before the first UE's, and has all groups until it is sent: 8002 bytes of data in 15 blocks of 547, minus half of a block for
/// a packet on its other bearer, so in 16.
#[test]
fn oldest_packet_of_a_ue_determines_its_waiting_time() {
    let mut config = near(2);
    config.cells[0].scheduler = "cqa".into();
    config.ues[1].bearers.push(BearerConfig::best_effort(RlcMode::Unacknowledged, 1_000_000));
    let sources = [(1, 0, 8_000, 1.2), (0, 0, 8_000, 4.2), (1, 1, 100, 8.2)].map(|(ue, bearer, bytes, at)| Source {
        ue,
        bearer,
        ..packet(LinkDirection::Downlink, bytes, at)
    });
    let (_, _, blocks) = recorded(config, &sources, 100.0);
    let turns: Vec<u16> = blocks.iter().map(|block| block.ue).collect();
    assert_eq!(turns[..16], [1; 16]);
    assert_eq!(turns[16], 0);
}

/// Two layers of a UE have the same SINR: at 35.2 - 13 - 2.8 = 19.4 dB a bit of 64QAM carries 0.935 of information. The curve of
/// MCS 28 has its center at 0.934 and a deviation of 0.007, so about four of ten blocks are lost. The results of the two layers
/// are independent: each combination occurs in at least 0.16 of all pairs.
#[test]
fn layers_are_lost_independently() {
    let phone = UeConfig { transmission_mode: TransmissionMode::OpenLoopMultiplexing, ..saturated(0, 3_000.0) };
    let mut config = overrated(1, 13.0, phone);
    config.cells[0].harq = false;
    let (_, _, blocks) = recorded(config, &[], 500.0);
    let blocks: Vec<BlockRecord> = blocks.into_iter().filter(|block| !block.uplink).collect();
    let pairs: Vec<[bool; 2]> = blocks.chunks(2).map(|pair| [pair[0].decoded, pair[1].decoded]).collect();
    for outcome in [[true, true], [true, false], [false, true], [false, false]] {
        let count = pairs.iter().filter(|pair| **pair == outcome).count();
        // The standard deviation is 8 of 500.
        assert!(count > 40, "{outcome:?}: {count} of {}", pairs.len());
    }
}

/// A packet out of range is never granted. After PDCP discards it, the UE reports an empty buffer. After the 320 ms of the
/// repeated report there is nothing left to do.
#[test]
fn discarded_packet_is_not_awaited() {
    let mut config = near(1);
    config.ues[0].course = Trajectory::stationary(at(300_000.0));
    config.ues[0].bearers[0].limits.discard_after = Some(Duration::from_millis(50));
    let (network, story, blocks) = recorded(config, &[packet(LinkDirection::Uplink, 100, 1.2)], 400.0);
    assert_eq!((blocks.len(), story.lost[1]), (0, 1));
    assert!(network.next_deadline().is_never());
}
