//! A test environment of an access network: sources of packets of one size, and a record of the packets that arrive.

#![allow(dead_code, reason = "each test uses only some items")]

use fullpipe_lte::config::{Config, Position, UeConfig};
use fullpipe_lte::rlc::LinkDirection;
use fullpipe_lte::{AccessNetwork, OfferedPacket, PacketOutcome};
use fullpipe_units::{Duration, Instant};

/// Packets of one size, evenly spaced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) way: LinkDirection,
    pub(crate) ue: u16,
    pub(crate) bearer: u8,
    pub(crate) bytes: u32,
    pub(crate) first: Instant,
    pub(crate) interval: Duration,
    pub(crate) until: Instant,
}

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) way: LinkDirection,
    pub(crate) ue: u16,
    pub(crate) bytes: u32,
    pub(crate) sent: Instant,
    pub(crate) at: Instant,
}

/// The result of a run.
#[derive(Debug, Default)]
pub(crate) struct Story {
    pub(crate) arrivals: Vec<Arrival>,
    pub(crate) offered: [u64; 2],
    pub(crate) dropped: [u64; 2],
    pub(crate) lost: [u64; 2],
}

/// A position at this distance from the origin.
pub(crate) fn at(distance: f64) -> Position {
    Position { x: distance, y: 0.0, z: 0.0 }
}

/// A UE at this distance with a large buffer.
pub(crate) fn ue(number: usize, distance: f64) -> UeConfig {
    UeConfig::reference(&format!("ue{number}"), at(distance), 1_000_000)
}

/// Runs a network with these sources until `end` and checks that packets are conserved.
pub(crate) fn run(network: &mut AccessNetwork, sources: &[Source], end: Instant) -> Story {
    let story = run_on(network, sources, end);
    let inside = network.pending_packets();
    for way in LinkDirection::BOTH {
        let index = way as usize;
        let arrived = story.arrivals.iter().filter(|arrival| arrival.way == way).count() as u64;
        let accounted = arrived + story.dropped[index] + story.lost[index] + inside[index];
        assert_eq!(story.offered[index], accounted, "packets are conserved: {way:?}");
    }
    story
}

/// Continues the run of a network with other sources.
pub(crate) fn run_on(network: &mut AccessNetwork, sources: &[Source], end: Instant) -> Story {
    let mut story = Story::default();
    let mut next: Vec<Instant> = sources.iter().map(|source| source.first).collect();
    let mut sent: Vec<(Instant, u32)> = Vec::new();
    loop {
        let due = next.iter().copied().enumerate().min_by_key(|(index, at)| (*at, *index));
        let wake = network.next_deadline();
        let (at, index) = due.map_or((Instant::NEVER, 0), |(index, at)| (at, index));
        // The beginning of a subframe precedes packets that arrive at the same time.
        if wake <= at {
            if wake > end {
                break;
            }
            network.advance(wake);
        } else {
            if at > end {
                break;
            }
            let source = sources[index];
            let packet = OfferedPacket { bytes: source.bytes, token: sent.len() as u64 };
            sent.push((at, source.bytes));
            story.offered[source.way as usize] += 1;
            match source.way {
                LinkDirection::Downlink => network.send_downlink(at, source.ue, source.bearer, packet),
                LinkDirection::Uplink => network.send_uplink(at, source.ue, source.bearer, packet),
            }
            let then = at + source.interval;
            next[index] = if then < source.until { then } else { Instant::NEVER };
        }
        while let Some(output) = network.poll_output() {
            let way = output.way;
            match output.fate {
                PacketOutcome::Delivered => {
                    // Packets offered before these sources started do not count.
                    let Some(&(sent, bytes)) = sent.get(output.token as usize) else { continue };
                    story.arrivals.push(Arrival { way, ue: output.ue, bytes, sent, at: output.at });
                }
                PacketOutcome::BufferFull => story.dropped[way as usize] += 1,
                PacketOutcome::Lost => story.lost[way as usize] += 1,
            }
        }
    }
    story
}

/// A saturating source: this many payload bytes in UDP over IPv4 at `rate_mbps`, from 0 on.
pub(crate) fn saturating(way: LinkDirection, ue: u16, payload: u32, rate_mbps: f64, until: Instant) -> Source {
    let interval = Duration::from_secs_f64(f64::from(payload + 28) * 8.0 / (rate_mbps * 1e6));
    Source { way, ue, bearer: 0, bytes: payload + 28, first: Instant::ZERO, interval, until }
}

/// UDP payload per second that a UE received in an interval, in Mbit/s.
pub(crate) fn goodput_mbps(story: &Story, way: LinkDirection, ue: u16, from: Instant, to: Instant) -> f64 {
    let bytes: u64 = story
        .arrivals
        .iter()
        .filter(|a| a.way == way && a.ue == ue && a.at >= from && a.at < to)
        .map(|a| u64::from(a.bytes - 28))
        .sum();
    bytes as f64 * 8.0 / (to - from).as_secs_f64() / 1e6
}

/// Creates a network, or panics with the reason.
pub(crate) fn network(config: Config) -> AccessNetwork {
    AccessNetwork::new(config).unwrap_or_else(|error| panic!("{error}"))
}

/// The time this many milliseconds after the start.
pub(crate) fn ms(milliseconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(milliseconds * 1e-3)
}
