//! Runs in steps: they equal uninterrupted runs, and changes between steps have the expected effects.

use fullpipe::congestion::ExternalControl;
use fullpipe::congestion::cubic::Cubic;
use fullpipe::stepping::StepError;
use fullpipe::units::{Duration, FlowId, Instant, Rate};
use fullpipe::{Error, Outcome, RunError, RunningSimulation, Simulation};

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn embedded(name: &str, duration: &str) -> Simulation {
    Simulation::embedded(name).expect("it is embedded").set("duration", duration)
}

/// Runs to the end in steps of `step`, and inspects every flow and link after each step.
fn finish_in_steps(mut run: RunningSimulation, step: Duration) -> Outcome {
    let flows: Vec<String> = run.scenario().flows.iter().map(|flow| flow.name.clone()).collect();
    let links: Vec<String> = run.scenario().links.iter().map(|link| link.name.clone()).collect();
    let flows: Vec<FlowId> = flows.iter().map(|name| run.flow(name).expect("it exists")).collect();
    let links: Vec<_> = links.iter().map(|name| run.link(name).expect("it exists")).collect();
    while run.run_until(run.now() + step).expect("time increases") {
        flows.iter().for_each(|flow| assert!(run.flow_snapshot(*flow).counters.tx_packets < u64::MAX));
        links.iter().for_each(|link| assert!(run.link_snapshot(*link).queue_bytes < u64::MAX));
    }
    run.finish()
}

fn assert_equal(outcome: &Outcome, expected: &Outcome, what: &str) {
    assert!(outcome.verdict().passed(), "{what}: {}", outcome.verdict());
    let (tables, expected_tables) = (outcome.tables(), expected.tables());
    assert_eq!(tables.len(), expected_tables.len(), "{what}");
    for ((file, content), (expected_file, expected_content)) in tables.iter().zip(&expected_tables) {
        assert_eq!(file, expected_file, "{what}");
        assert!(content == expected_content, "{what}: {file} differs");
    }
    assert_eq!(outcome.end_time(), expected.end_time(), "{what}");
    let totals = |outcome: &Outcome| {
        let totals = outcome.totals();
        (totals.packets, totals.data_packets, totals.packet_hops, totals.lost_packets, totals.remaining_packets)
    };
    assert_eq!(totals(outcome), totals(expected), "{what}");
    for (row, expected) in outcome.link_rows().zip(expected.link_rows()) {
        assert_eq!((&row.link, row.counters), (&expected.link, expected.counters), "{what}");
    }
}

#[test]
fn a_run_in_steps_has_the_records_of_an_uninterrupted_run() {
    for (name, duration, step) in [
        ("quick-start", "12s", Duration::from_nanos(7_654_321)),
        ("two-flows", "4s", Duration::from_millis(10)),
        ("web-page", "8s", Duration::from_nanos(3_333_333)),
        ("lte-cell", "2s", Duration::from_nanos(1_234_567)),
        ("starlink-like", "5s", Duration::from_millis(1)),
        ("lossy-link", "4s", Duration::from_nanos(999_999)),
        ("aggregated-link", "3s", Duration::from_millis(4)),
    ] {
        let expected = embedded(name, duration).run().expect("it runs");
        let run = embedded(name, duration).start().expect("it can be built");
        assert_equal(&finish_in_steps(run, step), &expected, name);
    }
}

#[test]
fn a_run_of_quic_in_steps_has_the_records_of_an_uninterrupted_run() {
    for stack in ["model", "noq"] {
        let simulation = || {
            let simulation =
                embedded("quick-start", "3s").set("flow.0.protocol", "quic").set("flow.0.quic.stack", stack);
            simulation.set("topology.bottleneck.loss", "{ kind = \"bernoulli\", probability = 0.01 }")
        };
        let expected = simulation().run().expect("it runs");
        let run = simulation().start().expect("it can be built");
        assert_equal(&finish_in_steps(run, Duration::from_nanos(7_654_321)), &expected, stack);
    }
}

#[test]
fn a_run_without_steps_has_the_records_of_an_uninterrupted_run() {
    let expected = embedded("quick-start", "3s").run().expect("it runs");
    let outcome = embedded("quick-start", "3s").start().expect("it can be built").finish();
    assert_equal(&outcome, &expected, "quick-start");
}

