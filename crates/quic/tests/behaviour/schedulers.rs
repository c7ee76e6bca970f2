//! Tests of stream schedulers: the order of streams, and the retransmission of lost data.

use super::*;
use fullpipe_quic::scheduler::{
    Edf, ExtensiblePriorities, Fifo, Pfifo, RetransmissionOrder, RoundRobin, SchedulerSettings, StreamScheduler,
    WeightedFair,
};
use fullpipe_transport::Priority;

/// The STREAM frames in the order in which they leave.
fn order(flights: &[Flight]) -> Vec<(u64, u64, u64)> {
    let mut pieces = Vec::new();
    for flight in flights {
        if flight.header.form == QuicForm::Stream {
            let header = &flight.header;
            pieces.push((u64::from(header.stream), header.offset_or_largest_acked(), u64::from(header.length)));
        }
        for frame in frames(flight) {
            if let QuicFrame::Stream { stream, offset, length, .. } = frame {
                pieces.push((stream, offset, length));
            }
        }
    }
    pieces
}

fn ids(flights: &[Flight]) -> Vec<u64> {
    let mut ids: Vec<u64> = order(flights).iter().map(|piece| piece.0).collect();
    ids.dedup();
    ids
}

/// A client with a closed window and three streams.
fn full(scheduler: impl SchedulerSettings, retransmission: RetransmissionOrder) -> (Lone, [u32; 3]) {
    let client = Config { scheduler: StreamScheduler::new(scheduler), retransmission, ..plain() };
    let mut lone = Lone::client(client, plain());
    let streams = [lone.open(true), lone.open(true), lone.open(true)];
    // DATAGRAM frames fill the window of ten packets.
    for _ in 0..10 {
        assert!(lone.connection.send_datagram(1100));
    }
    assert_eq!(lone.drain().len(), 10);
    (lone, streams)
}

/// Writes these amounts to streams in this order, a millisecond apart, and opens the window.
fn written(lone: &mut Lone, order: &[(u32, u64)]) -> Vec<Flight> {
    for (stream, bytes) in order {
        assert!(lone.write(*stream, *bytes).is_empty(), "the window is closed");
        lone.pass(ms(1));
    }
    lone.acknowledge(&[(0, 9)])
}

#[test]
fn fifo_sends_in_the_order_of_writes() {
    let (mut lone, [a, b, c]) = full(Fifo, RetransmissionOrder::First);
    let flights = written(&mut lone, &[(c, 500), (a, 500), (b, 500), (a, 300)]);
    assert_eq!(order(&flights).iter().map(|piece| piece.0).collect::<Vec<_>>()[..3], [8, 0, 4]);
    let (mut lone, [a, b, _]) = full(Fifo, RetransmissionOrder::First);
    // The second part of a is written after b.
    let flights = written(&mut lone, &[(a, 2000), (b, 2000), (a, 2000)]);
    assert_eq!(ids(&flights), [0, 4, 0]);
}

#[test]
fn pfifo_sends_the_smallest_id_first() {
    let (mut lone, [a, b, c]) = full(Pfifo, RetransmissionOrder::First);
    let flights = written(&mut lone, &[(c, 2000), (b, 2000), (a, 2000)]);
    assert_eq!(ids(&flights), [0, 4, 8]);
}

#[test]
fn edf_sends_the_earliest_deadline_first() {
    // Written at 0, 1 and 2 ms: deadlines at 100 ms, 1 + 100 ms and 2 + 50 ms.
    let (mut lone, [a, b, c]) = full(Edf { latency: ms(100) }, RetransmissionOrder::First);
    lone.connection.set_priority(c, Priority { latency: Some(ms(50)), ..Priority::default() });
    let flights = written(&mut lone, &[(a, 2000), (b, 2000), (c, 2000)]);
    assert_eq!(ids(&flights), [8, 0, 4]);
}

#[test]
fn round_robin_gives_each_stream_a_frame_in_turn() {
    let (mut lone, [a, b, c]) = full(RoundRobin::default(), RetransmissionOrder::First);
    let flights = written(&mut lone, &[(a, 3500), (b, 3500), (c, 3500)]);
    assert_eq!(ids(&flights)[..9], [0, 4, 8, 0, 4, 8, 0, 4, 8]);
}

#[test]
fn weights_share_within_a_frame() {
    let (mut lone, [a, b, c]) = full(WeightedFair::default(), RetransmissionOrder::First);
    for (stream, weight) in [(a, 1), (b, 2), (c, 4)] {
        lone.connection.set_priority(stream, Priority { weight, ..Priority::default() });
    }
    let mut flights = written(&mut lone, &[(a, 100_000), (b, 100_000), (c, 100_000)]);
    lone.pass(ms(50));
    let newest = lone.newest();
    flights.extend(lone.acknowledge(&[(0, newest)]));
    let mut sent = [0u64; 3];
    for (id, _, length) in order(&flights) {
        sent[id as usize / 4] += length;
        // The bytes divided by the weights differ by at most a frame divided by the weight.
        let over = [sent[0] as f64, sent[1] as f64 / 2.0, sent[2] as f64 / 4.0];
        for (i, j, most) in [(0, 1, 1.0 + 0.5), (0, 2, 1.0 + 0.25), (1, 2, 0.5 + 0.25)] {
            assert!((over[i] - over[j]).abs() <= most * 1200.0, "{over:?}");
        }
    }
    assert!(sent.iter().sum::<u64>() > 20_000, "{sent:?}");
}

#[test]
fn urgency_goes_first_and_incremental_streams_share() {
    // RFC 9218 section 10.
    let urgency = |urgency, incremental| Priority { urgency, incremental, ..Priority::default() };
    let (mut lone, [a, b, c]) = full(ExtensiblePriorities::default(), RetransmissionOrder::First);
    lone.connection.set_priority(a, urgency(5, false));
    lone.connection.set_priority(b, urgency(1, false));
    let flights = written(&mut lone, &[(a, 2000), (b, 2000), (c, 2000)]);
    assert_eq!(ids(&flights), [4, 8, 0]);
    let (mut lone, [a, b, c]) = full(ExtensiblePriorities::default(), RetransmissionOrder::First);
    lone.connection.set_priority(a, urgency(3, true));
    lone.connection.set_priority(b, urgency(3, true));
    let flights = written(&mut lone, &[(a, 2400), (b, 2400), (c, 2000)]);
    // The stream that is not incremental is sent entirely first; the others take turns.
    assert_eq!(ids(&flights)[..5], [8, 0, 4, 0, 4]);
}

#[test]
fn lost_data_is_sent_first_or_when_its_stream_is_scheduled() {
    for (retransmission, expected) in [(RetransmissionOrder::First, 4), (RetransmissionOrder::Scheduled, 0)] {
        let client = Config { scheduler: StreamScheduler::new(Pfifo), retransmission, ..plain() };
        let mut lone = Lone::client(client, plain());
        let [a, b] = [lone.open(true), lone.open(true)];
        // Stream 4 sends ten packets, of which the first is lost; stream 0 then has data to send.
        assert_eq!(lone.write(b, 1_000_000).len(), 10);
        assert!(lone.write(a, 1_000_000).is_empty());
        lone.pass(ms(100));
        let flights = lone.acknowledge(&[(1, 9)]);
        assert_eq!(order(&flights)[0].0, expected, "{retransmission:?}");
        if expected == 4 {
            assert_eq!(order(&flights)[0].1, 0, "its first bytes");
            assert_eq!(order(&flights)[1].0, 0, "then stream 0 again");
        }
    }
}
