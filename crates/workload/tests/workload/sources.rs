//! Tests of packet sources: packet times computed by hand if nothing is random, otherwise rates and means within bounds derived
//! from the model.

use crate::way::Way;
use fullpipe_units::{Duration, Instant, RandomStream, Rate, math};
use fullpipe_workload::{
    Application, Distribution, GamingEndpoint, GamingSpec, OnOffSender, OnOffSpec, PoissonPacketsSender,
    PoissonPacketsSpec, Sink, TalkSpurts, VideoCbrSender, VideoCbrSpec, VoiceEndpoint, VoiceSpec,
};
use std::f64::consts::PI;

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn constant(value: f64) -> Distribution {
    Distribution::Constant { value }
}

fn random(purpose: &str) -> RandomStream {
    RandomStream::new(5, "source", purpose)
}

/// The datagrams that both ends send over a path of 7 ms, from 0 to `until_s`.
fn datagrams(initiator: &mut dyn Application, acceptor: &mut dyn Application, until_s: u64) -> [Vec<(u64, u32)>; 2] {
    let mut way = Way::new(Duration::from_millis(7), |_, _| None);
    way.start(&mut [initiator, acceptor], Instant::from_nanos(until_s * SECOND));
    way.datagrams
}

/// As [`datagrams`], with an acceptor that only receives and to which no datagrams are delivered.
fn sent(source: &mut dyn Application, until_s: u64) -> Vec<(u64, u32)> {
    let mut way = Way::new(Duration::ZERO, |_, _| None);
    way.datagrams_arrive = false;
    way.start(&mut [source, &mut Sink::new(true)], Instant::from_nanos(until_s * SECOND));
    std::mem::take(&mut way.datagrams[0])
}

fn times_ms(datagrams: &[(u64, u32)]) -> Vec<f64> {
    datagrams.iter().map(|&(at, _)| at as f64 / MILLISECOND as f64).collect()
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count() as f64
}

fn assert_within(found: f64, expected: f64, bound: f64) {
    assert!((found - expected).abs() < bound, "{found} instead of {expected}, bound {bound}");
}

fn on_off(on_s: Distribution, off_s: Distribution, count: Option<u64>) -> OnOffSpec {
    // 100 bytes at 80 kbit/s: 10 ms.
    OnOffSpec { rate: Rate::from_bits_per_second(80_000), payload_bytes: 100, on_s, off_s, count }
}

#[test]
fn clock_of_an_on_off_source_stops_in_off_periods() {
    let spec = on_off(constant(0.025), constant(0.100), Some(8));
    let found = sent(&mut OnOffSender::new(&spec, false, random("a")).unwrap(), 10);
    // On time 0, 10, 20, then 30, 40, then 50, 60, 70. The periods are 0..25, 125..150 and 250..275. On time 50 is the very end
    // of the second period, so its packet belongs to the third.
    assert_eq!(times_ms(&found), [0.0, 10.0, 20.0, 130.0, 140.0, 250.0, 260.0, 270.0]);
    assert!(found.iter().all(|&(_, bytes)| bytes == 100));
}

#[test]
fn on_off_source_does_not_drift() {
    // 1500 bytes at 7 Mbit/s are 12 000 bits in 1 714 285.71 ns; seven of them take 12 ms exactly. Without off periods the
    // periods have no effect.
    let spec = OnOffSpec {
        rate: Rate::from_megabits_per_second(7),
        payload_bytes: 1500,
        on_s: constant(0.005),
        off_s: constant(0.0),
        count: Some(7001),
    };
    let found = sent(&mut OnOffSender::new(&spec, false, random("a")).unwrap(), 100);
    assert_eq!(found[7].0, 12 * MILLISECOND);
    assert_eq!(found[1].0, 1_714_285);
    assert_eq!(found[7000].0, 12 * SECOND);
    assert_eq!(found.len(), 7001);
}

#[test]
fn long_off_period_delays_a_packet_only_once() {
    // On periods are shorter than a packet time. On time advances by 4 ms per second, so a packet (10 ms) is due in the third on
    // period, at the remaining offset. On time 10 is 2 ms into the third (2 s + 2 ms), on time 20 the very end of the fifth.
    let spec = on_off(constant(0.004), constant(0.996), Some(4));
    let found = sent(&mut OnOffSender::new(&spec, false, random("a")).unwrap(), 100);
    assert_eq!(times_ms(&found), [0.0, 2002.0, 5000.0, 7002.0]);
}

