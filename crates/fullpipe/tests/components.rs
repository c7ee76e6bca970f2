//! Implements and runs every trait that a user's program can implement, with items of the crate `fullpipe` only.
//!
//! All methods are implemented with their full signatures, including methods with default implementations. If the crate
//! does not export a type of a signature, this file does not compile.

use fullpipe::congestion::{
    Ack, CongestionEvent, ControlRequirements, Controller, DeliveryRate, PacketState, RecoveryExit, Timeout,
    WindowState,
};
use fullpipe::network::{
    CompletedFrame, Fifo, Limit, Medium, MediumFrame, MediumOutcome, QueueDiscipline, QueuedPacket,
};
use fullpipe::quic::{Candidate, Scheduler};
use fullpipe::record::{DropReason, Observer, PacketView, Transmission};
use fullpipe::transport::{Bytes, Payload, Priority, Stream, TransportEvent};
use fullpipe::units::{Duration, EcnCodepoint, FlowId, Instant, LinkId};
use fullpipe::workload::{Application, Completion, Io, MetricValue, OpenOptions, Progress, Sink, StreamId};
use fullpipe::{
    ConnectionContext, Error, Outcome, QueueContext, RunError, Simulation, WorkloadContext,
    builder::{Flow, Link, ScenarioBuilder, Table, Topology},
};
use std::collections::VecDeque;

/// A congestion control with a fixed window.
#[derive(Debug)]
struct Fixed(u64);

impl Controller for Fixed {
    fn name(&self) -> &'static str {
        "fixed"
    }

    fn requirements(&self) -> ControlRequirements {
        ControlRequirements { on_sent: true, ..ControlRequirements::default() }
    }

    fn on_established(&mut self, control: &mut WindowState, _now: Instant, _rtt: Option<Duration>) {
        control.cwnd_bytes = self.0;
    }

    fn on_sent(&mut self, _control: &mut WindowState, _packet: &PacketState) {}

    fn on_ack(&mut self, control: &mut WindowState, ack: &Ack) {
        let _: Option<DeliveryRate> = ack.rate;
        control.cwnd_bytes = self.0;
    }

    fn on_packet_lost(&mut self, _control: &mut WindowState, _now: Instant, _packet: &PacketState) {}

    fn on_congestion(&mut self, control: &mut WindowState, _congestion: &CongestionEvent) {
        control.ssthresh_bytes = self.0;
    }

    fn on_recovery_exit(&mut self, _control: &mut WindowState, _exit: &RecoveryExit) {}

    fn on_timeout(&mut self, control: &mut WindowState, _timeout: &Timeout) {
        control.ssthresh_bytes = self.0;
    }

    fn on_idle_restart(&mut self, _control: &mut WindowState, _now: Instant) {}

    fn on_path_change(&mut self, _control: &mut WindowState, _now: Instant) {}

    fn on_external_change(&mut self, _control: &mut WindowState, _now: Instant) {}

    fn inspect(&self, _out: &mut Vec<(&'static str, f64)>) {}
}

/// A stream scheduler that always chooses the last candidate.
#[derive(Debug)]
struct Last;

impl Scheduler for Last {
    fn name(&self) -> &'static str {
        "last"
    }

    fn choose(&mut self, candidates: &[Candidate]) -> usize {
        candidates.len() - 1
    }

    fn uses_write_times(&self) -> bool {
        false
    }

    fn on_sent(&mut self, _stream: u64, _priority: &Priority, _bytes: u64) {}

    fn on_closed(&mut self, _stream: u64) {}
}

/// A queue discipline that drops every hundredth packet that arrives.
#[derive(Debug)]
struct Hundredth(Fifo, u64);

impl QueueDiscipline for Hundredth {
    fn name(&self) -> &'static str {
        "hundredth"
    }

    fn enqueue(
        &mut self,
        now: Instant,
        packet: QueuedPacket,
        dropped: &mut Vec<QueuedPacket>,
    ) -> Result<(), QueuedPacket> {
        self.1 += 1;
        if self.1.is_multiple_of(100) {
            dropped.push(QueuedPacket { early: true, ..packet });
            return Ok(());
        }
        self.0.enqueue(now, packet, dropped)
    }

    fn dequeue(&mut self, now: Instant, dropped: &mut Vec<QueuedPacket>) -> Option<QueuedPacket> {
        self.0.dequeue(now, dropped)
    }

    fn packets(&self) -> u64 {
        self.0.packets()
    }

    fn bytes(&self) -> u64 {
        self.0.bytes()
    }
}

