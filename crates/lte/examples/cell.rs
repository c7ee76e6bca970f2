//! Simulates a saturated cell, to measure its cost: `cell [UES [METERS|spread [none|epa|repeat [SECONDS]]]]`. By default there is
//! one UE at 99 m with EPA fading at 3 km/h for 2 s. All UEs together are offered 90 Mbit/s in packets with 1400 bytes of UDP
//! payload; the cell has 100 resource blocks. `repeat` is EPA fading that is generated once, for 2 s, as in the benchmark
//! scenarios. The digest covers the outcome of each packet: two builds with the same digest have the same results.
//!
//! `cargo run --release -p fullpipe-lte --example cell -- 500 spread repeat`

use fullpipe_lte::config::{CellConfig, Config, Position, UeConfig};
use fullpipe_lte::radio::bandwidth::Bandwidth;
use fullpipe_lte::radio::fading::{DelayProfile, Fading, FadingParameters, Generator, TraceSampling};
use fullpipe_lte::{AccessNetwork, OfferedPacket, PacketOutcome};
use fullpipe_units::{Duration, Instant, RandomStream};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, otherwise: &str| arguments.get(index).cloned().unwrap_or(otherwise.into());
    let ues: usize = argument(0, "1").parse()?;
    let place = argument(1, "99");
    let seconds: u64 = argument(3, "2").parse()?;
    let bandwidth = Bandwidth::new(100)?;
    let phones = (0..ues).map(|number| {
        let name = format!("ue{number}");
        // Uniform over the area between 50 m and 3 km.
        let metres = match place.parse() {
            Ok(metres) => metres,
            Err(_) => 50.0 + 2_950.0 * RandomStream::new(1, &name, "place").uniform().sqrt(),
        };
        UeConfig::reference(&name, Position { x: metres, y: 0.0, z: 0.0 }, 1_000_000)
    });
    let mut config = Config::reference(1, CellConfig::reference("cell", bandwidth), phones.collect());
    let recipe = FadingParameters::ns3_traces(DelayProfile::ExtendedPedestrianA, 3.0);
    match argument(2, "epa").as_str() {
        "epa" => {
            config.downlink_fading = Fading::generator(recipe, 1, bandwidth)?;
            config.uplink_fading = Fading::generator(recipe, 2, bandwidth)?;
        }
        "repeat" => {
            let trace = Generator::new(recipe, 1, bandwidth.resource_blocks())?.to_trace(2);
            config.downlink_fading = Fading::trace(Arc::new(trace), TraceSampling::Continuous, 1, bandwidth)?;
        }
        _ => {}
    }
    let mut network = AccessNetwork::new(config)?;
    let end = Instant::ZERO + Duration::from_secs(seconds);
    // One packet after another, to the UEs in turn.
    let interval = Duration::from_nanos(1_428 * 8 * 1_000 / 90);
    let (mut at, mut ue, mut delivered) = (Instant::ZERO, 0, 0u64);
    let (mut token, mut digest) = (0, 0u64);
    while at < end {
        if network.next_deadline() <= at {
            network.advance(network.next_deadline());
        } else {
            network.send_downlink(at, ue, 0, OfferedPacket { bytes: 1_428, token });
            token += 1;
            ue = (ue + 1) % ues as u16;
            at += interval;
        }
        while let Some(output) = network.poll_output() {
            delivered += u64::from(output.fate == PacketOutcome::Delivered);
            let outcome = output.at.as_nanos() ^ output.token << 24 ^ (output.fate as u64) << 60;
            digest = (digest.rotate_left(5) ^ outcome).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }
    let goodput = delivered as f64 * 1_400.0 * 8.0 / seconds as f64 / 1e6;
    println!("{ues} UEs: {goodput:.2} Mbit/s, {delivered} packets in {seconds} s, digest {digest:016x}");
    Ok(())
}
