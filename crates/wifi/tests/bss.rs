//! The whole network with saturated sources against the vectors.

use crate::common::saturated::{Saturated, Source};
use crate::common::{Check, dsss, first_number, multi_stream, ofdm, table, vectors};
use fullpipe_network::{CompletedFrame, MediumDirection, MediumOutcome};
use fullpipe_units::{Duration, EcnCodepoint, Instant};
use fullpipe_wifi::aggregate::ExchangeTiming;
use fullpipe_wifi::airtime::StationOrder;
use fullpipe_wifi::config::{Config, FailureTiming, RtsPolicy, StationConfig};
use fullpipe_wifi::contention::FreezeRule;
use fullpipe_wifi::phy::{AccessCategory, AccessParameters, Band, DurationRule, PhyRate, Preamble, Standard};
use fullpipe_wifi::queue::ApQueue;
use fullpipe_wifi::rate_control::RateControlConfig;
use fullpipe_wifi::report::LinkCounters;
use fullpipe_wifi::{BasicServiceSet, OfferedPacket};

/// A network of stations with constant rates, without packet errors.
fn network(standard: Standard, seed: u64, rates: &[PhyRate]) -> Config {
    let mut config = Config::new("lan", seed, standard);
    config.failure_timing = FailureTiming::Immediate;
    config.errors = None;
    config.stations = (0..)
        .zip(rates)
        .map(|(number, rate)| StationConfig::new(&format!("station {number}"), 5.0, RateControlConfig::Constant(*rate)))
        .collect();
    config
}

/// The same rows as in `contention.rs`, with frames, queues, windows and responses.
#[test]
fn saturated_stations_have_the_throughput_of_the_simulation_of_bianchi_csv() {
    let mut check = Check::new("bianchi.csv s_mc_mbps, whole network");
    let mut chain = Check::new("bianchi.csv s_k7_mbps, whole network");
    for row in table(include_str!("data/bianchi.csv")).iter().filter(|row| !row["s_mc_mbps"].is_empty()) {
        let (set, rts) = match row["set"].strip_suffix("-rts") {
            Some(set) => (set, true),
            None => (row["set"].as_str(), false),
        };
        let (standard, rate, mpdus) = match set {
            "b11" => (Standard::B, dsss(11.0, Preamble::Long), 1),
            "a54" => (Standard::A, ofdm(54.0), 1),
            "g54" => (Standard::G, ofdm(54.0), 1),
            "n65-1" => (Standard::N(Band::Ghz5), multi_stream("ht", 7, 20, 1, 800.0), 1),
            "n65-agg" => (Standard::N(Band::Ghz5), multi_stream("ht", 7, 20, 1, 800.0), 28),
            "ac433-agg" => (Standard::Ac, multi_stream("vht", 9, 80, 1, 400.0), 64),
            _ => continue,
        };
        let stations = first_number(&row["n"]) as u32;
        let mut config = network(standard, 3, &vec![rate; stations as usize]);
        config.aggregate.mpdus = mpdus.max(1);
        config.rts = if rts { RtsPolicy::Above(0) } else { RtsPolicy::Never };
        let sources = (0..stations).map(|station| Source::uplink(station, 1472, 2 * mpdus)).collect();
        let mut saturated = Saturated::new(config, sources);
        saturated.run(Instant::NEVER, if mpdus == 1 { 60_000 } else { 30_000 });
        let id = format!("{} n={}", row["set"], row["n"]);
        let mbps = saturated.total_mbps();
        check.relative(&id, mbps, first_number(&row["s_mc_mbps"]), 0.01);
        chain.relative(&id, mbps, first_number(&row["s_k7_mbps"]), 0.025);
    }
    check.finish(70);
    chain.finish(70);
}