const TCP: &str = "protocol = \"tcp\"";
const QUIC: &str = "protocol = \"quic\"\nquic.stack = \"model\"";

/// A bulk flow over a link of 100 Mbit/s, with a round-trip time of 2 x 20 ms.
fn bulk(protocol: &str) -> Simulation {
    Simulation::new(format!(
        r#"
        duration = "10s"
        [topology]
        kind = "chain"
        link = [{{ rate = "100Mbit/s", delay = "20ms" }}]
        [[flow]]
        name = "bulk"
        from = "source"
        to = "sink"
        {protocol}
        workload = "bulk"
        "#
    ))
}

/// A window of w bytes is sent per round-trip time: 40 ms, the transmission of one segment (1500 B at 100 Mbit/s: 0.12
/// ms), and that of one acknowledgment (at most 60 B: 5 us). With 20 segments of 1448 B and every second segment
/// acknowledged, the receiver reads 20 x 1448 x 8 bits per 40.1 to 40.3 ms: the acknowledgment of a pair waits for its
/// second segment, another 0.12 ms.
#[test]
fn a_fixed_window_has_a_goodput_of_one_window_per_round_trip_time() {
    let mss_bytes = 1448;
    let control = ExternalControl::new(20 * mss_bytes);
    let mut run = bulk(TCP).external_control("bulk", &control).start().expect("it can be built");
    let flow = run.flow("bulk").expect("it exists");
    run.run_until(at_ms(1000)).expect("time increases");
    let before = run.flow_snapshot(flow);
    let connection = before.connection.expect("it is open");
    assert_eq!((connection.cwnd_bytes, connection.mss_bytes), (20 * mss_bytes, mss_bytes));
    run.run_until(at_ms(9000)).expect("time increases");
    let received_bytes = run.flow_snapshot(flow).received_bytes - before.received_bytes;
    let goodput_bps = received_bytes as f64 * 8.0 / 8.0;
    let window_bits = (20 * mss_bytes * 8) as f64;
    let (least, most) = (window_bits / 0.0404, window_bits / 0.0401);
    assert!((least..=most).contains(&goodput_bps), "{goodput_bps} bit/s, expected {least} to {most}");
    assert!(run.finish().verdict().passed());
}

#[test]
fn a_base_without_changes_has_the_records_of_its_control() {
    for protocol in [TCP, QUIC] {
        let expected = bulk(protocol).control("bulk", |_| Box::new(Cubic::default())).run().expect("it runs");
        let control = ExternalControl::with_base(|| Box::new(Cubic::default()));
        let run = bulk(protocol).external_control("bulk", &control).start().expect("it can be built");
        let outcome = finish_in_steps(run, Duration::from_millis(20));
        let text = |content: &[u8]| String::from_utf8(content.to_vec()).expect("CSV is text");
        for ((file, content), (_, expected)) in outcome.tables().iter().zip(&expected.tables()) {
            // Only the name of the control differs.
            assert!(text(content).replace("external", "cubic") == text(expected), "{protocol}: {file} differs");
        }
        assert!(outcome.verdict().passed(), "{protocol}: {}", outcome.verdict());
    }
}

#[test]
fn a_base_continues_from_the_window_that_the_program_sets() {
    for protocol in [TCP, QUIC] {
        let control = ExternalControl::with_base(|| Box::new(Cubic::default()));
        let mut run = bulk(protocol).external_control("bulk", &control).start().expect("it can be built");
        let flow = run.flow("bulk").expect("it exists");
        let window = |run: &mut RunningSimulation| run.flow_snapshot(flow).connection.expect("it is open").cwnd_bytes;
        run.run_until(at_ms(5000)).expect("time increases");
        let before = window(&mut run);
        control.set_window(before / 2);
        // Below the slow-start threshold, it grows by the acknowledged bytes: in 10 ms at most 125 kB at 100 Mbit/s.
        run.run_until(at_ms(5010)).expect("time increases");
        let halved = window(&mut run);
        assert!((before / 2..=before / 2 + 125_000).contains(&halved), "{protocol}: {before}, {halved}");
        run.run_until(at_ms(9000)).expect("time increases");
        assert!(window(&mut run) > halved, "{protocol}: CUBIC grows the window again");
        assert!(run.finish().verdict().passed());
    }
}

