//! Tests of request-response and of transfers with a connection each: times computed by hand, and a complete account of bytes.

use crate::way::{Host, Way};
use fullpipe_transport::{CloseReason, Payload, TransportEvent};
use fullpipe_units::{Duration, Instant, RandomStream, Rate};
use fullpipe_workload::{
    Application, Completion, ConnectionUse, Distribution, Io, MetricValue, PoissonTransfersAcceptor,
    PoissonTransfersInitiator, PoissonTransfersSpec, RequestResponseClient, RequestResponseServer, RequestResponseSpec,
    StreamId,
};

const MILLISECOND: u64 = 1_000_000;

fn constant(value: f64) -> Distribution {
    Distribution::Constant { value }
}

fn random() -> RandomStream {
    RandomStream::new(9, "flow", "workload")
}

fn millis(at: u64) -> Instant {
    Instant::from_nanos(at * MILLISECOND)
}

/// One byte per microsecond in each direction, and a delay of 10 ms.
fn way() -> Way {
    Way::new(Duration::from_millis(10), |_, _| Some(Rate::from_megabits_per_second(8)))
}

fn figure(figures: &[MetricValue], name: &str) -> f64 {
    figures.iter().find(|figure| figure.name == name).map_or(f64::NAN, |figure| figure.value)
}

fn spec(connection: ConnectionUse) -> RequestResponseSpec {
    RequestResponseSpec {
        request_bytes: constant(1000.0),
        response_bytes: constant(5000.0),
        think_s: constant(0.003),
        idle_s: constant(0.050),
        connection,
        count: Some(3),
    }
}

/// Random sizes and times, so that a disagreement between the ends has an effect.
fn random_spec(connection: ConnectionUse) -> RequestResponseSpec {
    RequestResponseSpec {
        request_bytes: Distribution::Uniform { low: 1.0, high: 3000.0 },
        response_bytes: Distribution::BoundedPareto { shape: 1.2, low: 10.0, high: 1e6 },
        think_s: Distribution::Exponential { mean: 0.002 },
        idle_s: Distribution::Exponential { mean: 0.005 },
        connection,
        count: Some(300),
    }
}

fn pair(spec: &RequestResponseSpec) -> (RequestResponseClient, RequestResponseServer) {
    (RequestResponseClient::new(spec, random()).unwrap(), RequestResponseServer::new(spec, random()).unwrap())
}

fn spans(completions: &[Completion]) -> Vec<(u64, u64)> {
    let ms = |at: Instant| {
        assert_eq!(at.as_nanos() % MILLISECOND, 0);
        at.as_nanos() / MILLISECOND
    };
    completions.iter().map(|one| (ms(one.started), ms(one.completed))).collect()
}

#[test]
fn exchanges_on_one_connection_have_times_computed_by_hand() {
    let (mut client, mut server) = pair(&spec(ConnectionUse::Persistent));
    let mut way = way();
    way.start(&mut [&mut client, &mut server], Instant::NEVER);
    // The first: connected after 20 ms, request 1 + 10, think time 3, response 5 + 10: 49. The others take 29 and start 50 after
    // the end of the previous one.
    assert_eq!(spans(client.completions()), [(0, 49), (99, 128), (178, 207)]);
    assert!(client.completions().iter().all(|one| one.bytes == 5000));
    let progress = client.progress();
    assert_eq!((progress.received_bytes, progress.completed), (15_000, Some(millis(207))));
    // The third request arrived at 178 + 11.
    let progress = server.progress();
    assert_eq!((progress.received_bytes, progress.completed), (3000, Some(millis(189))));
    assert_eq!((way.opened(), way.live_connections()), (1, 0));
    let figures = client.metric_values(way.now);
    assert_eq!((figure(&figures, "exchanges"), figure(&figures, "exchanges_failed")), (3.0, 0.0));
    assert!((figure(&figures, "exchange_mean_s") - 0.107 / 3.0).abs() < 1e-12);
    assert_eq!(figure(&figures, "exchange_max_s"), 0.049);
}

#[test]
fn exchanges_with_a_connection_each_include_a_handshake_each() {
    let (mut client, mut server) = pair(&spec(ConnectionUse::PerExchange));
    let mut way = way();
    way.start(&mut [&mut client, &mut server], Instant::NEVER);
    assert_eq!(spans(client.completions()), [(0, 49), (99, 148), (198, 247)]);
    assert_eq!((way.opened(), way.live_connections()), (3, 0));
    assert_eq!(way.writes, [vec![(0, 1000), (1, 1000), (2, 1000)], vec![(0, 5000), (1, 5000), (2, 5000)]]);
}

