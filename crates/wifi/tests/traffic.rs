//! Random networks and traffic: conservation of packets, order, and exclusive use of the medium.

use fullpipe_network::{CompletedFrame, MediumDirection, MediumOutcome};
use fullpipe_units::{Duration, EcnCodepoint, Instant, RandomStream};
use fullpipe_wifi::airtime::StationOrder;
use fullpipe_wifi::config::{Config, FailureTiming, RtsPolicy, StationConfig};
use fullpipe_wifi::phy::{AccessCategory, Band, ChannelWidth, ErrorModel, Standard};
use fullpipe_wifi::queue::{ApFqCoDel, ApQueue};
use fullpipe_wifi::rate_control::{Capabilities, IdealTarget, RateControlConfig};
use fullpipe_wifi::report::PpduRecord;
use fullpipe_wifi::{BasicServiceSet, OfferedPacket};
use std::collections::BTreeMap;

/// One of `values`.
fn choose<T: Copy>(random: &mut RandomStream, values: &[T]) -> T {
    values[random.uniform_below(values.len() as u64) as usize]
}

/// A network with random settings.
fn random_config(random: &mut RandomStream, seed: u64) -> Config {
    let standards =
        [Standard::B, Standard::A, Standard::G, Standard::N(Band::Ghz2), Standard::N(Band::Ghz5), Standard::Ac];
    let mut config = Config::new("lan", seed, choose(random, &standards));
    config.rts = choose(random, &[RtsPolicy::Never, RtsPolicy::Above(0), RtsPolicy::Above(1000)]);
    config.failure_timing = choose(random, &[FailureTiming::Timeout, FailureTiming::Immediate]);
    config.errors = choose(random, &[None, Some(ErrorModel::default()), Some(ErrorModel::Nist)]);
    config.retry_limit = choose(random, &[1, 2, 7]);
    config.aggregate.mpdus = choose(random, &[1, 2, 16, 64]);
    config.aggregate.ppdu = Duration::from_micros(choose(random, &[1000, 4000, 5484]));
    config.order = choose(random, &[StationOrder::RoundRobin, StationOrder::LINUX]);
    config.station_packets = choose(random, &[1, 5, 1000]);
    config.ap_queue = choose(
        random,
        &[
            ApQueue::Fifo { packets: 50, driver_packets: 10 },
            ApQueue::Fifo { packets: 1, driver_packets: 1 },
            ApQueue::PerStation { packets: 20 },
            ApQueue::FqCoDel(ApFqCoDel::default()),
            ApQueue::FqCoDel(ApFqCoDel { packets: 1, ..ApFqCoDel::default() }),
            ApQueue::FqCoDel(ApFqCoDel { packets: 40, ..ApFqCoDel::default() }),
        ],
    );
    let stations = 1 + random.uniform_below(6);
    for number in 0..stations {
        let capabilities = Capabilities {
            streams: choose(random, &[1, 2]),
            width: choose(random, &ChannelWidth::ALL),
            short_guard: random.bernoulli(0.5),
        };
        let target = choose(random, &[IdealTarget::default(), IdealTarget::PacketErrorRate(0.3)]);
        let ideal = RateControlConfig::Ideal { capabilities, target };
        let minstrel = if config.qos { RateControlConfig::MinstrelHt(capabilities) } else { ideal };
        let control = choose(random, &[ideal, minstrel]);
        let mut station = StationConfig::new(&format!("station {number}"), random.uniform_between(1.0, 45.0), control);
        if random.bernoulli(0.3) {
            station.shadowing = vec![(Instant::from_nanos(20_000_000), 15.0), (Instant::from_nanos(40_000_000), 0.0)];
        }
        config.stations.push(station);
    }
    config
}

/// Two successful or failed exchanges never overlap, except if both collided.
fn check_ppdus(ppdus: &[PpduRecord], busy: Duration) {
    let mut occupied = Duration::ZERO;
    let mut end = Instant::ZERO;
    for ppdu in ppdus {
        assert!(ppdu.access <= ppdu.start && ppdu.start <= ppdu.end && ppdu.end <= ppdu.response_end, "{ppdu:?}");
        assert!(ppdu.received <= ppdu.mpdus && (ppdu.received == 0 || !ppdu.collision), "{ppdu:?}");
        assert!(ppdu.end - ppdu.start <= Duration::from_micros(13_000), "{ppdu:?}");
    }
    let mut rest = ppdus;
    while let Some(first) = rest.first() {
        let together = rest.iter().take_while(|ppdu| ppdu.access == first.access).count();
        assert!(first.access >= end, "an access at {} before the end of another at {end}", first.access);
        assert!(together == 1 || rest[..together].iter().all(|ppdu| ppdu.collision));
        assert!(together > 1 || !first.collision);
        let last = rest[..together].iter().map(|ppdu| ppdu.response_end).max().unwrap();
        occupied += last - first.access;
        end = last;
        rest = &rest[together..];
    }
    assert_eq!(occupied, busy);
    assert!(busy <= end - Instant::ZERO);
}