#[test]
fn access_categories_share_the_medium_as_in_the_vectors() {
    let mut check = Check::new("edca mbps");
    let mut collisions = Check::new("edca p");
    for row in vectors("edca") {
        let names: Vec<&str> =
            row.inputs.key("one saturated station per entry: ").split_once(": ").unwrap().1.split(' ').collect();
        let mut config = network(Standard::A, 5, &vec![ofdm(54.0); names.len()]);
        let timing = config.standard.timing(Preamble::Long);
        (config.qos, config.freeze) = (true, FreezeRule::Edca);
        config.station_access = AccessCategory::ALL
            .map(|category| AccessParameters { txop_limit: Duration::ZERO, ..timing.edca(category, false) });
        let category = |name: &str| match name {
            "BK" => AccessCategory::Background,
            "BE" => AccessCategory::BestEffort,
            "VI" => AccessCategory::Video,
            _ => AccessCategory::Voice,
        };
        let sources = (0..).zip(&names);
        let sources = sources.map(|(station, name)| Source::uplink(station, 1472, 2).in_category(category(name)));
        let mut saturated = Saturated::new(config, sources.collect());
        // One success of 40 is of best effort in the row with four categories: 25 000, with a standard error of 0.6 %.
        saturated.run(Instant::NEVER, if names.len() == 4 { 1_000_000 } else { 200_000 });
        let (mut collided, mut ppdus) = (0, 0);
        for (number, name) in (0..).zip(&names) {
            let mbps = saturated.mbps(number);
            let expected = row.expected.number(&format!("mbps {name}"));
            let id = format!("{} {name}", row.id);
            if expected < 0.5 {
                check.absolute(&id, mbps, expected, 0.02);
            } else {
                check.relative(&id, mbps, expected, 0.02);
            }
            let counters = saturated.network.link_status(MediumDirection::Uplink, number as u32).counters;
            collided += counters.collisions;
            ppdus += counters.ppdus;
        }
        collisions.absolute(&row.id, collided as f64 / ppdus as f64, row.expected.number("p_collision"), 0.01);
    }
    check.finish(15);
    collisions.finish(6);
}

/// Rates with their number of stations: `11 x 9 1 x 1`.
fn rate_list(text: &str) -> Vec<f64> {
    let words: Vec<f64> = text.split([' ', 'x']).filter_map(|word| word.parse().ok()).collect();
    words.chunks(2).flat_map(|pair| vec![pair[0]; pair[1] as usize]).collect()
}

#[test]
fn a_slow_station_reduces_all_to_its_throughput() {
    let mut check = Check::new("anomaly simulation");
    for row in vectors("anomaly").iter().filter(|row| row.inputs.text("model") == "simulation") {
        let (standard, rate): (_, fn(f64) -> PhyRate) = match row.inputs.text("phy") {
            "b" => (Standard::B, |mbps| dsss(mbps, Preamble::Long)),
            "g" => (Standard::G, ofdm),
            _ => (Standard::A, ofdm),
        };
        let speeds = rate_list(row.inputs.text("rates"));
        let rates: Vec<PhyRate> = speeds.iter().map(|mbps| rate(*mbps)).collect();
        let config = network(standard, 6, &rates);
        let sources = (0..rates.len() as u32).map(|station| Source::uplink(station, 1472, 2)).collect();
        let mut saturated = Saturated::new(config, sources);
        saturated.run(Instant::NEVER, 100_000);
        let timing = standard.timing(Preamble::Long);
        let basic = standard.basic_rates(Preamble::Long);
        let exchange =
            ExchangeTiming { sifs: timing.sifs, basic: &basic, band: standard.band(), rule: DurationRule::Standard };
        let mut shares = vec![0.0; rates.len()];
        for (station, share) in (0..).zip(&mut shares) {
            let status = saturated.network.link_status(MediumDirection::Uplink, station);
            let time = exchange.single_exchange(rates[station as usize], 1536);
            *share = status.counters.ppdus as f64 * time.as_secs_f64();
        }
        let total: f64 = shares.iter().sum();
        for speed in [1.0, 6.0, 11.0, 54.0] {
            let of_speed: Vec<usize> = (0..rates.len()).filter(|index| speeds[*index] == speed).collect();
            if of_speed.is_empty() {
                continue;
            }
            let mean = of_speed.iter().map(|index| saturated.mbps(*index)).sum::<f64>() / of_speed.len() as f64;
            check.relative(&row.id, mean, row.expected.number(&format!("mbps at {speed}")), 0.015);
        }
        let slowest = speeds.iter().copied().fold(f64::MAX, f64::min);
        let share: f64 = (0..rates.len()).filter(|index| speeds[*index] == slowest).map(|index| shares[index]).sum();
        check.absolute(&row.id, share / total, row.expected.number("airtime share of the slowest"), 0.01);
    }
    check.finish(19);
}

