//! Tests of the shuffle, the scale and the prefill.

use fullpipe_tmix::{
    Adu, BinOrder, ConnectionKind, ConnectionVector, Error, MemoryTrace, Prefill, Schedule, Side, SyntheticTrace, Trace,
};
use fullpipe_units::Duration;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A connection of one unit, identified by its second id.
fn connection(id: u64, start: Duration, size_bytes: u64, last_wait: Duration) -> ConnectionVector {
    let side = Side::Initiator;
    let unit = Adu { side, send_wait: Duration::ZERO, receive_wait: Duration::ZERO, size_bytes };
    ConnectionVector {
        start,
        kind: ConnectionKind::Sequential { epochs: 1 },
        ids: [0, id],
        mss_bytes: None,
        window_bytes: None,
        rtt: None,
        loss: None,
        body: [unit, Adu { send_wait: last_wait, size_bytes: 0, ..unit }].into(),
    }
}

fn schedule(scale: f64, bin: Duration, seed: u64) -> Schedule {
    Schedule {
        scale,
        bin,
        order: BinOrder::Shuffled,
        seed,
        trace_length: Duration::from_secs(3000),
        duration: Duration::MAX,
        prefill: Prefill::NONE,
    }
}

fn played<T: Trace>(schedule: &Schedule, trace: T) -> Vec<ConnectionVector> {
    schedule
        .schedule_trace(trace)
        .expect("it can be scheduled")
        .map(|one| one.expect("reading from memory succeeds"))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_shuffle_is_a_permutation_of_bins_and_touches_no_body(
        starts in prop::collection::vec(0u64..1_000_000_000, 0..200),
        scale in 0.05f64..50.0,
        bins in 1u64..60,
        seed: u64,
    ) {
        let length = Duration::from_secs(1);
        let connections: Vec<_> = starts
            .iter()
            .enumerate()
            .map(|(id, start)| connection(id as u64, Duration::from_nanos(*start), 1 + start % 1000, Duration::from_micros(1)))
            .collect();
        // The trace has this many bins; the last one is shorter.
        let width = 1.0 / (bins as f64 - 0.5);
        let schedule = schedule(scale, Duration::from_secs_f64(width * scale), seed);
        let width = Duration::from_secs_f64(schedule.bin.as_secs_f64() / scale);
        let trace = MemoryTrace::new("r4s1", length, connections.clone());
        let stream = schedule.schedule_trace(trace).expect("it can be scheduled");
        let order = stream.order().to_vec();
        let distinct: BTreeSet<u32> = order.iter().copied().collect();
        prop_assert_eq!(distinct.len() as u64, bins);
        prop_assert_eq!(distinct.last().copied(), Some(bins as u32 - 1));
        let mut played: Vec<_> = stream.map(|one| one.expect("reading from memory succeeds")).collect();
        prop_assert!(played.is_sorted_by_key(|one| one.start));
        // Each connection occurs once, at (position of its bin + its position in the bin) x scale.
        played.sort_by_key(|one| one.ids[1]);
        prop_assert_eq!(played.len(), connections.len());
        for (before, after) in connections.iter().zip(&played) {
            let bin = before.start.as_nanos() / width.as_nanos();
            let place = order.iter().position(|source| u64::from(*source) == bin).expect("it is a permutation");
            let expected = (place as u64 * width.as_nanos() + before.start.as_nanos() % width.as_nanos()) as f64 * scale;
            prop_assert!((after.start.as_nanos() as f64 - expected).abs() <= 1.0, "{} is not {expected}", after.start.as_nanos());
            prop_assert_eq!(&ConnectionVector { start: before.start, ..after.clone() }, before);
        }
    }

    #[test]
    fn a_shorter_run_is_the_beginning_of_a_longer_one(seed: u64, seconds in 1u64..40) {
        let trace = SyntheticTrace::new(1, "r4s2", Duration::from_secs(20)).expect("one of the nine");
        let long = schedule(2.0, Duration::from_secs(1), seed);
        let short = Schedule { duration: Duration::from_secs(seconds), ..long };
        let long = played(&long, trace.clone());
        let short = played(&short, trace);
        let end = Duration::from_secs(seconds);
        prop_assert!(long.iter().take_while(|one| one.start < end).eq(short.iter()));
    }
}

