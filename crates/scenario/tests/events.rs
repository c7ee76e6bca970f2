//! Tests the keys of `[[event]]`: the description, and the resolved file.

use fullpipe_scenario::description::{
    EventChange, EventCondition, EventDelay, EventTest, ProbeSubject, Scenario, WriteRate,
};
use fullpipe_scenario::load;
use fullpipe_units::{Duration, Rate};

/// Loads a file with two hosts and one flow, and checks that the resolved file describes the same scenario.
fn good(events: &str) -> Scenario {
    let text = format!(
        "duration = '20s'\n[topology]\nkind = 'dumbbell'\naccess = {{ rate = '100Mbit/s', delay = '1ms' }}
        bottleneck = {{ rate = '10Mbit/s', delay = '18ms' }}
        [[flow]]\nname = 'bulk'\nfrom = 'left1'\nto = 'right1'\ncongestion = 'bbr3'\n{events}"
    );
    let loaded = load(&text, "events.toml", &[]).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let again = load(&loaded.resolved, "resolved.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((&again.scenario, &again.resolved), (&loaded.scenario, &loaded.resolved));
    loaded.scenario
}

/// All keys of a change of a link, of a condition, and of an event.
const ALL: &str = "
    [[event]]
    name = 'first'
    when = { flow = 'bulk', end = 'client', metric = 'control_state', is = 'probe_bw_up', entry = true }
    from = '2s'
    after = '1.5rtt'
    set = { link = 'bottleneck', rate = '1Mbit/s', delay = '9ms', loss = 0.25 }
    record = ['cwnd_bytes', 'control_max_bw_bps']
    [[event]]
    name = 'second'
    when = { link = 'bottleneck.reverse', metric = 'queue_bytes', below = 5.5 }
    follows = 'first'
    after = '30ms'
    set = { flow = 'bulk', write_rate = '2Mbit/s', for = '3s' }
    [[event]]
    name = 'third'
    when = { flow = 'bulk', metric = 'control_state', is = 3 }
    set = { link = 'bottleneck', outage = true }
    [[event]]
    name = 'fourth'
    when = { flow = 'bulk', metric = 'srtt_s', above = 0.1 }
    set = { flow = 'bulk', pause = true }
    [[event]]
    name = 'fifth'
    from = '9s'
    set = { flow = 'bulk', unlimited = true }";

#[test]
fn every_key_is_in_the_description() {
    let scenario = good(ALL);
    let [first, second, third, fourth, fifth] = &scenario.events[..] else { panic!("five events") };
    let flow = Some((ProbeSubject::Flow(0), 0));
    let condition = |metric: &str, test, entry| Some(EventCondition { metric: metric.to_owned(), test, entry });
    let link = |name: &str| scenario.links.iter().position(|link| link.name == name).expect("the link exists");
    let mbit = |mbit: u64| Rate::from_bits_per_second(mbit * 1_000_000);
    assert_eq!((first.subject, first.from, first.follows), (flow, Duration::from_secs(2), None));
    // probe_bw_up is the sixth state of bbr3, and numbers begin with 0.
    assert_eq!(first.condition, condition("control_state", EventTest::Is(5.0), true));
    assert_eq!(first.delay, EventDelay::RoundTrips(1.5));
    assert_eq!(first.records, ["cwnd_bytes", "control_max_bw_bps"]);
    let (bottleneck, delay) = (link("bottleneck"), Some(Duration::from_millis(9)));
    let change = EventChange::Link { link: bottleneck, rate: Some(mbit(1)), delay, loss: Some(0.25) };
    assert_eq!(first.change, Some(change));
    assert_eq!(second.subject, Some((ProbeSubject::Link(link("bottleneck.reverse")), 0)));
    assert_eq!(second.condition, condition("queue_bytes", EventTest::Below(5.5), false));
    assert_eq!((second.follows, second.delay), (Some(0), EventDelay::Fixed(Duration::from_millis(30))));
    let limited =
        EventChange::Writes { flow: 0, rate: WriteRate::Limited(mbit(2)), duration: Some(Duration::from_secs(3)) };
    assert_eq!(second.change, Some(limited));
    assert_eq!(third.condition, condition("control_state", EventTest::Is(3.0), false));
    let outage = EventChange::Link { link: bottleneck, rate: Some(mbit(0)), delay: None, loss: None };
    assert_eq!(third.change, Some(outage));
    assert_eq!(fourth.condition, condition("srtt_s", EventTest::Above(0.1), false));
    assert_eq!(fourth.change, Some(EventChange::Writes { flow: 0, rate: WriteRate::Paused, duration: None }));
    assert_eq!((fifth.subject, &fifth.condition, fifth.from), (None, &None, Duration::from_secs(9)));
    assert_eq!(fifth.change, Some(EventChange::Writes { flow: 0, rate: WriteRate::Unlimited, duration: None }));
}

#[test]
fn tests_of_conditions_are_strict() {
    let accepts = |test: EventTest| [1.0, 2.0, 3.0].map(|value| test.accepts(value));
    assert_eq!(accepts(EventTest::Is(2.0)), [false, true, false]);
    assert_eq!(accepts(EventTest::Above(2.0)), [false, false, true]);
    assert_eq!(accepts(EventTest::Below(2.0)), [true, false, false]);
}

#[test]
fn known_times_become_schedules_and_unknown_times_change_nothing() {
    let scenario = good(ALL);
    let at = |seconds| Some(Duration::from_secs(seconds));
    let described = |times: &[Option<Duration>]| {
        let resolved = scenario.with_event_times(times);
        let link = resolved.links.iter().find(|link| link.name == "bottleneck").expect("the link exists");
        let schedule = match &link.course {
            fullpipe_network::LinkProfile::Steps(schedule) => schedule.steps().to_vec(),
            other => panic!("{other:?}"),
        };
        let limits = resolved.flows[0].workload.write_limits().expect("bulk has limits").to_vec();
        (schedule, limits)
    };
    let (schedule, limits) = described(&[at(3), at(4), None, None, at(9)]);
    // The step at the end of the run, for the outage without a time, has no values.
    let values: Vec<_> = schedule.iter().map(|step| (step.at, step.rate.is_some(), step.delay.is_some())).collect();
    assert_eq!(values, [(Duration::from_secs(3), true, true), (Duration::from_secs(20), false, false)]);
    let rates: Vec<_> = limits.iter().map(|limit| (limit.at, limit.rate)).collect();
    let limited = WriteRate::Limited(Rate::from_bits_per_second(2_000_000));
    let seconds = Duration::from_secs;
    assert_eq!(rates, [(seconds(4), limited), (seconds(7), WriteRate::Unlimited), (seconds(9), WriteRate::Unlimited)]);
}