/// Offers random packets for 60 ms, and returns all reports.
fn run(seed: u64) -> Vec<CompletedFrame> {
    let mut random = RandomStream::new(seed, "traffic", "test");
    let config = random_config(&mut random, seed);
    let (stations, description) = (config.stations.len() as u64, format!("seed {seed}: {config:?}"));
    let qos = config.qos;
    let ordered = !matches!(config.ap_queue, ApQueue::FqCoDel(_));
    let mut network = BasicServiceSet::new(config).unwrap();
    network.record_ppdus();
    let (mut now, mut token, mut reports) = (Instant::ZERO, 0u64, Vec::new());
    let mut packets = BTreeMap::new();
    let mean = choose(&mut random, &[2e-6, 2e-5, 5e-4]);
    while now < Instant::from_nanos(60_000_000) {
        let next = now + Duration::from_secs_f64(random.exponential(mean));
        while network.next_deadline() <= next {
            let due = network.next_deadline();
            assert!(due >= now, "{description}");
            now = due;
            network.advance(due);
            assert!(network.next_deadline() > due, "{description}");
            reports.extend(network.drain_outcomes().inspect(|report| assert!(report.at >= due, "{description}")));
        }
        now = next;
        for _ in 0..1 + random.uniform_below(4) {
            let direction = choose(&mut random, &MediumDirection::ALL);
            let station = random.uniform_below(stations) as u32;
            let category = choose(&mut random, &AccessCategory::ALL);
            let codepoint = choose(&mut random, &[EcnCodepoint::NotEct, EcnCodepoint::Ect0]);
            let ip_bytes = 40 + random.uniform_below(1461) as u32;
            let flow = random.uniform_below(3);
            packets.insert(token, (direction, station, category, now, codepoint));
            network.offer(now, direction, station, OfferedPacket { token, ip_bytes, flow, codepoint, category });
            token += 1;
        }
        reports.extend(network.drain_outcomes());
    }
    // The rest.
    let mut steps = 0;
    while !network.next_deadline().is_never() {
        network.advance(network.next_deadline());
        reports.extend(network.drain_outcomes());
        steps += 1;
        assert!(steps < 1_000_000, "{description}");
    }
    let mut seen = vec![false; token as usize];
    let mut order: BTreeMap<_, u64> = BTreeMap::new();
    for report in &reports {
        let (direction, station, category, offered, codepoint) = packets[&report.token];
        assert!(!std::mem::replace(&mut seen[report.token as usize], true), "two outcomes: {report:?} {description}");
        assert!(report.at >= offered, "{report:?} {description}");
        assert!(report.fate != MediumOutcome::Marked || codepoint != EcnCodepoint::NotEct);
        if ordered && report.fate == MediumOutcome::Delivered {
            // Without QoS there is one queue.
            let category = if qos { category } else { AccessCategory::BestEffort };
            let last = order.insert((direction, station, category), report.token);
            assert!(last.is_none_or(|last| last < report.token), "reordered: {report:?} {description}");
        }
    }
    assert!(seen.iter().all(|seen| *seen), "packets without outcome: {description}");
    for station in 0..stations as u32 {
        for direction in MediumDirection::ALL {
            let status = network.link_status(direction, station);
            let counters = status.counters;
            let known =
                counters.buffer_drops + counters.early_drops + counters.lost_packets + counters.delivered_packets;
            assert_eq!((counters.packets, status.queued_packets), (known, 0), "{description}");
        }
    }
    let ppdus = network.take_ppdus();
    check_ppdus(&ppdus, network.busy_time());
    for station in 0..stations as u32 {
        for direction in MediumDirection::ALL {
            let own = || ppdus.iter().filter(|ppdu| (ppdu.direction, ppdu.station) == (direction, station));
            let data = || own().filter(|ppdu| ppdu.mpdus > 0);
            let counters = network.link_status(direction, station).counters;
            let airtime = data().fold(Duration::ZERO, |sum, ppdu| sum + (ppdu.end - ppdu.start));
            assert_eq!(counters.airtime, airtime, "{description}");
            let mpdus: u64 = data().map(|ppdu| u64::from(ppdu.mpdus)).sum();
            assert_eq!((counters.ppdus, counters.mpdus), (data().count() as u64, mpdus), "{description}");
            assert_eq!(counters.collisions, own().filter(|ppdu| ppdu.collision).count() as u64, "{description}");
            let received: u64 = own().map(|ppdu| u64::from(ppdu.received)).sum();
            // More MPDUs are received than delivered if a BlockAck is lost.
            assert!(counters.delivered_packets <= received && counters.retries <= mpdus, "{description}");
        }
    }
    reports
}

#[test]
fn random_traffic_is_conserved_and_never_overlaps_on_the_medium() {
    let mut counts = BTreeMap::new();
    for report in (0..60).flat_map(run) {
        *counts.entry(format!("{:?}", report.fate)).or_insert(0) += 1;
    }
    // Every outcome occurs often enough for the test to mean something.
    let least = [("Delivered", 8000), ("Marked", 20), ("BufferFull", 8000), ("DroppedEarly", 20), ("Lost", 400)];
    assert!(least.iter().all(|(name, least)| counts.get(*name).is_some_and(|count| count >= least)), "{counts:?}");
}

#[test]
fn the_same_seed_gives_the_same_reports() {
    for seed in [3, 40] {
        assert_eq!(run(seed), run(seed));
    }
}

/// Runs as many random networks as `FULLPIPE_WIFI_SEEDS` states, for a long check by hand.
#[test]
fn more_random_networks() {
    let seeds: u64 = std::env::var("FULLPIPE_WIFI_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    (1000..1000 + seeds).for_each(|seed| drop(run(seed)));
}
