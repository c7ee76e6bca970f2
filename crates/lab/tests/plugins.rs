//! Plug-ins: a built-in component that is plugged in changes nothing, an observer receives all events and changes nothing, and a
//! selection that matches nothing is an error.

use crate::common::{csv, flows_csv};
use fullpipe_congestion::cubic::{Cubic, CubicConfig};
use fullpipe_congestion::hystart::HyStart;
use fullpipe_congestion::{Ack, CongestionEvent, ControlRequirements, Controller, Timeout, WindowState};
use fullpipe_lab::{ConnectionContext, Options, Outcome, Plugins, RunError, prepare_with, run, run_with};
use fullpipe_network::queue::QueuedPacket;
use fullpipe_network::{Fifo, Limit, QueueDiscipline};
use fullpipe_quic::scheduler::{self, StreamScheduler};
use fullpipe_record::{DropReason, Observer, PacketView, Transmission};
use fullpipe_scenario::Scenario;
use fullpipe_units::{FlowId, Instant, LinkId};
use fullpipe_workload::{BulkSender, BulkSpec, Sink};
use std::sync::{Arc, Mutex};

/// A dumbbell with overflow, random loss and probes; flows that are limited, unlimited, in a group, and over UDP.
const MIXED: &str = r#"
    duration = "5s"
    seed = 3
    [topology]
    kind = "dumbbell"
    pairs = 3
    access = { rate = "100Mbit/s", delay = "1ms" }
    bottleneck = { rate = "10Mbit/s", delay = "10ms", queue = "30packets", loss = { kind = "bernoulli", probability = 0.001 } }
    [[flow]]
    name = "long"
    from = "left1"
    to = "right1"
    [[flow]]
    name = "short"
    from = "left2"
    to = "right2"
    count = 3
    start = "1s"
    size = "300kB"
    [[flow]]
    name = "datagrams"
    from = "left3"
    to = "right3"
    protocol = "udp"
    workload = "constant-rate"
    payload = "1000B"
    interval = "5ms"
    [[probe]]
    flow = "long"
    metrics = ["cwnd_bytes", "throughput_bps"]
    [[probe]]
    link = "bottleneck"
    metrics = ["queue_bytes"]
"#;

fn scenario(text: &str) -> Scenario {
    fullpipe_scenario::load(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}")).scenario
}

/// Runs with the packet auditor, and asserts that the audit passes.
fn outcome(scenario: &Scenario, plugins: Plugins) -> Outcome {
    let options = Options { audit_packets: true, ..Options::default() };
    let outcome = run_with(scenario, &options, plugins).unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    outcome
}

/// All records of flows, and the series.
fn records(outcome: &Outcome) -> (String, String) {
    (flows_csv(outcome), csv(outcome, "series.csv"))
}

/// Asserts that the records with these plug-ins are those of the same run without any.
fn changes_nothing(scenario: &Scenario, plugins: Plugins) {
    assert_eq!(records(&outcome(scenario, plugins)), records(&outcome(scenario, Plugins::new())));
}

fn cubic(context: &ConnectionContext<'_>) -> Box<dyn Controller> {
    let fullpipe_scenario::description::Transport::Tcp(tcp) = &context.flow.transport else {
        panic!("{} is no TCP flow", context.flow.name)
    };
    let hystart = tcp.control.hystart.then(|| HyStart::new(tcp.connection.pacing));
    Box::new(Cubic::new(CubicConfig { hystart, ..CubicConfig::default() }))
}

#[test]
fn plugged_in_cubic_gives_the_records_of_the_built_in_one() {
    let cubics = scenario(MIXED);
    changes_nothing(&cubics, Plugins::new().control("*", cubic));
    // The plugged-in control is used: in a scenario with another control, the records become those of CUBIC.
    let renos = scenario(&MIXED.replace("size = \"300kB\"", "size = \"300kB\"\ncongestion = \"linux-reno\""));
    let built_in = records(&outcome(&cubics, Plugins::new()));
    assert_ne!(records(&outcome(&renos, Plugins::new())), built_in);
    assert_eq!(records(&outcome(&renos, Plugins::new().control("short", cubic))), built_in);
}

