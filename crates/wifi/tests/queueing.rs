//! Delays in the queues of the access point.

use crate::common::multi_stream;
use fullpipe_network::{CompletedFrame, MediumDirection, MediumOutcome};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wifi::config::{Config, StationConfig};
use fullpipe_wifi::phy::{AccessCategory, Band, Standard};
use fullpipe_wifi::queue::ApQueue;
use fullpipe_wifi::rate_control::RateControlConfig;
use fullpipe_wifi::{BasicServiceSet, OfferedPacket};

/// The access point sends 80 Mbit/s of one flow to a station at 65 Mbit/s, and a packet of 100 bytes of another flow every
/// 20 ms. Returns the mean delay of these packets in ms from 2 s on, and the number of packets of the first flow that a
/// queue discipline has dropped.
fn sparse_delay(ap_queue: ApQueue) -> (f64, u64) {
    let rate = RateControlConfig::Constant(multi_stream("ht", 7, 20, 1, 800.0));
    let mut config = Config::new("lan", 30, Standard::N(Band::Ghz5));
    config.ap_queue = ap_queue;
    config.stations.push(StationConfig::new("station", 5.0, rate));
    let mut network = BasicServiceSet::new(config).unwrap();
    let (mut sum, mut count, mut early) = (0.0, 0u64, 0);
    let mut collect = |network: &mut BasicServiceSet| {
        for CompletedFrame { token, at, fate } in network.drain_outcomes() {
            early += u64::from(fate == MediumOutcome::DroppedEarly);
            // The token of a sparse packet is the time of its offer.
            let offered = Instant::from_nanos(token);
            if fate == MediumOutcome::Delivered && offered >= Instant::from_nanos(2_000_000_000) {
                sum += (at - offered).as_secs_f64() * 1e3;
                count += 1;
            }
        }
    };
    for step in 0..40_000u64 {
        // 1500 bytes every 150 µs.
        let now = Instant::ZERO + Duration::from_micros(150) * (step + 1);
        while network.next_deadline() <= now {
            network.advance(network.next_deadline());
        }
        let (codepoint, category) = (EcnCodepoint::NotEct, AccessCategory::BestEffort);
        let bulk = OfferedPacket { token: 0, ip_bytes: 1500, flow: 1, codepoint, category };
        network.offer(now, MediumDirection::Downlink, 0, bulk);
        if step.is_multiple_of(133) {
            let sparse = OfferedPacket { token: now.as_nanos(), ip_bytes: 100, flow: 2, ..bulk };
            network.offer(now, MediumDirection::Downlink, 0, sparse);
        }
        collect(&mut network);
    }
    (sum / count as f64, early)
}

/// 28 packets take 5.5185 ms (vector `goodput-026`), so 5074 packets are sent per second. The FIFO of 1000 packets and the
/// driver's 123 are full: about 1123 / 5074 = 221 ms. With FQ-CoDel a sparse packet waits for half of the exchange that is on
/// the medium, and arrives with the next one, in which it is among the first: 2.8 + 5.4 = 8.2 ms.
#[test]
fn fq_codel_keeps_the_delay_of_a_sparse_flow_at_one_or_two_aggregates() {
    let (delay, early) = sparse_delay(ApQueue::Fifo { packets: 1000, driver_packets: 123 });
    assert!((215.0..235.0).contains(&delay) && early == 0, "{delay} {early}");
    let (delay, early) = sparse_delay(ApQueue::default());
    assert!((7.0..9.5).contains(&delay) && early > 10, "{delay} {early}");
    // A drop-tail queue of 100 packets for the station: 100 / 5074 = 20 ms, and the window of 64 packets at most.
    let (delay, early) = sparse_delay(ApQueue::PerStation { packets: 100 });
    assert!((19.0..33.0).contains(&delay) && early == 0, "{delay} {early}");
}