#[test]
fn on_off_source_writes_to_a_stream_and_finishes_it() {
    let spec = on_off(constant(0.025), constant(0.100), Some(4));
    let mut source = OnOffSender::new(&spec, true, random("a")).unwrap();
    let mut sink = Sink::new(true);
    let mut way = Way::new(Duration::from_millis(1), |_, _| None);
    way.start(&mut [&mut source, &mut sink], Instant::NEVER);
    assert_eq!(way.writes[0], [(0, 100); 4]);
    // The last write at 130 ms arrives with the end of the stream a millisecond later.
    assert_eq!(sink.progress().completed, Some(Instant::from_nanos(131 * MILLISECOND)));
    assert_eq!((sink.progress().received_bytes, way.live_connections()), (400, 0));
}

#[test]
fn exponential_on_off_source_has_its_mean_rate() {
    // In an alternating renewal process, the on time within T is T / (1 + 1.35) on average, with variance T 2 (1 * 1.35)^2 /
    // 2.35^3 (Cox, Renewal Theory, 1962, for exponential periods). There is a packet per 10 ms of on time.
    let spec = on_off(Distribution::Exponential { mean: 1.0 }, Distribution::Exponential { mean: 1.35 }, None);
    let seconds = 40_000;
    let found = sent(&mut OnOffSender::new(&spec, false, random("exponential")).unwrap(), seconds).len() as f64;
    let expected = 100.0 * seconds as f64 / 2.35;
    let deviation = 100.0 * (seconds as f64 * 2.0 * 1.35f64.powi(2) / 2.35f64.powi(3)).sqrt();
    assert_within(found, expected, 5.0 * deviation);
}

#[test]
fn pareto_periods_have_their_smallest_length() {
    let pareto = |scale| Distribution::Pareto { shape: 1.5, scale };
    // On periods have at least 50 ms (five packets), off periods at least 200 ms. No run of packets and no gap is shorter.
    let found =
        sent(&mut OnOffSender::new(&on_off(pareto(0.05), pareto(0.2), None), false, random("p")).unwrap(), 2000);
    let mut run = 1;
    let mut runs = Vec::new();
    for pair in found.windows(2) {
        if pair[1].0 - pair[0].0 == 10 * MILLISECOND {
            run += 1;
        } else {
            assert!(pair[1].0 - pair[0].0 >= 200 * MILLISECOND);
            runs.push(run);
            run = 1;
        }
    }
    assert!(runs.len() > 1000, "{}", runs.len());
    assert!(runs.iter().all(|&run| run >= 5), "{runs:?}");
    // P(on > 500 ms) = (1/10)^1.5 = 0.0316, so a run of more than 50 packets occurs.
    assert!(runs.iter().any(|&run| run > 50));
}

fn poisson(size_bytes: Distribution, count: u64) -> PoissonPacketsSpec {
    PoissonPacketsSpec {
        mean_interval: Duration::from_micros(800),
        size_bytes,
        header_bytes: 0,
        max_payload_bytes: 65_507,
        count: Some(count),
    }
}

#[test]
fn poisson_arrivals_are_exponential_and_independent() {
    let count = 200_000;
    let found =
        sent(&mut PoissonPacketsSender::new(&poisson(constant(500.0), count), random("poisson")).unwrap(), 1000);
    assert_eq!(found.len(), 200_000);
    assert!(found.iter().all(|&(_, bytes)| bytes == 500));
    let n = count as f64;
    let mut intervals: Vec<f64> = found.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 / 800_000.0).collect();
    intervals.push(found[0].0 as f64 / 800_000.0);
    // The mean is 1 with standard error 1/sqrt(n), the correlation of neighbors 0 with 1/sqrt(n).
    assert_within(mean(intervals.iter().copied()), 1.0, 5.0 / n.sqrt());
    let correlation = mean(intervals.windows(2).map(|pair| (pair[0] - 1.0) * (pair[1] - 1.0)));
    assert_within(correlation, 0.0, 5.0 / n.sqrt());
    // For arrivals in windows of ten mean intervals, variance over mean is 1 with standard error sqrt(2 / windows).
    let windows = 19_000;
    let mut counts = vec![0f64; windows];
    found.iter().for_each(|&(at, _)| {
        if let Some(count) = counts.get_mut((at / 8_000_000) as usize) {
            *count += 1.0;
        }
    });
    let average = mean(counts.iter().copied());
    let variance = mean(counts.iter().map(|count| (count - average).powi(2)));
    assert_within(variance / average, 1.0, 5.0 * (2.0 / windows as f64).sqrt());
    // The distribution function (Kolmogorov-Smirnov, exceeded in one of a thousand cases).
    intervals.sort_by(f64::total_cmp);
    let distance = intervals.iter().enumerate().fold(0.0f64, |largest, (rank, &interval)| {
        let expected = 1.0 - math::exp(-interval);
        largest.max(expected - rank as f64 / n).max((rank + 1) as f64 / n - expected)
    });
    assert!(n.sqrt() * distance < 1.95, "{}", n.sqrt() * distance);
}

