//! Events of scenarios: a conditional change equals the same change at a stated time, and conditions are met when the metric says so.

use crate::common::{csv, outcome};
use fullpipe_lab::{EventOutcome, Options, Outcome, Plugins, RunError, run, run_with};
use fullpipe_scenario::Override;
use fullpipe_units::{Duration, Instant};

/// One BBRv3 flow over 10 Mbit/s and 40 ms with a queue of half a BDP.
fn single(further: &str) -> String {
    format!(
        "duration = '12s'
        [topology]
        kind = 'chain'
        [[topology.link]]
        rate = '1Gbit/s'
        delay = '1ms'
        [[topology.link]]
        rate = '10Mbit/s'
        delay = '19ms'
        queue = '25kB'
        [[flow]]
        name = 'bulk'
        from = 'source'
        to = 'sink'
        congestion = 'bbr3'
        {further}"
    )
}

fn at(outcome: &Outcome, event: usize) -> Duration {
    outcome.events()[event].at.expect("the event happened").saturating_since(Instant::ZERO)
}

const IN_PROBE: &str = "when = { flow = 'bulk', metric = 'control_state', is = 'probe_bw_up' }";

/// Returns the outcome of the scenario in which a key of the first flow or of the second link is set at the time of an
/// event of another run.
fn with_keys(keys: &[(&str, String)]) -> Outcome {
    let set: Vec<Override> =
        keys.iter().map(|(path, value)| Override { path: (*path).to_owned(), value: value.clone() }).collect();
    let loaded = fullpipe_scenario::load(&single(""), "stated.toml", &set).unwrap_or_else(|errors| panic!("{errors}"));
    run(&loaded.scenario, &Options::default()).expect("a run")
}

#[test]
fn conditional_rate_and_delay_equal_a_schedule_with_the_same_time() {
    let event = format!(
        "[[event]]\nname = 'fall'\n{IN_PROBE}\nafter = '1rtt'\nset = {{ link = 'link2', rate = '2Mbit/s', delay = '30ms' }}"
    );
    let conditional = outcome(&single(&event));
    let step = format!("[{{ at = '{}', rate = '2Mbit/s', delay = '30ms' }}]", at(&conditional, 0));
    let stated = with_keys(&[("topology.link.1.schedule", step)]);
    assert_eq!(csv(&conditional, "flows.csv"), csv(&stated, "flows.csv"));
    // The change has an effect.
    assert_ne!(csv(&stated, "flows.csv"), csv(&with_keys(&[]), "flows.csv"));
}

#[test]
fn conditional_loss_equals_a_loss_schedule_with_the_same_time() {
    let event = format!("[[event]]\nname = 'loss'\n{IN_PROBE}\nset = {{ link = 'link2', loss = 0.05 }}");
    let conditional = outcome(&single(&event));
    let step = format!("[{{ at = '{}', probability = 0.05 }}]", at(&conditional, 0));
    let stated = with_keys(&[("topology.link.1.loss_schedule", step)]);
    assert_eq!(csv(&conditional, "flows.csv"), csv(&stated, "flows.csv"));
    assert_ne!(csv(&stated, "flows.csv"), csv(&with_keys(&[]), "flows.csv"));
}

#[test]
fn conditional_pause_equals_limits_with_the_same_times() {
    let event = format!("[[event]]\nname = 'idle'\n{IN_PROBE}\nset = {{ flow = 'bulk', pause = true, for = '2s' }}");
    let conditional = outcome(&single(&event));
    let from = at(&conditional, 0);
    let until = from.saturating_add(Duration::from_secs(2));
    let stated = with_keys(&[("flow.0.limits", format!("[{{ at = '{from}', pause = true }}, {{ at = '{until}' }}]"))]);
    assert_eq!(csv(&conditional, "flows.csv"), csv(&stated, "flows.csv"));
    // Two of twelve seconds without data: at most ten seconds of 10 Mbit/s, with 40 ms and the queue (20 ms) to drain.
    let sent = conditional.flow_rows().next().expect("a row").counters.tx_bytes;
    assert!(sent * 8 < 101 * 1_000_000, "{sent}");
}

#[test]
fn limited_application_writes_at_its_rate() {
    // 1 Mbit/s of payload from 2 s to 6 s is 500 kB, in writes of 1250 bytes (10 ms).
    let limits = "[{ at = '0s', pause = true }, { at = '2s', rate = '1Mbit/s' }, { at = '6s', pause = true }]";
    let outcome = with_keys(&[("flow.0.limits", limits.to_owned())]);
    // The goodput of an unlimited transfer is over the whole run, which ends when no event is left.
    let goodput_bps = outcome.flow_rows().next().and_then(|row| row.goodput_bps).expect("a goodput");
    let bytes = goodput_bps * outcome.end_time().as_secs_f64() / 8.0;
    assert!((bytes - 500_000.0).abs() <= 1250.0, "{bytes}");
}

#[test]
fn changes_follow_each_other_and_each_time_is_found_in_its_own_pass() {
    let events = format!(
        "[[event]]\nname = 'first'\n{IN_PROBE}\nset = {{ link = 'link2', rate = '5Mbit/s' }}
        [[event]]\nname = 'second'\nwhen = {{ flow = 'bulk', metric = 'control_state', is = 'probe_bw_down' }}
        follows = 'first'\nafter = '100ms'\nset = {{ link = 'link2', rate = '20Mbit/s' }}"
    );
    let conditional = outcome(&single(&events));
    let [first, second] = [0, 1].map(|event| at(&conditional, event));
    let met = |event: usize| conditional.events()[event].met.expect("met").saturating_since(Instant::ZERO);
    assert!(met(0) < first && first < met(1) && second == met(1).saturating_add(Duration::from_millis(100)));
    let steps = format!("[{{ at = '{first}', rate = '5Mbit/s' }}, {{ at = '{second}', rate = '20Mbit/s' }}]");
    assert_eq!(csv(&conditional, "flows.csv"), csv(&with_keys(&[("topology.link.1.schedule", steps)]), "flows.csv"));
}

