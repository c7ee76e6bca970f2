//! Compares synthetic traces with the published statistics of the excerpt of 1018 connections, and with the load that the draft's
//! tables imply.

use fullpipe_tmix::load::estimate;
use fullpipe_tmix::{ConnectionKind, ConnectionVector, LoadDirection, Overhead, Side, SyntheticTrace, generate};

/// The first seconds of the nine traces.
fn sample(seconds: u64) -> Vec<Vec<ConnectionVector>> {
    let made = |trace: &SyntheticTrace| (0..seconds).flat_map(|second| trace.connections_in_second(second)).collect();
    SyntheticTrace::suite(1, generate::DEFAULT_LENGTH).iter().map(made).collect()
}

/// Checks that each percentile of an excerpt of `excerpt` values is plausible for `values`. The fraction of `values` below it may
/// differ from the rank by three standard errors of the excerpt's rank, plus half a unit for whole numbers. The sample is so
/// large that its own error does not count.
fn check(what: &str, values: &[f64], excerpt: f64, percentiles: &[(f64, f64)]) {
    for (rank, value) in percentiles {
        let below = |value: f64| values.iter().filter(|one| **one < value).count() as f64 / values.len() as f64;
        let error = 3.0 * (rank * (1.0 - rank) / excerpt).sqrt();
        let (low, high) = (below(*value), below(value + value * 1e-9 + f64::EPSILON));
        assert!(
            low - error <= *rank && *rank <= high + error,
            "{what}: {value} should have {rank} below it, within {error:.4}; it has {low:.4} to {high:.4}"
        );
    }
}

fn micros(duration: fullpipe_units::Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

#[test]
fn percentiles_match_the_excerpt() {
    let traces = sample(60);
    let all: Vec<&ConnectionVector> = traces.iter().flatten().collect();
    let units = |side| {
        let units = all.iter().flat_map(|one| one.body.iter()).filter(move |adu| adu.side == side && !adu.is_close());
        units.map(|adu| adu.size_bytes as f64).collect::<Vec<_>>()
    };
    // The excerpt's connections have 3.1 exchanges on average, which gives about 3100 units and waits of each kind. Units of a
    // connection are similar, so the sample counts as 1018 independent values.
    let excerpt = 1018.0;
    check("initiator's units", &units(Side::Initiator), excerpt, &[(0.5, 268.0), (0.9, 598.0), (0.99, 4_235.0)]);
    check("acceptor's units", &units(Side::Acceptor), excerpt, &[(0.5, 511.0), (0.9, 12_137.0), (0.99, 185_344.0)]);
    assert!(units(Side::Acceptor).iter().all(|size| *size <= 8.83e6));
    let bytes: Vec<f64> =
        all.iter().map(|one| (one.bytes(Side::Initiator) + one.bytes(Side::Acceptor)) as f64).collect();
    check("bytes of a connection", &bytes, excerpt, &[(0.5, 1_907.0), (0.9, 39_517.0), (0.99, 835_120.0)]);
    let epochs: Vec<f64> = all
        .iter()
        .filter_map(|one| match one.kind {
            ConnectionKind::Sequential { epochs } => Some(epochs as f64),
            ConnectionKind::Concurrent { .. } => None,
        })
        .collect();
    check("exchanges", &epochs, excerpt, &[(0.5, 2.0), (0.9, 6.0), (0.99, 27.0)]);
    let mean = epochs.iter().sum::<f64>() / epochs.len() as f64;
    assert!((mean - 3.1).abs() < 0.05, "{mean}");
    assert!(epochs.iter().all(|count| *count <= 164.0));
    let rtt: Vec<f64> = all.iter().map(|one| micros(one.rtt.expect("it has one")) / 1e3).collect();
    check("round-trip times", &rtt, excerpt, &[(0.1, 14.0), (0.5, 57.0), (0.9, 329.0), (0.99, 2_360.0)]);
    let waits = |pick: fn(&fullpipe_tmix::Adu) -> fullpipe_units::Duration| {
        let waits = all.iter().filter(|one| one.is_sequential()).flat_map(|one| one.body.iter()).map(pick);
        waits.map(micros).filter(|wait| *wait > 0.0).collect::<Vec<_>>()
    };
    let receive = waits(|adu| adu.receive_wait);
    check("receive-waits", &receive, excerpt, &[(0.5, 24e3), (0.9, 373e3), (0.99, 20_542e3)]);
    let send = waits(|adu| adu.send_wait);
    check("send-waits", &send, excerpt, &[(0.5, 3.9e6), (0.9, 24e6), (0.99, 81e6)]);
}

#[test]
fn shares_match_the_excerpt_and_the_draft() {
    let traces = sample(60);
    let all: Vec<&ConnectionVector> = traces.iter().flatten().collect();
    let share = |what: &str, expected: f64, has: fn(&ConnectionVector) -> bool| {
        let count = all.len() as f64;
        let found = all.iter().filter(|one| has(one)).count() as f64 / count;
        // The tolerance is four standard errors of the sample.
        let error = 4.0 * (expected * (1.0 - expected) / count).sqrt();
        assert!((found - expected).abs() <= error, "{what}: {found:.4}, not {expected:.4} within {error:.4}");
    };
    share("concurrent", 11.0 / 1018.0, |one| !one.is_sequential());
    share("acceptor first", 88.0 / 1018.0, |one| one.body[0].side == Side::Acceptor);
    share("packets of 536 bytes", 0.1, |one| one.mss_bytes.expect("it has one").initiator == 496);
    assert!(all.iter().all(|one| {
        let mss = one.mss_bytes.expect("it has one");
        mss.initiator == mss.acceptor && (mss.initiator == 496 || mss.initiator == 1460)
    }));
    // A loss so small that it is written as 0 counts as no loss.
    let lossy = all.iter().filter(|one| one.loss.is_some_and(|loss| loss.initiator + loss.acceptor > 0.0)).count();
    let lossy = lossy as f64 / all.len() as f64;
    assert!((0.10..0.12).contains(&lossy), "{lossy}");
    assert!(all.iter().all(|one| one.loss.is_some_and(|loss| loss.initiator <= 0.5 && loss.acceptor <= 0.5)));
}

#[test]
fn arrivals_are_as_irregular_as_in_the_excerpt() {
    // The excerpt has a median of 4.46 ms and a 90th percentile of 15.4 ms at a mean of 6.73 ms: the shape of an exponential
    // distribution.
    let mut starts: Vec<f64> = sample(60).iter().flatten().map(|one| micros(one.start)).collect();
    starts.sort_by(f64::total_cmp);
    let gaps: Vec<f64> = starts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let relative: Vec<f64> = gaps.iter().map(|gap| gap / mean).collect();
    check("gaps", &relative, 1018.0, &[(0.5, 4.46 / 6.73), (0.9, 15.4 / 6.73)]);
}

#[test]
fn traces_are_sorted_by_round_trip_time() {
    let range = |trace: &Vec<ConnectionVector>| {
        let rtt = || trace.iter().map(|one| one.rtt.expect("it has one"));
        (rtt().min().expect("not empty"), rtt().max().expect("not empty"))
    };
    let ranges: Vec<_> = sample(10).iter().map(range).collect();
    for pair in ranges.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{pair:?}");
    }
}