/// Heusse et al. (INFOCOM 2003): every host gets the same throughput, which the slow host determines.
#[test]
fn the_anomaly_follows_its_formula() {
    let mut check = Check::new("anomaly heusse");
    for row in vectors("anomaly").iter().filter(|row| row.inputs.text("model") == "heusse") {
        let hosts = row.inputs.number("hosts");
        let (bits, cw_min) = (8.0 * row.inputs.number("frame_bytes"), row.inputs.number("cwmin"));
        let collision = 1.0 - (1.0f64 - 1.0 / cw_min).powi(hosts as i32 - 1);
        let contention = 20.0 * (1.0 + collision) / (2.0 * hosts) * cw_min / 2.0;
        // DIFS, two preambles, SIFS, and an ACK of 14 bytes at the data rate.
        let host = |mbps: f64| 50.0 + 2.0 * 192.0 + 10.0 + 8.0 * 14.0 / mbps + bits / mbps + contention;
        let fast = host(row.inputs.number("fast"));
        let slow = host(row.inputs.number("slow"));
        let jam = 2.0 / hosts * slow + (1.0 - 2.0 / hosts) * fast;
        let share = fast / ((hosts - 1.0) * fast + slow + collision * jam * hosts);
        let expected = |key| row.expected.number(key);
        check.relative(&row.id, contention, expected("t_cont_us"), 1e-5);
        // The share is printed with six decimals.
        check.relative(&row.id, share, expected("u_fast"), 1e-5 + 5e-7 / expected("u_fast"));
        check.relative(&row.id, share * bits / fast, expected("mbps_each"), 1e-5);
    }
    check.finish(21);
}

/// Runs of ns-3: the senders of a collision wait for the ACK timeout, the others do not.
#[test]
fn saturated_stations_have_the_throughput_of_ns_3() {
    let mut check = Check::new("ns3run");
    for row in vectors("ns3run") {
        let (standard, rate, mpdus) = match row.inputs.text("standard") {
            "11a" => (Standard::A, ofdm(54.0), 1),
            "11b" => (Standard::B, dsss(11.0, Preamble::Long), 1),
            "11ac" => (Standard::Ac, multi_stream("vht", 9, 80, 1, 800.0), 64),
            _ => {
                let mpdus = if row.inputs.has_key_with("A-MPDU") { 28 } else { 1 };
                (Standard::N(Band::Ghz5), multi_stream("ht", 7, 20, 1, 800.0), mpdus)
            }
        };
        let stations = row.inputs.integer("stations") as u32;
        let mut config = network(standard, 7, &vec![rate; stations as usize]);
        config.failure_timing = FailureTiming::Timeout;
        config.aggregate.mpdus = mpdus;
        if standard == Standard::Ac {
            config.durations = DurationRule::Ns3;
        }
        if standard == Standard::B {
            config.basic = [1.0, 2.0, 5.5, 11.0].map(|mbps| dsss(mbps, Preamble::Long)).to_vec();
        }
        let timeout = Duration::from_micros(row.inputs.integer("ACK timeout"));
        assert_eq!(standard.timing(Preamble::Long).response_timeout(), timeout, "{}", row.id);
        let sources = (0..stations).map(|station| Source::uplink(station, 1472, 2 * mpdus)).collect();
        let mut saturated = Saturated::new(config, sources);
        saturated.run(Instant::NEVER, if mpdus == 1 { 150_000 } else { 20_000 });
        // The vectors count 1500 bytes of each packet.
        let mbps = saturated.total_mbps() * 1500.0 / 1472.0;
        check.relative(&row.id, mbps, row.expected.number("mbps of 1500-byte packets"), row.tolerance());
    }
    check.finish(14);
}