#[test]
fn recorded_metrics_are_those_of_a_probe_at_the_same_time() {
    // An event without a condition at 3 s, and a probe at 3 s.
    let probe = "[[probe]]\nflow = 'bulk'\ninterval = '1s'\nmetrics = ['cwnd_bytes', 'srtt_s', 'control_max_bw_bps']";
    let event = "[[event]]\nname = 'look'\nwhen = { flow = 'bulk' }\nfrom = '2s'\nafter = '1s'\nrecord = ['cwnd_bytes', 'srtt_s', 'control_max_bw_bps']";
    let both = outcome(&single(&format!("{event}\n{probe}")));
    let EventOutcome { met, at, values, .. } = &both.events()[0];
    let seconds = |seconds| Some(Instant::ZERO.saturating_add(Duration::from_secs(seconds)));
    assert_eq!((*met, *at), (seconds(2), seconds(3)));
    assert_eq!(values.len(), 3);
    for (metric, value) in values {
        let sampled = both.series("bulk", metric).find(|(time, _)| Some(*time) == seconds(3)).map(|(_, value)| value);
        assert_eq!(*value, sampled, "{metric}");
        assert!(value.is_some(), "{metric}");
    }
    // An event without a change does not change the run.
    assert_eq!(csv(&both, "flows.csv"), csv(&with_keys(&[]), "flows.csv"));
}

#[test]
fn delay_in_round_trips_is_the_smoothed_round_trip_at_the_condition() {
    let events = format!(
        "[[event]]\nname = 'now'\n{IN_PROBE}\nrecord = ['srtt_s']
        [[event]]\nname = 'later'\n{IN_PROBE}\nafter = '3rtt'"
    );
    let found = outcome(&single(&events));
    let [now, later] = found.events() else { panic!("two events") };
    assert_eq!(now.met, later.met);
    // The shortest delay is 1 ns, so that all events at the time of the condition come first.
    assert_eq!(now.at.zip(now.met).map(|(at, met)| at.saturating_since(met)), Some(Duration::from_nanos(1)));
    let round_trip = now.values[0].1.expect("a round-trip time");
    let delay = later.at.zip(later.met).map(|(at, met)| at.saturating_since(met).as_secs_f64()).expect("it happened");
    assert!((delay - 3.0 * round_trip).abs() < 2e-9, "{delay} {round_trip}");
}

#[test]
fn entry_requires_a_change_after_the_earliest_time() {
    let of = |entry: bool, from: &str| {
        let event = format!(
            "[[event]]\nname = 'state'\nfrom = '{from}'\nrecord = ['control_state']
            when = {{ flow = 'bulk', metric = 'control_state', is = 'probe_bw_cruise', entry = {entry} }}"
        );
        outcome(&single(&event)).events()[0].met
    };
    let first = of(false, "0s").expect("the state is reached");
    assert_eq!(of(true, "0s"), Some(first));
    // A millisecond later the control is in the state already.
    let from = first.saturating_add(Duration::from_millis(1));
    let text = from.saturating_since(Instant::ZERO).to_string();
    assert_eq!(of(false, &text), Some(from));
    assert!(of(true, &text).is_some_and(|again| again > from.saturating_add(Duration::from_millis(40))));
}

#[test]
fn event_whose_condition_is_never_met_has_an_empty_row_and_no_effect() {
    let event = "[[event]]\nname = 'never'\nwhen = { flow = 'bulk', metric = 'cwnd_bytes', above = 1e12 }\nset = { link = 'link2', rate = '1Mbit/s' }";
    let found = outcome(&single(event));
    assert_eq!(found.events(), [EventOutcome::default()]);
    assert_eq!(csv(&found, "events.csv"), "event,met_s,at_s,subject,metric,value\nnever,,,,,\n");
    assert_eq!(csv(&found, "flows.csv"), csv(&with_keys(&[]), "flows.csv"));
}

#[test]
fn conditions_read_links() {
    let event = "[[event]]\nname = 'full'\nwhen = { link = 'link2', metric = 'queue_bytes', above = 20000 }\nrecord = ['queue_bytes']";
    let found = outcome(&single(event));
    let [event] = found.events() else { panic!("one event") };
    // The start-up fills the queue within a second; the queue limit is 25 kB.
    assert!(event.at.is_some_and(|at| at < Instant::ZERO.saturating_add(Duration::from_secs(1))));
    assert!(event.values[0].1.is_some_and(|bytes| bytes > 20_000.0 && bytes <= 25_000.0), "{event:?}");
}

#[test]
fn plug_ins_and_changes_exclude_each_other() {
    let event = format!("[[event]]\nname = 'fall'\n{IN_PROBE}\nset = {{ link = 'link2', rate = '2Mbit/s' }}");
    #[derive(Debug, Default)]
    struct Idle;
    impl fullpipe_record::Observer for Idle {}
    let scenario = |text: &str| fullpipe_scenario::load(text, "test.toml", &[]).expect("a good scenario").scenario;
    let with = |text: &str| run_with(&scenario(text), &Options::default(), Plugins::new().observe(Idle));
    assert_eq!(with(&single(&event)).expect_err("it is rejected"), RunError::PluginsWithEvents);
    // Events that only record can be combined with them.
    let records = event.split("\nset").next().expect("the event without its change").to_owned();
    assert!(with(&single(&records)).is_ok());
}