#[test]
fn plugged_in_scheduler_gives_the_records_of_the_built_in_one() {
    let page = |scheduler: &str| {
        scenario(&format!(
            "duration = '60s'
            [topology]
            kind = 'chain'
            link = [{{ rate = '1Mbit/s', delay = '5ms', queue = '100packets' }}]
            [[flow]]
            name = 'web'
            from = 'source'
            to = 'sink'
            protocol = 'quic'
            quic = {{ stack = 'model', scheduler = '{scheduler}', congestion = 'newreno' }}
            workload = 'web'
            http = 'streams'
            pages = 1
            reading = '0s'
            objects = [{{ size = '300kB' }}, {{ size = '30kB', main = true }}]
            completions = 'streams'"
        ))
    };
    let records = |scheduler: &str, plugins: Plugins| {
        let outcome = outcome(&page(scheduler), plugins);
        outcome.tables()
    };
    let round_robin = records("round-robin", Plugins::new());
    let schedulers: [(&str, StreamScheduler); 2] =
        [("fifo", StreamScheduler::new(scheduler::Fifo)), ("pfifo", StreamScheduler::new(scheduler::Pfifo))];
    for (name, scheduler) in schedulers {
        let built_in = records(name, Plugins::new());
        assert_ne!(built_in, round_robin, "{name}");
        let plugged = Plugins::new().scheduler("web", move |_| scheduler.create());
        assert_eq!(records("round-robin", plugged), built_in, "{name}");
    }
}

#[test]
fn control_factory_receives_the_context_of_its_connection() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let notes = seen.clone();
    let plugins = Plugins::new().control("short.2", move |context| {
        let draw = context.random_stream("test").next_u64();
        notes.lock().expect("nobody panicked").push((
            context.flow.name.clone(),
            context.connection,
            context.initiator,
            draw,
        ));
        cubic(context)
    });
    let scenario = scenario(MIXED);
    changes_nothing(&scenario, plugins);
    let seen = seen.lock().expect("nobody panicked");
    let places: Vec<_> =
        seen.iter().map(|(flow, connection, initiator, _)| (&**flow, *connection, *initiator)).collect();
    // One call for the name of the control, then for the initiator, then for the acceptor.
    assert_eq!(places, [("short.2", 0, true), ("short.2", 0, true), ("short.2", 0, false)]);
    assert_eq!(seen[0].3, seen[1].3, "one place has two streams");
    assert_ne!(seen[1].3, seen[2].3, "two places have the same stream");
}

#[test]
fn last_selection_takes_precedence_and_a_group_is_selected_by_its_name() {
    let scenario = scenario(MIXED);
    let plugins = Plugins::new().control("*", |_| Box::new(Fixed("one"))).control("short", |_| Box::new(Fixed("two")));
    let outcome = outcome(&scenario, plugins);
    let controls: Vec<(String, Option<&str>)> = outcome
        .flow_rows()
        .filter(|row| !row.flow.ends_with("reverse"))
        .map(|row| (row.flow.into_owned(), row.congestion))
        .collect();
    let expected = [
        ("long", Some("one")),
        ("short.1", Some("two")),
        ("short.2", Some("two")),
        ("short.3", Some("two")),
        ("datagrams", None),
    ];
    assert_eq!(controls, expected.map(|(flow, control)| (flow.to_owned(), control)));
}

/// Counts acknowledgments with and without a delivery rate. It does not declare that it uses rates.
#[derive(Debug)]
struct CountsRates(Arc<Mutex<[u64; 2]>>);

impl Controller for CountsRates {
    fn name(&self) -> &'static str {
        "counts-rates"
    }
    fn on_ack(&mut self, _control: &mut WindowState, ack: &Ack) {
        self.0.lock().expect("nobody panicked")[usize::from(ack.rate.is_some())] += 1;
    }
    fn on_congestion(&mut self, control: &mut WindowState, _congestion: &CongestionEvent) {
        control.ssthresh_bytes = control.cwnd_bytes;
    }
    fn on_timeout(&mut self, control: &mut WindowState, _timeout: &Timeout) {
        control.ssthresh_bytes = control.cwnd_bytes;
    }
}

