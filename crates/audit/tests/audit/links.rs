//! Single links: rates, order, delays and balances, and for each fault the failure that reports it.

use crate::world::{Event, Link, Random, Run};
use fullpipe_audit::{DeclaredLink, FinalLinkState, MediumAccess, Rule};
use fullpipe_record::{DropReason, Transmission};
use fullpipe_units::{Duration, FlowId, Instant, LinkId};

const NO_FLOW: FlowId = FlowId(u32::MAX);

/// Frames without a flow on one link.
struct Wire {
    run: Run,
}

impl Wire {
    fn new(declared: DeclaredLink) -> Wire {
        Wire { run: Run { links: vec![declared], link_ends: vec![FinalLinkState::default()], ..Run::default() } }
    }

    fn point_to_point(rate_bps: u64, delay_ns: u64) -> Wire {
        Wire::new(DeclaredLink { queue: None, mtu_bytes: 9000, ..Link::new(rate_bps, delay_ns, 1).declared })
    }

    fn frame(&mut self, bytes: u32, offered: u64, start: u64, finish: u64, arrival: u64) {
        let at = Instant::from_nanos;
        self.run.events.push(Event::Offered(LinkId(0), bytes));
        self.run.events.push(Event::Transmitted(Transmission {
            link: LinkId(0),
            flow: NO_FLOW,
            wire_bytes: bytes,
            offered: at(offered),
            start: at(start),
            finish: at(finish),
            arrival: at(arrival),
        }));
    }

    /// Returns the rule and the message of the only failure; `None` if the audit passed.
    fn failure(&self) -> Option<(Rule, String)> {
        let verdict = self.run.streaming();
        assert!(verdict.failures.len() < 2, "{verdict}");
        verdict.failures.first().map(|failure| (failure.rule, failure.message.clone()))
    }

    fn rule(&self) -> Option<Rule> {
        self.failure().map(|(rule, _)| rule)
    }
}

/// Sends frames of this size back to back at `rate_bps` times `numerator` / `denominator`, with exact fractions, until the
/// audit fails. Returns the number of frames that this took, at most `most`.
fn frames_until_noticed(rate_bps: u64, bytes: u32, numerator: u64, denominator: u64, most: u64) -> Option<u64> {
    frames_until_noticed_on(Wire::point_to_point(rate_bps, 0), bytes, numerator, denominator, most)
}

fn frames_until_noticed_on(mut wire: Wire, bytes: u32, numerator: u64, denominator: u64, most: u64) -> Option<u64> {
    let rate_bps = wire.run.links[0].rate_bps;
    let real = u128::from(rate_bps) * u128::from(numerator);
    let mut previous = 0;
    for number in 1..=most {
        let scaled = u128::from(number) * u128::from(bytes) * 8_000_000_000 * u128::from(denominator);
        let finish = (scaled / real) as u64;
        wire.frame(bytes, 0, previous, finish, finish);
        previous = finish;
        if number % 8 < 2 || number == most {
            match wire.rule() {
                Some(Rule::LinkRate) => return Some(number),
                Some(other) => panic!("{other}"),
                None => {}
            }
        }
    }
    None
}

const RATES: [u64; 5] = [56_000, 7_000_000, 100_000_000, 10_000_000_000, 100_000_000_000];

#[test]
fn a_link_at_its_rate_passes() {
    for rate in RATES {
        for bytes in [64, 1502] {
            assert_eq!(frames_until_noticed(rate, bytes, 1, 1, 300), None, "{rate} bit/s, {bytes} bytes");
        }
    }
}

#[test]
fn a_link_one_percent_too_fast_fails_within_two_nanoseconds_of_gain() {
    // A frame of t ns gains t / 101. Rounding by the auditor hides less than one nanosecond of the sum, and rounding by the link
    // can hide another. The failure occurs when n t / 101 >= 1, at the latest when it is 2.
    // 100 Gbit/s, 64 bytes: t = 5.12, at most 40 frames; 10 Gbit/s, 64 bytes: 51.2, at most 4; the others: the first.
    for (rate, bytes, most) in [
        (56_000, 64, 1),
        (56_000, 1502, 1),
        (7_000_000, 64, 1),
        (100_000_000, 1502, 1),
        (10_000_000_000, 1502, 1),
        (10_000_000_000, 64, 8),
        (100_000_000_000, 64, 40),
    ] {
        let noticed = frames_until_noticed(rate, bytes, 101, 100, 100);
        assert!(noticed.is_some_and(|frames| frames <= most), "{rate} bit/s, {bytes} bytes: {noticed:?}");
    }
}

