//! Tests of the target search on synthetic traces: the values of a plan are computed again here by another method.

use fullpipe_tmix::{
    BinOrder, ConnectionVector, ExperimentPlan, ExperimentSpec, LoadDirection, MemoryTrace, Prefill, ScaleAttempt,
    Side, SyntheticTrace, find_scale, generate,
};
use fullpipe_units::{Duration, Rate};

/// The access link: 100 Mbit/s, longest round-trip time 0.408 s (reference, section 5).
fn access(load: f64, seed: u64) -> ExperimentSpec {
    ExperimentSpec::draft(Rate::from_megabits_per_second(100), load, Duration::from_millis(408), seed)
}

fn find(suite: &ExperimentSpec) -> ExperimentPlan {
    find_scale(suite, &mut SyntheticTrace::suite(1, generate::DEFAULT_LENGTH), |_| ()).expect("there is a scale")
}

/// All connections of the run.
fn connections(plan: &ExperimentPlan) -> Vec<ConnectionVector> {
    let traces = SyntheticTrace::suite(1, generate::DEFAULT_LENGTH);
    let streams = traces.into_iter().map(|trace| plan.schedule.schedule_trace(trace).expect("it can be scheduled"));
    streams.flatten().map(|one| one.expect("it is made")).collect()
}

/// Approximate bits towards the initiators: payload, a header per segment begun, half an acknowledgment per segment.
fn bits(connection: &ConnectionVector) -> f64 {
    let mss = f64::from(connection.mss_bytes.expect("it has one").acceptor);
    let units = connection.body.iter().filter(|adu| !adu.is_close());
    let bytes: f64 = units
        .map(|adu| {
            let segments = (adu.size_bytes as f64 / mss).ceil();
            if adu.side == Side::Acceptor { adu.size_bytes as f64 + 40.0 * segments } else { 20.0 * (segments + 1.0) }
        })
        .sum();
    8.0 * (bytes + 80.0)
}

#[test]
fn access_link_has_the_drafts_scale_and_a_steady_load() {
    for (load, published) in [(0.6, 5.276), (0.85, 3.812), (1.1, 2.947)] {
        let suite = access(load, 1);
        let plan = find(&suite);
        assert!((plan.schedule.scale / published - 1.0).abs() < 0.1, "{load}: {}", plan.schedule.scale);
        // prefill_t of the draft's table: 36.72, 52.02, 67.32 s.
        assert_eq!(plan.schedule.prefill.time, Duration::from_secs_f64(61.2 * load));
        assert!(plan.schedule.prefill.interval <= plan.schedule.prefill.time);
        assert_eq!(plan.schedule.prefill.time + plan.warmup + plan.test, plan.schedule.duration);
        // The measured time begins and ends with a bin and offers the target load, in each third too.
        let from = (plan.schedule.prefill.time + plan.warmup).as_nanos() / suite.bin.as_nanos();
        let counted = &plan.bins[from as usize..];
        assert_eq!(plan.test, suite.bin * counted.len() as u64);
        let mean = |bins: &[f64]| bins.iter().sum::<f64>() / bins.len() as f64;
        assert!((mean(counted) / load - 1.0).abs() < 0.05, "{load}: {}", mean(counted));
        assert!((plan.load - mean(counted)).abs() < 1e-12);
        for third in counted.chunks(counted.len().div_ceil(3)) {
            assert!((mean(third) / load - 1.0).abs() < 0.05, "{load}: third {}", mean(third));
        }
    }
}

#[test]
fn run_carries_the_bits_that_the_plan_counts() {
    let suite = access(0.6, 2);
    let plan = find(&suite);
    let all = connections(&plan);
    // `total` has all bits of the connections that start in the run; the estimate omits bits after its end.
    let total: f64 = all.iter().map(bits).sum();
    let planned: f64 = plan.bins.iter().map(|load| load * 500e6).sum();
    assert!(planned <= total, "{planned} of {total}");
    assert!(planned > 0.85 * total, "{planned} of {total}");
    // The prefill's connections fill its last interval at the target load: their bits are C x load x interval.
    let early: Vec<&ConnectionVector> = all.iter().filter(|one| one.start < plan.schedule.prefill.time).collect();
    let expected = 100e6 * 0.6 * plan.schedule.prefill.interval.as_secs_f64();
    let found: f64 = early.iter().map(|one| bits(one)).sum();
    assert!((found / expected - 1.0).abs() < 0.01, "{found}, not {expected}");
    let begin = plan.schedule.prefill.time - plan.schedule.prefill.interval;
    assert!(early.iter().all(|one| one.start >= begin));
    // Only the few long-lived connections are kept.
    let seconds = plan.schedule.prefill.time.as_secs_f64();
    let usual = all.len() as f64 / plan.schedule.duration.as_secs_f64() * seconds;
    assert!((early.len() as f64) < 0.5 * usual, "{} of {usual}", early.len());
}