/// The access point always has segments. Stations send a TCP ACK of 40 bytes for every one or two segments.
#[test]
fn acknowledgments_of_tcp_contend_with_the_access_point() {
    let mut check = Check::new("tcp");
    for row in vectors("tcp") {
        let (standard, rate) = match row.inputs.text("phy") {
            "b" => (Standard::B, dsss(11.0, Preamble::Long)),
            "g" => (Standard::G, ofdm(54.0)),
            _ => (Standard::A, ofdm(54.0)),
        };
        let stations = first_number(row.inputs.key("AP to").strip_prefix("AP to ").unwrap()) as u32;
        let every = if row.inputs.has_key_with("for every 1") { 1 } else { 2 };
        let mut config = network(standard, 8, &vec![rate; stations as usize]);
        config.ap_queue = ApQueue::PerStation { packets: 10 };
        config.order = StationOrder::RoundRobin;
        let mut network = BasicServiceSet::new(config).unwrap();
        network.record_ppdus();
        let (mut segments, mut acks) = (vec![0u64; stations as usize], 0u64);
        let offer = |network: &mut BasicServiceSet, at: Instant, direction, station: u32| {
            let ip_bytes = if direction == MediumDirection::Downlink { 1500 } else { 40 };
            let (flow, codepoint, category) = (0, EcnCodepoint::NotEct, AccessCategory::BestEffort);
            let token = u64::from(station) << 1 | direction as u64;
            network.offer(at, direction, station, OfferedPacket { token, ip_bytes, flow, codepoint, category });
        };
        (0..2 * stations).for_each(|number| offer(&mut network, Instant::ZERO, MediumDirection::Downlink, number / 2));
        let mut now = Instant::ZERO;
        for _ in 0..100_000 {
            now = network.next_deadline();
            network.advance(now);
            let reports: Vec<CompletedFrame> = network.drain_outcomes().collect();
            for CompletedFrame { token, at, fate } in reports {
                let station = (token >> 1) as u32;
                if token & 1 == 1 {
                    acks += 1;
                    continue;
                }
                offer(&mut network, at, MediumDirection::Downlink, station);
                let delivered = fate == MediumOutcome::Delivered;
                segments[station as usize] += u64::from(delivered);
                if delivered && segments[station as usize].is_multiple_of(every) {
                    offer(&mut network, at, MediumDirection::Uplink, station);
                }
            }
        }
        let total: u64 = segments.iter().sum();
        let mbps = (total * 1460 * 8) as f64 * 1e3 / now.as_nanos() as f64;
        check.relative(&row.id, mbps, row.expected.number("goodput_mbps"), 0.03);
        let counters: Vec<LinkCounters> = (0..stations)
            .flat_map(|station| MediumDirection::ALL.map(|way| network.link_status(way, station).counters))
            .collect();
        let sum = |count: fn(&LinkCounters) -> u64| counters.iter().map(count).sum::<u64>() as f64;
        // The vector counts each collision once, whatever the number of its senders.
        let ppdus = network.take_ppdus();
        let collisions = ppdus.chunk_by(|a, b| a.access == b.access).filter(|together| together.len() > 1).count();
        let p = collisions as f64 / ppdus.len() as f64;
        check.absolute(&row.id, p, row.expected.number("collisions per transmission"), 0.01);
        // Stations that send for every segment have queues that vary like a random walk. None was full.
        assert!(acks * every <= total && sum(|counters| counters.buffer_drops) == 0.0, "{acks} {total}");
    }
    check.finish(8);
}

/// The access point sends saturated UDP to stations of different rates.
#[test]
fn the_access_point_shares_air_time_or_aggregates() {
    let mut check = Check::new("airtime");
    for row in vectors("airtime").iter().filter(|row| row.inputs.text("model") == "DRR") {
        let stations = row.inputs.key("AP sends");
        let list = stations.split_once("to stations: ").unwrap().1;
        let rates: Vec<PhyRate> = list
            .split(" | ")
            .map(|rate| {
                let words: Vec<&str> = rate.split(' ').collect();
                let number = |index: usize| first_number(words[index]);
                multi_stream(words[0], number(2) as u64, number(3) as u64, number(6) as u64, number(8))
            })
            .collect();
        for (order, key) in
            [(StationOrder::LINUX, "fair mbps"), (StationOrder::RoundRobin, "round robin of aggregates mbps")]
        {
            let mut config = network(Standard::Ac, 9, &rates);
            config.ap_queue = ApQueue::PerStation { packets: 200 };
            config.order = order;
            config.aggregate.bytes = 65_535;
            config.aggregate.ppdu = Duration::from_micros(row.inputs.integer("max_ppdu_us"));
            let sources = (0..rates.len() as u32).map(|station| Source::downlink(station, 1472, 100)).collect();
            let mut saturated = Saturated::new(config, sources);
            saturated.run(Instant::from_nanos(30_000_000_000), u64::MAX);
            for (number, expected) in row.expected.numbers(key).into_iter().enumerate() {
                check.relative(&format!("{} {key}", row.id), saturated.mbps(number), expected, 0.01);
            }
            if order == StationOrder::LINUX {
                let shares = (0..rates.len() as u32).map(|station| {
                    saturated.network.link_status(MediumDirection::Downlink, station).counters.airtime.as_secs_f64()
                });
                let shares: Vec<f64> = shares.collect();
                let total: f64 = shares.iter().sum();
                for share in shares {
                    check.absolute(&format!("{} share", row.id), share / total, 1.0 / rates.len() as f64, 0.005);
                }
            }
        }
    }
    check.finish(60);
}