/// An application that sends ten bytes on a stream.
#[derive(Debug, Default)]
struct Ten {
    progress: Progress,
    completions: Vec<Completion>,
}

impl Application for Ten {
    fn on_start(&mut self, io: &mut dyn Io) {
        let stream = io.open_with(&OpenOptions::default());
        if let Some(stream) = io.stream(stream) {
            let stream: &mut dyn Stream = stream;
            stream.write(Payload::Bytes(Bytes::from_static(b"ten bytes.")));
            stream.finish();
        }
    }

    fn on_wake(&mut self, _io: &mut dyn Io) {}

    fn on_stream(&mut self, _stream: StreamId, event: TransportEvent, _io: &mut dyn Io) {
        if let TransportEvent::Closed(_reason) = event {
            self.progress.received_bytes = 0;
        }
    }

    fn on_datagram(&mut self, _payload_bytes: u32, _io: &mut dyn Io) {}

    fn progress(&self) -> Progress {
        self.progress
    }

    fn completions(&self) -> &[Completion] {
        &self.completions
    }

    fn digest(&self) -> Option<String> {
        None
    }

    fn metric_values(&self, _end: Instant) -> Vec<MetricValue> {
        Vec::new()
    }
}

/// An observer that counts its calls.
#[derive(Debug, Default)]
struct Count {
    sent: u64,
    delivered: u64,
    dropped: u64,
    payload_bytes: u64,
    transmitted: u64,
}

impl Observer for Count {
    fn on_sent(&mut self, _now: Instant, _packet: &PacketView) {
        self.sent += 1;
    }

    fn on_delivered(&mut self, _now: Instant, packet: &PacketView, _sent: Instant) {
        let _: FlowId = packet.flow;
        self.payload_bytes += u64::from(packet.payload_bytes);
        self.delivered += 1;
    }

    fn on_dropped(&mut self, _now: Instant, _packet: &PacketView, _link: Option<LinkId>, _reason: DropReason) {
        self.dropped += 1;
    }

    fn on_offered(&mut self, _now: Instant, _link: LinkId, _wire_bytes: u32) {}

    fn on_link_dropped(&mut self, _now: Instant, _link: LinkId, _wire_bytes: u32, _reason: DropReason) {}

    fn on_marked(&mut self, _now: Instant, _packet: &PacketView, _link: LinkId) {}

    fn on_duplicated(&mut self, _arrival: Instant, _packet: &PacketView, _link: LinkId) {}

    fn on_transmitted(&mut self, _transmission: &Transmission) {
        self.transmitted += 1;
    }
}

/// A medium that delivers each frame after a millisecond.
#[derive(Debug, Default)]
struct Pipe(VecDeque<CompletedFrame>);

impl Medium for Pipe {
    fn offer(&mut self, now: Instant, frame: MediumFrame) {
        let at = now.saturating_add(Duration::from_millis(1));
        self.0.push_back(CompletedFrame { token: frame.token, at, fate: MediumOutcome::Delivered });
    }

    fn offer_deadline(&self, at: Instant) -> Instant {
        at
    }

    fn reads_headers(&self) -> bool {
        false
    }

    fn next_wakeup(&self) -> Instant {
        Instant::NEVER
    }

    fn wake(&mut self, _now: Instant) {}

    fn drain_outcomes(&mut self, fates: &mut VecDeque<CompletedFrame>) {
        fates.append(&mut self.0);
    }
}

/// A chain with one link and one flow.
fn chain(flow: Flow) -> Simulation {
    let link = Link::new("10Mbit/s", "20ms").queue("50kB");
    let scenario = ScenarioBuilder::new().duration("10s").topology(Topology::chain([link])).flow(flow.name("only"));
    Simulation::new(scenario).audit_packets()
}

fn run(simulation: Simulation) -> Outcome {
    let outcome = simulation.run().unwrap_or_else(|error| panic!("{error}"));
    assert!(outcome.verdict().passed(), "{}", outcome.verdict());
    outcome
}

