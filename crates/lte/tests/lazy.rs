//! Tests that optimizations do not change results. A network that evaluates all reports, rows and control regions in every
//! subframe, and one that evaluates them on demand, send the same transport blocks and deliver the same packets at the same
//! times.

use crate::common::*;
use fullpipe_lte::config::{BearerConfig, CellConfig, Config, CqiSource, FadingStart, Position, Trajectory};
use fullpipe_lte::radio::antenna::TransmissionMode;
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::fading::{DelayProfile, Fading, FadingParameters, Generator, TraceSampling};
use fullpipe_lte::rlc::{LinkDirection, RlcMode};
use fullpipe_lte::{AccessNetwork, OfferedPacket};
use fullpipe_units::{Duration, Instant, RandomStream};
use std::sync::Arc;

/// A varied configuration: two cells or one, UEs near, far and moving, UM and AM, sparse and saturating traffic in both
/// directions.
fn world(seed: u64, scheduler: &str, cells: usize, traced: bool) -> (Config, Vec<Source>) {
    let mut stream = RandomStream::new(seed, scheduler, "world");
    let band = Bandwidth::new([25, 50, 100][stream.uniform_below(3) as usize]).unwrap();
    let mut cell = CellConfig::reference("a", band);
    cell.scheduler = scheduler.into();
    cell.cqi_source = if stream.bernoulli(0.5) { CqiSource::Control } else { CqiSource::Mixed };
    let ues = (0..8).map(|number| {
        let mut phone = ue(number, stream.uniform_between(50.0, 9_000.0));
        phone.cell = number % cells;
        if number == 3 {
            let far = Position { x: 12_000.0, y: 100.0, z: 0.0 };
            phone.course = Trajectory { points: vec![(0.2, at(40.0)), (1.4, far)] };
        }
        if number == 5 {
            phone.transmission_mode = TransmissionMode::OpenLoopMultiplexing;
        }
        let mode = if number % 2 == 0 { RlcMode::Unacknowledged } else { RlcMode::Acknowledged };
        phone.bearers = vec![BearerConfig::best_effort(mode, 100_000)];
        phone
    });
    let mut config = Config::reference(seed, cell.clone(), ues.collect());
    if cells == 2 {
        let other = CellConfig { name: "b".into(), position: Position { x: 6_000.0, y: 0.0, z: 0.0 }, ..cell };
        config.cells.push(other);
    }
    let recipe = FadingParameters::ns3_traces(DelayProfile::ExtendedPedestrianA, 3.0);
    config.downlink_fading = if traced {
        let trace = Generator::new(recipe, 9, band.resource_blocks()).unwrap().to_trace(2);
        Fading::trace(Arc::new(trace), TraceSampling::Windows { milliseconds: 500 }, seed, band).unwrap()
    } else {
        Fading::generator(recipe, seed, band).unwrap()
    };
    config.uplink_fading = Fading::generator(recipe, seed + 1, band).unwrap();
    if seed.is_multiple_of(2) {
        // Sources of packets of this size start within the first 400 ms.
        config.fading_begins = FadingStart::Packet { least_bytes: 800 };
    }
    let sources = (0..8u16).flat_map(|ue| LinkDirection::BOTH.map(|way| (ue, way))).map(|(ue, way)| {
        // From one packet per 300 ms to eight per millisecond.
        let nanoseconds = [300_000_000, 20_000_000, 1_000_000, 125_000][stream.uniform_below(4) as usize];
        Source {
            way,
            ue,
            bearer: 0,
            bytes: 40 + stream.uniform_below(1_460) as u32,
            first: ms(stream.uniform_between(0.0, 400.0)),
            interval: Duration::from_nanos(nanoseconds + stream.uniform_below(1_000)),
            until: ms(stream.uniform_between(500.0, 1_500.0)),
        }
    });
    (config, sources.collect())
}

