//! Active queue management with TCP: the queue delay that the discipline's source states, at the load given in each test.
//!
//! The drop rate that a load requires: N flows in congestion avoidance share a link of C packets/s at a round-trip time of R (including
//! the queue), with windows of W = C R / N. By the TCP response function (Mathis et al. 1997), W = sqrt(3 / (2 b p)), with b segments per
//! acknowledgment: 2 for Reno. CUBIC grows in its Reno-friendly region as with b = 1 (RFC 9438 section 4.3). So p C = 3 C / (2 b W^2)
//! drops per second.

use crate::common::{behind_fast_access, mean, outcome};

/// Bulk flows with a round-trip time of `round_trip_ms` through one link, and a call of 50 packets per second from 10 s on. There are no
/// random processing times, because the derivations do not include them.
fn scenario(discipline: &str, congestion: &str, flows: u32, megabits: u32, round_trip_ms: u32) -> String {
    let delay_ms = round_trip_ms / 2 - 1;
    let bottleneck = format!("rate = '{megabits}Mbit/s'\ndelay = '{delay_ms}ms'\ndiscipline = {discipline}");
    format!(
        "duration = '80s'
        processing_jitter = '0s'
        {}
        [tcp]
        preset = 'linux'
        congestion = '{congestion}'
        [[flow]]
        name = 'bulk'
        count = {flows}
        from = 'source'
        to = 'sink'
        workload = 'bulk'
        [[flow]]
        name = 'call'
        from = 'source'
        to = 'sink'
        start = '10s'
        workload = 'voice'
        silence_suppression = false
        both_ways = false
        [[probe]]
        link = 'link2'
        metrics = ['queue_delay_s', 'throughput_bps']",
        behind_fast_access(&bottleneck)
    )
}

/// Mean queue delay in ms and utilization of the link, from 20 s on.
fn steady(discipline: &str, congestion: &str, flows: u32, megabits: u32, round_trip_ms: u32) -> (f64, f64) {
    let outcome = outcome(&scenario(discipline, congestion, flows, megabits, round_trip_ms));
    let throughput = mean(&outcome, "throughput_bps", 20.0);
    (1e3 * mean(&outcome, "queue_delay_s", 20.0), throughput / (f64::from(megabits) * 1e6))
}

#[test]
fn codel_keeps_the_queue_delay_at_five_milliseconds() {
    // RFC 8289 section 4.3: TARGET, 5 ms, is the delay that may persist. The control law's first step is one drop per INTERVAL, 10 per
    // second. Loads that need about half of that keep the controller at its target, without the later, faster steps, which overshoot. At
    // 50 Mbit/s (C = 4161 packets of 1502 bytes per second) and R = 50 + 5 ms, 10 Reno flows have W = 22.9 packets and need 6.0 drops per
    // second, 7 CUBIC flows W = 32.7 and 5.8. At 10 Mbit/s and 100 + 5 ms, 5 CUBIC flows have W = 17.5 and need 4.1.
    for (congestion, flows, megabits, round_trip_ms) in
        [("newreno", 10, 50, 50), ("cubic", 7, 50, 50), ("cubic", 5, 10, 100)]
    {
        let (delay, used) = steady("{ kind = 'codel' }", congestion, flows, megabits, round_trip_ms);
        assert!((delay - 5.0).abs() < 0.2 * 5.0, "{congestion} {flows}: {delay}");
        assert!(used > 0.95, "{congestion} {flows}: {used}");
    }
}

#[test]
fn pie_keeps_the_queue_delay_at_fifteen_milliseconds() {
    // RFC 8033 section 4.2: QDELAY_REF is 15 ms, and the integral leaves no steady error at any load. With R = 50 + 15 ms, 5 flows at 10
    // Mbit/s have W = 10.8 packets (p = 0.64 % for Reno, 1.3 % for CUBIC), 10 at 50 Mbit/s 27 (0.1 %, 0.2 %), 50 at 50 Mbit/s 5.4 (2.6 %,
    // 5.1 %).
    for congestion in ["newreno", "cubic"] {
        for (flows, megabits) in [(5, 10), (10, 50), (50, 50)] {
            let (delay, used) = steady("{ kind = 'pie' }", congestion, flows, megabits, 50);
            assert!((delay - 15.0).abs() < 0.1 * 15.0, "{congestion} {flows}: {delay}");
            assert!(used > 0.98, "{congestion} {flows}: {used}");
        }
    }
}

#[test]
fn adaptive_red_keeps_the_queue_delay_at_its_target() {
    // Floyd, Gummadi and Shenker 2001, section 5: thresholds of 0.5 and 1.5 times the data sent in the target delay, with the average
    // between them. This is 5 ms, if the load is sufficient to reach it (50 flows at 50 Mbit/s).
    for congestion in ["newreno", "cubic"] {
        let (delay, _) = steady("{ kind = 'ared', target = '5ms' }", congestion, 50, 50, 50);
        assert!((delay - 5.0).abs() < 0.2 * 5.0, "{congestion}: {delay}");
    }
}

/// Mean wait in ms of the call's packets at the bottleneck, and the utilization of the link. The delay of the empty path is subtracted:
/// half a round-trip time of propagation, 202 bytes at 1 Gbit/s and at the bottleneck's rate (172 payload, 28 headers, 2 framing).
fn call_wait(congestion: &str, flows: u32, megabits: u32, round_trip_ms: u32) -> (f64, f64) {
    let outcome = outcome(&scenario("{ kind = 'fq-codel' }", congestion, flows, megabits, round_trip_ms));
    let call = outcome.flow_rows().find(|row| row.flow == "call").unwrap().counters;
    assert!(call.rx_packets > 3400 && call.lost_packets == 0);
    let way = f64::from(round_trip_ms) / 2.0 + 0.001_616 + 1.616 / f64::from(megabits);
    let used = mean(&outcome, "throughput_bps", 20.0) / (f64::from(megabits) * 1e6);
    (1e3 * call.delay_sum.as_secs_f64() / call.rx_packets as f64 - way, used)
}

