//! Close and reset: RFC 9293 sections 3.6 and 3.10, RFC 5961.

use crate::common::*;
use fullpipe_tcp::{Config, State};
use fullpipe_transport::{CloseReason, Stream, TransportEvent};
use fullpipe_units::Duration;
use fullpipe_wire::TcpHeader;
use fullpipe_wire::tcp::flags;

fn open() -> Script {
    let mut script = Script::client(Config { nagle: false, ..Config::linux() }, ms(10));
    script.events.clear();
    script
}

#[test]
fn active_closer_passes_both_fin_waits_and_time_wait() {
    let mut script = open();
    script.connection.finish();
    let fin = script.out().remove(0);
    assert_eq!(fin.header.flags, flags::FIN | flags::ACK);
    assert_eq!(script.connection.state(), State::FinWait1);
    script.advance(ms(10));
    script.ack(1, &[]);
    assert_eq!(script.connection.state(), State::FinWait2);
    assert!(script.connection.slow_timer_deadline().is_never());
    // Half-closed: the peer still sends, and its data is acknowledged.
    script.data(0, 100, 0);
    assert_eq!(script.connection.readable_bytes(), 100);
    script.peer_next = 100;
    let mut last = script.segment(1, flags::ACK | flags::FIN);
    last.header.payload_bytes = 0;
    let again = last.clone();
    script.deliver(last);
    assert_eq!(script.connection.state(), State::TimeWait);
    assert_eq!(
        script.events,
        [TransportEvent::Readable, TransportEvent::PeerFinished, TransportEvent::Closed(CloseReason::Finished)],
        "and no other"
    );
    let ack = script.out();
    assert_eq!(ack.len(), 1);
    assert_eq!(script.peer_offset(ack[0].header.acknowledgement), 101);
    // A retransmitted FIN is acknowledged, and restarts TIME-WAIT.
    let begun = script.now;
    assert_eq!(script.connection.slow_timer_deadline(), begun + Duration::from_secs(60));
    script.advance(Duration::from_secs(20));
    let mut repeated = again;
    repeated.header.timestamp += 20_000;
    script.deliver(repeated);
    assert_eq!(script.out().len(), 1);
    assert_eq!(script.timer(), begun + Duration::from_secs(80));
    assert!(script.connection.is_closed());
    assert_eq!(script.events.len(), 3);
    // Unread data remains readable.
    assert_eq!(script.connection.read(1000).unwrap().len(), 100);
}

#[test]
fn passive_closer_passes_close_wait_and_last_ack() {
    let mut script = open();
    script.data(0, 200, flags::FIN);
    assert_eq!(script.connection.state(), State::CloseWait);
    assert_eq!(script.events, [TransportEvent::Readable, TransportEvent::PeerFinished]);
    let ack = script.out();
    assert_eq!(ack.len(), 1, "a FIN is acknowledged immediately, and once");
    assert_eq!(script.peer_offset(ack[0].header.acknowledgement), 201);
    // It may still send data.
    script.peer_next = 201;
    script.write(3000);
    script.connection.finish();
    let sent = script.out();
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[2].header.flags, flags::FIN | flags::ACK, "the FIN is sent with the last byte");
    assert_eq!(sent[2].header.payload_bytes, 3000 - 2 * 1448);
    assert_eq!(script.connection.state(), State::LastAck);
    script.ack(3000, &[]);
    assert_eq!(script.connection.state(), State::LastAck);
    script.ack(3001, &[]);
    assert_eq!(script.connection.state(), State::Closed);
    assert_eq!(script.events.last(), Some(&TransportEvent::Closed(CloseReason::Finished)));
    assert!(script.connection.is_closed());
    assert!(next_deadline(&script.connection).is_never());
}

#[test]
fn simultaneous_close_passes_closing() {
    let mut script = open();
    script.connection.finish();
    script.out();
    let fin = script.segment(0, flags::ACK | flags::FIN);
    script.deliver(fin);
    assert_eq!(script.connection.state(), State::Closing);
    assert_eq!(script.out().len(), 1);
    script.peer_next = 1;
    script.ack(1, &[]);
    assert_eq!(script.connection.state(), State::TimeWait);
}

#[test]
fn fin_with_the_acknowledgment_of_ours_leads_to_time_wait() {
    let mut script = open();
    script.connection.finish();
    script.out();
    let fin = script.segment(1, flags::ACK | flags::FIN);
    script.deliver(fin);
    assert_eq!(script.connection.state(), State::TimeWait);
}

#[test]
fn lost_fin_is_retransmitted_with_its_data() {
    let mut script = open();
    script.write(500);
    script.connection.finish();
    assert_eq!(script.out().len(), 1);
    script.timer();
    let again = script.out();
    assert_eq!(again.len(), 1);
    assert!(again[0].header.has_flag(flags::FIN));
    assert_eq!(again[0].header.payload_bytes, 500);
    // If the data was sent before, the FIN is sent alone.
    let mut script = open();
    script.write(500);
    assert_eq!(script.out().len(), 1);
    script.connection.finish();
    let fin = script.out();
    assert_eq!((fin[0].header.payload_bytes, fin[0].header.has_flag(flags::FIN)), (0, true));
    assert_eq!(script.offset(fin[0].header.sequence), 500);
}

