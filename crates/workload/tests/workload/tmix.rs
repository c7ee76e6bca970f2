//! Tests of connection vectors on a path with known times: waits to the nanosecond, every byte, every close.

use crate::way::Way;
use fullpipe_tmix::{
    Adu, BinOrder, ConnectionKind, ConnectionVector, MemoryTrace, PerSide, Prefill, Schedule, ScheduledConnections,
    Side, SyntheticTrace, Trace,
};
use fullpipe_transport::CloseReason;
use fullpipe_units::{Duration, Instant, Rate};
use fullpipe_workload::{Application, BoxedTrace, MetricValue, SharedTrace, TmixAcceptor, TmixInitiator, TmixOptions};

use Side::{Acceptor as A, Initiator as I};

fn us(microseconds: u64) -> Duration {
    Duration::from_micros(microseconds)
}

fn at(microseconds: u64) -> Instant {
    Instant::ZERO + us(microseconds)
}

/// A unit: side, send wait and receive wait in microseconds, size.
fn adu((side, send_wait, receive_wait, size_bytes): (Side, u64, u64, u64)) -> Adu {
    Adu { side, send_wait: us(send_wait), receive_wait: us(receive_wait), size_bytes }
}

fn connection(start_us: u64, kind: ConnectionKind, body: &[(Side, u64, u64, u64)]) -> ConnectionVector {
    ConnectionVector {
        start: us(start_us),
        kind,
        ids: [0, 0],
        mss_bytes: Some(PerSide { initiator: 1460, acceptor: 496 }),
        window_bytes: None,
        rtt: None,
        loss: None,
        body: body.iter().copied().map(adu).collect(),
    }
}

fn schedule(trace: BoxedTrace) -> ScheduledConnections<BoxedTrace> {
    let schedule = Schedule {
        scale: 1.0,
        bin: Duration::from_secs(1),
        order: BinOrder::Original,
        seed: 1,
        trace_length: Duration::from_secs(3000),
        duration: Duration::from_secs(3000),
        prefill: Prefill::NONE,
    };
    schedule.schedule_trace(trace).expect("the schedule is valid")
}

fn pair(trace: &dyn Fn() -> BoxedTrace, options: TmixOptions) -> (TmixInitiator, TmixAcceptor) {
    let connections = SharedTrace::new(schedule(trace()));
    (
        TmixInitiator::new(connections.clone(), options, Instant::ZERO),
        TmixAcceptor::new(connections, options, Instant::ZERO),
    )
}

const TOLD: TmixOptions = TmixOptions {
    mss_of_trace: true,
    window_of_trace: true,
    padded: false,
    exchanges: true,
    measured_from: Instant::ZERO,
};

fn in_memory(connections: Vec<ConnectionVector>) -> impl Fn() -> BoxedTrace {
    move || Box::new(MemoryTrace::new("test", Duration::from_secs(10), connections.clone()))
}

/// One byte per microsecond in each direction, and a delay of 10 ms.
fn way() -> Way {
    Way::new(Duration::from_millis(10), |_, _| Some(Rate::from_megabits_per_second(8)))
}

fn figure(application: &dyn Application, name: &str) -> f64 {
    let figures = application.metric_values(Instant::ZERO);
    figures.iter().find(|MetricValue { name: known, .. }| *known == name).map_or(f64::NAN, |figure| figure.value)
}