#[test]
fn a_link_a_tenth_of_a_percent_too_fast_fails_after_enough_frames() {
    // As above with t / 1001 per frame: 51.2 ns gain 0.051 each, 1 ns after 20, 2 ns after 40; 5.12 ns: 391 at most.
    for (rate, bytes, most) in
        [(7_000_000, 64, 1), (10_000_000_000, 1502, 2), (10_000_000_000, 64, 40), (100_000_000_000, 64, 393)]
    {
        let noticed = frames_until_noticed(rate, bytes, 1001, 1000, 400);
        assert!(noticed.is_some_and(|frames| frames <= most), "{rate} bit/s, {bytes} bytes: {noticed:?}");
    }
}

#[test]
fn a_link_with_varying_delay_must_keep_its_rate() {
    let varying = || {
        let mut wire = Wire::point_to_point(10_000_000_000, 0);
        wire.run.links[0].delay_varies = true;
        wire
    };
    assert_eq!(frames_until_noticed_on(varying(), 64, 1, 1, 300), None);
    assert!(frames_until_noticed_on(varying(), 64, 101, 100, 300).is_some_and(|frames| frames <= 8));
    assert!(frames_until_noticed_on(varying(), 64, 1001, 1000, 300).is_some_and(|frames| frames <= 40));
}

#[test]
fn a_slower_link_and_one_that_rounds_up_pass() {
    assert_eq!(frames_until_noticed(10_000_000_000, 64, 99, 100, 100), None);
    // 64 bytes at 10 Gbit/s: 51.2 ns, here 52 ns each.
    let mut wire = Wire::point_to_point(10_000_000_000, 0);
    for n in 0..50 {
        wire.frame(64, 0, 52 * n, 52 * (n + 1), 52 * (n + 1));
    }
    assert_eq!(wire.rule(), None);
}

#[test]
fn a_frame_may_not_make_up_for_a_slow_one() {
    // Frames of 51.2 ns: one takes 60 ns; the next must not take 44 ns, although both together took 104 ns.
    let mut wire = Wire::point_to_point(10_000_000_000, 0);
    wire.frame(64, 0, 0, 60, 60);
    wire.frame(64, 0, 60, 104, 104);
    assert_eq!(wire.rule(), Some(Rule::LinkRate));
}

#[test]
fn only_an_idle_nanosecond_clears_the_owed_fraction() {
    // Frames of 51 instead of 51.2 ns, each started after an idle nanosecond, so that each is checked alone.
    let mut wire = Wire::point_to_point(10_000_000_000, 0);
    for n in 0..50 {
        wire.frame(64, 52 * n, 52 * n, 52 * n + 51, 52 * n + 51);
    }
    assert_eq!(wire.rule(), None);
    // Frames that arrive exactly when the previous one ends find the link free, but 51 ns per frame exceeds the rate: after
    // six frames 306 ns have passed instead of 307.2 ns, of which 307 must be visible.
    for (frames, expected) in [(4, None), (6, Some(Rule::LinkRate))] {
        let mut wire = Wire::point_to_point(10_000_000_000, 0);
        for n in 0..frames {
            wire.frame(64, 51 * n, 51 * n, 51 * (n + 1), 51 * (n + 1));
        }
        assert_eq!(wire.rule(), expected);
    }
}

#[test]
fn an_early_end_is_reported_with_the_expected_time() {
    // 1502 bytes at 100 Mbit/s: 120 160 ns.
    let mut wire = Wire::point_to_point(100_000_000, 0);
    wire.frame(1502, 5, 10, 120_169, 120_169);
    let (rule, message) = wire.failure().expect("a frame that ends a nanosecond early fails");
    assert_eq!(rule, Rule::LinkRate);
    assert_eq!(
        message,
        "expected a frame of 1502 bytes that starts at 10 ns to end at 120.17 us or later at 100 Mbit/s, found 120.169 us"
    );
}