#[test]
fn plugged_in_control_gets_delivery_rates_without_declaring_them() {
    let counts = Arc::new(Mutex::new([0; 2]));
    let of_control = counts.clone();
    let plugins = Plugins::new().control("long", move |_| Box::new(CountsRates(of_control.clone())));
    outcome(&scenario(MIXED), plugins);
    let [without, with] = *counts.lock().expect("nobody panicked");
    assert!(with > 100 && without < with / 10, "{without} without a rate, {with} with one");
}

/// Does not change the window.
#[derive(Debug)]
struct Fixed(&'static str);

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        self.0
    }
    fn on_ack(&mut self, _control: &mut WindowState, _ack: &Ack) {}
    fn on_congestion(&mut self, control: &mut WindowState, _congestion: &CongestionEvent) {
        control.ssthresh_bytes = control.cwnd_bytes;
    }
    fn on_timeout(&mut self, control: &mut WindowState, _timeout: &Timeout) {
        control.ssthresh_bytes = control.cwnd_bytes;
    }
}

#[test]
fn plugged_in_fifo_gives_the_records_of_the_drop_tail_queue() {
    let scenario = scenario(MIXED);
    changes_nothing(&scenario, Plugins::new().queue("bottleneck*", |context| Box::new(Fifo::new(context.limit))));
    // The plugged-in discipline is used: an unlimited one drops nothing.
    let endless = Plugins::new().queue("bottleneck", |_| Box::new(Fifo::new(Limit::Unlimited)));
    let drops = |outcome: &Outcome| outcome.link("bottleneck").expect("the link").counters.queue_drops;
    assert!(drops(&outcome(&scenario, Plugins::new())) > 0);
    assert_eq!(drops(&outcome(&scenario, endless)), 0);
}

#[test]
fn plugged_in_fifo_gives_the_records_of_the_built_in_discipline() {
    let fifo = MIXED.replace(
        r#"queue = "30packets""#,
        r#"queue = "4packets", discipline = { kind = "fifo", limit = "26packets" }"#,
    );
    let scenario = scenario(&fifo);
    let plugins = Plugins::new().queue("bottleneck", |context| {
        assert_eq!(context.limit, Limit::Packets(4), "the limit of the device queue");
        Box::new(Fifo::new(Limit::Packets(26)))
    });
    changes_nothing(&scenario, plugins);
}

/// Last in, first out, which an audit of the order would reject.
#[derive(Debug, Default)]
struct Stack(Vec<QueuedPacket>);

impl QueueDiscipline for Stack {
    fn name(&self) -> &'static str {
        "stack"
    }
    fn enqueue(
        &mut self,
        _now: Instant,
        packet: QueuedPacket,
        _dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        if self.0.len() >= 30 {
            return Err(packet);
        }
        self.0.push(packet);
        Ok(())
    }
    fn dequeue(&mut self, _now: Instant, _dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        self.0.pop()
    }
    fn packets(&self) -> u64 {
        self.0.len() as u64
    }
    fn bytes(&self) -> u64 {
        self.0.iter().map(|packet| u64::from(packet.wire_bytes)).sum()
    }
}

#[test]
fn plugged_in_discipline_may_reorder_packets() {
    let outcome = outcome(&scenario(MIXED), Plugins::new().queue("bottleneck", |_| Box::new(Stack::default())));
    assert!(outcome.totals().data_packets > 1000);
}