#[test]
fn nine_traces_offer_the_load_of_the_drafts_tables() {
    // Load x scale x capacity gives 317 to 324 Mbit/s towards the initiators for the draft's access link, and 34 to 36 Mbit/s in
    // the opposite direction for the satellite link. Each of the nine traces has the same share.
    let seconds = 200;
    let mut reverse_of = Vec::new();
    let mut forward = 0;
    for trace in &sample(seconds) {
        let estimates = trace.iter().map(|one| estimate(one, &Overhead::default(), 1e6));
        let (to, from) = estimates.fold((0, 0), |(to, from), one| {
            (to + one.bits_in_direction(LoadDirection::Forward), from + one.bits_in_direction(LoadDirection::Reverse))
        });
        forward += to;
        reverse_of.push(from as f64 / seconds as f64 / 1e6);
    }
    let forward = forward as f64 / seconds as f64 / 1e6;
    let reverse: f64 = reverse_of.iter().sum();
    assert!((317.0..=324.0).contains(&reverse), "{reverse}");
    assert!((34.0..=36.0).contains(&forward), "{forward}");
    // The load of a second has a standard deviation below a quarter of its mean, a result of stratified sampling (not a rule of
    // the draft). So means of 200 seconds differ by less than 4 x 0.25 / sqrt(200) = 7 %.
    for one in &reverse_of {
        assert!((one / (reverse / 9.0) - 1.0).abs() < 0.07, "{reverse_of:?}");
    }
}

#[test]
fn size_does_not_depend_on_the_time_within_a_second() {
    // The mean rank by bytes is the same in both halves of a second. In 9 x 60 seconds of about 115 connections, the mean of 57
    // uniform ranks differs from 1/2 by a standard deviation of 0.29 / sqrt(57 x 540) = 0.0017. The tolerance is five of these.
    let mut sum = 0.0;
    let mut count = 0.0;
    for trace in SyntheticTrace::suite(1, generate::DEFAULT_LENGTH) {
        for second in 0..60 {
            let bytes: Vec<u64> = trace
                .connections_in_second(second)
                .iter()
                .map(|one| one.bytes(Side::Initiator) + one.bytes(Side::Acceptor))
                .collect();
            for one in &bytes[..bytes.len() / 2] {
                let below = bytes.iter().filter(|other| *other < one).count() as f64;
                sum += (below + 0.5) / bytes.len() as f64;
                count += 1.0;
            }
        }
    }
    let mean = sum / count;
    assert!((mean - 0.5).abs() < 0.0085, "{mean}");
}