#[test]
fn call_with_downloads_waits_for_half_a_packet_under_fq_codel() {
    // RFC 8290 section 3.1: a flow that sends less than a quantum per round is new each time and is served first. A packet of the call
    // arrives every 20 ms, after the end of the round of the other flows (N packets). It waits for the rest of the packet in
    // transmission, on average half the transmission time of 1502 bytes: 1.2016 ms at 10 Mbit/s, 0.2403 at 50. The round-trip times are
    // short, so that no bulk flow's queue becomes empty, which would make the flow new: windows of few packets need queues.
    for (congestion, flows, megabits, round_trip_ms) in [
        ("newreno", 5, 10, 4),
        ("newreno", 10, 50, 4),
        ("cubic", 2, 10, 10),
        ("cubic", 5, 10, 10),
        ("cubic", 5, 50, 10),
        ("cubic", 20, 50, 10),
    ] {
        let (wait, used) = call_wait(congestion, flows, megabits, round_trip_ms);
        let expected = 12.016 / f64::from(megabits) / 2.0;
        assert!((wait - expected).abs() < 0.05 * expected, "{congestion} {flows} {megabits}: {wait} for {expected}");
        assert!(used > 0.99, "{congestion} {flows} {megabits}: {used}");
    }
}

#[test]
fn call_packet_within_a_round_waits_for_its_end_under_fq_codel() {
    // 20 flows at 10 Mbit/s: a round takes longer than the 20 ms between the call's packets. After being served as new, the call moves to
    // the end of the old flows. The flow served just before has used its quantum and moves behind it, so 19 flows are served first. Each
    // sends a packet (and, with quanta of 1514 bytes for packets of 1500, sometimes another): 19 * 1.2016 * 1514 / 1500 + 0.16 (its own)
    // = 23.2 ms. The next packet, 20 ms after the first, thus waits 3.2 ms longer than the first, which waits for half a packet. It
    // leaves the call's queue empty in its turn: the call is removed from the lists, and is new again. On average 0.601 + 3.2 / 2 = 2.2
    // ms.
    for congestion in ["newreno", "cubic"] {
        let (wait, _) = call_wait(congestion, 20, 10, 10);
        assert!((wait - 2.2).abs() < 0.1 * 2.2, "{congestion}: {wait}");
    }
}

/// Runs the scenario with ECN for all flows, and accurate feedback for DCTCP, whose packets are then ECT(1).
fn with_ecn(text: &str) -> fullpipe_lab::Outcome {
    use fullpipe_scenario::description::{Tcp, Transport};
    let mut scenario = fullpipe_scenario::load(text, "test.toml", &[]).unwrap_or_else(|e| panic!("{e}")).scenario;
    for flow in &mut scenario.flows {
        if let Transport::Tcp(settings) = &mut flow.transport {
            let mut own = Tcp::clone(settings);
            own.connection.ecn = fullpipe_tcp::EcnMode::Active;
            if ["dctcp", "prague"].contains(&&*own.congestion) {
                own.connection.ecn_feedback = fullpipe_tcp::EcnFeedback::Accurate;
            }
            *settings = std::sync::Arc::new(own);
        }
    }
    let outcome = fullpipe_lab::run(&scenario, &fullpipe_lab::Options::default()).unwrap();
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    outcome
}

#[test]
fn dualpi2_keeps_dctcp_and_prague_below_a_millisecond_with_cubic() {
    // RFC 9332 section 1.4: L4S packets wait less than 1 ms if a packet takes less (0.12 ms at 100 Mbit/s, 0.3 ms at 40), while classic
    // traffic keeps the target of appendix A, 15 ms. The wait is the smoothed round-trip time (every 10 ms from 20 s on) minus that of
    // the path, including the packet's own transmission.
    for (control, count, megabits) in [
        ("dctcp", 1, 40),
        ("dctcp", 2, 40),
        ("dctcp", 2, 100),
        ("dctcp", 5, 100),
        ("prague", 1, 40),
        ("prague", 2, 100),
    ] {
        let round_trip_ms = 10;
        let text = scenario("{ kind = 'dualpi2' }", "cubic", count, megabits, round_trip_ms)
            + &format!(
                "
                [[flow]]
                name = 'scalable'
                count = {count}
                from = 'source'
                to = 'sink'
                workload = 'bulk'
                congestion = '{control}'
                [[probe]]
                flow = '*l*'
                metrics = ['srtt_s']"
            );
        let outcome = with_ecn(&text);
        let waits = |flow: &str| {
            let rows = outcome.series_rows().filter(|row| row.metric == "srtt_s" && row.time.as_secs_f64() > 20.0);
            let mut waits: Vec<f64> = rows
                .filter(|row| row.subject.starts_with(flow))
                .map(|row| 1e3 * row.value - f64::from(round_trip_ms))
                .collect();
            waits.sort_by(f64::total_cmp);
            waits
        };
        let (scalable, classic) = (waits("scalable"), waits("bulk"));
        let median = |waits: &[f64]| waits[waits.len() / 2];
        assert!(median(&scalable) < 1.0, "{count} {control} at {megabits}: {}", median(&scalable));
        assert!((median(&classic) - 15.0).abs() < 0.2 * 15.0, "{count} {control} at {megabits}: {}", median(&classic));
        let used = mean(&outcome, "throughput_bps", 20.0) / (f64::from(megabits) * 1e6);
        assert!(used > 0.95, "{used}");
    }
}
