//! Tests of the end of connections (RFC 9000 section 10).

use super::*;
use fullpipe_transport::CloseReason;

fn closes(flight: &Flight) -> Option<(bool, u64)> {
    frames(flight).iter().find_map(|frame| match frame {
        QuicFrame::ConnectionClose { application, error } => Some((*application, *error)),
        _ => None,
    })
}

#[test]
fn closing_endpoint_remains_three_timeouts_and_limits_its_responses() {
    let mut lone = Lone::client(plain(), plain());
    let stream = lone.open(true);
    let now = lone.now;
    lone.connection.close(now, 7);
    let flights = lone.drain();
    assert_eq!(flights.iter().map(closes).collect::<Vec<_>>(), [Some((true, 7))]);
    assert!(lone.events.contains(&(stream, TransportEvent::Closed(CloseReason::Aborted))));
    assert_eq!(lone.connection.state(), State::Closing);
    // Packets that arrive later are answered, but not all of them.
    assert_eq!(lone.receive(vec![QuicFrame::Ping]).iter().map(closes).collect::<Vec<_>>(), [Some((true, 7))]);
    assert!(lone.receive(vec![QuicFrame::Ping]).is_empty());
    let period = (lone.connection.inspect().pto + ms(25)) * 3;
    assert_eq!(lone.connection.slow_timer_deadline(), now + period);
    lone.pass(period);
    assert!(lone.connection.is_closed());
    assert!(lone.receive(vec![QuicFrame::Ping]).is_empty());
}

#[test]
fn draining_endpoint_sends_nothing() {
    let mut lone = Lone::client(plain(), plain());
    let stream = lone.open(true);
    lone.write(stream, 100);
    let now = lone.now;
    assert!(lone.receive(vec![QuicFrame::ConnectionClose { application: true, error: 0 }]).is_empty());
    assert!(lone.events.contains(&(stream, TransportEvent::Closed(CloseReason::Finished))));
    assert_eq!(lone.connection.state(), State::Draining);
    assert_eq!(lone.connection.open_stream(now, true), None);
    assert!(lone.receive(vec![QuicFrame::Ping]).is_empty());
    let period = (lone.connection.inspect().pto + ms(25)) * 3;
    assert!(lone.pass(period - Duration::from_nanos(1)).is_empty());
    assert!(!lone.connection.is_closed());
    lone.pass(Duration::from_nanos(1));
    assert!(lone.connection.is_closed());
}

#[test]
fn connection_closes_after_the_smaller_idle_timeout() {
    let with = |seconds| Config { idle_timeout: Duration::from_secs(seconds), ..plain() };
    // Section 10.1; zero disables the time-out.
    for (client, server, expected) in
        [(10, 5, Some(5)), (5, 10, Some(5)), (0, 7, Some(7)), (7, 0, Some(7)), (0, 0, None)]
    {
        let mut lone = Lone::client(with(client), with(server));
        let answers = lone.receive(vec![QuicFrame::Ack { delay: 0, ranges: vec![(0, 0)], ecn: None }]);
        assert!(answers.is_empty());
        let now = lone.now;
        let deadline = lone.connection.slow_timer_deadline();
        match expected {
            Some(seconds) => {
                assert_eq!(deadline, now + Duration::from_secs(seconds));
                assert!(lone.pass(Duration::from_secs(seconds)).is_empty(), "without a word");
                assert!(lone.connection.is_closed());
            }
            None => assert!(deadline.is_never()),
        }
    }
}

#[test]
fn idle_timeout_is_at_least_three_probe_timeouts() {
    let short = Config { idle_timeout: ms(1), ..plain() };
    let mut pair = pair(short, plain());
    pair.run_until(|pair| pair.client.is_closed());
    // Before the first sample the limit is 3 * 999 ms, but the handshake ended the idle period after 100 ms; then 3 * (100 + 4 *
    // 50 + 25).
    assert!(pair.now >= at(100) + (ms(100) * 3), "{}", pair.now);
    assert!(pair.client.statistics().received_packets > 0, "the handshake was not cut off");
}

#[test]
fn only_the_first_packet_after_a_reception_restarts_the_idle_timer() {
    // Section 10.1: only the first ack-eliciting packet since the last received one restarts the timer.
    let mut lone = Lone::client(Config { idle_timeout: Duration::from_secs(5), ..plain() }, plain());
    let stream = lone.open(true);
    lone.receive(vec![QuicFrame::Padding(1)]);
    lone.pass(Duration::from_secs(2));
    lone.write(stream, 10);
    let begin = lone.now;
    lone.pass(Duration::from_secs(4));
    lone.write(stream, 10);
    assert_eq!(lone.connection.state(), State::Open);
    lone.pass(begin + Duration::from_secs(5) - lone.now);
    assert!(lone.connection.is_closed());
}

#[test]
fn close_during_the_handshake_hides_the_application_error() {
    // Section 10.2.3: APPLICATION_ERROR is 0xc; the datagram is padded like all datagrams with Initial packets.
    let mut pair = pair(plain(), plain());
    pair.service();
    let now = pair.now;
    pair.client.close(now, 7);
    pair.service();
    let last = &pair.sent[0].last().unwrap().1;
    assert_eq!((closes(last), last.bytes), (Some((false, 0xc)), 1200));
    pair.run_until(|pair| pair.client.is_closed() && pair.server.is_closed());
}

#[test]
fn connection_closes_after_its_last_stream() {
    let mut pair = confirmed(plain(), plain());
    let now = pair.now;
    let stream = pair.client.open_stream(now, true).unwrap();
    pair.client.close_when_done(now);
    assert_eq!(pair.client.state(), State::Open);
    pair.write(stream, Payload::Length(5000));
    pair.finish(stream);
    settle(&mut pair);
    let now = pair.now;
    pair.server.stream(now, 0).unwrap().finish();
    pair.service();
    settle(&mut pair);
    assert!(pair.client.is_closed() && pair.server.is_closed());
    assert_eq!(pair.received[1], 5000);
}