#[test]
fn plugged_in_bulk_workload_gives_the_records_of_the_built_in_one() {
    let bulks = scenario(MIXED);
    let plugins = Plugins::new().workload("short", |context| {
        assert!(context.is_over_stream());
        let bulk: &BulkSpec = context.flow.workload.downcast_ref().expect("a bulk flow");
        [Box::new(BulkSender::new(bulk.size_bytes, bulk.write_bytes)), Box::new(Sink::new(true))]
    });
    changes_nothing(&bulks, plugins);
    // The plugged-in workload is used: in a scenario of a tenth of the size, the receivers get the full size.
    let smaller = scenario(&MIXED.replace("300kB", "30kB"));
    let received = |plugins: Plugins| {
        let outcome = outcome(&smaller, plugins);
        let row = outcome.flow("short.1").expect("the flow");
        row.goodput_bps.expect("it got something") * row.completion.expect("it completed").as_secs_f64() / 8.0
    };
    let whole = Plugins::new()
        .workload("short.1", |_| [Box::new(BulkSender::new(Some(300_000), 1000)), Box::new(Sink::new(true))]);
    assert_eq!(received(Plugins::new()).round(), 30_000.0);
    assert_eq!(received(whole).round(), 300_000.0);
}

/// Counts the events.
#[derive(Clone, Debug, Default, PartialEq)]
struct Tally {
    sent: u64,
    delivered: u64,
    dropped: u64,
    lost: u64,
    offered: u64,
    link_dropped: u64,
    transmitted: u64,
}

impl Observer for Tally {
    fn on_sent(&mut self, _now: Instant, _packet: &PacketView) {
        self.sent += 1;
    }
    fn on_delivered(&mut self, _now: Instant, _packet: &PacketView, _sent: Instant) {
        self.delivered += 1;
    }
    fn on_dropped(&mut self, _now: Instant, _packet: &PacketView, _link: Option<LinkId>, reason: DropReason) {
        self.dropped += 1;
        self.lost += u64::from(reason == DropReason::Loss);
    }
    fn on_offered(&mut self, _now: Instant, _link: LinkId, _wire_bytes: u32) {
        self.offered += 1;
    }
    fn on_link_dropped(&mut self, _now: Instant, _link: LinkId, _wire_bytes: u32, _reason: DropReason) {
        self.link_dropped += 1;
    }
    fn on_transmitted(&mut self, _transmission: &Transmission) {
        self.transmitted += 1;
    }
}

/// Observes nothing, and is another type.
struct Blind;

impl Observer for Blind {}

#[test]
fn observer_receives_the_fate_of_every_packet() {
    let scenario = scenario(MIXED);
    // The run ends at five seconds: some packets have not arrived.
    let plugins = Plugins::new().observe(Tally::default()).observe(Blind).observe(Tally::default());
    let outcome = outcome(&scenario, plugins);
    let tallies: Vec<&Tally> = outcome.observers().collect();
    assert_eq!(tallies.len(), 2);
    assert_eq!(outcome.observers::<Blind>().count(), 1);
    assert_eq!(tallies[0], tallies[1], "the observers received different events");
    let tally = tallies[0];
    let totals = outcome.totals();
    assert_eq!(tally.sent, tally.delivered + tally.dropped + totals.remaining_packets);
    assert!(tally.dropped > 0 && totals.remaining_packets > 0, "{tally:?} {totals:?}");
    assert_eq!((tally.delivered, tally.dropped), (totals.packets, totals.lost_packets));
    assert_eq!(tally.transmitted, totals.packet_hops);
    // Packets removed by the loss model were transmitted. All other drops are those of queues, because nothing is fragmented.
    assert_eq!(tally.link_dropped, tally.dropped - tally.lost);
    assert!(tally.lost > 0 && tally.link_dropped > 0, "{tally:?}");
    // Packets that entered a queue and have not departed are still in the network.
    let queued = tally.offered - tally.transmitted - tally.link_dropped;
    assert!(queued <= totals.remaining_packets, "{tally:?} {totals:?}");
}

#[test]
fn observer_does_not_change_the_run() {
    let scenario = scenario(MIXED);
    changes_nothing(&scenario, Plugins::new().observe(Tally::default()));
    let plain = run(&scenario, &Options::default()).expect("a run");
    let watched = run_with(&scenario, &Options::default(), Plugins::new().observe(Tally::default())).expect("a run");
    assert_eq!(watched.totals(), plain.totals());
    assert_eq!(records(&watched), records(&plain));
    assert_eq!(plain.observers::<Tally>().count(), 0);
}