#[test]
fn search_is_deterministic_and_reports_its_steps() {
    let suite = access(0.85, 3);
    let mut steps: Vec<ScaleAttempt> = Vec::new();
    let plan =
        find_scale(&suite, &mut SyntheticTrace::suite(1, generate::DEFAULT_LENGTH), |attempt| steps.push(*attempt));
    let plan = plan.expect("there is a scale");
    assert_eq!(find(&suite), plan);
    let last = steps[steps.len() - 1];
    assert_eq!((last.scale, last.duration, last.balanced), (plan.schedule.scale, plan.schedule.duration, true));
    assert!((last.load / 0.85 - 1.0).abs() <= 0.02);
    assert_ne!(find(&access(0.85, 4)).bins, plan.bins);
}

#[test]
fn loads_towards_acceptors_and_on_a_shared_medium_reach_their_targets() {
    // The satellite link has 4 Mbit/s towards the acceptors, in bins of 125 s; the draft's scale is 15.0. The nominal
    // 6 Mbit/s of the wireless link carry both directions: (320 + 35) / (0.6 x 6) = 98.6.
    let mut satellite = ExperimentSpec::draft(Rate::from_megabits_per_second(4), 0.6, Duration::from_millis(3608), 1);
    satellite.direction = LoadDirection::Forward;
    satellite.minimum_bins = 24;
    let scale = find(&satellite).schedule.scale;
    assert!((scale / 15.0 - 1.0).abs() < 0.1, "{scale}");
    let mut wireless = ExperimentSpec::draft(Rate::from_megabits_per_second(6), 0.6, Duration::from_millis(408), 1);
    wireless.direction = LoadDirection::Both;
    wireless.prefill = Duration::ZERO;
    let plan = find(&wireless);
    assert!((plan.schedule.scale / 98.6 - 1.0).abs() < 0.1, "{}", plan.schedule.scale);
    assert_eq!(plan.schedule.prefill.time, Duration::ZERO);
}

#[test]
fn given_scale_has_a_computed_prefill_and_recorded_order_at_scale_1_is_the_trace() {
    let mut traces = SyntheticTrace::suite(1, generate::DEFAULT_LENGTH);
    let suite = ExperimentSpec { order: BinOrder::Original, prefill: Duration::ZERO, ..access(0.6, 1) };
    let duration = Duration::from_secs(2);
    let schedule = suite.schedule(1.0, duration, &mut traces).expect("it can be scheduled");
    assert_eq!(schedule.prefill.time, Duration::ZERO);
    let played: Vec<_> =
        schedule.schedule_trace(&mut traces[4]).expect("it can be").map(|one| one.expect("it is made")).collect();
    assert_eq!(played, [traces[4].connections_in_second(0), traces[4].connections_in_second(1)].concat());
    // At half of the target load the same connections need twice the time, which exceeds the prefill's: no prefill.
    let light = ExperimentSpec { load: 0.1, prefill: Duration::from_secs(30), ..suite };
    let schedule = light.schedule(1.0, duration, &mut traces).expect("it can be scheduled");
    assert_eq!(schedule.prefill, Prefill::NONE);
}

#[test]
fn impossible_targets_are_rejected_with_a_reason() {
    let refused = |suite: &ExperimentSpec, mut traces: Vec<MemoryTrace>| {
        find_scale(suite, &mut traces, |_| ()).expect_err("the target is impossible").to_string()
    };
    let suite = access(0.6, 1);
    assert!(refused(&suite, vec![]).contains("no trace is given"));
    let empty = || vec![MemoryTrace::new("r4s1", Duration::from_secs(3000), vec![])];
    assert!(refused(&suite, empty()).contains("no load in the direction"));
    assert!(refused(&ExperimentSpec { load: 0.0, ..suite }, empty()).contains("load must be above 0"));
    assert!(refused(&ExperimentSpec { load: f64::NAN, ..suite }, empty()).contains("load must be above 0"));
    assert!(refused(&ExperimentSpec { bin: Duration::ZERO, ..suite }, empty()).contains("above 0"));
    // All bytes of a trace are in one second: the load is never steady.
    let burst: Vec<ConnectionVector> = SyntheticTrace::suite(1, generate::DEFAULT_LENGTH)[0].connections_in_second(0);
    let refusal = refused(&suite, vec![MemoryTrace::new("r4s1", Duration::from_secs(3000), burst)]);
    assert!(refusal.contains("no scale gives a steady load of 60.0 %"), "{refusal}");
}

#[test]
fn prefill_correction_of_an_experiment_scales_the_prefill() {
    let mut traces = SyntheticTrace::suite(1, generate::DEFAULT_LENGTH);
    let suite = ExperimentSpec { capacity: Rate::from_megabits_per_second(400), ..access(0.6, 1) };
    let suite = ExperimentSpec { prefill: Duration::from_secs(20), ..suite };
    let interval = |suite: &ExperimentSpec, traces: &mut [SyntheticTrace]| {
        let schedule = suite.schedule(2.0, Duration::from_secs(100), traces).expect("it can be scheduled");
        schedule.prefill.interval.as_secs_f64()
    };
    let whole = interval(&suite, &mut traces);
    let corrected = interval(&ExperimentSpec { prefill_correction: 0.65, ..suite }, &mut traces);
    assert!(whole > 1.0 && (corrected / whole - 0.65).abs() < 1e-6, "{corrected} of {whole}");
}