#[test]
fn poisson_arrivals_are_never_simultaneous() {
    // At a mean of a nanosecond, 1 - e^(-1/2) = 39 % of the intervals would round to zero.
    let spec = PoissonPacketsSpec { mean_interval: Duration::from_nanos(1), ..poisson(constant(1.0), 1000) };
    let found = sent(&mut PoissonPacketsSender::new(&spec, random("dense")).unwrap(), 10);
    assert_eq!(found.len(), 1000);
    assert!(found[0].0 > 0 && found.windows(2).all(|pair| pair[0].0 < pair[1].0));
}

#[test]
fn packet_sizes_include_headers_if_configured_and_are_limited() {
    let spec = PoissonPacketsSpec { header_bytes: 28, ..poisson(constant(1000.0), 3) };
    let found = sent(&mut PoissonPacketsSender::new(&spec, random("a")).unwrap(), 10);
    assert_eq!(found.iter().map(|&(_, bytes)| bytes).collect::<Vec<_>>(), [972; 3]);
    let spec = PoissonPacketsSpec { header_bytes: 28, ..poisson(constant(20.0), 1) };
    assert_eq!(sent(&mut PoissonPacketsSender::new(&spec, random("a")).unwrap(), 10)[0].1, 0);
    let spec = PoissonPacketsSpec { max_payload_bytes: 1472, ..poisson(constant(9000.0), 1) };
    assert_eq!(sent(&mut PoissonPacketsSender::new(&spec, random("a")).unwrap(), 10)[0].1, 1472);
}

#[test]
fn exponential_packet_sizes_are_independent_of_the_times() {
    let count = 100_000;
    let spec = poisson(Distribution::Exponential { mean: 1000.0 }, count);
    let found = sent(&mut PoissonPacketsSender::new(&spec, random("sizes")).unwrap(), 1000);
    let n = count as f64;
    let sizes = || found.iter().map(|&(_, bytes)| f64::from(bytes));
    assert_within(mean(sizes()), 1000.0, 5.0 * 1000.0 / n.sqrt());
    // E(X^2) = 2 m^2; the variance of X^2 is 24 m^4 - 4 m^4.
    assert_within(mean(sizes().map(|size| size * size)), 2e6, 5.0 * 20f64.sqrt() * 1e6 / n.sqrt());
    let products = found.windows(2).map(|pair| {
        let interval = (pair[1].0 - pair[0].0) as f64 / 800_000.0;
        (interval - 1.0) * (f64::from(pair[1].1) / 1000.0 - 1.0)
    });
    assert_within(mean(products), 0.0, 5.0 / n.sqrt());
}

fn video() -> VideoCbrSpec {
    VideoCbrSpec {
        rate: Rate::from_megabits_per_second(1),
        frames_per_s: 25.0,
        group_frames: 5,
        i_to_p_ratio: 3.0,
        max_payload_bytes: 1400,
        frames: Some(6),
    }
}