#[test]
fn sequential_connection_has_times_computed_by_hand() {
    let sequential = connection(
        100_000,
        ConnectionKind::Sequential { epochs: 2 },
        &[
            (I, 0, 0, 1000),
            (A, 0, 3_000, 5000),
            (A, 7_000, 0, 2000),
            (I, 0, 50_000, 500),
            (A, 0, 1_000, 100),
            (I, 0, 2_000, 0),
        ],
    );
    let trace = in_memory(vec![sequential]);
    let (mut initiator, mut acceptor) = pair(&trace, TOLD);
    let mut way = way();
    way.start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    // In ms: opened at 100, connected at 120; the request arrives at 120 + 1 + 10 = 131. The responses are written 3 later, at
    // 134, and 7 after that, at 141. The last byte is sent at 141 + 2 and arrives at 153. Without the acceptor's 3 + 7 the
    // exchange began at 130. The second request is written at 153 + 50 = 203 and arrives at 213.5; the response is sent at 214.5
    // and arrives at 224.6.
    let told: Vec<_> = initiator.completions().iter().map(|one| (one.started, one.completed, one.bytes)).collect();
    assert_eq!(told, [(at(130_000), at(153_000), 7000), (at(204_000), at(224_600), 100)]);
    assert_eq!(initiator.progress().received_bytes, 7100);
    assert_eq!(acceptor.progress().received_bytes, 1500);
    assert_eq!(acceptor.progress().last_received, Some(at(213_500)));
    // The initiator closes 2 ms later, at 226.6. The other side closes 10 ms later, and the connection ends after another 10 ms.
    assert_eq!(way.now, at(246_600));
    assert_eq!(figure(&initiator, "connections_finished"), 1.0);
    assert_eq!(way.live_connections(), 0);
    // 7000 bytes are above 1 kB, 100 are not. The mean of one time is that time: 23 and 20.6 ms.
    assert_eq!((figure(&initiator, "responses_1kB"), figure(&initiator, "responses_10kB")), (1.0, 1.0));
    assert!((figure(&initiator, "mean_response_1kB_s") - 0.0206).abs() < 1e-12);
    assert!((figure(&initiator, "p95_response_10kB_s") - 0.023).abs() < 1e-12);
    // If the measured interval starts at 204 ms, only the second exchange counts; a microsecond later, none. Without exchanges
    // there is no mean.
    for (from, told) in [(204_000, 1), (204_001, 0)] {
        let (mut initiator, mut acceptor) = pair(&trace, TmixOptions { measured_from: at(from), ..TOLD });
        self::way().start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
        assert_eq!(initiator.completions().len(), told);
        assert_eq!((figure(&initiator, "responses_10kB"), figure(&initiator, "responses_1kB")), (0.0, told as f64));
        assert!(figure(&initiator, "mean_response_10kB_s").is_nan());
        assert_eq!(figure(&initiator, "mean_response_1kB_s").is_nan(), told == 0);
        // Received bytes are reported in any case.
        assert_eq!(initiator.progress().received_bytes, 7100);
    }
}

#[test]
fn concurrent_connection_has_times_computed_by_hand() {
    let concurrent = connection(
        100_000,
        ConnectionKind::Concurrent { adus: PerSide { initiator: 2, acceptor: 1 } },
        &[(I, 0, 0, 300), (A, 2_000, 0, 1000), (I, 5_000, 0, 300), (I, 1_000, 0, 0), (A, 30_000, 0, 0)],
    );
    let (mut initiator, mut acceptor) = pair(&in_memory(vec![concurrent]), TOLD);
    let mut way = way();
    way.start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    // The acceptor is connected at 110 and does not wait for the peer: it writes at 112. This path sends nothing before 120, so
    // the data arrive at 120 + 1 + 10 = 131. The initiator writes at 120 and 125, and the data arrive at 135.3.
    assert_eq!(initiator.progress().last_received, Some(at(131_000)));
    assert_eq!(acceptor.progress().last_received, Some(at(135_300)));
    // The acceptor closes 30 ms after it wrote, at 142.
    assert_eq!(way.now, at(152_000));
    assert_eq!((initiator.completions().len(), figure(&initiator, "connections_finished")), (0, 1.0));
}

#[test]
fn acceptor_that_sends_first_and_side_without_close_have_times_computed_by_hand() {
    let first = connection(
        0,
        ConnectionKind::Sequential { epochs: 2 },
        &[(A, 0, 0, 100), (I, 0, 4_000, 200), (I, 6_000, 0, 0)],
    );
    let (mut initiator, mut acceptor) = pair(&in_memory(vec![first]), TOLD);
    let mut way = way();
    way.start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    // The greeting, written at 10, is sent at 20 and arrives at 30.1. 4 ms later 200 bytes follow, which arrive at 34.3 + 10. The
    // close is 6 ms after their writing, at 40.1; the acceptor closes at 50.1.
    assert_eq!(acceptor.progress().last_received, Some(at(44_300)));
    assert_eq!(way.now, at(60_100));
    assert_eq!(figure(&initiator, "connections_finished"), 1.0);
}