#[test]
fn fin_that_arrives_before_data_waits_for_it() {
    let mut script = open();
    script.data(1000, 500, flags::FIN);
    assert_eq!(script.connection.state(), State::Established);
    let ack = script.out().remove(0);
    // The block also covers the sequence number of the FIN.
    assert_eq!(script.peer_offset(ack.sacks[0].end), 1501);
    script.data(0, 1000, 0);
    assert_eq!(script.connection.state(), State::CloseWait);
    assert_eq!(script.events, [TransportEvent::Readable, TransportEvent::PeerFinished]);
    assert_eq!(script.connection.readable_bytes(), 1500);
    let acks = script.out();
    assert_eq!(script.peer_offset(acks[0].header.acknowledgement), 1501);
}

#[test]
fn ns3_preset_acknowledges_a_fin_with_data_twice() {
    let mut script = Script::client(Config::ns3(), ms(10));
    script.data(0, 200, flags::FIN);
    let acks = script.out();
    assert_eq!(acks.len(), 2);
    assert!(acks.iter().all(|ack| script.peer_offset(ack.header.acknowledgement) == 201));
    // A FIN without data is acknowledged once.
    let mut script = Script::client(Config::ns3(), ms(10));
    script.data(0, 0, flags::FIN);
    assert_eq!(script.out().len(), 1);
}

#[test]
fn writing_after_finish_is_not_possible() {
    let mut script = open();
    script.connection.finish();
    assert_eq!(script.connection.writable_bytes(), 0);
    assert_eq!(script.connection.write(fullpipe_transport::Payload::Length(10)), 0);
}

/// A connection in each of the states after the handshake.
fn in_state(state: State) -> Script {
    let mut script = open();
    match state {
        State::Established => {}
        State::FinWait1 | State::FinWait2 | State::TimeWait | State::Closing => {
            script.connection.finish();
            script.out();
            if state == State::FinWait2 || state == State::TimeWait {
                script.ack(1, &[]);
            }
            if state == State::TimeWait || state == State::Closing {
                script.data(0, 0, flags::FIN);
                script.peer_next = 1;
            }
        }
        State::CloseWait | State::LastAck => {
            script.data(0, 0, flags::FIN);
            script.peer_next = 1;
            if state == State::LastAck {
                script.connection.finish();
            }
        }
        _ => unreachable!(),
    }
    script.out();
    assert_eq!(script.connection.state(), state);
    script.advance(Duration::from_secs(1));
    script
}