#[test]
fn video_frames_have_their_shares_of_the_group() {
    // A group of 5 frames at 25 frames/s and 1 Mbit/s has 25 000 bytes: seven shares of 3571.43, three of them for the I frame.
    // Cumulative sizes at the ends of the frames: 10 714.29, 14 285.71, 17 857.14, 21 428.57, 25 000.
    let found = sent(&mut VideoCbrSender::new(&video(), false).unwrap(), 10);
    let frame = |number: u64| -> Vec<u32> {
        found.iter().filter(|&&(at, _)| at == number * 40 * MILLISECOND).map(|&(_, bytes)| bytes).collect()
    };
    assert_eq!(frame(0), [1400, 1400, 1400, 1400, 1400, 1400, 1400, 914]);
    assert_eq!(frame(1), [1400, 1400, 772]);
    assert_eq!(frame(2), [1400, 1400, 771]);
    assert_eq!(frame(3), [1400, 1400, 772]);
    assert_eq!(frame(4), [1400, 1400, 771]);
    assert_eq!(frame(5), frame(0));
    assert_eq!(found.len(), 8 + 3 + 3 + 3 + 3 + 8);
}

#[test]
fn video_keeps_its_rate_and_its_frame_rate_for_hours() {
    // 29.97 frames/s for 1000 s are 29 970 frames; the next is due at exactly 1000 s. At 700 kbit/s these are 87.5 million bytes.
    // All frames have one size.
    let spec = VideoCbrSpec {
        rate: Rate::from_bits_per_second(700_000),
        frames_per_s: 29.97,
        group_frames: 1,
        max_payload_bytes: 65_000,
        frames: Some(29_971),
        ..video()
    };
    let found = sent(&mut VideoCbrSender::new(&spec, false).unwrap(), 2000);
    assert_eq!(found[29_970].0, 1000 * SECOND);
    assert_eq!(found[..29_970].iter().map(|&(_, bytes)| u64::from(bytes)).sum::<u64>(), 87_500_000);
    // 700 000 / 8 / 29.97 = 2919.59.
    assert!(found.iter().all(|&(_, bytes)| bytes == 2919 || bytes == 2920));
}

#[test]
fn video_on_a_stream_is_one_write_per_frame() {
    let mut source = VideoCbrSender::new(&video(), true).unwrap();
    let mut sink = Sink::new(true);
    let mut way = Way::new(Duration::ZERO, |_, _| None);
    way.start(&mut [&mut source, &mut sink], Instant::NEVER);
    let expected = [10_714, 3572, 3571, 3572, 3571, 10_714];
    assert_eq!(way.writes[0].iter().map(|&(_, bytes)| bytes).collect::<Vec<_>>(), expected);
    assert_eq!(sink.progress().completed, Some(Instant::from_nanos(200 * MILLISECOND)));
}

#[test]
fn voice_without_silence_suppression_is_constant() {
    let spec = VoiceSpec { duration: Some(Duration::from_millis(100)), ..VoiceSpec::g711() };
    let [caller, callee] = datagrams(
        &mut VoiceEndpoint::caller(&spec, random("caller")).unwrap(),
        &mut VoiceEndpoint::callee(&spec, random("callee")).unwrap(),
        10,
    );
    assert_eq!(times_ms(&caller), [0.0, 20.0, 40.0, 60.0, 80.0]);
    // 64 kbit/s for 20 ms are 160 bytes, plus 12 of RTP.
    assert!(caller.iter().all(|&(_, bytes)| bytes == 172));
    assert!(callee.is_empty());
    // G.729: 8 kbit/s for 20 ms. AMR: 254 bits, padded to 32 bytes.
    assert_eq!((VoiceSpec::g729().payload_bytes, VoiceSpec::amr_12_2().payload_bytes), (32, 44));
}

#[test]
fn callee_that_speaks_starts_at_the_first_packet() {
    let both = VoiceSpec { both_ways: true, duration: Some(Duration::from_millis(50)), ..VoiceSpec::g729() };
    let [_, callee] = datagrams(
        &mut VoiceEndpoint::caller(&both, random("caller")).unwrap(),
        &mut VoiceEndpoint::callee(&both, random("callee")).unwrap(),
        10,
    );
    assert_eq!(times_ms(&callee), [7.0, 27.0, 47.0]);
    // With talk spurts the callee starts with a pause.
    let spurts = TalkSpurts { talk_s: constant(0.030), pause_s: constant(0.100) };
    let spec = VoiceSpec { talk_spurts: Some(spurts), duration: Some(Duration::from_millis(250)), ..both };
    let [caller, callee] = datagrams(
        &mut VoiceEndpoint::caller(&spec, random("caller")).unwrap(),
        &mut VoiceEndpoint::callee(&spec, random("callee")).unwrap(),
        10,
    );
    assert_eq!(times_ms(&caller), [0.0, 20.0, 130.0, 150.0]);
    assert_eq!(times_ms(&callee), [107.0, 127.0, 237.0]);
}