/// The goodput of a run with one station is that of the mean cycle.
#[test]
fn one_station_has_the_goodput_of_the_vectors() {
    let mut check = Check::new("goodput, whole network");
    for row in vectors("goodput") {
        let standard = match (row.inputs.text("phy"), row.inputs.get("band")) {
            ("b", _) => Standard::B,
            ("a", _) => Standard::A,
            ("g", _) => Standard::G,
            ("ht", Some("2.4")) => Standard::N(Band::Ghz2),
            ("ht", _) => Standard::N(Band::Ghz5),
            _ => Standard::Ac,
        };
        let mut config = network(standard, 10, &[row.rate()]);
        config.rts = if row.inputs.text("rts") == "no" { RtsPolicy::Never } else { RtsPolicy::Above(0) };
        if let Some(mpdus) = row.inputs.get("mpdus").filter(|mpdus| *mpdus != "max") {
            config.aggregate.mpdus = first_number(mpdus) as u32;
        }
        let mut saturated = Saturated::new(config, vec![Source::uplink(0, row.inputs.integer("udp") as u32, 200)]);
        // The mean of n backoffs of 0 to 15 or 31 slots has a standard deviation of 4.6 or 9.2 slots over the root of n.
        saturated.run(Instant::NEVER, 10_000);
        check.relative(&row.id, saturated.total_mbps(), row.expected.number("mbps"), 0.005);
    }
    check.finish(30);
}

/// In a transmission opportunity, frames follow each other after SIFS.
#[test]
fn transmission_opportunities_contain_the_frames_of_the_vectors() {
    let mut check = Check::new("txop, whole network");
    for row in vectors("txop") {
        let mut config = network(Standard::A, 11, &[row.rate(), row.rate()]);
        let timing = config.standard.timing(Preamble::Long);
        (config.qos, config.freeze) = (true, FreezeRule::Edca);
        let txop_limit = Duration::from_micros(row.inputs.integer("txop_us"));
        let access = timing.edca(AccessCategory::Video, false);
        config.station_access[AccessCategory::Video as usize] = AccessParameters { txop_limit, ..access };
        let udp_bytes = row.inputs.integer("udp") as u32;
        let source = |station| Source::uplink(station, udp_bytes, 100).in_category(AccessCategory::Video);
        let mut saturated = Saturated::new(config, vec![source(0), source(1)]);
        saturated.network.record_ppdus();
        saturated.run(Instant::NEVER, 2000);
        let ppdus: Vec<_> = saturated.network.take_ppdus().into_iter().filter(|ppdu| !ppdu.collision).collect();
        let bursts: Vec<_> = ppdus.chunk_by(|a, b| b.access == a.response_end + timing.sifs).collect();
        // The run may end within a burst.
        for burst in &bursts[..bursts.len() - 1] {
            assert!(burst.iter().all(|ppdu| ppdu.station == burst[0].station));
            let used = burst[burst.len() - 1].response_end - burst[0].access;
            let expected = (row.expected.integer("frames"), row.expected.integer("used_ns"));
            check.equal(&row.id, (burst.len() as u64, used.as_nanos()), expected);
        }
    }
    check.finish(500);
}