#[test]
fn a_larger_window_is_used_at_the_start_of_the_next_step() {
    for protocol in [TCP, QUIC] {
        let control = ExternalControl::new(15_000);
        let mut run = bulk(protocol).external_control("bulk", &control).start().expect("it can be built");
        let flow = run.flow("bulk").expect("it exists");
        run.run_until(at_ms(2000)).expect("time increases");
        // Acknowledgments arrive in one part of each round-trip time of 40 ms. In the other part, nothing is sent.
        let sent = |run: &mut RunningSimulation| run.flow_snapshot(flow).counters.tx_packets;
        let mut before = sent(&mut run);
        loop {
            let next = run.now() + Duration::from_millis(5);
            run.run_until(next).expect("time increases");
            if sent(&mut run) == before {
                break;
            }
            before = sent(&mut run);
        }
        control.set_window(150_000);
        assert_eq!(sent(&mut run), before, "changes take effect in the next step");
        let now = run.now();
        control.set_pacing_rate(Some(Rate::from_bits_per_second(1_000_000_000)));
        // 135 000 bytes at 1 Gbit/s take 1.1 ms.
        run.run_until(now + Duration::from_millis(2)).expect("time increases");
        let more = sent(&mut run) - before;
        assert!((80..=100).contains(&more), "{protocol}: {more} packets");
        let connection = run.flow_snapshot(flow).connection.expect("it is open");
        assert!(connection.in_flight_bytes > 140_000 && connection.in_flight_bytes <= 150_000, "{protocol}");
        assert_eq!(connection.pacing_rate, Some(Rate::from_bits_per_second(1_000_000_000)), "{protocol}");
        assert!(run.finish().verdict().passed(), "{protocol}");
    }
}

#[test]
fn the_same_steps_and_changes_give_the_same_records() {
    let run = |protocol: &str| {
        let control = ExternalControl::new(30_000);
        let mut run = bulk(protocol).external_control("bulk", &control).start().expect("it can be built");
        let mut window_bytes = 30_000;
        while run.run_until(run.now() + Duration::from_millis(13)).expect("time increases") {
            window_bytes = (window_bytes * 7919) % 400_000;
            control.set_window(window_bytes);
        }
        run.finish()
    };
    for protocol in [TCP, QUIC] {
        assert_equal(&run(protocol), &run(protocol), protocol);
    }
}

#[test]
fn pacing_from_outside_limits_the_rate_and_can_be_removed() {
    let control = ExternalControl::new(1_000_000);
    control.set_pacing_rate(Some(Rate::from_bits_per_second(5_000_000)));
    let mut run = bulk(TCP).external_control("bulk", &control).start().expect("it can be built");
    let flow = run.flow("bulk").expect("it exists");
    let megabits = |run: &mut RunningSimulation, to: u64| {
        let before = run.flow_snapshot(flow).received_bytes;
        run.run_until(at_ms(to)).expect("time increases");
        (run.flow_snapshot(flow).received_bytes - before) as f64 * 8e-6
    };
    megabits(&mut run, 2000);
    let paced = megabits(&mut run, 4000) / 2.0;
    assert!((4.8..=5.01).contains(&paced), "{paced} Mbit/s");
    control.set_pacing_rate(None);
    megabits(&mut run, 5000);
    let unpaced = megabits(&mut run, 7000) / 2.0;
    assert!(unpaced > 90.0, "{unpaced} Mbit/s");
}

#[test]
fn an_unknown_name_is_an_error_with_the_nearest_name() {
    let run = embedded("quick-start", "1s").start().expect("it can be built");
    let error = run.flow("downlaod").unwrap_err();
    assert_eq!(error.to_string(), "unknown flow \"downlaod\"; did you mean \"download\"?");
    let error = run.link("botleneck.reverse").unwrap_err();
    assert_eq!(error.to_string(), "unknown link \"botleneck.reverse\"; did you mean \"bottleneck.reverse\"?");
    let control = ExternalControl::new(10_000);
    let error = embedded("quick-start", "1s").external_control("downlaod", &control).start().unwrap_err();
    assert_eq!(error.to_string(), "unknown flow \"downlaod\"; did you mean \"download\"?");
}