#[test]
fn arrivals_are_exact_unless_the_delay_varies() {
    for (arrival, varies, expected) in [
        (1_000_999, false, Some(Rule::Propagation)),
        (1_001_000, false, None),
        (1_001_001, false, Some(Rule::Propagation)),
        (1_000_999, true, Some(Rule::Propagation)),
        (1_001_000, true, None),
        (5_000_000, true, None),
    ] {
        // 125 bytes at 1 Gbit/s: 1000 ns, then 1 ms.
        let mut wire = Wire::point_to_point(1_000_000_000, 1_000_000);
        wire.run.links[0].delay_varies = varies;
        wire.frame(125, 0, 0, 1000, arrival);
        assert_eq!(wire.rule(), expected, "{arrival} {varies}");
    }
}

#[test]
fn frames_start_after_their_arrival_and_after_the_previous_frame() {
    let mut early = Wire::point_to_point(1_000_000_000, 0);
    early.frame(125, 100, 99, 1200, 1200);
    assert_eq!(early.rule(), Some(Rule::FrameOrder));
    for (start, expected) in [(999, Some(Rule::Overlap)), (1000, None)] {
        let mut wire = Wire::point_to_point(1_000_000_000, 0);
        wire.frame(125, 0, 0, 1000, 1000);
        wire.frame(125, 0, start, 2100, 2100);
        assert_eq!(wire.rule(), expected);
    }
}

#[test]
fn a_shared_medium_is_busy_until_the_frame_has_reached_all_stations() {
    let medium = |start| {
        let mut wire = Wire::new(DeclaredLink {
            medium: MediumAccess::HalfDuplex,
            framing_bytes: 18,
            min_frame_bytes: 64,
            mtu_bytes: 1500,
            ..Wire::point_to_point(1_000_000_000, 2_000).run.links[0].clone()
        });
        // 64 bytes at 1 Gbit/s: 512 ns, then 2000 ns of propagation.
        wire.frame(64, 0, 0, 512, 2512);
        wire.frame(1518, 100, start, start + 12_144, start + 14_144);
        wire
    };
    assert_eq!(medium(2511).rule(), Some(Rule::Overlap));
    assert_eq!(medium(2512).rule(), None);
    assert_eq!(medium(9999).rule(), None);
    let mut wire = medium(2512);
    wire.frame(64, 0, 20_000, 20_511, 22_511);
    assert_eq!(wire.rule(), Some(Rule::LinkRate));
}

#[test]
fn frames_on_a_shared_medium_without_delay_are_checked_alone() {
    // Stations do not share fractions: frames of 51 instead of 51.2 ns, one after another.
    let mut wire = Wire::point_to_point(10_000_000_000, 0);
    wire.run.links[0].medium = MediumAccess::HalfDuplex;
    for n in 0..50 {
        wire.frame(64, 0, 51 * n, 51 * (n + 1), 51 * (n + 1));
    }
    assert_eq!(wire.rule(), None);
}

/// A scheduled medium with 8 Mbit/s (one byte per microsecond) and a least delay of 3 ms.
fn scheduled() -> Wire {
    let declared = Wire::point_to_point(8_000_000, 3_000_000).run.links[0].clone();
    Wire::new(DeclaredLink { medium: MediumAccess::Scheduled, delay_varies: true, ..declared })
}

#[test]
fn on_a_scheduled_medium_frames_overtake_and_none_takes_less_than_the_least_delay() {
    for (arrival, expected) in [(3_499_999, Some(Rule::Propagation)), (3_500_000, None)] {
        let mut wire = scheduled();
        wire.frame(125, 0, 9_000_000, 9_000_000, 9_000_000);
        // Offered later, arrives earlier.
        wire.frame(125, 500_000, arrival, arrival, arrival);
        assert_eq!(wire.rule(), expected);
    }
}