/// The access point sends 50 Mbit/s of UDP to each of two fast stations (144.4 Mbit/s) and a slow one (7.2 Mbit/s), as in
/// Høiland-Jørgensen et al. (ATC 2017), table 1. One FIFO gives every station the same packet rate. An MPDU of 1544 bytes takes
/// 1716 µs at 7.2 Mbit/s and 86 µs at 144.4, plus a share of 36 or 40 µs of preamble. With two MPDUs per aggregate, the slow
/// station has 1734 / (1734 + 2 * 106) = 89 % of the air time (79 % in the paper, where it got fewer packets). With queues per
/// station and airtime fairness each has a third, and the total is several times as high.
#[test]
fn airtime_fairness_removes_the_anomaly_of_one_fifo() {
    let run = |ap_queue, order| {
        let rates = [
            multi_stream("ht", 7, 20, 2, 400.0),
            multi_stream("ht", 7, 20, 2, 400.0),
            multi_stream("ht", 0, 20, 1, 400.0),
        ];
        let mut config = network(Standard::N(Band::Ghz5), 12, &rates);
        (config.ap_queue, config.order) = (ap_queue, order);
        config.aggregate.ppdu = Duration::from_micros(4000);
        let mut network = BasicServiceSet::new(config).unwrap();
        let end = Instant::from_nanos(10_000_000_000);
        // 1500 bytes every 240 µs are 50 Mbit/s.
        let mut at = Instant::ZERO;
        while at < end {
            for station in 0..3 {
                while network.next_deadline() <= at {
                    network.advance(network.next_deadline());
                }
                let (codepoint, category) = (EcnCodepoint::NotEct, AccessCategory::BestEffort);
                let packet = OfferedPacket { token: 0, ip_bytes: 1500, flow: station, codepoint, category };
                network.offer(at, MediumDirection::Downlink, station as u32, packet);
                at += Duration::from_micros(80);
            }
            network.drain_outcomes();
        }
        let counters = [0, 1, 2].map(|station| network.link_status(MediumDirection::Downlink, station).counters);
        let airtime: f64 = counters.iter().map(|counters| counters.airtime.as_secs_f64()).sum();
        let shares = counters.map(|counters| counters.airtime.as_secs_f64() / airtime);
        let mbps = counters.map(|counters| counters.delivered_packets as f64 * 1472.0 * 8.0 / 10e6);
        println!("{ap_queue:?} {order:?}: shares {shares:.3?}, {mbps:.1?} Mbit/s");
        (shares, mbps)
    };
    let (shares, mbps) = run(ApQueue::Fifo { packets: 1000, driver_packets: 123 }, StationOrder::RoundRobin);
    assert!((0.87..0.91).contains(&shares[2]), "{shares:?}");
    let total: f64 = mbps.iter().sum();
    let (shares, mbps) = run(ApQueue::default(), StationOrder::LINUX);
    assert!(shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.01), "{shares:?}");
    // `airtime-005` has the closed form of this case: 43.3, 43.3 and 2.2 Mbit/s.
    assert!((mbps[0] - 43.3).abs() < 1.0 && (mbps[2] - 2.165).abs() < 0.1, "{mbps:?}");
    assert!(mbps.iter().sum::<f64>() > 3.0 * total, "{mbps:?} {total}");
}

/// The model of Høiland-Jørgensen et al. (ATC 2017): an aggregate of L bytes contains L / 1544 packets of 1500
/// bytes, since each has 44 bytes of headers and padding. Its transmission takes 32 µs + 8 L / R, and its overhead is DIFS, SIFS,
/// a BlockAck of 58 bytes at the same rate after SIFS, and a mean backoff of 7.5 slots. The model has no collisions.
#[test]
fn the_model_of_airtime_fairness_has_its_printed_values() {
    let mut check = Check::new("airtime paper");
    let timing = Standard::A.timing(Preamble::Long);
    let micros = |duration: Duration| duration.as_nanos() as f64 / 1e3;
    let fixed = micros(timing.ifs(2) + timing.sifs * 2 + timing.slot * 15 / 2);
    for row in vectors("airtime").iter().filter(|row| row.inputs.text("model").starts_with("paper")) {
        let list = row.inputs.text("aggregate_bytes and PHY rate");
        let stations: Vec<(f64, f64)> = list
            .split(" | ")
            .map(|station| {
                let (bytes, mbps) = station.split_once(" at ").unwrap();
                (bytes.parse().unwrap(), mbps.parse().unwrap())
            })
            .collect();
        let sending = |(bytes, mbps): (f64, f64)| 32.0 + 8.0 * bytes / mbps;
        let base = |(bytes, mbps): (f64, f64)| {
            8.0 * 1500.0 * bytes / 1544.0 / (sending((bytes, mbps)) + fixed + 8.0 * 58.0 / mbps)
        };
        let total: f64 = stations.iter().map(|station| sending(*station)).sum();
        let count = stations.len() as f64;
        let expected = |key: &str| row.expected.numbers(key);
        for (index, station) in stations.iter().enumerate() {
            let share = sending(*station) / total;
            check.absolute(&row.id, base(*station), expected("base_mbps")[index], 0.005);
            check.absolute(&row.id, share, expected("shares one aggregate each")[index], 0.005);
            check.absolute(&row.id, share * base(*station), expected("mbps then")[index], 0.005);
            check.absolute(&row.id, base(*station) / count, expected("mbps at equal air time")[index], 0.005);
        }
    }
    check.finish(24);
}