#[test]
fn user_congestion_control_limits_the_rate_to_its_window() {
    let bulk = || chain(Flow::new("source", "sink"));
    let fixed = run(bulk().control("only", |_: &ConnectionContext<'_>| Box::new(Fixed(25_000))));
    let goodput =
        |outcome: &Outcome| outcome.flow("only").and_then(|row| row.goodput_bps).expect("the flow has a goodput");
    // 25 000 bytes per round trip of 40 ms are 5 Mbit/s.
    assert!(goodput(&fixed) < 5.0e6, "{}", goodput(&fixed));
    assert!(goodput(&run(bulk())) > 8.0e6);
}

#[test]
fn user_discipline_and_observer_receive_every_packet() {
    let udp = Flow::new("source", "sink").protocol("udp").workload("constant-rate");
    let outcome = run(chain(udp.set("payload", 1000).set("interval", "10ms").set("packets", 900))
        .queue("link1", |context: &QueueContext<'_>| Box::new(Hundredth(Fifo::new(context.limit), 0)))
        .observe(Count::default()));
    let count: &Count = outcome.observers().next().expect("the observer was added");
    // The discipline drops every hundredth of 900 packets, although the queue is empty.
    assert_eq!((count.sent, count.delivered, count.dropped, count.transmitted), (900, 891, 9, 891));
    let _ = Limit::Unlimited;
}

#[test]
fn user_application_sends_its_bytes() {
    let simulation = chain(Flow::new("source", "sink").size(5)).observe(Count::default());
    let outcome = run(simulation.workload("only", |context: &WorkloadContext<'_>| {
        assert!(context.is_over_stream());
        [Box::new(Ten::default()), Box::new(Sink::new(true))]
    }));
    let count: &Count = outcome.observers().next().expect("the observer was added");
    assert_eq!(count.payload_bytes, 10);
}

#[test]
fn medium_can_be_implemented_with_exported_items() {
    let mut pipe = Pipe::default();
    let frame = MediumFrame {
        token: 7,
        way: fullpipe::network::MediumDirection::Uplink,
        station: 0,
        flow: FlowId(0),
        ip_bytes: 1500,
        codepoint: EcnCodepoint::NotEct,
        envelope: None::<fullpipe::network::HeaderFields>,
    };
    pipe.offer(Instant::ZERO, frame);
    let mut fates = VecDeque::new();
    pipe.drain_outcomes(&mut fates);
    let at = Instant::ZERO.saturating_add(Duration::from_millis(1));
    assert_eq!(fates, [CompletedFrame { token: 7, at, fate: MediumOutcome::Delivered }]);
}

/// A page with two objects, each on its own stream. The larger object is written first.
fn page() -> Simulation {
    let objects = [Table::new().set("size", "300kB"), Table::new().set("size", "30kB").set("main", true)];
    let page = Flow::new("source", "sink").protocol("quic").set("quic.stack", "model").workload("web");
    chain(
        page.set("http", "streams")
            .set("pages", 1)
            .set("reading", "0s")
            .set("objects", objects)
            .set("completions", "streams"),
    )
}

#[test]
fn user_scheduler_changes_the_completion_times_of_streams() {
    let ends = |simulation: Simulation| {
        run(simulation).completion_rows().map(|row| row.completion.completed).collect::<Vec<Instant>>()
    };
    let first = ends(page().set("flow.only.quic.scheduler", "pfifo"));
    let last = ends(page().scheduler("only", |context: &ConnectionContext<'_>| {
        assert_eq!(context.flow.name, "only");
        Box::new(Last)
    }));
    assert_eq!((first.len(), last.len()), (2, 2));
    assert_ne!(first, last);
}

#[test]
fn user_scheduler_for_a_flow_of_the_real_stack_is_an_error() {
    let noq = || chain(Flow::new("source", "sink").protocol("quic"));
    let Err(error) = noq().scheduler("only", |_| Box::new(Last)).run() else { panic!("noq has its own scheduler") };
    assert!(matches!(&error, Error::Run(RunError::Scheduler { .. })), "{error}");
    let Err(error) = noq().scheduler("onyl", |_| Box::new(Last)).run() else { panic!("there is no such flow") };
    assert!(error.to_string().ends_with("did you mean \"only\"?"), "{error}");
}