#[test]
fn on_a_scheduled_medium_no_more_arrives_than_the_rate_allows_since_it_was_empty() {
    // The rate allows 3000 bytes within 3 ms; one byte more is too much.
    for (bytes, expected) in [(1500, None), (1501, Some(Rule::LinkRate))] {
        let mut wire = scheduled();
        // When these frames had arrived the medium was empty: neither their bytes nor the time since then counts.
        for ms in [3_000_000, 13_000_000] {
            wire.frame(2000, ms - 3_000_000, ms, ms, ms);
        }
        wire.run.events.push(Event::Offered(LinkId(0), bytes));
        let (came, arrived) = (100_000_000, 103_000_000);
        wire.frame(1500, came, arrived, arrived, arrived);
        assert_eq!(wire.run.events.len(), 7);
        let Some(Event::Transmitted(first)) = wire.run.events.last().cloned() else { panic!() };
        wire.run.events.push(Event::Transmitted(Transmission { wire_bytes: bytes, ..first }));
        assert_eq!(wire.rule(), expected, "{bytes}");
    }
}

#[test]
fn frames_obey_the_mtu_and_the_framing() {
    for (bytes, expected) in [(1502, None), (1503, Some(Rule::FrameSize))] {
        let mut wire = Wire::point_to_point(1_000_000_000, 0);
        wire.run.links[0].mtu_bytes = 1500;
        wire.frame(bytes, 0, 0, 20_000, 20_000);
        assert_eq!(wire.run.packets().failures.first().map(|failure| failure.rule), expected);
    }
}

#[test]
fn offered_frames_are_transmitted_dropped_or_queued() {
    let right = || {
        let mut wire = Wire::point_to_point(1_000_000_000, 0);
        wire.frame(125, 0, 0, 1000, 1000);
        wire.frame(250, 0, 1000, 3000, 3000);
        wire.run.events.push(Event::Offered(LinkId(0), 500));
        wire.run.events.push(Event::LinkDropped(LinkId(0), 500, DropReason::QueueFull));
        wire.run.events.push(Event::LinkDropped(LinkId(0), 250, DropReason::Loss));
        wire.run.events.push(Event::Offered(LinkId(0), 400));
        wire.run.link_ends[0] = FinalLinkState { queued_frames: 1, queued_bytes: 400 };
        wire
    };
    assert_eq!(right().rule(), None);
    let mut wire = right();
    wire.run.events.remove(0);
    let verdict = wire.run.streaming();
    assert_eq!(verdict.failures.len(), 1);
    assert_eq!(
        (verdict.failures[0].rule, verdict.failures[0].message.as_str(), verdict.failures[0].count),
        // Detected at both transmissions (1 of 0, 2 of 1), at the drop (3 of 2), and at the end.
        (
            Rule::LinkConservation,
            "expected transmissions and drops not to exceed the offered frames, found 1 frame and 125 bytes more",
            4
        )
    );
    let mut wire = right();
    wire.run.link_ends[0].queued_bytes = 399;
    let (_, message) = wire.failure().expect("a missing byte is a failure");
    assert_eq!(
        message,
        "expected 1 frame and 400 bytes in the queue (offered minus transmitted and dropped), found 1 frame and 399 bytes"
    );
}

#[test]
fn events_of_unknown_links_fail() {
    let mut wire = Wire::point_to_point(1_000_000_000, 0);
    wire.run.events.push(Event::LinkDropped(LinkId(7), 100, DropReason::QueueFull));
    assert_eq!(wire.rule(), Some(Rule::Declaration));
}

#[test]
fn rates_at_the_limits_are_checked_without_overflow() {
    // 584 years are 2^64 ns. A frame of 1500 bytes at 1 bit/s takes 12 000 s = 1.2e13 ns. Below 2 bit/s the auditor assumes a slightly
    // higher rate (1500-byte frames: 2^63 / 1500 in 2^-20 ns: 5.86e9 ns per byte, 1.37 bit/s).
    let slow = |finish| {
        let mut wire = Wire::point_to_point(1, 0);
        wire.run.links[0].mtu_bytes = 1500;
        wire.run.links[0].framing_bytes = 0;
        wire.frame(1500, 0, 0, finish, finish);
        wire.rule()
    };
    assert_eq!(slow(12_000_000_000_000), None);
    assert_eq!(slow(8_700_000_000_000), Some(Rule::LinkRate));
    // No declared rate, and a rate at which a byte takes no time.
    for rate in [0, u64::MAX] {
        let mut wire = Wire::point_to_point(rate, 0);
        wire.frame(1500, 0, 0, 0, 0);
        wire.frame(1500, u64::MAX - 1, u64::MAX - 1, u64::MAX - 1, u64::MAX - 1);
        assert_eq!(wire.rule(), None);
    }
}