#[test]
fn shuffles_differ_between_seeds_and_between_traces() {
    let order = |seed, name| {
        let trace = MemoryTrace::new(name, Duration::from_secs(100), Vec::new());
        schedule(1.0, Duration::from_secs(1), seed).schedule_trace(trace).expect("it can be scheduled").order().to_vec()
    };
    assert_eq!(order(1, "r4s1"), order(1, "r4s1"));
    assert_ne!(order(1, "r4s1"), order(2, "r4s1"));
    assert_ne!(order(1, "r4s1"), order(1, "r4s2"));
    let sorted: Vec<u32> = (0..100).collect();
    assert_ne!(order(1, "r4s1"), sorted);
    // Each position is equally likely for each bin. Bin 0 of 100 is in the first half of 400 shuffles 200 times, with a standard
    // deviation of 10. The tolerance is five of these.
    let early =
        (0..400).filter(|seed| order(*seed, "x").iter().position(|bin| *bin == 0).expect("bin 0 occurs") < 50).count();
    assert!((150..=250).contains(&early), "{early}");
}

#[test]
fn recorded_order_at_scale_1_is_the_trace() {
    let length = Duration::from_secs(10);
    let mut trace = SyntheticTrace::new(1, "r4s1", length).expect("one of the nine");
    let all = trace.connections(Duration::ZERO, length).expect("it is made");
    let recorded = Schedule { order: BinOrder::Original, ..schedule(1.0, Duration::from_millis(700), 1) };
    assert_eq!(played(&recorded, trace.clone()), all);
    // At scale 2 each start is twice as late.
    let slow = Schedule { scale: 2.0, ..recorded };
    let starts: Vec<u64> = played(&slow, trace).iter().map(|one| one.start.as_nanos()).collect();
    assert_eq!(starts, all.iter().map(|one| 2 * one.start.as_nanos()).collect::<Vec<_>>());
}

#[test]
fn prefill_keeps_long_lived_connections_and_compresses_their_starts() {
    // One connection starts in each of 100 seconds. Every fifth has a lifetime of 60 s, the others 10 s (1 Mbit/s, 1 byte).
    let connections: Vec<_> = (0..100)
        .map(|id| {
            let wait = if id % 5 == 0 { 60 } else { 10 };
            connection(id, Duration::from_secs(id), 1, Duration::from_secs(wait))
        })
        .collect();
    let trace = MemoryTrace::new("r4s1", Duration::from_secs(100), connections);
    let prefill = Prefill {
        time: Duration::from_secs(40),
        interval: Duration::from_secs(10),
        lifetime: Duration::from_secs(20),
        share_bps: 1e6,
    };
    let recorded = Schedule { order: BinOrder::Original, prefill, ..schedule(1.0, Duration::from_secs(3), 1) };
    let played = played(&recorded, trace);
    let starts: Vec<(u64, u64)> = played.iter().map(|one| (one.ids[1], one.start.as_nanos() / 1_000_000)).collect();
    // The prefill keeps 0, 5, ... 35: start t becomes 30 s + t / 4.
    let early =
        [(0, 30_000), (5, 31_250), (10, 32_500), (15, 33_750), (20, 35_000), (25, 36_250), (30, 37_500), (35, 38_750)];
    assert_eq!(starts[..8], early);
    assert_eq!(starts[8..], (40..100).map(|id| (id, id * 1_000)).collect::<Vec<_>>());
}

#[test]
fn schedules_with_invalid_values_are_rejected() {
    let trace = || MemoryTrace::new("r4s1", Duration::from_secs(3000), Vec::new());
    for (scale, bin) in [
        (0.0, Duration::from_secs(1)),
        (-1.0, Duration::from_secs(1)),
        (f64::NAN, Duration::from_secs(1)),
        (f64::INFINITY, Duration::from_secs(1)),
        (1.0, Duration::ZERO),
        (1e9, Duration::from_secs(1)),
        (1e300, Duration::from_nanos(1)),
    ] {
        let refused = schedule(scale, bin, 1).schedule_trace(trace()).map(|_| ()).expect_err("the value is invalid");
        assert!(matches!(refused, Error::Unsatisfiable(_)), "{refused}");
    }
    // A scale so small that the run has no second of the trace is valid.
    assert_eq!(played(&schedule(1e-12, Duration::from_secs(1), 1), trace()).len(), 0);
}

/// A trace that fails from its fourth second on.
struct Failing;

impl Trace for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn length(&self) -> Duration {
        Duration::from_secs(10)
    }

    fn connections(&mut self, from: Duration, _: Duration) -> Result<Vec<ConnectionVector>, Error> {
        if from >= Duration::from_secs(4) {
            return Err(Error::Unsatisfiable("gone".to_string()));
        }
        Ok(vec![connection(0, from, 1, Duration::from_micros(1))])
    }
}

#[test]
fn failing_trace_ends_the_stream_with_the_error() {
    let recorded = Schedule { order: BinOrder::Original, ..schedule(1.0, Duration::from_secs(1), 1) };
    let found: Vec<bool> =
        recorded.schedule_trace(Failing).expect("it can be scheduled").map(|one| one.is_ok()).collect();
    assert_eq!(found, [true, true, true, true, false]);
}