const OPEN_STATES: [State; 7] = [
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

#[test]
fn reset_with_the_exact_number_closes_in_every_state() {
    for state in OPEN_STATES {
        let mut script = in_state(state);
        let reset = script.segment(0, flags::RST);
        script.deliver(reset);
        assert_eq!(script.connection.state(), State::Closed, "{state:?}");
        let orderly = matches!(state, State::Closing | State::LastAck | State::TimeWait);
        let reason = if orderly { CloseReason::Finished } else { CloseReason::Reset };
        assert_eq!(script.events.last(), Some(&TransportEvent::Closed(reason)), "{state:?}");
        assert!(script.out().is_empty(), "a reset is not answered");
        assert!(next_deadline(&script.connection).is_never());
    }
}

#[test]
fn reset_within_the_window_is_challenged_and_one_beyond_is_ignored() {
    for state in OPEN_STATES {
        let mut script = in_state(state);
        let next = script.peer_next;
        script.peer_next = next + 1;
        let reset = script.segment(0, flags::RST);
        script.deliver(reset.clone());
        assert_eq!(script.connection.state(), state);
        assert_eq!(script.out().len(), 1, "{state:?}: RFC 5961 section 3.2");
        // Not twice within half a second.
        script.deliver(reset.clone());
        assert!(script.out().is_empty());
        script.advance(ms(500));
        script.deliver(reset);
        assert_eq!(script.out().len(), 1);
        script.advance(ms(500));
        for offset in [next.wrapping_sub(1), next + (6 << 20) + 1] {
            script.peer_next = offset;
            let reset = script.segment(0, flags::RST);
            script.deliver(reset);
            assert_eq!(script.connection.state(), state);
            assert!(script.out().is_empty());
        }
    }
}

#[test]
fn syn_in_an_open_connection_is_challenged() {
    for state in OPEN_STATES {
        for number in [0, 1000, u32::MAX / 2] {
            let mut script = in_state(state);
            script.peer_next = number;
            let syn = script.segment(0, flags::SYN);
            script.deliver(syn);
            assert_eq!(script.connection.state(), state);
            assert_eq!(script.out().len(), 1, "{state:?} {number}: RFC 5961 section 4.2");
        }
    }
}

#[test]
fn only_time_wait_is_replaced_and_only_by_a_later_syn() {
    // RFC 6191 section 2: a larger timestamp is sufficient; with an equal one, or none, the sequence number must be larger.
    let syn = |script: &Script, offset: i32, timestamp: Option<i32>| {
        let mut syn = script.segment(0, flags::SYN);
        syn.header.sequence = script.peer_initial.wrapping_add(1).wrapping_add_signed(offset);
        syn.header.timestamp = syn.header.timestamp.wrapping_add_signed(timestamp.unwrap_or(0));
        if timestamp.is_none() {
            syn.header.options = 0;
        }
        syn.header
    };
    for state in OPEN_STATES {
        let script = in_state(state);
        assert_eq!(script.connection.permits_time_wait_reuse(&syn(&script, 1000, Some(0))), state == State::TimeWait);
    }
    let script = in_state(State::TimeWait);
    // The FIN was number 0, so 1 is the first beyond it; it arrived a second ago, 1000 ticks.
    for (offset, timestamp, expected) in [
        (-1_000_000, Some(-999), true),
        (1, Some(-1000), true),
        (0, Some(-1000), false),
        (1_000_000, Some(-1001), false),
        (1, None, true),
        (0, None, false),
    ] {
        let header = syn(&script, offset, timestamp);
        assert_eq!(script.connection.permits_time_wait_reuse(&header), expected, "{offset} {timestamp:?}");
        let answer = TcpHeader { flags: flags::SYN | flags::ACK, ..header };
        assert!(!script.connection.permits_time_wait_reuse(&answer));
    }
}

#[test]
fn acknowledgment_of_unsent_data_is_challenged_and_its_data_dropped() {
    let mut script = open();
    let mut ahead = script.segment(5, flags::ACK);
    ahead.header.payload_bytes = 100;
    script.deliver(ahead);
    assert_eq!(script.out().len(), 1);
    assert_eq!(script.connection.readable_bytes(), 0);
    // Older than the largest window received so far (8 388 480 bytes): RFC 5961 section 5.2.
    script.advance(ms(600));
    let mut ancient = script.segment(0, flags::ACK);
    ancient.header.acknowledgement = script.number(0).wrapping_sub(65_535 << 7).wrapping_sub(1);
    ancient.header.payload_bytes = 100;
    script.deliver(ancient);
    assert_eq!(script.out().len(), 1);
    assert_eq!(script.connection.readable_bytes(), 0);
    // An old acknowledgment: its data is accepted.
    let mut old = script.segment(0, flags::ACK);
    old.header.acknowledgement = script.number(0).wrapping_sub(1000);
    old.header.payload_bytes = 100;
    script.deliver(old);
    assert_eq!(script.connection.readable_bytes(), 100);
}

#[test]
fn abort_resets_the_peer() {
    for state in OPEN_STATES {
        let mut script = in_state(state);
        let before = script.events.clone();
        script.connection.abort();
        script.collect_events();
        let sent = script.out();
        if state == State::TimeWait {
            assert!(sent.is_empty());
            assert_eq!(script.events, before, "an event follows the last one");
        } else {
            assert_eq!(sent.len(), 1);
            assert_eq!(sent[0].header.flags, flags::RST | flags::ACK);
            let fin = u32::from(!matches!(state, State::Established | State::CloseWait));
            assert_eq!(script.offset(sent[0].header.sequence), fin, "the peer expects this number");
            assert_eq!(script.events.last(), Some(&TransportEvent::Closed(CloseReason::Aborted)));
        }
        assert!(script.connection.is_closed());
    }
}

#[test]
fn closed_connection_answers_with_a_reset() {
    let mut script = open();
    script.connection.abort();
    script.out();
    let data = script.segment(7, flags::ACK);
    script.deliver(data.clone());
    let reset = script.out().remove(0);
    assert_eq!((reset.header.flags, reset.header.sequence), (flags::RST, data.header.acknowledgement));
    let mut syn = script.segment(0, flags::SYN);
    syn.header.sequence = 1234;
    script.deliver(syn);
    let reset = script.out().remove(0);
    // Sequence number 0, and an acknowledgment of the SYN's number plus one.
    assert_eq!(
        (reset.header.flags, reset.header.sequence, reset.header.acknowledgement),
        (flags::RST | flags::ACK, 0, 1235)
    );
    let rst = script.segment(0, flags::RST);
    script.deliver(rst);
    assert!(script.out().is_empty());
}

#[test]
fn abort_of_an_unopened_connection_sends_nothing() {
    let mut script = Script::unopened(Config::linux(), Box::new(Halving));
    script.connection.abort();
    script.collect_events();
    assert_eq!(script.events, [TransportEvent::Closed(CloseReason::Aborted)]);
    assert!(script.out().is_empty(), "no peer has state for the connection");
    assert!(script.connection.is_closed());
}
