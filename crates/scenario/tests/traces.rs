//! CSV traces of links: their schedules, the defaults of other keys, and errors.

use fullpipe_network::impairment::{LossSchedule, LossStep};
use fullpipe_network::{LinkProfile, LinkSchedule, ScheduleStep};
use fullpipe_scenario::{LoadedScenario, load};
use fullpipe_units::{Duration, Rate};
use std::path::Path;

fn text(link: &str) -> String {
    format!("[topology]\nkind = 'chain'\nlink = [{{ {link} }}]\n[[flow]]\nfrom = 'source'\nto = 'sink'\n")
}

/// Loads a scenario whose files are in `tests/data`.
fn loaded(link: &str) -> LoadedScenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/file.toml");
    load(&text(link), file.to_str().unwrap(), &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

fn errors(link: &str) -> Vec<String> {
    let errors = load(&text(link), "test.toml", &[]).unwrap_err().0;
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_csv_trace_becomes_schedules_that_repeat() {
    let loaded = loaded("trace = 'path.csv'");
    let [forward, reverse] = &loaded.scenario.links[..] else { panic!("one link") };
    let seconds = Duration::from_secs;
    let step = |at, mbps: Option<u64>, delay_ms: Option<u64>| ScheduleStep {
        at: seconds(at),
        rate: mbps.map(Rate::from_megabits_per_second),
        delay: delay_ms.map(Duration::from_millis),
    };
    let steps = vec![step(0, Some(8), Some(10)), step(1, Some(2), None), step(2, Some(0), Some(30))];
    assert_eq!(forward.course, LinkProfile::Steps(LinkSchedule::new(steps, Some(seconds(3))).unwrap()));
    let losses: Vec<&LossSchedule> = forward.impairments.settings_of::<LossSchedule>().collect();
    let loss = |at, probability| LossStep { at: seconds(at), probability };
    assert_eq!(losses, [&LossSchedule { steps: vec![loss(0, 0.0), loss(1, 0.25)], repeat: Some(seconds(3)) }]);
    // The mean of 8, 2 and 0 Mbit/s, and the first delay; the other direction has them for the whole run.
    for link in [forward, reverse] {
        assert_eq!((link.rate.bits_per_second(), link.delay), (3_333_333, Duration::from_millis(10)));
    }
    assert_eq!(reverse.course, LinkProfile::Constant);
    assert!(!forward.random_trace_offset && forward.trace_period() == seconds(3));
    // The content of the file is part of the resolved scenario, which determines the key of a run.
    assert!(!loaded.resolved.contains("path.csv") && !loaded.resolved.contains("trace"), "{}", loaded.resolved);
    let again = load(&loaded.resolved, "resolved.toml", &[]).unwrap();
    assert_eq!((&again.scenario, &again.resolved), (&loaded.scenario, &loaded.resolved));
    let other = self::loaded(r#"trace = "time_s,rate_mbps,delay_ms,loss\n0,8,10,0\n1,2,,0.25\n2,0,31,\n3,,,\n""#);
    assert_ne!(other.resolved, loaded.resolved);
}

#[test]
fn each_direction_has_its_own_trace_and_offset() {
    let loaded = loaded(
        "rate = '9Mbit/s', delay = '7ms', trace = 'path.csv', trace_offset = 'random', \
         reverse = { trace = 'path.csv', trace_offset = '1s' }",
    );
    let [forward, reverse] = &loaded.scenario.links[..] else { panic!("one link") };
    assert!(forward.random_trace_offset && !reverse.random_trace_offset);
    assert_eq!(reverse.course, forward.course.starting_at(Duration::from_secs(1)));
    assert_eq!(reverse.impairments, forward.impairments.starting_at(Duration::from_secs(1)));
    // Given values have precedence; they only convert limits.
    assert_eq!((forward.rate.bits_per_second(), forward.delay), (9_000_000, Duration::from_millis(7)));
    let again = load(&loaded.resolved, "resolved.toml", &[]).unwrap();
    assert_eq!((again.scenario, &again.resolved), (loaded.scenario, &loaded.resolved));
}

#[test]
fn an_offset_of_a_schedule_is_modulo_its_period() {
    let course = |offset: &str| {
        let link = format!(
            "rate = '1Mbit/s', delay = '1ms', schedule = [{{ at = '2s', rate = '2Mbit/s' }}], schedule_repeat = '5s'{offset}"
        );
        loaded(&link).scenario.links[0].course.clone()
    };
    assert_eq!(course(", trace_offset = '13s'"), course(", trace_offset = '3s'"));
    assert_eq!(course(", trace_offset = '5s'"), course(""));
}

#[test]
fn errors_of_traces_state_the_place_and_what_is_accepted() {
    let start = "test.toml:3:";
    for (link, message) in [
        (
            r#"trace = "time_s,rate_mpbs\n0,1\n""#,
            "line 1: unknown column \"rate_mpbs\"; did you mean rate_mbps?; expected a header with time_s and any of",
        ),
        (
            r#"trace = "time_s,loss\n0,2\n", delay = "1ms", rate = "1Mbit/s""#,
            "line 2: loss is \"2\"; expected a number from 0 to 1",
        ),
        ("trace = 'no-such.csv'", "topology.link.0.trace = 'no-such.csv': cannot read no-such.csv: no such file"),
        (r#"trace = "time_s,rate_mbps\n0,1\n1,\n""#, "topology.link.0.delay is missing; expected a duration such as"),
        (
            r#"delay = "1ms", trace = "time_s,loss\n0,1\n1,\n""#,
            "rate is missing; expected a rate such as \"100Mbit/s\" or a trace with rates",
        ),
        (
            r#"schedule = [{ at = "1s" }], delay = "1ms", trace = "time_s,rate_mbps\n0,1\n1,\n""#,
            "topology.link.0 has both schedule and trace; expected only one of them",
        ),
        (
            "rate = '1Mbit/s', delay = '1ms', trace_offset = '1s'",
            "has trace_offset, but nothing that repeats; expected a",
        ),
        (
            "delay = '1ms', trace = [5], trace_offset = 'randm'",
            "is not a time; expected a duration such as \"10s\", or",
        ),
        (
            "delay = '1ms', trace = [5], trace_offset = '1500us'",
            "is not a whole number of milliseconds; expected whole",
        ),
        (
            "delay = '1ms', rate = '1Mbit/s', loss_schedule_repeat = '1s'",
            "has loss_schedule_repeat, but no loss_schedule; expected a loss_schedule",
        ),
        (
            "delay = '1ms', rate = '1Mbit/s', loss_schedule_repeat = '1s', loss_schedule = [{ at = '1s', probability = 0 }]",
            "loss_schedule_repeat = 1s is not later than the last step; expected a time after 1s",
        ),
    ] {
        let errors = errors(link);
        assert!(errors.iter().all(|error| error.starts_with(start)), "{errors:?}");
        assert!(errors.len() == 1 && errors[0].contains(message), "{link}: {errors:?}");
    }
}