#[test]
fn exchange_follows_at_once_without_think_and_idle_time() {
    let base = spec(ConnectionUse::Persistent);
    let (mut client, mut server) = pair(&RequestResponseSpec { think_s: constant(0.0), idle_s: constant(0.0), ..base });
    way().start(&mut [&mut client, &mut server], Instant::NEVER);
    assert_eq!(spans(client.completions()), [(0, 46), (46, 72), (72, 98)]);
}

#[test]
fn client_reads_what_the_server_answers() {
    for connection in [ConnectionUse::Persistent, ConnectionUse::PerExchange] {
        for send_buffer_bytes in [1 << 40, 700, 1] {
            let mut base = random_spec(connection);
            // One byte at a time is slow, so few exchanges are simulated.
            base.count = if send_buffer_bytes == 1 { Some(5) } else { base.count };
            let (mut client, mut server) = pair(&base);
            let mut way = way();
            way.send_buffer_bytes = send_buffer_bytes;
            way.start(&mut [&mut client, &mut server], Instant::NEVER);
            let sum = |end: usize| way.writes[end].iter().map(|&(_, bytes)| bytes).sum::<u64>();
            assert_eq!(client.completions().len() as u64, base.count.unwrap());
            assert_eq!(client.progress().received_bytes, sum(1));
            assert_eq!(server.progress().received_bytes, sum(0));
            assert_eq!(client.completions().iter().map(|one| one.bytes).sum::<u64>(), sum(1));
            assert_eq!(way.live_connections(), 0, "{connection:?} {send_buffer_bytes}");
            if connection == ConnectionUse::PerExchange {
                for (number, one) in client.completions().iter().enumerate() {
                    let answered: u64 =
                        way.writes[1].iter().filter(|write| write.0 == number as u32).map(|write| write.1).sum();
                    assert_eq!(one.bytes, answered);
                }
            }
        }
    }
}

#[test]
fn exchange_times_add_up_to_the_drawn_times() {
    // Think and idle times are independent of the rest. So the sum over 300 exchanges is that of transmission, delay and
    // exponential think times (mean 2 ms, standard error 2 / sqrt(300) ms).
    let (mut client, mut server) = pair(&random_spec(ConnectionUse::Persistent));
    let mut way = way();
    way.start(&mut [&mut client, &mut server], Instant::NEVER);
    let n = 300.0;
    let seconds: f64 =
        client.completions().iter().map(|one| one.completed.saturating_since(one.started).as_secs_f64()).sum();
    let bytes = (client.progress().received_bytes + server.progress().received_bytes) as f64;
    let think = (seconds - bytes * 1e-6 - n * 0.020 - 0.020) / n;
    assert!((think - 0.002).abs() < 5.0 * 0.002 / n.sqrt(), "{think}");
    let idle: Vec<f64> = client
        .completions()
        .windows(2)
        .map(|pair| pair[1].started.saturating_since(pair[0].completed).as_secs_f64())
        .collect();
    let mean = idle.iter().sum::<f64>() / idle.len() as f64;
    assert!((mean - 0.005).abs() < 5.0 * 0.005 / n.sqrt(), "{mean}");
}

#[test]
fn lost_connection_fails_only_its_exchange() {
    let (mut client, mut server) = pair(&spec(ConnectionUse::PerExchange));
    let mut way = way();
    // The connection of the second exchange is lost during the think time (99 + 31 + 1).
    way.start(&mut [&mut client, &mut server], millis(131));
    way.kill(1, CloseReason::TimedOut);
    way.run(&mut [&mut client, &mut server], Instant::NEVER);
    // The third starts 50 ms later. The server never answered the second, but still identifies the third.
    assert_eq!(spans(client.completions()), [(0, 49), (181, 230)]);
    assert_eq!(figure(&client.metric_values(way.now), "exchanges_failed"), 1.0);
    assert_eq!(client.progress().completed, Some(millis(230)));
    assert_eq!(way.writes[1], [(0, 5000), (2, 5000)]);
}

#[test]
fn think_time_ends_with_its_connection() {
    // The first connection is lost during the think time (from 31 ms on, for 3 s). The second exchange starts at 150 ms on a
    // stream with the same number. Its request arrives at 181 ms and has the same think time, so the response is not sent at 3031
    // ms.
    let base = RequestResponseSpec { think_s: constant(3.0), count: Some(2), ..spec(ConnectionUse::PerExchange) };
    let (mut client, mut server) = pair(&base);
    let mut way = way();
    way.start(&mut [&mut client, &mut server], millis(100));
    way.kill(0, CloseReason::TimedOut);
    way.run(&mut [&mut client, &mut server], Instant::NEVER);
    assert_eq!(spans(client.completions()), [(150, 3196)]);
}