#[test]
fn a_nanosecond_counts_late_in_a_long_run() {
    // 500 years after the start.
    let late = 500 * 365 * 86_400 * 1_000_000_000;
    for (gain, expected) in [(0, None), (1, Some(Rule::LinkRate))] {
        let mut wire = Wire::point_to_point(1_000_000_000, 7);
        wire.frame(1500, 0, 0, 12_000, 12_007);
        wire.frame(1500, late, late, late + 12_000 - gain, late + 12_007 - gain);
        assert_eq!(wire.rule(), expected);
    }
}

#[test]
fn the_first_failure_is_kept_with_its_message_and_the_others_are_counted() {
    let mut wire = Wire::point_to_point(1_000_000_000, 0);
    for n in 0..10 {
        wire.frame(125, 0, 1000 * n, 1000 * (n + 1), 1000 * (n + 1) + u64::from(n >= 3));
    }
    let verdict = wire.run.streaming();
    assert!(!verdict.passed());
    assert_eq!((verdict.failures.len(), verdict.failures_found()), (1, 7));
    assert_eq!(verdict.failures[0].at, Instant::from_nanos(3000));
    assert_eq!(
        verdict.to_string(),
        format!(
            "audit failed: 7 failures in {} checks\n  propagation: link 0 (1000000000 bit/s) at 3 us: expected a frame that \
             ends at 4 us to arrive 0 ns later, at 4 us, found 4.001 us (7 times)",
            verdict.checks_performed()
        )
    );
}

#[test]
fn the_number_of_kept_failures_is_bounded() {
    let mut run = Run::default();
    for flow in 0..1000 {
        run.events.push(Event::LinkDropped(LinkId(flow), 1, DropReason::QueueFull));
    }
    let verdict = run.streaming();
    assert_eq!(verdict.failures.len(), fullpipe_audit::MAX_FAILURES_KEPT);
    assert_eq!(verdict.failures_found(), 1000);
    assert!(verdict.to_string().ends_with("and 900 more"));
}

#[test]
fn checks_are_counted() {
    let mut wire = Wire::point_to_point(1_000_000_000, 0);
    wire.frame(125, 0, 0, 1000, 1000);
    wire.frame(125, 0, 1000, 2000, 2000);
    let verdict = wire.run.streaming();
    let count = |rule| verdict.checks.iter().find(|(other, _)| *other == rule).map(|(_, count)| *count);
    assert_eq!(count(Rule::LinkRate), Some(2));
    assert_eq!(count(Rule::Propagation), Some(2));
    // One check per frame, and one for the balance of the link.
    assert_eq!(count(Rule::LinkConservation), Some(3));
    assert_eq!(count(Rule::PathTime), None);
    assert!(verdict.to_string().starts_with("audit passed: "));
}

#[test]
fn random_frames_at_odd_rates_pass_and_one_percent_more_fails() {
    let mut random = Random(9);
    for round in 0..200 {
        let rate = 10_000 + random.below(40_000_000_000);
        for fast in [false, true] {
            let real = u128::from(rate) * if fast { 101 } else { 100 };
            let mut wire = Wire::point_to_point(rate, 1);
            let (mut exact, mut previous) = (0u128, 0u64);
            for _ in 0..200 {
                let bytes = 1400 + random.below(100) as u32;
                let start = if random.chance(20) { previous + random.below(3) } else { previous };
                exact = exact.max(u128::from(start) * real) + u128::from(bytes) * 800_000_000_000;
                previous = (exact / real) as u64;
                wire.frame(bytes, 0, start, previous, previous + Duration::from_nanos(1).as_nanos());
            }
            assert_eq!(wire.rule(), fast.then_some(Rule::LinkRate), "round {round}: {rate} bit/s");
        }
    }
}