#[test]
fn talk_spurts_of_constant_length_have_packets_computed_by_hand() {
    // 50 ms of talk have packets at 0, 20 and 40, then 30 ms of pause follow. With 40 ms of talk, the packet at 40 is not sent.
    for (talk_s, expected) in [
        (0.050, vec![0.0, 20.0, 40.0, 80.0, 100.0, 120.0, 160.0, 180.0]),
        (0.040, vec![0.0, 20.0, 70.0, 90.0, 140.0, 160.0]),
    ] {
        let spec = VoiceSpec {
            talk_spurts: Some(TalkSpurts { talk_s: constant(talk_s), pause_s: constant(0.030) }),
            duration: Some(Duration::from_millis(195)),
            ..VoiceSpec::g711()
        };
        assert_eq!(times_ms(&sent(&mut VoiceEndpoint::caller(&spec, random("a")).unwrap(), 10)), expected);
    }
}

#[test]
fn speech_has_the_activity_of_p59() {
    // A spurt has k packets or more if it is longer than k - 1 packet times: on average 1 / (1 - e^(-20/1004)) = 50.70 per cycle
    // of 2.591 s. The variance of the number in a time T, for a renewal process with rewards, is T / 2.591 * (s^2 + (r - 1/20
    // ms)^2 1.004^2 + r^2 1.587^2), r = 50.70 / 2.591 per s, with s^2 < 1 for rounding up.
    let spec = VoiceSpec { talk_spurts: Some(TalkSpurts::p59()), ..VoiceSpec::g711() };
    let seconds = 100_000;
    let found = sent(&mut VoiceEndpoint::caller(&spec, random("p59")).unwrap(), seconds).len() as f64;
    let rate = 1.0 / (1.0 - math::exp(-20.0 / 1004.0)) / 2.591;
    let variance = (1.0 + (rate - 50.0).powi(2) * 1.004f64.powi(2) + (rate * 1.587).powi(2)) / 2.591;
    assert_within(found, rate * seconds as f64, 5.0 * (variance * seconds as f64).sqrt());
    // About 38.75 % of the packets without silence suppression.
    assert_within(found / (50.0 * seconds as f64), 1.004 / 2.591, 0.02);
}

#[test]
fn counter_strike_packets_have_the_published_distributions() {
    let spec = GamingSpec { duration: Some(Duration::from_secs(2000)), ..GamingSpec::counter_strike() };
    let [client, server] = datagrams(
        &mut GamingEndpoint::client(&spec, random("client")).unwrap(),
        &mut GamingEndpoint::server(&spec, random("server")).unwrap(),
        3000,
    );
    // The client sends every 40 ms, from 0 to below 2000 s.
    assert_eq!(client.len(), 50_000);
    assert!(client.iter().enumerate().all(|(n, &(at, _))| at == n as u64 * 40 * MILLISECOND));
    // The server starts when the first packet arrives and sends for the same time.
    assert_eq!(server[0].0, 7 * MILLISECOND);
    assert!(server.last().is_some_and(|&(at, _)| at < 2000 * SECOND + 7 * MILLISECOND));
    // The largest extreme value distribution (a, b) has mean a + 0.577 216 b and deviation b pi / sqrt(6).
    let check = |values: Vec<f64>, location: f64, scale: f64| {
        let n = values.len() as f64;
        let deviation = scale * PI / 6f64.sqrt();
        assert_within(mean(values.iter().copied()), location + 0.577_216 * scale, 5.0 * deviation / n.sqrt());
        // Its distribution function is 1/e at the location.
        let below = values.iter().filter(|&&value| value <= location).count() as f64 / n;
        // Rounding to whole bytes moves the location by half a byte; the density there is 1/(e b).
        let rounding = if location > 60.0 { 0.5 / (scale * std::f64::consts::E) } else { 0.0 };
        assert_within(below, 1.0 / std::f64::consts::E, 5.0 * (0.3679f64 * 0.6321 / n).sqrt() + rounding);
    };
    let sizes = |packets: &[(u64, u32)]| packets.iter().map(|&(_, bytes)| f64::from(bytes)).collect::<Vec<_>>();
    check(sizes(&client), 80.0, 5.7);
    check(sizes(&server), 120.0, 36.0);
    check(server.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e6).collect(), 55.0, 6.0);
}

