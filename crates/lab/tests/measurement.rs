//! Statistics of links with `[measurement]`, compared with hand calculations, with the law of the M/D/1 queue, and with sums over all
//! frames by an observer.

use crate::common::{behind_fast_access, csv, outcome};
use fullpipe_lab::{FlowRow, MeasuredLink, Options, Outcome, Plugins, run, run_with};
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_scenario::Scenario;
use fullpipe_units::{Instant, LinkId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One link of 8 Mbit/s: a frame of 1000 bytes takes a millisecond.
fn one_link(duration: &str, flow: &str, measurement: &str) -> Outcome {
    outcome(&format!(
        "duration = '{duration}'
        processing_jitter = '0s'
        [topology]
        kind = 'chain'
        [[topology.link]]
        rate = '8Mbit/s'
        delay = '10ms'
        queue = 'unlimited'
        [[flow]]
        from = 'source'
        to = 'sink'
        protocol = 'udp'
        {flow}
        {measurement}"
    ))
}

fn only(outcome: &Outcome) -> MeasuredLink<'_> {
    let mut links = outcome.measured_links();
    let link = links.next().expect("one link is measured");
    assert!(links.next().is_none());
    link
}

fn links_csv(outcome: &Outcome) -> String {
    csv(outcome, "links.csv")
}

#[test]
fn flow_statistics_of_an_overload_match_a_hand_calculation() {
    // The n-th datagram, from 0, is sent at 0.8 n ms, departs at n ms and arrives at n + 11 ms, with a delay of 0.2 n + 11 ms. From 500
    // to 1000 ms, both included, those from 625 to 1250 are sent and those from 489 to 989 arrive.
    let flow = "workload = 'constant-rate'\npayload = '970B'\ninterval = '800us'";
    for (measurement, first) in [("[measurement]\nfrom = '500ms'", 489), ("", 0)] {
        let outcome = one_link("1s", flow, measurement);
        let row = outcome.flow_rows().next().expect("one flow");
        let arrived = 990 - first;
        assert_eq!(row.counters.rx_packets, 990);
        assert_eq!(row.measured.tx_packets, if first > 0 { 626 } else { 1251 });
        assert_eq!((row.measured.rx_packets, row.measured.rx_bytes), (arrived, 998 * arrived));
        // The mean of n is the middle of its range.
        let mean_us = 200 * (first + 989) / 2 + 11_000;
        assert_eq!(row.measured.delay_sum.as_nanos(), 1000 * arrived * mean_us);
        // Each packet waits 0.2 ms longer than the previous one. The first of all has no previous one.
        let steps = if first > 0 { arrived } else { arrived - 1 };
        assert_eq!(row.measured.jitter_sum.as_nanos(), 200_000 * steps);
        let seconds = if first > 0 { 0.5 } else { 1.0 };
        assert_eq!(row.goodput_bps, Some((970 * 8 * arrived) as f64 / seconds));
        assert_eq!(row.whole_goodput_bps, Some((970 * 8 * 990) as f64));
    }
}

#[test]
fn losses_on_links_computed_ahead_count_at_their_own_time() {
    // Five datagrams arrive while four depart. Once the queue is full, every fifth is dropped: 626 are sent in the interval.
    let text = "duration = '1s'\nprocessing_jitter = '0s'\n[topology]\nkind = 'chain'\n[[topology.link]]\nrate = '8Mbit/s'\n\
                delay = '100ms'\nqueue = '10packets'\n[[topology.link]]\nrate = '7.9Mbit/s'\ndelay = '100ms'\nqueue = '10packets'\n\
                [[flow]]\nfrom = 'source'\nto = 'sink'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = '970B'\n\
                interval = '800us'\n[measurement]\nfrom = '500ms'";
    let scenario = fullpipe_scenario::load(text, "test.toml", &[]).expect("a scenario").scenario;
    let [fused, stepwise] = [true, false].map(|fusion| {
        let outcome = run(&scenario, &Options { fusion, ..Options::default() }).expect("a run");
        let row = outcome.flow_rows().next().expect("one flow");
        (row.measured, row.counters)
    });
    assert_eq!(fused, stepwise);
    // The first link drops 125 or 126. The second receives slightly more than 500, and drops 1.25 % of them in the last 400 ms.
    let (measured, whole) = fused;
    assert!((125..=135).contains(&measured.lost_packets), "{}", measured.lost_packets);
    assert!(whole.lost_packets > measured.lost_packets + 100, "{}", whole.lost_packets);
}