#[test]
fn time_that_decreases_is_an_error_and_a_time_after_the_end_ends_the_run() {
    let mut run = embedded("quick-start", "1s").start().expect("it can be built");
    assert_eq!(run.run_until(at_ms(500)), Ok(true));
    assert_eq!(run.run_until(at_ms(500)), Ok(true));
    let error = run.run_until(at_ms(499)).unwrap_err();
    assert_eq!(error.to_string(), "cannot run until 499 ms: the simulation is at 500 ms");
    assert!(matches!(error, StepError::PastTime { .. }));
    assert_eq!(run.run_until(at_ms(5000)), Ok(false));
    assert_eq!(run.now(), at_ms(1000));
}

#[test]
fn events_with_changes_are_rejected() {
    let error = embedded("conditional-event", "1s").start().unwrap_err();
    assert_eq!(error, Error::Run(RunError::StepsWithEvents));
}

#[test]
fn a_stopped_run_has_the_records_so_far() {
    let mut run = embedded("quick-start", "30s").start().expect("it can be built");
    run.run_until(at_ms(2500)).expect("time increases");
    let outcome = run.stop();
    let expected = embedded("quick-start", "2500ms").run().expect("it runs");
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    let rows = |outcome: &Outcome| -> Vec<String> {
        outcome.flow_rows().map(|row| format!("{:?} {:?}", row.counters, row.goodput_bps)).collect()
    };
    assert_eq!(rows(&outcome), rows(&expected));
    assert_eq!(outcome.end_time(), at_ms(2500));
}

#[test]
fn a_flow_that_the_program_starts_has_its_times_relative_to_that_start() {
    let simulation = |start: &str| embedded("quick-start", "5s").set("flow.0.size", "100kB").set("flow.0.start", start);
    let mut run = simulation("4s").start().expect("it can be built");
    let flow = run.flow("download").expect("it exists");
    run.run_until(at_ms(1500)).expect("time increases");
    assert_eq!(run.flow_snapshot(flow).counters.tx_packets, 0);
    run.start_flow(flow).expect("it has not started");
    run.run_until(at_ms(1501)).expect("time increases");
    let error = run.start_flow(flow).unwrap_err();
    assert!(error.to_string().starts_with("cannot start flow \"download\" now: it started at "), "{error}");
    let (outcome, expected) = (run.finish(), simulation("1500ms").run().expect("it runs"));
    let flows = |outcome: &Outcome| outcome.tables().into_iter().find(|(file, _)| *file == "flows.csv");
    assert!(expected.flow("download").expect("it exists").completion.is_some());
    assert_eq!(flows(&outcome), flows(&expected));
}

/// Rates in Mbit/s (0: an outage) and delays in milliseconds from a time in milliseconds on.
const CHANGES: [(u64, u64, u64); 6] =
    [(1000, 5, 18), (2003, 20, 18), (3500, 0, 18), (3900, 12, 40), (5000, 12, 5), (6400, 2, 5)];

