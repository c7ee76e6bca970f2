//! What `[measurement]` sums up of links: against arithmetic by hand, against the law of the M/D/1 queue, and against
//! what an observer of every frame adds up by the definitions.

mod common;

use common::{behind_fast_access, csv, flows_csv, outcome};
use fullpipe_lab::{MeasuredLink, Options, Outcome, Plugins, run, run_with};
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
fn an_overload_by_hand() {
    // The n-th frame, from 0, comes at 0.8 n ms and begins at n ms: it waits for 0.2 n ms. From 500 to 1000 ms, both
    // included, those from 625 to 1250 come and those from 500 to 1000 begin; 625 - 500 wait before, 1251 - 1001 after.
    let flow = "workload = 'constant-rate'\npayload = '970B'\ninterval = '800us'";
    let outcome = one_link("1s", flow, "[measurement]\nfrom = '500ms'\nlinks = ['link1']");
    let link = only(&outcome);
    let summary = &link.summary;
    assert_eq!((link.link, summary.measured().as_nanos()), ("link1", 500_000_000));
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
    // The n-th frame has arrived at n + 11 ms: those from 489 to 989 within the half second, each with 970 bytes.
    let goodput = |outcome: &Outcome| outcome.flow_rows().next().expect("one flow").measured_goodput_bps;
    assert_eq!(goodput(&outcome), Some(501.0 * 970.0 * 8.0 / 0.5));
    assert!(flows_csv(&outcome).lines().nth(1).expect("a row").ends_with(",7775520"));
    // From the beginning: those from 0 to 989.
    let whole = one_link("1s", flow, "[measurement]\nlinks = ['link1']");
    assert_eq!(goodput(&whole), Some(990.0 * 970.0 * 8.0));
    assert_eq!(goodput(&one_link("1s", flow, "")), None);
}

#[test]
fn an_idle_queue_by_hand() {
    // A frame every 4 ms, 250 in all; nothing waits. The last comes at 996 ms and is received at 1007 ms: there the run ends.
    let flow = "workload = 'constant-rate'\npayload = '970B'\ninterval = '4ms'\npackets = 250";
    let outcome = one_link("9s", flow, "[measurement]\nlinks = ['link1']");
    let link = only(&outcome);
    assert_eq!((link.summary.to, link.summary.busy.as_nanos()), (Instant::from_nanos(1_007_000_000), 250_000_000));
    assert_eq!((link.summary.packet_ns, link.summary.delay_sum_ns), (0, 0));
    assert_eq!((link.utilisation, link.summary.mean_queue_delay_s()), (Some(250.0 / 1007.0), Some(0.0)));
}

#[test]
fn a_queue_of_type_m_d_1_keeps_its_law() {
    // Load 0.8 of 1 ms: Pollaczek and Khinchine give a wait of 0.8 / (2 (1 - 0.8)) = 2 ms, and 1.6 that wait. About
    // 800 000 frames; the queue forgets within some 50 ms, so the means have a standard error of about 1.3 %.
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
fn littles_law_holds_to_the_nanosecond_where_nobody_crosses_an_end() {
    let flow = "workload = 'poisson-packets'\ninterval = '1100us'\nsize = '1000B'\npackets = 5000";
    let outcome = one_link("100s", flow, "[measurement]\nlinks = ['link1']");
    let MeasuredLink { summary, .. } = only(&outcome);
    assert_eq!((summary.departed.packets, summary.waiting_last.packets), (5000, 0));
    assert!(summary.delay_sum_ns > 1_000_000_000, "they do wait");
    assert_eq!(summary.packet_ns, summary.delay_sum_ns);
}

/// Keeps every event of every link.
#[derive(Default)]
struct Frames {
    offered: Vec<(LinkId, Instant)>,
    dropped: Vec<(LinkId, Instant)>,
    marked: Vec<(LinkId, Instant)>,
    transmitted: Vec<Transmission>,
}

impl Observer for Frames {
    fn offered(&mut self, now: Instant, link: LinkId, _wire_bytes: u32) {
        self.offered.push((link, now));
    }
    fn link_dropped(&mut self, now: Instant, link: LinkId, _wire_bytes: u32, _reason: DropReason) {
        self.dropped.push((link, now));
    }
    fn marked(&mut self, now: Instant, _packet: &PacketView, link: LinkId) {
        self.marked.push((link, now));
    }
    fn transmitted(&mut self, transmission: &Transmission) {
        self.transmitted.push(*transmission);
    }
}

/// The window begins and the run ends with a sample of the probe, off the grid of milliseconds on which a trace makes
/// packets come and go: of what happens at that very instant, the probe sees what is left, the window what was before.
const MEASURED: &str = "[measurement]\nfrom = '3000002us'\nlinks = ['link2*']";

/// Two TCP flows one way, one the other way, over a link of 10 Mbit/s and 20 ms.
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
            Arc::make_mut(tcp).connection.ecn = fullpipe_tcp::Ecn::Active;
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
fn every_sum_is_that_of_its_definition() {
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
            let (from, to) = (Instant::from_nanos(3_000_002_000), outcome.ended());
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
            // Whoever comes adds the time from then on to the integral of the queue, whoever leaves takes it off.
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
            // The network's own queue, as the probe reads it.
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
    assert!(seen.values().all(|packets| *packets > 0), "each of these happens somewhere: {seen:?}");
}

#[test]
fn measuring_changes_nothing_and_nothing_changes_what_is_measured() {
    for text in LINKS {
        let plain = Options::default();
        let stepwise = Options { fusion: false, audit_packets: true, ..Options::default() };
        let measured = loaded(text, MEASURED);
        let outcome = run(&measured, &plain).expect("a run");
        let silent = run(&loaded(text, ""), &plain).expect("a run");
        assert_eq!(silent.measured_links().count(), 0);
        // The last column is the goodput of the measured time, which only one of the two has.
        let flows = |outcome: &Outcome| {
            let rows = flows_csv(outcome);
            rows.lines().map(|row| row.rsplit_once(',').expect("columns").0.to_owned()).collect::<Vec<_>>()
        };
        assert_eq!((flows(&outcome), outcome.totals()), (flows(&silent), silent.totals()));
        assert!(silent.flow_rows().all(|row| row.measured_goodput_bps.is_none()));
        assert!(outcome.flow_rows().any(|row| row.measured_goodput_bps.is_some_and(|bps| bps > 0.0)));
        assert_eq!(links_csv(&outcome), links_csv(&run(&measured, &stepwise).expect("a run")), "{text}");
        assert_eq!(links_csv(&outcome), links_csv(&run(&measured, &plain).expect("a run")), "{text}");
    }
}