#[test]
fn server_answers_the_right_request_whichever_connections_are_lost() {
    let base = random_spec(ConnectionUse::PerExchange);
    let (mut client, mut server) = pair(&base);
    let mut way = way();
    way.start(&mut [&mut client, &mut server], millis(37));
    // Every 113 ms the newest connection is lost: before the handshake, with half a request, during the think time, and so on.
    for at in (113..).step_by(113).take(80) {
        way.run(&mut [&mut client, &mut server], millis(at));
        way.kill(way.opened() - 1, CloseReason::TimedOut);
    }
    way.run(&mut [&mut client, &mut server], Instant::NEVER);
    let figures = client.metric_values(way.now);
    let failed = figure(&figures, "exchanges_failed") as usize;
    assert_eq!(client.completions().len() + failed, 300);
    assert!(failed > 40, "{failed}");
    // The server wrote each response that the client read on one connection.
    let mut answers = vec![0; 300];
    way.writes[1].iter().for_each(|&(connection, bytes)| answers[connection as usize] += bytes);
    let mut at = 0;
    for one in client.completions() {
        at += answers[at..].iter().position(|&bytes| bytes == one.bytes).expect("an answer of that size") + 1;
    }
    assert_eq!(way.live_connections(), 0);
}

/// A special client, which writes a number of bytes at once, finishes, and counts received bytes.
#[derive(Debug)]
struct Raw {
    bytes: u64,
    read: Vec<u64>,
    closed: Option<CloseReason>,
}

impl Application for Raw {
    fn on_start(&mut self, io: &mut dyn Io) {
        let id = io.open();
        let stream = io.stream(id).unwrap();
        stream.write(Payload::Length(self.bytes));
        stream.finish();
    }

    fn on_stream(&mut self, stream: StreamId, event: TransportEvent, io: &mut dyn Io) {
        match event {
            TransportEvent::Readable => self.read.push(io.stream(stream).unwrap().read(u64::MAX).unwrap().len()),
            TransportEvent::Closed(reason) => self.closed = Some(reason),
            TransportEvent::Connected | TransportEvent::Writable | TransportEvent::PeerFinished => {}
        }
    }
}

#[test]
fn requests_that_arrive_together_are_answered_one_after_the_other() {
    // Two requests of 1000 bytes and half of a third in one write, followed by the end of the stream.
    let (_, mut server) = pair(&spec(ConnectionUse::Persistent));
    let mut raw = Raw { bytes: 2500, read: Vec::new(), closed: None };
    let mut way = way();
    way.start(&mut [&mut raw, &mut server], Instant::NEVER);
    assert_eq!(raw.read, [5000, 5000]);
    assert_eq!(raw.closed, Some(CloseReason::Finished));
    assert_eq!(server.progress().received_bytes, 2500);
}

#[test]
fn timer_during_an_exchange_starts_no_other() {
    let (mut client, mut server) = pair(&spec(ConnectionUse::Persistent));
    let mut way = way();
    way.start(&mut [&mut client, &mut server], millis(30));
    client.on_wake(&mut Host { way: &mut way, end: 0 });
    way.run(&mut [&mut client, &mut server], Instant::NEVER);
    assert_eq!(spans(client.completions()), [(0, 49), (99, 128), (178, 207)]);
}

#[test]
fn loss_of_the_shared_connection_ends_all_exchanges() {
    let (mut client, mut server) = pair(&spec(ConnectionUse::Persistent));
    let mut way = way();
    way.start(&mut [&mut client, &mut server], millis(110));
    way.kill(0, CloseReason::TimedOut);
    way.run(&mut [&mut client, &mut server], Instant::NEVER);
    assert_eq!(spans(client.completions()), [(0, 49)]);
    assert_eq!((figure(&client.metric_values(way.now), "exchanges_failed"), client.progress().completed), (1.0, None));
}

#[test]
fn loss_of_the_shared_connection_between_exchanges_ends_all_exchanges() {
    let (mut client, mut server) = pair(&spec(ConnectionUse::Persistent));
    let mut way = way();
    way.start(&mut [&mut client, &mut server], millis(60));
    way.kill(0, CloseReason::TimedOut);
    way.run(&mut [&mut client, &mut server], Instant::NEVER);
    assert_eq!(spans(client.completions()), [(0, 49)]);
    assert_eq!(way.opened(), 1);
}

fn transfers(count: u64) -> PoissonTransfersSpec {
    PoissonTransfersSpec {
        mean_interval: Duration::from_millis(20),
        size_bytes: Distribution::BoundedPareto { shape: 1.1, low: 100.0, high: 1e6 },
        count: Some(count),
    }
}

