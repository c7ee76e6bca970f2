//! Every queue discipline in a run of a TCP flow through a bottleneck, with the packet auditor.

use crate::common;

use fullpipe_lab::{Options, run};
use fullpipe_network::Limit;
use fullpipe_network::discipline::settings::QueueCapacity;

fn network(discipline: &str) -> String {
    format!(
        "duration = '20s'
        {}
        [[flow]]
        name = 'bulk'
        from = 'source'
        to = 'sink'
        congestion = 'newreno'
        [[flow]]
        name = 'call'
        from = 'source'
        to = 'sink'
        workload = 'voice'
        silence_suppression = false
        both_ways = false
        priority = 0
        [[probe]]
        link = 'link2'
        metrics = ['queue_bytes', 'drops', 'marks']",
        common::behind_fast_access(&format!("rate = '10Mbit/s'\ndelay = '19ms'\ndiscipline = {discipline}"))
    )
}

/// Mean delay of a call's packets minus that of an empty path: 20 ms of propagation, 202 bytes at 1 Gbit/s and at 10 Mbit/s (172 payload,
/// 28 headers, 2 framing): 1.616 us + 161.6 us.
fn call_queue_delay_s(text: &str) -> f64 {
    let loaded = fullpipe_scenario::load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let options = Options { audit_packets: true, ..Options::default() };
    let outcome = run(&loaded.scenario, &options).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.verdict().passed(), "{text}: {:?}", outcome.verdict().failures);
    let rows: Vec<_> = outcome.flow_rows().collect();
    let bulk = rows.iter().find(|row| row.flow == "bulk").unwrap();
    // NewReno's window, between half and all of the path's capacity without a queue, uses 3/4 of the link: 7.2 Mbit/s of payload. RED
    // with thresholds of 5 and 15 ms is near that: its random drops give 6.5 to 7.3 over seeds.
    assert!(bulk.goodput_bps.unwrap() > 6e6, "{text}: {:?}", bulk.goodput_bps);
    let call = rows.iter().find(|row| row.flow == "call").unwrap().counters;
    call.delay_sum.as_secs_f64() / call.rx_packets as f64 - 0.020_163_216
}

#[test]
fn each_discipline_carries_a_flow() {
    for discipline in [
        "{ kind = 'fifo', limit = '50packets' }",
        "{ kind = 'red' }",
        "{ kind = 'red', limit = '100kB', min = '5ms', max = '15ms' }",
        "{ kind = 'ared' }",
        "{ kind = 'codel' }",
        "{ kind = 'fq-codel', memory = '1MB' }",
        "{ kind = 'pie' }",
        "{ kind = 'pie', delay = 'departure-rate' }",
        "{ kind = 'dualpi2' }",
        "{ kind = 'step', limit = '50packets', threshold = '5ms' }",
        "{ kind = 'priority', bands = [{ kind = 'fifo', limit = '100packets' }, { kind = 'codel' }] }",
    ] {
        let delay = call_queue_delay_s(&network(discipline));
        // The drop-tail queue of 50 packets holds 60 ms; no discipline may be worse.
        assert!((0.0..0.060).contains(&delay), "{discipline}: {delay}");
    }
}

#[test]
fn packet_of_the_first_band_waits_only_for_the_packet_in_transmission() {
    // A full segment of 1502 bytes takes 1.2016 ms. On average, less than that remains of the packet in transmission when a packet of the
    // first band arrives, regardless of the queue of the second band.
    let fifo = "{ kind = 'fifo', limit = '100packets' }";
    for by in ["flow", "protocol"] {
        let text = network(&format!("{{ kind = 'priority', by = '{by}', bands = [{fifo}, {fifo}] }}"));
        let delay = call_queue_delay_s(&text);
        assert!((0.0001..0.001_201_6).contains(&delay), "{by}: {delay}");
    }
}

#[test]
fn discipline_without_a_device_queue_limit_has_the_whole_queue() {
    let loaded = fullpipe_scenario::load(&network("{ kind = 'codel', limit = '10ms' }"), "test.toml", &[]).unwrap();
    let link = &loaded.scenario.links[2];
    assert_eq!(link.queue, fullpipe_scenario::description::QueueLimit::Packets(0));
    // 10 ms at 10 Mbit/s.
    let discipline = link.discipline.as_ref().unwrap();
    assert_eq!(discipline.name(), "codel");
    assert_eq!(discipline.capacity(), QueueCapacity::from_limit(Limit::Bytes(12_500)));
}

#[test]
fn dctcp_with_default_settings_works_with_a_marking_queue() {
    // A step at 20 packets of 1502 bytes at 100 Mbit/s is 2.4 ms. DCTCP's queue oscillates around the step (Alizadeh et al. 2010): its
    // mean is below twice the step, nothing is lost, and the link is full.
    let bottleneck = "rate = '100Mbit/s'\ndelay = '1ms'\ndiscipline = { kind = 'step', threshold = '20packets' }";
    let outcome = common::outcome(&format!(
        "duration = '10s'
        {}
        [[flow]]
        name = 'bulk'
        from = 'source'
        to = 'sink'
        congestion = 'dctcp'
        [[probe]]
        link = 'link2'
        metrics = ['queue_delay_s', 'marks']",
        common::behind_fast_access(bottleneck)
    ));
    let row = outcome.flow_rows().next().unwrap();
    assert!(row.goodput_bps.unwrap() > 95e6, "{:?}", row.goodput_bps);
    assert!(row.counters.lost_packets == 0 && row.marked_packets.unwrap() > 100, "{row:?}");
    let delay = common::mean(&outcome, "queue_delay_s", 2.0);
    assert!((0.0005..0.0048).contains(&delay), "{delay}");
}

#[test]
fn marked_packets_are_zero_with_ecn_and_absent_without() {
    let marked = |flow: &str| {
        let text = format!(
            "duration = '1s'
            topology = {{ kind = 'chain', link = [{{ rate = '10Mbit/s', delay = '1ms', queue = 'unlimited' }}] }}
            flow = [{{ name = 'it', from = 'source', to = 'sink', {flow} }}]"
        );
        let outcome = common::outcome(&text);
        outcome.flow_rows().map(|row| row.marked_packets).collect::<Vec<_>>()
    };
    assert_eq!(marked("congestion = 'dctcp'"), [Some(0), Some(0)]);
    assert_eq!(marked("congestion = 'newreno'"), [None, None]);
    assert_eq!(marked("protocol = 'udp', workload = 'constant-rate', payload = '100B', interval = '10ms'"), [None]);
}