#[test]
fn goodput_of_limited_flows_is_over_their_part_of_the_interval() {
    // Datagrams of 970 bytes, 1000 on the wire, are sent every 10 ms and arrive 11 ms later.
    let flow =
        |packets: u32| format!("workload = 'constant-rate'\npayload = '970B'\ninterval = '10ms'\npackets = {packets}");
    let goodput = |packets| {
        let outcome = one_link("10s", &flow(packets), "[measurement]\nfrom = '500ms'");
        let row = outcome.flow_rows().next().expect("one flow");
        (row.goodput_bps, row.whole_goodput_bps.is_some())
    };
    // 20 datagrams have been sent by 0.2 s.
    assert_eq!(goodput(20), (None, true));
    // The n-th arrives at 10 n + 11 ms, within the interval from n = 49 on. The last, n = 99, at 1001 ms: 51 in 501 ms.
    let (Some(bps), true) = goodput(100) else { panic!("no goodput") };
    assert!((bps - 51.0 * 970.0 * 8.0 / 0.501).abs() < 1e-6, "{bps}");
}

#[test]
fn link_statistics_of_an_overload_match_a_hand_calculation() {
    // The n-th frame, from 0, arrives at 0.8 n ms and its transmission begins at n ms: it waits 0.2 n ms. From 500 to 1000 ms, both
    // included, those from 625 to 1250 arrive and the transmissions of those from 500 to 1000 begin; 625 - 500 wait before, 1251 - 1001
    // after.
    let flow = "workload = 'constant-rate'\npayload = '970B'\ninterval = '800us'";
    let outcome = one_link("1s", flow, "[measurement]\nfrom = '500ms'\nlinks = ['link1']");
    let link = only(&outcome);
    let summary = &link.summary;
    assert_eq!((link.link, summary.measured_duration().as_nanos()), ("link1", 500_000_000));
    assert_eq!((summary.arrivals.packets, summary.departed.packets, summary.dropped_packets), (626, 501, 0));
    assert_eq!((summary.waiting_first.packets, summary.waiting_last.packets), (125, 250));
    // 0.2 ms times (500 + 501 + ... + 1000), in ns.
    assert_eq!(summary.delay_sum_ns, 200_000 * 501 * 750);
    assert_eq!((summary.mean_queue_delay_s(), link.utilisation), (Some(0.15), Some(1.0)));
    assert_eq!(summary.throughput_bps(), Some(501.0 * 8000.0 / 0.5));
    let csv = links_csv(&outcome);
    let (header, row) = csv.trim_end().split_once('\n').expect("two lines");
    assert_eq!(header, fullpipe_archive::LINKS.names().collect::<Vec<_>>().join(","));
    assert!(row.starts_with("link1,0.5,1,0.5,125,250,626,626000,501,501000,0,0,0,0,8016000,1,0.15,"), "{row}");
    // The n-th frame arrives at n + 11 ms: those from 489 to 989 within the half second, each with 970 bytes.
    let goodput = |outcome: &Outcome| outcome.flow_rows().next().expect("one flow").measured_goodput_bps;
    assert_eq!(goodput(&outcome), Some(501.0 * 970.0 * 8.0 / 0.5));
    assert_eq!(outcome.flow_rows().next().expect("a row").measured_goodput_bps, Some(7_775_520.0));
    // From the beginning: those from 0 to 989.
    let whole = one_link("1s", flow, "[measurement]\nlinks = ['link1']");
    assert_eq!(goodput(&whole), Some(990.0 * 970.0 * 8.0));
    assert_eq!(goodput(&one_link("1s", flow, "")), None);
}