fn ends(spec: &PoissonTransfersSpec) -> (PoissonTransfersInitiator, PoissonTransfersAcceptor) {
    let acceptor = PoissonTransfersAcceptor::new(spec, random(), Instant::ZERO).unwrap();
    (PoissonTransfersInitiator::new(spec, random()).unwrap(), acceptor)
}

#[test]
fn transfer_takes_handshake_transmission_and_delay() {
    // Connections do not share the rate here. Each takes 20 + size / (byte per us) + 10 ms.
    let mut initiator = PoissonTransfersInitiator::new(&transfers(500), random()).unwrap();
    let mut acceptor = PoissonTransfersAcceptor::new(&transfers(500), random(), millis(3000)).unwrap();
    let mut way = way();
    way.now = millis(3000);
    way.start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    assert_eq!(acceptor.completions().len(), 500);
    assert!(acceptor.completions().iter().all(|one| one.started > millis(3000)));
    for one in acceptor.completions() {
        let expected = 30 * MILLISECOND + one.bytes * 1000;
        assert_eq!(one.completed.saturating_since(one.started).as_nanos(), expected);
    }
    assert_eq!((way.opened(), way.live_connections()), (500, 0));
    assert_eq!(figure(&initiator.metric_values(way.now), "transfers_begun"), 500.0);
    assert_eq!(acceptor.progress().completed, acceptor.completions().last().map(|one| one.completed));
}

#[test]
fn transfers_are_identified_in_any_order_of_their_connections() {
    let (mut initiator, mut acceptor) = ends(&transfers(500));
    let mut way = way();
    // Every third handshake takes 200 ms more, so about ten later arrivals overtake it.
    way.handshake_delay = Box::new(|connection| Duration::from_millis(if connection % 3 == 0 { 200 } else { 0 }));
    way.send_buffer_bytes = 5000;
    way.start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    let (mut late, mut total) = (0, 0);
    for one in acceptor.completions() {
        let over = one.completed.saturating_since(one.started).as_nanos() - 30 * MILLISECOND - one.bytes * 1000;
        assert!(over == 0 || over == 200 * MILLISECOND, "{over}");
        late += u32::from(over > 0);
        total += one.bytes;
    }
    // The transfers 0, 3, ... 498.
    assert_eq!((acceptor.completions().len(), late), (500, 167));
    let overtaken = acceptor.completions().windows(2).filter(|pair| pair[1].started < pair[0].started).count();
    assert!(overtaken > 100, "{overtaken}");
    assert_eq!(total, way.writes[0].iter().map(|&(_, bytes)| bytes).sum::<u64>());
    assert_eq!(acceptor.progress().received_bytes, total);
}

#[test]
fn transfers_arrive_as_a_poisson_process_with_their_sizes() {
    let spec = PoissonTransfersSpec { size_bytes: Distribution::Exponential { mean: 4000.0 }, ..transfers(20_000) };
    let (mut initiator, mut acceptor) = ends(&spec);
    let mut way = way();
    way.start(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    let mut starts: Vec<u64> = acceptor.completions().iter().map(|one| one.started.as_nanos()).collect();
    starts.sort_unstable();
    let n = starts.len() as f64;
    // The n-th arrival is n mean intervals after the start, with a standard deviation of sqrt(n) intervals. The mean size has a
    // standard error of 4000 / sqrt(n).
    let last = *starts.last().unwrap() as f64 / 20e6;
    assert!((last - n).abs() < 5.0 * n.sqrt(), "{last}");
    let mean = acceptor.progress().received_bytes as f64 / n;
    assert!((mean - 4000.0).abs() < 5.0 * 4000.0 / n.sqrt(), "{mean}");
    // Squares of exponential intervals have mean 2 and variance 20.
    let squares = starts.windows(2).map(|pair| ((pair[1] - pair[0]) as f64 / 20e6).powi(2)).sum::<f64>() / (n - 1.0);
    assert!((squares - 2.0).abs() < 5.0 * (20.0 / n).sqrt(), "{squares}");
}

#[test]
fn lost_transfer_is_not_complete() {
    let spec = PoissonTransfersSpec { size_bytes: constant(1000.0), ..transfers(2) };
    let (mut initiator, mut acceptor) = ends(&spec);
    let mut way = way();
    // Both have started long before 10 s; the handshake delay keeps them open.
    way.handshake_delay = Box::new(|_| Duration::from_secs(10));
    way.start(&mut [&mut initiator, &mut acceptor], millis(5000));
    way.kill(1, CloseReason::TimedOut);
    way.run(&mut [&mut initiator, &mut acceptor], Instant::NEVER);
    assert_eq!((acceptor.completions().len(), acceptor.progress().completed), (1, None));
    assert_eq!(acceptor.progress().received_bytes, 1000);
}