/// The changes of [`CHANGES`] are not at times at which a frame ends, because such a frame may have either rate.
#[test]
fn changes_of_a_link_equal_a_schedule_with_the_same_times() {
    let steps = CHANGES.map(|(at, rate, delay)| {
        let rate = if rate == 0 { "outage = true".to_owned() } else { format!("rate = \"{rate}Mbit/s\"") };
        format!("{{ at = \"{at}ms\", {rate}, delay = \"{delay}ms\" }}")
    });
    let schedule = format!("[{}]", steps.join(", "));
    for (protocol, discipline) in [("tcp", None), ("quic", None), ("tcp", Some("codel")), ("quic", Some("fq-codel"))] {
        let simulation = || {
            let simulation = embedded("quick-start", "9s").set("flow.0.protocol", protocol).audit_packets();
            let simulation = match protocol {
                "quic" => simulation.set("flow.0.quic.stack", "model"),
                _ => simulation,
            };
            match discipline {
                Some(discipline) => {
                    simulation.set("topology.bottleneck.discipline", format!("{{ kind = \"{discipline}\" }}"))
                }
                None => simulation,
            }
        };
        let expected = simulation().set("topology.bottleneck.schedule", &schedule).run().expect("it runs");
        let mut run = simulation().adjustable_links("bottleneck").start().expect("it can be built");
        let link = run.link("bottleneck").expect("it exists");
        for (at, rate, delay) in CHANGES {
            run.run_until(at_ms(at)).expect("time increases");
            run.set_link_rate(link, Rate::from_bits_per_second(rate * 1_000_000)).expect("it is adjustable");
            run.set_link_delay(link, Duration::from_millis(delay)).expect("it is adjustable");
            let shown = run.link_snapshot(link).rate.map_or(0, Rate::bits_per_second);
            assert_eq!(shown, rate * 1_000_000);
        }
        let outcome = run.finish();
        assert!(outcome.verdict().passed(), "{protocol} {discipline:?}: {}", outcome.verdict());
        let drops = |outcome: &Outcome| outcome.link("bottleneck").expect("it exists").counters.queue_drops;
        assert!(drops(&expected) > 0, "{protocol} {discipline:?}: the queue overflows");
        assert_eq!(drops(&outcome), drops(&expected), "{protocol} {discipline:?}");
        for ((file, content), (_, expected)) in outcome.tables().iter().zip(&expected.tables()) {
            assert!(content == expected, "{protocol} {discipline:?}: {file} differs");
        }
    }
}

#[test]
fn a_link_that_changes_often_passes_the_audit() {
    let mut run = embedded("quick-start", "8s").adjustable_links("bottleneck*").start().expect("it can be built");
    let link = run.link("bottleneck").expect("it exists");
    let mut rate_bps = 10_000_000;
    while run.run_until(run.now() + Duration::from_micros(1_234)).expect("time increases") {
        rate_bps = 1_000_000 + (rate_bps * 7919) % 20_000_000;
        run.set_link_rate(link, Rate::from_bits_per_second(rate_bps)).expect("it is adjustable");
    }
    let outcome = run.finish();
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    assert!(outcome.flow("download").expect("it exists").counters.rx_packets > 3000);
}

#[test]
fn a_run_continues_while_a_frame_waits_for_the_end_of_an_outage() {
    let text = r#"
        duration = "10s"
        [topology]
        kind = "chain"
        link = [{ rate = "1Mbit/s", delay = "1ms" }]
        [[flow]]
        name = "datagram"
        from = "source"
        to = "sink"
        protocol = "udp"
        workload = "constant-rate"
        payload = "100B"
        interval = "20ms"
        count = 30
    "#;
    let mut run = Simulation::new(text).adjustable_links("*").start().expect("it can be built");
    let link = run.scenario().links[0].name.clone();
    let link = run.link(&link).expect("it exists");
    run.run_until(at_ms(500)).expect("time increases");
    run.set_link_rate(link, Rate::from_bits_per_second(0)).expect("it is adjustable");
    assert_eq!(run.run_until(at_ms(5000)), Ok(true));
    run.set_link_rate(link, Rate::from_bits_per_second(1_000_000)).expect("it is adjustable");
    assert!(run.finish().verdict().passed());
}

#[test]
fn a_link_that_is_not_adjustable_is_rejected() {
    let mut run = embedded("quick-start", "1s").start().expect("it can be built");
    let link = run.link("bottleneck").expect("it exists");
    let error = run.set_link_rate(link, Rate::from_bits_per_second(1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "link \"bottleneck\" is not adjustable; call `adjustable_links(\"bottleneck\")` before the start"
    );
    assert_eq!(run.set_link_delay(link, Duration::ZERO), Err(error));
    let error = embedded("quick-start", "1s").adjustable_links("botleneck").start().unwrap_err();
    assert_eq!(error.to_string(), "unknown link \"botleneck\"; did you mean \"bottleneck\"?");
    let schedule = "[{ at = \"1s\", rate = \"1Mbit/s\" }]";
    let scheduled = embedded("quick-start", "1s").set("topology.bottleneck.schedule", schedule);
    let error = scheduled.adjustable_links("bottleneck").start().unwrap_err();
    assert_eq!(error, Error::Run(RunError::AdjustableLink { link: "bottleneck".to_owned() }));
}