#[test]
fn link_statistics_of_an_idle_queue_match_a_hand_calculation() {
    // A frame every 4 ms, 250 in total; none waits. The last is sent at 996 ms and received at 1007 ms, when the run ends.
    let flow = "workload = 'constant-rate'\npayload = '970B'\ninterval = '4ms'\npackets = 250";
    let outcome = one_link("9s", flow, "[measurement]\nlinks = ['link1']");
    let link = only(&outcome);
    assert_eq!((link.summary.to, link.summary.busy.as_nanos()), (Instant::from_nanos(1_007_000_000), 250_000_000));
    assert_eq!((link.summary.packet_ns, link.summary.delay_sum_ns), (0, 0));
    assert_eq!((link.utilisation, link.summary.mean_queue_delay_s()), (Some(250.0 / 1007.0), Some(0.0)));
}

#[test]
fn m_d_1_queue_follows_its_law() {
    // Load 0.8 of 1 ms: by Pollaczek and Khinchine the mean wait is 0.8 / (2 (1 - 0.8)) = 2 ms, and the mean length 1.6. With about 800
    // 000 frames and a correlation time of about 50 ms, the means have a standard error of about 1.3 %.
    let flow = "workload = 'poisson-packets'\ninterval = '1250us'\nsize = '1000B'\nsize_includes = '30B'";
    let outcome = one_link("1100s", flow, "[measurement]\nfrom = '100s'\nlinks = ['link1']");
    let MeasuredLink { summary, utilisation, .. } = only(&outcome);
    let near = |value: Option<f64>, law: f64, part: f64| {
        let value = value.expect("there are frames");
        assert!((value / law - 1.0).abs() < part, "{value} instead of {law}");
    };
    near(utilisation, 0.8, 0.005);
    near(summary.throughput_bps(), 6.4e6, 0.005);
    near(summary.mean_queue_delay_s(), 0.002, 0.05);
    near(summary.mean_queue_packets(), 1.6, 0.05);
    near(summary.mean_queue_bytes(), 1600.0, 0.05);
}

#[test]
fn littles_law_is_exact_without_packets_at_the_ends_of_the_interval() {
    let flow = "workload = 'poisson-packets'\ninterval = '1100us'\nsize = '1000B'\npackets = 5000";
    let outcome = one_link("100s", flow, "[measurement]\nlinks = ['link1']");
    let MeasuredLink { summary, .. } = only(&outcome);
    assert_eq!((summary.departed.packets, summary.waiting_last.packets), (5000, 0));
    assert!(summary.delay_sum_ns > 1_000_000_000, "no packet waits");
    assert_eq!(summary.packet_ns, summary.delay_sum_ns);
}

/// Records every event of every link.
#[derive(Default)]
struct Frames {
    offered: Vec<(LinkId, Instant)>,
    dropped: Vec<(LinkId, Instant)>,
    marked: Vec<(LinkId, Instant)>,
    transmitted: Vec<Transmission>,
}

impl Observer for Frames {
    fn on_offered(&mut self, now: Instant, link: LinkId, _wire_bytes: u32) {
        self.offered.push((link, now));
    }
    fn on_link_dropped(&mut self, now: Instant, link: LinkId, _wire_bytes: u32, _reason: DropReason) {
        self.dropped.push((link, now));
    }
    fn on_marked(&mut self, now: Instant, _packet: &PacketView, link: LinkId) {
        self.marked.push((link, now));
    }
    fn on_transmitted(&mut self, transmission: &Transmission) {
        self.transmitted.push(*transmission);
    }
}

/// The window and the run end with a sample of the probe, at times that are not multiples of a millisecond, at which a trace makes
/// packets arrive and depart. At the same time, the probe samples the state after an event, and the window the state before.
const MEASURED: &str = "[measurement]\nfrom = '3000002us'\nlinks = ['link2*']";