#[test]
fn units_wait_for_room_in_the_send_buffer() {
    // A unit of 10 000 bytes passes a buffer of 4000. It is completely written when the transmission of the last 4000 begins, and
    // the send wait starts then.
    let body = [(I, 0, 0, 10_000), (I, 1_000, 0, 500), (I, 1_000, 0, 0)];
    let (mut initiator, mut acceptor) =
        pair(&in_memory(vec![connection(0, ConnectionKind::Sequential { epochs: 2 }, &body)]), TOLD);
    let mut way = way();
    way.send_buffer_bytes = 4000;
    way.start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    assert_eq!(acceptor.progress().received_bytes, 10_500);
    // Connected at 20. 10 500 bytes take at least 10.5. The last piece of the first unit can be written only after 6000 bytes
    // have been sent, at 26 or later. The 500 bytes arrive at least 1 + 10 ms after the end of the first unit is sent.
    let last = acceptor.progress().last_received.expect("data arrived");
    assert!(last >= at(20_000 + 10_500 + 10_000), "{last:?}");
}

#[test]
fn padding_fills_segments() {
    let body = [(I, 0, 0, 1), (A, 0, 1, 497), (I, 0, 1, 0)];
    let options = TmixOptions { padded: true, ..TOLD };
    let (mut initiator, mut acceptor) =
        pair(&in_memory(vec![connection(0, ConnectionKind::Sequential { epochs: 1 }, &body)]), options);
    way().start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    // The initiator's segments hold 1460 bytes, the acceptor's 496.
    assert_eq!((acceptor.progress().received_bytes, initiator.progress().received_bytes), (1460, 992));
}

#[test]
fn every_byte_of_a_trace_arrives_and_every_connection_ends() {
    let length = Duration::from_secs(3);
    let trace = || -> BoxedTrace { Box::new(SyntheticTrace::new(5, "r5s2", length).expect("one of the nine")) };
    let all = trace().connections(Duration::ZERO, length).expect("it is generated");
    let (mut initiator, mut acceptor) = pair(&trace, TmixOptions { exchanges: false, ..TOLD });
    // Connections overlap, and arrive in a different order than they were opened.
    let mut way = Way::new(Duration::from_millis(10), |_, _| Some(Rate::from_megabits_per_second(1000)));
    way.handshake_delay = Box::new(|connection| us(u64::from(connection * 7919 % 50_000)));
    way.start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    assert!(all.len() > 200, "{}", all.len());
    let bytes = |side: Side| all.iter().map(|connection| connection.bytes(side)).sum::<u64>();
    assert_eq!(acceptor.progress().received_bytes, bytes(I));
    assert_eq!(initiator.progress().received_bytes, bytes(A));
    assert_eq!(figure(&initiator, "connections_begun"), all.len() as f64);
    assert_eq!(figure(&initiator, "connections_finished"), all.len() as f64);
    assert_eq!(figure(&initiator, "connections_broken_off"), 0.0);
    assert_eq!(way.live_connections(), 0);
    assert!(initiator.completions().is_empty());
}

#[test]
fn broken_connection_is_counted_and_removed() {
    let body = [(I, 0, 0, 1000), (A, 0, 500_000, 5000), (I, 0, 2_000, 0)];
    let (mut initiator, mut acceptor) =
        pair(&in_memory(vec![connection(0, ConnectionKind::Sequential { epochs: 1 }, &body)]), TOLD);
    let mut way = way();
    way.start(&mut [&mut initiator, &mut acceptor], at(100_000));
    way.kill(0, CloseReason::TimedOut);
    way.run(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    assert_eq!(figure(&initiator, "connections_broken_off"), 1.0);
    assert_eq!(figure(&initiator, "connections_open"), 0.0);
}