#[test]
fn flow_numbers_of_an_observer_have_the_names_of_the_records() {
    // Transfers as a Poisson process: each opens its own connection, numbered in order of opening.
    let text =
        MIXED.replace("size = \"300kB\"", "workload = \"poisson-transfers\"\ninterval = \"200ms\"\nsize = \"20kB\"");
    let outcome = outcome(&scenario(&text), Plugins::new());
    let names: Vec<String> = outcome.flow_rows().map(|row| row.flow.into_owned()).collect();
    assert!(names.iter().any(|name| name == "short.3#2.reverse"), "{names:?}");
    let numbers = (0..).map(FlowId).map_while(|flow| outcome.flow_name(flow));
    // A UDP conversation without packets in the reverse direction has no row for it.
    let numbered: Vec<_> = numbers.filter(|name| name != "datagrams.reverse").collect();
    assert_eq!(numbered, names);
    for name in &names {
        assert_eq!(outcome.flow(name).expect("a row").flow, name.as_str());
    }
    let links: Vec<_> = (0..).map(LinkId).map_while(|link| outcome.link_name(link)).collect();
    assert_eq!(links, outcome.link_rows().map(|row| row.link).collect::<Vec<_>>());
    assert_eq!(outcome.flow("nobody").map(|row| row.source), None);
    assert_eq!(outcome.series("long", "cwnd_bytes").count(), outcome.series("bottleneck", "queue_bytes").count());
}

fn refused(plugins: Plugins) -> String {
    prepare_with(Arc::new(scenario(MIXED)), &Options::default(), plugins).expect_err("it is refused").to_string()
}

#[test]
fn selection_that_matches_nothing_is_an_error_with_the_nearest_name() {
    let plugins = Plugins::new().control("lnog", cubic);
    assert_eq!(refused(plugins), r#"unknown flow "lnog"; did you mean "long"?"#);
    let plugins = Plugins::new().control("shrot", cubic);
    assert_eq!(refused(plugins), r#"unknown flow "shrot"; did you mean "short"?"#);
    let plugins = Plugins::new().workload("video*", |_| unreachable!("not called"));
    assert_eq!(refused(plugins), r#"unknown flow "video*""#);
    let plugins = Plugins::new().queue("botleneck.reverse", |_| unreachable!("not called"));
    assert_eq!(refused(plugins), r#"unknown link "botleneck.reverse"; did you mean "bottleneck.reverse"?"#);
    // The name of a link selects only its forward direction.
    let plugins = Plugins::new().queue("bottleneck.revers", |_| unreachable!("not called"));
    assert!(refused(plugins).ends_with(r#"did you mean "bottleneck.reverse"?"#));
}

#[test]
fn control_incompatible_with_the_transport_is_an_error() {
    let reason = refused(Plugins::new().control("datagrams", cubic));
    assert_eq!(reason, r#"flow "datagrams": it runs over UDP, which has no congestion control to replace"#);

    #[derive(Debug)]
    struct Delays;
    impl Controller for Delays {
        fn name(&self) -> &'static str {
            "delays"
        }
        fn requirements(&self) -> ControlRequirements {
            ControlRequirements { one_way_delay: true, ..ControlRequirements::default() }
        }
        fn on_ack(&mut self, _control: &mut WindowState, _ack: &Ack) {}
        fn on_congestion(&mut self, _control: &mut WindowState, _congestion: &CongestionEvent) {}
        fn on_timeout(&mut self, _control: &mut WindowState, _timeout: &Timeout) {}
    }
    let plugins = Plugins::new().control("long", |_| Box::new(Delays));
    let error = run_with(&scenario(MIXED), &Options::default(), plugins).expect_err("it is refused");
    let reason = "congestion control `delays` needs one-way delays, which TCP does not measure";
    assert_eq!(error, RunError::CongestionControl { flow: "long".into(), reason: reason.into() });
}