/// Two TCP flows in one direction and one in the other, over a link of 10 Mbit/s and 20 ms.
fn loaded(link: &str, measurement: &str) -> Scenario {
    let text = format!(
        "duration = '6000004us'
        {}
        [[flow]]
        count = 2
        from = 'source'
        to = 'sink'
        workload = 'bulk'
        [[flow]]
        name = 'back'
        from = 'sink'
        to = 'source'
        start = '1s'
        workload = 'bulk'
        [[probe]]
        link = 'link2*'
        metrics = ['queue_bytes']
        interval = '1500001us'
        {measurement}",
        behind_fast_access(&format!("rate = '10Mbit/s'\ndelay = '20ms'\n{link}"))
    );
    let loaded = fullpipe_scenario::load(&text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    let mut scenario = loaded.scenario;
    for flow in &mut scenario.flows {
        if let fullpipe_scenario::description::Transport::Tcp(tcp) = &mut flow.transport {
            Arc::make_mut(tcp).connection.ecn = fullpipe_tcp::EcnMode::Active;
        }
    }
    scenario
}

const LINKS: [&str; 6] = [
    "queue = '20packets'",
    "queue = '20packets'\nloss = { kind = 'bernoulli', probability = 0.01 }",
    "discipline = { kind = 'codel' }",
    "discipline = { kind = 'step', threshold = '10packets' }",
    "queue = '30packets'\nschedule = [{ at = '2500ms', outage = true }, { at = '3500ms', rate = '2Mbit/s' }]",
    "queue = '20packets'\ntrace = [3, 4, 9]",
];

#[test]
fn link_statistics_equal_sums_over_all_frames() {
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for text in LINKS {
        let scenario = loaded(text, MEASURED);
        let outcome =
            run_with(&scenario, &Options::default(), Plugins::new().observe(Frames::default())).expect("a run");
        assert!(outcome.verdict().passed(), "{}", outcome.verdict());
        let frames: &Frames = outcome.observers().next().expect("the one above");
        let names: Vec<&str> = outcome.measured_links().map(|link| link.link).collect();
        assert_eq!(names, ["link2", "link2.reverse"]);
        for (number, MeasuredLink { link: name, summary, utilisation, .. }) in (2u32..).zip(outcome.measured_links()) {
            let link = LinkId(number);
            let (from, to) = (Instant::from_nanos(3_000_002_000), outcome.end_time());
            assert_eq!((summary.from, summary.to), (from, to));
            let within = |at: Instant| (from..=to).contains(&at);
            let of_link = |list: &[(LinkId, Instant)]| -> Vec<Instant> {
                list.iter().filter(|event| event.0 == link).map(|event| event.1).collect()
            };
            let count = |list: &[Instant]| list.iter().filter(|at| within(**at)).count() as u64;
            let (offered, dropped) = (of_link(&frames.offered), of_link(&frames.dropped));
            let sent: Vec<&Transmission> = frames.transmitted.iter().filter(|frame| frame.link == link).collect();
            let departures: Vec<Instant> = sent.iter().map(|frame| frame.start).collect();
            let marked = count(&of_link(&frames.marked));
            assert_eq!((summary.arrivals.packets, summary.dropped_packets), (count(&offered), count(&dropped)));
            assert_eq!((summary.departed.packets, summary.marked_packets), (count(&departures), marked));
            let departed: Vec<&Transmission> = sent.iter().filter(|frame| within(frame.start)).copied().collect();
            assert_eq!(summary.departed.bytes, departed.iter().map(|frame| u64::from(frame.wire_bytes)).sum::<u64>());
            let mut delays: Vec<u64> = departed.iter().map(|frame| (frame.start - frame.offered).as_nanos()).collect();
            assert_eq!(summary.delay_sum_ns, delays.iter().map(|delay| u128::from(*delay)).sum::<u128>());
            delays.sort_unstable();
            let p99 = delays[(delays.len() * 99).div_ceil(100) - 1];
            let found = summary.delay_p99.expect("some departed").as_nanos();
            assert!((p99..=p99 + p99 / 64).contains(&found), "{text}: {found} for {p99}");
            // An arrival adds the remaining time to the integral of the queue length, and a departure subtracts it.
            let rest = |list: &[Instant]| -> u128 {
                list.iter().map(|at| u128::from(to.saturating_since((*at).max(from)).as_nanos())).sum()
            };
            assert_eq!(summary.packet_ns, rest(&offered) - rest(&dropped) - rest(&departures), "{text}, {name}");
            let busy: u64 = sent
                .iter()
                .map(|frame| frame.finish.min(to).saturating_since(frame.start.max(from).min(to)).as_nanos())
                .sum();
            assert_eq!(summary.busy.as_nanos(), busy, "{text}, {name}");
            assert!(utilisation.is_none_or(|part| (0.1..=1.0).contains(&part)), "{text}, {name}: {utilisation:?}");
            assert_eq!(utilisation.is_none(), number == 2 && text.contains("trace"), "{text}, {name}");
            assert_eq!(
                summary.waiting_first.packets + summary.arrivals.packets,
                summary.departed.packets + summary.dropped_packets + summary.waiting_last.packets
            );
            // The queue of the network, as the probe samples it.
            let queue = |at: Instant| outcome.series(name, "queue_bytes").find(|sample| sample.0 == at).map(|s| s.1);
            assert_eq!(queue(from), Some(summary.waiting_first.bytes as f64), "{text}, {name}");
            assert_eq!(queue(to), Some(summary.waiting_last.bytes as f64), "{text}, {name}");
            let found =
                [("waiting first", summary.waiting_first.packets), ("waiting last", summary.waiting_last.packets)];
            for (what, packets) in found.into_iter().chain([("dropped", count(&dropped)), ("marked", marked)]) {
                *seen.entry(what).or_default() += packets;
            }
        }
    }
    assert!(seen.values().all(|packets| *packets > 0), "one of these does not occur: {seen:?}");
}

#[test]
fn measurement_does_not_change_a_run_nor_depend_on_run_options() {
    for text in LINKS {
        let plain = Options::default();
        let stepwise = Options { fusion: false, audit_packets: true, ..Options::default() };
        let measured = loaded(text, MEASURED);
        let outcome = run(&measured, &plain).expect("a run");
        let silent = run(&loaded(text, ""), &plain).expect("a run");
        assert_eq!(silent.measured_links().count(), 0);
        let flows = |outcome: &Outcome| {
            let whole = |row: FlowRow<'_>| {
                let again = (row.retransmitted_packets, row.marked_packets);
                (row.flow.into_owned(), row.counters, row.whole_goodput_bps, row.completion, again)
            };
            outcome.flow_rows().map(whole).collect::<Vec<_>>()
        };
        assert_eq!((flows(&outcome), outcome.totals()), (flows(&silent), silent.totals()));
        assert!(silent.flow_rows().all(|row| row.measured_goodput_bps.is_none()));
        assert!(outcome.flow_rows().any(|row| row.measured_goodput_bps.is_some_and(|bps| bps > 0.0)));
        assert_eq!(links_csv(&outcome), links_csv(&run(&measured, &stepwise).expect("a run")), "{text}");
        assert_eq!(links_csv(&outcome), links_csv(&run(&measured, &plain).expect("a run")), "{text}");
    }
}