#[test]
fn lazy_and_eager_networks_send_the_same_blocks() {
    let mut total = 0;
    for (seed, scheduler) in
        [(1, "pf"), (2, "rr"), (3, "fd-mt"), (4, "tta"), (5, "td-bet"), (6, "fd-bet"), (7, "pf"), (8, "td-mt")]
    {
        let worlds = [(1, false, false), (1, true, false), (2, false, false), (1, true, true), (2, false, true)];
        for (cells, traced, outer_loop) in worlds {
            let (mut config, sources) = world(seed, scheduler, cells, traced);
            config.cells.iter_mut().for_each(|cell| cell.outer_loop = outer_loop);
            let stories = [false, true].map(|eager| {
                let mut network = network(Config { eager, ..config.clone() });
                network.record_blocks();
                let story = run(&mut network, &sources, ms(1_600.0));
                let counters: Vec<_> = (0..8).map(|ue| network.ue_status(ue).counters).collect();
                (network.take_block_records(), story.arrivals, counters)
            });
            let [lazy, eager] = stories;
            let difference = lazy.0.iter().zip(&eager.0).find(|(a, b)| a != b);
            assert_eq!(difference, None, "{seed} {scheduler} {cells} {traced} {outer_loop}");
            assert_eq!(lazy.0.len(), eager.0.len());
            assert_eq!(lazy.1, eager.1);
            assert_eq!(lazy.2, eager.2);
            // The comparison is not trivial: there are errors.
            assert!(lazy.0.iter().any(|block| !block.decoded), "{seed} {scheduler}: no errors");
            total += lazy.0.len();
        }
    }
    assert!(total > 50_000, "{total} blocks");
}

/// Downlink packets are offered when they arrive, or all together as late as possible.
#[test]
fn packets_offered_late_are_sent_in_the_same_blocks() {
    let (end, mut total) = (ms(1_600.0), 0);
    for (seed, cells) in [(1, 1), (2, 2), (4, 1)] {
        let (config, sources) = world(seed, "pf", cells, true);
        let mut packets = Vec::new();
        for source in sources.iter().filter(|source| source.way == LinkDirection::Downlink) {
            let times = std::iter::successors(Some(source.first), |&at| Some(at + source.interval));
            packets.extend(times.take_while(|at| *at < source.until).map(|at| (at, source.ue, source.bytes)));
        }
        packets.sort_unstable();
        let [timely, late] = [false, true].map(|late| {
            let mut network = network(config.clone());
            network.record_blocks();
            let mut outputs = Vec::new();
            let mut coming = packets.iter().enumerate().peekable();
            loop {
                let next = coming.peek().map_or(Instant::NEVER, |(_, packet)| packet.0);
                let offer_by = if late && !next.is_never() { AccessNetwork::latest_offer_time(next) } else { next };
                let now = network.next_deadline().min(offer_by);
                if now > end {
                    break;
                }
                // A packet that arrives at the beginning of a subframe follows it.
                let wakes = network.next_deadline() == now;
                while let Some((token, &(at, ue, bytes))) =
                    coming.next_if(|(_, packet)| packet.0 < now || (packet.0 == now && !wakes))
                {
                    network.send_downlink(at, ue, 0, OfferedPacket { bytes, token: token as u64 });
                }
                network.advance(now);
                network.drain_outputs(|told| outputs.extend_from_slice(told));
            }
            (network.take_block_records(), outputs)
        });
        assert_eq!(timely.0.iter().zip(&late.0).find(|(a, b)| a != b), None, "{seed}");
        assert_eq!(timely, late);
        // The comparison is not trivial: packets arrive.
        total += timely.1.len();
    }
    assert!(total > 1_000, "{total} packets");
}

#[test]
fn idle_network_needs_no_calls() {
    let (config, _) = world(1, "pf", 1, false);
    let mut network = network(config);
    network.advance(ms(0.0));
    assert!(network.next_deadline().is_never());
    // One small packet: from its subframe to its HARQ acknowledgment, which reaches the eNB five subframes after its
    // transmission.
    let once = Source {
        way: LinkDirection::Downlink,
        ue: 0,
        bearer: 0,
        bytes: 100,
        first: ms(1_000.5),
        interval: Duration::from_secs(1),
        until: ms(1_000.6),
    };
    let story = run(&mut network, &[once], ms(2_000.0));
    assert_eq!(story.arrivals.len(), 1);
    assert!(network.next_deadline().is_never());
}