#[test]
fn first_packets_of_the_ngmn_gaming_user_are_uniform() {
    let spec = GamingSpec { duration: Some(Duration::from_secs(1)), ..GamingSpec::ngmn() };
    let mut firsts = Vec::new();
    for run in 0..200 {
        let mut client = GamingEndpoint::client(&spec, random(&format!("client {run}"))).unwrap();
        firsts.push(times_ms(&sent(&mut client, 3))[0]);
    }
    // Uniform in 0..40 ms: mean 20, deviation 40 / sqrt(12).
    assert_within(mean(firsts.iter().copied()), 20.0, 5.0 * 40.0 / (12.0 * 200f64).sqrt());
    assert!(firsts.iter().all(|first| (0.0..40.0).contains(first)));
    assert_within(spec.client.payload_bytes.mean(), 48.29, 0.005);
}

#[test]
fn equal_streams_give_equal_packets_and_different_streams_do_not() {
    let spec = poisson(Distribution::Exponential { mean: 500.0 }, 100);
    let run = |purpose: &str| sent(&mut PoissonPacketsSender::new(&spec, random(purpose)).unwrap(), 10);
    assert_eq!(run("one"), run("one"));
    assert_ne!(run("one"), run("other"));
}

#[test]
fn invalid_settings_are_rejected() {
    let on_off = |change: fn(&mut OnOffSpec)| {
        let mut spec = on_off(constant(1.0), constant(1.0), None);
        change(&mut spec);
        OnOffSender::new(&spec, false, random("a")).is_err()
    };
    assert!(!on_off(|_| ()));
    assert!(on_off(|spec| spec.rate = Rate::from_bits_per_second(0)));
    assert!(on_off(|spec| spec.payload_bytes = 0));
    assert!(on_off(|spec| spec.on_s = constant(0.0)));
    assert!(on_off(|spec| spec.off_s = constant(-1.0)));
    let large = OnOffSpec { payload_bytes: 65_508, ..self::on_off(constant(1.0), constant(1.0), None) };
    assert!(
        OnOffSender::new(&large, false, random("a")).is_err() && OnOffSender::new(&large, true, random("a")).is_ok()
    );
    let poisson = |change: fn(&mut PoissonPacketsSpec)| {
        let mut spec = poisson(constant(1.0), 1);
        change(&mut spec);
        PoissonPacketsSender::new(&spec, random("a")).is_err()
    };
    assert!(!poisson(|_| ()));
    assert!(poisson(|spec| spec.mean_interval = Duration::ZERO));
    assert!(poisson(|spec| spec.max_payload_bytes = 65_508));
    let video = |change: fn(&mut VideoCbrSpec)| {
        let mut spec = video();
        change(&mut spec);
        VideoCbrSender::new(&spec, false).is_err()
    };
    assert!(!video(|_| ()));
    assert!(video(|spec| spec.frames_per_s = f64::NAN));
    assert!(video(|spec| spec.frames_per_s = 0.0));
    assert!(video(|spec| spec.group_frames = 0));
    assert!(video(|spec| spec.i_to_p_ratio = 0.0));
    assert!(video(|spec| spec.max_payload_bytes = 0));
    assert!(video(|spec| spec.rate = Rate::from_bits_per_second(u64::MAX)));
    let voice = |change: fn(&mut VoiceSpec)| {
        let mut spec = VoiceSpec { talk_spurts: Some(TalkSpurts::p59()), ..VoiceSpec::g711() };
        change(&mut spec);
        VoiceEndpoint::caller(&spec, random("a")).is_err()
    };
    assert!(!voice(|_| ()));
    assert!(voice(|spec| spec.interval = Duration::ZERO));
    assert!(voice(|spec| spec.payload_bytes = 65_508));
    assert!(voice(|spec| {
        spec.talk_spurts = Some(TalkSpurts { talk_s: Distribution::Constant { value: 0.0 }, ..TalkSpurts::p59() });
    }));
    let mut game = GamingSpec::ngmn();
    game.server.interval_s = constant(0.0);
    let error = GamingEndpoint::client(&game, random("a")).unwrap_err();
    assert_eq!(error.to_string(), "server: the mean interval must be at least 1 ns");
}