/// A datagram of 998 IP bytes departs every 1 ms until 600 ms, then every 2 ms. Each half has 400 ms: the last 400 datagrams of the first
/// rate, and 200 of the second. Their waits grow, but all arrive 10 ms after their departure.
#[test]
fn halves_of_the_measured_interval_match_a_hand_calculation() {
    let text = |measurement: &str, start: &str| {
        format!(
            "duration = '1s'\nprocessing_jitter = '0s'\n[topology]\nkind = 'chain'\n[[topology.link]]\nrate = '8Mbit/s'\ndelay =              '10ms'\nqueue = 'unlimited'\nschedule = [{{ at = '600ms', rate = '4Mbit/s' }}]\n[[flow]]\nname = 'data'\nfrom = 'source'\n             to = 'sink'\nstart = '{start}'\nprotocol = 'udp'\nworkload = 'constant-rate'\npayload = '970B'\ninterval = '800us'\n{measurement}"
        )
    };
    let file = fullpipe_archive::HALVES.file;
    let rows = |outcome: &Outcome| -> Vec<fullpipe_archive::HalfRow> {
        fullpipe_archive::HALVES.read(std::path::Path::new(file), csv(outcome, file).as_bytes()).expect("a table")
    };
    let of = outcome(&text("[measurement]\nfrom = '200ms'\nlinks = ['*']", "0s"));
    let mut rows = rows(&of);
    rows.retain(|row| row.subject != "link1.reverse");
    let found: Vec<_> = rows.iter().map(|row| (row.subject.as_str(), row.kind.as_str(), row.half)).collect();
    assert_eq!(found, [("data", "flow", 1), ("data", "flow", 2), ("link1", "link", 1), ("link1", "link", 2)]);
    assert_eq!((rows[0].from_s, rows[0].to_s), (Instant::from_nanos(200_000_000), Instant::from_nanos(600_000_000)));
    assert_eq!((rows[1].from_s, rows[1].to_s), (Instant::from_nanos(600_000_000), Instant::from_nanos(1_000_000_000)));
    // 400 datagrams, and 200 plus 11 that still arrive at the first rate, and the frame in transmission at the change.
    let packets = |bytes: f64, bps: Option<f64>| bps.expect("a rate") * 0.4 / 8.0 / bytes;
    assert!((packets(970.0, rows[0].goodput_bps) - 400.0).abs() < 1.5, "{:?}", rows[0]);
    assert!((packets(970.0, rows[1].goodput_bps) - 205.0).abs() < 2.0, "{:?}", rows[1]);
    assert!((packets(998.0, rows[0].throughput_bps) - 400.0).abs() < 1.5, "{:?}", rows[0]);
    assert!((packets(1000.0, rows[2].throughput_bps) - 400.0).abs() < 1.5, "{:?}", rows[2]);
    assert!((packets(1000.0, rows[3].throughput_bps) - 200.0).abs() < 1.5, "{:?}", rows[3]);
    // The n-th waits 0.2 n ms in the first half, with n from 200 to 599: 80 ms on average.
    assert!((rows[2].mean_delay_s.expect("a delay") - 0.08).abs() < 0.001, "{:?}", rows[2]);
    assert!(rows[3].mean_delay_s > rows[2].mean_delay_s);
    // The halves of both add up to the total.
    let whole = of.flow("data").expect("the flow").goodput_bps.expect("a goodput");
    let both = (rows[0].goodput_bps.expect("one") + rows[1].goodput_bps.expect("one")) / 2.0;
    assert!((both / whole - 1.0).abs() < 1e-9, "{both} {whole}");
    // There are none without an interval, or for a flow that starts within it.
    for (measurement, start) in [("", "0s"), ("[measurement]\nfrom = '200ms'", "300ms")] {
        assert!(outcome(&text(measurement, start)).tables().iter().all(|(name, _)| *name != file));
    }
}

#[test]
fn timeouts_are_counted_by_flow_and_direction() {
    let text = |schedule: &str, size: &str| {
        format!(
            "duration = '8s'\n[topology]\nkind = 'chain'\n[[topology.link]]\nrate = '8Mbit/s'\ndelay = '10ms'\nqueue = '100packets'\n{schedule}\n             [[flow]]\nname = 'data'\nfrom = 'source'\nto = 'sink'\nworkload = 'bulk'\n{size}\n"
        )
    };
    assert!(outcome(&text("", "size = '200kB'")).timeouts().is_empty());
    // In an outage of 2 s, the timer of at least 0.2 s expires and doubles: after 0.2 to 0.3 s, 0.6 to 0.9 s and 1.4 to 2.1 s.
    for size in ["", "size = '1MB'"] {
        let found =
            outcome(&text("schedule = [{ at = '500ms', outage = true }, { at = '2500ms', rate = '8Mbit/s' }]", size))
                .timeouts();
        // Also for a closed connection.
        assert_eq!(found.keys().collect::<Vec<_>>(), ["data"], "{size}");
        assert!((2..=4).contains(&found["data"]), "{size}: {found:?}");
    }
}
