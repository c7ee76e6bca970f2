//! Simulates saturated stations, to measure the cost of the model: `saturated [STATIONS [SECONDS [IDLE]]]`. IDLE is the number
//! of stations without packets. By default there is one station for 10 s, with 802.11ac in 80 MHz, two streams, MCS 9 and the
//! short guard interval at 5 m, and UDP packets with 1472 bytes of payload. The digest covers the outcome of each packet: two
//! builds with the same digest have the same results.
//!
//! `time cargo run --release -p fullpipe-wifi --example saturated -- 50`

use fullpipe_network::{MediumDirection, MediumOutcome};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wifi::config::{Config, StationConfig};
use fullpipe_wifi::phy::{AccessCategory, ChannelWidth, GuardInterval, MultiStreamRate, PhyRate, Standard};
use fullpipe_wifi::rate_control::RateControlConfig;
use fullpipe_wifi::{BasicServiceSet, OfferedPacket};

/// Packets that each station keeps in its queue.
const QUEUED: u32 = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize, otherwise: u64| arguments.get(index).map_or(Ok(otherwise), |text| text.parse());
    let (stations, seconds, idle) = (argument(0, 1)? as u32, argument(1, 10)?, argument(2, 0)? as u32);
    let (width, guard) = (ChannelWidth::Mhz80, GuardInterval::Short);
    let rate = RateControlConfig::Constant(PhyRate::Vht(MultiStreamRate { mcs: 9, streams: 2, width, guard }));
    let mut config = Config::new("lan", 1, Standard::Ac);
    config.stations =
        (0..stations + idle).map(|number| StationConfig::new(&format!("station {number}"), 5.0, rate)).collect();
    let mut network = BasicServiceSet::new(config)?;
    let offer = |network: &mut BasicServiceSet, now: Instant, station: u32| {
        let (flow, codepoint, category) = (0, EcnCodepoint::NotEct, AccessCategory::BestEffort);
        let packet = OfferedPacket { token: station.into(), ip_bytes: 1500, flow, codepoint, category };
        network.offer(now, MediumDirection::Uplink, station, packet);
    };
    (0..stations * QUEUED).for_each(|number| offer(&mut network, Instant::ZERO, number % stations));
    let end = Instant::ZERO + Duration::from_secs(seconds);
    let (mut delivered, mut digest, mut reports) = (0u64, 0u64, Vec::new());
    while network.next_deadline() <= end {
        let now = network.next_deadline();
        network.advance(now);
        reports.extend(network.drain_outcomes());
        for report in reports.drain(..) {
            delivered += u64::from(report.fate == MediumOutcome::Delivered);
            let fact = report.token ^ report.at.as_nanos() ^ (report.fate as u64) << 60;
            digest = (digest ^ fact).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            offer(&mut network, now, report.token as u32);
        }
    }
    let mbps = delivered as f64 * 1472.0 * 8.0 / (1e6 * seconds as f64);
    println!("{delivered} packets delivered ({mbps:.1} Mbit/s) in {} accesses, digest {digest:016x}", network.events());
    Ok(())
}
